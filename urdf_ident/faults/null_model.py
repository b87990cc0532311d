"""What the torques of sound logs contain: bodies and simple friction, and as random effects whatever friction may be beyond it.

Friction at reversals, along the travel, in proportion to the load, and from log to log is estimated by how much of it the logs
show: the variances of the kinds of random effects are those of the restricted likelihood (REML), by expectation maximisation
(Harville 1977). What resembles such friction is then no evidence of a fault, as far as friction of that size explains it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ..grouping import batches, grouped
from ..linalg import Array, IntArray, positive, rms
from ..samples import one_way
from .evidence import TRUSTED
from .friction import direction, reversal_columns
from .linearized import LinearizedCase
from .motion_samples import COMPARED
from .regression import LEAST_RIDGE, Equations, JointColumns

#: Steps of the estimate of the variances; the last of them change the statistics by less than a per cent.
_STEPS = 15
#: Variances of whitened rows: of random effects at first, and at least; of the residual at least.
_FIRST, _LEAST, _LEAST_NOISE = 1e-2, 1e-10, 1e-12
#: Harmonics of friction along the travel.
_WAVES = (1, 2, 3)
#: Columns of which it is found at once what the model explains of them: memory.
AT_ONCE = 30
#: Kind of the columns that are no random effects.
_FIXED = "fixed"


class _Solution(NamedTuple):
    """Estimates of a mixed model.

    Attributes:
        equations: Those of the coefficients, factored: ``C``.
        theta: Coefficients of the shared columns, shape (m, 1).
        own: Coefficients of each joint's own columns, shape (a, k, 1).
        noise: Variance σ² of the residual.
        variances: Kind of random effects → variance of each of them.
    """

    equations: Equations
    theta: Array
    own: Array
    noise: float
    variances: Mapping[str, float]


class BlockScores(NamedTuple):
    """Scores of a group of k columns in blocks of time.

    Attributes:
        score: Shape (B, k).
        information: Of the columns in each block and in each set of blocks, shape (U, B, k, k).
        alone: Of the columns in each block, shape (B, k, k).
        squares: Of the columns in each block, the diagonal of ``F_bᵀ F_b``, shape (B, k).
    """

    score: Array
    information: Array
    alone: Array
    squares: Array


@dataclass(frozen=True, eq=False)
class NullModel:
    """The mixed model of the moving joints' rows, whitened by their residuals: ``y = X β + Z u + e``.

    ``X`` are the columns without a kind of random effects, ``Z`` those of random effects ``u`` with the variance ``σ_kind²``,
    and ``V = Z diag(σ_kind²) Zᵀ + σ²`` is the covariance of ``y``. Shapes: a moving joints, N samples, m columns that all
    joints share, k own columns of each joint, B blocks of time.

    Attributes:
        moving: The moving joints.
        weights: One over each row's standard deviation where its joint moves, 0 elsewhere, shape (a, N).
        design: Shared columns are the bodies, and faults that were found; own ones friction, then the random effects.
        kind: Kind of each own column: fixed, or friction at reversals, by load, along the travel, or by log, shape (k,).
        efforts: ``y``, shape (a, N).
    """

    moving: Sequence[int]
    weights: Array
    design: JointColumns
    kind: Array
    efforts: Array

    @classmethod
    def of(cls, at: LinearizedCase, found: Array | None = None) -> NullModel:
        """Builds the model.

        Args:
            found: Torques of faults that were found, shape (N, n, k); free in the model.
        """
        samples, moving = at.samples, at.moving
        weights = (samples.glides / (np.clip(at.left, *TRUSTED) * at.size))[:, moving].T
        random = _beyond_simple_friction(at)
        own = np.concatenate(list(random.values()), axis=2) * weights[:, :, None]
        own /= positive(rms(own, 1))[:, None]
        fixed = at.friction[moving] * weights[:, :, None]
        shared = at.inertial if found is None else np.concatenate([at.inertial, found], axis=2)
        shared = shared[:, moving] * weights.T[:, :, None]
        names = [[_FIXED] * fixed.shape[2], *([kind] * columns.shape[2] for kind, columns in random.items())]
        design = JointColumns.of(shared, np.concatenate([fixed, own], axis=2), weights > 0, np.zeros_like(samples.block))
        return cls(moving, weights, design, np.concatenate(names), samples.tau[:, moving].T * weights)

    def whitened(self, columns: Array) -> Array:
        """Columns of all joints' rows, shape (N, n, k), as those of the model, shape (a, N, k)."""
        return np.ascontiguousarray(columns[:, self.moving].transpose(1, 0, 2) * self.weights[:, :, None])

    @cached_property
    def solution(self) -> _Solution:
        """The estimates of restricted maximum likelihood, by expectation maximisation.

        Each step solves the mixed model's equations (Henderson 1975) with the last variances,
        ``[β; u] = C [X Z]ᵀ y`` with ``C = ([X Z]ᵀ [X Z] + diag(0, σ²/σ_kind²))⁻¹``, and from them updates the variances: of a
        kind with q columns of all joints to ``σ_kind² = (uᵀ u + σ² tr C_kind) / q``, of the residual to
        ``σ² = ‖y − X β − Z u‖² / (rows − tr C [X Z]ᵀ [X Z])``.
        """
        gram, m, joints = self.design.regression.total, self.design.shared, len(self.efforts)
        (moments,), square = self.design.products(self.efforts.T[:, :, None]).moments, float(np.sum(self.efforts**2))
        rows, effects = float(np.count_nonzero(self.weights)), {k: self.kind == k for k in np.unique(self.kind) if k != _FIXED}
        variances, noise = dict.fromkeys(effects, _FIRST), 1.0
        for _ in range(_STEPS if effects else 1):
            penalty = np.full(len(self.kind), LEAST_RIDGE * len(self.design.order))
            for kind, which in effects.items():
                penalty[which] = noise / variances[kind]
            equations = Equations.of(gram, m, penalty)
            theta, own = equations.solve(moments)
            diagonal = equations.own_diagonal  # of C
            for kind, which in effects.items():
                squares = np.sum(own[:, which] ** 2) + noise * np.sum(diagonal[:, which])
                variances[kind] = max(float(squares) / (joints * which.sum()), _LEAST)
            x = np.concatenate([np.broadcast_to(theta, (joints, m, 1)), own], axis=1)
            left = square - 2 * np.sum(x * moments) + np.sum(x * (gram @ x))
            # tr C [X Z]ᵀ [X Z] is the number of columns less tr C times their ridge and penalty
            numbers = m + own[:, :, 0].size - np.sum(np.diag(equations.shared) * equations.ridge) - np.sum(diagonal * penalty)
            noise = max(float(left) / max(rows - float(numbers), 1.0), _LEAST_NOISE)
        return _Solution(equations, theta, own, noise, variances)

    @cached_property
    def residual(self) -> Array:
        """What the model leaves of the efforts, ``r = y − X β − Z u = σ² V⁻¹ (y − X β)``, shape (a, N)."""
        return np.asarray(self.efforts - self._torques(self.solution.theta, self.solution.own)[:, :, 0])

    @cached_property
    def simple(self) -> NullModel:
        """The model without the random effects, as it is identified from the logs."""
        fixed = self.kind == _FIXED
        kept = np.append(np.ones(self.design.shared, dtype=bool), fixed)
        return replace(self, design=replace(self.design, columns=self.design.columns[:, :, kept]), kind=self.kind[fixed])

    def drawn(self, rng: np.random.Generator) -> Array:
        """Draws efforts from the model, whose residual has the correlation of successive samples that it has here.

        Returns:
            Shape (a, N), whitened.
        """
        _, theta, own, noise, variances = self.solution
        sizes = np.array([np.sqrt(variances.get(kind, 0.0)) for kind in self.kind])
        random = np.where(sizes > 0, sizes * rng.standard_normal(own.shape[:2]), own[:, :, 0])
        alike = np.sum(self.residual[:, 1:] * self.residual[:, :-1], axis=1) / np.sum(self.residual**2, axis=1)
        residual = np.sqrt(noise) * rng.standard_normal(self.efforts.shape)
        for k in range(1, residual.shape[1]):
            residual[:, k] = alike * residual[:, k - 1] + np.sqrt(1 - alike**2) * residual[:, k]
        return np.asarray((self._torques(theta, random[:, :, None])[:, :, 0] + residual) * (self.weights > 0))

    def beside(self, columns: Array) -> Array:
        """What the model does not explain of columns F, shape (a, N, k) as they: ``F − [X Z] C [X Z]ᵀ F = σ² P F``.

        ``P = V⁻¹ − V⁻¹ X (Xᵀ V⁻¹ X)⁻¹ Xᵀ V⁻¹`` is the inverse covariance of the efforts, β estimated.
        """
        solved = self.solution.equations.solve(self.design.columns.swapaxes(1, 2) @ columns)
        return np.asarray(columns - self._torques(*solved))

    def scores(self, groups: Sequence[Array], block: IntArray, sets: Array) -> list[BlockScores]:
        """Returns scores of groups of columns in blocks of time, and their information beside the model.

        With ``F_b`` a group's columns in block b, 0 in the others, and P as in :meth:`beside`, both times the noise σ²:
        score ``s_b = F_bᵀ r = σ² F_bᵀ V⁻¹ (y − X β)``, information ``I_bc = F_bᵀ (F_c − [X Z] C [X Z]ᵀ F_c) = σ² F_bᵀ P F_c``,
        and that of a set of blocks ``Σ_c w_c I_bc``.

        Args:
            groups: Columns of all joints' rows, shape (N, n, k) each.
            block: Block of each sample, shape (N,).
            sets: Weights w of the blocks in each set, shape (U, B).

        Returns:
            Those of each group.
        """
        order, ends = np.argsort(block, kind="stable"), np.cumsum(np.bincount(block))[:-1]
        out: dict[int, BlockScores] = {}
        acts = [np.any(columns != 0, axis=(0, 2))[self.moving] for columns in groups]
        acting = [tuple(np.flatnonzero(of_group).tolist()) or (0,) for of_group in acts]
        for rows, members in grouped((rows, k) for k, rows in enumerate(acting)).items():
            joints = [self.moving[k] for k in rows]
            weights, residual = (x[list(rows)].T[order, :, None] for x in (self.weights, self.residual))
            design = np.split(self.design.columns[list(rows)][:, order].swapaxes(1, 2), ends, axis=2)  # [X Z]ᵀ in blocks
            for some in batches(members, AT_ONCE, lambda k: groups[k].shape[2]):
                columns = np.concatenate([groups[k][:, joints] for k in some], axis=2)[order] * weights
                blocks, K = np.split(np.concatenate([columns, residual], axis=2), ends), columns.shape[2]
                # F_bᵀ [F_b r] of all groups, shape (B, K, K + 1)
                products = np.stack([x[:, :K].T @ x for x in (F.reshape(-1, K + 1) for F in blocks)])
                # [X Z]ᵀ F_b and C [X Z]ᵀ F_b, shape (rows, m + k, K, B)
                moments = np.stack([x @ F[:, :, :K].swapaxes(0, 1) for x, F in zip(design, blocks, strict=True)], axis=3)
                theta, own = self.solution.equations.solve(moments.reshape(*moments.shape[:2], -1), list(rows))
                solved = np.concatenate([np.broadcast_to(theta, (len(rows), *theta.shape)), own], axis=1).reshape(moments.shape)
                end = 0
                for k in some:
                    which = slice(end, end := end + groups[k].shape[2])
                    moment, solution, square = moments[:, :, which], solved[:, :, which], products[:, which, which]
                    alone = square - np.einsum("apkb,aplb->bkl", moment, solution)
                    explained = np.tensordot(moment, solution @ sets.T, axes=((0, 1), (0, 1)))
                    information = sets[:, :, None, None] * square - explained.transpose(3, 1, 0, 2)
                    out[k] = BlockScores(products[:, which, K], information, alone, np.einsum("bkk->bk", square))
        return [out[k] for k in range(len(groups))]

    def _torques(self, theta: Array, own: Array) -> Array:
        m = self.design.shared
        return np.asarray(self.design.columns[:, :, :m] @ theta + self.design.columns[:, :, m:] @ own)


def _beyond_simple_friction(at: LinearizedCase) -> dict[str, Array]:
    """Columns of each kind of friction of the moving joints, shape (a, N, k) each; by log if there are several."""
    samples, logs = at.samples, np.unique(at.samples.log)
    found = reversal_columns(samples, range(at.n))
    kinds: dict[str, list[Array]] = {"reversals": [], "load": [], "travel": [], "log": []}
    for j in at.moving:
        q, v, load = samples.q[:, j], samples.v[:, j], np.abs(at.bodies[:, j])
        sign = direction(v)
        x = q / positive(float(np.ptp(q))) if at.robot.prismatic[j] else q
        waves = [wave(k * x) for k in _WAVES for wave in (np.sin, np.cos)]
        kinds["reversals"].append(found[j] * (not one_way(v)))
        kinds["load"].append(np.column_stack([sign * load, v * load]))
        kinds["travel"].append(np.column_stack([wave * factor for wave in waves for factor in (np.ones(len(q)), sign)]))
        kinds["log"].append(np.column_stack([(samples.log == log) * factor for log in logs for factor in (sign, v)]))
    if not 1 < len(logs) <= COMPARED:
        del kinds["log"]
    return {kind: np.stack(columns) for kind, columns in kinds.items()}
