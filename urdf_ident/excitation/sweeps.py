"""Constant-speed runs of one joint at a time, in both directions over the same path, for friction (Liu 2023, §2).

At constant speed the link torque depends only on the position, so that half the difference of both directions is friction
(evaluated by :mod:`..compensation.bidirectional`). Speeds are spaced geometrically; each path is just long enough for the
cruise time. The default is short; what that costs in standard errors of friction is reported. With obstacles, the home pose
is the one of several that leaves all joints the most room, and every path ends before the first obstacle that is too close.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from ..errors import LimitError, check_named
from ..friction.law import LEAST_SPEEDS
from ..linalg import Array, shaped
from ..motion.collision.clearance import check_clearance
from ..motion.collision.collisions import Collisions
from ..motion.limits import Limits, Torque, check_limits, finite_ends
from ..motion.point_to_point import trapezoidal
from ..motion.trajectory import PiecewisePolynomial
from ..units import joint_units
from .motion import DesignedMotion

#: Speed of the slowest run over the fastest.
SLOWEST = 0.03
#: Speeds of a joint and time at each of them [s]: the default, and the long experiment that it is compared with.
SHORT, LONG = (5, 0.5), (8, 2.0)
#: Pause at the turning points [s]; time of the changes of the acceleration, in addition to speed over acceleration [s].
_DWELL, _RAMP = 0.1, 0.1
#: Number of candidates for the home pose, besides the middle of all ranges.
_HOMES = 40
#: Number of positions per side at which a joint's range is checked, and the margin beyond the required distance there [m].
_TRIED, _PAD = 12, 0.005
#: Reduction factor of the ranges, and number of attempts, while a distance in between is too small.
_SHORTER, _ROUNDS = 0.85, 8
#: Initial spacing of instants for certifying distances [s]; most runs are slow.
_STEP = 0.05
#: Part of the torque limits that gravity may need in a home pose.
_HELD = 0.9


@dataclass(frozen=True, eq=False, kw_only=True)
class BidirectionalExperiment(DesignedMotion):
    """Constant-speed runs of all joints, one after the other; the motion starts and ends at rest at the home pose.

    Attributes:
        speeds: Joint → speeds, each in both directions [rad/s or m/s].
        cruise: Time at each speed in each direction, where the range is long enough [s].
    """

    rate: ClassVar[float] = 500.0

    trajectory: PiecewisePolynomial
    speeds: Mapping[str, tuple[float, ...]]
    cruise: float

    @property
    def loss(self) -> tuple[float, float]:
        """Standard errors of Coulomb and viscous friction over those of the long experiment :data:`LONG`.

        Torque noise is taken as white, so that the information is the time at each speed: its square root counts.
        """

        def errors(count: int, cruise: float) -> Array:
            speeds = np.geomspace(SLOWEST, 1.0, count)
            columns = np.sqrt(2.0 * cruise) * np.column_stack([np.ones(count), speeds])
            return np.asarray(np.sqrt(np.sum(np.linalg.pinv(columns) ** 2, axis=1)))

        coulomb, viscous = errors(len(next(iter(self.speeds.values()))), self.cruise) / errors(*LONG)
        return float(coulomb), float(viscous)

    def describe(self) -> list[str]:
        """Describes the speeds, and what the time saved costs."""
        lines = [f"sweeps: {self.trajectory.duration:.4g} s, one joint at a time, each speed both ways over the same path"]
        lines.append(
            "  standard errors of Coulomb and viscous friction {:.2g} and {:.2g} × those of the long runs "
            "(excitation: {{speeds: {}, cruise: {:g}}})".format(*self.loss, *LONG)
        )
        for joint, speeds in self.speeds.items():
            unit = joint_units(self.limits.prismatic[self.limits.joints.index(joint)])["velocity"]
            lines.append(f"  {joint:24s} {len(speeds)} speeds, {speeds[0]:.3g} … {speeds[-1]:.3g} {unit}")
        return lines


def bidirectional_experiment(
    limits: Limits,
    *,
    joints: Sequence[str] | None = None,
    count: int = SHORT[0],
    cruise: float = SHORT[1],
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
    names = limits.joints if joints is None else tuple(joints)
    for joint in names:
        check_named("joint", joint, limits.joints, LimitError)
    moving = [limits.joints.index(joint) for joint in names]
    fastest, acceleration = fill * limits.velocity, fill * limits.assumed_acceleration
    # half the path that each joint needs at its fastest
    needed = 0.5 * (fastest * (fastest / acceleration + _RAMP) + fastest * cruise)

    if home is not None:
        rest = shaped("home", home, limits.lower.shape)
        limits.require_inside(rest, "home pose")
        if collisions is not None:
            collisions.require_free(rest, "the home pose")
    else:
        rest = _freest(limits, collisions, torque, moving, needed, fill, seed)
    half_range, clearance = _room(limits, rest, fill), None
    if collisions is not None:
        half_range = np.minimum(half_range, _collision_free(collisions, rest, half_range, moving))
    for _ in range(_ROUNDS):
        points, rates, speeds = [rest], list[float](), dict[str, tuple[float, ...]]()
        for j in moving:
            joint, a, free = limits.joints[j], float(acceleration[j]), float(half_range[j])
            if not free > 0:
                raise LimitError(
                    "no room for a sweep",
                    where=f"joint '{joint}' at home {rest[j]:.4g}",
                    remedy="choose another home pose (excitation.start)",
                )
            speeds[joint] = _speeds(float(fastest[j]), a, free, cruise, count)
            axis = np.eye(len(rest))[j]
            for speed in speeds[joint]:  # up from home and back, or from below home where there is too little room above
                length = min(2 * free, speed * (speed / a + _RAMP) + speed * cruise)
                low = rest - max(0.0, length - free) * axis
                if (low != points[-1]).any():
                    points, rates = [*points, low], [*rates, fastest[j]]
                points, rates = [*points, low + length * axis, low], [*rates, speed, speed]
            if (rest != points[-1]).any():
                points, rates = [*points, rest], [*rates, fastest[j]]
        rated = np.tile(np.array(rates)[:, None], len(rest))
        trajectory = trapezoidal(limits.joints, np.array(points), rated, acceleration, 10.0 * acceleration, _DWELL)
        clearance = None if collisions is None else check_clearance(trajectory, collisions, step=_STEP)
        if clearance is None or clearance.feasible:
            break
        half_range = _SHORTER * half_range
    if clearance is not None:
        clearance.require()
    report = check_limits(trajectory, limits, torque=torque, rate=200.0)
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
    notes = () if collisions is None else collisions.notes
    return BidirectionalExperiment(
        trajectory=trajectory, speeds=speeds, cruise=cruise, limits=limits, report=report, clearance=clearance, notes=notes
    )


def _speeds(fastest: float, acceleration: float, free: float, cruise: float, count: int) -> tuple[float, ...]:
    """Speeds up to the largest that a joint reaches on its whole path, ``2 free``, with a short cruise."""
    ramp = _RAMP + min(cruise, 0.5)
    # v (v / acceleration + ramp) = 2 free
    most = min(fastest, 0.5 * acceleration * float(np.sqrt(ramp**2 + 8 * free / acceleration) - ramp))
    return tuple(float(speed) for speed in np.geomspace(SLOWEST * most, most, count))


def _room(limits: Limits, pose: Array, fill: float) -> Array:
    """What each joint may move either way from a pose within its limits, shape (n,) [rad or m]."""
    low, high = finite_ends(limits.lower, limits.upper, pose)
    return np.asarray(fill * np.minimum(high - pose, pose - low))


def _freest(
    limits: Limits,
    collisions: Collisions | None,
    torque: Torque | None,
    moving: Sequence[int],
    needed: Array,
    fill: float,
    seed: int,
) -> Array:
    """The middle of all ranges, or with collisions the pose of several that leaves the joint with the least room the most."""
    low, high = finite_ends(limits.lower, limits.upper)
    middle = (low + high) / 2
    if collisions is None:
        return np.asarray(middle)

    def score(pose: Array) -> float:
        """The smallest available fraction of the wanted range of any joint; 0 for an infeasible pose."""
        still = np.zeros((1, len(pose)))
        if torque is not None and (np.abs(torque(pose[None], still, still)[0]) > _HELD * limits.torque).any():
            return 0.0
        if (collisions.distances(pose)[0] < collisions.required).any():
            return 0.0
        free = _collision_free(collisions, pose, np.minimum(_room(limits, pose, fill), needed), moving)
        return float((free / needed)[moving].min())

    drawn = np.random.default_rng(seed).uniform(-1.0, 1.0, (_HOMES, len(middle)))
    poses = np.vstack([middle, middle + 0.5 * (high - low) / 2 * drawn])
    scores = [score(pose) for pose in poses]
    if not max(scores) > 0:
        raise LimitError(
            "no pose is free enough for the sweeps",
            got=f"{len(poses)} poses tried",
            remedy="give one as excitation.start, or check the world",
        )
    return np.asarray(poses[int(np.argmax(scores))])


def _collision_free(collisions: Collisions, rest: Array, half_range: Array, moving: Sequence[int]) -> Array:
    """Returns the collision-free part of each joint's range either way, from a few positions; shape (n,) [rad or m]."""
    out = half_range.copy()
    if not collisions.pairs:
        return out
    # a margin for what lies between the positions, smaller for pairs that are close at home
    kept = np.clip(0.5 * (collisions.distances(rest)[0] - collisions.required), 0.0, _PAD)
    parts = np.arange(1, _TRIED + 1) / _TRIED
    for j in moving:
        q = np.tile(rest, (2 * _TRIED, 1))
        q[:, j] += half_range[j] * np.concatenate([parts, -parts])
        blocked = (collisions.distances(q) < collisions.required + kept).any(axis=1)
        first = np.flatnonzero(blocked.reshape(2, -1).any(axis=0))
        if len(first):
            out[j] = half_range[j] * first[0] / _TRIED
    return out
