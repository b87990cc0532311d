"""Offsets of the efforts that grow along a log, a sharper test of a drift than a held-out gain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ....linalg import Array
from ..evidence import RigidEvidence, in_sample, unexplained
from ..gram_fit import solved
from .change import Change, Unchanged

#: Growth of an offset along a log over the effort's standard deviation, and its least ratio to the jackknife error: fault-free
#: logs, real and simulated, reach 3.4 above 0.1, and 3.6 above 0.3 in a dozen moves with stops, whose blocks are few motions;
#: 0.3 of the deviation on one UR10e joint gives 4 to 10.
GROWTHS = ((0.1, 4.5), (0.3, 4.0))
#: The same for several logs together: fault-free ones reach 2.7 errors above 0.05.
GROWTHS_TOGETHER = ((0.06, 3.3),)


@dataclass(frozen=True, eq=False)
class Growth:
    """Growth of the offsets along one log.

    Attributes:
        size: Growth from start to end, over the efforts' standard deviations, shape (n,).
        error: Its jackknife error over blocks of time, shape (n,).
    """

    size: Array
    error: Array

    def significant(self, limits: Sequence[tuple[float, float]]) -> int | None:
        """Returns the joint whose offset exceeds the limits most clearly, or None.

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


def growth(found: RigidEvidence, effort_map: Array, weights: Array) -> Growth:
    """Growth of the offsets along a log: one number per joint, with its error.

    Args:
        found: Evidence of the log alone, blocks in order of time.
        effort_map: Factor of each logged effort in each row, shape (n², 1).
        weights: Weights of the rows, shape (n,).
    """
    blocks = len(found.count)
    changed = found.changing("offset", along_log(blocks))
    total = changed.total[None]
    parts = np.concatenate([total, total - changed.gram])  # all blocks, and without each
    counts = found.count.sum() - np.append(0.0, found.count)
    at = changed.gram.shape[2] - found.n - 1
    size = solved(parts, counts, found.inertial, effort_map.reshape(found.n, found.n, -1), weights)[:, :, at, 0] / found.size
    return Growth(size[0], np.sqrt((blocks - 1) / blocks * np.sum((size[1:] - size[1:].mean(axis=0)) ** 2, axis=0)))


def offset_drift(found: RigidEvidence, effort_map: Array, base: Unchanged, along: Array, joint: int) -> Change:
    """The change of an offset that grows with time.

    Args:
        effort_map: Factor of each logged effort in each row, shape (n², 1).
        base: Residuals without a change.
        along: Time of each block, shape (B,); see :func:`along_log`.
    """
    before = unexplained(found, in_sample(found, effort_map, base.weights), effort_map)[joint, 0]
    changed = found.changing("offset", along)
    after = unexplained(changed, in_sample(changed, effort_map, base.weights), effort_map)[joint, 0]
    return Change("friction", 0.0, 1.0, True, joint, float(np.log(before / after)))
