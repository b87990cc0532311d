"""Detects logs that repeat one motion: such logs contain no new information about the errors of the model.

Model errors (in friction, elasticity) are the same in every repetition of a motion, and what the motion does not excite remains
unidentifiable. Repetitions must therefore be held out together, and count as one where errors are estimated from the scatter
between logs.

Two logs are compared by the second moments of their columns, ``G = RᵀR`` per row, friction included. Whitened by their mean,
the difference ``(G_a − G_b)/2`` has eigenvalues between −1 and 1, whatever the units and the choice of parameters; their root
mean square is the distance. One log may begin later than the other, or be an excerpt of it: the stretch that both share is
found from the columns' norms, block by block, and must be at least half of the shorter log. It is compared in two halves, which
a reversed path exchanges, or in more parts if there are few columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from ..grouping import grouped
from ..linalg import Array, BoolArray, IntArray, positive, rms, whitening
from ..samples import Segment, typical_reversals
from .statistic import Statistic, StatisticSet

#: Logs closer than this repeat one motion; on simulated arms repetitions with noise or a payload and excerpts are
#: closer, other motions, a reversed path and the same path at 80 % of the speed are not.
SAME = 0.32
#: Fraction of the shorter log that both must share.
_SHARED = 0.5
#: Minimum number of parts in which the shared stretch is compared: a reversed path has its parts in another order.
_PARTS = 2
#: Few independent columns (those of a slider are acceleration, a constant and friction) have similar second moments in all
#: motions. Minimum number of moments times parts, as long as a part has this many blocks.
_MOMENTS, _BLOCKS = 56, 3
#: Eigenvalues of the mean below this fraction of the largest are noise.
_CUT = 1e-3
#: Column norms that differ by more than this (on the scale of the distance) belong to different motions.
_FAR = 0.25
#: About this many columns are compared first; the others are not if these differ by more than this multiple of :data:`_FAR`.
_FIRST, _CLEARLY = 16, 1.3
#: Maximum number of logs that are compared with one log at a time.
_AT_ONCE = 32


def motions(statistics: StatisticSet) -> tuple[tuple[str, ...], ...]:
    """Groups the logs by motion.

    Returns:
        Names of the logs of each motion, in order of appearance; one each if no motion is repeated.
    """
    logs, known = statistics.logs, None if statistics.repetitions is None else statistics.repetitions.motions
    if len(logs) < 2:
        return tuple((log,) for log in logs)
    if known is not None and set(logs) <= {log for names in known for log in names}:
        left = (tuple(log for log in names if log in logs) for names in known)
        return tuple(names for names in left if names)
    logs_in_time = list(_Log.all_of(statistics).values())
    joined: list[list[int]] = []  # the logs of each motion so far
    for b in range(len(logs_in_time)):
        first = [members[0] for members in joined]
        near = _near(logs_in_time, first, b)
        rest = _near(logs_in_time, [k for members in joined if members[0] not in near for k in members[1:]], b)
        same = [members for members in joined if not near.union(rest).isdisjoint(members)]
        joined = [members for members in joined if members not in same] + [
            sorted([*(k for members in same for k in members), b])
        ]
    return tuple(tuple(logs[k] for k in members) for members in sorted(joined))


def _near(logs: Sequence[_Log], others: Sequence[int], b: int) -> set[int]:
    """Which of the other logs repeat the motion of log b."""
    near = set[int]()
    for alike in grouped((len(logs[k].edges), k) for k in others).values():
        for begin in range(0, len(alike), _AT_ONCE):
            batch = alike[begin : begin + _AT_ONCE]
            which, apart, *_ = _unlike([logs[k].lengths for k in batch], logs[b].lengths)
            near.update(batch[k] for k in np.unique(which[apart <= _CLEARLY * _FAR]))
    return {a for a in near if _distance(logs[a], logs[b]) < SAME}


def velocities(motion: Sequence[Segment], moves: Sequence[Sequence[str]]) -> list[Array]:
    """Returns the velocities in all motions, without repetitions.

    Returns:
        One array per segment, shape (N_k, n) [rad/s or m/s].
    """
    first = {logs[0] for logs in moves}
    return [part.v for part in motion if part.log in first]


def mean_reversals(statistics: StatisticSet, motion: Sequence[Segment], prismatic: BoolArray) -> float:
    """Returns the mean number of reversals of the moving joints, repetitions of a motion counted once.

    Args:
        statistics: Those of the motion, which tell which logs repeat another.
        motion: All segments.
        prismatic: Which joints are prismatic, shape (n,).
    """
    return typical_reversals(velocities(motion, motions(statistics)), prismatic)


def distances(statistics: StatisticSet, others: StatisticSet) -> dict[str, dict[str, float]]:
    """Returns the distance, 0 to 1, of each log of a set to each log of another one, of the same columns."""
    known = _Log.all_of(others)
    return {
        log: {name: _distance(log_in_time, other) for name, other in known.items()}
        for log, log_in_time in _Log.all_of(statistics).items()
    }


def motions_in_common(statistics: StatisticSet, others: StatisticSet) -> dict[str, str]:
    """Returns the logs whose motion is also in other logs.

    Args:
        statistics: Factors of the logs in question.
        others: Factors of the other logs, of the same columns.

    Returns:
        Log → the other log whose motion it repeats.
    """
    apart = distances(statistics, others)
    nearest = {log: min(to_others, key=lambda name: to_others[name]) for log, to_others in apart.items() if to_others}
    return {log: name for log, name in nearest.items() if apart[log][name] < SAME}


def spans(statistics: StatisticSet, logs: Sequence[str]) -> dict[str, tuple[float, float]]:
    """Places the logs of one motion on a common axis of its rows: one may begin later than the other, or be an excerpt of it.

    Args:
        logs: Names of logs of one motion.

    Returns:
        By log, where in the motion it begins and ends, fractions of the whole.
    """
    if len(logs) == 1:
        return {logs[0]: (0.0, 1.0)}
    if statistics.repetitions is not None and set(logs) <= statistics.repetitions.spans.keys():
        return {log: statistics.repetitions.spans[log] for log in logs}
    known = {name: _Log._of(statistics, statistics.of_log.get(name, {})).lengths for name in logs}
    longest, *others = sorted(logs, key=lambda name: -known[name].rows)
    begins = {longest: 0.0}
    for name in others:
        least, begin = np.inf, 0.0
        for other, at in begins.items():
            _, unlike, edges, own_edges = _unlike([known[other]], known[name])
            best = int(np.argmin(unlike))
            if unlike[best] < least:
                shift = float(edges[best, 0]) * known[other].rows - float(own_edges[best, 0]) * known[name].rows
                least, begin = float(unlike[best]), at + shift
            if least <= _FAR:  # usually at the longest log, so that repetitions are compared once each
                break
        begins[name] = begin
    first = min(begins.values())
    whole = max(begin + known[name].rows for name, begin in begins.items()) - first
    return {name: ((begin - first) / whole, (begin - first + known[name].rows) / whole) for name, begin in begins.items()}


def periodic(statistics: StatisticSet, parts: int) -> bool:
    """Returns whether some log repeats its own motion, so that its parts in time are no data on other motion.

    Parts of a period or more have the same second moments, wherever in the period they begin; averaged periods always count.
    Of logs that repeat one motion, the longest tells.

    Args:
        parts: Number of parts into which each log is divided.

    Returns:
        True if every part of some log is similar to another part of it.
    """
    if any(entry.repeats > 1 for entry in statistics.entries):
        return True
    known = statistics.repetitions
    if (
        known is not None
        and known.periodic is not None
        and {log for names in known.motions for log in names} == set(statistics.logs)
    ):
        return known.periodic
    logs = _Log.all_of(statistics)
    for names in motions(statistics) if parts > 1 else ():
        log = max((logs[name] for name in names), key=lambda log: log.rows)
        groups, moments = [g for g, factors in enumerate(log.factors) if factors], list[list[Array]]()
        for begin, end in pairwise(np.linspace(0, 1, parts + 1)):  # fractions of a group's own rows: rests do not count
            ends = [np.interp([begin, end], log.shares[g], log.edges).tolist() for g in groups]
            moments.append([log.products(g, *own) / ((end - begin) * log.rows) for g, own in zip(groups, ends, strict=True)])
        apart = [[[_whitened(x, y) for x, y in zip(a, b, strict=True)] for b in moments] for a in moments]
        alike = (np.sqrt(np.mean(apart, axis=2)) < SAME) & ~np.eye(parts, dtype=bool)
        if alike.any(axis=1).all():
            return True
    return False


@dataclass(frozen=True, eq=False)
class _Log:
    """One log's factors in order of time.

    Attributes:
        factors: Per row group, the factors of its blocks, only the columns of :attr:`.Statistic.factor`.
        expansions: Per row group, E with ``all columns = those @ E``; None if they are all columns.
        edges: The fraction of the rows before each block, and 1 at the end, shape (blocks + 1,).
        shares: Per group, the fraction of its own rows before each block, and 1 at the end, shape (blocks + 1,).
        rows: Number of rows. A joint at rest has few, which count less: in every block, those of the group with the most.
        squares: Cumulative mean squares of the columns of all groups, up to each edge, shape (blocks + 1, K).
    """

    factors: tuple[tuple[Array, ...], ...]
    expansions: tuple[Array | None, ...]
    edges: Array
    shares: tuple[Array, ...]
    rows: float
    squares: Array

    @classmethod
    def all_of(cls, statistics: StatisticSet) -> dict[str, _Log]:
        """Creates the logs of a set, by name."""
        return {log: cls._of(statistics, statistics.of_log.get(log, {})) for log in statistics.logs}

    @classmethod
    def _of(cls, statistics: StatisticSet, entries: Mapping[str, Sequence[Statistic]]) -> _Log:
        groups = [entries.get(layout.group, ()) for layout in statistics.layouts]
        counts = [[entry.rows * entry.repeats for entry in of_group] for of_group in groups]
        before = np.cumsum([0.0, *np.array([of_group for of_group in counts if of_group]).max(axis=0, initial=0.0)])
        whole = max(float(before[-1]), 1.0)
        factors, expansions, shares, squares = [], [], [], []
        for layout, of_group, rows in zip(statistics.layouts, groups, counts, strict=True):
            expansion = of_group[0].expansion if of_group else None
            begin, count_of = (len(layout.instruments), len(layout.columns)) if expansion is None else (0, len(expansion))
            factors.append(tuple(entry.factor[:, begin : begin + count_of] for entry in of_group))
            expansions.append(expansion)
            shares.append(np.cumsum([0.0, *rows]) / max(float(sum(rows)), 1.0))
            sums = np.zeros((len(before), len(layout.columns)))  # of the squares of all columns, of every block
            if of_group:
                all_rows = np.vstack(factors[-1])
                ends = np.cumsum([len(R) for R in factors[-1]])
                squared = (all_rows if expansion is None else all_rows @ expansion) ** 2
                sums[1:] = [squared[end - len(R) : end].sum(axis=0) for R, end in zip(factors[-1], ends, strict=True)]
            squares.append(np.cumsum(sums, axis=0) / whole)
        return cls(tuple(factors), tuple(expansions), before / whole, tuple(shares), whole, np.hstack(squares))

    @cached_property
    def lengths(self) -> _Log:
        """The norms of some of its columns, without the factors."""
        few = slice(None, None, max(1, self.squares.shape[1] // _FIRST))
        return _Log((), (), self.edges, (), self.rows, np.ascontiguousarray(self.squares[:, few]))

    def moments(self, group: int, begin: float, end: float) -> Array:
        """Second moments per row of one group's columns over a part of the log, ``begin`` and ``end`` from 0 to 1."""
        return self.products(group, begin, end) / ((end - begin) * self.rows)

    def products(self, group: int, begin: float, end: float) -> Array:
        """Sums over a part of the log of the products of one group's columns."""
        inside = np.minimum(self.edges[1:], end) - np.maximum(self.edges[:-1], begin)
        shares = np.clip(inside / positive(np.diff(self.edges)), 0, 1)
        blocks = [np.sqrt(share) * R for share, R in zip(shares, self.factors[group], strict=True) if share > 0]
        stacked = np.vstack([np.zeros((1, self.factors[group][0].shape[1])), *blocks])
        expansion = self.expansions[group]
        stacked = stacked if expansion is None else stacked @ expansion
        return np.asarray(stacked.T @ stacked)


