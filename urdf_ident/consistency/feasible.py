"""The set of physically consistent robots, as explicit affine maps of whitened parameters, and the objective of :mod:`.lmi`.

The unknown is ``x = root (theta − theta0)``: the deviation from the prior in standard deviations. This whitening gives
numbers of the same scale for a 50 kg base and a 10 g finger. All constraints are kept as plain arrays, so that a solution
can be checked independently of the solver.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ..errors import EstimationError, check_shape
from ..linalg import Array, IntArray
from ..model.inertia import PSEUDO_BASIS, nearest_physical, pseudo_inertia
from ..model.prior import Prior
from ..model.terms import Parameter
from .constraints import LmiOptions

#: How the limits of a body's mass are described, after its name; verdicts recognise them by it.
MASS_LIMIT = "mass at "
#: Accuracy of a solution, in prior standard deviations: nearer to its limit a constraint is active, and nearer to the prior a
#: value did not change.
ACCURACY = 1e-5
#: Every pseudo-inertia stays above this fraction of the prior's: ``P ⪰ ε·P0``.
EPSILON = 1e-3


@dataclass(frozen=True, eq=False)
class Feasible:
    """All constraints on x, and the terms of the entropic distance.

    Attributes:
        theta0: Shape (p,).
        back: ``theta = theta0 + back x``, shape (p, p).
        linear: Relative pseudo-inertias ``Q_i = 1 + linear_i · x_i`` of the bodies, shape (n, 4, 4, 10).
        entropy_scale: ``1/(2 s²)`` of each body's divergence, shape (n,).
        mass: Relative masses in the divergence, ``r = 1 + mass · x[body]``, shape (n, 10).
        mass_scale: ``2/s²`` of each mass's divergence ``r − log r − 1``, shape (n,); 0 without a mass prior.
        body, constant: Matrices constrained to be positive semidefinite, ``constant_c + linear_i · x_i`` with ``i = body_c``,
            shapes (c,) and (c, 4, 4); the first n are the bodies.
        G, h: Inequalities ``G x + h ≥ 0``, shapes (m, p), (m,).
        names: Description of each matrix and each inequality when it is active, length c + m.
        E, e: Equalities ``E x = e``, shapes (r, p), (r,).
    """

    theta0: Array
    back: Array
    linear: Array
    entropy_scale: Array
    mass: Array
    mass_scale: Array
    body: IntArray
    constant: Array
    G: Array
    h: Array
    names: tuple[str, ...]
    E: Array
    e: Array

    @property
    def p(self) -> int:
        """Number of parameters."""
        return len(self.theta0)

    @property
    def n(self) -> int:
        """Number of bodies."""
        return len(self.linear)

    def per_body(self, x: Array) -> Array:
        """The entries of a point that belong to the bodies, shape (n, 10); x of shape (p,)."""
        return x[: 10 * self.n].reshape(-1, 10)

    def relative(self, x: Array) -> tuple[Array, Array]:
        """Pseudo-inertias Q, shape (n, 4, 4), and masses r, shape (n,), relative to the prior's; x of shape (p,)."""
        bodies = self.per_body(x)
        return np.eye(4) + np.einsum("nijk,nk->nij", self.linear, bodies), 1.0 + np.sum(self.mass * bodies, axis=1)

    def matrices(self, x: Array) -> Array:
        """The matrices that must be positive semidefinite, shape (c, 4, 4); x of shape (p,)."""
        return np.asarray(self.constant + np.einsum("cijk,ck->cij", self.linear[self.body], self.per_body(x)[self.body]))

    def slacks(self, x: Array) -> Array:
        """Least eigenvalue of each matrix, and the value of each inequality, shape (c + m,); x of shape (p,)."""
        return np.concatenate([np.linalg.eigvalsh(self.matrices(x))[:, 0], self.G @ x + self.h])

    def violation(self, x: Array) -> float:
        """Largest violation of any constraint, in prior standard deviations.

        Args:
            x: Shape (p,).

        Returns:
            0 for a feasible point.
        """
        return float(max(0.0, -self.slacks(x).min(), np.abs(self.E @ x - self.e).max(initial=0.0)))

    def active(self, x: Array) -> tuple[str, ...]:
        """Describes the active constraints at a point; x of shape (p,)."""
        return tuple(name for name, slack in zip(self.names, self.slacks(x), strict=True) if slack < ACCURACY)


