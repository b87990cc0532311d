"""How large the columns of friction and rotor inertia are in ordinary motion, whatever the logs show.

A log of slow motion hardly shows rotor inertia and viscous friction, so that values which make a hundred times the robot's
torque in ordinary motion agree with it. What a robot's own drives can be is bounded by what they do in ordinary motion, too.
"""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from ..linalg import Array
from ..model.dynamic_model import DynamicModel
from ..model.elasticity import ElasticModel
from ..model.robot import STANDARD_GRAVITY, Robot
from ..samples import Segment

#: RMS speed as a part of the URDF's limit; at most, and where the URDF states none [rad/s, m/s].
_PART, _MOST = 0.25, (1.0, 0.25)
#: Frequency of the motion [Hz]; RMS acceleration is about twice the RMS speed.
_FREQUENCY = 0.3
#: Part of the acceleration of gravity with which matter moves in ordinary motion.
_OF_GRAVITY = 0.1
#: Samples, and samples per second [Hz].
_SAMPLES, _RATE = 200, 60.0


def ordinary_columns(model: DynamicModel) -> Array:
    """RMS of the columns of joint terms while every joint swings about zero at an ordinary speed.

    Returns:
        Shape (p,) [unit of the column]; 0 for inertial parameters, springs, terms that read the load, and with elastic joints.
    """
    found = np.zeros(len(model.parameters))
    if isinstance(model, ElasticModel):
        return found
    speed = np.minimum(_PART * model.robot.limit("velocity"), np.where(model.robot.prismatic, *_MOST[::-1]))
    phase = 2 * np.pi * (_FREQUENCY * np.arange(_SAMPLES)[:, None] / _RATE + np.arange(model.n) / model.n)
    w, size = 2 * np.pi * _FREQUENCY, np.sqrt(2.0) * speed
    motion = Segment("ordinary", 0.0, _RATE, size / w * np.sin(phase), size * np.cos(phase), -size * w * np.sin(phase))
    for item, own in model.placed_terms:
        if not (item.term.loaded or getattr(item.term, "conservative", False)):
            found[own] = np.sqrt(np.mean(model.term_values(motion, [item]) ** 2, axis=0))
    carried = matter_acceleration(model.robot)
    for k, parameter in enumerate(model.parameters):
        if parameter.rotor:
            found[k] = max(found[k], carried[model.robot.joints.index(parameter.owner)])
    return found


def matter_acceleration(robot: Robot) -> Array:
    """Joint acceleration with which a robot's matter moves at a small part of g: a small arm turns faster than a large one.

    Returns:
        Shape (n,) [rad/s² or m/s²]: :data:`_OF_GRAVITY` of g, for revolute joints at the arm's largest radius of gyration.
    """
    model = robot.model
    mass = np.diag(pin.crba(model, model.createData(), pin.neutral(model)))
    carried = np.array([sum(model.inertias[k].mass for k in model.subtrees[j + 1]) for j in range(robot.n)])
    longest = np.sqrt(np.max((mass / np.maximum(carried, 1e-300))[~robot.prismatic], initial=0.0))
    part = _OF_GRAVITY * float(np.linalg.norm(STANDARD_GRAVITY))
    return np.where(robot.prismatic, part, part / longest if longest > 0 else 0.0)
