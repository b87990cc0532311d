"""Friction from runs at constant speed, the same path both ways (E, §2; theory §9).

At constant speed the links' torque is a function of the position alone. Half the difference of the torque on the way there
and back is therefore the *odd* part of friction; half the sum is gravity plus the *even* part, the asymmetry, and
gravity on one joint, the others still, is ``A sin q + B cos q``: what is constant along the path is not gravity. The curve
``friction(±v) = ±odd(v) + even(v)`` is then fitted by E's law of eight parameters. They depend on each other strongly:
judge the curve, not single coefficients.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from ..errors import LimitError, LogError, check_shape
from ..estimation.least_squares import ols
from ..model.inertia import Array
from ..model.robot import Robot
from ..model.segment import Segment
from ..motion.compose import SequenceTrajectory
from ..motion.limits import Limits, Torque, check_limits
from ..motion.point_to_point import constant_speed_sweep
from .friction_curve import LEAST_SPEEDS, FrictionCurve, FrictionPoints, fit_friction

#: Speed of the slowest run over the fastest.
SLOWEST = 0.03
#: A speed counts as constant within this part of it.
_STEADY = 0.05
#: While a speed is held, the acceleration is below this part of what it took to reach it.
_HELD = 0.2
#: Runs belong to the same speed within this part of it.
_SAME = 0.08
#: Other joints are still below this part of the moving joint's speed [1], or below this speed [rad/s or m/s].
_STILL, _REST = 0.05, 2e-3
#: Bins of position in which the torque of both ways is compared.
_BINS = 24
#: Way below which gravity cannot be told from a constant [rad].
_SHORTEST_WAY = 0.3


@dataclass(frozen=True, eq=False)
class BidirectionalExperiment:
    """Constant-speed runs of all joints, one after the other.

    Attributes:
        trajectory: The whole motion; starts and ends at rest at the home pose.
        speeds: Joint → speeds driven in both directions [rad/s or m/s].
    """

    trajectory: SequenceTrajectory
    speeds: Mapping[str, tuple[float, ...]]

    def write(self, path: str | Path, rate: float = 500.0) -> Path:
        """Writes the motion as the default trajectory CSV.

        Args:
            path: The file.
            rate: Samples per second [Hz].

        Returns:
            The path written.

        Raises:
            OutputError: It cannot be written.
        """
        return self.trajectory.write(path, rate)


def bidirectional_experiment(
    limits: Limits,
    *,
    joints: Sequence[str] | None = None,
    count: int = 8,
    cruise: float = 2.0,
    fill: float = 0.9,
    home: ArrayLike | None = None,
    torque: Torque | None = None,
) -> BidirectionalExperiment:
    """Plans runs at constant speed, each joint alone, each speed both ways over the same path.

    Speeds are spaced by a constant factor; each path is just long enough to cruise for a while.

    Args:
        limits: Of the joints; velocities must be known. An unknown acceleration limit is taken as the velocity limit per
            half second.
        joints: Which joints move; all by default.
        count: Number of speeds, at least 4.
        cruise: Time at constant speed each way [s], less where the way is too short.
        fill: Part of each limit that is used, 0 to 1.
        home: Pose around which the joints move, shape (n,) [rad or m]; the middle of each range by default.
        torque: ``(q, v, a)`` → joint torque, checked against its limits too; see :func:`..motion.limits.prior_torque`.

    Returns:
        The experiment, inside its limits.

    Raises:
        LimitError: A limit is unknown, the home pose is outside, or too few speeds.
    """
    limits.require("velocity")
    if count < LEAST_SPEEDS:
        raise LimitError("too few speeds for a friction curve", got=count, expected=f"at least {LEAST_SPEEDS}")
    low, high = (np.where(np.isfinite(x), x, sign * np.pi) for x, sign in ((limits.lower, -1), (limits.upper, 1)))
    rest = (low + high) / 2 if home is None else np.asarray(home, dtype=float)
    check_shape("home", rest.shape, (len(limits.joints),))
    acceleration = fill * np.where(np.isfinite(limits.acceleration), limits.acceleration, 2.0 * limits.velocity)
    chosen = limits.joints if joints is None else tuple(joints)
    parts, speeds = [], {}
    for joint in chosen:
        if joint not in limits.joints:
            raise LimitError(f"no joint is called '{joint}'", expected=", ".join(limits.joints))
        j = limits.joints.index(joint)
        room = fill * float(min(high[j] - rest[j], rest[j] - low[j]))
        if not room > 0:
            raise LimitError("the home pose leaves no room", where=f"joint '{joint}'", got=f"{rest[j]:.6g}",
                             expected=f"between {low[j]:.6g} and {high[j]:.6g}")  # fmt: skip
        a = float(acceleration[j])
        fastest = min(fill * float(limits.velocity[j]), _reachable(2 * room, a, min(cruise, 0.5)))
        speeds[joint] = tuple(float(speed) for speed in np.geomspace(SLOWEST * fastest, fastest, count))
        for speed in speeds[joint]:
            half = min(room, 0.5 * (speed * (speed / a + 0.1) + speed * cruise))
            ends = (float(rest[j]) - half, float(rest[j]) + half)
            parts.append(constant_speed_sweep(limits.joints, joint, [speed], ends, home=rest, acceleration=a, dwell=0.3))
    trajectory = SequenceTrajectory(tuple(parts))
    check_limits(trajectory, limits, torque=torque, rate=200.0).require()
    return BidirectionalExperiment(trajectory, speeds)


def _reachable(way: float, acceleration: float, cruise: float) -> float:
    """Fastest speed with some cruising left on a way: v (v/a + 0.1 + cruise) = way."""
    ramp = 0.1 + cruise
    return 0.5 * acceleration * float(np.sqrt(ramp**2 + 4 * way / acceleration) - ramp)


def identify_friction(
    segments: Sequence[Segment], robot: Robot, *, joints: Sequence[str] | None = None
) -> tuple[FrictionCurve, ...]:
    """Friction curves from the segments of bidirectional runs.

    Args:
        segments: Conditioned pieces with measured torque; other motions in them do no harm.
        robot: The robot.
        joints: For which joints; all by default.

    Returns:
        One curve a joint.

    Raises:
        LogError: A joint has no runs at constant speed, was driven one way only, or the log has no torque.
        EstimationError: Too few speeds.
    """
    return tuple(fit_friction(friction_points(segments, robot, joint)) for joint in joints or robot.joints)


@dataclass(frozen=True, eq=False)
class _Run:
    """One stretch at constant speed: position, torque, signed speed."""

    q: Array
    tau: Array
    speed: float


def friction_points(segments: Sequence[Segment], robot: Robot, joint: str) -> FrictionPoints:
    """Odd and even part of one joint's friction.

    Args:
        segments: Conditioned pieces with measured torque.
        robot: The robot.
        joint: Joint name.

    Returns:
        The points.

    Raises:
        LogError: No runs at constant speed with the other joints still, no reversals, or no torque.
    """
    j = robot.index(joint)
    runs = [run for segment in segments for run in _constant_speed_runs(segment, j)]
    where = f"joint '{joint}'"
    if not runs:
        raise LogError("no runs at constant speed with the other joints still", where=where,
                       remedy="drive the bidirectional experiment (bidirectional_experiment)")  # fmt: skip
    levels = _levels(runs)
    both = [(speed, level) for speed, level in levels if len({run.speed > 0 for run in level}) == 2]
    if not both:
        way = "forwards" if runs[0].speed > 0 else "backwards"
        raise LogError(
            "no reversals: no speed was driven both ways", where=where, got=f"{len(runs)} run(s), {way} only"
            if len({run.speed > 0 for run in runs}) == 1 else f"{len(runs)} run(s) at {len(levels)} different speeds",
            expected="every speed forwards and backwards over the same path", remedy="drive the same path back",
        )  # fmt: skip
    rows = [(speed, *found) for speed, level in both if (found := _there_and_back(level)) is not None]
    if not rows:
        raise LogError("the ways there and back do not overlap", where=where, remedy="drive the same path back")
    speed = np.array([row[0] for row in rows])
    odd, scatter = np.array([row[1] for row in rows]), np.array([row[2] for row in rows])
    even, gravity, notes = _even_part([row[3] for row in rows], [row[4] for row in rows], bool(robot.prismatic[j]))
    return FrictionPoints(joint, speed, odd, even, scatter, gravity, notes)


def _constant_speed_runs(segment: Segment, j: int) -> list[_Run]:
    if segment.tau is None:
        raise LogError("no torque or current in the log", where=segment.log, remedy="name the effort columns")
    tau = segment.tau[:, j] if segment.external is None else segment.tau[:, j] + segment.external[:, j]
    v = segment.v[:, j]
    others = np.abs(np.delete(segment.v, j, axis=1)).max(axis=1, initial=0.0)
    moving = (np.abs(v) > _REST) & (others < np.maximum(_STILL * np.abs(v), _REST))
    state = np.where(moving, np.sign(v), 0.0)
    edges = np.flatnonzero(np.diff(state, prepend=0.0, append=0.0))
    runs = []
    for begin, end in pairwise(edges.tolist()):
        if state[begin] == 0:
            continue
        level = _cruise(np.abs(v[begin:end]))
        steady = np.abs(np.abs(v[begin:end]) - level) < _STEADY * level
        starts = np.flatnonzero(np.diff(np.concatenate([[False], steady, [False]]).astype(int)))
        first, last = max(zip(starts[::2], starts[1::2], strict=True), key=lambda pair: pair[1] - pair[0])
        trim = (last - first) // 10  # friction that is still settling, and what the filter has rounded off
        first, last = begin + first + trim, begin + last - trim
        part = slice(first, last)
        if (last - first) / segment.rate >= 0.1 and last - first >= 10 and _cruises(segment.a[:, j], part, begin, end):
            runs.append(_Run(segment.q[part, j], tau[part], float(np.mean(v[part]))))
    return runs


def _cruises(a: Array, part: slice, begin: int, end: int) -> bool:
    """Whether the speed is held, and not only passed through at the top of a short move."""
    return float(np.sqrt(np.mean(a[part] ** 2))) < _HELD * float(np.abs(a[begin:end]).max())


def _cruise(speed: Array) -> float:
    """The speed that is held longest: the fullest of overlapping bins."""
    ordered = np.sort(speed)
    ends = np.searchsorted(ordered, ordered * (1 + _STEADY), side="right")
    k = int(np.argmax(ends - np.arange(len(ordered))))
    return float(np.median(ordered[k : ends[k]]))


def _levels(runs: Sequence[_Run]) -> list[tuple[float, list[_Run]]]:
    """Runs grouped by their speed, slowest first."""
    ordered = sorted(runs, key=lambda run: abs(run.speed))
    groups: list[list[_Run]] = []
    for run in ordered:
        if groups and abs(run.speed) <= abs(groups[-1][0].speed) * (1 + _SAME):
            groups[-1].append(run)
        else:
            groups.append([run])
    return [(float(np.mean([abs(run.speed) for run in group])), group) for group in groups]


def _there_and_back(level: Sequence[_Run]) -> tuple[float, float, Array, Array] | None:
    """Odd part and its scatter, and half the sum over the positions of the common path."""
    ways = []
    for sign in (1, -1):
        mine = [run for run in level if np.sign(run.speed) == sign]
        ways.append((np.concatenate([run.q for run in mine]), np.concatenate([run.tau for run in mine])))
    low, high = max(q.min() for q, _ in ways), min(q.max() for q, _ in ways)
    if not high > low:
        return None
    place = np.linspace(low, high, _BINS + 1)
    means, counts = [], []
    for q, tau in ways:
        which = np.digitize(q, place[1:-1])
        inside = (q >= low) & (q <= high)
        count = np.bincount(which[inside], minlength=_BINS)
        total = np.bincount(which[inside], tau[inside], minlength=_BINS)
        means.append(total / np.maximum(count, 1))
        counts.append(count)
    full = (counts[0] > 0) & (counts[1] > 0)
    if full.sum() < 3:
        return None
    half_difference, half_sum = (means[0] - means[1])[full] / 2, (means[0] + means[1])[full] / 2
    scatter = float(np.std(half_difference, ddof=1) / np.sqrt(full.sum()))
    middle = (place[:-1] + place[1:]) / 2
    return float(half_difference.mean()), scatter, middle[full], half_sum


def _even_part(
    places: Sequence[Array], halves: Sequence[Array], prismatic: bool
) -> tuple[Array, tuple[float, float], tuple[str, ...]]:
    """What half the sum holds beside gravity, one constant a speed."""
    q, half = np.concatenate(places), np.concatenate(halves)
    level = np.concatenate([np.full(len(place), k) for k, place in enumerate(places)])
    constants = (level[:, None] == np.arange(len(places))).astype(float)
    if prismatic:  # gravity on a sliding joint is a constant itself: only differences between speeds are friction
        means = np.array([half_k.mean() for half_k in halves])
        note = "gravity of a sliding joint and a constant asymmetry look the same: taken as gravity"
        return means - means.mean(), (0.0, 0.0), (note,)
    if np.ptp(q) < _SHORTEST_WAY or len(q) < len(places) + 3:
        note = f"a way of {np.ptp(q):.2g} rad is too short to tell asymmetry from gravity (0.3 rad): taken as symmetric"
        return np.zeros(len(places)), (0.0, 0.0), (note,)
    found = ols(np.column_stack([np.sin(q), np.cos(q), constants]), half)
    return found.estimate[2:].copy(), (float(found.estimate[0]), float(found.estimate[1])), ()
