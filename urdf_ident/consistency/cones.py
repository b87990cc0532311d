"""The set of physically consistent robots, as explicit affine maps of whitened parameters.

The unknown is ``x = root (theta − theta0)``: the deviation from the prior in standard deviations. This whitening gives
numbers of the same scale for a 50 kg base and a 10 g finger. All constraints are kept as plain arrays, so that a solution
can be checked independently of the solver.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..errors import check_shape
from ..linalg import Array
from ..model.inertia import PSEUDO_BASIS, nearest_physical, pseudo_inertia
from ..model.parameters import Parameter
from ..model.prior import Prior
from .constraints import LmiOptions

#: Distance from its limit below which a constraint is active, in prior standard deviations.
_ACTIVE = 1e-5
#: Every pseudo-inertia stays above this fraction of the prior's: ``P ⪰ ε·P0``.
EPSILON = 1e-3


@dataclass(frozen=True, eq=False)
class Cones:
    """Stack of 4×4 matrices affine in one body's ten entries of x: ``S_i = constant_i + linear_i · x[body_i]``.

    Attributes:
        body: Index of the body, shape (c,).
        constant: Shape (c, 4, 4).
        linear: Shape (c, 4, 4, 10).
    """

    body: np.ndarray
    constant: Array
    linear: Array

    def at(self, x: Array) -> Array:
        """Returns the matrices at a point, shape (c, 4, 4).

        Args:
            x: Shape (p,).
        """
        bodies = x[: 10 * (self.body.max(initial=-1) + 1)].reshape(-1, 10)[self.body]
        return np.asarray(self.constant + np.einsum("cijk,ck->cij", self.linear, bodies))

    def adjoint(self, dual: Array, p: int) -> Array:
        """Gradient of ``Σ tr(Z_i S_i)`` with respect to x, shape (p,).

        Args:
            dual: The Z_i, shape (c, 4, 4), symmetric.
        """
        out = np.zeros(p)
        np.add.at(out, (10 * self.body[:, None] + np.arange(10)), np.einsum("cijk,cij->ck", self.linear, dual))
        return out

    def white(self, x: Array) -> tuple[Array, Array]:
        """Inverse Cholesky factors ``C`` of the matrices, and ``C linear Cᵀ``, shapes (c, 4, 4) and (c, 16, 10).

        The latter are roots of the Hessians of ``−log det S_i`` in the body's ten entries; their traces are the gradients
        of ``log det S_i``.

        Args:
            x: Shape (p,), inside all cones.
        """
        inverse = np.linalg.inv(np.linalg.cholesky(self.at(x)))
        left = np.matmul(inverse, self.linear.reshape(-1, 4, 40)).reshape(-1, 4, 4, 10)
        return inverse, np.einsum("cbj,cajk->cabk", inverse, left).reshape(-1, 16, 10)

    def log_det_root(self, x: Array, scale: Array) -> Array:
        """Returns a root of the Hessian of ``−Σ scale_i log det S_i``, without forming the Hessian.

        Args:
            x: Shape (p,), inside all cones.
            scale: Shape (c,).

        Returns:
            Shape (16·c, p): its Gram matrix is the Hessian.
        """
        white = self.white(x)[1]
        out = np.zeros((len(self.body), 16, len(x)))
        for i, body in enumerate(self.body):
            out[i, :, 10 * body : 10 * body + 10] = np.sqrt(scale[i]) * white[i]
        return out.reshape(-1, len(x))


@dataclass(frozen=True, eq=False)
class Feasible:
    """All constraints on x.

    Attributes:
        theta0: Shape (p,).
        back: ``theta = theta0 + back x``, shape (p, p).
        relative: Relative pseudo-inertias in the divergence, ``Q = 1 + linear x``; n of them.
        entropy_scale: ``1/(2 s²)`` of each body's divergence, shape (n,).
        mass: Relative masses in the divergence, ``r = 1 + mass · x[body]``, shape (n, 10).
        mass_scale: ``2/s²`` of each mass's divergence ``r − log r − 1``, shape (n,); 0 without a mass prior.
        cones: Matrices constrained to be positive semidefinite; the first n are the bodies.
        cone_names: Description of each cone when it is active.
        G, h: Inequalities ``G x + h ≥ 0``, shapes (m, p), (m,).
        row_names: Description of each inequality when it is active, length m.
        E, e: Equalities ``E x = e``, shapes (r, p), (r,).
    """

    names: tuple[str, ...]
    theta0: Array
    back: Array
    relative: Cones
    entropy_scale: Array
    mass: Array
    mass_scale: Array
    cones: Cones
    cone_names: tuple[str, ...]
    G: Array
    h: Array
    row_names: tuple[str, ...]
    E: Array
    e: Array

    @property
    def p(self) -> int:
        """Number of parameters."""
        return len(self.theta0)

    @property
    def n(self) -> int:
        """Number of bodies."""
        return len(self.relative.body)

    @cached_property
    def unwhiten(self) -> Array:
        """Cholesky factors of the prior's bodies, shape (n, 4, 4), to measure P relative to P0."""
        return np.asarray(np.linalg.cholesky(pseudo_inertia(self.theta0[: 10 * self.n].reshape(-1, 10))), dtype=float)

    def relative_mass(self, x: Array) -> Array:
        """Masses relative to the prior's, shape (n,).

        Args:
            x: Shape (p,).
        """
        return np.asarray(1.0 + np.sum(self.mass * x[: 10 * self.n].reshape(-1, 10), axis=1))

    def theta(self, x: Array) -> Array:
        """Returns the parameters theta of a whitened point x, shape (p,).

        Args:
            x: Shape (p,).
        """
        return np.asarray(self.theta0 + self.back @ x)

    def margins(self, theta: Array) -> Array:
        """Smallest eigenvalue of ``P0^-½ P P0^-½`` of each body: at least ε if feasible, shape (n,).

        Args:
            theta: Parameters, shape (p,).
        """
        half = np.linalg.solve(self.unwhiten, pseudo_inertia(theta[: 10 * self.n].reshape(-1, 10)))
        return np.asarray(np.linalg.eigvalsh(np.linalg.solve(self.unwhiten, half.transpose(0, 2, 1)))[:, 0])

    def violation(self, x: Array) -> float:
        """Largest violation of any constraint, in prior standard deviations.

        Args:
            x: Shape (p,).

        Returns:
            0 for a feasible point.
        """
        cones = -np.linalg.eigvalsh(self.cones.at(x)).min(initial=0.0)
        walls = -(self.G @ x + self.h).min(initial=0.0)
        return float(max(0.0, cones, walls, np.abs(self.E @ x - self.e).max(initial=0.0)))

    def active(self, x: Array) -> tuple[str, ...]:
        """Describes the active constraints at a point.

        Args:
            x: Shape (p,).
        """
        least = np.linalg.eigvalsh(self.cones.at(x))[:, 0]
        held = [name for name, value in zip(self.cone_names, least, strict=True) if value < _ACTIVE]
        return tuple(held + [name for name, value in zip(self.row_names, self.G @ x + self.h, strict=True) if value < _ACTIVE])


