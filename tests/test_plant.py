"""Plants, friction truths and integrators against closed forms, MuJoCo and brute force."""

import itertools

import numpy as np
import pinocchio as pin
import pytest
import yaml
from conftest import arm_urdf, inertials, inverse_dynamics
from energies import rigid_energy
from hypothesis import given, settings
from hypothesis import strategies as st

from urdf_ident import DynamicModel, Robot
from urdf_ident.errors import ModelError, ShapeError, SimulationError
from urdf_ident.friction import FRICTION, AxisMotion, Coulomb, Dahl, LoadCoulomb, Stribeck, Viscous, friction_from_mapping
from urdf_ident.model.bundled import robot_path, truth_path
from urdf_ident.simulation.plant import RigidPlant, StickSlip, _projected_gauss_seidel
from urdf_ident.simulation.truth import FrictionTruth, read_truth, rotors_and_friction

UR = Robot.from_urdf(robot_path("ur10e"))
SLED = Robot.from_urdf(robot_path("emps"))  # one mass on a rail: everything has a closed form
MASS = 95.1089
NOTHING = np.zeros(0)


def constant(tau):
    force = np.atleast_1d(np.asarray(tau, dtype=float))
    return lambda t, q, v, state: (force, np.zeros_like(state))


def sled(*terms) -> RigidPlant:
    return RigidPlant.create(SLED, friction=FrictionTruth(1, terms))


def run(plant: RigidPlant, law, q, v, duration: float, step: float = 1e-3):
    """Fixed steps of rk4; times, positions, velocities and friction."""
    x, w = np.atleast_1d(q).astype(float), np.atleast_1d(v).astype(float)
    solver, out = StickSlip(plant, law, x, w, NOTHING), []
    for k in range(round(duration / step) + 1):
        now = solver.rates(k * step)
        out.append((k * step, solver.x.copy(), solver.w.copy(), now.friction.copy(), now.a.copy()))
        solver.step(k * step, step)
    t, *rest = (np.array(column) for column in zip(*out, strict=True))
    return t, *rest


# --- rigid dynamics ---------------------------------------------------------------------------------------------------


def test_energy_of_an_undamped_unforced_arm_is_kept() -> None:
    plant = RigidPlant.create(UR, rotor_inertia=np.full(6, 0.1))
    law, x, w = constant(np.zeros(6)), np.array([0.1, -1.0, 0.8, 0.3, 0.5, 0.2]), np.zeros(6)
    q, v = (each[::25] for each in run(plant, law, x, w, 3.0, 1e-3)[1:3])
    kinetic, potential = np.array([rigid_energy(plant, *row) for row in zip(q, v, strict=True)]).T
    total = kinetic + potential
    assert kinetic.max() > 50.0  # it does fall about
    assert np.abs(total - total[0]).max() < 1e-6 * kinetic.max()


def test_rk4_is_of_fourth_order() -> None:
    plant = RigidPlant.create(UR, rotor_inertia=np.full(6, 0.3), friction=FrictionTruth(6, (Viscous.of(np.full(6, 2.0)),)))
    law = constant([20.0, 30, 10, 2, 1, 0.5])
    ends = [run(plant, law, np.zeros(6), np.zeros(6), 0.5, step)[1][-1] for step in (0.02, 0.01, 0.005, 1.25e-3)]
    errors = [np.abs(q - ends[-1]).max() for q in ends[:-1]]
    assert errors[0] / errors[1] == pytest.approx(16, rel=0.35)
    assert errors[1] / errors[2] == pytest.approx(16, rel=0.35)


def test_coupled_rotors_couple_the_joints() -> None:
    tx40 = Robot.from_urdf(robot_path("tx40"))
    truth = read_truth(truth_path("tx40"), tx40)
    plant = RigidPlant.create(tx40, rotor_inertia=truth.rotor)
    rng = np.random.default_rng(5)
    q, v, tau = rng.uniform(-1, 1, (3, 6))
    a = plant.accelerate(q, v, tau)
    rigid = pin.rnea(tx40.model, tx40.model.createData(), q, v, a)
    np.testing.assert_allclose(rigid + truth.rotor @ a, tau, atol=1e-10)
    assert truth.rotor[4, 5] == pytest.approx(0.0114)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"theta": np.zeros(60)}, SimulationError),
        ({"theta": np.zeros(59)}, ShapeError),
        ({"rotor_inertia": np.full(6, -1.0)}, ModelError),
        ({"rotor_inertia": np.zeros(5)}, ShapeError),
        ({"gravity": [0, 0]}, ShapeError),
        ({"friction": FrictionTruth(3)}, ModelError),
    ],
)
def test_impossible_plants_are_refused(arguments: dict, error: type[Exception]) -> None:
    with pytest.raises(error):
        RigidPlant.create(UR, **arguments)


