"""Forces on the last link that no model of the robot knows: contact, a hose, a load that swings, a payload that changes.

At each instant one force acts on all joints, by three numbers, while friction and noise are each joint's own. So its course
over time needs no model: what counts is the share of all joints' residuals that some force on the last link explains. The share
by chance is that of the same residuals with the joints shifted in time against each other, which keeps what each joint is like
and destroys their relation. Only the slow part of the residuals is looked at: vibrations of elastic joints, and noise of the
accelerations, act on several joints at once as well.
"""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from ..judgements.catalogue import Id
from ..judgements.judgement import Judgement
from ..linalg import Array, positive, rms
from ..model.rigid_bodies import tip_jacobians
from .evidence import SURE, WORTH
from .linearized import LinearizedCase

#: Fewest moving joints, of which a force explains three.
_FEWEST = 5
#: Least duration [s] and number of samples over which residuals are averaged.
_SECONDS, _SAMPLES = 0.5, 7
#: Least share of the residuals beyond chance. Three forces on six joints explain half of any slow residual by their number
#: alone, which the shifts measure; a real one explains more.
_LEAST = 0.3
#: Number of shifted residuals.
_SHIFTS = 20


def tip_force(at: LinearizedCase) -> Judgement | None:
    """Searches for a force on the last link.

    Returns:
        The finding of all logs together; None if the residuals do not show a force, or are small.
    """
    from scipy.ndimage import uniform_filter1d

    samples, moves = at.samples, at.moving
    residual = (samples.tau - at.fitted) * samples.glides
    for own in (samples.log == k for k in np.unique(samples.log)):
        step = float(np.median(np.diff(samples.time[own]))) if own.sum() > 1 else _SECONDS
        width = max(_SAMPLES, round(_SECONDS / positive(step)))
        residual[own] = uniform_filter1d(residual[own], width, axis=0, mode="nearest")
    size = rms(residual, axis=0)[moves]
    if len(moves) < _FEWEST or (size / samples.sizes.diagonal()[moves]).max() < WORTH or not size.all():
        return None
    residuals = residual[:, moves] / size
    # orthonormal torques of the forces on the last body at each instant, shape (N, m, 3)
    rows = np.linalg.qr(tip_jacobians(at.robot, samples.q, pin.LOCAL)[0][:, :3].swapaxes(1, 2)[:, moves] / size[:, None])[0]

    def share(some: Array) -> float:
        return float(np.sum(np.einsum("njk,nj->nk", rows, some) ** 2) / np.sum(some**2))

    draw = np.random.default_rng(0)
    shifts = draw.integers(len(residuals), size=(_SHIFTS, len(moves)))
    chance = np.array([share(np.column_stack([*map(np.roll, residuals.T, own)])) for own in shifts])
    part = float((share(residuals) - chance.mean()) / (1 - chance.mean()))
    if part < _LEAST or share(residuals) - chance.mean() < SURE * chance.std(ddof=1):
        return None
    return Judgement(
        Id.CONTACT_FORCE,
        f"{100 * part:.0f} % of what a model of all logs leaves unexplained is, beyond chance, one force on the last link that "
        "changes with time and acts on all joints at once",
        size=part,
    )
