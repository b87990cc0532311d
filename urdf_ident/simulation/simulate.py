"""Simulates a robot that follows a trajectory under feedback, and its log.

The controller is either *continuous* (evaluated within the integration, smooth torque) or *sampled* (``control_rate``:
the torque is held between control instants, and the controller gets quantised positions and their differences). If a held
torque jumps at a sample, the mean of the values before and after is logged, and likewise for the acceleration, so that the
log's rows satisfy the equations of motion.

The integration step is determined by the loop's fastest pole instead of the log's rate. Gains are tuned for the largest
inertia of each axis. In poses where an axis has a small inertia (parallel wrist axes share one) the same damping gain gives
a pole at ``lambda = max eig(M^-1 Kd)``; a Runge-Kutta step of order four is only stable up to ``2.78 / lambda``, regardless
of the damping ratio.

Sensors (quantisation, noise, ripple, delay, clock jitter) are applied to a finished simulation, so one simulation can be
measured many times. Each signal has its own stream of
random numbers, so enabling one imperfection does not change another.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from ..errors import LogError, ModelError, SimulationError, check_shape
from ..files.read_write import write_text
from ..linalg import Array, BoolArray, IntArray, rms
from ..logs.columns.layout import NAMES
from ..logs.recording import Recording
from ..motion.trajectory import Trajectory, sampled, table_text
from ..samples import Segment
from ..units import joint_units
from .controllers import Controller, Feedback, Reference
from .plant import RigidPlant, StickSlip
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
    sigma = np.asarray(noise.sigma) if noise.snr is None else rms(signal, 0) * 10.0 ** (-np.asarray(noise.snr) / 20.0)
    white = rng.standard_normal(signal.shape)
    if rho := noise.correlation:
        from scipy.signal import lfilter

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


#: Tracking error above which a controller counts as diverging [rad or m].
_TRIP = 1.0
#: Number of instants at which a trajectory is evaluated at once.
_BLOCK = 4096

Progress = Callable[[float], None]


def simulate(
    plant: RigidPlant,
    controller: Controller,
    trajectory: Trajectory,
    *,
    sensors: Sensors | None = None,
    rate: float = 1000.0,
    seed: int = 0,
    substeps: int = 1,
    control_rate: float | None = None,
    start: tuple[Array, Array] | None = None,
    name: str = "simulated",
    progress: Progress | None = None,
) -> SimulatedLog:
    """Simulates a closed loop with the integrator rk4 (see :mod:`.plant`).

    Args:
        plant: The simulated plant.
        controller: The controller.
        trajectory: The reference motion.
        sensors: Imperfections of the log; perfect by default.
        rate: Samples per second of the log [Hz].
        seed: Seed of the sensors' random numbers.
        substeps: Integration steps per sample; 1 at 1 kHz is a step of 1 ms.
        control_rate: Control instants per second [Hz], ``rate·substeps`` divided by a whole number; None: continuous.
        start: Positions and velocities at the start, shapes (n,); on the trajectory by default.
        name: Name of the log.
        progress: Called with the completed fraction, 0 to 1, about every percent.

    Raises:
        SimulationError: The controller diverges (names joint and time), or a rate is invalid.
    """
    robot, sensors = plant.robot, sensors or PERFECT
    if substeps < 1 or not rate > 0:
        raise SimulationError("the rate and the number of substeps must be positive", got=(rate, substeps))
    time, step = trajectory.times(rate), 1.0 / (rate * substeps)
    wanted = trajectory.evaluate(time)[0]
    drive = _Drive(controller, trajectory, sensors, control_rate, step)
    x, w = (np.array(each, dtype=float) for each in start or [each[0] for each in trajectory.evaluate([0.0])[:2]])
    solver = StickSlip(plant, drive.law, x, w, np.zeros(controller.states))
    table = np.empty((5, len(time), robot.n))

    for k, t in enumerate(time.tolist()):
        before = solver.rates(t) if drive.holding else None
        drive.tick(t, solver)
        now = solver.rates(t)
        a, tau, friction = now.a, now.tau, now.friction
        if before is not None:  # the torque may jump here
            a, tau, friction = (before.a + a) / 2, (before.tau + tau) / 2, (before.friction + friction) / 2
        table[:, k] = solver.x, solver.w, a, tau, friction
        require_tracking(robot.joints, t, solver.x, solver.w, wanted[k])
        for i in range(substeps if k + 1 < len(time) else 0):
            if i:
                drive.tick(t + i * step, solver)
            solver.step(t + i * step, step)
        if progress is not None and (k + 1) % max(1, len(time) // 100) == 0:
            progress((k + 1) / len(time))
    truth = Segment(name, 0.0, rate, *table[:4])
    recording = measure(truth, robot.joints, sensors, seed, prismatic=robot.prismatic)
    return SimulatedLog(recording, truth, table[4], wanted, f"rk4, step {step:.3g} s")


class _Tabulated:
    """A trajectory as a function of time, evaluated in blocks at multiples of a step; other instants one by one."""

    def __init__(self, trajectory: Trajectory, step: float) -> None:
        self._trajectory, self._step = trajectory, step
        self._begin = self._end = 0
        self._block: list[Reference] = []

    def __call__(self, t: float) -> Reference:
        place = t / self._step
        index = round(place)
        if abs(place - index) > 1e-9 * (1 + index):
            return Reference(*(x[0] for x in self._trajectory.evaluate([min(t, self._trajectory.duration)])))
        if not self._begin <= index < self._end:
            self._begin = index - index % _BLOCK
            self._end = self._begin + _BLOCK
            instants = np.minimum((self._begin + np.arange(_BLOCK)) * self._step, self._trajectory.duration)
            self._block = [Reference(*rows) for rows in zip(*self._trajectory.evaluate(instants), strict=True)]
        return self._block[index - self._begin]


class _Drive:
    """Controller interface for the integrator: continuous, or held between control instants."""

    def __init__(
        self, controller: Controller, trajectory: Trajectory, sensors: Sensors, control_rate: float | None, step: float
    ) -> None:
        self.controller, self.sampled = controller, control_rate is not None
        self._reference = _Tabulated(trajectory, step / 2)
        self._step, self._counts = step, sensors.counts
        self._held = np.zeros(0)  # nothing held yet
        self._memory = np.zeros(controller.states)
        self._last: Array | None = None
        if control_rate is not None:
            ratio = 1.0 / (control_rate * step)
            self._every, self._period = round(ratio), 1.0 / control_rate
            if self._every < 1 or abs(ratio - self._every) > 1e-6:
                raise SimulationError(
                    "control instants must fall on integration steps",
                    got=f"{control_rate} Hz",
                    expected=f"{1 / step:g} Hz divided by a whole number",
                    remedy="change control_rate or substeps",
                )

    @property
    def holding(self) -> bool:
        return len(self._held) > 0

    def law(self, t: float, q: Array, v: Array, state: Array) -> tuple[Array, Array]:
        """Drive torque and rate of the controller's state at a time."""
        if self.sampled:
            return self._held, np.zeros_like(state)
        now = self._reference(t)
        return self.controller.torque(now, q, v, state), self.controller.rate(now, q, v, state)

    def tick(self, t: float, solver: StickSlip) -> None:
        """Updates the held torque if a control instant is due."""
        if not self.sampled or round(t / self._step) % self._every:
            return
        seen = solver.x
        if self._counts is not None:
            counts = np.asarray(self._counts) / np.where(solver.plant.robot.prismatic, 1.0, 2 * np.pi)  # per rad or m
            seen = np.rint(seen * counts) / counts
        v = solver.w if self._last is None else (seen - self._last) / self._period
        now = self._reference(t)
        self._held = self.controller.torque(now, seen, v, self._memory)
        self._memory = self._memory + self._period * self.controller.rate(now, seen, v, self._memory)
        self._last = seen
        solver.refresh()


