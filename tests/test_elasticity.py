"""Elastic joints against a Lagrangian that is derived here, symbolically, and against exact signals."""

from dataclasses import replace

import numpy as np
import pytest
import sympy
from conftest import rnea
from motors import motor_friction

from urdf_ident import BaseParameters, Drive, ElasticModel, Robot, Segment, robot_path
from urdf_ident.errors import EstimationError, ModelError
from urdf_ident.estimation.elastic import compliance_at, compliance_form, stiffness_bounds
from urdf_ident.model.base import random_motion
from urdf_ident.simulation.elastic.plant import ElasticPlant, MotorFriction
from urdf_ident.statistics.accumulate import accumulate
from urdf_ident.statistics.fit import fit_base
from urdf_ident.statistics.rows import RowFilter
from urdf_ident.statistics.statistic import StatisticSet

#: Gear ratios, by name of the drive; the last three couple joints 2 and 3.
DRIVES = {
    "planar": np.diag([100.0, 80.0]),
    "spatial": np.diag([-60.0, 45.0, -32.0]),
    "wrist": np.array([[-60.0, 0, 0], [0, 45, 0], [0, 32, -32]]),
    "differential": np.array([[-60.0, 0, 0], [0, 30, 30], [0, 30, -30]]),
    "crossed": np.array([[-60.0, 0, 0], [0, 45, 30], [0, 40, 0]]),  # motor 3 does not move joint 3
    "mixed": np.diag([300.0, -50.0, 40.0]),  # a slide, an endless joint and one about a slanted axis
}
COUPLED = ["wrist", "differential", "crossed"]
#: After the gears.
K, IA, D, FV, FC = (np.array(x) for x in ([9e3, 4e3, 1.5e3], [1.5, 0.8, 0.3], [3.0, 2.0, 1.0], [10.0, 5, 3], [8.0, 4, 2]))
LAWS = ["viscous", {"term": "coulomb", "width": 1.0}]


def robot_of(name: str) -> Robot:
    if name == "planar":
        return Robot.from_urdf(robot_path("zollo_2r"))
    parts = ['<robot name="spatial">', '<link name="l0"/>']  # no two axes parallel, no centre of mass on an axis
    turning = (("revolute", "0 0 1"), ("revolute", "0 1 0"), ("revolute", "1 0 0"))
    mixed = (("prismatic", "0 0 1"), ("continuous", "0 1 0"), ("revolute", "0 0.6 0.8"))
    for k, (kind, axis) in enumerate(mixed if name == "mixed" else turning, 1):
        limit = "" if kind == "continuous" else '<limit lower="-2" upper="2" velocity="3" effort="90"/>'
        parts.append(
            f'<joint name="j{k}" type="{kind}"><parent link="l{k - 1}"/><child link="l{k}"/><origin xyz="0.1 0 0.3"/>'
            f'<axis xyz="{axis}"/>{limit}</joint><link name="l{k}"><inertial>'
            f'<origin xyz="0.05 -0.02 0.1"/><mass value="{6 - k}"/><inertia ixx="0.09" ixy="0.01" ixz="0" iyy="0.07" iyz="0" '
            'izz="0.05"/></inertial></link>'
        )
    return Robot.from_urdf("".join([*parts, "</robot>"]))


def model_of(name: str, **options: object) -> ElasticModel:
    robot = robot_of(name)
    settings = {"friction": LAWS, "preload": False, **options}
    return ElasticModel(robot, drive=Drive.build(robot.n, reduction=DRIVES[name]), **settings)  # type: ignore[arg-type]