def feasible_set(prior: Prior, parameters: Sequence[Parameter], options: LmiOptions) -> Feasible:
    """Builds the constraints.

    Args:
        parameters: The p entries of theta; the first 10·n are the bodies of the prior.

    Raises:
        ShapeError: An array of the options does not fit the robot, or the prior does not fit the parameters.
    """
    p, n, back = len(prior.theta0), len(prior.relative_std), prior.deviations
    check_shape("parameters", (len(parameters),), (p,))
    names = [parameters[10 * i].owner for i in range(n)]
    theta0 = prior.theta0[: 10 * n].reshape(n, 10)
    # matrices are congruent to the metric's scale
    half = np.linalg.inv(np.linalg.cholesky(pseudo_inertia(prior.spread)))
    maps = np.array([back[10 * i : 10 * i + 10, 10 * i : 10 * i + 10] for i in range(n)])
    linear = np.einsum("nab,kbc,ndc,nkl->nadl", half, PSEUDO_BASIS, half, maps, optimize=True)
    body, P0 = np.arange(n), pseudo_inertia(theta0)
    least, held = EPSILON * P0, [f"{name}: pseudo-inertia at its limit" for name in names]
    if options.children is not None:
        check_shape("children", options.children.shape, (n, 10))
        loaded = np.flatnonzero(np.any(options.children != 0, axis=1))
        rest = np.array([nearest_physical(theta0[i] - options.children[i]) for i in loaded]).reshape(-1, 10)
        beside = pseudo_inertia(options.children[loaded]) + EPSILON * pseudo_inertia(rest)
        body, least = np.append(body, loaded), np.concatenate([least, beside])
        held += [f"{names[i]}: nothing left beside its fixed children" for i in loaded]
    constant = half[body] @ (P0[body] - least) @ half[body].transpose(0, 2, 1)

    walls = [*_inequalities(prior, parameters, names, options)]
    G, h = _whitened(prior, np.array([row for row, _, _ in walls]), np.array([limit for _, limit, _ in walls]))
    exact = np.atleast_1d([] if options.total_mass is None or isinstance(options.total_mass, tuple) else options.total_mass)
    E, e = _whitened(prior, np.tile(_total(p, n), (len(exact), 1)), -exact)
    return Feasible(
        theta0=prior.theta0,
        back=back,
        linear=linear,
        entropy_scale=1.0 / (2.0 * np.square(prior.relative_std)),
        mass=maps[:, 0] / theta0[:, :1],
        mass_scale=2.0 / np.square(prior.mass_std),
        body=body,
        constant=constant,
        G=G,
        h=h,
        names=(*held, *(name for _, _, name in walls)),
        E=E,
        e=-e,
    )


def at_zero(parameter: Parameter) -> str:
    """Description of the constraint that holds a parameter at zero, as it stands in ``solver.active``."""
    return f"{parameter.name} ≥ 0"


def at_mass_limit(body: str) -> str:
    """How the descriptions of the limits of a body's mass begin in ``solver.active``."""
    return f"{body}: {MASS_LIMIT}"


def _inequalities(
    prior: Prior, parameters: Sequence[Parameter], bodies: Sequence[str], options: LmiOptions
) -> Iterator[tuple[Array, float, str]]:
    """Half-spaces ``row · theta + limit ≥ 0`` with their descriptions."""
    p, n = len(parameters), len(bodies)
    unit, total = np.eye(p), _total(p, n)
    for k in range(10 * n, p):
        if parameters[k].nonnegative:
            yield unit[k], 0.0, at_zero(parameters[k])
    if options.mass_factor is not None:
        for i, body in enumerate(bodies):
            factor, mass = options.mass_factor ** (2.0 if prior.guessed[i] else 1.0), prior.theta0[10 * i]
            yield unit[10 * i], -mass / factor, f"{at_mass_limit(body)}1/{factor:g} of the prior's"
            yield -unit[10 * i], mass * factor, f"{at_mass_limit(body)}{factor:g} times the prior's"
    for sign, box, end in ((1.0, options.com_lower, "lower"), (-1.0, options.com_upper, "upper")):
        if box is not None:  # lower·m ≤ m·c ≤ upper·m: linear in mass and first moments
            check_shape(f"com_{end}", box.shape, (n, 3))
            for i, k in np.argwhere(np.isfinite(box)).tolist():
                row = sign * (unit[10 * i + 1 + k] - box[i, k] * unit[10 * i])
                yield row, 0.0, f"{bodies[i]}: centre of mass at its {end} {'xyz'[k]} limit"
    if options.ellipsoids is not None:
        check_shape("ellipsoids", options.ellipsoids.shape, (n, 4, 4))
        for i in np.flatnonzero(np.isfinite(options.ellipsoids).all(axis=(1, 2))).tolist():
            row = np.einsum("kab,ab->k", PSEUDO_BASIS, options.ellipsoids[i]) @ unit[10 * i : 10 * i + 10]
            yield row, 0.0, f"{bodies[i]}: matter at the surface of its ellipsoid"
    if isinstance(options.total_mass, tuple):
        yield total, -float(options.total_mass[0]), "total mass at its least"
        yield -total, float(options.total_mass[1]), "total mass at its most"
    if (more := options.half_spaces) is not None:
        check_shape("half_spaces", more.rows.shape, ("m", p))
        yield from ((row, 0.0, name) for row, name in zip(more.rows, more.names, strict=True))


