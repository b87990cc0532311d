"""Information of earlier logs, which a new motion complements by exciting parameters that are still unknown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from ..errors import FingerprintError, ModelError
from ..linalg import Array, triangle
from ..model.base import BaseParameters
from ..model.dynamic_model import DynamicModel
from ..model.prior import Prior
from ..statistics.fit import Fit


class EarlierResult(Protocol):
    """Interface of an identification; its ``signals`` hold the ``rate`` and ``decimate``, the rate of the rows [Hz]."""

    @property
    def model(self) -> DynamicModel:
        """Its model."""

    @property
    def fit(self) -> Fit:
        """Its base parameters with robust standard errors."""

    @property
    def theta(self) -> Array:
        """Standard parameters, shape (p,)."""

    @property
    def factor(self) -> Array:
        """Whitened data factor with the torque as last column, shape (m, p + 1)."""

    @property
    def prior(self) -> Prior:
        """The prior."""

    @property
    def prior_weight(self) -> float:
        """Weight of the prior against the data."""

    @property
    def speed(self) -> Array:
        """Typical speed of each joint in its logs, shape (n,) [rad/s or m/s]."""

    @property
    def load(self) -> Array:
        """RMS torque of each joint in its logs, shape (n,) [N·m or N]."""

    @property
    def signals(self) -> Mapping[str, Any]:
        """Signal processing of its logs."""


def continued(after: EarlierResult, model: DynamicModel) -> tuple[DynamicModel, tuple[str, ...]]:
    """Returns the model of an earlier result on the present description of the robot.

    The earlier information refers to the terms and drive of that result, which differ from the project's if identification
    chose the friction. Masses and inertias do not enter the rows, so the URDF may have been corrected since.

    Args:
        model: The model of the project; its robot and limits are used, its terms and drive replaced.

    Returns:
        The model for the design, and notes on the changes.

    Raises:
        FingerprintError: A different robot: other joints, links or gravity.
        ModelError: The earlier result has elastic joints.
    """
    earlier = after.model
    difference = earlier.robot.difference(model.robot)
    if difference is None and [body.name for body in earlier.robot.bodies] != [body.name for body in model.robot.bodies]:
        difference = "its moving links have other names"
    if difference is not None:
        raise FingerprintError(
            f"the earlier result is for another robot: {difference}",
            got=earlier.robot.name,
            expected=model.robot.name,
            remedy="give the identification.json of this robot",
        )
    if not earlier.is_rigid:
        raise ModelError(
            "the earlier result has elastic joints, and motions are designed on the rigid model",
            remedy="identify once with model.elastic: false, and design after that result",
        )
    same = model.with_drive(earlier.drive).with_terms(earlier.terms).with_reference(earlier.reference_theta)
    if model.names == same.names:
        return same, ()
    return same, (
        f"friction as in the earlier result: {len(same.names)} parameters instead of the project's {len(model.names)}",
    )


def known_rows(after: EarlierResult, planned: DynamicModel, base: BaseParameters) -> Array:
    """Returns the information of earlier logs about the base parameters of the planned model.

    Args:
        planned: The model without the terms that the design ignores.

    Returns:
        Rows with unit noise, shape (k, b); the ignored parameters are treated as unknown.
    """
    names = after.model.names
    wanted = [names.index(planned.names[k]) for k in base.independent]
    left_out = [k for k, name in enumerate(names) if name not in planned.names]
    return np.asarray(triangle(after.factor[:, [*left_out, *wanted]])[len(left_out) :, len(left_out) :])


def row_noise(after: EarlierResult) -> Array:
    """Returns the noise of the row groups from the earlier fit, shape (n,) [N·m or N]."""
    return np.array([after.fit.sigma[group.name] for group in after.model.groups])
