"""Term columns and torques in chunks, so that memory does not grow with the length of a log."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ..friction import AxisMotion, Law
from ..linalg import Array
from ..samples import Segment
from .rigid_bodies import rigid_torque
from .robot import Robot
from .terms import AppliedTerm

#: Samples per chunk of torques.
AT_ONCE = 1 << 15


class TermModel(Protocol):
    """Interface of a model with terms."""

    @property
    def terms(self) -> tuple[AppliedTerm, ...]:
        """The terms, in the order of their columns."""

    def term_values(self, segment: Segment, terms: Sequence[AppliedTerm]) -> Array:
        """Returns the values of the columns of the given terms."""

    def with_reference_torque(self, segment: Segment) -> Segment:
        """Returns the segment with the torque that load-dependent terms use."""


def columns_of(terms: Sequence[AppliedTerm], samples: int, motion: Callable[[AppliedTerm], AxisMotion]) -> Array:
    """Returns the values of the columns of the given terms.

    Args:
        motion: Returns the axis motion of a term; friction laws of one axis share it.

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
    """Yields the values of all term columns in chunks; only terms with memory are evaluated on the whole segment.

    Args:
        segment: A whole segment at full rate.

    Yields:
        The slice of samples and its :meth:`.DynamicModel.term_columns`, shape (≤ chunk, k).
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
    """Interface of a model that computes torques."""

    robot: Robot

    @property
    def n_inertial(self) -> int:
        """Number of inertial parameters, the first ones."""

    @property
    def apart(self) -> frozenset[int]:
        """Joints whose efforts are not their torques."""

    @property
    def distribution(self) -> Array:
        """Coefficients of each term column in the joint torques, shape (n, k)."""


def torque_by_sample(model: TorqueModel, thetas: Array, which: NDArray[np.int32], segment: Segment) -> Array:
    """Returns efforts along a motion with a choice of parameters per sample; of joints set apart their terms alone.

    Args:
        thetas: Parameters, shape (p, k).
        which: Index of each sample's parameters, shape (N,).

    Returns:
        Shape (N, n) [N·m or N].
    """
    out = np.empty(segment.q.shape)
    for part, terms in term_chunks(model, segment, AT_ONCE):
        own = which[part]
        for k in np.unique(own):
            some = np.flatnonzero(own == k)
            at, (bodies, rest) = some + part.start, np.split(thetas[:, k], [model.n_inertial])
            friction = np.einsum("nk,jk,k->nj", terms[some], model.distribution, rest)
            rigid = rigid_torque(model.robot, bodies, segment.q[at], segment.v[at], segment.a[at])
            rigid[:, sorted(model.apart)] = 0.0
            out[at] = friction + rigid
    return out


def torque_chunks(model: TorqueModel, theta: Array, segment: Segment) -> Iterator[tuple[slice, Array]]:
    """Yields joint torques along a motion, :data:`AT_ONCE` samples at a time.

    Args:
        theta: Parameters, shape (p,) or (p, k).

    Yields:
        The slice of samples and their torques, shape (≤ AT_ONCE, n) or (≤ AT_ONCE, n, k) [N·m or N].
    """
    bodies, rest = theta[: model.n_inertial], theta[model.n_inertial :]
    for part, terms in term_chunks(model, segment, AT_ONCE):
        tau = np.einsum("nk,jk,k...->nj...", terms, model.distribution, rest)
        yield part, tau + rigid_torque(model.robot, bodies, segment.q[part], segment.v[part], segment.a[part])