def _total(p: int, n: int) -> Array:
    """The row that sums the masses of the bodies, shape (p,)."""
    return np.where((np.arange(p) < 10 * n) & (np.arange(p) % 10 == 0), 1.0, 0.0)


def _whitened(prior: Prior, rows: Array, limits: Array) -> tuple[Array, Array]:
    """The same functions ``row · theta + limit`` of x, each scaled to a unit normal."""
    rows = rows.reshape(-1, len(prior.theta0))
    normals = rows @ prior.deviations
    size = np.linalg.norm(normals, axis=1)
    return normals / size[:, None], (rows @ prior.theta0 + limits) / size


@dataclass(frozen=True, eq=False)
class LmiObjective:
    """``‖A x − b‖² + constant + weight · distance`` over a feasible set.

    Attributes:
        distance: ``"entropic"``: ``(tr Q − log det Q − 4)/(2 s²)`` per body, ``2 (r − log r − 1)/s²`` per mass, squares for
            the joint terms; ``"euclid"``: ``‖x‖²``. Both agree to second order at the prior.
        A, b: Data term, reduced to its rank, shapes (k, p) and (k,).
        constant: Squared residual that no x can explain.
        weight: Weight of the prior distance, > 0.
    """

    feasible: Feasible
    distance: str
    A: Array
    b: Array
    constant: float
    weight: float

    def __call__(self, x: Array) -> float:
        """The objective at a point; x of shape (p,)."""
        return self.data(x) + self.weight * self.prior(x)

    def data(self, x: Array) -> float:
        """The data term at a point; x of shape (p,)."""
        return float(np.sum(np.square(self.A @ x - self.b))) + self.constant

    def prior(self, x: Array) -> float:
        """The prior distance, infinite outside the entropic distance's domain; x of shape (p,)."""
        feasible = self.feasible
        if self.distance == "euclid":
            return float(x @ x)
        Q, r = feasible.relative(x)
        eigenvalues = np.linalg.eigvalsh(Q)
        if eigenvalues.min() <= 0 or r.min() <= 0:
            return float(np.inf)
        divergence = feasible.entropy_scale @ (eigenvalues - np.log(eigenvalues) - 1.0).sum(axis=1)
        return float(divergence + feasible.mass_scale @ (r - np.log(r) - 1.0) + np.sum(x[10 * feasible.n :] ** 2))


def with_data(feasible: Feasible, distance: str, R: ArrayLike, rho: ArrayLike, weight: float) -> LmiObjective:
    """The objective with a data factor, which is compressed to its rank.

    Args:
        distance: As for :class:`LmiObjective`.
        R: Shape (k, p), whitened by the noise.
        weight: Of the prior distance.
        rho: Shape (k,).

    Raises:
        ShapeError: Shapes do not fit.
        EstimationError: A value is not finite.
    """
    from scipy.linalg import svd

    factor, target = np.asarray(R, dtype=float), np.asarray(rho, dtype=float)
    check_shape("R", factor.shape, ("k", feasible.p))
    check_shape("rho", target.shape, (len(factor),))
    if not (np.isfinite(factor).all() and np.isfinite(target).all()):
        raise EstimationError("the data factor is not finite", where="LMI")
    right = target - factor @ feasible.theta0  # without the prior's torque, to avoid cancellation
    u, s, V = svd(factor @ feasible.back, full_matrices=False, check_finite=False, lapack_driver="gesvd")
    keep = s > max(factor.shape) * np.finfo(float).eps * s.max(initial=0.0)
    b = u[:, keep].T @ right
    outside = right - u[:, keep] @ b
    return LmiObjective(feasible, distance, s[keep, None] * V[keep], b, float(outside @ outside), weight)