def require_tracking(joints: tuple[str, ...], t: float, q: Array, v: Array, reference: Array) -> None:
    """Stops a simulation that diverges.

    Args:
        t: Time [s].
        q, v, reference: Positions, velocities and reference positions, shape (n,) each [rad, rad/s or m, m/s].

    Raises:
        SimulationError: They are too far apart or not finite; names joint and time.
    """
    error = np.abs(q - reference)
    error[~(np.isfinite(q) & np.isfinite(v))] = np.inf
    j = int(np.argmax(error))
    if error[j] > _TRIP:
        raise SimulationError(
            "the controller diverges or is too weak",
            where=f"joint '{joints[j]}' at t = {t:.4g} s",
            got=f"{error[j]:.3g} off the reference",
            expected=f"less than {_TRIP:g}",
            remedy="change simulation.controller.bandwidth, raise simulation.controller.rate, or give rotor inertia with "
            "--truth (without it, the motion of other joints carries a light link along)",
        )


#: Largest product of step and fastest pole for accuracy and stability, and the smallest allowed step [s].
_REACH, FINEST = 1.0, 2e-5
#: Least number of initial poses, and their largest distance in time [s].
_POSES, _APART = 300, 0.02
#: Number of refined peaks of the fastest pole, instants around each, and refinement rounds.
_PEAKS, _AROUND, _ROUNDS = 6, 16, 3


