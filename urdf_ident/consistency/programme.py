"""The semidefinite programme of :mod:`.lmi`: its data term, its objective, and the duality gap of a solution."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ..errors import EstimationError, check_shape
from ..linalg import Array, solve_triangular
from .cones import Feasible


@dataclass(frozen=True, eq=False)
class DataTerm:
    """The data term ``‖s·(V x − a)‖² + constant`` in whitened coordinates.

    Attributes:
        s: Singular values of the data factor, shape (b,): precision of each direction relative to the prior.
        V: Orthonormal rows, the directions, shape (b, p).
        a: Least-squares estimate along them, shape (b,), in prior standard deviations.
        constant: Squared residual that no x can explain.
    """

    s: Array
    V: Array
    a: Array
    constant: float

    def value(self, x: Array) -> float:
        """The data term at a point.

        Args:
            x: Shape (p,).

        Returns:
            Squared whitened residual.
        """
        return float(np.sum(np.square(self.s * (self.V @ x - self.a)))) + self.constant

    def gradient(self, x: Array) -> Array:
        """Gradient of :meth:`value`, shape (p,).

        Args:
            x: Shape (p,).
        """
        return np.asarray(2.0 * self.V.T @ (self.s**2 * (self.V @ x - self.a)))


@dataclass(frozen=True, eq=False)
class Point:
    """A solver's solution: x (p,), the dual variables of cones (c, 4, 4), rows (m,), equalities (r,), seconds [s]."""

    x: Array
    cones: Array
    rows: Array
    equalities: Array
    seconds: float


def whiten_data(feasible: Feasible, R: ArrayLike, rho: ArrayLike, residual: float) -> DataTerm:
    """Transforms a data factor to the whitened unknowns x and compresses it to its rank.

    Args:
        R: Shape (k, p), whitened by the noise.
        rho: Shape (k,).
        residual: Squared residual that R no longer contains, ≥ 0.

    Returns:
        The data term, of the factor's numerical rank.

    Raises:
        ShapeError: Shapes do not fit.
        EstimationError: A value is not finite.
    """
    factor, target = np.asarray(R, dtype=float), np.asarray(rho, dtype=float)
    check_shape("R", factor.shape, ("k", feasible.p))
    check_shape("rho", target.shape, (len(factor),))
    if not (np.isfinite(factor).all() and np.isfinite(target).all() and np.isfinite(residual)):
        raise EstimationError("the data factor is not finite", where="LMI")
    from scipy.linalg import svd

    # Subtracting the prior's torque first avoids cancellation.
    right = target - factor @ feasible.theta0
    u, s, V = svd(factor @ feasible.back, full_matrices=False, check_finite=False, lapack_driver="gesvd")
    keep = s > max(factor.shape) * np.finfo(float).eps * s.max(initial=0.0)
    a = u[:, keep].T @ right / s[keep]
    outside = right - u[:, keep] @ (s[keep] * a)
    return DataTerm(s[keep], V[keep], a, float(residual) + float(outside @ outside))


