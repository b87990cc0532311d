"""What friction and links leave over, learnt per joint from the deformation Δ = θ − q and its rate (E, §5; theory §9).

Two networks: normalised radial basis functions on a grid, weights by ridge regression; and a Gaussian mixture over
(Δ, Δ', τ_u), whose conditional mean predicts (GMR). How much freedom they get is decided on parts of the record that took
no part in fitting, *contiguous in time*: neighbouring samples are nearly copies of each other, and scattered folds would
reward copying. A joint whose network does not predict such parts better than nothing gets none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import solve_triangular

from ..errors import EstimationError, MissingExtraError, ModelError, check_shape, nearest
from ..linalg import triangle
from ..model.inertia import Array
from .experts import Bank, Domain, Experts, Taught
from .gear_ripple import GearRipple

#: What a residual may be read from: everything of the joint itself.
INPUTS = ("deformation", "deformation_rate", "position", "velocity", "acceleration")
KINDS = ("rbf", "gmr")
#: Inputs that E takes.
DEFAULT_INPUTS = ("deformation", "deformation_rate")
#: Distance outside the hull of the training inputs over which the prediction fades to zero, in units of their spread.
#: Inside of the hull a fade would cost: a smooth motion spends most of its time along its border.
FADE = 0.15
#: Least part of the variance of unseen stretches that a network must explain in order to be kept.
LEAST_GAIN = 0.01

_CENTRES = {1: (5, 9, 15, 25), 2: (4, 6, 9, 12)}  # per input; more inputs get few, or the grid explodes
_RIDGES = (1e-3, 1e-2, 1e-1, 1.0)
_COMPONENTS = (1, 2, 3, 4, 6, 8, 11, 15)
_FOLDS = 5
#: Components of a mixture are at least this wide, in units of the data's spread: along a smooth motion they would
#: otherwise become needles, whose slopes across are guesses.
_LEAST_WIDTH = 0.1
#: Width of a basis function over the distance of the centres.
_OVERLAP = 0.8


@dataclass(frozen=True, eq=False)
class Residual:
    """Residual torque of every joint; zero outside of what was seen in training.

    Attributes:
        kind: "rbf" or "gmr".
        joints: Joint names, in model order.
        inputs: Names out of :data:`INPUTS`.
        taught: One network a joint; None where none helped.
        explained: Joint → part of the residual's variance explained on stretches not learnt from (0 without a network).
        ripple: Kinematic error of the gears, which was taken off the deformation before it was learnt from, or None.
    """

    kind: str
    joints: tuple[str, ...]
    inputs: tuple[str, ...]
    taught: tuple[Taught | None, ...]
    explained: Mapping[str, float]
    ripple: GearRipple | None = None

    @cached_property
    def _bank(self) -> Bank:
        return Bank(self.taught, len(self.inputs), FADE)

    def torque(self, **signals: ArrayLike | None) -> Array:
        """Residual torque.

        Args:
            signals: ``deformation``, ``deformation_rate``, ``position``, ``velocity``, ``acceleration``: shape (N, n) or
                (n,) each [rad, rad/s, rad/s² or m …]; those in :attr:`inputs` are needed, others ignored.

        Returns:
            Same shape [N·m or N]; 0 outside the training domain, into which it fades over :data:`FADE`.

        Raises:
            ModelError: An input is missing.
        """
        x, single = self._stacked(signals)
        return self._bank.now(x[0]) if single else self._bank(x)[0]

    def predict(self, **signals: ArrayLike | None) -> tuple[Array, Array, Array]:
        """Residual torque with its variance.

        Args:
            signals: As for :meth:`torque`, shape (N, n) or (n,) each.

        Returns:
            Mean [N·m or N], variance, trust (1 inside the training domain, 0 well outside), same shape each.

        Raises:
            ModelError: An input is missing.
        """
        x, single = self._stacked(signals)
        mean, variance, trust = self._bank(x)
        return (mean[0], variance[0], trust[0]) if single else (mean, variance, trust)

    def read(self, q: Array, v: Array, a: Array, deformation: Array, rate: Array | None) -> Array:
        """Residual torque from signals as the encoders give them: the gears' kinematic error is taken off first.

        Args:
            q: Link position, shape (n,) or (N, n) [rad or m].
            v: Velocity, same shape [rad/s or m/s].
            a: Acceleration, same shape [rad/s² or m/s²].
            deformation: Motor minus link position after the gear, same shape [rad or m].
            rate: Its rate, same shape [rad/s or m/s], or None where no network reads it.

        Returns:
            Same shape [N·m or N].

        Raises:
            ModelError: An input is missing.
        """
        if self.ripple is not None:
            deformation, rate = self.ripple.taken_off(q, v, deformation, rate)
        x = self.inputs_of(q, v, a, deformation, rate)
        return self._bank.now(x) if x.ndim == 2 else self._bank(x)[0]

    def inputs_of(self, q: Array, v: Array, a: Array, deformation: Array | None, rate: Array | None) -> Array:
        """Puts together what the networks read.

        Args:
            q: Position, shape (n,) or (N, n) [rad or m].
            v: Velocity, same shape [rad/s or m/s].
            a: Acceleration, same shape [rad/s² or m/s²].
            deformation: Motor minus link position, same shape [rad or m].
            rate: Its rate, same shape [rad/s or m/s].

        Returns:
            Shape (n, d) or (N, n, d) [SI].

        Raises:
            ModelError: An input is missing.
        """
        given = {"deformation": deformation, "deformation_rate": rate, "position": q, "velocity": v, "acceleration": a}
        first = given[self.inputs[0]]
        if first is None:
            raise self._missing(self.inputs[0])
        x = np.empty((*first.shape, len(self.inputs)))
        for k, name in enumerate(self.inputs):
            value = given[name]
            if value is None:
                raise self._missing(name)
            x[..., k] = value
        return x

    def _missing(self, name: str) -> ModelError:
        return ModelError(
            f"the residual needs '{name}'", where=f"inputs {', '.join(self.inputs)}", got="nothing",
            remedy="give it (motor minus link position after the gear, and its rate), or leave the residual out",
        )  # fmt: skip

    def _stacked(self, signals: Mapping[str, ArrayLike | None]) -> tuple[Array, bool]:
        columns = []
        for name in self.inputs:
            value = signals.get(name)
            if value is None:
                raise self._missing(name)
            columns.append(np.asarray(value, dtype=float))
        for name, column in zip(self.inputs, columns, strict=True):
            check_shape(name, column.shape[-1:], (len(self.joints),))
            check_shape(name, column.shape, columns[0].shape)
        x = np.stack(columns, axis=-1)
        return (x[None], True) if x.ndim == 2 else (x, False)

    def as_dict(self) -> dict[str, Any]:
        """JSON form; the reloaded residual gives the same torque to the last bit."""
        return {
            "kind": self.kind,
            "joints": list(self.joints),
            "inputs": list(self.inputs),
            "explained": dict(self.explained),
            "ripple": None if self.ripple is None else self.ripple.as_dict(),
            "taught": [None if item is None else item.as_dict() for item in self.taught],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Residual:
        """Inverse of :meth:`as_dict`.

        Args:
            data: Its result.

        Returns:
            The residual.
        """
        taught = tuple(None if item is None else Taught.from_dict(item) for item in data["taught"])
        ripple = None if data.get("ripple") is None else GearRipple.from_dict(data["ripple"])
        return cls(data["kind"], tuple(data["joints"]), tuple(data["inputs"]), taught, dict(data["explained"]), ripple)

    def summary(self) -> str:
        """One line a joint."""
        lines = [f"{self.kind.upper()} on {', '.join(self.inputs)}"]
        for joint, item in zip(self.joints, self.taught, strict=True):
            what = "none: it would not help" if item is None else f"{len(item.experts)} experts"
            lines.append(f"  {joint:<24} {what:<24} explains {100 * self.explained[joint]:5.1f} % of unseen stretches")
        return "\n".join(lines)


def fit_residual(
    inputs: Mapping[str, ArrayLike | None],
    torque: ArrayLike,
    joints: Sequence[str],
    *,
    kind: str = "gmr",
    use: Sequence[str] = DEFAULT_INPUTS,
    seed: int = 0,
    like: Residual | None = None,
    judge: bool = True,
) -> Residual:
    """Fits a residual to what friction and links left over.

    Args:
        inputs: Name out of :data:`INPUTS` → shape (N, n), in order of time [rad, rad/s, …].
        torque: What is to be explained, shape (N, n) [N·m or N].
        joints: Joint names.
        kind: "rbf" or "gmr".
        use: Which inputs the network reads. Others than the deformation invite over-fitting (theory §9).
        seed: Of the mixture's initialisation.
        like: An earlier residual on about the same data, whose number of experts is taken over where it has any.
        judge: Whether networks that are like an earlier one are judged again; else its judgement is kept.

    Returns:
        The residual.

    Raises:
        EstimationError: Unknown kind or input, missing deformation, or too few samples.
        MissingExtraError: A mixture without scikit-learn.
    """
    if kind not in KINDS:
        raise EstimationError("unknown kind of residual", got=repr(kind), remedy=nearest(kind, KINDS))
    y = np.asarray(torque, dtype=float)
    names = tuple(joints)
    check_shape("torque", y.shape, ("N", len(names)))
    columns = []
    for name in use:
        if name not in INPUTS:
            raise EstimationError("unknown input of a residual", got=repr(name), remedy=nearest(name, INPUTS))
        if inputs.get(name) is None:
            raise EstimationError(
                f"a residual on '{name}' was asked for, and the data do not have it",
                expected="motor and link positions (qm_<joint>, q_<joint>)",
                remedy="log both encoders, or leave the residual out",
            )  # fmt: skip
        columns.append(np.asarray(inputs[name], dtype=float))
        check_shape(name, columns[-1].shape, y.shape)
    if len(y) < 20 * _FOLDS:
        raise EstimationError("too few samples for a residual", got=len(y), expected=f"at least {20 * _FOLDS}")
    x = np.stack(columns, axis=-1)
    taught: list[Taught | None] = []
    explained: dict[str, float] = {}
    for j, joint in enumerate(names):
        before = None if like is None else like.taught[j]
        known = like.explained[joint] if like is not None and before is not None and not judge else None
        network, explained[joint] = _teach(x[:, j], y[:, j], kind, seed, before, known)
        taught.append(network)
    return Residual(kind, names, tuple(use), tuple(taught), explained)


def _teach(x: Array, y: Array, kind: str, seed: int, like: Taught | None, known: float | None) -> tuple[Taught | None, float]:
    """One joint's network, and the part of unseen stretches that it explains (unless that is known)."""
    centre, scale = x.mean(axis=0), x.std(axis=0)
    reach = np.maximum(np.abs(x).max(axis=0), 1e-300)
    if not (scale > 1e-9 * reach).all() or not np.std(y) > 0:
        return None, 0.0
    z = (x - centre) / scale
    try:
        domain = Domain.of(z)
    except EstimationError:  # a joint that did not deform: there is nothing to learn from
        return None, 0.0
    if kind == "rbf":
        experts, gain = _teach_network(z, y, None if like is None else like.experts)
    else:
        experts, gain = _teach_mixture(z, y, seed, None if like is None else like.experts, known)
    return (None, 0.0) if gain < LEAST_GAIN else (Taught(centre, scale, experts, domain), gain)


