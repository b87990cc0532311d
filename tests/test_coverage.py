"""Intervals that hold the truth: a short version of ``scripts/benchmarks/interval_coverage.py``."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest
from conftest import load_script

RUNS = 8


@pytest.fixture(scope="module")
def benchmark() -> ModuleType:
    return load_script("benchmarks/interval_coverage.py")


@pytest.fixture(scope="module")
def arm(benchmark: ModuleType):
    return benchmark.Arm.build()


@pytest.fixture(scope="module")
def motion(arm):
    return arm.motion(0)


@pytest.mark.parametrize(("rho", "textbook"), [(0.9, 0.34), (0.98, 0.18)])
def test_automatic_intervals_hold_the_truth_where_textbook_ones_do_not(benchmark, arm, motion, rho, textbook) -> None:
    held: dict[str, list[np.ndarray]] = {"model": [], "auto": []}
    for log in benchmark.logs_of(arm, motion, rho, RUNS, seed=50):
        for kind, fit in benchmark.fits_of(arm, log, held).items():
            low, high = fit.conf_int().T
            held[kind].append((low <= arm.truth) & (arm.truth <= high))
    assert np.mean(held["model"]) < textbook + 0.15
    assert 0.90 <= np.mean(held["auto"]) <= 0.995  # 100 runs: 95 and 97 %; parameters of one run err together
    assert np.mean(held["auto"], axis=0).min() >= 0.5


def test_truth_of_the_benchmark_is_the_plant(benchmark, arm, motion) -> None:
    """The true base parameters reproduce the simulated torque, or coverage would mean nothing."""
    model, base = arm.model, arm.model.base()
    theta = np.zeros(len(model.names))
    theta[base.independent] = arm.truth
    part = motion.slice(0, 300)
    predicted = model.torque(theta, part.q, part.v, part.a)
    np.testing.assert_allclose(predicted, part.tau, atol=1e-6)
