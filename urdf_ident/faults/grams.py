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
#: Columns of :func:`friction_columns`: offset, velocity, and the dissipative ones, which are odd in the velocity.
OFFSET, VISCOUS, DISSIPATES = 1, 2, slice(2, 6)
#: Relative residual below which a torque counts as exactly explained.
EXACT = 5e-3
#: Number of columns per joint or motor, and of additional columns for springs.
_OF_ONE, _OF_SPRINGS = 6, 3


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
    """

    gram: Array
    inertial: int
    active: BoolArray
    scale: Array
    sizes: Array
    count: Array

    @classmethod
    def of(
        cls: type[Own],
        motion: MotionSamples,
        inertial: Array,
        kept: IntArray,
        parameters: int,
        springs: Sequence[int] = (),
    ) -> Own:
        """Computes the Gram matrices of a motion.

        Args:
            inertial: Independent columns of the regressor, shape (N, n, k).
            kept: Their indices among the inertial parameters, shape (k,).
            parameters: Number of inertial parameters.
            springs: Joints with a spring or balancer.
        """
        n = motion.q.shape[1]
        active = np.zeros(parameters, dtype=bool)
        scale = rms(inertial, (0, 1))
        seen = scale > 1e-9 * scale.max(initial=0.0)
        active[kept[seen]] = True
        scale = scale[seen]
        frictions = np.stack([friction_columns(motion, i, springs) for i in range(n)])
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
        return cls(gram, m, active, scale, motion.sizes, count.astype(float))

    @property
    def friction_starts(self) -> list[int]:
        """:func:`column_starts` of the friction of each row, as columns of its Gram matrix."""
        own = self.gram.shape[2] - self.n - self.inertial
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

    @cached_property
    def folds(self) -> tuple[IntArray, Array, Array]:
        """Fold of each block, shape (B,), and training data of each fold: Gram matrices (F, n, p, p), sample counts (F,)."""
        fold = np.arange(len(self.gram)) % min(FOLDS, len(self.gram))
        count = int(fold.max()) + 1
        learnt = np.stack([self.total - self.gram[k::count].sum(axis=0) for k in range(count)])
        samples = self.count.sum() - np.array([self.count[k::count].sum() for k in range(count)])
        return fold, learnt, samples

    def summed(self: Own) -> Own:
        """Returns all blocks summed to one, for use without folds."""
        return replace(self, gram=self.total[None], count=self.count.sum(keepdims=True))
