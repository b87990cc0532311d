"""A designed motion of any kind: the trajectory and its margins."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from ..motion.collision.clearance import ClearanceReport
from ..motion.limits import LimitReport, Limits
from ..motion.trajectory import Trajectory
from ..units import percent

UNWATCHED = (
    "not watched; to keep links apart: `excitation: {collisions: true}`, in Python collisions=find_collisions(robot); "
    "capsules replace missing geometry"
)


@dataclass(frozen=True, eq=False, kw_only=True)
class DesignedMotion:
    """A motion inside the limits of the robot.

    Attributes:
        trajectory: The whole motion.
        clearance: Smallest distances between links and to the world, or None if collisions are not checked.
        rate: Default samples per second of the written motion [Hz].
    """

    rate: ClassVar[float] = 100.0

    trajectory: Trajectory
    limits: Limits
    report: LimitReport
    clearance: ClearanceReport | None = None
    notes: tuple[str, ...] = ()
    words: str = ""

    def write(self, path: str | Path, rate: float | None = None) -> Path:
        """Writes the motion, see :meth:`.Trajectory.write`; by default at :attr:`rate` [Hz]."""
        return self.trajectory.write(path, self.rate if rate is None else rate)

    def describe(self) -> list[str]:
        """Returns lines of text, specific to the kind of motion."""
        return [self.words]

    def summary(self) -> str:
        """Describes the motion and its smallest margins in several lines of text."""
        worst = {m.quantity: m for m in sorted(self.report.margins, key=lambda m: -m.relative)}
        lines = ["closest to each limit (torque: rigid bodies of the URDF; friction and rotors need more):"]
        for quantity in ("position", "velocity", "acceleration", "torque"):
            words = "no limit known"
            if (m := worst.get(quantity)) is not None:
                left = f"({m.joint} at {m.time:.3f} s, {percent(100 * m.relative)} % left)"
                words = f"{m.value:10.4g} of {m.limit:.4g} {m.unit} {left}"
            lines.append(f"  {quantity:12s} {words}")
        watched = [UNWATCHED] if self.clearance is None else [str(pair) for pair in self.clearance.closest]
        lines += [f"  {'distance':12s} {line}" for line in watched or ["nothing can collide"]]
        return "\n".join([*self.describe(), *lines, *(f"note: {note}" for note in self.notes)])

    __str__ = summary
