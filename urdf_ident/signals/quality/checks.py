"""Plausibility checks of a log: motion, efforts, locked joints, units of positions; velocities against dq/dt."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from itertools import combinations

import numpy as np

from ...friction import SIGN_WIDTH
from ...judgements.catalogue import Id
from ...judgements.judgement import Remedy
from ...linalg import Array, BoolArray, rms
from ...logs.columns.fields import CALIBRATION, LARGEST
from ...logs.recording import Recording
from ...model.rigid_bodies import gravity_torques, mass_matrices
from ...model.robot import Robot
from ...samples import SHORT, SHORTEST, columns, fast_speed, reached
from ...units import joint_units, parse_unit
from ..clock import even_pieces
from ..filters import HIGHEST, differentiate, lowpass
from ..resolution import usual_size
from ..velocity import match_velocity
from .examination import Examination

#: Change of a gravity torque or inertia by a locked joint that is elsewhere in the log: reported, and refused, from here on.
LOCK_FELT, LOCK_WRONG = 0.02, 0.2
#: Other units of positions: whether of revolute joints, how many make a radian or metre, and their name.
_OTHER_UNITS = ((True, 1 / parse_unit("deg").factor, "deg"), (False, 1 / parse_unit("mm").factor, "mm"))
#: Ratio (dq/dt) / v caused by a wrong unit → correct entry of the project file, of revolute and of prismatic joints. A power of
#: ten between them is no unit: rpm would be 0.1047, a factor of ten 0.1.
_UNITS = tuple(
    {1 / parse_unit(unit).factor: ("position", unit) for unit in positions}
    | {parse_unit(unit).factor: ("velocity", unit) for unit in velocities}
    for positions, velocities in ((("deg", "rev"), ("deg/s", "rpm", "rev/s")), (("mm",), ("mm/s",)))
)
#: Relative deviation from such a ratio that a filter of the logged velocities may cause.
_NEAR = 0.1


def check_effort(state: Examination) -> None:
    """Refuses a log without efforts, or with an effort that never changes although its joint moves."""
    recording = state.recording
    if recording.effort is None:
        state.add(Id.EFFORT_MISSING, "the log holds no efforts (torques, forces or currents)")
        return
    for j in np.flatnonzero(np.ptp(recording.effort, axis=0) == 0):
        value = f"is {recording.effort[0, j]:.4g} throughout"
        if state.moves[j]:
            state.add(Id.EFFORT_DEAD, f"the joint moves and its effort {value}", joint=state.robot.joints[j])
        else:
            state.add(Id.EFFORT_CONSTANT, f"the effort {value}", joint=state.robot.joints[j])
    if recording.effort_unit in ("N·m", "N") and recording.effort_side == "joint":
        limits = state.robot.limit("effort")
        weights = np.abs(gravity_torques(state.robot, _poses(recording))).max(axis=0)
        placeholder = np.isin(limits, limits[weights > limits])  # what the URDF's own weights exceed is no limit
        largest = np.array([weights[state.robot.prismatic == kind].max() for kind in state.robot.prismatic])
        allowed = np.where(placeholder, np.maximum(limits, largest), limits)
        for j in np.flatnonzero([usual_size(x) > 2 * most for x, most in zip(recording.effort.T, allowed, strict=True)]):
            reached, unit = np.abs(recording.effort[:, j]).max(), joint_units(state.robot.prismatic[j])["torque"]
            limit = "the URDF allows" if allowed[j] == limits[j] else "the largest weight in the URDF is"
            words = f"the effort reaches {reached:.4g} {unit}, {limit} {allowed[j]:.4g}"
            state.add(Id.EFFORT_BEYOND_LIMIT, words, joint=state.robot.joints[j])


def check_locked(state: Examination) -> None:
    """Reports joints that the project holds at one position and the log at another, if the dynamics depend on it.

    The effect is the largest relative change of a joint's gravity torque (root mean square over poses of the log) or inertia
    (diagonal of the mass matrix), from the URDF's masses.
    """
    recording = state.recording
    poses = _poses(recording)
    for joint, (low, high) in recording.locked.items():
        held, middle = state.robot.locked[joint], 0.5 * (low + high)
        effect, weights = 0.0, gravity_torques(state.robot, poses)
        for place in (low, high):
            lock, robot = {**state.robot.locked, joint: place}, state.robot
            other = Robot.from_urdf(robot.urdf, joints=robot.order, lock=lock, gravity=robot.gravity, mimic=robot.mimic)
            inertia = [np.diagonal(mass_matrices(one, poses), axis1=1, axis2=2) for one in (robot, other)]
            torque, change = rms(weights, 0), rms(gravity_torques(other, poses) - weights, 0)
            loaded = torque > 0.01 * torque.max()
            share = np.abs(inertia[1] - inertia[0]).mean(axis=0) / inertia[0].mean(axis=0)
            effect = float(max(effect, share.max(), (change[loaded] / torque[loaded]).max(initial=0.0)))
        if effect < LOCK_FELT:
            continue
        moves = high - low > SIGN_WIDTH
        where = f"moves from {low:.4g} to {high:.4g}" if moves else f"stands at {middle:.4g}"
        unit = joint_units(state.robot.description.joints[joint].type == "prismatic")["position"]
        state.add(
            Id.LOCKED_JOINT,
            f"the project locks it at {held:.4g} {unit}, in the log it {where} {unit}; "
            f"this changes the gravity torque or inertia of a joint by {100 * effect:.0f} %",
            joint=joint,
            remedy=Remedy(
                "do not lock it (robot.lock, robot.joints)" + ("" if moves else ", or lock it there: {settings}"),
                {} if moves else {f"robot.lock.{joint}": float(middle)},
            ),
            size=effect,
            severity="refused" if effect > LOCK_WRONG else "warning",
        )


def _poses(recording: Recording) -> Array:
    """Some thirty poses of a log, evenly spaced, shape (m, n) [rad or m]."""
    return recording.position[:: max(1, len(recording) // 30)]


def check_position_unit(state: Examination) -> None:
    """Refuses positions in another unit, such as degrees, millimetres or counts; warns of positions beyond the limits."""
    q = state.recording.position
    lower, upper = state.robot.limit("lower"), state.robot.limit("upper")
    stated = np.isfinite(lower) & np.isfinite(upper) & (upper > lower)
    span = np.where(stated, upper - lower, np.inf)
    low, high = reached(q)
    over = np.where(stated, np.maximum(high - upper, lower - low), -np.inf)
    largest = np.maximum(np.abs(low), np.abs(high))
    # a wrong zero or sign also exceeds the limits, but not by a factor
    too_far = (over > 0.2 * span) & (largest > 3 * np.maximum(np.abs(lower), np.abs(upper)))
    speed = _excess_speed(state) if too_far.any() or not stated.all() else np.zeros(state.robot.n)
    implausible, unit, remedy = _likely_unit(state.robot, (low, high), stated, too_far, speed)
    if implausible.any():
        j = int(np.flatnonzero(implausible)[0])
        si = joint_units(state.robot.prismatic[j])["position"]
        beside = f"the URDF's limits are {lower[j]:.4g} to {upper[j]:.4g} {si}" if stated[j] else f"too fast for {si}"
        words = f"positions look like {unit}: they reach {largest[j]:.4g}, and {beside}"
        state.add(Id.POSITION_UNIT, words, joint=state.robot.joints[j], remedy=remedy)
        return
    beyond = (q > upper + 0.01) | (q < lower - 0.01)
    for j in (int(index) for index in np.flatnonzero(beyond.any(axis=0))):
        state.add(
            Id.POSITION_BEYOND_LIMIT,
            f"the position goes from {q[:, j].min():.4g} to {q[:, j].max():.4g}, "
            f"the URDF's limits are {lower[j]:.4g} to {upper[j]:.4g} {joint_units(state.robot.prismatic[j])['position']}",
            joint=state.robot.joints[j],
            at=np.flatnonzero(beyond[:, j]),
        )


def _excess_speed(state: Examination) -> Array:
    """Speed of each joint over the highest of any robot: 30 rad/s (10 m/s), or three times the URDF's limit if that is above
    10 rad/s; shape (n,)."""
    limits = state.robot.limit("velocity")
    top = np.where(np.isfinite(limits), np.maximum(3 * limits, 10.0), np.where(state.robot.prismatic, 10.0, 30.0))
    return np.array([usual_size(x) for x in columns(smooth_speeds(state.recording)[0])]) / top


def _likely_unit(
    robot: Robot, ends: tuple[Array, Array], stated: BoolArray, too_far: BoolArray, speed: Array
) -> tuple[BoolArray, str, Remedy]:
    """Joints whose positions are in another unit, which unit that may be, and what to do.

    Args:
        ends: As of :func:`.samples.reached`.
        stated: Joints whose limits are stated.
        too_far: Joints that exceed their limits by a factor.
        speed: As of :func:`_excess_speed`.
    """
    limits = robot.limit("lower"), robot.limit("upper")
    implausible = too_far | (~stated & (speed > 1))
    normalized = bool(stated.all()) and float(np.abs(ends).max()) <= LARGEST
    for revolute, factor, other in _OTHER_UNITS:
        kind = robot.prismatic != revolute
        fits = (speed[kind & ~stated] <= factor).all() and _within(ends, limits, 1 / factor, stated & kind)
        if (kind & implausible).any() and fits:
            turned = revolute and _within(ends, limits, 1 / (2 * np.pi), stated & kind)
            unit = other + (" (or like rad that are described as rev)" if turned else "")
            lerobot = (
                "; of a LeRobot arm that logs −100 … 100 of each joint's range, `normalized`" if normalized and revolute else ""
            )
            words = f"in the project file: {{settings}} (and `velocity: {other}/s`){lerobot}"
            return implausible & kind, unit, Remedy(words, {"log.units.position": other})
    implausible &= speed > 1
    for revolute, factor, other in _OTHER_UNITS[::-1]:  # of single joints
        alike = implausible & stated & (robot.prismatic != revolute) & (speed <= factor)
        if (alike == implausible).all() and _within(ends, limits, 1 / factor, alike):
            return (
                implausible,
                f"{other}, unlike those of other joints",
                Remedy(f"state it in the column's name: `q_<joint> [{other}]`"),
            )
    if normalized:
        remedy = Remedy(
            "in the project file: {settings}; the range is that of the URDF's limits, or of LeRobot's calibration "
            f"where it lies beside the log as {CALIBRATION}; for degrees, `deg` instead",
            {"log.units.position": "normalized"},
        )
        return (
            implausible,
            "hundredths of each joint's range of motion (−100 … 100, as of LeRobot), or degrees from another zero",
            remedy,
        )
    remedy = Remedy(
        "give their unit, of counts how many make a turn (`log: {units: {position: counts(4096)}}`), or for positions "
        "before the gear `log: {side: {position: motor}}` and `drive: {reduction: ...}`"
    )
    return implausible, "encoder counts, or another unit", remedy


def _within(ends: tuple[Array, Array], limits: tuple[Array, Array], factor: float, joints: BoolArray) -> bool:
    """Whether the positions of some joints, times a factor, lie within their limits, which are widened by 5 %."""
    (low, high), (lower, upper) = (np.stack(pair)[:, joints] for pair in (ends, limits))
    margin = 0.05 * (upper - lower)
    return bool(((factor * low > lower - margin) & (factor * high < upper + margin)).all())


@lru_cache(maxsize=1)  # several checks of a log use it in turn
def smooth_speeds(recording: Recording) -> tuple[list[Array], float]:
    """Computes velocities of each piece between gaps, shape (N, n) [rad/s or m/s], from positions, and their rate [Hz]."""
    pieces, clock = even_pieces(recording)
    cutoff = min(10.0, HIGHEST * clock.rate)
    return [differentiate(lowpass(piece.position, clock.rate, cutoff), clock.rate) for piece in pieces], clock.rate


def check_motion(state: Examination) -> None:
    """Refuses a log in which (almost) nothing moves; reports joints at rest."""
    speeds, rate = smooth_speeds(state.recording)
    threshold = SIGN_WIDTH * np.where(state.robot.prismatic, 0.05, 0.25)
    moving = np.concatenate([(speed > threshold) | (speed < -threshold) for speed in speeds])
    seconds = float(moving.any(axis=1).sum() / rate)
    total = len(moving) / rate
    low, high = reached(state.recording.position)
    if seconds < min(0.5, 0.2 * total) or (high - low < 0.5 * threshold).all():
        state.add(
            Id.AT_REST,
            f"the robot does not move: no joint is faster than {threshold.max():.2g} rad/s (m/s) for long in {total:.3g} s"
            f"{_of_smaller_unit(state.robot, (low, high), threshold)}",
        )
        return
    if seconds < SHORTEST:
        state.add(Id.TOO_SHORT, f"the log holds {seconds:.2g} s of motion", remedy=f"record {SHORT:g} s or more")
    elif seconds < SHORT:
        words = f"the log holds {seconds:.2g} s of motion"
        state.add(Id.SHORT, words, remedy=f"record {SHORT:g} s or more", size=seconds)
    for j in np.flatnonzero(moving.mean(axis=0) * len(moving) < 0.1 * rate):
        exact = " (not even by one encoder step)" if np.ptp(state.recording.position[:, j]) == 0 else ""
        state.add(
            Id.JOINT_AT_REST, f"the joint does not move{exact}: its friction cannot be identified", joint=state.robot.joints[j]
        )


def _of_smaller_unit(robot: Robot, ends: tuple[Array, Array], threshold: Array) -> str:
    """What positions that hardly move may be in: m described as mm, or rad described as degrees; empty if in neither."""
    (low, high), limits = ends, (robot.limit("lower"), robot.limit("upper"))
    for revolute, factor, other in _OTHER_UNITS[::-1]:
        kind = robot.prismatic != revolute
        moves = (high - low) * factor > np.maximum(threshold, 0.05 * (limits[1] - limits[0]))
        if (moves & kind).any() and _within(ends, limits, factor, kind):
            si = joint_units(not revolute)["position"]
            fits = f"; times {factor:.3g} the positions would move within the URDF's limits"
            return f"{fits}: are they in {si}, described as {other}?"
    return ""


def check_velocity(state: Examination) -> None:
    """Compares logged velocities with dq/dt: joint order, sign, unit, scale, lag; removes those that cannot be trusted."""
    recording, robot = state.recording, state.robot
    if recording.velocity is None:
        return
    pieces, clock = even_pieces(recording)
    piece, speeds = max(zip(pieces, smooth_speeds(recording)[0], strict=True), key=lambda pair: len(pair[0]))
    if piece.velocity is None or len(piece) < 64:
        return
    match = match_velocity(piece.position, piece.velocity, clock.rate, min(10.0, HIGHEST * clock.rate))
    moves = np.array([fast_speed(speed) > SIGN_WIDTH for speed in speeds.T])
    if not moves.any():
        return

    def ignore(id: Id, message: str, remedy: Remedy | None = None) -> None:
        use = remedy or Remedy("check the columns and their unit")
        state.add(id, f"{message}; logged velocities are not used", remedy=use, severity="repaired")
        state.recording = replace(recording, velocity=None)

    constant = moves & (np.ptp(piece.velocity, axis=0) == 0)
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
        known = np.array([*units, *(ten for ten in 10.0 ** np.arange(-3, 4) if ten != 1 and ten not in units)])
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
