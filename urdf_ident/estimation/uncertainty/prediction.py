"""Errors of predicted torque on motion that took no part in the estimate: prediction intervals, and the best low-pass.

The covariance of the parameters includes neither model errors nor sensor noise; on real arms most measured samples are outside
the interval due to the parameters alone. The residual itself is therefore used: every fold (:func:`.folds.folds_of`) is
predicted by the parameters that data and prior give without it, and measured and predicted torque are compared behind the
same low-pass. The quantiles of the absolute error are computed separately at reversals and near them (by speed, and by the time
since the reversal relative to the low-pass), and for slow, usual and fast motion. With m time blocks the quantile of level p is
taken at ``p (1 + 1/m)``, as for one more block (conformal prediction: Vovk, Gammerman, Shafer 2005).

Along a motion measured and predicted torque are compared behind the same low-pass. A user who predicts single samples compares
the low-passed measured torque with each of them: at a reversal the model's dry friction is a step while that of the low-passed
torque is smooth. The difference is no random error: it follows from the low-pass and the step (:func:`smeared_friction`),
increases with the acceleration at the reversal, and is added to the quantile as it is. Logs with gentle starts and stops only
would otherwise make the intervals too narrow for reversals in motion. Neither do single samples tell the state of friction that
builds up in time (:func:`building_friction`).

Outside the data four terms are added: the posterior variance of the parameters in excess of that along the logs, their bias
(both with rotor inertia and friction from the data alone, :attr:`.Prior.without_first_fit`), the increase of the residual
beyond the trained speed, assumed proportional to it, and the uncertainty of friction there (:func:`unseen_friction`): no
held-out sample contains the friction of a direction, or of speeds, that the logs lack, and the parameters' variance is valid
for the selected laws only.

The low-pass of the *fit* follows the spectrum (:func:`.filters.estimate_cutoff`): noise of the accelerations would bias
inertias towards zero, so it passes hardly any. A *prediction* may use more of the motion, although it is noisy, or less, where
efforts are logged with a smaller bandwidth than positions. Every log is predicted behind a multiple of the cut-off of its own
spectrum, because motion and noise differ between logs. The multiple is chosen: parameters estimated without each fold predict
it behind each candidate, and measured and predicted torque are compared in the band of scores, which depends on no candidate.
It is 1 unless another one is better beyond the error of the paired difference.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import ModelError
from ...friction import Relaxing, Sliding
from ...linalg import Array, divisors, rms, scaled_lstsq
from ...model.dynamic_model import DynamicModel
from ...model.prior import USUAL_WEIGHT, Posterior, Prior
from ...model.trained import sliders
from ...parallel import each
from ...samples import ReadOnly, Segment, columns
from ...signals.config import SignalConfig
from ...signals.filters import lowpass, prediction_cutoff, score_band
from ...signals.prepare import PreparedLog, in_band
from ...statistics.folds import chosen, fold_labels, folds_of, relative_gains
from ...statistics.rows import evenly_spread
from ...statistics.statistic import StatisticSet
from ...units import percent

#: Levels whose quantiles are stored; others are interpolated.
LEVELS = (0.5, 0.68, 0.8, 0.9, 0.95, 0.98, 0.99)
#: Speeds below these fractions of the 95 % quantile are at a reversal, and near one.
_REVERSAL = (0.03, 0.1)
#: The same by time: |v|/|a| in periods of the low-pass.
_TURNING = (0.2, 0.6)
#: Smallest number of samples for which a class of speed has its own quantiles.
_FEWEST = 8
#: Number of samples of a segment at which the parameters' variance is evaluated.
_SAMPLES = 100
#: Maximum of the same for all segments together, and minimum per segment.
MOST_SAMPLES, _FEWEST_SAMPLES = 2000, 5
#: A direction counts as missing if the joint's speed in it is below this share of its speed in the other direction.
_SEEN = 0.1
#: Half-width at 95 % for friction outside the data, relative to the model's friction: for a direction or slow speeds that the
#: logs lack (from none to twice the friction), and for the increase at higher speeds.
UNSEEN, BEYOND = 1.0, 0.5
#: The same per further multiple of the fastest logged speed, relative to the friction at that speed (quadratic at first, since
#: value and slope are known there): friction that is flat in slow logs may still rise at high speeds.
STEEPER = 0.2


@dataclass(frozen=True, eq=False)
class HeldOutResidual(ReadOnly):
    """Quantiles of held-out residuals by joint and speed.

    Attributes:
        band: Low-pass of the measured torque [Hz].
        edges: Speeds between the classes, ascending, shape (n, classes − 1) [rad/s or m/s].
        top: Largest trained speed (99.5 % quantile), shape (n,) [rad/s or m/s].
        quantiles: Quantiles of the absolute residual, both torques low-passed, shape (n, classes, levels) [N·m or N], levels
            as :data:`LEVELS`.
        variance: Posterior variance of the predicted torque that these residuals already contain, mean along the logs,
            shape (n,) [N²·m² or N²].
        seen: Slowest and fastest speeds (0.5 and 99.5 % quantiles) backwards and forwards, shape (n, 2, 2)
            [rad/s or m/s]; zeros for a direction without data.
        relative: RMS of the residual, both torques low-passed, over that of the low-passed torque, shape (n,), a fraction.
        unlimited: As ``relative``, of parameters with the same prior that no constraint limits; None if none is active.
        period: Time between samples of the measured torque, the longest of the logs [s].
    """

    band: float
    edges: Array
    top: Array
    quantiles: Array
    variance: Array
    blocks: int
    seen: Array
    relative: Array
    period: float
    unlimited: Array | None = None
    levels: tuple[float, ...] = LEVELS

    def reach(self, v: Array, a: Array, alpha: float) -> Array:
        """Returns half the width of the interval for a residual.

        Args:
            v: Joint velocities, shape (N, n) [rad/s or m/s].
            a: Joint accelerations, shape (N, n) [rad/s² or m/s²].
            alpha: One minus the level, a fraction.

        Returns:
            Shape (N, n) [N·m or N]; proportional to the speed beyond the trained one.

        Raises:
            ModelError: The level is not between 0 and 1.
        """
        if not 0 < alpha < 1:
            raise ModelError("alpha is not between 0 and 1", got=alpha, expected="0.05 for 95 %")
        speed = np.abs(v)
        half_width = np.empty(speed.shape)
        level = min((1 - alpha) * (1 + 1 / self.blocks), LEVELS[-1])
        for j, (edges, table) in enumerate(zip(self.edges, self.quantiles, strict=True)):
            at = np.array([np.interp(level, (0.0, *LEVELS), (0.0, *row)) for row in table])
            half_width[:, j] = at[_classes(edges, speed[:, j], np.abs(a[:, j]), self.band)]
        beyond = np.where(self.top > 0, speed / np.where(self.top > 0, self.top, 1.0), 1.0)
        return np.asarray(half_width * np.maximum(beyond, 1.0))


#: Torque predicted by parameters estimated without its fold, per log and segment, shape (N, n) each [N·m or N].
HeldOutTorque = Sequence[Sequence[Array]]


def held_out_residual(
    model: DynamicModel,
    statistics: StatisticSet,
    weights: Mapping[str, float],
    prior: Prior,
    weight: float,
    logs: Sequence[PreparedLog],
    held: HeldOutParameters,
    unlimited: HeldOutParameters | None = None,
) -> tuple[HeldOutResidual, HeldOutTorque]:
    """Predicts every fold from the others, with the prior of the result, and returns quantiles of the residuals.

    Args:
        weights: Row group → weight of its rows [1/unit of torque].
        weight: Weight of the prior.
        unlimited: As ``held`` without constraints, if they are to be compared.

    Raises:
        EstimationError: The data are too short for cross-validation.
    """
    shown, band = [part for log in logs for part in log.segments], min(score_band(log.conditioned.rate) for log in logs)
    count = max(_FEWEST_SAMPLES, min(_SAMPLES, MOST_SAMPLES // max(len(shown), 1)))
    measured, rows = zip(*each(partial(_samples_of, model, band, count), shown), strict=True)
    data = statistics.stacked(weights)[:, :-1]
    variance = Posterior(data, prior.without_first_fit, min(weight, USUAL_WEIGHT)).variance(np.concatenate(rows))

    def errors(torque: HeldOutTorque) -> list[Array]:
        predicted = zip(shown, measured, (own for log in torque for own in log), strict=True)
        return [np.abs(tau - lowpass(own, part.rate, band)) for part, tau, own in predicted]

    def size(parts: Sequence[Array]) -> Array:
        return np.array([rms(x) for x in columns(parts)])

    total = divisors(size(measured))
    limited = None if unlimited is None else size(errors(unlimited.torque(model, logs))) / total
    torque = held.torque(model, logs)
    error = errors(torque)
    edges, top, quantiles = [], [], []
    for own, v, a in zip(*(columns(x) for x in (error, [p.v for p in shown], [p.a for p in shown])), strict=True):
        speed, turn = np.abs(v, out=v), np.abs(a, out=a)
        half, most, fast, fastest = np.quantile(speed, [0.5, 0.9, 0.95, 0.995])
        edges.append(np.maximum.accumulate([*(x * fast for x in _REVERSAL), half, most]))
        top.append(fastest)
        kind, every = _classes(edges[-1], speed, turn, band), np.quantile(own, LEVELS)
        table = [every] * (len(edges[-1]) + 1)  # a class with few samples has those of all samples
        for k in range(len(table)):
            if len(some := own[kind == k]) >= _FEWEST:  # as for one more sample
                table[k] = np.quantile(some, np.minimum(np.array(LEVELS) * (1 + 1 / len(some)), 1.0))
        quantiles.append(table)
    residual = HeldOutResidual(
        band,
        np.array(edges),
        np.array(top),
        np.array(quantiles),
        variance.mean(axis=0),
        held.blocks,
        seen=seen_speeds([part.v for part in shown]),
        relative=size(error) / total,
        unlimited=limited,
        period=1.0 / min(part.rate for part in shown),
    )
    return residual, torque


@dataclass(frozen=True, eq=False)
class FoldTimes:
    """Which fold the samples of a log belong to.

    Attributes:
        begins: Times at which parts of the log begin, ascending, shape (k,) [s]; in averaged periods their phases.
        folds: Index of the fold of each part, shape (k,).
        period: Start of the first averaged period, and its length [s]; None if the log is not averaged.
    """

    begins: Array
    folds: NDArray[np.int32]
    period: tuple[float, float] | None = None

    @classmethod
    def of(cls, log: PreparedLog, share: Array, folds: NDArray[np.int32]) -> FoldTimes:
        """Divides a log.

        Args:
            share: Share of the samples before the end of each part, shape (k,).
            folds: Index of the fold of each part, shape (k,).
        """
        averaged = log.conditioned.averaged
        period = None if averaged is None else (averaged.start, averaged.seconds)
        time = np.concatenate([part.time for part in log.segments])
        first = np.ceil(np.append(0.0, share[:-1]) * len(time) - 0.5).astype(np.intp)  # whose middle is beyond the part before
        begins = time[np.minimum(first, len(time) - 1)]
        if period is not None:
            begins = (begins - period[0]) % period[1]
        order = np.argsort(begins, kind="stable")
        return cls(begins[order], folds[order], period)

    def at(self, segment: Segment) -> NDArray[np.int32]:
        """Returns the fold of each sample of a segment, behind whatever filter and in whatever period, shape (N,)."""
        time = segment.time + 0.5 / segment.rate
        if self.period is not None:
            time = (time - self.period[0]) % self.period[1]
        return self.folds[np.searchsorted(self.begins, time) - 1]


@dataclass(frozen=True, eq=False)
class HeldOutParameters:
    """Parameters estimated without each fold.

    Attributes:
        theta: Shape (p, folds).
        folds: Names of the folds.
        times: Log → the folds of its samples.
        blocks: Number of time blocks of all logs.
    """

    theta: Array
    folds: tuple[str, ...]
    times: Mapping[str, FoldTimes]
    blocks: int

    def fold_of(self, segment: Segment) -> NDArray[np.int32]:
        """Returns the index of the fold of each sample, shape (N,)."""
        return self.times[segment.log].at(segment)

    def torque(self, model: DynamicModel, logs: Sequence[PreparedLog]) -> HeldOutTorque:
        """Predicts every fold of the logs from the others."""
        return each(partial(self.torque_of, model), [log.segments for log in logs])

    def torque_of(self, model: DynamicModel, segments: Sequence[Segment]) -> tuple[Array, ...]:
        """Predicts the torque of segments, each sample by the parameters without its fold, shape (N, n) each [N·m or N]."""
        return tuple(model.torque_by_sample(self.theta, self.fold_of(part), part) for part in segments)


def held_out_parameters(
    statistics: StatisticSet,
    weights: Mapping[str, float],
    prior: Prior,
    weight: float,
    logs: Sequence[PreparedLog],
    by_fold: Mapping[str, Array] | None = None,
) -> HeldOutParameters:
    """Estimates without every fold, with the prior of the result and, if known, its constraints.

    Args:
        weights: Row group → weight of its rows [1/unit of torque].
        weight: Weight of the prior.
        by_fold: Parameters that were chosen without each fold, shape (p,) each. If they are unknown, the prior alone counts,
            and constraints that contradict the data do not show in the prediction.

    Raises:
        EstimationError: The data are too short for cross-validation.
    """
    labels = fold_labels(statistics)
    folds = tuple(dict.fromkeys(labels.values()))
    split, known = folds_of(statistics), by_fold or {}

    def alone(fold: str) -> Array:
        factor = split.left_out(fold).stacked(weights)
        rows = np.vstack([factor, np.sqrt(weight) * np.column_stack([prior.root, prior.root @ prior.theta0])])
        return scaled_lstsq(rows[:, :-1], rows[:, -1])

    theta = np.column_stack([known[fold] if fold in known else alone(fold) for fold in folds])
    group = max(statistics.groups, key=lambda name: statistics.rows[name])
    times = {}
    for log in logs:  # each block, in order of time, has the same share of the samples as of the rows
        own = statistics.of_log[log.name][group]
        ends, index = np.cumsum([entry.rows for entry in own]), [folds.index(labels[log.name, entry.block]) for entry in own]
        times[log.name] = FoldTimes.of(log, ends / ends[-1], np.array(index, dtype=np.int32))
    return HeldOutParameters(theta, folds, times, len(labels))


def _samples_of(model: DynamicModel, band: float, count: int, part: Segment) -> tuple[Array, Array]:
    """Low-passed measured torque, and the torque per unit of each parameter at some samples, shape (some, n, p)."""
    thinned = slice(None, None, max(1, len(part) // count))
    rows: Array = model.torque(np.eye(len(model.parameters)), part.q[thinned], part.v[thinned], part.a[thinned])
    rows[:, sorted(model.apart), : model.n_inertial] = 0.0
    return lowpass(part.total, part.rate, band), rows


def _classes(edges: Array, speed: Array, turn: Array, band: float) -> NDArray[np.int8]:
    """Class of every sample of a joint, 0 at a reversal, from the sizes of its velocity and acceleration, shape (N,)."""
    kind = np.searchsorted(edges, speed, side="right").astype(np.int8)  # small type, as these are large for many logs
    for k, periods in reversed(list(enumerate(_TURNING))):
        kind = np.where(speed * band < periods * turn, np.minimum(kind, k), kind)
    return kind


def choose_prediction_band(
    model: DynamicModel,
    logs: Sequence[PreparedLog],
    held: HeldOutParameters,
    config: SignalConfig,
    *,
    compared: float | None = None,
) -> dict[str, Any]:
    """Chooses the low-pass of the positions for predictions.

    Candidates are octaves from the cut-off of the spectrum, as long as they lower the error, and half octaves beside the best.

    Args:
        config: The conditioning of the logs, with an automatic low-pass of the positions.
        compared: Low-pass of the compared torques [Hz]; None: that of scores.

    Returns:
        The entry ``signals.prediction`` of identification.json: the multiple of the cut-off of each log's spectrum; all that
        were tried, ascending, and their held-out errors, RMS over folds, mean over joints [N·m or N]; the names of the folds,
        the low-pass of the compared torques [Hz], and the reason for the choice.
    """
    rates = [log.conditioned.rate for log in logs]
    band = score_band(min(rates)) if compared is None else compared
    whole, logs = logs, evenly_spread(logs)
    of_samples = np.concatenate([held.fold_of(part) for log in logs for part in log.segments])
    counts = np.bincount(of_samples, minlength=len(held.folds))
    squares: dict[float, Array] = {}
    seen = set[tuple[float, ...]]()

    def best_of(octaves: Sequence[float]) -> float:
        """Adds candidates, apart from those that differ in no log from an earlier one; returns the one of the least error."""
        new, tasks = list[float](), list[tuple[float, ...]]()
        for x in octaves:
            cutoffs = tuple(prediction_cutoff(log.spectrum, 2.0**x, log.conditioned.rate) for log in whole)
            if cutoffs not in seen:
                seen.add(cutoffs)
                new.append(x)
                tasks.append(cutoffs)
        if new:
            errors = each(partial(_squares, model, held, band, config), list(zip(logs, zip(*tasks, strict=True), strict=True)))
            squares.update(zip(new, np.sum(errors, axis=0) / np.maximum(counts, 1)[:, None], strict=True))
        return max(squares, key=lambda x: float(relative_gains(squares[0.0], squares[x]).mean()))

    best = best_of((0.0, -1.0, 1.0))
    while best in (min(squares), max(squares)) and best != (best := best_of((best + np.sign(best),))):
        pass
    best_of((best - 0.5, best + 0.5))
    tried = sorted(squares)
    errors_of_tried = np.array([squares[x] for x in tried])
    best, plain = chosen(errors_of_tried, tried.index(0.0)), tried.index(0.0)
    mean, scale = np.sqrt(errors_of_tried.mean(axis=1)).mean(axis=1), 2.0 ** tried[best]
    parts = f"{len(held.folds)} held-out parts"
    why = f"that of each log's spectrum: no other is better on {parts} by more than its error"
    if best != plain:
        gain = percent(100 * (1 - float(mean[best] / mean[plain])))
        why = f"{scale:.3g} times that of each log's spectrum: {gain} % better on {parts}"
    scales = 2.0 ** np.array(tried)
    return {"scale": scale, "scales": scales, "mean_rmse": mean, "folds": list(held.folds), "compared": band, "why": why}


def _squares(
    model: DynamicModel, held: HeldOutParameters, band: float, config: SignalConfig, log: tuple[PreparedLog, Sequence[float]]
) -> Array:
    """Summed squared errors of one log behind each cut-off, shape (cutoffs, folds, n)."""

    def behind(cutoff: float) -> Array:  # a function, so that the motion behind one is forgotten before the next
        segments, squares = in_band(log[0], replace(config, cutoff=cutoff)).segments, np.zeros((len(held.folds), model.n))
        for part, torque in zip(segments, held.torque_of(model, segments), strict=True):
            np.add.at(squares, held.fold_of(part), lowpass(part.total - torque, part.rate, band) ** 2)
        return squares

    return np.array([behind(cutoff) for cutoff in log[1]])


def seen_speeds(v: Sequence[Array]) -> Array:
    """Returns the slowest and fastest speed of each joint in each direction.

    Args:
        v: Joint velocities, shape (N_k, n) each [rad/s or m/s].

    Returns:
        0.5 and 99.5 % quantiles of |v| backwards and forwards, shape (n, 2, 2) [rad/s or m/s]; zeros for a direction in
        which the joint hardly moved.
    """
    ranges = np.zeros((v[0].shape[1], 2, 2))
    for j, speed in enumerate(columns(v)):
        for side, sign in enumerate((-1.0, 1.0)):
            towards = sign * speed[sign * speed > 0]
            if len(towards):
                ranges[j, side] = np.quantile(towards, (0.005, 0.995))
        ranges[j, ranges[j, :, 1] <= _SEEN * ranges[j, :, 1].max()] = 0.0
    return ranges


def covered_speeds(ranges: Sequence[Array]) -> Array:
    """Returns the slowest and fastest speeds of several logs together.

    Args:
        ranges: Results of :func:`seen_speeds`, shape (n, 2, 2) each [rad/s or m/s].

    Returns:
        As each of them; a direction that only some cover has the speeds of those.
    """
    slow, fast = np.moveaxis(np.array(ranges), -1, 0)
    least = np.min(np.where(fast > 0, slow, np.inf), axis=0)
    return np.stack([np.where(np.isfinite(least), least, 0.0), fast.max(axis=0)], axis=-1)


def unseen_friction(model: DynamicModel, theta: Array, seen: Array, q: Array, v: Array, a: Array) -> Array:
    """Returns the uncertainty of friction outside the data, half-width at 95 %.

    Args:
        theta: Its parameters, shape (p,).
        seen: Result of :func:`seen_speeds`, shape (n, 2, 2) [rad/s or m/s].
        q, v, a: Joint motion, shape (N, n) [rad, rad/s, rad/s² or m, m/s, m/s²].

    Returns:
        Shape (N, n) [N·m or N]: the whole friction for a direction without data; below the slowest speed a share of it that
        increases to all of it at rest; above the fastest speed half of the model's increase or, asymptotically, a fifth of the
        friction at that speed per further multiple of it, whichever is larger.
    """

    def at(speed: Array) -> Array:
        return _friction(model, theta, q, speed, a)

    forwards = v > 0
    slow, fast = (np.where(forwards, seen[:, 1, k], seen[:, 0, k]) for k in (0, 1))
    sign = np.where(forwards, 1.0, -1.0)
    missing = fast <= 0
    other = np.where(forwards, seen[:, 0, 0], seen[:, 1, 0])
    within = np.where(missing, 0.0, np.clip(np.abs(v), slow, fast)) * sign
    beyond = np.where(missing, UNSEEN, BEYOND) * np.abs(at(v) - at(within))
    times = np.maximum(np.abs(v) / np.where(missing, np.inf, fast), 1.0)
    steeper = STEEPER * (times - 1.0) ** 2 / times * np.abs(at(within))
    edge = np.where(missing, other, slow)
    slower = np.maximum(1.0 - np.abs(v) / np.where(edge > 0, edge, np.inf), 0.0) * (edge > 0)
    turning = UNSEEN * slower * np.abs(at(np.where(missing, other * sign, slow * sign)))
    return np.asarray(np.maximum.reduce([beyond, steeper, turning]))


def smeared_friction(
    model: DynamicModel, theta: Array, q: Array, v: Array, a: Array, band: float, period: float = 0.0
) -> Array:
    """Returns the difference between low-passed dry friction and the model's step at a reversal.

    Args:
        theta: Its parameters, shape (p,).
        q, v, a: Joint motion, shape (N, n) [rad, rad/s, rad/s² or m, m/s, m/s²].
        band: Zero-phase low-pass of the measured torque [Hz].
        period: Time between its samples [s]: the low-pass places the step in the middle between two of them, wherever the
            joint turned back.

    Returns:
        Shape (N, n) [N·m or N]: half the step times the error of the step response, overshoot included, ``|v|/|a|`` after the
        reversal, or half a period less.
    """
    forth, back = (_friction(model, theta, q, sign * v, a) for sign in (1.0, -1.0))
    half = 0.5 * np.abs(forth - back)
    time = np.arange(-200, 201) / (50.0 * band)
    risen = lowpass(np.sign(time), 50.0 * band, band)[200:]  # response of the zero-phase low-pass to a step
    since = np.maximum(np.abs(v) / np.maximum(np.abs(a), 1e-12) - 0.5 * period, 0.0)
    return np.asarray(half * np.abs(1.0 - np.interp(since, time[200:], risen)))


def building_friction(model: DynamicModel, theta: Array) -> Array:
    """Returns the uncertainty of friction that builds up in time, of samples that do not tell its state, half-width at 95 %.

    Args:
        model: The rigid model.
        theta: Its parameters, shape (p,).

    Returns:
        Shape (n,) [N·m or N]: twice this friction, which may still have the value of the direction before.
    """
    uncertainty = np.zeros(model.n)
    for (axis, side), laws in sliders(model).items():
        share = np.abs(model.drive.rate_weights(axis, side))
        uncertainty += 2.0 * share * sum(abs(float(theta[first])) for first, law in laws if isinstance(law, Relaxing))
    return uncertainty


def _friction(model: DynamicModel, theta: Array, q: Array, v: Array, a: Array) -> Array:
    """Friction torque, that with memory at its limit in the direction of the velocity, shape (N, n) [N·m or N]."""
    static, limits = np.zeros(len(theta)), np.zeros(v.shape)
    for (axis, side), laws in sliders(model).items():
        share = model.drive.rate_weights(axis, side)
        rate = v @ share
        for first, law in laws:
            places = slice(first, first + len(law.symbols))
            if law.memory:
                limits += np.outer(theta[places] @ law.basis(Sliding(rate, bent=np.sign(rate))), share)
            else:
                static[places] = theta[places]
    return np.asarray(model.torque(static, q, v, a) + limits)
