"""Essential parameters: the F-test of statsmodels, and what a result says of them."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import statsmodels.api as sm
from estimation_samples import as_log, stacked
from logs import make_log
from motion_samples import make_segment, robot_3r

from urdf_ident import DynamicModel, identify, load, read_recording
from urdf_ident.errors import ProjectError
from urdf_ident.estimation.uncertainty.essential import essential_parameters
from urdf_ident.files.documents import plain
from urdf_ident.project import parse_project
from urdf_ident.statistics.accumulate import build_statistics
from urdf_ident.statistics.fit import fit_base

pytestmark = pytest.mark.usefixtures("unexamined")


def test_the_f_test_is_the_one_of_statsmodels(model: DynamicModel) -> None:
    base, log = model.base(), as_log(make_segment(model, 600, sigma=np.array([0.2, 0.004, 0.001]), seed=3))
    statistics = build_statistics(model, [log])
    fit = replace(fit_base(statistics, base, method="ols"), covariance_kind="known to be right")
    found = essential_parameters(statistics, base, fit)
    X, y = stacked(model, base, log)
    full = sm.OLS(y, X).fit(method="qr")
    left, expected = list(range(len(base))), []
    p_value = 1.0
    while p_value >= 0.05:
        one = sm.OLS(y, X[:, left]).fit(method="qr")
        relative = 100 * one.bse / np.abs(one.params)
        left.pop(int(np.argmax(relative)))
        p_value = full.compare_f_test(sm.OLS(y, X[:, left]).fit(method="qr"))[1]
        expected.append((relative.max(), p_value))
    steps = [(step.relative_percent, step.p_value) for step in found.removed]
    assert 0 < len(steps) < len(expected)  # the last one raises the residual
    for step, wanted in zip(steps, expected[:-1], strict=True):
        assert step == pytest.approx(wanted, rel=1e-4, abs=1e-12)
    assert set(found.names) == set(base.labels) - {step.removed for step in found.removed}


def test_the_result_names_them(tmp_path: Path) -> None:
    robot = robot_3r()
    logs = [read_recording(make_log(tmp_path / f"log{seed}.csv", robot, seed=seed, seconds=12.0), robot) for seed in range(2)]
    laws = DynamicModel(robot, friction=["viscous", "coulomb", "offset"])
    counts = {}
    for rule in ("f-test", "ratio", "none"):
        ident = identify(laws, logs, project=parse_project({"estimation": {"essential": rule}}))
        data = json.loads(ident.save(tmp_path / f"{rule}.json").read_text())
        counts[rule] = data["counts"]["essential"]
        if rule == "none":
            assert data["parameters"]["base"][0]["essential"] is None
            assert "essential" not in ident.summary(verbose=True)
            continue
        names = {entry["name"] for entry in data["parameters"]["base"] if entry["essential"]}
        assert names == set(data["essential"]["names"])
        assert len(names) == counts[rule]
        assert {f"Fc_{joint}" for joint in robot.joints} <= names
        assert f"{counts[rule]} of {len(ident.fit.base)} base parameters are essential" in ident.summary(verbose=True)
        assert plain(load(tmp_path / f"{rule}.json").essential) == data["essential"]
        gone = [step["removed"] for step in data["essential"]["removed"]]
        assert len(gone) + counts[rule] == len(ident.fit.base)
        assert not names & set(gone)
    assert counts["none"] is None
    assert json.loads((tmp_path / "f-test.json").read_text())["essential"]["held_out"] <= 1.005
    with pytest.raises(ProjectError, match="essential"):
        parse_project({"estimation": {"essential": "size"}})
