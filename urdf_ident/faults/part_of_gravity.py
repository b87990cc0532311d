"""Tests whether a part of the URDF's gravity is missing from the efforts, or was added, with the URDF's bodies as prior.

It looks like lighter or heavier bodies, and free ones absorb it wherever friction hides their inertia. The URDF's bodies, up to
one common factor and to errors of their usual size, cannot be lighter where they are lifted and not where they are accelerated.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..judgements.catalogue import Id
from ..judgements.judgement import Judgement
from ..linalg import Array, IntArray, lstsq, orthogonal_part, solve_triangular, triangle
from ..model.common_factor import scaled_bodies
from ..model.prior import USUAL_ERROR, USUAL_WEIGHT, Prior, inertial_prior
from ..model.rigid_bodies import regressor
from ..samples import TESTING_REVERSALS
from ..units import percent
from .evidence import CALIBRATED, EXACT, TRUSTED
from .kinds.clock_and_gravity import EffortWithoutGravity
from .linearized import LinearizedCase

#: Probability by chance of a part that is told: one test, where that of families is one of hundreds.
_LEVEL = 0.01
#: Size, relative to gravity and efforts, below which friction and offsets absorb gravity, as on a vertical slide, or rotors the
#: rest of the torque; singular values of friction columns, relative to the largest, that count as zero.
_ABSORBED, _DEPENDENT = 1e-3, 1e-7


@dataclass(frozen=True)
class GravityPart:
    """A part of the URDF's gravity torque that the efforts contain in addition; negative if it is missing.

    Attributes:
        error: Its standard error.
        chance: Probability of as large a part beyond what calibration explains (Student's t).
    """

    size: float
    error: float
    chance: float


def part_of_gravity(at: LinearizedCase) -> list[Judgement]:
    """Searches for a missing or additional part of the gravity torque.

    Returns:
        At most one finding, a warning.
    """
    found = estimated(at) if at.case.turns >= TESTING_REVERSALS else None
    if found is None or found.chance > _LEVEL:
        return []
    shown = f"about {percent(100 * abs(found.size))} ± {percent(100 * found.error)} % of "
    stated, id = EffortWithoutGravity().of_part(-found.size, shown), Id.EFFORT_WITHOUT_GRAVITY
    words = f"{stated.message}, according to their inertial torques and the URDF's bodies"
    ids = (id, *stated.alike)
    certainty = 1 / len(ids)
    return [Judgement(id, words, stated.remedy, size=-found.size, certainty=certainty, candidates=ids, severity="warning")]


def estimated(at: LinearizedCase) -> GravityPart | None:
    """Estimates the part; None if friction and offsets absorb it, or the URDF's bodies are no evidence or mostly guessed."""
    from scipy.special import stdtr

    case = at.case
    samples, prior = case.samples, inertial_prior(case.robot)
    masses = prior.theta0[::10]
    torques = None if 2 * masses[prior.guessed].sum() > masses.sum() else _besides_friction(at, prior)
    if torques is None or len(torques) <= torques.shape[1]:
        return None
    factor = np.asarray(np.linalg.qr(torques, mode="r"))
    usual = max(abs(float(factor[-1, -1])) / np.sqrt(len(torques)), EXACT / TRUSTED[0])  # what nothing explains
    factor, torques = factor[:-1] / usual, torques / usual
    block = np.concatenate([samples.block[samples.glides[:, i]] for i in np.flatnonzero(case.moves)])
    found = scaled_bodies(factor[:, :2], factor[:, 2:-1], factor[:, -1], _noise(torques, block))
    # a part of gravity that leaves larger errors is something else, as friction along the travel of joints moved one by one
    if found.spread > USUAL_ERROR:
        return None
    size, error = float(found.sizes[1]), float(found.errors[1])
    beyond = max(abs(size) - CALIBRATED, 0.0) / error
    free = np.clip(case.turns, 1, len(np.unique(block)) - 1)  # blocks within one leg of the motion are not independent
    return GravityPart(size, error, 2 * float(stdtr(free, -beyond)))


def _besides_friction(at: LinearizedCase, prior: Prior) -> Array | None:
    """Torques of all moving joints that their friction does not absorb, weighted by row."""
    robot, samples = at.robot, at.samples
    still = np.zeros_like(samples.v)
    weight = regressor(robot, samples.q, still, still) @ prior.theta0
    bodies, errors = at.columns @ prior.theta0, at.columns @ prior.deviations
    out, before = [], np.zeros(2)
    for i in at.moving:
        glides, error = samples.glides[:, i], float(np.clip(at.left[i], *TRUSTED)) * at.size[i]
        own = np.column_stack([bodies[:, i], weight[:, i], errors[:, i], samples.tau[:, i]])[glides] / error
        before += np.sum(own[:, [1, -1]] ** 2, axis=0)
        out.append(orthogonal_part(own, np.column_stack([at.friction[i], at.load_friction[:, i]])[glides], _DEPENDENT))
    torques = np.concatenate(out)
    apart = orthogonal_part(torques[:, 1], torques[:, :1])
    return torques if float(apart @ apart) > _ABSORBED**2 * before.max() else None


def _noise(torques: Array, block: IntArray) -> float:
    """Variance of a sample as the scatter between blocks shows it: errors of a model are alike within a block."""
    columns, seen = torques[:, :-1], torques[:, -1]
    prior = np.eye(columns.shape[1])[2:] * np.sqrt(USUAL_WEIGHT)
    x = lstsq(np.vstack([columns, prior]), np.append(seen, np.zeros(len(prior))))[0]
    moments = (seen - columns @ x)[:, None] * columns
    scores = np.stack([moments[block == b].sum(axis=0) for b in np.unique(block)])
    data = triangle(columns)
    root = triangle(data, prior)
    between, within = (np.sum(solve_triangular(root, rows.T, transposed=True) ** 2) for rows in (scores, data))
    ratio = between / within
    return max(1.0, float(ratio) * len(scores) / max(len(scores) - 1, 1))
