"""What the torques of sound logs contain: bodies and simple friction, and as random effects whatever friction may be beyond it.

Friction at reversals, along the travel, in proportion to the load, and from log to log is estimated by how much of it the logs
show: the variances of the kinds of random effects are those of the restricted likelihood (REML), by expectation maximisation
(Harville 1977). What resembles such friction is then no evidence of a fault, as far as friction of that size explains it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ..friction.law import smooth_sign
from ..linalg import Array, rms
from ..samples import one_way
from .friction import reversal_columns
from .linearized import LinearizedCase
from .load_friction import TRUSTED
from .motion_samples import COMPARED

#: Steps of the estimate of the variances; the last of them change the statistics by less than a per cent.
_STEPS = 15
#: Harmonics of friction along the travel.
_WAVES = (1, 2, 3)
#: Ridge of fixed effects, as a fraction of their column's square: large against rounding, small against any effect.
_RIDGE = 1e-9


@dataclass(frozen=True, eq=False)
class NullModel:
    """The mixed model of the moving joints' rows, whitened by their residuals.

    Attributes:
        weights: One over each row's standard deviation where its joint moves, 0 elsewhere, shape (a, N).
        shared: Fixed columns of all rows, shape (a, N, m): bodies, and faults that were found.
        own: Columns of each row, shape (a, N, k): friction, then the random effects.
        kind: Kind of each of these: -1 of fixed ones, then 0, 1, ... of random effects, shape (k,).
        efforts: Shape (a, N).
    """

    weights: Array
    shared: Array
    own: Array
    kind: Array
    efforts: Array

    @classmethod
    def of(cls, at: LinearizedCase, found: Array) -> NullModel:
        """Builds the model.

        Args:
            found: Torques of faults that were found, shape (N, n, k); free in the model.
        """
        samples, moving = at.samples, at.moving
        left = np.clip(at.left, *TRUSTED) * at.size
        weights = (samples.glides / left)[:, moving].T
        random = [_beyond_simple_friction(at, j, turning) for j, turning in zip(moving, _turning(at), strict=True)]
        kind = np.concatenate([np.full(kinds[0].shape[1], k) for k, kinds in enumerate(zip(*random, strict=True))])
        own = np.stack([np.hstack(kinds) for kinds in random]) * weights[:, :, None]
        own /= np.maximum(rms(own, 1), 1e-12)[:, None]
        own = np.concatenate([at.friction[moving] * weights[:, :, None], own], axis=2)
        shared = _whitened(weights, np.concatenate([at.inertial, found], axis=2)[:, moving])
        kind = np.concatenate([np.full(at.friction.shape[2], -1), kind])
        return cls(weights, shared, own, kind, samples.tau[:, moving].T * weights)

    def whitened(self, columns: Array) -> Array:
        """Columns of the moving joints' rows, shape (N, a, k), as those of the model, shape (a, N, k)."""
        return _whitened(self.weights, columns)

    @cached_property
    def _solution(self) -> tuple[Array, Array, float]:
        """Inverse of the mixed model's matrix, its solution (Henderson 1975), and the variance of the residual."""
        (rows, _, m), k = self.shared.shape, self.own.shape[2]
        gram, right = np.zeros((m + rows * k,) * 2), self._products(self.efforts[:, :, None])[:, 0]
        gram[:m, :m] = np.einsum("anm,anp->mp", self.shared, self.shared, optimize=True)
        for i in range(rows):
            at = slice(m + i * k, m + (i + 1) * k)
            gram[at, at], gram[:m, at] = self.own[i].T @ self.own[i], self.shared[i].T @ self.own[i]
            gram[at, :m] = gram[:m, at].T
        kind = np.concatenate([np.full(m, -1), np.tile(self.kind, rows)])
        free, square = float(np.count_nonzero(self.weights)), float(np.sum(self.efforts**2))
        variances, noise = np.full(int(self.kind.max()) + 1, 1e-2), 1.0
        fixed = _RIDGE * np.maximum(np.diag(gram), 1e-9)
        for _ in range(_STEPS if len(variances) else 1):
            penalty = np.where(kind < 0, fixed, noise / np.append(variances, 1.0)[kind])
            inverse = np.linalg.inv(gram + np.diag(penalty))
            x = inverse @ right
            for which in range(len(variances)):
                effects = kind == which
                spread = np.sum(x[effects] ** 2) + noise * np.sum(np.diag(inverse)[effects])
                variances[which] = max(float(spread) / effects.sum(), 1e-10)
            left = square - 2 * x @ right + x @ gram @ x
            noise = max(float(left) / max(free - float(np.sum(inverse * gram)), 1.0), 1e-12)
        return inverse, x, noise

    @property
    def noise(self) -> float:
        """Variance of the residual of the whitened rows."""
        return self._solution[2]

    @cached_property
    def residual(self) -> Array:
        """What the model leaves of the efforts, shape (a, N)."""
        return np.asarray(self.efforts - self._torques(self._solution[1][:, None])[:, :, 0])

    @cached_property
    def simple(self) -> NullModel:
        """The model without the random effects, as it is identified from the logs."""
        return replace(self, own=self.own[:, :, self.kind < 0], kind=self.kind[self.kind < 0])

    @property
    def friction(self) -> Array:
        """Friction at reversals and in proportion to the load, shape (a, N); that along the travel would take gravity along."""
        random = np.concatenate([np.zeros(self.shared.shape[2], bool), np.tile(np.isin(self.kind, (0, 1)), len(self.own))])
        return self._torques(np.where(random, self._solution[1], 0.0)[:, None])[:, :, 0]

    def beside(self, columns: Array) -> Array:
        """What the model does not explain of columns, shape (a, N, k): the inverse covariance, up to the noise, times them."""
        return np.asarray(columns - self._torques(self._solution[0] @ self._products(columns)))

    def _products(self, columns: Array) -> Array:
        shared = self.shared.reshape(-1, self.shared.shape[2]).T @ columns.reshape(-1, columns.shape[2])
        return np.concatenate([shared, *(own.T @ some for own, some in zip(self.own, columns, strict=True))])

    def _torques(self, x: Array) -> Array:
        m, k = self.shared.shape[2], self.own.shape[2]
        return np.asarray(self.shared @ x[:m] + self.own @ x[m:].reshape(len(self.own), k, -1))


