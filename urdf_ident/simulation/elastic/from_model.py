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
    widths = np.full(model.n, SIGN_WIDTH)  # of the smooth signs of friction, after the gears [rad/s or m/s]
    for applied in model.terms:
        if hasattr(applied.term, "width"):
            ratio = abs(drive.ratio[applied.axis]) if applied.side == "motor" else 1.0
            widths[applied.axis] = applied.term.width / ratio
    return ElasticPlant(
        robot or model.robot,
        stiffness=np.where(rigid, inertia * (2 * np.pi * _STIFF) ** 2, stiffness),
        rotor_inertia=inertia,
        ratio=drive.ratio,
        geared=drive.geared,
        damping=np.where(rigid, 0.0, np.maximum(damping, 0.0)),
        friction=MotorFriction(replace(friction, reduction=np.diag(drive.ratio)), widths),  # at motors, after the gears
        theta=theta[: model.n_inertial],
    )
