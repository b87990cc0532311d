"""Bodies and friction identified from the samples of a case, with friction that grows with the load of each joint.

Gears have friction in proportion to the torque that they transmit. Left out, it looks like asymmetric efforts, crosstalk or a
wrong zero, and in a single log like a change along it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..linalg import Array, BoolArray, rms
from ..model.rigid_bodies import regressor
from ..samples import one_way
from .candidates import Interpretation
from .friction import friction_columns
from .motion_samples import MotionSamples
from .regression import Design
from .trials import Trials

#: Bounds of the relative residuals from which the rows' weights are computed.
TRUSTED = (0.01, 0.5)
#: Friction per load from which one of the fits begins, and the largest that a fit may have.
_MUCH, _MOST = 0.3, 0.9
#: Largest number of steps of a fit, parts of a step that are tried, and the relative reduction below which it has converged.
_STEPS, _PARTS, _CONVERGED = 12, (1.0, 0.5, 0.25, 0.125), 1e-3


@dataclass(frozen=True, eq=False)
class LoadedFit:
    """The fit, and its columns.

    Attributes:
        columns: The regressor, shape (N, n, 10 n).
        inertial: Its independent columns, shape (N, n, m), scaled.
        friction: Shape (n, N, f + 1), scaled; the last column is friction that grows with the load, zero where a joint moves
            one way.
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
    def of(cls, trials: Trials) -> LoadedFit:
        """Fits the samples as logged.

        The load is the torque of the bodies. The fit has no such friction where it would drive the joint, nor where the joint
        moves one way, because it then resembles a weight. The column remains where it would drive: tests for small faults
        leave it free with any sign.
        """
        robot, samples = trials.robot, trials.case.samples
        found = trials.evidence(Interpretation.as_logged(robot.n))
        weights = 1 / (np.clip(trials.as_logged.left, *TRUSTED) * found.size) ** 2
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


#: Coefficients of the bodies (m,), of the friction columns (n, f), and friction per load (n,).
_Sizes = tuple[Array, Array, Array]


@dataclass(frozen=True, eq=False)
class _WithLoad:
    """Torques ``Y θ + F f + c |Y θ| sign(v)``, which are not linear in the parameters θ of the bodies (Gauss-Newton).

    Attributes:
        rows: The columns Y of each joint, shape (n, N, m).
        friction: The columns F, shape (n, N, f).
        turn: Smoothed signs of the velocities, 0 for joints that move one way, shape (n, N).
        tau: Efforts, shape (N, n) [N·m or N].
        glides: Where each joint moves, shape (n, N).
        weights: One over the residual variance of each row, shape (n,).
    """

    rows: Array
    friction: Array
    turn: Array
    tau: Array
    glides: BoolArray
    weights: Array

    def load(self, sizes: _Sizes) -> Array:
        """Torque of the bodies, shape (n, N) [N·m or N]."""
        return np.asarray(self.rows @ sizes[0])

    def squares(self, sizes: _Sizes) -> float:
        """Weighted sum of the squared residuals."""
        load = self.load(sizes)
        dragged = sizes[2][:, None] * (self.turn * np.abs(load))
        torque = load + np.einsum("ink,ik->in", self.friction, sizes[1]) + dragged
        return float(self.weights @ np.sum(((self.tau.T - torque) * self.glides) ** 2, axis=1))

    def fit(self, about: _Sizes, *, free: bool) -> _Sizes:
        """The fit that is linear about other coefficients, with friction per load as given, or free between 0 and its limit."""
        (n, count, m), load = self.rows.shape, self.load(about)
        drag = free * (self.turn * np.abs(load))
        grown = 1 + about[2][:, None] * self.turn * np.sign(load)
        own = np.concatenate([self.friction, drag[:, :, None]], axis=2)
        bodies, one_block = (grown[:, :, None] * self.rows).transpose(1, 0, 2), np.zeros(count, dtype=np.int64)
        design = Design.of(bodies, own, self.glides, one_block)
        x = -design.with_efforts(self.tau[:, :, None]).fit(np.ones((n, 1, 1)), self.weights).x[0, :, :, 0]
        return x[0, :m], x[:, m:-2], np.clip(about[2] + x[:, -2], 0.0, _MOST)

    def best(self, sizes: _Sizes) -> tuple[float, _Sizes]:
        """Steps that lower the residual, shortened until they do, from coefficients to the nearest minimum."""
        least = self.squares(sizes)
        for _ in range(_STEPS):
            ahead = self.fit(sizes, free=True)
            for part in _PARTS:
                tried = tuple(a + part * (b - a) for a, b in zip(sizes, ahead, strict=True))
                if (left := self.squares(tried)) < least:  # type: ignore[arg-type]
                    break
            else:
                break
            sizes, converged, least = tried, left > (1 - _CONVERGED) * least, left  # type: ignore[assignment]
            if converged:
                break
        return least, sizes


def _with_load(samples: MotionSamples, inertial: Array, friction: Array, weights: Array) -> tuple[Array, Array, Array]:
    """Friction columns with that of the load, shape (n, N, f + 1), and coefficients of bodies (m,) and friction (n, f + 1).

    Signs of loads that are wrong without this friction may hide it: the better of two minima is taken, reached from fits
    without it and with much of it.
    """
    turn = samples.signs[:, :, 0].T * ~np.array([one_way(v) for v in samples.v.T])[:, None]
    model = _WithLoad(inertial.transpose(1, 0, 2), friction, turn, samples.tau, samples.glides.T, weights)
    none = np.zeros(inertial.shape[2]), np.zeros(friction.shape[::2]), np.zeros(len(turn))
    without = model.fit(none, free=False)
    much = model.fit((*without[:2], without[2] + _MUCH), free=False)
    sizes = min(map(model.best, (without, much)), key=lambda found: found[0])[1]
    drag = turn * np.abs(model.load(sizes))
    scale = np.maximum(rms(drag, 1), 1e-12)
    columns = np.concatenate([friction, (drag / scale[:, None])[:, :, None]], axis=2)
    return columns, sizes[0], np.column_stack([sizes[1], sizes[2] * scale])