def _folds(samples: int) -> list[NDArray[np.bool_]]:
    """Contiguous stretches, as masks of what is held out."""
    which = np.arange(samples) * _FOLDS // samples
    return [np.asarray(which == k) for k in range(_FOLDS)]


def _gain(fit: Callable[[Array, Array], Experts], z: Array, y: Array) -> float:
    """Part of the power of stretches not learnt from that is explained."""
    left = 0.0
    for out in _folds(len(y)):
        left += float(np.sum((y[out] - fit(z[~out], y[~out]).predict(z[out])[0]) ** 2))
    return 1.0 - left / float(np.sum(y**2))


def _teach_network(z: Array, y: Array, like: Experts | None) -> tuple[Experts, float]:
    grids = [like] if like is not None else [_grid(z, count) for count in _CENTRES.get(z.shape[1], (3, 4))]
    best, chosen = -np.inf, None
    for grid in grids:
        share = grid.gates(z)
        factors = [triangle(np.column_stack([share[out], y[out]])) for out in _folds(len(y))]
        for ridge in _RIDGES:
            left = 0.0
            for k, out in enumerate(factors):
                weights = _weights([factor for i, factor in enumerate(factors) if i != k], ridge)
                left += float(np.sum((out[:, -1] - out[:, :-1] @ weights) ** 2))
            gain = 1.0 - left / float(np.sum(y**2))
            if gain > best:
                best, chosen = gain, (grid, share, _weights(factors, ridge))
    if chosen is None:
        raise EstimationError("the residual is not finite", remedy="check the log for NaN or overflow")
    return _with_weights(*chosen, y), best