def plant_of(name: str, damping: bool = False, **options: object) -> ElasticPlant:
    robot = robot_of(name)
    n, drive = robot.n, Drive.build(robot.n, reduction=DRIVES[name])
    truth = motor_friction(n, viscous=FV[:n], coulomb=FC[:n]).truth
    settings = {"friction": MotorFriction(truth, 1 / np.where(drive.coupled, abs(drive.ratio), 1)), **options}
    springs = {"stiffness": K[:n], "rotor_inertia": IA[:n], "damping": D[:n] if damping else 0.0}
    return ElasticPlant(robot, ratio=drive.ratio, geared=drive.geared, **springs, **settings)  # type: ignore[arg-type]


def truth_of(model: ElasticModel) -> np.ndarray:
    """Its parameters; those of coupled motors before the gear."""
    values = {"Ia": IA, "Fv": FV, "Fc": FC, "K": K, "D": D, "preload": np.zeros(3)}
    joints, terms = model.robot.joints, []
    for p in model.parameters[model.n_inertial :]:
        j, power = joints.index(p.owner), 1 if p.symbol == "Fcm" else 2
        own = values[p.symbol.removesuffix("m")][j]
        terms.append(own / abs(model.drive.ratio[j]) ** power if p.symbol.endswith("m") else own)
    return np.concatenate([model.robot.inertials.ravel(), terms])


def exact_segment(name: str, samples: int = 400, *, damping: bool = False) -> Segment:
    """Random states and torques, accelerations from the plant; motors as the joints would move were they rigid."""
    plant, rng = plant_of(name, damping), np.random.default_rng(5)
    n = plant.n
    q, v, vm = rng.uniform(-1.5, 1.5, (samples, n)), rng.normal(0, 1.5, (samples, n)), rng.normal(0, 1.5, (samples, n))
    qm, tau = plant.at_motors(q) + rng.normal(0, 0.01, (samples, n)), rng.normal(0, 60, (samples, n))
    turn = np.array([plant.acceleration(np.r_[q[k], qm[k]], np.r_[v[k], vm[k]], tau[k]) for k in range(samples)])
    back = np.linalg.inv(plant.geared).T
    motors = (motion @ back for motion in (qm, vm, turn[:, n:]))
    return Segment("exact", 0.0, 1000.0, q, v, turn[:, :n], tau @ plant.geared, *motors)


def exact(values: np.ndarray) -> sympy.Matrix:
    """Numbers as fractions, so that zeros and ones disappear from the formulas."""
    return sympy.Matrix(np.asarray(values).tolist()).applyfunc(lambda x: sympy.Rational(round(x * 10**9), 10**9))


def lagrangian(robot: Robot, ratio: list[float], rotor: list[float], stiffness: list[float]):
    """Left-hand sides of link and motor equations, from kinetic and potential energy alone.

    ``rotor`` is Υ, about the rotor's own axis. Returns a function of (q, θ, q', θ', q'', θ'').
    """
    n, model, axes = robot.n, robot.model, robot.axes
    names = "q p dq dp ddq ddp"
    q, p, dq, dp, ddq, ddp = (sympy.Matrix(sympy.symbols(f"{name}:{n}")) for name in names.split())
    up = -exact(model.gravity.linear)
    rotation, origin = [], []
    energy = sympy.Float(0)
    omegas: list[sympy.Matrix] = []
    for j in range(n):
        parent = int(model.parents[j + 1]) - 1
        placement = model.jointPlacements[j + 1]
        R0, o0 = (sympy.eye(3), sympy.zeros(3, 1)) if parent < 0 else (rotation[parent], origin[parent])
        w0 = sympy.zeros(3, 1) if parent < 0 else omegas[parent]
        R1 = R0 * exact(placement.rotation)
        u = exact(axes[j])
        cross = sympy.Matrix([[0, -u[2], u[1]], [u[2], 0, -u[0]], [-u[1], u[0], 0]])
        turn = sympy.eye(3) + sympy.sin(q[j]) * cross + (1 - sympy.cos(q[j])) * cross * cross
        z = R1 * u  # the axis, in the world; it turns with the parent
        spin = z.dot(w0) + ratio[j] * dp[j]
        energy += sympy.Rational(1, 2) * rotor[j] * spin**2 - sympy.Rational(1, 2) * stiffness[j] * (p[j] - q[j]) ** 2
        rotation.append(R1 * turn)
        origin.append(o0 + R0 * exact(placement.translation))
        omegas.append(w0 + z * dq[j])
        inertia = model.inertias[j + 1]
        centre = origin[j] + rotation[j] * exact(inertia.lever)
        speed = centre.jacobian(q) * dq
        local = rotation[j].T * omegas[j]
        tensor = exact(inertia.inertia)
        energy += sympy.Rational(1, 2) * inertia.mass * speed.dot(speed) + sympy.Rational(1, 2) * (local.T * tensor * local)[0]
        energy -= inertia.mass * up.dot(centre)
    x, dx, ddx = (sympy.Matrix.vstack(*pair) for pair in ((q, p), (dq, dp), (ddq, ddp)))
    momentum = sympy.Matrix([energy]).jacobian(dx).T
    force = sympy.Matrix([energy]).jacobian(x).T
    equation = momentum.jacobian(dx) * ddx + momentum.jacobian(x) * dx - force
    return sympy.lambdify([*q, *p, *dq, *dp, *ddq, *ddp], equation, cse=True)


