"""Do two encoders a joint show a spring: gear ratio, which encoder is which, and whether the deflection can be read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import LogError
from ..linalg import Array
from ..model.drive import Drive
from ..samples import Segment
from .recording import Recording

#: By how much motor and link travel may differ before the gear ratio is wrong, a fraction.
_RATIO_SLACK = 0.1
#: Correlation of torque and deflection below which the spring gives work instead of taking it.
_SWAPPED = -0.3


@dataclass(frozen=True)
class Deflection:
    """How a joint's spring moves, and how finely that is read.

    Attributes:
        joint: Name of the joint.
        rms: Deflection after the gear about its mean, root mean square [rad or m].
        count: The coarser of the two encoders' steps, after the gear [rad or m]; 0 if no step is visible.
        least: Deflections of fewer counts are mostly the encoders' own error: no stiffness is read from them.
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
        """Whether the stiffness can be told from this log."""
        return self.counts >= self.least

    def as_dict(self) -> dict[str, Any]:
        """The deflection for JSON."""
        return {"joint": self.joint, "deflection_rms": self.rms, "encoder_step": self.count, "deflection_counts": self.counts}


def encoder_step(position: Array) -> float:
    """Step of an encoder (or of the digits it was logged with), from the values themselves.

    Args:
        position: Shape (N,), any unit.

    Returns:
        Their typical smallest difference; 0 for a signal that does not move.
    """
    steps = np.diff(np.unique(position[np.isfinite(position)]))
    steps = steps[steps > 1e-12 * max(float(np.ptp(position)), 1e-300)]
    few = min(3, len(steps) - 1)  # not the very smallest: a repaired sample lies between the steps
    return float(np.partition(steps, few)[few]) if len(steps) else 0.0


def deflections(
    recording: Recording, segments: Sequence[Segment], drive: Drive, *, step: float | None = None, least: float = 10.0
) -> tuple[Deflection, ...]:
    """How far each spring moves, in encoder counts.

    Args:
        recording: The log on the joint side, positions as the encoders gave them.
        segments: Its conditioned pieces, with the motor side.
        drive: The drive train.
        step: Encoder step after the gear [rad or m]; from the log if None.
        least: Counts that a deflection needs in order to be read.

    Returns:
        One entry per joint.

    Raises:
        LogError: The log has no motor positions.
    """
    motor = _motor_position(recording)
    steps = [encoder_step(position) for position in recording.position.T]
    found = []
    for joint, row in zip(recording.joints, drive.geared, strict=True):
        apart = np.concatenate([(part.qm - part.q) @ row for part in segments if part.qm is not None])
        coarse = step if step is not None else float(max(*np.abs(row) * steps, encoder_step(motor @ row)))
        found.append(Deflection(joint, float(np.std(apart)), coarse, least))
    return tuple(found)


def check_gears(recording: Recording, drive: Drive) -> None:
    """Refuses a log whose motors do not turn as the gear ratios say.

    Args:
        recording: The log on the joint side, motor positions after the gear.
        drive: The drive train that brought them there.

    Raises:
        LogError: No motor positions; swapped encoders, a missing or a wrong gear ratio, with what the log says.
    """
    motor = _motor_position(recording)
    for j, joint in enumerate(recording.joints):
        if drive.coupled[j]:
            _check_coupled(recording, motor @ drive.reduction[j], j, drive)
            continue
        q, m = recording.position[:, j], motor[:, j]
        good = np.isfinite(q) & np.isfinite(m)
        q, m = q[good] - q[good].mean(), m[good] - m[good].mean()
        if np.ptp(q) < 1e-3 and np.ptp(m) < 1e-3:
            continue
        slope = float(q @ m) / max(float(q @ q), 1e-300)
        ratio = float(drive.reduction[j, j])
        turned = slope * ratio  # motor rad per joint rad, as logged
        if abs(slope - 1.0) <= _RATIO_SLACK:
            continue
        if abs(turned * ratio - 1.0) <= _RATIO_SLACK:
            what, remedy = "motor and link positions are swapped", "exchange their columns"
        elif ratio == 1.0:
            what, remedy = "the gear ratio is missing", f"give drive.reduction: about {turned:.4g} for this joint"
        else:
            what, remedy = "the gear ratio does not fit the log", f"the log says {turned:.4g}: correct drive.reduction"
        raise LogError(
            what,
            where=_where(recording, joint),
            got=f"a motor that turns {turned:.4g} times as far as the joint",
            expected=f"{ratio:.4g} times",
            remedy=remedy,
        )


