"""The programme of :mod:`.lmi` with the Euclidean distance in Clarabel's native form, without a modelling layer.

CVXPY (:mod:`.programme`) solves the same problem when this fails; a test compares the two. Compilation by CVXPY takes three
to six times as long as solving such small problems (``scripts/benchmarks/lmi.py``), and its import takes even longer.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..linalg import Array
from .cones import Feasible
from .programme import DataTerm, Point, least_squares_rows

#: Upper triangle of a symmetric 4×4 matrix, column by column, as the solver orders it.
_COLUMN, _ROW = np.tril_indices(4)
#: Off-diagonal entries count twice in the inner product of two symmetric matrices.
_SCALE = np.where(_ROW == _COLUMN, 1.0, np.sqrt(2.0))


def solve_euclidean(feasible: Feasible, data: DataTerm, weight: float, settings: dict[str, Any]) -> tuple[Point | None, str]:
    """Solves the programme with the Euclidean distance by Clarabel.

    In its form, ``½ zᵀ P z`` subject to ``A z + s = b`` with s in a product of cones, z contains x and the residuals y of
    the least-squares rows, so the rows themselves are never squared.

    Args:
        weight: Weight of the prior distance, > 0.
        settings: Settings of the solver, by its own names.

    Returns:
        The point, or None if the solver has none, and its status; ``"infeasible"`` with a certificate of infeasibility.
    """
    import clarabel
    from scipy import sparse

    rows, right = least_squares_rows(feasible, data, weight, "euclid")
    p, m, cones = feasible.p, len(rows), feasible.cones
    count, equal, half = len(cones.body), len(feasible.e), len(feasible.h)
    bodies = np.zeros((count, len(_ROW), p))
    own = 10 * cones.body[:, None] + np.arange(10)
    bodies[np.arange(count)[:, None, None], np.arange(len(_ROW))[:, None], own[:, None, :]] = (
        cones.linear[:, _ROW, _COLUMN] * _SCALE[:, None]
    )
    left = np.vstack([rows, feasible.E, -feasible.G, -bodies.reshape(-1, p)])
    A = sparse.hstack([sparse.csc_matrix(left), sparse.eye(len(left), m) * -1.0], format="csc")
    b = np.concatenate([right, feasible.e, feasible.h, (cones.constant[:, _ROW, _COLUMN] * _SCALE).ravel()])
    P = sparse.diags(np.repeat([0.0, 2.0], [p, m]), format="csc")
    P.eliminate_zeros()
    kinds = [clarabel.ZeroConeT(m + equal), *([clarabel.NonnegativeConeT(half)] if half else [])]
    kinds += [clarabel.PSDTriangleConeT(4)] * count
    wanted = clarabel.DefaultSettings()
    for name, value in {"verbose": False, **settings}.items():
        setattr(wanted, name, value)
    try:
        found = clarabel.DefaultSolver(P, np.zeros(p + m), A, b, kinds, wanted).solve()
    except (ArithmeticError, ValueError, RuntimeError) as error:
        return None, f"failed ({str(error).splitlines()[0][:80]})"
    status = str(found.status)
    if status == "PrimalInfeasible":
        return None, "infeasible"
    x, z = np.asarray(found.x)[:p], np.asarray(found.z) * weight
    if status not in ("Solved", "AlmostSolved") or not (np.isfinite(x).all() and np.isfinite(z).all()):
        return None, status
    ends = np.cumsum([m, equal, half])
    return Point(x, _matrices(z[ends[2] :]), z[ends[1] : ends[2]], z[ends[0] : ends[1]], float(found.solve_time)), status


def _matrices(stacked: Array) -> Array:
    """Symmetric matrices from the solver's packed triangles, shape (c, 4, 4)."""
    triangles = stacked.reshape(-1, len(_ROW)) / _SCALE
    out = np.empty((len(triangles), 4, 4))
    out[:, _ROW, _COLUMN] = triangles
    out[:, _COLUMN, _ROW] = triangles
    return out
