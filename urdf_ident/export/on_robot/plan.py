"""Motion data for all targets: samples in the URDF's joint order, approach speeds, and the checklist."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...errors import ModelError
from ...linalg import Array
from ...motion.collision.clearance import ClearanceReport
from ...motion.limits import Limits
from ...motion.trajectory import Trajectory
from ...quoting import printable
from ...units import joint_units

#: Fraction of the velocity limits for the approach to the first pose, and relative speed of the dry run.
APPROACH, DRY_RUN = 0.1, 0.2
#: Pause at the first pose and after the last one [s]: standstill for the estimation of torque constants.
PAUSE = 2.0

_CHECKS = """\
Before pressing start
  1. The cell is what the motion was designed for: table, walls, tool, cables. `urdf-ident play` shows it.
  2. Nobody is inside the robot's reach. A hand is on the emergency stop.
  3. Nothing is in the gripper that the logs should not carry; the payload set in the controller is the real one.
  4. The robot is warm: friction of a cold gear is up to twice that of a warm one.
  5. Start with the dry run (a fifth of the speed). Watch the whole of it. Only then run the motion.
  6. The recording runs BEFORE the motion starts and ends after the robot stands again.
"""


@dataclass(frozen=True, eq=False)
class Plan:
    """A checked motion for a robot.

    Attributes:
        trajectory: The motion, at rest at both ends.
        order: Joint names in the order of the URDF.
        limits: The limits against which it was checked.
        clearance: Clearances of the motion; None if not checked.
    """

    robot: str
    trajectory: Trajectory
    order: tuple[str, ...]
    limits: Limits
    clearance: ClearanceReport | None = None

    @property
    def place(self) -> list[int]:
        """Index of each joint of :attr:`order` in the trajectory."""
        return [self.trajectory.joints.index(name) for name in self.order]

    def require_joints(self, count: int, what: str, remedy: str) -> None:
        """Raises an error if the robot has another number of joints than its controller; remedy: how to come to that number."""
        if len(self.order) != count:
            raise ModelError(what, got=len(self.order), remedy=f"{remedy} (robot.lock), or take --for ros2_control")

    def samples(self, rate: float, speed: float = 1.0) -> tuple[Array, Array, Array, Array]:
        """Samples the motion, at reduced speed if requested.

        Args:
            rate: Samples per second [Hz].
            speed: Fraction of the motion's own speed.

        Returns:
            Time [s], shape (N,); position, velocity, acceleration, shape (N, n), joints in :attr:`order`.
        """
        time = np.arange(int(np.ceil(self.trajectory.duration / speed * rate - 1e-9)) + 1) / rate
        time[-1] = self.trajectory.duration / speed
        q, v, a = self.trajectory.evaluate(np.minimum(time * speed, self.trajectory.duration))
        return time, q[:, self.place], speed * v[:, self.place], speed**2 * a[:, self.place]

    @property
    def approach(self) -> Array:
        """Speed of each joint during the approach, shape (n,), joints in :attr:`order` [rad/s or m/s]."""
        return np.asarray(APPROACH * self.limits.velocity[self.place])

    def page(self, target: str) -> str:
        """Checklist to read before starting the motion, with first pose, range and largest speed of every joint."""
        total, (_, q, v, _) = self.trajectory.duration, self.samples(200.0)
        distances = ["The motion itself is NOT checked for collisions: no geometry and no world file."]
        if self.clearance is not None:
            closest = [f"  {printable(str(pair))}" for pair in self.clearance.closest]
            distances = ["The motion itself keeps its distances:", *closest]
            distances = distances if closest else ["The motion itself comes close to nothing."]
        lines = [
            f"Excitation motion for {printable(self.robot)} ({target}): {total:.1f} s, dry run {total / DRY_RUN:.1f} s.",
            "Units: rad, rad/s, s (m, m/s for prismatic joints); joints in the order of the URDF.",
            f"Approach to the first pose at {100 * APPROACH:.0f} % of the velocity limits, straight in joint space: "
            "the way there is NOT checked for collisions.",
            *distances,
            "",
            f"  {'joint':24s} {'first pose':>12s} {'lowest':>10s} {'highest':>10s} {'fastest':>10s} {'limit':>10s}",
        ]
        for j, (name, k) in enumerate(zip(self.order, self.place, strict=True)):
            unit = joint_units(self.limits.prismatic[k])["position"]
            cells = (q[0, j], q[:, j].min(), q[:, j].max(), np.abs(v[:, j]).max(), self.limits.velocity[k])
            numbers = f"{cells[0]:12.4f} " + " ".join(f"{x:10.4f}" for x in cells[1:])
            lines.append(f"  {printable(name):24s} {numbers}  [{unit}, {unit}/s]")
        return "\n".join([*lines, "", _CHECKS])
