"""Friction between logs: REML against the dense mixed model, coverage on many draws."""

from dataclasses import replace

import numpy as np
import pytest

from urdf_ident.model.base import BaseParameters
from urdf_ident.statistics.fit import Fit, fit_base
from urdf_ident.statistics.log_effects.changes import FrictionChanges
from urdf_ident.statistics.log_effects.mixed_model import friction_changes
from urdf_ident.statistics.log_effects.reml import Moments, reml
from urdf_ident.statistics.statistic import Layout, Statistic, StatisticSet

LOGS, ROWS, BLOCKS = 7, 320, 16
NAMES = ("m_a", "mx_a", "Fv_a", "Fc_a")


class TwoTerms:
    """Stands for a model whose last two parameters are viscous and Coulomb friction of one joint."""

    def __init__(self) -> None:
        from urdf_ident.friction import Coulomb, Viscous
        from urdf_ident.model.terms import AppliedTerm

        self.placed_terms = ((AppliedTerm(Viscous(), 0), slice(2, 3)), (AppliedTerm(Coulomb(), 0), slice(3, 4)))
        self.n_inertial, self.names = 2, NAMES


def rows_of(log: int, rng: np.random.Generator) -> np.ndarray:
    """Inertial columns, velocity and its sign, along a motion of its own."""
    t = np.linspace(0.0, 20.0, ROWS)
    v = sum(rng.normal() * np.sin(2 * np.pi * (k + 1) / 20 * t + rng.uniform(0, 6)) for k in range(5))
    return np.column_stack([rng.normal(size=ROWS), np.cos(0.7 * t + log), v, np.tanh(v / 0.02)])


def noise_of(rng: np.random.Generator, memory: float) -> np.ndarray:
    e = rng.normal(size=ROWS)
    for k in range(1, ROWS):
        e[k] = memory * e[k - 1] + np.sqrt(1 - memory**2) * e[k]
    return e


def simulated(
    seed: int, spread: tuple[float, float], sigma: float = 0.3, memory: float = 0.0, logs: int = LOGS, drift: float = 0.0
) -> tuple[StatisticSet, np.ndarray, list[tuple[np.ndarray, np.ndarray]]]:
    """Factors of logs with friction that differs, the true deviations (L, 2), and the rows themselves."""
    rng = np.random.default_rng(seed)
    theta, deviations = np.array([2.0, -1.0, 3.0, 5.0]), rng.normal(size=(logs, 2)) * spread
    entries, raw = [], []
    for log in range(logs):
        W = rows_of(log, rng)
        y = W @ theta + W[:, 2:] @ deviations[log] + sigma * noise_of(rng, memory)
        y += W[:, 3] * drift * np.linspace(-1, 1, ROWS)
        raw.append((W, y))
        for block, part in enumerate(np.array_split(np.arange(ROWS), BLOCKS)):
            R = np.linalg.qr(np.column_stack([W, y])[part], mode="r")
            entries.append(Statistic(f"log{log}", block, "joint:a", R, len(part)))
    layout = Layout("joint:a", 0, np.arange(4))
    return StatisticSet(NAMES, (layout,), tuple(entries), "test"), deviations, raw


def fitted(statistics: StatisticSet) -> Fit:
    base = BaseParameters(NAMES, np.arange(4), np.zeros(0, int), np.zeros(0, int), np.zeros((4, 0)), 1e9)
    return fit_base(statistics, base, method="wls")


def changes(statistics: StatisticSet, covariates: np.ndarray | None = None) -> FrictionChanges:
    return friction_changes(TwoTerms(), statistics, fitted(statistics), covariates)  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", range(2))
