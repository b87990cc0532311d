"""Channels changed before logging: rows and efforts interpolated, channels with a lower rate, averaged positions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...grouping import equal_runs, runs
from ...judgements.catalogue import Id
from ...linalg import Array, IntArray, positive
from ..clock import longest_even, read_clock
from ..resolution import count_of
from .checks import smooth_speeds
from .examination import Examination

#: Number of rows per held value from which a signal has a low rate.
_HELD = 3.0
#: Deviation from a line that three samples may have, and least step between rows that is not rounding, both in steps between
#: the effort's levels.
_OFF, _COARSE = 2.5, 10.0
#: Share of rows on lines from which an effort is interpolated, and minimum rows of a line.
_MOST, _LINE = 0.6, 3
#: Relative loss of the joint's velocity by the same interpolation from which it matters: efforts contain accelerations and
#: reversing friction, which lose more.
_LOST = 0.02
#: Shortest average, in rows; least notch of its spectrum, and its least multiple of one over the root of the rows, which is its
#: error: it is the largest of hundreds of lengths. The notch of one joint alone must
#: be deeper by a factor. Longest piece of a log, in rows.
_AVERAGE, _NOTCH, _CHANCE, _SURE, _PIECE = 5, 0.4, 12.0, 1.5, 1 << 15
#: Slope of a logarithmic power spectrum halfway between that of averaged noise, -2, and of steps of velocity, -4.
_NOISE_SLOPE = -3.0
#: Fewest rows whose spectrum tells an average from chance.
_ENOUGH = 400
#: Least size of the coefficient at twice the length, which is -1/2, and of that of the upper half of the spectrum, which is -2.
_SECOND, _HIGH = 0.1, 1.0
#: Least part of the rows in which a channel changes by another step than before.
_BUSY = 0.5
#: Part of a joint's acceleration that an average may take away: half the torque error of a good result; part of the velocities'
#: power that is motion. Bandwidth at half the amplitude times the duration of the average.
_ATTENUATED, _MOTION, _HALF = 0.05, 0.999, 0.603


def drop_bridged(state: Examination) -> None:
    """Drops rows that the logger put on straight lines over a gap: there all efforts are interpolated, and no robot moved so.

    If most of the log is, efforts come at a lower rate (:func:`check_rates`), and their samples are not known.
    """
    efforts = [x for _, _, x in state.moving_efforts()]
    bridged = np.full(len(state.recording), len(efforts) > 1)
    for x in efforts:
        inside = np.zeros(len(x), dtype=bool)
        for begin, end in zip(*_lines(x), strict=True):
            inside[begin + 1 : end - 1] = True  # the ends were measured
        bridged &= inside
    if bridged.mean() < _MOST:
        state.drop(bridged, Id.ROWS_INTERPOLATED, "lie on straight lines over gaps, in all efforts alike", limit=_MOST)


def check_rates(state: Examination) -> None:
    """Warns of positions with a lower rate than those of other joints, and of efforts with a lower one than the motion needs.

    Between two samples of such a channel its value is held, or a straight line.
    """
    recording, joints = state.recording, state.robot.joints
    rate = read_clock(recording.time).rate
    held = np.array([_regular_length(equal_runs(q)[1]) for q in recording.position.T])
    usual = float(np.median(held))
    for j in np.flatnonzero((held >= _HELD) & (held >= 2 * usual)):
        steps = np.abs(np.diff(recording.position[:, j]))
        if np.median(steps[steps > 0]) < 1.5 * count_of(recording.position[:, j]):
            continue  # at a steady speed each count of the encoder lasts equally long
        words = f"the position comes at {rate / held[j]:.3g} Hz, those of other joints at {rate / usual:.3g} Hz"
        state.add(Id.POSITION_HELD, words, joint=joints[j], size=rate / held[j])

    pieces: list[Array] = []
    for joint, _, x in state.moving_efforts():
        begins, ends = _lines(x)
        rows, between = _regular_length(equal_runs(x)[1]), "each value is held until the next"
        if rows < max(_HELD, 2 * usual) and np.sum(ends - begins) > _MOST * len(x):
            rows, between = _regular_length(np.diff(begins)), "with straight lines between these samples"
        if rows < max(_HELD, 2 * usual):
            continue
        pieces = pieces or smooth_speeds(recording)[0]
        # relative loss of the joint's velocity by linear interpolation between samples some rows apart
        left = whole = 0.0
        for v in (piece[:, joints.index(joint)] for piece in pieces):
            at = np.arange(len(v))
            knots = np.arange(0.0, at[-1] + rows, rows)
            left += float(np.sum((np.interp(at, knots, np.interp(knots, at, v)) - v) ** 2))
            whole += float(np.sum(v**2))
        if left > _LOST**2 * positive(whole):
            words = f"the effort comes at {rate / rows:.3g} Hz, {between}"
            state.add(Id.EFFORT_HELD, words, joint=joint, size=rate / rows)


def _regular_length(lengths: IntArray) -> float:
    """Common length of runs; 1 if they vary, as steps due to quantisation do with the motion, or are too few."""
    usual = float(np.median(lengths)) if len(lengths) > 20 else 1.0
    return usual if np.mean(np.abs(lengths - usual) <= 1) > 0.8 else 1.0


def _lines(x: Array) -> tuple[IntArray, IntArray]:
    """First rows of straight, non-horizontal lines, and the rows after their last ones."""
    grain = float(np.diff(np.unique(x)).min())
    step = np.diff(x)
    straight = (np.abs(np.diff(step)) < _OFF * grain) & (np.abs(step[1:]) > _COARSE * grain)
    begins, ends = np.array(runs(straight), dtype=np.intp).reshape(-1, 2).T + [[0], [2]]
    long = ends - begins >= _LINE
    return begins[long], ends[long]


def check_averaged(state: Examination) -> None:
    """Warns of positions that are moving averages, if these take away a relevant part of the acceleration.

    An average over N rows has zeros at the multiples of the rate over N, also in the spectrum of the encoder's noise, where the
    logarithm of the spectrum oscillates with this period (cepstrum, Bogert et al. 1963): its N-th coefficient is -1, without an
    average 0. If the efforts are averaged alike, the dynamics hold for the averages as well.
    """
    time, effort = state.recording.time, state.recording.effort
    piece = longest_even(time, _PIECE)
    rows = _averaged_rows(state.recording.position[piece])
    if effort is not None and rows.any():
        rows[rows == _averaged_rows(effort[piece])] = 0
    if not rows.any():
        return
    pieces, rate = smooth_speeds(state.recording)
    seconds = rows / read_clock(time).rate
    lost = _taken_by_average(pieces, rate, seconds)
    for j in np.flatnonzero(lost > _ATTENUATED):
        band = _HALF / float(seconds[j])
        state.add(
            Id.POSITION_BANDWIDTH,
            f"the positions of this joint are averages over {rows[j]} rows ({1e3 * seconds[j]:.3g} ms): a bandwidth of "
            f"{band:.2g} Hz, which takes away {100 * lost[j]:.0f} % of its acceleration",
            joint=state.robot.joints[j],
            size=band,
            remedy="log positions that are not averaged or filtered",
        )


def _averaged_rows(x: Array) -> IntArray:
    """Length of the moving average of each channel in rows, shape (n,); 0 if it is none."""
    average = np.zeros(x.shape[1], dtype=np.int64)
    longest = len(x) // 8
    if len(x) < _ENOUGH:
        return average
    bent = np.diff(x, 2, axis=0)
    power = np.abs(np.fft.rfft(bent * np.hanning(len(bent))[:, None], axis=0)) ** 2
    varies = np.mean(bent != 0, axis=0) > _BUSY  # a few steps between rests interfere like an average
    spectrum = np.log(np.maximum(power[:, varies], 1e-30 * power[:, varies].max(axis=0)))
    cepstrum = np.fft.irfft(spectrum, axis=0)
    rows = _AVERAGE + cepstrum[_AVERAGE:longest].argmin(axis=0)
    at = np.arange(cepstrum.shape[1])
    # a smooth spectrum, of motion without noise, has neighbouring coefficients of the same size and no second one
    beside = (cepstrum[rows - 2, at] + cepstrum[rows + 2, at]) / 2
    notch = np.minimum(beside, 0.0) - cepstrum[rows, at]
    notch[cepstrum[2 * rows, at] > -_SECOND] = 0.0
    # equal legs have zeros as well, where their spectrum is above the noise
    high = np.arange(len(spectrum) // 2, len(spectrum))[:, None]
    waves = np.cos(2 * np.pi * high * rows / (2 * (len(spectrum) - 1)))
    notch[2 * np.mean(waves * (spectrum[high[:, 0]] - spectrum[high[:, 0]].mean(axis=0)), axis=0) > -_HIGH] = 0.0
    # zeros tell of an average only in noise: averaged white noise falls as 1/f², motion at least as fast as its steps of
    # velocity, 1/f⁴, and one that is free of noise has zeros of its own
    across = np.log(np.sin(np.pi * high / (2 * (len(spectrum) - 1))))
    level = spectrum[high[:, 0]] - 4 * across
    apart = across - across.mean()
    notch[np.sum(apart * level, axis=0) / np.sum(apart**2) < _NOISE_SLOPE] = 0.0
    least = max(_NOTCH, _CHANCE / np.sqrt(len(x)))
    alike = np.array([np.sum((rows == length) & (notch > least)) > 1 for length in rows], dtype=bool)
    average[varies] = np.where((notch > _SURE * least) | (alike & (notch > least)), rows, 0)
    return average


def _taken_by_average(pieces: Sequence[Array], rate: float, seconds: Array) -> Array:
    """Part of each joint's acceleration that averages over ``seconds``, shape (n,), take away, from averaged velocities."""
    whole, kept = np.zeros((2, len(seconds)))
    for v in pieces:
        f = np.fft.rfftfreq(len(v), 1 / rate)[:, None]
        power = np.abs(np.fft.rfft(v, axis=0)) ** 2
        moves = np.cumsum(power, axis=0) < _MOTION * power.sum(axis=0)  # beyond is noise, which accelerations amplify
        power *= f**2 * moves
        whole += power.sum(axis=0)
        kept += np.sum(power * np.sinc(f * seconds) ** 2, axis=0)
    return np.asarray(1 - np.sqrt(kept / positive(whole)))
