"""Conic standard form of the programme of :mod:`.lmi`, solved by Clarabel's own interface or by any solver of CVXPY.

    minimise  ½ yᵀ diag(quadratic) y + linear · y    subject to    constant + matrix y  ∈  K1 × K2 × …

``y`` begins with the whitened parameters x. The rest are the data residual ``r = A x − b``, so that a data factor 1e7 times
as precise as the prior is never squared, and for the entropic distance the lower-triangular Z of each body with
``[[diag Z, Zᵀ], [Z, Q]] ⪰ 0``, for which ``max Σ log Z_ii = log det Q``, and the logarithms themselves (exponential cones),
body by body; at last the logarithms of the relative masses that have a prior.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import SolverError
from ..linalg import Array, IntArray
from .feasible import Feasible
from .objective import LmiObjective, Point

#: Entries of Z of a body, and their number with the logarithms of its diagonal.
_OF_FACTOR, _OF_BODY = 10, 14
#: Weight of the squares that make the point inside all constraints unique.
_UNIQUE = 1e-6


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

    def add(self, kind: str, order: int, constant: Array, *blocks: tuple[Array, IntArray]) -> int:
        """Adds the cone of ``constant + Σ block · y[columns]``.

        Args:
            constant: Shape (k,).
            blocks: Coefficients of shape (k, c) with the columns they belong to, shape (c,).

        Returns:
            The number of the cone.
        """
        for block, columns in blocks:
            row, column = np.nonzero(block)
            self._entries.append((block[row, column], self._count + row, np.asarray(columns)[column]))
        self.constant.append(constant)
        self._count += len(constant)
        self.cones.append((kind, order))
        return len(self.cones) - 1

    def add_logarithm(self, variable: int, constant: float, row: Array, columns: IntArray) -> None:
        """Adds ``y[variable] ≤ log(constant + row · y[columns])``; row of shape (c,); columns of shape (c,)."""
        inside = np.outer([0.0, 0.0, 1.0], row)
        bound = np.array([[1.0], [0.0], [0.0]]), np.array([variable])
        self.add("exponential", 3, np.array([0.0, 1.0, constant]), bound, (inside, columns))

    @property
    def matrix(self) -> Any:
        """Sparse matrix, shape (rows of all cones, N)."""
        from scipy.sparse import csc_matrix

        values, rows, columns = (np.concatenate(some) for some in zip(*self._entries, strict=True))
        return csc_matrix((values, (rows, columns)), shape=(self._count, len(self.linear)))

    def solve(self, solver: str | None = None) -> tuple[Array | None, Sequence[Array], str]:
        """Solves by Clarabel's own interface, or by a solver of CVXPY.

        Args:
            solver: Name of a solver of CVXPY; None: Clarabel's own interface.

        Returns:
            y, shape (N,), or None without one; the dual variables of each cone in its rows' scaling; and the status:
            ``optimal``, ``infeasible``, ``unbounded``, or the solver's own word for anything else.

        Raises:
            SolverError: The solver is not installed, or does not know the cones.
        """
        y, duals, status = _by_clarabel(self) if solver is None else _by_cvxpy(self, solver)
        usable = y is not None and bool(np.isfinite(y).all()) and status not in ("infeasible", "unbounded")
        return y if usable else None, duals, status


def minimise(objective: LmiObjective, solver: str | None = None) -> tuple[Point | None, str]:
    """Minimises an objective over its feasible set.

    Args:
        solver: As for :meth:`ConicForm.solve`.

    Returns:
        The point, or None without one, and the status as of :meth:`ConicForm.solve`.
    """
    feasible, p, b = objective.feasible, objective.feasible.p, len(objective.b)
    entropic = objective.distance == "entropic"
    masses = np.flatnonzero(feasible.mass_scale) if entropic else np.zeros(0, dtype=int)
    form = ConicForm(p + b + (_OF_BODY * feasible.n if entropic else 0) + len(masses))
    # divided by the weight, the objective has the scale of the prior distance, for which absolute tolerances are set
    shrunk, x, residual = 1.0 / np.sqrt(objective.weight), np.arange(p), np.arange(p, p + b)
    form.add("zero", b, shrunk * objective.b, (-shrunk * objective.A, x), (np.eye(b), residual))
    form.quadratic[residual] = form.quadratic[10 * feasible.n if entropic else 0 : p] = 2.0
    equalities, inequalities, matrices = _constrain(form, feasible)
    if entropic:
        _add_entropy(form, feasible, p + b)
    for logarithm, i in enumerate(masses.tolist(), p + b + _OF_BODY * feasible.n):
        body = 10 * i + np.arange(10)
        form.add_logarithm(logarithm, 1.0, feasible.mass[i], body)
        form.linear[logarithm] = -feasible.mass_scale[i]
        form.linear[body] += feasible.mass_scale[i] * feasible.mass[i]
    y, duals, status = form.solve(solver)
    if y is None:
        return None, status
    of_matrices = np.array([_unpacked(4) @ duals[k] for k in matrices]).reshape(-1, 4, 4)
    weight = objective.weight
    return Point(y[:p], weight * of_matrices, weight * duals[inequalities], -weight * duals[equalities]), status


def _add_entropy(form: ConicForm, feasible: Feasible, first: int) -> None:
    """Adds ``Σ scale (tr Q − log det Q)`` of the bodies, their Z and its logarithms beginning at a place in y."""
    rows, columns, _ = _triangle(4)  # of Zᵀ
    arrow, relative, constant = np.zeros((8, 8, 10)), np.zeros((8, 8, 10)), np.zeros((8, 8, 1))
    arrow[4 + columns, rows, np.arange(10)] = arrow[rows, 4 + columns, np.arange(10)] = 1.0
    diagonal = np.flatnonzero(rows == columns)
    arrow[np.arange(4), np.arange(4), diagonal] = 1.0
    constant[4:, 4:, 0] = np.eye(4)
    for i, scale in enumerate(feasible.entropy_scale):
        body, factor = 10 * i + np.arange(10), first + _OF_BODY * i + np.arange(_OF_FACTOR)
        relative[4:, 4:] = feasible.linear[i]
        form.add("psd", 8, _packed(constant)[:, 0], (_packed(relative), body), (_packed(arrow), factor))
        for logarithm, entry in enumerate(factor[diagonal], factor[-1] + 1):
            form.add_logarithm(logarithm, 0.0, np.ones(1), np.array([entry]))
            form.linear[logarithm] = -scale
        form.linear[body] += scale * np.einsum("aak->k", feasible.linear[i])


def widest(feasible: Feasible) -> Array | None:
    """The point with the largest slack, at most 1, in all matrices and inequalities.

    Returns:
        Shape (p,), or None if no point has any.
    """
    p = feasible.p
    form = ConicForm(p + 1)
    form.quadratic[:p], form.linear[p] = 2.0 * _UNIQUE, -1.0
    form.add("nonnegative", 1, np.ones(1), (-np.ones((1, 1)), np.array([p])))
    _constrain(form, feasible, slack=p)
    y, _, _ = form.solve()
    return None if y is None else y[:p]


def mass_range(feasible: Feasible) -> tuple[float, float]:
    """Least and largest total mass that the constraints allow.

    Args:
        feasible: The constraints, without one on the total mass.

    Returns:
        ``(least, most)`` [kg]; inf if unbounded, NaN if infeasible.
    """
    bodies = slice(0, 10 * feasible.n, 10)
    mass, start = feasible.back[bodies].sum(axis=0), float(feasible.theta0[bodies].sum())
    ends = []
    for sign in (1.0, -1.0):
        form = ConicForm(feasible.p)
        form.linear[:] = sign * mass / start
        _constrain(form, feasible)
        y, _, status = form.solve()
        without = -sign * np.inf if status == "unbounded" else np.nan
        ends.append(without if y is None else start + float(mass @ y))
    return ends[0], ends[1]


def _by_clarabel(form: ConicForm) -> tuple[Array | None, list[Array], str]:
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
    cones = [kinds[kind](order) for (kind, order), rows in zip(form.cones, form.constant, strict=True) if len(rows)]
    quadratic, constant = diags(form.quadratic).tocsc(), np.concatenate(form.constant)
    answer = clarabel.DefaultSolver(quadratic, form.linear, -form.matrix, constant, cones, settings).solve()
    # a certificate of infeasibility is no point, however accurate it is
    names = {"Solved": "optimal"} | {
        f"{almost}{key}": word
        for almost in ("", "Almost")
        for key, word in (("PrimalInfeasible", "infeasible"), ("DualInfeasible", "unbounded"))
    }
    duals = np.split(np.asarray(answer.z, dtype=float), np.cumsum([len(rows) for rows in form.constant])[:-1])
    return np.asarray(answer.x, dtype=float), duals, names.get(str(answer.status), str(answer.status))


def _by_cvxpy(form: ConicForm, solver: str) -> tuple[Array | None, list[Array], str]:
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
        if not len(constant):
            constraints.append(None)
        elif kind == "psd":
            constraints.append(cp.reshape(_unpacked(order) @ rows, (order, order), order="C") >> 0)
        elif kind == "exponential":
            constraints.append(cp.ExpCone(rows[0], rows[1], rows[2]))
        else:
            constraints.append(rows == 0 if kind == "zero" else rows >= 0)
    curved = np.flatnonzero(form.quadratic)
    squares = cp.sum_squares(cp.multiply(np.sqrt(0.5 * form.quadratic[curved]), y[curved])) if len(curved) else 0
    problem = cp.Problem(cp.Minimize(squares + form.linear @ y), [some for some in constraints if some is not None])
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
        dual = np.zeros(len(constant))  # those of exponential cones are not used
        if constraint is not None and kind != "exponential" and constraint.dual_value is not None:
            value = constraint.dual_value
            dual = _packed(0.5 * (value + value.T)[:, :, None])[:, 0] if kind == "psd" else np.ravel(value)
            dual = -dual if kind == "zero" else dual
        duals.append(dual)
    return y.value, duals, str(problem.status).removesuffix("_inaccurate")


def _constrain(form: ConicForm, feasible: Feasible, slack: int | None = None) -> tuple[int, int, list[int]]:
    """Adds equalities, inequalities and matrices; reduced by the variable ``slack`` if there is one.

    Returns:
        The numbers of their cones.
    """
    x = np.arange(feasible.p)
    equalities = form.add("zero", len(feasible.e), -feasible.e, (feasible.E, x))
    less = [] if slack is None else [(-np.ones((len(feasible.h), 1)), np.array([slack]))]
    inequalities = form.add("nonnegative", len(feasible.h), feasible.h, (feasible.G, x), *less)
    less = [] if slack is None else [(-_packed(np.eye(4)[:, :, None]), np.array([slack]))]
    matrices = []
    for i, constant in zip(feasible.body, feasible.constant, strict=True):
        body = 10 * i + np.arange(10)
        matrices.append(form.add("psd", 4, _packed(constant[:, :, None])[:, 0], (_packed(feasible.linear[i]), body), *less))
    return equalities, inequalities, matrices


def _triangle(order: int) -> tuple[IntArray, IntArray, Array]:
    """Rows, columns and scales of the upper triangle by columns."""
    columns, rows = np.tril_indices(order)
    return rows, columns, np.where(rows == columns, 1.0, np.sqrt(2.0))


def _packed(matrices: Array) -> Array:
    """Upper triangle of symmetric matrices, shape (order, order, k), as rows of a ``psd`` cone, shape (rows, k)."""
    rows, columns, scale = _triangle(len(matrices))
    return np.asarray(scale[:, None] * matrices[rows, columns])


def _unpacked(order: int) -> Array:
    """Matrix from the rows of a ``psd`` cone to the entries of the symmetric matrix, shape (order², rows)."""
    rows, columns, scale = _triangle(order)
    out = np.zeros((order, order, len(rows)))
    out[rows, columns, np.arange(len(rows))] = out[columns, rows, np.arange(len(rows))] = 1.0 / scale
    return out.reshape(order * order, -1)
