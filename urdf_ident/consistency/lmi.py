"""Physically consistent parameters by a semidefinite programme on the data's triangular factor.

    minimise  ‖R theta − rho‖²  +  weight · distance(theta, prior)      subject to theta being physically consistent

R is whitened by the noise, so the first term is −2 log-likelihood, the second −2 log-prior, and weight 1 gives the
maximum a posteriori estimate. Without the second term unidentifiable directions are unbounded, and the constraints alone
allow links of tonnes; the prior is therefore mandatory.

The solver's status is not trusted: constraint violations and the objective are recomputed from the plain arrays of
:class:`.Feasible`, and a lower bound of the optimum from the dual variables. A point that violates a constraint is moved
towards one inside until it does not, and one far above the bound is reported as not proven optimal.

In conic standard form, Clarabel's own interface or any solver of CVXPY solves it:

    minimise  ½ yᵀ diag(quadratic) y + linear · y    subject to    constant + matrix y  ∈  K1 × K2 × …

``y`` begins with the whitened parameters x. The rest are the data residual ``r = A x − b``, so that a data factor 1e7 times
as precise as the prior is never squared, and for the entropic distance the lower-triangular Z of each body with
``[[diag Z, Zᵀ], [Z, Q]] ⪰ 0``, for which ``max Σ log Z_ii = log det Q``, and the logarithms themselves (exponential cones),
body by body; at last the logarithms of the relative masses that have a prior.

Dual variables z in the dual cones bound the optimum from below by ``−½ Σ w²/quadratic − constant · z`` with
``w = matrixᵀ z − linear``, which is zero where ``quadratic`` is.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..errors import EstimationError, SolverError
from ..linalg import Array, IntArray, lstsq
from ..model.inertia import pseudo_inertia
from ..model.prior import Prior
from ..model.terms import Parameter
from ..samples import ReadOnly
from .constraints import LmiOptions
from .feasible import Feasible, LmiObjective, at_zero, feasible_set, with_data

#: Largest violation, in prior standard deviations, largest relative duality gap of an accepted solution, and largest residual
#: of dual variables that prove one, relative to the objective's largest coefficient.
PRIMAL_TOLERANCE, GAP_TOLERANCE, DUAL_TOLERANCE = 1e-7, 1e-5, 1e-6
#: Moves of a body's parameter from the prior below this many of its standard deviations are the solver's: they change the
#: prior distance by 1e-8, which is less than the duality gap proves.
_UNMOVED = 1e-4


@dataclass(frozen=True, eq=False)
class LmiSolution(ReadOnly):
    """Physically consistent parameters with the checks of the solution.

    Attributes:
        theta: Shape (p,).
        status: ``"optimal"``: recomputed gap and violations are within tolerance; ``"fallback"``: a feasible
            point that is not the proven optimum, see ``notes``.
        weight: Weight of the prior distance.
        data_term: ``‖R theta − rho‖²``.
        prior_term: The unweighted prior distance.
        violation: Largest constraint violation, recomputed, in prior standard deviations.
        gap: Objective less the lower bound of its optimum from the dual variables; inf without one.
        psd_margins: Smallest eigenvalue of every body's P relative to the prior's, shape (n,); ≥ ε.
        active: Descriptions of the active constraints.
        notes: What the solver could not prove.
    """

    theta: Array
    status: str
    distance: str
    weight: float
    data_term: float
    prior_term: float
    violation: float
    gap: float
    psd_margins: Array
    solver: str
    active: tuple[str, ...]
    notes: tuple[str, ...] = ()

    @property
    def objective(self) -> float:
        """Data term plus weighted prior term."""
        return self.data_term + self.weight * self.prior_term

    def as_dict(self) -> dict[str, Any]:
        """The ``solver`` part of identification.json."""
        return {
            "status": self.status,
            "name": self.solver,
            "distance": self.distance,
            "weight": self.weight,
            "residuals": {
                "violation": self.violation,
                "gap": self.gap if np.isfinite(self.gap) else "inf",
                "psd_margin": float(self.psd_margins.min()),
            },
            "objective": {"data": self.data_term, "prior": self.prior_term},
            "active": list(self.active),
            "notes": list(self.notes),
        }


class LmiProblem:
    """Constraints and prior of one robot, for solutions with different data factors and weights.

    Args:
        prior: Prior of all p parameters.
        parameters: The p entries of theta.
        options: Constraints on the bodies.
        solver: Name of a solver of CVXPY; None: Clarabel's own interface, without CVXPY.

    Raises:
        ShapeError: Prior, parameters and options do not fit together.
    """

    def __init__(
        self,
        prior: Prior,
        parameters: Sequence[Parameter],
        options: LmiOptions | None = None,
        solver: str | None = None,
    ) -> None:
        self.prior, self.solver = prior, solver
        self.parameters = tuple(parameters)
        self.options = options or LmiOptions()
        self.feasible = feasible_set(prior, self.parameters, self.options)

    def solve(self, R: ArrayLike, rho: ArrayLike, weight: float = 1.0) -> LmiSolution:
        """Solves for one data factor and weight.

        Args:
            R: Data factor, whitened by the noise, shape (k, p); triangular or not, of any rank.
            rho: Its right-hand side, shape (k,).
            weight: Weight of the prior distance, > 0; 1 gives the maximum a posteriori estimate.

        Raises:
            ShapeError: Shapes do not fit.
            EstimationError: The data are not finite, or the weight is not positive.
            SolverError: Nothing satisfies the constraints; the message names the conflicting ones.
        """
        if not (weight > 0 and np.isfinite(weight)):
            raise EstimationError(
                "the prior's weight must be positive and finite",
                got=weight,
                remedy="without a prior the null space is unbounded",
            )
        feasible = self.feasible
        objective = with_data(feasible, self.options.distance, R, rho, weight)
        x, bound, status = minimise(objective, self.solver)
        if x is None:  # data of a large scale cause false certificates of infeasibility
            free = np.vstack([objective.A, np.sqrt(weight) * np.eye(feasible.p)])
            x = lstsq(free, np.append(objective.b, np.zeros(feasible.p)))[0]
        x = self._inside(x, objective)
        active = feasible.active(x)
        held = [at_zero(parameter) in active for parameter in self.parameters]
        theta = feasible.theta0 + feasible.back @ x
        unmoved = (np.abs(theta - feasible.theta0) < _UNMOVED * self.prior.std) & (np.arange(feasible.p) < 10 * feasible.n)
        # solvers stop beside the prior and beside zero; a URDF keeps what it states
        exact = np.where(held, 0.0, np.where(unmoved, feasible.theta0, theta))
        moved = self.prior.root @ (exact - feasible.theta0)
        if self._allows(moved, objective):
            x, theta = moved, exact
        gap = max(objective(x) - bound, 0.0)
        bodies, reference = (pseudo_inertia(feasible.per_body(some)) for some in (theta, feasible.theta0))
        half = np.linalg.inv(np.linalg.cholesky(reference))
        solution = LmiSolution(
            theta=theta,
            status="optimal",
            distance=self.options.distance,
            weight=weight,
            data_term=objective.data(x),
            prior_term=objective.prior(x),
            violation=feasible.violation(x),
            gap=gap,
            psd_margins=np.asarray(np.linalg.eigvalsh(half @ bodies @ half.transpose(0, 2, 1))[:, 0], dtype=float),
            solver=self.solver or "Clarabel",
            active=active,
        )
        if gap <= GAP_TOLERANCE * (1.0 + solution.objective):
            return solution
        note = f"{solution.solver}: {status}, gap {gap:.1e}: not proven optimal"
        return replace(solution, status="fallback", notes=(note,))

    def _inside(self, x: Array, objective: LmiObjective) -> Array:
        """The point, moved towards one inside all constraints until it violates none by more than the tolerance."""
        if self._allows(x, objective):
            return x
        if self._centre is None:
            raise _infeasible(self)
        goal, low, high = self._balanced(x), 0.0, 1.0
        for _ in range(60):
            middle = 0.5 * (low + high)
            inside = self._allows(self._centre + middle * (goal - self._centre), objective)
            low, high = (middle, high) if inside else (low, middle)
        return np.asarray(self._centre + low * (goal - self._centre), dtype=float)

    def _allows(self, x: Array, objective: LmiObjective) -> bool:
        """Whether a point violates no constraint by more than the tolerance, and has a prior distance."""
        return self.feasible.violation(x) <= PRIMAL_TOLERANCE and bool(np.isfinite(objective.prior(x)))

    @cached_property
    def _centre(self) -> Array | None:
        """The point farthest inside all constraints, or on some that leave no inside; None if nothing satisfies them."""
        x = widest(self.feasible)
        return None if x is None else self._balanced(x)

    def _balanced(self, x: Array) -> Array:
        """The nearest point that meets the equalities."""
        E, e = self.feasible.E, self.feasible.e
        return x + lstsq(E, e - E @ x)[0] if len(e) else x


def _infeasible(problem: LmiProblem) -> SolverError:
    """Error that names the conflicting constraints: total mass with its feasible range, or those whose removal helps."""
    what, options = "no possible robot satisfies the constraints", problem.options

    def relaxed(**change: Any) -> Feasible:
        return feasible_set(problem.prior, problem.parameters, replace(options, **change))

    if options.total_mass is not None:
        least, most = mass_range(relaxed(total_mass=None))
        if np.isfinite(least):
            return SolverError(
                "the total mass is impossible",
                where="consistency.total_mass",
                status="infeasible",
                got=f"{options.total_mass} kg",
                expected=f"between {least:.4g} and {most:.4g} kg",
                remedy="correct or drop the total mass",
            )
    constraints: dict[str, dict[str, Any]] = {
        "the boxes of the centres of mass": {"com_lower": None, "com_upper": None},
        "the ellipsoids": {"ellipsoids": None},
        "the fixed children": {"children": None},
        "the total mass": {"total_mass": None},
    }
    asked = {word: change for word, change in constraints.items() if any(getattr(options, key) is not None for key in change)}
    helps = [word for word, change in asked.items() if widest(relaxed(**change)) is not None]
    remedy = f"drop {' or '.join(helps)}" if helps else f"drop {' and '.join(asked)}" if asked else "check the prior"
    return SolverError(what, where="LMI", status="infeasible", remedy=remedy)


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

    def add(self, kind: str, order: int, constant: Array, *blocks: tuple[Array, IntArray]) -> None:
        """Adds the cone of ``constant + Σ block · y[columns]``.

        Args:
            constant: Shape (k,).
            blocks: Coefficients of shape (k, c) with the columns they belong to, shape (c,).
        """
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


def minimise(objective: LmiObjective, solver: str | None = None) -> tuple[Array | None, float, str]:
    """Minimises an objective over its feasible set.

    Args:
        solver: As for :meth:`ConicForm.solve`.

    Returns:
        The point, shape (p,), or None without one; a lower bound of the minimum; and the status as of :meth:`ConicForm.solve`.
    """
    feasible, p, b, weight = objective.feasible, objective.feasible.p, len(objective.b), objective.weight
    entropic = objective.distance == "entropic"
    masses = np.flatnonzero(feasible.mass_scale) if entropic else np.zeros(0, dtype=int)
    form = ConicForm(p + b + (_OF_BODY * feasible.n if entropic else 0) + len(masses))
    # divided by the weight, the objective has the scale of the prior distance, for which absolute tolerances are set
    shrunk, x, residual = 1.0 / np.sqrt(weight), np.arange(p), np.arange(p, p + b)
    form.add("zero", b, shrunk * objective.b, (-shrunk * objective.A, x), (np.eye(b), residual))
    form.quadratic[residual] = form.quadratic[10 * feasible.n if entropic else 0 : p] = 2.0
    _constrain(form, feasible)
    if entropic:
        _add_entropy(form, feasible, p + b)
    for logarithm, i in enumerate(masses.tolist(), p + b + _OF_BODY * feasible.n):
        body = 10 * i + np.arange(10)
        form.add_logarithm(logarithm, 1.0, feasible.mass[i], body)
        form.linear[logarithm] = -feasible.mass_scale[i]
        form.linear[body] += feasible.mass_scale[i] * feasible.mass[i]
    y, bound, status = form.solve(solver)
    return None if y is None else y[:p], objective.constant + weight * bound, status


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
    """The point with the largest slack, 0 to 1, in all matrices and inequalities.

    Returns:
        Shape (p,), or None if every point violates some.
    """
    p = feasible.p
    form = ConicForm(p + 1)
    form.quadratic[:p], form.linear[p] = 2.0 * _UNIQUE, -1.0
    form.add("nonnegative", 2, np.array([1.0, 0.0]), (np.array([[-1.0], [1.0]]), np.array([p])))
    _constrain(form, feasible, slack=p)
    y, _, _ = form.solve()
    return y[:p] if y is not None and feasible.violation(y[:p]) <= PRIMAL_TOLERANCE else None


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
    cones = [kinds[kind](order) for (kind, order), rows in zip(form.cones, form.constant, strict=True) if len(rows)]
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
        value = None if constraint is None else constraint.dual_value
        if value is None:
            value = np.full(len(constant), np.nan)
        elif kind == "psd":
            value = _packed(0.5 * (value + value.T)[:, :, None])
        duals.append(np.ravel(value) * (-1.0 if kind == "zero" else 1.0))
    return y.value, np.concatenate(duals), str(problem.status).removesuffix("_inaccurate")


def _constrain(form: ConicForm, feasible: Feasible, slack: int | None = None) -> None:
    """Adds equalities, inequalities and matrices; reduced by the variable ``slack`` if there is one."""
    x = np.arange(feasible.p)
    form.add("zero", len(feasible.e), -feasible.e, (feasible.E, x))
    less = [] if slack is None else [(-np.ones((len(feasible.h), 1)), np.array([slack]))]
    form.add("nonnegative", len(feasible.h), feasible.h, (feasible.G, x), *less)
    less = [] if slack is None else [(-_packed(np.eye(4)[:, :, None]), np.array([slack]))]
    for i, constant in zip(feasible.body, feasible.constant, strict=True):
        body = 10 * i + np.arange(10)
        form.add("psd", 4, _packed(constant[:, :, None])[:, 0], (_packed(feasible.linear[i]), body), *less)


@cache
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
