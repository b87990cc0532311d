"""Simulates a robot that follows a trajectory under feedback, and its log.

The controller is either *continuous* (evaluated within the integration, smooth torque) or *sampled* (``control_rate``:
the torque is held between control instants, and the controller gets quantised positions and their differences). If a held
torque jumps at a sample, the mean of the values before and after is logged, and likewise for the acceleration, so that the
log's rows satisfy the equations of motion.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from ..errors import LimitError, SimulationError
from ..linalg import Array, IntArray
from ..model.robot import Robot
from ..motion.limits import Limits, check_limits
from ..motion.trajectory import Trajectory
from ..samples import Segment
from .controllers import Controller, Feedback, Reference, feedback_of
from .integrators import StickSlip
from .plant import RigidPlant
from .settings import Sensors
from .simulated_log import PERFECT, SimulatedLog, logged
from .stages import Stages, stages_of

#: Number of samples between checks for divergence.
_WATCHED = 16

Progress = Callable[[float], None]


def simulate(
    plant: RigidPlant,
    controller: Controller,
    trajectory: Trajectory,
    *,
    sensors: Sensors | None = None,
    rate: float = 1000.0,
    seed: int = 0,
    substeps: int | IntArray = 1,
    control_rate: float | None = None,
    start: tuple[Array, Array] | None = None,
    limits: Limits | None = None,
    trip: float = 1.0,
    name: str = "simulated",
    progress: Progress | None = None,
) -> SimulatedLog:
    """Simulates a closed loop with the integrator rk4 (see :mod:`.integrators`).

    Args:
        plant: The simulated plant.
        controller: The controller.
        trajectory: The reference motion.
        sensors: Imperfections of the log; perfect by default.
        rate: Samples per second of the log [Hz].
        seed: Seed of the sensors' random numbers.
        substeps: Integration steps per sample, 1 at 1 kHz is a step of 1 ms; or for each interval between two samples, shape
            (N − 1,), numbers that divide the largest one (a sampled controller requires a single number).
        control_rate: Control instants per second [Hz], ``rate·substeps`` divided by a whole number; None: continuous.
        start: Positions and velocities at the start, shapes (n,); on the trajectory by default.
        limits: Limits checked before the simulation; the URDF's by default.
        trip: Tracking error above which the controller counts as diverging [rad or m].
        name: Name of the log.
        progress: Called with the completed fraction, 0 to 1, about every percent.

    Returns:
        The log.

    Raises:
        LimitError: The trajectory is for other joints, or leaves the limits; names joint and time.
        SimulationError: The controller diverges (names joint and time), or a rate is invalid.
    """
    robot = plant.robot
    require_drivable(trajectory, robot, limits)
    if np.min(substeps) < 1 or not rate > 0:
        raise SimulationError("the rate and the number of substeps must be positive", got=(rate, np.min(substeps)))
    if np.ndim(substeps) and (control_rate is not None or (np.max(substeps) % np.asarray(substeps)).any()):
        raise SimulationError(
            "these numbers of substeps have no common grid",
            got=np.unique(substeps).tolist(),
            expected="divisors of the largest, or one number",
        )
    time, finest = trajectory.times(rate), int(np.max(substeps))
    counts = np.broadcast_to(substeps, len(time) - 1).tolist()
    step = 1.0 / (rate * finest)
    reference = _References(trajectory, step / 2, feedback_of(controller))
    x, w = (np.array(each, dtype=float) for each in start or [each[0] for each in trajectory.evaluate([0.0])[:2]])
    drive = _Drive(controller, reference, sensors or PERFECT, control_rate, step)
    solver = StickSlip(plant, drive.law, x, w, np.zeros(controller.states), drive.stages(plant))
    table, wanted = np.empty((5, len(time), robot.n)), trajectory.evaluate(time)[0]
    guard = partial(Guard(robot.joints, trip).watch, time, table[0], table[1], wanted)
    _run(solver, drive, time.tolist(), [(step * (finest // count), count) for count in counts], table, guard, progress)
    truth = Segment(name, 0.0, rate, *table[:4])
    recording = logged(truth, robot, sensors or PERFECT, seed)
    ratio = np.max(counts, initial=1) / np.min(counts, initial=finest)
    lengths = f"step {step:.3g} s" if ratio == 1 else f"steps {step:.3g} to {step * ratio:.3g} s"
    return SimulatedLog(recording, truth, table[4], wanted, f"rk4, {lengths}")


def _run(
    solver: StickSlip,
    drive: _Drive,
    time: Sequence[float],
    steps: Sequence[tuple[float, int]],
    table: Array,
    guard: Callable[[int], None],
    progress: Progress | None,
) -> None:
    """Samples the loop at the given times, with length and number of the steps between them; ``guard`` checks the samples."""
    for k, t in enumerate(time):
        _sample(solver, drive, t, table, k)
        if (k + 1) % _WATCHED == 0 or k + 1 == len(time):
            guard(k + 1)
        if k + 1 < len(time):
            try:
                step, count = steps[k]
                for i in range(count):
                    if i:
                        drive.tick(t + i * step, solver)
                    solver.step(t + i * step, step)
            except SimulationError:  # the samples so far may show the cause and the joint
                guard(k + 1)
                raise
        if progress is not None and (k + 1) % max(1, len(time) // 100) == 0:
            progress((k + 1) / len(time))


def require_drivable(trajectory: Trajectory, robot: Robot, limits: Limits | None) -> None:
    """Checks that a motion has the robot's joints and respects its limits.

    Args:
        limits: Limits of the motion; the URDF's if None.

    Raises:
        LimitError: The motion is for other joints, or leaves the limits; names joint and time.
    """
    if trajectory.joints != robot.joints:
        raise LimitError("the trajectory is for other joints", got=trajectory.joints, expected=robot.joints)
    check_limits(trajectory, limits or Limits.from_robot(robot)).require()


class _References:
    """The trajectory at multiples of half a step, evaluated in blocks; other instants one by one."""

    def __init__(self, trajectory: Trajectory, grid: float, feedback: Feedback | None = None) -> None:
        self.trajectory, self.grid, self.feedback = trajectory, grid, feedback
        self._begin = self._end = 0
        self._values = trajectory.evaluate([0.0])
        self._feeds = np.zeros((0, len(trajectory.joints)))

    def __call__(self, t: float) -> Reference:
        row = self._row(t)
        if row is None:
            return Reference(*(x[0] for x in self.trajectory.evaluate([min(t, self.trajectory.duration)])))
        q, v, a = self._values
        return Reference(q[row], v[row], a[row])

    def feed(self, t: float) -> Array:
        """Contribution of the reference to the controller's affine form at a time."""
        row = self._row(t)
        if row is not None:
            return np.asarray(self._feeds[row])
        states = self.trajectory.evaluate([min(t, self.trajectory.duration)])
        return np.asarray(self.feedback.feed(*states)[0])  # type: ignore[union-attr]

    def _row(self, t: float) -> int | None:
        """Row of a time in its block, which is evaluated if needed; None between two rows."""
        place = t / self.grid
        index = round(place)
        if abs(place - index) > 1e-9 * (1 + index):
            return None
        if not self._begin <= index < self._end:
            self._begin = index - index % 4096
            self._end = self._begin + 4096
            times = (self._begin + np.arange(4096)) * self.grid
            self._values = self.trajectory.evaluate(np.minimum(times, self.trajectory.duration))
            if self.feedback is not None:
                self._feeds = self.feedback.feed(*self._values)
        return index - self._begin


