"""The demo, the experiment in simulation, and the wheel: what a new user sees first."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from urdf_ident.friction.law import Sliding
from urdf_ident.model.bundled import robot_path, truth_path
from urdf_ident.model.robot import Robot
from urdf_ident.pipeline.demo import demo as run_demo
from urdf_ident.pipeline.experiment import build_plant


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("demo")
    return run_demo(folder), folder


def test_torque_that_builds_up_while_a_joint_sticks_is_no_lead_of_the_efforts(demo) -> None:
    """A seeming lead that is taken out makes all rotor inertias too small."""
    result, _ = demo
    assert list(result.ident.term_values("Ia").values()) == pytest.approx([4.0, 4.0, 1.8, 0.4, 0.4, 0.4], rel=0.07)


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
