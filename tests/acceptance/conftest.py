"""One simulated experiment and one identification per session, shared by all acceptance tests."""

import json
from pathlib import Path
from typing import Any

import pytest

import urdf_ident as ui

from . import experiment
from .experiment import Outcome, command, write_log

SHARED = Path(__file__).parents[3] / "shared" / "data"


@pytest.fixture(scope="session")
def real_logs() -> Path:
    if not SHARED.is_dir():
        pytest.skip("real logs (../shared/data) are not here")
    return SHARED


@pytest.fixture(scope="session")
def cell(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a wrong URDF, the logs run1-3.csv of the true robot, and logs of it with a load, worn, and warm."""
    folder = tmp_path_factory.mktemp("cell")
    (folder / "arm.urdf").write_text(experiment.urdf(mass=1.3, shift=0.01))
    (folder / "true.urdf").write_text(experiment.urdf())
    for seed in (1, 2, 3):
        write_log(folder / f"run{seed}.csv", seed)
    write_log(folder / "loaded.csv", 4, load=True)
    write_log(folder / "worn.csv", 5, friction=[1.0, 1.5, 1.0])
    write_log(folder / "warm.csv", 6, friction=[0.7, 0.7, 0.7])
    return folder


@pytest.fixture(scope="session")
def identified(cell: Path) -> Outcome:
    """`urdf-ident identify` of two logs, validated on the third."""
    return command("identify", "arm.urdf", "run1.csv", "run2.csv", "--validate", "run3.csv", "-o", "out", cwd=cell)


@pytest.fixture(scope="session")
def out(cell: Path, identified: Outcome) -> Path:
    """The folder that `identify` wrote."""
    assert identified.code == 0, identified
    return cell / "out"


@pytest.fixture(scope="session")
def result(out: Path) -> dict[str, Any]:
    """The content of identification.json."""
    return json.loads((out / "identification.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def ident(out: Path) -> ui.Identification:
    """The result, loaded."""
    return ui.load(out)


@pytest.fixture(scope="session")
def robot(cell: Path) -> ui.Robot:
    """The robot of the wrong URDF."""
    return ui.Robot.from_urdf(cell / "arm.urdf")


@pytest.fixture(scope="session")
def planned(cell: Path) -> Path:
    """A short motion that `design` planned."""
    project = cell / "short.yaml"
    project.write_text("excitation: {duration: 6, harmonics: 3, budget: 0.5}\n")
    outcome = command("design", "arm.urdf", "-c", "short.yaml", "-o", "motion.csv", cwd=cell)
    assert outcome.code == 0, outcome
    return cell / "motion.csv"
