"""First stage of an identification: training logs examined against rigid-body physics and for delays, and cut into segments.

:func:`training_logs` resolves torque constants and conditioning, and refuses logs with which nothing can be estimated;
:func:`further_logs` conditions other logs in the same way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ..errors import UrdfIdentError
from ..estimation.elastic import check_motors
from ..estimation.estimators.payload_gains import resolve_drive
from ..faults.contradictions import moved_alike, physics_findings
from ..faults.delay import Delay, find_delay
from ..judgements.catalogue import Id
from ..judgements.judgement import Judgement
from ..linalg import Array
from ..logs.recording import Recording
from ..logs.refusals import LeftOut, each_usable
from ..model.drive import Drive
from ..model.dynamic_model import DynamicModel
from ..model.payload import Payload
from ..model.robot import Robot
from ..project import Project
from ..result.evidence import Range
from ..result.record import Record
from ..samples import Segment
from ..signals.config import SignalConfig
from ..signals.hidden_delays import known_delays
from ..signals.prepare import (
    PreparedLog,
    prepare_log,
    prepare_logs,
    require_usable,
    suspecting_payload,
    with_automatic,
)


def with_contradictions(
    logs: Sequence[PreparedLog], robot: Robot, config: SignalConfig, reduction: Array | None
) -> list[PreparedLog]:
    """Adds contradictions with rigid-body physics to the findings of logs that were prepared together.

    Args:
        reduction: Matrix from joint to motor velocities, shape (n, n), or None if every motor drives one joint.
    """
    logs = with_automatic(logs, config)
    examined = [(log.examined.segments, log.examined.cutoff) for log in logs]
    if any(judged.id == Id.POSITION_TWICE for log in logs for judged in log.report.findings):
        alike = moved_alike(robot, examined, reduction)
        kept = [[item for item in log.report.findings if item.id != Id.POSITION_TWICE] for log in logs]
        logs = [log.with_findings(some) if same else log for log, some, same in zip(logs, kept, alike, strict=True)]
    contradictions = physics_findings(robot, examined, reduction)
    stated = [
        [_at_rate(judged, log.examined.rate) for judged in findings] for log, findings in zip(logs, contradictions, strict=True)
    ]
    return _with_findings(
        logs, [suspecting_payload(log.payload, judgements) for log, judgements in zip(logs, stated, strict=True)]
    )


def _at_rate(judged: Judgement, rate: float) -> Judgement:
    """A remedy that changes the rate of a log states the rate, which no project has to hold."""
    change = judged.remedy.settings.get("log.rate") if judged.remedy else None
    if judged.remedy is None or not isinstance(change, Mapping):
        return judged
    settings = {**judged.remedy.settings, "log.rate": rate * change["multiply"]}
    return replace(judged, remedy=replace(judged.remedy, settings=settings))


def estimated_delay(logs: Sequence[PreparedLog], robot: Robot, reduction: Array | None) -> Delay | None:
    """Estimates the delay of the efforts (:func:`.find_delay`); None from logs that contradict physics in another way.

    Args:
        reduction: Matrix from joint to motor velocities, shape (n, n), or None if every motor drives one joint.
    """
    if any(finding.severity == "refused" for log in logs for finding in log.report.findings):
        return None
    return find_delay(robot, [(log.examined.segments, log.examined.band) for log in logs], reduction)


def with_delays(logs: Sequence[PreparedLog], of_delay: Sequence[Judgement]) -> list[PreparedLog]:
    """Adds findings of the delay of all efforts that no other finding of a log covers."""
    reported = [{(item.id, item.joint) for item in log.report.findings} for log in logs]
    return _with_findings(logs, [[item for item in of_delay if (item.id, item.joint) not in known] for known in reported])


def _with_findings(logs: Sequence[PreparedLog], findings: Sequence[Sequence[Judgement]]) -> list[PreparedLog]:
    """Adds findings to those of each log; delays that the log does not determine are marked."""
    known = known_delays(logs, findings)
    return [log.with_findings((*log.report.findings, *judgements)) for log, judgements in zip(logs, known, strict=True)]


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
    """Prepares the logs, all of which must be usable: torque constants, conditioning, physics, and the delay of the efforts.

    A delay that is decided is taken out if the project leaves it to the data; the logs are then conditioned again, and torque
    constants from a payload found again.
    """
    check_motors(model, logs)
    config, payload, as_given = project.signal_config(), project.build_payload(model.robot), model

    def constants(config: SignalConfig) -> Drive:
        drive = resolve_drive(as_given, logs, payload, config, force=force)
        return replace(drive, effort_unit=logs[0].effort_unit) if logs else drive

    model = as_given.with_drive(constants(config))
    conditioned = partial(_conditioned, logs=logs, payload=payload, force=force)
    prepared, delay_entry = conditioned(model, config=config), dict[str, Any]()
    delay = estimated_delay(prepared, model.robot, model.drive.reduction) if model.is_rigid else None
    if delay is not None:
        take_out = config.delay == "auto" and delay.decided
        seconds = delay.seconds if take_out else 0.0 if config.delay == "auto" else float(config.delay)
        if take_out:
            config = replace(config, delay=seconds)
            if payload is not None:
                model = as_given.with_drive(constants(config))
            prepared = conditioned(model, config=config)
        # what was taken out is no finding any more, unless the delay may be longer than that
        remaining = () if take_out and delay.inside else delay.findings()
        prepared = with_delays(prepared, (*remaining, *delay.filter_findings()))
        why = delay.describe() + (f"; {1e3 * seconds:.3g} ms were taken out" if seconds else "")
        delay_entry = {**delay.as_dict(), "compensated": seconds, "why": why}
    trained = Range.of([segment for log in prepared for segment in log.segments])
    return TrainingLogs(model, prepared, _signals_entry(prepared, trained, delay_entry), trained)


def _conditioned(
    model: DynamicModel, logs: Sequence[Recording], config: SignalConfig, *, payload: Payload | None, force: bool
) -> list[PreparedLog]:
    """The logs conditioned, and examined against physics, which the checks support of rigid joints alone."""
    prepared = prepare_logs(logs, model.robot, model.drive, config, force=force, payload=payload)
    if not model.is_rigid:
        return prepared
    prepared = with_contradictions(prepared, model.robot, config, model.drive.reduction)
    if not force:
        require_usable(logs, [log.report for log in prepared])
    return prepared


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
    return {**entry, "why": [*why, f"delay: {delay['why']}"], "delay": delay} if delay else entry


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