@pytest.mark.parametrize("name", ["planar", "spatial"])
def test_complete_model_equals_an_independent_lagrangian(name: str) -> None:
    model = model_of(name, friction="none")
    theta, ratio = truth_of(model), np.diag(DRIVES[name])
    derived = lagrangian(model.robot, ratio.tolist(), (IA[: model.n] / ratio**2).tolist(), K[: model.n].tolist())
    motion = random_motion(model.robot, 20, seed=3)
    states = np.hstack([motion.q, motion.qm, motion.v, motion.vm, motion.a, motion.am])
    expected = np.array([np.asarray(derived(*state)).ravel() for state in states])
    link, motor, total = model.balance(theta, motion)
    n = model.n
    scale = np.abs(expected).max()
    np.testing.assert_allclose(link / scale, expected[:, :n] / scale, atol=1e-10, rtol=0)
    np.testing.assert_allclose(motor / scale, expected[:, n:] / scale, atol=1e-10, rtol=0)
    np.testing.assert_allclose(total, link + motor)
    reduced = model_of(name, friction="none", coupling="reduced").balance(theta, motion)[0]
    apart = np.abs(reduced - link).max() / scale
    assert apart > (1e-6 if name == "planar" else 1e-5), "the switch does nothing"


@pytest.mark.parametrize("name", COUPLED)
def test_coupled_plant_and_model_balance_what_is_written_out_by_hand(name: str) -> None:
    model, segment = model_of(name, damping=True), exact_segment(name, 30, damping=True)
    G, robot, theta = model.drive.geared, model.robot, truth_of(model)
    qm, vm, am = (x @ G.T for x in (segment.qm, segment.vm, segment.am))
    spring = K * (qm - segment.q @ G.T) + D * (vm - segment.v @ G.T)
    # the first motor moves its joint alone and stands on the base: no rotor is turned by a link
    links = rnea(robot.model, segment.q, segment.v, segment.a)
    np.testing.assert_allclose(links, spring @ G, atol=1e-8)
    width = np.where(model.drive.coupled, 1.0 / np.abs(model.drive.ratio), 1.0)
    motors = IA * am + FV * vm + FC * np.tanh(vm / width) + spring
    np.testing.assert_allclose(segment.tau, motors @ G, atol=1e-8)
    link, motor, total = model.balance(theta, segment)
    np.testing.assert_allclose(link, 0, atol=1e-8)
    np.testing.assert_allclose(motor, segment.tau, atol=1e-8)
    np.testing.assert_allclose(total, segment.tau, atol=1e-8)
    np.testing.assert_allclose(model.spring_torque(theta, segment), spring @ G, atol=1e-8)


