"""Initial estimate of friction and rotor inertia, which a URDF lacks: bounded, physical, and in proportion to the torque.

Plain least squares is unsuitable: nearly collinear friction columns get large estimates of opposite sign, which cancel in
the data but not elsewhere. Each parameter is therefore expected to contribute no more than the bodies' torque residual,
``x ~ N(0, (rms(left)/rms(column))²)``, in the logs and in ordinary motion, and friction must dissipate. The residual of the
URDF's bodies is too large, because it contains their errors; that of bodies fitted near the URDF is too small, because they
absorb friction and rotor torque in a short motion: the geometric mean of the two is used. A bias (amplifier offset) is
expected to be a small part of the torque, and a smaller one where the data cannot separate it from friction: a joint that
never reverses shows only the sum of bias and Coulomb friction, which is then attributed to friction.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..errors import EstimationError
from ..friction import bias_symbols
from ..linalg import Array, block_diagonal, lstsq
from ..model.parameters import Parameter
from ..model.prior import Prior, least_weight
from ..model.terms import SPRING_SYMBOLS
from ..samples import ReadOnly
from ..statistics.fit import SIGMA_FLOOR
from ..statistics.statistic import StatisticSet
from .constraints import HalfSpaces

#: Factor by which nominal variances of a fit are too small (residuals are not independent noise).
_VARIANCE_FACTOR = 10.0
Columns = NDArray[np.intp]

#: Least excitation of a joint's column relative to the most excited joint's: below it residual and column are both noise,
#: and their ratio would make any value plausible.
_LEAST_NORM = 0.3
#: Expected bias as a fraction of the torque: where it is collinear with friction, and where it is separable.
BIAS, SEPARABLE_BIAS = 0.03, 0.1
#: Factor on that where held-out data do not support a bias.
UNSUPPORTED = 0.3
#: A bias is collinear with gravity where bodies and rotors leave at most this fraction of its column's square.
_SAME = 1e-12
#: Lower bound of a row group's residual, as a fraction of its torque: no model is more accurate.
_BEST = 1e-3


@dataclass(frozen=True, eq=False)
class FirstFit(ReadOnly):
    """Initial estimates of some parameters.

    Attributes:
        values: Shape (k,); NaN where a parameter is not excited.
        size: The value with which each parameter alone would be as large as the bodies' torque residual (a bias: as 3 to
            10 % of the torque), shape (k,); inf where not excited, and for the springs of elastic joints, whose torque and
            preload may exceed the measured torque.
    """

    values: Array
    size: Array


def first_fit(
    statistics: StatisticSet,
    parameters: Sequence[Parameter],
    columns: Sequence[int],
    fixed: Array,
    weights: Mapping[str, float],
    physics: HalfSpaces | None = None,
    inertial: Prior | None = None,
    ordinary: Array | None = None,
    unsupported: Collection[str] = (),
    reversals: float = np.inf,
) -> FirstFit:
    """Estimates joint terms with the bodies fixed, or estimated with their prior.

    Args:
        parameters: All of theta's entries.
        columns: Indices into theta of the joint terms to estimate, length k.
        fixed: Values of all parameters, shape (p,); those of ``columns`` are ignored.
        weights: Row group → weight [1/unit of torque].
        physics: Constraints besides the signs of the parameters; those that involve other parameters are ignored.
        inertial: Prior of the first m parameters, which are then estimated too. None: they are fixed.
        ordinary: RMS of all parameters' columns in ordinary motion, shape (p,) (:func:`.ordinary_columns`); None: as in the
            data.
        unsupported: Joints for which held-out data do not support a bias: a smaller one is expected.
        reversals: Mean number of velocity reversals of the moving joints.

    Returns:
        The estimate of ``columns``.
    """
    chosen = np.asarray(columns, dtype=np.intp)
    others = np.array(fixed, dtype=float)
    others[chosen] = 0.0
    bodies = np.arange(0 if inertial is None else len(inertial.theta0), dtype=np.intp)
    blocks, rights, efforts, counts = _groups(statistics, np.concatenate([bodies, chosen]), others, weights)
    own_units = np.array([weights[layout.group] for layout in statistics.layouts])
    left = _left(blocks, rights, efforts, inertial)
    size = _sizes(parameters, chosen, blocks, left, efforts, own_units, counts, ordinary, unsupported)
    seen = np.isfinite(size)
    usable = seen & (size > 0)
    # springs of elastic joints are not bounded, because their torques balance each other
    springs = np.array([parameters[int(k)].symbol in SPRING_SYMBOLS for k in chosen], dtype=bool)
    values = np.full(len(chosen), np.nan)
    values[seen & ~usable] = 0.0
    if usable.any():
        used = np.concatenate([np.ones(len(bodies), dtype=bool), usable])
        signs = _physical_rows(parameters, chosen, physics)[:, usable]
        own = np.hstack([np.zeros((len(signs), len(bodies))), signs])
        rotors = np.array([parameters[int(k)].rotor for k in chosen])
        # where joints hardly reverse, gravity of a tool missing in the URDF correlates with acceleration
        weight = np.where(rotors, max(_VARIANCE_FACTOR, least_weight(reversals)), _VARIANCE_FACTOR)
        ridge = np.diag(np.where(springs, 0.0, np.sqrt(weight))[usable] / size[usable])
        prior_rows = ridge if inertial is None else block_diagonal(np.sqrt(_VARIANCE_FACTOR) * inertial.root, ridge)
        noise = np.ones(len(blocks))
        for _ in range(2):  # the second time with the residual noise of the first
            rows = [block[:, used] / s for block, s in zip(blocks, noise, strict=True)]
            right = [r / s for r, s in zip(rights, noise, strict=True)]
            A = np.vstack([*rows, prior_rows])
            x = constrained_least_squares(A, np.concatenate([*right, np.zeros(len(prior_rows))]), own)
            rest = [np.linalg.norm(r - block[:, used] @ x) for r, block in zip(rights, blocks, strict=True)]
            noise = np.maximum(rest, _BEST * efforts)
            silent = noise <= SIGMA_FLOOR * efforts.max()  # joints without effort
            noise = np.where(silent, 1.0, noise / np.sqrt(np.maximum(counts, 1.0)))
        values[usable] = x[len(bodies) :]
    return FirstFit(values, np.where(springs, np.inf, size))


def _left(blocks: Sequence[Array], rights: Sequence[Array], efforts: Array, inertial: Prior | None) -> Array:
    """Norm of the bodies' torque residual in each row group, for each joint term, shape (g, k).

    The lower value is the residual of bodies near the URDF's, divided by the fraction of the column that they cannot explain.
    """
    most = np.minimum([np.linalg.norm(right) for right in rights], efforts)[:, None]  # excludes the weight an axis carries
    if inertial is None:
        return np.repeat(most, blocks[0].shape[1], axis=1)
    rows, m = np.vstack([np.column_stack(pair) for pair in zip(blocks, rights, strict=True)]), len(inertial.theta0)
    held = np.vstack([rows[:, :m], np.sqrt(_VARIANCE_FACTOR) * inertial.root])
    made = lstsq(held, np.vstack([rows[:, m:], np.zeros((m, rows.shape[1] - m))]), rcond=None)[0]
    rest = np.split(rows[:, m:] - rows[:, :m] @ made, np.cumsum([len(block) for block in blocks])[:-1])
    beyond, whole = (np.array([np.linalg.norm(part, axis=0) for part in parts]) for parts in (rest, [b[:, m:] for b in blocks]))
    least = beyond[:, -1:] * whole / np.maximum(beyond[:, :-1], 1e-9 * whole + 1e-300)
    return np.asarray(np.sqrt(most * np.minimum(most, least)))


def _sizes(
    parameters: Sequence[Parameter],
    chosen: Columns,
    blocks: Sequence[Array],
    left: Array,
    efforts: Array,
    own_units: Array,
    counts: Array,
    ordinary: Array | None,
    unsupported: Collection[str],
) -> Array:
    """The value with which each parameter alone would be as large as the bodies' torque residual, shape (k,)."""
    bodies, columns = np.split(np.vstack(blocks), [blocks[0].shape[1] - len(chosen)], axis=1)
    lengths = np.array([np.linalg.norm(block, axis=0)[bodies.shape[1] :] for block in blocks])
    length, acts = np.linalg.norm(lengths, axis=0), lengths > 0
    biased = np.array([parameters[int(k)].symbol in bias_symbols() for k in chosen], dtype=bool)
    torque = np.sqrt(np.sum(acts * np.where(biased, efforts[:, None], left) ** 2, axis=0))
    relative = _relative_norms(parameters, chosen, np.linalg.norm(lengths / own_units[:, None], axis=0))
    share = _shares(parameters, chosen, columns, bodies, biased, unsupported)
    seen = length > 0
    length = length * np.maximum(1.0, _LEAST_NORM / np.where(seen, relative, 1.0))
    if ordinary is not None:
        length = np.maximum(length, ordinary[chosen] * np.sqrt(np.sum(acts * (np.square(own_units) * counts)[:, None], axis=0)))
    return np.asarray(np.where(seen, share * torque / np.where(seen, length, 1.0), np.inf))


