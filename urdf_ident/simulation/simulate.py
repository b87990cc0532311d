"""A robot follows a trajectory under feedback, and a log of it.

Two ways of driving: *continuous* (the controller acts inside the integration, the torque is smooth) and *sampled*
(``control_rate``: torque is held between control instants, and the controller sees quantised positions and their
differences). Of a held torque, which jumps at the instant of a sample, the mean of before and after is logged, and the
same of the acceleration, so that the log's rows satisfy the equations of motion.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..data.recording import Recording
from ..errors import LimitError, SimulationError
from ..files import write_text
from ..linalg import Array
from ..motion.base import Trajectory
from ..motion.limits import Limits, check_limits
from ..motion.table import table_text
from ..samples import Segment
from .controllers import Controller, Reference
from .integrators import StickSlip
from .plant import Plant
from .sensors import Sensors, measure

Progress = Callable[[float], None]


@dataclass(frozen=True, eq=False)
class SimulatedLog:
    """A simulated log and the truth behind it.

    Attributes:
        recording: What a user would have, columns in the order of the robot's joints.
        truth: Clean motion and drive torque at the nominal instants.
        friction: The part of the torque that is friction, shape (N, n) [N·m or N].
        reference: Where the robot should have been, shape (N, n) [rad or m].
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
        return np.asarray(np.sqrt(np.mean((self.reference - self.truth.q) ** 2, axis=0)))


