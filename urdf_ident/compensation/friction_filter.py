"""Online estimation of friction's deviation from its mean: one Kalman filter per joint (Kalman 1960), and the choice of its
memory and of the joints that benefit.

The torque residual of a joint is modelled as ``dry · S(v) + viscous · u(v) + rest + noise``. The first two are deviations
of friction: they change sign with the direction of motion and decay to zero, the mean over logs, with the time constant
``memory`` of motion; their prior is the spread between logs. The rest does not depend on the direction: model errors, a
payload, contact. It is a first-order process too, with the residual's standard deviation and a time constant from the
residual's effective noise, so that correlated rows are not counted as independent. A sudden residual far above its
predicted variance is attributed almost entirely to the rest; while it stays large on some joint, the variance and time
constant of the rest are increased on all joints.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice

import numpy as np

from ..errors import ModelError
from ..friction import SATURATED
from ..linalg import Array, BoolArray, IntArray, positive
from ..parallel import each
from ..samples import ReadOnly, Segment
from ..signals.filters import lowpass
from ..signals.prepare import PreparedLog
from ..statistics.folds import standard_error

#: Approximate duration of a row [s]: the samples within it are averaged.
ROW = 0.05
#: Fraction of the residual's variance that is correlated in time.
_SLOW = 0.9
#: A residual beyond this many standard deviations is attributed to contact or load.
_CONTACT = 4.0
#: Squared residual over its usual variance: an average over :data:`_SURPRISE` above the first indicates a load or contact
#: with a time constant of at least :data:`_LOAD` seconds; single values are clipped to the second.
_LOADED, _MOST, _LOAD = 9.0, 2500.0, 1.0
#: A single such ratio above this sets the average immediately.
_JUMP = 64.0
#: Variance added to the rest by a residual attributed to contact, relative to its square.
_LOOSE = 4.0
#: Time constant of that average (the surprise) [s].
_SURPRISE = 2.0
#: Places of the variances of dry, viscous and the rest in the upper triangle of their covariance, by columns.
VARIANCES = [0, 2, 5]


@dataclass(frozen=True, eq=False)
class FilterSettings(ReadOnly):
    """Settings of the filter for n joints.

    Attributes:
        spread: Prior standard deviation of dry and viscous friction, shape (n, 2) [N·m, N·m·s/rad or N, N·s/m]; zeros where a
            joint is not adapted.
        power: Exponent of the speed in the viscous column, shape (n,): 1, or ½ for friction that grows with the square root.
        residual: Standard deviation of the residual in one row of the fit, shape (n,) [N·m or N].
        slow: The same including autocorrelation, shape (n,) [N·m or N]: the noise of equally many independent rows.
        row_rate: Rows of the fit per second [Hz].
        top: Speed above which the viscous deviation is constant, shape (n,) [rad/s or m/s].
        least: Least friction of the model at a small speed, at half of ``top`` and at ``top``, shape (n, 3) [N·m or N].
        width: Half-width of the smooth sign, shape (n,) [rad/s or m/s].
        memory: Time constant, in time of motion, with which deviations decay to the mean [s]; inf: never.
        caution: Factor on the residual's variance.
    """

    spread: Array
    power: Array
    residual: Array
    slow: Array
    row_rate: float
    top: Array
    least: Array
    width: Array
    memory: float = np.inf
    caution: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (self.memory > 0 and self.caution > 0 and self.row_rate > 0):
            raise ModelError("memory, caution and row rate of the adaptation are positive", got=(self.memory, self.caution))

    def columns(self, v: Array) -> Array:
        """Columns of the dry and viscous deviations, shape (…, n, 2); v: joint velocities, shape (…, n) [rad/s or m/s]."""
        sign = np.tanh(v / self.width)
        fast = np.minimum(np.abs(v), self.top) ** self.power
        return np.stack([sign, sign * fast], axis=-1)


class FrictionFilter:
    """The filter with its state; settings that differ in memory and caution run in parallel.

    Args:
        settings: At least one; all but ``memory`` and ``caution`` equal.
        seconds: Duration of a row [s]; for several independent robots with these settings of each, shape (robots, 1).

    Attributes:
        mean: Estimates of dry, viscous and the rest, shape (3, settings, n); of several robots (3, settings, robots, n).
        covariance: Upper triangle of their covariance by columns, shape (6, settings, n) or (6, settings, robots, n).
        surprise: Average of the squared residual over its usual variance, shape (settings, n) or (settings, robots, n).
    """

    def __init__(self, settings: Sequence[FilterSettings], seconds: float | Array) -> None:
        self.settings = first = settings[0]
        ones = (1,) * max(np.ndim(seconds), 1)  # axes of robots and joints
        memory, caution = np.array([(setting.memory, setting.caution) for setting in settings]).T.reshape(2, -1, *ones)
        slow = np.maximum(first.slow**2 - (1 - _SLOW) * first.residual**2, first.residual**2 * _SLOW)
        lasting = slow / (2 * _SLOW * positive(first.residual) ** 2 * first.row_rate)  # [s]
        self._spread = first.spread.T.reshape(2, *ones, -1) ** 2
        self._slow = caution * _SLOW * first.residual**2
        self._forget = np.exp(-seconds / memory)
        self._rest = np.exp(-seconds / np.maximum(lasting, 1e-9))
        self._loaded = np.exp(-seconds / np.maximum(lasting, _LOAD))
        self._noise = caution * (1 - _SLOW) * first.residual**2 / (first.row_rate * seconds)
        self._noise = np.maximum(self._noise, 1e-12 * np.maximum(first.residual, 1e-12) ** 2)
        self._usual = (self._slow + self._noise) * np.maximum(1.0, 1.0 / caution)
        self._gate = SATURATED * first.width  # the least speed at which friction is adapted
        self._learn = 1.0 - np.exp(-seconds / _SURPRISE)
        self._speeds = np.stack([first.width * 3, first.top / 2, first.top])[:, None] ** first.power  # (3, 1, n)
        self.reset()

    def reset(self) -> None:
        """Resets the state to the prior."""
        shape = self._noise.shape
        self.mean, self.covariance, self.surprise = np.zeros((3, *shape)), np.zeros((6, *shape)), np.ones(shape)
        self.covariance[VARIANCES[:2]], self.covariance[VARIANCES[2]] = self._spread, self._slow

    def step(self, residual: Array, v: Array, begin: Array, end: Array) -> None:
        """Updates the state with a row.

        Args:
            residual: Measured torque minus the static model's, mean over the row, shape (n,) [N·m or N].
            v: Mean velocity, shape (n,) [rad/s or m/s].
            begin, end: First and last velocity, same shape: rows in which a joint reverses are ignored for it.
        """
        self.update(*self.measured(residual, v, begin, end))

    def measured(self, residual: Array, v: Array, begin: Array, end: Array) -> tuple[Array, Array, BoolArray]:
        """Residual and columns of rows, zero where a joint rests, and the moving mask; shapes (…, n), (…, n, 2), (…, n)."""
        moving = (np.minimum(begin * np.sign(v), end * np.sign(v)) > self._gate) & np.isfinite(residual)
        return np.where(moving, residual, 0.0), self.settings.columns(np.where(moving, v, 0.0)), moving

    def update(self, residual: Array, columns: Array, moving: BoolArray) -> None:
        """Updates with one row of :meth:`measured`; entries of state and covariance are arrays over settings and joints."""
        if not moving.any():
            return
        x, P, (dry, viscous) = self.mean, self.covariance, np.ascontiguousarray(np.moveaxis(columns, -1, 0))
        noise, slow = self._noise, self._slow
        forget, decay = np.where(moving, self._forget, 1.0), self._rest
        awake = moving.any(axis=-1, keepdims=True)
        if not awake.all():  # the state of robots at rest does not change
            decay = np.where(awake, decay, 1.0)
        if self.surprise.max() > _LOADED:  # a load on one joint acts on the others too
            most = self.surprise.max(axis=-1, keepdims=True)
            loaded = most > _LOADED
            scale = np.where(loaded, most, 1.0)
            decay = np.where(loaded & (decay < 1.0), self._loaded, decay)
            noise, slow = noise * scale, slow * scale
        x[:2] *= forget
        x[2] *= decay
        square_forget = forget * forget
        P[:3] *= square_forget
        P[3:5] *= forget * decay
        P[5] *= decay * decay
        P[0] += (lost := 1.0 - square_forget) * self._spread[0]
        P[2] += lost * self._spread[1]
        P[5] += (1.0 - decay * decay) * slow
        with_friction = np.stack([dry * P[0] + viscous * P[1], dry * P[1] + viscous * P[2], dry * P[3] + viscous * P[4]])
        covariance = with_friction + P[3:]  # covariance of state and measurement
        s = dry * covariance[0] + viscous * covariance[1] + covariance[2] + noise
        unexplained = residual - (dry * x[0] + viscous * x[1])
        e = unexplained - x[2]
        usual = self._usual + dry * with_friction[0] + viscous * with_friction[1]
        square = e * e
        outlier = moving & (square > _CONTACT**2 * s)
        if outlier.any():  # attributed almost entirely to the rest
            added = np.where(outlier, _LOOSE * square, 0.0)
            P[5] += added
            covariance[2] += added
            s = s + added
        gain = covariance * (moving / s)
        x += gain * e
        P[:2] -= gain[0] * covariance[:2]
        P[2] -= gain[1] * covariance[1]
        P[3:] -= gain * covariance[2]
        ratio = np.minimum(unexplained * unexplained / usual, _MOST)
        surprise = self.surprise + self._learn * (ratio - self.surprise)
        surprise = np.where(ratio > _JUMP, np.maximum(surprise, ratio), surprise)
        self.surprise = np.where(moving, surprise, self.surprise)

    def bounded(self, deviations: Array) -> Array:
        """Scales deviations down so that the total friction stays dissipative; deviations: dry and viscous, shape (2, …, n)."""
        dry, viscous = deviations
        share = np.ones_like(dry)
        for speed, least in zip(self._speeds, self.settings.least.T, strict=True):
            change = dry + speed * viscous
            share = np.where(change < 0, np.minimum(share, least / positive(-change)), share)
        return np.asarray(np.maximum(share, 0.0) * deviations)


def replay(
    settings: Sequence[FilterSettings], logs: Sequence[tuple[Sequence[Segment], Sequence[Array]]]
) -> list[list[Iterator[Array]]]:
    """Torque added by adaptation along logs, causal from row to row; the logs are processed in parallel.

    Args:
        logs: For each log its pieces with torques, and the static model's torque on each, shape (N, n) [N·m or N].

    Returns:
        For each piece of each log an iterator over one array per setting, shape (N, n) [N·m or N].
    """
    n, rates = len(settings[0].width), [segments[0].rate for segments, _ in logs]
    factors = [samples_per_row(rate) for rate in rates]
    rows = [_rows(segments, torques, factor) for (segments, torques), factor in zip(logs, factors, strict=True)]
    count = max(block.shape[1] for block in rows)
    table = np.zeros((4, count, len(logs), n))
    table[0] = np.nan  # the state does not change after the end of a log
    for k, block in enumerate(rows):
        table[:, : block.shape[1], k] = block
    running = FrictionFilter(settings, (np.array(factors) / rates)[:, None])
    deviations = np.zeros((2, count + 1, *running.surprise.shape))  # before each row, and after the last one
    for k, row in enumerate(zip(*running.measured(*table), strict=True), 1):
        running.update(*row)
        deviations[:, k] = running.mean[:2]
    applied = running.bounded(deviations)
    torques = []
    for k, ((segments, _), factor) in enumerate(zip(logs, factors, strict=True)):
        of_log = np.ascontiguousarray(applied[:, :, :, k].swapaxes(1, 2))
        begins = np.cumsum([0, *(len(segment) // factor for segment in segments)])
        torques.append(
            [
                _added(of_log, begin + np.arange(len(segment)) // factor, settings[0].columns(segment.v))
                for begin, segment in zip(begins, segments, strict=False)
            ]
        )
    return torques


def _rows(segments: Sequence[Segment], torques: Sequence[Array], factor: int) -> Array:
    """Mean residual, and mean, first and last velocity of the rows of a log, of some samples each, shape (4, rows, n)."""
    pieces = []
    for segment, torque in zip(segments, torques, strict=True):
        whole = len(segment) // factor
        residual, v = (x[: whole * factor].reshape(whole, factor, -1) for x in (segment.total - torque, segment.v))
        pieces.append(np.stack([residual.mean(axis=1), v.mean(axis=1), v[:, 0], v[:, -1]]))
    return np.concatenate(pieces, axis=1)


def _added(deviations: Array, row: IntArray, columns: Array) -> Iterator[Array]:
    """Torque of each setting's deviations, shape (2, settings, rows, n), at samples in these rows, shape (N, n)."""
    dry, viscous = np.ascontiguousarray(columns[..., 0]), np.ascontiguousarray(columns[..., 1])
    for of_dry, of_viscous in zip(*deviations, strict=True):
        yield of_dry[row] * dry + of_viscous[row] * viscous


