"""Preparation of logs for estimation: conversion to the joint side, quality checks, conditioning, in this order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from ..errors import LogError, QualityError
from ..judgements.catalogue import Id
from ..judgements.judgement import Judgement, Remedy
from ..linalg import orthogonal_part, positive, rms
from ..logs.recording import Recording
from ..logs.refusals import all_usable, attempts, copies_refused, each_usable
from ..model.drive import Drive
from ..model.payload import CHECK_PAYLOAD, Payload
from ..model.rigid_bodies import mass_matrices
from ..model.robot import Robot
from ..samples import Segment, columns, fast_speed, moving
from .condition import Conditioned, behind, condition, resolve
from .config import SignalConfig
from .filters import prediction_cutoff
from .motor_side import external_torque, joint_side
from .quality.report import QualityReport, assess
from .resolution import counts_of

#: Part of a joint's acceleration that steps of its position may be, as inertias come out too small by its square; part of an
#: effort that they may be, as the error of a good result; number of poses for the inertia.
_OF_MOTION, _OF_EFFORT, _POSES = 0.3, 0.1, 20
#: Least part of the square of an acceleration that is taken for motion.
_LEAST = 0.2
#: Part of a joint's acceleration that the low-pass of the positions may take away: half the torque error of a good result.
_LOST = 0.05


@dataclass(frozen=True)
class UsedLog:
    """A log that a result comes from; its entry in ``inputs`` of identification.json.

    Attributes:
        sha256: Hash of the bytes read.
        rows, used: Rows of the log, and those that took part.
        periods: What was averaged of a periodic motion; empty without.
    """

    name: str
    path: str
    sha256: str
    rows: int
    used: int
    findings: tuple[Judgement, ...] = ()
    periods: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class PreparedLog:
    """A prepared log.

    Attributes:
        recording: As read.
        robot, payload: What it was prepared with: the robot, and the known payload of some logs, or None.
        automatic: Its motion with the automatic cut-off, for checks; None if that is ``conditioned``.
    """

    recording: Recording
    report: QualityReport
    conditioned: Conditioned
    robot: Robot
    payload: Payload | None = None
    automatic: Conditioned | None = None

    @property
    def name(self) -> str:
        return self.recording.name

    @property
    def segments(self) -> tuple[Segment, ...]:
        """The pieces of motion, in chronological order."""
        return self.conditioned.segments

    @property
    def examined(self) -> Conditioned:
        """Its motion for the checks against physics, to which a cut-off that is too low looks like a fault of the log."""
        return self.automatic or self.conditioned

    @cached_property
    def spectrum(self) -> float:
        """The low-pass of the positions [Hz] that the spectrum of this log by itself gives."""
        return float(resolve([self.report.recording], SignalConfig(velocity="differentiated")).cutoff)

    def with_segments(self, segments: Iterable[Segment]) -> PreparedLog:
        """Returns the log with other pieces of motion; segments: in chronological order."""
        return replace(self, conditioned=replace(self.conditioned, segments=tuple(segments)))

    def with_findings(self, findings: Iterable[Judgement]) -> PreparedLog:
        """Returns the log with these findings."""
        return replace(self, report=self.report.with_findings(findings))

    def summed_up(self) -> UsedLog:
        """What a result keeps of the log."""
        log, averaged = self.recording, self.conditioned.averaged
        rows = sum(segment.repeats * len(segment) for segment in self.segments)
        periods = {} if averaged is None else averaged.as_dict()
        return UsedLog(log.name, log.path, log.sha256, len(log), min(len(log), rows), self.report.findings, periods)


def prepare_log(
    recording: Recording,
    robot: Robot,
    drive: Drive,
    config: SignalConfig,
    *,
    force: bool = False,
    payload: Payload | None = None,
) -> PreparedLog:
    """Prepares one log by itself, as :func:`prepare_logs`."""
    return prepare_logs([recording], robot, drive, config, force=force, payload=payload)[0]


def prepare_logs(
    recordings: Sequence[Recording],
    robot: Robot,
    drive: Drive,
    config: SignalConfig,
    *,
    force: bool = False,
    payload: Payload | None = None,
) -> list[PreparedLog]:
    """Prepares several logs with the same cut-off and row rate, so that their statistics can be merged.

    Args:
        recordings: As read; names must differ.
        force: Continue in spite of findings that refuse a log.
        payload: A known payload, whose torque is subtracted from the logs that carry it.

    Raises:
        LogError: No log is given, two logs have the same name, one log is given twice, or no usable motion remains.
        QualityError: A log is refused.
    """
    reports = checked(recordings, robot, drive, config, force=force)
    logs = conditioned_logs(recordings, reports, robot, config, payload)
    scale = payload if drive.gain_error is not None else None  # one that the torque constants come from
    return [log.with_findings(suspecting_payload(scale, log.report.findings)) for log in logs]


def checked(
    recordings: Sequence[Recording],
    robot: Robot,
    drive: Drive,
    config: SignalConfig,
    *,
    force: bool = False,
    at_rest: bool = False,
) -> list[QualityReport]:
    """Checks logs that are used together, each as :func:`assessed`.

    Args:
        force: Continue in spite of findings that refuse a log.
        at_rest: The logs are to show poses: that hardly anything moves, or that positions stay as they are, refuses none.

    Raises:
        LogError: No log is given, two logs have the same name, or one log is given twice.
        QualityError: A log is refused.
    """
    if not recordings:
        raise LogError("no log was given", remedy="name at least one")
    names = [recording.name for recording in recordings]
    if len(set(names)) != len(names):
        raise LogError("two logs have the same name", got=names, remedy="rename one, or give each once")
    all_usable(recordings, copies_refused(recordings))
    reports = assessed(recordings, robot, drive, config)
    if at_rest:
        of_motion = (Id.AT_REST, Id.TOO_SHORT, Id.FROZEN_TOO_LONG)
        reports = [report.with_findings(item for item in report.findings if item.id not in of_motion) for report in reports]
    if not force:
        require_usable(recordings, reports)
    return reports


def assessed(
    recordings: Sequence[Recording], robot: Robot, drive: Drive, config: SignalConfig, *, as_logged: bool = False
) -> list[QualityReport]:
    """Converts logs to the joint side and checks each of them, on the available workers.

    Args:
        config: Their conditioning: logged velocities that are not to be used are not checked.
        as_logged: Whether efforts keep their unit, because torque constants are unknown.

    Raises:
        LogError: The effort is a current without a known gain.
    """
    without_velocity = config.velocity == "differentiated"
    one = partial(_assessed, robot=robot, drive=drive, as_logged=as_logged, without_velocity=without_velocity)
    return each_usable(one, recordings)


def _assessed(recording: Recording, robot: Robot, drive: Drive, as_logged: bool, without_velocity: bool) -> QualityReport:
    seen = joint_side(recording, drive)
    seen = replace(seen, velocity=None) if without_velocity else seen
    report = assess(replace(seen, effort_unit=recording.effort_unit) if as_logged else seen, robot)
    sides = [name for name in ("position", "effort") if getattr(recording, f"{name}_side") == "motor"]
    if not sides or drive.coupled.any() or (drive.ratio != 1.0).any():
        return report
    words = (  # efforts may be too small by forgotten ratios
        f"{' and '.join(f'`log.side.{name}`' for name in sides)} is motor, but all gear ratios are 1 (`drive.reduction`): the "
        "log is taken as that of the joints"
    )
    remedy = "give the gear ratios, or leave out `log.side` if the motors drive the joints directly"
    return report.with_findings((*report.findings, Judgement(Id.GEARS_MISSING, words, Remedy(remedy))))


def conditioned_logs(
    recordings: Sequence[Recording],
    reports: Sequence[QualityReport],
    robot: Robot,
    config: SignalConfig,
    payload: Payload | None,
) -> list[PreparedLog]:
    """Conditions checked logs alike, on the available workers: the one way from a log to its motion, of all commands.

    Settings that are `auto` are first chosen for each log and then fixed at the median for all.

    Args:
        reports: Of :func:`assessed`.
        payload: A known payload, whose torque is subtracted from the logs that carry it.

    Returns:
        The prepared logs, in the same order; the report of each has what conditioning found.

    Raises:
        LogError: No usable motion remains of some logs, all of which it names.
    """
    reports = all_usable(recordings, attempts(partial(_with_wrenches, robot=robot), reports))
    seen = [report.recording for report in reports]
    condition_one = partial(_condition_one, robot=robot, config=resolve(seen, config), automatic=config.cutoff == "auto")
    logs = []
    for recording, report, (motion, findings) in zip(recordings, reports, each_usable(condition_one, seen), strict=True):
        taken_off = without_payload(motion, recording.name, robot, payload)
        logs.append(PreparedLog(recording, report.with_findings((*report.findings, *findings)), taken_off, robot, payload))
    return logs


def conditioned_again(logs: Sequence[PreparedLog], config: SignalConfig) -> list[Conditioned]:
    """Returns the motion of logs, which were prepared alike, under another conditioning."""
    recordings, reports = [log.recording for log in logs], [log.report for log in logs]
    again = conditioned_logs(recordings, reports, logs[0].robot, config, logs[0].payload) if logs else []
    return [log.conditioned for log in again]


def with_automatic(logs: Sequence[PreparedLog], config: SignalConfig) -> list[PreparedLog]:
    """Adds the motion with the automatic cut-off to logs that were conditioned with another one."""
    if config.cutoff == "auto":
        return list(logs)
    again = conditioned_again(logs, replace(config, cutoff="auto"))
    return [replace(log, automatic=motion) for log, motion in zip(logs, again, strict=True)]


def with_all_periods(log: PreparedLog, config: SignalConfig) -> PreparedLog:
    """Returns a log with all of its motion instead of averaged periods, behind a low-pass at the last harmonic."""
    if log.conditioned.averaged is None:
        return log
    (whole,) = conditioned_again([log], replace(config, cutoff=log.conditioned.cutoff, periodic="off"))
    return replace(log, conditioned=whole)


def in_band(log: PreparedLog, config: SignalConfig) -> PreparedLog:
    """Returns a log with the same pieces of motion behind another low-pass of its positions.

    Args:
        log: A log without averaged periods.
        config: Its conditioning, with the other low-pass: in Hz, or a multiple of that of the log's own spectrum.
    """
    cutoff = _band_of(log, config)
    if cutoff == log.conditioned.cutoff and log.payload is None:  # the motion of scores still holds the torque of a payload
        return log
    motion = behind(log.conditioned, log.report.recording, log.robot, config, cutoff)
    conditioned = replace(log.conditioned, segments=motion, cutoff=cutoff)
    return replace(log, conditioned=without_payload(conditioned, log.name, log.robot, log.payload))


def for_scores(log: PreparedLog, config: SignalConfig) -> PreparedLog:
    """Returns a log behind the low-pass for predictions, with the pieces of motion that its own spectrum gives.

    They are the same whatever the low-pass of the fit, so that it cannot choose the samples on which it is scored.

    Args:
        config: As for :func:`in_band`.
    """
    by_spectrum = replace(config, cutoff=log.spectrum, chosen=("cutoff",))
    pieces = replace(log, conditioned=condition(log.report.recording, log.robot, by_spectrum))
    return in_band(pieces, replace(config, cutoff=_band_of(log, config)))


def _band_of(log: PreparedLog, config: SignalConfig) -> float:
    """The low-pass of the positions of a log [Hz], where it may be a multiple of that of its own spectrum."""
    if config.cutoff != "auto":
        return float(config.cutoff)
    return prediction_cutoff(log.spectrum, config.scale, log.conditioned.rate)


def _with_wrenches(report: QualityReport, robot: Robot) -> QualityReport:
    """Adds the joint torques of measured external wrenches, if there are any, once."""
    known = report.recording.external_torque is not None
    external = None if known else external_torque(report.recording, robot)
    return report if external is None else replace(report, recording=replace(report.recording, external_torque=external))


def _condition_one(
    recording: Recording, robot: Robot, config: SignalConfig, automatic: bool
) -> tuple[Conditioned, list[Judgement]]:
    """One motion, with findings if its low-pass takes away, or leaves unknown, a relevant part of the accelerations."""
    log = condition(recording, robot, config)
    findings = list(step_findings(recording, log, robot))
    if log.lost is not None and log.lost.max() > _LOST:
        j = int(np.argmax(log.lost))
        words = (
            f"the low-pass of the positions at {log.cutoff:.3g} Hz takes away {100 * log.lost[j]:.0f} % of the acceleration of "
            "this joint: its inertia and rotor inertia come out too small"
        )
        remedy = Remedy("log at a higher rate or with less noise of the positions, or move more slowly")
        if not automatic:
            what = "raise `signals.cutoff` in the project file, or leave it to the tool: {settings}"
            remedy = Remedy(what, {"signals.cutoff": "auto"})
        reduced = Judgement(Id.POSITION_BANDWIDTH, words, remedy, joint=robot.joints[j], size=log.cutoff, certainty=0.99)
        findings.insert(0, reduced)
    return log, findings


def require_usable(recordings: Sequence[Recording], reports: Sequence[QualityReport]) -> None:
    """Raises QualityError with all findings of a log if one of them refuses it."""
    pairs = zip(recordings, reports, strict=True)
    all_usable(recordings, [_refusal(recording, report) or report for recording, report in pairs])


def _refusal(recording: Recording, report: QualityReport) -> QualityError | None:
    """The error that refuses a log: its first reason, and how many more there are; None if nothing refuses it."""
    refused = [finding for finding in report.findings if finding.severity == "refused"]
    if not refused:
        return None
    first = refused[0]
    joint = "" if first.joint is None or first.joint in first.message else f"{first.joint}: "
    more = f" (and {len(refused) - 1} more: see `urdf-ident inspect`)" if len(refused) > 1 else ""
    return QualityError(
        joint + first.message + more, where=recording.where, remedy=str(first.remedy or "") or None, findings=report.findings
    )


def without_payload(made: Conditioned, name: str, robot: Robot, payload: Payload | None) -> Conditioned:
    """Subtracts the torque of a known payload from a log that carries it; other logs are unchanged."""
    return made if payload is None else replace(made, segments=payload.taken_off(robot, name, made.segments))


def suspecting_payload(payload: Payload | None, findings: Sequence[Judgement]) -> tuple[Judgement, ...]:
    """Adds the known payload to the remedies of findings that a wrong description of it causes."""
    if payload is None:
        return tuple(findings)
    return tuple(
        replace(finding, remedy=finding.remedy.after(CHECK_PAYLOAD))
        if finding.id.entry.of_payload and finding.remedy
        else finding
        for finding in findings
    )


def unused_payload(logs: Sequence[PreparedLog]) -> tuple[str, ...]:
    """Warning about the known payload if no log carries it, so that a misspelt log name is noticed; empty otherwise."""
    payload = logs[0].payload
    if payload is None or any(payload.on(log.name) for log in logs):
        return ()
    names = ", ".join(log.name for log in logs)
    return (f"no training log carries the payload: drive.payload.logs is {', '.join(payload.logs)}, the logs are {names}",)


def step_findings(recording: Recording, log: Conditioned, robot: Robot) -> Iterator[Judgement]:
    """Yields a finding for each moving joint whose position's steps are a relevant part of its acceleration and of an effort.

    Steps of size s are noise of variance s²/12, white up to half the rate (Widrow and Kollár, Quantization Noise, 2008).
    With the URDF's inertias, or with that of the joint and its rotor if the log shows a larger one, their acceleration is a
    torque. The cut-off follows the noise of most joints, so that it fits steps of all joints, but not those of one.

    Args:
        recording: The log as repaired.
        log: The same log, conditioned.
        robot: The robot with the inertias of the URDF.
    """
    if log.averaged is not None or log.velocity_source == "logged":
        return  # harmonics take the place of the low-pass, or accelerations do not come from positions
    parts = log.segments
    moves = moving(np.array([fast_speed(x) for x in columns([part.v for part in parts])]), robot.prismatic)
    steps = np.where(moves, counts_of(recording.position), 0.0)
    power = float(np.median(np.diff(recording.time))) / 6.0 * (2 * np.pi) ** 4 * log.cutoff**5 / 5.0
    noise = np.sqrt(power) * steps
    coarse = np.flatnonzero(noise > _OF_MOTION * np.array([rms(x) for x in columns([part.a for part in parts])]))
    if not len(coarse):
        return
    q, v, a, tau = (np.vstack([getattr(part, name) for part in parts]) for name in ("q", "v", "a", "tau"))
    inertia = rms(mass_matrices(robot, q[:: max(len(q) // _POSES, 1)]), 0)
    for j in coarse:  # its inertia as the effort shows it beside friction and its own weight
        x, speed = q[:, j], v[:, j]
        beside = np.column_stack([speed, np.sign(speed), np.sin(x), np.cos(x), np.ones_like(x)])
        moved, effort = orthogonal_part(np.column_stack([a[:, j], tau[:, j]]), beside).T
        square = float(moved @ moved)  # of which the noise is a part
        motion = positive(max(square - len(moved) * noise[j] ** 2, _LEAST * square))
        inertia[j, j] = max(inertia[j, j], float(moved @ effort) / motion)
    share = inertia * noise / positive(rms(tau, 0))[:, None]
    for j in coarse[share[:, coarse].max(axis=0) > _OF_EFFORT]:
        i = int(np.argmax(share[:, j]))
        words = (
            f"the position comes in steps of {steps[j]:.3g} {'m' if robot.prismatic[j] else 'rad'}: with the low-pass at "
            f"{log.cutoff:.3g} Hz, their acceleration makes {100 * share[i, j]:.0f} % of the torque of {robot.joints[i]}"
        )
        remedy = "log it with more digits, or move faster"
        yield Judgement(
            Id.POSITION_QUANTISED, words, Remedy(remedy), joint=robot.joints[j], size=float(steps[j]), certainty=0.99
        )
