"""Samples of conditioned logs, thin enough that hundreds of readings of them can be tried."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from ...linalg import Array, quantiles, running_median
from ...parallel import each
from ...samples import Segment
from ...scratch import room, stored
from ..conditioning.filters import delayed, lowpass

#: Samples looked at in all logs together, and blocks of time they are split into.
SAMPLES, BLOCKS = 500, 15
#: Samples of a stretch, below which its first one would count for more than a tenth.
_FEW_OF_A_STRETCH = 10
#: Parts of a joint's usual speed within which friction turns round.
WIDTHS = (0.1, 0.6)
#: A joint rests below this part of its fast speeds, and which quantile those are.
_AT_REST, _FAST = 0.02, 0.99
#: A torque this many times the usual distance, and this part of the torque's deviation, from the median of its neighbours is
#: an outlier.
_NEIGHBOURS, _OUTLIER, _FELT = 7, 12.0, 0.3


@dataclass(frozen=True, eq=False)
class MotionSamples:
    """Samples of logs.

    Attributes:
        q, v, a: Shape (N, n) [rad or m, and per s, s²].
        tau: Shape (N, n) [N·m or N].
        signs: Smoothed signs of the velocities, one a width of :data:`WIDTHS`, behind the torque's filter: what a filter
            makes of friction that turns round depends on how fast the joint turns back; shape (N, n, widths).
        block: Block of each sample, shape (N,).
        log: Index of the log of each sample, shape (N,).
        time: Since the start of its log [s], shape (N,).
        reduction: Motor rates for joint rates, shape (n, n), where motors turn with several joints; else None.
    """

    q: Array
    v: Array
    a: Array
    tau: Array
    signs: Array
    block: NDArray[np.int64]
    log: NDArray[np.int64]
    time: Array
    reduction: Array | None = None

    def __len__(self) -> int:
        return len(self.q)

    @cached_property
    def glides(self) -> NDArray[np.bool_]:
        """Where each joint moves, shape (N, n)."""
        speed = np.abs(self.v)
        return np.asarray(speed > _AT_REST * np.quantile(speed, _FAST, axis=0))

    @cached_property
    def size(self) -> Array:
        """Root mean square of each effort about its mean where its joint moves, over all samples, shape (n,) [N·m or N]."""
        moving = np.where(self.glides, self.tau, np.nan)
        away = moving - np.sum(self.tau, axis=0, where=self.glides) / np.maximum(self.glides.sum(axis=0), 1)
        return np.asarray(np.maximum(np.sqrt(np.nansum(away**2, axis=0) / len(self.tau)), 1e-12))

    def of(self, select: NDArray[np.bool_]) -> MotionSamples:
        """Some of the samples.

        Args:
            select: Mask, shape (N,).

        Returns:
            Their motion; blocks are numbered anew.
        """
        _, block = np.unique(self.block[select], return_inverse=True)
        return MotionSamples(
            self.q[select],
            self.v[select],
            self.a[select],
            self.tau[select],
            self.signs[select],
            block,
            self.log[select],
            self.time[select],
            self.reduction,
        )

    def with_motion(self, q: Array, v: Array, a: Array, signs: Array | None = None) -> MotionSamples:
        """The same efforts with another motion.

        Args:
            q, v, a: Shape (N, n) [rad or m, and per s, s²].
            signs: As the attribute, shape (N, n, widths); the same by default.

        Returns:
            The samples.
        """
        return replace(self, q=q, v=v, a=a, signs=self.signs if signs is None else signs)


@dataclass(frozen=True, eq=False)
class ThinnedPiece:
    """A stretch of a log, its log's index and cut-off [Hz], and that every so manieth sample of it is looked at."""

    log: int
    cutoff: float
    part: Segment
    step: int

    @property
    def rows(self) -> slice:
        """The samples looked at: the first of every step, but of a stretch with few samples the middle ones.

        The ends of a stretch are where filters are wrong, and among few samples the first counts for much.
        """
        few = len(self.part) < _FEW_OF_A_STRETCH * self.step
        return slice((min(self.step, len(self.part)) - 1) // 2 if few else 0, None, self.step)


def thinned(logs: Sequence[tuple[Sequence[Segment], float]], samples: int = SAMPLES) -> list[ThinnedPiece]:
    """The stretches of conditioned logs with measured torque, thinned evenly.

    Args:
        logs: Per log its segments and the cut-off of its positions [Hz].
        samples: How many are looked at in all, at most about.

    Returns:
        The stretches, in order.
    """
    parts = [
        (k, cutoff, part)
        for k, (segments, cutoff) in enumerate(logs)
        for part in segments
        if part.tau is not None and len(part) > 20
    ]
    if not parts:
        return []
    per_second = samples / sum(len(part) / part.rate for _, _, part in parts)
    return [ThinnedPiece(k, cutoff, part, max(1, math.ceil(part.rate / per_second - 1e-9))) for k, cutoff, part in parts]


def sampler(
    logs: Sequence[tuple[Sequence[Segment], float]],
    samples: int = SAMPLES,
    blocks: int = BLOCKS,
    reduction: Array | None = None,
) -> Callable[[float], MotionSamples] | None:
    """Samples of conditioned logs, thinned evenly, torques filtered like the motion.

    Args:
        logs: Per log its segments and the cut-off of its positions [Hz].
        samples: How many, at most about.
        blocks: How many blocks of time in all.
        reduction: Motor rates for joint rates, shape (n, n), or None.

    Returns:
        The samples with a delay of the efforts [s] taken out; None where nothing is measured.
    """
    pieces = thinned(logs, samples)
    if not pieces:
        return None
    fresh = iter(each(_smooth, [item for item in pieces if _known(item) is None]))
    smooth = [_kept(item, next(fresh)) if (known := _known(item)) is None else known for item in pieces]  # delays only shift it

    def efforts(delay: float) -> Array:
        every = zip(pieces, smooth, strict=True)
        return np.concatenate([delayed(x, delay * item.part.rate, item.rows) if delay else x[item.rows] for item, x in every])

    rows = [(part.q[at], part.v[at], part.a[at], part.time[at]) for part, at in ((item.part, item.rows) for item in pieces)]
    q, v, a, time = (np.concatenate([row[k] for row in rows]) for k in range(4))
    log = np.concatenate([np.full(len(row[0]), item.log) for item, row in zip(pieces, rows, strict=True)])
    block = _blocks(log, blocks)
    coupled = reduction is not None and bool((reduction - np.diag(np.diag(reduction))).any())
    typical = np.maximum(np.sqrt(np.mean(v**2, axis=0)), 1e-9)
    signs = np.concatenate([_signs(item, typical) for item in pieces])
    first = MotionSamples(q, v, a, efforts(0.0), signs, block, log, time, reduction if coupled else None)
    return lambda delay: replace(first, tau=efforts(delay)) if delay else first


def _signs(item: ThinnedPiece, typical: Array) -> Array:
    """Smoothed signs of the velocities of a stretch, widths in parts of the typical ones, shape (n,): shape (N, n, widths)."""
    part = item.part
    some = [slice(None)] if len(part) <= _SHORT else [slice(j, j + 1) for j in range(part.v.shape[1])]
    made = [
        np.stack(
            [lowpass(np.tanh(part.v[:, at] / (w * typical[at])), part.rate, item.cutoff)[item.rows] for w in WIDTHS], axis=2
        )
        for at in some
    ]
    return np.concatenate(made, axis=1)


def jerks(logs: Sequence[tuple[Sequence[Segment], float]]) -> Array:
    """Growth of the accelerations at the samples looked at.

    Args:
        logs: Per log its conditioned motion, and the cut-off of its positions [Hz].

    Returns:
        Shape (N, n) [rad/s³ or m/s³].
    """
    return np.concatenate([np.gradient(item.part.a, axis=0)[item.rows] * item.part.rate for item in thinned(logs)])


def _blocks(log: NDArray[np.int64], blocks: int) -> NDArray[np.int64]:
    """Block of each sample: two or more of each log, or several whole logs in one where there are more logs than blocks."""
    names = np.unique(log)
    if len(names) > blocks:
        return np.asarray(np.searchsorted(names, log) * blocks // len(names))
    each = max(2, round(blocks / len(names)))
    block = np.empty(len(log), dtype=np.int64)
    for position, k in enumerate(names):
        mine = np.flatnonzero(log == k)
        block[mine] = position * each + np.arange(len(mine)) * each // len(mine)
    return block


def _smooth(item: ThinnedPiece) -> Array:
    """Torque of a whole stretch, without outliers, filtered like the motion."""
    known, part = _known(item), item.part
    if known is not None:
        return known
    tau = np.asarray(part.tau if part.external is None else part.tau + part.external)  # type: ignore[operator]
    return _kept(item, lowpass(_without_outliers(tau), part.rate, item.cutoff))


def _known(item: ThinnedPiece) -> Array | None:
    """Its torque, where it has been made, here or elsewhere."""
    cutoff, made = _SMOOTH.get(item.part, (None, None))
    return made if cutoff == item.cutoff else None


def _kept(item: ThinnedPiece, made: Array) -> Array:
    if len(item.part) <= _SHORT:
        made = stored(made)
        _SMOOTH[item.part] = item.cutoff, made
    return made


def forget(segments: Iterable[Segment]) -> None:
    """Lets go of the smoothed torques of motion that has been judged.

    Args:
        segments: The motion.
    """
    for segment in segments:
        _SMOOTH.pop(segment, None)


#: Cut-off and smoothed torque of short pieces, until these are judged: each is looked at alone, with some others and with all.
_SMOOTH: WeakKeyDictionary[Segment, tuple[float, Array]] = WeakKeyDictionary()
_SHORT = 20_000


def _without_outliers(tau: Array) -> Array:
    """Single samples far from their neighbours replaced by the neighbours' median: they are the estimators' matter."""
    out = room(tau.shape)
    for j, x in enumerate(tau.T):
        usual = running_median(x, _NEIGHBOURS)
        away = np.abs(x - usual)
        out[:, j] = np.where(away > max(_OUTLIER * quantiles(away, 0.5)[0], _FELT * float(x.std())), usual, x)
    return out
