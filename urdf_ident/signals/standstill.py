"""Standstill: joints that never move are set to rest, and long standstill of all joints is cut out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..errors import LogError
from ..linalg import Array
from ..model.robot import Robot
from ..samples import Segment, columns, fast_speed, moving
from .config import SignalConfig
from .resample import UniformPiece

#: A joint is at rest if it is slower than this fraction of the rest speed, or by far the slowest (:func:`.samples.moving`), and
#: its travel is below this [rad]; for a prismatic joint a fifth of both values applies. A held joint creeps by some mrad under
#: changing loads, which is no motion from which friction could be known.
STILL_SPEED, STILL_TRAVEL = 0.25, 1e-2
#: Short motions are left out only if no joint loses more than this share of its travel with them.
MOST_LOST = 0.1


def hold_resting_joints(segments: list[Segment], robot: Robot, config: SignalConfig) -> list[Segment]:
    """Sets the motion of joints that are at rest throughout the log to exactly zero.

    Otherwise encoder noise and rounding would form their friction and rotor-inertia columns, with estimates of 1e6 N·m and
    more. Logs with motor positions are unchanged, to keep small spring deflections.
    """
    speed = np.array([fast_speed(v) for v in columns([segment.v for segment in segments])])
    travel = np.max([np.ptp(np.quantile(segment.q, [0.005, 0.995], axis=0), axis=0) for segment in segments], axis=0)
    share = np.where(robot.prismatic, 0.2, 1.0)
    slow = (speed < share * STILL_SPEED * config.rest_speed) | ~moving(speed, robot.prismatic)
    still = slow & (travel < share * STILL_TRAVEL)
    if not still.any() or still.all() or segments[0].qm is not None:
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
