"""What changes by one number: the offset of each effort along a log, or the scale of all: sharper than a held-out gain."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ...linalg import Array, positive
from ..evidence import MATERIAL, RigidEvidence, in_sample, of_fewer, unexplained
from ..gram_fit import solved
from .change import Change, Unchanged

#: Growth of an offset along a log over the effort's standard deviation, and its least ratio to the jackknife error: the larger
#: growth matters more and may be less certain. Both ratios are beyond chance for the joints of a robot together; jackknife
#: errors from few blocks are too small, which the excess over a normal number's 3 allows for.
GROWTHS = ((0.1, 4.5), (0.3, 4.0))
#: The same for several logs together, whose blocks are more.
GROWTHS_TOGETHER = ((0.06, 3.3),)
#: Change of the scale of all efforts that counts, along a log or several, or of one log, and its probability by chance.
_SCALE, _CHANCE = MATERIAL, 1e-3


@dataclass(frozen=True, eq=False)
class Growth:
    """Growth along one log, or along several: of the offsets, shape (n,), or of the scale of all efforts, shape (1,).

    Attributes:
        size: Growth from start to end: of offsets over the efforts' standard deviations, of the scale relative to it.
        error: Its jackknife error over blocks of time.
    """

    size: Array
    error: Array

    def significant(self, limits: Sequence[tuple[float, float]]) -> int | None:
        """Returns the joint whose offset exceeds the limits most clearly, or None; 0 for a scale that does.

        Args:
            limits: Least sizes, each with its least ratio to the error.

        Returns:
            Index of the joint.
        """
        errors = np.abs(self.size) / np.maximum(self.error, 1e-12)
        significant = np.any([(np.abs(self.size) > least) & (errors > times) for least, times in limits], axis=0)
        return int(np.argmax(np.where(significant, errors, 0.0))) if significant.any() else None

    @staticmethod
    def together(logs: Sequence[Growth]) -> Growth:
        """Mean growth of several logs, with an error that gives their combined significance.

        Returns:
            Their mean, weighted by the inverse variance, as the offset of a short log grows much by chance; its ratio to the
            error is the sum of the logs' ratios over the root of their number (Stouffer et al. 1949).
        """
        sizes, errors = np.array([log.size for log in logs]), np.maximum([log.error for log in logs], 1e-12)
        size = np.sum(sizes / errors**2, axis=0) / np.sum(errors**-2.0, axis=0)
        z = np.sum(sizes / errors, axis=0) / np.sqrt(len(logs))
        return Growth(size, np.abs(size) / np.maximum(np.abs(z), 1e-12))


def along_log(blocks: int) -> Array:
    """Time of each block of a log, from -0.5 to 0.5, shape (B,)."""
    return (np.arange(blocks) + 0.5) / blocks - 0.5


def growth(found: RigidEvidence, effort_map: Array, weights: Array, reversals: Array) -> Growth:
    """Growth of the offsets along a log: one number per joint, with its error.

    A joint that moves in a few blocks only, or hardly reverses, has a jackknife error of as few degrees of freedom: each leg
    shows its friction once. It is widened accordingly (:func:`.evidence.of_fewer`).

    Args:
        found: Evidence of the log alone, blocks in order of time.
        effort_map: Factor of each logged effort in each row, shape (n², 1).
        weights: Weights of the rows, shape (n,).
        reversals: Number of velocity reversals of each joint, shape (n,).
    """
    blocks = len(found.count)
    changed = found.changing("offset", along_log(blocks))
    at = changed.gram.shape[2] - found.n - 1
    grown = _jackknifed(changed, effort_map, weights, lambda x: x[:, :, at] / found.size)
    ratio = np.abs(grown.size) / np.maximum(grown.error, 1e-12)
    alike = of_fewer(ratio, np.minimum(_effective(found.moving) - 1.0, reversals), blocks)
    return Growth(grown.size, grown.error * np.maximum(ratio / np.maximum(alike, 1e-12), 1.0))


def _effective(counts: Array) -> Array:
    """Number of equal blocks with as much scatter as blocks of these counts, shape (B, n); shape (n,) (Kish 1965)."""
    return np.asarray(counts.sum(axis=0) ** 2 / positive((counts**2).sum(axis=0)))


def scale_growth(found: RigidEvidence, effort_map: Array, along: Array, weights: Array) -> Growth:
    """Growth of the scale of all efforts along one log or several, or its change in one of them: one number, with its error.

    It is that of the torque of the bodies, which no other change of the robot scales: friction falls while gears warm up.

    Args:
        effort_map: Factor of each logged effort in each row, shape (n², 1).
        along: Weight of the change in each block, shape (B,): time, from :func:`along_log`, or 1 in the log.
        weights: Weights of the rows, shape (n,).
    """
    changed = _scaled(found, effort_map, along, weights)
    return _jackknifed(changed, effort_map, weights, lambda x: -x[:, :1, found.inertial])


def _scaled(found: RigidEvidence, effort_map: Array, along: Array, weights: Array) -> RigidEvidence:
    """The same samples with one more inertial column, the torque of the bodies times ``along``."""
    efforts = effort_map.reshape(found.n, found.n, -1)
    x = solved(found.total[None], found.count.sum(keepdims=True), found.inertial, efforts, weights)[0, :, :, 0]
    bodies = np.where(np.arange(x.shape[1]) < found.inertial, -x, 0.0)
    return found.with_shared_column(bodies, along)


def _jackknifed(changed: RigidEvidence, effort_map: Array, weights: Array, grown: Callable[[Array], Array]) -> Growth:
    """Growth with its error over delete-one-block fits (Efron 1982); ``grown`` reads it off coefficients, shape (F, n, p)."""
    blocks, total = len(changed.count), changed.total[None]
    parts = np.concatenate([total, total - changed.gram])  # all blocks, and without each
    counts = changed.count.sum() - np.append(0.0, changed.count)
    size = grown(solved(parts, counts, changed.inertial, effort_map.reshape(changed.n, changed.n, -1), weights)[..., 0])
    return Growth(size[0], np.sqrt((blocks - 1) / blocks * np.sum((size[1:] - size[1:].mean(axis=0)) ** 2, axis=0)))


def offset_drift(found: RigidEvidence, effort_map: Array, base: Unchanged, along: Array, joint: int) -> Change:
    """The change of an offset that grows with time.

    Args:
        effort_map: Factor of each logged effort in each row, shape (n², 1).
        base: Residuals without a change.
        along: Time of each block, shape (B,); see :func:`along_log`.
    """
    gains = _gains(found, found.changing("offset", along), effort_map, base)
    return Change("friction", 0.0, 1.0, True, joint, float(gains[joint]))


def scale_change(
    found: RigidEvidence, effort_map: Array, base: Unchanged, along: Array, free: float, tests: int = 1
) -> tuple[str, float, int] | None:
    """The change of the scale of all efforts along a log or in one of several, if it is significant.

    Args:
        effort_map: Factor of each logged effort in each row, shape (n², 1).
        base: Residuals without a change.
        along: Weight of the change in each block, shape (B,); see :func:`along_log`.
        free: Degrees of freedom of the scale's error, those of the blocks, or of the legs of the motion (each ends with the
            reversal of a joint) if there are fewer: blocks within one leg are not independent.
        tests: Number of changes that are tried.

    Returns:
        Kind of change, gain and joint with the largest gain, or None.
    """
    from scipy.special import stdtrit

    limits = ((_SCALE, -float(stdtrit(max(free, 1.0), _CHANCE / tests / 2))),)
    if scale_growth(found, effort_map, along, base.weights).significant(limits) is None:
        return None
    gains = _gains(found, _scaled(found, effort_map, along, base.weights), effort_map, base)
    return "scale", float(gains.sum()), int(np.argmax(gains))


def _gains(found: RigidEvidence, changed: RigidEvidence, effort_map: Array, base: Unchanged) -> Array:
    """Logarithms by which a change reduces the in-sample residuals of the rows, shape (n,)."""
    before, after = (unexplained(some, in_sample(some, effort_map, base.weights), effort_map) for some in (found, changed))
    return np.asarray(np.log(before / after)[:, 0])
