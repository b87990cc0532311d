"""What earlier logs have told: information that a new motion adds to, so that it spends its time on what is still unknown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from ..errors import FingerprintError, ModelError
from ..linalg import Array, triangle
from ..model.base import BaseParameters
from ..model.dynamic_model import DynamicModel
from ..model.elasticity import ElasticModel
from ..model.robot import Robot

#: Joints that sit further apart than this belong to different robots [m, or entries of a rotation].
SAME_PLACE = 1e-6


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


def continued(after: IdentificationLike, model: DynamicModel) -> tuple[DynamicModel, tuple[str, ...]]:
    """The model that an earlier result speaks of, on the robot as it is described now.

    What was learnt belongs to the earlier result's own terms and drive: where identification chose the friction, those are
    not the project's. Masses and inertias do not enter the rows, so that the URDF may have been corrected since.

    Args:
        after: The earlier result.
        model: The model of the project; its robot and limits count, its terms and drive are replaced.

    Returns:
        The model to design for, and what changed, in words.

    Raises:
        FingerprintError: Another robot: other joints, links or gravity.
        ModelError: The earlier result is of elastic joints.
    """
    earlier = after.model
    difference = _difference(earlier.robot, model.robot)
    if difference is not None:
        raise FingerprintError(
            f"the earlier result is for another robot: {difference}",
            got=earlier.robot.name,
            expected=model.robot.name,
            remedy="give the identification.json of this robot",
        )
    if isinstance(earlier, ElasticModel):
        raise ModelError(
            "the earlier result has elastic joints, and motions are designed on the rigid model",
            remedy="identify once with model.elastic: false, and design after that result",
        )
    own = model.with_drive(earlier.drive).with_terms(earlier.terms).with_reference(earlier.reference_theta)
    if model.names == own.names:
        return own, ()
    return own, (f"friction as in the earlier result: {len(own.names)} parameters instead of the project's {len(model.names)}",)


def _difference(one: Robot, other: Robot) -> str | None:
    """What makes rows of two robots differ, in words; None where nothing does."""
    if one.joints != other.joints:
        apart = sorted(set(one.joints) ^ set(other.joints))
        return f"joint '{apart[0]}' is in one only" if apart else "its joints are in another order"
    if [body.name for body in one.bodies] != [body.name for body in other.bodies]:
        return "its moving links have other names"
    for j, joint in enumerate(one.joints, 1):
        a, b = one.model, other.model
        here, there = (np.asarray(m.jointPlacements[j].homogeneous) for m in (a, b))
        if a.joints[j].shortname() != b.joints[j].shortname() or a.parents[j] != b.parents[j]:
            return f"joint '{joint}' is of another kind"
        if np.abs(here - there).max() > SAME_PLACE:
            return f"joint '{joint}' sits {np.abs(here - there).max():.2g} m or rad elsewhere"
    g = np.abs(np.asarray(one.model.gravity.linear) - np.asarray(other.model.gravity.linear)).max()
    return "gravity comes from another side" if g > SAME_PLACE else None


def known_rows(after: IdentificationLike, planned: DynamicModel, base: BaseParameters) -> Array:
    """The information of earlier logs about the base parameters of the model as it is planned.

    Args:
        after: The earlier result.
        planned: The model without the terms that the design leaves out.

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
