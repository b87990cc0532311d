"""Torque constants, found before the estimation: from a known payload, or from the logged targets of the controller."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ...data.conditioning.config import SignalConfig
from ...data.prepare import prepare_logs
from ...data.recording import Recording
from ...data.torque_constants.gains import resolve_gain
from ...errors import ModelError
from ...model.drive import Drive
from ...model.dynamic_model import DynamicModel
from ...model.elasticity import ElasticModel
from ...model.payload import Payload
from .total_least_squares import drive_gains


def without_constants(drive: Drive) -> Drive:
    """Returns a drive that leaves efforts in the unit in which they are logged.

    Args:
        drive: The drive of the project.

    Returns:
        The same with torque constants of one.
    """
    return replace(drive, gain=np.ones(drive.n), gain_origin="one, until the payload sets the scale")


def resolve_drive(
    model: DynamicModel,
    logs: Sequence[Recording],
    payload: Payload | None,
    config: SignalConfig | None = None,
    *,
    force: bool = False,
) -> Drive:
    """Returns the drive with its torque constants, found from a known payload or the logged targets of the controller.

    Args:
        model: The model with the drive of the project.
        logs: The logs as read.
        payload: A known payload, or None.
        config: Conditioning.
        force: Use logs in spite of findings that refuse them.

    Returns:
        The same drive, or one whose ``gain_origin`` gives the source of each constant.

    Raises:
        LogError: No constants can be found in the logs' targets.
        EstimationError: Not enough logs with or without the payload, or a joint that it does not load.
        ModelError: Elastic joints, or coupled axes whose efforts are not logged at the motors.
    """
    drive = model.drive
    current = any(not log.effort_is_torque for log in logs)
    wanted = drive.gain_origin == "auto" or (current and drive.gain_origin == "effort is a torque")
    if payload is None or not wanted:
        return resolve_gain(drive, logs)
    if isinstance(model, ElasticModel):
        raise ModelError(
            "torque constants from a payload are for rigid joints",
            where="drive.payload",
            remedy="give drive.gain, or identify as rigid first",
        )
    if drive.coupled.any() and any(log.effort_side != "motor" for log in logs):
        raise ModelError(
            "coupled axes need efforts logged at the motors", where="log.side.effort", got="joint", expected="motor"
        )
    unit = model.unloaded().with_drive(without_constants(drive))
    prepared = prepare_logs(logs, model.robot, unit.drive, config or SignalConfig(), force=force)
    found = drive_gains(unit, prepared, unit.base(), payload)
    return replace(drive, gain=found.gain, gain_origin=found.describe(), gain_error=np.abs(found.std_error / found.gain))
