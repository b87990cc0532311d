"""The log of a simulated motion, with its ground truth, as sensors see it: quantisation, noise, ripple, delay, clock jitter.

Sensors are applied to a finished simulation, so one simulation can be measured many times. Each signal has its own stream of
random numbers, so enabling one imperfection does not change another.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from ..errors import LogError, ModelError, check_shape
from ..files.read_write import write_text
from ..linalg import Array, BoolArray, rms
from ..logs.columns.layout import NAMES
from ..logs.recording import Recording
from ..motion.trajectory import sampled, table_text
from ..samples import Segment
from ..units import joint_units
from .settings import Noise, Sensors

#: Sensors without errors.
PERFECT = Sensors(velocity="measured")


@dataclass(frozen=True, eq=False)
class SimulatedLog:
    """A simulated log and its ground truth.

    Attributes:
        recording: The log as measured, columns in the order of the robot's joints.
        truth: Exact motion and drive torque at the nominal instants.
        friction: Friction in the torque, shape (N, n) [N·m or N].
        reference: Reference positions, shape (N, n) [rad or m].
        integrator: Name of the method and its step.
    """

    recording: Recording
    truth: Segment
    friction: Array
    reference: Array
    integrator: str

    @property
    def tracking_error(self) -> Array:
        """Root mean square of reference − position, shape (n,) [rad or m]."""
        return rms(self.reference - self.truth.q, 0)


def write_log(log: Recording | SimulatedLog, path: str | Path) -> Path:
    """Writes a log in the default CSV (docs/logs.md): ``t, q_…, v_…, tau_…, qm_…`` and whatever else the joints have.

    Efforts that are no torques state their unit (``tau_elbow [A]``). Wrenches and the ranges of locked joints are not written.

    Args:
        log: The log.
        path: The file.

    Raises:
        LogError: Positions or efforts are those of motors, which no name of a column can say.
        OutputError: The file cannot be written.
    """
    recording = log.recording if isinstance(log, SimulatedLog) else log
    for quantity in ("position", "effort"):
        if getattr(recording, quantity) is not None and getattr(recording, f"{quantity}_side") == "motor":
            raise LogError(
                f"the default CSV cannot say that the {quantity} is that of the motors",
                where=recording.where,
                remedy="convert it to the joints first, or copy the original file",
            )
    present = {names.prefix: signal for key, names in NAMES.items() if (signal := getattr(recording, key)) is not None}
    unit = "fraction" if recording.effort_unit == "1" else recording.effort_unit  # a number in brackets would be an index
    units = {} if recording.effort_is_torque else {NAMES["effort"].prefix: unit}
    return write_text(path, table_text(recording.joints, recording.time, present, units))


def measure(
    truth: Segment,
    joints: tuple[str, ...],
    sensors: Sensors,
    seed: int,
    *,
    prismatic: BoolArray | None = None,
    ratio: Array | None = None,
) -> Recording:
    """Measures a simulated motion.

    Args:
        truth: Clean motion with torque at a constant rate, shapes (N, n).
        seed: Seed of all random numbers; results are bitwise reproducible.
        prismatic: Shape (n,), True for prismatic joints (counts per metre); none by default.
        ratio: Gear ratios of encoders on the motors, shape (n,) [motor rad per joint rad or m]; None: no motor encoders.

    Returns:
        The log; positions and velocities are the links', motor positions before the gear.

    Raises:
        ModelError: The truth has no torque, or an array of the sensors does not fit the joints.
    """
    if truth.tau is None:
        raise ModelError("there is no torque to measure", where=truth.log)
    n = truth.q.shape[1]
    noises = (sensors.position_noise, sensors.velocity_noise, sensors.torque_noise)
    values = [sensors.counts, sensors.motor_counts, sensors.ripple, sensors.ripple_cycles, sensors.torque_step]
    values += [value for noise in noises if noise is not None for value in (noise.sigma, noise.snr)]
    for value in values:
        if value is not None and np.ndim(value) > 0:
            check_shape("sensors", np.shape(value), (n,))
    slides = np.zeros(n, dtype=bool) if prismatic is None else prismatic
    period = np.where(slides, 1.0, 2 * np.pi)
    streams = dict(zip(("clock", "position", "velocity", "torque", "motor"), np.random.default_rng(seed).spawn(5), strict=True))
    nominal = truth.time
    time = nominal + sensors.jitter * streams["clock"].standard_normal(len(nominal))
    time = np.maximum.accumulate(np.clip(time, nominal[0], nominal[-1]))
    logged = nominal if sensors.clock == "nominal" else time
    exact, v = _at(truth, truth.q, truth.v, truth.a, time - sensors.delay)
    q = exact if sensors.position_noise is None else exact + draw(sensors.position_noise, truth.q, streams["position"])
    q = q if sensors.counts is None else quantise(q, period / np.asarray(sensors.counts))
    velocity: Array | None = None
    if sensors.velocity == "differentiated":
        velocity = _differences(q, logged, truth.rate)
    elif sensors.velocity == "measured":
        velocity = v if sensors.velocity_noise is None else v + draw(sensors.velocity_noise, truth.v, streams["velocity"])
    return Recording(
        truth.log,
        joints,
        logged,
        q,
        velocity=velocity,
        effort=_measured_torque(truth, sensors, time - sensors.torque_delay, exact, period, streams["torque"]),
        effort_unit=joint_units(bool(np.all(slides)))["torque"],
        motor_position=_motor_counts(truth, sensors, time - sensors.delay, ratio, streams["motor"]),
    )


def _differences(q: Array, time: Array, rate: float) -> Array:
    """Velocities by differences of measured positions; where time stands, a sampling period counts."""
    step = np.diff(time)
    velocity = np.zeros_like(q)
    velocity[1:] = np.diff(q, axis=0) / np.where(step > 0, step, 1.0 / rate)[:, None]
    velocity[0] = velocity[1]
    return velocity


def _measured_torque(
    truth: Segment, sensors: Sensors, time: Array, q: Array, period: Array, stream: np.random.Generator
) -> Array:
    """Torque at given times, with noise, rounding, and a ripple along positions, shape (N, n), with a period, shape (n,)."""
    tau = truth.measured
    if not np.array_equal(time, truth.time):
        tau = np.column_stack([np.interp(time, truth.time, column) for column in tau.T])
    tau = tau + np.asarray(sensors.ripple) * np.sin(2 * np.pi * np.asarray(sensors.ripple_cycles) * q / period)
    if sensors.torque_noise is not None:
        tau = tau + draw(sensors.torque_noise, truth.measured, stream)
    return tau if sensors.torque_step is None else quantise(tau, sensors.torque_step)


def _motor_counts(
    truth: Segment, sensors: Sensors, time: Array, ratio: Array | None, stream: np.random.Generator
) -> Array | None:
    """Positions from the motor encoders, before the gear; None without any."""
    if ratio is None or truth.qm is None or truth.vm is None or truth.am is None:
        return None
    qm, _ = _at(truth, truth.qm, truth.vm, truth.am, time)
    if sensors.position_noise is not None:
        qm = qm + draw(sensors.position_noise, truth.qm, stream)
    counts = sensors.counts if sensors.motor_counts is None else sensors.motor_counts
    return qm * ratio if counts is None else quantise(qm * ratio, 2 * np.pi / np.asarray(counts))


def draw(noise: Noise, signal: Array, rng: np.random.Generator) -> Array:
    """Draws Gaussian noise for a signal, white or of a first-order autoregression, shape (N, n), same unit.

    Args:
        noise: Its σ, or σ = rms·10^(−snr/20) of the signal (docs/theory.md §4), and its correlation, which does not change σ.
        signal: Shape (N, n).
    """
    from scipy.signal import lfilter

    sigma = np.asarray(noise.sigma) if noise.snr is None else rms(signal, 0) * 10.0 ** (-np.asarray(noise.snr) / 20.0)
    white = rng.standard_normal(signal.shape)
    if rho := noise.correlation:
        white[1:] *= np.sqrt(1.0 - rho**2)  # stationary from the first sample on
        white = lfilter([1.0], [1.0, -rho], white, axis=0)
    return np.asarray(sigma * white)


def quantise(signal: Array, step: ArrayLike) -> Array:
    """Rounds to multiples of a step, shape (N, n).

    Args:
        signal: Shape (N, n).
        step: Size of a step, shape (n,) or a number, in the signal's unit.
    """
    return np.asarray(np.rint(signal / np.asarray(step)) * np.asarray(step))


def _at(truth: Segment, q: Array, v: Array, a: Array, time: Array) -> tuple[Array, Array]:
    """Position and velocity interpolated at given times; times outside the motion are clipped to it."""
    if np.array_equal(time, truth.time):
        return np.array(q), np.array(v)
    motion = sampled(tuple(f"joint {j}" for j in range(q.shape[1])), truth.time - truth.start, q, v, a)
    q, v, _ = motion.evaluate(np.clip(time - truth.start, 0.0, motion.duration))
    return q, v
