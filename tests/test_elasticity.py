"""Elastic joints against a Lagrangian that is derived here, symbolically, and against exact signals."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import sympy
from motors import motor_friction

from urdf_ident.errors import ModelError
from urdf_ident.estimation.elastic import check_stiffness, compliance_form
from urdf_ident.model.base import BaseParameters
from urdf_ident.model.bundled import robot_path
from urdf_ident.model.drive import Drive
from urdf_ident.model.elasticity import ElasticModel
from urdf_ident.model.prior import lumped_inertials
from urdf_ident.model.robot import Robot
from urdf_ident.model.structure import random_motion
from urdf_ident.samples import Segment
from urdf_ident.simulation.elastic.plant import ElasticPlant
from urdf_ident.statistics.accumulate import accumulate
from urdf_ident.statistics.fit import fit_base
from urdf_ident.statistics.rows import RowFilter
from urdf_ident.statistics.statistic import StatisticSet

RATIO = {"planar": [100.0, 80.0], "spatial": [-60.0, 45.0, -32.0]}
K = {"planar": [18000.0, 14000.0], "spatial": [9000.0, 4000.0, 1500.0]}
IA = {"planar": [2.0, 1.0], "spatial": [1.5, 0.8, 0.3]}
FV, FC = [10.0, 5.0, 3.0], [8.0, 4.0, 2.0]


def robot_of(name: str) -> Robot:
    if name == "planar":
        return Robot.from_urdf(robot_path("zollo_2r"))
    parts = ['<robot name="spatial">', '<link name="l0"/>']  # no two axes parallel, no centre of mass on an axis
    for k, axis in enumerate(("0 0 1", "0 1 0", "1 0 0"), 1):
        parts.append(
            f'<joint name="j{k}" type="revolute"><parent link="l{k - 1}"/><child link="l{k}"/><origin xyz="0.1 0 0.3"/>'
            f'<axis xyz="{axis}"/><limit lower="-2" upper="2" velocity="3" effort="90"/></joint><link name="l{k}"><inertial>'
            f'<origin xyz="0.05 -0.02 0.1"/><mass value="{6 - k}"/><inertia ixx="0.09" ixy="0.01" ixz="0" iyy="0.07" iyz="0" '
            'izz="0.05"/></inertial></link>'
        )
    return Robot.from_urdf("".join([*parts, "</robot>"]))


def model_of(name: str, **options: object) -> ElasticModel:
    robot = robot_of(name)
    options = {"friction": ["viscous", {"term": "coulomb", "width": 0.02}], "preload": False, **options}
    return ElasticModel(robot, drive=Drive.build(robot.n, reduction=RATIO[name]), **options)  # type: ignore[arg-type]


def truth_of(name: str, model: ElasticModel, *, damping: float = 0.0, preload: float = 0.0) -> np.ndarray:
    values = {"Ia": IA[name], "Fv": FV, "Fc": FC, "K": K[name], "D": [damping] * 3, "preload": [preload] * 3}
    joints = model.robot.joints
    terms = [values[p.symbol][joints.index(p.owner)] for p in model.parameters[model.n_inertial :]]
    return np.concatenate([lumped_inertials(model.robot).ravel(), terms])


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
    theta = truth_of(name, model)
    rotor = [ia / r**2 for ia, r in zip(IA[name], RATIO[name], strict=True)]
    derived = lagrangian(model.robot, RATIO[name], rotor, K[name])
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


def exact_segment(name: str, samples: int = 400, *, damping: float = 0.0, external: bool = False) -> Segment:
    """Random states and torques, accelerations from the plant: every equation holds to rounding."""
    robot = robot_of(name)
    n = robot.n
    friction = motor_friction(n, viscous=FV[:n], coulomb=FC[:n], width=0.02)
    plant = ElasticPlant(
        robot, stiffness=K[name], rotor_inertia=IA[name], ratio=RATIO[name], damping=damping, friction=friction
    )
    rng = np.random.default_rng(5)
    q, v, vm = rng.uniform(-1.5, 1.5, (samples, n)), rng.normal(0, 1.5, (samples, n)), rng.normal(0, 1.5, (samples, n))
    qm = q + rng.normal(0, 0.01, (samples, n))
    tau = rng.normal(0, 60, (samples, n))
    load = rng.normal(0, 20, (samples, n)) if external else np.zeros((samples, n))
    turn = np.array([plant.acceleration(np.r_[q[k], qm[k]], np.r_[v[k], vm[k]], tau[k], load[k]) for k in range(samples)])
    return Segment("exact", 0.0, 1000.0, q, v, turn[:, :n], tau, qm, vm, turn[:, n:], external=load if external else None)


@pytest.mark.parametrize("name", ["planar", "spatial"])
@pytest.mark.parametrize("damping", [0.0, 2.0])
def test_exact_signals_give_every_identifiable_parameter(name: str, damping: float) -> None:
    model = model_of(name, damping=damping > 0, preload=True)
    base = model.base()
    statistics = accumulate(model, "exact", [exact_segment(name, damping=damping)], RowFilter(1))
    expected = base.of(truth_of(name, model, damping=damping))
    fit = fit_base(statistics, base)
    assert fit.seen.all()
    np.testing.assert_allclose(fit.params, expected, rtol=1e-8, atol=1e-8)


def test_exact_signals_of_the_puma_give_every_identifiable_parameter() -> None:
    robot = Robot.from_urdf(robot_path("puma560"))
    ratio = np.array([-62.6, 107.8, -53.7, 76.0, 71.9, 76.7])
    ia, k = np.array([0.78, 2.3, 0.58, 0.19, 0.17, 0.19]), np.full(6, 2000.0)
    plant = ElasticPlant(robot, stiffness=k, rotor_inertia=ia, ratio=ratio)
    model = ElasticModel(robot, drive=Drive.build(6, reduction=ratio), friction="none", preload=False)
    rng = np.random.default_rng(2)
    q, v, vm = (rng.normal(0, 1.2, (500, 6)) for _ in range(3))
    qm, tau = q + rng.normal(0, 0.005, (500, 6)), rng.normal(0, 20, (500, 6))
    turn = np.array([plant.acceleration(np.r_[q[i], qm[i]], np.r_[v[i], vm[i]], tau[i]) for i in range(500)])
    segment = Segment("exact", 0.0, 1000.0, q, v, turn[:, :6], tau, qm, vm, turn[:, 6:])
    values = {"Ia": ia, "K": k}
    terms = [values[p.symbol][robot.joints.index(p.owner)] for p in model.parameters[60:]]
    base = model.base()
    expected = base.of(np.concatenate([lumped_inertials(robot).ravel(), terms]))
    fit = fit_base(accumulate(model, "exact", [segment], RowFilter(1)), base)
    assert len(base) == 36 + 12
    seen = np.abs(expected) > 1e-9
    np.testing.assert_allclose(fit.params[seen], expected[seen], rtol=1e-8)


def test_link_rows_alone_have_one_null_direction_the_truth_itself() -> None:
    model = model_of("spatial", friction="none")
    segment = exact_segment("spatial")
    rows = np.zeros((0, len(model.names)))
    for _, blocks in model.row_blocks(segment):
        for group, block in zip(model.groups, blocks, strict=True):
            if group.name.startswith("link:"):
                wide = np.zeros((len(block), len(model.names)))
                wide[:, group.columns] = block
                rows = np.vstack([rows, wide])
    base = model.base()
    kept = base.independent[np.abs(rows[:, base.independent]).max(axis=0) > 0]  # a rotor on the base moves no link
    columns = rows[:, kept]
    scaled = columns / np.linalg.norm(columns, axis=0)
    singular = np.linalg.svd(scaled, compute_uv=False)
    assert singular[-1] < 1e-10 * singular[0] < singular[-2]
    truth = base.of(truth_of("spatial", model))[np.isin(base.independent, kept)]
    assert np.abs(columns @ truth).max() < 1e-9 * np.abs(columns * truth).max()


def test_known_wrenches_on_the_links_are_the_target_of_link_rows() -> None:
    rng = np.random.default_rng(5)
    for rows in ("motor", "sum"):
        model = model_of("spatial", rows=rows)
        segment = exact_segment("spatial", external=True)
        base = model.base()
        statistics = accumulate(model, "exact", [segment], RowFilter(1))
        fit = fit_base(statistics, base)
        expected = base.of(truth_of("spatial", model))
        np.testing.assert_allclose(fit.params, expected, rtol=1e-8, atol=1e-8)
        converged = fit_base(compliance_form(statistics, model, base), base)
        np.testing.assert_allclose(converged.params, expected, rtol=1e-8, atol=1e-8)
    assert np.abs(segment.external).max() > 1.0
    blind = Segment(**{**vars(segment), "external": rng.normal(0, 20, segment.q.shape)})
    wrong = fit_base(accumulate(model, "exact", [blind], RowFilter(1)), base)
    assert np.abs(wrong.params / expected - 1).max() > 0.01


def noisy_deflection(name: str, model: ElasticModel, noise: float) -> StatisticSet:
    segment = exact_segment(name, 4000)
    shaken = segment.qm + np.random.default_rng(8).normal(0, noise, segment.q.shape)
    return accumulate(model, "noisy", [Segment(**{**vars(segment), "qm": shaken})], RowFilter(1))


def stiffness(base: BaseParameters, params: np.ndarray) -> np.ndarray:
    return params[[k for k, label in enumerate(base.labels) if label.startswith("K_")]]


def test_noise_on_the_deflection_shrinks_plain_stiffness_but_not_in_compliance_form() -> None:
    plain, ours = model_of("spatial", rows="motor"), model_of("spatial", rows="sum")
    noise = 0.005  # [rad]; the deflection is 0.01 rad rms
    base = plain.base()
    rows = noisy_deflection("spatial", plain, noise)
    weights = fit_base(rows, base, method="ols").weights
    shrunk = stiffness(base, fit_base(rows, base, weights=weights).params) / K["spatial"]
    assert (shrunk < 0.9).all()
    statistics, base = noisy_deflection("spatial", ours, noise), ours.base()
    fit = fit_base(compliance_form(statistics, ours, base), base)
    found = stiffness(base, fit.params)
    np.testing.assert_allclose(found, K["spatial"], rtol=0.01)
    pulls = (found - K["spatial"]) / stiffness(base, fit.bse)
    assert (np.abs(pulls) < 4).all(), "the intervals are too narrow"
    theta = np.zeros(len(base.names))
    theta[base.independent] = fit.params
    for check, exact in zip(check_stiffness(statistics, ours, theta), K["spatial"], strict=True):
        assert check.direct < 0.9 * exact
        assert check.inverse == pytest.approx(exact, rel=0.01)
        assert check.reliability == pytest.approx(1 / (1 + (noise / 0.01) ** 2), rel=0.05)
        assert check.deflection_rms == pytest.approx(np.hypot(0.01, noise), rel=0.05)


def test_compliance_form_of_exact_signals_changes_nothing() -> None:
    model = model_of("spatial", rows="sum", damping=True, preload=True)
    base = model.base()
    statistics = accumulate(model, "exact", [exact_segment("spatial", damping=2.0)], RowFilter(1))
    fit = fit_base(compliance_form(statistics, model, base), base)
    expected = base.of(truth_of("spatial", model, damping=2.0))
    np.testing.assert_allclose(fit.params, expected, rtol=1e-8, atol=1e-8)


def test_a_joint_whose_spring_is_unseen_is_identified_as_rigid() -> None:
    model = model_of("spatial").with_rigid(["j2"])
    assert [group.name for group in model.groups] == ["link:j1", "motor:j1", "joint:j2", "link:j3", "motor:j3"]
    base = model.base()
    fit = fit_base(accumulate(model, "exact", [exact_segment("spatial")], RowFilter(1)), base)
    expected = base.of(truth_of("spatial", model))
    np.testing.assert_allclose(fit.params, expected, rtol=1e-8, atol=1e-8)
    assert "K_j2" in {model.names[k] for k in base.zero}


def test_reduced_model_is_exact_for_rotors_that_links_do_not_turn() -> None:
    """Spong's assumption holds where gears are so high that a rotor's own spin is all that counts."""
    robot = robot_of("spatial")
    ratio = [1e6, 1e6, 1e6]
    plant = ElasticPlant(robot, stiffness=K["spatial"], rotor_inertia=IA["spatial"], ratio=ratio)
    model = ElasticModel(robot, drive=Drive.build(3, reduction=ratio), friction="none", coupling="reduced", preload=False)
    motion = random_motion(robot, 5)
    theta = truth_of("spatial", model)
    total = model.balance(theta, motion)[2]
    for k in range(5):
        x, v = np.r_[motion.q[k], motion.qm[k]], np.r_[motion.v[k], motion.vm[k]]
        turn = plant.acceleration(x, v, np.zeros(3))
        free = Segment(
            "",
            0,
            1.0,
            motion.q[k, None],
            motion.v[k, None],
            turn[None, :3],
            None,
            motion.qm[k, None],
            motion.vm[k, None],
            turn[None, 3:],
        )
        left = model.balance(theta, free)
        assert max(np.abs(left[0]).max(), np.abs(left[1]).max()) < 1e-4 * np.abs(total).max()


def test_torque_is_the_sum_of_rows_and_needs_no_stiffness() -> None:
    model = model_of("spatial")
    theta, segment = truth_of("spatial", model), exact_segment("spatial", 20)
    alike = replace(segment, qm=segment.q, vm=segment.v, am=segment.a)
    stiff = model.torque(theta, segment.q, segment.v, segment.a)
    np.testing.assert_array_equal(stiff, model.torque_along(theta, alike))
    np.testing.assert_allclose(model.torque_along(theta, segment), segment.tau, atol=1e-8)
    np.testing.assert_allclose(model.balance(theta, segment)[1], segment.tau, atol=1e-8)
    without = theta.copy()
    without[[k for k, name in enumerate(model.names) if name.startswith("K_")]] = 0.0
    np.testing.assert_allclose(model.torque_along(without, segment), segment.tau, atol=1e-8)
    both = model.torque(np.column_stack([theta, 2 * theta]), segment.q[0], segment.v[0], segment.a[0])
    np.testing.assert_allclose(both[:, 1], 2 * both[:, 0])


def test_a_reloaded_model_has_the_same_columns() -> None:
    model = model_of("spatial", damping=True, coupling="reduced", rows="sum", rigid=["j2"], encoder_step=1e-5)
    again = ElasticModel.from_dict(json.loads(json.dumps(model.as_dict())))
    assert isinstance(again, ElasticModel)
    assert again.names == model.names
    assert again.fingerprint == model.fingerprint
    segment, theta = exact_segment("spatial", 5), np.arange(float(len(model.names)))
    assert (again.torque_along(theta, segment) == model.torque_along(theta, segment)).all()


def test_parameters_are_fourteen_a_joint() -> None:
    model = model_of("spatial")
    assert len(model.names) == 14 * 3
    assert {p.symbol: p.unit for p in model.parameters[30:34]} == {
        "Ia": "kg·m²",
        "Fv": "N·m·s/rad",
        "Fc": "N·m",
        "K": "N·m/rad",
    }
    assert all(p.nonnegative for p in model.parameters[30:34])


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


def test_a_segment_without_motors_is_refused() -> None:
    segment = exact_segment("spatial", 5)
    blind = Segment("x", 0.0, 1.0, segment.q, segment.v, segment.a)
    with pytest.raises(ModelError, match="motors' positions"):
        model_of("spatial").term_columns(blind)


def test_sliding_and_endless_joints_balance_too() -> None:
    joints = (("prismatic", "0 0 1"), ("continuous", "0 1 0"), ("prismatic", "1 0 0"), ("revolute", "0 0.6 0.8"))
    parts = ['<robot name="mixed">', '<link name="l0"/>']
    for k, (kind, axis) in enumerate(joints, 1):
        limit = "" if kind == "continuous" else '<limit lower="-1" upper="1" velocity="3" effort="90"/>'
        parts.append(
            f'<joint name="j{k}" type="{kind}"><parent link="l{k - 1}"/><child link="l{k}"/>'
            f'<origin xyz="0.1 0.05 0.2" rpy="0.2 0.1 0.4"/><axis xyz="{axis}"/>{limit}</joint><link name="l{k}"><inertial>'
            f'<origin xyz="0.05 -0.02 0.1"/><mass value="{6 - k}"/><inertia ixx="0.09" ixy="0.01" ixz="0" iyy="0.07" iyz="0" '
            'izz="0.05"/></inertial></link>'
        )
    robot = Robot.from_urdf("".join([*parts, "</robot>"]))
    ratio, k, ia, d = (
        [300.0, -50.0, 200.0, 40.0],
        np.array([9e4, 3000, 5e4, 900]),
        np.array([30.0, 1, 20, 0.4]),
        np.full(4, 2.0),
    )
    plant = ElasticPlant(robot, stiffness=k, rotor_inertia=ia, ratio=ratio, damping=d)
    model = ElasticModel(robot, drive=Drive.build(4, reduction=ratio), friction="none", damping=True, preload=False)
    motion = random_motion(robot, 12, seed=4)
    tau = np.random.default_rng(0).normal(0, 30, (12, 4))
    turn = np.array(
        [plant.acceleration(np.r_[motion.q[i], motion.qm[i]], np.r_[motion.v[i], motion.vm[i]], tau[i]) for i in range(12)]
    )
    segment = Segment("", 0.0, 1.0, motion.q, motion.v, turn[:, :4], tau, motion.qm, motion.vm, turn[:, 4:])
    values = {"Ia": ia, "K": k, "D": d}
    terms = [values[p.symbol][robot.joints.index(p.owner)] for p in model.parameters[40:]]
    link, motor, _ = model.balance(np.concatenate([lumped_inertials(robot).ravel(), terms]), segment)
    scale = np.abs(k * (motion.qm - motion.q)).max()
    assert np.abs(link).max() < 1e-11 * scale
    assert np.abs(motor - tau).max() < 1e-11 * scale
    units = {p.name: p.unit for p in model.parameters}
    assert (units["K_j1"], units["D_j1"], units["Ia_j1"]) == ("N/m", "N·s/m", "kg")
