"""Tests whether the robot is the same within and between logs: payload, friction, gains, contact.

A part of a log differs if separate parameters for it (of the last body, of the friction, of the gains) predict held-out
blocks decisively better than one set of parameters for all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ....linalg import Array
from ..evidence import (
    MATERIAL,
    RigidEvidence,
    held_out,
    in_sample,
    in_sample_each,
    material,
    significance,
    unexplained,
)
from ..gram_fit import solved
from ..grams import COULOMB, EXACT, OFFSET
from .differing_parts import differing_part
from .outlying_logs import LogResidual

#: Least gain of a change in the sum of the rows' log relative residuals, and least ratio to its standard error.
DECISIVE, SIGNIFICANT = 0.4, 3.5
#: A block contains contact if the errors of all joints exceed the usual by this mean logarithm, and those of two joints by
#: this fraction of the squared torque; or if one joint exceeds the second fraction and this multiple of its usual square.
#: In-sample, the block must also exceed the last multiple of a joint's usual square.
EVERYWHERE, PART, PART_OF_ONE, OUTLYING, OUTLYING_SEEN = 1.0, 0.15**2, 1.0, 9.0, 4.0
#: Blocks of a push, and least gain of its torques in the sum of logarithms: fault-free logs, real and simulated, slow and
#: poor, reach 0.30; 0.3 of the efforts' standard deviation for a tenth of the UR10e's logs gives 1.1 to 1.9.
_PUSHED, PUSH = 2, 0.6
#: Growth of an offset along a log over the effort's standard deviation, and its least ratio to the jackknife error: fault-free
#: logs, real and simulated, reach 3.4 above 0.1 and 2.4 above 0.24; 0.3 of the deviation on one UR10e joint gives 4 to 10.
GROWTHS = ((0.1, 4.5), (0.3, 3.0))
#: The same for several logs together: fault-free ones reach 2.7 errors above 0.05.
GROWTHS_TOGETHER = ((0.06, 3.3),)
#: Correlation of offset and smoothed sign of the velocity above which a joint moves in one direction only.
_SWEPT = 0.6
KINDS = ("payload", "friction", "gain")
#: Kinds of change that are compared between logs: also of all bodies, and of all parameters.
EVERYTHING = "everything"
BETWEEN_LOGS = (*KINDS, "zeros or inertias", EVERYTHING)


@dataclass(frozen=True)
class Change:
    """A change along a log.

    Attributes:
        kind: One of :data:`KINDS`, or ``"contact"``.
        begin, end: Fractions of the log between which it differs; a drift goes from 0 to 1.
        drift: Whether it grows along the log instead of being temporary.
        joint: The joint with the largest gain.
        gain: Gain in the sum of the logarithms.
    """

    kind: str
    begin: float
    end: float
    drift: bool
    joint: int
    gain: float


@dataclass(frozen=True, eq=False)
class Growth:
    """Growth of the offsets along one log.

    Attributes:
        size: Growth from start to end, over the efforts' standard deviations, shape (n,).
        error: Its jackknife error over blocks of time, shape (n,).
    """

    size: Array
    error: Array

    def told(self, limits: Sequence[tuple[float, float]]) -> int | None:
        """Returns the joint whose offset exceeds the limits most clearly, or None.

        Args:
            limits: Least sizes, each with its least ratio to the error.

        Returns:
            Index of the joint.
        """
        errors = np.abs(self.size) / np.maximum(self.error, 1e-12)
        told = np.any([(np.abs(self.size) > least) & (errors > times) for least, times in limits], axis=0)
        return int(np.argmax(np.where(told, errors, 0.0))) if told.any() else None

    @staticmethod
    def together(logs: Sequence[Growth]) -> Growth:
        """Mean growth of several logs, with an error that gives their combined significance.

        Args:
            logs: The growths of the logs.

        Returns:
            Their mean; its ratio to the error is the sum of the logs' ratios over the root of their number (Stouffer et al.
            1949).
        """
        size = np.mean([log.size for log in logs], axis=0)
        z = np.sum([log.size / np.maximum(log.error, 1e-12) for log in logs], axis=0) / np.sqrt(len(logs))
        return Growth(size, np.abs(size) / np.maximum(np.abs(z), 1e-12))


@dataclass(frozen=True, eq=False)
class Alone:
    """Results of one log by itself.

    Attributes:
        change: The change along it that explains most, or None.
        growth: Growth of the offsets.
        left: Residual of the efforts with the log's own parameters.
    """

    change: Change | None
    growth: Growth
    left: LogResidual


@dataclass(frozen=True, eq=False)
class _Steady:
    """Residuals with one set of parameters.

    Attributes:
        left: Relative residuals of the rows, shape (n,).
        squares: Squared errors by block, shape (B, n).
        weights: Weights of the rows from their residuals, shape (n,).
        seen: Sum of the logarithms of the in-sample relative residuals.
    """

    left: Array
    squares: Array
    weights: Array
    seen: float

    @classmethod
    def of(cls, found: RigidEvidence, order: Array) -> _Steady:
        errors = held_out(found, order, 1.0 / (found.usual * found.size) ** 2)
        left = unexplained(found, errors.squares, order)[:, 0]
        weights = 1.0 / (left * found.size) ** 2
        seen = unexplained(found, in_sample(found, order, weights), order)
        return cls(left, errors.squares[:, :, 0], weights, float(np.log(seen).sum()))


def _changes(
    found: RigidEvidence, weights: Array, base: _Steady, order: Array, kinds: Sequence[str] = KINDS
) -> list[tuple[str, float, int] | None]:
    """Kinds of change for given weights of the blocks, if decisive.

    Args:
        weights: Weight of each change in each block, shape (W, B).
        base: Residuals without a change.
        order: The reading of the efforts, shape (n², 1).
        kinds: Kinds to try, simplest first.

    Returns:
        For each change its kind, gain and the joint with the largest gain; None if nothing is decisive.
    """
    if base.left.max() <= MATERIAL:
        return [None] * len(weights)  # no material residual is left to explain
    # the in-sample error must also improve: held out, a poorly excited log may gain by chance
    left = [np.log(in_sample_each(found, kind, weights, order, base.weights)).sum(axis=1) for kind in kinds]
    gained = base.seen - np.array(left) > DECISIVE
    return [
        _change(found, weight, base, order, [kind for kind, good in zip(kinds, some, strict=True) if good])
        for weight, some in zip(weights, gained.T, strict=True)
    ]


def _change(
    found: RigidEvidence, weight: Array, base: _Steady, order: Array, kinds: Sequence[str]
) -> tuple[str, float, int] | None:
    """One change of :func:`_changes`, with weights of shape (B,), tested on held-out blocks."""
    best: tuple[str, float, int] | None = None
    for kind in kinds:
        changed = found.changing(kind, weight)
        errors = held_out(changed, order, base.weights)
        after = unexplained(changed, errors.squares, order)[:, 0]
        gains = np.log(base.left) - np.log(after)
        area = found.count[:, None] * found.size**2
        errors_away = significance(base.squares / area, errors.squares[:, :, 0] / area)
        gain = float(gains.sum())
        decisive = gain > DECISIVE and errors_away > SIGNIFICANT and (best is None or gain > best[1] + DECISIVE)
        if decisive and material(base.left, after):
            best = kind, gain, int(np.argmax(gains))
    return best


def within(found: RigidEvidence, reading: Array) -> Alone:
    """Finds changes along one log.

    Args:
        found: Evidence of the log alone, blocks in order of time.
        reading: The reading of the efforts, shape (n²,).

    Returns:
        The results of the log by itself.
    """
    order = reading[:, None]
    base = _Steady.of(found, order)
    grown, along = _growth(found, order, base.weights), _along(len(found.count))
    usual = 1.0 / (found.usual * found.size) ** 2
    fitted = in_sample(found, order, usual)
    best: Change | None = None
    profiles = list(_profiles(len(found.count)))
    changes = _changes(found, np.array([weight for *_, weight in profiles]), base, order)
    for (begin, end, drift, weight), change in zip(profiles, changes, strict=True):
        testable = change is None or change[0] == "payload" or _both_ways(found, weight)[change[2]]
        if change is not None and testable and (best is None or change[1] > best.gain):
            best = Change(change[0], begin, end, drift, change[2], change[1])
    if best is None:
        best = _contact(found, base.squares, fitted[:, :, 0]) or _push(found, order, usual, fitted)
    if best is None and (part := differing_part(found, order, usual)) is not None:
        best = Change("friction", part.begin, part.end, False, part.joint, part.gain)
    if best is None and (joint := grown.told(GROWTHS)) is not None and _both_ways(found, along)[joint]:
        best = _offset_drift(found, order, base, along, joint)
    return Alone(best, grown, LogResidual(unexplained(found, fitted, order)[:, 0], base.left, found.size))


def in_all(found: RigidEvidence, log_of_block: NDArray[np.int64], reading: Array, growths: Sequence[Growth]) -> Change | None:
    """Finds a drift common to several logs, which may be significant only for all of them together.

    Args:
        found: Evidence of all logs.
        log_of_block: Log of each block, shape (B,); blocks of a log in order of time.
        reading: The reading of the efforts, shape (n²,).
        growths: Growth of the offsets of each log.

    Returns:
        The change, or None, also for a single log, for which :func:`within` is more sensitive.
    """
    if len(growths) < 2:
        return None
    order = reading[:, None]
    base = _Steady.of(found, order)
    along = np.concatenate([_along(int(count)) for count in np.bincount(log_of_block)])
    (change,) = _changes(found, along[None], base, order)
    swept = ~_both_ways(found, along)
    if change is not None and not (change[0] == "friction" and swept[change[2]]):
        return Change(change[0], 0.0, 1.0, True, change[2], change[1])
    joint = Growth.together(growths).told(GROWTHS_TOGETHER)
    return None if joint is None or swept[joint] else _offset_drift(found, order, base, along, joint)


def _both_ways(found: RigidEvidence, weight: Array) -> NDArray[np.bool_]:
    """Whether joints move in both directions, in a changed part and in the rest, or in the whole log for a drift.

    Otherwise offset, Coulomb friction and torques that depend on the position are collinear there, and time is a function of
    the position.

    Args:
        weight: Weight of the change in each block, shape (B,); negative for a drift.

    Returns:
        Shape (n,).
    """
    parts = [np.ones(len(weight))] if (weight < 0).any() else [weight, 1.0 - weight]
    at = found.inertial + OFFSET, found.inertial + COULOMB
    out = np.ones(found.n, dtype=bool)
    for part in parts:
        own = np.tensordot(part, found.gram[:, :, at][:, :, :, at], axes=1)
        likeness = np.abs(own[:, 0, 1]) / np.maximum(np.sqrt(own[:, 0, 0] * own[:, 1, 1]), 1e-300)
        out &= (likeness < _SWEPT) & (own[:, 0, 0] > 0)  # at rest it has no samples
    return out


def _along(blocks: int) -> Array:
    """Time of each block of a log, from -0.5 to 0.5, shape (B,)."""
    return (np.arange(blocks) + 0.5) / blocks - 0.5


def _profiles(blocks: int) -> Iterator[tuple[float, float, bool, Array]]:
    middle = (np.arange(blocks) + 0.5) / blocks
    yield 0.0, 1.0, True, _along(blocks)
    for begin, end in ((0.5, 1.0), (1 / 3, 2 / 3), (0.0, 1 / 3), (2 / 3, 1.0)):
        yield begin, end, False, ((middle > begin) & (middle < end)).astype(float)


def _push(found: RigidEvidence, order: Array, weights: Array, fitted: Array) -> Change | None:
    """Finds a push: two adjacent blocks with an additional constant torque in every joint.

    The block errors alone do not show it, because offsets, gravity and friction of all blocks absorb part of it.
    """
    blocks = len(found.count)
    before = unexplained(found, fitted, order)[:, 0]
    number, begin = np.arange(blocks), np.arange(1, blocks - _PUSHED)[:, None]
    if not len(begin):
        return None
    pushed = ((number >= begin) & (number < begin + _PUSHED)).astype(float)
    gains = np.log(before / in_sample_each(found, "offset", pushed, order, weights))
    k = int(np.argmax(gains.sum(axis=1)))
    if gains[k].sum() < PUSH or not material(before, before * np.exp(-gains[k])):
        return None
    ends = (k + 1) / blocks, (k + 1 + _PUSHED) / blocks
    return Change("contact", *ends, False, int(np.argmax(gains[k])), float(gains[k].sum()))


def _growth(found: RigidEvidence, order: Array, weights: Array) -> Growth:
    """Growth of the offsets along a log: one number per joint, whose error is a sharper test than a held-out gain."""
    blocks = len(found.count)
    changed = found.changing("offset", _along(blocks))
    total = changed.total[None]
    parts = np.concatenate([total, total - changed.gram])  # all blocks, and without each
    counts = found.count.sum() - np.append(0.0, found.count)
    at = changed.gram.shape[2] - found.n - 1
    size = solved(parts, counts, found.inertial, order.reshape(found.n, found.n, -1), weights)[:, :, at, 0] / found.size
    return Growth(size[0], np.sqrt((blocks - 1) / blocks * np.sum((size[1:] - size[1:].mean(axis=0)) ** 2, axis=0)))


def _offset_drift(found: RigidEvidence, order: Array, base: _Steady, along: Array, joint: int) -> Change:
    """The change of an offset that grows with the time ``along`` of the blocks, shape (B,)."""
    before = unexplained(found, in_sample(found, order, base.weights), order)[joint, 0]
    changed = found.changing("offset", along)
    after = unexplained(changed, in_sample(changed, order, base.weights), order)[joint, 0]
    return Change("friction", 0.0, 1.0, True, joint, float(np.log(before / after)))


def _contact(found: RigidEvidence, squares: Array, fitted: Array) -> Change | None:
    """Contact: blocks with errors far beyond those of the others, both held out and in-sample."""
    mean, seen = squares / found.count[:, None], fitted / found.count[:, None]
    usual = np.maximum(_median(mean), (EXACT * found.size) ** 2)
    above = (mean - usual) / found.size**2
    together = 0.5 * np.log(np.maximum(mean, 1e-300) / usual).mean(axis=1) > EVERYWHERE
    several = (above > PART).sum(axis=1) > 1
    # of a joint that stands out held out alone, the pose is only far from those of the other blocks
    stands_out = seen > OUTLYING_SEEN * np.maximum(_median(seen), (EXACT * found.size) ** 2)
    one = stands_out & (mean > OUTLYING * usual) & (above > PART_OF_ONE)
    where = np.flatnonzero((together & several & (stands_out & (above > PART)).any(axis=1)) | one.any(axis=1))
    # the first and last block are excluded: predicted from one side only, and with starts and stops
    where = where[(where > 0) & (where < len(mean) - 1)]
    if not len(where) or len(where) > 0.34 * len(mean):
        return None
    joint = int(np.argmax((mean / usual).max(axis=0)))
    blocks = len(mean)
    gain = float(0.5 * np.log((mean / usual).max()))
    return Change("contact", where[0] / blocks, (where[-1] + 1) / blocks, False, joint, gain)


def _median(squares: Array) -> Array:
    """Median of each joint's squares, shape (B, n), over the blocks in which it moves, shape (n,)."""
    return np.array([np.median(x[x > 0]) if (x > 0).any() else 0.0 for x in squares.T])


