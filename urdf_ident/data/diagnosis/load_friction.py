"""Bodies and friction identified from the samples of a case, with friction that grows with the load of each joint.

Gears have friction in proportion to the torque that they transmit. Left out, it looks like asymmetric efforts, crosstalk or a
wrong zero, and in a single log like a change along it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...linalg import Array, rms
from ...model.engine.pinocchio import regressor
from ...samples import one_way
from .candidates import Reading
from .case import Case
from .gram_fit import solved
from .grams import friction_columns
from .motion_samples import MotionSamples

#: Bounds of the relative residuals from which the rows' weights are computed.
_TRUSTED = (0.01, 0.5)
#: Fits from which the load of each joint is computed: without load-dependent friction, then twice with it.
_LOADS = 3


@dataclass(frozen=True, eq=False)
class LoadedFit:
    """The fit, and its columns.

    Attributes:
        columns: The regressor, shape (N, n, 10 n).
        inertial: Its independent columns, shape (N, n, m), scaled.
        friction: Shape (n, N, f + 1), scaled; the last column is friction that grows with the load, where it dissipates.
        sizes: Scale factors of the friction columns of each joint, shape (f,) each.
        weights: One over the residual variance of each row, shape (n,).
        rigid: Coefficients of the inertial columns, shape (m,).
        drag: Coefficients of the friction columns, shape (n, f + 1).
    """

    columns: Array
    inertial: Array
    friction: Array
    sizes: Sequence[Array]
    weights: Array
    rigid: Array
    drag: Array

    @classmethod
    def of(cls, case: Case) -> LoadedFit:
        """Fits the samples of a case as logged.

        The load is the torque of the bodies, so that the fit is repeated. It has no friction where that would drive the joint,
        nor where the joint moves one way, because it then resembles a weight.
        """
        robot, samples, logged = case.robot, case.sampled(0.0), Reading.as_logged(case.robot.n)
        found = case.evidence(logged)
        weights = 1 / (np.clip(case.judge(logged).left, *_TRUSTED) * found.size) ** 2
        columns = regressor(robot, samples.q, samples.v, samples.a)
        inertial = columns[:, :, found.active] / found.scale
        own = [friction_columns(samples, j) for j in range(robot.n)]
        sizes = [np.maximum(rms(x, 0), 1e-12) for x in own]
        friction = np.stack([x / size for x, size in zip(own, sizes, strict=True)])
        friction, rigid, drag = _with_load(samples, inertial, friction, weights)
        return cls(columns, inertial, friction, sizes, weights, rigid, drag)

    @cached_property
    def fitted(self) -> Array:
        """Efforts of the fit, shape (N, n) [N·m or N]."""
        return np.asarray(self.inertial @ self.rigid + np.einsum("ink,ik->ni", self.friction, self.drag))

    @property
    def load_friction(self) -> Array:
        """Friction that grows with the load, shape (N, n) [N·m or N]."""
        return np.asarray((self.friction[:, :, -1] * self.drag[:, -1:]).T)


def _with_load(samples: MotionSamples, inertial: Array, friction: Array, weights: Array) -> tuple[Array, Array, Array]:
    """Friction columns with that of the load, shape (n, N, f + 1), and coefficients of bodies (m,) and friction (n, f + 1)."""
    n, m, p = len(friction), inertial.shape[2], inertial.shape[2] + friction.shape[2] + 1
    turn = np.tanh(samples.v / (0.1 * np.maximum(samples.v.std(axis=0), 1e-9)))
    loaded, left_out = np.zeros_like(turn), np.array([one_way(v) for v in samples.v.T])
    efforts = np.broadcast_to(samples.tau, (n, *samples.tau.shape))
    for _ in range(_LOADS):
        own = np.concatenate([friction, loaded.T[:, :, None]], axis=2)
        columns = np.concatenate([inertial.transpose(1, 0, 2), own, efforts], axis=2) * samples.glides.T[:, :, None]
        gram = columns.transpose(0, 2, 1) @ columns
        x = -solved(gram[None], np.array([float(len(turn))]), m, np.eye(n)[:, :, None], weights)[0, :, :, 0]
        left_out |= x[:, p - 1] < 0
        drag = np.abs(inertial @ x[0, :m]) * turn
        loaded = np.where(left_out, 0.0, drag / np.maximum(rms(drag, 0), 1e-12))
    return own, x[0, :m], x[:, m:p]
