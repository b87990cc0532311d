"""Columns of terms piece by piece, so that memory stays flat in the length of a log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np

from ..linalg import Array
from ..samples import Segment
from .terms import AppliedTerm


class TermModel(Protocol):
    """What is asked of the model: its terms and their values."""

    @property
    def terms(self) -> tuple[AppliedTerm, ...]:
        """The terms, in the order of their columns."""

    def term_values(self, segment: Segment, terms: Sequence[AppliedTerm]) -> Array:
        """Values of the columns of some terms."""

    def with_reference_torque(self, segment: Segment) -> Segment:
        """The segment with the torque that load-dependent terms read."""


def term_chunks(model: TermModel, segment: Segment, chunk: int) -> Iterator[tuple[slice, Array]]:
    """Values of all term columns, piece by piece: only terms with memory are made for the whole segment.

    Args:
        model: The dynamic model.
        segment: A whole segment at full rate.
        chunk: Samples a piece.

    Yields:
        The slice of samples and :meth:`.DynamicModel.term_columns` of it, shape (≤ chunk, k).
    """
    remembers = [bool(getattr(item.term, "memory", False)) for item in model.terms]
    lasting = [item for item, whole in zip(model.terms, remembers, strict=True) if whole]
    passing = [item for item, whole in zip(model.terms, remembers, strict=True) if not whole]
    memory = np.repeat(remembers, [len(item.term.symbols) for item in model.terms]).astype(bool)
    loaded = any(item.term.loaded for item in lasting)
    whole = model.term_values(model.with_reference_torque(segment) if loaded else segment, lasting)
    for begin in range(0, len(segment), chunk):
        part = slice(begin, min(begin + chunk, len(segment)))
        made = model.term_values(model.with_reference_torque(segment.window(begin, part.stop)), passing)
        if not lasting:
            yield part, made
            continue
        values = np.empty((part.stop - begin, len(memory)))
        values[:, memory], values[:, ~memory] = whole[part], made
        yield part, values
