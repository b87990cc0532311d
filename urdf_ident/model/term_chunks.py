"""Columns of terms and torques piece by piece, so that memory stays flat in the length of a log."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ..friction import AxisMotion, Law
from ..linalg import Array
from ..samples import Segment
from ..scratch import room
from .engine.rigid import rigid_of
from .robot import Robot
from .terms import AppliedTerm

#: Samples whose torques are made at a time.
AT_ONCE = 1 << 15


class TermModel(Protocol):
    """What is asked of the model: its terms and their values."""

    @property
    def terms(self) -> tuple[AppliedTerm, ...]:
        """The terms, in the order of their columns."""

    def term_values(self, segment: Segment, terms: Sequence[AppliedTerm]) -> Array:
        """Values of the columns of some terms."""

    def with_reference_torque(self, segment: Segment) -> Segment:
        """The segment with the torque that load-dependent terms read."""


def columns_of(terms: Sequence[AppliedTerm], samples: int, motion: Callable[[AppliedTerm], AxisMotion]) -> Array:
    """Values of the columns of some terms.

    Args:
        terms: The terms.
        samples: Length of the motion.
        motion: What a term sees of it; friction laws of one axis see the same.

    Returns:
        Shape (samples, k), columns in the order of the terms.
    """
    ends = np.cumsum([0, *(len(item.term.symbols) for item in terms)])
    seen: dict[Hashable, AxisMotion] = {}
    out = np.empty((ends[-1], samples))
    for item, begin, end in zip(terms, ends, ends[1:], strict=False):
        key = (item.axis, item.side) if isinstance(item.term, Law) else id(item)
        if key not in seen:
            seen[key] = motion(item)
        out[begin:end] = item.term.columns(seen[key]).T
    return out.T


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


class TorqueModel(TermModel, Protocol):
    """What torques need besides."""

    robot: Robot

    @property
    def n_inertial(self) -> int:
        """Number of inertial parameters, the first ones."""

    @property
    def distribution(self) -> Array:
        """What each term column adds to each joint's torque, shape (n, k)."""


def torque_by_sample(model: TorqueModel, thetas: Array, which: NDArray[np.int32], segment: Segment) -> Array:
    """Joint torques along a motion whose samples have parameters of their own.

    Args:
        model: The dynamic model.
        thetas: Parameters, shape (p, k).
        which: Of these each sample's, shape (N,).
        segment: The motion.

    Returns:
        Shape (N, n) [N·m or N].
    """
    out = room(segment.q.shape)
    for part, terms in term_chunks(model, segment, AT_ONCE):
        own, engine = which[part], rigid_of(model.robot)
        for k in np.unique(own):
            some = np.flatnonzero(own == k)
            at, (bodies, rest) = some + part.start, np.split(thetas[:, k], [model.n_inertial])
            friction = np.einsum("nk,jk,k->nj", terms[some], model.distribution, rest)
            out[at] = friction + engine.torque(bodies, segment.q[at], segment.v[at], segment.a[at])
    return out


def torque_chunks(model: TorqueModel, theta: Array, segment: Segment) -> Iterator[tuple[slice, Array]]:
    """Joint torques along a motion, :data:`AT_ONCE` samples at a time.

    Args:
        model: The dynamic model.
        theta: Parameters, shape (p,) or (p, k).
        segment: The motion.

    Yields:
        The slice of samples and their torques, shape (≤ AT_ONCE, n) or (≤ AT_ONCE, n, k) [N·m or N].
    """
    bodies, rest = theta[: model.n_inertial], theta[model.n_inertial :]
    for part, terms in term_chunks(model, segment, AT_ONCE):
        tau = np.einsum("nk,jk,k...->nj...", terms, model.distribution, rest)
        yield part, tau + rigid_of(model.robot).torque(bodies, segment.q[part], segment.v[part], segment.a[part])
