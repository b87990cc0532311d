"""Zeros of several joints at once: found one at a time, each takes up what the others leave, and ends elsewhere."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np

from ..judgements.catalogue import Id
from ..linalg import Array
from ..model.robot import Robot
from .evidence import SURE
from .interpretation import Interpretation
from .kinds.positions import Zeros, widened_limits, zero_matters
from .trials import Trials

#: Largest number of combinations of quarter turns that are tried.
_MOST = 400
#: Combinations from which zeros are refined.
_BEST = 2
#: Step of differences, small beside the curvature of gravity torques and large beside rounding errors [rad].
_STEP = 1e-3


def zeros_together(trials: Trials, greedy: Interpretation) -> Zeros | None:
    """Searches the zeros of all joints at once, in the fit to all samples.

    From the best combinations of quarter turns within the URDF's limits, and from the zeros found one by one, quasi-Newton
    steps lead to the minimum of the rows' log relative residuals. Zeros that agree within their errors are one. A zero that
    torques do not show (of a joint about gravity, of the last body) is that of the others, if these have a common one, and
    only this brings its positions into the limits.

    Args:
        greedy: The zeros found one by one; nothing else may differ from the log as described.

    Returns:
        The zeros; None if no two joints have a significant zero.
    """
    from scipy.optimize import minimize

    robot, reached = trials.robot, trials.reached
    free = [j for j in range(robot.n) if trials.moves[j] and zero_matters(robot, j)]
    if len(free) < 2:
        return None

    def at(zeros: Array, joints: list[int]) -> Interpretation:
        whole = np.zeros(robot.n)
        whole[joints] = zeros
        return replace(greedy, zero=tuple(map(float, whole)))

    turns = [[z for z in np.pi / 2 * np.array([0, -1, 1, 2]) if _within_limits(robot, reached, j, z)] or [0.0] for j in free]
    alike = (np.full(len(free), zero) for zero in turns[0] if all(zero in own for own in turns))
    starts = [np.array(greedy.zero)[free], *alike]
    if np.prod([len(own) for own in turns]) <= _MOST:
        starts += map(np.array, product(*turns))
    starts.sort(key=lambda zeros: trials.fitted(at(zeros, free)))

    def refined(joints: list[int], start: Array) -> tuple[float, Array]:
        found = minimize(
            lambda zeros: trials.fitted(at(zeros, joints)), start, method="BFGS", options={"eps": _STEP, "gtol": 1e-3}
        )
        return float(found.fun), np.asarray(found.x)

    _, zeros = min((refined(free, start) for start in starts[:_BEST]), key=lambda pair: pair[0])
    error = _zero_errors(trials, at(zeros, free), free)
    shown = [j for j, zero, own in zip(free, zeros, error, strict=True) if abs(zero) > SURE * own]
    if len(shown) < 2:
        return None
    _, zeros = refined(shown, np.array([zero for j, zero in zip(free, zeros, strict=True) if j in shown]))
    error = _zero_errors(trials, at(zeros, shown), shown)
    common = float(np.average(zeros, weights=error**-2))
    if (np.abs(zeros - common) < SURE * error).all():  # one zero of all is simpler, and more precise
        hidden = [j for j in range(robot.n) if j not in free and not robot.prismatic[j]]
        outside = [j for j in hidden if not _within_limits(robot, reached, j, 0.0)]
        outside = [j for j in outside if _within_limits(robot, reached, j, common)]
        shown = sorted([*shown, *outside])
        zeros, error = np.full(len(shown), common), np.full(len(shown), np.sum(error**-2) ** -0.5)
    return Zeros(Id.POSITION_ZERO, tuple(shown), at(zeros, shown), errors=tuple(map(float, error)))


def _zero_errors(trials: Trials, found: Interpretation, joints: list[int]) -> Array:
    """Standard errors of zeros at a minimum of the held-out residuals, by the scatter of their gradient between blocks.

    Few reversals overstate how significant that is; :attr:`.Case.scarcity` is the factor.

    Returns:
        Shape (joints,) [rad]; infinite where the minimum is flat.
    """

    def squares(move: Array) -> Array:
        """Squared errors of each block, over those of its row together at the minimum, shape (B, moving joints)."""
        zero = np.array(found.zero)
        zero[joints] += move
        return trials.score(replace(found, zero=tuple(map(float, zero)))).squares[:, trials.moves]

    k, step = len(joints), 10 * _STEP
    middle = squares(np.zeros(k))
    size = middle.sum(axis=0)
    unit = step * np.eye(k)
    plus, minus = (np.array([squares(sign * own) for own in unit]) for sign in (1.0, -1.0))
    gradient = ((plus - minus) / (2 * step) / size).sum(axis=2)  # of each block: (k, B)
    curvature = np.zeros((k, k))
    for i in range(k):
        curvature[i, i] = (((plus[i] + minus[i] - 2 * middle).sum(axis=0)) / size).sum() / step**2
        for j in range(i):
            alike, against = (squares(unit[i] + s * unit[j]) + squares(-unit[i] - s * unit[j]) for s in (1.0, -1.0))
            both = alike - against
            curvature[i, j] = curvature[j, i] = (both.sum(axis=0) / size).sum() / (4 * step**2)
    values, vectors = np.linalg.eigh(curvature)
    if values[0] <= 1e-9 * max(values[-1], 1e-300):
        return np.full(k, np.inf)
    inverse = (vectors / values) @ vectors.T
    away = gradient - gradient.mean(axis=1, keepdims=True)
    return np.asarray(trials.scarcity * np.sqrt(np.diag(inverse @ (away @ away.T) @ inverse)))


def _within_limits(robot: Robot, reached: Array, j: int, zero: float) -> bool:
    """Whether positions of a joint, shape (2, n) for the lowest and highest, are within the URDF's limits with a zero added."""
    lower, upper = widened_limits(robot)
    return bool(reached[0, j] + zero >= lower[j] and reached[1, j] + zero <= upper[j])
