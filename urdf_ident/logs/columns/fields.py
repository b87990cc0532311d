"""Conversion of tables to the fields of a recording: their columns in SI units."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import LogError, UnitError, check_known, check_name
from ...files.documents import parse_json
from ...files.read_write import allowed, read_text
from ...linalg import Array
from ...model.robot import Robot
from ...samples import reached
from ...units import Unit, fits, joint_units, parse_unit
from ..formats.lines import NO_NUMBER
from ..tables import Rows, Table
from .columns import ColumnMap, Places, find_columns, inference, shown_column
from .layout import KIND, MOTOR, MOVING, NAMES, LogLayout

#: Name of a calibration file of LeRobot beside a log, and steps of its encoders per turn.
CALIBRATION, _STEPS = "calibration.json", 4096
#: Largest magnitude of a normalised position, which LeRobot clips at 100.
LARGEST = 100.5
#: Quantities whose columns must hold numbers → what is expected in them.
_EXPECTED = {
    "time": "seconds, or a date like 2024-05-01 12:00:00.5",
    **dict.fromkeys(("position", "effort"), "numbers like 0.5 or -1e-3"),
}
#: Kind of positions in −100 … 100 (:mod:`.ranges`).
_NORMALIZED = "range of motion"


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


def recording_fields(
    tables: list[tuple[Table, list[str]]], robot: Robot, layout: LogLayout, name: str, path: str = ""
) -> dict[str, Any]:
    """Reads the fields of a recording from open tables.

    Args:
        tables: Each table with the quantities that it may contain; the table of the positions first.

    Returns:
        Arguments of :class:`..recording.Recording`, SI units, columns in the order of the robot's joints.

    Raises:
        LogError: The columns do not fit the robot, or the tables differ in length.
        UnitError: A unit is unknown or measures something else.
    """
    for section in ("files", "columns", "units"):
        for key in getattr(layout, section):
            check_known("quantity", key, ("time", *NAMES), LogError, f"log.{section}")
    signals: dict[str, Array] = {}
    wrenches: dict[str, Array] = {}
    locked: dict[str, tuple[float, float]] = {}
    time: Array | None = None
    rows: Rows | None = None
    effort_unit = joint_units(bool(robot.prismatic.all()))["torque"]
    notes: list[str] = []
    first = tables[0][0]
    for table, quantities in tables:
        columns = _find(table, robot, layout, quantities)
        wanted = {place: of_place for place, of_place in columns.places.items() if place[0] != "time" or time is None}
        values, numbers = _read(table, wanted)
        if rows is None:
            rows = numbers
        elif len(numbers) != len(rows):
            raise LogError(
                "the parts of a split log differ in length",
                where=table.path,
                got=f"{len(numbers)} rows",
                expected=f"{len(rows)} as in {first.path}",
                remedy="cut them to the same rows",
            )
        for (kind, key), places in wanted.items():
            read = values.pop((kind, key))
            if key in _EXPECTED:
                _check_numbers(table, key, places, read)
            stated = [columns.units[place] if columns.units else "" for place in places]
            if kind == "wrench":
                wrenches[key] = read
            elif kind == "time":
                time = _seconds(read[:, 0], layout, stated[0])
            elif kind == "locked":
                locked.update(_range(key, read[:, 0], robot, layout, stated[0]))
            else:
                units = _units(table, key, places, stated, robot, layout)
                signals[key], scaled = _in_si(read, units, robot, table.path)
                notes += [f"{key.replace('_', ' ')}s in −100 … 100 are scaled by {scaled}"] if scaled else []
                if key == "effort" and units and units[0] is not None:
                    effort_unit = units[0].si
        notes += [*table.notes, *columns.notes]
    if "position" not in signals:
        raise LogError(
            "the log holds no joint positions",
            where=first.path,
            got=", ".join(first.names[:8]),
            expected="q_<joint> columns",
            remedy="describe the columns in the project file (`log: {columns: ...}`)",
        )
    if time is None and layout.rate is not None:
        time = np.arange(len(signals["position"])) / layout.rate
    if time is None:
        raise LogError(
            "the log has no time column",
            where=first.path,
            got=", ".join(first.names[:4]) + (", …" if len(first.names) > 4 else "") or None,
            expected="a column 't' [s]",
            remedy="name it in `log: {columns: {time: ...}}`, or give `log: {rate: ...}` [Hz]; " + inference(first, robot),
        )
    return dict(
        name=name,
        joints=robot.joints,
        time=time,
        **signals,
        effort_unit=effort_unit,
        position_side=layout.side.position,
        effort_side=layout.side.effort,
        wrenches=wrenches,
        locked=locked,
        path=path,
        rows=rows,
        notes=tuple(notes),
    )


def _read(table: Table, wanted: Places) -> tuple[dict[tuple[str, str], Array], Rows]:
    """The numbers of columns, shape (N, columns) each, and the row in the file of each sample, shape (N,)."""
    used = sorted({column for places in wanted.values() for column in places})
    for column in used if table.names else ():
        check_name("column", table.names[column], LogError, table.path)
    values = {key: np.empty((0, len(places))) for key, places in wanted.items()}
    in_block = {key: [used.index(column) for column in places] for key, places in wanted.items()}
    rows = np.empty(0, dtype=np.int64)
    for block, numbers in table.blocks(used):  # arrays that grow in place, so that no number is held twice
        before, count = len(rows), len(rows) + len(numbers)
        rows.resize(count, refcheck=False)
        rows[before:] = numbers
        for key, indices in in_block.items():
            values[key].resize((count, len(indices)), refcheck=False)
            values[key][before:] = block[:, indices]
    if not len(rows):
        raise LogError("the log holds no rows", where=table.path, remedy="check the recording, or remove the file")
    return values, rows


def _in_si(values: Array, units: list[Unit | None], robot: Robot, path: str) -> tuple[Array, str]:
    """Values of all joints, shape (N, n), in SI units; and of positions in −100 … 100, by what they are scaled, else ""."""
    normalized = np.array([unit is not None and unit.kind == _NORMALIZED for unit in units], dtype=bool)
    factors = np.array([1.0 if unit is None or unit.kind == _NORMALIZED else unit.factor for unit in units])
    origin = ""
    if normalized.any():
        half, middle, origin = joint_ranges(robot, path)
        values = np.where(normalized, middle + half / 100 * values, values)
    if (factors != 1.0).any():
        values *= factors
    return values, origin


def _find(table: Table, robot: Robot, layout: LogLayout, quantities: list[str]) -> ColumnMap:
    """Columns of one file; all columns of a part of a split log without a header belong to one quantity."""
    keys = [*quantities, "time"] if "position" in quantities else quantities
    listed = {key: value for key, value in layout.columns.items() if key in keys}
    unlisted = [q for q in quantities if q in layout.files and q not in layout.columns and q != "time"]
    if layout.files and not table.names and len(unlisted) == 1:
        free = [k for k in range(table.width) if k != listed.get("time")]
        if len(free) != robot.n:
            raise LogError(
                f"the {unlisted[0]} file has {len(free)} columns for {robot.n} joints",
                where=table.path,
                remedy=f"list them in `log: {{columns: {{{unlisted[0]}: [...]}}}}`, or lock joints",
            )
        listed[unlisted[0]] = list(free)
    if not table.names and "position" in quantities and "position" not in listed:
        raise LogError(
            "the log has no header",
            where=table.path,
            expected="a first line t,q_<joint>,…",
            remedy="add it, or list the columns in the project file: `log: {columns: {time: 0, position: [1, …]}}`; "
            + inference(table, robot),
        )
    of_table = layout.model_copy(update={"columns": listed})
    return find_columns(table, robot, of_table, [q for q in quantities if q != "time"])


def _check_numbers(table: Table, quantity: str, columns: tuple[int, ...], values: Array) -> None:
    """Refuses columns without any number: unknown date formats, text, another decimal sign."""
    for column, cells in zip(columns, values.T, strict=True) if table.first and len(values) else ():
        first = table.first[column]
        missing = quantity == "effort" and first.lower() in NO_NUMBER  # the checks of quality say that it was not measured
        if first and not missing and np.isnan(cells).all():
            raise LogError(
                f"{shown_column(table, column)} holds no numbers",
                where=table.path,
                got=f"'{first}'",
                expected=_EXPECTED[quantity],
                remedy="export it so, or name another column in `log: {columns: ...}`",
            )


def _seconds(time: Array, layout: LogLayout, stated: str) -> Array:
    """Time in seconds; the first value of a clock with a distant epoch is subtracted to keep the precision."""
    given = layout.units.get("time", stated or "s")
    factor = parse_unit(given if isinstance(given, str) else given[0], "time", "log.units.time").factor
    if factor == 1.0:
        return time
    known = time[np.isfinite(time)]
    return np.asarray((time - known[0]) * factor if len(known) and abs(known[0]) * factor > 1e8 else time * factor)


def _range(joint: str, values: Array, robot: Robot, layout: LogLayout, stated: str) -> dict[str, tuple[float, float]]:
    """The range of a locked joint's position in SI units, without the outermost 0.5 % on either side."""
    given = layout.units.get("position", stated)
    if layout.side.position == "motor" or not isinstance(given, str):
        return {}
    unit = parse_unit(given, "position", "log.units.position") if given else None
    sliding = robot.description.joints[joint].type == "prismatic"
    positions = values[np.isfinite(values)] * (unit.factor if unit is not None and fits(unit, "position", sliding) else 1.0)
    if not len(positions):
        return {}
    low, high = reached(positions)
    return {joint: (float(low), float(high))}