# --- friction that sticks ---------------------------------------------------------------------------------------------


def test_below_stiction_a_joint_holds_at_exactly_zero() -> None:
    _, q, v, friction, a = run(sled(Coulomb.of(20.0), Stribeck.of(5.0, velocity=0.01)), constant(24.9), 0.1, 0.0, 1.0)
    assert (v == 0).all()
    assert (a == 0).all()
    assert (q == 0.1).all()
    np.testing.assert_allclose(friction, 24.9, rtol=1e-12)
    _, _, moving, *_ = run(sled(Coulomb.of(20.0), Stribeck.of(5.0, velocity=0.01)), constant(25.1), 0.1, 0.0, 1.0)
    assert moving[-1] > 0.001


def test_a_sliding_mass_stops_where_and_when_it_must_and_stays() -> None:
    speed, level = 0.2, 20.0
    t, q, v, friction, _ = run(sled(Coulomb.of(level)), constant(0.0), 0.0, speed, 2.0, step=7e-3)
    stop = speed * MASS / level
    assert (v[t > stop] == 0).all()
    assert (v[t < stop] > 0).all()
    assert q[-1, 0] == pytest.approx(MASS * speed**2 / (2 * level), rel=1e-9)
    np.testing.assert_allclose(friction[t > stop], 0.0, atol=1e-12)  # nothing pushes: nothing holds


def test_oscillation_with_dry_friction_loses_its_amplitude_linearly() -> None:
    stiffness, level = 3000.0, 30.0
    law = lambda t, q, v, state: (-stiffness * q, state)  # noqa: E731
    _, q, v, _, _ = run(sled(Coulomb.of(level)), law, 0.11, 0.0, 6.0, step=5e-3)
    turns = [0.11 * (-1) ** k - np.sign((-1) ** k) * 2 * k * level / stiffness for k in range(6)]
    found = [q[0, 0], *(q[k, 0] for k in range(1, len(v)) if v[k - 1, 0] * v[k, 0] < 0 or (v[k, 0] == 0 != v[k - 1, 0]))]
    np.testing.assert_allclose(found, turns[: len(found)], atol=2e-4)
    assert len(found) == 6
    assert abs(q[-1, 0]) <= level / stiffness  # within the zone where friction wins
    assert v[-1, 0] == 0


def test_a_whole_arm_can_hang_on_its_friction() -> None:
    gravity = np.abs(pin.rnea(UR.model, UR.model.createData(), np.full(6, 0.3), np.zeros(6), np.zeros(6)))
    held = RigidPlant.create(UR, friction=FrictionTruth(6, (Coulomb.of(gravity + 0.1),)))
    _, _, v, friction, _ = run(held, constant(np.zeros(6)), np.full(6, 0.3), np.zeros(6), 0.1)
    assert (v == 0).all()
    np.testing.assert_allclose(friction[-1], -held.bias(np.full(6, 0.3), np.zeros(6)), atol=1e-9)
    weak = np.where(np.arange(6) == 2, 0.5 * gravity, 2 * gravity + 40.0)
    loose = RigidPlant.create(UR, friction=FrictionTruth(6, (Coulomb.of(weak),)))
    _, _, v, _, _ = run(loose, constant(np.zeros(6)), np.full(6, 0.3), np.zeros(6), 0.05)
    assert v[-1, 2] != 0
    assert (np.delete(v, 2, axis=1) == 0).all()


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), size=st.integers(1, 4))
def test_complementarity_agrees_with_trying_all_cases(seed: int, size: int) -> None:
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(size, size))
    matrix, free = root @ root.T + 0.1 * np.eye(size), rng.normal(size=size) * 3
    low, high = -rng.uniform(0.1, 2, size), rng.uniform(0.1, 2, size)
    hold = _projected_gauss_seidel(matrix, free, low, high)
    found = []
    for case in itertools.product((-1, 0, 1), repeat=size):
        kind = np.array(case)
        trial = np.where(kind > 0, high, np.where(kind < 0, low, 0.0))
        stick = kind == 0
        if stick.any():
            trial[stick] = np.linalg.solve(matrix[np.ix_(stick, stick)], (free - matrix @ trial)[stick])
        a = free - matrix @ trial
        inside = (trial[stick] >= low[stick] - 1e-9) & (trial[stick] <= high[stick] + 1e-9)
        if inside.all() and (a[~stick] * kind[~stick] >= -1e-9).all():
            found.append(trial)
    assert found
    assert min(np.abs(hold - trial).max() for trial in found) < 1e-6