def _check_coupled(recording: Recording, motor: Array, j: int, drive: Drive) -> None:
    """The same for a motor that moves several joints: all its ratios at once, as far as the motion tells them apart."""
    row = drive.reduction[j]
    good = np.isfinite(recording.position).all(axis=1) & np.isfinite(motor)
    q, m = recording.position[good], motor[good]
    moving = (row != 0) & (np.ptp(q, axis=0) > 1e-3)
    q, m = q - q.mean(axis=0), m - m.mean()
    seen = row.copy()
    seen[moving] += np.linalg.lstsq(q[:, moving], m - q @ row, rcond=1e-3)[0]
    if np.abs(seen - row).max() > _RATIO_SLACK * np.abs(row).max():
        raise LogError(
            "the gear ratios do not fit the log",
            where=_where(recording, recording.joints[j]),
            got=f"a motor that turns as [{', '.join(f'{value:.4g}' for value in seen)}] times the joints",
            expected=f"[{', '.join(f'{value:.4g}' for value in row)}]",
            remedy="correct this row of drive.reduction; are motor and link positions swapped?",
        )


def check_springs(recording: Recording, segments: Sequence[Segment], found: Sequence[Deflection], drive: Drive) -> None:
    """Refuses a log whose springs give work: torque that winds them up comes with a deflection of the wrong sign.

    Inertia, friction and offset of the motor are taken out of both first.

    Args:
        recording: The log, for messages.
        segments: Its conditioned pieces, with torque and motor side.
        found: The deflections; those that are not read cannot tell.
        drive: The drive train.

    Raises:
        LogError: Motor and link encoders of a joint are swapped.
    """
    for item, to_motor, to_torque in zip(found, drive.geared, np.linalg.inv(drive.geared).T, strict=True):
        if not item.seen:
            continue
        rows = []
        for part in segments:
            if part.qm is None or part.vm is None or part.am is None or part.tau is None:
                continue
            speed = part.vm @ to_motor
            own = (part.am @ to_motor, speed, np.tanh(speed / 0.02), np.ones(len(part)))
            rows.append(np.column_stack([*own, (part.qm - part.q) @ to_motor, part.tau @ to_torque]))
        stacked: Array = np.vstack(rows)
        R = np.asarray(np.linalg.qr(stacked / np.maximum(np.linalg.norm(stacked, axis=0), 1e-300), mode="r"))
        spring, torque = R[4:, 4], R[4:, 5]
        correlation = float(spring @ torque) / max(float(np.linalg.norm(spring) * np.linalg.norm(torque)), 1e-300)
        if correlation < _SWAPPED:
            raise LogError(
                "motor and link encoders are swapped",
                where=_where(recording, item.joint),
                got=f"torque against deflection: the spring gives work (correlation {correlation:.2f})",
                remedy="exchange the columns of position and motor position",
            )


def visible_stiffness(torque: Array, step: Array | float, least: float = 10.0) -> Array:
    """The stiffest spring that encoders could show under a given torque.

    Args:
        torque: Torque through each spring, root mean square about its mean, shape (n,) [N·m or N].
        step: Encoder step after the gear, a number or shape (n,) [rad or m].
        least: Counts that a deflection needs in order to be read.

    Returns:
        Shape (n,) [N·m/rad or N/m]; a stiffer joint would be reported as unseen.
    """
    return np.asarray(np.abs(torque) / (least * np.maximum(np.asarray(step, dtype=float), 1e-300)))


def _motor_position(recording: Recording) -> Array:
    if recording.motor_position is None:
        raise LogError(
            "the log has no motor positions, and the joints are modelled as elastic",
            where=recording.path or recording.name,
            expected=f"qm_{recording.joints[0]}, … before the gear",
            remedy="log them, or set model.elastic: false",
        )
    return recording.motor_position


def _where(recording: Recording, joint: str) -> str:
    return f"{recording.path or recording.name}, joint '{joint}'"
