"""The residual's networks: local experts blended by normalised Gaussian gates; their training and cross-validation.

The complexity of a network is chosen on held-out stretches that are *contiguous in time*: neighbouring samples are strongly
correlated, and random folds would favour overfitting. So would a periodic motion, like most excitations: samples that return
to a held-out state are excluded from training too. A joint gets a network if that gains on the held-out stretches by the paired
test of :mod:`.statistics.folds`.

A normalised radial basis network and the conditional mean of a Gaussian mixture are the same function,
``Σ_k h_k(x) (level_k + slope_k·(x − centre_k))`` with ``h = softmax(logweight − ½ (x − c)ᵀ P (x − c))``: the network has
zero slopes and one common width. Gates, experts and the bounds of the training domain are linear in the monomials
``1, x_i, x_i x_j``, so all joints are evaluated by one matrix product, fast enough for a control loop.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import EstimationError, MissingExtraError, check_shape
from ..linalg import Array, BoolArray, positive, solve_triangular, triangle
from ..model.dynamic_model import AT_ONCE
from ..parallel import one_thread
from ..samples import ReadOnly, freeze_arrays
from ..statistics.folds import TIME_FOLDS, standard_error

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
        from scipy.spatial import ConvexHull, QhullError

        try:
            equations = np.unique(np.round(ConvexHull(points).equations, 12), axis=0)
        except (QhullError, ValueError) as error:
            raise EstimationError(
                "the inputs of the residual span no area",
                got=f"{len(points)} points",
                remedy="record a motion with more load on the joint",
            ) from error
        return cls(equations[:, :-1].copy(), equations[:, -1].copy())


def monomials(x: Array) -> Array:
    """Returns ``1, x_0, x_1, x_0², x_0 x_1, x_1²``, shape (…, 6).

    Args:
        x: Shape (…, 2), in units of the inputs' standard deviation.
    """
    a, b = x[..., 0], x[..., 1]
    return np.stack([np.ones_like(a), a, b, a * a, a * b, b * b], axis=-1)


def softmax(logits: Array, axis: int) -> Array:
    """Returns shares in proportion to the exponential of logits, with the sum 1 along an axis; logits: any shape."""
    share = np.exp(logits - logits.max(axis=axis, keepdims=True))
    return np.asarray(share / share.sum(axis=axis, keepdims=True))


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

    @property
    def coefficients(self) -> tuple[Array, Array]:
        """Logits of the gates and predictions of the experts in the :func:`monomials`, shape (K, 6) each."""
        c, P = self.centres, self.precisions
        constant = self.logweights - 0.5 * np.einsum("ki,kij,kj->k", c, P, c)
        logits = [constant, np.einsum("kij,kj->ki", P, c), -0.5 * P[:, 0, 0], -P[:, 0, 1], -0.5 * P[:, 1, 1]]
        local = [self.levels - np.einsum("ki,ki->k", self.slopes, c), self.slopes, np.zeros((len(c), 3))]
        return np.column_stack(logits), np.column_stack(local)

    def gates(self, x: Array) -> Array:
        """Weight of every expert, shape (N, K), rows summing to 1; x as for :func:`monomials`."""
        return softmax(monomials(x) @ self.coefficients[0].T, 1)

    def predict(self, x: Array) -> Array:
        """Blended prediction, regardless of the training domain, shape (N,) [N·m or N]; x as for :func:`monomials`."""
        return np.asarray((self.gates(x) * (monomials(x) @ self.coefficients[1].T)).sum(axis=1))


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
        fade: Distance outside the hull over which the prediction fades to zero, in units of the inputs' standard deviation.
    """

    def __init__(self, networks: Sequence[TrainedNetwork | None], fade: float) -> None:
        self.n, self.fade = len(networks), fade
        present = [network for network in networks if network is not None]
        gates = self._gates = max((len(network.experts) for network in present), default=1)
        facets = max((len(network.domain.offsets) for network in present), default=1)
        self._table = np.zeros((self.n, 2 * gates + facets, 6))
        self._table[:, :gates, 0] = _NEVER
        self._table[:, 2 * gates :, 0] = -_NEVER  # outside the domain unless facets are entered
        self._centre, self._inverse = np.zeros((2, self.n, 2))
        for j, network in enumerate(networks):
            if network is None:
                continue
            table, count, domain = self._table[j], len(network.experts), network.domain
            table[:count], table[gates : gates + count] = network.experts.coefficients
            table[2 * gates :, 0] = _NEVER
            table[2 * gates : 2 * gates + len(domain.offsets), :3] = np.column_stack([domain.offsets, domain.normals])
            self._centre[j], self._inverse[j] = network.centre, 1.0 / network.scale
        self._table.setflags(write=False)

    def __call__(self, x: Array) -> Array:
        """Predictions, shape (N, n) [N·m or N]: full inside the training domain, zero well outside.

        Args:
            x: Deformation and its rate, shape (N, n, 2) [rad, rad/s or m, m/s].
        """
        if len(x) > AT_ONCE:
            return np.vstack([self(x[k : k + AT_ONCE]) for k in range(0, len(x), AT_ONCE)])
        gates = self._gates
        rows = self._table @ monomials((x - self._centre) * self._inverse).transpose(1, 2, 0)
        share, local, outside = softmax(rows[:, :gates], 1), rows[:, gates : 2 * gates], rows[:, 2 * gates :]
        nearness = np.clip(1.0 - outside.max(axis=1) / self.fade, 0.0, 1.0)
        trust = nearness * nearness * (3.0 - 2.0 * nearness)  # smooth from 1 inside the hull to 0 beyond the fade distance
        return np.asarray((trust * (share * local).sum(axis=1)).T)


