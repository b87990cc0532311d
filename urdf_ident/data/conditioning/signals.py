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

from ...errors import LogError
from ...linalg import Array, quantiles
from ...model.robot import Robot
from ...samples import Segment, columns, moving
from ..recording import Recording
from ..refusals import each_usable
from .averaging import Averaged, average
from .clock import GAP_PERIODS, GAP_SECONDS, Clock
from .filters import HALF_WIDTH, HIGHEST, ORDER, CutoffChoice, decimate, differentiate, estimate_cutoff, lowpass
from .periods import LIKENESS, SAID, Repetition, find_repetition
from .resample import Stretch, advanced, even_pieces
from .velocity import VelocityMatch, match_velocity

__all__ = ["Conditioned", "SignalConfig", "condition", "decimate", "differentiate", "estimate_cutoff", "lowpass", "resolve"]

#: Ratio of the row rate to the cut-off. 2.5 would suffice for the filtered motion, but the friction torque at reversals has
#: more bandwidth, and information removed by decimation is lost.
ROWS_PER_CUTOFF = 5.0
#: Minimum row rate [Hz]: friction changes sign just as fast at reversals of a slow motion.
FEWEST_ROWS = 40.0
#: A joint is at rest if it is slower than this fraction of the rest speed, or by far the slowest (:func:`.samples.moving`), and
#: its travel is below this [rad]; for a prismatic joint a fifth of both values applies.
STILL_SPEED, STILL_TRAVEL = 0.25, 2e-3
#: Minimum number of whole periods for automatic averaging; with fewer, separate periods are more useful as held-out data.
FEWEST_PERIODS = 3
#: Longest delay of the efforts that can be compensated [s].
LONGEST_DELAY = 1.0
#: Largest fraction of the acceleration power that may be noise or missing from the harmonics; above it the motion is not
#: represented well by a Fourier series and the periods are not averaged.
WASTE = 0.1


@dataclass(frozen=True)
class SignalConfig:
    """Settings of the conditioning; ``auto`` is chosen from the log and explained in :attr:`Conditioned.why`.

    Attributes:
        cutoff: Zero-phase low-pass of positions and velocities [Hz].
        decimate: Rate of the rows (equations) [Hz], at most that of the log.
        velocity: ``"logged"``, ``"differentiated"``, or ``"auto"`` (logged only if it has no lag and less noise).
        periodic: ``"on"``: average the periods of a repeated motion; ``"auto"``: if there are :data:`FEWEST_PERIODS` or
            more; ``"off"``.
        delay: Lag of the efforts behind the positions to compensate [s]; ``"auto"`` is 0 until estimated from the logs.
        order: Order of one pass of the Butterworth filter.
        rest_speed: A joint slower than this is at rest [rad/s or m/s]; lowered for joints that are always slow.
        rest_time: Longer standstill of all joints is cut out [s], because static friction is indeterminate there.
        shortest: Shorter pieces of motion are left out [s], unless the log has no longer ones.
        reason: Reason for ``cutoff``, for :attr:`Conditioned.why`.
        velocity_reason: The same for ``velocity``.
        chosen: Which of the settings :func:`resolve` chose from the logs.
    """

    cutoff: float | str = "auto"
    decimate: float | str = "auto"
    velocity: str = "auto"
    periodic: str = "auto"
    delay: float | str = "auto"
    order: int = ORDER
    rest_speed: float = 0.02
    rest_time: float = 0.25
    shortest: float = 1.0
    reason: str = "as configured"
    velocity_reason: str = "as configured"
    chosen: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("cutoff", "decimate"):
            value = getattr(self, name)
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if value != "auto" and not (number and math.isfinite(value) and value > 0):
                raise LogError(f"unusable {name}", where=f"signals.{name}", got=value, expected="a frequency [Hz] or auto")
        if self.delay != "auto" and not (isinstance(self.delay, int | float) and abs(self.delay) <= LONGEST_DELAY):
            raise LogError(
                "unusable delay",
                where="signals.delay",
                got=self.delay,
                expected=f"auto or at most {LONGEST_DELAY:g} s either way",
            )
        if self.velocity not in ("auto", "logged", "differentiated"):
            raise LogError(
                "unknown source of velocity",
                where="signals.velocity",
                got=self.velocity,
                expected="auto, logged or differentiated",
            )
        if self.periodic not in ("auto", "on", "off"):
            raise LogError("unknown choice", where="signals.periodic", got=self.periodic, expected="auto, on or off")


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


