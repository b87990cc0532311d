"""An elastic plant with the parameters of an identified model."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...friction import SIGN_WIDTH
from ...linalg import Array
from ...model.elasticity import ElasticModel
from ...model.robot import Robot
from ..truth import rotors_and_friction
from .plant import ElasticPlant, MotorFriction

#: Natural frequency of a rotor on the stiff spring of a rigid joint [Hz].
_STIFF = 150.0


def _widths(model: ElasticModel) -> Array:
    """Half-width of the smooth sign of each motor's friction law, after the gear, shape (n,) [rad/s or m/s]."""
    widths = np.full(model.n, SIGN_WIDTH)
    for item in model.terms:
        own = getattr(item.term, "width", None)
        if own is not None:
            widths[item.axis] = own / (abs(model.drive.ratio[item.axis]) if item.side == "motor" else 1.0)
    return widths


def elastic_plant(model: ElasticModel, theta: Array, robot: Robot | None = None) -> ElasticPlant:
    """Builds the plant of a model with given parameters.

    Args:
        model: The model; its rigid joints get stiff springs.
        theta: All its parameters, shape (p,).
        robot: The simulated robot; the model's if None.

    Raises:
        SimulationError: A rotor without inertia, a spring without stiffness, or friction that elastic plants do not support.
    """
    drive = model.drive
    rotor, friction = rotors_and_friction(model, theta)
    to_joints = np.linalg.inv(drive.geared)
    inertia = np.diag(to_joints.T @ rotor @ to_joints)
    springs = np.array([model.of_spring(j) for j in range(model.n)])
    geared = np.array([model.after_gear(int(k)) for k in springs])
    stiffness, damping = geared * theta[springs], geared * theta[springs + 1] if model.damping else np.zeros(model.n)
    rigid = np.isin(model.robot.joints, model.rigid)
    return ElasticPlant(
        robot or model.robot,
        stiffness=np.where(rigid, inertia * (2 * np.pi * _STIFF) ** 2, stiffness),
        rotor_inertia=inertia,
        ratio=drive.ratio,
        geared=drive.geared,
        damping=np.where(rigid, 0.0, np.maximum(damping, 0.0)),
        friction=MotorFriction(replace(friction, reduction=np.diag(drive.ratio)), _widths(model)),  # at motors, after the gears
        theta=theta[: model.n_inertial],
    )
