"""Posterior of the parameters: uncertainty, and the shares of data and prior.

What exports show of it is solved by NumPy, as importing SciPy would be most of their time.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..errors import EstimationError
from ..linalg import Array, shaped, solve_triangular
from .prior import Prior


class Posterior:
    """Gaussian posterior of all parameters, from the QR factorisation of ``[R/√w; Λ^½]`` in scaled columns; RᵀR is not formed.

    The precision is ``RᵀR/w + Λ``. The further reduction by physical consistency is neglected.

    Args:
        R: Data factor, whitened by the noise, shape (k, p) in the order of theta [1/unit].
        prior: Its precision is Λ.
        weight: w > 0, the prior's against the data: factor by which the data's nominal precision is overestimated.

    Raises:
        ShapeError: The number of columns differs.
        EstimationError: The factor is not finite.
    """

    def __init__(self, R: ArrayLike, prior: Prior, weight: float = 1.0) -> None:
        self._prior, self._root_weight = prior, np.sqrt(weight)
        self._data = shaped("R", R, ("k", len(prior.theta0))) / self._root_weight
        self._scale = 1.0 / np.linalg.norm(prior.root, axis=0)  # the results do not depend on the column scaling
        stacked = np.vstack([self._data, prior.root]) * self._scale
        if not np.isfinite(stacked).all():
            raise EstimationError("the data factor is not finite", where="posterior")
        self._orthogonal, self._factor = np.linalg.qr(stacked)

    @property
    def from_data(self) -> Array:
        """Share of every parameter's value that comes from the data, ``diag((RᵀR/w + Λ)⁻¹ RᵀR/w)``, shape (p,), within 0..1."""
        projected = self._orthogonal[: len(self._data)].T @ (self._data * self._scale)
        return np.asarray(np.clip(np.diag(np.linalg.solve(self._factor, projected)), 0.0, 1.0))

    @property
    def std(self) -> Array:
        """Standard deviation of every parameter, shape (p,): at most the prior's, and finite also without data."""
        return np.asarray(self._scale * np.linalg.norm(np.linalg.solve(self._factor, np.eye(len(self._scale))), axis=1))

    @property
    def covariance(self) -> Array:
        """Covariance of all parameters, shape (p, p)."""
        root = self._scale[:, None] * solve_triangular(self._factor, np.eye(len(self._scale)))
        return np.asarray(root @ root.T)

    def variance(self, rows: ArrayLike) -> Array:
        """Returns the variance of linear functions of the parameters, shape (…).

        Args:
            rows: Coefficients of the functions, shape (…, p).
        """
        wide = np.asarray(rows, dtype=float) * self._scale
        white = solve_triangular(self._factor, wide.reshape(-1, wide.shape[-1]).T, transposed=True)
        return np.asarray(np.sum(white**2, axis=0).reshape(wide.shape[:-1]))

    def mean(self, rho: ArrayLike) -> Array:
        """Returns the parameters at which data and prior together are most probable, without constraints, shape (p,).

        Args:
            rho: Right-hand side of the data factor, shape (k,).
        """
        right = np.concatenate(
            [shaped("rho", rho, (len(self._data),)) / self._root_weight, self._prior.root @ self._prior.theta0]
        )
        return np.asarray(self._scale * solve_triangular(self._factor, self._orthogonal.T @ right))
