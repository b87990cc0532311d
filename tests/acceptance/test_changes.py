"""`payload`, `compare`, `fleet`: a load is weighed, a change is found, and none is invented."""

import json
import re
from pathlib import Path

import pytest

from .experiment import COULOMB, LOAD, VISCOUS, done, refused, write_log


@pytest.fixture(scope="module")
def simple(cell: Path) -> Path:
    """A project file with given laws of friction, which saves their search."""
    path = cell / "simple.yaml"
    path.write_text("model: {friction: [viscous, coulomb, offset]}\n")
    return path


@pytest.fixture(scope="module")
def later(cell: Path, simple: Path) -> Path:
    """A result of the robot after the friction of its second joint grew by half."""
    done("identify", "arm.urdf", "worn.csv", "-c", "simple.yaml", "--no-report", "-o", "later", cwd=cell)
    return cell / "later"


def test_a_payload_is_weighed_within_its_intervals(out: Path, cell: Path, tmp_path: Path) -> None:
    found = json.loads(done("payload", out, cell / "loaded.csv", "--link", "tool", "-o", tmp_path / "payload.json", "--json"))
    mass = found["mass"]
    assert mass["low"] <= LOAD.mass <= mass["high"]
    assert mass["value"] == pytest.approx(LOAD.mass, rel=0.1)
    for low, high, true in zip(found["com"]["low"], found["com"]["high"], LOAD.lever, strict=True):
        assert float(low) - 0.01 <= true <= float(high) + 0.01
    assert found["verdict"]["level"] in ("good", "usable")
    assert json.loads((tmp_path / "payload.json").read_text())["mass"]["value"] == mass["value"]
    assert any(path.suffix == ".urdf" for path in tmp_path.iterdir())


def test_no_payload_is_found_where_there_is_none(out: Path, cell: Path, tmp_path: Path) -> None:
    found = json.loads(done("payload", out, cell / "run3.csv", "-o", tmp_path / "payload.json", "--json", code=1))
    assert float(found["mass"]["low"]) <= 0.0 <= float(found["mass"]["high"])
    assert found["verdict"]["level"] == "poor"
    assert not any(path.suffix == ".urdf" for path in tmp_path.iterdir())


def test_the_payload_of_the_logs_of_identify_is_weighed_with_them(cell: Path, simple: Path, tmp_path: Path) -> None:
    logs = ("run1.csv", "run2.csv", "--payload-logs", "loaded.csv", "--payload-link", "tool")
    printed = json.loads(done("identify", "arm.urdf", *logs, "-c", simple, "--no-report", "--json", "-o", tmp_path, cwd=cell))
    assert printed["payload"]["mass"]["low"] <= LOAD.mass <= printed["payload"]["mass"]["high"]
    assert (tmp_path / "payload.json").is_file()


def test_a_training_log_is_no_loaded_log(out: Path, cell: Path, tmp_path: Path) -> None:
    refused("payload", out, cell / "run1.csv", "-o", tmp_path / "p.json", matching=("training",))
    refused("payload", out, cell / "loaded.csv", "--link", "nowhere", "-o", tmp_path / "p.json", matching=("nowhere", "tool"))


def test_worn_joints_are_found(out: Path, later: Path) -> None:
    found = json.loads(done("compare", out, later, "--json"))
    assert found["changed"]
    changed = [test for test in found["tests"] if test["changed"]]
    assert {(test["kind"], test["where"]) for test in changed} == {("friction", "j2")}
    assert all(test["after"] == pytest.approx(1.5 * test["before"], rel=0.05) for test in changed)


def test_less_friction_in_all_joints_is_warmth_and_no_wear(out: Path, cell: Path, simple: Path) -> None:
    done("identify", "arm.urdf", "warm.csv", "-c", "simple.yaml", "--no-report", "-o", "warm", cwd=cell)
    found = json.loads(done("compare", out, cell / "warm", "--json"))
    assert not found["changed"]
    share = re.search(r"([\d.]+) ± ([\d.]+) % less friction", done("compare", out, cell / "warm"))
    assert share is not None
    assert float(share[1]) == pytest.approx(30.0, abs=5 * float(share[2]))


def test_a_robot_compared_with_itself_has_not_changed(cell: Path, simple: Path, out: Path) -> None:
    done("identify", "arm.urdf", "run3.csv", "-c", "simple.yaml", "--no-report", "-o", "again", cwd=cell)
    found = json.loads(done("compare", out, cell / "again", "--json"))
    assert not found["changed"], [test for test in found["tests"] if test["changed"]]


def test_the_data_contradict_a_wrong_urdf_and_not_the_true_one(out: Path, cell: Path) -> None:
    wrong, right = (json.loads(done("compare", cell / name, out, "--json")) for name in ("arm.urdf", "true.urdf"))
    assert wrong["changed"]
    contradicted = [
        [test["where"] for test in found["tests"] if test["changed"] and "rotor" not in test["note"]]
        for found in (wrong, right)
    ]
    assert len(contradicted[0]) > 3
    assert not contradicted[1]


def test_three_results_show_a_trend(out: Path, later: Path, cell: Path, simple: Path, tmp_path: Path) -> None:
    """The friction of the second joint grows by half from one result to the next."""
    write_log(cell / "worse.csv", 7, friction=[1.0, 2.0, 1.0])
    done("identify", "arm.urdf", "worse.csv", "-c", "simple.yaml", "--no-report", "-o", "last", cwd=cell)
    text = done("compare", out, later, cell / "last", "--plot", tmp_path / "trend.svg")
    rising = [line.split()[0] for line in text.splitlines() if "rises" in line]
    assert rising == ["j2"]
    assert "</svg>" in (tmp_path / "trend.svg").read_text()
    refused("compare", out, matching=("two",))
    refused("compare", out, later, "--plot", tmp_path / "x.svg", matching=("three",))
    assert not (tmp_path / "x.svg").exists()


def test_the_odd_robot_of_a_fleet_stands_out(cell: Path, simple: Path, tmp_path: Path) -> None:
    names = ("a", "b", "c", "odd")
    for k, name in enumerate(names):
        (tmp_path / "robots" / name).mkdir(parents=True)
        write_log(tmp_path / "robots" / name / "log.csv", 20 + k, friction=[1.0, 2.0 if name == "odd" else 1.0, 1.0])
    options = ("-c", simple, "--no-report", "--json", "-o", tmp_path / "out")
    found = json.loads(done("fleet", cell / "arm.urdf", f"{tmp_path}/robots/*/", *options))
    assert [(robot["name"], robot["stands_out"]) for robot in found["robots"]] == [(name, name == "odd") for name in names]
    assert json.loads((tmp_path / "out" / "fleet.json").read_text())["robots"] == found["robots"]
    for name in names:
        data = json.loads((tmp_path / "out" / name / "identification.json").read_text())
        for k, joint in enumerate(data["joints"]):
            factor = 2.0 if (name, joint) == ("odd", "j2") else 1.0
            assert data["friction"][joint]["Fv"]["value"] == pytest.approx(factor * VISCOUS[k], rel=0.05)
            assert data["friction"][joint]["Fc"]["value"] == pytest.approx(factor * COULOMB[k], rel=0.05)
