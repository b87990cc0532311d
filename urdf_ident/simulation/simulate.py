"""Simulates a robot that follows a trajectory under feedback, and its log.

The controller is either *continuous* (evaluated within the integration, smooth torque) or *sampled* (``control_rate``:
the torque is held between control instants, and the controller gets quantised positions and their differences). If a held
torque jumps at a sample, the mean of the values before and after is logged, and likewise for the acceleration, so that the
log's rows satisfy the equations of motion.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..errors import LimitError, SimulationError
from ..linalg import Array
from ..model.robot import Robot
from ..motion.limits import Limits, check_limits
from ..motion.trajectory import Trajectory
from ..samples import Segment
from .controllers import Controller, Reference
from .integrators import StickSlip
from .plant import RigidPlant
from .settings import Sensors
from .simulated_log import PERFECT, SimulatedLog, measure

#: Number of samples between checks for divergence.
_WATCHED = 16
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
        substeps: Integration steps per sample; 1 at 1 kHz is a step of 1 ms.
        control_rate: Control instants per second [Hz], ``rate·substeps`` divided by a whole number; None: continuous.
        start: Positions and velocities at the start, shapes (n,); on the trajectory by default.
        limits: Limits checked before the simulation; the URDF's by default.
        trip: Tracking error above which the controller counts as diverging [rad or m].
        name: Name of the log.
        progress: Called with the completed fraction, 0 to 1, about every percent.

    Raises:
        LimitError: The trajectory is for other joints, or leaves the limits; names joint and time.
        SimulationError: The controller diverges (names joint and time), or a rate is invalid.
    """
    robot, sensors = plant.robot, sensors or PERFECT
    require_drivable(trajectory, robot, limits)
    if substeps < 1 or not rate > 0:
        raise SimulationError("the rate and the number of substeps must be positive", got=(rate, substeps))
    time, step = trajectory.times(rate), 1.0 / (rate * substeps)
    instants, wanted = time.tolist(), trajectory.evaluate(time)[0]
    drive = _Drive(controller, trajectory, sensors, control_rate, step)
    x, w = (np.array(each, dtype=float) for each in start or [each[0] for each in trajectory.evaluate([0.0])[:2]])
    solver = StickSlip(plant, drive.law, x, w, np.zeros(controller.states))
    table = np.empty((5, len(time), robot.n))

    def watch(end: int) -> None:
        """Checks the last samples together, and one by one if one fails."""
        recent = slice(max(0, end - _WATCHED), end)
        error = np.abs(table[0, recent] - wanted[recent]).max(initial=0.0)
        if not (error <= trip and np.isfinite(table[1, recent]).all()):
            for k in range(recent.start, end):
                require_tracking(robot.joints, trip, instants[k], table[0, k], table[1, k], wanted[k])

    for k, t in enumerate(instants):
        before = solver.rates(t) if drive.holding else None
        drive.tick(t, solver)
        now = solver.rates(t)
        a, tau, friction = now.a, now.tau, now.friction
        if before is not None:  # the torque may jump here
            a, tau, friction = (before.a + a) / 2, (before.tau + tau) / 2, (before.friction + friction) / 2
        table[:, k] = solver.x, solver.w, a, tau, friction
        last = k + 1 == len(time)
        if last or (k + 1) % _WATCHED == 0:
            watch(k + 1)
        try:
            for i in range(0 if last else substeps):
                if i:
                    drive.tick(t + i * step, solver)
                solver.step(t + i * step, step)
        except SimulationError:  # the samples so far may show the cause and the joint
            watch(k + 1)
            raise
        if progress is not None and (k + 1) % max(1, len(time) // 100) == 0:
            progress((k + 1) / len(time))
    truth = Segment(name, 0.0, rate, *table[:4])
    recording = measure(truth, robot.joints, sensors, seed, prismatic=robot.prismatic)
    return SimulatedLog(recording, truth, table[4], wanted, f"rk4, step {step:.3g} s")


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
        """True once a torque is held."""
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


def require_tracking(joints: tuple[str, ...], trip: float, t: float, q: Array, v: Array, reference: Array) -> None:
    """Stops a simulation that diverges.

    Args:
        trip: Tracking error above which a controller counts as diverging [rad or m].
        t: Time [s].
        q, v, reference: Positions, velocities and reference positions, shape (n,) each [rad, rad/s or m, m/s].

    Raises:
        SimulationError: They are too far apart or not finite; names joint and time.
    """
    error = np.abs(q - reference)
    error[~(np.isfinite(q) & np.isfinite(v))] = np.inf
    j = int(np.argmax(error))
    if error[j] > trip:
        raise SimulationError(
            "the controller diverges or is too weak",
            where=f"joint '{joints[j]}' at t = {t:.4g} s",
            got=f"{error[j]:.3g} off the reference",
            expected=f"less than {trip:g}",
            remedy="change simulation.controller.bandwidth, raise simulation.controller.rate, or give rotor inertia with "
            "--truth (without it, the motion of other joints carries a light link along)",
        )
