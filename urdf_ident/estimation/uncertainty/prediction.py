"""How far measured torque lies from the prediction on data that took no part: quantiles of held-out residuals.

The covariance of parameters says nothing of what the model lacks, nor of the sensor's noise; on real arms most measured samples
lie outside the interval of the parameters alone. So the residual itself is looked at: every fold (:func:`.folds.folds_of`) is
predicted by the parameters that data and prior give without it, and the low-passed measured torque is compared with the
prediction of each sample, as a user will compare them: the step of friction at a reversal is smeared in the one and sharp in
the other. The quantiles of the absolute error are kept apart: at reversals and near them (by speed, and by the time to the
reversal against the low-pass), slow, usual, fast. With m blocks in time the quantile of level p is taken at ``p (1 + 1/m)``, as
for one more block than there are (conformal prediction: Vovk, Gammerman, Shafer 2005).

At a reversal the model's dry friction steps while that of the low-passed torque turns over: the difference follows from the
low-pass and the step (:func:`smeared_friction`), and is the larger the faster the joint turns back.

Away from the data three things are added: what the posterior variance of the parameters is larger than along the logs, the
residual's growth beyond the trained speed, taken as proportional to it, and what nothing is known of friction there
(:func:`unseen_friction`): no held-out sample shows the friction of a direction, or of speeds, that the logs lack, and the
parameters' variance holds for the chosen laws only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...data.conditioning.filters import lowpass, score_band
from ...data.prepare import PreparedLog
from ...errors import ModelError
from ...linalg import Array, lstsq
from ...model.dynamic_model import DynamicModel
from ...model.posterior import posterior_variance
from ...model.prior import Prior
from ...model.term_chunks import torque_by_sample
from ...model.trained import sliders
from ...parallel import begun, each
from ...samples import ReadOnly, Segment, columns
from ...scratch import stored
from ...statistics.entries import Statistic
from ...statistics.folds import fold_labels, folds_of
from ...statistics.statistic import StatisticSet

#: Levels whose quantiles are kept; others lie between.
LEVELS = (0.5, 0.68, 0.8, 0.9, 0.95, 0.98, 0.99)
#: Speeds below these parts of the fast ones (95 % quantile) are at a reversal, and near one.
_REVERSAL = (0.03, 0.1)
#: The same by time: |v|/|a| in periods of the low-pass.
_TURNING = (0.2, 0.6)
#: A direction that a joint moves in at less than this share of its speed in the other is not seen.
_SEEN = 0.1
#: Half-width at 95 % for friction that was not seen, over the friction that the model says: of a direction or of slow speeds
#: that the logs lack (anything from none to twice as much), and of what a faster motion adds.
UNSEEN, BEYOND = 1.0, 0.5
#: The same for every further multiple of the fastest speed seen, over the friction there (its value and slope are known there,
#: so it starts as a square): a friction that no longer rises in slow logs says nothing of fast ones.
STEEPER = 0.2
#: Samples that a class of speed must hold to have quantiles of its own.
_FEWEST = 8
#: Samples of a segment at which the parameters' variance is looked at.
_SAMPLES = 100
#: The same of all pieces together, at most, and of each, at least.
MOST_SAMPLES, _FEWEST_SAMPLES = 2000, 5


@dataclass(frozen=True, eq=False)
class HeldOutResidual(ReadOnly):
    """Quantiles of held-out residuals by joint and speed.

    Attributes:
        band: Low-pass of the measured torque [Hz].
        edges: Speeds between the classes, ascending, shape (n, classes − 1) [rad/s or m/s].
        top: Largest trained speed (99.5 % quantile), shape (n,) [rad/s or m/s].
        quantiles: Of the absolute residual, shape (n, classes, levels) [N·m or N], levels as :data:`LEVELS`.
        variance: Posterior variance of the predicted torque that such residuals contain already, mean along the logs,
            shape (n,) [N²·m² or N²].
        blocks: Stretches of time behind them.
        seen: Slowest and fastest speeds (0.5 and 99.5 % quantiles) backwards and forwards, shape (n, 2, 2)
            [rad/s or m/s]; zeros for a direction without data. None: not known.
        relative: RMS of the residual over that of the torque, both behind ``band``, shape (n,), a fraction. None: not known.
    """

    band: float
    edges: Array
    top: Array
    quantiles: Array
    variance: Array
    blocks: int
    seen: Array | None = None
    relative: Array | None = None

    def as_dict(self) -> dict[str, Any]:
        """The entry ``prediction`` of identification.json."""
        return {**vars(self), "levels": list(LEVELS)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> HeldOutResidual:
        """Reads the entry again.

        Args:
            data: As :meth:`as_dict` made it.

        Returns:
            The quantiles.
        """
        keys = ("edges", "top", "quantiles", "variance")
        edges, top, quantiles, variance = (np.array(data[key], dtype=float) for key in keys)
        seen, relative = (None if data.get(key) is None else np.array(data[key], dtype=float) for key in ("seen", "relative"))
        return cls(float(data["band"]), edges, top, quantiles, variance, int(data["blocks"]), seen, relative)

    def reach(self, v: Array, a: Array, alpha: float) -> Array:
        """Half the width of the interval for a residual.

        Args:
            v: Joint velocities, shape (N, n) [rad/s or m/s].
            a: Joint accelerations, shape (N, n) [rad/s² or m/s²].
            alpha: One minus the level, a fraction.

        Returns:
            Shape (N, n) [N·m or N]; in proportion to the speed beyond the trained one.

        Raises:
            ModelError: The level is not between 0 and 1.
        """
        if not 0 < alpha < 1:
            raise ModelError("alpha is not between 0 and 1", got=alpha, expected="0.05 for 95 %")
        speed = np.abs(v)
        found = np.empty(speed.shape)
        level = min((1 - alpha) * (1 + 1 / self.blocks), LEVELS[-1])
        for j, (edges, table) in enumerate(zip(self.edges, self.quantiles, strict=True)):
            at = np.array([np.interp(level, (0.0, *LEVELS), (0.0, *row)) for row in table])
            found[:, j] = at[_classes(edges, speed[:, j], np.abs(a[:, j]), self.band)]
        beyond = np.where(self.top > 0, speed / np.where(self.top > 0, self.top, 1.0), 1.0)
        return np.asarray(found * np.maximum(beyond, 1.0))


#: Waits for the measured torque of each piece behind the band, and its torque at some samples as a function of the parameters.
LookedAt = Callable[[], Sequence[tuple[Array, Array]]]


def looked_at(model: DynamicModel, logs: Sequence[PreparedLog]) -> LookedAt:
    """What :func:`held_out_residual` needs of the logs whatever was estimated; begun, where others work.

    Args:
        model: The model, rigid.
        logs: The prepared logs.

    Returns:
        For :func:`held_out_residual`.
    """
    shown = _with_torque(logs)
    count = max(_FEWEST_SAMPLES, min(_SAMPLES, MOST_SAMPLES // max(len(shown), 1)))
    return begun(partial(_looked_at, model, _band(logs), count), shown)


def held_out_residual(
    model: DynamicModel,
    statistics: StatisticSet,
    weights: Mapping[str, float],
    prior: Prior,
    weight: float,
    logs: Sequence[PreparedLog],
    held: HeldOutTorque | None = None,
    looked: LookedAt | None = None,
) -> HeldOutResidual:
    """Predicts every fold from the others, with the prior as in the result, and keeps what is missed.

    Args:
        model: The model, rigid.
        statistics: The data's factors with their blocks in time.
        weights: Row group → weight on its rows [1/unit of torque].
        prior: Of all parameters.
        weight: Of the prior.
        logs: The prepared logs behind the statistics.
        held: The prediction, where it was made already (:func:`held_out_torque`).
        looked: As :func:`looked_at` gives it, where that was begun already.

    Returns:
        The quantiles.

    Raises:
        EstimationError: Too short to hold anything out.
    """
    held = held or held_out_torque(model, statistics, weights, prior, weight, logs)
    looked = looked or looked_at(model, logs)
    measured, rows = zip(*looked(), strict=True)
    predicted = [torque for own in held.parts for torque in own]
    errors = [stored(np.abs(tau - torque)) for tau, torque in zip(measured, predicted, strict=True)]
    wrong, size = (np.array([np.sqrt(np.mean(np.square(x))) for x in columns(some)]) for some in (errors, measured))
    relative = wrong / np.maximum(size, 1e-300)
    variance = posterior_variance(statistics.stacked(weights)[:, :-1], prior, weight, np.concatenate(rows))
    shown = _with_torque(logs)
    found = _classed(errors, shown, variance.mean(axis=0), _band(logs), held.blocks)
    return replace(found, seen=seen_speeds([part.v for part in shown]), relative=relative)


def seen_speeds(v: Sequence[Array]) -> Array:
    """How slowly and how fast each joint moved in each direction.

    Args:
        v: Joint velocities, shape (N_k, n) each [rad/s or m/s].

    Returns:
        0.5 and 99.5 % quantiles of |v| backwards and forwards, shape (n, 2, 2) [rad/s or m/s]; zeros for a direction in
        which the joint hardly moved.
    """
    found = np.zeros((v[0].shape[1], 2, 2))
    for j, speed in enumerate(columns(v)):
        for side, sign in enumerate((-1.0, 1.0)):
            own = sign * speed[sign * speed > 0]
            if len(own):
                found[j, side] = np.quantile(own, (0.005, 0.995))
        found[j, found[j, :, 1] <= _SEEN * found[j, :, 1].max()] = 0.0
    return found


def unseen_friction(model: DynamicModel, theta: Array, seen: Array, q: Array, v: Array, a: Array) -> Array:
    """How much friction may differ from the model's where no data show it, half-width at 95 %.

    Args:
        model: The model, rigid.
        theta: Its parameters, shape (p,).
        seen: As :func:`seen_speeds` gives it, shape (n, 2, 2) [rad/s or m/s].
        q, v, a: Joint motion, shape (N, n) [rad, rad/s, rad/s² or m, m/s, m/s²].

    Returns:
        Shape (N, n) [N·m or N]: of a direction that was not seen the whole friction, below the slowest speed a share of it that
        grows to all of it at rest; beyond the fastest speed half of what the model adds, or in the long run a fifth of the
        friction there for every further multiple of that speed, whichever is more.
    """
    friction = _friction_alone(model, theta)

    def at(speed: Array) -> Array:
        found: Array = model.torque(friction, q, speed, a)
        return found

    forwards = v > 0
    slow, fast = (np.where(forwards, seen[:, 1, k], seen[:, 0, k]) for k in (0, 1))
    sign = np.where(forwards, 1.0, -1.0)
    missing = fast <= 0
    other = np.where(forwards, seen[:, 0, 0], seen[:, 1, 0])
    within = np.where(missing, 0.0, np.clip(np.abs(v), slow, fast)) * sign
    now = at(v)
    beyond = np.where(missing, UNSEEN, BEYOND) * np.abs(now - at(within))
    times = np.maximum(np.abs(v) / np.where(missing, np.inf, fast), 1.0)
    steeper = STEEPER * (times - 1.0) ** 2 / times * np.abs(at(within))
    edge = np.where(missing, other, slow)
    slower = np.maximum(1.0 - np.abs(v) / np.where(edge > 0, edge, np.inf), 0.0) * (edge > 0)
    turning = UNSEEN * slower * np.abs(at(np.where(missing, other * sign, slow * sign)))
    return np.asarray(np.maximum.reduce([beyond, steeper, turning]))


@dataclass(frozen=True, eq=False)
class HeldOutTorque:
    """Torque predicted by parameters that know nothing of its fold.

    Attributes:
        parts: Of each log, of each of its pieces with a measured torque, shape (N, n) [N·m or N].
        blocks: Number of blocks in time behind them.
    """

    parts: tuple[tuple[Array, ...], ...]
    blocks: int


def held_out_torque(
    model: DynamicModel,
    statistics: StatisticSet,
    weights: Mapping[str, float],
    prior: Prior,
    weight: float,
    logs: Sequence[PreparedLog],
) -> HeldOutTorque:
    """Predicts every fold from the others, with the prior as in the result.

    Args:
        model: The model, rigid.
        statistics: The data's factors with their blocks in time.
        weights: Row group → weight on its rows [1/unit of torque].
        prior: Of all parameters.
        weight: Of the prior.
        logs: The prepared logs behind the statistics.

    Returns:
        The prediction.

    Raises:
        EstimationError: Too short to hold anything out.
    """
    labels = fold_labels(statistics)
    folds = tuple(dict.fromkeys(labels.values()))
    thetas, split = [], folds_of(statistics)
    for fold in folds:
        factor = split.left_out(fold).stacked(weights)
        rows = np.vstack([factor, np.sqrt(weight) * np.column_stack([prior.root, prior.root @ prior.theta0])])
        scale = np.linalg.norm(rows[:, :-1], axis=0)
        thetas.append(lstsq(rows[:, :-1] / scale, rows[:, -1], rcond=None)[0] / scale)
    predicted_by = np.column_stack(thetas)
    group = max(statistics.groups, key=lambda name: statistics.rows[name])
    blocks: dict[str, list[Statistic]] = {}
    for entry in sorted(statistics.of_group[group], key=lambda entry: entry.block):
        blocks.setdefault(entry.log, []).append(entry)
    owned = [(log.segments, _owners(blocks[log.name], labels, folds, log)) for log in logs]
    return HeldOutTorque(tuple(each(partial(_predicted, model, predicted_by), owned)), len(labels))


def smeared_friction(model: DynamicModel, theta: Array, q: Array, v: Array, a: Array, band: float) -> Array:
    """What a low-pass leaves of the step of dry friction at a reversal, apart from the model's.

    Args:
        model: The model, rigid.
        theta: Its parameters, shape (p,).
        q, v, a: Joint motion, shape (N, n) [rad, rad/s, rad/s² or m, m/s, m/s²].
        band: Zero-phase low-pass of the measured torque [Hz].

    Returns:
        Shape (N, n) [N·m or N]: half the step times what the low-pass lacks of it ``|v|/|a|`` after the reversal.
    """
    friction = _friction_alone(model, theta)
    forth, back = (np.asarray(model.torque(friction, q, sign * v, a), dtype=np.float64) for sign in (1.0, -1.0))
    half = 0.5 * np.abs(forth - back)
    time, risen = _step_response(band)
    since = np.abs(v) / np.maximum(np.abs(a), 1e-12)
    return np.asarray(half * np.maximum(1.0 - np.interp(since, time, risen), 0.0))


def _step_response(band: float) -> tuple[Array, Array]:
    """Response of the zero-phase low-pass to a step from −1 to 1, after the step, and the times of it [s]."""
    rate = 50.0 * band
    time = np.arange(-200, 201) / rate
    risen = lowpass(np.sign(time), rate, band)
    return time[200:], risen[200:]


def _friction_alone(model: DynamicModel, theta: Array) -> Array:
    """The parameters with all but friction laws set to zero."""
    friction = np.zeros(len(theta))
    for laws in sliders(model).values():
        for first, law in laws:
            friction[first : first + len(law.symbols)] = theta[first : first + len(law.symbols)]
    return friction


def _predicted(model: DynamicModel, predicted_by: Array, log: tuple[Sequence[Segment], NDArray[np.int32]]) -> tuple[Array, ...]:
    """Torque of each piece of a log by the parameters that know nothing of it, of all folds' parameters, shape (p, folds)."""
    segments, owner = log
    begin, own = 0, []
    for part in segments:
        if part.tau is None:
            continue
        own.append(torque_by_sample(model, predicted_by, owner[begin : begin + len(part)], part))
        begin += len(part)
    return tuple(own)


