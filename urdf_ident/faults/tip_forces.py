"""Forces on the last link that no model of the robot knows: contact, a hose, a load that swings, a payload that changes.

At each instant one force acts on all joints, by three numbers, while friction and noise are each joint's own. So its course
over time needs no model: what counts is the share of all joints' residuals that some force at one point of the last link
explains. The share by chance is that of the same residuals with the joints shifted in time against each other, which keeps
what each joint is like and destroys their relation. Only the slow part of the residuals is looked at: vibrations of elastic
joints, and noise of the accelerations, act on several joints at once as well.
"""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from ..judgements.catalogue import Id
from ..judgements.judgement import Judgement
from ..linalg import Array, IntArray, rms
from ..model.rigid_bodies import tip_jacobians
from .evidence import SURE, WORTH
from .linearized import LinearizedCase
from .motion_samples import MotionSamples

#: Fewest moving joints, of which a force explains three.
_FEWEST = 5
#: Least duration [s] and number of samples over which residuals are averaged.
_SECONDS, _SAMPLES = 0.5, 7
#: Least share of the residuals beyond chance. Three forces
#: on six joints explain half of any slow residual by their number alone, which the shifts measure; a real one explains more.
_LEAST = 0.3
#: Number of shifted residuals, distance of the first points tried from the last joint [m], and number of steps to the best.
_SHIFTS, _AWAY, _STEPS = 20, 0.15, 8
#: Regularisation of a force's three numbers, relative to the mean square of its torques.
_SINGULAR = 1e-6


def tip_force(at: LinearizedCase) -> Judgement | None:
    """Searches for a force on the last link.

    Returns:
        The finding of all logs together; None if the residuals do not show a force, or are small.
    """
    case = at.case
    samples, moves = case.samples, np.flatnonzero(case.moves)
    residual = _slow((samples.tau - at.fitted) * samples.glides, samples)
    size = rms(residual, axis=0)[moves]
    if len(moves) < _FEWEST or (size / samples.sizes.diagonal()[moves]).max() < WORTH or not size.all():
        return None
    residuals = residual[:, moves] / size
    # torques of unit forces and moments on the last body, along and about the axes of its joint
    rows = tip_jacobians(case.robot, samples.q, pin.LOCAL)[0].swapaxes(1, 2)[:, moves] / size[:, None]
    share = _share_at_best_point(residuals, rows)
    if _beyond(share, 3 / len(moves)) < _LEAST:
        return None
    draw = np.random.default_rng(0)
    shifted = (_shifted(residuals, draw.integers(len(residuals), size=len(moves))) for _ in range(_SHIFTS))
    chance = np.array([_share_at_best_point(some, rows) for some in shifted])
    if _beyond(share, chance.mean()) < _LEAST or share - chance.mean() < SURE * chance.std(ddof=1):
        return None
    part = _beyond(share, chance.mean())
    return Judgement(
        Id.CONTACT_FORCE,
        f"{100 * part:.0f} % of what a model of all logs leaves unexplained is, beyond chance, one force on the last link that "
        "changes with time and acts on all joints at once",
        size=part,
    )


def _slow(residual: Array, samples: MotionSamples) -> Array:
    """Moving means of residuals within each log, shape (N, n)."""
    from scipy.ndimage import uniform_filter1d

    out = np.empty_like(residual)
    for log in np.unique(samples.log):
        own = samples.log == log
        step = float(np.median(np.abs(np.diff(samples.time[own])), axis=0)) if own.sum() > 1 else _SECONDS
        out[own] = uniform_filter1d(residual[own], max(_SAMPLES, round(_SECONDS / max(step, 1e-9))), axis=0, mode="nearest")
    return out


def _beyond(share: float, chance: float) -> float:
    """Share of what chance leaves."""
    return float((share - chance) / (1 - chance))


def _shifted(residuals: Array, shifts: IntArray) -> Array:
    return np.column_stack([np.roll(x, k) for x, k in zip(residuals.T, shifts, strict=True)])


def _share_at_best_point(residuals: Array, rows: Array) -> float:
    """Largest share that a force explains, at the best point, which is found by steps along the axes."""
    axes = np.vstack([np.eye(3), -np.eye(3)])

    def best_of(places: Array) -> tuple[float, Array]:
        shares = [_share(residuals, rows, place) for place in places]
        k = int(np.argmax(shares))
        return shares[k], places[k]

    share, place = best_of(np.vstack([np.zeros(3), _AWAY * axes]))
    step = _AWAY
    for _ in range(_STEPS):
        tried, there = best_of(place + step * axes)
        if tried > share:
            share, place = tried, there
        else:
            step /= 2
    return share


def _share(residuals: Array, rows: Array, place: Array) -> float:
    """Share of the squared residuals, shape (N, m), that some force at a point of the last body explains at each instant."""
    columns = rows[:, :, :3] + rows[:, :, 3:] @ pin.skew(place)
    square = columns.swapaxes(1, 2) @ columns
    least = _SINGULAR * np.trace(square, axis1=1, axis2=2) / 3 + 1e-15
    force = np.linalg.solve(square + least[:, None, None] * np.eye(3), columns.swapaxes(1, 2) @ residuals[:, :, None])
    return float(1 - np.sum((residuals[:, :, None] - columns @ force) ** 2) / np.sum(residuals**2))
