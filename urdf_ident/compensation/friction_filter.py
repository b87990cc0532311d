"""Friction's deviation from its mean, estimated while the robot moves: a Kalman filter a joint (Kalman 1960).

What the model misses of one joint's torque is taken as ``dry · S(v) + viscous · u(v) + rest + noise``. The first two are
deviations of friction: they turn with the direction of motion, and go back to zero, the mean over logs, with the time constant
``memory`` of motion; their prior is the spread between logs. The rest does not turn with the direction: what the model lacks,
a payload, contact. It is a first-order process too, as large as the residual and as slow as the residual's effective noise
says, so that rows with memory are not counted as independent. Where the residual is suddenly larger than all this allows, the
rest takes nearly all of it; while it stays large on some joint, the rest of all joints is allowed to be as large, and slow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ModelError
from ..linalg import Array
from ..samples import Segment, freeze_arrays

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


@dataclass(frozen=True, eq=False)
class FilterSettings:
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
        freeze_arrays(self)
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
        seconds: Duration of a row [s].
        robots: Robots that do not know of each other, whose joints stand one after the other in the settings.
    """

    def __init__(self, settings: Sequence[FilterSettings], seconds: float, robots: int = 1) -> None:
        first = settings[0]
        self.robots = robots
        self.settings, self.seconds = first, seconds
        n = len(first.width)
        caution = np.array([item.caution for item in settings])[:, None]
        forget = np.exp(-seconds / np.array([item.memory for item in settings]))[:, None]
        slow = np.maximum(first.slow**2 - (1 - _SLOW) * first.residual**2, first.residual**2 * _SLOW)
        lasting = slow / (2 * _SLOW * np.maximum(first.residual, 1e-300) ** 2 * first.row_rate)  # [s]
        self._variance = np.empty((len(settings), n, 3))
        self._variance[..., :2] = first.spread**2
        self._variance[..., 2] = caution * _SLOW * first.residual**2
        self._keep = np.empty((len(settings), n, 3))
        self._keep[..., :2] = forget[..., None]
        self._keep[..., 2] = np.exp(-seconds / np.maximum(lasting, 1e-9))
        self._loaded = np.exp(-seconds / np.maximum(lasting, _LOAD))
        self._rest = self._keep.copy()
        self._rest[..., :2] = 1.0
        self._noise = caution * (1 - _SLOW) * first.residual**2 / (first.row_rate * seconds)
        self._noise = np.maximum(self._noise, 1e-12 * np.maximum(first.residual, 1e-12) ** 2)
        self._usual = (self._variance[..., 2] + self._noise) * np.maximum(1.0, 1.0 / caution)
        self._gate = _MOVING * first.width
        self._learn = 1.0 - np.exp(-seconds / _SURPRISE)
        speeds = np.stack([first.width * 3, first.top / 2, first.top], axis=-1)
        self._at = np.stack([np.ones_like(speeds), speeds ** first.power[:, None]], axis=-1)  # (n, 3, 2)
        self._h = np.ones((n, 3))
        self.reset()

    def reset(self) -> None:
        """Back to the prior."""
        self.x = np.zeros_like(self._variance)
        self.P = self._variance[..., None] * np.eye(3)
        self.surprise = np.ones(self.x.shape[:2])
        self.applied = np.zeros((*self.x.shape[:2], 2))

    def step(self, residual: Array, v: Array, begin: Array, end: Array) -> None:
        """Takes up a row.

        Args:
            residual: Measured torque minus the static model's, mean over the row, shape (n,) [N·m or N].
            v: Mean velocity, shape (n,) [rad/s or m/s].
            begin, end: First and last velocity, same shape: the joint must not turn back within the row.
        """
        self._take_up(*self._seen(residual, v, begin, end))

    def _seen(self, residual: Array, v: Array, begin: Array, end: Array) -> tuple[Array, Array, NDArray[np.bool_]]:
        """Residual and columns of rows, zero where a joint is not moving, and where it is; shapes (…, n)."""
        moving = (np.minimum(begin * np.sign(v), end * np.sign(v)) > self._gate) & np.isfinite(residual)
        return np.where(moving, residual, 0.0), self.settings.columns(np.where(moving, v, 0.0)), moving

    def _take_up(self, residual: Array, columns: Array, moving: NDArray[np.bool_]) -> None:
        """One row of :meth:`_seen`."""
        if not moving.any():
            return
        keep = np.where(moving[:, None], self._keep, self._rest)
        variance, noise = self._variance, self._noise
        own = (len(moving) // self.robots,)
        if self.robots > 1:  # nothing changes in those that rest
            keep[:, ~np.repeat(moving.reshape(-1, *own).any(axis=1), *own)] = 1.0
        # what loads one joint loads the others
        most = self.surprise.reshape(len(keep), -1, *own).max(axis=-1).repeat(*own, axis=-1)
        if (most > _LOADED).any():
            scale = np.where(most > _LOADED, most, 1.0)
            keep[..., 2] = np.where((most > _LOADED) & (keep[..., 2] < 1.0), self._loaded, keep[..., 2])
            variance, noise = variance.copy(), noise * scale
            variance[..., 2] *= scale
        x = self.x * keep
        P = self.P * (keep[..., :, None] * keep[..., None, :])
        np.einsum("...kk->...k", P)[...] += (1.0 - keep * keep) * variance  # the diagonal
        h = self._h
        h[:, :2] = columns
        Ph = np.einsum("snij,nj->sni", P, h)
        friction, known = h[:, :2], Ph[..., :2] - P[..., :2, 2]
        s = np.einsum("nj,snj->sn", h, Ph) + noise
        left = residual - np.einsum("nj,snj->sn", friction, x[..., :2])
        e = left - x[..., 2]
        usual = self._usual + np.einsum("nj,snj->sn", friction, known)
        square = e * e
        wild = moving & (square > _CONTACT**2 * s)
        if wild.any():  # the rest takes it, or nearly all of it
            more = np.where(wild, _LOOSE * square, 0.0)
            P[..., 2, 2] += more
            Ph[..., 2] += more
            s = s + more
        K = Ph * (moving / s)[..., None]
        self.x = x + K * e[..., None]
        self.P = P - K[..., :, None] * Ph[..., None, :]
        ratio = np.minimum(left * left / usual, _MOST)
        heard = self.surprise + self._learn * (ratio - self.surprise)
        heard = np.where(ratio > _JUMP, np.maximum(heard, ratio), heard)
        self.surprise = np.where(moving, heard, self.surprise)
        self.bound()

    def bound(self) -> None:
        """Sets the deviations that are applied: so much of them that friction still dissipates."""
        change = np.einsum("nkj,snj->snk", self._at, self.x[..., :2])
        share = np.where(change < 0, self.settings.least / np.maximum(-change, 1e-300), 1.0).min(axis=-1)
        self.applied = np.clip(share, 0.0, 1.0)[..., None] * self.x[..., :2]


def replay(settings: Sequence[FilterSettings], logs: Sequence[tuple[Sequence[Segment], Sequence[Array]]]) -> list[list[Array]]:
    """What adaptation adds along logs of one rate, each sample from what was before its row; the logs run side by side.

    Args:
        settings: As for :class:`FrictionFilter`.
        logs: Of each log its pieces with torques, and the static model's torque on each, shape (N, n) [N·m or N].

    Returns:
        Of each log one array a piece, shape (settings, N, n) [N·m or N].

    Raises:
        LogError: A piece without torques.
    """
    rate, n = logs[0][0][0].rate, len(settings[0].width)
    factor = samples_per_row(rate)
    rows = [np.concatenate([_rows(*piece, factor) for piece in zip(*log, strict=True)], axis=1) for log in logs]
    count = max(own.shape[1] for own in rows)
    table = np.zeros((4, count, len(logs), n))
    table[0] = np.nan  # a log that has ended rests
    for k, own in enumerate(rows):
        table[:, : own.shape[1], k] = own
    running = FrictionFilter([item.repeated(len(logs)) for item in settings], factor / rate, len(logs))
    applied = np.empty((count + 1, *running.applied.shape))
    for k, row in enumerate(zip(*running._seen(*table.reshape(4, count, -1)), strict=True)):
        applied[k] = running.applied
        running._take_up(*row)
    applied[count] = running.applied
    applied = applied.reshape(count + 1, len(settings), len(logs), n, 2)
    found = []
    for k, (segments, _) in enumerate(logs):
        begins = np.cumsum([0, *(len(part) // factor for part in segments)])
        rows_of = [begin + np.arange(len(part)) // factor for begin, part in zip(begins, segments, strict=False)]
        parts = zip(rows_of, segments, strict=True)
        found.append([np.einsum("tsnj,tnj->stn", applied[row, :, k], settings[0].columns(part.v)) for row, part in parts])
    return found


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