def feasible_set(prior: Prior, parameters: Sequence[Parameter], options: LmiOptions) -> Feasible:
    """Builds the constraints.

    Args:
        parameters: The p entries of theta; the first 10·n are the bodies of the prior.

    Raises:
        ShapeError: An array of the options does not fit the robot, or the prior does not fit the parameters.
    """
    p, n = len(prior.theta0), len(prior.relative_std)
    check_shape("parameters", (len(parameters),), (p,))
    back = prior.deviations
    bodies = tuple(parameters[10 * i].owner for i in range(n))
    relative, cones, cone_names = _cones(prior, bodies, back, options)
    rows = _Rows(prior.theta0, back)
    for k in range(10 * n, p):
        if parameters[k].nonnegative:
            rows.add(np.eye(p)[k], 0.0, f"{parameters[k].name} ≥ 0")
    _mass_bounds(rows, bodies, prior, options)
    _boxes(rows, bodies, options)
    _ellipsoids(rows, bodies, options)
    if options.half_spaces is not None:
        check_shape("half_spaces", options.half_spaces.rows.shape, ("m", p))
        for a, b, name in zip(options.half_spaces.rows, options.half_spaces.limits, options.half_spaces.names, strict=True):
            rows.add(a, float(b), name)
    E, e = _total_mass(rows, n, options)
    G, h = rows.arrays()
    names = tuple(parameter.name for parameter in parameters)
    scale = 1.0 / (2.0 * np.square(prior.relative_std))
    mass = np.array([back[10 * i, 10 * i : 10 * i + 10] / prior.theta0[10 * i] for i in range(n)])
    mass_scale = np.zeros(n) if prior.mass_std is None else 2.0 / np.square(prior.mass_std)
    return Feasible(
        names,
        prior.theta0,
        back,
        relative,
        scale,
        mass,
        mass_scale,
        cones,
        cone_names,
        G,
        h,
        tuple(rows.names),
        E,
        e,
    )


