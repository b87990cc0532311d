"""The same base parameters by other arithmetic: Gauss-Jordan elimination (Szabó 2021), singular vectors (Gautier 2013).

QR (:func:`.base.reduce_factor`) is what the tool uses. These two decide the rank by pivots and by singular values instead
of by distances; that all three agree in span and in the independent columns is a check of each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from ..errors import ModelError, nearest
from ..linalg import Array
from .base import RANK_TOLERANCE, BaseParameters, assembled, reduce_factor, scaled_columns, with_ill_conditioned

Reduction = Callable[[Array, Sequence[str], "NDArray[np.intp] | None", float, "Array | None"], BaseParameters]


def reduction(method: str) -> Reduction:
    """One of the three reductions by name.

    Args:
        method: Any of "qr", "rref" and "svd".

    Returns:
        The function.

    Raises:
        ModelError: Another name.
    """
    known: dict[str, Reduction] = {"qr": reduce_factor, "rref": reduce_by_elimination, "svd": reduce_by_svd}
    if method not in known:
        raise ModelError("unknown reduction", got=repr(method), expected="qr, rref or svd", remedy=nearest(method, list(known)))
    return known[method]


def reduce_by_elimination(
    R: Array,
    names: Sequence[str],
    order: NDArray[np.intp] | None = None,
    tolerance: float = RANK_TOLERANCE,
    scale: Array | None = None,
) -> BaseParameters:
    """Base parameters by reduced row echelon form with row pivoting (Szabó 2021, §3).

    Args:
        R: Shape (k, p): the regressor, or its triangular factor.
        names: Names of the p columns.
        order: Permutation of range(p); natural if None.
        tolerance: A pivot column whose rest is shorter than this is none.
        scale: What counts as size one in each column, shape (p,); its own length if None.

    Returns:
        The reduction; its distances are what elimination leaves of a column.
    """
    scaled, sizes, zero = scaled_columns(R, tolerance, scale)
    places = [int(j) for j in (range(R.shape[1]) if order is None else order) if not zero[j]]
    work = scaled[:, places].copy()
    pivots: list[int] = []
    accepted, rejected = np.inf, []
    for k in range(len(places)):
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
    others = [k for k in range(len(places)) if k not in set(pivots)]
    K = work[: len(pivots)][:, others]
    independent, dependent = [places[k] for k in pivots], [places[k] for k in others]
    return with_ill_conditioned(assembled(names, independent, dependent, K, sizes, accepted, np.array(rejected)), scaled, zero)


def reduce_by_svd(
    R: Array,
    names: Sequence[str],
    order: NDArray[np.intp] | None = None,
    tolerance: float = RANK_TOLERANCE,
    scale: Array | None = None,
) -> BaseParameters:
    """Base parameters from the null space ``V2``: dependent ones are chosen so that its rows are regular (Gautier 2013).

    A column depends on those before it exactly where a null vector ends there; so rows of ``V2`` are chosen from the end.

    Args:
        R: Shape (k, p): the regressor, or its triangular factor.
        names: Names of the p columns.
        order: Permutation of range(p); natural if None.
        tolerance: Singular values below this are zero.
        scale: What counts as size one in each column, shape (p,); its own length if None.

    Returns:
        The reduction; its distances are singular values.
    """
    scaled, sizes, zero = scaled_columns(R, tolerance, scale)
    places = np.array([int(j) for j in (range(R.shape[1]) if order is None else order) if not zero[j]], dtype=np.intp)
    _, values, right = np.linalg.svd(scaled[:, places], full_matrices=True)
    values = np.append(values, np.zeros(len(places) - len(values)))
    rank = int((values > tolerance).sum())
    null = right[rank:].T
    chosen: list[int] = []
    basis = np.zeros((len(places) - rank, 0))
    for k in range(len(places))[::-1]:
        if len(chosen) == len(places) - rank:
            break
        rest = null[k] - basis @ (basis.T @ null[k])
        rest = rest - basis @ (basis.T @ rest)
        size = float(np.linalg.norm(rest))
        if size > tolerance:
            chosen.append(k)
            basis = np.column_stack([basis, rest / size])
    dependent = sorted(chosen)
    independent = np.setdiff1d(np.arange(len(places)), dependent)
    K = -np.linalg.solve(null[dependent].T, null[independent].T).T if dependent else np.zeros((len(places), 0))
    accepted = float(values[rank - 1]) if rank else np.inf
    neglected = np.full(len(dependent), float(values[rank:].max(initial=0.0)))
    found = assembled(names, places[independent].tolist(), places[dependent].tolist(), K, sizes, accepted, neglected)
    return with_ill_conditioned(found, scaled, zero)
