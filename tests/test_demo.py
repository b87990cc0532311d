"""The demo, the experiment in simulation, and the wheel: what a new user sees first."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import mujoco
import numpy as np
import pytest
from commands import assert_refused, run

from urdf_ident.friction.law import Sliding
from urdf_ident.model.bundled import robot_path, truth_path
from urdf_ident.model.robot import Robot
from urdf_ident.motion.fourier import random_fourier
from urdf_ident.motion.limits import Limits
from urdf_ident.pipeline.demo import demo as run_demo
from urdf_ident.pipeline.experiment import build_plant


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("demo")
    return run_demo(folder, seed=3), folder


def test_demo_finds_the_robot_behind_a_wrong_urdf(demo) -> None:
    result, folder = demo
    score = result.ident.validation[0]
    assert score["mean_rmse"] <= score["urdf_mean_rmse"] / 5
    assert score["mean_rmse"] < score["urdf_friction_mean_rmse"]
    fit = result.ident.fit
    inside = np.abs(fit.params - fit.base.of(result.truth)) <= 3 * fit.bse
    assert inside.mean() > 0.8
    assert result.ident.consistency.consistent
    assert "truth" in result.summary()
    mujoco.MjModel.from_xml_path(str(folder / "ur10e_identified.urdf"))
    Robot.from_urdf(folder / "ur10e_identified.urdf")


def test_demo_friction_is_near_the_truth(demo) -> None:
    result, _ = demo
    names = result.ident.model.names
    for symbol, tolerance in (("Fv", 0.25), ("Fc", 0.25)):
        for joint in result.ident.model.robot.joints:
            k = names.index(f"{symbol}_{joint}")
            assert result.ident.theta[k] == pytest.approx(result.truth[k], rel=tolerance)


def test_torque_that_builds_up_while_a_joint_sticks_is_no_lead_of_the_efforts(tmp_path: Path) -> None:
    """A seeming lead that is taken out makes all rotor inertias too small."""
    result = run_demo(tmp_path)
    assert list(result.ident.term_values("Ia").values()) == pytest.approx([4.0, 4.0, 1.8, 0.4, 0.4, 0.4], rel=0.07)


def test_an_identified_robot_can_be_simulated_and_found_again(demo, tmp_path: Path) -> None:
    """identify → simulate with --truth → identify: the same model comes back."""
    result, folder = demo
    motion = random_fourier(Limits.from_robot(result.ident.model.robot), 12.0, 8, 5, start=[0.0, -1.2, 1.3, -1.0, -1.2, 0.3])
    motion.write(tmp_path / "motion.csv", rate=200)
    urdf, log = folder / "ur10e_identified.urdf", tmp_path / "log.csv"
    done = run("simulate", urdf, tmp_path / "motion.csv", "--truth", folder / "identification.json", "-o", log)
    assert done.returncode == 0, done.stderr
    assert "rk4" in done.stdout
    checked = run("validate", folder / "identification.json", log, "--json")
    assert checked.returncode == 0, checked.stderr
    assert json.loads(checked.stdout)[0]["relative"] < 0.1


def test_simulate_is_seeded(demo, tmp_path: Path) -> None:
    project = tmp_path / "p.yaml"
    project.write_text("simulation: {rate: 100, sensors: {counts: 4096, torque_noise: {snr: 30, correlation: 0.9}}}\n")
    motion = random_fourier(Limits.from_robot(Robot.from_urdf(robot_path("szabo_3r"))), 3.0, 3, 1, start=[0.0, 1.2, 0.8])
    motion.write(tmp_path / "motion.csv", rate=200)
    logs = []
    for seed in (7, 7, 8):
        out = tmp_path / f"log{len(logs)}.csv"
        done = run("simulate", robot_path("szabo_3r"), tmp_path / "motion.csv", "-c", project, "--seed", seed, "-o", out)
        assert done.returncode == 0, done.stderr
        logs.append(out.read_bytes())
    assert logs[0] == logs[1] != logs[2]


def test_truths_of_a_plant(demo) -> None:
    result, folder = demo
    robot = Robot.from_urdf(robot_path("ur10e"))
    from_yaml = build_plant(robot, truth_path("ur10e"))
    assert np.diag(from_yaml.rotor) == pytest.approx([4.0, 4.0, 1.8, 0.4, 0.4, 0.4])
    from_json = build_plant(robot, folder / "identification.json")
    joint = result.ident.term_values("Ia")
    assert np.diag(from_json.rotor) == pytest.approx([joint[name] for name in robot.joints])
    v = np.linspace(-1, 1, robot.n)
    sliding = Sliding(v, load=np.zeros(robot.n), slip=np.sign(v))
    friction = sum(term.torque(sliding) for term in from_json.friction.joint)
    by_hand = [result.ident.term_values(s) for s in ("Fv", "Fc", "offset")]
    expected = [by_hand[0][n] * x + by_hand[1][n] * np.sign(x) + by_hand[2][n] for n, x in zip(robot.joints, v, strict=True)]
    assert friction == pytest.approx(expected)


def test_a_trajectory_outside_the_limits_is_refused(tmp_path: Path) -> None:
    robot = robot_path("szabo_3r")
    names = Robot.from_urdf(robot).joints
    t = np.linspace(0, 2, 201)
    table = np.column_stack([t, *[50.0 * np.sin(3 * t)] * len(names)])
    motion = tmp_path / "wild.csv"
    np.savetxt(motion, table, delimiter=",", header=",".join(["t", *(f"q_{n}" for n in names)]), comments="")
    result = run("simulate", robot, motion, "-o", tmp_path / "log.csv")
    assert_refused(result, 2, names[0], "limit|velocity|position")
    assert not (tmp_path / "log.csv").exists()


def test_the_wheel_holds_the_robots_and_runs_from_another_folder(tmp_path: Path) -> None:
    """Built without isolation and unpacked beside the installed dependencies: the package that others would install."""
    root = Path(__file__).parents[1]
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "-q", "-w", tmp_path, root]
    built = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    (wheel,) = tmp_path.glob("*.whl")
    site = tmp_path / "site"
    zipfile.ZipFile(wheel).extractall(site)
    for source, folder in (("urdf_ident", "urdf_ident"), ("robots", "urdf_ident_robots")):
        own = (path for path in (root / source).rglob("*.*") if "__pycache__" not in path.parts)
        files = {path.relative_to(root / source) for path in own}
        assert {path.relative_to(site / folder) for path in (site / folder).rglob("*.*")} == files
    code = (
        f"import sys; sys.path.insert(0, {str(site)!r}); import urdf_ident; print(urdf_ident.__file__); "
        "print(urdf_ident.robot_path('ur10e')); from urdf_ident.cli import main; main()"
    )
    arguments = ["check", str(site / "urdf_ident_robots" / "ur10e.urdf")]
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    assert all(line.startswith(str(site)) for line in done.stdout.splitlines()[:2]), done.stdout
