"""Filtered columns of a segment, computed once for all models: successive friction laws share most of their columns.

The rigid-body columns do not depend on the laws, and a law's columns do not depend on the other laws. Filtered and decimated
they are small enough to be kept as long as their segment; only columns that depend on the rigid torque, which changes with
every estimate, are computed again. Whether anything is kept has no influence on the numbers.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import ClassVar
from weakref import WeakKeyDictionary

import numpy as np

from ..linalg import Array
from ..model.drive import Drive
from ..model.dynamic_model import DynamicModel
from ..model.robot import Robot
from ..model.terms import AppliedTerm
from ..samples import Segment
from .rows import RowFilter, row_scale, scaled, unscaled_rows

#: Maximum number of values kept in all segments together; the columns of others are computed again for every model.
MOST = 12_000_000
#: Maximum number of values of a segment's rows that are computed in one piece, and of its rigid columns at the full rate, from
#: which the rigid torque of any estimate is one matrix product.
_ONE_PIECE, _FULL_RATE = 6_000_000, 4_000_000
#: Number of values of term columns at the full rate that are filtered at a time.
AT_ONCE = 500_000


def cached_rows(model: DynamicModel, segment: Segment, row_filter: RowFilter) -> Iterator[tuple[int, list[Array]]] | None:
    """Returns the rows of :func:`.filtered_rows` with ``compact``, in one piece.

    Args:
        segment: A segment with measured ``tau``.
        row_filter: The filter, the same for columns and tau.

    Returns:
        At most one piece; None for models with other rows (elastic joints, loads), or a segment that is too long for one piece.

    Raises:
        LogError: The segment has no torque.
    """
    count, width = row_filter.output_rows(len(segment)), sum(len(group.places) + 1 for group in model.compact)
    if type(model) is not DynamicModel or count * width > _ONE_PIECE:
        return None
    columns = _COLUMNS.setdefault(segment, _Columns())
    return iter([(0, _rows(columns, model, segment, row_filter))] if count else [])


class _Columns:
    """Filtered columns of one segment.

    Attributes:
        held: Number of values of all segments.
    """

    held: ClassVar[int] = 0

    def __init__(self) -> None:
        self.size, self.known = 0, dict[Hashable, list[Array]]()

    def keep(self, key: Hashable, arrays: Sequence[Array]) -> list[Array]:
        """Keeps columns if there is room.

        Returns:
            The columns.
        """
        made, size = list(arrays), sum(array.size for array in arrays)
        if _Columns.held + size <= MOST:
            self.known[key] = made
            self.size += size
            _Columns.held += size
        return made

    def __del__(self) -> None:
        _Columns.held -= self.size


_COLUMNS: WeakKeyDictionary[Segment, _Columns] = WeakKeyDictionary()


def _rows(columns: _Columns, model: DynamicModel, segment: Segment, row_filter: RowFilter) -> list[Array]:
    rigid = _rigid(columns, model, segment, row_filter)
    terms = _terms(columns, model, segment, row_filter)
    targets = row_filter.apply(model.row_targets(segment.measured, segment.external))
    rows = []
    for g, (group, inertial) in enumerate(zip(model.groups, rigid, strict=True)):
        own = group.columns[group.columns >= model.n_inertial] - model.n_inertial
        scales = group.scale[len(group.columns) - len(own) :]
        rows.append(np.column_stack([inertial, *(terms[k] * s for k, s in zip(own, scales, strict=True)), targets[:, g]]))
    return scaled(rows, row_scale(segment, row_filter))


def _rigid(columns: _Columns, model: DynamicModel, segment: Segment, row_filter: RowFilter) -> list[Array]:
    """The independent inertial columns of each row group, filtered, shape (rows, columns)."""
    key = (row_filter, model.robot, tuple((mix.tobytes(), places.tobytes()) for mix, places in model.compact_inertial))
    if (known := columns.known.get(key)) is not None:
        return known
    pieces = [blocks for _, blocks in unscaled_rows(_bare(model), segment, row_filter, compact=True)]
    return columns.keep(key, [np.vstack(blocks)[:, :-1] for blocks in zip(*pieces, strict=True)])


def _terms(columns: _Columns, model: DynamicModel, segment: Segment, row_filter: RowFilter) -> list[Array]:
    """All term columns, filtered, shape (rows,) each, before they are assigned to row groups."""
    keys = [_key(model, row_filter, item) for item in model.terms]
    made = {k: columns.known[key] for k, key in enumerate(keys) if key is not None and key in columns.known}
    missing = [k for k in range(len(keys)) if k not in made]
    whole = _with_load(columns, model, segment) if any(model.terms[k].term.loaded for k in missing) else segment
    size = max(1, AT_ONCE // max(len(segment), 1))
    for begin in range(0, len(missing), size):
        chunk = missing[begin : begin + size]
        items = [model.terms[k] for k in chunk]
        filtered = row_filter.apply(model.term_values(whole, items))
        ends = np.cumsum([len(item.term.symbols) for item in items])[:-1]
        for k, values in zip(chunk, np.split(filtered, ends, axis=1), strict=True):
            made[k] = list(np.ascontiguousarray(values.T))
            if keys[k] is not None:
                columns.keep(keys[k], made[k])
    return [column for k in range(len(keys)) for column in made[k]]


def _with_load(columns: _Columns, model: DynamicModel, segment: Segment) -> Segment:
    """Same as :meth:`.DynamicModel.with_reference_torque`, from cached columns."""
    theta = model.reference_theta
    if theta is None or segment.reference_torque is not None:
        return model.with_reference_torque(segment)
    joints = _joints(model.robot, model.apart)
    if len(segment) * sum(len(group.places) for group in joints.compact) > _FULL_RATE:
        return model.with_reference_torque(segment)
    key = model.robot, model.apart
    if (rigid := columns.known.get(key)) is None:
        ((_, made),) = joints.row_blocks(segment, chunk=len(segment), compact=True)
        rigid = columns.keep(key, made)
    torque = np.empty((len(segment), model.n))
    for j, (group, basis, own) in enumerate(zip(joints.groups, joints.compact, rigid, strict=True)):
        torque[:, j] = own @ (basis.expansion @ theta[group.columns])
    return replace(segment, reference_torque=torque if segment.external is None else torque - segment.external)


@lru_cache(maxsize=1)
def _bare(model: DynamicModel) -> DynamicModel:
    """The rigid part of a model."""
    return model.with_terms([])


@lru_cache(maxsize=1)
def _joints(robot: Robot, apart: frozenset[int]) -> DynamicModel:
    """The rigid model in which each motor drives one joint."""
    model = DynamicModel(robot, friction=[], rotor_inertia=False, drive=Drive.build(robot.n))
    return model.with_apart([robot.joints[j] for j in sorted(apart)])


def _key(model: DynamicModel, row_filter: RowFilter, item: AppliedTerm) -> Hashable:
    """Cache key of a term's columns; None if they change with every estimate or the term cannot be hashed."""
    if item.term.loaded:
        return None
    key = (row_filter, model.drive, item)
    try:
        hash(key)
    except TypeError:  # a law with a list attribute
        return None
    return key
