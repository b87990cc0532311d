"""Conic standard form of the programme of :mod:`.lmi`, solved by Clarabel's own interface or by any solver of CVXPY.

    minimise  ½ yᵀ diag(quadratic) y + linear · y    subject to    constant + matrix y  ∈  K1 × K2 × …

``y`` begins with the whitened parameters x. The rest are the data residual ``r = s (V x − a)``, so that a data factor 1e7 times
as precise as the prior is never squared, and for the entropic distance the lower-triangular Z of each body with
``[[diag Z, Zᵀ], [Z, Q]] ⪰ 0``, for which ``max Σ log Z_ii = log det Q``, and the logarithms themselves (exponential cones).
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..errors import SolverError
from ..linalg import Array, IntArray
from .cones import Cones, Feasible
from .programme import Point, Programme

#: Relative gap at which solutions that are only compared with each other are accepted.
ROUGH = 1e-5


@dataclass
class ConicForm:
    """The standard form under construction.

    Attributes:
        quadratic, linear: Coefficients of the objective, shape (N,) each.
        cones: Kind (``zero``, ``nonnegative``, ``psd``, ``exponential``) and order of each cone, in the order of its rows.
            The rows of a ``psd`` cone are the upper triangle by columns, off-diagonal entries times √2.
    """

    quadratic: Array
    linear: Array
    cones: list[tuple[str, int]] = field(default_factory=list)
    _rows: list[IntArray] = field(default_factory=list)
    _columns: list[IntArray] = field(default_factory=list)
    _values: list[Array] = field(default_factory=list)
    _constants: list[Array] = field(default_factory=list)
    _count: int = 0

    def add(self, kind: str, order: int, constant: Array, *blocks: tuple[Array, IntArray]) -> None:
        """Adds the cone of ``constant + Σ block · y[columns]``.

        Args:
            constant: Shape (k,).
            blocks: Coefficients of shape (k, c) with the columns they belong to, shape (c,).
        """
        if not len(constant):
            return
        for block, columns in blocks:
            row, column = np.nonzero(block)
            self._rows.append(self._count + row)
            self._columns.append(np.asarray(columns)[column])
            self._values.append(block[row, column])
        self._constants.append(constant)
        self._count += len(constant)
        self.cones.append((kind, order))

    @property
    def matrix(self) -> Any:
        """Sparse matrix, shape (rows of all cones, N)."""
        from scipy.sparse import csc_matrix

        entries = np.concatenate(self._values), (np.concatenate(self._rows), np.concatenate(self._columns))
        return csc_matrix(entries, shape=(self._count, len(self.linear)))

    @property
    def constant(self) -> Array:
        """Shape (rows of all cones,)."""
        return np.concatenate(self._constants)


@dataclass(frozen=True, eq=False)
class ConicSolution:
    """A solver's answer.

    Attributes:
        y: Shape (N,), or None without one.
        duals: Dual variables of each cone, in its rows' scaling.
        status: ``optimal``, ``infeasible``, ``unbounded``, or the solver's own word for anything else.
    """

    y: Array | None
    duals: Sequence[Array]
    status: str
    seconds: float


def minimise(programme: Programme, solver: str | None = None, gap: float | None = None) -> tuple[Point | None, str]:
    """Solves a programme.

    Args:
        solver: Name of a solver of CVXPY; None: Clarabel's own interface, without CVXPY.
        gap: Relative gap to stop at; None: the solver's own, 1e-8.

    Returns:
        The point, or None without one; and the status, see :class:`ConicSolution`.
    """
    feasible, data, weight = programme.feasible, programme.data, programme.weight
    p, b, n = feasible.p, len(data.s), feasible.n
    entropic = programme.distance == "entropic"
    weighed = np.flatnonzero(feasible.mass_scale) if entropic else np.zeros(0, dtype=int)
    size = p + b + (14 * n if entropic else 0) + len(weighed)
    form = ConicForm(np.zeros(size), np.zeros(size))
    # divided by the weight, the objective has the scale of the prior distance, for which absolute tolerances are set
    form.quadratic[p : p + b] = 2.0
    form.quadratic[10 * n if entropic else 0 : p] = 2.0
    s = data.s / np.sqrt(weight)
    form.add("zero", b, s * data.a, (-s[:, None] * data.V, np.arange(p)), (np.eye(b), np.arange(p, p + b)))
    _constrain(form, feasible)
    if entropic:
        for i in range(n):
            _entropy(form, feasible, i, p + b + 14 * i)
        for k, i in enumerate(weighed.tolist(), p + b + 14 * n):
            _logarithm(form, k, 1.0, feasible.mass[i], 10 * i + np.arange(10))
            form.linear[k] = -feasible.mass_scale[i]
            form.linear[10 * i : 10 * i + 10] += feasible.mass_scale[i] * feasible.mass[i]
    solution = solve(form, solver, gap)
    if solution.y is None:
        return None, solution.status
    kinds = [kind for kind, _ in form.cones]
    matrices = [z for z, cone in zip(solution.duals, form.cones, strict=True) if cone == ("psd", 4)]
    rows = next((z for z, kind in zip(solution.duals, kinds, strict=True) if kind == "nonnegative"), np.zeros(0))
    zero = [z for z, kind in zip(solution.duals, kinds, strict=True) if kind == "zero"]
    equalities = -zero[-1] if len(feasible.e) else np.zeros(0)
    cones = np.array([_matrix(z) for z in matrices]).reshape(-1, 4, 4)
    return Point(solution.y[:p], weight * cones, weight * rows, weight * equalities, solution.seconds), solution.status


def widest(feasible: Feasible) -> Array | None:
    """The point with the largest slack, at most 1, in all cones and half-spaces.

    Returns:
        Shape (p,), or None if no point has any.
    """
    p = feasible.p
    form = ConicForm(np.append(np.full(p, 2e-6), 0.0), np.append(np.zeros(p), -1.0))
    form.add("nonnegative", 1, np.ones(1), (-np.ones((1, 1)), np.array([p])))
    _constrain(form, feasible, slack=p)
    y = solve(form).y
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
        form = ConicForm(np.zeros(feasible.p), sign * mass / start)
        _constrain(form, feasible)
        solution = solve(form)
        if solution.y is None:
            ends.append(-sign * np.inf if solution.status == "unbounded" else np.nan)
        else:
            ends.append(start + float(mass @ solution.y))
    return ends[0], ends[1]


def solve(form: ConicForm, solver: str | None = None, gap: float | None = None) -> ConicSolution:
    """Solves a standard form by Clarabel's own interface, or by a solver of CVXPY.

    Args:
        solver: Name of a solver of CVXPY; None: Clarabel's own interface.
        gap: Relative gap to stop at, for Clarabel's own interface; None: 1e-8.

    Raises:
        SolverError: The solver is not installed, or does not know the cones.
    """
    return _by_clarabel(form, gap) if solver is None else _by_cvxpy(form, solver)


def _by_clarabel(form: ConicForm, gap: float | None) -> ConicSolution:
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
    if gap is not None:
        settings.tol_gap_rel = settings.tol_gap_abs = gap
    cones = [kinds[kind](order) for kind, order in form.cones]
    begin = time.perf_counter()
    answer = clarabel.DefaultSolver(
        diags(form.quadratic).tocsc(), form.linear, -form.matrix, form.constant, cones, settings
    ).solve()
    names = {"Solved": "optimal", "PrimalInfeasible": "infeasible", "DualInfeasible": "unbounded"}
    status = names.get(str(answer.status), str(answer.status))
    y = np.asarray(answer.x, dtype=float)
    usable = status not in ("infeasible", "unbounded") and bool(np.isfinite(y).all())
    lengths = [_rows_of(kind, order) for kind, order in form.cones]
    duals = np.split(np.asarray(answer.z, dtype=float), np.cumsum(lengths)[:-1])
    return ConicSolution(y if usable else None, duals, status, time.perf_counter() - begin)


def _by_cvxpy(form: ConicForm, solver: str) -> ConicSolution:
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
    inside = form.matrix @ y + form.constant
    constraints, begin = [], 0
    for kind, order in form.cones:
        end = begin + _rows_of(kind, order)
        vector = inside[begin:end]
        if kind == "zero":
            constraints.append(vector == 0)
        elif kind == "nonnegative":
            constraints.append(vector >= 0)
        elif kind == "psd":
            constraints.append(cp.reshape(_unpacked(order) @ vector, (order, order), order="C") >> 0)
        else:
            constraints.append(cp.ExpCone(vector[0], vector[1], vector[2]))
        begin = end
    root = np.sqrt(0.5 * form.quadratic)
    curved = np.flatnonzero(root)
    squares = cp.sum_squares(cp.multiply(root[curved], y[curved])) if len(curved) else 0
    problem = cp.Problem(cp.Minimize(squares + form.linear @ y), constraints)
    started = time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "may be inaccurate": accuracy is checked from recomputed residuals
            problem.solve(solver=solver.upper())
    except (cp.error.SolverError, ArithmeticError, ValueError) as error:
        raise SolverError(
            f"{solver} cannot solve it: {str(error).splitlines()[0][:120]}",
            status="failed",
            where="consistency.solver",
            remedy="name another solver, or leave the key out",
        ) from error
    status = str(problem.status).removesuffix("_inaccurate")
    usable = y.value is not None and bool(np.isfinite(y.value).all()) and status not in ("infeasible", "unbounded")
    duals = [
        _dual_rows(kind, order, constraint.dual_value)
        for (kind, order), constraint in zip(form.cones, constraints, strict=True)
    ]
    return ConicSolution(np.asarray(y.value) if usable else None, duals, status, time.perf_counter() - started)


def _dual_rows(kind: str, order: int, dual: Any) -> Array:
    """Dual variables of one constraint of CVXPY in the rows' scaling; those of exponential cones are not used."""
    if dual is None or kind == "exponential":
        return np.zeros(_rows_of(kind, order))
    if kind == "psd":
        symmetric = 0.5 * (np.asarray(dual) + np.asarray(dual).T)
        return _packed(symmetric[:, :, None])[:, 0]
    return np.ravel(-np.asarray(dual) if kind == "zero" else dual)