def needed_substeps(plant: RigidPlant, controller: Controller, trajectory: Trajectory, rate: float, substeps: int) -> int:
    """Number of integration steps that a motion needs between two samples.

    Args:
        controller: Continuous controller; without damping gains the requested number is returned.
        rate: Samples per second of the log [Hz].

    Returns:
        A multiple of ``substeps``.

    Raises:
        SimulationError: The loop requires a step below :data:`FINEST`.
    """
    if not isinstance(controller, Feedback):
        return substeps
    _, poles, joints = _poles_along(plant, controller.kd, trajectory)
    top = int(np.argmax(poles))
    needed: int = substeps * max(1, math.ceil(poles[top] / (_REACH * rate * substeps) - 1e-9))
    if 1.0 / (rate * needed) < FINEST:
        raise SimulationError(
            "the closed loop is too fast to be integrated",
            where=f"joint '{trajectory.joints[joints[top]]}'",
            got=f"a pole at {poles[top]:.3g} 1/s",
            expected=f"at most {_REACH / FINEST:.3g} 1/s",
            remedy="lower simulation.controller.bandwidth, or give rotor inertia with --truth",
        )
    return needed


def _poles_along(plant: RigidPlant, kd: Array, trajectory: Trajectory) -> tuple[Array, Array, IntArray]:
    """Instants of a motion [s], the fastest pole at each [1/s], and the joint with the largest share in its mode.

    Instants are refined around peaks, because an axis may have a small inertia only briefly.
    """
    times = np.linspace(0.0, trajectory.duration, max(_POSES, math.ceil(trajectory.duration / _APART) + 1))
    poles, joints = _poles(plant, kd, trajectory, times)
    width = times[1] - times[0]
    for _ in range(_ROUNDS):
        peaks = np.flatnonzero(np.r_[True, poles[1:] >= poles[:-1]] & np.r_[poles[:-1] >= poles[1:], True])
        peaks = peaks[np.argsort(-poles[peaks])[:_PEAKS]]
        closer = np.unique((times[peaks, None] + width * np.linspace(-1.0, 1.0, _AROUND)).clip(0.0, trajectory.duration))
        closer = np.setdiff1d(closer, times)
        more, others = _poles(plant, kd, trajectory, closer)
        order = np.argsort(np.concatenate([times, closer]), kind="stable")
        times = np.concatenate([times, closer])[order]
        poles, joints = np.concatenate([poles, more])[order], np.concatenate([joints, others])[order]
        width *= 2.0 / _AROUND
    return times, poles, joints


def _poles(plant: RigidPlant, kd: Array, trajectory: Trajectory, times: Array) -> tuple[Array, IntArray]:
    """Fastest pole at given instants, and its joint: ``M^-1 Kd`` has the eigenvalues of ``Kd^½ M^-1 Kd^½``."""
    poses, _, _ = trajectory.evaluate(times)
    root, masses = np.sqrt(kd), np.array([plant.mass(q) for q in poses]).reshape(len(poses), len(kd), len(kd))
    values, vectors = np.linalg.eigh(root[:, None] * np.linalg.inv(masses) * root)
    return values[:, -1], np.argmax(np.abs(vectors[:, :, -1]), axis=1)