def condition(recording: Recording, robot: Robot, config: SignalConfig | None = None) -> Conditioned:
    """Conditions one log.

    Args:
        recording: A repaired log (see :mod:`quality`) on the joint side: positions [rad or m], efforts in joint
            torque [N·m or N], motor positions after the gear.
        config: Settings; all automatic by default.

    Returns:
        The pieces of motion, and every choice with its reason.

    Raises:
        LogError: The robot does not move, or not long enough.
    """
    config = config or SignalConfig()
    pieces, clock = even_pieces(recording)
    rate = clock.rate
    if config.delay != "auto" and config.delay:
        pieces = [advanced(piece, rate, float(config.delay), recording.name) for piece in pieces]
    choice, why_cutoff = _cutoff(pieces, rate, config, recording.name)
    source, why_velocity = _velocity_source(recording, pieces, rate, choice, config)
    cutoff = choice.cutoff
    wanted = _row_rate(cutoff) if config.decimate == "auto" else float(config.decimate)
    factor = max(1, int(rate / wanted + 1e-9))
    row_rate = rate / factor
    row_cutoff = 0.4 * row_rate
    why_rows = f"every sample is an equation ({row_rate:.4g} Hz)"
    if factor > 1:
        why_rows = f"one equation per {factor} samples ({row_rate:.4g} Hz) after a low-pass at {row_cutoff:.3g} Hz"
    automatic = config.decimate == "auto" or "decimate" in config.chosen
    reason = (
        f"{ROWS_PER_CUTOFF:g} times the cut-off or {FEWEST_ROWS:g} Hz, as friction reverses faster than the filtered motion"
    )
    why_rows += f": {reason if automatic else 'as configured'}"
    why = {"rate": _rate_words(clock), "cutoff": why_cutoff, "decimate": why_rows, "velocity": why_velocity}
    repetition, averaged = _repetition(pieces, config, recording.name), None
    if repetition is not None:
        given = None if config.cutoff == "auto" or "cutoff" in config.chosen else cutoff
        around = max(1, math.ceil(HALF_WIDTH * factor / round(repetition.length)))
        tiled, averaged = average(pieces[0], rate, repetition, recording.name, given, around)
        why["periodic"] = f"averaged, {averaged.describe()}"
        if config.periodic == "auto" and averaged.missing > WASTE:
            why["periodic"] = f"not averaged: {averaged.describe()}"
            averaged = None
    if averaged is None:
        motion = [_derivatives(piece, rate, cutoff, config.order, source, recording.name) for piece in pieces]
        motion = _held(motion, robot, config)
        segments, why["rest"] = _cut_rest(motion, pieces, rate, cutoff, config, recording.name)
    else:
        segments, why["rest"] = _one_period(_held([tiled], robot, config)[0], around, factor, config)
        why["velocity"] = "exact derivatives of the harmonics, which replace the low-pass filtered positions"
    return Conditioned(tuple(segments), rate, cutoff, row_rate, factor, row_cutoff, source, why, averaged)


def _repetition(pieces: list[Stretch], config: SignalConfig, name: str) -> Repetition | None:
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
    found = find_repetition(pieces[0].q, *demand) if len(pieces) == 1 else None
    if asked and found is None:
        raise LogError(
            "the motion does not repeat: there are no whole periods to average",
            where=name,
            got="no two equal periods in a row" if len(pieces) == 1 else f"{len(pieces)} pieces between pauses",
            expected="two or more whole periods",
            remedy="set signals.periodic: auto, or record several periods",
        )
    return found


def _one_period(tiled: Segment, around: int, factor: int, config: SignalConfig) -> tuple[list[Segment], str]:
    """The middle one of equal periods without standstill, with the margins that the filters need."""
    samples = len(tiled) // (2 * around + 1)
    ranges = _motions(tiled.v, _rest_speeds([tiled.v], config), config, tiled.rate)
    mine = [(begin, end) for begin, end in ranges if around * samples <= begin < (around + 1) * samples]
    if not mine:  # no long standstill: rows for exactly one period
        half = HALF_WIDTH * factor if factor > 1 else 0
        begin = around * samples - half
        return [tiled.slice(begin, begin + (round(samples / factor) - 1) * factor + 2 * half + 1)], "none in a whole period"
    longest = max(end - begin for begin, end in mine)
    kept = [(b, e) for b, e in mine if e - b >= min(config.shortest * tiled.rate, 0.5 * longest)]
    used = sum(end - begin for begin, end in kept) / tiled.rate
    why = (
        f"{used:.4g} s of motion in {len(kept)} piece(s) of a period; standstill longer than {config.rest_time:g} s is left out"
    )
    return [tiled.slice(begin, end) for begin, end in kept], why


