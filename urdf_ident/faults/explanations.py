"""Explanations of the torques of a group of logs: another interpretation, or faults and changes, whichever gains more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ..samples import FEWEST_REVERSALS, SHORT, TESTING_REVERSALS, reversals
from ..signals.quality.hidden_delays import DELAY
from .case import Case
from .delay import find_delay
from .evidence import DOUBTFUL, EXACT, FEWEST
from .hypotheses import Step, search
from .interpretation import Interpretation
from .linearized import LinearizedCase
from .log_group import LogGroup
from .null_model import NullModel
from .score_test import ALWAYS, Fault, find_faults, held_out_gain
from .trials import Trials

#: Least ratio of a joint's residual in one log to that in any other, and least part of its effort.
_TIMES, _LEAST = 2.5, 0.1


@dataclass(frozen=True, eq=False)
class Explanations:
    """What may explain the torques of a group of logs; indices are positions in the group.

    Attributes:
        steps: To another interpretation; none where there are faults.
        faults: In the order in which they were found, those told elsewhere left out.
        outlying: Logs in which a joint is explained far worse than in the others, with the joint and the ratio.
    """

    group: LogGroup
    trials: Trials
    at: LinearizedCase
    null: NullModel
    steps: Sequence[Step] = ()
    faults: Sequence[Fault] = ()
    outlying: Mapping[int, tuple[int, float]] = field(default_factory=dict)

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
    def case(self) -> Case:
        """The samples of the logs."""
        return self.trials.case

    @property
    def corrected(self) -> Trials:
        """Interpretations without the effects of the faults that last throughout all logs."""
        effect = sum((item.effect for item in self.faults if item.when == ALWAYS), start=np.zeros(1))
        return self.trials if not effect.any() else Trials(self.case.with_more(effect))


def explained(group: LogGroup) -> Explanations | None:
    """Searches for what explains the torques of all logs; None if they cannot be sampled.

    Another interpretation is vetoed by an estimate of the delay that excludes its delay, by friction that explains more, and by
    faults that explain decisively more. Short motion shows neither faults nor changes.
    """
    case = group.case()
    if case is None:
        return None
    trials = Trials(case)
    at = LinearizedCase.of(trials)
    found = Explanations(group, trials, at, NullModel.of(at), search(trials))
    found = replace(found, steps=_without_excluded_delay(found))
    if _is_friction(found):
        found = replace(found, steps=())
    few = len(case.samples) < FEWEST * (case.robot.n + 2)
    if few or case.turns < TESTING_REVERSALS or group.seconds < SHORT:
        return found
    faults = find_faults(at, found.null, group.logs)
    if found.steps and not _explain_more(found, faults):
        return found
    told = [item for item in faults if not item.family.elsewhere]
    return replace(found, steps=(), faults=told, outlying={} if told else _outlying(at))


def _without_excluded_delay(found: Explanations) -> Sequence[Step]:
    """The steps before a delay of all efforts that is friction which reverses over some travel.

    The search has no such friction; the estimate of the delay has.
    """
    group, steps = found.group, found.steps
    late = next((k for k, step in enumerate(steps) if step.found.id == DELAY and not step.found.joints), None)
    delay = None if late is None else find_delay(group.robot, group.logs, group.reduction)
    excluded = late is not None and delay is not None and delay.excludes(steps[late].found.interpretation.delay)
    return steps[:late] if excluded else steps


def _is_friction(found: Explanations) -> bool:
    """Whether friction explains more than a step that varies with the pose, or a delay, and leaves it less than half."""
    if not found.steps or not ((first := found.steps[0]).found.id.entry.with_pose or first.found.id == DELAY):
        return False
    at, null, trials, effect = found.at, found.null, found.trials, np.zeros_like(found.at.samples.tau)
    effect[:, at.moving] = -(null.friction(["reversals", "load"]) / np.where(null.weights > 0, null.weights, np.inf)).T
    corrected = Trials(trials.case.with_more(effect))
    before, after = (corrected.score(item).score for item in (Interpretation.as_logged(at.n), first.found.interpretation))
    return before - after < first.gain / 2 < first.gain < float(trials.as_logged.gains(corrected.as_logged).mean())


def _explain_more(found: Explanations, faults: Sequence[Fault]) -> bool:
    """Whether the first fault is none of the causes of the first step, and explains decisively more on held-out blocks."""
    first = found.steps[0]
    if not faults or faults[0].family.id in {item.id for item in (first.found, *first.rivals)}:
        return False
    return held_out_gain(found.case, found.trials.as_logged, faults[0]) >= first.gain + DOUBTFUL


def _outlying(at: LinearizedCase) -> dict[int, tuple[int, float]]:
    """Logs in which a joint's residual is far larger than in any other, in relative and absolute terms."""
    samples, moves = at.samples, at.case.moves
    residual = (samples.tau - at.fitted) * samples.glides
    logs, out = np.unique(samples.log), dict[int, tuple[int, float]]()
    turning = np.array([reversals(samples.v[samples.log == log]) for log in logs]) >= FEWEST_REVERSALS
    rest = np.array([np.sqrt(np.mean(residual[samples.log == log] ** 2, axis=0)) for log in logs])
    sizes = np.array([samples.tau[samples.log == log].std(axis=0) for log in logs])
    left = np.maximum(rest / np.maximum(sizes, 1e-12), EXACT)
    for k, log in enumerate(logs) if len(logs) > 1 else ():
        others = np.arange(len(logs)) != k
        both = np.minimum(left[k] / left[others].max(axis=0), rest[k] / np.maximum(rest[others].max(axis=0), 1e-12))
        both = np.where(moves & (left[k] > _LEAST) & turning[k] & turning[others].any(axis=0), both, 0.0)
        if both.max() > _TIMES:
            out[int(log)] = int(np.argmax(both)), float(both.max())
    return out
