"""The EMPS benchmark by its published protocol through the public parts: the same digits as the published table.

Janot, Gautier, Brunot: data set and reference models of EMPS (one prismatic axis, 1 kHz, closed loop).
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from emps_protocol import matlab_filtfilt, matlab_rows
from scipy.io import loadmat

import urdf_ident as ui
from urdf_ident import DynamicModel, Robot, Segment, robot_path
from urdf_ident.friction import Coulomb, Offset, Viscous
from urdf_ident.project import parse_project
from urdf_ident.statistics.accumulate import accumulate
from urdf_ident.statistics.fit import Fit, fit_base
from urdf_ident.statistics.least_squares import solve
from urdf_ident.statistics.rows import RowFilter
from urdf_ident.statistics.statistic import StatisticSet

PERCENT = ["0.114", "0.563", "0.496", "1.402"]
CUT = 49  # samples that the protocol leaves out at the start


@pytest.fixture(scope="module")
def log(data: Path) -> dict[str, np.ndarray]:
    table = loadmat(data / "emps" / "DATA_EMPS.mat")
    return {key: np.asarray(table[key], dtype=float).reshape(-1) for key in ("qm", "vir", "gtau", "t")}


@pytest.fixture(scope="module")
def model() -> DynamicModel:
    robot = Robot.from_urdf(robot_path("emps"))
    return DynamicModel(robot, friction=[Viscous(), Coulomb(width=0), Offset()], rotor_inertia=False)


@pytest.fixture(scope="module")
def statistics(log: dict[str, np.ndarray], model: DynamicModel) -> StatisticSet:
    q = matlab_filtfilt(log["qm"], 1000.0, 100.0, order=4)[:, None]
    v = np.gradient(q, 1 / 1000.0, axis=0)
    a = np.gradient(v, 1 / 1000.0, axis=0)
    force = (log["gtau"] * log["vir"])[:, None]
    segment = Segment("emps", 0.0, 1000.0, q[CUT:], v[CUT:], a[CUT:], force[CUT:])
    with matlab_rows():
        return accumulate(model, "emps", [segment], RowFilter(10))


@pytest.fixture(scope="module")
def fit(statistics: StatisticSet, model: DynamicModel) -> Fit:
    return fit_base(statistics, model.base(), method="ols")


def test_published_estimates(fit: Fit) -> None:
    assert [f"{value:.4f}" for value in fit.params] == ["95.1089", "203.5034", "20.3935", "-3.1648"]


def test_published_standard_errors(fit: Fit, statistics: StatisticSet) -> None:
    """The published ones divide the residual by N - 1, not by N - 4."""
    solution = solve(statistics.stacked(columns=fit.base.independent), fit.rows)
    published = np.sqrt(np.diag(solution.covariance(solution.residual_squares / (fit.rows - 1))))
    assert [f"{100 * s / abs(value):.3f}" for s, value in zip(published, fit.params, strict=True)] == PERCENT
    np.testing.assert_allclose(fit.bse / published, np.sqrt((fit.rows - 1) / (fit.rows - 4)), rtol=1e-9)


def test_published_error(fit: Fit, statistics: StatisticSet, model: DynamicModel) -> None:
    theta = np.zeros(statistics.p)
    theta[fit.base.independent] = fit.params
    (group,) = statistics.groups
    relative = np.sqrt(statistics.residual_squares(theta, group) / statistics.effort_squares(group))
    assert f"{100 * relative:.3f}" == "4.083"


def test_laws_chosen_on_the_first_part_explain_the_rest(log: dict[str, np.ndarray]) -> None:
    """Default settings; the simple laws listed by hand leave 1.77 N, as any choice did that ignored the slow motion."""
    robot = ui.Robot.from_urdf(robot_path("emps"))
    table = ui.Recording.from_arrays(log["t"], log["qm"][:, None], 35.15 * log["vir"][:, None], joints=robot, name="emps")
    first = log["t"] < log["t"][0] + 0.6 * (log["t"][-1] - log["t"][0])
    parts = [replace(table.take(mask), name=name, sha256="") for mask, name in ((first, "first"), (~first, "rest"))]
    project = parse_project({"validation": {"score_cutoff": 10.0}})
    ident = ui.identify(DynamicModel(robot, rotor_inertia=False), parts[:1], held_out=parts[1:], project=project)
    assert ident.validation[0]["mean_rmse"] < 1.0
