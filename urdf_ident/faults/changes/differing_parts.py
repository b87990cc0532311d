"""Parts of a log in which one joint has additional dry friction or offset: a dragging brake, a cable, a sensor's zero.

The effect of one additional column is computed without another fit (score test, Rao 1948): its squared product with the
residual, over the square of its part orthogonal to the other columns.
"""

from __future__ import annotations

import numpy as np

from ...linalg import Array
from ..evidence import comparable
from ..gram_fit import new_in, solved
from ..grams import COULOMB, EXACT, OFFSET, Grams
from .change import Change

#: Least torque of the part relative to the joint's effort, and least gain in the logarithm of the residual: the part's own
#: torque takes away nearly the half of what its friction, taken from the rest of the log, leaves.
_LEAST, _GAIN = 0.1, 0.6
#: Minimum blocks of a part, and its largest share of a log, above which the rest is the odd part.
_FEWEST, _MOST = 2, 0.6
#: Orthogonal fraction of a column's square below which it is not determined.
_DEPENDENT = 1e-3


def differing_part(found: Grams, effort_map: Array, weights: Array, variance: Array) -> Change | None:
    """Finds the part of a log whose own friction or offset explains one joint's effort best, if decisively.

    Args:
        found: Grams of the log alone, blocks in order of time.
        effort_map: Factor of each logged effort in each row, shape (n², 1).
        weights: One over the variance of each row, shape (n,).
        variance: From :func:`.prediction_variance`, shape (B, n).
    """
    blocks, rows = len(found.count), float(found.count.sum())
    lengths = range(_FEWEST, int(_MOST * blocks) + 1)
    spans = [(begin, begin + length) for length in lengths for begin in range(blocks - length + 1)]
    if not spans:
        return None
    number = np.arange(blocks)
    acts = np.array([(number >= begin) & (number < end) for begin, end in spans], dtype=float)
    left, explained = _explained(found, effort_map, weights, acts)
    size = np.sqrt(rows) * found.size
    least = (EXACT * size) ** 2
    gains = 0.5 * np.log(np.maximum(left, least) / np.maximum(left - explained, least))
    gains[explained < (_LEAST * size) ** 2] = 0.0
    gains[~comparable(variance, acts)] = 0.0
    gains[~(found.both_ways(acts) | found.both_ways(1.0 - acts))] = 0.0  # one motion there and one back differ in any position
    span, joint = np.unravel_index(int(np.argmax(gains)), gains.shape)
    if gains[span, joint] < _GAIN:
        return None
    begin, end = spans[span]
    return Change("friction", begin / blocks, end / blocks, False, int(joint), float(gains[span, joint]))


def _explained(found: Grams, effort_map: Array, weights: Array, acts: Array) -> tuple[Array, Array]:
    """Residual squares of each row, shape (n,), and the squares explained by a column that acts in some blocks, (W, n)."""
    n, m = found.n, found.inertial
    x = solved(found.total[None], found.count.sum(keepdims=True), m, effort_map.reshape(n, n, 1), weights)[0, :, :, 0]
    explained = np.zeros((len(acts), n))
    for column in (m + OFFSET, m + COULOMB):
        shared = np.tensordot(acts, found.gram[:, :, column], axes=1)
        square = acts @ found.gram[:, :, column, column]
        new = new_in(found, shared[:, :, :-n], square, weights)
        determined = new > _DEPENDENT * square
        explained = np.maximum(
            explained, np.where(determined, np.sum(shared * x, axis=2) ** 2 / np.where(determined, new, 1.0), 0.0)
        )
    return np.einsum("ik,ikl,il->i", x, found.total, x), explained
