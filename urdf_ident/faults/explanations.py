"""Explanations of the torques of a group of logs: another interpretation, small faults, and changes within and between logs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from ..linalg import Array, BoolArray
from ..model.robot import Robot
from ..parallel import each
from ..samples import FEWEST_REVERSALS, SHORT, TESTING_REVERSALS, Segment, reversals
from ..signals.quality.hidden_delays import DELAY
from .candidates import Interpretation
from .case import Case
from .changes.between_logs import BETWEEN_LOGS, EVERYTHING, between
from .changes.change import Change
from .changes.outlying_logs import LogResidual, outlying_logs
from .changes.stationarity import LogChanges, in_all, within
from .corrections import Correction, unchanged
from .hypotheses import DOUBTFUL, Step, search
from .log_group import LogGroup
from .motion_samples import COMPARED, MotionSamples
from .small_faults.fault import SmallFault
from .small_faults.find import small_faults
from .thinned_logs import Logs

#: Minimum number of samples per joint for small faults, whose bounds were measured with as many.
_FOR_SMALL_FAULTS = 25
#: An interpretation with a smaller gain is compared with changes along the logs.
_AS_CHANGE = 3.0

#: Index of a log → kind of change, gain and joint.
Differing = dict[int, tuple[str, float, int]]


@dataclass(frozen=True, eq=False)
class Explanations:
    """What may explain the torques of a group of logs; indices are positions in the group.

    Attributes:
        differing: Logs that differ from the others, by the groups in which many logs are compared.
        changed: Change along each log, or None.
        left: Residuals of each log with its own parameters.
        outlying: Logs that their own parameters explain worse than the others, with joints and ratios.
        lasting: Whether the correction of a lasting fault removes changes that were found.
    """

    group: LogGroup
    case: Case
    interpretation: Interpretation
    steps: list[Step]
    differing: list[Differing] = field(default_factory=list)
    changed: list[Change | None] = field(default_factory=list)
    left: Sequence[LogResidual] = ()
    small: list[SmallFault] = field(default_factory=list)
    outlying: Mapping[int, tuple[int, float]] = field(default_factory=dict)
    lasting: bool = False

    @property
    def several(self) -> bool:
        """Whether anything but the interpretation may explain the torques."""
        return bool(self.differing or self.small or any(self.changed))

    @property
    def most(self) -> float:
        """Largest gain of an explanation, 0 without any."""
        of_logs = [gain for some in self.differing for _, gain, _ in some.values()]
        changes = [item.gain for item in self.changed if item is not None]
        gains = [*(item.gain for item in self.steps[:1]), *(item.gain for item in self.small), *changes, *of_logs]
        return max(gains, default=0.0)


def by_interpretation(group: LogGroup, case: Case | None = None) -> Explanations | None:
    """Searches for the interpretation that explains the torques of all logs.

    A delay of all efforts, with what was found after it, is dropped if it is friction which reverses over some travel: the
    search has no such friction; the estimate of the delay has.

    Args:
        case: Their samples, if they have been taken.

    Returns:
        The interpretation and its steps; None if the logs cannot be sampled.
    """
    case = group.case() if case is None else case
    if case is None:
        return None
    interpretation, steps = search(case)
    at = next((k for k, step in enumerate(steps) if step.found.id == DELAY and not step.found.joints), None)
    if at is not None and (delay := group.delays[0]) is not None and delay.excludes(steps[at].found.size):
        interpretation, steps = (
            steps[at - 1].found.interpretation if at else Interpretation.as_logged(group.robot.n),
            steps[:at],
        )
    return Explanations(group, case, interpretation, steps)


def with_changes(found: Explanations, alone: Sequence[LogChanges], brief: bool) -> Explanations:
    """Adds differences between the logs, changes along them and small faults.

    Args:
        alone: Results of each log by itself, as from :func:`examined_alone`.
        brief: Whether the motion is too short for changes and small faults.
    """
    left = [own.left for own in alone]
    differing = _differing_logs(found, left)
    small = [] if brief else significant_faults(found.case, found.group.logs, found.steps)
    changed: list[Change | None] = [None] * len(alone)
    if not found.steps or found.steps[0].gain < _AS_CHANGE:
        changed = along(found.case, alone, brief)
    found = replace(found, differing=differing, small=small, changed=changed, left=left)
    return found if brief or found.steps or found.several else replace(found, outlying=outlying_logs(left))


def examined_alone(
    robot: Robot,
    reduction: Array | None,
    log: tuple[Sequence[Segment], float],
    corrected: tuple[Correction, Interpretation] | None = None,
) -> LogChanges | None:
    """Residuals and changes of one log by itself.

    Args:
        reduction: Motor rates per joint rates, shape (n, n), or None if every motor drives one joint.
        log: Its motion, and the cut-off of its positions [Hz].
        corrected: A correction of the log, and the interpretation of the corrected log; None as logged.

    Returns:
        The residuals and changes; None if the log has too few data.
    """
    group = LogGroup(robot, [log], reduction)
    case = group.case()
    if case is None:
        return None
    correct, interpretation = corrected or (unchanged, Interpretation.as_logged(robot.n))
    evidence = correct(case, [log]).in_order().evidence(interpretation)
    own = within(evidence, interpretation.effort_map()[:, None], case.turns, reversals(case.sampled(0.0).v))
    return own if case.turns >= FEWEST_REVERSALS and group.seconds >= SHORT else replace(own, change=None)


def along(
    case: Case, alone: Sequence[LogChanges], brief: bool = False, interpretation: Interpretation | None = None
) -> list[Change | None]:
    """Changes along each log; if no log shows any by itself, the common change of all, unless their motion is brief.

    Args:
        brief: Whether the motion is too short for a common change.
        interpretation: The interpretation of the logs; None as logged.
    """
    changed = [own.change for own in alone]
    if any(changed) or not alone or brief:
        return changed
    interpretation, case = interpretation or Interpretation.as_logged(case.robot.n), case.in_order()
    common = in_all(
        case.evidence(interpretation),
        case.sampled(0.0).log_of_block,
        interpretation.effort_map()[:, None],
        [own.growth for own in alone],
        case.turns,
    )
    return [common] * len(alone)


def significant_faults(case: Case, logs: Logs, steps: Sequence[Step]) -> list[SmallFault]:
    """Significant small faults, largest gain first.

    Args:
        steps: Steps to the interpretation that explains the logs.

    Returns:
        None if samples are few, the joints hardly reverse, or a large fault explains about as much.
    """
    few = len(case.sampled(0.0)) < _FOR_SMALL_FAULTS * (case.robot.n + 2)
    if few or case.turns < TESTING_REVERSALS or (steps and steps[0].gain > _AS_CHANGE):
        return []
    found = [item for item in small_faults(case, logs) if item.decided]
    named = {item.id for step in steps[:1] for item in (step.found, *step.rivals)}
    least = steps[0].gain + DOUBTFUL if steps else 0.0
    return found if found and found[0].id not in named and found[0].gain > least else []


def differing_in(case: Case, alone: Sequence[LogResidual], interpretation: Interpretation | None = None) -> Differing:
    """Index of each log that differs from the others of the case, with kind, gain and joint.

    Friction is not compared where the joints hardly reverse: each log then shows it in one direction and at few speeds, and
    laws that Coulomb, viscous and offset approximate differ from log to log.

    Args:
        alone: Residuals of each log with its own parameters.
        interpretation: The interpretation of the logs; None as logged.
    """
    interpretation = interpretation or Interpretation.as_logged(case.robot.n)
    turning = case.turns >= FEWEST_REVERSALS
    kinds = [kind for kind in BETWEEN_LOGS if turning or kind not in ("friction", EVERYTHING)]
    effort_map = interpretation.effort_map()[:, None]

    def odd(some: Case) -> Differing:
        found, of_block = some.evidence(interpretation), some.sampled(0.0).log_of_block
        return between(found, of_block, effort_map, alone, case.turns, kinds)

    found = odd(case)
    if not found or case.by_motion is case:
        return found
    also = odd(case.by_motion)  # where repetitions of a motion are held out together; of two logs that differ, either may
    return {log: item for log, item in found.items() if log in also or (also and len(alone) == 2)}


def _differing_logs(found: Explanations, alone: Sequence[LogResidual]) -> list[Differing]:
    """Logs that differ from the others, unless the interpretation of all of them explains more.

    Many logs are compared in groups: among a hundred, the samples of one would have too little weight.
    """
    if len(alone) < 2:
        return []
    parted = -(-len(alone) // COMPARED)
    groups = [range(k, len(alone), parted) for k in range(parted)]
    if parted == 1:
        differing = [differing_in(found.case, alone)]
    else:
        cases = [found.group.some(group).case() for group in groups]
        thin = [
            None if case is None else (replace(case.sampled(0.0), whole=None), case.moves, [alone[k] for k in group])
            for case, group in zip(cases, groups, strict=True)
        ]  # much less data to send than the logs
        differing = each(partial(_differing_samples, found.group.robot), thin)
    gain = max((item[1] for some in differing for item in some.values()), default=0.0)
    if found.steps and gain <= found.steps[0].gain:
        return []
    return [{group[at]: item for at, item in some.items()} for group, some in zip(groups, differing, strict=True) if some]


def _differing_samples(robot: Robot, thin: tuple[MotionSamples, BoolArray, list[LogResidual]] | None) -> Differing:
    """Calls :func:`differing_in` with samples, the joints that move, and the residuals of each log by itself."""
    return {} if thin is None else differing_in(Case(robot, {0.0: thin[0]}.__getitem__, thin[1]), thin[2])
