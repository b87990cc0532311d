"""Composition of trajectories: sequences, ramps from and to a home pose, repetition."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from ..errors import LimitError, check_positive
from ..linalg import Array, one_each
from ..samples import freeze_arrays
from .trajectory import Trajectory, check_repetitions, sampled

#: Largest difference between two ends that count as equal [rad, rad/s, rad/s² or m …].
TOLERANCE = 1e-6


@dataclass(frozen=True, eq=False)
class SequenceTrajectory(Trajectory):
    """One trajectory after the other, without a jump in position, velocity or acceleration.

    Attributes:
        parts: The trajectories, at least one, for the same joints.
    """

    parts: tuple[Trajectory, ...]
    joints: tuple[str, ...] = field(init=False)
    duration: float = field(init=False)
    smoothness: int = field(init=False)

    def __post_init__(self) -> None:
        if not self.parts:
            raise LimitError("a sequence needs at least one trajectory")
        first = self.parts[0]
        for before, after in zip(self.parts, self.parts[1:], strict=False):
            if after.joints != first.joints:
                raise LimitError("the parts move different joints", got=after.joints, expected=first.joints)
            _check_joined(before, after, "the parts do not meet")
        smooth = min([piece.smoothness for piece in self.parts] + [2] * (len(self.parts) > 1))
        freeze_arrays(self, joints=first.joints, duration=float(sum(piece.duration for piece in self.parts)), smoothness=smooth)

    @property
    def starts(self) -> Array:
        """Start of each piece, shape (P,) [s]."""
        return np.concatenate([[0.0], np.cumsum([piece.duration for piece in self.parts])[:-1]])

    def evaluate(self, t: ArrayLike) -> tuple[Array, Array, Array]:
        time = np.atleast_1d(np.asarray(t, dtype=float))
        motion = np.empty((3, len(time), len(self.joints)))
        index = np.clip(np.searchsorted(self.starts, time, side="right") - 1, 0, None)
        for k, (piece, start) in enumerate(zip(self.parts, self.starts, strict=True)):
            during = index == k
            if during.any():
                motion[:, during] = piece.evaluate(time[during] - start)
        return motion[0], motion[1], motion[2]

    def bounds(self, order: int) -> Array:
        """Largest bound of the parts; see :meth:`Trajectory.bounds`."""
        return np.asarray(np.max([piece.bounds(order) for piece in self.parts], axis=0))


@dataclass(frozen=True, eq=False)
class RepeatedTrajectory(Trajectory):
    """A closed motion repeated without a pause.

    Attributes:
        trajectory: One period; must end in the state in which it starts.
    """

    trajectory: Trajectory
    periods: int
    joints: tuple[str, ...] = field(init=False)
    duration: float = field(init=False)
    smoothness: int = field(init=False)

    def __post_init__(self) -> None:
        check_repetitions(self.periods)
        _check_joined(self.trajectory, self.trajectory, "the trajectory does not end where it starts")
        one = self.trajectory
        freeze_arrays(self, joints=one.joints, duration=self.periods * one.duration, smoothness=min(2, one.smoothness))

    def evaluate(self, t: ArrayLike) -> tuple[Array, Array, Array]:
        time = np.atleast_1d(np.asarray(t, dtype=float))
        completed = np.clip(np.floor(time / self.trajectory.duration), 0, self.periods - 1)
        return self.trajectory.evaluate(time - completed * self.trajectory.duration)

    def bounds(self, order: int) -> Array:
        """Bounds of one period; see :meth:`Trajectory.bounds`."""
        return self.trajectory.bounds(order)


def ramped(trajectory: Trajectory, home: ArrayLike, duration: float = 2.0) -> SequenceTrajectory:
    """Adds fifth-degree ramps, so that the motion starts and ends at rest at a home pose.

    Args:
        trajectory: Any trajectory; it may start and end in motion.
        home: The pose, shape (n,) [rad or m].
        duration: Of each ramp [s]; check the limits afterwards: short ramps need high accelerations.

    Raises:
        LimitError: The duration is not positive.
    """
    check_positive("the duration of a ramp", duration, LimitError, "s")
    pose = one_each("home", home, len(trajectory.joints))
    first, last = ([x[0] for x in trajectory.evaluate([time])] for time in (0.0, trajectory.duration))
    still, ends = np.zeros_like(pose), np.array([0.0, duration])
    rise = sampled(trajectory.joints, ends, [pose, first[0]], [still, first[1]], [still, first[2]])
    fall = sampled(trajectory.joints, ends, [last[0], pose], [last[1], still], [last[2], still])
    return SequenceTrajectory((rise, trajectory, fall))


def _check_joined(before: Trajectory, after: Trajectory, what: str) -> None:
    """Raises an error if position, velocity or acceleration jumps from the end of one trajectory to the start of another."""
    end, start = before.evaluate([before.duration]), after.evaluate([0.0])
    for name, x, y in zip(("position", "velocity", "acceleration"), end, start, strict=True):
        jump = np.abs(x[0] - y[0])
        j = int(np.argmax(jump))
        if jump[j] > TOLERANCE * (1.0 + abs(x[0, j])):
            raise LimitError(
                f"{what}: the {name} jumps",
                where=f"joint '{before.joints[j]}'",
                got=f"{jump[j]:.3g}",
                remedy="join them with ramped(…)",
            )
