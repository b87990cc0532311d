"""Contact with the surroundings: blocks of a log with errors far beyond those of the others, and pushes."""

from __future__ import annotations

import numpy as np

from ...linalg import Array, positive
from ..evidence import RigidEvidence, comparable, in_sample_each, material, unexplained
from ..grams import EXACT
from .change import Change

#: A block contains contact if the errors of all joints exceed the usual by this mean logarithm, and those of two joints by
#: this fraction of the squared torque; or if one joint exceeds the second fraction and this multiple of its usual square.
#: In-sample, the block must also exceed the last multiple of a joint's usual square, and the usual one by the first fraction: a
#: pose or speed that only this block shows is extrapolated held out, and explained in-sample.
EVERYWHERE, PART, PART_OF_ONE, OUTLYING, OUTLYING_SEEN = 1.0, 0.15**2, 1.0, 9.0, 4.0
#: Blocks of a push, and least gain of its torques in the sum over the joints of the logarithms of their residuals: two joints
#: lose a quarter of their residual each, or one nearly the half. Only rows count
#: whose push is at least the last fraction of their effort: an almost exact row may gain as much by unmodelled friction.
_PUSHED, PUSH, _FELT = 2, 0.6, 0.02


def find_contact(found: RigidEvidence, squares: Array, fitted: Array, variance: Array) -> Change | None:
    """Finds contact: blocks with errors far beyond those of the others, both held out and in-sample.

    Args:
        found: Evidence of the log alone, blocks in order of time.
        squares: Squared held-out errors by block, shape (B, n).
        fitted: Squared in-sample errors by block, shape (B, n).
        variance: From :func:`.prediction_variance`, shape (B, n).
    """
    mean, seen = squares / found.count[:, None], fitted / found.count[:, None]
    usual = np.maximum(_median(mean), (EXACT * found.size) ** 2)
    moving = found.moving.sum(axis=0) / found.count.sum()  # sizes are means over all samples, in which a joint may mostly rest
    usual = np.where(comparable(variance, np.eye(len(mean))), usual, np.maximum(usual, mean))
    above = (mean - usual) * moving / found.size**2
    acts = (mean > 0).any(axis=0)
    together = 0.5 * np.log(positive(mean[:, acts]) / usual[:, acts]).mean(axis=1) > EVERYWHERE
    several = (above > PART).sum(axis=1) > 1
    # of a joint that stands out held out alone, the pose is only far from those of the other blocks
    typical = np.maximum(_median(seen), (EXACT * found.size) ** 2)
    stands_out = (seen > OUTLYING_SEEN * typical) & ((seen - typical) * moving / found.size**2 > PART)
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


def find_push(found: RigidEvidence, effort_map: Array, weights: Array, fitted: Array, variance: Array) -> Change | None:
    """Finds a push: two adjacent blocks with an additional constant torque in every joint.

    The block errors alone do not show it, because offsets, gravity and friction of all blocks absorb part of it.

    Args:
        found: Evidence of the log alone, blocks in order of time.
        effort_map: Factor of each logged effort in each row, shape (n², 1).
        weights: Weights of the rows, shape (n,).
        fitted: Squared in-sample errors by block, shape (B, n, 1).
        variance: From :func:`.prediction_variance`, shape (B, n).
    """
    blocks = len(found.count)
    before = unexplained(found, fitted, effort_map)[:, 0]
    number, begin = np.arange(blocks), np.arange(1, blocks - _PUSHED)[:, None]
    if not len(begin):
        return None
    pushed = ((number >= begin) & (number < begin + _PUSHED)).astype(float)
    after = in_sample_each(found, "offset", pushed, effort_map, weights)
    tells = comparable(variance, pushed) & (before**2 - after**2 > _FELT**2)
    gains = np.where(tells, np.log(before / after), 0.0)
    k = int(np.argmax(gains.sum(axis=1)))
    if gains[k].sum() < PUSH or not material(before, after[k]):
        return None
    ends = (k + 1) / blocks, (k + 1 + _PUSHED) / blocks
    return Change("contact", *ends, False, int(np.argmax(gains[k])), float(gains[k].sum()))


def _median(squares: Array) -> Array:
    """Median of each joint's squares, shape (B, n), over the blocks in which it moves, shape (n,)."""
    return np.array([np.median(x[x > 0]) if (x > 0).any() else 0.0 for x in squares.T])