def _distance(a: _Log, b: _Log) -> float:
    _, apart, edges_a, edges_b = _unlike([a], b)
    best = int(np.argmin(apart))
    if apart[best] > _FAR:
        return 1.0
    groups = [g for g, factors in enumerate(a.factors) if factors and b.factors[g]]
    (begin_a, end_a), (begin_b, end_b) = ((float(e[best, 0]), float(e[best, -1])) for e in (edges_a, edges_b))
    both = (a.moments(g, begin_a, end_a) + b.moments(g, begin_b, end_b) for g in groups)
    seen = float(np.mean([whitening(moments, _CUT).shape[1] for moments in both]))
    blocks = min(len(a.edges) * (end_a - begin_a), len(b.edges) * (end_b - begin_b))
    wanted = np.ceil(_MOMENTS / max(seen * (seen + 1) / 2, 1.0))
    parts = int(np.clip(wanted, _PARTS, max(_PARTS, blocks // _BLOCKS)))
    cuts = (pairwise(np.linspace(*ends, parts + 1)) for ends in ((begin_a, end_a), (begin_b, end_b)))
    squares = [_whitened(a.moments(g, *x), b.moments(g, *y)) for x, y in zip(*cuts, strict=True) for g in groups]
    return float(np.sqrt(np.mean(squares)))


def _unlike(logs: Sequence[_Log], b: _Log) -> tuple[IntArray, Array, Array, Array]:
    """Compares the column norms of logs with equal numbers of blocks with those of log b, over the stretches that two logs may
    share: b begins at (or half-way through) a block of the other log, or the other log begins at one of b.

    Returns:
        For every stretch the index of the log and the difference, shape (stretches,) each; and the edges of its
        :data:`_PARTS` parts, from 0 to 1 in that log and in b, shape (stretches, parts + 1) each.
    """
    edges, squares = np.array([log.edges for log in logs]), np.array([log.squares for log in logs])
    whole, whole_b = np.array([[log.rows] for log in logs]), b.rows
    late = np.repeat(whole_b * _halved(b.edges)[None, 1:-1], len(logs), axis=0)
    shifts = np.hstack([whole * _halved(edges)[:, :-1], -late])
    begin, end = np.maximum(0.0, shifts), np.minimum(whole, shifts + whole_b)
    long = end - begin >= _SHARED * np.minimum(whole, whole_b)
    which, begin, end, shifts = np.nonzero(long)[0], begin[long, None], end[long, None], shifts[long, None]
    places = begin + (end - begin) * np.linspace(0, 1, _PARTS + 1)
    in_each, in_b = places / whole[which], (places - shifts) / whole_b
    lengths = []
    alone = b.edges[None], b.squares[None], np.zeros_like(which), in_b
    for own, grown, place, at in ((edges, squares, which, in_each), alone):
        row, places = place[:, None], at[..., None]  # linear interpolation, each place in the table of its log
        begin_at = (places >= own[place][:, None, 1:-1]).sum(axis=2)
        end_at = np.minimum(begin_at + 1, own.shape[1] - 1)
        low, first = own[row, begin_at], grown[row, begin_at]
        part = np.clip((at - low) / positive(own[row, end_at] - low), 0, 1)
        between = first + part[:, :, None] * (grown[row, end_at] - first)
        lengths.append(np.diff(between, axis=1) / np.diff(at, axis=1)[:, :, None])
    return which, rms((lengths[0] - lengths[1]) / positive(lengths[0] + lengths[1]), (1, 2)), in_each, in_b


def _halved(edges: Array) -> Array:
    return np.sort(np.concatenate([edges, (edges[..., 1:] + edges[..., :-1]) / 2], axis=-1), axis=-1)


def _whitened(x: Array, y: Array) -> float:
    """Mean square of the eigenvalues of half the difference, whitened by the mean."""
    root = whitening((x + y) / 2, _CUT)
    return float(np.mean(np.linalg.eigvalsh(root.T @ ((x - y) / 2) @ root) ** 2)) if root.shape[1] else 0.0
