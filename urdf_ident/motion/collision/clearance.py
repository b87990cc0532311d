"""Certifies the clearance of a motion, also between sampled instants.

The distance of two bodies is the smallest distance of their points. Relative to one body, a point of the other moves with
a speed of at most ``L = Σ|v_j| r_j`` and an acceleration of at most ``A = Σ|a_j| r_j + ΣΣ|v_j||v_k| r_k``, where r are upper
bounds of the lever arms over all configurations. Over a time h it moves along a chord of length at most ``L h`` and deviates
from it by at most ``A h²/8``. Between instants with distances d₀ and d₁, the smaller being d, the distance is therefore at
least ``(d₀ + d₁ − L h)/2``, and at least ``√(d² − (L h/2)²) − A h²/8``: a certificate, not an estimate. If that is not
sufficient, the interval is subdivided.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...errors import LimitError
from ...linalg import Array, IntArray
from ...samples import ReadOnly
from ..trajectory import Trajectory
from .collisions import Collisions
from .world import TOOL_BOX

#: Coal's own error [m]; it stops at 1e-6.
MEASURED = 2e-6


@dataclass(frozen=True, eq=False)
class SpeedBounds(ReadOnly):
    """Bounds on the rate of change of distances, valid in any configuration.

    Attributes:
        arms: Speed per joint speed, shape (P, n) [m/rad or 1].
        linear: Acceleration per joint acceleration, shape (P, n) [m/rad or 1].
        square: Acceleration per product of joint speeds, shape (P, n, n).
    """

    arms: Array
    linear: Array
    square: Array

    @classmethod
    def of(cls, collisions: Collisions, stroke: Array) -> SpeedBounds:
        """Computes the bounds of a robot's pairs.

        Args:
            stroke: Largest ``|q|`` of every joint, shape (n,) [rad or m]; that of prismatic ones counts.
        """
        robot, kinematics = collisions.robot, collisions.kinematics
        coupling = np.abs(robot.coupling)
        stroke = coupling @ stroke + np.abs(robot.starts)
        count, n = len(collisions.pairs), kinematics.n
        arms, linear, square = np.zeros((count, n)), np.zeros((count, n)), np.zeros((count, n, n))
        for p in range(count):
            pair, bodies = collisions.pairs[p], collisions.bodies[p]
            reaches = [0.0 if collisions.tool is None else float(np.linalg.norm(collisions.tool[1])), np.inf]
            if pair.second >= 0:
                reaches = [collisions.solids[k].reach for k in (pair.first, pair.second)]
            # lever arms of points of the first and of the second solid in any configuration [m; 1 for prismatic joints]
            on_a, on_b = (kinematics.lever_arms(body, size, stroke) for body, size in zip(bodies, reaches, strict=True))
            chain = kinematics.chain(*bodies)
            arms[p, chain] = np.minimum(on_a, on_b)[chain]
            if on_a[chain].sum() < on_b[chain].sum():  # points of the first body, relative to the second
                chain, lever = chain[::-1], on_a
            else:
                lever = on_b
            linear[p, chain] = lever[chain]
            for inner, j in enumerate(chain):
                if not kinematics.prismatic[j]:
                    for k in chain[inner:]:
                        square[p, j, k] = square[p, k, j] = lever[k]
        return cls(arms @ coupling, linear @ coupling, coupling.T @ square @ coupling)

    def rates(self, v: Array, a: Array) -> tuple[Array, Array]:
        """Returns the largest speed and acceleration of points, shapes (N, P) [m/s, m/s²].

        Args:
            v: Largest joint speeds, shape (N, n) [rad/s or m/s].
            a: Largest joint accelerations, shape (N, n) [rad/s² or m/s²].
        """
        return v @ self.arms.T, a @ self.linear.T + np.einsum("mj,pjk,mk->mp", v, self.square, v, optimize=True)


#: Instants between which distances are first bounded [s].
STEP = 0.02
#: Number of parts into which an interval is subdivided, and of subdivisions.
_PARTS, _CUTS = 5, 6
#: With more undecided intervals than this, a motion counts as too close.
_MANY = 20_000


@dataclass(frozen=True)
class Clearance:
    """The smallest distance of one pair during a motion.

    Attributes:
        first: Name of the first solid, a link.
        time: Time of the smallest sampled distance [s].
        distance: That distance [m]; negative if they overlap.
        least: Lower bound over the whole motion, also between instants [m].
        required: Smallest distance allowed [m].
    """

    first: str
    second: str
    time: float
    distance: float
    least: float
    required: float

    @property
    def margin(self) -> float:
        """Lower bound minus required distance; negative if not certified [m]."""
        return self.least - self.required

    def __str__(self) -> str:
        return (
            f"{self.first} and {self.second}: {1000 * self.distance:.4g} mm at {self.time:.3f} s "
            f"(never below {1000 * self.least:.4g}, allowed {1000 * self.required:.4g})"
        )

    def require(self) -> None:
        """Raises an error if the required distance is not certified.

        Raises:
            LimitError: With the pair, the time and the distance.
        """
        if self.margin >= 0:
            return
        raise LimitError(
            "the motion collides" if self.distance < 0 else "the motion comes too close",
            where=f"{self.first} and {self.second} at t = {self.time:.4g} s",
            got=f"{self.distance:.4g} m",
            expected=f"at least {self.required:.4g} m",
            remedy="make it smaller, lower excitation.clearance, or design it with a larger excitation.budget",
        )


@dataclass(frozen=True)
class ClearanceReport:
    """Smallest distances of a motion, the worst pair first."""

    pairs: tuple[Clearance, ...]

    @property
    def feasible(self) -> bool:
        """True if every required distance is certified."""
        return all(pair.margin >= 0 for pair in self.pairs)

    @property
    def worst(self) -> Clearance | None:
        """The pair with the smallest margin, None if nothing can collide."""
        return self.pairs[0] if self.pairs else None

    @property
    def closest(self) -> tuple[Clearance, ...]:
        """The smallest distance of two solids, and of the tool from its box, if there are any."""
        groups = [[pair for pair in self.pairs if (pair.second == TOOL_BOX) == tool] for tool in (False, True)]
        return tuple(min(group, key=lambda pair: pair.distance) for group in groups if group)

    def require(self) -> None:
        """Raises an error if a required distance is not certified.

        Raises:
            LimitError: With the pair, the time and the distance.
        """
        if self.worst is not None:
            self.worst.require()


def check_clearance(
    trajectory: Trajectory, collisions: Collisions, step: float = STEP, *, thorough: bool = True
) -> ClearanceReport:
    """Compares all distances along a motion with the required ones, also between instants.

    Args:
        step: Initial spacing of instants [s]; affects only the computing time.
        thorough: Whether to measure all distances; otherwise only those that fast bounds do not certify, and the bounds of the
            others are reported.

    Raises:
        LimitError: The joints differ, or the motion is not finite.
    """
    if trajectory.joints != collisions.robot.joints:
        raise LimitError("motion and robot have different joints", got=trajectory.joints, expected=collisions.robot.joints)
    if not collisions.pairs:
        return ClearanceReport(())
    count = max(2, int(np.ceil(trajectory.duration / step)) + 1)
    time = np.linspace(0.0, trajectory.duration, count)
    q = trajectory.evaluate(time)[0]
    if not np.isfinite(q).all():
        raise LimitError("the trajectory is not finite", got="NaN or inf")
    bounds = SpeedBounds.of(collisions, np.abs(q).max(axis=0) + trajectory.bounds(1) * time[1])
    required = collisions.required
    k, p = (x.ravel() for x in np.indices((count - 1, len(required))))
    if thorough:
        distance = collisions.distances(q) - MEASURED
    else:
        poses, every = collisions.kinematics.evaluate(q), np.indices((count, len(required))).reshape(2, -1)
        distance = collisions.rough(poses, every[0], every[1]).reshape(count, -1)
        bounded = _Intervals(p, time[:-1][k], time[1:][k], distance[k, p], distance[k + 1, p])
        doubted = (bounded.floor(trajectory, bounds) < required[p]).reshape(count - 1, -1)
        rows, pairs = np.nonzero(np.pad(doubted, ((0, 1), (0, 0))) | np.pad(doubted, ((1, 0), (0, 0))))
        distance[rows, pairs] = collisions.exact(poses, rows, pairs, -np.inf)[0] - MEASURED
    nearest = np.argmin(distance - required, axis=0)
    best_time, best = time[nearest], distance[nearest, np.arange(len(required))]
    open_ones = _Intervals(p, time[:-1][k], time[1:][k], distance[k, p], distance[k + 1, p])
    least = np.full(len(required), np.inf)
    for _ in range(_CUTS + 1):
        floor = open_ones.floor(trajectory, bounds)
        # Pairs too close at an instant are already decided; too many intervals count as not certified.
        unsure = (floor < required[open_ones.pair]) & (best >= required)[open_ones.pair]
        if unsure.sum() > _MANY:
            unsure[:] = False
        np.minimum.at(least, open_ones.pair[~unsure], floor[~unsure])
        if not unsure.any():
            break
        open_ones, instants, measured = open_ones.cut(unsure, trajectory, collisions)
        lowest = np.full(len(required), np.inf)
        np.minimum.at(lowest, open_ones.pair, np.minimum(open_ones.first, open_ones.last))
        for pair in np.flatnonzero(lowest < best):
            mine = open_ones.pair[::_PARTS] == pair
            best[pair] = lowest[pair]
            best_time[pair] = instants[mine].ravel()[int(np.argmin(measured[mine]))]
    else:
        np.minimum.at(least, open_ones.pair, open_ones.floor(trajectory, bounds))
    entries = [
        Clearance(*pair.names, float(best_time[p]), float(best[p] + MEASURED), float(least[p]), float(required[p]))
        for p, pair in enumerate(collisions.pairs)
    ]
    return ClearanceReport(tuple(sorted(entries, key=lambda entry: entry.margin)))


@dataclass(frozen=True, eq=False)
class _Intervals:
    """Intervals of time for single pairs: pair, start and end [s], distances there [m]; all of shape (M,)."""

    pair: IntArray
    start: Array
    end: Array
    first: Array
    last: Array

    def floor(self, trajectory: Trajectory, bounds: SpeedBounds) -> Array:
        """Returns lower bounds of the distances inside the intervals, shape (M,) [m]."""
        starts, back = np.unique(self.start, return_inverse=True)
        ends = np.empty_like(starts)
        ends[back] = self.end
        h = (ends - starts)[:, None]
        (_, v0, a0), (_, v1, a1) = trajectory.evaluate(starts), trajectory.evaluate(ends)
        v, a = np.maximum(np.abs(v0), np.abs(v1)), np.maximum(np.abs(a0), np.abs(a1))
        largest = trajectory.bounds(2)
        if trajectory.smoothness >= 2:
            jerk = trajectory.bounds(3)
            v, a = v + np.minimum(largest * h / 2, jerk * h**2 / 8), np.minimum(a + jerk * h / 2, largest)
        else:
            v, a = v + largest * h / 2, np.broadcast_to(largest, a.shape)
        travel, bend = (x[back, self.pair] for x in bounds.rates(v, a))
        h = self.end - self.start
        travel, bend = travel * h / 2, bend * h**2 / 8
        nearest = np.maximum(np.minimum(self.first, self.last), 0.0)
        chord = np.where(nearest > 0, np.sqrt(np.maximum(nearest**2 - travel**2, 0.0)) - bend, -np.inf)
        return np.asarray(np.maximum((self.first + self.last) / 2 - travel, chord))

    def cut(self, which: Array, trajectory: Trajectory, collisions: Collisions) -> tuple[_Intervals, Array, Array]:
        """Subdivides some of them; returns the parts, new instants and distances, shapes (K, parts − 1)."""
        pair, start, end = self.pair[which], self.start[which], self.end[which]
        knots = start[:, None] + (end - start)[:, None] * np.arange(_PARTS + 1) / _PARTS
        instants, back = np.unique(knots[:, 1:-1], return_inverse=True)
        poses = collisions.kinematics.evaluate(trajectory.evaluate(instants)[0])
        inner = collisions.exact(poses, back.ravel(), np.repeat(pair, _PARTS - 1), -np.inf)[0] - MEASURED
        inner = inner.reshape(-1, _PARTS - 1)
        whole = np.column_stack([self.first[which], inner, self.last[which]])
        parts = _Intervals(
            np.repeat(pair, _PARTS), knots[:, :-1].ravel(), knots[:, 1:].ravel(), whole[:, :-1].ravel(), whole[:, 1:].ravel()
        )
        return parts, knots[:, 1:-1], inner