class _Drive:
    """Controller interface for the integrator: continuous, or held between control instants."""

    def __init__(
        self, controller: Controller, reference: _References, sensors: Sensors, control_rate: float | None, step: float
    ) -> None:
        self.controller, self.reference = controller, reference
        self.sampled = control_rate is not None
        self._counts = sensors.counts
        self._held = np.zeros(0)  # nothing held yet
        self._memory: Array | None = None
        self._last: Array | None = None
        if control_rate is not None:
            ratio = 1.0 / (control_rate * step)
            self._every = round(ratio)
            if self._every < 1 or abs(ratio - self._every) > 1e-6:
                raise SimulationError(
                    "control instants must fall on integration steps",
                    got=f"{control_rate} Hz",
                    expected=f"{1 / step:g} Hz divided by a whole number",
                    remedy="change control_rate or substeps",
                )
            self._step, self._period = step, 1.0 / control_rate

    def stages(self, plant: RigidPlant) -> Stages | None:
        """Fast Runge-Kutta steps, or None if plant or controller do not support them."""
        if self.sampled:
            n = plant.robot.n
            return stages_of(plant, Feedback(lambda q, v, a: q, np.zeros((n, 2 * n))), lambda t: self._held)
        return stages_of(plant, self.reference.feedback, self.reference.feed)

    @property
    def holding(self) -> bool:
        """True once a torque is held."""
        return len(self._held) > 0

    def law(self, t: float, q: Array, v: Array, state: Array) -> tuple[Array, Array]:
        """Drive torque and rate of the controller's state at a time."""
        if self.sampled:
            return self._held, np.zeros_like(state)
        now = self.reference(t)
        return self.controller.torque(now, q, v, state), self.controller.rate(now, q, v, state)

    def tick(self, t: float, solver: StickSlip) -> bool:
        """Updates the held torque if a control instant is due; returns whether it did."""
        if not self.sampled or round(t / self._step) % self._every:
            return False
        seen = solver.x
        if self._counts is not None:
            counts = np.asarray(self._counts) / np.where(solver.plant.robot.prismatic, 1.0, 2 * np.pi)  # per rad or m
            seen = np.rint(seen * counts) / counts
        v = solver.w if self._last is None else (seen - self._last) / self._period
        if self._memory is None:
            self._memory = np.zeros(self.controller.states)
        now = self.reference(t)
        self._held = self.controller.torque(now, seen, v, self._memory)
        self._memory = self._memory + self._period * self.controller.rate(now, seen, v, self._memory)
        self._last = seen
        solver.refresh()
        return True


