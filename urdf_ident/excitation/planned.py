"""What every motion that was planned rather than optimised carries: the trajectory, and how much room it leaves."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from ..motion.base import Trajectory
from ..motion.collision.clearance import ClearanceReport
from ..motion.limits import LimitReport, Limits
from .report import closest_lines


@dataclass(frozen=True, eq=False, kw_only=True)
class PlannedMotion:
    """A motion inside the limits of the robot.

    Attributes:
        trajectory: The whole motion.
        limits: The limits that it keeps.
        report: How much room it leaves.
        clearance: Closest calls with links and world, or None where collisions were not asked for.
        notes: What the user should know.
        rate: Samples per second at which such a motion is written [Hz].
    """

    rate: ClassVar[float] = 100.0

    trajectory: Trajectory
    limits: Limits
    report: LimitReport
    clearance: ClearanceReport | None = None
    notes: tuple[str, ...] = ()

    def write(self, path: str | Path, rate: float | None = None) -> Path:
        """Writes the motion, see :meth:`.Trajectory.write`; at :attr:`rate` if no other is asked for [Hz]."""
        return self.trajectory.write(path, self.rate if rate is None else rate)

    def describe(self) -> list[str]:
        """What the motion is.

        Returns:
            Lines of text; each kind of motion says its own.
        """
        return [f"motion: {self.trajectory.duration:.4g} s"]

    def summary(self) -> str:
        """What the motion is, and how close it comes to the limits.

        Returns:
            Several lines of text.
        """
        notes = (f"note: {note}" for note in self.notes)
        return "\n".join([*self.describe(), *closest_lines(self.report, self.clearance), *notes])
