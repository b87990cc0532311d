"""What a result takes from the description of the logs, because the data do not test it.

Such an error leaves no trace in the residual, so that a good result may contain it. It does not lower the verdict, but is
stated with it.
"""

from __future__ import annotations

from ..record import Record
from .scale_reasons import gains_estimated

#: Relative standard error of the common scale up to which the ratio to the URDF's masses is stated.
_TELLING = 0.25
#: Number of joints up to which they are named.
_NAMED = 3

#: What an error in something that was not tested does.
CONSEQUENCE = "a wrong unit, torque constant or clock changes masses and friction, but not the torque errors"


def untested(ident: Record) -> tuple[str, ...]:
    """Returns what the data do not test, in words.

    Returns:
        Phrases; none if there is nothing.
    """
    clock = ["the clock"] if _open(ident, "time-scale-open") else []
    return (*_common_scale(ident), *clock, *(f"the effort scale of {whose}" for whose in _open(ident, "effort-scale-open")))


def _common_scale(ident: Record) -> list[str]:
    """The scale of all torques together, with the ratio of the masses to the URDF's."""
    if ident.project.drive.scale_known or gains_estimated(ident):
        return []
    scale = None if ident.evidence is None else ident.evidence.scale
    return [
        "the scale of all efforts together"
        + (f" (masses {scale} × the URDF's)" if scale is not None and scale.error < _TELLING else "")
    ]


def _open(ident: Record, id: str) -> list[str]:
    """Whose efforts a finding about what a log does not determine concerns; empty unless all logs have it for some joint."""
    found = [[item for item in log.get("findings", ()) if item["id"] == id] for log in ident.inputs]
    if not found or not all(found):
        return []
    of_logs = [{joint for item in own for joint in item.get("joints") or [item.get("joint")]} for own in found]
    open_ = set.intersection(*of_logs)
    joints = [joint for joint in ident.model.robot.joints if joint in open_]
    return [", ".join(joints) if 0 < len(joints) <= _NAMED else "single joints"] if open_ else []