def test_a_coupled_motor_sticks_while_its_joints_move() -> None:
    robot = Robot.from_urdf(robot_path("tx40"))
    reduction = read_truth(truth_path("tx40"), robot).reduction
    friction = FrictionTruth(6, (), (Coulomb.of([0, 0, 0, 0, 0, 1.0]),), reduction)
    plant = RigidPlant.create(robot, rotor_inertia=np.full(6, 0.05), friction=friction, gravity=np.zeros(3))
    law = constant([0, 0, 0, 0, 2.0, 0.0])  # pushes joint 5 alone; motor 6 can hold 32 N·m on q5 + q6
    _, _, v, torque, _ = run(plant, law, np.full(6, 0.2), np.zeros(6), 0.3)
    assert v[-1, 4] > 0.5
    np.testing.assert_allclose(v[:, 4] + v[:, 5], 0, atol=1e-12)
    np.testing.assert_allclose(torque[-1, 4], torque[-1, 5], rtol=1e-9)  # the motor loads both joints alike
    assert np.abs(torque[:, :4]).max() == 0


# --- friction laws ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("coefficient", [0.05, 0.3])
def test_load_dependent_friction_follows_the_transmitted_torque(coefficient: float) -> None:
    rotor = np.full(6, 0.5)
    friction = FrictionTruth(6, (LoadCoulomb.of(np.full(6, coefficient)), Coulomb.of(np.full(6, 1.0))))
    plant = RigidPlant.create(UR, rotor_inertia=rotor, friction=friction)
    rng = np.random.default_rng(8)
    q, v, tau = rng.uniform(-1, 1, (3, 6)) * np.array([[1], [1], [80]])
    solver = StickSlip(plant, constant(tau), q, v, NOTHING)
    now = solver.rates(0.0)
    transmitted = pin.rnea(UR.model, UR.model.createData(), q, v, now.a)
    np.testing.assert_allclose(now.friction, np.sign(v) * (1.0 + coefficient * np.abs(transmitted)), rtol=1e-8)
    np.testing.assert_allclose(inverse_dynamics(plant, q, v, now.a) + now.friction, tau, atol=1e-8)


def test_bristles_close_a_hysteresis_loop() -> None:
    law = lambda t, q, v, state: (np.array([-40000.0 * (q[0] - 0.002 * np.sin(4 * t)) - 4000.0 * v[0]]), state)  # noqa: E731
    t, q, _, friction, _ = run(sled(Dahl.of(20.0, width=2e-4)), law, 0.0, 0.0, 3.2, step=5e-4)
    last = t > 1.6
    force, place = friction[last, 0], q[last, 0]
    loss = np.sum((force[1:] + force[:-1]) / 2 * np.diff(place))
    swing = np.ptp(place)
    assert loss == pytest.approx(20.0 * 2 * swing, rel=0.2)  # about one period: up and down against 20 N
    assert np.abs(force).max() <= 20.0 * (1 + 1e-9)


def test_friction_from_a_mapping() -> None:
    read = friction_from_mapping({"viscous": [1, 2], "stribeck": {"Fs": 0.5, "velocity": [0.1, 0.2]}})
    assert [type(each.law) for each in read] == [Viscous, Stribeck]
    for wrong, message in (
        ({"viscos": 1.0}, "did you mean 'viscous'"),
        ({"stribeck": {"velocity": 1.0}}, "lacks a field"),
        ({"stribeck": {"Fs": 1.0, "speed": 2.0}}, "unknown field"),
        ({"viscous": "much"}, "no numbers"),
        ({"viscous": float("nan")}, "not finite"),
    ):
        with pytest.raises(ModelError, match=message):
            friction_from_mapping(wrong)