def _sample(solver: StickSlip, drive: _Drive, t: float, table: Array, k: int) -> None:
    """Writes motion and torque at a time to the table at k; where the torque jumps, the mean of before and after."""
    before = solver.rates(t) if drive.holding else None
    drive.tick(t, solver)
    now = solver.rates(t)
    a, tau, friction = now.a, now.tau, now.friction
    if before is not None:
        a, tau, friction = (before.a + a) / 2, (before.tau + tau) / 2, (before.friction + friction) / 2
    table[:, k] = solver.x, solver.w, a, tau, friction


class Guard:
    """Stops a simulation that diverges.

    Args:
        joints: Names of the joints.
        trip: Tracking error above which a controller counts as diverging [rad or m].
    """

    def __init__(self, joints: tuple[str, ...], trip: float) -> None:
        self.joints, self.trip = joints, trip

    def watch(self, time: Array, q: Array, v: Array, reference: Array, end: int) -> None:
        """Checks the last samples together, and one by one with :meth:`check` if one fails.

        Args:
            time: Shape (N,) [s].
            q: Positions, shape (N, n) [rad or m].
            v: Velocities, shape (N, n) [rad/s or m/s].
            reference: Reference positions, shape (N, n) [rad or m].

        Raises:
            SimulationError: As :meth:`check`.
        """
        recent = slice(max(0, end - _WATCHED), end)
        if np.abs(q[recent] - reference[recent]).max(initial=0.0) <= self.trip and np.isfinite(v[recent]).all():
            return
        for k in range(recent.start, end):
            self.check(float(time[k]), q[k], v[k], reference[k])

    def check(self, t: float, q: Array, v: Array, reference: Array) -> None:
        """Checks one sample.

        Args:
            t: Time [s].
            q: Positions, shape (n,) [rad or m].
            v: Velocities, shape (n,) [rad/s or m/s].
            reference: Reference positions, shape (n,) [rad or m].

        Raises:
            SimulationError: The error is too large or not finite; names joint and time.
        """
        error = np.abs(q - reference)
        error[~(np.isfinite(q) & np.isfinite(v))] = np.inf
        j = int(np.argmax(error))
        if error[j] > self.trip:
            raise SimulationError(
                "the controller diverges or is too weak",
                where=f"joint '{self.joints[j]}' at t = {t:.4g} s",
                got=f"{error[j]:.3g} off the reference",
                expected=f"less than {self.trip:g}",
                remedy="change simulation.controller.bandwidth, raise simulation.controller.rate, or give rotor inertia with "
                "--truth (without it, the motion of other joints carries a light link along)",
            )
