"""The common scale of the identified inertial parameters relative to the URDF's.

A wrong torque constant or unit multiplies all torques, and with them all identified masses and inertias, by one factor. No
log shows such a factor; only inertial parameters known beforehand do, as far as they are known: if those of the URDF are
wrong by independent errors, their common factor is still determined by their mean.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...linalg import Array, positive
from ...model.prior import Prior

#: Candidate sizes of the URDF's errors in units of the prior's standard deviations. They are at least these: how well the
#: bodies of one robot agree with each other does not show an error that they share.
_SPREADS = np.geomspace(1.0, 10.0, 25)
#: Number of fixed-point steps of the factor for one size; each reduces the error about tenfold.
_STEPS = 6
#: Relative singular value of the joint terms' columns below which they are linearly dependent.
_DEPENDENT = 1e-10


@dataclass(frozen=True)
class CommonScale:
    """Factor of all inertial parameters relative to the URDF's.

    Attributes:
        factor: The factor; positive but in files of earlier versions.
        error: Its standard error relative to the factor; the URDF's bodies have independent errors of the size at which the
            data are most likely, at least the prior's.
    """

    factor: float
    error: float

    def __str__(self) -> str:
        return f"{self.factor:.2f} ± {self.error * abs(self.factor):.2f}"

    @property
    def errors(self) -> float:
        """Distance of the factor from 1 in standard errors, on the logarithmic scale; inf if it is not positive."""
        return abs(float(np.log(self.factor))) / self.error if self.factor > 0 else np.inf


def common_scale(factor: Array, prior: Prior, weight: float, inertial: int) -> CommonScale | None:
    """Estimates the common scale by generalised least squares.

    The inertial parameters are ``c (theta0 + s u)`` with ``u`` distributed as the prior, friction and rotor inertia are free,
    and ``s`` is estimated by maximum likelihood.

    Args:
        factor: Whitened data factor ``[R | rho]``, shape (k, p + 1).
        weight: Factor by which the data's nominal precision is too high.
        inertial: Number of inertial parameters, which come first.

    Returns:
        The scale; None if the data do not determine it, as on gantries, where rotors and offsets may stand for all masses, or
        if it is not positive: no unit reverses masses, but a few seconds of friction that the model lacks do.
    """
    R, rho = factor[:, :-1], factor[:, -1]
    left, size, _ = np.linalg.svd(R[:, inertial:])
    free = left[:, int(np.sum(size > _DEPENDENT * size.max(initial=0.0))) :].T  # the part of the data without joint terms
    own = free @ R[:, :inertial]
    axes, singular, _ = np.linalg.svd(np.linalg.solve(prior.root[:inertial, :inertial].T, own.T).T)
    stated, seen = axes.T @ (own @ prior.theta0[:inertial]), axes.T @ (free @ rho)
    square = np.zeros(len(seen))
    square[: len(singular)] = singular**2
    if stated @ stated <= weight:  # noise alone leaves the factor open by its own size or more
        return None
    best = (np.inf, 1.0, 1.0)
    for s in _SPREADS:
        c = 1.0
        for _ in range(_STEPS):
            variance = weight + (c * s) ** 2 * square
            c = float(stated / variance @ seen / (stated / variance @ stated))
        cost = float(np.sum(np.log(variance)) + np.sum((seen - c * stated) ** 2 / variance))
        if cost < best[0]:
            best = cost, c, float(1.0 / np.sqrt(stated / variance @ stated))
    return CommonScale(best[1], best[2] / positive(best[1])) if best[1] > 0 else None
