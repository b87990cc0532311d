"""What a URDF gets of friction that it cannot hold."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from conftest import arm_urdf

from urdf_ident.model.drive import Drive
from urdf_ident.model.dynamic_model import DynamicModel
from urdf_ident.model.robot import Robot
from urdf_ident.result.dynamics.friction_curves import armature, equivalent_friction


def result(friction, values, *, speed=1.0, load=20.0, drive=None, motor=None):
    """A result with these terms on a one-joint (or two-joint) arm."""
    robot = Robot.from_urdf(arm_urdf("z" if drive is None else "zy"))
    model = DynamicModel(robot, friction=friction, rotor_inertia=False, drive=drive, motor_friction=motor)
    theta = np.concatenate([np.zeros(model.n_inertial), values])
    return SimpleNamespace(model=model, theta=theta, speed=np.full(model.n, speed), load=np.full(model.n, load))


def test_simple_friction_is_written_as_it_is() -> None:
    found = equivalent_friction(result(["viscous", "coulomb", "offset"], [3.25, 1.5, -0.7]))
    assert found.damping == {"j1": 3.25}
    assert found.friction == {"j1": 1.5}
    assert found.notes == ()


def test_negative_friction_is_not_written() -> None:
    found = equivalent_friction(result(["viscous", "coulomb"], [-1.0, 2.0]))
    assert found.damping["j1"] == 0.0


@pytest.mark.parametrize(
    ("laws", "values", "curve"),
    [
        (["sublinear"], [4.0], lambda v: 4.0 * np.sqrt(v)),
        (["viscous", "coulomb", "cubic"], [3.0, 2.0, -0.5], lambda v: 2.0 + 3.0 * v - 0.5 * v**3),
        (["coulomb", "presliding"], [1.0, 2.5], lambda v: 3.5 + 0 * v),
        (["coulomb", "load_coulomb"], [1.0, 0.1], lambda v: 3.0 + 0 * v),
    ],
)
def test_richer_laws_become_the_closest_line(laws, values, curve) -> None:
    speed = 1.2
    found = equivalent_friction(result(laws, values, speed=speed))
    v = np.linspace(0.2, speed, 50)
    line = found.friction["j1"] + found.damping["j1"] * v
    assert np.abs(line - curve(v)).max() < 0.12 * curve(v).max()
    assert "j1" in found.notes[0]


def test_motor_side_friction_of_a_coupled_axis_reaches_both_joints() -> None:
    A = np.array([[45.0, 0.0], [32.0, 32.0]])
    drive = Drive.build(2, reduction=A)
    found = equivalent_friction(result("none", [1e-3, 0.01], drive=drive, motor={"j2": ["viscous", "coulomb"]}))
    assert found.damping == {"j1": pytest.approx(32.0**2 * 1e-3), "j2": pytest.approx(32.0**2 * 1e-3)}
    assert found.friction == {"j1": pytest.approx(0.32), "j2": pytest.approx(0.32)}


def test_armature_of_a_coupled_axis() -> None:
    A = np.array([[45.0, 0.0], [32.0, 32.0]])
    robot = Robot.from_urdf(arm_urdf("zy"))
    model = DynamicModel(robot, friction="none", drive=Drive.build(2, reduction=A))
    theta = np.concatenate([np.zeros(model.n_inertial), [1e-4, 2e-4]])
    found = armature(SimpleNamespace(model=model, theta=theta))
    expected = np.diag(A.T @ np.diag([1e-4, 2e-4]) @ A)  # docs/theory.md §2
    assert list(found.values()) == pytest.approx(expected.tolist())
