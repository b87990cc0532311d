"""Cache of filtered rows for the selection of friction laws, where successive models share most of their columns.

The rigid-body columns do not depend on the laws, and a law's columns do not depend on the other laws. Filtered and decimated
they are small enough to be cached; only columns that depend on the rigid torque, which changes with every estimate, are
recomputed.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..linalg import Array
from ..model.drive import Drive
from ..model.dynamic_model import DynamicModel
from ..model.elasticity import ElasticModel
from ..model.robot import Robot
from ..model.terms import AppliedTerm
from ..samples import Segment
from .rows import RowFilter, row_scale, scaled, unscaled_rows
from .statistic import StatisticSet

#: Maximum number of cached values; rows of larger logs are recomputed for every model.
MOST = 12_000_000
#: Rigid columns at the full rate, from which the rigid torque of any estimate is one matrix product, are cached if those of all
#: logs are at most this fraction of :data:`MOST`: all logs, so that the result does not depend on those of one process.
FULL_RATE = 1 / 3
#: Number of values of term columns at the full rate that are filtered at a time.
AT_ONCE = 500_000


class RowCache:
    """Cache of the rows of some logs; every process caches the rows that it has computed.

    Args:
        most: Maximum number of cached values.
        samples: Number of samples of all logs.
    """

    def __init__(self, most: int = MOST, samples: int = 0) -> None:
        self.most, self.samples, self.held = most, samples, 0
        self._kept: dict[Hashable, list[Array]] = {}
        self._full: dict[tuple[Segment, Robot], list[Array]] = {}  # rows and columns as those of ``_joints``
        self._joints: dict[Robot, DynamicModel] = {}  # rigid model in which each motor drives one joint
        self._bare: dict[DynamicModel, DynamicModel] = {}  # the last model and its rigid part
        #: Key and value of the last complete statistic; successive models are often the same.
        self.last: tuple[Hashable, StatisticSet] | None = None
        #: Returns the logs of each motion, waiting if necessary; independent of the friction laws.
        self.motions: Callable[[], tuple[tuple[str, ...], ...]] | None = None

    def rows(self, model: DynamicModel, segment: Segment, row_filter: RowFilter) -> Iterator[tuple[int, list[Array]]] | None:
        """Returns the rows of :func:`.filtered_rows` with ``compact``, in one piece.

        Args:
            segment: A segment with measured ``tau``.
            row_filter: The filter, the same for columns and tau.

        Returns:
            At most one piece; None if rows of this kind of model, or this many rows, are not cached.

        Raises:
            LogError: The segment has no torque.
        """
        count, width = row_filter.output_rows(len(segment)), sum(len(some.places) + 1 for some in model.compact)
        if isinstance(model, ElasticModel) or count * width > self.most // 2:
            return None
        return iter([(0, self._made(model, segment, row_filter))] if count else [])

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(RowCache(self.most, self.samples))}

    def clear(self) -> None:
        """Empties the cache of rows."""
        self._kept, self._full, self.held, self.last = {}, {}, 0, None

    def _made(self, model: DynamicModel, segment: Segment, row_filter: RowFilter) -> list[Array]:
        rigid = self._rigid(model, segment, row_filter)
        terms = self._terms(model, segment, row_filter)
        targets = row_filter.apply(model.row_targets(segment.measured, segment.external))
        found = []
        for g, (group, columns) in enumerate(zip(model.groups, rigid, strict=True)):
            own = group.columns[group.columns >= model.n_inertial] - model.n_inertial
            scales = group.scale[len(group.columns) - len(own) :]
            found.append(np.column_stack([columns, *(terms[k] * s for k, s in zip(own, scales, strict=True)), targets[:, g]]))
        return scaled(found, row_scale(segment, row_filter))

    def _rigid(self, model: DynamicModel, segment: Segment, row_filter: RowFilter) -> list[Array]:
        """The independent inertial columns of each row group, filtered, shape (rows, columns)."""
        wanted = model.compact_inertial
        key = (segment, row_filter, model.robot, tuple((mix.tobytes(), columns.tobytes()) for mix, columns in wanted))
        if key not in self._kept:
            if model not in self._bare:
                self._bare = {model: model.with_terms([])}
            pieces = [blocks for _, blocks in unscaled_rows(self._bare[model], segment, row_filter, compact=True)]
            self._keep(key, [np.vstack(parts)[:, :-1] for parts in zip(*pieces, strict=True)])
            return self._kept.get(key) or [np.vstack(parts)[:, :-1] for parts in zip(*pieces, strict=True)]
        return self._kept[key]

    def _terms(self, model: DynamicModel, segment: Segment, row_filter: RowFilter) -> list[Array]:
        """All term columns, filtered, shape (rows,) each, before they are assigned to row groups."""
        found: dict[int, list[Array]] = {}
        missing: list[int] = []
        for k, item in enumerate(model.terms):
            key = _key(model, segment, row_filter, item)
            if key is not None and key in self._kept:
                found[k] = self._kept[key]
            else:
                missing.append(k)
        whole = self._with_load(model, segment) if any(model.terms[k].term.loaded for k in missing) else segment
        size = max(1, AT_ONCE // max(len(segment), 1))
        for begin in range(0, len(missing), size):
            some = missing[begin : begin + size]
            items = [model.terms[k] for k in some]
            made = row_filter.apply(model.term_values(whole, items))
            ends = np.cumsum([len(item.term.symbols) for item in items])[:-1]
            for k, item, columns in zip(some, items, np.split(made, ends, axis=1), strict=True):
                found[k] = list(np.ascontiguousarray(columns.T))
                key = _key(model, segment, row_filter, item)
                if key is not None:
                    self._keep(key, found[k])
        return [column for k in range(len(model.terms)) for column in found[k]]

    def _with_load(self, model: DynamicModel, segment: Segment) -> Segment:
        """Same as :meth:`.DynamicModel.with_reference_torque`, from cached columns."""
        theta = model.reference_theta
        if theta is None or segment.reference_torque is not None:
            return model.with_reference_torque(segment)
        if model.robot not in self._joints:
            self._joints = {model.robot: model.with_terms([]).with_drive(Drive.build(model.n))}
        joints, key = self._joints[model.robot], (segment, model.robot)
        if key not in self._full:
            if max(self.samples, len(segment)) * sum(len(some.places) for some in joints.compact) > FULL_RATE * self.most:
                return model.with_reference_torque(segment)
            ((_, self._full[key]),) = joints.row_blocks(segment, chunk=len(segment), compact=True)
        torque = np.empty((len(segment), model.n))
        for j, (group, some, columns) in enumerate(zip(joints.groups, joints.compact, self._full[key], strict=True)):
            torque[:, j] = columns @ (some.expansion @ theta[group.columns])
        return replace(segment, reference_torque=torque if segment.external is None else torque - segment.external)

    def _keep(self, key: Hashable, arrays: Sequence[Array]) -> None:
        size = sum(array.size for array in arrays)
        if self.held + size <= self.most:
            self._kept[key] = list(arrays)
            self.held += size


def _key(model: DynamicModel, segment: Segment, row_filter: RowFilter, item: AppliedTerm) -> Hashable:
    """Cache key of a term's columns; None if they change with every estimate or the term cannot be hashed."""
    if item.term.loaded:
        return None
    key = (segment, row_filter, model.drive, item)
    try:
        hash(key)
    except TypeError:  # a law with a list attribute
        return None
    return key