def resolve(recordings: Sequence[Recording], robot: Robot, config: SignalConfig | None = None) -> SignalConfig:
    """Resolves ``auto`` settings to common values for several logs (medians over logs), so that their rows can be merged.

    Args:
        recordings: Repaired logs on the joint side.
        robot: The robot that moved in them.
        config: Settings; those that are not ``auto`` are kept.

    Returns:
        A configuration with numbers for ``cutoff`` and ``decimate`` and a definite ``velocity``.

    Raises:
        LogError: No log is given, or the robot does not move in one.
    """
    config = config or SignalConfig()
    if not recordings:
        raise LogError("no log to condition", expected="one or more recordings")
    found = each_usable(partial(_choices, config=config), recordings)
    choices, sources = [cutoff for cutoff, _ in found], [source for _, source in found]
    wishes = [choice.cutoff for choice, _ in choices]
    cutoff = float(np.median(wishes))
    reason = choices[0][1].split(", ", 1)[1]
    if config.cutoff == "auto" and len(recordings) > 1:
        reason = f"median over {len(wishes)} logs ({min(wishes):.3g} to {max(wishes):.3g} Hz)"
    decimate = _row_rate(cutoff) if config.decimate == "auto" else config.decimate
    odd = next((k for k, (source, _) in enumerate(sources) if source != "logged"), None)
    velocity, words = sources[odd or 0]
    if len(recordings) > 1 and odd is not None:
        words = f"{words} ({recordings[odd].name}), so in all logs"
    chosen = tuple(name for name in ("cutoff", "decimate", "velocity") if getattr(config, name) == "auto")
    return replace(
        config, cutoff=cutoff, decimate=decimate, velocity=velocity, reason=reason, velocity_reason=words, chosen=chosen
    )


def _choices(recording: Recording, config: SignalConfig) -> tuple[tuple[CutoffChoice, str], tuple[str, str]]:
    """Cut-off and source of velocities chosen for one log, each with its reason."""
    pieces, clock = even_pieces(recording)
    cutoff = _cutoff(pieces, clock.rate, config, recording.name)
    return cutoff, _velocity_source(recording, pieces, clock.rate, cutoff[0], config)


def _row_rate(cutoff: float) -> float:
    """Row rate for a cut-off of the positions [Hz]."""
    return max(ROWS_PER_CUTOFF * cutoff, FEWEST_ROWS)


def _rate_words(clock: Clock) -> str:
    how = "as logged" if clock.even else f"resampled from a clock that varies by {100 * clock.jitter:.2g} % of a period"
    why = f"{clock.rate:.5g} Hz, {how}"
    if len(clock.gaps):
        why += f"; split at {len(clock.gaps)} pause(s) longer than {max(GAP_PERIODS * clock.period, GAP_SECONDS):.3g} s"
    return why


def _cutoff(pieces: list[Stretch], rate: float, config: SignalConfig, name: str) -> tuple[CutoffChoice, str]:
    if config.cutoff != "auto":
        cutoff = float(config.cutoff)
        if "cutoff" not in config.chosen and cutoff >= 0.5 * rate:
            raise LogError(
                "signals.cutoff is above what the log's rate can show",
                where=name,
                got=f"{cutoff:g} Hz",
                expected=f"below {0.5 * rate:.4g} Hz, half the rate",
                remedy="leave it out: `signals: {cutoff: auto}` finds it",
            )
        return CutoffChoice(cutoff, cutoff, cutoff, config.reason), f"{cutoff:.4g} Hz, {config.reason}"
    first = min(10.0, HIGHEST * rate)
    stretches = []
    for piece in pieces:
        speed = differentiate(lowpass(piece.q, rate, first), rate)
        stretches += [(piece, begin, end) for begin, end in _motions(speed, _rest_speeds([speed], config), config, rate)]
    longest = max((end - begin for _, begin, end in stretches), default=0)
    if longest < max(32, 0.2 * rate):
        raise LogError(
            "the robot does not move",
            where=name,
            expected=f"speeds above {config.rest_speed:g} rad/s (m/s)",
            remedy="record a motion that moves every joint",
        )
    kept = [piece.q[begin:end] for piece, begin, end in stretches if end - begin >= 0.5 * longest]
    travel = np.max([np.ptp(q, axis=0) for q in kept], axis=0)
    movers = travel > 1e-3 * travel.max()
    choice = estimate_cutoff(kept if movers.all() else [q[:, movers] for q in kept], rate)
    return choice, f"{choice.cutoff:.4g} Hz, Butterworth of order {config.order} forwards and backwards: {choice.why}"


