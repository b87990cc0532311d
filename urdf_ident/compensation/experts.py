"""Local experts blended by normalised Gaussian gates, the common form of both residual networks.

A normalised radial basis network and the conditional mean of a Gaussian mixture are the same function,
``Σ_k h_k(x) (level_k + slope_k·(x − centre_k))`` with ``h = softmax(logweight − ½ (x − c)ᵀ P (x − c))``: the network has
zero slopes and one common width. Gates, experts and the bounds of the training domain are linear in the monomials
``1, x_i, x_i x_j``, so all joints are evaluated by one matrix product, fast enough for a control loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import EstimationError, check_shape
from ..linalg import Array
from ..samples import ReadOnly, freeze_arrays

#: Samples evaluated at a time; limits memory.
_CHUNK = 4096
#: Gate logit of the padding experts: their weight is zero.
_NEVER = -1e30


@dataclass(frozen=True, eq=False)
class Domain:
    """The training domain of a network: the convex hull of its inputs, in units of their standard deviation.

    Attributes:
        normals: Outward unit normals of the facets, shape (F, d).
        offsets: Shape (F,): a point x is inside where ``normals @ x + offsets <= 0``.
    """

    normals: Array
    offsets: Array

    def __post_init__(self) -> None:
        check_shape("offsets", self.offsets.shape, (len(self.normals),))
        freeze_arrays(self)

    @classmethod
    def of(cls, points: Array) -> Domain:
        """Returns the convex hull of points.

        Args:
            points: Shape (N, d), in units of their standard deviation.
        """
        if points.shape[1] == 1:
            return cls(np.array([[1.0], [-1.0]]), np.array([-points.max(), points.min()]))
        from scipy.spatial import ConvexHull, QhullError

        try:
            equations = np.unique(np.round(ConvexHull(points).equations, 12), axis=0)
        except (QhullError, ValueError) as error:
            raise EstimationError(
                "the inputs of the residual span no area",
                got=f"{len(points)} points",
                remedy="record a motion with more load on the joint, or choose other inputs",
            ) from error
        return cls(equations[:, :-1].copy(), equations[:, -1].copy())

    def depth(self, x: Array) -> Array:
        """Depth of points inside the domain, shape (N,): distance to the nearest facet, negative outside.

        Args:
            x: Shape (N, d), in units of the training inputs' standard deviation.
        """
        return np.asarray(-(x @ self.normals.T + self.offsets).max(axis=1))


@dataclass(frozen=True, eq=False)
class Experts:
    """Local experts of one joint, in units of the inputs' standard deviation.

    Attributes:
        centres: Shape (K, d).
        precisions: Shape (K, d, d): inverse covariance of each gate.
        logweights: Shape (K,).
        levels: Shape (K,) [N·m or N]: value of each expert at its centre.
        slopes: Shape (K, d) [N·m or N].
        variances: Shape (K,) [N²·m² or N²]: scatter of the data around each expert.
        between: Whether differences between experts add to the variance (mixture) or not (network).
    """

    centres: Array
    precisions: Array
    logweights: Array
    levels: Array
    slopes: Array
    variances: Array
    between: bool

    def __post_init__(self) -> None:
        count, d = self.centres.shape
        for name, shape in (
            ("precisions", (count, d, d)),
            ("slopes", (count, d)),
            ("levels", (count,)),
            ("logweights", (count,)),
            ("variances", (count,)),
        ):
            check_shape(name, getattr(self, name).shape, shape)
        freeze_arrays(self)

    def __len__(self) -> int:
        return len(self.centres)

    def gates(self, x: Array) -> Array:
        """Weight of every expert, shape (N, K), rows summing to 1.

        Args:
            x: Shape (N, d), in units of the inputs' standard deviation.
        """
        difference = x - self.centres[:, None]
        exponent = self.logweights - 0.5 * (difference @ self.precisions * difference).sum(axis=2).T
        share = np.exp(exponent - exponent.max(axis=1, keepdims=True))
        return np.asarray(share / share.sum(axis=1, keepdims=True))

    def predict(self, x: Array) -> tuple[Array, Array]:
        """Blended prediction, regardless of the training domain.

        Args:
            x: Shape (N, d), in units of the inputs' standard deviation.

        Returns:
            Mean [N·m or N] and variance, shape (N,) each: ``Σ h_k (σ_k² + μ_k²) − μ²`` for a mixture.
        """
        share = self.gates(x)
        local = self.levels + np.einsum("nkd,kd->nk", x[:, None] - self.centres, self.slopes)
        mean = (share * local).sum(axis=1)
        variance = share @ self.variances
        if self.between:
            variance = variance + (share * (local - mean[:, None]) ** 2).sum(axis=1)
        return mean, variance


@dataclass(frozen=True, eq=False)
class TrainedNetwork(ReadOnly):
    """One joint's trained network with the scale of its inputs and its training domain.

    Attributes:
        centre: Mean of the training inputs, shape (d,) [SI].
        scale: Their standard deviation, shape (d,) [SI].
    """

    centre: Array
    scale: Array
    experts: Experts
    domain: Domain


class NetworkBank:
    """The networks of all joints in one table; joints without a network return zero.

    Not thread-safe: :meth:`now` uses buffers of the object.

    Args:
        networks: One network per joint, or None.
        width: Number of inputs d.
        fade: Distance outside the hull over which the prediction fades to zero, in units of the inputs' standard deviation.
    """

    def __init__(self, networks: Sequence[TrainedNetwork | None], width: int, fade: float) -> None:
        self.networks, self.n, self.d, self.fade = networks, len(networks), width, fade
        self._pairs = [(i, j) for i in range(width) for j in range(i, width)]
        present = [network for network in networks if network is not None]
        self._gates = max((len(network.experts) for network in present), default=1)
        facets = max((len(network.domain.offsets) for network in present), default=1)
        self._table = np.zeros((self.n, 2 * self._gates + facets, 1 + width + len(self._pairs)))
        self._table[:, : self._gates, 0] = _NEVER
        self._table[:, 2 * self._gates :, 0] = -_NEVER  # outside the domain unless facets are entered
        self._centre, self._inverse = np.zeros((self.n, width)), np.zeros((self.n, width))
        for j, network in enumerate(networks):
            if network is not None:
                self._store(j, network)
        self._table.setflags(write=False)
        self._features = np.zeros((self.n, self._table.shape[2], 1))
        self._features[:, 0] = 1.0
        self._rows = np.empty((self.n, self._table.shape[1], 1))

    def _store(self, j: int, network: TrainedNetwork) -> None:
        """Enters one joint's gates, experts and facets, expanded into monomials."""
        experts, count, table = network.experts, len(network.experts), self._table[j]
        c, P = experts.centres, experts.precisions
        table[:count, 0] = experts.logweights - 0.5 * np.einsum("ki,kij,kj->k", c, P, c)
        table[:count, 1 : 1 + self.d] = np.einsum("kij,kj->ki", P, c)
        for k, (a, b) in enumerate(self._pairs, 1 + self.d):
            table[:count, k] = -P[:, a, b] * (0.5 if a == b else 1.0)
        local = table[self._gates : self._gates + count]
        local[:, 0] = experts.levels - np.einsum("ki,ki->k", experts.slopes, c)
        local[:, 1 : 1 + self.d] = experts.slopes
        facets, number = table[2 * self._gates :], len(network.domain.offsets)
        facets[:, 0] = _NEVER
        facets[:number, 0] = network.domain.offsets
        facets[:number, 1 : 1 + self.d] = network.domain.normals
        self._centre[j], self._inverse[j] = network.centre, 1.0 / network.scale

    def now(self, x: Array) -> Array:
        """Prediction for one sample, without checks, shape (n,) [N·m or N].

        Args:
            x: Inputs of every joint, shape (n, d) [SI].
        """
        features, rows, d, gates = self._features, self._rows, self.d, self._gates
        inputs = features[:, 1 : 1 + d, 0]
        np.subtract(x, self._centre, out=inputs)
        inputs *= self._inverse
        for k, (i, j) in enumerate(self._pairs, 1 + d):
            np.multiply(features[:, 1 + i, 0], features[:, 1 + j, 0], out=features[:, k, 0])
        np.matmul(self._table, features, out=rows)
        exponent = rows[:, :gates, 0]
        share = np.exp(exponent - np.maximum.reduce(exponent, axis=1, keepdims=True))
        share /= np.add.reduce(share, axis=1, keepdims=True)
        share *= rows[:, gates : 2 * gates, 0]
        outside = np.maximum.reduce(rows[:, 2 * gates :, 0], axis=1)
        return np.asarray(np.add.reduce(share, axis=1) * self._trust(outside))

    def __call__(self, x: Array) -> tuple[Array, Array, Array]:
        """Predictions for many samples.

        Args:
            x: Inputs, shape (N, n, d) [SI].

        Returns:
            Mean [N·m or N], variance, and trust (1 inside the domain, 0 well outside), shape (N, n) each. The mean is
            multiplied by the trust; the variance is that of the full prediction.
        """
        check_shape("x", x.shape, ("N", self.n, self.d))
        mean, variance, trust = np.zeros((3, len(x), self.n))
        for j, network in ((j, network) for j, network in enumerate(self.networks) if network is not None):
            for chunk in (slice(k, k + _CHUNK) for k in range(0, len(x), _CHUNK)):
                z = (x[chunk, j] - network.centre) / network.scale
                mean[chunk, j], variance[chunk, j] = network.experts.predict(z)
                trust[chunk, j] = self._trust(-network.domain.depth(z))
        return mean * trust, variance, trust

    def _trust(self, outside: Array) -> Array:
        """1 inside the hull, 0 beyond the fade distance outside, smooth in between."""
        nearness = np.minimum(np.maximum(1.0 - outside / self.fade, 0.0), 1.0)
        return np.asarray(nearness * nearness * (3.0 - 2.0 * nearness))
