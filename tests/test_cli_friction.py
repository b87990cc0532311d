"""Friction that is left to the data, on the command line: what the user is told, and data that cannot choose."""

import json
from pathlib import Path

import numpy as np
import pytest
from commands import done
from conftest import arm_urdf
from logs import Truth, fourier, make_log, torques, write_csv

from urdf_ident.model.robot import Robot

pytestmark = pytest.mark.usefixtures("unexamined")


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory, robot: Robot) -> Path:
    folder = tmp_path_factory.mktemp("friction")
    (folder / "arm.urdf").write_text(arm_urdf("zyx"))
    for seed in range(2):
        make_log(folder / f"log{seed}.csv", robot, seed=seed)
    t, q, v, a = fourier(3, 12.0, 100.0, 1)
    speed = np.array([0.25, -0.2, 0.22])  # every joint one way only, faster and slower
    q, v, a = 0.08 * q + speed * (t[:, None] - 6.0), 0.08 * v + speed, 0.08 * a
    v_sign = np.sign(speed)
    assert (v * v_sign > 0.02).all()
    noise = np.random.default_rng(0).standard_normal(q.shape)
    write_csv(folder / "one_way.csv", robot.joints, t, q, torques(robot, Truth.of(3), q, v, a) + 0.2 * noise)
    return folder


def test_the_summary_shows_what_was_tried_and_what_it_gained(work: Path, tmp_path: Path) -> None:
    result = done("identify", "-v", work / "arm.urdf", work / "log0.csv", work / "log1.csv", "-o", tmp_path)
    assert "cross-validated over 5 folds (friction laws chosen on all of them)" in result
    lines = result.splitlines()
    start = next(k for k, line in enumerate(lines) if line.strip().startswith("friction: auto, held-out RMSE"))
    head, rows = lines[start].split(), [line.split() for line in lines[start + 1 : start + 4]]
    laws = head[head.index("chosen") + 1 :]
    simple = {"viscous", "offset", "coulomb"}
    further = "stribeck sublinear cubic load_coulomb dahl relaxing asymmetric spring balancer"
    assert set(laws) == simple | set(further.split())
    data = json.loads((tmp_path / "identification.json").read_text())["selection"]
    for row in rows:
        chosen = {law for law, cell in zip(laws, row[-len(laws) :], strict=True) if "(" not in cell and cell != "-"}
        assert chosen == {trial["term"] for trial in data["trials"] if trial["joint"] == row[0] and trial["chosen"]}
        assert {"viscous", "coulomb"} <= chosen


def test_joints_that_never_reverse_are_named_and_get_no_law_of_reversals(work: Path, tmp_path: Path) -> None:
    result = done("identify", "-v", work / "arm.urdf", work / "one_way.csv", "-o", tmp_path)
    assert "USABLE" in result
    assert "no joint reverses, so that friction laws cannot be selected; viscous, Coulomb and offset are used" in result
    assert "held-out RMSE  simple" not in result
    laws = json.loads((tmp_path / "identification.json").read_text())["friction"]["j1"]
    assert {entry["term"] for entry in laws.values()} == {"rotor_inertia", "viscous", "coulomb", "offset"}
    causes = {item["id"]: item for item in json.loads((tmp_path / "identification.json").read_text())["verdict"]["causes"]}
    assert causes["one-way"]["text"].startswith(
        "j1, j2, j3 moved in one direction only: Coulomb friction and offset cannot be separated"
    )
    assert causes["one-way"]["remedy"] == "record motions in both directions"
    friction = json.loads((tmp_path / "identification.json").read_text())["friction"]
    truth = Truth.of(3)
    for j, (joint, sign) in enumerate((("j1", 1), ("j2", -1), ("j3", 1))):
        constants = {symbol: friction[joint][symbol]["value"] for symbol in ("Fc", "offset") if symbol in friction[joint]}
        assert "Fp" not in friction[joint]
        total = sign * constants.get("Fc", 0.0) + constants.get("offset", 0.0)
        assert total == pytest.approx(sign * truth.coulomb[j] + truth.offset[j], abs=0.3)
        assert max(map(abs, constants.values())) < 10.0  # nothing large that cancels