def _velocity_source(
    recording: Recording, pieces: list[Stretch], rate: float, choice: CutoffChoice, config: SignalConfig
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
    return ("logged", match.words) if _logged_is_better(match) else ("differentiated", match.words)


def _logged_is_better(match: VelocityMatch) -> bool:
    return match.agrees and match.lag_error < 0.02 and match.noise_ratio < 0.25


def _derivatives(piece: Stretch, rate: float, cutoff: float, order: int, source: str, name: str) -> Segment:
    q = lowpass(piece.q, rate, cutoff, order)
    v = lowpass(piece.v, rate, cutoff, order) if source == "logged" and piece.v is not None else differentiate(q, rate)
    qm = vm = am = None
    if piece.qm is not None:
        qm = lowpass(piece.qm, rate, cutoff, order)
        vm = differentiate(qm, rate)
        am = differentiate(vm, rate)
    return Segment(name, piece.start, rate, q, v, differentiate(v, rate), piece.tau, qm, vm, am, external=piece.external)


def _held(segments: list[Segment], robot: Robot, config: SignalConfig) -> list[Segment]:
    """Sets the motion of joints that are at rest throughout the log to exactly zero.

    Otherwise encoder noise and rounding would form their friction and rotor-inertia columns, with estimates of 1e6 N·m and
    more. Logs with motor positions are unchanged, to keep small spring deflections.
    """
    speed = np.array([quantiles(np.abs(v), 0.95)[0] for v in columns([segment.v for segment in segments])])
    travel = np.max([[np.ptp(quantiles(q, 0.005, 0.995)) for q in segment.q.T] for segment in segments], axis=0)
    share = np.where(robot.prismatic, 0.2, 1.0)
    slow = (speed < share * STILL_SPEED * config.rest_speed) | ~moving(speed, robot.prismatic)
    still = slow & (travel < share * STILL_TRAVEL)
    if not still.any() or still.all() or segments[0].qm is not None:
        return segments
    return [
        replace(
            part, q=np.where(still, part.q.mean(axis=0), part.q), v=np.where(still, 0.0, part.v), a=np.where(still, 0.0, part.a)
        )
        for part in segments
    ]


def _cut_rest(
    whole: list[Segment], pieces: list[Stretch], rate: float, cutoff: float, config: SignalConfig, name: str
) -> tuple[list[Segment], str]:
    """Motions between standstills; samples affected by the filter's transient are removed at the ends of each piece."""
    thresholds = _rest_speeds([segment.v for segment in whole], config)
    edge = math.ceil(2 * rate / cutoff)  # beyond it the acceleration error is below 0.2 % of the maximum
    found: list[Segment] = []
    for segment in whole:
        for begin, end in _motions(segment.v, thresholds, config, rate):
            begin, end = max(begin, min(edge, len(segment) // 10)), min(end, len(segment) - min(edge, len(segment) // 10))
            if end - begin >= 10:
                found.append(segment.slice(begin, end))
    longest = max((len(segment) for segment in found), default=0)
    kept = [segment for segment in found if len(segment) >= min(config.shortest * rate, 0.5 * longest)]
    if not kept:
        raise LogError(
            "the robot does not move",
            where=name,
            expected=f"speeds above {config.rest_speed:g} rad/s (m/s)",
            remedy="record a motion that moves every joint",
        )
    total = sum(len(piece.q) for piece in pieces) / rate
    used = sum(len(segment) for segment in kept) / rate
    why = f"{used:.4g} s of motion in {len(kept)} piece(s) out of {total:.4g} s; "
    why += f"standstill longer than {config.rest_time:g} s is left out"
    if len(found) > len(kept):
        why += f", and {len(found) - len(kept)} motion(s) shorter than {config.shortest:g} s"
    return kept, why


def _rest_speeds(speeds: list[Array], config: SignalConfig) -> Array:
    """Speed of each joint below which it counts as being at rest [rad/s or m/s]."""
    typical = np.array([quantiles(np.abs(speed), 0.95)[0] for speed in columns(speeds)])
    slow = np.maximum(0.02 * typical, 0.1 * config.rest_speed)
    return np.asarray(np.minimum(config.rest_speed, slow))


def _motions(v: Array, thresholds: Array, config: SignalConfig, rate: float) -> list[tuple[int, int]]:
    """Sample ranges in which a joint is faster than its threshold, merged across short standstills."""
    where = np.flatnonzero(np.any([np.abs(speed) > least for speed, least in zip(v.T, thresholds, strict=True)], axis=0))
    if not len(where):
        return []
    breaks = np.flatnonzero(np.diff(where) > max(1.0, config.rest_time * rate))
    begins, ends = where[np.concatenate([[0], breaks + 1])], where[np.concatenate([breaks, [len(where) - 1]])] + 1
    return list(zip(begins.tolist(), ends.tolist(), strict=True))
