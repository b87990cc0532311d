"""The friction curve of one joint through the points that sweeps measure (:mod:`.friction_points`), by Liu 2023's law.

The curve is ``friction(±v) = ±odd(v) + even(v)`` with eight parameters. They are strongly correlated: assess the curve, not
single coefficients.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..errors import EstimationError
from ..friction import SIGN_WIDTH, Asymmetric, AxisMotion
from ..friction.law import LEAST_SPEEDS
from ..linalg import Array, rms, scaled_lstsq, triangle
from ..samples import ReadOnly
from ..statistics.statistic import Statistic, StatisticSet
from .friction_points import FrictionPoints

#: A threshold is used if it lowers the squared error of cross-validation to less than this part: a smaller gain is chance.
_CLEARLY_LESS = 0.98


@dataclass(frozen=True, eq=False)
class FrictionCurve(ReadOnly):
    """Liu 2023's law of eight parameters through the points of one joint.

    Attributes:
        params: Shape (8,), in the order of ``law.symbols``.
        rmse: Root mean square error of the fit [N·m or N].
    """

    joint: str
    law: Asymmetric
    params: Array
    points: FrictionPoints
    rmse: float

    def torque(self, v: ArrayLike) -> Array:
        """Friction on the curve, shape (N,) [N·m or N]; v: velocities, shape (N,) [rad/s or m/s]."""
        return np.asarray(asymmetric_columns(self.law, np.asarray(v, dtype=float)) @ self.params)

    def as_dict(self) -> dict[str, Any]:
        return {
            "joint": self.joint,
            "threshold": self.law.threshold,
            "parameters": dict(zip(self.law.symbols, self.params.tolist(), strict=True)),
            "velocity": self.points.velocity.tolist(),
            "torque": self.points.torque.tolist(),
            "rmse": self.rmse,
            "notes": list(self.points.notes),
        }


def fit_friction(points: FrictionPoints) -> FrictionCurve:
    """Fits Liu 2023's asymmetric law, with its threshold λ found by a search between the measured speeds.

    λ is chosen by leave-one-speed-out cross-validation, because a larger model always fits the training points better.
    """
    speeds = points.speed
    if len(speeds) < LEAST_SPEEDS:
        raise EstimationError(
            "too few speeds for a friction curve",
            where=f"joint '{points.joint}'",
            got=len(speeds),
            expected=f"at least {LEAST_SPEEDS}, each driven both ways",
            remedy="drive more speeds",
        )
    # none, and as many between the slowest speeds as there are more speeds than the law needs
    thresholds = [0.0, *np.sqrt(speeds[:-1] * speeds[1:])[: max(0, len(speeds) - LEAST_SPEEDS)]]
    # The smooth sign is at most a third of the slowest speed wide, so that it does not alter the slow points.
    free = replace(Asymmetric(), width=min(SIGN_WIDTH, float(speeds[0]) / 3))
    errors = [0.0] * len(thresholds)
    for k, threshold in enumerate(thresholds):
        columns = asymmetric_columns(replace(free, threshold=float(threshold)), points.velocity)
        for speed in speeds[1:-1]:
            out = np.isclose(np.abs(points.velocity), speed)
            left = columns[out] @ _fitted(columns[~out], points.torque[~out])
            errors[k] += float(np.sum((points.torque[out] - left) ** 2))
    best = float(thresholds[int(np.argmin(errors))]) if min(errors) < _CLEARLY_LESS * errors[0] else 0.0
    return curve_through(points, replace(free, threshold=best), np.zeros((0, len(free.symbols))), np.zeros(0), 1.0)


def curve_through(points: FrictionPoints, law: Asymmetric, columns: Array, torque: Array, weight: float) -> FrictionCurve:
    """Fits the curve of a law to points and to the friction torque in other motions.

    Args:
        columns: Columns of the law along other motions, shape (R, 8).
        torque: Friction torque in these motions, shape (R,) [N·m or N].
        weight: Weight of a point relative to a row.
    """
    swept = asymmetric_columns(law, points.velocity)
    params = _fitted(np.vstack([columns, weight * swept]), np.concatenate([torque, weight * points.torque]))
    return FrictionCurve(points.joint, law, params, points, rms(swept @ params - points.torque))


def asymmetric_columns(law: Asymmetric, v: Array) -> Array:
    """Columns of the law at given velocities, shape (N, 8); v of shape (N,) [rad/s or m/s]."""
    zero = np.zeros_like(v)
    return law.columns(AxisMotion(zero, v, zero, 0.0))


def with_sweep_points(statistics: StatisticSet, curves: Sequence[FrictionCurve], rate: float) -> StatisticSet:
    """Adds the points of sweeps as equations for friction, each weighted as one second of log, split over all logs.

    Joints with a coupled drive get none: their rows belong to actuators.

    Args:
        rate: Rows per second of the statistics [Hz].
    """
    index = {name: k for k, name in enumerate(statistics.names)}
    entries = list(statistics.entries)
    for curve in curves:
        group = f"joint:{curve.joint}"
        if group not in statistics.groups:
            continue
        layout = statistics.layout(group)
        column = {int(k): i for i, k in enumerate(layout.columns)}
        velocity, weight = curve.points.velocity, np.sqrt(rate / len(statistics.logs))
        rows = np.zeros((len(velocity), len(layout.columns) + 1))
        friction = [column[index[f"{symbol}_{curve.joint}"]] for symbol in curve.law.symbols]
        rows[:, friction] = asymmetric_columns(curve.law, velocity)
        rows[:, -1] = curve.points.torque
        count = max(1, round(len(velocity) * weight**2))
        factor, expansion = layout.reduced(triangle(weight * rows))
        entries += [Statistic(log, 0, group, factor, count, expansion=expansion) for log in statistics.logs]
    return replace(statistics, entries=tuple(entries))


def _fitted(columns: Array, torque: Array) -> Array:
    """Minimum-norm least squares in scaled columns; directions that few speeds cannot determine are zero."""
    return scaled_lstsq(columns, torque, rcond=1e-9)
