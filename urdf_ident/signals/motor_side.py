"""Checks of logs with motor and link encoders: gear ratios, swapped encoders, resolution of the deflection."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pinocchio as pin

from ..errors import LogError, nearest
from ..linalg import Array, positive, unit_columns
from ..logs.recording import Recording
from ..model.drive import Drive
from ..model.robot import Robot
from ..samples import Segment
from .resolution import resolution

#: Relative difference of motor and link travel above which the gear ratio is wrong.
_RATIO_TOLERANCE = 0.1
#: Correlation of torque and deflection below which the spring would have negative stiffness: the encoders are swapped.
_SWAPPED = -0.3


def joint_side(recording: Recording, drive: Drive) -> Recording:
    """Converts a recording to the joint side, with efforts as joint torques [N·m, N] and the motor side after the gear.

    Raises:
        LogError: The effort is a current, voltage or fraction and no gain is known, or the gain is for another of these.
    """
    if not recording.effort_is_torque and drive.gain_origin in ("effort is a torque", "auto"):
        raise LogError(
            f"the effort is in {recording.effort_unit}, not a torque",
            where=recording.where,
            remedy=f"give drive.gain [N·m per {recording.effort_unit}] in the project file, or name the controller's target "
            "current and torque (log.columns.effort_target, torque_target): their ratio at rest is the gain",
        )
    unit, known = recording.effort_unit, drive.effort_unit
    same_unit = known in (None, unit) or (recording.effort_is_torque and known in ("N·m", "N"))
    if recording.effort is not None and not same_unit:
        raise LogError(
            "the torque constants are for efforts in another unit",
            where=recording.where,
            got=f"efforts in {unit}",
            expected=f"{known}, as in the training logs",
            remedy=f"if these are in {known} too, state it: `log: {{units: {{effort: {known}}}}}`; otherwise "
            f"give a section `drive` for them with its gain [N·m per {unit}{', 1' if recording.effort_is_torque else ''}] and "
            "gears, in a project file (`-c`)",
        )
    on_motor = recording.position_side == "motor"

    def rate(values: object) -> object:
        return values if values is None else drive.joint_rate(values)  # type: ignore[arg-type]

    changes: dict[str, object] = {"position_side": "joint", "effort_side": "joint"}
    if on_motor:
        changes["position"] = drive.joint_position(recording.position)
        if recording.position_target is not None:
            changes["position_target"] = drive.joint_position(recording.position_target)
        changes["velocity"], changes["acceleration"] = rate(recording.velocity), rate(recording.acceleration)
    elif recording.motor_position is None and drive.offset.any():  # a zero that was found to be another
        changes["position"] = recording.position + drive.offset
        if recording.position_target is not None:
            changes["position_target"] = recording.position_target + drive.offset
    if recording.motor_position is not None:
        changes["motor_position"] = drive.joint_position(recording.motor_position)
    changes["motor_velocity"] = rate(recording.motor_velocity)
    if recording.effort is not None:
        changes["effort"] = drive.joint_torque(recording.effort, recording.effort_side)
        changes["effort_unit"] = "N·m"
    return replace(recording, **changes)  # type: ignore[arg-type]


def external_torque(recording: Recording, robot: Robot) -> Array | None:
    """Joint torques of the measured external wrenches, shape (N, n) [N·m or N], or None if the log contains no wrench.

    Args:
        recording: A log on the joint side; its wrenches act on the robot and are expressed in their own frames.

    Raises:
        LogError: The frame of a wrench is not a link or joint of the robot.
    """
    if not recording.wrenches:
        return None
    model, data = robot.model, robot.model.createData()
    torque = np.zeros(recording.position.shape)
    for frame, wrench in recording.wrenches.items():
        if not model.existFrame(frame):
            raise LogError(
                f"the wrench of '{frame}' acts on no link of the robot",
                where=recording.where,
                remedy=nearest(frame, [known.name for known in model.frames]),
            )
        index = model.getFrameId(frame)
        for k, q in enumerate(robot.configuration(recording.position)):
            jacobian = pin.computeFrameJacobian(model, data, q, index, pin.ReferenceFrame.LOCAL)
            torque[k] += robot.reduced(np.asarray(jacobian).reshape(6, -1)).T @ wrench[k]
    return torque


@dataclass(frozen=True)
class Deflection:
    """Deflection of a joint's spring and the resolution with which it is measured.

    Attributes:
        rms: Standard deviation of the deflection after the gear [rad or m].
        count: Step of the coarser encoder, after the gear [rad or m]; 0 if no step is visible.
        least: Minimum number of counts to estimate a stiffness; smaller deflections are mostly encoder error.
    """

    joint: str
    rms: float
    count: float
    least: float

    @property
    def counts(self) -> float:
        """Deflection in encoder counts."""
        return self.rms / self.count if self.count > 0 else (np.inf if self.rms > 0 else 0.0)

    @property
    def seen(self) -> bool:
        """Whether the stiffness can be estimated from this log."""
        return self.counts >= self.least

    def as_dict(self) -> dict[str, Any]:
        return {"joint": self.joint, "deflection_rms": self.rms, "encoder_step": self.count, "deflection_counts": self.counts}


def deflections(
    recording: Recording, segments: Sequence[Segment], drive: Drive, *, step: float | None = None, least: float = 10.0
) -> tuple[Deflection, ...]:
    """Deflection of each spring, in encoder counts.

    Args:
        recording: The log on the joint side, with unfiltered positions.
        segments: Its conditioned pieces, with the motor side.
        step: Encoder step after the gear [rad or m]; from the log if None.
        least: Minimum number of counts to estimate a stiffness.

    Returns:
        One entry per joint.

    Raises:
        LogError: The log has no motor positions.
    """
    motor = require_motor_positions(recording)
    steps = [resolution(position) for position in recording.position.T]
    springs = []
    for joint, row in zip(recording.joints, drive.geared, strict=True):
        apart = np.concatenate([(segment.qm - segment.q) @ row for segment in segments if segment.qm is not None])
        coarse = step if step is not None else float(max(*np.abs(row) * steps, resolution(motor @ row)))
        springs.append(Deflection(joint, float(np.std(apart)), coarse, least))
    return tuple(springs)


def require_effect(recordings: Sequence[Recording], drive: Drive, *, motors_used: bool = False) -> None:
    """Refuses gear ratios and zeros that change nothing.

    Ratios of uncoupled motors do not matter to logs of the joints alone. Where logs hold the positions of motors besides those
    of the joints, zeros are those of the motors, which a rigid model does not use.

    Args:
        recordings: As read.
        drive: That of the project.
        motors_used: Whether the model uses motor positions besides those of the joints.

    Raises:
        LogError: No log needs the ratios or the zeros; names the settings that do.
    """
    both = [log.position_side == "joint" and log.motor_position is not None for log in recordings]
    if both and all(both) and drive.offset.any() and not motors_used:
        raise LogError(
            "drive.joint_offset has no effect, because the logs hold joint positions too, and a rigid model uses no others",
            where=recordings[0].where,
            remedy="give `model: {elastic: true}`, or leave the motor columns out, so that it is added to the positions "
            "(`log: {side: {position: motor}}` if those are theirs), or leave drive.joint_offset out",
        )
    if drive.coupled.any() or (drive.ratio == 1.0).all():
        return
    at_joints = (recording.position_side == recording.effort_side == "joint" for recording in recordings)
    alone = (recording.motor_position is None and recording.motor_velocity is None for recording in recordings)
    if recordings and all(at_joints) and all(alone):
        raise LogError(
            "drive.reduction has no effect, because positions and efforts are described as those of the joints",
            where=recordings[0].where,
            remedy="give `log: {side: {position: motor}}` or `log: {side: {effort: motor}}` for what was logged at the motors, "
            "or leave drive.reduction out",
        )


def check_gears(recording: Recording, drive: Drive) -> None:
    """Refuses a log whose motor positions contradict the gear ratios.

    Args:
        recording: The log on the joint side, motor positions after the gear.

    Raises:
        LogError: No motor positions; swapped encoders, a missing or a wrong gear ratio, with the ratio found in the log.
    """
    motor = require_motor_positions(recording)
    for j, joint in enumerate(recording.joints):
        row, ratio = drive.reduction[j], float(drive.reduction[j, j])
        logged = motor @ row if drive.coupled[j] else motor[:, j] * ratio
        good = np.isfinite(recording.position).all(axis=1) & np.isfinite(logged)
        q, m = recording.position[good], logged[good]
        moving = (row != 0) & (np.ptp(q, axis=0) > 1e-3)
        q, m = q - q.mean(axis=0), m - m.mean()
        seen = row.copy()  # travel of the motor per travel of each joint, all at once as far as the motion excites them
        seen[moving] += np.linalg.lstsq(q[:, moving], m - q @ row, rcond=1e-3)[0]
        if np.abs(seen - row).max() <= _RATIO_TOLERANCE * np.abs(row).max():
            continue
        turned = f"{seen[j]:.4g}"
        what, got, expected = "the gear ratio does not fit the log", f"{turned} times as far as the joint", f"{ratio:.4g} times"
        remedy = f"the log says {turned}: correct drive.reduction"
        if drive.coupled[j]:
            what = "the gear ratios do not fit the log"
            got, expected = (f"[{', '.join(f'{value:.4g}' for value in ratios)}] times the joints" for ratios in (seen, row))
            remedy = "correct this row of drive.reduction; are motor and link positions swapped?"
        elif abs(seen[j] * ratio - 1.0) <= _RATIO_TOLERANCE:
            what, remedy = "motor and link positions are swapped", "exchange their columns"
        elif ratio == 1.0:
            what, remedy = "the gear ratio is missing", f"give drive.reduction: about {turned} for this joint"
        raise LogError(what, where=_where(recording, joint), got=f"a motor that turns {got}", expected=expected, remedy=remedy)


def check_springs(recording: Recording, segments: Sequence[Segment], springs: Sequence[Deflection], drive: Drive) -> None:
    """Refuses a log in which torque and spring deflection have opposite signs.

    The contributions of motor inertia, friction and offset are projected out of both first.

    Args:
        segments: Its conditioned pieces, with torque and motor side.
        springs: The deflections; those below the resolution are not checked.

    Raises:
        LogError: Motor and link encoders of a joint are swapped.
    """
    for deflection, to_motor, to_torque in zip(springs, drive.geared, np.linalg.inv(drive.geared).T, strict=True):
        if not deflection.seen:
            continue
        rows = []
        for segment in segments:
            if segment.qm is None or segment.vm is None or segment.am is None or segment.tau is None:
                continue
            speed = segment.vm @ to_motor
            of_motor = (segment.am @ to_motor, speed, np.tanh(speed / 0.02), np.ones(len(segment)))
            rows.append(np.column_stack([*of_motor, (segment.qm - segment.q) @ to_motor, segment.tau @ to_torque]))
        stacked: Array = np.vstack(rows)
        R = np.asarray(np.linalg.qr(unit_columns(stacked), mode="r"))
        spring, torque = R[4:, 4], R[4:, 5]
        correlation = float(spring @ torque) / positive(float(np.linalg.norm(spring) * np.linalg.norm(torque)))
        if correlation < _SWAPPED:
            raise LogError(
                "motor and link encoders are swapped",
                where=_where(recording, deflection.joint),
                got=f"torque against deflection: the spring gives work (correlation {correlation:.2f})",
                remedy="exchange the columns of position and motor position",
            )


def visible_stiffness(torque: Array, step: Array | float, least: float = 10.0) -> Array:
    """Largest stiffness that the encoders can resolve under a given torque.

    Args:
        torque: Standard deviation of the torque through each spring, shape (n,) [N·m or N].
        step: Encoder step after the gear, a number or shape (n,) [rad or m].
        least: Minimum number of counts to estimate a stiffness.

    Returns:
        Shape (n,) [N·m/rad or N/m]; the stiffness of a stiffer joint cannot be estimated.
    """
    return np.asarray(np.abs(torque) / (least * positive(np.asarray(step, dtype=float))))


def require_motor_positions(
    recording: Recording,
    problem: str = "the log has no motor positions, and the joints are modelled as elastic",
    remedy: str = "log them, or set model.elastic: false",
) -> Array:
    """Motor positions of a log, as logged, shape (N, n); if it has none, a LogError with these words."""
    if recording.motor_position is None:
        raise LogError(problem, where=recording.where, expected=f"qm_{recording.joints[0]}, … before the gear", remedy=remedy)
    return recording.motor_position


def _where(recording: Recording, joint: str) -> str:
    return f"{recording.where}, joint '{joint}'"
