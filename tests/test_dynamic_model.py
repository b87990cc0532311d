"""The model against Pinocchio's own inverse dynamics; what it holds, what it does not, and its way through JSON."""

import json

import numpy as np
import pinocchio as pin
import pytest
from conftest import arm_urdf, inertials, rnea
from estimation_samples import result
from motion_samples import make_segment, truth

from urdf_ident import Drive, DynamicModel, Identification, Robot, Segment
from urdf_ident.errors import ModelError, ShapeError
from urdf_ident.linalg import shaped
from urdf_ident.model import rigid_bodies as engine

FRICTION = ["viscous", {"term": "coulomb", "width": 0.3}, "offset"]


def states(n: int, samples: int = 7, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return tuple(np.random.default_rng(seed).normal(size=(3, samples, n)))  # type: ignore[return-value]


@pytest.fixture(scope="module")
def model() -> DynamicModel:
    return DynamicModel(Robot.from_urdf(arm_urdf()), friction=FRICTION)


def test_torque_is_rnea_plus_armature_plus_friction(model: DynamicModel) -> None:
    """Trap 3: Pinocchio's rnea holds the armature, its regressor does not; neither holds friction."""
    robot, rng = model.robot, np.random.default_rng(4)
    theta = np.concatenate([inertials(robot), rng.uniform(0.1, 2, len(model.parameters) - 60)])
    q, v, a = states(6)
    at = dict(zip(model.names, theta, strict=True))
    Ia, Fv, Fc, offset = (np.array([at[f"{s}_j{k}"] for k in range(1, 7)]) for s in ("Ia", "Fv", "Fc", "offset"))
    with_rotors = robot.model.copy()
    with_rotors.armature = Ia
    expected = rnea(with_rotors, q, v, a) + Fv * v + Fc * np.tanh(v / 0.3) + offset
    np.testing.assert_allclose(model.torque(theta, q, v, a), expected, rtol=1e-12, atol=1e-11)
    no_rotors = engine.regressor(robot, q, v, a) @ inertials(robot)
    np.testing.assert_allclose(no_rotors, rnea(robot.model, q, v, a), rtol=1e-12, atol=1e-11)
    assert np.abs(rnea(with_rotors, q, v, a) - no_rotors).min() > 1e-3
    np.testing.assert_allclose(
        rnea(engine.with_inertias(robot, inertials(robot), Ia), q, v, a), rnea(with_rotors, q, v, a), atol=1e-11
    )


@pytest.mark.parametrize("kind", ["revolute", "continuous", "prismatic"])
def test_torque_of_one_state_many_states_and_many_models(kind: str) -> None:
    model = DynamicModel(Robot.from_urdf(arm_urdf("zyx", kind=kind)), friction=FRICTION)
    theta = np.random.default_rng(0).normal(size=(len(model.parameters), 4))
    q, v, a = states(3)
    together = model.torque(theta, q, v, a)
    assert together.shape == (7, 3, 4)
    for k in range(4):
        np.testing.assert_allclose(model.torque(theta[:, k], q, v, a), together[..., k], rtol=1e-12, atol=1e-12)
    one = model.torque(theta[:, 0], q[2], v[2], a[2])
    assert one.shape == (3,)
    np.testing.assert_allclose(one, together[2, :, 0], rtol=1e-12, atol=1e-12)
    assert model.torque(theta, q[2], v[2], a[2]).shape == (3, 4)


def test_shapes_are_checked(model: DynamicModel) -> None:
    q, v, a = states(6)
    theta = np.zeros(len(model.parameters))
    for wrong in (theta[:-1], np.zeros((1, len(theta)))):
        with pytest.raises(ShapeError, match="theta"):
            model.torque(wrong, q, v, a)
    with pytest.raises(ShapeError, match="'v'"):
        model.torque(theta, q, v[:-1], a)
    with pytest.raises(ShapeError, match="'q'"):
        model.torque(theta, q[:, :5], v[:, :5], a[:, :5])


def test_a_law_given_twice_is_refused() -> None:
    with pytest.raises(ModelError, match="listed twice, got Fv_j1"):
        DynamicModel(Robot.from_urdf(arm_urdf("z")), friction=["viscous", "viscous"]).parameters


def test_json_builds_the_same_model_to_the_last_bit() -> None:
    robot = Robot.from_urdf(arm_urdf("zyyxyx"), joints=["j5", "j2", "j6", "j3"], lock={"j1": 1 / 3}, gravity=(0.1, 1 / 7, -9.8))
    A = np.diag([3.0, -1 / 3, 45.0, 32.0])
    A[3, 2] = 32.0
    drive = Drive.build(4, reduction=A, gain=[1 / 3, 2, 3, 0.1], offset=[0.1, 0.2, 0.3, np.pi], gain_origin="data sheet")
    model = DynamicModel(
        robot, drive=drive, friction={"default": FRICTION, "j2": ["offset"]}, motor_friction={"j6": ["viscous"]}
    )
    again = DynamicModel.from_dict(json.loads(json.dumps(model.as_dict())))
    assert again.as_dict() == model.as_dict()
    assert again.names == model.names
    assert again.parameters == model.parameters
    assert (again.robot.order, again.robot.joints) == (robot.order, robot.joints)
    assert dict(again.robot.locked) == {"j1": 1 / 3, "j4": 0.0}
    assert again.fingerprint == model.fingerprint
    q, v, a = states(4)
    theta = np.random.default_rng(0).normal(size=len(model.parameters))
    np.testing.assert_array_equal(again.torque(theta, q, v, a), model.torque(theta, q, v, a))
    segment = Segment("s", 0.0, 1.0, q, v, a)
    for (_, old), (_, new) in zip(model.row_blocks(segment), again.row_blocks(segment), strict=True):
        for x, y in zip(old, new, strict=True):
            np.testing.assert_array_equal(x, y)


def test_fingerprint_is_of_the_columns_and_not_of_the_place(tmp_path) -> None:
    path = tmp_path / "arm.urdf"
    path.write_text(arm_urdf("zy"))
    here = DynamicModel(Robot.from_urdf(path))
    assert here.fingerprint == DynamicModel(Robot.from_urdf(arm_urdf("zy"))).fingerprint
    others = [
        DynamicModel(Robot.from_urdf(arm_urdf("zx"))),
        DynamicModel(Robot.from_urdf(path, gravity=(0, 0, -9.80665))),
        DynamicModel(Robot.from_urdf(path), friction=["viscous", {"term": "coulomb", "width": 0.5}, "offset"]),
        DynamicModel(Robot.from_urdf(path), rotor_inertia=False),
        DynamicModel(Robot.from_urdf(path), drive=Drive.build(2, gain=[1, 2])),
        DynamicModel(Robot.from_urdf(path, lock={"j2": 0.1})),
    ]
    assert len({here.fingerprint, *(other.fingerprint for other in others)}) == 1 + len(others)


# ---- The terms of the identified equation of motion, against Pinocchio's own algorithms ----

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


@pytest.mark.parametrize("wrong", [None, "2", 1j, 10**400])
def test_arrays_of_objects_are_numbers_or_refused(wrong: object) -> None:
    """An array of objects with a text or nothing in it was converted: to the number that the text reads as, or to NaN."""
    assert shaped("x", np.array([1, 2.5], dtype=object), (2,)).tolist() == [1.0, 2.5]
    for values in ([1, wrong], np.array([1, wrong], dtype=object)):
        with pytest.raises(ShapeError, match="'x' is no number or array of numbers"):
            shaped("x", values, (2,))


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
