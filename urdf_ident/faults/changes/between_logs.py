"""Logs that are inconsistent with the others: another payload, friction or gain, or other parameters altogether."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...linalg import Array, BoolArray, IntArray
from ..evidence import MATERIAL, RigidEvidence, held_out, in_sample, material, scarcity, significance, unexplained
from .change import DECISIVE, KINDS, SIGNIFICANT, Unchanged, decisive_changes
from .drift import scale_change
from .outlying_logs import LogResidual

#: Kinds of change that are compared between logs on held-out blocks: also of all bodies, and of all parameters.
EVERYTHING = "everything"
BETWEEN_LOGS = (*KINDS, "zeros or inertias", EVERYTHING)


def between(
    found: RigidEvidence,
    log_of_block: IntArray,
    effort_map: Array,
    alone: Sequence[LogResidual],
    turns: float,
    kinds: Sequence[str] = BETWEEN_LOGS,
) -> dict[int, tuple[str, float, int]]:
    """Finds logs that are inconsistent with the others.

    Args:
        log_of_block: Log of each block, shape (B,).
        effort_map: Factor of each logged effort in each row, shape (n², 1).
        alone: Residuals of each log with its own parameters.
        turns: Reversals of a joint (median) in all logs.
        kinds: Kinds of change to try, simplest first; if none is decisive, one scale of all efforts is tried.

    Returns:
        Log → kind of change, gain and joint. If only two logs differ, both are returned.
    """
    logs = np.unique(log_of_block)
    if len(logs) < 2:
        return {}
    errors = SIGNIFICANT * scarcity(turns)
    base = Unchanged.of(found, effort_map)
    some = [kind for kind in kinds if kind != EVERYTHING]
    changes = decisive_changes(found, (log_of_block == logs[:, None]).astype(float), base, effort_map, some, errors)
    odd: dict[int, tuple[str, float, int]] = {}
    for log, change in zip(map(int, logs), changes, strict=True):
        apart = _apart(found, log_of_block == log, base, effort_map, alone[log], errors) if EVERYTHING in kinds else None
        if apart is not None and (change is None or apart[1] > change[1] + DECISIVE):
            change = apart
        if change is not None:
            odd[log] = change
    odd = odd or _scales(found, log_of_block, base, effort_map, turns)
    if not odd:
        return {}
    best = max(odd, key=lambda log: odd[log][1])
    return {log: change for log, change in odd.items() if change[1] > 0.8 * odd[best][1]}


def _scales(
    found: RigidEvidence, log_of_block: IntArray, base: Unchanged, effort_map: Array, turns: float
) -> dict[int, tuple[str, float, int]]:
    """Logs with another scale of all efforts than the others: one number, where gains have one for every joint."""
    odd: dict[int, tuple[str, float, int]] = {}
    logs = np.unique(log_of_block)
    for log in map(int, logs):
        mine = log_of_block == log
        share = found.count[mine].sum() / found.count.sum()
        free = _free(min(turns * share, mine.sum()), min(turns * (1 - share), (~mine).sum()))
        change = scale_change(found, effort_map, base, mine.astype(float), free, len(logs))
        if change is not None:
            odd[log] = change
    return odd


def _free(some: float, others: float) -> float:
    """Degrees of freedom of a difference between two parts of so many independent pieces of one variance (Welch 1947)."""
    if min(some, others) <= 1.0:
        return 1.0
    return (1 / some + 1 / others) ** 2 / (1 / (some**2 * (some - 1)) + 1 / (others**2 * (others - 1)))


def _apart(
    found: RigidEvidence, mine: BoolArray, base: Unchanged, effort_map: Array, alone: LogResidual, errors: float
) -> tuple[str, float, int] | None:
    """Change of all parameters: one log, whose blocks are ``mine``, explained by itself, and the others without it."""
    if base.left.max() <= MATERIAL:
        return None
    others = found.of_blocks(~mine)
    squares, seen = base.squares.copy(), base.squares.copy()
    squares[~mine] = held_out(others, effort_map, base.weights).squares[:, :, 0]
    seen[~mine] = in_sample(others, effort_map, base.weights)[:, :, 0]
    for left, own in ((squares, alone.elsewhere), (seen, alone.seen)):
        left[mine] = found.count[mine, None] * (own * alone.size) ** 2
    after, fitted = (unexplained(found, left[:, :, None], effort_map)[:, 0] for left in (squares, seen))
    gains = np.log(base.left) - np.log(after)
    area = found.count[:, None] * found.size**2
    gain = float(gains.sum())
    decisive = gain > DECISIVE and significance(base.squares / area, squares / area) > errors
    if not decisive or base.seen - float(np.log(fitted).sum()) < DECISIVE or not material(base.left, after):
        return None
    return EVERYTHING, gain, int(np.argmax(gains))
