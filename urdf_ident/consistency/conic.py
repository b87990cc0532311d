"""A convex problem in conic standard form, solved by Clarabel's own interface or by any solver of CVXPY.

    minimise  ½ yᵀ diag(quadratic) y + linear · y    subject to    constant + matrix y  ∈  K1 × K2 × …

Dual variables z in the dual cones bound the optimum from below by ``−½ Σ w²/quadratic − constant · z`` with
``w = matrixᵀ z − linear``, which is zero where ``quadratic`` is.
"""

from __future__ import annotations

import warnings
from functools import cache, cached_property
from typing import Any

import numpy as np

from ..errors import SolverError
from ..linalg import Array, IntArray

#: Largest residual of dual variables that prove a bound, relative to the objective's largest coefficient.
DUAL_TOLERANCE = 1e-6


class ConicForm:
    """The standard form under construction.

    Args:
        size: Number N of variables.

    Attributes:
        quadratic, linear: Coefficients of the objective, shape (N,) each.
        cones: Kind (``zero``, ``nonnegative``, ``psd``, ``exponential``) and order of each cone, in the order of its rows.
            The rows of a ``psd`` cone are the upper triangle by columns, off-diagonal entries times √2.
        constant: Constants of the rows of each cone.
    """

    def __init__(self, size: int) -> None:
        self.quadratic, self.linear = np.zeros(size), np.zeros(size)
        self.cones, self.constant = list[tuple[str, int]](), list[Array]()
        self._entries, self._count = list[tuple[Array, IntArray, IntArray]](), 0

    def add(self, kind: str, order: int, constant: Array, *blocks: tuple[Array, IntArray]) -> None:
        """Adds the cone of ``constant + Σ block · y[columns]``, unless it has no rows.

        Args:
            constant: Shape (k,).
            blocks: Coefficients of shape (k, c) with the columns they belong to, shape (c,).
        """
        if not len(constant):
            return
        for block, columns in blocks:
            row, column = np.nonzero(block)
            self._entries.append((block[row, column], self._count + row, np.asarray(columns)[column]))
        self.constant.append(constant)
        self._count += len(constant)
        self.cones.append((kind, order))

    def add_logarithm(self, variable: int, constant: float, row: Array, columns: IntArray) -> None:
        """Adds ``y[variable] ≤ log(constant + row · y[columns])``; row of shape (c,); columns of shape (c,)."""
        inside = np.outer([0.0, 0.0, 1.0], row)
        bound = np.array([[1.0], [0.0], [0.0]]), np.array([variable])
        self.add("exponential", 3, np.array([0.0, 1.0, constant]), bound, (inside, columns))

    @cached_property
    def matrix(self) -> Any:
        """Sparse matrix of the finished form, shape (rows of all cones, N)."""
        from scipy.sparse import csc_matrix

        values, rows, columns = (np.concatenate(some) for some in zip(*self._entries, strict=True))
        return csc_matrix((values, (rows, columns)), shape=(self._count, len(self.linear)))

    def solve(self, solver: str | None = None) -> tuple[Array | None, float, str]:
        """Solves by Clarabel's own interface, or by a solver of CVXPY.

        Args:
            solver: Name of a solver of CVXPY; None: Clarabel's own interface.

        Returns:
            y, shape (N,), or None without one; a lower bound of the objective, -inf if the dual variables prove none; and the
            status: ``optimal``, ``infeasible``, ``unbounded``, or the solver's own word for anything else.

        Raises:
            SolverError: The solver is not installed, or does not know the cones.
        """
        y, z, status = _by_clarabel(self) if solver is None else _by_cvxpy(self, solver)
        if y is None or not np.isfinite(y).all() or status in ("infeasible", "unbounded"):
            return None, -np.inf, status
        slope, curved = self.matrix.T @ z - self.linear, self.quadratic > 0
        proven = np.abs(slope[~curved]).max(initial=0.0) <= DUAL_TOLERANCE * (1.0 + np.abs(self.linear).max())  # false for NaN
        bound = -0.5 * np.sum(slope[curved] ** 2 / self.quadratic[curved]) - np.concatenate(self.constant) @ z
        return y, float(bound) if proven else -np.inf, status


@cache
def triangle(order: int) -> tuple[IntArray, IntArray, Array]:
    """Rows, columns and scales of the upper triangle by columns."""
    columns, rows = np.tril_indices(order)
    return rows, columns, np.where(rows == columns, 1.0, np.sqrt(2.0))