def _whitened(weights: Array, columns: Array) -> Array:
    return np.ascontiguousarray(columns.transpose(1, 0, 2) * weights[:, :, None])


def _turning(at: LinearizedCase) -> list[Array]:
    """Friction of each moving joint at its reversals; zero if it moves one way."""
    both = [not one_way(at.samples.v[:, j]) for j in at.moving]
    found = reversal_columns(at.samples, range(at.n))
    return [found[j] * turns for j, turns in zip(at.moving, both, strict=True)]


def _beyond_simple_friction(at: LinearizedCase, j: int, turning: Array) -> tuple[Array, ...]:
    """Columns of a joint's friction at reversals, in proportion to the load, along its travel, and from log to log if there are
    several, shape (N, k) each."""
    q, v, load = at.samples.q[:, j], at.samples.v[:, j], np.abs(at.bodies[:, j])
    sign = smooth_sign(v, 0.1 * max(float(v.std()), 1e-9))
    x = q / max(float(np.ptp(q)), 1e-9) if at.robot.prismatic[j] else q
    waves = [wave(k * x) for k in _WAVES for wave in (np.sin, np.cos)]
    along = np.column_stack([wave * factor for wave in waves for factor in (np.ones(len(q)), sign)])
    logs = np.unique(at.samples.log)
    by_log = [(at.samples.log == log) * factor for log in logs for factor in (sign, v)]
    more = [np.column_stack(by_log)] if 1 < len(logs) <= COMPARED else []
    return turning, np.column_stack([sign * load, v * load]), along, *more
