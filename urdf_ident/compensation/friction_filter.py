"""Friction's deviation from its mean, estimated while the robot moves: a Kalman filter a joint (Kalman 1960).

What the model misses of one joint's torque is taken as ``dry · S(v) + viscous · u(v) + rest + noise``. The first two are
deviations of friction: they turn with the direction of motion, and go back to zero, the mean over logs, with the time constant
``memory`` of motion; their prior is the spread between logs. The rest does not turn with the direction: what the model lacks,
a payload, contact. It is a first-order process too, as large as the residual and as slow as the residual's effective noise
says, so that rows with memory are not counted as independent. Where the residual is suddenly larger than all this allows, the
rest takes nearly all of it; while it stays large on some joint, the rest of all joints is allowed to be as large, and slow.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ModelError
from ..linalg import Array
from ..samples import ReadOnly, Segment

#: Seconds of one row at least: samples within it are averaged.
ROW = 0.05
#: Friction is learnt above so many widths of the smooth sign.
_MOVING = 3.0
#: Share of the residual's variance that has memory.
_SLOW = 0.9
#: A residual beyond so many standard deviations is contact, or the like.
_CONTACT = 4.0
#: Squares of the residual over its usual variance: beyond the first, mean over :data:`_SURPRISE`, there is a load or contact
#: that lasts :data:`_LOAD` seconds at least; single ones are counted up to the second.
_LOADED, _MOST, _LOAD = 9.0, 2500.0, 1.0
#: Such a square is accepted at once.
_JUMP = 64.0
#: Variance that such a residual gives to the rest, over its square.
_LOOSE = 4.0
#: Time constant of the surprise [s].
_SURPRISE = 2.0
#: Entries of the covariance of dry, viscous and the rest that are kept, those of them on the diagonal, and all nine of them.
_PAIRS = ((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2))
_VARIANCES, _FULL = [0, 2, 5], [0, 1, 3, 1, 2, 4, 3, 4, 5]


@dataclass(frozen=True, eq=False)
class FilterSettings(ReadOnly):
    """What the filter of n joints rests on.

    Attributes:
        spread: Prior standard deviation of dry and viscous friction, shape (n, 2) [N·m, N·m·s/rad or N, N·s/m]; zeros where a
            joint is not adapted.
        power: Exponent of the speed in the viscous column, shape (n,): 1, or ½ for friction like its root.
        residual: Standard deviation of what the model misses in one row of the fit, shape (n,) [N·m or N].
        slow: The same with its memory counted, shape (n,) [N·m or N]: it is the noise of so many independent rows.
        row_rate: Rows of the fit per second [Hz].
        top: Speed beyond which the viscous deviation grows no more, shape (n,) [rad/s or m/s].
        least: Least friction of the model at a small speed, at half of ``top`` and at ``top``, shape (n, 3) [N·m or N].
        width: Half-width of the smooth sign, shape (n,) [rad/s or m/s].
        memory: Time constant of motion with which deviations go back to the mean [s]; inf: never.
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

    def repeated(self, robots: int) -> FilterSettings:
        """The same for robots whose joints stand one after the other.

        Args:
            robots: How many.

        Returns:
            Settings of so many times n joints, shapes (robots n, …).
        """
        values: dict[str, Any] = {
            name: np.concatenate([value] * robots) if np.ndim(value) else value for name, value in vars(self).items()
        }
        return FilterSettings(**values)

    def columns(self, v: Array) -> Array:
        """What dry and viscous deviation multiply.

        Args:
            v: Joint velocities, shape (…, n) [rad/s or m/s].

        Returns:
            Shape (…, n, 2).
        """
        sign = np.tanh(v / self.width)
        fast = np.minimum(np.abs(v), self.top) ** self.power
        return np.stack([sign, sign * fast], axis=-1)