def _cones(prior: Prior, bodies: tuple[str, ...], back: Array, options: LmiOptions) -> tuple[Cones, Cones, tuple[str, ...]]:
    """Cones of the bodies and of the bodies without their fixed children; congruent to the metric's scale."""
    n = len(bodies)
    theta0 = prior.theta0[: 10 * n].reshape(n, 10)
    half = np.linalg.inv(np.linalg.cholesky(pseudo_inertia(prior.spread)))
    maps = np.array([back[10 * i : 10 * i + 10, 10 * i : 10 * i + 10] for i in range(n)])
    basis = np.einsum("nab,kbc,ndc->nadk", half, PSEUDO_BASIS, half)
    linear = np.einsum("nadk,nkl->nadl", basis, maps)

    def congruent(matrices: Array, of: Any) -> Array:
        return np.asarray(half[of] @ matrices @ half[of].transpose(0, 2, 1))

    everyone = np.arange(n)
    relative = Cones(everyone, np.tile(np.eye(4), (n, 1, 1)), linear)
    P0 = pseudo_inertia(theta0)
    constants, members = [congruent((1 - EPSILON) * P0, everyone)], [everyone]
    names = [f"{body}: pseudo-inertia at its limit" for body in bodies]
    if options.children is not None:
        check_shape("children", options.children.shape, (n, 10))
        loaded = np.flatnonzero(np.any(options.children != 0, axis=1))
        remainders = np.array([nearest_physical(theta0[i] - options.children[i]) for i in loaded]).reshape(-1, 10)
        limit = pseudo_inertia(options.children[loaded]) + EPSILON * pseudo_inertia(remainders)
        constants.append(congruent(P0[loaded] - limit, loaded))
        members.append(loaded)
        names += [f"{bodies[i]}: nothing left beside its fixed children" for i in loaded]
    body = np.concatenate(members)
    return relative, Cones(body, np.concatenate(constants), linear[body]), tuple(names)


class _Rows:
    """Collects half-spaces ``a·theta + b ≥ 0`` and transforms them to x, each scaled to a unit normal."""

    def __init__(self, theta0: Array, back: Array) -> None:
        self.theta0, self.back, self.names = theta0, back, list[str]()
        self._G, self._h = list[Array](), list[float]()

    def whiten(self, a: Array, b: float) -> tuple[Array, float]:
        normal = a @ self.back
        size = float(np.linalg.norm(normal))
        return normal / size, (float(a @ self.theta0) + b) / size

    def add(self, a: Array, b: float, name: str) -> None:
        normal, offset = self.whiten(a, b)
        self._G.append(normal)
        self._h.append(offset)
        self.names.append(name)

    def arrays(self) -> tuple[Array, Array]:
        return np.array(self._G).reshape(-1, len(self.theta0)), np.array(self._h)


def _mass_bounds(rows: _Rows, bodies: tuple[str, ...], prior: Prior, options: LmiOptions) -> None:
    if options.mass_factor is None:
        return
    for i, body in enumerate(bodies):
        factor = options.mass_factor ** (2.0 if prior.guessed[i] else 1.0)
        mass, a = prior.theta0[10 * i], np.zeros(len(rows.theta0))
        a[10 * i] = 1.0
        rows.add(a, -mass / factor, f"{body}: mass at 1/{factor:g} of the prior's")
        rows.add(-a, mass * factor, f"{body}: mass at {factor:g} times the prior's")


def _boxes(rows: _Rows, bodies: tuple[str, ...], options: LmiOptions) -> None:
    """``lower·m ≤ m·c ≤ upper·m``: linear in mass and first moments."""
    for sign, limits, word in ((1.0, options.com_lower, "lower"), (-1.0, options.com_upper, "upper")):
        if limits is None:
            continue
        check_shape(f"com_{word}", limits.shape, (len(bodies), 3))
        for i, k in zip(*np.nonzero(np.isfinite(limits)), strict=True):
            a = np.zeros(len(rows.theta0))
            a[10 * i], a[10 * i + 1 + k] = -sign * limits[i, k], sign
            rows.add(a, 0.0, f"{bodies[i]}: centre of mass at its {word} {'xyz'[k]} limit")


def _ellipsoids(rows: _Rows, bodies: tuple[str, ...], options: LmiOptions) -> None:
    if options.ellipsoids is None:
        return
    check_shape("ellipsoids", options.ellipsoids.shape, (len(bodies), 4, 4))
    for i, Q in enumerate(options.ellipsoids):
        if np.isfinite(Q).all():
            a = np.zeros(len(rows.theta0))
            a[10 * i : 10 * i + 10] = np.einsum("kab,ab->k", PSEUDO_BASIS, Q)
            rows.add(a, 0.0, f"{bodies[i]}: matter at the surface of its ellipsoid")


def _total_mass(rows: _Rows, n: int, options: LmiOptions) -> tuple[Array, Array]:
    a = np.zeros(len(rows.theta0))
    a[0 : 10 * n : 10] = 1.0
    if options.total_mass is None:
        return np.zeros((0, len(a))), np.zeros(0)
    if isinstance(options.total_mass, tuple):
        least, most = options.total_mass
        rows.add(a, -float(least), "total mass at its least")
        rows.add(-a, float(most), "total mass at its most")
        return np.zeros((0, len(a))), np.zeros(0)
    normal, offset = rows.whiten(a, -float(options.total_mass))
    return normal[None, :], np.array([-offset])