def packed(matrices: Array) -> Array:
    """Upper triangle of symmetric matrices as rows of a ``psd`` cone, shape (rows, k); matrices of shape (order, order, k)."""
    rows, columns, scale = triangle(len(matrices))
    return np.asarray(scale[:, None] * matrices[rows, columns])


def _unpacked(order: int) -> Array:
    """Matrix from the rows of a ``psd`` cone to the entries of the symmetric matrix, shape (order², rows)."""
    rows, columns, scale = triangle(order)
    out = np.zeros((order, order, len(rows)))
    out[rows, columns, np.arange(len(rows))] = out[columns, rows, np.arange(len(rows))] = 1.0 / scale
    return out.reshape(order * order, -1)


def _by_clarabel(form: ConicForm) -> tuple[Array | None, Array, str]:
    import clarabel
    from scipy.sparse import diags

    kinds = {
        "zero": clarabel.ZeroConeT,
        "nonnegative": clarabel.NonnegativeConeT,
        "psd": clarabel.PSDTriangleConeT,
        "exponential": lambda _: clarabel.ExponentialConeT(),
    }
    settings = clarabel.DefaultSettings()
    settings.verbose, settings.max_threads = False, 1
    settings.chordal_decomposition_enable = False  # blocks of 4×4 and 8×8 are not worth decomposing
    cones = [kinds[kind](order) for kind, order in form.cones]
    quadratic, constant = diags(form.quadratic).tocsc(), np.concatenate(form.constant)
    answer = clarabel.DefaultSolver(quadratic, form.linear, -form.matrix, constant, cones, settings).solve()
    # a certificate of infeasibility is no point, however accurate it is
    names = {"Solved": "optimal"} | {
        f"{almost}{key}": word
        for almost in ("", "Almost")
        for key, word in (("PrimalInfeasible", "infeasible"), ("DualInfeasible", "unbounded"))
    }
    return (
        np.asarray(answer.x, dtype=float),
        np.asarray(answer.z, dtype=float),
        names.get(str(answer.status), str(answer.status)),
    )


def _by_cvxpy(form: ConicForm, solver: str) -> tuple[Array | None, Array, str]:
    import cvxpy as cp

    if solver.upper() not in cp.installed_solvers():
        raise SolverError(
            "the solver is not installed",
            status="missing",
            where="consistency.solver",
            got=solver,
            expected=", ".join(cp.installed_solvers()),
            remedy="install it, name one of these, or leave the key out",
        )
    y = cp.Variable(len(form.linear))
    inside = form.matrix @ y + np.concatenate(form.constant)
    constraints, begin = list[Any](), 0
    for (kind, order), constant in zip(form.cones, form.constant, strict=True):
        rows, begin = inside[begin : begin + len(constant)], begin + len(constant)
        if kind == "psd":
            constraints.append(cp.reshape(_unpacked(order) @ rows, (order, order), order="C") >> 0)
        elif kind == "exponential":
            constraints.append(cp.ExpCone(rows[0], rows[1], rows[2]))
        else:
            constraints.append(rows == 0 if kind == "zero" else rows >= 0)
    curved = np.flatnonzero(form.quadratic)
    squares = cp.sum_squares(cp.multiply(np.sqrt(0.5 * form.quadratic[curved]), y[curved])) if len(curved) else 0
    problem = cp.Problem(cp.Minimize(squares + form.linear @ y), constraints)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "may be inaccurate": accuracy is checked from recomputed residuals
            problem.solve(solver=solver.upper())
    except (cp.error.SolverError, ArithmeticError, ValueError) as error:
        raise SolverError(
            f"{solver} cannot solve it: {str(error).splitlines()[0][:120].rstrip('.')}",
            status="failed",
            where="consistency.solver",
            remedy="name another solver, or leave the key out",
        ) from error
    duals = []
    for (kind, _), constant, constraint in zip(form.cones, form.constant, constraints, strict=True):
        value = constraint.dual_value
        if value is None:
            value = np.full(len(constant), np.nan)
        elif kind == "psd":
            value = packed(0.5 * (value + value.T)[:, :, None])
        duals.append(np.ravel(value) * (-1.0 if kind == "zero" else 1.0))
    return y.value, np.concatenate(duals), str(problem.status).removesuffix("_inaccurate")