def test_variances_are_those_of_the_dense_restricted_likelihood(seed: int) -> None:
    """The best of many others near by and far off, zero included, from any first guess; the second parameter does not vary."""
    _, _, raw = simulated(seed, (0.5, 0.0))
    rows = np.array([np.column_stack([X, X[:, 2:], z]) / 0.3 for X, z in raw])
    logs = Moments.of(rows.transpose(0, 2, 1) @ rows, 4)
    X, Z = rows[:, :, :4], rows[:, :, 4:6]

    def likelihood(variance: np.ndarray) -> float:
        V = np.eye(ROWS) + (Z * variance) @ Z.swapaxes(1, 2)
        weighted = np.linalg.solve(V, rows)
        normal, score = np.einsum("lna,lnb->ab", X, weighted[..., :4]), np.einsum("lna,ln->a", X, weighted[..., -1])
        squares = float(np.sum(rows[..., -1] * weighted[..., -1]) - score @ np.linalg.solve(normal, score))
        return -0.5 * (float(np.linalg.slogdet(V)[1].sum()) + float(np.linalg.slogdet(normal)[1]) + squares)

    found = reml(logs, np.array([0.1, 0.1]))
    np.testing.assert_allclose(reml(logs, np.array([1e-4, 30.0])), found, rtol=1e-4, atol=1e-6)
    others = [found * factors + more for factors in ((0.98, 1), (1.02, 1), (1, 0.9), (1, 1.1), (9, 9)) for more in (0.0, 1e-4)]
    assert likelihood(found) >= max(map(likelihood, others)) - 1e-9


def test_the_spread_is_found_and_the_next_log_covered() -> None:
    from scipy import stats

    spread, ratios, covered = np.array([0.5, 0.8]), [], []
    for seed in range(40):
        found = changes(simulated(100 + seed, (0.5, 0.8), memory=0.8)[0])
        ratios.append(found.spread / spread)
        following = np.array([3.0, 5.0]) + spread * np.random.default_rng(seed).normal(size=2)
        covered.append(np.abs(following - found.mean) < stats.t.ppf(0.975, found.spread_dof) * found.next_log_error)
    assert 0.85 < np.median(ratios) < 1.1  # a standard deviation of seven has its median at 0.94
    assert np.mean(covered) == pytest.approx(0.95, abs=0.05)


def test_one_log_says_that_the_spread_is_not_known_and_tells_drift() -> None:
    found = changes(simulated(5, (0.5, 0.8), logs=1, drift=1.0)[0])
    assert not found.known
    assert np.isnan(found.spread).all()
    notes = " ".join(found.notes(np.ones(1), np.zeros(1)))
    assert "unknown from a single log" in notes
    assert "not known" in "\n".join(found.lines())
    fit = fitted(simulated(5, (0.5, 0.8), logs=1, drift=1.0)[0])
    honest = replace(fit, covariance=9.0 * fit.covariance).for_next_log(found)  # errors that were found afterwards
    np.testing.assert_allclose(honest.changes.mean_error, 3.0 * fit.bse[2:])
    np.testing.assert_allclose(honest.bse, 3.0 * fit.bse)
    assert "drifts within a log: Fc_a" in notes
    # From −1 to 1 over the log; thirds have means of ∓2/3.
    assert found.drift[0, 1] == pytest.approx(4 / 3, abs=4 * found.drift_error[0, 1])
    steady = changes(simulated(5, (0.5, 0.8), logs=1)[0])
    assert not any("drifts" in note for note in steady.notes(np.ones(1), np.zeros(1)))


def test_a_slope_per_kelvin_takes_its_share_of_the_spread() -> None:
    statistics, _, _ = simulated(6, (0.0, 0.1))
    kelvin = np.array([20.0, 24.0, 22.0, 30.0, 35.0, 28.0, 40.0])
    entries = []
    for entry in statistics.entries:
        R, log = np.array(entry.R), int(entry.log[3:])
        R[:, -1] += -0.1 * (kelvin[log] - 30.0) * R[:, 3]
        entries.append(replace(entry, factor=R, expansion=None))
    warm = replace(statistics, entries=tuple(entries))
    known = changes(warm, np.column_stack([np.full(LOGS, np.nan), kelvin]))
    assert np.isnan(known.slope[0])
    assert known.slope[1] == pytest.approx(-0.1, abs=4 * known.slope_error[1])
    assert known.left[1] < 0.4 * known.spread[1]
    np.testing.assert_array_equal(known.spread, changes(warm).spread)  # a robot without a thermometer warms too
    assert any("per kelvin" in line for line in known.lines())


def test_logs_of_two_robots_are_named() -> None:
    found = changes(simulated(8, (2.0, 8.0))[0])
    (note,) = [note for note in found.notes(np.ones(1), np.zeros(1)) if "two robots" in note]
    assert "Fc_a" in note or "Fv_a" in note
    assert not [note for note in changes(simulated(8, (0.3, 0.8))[0]).notes(np.ones(1), np.zeros(1)) if "two robots" in note]
