"""`inspect --write-project`: a project file for undescribed logs, in YAML that says how certain each entry is, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from ..errors import LogError
from ..files.documents import plain
from ..judgements.catalogue import SEVERITIES, Id
from ..logs.columns.columns import find_columns
from ..logs.formats.choice import open_table
from ..logs.read import read_readable
from ..logs.recognition.recognise import LogDescription, recognise
from ..logs.recognition.recognised import Recognised
from ..logs.recording import Recording
from ..logs.refusals import LeftOut
from ..logs.remote import local_files
from ..logs.sources import LogSource
from ..model.robot import Robot
from ..project import Project, parse_project
from ..quoting import printable
from ..result.inspection import Inspection
from .inspect import inspect

#: Rounds of inspection: one for each gain that was guessed of a joint that gravity does not load, of which arms have few.
_ROUNDS = 4
_INTRODUCTION = """# Format of {log}, recognised by `urdf-ident inspect --write-project`. Check it before use.
# The comment above each entry gives its certainty and the reason: certain (named in the header, or two independent
# indications), likely (one indication), guess. Lists are in the order of robot.joints.
"""


def describe(sources: Sequence[LogSource], project: Project, robot: Robot, urdf: Path) -> tuple[str, Inspection]:
    """Recognises the format of the first of several similar logs, and how the robot is mounted.

    The project file is read back and the logs are read and inspected with it, so that a file is only returned if it runs. The
    direction of gravity is that of the inspection, which estimates it together with all bodies, and so is a guessed gain of a
    joint that gravity does not load. Where several units of the positions fit the limits and the efforts of the log, that with
    which the inspection of all logs says least against the positions is written.

    Args:
        sources: The logs.

    Returns:
        The text of the project file, and the inspection of the logs with it.

    Raises:
        LogError: See :func:`describe_log`; or the logs cannot be read with the description.
    """
    first = describe_log(sources[0], robot, project)
    text, inspection = _read_back(first, sources, project, robot, urdf)
    for unit in first.other_position_units if first is not None else ():
        other = describe_log(sources[0], robot, project.with_settings({"log.units.position": unit}, robot))
        said = other.settings.get("log.units.position") if other is not None else None
        if other is None or said is None:
            continue
        reason = f"{said.reason}; in other units that fit as well an inspection objects to more"
        stated = {**other.settings, "log.units.position": Recognised(unit, "likely", reason)}
        other_text, other_inspection = _read_back(replace(other, settings=stated), sources, project, robot, urdf)
        if _objections(other_inspection) < _objections(inspection):
            text, inspection = other_text, other_inspection
    return text, inspection


def _objections(inspection: Inspection) -> tuple[int, int]:
    """Severity of the worst of what an inspection objects to, and how much it objects to."""
    objections = [judgement for judgement in inspection.verdict.judgements if judgement.level != "good"]
    return max((SEVERITIES.index(judgement.severity) for judgement in objections), default=0), len(objections)


def _read_back(
    description: LogDescription | None, sources: Sequence[LogSource], project: Project, robot: Robot, urdf: Path
) -> tuple[str, Inspection]:
    """The project file of a description, with what the inspection of the logs corrects in it, and this inspection."""
    name = sources[0].name
    recognised = description
    if description is not None:
        of_log = {key: setting for key, setting in description.settings.items() if key != "robot.gravity"}
        description = replace(description, settings=of_log)
    logs: tuple[list[Recording], list[LeftOut]] | None = None
    for _ in range(_ROUNDS):
        text = project_text(description, project, robot, urdf, name)
        written = parse_project(yaml.safe_load(text))
        mounted = written.build_robot(urdf)
        written.build_model(mounted)
        logs = logs or read_readable(sources, mounted, written.log, skip=True)  # gravity and gains are no matter of reading
        inspection = inspect(mounted, logs[0], project=written, unreadable=logs[1])
        better = description and _corrected(description, recognised, inspection, written, mounted)
        if better == description:
            break
        description = better
    return text, inspection


def _corrected(
    description: LogDescription, recognised: LogDescription | None, inspection: Inspection, project: Project, robot: Robot
) -> LogDescription:
    """A description with what an inspection that uses it says of the direction of gravity, and of gains that are guesses.

    Args:
        recognised: The first description, whose gravity counts where torque constants are unknown, so that the inspection
            compares no efforts with the URDF.
        project, robot: Those of the inspection.
    """
    findings, better = [finding for log in inspection.inspected for finding in log.findings], dict(description.settings)
    if recognised is not None and any(finding.id == Id.CONSTANTS_UNKNOWN for finding in findings):
        gravity = {key: setting for key, setting in recognised.settings.items() if key == "robot.gravity"}
        return replace(description, settings={**better, **gravity})
    decided = [finding.remedy for finding in findings if finding.id in (Id.GRAVITY_DIRECTION, Id.EFFORT_SCALE)]
    settings = {key: value for remedy in decided if remedy for key, value in remedy.settings.items()}
    vector, gain = settings.get("robot.gravity"), settings.get("drive.gain")
    if vector is not None:
        stated = [round(float(value), 4) for value in vector]
        better["robot.gravity"] = Recognised(stated, "certain", "the efforts of the logs fit it")
    guessed = better.get("drive.gain")
    if gain is not None and guessed is not None and guessed.certainty == "guess" and isinstance(guessed.value, list):
        values: Any = project.with_settings({"drive.gain": gain}, robot).drive.gain  # a list, changed for single joints
        reason = f"{guessed.reason}; {', '.join(gain['multiply'])}: from the efforts of the other joints"
        rounded = [float(f"{value:.4g}") for value in values]
        better["drive.gain"] = Recognised(rounded, "guess", reason)
    return replace(description, settings=better)


def describe_log(source: LogSource, robot: Robot, project: Project) -> LogDescription | None:
    """Recognises the format of a log; None for a log in several files, which the project already describes.

    Raises:
        LogError: The log cannot be read, or none of its columns fits this robot.
    """
    if "" not in dict(source.files):
        return None
    layout = project.log
    with local_files(source.files) as near:
        table = open_table(dict(near)[""], robot, layout.topic, layout.joints)
        try:
            return recognise(table, robot, layout)
        except LogError as error:
            try:
                find_columns(table, robot, layout, ["position"])
            except LogError:
                raise error from None
            if not table.names:
                raise
            return LogDescription(notes=(f"only its header was read: {error.what}",))


def project_text(description: LogDescription | None, project: Project, robot: Robot, urdf: Path, log: str) -> str:
    """Returns the text of the project file; project: settings known before, which are kept."""
    data: dict[str, Any] = project.model_dump(exclude_defaults=True)
    data["robot"] = {
        **data.get("robot", {}),
        "urdf": str(urdf.resolve()),
        "joints": list(robot.order),
        "lock": dict(robot.locked),
    }
    reasons = {} if description is None else _add_recognised(data, description)
    lines = [_INTRODUCTION.format(log=printable(log))]
    lines += [f"# Note: {printable(note)}.\n" for note in (description.notes if description is not None else ())]
    for section in ("robot", "drive", "log", *(key for key in data if key not in ("robot", "drive", "log"))):
        if section in data:
            lines += [f"{section}:\n", *_yaml_lines(data[section], section, reasons, 1)]
    return "".join(lines)


def _add_recognised(data: dict[str, Any], description: LogDescription) -> dict[str, str]:
    """Adds what was recognised to the sections of a project file, unless it is set; returns setting → certainty and reason."""
    by_name = {f"log.columns.{quantity}" for quantity in description.named}  # columns that are found by their names
    for key, recognised in description.settings.items():
        *sections, name = key.split(".")
        place = data
        for section in sections if key not in by_name else ():
            place = place.setdefault(section, {})
        if key not in by_name:
            place.setdefault(name, plain(recognised.value))
    return {key: recognised.why for key, recognised in description.settings.items()}


def _yaml_lines(value: Mapping[str, Any], path: str, why: Mapping[str, str], depth: int) -> list[str]:
    """A mapping as YAML, with a comment above each entry that has a reason."""
    indent, lines = "  " * depth, []
    for key, entry in value.items():
        reason = why.get(f"{path}.{key}")
        if reason:
            lines.append(f"{indent}# {printable(reason)}\n")
        if isinstance(entry, Mapping) and entry and any(f"{path}.{key}." in known for known in why):
            lines += [f"{indent}{key}:\n", *_yaml_lines(entry, f"{path}.{key}", why, depth + 1)]
        else:
            text = yaml.safe_dump(
                {key: entry}, default_flow_style=True, allow_unicode=True, sort_keys=False, width=10_000
            ).strip()
            lines.append(f"{indent}{text[1:-1]}\n")
    return lines