def _grid(z: Array, count: int) -> Experts:
    """Centres spread evenly between the inputs' extremes (E, eq. 26), width from their distance; unused ones left out."""
    low, high = z.min(axis=0), z.max(axis=0)
    axes = [np.linspace(a, b, count) for a, b in zip(low, high, strict=True)]
    centres = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, z.shape[1])
    precision = np.diag((_OVERLAP * (high - low) / (count - 1)) ** -2)

    def network(at: Array) -> Experts:
        k = len(at)
        zero = np.zeros(k)
        return Experts(at, np.tile(precision, (k, 1, 1)), zero, zero, np.zeros_like(at), zero, False)

    used = network(centres).gates(z).sum(axis=0) > 0.5
    return network(centres[used])


def _weights(factors: Sequence[Array], ridge: float) -> Array:
    """Ridge regression from factors of ``[gates | torque]``; the penalty is relative to what an average centre sees."""
    stacked = np.vstack(factors)
    count = stacked.shape[1] - 1
    penalty = np.sqrt(ridge * float(np.sum(stacked[:, :-1] ** 2)) / count) * np.eye(count, count + 1)
    R = triangle(stacked, penalty)
    return np.asarray(solve_triangular(R[:count, :count], R[:count, count]))


def _with_weights(grid: Experts, share: Array, weights: Array, y: Array) -> Experts:
    error = (y - share @ weights) ** 2
    variances = (share.T @ error) / np.maximum(share.sum(axis=0), 1e-300)
    return Experts(grid.centres, grid.precisions, grid.logweights, weights, grid.slopes, variances, False)


