"""Instrumental variables: closed form, simulated errors in variables, and the EMPS benchmark with noise added."""

from dataclasses import replace

import numpy as np
import pytest
from estimation_samples import as_log
from motion_samples import make_segment, truth

from urdf_ident import DynamicModel, Recording, Segment
from urdf_ident.errors import EstimationError
from urdf_ident.estimation.estimators.instrumental import fit_instrumental, instrumented, with_simulated
from urdf_ident.statistics.accumulate import build_statistics


def noisy_columns(model: DynamicModel, size: float, seed: int, samples: int = 2000) -> Segment:
    """A log whose measured motion is noisy, with the true motion as the simulated one."""
    clean = make_segment(model, samples, sigma=np.array([0.2, 0.004, 0.001]), seed=seed)
    rng = np.random.default_rng(seed)
    v = clean.v + 1e-3 * size * rng.normal(size=clean.v.shape)  # small: columns with v² would be biased by more
    a = clean.a + size * rng.normal(size=clean.a.shape)
    simulated = Segment(clean.log, clean.start, clean.rate, clean.q, clean.v, clean.a)
    return replace(clean, v=v, a=a, simulated=simulated)


def test_noise_in_the_columns_biases_least_squares_and_not_the_instruments(model: DynamicModel) -> None:
    base, true = model.base(), model.base().of(truth(model))
    z_iv, z_ls, rejected = [], [], []
    for seed in range(12):
        found = fit_instrumental(
            build_statistics(model, [as_log(noisy_columns(model, 2.0, seed))], rows=instrumented(model)), base
        )
        z_iv.append((found.fit.params - true) / found.fit.bse)
        z_ls.append((found.least_squares.params - true) / found.fit.bse)
        rejected.append(found.test.rejected)
    assert np.sqrt(np.mean(np.square(z_iv))) < 1.4
    assert np.sqrt(np.mean(np.square(z_ls))) > 3
    assert all(rejected)


def test_the_test_keeps_its_level_on_good_logs(model: DynamicModel) -> None:
    """Columns with next to no noise: one in a hundred may be rejected."""
    base = model.base()
    found = [
        fit_instrumental(
            build_statistics(model, [as_log(noisy_columns(model, 1e-4, seed, 600))], rows=instrumented(model)), base
        ).test
        for seed in range(30)
    ]
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
