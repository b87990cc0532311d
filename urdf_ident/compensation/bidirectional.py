"""Friction from runs at constant speed, the same path both ways (Liu 2023, §2; docs/theory.md §9).

At constant speed the links' torque depends on position only. Half the difference of the torques in the two directions is
therefore the *odd* part of friction; half the sum is gravity plus the *even* part, the asymmetry. Gravity on one joint with
the others at rest is ``A sin q + B cos q``, so a constant along the path is not gravity. The curve
``friction(±v) = ±odd(v) + even(v)`` is then fitted by Liu 2023's law of eight parameters. They are strongly correlated:
assess the curve, not single coefficients.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ..errors import LogError
from ..grouping import runs
from ..linalg import Array, rms
from ..model.robot import Robot
from ..samples import Segment
from ..statistics.least_squares import ols
from .friction_curve import FrictionPoints

#: Relative variation within which a speed counts as constant.
_STEADY = 0.05
#: Largest RMS acceleration at constant speed, relative to the peak acceleration of the run.
_HELD = 0.2
#: Relative difference within which runs have the same speed.
_SAME = 0.08
#: Other joints are at rest below this fraction of the moving joint's speed [1], or below this speed [rad/s or m/s].
_STILL, _REST = 0.05, 2e-3
#: Position bins in which the torques of both directions are compared.
_BINS = 24
#: Path length below which gravity cannot be separated from a constant [rad].
_LEAST_TRAVEL = 0.3


@dataclass(frozen=True, eq=False)
class _Run:
    """One stretch at constant speed: position, torque, signed speed."""

    q: Array
    tau: Array
    speed: float


def friction_points(segments: Sequence[Segment], robot: Robot, joint: str) -> FrictionPoints:
    """Computes the odd and even parts of one joint's friction."""
    j = robot.index(joint)
    runs = [run for segment in segments for run in _constant_speed_runs(segment, j)]
    where = f"joint '{joint}'"
    if not runs:
        raise LogError(
            "no runs at constant speed with the other joints still",
            where=where,
            remedy="drive the bidirectional experiment (`design` with excitation.family: sweeps)",
        )
    levels: list[list[_Run]] = []  # runs of one speed, slowest first
    for run in sorted(runs, key=lambda run: abs(run.speed)):
        if levels and abs(run.speed) <= abs(levels[-1][0].speed) * (1 + _SAME):
            levels[-1].append(run)
        else:
            levels.append([run])
    both = [level for level in levels if len({run.speed > 0 for run in level}) == 2]
    if not both:
        direction = "forwards" if runs[0].speed > 0 else "backwards"
        raise LogError(
            "no reversals: no speed was driven both ways",
            where=where,
            got=f"{len(runs)} run(s), {direction} only"
            if len({run.speed > 0 for run in runs}) == 1
            else f"{len(runs)} run(s) at {len(levels)} different speeds",
            expected="every speed forwards and backwards over the same path",
            remedy="drive the same path back",
        )
    mean = [float(np.mean([abs(run.speed) for run in level])) for level in both]
    rows = [(v, *halves) for v, level in zip(mean, both, strict=True) if (halves := _both_directions(level)) is not None]
    if not rows:
        raise LogError("the paths there and back do not overlap", where=where, remedy="drive the same path back")
    speed = np.array([row[0] for row in rows])
    odd, scatter = np.array([row[1] for row in rows]), np.array([row[2] for row in rows])
    even, gravity, notes = _even_part([row[3] for row in rows], [row[4] for row in rows], bool(robot.prismatic[j]))
    return FrictionPoints(joint, speed, odd, even, scatter, gravity, notes)


def _constant_speed_runs(segment: Segment, j: int) -> list[_Run]:
    tau = segment.total[:, j]
    v = segment.v[:, j]
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
        if (last - first) / segment.rate >= 0.1 and last - first >= 10 and held:
            steady_runs.append(_Run(segment.q[span, j], tau[span], float(np.mean(v[span]))))
    return steady_runs


def _both_directions(level: Sequence[_Run]) -> tuple[float, float, Array, Array] | None:
    """Odd part and its scatter, and positions and half the sum of torques along the common path."""
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
    if full.sum() < 3:
        return None
    half_difference, half_sum = (means[0] - means[1])[full] / 2, (means[0] + means[1])[full] / 2
    scatter = float(np.std(half_difference, ddof=1) / np.sqrt(full.sum()))
    middle = (place[:-1] + place[1:]) / 2
    return float(half_difference.mean()), scatter, middle[full], half_sum


def _even_part(
    places: Sequence[Array], halves: Sequence[Array], prismatic: bool
) -> tuple[Array, tuple[float, float], tuple[str, ...]]:
    """Part of half the sum that is not gravity, one constant per speed; gravity coefficients and notes."""
    q, half = np.concatenate(places), np.concatenate(halves)
    level = np.concatenate([np.full(len(place), k) for k, place in enumerate(places)])
    constants = (level[:, None] == np.arange(len(places))).astype(float)
    if prismatic:  # gravity on a prismatic joint is constant: only differences between speeds are friction
        means = np.array([half_k.mean() for half_k in halves])
        note = "gravity of a prismatic joint and a constant asymmetry look the same: taken as gravity"
        return means - means.mean(), (0.0, 0.0), (note,)
    if np.ptp(q) < _LEAST_TRAVEL or len(q) < len(places) + 3:
        note = f"a path of {np.ptp(q):.2g} rad is too short to tell asymmetry from gravity (0.3 rad): taken as symmetric"
        return np.zeros(len(places)), (0.0, 0.0), (note,)
    fit = ols(np.column_stack([np.sin(q), np.cos(q), constants]), half)
    return fit.estimate[2:].copy(), (float(fit.estimate[0]), float(fit.estimate[1])), ()
