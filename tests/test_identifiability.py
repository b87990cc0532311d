"""Verdicts: against null spaces, against what the advised motion really brings, and through the command line."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from commands import assert_refused, run
from conftest import arm_urdf
from estimation_samples import as_log
from logs import Truth, fourier, torques, write_csv
from motion_samples import make_segment, robot_3r, truth

from urdf_ident import Drive, DynamicModel, ElasticModel, Robot, Segment, load, robot_path
from urdf_ident.estimation.uncertainty.identifiability import (
    IDENTIFIABLE,
    LOST,
    Identifiability,
    sizes,
    structural_verdicts,
    verdicts,
)
from urdf_ident.estimation.uncertainty.simple_motions import SECONDS, simple_motions
from urdf_ident.model.prior import inertial_prior
from urdf_ident.statistics.accumulate import build_statistics
from urdf_ident.statistics.fit import Fit, fit_base
from urdf_ident.statistics.statistic import StatisticSet

pytestmark = pytest.mark.usefixtures("unexamined")

RATE, SIGMA = 50.0, 0.3


@pytest.fixture(scope="module")
def model() -> DynamicModel:
    return DynamicModel(robot_3r(), friction=["viscous", "coulomb", "offset"])


def judged(model: DynamicModel, statistics: StatisticSet, fit: Fit) -> dict[str, Identifiability]:
    prior = inertial_prior(model.robot)
    terms = np.zeros(len(model.names) - model.n_inertial)
    mean, unsure = np.append(prior.theta0, terms), np.append(prior.std, terms)
    found = verdicts(model, fit, statistics.stacked(fit.weights)[:, :-1], mean, unsure, RATE)
    return {item.parameter: item for item in found}


def held(model: DynamicModel, still: int, seed: int = 0) -> Segment:
    """A motion with measured torque in which one joint rests."""
    free = make_segment(model, 1500, rate=RATE, seed=seed)
    q, v, a = (np.array(x) for x in (free.q, free.v, free.a))
    q[:, still], v[:, still], a[:, still] = 0.4, 0.0, 0.0
    rng = np.random.default_rng(seed)
    tau = model.torque(truth(model), q, v, a) + SIGMA * rng.normal(size=q.shape)
    return replace(free, q=q, v=v, a=a, tau=tau)


def estimate(model: DynamicModel, *segments: Segment) -> tuple[StatisticSet, Fit]:
    statistics = build_statistics(model, [as_log(segment) for segment in segments])
    return statistics, fit_base(statistics, model.base(), method="ols")


def test_only_a_slant_shows_the_first_links_moments() -> None:
    robot = Robot.from_urdf(robot_path("ur10e"))
    model = DynamicModel(robot)
    found = {item.parameter: item for item in structural_verdicts(model, model.base())}
    slanted = DynamicModel(Robot.from_urdf(robot_path("ur10e"), gravity=(3.0, -4.0, -8.0))).base()
    for name, item in found.items():
        k = model.names.index(name)
        if item.level == LOST:
            assert ("tilted base" in item.advice) == (slanted.kinds[k] != "never")
    assert "tilted base" in found["mx_shoulder_link"].advice
    assert "weigh" in found["m_shoulder_link"].advice


@pytest.mark.parametrize(("seed", "tolerance"), [(0, 0.2), (7, 0.4)], ids=["the same", "one like it"])
@pytest.mark.parametrize("still", [1, 2])
def test_the_advised_motion_brings_what_was_promised(model: DynamicModel, still: int, seed: int, tolerance: float) -> None:
    """Simulates the motion of the advice, with noise, beside the first log: the new standard error is the promised one."""
    first = held(model, still)
    statistics, fit = estimate(model, first)
    found = judged(model, statistics, fit)
    joint = model.robot.joints[still]
    names = [name for name in (f"Fv_{joint}", f"Fc_{joint}", f"Ia_{joint}") if name in fit.base.labels]
    assert names
    unknown = np.zeros(len(model.names))
    usual = sizes(model, fit.base, fit, unknown, unknown)
    for name in names:
        advised = next(item.states for item in simple_motions(model.robot, seed=seed) if item.words == found[name].motion)
        rows = int(SECONDS * RATE)
        pick = np.random.default_rng(1).integers(0, len(advised.q), rows)
        q, v, a = advised.q[pick], advised.v[pick], advised.a[pick]
        tau = model.torque(truth(model), q, v, a) + SIGMA * np.random.default_rng(2).normal(size=q.shape)
        second = Segment("advised", 0.0, RATE, q, v, a, tau)
        _, better = estimate(model, first, second)
        row = fit.base.labels.index(name)
        promised = float(found[name].note.split("±")[1].split(" %")[0]) / 100
        value = truth(model)[model.names.index(name)]
        assert better.bse[row] / usual[row] == pytest.approx(promised, rel=tolerance)
        assert abs(better.params[row] - value) < 4 * better.bse[row]


@pytest.fixture(scope="module")
def resting(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Logs of an arm whose last joint never moves, and its URDF."""
    folder = tmp_path_factory.mktemp("resting")
    robot = Robot.from_urdf(arm_urdf("zyx"))
    (folder / "arm.urdf").write_text(arm_urdf("zyx"))
    for seed in range(2):
        t, q, v, a = fourier(3, 20.0, 100.0, seed)
        q[:, 2], v[:, 2], a[:, 2] = 0.3, 0.0, 0.0
        rng = np.random.default_rng(seed)
        tau = torques(robot, Truth.of(3), q, v, a)
        q = q + 1e-5 * rng.standard_normal(q.shape)
        write_csv(folder / f"log{seed}.csv", robot.joints, t, q, tau + 0.05 * tau.std(axis=0) * rng.standard_normal(tau.shape))
    return folder


