"""Instrumental variables: the level of their test, and what they need."""

from dataclasses import replace

import numpy as np
import pytest
from estimation_samples import as_log
from motion_samples import make_segment

from urdf_ident import DynamicModel, Recording
from urdf_ident.errors import EstimationError
from urdf_ident.estimation.estimators.instrumental import fit_instrumental, instrumented, with_simulated
from urdf_ident.statistics.accumulate import build_statistics


def test_the_test_keeps_its_level_on_good_logs(model: DynamicModel) -> None:
    """Columns with next to no noise: one in a hundred may be rejected."""
    base, found = model.base(), []
    for seed in range(30):
        clean = make_segment(model, 600, sigma=np.array([0.2, 0.004, 0.001]), seed=seed)
        noisy = clean.a + 1e-4 * np.random.default_rng(seed).normal(size=clean.a.shape)
        log = as_log(replace(clean, a=noisy, simulated=replace(clean, tau=None)))
        found.append(fit_instrumental(build_statistics(model, [log], rows=instrumented(model)), base).test)
    assert sum(test.rejected for test in found) <= 2
    assert np.mean([test.p_value for test in found]) > 0.25


def test_what_is_missing_is_said(model: DynamicModel) -> None:
    segment = make_segment(model, 400, sigma=0.1)
    log = as_log(segment)
    with pytest.raises(EstimationError, match="noise-free simulated motion"):
        build_statistics(model, [log], rows=instrumented(model))
    with pytest.raises(EstimationError, match="no instruments"):
        fit_instrumental(build_statistics(model, [log]), model.base())
    short = Recording("short", ("j0", "j1", "j2"), np.arange(100) / 100.0, segment.q[:100])
    with pytest.raises(EstimationError, match="does not cover the log"):
        with_simulated(log, short)
    with pytest.raises(EstimationError, match="other joints"):
        with_simulated(log, replace(short, joints=("a", "b", "c")))
    at_rest = as_log(replace(segment, simulated=replace(segment, q=0 * segment.q, v=0 * segment.v, a=0 * segment.a, tau=None)))
    instruments = build_statistics(model, [at_rest], rows=instrumented(model))
    with pytest.raises(EstimationError, match="does not excite"):
        fit_instrumental(instruments, model.base())
