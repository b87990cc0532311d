"""Residuals of efforts that were shifted or filtered, with all parameters of a rigid robot fitted again to each version."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...linalg import Array, BoolArray, IntArray, positive, rms
from ...model.rigid_bodies import regressor
from ...model.robot import Robot
from ...model.spanning import spanning
from ...signals.filters import lowpass
from ..evidence import gains, significance
from ..friction import friction_columns, reversal_columns
from ..motion_samples import MotionSamples
from ..regression import Design, Fits

#: Number of folds of the held-out errors.
_FOLDS = 10


@dataclass(frozen=True, eq=False)
class DelayProblem:
    """Regressor columns of one motion.

    Attributes:
        inertial: Shape (N, n, m), scaled.
        friction: Shape (n, N, f), scaled.
        joints: Joints that move.
        weights: One over the residual variance of each row, shape (n,).
        power: Variance of each moving joint's efforts times the samples of each block, shape (B, joints).
        rows: Mask of the equations that are fitted, shape (N, n).
    """

    inertial: Array
    friction: Array
    motion: MotionSamples
    joints: IntArray
    weights: Array
    power: Array
    rows: BoolArray

    @classmethod
    def of(cls, robot: Robot, motion: MotionSamples, moves: BoolArray) -> DelayProblem:
        """Builds the columns of a motion; rows are weighted by their residual without a delay.

        Args:
            moves: Whether each joint moves, shape (n,).
        """
        columns = regressor(robot, motion.q, motion.v, motion.a)[:, :, spanning(robot)[0]]
        scale = rms(columns, (0, 1))
        active = scale > 1e-9 * scale.max()
        friction = []
        for j, turning in enumerate(reversal_columns(motion, range(robot.n))):
            own = np.hstack([friction_columns(motion, j), turning])
            friction.append(own / np.maximum(rms(own, 0), 1e-12))
        variance = np.maximum(motion.tau.var(axis=0), 1e-24)
        count = np.bincount(motion.block)
        joints = np.flatnonzero(moves)
        power = count[:, None] * variance[joints]
        rows = np.ones_like(motion.glides)
        first = cls(columns[:, :, active] / scale[active], np.stack(friction), motion, joints, 1 / variance, power, rows)
        left = np.full(robot.n, np.inf)
        left[joints] = np.maximum(first.errors(motion.tau[:, :, None]).seen[0, :, 0] / len(motion), 1e-6 * variance[joints])
        return replace(first, weights=1 / left)

    @cached_property
    def _design(self) -> Design:
        return Design.of(self.inertial, self.friction, self.rows.T, self.motion.block)

    def errors(self, tau: Array) -> Fits:
        """Fits all parameters to each of K versions of the efforts, and without one fold each.

        Args:
            tau: Versions of the efforts, shape (N, n, K) [N·m or N].

        Returns:
            Squared errors of the moving joints.
        """
        regression, versions, joints = self._design.with_efforts(tau), tau.shape[2], self.joints
        efforts, blocks = np.broadcast_to(np.eye(versions), (tau.shape[1], versions, versions)), len(regression.count)
        fold = np.arange(blocks) * min(_FOLDS, blocks) // blocks
        every, some = regression.fit(efforts, self.weights), regression.fit(efforts, self.weights, fold)
        return Fits(every.x, np.concatenate([every.seen, some.seen])[:, joints], some.squares[:, joints])

    def gliding(self) -> DelayProblem:
        """Returns the problem without the equations of joints that rest or reverse, whose friction is any up to break-away."""
        return replace(self, rows=self.motion.glides)

    def gained(self, before: Array, after: Array, joints: NDArray[Any] | None = None) -> tuple[float, float]:
        """Error reduction of one version of the efforts relative to another.

        Args:
            before, after: Squared errors of each block and moving joint, shape (B, joints).
            joints: Joints for the mean; all by default.

        Returns:
            The relative error reduction, mean over these joints, and the gain of all joints in standard errors.
        """
        pair = np.stack([before.sum(axis=0), after.sum(axis=0)], axis=1)
        score = mean_score(pair if joints is None else pair[joints])
        return 1 - float(np.exp(0.5 * (score[1] - score[0]))), significance(gains(before / self.power, after / self.power))

    def filtered(self, band: float) -> DelayProblem | None:
        """Returns the problem with its columns filtered by a zero-phase low-pass.

        Args:
            band: The cut-off [Hz].

        Returns:
            The problem; None if the sampling rate is too low for the filter.
        """
        return self._behind(lambda x, rate: lowpass(x, rate, band, order=2, padlen=int(2 * rate / band)), 5 * band)

    def lagged(self, seconds: float) -> DelayProblem | None:
        """Returns the problem with its columns behind a causal first-order low-pass.

        Args:
            seconds: Its time constant [s], positive.

        Returns:
            The problem; None if the sampling rate is too low for the filter.
        """

        from scipy.signal import butter, lfilter, lfilter_zi

        def lag(x: Array, rate: float) -> Array:
            b, a = butter(1, 1 / (np.pi * rate * seconds))
            steady = lfilter_zi(b, a).reshape(-1, *[1] * (x.ndim - 1)) * x[:1]
            return np.asarray(lfilter(b, a, x, axis=0, zi=steady)[0])

        return self._behind(lag, 0.5 / seconds)

    def _behind(self, filter: Callable[[Array, float], Array], least: float) -> DelayProblem | None:
        """The problem with filtered columns; None if the samples are sparser than ``least`` [Hz]."""
        motion, columns = self.motion, np.concatenate([self.inertial, self.friction.transpose(1, 0, 2)], axis=2)
        out = np.empty_like(columns)
        starts = np.flatnonzero((np.diff(motion.log) != 0) | (np.diff(motion.time) > 1.5 * np.median(np.diff(motion.time)))) + 1
        for some in np.split(np.arange(len(motion)), starts):
            rate = 1 / float(np.median(np.diff(motion.time[some]))) if len(some) > 20 else 0.0
            if rate < least:
                return None
            out[some] = filter(columns[some], rate)
        m = self.inertial.shape[2]
        return replace(self, inertial=out[:, :, :m], friction=out[:, :, m:].transpose(1, 0, 2))


def mean_score(squares: Array) -> Array:
    """Returns twice the negative log-likelihood per sample, as the mean over joints.

    Args:
        squares: Squared errors, shape (joints, K) [N²·m² or N²].

    Returns:
        One score per version, shape (K,); smaller is better.
    """
    return np.asarray(np.log(positive(squares)).mean(axis=0))