def test_a_joint_that_never_moves_from_the_command_line(resting: Path, tmp_path: Path) -> None:
    project = tmp_path / "project.yaml"
    project.write_text("model: {friction: [viscous, coulomb, offset]}")
    out = tmp_path / "out"
    logs = (resting / "log0.csv", "--validate", resting / "log1.csv")
    result = run("identify", resting / "arm.urdf", *logs, "-c", project, "-o", out, "-v")
    assert result.returncode == 0, result.stderr
    assert not result.stderr.strip()
    data = json.loads((out / "identification.json").read_text())
    entries = {entry["name"]: entry for entry in data["parameters"]["standard"]}
    for name in ("Fv_j3", "Fc_j3", "Ia_j3"):
        assert entries[name]["verdict"] == LOST
        assert "j3" in entries[name]["advice"]
    known = Truth.of(3)
    for k, joint in enumerate(("j1", "j2")):
        for symbol, values in (("Fv", known.viscous), ("Fc", known.coulomb)):
            assert entries[f"{symbol}_{joint}"]["verdict"] == IDENTIFIABLE
            assert entries[f"{symbol}_{joint}"]["value"] == pytest.approx(values[k], rel=0.1)
    assert "move j3" in result.stdout
    assert re.search(r"j3\s+unseen\s+unseen\s+unseen", result.stdout)
    again = load(out / "identification.json")
    stored = ("verdict", "with", "advice")
    assert [[item.as_dict()[key] for key in stored] for item in again.verdicts] == [
        [entry[key] for key in stored] for entry in data["parameters"]["standard"]
    ]


def test_check_says_it_before_any_data(resting: Path) -> None:
    result = run("check", resting / "arm.urdf", "--json")
    found = {item["name"]: item for item in json.loads(result.stdout)["identifiable"]["verdicts"]}
    assert found["m_l1"]["verdict"] == LOST
    assert found["Fc_j2"]["verdict"] == IDENTIFIABLE
    assert found["Izz_l1"]["with"]
    assert "simplest motion for each inertial parameter" in run("check", resting / "arm.urdf").stdout
    assert_refused(run("check", resting / "nobody.urdf"), 2, "nobody.urdf")


def test_verdicts_of_an_elastic_arm() -> None:
    """Elastic joints have verdicts too, without numbers that their data's other coordinates would spoil."""
    elastic = ElasticModel(Robot.from_urdf(robot_path("zollo_2r")), drive=Drive.build(2, reduction=[100.0, 100.0]))
    found = {item.parameter: item for item in structural_verdicts(elastic, elastic.base())}
    assert {item.level for name, item in found.items() if name.startswith("K_")} == {IDENTIFIABLE}
