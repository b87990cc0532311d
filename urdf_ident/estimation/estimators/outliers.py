"""Outliers of the torque, and whether they would dominate least squares.

Outliers occur in single samples, and the row filter would spread each over a dozen rows: residuals are therefore evaluated at
the log's full rate. An outlier differs from its neighbours, so that any estimate is good enough to find it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import compress

import numpy as np

from ...linalg import OUTLYING, Array, positive, robust_std
from ...model.dynamic_model import DynamicModel
from ...model.row_groups import joint_of
from ...parallel import each
from ...samples import REVERSING, columns, fast_speed, moving, turns
from ...signals.prepare import PreparedLog
from ...statistics.fit import Fit
from ...units import percent

#: Lower limit of the standard deviation by which outliers are told, as a share of the torque's root mean square: a model
#: may be exact.
LEAST = 1e-3
#: Number of neighbours, the sample itself included, whose median it is compared with.
NEIGHBOURS = 5
#: Outliers matter if they cause more than this share of a row group's squared residual: they alone then increase standard
#: errors by more than a factor of √2.
POWER = 0.5


def sample_residuals(model: DynamicModel, fit: Fit, log: PreparedLog) -> list[Array]:
    """Returns the residuals at the log's full rate, before any row filter.

    Returns:
        Per segment, shape (N, groups) [unit of torque], scaled to the noise of a single repetition.
    """
    theta = fit.base.embedded(fit.params)
    out = []
    for segment in log.segments:
        predicted = model.row_targets(model.torque_along(theta, segment))
        out.append(np.sqrt(segment.repeats) * (model.row_targets(segment.measured, segment.external) - predicted))
    return out


@dataclass(frozen=True)
class Outliers:
    """Outliers of some logs.

    Attributes:
        share: Share of outliers in its samples away from reversals.
        power: Their share of the squared residual there.
    """

    group: str
    share: float
    power: float

    @property
    def dominate(self) -> bool:
        return self.power > POWER

    def describe(self) -> str:
        """Returns the outliers in one sentence."""
        return (
            f"{percent(100 * self.share)} % of the torque samples of {joint_of(self.group)} are outliers, more than "
            f"{OUTLYING:g} times the usual error away, with {100 * self.power:.3g} % of its squared residual"
        )


def find_outliers(model: DynamicModel, fit: Fit, logs: Sequence[PreparedLog]) -> Outliers:
    """Returns the row group whose outliers have the largest share in its squared residual, at the logs' full rate.

    Args:
        fit: Any estimate; least squares is good enough, because outliers differ from their neighbours.

    Raises:
        LogError: A log has no torque.
    """
    residuals_of = [pair for of_log in each(partial(_residuals, model, fit), logs) for pair in of_log]
    parts, apart = ([pair[k] for pair in residuals_of] for k in (0, 1))
    segments = [segment for log in logs for segment in log.segments]
    squares = sum(np.sum(model.row_targets(segment.measured, segment.external) ** 2, axis=0) for segment in segments)
    torques = np.sqrt(squares / sum(map(len, segments)))
    # samples at which no joint reverses within NEIGHBOURS: one that breaks loose shakes the others
    steady = np.ones(sum(map(len, segments)), dtype=bool)
    velocities = [segment.v for segment in segments]  # by column twice, as one of many logs is large
    moves = moving(np.array([fast_speed(speed) for speed in columns(velocities)]), model.robot.prismatic)
    for speed in compress(columns(velocities), moves):
        for before, after in turns(speed).T:
            steady[max(0, before - NEIGHBOURS) : after + NEIGHBOURS + 1] = False
    of_groups = []
    for group, residuals, away, torque in zip(model.groups, columns(parts), columns(apart), torques, strict=True):
        # neither the joint nor a motor that drives it is near a reversal
        drives = np.vstack([np.eye(model.n)[group.joint], model.drive.reduction[model.drive.reduction[:, group.joint] != 0]])
        swift = steady
        for drive in np.unique(drives, axis=0):  # one at a time, as arrays of many logs are large
            rate = np.concatenate([segment.v @ drive for segment in segments])
            np.abs(rate, out=rate)
            swift = swift & (rate >= REVERSING * fast_speed(rate))
        outlying = np.abs(away[swift]) > OUTLYING * positive(max(float(robust_std(residuals)), LEAST * torque))
        squares = residuals[swift] ** 2
        power = (squares * outlying).sum() / positive(squares.sum())
        of_groups.append(Outliers(group.name, float(outlying.mean()) if len(outlying) else 0.0, float(power)))
    return max(of_groups, key=lambda outliers: outliers.power)


def _residuals(model: DynamicModel, fit: Fit, log: PreparedLog) -> list[tuple[Array, Array]]:
    """Residuals of each segment of a log, and their differences from the median of their neighbours, shape (N, groups) each."""
    from scipy.ndimage import median_filter

    return [
        (residuals, residuals - median_filter(residuals, (NEIGHBOURS, 1), mode="nearest"))
        for residuals in sample_residuals(model, fit, log)
    ]
