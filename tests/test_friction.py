"""Friction laws: values, units, and what a user may write."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import arm_urdf
from hypothesis import given
from hypothesis import strategies as st

from urdf_ident.errors import ModelError
from urdf_ident.friction import (
    DEFAULT_FRICTION,
    FRICTION,
    AxisMotion,
    Coulomb,
    Offset,
    Viscous,
    friction_by_joint,
    friction_term,
    smooth_sign,
)
from urdf_ident.model.drive import Drive
from urdf_ident.model.robot import Robot
from urdf_ident.model.terms import AppliedTerm, RotorInertia

V = np.array([-3.0, -0.5, -1e-6, 0.0, 1e-6, 0.2])
AXIS = AxisMotion(q=10 * V, v=V, a=V**2, rate=100.0, reference_torque=3 * V)


def test_columns() -> None:
    np.testing.assert_array_equal(Viscous().columns(AXIS), V[:, None])
    np.testing.assert_array_equal(Offset().columns(AXIS), np.ones((6, 1)))
    np.testing.assert_array_equal(RotorInertia().columns(AXIS), V[:, None] ** 2)
    np.testing.assert_allclose(Coulomb(width=0.1).columns(AXIS)[:, 0], np.tanh(V / 0.1), atol=1e-15)
    np.testing.assert_array_equal(Coulomb(width=0).columns(AXIS)[:, 0], [-1, -1, -1, 0, 1, 1])


def test_noise_of_a_filter_at_rest_is_not_a_sign() -> None:
    noise = np.array([1e-6, -1e-6, 3e-7])
    assert np.abs(smooth_sign(noise, Coulomb().width)).max() < 1e-3
    assert np.abs(smooth_sign(noise, 0)).min() == 1


@given(st.floats(-100, 100), st.floats(1e-4, 1))
def test_smooth_sign_is_odd_bounded_and_right_when_moving(v: float, width: float) -> None:
    value = float(smooth_sign(np.array(v), width))
    assert abs(value) <= 1
    assert value == -float(smooth_sign(np.array(-v), width))
    if abs(v) > 6 * width:
        assert value == pytest.approx(np.sign(v), abs=2e-5)


@pytest.mark.parametrize("law", [*FRICTION.values(), RotorInertia], ids=lambda law: law.name)
def test_every_law_has_a_symbol_a_unit_and_a_sign_per_column(law: type) -> None:
    term = law()
    width = term.columns(AXIS).shape[1]
    assert len(term.symbols) == len(term.nonnegative) == len(term.units(True)) == len(term.units(False)) == width
    robot = Robot.from_urdf(arm_urdf("zy"))
    assert AppliedTerm.from_dict(AppliedTerm(term, 0).as_dict(robot), robot).term == term


def test_units_follow_the_joint() -> None:
    assert Viscous().units(False) == ("N·m·s/rad",)
    assert Viscous().units(True) == ("N·s/m",)
    assert RotorInertia().units(True) == ("kg",)
    assert Coulomb().units(True) == Offset().units(True) == ("N",)


def test_ways_to_write_a_law() -> None:
    assert friction_term("coulomb") == Coulomb()
    assert friction_term({"term": "coulomb", "width": 0.5}) == Coulomb(0.5)
    assert friction_term(Coulomb(0.3)) == Coulomb(0.3)


def test_three_ways_to_give_friction_to_joints() -> None:
    joints = ("a", "b")
    default = tuple(friction_term(name) for name in DEFAULT_FRICTION)
    assert friction_by_joint("auto", joints) == {"a": default, "b": default}
    assert friction_by_joint("none", joints) == {"a": (), "b": ()}
    assert friction_by_joint(["viscous"], joints) == {"a": (Viscous(),), "b": (Viscous(),)}
    assert friction_by_joint({"default": ["viscous"], "b": []}, joints) == {"a": (Viscous(),), "b": ()}
    assert friction_by_joint({"b": ["offset"]}, joints) == {"a": default, "b": (Offset(),)}
    with pytest.raises(ModelError, match="'c', which is no joint"):
        friction_by_joint({"c": []}, joints)
    with pytest.raises(ModelError, match="unknown friction"):
        friction_by_joint("all", joints)


def test_sides_of_a_term() -> None:
    drive = Drive.build(2, reduction=[[45.0, 0.0], [32.0, 32.0]])
    np.testing.assert_array_equal(drive.rate_weights(1, "joint"), [0, 1])
    np.testing.assert_array_equal(drive.rate_weights(1, "motor"), [32, 32])
    with pytest.raises(ModelError, match=r"unknown side of a term.*valid: joint, motor"):
        AppliedTerm(Viscous(), 0, "gear")