def _band(logs: Sequence[PreparedLog]) -> float:
    return min(score_band(log.conditioned.rate) for log in logs)


def _with_torque(logs: Sequence[PreparedLog]) -> list[Segment]:
    return [part for log in logs for part in log.segments if part.tau is not None]


def _looked_at(model: DynamicModel, band: float, count: int, part: Segment) -> tuple[Array, Array]:
    """Measured torque behind the band, and the torque at so many samples by parameter, shape (some, n, p)."""
    some = slice(None, None, max(1, len(part) // count))
    rows: Array = model.torque(np.eye(len(model.parameters)), part.q[some], part.v[some], part.a[some])
    return lowpass(part.total, part.rate, band), rows


def _owners(
    own: Sequence[Statistic], labels: Mapping[tuple[str, int], str], folds: Sequence[str], log: PreparedLog
) -> NDArray[np.int32]:
    """Index of the fold of every sample: blocks, in order of time, hold equal parts of rows and of samples."""
    ends = np.cumsum([entry.rows for entry in own])
    count = sum(len(part) for part in log.segments)
    begins = np.ceil(ends * (count / ends[-1]) - 0.5).astype(np.intp)  # the first sample whose middle is beyond a block
    index = np.array([folds.index(labels[log.name, entry.block]) for entry in own], dtype=np.int32)
    return np.repeat(index, np.diff([0, *begins[:-1], count]))


def _quantiles(errors: Array) -> Array:
    """As for one more sample than there are, so that a class of few has wide intervals, shape (levels,)."""
    return np.asarray(np.quantile(errors, np.minimum(np.array(LEVELS) * (1 + 1 / len(errors)), 1.0)))


def _classes(edges: Array, speed: Array, turn: Array, band: float) -> NDArray[np.int8]:
    """Class of every sample of a joint, 0 at a reversal, from the sizes of its velocity and acceleration, shape (N,)."""
    kind = np.searchsorted(edges, speed, side="right").astype(np.int8)  # of many logs these are large
    for k, periods in reversed(list(enumerate(_TURNING))):
        kind = np.where(speed * band < periods * turn, np.minimum(kind, k), kind)
    return kind


def _classed(errors: Sequence[Array], motion: Sequence[Segment], variance: Array, band: float, blocks: int) -> HeldOutResidual:
    """Quantiles by class of speed; a class with few samples has those of all."""
    edges, tables, top = [], [], []
    moved = (columns([part.v for part in motion]), columns([part.a for part in motion]))
    for error, v, a in zip(columns(errors), *moved, strict=True):
        speed, turn = np.abs(v, out=v), np.abs(a, out=a)
        fast = float(np.percentile(speed, 95))
        steps = np.maximum.accumulate([*(x * fast for x in _REVERSAL), *(float(np.percentile(speed, x)) for x in (50, 90))])
        kind = _classes(steps, speed, turn, band)
        every = np.quantile(error, LEVELS)
        table = [_quantiles(error[kind == k]) if np.sum(kind == k) >= _FEWEST else every for k in range(len(steps) + 1)]
        edges.append(steps)
        tables.append(table)
        top.append(np.percentile(speed, 99.5))
    return HeldOutResidual(band, np.array(edges), np.array(top), np.array(tables), variance, blocks)
