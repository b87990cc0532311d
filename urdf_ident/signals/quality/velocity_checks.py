"""Checks of logged velocities against dq/dt: joint order, sign, unit, scale, lag."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...judgements.catalogue import Id
from ...judgements.judgement import Remedy
from ...linalg import BoolArray
from ...model.robot import Robot
from ...samples import fast_speed
from ..filters import HIGHEST
from ..resample import even_pieces
from ..velocity import VelocityMatch, match_velocity
from .checks import DEGREE, MOVING, smooth_speed
from .examination import Examination

#: Ratio (dq/dt) / v caused by a wrong unit → correct entry of the project file.
_RATIOS = (
    (DEGREE, "position", "deg"),
    (1 / (2 * np.pi), "position", "rev"),
    (1e3, "position", "mm"),
    (1 / DEGREE, "velocity", "deg/s"),
    (np.pi / 30, "velocity", "rpm"),
    (2 * np.pi, "velocity", "rev/s"),
    (1e-3, "velocity", "mm/s"),
)


def check_velocity(state: Examination, robot: Robot) -> None:
    """Compares logged velocities with dq/dt: joint order, sign, unit, scale, lag.

    Args:
        state: The log; its velocities are removed if they cannot be trusted.
    """
    recording = state.recording
    if recording.velocity is None:
        return
    pieces, clock = even_pieces(recording)
    piece = max(pieces, key=lambda piece: len(piece.q))
    if piece.v is None or len(piece.q) < 64:
        return
    match = match_velocity(piece.q, piece.v, clock.rate, min(10.0, HIGHEST * clock.rate))
    moves = np.array([fast_speed(speed) > MOVING for speed in smooth_speed(piece, clock.rate).T])
    if not moves.any():
        return
    constant = moves & (np.ptp(piece.v, axis=0) == 0)
    if constant.any():
        names = ", ".join(robot.joints[j] for j in np.flatnonzero(constant))
        _ignore_velocity(state, Id.VELOCITY_DEAD, f"the logged velocity of {names} never changes although the joint moves")
        return
    if (
        _swapped(state, robot, match, moves)
        or _wrong_sign(state, robot, match, moves)
        or _wrong_unit(state, robot, match, moves)
    ):
        return
    known = np.flatnonzero(moves & np.isfinite(match.scale))
    foreign = [robot.joints[j] for j in known if match.correlation[j] < 0.9]
    scaled = [robot.joints[j] for j in known if abs(match.scale[j] - 1) > 0.05]
    common = float(np.median(match.scale[known])) if len(known) else 1.0
    # attenuation of all velocities by a filter with this lag and by differences over two or three samples
    filtered = match.lag_error**2 + (match.frequency / clock.rate) ** 2 / 2
    alike = bool((np.abs(match.scale[known] / common - 1) < 0.02).all())
    if not foreign and len(known) > 1 and abs(common - 1) > 0.02 + filtered and alike:
        state.add(
            Id.TIME_SCALE,
            f"dq/dt is {common:.4g} times the logged velocity on all joints: the clock is wrong, "
            f"1 s of the log is {common:.4g} s",
            size=common,
            remedy="correct the time column's unit, or give `log: {rate: ...}`; if the velocities are scaled leave them out",
        )
    elif foreign:
        _ignore_velocity(state, Id.VELOCITY_UNRELATED, f"the logged velocity of {', '.join(foreign)} does not follow dq/dt")
    elif scaled:
        factors = ", ".join(f"{match.scale[robot.joints.index(name)]:.4g}" for name in scaled)
        _ignore_velocity(state, Id.VELOCITY_SCALE, f"dq/dt of {', '.join(scaled)} is {factors} times the logged velocity")
    elif match.lag_error > 0.02:
        state.add(Id.VELOCITY_LAG, f"{match.words}; dq/dt is used unless `signals: {{velocity: logged}}` asks for it")
    else:
        state.add(Id.VELOCITY_AGREES, match.words)


def _ignore_velocity(state: Examination, code: Id, message: str) -> None:
    state.add(
        code, f"{message}; logged velocities are not used", remedy="check the columns and their unit", severity="repaired"
    )
    state.recording = replace(state.recording, velocity=None)


def _swapped(state: Examination, robot: Robot, match: VelocityMatch, moves: BoolArray) -> bool:
    likeness = np.where(moves[:, None] & moves[None, :], np.abs(match.cross), 0.0)
    found = False
    for i in range(robot.n):
        for j in range(i + 1, robot.n):
            own = max(likeness[i, i], likeness[j, j])
            if moves[i] and moves[j] and own < 0.8 and min(likeness[i, j], likeness[j, i]) > 0.95:
                one, other = robot.joints[i], robot.joints[j]
                state.add(
                    Id.VELOCITIES_EXCHANGED,
                    f"the velocities of {one} and {other} look swapped",
                    joint=one,
                )
                found = True
    return found


def _wrong_sign(state: Examination, robot: Robot, match: VelocityMatch, moves: BoolArray) -> bool:
    wrong = np.flatnonzero(moves & (np.nan_to_num(match.correlation) < -0.9))
    for j in wrong:
        state.add(
            Id.VELOCITY_SIGN,
            "the logged velocity has the opposite sign of dq/dt",
            joint=robot.joints[j],
        )
    return len(wrong) > 0


def _wrong_unit(state: Examination, robot: Robot, match: VelocityMatch, moves: BoolArray) -> bool:
    known = np.flatnonzero(moves & np.isfinite(match.scale) & (np.nan_to_num(match.correlation) > 0.9))
    for kind in (False, True):
        group = known[robot.prismatic[known] == kind]
        for ratio, signal, unit in _RATIOS:
            if ("mm" in unit) != kind or not len(group) or not (np.abs(match.scale[group] / ratio - 1) < 0.1).all():
                continue
            state.add(
                Id.VELOCITY_UNIT,
                f"dq/dt is {np.median(match.scale[group]):.4g} times the logged velocity: one of them is in another unit",
                remedy=Remedy(
                    "in the project file: {settings}, or correct the other unit stated there", {f"log.units.{signal}": unit}
                ),
            )
            return True
    return False
