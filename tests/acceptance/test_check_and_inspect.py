"""`check` and `inspect`: what is wrong with a URDF or a log is said before anything is computed from it."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
import yaml

from .experiment import BODIES, JOINTS, command, done, motion, refused, regressor, urdf

REFUSED, JUDGED = {"refused"}, {"refused", "warning"}
Change = Callable[[np.ndarray], np.ndarray]


def log_of(cell: Path, target: Path, change: Change) -> Path:
    """The log run1.csv with another table: time [s], three positions [rad], three torques [N·m]."""
    head, *rows = (cell / "run1.csv").read_text().splitlines()
    table = change(np.array([[float(value) for value in row.split(",")] for row in rows]))
    np.savetxt(target, table, delimiter=",", header=head, comments="", fmt="%.9g")
    return target


def inspection(log: Path, cell: Path, code: int) -> dict[str, Any]:
    """What `inspect` says of one log."""
    (entry,) = json.loads(done("inspect", log, "--robot", cell / "arm.urdf", "--json", code=code))
    return entry


def test_check_lists_joints_bodies_and_what_can_be_identified(cell: Path) -> None:
    found = json.loads(done("check", cell / "arm.urdf", "--json"))
    assert found["physical"]
    assert [joint["name"] for joint in found["joints"]] == list(JOINTS)
    assert [joint["upper"] for joint in found["joints"]] == [2.6] * 3
    assert [body["name"] for body in found["bodies"]] == list(BODIES)
    assert found["bodies"][-1]["lumped_links"] == ["tool"]
    _, q, v, a = motion(3, seconds=4.0)
    assert found["identifiable"]["base"] == np.linalg.matrix_rank(regressor(q, v, a), rtol=1e-9)
    text = done("check", cell / "arm.urdf")
    assert "28" in text
    assert "tool" in text


@pytest.mark.parametrize(
    ("pattern", "replacement"),
    [('izz="[^"]+"', 'izz="9.0"'), ('mass value="[^"]+"', 'mass value="-1.0"'), ('ixx="[^"]+"', 'ixx="-0.1"')],
    ids=["triangle inequality", "negative mass", "negative inertia"],
)
def test_an_impossible_link_is_named_and_repaired(tmp_path: Path, pattern: str, replacement: str) -> None:
    bad, fixed = tmp_path / "bad.urdf", tmp_path / "fixed.urdf"
    bad.write_text(re.sub(pattern, replacement, urdf(), count=1))
    outcome = command("check", bad, "--json")
    assert outcome.code in (1, 2)  # a negative mass cannot be loaded, so that there is nothing to list
    assert BODIES[0] in outcome.out + outcome.err
    done("check", bad, "--fix", fixed)
    done("check", fixed)
    for inertia in list(pin.buildModelFromXML(fixed.read_text()).inertias)[1:]:
        moments = np.linalg.eigvalsh(inertia.inertia)
        assert inertia.mass > 0
        assert moments[0] > 0
        assert moments[2] <= moments[0] + moments[1]
    unchanged = [line for line in urdf().splitlines() if line in fixed.read_text().splitlines()]
    assert len(unchanged) >= len(urdf().splitlines()) - 3  # only the impossible link is touched


def test_a_sound_log_is_good(cell: Path) -> None:
    entry = inspection(cell / "run1.csv", cell, 0)
    assert entry["log"] == "run1"
    assert entry["rows"] == 2000
    assert entry["acceptable"]
    assert all(finding["severity"] == "info" for finding in entry["findings"])
    assert done("inspect", cell / "run1.csv", "--robot", cell / "arm.urdf").startswith("run1: good")


def _columns(table: np.ndarray, columns: slice | int, factor: float) -> np.ndarray:
    table[:, columns] *= factor
    return table


def _moving(table: np.ndarray, factor: float) -> np.ndarray:
    return _columns(table, slice(1, 4), factor)


def _delayed(table: np.ndarray) -> np.ndarray:
    table[10:, 4:] = table[:-10, 4:]
    return table[10:]


#: Fault → change of the table, the severities that are right, and what the findings must name.
FAULTS: dict[str, tuple[Change, set[str], str]] = {
    "efforts with reversed sign": (lambda table: _columns(table, slice(4, 7), -1.0), REFUSED, "sign"),
    "one effort with reversed sign": (lambda table: _columns(table, 5, -1.0), REFUSED, "j2"),
    "positions in degrees": (lambda table: _columns(table, slice(1, 4), 180 / np.pi), REFUSED, "deg"),
    "efforts in millinewtonmetres": (lambda table: _columns(table, slice(4, 7), 1000.0), JUDGED, "mN"),
    "efforts 100 ms late": (_delayed, JUDGED, "late|delay|lag"),
    "no motion": (lambda table: _moving(table, 0.0), REFUSED, "motion|move|rest"),
    "a log of half a second": (lambda table: table[:50], REFUSED, "short|few"),
    "efforts missing": (lambda table: _columns(table, slice(4, 7), np.nan), REFUSED, "effort"),
    "efforts zero": (lambda table: _columns(table, slice(4, 7), 0.0), REFUSED, "effort"),
    "clock backwards": (lambda table: np.column_stack([table[::-1, 0], table[:, 1:]]), REFUSED, "time|clock"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_a_log_is_named_with_a_remedy(cell: Path, tmp_path: Path, fault: str) -> None:
    change, severities, expression = FAULTS[fault]
    log = log_of(cell, tmp_path / "log.csv", change)
    outcome = command("inspect", log, "--robot", cell / "arm.urdf", "--json")
    (entry,) = json.loads(outcome.out)
    findings = [finding for finding in entry["findings"] if finding["severity"] in severities]
    assert re.search(expression, json.dumps(findings), re.IGNORECASE), entry
    assert all(finding["message"] and finding["remedy"] for finding in findings)
    assert outcome.code == (0 if entry["acceptable"] else 1)
    assert entry["acceptable"] == (not any(finding["severity"] == "refused" for finding in entry["findings"]))


def test_inspect_goes_on_after_an_unreadable_log(cell: Path, tmp_path: Path) -> None:
    (tmp_path / "empty.csv").touch()
    entries = json.loads(
        done("inspect", cell / "run1.csv", tmp_path / "empty.csv", "--robot", cell / "arm.urdf", "--json", code=2)
    )
    assert {entry["log"]: entry["acceptable"] for entry in entries} == {"run1": True, "empty": False}
    assert [finding["id"] for finding in entries[1]["findings"]] == ["log-unreadable"]


def test_a_project_file_is_written_for_a_log_without_header(cell: Path, tmp_path: Path) -> None:
    """The recognised columns and units lead to a result as good as that of the described log."""
    table = np.loadtxt(cell / "run1.csv", delimiter=",", skiprows=1)
    np.savetxt(tmp_path / "bare.csv", np.column_stack([table[:, 0], np.rad2deg(table[:, 1:4]), table[:, 4:]]), delimiter=",")
    project = tmp_path / "project.yaml"
    done("inspect", tmp_path / "bare.csv", "--robot", cell / "arm.urdf", "--write-project", project)
    assert "deg" in project.read_text()
    done("inspect", tmp_path / "bare.csv", "-c", project)
    done("identify", cell / "arm.urdf", tmp_path / "bare.csv", "-c", project, "-o", tmp_path / "out", "--no-report")


def test_no_project_file_is_written_where_a_log_is_unreadable(cell: Path, tmp_path: Path) -> None:
    (tmp_path / "empty.csv").touch()
    project, logs = tmp_path / "project.yaml", (cell / "run1.csv", tmp_path / "empty.csv")
    assert "empty: REFUSED" in done("inspect", *logs, "--robot", cell / "arm.urdf", "--write-project", project, code=2)
    assert not project.exists()


def test_gravity_of_a_tilted_base_is_recognised(cell: Path, tmp_path: Path) -> None:
    """A refusal of the log under the wrong gravity is also right: it must not be called good."""
    from .experiment import COULOMB, OFFSET, ROTOR, VISCOUS, rigid

    model = rigid()
    model.gravity.linear = np.array([4.905, 0.0, -8.496])  # 30°
    data = model.createData()
    t, q, v, a = motion(1)
    tau = np.array([pin.rnea(model, data, *sample) for sample in zip(q, v, a, strict=True)])
    tau += ROTOR * a + VISCOUS * v + COULOMB * np.tanh(v / 0.02) + OFFSET
    tau += 0.02 * tau.std(axis=0) * np.random.default_rng(0).standard_normal(tau.shape)
    head = (cell / "run1.csv").read_text().splitlines()[0]
    np.savetxt(tmp_path / "tilted.csv", np.column_stack([t, q, tau]), delimiter=",", header=head, comments="")
    entry = inspection(tmp_path / "tilted.csv", cell, 1)
    assert "gravity" in json.dumps(entry["findings"])
    project = tmp_path / "project.yaml"
    done("inspect", tmp_path / "tilted.csv", "--robot", cell / "arm.urdf", "--write-project", project)
    written = np.array(yaml.safe_load(project.read_text())["robot"]["gravity"])
    true = np.array(model.gravity.linear)
    angle = np.arccos(written @ true / np.linalg.norm(written) / np.linalg.norm(true))
    assert np.degrees(angle) < 1.0
    done("inspect", tmp_path / "tilted.csv", "-c", project)


@pytest.mark.parametrize(
    ("arguments", "expressions"),
    [
        (("check", "absent.urdf"), ("absent.urdf",)),
        (("check", "run1.csv"), ("run1.csv",)),
        (("inspect", "absent.csv", "--robot", "arm.urdf"), ("absent",)),
        (("inspect", "run1.csv"), ("--robot|robot.urdf",)),
        (("inspect", "run1.csv", "--robot", "arm.urdf", "-c", "absent.yaml"), ("absent.yaml",)),
    ],
)
def test_wrong_input_is_one_line(cell: Path, arguments: tuple[str, ...], expressions: tuple[str, ...]) -> None:
    refused(*arguments, matching=expressions, cwd=cell)
