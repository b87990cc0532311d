"""Outliers: whether a log holds so many that least squares listens to them more than to the robot.

A friction law that the model lacks leaves large residuals too, around every reversal: for many samples in a row, or, where
friction changes sign within a sample, for one. So outliers are counted away from reversals; they come at any speed. An
outlier stands alone: it is far from its neighbours and far from what the model leaves unexplained elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ...data.prepare import PreparedLog
from ...linalg import Array, running_median
from ...model.dynamic_model import DynamicModel
from ...model.trained import KNEE
from ...parallel import each
from ...samples import Segment, columns
from ...scratch import stored
from ...statistics.fit import Fit
from .robust import robust_scale, sample_residuals

#: A sample is an outlier when it is this many robust standard deviations of the residual away from its neighbours.
FAR = 10.0
#: Nothing below this share of the torque's root mean square, times :data:`FAR`, is an outlier: a model may be exact.
LEAST = 1e-3
#: Neighbours, the sample itself included, whose median it is compared with.
NEIGHBOURS = 5
#: Outliers matter when they hold more than this share of a row group's squared residual: standard errors then grow
#: by more than a factor of √2 through them alone.
POWER = 0.5


@dataclass(frozen=True)
class Outliers:
    """Outliers of some logs.

    Attributes:
        group: The row group that is hit hardest.
        share: Share of its samples away from reversals that are outliers.
        power: Share of the squared residual there that they hold.
    """

    group: str
    share: float
    power: float

    @property
    def matter(self) -> bool:
        """True where least squares would mostly listen to them."""
        return self.power > POWER

    def describe(self) -> str:
        """What was found, in a sentence."""
        joint = self.group.split(":", 1)[-1]
        return (
            f"{100 * self.share:.2g} % of the torque samples of {joint} stand alone, {FAR:g} times farther off than the model "
            f"is wrong elsewhere, and hold {100 * self.power:.3g} % of its squared residual"
        )


def find_outliers(model: DynamicModel, fit: Fit, logs: Sequence[PreparedLog]) -> Outliers:
    """Counts outliers at the logs' full rate.

    Args:
        fit: Any estimate; one by least squares is good enough, because outliers stand out from their neighbours.
        logs: Prepared logs.

    Returns:
        The row group that is hit hardest.

    Raises:
        EstimationError: A log holds no torque.
    """
    made = [pair for own in each(partial(_residuals, model, fit), logs) for pair in own]
    parts, apart = ([pair[k] for pair in made] for k in (0, 1))
    segments = [segment for log in logs for segment in log.segments if segment.tau is not None]
    targets = [stored(model.row_targets(s.tau, s.external)) for s in segments]  # type: ignore[arg-type]
    found = []
    for group, residuals, away, target in zip(model.groups, columns(parts), columns(apart), columns(targets), strict=True):
        torque = np.sqrt(np.mean(target**2))
        swift = _swift(model, group.joint, segments)
        outlying = np.abs(away[swift]) > FAR * max(float(robust_scale(residuals)), LEAST * torque, 1e-300)
        squares = residuals[swift] ** 2
        power = (squares * outlying).sum() / max(squares.sum(), 1e-300)
        found.append(Outliers(group.name, float(outlying.mean()), float(power)))
    return max(found, key=lambda outliers: outliers.power)


def _residuals(model: DynamicModel, fit: Fit, log: PreparedLog) -> list[tuple[Array, Array]]:
    """Residuals of each piece of a log, and how far they are from their neighbours, shape (N, groups) each."""
    return [(own, stored(own - running_median(own, NEIGHBOURS))) for own in sample_residuals(model, fit, log)]


def _swift(model: DynamicModel, joint: int, segments: Sequence[Segment]) -> NDArray[np.bool_]:
    """Samples at which neither a joint nor a motor that turns it is about to reverse, shape (N,)."""
    turns = np.vstack([np.eye(model.n)[joint], model.drive.reduction[model.drive.reduction[:, joint] != 0]])
    swift = np.array(True)
    for turn in np.unique(turns, axis=0):  # one after the other: those of many logs are large
        rate = np.concatenate([segment.v @ turn for segment in segments])
        np.abs(rate, out=rate)
        swift = swift & (rate >= KNEE * np.percentile(rate, 95))
    return swift
