"""Conditioning of a repaired log: continuous pieces of filtered motion at a constant rate.

The steps are: resampling to a uniform grid, zero-phase low-pass of the positions, differentiation, and removal of
standstill. Efforts are resampled to the same grid but not filtered here; they are filtered later together with the
regressor, so that both sides of the equations are filtered alike.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from ..errors import LogError
from ..linalg import Array, positive
from ..logs.recording import Recording
from ..logs.refusals import each_usable
from ..model.robot import Robot
from ..samples import Segment, columns, fast_speed, moving
from ..units import percent
from .clock import GAP_PERIODS, GAP_SECONDS, Clock, UniformPiece, advanced, even_pieces
from .config import FEWEST_PERIODS, SignalConfig
from .filters import HALF_WIDTH, HIGHEST, CutoffChoice, attenuation, differentiate, estimate_cutoff, lowpass, prediction_cutoff
from .periods import LIKENESS, SAID, Averaged, Repetition, average, find_repetition
from .resolution import counts_of
from .velocity import match_velocity

#: Ratio of the row rate to the cut-off. 2.5 would suffice for the filtered motion, but the friction torque at reversals has
#: more bandwidth, and information removed by decimation is lost.
ROWS_PER_CUTOFF = 5.0
#: Minimum row rate [Hz]: friction changes sign just as fast at reversals of a slow motion.
FEWEST_ROWS = 40.0
#: Share of white noise in the variance of a position above which its joint rests; a motion of a sixth of the rate has it.
_MOSTLY_WHITE = 0.5
#: Rates of one device's logs, as recovered from their stamps, differ by less: they have the same number of samples per row.
_CLOCKS = 1e-3
#: A joint is at rest if it is slower than this fraction of the rest speed, or by far the slowest (:func:`.samples.moving`), and
#: its travel is below this [rad]; for a prismatic joint a fifth of both values applies. A held joint creeps by some mrad under
#: changing loads, which is no motion from which friction could be known.
STILL_SPEED, STILL_TRAVEL = 0.25, 1e-2
#: Short motions are left out only if no joint loses more than this share of its travel with them.
MOST_LOST = 0.1


@dataclass(frozen=True)
class Conditioned:
    """A conditioned log.

    Attributes:
        segments: Pieces of motion, each continuous and at ``rate``.
        rate: Samples per second [Hz].
        cutoff: Low-pass of positions [Hz].
        decimate_rate: Rate of the rows [Hz].
        factor: Samples per row: ``decimate_rate = rate / factor``.
        row_cutoff: Low-pass of the rows before the decimation [Hz].
        velocity_source: ``"logged"`` or ``"differentiated"``.
        why: One sentence per choice: ``rate``, ``cutoff``, ``decimate``, ``velocity``, ``rest``; ``periodic`` if the
            motion repeats.
        averaged: Statistics of the averaged periods; None if no periods were averaged.
        lost: Part of each joint's acceleration that the low-pass of the positions takes away (:func:`.attenuation`), shape
            (n,); None with averaged periods, whose harmonics replace the low-pass.
    """

    segments: tuple[Segment, ...]
    rate: float
    cutoff: float
    decimate_rate: float
    factor: int
    row_cutoff: float
    velocity_source: str
    why: dict[str, str]
    averaged: Averaged | None = None
    lost: Array | None = None

    @property
    def band(self) -> float:
        """Highest frequency of the motion [Hz]: the low-pass of the positions, or the last harmonic of averaged periods."""
        return self.cutoff if self.averaged is None else self.averaged.harmonics / self.averaged.seconds


def condition(recording: Recording, robot: Robot, config: SignalConfig | None = None) -> Conditioned:
    """Conditions one log.

    Args:
        recording: A repaired log (see :mod:`quality`) on the joint side: positions [rad or m], efforts in joint
            torque [N·m or N], motor positions after the gear.
        config: Settings; all automatic by default.

    Raises:
        LogError: The robot does not move, or not long enough.
    """
    config = config or SignalConfig()
    pieces, clock = _pieces(recording, config)
    rate = clock.rate
    choice, why_cutoff = _cutoff(pieces, rate, config, recording)
    source, why_velocity = _velocity_source(recording, pieces, rate, choice, config)
    cutoff, lost = choice.cutoff, None
    factor, row_cutoff, why_rows = _rows(rate, cutoff, config)
    how = "as logged" if clock.even else f"resampled from a clock that varies by {percent(100 * clock.jitter)} % of a period"
    if len(clock.gaps):
        how += f"; split at {len(clock.gaps)} pause(s) longer than {max(GAP_PERIODS * clock.period, GAP_SECONDS):.3g} s"
    why = {"rate": f"{rate:.5g} Hz, {how}", "cutoff": why_cutoff, "decimate": why_rows, "velocity": why_velocity}
    repetition, averaged = _repetition(pieces, config, recording.name), None
    if repetition is None:
        motion = [_derivatives(piece, rate, cutoff, config.order, source, recording.name) for piece in pieces]
        motion = hold_resting_joints(motion, robot, config)
        segments, why["rest"] = cut_rest(motion, pieces, rate, cutoff, config, recording.name)
        raw = [piece.q for piece in even_pieces(recording)[0]]
        given = config.cutoff != "auto" and "cutoff" not in config.chosen
        end = estimate_cutoff(raw, rate, steps=counts_of(recording.position)).motion_end if given else 0.0
        lost = attenuation(raw, rate, cutoff, config.order, end)
    else:
        around = max(1, math.ceil(HALF_WIDTH * factor / round(repetition.length)))
        periods, averaged = average(pieces[0], rate, repetition, recording.name, cutoff, around)
        (periods,) = hold_resting_joints([periods], robot, config)
        why["periodic"] = f"averaged, {averaged.describe()}"
        segments, why["rest"] = _one_period(periods, around, factor, config)
        why["velocity"] = "exact derivatives of the harmonics, which replace the low-pass filtered positions"
    return Conditioned(tuple(segments), rate, cutoff, rate / factor, factor, row_cutoff, source, why, averaged, lost)


def _pieces(recording: Recording, config: SignalConfig) -> tuple[list[UniformPiece], Clock]:
    """Pieces of a log at a constant rate, their efforts advanced by a known delay."""
    pieces, clock = even_pieces(recording)
    if config.delay != "auto" and config.delay:
        pieces = [advanced(piece, clock.rate, float(config.delay), recording.name) for piece in pieces]
    return pieces, clock


def _rows(rate: float, cutoff: float, config: SignalConfig) -> tuple[int, float, str]:
    """Samples per row, low-pass of the rows before the decimation [Hz], and the reason."""
    wanted = _row_rate(cutoff) if config.decimate == "auto" else float(config.decimate)
    factor = max(1, int((1 + _CLOCKS) * rate / wanted))
    row_rate = rate / factor
    row_cutoff = 0.4 * row_rate
    why = f"every sample is an equation ({row_rate:.4g} Hz)"
    if factor > 1:
        why = f"one equation per {factor} samples ({row_rate:.4g} Hz) after a low-pass at {row_cutoff:.3g} Hz"
    automatic = config.decimate == "auto" or "decimate" in config.chosen
    reason = (
        f"{ROWS_PER_CUTOFF:g} times the cut-off or {FEWEST_ROWS:g} Hz, as friction reverses faster than the filtered motion"
    )
    return factor, row_cutoff, f"{why}: {reason if automatic else 'as configured'}"


def _one_period(periods: Segment, around: int, factor: int, config: SignalConfig) -> tuple[list[Segment], str]:
    """The middle one of equal periods, without long standstill, with the margins that the filters need; what was cut."""
    samples = len(periods) // (2 * around + 1)
    ranges = motion_ranges(periods.v, rest_speeds([periods.v], config), config, periods.rate)
    inside = [(begin, end) for begin, end in ranges if around * samples <= begin < (around + 1) * samples]
    if not inside:  # rows for exactly one period
        half = HALF_WIDTH * factor if factor > 1 else 0
        begin = around * samples - half
        whole = periods.slice(begin, begin + (round(samples / factor) - 1) * factor + 2 * half + 1)
        return [whole], "none in a whole period"
    longest = max(end - begin for begin, end in inside)
    kept = [(begin, end) for begin, end in inside if end - begin >= min(config.shortest * periods.rate, 0.5 * longest)]
    used = sum(end - begin for begin, end in kept) / periods.rate
    why = (
        f"{used:.4g} s of motion in {len(kept)} piece(s) of a period; standstill longer than {config.rest_time:g} s is left out"
    )
    return [periods.slice(begin, end) for begin, end in kept], why


def behind(log: Conditioned, recording: Recording, robot: Robot, config: SignalConfig, cutoff: float) -> tuple[Segment, ...]:
    """Returns the same pieces of motion behind another low-pass of the positions.

    Args:
        log: The conditioned log; its periods are not averaged.
        recording: The log as it was given to :func:`condition`.
        cutoff: The other low-pass [Hz].
    """
    pieces, clock = _pieces(recording, config)
    whole = [_derivatives(piece, clock.rate, cutoff, config.order, log.velocity_source, recording.name) for piece in pieces]
    whole = hold_resting_joints(whole, robot, config)
    starts = np.array([piece.start for piece in whole]) - 0.5 / clock.rate
    motion = []
    for segment in log.segments:
        piece = whole[int(np.searchsorted(starts, segment.start)) - 1]
        begin = round((segment.start - piece.start) * clock.rate)
        motion.append(replace(piece.slice(begin, begin + len(segment)), weights=segment.weights))
    return tuple(motion)


def _repetition(pieces: list[UniformPiece], config: SignalConfig, name: str) -> Repetition | None:
    """The periods to average, if any."""
    if config.periodic == "off":
        return None
    asked = config.periodic == "on"
    if pieces[0].qm is not None:  # spring deflections are small and have higher harmonics than the motion
        if asked:
            raise LogError(
                "a log with motor positions is not averaged: its deflections are too small for that",
                where=name,
                got="signals.periodic: on",
                expected="auto or off",
            )
        return None
    demand = (2, SAID) if asked else (FEWEST_PERIODS, LIKENESS)
    repetition = find_repetition(pieces[0].q, *demand) if len(pieces) == 1 else None
    if asked and repetition is None:
        raise LogError(
            "the motion does not repeat: there are no whole periods to average",
            where=name,
            got="no two equal periods in a row" if len(pieces) == 1 else f"{len(pieces)} pieces between pauses",
            expected="two or more whole periods",
            remedy="set signals.periodic: auto, or record several periods",
        )
    return repetition


def resolve(recordings: Sequence[Recording], config: SignalConfig | None = None) -> SignalConfig:
    """Resolves ``auto`` settings to common values for several logs (medians over logs), so that their rows can be merged.

    Args:
        recordings: Repaired logs on the joint side.
        config: Settings; those that are not ``auto`` are kept.

    Returns:
        A configuration with numbers for ``cutoff`` and ``decimate`` and a definite ``velocity``.

    Raises:
        LogError: No log is given, or the robot does not move in one.
    """
    config = config or SignalConfig()
    if not recordings:
        raise LogError("no log to condition", expected="one or more recordings")
    choices_of_logs = each_usable(partial(_choices, config=config), recordings)
    choices, sources = [cutoff for cutoff, _ in choices_of_logs], [source for _, source in choices_of_logs]
    wishes = [choice.cutoff for choice, _ in choices]
    cutoff = float(np.median(wishes))
    reason = choices[0][1].split(", ", 1)[1]
    if config.cutoff == "auto" and len(recordings) > 1:
        reason = f"median over {len(wishes)} logs ({min(wishes):.3g} to {max(wishes):.3g} Hz)"
    decimate = _row_rate(cutoff) if config.decimate == "auto" else config.decimate
    derived = next((k for k, (source, _) in enumerate(sources) if source != "logged"), None)
    velocity, words = sources[derived or 0]
    if len(recordings) > 1 and derived is not None:
        words = f"{words} ({recordings[derived].name}), so in all logs"
    chosen = tuple(name for name in ("cutoff", "decimate", "velocity") if getattr(config, name) == "auto")
    return replace(
        config, cutoff=cutoff, decimate=decimate, velocity=velocity, reason=reason, velocity_reason=words, chosen=chosen
    )


def _choices(recording: Recording, config: SignalConfig) -> tuple[tuple[CutoffChoice, str], tuple[str, str]]:
    """Cut-off and source of velocities chosen for one log, each with its reason."""
    pieces, clock = even_pieces(recording)
    cutoff = _cutoff(pieces, clock.rate, config, recording)
    return cutoff, _velocity_source(recording, pieces, clock.rate, cutoff[0], config)


def _row_rate(cutoff: float) -> float:
    """Row rate for a cut-off of the positions [Hz]."""
    return max(ROWS_PER_CUTOFF * cutoff, FEWEST_ROWS)


def _cutoff(pieces: list[UniformPiece], rate: float, config: SignalConfig, recording: Recording) -> tuple[CutoffChoice, str]:
    if config.cutoff != "auto":
        cutoff = float(config.cutoff)
        if "cutoff" not in config.chosen and cutoff >= 0.5 * rate:
            raise LogError(
                "signals.cutoff is above what the log's rate can show",
                where=recording.name,
                got=f"{cutoff:g} Hz",
                expected=f"below {0.5 * rate:.4g} Hz, half the rate",
                remedy="leave it out: `signals: {cutoff: auto}` finds it",
            )
        return CutoffChoice(cutoff, cutoff, config.reason), f"{cutoff:.4g} Hz, {config.reason}"
    choice = _cutoff_of_spectrum([piece.q for piece in pieces], rate, config, recording)
    if config.scale != 1.0:
        why = f"{config.scale:.3g} times that of the spectrum, as held-out torque errors chose"
        choice = replace(choice, cutoff=prediction_cutoff(choice.cutoff, config.scale, rate), why=why)
    return choice, f"{choice.cutoff:.4g} Hz, Butterworth of order {config.order} forwards and backwards: {choice.why}"


def _cutoff_of_spectrum(positions: list[Array], rate: float, config: SignalConfig, recording: Recording) -> CutoffChoice:
    """Cut-off that the spectra of the moving joints ask for."""
    first = min(10.0, HIGHEST * rate)
    moving, longest = [], 0
    for q in positions:
        speed = differentiate(lowpass(q, rate, first), rate)
        moves = np.zeros(len(speed), dtype=bool)
        for begin, end in motion_ranges(speed, rest_speeds([speed], config), config, rate):
            moves[begin:end] = True
            longest = max(longest, end - begin)
        moving.append(moves)
    if longest < max(32, 0.2 * rate):
        raise no_motion(positions, rate, config, recording.name)
    moved = [q[moves] for q, moves in zip(positions, moving, strict=True) if moves.any()]
    travel = np.max([np.ptp(q, axis=0) for q in moved], axis=0)
    # half the mean square successive difference is the white noise in the variance (von Neumann 1941)
    white = np.min([0.5 * np.mean(np.diff(q, axis=0) ** 2, axis=0) / positive(q.var(axis=0)) for q in moved], axis=0)
    movers = (travel > 1e-3 * travel.max()) & (white < _MOSTLY_WHITE)
    movers = movers if movers.any() else np.ones_like(movers)
    return estimate_cutoff([q[:, movers] for q in positions], rate, moving, counts_of(recording.position)[movers])


def _velocity_source(
    recording: Recording, pieces: list[UniformPiece], rate: float, choice: CutoffChoice, config: SignalConfig
) -> tuple[str, str]:
    if config.velocity == "logged" and recording.velocity is None:
        raise LogError("the log has no velocities", where=recording.name, remedy="use `signals: {velocity: auto}`")
    if config.velocity != "auto":
        return config.velocity, f"{config.velocity}, {config.velocity_reason}"
    if recording.velocity is None:
        return "differentiated", "no velocities in the log"
    piece = max(pieces, key=lambda piece: len(piece.q))
    if piece.v is None or len(piece.q) < 64:
        return "differentiated", "too few samples to judge the logged velocity"
    match = match_velocity(piece.q, piece.v, rate, choice.cutoff)
    better = match.agrees and match.lag_error < 0.02 and match.noise_ratio < 0.25
    return "logged" if better else "differentiated", match.words


def _derivatives(piece: UniformPiece, rate: float, cutoff: float, order: int, source: str, name: str) -> Segment:
    q = lowpass(piece.q, rate, cutoff, order)
    v = lowpass(piece.v, rate, cutoff, order) if source == "logged" and piece.v is not None else differentiate(q, rate)
    qm = vm = am = None
    if piece.qm is not None:
        qm = lowpass(piece.qm, rate, cutoff, order)
        vm = differentiate(qm, rate)
        am = differentiate(vm, rate)
    return Segment(name, piece.start, rate, q, v, differentiate(v, rate), piece.tau, qm, vm, am, external=piece.external)


def hold_resting_joints(segments: list[Segment], robot: Robot, config: SignalConfig) -> list[Segment]:
    """Sets the motion of joints that are at rest throughout the log to exactly zero.

    Otherwise encoder noise and rounding would form their friction and rotor-inertia columns, with estimates of 1e6 N·m and
    more. Logs with motor positions are unchanged, to keep small spring deflections.
    """
    speed = np.array([fast_speed(v) for v in columns([segment.v for segment in segments])])
    share = np.where(robot.prismatic, 0.2, 1.0)
    slow = (speed < share * STILL_SPEED * config.rest_speed) | ~moving(speed, robot.prismatic)
    if not slow.any() or segments[0].qm is not None:
        return segments
    travel = np.max([np.ptp(np.quantile(segment.q, [0.005, 0.995], axis=0), axis=0) for segment in segments], axis=0)
    still = slow & (travel < share * STILL_TRAVEL)
    if not still.any() or still.all():
        return segments
    return [
        replace(
            segment,
            q=np.where(still, segment.q.mean(axis=0), segment.q),
            v=np.where(still, 0.0, segment.v),
            a=np.where(still, 0.0, segment.a),
        )
        for segment in segments
    ]


def cut_rest(
    whole: list[Segment], pieces: list[UniformPiece], rate: float, cutoff: float, config: SignalConfig, name: str
) -> tuple[list[Segment], str]:
    """Returns the motions between standstills, without the samples at the ends of pieces that the filter's transient affects.

    Args:
        pieces: The same before conditioning.
        rate: Samples per second [Hz].
        cutoff: Low-pass of the positions [Hz].
        config: Rest speed, rest time, and shortest piece.

    Returns:
        The motions, and a sentence on what was cut.

    Raises:
        LogError: The robot does not move.
    """
    thresholds = rest_speeds([segment.v for segment in whole], config)
    edge = math.ceil(2 * rate / cutoff)  # beyond it the acceleration error is below 0.2 % of the maximum
    motions: list[Segment] = []
    for segment in whole:
        for begin, end in motion_ranges(segment.v, thresholds, config, rate):
            begin, end = max(begin, min(edge, len(segment) // 10)), min(end, len(segment) - min(edge, len(segment) // 10))
            if end - begin >= 10:
                motions.append(segment.slice(begin, end))
    # Short motions are left out (a jog before the excitation) unless they are a relevant part of what some joint has done, as
    # where joints are jogged one after the other: then longer than the low-pass's response to a disturbance is enough.
    least = min(config.shortest * rate, 0.5 * max((len(segment) for segment in motions), default=0))
    travel = np.array([np.abs(segment.v).mean(axis=0) * len(segment) for segment in motions])
    short = np.array([len(segment) < least for segment in motions], dtype=bool)
    lost = bool(len(motions)) and bool((travel[short].sum(axis=0) > MOST_LOST * travel.sum(axis=0)).any())
    least = min(least, edge) if lost else least
    kept = [segment for segment in motions if len(segment) >= least]
    if not kept:
        raise no_motion([piece.q for piece in pieces], rate, config, name)
    total = sum(len(piece.q) for piece in pieces) / rate
    used = sum(len(segment) for segment in kept) / rate
    why = f"{used:.4g} s of motion in {len(kept)} piece(s) out of {total:.4g} s; "
    why += f"standstill longer than {config.rest_time:g} s is left out"
    if len(motions) > len(kept):
        why += f", and {len(motions) - len(kept)} motion(s) shorter than {least / rate:.2g} s"
    return kept, why


def no_motion(positions: Sequence[Array], rate: float, config: SignalConfig, name: str) -> LogError:
    """Builds the error of a log in which no joint moves for long, or whose positions or time have another unit than described.

    Args:
        positions: Positions of each piece of the log, shapes (N_i, n) [rad or m].
        rate: Samples per second [Hz].
    """
    farthest = max((float(np.ptp(q, axis=0).max()) for q in positions if len(q)), default=0.0)
    return LogError(
        "the robot does not move",
        where=name,
        got=f"positions that change by at most {farthest:.3g} rad (m) in {sum(map(len, positions)) / rate:.3g} s",
        expected=f"speeds above {config.rest_speed:g} rad/s (m/s)",
        remedy="record a motion that moves every joint; if it did, correct `log: {units: {position: ..., time: ...}}`",
    )


def rest_speeds(speeds: list[Array], config: SignalConfig) -> Array:
    """Returns the speed of each joint below which it counts as being at rest, shape (n,) [rad/s or m/s].

    Args:
        speeds: Velocities of the pieces, shape (N, n) each [rad/s or m/s].
        config: Gives the rest speed, which is lowered for joints that are always slow.
    """
    typical = np.array([fast_speed(v) for v in columns(speeds)])
    slow = np.maximum(0.02 * typical, 0.1 * config.rest_speed)
    return np.asarray(np.minimum(config.rest_speed, slow))


def motion_ranges(v: Array, thresholds: Array, config: SignalConfig, rate: float) -> list[tuple[int, int]]:
    """Returns the sample ranges in which a joint is faster than its threshold, merged across short standstills.

    Args:
        v: Velocities, shape (N, n) [rad/s or m/s].
        thresholds: Shape (n,) [rad/s or m/s].
        rate: Samples per second [Hz].

    Returns:
        Begin and end of each range.
    """
    where = np.flatnonzero(np.any([np.abs(speed) > least for speed, least in zip(v.T, thresholds, strict=True)], axis=0))
    if not len(where):
        return []
    breaks = np.flatnonzero(np.diff(where) > max(1.0, config.rest_time * rate))
    begins, ends = where[np.concatenate([[0], breaks + 1])], where[np.concatenate([breaks, [len(where) - 1]])] + 1
    return list(zip(begins.tolist(), ends.tolist(), strict=True))
