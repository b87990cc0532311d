"""A real Franka Panda: one 21 s log with a ragged clock, learnt from its first 60 % and scored on the rest at 10 Hz."""

from __future__ import annotations

from pathlib import Path

import pytest

from urdf_ident.logs.read import read_recording
from urdf_ident.pipeline.identify import identify
from urdf_ident.project import parse_project


@pytest.fixture(scope="module")
def halves(data: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    lines = (data / "panda" / "panda_exciting.csv").read_text().splitlines()
    times = [float(line.split(",")[0]) for line in lines[1:]]
    cut = 1 + sum(t < times[0] + 0.6 * (times[-1] - times[0]) for t in times)
    folder = tmp_path_factory.mktemp("panda")
    parts = {"first.csv": lines[:cut], "second.csv": [lines[0], *lines[cut:]]}
    for name, part in parts.items():
        (folder / name).write_text("\n".join(part) + "\n")
    return folder / "first.csv", folder / "second.csv"


def test_sixty_forty(data: Path, halves: tuple[Path, Path]) -> None:
    lock = {"panda_finger_joint1": 0.0, "panda_finger_joint2": 0.0}
    project = parse_project(
        {
            "robot": {"lock": lock},
            "validation": {"score_cutoff": 10.0},
            "model": {"friction": ["viscous", "coulomb", "offset"]},
        }
    )
    model = project.build_model(project.build_robot(data / "panda" / "panda.urdf"))
    first, second = (read_recording(path, model.robot, project.log) for path in halves)
    ident = identify(model, [first], held_out=[second], project=project)
    assert "position-jump" not in {finding["id"] for log in ident.inputs for finding in log["findings"]}
    found = ident.validation[0]
    assert found["fit_mean_rmse"] <= 0.125
    assert found["mean_rmse"] <= 0.133  # physically consistent bodies, and no negative rotor inertia
    assert found["urdf_friction_mean_rmse"] == pytest.approx(0.91, abs=0.1)  # as peers measured
    assert found["urdf_mean_rmse"] == pytest.approx(1.43, abs=0.1)
    assert ident.consistency.consistent
