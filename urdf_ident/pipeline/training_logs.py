"""First stage: the training logs with torque constants and conditioning resolved, examined, cut into segments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ..errors import UrdfIdentError
from ..estimation.elastic import check_motors
from ..estimation.estimators.payload_gains import resolve_drive
from ..logs.recording import Recording
from ..logs.refusals import LeftOut, each_usable
from ..model.dynamic_model import DynamicModel
from ..project import Project
from ..result.evidence.evidence import Range
from ..result.record import Record
from ..samples import Segment
from ..signals.config import SignalConfig
from ..signals.prepare import PreparedLog, prepare_log, prepare_logs
from .examine import estimated_delay, refuse_contradictions, with_contradictions, with_delays


@dataclass(frozen=True, eq=False)
class TrainingLogs:
    """Logs ready for estimation.

    Attributes:
        logs: The conditioned logs, known payloads compensated.
        signals: The conditioning as resolved, with reasons: ``signals`` of identification.json.
        trained: Speeds, accelerations and torques of the logs.
        left_out: Logs that were refused, each with the reason.
    """

    model: DynamicModel
    logs: Sequence[PreparedLog]
    signals: Mapping[str, Any]
    trained: Range
    left_out: tuple[LeftOut, ...] = ()

    @property
    def motion(self) -> list[Segment]:
        """All segments of all logs."""
        return [segment for log in self.logs for segment in log.segments]


def training_logs(
    model: DynamicModel, logs: Sequence[Recording], project: Project, force: bool = False, skip: bool = False
) -> TrainingLogs:
    """Resolves torque constants and conditioning, and prepares the logs with them.

    Args:
        logs: Logs as read.
        force: Use logs in spite of findings that refuse them.
        skip: Continue without logs that are refused or cannot be conditioned; what is chosen from all logs together is then
            chosen without them.

    Raises:
        QualityError: A log is refused, or with ``skip`` every log.
        LogError: A log lacks a required channel, or the logs do not fit together.
    """
    try:
        return _training_logs(model, logs, project, force)
    except UrdfIdentError as error:
        refused = [log for log in logs if log.name in error.logs]
        if not skip or not refused or len(refused) == len(logs):
            raise
        left_out = tuple(LeftOut.of(log, error.logs[log.name]) for log in refused)
    others = training_logs(model, [log for log in logs if log not in refused], project, force, skip)
    return replace(others, left_out=(*left_out, *others.left_out))


def _training_logs(model: DynamicModel, logs: Sequence[Recording], project: Project, force: bool) -> TrainingLogs:
    check_motors(model, logs)
    config, payload = project.signal_config(), project.build_payload(model.robot)
    model = model.with_drive(resolve_drive(model, logs, payload, config, force=force))
    robot, reduction = model.robot, model.drive.reduction

    def conditioned(config: SignalConfig) -> list[PreparedLog]:
        """The logs with this conditioning, examined against physics."""
        prepared = prepare_logs(logs, robot, model.drive, config, force=force, payload=payload)
        if model.is_rigid:  # what the checks support
            prepared = with_contradictions(prepared, robot, config, reduction)
            if not force:
                refuse_contradictions(prepared)
        return prepared

    prepared, delay_entry = conditioned(config), dict[str, Any]()
    delay = estimated_delay(prepared, robot, reduction) if model.is_rigid else None
    if delay is not None:
        compensated = 0.0 if config.delay == "auto" else float(config.delay)
        common = delay.findings()
        if config.delay == "auto" and delay.decided:
            compensated = delay.seconds
            prepared = conditioned(replace(config, delay=compensated))
            common = () if delay.inside else common  # it may be longer than what was taken out
        prepared = with_delays(prepared, (*common, *delay.filter_findings()))
        why = delay.describe() + (f"; {1e3 * compensated:.3g} ms were taken out" if compensated else "")
        delay_entry = {**delay.as_dict(), "compensated": compensated, "why": why}
    trained = Range.of([segment for log in prepared for segment in log.segments])
    return TrainingLogs(model, prepared, _signals_entry(prepared, trained, delay_entry), trained)


def _signals_entry(logs: Sequence[PreparedLog], trained: Range, delay: Mapping[str, Any]) -> dict[str, Any]:
    """The entry ``signals`` of identification.json, rates and low-pass of the first log; delay: its entry, or nothing."""
    first = logs[0].conditioned
    why = [f"{key}: {text}" for key, text in first.why.items()]
    why += [f"periodic: {log.name}: {log.conditioned.why['periodic']}" for log in logs[1:] if log.conditioned.averaged]
    entry = {
        "rate": first.rate,
        "cutoff": first.cutoff,
        "decimate": first.decimate_rate,
        "velocity": {log.name: log.conditioned.velocity_source for log in logs},
        "speed": trained.speed,
        "load": trained.load,
        "why": why,
    }
    if not delay:
        return entry
    return {**entry, "why": [*why, f"delay: {delay['why']}"], "delay": delay}


def further_logs(
    recordings: Sequence[Recording], model: DynamicModel, project: Project, config: SignalConfig, force: bool
) -> list[PreparedLog]:
    """Conditions logs one by one, as velocities may come from different sources, without their known payload.

    Args:
        model: Gives the robot and the drive with its torque constants.
        config: That of the training logs, as a rule (:meth:`.Project.further_config`).
    """
    payload = project.build_payload(model.robot)
    one = partial(prepare_log, robot=model.robot, drive=model.drive, config=config, force=force, payload=payload)
    return each_usable(one, recordings)


def conditioned_as_in_fit(ident: Record, recordings: Sequence[Recording], force: bool) -> list[PreparedLog]:
    """Conditions further logs as the training logs of a result were (:func:`further_logs`)."""
    project = ident.project
    return further_logs(recordings, ident.model, project, project.further_config(ident.signals), force)