#: Candidates that cross-validation chooses from: centres per input, ridges relative to the columns, components of a mixture.
_CENTRES = (4, 6, 9, 12)
_RIDGES = 10.0 ** np.arange(-3, 1)
_COMPONENTS = (1, 2, 3, 4, 6, 8, 11, 15)
#: Least number of training rows for cross-validation.
_LEAST_ROWS = 60
#: Masks of training and held-out samples, shape (N,) each.
Split = tuple[BoolArray, BoolArray]
#: Least width of a mixture's components, in units of the data's standard deviation: along a smooth motion they would
#: otherwise degenerate to lines with undetermined transverse slopes.
_LEAST_WIDTH = 0.1
#: Width of a basis function relative to the distance of the centres.
_OVERLAP = 0.8


def splits_of(state: Array) -> list[Split]:
    """Splits into contiguous held-out stretches and training samples that are not close to a held-out state.

    "Close" means within two median distances of consecutive samples.

    Args:
        state: State by which repetitions of the motion are detected, shape (N, k), in order of time [SI].
    """
    from scipy.spatial import cKDTree

    check_shape("motion", state.shape, ("N", "k"))
    std = state.std(axis=0)
    moving = std > 1e-9 * np.abs(state).max(initial=0.0)
    scaled = (state[:, moving] - state[:, moving].mean(axis=0)) / std[moving]
    close = 2.0 * float(np.median(np.linalg.norm(np.diff(scaled, axis=0), axis=1)))
    which = np.arange(len(state)) * TIME_FOLDS // len(state)
    splits = []
    for k in range(TIME_FOLDS):
        out = np.asarray(which == k)
        splits.append((np.asarray(~out & (cKDTree(scaled[out]).query(scaled, distance_upper_bound=close)[0] > close)), out))
    return splits


def train_network(
    x: Array, y: Array, kind: str, seed: int, splits: Sequence[Split], like: TrainedNetwork | None, known: float | None
) -> tuple[TrainedNetwork | None, float]:
    """Trains one joint's network and returns the fraction of held-out variance that it explains.

    Args:
        x: Inputs, shape (N, d), in order of time [SI].
        y: Torque to explain, shape (N,) [N·m or N].
        kind: "rbf" or "gmr".
        known: The fraction, if a mixture need not be cross-validated again.

    Returns:
        The network, or None if it does not help, and the fraction.
    """
    centre, scale = x.mean(axis=0), x.std(axis=0)
    if not (scale > 1e-9 * np.abs(x).max(axis=0)).all() or not np.std(y) > 0:
        return None, 0.0
    z = (x - centre) / scale
    try:
        domain = Domain.of(z)
    except EstimationError:  # the joint did not deform
        return None, 0.0
    start = None if like is None else like.experts
    if kind == "gmr" and start is not None and known is not None:
        return TrainedNetwork(centre, scale, _mixture(z, y, len(start), seed, start)[0], domain), known
    experts, gains = _train_grid(z, y, splits, start) if kind == "rbf" else _train_mixture(z, y, seed, splits, start)
    if gains.mean() <= standard_error(gains):
        return None, 0.0
    return TrainedNetwork(centre, scale, experts, domain), float(gains.mean())


def _gains(guesses: Sequence[Array | float], y: Array, splits: Sequence[Split]) -> Array:
    """Power explained by the guess for each held-out stretch, as a fraction of the mean over stretches, shape (stretches,)."""
    before = np.array([np.mean(y[out] ** 2) for _, out in splits])
    after = np.array([np.mean((y[out] - guess) ** 2) for guess, (_, out) in zip(guesses, splits, strict=True)])
    return np.asarray((before - after) / before.mean())