@dataclass(frozen=True, eq=False)
class Programme:
    """Minimisation of ``data + weight · distance`` over a feasible set.

    Attributes:
        weight: Weight of the prior distance, > 0.
        distance: ``"entropic"``: ``(tr Q − log det Q − 4)/(2 s²)`` per body, ``2 (r − log r − 1)/s²`` per mass, squares for
            the joint terms; ``"euclid"``: ``‖x‖²``. Both agree to second order at the prior.
    """

    feasible: Feasible
    data: DataTerm
    weight: float
    distance: str

    def prior_value(self, x: Array) -> float:
        """The prior distance, infinite outside the entropic distance's domain.

        Args:
            x: Shape (p,).
        """
        feasible = self.feasible
        if self.distance == "euclid":
            return float(x @ x)
        eigenvalues = np.linalg.eigvalsh(feasible.relative.at(x))
        if eigenvalues.min() <= 0:
            return float(np.inf)
        divergence = (eigenvalues - np.log(eigenvalues) - 1.0).sum(axis=1)
        relative = feasible.relative_mass(x)
        masses = feasible.mass_scale @ (relative - np.log(relative) - 1.0)
        return float(feasible.entropy_scale @ divergence + masses + np.sum(x[10 * feasible.n :] ** 2))

    def prior(self, x: Array) -> tuple[float, Array, Array]:
        """The prior distance with its derivatives.

        Args:
            x: Shape (p,).

        Returns:
            Value, gradient (p,) and a root of the Hessian, shape (·, p), whose Gram matrix is the Hessian; infinite and NaN
            outside the entropic distance's domain.
        """
        feasible = self.feasible
        p, bodies, value = feasible.p, 10 * feasible.n, self.prior_value(x)
        if self.distance == "euclid":
            return value, 2.0 * x, np.sqrt(2.0) * np.eye(p)
        if not np.isfinite(value):
            return value, np.full(p, np.nan), np.full((p, p), np.nan)
        scale, relative = feasible.entropy_scale, feasible.relative_mass(x)
        slope = np.asarray(scale[:, None, None] * (np.eye(4) - np.linalg.inv(feasible.relative.at(x))), dtype=float)
        gradient = feasible.relative.adjoint(slope, p)
        gradient[:bodies] += ((feasible.mass_scale * (1.0 - 1.0 / relative))[:, None] * feasible.mass).ravel()
        gradient[bodies:] = 2.0 * x[bodies:]
        masses = np.zeros((feasible.n, p))
        diagonal = np.arange(feasible.n)[:, None], 10 * np.arange(feasible.n)[:, None] + np.arange(10)
        masses[diagonal] = (np.sqrt(feasible.mass_scale) / relative)[:, None] * feasible.mass
        root = np.vstack([feasible.relative.log_det_root(x, scale), masses, np.sqrt(2.0) * np.eye(p)[bodies:]])
        return value, gradient, root

    def duality_gap(self, point: Point) -> float:
        """Upper bound of objective − optimum: complementarity plus the possible decrease of the Lagrangian from this point.

        For the quadratic objective the second part, ``½ rᵀ H⁻¹ r`` with the Lagrangian's gradient r, is exact; for the
        entropic one it is the Newton decrement. Dual variables are first projected onto their cone, so they need not be
        feasible.

        Returns:
            The bound, ≥ 0; inf outside the domain.
        """
        feasible, data, x = self.feasible, self.data, point.x
        _, gradient, root = self.prior(x)
        if not np.isfinite(gradient).all():
            return float(np.inf)
        values, vectors = np.linalg.eigh(0.5 * (point.cones + point.cones.transpose(0, 2, 1)))
        dual = (vectors * np.maximum(values, 0.0)[:, None, :]) @ vectors.transpose(0, 2, 1)
        rows = np.maximum(point.rows, 0.0)
        stationarity = data.gradient(x) + self.weight * gradient + feasible.E.T @ point.equalities
        stationarity -= feasible.cones.adjoint(dual, feasible.p) + feasible.G.T @ rows
        complementarity = float(np.einsum("cij,cij->", dual, feasible.cones.at(x)) + rows @ (feasible.G @ x + feasible.h))
        curvature = np.vstack([np.sqrt(2.0) * data.s[:, None] * data.V, np.sqrt(self.weight) * root])
        # squaring it would lose the prior's digits next to well-identified directions
        triangular = np.asarray(np.linalg.qr(curvature, mode="r"))
        gain = 0.5 * float(np.sum(np.square(solve_triangular(triangular, stationarity, transposed=True))))
        return abs(complementarity) + gain


def prior_only(feasible: Feasible) -> DataTerm:
    """The data term without data.

    Returns:
        A data term of rank 0.
    """
    return DataTerm(np.zeros(0), np.zeros((0, feasible.p)), np.zeros(0), 0.0)
