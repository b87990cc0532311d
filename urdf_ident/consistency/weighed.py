"""The density of bodies whose inertials the URDF does not state, as the torques show it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..linalg import block_diagonal, orthogonal_part
from ..model.common_factor import scaled_bodies
from ..model.prior import USUAL_ERROR, Prior
from ..statistics.fit import Fit, usual_weight
from ..statistics.statistic import StatisticSet


def weighed_prior(prior: Prior, statistics: StatisticSet, fit: Fit) -> Prior:
    """Scales guessed bodies by the one density of largest marginal likelihood, with friction, rotors and offsets free.

    Gravity torques mainly determine it. Where the torques contradict the geometry at any density, that of the guess remains.

    Args:
        prior: Of the inertial parameters.
        fit: The fit, for the weights of the row groups.

    Returns:
        The prior, with a note on the density.
    """
    if not prior.guessed.any():
        return prior
    n, guessed = len(prior.theta0), np.repeat(prior.guessed, 10)
    factor = statistics.stacked(fit.weights)
    bodies, stated = factor[:, :n] @ np.where(guessed, prior.theta0, 0.0), np.where(guessed, 0.0, prior.theta0)
    torques = np.column_stack([bodies, factor[:, -1] - factor[:, :n] @ stated, factor[:, :n] @ prior.deviations])
    torques = orthogonal_part(torques, factor[:, n:-1])
    scaled = scaled_bodies(torques[:, :1], torques[:, 2:], torques[:, 1], usual_weight(statistics, fit))
    density = float(scaled.sizes[0])
    if density <= 0 or scaled.spread > USUAL_ERROR:
        note = "the torques do not show the density of the bodies that the URDF does not state: their masses are guesses"
        return replace(prior, notes=(*prior.notes, note))
    scale = np.where(prior.guessed, density, 1.0)
    theta = prior.theta0 * np.repeat(scale, 10)
    blocks = [prior.root[10 * i : 10 * i + 10, 10 * i : 10 * i + 10] / size for i, size in enumerate(scale)]
    total = float(theta[::10][prior.guessed].sum())
    note = f"bodies that the URDF does not state: about {total:.3g} kg together, at the one density that the torques show"
    return replace(
        prior, theta0=theta, root=block_diagonal(*blocks), spread=prior.spread * scale[:, None], notes=(*prior.notes, note)
    )
