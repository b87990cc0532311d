"""How well one rigid robot explains all joints' torques at once, whatever its inertias are.

All rows share the inertial parameters of all bodies; each joint adds its own rotor inertia, friction, offset. No URDF inertia
is used. What a mistake in the log does to this is measured on blocks of time that the fit has not seen. The fit lives in one
Gram matrix a block and row: other readings of the same efforts (signs, orders, scales) cost no new regressor.
A ridge of 1e-7 of each column's square stands for the digits that a Gram matrix loses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ...linalg import Array
from .sampled import MotionSamples

#: Blocks left out at a time are every so manieth.
FOLDS = 5
#: Torques explained to this part of their rms leave nothing to explain better.
EXACT = 5e-3
#: Part of a joint's torque that sound logs leave unexplained in ways that time or another reading explains by chance.
MATERIAL = 0.05
_RIDGE = 1e-7
#: Part of the largest column's squares below which a column counts as not seen.
_UNSEEN = 1e-6


def friction_columns(motion: MotionSamples, j: int, springs: Sequence[int] = ()) -> Array:
    """Rotor inertia, offset and a flexible friction law of one joint, and of motors that turn with it and other joints.

    Args:
        motion: The samples.
        j: The joint.
        springs: Joints with a spring or balancer; if there are any three columns more, zeros for the other joints.

    Returns:
        Shape (N, 6): acceleration, 1, velocity, smoothed signs of two widths, velocity times its size; position, its sine and
        cosine about their means; and the first six of the motors, zeros where a joint has fewer of them than another.
    """
    columns = _dissipating(motion.v[:, j], motion.a[:, j])
    if springs:
        q = motion.q[:, j]
        columns += [x - x.mean() if j in springs else np.zeros(len(q)) for x in (q, np.sin(q), np.cos(q))]
    A = motion.reduction
    if A is None:
        return np.column_stack(columns)
    coupled = np.count_nonzero(A, axis=1) > 1
    for k in np.flatnonzero(coupled & (A[:, j] != 0)):
        columns += _dissipating(motion.v @ A[k], motion.a @ A[k])
    most = int((A[coupled] != 0).sum(axis=0).max())
    missing = most - int((A[coupled, j] != 0).sum())
    return np.column_stack([*columns, *np.zeros((6 * missing, len(motion.v)))])


def _dissipating(v: Array, a: Array) -> list[Array]:
    typical = max(float(np.sqrt(np.mean(v**2))), 1e-9)
    return [a, np.ones(len(v)), v, *(np.tanh(v / (w * typical)) for w in (0.1, 0.6)), v * np.abs(v)]


#: Columns of :func:`friction_columns`: the offset, the sign of the velocity, and those odd in the velocity: what dissipates.
OFFSET, COULOMB, DISSIPATES = 1, 3, slice(2, 6)


@dataclass(frozen=True, eq=False)
class Grams:
    """Gram matrices of one reading of the motion.

    Attributes:
        gram: Shape (B, n, p, p): of block b and row i, columns [inertial | friction of i | effort of every joint].
        inertial: Number of inertial columns.
        active: Which of the regressor's columns they are, shape (10 n,); the others follow from these, or are zero.
        scale: What they were divided by, shape (m,).
        size: Root mean square of each effort about its mean, shape (n,) [N·m or N].
        count: Samples of each block, shape (B,).
    """

    gram: Array
    inertial: int
    active: NDArray[np.bool_]
    scale: Array
    size: Array
    count: Array

    @property
    def n(self) -> int:
        """Number of joints."""
        return int(self.gram.shape[1])

    @cached_property
    def total(self) -> Array:
        """Sum over the blocks, shape (n, p, p)."""
        return np.asarray(self.gram.sum(axis=0))

    @cached_property
    def folds(self) -> tuple[NDArray[np.int64], Array, Array]:
        """Fold of each block, shape (B,), and what each fold learns from: Gram matrices, shape (F, n, p, p), samples, (F,)."""
        fold = np.arange(len(self.gram)) % min(FOLDS, len(self.gram))
        count = int(fold.max()) + 1
        learnt = np.stack([self.total - self.gram[k::count].sum(axis=0) for k in range(count)])
        samples = self.count.sum() - np.array([self.count[k::count].sum() for k in range(count)])
        return fold, learnt, samples

    @cached_property
    def usual(self) -> Array:
        """Unexplained parts of the rows when the efforts are read as logged, for weights, shape (n,).

        Held between 0.03 and 0.3: neither a row without noise nor one that is wrong rules the others.
        """
        as_logged = readings(self.n)[:, None]
        squares = held_out(self, as_logged, 1.0 / self.size**2).squares
        return np.asarray(np.clip(unexplained(self, squares, as_logged)[:, 0], 0.03, 0.3))

    def summed(self) -> Grams:
        """All blocks as one: for what needs no folds."""
        return replace(self, gram=self.total[None], count=self.count.sum(keepdims=True))

    def changing(self, kind: str, weight: Array) -> Grams:
        """The same samples, explained by parameters of which some change with time.

        Args:
            kind: ``"payload"``: the last body's inertial parameters; ``"zeros or inertias"``: all bodies';
                ``"friction"``: offset, viscous and Coulomb friction of every joint; ``"offset"``: its offset alone;
                ``"gain"``: a part of each effort.
            weight: How much of the change acts in each block, shape (B,).

        Returns:
            Grams with further columns.
        """
        extra, sources = self._sources(kind)
        added = len(sources[0])
        p = self.gram.shape[2]
        factor = np.ones((len(weight), p + added))
        factor[:, extra : extra + added] = weight[:, None]
        gram = np.empty((len(weight), self.n, p + added, p + added))
        for i, source in enumerate(sources):
            order = np.concatenate([np.arange(extra), source, np.arange(extra, p)])
            gram[:, i] = self.gram[:, i][:, order[:, None], order] * factor[:, :, None] * factor[:, None, :]
        return self._changed(kind, gram, added)

    def changing_in_all(self, kind: str, weights: Array) -> Grams:
        """:meth:`changing` summed over the blocks, for several changes: enough for what a fit has seen, and far less work.

        Args:
            kind: As for :meth:`changing`.
            weights: How much of each change acts in each block, shape (W, B).

        Returns:
            Grams with further columns, one for each change in the place of the blocks.
        """
        extra, sources = self._sources(kind)
        added, many = len(sources[0]), len(weights)
        once, twice = (np.tensordot(w, self.gram, axes=(1, 0)) for w in (weights, weights**2))
        p = self.gram.shape[2]
        gram = np.empty((many, self.n, p + added, p + added))
        plain = np.concatenate([np.arange(extra), np.arange(extra + added, p + added)])
        new = np.arange(extra, extra + added)
        for i, source in enumerate(sources):
            own = gram[:, i]
            own[:, plain[:, None], plain] = self.total[i]
            own[:, new[:, None], plain] = once[:, i][:, source]
            own[:, plain[:, None], new] = once[:, i][:, :, source]
            own[:, new[:, None], new] = twice[:, i][:, source[:, None], source]
        return replace(self._changed(kind, gram, added), count=np.full(many, self.count.sum()))

    def _sources(self, kind: str) -> tuple[int, list[NDArray[np.intp]]]:
        """Where further columns are put, and of which columns of each row they are a part."""
        n, m = self.n, self.inertial
        p = self.gram.shape[2] - n
        return {
            "payload": (m, [np.flatnonzero(np.flatnonzero(self.active) >= 10 * (n - 1))] * n),
            "zeros or inertias": (m, [np.arange(m)] * n),
            "friction": (p, [np.arange(m + 1, m + 5)] * n),
            "offset": (p, [np.array([m + 1])] * n),
            "gain": (p, [np.array([p + i]) for i in range(n)]),
        }[kind]

    def _changed(self, kind: str, gram: Array, added: int) -> Grams:
        if kind == "gain":
            at = self.gram.shape[2] - self.n
            gram[:, :, at] /= self.size[:, None]
            gram[:, :, :, at] /= self.size[:, None]
        return replace(self, gram=gram, inertial=self.inertial + (added if kind in ("payload", "zeros or inertias") else 0))


def gather(motion: MotionSamples, inertial: Array, kept: NDArray[np.intp], springs: Sequence[int] = ()) -> Grams:
    """Gram matrices of a motion.

    Args:
        motion: The samples.
        inertial: Columns of the regressor from which the others follow, shape (N, n, k).
        kept: Which of the 10 n inertial parameters they belong to, shape (k,).
        springs: Joints with a spring or balancer.

    Returns:
        The evidence.
    """
    n = motion.q.shape[1]
    active = np.zeros(10 * n, dtype=bool)
    scale = np.sqrt(np.mean(inertial**2, axis=(0, 1)))
    seen = scale > 1e-9 * max(float(scale.max(initial=0.0)), 1e-300)
    active[kept[seen]] = True
    scale = scale[seen]
    frictions = np.stack([friction_columns(motion, i, springs) for i in range(n)])
    m, p = len(scale), len(scale) + frictions.shape[2] + n
    columns = np.empty((n, len(motion), p))
    np.divide(inertial.transpose(1, 0, 2)[:, :, seen], scale, out=columns[:, :, :m])
    size = np.maximum(np.sqrt(np.mean(frictions**2, axis=1, keepdims=True)), 1e-12)
    np.divide(frictions, size, out=columns[:, :, m:-n])
    columns[:, :, -n:] = motion.tau
    if (np.diff(motion.block) < 0).any():
        columns = columns[:, np.argsort(motion.block, kind="stable")]
    count = np.bincount(motion.block)
    gram = np.empty((len(count), n, p, p))
    for out, end, length in zip(gram, np.cumsum(count), count, strict=True):
        rows = columns[:, end - length : end]
        np.matmul(rows.transpose(0, 2, 1), rows, out=out)
    return Grams(gram, m, active, scale, np.maximum(motion.tau.std(axis=0), 1e-12), count.astype(float))


def readings(n: int, order: Sequence[int] | None = None, gains: Array | None = None) -> Array:
    """One reading of the efforts: which effort belongs to which row, and times what.

    Args:
        n: Number of joints.
        order: ``order[i]`` is the effort that row i gets; as logged if None.
        gains: Factors of the rows, shape (n,); 1 if None.

    Returns:
        Coefficients of the (row, effort) pairs, shape (n²,).
    """
    out = np.zeros((n, n))
    out[np.arange(n), np.arange(n) if order is None else np.asarray(order)] = 1.0 if gains is None else gains
    return out.ravel()


@dataclass(frozen=True, eq=False)
class Errors:
    """What readings of the efforts leave on blocks that the fit has not seen.

    Attributes:
        squares: Sums of squared errors, shape (B, n, H) [N²·m² or N²].
        power: Mean friction torque times velocity over the product of their rms, of every fold, shape (F, n, H): negative
            where friction would drive the joint.
        theta: Inertial parameters of every fold, scaled columns, shape (F, m, H).
    """

    squares: Array
    power: Array
    theta: Array


def held_out(found: Grams, reading: Array, weights: Array) -> Errors:
    """Errors on blocks that the fit has not seen.

    Args:
        reading: Readings of the efforts, shape (n², H).
        weights: One over the variance of each row, shape (n,).

    Returns:
        The errors.
    """
    n, m, total, rows = found.n, found.inertial, found.total, float(found.count.sum())
    fold, learnt, counts = found.folds
    efforts = reading.reshape(n, n, -1)
    x = solved(learnt, counts, m, efforts, weights)
    squares = np.sum(x[fold] * (found.gram @ x[fold]), axis=2)
    p = total.shape[1] - n
    size = np.maximum(np.abs(efforts).transpose(0, 2, 1) @ found.size, 1e-300)
    drag = -np.sum(x[:, :, m:p][:, :, DISSIPATES] * (total[:, m + 2, m:p][:, DISSIPATES] / rows)[None, :, :, None], axis=2)
    return Errors(np.maximum(squares, 0.0), drag / size, -x[:, 0, :m])


def in_sample(found: Grams, reading: Array, weights: Array) -> Array:
    """Errors that remain where the fit has seen everything: what the model cannot explain, however little it is excited.

    Args:
        reading: Readings of the efforts, shape (n², H).
        weights: One over the variance of each row, shape (n,).

    Returns:
        Sums of squares, shape (B, n, H) [N²·m² or N²].
    """
    total = found.total[None]
    x = solved(total, np.array([found.count.sum()]), found.inertial, reading.reshape(found.n, found.n, -1), weights)
    return np.asarray(np.maximum(np.sum(x * (found.gram @ x), axis=2), 0.0))


def in_sample_each(found: Grams, kind: str, changes: Array, reading: Array, weights: Array) -> Array:
    """:func:`in_sample` over all blocks together, where parameters change with time, for several changes.

    Args:
        kind: As for :meth:`Grams.changing`.
        changes: How much of each change acts in each block, shape (W, B).
        reading: One reading of the efforts, shape (n², 1).
        weights: One over the variance of each row, shape (n,).

    Returns:
        Unexplained parts of the rows, as :func:`unexplained`, shape (W, n).
    """
    changed = found.changing_in_all(kind, changes)
    x = solved(changed.gram, changed.count, changed.inertial, reading.reshape(found.n, found.n, -1), weights)
    squares = np.maximum(np.sum(x * (changed.gram @ x), axis=2), 0.0)
    return np.stack([unexplained(found, one[None], reading)[:, 0] for one in squares])


def solved(gram: Array, counts: Array, m: int, efforts: Array, weights: Array) -> Array:
    """Coefficients of the columns that leave the residual of each row, by a weighted ridge for every fold.

    Args:
        gram: What each fold learns from, columns [inertial | friction | efforts], shape (F, n, p, p).
        counts: Its samples, shape (F,).
        m: Number of inertial columns.
        efforts: Coefficients of the efforts by row, shape (n, efforts, H).
        weights: One over the variance of each row, shape (n,).

    Returns:
        Shape (F, n, p, H).
    """
    n = gram.shape[1]
    p = gram.shape[2] - efforts.shape[1]
    told, own = gram[:, :, :m, p:] @ efforts, gram[:, :, m:p, p:] @ efforts
    inner = np.linalg.solve(_friction(gram, counts, m, p), np.concatenate([gram[:, :, m:p, :m], own], axis=3))
    reduced = np.concatenate([gram[:, :, :m, :m], told], axis=3) - gram[:, :, :m, m:p] @ inner
    summed = np.tensordot(weights, reduced, axes=(0, 1))
    theta = np.linalg.solve(summed[:, :, :m] + _inertial_ridge(gram, m, weights), summed[:, :, m:])
    friction = inner[..., m:] - inner[..., :m] @ theta[:, None]
    shape = (len(gram), n, *theta.shape[1:])
    return np.concatenate(
        [np.broadcast_to(-theta[:, None], shape), -friction, np.broadcast_to(efforts, (len(gram), *efforts.shape))], axis=2
    )


def _friction(gram: Array, counts: Array, m: int, p: int) -> Array:
    """Normal equations of each row's own columns, shape (F, n, p - m, p - m)."""
    return np.asarray(gram[:, :, m:p, m:p] + (_RIDGE * counts)[:, None, None, None] * np.eye(p - m))


