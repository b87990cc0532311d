"""Constant-speed runs of one joint at a time, in both directions over the same path, for friction (Liu 2023, §2).

At constant speed the link torque depends only on the position, so that half the difference of both directions is friction
(evaluated by :mod:`..compensation.bidirectional`). Speeds are spaced geometrically; each path is just long enough for the
cruise time. With obstacles, the home pose is the one of several that leaves all joints the most room, and every path ends
before the first obstacle that is too close.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from ...errors import LimitError, check_named
from ...friction.law import LEAST_SPEEDS
from ...linalg import Array, shaped
from ...motion.collision.clearance import check_clearance
from ...motion.collision.collisions import Collisions
from ...motion.compose import SequenceTrajectory
from ...motion.limits import LimitReport, Limits, Torque, check_limits, finite_ends
from ...motion.point_to_point import constant_speed_sweep
from ...units import joint_units
from .planned_motion import PlannedMotion

#: Speed of the slowest run over the fastest.
SLOWEST = 0.03
#: Acceleration limit if unknown, in velocity limits per second.
_STAND_IN = 2.0
#: Pause at the turning points [s].
_DWELL = 0.3
#: Number of candidates for the home pose, besides the middle of all ranges.
_HOMES = 40
#: Number of positions per side at which a joint's range is checked, and the margin beyond the required distance there [m].
_TRIED, _PAD = 12, 0.005
#: Reduction factor of the ranges, and number of attempts, while a distance in between is too small.
_SHORTER, _ROUNDS = 0.85, 8
#: Initial spacing of instants for certifying distances [s]; most runs are slow.
_STEP = 0.05


@dataclass(frozen=True, eq=False, kw_only=True)
class BidirectionalExperiment(PlannedMotion):
    """Constant-speed runs of all joints, one after the other; the motion starts and ends at rest at the home pose.

    Attributes:
        speeds: Joint → speeds, each in both directions [rad/s or m/s].
    """

    rate: ClassVar[float] = 500.0

    trajectory: SequenceTrajectory
    speeds: Mapping[str, tuple[float, ...]]

    def describe(self) -> list[str]:
        """Describes the speeds."""
        lines = [f"sweeps: {self.trajectory.duration:.4g} s, one joint at a time, each speed both ways over the same path"]
        for joint, speeds in self.speeds.items():
            unit = joint_units(self.limits.prismatic[self.limits.joints.index(joint)])["velocity"]
            lines.append(f"  {joint:24s} {len(speeds)} speeds, {speeds[0]:.3g} … {speeds[-1]:.3g} {unit}")
        return lines


def bidirectional_experiment(
    limits: Limits,
    *,
    joints: Sequence[str] | None = None,
    count: int = 8,
    cruise: float = 2.0,
    fill: float = 0.9,
    home: ArrayLike | None = None,
    torque: Torque | None = None,
    collisions: Collisions | None = None,
    seed: int = 0,
) -> BidirectionalExperiment:
    """Plans constant-speed runs of one joint at a time, each speed in both directions over the same path.

    Args:
        limits: Of the joints; velocities must be known. An unknown acceleration limit is replaced by the velocity limit per
            half second.
        joints: The joints to move; all by default.
        count: Number of speeds, at least 4.
        cruise: Time at constant speed in each direction [s], less if the range is too short.
        fill: Fraction of each limit that is used, 0 to 1.
        home: Pose around which the joints move, shape (n,) [rad or m]; the middle of each range by default, or with
            collisions the pose of several that leaves the most room.
        torque: ``(q, v, a)`` → joint torque, to check its limits too; see :func:`..motion.limits.prior_torque`.
        collisions: Pairs whose clearance is kept; None: collisions are not checked.
        seed: Of the candidates for the home pose.

    Returns:
        The experiment, with verified limits and certified distances.

    Raises:
        LimitError: A limit is unknown, the home pose is outside or collides, a joint has no room, or too few speeds.
    """
    limits.require("position", "velocity")
    if count < LEAST_SPEEDS:
        raise LimitError("too few speeds for a friction curve", got=count, expected=f"at least {LEAST_SPEEDS}")
    chosen = limits.joints if joints is None else tuple(joints)
    for joint in chosen:
        check_named("joint", joint, limits.joints, LimitError)
    plan = _Plan(limits, [limits.joints.index(joint) for joint in chosen], count, cruise, fill, torque, collisions)
    rest = plan.find_home(home, seed)
    half_range = plan.range_within_limits(rest)
    if collisions is not None:
        half_range = np.minimum(half_range, plan.collision_free_range(rest, half_range))
    for _ in range(_ROUNDS):
        trajectory, speeds = plan.runs(rest, half_range)
        clearance = None if collisions is None else check_clearance(trajectory, collisions, step=_STEP)
        if clearance is None or clearance.feasible:
            break
        half_range = _SHORTER * half_range
    if clearance is not None:
        clearance.require()
    report = check_limits(trajectory, limits, torque=torque, rate=200.0)
    _require(report)
    notes = () if collisions is None else collisions.notes
    return BidirectionalExperiment(
        trajectory=trajectory, speeds=speeds, limits=limits, report=report, clearance=clearance, notes=notes
    )


def _require(report: LimitReport) -> None:
    """Raises an error if the runs violate a limit."""
    worst = report.worst
    if not report.feasible and worst is not None and worst.quantity == "torque":
        raise LimitError(
            "the sweeps need too much torque",
            where=f"joint '{worst.joint}'",
            got=f"{worst.value:.4g} {worst.unit}",
            expected=f"at most {worst.limit:.4g}",
            remedy="restrict the joints that carry weight (excitation.limits.position), or correct the torque limit",
        )
    report.require()


@dataclass(frozen=True, eq=False)
class _Plan:
    """Settings of the sweeps, and the resulting ranges."""

    limits: Limits
    moving: list[int]
    count: int
    cruise: float
    fill: float
    torque: Torque | None
    collisions: Collisions | None

    @property
    def acceleration(self) -> Array:
        """Acceleration of the runs, shape (n,) [rad/s² or m/s²]."""
        known = np.isfinite(self.limits.acceleration)
        return np.asarray(self.fill * np.where(known, self.limits.acceleration, _STAND_IN * self.limits.velocity))

    def needed_range(self) -> Array:
        """Returns half the path length that each joint needs at its fastest, shape (n,) [rad or m]."""
        v = self.fill * self.limits.velocity
        return np.asarray(0.5 * (v * (v / self.acceleration + 0.1) + v * self.cruise))

    def range_within_limits(self, rest: Array) -> Array:
        """Returns the range of each joint either way from home within its limits, shape (n,) [rad or m]."""
        low, high = finite_ends(self.limits.lower, self.limits.upper, rest)
        return np.asarray(self.fill * np.minimum(high - rest, rest - low))

    def find_home(self, home: ArrayLike | None, seed: int) -> Array:
        """Returns the pose in the middle of all runs, shape (n,) [rad or m]."""
        low, high = finite_ends(self.limits.lower, self.limits.upper)
        middle = (low + high) / 2
        if home is not None:
            rest = shaped("home", home, middle.shape)
            self.limits.require_inside(rest, "home pose")
            if self.collisions is not None:
                self.collisions.require_free(rest, "the home pose")
            return rest
        if self.collisions is None:
            return middle
        rng = np.random.default_rng(seed)
        poses = [middle, *(middle + 0.5 * (high - low) / 2 * rng.uniform(-1.0, 1.0, (_HOMES, len(middle))))]
        scores = [self._score(np.asarray(pose)) for pose in poses]
        if not max(scores) > 0:
            raise LimitError(
                "no pose is free enough for the sweeps",
                got=f"{len(poses)} poses tried",
                remedy="give one as excitation.start, or check the world",
            )
        return np.asarray(poses[int(np.argmax(scores))])

    def _score(self, pose: Array) -> float:
        """Returns the smallest available fraction of the wanted range of any joint; 0 for an infeasible pose."""
        still = np.zeros((1, len(pose)))
        if self.torque is not None and (np.abs(self.torque(pose[None], still, still)[0]) > 0.9 * self.limits.torque).any():
            return 0.0
        collisions = self.collisions
        if collisions is None or (collisions.distances(pose)[0] < collisions.required).any():
            return 0.0
        half_range = np.minimum(self.range_within_limits(pose), self.needed_range())
        return float((self.collision_free_range(pose, half_range) / self.needed_range())[self.moving].min())

    def collision_free_range(self, rest: Array, half_range: Array) -> Array:
        """Returns the collision-free range of each joint either way, from a few positions; shape (n,) [rad or m]."""
        out = half_range.copy()
        if self.collisions is None or not self.collisions.pairs:
            return out
        parts = np.arange(1, _TRIED + 1) / _TRIED
        for j in self.moving:
            q = np.tile(rest, (2 * _TRIED, 1))
            q[:, j] += half_range[j] * np.concatenate([parts, -parts])
            blocked = (self.collisions.distances(q) < self.collisions.required + _kept(self.collisions, rest)).any(axis=1)
            first = np.flatnonzero(blocked.reshape(2, -1).any(axis=0))
            if len(first):
                out[j] = half_range[j] * first[0] / _TRIED
        return out

    def runs(self, rest: Array, half_range: Array) -> tuple[SequenceTrajectory, dict[str, tuple[float, ...]]]:
        """Returns the runs, and the speeds of each joint."""
        parts, speeds = [], {}
        for j in self.moving:
            joint, a, free = self.limits.joints[j], float(self.acceleration[j]), float(half_range[j])
            if not free > 0:
                raise LimitError(
                    "no room for a sweep",
                    where=f"joint '{joint}' at home {rest[j]:.4g}",
                    remedy="choose another home pose (excitation.start)",
                )
            most = min(self.fill * float(self.limits.velocity[j]), _reachable(2 * free, a, min(self.cruise, 0.5)))
            speeds[joint] = tuple(float(speed) for speed in np.geomspace(SLOWEST * most, most, self.count))
            for speed in speeds[joint]:
                half = min(free, 0.5 * (speed * (speed / a + 0.1) + speed * self.cruise))
                ends = (float(rest[j]) - half, float(rest[j]) + half)
                parts.append(
                    constant_speed_sweep(self.limits.joints, joint, [speed], ends, home=rest, acceleration=a, dwell=_DWELL)
                )
        return SequenceTrajectory(tuple(parts)), speeds


def _kept(collisions: Collisions, rest: Array) -> Array:
    """Returns the margin beyond the required distances, smaller for pairs that are close at home, shape (P,) [m]."""
    return np.asarray(np.clip(0.5 * (collisions.distances(rest)[0] - collisions.required), 0.0, _PAD))


def _reachable(distance: float, acceleration: float, cruise: float) -> float:
    """Returns the largest speed with the given cruise time on a path: v (v/a + 0.1 + cruise) = distance."""
    ramp = 0.1 + cruise
    return 0.5 * acceleration * float(np.sqrt(ramp**2 + 4 * distance / acceleration) - ramp)
