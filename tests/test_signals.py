"""Filters against analytic signals, the cut-off against known noise, and conditioning against known motions."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import arm_urdf
from scipy import signal

from urdf_ident import Recording, Robot, read_recording
from urdf_ident.errors import LogError
from urdf_ident.signals import clock, filters
from urdf_ident.signals.condition import Conditioned, condition, resolve
from urdf_ident.signals.config import SignalConfig
from urdf_ident.signals.filters import differentiate, estimate_cutoff, lag, lowpass, lowpass_gain, welch
from urdf_ident.signals.quality.report import assess
from urdf_ident.signals.resolution import count_of

Array = np.ndarray[Any, Any]
URDF = """<robot name="two"><link name="base"/><link name="l1"/><link name="l2"/>
  <joint name="a" type="revolute"><parent link="base"/><child link="l1"/><axis xyz="0 0 1"/>
    <limit lower="-3" upper="3" velocity="5" effort="50"/></joint>
  <joint name="b" type="revolute"><parent link="l1"/><child link="l2"/><axis xyz="0 1 0"/>
    <limit lower="-3" upper="3" velocity="5" effort="50"/></joint>
</robot>"""


@pytest.fixture(scope="module")
def robot() -> Robot:
    return Robot.from_urdf(URDF)


def motion(t: Array, order: int = 0) -> Array:
    """Two joints, tones up to 1.5 Hz; ``order`` 0, 1, 2: position, velocity, acceleration, exactly."""
    w = 2 * np.pi * np.array([[0.2, 0.9, 1.5], [0.3, 0.7, 1.3]])
    size = np.array([[0.8, 0.2, 0.05], [0.7, 0.15, 0.04]])
    x = t[:, None, None] * w + np.array([0.3, 1.1, 2.0]) + order * np.pi / 2
    return (size * w**order * np.sin(x)).sum(axis=2)


def torque(t: Array) -> Array:
    return 4 * motion(t, 2) + 2 * motion(t, 1) + 20 * np.sin(motion(t))


def make_log(t: Array, noise: float = 0.0, seed: int = 0, name: str = "log") -> Recording:
    rng = np.random.default_rng(seed)
    q = motion(t) + noise * rng.standard_normal((len(t), 2))
    return Recording(name, ("a", "b"), t, q, velocity=motion(t, 1), effort=torque(t))


# ---- filters -------------------------------------------------------------------------------------


def test_lowpass_has_no_delay_and_the_stated_gain() -> None:
    rate, cutoff = 500.0, 20.0
    t = np.arange(5000) / rate
    inside = slice(500, -500)
    for frequency in (1.0, 10.0, 20.0, 40.0):
        tone = np.sin(2 * np.pi * frequency * t)
        warped = np.tan(np.pi * frequency / rate) / np.tan(np.pi * cutoff / rate)  # bilinear transform
        gain = 1 / (1 + warped**8)  # |H|² of one pass of order 4
        assert lowpass_gain(frequency, cutoff) == pytest.approx(gain, abs=0.001)
        np.testing.assert_allclose(lowpass(tone, rate, cutoff)[inside], gain * tone[inside], atol=2e-6)


@pytest.mark.parametrize(("cutoff", "order"), [(2.0, 4), (10.0, 7), (25.0, 1), (45.0, 1)])
def test_filters_are_those_of_scipy(cutoff: float, order: int) -> None:
    x = 3.0 + np.random.default_rng(0).standard_normal((900, 2)).cumsum(axis=0)
    sections = signal.butter(order, cutoff, fs=100.0, output="sos")
    expected = signal.sosfiltfilt(sections, x, axis=0, padlen=len(x) - 1)
    np.testing.assert_allclose(lowpass(x, 100.0, cutoff, order), expected, atol=1e-10)
    first = signal.butter(1, cutoff, fs=100.0)
    expected = signal.lfilter(*first, np.vstack([2 * x[0] - x[:0:-1], x]), axis=0)[len(x) - 1 :]
    np.testing.assert_allclose(lag(x, 100.0, cutoff), expected, atol=1e-10)


@pytest.mark.parametrize("length", [100, 101])
def test_the_spectrum_is_that_of_scipy(length: int) -> None:
    x = np.random.default_rng(0).standard_normal((length + 9 * (length - length // 2), 2))
    expected = signal.welch(x, 50.0, nperseg=length, detrend=False, axis=0)
    for found, wanted in zip(welch(x, 50.0, length), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("first", [0, 7, 1300])
def test_a_few_samples_are_those_of_the_whole_signal(first: int) -> None:
    x, rows = np.sign(np.random.default_rng(0).standard_normal((4000, 2)).cumsum(axis=0)), slice(first, None, 450)
    whole = lowpass(x, 100.0, 2.0)
    np.testing.assert_allclose(lowpass(x, 100.0, 2.0, rows=rows), whole[rows], atol=1e-11)


def test_differences_are_exact_for_polynomials_and_converge() -> None:
    t = np.linspace(0, 2, 41)
    rate = 20.0
    polynomial = np.polynomial.Polynomial(np.arange(1.0, 8.0))
    inside = slice(3, -3)
    np.testing.assert_allclose(differentiate(polynomial(t), rate)[inside], polynomial.deriv()(t)[inside], rtol=1e-9)
    errors = []
    for each in (50.0, 100.0):
        t = np.arange(0, 4, 1 / each)
        errors.append(np.abs(differentiate(np.sin(5 * t), each) - 5 * np.cos(5 * t))[10:-10].max())
    assert errors[0] / errors[1] == pytest.approx(2**6, rel=0.1)


# ---- the cut-off ---------------------------------------------------------------------------------


def test_the_count_of_an_encoder_does_not_depend_on_the_length_of_the_log() -> None:
    count = 2 * np.pi / 2**23
    counts = np.round(np.sin(2 * np.pi * np.arange(20_000) / 2_000.3) / count)
    assert count_of(count * counts) == pytest.approx(count, rel=1e-9)
    assert count_of(count * np.tile(counts, 50)) == pytest.approx(count, rel=1e-9)  # a travel of 2000 rad
    assert count_of(count * np.where(np.arange(20_000) == 7, np.nan, counts)) == pytest.approx(count, rel=1e-9)
    assert count_of(np.random.default_rng(0).standard_normal(20_000)) == 0.0
    assert count_of(np.full(5, np.nan)) == count_of(np.ones(5)) == 0.0


@pytest.mark.parametrize("noise", [4e-4, 0.001229, 0.001335, 4e-3])
def test_encoder_noise_is_not_taken_for_motion(noise: float) -> None:
    """White noise is spread over all frequencies and may hold as much power as motion that would move the end of the motion."""
    rate = 500.0
    t = np.arange(0, 8, 1 / rate)
    way = np.clip((t % 2.0) / 1.2, 0.0, 1.0)
    move = way**3 * (10 - 15 * way + 6 * way**2)
    q = np.where((t // 2) % 2 == 0, move, 1 - move)[:, None] * np.array([1.0, 0.6])
    white = np.random.default_rng(1).standard_normal(q.shape)
    assert estimate_cutoff([q + noise * white], rate).cutoff < 10


@pytest.mark.parametrize(("rate", "step", "speed"), [(1000.0, 1.5e-3, 0.04), (500.0, 5e-4, 0.3), (250.0, 1.5e-3, 0.04)])
def test_steps_of_an_encoder_at_a_steady_speed_are_not_taken_for_motion(rate: float, step: float, speed: float) -> None:
    """Their rounding errors are lines at multiples of the steps per second, above a lower density between motion and lines."""
    t = np.arange(0, 16, 1 / rate)
    ramp = [np.clip((t[:, None] - begin - [0.2, 0.4]) / 0.4, 0, 1) for begin in range(16)]
    rise = [x**2 * (3 - 2 * x) for x in ramp]
    v = speed * np.array([1.0, 0.8]) * sum((-1) ** k * (rise[4 * k] - rise[4 * k + 3]) for k in range(4))
    exact = np.gradient(v, 1 / rate, axis=0)
    q = step * np.round(np.cumsum(v, axis=0) / rate / step)
    cutoff = estimate_cutoff([q], rate, steps=np.full(2, step)).cutoff
    found = differentiate(differentiate(lowpass(q, rate, cutoff), rate), rate)
    assert np.linalg.norm(found - exact) < 0.2 * np.linalg.norm(exact)
    unknown = estimate_cutoff([q], rate).cutoff
    assert cutoff < 0.6 * unknown


def test_cutoff_is_near_the_best_one_for_acceleration() -> None:
    t = np.arange(0, 20, 0.004)
    for noise in (1e-5, 1e-4, 1e-3):
        q = motion(t) + noise * np.random.default_rng(1).standard_normal((len(t), 2))

        def error(cutoff: float, q: Array = q) -> float:
            acceleration = differentiate(differentiate(lowpass(q, 250.0, cutoff), 250.0), 250.0)
            return float(np.sqrt(((acceleration - motion(t, 2))[200:-200] ** 2).mean()))

        best = min(error(cutoff) for cutoff in np.geomspace(1, 50, 60))
        chosen = error(estimate_cutoff([q], 250.0).cutoff)
        assert chosen < max(5 * best, 1e-3 * motion(t, 2).std())
        assert chosen < 0.1 * motion(t, 2).std()


@pytest.mark.parametrize("kind", ["chirp", "bursts", "band"])
@pytest.mark.parametrize(("lowest", "rate"), [(0.8, 200.0), (3.0, 50.0)])
def test_motion_without_slow_parts_is_not_taken_for_noise(kind: str, lowest: float, rate: float) -> None:
    """Its acceleration rises with frequency up to the motion, as that of noise does, and may be followed by no rise."""
    t, rng = np.arange(0, 24, 1 / rate), np.random.default_rng(5)
    if kind == "chirp":
        q = np.sin(2 * np.pi * (np.cumsum(lowest * 2 ** (t / 24))[:, None] / rate + [0.0, 0.3]))
    elif kind == "bursts":
        q = np.column_stack([np.sin(2 * np.pi * lowest * t) * np.sin(np.pi * np.clip(t / 12 - k, 0, 1)) ** 3 for k in range(2)])
    else:
        frequency = np.fft.rfftfreq(len(t), 1 / rate)[:, None]
        phases = np.exp(2j * np.pi * rng.random((len(frequency), 2)))
        q = 100 * np.fft.irfft(((frequency > lowest) & (frequency < 2 * lowest)) * phases, len(t), axis=0)
    cutoff = estimate_cutoff([q + 1e-5 * rng.standard_normal(q.shape)], rate).cutoff
    exact, kept = (differentiate(differentiate(x, rate), rate)[100:-100] for x in (q, lowpass(q, rate, cutoff)))
    assert np.linalg.norm(kept - exact) < 0.1 * np.linalg.norm(exact)


def moves(poses: Array, seconds: tuple[float, ...], stop: float, rate: float) -> tuple[Array, Array]:
    """Positions and accelerations of moves through poses with trapezoidal speed and a stop at each; durations in turn."""
    fine, rows = 16, []
    for move, step in enumerate(np.diff(poses, axis=0)):
        lasts = seconds[move % len(seconds)]
        s = (np.arange(round(lasts * rate * fine)) + 0.5) / round(lasts * rate * fine)
        profile = np.where(s < 0.25, 1.0, np.where(s > 0.75, -1.0, 0.0)) / (0.25 * 0.75 * lasts**2)
        rows += [np.outer(profile, step), np.zeros((round(stop * rate * fine), len(step)))]
    a = np.concatenate(rows)
    v = np.cumsum(a, axis=0) / (rate * fine)
    q = poses[0] + np.cumsum(v, axis=0) / (rate * fine)
    return q[fine - 1 :: fine], a[fine - 1 :: fine]


@pytest.mark.parametrize(
    ("joints", "seconds"),
    [("together", (0.6,)), ("together", (2.5,)), ("together", (3.0, 0.8, 0.8)), ("one by one", (3.0, 0.8))],
)
def test_moves_with_stops_keep_their_accelerations(joints: str, seconds: tuple[float, ...], robot: Robot) -> None:
    """The spectrum of one move has zeros, and a window over it hides its beginning and end: all moves are needed."""
    rate, rng = 125.0, np.random.default_rng(7)
    poses = np.tile(rng.uniform(-1, 1, (4, 3)), (4, 1))
    if joints == "one by one":
        turns = np.cumsum(np.arange(16)[:, None] % 3 == np.arange(3), axis=0)
        poses = np.where(turns % 2 == 0, -0.4, 0.7)
    q, exact = moves(poses, seconds, 0.8, rate)
    q = np.round(q / 1e-5) * 1e-5

    def error(cutoff: float) -> float:
        """Error of the accelerations up to 10 Hz, relative."""
        found = lowpass(differentiate(differentiate(lowpass(q, rate, cutoff), rate), rate), rate, 10.0)
        right = lowpass(exact, rate, 10.0)
        return float((np.linalg.norm(found - right, axis=0) / np.linalg.norm(right, axis=0)).max())

    log = Recording("log", ("a", "b", "c"), np.arange(len(q)) / rate, q, effort=np.zeros_like(q))
    best = min(error(cutoff) for cutoff in np.geomspace(1, 25, 15))
    assert error(float(resolve([log]).cutoff)) < best + 0.08


# ---- conditioning --------------------------------------------------------------------------------


def errors(result: Conditioned, skip: int = 0) -> dict[str, float]:
    """Largest deviation of each signal from the truth, as a share of its largest value."""
    worst = {"q": 0.0, "v": 0.0, "a": 0.0, "tau": 0.0}
    for segment in result.segments:
        t = segment.time
        truth = {"q": motion(t), "v": motion(t, 1), "a": motion(t, 2), "tau": torque(t)}
        for name, exact in truth.items():
            away = np.abs(getattr(segment, name) - exact)[skip : len(t) - skip]
            worst[name] = max(worst[name], float(away.max() / np.abs(exact).max()))
    return worst


def test_even_log_is_recovered(robot: Robot) -> None:
    result = condition(make_log(np.arange(0, 20, 0.004)), robot, SignalConfig(cutoff=15.0))
    worst = errors(result)
    assert result.rate == pytest.approx(250)
    assert len(result.segments) == 1
    assert worst["tau"] < 1e-12  # efforts are not filtered, and here not resampled
    assert max(worst["q"], worst["v"], worst["a"]) < 3e-3
    assert set(result.why) == {"rate", "cutoff", "decimate", "velocity", "rest"}
    with pytest.raises(LogError, match=r"signals.cutoff is above.*below 125 Hz.*cutoff: auto"):
        condition(make_log(np.arange(0, 20, 0.004)), robot, SignalConfig(cutoff=125.0))
    few = condition(make_log(np.arange(0, 20, 0.004)), robot, SignalConfig(cutoff=2.0))
    assert few.decimate_rate >= 40.0  # friction that reverses is no slower than in a fast motion


@pytest.mark.parametrize("pattern", [[0.010, 0.010, 0.012], [0.008, 0.010, 0.009, 0.013], [0.01, 0.01, 0.002, 0.012]])
def test_uneven_clock_is_resampled_without_a_shift(robot: Robot, pattern: list[float]) -> None:
    t = 500 + np.cumsum(np.tile(pattern, 2000 // len(pattern)))
    result = condition(make_log(t), robot, SignalConfig(cutoff=8.0))
    worst = errors(result, skip=20)
    assert result.rate == pytest.approx(1 / np.mean(pattern), rel=1e-3)
    assert worst["q"] < 2e-4
    assert worst["v"] < 2e-3
    assert worst["a"] < 1e-2
    assert worst["tau"] < 1e-2  # linear interpolation
    assert "resampled" in result.why["rate"]


def test_gaps_split_and_no_segment_spans_one(robot: Robot) -> None:
    t = np.arange(0, 30, 0.004)
    keep = ((t < 10) | (t > 10.5)) & ((t < 20.001) | (t > 20.013))  # half a second, and three samples
    result = condition(make_log(t[keep]), robot, SignalConfig(cutoff=15.0))
    assert len(result.segments) == 2
    assert result.segments[0].time[-1] <= 10
    assert result.segments[1].time[0] >= 10.5
    assert errors(result, skip=60)["a"] < 0.02
    assert "split at 1 pause" in result.why["rate"]


@pytest.mark.parametrize("noise", [2e-4, 1e-3])
def test_noise_of_a_joint_at_rest_is_no_motion(robot: Robot, noise: float) -> None:
    """Its encoder noise, alone in its position, must not raise the cut-off: accelerations of all joints would be noise."""
    t = np.arange(0, 20, 0.002)
    q = 0.5 * np.sin(0.8 * t)[:, None] * [1.0, 0.0] + noise * np.random.default_rng(1).standard_normal((len(t), 2))
    result = condition(Recording("log", ("a", "b"), t, q, effort=torque(t)), robot)
    assert result.cutoff < 4.0
    assert all(np.all(segment.a[:, 1] == 0) for segment in result.segments)


def with_rest(t: Array) -> Array:
    """Time of the motion at time t of a log: a jog at 1 s, rest, 10 s of motion from 4 s, rest from 14 s."""
    jog = 0.15 * (1 - np.cos(np.pi * np.clip((t - 1) / 0.4, 0, 1)))
    ramp = np.clip(t - 4, 0, 10)
    return jog + ramp


def test_rest_and_jogs_are_left_out(robot: Robot) -> None:
    t = np.arange(0, 18, 0.004)
    q = motion(with_rest(t)) + 1e-6 * np.random.default_rng(4).standard_normal((len(t), 2))
    log = Recording("log", ("a", "b"), t, q, effort=torque(t))
    result = condition(log, robot, SignalConfig(cutoff=10.0))
    assert len(result.segments) == 1
    assert result.segments[0].start == pytest.approx(4.0, abs=0.2)
    assert result.segments[0].time[-1] == pytest.approx(14.0, abs=0.2)
    assert "1 motion(s) shorter" in result.why["rest"]
    both = condition(log, robot, SignalConfig(cutoff=10.0, shortest=0.2))
    assert len(both.segments) == 2
    whole = condition(log, robot, SignalConfig(cutoff=10.0, rest_time=60.0))
    assert whole.segments[0].time[0] < 1.2
    np.testing.assert_allclose(whole.segments[0].tau, torque(whole.segments[0].time), atol=1e-9)


def test_log_at_rest_is_refused(robot: Robot) -> None:
    t = np.arange(0, 10, 0.004)
    still = Recording("still", ("a", "b"), t, np.full((len(t), 2), 0.3), effort=torque(t))
    with pytest.raises(LogError, match="does not move"):
        condition(still, robot)
    with pytest.raises(LogError, match="does not move"):
        condition(still, robot, SignalConfig(cutoff=5.0))


def test_time_must_increase(robot: Robot) -> None:
    log = make_log(np.arange(0, 10, 0.004))
    with pytest.raises(LogError, match="no usable clock"):
        condition(replace(log, time=np.zeros(len(log))), robot)


def test_late_velocities_are_differentiated_and_quiet_ones_are_used(robot: Robot) -> None:
    t = np.arange(0, 20, 0.004)
    log = make_log(t, noise=1e-5)
    late = condition(replace(log, velocity=motion(t - 0.18, 1)), robot)
    assert late.velocity_source == "differentiated"
    assert "comes 180 ms after dq/dt" in late.why["velocity"]
    coarse = replace(log, position=np.round(motion(t), 2), velocity=motion(t, 1) + 1e-4 * motion(t * 1.7))
    quiet = condition(coarse, robot)
    assert quiet.velocity_source == "logged"
    forced = condition(coarse, robot, SignalConfig(velocity="differentiated"))
    assert errors(quiet, 100)["a"] < 0.5 * errors(forced, 100)["a"]


def test_rows_rate_and_their_lowpass(robot: Robot) -> None:
    log = make_log(np.arange(0, 20, 0.004))
    automatic = condition(log, robot, SignalConfig(cutoff=8.0))
    assert 2.5 * 8.0 <= automatic.decimate_rate < 60.0  # all that the filter leaves, and not the whole log
    slow = condition(log, robot, SignalConfig(cutoff=8.0, decimate=10.0))
    assert (slow.factor, slow.row_cutoff) == (25, pytest.approx(4.0))
    assert "one equation per 25 samples (10 Hz) after a low-pass at 4 Hz" in slow.why["decimate"]
    every = condition(log, robot, SignalConfig(cutoff=8.0, decimate=1e4))
    assert every.factor == 1
    assert every.why["decimate"].startswith("every sample is an equation (250 Hz):")


def test_log_without_efforts(robot: Robot) -> None:
    log = replace(make_log(np.cumsum(np.tile([0.004, 0.005], 2000))), effort=None)
    assert condition(log, robot).segments[0].tau is None


# ---- real logs -----------------------------------------------------------------------------------


def test_real_panda_choices(data: Path) -> None:
    robot = Robot.from_urdf(data / "panda/panda.urdf", lock={"panda_finger_joint1": 0.0, "panda_finger_joint2": 0.0})
    log = read_recording(data / "panda/panda_exciting.csv", robot)
    repaired = condition(assess(log, robot).recording, robot)
    raw = condition(log, robot)
    assert repaired.cutoff > 2 * raw.cutoff  # the clock's jitter was most of the noise
    assert repaired.rate == pytest.approx(1000, rel=1e-3)
    assert repaired.velocity_source == "differentiated"


def test_a_joint_that_stands_still_is_held_and_one_that_creeps_is_not() -> None:
    """A creep of 0.06 rad in 20 s, slower than the rest speed, still moves; encoder noise around one angle does not."""
    robot = Robot.from_urdf(arm_urdf("zyx"))
    t = np.arange(2000) / 100.0
    q = np.column_stack([0.5 * np.sin(t), 0.003 * t, np.full_like(t, 0.2)])
    q += 2e-5 * np.random.default_rng(0).standard_normal(q.shape)
    (segment,) = condition(Recording("log", robot.joints, t, q, effort=np.cos(q)), robot).segments
    assert not segment.v[:, 2].any()
    assert not segment.a[:, 2].any()
    np.testing.assert_allclose(segment.q[:, 2], 0.2, atol=1e-6)
    assert np.ptp(segment.q[:, 1]) > 0.05
    assert segment.v[:, 1].mean() == pytest.approx(0.003, rel=0.05)
    coarse = np.column_stack([np.sin(t), 0.8 * np.cos(t), np.full_like(t, 0.2)]) + 3e-4 * np.random.default_rng(
        1
    ).standard_normal((len(t), 3))
    config = SignalConfig(cutoff=8.0)  # beside joints that are fast, encoder noise of a few millirad per second is no motion
    (segment,) = condition(Recording("log", robot.joints, t, coarse, effort=np.cos(coarse)), robot, config).segments
    assert not segment.v[:, 2].any()
    stage = Robot.from_urdf(arm_urdf("xz", kind="prismatic"))  # strokes of 2 mm, and an axis that stands
    q = np.column_stack([0.0009 * np.sin(4.0 * t), np.full_like(t, 0.1)])
    v = np.concatenate([part.v for part in condition(Recording("s", stage.joints, t, q, effort=np.cos(q)), stage).segments])
    assert np.ptp(v[:, 0]) == pytest.approx(0.0072, rel=0.05)
    assert not v[:, 1].any()


def test_a_cutoff_that_leaves_no_filter_is_refused() -> None:
    with pytest.raises(LogError, match=r"too low for this rate, got 1e-10 Hz, expected 0.001 Hz or more"):
        lowpass(np.random.default_rng(0).normal(size=50), 100.0, 1e-10)


@pytest.mark.parametrize("jitter", [0.0, 0.2])
def test_a_log_in_pieces_is_the_whole_log(robot: Robot, monkeypatch: pytest.MonkeyPatch, jitter: float) -> None:
    t = np.arange(6000) / 200.0 + jitter / 200.0 * np.random.default_rng(0).uniform(-1, 1, 6000)
    log = make_log(t, noise=1e-5)
    config = SignalConfig(cutoff=8.0, periodic="off")
    (whole,) = condition(log, robot, config).segments
    monkeypatch.setattr(filters, "LONG", 700)
    monkeypatch.setattr(clock, "LONG", 700)
    (pieces,) = condition(log, robot, config).segments
    assert np.array_equal(pieces.tau, whole.tau)
    for name in ("q", "v", "a"):
        exact, found = getattr(whole, name), getattr(pieces, name)
        assert not np.array_equal(found, exact)  # it was made in pieces
        np.testing.assert_allclose(found, exact, rtol=0, atol=1e-9 * np.abs(exact).max())
