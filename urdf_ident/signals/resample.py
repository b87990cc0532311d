"""Resampling from a non-uniform clock to a uniform grid."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ..errors import LogError
from ..files.sizes import MOST_SAMPLES
from ..linalg import Array
from ..logs.recording import Recording
from .clock import Clock, bounds, read_clock
from .filters import LONG, ahead

#: Knots kept around a piece of a spline; the influence of those beyond is a factor of 1e-17.
KNOTS = 30


@dataclass(frozen=True)
class UniformPiece:
    """A piece of a log between gaps on a uniform grid, starting at ``start`` [s]; arrays of shape (N, n) in SI units."""

    start: float
    q: Array
    v: Array | None
    tau: Array | None
    qm: Array | None
    external: Array | None = None


@lru_cache(maxsize=1)  # several checks of a log use it in turn
def even_pieces(recording: Recording) -> tuple[list[UniformPiece], Clock]:
    """Resamples a log to a uniform grid, split at its gaps.

    Args:
        recording: All rows finite, time strictly increasing.

    Returns:
        The pieces of ten samples or more, and the clock that gives their rate.

    Raises:
        LogError: There are fewer than ten samples or missing values, or time does not increase.
    """
    time = recording.time
    if len(time) < 10 or not (np.diff(time) > 0).all():
        raise LogError(
            "the log has no usable clock",
            where=recording.name,
            got=f"{len(time)} samples",
            expected="ten or more samples with increasing time",
            remedy="run the quality check first",
        )
    holes = [name for name, array in recording.signals() if not np.isfinite(array).all()]
    if holes:
        raise LogError(f"values of {', '.join(holes)} are missing", where=recording.name, remedy="run the quality check first")
    clock = read_clock(time)
    pieces = []
    for begin, end in bounds(len(time), clock.gaps):
        apart = np.count_nonzero(np.diff(time[begin:end]) > 0.2 / clock.rate)
        if end - begin >= 10 and apart >= 3:  # the stamps may be nearly equal
            pieces.append(_resample(recording.take(slice(begin, end)), clock.rate, clock.even))
    if not pieces:
        raise LogError("the log is all gaps", where=recording.name, got=f"{len(clock.gaps)} pauses", remedy="record it again")
    return pieces, clock


def _resample(part: Recording, rate: float, even: bool) -> UniformPiece:
    """Interpolates positions and velocities cubically, efforts linearly: they are noisy and must not overshoot."""
    if even:
        return UniformPiece(
            float(part.time[0]), part.position, part.velocity, part.effort, part.motor_position, part.external_torque
        )
    from scipy.interpolate import CubicSpline

    time = part.time
    apart = np.concatenate([[True], np.diff(time) > 0.2 / rate])  # a spline through nearly equal stamps would oscillate
    if not (time[-1] - time[0]) * rate < min(MOST_SAMPLES, 100.0 * len(time) + 1e6):  # one stamp far from all others
        worst = int(np.argmax(np.diff(time)))
        raise LogError(
            "the clock jumps too far to be made even",
            where=f"{part.name}, row {worst + 1}",
            got=f"{time[worst + 1] - time[worst]:.3g} s between two rows",
            expected=f"about {1 / rate:.3g} s",
            remedy="cut the log there, or correct the time stamp",
        )
    grid, knots = np.arange(time[0], time[-1], 1 / rate), np.flatnonzero(apart)

    def cubic(x: Array) -> Array:
        out = np.empty((len(grid), x.shape[1]))
        for begin in range(0, len(grid), LONG):  # distant knots have no influence
            some = grid[begin : begin + LONG]
            first, last = np.searchsorted(time[knots], (some[0], some[-1])) + (-KNOTS, KNOTS)
            near = knots[max(0, first) : last]
            out[begin : begin + LONG] = CubicSpline(time[near], x[near])(some)
        return out

    def linear(x: Array) -> Array:
        out = np.empty((len(grid), x.shape[1]))
        for j, column in enumerate(x.T):
            out[:, j] = np.interp(grid, time, column)
        return out

    velocity, motor = (None if x is None else cubic(x) for x in (part.velocity, part.motor_position))
    effort, external = (None if x is None else linear(x) for x in (part.effort, part.external_torque))
    return UniformPiece(float(time[0]), cubic(part.position), velocity, effort, motor, external)


def advanced(piece: UniformPiece, rate: float, delay: float, name: str) -> UniformPiece:
    """Advances the efforts of a piece by ``delay`` and removes the rows without efforts.

    Args:
        rate: Samples per second [Hz].
        delay: Lag of the efforts behind the positions [s]; negative if they lead.

    Returns:
        The piece, shorter by the delay.

    Raises:
        LogError: The piece is shorter than the delay.
    """
    if piece.tau is None:
        return piece
    late = math.ceil(abs(delay) * rate)
    if len(piece.q) < late + 10:
        raise LogError("the log is shorter than the delay of its efforts", where=name, got=f"{len(piece.q) / rate:.3g} s")
    kept = slice(0, len(piece.q) - late) if delay > 0 else slice(late, None)
    tau = ahead(piece.tau, delay * rate)[kept]
    start = piece.start + (late / rate if delay < 0 else 0.0)
    v, qm, external = (None if x is None else x[kept] for x in (piece.v, piece.qm, piece.external))
    return UniformPiece(start, piece.q[kept], v, tau, qm, external)
