"""A first value of friction and rotor inertia, which a URDF lacks: bounded, physical, and in proportion to the torque.

Least squares alone is no first value: columns of friction that the data hardly tell apart come out large and with opposite
signs, and what cancels in the data does not cancel elsewhere. So each parameter is expected to contribute no more than what
the bodies leave of the torque, ``x ~ N(0, (rms(left)/rms(column))²)``, in the logs and in ordinary motion, and friction
may not drive. The URDF's bodies leave too much, for that holds what is wrong with them; bodies fitted near the URDF leave too
little, for they make up for friction and rotors in a short motion: the geometric mean of the two is taken. A bias (offset of
an amplifier) is expected to be a small part of the torque, and a smaller one where the data do not tell it from friction: a
joint that never reverses shows only its sum with Coulomb friction, which is then the friction.
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
from ..model.springs import SPRING_SYMBOLS
from ..samples import ReadOnly
from ..statistics.statistic import StatisticSet
from .options import HalfSpaces

#: Nominal variances of a fit are too small by about this much (residuals are no independent noise).
_OVERRATED = 10.0
Columns = NDArray[np.intp]

#: A joint that moves by less than this part of the liveliest one's motion is taken to move by that part: what is left is noise,
#: and noise divided by noise would make any value plausible.
_STILL = 0.3
#: How large a bias may be beside the torque, a fraction: where it looks like friction, and where it is told from it.
BIAS, TOLD_BIAS = 0.03, 0.1
#: Part of that where held-out data do not ask for one.
UNASKED = 0.3
#: A bias is the same as a weight where bodies and rotors leave at most this part of its square.
_SAME = 1e-12
#: Residual of a row group, a fraction of its torque, below which no model is taken to be true.
_BEST = 1e-3


@dataclass(frozen=True, eq=False)
class FirstFit(ReadOnly):
    """First values of some parameters.

    Attributes:
        values: Shape (k,); NaN where the data do not see a parameter.
        size: The value with which each alone would be as large as what the bodies leave of the torque (a bias: as 3 to 10 %
            of the torque), shape (k,); inf where unseen, and for the springs of elastic joints, whose torque and preload may
            exceed the measured one.
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
    unasked: Collection[str] = (),
    reversals: float = np.inf,
) -> FirstFit:
    """Estimates joint terms while the bodies are held, or as free as their prior allows.

    Args:
        parameters: All of theta's entries.
        columns: Indices into theta to estimate, length k; joint terms.
        fixed: Values of all parameters, shape (p,); those of ``columns`` do not count.
        weights: Row group → weight [1/unit of torque].
        physics: What the parameters must satisfy, beside their signs; half-spaces of other parameters are left out.
        inertial: Prior of the first m parameters: they are estimated too, close to it. None: held.
        ordinary: RMS of all parameters' columns in ordinary motion, shape (p,) (:func:`.ordinary_columns`); None: as in the
            data.
        unasked: Joints whose bias the data do not ask for: it is expected to be smaller.
        reversals: How often the joints that move turn back, mean.

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
    size = _sizes(parameters, chosen, blocks, left, efforts, own_units, counts, ordinary, unasked)
    seen = np.isfinite(size)
    usable = seen & (size > 0)
    # springs of elastic joints are not bounded, for they balance each other
    springs = np.array([parameters[int(k)].symbol in SPRING_SYMBOLS for k in chosen], dtype=bool)
    values = np.full(len(chosen), np.nan)
    values[seen & ~usable] = 0.0
    if usable.any():
        used = np.concatenate([np.ones(len(bodies), dtype=bool), usable])
        signs = _physical_rows(parameters, chosen, physics)[:, usable]
        own = np.hstack([np.zeros((len(signs), len(bodies))), signs])
        rotors = np.array([parameters[int(k)].rotor for k in chosen])
        # gravity of a tool that the URDF lacks looks like acceleration where joints hardly turn back
        weight = np.where(rotors, max(_OVERRATED, least_weight(reversals)), _OVERRATED)
        ridge = np.diag(np.where(springs, 0.0, np.sqrt(weight) / size)[usable])
        prior_rows = ridge if inertial is None else block_diagonal(np.sqrt(_OVERRATED) * inertial.root, ridge)
        noise = np.ones(len(blocks))
        for _ in range(2):  # the second time with the noise that is left
            rows = [block[:, used] / s for block, s in zip(blocks, noise, strict=True)]
            right = [r / s for r, s in zip(rights, noise, strict=True)]
            A = np.vstack([*rows, prior_rows])
            x = constrained_least_squares(A, np.concatenate([*right, np.zeros(len(prior_rows))]), own)
            rest = [np.linalg.norm(r - block[:, used] @ x) for r, block in zip(rights, blocks, strict=True)]
            noise = np.maximum(rest, _BEST * efforts + 1e-300) / np.sqrt(np.maximum(counts, 1.0))
        values[usable] = x[len(bodies) :]
    return FirstFit(values, np.where(springs, np.inf, size))


def _left(blocks: Sequence[Array], rights: Sequence[Array], efforts: Array, inertial: Prior | None) -> Array:
    """Length of what bodies leave of each row group's torque, as it looks to each joint term, shape (g, k).

    The least is what bodies near the URDF's leave, over the part of the column that they do not make either.
    """
    most = np.minimum([np.linalg.norm(right) for right in rights], efforts)[:, None]  # not the weight that an axis carries
    if inertial is None:
        return np.repeat(most, blocks[0].shape[1], axis=1)
    rows, m = np.vstack([np.column_stack(pair) for pair in zip(blocks, rights, strict=True)]), len(inertial.theta0)
    held = np.vstack([rows[:, :m], np.sqrt(_OVERRATED) * inertial.root])
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
    unasked: Collection[str],
) -> Array:
    """The value with which each parameter alone would be as large as what the bodies leave of the torque, shape (k,)."""
    bodies, columns = np.split(np.vstack(blocks), [blocks[0].shape[1] - len(chosen)], axis=1)
    lengths = np.array([np.linalg.norm(block, axis=0)[bodies.shape[1] :] for block in blocks])
    length, acts = np.linalg.norm(lengths, axis=0), lengths > 0
    biased = np.array([parameters[int(k)].symbol in bias_symbols() for k in chosen], dtype=bool)
    torque = np.sqrt(np.sum(acts * np.where(biased, efforts[:, None], left) ** 2, axis=0))
    lively = _liveliness(parameters, chosen, np.linalg.norm(lengths / own_units[:, None], axis=0))
    share = _shares(parameters, chosen, columns, bodies, biased, unasked)
    seen = length > 0
    length = length * np.maximum(1.0, _STILL / np.where(seen, lively, 1.0))
    if ordinary is not None:
        length = np.maximum(length, ordinary[chosen] * np.sqrt(np.sum(acts * (np.square(own_units) * counts)[:, None], axis=0)))
    return np.asarray(np.where(seen, share * torque / np.where(seen, length, 1.0), np.inf))


def _shares(
    parameters: Sequence[Parameter],
    chosen: Columns,
    columns: Array,
    bodies: Array,
    biased: NDArray[np.bool_],
    unasked: Collection[str],
) -> Array:
    """Part of the torque that each parameter may make alone, shape (k,): of a bias by how far it differs from friction.

    A bias that bodies and rotor make exactly is the weight on a vertical slider, and is taken for the weight, which data
    cannot tell it from.
    """
    found, owners = np.ones(len(chosen)), np.array([parameters[int(k)].owner for k in chosen])
    dissipates = np.array([parameters[int(k)].nonnegative for k in chosen], dtype=bool)
    for k in np.flatnonzero(biased):
        same = (owners == owners[k]) & (np.arange(len(chosen)) != k)
        weight = _apart(columns[:, k], np.hstack([bodies, columns[:, same]])) <= _SAME
        told = 0.0 if weight else _apart(columns[:, k], columns[:, dissipates & same])
        found[k] = (BIAS + (TOLD_BIAS - BIAS) * told) * (UNASKED if owners[k] in unasked and not weight else 1.0)
    return found


def _apart(own: Array, others: Array) -> float:
    """Share of a column's square that no combination of others makes."""
    left = own - others @ lstsq(others, own, rcond=None)[0]
    return float(left @ left) / max(float(own @ own), 1e-300)