def _inertial_ridge(gram: Array, m: int, weights: Array) -> Array:
    """Shape (F, m, m)."""
    acts = np.einsum("i,fikk->fk", weights, gram[:, :, :m, :m])
    # a column that a fold does not see stays near zero there
    acts = np.maximum(acts, max(_UNSEEN * acts.max(initial=0.0), 1e-300))
    return np.asarray(_RIDGE * acts[:, :, None] * np.eye(m))


def new_in(found: Grams, shared: Array, square: Array, weights: Array) -> Array:
    """What the model's columns do not make up of further columns, each of which acts in one row.

    Args:
        shared: Products of the further columns of each row with the row's inertial and own columns, shape (W, n, p).
        square: Their squares, shape (W, n).
        weights: One over the variance of each row, shape (n,).

    Returns:
        Squares of what is left of them, shape (W, n).
    """
    m, p, total = found.inertial, shared.shape[2], found.total
    own = np.linalg.inv(_friction(total[None], found.count.sum(keepdims=True), m, p)[0])
    inner = own @ total[:, m:p, :m]
    summed = np.tensordot(weights, total[:, :m, :m] - total[:, :m, m:p] @ inner, axes=(0, 0))
    inertial = np.linalg.inv(summed + _inertial_ridge(total[None], m, weights)[0])
    drag = shared[:, :, m:].transpose(1, 0, 2)
    beside = shared[:, :, :m].transpose(1, 0, 2) - drag @ inner
    made = np.sum((drag @ own) * drag, axis=2) + weights[:, None] * np.sum((beside @ inertial) * beside, axis=2)
    return np.asarray(square - made.T)