def per_joint(given: Sequence[str], robot: Robot, where: str) -> list[str]:
    """The names of units that a layout gives in the robot's order, in the order of its joints; refused unless one per joint."""
    if len(given) != robot.n:
        raise LogError(
            f"{len(given)} units for {robot.n} joints",
            where=where,
            got=list(given),
            expected=f"one for all, or one per joint in the order {', '.join(robot.order)}",
        )
    return [given[k] for k in robot.places_in_order]


def _units(
    table: Table, quantity: str, columns: tuple[int, ...], stated: list[str], robot: Robot, layout: LogLayout
) -> list[Unit | None]:
    """The unit of each joint's column, by the project file or else by the header; None where a single unit for all does not
    fit a joint's type, and empty where nothing states a unit."""
    kind, given, where = KIND.get(quantity, quantity), layout.units.get(quantity), f"log.units.{quantity}"
    if given is None and quantity == "position_target" and not any(stated):  # a program logs both in one unit
        given, where = layout.units.get("position"), "log.units.position"
    moving = kind in MOVING and layout.side.position != "motor" and quantity not in MOTOR
    if given is None:
        if not any(stated):
            return []
        usual = [joint_units(bool(sliding) and quantity not in MOTOR) for sliding in robot.prismatic]
        names = [unit or units.get(kind.replace("effort", "torque"), "degC") for unit, units in zip(stated, usual, strict=True)]
    elif isinstance(given, str):
        names = [given] * robot.n
    else:
        names = per_joint(given, robot, where)
    units: list[Unit | None] = []
    for name, column, joint, sliding in zip(names, columns, robot.joints, map(bool, robot.prismatic), strict=True):
        unit = parse_unit(name) if given is None else parse_unit(name, kind, where)
        suits = not moving or fits(unit, kind, sliding) or unit.kind == _NORMALIZED
        if given is None and not suits and unit.factor != 1.0:
            raise LogError(
                f"a unit of another kind than the {'prismatic' if sliding else 'revolute'} joint '{joint}'",
                where=f"{table.path}, column '{table.full_header[column]}'",
                got=unit.name,
                expected=joint_units(sliding)[kind],
                remedy=f"correct the header, or give the units of all joints: `log: {{units: {{{quantity}: [...]}}}}`",
            )
        unit = parse_unit(name, kind, where)
        if not suits and len(set(names)) > 1:
            raise UnitError(f"'{unit.name}' does not fit a {'prismatic' if sliding else 'revolute'} joint", where=where)
        units.append(unit if suits else None)
    if units.count(None) == robot.n:
        joint_type = "prismatic" if robot.prismatic[0] else "revolute"
        raise UnitError(f"'{parse_unit(names[0]).name}' does not fit a {joint_type} joint", where=where)
    if (
        quantity == "effort"
        and len({"torque" if unit.kind == "force" else unit.kind for unit in units if unit is not None}) > 1
    ):
        raise UnitError(
            "efforts of one log cannot be of several kinds",
            where=where,
            got=", ".join(names[robot.joints.index(joint)] for joint in robot.order),
            expected="all torques and forces, or all currents",
        )
    return units