@pytest.mark.parametrize("rows", ["motor", "sum"])
@pytest.mark.parametrize("damping", [False, True])
@pytest.mark.parametrize("name", list(DRIVES))
def test_exact_signals_give_every_identifiable_parameter(name: str, damping: bool, rows: str) -> None:
    model = model_of(name, rows=rows, damping=damping, preload=True)
    base = model.base()
    statistics = accumulate(model, "exact", [exact_segment(name, damping=damping)], RowFilter(1))
    if rows == "sum":  # exact signals do not change in compliance form
        statistics = compliance_form(statistics, model, base)
    fit = fit_base(statistics, base)
    assert fit.seen.all()
    np.testing.assert_allclose(fit.params, base.of(truth_of(model)), rtol=1e-7, atol=1e-7)


def noisy(name: str, model: ElasticModel, noise: float) -> StatisticSet:
    """Exact rows whose deflections are read with independent noise at each motor [rad after the gear]."""
    exact, rng = exact_segment(name, 4000, damping=model.damping), np.random.default_rng(1 if name == "wrist" else 8)
    qm = exact.qm + rng.normal(0, noise, exact.q.shape) @ np.linalg.inv(model.drive.geared).T  # type: ignore[operator]
    tau = exact.tau + (rng.normal(0, 1.0, exact.q.shape) if name == "wrist" else 0.0)  # type: ignore[operator]
    return accumulate(model, "noisy", [replace(exact, qm=qm, tau=tau)], RowFilter(1))


def stiffness(model: ElasticModel, base: BaseParameters, params: np.ndarray) -> np.ndarray:
    theta = base.embedded(params)
    return np.array([theta[model.of_spring(j)] * model.after_gear(model.of_spring(j)) for j in range(3)])


@pytest.mark.parametrize("name", ["spatial", "wrist"])
def test_noise_on_the_deflection_shrinks_plain_stiffness_but_not_in_compliance_form(name: str) -> None:
    plain, ours = (model_of(name, rows=rows, damping=name == "wrist") for rows in ("motor", "sum"))
    noise = 0.005  # [rad]; the deflection is 0.01 rad rms
    base, rows = plain.base(), noisy(name, plain, noise)
    weights = fit_base(rows, base, method="ols").weights
    assert (stiffness(plain, base, fit_base(rows, base, weights=weights).params) < 0.9 * K).all()
    statistics, base = noisy(name, ours, noise), ours.base()
    fit = fit_base(compliance_form(statistics, ours, base), base)
    found, error = stiffness(ours, base, fit.params), stiffness(ours, base, fit.bse)
    np.testing.assert_allclose(found, K, rtol=0.01 if name == "spatial" else 0.02)
    assert (np.abs(found - K) < 4 * error).all(), "the intervals are too narrow"
    bounds = stiffness_bounds(statistics, ours, base.embedded(fit.params))
    for (low, high), exact in zip(bounds.values(), K, strict=True):
        assert low < 0.9 * exact
        assert high == pytest.approx(exact, rel=0.01 if name == "spatial" else 0.02)
        assert low / high == pytest.approx(1 / (1 + (noise / 0.01) ** 2), rel=0.05)
    with pytest.raises(EstimationError, match="no positive stiffness"):
        compliance_at(statistics, ours, np.zeros(statistics.p))


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"coupling": "full"}, "unknown rotor coupling.*complete"),
        ({"rows": "links"}, "unknown rows"),
        ({"rigid": ["j9"]}, "does not exist"),
        ({"drive": None}, "gear ratios"),
        ({"friction": ["viscos"]}, "viscous"),
    ],
)
def test_impossible_models_are_refused(options: dict[str, object], word: str) -> None:
    settings = {"drive": Drive.build(3), **options}
    with pytest.raises(ModelError, match=word) as caught:
        ElasticModel(robot_of("spatial"), **settings)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)
