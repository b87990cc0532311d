"""Elastic joints against a Lagrangian that is derived here, symbolically, and against exact signals."""

from __future__ import annotations

import numpy as np
import pytest
import sympy

from urdf_ident.estimation.fit import fit_base
from urdf_ident.estimation.rows import RowFilter, accumulate
from urdf_ident.model.base import random_motion
from urdf_ident.model.drive import Drive
from urdf_ident.model.elasticity import ElasticModel
from urdf_ident.model.library import robot_path
from urdf_ident.model.prior import lumped_inertials
from urdf_ident.model.robot import Robot
from urdf_ident.model.rotors import joint_axes
from urdf_ident.model.segment import Segment
from urdf_ident.simulation.elastic_drive import MotorFriction
from urdf_ident.simulation.elastic_plant import ElasticPlant

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
    n, model, axes = robot.n, robot.model, joint_axes(robot)
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
    friction = MotorFriction.build(n, viscous=FV[:n], coulomb=FC[:n], width=0.02)
    plant = ElasticPlant(
        robot, stiffness=K[name], rotor_inertia=IA[name], ratio=RATIO[name], damping=damping, friction=friction
    )
    rng = np.random.default_rng(5)
    q, v, vm = rng.uniform(-1.5, 1.5, (samples, n)), rng.normal(0, 1.5, (samples, n)), rng.normal(0, 1.5, (samples, n))
    qm = q + rng.normal(0, 0.01, (samples, n))
    tau = rng.normal(0, 60, (samples, n))
    load = rng.normal(0, 20, (samples, n)) if external else np.zeros((samples, n))
    turn = np.array([
        plant.acceleration(np.r_[q[k], qm[k]], np.r_[v[k], vm[k]], tau[k], load[k]) for k in range(samples)
    ])  # fmt: skip
    return Segment("exact", 0.0, 1000.0, q, v, turn[:, :n], tau, qm, vm, turn[:, n:])


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
