"""Sensors: each imperfection has the size it claims, leaves the others alone, and repeats with its seed."""

import numpy as np
import pytest
from pydantic import ValidationError

from urdf_ident import Recording, Segment
from urdf_ident.motion.fourier import FourierTrajectory
from urdf_ident.simulation.settings import Noise, Sensors
from urdf_ident.simulation.simulate import draw, measure, quantise

RATE = 1000.0


def motion() -> Segment:
    rng = np.random.default_rng(0)
    series = FourierTrajectory(("a", "b"), 10.0, np.array([0.2, -0.1]), *rng.normal(size=(2, 2, 4)))
    time = series.times(RATE)
    q, v, a = series.evaluate(time)
    return Segment("motion", 0.0, RATE, q, v, a, 3.0 * a + 20.0 * np.cos(q))


TRUTH = motion()


def seen(seed: int = 0, **settings) -> Recording:
    return measure(TRUTH, ("a", "b"), Sensors(**{"velocity": "measured", **settings}), seed)


def test_encoder_counts_a_revolution_or_a_metre() -> None:
    q = seen(counts=[4096, 1000]).position
    counts = q / (2 * np.pi) * np.array([4096, 1000])
    np.testing.assert_allclose(counts, np.rint(counts), atol=1e-8)
    assert np.abs(q - TRUTH.q).max(axis=0) == pytest.approx(np.pi / np.array([4096, 1000]), rel=0.02)
    sliding = measure(TRUTH, ("a", "b"), Sensors(counts=1000), 0, prismatic=np.array([True, False])).position
    np.testing.assert_allclose(sliding[:, 0] * 1000, np.rint(sliding[:, 0] * 1000), atol=1e-9)
    assert not np.allclose(sliding[:, 1] * 1000, np.rint(sliding[:, 1] * 1000), atol=1e-3)


@pytest.mark.parametrize("decibel", [20.0, 70.0])
def test_snr_is_the_ratio_of_rms_in_decibel(decibel: float) -> None:
    error = seen(position_noise=Noise(snr=decibel)).position - TRUTH.q
    ratio = np.sqrt(np.mean(TRUTH.q**2, axis=0)) / error.std(axis=0)
    np.testing.assert_allclose(20 * np.log10(ratio), decibel, atol=0.2)


@pytest.mark.parametrize("rho", [0.0, 0.9, 0.98])
def test_coloured_noise_has_its_sigma_and_its_correlation(rho: float) -> None:
    quiet = np.zeros((200_000, 2))
    noise = draw(Noise(sigma=[0.5, 2.0], correlation=rho), quiet, np.random.default_rng(1))
    np.testing.assert_allclose(noise.std(axis=0), [0.5, 2.0], rtol=0.05)
    lag = [np.corrcoef(column[1:], column[:-1])[0, 1] for column in noise.T]
    np.testing.assert_allclose(lag, rho, atol=0.01)
    innovations = noise[1:] - rho * noise[:-1]
    assert abs(np.corrcoef(innovations[1:, 0], innovations[:-1, 0])[0, 1]) < 0.01
    many = [draw(Noise(sigma=1.0, correlation=rho), np.zeros((3, 1)), np.random.default_rng(k))[0, 0] for k in range(2000)]
    assert np.std(many) == pytest.approx(1.0, rel=0.06)  # stationary from the first sample on


def test_a_delayed_log_is_the_past() -> None:
    log = seen(delay=0.012, torque_delay=0.005)
    np.testing.assert_allclose(log.position[12:], TRUTH.q[:-12], atol=1e-12)
    np.testing.assert_allclose(log.velocity[12:], TRUTH.v[:-12], atol=1e-9)
    np.testing.assert_allclose(log.effort[5:], TRUTH.tau[:-5], atol=1e-9)
    np.testing.assert_allclose(log.position[:12], TRUTH.q[0].repeat(12).reshape(2, 12).T, atol=1e-12)


def test_jitter_moves_the_samples_and_the_clock_may_know() -> None:
    known = seen(1, jitter=2e-4)
    series = np.array([np.interp(known.time, TRUTH.time, column) for column in TRUTH.q.T]).T
    np.testing.assert_allclose(known.position, series, atol=1e-5)
    steps = np.diff(known.time)
    assert (steps >= 0).all()
    assert steps.std() == pytest.approx(2e-4 * np.sqrt(2), rel=0.05)
    blind = seen(1, jitter=2e-4, clock="nominal")
    np.testing.assert_array_equal(blind.time, TRUTH.time)
    np.testing.assert_array_equal(blind.position, known.position)
    assert np.abs(blind.position - TRUTH.q).max() > 1e-4


@pytest.mark.parametrize(
    "settings",
    [
        {"velocity": "guessed"},
        {"clock": "cuckoo"},
        {"counts": 0},
        {"torque_step": -1.0},
        {"jitter": -1e-3},
        {"delay": float("nan")},
    ],
)
def test_impossible_sensors_are_refused(settings: dict) -> None:
    with pytest.raises(ValidationError):
        Sensors(**settings)


def test_torque_comes_in_steps() -> None:
    tau = seen(torque_step=[0.25, 1.0]).effort
    np.testing.assert_array_equal(quantise(tau, [0.25, 1.0]), tau)
    assert np.abs(tau - TRUTH.tau).max(axis=0) == pytest.approx([0.125, 0.5], rel=0.01)


def test_velocity_may_be_differences_or_absent() -> None:
    assert seen(velocity="none").velocity is None
    log = seen(velocity="differentiated", counts=10_000)
    np.testing.assert_allclose(log.velocity[1:], np.diff(log.position, axis=0) * RATE)
    assert (log.velocity - TRUTH.v).std() == pytest.approx(np.sqrt(2 / 12) * 2 * np.pi / 10_000 * RATE, rel=0.2)
