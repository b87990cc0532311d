"""Gram matrices of a joint regression of all torques, one per block of time and row (joint).

All rows share the inertial parameters of all bodies; each joint adds its own rotor inertia, friction and offset. No URDF
inertia is used. Samples of a joint at rest are left out, because static friction is indeterminate. The efforts are columns
too, so that other interpretations of the same efforts (signs, orders, scales) need no new regressor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

import numpy as np

from ..linalg import Array, BoolArray, IntArray, positive, rms
from .motion_samples import MotionSamples

Own = TypeVar("Own", bound="Grams")
#: Number of folds; each leaves out every ``FOLDS``-th block.
FOLDS = 5
#: Columns of :func:`friction_columns`: offset, velocity, its sign, and the dissipative ones, which are odd in the velocity.
OFFSET, VISCOUS, COULOMB, DISSIPATES = 1, 2, 3, slice(2, 6)
#: Relative residual below which a torque counts as exactly explained.
EXACT = 5e-3
#: Correlation of offset and smoothed sign of the velocity above which a joint moves in one direction only.
_SWEPT = 0.6
#: Number of columns per joint or motor, and of additional columns for springs.
_OF_ONE, _OF_SPRINGS = 6, 3
#: Kinds of :meth:`Grams.changing` whose columns all rows share.
_OF_BODIES = ("payload", "zeros or inertias")


def friction_columns(motion: MotionSamples, j: int, springs: Sequence[int] = ()) -> Array:
    """Columns of rotor inertia, offset and a flexible friction law of one joint, and of motors coupled to it.

    Args:
        springs: Joints with a spring or balancer; if there are any, three more columns, zero for the other joints.

    Returns:
        Shape (N, 6): acceleration, 1, velocity, smoothed signs of two widths, velocity times its magnitude; position, its sine
        and cosine about their means; and the first six for each coupled motor, with the sign in which it drives the joint,
        padded with zeros to the largest number of coupled motors.
    """
    columns = _dissipating(motion.v[:, j], motion.a[:, j], motion.signs[:, j])
    if springs:
        q = motion.q[:, j]
        columns += [x - x.mean() if j in springs else np.zeros(len(q)) for x in (q, np.sin(q), np.cos(q))]
    for motor in coupled_with(motion.reduction, j):
        columns += (
            _dissipating(motion.v @ motor, motion.a @ motor, motion.signs_along(motor))
            if motor.any()
            else [*np.zeros((_OF_ONE, len(motion.v)))]
        )
    return np.column_stack(columns)


def coupled_with(reduction: Array | None, j: int) -> list[Array]:
    """Motors coupled to a joint and others, with the sign in which they drive it.

    Args:
        reduction: Motor rates per joint rates, shape (n, n), or None if every motor drives one joint.

    Returns:
        Their rates per joint rates, shape (n,) each, padded with zeros to the largest number of coupled motors.
    """
    if reduction is None:
        return []
    coupled = reduction[np.count_nonzero(reduction, axis=1) > 1]
    motors = [np.sign(row[j]) * row for row in coupled if row[j] != 0]
    most = int((coupled != 0).sum(axis=0).max(initial=0))
    return [*motors, *np.zeros((most - len(motors), len(reduction)))]


def column_starts(columns: int) -> list[int]:
    """Start indices of the columns of a joint, and of each coupled motor, in its friction columns.

    Args:
        columns: Number of :func:`friction_columns`.
    """
    return [0, *range(_OF_ONE + (_OF_SPRINGS if columns % _OF_ONE else 0), columns, _OF_ONE)]


def _dissipating(v: Array, a: Array, signs: Array) -> list[Array]:
    return [a, np.ones(len(v)), v, *signs.T, v * np.abs(v)]


@dataclass(frozen=True, eq=False)
class Grams:
    """Gram matrices of one interpretation of the motion.

    Attributes:
        gram: Shape (B, n, p, p): for block b and row i, columns [inertial | friction of i | effort of every joint].
        active: Mask of these columns in the regressor, shape (10 n_bodies,); the others depend on them or are zero.
        scale: Scale factors by which they were divided, shape (m,).
        sizes: Root mean square of each effort about its mean, where the row's joint moves, shape (rows, efforts) [N·m or N].
        count: Samples of each block, shape (B,).
        added: Number of columns of each row behind its :func:`friction_columns` and before the efforts.
    """

    gram: Array
    inertial: int
    active: BoolArray
    scale: Array
    sizes: Array
    count: Array
    added: int = 0

    @classmethod
    def of(
        cls: type[Own],
        motion: MotionSamples,
        inertial: Array,
        kept: IntArray,
        parameters: int,
        springs: Sequence[int] = (),
        more: Sequence[Array] = (),
    ) -> Own:
        """Computes the Gram matrices of a motion.

        Args:
            inertial: Independent columns of the regressor, shape (N, n, k).
            kept: Their indices among the inertial parameters, shape (k,).
            parameters: Number of inertial parameters.
            springs: Joints with a spring or balancer.
            more: More friction columns of each joint, shape (N, k) each; none by default.
        """
        n = motion.q.shape[1]
        active = np.zeros(parameters, dtype=bool)
        scale = rms(inertial, (0, 1))
        seen = scale > 1e-9 * scale.max(initial=0.0)
        active[kept[seen]] = True
        scale = scale[seen]
        own = [friction_columns(motion, i, springs) for i in range(n)]
        frictions = np.stack([np.hstack([x, *more[i : i + 1]]) for i, x in enumerate(own)])
        m, p = len(scale), len(scale) + frictions.shape[2] + n
        columns = np.empty((n, len(motion), p))
        np.divide(inertial.transpose(1, 0, 2)[:, :, seen], scale, out=columns[:, :, :m])
        size = np.maximum(rms(frictions, 1)[:, None], 1e-12)
        np.divide(frictions, size, out=columns[:, :, m:-n])
        columns[:, :, -n:] = motion.tau
        columns *= motion.glides.T[:, :, None]
        if (np.diff(motion.block) < 0).any():
            columns = columns[:, np.argsort(motion.block, kind="stable")]
        count = np.bincount(motion.block)
        gram = np.empty((len(count), n, p, p))
        for out, end, length in zip(gram, np.cumsum(count), count, strict=True):
            rows = columns[:, end - length : end]
            np.matmul(rows.transpose(0, 2, 1), rows, out=out)
        return cls(gram, m, active, scale, motion.sizes, count.astype(float), frictions.shape[2] - own[0].shape[1])

    @property
    def friction_starts(self) -> list[int]:
        """:func:`column_starts` of the friction of each row, as columns of its Gram matrix."""
        own = self.gram.shape[2] - self.n - self.inertial - self.added
        return [self.inertial + k for k in column_starts(own)]

    @property
    def n(self) -> int:
        """Number of joints."""
        return int(self.gram.shape[1])

    @property
    def size(self) -> Array:
        """Root mean square of each effort about its mean, where its own joint moves, shape (n,) [N·m or N]."""
        return np.asarray(np.diag(self.sizes))

    def size_of(self, effort_map: Array) -> Array:
        """Root mean square of the interpreted efforts about their means, at least :meth:`exact_of`, shape (n, ...) [N·m or N].

        An effort that is interpreted as another joint's must be explained where that joint moves.

        Args:
            effort_map: Factor of each logged effort in each row, shape (n², ...).
        """
        efforts = np.abs(effort_map).reshape(self.n, self.n, *effort_map.shape[1:])
        size = np.einsum("ie...,ie->i...", efforts, self.sizes)
        return np.asarray(np.maximum(size, positive(self.exact_of(effort_map))))

    def exact_of(self, effort_map: Array) -> Array:
        """Residual below which the interpreted efforts count as exactly explained, shape (n, ...) [N·m or N].

        It follows their variation where their own joints move: while the joint they are interpreted as moves, an effort may
        hardly vary (joints move one after the other), and would be easy to explain.

        Args:
            effort_map: Factor of each logged effort in each row, shape (n², ...).
        """
        efforts = np.abs(effort_map).reshape(self.n, self.n, *effort_map.shape[1:])
        return np.asarray(EXACT * np.einsum("ie...,e->i...", efforts, self.size))

    @cached_property
    def total(self) -> Array:
        """Sum over the blocks, shape (n, p, p)."""
        return np.asarray(self.gram.sum(axis=0))

    @property
    def moving(self) -> Array:
        """Samples of each block in which each joint moves, shape (B, n)."""
        offset = self.inertial + OFFSET
        return np.asarray(self.gram[:, :, offset, offset])

    @cached_property
    def folds(self) -> tuple[IntArray, Array, Array]:
        """Fold of each block, shape (B,), and training data of each fold: Gram matrices (F, n, p, p), sample counts (F,)."""
        fold = np.arange(len(self.gram)) % min(FOLDS, len(self.gram))
        count = int(fold.max()) + 1
        learnt = np.stack([self.total - self.gram[k::count].sum(axis=0) for k in range(count)])
        samples = self.count.sum() - np.array([self.count[k::count].sum() for k in range(count)])
        return fold, learnt, samples

    def both_ways(self, acts: Array) -> BoolArray:
        """Returns whether joints move in both directions in some blocks, shape (W, n); False for joints at rest.

        Otherwise offset, Coulomb friction and torques that depend on the position are collinear there.

        Args:
            acts: Weight of each block, shape (W, B), 0 to 1.
        """
        at = np.array([self.inertial + OFFSET, self.inertial + COULOMB])
        own = np.tensordot(acts, self.gram[:, :, at[:, None], at], axes=1)
        sizes = np.sqrt(own[..., 0, 0] * own[..., 1, 1])
        return np.asarray((np.abs(own[..., 0, 1]) < _SWEPT * sizes) & (own[..., 0, 0] > 0))

    def summed(self: Own) -> Own:
        """Returns all blocks summed to one, for use without folds."""
        return replace(self, gram=self.total[None], count=self.count.sum(keepdims=True))

    def of_blocks(self: Own, select: BoolArray) -> Own:
        """Selects blocks.

        Args:
            select: Mask, shape (B,).

        Returns:
            Their Gram matrices; the efforts' sizes remain those of all blocks.
        """
        return replace(self, gram=self.gram[select], count=self.count[select])

    def changing(self: Own, kind: str, weight: Array) -> Own:
        """Returns the same samples with additional columns for parameters that change with time.

        Args:
            kind: ``"payload"``: the last body's inertial parameters; ``"zeros or inertias"``: all bodies';
                ``"friction"``: offset, viscous and Coulomb friction of every joint; ``"offset"``: its offset alone;
                ``"gain"``: a fraction of each effort. A joint's own parameters do not change if the weight is the same in all
                blocks in which it moves: a gain would explain its effort by itself.
            weight: Weight of the change in each block, shape (B,).
        """
        beside, within = self._products(kind)
        w = (weight[:, None] * self._changes(kind, weight[None])[0])[:, :, None, None]
        return self._with_columns(kind in _OF_BODIES, self.gram, w * beside, w**2 * within)

    def with_shared_column(self: Own, made: Array, weight: Array) -> Own:
        """Returns the same samples with one more inertial column, the last, that is a combination of the columns of each row.

        Args:
            made: The combination, shape (n, p).
            weight: Its weight in each block, shape (B,).
        """
        beside = weight[:, None, None] * np.einsum("iq,biqp->bip", made, self.gram)
        within = weight[:, None] * np.einsum("bip,ip->bi", beside, made)
        return self._with_columns(True, self.gram, beside[:, :, None], within[:, :, None, None])

    def changing_in_all(self: Own, kind: str, weights: Array) -> Own:
        """Like :meth:`changing`, summed over the blocks, for several changes: enough for in-sample errors, and much faster.

        Args:
            kind: As for :meth:`changing`.
            weights: Weight of each change in each block, shape (W, B).

        Returns:
            Grams with the additional columns; the first axis is the change instead of the block.
        """
        beside, within = self._products(kind)
        own = self._changes(kind, weights)[:, :, None, None]
        once, twice = own * np.tensordot(weights, beside, axes=1), own * np.tensordot(weights**2, within, axes=1)
        changed = self._with_columns(kind in _OF_BODIES, self.total, once, twice)
        return replace(changed, count=np.full(len(weights), self.count.sum()))

    def _changes(self, kind: str, weights: Array) -> BoolArray:
        """Rows in which parameters of a kind change: of bodies all, else those with different weights in motion, (W, n)."""
        if kind in _OF_BODIES:
            return np.ones((len(weights), self.n), dtype=bool)
        moving, weight = self.moving > 0, weights[:, :, None]
        lowest, highest = np.where(moving, weight, np.inf).min(axis=1), np.where(moving, weight, -np.inf).max(axis=1)
        return np.asarray(lowest < highest)

    def _products(self, kind: str) -> tuple[Array, Array]:
        """Products of each row's columns of a kind with all columns, shape (B, n, k, p), and with each other, (B, n, k, k)."""
        n, m, row = self.n, self.inertial, np.arange(self.n)[:, None]
        p = self.gram.shape[2] - n
        columns = {
            "payload": np.flatnonzero(np.flatnonzero(self.active) >= len(self.active) - 10),
            "zeros or inertias": np.arange(m),
            "friction": np.arange(m + 1, m + 5),
            "offset": np.array([m + OFFSET]),
            "gain": p + row,
        }[kind]
        columns = np.broadcast_to(columns, (n, columns.shape[-1]))
        size = self.size[:, None, None] if kind == "gain" else 1.0
        beside = self.gram[:, row, columns]
        within = beside[:, row[:, :, None], np.arange(columns.shape[1])[:, None], columns[:, None]]
        return beside / size, within / size**2

    def _with_columns(self: Own, inertial: bool, gram: Array, beside: Array, within: Array) -> Own:
        """Inserts columns, inertial ones or each row's own, into Gram matrices, shape (..., n, p, p).

        Args:
            beside, within: Products of the new columns, as from :meth:`_products`, shapes (W, n, k, p) and (W, n, k, k).
        """
        count, n, k, p = beside.shape
        at = self.inertial if inertial else p - n
        out, new = np.empty((count, n, p + k, p + k)), slice(at, at + k)
        out[:, :, new, new] = within
        both = ((slice(at), slice(at)), (slice(at, None), slice(at + k, None)))
        for old, place in both:
            out[:, :, new, place] = beside[..., old]
            out[:, :, place, new] = beside[..., old].swapaxes(2, 3)
            for other, there in both:
                out[:, :, place, there] = gram[..., old, other]
        more = (k, 0) if inertial else (0, k)
        return replace(self, gram=out, inertial=self.inertial + more[0], added=self.added + more[1])