def _shares(
    parameters: Sequence[Parameter],
    chosen: Columns,
    columns: Array,
    bodies: Array,
    biased: NDArray[np.bool_],
    unsupported: Collection[str],
) -> Array:
    """Fraction of the torque that each parameter may explain alone, shape (k,); for a bias by its separability from friction.

    A bias that bodies and rotor explain exactly is collinear with the weight on a vertical prismatic joint, and is
    attributed to the weight.
    """
    found, owners = np.ones(len(chosen)), np.array([parameters[int(k)].owner for k in chosen])
    dissipates = np.array([parameters[int(k)].nonnegative for k in chosen], dtype=bool)
    for k in np.flatnonzero(biased):
        same = (owners == owners[k]) & (np.arange(len(chosen)) != k)
        weight = _orthogonal_share(columns[:, k], np.hstack([bodies, columns[:, same]])) <= _SAME
        separable = 0.0 if weight else _orthogonal_share(columns[:, k], columns[:, dissipates & same])
        found[k] = BIAS + (SEPARABLE_BIAS - BIAS) * separable
        if owners[k] in unsupported and not weight:
            found[k] *= UNSUPPORTED
    return found


def _orthogonal_share(own: Array, others: Array) -> float:
    """Fraction of a column's square that is orthogonal to the others."""
    left = own - others @ lstsq(others, own, rcond=None)[0]
    return float(left @ left) / max(float(own @ own), 1e-300)


