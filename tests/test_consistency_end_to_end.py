"""What a user meets of the consistency step: poor URDFs, impossible constraints, poor excitation."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from commands import assert_refused, run
from conftest import arm_urdf, inertials
from logs import fourier, make_log

from urdf_ident import DynamicModel, Identification, Recording, Robot, identify, read_recording
from urdf_ident.model.inertia import from_com, margins
from urdf_ident.project import parse_project

pytestmark = pytest.mark.usefixtures("unexamined")

PLAIN = {"model": {"friction": ["viscous", "coulomb", "offset"]}}


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("consistency")
    (folder / "arm.urdf").write_text(arm_urdf("zyx"))
    make_log(folder / "log.csv", Robot.from_urdf(arm_urdf("zyx")), seed=3, seconds=12.0)
    (folder / "plain.yaml").write_text(json.dumps(PLAIN))
    return folder


def identified(text: str, log: Path, **consistency: object):
    project = parse_project({**PLAIN, "consistency": consistency})
    robot = Robot.from_urdf(text)
    model = project.build_model(robot)
    return identify(model, [read_recording(log, robot, project.log)], project=project)


def changed(text: str, link: str, pattern: str, new: str) -> str:
    head, tail = text.split(f'<link name="{link}">')
    return f'{head}<link name="{link}">' + re.sub(pattern, new, tail, count=1)


def test_an_impossible_prior_is_repaired_first_and_said(work: Path) -> None:
    text = changed(arm_urdf("zyx"), "l2", 'izz="[^"]+"', 'izz="1.9"')
    ident = identified(text, work / "log.csv")
    assert any("l2" in note and "triangle inequality" in note for note in ident.solver["notes"])
    assert ident.prior.origin[10] == "repaired"
    assert margins(ident.prior.theta0[10:20]).consistent
    assert ident.consistency.consistent


def test_a_moving_link_without_mass_gets_a_plausible_one(work: Path) -> None:
    bare = re.sub(r'(<link name="l2">)<inertial>.*?</inertial>', r"\1", arm_urdf("zyx"), flags=re.DOTALL)
    ident = identified(bare, work / "log.csv")
    truth = 8.0 / 2
    assert any("l2" in note and "no mass" in note for note in ident.solver["notes"])
    assert ident.consistency.consistent
    assert 0.2 * truth < ident.bodies[1, 0] < 5 * truth
    path = ident.save(work / "bare.json")
    from urdf_ident.result.identification import load

    again = load(path)
    assert again.prior.mass_std.tolist() == ident.prior.mass_std.tolist() == [0.3, np.inf, 0.3]
    np.testing.assert_array_equal(again.interval(), ident.interval())


def test_standard_parameters_have_a_provenance(work: Path) -> None:
    ident = identified(arm_urdf("zyx"), work / "log.csv")
    data = json.loads(ident.save(work / "ident.json").read_text())
    for entry, nonnegative in zip(data["parameters"]["standard"], [p.nonnegative for p in ident.model.parameters], strict=True):
        assert {"value", "prior", "prior_origin", "std_error", "from_data", "posterior_std", "interval"} <= set(entry)
        assert 0 < entry["posterior_std"] < np.inf
        assert entry["interval"][0] <= entry["value"] <= entry["interval"][1]
        assert not nonnegative or entry["interval"][0] >= 0
    weight = ident.prior_weight
    R = ident.factor[:, :-1]
    known = ident.prior.precision.copy()
    known[ident.model.n_inertial :] /= 10.0**2  # a first fit to the same data is no knowledge of friction and rotors
    covariance = np.linalg.inv(R.T @ R / weight + known)
    np.testing.assert_allclose(ident.posterior_std, np.sqrt(np.diag(covariance)), rtol=1e-5)
    information = R.T @ R / weight
    share = np.diag(np.linalg.inv(information + ident.prior.precision) @ information)
    np.testing.assert_allclose(ident.from_data, np.clip(share, 0, 1), atol=1e-5)


def test_solutions_are_tested_side_by_side(work: Path, tmp_path: Path) -> None:
    """Table III of Gautier 2013 on any robot: the exported bodies are possible, the base parameters explain most."""
    ident = identified(arm_urdf("zyx"), work / "log.csv")
    saved = ident.save(tmp_path / "identification.json")
    result = run("check", work / "arm.urdf", "--against", saved, "--json")
    rows = {row["name"]: row for row in json.loads(result.stdout)["solutions"]}
    assert list(rows) == ["a priori", "base", "minimum norm", "closest to the prior", "essential", "exported (lmi)"]
    for name, theta in (("a priori", ident.prior.theta0), ("base", ident.fit_theta), ("exported (lmi)", ident.theta)):
        bodies = theta[:30].reshape(3, 10)
        assert rows[name]["consistent"] == sum(margins(body).consistent for body in bodies)
        assert rows[name]["distance"] == pytest.approx(ident.prior.distance(theta), abs=1e-9)
    for exact in ("base", "minimum norm", "closest to the prior"):
        assert rows[exact]["residual"] == pytest.approx(1.0, abs=1e-9)
        assert rows[exact]["distance"] >= rows["closest to the prior"]["distance"]
    assert rows["exported (lmi)"]["consistent"] == 3
    assert all(row["passing"] == sorted(row["passing"]) and row["residual"] >= 1.0 - 1e-9 for row in rows.values())
    assert "exported (lmi)" in run("check", work / "arm.urdf", "--against", saved).stdout
    (tmp_path / "other.urdf").write_text(arm_urdf("zy"))
    assert_refused(run("check", tmp_path / "other.urdf", "--against", saved), 2, "another robot")


# ---- Limits that hold an export back are said, with what they cost and what to do: nothing spoils it silently ----

ROBOT = Robot.from_urdf(arm_urdf("zyx"))
BODIES = inertials(ROBOT).reshape(-1, 10)


def constrained(tool: float, **consistency: object) -> Identification:
    """Two logs of the arm with a tool [kg] on its last link, 0.25 m out, that the URDF does not know."""
    truth = BODIES.copy()
    truth[-1] += from_com(tool, np.array([0.0, 0.0, 0.25]), tool * 0.05**2 * np.eye(3)) if tool else 0.0
    model = DynamicModel(ROBOT, friction="none", rotor_inertia=False)
    logs = []
    for seed in range(2):
        t, q, v, a = fourier(ROBOT.n, 10.0, 100.0, seed, amplitude=1.2)
        tau = model.torque(truth.ravel(), q, v, a) + 2.0 * v
        tau += 0.05 * np.random.default_rng(seed).standard_normal(tau.shape)
        logs.append(Recording(f"log{seed}", ROBOT.joints, t, q, effort=tau))
    settings = {"model": {"friction": ["viscous"], "rotor_inertia": False}, "consistency": {"weight": 10.0, **consistency}}
    project = parse_project(settings)
    return identify(project.build_model(ROBOT), logs, project=project)


def notes(ident: Identification) -> str:
    return "\n".join(ident.solver["notes"])


def test_a_tool_that_the_urdf_does_not_know_is_named_with_its_mass() -> None:
    last = ROBOT.bodies[-1].name
    tool = 3.0 * BODIES[-1, 0]
    found = notes(constrained(tool, mass_factor=1.5))
    assert f"{last} is at its limit" in found
    assert "raise consistency.mass_factor" in found
    assert "above that of the unconstrained fit: the limits above" in found
    hint = next(line for line in found.splitlines() if "mass that the URDF lacks" in line)
    said = float(hint.split("about ")[1].split(" kg")[0])
    assert f"on {last}" in hint
    assert said == pytest.approx(tool, rel=0.4)


def test_a_true_urdf_gives_no_word() -> None:
    found = notes(constrained(0.0))
    assert "limit" not in found
    assert "above that of the unconstrained fit" not in found
