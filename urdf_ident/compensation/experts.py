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
        """Returns the convex hull of points; points of shape (N, d), in units of their standard deviation."""
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
    """

    centres: Array
    precisions: Array
    logweights: Array
    levels: Array
    slopes: Array
    variances: Array

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

    def predict(self, x: Array) -> Array:
        """Blended prediction, regardless of the training domain, shape (N,) [N·m or N].

        Args:
            x: Shape (N, d), in units of the inputs' standard deviation.
        """
        local = self.levels + np.einsum("nkd,kd->nk", x[:, None] - self.centres, self.slopes)
        return np.asarray((self.gates(x) * local).sum(axis=1))


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

    Args:
        networks: One network per joint, or None.
        width: Number of inputs d.
        fade: Distance outside the hull over which the prediction fades to zero, in units of the inputs' standard deviation.
    """

    def __init__(self, networks: Sequence[TrainedNetwork | None], width: int, fade: float) -> None:
        self.n, self.d, self.fade = len(networks), width, fade
        self._pairs = [(i, j) for i in range(width) for j in range(i, width)]
        present = [network for network in networks if network is not None]
        gates = self._gates = max((len(network.experts) for network in present), default=1)
        facets = max((len(network.domain.offsets) for network in present), default=1)
        self._table = np.zeros((self.n, 2 * gates + facets, 1 + width + len(self._pairs)))
        self._table[:, :gates, 0] = _NEVER
        self._table[:, 2 * gates :, 0] = -_NEVER  # outside the domain unless facets are entered
        self._centre, self._inverse = np.zeros((2, self.n, width, 1))
        for j, network in enumerate(networks):
            if network is None:
                continue
            experts, count, table = network.experts, len(network.experts), self._table[j]
            c, P = experts.centres, experts.precisions
            table[:count, 0] = experts.logweights - 0.5 * np.einsum("ki,kij,kj->k", c, P, c)
            table[:count, 1 : 1 + width] = np.einsum("kij,kj->ki", P, c)
            for k, (a, b) in enumerate(self._pairs, 1 + width):
                table[:count, k] = -P[:, a, b] * (0.5 if a == b else 1.0)
            local = table[gates : gates + count]
            local[:, 0] = experts.levels - np.einsum("ki,ki->k", experts.slopes, c)
            local[:, 1 : 1 + width] = experts.slopes
            outside, number = table[2 * gates :], len(network.domain.offsets)
            outside[:, 0] = _NEVER
            outside[:number, 0] = network.domain.offsets
            outside[:number, 1 : 1 + width] = network.domain.normals
            self._centre[j, :, 0], self._inverse[j, :, 0] = network.centre, 1.0 / network.scale
        self._table.setflags(write=False)

    def __call__(self, x: Array) -> Array:
        """Predictions, shape (N, n) [N·m or N]: full inside the training domain, zero well outside.

        Args:
            x: Inputs, shape (N, n, d) [SI].
        """
        if len(x) > _CHUNK:
            return np.vstack([self(x[k : k + _CHUNK]) for k in range(0, len(x), _CHUNK)])
        d, gates = self.d, self._gates
        features = np.ones((self.n, self._table.shape[2], len(x)))
        np.multiply(x.transpose(1, 2, 0) - self._centre, self._inverse, out=features[:, 1 : 1 + d])
        for k, (i, j) in enumerate(self._pairs, 1 + d):
            np.multiply(features[:, 1 + i], features[:, 1 + j], out=features[:, k])
        rows = self._table @ features
        exponent, local, outside = rows[:, :gates], rows[:, gates : 2 * gates], rows[:, 2 * gates :]
        share = np.exp(exponent - exponent.max(axis=1, keepdims=True))
        nearness = np.clip(1.0 - outside.max(axis=1) / self.fade, 0.0, 1.0)
        trust = nearness * nearness * (3.0 - 2.0 * nearness)  # smooth from 1 inside the hull to 0 beyond the fade distance
        return np.asarray((trust * (share * local).sum(axis=1) / share.sum(axis=1)).T)
