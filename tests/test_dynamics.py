"""The terms of the identified equation of motion, against Pinocchio's own algorithms."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from conftest import arm_urdf
from estimation_samples import result
from motion_samples import make_segment, truth

from urdf_ident.errors import ModelError, ShapeError
from urdf_ident.model.dynamic_model import DynamicModel
from urdf_ident.model.robot import Robot
from urdf_ident.result.identification import Identification

LAWS = ["viscous", "coulomb", "offset"]


def made(kind: str = "revolute", friction: list[str] | None = None) -> Identification:
    robot = Robot.from_urdf(arm_urdf("zyx", kind=kind))
    model = DynamicModel(robot, friction=LAWS)
    ident = result(model, make_segment(model, 300))
    if friction is None:
        return ident
    loaded = DynamicModel(robot, friction=friction).with_reference(truth(model)[: model.n_inertial])
    theta = np.concatenate([truth(model)[: model.n_inertial], np.full(len(loaded.names) - model.n_inertial, 0.1)])
    from dataclasses import replace

    return replace(ident, model=loaded, theta=theta)


@pytest.mark.parametrize("kind", ["revolute", "prismatic", "continuous"])
def test_terms_are_those_of_pinocchio(kind: str) -> None:
    ident = made(kind)
    model = ident.to_pinocchio()
    data, rng = model.createData(), np.random.default_rng(0)
    rotors = np.array([ident.term_values("Ia")[name] for name in ident.model.robot.joints])
    assert np.allclose(model.armature, rotors)
    assert np.allclose(model.damping, [ident.term_values("Fv")[name] for name in ident.model.robot.joints])
    assert np.allclose(model.friction, [ident.term_values("Fc")[name] for name in ident.model.robot.joints])
    for q, v, a in rng.uniform(-1.5, 1.5, (5, 3, ident.model.n)):
        c = ident.model.robot.configuration(q[None])[0]
        assert np.allclose(ident.gravity(q), pin.computeGeneralizedGravity(model, data, c), atol=1e-9)
        assert np.allclose(ident.coriolis(q, v), pin.computeCoriolisMatrix(model, data, c, v) @ v, atol=1e-9)
        assert np.allclose(ident.torque(q, v, a), pin.rnea(model, data, c, v, a) + ident.friction(v), atol=1e-9)
        parts = ident.mass_matrix(q) @ a + ident.coriolis(q, v) + ident.gravity(q) + ident.friction(v)
        assert np.allclose(parts, ident.torque(q, v, a), atol=1e-9)
        tau = rng.uniform(-5, 5, ident.model.n)
        assert np.allclose(ident.forward(q, v, tau), pin.aba(model, data, c, v, tau - ident.friction(v)), atol=1e-6)


def test_many_samples_are_those_one_by_one() -> None:
    ident = made()
    q, v, tau = np.random.default_rng(1).uniform(-1, 1, (3, 4, ident.model.n))
    for whole, one in (
        (ident.gravity(q), ident.gravity),
        (ident.coriolis(q, v), ident.coriolis),
        (ident.friction(v), ident.friction),
        (ident.forward(q, v, tau), ident.forward),
    ):
        given = (q,) if one == ident.gravity else (v,) if one == ident.friction else (q, v)
        given = (q, v, tau) if one == ident.forward else given
        assert np.allclose(whole, [one(*(x[k] for x in given)) for k in range(4)], atol=1e-9)


def test_friction_that_carries_the_load() -> None:
    """Forward dynamics inverts the torque although friction depends on the acceleration."""
    ident = made(friction=["viscous", "coulomb", "load_coulomb"])
    q, v, a = np.random.default_rng(2).uniform(-1, 1, (3, 6, ident.model.n))
    tau = ident.model.torque(ident.theta, q, v, a)
    assert np.allclose(ident.forward(q, v, tau), a, atol=1e-7)
    rigid = ident.gravity(q) + ident.coriolis(q, v) + np.array([ident.mass_matrix(x) @ y for x, y in zip(q, a, strict=True)])
    assert np.allclose(ident.friction(v, q, a) + rigid, tau, atol=1e-9)
    with pytest.raises(ModelError, match="friction\\(v, q\\)"):
        ident.friction(v)


def test_wrong_shapes_are_said() -> None:
    ident = made()
    with pytest.raises(ShapeError):
        ident.gravity(np.zeros(2))
    with pytest.raises(ShapeError):
        ident.coriolis(np.zeros(3), np.zeros(2))
    with pytest.raises(ShapeError):
        ident.forward(np.zeros((4, 3)), np.zeros((4, 3)), np.zeros((3, 3)))
