"""Target torque and target current of a controller, and what they say of the torque constants where the robot stands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...errors import LogError
from ...linalg import Array
from ...model.drive import Drive
from ..recording import Recording

#: A constant whose relative error is below this is known: four digits.
KNOWN = 1e-3
#: Fewer samples say nothing.
FEWEST = 30
#: A joint is at rest while it moves by less than this [rad or m] within the window [s].
_REST_TRAVEL, _REST_WINDOW = 5e-4, 0.3


@dataclass(frozen=True)
class Estimate:
    """A torque constant and its relative error, a fraction."""

    value: float
    error: float

    @property
    def known(self) -> bool:
        """Whether it is good to four digits."""
        return self.error < KNOWN


NOTHING = Estimate(np.nan, np.inf)


@dataclass(frozen=True, eq=False)
class Targets:
    """What one log says: target torque, current and speed where the gain acts, shape (N, n), and which samples rest."""

    name: str
    time: Array
    velocity: Array
    torque: Array
    current: Array
    resting: NDArray[np.bool_]

    @classmethod
    def of(cls, recording: Recording, drive: Drive) -> Targets:
        """Takes the targets out of a log.

        Args:
            recording: As read; unusable rows are left out.
            drive: For gears and couplings.

        Returns:
            The targets.

        Raises:
            LogError: A target is missing, or in another unit than the measured effort.
        """
        where = recording.path or recording.name
        if recording.effort_target is None or recording.torque_target is None:
            missing = "current (effort_target)" if recording.effort_target is None else "torque (torque_target)"
            raise LogError(
                f"drive.gain: auto needs the controller's target torque and target current; there is no target {missing}",
                where=where,
                remedy="name both in `log: {columns: ...}`, or give drive.gain",
            )
        usable = np.isfinite(recording.time)
        for x in (recording.position, recording.effort_target, recording.torque_target):
            usable &= (np.isfinite(x) & (np.abs(x) < 1e6)).all(axis=1)
        good = np.flatnonzero(usable)
        clock = np.maximum.accumulate(recording.time[good])
        good = good[np.diff(clock, prepend=-np.inf) > 0]
        log = recording.take(good)
        if len(log) < FEWEST:
            raise LogError(
                "too few usable rows to find torque constants in", where=where, got=len(log), remedy="give drive.gain"
            )
        torque: Array = recording.torque_target[good]
        current: Array = recording.effort_target[good]
        if log.effort_side == "motor":
            torque = np.asarray(np.linalg.solve(drive.reduction.T, torque.T).T, dtype=float)
        _check_units(log, current, where)
        on_motor = log.position_side == "motor"
        q = drive.joint_position(log.position) if on_motor else log.position
        v: Array | None = log.velocity
        if v is None or not (np.isfinite(v) & (np.abs(v) < 1e6)).all():
            v = np.asarray(np.gradient(q, log.time, axis=0), dtype=float)
        elif on_motor:
            v = np.asarray(drive.joint_rate(v))
        if log.effort_side == "motor":  # its friction model is one of the motor's speed, in the size of a joint's
            v = drive.motor_rate(v) / np.abs(drive.reduction).max(axis=1)
        return cls(log.name, log.time, v, torque, current, _resting(log.time, q))


def _check_units(log: Recording, current: Array, where: str) -> None:
    """Target and measured current must be in one unit: the constant belongs to the measured one."""
    if log.effort is None:
        return
    pairs = np.isfinite(log.effort) & (np.abs(log.effort) < 1e6)
    ratio = np.sqrt(np.sum(log.effort[pairs] ** 2) / max(np.sum(current[pairs] ** 2), 1e-300))
    if current[pairs].any() and not 0.2 < ratio < 5.0:
        raise LogError(
            "the measured and the target current differ in size: one of them is in another unit",
            where=where,
            got=f"a ratio of {ratio:.3g}",
            remedy="give both units in `log: {units: {effort: ..., effort_target: ...}}`",
        )


def _resting(time: Array, q: Array) -> NDArray[np.bool_]:
    """Samples around which no joint moves; a window on both sides keeps starts and stops out."""
    from scipy.ndimage import maximum_filter1d, minimum_filter1d

    half = max(2, round(0.5 * _REST_WINDOW / float(np.median(np.diff(time)))))
    travel = maximum_filter1d(q, 2 * half + 1, axis=0) - minimum_filter1d(q, 2 * half + 1, axis=0)
    return np.asarray((travel < _REST_TRAVEL).all(axis=1))


def check_targets(signals: Sequence[Targets], j: int, joint: str) -> None:
    """Refuses targets that never change.

    Args:
        signals: The logs' targets.
        j: The joint's index.
        joint: Its name.

    Raises:
        LogError: One is constant in all logs.
    """
    for what, key in (("current", "effort_target"), ("torque", "torque_target")):
        arrays = [log.current[:, j] if key == "effort_target" else log.torque[:, j] for log in signals]
        low, high = min(x.min() for x in arrays), max(x.max() for x in arrays)
        if low == high:
            raise LogError(
                f"the target {what} of {joint} is {low:.4g} throughout, so it holds no torque constant",
                where=signals[0].name,
                expected=f"a target {what} that follows the motion",
                remedy=f"check the column of {key}, or give drive.gain",
            )


def _resolution(x: Array) -> float:
    """Step of a logged number: the smallest difference that occurs (several last digits of a float are none)."""
    levels = np.unique(x)
    steps = np.diff(levels)
    return float(steps[steps > 1e-9 * np.abs(levels).max()].min(initial=np.inf)) if len(levels) > 1 else 0.0


def at_rest(signals: Sequence[Targets], j: int) -> Estimate:
    """What the logs say together, each with its weight: they may be written with different digits.

    Args:
        signals: The logs' targets.
        j: The joint's index.

    Returns:
        The constant; an infinite error where the joint carries no torque at rest.
    """
    found = [one for one in (standing(log, j) for log in signals) if np.isfinite(one.error)]
    if not found:
        return NOTHING
    weights = np.array([max(one.error, 1e-12) for one in found]) ** -2.0
    return Estimate(float(weights @ [one.value for one in found] / weights.sum()), float(weights.sum() ** -0.5))


def standing(log: Targets, j: int) -> Estimate:
    """Ratio of the targets where the robot stands: a robust slope, its error from scatter and logged digits.

    Args:
        log: One log's targets.
        j: The joint's index.

    Returns:
        The constant.
    """
    y, x = log.torque[log.resting, j], log.current[log.resting, j]
    used = x != 0
    if used.sum() < FEWEST or not y[used].any():
        return NOTHING
    x, y = x[used], y[used]
    slope = _weighted_median(y / x, np.abs(x))
    step = _resolution(log.current[:, j])
    blur = abs(slope) * step + _resolution(log.torque[:, j])
    for _ in range(5):
        error = np.abs(y - slope * x)
        inside = error <= max(blur, 4.0 * 1.4826 * float(np.median(error)))
        slope = float(x[inside] @ y[inside] / (x[inside] @ x[inside]))
    size = float(np.sqrt(np.mean(y[inside] ** 2)))
    scatter = float(np.std(y[inside] - slope * x[inside])) / np.sqrt(inside.sum() / 10)  # neighbours are alike
    # A torque that stands still is rounded the same way every time: digits do not average out, distinct values do.
    share = np.unique(np.round(x[inside] / step) if step > 0 else x[inside], return_counts=True)[1] / inside.sum()
    rounding = 0.5 * blur * np.sqrt(float(share @ share))
    return Estimate(slope, float(np.hypot(scatter, rounding)) / max(size, 1e-300))


def _weighted_median(values: Array, weights: Array) -> float:
    order = np.argsort(values)
    running = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(running, 0.5 * running[-1])])
