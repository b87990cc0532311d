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
from ..samples import Segment, columns, fast_speed, moving, reached
from ..units import percent
from .clock import GAP_PERIODS, GAP_SECONDS, Clock, advanced, even_pieces
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
#: Low-pass of the rows before their decimation, over their rate.
_PASSED = 0.4
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
        factor: Samples per row.
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
    factor: int
    velocity_source: str
    why: dict[str, str]
    averaged: Averaged | None = None
    lost: Array | None = None

    @property
    def decimate_rate(self) -> float:
        """Rate of the rows [Hz]."""
        return self.rate / self.factor

    @property
    def row_cutoff(self) -> float:
        """Low-pass of the rows before the decimation [Hz]."""
        return _PASSED * self.decimate_rate

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
    config = resolve([recording], config)
    pieces, clock = _pieces(recording, config)
    rate, cutoff, source, lost = clock.rate, float(config.cutoff), config.velocity, None
    given = "cutoff" not in config.chosen
    if given and cutoff >= 0.5 * rate:
        raise LogError(
            "signals.cutoff is above what the log's rate can show",
            where=recording.name,
            got=f"{cutoff:g} Hz",
            expected=f"below {0.5 * rate:.4g} Hz, half the rate",
            remedy="leave it out: `signals: {cutoff: auto}` finds it",
        )
    if source == "logged" and recording.velocity is None:
        raise LogError("the log has no velocities", where=recording.name, remedy="use `signals: {velocity: auto}`")
    factor = max(1, int((1 + _CLOCKS) * rate / float(config.decimate)))
    how = "as logged" if clock.even else f"resampled from a clock that varies by {percent(100 * clock.jitter)} % of a period"
    if len(clock.gaps):
        how += f"; split at {len(clock.gaps)} pause(s) longer than {max(GAP_PERIODS * clock.period, GAP_SECONDS):.3g} s"
    why = {"rate": f"{rate:.5g} Hz, {how}", "cutoff": f"{cutoff:.4g} Hz, {config.reason}"}
    why |= {"decimate": _why_rows(rate / factor, factor, config), "velocity": f"{source}, {config.velocity_reason}"}
    repetition, averaged = _repetition(pieces, config), None
    if repetition is None:
        motion = [_derivatives(piece, rate, cutoff, config.order, source) for piece in pieces]
        motion = hold_resting_joints(motion, robot, config)
        segments, why["rest"] = cut_rest(motion, pieces, rate, cutoff, config)
        raw = [piece.position for piece in even_pieces(recording)[0]]
        end = estimate_cutoff(raw, rate, steps=counts_of(recording.position)).motion_end if given else 0.0
        lost = attenuation(raw, rate, cutoff, config.order, end)
    else:
        around = max(1, math.ceil(HALF_WIDTH * factor / round(repetition.length)))
        periods, averaged = average(pieces[0], rate, repetition, cutoff, around)
        (periods,) = hold_resting_joints([periods], robot, config)
        why["periodic"] = f"averaged, {averaged.describe()}"
        segments, why["rest"] = _one_period(periods, around, factor, config)
        why["velocity"] = "exact derivatives of the harmonics, which replace the low-pass filtered positions"
    return Conditioned(tuple(segments), rate, cutoff, factor, source, why, averaged, lost)


def _pieces(recording: Recording, config: SignalConfig) -> tuple[list[Recording], Clock]:
    """Pieces of a log at a constant rate, their efforts advanced by a known delay."""
    pieces, clock = even_pieces(recording)
    if config.delay != "auto" and config.delay:
        pieces = [advanced(piece, clock.rate, float(config.delay)) for piece in pieces]
    return pieces, clock


