"""The floor: the errors of the simpler models made another way, and what is said where one of them is better."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from conftest import arm_urdf
from logs import Truth, fourier, torques

from urdf_ident.comparison.simpler_models import measure_floor
from urdf_ident.logs.recording import Recording
from urdf_ident.model.robot import Robot
from urdf_ident.pipeline.identify import identify
from urdf_ident.project import parse_project
from urdf_ident.result.files.load import load
from urdf_ident.result.identification import Identification
from urdf_ident.statistics.folds import folds_of

SIMPLE = {"model": {"friction": ["viscous", "coulomb", "offset"]}}


def recorded(robot: Robot, seed: int) -> Recording:
    t, q, v, a = fourier(2, 12.0, 100.0, seed)
    tau = torques(robot, Truth.of(2), q, v, a) + 0.05 * np.random.default_rng(seed).standard_normal(q.shape)
    return Recording(f"log{seed}", robot.joints, t, q, effort=tau)


@pytest.fixture(scope="module")
def taken() -> tuple[Identification, tuple]:
    """A result, and the arguments of its floor."""
    robot = Robot.from_urdf(arm_urdf("zy"))
    project = parse_project(SIMPLE)
    seen = []

    def spy(*arguments: object) -> dict:
        seen.append(arguments)
        return measure_floor(*arguments)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("urdf_ident.pipeline.hold_out.measure_floor", spy)
        ident = identify(project.build_model(robot), [recorded(robot, k) for k in range(3)], project=project)
    return ident, seen[0]


def test_errors_are_those_of_estimates_without_the_fold(taken: tuple[Identification, tuple]) -> None:
    ident, (model, statistics, fit, theta0, exported, _) = taken
    split, errors = folds_of(statistics), ident.floor["rmse"]
    squares: dict[str, list] = {"urdf": [], "least_squares": [], "exported": []}
    for fold in split.logs:
        rest, held = split.left_out(fold), split.only([fold])
        bare = np.where(np.arange(len(theta0)) < model.n_inertial, theta0, 0.0)
        plain = np.zeros(len(theta0))
        used = fit.base.independent
        factor = rest.stacked(fit.weights, used)
        plain[used] = np.linalg.lstsq(factor[:, :-1], factor[:, -1], rcond=None)[0]
        for name, theta in (("urdf", bare), ("least_squares", plain), ("exported", exported[fold])):
            squares[name].append([held.residual_squares(theta, group) / held.weight[group] for group in held.groups])
    for name, values in squares.items():
        np.testing.assert_allclose(errors[name], np.sqrt(np.mean(values, axis=0)), rtol=1e-6)
    assert all(ours < urdf for ours, urdf in zip(errors["exported"], errors["urdf"], strict=True))


def test_a_worse_export_is_told(taken: tuple[Identification, tuple]) -> None:
    _, (model, statistics, fit, theta0, exported, _) = taken
    heavy = {fold: theta * np.where(np.arange(len(theta)) < model.n_inertial, 1.5, 1.0) for fold, theta in exported.items()}
    found = measure_floor(model, statistics, fit, theta0, heavy, ("l2: mass at its limit",))
    assert {"least_squares"} <= {entry["model"] for entry in found["worse"]}
    assert "better" in found["text"]
    assert "least squares with simple friction in the mean" in found["text"]
    assert found["text"].endswith("because of the prior or of l2: mass at its limit")


def test_nothing_to_hold_out(taken: tuple[Identification, tuple]) -> None:
    _, (model, statistics, fit, theta0, _, limits) = taken
    assert measure_floor(model, statistics, fit, theta0, {}, limits) == {}


def test_it_is_written_and_printed(taken: tuple[Identification, tuple], tmp_path: Path) -> None:
    ident, _ = taken
    again = load(ident.save(tmp_path / "a.json"))
    assert json.loads((tmp_path / "a.json").read_text())["floor"]["text"] == ident.floor["text"]
    assert f"floor: {ident.floor['text']}" in again.summary(verbose=True)
