"""Tests logs against physics: signs, orders, zeros, clocks, gravity, faults of signals and changes of the robot.

The URDF's inertias are not used, except in :mod:`.against_urdf` and to choose between rivals.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..judgements.catalogue import Id
from ..judgements.judgement import Judgement
from ..linalg import Array
from ..model.robot import Robot
from ..samples import FEWEST_REVERSALS, SHORT, TESTING_REVERSALS
from .against_urdf import against_the_urdf
from .delay import find_delay
from .evidence import DOUBTFUL, SEVERE
from .hypotheses import Step, is_poor, search
from .interpretation import Interpretation
from .kinds.clock_and_gravity import STRETCHES
from .kinds.efforts import COMMON_GAINS, GAINS
from .linearized import LinearizedCase
from .null_model import NullModel
from .score_test import ALWAYS, Fault, find_faults
from .thinned_logs import FEWEST, Logs
from .trials import LogGroup, Trials
from .words import differs, doubt, fault_finding, named, too_short_to_tell

#: Relative residual of the moving joints up to which it is noise and unmodelled friction: an eighth of the torque's square.
_SOUND = 0.35
#: Relative residual of an effort of which more is explained than not: half of its square.
_HALF = 0.5**0.5
#: Rounding errors of conditioned positions over their range: equal ones differ by less.
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Explanations:
    """What may explain the torques of a group of logs; indices are positions in the group.

    Attributes:
        steps: To another interpretation; none where there are faults.
        faults: In the order in which they were found, those told elsewhere left out.
    """

    group: LogGroup
    trials: Trials
    at: LinearizedCase
    steps: Sequence[Step] = ()
    faults: Sequence[Fault] = ()

    @property
    def differing(self) -> dict[int, Fault]:
        """Logs in which the robot is another one than in the rest; of two logs, and of several that gain alike, all."""
        some = dict[int, Fault]()
        for fault in [] if not self.faults else [self.faults[0], *self.faults[0].rivals]:
            if fault.family.change and fault.when.log is not None and not fault.when.window:
                some.setdefault(fault.when.log, fault)
            elif not some:
                break
        return some

    @property
    def corrected(self) -> Trials:
        """Interpretations without the effects of the faults that last throughout all logs."""
        effect = sum((item.effect for item in self.faults if item.when == ALWAYS), start=np.zeros(1))
        return self.trials.with_more(effect) if effect.any() else self.trials


def physics_findings(
    robot: Robot,
    logs: Logs,
    reduction: Array | None = None,
) -> list[tuple[Judgement, ...]]:
    """Searches for interpretations of the logs that explain their torques decisively better, and for faults and changes.

    With less than :data:`.samples.SHORT` seconds of motion in all logs together, the parameters of one robot fit almost any
    torque: causes found there are reported as undecided, and faults and changes over time are not searched for.

    Args:
        robot: Kinematics and gravity; its inertias are not used.
        logs: Conditioned motion with measured torque of each log, and the cut-off of its positions [Hz].
        reduction: Motor rates per joint rates, shape (n, n), or None if every motor drives one joint.

    Returns:
        Findings of each log; none if the motion is too short.
    """
    group = LogGroup(robot, logs, reduction)
    brief, compared = group.seconds < SHORT, group.usable
    out: list[list[Judgement]] = [[] for _ in logs]
    while compared:  # a log that differs is reported, and the others are compared again
        found = _explained(group.some(compared))
        if found is None:
            break
        for k, own in zip(compared, _of_differing(found) if found.differing else _of_all(found), strict=True):
            out[k] += own
        if len(found.differing) != 1:
            break
        compared = [k for at, k in enumerate(compared) if at not in found.differing]
    return [tuple(map(too_short_to_tell, own)) if brief else tuple(own) for own in out]


def _explained(group: LogGroup) -> Explanations | None:
    """Searches for what explains the torques of all logs; None if they cannot be sampled."""
    trials = group.trials()
    if trials is None:
        return None
    at, faults, suspects = LinearizedCase.of(trials), list[Fault](), set(trials.moving)
    few = len(trials.samples) < FEWEST * (group.robot.n + 2)
    if not (few or trials.turns < TESTING_REVERSALS or group.seconds < SHORT):
        faults, families = find_faults(at, NullModel.of(at))
        if not families and not is_poor(trials.as_logged):
            return Explanations(group, trials, at, [], faults)  # a large fault leaves much, or shows at first order
        suspects = {j for family in families for j in family.joints}
    steps = search(trials, suspects)
    late = next((k for k, step in enumerate(steps) if step.found.id == Id.EFFORT_DELAY), None)
    if late is not None:  # it may be friction that reverses over some travel, which only the estimate of the delay has
        delay = find_delay(group.robot, group.logs, group.reduction)
        if delay is not None and delay.excludes(steps[late].found.interpretation.delay):
            steps = steps[:late]
    if steps and faults:  # the interpretation, unless a fault that is none of its causes explains decisively more
        first, best = steps[0], faults[0]
        gained = trials.as_logged.gains(trials.with_more(best.effect).as_logged)
        if best.when.log is not None:
            gained = gained[trials.samples.log_of_block == best.when.log]
        if best.family.id not in {item.id for item in (first.found, *first.rivals)} and gained.mean() >= first.gain + DOUBTFUL:
            steps = []
    return Explanations(group, trials, at, steps, [] if steps else [item for item in faults if not item.family.only_competes])


def moved_alike(robot: Robot, logs: Logs, reduction: Array | None = None) -> list[bool]:
    """Whether joints of each log with equal positions moved alike: a robot as logged explains most of each effort.

    Where the column of one is the copy of another's, the effort of the joint whose own is missing is not that of its motion: of
    two simulated arms it leaves 0.95 of it and more, the sound logs 0.02 to 0.17.

    Args:
        logs: As for :func:`physics_findings`.
        reduction: Motor rates per joint rates, shape (n, n), or None if every motor drives one joint.

    Returns:
        False also where the motion cannot be examined.
    """
    trials = LogGroup(robot, logs, reduction).trials()
    if trials is None:
        return [False] * len(logs)
    errors, log = trials.as_logged.squares, trials.samples.log_of_block
    out = []
    for k in range(len(logs)):
        if not (log == k).any():
            out.append(False)
            continue
        q = trials.samples.q[trials.samples.log == k]
        apart = np.abs(q[:, :, None] - q[:, None, :]).max(axis=0, initial=0.0)
        equal = (apart < _ROUNDING * np.ptp(q, axis=0)).sum(axis=0) > 1
        left = np.sqrt(errors[log == k].mean(axis=0))
        out.append(bool((left[equal & trials.moves] < _HALF).all()))
    return out


def _of_differing(found: Explanations) -> list[list[Judgement]]:
    """How the logs that differ from the others do, and what is wrong with each by itself."""
    robot, differing = found.group.robot, found.differing
    out: list[list[Judgement]] = [[] for _ in found.group.logs]
    for k, fault in differing.items():
        trials, own = found.group.some([k]).trials(), tuple[Judgement, ...]()
        if trials is not None:
            own = _downgraded(trials, _of_steps(trials, search(trials, trials.moving)))
        judgement = differs(robot, fault, len(differing) == 1, own)
        out[k] = [*_downgraded(found.trials, [judgement], FEWEST_REVERSALS * len(out)), *own]
    return out


def _of_all(found: Explanations) -> list[list[Judgement]]:
    """What is wrong with all logs, and with single ones beside it."""
    robot, common = found.group.robot, _downgraded(found.trials, _of_interpretation(found))
    reported, out = {(item.id, item.joint) for item in common}, [list(common) for _ in found.group.logs]
    for fault in found.faults:
        delay = None
        if fault.family.id == Id.EFFORT_DELAY and not fault.family.joints and fault.when.log is not None:
            delay = find_delay(robot, found.group.some([fault.when.log]).logs, found.group.reduction)
        item = fault_finding(robot, fault if delay is None else replace(fault, size=delay.seconds))  # not to first order
        for k in fault.logs(found.trials.samples.log):
            out[k] += [item] if (item.id, item.joint) not in reported else []
    return out


def _of_interpretation(found: Explanations) -> tuple[Judgement, ...]:
    """What the interpretation of all logs, the URDF's inertias, and what the logs leave open tell."""
    robot, trials, steps = found.group.robot, found.trials, found.steps
    undecided = bool(steps) and not steps[-1].decided
    if undecided and steps[-1].gain >= SEVERE:
        return _of_steps(trials, steps)
    interpretation = steps[-1].found.interpretation if steps and not undecided else Interpretation.as_logged(robot.n)
    loaded = any(part.external is not None for parts, _ in found.group.logs for part in parts)
    reported = against_the_urdf(found.corrected, interpretation, found.group.noise, loaded=loaded, explained=bool(found.faults))
    own = _of_steps(trials, steps[:-1] if undecided and reported else steps)
    if any(item.id == Id.EFFORT_SCALE and item.joint is None for item in reported):  # those of single joints are among it
        if any(item.id == Id.EFFORT_SCALE and item.severity == "refused" for item in own):
            reported = [replace(item, severity="refused") for item in reported]
        own = tuple(item for item in own if item.id != Id.EFFORT_SCALE)
    out = (*own, *reported)
    told = {item.joint for item in out if item.id == Id.EFFORT_SCALE}
    return out if steps else (*out, *_open_factors(trials, interpretation, told))