def _liveliness(parameters: Sequence[Parameter], chosen: Columns, length: Array) -> Array:
    """Length of each column over that of the longest of its kind (symbol and unit) among the joints, shape (k,)."""
    kinds = [(parameters[int(k)].symbol, parameters[int(k)].unit) for k in chosen]
    longest: dict[tuple[str, str], float] = {}
    for kind, own in zip(kinds, length, strict=True):
        longest[kind] = max(longest.get(kind, 0.0), float(own))
    return length / np.maximum([longest[kind] for kind in kinds], 1e-300)


def constrained_least_squares(A: Array, b: Array, G: Array) -> Array:
    """``min ‖A x − b‖`` subject to ``G x ≥ 0``, as a least-distance problem (Lawson and Hanson, 1974, ch. 23).

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
    """Weighted factor, right-hand side, length of the torque and number of rows of every row group."""
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
    """Signs, and the half-spaces that hold chosen parameters only."""
    signs = np.eye(len(chosen))[[parameters[int(k)].nonnegative for k in chosen]]
    if physics is None or not len(physics.rows):
        return signs
    rest = np.delete(physics.rows, chosen, axis=1)
    inside = ~np.any(rest != 0, axis=1) & (physics.limits == 0)
    return np.vstack([signs, physics.rows[inside][:, chosen]])