class FrictionFilter:
    """The filter's state; several settings that differ in memory and caution run side by side.

    Args:
        settings: At least one; all but ``memory`` and ``caution`` equal.
        seconds: Duration of a row, of all joints or each, shape (n,) [s].
        robots: Robots that do not know of each other, whose joints stand one after the other in the settings.
    """

    def __init__(self, settings: Sequence[FilterSettings], seconds: float | Array, robots: int = 1) -> None:
        first = settings[0]
        self.settings, self.robots = first, robots
        caution = np.array([item.caution for item in settings])[:, None]
        slow = np.maximum(first.slow**2 - (1 - _SLOW) * first.residual**2, first.residual**2 * _SLOW)
        lasting = slow / (2 * _SLOW * np.maximum(first.residual, 1e-300) ** 2 * first.row_rate)  # [s]
        self._spread = np.repeat(first.spread.T[:, None] ** 2, len(settings), axis=1)
        self._slow = caution * _SLOW * first.residual**2
        self._forget = np.exp(-seconds / np.array([item.memory for item in settings])[:, None])
        self._rest = np.exp(-seconds / np.maximum(lasting, 1e-9))
        self._loaded = np.exp(-seconds / np.maximum(lasting, _LOAD))
        self._noise = caution * (1 - _SLOW) * first.residual**2 / (first.row_rate * seconds)
        self._noise = np.maximum(self._noise, 1e-12 * np.maximum(first.residual, 1e-12) ** 2)
        self._usual = (self._slow + self._noise) * np.maximum(1.0, 1.0 / caution)
        self._gate = _MOVING * first.width
        self._learn = 1.0 - np.exp(-seconds / _SURPRISE)
        self._speeds = np.stack([first.width * 3, first.top / 2, first.top])[:, None] ** first.power  # (3, 1, n)
        self.reset()

    def reset(self) -> None:
        """Back to the prior."""
        shape = self._slow.shape
        self._mean, self._cov = np.zeros((3, *shape)), np.zeros((6, *shape))
        self._cov[_VARIANCES] = *self._spread, self._slow
        self.surprise = np.ones(shape)
        self.bound()

    @property
    def x(self) -> Array:
        """Dry, viscous and the rest, shape (settings, n, 3)."""
        return np.stack(list(self._mean), axis=-1)

    @property
    def P(self) -> Array:
        """Their covariance, shape (settings, n, 3, 3)."""
        return np.stack(list(self._cov[_FULL]), axis=-1).reshape(*self.surprise.shape, 3, 3)

    def restore(self, x: Array, P: Array, surprise: Array) -> None:
        """Goes on from a state.

        Args:
            x, P: As of :attr:`x` and :attr:`P`.
            surprise: Shape (settings, n).
        """
        self._mean, self.surprise = np.stack([x[..., k] for k in range(3)]), surprise
        self._cov = np.stack([P[..., i, j] for i, j in _PAIRS])
        self.bound()

    def step(self, residual: Array, v: Array, begin: Array, end: Array) -> None:
        """Takes up a row.

        Args:
            residual: Measured torque minus the static model's, mean over the row, shape (n,) [N·m or N].
            v: Mean velocity, shape (n,) [rad/s or m/s].
            begin, end: First and last velocity, same shape: the joint must not turn back within the row.
        """
        self._take_up(*self._seen(residual, v, begin, end))
        self.bound()

    def _seen(self, residual: Array, v: Array, begin: Array, end: Array) -> tuple[Array, Array, NDArray[np.bool_]]:
        """Residual and columns of rows, zero where a joint is not moving, and where it is; shapes (…, n), (…, n, 2), (…, n)."""
        moving = (np.minimum(begin * np.sign(v), end * np.sign(v)) > self._gate) & np.isfinite(residual)
        return np.where(moving, residual, 0.0), self.settings.columns(np.where(moving, v, 0.0)), moving

    def _take_up(self, residual: Array, columns: Array, moving: NDArray[np.bool_]) -> None:
        """One row of :meth:`_seen`; state and covariance entry by entry, each an array over settings and joints."""
        if not moving.any():
            return
        x, P, (dry, viscous) = self._mean, self._cov, np.ascontiguousarray(columns.T)
        noise, slow = self._noise, self._slow
        forget, rest = np.where(moving, self._forget, 1.0), self._rest
        joints = len(moving) // self.robots
        awake = moving.reshape(-1, joints).any(axis=1)
        if not awake.all():  # nothing changes in robots that rest
            rest = np.where(np.repeat(awake, joints), rest, 1.0)
        if self.surprise.max() > _LOADED:  # what loads one joint loads the others
            most = self.surprise.reshape(len(forget), -1, joints).max(axis=-1).repeat(joints, axis=-1)
            loaded = most > _LOADED
            scale = np.where(loaded, most, 1.0)
            rest = np.where(loaded & (rest < 1.0), self._loaded, rest)
            noise, slow = noise * scale, slow * scale
        x[:2] *= forget
        x[2] *= rest
        kept = forget * forget
        P[:3] *= kept
        P[3:5] *= forget * rest
        P[5] *= rest * rest
        P[0] += (lost := 1.0 - kept) * self._spread[0]
        P[2] += lost * self._spread[1]
        P[5] += (1.0 - rest * rest) * slow
        with_friction = np.stack([dry * P[0] + viscous * P[1], dry * P[1] + viscous * P[2], dry * P[3] + viscous * P[4]])
        seen = with_friction + P[3:]  # covariance of the state and what is measured
        s = dry * seen[0] + viscous * seen[1] + seen[2] + noise
        left = residual - (dry * x[0] + viscous * x[1])
        e = left - x[2]
        usual = self._usual + dry * with_friction[0] + viscous * with_friction[1]
        square = e * e
        wild = moving & (square > _CONTACT**2 * s)
        if wild.any():  # the rest takes it, or nearly all of it
            more = np.where(wild, _LOOSE * square, 0.0)
            P[5] += more
            seen[2] += more
            s = s + more
        gain = seen * (moving / s)
        x += gain * e
        P[:2] -= gain[0] * seen[:2]
        P[2] -= gain[1] * seen[1]
        P[3:] -= gain * seen[2]
        ratio = np.minimum(left * left / usual, _MOST)
        heard = self.surprise + self._learn * (ratio - self.surprise)
        heard = np.where(ratio > _JUMP, np.maximum(heard, ratio), heard)
        self.surprise = np.where(moving, heard, self.surprise)

    def bound(self) -> None:
        """Sets the deviations that are applied, shape (settings, n, 2)."""
        self.applied = np.stack(list(self.bounded(self._mean[:2])), axis=-1)

    def bounded(self, deviations: Array) -> Array:
        """So much of deviations that friction still dissipates.

        Args:
            deviations: Dry and viscous, shape (2, …, n).

        Returns:
            The same shape.
        """
        dry, viscous = deviations
        share = np.ones_like(dry)
        for speed, least in zip(self._speeds, self.settings.least.T, strict=True):
            change = dry + speed * viscous
            share = np.where(change < 0, np.minimum(share, least / np.maximum(-change, 1e-300)), share)
        return np.asarray(np.maximum(share, 0.0) * deviations)


