"""``gain: auto``: torque constants from the target torque and target current logged by a controller.

At rest the controller's feed-forward contains no friction compensation, so ``target torque / target current`` is the
torque constant to four digits. In motion the target current also contains the controller's friction model, and the ratio
is meaningless: the constant is then estimated together with a free function of speed for each direction. This is used for
joints that carry no torque at rest. If such an estimate agrees with a joint that is known at rest, the two are assumed to
have the same motor (twins), and the more precise value is used for both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from .errors import LogError
from .grouping import grouped
from .linalg import Array, BoolArray, lstsq, positive, rms, robust_std, tukey_weights
from .logs.recording import IMPOSSIBLE, Recording
from .logs.refusals import each_usable
from .model.drive import Drive
from .samples import ReadOnly
from .signals.resolution import resolution
from .units import percent

#: Relative error below which a constant counts as known (four digits), and from which it is not found.
KNOWN, NOT_FOUND = 1e-3, 0.2
#: Minimum number of samples for an estimate, and number of neighbouring samples that count as one: they are correlated.
FEWEST, _CORRELATED = 30, 10
#: Measured and target current are in one unit if their ratio is below this factor.
_ONE_UNIT = 5.0
#: Robust standard deviations from which samples at rest are left out.
_OUTLIER = 4.0
#: A joint is at rest while it moves by less than this [rad or m] within the window [s].
_REST_TRAVEL, _REST_WINDOW = 5e-4, 0.3
#: Constants of twins agree within this fraction: motors of one type differ by less, those of neighbouring sizes by more.
TWINS = 0.03
#: In motion: speed below which samples are left out [rad/s or m/s], and maximum number of samples used.
_SLOW, _SAMPLES = 0.03, 6000
#: Possible leads of the controller's target velocity over the measured velocity [s].
_LEADS = np.linspace(-0.008, 0.008, 9)
#: Standard error of the lead at best, from the agreement of joints, and at worst, from the scatter alone [s].
_LEAD_ERROR, _LEAD_GUESSED = 5e-4, 3e-3
#: Minimum relative error of a constant estimated in motion: the free function only approximates the controller's friction law.
_MOTION_ERROR = 5e-4
#: Bends of the piecewise linear function of speed.
_KNOTS = 6
#: Reweighting ends when the constant changes by less than this fraction, far below its error, or after so many iterations.
_CONVERGED, _ITERATIONS = 1e-6, 50
#: Largest relative difference between estimates of one joint (at rest, in motion, in several logs); compared are those whose
#: errors are below this part of it.
CONSTANT, _PRECISE = 0.1, 0.2


@dataclass(frozen=True)
class Estimate:
    """A torque constant, its relative standard error, a fraction, and where it comes from, in words."""

    value: float = np.nan
    error: float = np.inf
    origin: str = ""

    @property
    def known(self) -> bool:
        """Whether it is known to four digits."""
        return self.error < KNOWN


@dataclass(frozen=True, eq=False)
class Targets:
    """Signals of one log: target torque and current, speed on the side of the gain, shape (N, n), and samples at rest."""

    name: str
    time: Array
    velocity: Array
    torque: Array
    current: Array
    resting: BoolArray

    @classmethod
    def of(cls, recording: Recording, drive: Drive) -> Targets:
        """Extracts the targets from the usable rows of a log as read.

        Raises:
            LogError: A target is missing, or in another unit than the measured effort.
        """
        from scipy.ndimage import maximum_filter1d, minimum_filter1d

        where = recording.where
        if recording.effort_target is None or recording.torque_target is None:
            missing = "current (effort_target)" if recording.effort_target is None else "torque (torque_target)"
            raise LogError(
                f"drive.gain: auto needs the controller's target torque and target current; there is no target {missing}",
                where=where,
                remedy="name both in `log: {columns: ...}`, or give drive.gain",
            )
        # 1. usable rows: measured values at increasing times
        usable = np.isfinite(recording.time)
        for x in (recording.position, recording.effort_target, recording.torque_target):
            usable &= (np.isfinite(x) & (np.abs(x) < IMPOSSIBLE)).all(axis=1)
        good = np.flatnonzero(usable)
        good = good[np.diff(np.maximum.accumulate(recording.time[good]), prepend=-np.inf) > 0]
        log = recording.take(good)
        if len(log) < FEWEST:
            raise LogError(
                "too few usable rows to find torque constants in", where=where, got=len(log), remedy="give drive.gain"
            )
        # 2. the targets on the side of the gain; the constant is applied to the measured current, which must have their unit
        torque, current = recording.torque_target[good], recording.effort_target[good]
        if log.effort_side == "motor":
            torque = np.asarray(np.linalg.solve(drive.reduction.T, torque.T).T, dtype=float)
        if log.effort is not None:
            pairs = np.isfinite(log.effort) & (np.abs(log.effort) < IMPOSSIBLE)
            ratio = np.sqrt(np.sum(log.effort[pairs] ** 2) / positive(np.sum(current[pairs] ** 2)))
            if current[pairs].any() and not 1.0 / _ONE_UNIT < ratio < _ONE_UNIT:
                raise LogError(
                    "the measured and the target current differ in size: one of them is in another unit",
                    where=where,
                    got=f"a ratio of {ratio:.3g}",
                    remedy="give both units in `log: {units: {effort: ..., effort_target: ...}}`",
                )
        # 3. the speed on which friction depends: of a motor, scaled to that of a joint
        on_motor = log.position_side == "motor"
        q = drive.joint_position(log.position) if on_motor else log.position
        v: Array | None = log.velocity
        if v is None or not (np.isfinite(v) & (np.abs(v) < IMPOSSIBLE)).all():
            v = np.asarray(np.gradient(q, log.time, axis=0), dtype=float)
        elif on_motor:
            v = np.asarray(drive.joint_rate(v))
        if log.effort_side == "motor":
            v = drive.motor_rate(v) / np.abs(drive.reduction).max(axis=1)
        # 4. samples at rest: no joint moves within a window on both sides, which excludes starts and stops
        window = 2 * max(2, round(0.5 * _REST_WINDOW / float(np.median(np.diff(log.time))))) + 1
        travel = maximum_filter1d(q, window, axis=0, mode="nearest") - minimum_filter1d(q, window, axis=0, mode="nearest")
        return cls(log.name, log.time, v, torque, current, np.asarray((travel < _REST_TRAVEL).all(axis=1)))


def check_targets(signals: Sequence[Targets], j: int, joint: str) -> None:
    """Refuses target currents and torques of a joint that are constant in all logs."""
    for what, key in (("current", "effort_target"), ("torque", "torque_target")):
        arrays = [getattr(log, what)[:, j] for log in signals]
        low, high = min(x.min() for x in arrays), max(x.max() for x in arrays)
        if low == high:
            raise LogError(
                f"the target {what} of {joint} is {low:.4g} throughout, so it holds no torque constant",
                where=signals[0].name,
                expected=f"a target {what} that follows the motion",
                remedy=f"check the column of {key}, or give drive.gain",
            )


def weighted_mean(estimates: Sequence[Estimate], origin: str) -> Estimate:
    """Inverse-variance weighted mean, of logs for instance, whose resolutions differ; infinite error if there are none."""
    value, error = np.array([[x.value, x.error] for x in estimates if np.isfinite(x.error)]).reshape(-1, 2).T
    if not len(value):
        return Estimate(origin=origin)
    weights = np.maximum(error, 1e-12) ** -2.0
    return Estimate(float(weights @ value / weights.sum()), float(weights.sum() ** -0.5), origin)


def ratio_at_rest(log: Targets, j: int) -> Estimate:
    """Ratio of the targets at rest in one log: a robust slope, with its error from scatter and resolution."""
    y, x = log.torque[log.resting, j], log.current[log.resting, j]
    used = x != 0
    if used.sum() < FEWEST or not y[used].any():
        return Estimate()
    x, y = x[used], y[used]
    order = np.argsort(y / x)
    running = np.cumsum(np.abs(x)[order])
    slope = float((y / x)[order][np.searchsorted(running, 0.5 * running[-1])])  # weighted median
    step = resolution(log.current[:, j])
    blur = abs(slope) * step + resolution(log.torque[:, j])
    for _ in range(5):
        error = np.abs(y - slope * x)
        inside = error <= max(blur, _OUTLIER * float(robust_std(error)))
        slope = float(x[inside] @ y[inside] / (x[inside] @ x[inside]))
    scatter = float(np.std(y[inside] - slope * x[inside])) / np.sqrt(inside.sum() / _CORRELATED)
    # A constant torque is always rounded alike: rounding errors average out over distinct values only.
    share = np.unique(np.round(x[inside] / step) if step > 0 else x[inside], return_counts=True)[1] / inside.sum()
    rounding = 0.5 * blur * np.sqrt(float(share @ share))
    return Estimate(slope, float(np.hypot(scatter, rounding)) / positive(rms(y[inside])), f"at rest in {log.name}")


def in_motion(signals: Sequence[Targets], rest: Sequence[Estimate]) -> list[Estimate]:
    """Torque constants by regression in motion, with a free function of speed in each direction.

    The controller used its target velocity, which leads or lags the measured one slightly; where the current depends
    strongly on speed, a millisecond changes the constant by a percent. The lead is common to all joints.

    Returns:
        The constants; an infinite error if a joint hardly moves or its torque hardly changes.
    """
    # the constant, its relative error and the residual scatter [unit of effort]
    by_lead = np.tile([np.nan, np.inf, np.inf], (len(rest), len(_LEADS), 1))
    for j in range(len(rest)):
        fast = [np.abs(log.velocity[:, j]) > _SLOW for log in signals]
        steady = [np.flatnonzero(x & np.roll(x, 1) & np.roll(x, -1)) for x in fast]  # away from reversals
        total = sum(map(len, steady))
        if total < 10 * FEWEST:
            continue
        samples = [(log, rows[:: -(-total // _SAMPLES)]) for log, rows in zip(signals, steady, strict=True)]
        torque, current = (np.concatenate([getattr(x, key)[rows, j] for x, rows in samples]) for key in ("torque", "current"))
        weight = np.ones(len(torque))
        for row, ahead in enumerate(_LEADS):
            v = np.concatenate([np.interp(log.time[rows] + ahead, log.time, log.velocity[:, j]) for log, rows in samples])
            u, friction = np.abs(v), []  # piecewise linear functions of speed in each direction, shape (functions, N)
            knots = np.quantile(u, 0.995) * np.linspace(0, 1, _KNOTS + 2)[1:-1]
            for side in (v > 0, v < 0):
                if side.sum() >= FEWEST:
                    friction += [side.astype(float), side * u]
                    friction += [side * np.maximum(u - knot, 0.0) for knot in knots if (u[side] > knot).sum() >= FEWEST]
            by_lead[j, row], weight = _inverse_slope(torque, np.array(friction).reshape(-1, len(v)), current, weight)
    moved = np.flatnonzero(np.isfinite(by_lead[:, :, 1]).all(axis=1)).tolist()
    constants = [Estimate()] * len(rest)
    if not moved:
        return constants
    values, errors, scatter = np.moveaxis(by_lead[moved], 2, 0)
    lead, doubt = _lead(values, errors, scatter, [rest[j] for j in moved])
    for j, value, error in zip(moved, values, errors, strict=True):
        constant, slope, alone = (float(np.interp(lead, _LEADS, y)) for y in (value, np.gradient(value, _LEADS), error))
        error_at_lead = float(np.linalg.norm([alone, _MOTION_ERROR, slope / constant * doubt]))
        constants[j] = Estimate(constant, error_at_lead, "by regression in motion")
    return constants


def _lead(values: Array, errors: Array, scatter: Array, rest: Sequence[Estimate]) -> tuple[float, float]:
    """The lead [s] at which estimates in motion agree with those at rest, and twins with each other; and its standard error.

    With k_j(t) the constant of joint j in motion for a lead t, e_j its relative error and s_j(t) the scatter, the first guess
    minimises, over the joints known at rest, or if there are none over all joints,

        ``Σ ((k_j(t) / k_rest - 1) / √(e_rest² + e_j²))²``  or  ``Σ s_j(t) / min s_j``.

    It tells which joints are twins. The lead is the minimum, over the joints with a twin of constant k_twin, of

        ``Σ ((|k_j(t) / k_twin| - 1) / √(e_twin² + e_j² + e_motion²))²``,

    a sum of squares in units of their errors, whose curvature c gives the standard error ``√(2 / c)``.

    Args:
        values, errors, scatter: Shape (joints, leads).
        rest: Estimates of the same joints at rest.
    """
    fine = np.linspace(_LEADS[0], _LEADS[-1], 801)
    curves = np.array([np.interp(fine, _LEADS, row) for row in values])
    best = errors.min(axis=1)
    known = [j for j, estimate in enumerate(rest) if estimate.known]
    by_rest = sum(((curves[j] / rest[j].value - 1.0) / np.hypot(rest[j].error, best[j])) ** 2 for j in known)
    by_scatter = np.array([np.interp(fine, _LEADS, row / positive(row.min())) for row in scatter]).sum(axis=0)
    guess = int(np.argmin(by_rest if known else by_scatter))
    squares = []
    for j, curve in enumerate(curves):  # against the most precise twin, preferably known at rest
        better = [k for k in range(len(curves)) if k in known or (j not in known and best[k] < best[j])]
        twins = [k for k in better if abs(abs(curve[guess] / curves[k, guess]) - 1.0) < TWINS]
        if twins:
            twin = min(twins, key=lambda k: (k not in known, best[k]))
            constant, error = (rest[twin].value, rest[twin].error) if twin in known else (curves[twin], best[twin])
            squares.append(((np.abs(curve / constant) - 1.0) / np.linalg.norm([error, best[j], _MOTION_ERROR])) ** 2)
    if not squares:
        return float(fine[guess]), _LEAD_GUESSED
    misfit = sum(squares)
    end = int(np.clip(np.argmin(misfit), 1, len(fine) - 2))
    curvature = float(np.diff(misfit[end - 1 : end + 2], 2)[0]) / float(fine[1] - fine[0]) ** 2
    return float(fine[end]), float(np.clip(np.sqrt(2.0 / positive(curvature)), _LEAD_ERROR, _LEAD_GUESSED))


def _inverse_slope(torque: Array, friction: Array, current: Array, weight: Array) -> tuple[tuple[float, float, float], Array]:
    """Fits ``current = torque / constant + friction`` by Tukey's biweight.

    The friction functions are eliminated by their normal equations, which lose half the digits of a constant that has three.

    Args:
        torque, current: Shape (N,).
        friction: Functions of speed, of which the friction in the current is a sum, shape (functions, N).
        weight: First weights, shape (N,).

    Returns:
        The constant, its relative error and the residual scatter of the current, not a number and infinity where friction
        explains the torque or the slope is zero; and the last weights.
    """
    friction = friction / positive(np.linalg.norm(friction, axis=1))[:, None]
    unknown, slope = (np.nan, np.inf, np.inf), np.inf
    for _ in range(_ITERATIONS):
        weighted, torque_w, current_w = friction * weight, torque * weight, current * weight
        of_torque, of_current = lstsq(weighted @ weighted.T, weighted @ np.column_stack([torque_w, current_w]))[0].T
        left = torque_w - of_torque @ weighted  # what friction does not explain of the torque
        square, before = float(left @ left), slope
        if square <= 1e-12 * float(torque_w @ torque_w):
            return unknown, weight
        slope = float(left @ current_w) / square
        error = np.abs(current - slope * torque - (of_current - slope * of_torque) @ friction)
        scale = float(robust_std(error)) + 1e-12 * float(np.abs(current).max())
        weight = np.sqrt(tukey_weights(error / positive(scale)))
        if abs(slope - before) <= _CONVERGED * abs(slope):
            break
    if slope == 0:
        return unknown, weight
    return (1.0 / slope, float(np.sqrt(_CORRELATED / square)) * scale / abs(slope), scale), weight


@dataclass(frozen=True, eq=False)
class TorqueConstants(ReadOnly):
    """Torque constants found in logs.

    Attributes:
        gain: Shape (n,) [N·m or N per unit of effort].
        relative_error: Relative standard error of each, shape (n,), a fraction.
        origin: How each was found.
        source: What they were found from.
    """

    joints: tuple[str, ...]
    gain: Array
    relative_error: Array
    origin: tuple[str, ...]
    source: str = "auto, target torque / target current"

    def of(self, drive: Drive) -> Drive:
        """The drive with these constants; its ``gain_origin`` tells how each was found."""
        each = zip(self.origin, self.joints, self.gain, self.relative_error, strict=True)
        by_origin = grouped((text, f"{joint} {value:.5g} (± {percent(100 * error)} %)") for text, joint, value, error in each)
        origins = (f"{text}: {', '.join(joints)}" for text, joints in by_origin.items())
        origin = "; ".join([self.source, *origins])
        return replace(drive, gain=self.gain, gain_origin=origin, gain_error=self.relative_error)


def resolve_gain(drive: Drive, recordings: Sequence[Recording]) -> Drive:
    """The drive with its torque constants, estimated from the logs if they are not given.

    Args:
        drive: The drive as described in the project.
        recordings: The logs, as read.

    Returns:
        The same drive, or one with gains whose ``gain_origin`` tells how each constant was estimated.

    Raises:
        LogError: See :func:`torque_constants`.
    """
    if all(log.effort_is_torque for log in recordings) or drive.gain_origin not in ("auto", "effort is a torque"):
        return drive
    targets_logged = all(log.effort_target is not None and log.torque_target is not None for log in recordings)
    if drive.gain_origin != "auto" and not targets_logged:
        return drive
    return torque_constants(recordings, drive).of(drive)


def torque_constants(recordings: Sequence[Recording], drive: Drive) -> TorqueConstants:
    """Estimates the torque constant of every joint from target torque and target current.

    Args:
        recordings: Logs of one robot, as read; all samples, including standstill.
        drive: Gears and couplings, for efforts logged on the motor side.

    Raises:
        LogError: A target is missing or constant, the two currents differ in unit, or the ratio is not constant.
    """
    if not recordings:
        raise LogError("no log to find torque constants in", remedy="give at least one log, or drive.gain")
    signals, joints = each_usable(partial(Targets.of, drive=drive), recordings), recordings[0].joints
    for j, joint in enumerate(joints):
        check_targets(signals, j, joint)
    ratios = [[ratio_at_rest(log, j) for log in signals] for j in range(len(joints))]
    rest = [weighted_mean(of_logs, "at rest") for of_logs in ratios]
    moving = in_motion(signals, rest)
    # 1. All precise estimates of a joint, at rest in each log and in motion, must agree.
    for joint, of_logs, moved in zip(joints, ratios, moving, strict=True):
        precise = [estimate for estimate in (*of_logs, moved) if estimate.error < _PRECISE * CONSTANT]
        for estimate in precise:
            if abs(estimate.value - precise[0].value) > CONSTANT * abs(precise[0].value):
                raise LogError(
                    f"target torque over target current of {joint} is no constant",
                    where=signals[0].name,
                    got=", ".join(f"{other.value:.5g} {other.origin}" for other in (precise[0], estimate)),
                    remedy="check the columns effort_target and torque_target, or give drive.gain",
                )
    # 2. Joints known at rest keep that constant; for others motion adds to it, or replaces it where it is far more precise.
    best = list(rest)
    for j, (joint, resting, moved) in enumerate(zip(joints, rest, moving, strict=True)):
        if not resting.known and np.isfinite(moved.error):
            together = weighted_mean([resting, moved], "at rest and by regression in motion")
            best[j] = moved if moved.error < 0.1 * resting.error else together
        if not best[j].error < NOT_FOUND:
            raise LogError(
                f"no torque constant can be found for {joint}: it carries no torque at rest and hardly any in motion",
                remedy="log a motion that loads it, standstill included, or give drive.gain",
            )
    # 3. A joint that is not known at rest has the constant of a motor twin that is known better.
    constants = [best[j] if rest[j].known else _of_twin(j, best, rest, joints) for j in range(len(joints))]
    gain, error = (np.array([getattr(constant, key) for constant in constants]) for key in ("value", "error"))
    return TorqueConstants(joints, gain, error, tuple(constant.origin for constant in constants))


def _of_twin(j: int, best: Sequence[Estimate], rest: Sequence[Estimate], joints: Sequence[str]) -> Estimate:
    """The constant of the best known twin of a joint, or its own if none is known better."""
    own = best[j]
    reach = max(TWINS, 3.0 * own.error)
    near = [k for k, other in enumerate(best) if k != j and abs(abs(own.value / other.value) - 1.0) < reach]
    twin = min([k for k in near if rest[k].known] or near, key=lambda k: best[k].error, default=j)
    if not best[twin].error < own.error:
        return own
    agreement = f"own value agrees within {percent(100 * reach)} %"
    origin = f"motor twin of {joints[twin]} ({best[twin].origin}; {agreement})"
    return Estimate(float(np.copysign(best[twin].value, own.value)), best[twin].error, origin)