def unexplained(found: Grams, squares: Array, reading: Array) -> Array:
    """Unexplained part of what each row is told to be.

    Args:
        squares: Sums of squares, shape (B, n, H).
        reading: The readings, shape (n², H).

    Returns:
        Root mean square over that of the row's effort about its mean, at least :data:`EXACT`, shape (n, H).
    """
    n = found.n
    size = np.maximum(np.abs(reading).reshape(n, n, -1).transpose(0, 2, 1) @ found.size, 1e-300)
    return np.asarray(np.maximum(np.sqrt(squares.sum(axis=0) / found.count.sum()) / size, EXACT))


def material(before: Array, after: Array) -> bool:
    """Whether a row's torque is explained better by more than friction that no law has and an imperfect filter leave.

    Args:
        before, after: Unexplained parts of the rows, shape (n,).

    Returns:
        True above :data:`MATERIAL` in some row.
    """
    return bool((before**2 - after**2).max() > MATERIAL**2)


def significance(before: Array, after: Array) -> float:
    """Gain of one explanation over another, over its standard error between blocks of time.

    Args:
        before, after: Mean squared errors over the efforts' squares, shape (B, n).

    Returns:
        Mean over blocks of the summed logarithms' difference, over the standard error of that mean.
    """
    gains = 0.5 * np.log((before + EXACT**2) / (after + EXACT**2)).sum(axis=1)
    return float(gains.mean() / max(gains.std(ddof=1) / np.sqrt(len(gains)), 1e-300))
