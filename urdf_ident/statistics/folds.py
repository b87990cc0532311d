"""Cross-validation without a second pass over the data, and the choice among alternatives by their held-out errors.

A motion, or a part in time, is left out of the factors. Every alternative predicts each fold with parameters that were
estimated without it. Two alternatives are compared in pairs, fold by fold, because what makes a fold hard makes it hard for
both. The error of each row group counts relative to that of the simplest alternative, so that neither units nor sizes of
torques matter. The simplest alternative is taken unless another one beats it by more than the standard error of the difference
(the one-standard-error rule of Breiman, Friedman, Olshen and Stone, "Classification and Regression Trees", 1984), which
Student's t enlarges for few folds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from ..errors import EstimationError
from ..grouping import grouped
from ..linalg import Array, divisors, positive, rms
from ..samples import ReadOnly
from .motions import motions, periodic, spans
from .statistic import Repetitions, StatisticSet, is_measured

#: Folds in time for a single log: each long enough to be nearly independent, and enough of them to learn from the rest.
TIME_FOLDS = 5
#: Parts in time of a single log, or motion, that are compared with each other.
PARTS = 3
#: Maximum number of folds of whole motions: if there are more motions, neighbouring ones are held out together.
MOTION_FOLDS = 10
#: A column with less than this share of its squares outside a fold cannot be estimated without that fold.
LEAST_OUTSIDE = 1e-3
#: Called with the name of a fold; returns its factors and the parameters estimated from all other folds, shape (p,).
Trained = Callable[[str], tuple[StatisticSet, Array]]


def standard_error(gains: Array) -> Array:
    """Returns the standard error of a mean over folds, enlarged for few folds by the ratio of Student's t to the normal.

    A gain in a single fold is exactly one plain standard error above zero, however large it is, and is thus not accepted.

    Args:
        gains: Gain in each fold, shape (folds, ...).

    Returns:
        Shape (...); inf with a single fold.
    """
    if len(gains) < 2:
        return np.full(gains.shape[1:], np.inf)
    from scipy.special import ndtr, stdtrit

    apart, dof = gains - np.add.reduce(gains) / len(gains), len(gains) - 1
    return np.asarray(stdtrit(dof, ndtr(1.0)) * np.sqrt(np.add.reduce(apart**2) / (dof * len(gains))))


def worse(simplest: Array, other: Array) -> bool:
    """Returns whether an alternative predicts held-out data worse than another, beyond the error of the paired difference.

    Args:
        simplest, other: Error in each fold, shape (folds,) [any unit].
    """
    losses = other - simplest
    return bool(losses.mean() > standard_error(losses))


def relative_gains(simplest: Array, others: Array) -> Array:
    """Returns how much alternatives lower the squared held-out error of the simplest one.

    Args:
        simplest: Mean squared error of the simplest alternative, shape (folds, groups) [any unit per group].
        others: The same of others, shape (..., folds, groups).

    Returns:
        Fractions of the group's error over all folds, mean over the groups with an error, shape (..., folds).
    """
    scale = simplest.mean(axis=0)
    seen = scale > 0
    if not seen.any():
        return np.zeros(others.shape[:-1])
    return np.asarray(np.mean((simplest - others)[..., seen] / positive(scale[seen]), axis=-1))


def chosen(squares: Array, simplest: int = 0) -> int:
    """Returns the index of the alternative to use.

    Args:
        squares: Mean squared held-out errors, shape (alternatives, folds, groups).
        simplest: Index of the one that is used unless another beats it.

    Returns:
        The alternative with the largest mean gain over the simplest one if that exceeds its error, else the simplest one.
    """
    gains = relative_gains(squares[simplest], squares)
    best = int(np.argmax(gains.mean(axis=1)))
    return best if gains[best].mean() > standard_error(gains[best]) else simplest


@dataclass(frozen=True, eq=False)
class CrossValidation(ReadOnly):
    """Held-out error per fold and row group; ``cross_validation`` of identification.json.

    Attributes:
        folds: Held-out data: log names (``log (+1)`` with one repetition), or ``log[i/k]`` for parts in time.
        rmse: Shape (folds, groups) [unit of torque], on rows filtered as in the fit.
        effort_rms: Shape (folds, groups), RMS of the measured effort on the same rows.
        structure: Whether the friction laws were "given" or "chosen on all folds".
        exported: The same of parameters chosen as the exported ones without each fold; None if unknown.
    """

    folds: tuple[str, ...]
    groups: tuple[str, ...]
    rmse: Array
    effort_rms: Array
    structure: str = "given"
    exported: CrossValidation | None = None

    @property
    def group_rmse(self) -> Array:
        """Root mean square over folds, shape (groups,)."""
        return rms(self.rmse, 0)

    @property
    def group_effort(self) -> Array:
        """RMS of the measured effort over folds, shape (groups,) [unit of torque]."""
        return rms(self.effort_rms, 0)

    @property
    def mean_rmse(self) -> float:
        """Mean of :attr:`group_rmse` over row groups with a measured effort [unit of torque]."""
        return float(np.mean(self.group_rmse[[is_measured(group) for group in self.groups]]))

    @property
    def group_relative(self) -> dict[str, float]:
        """Held-out RMSE over RMS effort of each row group with a measured effort, a fraction."""
        shares = (self.group_rmse / divisors(self.group_effort)).tolist()
        return {group: share for group, share in zip(self.groups, shares, strict=True) if is_measured(group)}

    @property
    def relative(self) -> float:
        """Mean of :attr:`group_relative`, a fraction."""
        return float(np.mean(list(self.group_relative.values())))

    def as_dict(self) -> dict[str, Any]:
        return {**vars(self), "group_rmse": self.group_rmse, "mean_rmse": self.mean_rmse, "relative": self.relative}


def folds_of(statistics: StatisticSet) -> StatisticSet:
    """Returns the set relabelled so that each "log" is one fold: a motion with all its repetitions, or parts in time.

    Logs of one motion (:mod:`.motions`) are held out together, because model errors repeat in them and would be rewarded. Many
    motions are held out one at a time; if they are more than :data:`MOTION_FOLDS`, in that many groups of neighbours. With few
    motions (see :func:`whole_motions`) the rest may lack what only one of them excites (slow motions do not excite inertia), so
    that a law or a weight would be judged by extrapolation. Then, and with a single motion, the folds are parts in time, the
    same part of every log together; repetitions of a motion are cut where the motion is at the same place, whenever they begin.
    A part must not hold the only data of a column: if joints move one after the other, and in an averaged period, which is
    short (and whose neighbouring stretches share little noise), each fold consists of blocks spread over the log.

    Returns:
        A set with at least two logs, one factor per fold and row group.

    Raises:
        EstimationError: One motion with fewer than two blocks.
    """
    if not statistics.folds:
        labels = fold_labels(statistics)
        renamed = tuple(replace(entry, log=labels[entry.log, entry.block]) for entry in statistics.entries)
        statistics.folds.append(replace(statistics, entries=renamed, repetitions=None).compressed())
    return statistics.folds[0]


def repetitions(statistics: StatisticSet) -> Repetitions:
    """Returns what the logs repeat, for further statistics of the same logs."""
    if statistics.repetitions is not None:
        return statistics.repetitions
    moves = motions(statistics)
    if len(moves) > TIME_FOLDS:
        return Repetitions(moves, None)
    repeats = periodic(replace(statistics, repetitions=Repetitions(moves, None)), TIME_FOLDS)
    return Repetitions(moves, repeats, {log: place for logs in moves for log, place in spans(statistics, logs).items()})


def fold_labels(statistics: StatisticSet) -> dict[tuple[str, int], str]:
    """Assigns every time block to a fold (:func:`folds_of`).

    Returns:
        (log, block) → name of its fold.

    Raises:
        EstimationError: One motion with fewer than two blocks.
    """
    moves, blocks = motions(statistics), _blocks(statistics)
    if _whole(statistics, moves, blocks):
        count = min(len(moves), MOTION_FOLDS)
        edges = [k * len(moves) // count for k in range(count + 1)]
        groups = [moves[begin:end] for begin, end in pairwise(edges)]
        names = [f"{some[0][0]} to {some[-1][0]}" if len(some) > 1 else group_name(some[0]) for some in groups]
        pairs = [(name, log) for name, some in zip(names, groups, strict=True) for logs in some for log in logs]
        return {(log, block): name for name, log in pairs for block in blocks[log]}
    k = min(TIME_FOLDS, *(len(blocks_of_log) for blocks_of_log in blocks.values())) if blocks else 0
    if k < 2:
        raise EstimationError("one log that is too short to be cut into folds", remedy="record longer, or more logs")
    fold = {}
    for log, (begin, end) in (place for logs in moves for place in spans(statistics, logs).items()):
        for i, block in enumerate(blocks[log]):
            fold[log, block] = int(round(k * (begin + (end - begin) * i / len(blocks[log])), 9))  # before rounding errors
    lone = False  # whether some column of a basis is zero, or nearly so, outside one fold
    for entries in statistics.of_group.values():
        squares = np.zeros((max(fold.values()) + 1, entries[0].factor.shape[1]))
        for entry in entries:
            squares[fold[entry.log, entry.block]] += np.sum(entry.factor**2, axis=0)
        total = squares.sum(axis=0)
        lone |= bool((total - squares.max(axis=0) < LEAST_OUTSIDE * total).any())
    if lone or any(entry.repeats > 1 for entry in statistics.entries):
        fold = {(log, block): i % k for log, blocks_of_log in blocks.items() for i, block in enumerate(blocks_of_log)}
    name = group_name(statistics.logs) if len(moves) == 1 else "all logs"
    return {at: f"{name}[{part + 1}/{k}]" for at, part in fold.items()}


def whole_motions(statistics: StatisticSet) -> bool:
    """Returns whether whole motions are held out: they outnumber the parts in time, or such parts would repeat each other.

    Returns:
        False for one motion.
    """
    return _whole(statistics, motions(statistics), _blocks(statistics))


def _whole(statistics: StatisticSet, logs_of_motions: Sequence[tuple[str, ...]], blocks: Mapping[str, list[int]]) -> bool:
    if not 1 < len(logs_of_motions) <= TIME_FOLDS:
        return len(logs_of_motions) > 1
    return min(map(len, blocks.values())) < 2 or periodic(statistics, TIME_FOLDS)


def _blocks(statistics: StatisticSet) -> dict[str, list[int]]:
    """The time blocks of every log, in order."""
    return grouped(sorted({(entry.log, entry.block) for entry in statistics.entries}))


def group_name(logs: Sequence[str]) -> str:
    """Returns a short name for the logs of one motion.

    Returns:
        The name of the first log and the number of its repetitions.
    """
    return logs[0] if len(logs) == 1 else f"{logs[0]} (+{len(logs) - 1})"


def repetition_notes(statistics: StatisticSet) -> tuple[str, ...]:
    """Notes which logs repeat one motion.

    Returns:
        A note for each motion that was recorded several times.
    """
    return tuple(
        f"{', '.join(logs)} are one motion: they are held out together and count as one where errors are judged"
        for logs in motions(statistics)
        if len(logs) > 1
    )


def independent_stretches(statistics: StatisticSet) -> tuple[tuple[tuple[str, int], ...], ...]:
    """Returns stretches of time that do not repeat each other; the same stretch of all logs of one motion counts as one.

    Returns:
        The (log, block) pairs of each stretch.
    """
    of_log = grouped((stretch[0][0], stretch) for stretch in statistics.stretches)
    stretches: list[tuple[tuple[str, int], ...]] = []
    for logs in motions(statistics):
        rows = [of_log[log] for log in logs]
        count = max(len(stretches_of_log) for stretches_of_log in rows)
        merged: list[tuple[tuple[str, int], ...]] = [() for _ in range(count)]
        for stretches_of_log in rows:
            for k, stretch in enumerate(stretches_of_log):
                merged[k * count // len(stretches_of_log)] += stretch
        stretches += [stretch for stretch in merged if stretch]
    return tuple(stretches)


def held_out(folds: Sequence[str], groups: Sequence[str], trained: Trained) -> CrossValidation:
    """Scores parameters on every fold that was held out of their estimation.

    Args:
        trained: Returns, for a fold, its factors and the parameters estimated without it.
    """
    mean_squares = []  # of the error and of the measured effort
    for fold in folds:
        alone, theta = trained(fold)
        squares = [[alone.residual_squares(theta, g), alone.effort_squares(g)] for g in alone.groups]
        mean_squares.append(np.transpose(squares) / [max(alone.weight[g], 1.0) for g in alone.groups])
    rmse, effort = np.sqrt(np.swapaxes(mean_squares, 0, 1))
    return CrossValidation(tuple(folds), tuple(groups), rmse, effort)


def cross_validate(statistics: StatisticSet, estimate: Callable[[StatisticSet], Array]) -> CrossValidation:
    """Leaves each fold out, estimates from the rest and scores the fold.

    Args:
        estimate: Called with the training set; returns theta, shape (p,).

    Raises:
        EstimationError: See :func:`folds_of`.
    """
    split = folds_of(statistics)
    return held_out(split.logs, split.groups, lambda fold: (split.only(fold), estimate(split.left_out(fold))))


def score_folds(statistics: StatisticSet, known: Mapping[str, Array]) -> CrossValidation:
    """Scores parameters that were already estimated without each fold.

    Args:
        known: Name of the fold → parameters, shape (p,).

    Raises:
        EstimationError: See :func:`folds_of`.
    """
    split = folds_of(statistics)
    return held_out(split.logs, split.groups, lambda fold: (split.only(fold), known[fold]))