# --- truth files ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rotor_inertias: [1]", "did you mean 'rotor_inertia'"),
        ("rotor_inertia: [1, 2]", "one finite number per joint"),
        ("joints: [a, b]", "has no entry for joint 'carriage_joint'"),
        ("motor: {inertia: [1]}", "need the gear ratios"),
        ("{gear: [1], motor: [1]}", "'motor' is no mapping"),
        ("{gear: [1], friction: text}", "'friction' is no mapping"),
        ("{gear: [1], motor: {inertia: [1], friction: 1.5}}", "'friction' is no mapping"),
        ("reduction: [1]", "not a square matrix"),
        ("[1, 2", "not YAML"),
        ("- 1", "no mapping"),
        ("friction: {coulom: 1}", "did you mean 'coulomb'"),
    ],
)
def test_bad_truth_files_are_refused(tmp_path, text: str, message: str) -> None:
    path = tmp_path / "truth.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ModelError, match=message):
        read_truth(path, SLED)


def test_the_order_of_joints_in_a_truth_file_does_not_matter(tmp_path) -> None:
    """The coupled wrist of the TX40, whose motor side has friction of its own, told from its last joint to its first."""

    def turned(value):
        if isinstance(value, dict):
            return {key: turned(entry) for key, entry in value.items()}
        return [turned(entry) for entry in reversed(value)] if isinstance(value, list) else value

    robot = Robot.from_urdf(robot_path("tx40"))
    told = yaml.safe_load(truth_path("tx40").read_text(encoding="utf-8"))
    path = tmp_path / "truth.yaml"
    path.write_text(yaml.safe_dump(turned(told)), encoding="utf-8")
    usual, other = read_truth(truth_path("tx40"), robot), read_truth(path, robot)
    np.testing.assert_allclose(other.rotor, usual.rotor)
    np.testing.assert_allclose(other.friction.reduction, usual.friction.reduction)
    v, torques = np.random.default_rng(0).normal(size=6), []
    for truth in (other, usual):
        friction, rates = truth.friction, truth.friction.velocity(v)
        torques.append(friction.to_joints(friction.torque(rates, np.sign(rates), np.zeros(0))))
    np.testing.assert_allclose(*torques)


# ---- Every friction law that can be identified can be simulated, and means the same there ----

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


def test_first_moments_without_mass_are_refused() -> None:
    theta = inertials(UR)
    theta[50:54] = 0, 0, 0, 0.01
    with pytest.raises(ModelError, match="first moments without mass"):
        RigidPlant.create(UR, theta=theta)


def test_coupled_motors_that_stick_hold_all_joints_exactly() -> None:
    """No joint has friction of its own, and no motor turns with one joint alone."""
    turn = np.eye(6) + 0.5 * np.eye(6, k=1) + 0.5 * np.eye(6, k=-1)
    friction = FrictionTruth(6, motor=(Coulomb.of(np.full(6, 400.0)),), reduction=turn)
    plant, calls = RigidPlant.create(UR, friction=friction), []

    def law(_t, _q, _v, state):
        calls.append(1)
        return np.zeros(6), state

    solver = StickSlip(plant, law, np.full(6, 0.3), 0.1 * turn[0], NOTHING)
    for k in range(400):
        if k == 200:
            assert (solver.w == 0).all()
            stopped, before = solver.x, len(calls)
        solver.step(k * 1e-3, 1e-3)
    np.testing.assert_array_equal(solver.x, stopped)
    assert len(calls) - before <= 201
    now = solver.rates(0.4)
    np.testing.assert_allclose(now.friction, -plant.bias(solver.x, solver.w), atol=1e-9)


def test_load_dependent_friction_alone_can_hold_an_arm() -> None:
    """A worm gear: coefficient above 1 and nothing back-drives it."""
    plant = RigidPlant.create(UR, friction=FrictionTruth(6, (LoadCoulomb.of(np.full(6, 1.2)),)))
    _, _, v, _, _ = run(plant, constant(np.zeros(6)), np.full(6, 0.3), np.zeros(6), 0.05)
    assert (v == 0).all()
