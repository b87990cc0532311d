"""Every friction law that can be identified can be simulated, and means the same there."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import arm_urdf

from urdf_ident.friction import FRICTION, AxisMotion
from urdf_ident.model.dynamic_model import DynamicModel
from urdf_ident.model.robot import Robot
from urdf_ident.simulation.truth import rotors_and_friction

ROBOT = Robot.from_urdf(arm_urdf("zyx"))


@pytest.mark.parametrize("name", sorted(FRICTION))
def test_a_law_of_the_model_is_a_law_of_the_plant(name: str) -> None:
    law = {"term": name, "threshold": 0.1} if name == "asymmetric" else name
    model = DynamicModel(ROBOT, friction={"default": ["viscous"], ROBOT.joints[1]: [law]})
    theta = np.zeros(len(model.parameters))
    rng = np.random.default_rng(0)
    theta[model.n_inertial :] = rng.uniform(0.5, 2.0, len(theta) - model.n_inertial)
    rotor, friction = rotors_and_friction(model, theta)
    own = {p.name: value for p, value in zip(model.parameters, theta, strict=True)}
    np.testing.assert_allclose(np.diag(rotor), [own[f"Ia_{joint}"] for joint in ROBOT.joints])
    term = next(item.term for item in model.terms if item.axis == 1 and item.term.name == name)
    values = np.array([own[f"{symbol}_{ROBOT.joints[1]}"] for symbol in term.symbols])
    if FRICTION[name].loaded or FRICTION[name].memory:  # not a function of speed: the coefficient itself
        found = next(each.values for each in friction.joint if each.law.name == name)
        np.testing.assert_allclose(found[0], [0.0, values[0], 0.0])
        return
    if FRICTION[name].conservative:
        for q in (-1.1, 0.4):
            expected = term.columns(AxisMotion(np.array([q]), np.zeros(1), np.zeros(1), 100.0)) @ values
            np.testing.assert_allclose(friction.springs(np.full(3, q)), [0.0, *expected, 0.0], atol=1e-12)
        return
    speed = np.array([-1.3, -0.3, -0.08, 0.08, 0.3, 1.3])
    columns = term.columns(AxisMotion(speed, speed, speed, 100.0, None, None))
    for v, expected in zip(speed, columns @ values, strict=True):
        got = friction.torque(np.full(3, v), np.full(3, np.sign(v)), np.zeros(3))
        assert got[1] == pytest.approx(expected, rel=2e-3)
        assert got[0] == pytest.approx(own[f"Fv_{ROBOT.joints[0]}"] * v)