def _why_rows(row_rate: float, factor: int, config: SignalConfig) -> str:
    """The rate of the rows [Hz] in words, with the reason."""
    why = f"every sample is an equation ({row_rate:.4g} Hz)"
    if factor > 1:
        why = f"one equation per {factor} samples ({row_rate:.4g} Hz) after a low-pass at {_PASSED * row_rate:.3g} Hz"
    if "decimate" not in config.chosen:
        return f"{why}: as configured"
    bounds = f"{ROWS_PER_CUTOFF:g} times the cut-off or {FEWEST_ROWS:g} Hz"
    return f"{why}: {bounds}, as friction reverses faster than the filtered motion"


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
    whole = [_derivatives(piece, clock.rate, cutoff, config.order, log.velocity_source) for piece in pieces]
    whole = hold_resting_joints(whole, robot, config)
    starts = np.array([piece.time[0] for piece in whole]) - 0.5 / clock.rate
    motion = []
    for segment in log.segments:
        piece = whole[int(np.searchsorted(starts, segment.start)) - 1]
        begin = round((segment.start - piece.time[0]) * clock.rate)
        motion.append(replace(piece.slice(begin, begin + len(segment)), weights=segment.weights))
    return tuple(motion)


def _repetition(pieces: list[Recording], config: SignalConfig) -> Repetition | None:
    """The periods to average, if any."""
    if config.periodic == "off":
        return None
    asked = config.periodic == "on"
    if pieces[0].motor_position is not None:  # spring deflections are small and have higher harmonics than the motion
        if asked:
            raise LogError(
                "a log with motor positions is not averaged: its deflections are too small for that",
                where=pieces[0].name,
                got="signals.periodic: on",
                expected="auto or off",
            )
        return None
    demand = (2, SAID) if asked else (FEWEST_PERIODS, LIKENESS)
    repetition = find_repetition(pieces[0].position, *demand) if len(pieces) == 1 else None
    if asked and repetition is None:
        raise LogError(
            "the motion does not repeat: there are no whole periods to average",
            where=pieces[0].name,
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
    automatic = [name for name in ("cutoff", "decimate", "velocity") if getattr(config, name) == "auto"]
    if not automatic:
        return config
    config = replace(config, chosen=(*config.chosen, *automatic))
    choices, velocities = zip(*each_usable(partial(_choices, config=config), recordings), strict=True)
    if config.cutoff == "auto":
        cutoffs = [choice.cutoff for choice in choices]
        reason = f"Butterworth of order {config.order} forwards and backwards: {choices[0].why}"
        if len(recordings) > 1:
            reason = f"median over {len(cutoffs)} logs ({min(cutoffs):.3g} to {max(cutoffs):.3g} Hz)"
        config = replace(config, cutoff=float(np.median(cutoffs)), reason=reason)
    if config.decimate == "auto":
        config = replace(config, decimate=max(ROWS_PER_CUTOFF * float(config.cutoff), FEWEST_ROWS))
    if config.velocity == "auto":
        derived = next((k for k, (source, _) in enumerate(velocities) if source != "logged"), None)
        source, words = velocities[derived or 0]
        if len(recordings) > 1 and derived is not None:
            words = f"{words} ({recordings[derived].name}), so in all logs"
        config = replace(config, velocity=source, velocity_reason=words)
    return config


def _choices(recording: Recording, config: SignalConfig) -> tuple[CutoffChoice, tuple[str, str]]:
    """Cut-off of one log, and source of its velocities with the reason; of a setting that is not automatic, that value."""
    pieces, clock = even_pieces(recording)
    if config.cutoff != "auto":
        choice = CutoffChoice(float(config.cutoff), float(config.cutoff), config.reason)
    else:
        choice = _cutoff_of_spectrum(pieces, clock.rate, config, counts_of(recording.position))
    if config.cutoff == "auto" and config.scale != 1.0:
        why = f"{config.scale:.3g} times that of the spectrum, as held-out torque errors chose"
        choice = replace(choice, cutoff=prediction_cutoff(choice.cutoff, config.scale, clock.rate), why=why)
    source = (config.velocity, config.velocity_reason)
    return choice, _velocity_source(recording, pieces, clock.rate, choice.cutoff) if config.velocity == "auto" else source


def _cutoff_of_spectrum(pieces: list[Recording], rate: float, config: SignalConfig, steps: Array) -> CutoffChoice:
    """Cut-off that the spectra of the moving joints ask for; steps: of the positions, as for :func:`estimate_cutoff`."""
    positions, first = [piece.position for piece in pieces], min(10.0, HIGHEST * rate)
    moving, longest = [], 0
    for q in positions:
        speed = differentiate(lowpass(q, rate, first), rate)
        moves = np.zeros(len(speed), dtype=bool)
        for begin, end in motion_ranges(speed, rest_speeds([speed], config), config, rate):
            moves[begin:end] = True
            longest = max(longest, end - begin)
        moving.append(moves)
    if longest < max(32, 0.2 * rate):
        raise no_motion(pieces, rate, config)
    del speed  # as large as the log

    def of_joint(x: Array) -> tuple[float, float]:
        """Travel, and white noise in the variance: half the mean square successive difference (von Neumann 1941)."""
        return float(np.ptp(x)), 0.5 * float(np.mean(np.diff(x) ** 2)) / positive(float(x.var()))

    moved = [[of_joint(x[moves]) for x in q.T] for q, moves in zip(positions, moving, strict=True) if moves.any()]
    travel, white = np.max(moved, axis=0)[:, 0], np.min(moved, axis=0)[:, 1]
    movers = (travel > 1e-3 * travel.max()) & (white < _MOSTLY_WHITE)
    movers = movers if movers.any() else np.ones_like(movers)
    return estimate_cutoff([q[:, movers] for q in positions], rate, moving, steps[movers])


def _velocity_source(recording: Recording, pieces: list[Recording], rate: float, cutoff: float) -> tuple[str, str]:
    """Where velocities come from, ``"logged"`` or ``"differentiated"``, and why."""
    if recording.velocity is None:
        return "differentiated", "no velocities in the log"
    piece = max(pieces, key=len)
    if piece.velocity is None or len(piece) < 64:
        return "differentiated", "too few samples to judge the logged velocity"
    match = match_velocity(piece.position, piece.velocity, rate, cutoff)
    better = match.agrees and match.lag_error < 0.02 and match.noise_ratio < 0.25
    return "logged" if better else "differentiated", match.words


def _derivatives(piece: Recording, rate: float, cutoff: float, order: int, source: str) -> Segment:
    q = lowpass(piece.position, rate, cutoff, order)
    logged = piece.velocity if source == "logged" else None
    v = differentiate(q, rate) if logged is None else lowpass(logged, rate, cutoff, order)
    qm = vm = am = None
    if piece.motor_position is not None:
        qm = lowpass(piece.motor_position, rate, cutoff, order)
        vm = differentiate(qm, rate)
        am = differentiate(vm, rate)
    start, a, external = float(piece.time[0]), differentiate(v, rate), piece.external_torque
    return Segment(piece.name, start, rate, q, v, a, piece.effort, qm, vm, am, external=external)


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
    travel = np.max([high - low for low, high in (reached(segment.q) for segment in segments)], axis=0)
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
    whole: list[Segment], pieces: list[Recording], rate: float, cutoff: float, config: SignalConfig
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
        raise no_motion(pieces, rate, config)
    total = sum(len(piece) for piece in pieces) / rate
    used = sum(len(segment) for segment in kept) / rate
    why = f"{used:.4g} s of motion in {len(kept)} piece(s) out of {total:.4g} s; "
    why += f"standstill longer than {config.rest_time:g} s is left out"
    if len(motions) > len(kept):
        why += f", and {len(motions) - len(kept)} motion(s) shorter than {least / rate:.2g} s"
    return kept, why


def no_motion(pieces: Sequence[Recording], rate: float, config: SignalConfig) -> LogError:
    """Builds the error of a log in which no joint moves for long, or whose positions or time have another unit than described.

    Args:
        pieces: The pieces of the log.
        rate: Samples per second [Hz].
    """
    farthest = max(float(np.ptp(piece.position, axis=0).max()) for piece in pieces)
    return LogError(
        "the robot does not move",
        where=pieces[0].name,
        got=f"positions that change by at most {farthest:.3g} rad (m) in {sum(map(len, pieces)) / rate:.3g} s",
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