def _relative_norms(parameters: Sequence[Parameter], chosen: Columns, length: Array) -> Array:
    """Norm of each column relative to the largest of its kind (symbol and unit) among the joints, shape (k,)."""
    kinds = [(parameters[int(k)].symbol, parameters[int(k)].unit) for k in chosen]
    longest: dict[tuple[str, str], float] = {}
    for kind, own in zip(kinds, length, strict=True):
        longest[kind] = max(longest.get(kind, 0.0), float(own))
    return length / np.maximum([longest[kind] for kind in kinds], 1e-300)


def constrained_least_squares(A: Array, b: Array, G: Array) -> Array:
    """Solves ``min ‖A x − b‖`` subject to ``G x ≥ 0`` as a least-distance problem (Lawson and Hanson, 1974, ch. 23).

    Args:
        A: Shape (m, k), full column rank.
        b: Shape (m,).
        G: Shape (c, k).

    Returns:
        Shape (k,).

    Raises:
        EstimationError: The active set did not converge.
    """
    scale = 1.0 / np.linalg.norm(A, axis=0)
    Q, R = np.linalg.qr(A * scale)
    start = Q.T @ b
    if len(G):
        turned = np.linalg.solve(R.T, (G * scale).T).T
        turned = turned / np.maximum(np.linalg.norm(turned, axis=1, keepdims=True), 1e-300)
        least = -turned @ start
        if (least > 0).any():
            from scipy.optimize import nnls

            size = max(float(np.abs(least).max()), 1e-300)
            E = np.vstack([turned.T, least[None, :] / size])
            goal = np.append(np.zeros(len(start)), 1.0)
            try:
                dual = nnls(E, goal, maxiter=50 * E.shape[1])[0]
            except RuntimeError as error:
                raise EstimationError("the bounded first fit did not converge", got=str(error)) from error
            rest = E @ dual - goal
            start = start - size * rest[:-1] / rest[-1]
    return np.asarray(scale * np.linalg.solve(R, start))


def _groups(
    statistics: StatisticSet, chosen: Columns, others: Array, weights: Mapping[str, float]
) -> tuple[list[Array], list[Array], Array, Array]:
    """Weighted factor, right-hand side, norm of the torque and number of rows of every row group."""
    place = np.full(statistics.p, -1)
    place[chosen] = np.arange(len(chosen))
    blocks, rights, efforts, counts = [], [], [], []
    for layout in statistics.layouts:
        weight, width = weights[layout.group], len(layout.columns)
        R = statistics.factor(layout.group)[:, len(layout.instruments) :]
        block = np.zeros((len(R), len(chosen)))
        target = place[layout.columns]
        block[:, target[target >= 0]] = R[:, :width][:, target >= 0]
        blocks.append(weight * block)
        rights.append(weight * (R[:, width] - R[:, :width] @ others[layout.columns]))
        efforts.append(weight * np.sqrt(statistics.effort_squares(layout.group)))
        counts.append(float(statistics.rows[layout.group]))
    return blocks, rights, np.array(efforts), np.array(counts)


def _physical_rows(parameters: Sequence[Parameter], chosen: Columns, physics: HalfSpaces | None) -> Array:
    """Sign constraints, and the half-spaces that involve only chosen parameters."""
    signs = np.eye(len(chosen))[[parameters[int(k)].nonnegative for k in chosen]]
    if physics is None or not len(physics.rows):
        return signs
    rest = np.delete(physics.rows, chosen, axis=1)
    inside = ~np.any(rest != 0, axis=1) & (physics.limits == 0)
    return np.vstack([signs, physics.rows[inside][:, chosen]])
