"""Runs at constant speed, each joint alone, the same path both ways: the motion that shows friction (Liu 2023, §2).

At constant speed the links' torque depends on the position alone, so that half the difference of both ways is friction
(:mod:`..compensation.bidirectional` takes it from there). Speeds are spaced by a constant factor, each path is just long enough
to cruise for a while. Where things stand in the way, the home pose is the one of several that leaves all joints most room, and
every path ends before the first thing that is too close.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from ..errors import LimitError
from ..friction.law import LEAST_SPEEDS
from ..linalg import Array, shaped
from ..motion.collision.clearance import check_clearance
from ..motion.collision.collisions import Collisions
from ..motion.compose import SequenceTrajectory
from ..motion.limits import Limits, Torque, check_limits
from ..motion.point_to_point import constant_speed_sweep
from .planned import PlannedMotion

#: Speed of the slowest run over the fastest.
SLOWEST = 0.03
#: Acceleration limit that stands in for an unknown one, in velocity limits per second.
_STAND_IN = 2.0
#: Pause at the turning points [s].
_DWELL = 0.3
#: Poses that are tried for home, besides the middle of all ranges.
_HOMES = 40
#: Instants a side at which a joint's way is tried, and what is kept besides the required distance there [m].
_TRIED, _PAD = 12, 0.005
#: How much shorter ways become, and how often, while something between these instants is too close.
_SHORTER, _ROUNDS = 0.85, 8
#: Instants between which distances along the runs are first bounded [s]; most runs are slow.
_STEP = 0.05


@dataclass(frozen=True, eq=False, kw_only=True)
class BidirectionalExperiment(PlannedMotion):
    """Constant-speed runs of all joints, one after the other; the motion starts and ends at rest at the home pose.

    Attributes:
        speeds: Joint → speeds driven in both directions [rad/s or m/s].
    """

    rate: ClassVar[float] = 500.0

    trajectory: SequenceTrajectory
    speeds: Mapping[str, tuple[float, ...]]

    def describe(self) -> list[str]:
        """Which speeds are driven.

        Returns:
            Lines of text.
        """
        lines = [f"sweeps: {self.trajectory.duration:.4g} s, one joint at a time, each speed both ways over the same path"]
        for joint, speeds in self.speeds.items():
            unit = "m" if self.limits.prismatic[self.limits.joints.index(joint)] else "rad"
            lines.append(f"  {joint:24s} {len(speeds)} speeds, {speeds[0]:.3g} … {speeds[-1]:.3g} {unit}/s")
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
    """Plans runs at constant speed, each joint alone, each speed both ways over the same path.

    Args:
        limits: Of the joints; velocities must be known. An unknown acceleration limit is taken as the velocity limit per
            half second.
        joints: Which joints move; all by default.
        count: Number of speeds, at least 4.
        cruise: Time at constant speed each way [s], less where the way is too short.
        fill: Part of each limit that is used, 0 to 1.
        home: Pose around which the joints move, shape (n,) [rad or m]; the middle of each range by default, or with
            collisions the pose of several that leaves most room.
        torque: ``(q, v, a)`` → joint torque, checked against its limits too; see :func:`..motion.limits.prior_torque`.
        collisions: Links and objects that must keep their distance; None: only limits are kept.
        seed: Of the poses that are tried for home.

    Returns:
        The experiment, inside its limits, distances certified.

    Raises:
        LimitError: A limit is unknown, the home pose is outside or collides, a joint has no room, or too few speeds.
    """
    limits.require("position", "velocity")
    if count < LEAST_SPEEDS:
        raise LimitError("too few speeds for a friction curve", got=count, expected=f"at least {LEAST_SPEEDS}")
    chosen = limits.joints if joints is None else tuple(joints)
    for joint in chosen:
        if joint not in limits.joints:
            raise LimitError(f"no joint is called '{joint}'", expected=", ".join(limits.joints))
    moving = [limits.joints.index(joint) for joint in chosen]
    plan = _Plan(limits, moving, count, cruise, fill, torque, collisions)
    rest = plan.find_home(home, seed)
    room = plan.room(rest)
    if collisions is not None:
        room = np.minimum(room, plan.free(rest, room))
    for _ in range(_ROUNDS):
        trajectory, speeds = plan.runs(rest, room)
        clearance = None if collisions is None else check_clearance(trajectory, collisions, step=_STEP)
        if clearance is None or clearance.feasible:
            break
        room = _SHORTER * room
    if clearance is not None:
        clearance.require()
    report = check_limits(trajectory, limits, torque=torque, rate=200.0)
    report.require()
    notes = () if collisions is None else collisions.notes
    return BidirectionalExperiment(
        trajectory=trajectory, speeds=speeds, limits=limits, report=report, clearance=clearance, notes=notes
    )


@dataclass(frozen=True, eq=False)
class _Plan:
    """What was asked for, and the ways that follow from it."""

    limits: Limits
    moving: list[int]
    count: int
    cruise: float
    fill: float
    torque: Torque | None
    collisions: Collisions | None

    def ends(self, around: Array | float = 0.0) -> tuple[Array, Array]:
        """Position limits, half a turn around a pose (of zero before one is known) where there are none, each of shape (n,)."""
        low, high = self.limits.lower, self.limits.upper
        return np.where(np.isfinite(low), low, around - np.pi), np.where(np.isfinite(high), high, around + np.pi)

    @property
    def acceleration(self) -> Array:
        """That is used, shape (n,) [rad/s² or m/s²]."""
        known = np.isfinite(self.limits.acceleration)
        return np.asarray(self.fill * np.where(known, self.limits.acceleration, _STAND_IN * self.limits.velocity))

    def wanted(self) -> Array:
        """Half the way on which each joint cruises at its fastest, shape (n,) [rad or m]."""
        v = self.fill * self.limits.velocity
        return np.asarray(0.5 * (v * (v / self.acceleration + 0.1) + v * self.cruise))

    def room(self, rest: Array) -> Array:
        """How far each joint may go from home either way within its limits, shape (n,) [rad or m]."""
        low, high = self.ends(rest)
        return np.asarray(self.fill * np.minimum(high - rest, rest - low))

    def find_home(self, home: ArrayLike | None, seed: int) -> Array:
        """The pose in the middle of all runs, shape (n,) [rad or m]."""
        low, high = self.ends()
        middle = (low + high) / 2
        if home is not None:
            rest = shaped("home", home, middle.shape)
            low, high = self.ends(rest)
            for j in self.moving:
                if not min(high[j] - rest[j], rest[j] - low[j]) > 0:
                    raise LimitError(
                        "the home pose leaves no room",
                        where=f"joint '{self.limits.joints[j]}'",
                        got=f"{rest[j]:.6g}",
                        expected=f"between {low[j]:.6g} and {high[j]:.6g}",
                    )
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
        """Least part of the way that it wants of any joint; 0 where the pose collides or is too heavy."""
        still = np.zeros((1, len(pose)))
        if self.torque is not None and (np.abs(self.torque(pose[None], still, still)[0]) > 0.9 * self.limits.torque).any():
            return 0.0
        collisions = self.collisions
        if collisions is None or (collisions.distances(pose)[0] < collisions.required).any():
            return 0.0
        room = np.minimum(self.room(pose), self.wanted())
        return float((self.free(pose, room) / self.wanted())[self.moving].min())

    def free(self, rest: Array, room: Array) -> Array:
        """How far each joint may go either way before something is too close, as tried on instants; shape (n,)."""
        out = room.copy()
        if self.collisions is None or not self.collisions.pairs:
            return out
        parts = np.arange(1, _TRIED + 1) / _TRIED
        for j in self.moving:
            q = np.tile(rest, (2 * _TRIED, 1))
            q[:, j] += room[j] * np.concatenate([parts, -parts])
            blocked = (self.collisions.distances(q) < self.collisions.required + _kept(self.collisions, rest)).any(axis=1)
            first = np.flatnonzero(blocked.reshape(2, -1).any(axis=0))
            if len(first):
                out[j] = room[j] * first[0] / _TRIED
        return out

    def runs(self, rest: Array, room: Array) -> tuple[SequenceTrajectory, dict[str, tuple[float, ...]]]:
        """The runs, and the speeds of each joint."""
        parts, speeds = [], {}
        for j in self.moving:
            joint, a = self.limits.joints[j], float(self.acceleration[j])
            if not room[j] > 0:
                raise LimitError(
                    "no room for a sweep",
                    where=f"joint '{joint}' at home {rest[j]:.4g}",
                    remedy="choose another home pose (excitation.start)",
                )
            most = min(self.fill * float(self.limits.velocity[j]), _reachable(2 * float(room[j]), a, min(self.cruise, 0.5)))
            speeds[joint] = tuple(float(speed) for speed in np.geomspace(SLOWEST * most, most, self.count))
            for speed in speeds[joint]:
                half = min(float(room[j]), 0.5 * (speed * (speed / a + 0.1) + speed * self.cruise))
                ends = (float(rest[j]) - half, float(rest[j]) + half)
                parts.append(
                    constant_speed_sweep(self.limits.joints, joint, [speed], ends, home=rest, acceleration=a, dwell=_DWELL)
                )
        return SequenceTrajectory(tuple(parts)), speeds


def _kept(collisions: Collisions, rest: Array) -> Array:
    """What is kept besides the required distances: less of a pair that is close at home already, shape (P,) [m]."""
    return np.asarray(np.clip(0.5 * (collisions.distances(rest)[0] - collisions.required), 0.0, _PAD))


def _reachable(way: float, acceleration: float, cruise: float) -> float:
    """Fastest speed with some cruising left on a way: v (v/a + 0.1 + cruise) = way."""
    ramp = 0.1 + cruise
    return 0.5 * acceleration * float(np.sqrt(ramp**2 + 4 * way / acceleration) - ramp)
