"""First stage: resolves torque constants and conditioning, and cuts the logs into segments for estimation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from ..errors import UrdfIdentError
from ..estimation.elastic import check_motors
from ..estimation.estimators.payload_gains import resolve_drive
from ..faults.delay.profile import delay_findings, unreported
from ..faults.thinned_logs import forget
from ..linalg import rms
from ..logs.recording import Recording
from ..logs.refusals import LeftOut, each_usable
from ..model.dynamic_model import DynamicModel
from ..model.payload import Payload
from ..project import Project
from ..result.evidence.evidence import Range
from ..samples import Segment, columns, fast_speed, one_way
from ..signals.config import SignalConfig
from ..signals.motor_side import require_effect
from ..signals.prepare import PreparedLog, prepare_log, prepare_logs
from .examine import check_physics, with_known_delays


@dataclass(frozen=True, eq=False)
class Prepared:
    """Logs ready for estimation.

    Attributes:
        logs: The conditioned logs, known payloads compensated.
        signals: The conditioning as resolved, with reasons: ``signals`` of identification.json.
        trained: Speeds, accelerations and torques of the logs.
    """

    model: DynamicModel
    logs: Sequence[PreparedLog]
    signals: Mapping[str, Any]
    trained: Range

    @property
    def motion(self) -> list[Segment]:
        """All segments of all logs."""
        return [part for log in self.logs for part in log.segments]


def prepare(
    model: DynamicModel,
    logs: Sequence[Recording],
    project: Project,
    force: bool = False,
) -> Prepared:
    """Resolves torque constants and conditioning, and prepares the logs with them.

    Args:
        logs: Logs as read.
        force: Use logs in spite of findings that refuse them.

    Raises:
        QualityError: A log is refused.
        LogError: A log lacks a required channel.
    """
    check_motors(model, logs)
    require_effect(logs, model.drive)
    payload = project.build_payload(model.robot)
    model = model.with_drive(resolve_drive(model, logs, payload, project.signal_config(), force=force))
    config = project.signal_config()
    loaded = prepare_logs(logs, model.robot, model.drive, config, force=force, payload=payload)
    late: dict[str, Any] = {}
    if model.is_rigid:  # the checks support rigid joints only
        loaded = check_physics(loaded, model.robot, config, reduction=model.drive.reduction, payload=payload, force=force)
        loaded, late = _without_delay(model, logs, loaded, config, payload, force)
        forget(part for log in loaded for part in log.examined.segments)
    trained = trained_range(loaded)
    signals = _signals(loaded, trained)
    if late:
        signals = {**signals, "delay": late, "why": [*signals["why"], f"delay: {late['why']}"]}
    return Prepared(model, loaded, signals, trained)


def prepare_usable(
    model: DynamicModel,
    logs: Sequence[Recording],
    project: Project,
    force: bool = False,
) -> tuple[Prepared, list[LeftOut]]:
    """Runs :func:`prepare` without the logs that it refuses.

    Settings chosen from all logs together are chosen again without them.

    Args:
        logs: Logs as read.
        force: Use logs in spite of findings that refuse them; logs that cannot be conditioned are still left out.

    Returns:
        The prepared logs, and those that are left out, each with the reason.

    Raises:
        QualityError: Every log is refused.
        LogError: All logs lack a required channel, or the logs do not fit together.
    """
    left: list[LeftOut] = []
    while True:
        try:
            return prepare(model, logs, project, force), left
        except UrdfIdentError as error:
            refused = [log for log in logs if log.name in error.logs]
            if not refused or len(refused) == len(logs):
                raise
            left += [LeftOut.of(log, error.logs[log.name]) for log in refused]
            logs = [log for log in logs if log.name not in error.logs]


def _without_delay(
    model: DynamicModel,
    logs: Sequence[Recording],
    loaded: Sequence[PreparedLog],
    config: SignalConfig,
    payload: Payload | None,
    force: bool,
) -> tuple[list[PreparedLog], dict[str, Any]]:
    """Removes the delay of the efforts where it is to be estimated and the logs show it clearly.

    No delay is estimated from logs that contradict physics in another way. One that may be longer than estimated is taken out,
    and told as well.
    """
    if any(finding.severity == "refused" for log in loaded for finding in log.report.findings):
        return list(loaded), {}
    seen = [(log.examined.segments, log.examined.band) for log in loaded]
    found, apart = delay_findings(model.robot, seen, model.drive.reduction)
    if found is None:
        return list(loaded), {}
    given = 0.0 if config.delay == "auto" else float(config.delay)
    taken_out = config.delay == "auto" and found.decided
    shift = found.seconds if taken_out else given
    if taken_out:
        shifted = replace(config, delay=shift)
        loaded = prepare_logs(logs, model.robot, model.drive, shifted, force=force, payload=payload)
        loaded = check_physics(loaded, model.robot, shifted, reduction=model.drive.reduction, payload=payload, force=force)
    common = () if taken_out and found.inside else found.findings()
    out = []
    for log, late in zip(loaded, with_known_delays(loaded, model.robot, [(*common, *own) for own in apart]), strict=True):
        new = unreported(late, log.report.findings)
        out.append(replace(log, report=replace(log.report, findings=(*log.report.findings, *new))))
    taken = f"; {1e3 * shift:.3g} ms were taken out" if shift else ""
    return out, {**found.as_dict(), "compensated": shift, "why": found.describe() + taken}


def prepare_each(
    recordings: Sequence[Recording], model: DynamicModel, project: Project, config: SignalConfig, force: bool
) -> list[PreparedLog]:
    """Conditions logs one by one, because their velocities may come from different sources, without their known payload.

    Args:
        model: Gives the robot and the drive with its torque constants.
        config: That of the training logs, or of predictions (:meth:`.Project.scoring_config`).
        force: Use logs in spite of findings that refuse them.

    Raises:
        QualityError: A log is refused.
    """
    payload = project.build_payload(model.robot)
    one = partial(prepare_log, robot=model.robot, drive=model.drive, config=config, force=force, payload=payload)
    return each_usable(one, recordings)


def trained_range(logs: Sequence[PreparedLog]) -> Range:
    """Returns the ranges of speeds, accelerations and torques of prepared logs.

    Args:
        logs: The logs, with torques.

    Returns:
        Quantiles and peaks per joint.
    """
    parts = [part for log in logs for part in log.segments]
    speed, acceleration = (
        np.array([fast_speed(x) for x in columns([getattr(part, name) for part in parts])]) for name in ("v", "a")
    )
    sizes = [(np.abs(x).max(), rms(x)) for x in columns([part.measured for part in parts])]
    one_direction = np.array([one_way(v) for v in columns([part.v for part in parts])])
    torque, load = np.array(sizes).T
    return Range(speed, acceleration, torque, load, one_direction)


def _signals(logs: Sequence[PreparedLog], trained: Range) -> dict[str, Any]:
    first = logs[0].conditioned
    return {
        "rate": first.rate,
        "cutoff": first.cutoff,
        "decimate": first.decimate_rate,
        "velocity": {log.name: log.conditioned.velocity_source for log in logs},
        "speed": trained.speed,
        "load": trained.load,
        "why": [f"{key}: {text}" for key, text in dict(first.why).items()]
        + [f"periodic: {log.name}: {log.conditioned.why['periodic']}" for log in logs[1:] if log.conditioned.averaged],
    }
