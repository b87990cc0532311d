"""Friction beyond the data: tangents, dissipation as constraints, a bounded first fit, a bias that is no friction."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml
from conftest import arm_urdf, inertials
from hypothesis import example, given, settings
from hypothesis import strategies as st
from logs import fourier
from scipy.optimize import minimize

from urdf_ident import DynamicModel, Identification, Recording, Robot, identify
from urdf_ident.consistency.constraints import friction_constraints
from urdf_ident.export.sidecar import write_sidecar
from urdf_ident.friction import FRICTION, AxisMotion, Law, friction_term
from urdf_ident.model.trained import outside
from urdf_ident.project import parse_project
from urdf_ident.statistics.least_squares import constrained_least_squares

pytestmark = pytest.mark.usefixtures("unexamined")

ROBOT = Robot.from_urdf(arm_urdf("zyx"))
BODIES = inertials(ROBOT)


def trained(name: str, low: float = -0.8, high: float = 0.6) -> Law:
    return friction_term({"term": name, "trained": [low, high]})  # type: ignore[return-value]


def columns(law: Law, v: np.ndarray) -> np.ndarray:
    way = np.cumsum(np.sign(v))  # presliding fully developed
    return law.columns(AxisMotion(way, v, v, 100.0, np.full_like(v, 3.0), before=way[:1] - np.sign(v[:1])))


@pytest.mark.parametrize("name", sorted(name for name, law in FRICTION.items() if not law.conservative))
def test_columns_go_on_as_tangents(name: str) -> None:
    law, plain = trained(name), friction_term(name)
    inside = np.linspace(-0.8, 0.6, 57)
    np.testing.assert_array_equal(columns(law, inside), columns(plain, inside))  # type: ignore[arg-type]
    for edge, sign in ((0.6, 1.0), (-0.8, -1.0)):
        step = 1e-3
        v = edge + sign * step * np.arange(-1, 4)
        found = columns(law, v) if not law.memory else np.tile(columns(law, v[-1:]), (5, 1))
        beyond = np.diff(found[1:], axis=0)
        np.testing.assert_allclose(beyond, np.tile(beyond[:1], (3, 1)), atol=1e-10)  # a straight line
        scale = np.abs(found).max() + 1.0
        np.testing.assert_allclose(found[1] - found[0], beyond[0], atol=3 * step**2 * scale * 10)  # and no kink


def test_estimator_plant_and_online_callable_go_on_alike(tmp_path: Path) -> None:
    model = DynamicModel(ROBOT, friction=["viscous", "coulomb", "sublinear", "cubic", "offset"], rotor_inertia=False)
    rng = np.random.default_rng(0)
    theta = np.concatenate([BODIES, rng.uniform(0.5, 2.0, len(model.parameters) - 30)])
    q, v, a = rng.standard_normal((3, 30, 3))
    terms = [type(i)(trained(i.term.name, -0.5 - 0.1 * i.axis, 0.4), i.axis) for i in model.terms]
    terms = [replace(i, term=replace(i.term, straight=1.5)) if i.axis == 1 else i for i in terms]  # type: ignore[call-arg]
    model = model.with_terms(terms)
    tau = model.torque(theta, q, v, a)
    ident_like = __import__("urdf_ident.compensation.online", fromlist=["OnlineModel"]).OnlineModel(model, theta)
    np.testing.assert_allclose([ident_like(*one) for one in zip(q, v, a, strict=True)], tau, atol=1e-9)
    again = DynamicModel.from_dict(model.as_dict())
    np.testing.assert_array_equal(again.torque(theta, q, v, a), tau)
    data = yaml.safe_load(write_sidecar(tmp_path / "j.yaml", model, theta).read_text(encoding="utf-8"))
    assert data["joints"][ROBOT.joints[1]]["F3"]["trained"] == [-0.6, 0.4]
    assert [data["joints"][joint]["F3"].get("straight") for joint in ROBOT.joints] == [None, 1.5, None]
    beyond = outside(model, v)
    np.testing.assert_array_equal(beyond, (v > 0.4) | (v < -0.5 - 0.1 * np.arange(3)))


@settings(max_examples=40, deadline=None)
@example(95803)  # only x = 0 is allowed
@given(st.integers(0, 10**6))
def test_constrained_least_squares_agrees_with_another_solver(seed: int) -> None:
    rng = np.random.default_rng(seed)
    A, b, G = rng.standard_normal((8, 4)), rng.standard_normal(8), rng.standard_normal((6, 4))
    x = constrained_least_squares(A, b, G)
    assert (G @ x).min() >= -1e-8
    other = minimize(
        lambda x: float(np.sum((A @ x - b) ** 2)),
        np.zeros(4),
        jac=lambda x: 2 * A.T @ (A @ x - b),
        method="SLSQP",
        constraints={"type": "ineq", "fun": lambda x: G @ x, "jac": lambda x: G},
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert np.sum((A @ x - b) ** 2) <= other.fun + 1e-6


def log(seed: int, friction, *, speed: float = 1.0, seconds: float = 12.0, one_way: int | None = None, noise: float = 0.3):
    """A motion with friction torque ``friction(v)`` and noise [N·m]; joint ``one_way`` only advances."""
    t, q, v, a = fourier(ROBOT.n, seconds, 100.0, seed, amplitude=1.2)
    q, v, a = q[0] + speed * (q - q[0]), speed * v, speed * a
    if one_way is not None:
        rate = 0.4 + 0.2 * np.sin(1.3 * t + seed)
        q[:, one_way] = 0.4 * t + 0.2 / 1.3 * (np.cos(seed) - np.cos(1.3 * t + seed))
        v[:, one_way], a[:, one_way] = rate, 0.26 * np.cos(1.3 * t + seed)
    rigid = DynamicModel(ROBOT, friction="none", rotor_inertia=False).torque(BODIES, q, v, a)
    tau = rigid + friction(v) + noise * np.random.default_rng(seed).standard_normal(v.shape)
    return Recording(f"log{seed}", ROBOT.joints, t, q, effort=tau)


def grease(v: np.ndarray) -> np.ndarray:
    return np.asarray(2.0 * np.tanh(v / 0.02) + 3.0 * np.tanh(v / 0.02) * np.sqrt(np.abs(v)))


@pytest.fixture(scope="module")
def slow() -> Identification:
    """Laws that slow logs hardly tell apart, listed by hand."""
    project = parse_project({"model": {"friction": ["viscous", "coulomb", "sublinear", "cubic"], "rotor_inertia": False}})
    logs = [log(seed, grease, speed=0.15, seconds=6.0, noise=4.0) for seed in range(2)]
    return identify(project.build_model(ROBOT), logs, project=project)


def test_exported_friction_dissipates_where_the_fit_does_not(slow: Identification) -> None:
    rows = np.array([one.row for one in friction_constraints(slow.model, np.full(3, 10.0))])  # no limits but zero
    assert (rows @ slow.fit_theta).min() < 0, "the case is too easy"
    assert (rows @ slow.theta >= -1e-6 * np.abs(rows) @ np.abs(slow.theta)).all()
    assert [item.term.name for item in slow.model.terms][:4] == ["viscous", "coulomb", "sublinear", "cubic"]  # never changed
    assert {item.term.straight for item in slow.model.terms[:4]} == {np.inf}  # type: ignore[attr-defined]


def test_friction_beyond_the_data_stays_near_the_truth(slow: Identification) -> None:
    """At ten times the trained speeds: the fit's own friction is far off, the exported one a straight line near the grease."""
    v = np.linspace(0.3, 3.0, 20)[:, None] * np.ones(3)
    still = np.zeros_like(v)

    def friction(theta: np.ndarray) -> np.ndarray:
        return slow.model.torque(theta, still, v, still) - DynamicModel(ROBOT, friction="none", rotor_inertia=False).torque(
            theta[:30], still, v, still
        )

    error = np.sqrt(np.mean((friction(slow.theta) - grease(v)) ** 2))
    untrained = DynamicModel(ROBOT, friction=["viscous", "coulomb", "sublinear", "cubic"], rotor_inertia=False)
    before = untrained.torque(slow.fit_theta, still, v, still) - untrained.torque(
        np.concatenate([slow.fit_theta[:30], np.zeros(12)]), still, v, still
    )
    assert error < np.sqrt(np.mean(grease(v) ** 2))
    assert error < 0.2 * np.sqrt(np.mean((before - grease(v)) ** 2))


def test_a_joint_that_never_reverses_has_friction_and_no_bias() -> None:
    project = parse_project({"model": {"friction": ["viscous", "coulomb", "offset"], "rotor_inertia": False}})
    logs = [log(seed, lambda v: 4.0 * np.tanh(v / 0.02) + v, one_way=0, noise=0.1) for seed in range(2)]
    found = identify(project.build_model(ROBOT), logs, project=project)
    joint = ROBOT.joints[0]
    assert found.term_values("Fc")[joint] == pytest.approx(4.0, rel=0.15)
    assert abs(found.term_values("offset")[joint]) < 0.4