def _constrain(form: ConicForm, feasible: Feasible, slack: int | None = None) -> None:
    """Adds equalities, half-spaces and cones; reduced by the variable ``slack`` if there is one."""
    x = np.arange(feasible.p)
    form.add("zero", len(feasible.e), -feasible.e, (feasible.E, x))
    less = [] if slack is None else [(-np.ones((len(feasible.h), 1)), np.array([slack]))]
    form.add("nonnegative", len(feasible.h), feasible.h, (feasible.G, x), *less)
    less = [] if slack is None else [(-_packed(np.eye(4)[:, :, None]), np.array([slack]))]
    stack: Cones = feasible.cones
    for body, constant, linear in zip(stack.body, stack.constant, stack.linear, strict=True):
        columns = 10 * body + np.arange(10)
        form.add("psd", 4, _packed(constant[:, :, None])[:, 0], (_packed(linear), columns), *less)


def _entropy(form: ConicForm, feasible: Feasible, i: int, first: int) -> None:
    """Adds ``scale (tr Q − log det Q)`` of body i; ``first`` is the first of its 14 variables: Z by columns, then log Z_kk."""
    scale, body = feasible.entropy_scale[i], 10 * i + np.arange(10)
    lower = [(row, column) for column in range(4) for row in range(column, 4)]
    arrow = np.zeros((8, 8, 10))
    for k, (row, column) in enumerate(lower):
        arrow[4 + row, column, k] = arrow[column, 4 + row, k] = 1.0
        if row == column:
            arrow[row, row, k] = 1.0
    relative, constant = np.zeros((8, 8, 10)), np.zeros((8, 8, 1))
    relative[4:, 4:], constant[4:, 4:, 0] = feasible.relative.linear[i], feasible.relative.constant[i]
    columns = first + np.arange(10)
    form.add("psd", 8, _packed(constant)[:, 0], (_packed(relative), body), (_packed(arrow), columns))
    for k, diagonal in enumerate(k for k, (row, column) in enumerate(lower) if row == column):
        _logarithm(form, first + 10 + k, 0.0, np.ones(1), np.array([first + diagonal]))
        form.linear[first + 10 + k] = -scale
    form.linear[body] += scale * np.einsum("aak->k", feasible.relative.linear[i])


