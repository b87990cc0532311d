"""Gain of a friction law on held-out data, and the least gain with which it is selected."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...linalg import Array
from ...statistics.distributions import one_sigma
from .candidates import Candidate

#: A law must lower its joint's held-out squared error by this fraction.
LEAST_GAIN = 0.01

#: Another shape of the same law must lower it by this fraction.
LEAST_SHAPE_GAIN = 1e-4


@dataclass(frozen=True)
class LawGain:
    """Gain of one law in addition to the others.

    Attributes:
        gain: Relative reduction of the joint's held-out squared error; negative if the error increases.
        std_error: Standard error of this gain, over the folds (:func:`standard_error`).
        reason: The reason for the decision, in words.
    """

    law: Candidate
    gain: float
    std_error: float
    reason: str


def standard_error(gains: Array) -> Array:
    """Returns the standard error of a mean over folds, enlarged for few folds by the ratio of Student's t to the normal.

    A gain in a single fold is exactly one plain standard error above zero, however large it is, and is thus not accepted.

    Args:
        gains: Gain in each fold, shape (folds, ...).

    Returns:
        Shape (...).
    """
    apart = gains - np.add.reduce(gains) / len(gains)
    return np.asarray(one_sigma(len(gains) - 1) * np.sqrt(np.add.reduce(apart**2) / ((len(gains) - 1) * len(gains))))


def least_gain(gain_error: float, more: int = 1) -> float:
    """Returns the gain required of laws with k more columns: √k standard errors, and at least :data:`LEAST_GAIN`.

    Args:
        gain_error: Standard error of the gain.

    Returns:
        A fraction of the joint's held-out squared error.
    """
    return float(max(LEAST_GAIN, np.sqrt(max(more, 1)) * gain_error))
