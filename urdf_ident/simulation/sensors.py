"""Sensor models: quantisation, noise, ripple, delay and clock jitter.

They are applied to a finished simulation, so one simulation can be measured many times. Each signal has its own stream of
random numbers, so enabling one imperfection does not change another.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ..data.conditioning.recursive import run
from ..errors import ModelError, check_shape
from ..linalg import Array, rms
from ..motion.files import sampled
from ..samples import Segment


@dataclass(frozen=True)
class Noise:
    """Additive Gaussian noise, white or coloured.

    Attributes:
        sigma: Standard deviation, shape (n,) or a number, in the signal's unit.
        snr: Alternatively: signal-to-noise ratio per joint [dB], σ = rms·10^(−snr/20) (docs/theory.md §4).
        correlation: ρ of a first-order autoregression over samples, 0 (white) to below 1; σ is not affected.
    """

    sigma: ArrayLike | None = None
    snr: ArrayLike | None = None
    correlation: float = 0.0

    def __post_init__(self) -> None:
        if (self.sigma is None) == (self.snr is None):
            raise ModelError("noise is given by sigma or by snr, not by both or none")
        if not 0 <= self.correlation < 1:
            raise ModelError("the correlation of a noise lies from 0 to below 1", got=self.correlation)
        if self.sigma is not None and not (np.asarray(self.sigma) >= 0).all():
            raise ModelError("a standard deviation cannot be negative", got=np.min(np.asarray(self.sigma)))

    def draw(self, signal: Array, rng: np.random.Generator) -> Array:
        """Draws noise for a signal.

        Args:
            signal: Shape (N, n).
            rng: Random number generator.

        Returns:
            Shape (N, n), same unit.
        """
        if self.snr is not None:
            sigma = rms(signal, 0) * 10.0 ** (-np.asarray(self.snr, dtype=float) / 20.0)
        else:
            sigma = np.asarray(self.sigma, dtype=float)
        white = rng.standard_normal(signal.shape)
        if self.correlation:
            rho = self.correlation
            white[1:] *= np.sqrt(1.0 - rho**2)  # stationary from the first sample on
            white = run(np.array([[1.0, 0.0, 0.0], [1.0, -rho, 0.0]]), white)
        return np.asarray(sigma * white)


@dataclass(frozen=True)
class Sensors:
    """Imperfections of a log; the default is a perfect one.

    Attributes:
        counts: Encoder counts per revolution (per metre for a prismatic joint), shape (n,) or a number; None: exact.
        motor_counts: Counts of a second encoder per motor revolution, shape (n,) or a number; None: as ``counts``.
        position_noise: Noise of the position [rad or m]; the same for motors, after the gear.
        velocity: ``"measured"``; ``"differentiated"`` (differences of the logged position); ``"none"``.
        velocity_noise: Noise of a measured velocity [rad/s or m/s].
        torque_noise: Noise of the torque [N·m or N].
        ripple: Torque ripple amplitude, shape (n,) or a number [N·m or N].
        ripple_cycles: Ripple periods per revolution (per metre), shape (n,) or a number.
        torque_step: Resolution of the torque (of the current times the drive gain), shape (n,) or a number
            [N·m or N].
        jitter: Standard deviation of the sampling instants [s].
        clock: ``"true"``: the log's time column includes the jitter; ``"nominal"``: it does not.
        delay: Delay of position and velocity [s].
        torque_delay: Delay of the torque [s].
    """

    counts: ArrayLike | None = None
    motor_counts: ArrayLike | None = None
    position_noise: Noise | None = None
    velocity: str = "measured"
    velocity_noise: Noise | None = None
    torque_noise: Noise | None = None
    ripple: ArrayLike = 0.0
    ripple_cycles: ArrayLike = 1.0
    torque_step: ArrayLike | None = None
    jitter: float = 0.0
    clock: str = "true"
    delay: float = 0.0
    torque_delay: float = 0.0

    def __post_init__(self) -> None:
        for name, valid in (("velocity", ("measured", "differentiated", "none")), ("clock", ("true", "nominal"))):
            if getattr(self, name) not in valid:
                raise ModelError(f"unknown sensors.{name}", got=repr(getattr(self, name)), expected=" | ".join(valid))
        for name in ("counts", "motor_counts", "torque_step"):
            value = getattr(self, name)
            if value is not None and not (np.asarray(value) > 0).all():
                raise ModelError(f"sensors.{name} must be positive", got=np.asarray(value).tolist())
        for name in ("jitter", "delay", "torque_delay"):
            if not getattr(self, name) >= 0:
                raise ModelError(f"sensors.{name} cannot be negative", got=getattr(self, name), expected="seconds")


@dataclass(frozen=True, eq=False)
class Measurement:
    """Measured signals: ``time`` of shape (N,) [s], the others of shape (N, n) in SI units; None if not logged.

    Positions and velocities are the links', ``motor_position`` is before the gear.
    """

    time: Array
    position: Array
    velocity: Array | None
    torque: Array
    motor_position: Array | None = None


def measure(
    truth: Segment, sensors: Sensors, seed: int, prismatic: Array | None = None, ratio: Array | None = None
) -> Measurement:
    """Measures a simulated motion.

    Args:
        truth: Clean motion with torque at a constant rate, shapes (N, n).
        sensors: The imperfections.
        seed: Seed of all random numbers; results are bitwise reproducible.
        prismatic: Shape (n,), True for prismatic joints (counts per metre); none by default.
        ratio: Gear ratios, shape (n,) [motor rad per joint rad or m]; if given, the motor side is measured too.

    Raises:
        ModelError: The truth has no torque, or an array of the sensors does not fit the joints.
    """
    if truth.tau is None:
        raise ModelError("there is no torque to measure", where=truth.log)
    n = truth.q.shape[1]
    _check_widths(sensors, n)
    streams = dict(zip(("clock", "position", "velocity", "torque", "motor"), np.random.default_rng(seed).spawn(5), strict=True))
    nominal = truth.time
    time = nominal + sensors.jitter * streams["clock"].standard_normal(len(nominal))
    time = np.maximum.accumulate(np.clip(time, nominal[0], nominal[-1]))
    q, v = _at(truth, truth.q, truth.v, truth.a, time - sensors.delay)
    tau = _interpolate(truth, truth.tau, time - sensors.torque_delay)
    period = np.where(np.zeros(n, dtype=bool) if prismatic is None else prismatic, 1.0, 2 * np.pi)
    tau = tau + np.asarray(sensors.ripple) * np.sin(2 * np.pi * np.asarray(sensors.ripple_cycles) * q / period)
    if sensors.torque_noise is not None:
        tau = tau + sensors.torque_noise.draw(truth.tau, streams["torque"])
    if sensors.torque_step is not None:
        tau = quantise(tau, sensors.torque_step)
    if sensors.position_noise is not None:
        q = q + sensors.position_noise.draw(truth.q, streams["position"])
    if sensors.counts is not None:
        q = quantise(q, period / np.asarray(sensors.counts))
    logged = nominal if sensors.clock == "nominal" else time
    velocity: Array | None = v
    if sensors.velocity == "differentiated":
        step = np.diff(logged)
        velocity = np.zeros_like(q)
        velocity[1:] = np.diff(q, axis=0) / np.where(step > 0, step, 1.0 / truth.rate)[:, None]
        velocity[0] = velocity[1]
    elif sensors.velocity == "none":
        velocity = None
    elif sensors.velocity_noise is not None:
        velocity = v + sensors.velocity_noise.draw(truth.v, streams["velocity"])
    return Measurement(logged, q, velocity, tau, _motors(truth, sensors, time, ratio, streams["motor"]))


def quantise(signal: Array, step: ArrayLike) -> Array:
    """Rounds to multiples of a step.

    Args:
        signal: Shape (N, n).
        step: Size of a step, shape (n,) or a number, in the signal's unit.

    Returns:
        Shape (N, n).
    """
    return np.asarray(np.rint(signal / np.asarray(step)) * np.asarray(step))


def _motors(truth: Segment, sensors: Sensors, time: Array, ratio: Array | None, rng: np.random.Generator) -> Array | None:
    """Positions from the motor encoders, before the gear, shape (N, n) [rad]; None without motor encoders."""
    if ratio is None or truth.qm is None or truth.vm is None or truth.am is None:
        return None
    qm, _ = _at(truth, truth.qm, truth.vm, truth.am, time - sensors.delay)
    if sensors.position_noise is not None:
        qm = qm + sensors.position_noise.draw(truth.qm, rng)
    turned = qm * ratio
    counts = sensors.counts if sensors.motor_counts is None else sensors.motor_counts
    return turned if counts is None else quantise(turned, 2 * np.pi / np.asarray(counts))


def _at(truth: Segment, q: Array, v: Array, a: Array, time: Array) -> tuple[Array, Array]:
    """Position and velocity interpolated at given times; times outside the motion are clipped to it."""
    if np.array_equal(time, truth.time):
        return np.array(q), np.array(v)
    names = tuple(f"joint {j}" for j in range(q.shape[1]))
    motion = sampled(names, truth.time - truth.start, q, v, a)
    q, v, _ = motion.evaluate(np.clip(time - truth.start, 0.0, motion.duration))
    return q, v


def _interpolate(truth: Segment, signal: Array, time: Array) -> Array:
    if np.array_equal(time, truth.time):
        return np.array(signal)
    return np.column_stack([np.interp(time, truth.time, column) for column in signal.T])


def _check_widths(sensors: Sensors, n: int) -> None:
    noises = (sensors.position_noise, sensors.velocity_noise, sensors.torque_noise)
    values = [sensors.counts, sensors.motor_counts, sensors.ripple, sensors.ripple_cycles, sensors.torque_step]
    values += [value for noise in noises if noise is not None for value in (noise.sigma, noise.snr)]
    for value in values:
        if value is not None and np.ndim(value) > 0:
            check_shape("sensors", np.shape(value), (n,))