def _of_steps(trials: Trials, steps: Sequence[Step]) -> tuple[Judgement, ...]:
    """Findings of the steps; they name causes, and refuse the log, only if it is explained well after all corrections."""
    robot, out = trials.robot, list[Judgement]()
    sound = bool(steps) and trials.score(steps[-1].found.interpretation).unexplained < _SOUND
    for step in steps:
        joints, each = step.found.joints, step.found.id == Id.EFFORT_SIGN
        if not (step.decided and sound):
            out.append(doubt(robot, step, sound))
        elif each and 1 < len(joints) < robot.n:
            out += [named(robot, replace(step, found=replace(step.found, joints=(j,))), sound) for j in joints]
        else:
            out.append(named(robot, step, sound))
    return tuple(out)


def _downgraded(trials: Trials, found: Sequence[Judgement], fewest: float = FEWEST_REVERSALS) -> tuple[Judgement, ...]:
    """Downgrades findings to warnings for motions with few reversals, whose held-out parts are extrapolated."""
    if trials.turns >= fewest:
        return tuple(found)
    return tuple(replace(item, severity="warning") if item.severity == "refused" else item for item in found)


def _open_factors(trials: Trials, interpretation: Interpretation, told: Collection[str | None]) -> list[Judgement]:
    """Tells the joints whose effort scale the logs do not determine, alone or with all that they carry, and an open clock.

    The torque of a last joint that turns about its body's own axis, or of a light wrist, is independent of the other efforts:
    friction and inertia absorb any factor. The joints of a wrist determine each other's scale, and may still have another
    unit than the arm: of their masses the arm sees only combinations with its own. Without gravity, another clock is another
    mass and other friction.

    Args:
        told: Joints of which something else is told.
    """
    names, moving, place = trials.robot.joints, trials.moving, trials.robot.place_in_tree
    carried = [tuple(k for k in moving if place[k] in trials.robot.subtrees[j]) for j in moving]
    several = dict.fromkeys(joints for joints in carried if 1 < len(joints) < len(moving))
    found = dict[tuple[str, ...], str]()
    for joints in [*((j,) for j in moving), *several]:
        own = tuple(names[j] for j in joints)
        if {*own} & {*told}:
            continue
        gains = GAINS if len(joints) == 1 else COMMON_GAINS
        range_ = _alike(trials, interpretation, {by: interpretation.scaled("effort_factor", joints, by) for by in gains})
        found |= {own: range_} if range_ else {}
    out = []
    if found:
        joints_ = [name for name in names if any(name in own for own in found)]
        shown = ", ".join(f"{' + '.join(own)} ({range_})" for own, range_ in found.items())
        words = f"the log does not determine the scale of these efforts (possible factors): {shown}; it depends on "
        out.append(
            Judgement(
                Id.EFFORT_SCALE_OPEN,
                f"{words}`drive.gain` and the unit of the log",
                joint=joints_[0] if len(joints_) == 1 else None,
                candidates=(Id.EFFORT_SCALE,),
                joints=tuple(joints_),
            )
        )
    clock = {by: replace(interpretation, stretch=by * interpretation.stretch) for by in STRETCHES}
    if range_ := _alike(trials, interpretation, clock):
        words = (
            f"the log does not determine the scale of its time (possible factors: {range_}): other masses and friction would "
        )
        out.append(Judgement(Id.TIME_SCALE_OPEN, f"{words}explain it as well", candidates=(Id.TIME_SCALE,)))
    return out


def _alike(trials: Trials, interpretation: Interpretation, tries: Mapping[float, Interpretation]) -> str:
    """The range of factors around 1 whose interpretations explain the log as well, in words; empty if there is none."""
    before, scores = trials.score(interpretation).score, trials.scores(list(tries.values()))
    worse = [factor for factor, item in zip(tries, scores, strict=True) if item.score - before >= DOUBTFUL]
    below, above = max((k for k in worse if k < 1), default=0.0), min((k for k in worse if k > 1), default=np.inf)
    alike = [1.0, *(factor for factor in tries if below < factor < above)]
    low, high = min(alike), max(alike)
    if low == high:
        return ""
    if low == min(tries):
        return "any" if high == max(tries) else f"up to {high:.3g}"
    return f"from {low:.3g}" if high == max(tries) else f"{low:.3g} to {high:.3g}"