def simulate(
    plant: Plant,
    controller: Controller,
    trajectory: Trajectory,
    *,
    sensors: Sensors | None = None,
    rate: float = 1000.0,
    seed: int = 0,
    substeps: int = 1,
    control_rate: float | None = None,
    start: tuple[Array, Array] | None = None,
    limits: Limits | None = None,
    trip: float = 1.0,
    name: str = "simulated",
    progress: Progress | None = None,
) -> SimulatedLog:
    """Simulates a closed loop with the integrator rk4 (see :mod:`.integrators`).

    Args:
        plant: What moves.
        controller: What drives it.
        trajectory: What it should follow; must start where the robot can start.
        sensors: Imperfections of the log; perfect by default.
        rate: Samples per second of the log [Hz].
        seed: Of the sensors' random numbers.
        substeps: Integration steps per sample; 1 at 1 kHz is a step of 1 ms.
        control_rate: Control instants per second [Hz], a whole fraction or multiple of ``rate·substeps``; None: continuous.
        start: Positions and velocities at the start, shapes (n,); on the trajectory by default.
        limits: Checked before anything moves; the URDF's by default.
        trip: Tracking error at which a controller counts as diverging [rad or m].
        name: Of the log.
        progress: Called with the part that is done, 0 to 1, about every percent.

    Returns:
        The log.

    Raises:
        LimitError: The trajectory is for other joints, or leaves the limits; names joint and time.
        SimulationError: The controller diverges; names joint and time. Or a rate is impossible.
    """
    robot = plant.robot
    if trajectory.joints != robot.joints:
        raise LimitError("the trajectory is for other joints", got=trajectory.joints, expected=robot.joints)
    check_limits(trajectory, limits or Limits.from_robot(robot)).require()
    if substeps < 1 or not rate > 0:
        raise SimulationError("the rate and the number of substeps must be positive", got=(rate, substeps))
    time, step = trajectory.times(rate), 1.0 / (rate * substeps)
    reference = _References(trajectory, step / 2)
    q0, v0, _ = (x[0] for x in trajectory.evaluate([0.0]))
    x, w = plant.start(*(start if start is not None else (q0, v0)))
    drive = _Drive(controller, reference, sensors or Sensors(), control_rate, step)
    solver = StickSlip(plant, drive.law, x, w, np.zeros(controller.states))
    table = np.empty((5, len(time), robot.n))
    guard = Guard(robot.joints, trip)
    for k, t in enumerate(time):
        table[:, k] = _sample(solver, drive, t)
        guard.check(float(t), table[0, k], table[1, k], reference(float(t)).q)
        if k + 1 < len(time):
            for i in range(substeps):
                now = t + i * step
                if i:
                    drive.tick(now, solver)
                solver.step(now, step)
        if progress is not None and (k + 1) % max(1, len(time) // 100) == 0:
            progress((k + 1) / len(time))
    q, v, a, tau, friction = table
    truth = Segment(name, 0.0, rate, q, v, a, tau)
    seen = measure(truth, sensors or Sensors(), seed, np.asarray(robot.prismatic))
    recording = Recording(
        name,
        robot.joints,
        seen.time,
        seen.position,
        velocity=seen.velocity,
        effort=seen.torque,
        effort_unit="N" if bool(robot.prismatic.all()) else "N·m",
    )
    return SimulatedLog(recording, truth, friction, trajectory.evaluate(time)[0], f"rk4, step {step:.3g} s")


def write_log(log: Recording | SimulatedLog, path: str | Path) -> Path:
    """Writes a log in the default CSV (docs/logs.md): ``t, q_…, v_…, tau_…, qm_…`` in SI units.

    Args:
        log: The log.
        path: The file.

    Returns:
        The path written.

    Raises:
        OutputError: It cannot be written.
    """
    recording = log.recording if isinstance(log, SimulatedLog) else log
    signals = {
        "q": recording.position,
        "v": recording.velocity,
        "a": recording.acceleration,
        "tau": recording.effort,
        "qm": recording.motor_position,
        "position_target": recording.position_target,
    }
    present = {prefix: signal for prefix, signal in signals.items() if signal is not None}
    return write_text(path, table_text(recording.joints, recording.time, present))


class _References:
    """The trajectory at multiples of half a step, worked out in blocks; other instants one by one."""

    def __init__(self, trajectory: Trajectory, grid: float) -> None:
        self.trajectory, self.grid = trajectory, grid
        self._block = -1
        self._values = trajectory.evaluate([0.0])

    def __call__(self, t: float) -> Reference:
        index = round(t / self.grid)
        if abs(t - index * self.grid) > 1e-9 * self.grid * (1 + index):
            return Reference(*(x[0] for x in self.trajectory.evaluate([min(t, self.trajectory.duration)])))
        block, row = divmod(index, 4096)
        if block != self._block:
            times = (block * 4096 + np.arange(4096)) * self.grid
            self._values = self.trajectory.evaluate(np.minimum(times, self.trajectory.duration))
            self._block = block
        q, v, a = self._values
        return Reference(q[row], v[row], a[row])


class _Drive:
    """The controller as the integrator sees it: continuous, or held between control instants."""

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

    @property
    def holding(self) -> bool:
        """True once a torque is held."""
        return len(self._held) > 0

    def law(self, t: float, q: Array, v: Array, state: Array) -> tuple[Array, Array]:
        """The drive torque at an instant."""
        if self.sampled:
            return self._held, np.zeros_like(state)
        now = self.reference(t)
        return self.controller.torque(now, q, v, state), self.controller.rate(now, q, v, state)

    def tick(self, t: float, solver: StickSlip) -> bool:
        """Takes a control instant if one is due; True if the torque has changed."""
        if not self.sampled or round(t / self._step) % self._every:
            return False
        q = solver.plant.joints(solver.x)
        seen = q if self._counts is None else np.rint(q * self._per_unit(solver)) / self._per_unit(solver)
        v = solver.plant.joints(solver.w) if self._last is None else (seen - self._last) / self._period
        if self._memory is None:
            self._memory = np.zeros(self.controller.states)
        now = self.reference(t)
        self._held = self.controller.torque(now, seen, v, self._memory)
        self._memory = self._memory + self._period * self.controller.rate(now, seen, v, self._memory)
        self._last = seen
        solver.refresh()
        return True

    def _per_unit(self, solver: StickSlip) -> Array:
        turn = np.where(solver.plant.robot.prismatic, 1.0, 2 * np.pi)
        return np.asarray(np.asarray(self._counts) / turn)


def _sample(solver: StickSlip, drive: _Drive, t: float) -> tuple[Array, Array, Array, Array, Array]:
    """Motion and torque at an instant; the mean of before and after where the torque jumps."""
    before = solver.rates(t) if drive.holding else None
    drive.tick(t, solver)
    now, plant = solver.rates(t), solver.plant
    a, tau, friction = now.a, now.tau, now.friction
    if before is not None:
        a, tau, friction = (before.a + a) / 2, (before.tau + tau) / 2, (before.friction + friction) / 2
    return plant.joints(solver.x), plant.joints(solver.w), plant.joints(a), tau, plant.joints(friction)


class Guard:
    """Stops a simulation that diverges.

    Args:
        joints: Names of the joints.
        trip: Tracking error at which a controller counts as diverging [rad or m].
    """

    def __init__(self, joints: tuple[str, ...], trip: float) -> None:
        self.joints, self.trip = joints, trip

    def check(self, t: float, q: Array, v: Array, reference: Array) -> None:
        """Looks at one sample.

        Args:
            t: Time [s].
            q: Positions, shape (n,) [rad or m].
            v: Velocities, shape (n,) [rad/s or m/s].
            reference: Where the joints should be, shape (n,) [rad or m].

        Raises:
            SimulationError: Too far off, or not finite; names joint and time.
        """
        error = np.abs(q - reference)
        error[~(np.isfinite(q) & np.isfinite(v))] = np.inf
        j = int(np.argmax(error))
        if error[j] > self.trip:
            raise SimulationError(
                "the controller diverges",
                where=f"joint '{self.joints[j]}' at t = {t:.4g} s",
                got=f"{error[j]:.3g} off the reference",
                expected=f"less than {self.trip:g}",
                remedy="lower simulation.controller.bandwidth or simulation.step, or raise simulation.controller.rate",
            )