def _teach_mixture(z: Array, y: Array, seed: int, like: Experts | None, known: float | None) -> tuple[Experts, float]:
    if like is None:
        experts = _best_mixture(z, y, seed)
    else:
        experts = _mixture(z, y, len(like), seed, like)[0]
    if known is not None:
        return experts, known
    return experts, _gain(lambda inputs, torque: _mixture(inputs, torque, len(experts), seed, experts)[0], z, y)


def _best_mixture(z: Array, y: Array, seed: int) -> Experts:
    """The number of components with the least BIC."""
    found: list[tuple[float, Experts]] = []
    for count in _COMPONENTS:
        if found and 20 * count > len(y):
            break
        experts, bic = _mixture(z, y, count, seed, None)
        found.append((bic, experts))
        if len(found) > 2 and min(bic for bic, _ in found[-2:]) > min(bic for bic, _ in found):  # past the bottom twice
            break
    return min(found, key=lambda item: item[0])[1]


def _mixture(z: Array, y: Array, count: int, seed: int, start: Experts | None) -> tuple[Experts, float]:
    """Gaussian mixture over inputs and (scaled) torque by EM, as experts (E, eqs. 31-36), and its BIC."""
    try:
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.mixture import GaussianMixture
    except ImportError as error:
        raise MissingExtraError(
            "a mixture residual needs scikit-learn", remedy="pip install 'urdf-ident[residual]', or take kind rbf"
        ) from error
    import warnings

    # It comes with scikit-learn, whose threads only wait for each other on problems this small.
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    spread = float(np.std(y))
    data = np.column_stack([z, y / spread])
    options = {} if start is None else _start(start, spread)
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # not quite settled: still a density, judged like any other
        found = GaussianMixture(count, reg_covar=_LEAST_WIDTH**2, random_state=seed, max_iter=200, **options).fit(data)
    d = z.shape[1]
    mean, covariance = found.means_, found.covariances_
    inner, cross = covariance[:, :d, :d], covariance[:, :d, d]
    slopes = np.linalg.solve(inner, cross[..., None])[..., 0]
    logweights = np.log(found.weights_) - 0.5 * np.linalg.slogdet(inner)[1]
    variances = covariance[:, d, d] - np.einsum("kd,kd->k", cross, slopes)
    experts = Experts(
        mean[:, :d].copy(), np.linalg.inv(inner), logweights, mean[:, d] * spread, slopes * spread, variances * spread**2, True
    )
    return experts, float(found.bic(data))


def _start(experts: Experts, spread: float) -> dict[str, Array]:
    """Where EM starts when a similar mixture is known: at its weights, means and precisions."""
    inner = np.linalg.inv(experts.precisions)
    slopes, d = experts.slopes / spread, experts.centres.shape[1]
    covariance = np.empty((len(experts), d + 1, d + 1))
    covariance[:, :d, :d] = inner
    covariance[:, :d, d] = covariance[:, d, :d] = np.einsum("kij,kj->ki", inner, slopes)
    covariance[:, d, d] = experts.variances / spread**2 + np.einsum("ki,kij,kj->k", slopes, inner, slopes)
    weights = np.exp(experts.logweights + 0.5 * np.linalg.slogdet(inner)[1])
    precisions = np.linalg.inv(covariance)
    return {
        "weights_init": weights / weights.sum(),
        "means_init": np.column_stack([experts.centres, experts.levels / spread]),
        "precisions_init": (precisions + precisions.transpose(0, 2, 1)) / 2,
    }
