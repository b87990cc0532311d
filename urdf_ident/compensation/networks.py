"""Training and cross-validation of the residual's networks.

The complexity of a network is chosen on held-out stretches that are *contiguous in time*: neighbouring samples are strongly
correlated, and random folds would favour overfitting. So would a periodic motion, like most excitations: samples that return
to a held-out state are excluded from training too. A joint gets a network if that gains on the held-out stretches by the paired
test of :mod:`.statistics.folds`.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

from ..errors import EstimationError, MissingExtraError, check_shape
from ..linalg import Array, BoolArray, positive, solve_triangular, triangle
from ..parallel import one_thread
from ..statistics.folds import standard_error
from .experts import Domain, Experts, TrainedNetwork

_CENTRES = {1: (5, 9, 15, 25), 2: (4, 6, 9, 12)}  # per input; few for more inputs, to limit the size of the grid
_RIDGES = (1e-3, 1e-2, 1e-1, 1.0)
_COMPONENTS = (1, 2, 3, 4, 6, 8, 11, 15)
FOLDS = 5
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
    which = np.arange(len(state)) * FOLDS // len(state)
    splits = []
    for k in range(FOLDS):
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
    for count in _CENTRES.get(z.shape[1], (3, 4)) if like is None else ():  # evenly between the extremes (Liu 2023, eq. 26)
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
