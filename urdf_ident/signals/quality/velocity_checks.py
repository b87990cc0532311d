"""Checks of logged velocities against dq/dt: joint order, sign, unit, scale, lag."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np

from ...judgements.catalogue import Id
from ...judgements.judgement import Remedy
from ...samples import fast_speed
from ..filters import HIGHEST
from ..resample import even_pieces
from ..velocity import match_velocity
from .checks import DEGREE, MOVING, smooth_speed
from .examination import Examination

#: Ratio (dq/dt) / v caused by a wrong unit → correct entry of the project file, of revolute and of prismatic joints. A power of
#: ten between them is no unit: rpm would be 0.1047, a factor of ten 0.1.
_UNITS = (
    {
        DEGREE: ("position", "deg"),
        1 / (2 * np.pi): ("position", "rev"),
        1 / DEGREE: ("velocity", "deg/s"),
        np.pi / 30: ("velocity", "rpm"),
        2 * np.pi: ("velocity", "rev/s"),
    },
    {1e3: ("position", "mm"), 1e-3: ("velocity", "mm/s")},
)
_TENS = (1e-3, 1e-2, 0.1, 10.0, 100.0, 1e3)
#: Relative deviation from such a ratio that a filter of the logged velocities may cause.
_NEAR = 0.1


def check_velocity(state: Examination) -> None:
    """Compares logged velocities with dq/dt: joint order, sign, unit, scale, lag; removes those that cannot be trusted."""
    recording, robot = state.recording, state.robot
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

    def ignore(id: Id, message: str, remedy: Remedy | None = None) -> None:
        use = remedy or Remedy("check the columns and their unit")
        state.add(id, f"{message}; logged velocities are not used", remedy=use, severity="repaired")
        state.recording = replace(recording, velocity=None)

    constant = moves & (np.ptp(piece.v, axis=0) == 0)
    if constant.any():
        names = ", ".join(robot.joints[j] for j in np.flatnonzero(constant))
        ignore(Id.VELOCITY_DEAD, f"the logged velocity of {names} never changes although the joint moves")
        return
    likeness = np.abs(match.cross)
    swapped = [
        (i, j)
        for i, j in combinations(np.flatnonzero(moves), 2)
        if max(likeness[i, i], likeness[j, j]) < 0.8 and min(likeness[i, j], likeness[j, i]) > 0.95
    ]
    for i, j in swapped:
        words = f"the velocities of {robot.joints[i]} and {robot.joints[j]} look swapped"
        state.add(Id.VELOCITIES_EXCHANGED, words, joint=robot.joints[i])
    correlation = np.nan_to_num(match.correlation)
    against = np.flatnonzero(moves & (correlation < -0.9) & (not swapped))
    for j in against:
        state.add(Id.VELOCITY_SIGN, "the logged velocity has the opposite sign of dq/dt", joint=robot.joints[j])
    if swapped or len(against):
        return

    factors = []
    for kind, units in zip((False, True), _UNITS, strict=True):
        scale = match.scale[moves & np.isfinite(match.scale) & (correlation > 0.9) & (robot.prismatic == kind)]
        known = np.array([*units, *(ten for ten in _TENS if ten not in units)])
        near = known[(np.abs(scale[:, None] / known - 1) < _NEAR).all(axis=0)] if len(scale) else known[:0]
        if not len(near):
            continue
        usual = float(np.median(scale))
        factors.append(nearest := float(near[np.argmin(np.abs(near / usual - 1))]))
        if nearest in units:
            signal, unit = units[nearest]
            state.add(
                Id.VELOCITY_UNIT,
                f"dq/dt is {usual:.4g} times the logged velocity: one of them is in another unit",
                remedy=Remedy(
                    "in the project file: {settings}, or correct the other unit stated there", {f"log.units.{signal}": unit}
                ),
            )
            return
    moving = np.flatnonzero(moves & np.isfinite(match.scale))
    foreign = [robot.joints[j] for j in moving if match.correlation[j] < 0.9]
    scaled = [j for j in moving if abs(match.scale[j] - 1) > 0.05]
    common = float(np.median(match.scale[moving])) if len(moving) else 1.0
    # attenuation of all velocities by a filter with this lag and by differences over two or three samples
    filtered = match.lag_error**2 + (match.frequency / clock.rate) ** 2 / 2
    alike = bool((np.abs(match.scale[moving] / common - 1) < 0.02).all())
    by_positions = Remedy("use the positions: {settings}", {"signals.velocity": "differentiated"})
    if foreign:
        ignore(Id.VELOCITY_UNRELATED, f"the logged velocity of {', '.join(foreign)} does not follow dq/dt")
    elif factors:
        words = f"the velocity column has a constant factor of {1 / common:.4g}: dq/dt is {common:.4g} times it"
        ignore(Id.VELOCITY_SCALE, words, by_positions)
    elif len(moving) > 1 and abs(common - 1) > 0.02 + filtered and alike:
        state.add(
            Id.TIME_SCALE,
            f"dq/dt is {common:.4g} times the logged velocity on all joints: the clock is wrong, "
            f"1 s of the log is {common:.4g} s",
            size=common,
            remedy=Remedy(
                "{settings}, or correct the time column's unit; if the velocity column has a constant factor of "
                f"{1 / common:.4g} instead, use the positions: `signals: {{velocity: differentiated}}`",
                {"log.rate": float(f"{clock.rate / common:.9g}")},
            ),
        )
    elif scaled:
        names, sizes = (", ".join(robot.joints[j] for j in scaled), ", ".join(f"{match.scale[j]:.4g}" for j in scaled))
        ignore(Id.VELOCITY_SCALE, f"dq/dt of {names} is {sizes} times the logged velocity", by_positions)
    elif match.lag_error > 0.02:
        state.add(Id.VELOCITY_LAG, f"{match.words}; dq/dt is used unless `signals: {{velocity: logged}}` asks for it")
    else:
        state.add(Id.VELOCITY_AGREES, match.words)
