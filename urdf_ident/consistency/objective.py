"""The objective of :mod:`.lmi` in whitened coordinates, and the duality gap of a solution."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ..errors import EstimationError, check_shape
from ..linalg import Array, block_diagonal, solve_triangular, triangle
from .feasible import Feasible


@dataclass(frozen=True, eq=False)
class Point:
    """A solver's solution: x (p,), and the dual variables of matrices (c, 4, 4), inequalities (m,), and equalities (r,)."""

    x: Array
    matrices: Array
    inequalities: Array
    equalities: Array


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
    constant: float = 0.0
    weight: float = 1.0

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

    def prior_slope(self, x: Array) -> tuple[Array, Array]:
        """Gradient of the prior distance, shape (p,), and a root of its Hessian, which is the root's Gram matrix, shape (·, p).

        Args:
            x: Inside the domain, shape (p,).
        """
        feasible, joints = self.feasible, np.sqrt(2.0) * np.eye(self.feasible.p - 10 * self.feasible.n)
        if self.distance == "euclid":
            return 2.0 * x, np.sqrt(2.0) * np.eye(feasible.p)
        Q, r = feasible.relative(x)
        inverse = np.linalg.inv(np.linalg.cholesky(Q))
        white = np.einsum("nab,nbck,ndc->nadk", inverse, feasible.linear, inverse, optimize=True)
        bodies = feasible.entropy_scale[:, None] * np.einsum("naak->nk", feasible.linear - white)
        masses = (feasible.mass_scale * (1.0 - 1.0 / r))[:, None] * feasible.mass
        roots = np.sqrt(feasible.entropy_scale)[:, None, None] * white.reshape(feasible.n, 16, 10)
        of_masses = (np.sqrt(feasible.mass_scale) / r)[:, None] * feasible.mass
        root = block_diagonal(*np.concatenate([roots, of_masses[:, None]], axis=1), joints)
        return np.concatenate([(bodies + masses).ravel(), 2.0 * x[10 * feasible.n :]]), root

    def duality_gap(self, point: Point) -> float:
        """Upper bound of objective − optimum: complementarity plus the possible decrease of the Lagrangian from this point.

        For the quadratic objective the second part, ``½ rᵀ H⁻¹ r`` with the Lagrangian's gradient r, is exact; for the
        entropic one it is the Newton decrement. Dual variables are first projected onto their cone, so they need not be
        feasible.

        Returns:
            The bound, ≥ 0; inf outside the domain.
        """
        feasible, x = self.feasible, point.x
        if not np.isfinite(self.prior(x)):
            return float(np.inf)
        gradient, root = self.prior_slope(x)
        values, vectors = np.linalg.eigh(0.5 * (point.matrices + point.matrices.transpose(0, 2, 1)))
        dual = (vectors * np.maximum(values, 0.0)[:, None, :]) @ vectors.transpose(0, 2, 1)
        inequalities = np.maximum(point.inequalities, 0.0)
        stationarity = 2.0 * self.A.T @ (self.A @ x - self.b) + self.weight * gradient
        stationarity += feasible.E.T @ point.equalities - feasible.G.T @ inequalities
        held = np.einsum("cijk,cij->ck", feasible.linear[feasible.body], dual)
        np.subtract.at(feasible.per_body(stationarity), feasible.body, held)
        complementarity = np.einsum("cij,cij->", dual, feasible.matrices(x)) + inequalities @ (feasible.G @ x + feasible.h)
        # forming the Hessian would lose the prior's digits next to well-identified directions
        curvature = triangle(np.sqrt(2.0) * self.A, np.sqrt(self.weight) * root)
        return float(abs(complementarity) + 0.5 * np.sum(np.square(solve_triangular(curvature, stationarity, transposed=True))))


def prior_alone(feasible: Feasible, distance: str) -> LmiObjective:
    """The objective without data; distance: as for :class:`LmiObjective`."""
    return LmiObjective(feasible, distance, np.zeros((0, feasible.p)), np.zeros(0))


def with_data(feasible: Feasible, distance: str, R: ArrayLike, rho: ArrayLike) -> LmiObjective:
    """The objective with a data factor, which is compressed to its rank.

    Args:
        distance: As for :class:`LmiObjective`.
        R: Shape (k, p), whitened by the noise.
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
    return LmiObjective(feasible, distance, s[keep, None] * V[keep], b, float(outside @ outside))