def _train_grid(z: Array, y: Array, splits: Sequence[Split], like: Experts | None) -> tuple[Experts, Array]:
    """The grid and ridge with the largest gain on held-out stretches, and its gains."""
    grids, (low, high) = [] if like is None else [like], (z.min(axis=0), z.max(axis=0))
    for count in _CENTRES if like is None else ():  # evenly between the extremes (Liu 2023, eq. 26)
        axes = [np.linspace(a, b, count) for a, b in zip(low, high, strict=True)]
        centres = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, z.shape[1])
        precisions = np.tile(np.diag((_OVERLAP * (high - low) / (count - 1)) ** -2), (len(centres), 1, 1))
        zero = np.zeros(len(centres))
        every = Experts(centres, precisions, zero, zero, np.zeros_like(centres), zero)
        used = every.gates(z).sum(axis=0) > 0.5
        grids.append(Experts(centres[used], precisions[used], zero[used], zero[used], np.zeros_like(centres[used]), zero[used]))
    best, chosen = np.array([-np.inf]), None
    for grid in grids:
        share = grid.gates(z)
        rows = np.column_stack([share, y])
        factors = [triangle(rows[train]) if train.sum() >= _LEAST_ROWS else None for train, _ in splits]
        for ridge in _RIDGES:
            guesses = [
                0.0 if factor is None else share[out] @ _weights(factor, ridge)
                for factor, (_, out) in zip(factors, splits, strict=True)
            ]
            gains = _gains(guesses, y, splits)
            if gains.mean() > best.mean():
                best, chosen = gains, (grid, share, ridge)
    if chosen is None:
        raise EstimationError("the residual is not finite", remedy="check the log for NaN or overflow")
    grid, share, ridge = chosen
    levels = _weights(triangle(np.column_stack([share, y])), ridge)
    variances = (share.T @ (y - share @ levels) ** 2) / positive(share.sum(axis=0))
    return Experts(grid.centres, grid.precisions, grid.logweights, levels, grid.slopes, variances), best


def _weights(factor: Array, ridge: float) -> Array:
    """Ridge regression from a factor of ``[gates | torque]``; the penalty is relative to the mean square of the columns."""
    count = factor.shape[1] - 1
    penalty = np.sqrt(ridge * float(np.sum(factor[:, :-1] ** 2)) / count) * np.eye(count, count + 1)
    R = triangle(factor, penalty)
    return np.asarray(solve_triangular(R[:count, :count], R[:count, count]))


def _train_mixture(z: Array, y: Array, seed: int, splits: Sequence[Split], like: Experts | None) -> tuple[Experts, Array]:
    """The mixture, and its gains on held-out stretches."""
    if like is not None:
        experts = _mixture(z, y, len(like), seed, like)[0]
    else:  # the number of components of least BIC; the search ends twice past the minimum
        mixtures: list[tuple[float, Experts]] = []
        for count in _COMPONENTS:
            if mixtures and 20 * count > len(y):
                break
            tried, bic = _mixture(z, y, count, seed, None)
            mixtures.append((bic, tried))
            if len(mixtures) > 2 and min(bic for bic, _ in mixtures[-2:]) > min(bic for bic, _ in mixtures):
                break
        experts = min(mixtures, key=lambda mixture: mixture[0])[1]
    guesses = [
        _mixture(z[train], y[train], len(experts), seed, experts)[0].predict(z[out]) if train.sum() >= _LEAST_ROWS else 0.0
        for train, out in splits
    ]
    return experts, _gains(guesses, y, splits)


def _mixture(z: Array, y: Array, count: int, seed: int, start: Experts | None) -> tuple[Experts, float]:
    """Gaussian mixture over inputs and (scaled) torque by EM, as experts (Liu 2023, eqs. 31-36), and its BIC."""
    try:
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.mixture import GaussianMixture
    except ImportError as error:
        raise MissingExtraError(
            "a mixture residual needs scikit-learn", remedy="pip install 'urdf-ident[residual]', or take kind rbf"
        ) from error
    std = float(np.std(y))
    data = np.column_stack([z, y / std])
    d, options = z.shape[1], dict[str, Array]()
    if start is not None:  # weights, means and precisions of a similar mixture
        inner, slopes = np.linalg.inv(start.precisions), start.slopes / std
        covariance = np.empty((len(start), d + 1, d + 1))
        covariance[:, :d, :d] = inner
        covariance[:, :d, d] = covariance[:, d, :d] = np.einsum("kij,kj->ki", inner, slopes)
        covariance[:, d, d] = start.variances / std**2 + np.einsum("ki,kij,kj->k", slopes, inner, slopes)
        weights = np.exp(start.logweights + 0.5 * np.linalg.slogdet(inner)[1])
        precisions = np.linalg.inv(covariance)
        options = {
            "weights_init": weights / weights.sum(),
            "means_init": np.column_stack([start.centres, start.levels / std]),
            "precisions_init": (precisions + precisions.transpose(0, 2, 1)) / 2,
        }
    with one_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # still a valid density, cross-validated like any other
        mixture = GaussianMixture(count, reg_covar=_LEAST_WIDTH**2, random_state=seed, max_iter=200, **options).fit(data)
    mean, covariance = mixture.means_, mixture.covariances_
    inner, cross = covariance[:, :d, :d], covariance[:, :d, d]
    slopes = np.linalg.solve(inner, cross[..., None])[..., 0]
    logweights = np.log(mixture.weights_) - 0.5 * np.linalg.slogdet(inner)[1]
    variances = covariance[:, d, d] - np.einsum("kd,kd->k", cross, slopes)
    experts = Experts(mean[:, :d].copy(), np.linalg.inv(inner), logweights, mean[:, d] * std, slopes * std, variances * std**2)
    return experts, float(mixture.bic(data))