def _logarithm(form: ConicForm, variable: int, constant: float, row: Array, columns: IntArray) -> None:
    """Adds ``y[variable] ≤ log(constant + row · y[columns])``."""
    inside = np.zeros((3, len(row)))
    inside[2] = row
    form.add("exponential", 3, np.array([0.0, 1.0, constant]), (np.eye(3)[:, :1], np.array([variable])), (inside, columns))


def _rows_of(kind: str, order: int) -> int:
    return order * (order + 1) // 2 if kind == "psd" else order


def _triangle(order: int) -> tuple[IntArray, IntArray, Array]:
    """Rows, columns and scales of the upper triangle by columns."""
    columns, rows = np.tril_indices(order)
    return rows, columns, np.where(rows == columns, 1.0, np.sqrt(2.0))


def _packed(matrices: Array) -> Array:
    """Upper triangle of symmetric matrices, shape (order, order, k), as rows of a ``psd`` cone, shape (rows, k)."""
    rows, columns, scale = _triangle(len(matrices))
    return np.asarray(scale[:, None] * matrices[rows, columns])


def _matrix(packed: Array) -> Array:
    """Symmetric 4×4 matrix of the rows of its cone."""
    return np.asarray((_unpacked(4) @ packed).reshape(4, 4))


def _unpacked(order: int) -> Array:
    """Matrix from the rows of a ``psd`` cone to the entries of the symmetric matrix, shape (order², rows)."""
    rows, columns, scale = _triangle(order)
    out = np.zeros((order, order, len(rows)))
    out[rows, columns, np.arange(len(rows))] = out[columns, rows, np.arange(len(rows))] = 1.0 / scale
    return out.reshape(order * order, -1)
