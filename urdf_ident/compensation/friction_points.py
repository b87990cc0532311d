"""Friction of one joint at some speeds, from runs at constant speed, the same path both ways (Liu 2023, §2; docs/theory.md §9).

At constant speed the links' torque depends on position only. Half the difference of the torques in the two directions is
therefore the *odd* part of friction; half the sum is gravity plus the *even* part, the asymmetry. Gravity on one joint with
the others at rest is ``A sin q + B cos q``, so a constant along the path is not gravity.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from ..errors import LogError
from ..grouping import runs
from ..linalg import Array, rms
from ..model.robot import Robot
from ..samples import ReadOnly, Segment
from ..statistics.least_squares import ols

#: Relative variation within which a speed counts as constant.
_STEADY = 0.05
#: Largest RMS acceleration at constant speed, relative to the peak acceleration of the run.
_HELD = 0.2
#: A run is at least so long [s], and so many samples.
_SHORTEST, _FEWEST = 0.1, 10
#: Relative difference within which runs have the same speed.
_SAME = 0.08
#: Other joints are at rest below this fraction of the moving joint's speed [1], or below this speed [rad/s or m/s].
_STILL, _REST = 0.05, 2e-3
#: Position bins in which the torques of both directions are compared, and the fewest that both must have.
_BINS, _FEWEST_BINS = 24, 3
#: Path length below which gravity cannot be separated from a constant [rad].
_LEAST_TRAVEL = 0.3


@dataclass(frozen=True, eq=False)
class FrictionPoints(ReadOnly):
    """Friction of one joint at some speeds, from runs in both directions.

    Attributes:
        speed: Shape (K,), positive and increasing [rad/s or m/s].
        odd: Odd part, shape (K,) [N·m or N].
        even: Even part, shape (K,) [N·m or N].
        scatter: Standard deviation of the mean of half the difference along the path, shape (K,) [N·m or N].
        gravity: A and B of ``A sin q + B cos q`` [N·m]; zero for prismatic joints.
        notes: Notes on parts that could not be separated.
    """

    joint: str
    speed: Array
    odd: Array
    even: Array
    scatter: Array
    gravity: tuple[float, float]
    notes: tuple[str, ...] = ()

    def centred(self) -> FrictionPoints:
        """The same points without the mean of their even part, for use where a constant is estimated separately."""
        return replace(self, even=self.even - self.even.mean())

    @property
    def velocity(self) -> Array:
        """Both directions, shape (2 K,), increasing [rad/s or m/s]."""
        return np.concatenate([-self.speed[::-1], self.speed])

    @property
    def torque(self) -> Array:
        """Friction at :attr:`velocity`, shape (2 K,) [N·m or N]."""
        return np.concatenate([(self.even - self.odd)[::-1], self.even + self.odd])


@dataclass(frozen=True, eq=False)
class _Run:
    """One stretch at constant speed: position, torque, signed speed."""

    q: Array
    tau: Array
    speed: float


def friction_points(segments: Sequence[Segment], robot: Robot, joint: str) -> FrictionPoints:
    """Computes the odd and even parts of one joint's friction from runs at constant speed.

    Raises:
        LogError: There are no runs at constant speed, or none of one speed over the same path in both directions.
    """
    j = robot.index(joint)
    driven = [run for segment in segments for run in constant_speed_runs(segment, j)]
    where = f"joint '{joint}'"
    if not driven:
        raise LogError(
            "no runs at constant speed with the other joints still",
            where=where,
            remedy="drive the bidirectional experiment (`design` with excitation.family: sweeps)",
        )
    levels: list[list[_Run]] = []  # runs of one speed, slowest first
    for run in sorted(driven, key=lambda run: abs(run.speed)):
        if levels and abs(run.speed) <= abs(levels[-1][0].speed) * (1 + _SAME):
            levels[-1].append(run)
        else:
            levels.append([run])
    both = [level for level in levels if len({run.speed > 0 for run in level}) == 2]
    if not both:
        direction = "forwards" if driven[0].speed > 0 else "backwards"
        raise LogError(
            "no reversals: no speed was driven both ways",
            where=where,
            got=f"{len(driven)} run(s), {direction} only"
            if len({run.speed > 0 for run in driven}) == 1
            else f"{len(driven)} run(s) at {len(levels)} different speeds",
            expected="every speed forwards and backwards over the same path",
            remedy="drive the same path back",
        )
    pairs = [(float(np.mean([abs(run.speed) for run in level])), _both_directions(level)) for level in both]
    rows = [(v, *compared) for v, compared in pairs if compared is not None]
    if not rows:
        raise LogError("the paths there and back do not overlap", where=where, remedy="drive the same path back")
    speed, odd, scatter, places, halves = zip(*rows, strict=True)
    even, gravity, notes = _even_part(places, halves, bool(robot.prismatic[j]))
    return FrictionPoints(joint, np.array(speed), np.array(odd), even, np.array(scatter), gravity, notes)


def constant_speed_runs(segment: Segment, j: int) -> list[_Run]:
    """Stretches of a segment in which joint j alone moves, at constant speed: of each stroke, the speed that it held longest.

    A tenth is cut from both ends. A stroke is left out if this is too short, or the peak of a move without constant speed.
    """
    v, tau = segment.v[:, j], segment.total[:, j]
    others = np.abs(np.delete(segment.v, j, axis=1)).max(axis=1, initial=0.0)
    moving = (np.abs(v) > _REST) & (others < np.maximum(_STILL * np.abs(v), _REST))
    state = np.where(moving, np.sign(v), 0.0)
    edges = np.flatnonzero(np.diff(state, prepend=0.0, append=0.0))
    steady_runs = []
    for begin, end in pairwise(edges.tolist()):
        if state[begin] == 0:
            continue
        speed = np.abs(v[begin:end])
        ordered = np.sort(speed)
        ends = np.searchsorted(ordered, ordered * (1 + _STEADY), side="right")
        fullest = int(np.argmax(ends - np.arange(len(ordered))))  # of overlapping bins: the speed held longest
        level = float(np.median(ordered[fullest : ends[fullest]]))
        steady = np.abs(speed - level) < _STEADY * level
        first, last = max(runs(steady), key=lambda pair: pair[1] - pair[0])
        trim = (last - first) // 10  # friction transients and filter edges
        first, last = begin + first + trim, begin + last - trim
        span = slice(first, last)
        # a speed held constant, and not just the peak of a short move
        held = rms(segment.a[span, j]) < _HELD * float(np.abs(segment.a[begin:end, j]).max())
        if (last - first) / segment.rate >= _SHORTEST and last - first >= _FEWEST and held:
            steady_runs.append(_Run(segment.q[span, j], tau[span], float(np.mean(v[span]))))
    return steady_runs


def _both_directions(level: Sequence[_Run]) -> tuple[float, float, Array, Array] | None:
    """Compares the torques of the runs of one speed in both directions, position by position along their common path.

    Returns:
        Odd part of friction and the standard deviation of its mean [N·m or N]; positions, shape (B,) [rad or m], and half the
        sum of the torques there, shape (B,) [N·m or N]. None if the paths have too little in common.
    """
    directions = []
    for sign in (1, -1):
        mine = [run for run in level if np.sign(run.speed) == sign]
        directions.append((np.concatenate([run.q for run in mine]), np.concatenate([run.tau for run in mine])))
    low, high = max(q.min() for q, _ in directions), min(q.max() for q, _ in directions)
    if not high > low:
        return None
    place = np.linspace(low, high, _BINS + 1)
    means, counts = [], []
    for q, tau in directions:
        which = np.digitize(q, place[1:-1])
        inside = (q >= low) & (q <= high)
        count = np.bincount(which[inside], minlength=_BINS)
        means.append(np.bincount(which[inside], tau[inside], minlength=_BINS) / np.maximum(count, 1))
        counts.append(count)
    full = (counts[0] > 0) & (counts[1] > 0)
    if full.sum() < _FEWEST_BINS:
        return None
    half_difference, half_sum = (means[0] - means[1])[full] / 2, (means[0] + means[1])[full] / 2
    scatter = float(np.std(half_difference, ddof=1) / np.sqrt(full.sum()))
    return float(half_difference.mean()), scatter, ((place[:-1] + place[1:]) / 2)[full], half_sum


def _even_part(
    places: Sequence[Array], halves: Sequence[Array], prismatic: bool
) -> tuple[Array, tuple[float, float], tuple[str, ...]]:
    """Separates gravity, ``A sin q + B cos q``, from half the sum of the torques in both directions.

    Args:
        places: Positions for each speed, shape (B,) each [rad or m].
        halves: Half the sum there, shape (B,) each [N·m or N].

    Returns:
        The rest, a constant for each speed, shape (K,) [N·m or N]; A and B [N·m]; and notes.
    """
    q, half = np.concatenate(places), np.concatenate(halves)
    level = np.repeat(np.arange(len(places)), [len(place) for place in places])  # the speed of each position
    constants = (level[:, None] == np.arange(len(places))).astype(float)
    if prismatic:  # gravity on a prismatic joint is constant: only differences between speeds are friction
        means = np.array([half_k.mean() for half_k in halves])
        note = "gravity of a prismatic joint and a constant asymmetry look the same: taken as gravity"
        return means - means.mean(), (0.0, 0.0), (note,)
    if np.ptp(q) < _LEAST_TRAVEL or len(q) < len(places) + 3:  # as many constants, A and B, and one to spare
        note = f"a path of {np.ptp(q):.2g} rad is too short to tell asymmetry from gravity ({_LEAST_TRAVEL:g} rad)"
        return np.zeros(len(places)), (0.0, 0.0), (f"{note}: taken as symmetric",)
    fit = ols(np.column_stack([np.sin(q), np.cos(q), constants]), half)
    return fit.estimate[2:].copy(), (float(fit.estimate[0]), float(fit.estimate[1])), ()
