"""Explanations of the torques of a group of logs: another interpretation, or faults and changes, whichever gains more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from ..samples import FEWEST_REVERSALS, SHORT, TESTING_REVERSALS, reversals
from ..signals.quality.hidden_delays import DELAY
from .candidates import Interpretation
from .case import Case
from .delay import find_delays
from .evidence import DOUBTFUL, EXACT, FEWEST
from .hypotheses import Step, search
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
        faults: In the order in which they were found, those told elsewhere left out.
        outlying: Logs in which a joint is explained far worse than in the others, with the joint and the ratio.
    """

    group: LogGroup
    trials: Trials
    at: LinearizedCase
    null: NullModel
    interpretation: Interpretation
    steps: list[Step]
    faults: list[Fault] = field(default_factory=list)
    outlying: Mapping[int, tuple[int, float]] = field(default_factory=dict)

    @property
    def differing(self) -> dict[int, Fault]:
        """Logs in which the robot is another one than in the rest; of two logs, and of several that gain alike, all."""
        best = self.faults[0] if self.faults else None
        if best is None or best.when.log is None or best.when.window or not best.family.change:
            return {}
        some = {best.when.log: best}
        for rival in best.rivals:
            if rival.family.change and rival.when.log is not None and not rival.when.window:
                some.setdefault(rival.when.log, rival)
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

    A delay of all efforts, with what was found after it, is dropped if it is friction which reverses over some travel: the
    search has no such friction; the estimate of the delay has. Short motion shows neither faults nor changes.
    """
    case = group.case()
    if case is None:
        return None
    trials = Trials(case)
    at = LinearizedCase.of(trials)
    null = NullModel.of(at)
    interpretation, steps = search(trials)
    as_logged = Interpretation.as_logged(group.robot.n)
    late = next((k for k, step in enumerate(steps) if step.found.id == DELAY and not step.found.joints), None)
    delay = None if late is None else find_delays(group.robot, group.logs, group.reduction)[0]
    if late is not None and delay is not None and delay.excludes(steps[late].found.size):
        interpretation, steps = steps[late - 1].found.interpretation if late else as_logged, steps[:late]
    if steps and _is_friction(trials, at, null, steps[0]):
        interpretation, steps = as_logged, []
    few = len(case.samples) < FEWEST * (case.robot.n + 2)
    if few or case.turns < TESTING_REVERSALS or group.seconds < SHORT:
        return Explanations(group, trials, at, null, interpretation, steps)
    faults = find_faults(at, null, group.logs)
    named = {item.id for step in steps[:1] for item in (step.found, *step.rivals)}
    apart = held_out_gain(case, trials.as_logged, faults[0]) if steps and faults else 0.0
    if steps and (not faults or faults[0].family.id in named or apart < steps[0].gain + DOUBTFUL):
        return Explanations(group, trials, at, null, interpretation, steps)
    told = [item for item in faults if not item.family.elsewhere]
    return Explanations(group, trials, at, null, as_logged, [], told, {} if told else _outlying(at))


def _is_friction(trials: Trials, at: LinearizedCase, null: NullModel, first: Step) -> bool:
    """Whether friction explains more than a step that varies with the pose, or a delay, and leaves it less than half."""
    if not (first.found.id.entry.with_pose or first.found.id == DELAY):
        return False
    effect = np.zeros_like(at.samples.tau)
    effect[:, at.moving] = -(null.friction(["reversals", "load"]) / np.where(null.weights > 0, null.weights, np.inf)).T
    corrected = Trials(trials.case.with_more(effect))
    before, after = (corrected.score(item).score for item in (Interpretation.as_logged(at.n), first.found.interpretation))
    return before - after < first.gain / 2 < first.gain < float(trials.as_logged.gains(corrected.as_logged).mean())


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
