"""The common scale of the identified inertial parameters relative to the URDF's.

A wrong torque constant or unit multiplies all torques, and with them all identified masses and inertias, by one factor. No
log shows such a factor; only inertial parameters known beforehand do, as far as they are known: if those of the URDF are
wrong by independent errors, their common factor is still determined by their mean.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...linalg import Array
from ...model.common_factor import scaled_bodies
from ...model.prior import Prior

#: Relative singular value of the joint terms' columns below which they are linearly dependent.
_DEPENDENT = 1e-10


@dataclass(frozen=True)
class CommonScale:
    """Factor of all inertial parameters relative to the URDF's.

    Attributes:
        factor: The factor, positive.
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

    Friction and rotor inertia are free.

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
    stated = own @ prior.theta0[:inertial]
    if stated @ stated <= weight:  # noise alone leaves the factor open by its own size or more
        return None
    errors = own @ prior.deviations[:inertial, :inertial]
    found = scaled_bodies(stated[:, None], errors, free @ rho, weight)
    common = float(found.sizes[0])
    return CommonScale(common, float(found.errors[0]) / common) if common > 0 else None
