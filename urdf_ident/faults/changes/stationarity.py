"""Tests whether the robot is the same along a log: payload, friction, gains, contact."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ...linalg import Array, BoolArray, IntArray
from ..evidence import RigidEvidence, in_sample, prediction_variance, unexplained
from .change import GAIN_BY_LOG, SCALE_BY_LOG, Change, Unchanged, decisive_changes
from .contact import find_contact, find_push
from .differing_parts import differing_part
from .drift import GROWTHS, GROWTHS_TOGETHER, Growth, along_log, growth, offset_drift, scale_change
from .outlying_logs import LogResidual

#: Index of the last log from which on the logs have an order: of two, one differs.
_IN_ORDER = 2


@dataclass(frozen=True, eq=False)
class LogChanges:
    """Results of one log by itself.

    Attributes:
        change: The change along it that explains most, or None.
        left: Residual of the efforts with the log's own parameters.
    """

    change: Change | None
    growth: Growth
    left: LogResidual


def within(found: RigidEvidence, effort_map: Array, turns: float, reversals: Array) -> LogChanges:
    """Finds changes along one log.

    Args:
        found: Evidence of the log alone, blocks in order of time.
        effort_map: Factor of each logged effort in each row, shape (n², 1).
        turns: Reversals of a joint at different poses (median).
        reversals: Reversals of each joint, shape (n,).

    Returns:
        The results of the log by itself.
    """
    base = Unchanged.of(found, effort_map)
    grown, along = growth(found, effort_map, base.weights, reversals), along_log(len(found.count))
    usual = 1.0 / (found.usual * found.size) ** 2
    fitted = in_sample(found, effort_map, usual)
    best: Change | None = None
    profiles = list(_profiles(len(found.count)))
    changes = decisive_changes(found, np.array([weight for *_, weight in profiles]), base, effort_map)
    for (begin, end, drift, weight), change in zip(profiles, changes, strict=True):
        testable = change is None or change[0] == "payload" or _both_ways(found, weight)[change[2]]
        if change is not None and testable and (best is None or change[1] > best.gain):
            best = Change(change[0], begin, end, drift, change[2], change[1])
    if best is None:
        variance = prediction_variance(found, usual)
        best = find_contact(found, base.squares, fitted[:, :, 0], variance)
        best = best or find_push(found, effort_map, usual, fitted, variance)
        best = best or differing_part(found, effort_map, usual, variance)
    if best is None and (joint := grown.significant(GROWTHS)) is not None and _both_ways(found, along)[joint]:
        best = offset_drift(found, effort_map, base, along, joint)
    best = best or _drift(scale_change(found, effort_map, base, along, min(len(along) - 1.0, turns)))
    seen = unexplained(found, fitted, effort_map)[:, 0]
    return LogChanges(best, grown, LogResidual(seen, base.left, found.size, reversals))


def in_all(
    found: RigidEvidence, log_of_block: IntArray, effort_map: Array, growths: Sequence[Growth], turns: float
) -> Change | None:
    """Finds a drift common to several logs, which may be significant only for all of them together, or grow from log to log.

    Args:
        log_of_block: Log of each block, shape (B,); blocks of a log in order of time.
        effort_map: Factor of each logged effort in each row, shape (n², 1).
        growths: Growth of the offsets of each log.
        turns: Reversals of a joint (median) in all logs.

    Returns:
        The change, or None, also for a single log, for which :func:`within` is more sensitive.
    """
    if len(growths) < 2:
        return None
    base = Unchanged.of(found, effort_map)
    along = np.concatenate([along_log(int(count)) for count in np.bincount(log_of_block)])
    (change,) = decisive_changes(found, along[None], base, effort_map)
    swept = ~_both_ways(found, along)
    if change is not None and not (change[0] == "friction" and swept[change[2]]):
        return _drift(change)
    joint = Growth.together(growths).significant(GROWTHS_TOGETHER)
    if joint is not None and not swept[joint]:
        return offset_drift(found, effort_map, base, along, joint)
    free = min(len(along) - 1.0, turns)
    ordered = _log_by_log(found, log_of_block, effort_map, base, free) if log_of_block.max() >= _IN_ORDER else None
    return _drift(ordered or scale_change(found, effort_map, base, along, free))


def _log_by_log(
    found: RigidEvidence, log_of_block: IntArray, effort_map: Array, base: Unchanged, free: float
) -> tuple[str, float, int] | None:
    """The scale of all efforts, or of some, that grows from log to log; arguments as for :func:`.scale_change`."""
    order = log_of_block / log_of_block.max() - 0.5
    change = scale_change(found, effort_map, base, order, free)
    if change is None:
        (change,) = decisive_changes(found, order[None], base, effort_map, ["gain"])
    return None if change is None else (SCALE_BY_LOG if change[0] == "scale" else GAIN_BY_LOG, *change[1:])


def _drift(change: tuple[str, float, int] | None) -> Change | None:
    """The change along a whole log, from its kind, gain and joint."""
    return None if change is None else Change(change[0], 0.0, 1.0, True, change[2], change[1])


def _both_ways(found: RigidEvidence, weight: Array) -> BoolArray:
    """Whether joints move in both directions, in a changed part and in the rest, or in the whole log for a drift, shape (n,).

    Otherwise time is also a function of the position.

    Args:
        weight: Weight of the change in each block, shape (B,); negative for a drift.
    """
    parts = [np.ones(len(weight))] if (weight < 0).any() else [weight, 1.0 - weight]
    return np.asarray(found.both_ways(np.array(parts)).all(axis=0))


def _profiles(blocks: int) -> Iterator[tuple[float, float, bool, Array]]:
    middle = (np.arange(blocks) + 0.5) / blocks
    yield 0.0, 1.0, True, along_log(blocks)
    for begin, end in ((0.5, 1.0), (1 / 3, 2 / 3), (0.0, 1 / 3), (2 / 3, 1.0)):
        yield begin, end, False, ((middle > begin) & (middle < end)).astype(float)
