"""Alternative computations of base parameters: Gauss-Jordan elimination (Szabó 2021), singular vectors (Gautier 2013).

The default is QR (:func:`.base.split_by_distance`). These two decide the rank by pivots and by singular values instead of
distances; the agreement of all three in span and independent columns validates each.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..errors import ModelError, check_known
from ..linalg import Array
from .base import Split, split_by_distance


def split_function(method: str) -> Callable[[Array, float], Split]:
    """Returns one of the three split functions by name.

    Args:
        method: Any of "qr", "rref" and "svd".

    Returns:
        The function, for :func:`.base.reduce_factor`.

    Raises:
        ModelError: Unknown name.
    """
    known = {"qr": split_by_distance, "rref": split_by_elimination, "svd": split_by_svd}
    check_known("reduction", method, known, ModelError)
    return known[method]


def split_by_elimination(columns: Array, tolerance: float) -> Split:
    """Splits by reduced row echelon form with row pivoting (Szabó 2021, §3).

    Args:
        columns: Columns of about unit norm, shape (k, m).
        tolerance: A column whose remainder is at most this long is not a pivot column.

    Returns:
        The split; its distances are the norms of the remainders after elimination.
    """
    work = columns.copy()
    pivots: list[int] = []
    accepted, rejected = np.inf, []
    for k in range(columns.shape[1]):
        row = len(pivots)
        rest = float(np.linalg.norm(work[row:, k]))
        if row == len(work) or rest <= tolerance:
            rejected.append(rest)
            continue
        best = row + int(np.argmax(np.abs(work[row:, k])))
        work[[row, best]] = work[[best, row]]
        work[row] /= work[row, k]
        others = np.arange(len(work)) != row
        work[others] -= np.outer(work[others, k], work[row])
        pivots.append(k)
        accepted = min(accepted, rest)
    dependent = [k for k in range(columns.shape[1]) if k not in set(pivots)]
    return Split(pivots, dependent, work[: len(pivots)][:, dependent], accepted, np.array(rejected))


def split_by_svd(columns: Array, tolerance: float) -> Split:
    """Splits by the null space ``V2``: dependent columns are chosen such that its rows are regular (Gautier 2013).

    A column depends on those before it exactly if a null vector ends there; rows of ``V2`` are therefore chosen from the end.

    Args:
        columns: Columns of about unit norm, shape (k, m).
        tolerance: Singular values below this count as zero.

    Returns:
        The split; its distances are singular values.
    """
    count = columns.shape[1]
    _, values, right = np.linalg.svd(columns, full_matrices=True)
    values = np.append(values, np.zeros(count - len(values)))
    rank = int((values > tolerance).sum())
    null = right[rank:].T
    chosen: list[int] = []
    basis = np.zeros((count - rank, 0))
    for k in range(count)[::-1]:
        if len(chosen) == count - rank:
            break
        rest = null[k] - basis @ (basis.T @ null[k])
        rest = rest - basis @ (basis.T @ rest)
        size = float(np.linalg.norm(rest))
        if size > tolerance:
            chosen.append(k)
            basis = np.column_stack([basis, rest / size])
    dependent = sorted(chosen)
    independent = np.setdiff1d(np.arange(count), dependent)
    K = -np.linalg.solve(null[dependent].T, null[independent].T).T if dependent else np.zeros((count, 0))
    accepted = float(values[rank - 1]) if rank else np.inf
    neglected = np.full(len(dependent), float(values[rank:].max(initial=0.0)))
    return Split(independent.tolist(), dependent, K, accepted, neglected)
