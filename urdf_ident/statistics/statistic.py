"""The statistic that estimators work from: small triangular factors instead of rows.

For each log, time block and row group there is one factor R of ``[instruments | candidate columns | effort]``.
``RᵀR`` contains all second moments of the rows, so that least-squares estimators, cross-validation over logs or blocks,
sub-models and physical constraints need a few kilobytes instead of the data. Factors are merged (stacked and factorized again)
when a problem is solved, and never downdated.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..errors import EstimationError, FingerprintError
from ..grouping import grouped
from ..linalg import Array, IntArray, triangle
from ..model.dynamic_model import DynamicModel
from ..samples import freeze_arrays

#: Time blocks per log; maximum of all logs together, and minimum per log, if there are many logs.
BLOCKS, MOST_BLOCKS, FEWEST_BLOCKS = 32, 512, 8
#: Stretches per log for jackknife and bootstrap: long compared with the autocorrelation, and sufficient in number.
STRETCHES = 16
#: Maximum number of stretches of all logs together: more would not improve the standard errors.
MOST_STRETCHES = 320


def is_measured(group: str) -> bool:
    """Whether the efforts of a row group are measured.

    Returns:
        False for the links of elastic joints, whose equations have no effort.
    """
    return not group.startswith("link:")


def expanded(factor: Array, expansion: Array | None) -> Array:
    """Expands a factor of a basis of the columns to all columns, shape (m, k + 1).

    Args:
        factor: The basis and the effort, shape (m, c + 1).
        expansion: E with ``all columns = basis @ E``, shape (c, k); None: the factor has all columns.
    """
    if expansion is None:
        return factor
    count = len(expansion)
    return np.hstack([factor[:, :count] @ expansion, factor[:, count:]])


@dataclass(frozen=True, eq=False)
class Layout:
    """Meaning of the columns of a row group's factors.

    Attributes:
        joint: Index of the joint that its residual belongs to.
        columns: Indices into theta of the candidate columns, shape (k,).
        instruments: Indices into theta of the instrument columns (empty without instruments).
        places: Positions in ``columns`` of a basis of all columns for any motion, shape (c,), or None if unknown.
        expansion: E with ``all columns = those at places @ E``, shape (c, k), or None.
    """

    group: str
    joint: int
    columns: IntArray
    instruments: tuple[int, ...] = ()
    places: IntArray | None = None
    expansion: Array | None = None

    @cached_property
    def _held(self) -> IntArray | None:
        """Positions of the columns that :class:`.Statistic` holds; None: all of them."""
        if self.expansion is None or self.places is None or self.instruments:
            return None
        return np.concatenate([self.places, np.arange(len(self.columns), self.width)])

    def reduced(self, factor: Array) -> tuple[Array, Array | None]:
        """Returns the columns of a factor that :class:`.Statistic` holds.

        Args:
            factor: All columns, or those already, shape (m, ·).

        Returns:
            The columns at :attr:`places` and the effort, with :attr:`expansion`; all columns and None without a basis.
        """
        if self._held is None:
            return factor, None
        return factor if factor.shape[1] == len(self._held) else factor[:, self._held], self.expansion

    def merged(self, factors: Sequence[Array]) -> Array:
        """Merges several factors into one; linearly dependent columns are omitted from the computation, shape (≤ width, width).

        Args:
            factors: Shapes (m_i, width), or of a basis of the columns only, as in :attr:`.Statistic.factor`.
        """
        if self._held is None:
            return triangle(*factors)
        rows, begin = np.empty((sum(map(len, factors)), len(self._held)), order="F"), 0  # a second copy would be large
        for factor in factors:
            rows[begin : begin + len(factor)] = self.reduced(factor)[0]
            begin += len(factor)
        return expanded(triangle(rows, overwrite=True), self.expansion)

    @property
    def width(self) -> int:
        """Number of columns of the factors."""
        return len(self.instruments) + len(self.columns) + 1


def placed(columns: Array, place: IntArray, width: int) -> Array:
    """Columns at other places of a matrix that is zero elsewhere, shape (m, width).

    Args:
        columns: Shape (m, k).
        place: New index of each column, shape (k,); columns with a negative one are left out.
    """
    out, kept = np.zeros((len(columns), width)), place >= 0
    out[:, place[kept]] = columns[:, kept]
    return out


def layouts_of(model: DynamicModel) -> tuple[Layout, ...]:
    """Returns the layouts of a model's row groups."""
    return tuple(
        Layout(group.name, group.joint, group.columns, places=basis.places, expansion=basis.expansion)
        for group, basis in zip(model.groups, model.compact, strict=True)
    )


