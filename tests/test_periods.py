"""Motions that repeat: found where they do and only there, averaged, the noise told from their scatter."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from conftest import arm_urdf
from estimation_samples import theta_with

from urdf_ident import DynamicModel, Recording, Robot, identify, robot_path
from urdf_ident.errors import EstimationError, LogError
from urdf_ident.estimation.uncertainty.covariance import with_covariance
from urdf_ident.estimation.uncertainty.noise import lack_of_fit, scatter_sigma
from urdf_ident.project import parse_project
from urdf_ident.signals.config import SignalConfig
from urdf_ident.signals.periods import choose_harmonics, find_repetition, fourier_derivatives
from urdf_ident.signals.prepare import PreparedLog, prepare_log
from urdf_ident.statistics.accumulate import build_statistics
from urdf_ident.statistics.fit import Fit, fit_base

pytestmark = pytest.mark.usefixtures("unexamined")

RATE, PERIOD, SIGMA = 100.0, 4.0, np.array([0.5, 0.3, 0.1])


def wave(time: np.ndarray, period: float = PERIOD, seed: int = 0, joints: int = 3) -> tuple[np.ndarray, ...]:
    """Five harmonics: q, v, a, shapes (N, joints)."""
    rng = np.random.default_rng(seed)
    size, phase = rng.uniform(0.02, 0.3, (5, joints)), rng.uniform(0, 2 * np.pi, (5, joints))
    q, v, a = np.zeros((3, len(time), joints))
    for k in range(5):
        w = 2 * np.pi * (k + 1) / period
        angle = np.outer(time, np.full(joints, w)) + phase[k]
        q, v, a = q + size[k] * np.sin(angle), v + w * size[k] * np.cos(angle), a - w**2 * size[k] * np.sin(angle)
    return q, v, a


@pytest.mark.parametrize(
    ("period", "rate", "count"), [(4.0, 100.0, 5), (7.3, 93.3, 4), (2.0, 500.0, 6), (3.217, 250.0, 9), (4.0, 100.0, 2)]
)
def test_whole_periods_are_found_between_ramps_and_noise(period: float, rate: float, count: int) -> None:
    """A ramp of a second before and after; periods that are no whole number of samples."""
    t = np.arange(round((count * period + 2.0) * rate)) / rate
    blend = np.clip(np.minimum(t, count * period + 2.0 - t), 0.0, 1.0)[:, None]
    q = wave(t - 1.0, period)[0] * blend**2 * (3 - 2 * blend)
    found = find_repetition(q + 1e-5 * np.random.default_rng(1).standard_normal(q.shape))
    assert found is not None
    assert found.count == count
    assert found.length == pytest.approx(period * rate, abs=0.02)
    assert found.first == pytest.approx(rate, abs=0.01 * period * rate + 3)


NO_MOTIONS = {
    "chirp": lambda t: np.sin(2 * np.pi * (0.3 * t + 0.01 * t**2)),
    "decay": lambda t: np.exp(-t / 60) * np.sin(np.pi * t),
    "swelling": lambda t: (1 + 0.002 * t) * np.sin(2 * t),
    "drift": lambda t: np.sin(2 * t) + 0.002 * t,
    "two periods that share none": lambda t: np.sin(2 * t) + np.sin(2 * np.sqrt(2) * t),
    "random walk": lambda t: np.cumsum(np.random.default_rng(0).standard_normal(len(t))),
    "noise": lambda t: np.random.default_rng(0).standard_normal(len(t)),
    "half a period": lambda t: np.sin(0.05 * t),
    "rest": lambda t: 0.0 * t,
    "one and a half": lambda t: wave(t, 26.0, joints=1)[0][:, 0],
}


@pytest.mark.parametrize("kind", NO_MOTIONS)
def test_what_does_not_repeat_is_not_averaged(kind: str) -> None:
    assert find_repetition(NO_MOTIONS[kind](np.arange(0.0, 40.0, 0.01))[:, None]) is None


def test_real_logs(data: Path) -> None:
    """No log of the real arms repeats a motion three times; the prismatic axis does, after a first stroke from elsewhere."""
    from scipy.io import loadmat

    for path in (data / "ur10e").glob("*.csv"):
        table = np.genfromtxt(path, delimiter=",", skip_header=1)
        assert find_repetition(table[:, 1:7]) is None, path.name
    table = np.genfromtxt(data / "panda" / "panda_exciting.csv", delimiter=",", skip_header=1)
    assert find_repetition(table[:, 1:8]) is None
    found = find_repetition(np.reshape(loadmat(data / "emps" / "DATA_EMPS.mat")["qm"], (-1, 1)))
    assert found is not None
    assert found.count == 3
    assert found.length == pytest.approx(6240.0, abs=0.01)  # [samples of 1 ms]


@pytest.mark.parametrize("noise", [0.0, 1e-5, 1e-4])
def test_harmonics_are_as_many_as_the_motion_has(noise: float) -> None:
    t = np.arange(400) / RATE
    q, v, a = wave(t)
    scatter = noise * np.random.default_rng(0).standard_normal((5, *q.shape))
    mean = q + scatter.mean(axis=0)
    number, share = choose_harmonics(mean, scatter - scatter.mean(axis=0), 80)
    assert 5 <= number <= 6  # the largest of three noisy coefficients may look like motion
    assert share < 1e-3
    found = fourier_derivatives(mean, PERIOD, number)
    for exact, held in zip((q, v, a), found, strict=True):
        np.testing.assert_allclose(held, exact, atol=1e-9 + 5 * noise * np.abs(exact).max() / np.abs(q).max())


@pytest.fixture(scope="module")
def model() -> DynamicModel:
    return DynamicModel(Robot.from_urdf(arm_urdf("zyx")), friction=["viscous", {"term": "coulomb", "width": 0.1}, "offset"])


def true_theta(model: DynamicModel) -> np.ndarray:
    k = np.arange(1, model.n + 1)
    return theta_with(model, Ia=0.5 / k, Fv=4.0 / k, Fc=3.0 / k, offset=0.2 / k)


def record(model: DynamicModel, count: int, seed: int, rho: float = 0.0, extra: float = 0.0, name: str = "log") -> Recording:
    """Periods of one motion with noise that remembers; ``extra``: a torque that the model lacks."""
    rng = np.random.default_rng(seed)
    t = np.arange(round(count * PERIOD * RATE)) / RATE
    q, v, a = wave(t)
    tau = model.torque(true_theta(model), q, v, a) + extra * np.sin(8.0 * q)
    noise = rng.standard_normal((len(t) + 500, model.n))
    for k in range(1, len(noise)):
        noise[k] = rho * noise[k - 1] + np.sqrt(1 - rho**2) * noise[k]
    return Recording(name, model.robot.joints, t, q + 1e-5 * rng.standard_normal(q.shape), effort=tau + SIGMA * noise[500:])


def prepared(model: DynamicModel, recording: Recording, periodic: str = "auto", **options: float) -> PreparedLog:
    return prepare_log(recording, model.robot, model.drive, SignalConfig(periodic=periodic, **options))


def fitted(model: DynamicModel, log: PreparedLog, kind: str = "auto") -> Fit:
    statistics = build_statistics(model, [log])
    return with_covariance(fit_base(statistics, model.base()), statistics, kind, model=model, logs=[log])


def test_noise_is_told_from_five_periods(model: DynamicModel) -> None:
    """Variance within 10 % of the truth, white and (in the mean of ten logs) coloured."""
    white = prepared(model, record(model, 5, 0)).conditioned.averaged
    assert white is not None
    assert white.count == 5
    np.testing.assert_allclose(white.noise**2, SIGMA**2, rtol=0.1)
    logs = [prepared(model, record(model, 5, seed, 0.9)).conditioned.averaged for seed in range(10)]
    np.testing.assert_allclose(np.mean([log.noise**2 for log in logs if log], axis=0), SIGMA**2, rtol=0.1)


def test_an_averaged_log_counts_as_much_as_all_its_periods(model: DynamicModel) -> None:
    recording = record(model, 5, 1)
    one, all_of_it = (prepared(model, recording, mode, cutoff=10.0) for mode in ("on", "off"))
    small, large = (build_statistics(model, [log]) for log in (one, all_of_it))
    a, b = fit_base(small, model.base()), fit_base(large, model.base())
    assert a.rows < 0.25 * b.rows
    assert (np.abs(a.params - b.params) < 1.0 * b.bse).all()
    np.testing.assert_allclose(a.bse, b.bse, rtol=0.15)
    for group, sigma in zip(small.groups, SIGMA, strict=True):
        assert a.sigma[group] == pytest.approx(scatter_sigma(model, [one])[group], rel=0.2)
        assert a.sigma[group] < sigma  # rows are low-passed samples


def test_intervals_of_averaged_logs_hold_the_truth(model: DynamicModel) -> None:
    true, held = model.base().of(true_theta(model)), []
    for seed in range(12):
        fit = fitted(model, prepared(model, record(model, 5, 100 + seed, 0.9)))
        assert fit.covariance_kind == "spectrum of the scatter between 5 periods"
        low, high = fit.conf_int().T
        held.append((low < true) & (true < high))
    assert 0.9 < np.mean(held) < 0.99


def test_what_repeats_and_the_model_lacks_is_no_noise(model: DynamicModel) -> None:
    """The scatter between periods would be far too sure of itself: it is not taken, and the reader is told."""
    log = prepared(model, record(model, 5, 3, extra=0.8))
    statistics = build_statistics(model, [log])
    assert lack_of_fit(model, [log], fit_base(statistics, model.base())) > 2.0
    fit, scatter = fitted(model, log), fitted(model, log, "period")
    assert "the model lacks the rest" in fit.covariance_kind
    assert np.median(fit.bse / scatter.bse) > 1.4


def test_maximum_likelihood_weighs_by_the_scatter(model: DynamicModel) -> None:
    recording = record(model, 5, 6)
    project = parse_project({"estimation": {"method": "ml"}})
    found = identify(model, [recording], project=project)
    weights = {group: 1 / sigma for group, sigma in scatter_sigma(model, [prepared(model, recording)]).items()}
    assert found.fit.method == "ml"
    assert dict(found.fit.row_weights) == pytest.approx(weights)
    assert "periodic: averaged, 5 periods of 4 s; " in found.summary(verbose=True)
    assert found.inputs[0].periods["count"] == 5
    with pytest.raises(EstimationError, match=r"no log repeats its motion.*several periods"):
        identify(model, [replace(recording.take(slice(0, 700)), sha256="")], project=project)
    silent = replace(recording, effort=np.tile(recording.effort[:400], (5, 1)))
    with pytest.raises(EstimationError, match=r"do not differ at all.*wls"):
        identify(model, [silent], project=project)
    assert identify(model, [silent]).fit.seen.any()  # a simulation without noise is no error


def test_whole_periods_that_are_asked_for_must_be_there(model: DynamicModel) -> None:
    with pytest.raises(LogError, match=r"log: the motion does not repeat.*no two equal periods.*periodic: auto"):
        prepared(model, record(model, 5, 0).take(slice(0, 700)), "on")
    broken = record(model, 5, 0)
    paused = replace(broken, time=broken.time + np.where(np.arange(len(broken)) > 900, 30.0, 0.0))
    with pytest.raises(LogError, match="2 pieces between pauses"):
        prepared(model, paused, "on")
    two_encoders = replace(broken, motor_position=broken.position + 1e-4)
    assert prepared(model, two_encoders).conditioned.averaged is None
    with pytest.raises(LogError, match=r"motor positions is not averaged.*auto or off"):
        prepared(model, two_encoders, "on")
    assert prepared(model, record(model, 2, 0)).conditioned.averaged is None  # two periods: only when asked
    assert prepared(model, record(model, 2, 0), "on").conditioned.averaged is not None
    assert prepared(model, record(model, 5, 0), "off").conditioned.averaged is None


def test_a_real_axis_with_encoder_noise(data: Path) -> None:
    """20 µm of white noise on a real log (95.1 kg): behind a 100 Hz filter nearly all mass is lost, by harmonics 1 %."""
    from scipy.io import loadmat

    table = {
        key: np.ravel(value).astype(float) for key, value in loadmat(data / "emps" / "DATA_EMPS.mat").items() if key[0] != "_"
    }
    robot = Robot.from_urdf(robot_path("emps"))
    axis = DynamicModel(robot, friction=["viscous", "coulomb", "offset"], rotor_inertia=False)
    q = table["qm"] + 2e-5 * np.random.default_rng(0).standard_normal(len(table["qm"]))
    log = Recording("emps", robot.joints, table["t"], q[:, None], effort=(table["gtau"] * table["vir"])[:, None])
    masses = [
        fit_base(build_statistics(axis, [prepared(axis, log, mode, cutoff=100.0)]), axis.base()).params[0]
        for mode in ("off", "auto")
    ]
    assert masses[0] < 60.0
    assert masses[1] == pytest.approx(95.1, rel=0.015)