def replay(
    settings: Sequence[FilterSettings], logs: Sequence[tuple[Sequence[Segment], Sequence[Array]]]
) -> list[list[Iterator[Array]]]:
    """What adaptation adds along logs, each sample from what was before its row; the logs run side by side.

    Args:
        settings: As for :class:`FrictionFilter`.
        logs: Of each log its pieces with torques, and the static model's torque on each, shape (N, n) [N·m or N].

    Returns:
        Of each piece of each log one array a setting, shape (N, n) [N·m or N], made when it is asked for.

    Raises:
        LogError: A piece without torques.
    """
    n, rates = len(settings[0].width), [segments[0].rate for segments, _ in logs]
    factors = [samples_per_row(rate) for rate in rates]
    rows = [
        np.concatenate([_rows(*piece, factor) for piece in zip(*log, strict=True)], axis=1)
        for log, factor in zip(logs, factors, strict=True)
    ]
    count = max(own.shape[1] for own in rows)
    table = np.zeros((4, count, len(logs), n))
    table[0] = np.nan  # a log that has ended rests
    for k, own in enumerate(rows):
        table[:, : own.shape[1], k] = own
    seconds = np.repeat(np.array(factors) / rates, n)
    running = FrictionFilter([item.repeated(len(logs)) for item in settings], seconds, len(logs))
    deviations = np.zeros((2, count + 1, *running.surprise.shape))
    for k, row in enumerate(zip(*running._seen(*table.reshape(4, count, -1)), strict=True)):
        running._take_up(*row)
        deviations[:, k + 1] = running._mean[:2]
    applied = running.bounded(deviations).reshape(2, count + 1, len(settings), len(logs), n)
    found = []
    for k, ((segments, _), factor) in enumerate(zip(logs, factors, strict=True)):
        own = np.ascontiguousarray(applied[:, :, :, k].swapaxes(1, 2))
        begins = np.cumsum([0, *(len(part) // factor for part in segments)])
        rows_of = [begin + np.arange(len(part)) // factor for begin, part in zip(begins, segments, strict=False)]
        parts = zip(rows_of, segments, strict=True)
        found.append([_added(own, row, settings[0].columns(part.v)) for row, part in parts])
    return found


def _added(applied: Array, row: NDArray[np.intp], columns: Array) -> Iterator[Array]:
    """Torque of the deviations of each setting, shape (2, settings, rows, n), on samples of these rows, shape (N, n)."""
    dry, viscous = np.ascontiguousarray(columns[..., 0]), np.ascontiguousarray(columns[..., 1])
    for of_dry, of_viscous in zip(*applied, strict=True):
        yield of_dry[row] * dry + of_viscous[row] * viscous


def _rows(part: Segment, torque: Array, factor: int) -> Array:
    """Mean residual, mean, first and last velocity of the rows of a piece, shape (4, rows, n)."""
    count, n = len(part) // factor, part.v.shape[1]
    residual, v = ((x[: count * factor]).reshape(count, factor, n) for x in (part.total - torque, part.v))
    return np.stack([residual.mean(axis=1), v.mean(axis=1), v[:, 0], v[:, -1]])


def samples_per_row(rate: float) -> int:
    """Samples that are averaged into one row.

    Args:
        rate: Samples per second [Hz].

    Returns:
        At least 1.
    """
    return max(1, round(ROW * rate))
