"""Elastic joints behind motors that move several joints: balances, plant, and the way through the command line."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from commands import run, write_yaml
from conftest import rnea
from energies import elastic_energy
from motors import OpenLoop, motor_friction
from test_elasticity import robot_of

from urdf_ident.errors import LogError, ModelError
from urdf_ident.estimation.elastic import check_stiffness, compliance_form
from urdf_ident.logs.read import read_recording
from urdf_ident.model.base import BaseParameters
from urdf_ident.model.drive import Drive
from urdf_ident.model.elasticity import ElasticModel
from urdf_ident.model.prior import lumped_inertials
from urdf_ident.motion.fourier import random_fourier
from urdf_ident.motion.limits import Limits
from urdf_ident.pipeline.experiment import true_plant
from urdf_ident.pipeline.identify import identify
from urdf_ident.project import parse_project
from urdf_ident.samples import Segment
from urdf_ident.simulation.elastic.plant import ElasticPlant, MotorFriction
from urdf_ident.statistics.accumulate import accumulate
from urdf_ident.statistics.fit import fit_base
from urdf_ident.statistics.rows import RowFilter
from urdf_ident.statistics.statistic import StatisticSet

DRIVES = {
    "wrist": [[-60.0, 0, 0], [0, 45, 0], [0, 32, -32]],
    "differential": [[-60.0, 0, 0], [0, 30, 30], [0, 30, -30]],
    "crossed": [[-60.0, 0, 0], [0, 45, 30], [0, 40, 0]],  # motor 3 does not move joint 3
}
#: After the gears.
K, IA, D, FV, FC = (np.array(x) for x in ([9e3, 4e3, 1.5e3], [1.5, 0.8, 0.3], [3.0, 2.0, 1.0], [10.0, 5, 3], [8.0, 4, 2]))


def model_of(name: str, **options: object) -> ElasticModel:
    robot = robot_of("spatial")
    laws = ["viscous", {"term": "coulomb", "width": 1.0}]
    settings = {"friction": laws, "preload": False, "damping": True, **options}
    return ElasticModel(robot, drive=Drive.build(3, reduction=DRIVES[name]), **settings)  # type: ignore[arg-type]


def plant_of(name: str) -> ElasticPlant:
    drive = Drive.build(3, reduction=DRIVES[name])
    smooth = MotorFriction(motor_friction(3, viscous=FV, coulomb=FC).truth, 1 / np.where(drive.coupled, abs(drive.ratio), 1))
    return ElasticPlant(
        robot_of("spatial"),
        stiffness=K,
        rotor_inertia=IA,
        ratio=drive.ratio,
        geared=drive.geared,
        damping=D,
        friction=smooth,
    )


def truth_of(model: ElasticModel) -> np.ndarray:
    """Its parameters; those of coupled motors before the gear."""
    values = {"Ia": IA, "Fv": FV, "Fc": FC, "K": K, "D": D, "preload": np.zeros(3)}
    joints, terms = model.robot.joints, []
    for p in model.parameters[model.n_inertial :]:
        j, power = joints.index(p.owner), 1 if p.symbol == "Fcm" else 2
        own = values[p.symbol.removesuffix("m")][j]
        terms.append(own / abs(model.drive.ratio[j]) ** power if p.symbol.endswith("m") else own)
    return np.concatenate([lumped_inertials(model.robot).ravel(), terms])


def exact_segment(name: str, samples: int = 400) -> Segment:
    """Random states and torques, accelerations from the plant; motors as the joints would move were they rigid."""
    plant, rng = plant_of(name), np.random.default_rng(5)
    q, v, vm = rng.uniform(-1.5, 1.5, (samples, 3)), rng.normal(0, 1.5, (samples, 3)), rng.normal(0, 1.5, (samples, 3))
    qm, tau = plant.at_motors(q) + rng.normal(0, 0.01, (samples, 3)), rng.normal(0, 60, (samples, 3))
    turn = np.array([plant.acceleration(np.r_[q[k], qm[k]], np.r_[v[k], vm[k]], tau[k]) for k in range(samples)])
    back = np.linalg.inv(plant.geared).T
    motors = (motion @ back for motion in (qm, vm, turn[:, 3:]))
    return Segment("exact", 0.0, 1000.0, q, v, turn[:, :3], tau @ plant.geared, *motors)


@pytest.mark.parametrize("name", list(DRIVES))
def test_plant_and_model_balance_what_is_written_out_by_hand(name: str) -> None:
    model, segment = model_of(name), exact_segment(name, 30)
    G, robot = model.drive.geared, model.robot
    qm, vm, am = (x @ G.T for x in (segment.qm, segment.vm, segment.am))
    spring = K * (qm - segment.q @ G.T) + D * (vm - segment.v @ G.T)
    # the first motor moves its joint alone and stands on the base: no rotor is turned by a link
    links = rnea(robot.model, segment.q, segment.v, segment.a)
    np.testing.assert_allclose(links, spring @ G, atol=1e-8)
    width = np.where(model.drive.coupled, 1.0 / np.abs(model.drive.ratio), 1.0)
    motors = IA * am + FV * vm + FC * np.tanh(vm / width) + spring
    np.testing.assert_allclose(segment.tau, motors @ G, atol=1e-8)
    link, motor, total = model.balance(truth_of(model), segment)
    np.testing.assert_allclose(link, 0, atol=1e-8)
    np.testing.assert_allclose(motor, segment.tau, atol=1e-8)
    np.testing.assert_allclose(total, segment.tau, atol=1e-8)
    np.testing.assert_allclose(model.spring_torque(truth_of(model), segment), spring @ G, atol=1e-8)


@pytest.mark.parametrize("rows", ["motor", "sum"])
@pytest.mark.parametrize("name", list(DRIVES))
def test_exact_signals_give_every_identifiable_parameter(name: str, rows: str) -> None:
    model = model_of(name, rows=rows, preload=True)
    base = model.base()
    statistics = accumulate(model, "exact", [exact_segment(name)], RowFilter(1))
    if rows == "sum":
        statistics = compliance_form(statistics, model, base)
    fit = fit_base(statistics, base)
    assert fit.seen.all()
    np.testing.assert_allclose(fit.params, base.of(truth_of(model)), rtol=1e-7, atol=1e-7)


def test_every_row_holds_one_motor_and_one_spring() -> None:
    model = model_of("wrist", rows="sum")
    assert [g.name for g in model.groups] == ["link:j1", "joint:j1", "link:j2", "actuator:j2", "link:j3", "actuator:j3"]
    for group in model.groups:
        owners = {p.owner for p in (model.parameters[k] for k in group.columns if k >= 30) if p.symbol.startswith(("K", "F"))}
        assert owners == {model.robot.joints[group.joint]}
    stiff = model.with_rigid(["j2"])
    assert [g.name for g in stiff.groups][2:4] == ["actuator:j2", "link:j3"], "one of a coupled pair may be rigid"
    base = stiff.base()
    fit = fit_base(accumulate(stiff, "exact", [exact_segment("wrist")], RowFilter(1)), base)
    np.testing.assert_allclose(fit.params, base.of(truth_of(stiff)), rtol=1e-7, atol=1e-7)
    assert {stiff.names[k] for k in base.zero} >= {"Km_j2", "Dm_j2"}
    again = ElasticModel.from_dict(json.loads(json.dumps(stiff.as_dict())))
    assert again.fingerprint == stiff.fingerprint
    units = {p.name: p.unit for p in model.parameters}
    assert (units["Km_j2"], units["Iam_j3"], units["K_j1"]) == ("N·m/rad", "kg·m²", "N·m/rad")


def noisy(model: ElasticModel, noise: float) -> StatisticSet:
    """Exact rows whose deflections are read with independent noise at each motor [rad after the gear]."""
    exact, rng = exact_segment("wrist", 4000), np.random.default_rng(1)
    qm = exact.qm + rng.normal(0, noise, exact.q.shape) @ np.linalg.inv(model.drive.geared).T  # type: ignore[operator]
    tau = exact.tau + rng.normal(0, 1.0, exact.q.shape)  # type: ignore[operator]
    seen = Segment("noisy", 0.0, 1000.0, exact.q, exact.v, exact.a, tau, qm, exact.vm, exact.am)
    return accumulate(model, "noisy", [seen], RowFilter(1))


def stiffness(model: ElasticModel, base: BaseParameters, params: np.ndarray) -> np.ndarray:
    theta = base.embedded(params)
    return np.array([theta[model.of_spring(j)] * model.after_gear(model.of_spring(j)) for j in range(3)])


def test_noise_on_the_deflection_shrinks_no_stiffness_in_compliance_form() -> None:
    noise = 0.005  # [rad]; the deflection is 0.01 rad rms
    model = model_of("wrist", rows="sum")
    statistics, base = noisy(model, noise), model.base()
    fit = fit_base(compliance_form(statistics, model, base), base)
    found, error = stiffness(model, base, fit.params), stiffness(model, base, fit.bse)
    np.testing.assert_allclose(found, K, rtol=0.02)
    assert (np.abs(found - K) < 4 * error).all(), "the intervals are too narrow"
    for check, exact_value in zip(check_stiffness(statistics, model, base.embedded(fit.params)), K, strict=True):
        assert check.direct < 0.9 * exact_value
        assert check.inverse == pytest.approx(exact_value, rel=0.02)
        assert check.deflection_rms == pytest.approx(np.hypot(0.01, noise), rel=0.05)


def test_an_unforced_coupled_plant_keeps_its_energy_and_rests_in_equilibrium() -> None:
    drive = Drive.build(3, reduction=DRIVES["differential"])
    plant = ElasticPlant(robot_of("spatial"), stiffness=K, rotor_inertia=IA, ratio=drive.ratio, geared=drive.geared)
    start = np.array([0.3, 0.5, -0.2])
    rest = np.concatenate([start, plant.rest(start)])
    np.testing.assert_allclose(plant.acceleration(rest, np.zeros(6), plant.gravity(start[None])[0]), 0, atol=1e-8)
    motion = plant.simulate(OpenLoop(3), 3.0, start=start, rate=100.0, step=2e-3)
    states = zip(np.hstack([motion.q, motion.qm]), np.hstack([motion.v, motion.vm]), strict=True)
    kinetic, potential = np.array([elastic_energy(plant, x, v) for x, v in states]).T
    assert kinetic.max() > 5.0, "it does not fall"
    assert np.abs(kinetic + potential - kinetic[0] - potential[0]).max() < 1e-6 * kinetic.max()


def test_slopes_of_a_coupled_plant_are_the_derivatives_of_its_acceleration() -> None:
    plant, law = plant_of("crossed"), OpenLoop(3)
    rng = np.random.default_rng(0)
    x, v, tau = rng.normal(0, 0.3, 6), rng.normal(0, 0.3, 6), rng.normal(0, 9, 3)
    by_state, by_speed = plant.slopes(x, v, tau, law)
    step = 1e-6
    for k, e in enumerate(step * np.eye(6)):
        state = plant.acceleration(x + e, v, tau) - plant.acceleration(x - e, v, tau)
        speed = plant.acceleration(x, v + e, tau) - plant.acceleration(x, v - e, tau)
        np.testing.assert_allclose(by_state[:, k], state / (2 * step), rtol=1e-5, atol=1e-3)
        np.testing.assert_allclose(by_speed[:, k], speed / (2 * step), rtol=1e-5, atol=1e-3)


# --- through the command line -------------------------------------------------------------------------------------

ARM = robot_of("spatial")
REDUCTION = np.array(DRIVES["wrist"])
SETTINGS = {
    "drive": {"reduction": REDUCTION.tolist()},
    "model": {"elastic": True},
    "simulation": {
        "rate": 250,
        "step": 2e-3,
        "controller": {"bandwidth": 3.0},
        "sensors": {"counts": 2.0**23, "motor_counts": 2.0**17, "torque_noise": {"snr": 40}},
    },
}
TRUTH = {
    "joints": list(ARM.joints),
    "reduction": REDUCTION.tolist(),
    "motor": {"inertia": (IA / np.diag(REDUCTION) ** 2).tolist()},
    "friction": {"viscous": FV.tolist(), "coulomb": FC.tolist()},
    "stiffness": K.tolist(),
}


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("coupled")
    config, truth = write_yaml(folder / "arm.yaml", SETTINGS), write_yaml(folder / "truth.yaml", TRUTH)
    urdf, log = folder / "spatial.urdf", folder / "run.csv"
    urdf.write_text(ARM.urdf, encoding="utf-8")
    random_fourier(Limits.from_robot(ARM), 8.0, 5, 1, fill=0.8).write(folder / "motion.csv", rate=250)
    done = run("simulate", urdf, folder / "motion.csv", "-c", config, "--truth", truth, "-o", log)
    assert done.returncode == 0, done.stderr
    done = run("identify", urdf, log, "-c", config, "-o", folder / "out")
    assert done.returncode == 0, done.stderr
    return folder


def test_a_coupled_wrist_gives_its_stiffness_back(work: Path) -> None:
    data = json.loads((work / "out" / "identification.json").read_text(encoding="utf-8"))
    for joint, stiff, rotor, r in zip(ARM.joints, K, IA, np.diag(REDUCTION), strict=True):
        found = data["elasticity"][joint]
        assert found["seen"], joint
        assert found["stiffness"]["value"] == pytest.approx(stiff, rel=0.02)
        assert found["rotor_inertia"]["value"] == pytest.approx(rotor, rel=0.1)
        assert found["rotor_inertia_at_motor"]["value"] == pytest.approx(rotor / r**2, rel=0.1)
        assert found["gear_ratio"] == r
        assert found["stiffness"]["unit"] == "N·m/rad"
        assert found["stiffness_bounds"][1] == pytest.approx(stiff, rel=0.03)
    names = {entry["name"]: entry["unit"] for entry in data["parameters"]["standard"]}
    assert names["Km_j3"] == "N·m/rad"
    assert "K_j3" not in names


def test_exports_hold_friction_and_rotors_of_both_motors_and_no_springs(work: Path) -> None:
    root = ElementTree.parse(work / "out" / "spatial_identified.urdf").getroot()
    held = {joint.get("name"): joint.find("dynamics") for joint in root.iter("joint")}
    second, third = held["j2"], held["j3"]
    assert second is not None
    assert third is not None
    # friction is at the motors after their gears: joint 2, moving alone, turns both of them by as much
    assert float(second.get("damping", 0)) == pytest.approx(FV[1] + FV[2], rel=0.05)
    assert float(second.get("friction", 0)) == pytest.approx(FC[1] + FC[2], rel=0.05)
    assert float(third.get("damping", 0)) == pytest.approx(FV[2], rel=0.05)
    target = work / "arm.xml"
    done = run("export", work / "out" / "identification.json", "--mjcf", target)
    assert done.returncode == 0, done.stderr
    joints = {joint.get("name"): joint for joint in ElementTree.parse(target).getroot().iter("joint")}
    assert float(joints["j2"].get("armature", 0)) == pytest.approx(IA[1] + IA[2], rel=0.1)
    assert float(joints["j3"].get("armature", 0)) == pytest.approx(IA[2], rel=0.1)


def test_a_result_is_a_truth_again(work: Path) -> None:
    project = parse_project(SETTINGS)
    plant = true_plant(project, ARM, work / "out" / "identification.json")
    exact = true_plant(project, ARM, work / "truth.yaml")
    assert isinstance(plant, ElasticPlant)
    assert isinstance(exact, ElasticPlant)
    np.testing.assert_allclose(plant.stiffness, K, rtol=0.02)
    np.testing.assert_allclose(plant.rotor_inertia, exact.rotor_inertia, rtol=0.1)
    np.testing.assert_allclose(exact.rotor_inertia, IA)
    v = np.array([0.7, -0.4, 0.6])
    np.testing.assert_allclose(plant.friction.torque(v), exact.friction.torque(v), rtol=0.1)
    assert not isinstance(true_plant(parse_project({}), ARM, work / "out" / "identification.json"), ElasticPlant)


def test_a_result_validates_another_motion(work: Path) -> None:
    random_fourier(Limits.from_robot(ARM), 4.0, 4, 7, fill=0.4).write(work / "other.csv", rate=250)
    arguments = ("-c", work / "arm.yaml", "--truth", work / "truth.yaml", "--seed", 3, "-o", work / "other_run.csv")
    done = run("simulate", work / "spatial.urdf", work / "other.csv", *arguments)
    assert done.returncode == 0, done.stderr
    done = run("validate", work / "out" / "identification.json", work / "other_run.csv", "--json")
    assert done.returncode == 0, done.stderr
    springs = json.loads(done.stdout)[0]["springs"]
    assert [item["joint"] for item in springs] == list(ARM.joints)
    assert max(item["motor_relative"] for item in springs) < 0.08


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ([0, 0, -32], r"j3.*gear ratio does not fit"),  # the coupling is forgotten
        ([0, 32, 32], r"j3.*gear ratios do not fit.*\[0, (32|31).*, -(32|31).*\]"),
    ],
)
def test_a_wrong_coupling_is_refused(work: Path, row: list[float], words: str) -> None:
    reduction = [*REDUCTION.tolist()[:2], row]
    project = parse_project({**SETTINGS, "drive": {"reduction": reduction}})
    model = project.build_model(ARM)
    with pytest.raises(LogError, match=words) as caught:
        identify(model, [read_recording(work / "run.csv", ARM)], project=project)
    assert "\n" not in str(caught.value)


def test_rotors_that_are_not_the_motors_are_refused(tmp_path: Path) -> None:
    truth = {**TRUTH, "rotor_inertia": IA.tolist()}
    truth.pop("motor")
    with pytest.raises(ModelError, match=r"rotors are not those of the motors.*motor: \{inertia"):
        true_plant(parse_project(SETTINGS), ARM, write_yaml(tmp_path / "truth.yaml", truth))
    other = {**TRUTH, "reduction": np.diag(np.diag(REDUCTION)).tolist()}
    with pytest.raises(ModelError, match=r"gear ratios are not those of drive\.reduction"):
        true_plant(parse_project(SETTINGS), ARM, write_yaml(tmp_path / "other.yaml", other))
