"""Does a motion keep its distance from everything, also between the instants that are looked at?

The distance of two bodies is the smallest of the distances of their points. Seen from one body, a point of the other moves
with a speed of at most ``L = Σ|v_j| r_j`` and an acceleration of at most ``A = Σ|a_j| r_j + ΣΣ|v_j||v_k| r_k``, where r are
lever arms that no configuration exceeds. Over a time h it moves on a chord of length ``L h`` at most, and at most
``A h²/8`` beside it. So between instants with distances d₀ and d₁, the smaller being d, the distance is at least
``(d₀ + d₁ − L h)/2``, and at least ``√(d² − (L h/2)²) − A h²/8``: a certificate, not an estimate. Where that is not enough,
the interval is cut.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..errors import LimitError
from ..model.inertia import Array
from .base import Trajectory
from .collisions import Collisions
from .speeds import MEASURED, SpeedBounds

#: Instants between which distances are first bounded [s].
STEP = 0.02
#: Into how many parts an interval is cut, and how often.
_PARTS, _CUTS = 5, 6


@dataclass(frozen=True)
class Clearance:
    """The closest call of one pair.

    Attributes:
        first: Name of the first thing, a link.
        second: Name of the second.
        time: When [s].
        distance: Then [m]; negative when they overlap.
        least: What it cannot fall below over the whole motion, between instants too [m].
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
        """Room left at the worst; negative when the distance is not kept [m]."""
        return self.least - self.required


@dataclass(frozen=True)
class ClearanceReport:
    """Closest calls of a motion, the worst pair first."""

    pairs: tuple[Clearance, ...]

    @property
    def feasible(self) -> bool:
        """True if every distance is kept."""
        return all(pair.margin >= 0 for pair in self.pairs)

    @property
    def worst(self) -> Clearance | None:
        """The pair with the least room, None if nothing can collide."""
        return self.pairs[0] if self.pairs else None

    def require(self) -> None:
        """Does nothing if every distance is kept.

        Raises:
            LimitError: One is not; names the pair, the time and the distance.
        """
        worst = self.worst
        if worst is None or worst.margin >= 0:
            return
        raise LimitError(
            "the motion collides" if worst.distance < 0 else "the motion comes too close",
            where=f"{worst.first} and {worst.second} at t = {worst.time:.4g} s", got=f"{worst.distance:.4g} m",
            expected=f"at least {worst.required:.4g} m", remedy="design it with these collisions, or make it smaller",
        )  # fmt: skip

    def summary(self, limit: int = 3) -> str:
        """The closest calls, one line a pair.

        Args:
            limit: How many pairs.

        Returns:
            Text.
        """
        return "\n".join(
            f"{pair.first} and {pair.second}: {1000 * pair.distance:.4g} mm at {pair.time:.3f} s "
            f"(never below {1000 * pair.least:.4g}, allowed {1000 * pair.required:.4g})"
            for pair in self.pairs[:limit]
        )


def check_clearance(trajectory: Trajectory, collisions: Collisions) -> ClearanceReport:
    """Compares all distances along a motion with what is required, between instants too.

    Args:
        trajectory: The motion, with its ramps.
        collisions: What must keep its distance.

    Returns:
        The closest calls.

    Raises:
        LimitError: The joints differ, or the motion is not finite.
    """
    if trajectory.joints != collisions.robot.joints:
        raise LimitError("motion and robot have different joints", got=trajectory.joints, expected=collisions.robot.joints)
    if not collisions.pairs:
        return ClearanceReport(())
    count = max(2, int(np.ceil(trajectory.duration / STEP)) + 1)
    time = np.linspace(0.0, trajectory.duration, count)
    q = trajectory.evaluate(time)[0]
    if not np.isfinite(q).all():
        raise LimitError("the trajectory is not finite", got="NaN or inf")
    stroke = np.abs(q).max(axis=0) + trajectory.bounds(1) * time[1]
    bounds = SpeedBounds.of(collisions, stroke)
    required = collisions.required
    distance = collisions.distances(q) - MEASURED
    nearest = np.argmin(distance - required, axis=0)
    best_time, best = time[nearest], distance[nearest, np.arange(len(required))]
    starts, ends, d0, d1 = time[:-1], time[1:], distance[:-1], distance[1:]
    least = np.full(len(required), np.inf)
    for cut in range(_CUTS + 1):
        floor = _floor(trajectory, bounds, starts, ends, d0, d1)
        unsure = (floor < required) & (best >= required)  # a pair that is too close at an instant is judged already
        again = unsure.any(axis=1) if cut < _CUTS else np.zeros(len(starts), dtype=bool)
        least = np.minimum(least, np.where(unsure & again[:, None], np.inf, floor).min(axis=0, initial=np.inf))
        if not again.any():
            break
        cuts = starts[again, None] + (ends - starts)[again, None] * np.arange(_PARTS + 1) / _PARTS
        inner = collisions.distances(trajectory.evaluate(cuts[:, 1:-1].ravel())[0]) - MEASURED
        inner = inner.reshape(len(cuts), _PARTS - 1, -1)
        whole = np.concatenate([d0[again, None], inner, d1[again, None]], axis=1)
        lower = inner.min(axis=(0, 1))
        where = inner.reshape(-1, len(required)).argmin(axis=0)
        best_time = np.where(lower < best, cuts[:, 1:-1].ravel()[where], best_time)
        best = np.minimum(best, lower)
        starts, ends = cuts[:, :-1].ravel(), cuts[:, 1:].ravel()
        d0, d1 = whole[:, :-1].reshape(-1, len(required)), whole[:, 1:].reshape(-1, len(required))
    entries = [
        Clearance(*pair.names, float(best_time[p]), float(best[p] + MEASURED), float(least[p]), float(required[p]))
        for p, pair in enumerate(collisions.pairs)
    ]
    return ClearanceReport(tuple(sorted(entries, key=lambda entry: entry.margin)))


def _floor(trajectory: Trajectory, bounds: SpeedBounds, starts: Array, ends: Array, d0: Array, d1: Array) -> Array:
    """What distances cannot fall below inside intervals, shape (K, P) [m]."""
    h = (ends - starts)[:, None]
    (_, v0, a0), (_, v1, a1) = trajectory.evaluate(starts), trajectory.evaluate(ends)
    v, a = np.maximum(np.abs(v0), np.abs(v1)), np.maximum(np.abs(a0), np.abs(a1))
    largest = trajectory.bounds(2)
    if trajectory.smoothness >= 2:
        jerk = trajectory.bounds(3)
        v, a = v + np.minimum(largest * h / 2, jerk * h**2 / 8), np.minimum(a + jerk * h / 2, largest)
    else:
        v, a = v + largest * h / 2, np.broadcast_to(largest, a.shape)
    speed, acceleration = bounds.rates(v, a)
    nearest = np.maximum(np.minimum(d0, d1), 0.0)
    chord = np.sqrt(np.maximum(nearest**2 - (speed * h / 2) ** 2, 0.0)) - acceleration * h**2 / 8
    return np.asarray(np.maximum((d0 + d1 - speed * h) / 2, np.where(nearest > 0, chord, -np.inf)))