def between(
    found: RigidEvidence,
    log_of_block: NDArray[np.int64],
    reading: Array,
    alone: Sequence[LogResidual],
    kinds: Sequence[str] = BETWEEN_LOGS,
) -> dict[int, tuple[str, float, int]]:
    """Finds logs that are inconsistent with the others.

    Args:
        found: Evidence of all logs.
        log_of_block: Log of each block, shape (B,).
        reading: The reading of the efforts, shape (n²,).
        alone: Residuals of each log with its own parameters.
        kinds: Kinds of change to try, simplest first.

    Returns:
        Log → kind of change, gain and joint. If only two logs differ, both are returned.
    """
    order = reading[:, None]
    logs = np.unique(log_of_block)
    if len(logs) < 2:
        return {}
    base = _Steady.of(found, order)
    some = [kind for kind in kinds if kind != EVERYTHING]
    changes = _changes(found, (log_of_block == logs[:, None]).astype(float), base, order, some)
    odd: dict[int, tuple[str, float, int]] = {}
    for log, change in zip(map(int, logs), changes, strict=True):
        apart = _apart(found, log_of_block == log, base, order, alone[log]) if EVERYTHING in kinds else None
        if apart is not None and (change is None or apart[1] > change[1] + DECISIVE):
            change = apart
        if change is not None:
            odd[log] = change
    if not odd:
        return {}
    best = max(odd, key=lambda log: odd[log][1])
    close = {log: change for log, change in odd.items() if change[1] > 0.8 * odd[best][1]}
    return close


def _apart(
    found: RigidEvidence, mine: NDArray[np.bool_], base: _Steady, order: Array, alone: LogResidual
) -> tuple[str, float, int] | None:
    """Change of all parameters: one log, whose blocks are ``mine``, explained by itself, and the others without it."""
    if base.left.max() <= MATERIAL:
        return None
    others = found.of_blocks(~mine)
    squares, seen = base.squares.copy(), base.squares.copy()
    squares[~mine] = held_out(others, order, base.weights).squares[:, :, 0]
    seen[~mine] = in_sample(others, order, base.weights)[:, :, 0]
    for left, own in ((squares, alone.elsewhere), (seen, alone.seen)):
        left[mine] = found.count[mine, None] * (own * alone.size) ** 2
    after, fitted = (unexplained(found, left[:, :, None], order)[:, 0] for left in (squares, seen))
    gains = np.log(base.left) - np.log(after)
    area = found.count[:, None] * found.size**2
    gain = float(gains.sum())
    decisive = gain > DECISIVE and significance(base.squares / area, squares / area) > SIGNIFICANT
    if not decisive or base.seen - float(np.log(fitted).sum()) < DECISIVE or not material(base.left, after):
        return None
    return EVERYTHING, gain, int(np.argmax(gains))
