"""Outliers among the samples of the torque, which decide whether least squares or robust weights estimate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import compress

import numpy as np

from ...linalg import Array, positive
from ...model.dynamic_model import DynamicModel
from ...model.row_groups import joint_of
from ...parallel import each
from ...samples import columns, fast_speed, moving, turns
from ...signals.prepare import PreparedLog
from ...statistics.fit import Fit
from ...units import percent
from .robust import robust_scale, sample_residuals

#: A sample is an outlier if it differs from its neighbours by this many robust standard deviations of the residual.
FAR = 10.0
#: Lower limit of that standard deviation, as a share of the torque's root mean square, since a model may be exact.
LEAST = 1e-3
#: Number of neighbours, the sample itself included, whose median it is compared with.
NEIGHBOURS = 5
#: Outliers matter if they cause more than this share of a row group's squared residual: they alone then increase standard
#: errors by more than a factor of √2.
POWER = 0.5
#: Samples below this share of a joint's fast speed are near a reversal.
_SWIFT = 0.2


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
        """Whether least squares would be dominated by them."""
        return self.power > POWER

    def describe(self) -> str:
        """Returns the outliers in one sentence."""
        joint = joint_of(self.group)
        return (
            f"{percent(100 * self.share)} % of the torque samples of {joint} are outliers, more than {FAR:g} times the usual "
            f"error away, with {100 * self.power:.3g} % of its squared residual"
        )


def find_outliers(model: DynamicModel, fit: Fit, logs: Sequence[PreparedLog]) -> Outliers:
    """Counts outliers at the logs' full rate.

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
    speeds = columns([segment.v for segment in segments])
    moves = moving(np.array([fast_speed(speed) for speed in speeds]), model.robot.prismatic)
    for speed in compress(columns([segment.v for segment in segments]), moves):
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
            swift = swift & (rate >= _SWIFT * fast_speed(rate))
        outlying = np.abs(away[swift]) > FAR * positive(max(float(robust_scale(residuals)), LEAST * torque))
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
