"""A change of the robot: separate parameters for a part of the data, which predict held-out blocks decisively better.

The parameters are those of the last body (payload), of the friction, or the gains.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...linalg import Array
from ..evidence import MATERIAL, RigidEvidence, held_out, in_sample, in_sample_each, material, significance, unexplained

#: Least gain of a change in the sum of the rows' log relative residuals, and least ratio to its standard error.
DECISIVE, SIGNIFICANT = 0.4, 3.5
KINDS = ("payload", "friction", "gain")
#: Scale of all efforts together, and of each effort, that grows from log to log in their order.
SCALE_BY_LOG, GAIN_BY_LOG = "scale, log by log", "gain, log by log"


@dataclass(frozen=True)
class Change:
    """A change along a log.

    Attributes:
        kind: One of :data:`KINDS`, ``"scale"`` (of all efforts together), ``"contact"``, :data:`SCALE_BY_LOG`, or
            :data:`GAIN_BY_LOG`.
        begin, end: Fractions of the log between which it differs; a drift goes from 0 to 1.
        drift: Whether it grows along the log instead of being temporary.
        gain: Gain in the sum of the logarithms.
    """

    kind: str
    begin: float
    end: float
    drift: bool
    joint: int
    gain: float


@dataclass(frozen=True, eq=False)
class Unchanged:
    """Residuals with one set of parameters.

    Attributes:
        left: Relative residuals of the rows, shape (n,).
        squares: Squared errors by block, shape (B, n).
        weights: Weights of the rows from their residuals, shape (n,).
        seen: Sum of the logarithms of the in-sample relative residuals.
    """

    left: Array
    squares: Array
    weights: Array
    seen: float

    @classmethod
    def of(cls, found: RigidEvidence, effort_map: Array) -> Unchanged:
        """Computes the residuals.

        Args:
            effort_map: Factor of each logged effort in each row, shape (n², 1).
        """
        errors = held_out(found, effort_map, 1.0 / (found.usual * found.size) ** 2)
        left = unexplained(found, errors.squares, effort_map)[:, 0]
        weights = 1.0 / (left * found.size) ** 2
        seen = unexplained(found, in_sample(found, effort_map, weights), effort_map)
        return cls(left, errors.squares[:, :, 0], weights, float(np.log(seen).sum()))


def decisive_changes(
    found: RigidEvidence,
    weights: Array,
    base: Unchanged,
    effort_map: Array,
    kinds: Sequence[str] = KINDS,
    errors: float = SIGNIFICANT,
) -> list[tuple[str, float, int] | None]:
    """Kinds of change for given weights of the blocks, if decisive.

    Args:
        weights: Weight of each change in each block, shape (W, B).
        base: Residuals without a change.
        effort_map: Factor of each logged effort in each row, shape (n², 1).
        errors: Least gain over its standard error.

    Returns:
        For each change its kind, gain and the joint with the largest gain; None if nothing is decisive.
    """
    if base.left.max() <= MATERIAL:
        return [None] * len(weights)  # no material residual is left to explain
    # the in-sample error must also improve: held out, a poorly excited log may gain by chance
    left = [np.log(in_sample_each(found, kind, weights, effort_map, base.weights)).sum(axis=1) for kind in kinds]
    gained = base.seen - np.array(left) > DECISIVE
    return [
        _decisive_change(
            found, weight, base, effort_map, [kind for kind, good in zip(kinds, some, strict=True) if good], errors
        )
        for weight, some in zip(weights, gained.T, strict=True)
    ]


def _decisive_change(
    found: RigidEvidence, weight: Array, base: Unchanged, effort_map: Array, kinds: Sequence[str], errors: float
) -> tuple[str, float, int] | None:
    """One change of :func:`decisive_changes`, with weights of shape (B,), tested on held-out blocks."""
    best: tuple[str, float, int] | None = None
    for kind in kinds:
        changed = found.changing(kind, weight)
        squares = held_out(changed, effort_map, base.weights).squares
        after = unexplained(changed, squares, effort_map)[:, 0]
        gains = np.log(base.left) - np.log(after)
        area = found.count[:, None] * found.size**2
        sure = significance(base.squares / area, squares[:, :, 0] / area) > errors
        gain = float(gains.sum())
        decisive = gain > DECISIVE and sure and (best is None or gain > best[1] + DECISIVE)
        if decisive and material(base.left, after):
            best = kind, gain, int(np.argmax(gains))
    return best
