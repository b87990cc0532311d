"""Positions in −100 … 100 of each joint's range of motion, the default of LeRobot."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from ...errors import LogError
from ...files.documents import parse_json
from ...files.read_write import allowed, read_text
from ...linalg import Array
from ...model.robot import Robot

#: Name of a calibration file of LeRobot beside a log, and steps of its encoders per turn.
CALIBRATION, _STEPS = "calibration.json", 4096
#: Largest magnitude of a normalised position, which LeRobot clips at 100.
LARGEST = 100.5


def joint_ranges(robot: Robot, log: str | Path) -> tuple[Array, Array, str]:
    """Half the range and the middle of the range of motion of each joint.

    The width is that of a LeRobot calibration file ``calibration.json`` beside the log (or in its data set, or its ``meta``)
    if there is one, otherwise that of the URDF's limits. The middle is that of the URDF's limits, as the zero of a calibration
    is not that of the URDF; without limits it is 0.

    Args:
        log: Path of the log.

    Returns:
        Two arrays of shape (n,) [rad or m], and where they come from.

    Raises:
        LogError: A joint has no limits and is not in a calibration file.
    """
    lower, upper = (np.where(np.isfinite(limit), limit, np.nan) for limit in (robot.limit("lower"), robot.limit("upper")))
    half, middle, origin = (upper - lower) / 2, (upper + lower) / 2, "the limits of the URDF"
    folder = Path(log).parent
    file = next((path for place in (folder, folder / "meta") if (path := allowed(place / CALIBRATION, [folder]))), None)
    if file is not None:
        calibration = parse_json(read_text(file, "calibration"), str(file), LogError, "calibration")
        for j, joint in enumerate(robot.joints):
            about = calibration.get(joint) if isinstance(calibration, dict) else None
            try:
                half[j] = half[j] if about is None else float(about["range_max"] - about["range_min"]) * np.pi / _STEPS
            except (TypeError, KeyError) as error:
                got = json.dumps(about)[:60]
                where, expected = str(file), "range_min and range_max"
                raise LogError("not a calibration of LeRobot", where=where, got=got, expected=expected) from error
        origin = f"the calibration {file.name}"
    unknown = [joint for joint, width in zip(robot.joints, half, strict=True) if not np.isfinite(width) or width <= 0]
    if unknown:
        raise LogError(
            f"the range of {', '.join(unknown)} is not known, of which its positions are hundredths",
            where=str(log),
            expected=f"limits in the URDF, or LeRobot's calibration as {CALIBRATION} beside the log",
            remedy="copy it there, or lock what did not move",
        )
    return half, np.where(np.isfinite(middle), middle, 0.0), origin