def blocks_of(logs: int) -> int:
    """Returns the number of time blocks per log.

    Returns:
        :data:`BLOCKS`, fewer with many logs, since standard errors use the stretches of all logs together.
    """
    return min(BLOCKS, max(FEWEST_BLOCKS, MOST_BLOCKS // max(logs, 1)))


@dataclass(frozen=True, eq=False)
class Statistic:
    """The factor of the rows of one (log, block, group).

    Attributes:
        log, block, group: The rows it stands for.
        factor: The columns of a basis of all columns, and the effort, shape (m, c + 1), or all columns.
        repeats: Number of periods averaged in each row; such rows are scaled by √repeats.
        expansion: E with ``all columns = basis @ E``, shape (c, k); None if ``factor`` has all columns.
    """

    log: str
    block: int
    group: str
    factor: Array
    rows: int
    repeats: float = 1.0
    expansion: Array | None = None

    def __post_init__(self) -> None:
        if self.factor.flags.writeable:
            freeze_arrays(self)

    @property
    def R(self) -> Array:
        """All columns, shape (≤ width, width), with the same ``RᵀR`` as the rows; not always triangular."""
        return expanded(self.factor, self.expansion)

    def times(self, matrix: Array) -> Array:
        """Returns a matrix whose product with :attr:`factor` is the given one's with :attr:`R`.

        Args:
            matrix: Shape (width, q).

        Returns:
            Shape (columns of :attr:`factor`, q).
        """
        if self.expansion is None:
            return matrix
        k = self.expansion.shape[1]
        return np.vstack([self.expansion @ matrix[:k], matrix[k:]])


class Repetitions(NamedTuple):
    """What logs repeat, whatever the model: found once, it is handed to further statistics of the same logs.

    Attributes:
        motions: Names of the logs of each motion.
        periodic: Whether some log repeats its own motion; None with so many motions that it does not matter.
        spans: By log, where in its motion it begins and ends, fractions of the whole; none with so many motions.
    """

    motions: tuple[tuple[str, ...], ...]
    periodic: bool | None
    spans: Mapping[str, tuple[float, float]] = {}


@dataclass(frozen=True, eq=False)
class StatisticSet:
    """Factors of one or more logs, the input of the estimators.

    Attributes:
        fingerprint: Hash of model and conditioning; sets with different fingerprints are never merged.
        repetitions: What the logs repeat; None if they have not been compared.
    """

    names: tuple[str, ...]
    layouts: tuple[Layout, ...]
    entries: tuple[Statistic, ...]
    fingerprint: str
    repetitions: Repetitions | None = None

    @property
    def p(self) -> int:
        """Number of candidate columns."""
        return len(self.names)

    @cached_property
    def logs(self) -> tuple[str, ...]:
        """Names of the logs, in order of appearance."""
        return tuple(dict.fromkeys(entry.log for entry in self.entries))

    @cached_property
    def groups(self) -> tuple[str, ...]:
        return tuple(layout.group for layout in self.layouts)

    @cached_property
    def rows(self) -> Mapping[str, int]:
        """Rows per group."""
        counts = dict.fromkeys(self.groups, 0)
        for entry in self.entries:
            counts[entry.group] += entry.rows
        return counts

    @cached_property
    def weight(self) -> Mapping[str, float]:
        """Rows per group, each times its averaged periods: sums of squares divided by this are mean squares of the torque."""
        counts = dict.fromkeys(self.groups, 0.0)
        for entry in self.entries:
            counts[entry.group] += entry.rows * entry.repeats
        return counts

    @cached_property
    def stretches(self) -> tuple[tuple[tuple[str, int], ...], ...]:
        """Stretches of time as (log, block) pairs: the blocks of each log in at most :data:`STRETCHES` parts."""
        of_log = grouped((entry.log, entry.block) for entry in self.entries)
        most = max(2, min(STRETCHES, MOST_STRETCHES // max(len(of_log), 1)))
        blocks_of_log = {log: sorted(set(own)) for log, own in of_log.items()}
        return tuple(
            tuple((log, block) for block in part.tolist())
            for log, blocks in blocks_of_log.items()
            for part in np.array_split(np.array(blocks, dtype=np.intp), min(most, len(blocks)))
        )

    def layout(self, group: str) -> Layout:
        """Returns the layout of a row group."""
        return self.layouts[self.groups.index(group)]

    def select(self, keep: Callable[[Statistic], bool]) -> StatisticSet:
        """Returns the entries that fulfil a condition (to leave logs or blocks out, or resample them)."""
        return replace(self, entries=tuple(entry for entry in self.entries if keep(entry)))

    def without(self, logs: Collection[str]) -> StatisticSet:
        """Returns the set without some logs."""
        return self.select(lambda entry: entry.log not in logs)

    def left_out(self, log: str) -> StatisticSet:
        """Returns the set without one log, like :meth:`without`; cached, since folds are left out many times."""
        if ("without", log) not in self._parts:
            self._parts["without", log] = self.without([log])
        return self._parts["without", log]

    def only(self, log: str) -> StatisticSet:
        """Returns the set with one log only; cached, since folds are scored many times."""
        if ("only", log) not in self._parts:
            self._parts["only", log] = self.select(lambda entry: entry.log == log)
        return self._parts["only", log]

    def compressed(self) -> StatisticSet:
        """Merges the blocks of each log and group into one factor, which is faster if blocks are not needed.

        Returns:
            A set with the same second moments.
        """
        entries = []
        for (log, group), parts in grouped(((entry.log, entry.group), entry) for entry in self.entries).items():
            rows = sum(e.rows for e in parts)
            repeats = sum(e.rows * e.repeats for e in parts) / max(rows, 1)
            entries.append(Statistic(log, 0, group, self.layout(group).merged([e.factor for e in parts]), rows, repeats))
        return replace(self, entries=tuple(entries))

    def shifted(self, change: ArrayLike) -> StatisticSet:
        """Returns the set with tau replaced by ``tau + W change``: estimates change by ``change``, residuals do not.

        Estimators that correct a bias of least squares return their result in this form.

        Args:
            change: Shape (p,).

        Returns:
            A set with the same columns.
        """
        move = np.asarray(change, dtype=float)
        entries = []
        for entry in self.entries:
            layout = self.layout(entry.group)
            begin, k = len(layout.instruments), len(layout.columns)
            R = np.array(entry.R)
            R[:, begin + k :] += (R[:, begin : begin + k] @ move[layout.columns])[:, None]
            entries.append(replace(entry, factor=R, expansion=None))
        return replace(self, entries=tuple(entries))

    @cached_property
    def folds(self) -> list[StatisticSet]:
        """Cache of :func:`.folds_of`, which is called many times."""
        return []

    @cached_property
    def _parts(self) -> dict[tuple[str, str], StatisticSet]:
        return {}

    @cached_property
    def _factors(self) -> dict[str, Array]:
        return {}

    @cached_property
    def of_group(self) -> Mapping[str, tuple[Statistic, ...]]:
        """The entries of each row group that has any, in their order."""
        return {group: tuple(own) for group, own in grouped((entry.group, entry) for entry in self.entries).items()}

    @cached_property
    def of_log(self) -> Mapping[str, Mapping[str, Sequence[Statistic]]]:
        """Log → row group → its entries, in the order of their time blocks."""
        in_order = sorted(self.entries, key=lambda entry: entry.block)
        return {log: grouped(own) for log, own in grouped((entry.log, (entry.group, entry)) for entry in in_order).items()}

    def factor(self, group: str) -> Array:
        """Returns the merged factor of one row group over all logs and blocks.

        Returns:
            Shape (≤ width, width), columns as in the layout.

        Raises:
            EstimationError: The set has no rows of the group.
        """
        if group not in self._factors:
            entries = self.of_group.get(group, ())
            if not entries:
                raise EstimationError("no data left for a row group", where=group)
            first = entries[0].factor
            done = len(entries) == 1 and len(first) <= first.shape[1] and not np.tril(first, -1).any()
            self._factors[group] = entries[0].R if done else self.layout(group).merged([entry.factor for entry in entries])
        return self._factors[group]

    def stacked(
        self, weights: Mapping[str, float] | None = None, columns: ArrayLike | None = None, more: Array | None = None
    ) -> Array:
        """Returns one factor of the whole weighted problem, ``[columns | tau]``, shape (≤ c + 1, c + 1).

        Args:
            weights: Row group → weight of its rows, ``1/σ``, which multiplies W and tau alike; 1 if None.
            columns: Indices into theta to keep, in this order, shape (c,); all if None.
            more: Additional rows, shape (r, c + 1).
        """
        return triangle(*self.weighted(weights, columns), *([] if more is None else [more]))

    def weighted(self, weights: Mapping[str, float] | None = None, columns: ArrayLike | None = None) -> list[Array]:
        """Returns the weighted factor of each row group, shape (≤ c + 1, c + 1); for the arguments see :meth:`stacked`."""
        kept = np.arange(self.p) if columns is None else np.asarray(columns, dtype=np.intp)
        place = np.full(self.p, -1)
        place[kept] = np.arange(len(kept))
        blocks = []
        for layout in self.layouts:
            R = self.factor(layout.group)[:, len(layout.instruments) : layout.width]
            wide = placed(R, np.append(place[layout.columns], len(kept)), len(kept) + 1)
            blocks.append(wide * (1.0 if weights is None else weights[layout.group]))
        return blocks

    def residual_squares(self, theta: Array, group: str) -> float:
        """Returns ``‖tau − W theta‖²`` of one row group.

        Args:
            theta: Parameters, shape (p,).

        Returns:
            Sum of squares [unit of torque squared].
        """
        layout = self.layout(group)
        R = self.factor(group)[:, len(layout.instruments) :]
        k = len(layout.columns)
        return float(np.sum((R[:, k] - R[:, :k] @ theta[layout.columns]) ** 2))

    def effort_squares(self, group: str) -> float:
        """Returns ``‖tau‖²`` of one row group.

        Returns:
            Sum of squares [unit of torque squared].
        """
        layout = self.layout(group)
        return float(np.sum(self.factor(group)[:, len(layout.instruments) + len(layout.columns)] ** 2))


def merge_all(sets: Sequence[StatisticSet]) -> StatisticSet:
    """Merges several sets.

    Args:
        sets: Statistics of different logs, from the same model and conditioning; at least one.

    Raises:
        FingerprintError: They belong to different models or conditionings, or share a log's name.
    """
    first, known = sets[0], set[str]()
    for statistics in sets:
        if statistics.fingerprint != first.fingerprint:
            raise FingerprintError(
                "statistics of different models or conditionings cannot be merged",
                got=statistics.fingerprint,
                expected=first.fingerprint,
            )
        both = known & set(statistics.logs)
        if both:
            raise FingerprintError(f"log '{sorted(both)[0]}' is in both sets", remedy="give each log once")
        known.update(statistics.logs)
    return replace(first, entries=tuple(entry for statistics in sets for entry in statistics.entries), repetitions=None)
