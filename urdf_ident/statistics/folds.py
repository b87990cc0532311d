"""Held-out error without a second pass over the data: leave a log, or a block in time, out of the factors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from ..errors import EstimationError
from ..linalg import Array
from .statistic import StatisticSet

#: Folds in time when there is one log: long enough to forget each other, many enough to learn from the rest.
TIME_FOLDS = 5
#: A column with less than this share of its squares outside a fold cannot be estimated for that fold.
LEAST_OUTSIDE = 1e-3


@dataclass(frozen=True, eq=False)
class CrossValidation:
    """Held-out error per fold and row group.

    Attributes:
        folds: What was left out: log names, or ``log[i/k]`` for parts in time.
        groups: Row groups.
        rmse: Shape (folds, groups) [unit of torque], on rows filtered as in the fit.
        effort_rms: Shape (folds, groups), RMS of the measured effort on the same rows.
    """

    folds: tuple[str, ...]
    groups: tuple[str, ...]
    rmse: Array
    effort_rms: Array

    @property
    def group_rmse(self) -> Array:
        """Root mean square over folds, shape (groups,)."""
        return np.asarray(np.sqrt(np.mean(self.rmse**2, axis=0)))

    @property
    def _measured(self) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        """Groups that hold a measured effort: not the links of elastic joints."""
        return np.array([not group.startswith("link:") for group in self.groups])

    @property
    def mean_rmse(self) -> float:
        """Mean over row groups with an effort of :attr:`group_rmse` [unit of torque]."""
        return float(np.mean(self.group_rmse[self._measured]))

    @property
    def relative(self) -> float:
        """Mean over row groups with an effort of held-out RMSE over RMS effort, a fraction."""
        effort = np.maximum(np.sqrt(np.mean(self.effort_rms**2, axis=0)), 1e-300)
        return float(np.mean((self.group_rmse / effort)[self._measured]))


def folds_of(statistics: StatisticSet) -> StatisticSet:
    """The set re-labelled so that each "log" is one fold: the logs, or parts in time when there is one log.

    A part must not hold what the rest knows nothing of: where joints move one after the other, and in an averaged period,
    which is short (and whose neighbouring stretches share little noise), folds are made of stretches from all over.

    Args:
        statistics: The data's factors.

    Returns:
        A set with at least two logs, one factor per fold and row group.

    Raises:
        EstimationError: One log with fewer than two blocks.
    """
    if len(statistics.logs) > 1:
        return statistics.compressed()
    blocks = sorted({entry.block for entry in statistics.entries})
    k = min(TIME_FOLDS, len(blocks))
    if k < 2:
        raise EstimationError("one log that is too short to be cut into folds", remedy="record longer, or more logs")
    fold = {block: i * k // len(blocks) for i, block in enumerate(blocks)}
    if any(entry.repeats > 1 for entry in statistics.entries) or _alone(statistics, fold):
        fold = {block: i % k for i, block in enumerate(blocks)}
    renamed = [replace(e, log=f"{e.log}[{fold[e.block] + 1}/{k}]") for e in statistics.entries]
    return replace(statistics, entries=tuple(renamed)).compressed()


def _alone(statistics: StatisticSet, fold: Mapping[int, int]) -> bool:
    """Whether some column is zero, or nearly, outside one fold."""
    for layout in statistics.layouts:
        squares = np.zeros((max(fold.values()) + 1, layout.width))
        for entry in statistics.entries:
            if entry.group == layout.group:
                squares[fold[entry.block]] += np.sum(entry.R**2, axis=0)
        total = squares.sum(axis=0)
        if (total - squares.max(axis=0) < LEAST_OUTSIDE * total).any():
            return True
    return False


def cross_validate(statistics: StatisticSet, estimate: Callable[[StatisticSet], Array]) -> CrossValidation:
    """Leaves each fold out, estimates from the rest and scores the fold.

    Args:
        statistics: The data's factors.
        estimate: Called with the training set; returns theta, shape (p,).

    Returns:
        The held-out errors.

    Raises:
        EstimationError: See :func:`folds_of`.
    """
    split = folds_of(statistics)
    rmse, effort = [], []
    for fold in split.logs:
        errors = fold_errors(split.only([fold]), estimate(split.without([fold])))
        rmse.append(errors[0])
        effort.append(errors[1])
    return CrossValidation(split.logs, split.groups, np.array(rmse), np.array(effort))


def fold_errors(held_out: StatisticSet, theta: Array) -> tuple[Array, Array]:
    """Errors of parameters on data that were left out.

    Args:
        held_out: The left-out factors.
        theta: Parameters, shape (p,).

    Returns:
        RMSE, and RMS of the measured effort, shape (groups,) each [unit of torque].
    """
    count = np.array([max(held_out.weight[group], 1.0) for group in held_out.groups])
    squares = np.array([[held_out.residual_squares(theta, g), held_out.effort_squares(g)] for g in held_out.groups])
    rmse, effort = np.sqrt(squares.T / count)
    return rmse, effort
