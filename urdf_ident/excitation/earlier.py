"""What earlier logs have told: information that a new motion adds to, so that it spends its time on what is still unknown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from ..errors import FingerprintError
from ..linalg import triangle
from ..model.base import BaseParameters
from ..model.dynamic_model import DynamicModel
from ..model.inertia import Array


class FitLike(Protocol):
    """What is read of a fit."""

    @property
    def sigma(self) -> Mapping[str, float]:
        """Row group → standard deviation of its noise [N·m or N]."""


class IdentificationLike(Protocol):
    """What is read of an identification."""

    @property
    def model(self) -> DynamicModel:
        """Its model."""

    @property
    def fit(self) -> FitLike:
        """Its fit."""

    @property
    def factor(self) -> Array:
        """Whitened data factor with the torque as last column, shape (m, p + 1)."""

    @property
    def signals(self) -> Mapping[str, Any]:
        """How its logs were conditioned; ``decimate`` is the rate of the rows [Hz]."""


def check_same_robot(after: IdentificationLike, model: DynamicModel) -> None:
    """Checks that an earlier result speaks about the same parameters.

    Args:
        after: The earlier result.
        model: The model to design for.

    Raises:
        FingerprintError: Another robot, or other terms.
    """
    if after.model.robot.sha256 != model.robot.sha256:
        raise FingerprintError(
            "the earlier result is for another robot", got=after.model.robot.name, expected=model.robot.name,
            remedy="give the identification.json of this URDF",
        )  # fmt: skip
    if after.model.names != model.names:
        raise FingerprintError(
            "the earlier result has other parameters", got=f"{len(after.model.names)}", expected=f"{len(model.names)}",
            remedy="use the same project file",
        )  # fmt: skip


def known_rows(after: IdentificationLike, planned: DynamicModel, base: BaseParameters) -> Array:
    """The information of earlier logs about the base parameters of the model as it is planned.

    Args:
        after: The earlier result.
        planned: The model without the terms that the design leaves out.
        base: Its base parameters.

    Returns:
        Rows with unit noise, shape (k, b); what was left out is free, not known.
    """
    names = after.model.names
    wanted = [names.index(planned.names[k]) for k in base.independent]
    left_out = [k for k, name in enumerate(names) if name not in planned.names]
    R = triangle(after.factor[:, [*left_out, *wanted]])
    return np.asarray(R[len(left_out) :, len(left_out) :])


def row_noise(after: IdentificationLike) -> Array:
    """Noise of the row groups as the earlier fit found it.

    Args:
        after: The earlier result.

    Returns:
        Shape (n,) [N·m or N].
    """
    return np.array([after.fit.sigma[group.name] for group in after.model.groups])