def samples_per_row(rate: float) -> int:
    """Number of samples that are averaged into one row; rate: samples per second [Hz]."""
    return max(1, round(ROW * rate))


#: Candidate time constants [s of motion], and candidate factors on the residual variance.
MEMORIES, CAUTIONS = (10.0, 30.0, 100.0, 300.0, np.inf), (0.3, 1.0, 3.0)
#: Maximum number of logs used for this, evenly spaced over all.
MOST_LOGS = 12
#: Approximate maximum number of samples filtered in parallel, over all logs.
_TOGETHER = 100_000
#: Settings filtered at a time: all at once would take more memory than the log.
_FILTERED = 3


@dataclass(frozen=True, eq=False)
class Adaptation(ReadOnly):
    """Adaptation with the least held-out error.

    Attributes:
        memory: Time constant of motion with which deviations return to the mean [s].
        caution: Factor on the residual's variance.
        joints: Names of the joints.
        used: Whether adaptation helps each joint.
        static_rmse, adapted_rmse: Held-out RMSE of each joint without and with it, shape (n,) [N·m or N].
    """

    memory: float
    caution: float
    joints: tuple[str, ...]
    used: tuple[bool, ...]
    static_rmse: Array
    adapted_rmse: Array


def choose_adaptation(
    plain: FilterSettings, joints: Sequence[str], logs: Sequence[PreparedLog], predicted: Sequence[Sequence[Array]], band: float
) -> Adaptation | None:
    """Runs the filter along each log from the prior, on the static model's prediction fitted without that log.

    A joint is adapted if the gain over the static model exceeds its error (:mod:`.statistics.folds`).

    Args:
        plain: The filter without memory or caution, with the spread of friction between the logs.
        predicted: Held-out prediction for each segment with torques of each log, shape (N, n) [N·m or N].
        band: Low-pass of the error [Hz].

    Returns:
        The choice; None if nothing varies.
    """
    if not plain.spread.any():
        return None
    tried = [(memory, caution) for memory in MEMORIES for caution in CAUTIONS]
    settings = [replace(plain, memory=memory, caution=caution) for memory, caution in tried]
    judged = [(log.segments, torques) for log, torques in zip(logs, predicted, strict=True)]
    judged = [judged[k * len(judged) // min(MOST_LOGS, len(judged))] for k in range(min(MOST_LOGS, len(judged)))]
    together = max(1, _TOGETHER // max(sum(map(len, parts)) for parts, _ in judged))
    groups = [judged[k : k + together] for k in range(0, len(judged), together)]
    squares = [pair for pairs in each(partial(_squares, settings, band), groups) for pair in pairs]
    static, adapted = (np.array(values) for values in zip(*squares, strict=True))  # (logs, n), (logs, tried, n)
    ratio = np.sqrt(adapted.mean(axis=0) / positive(static.mean(axis=0)))  # (tried, n)
    best = int(np.argmin(np.minimum(ratio, 1.0).mean(axis=1)))
    gain = static - adapted[:, best]
    used = gain.mean(axis=0) > standard_error(gain)
    after = np.where(used, adapted[:, best].mean(axis=0), static.mean(axis=0))
    memory, caution = tried[best]
    return Adaptation(memory, caution, tuple(joints), tuple(used.tolist()), np.sqrt(static.mean(axis=0)), np.sqrt(after))


def _squares(
    settings: Sequence[FilterSettings], band: float, logs: Sequence[tuple[Sequence[Segment], Sequence[Array]]]
) -> list[tuple[Array, Array]]:
    """Mean squared error of each log without and with adaptation, shape (n,) and (tried, n)."""
    squares = []
    for (segments, torques), adaptations in zip(logs, replay(settings, logs), strict=True):
        before, after = np.zeros(segments[0].v.shape[1]), np.zeros((len(settings), segments[0].v.shape[1]))
        for segment, torque, added in zip(segments, torques, adaptations, strict=True):
            static = lowpass(segment.total - torque, segment.rate, band)
            before += np.sum(static**2, axis=0)
            for k in range(0, len(settings), _FILTERED):
                error = static[:, None] - lowpass(np.stack([*islice(added, _FILTERED)], axis=1), segment.rate, band)
                after[k : k + _FILTERED] += np.sum(error**2, axis=0)
        samples = sum(map(len, segments))
        squares.append((before / samples, after / samples))
    return squares
