"""Conversion of the cells of tables to the fields of a recording: columns, units and sides, in SI units."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import LogError, UnitError, check_name, nearest
from ...linalg import Array
from ...model.robot import Robot
from ...units import Unit, fits, joint_units, parse_unit
from ..formats.lines import NO_NUMBER
from ..tables import Table
from .columns import ColumnMap, find_columns, inference
from .layout import KIND, MOTOR, MOVING, LogLayout
from .names import NAMES


def recording_fields(
    tables: list[tuple[Table, list[str]]], robot: Robot, layout: LogLayout, name: str, path: str
) -> dict[str, Any]:
    """The fields of a recording from open tables.

    Args:
        tables: Each table with the quantities that it may contain; the table of the positions first.
        layout: Columns, units and sides that differ from the default.

    Returns:
        Arguments of :class:`..recording.Recording`, SI units, columns in the order of the robot's joints.

    Raises:
        LogError: The columns do not fit the robot, or the tables differ in length.
        UnitError: A unit is unknown or measures something else.
    """
    valid = ("time", *NAMES)
    for section in ("files", "columns", "units"):
        for key in getattr(layout, section):
            if key not in valid:
                raise LogError(f"unknown quantity '{key}'", where=f"log.{section}", remedy=nearest(key, valid))
    values, rows, units, notes = _columns(tables, robot, layout)
    wrenches = {name.removeprefix("wrench "): values.pop(name) for name in list(values) if name.startswith("wrench ")}
    locked = {name.removeprefix("locked "): values.pop(name)[:, 0] for name in list(values) if name.startswith("locked ")}
    if "position" not in values:
        raise LogError(
            "the log holds no joint positions",
            where=path,
            got=", ".join(tables[0][0].header[:8]),
            expected="q_<joint> columns",
            remedy="describe the columns in the project file (`log: {columns: ...}`)",
        )
    described = layout.model_copy(update={"units": {**units, **layout.units}})
    if "time" in values:
        time = _seconds(values.pop("time")[:, 0], described)
    elif layout.rate is not None:
        time = np.asarray(np.arange(len(rows)) / layout.rate)
    else:
        header = tables[0][0].header
        raise LogError(
            "the log has no time column",
            where=tables[0][0].path,
            got=", ".join(header[:4]) + (", …" if len(header) > 4 else "") or None,
            expected="a column 't' [s]",
            remedy="name it in `log: {columns: {time: ...}}`, or give `log: {rate: ...}` [Hz]; "
            + inference(tables[0][0], robot),
        )
    effort_unit = _to_si(values, robot, described)
    return dict(
        name=name,
        joints=robot.joints,
        time=time,
        **values,
        effort_unit=effort_unit,
        position_side=layout.side.position,
        effort_side=layout.side.effort,
        wrenches=wrenches,
        locked=_ranges(locked, robot, described),
        path=path,
        rows=rows,
        notes=tuple(notes),
    )


def _columns(
    tables: list[tuple[Table, list[str]]], robot: Robot, layout: LogLayout
) -> tuple[dict[str, Array], NDArray[np.int64], dict[str, str | tuple[str, ...]], list[str]]:
    """Values as logged by quantity, wrenches as ``wrench <frame>``; the rows of the first table, units of headers, notes."""
    values: dict[str, Array] = {}
    units: dict[str, str | tuple[str, ...]] = {}
    notes: list[str] = []
    rows = np.empty(0, dtype=np.int64)
    for table, quantities in tables:
        column_map = _find(table, robot, layout, quantities)
        groups = [*column_map.joints.items()]
        groups += [(f"wrench {frame}", six) for frame, six in column_map.wrenches.items()]
        groups += [(f"locked {joint}", (column,)) for joint, column in column_map.locked.items()]
        if column_map.time is not None and "time" not in values:
            groups.append(("time", (column_map.time,)))
        for column in (column for _, columns in groups for column in columns if table.names):
            check_name("column", table.header[column], LogError, table.path)
        cells = table.cells([columns for _, columns in groups])
        if table is tables[0][0]:
            rows = cells.rows
        elif len(cells.rows) != len(rows):
            raise LogError(
                "the parts of a split log differ in length",
                where=table.path,
                got=f"{len(cells.rows)} rows",
                expected=f"{len(rows)} as in {tables[0][0].path}",
                remedy="cut them to the same rows",
            )
        _check_numbers(table, groups, cells.groups)
        units.update(column_map.units)
        values.update(zip([quantity for quantity, _ in groups], cells.groups, strict=True))
        notes += [*table.notes, *column_map.notes]
    return values, rows, units, notes


def _check_numbers(table: Table, groups: list[tuple[str, tuple[int, ...]]], arrays: tuple[Array, ...]) -> None:
    """Refuses columns of time, positions and efforts without any number: unknown date formats, text, another decimal sign."""
    plain = "numbers like 0.5 or -1e-3"
    kinds = {"time": "seconds, or a date like 2024-05-01 12:00:00.5", "position": plain, "effort": plain}
    for (quantity, columns), array in zip(groups, arrays, strict=True):
        for column, values in zip(columns, array.T, strict=True) if quantity in kinds and len(array) else ():
            first = table.first[column] if len(table.first) > column else ""
            missing = quantity == "effort" and first.lower() in NO_NUMBER  # the checks of quality say that it was not measured
            if first and not missing and np.isnan(values).all():
                raise LogError(
                    f"column '{table.names[column] if table.names else column}' holds no numbers",
                    where=table.path,
                    got=f"'{first}'",
                    expected=kinds[quantity],
                    remedy="export it so, or name another column in `log: {columns: ...}`",
                )


def _find(table: Table, robot: Robot, layout: LogLayout, quantities: list[str]) -> ColumnMap:
    """Columns of one file; all columns of a part of a split log without a header belong to one quantity."""
    keys = [*quantities, "time"] if "position" in quantities else quantities
    part_layout = layout.model_copy(update={"columns": {key: value for key, value in layout.columns.items() if key in keys}})
    without_columns = [q for q in quantities if q in layout.files and q not in layout.columns and q != "time"]
    if layout.files and table.names is None and len(without_columns) == 1:
        column = part_layout.columns.get("time")
        free = [k for k in range(table.width) if k != column]
        if len(free) != robot.n:
            raise LogError(
                f"the {without_columns[0]} file has {len(free)} columns for {robot.n} joints",
                where=table.path,
                remedy=f"list them in `log: {{columns: {{{without_columns[0]}: [...]}}}}`, or lock joints",
            )
        part_layout = part_layout.model_copy(update={"columns": {**part_layout.columns, without_columns[0]: free}})
    if table.names is None and "position" in quantities and "position" not in part_layout.columns:
        raise LogError(
            "the log has no header",
            where=table.path,
            expected="a first line t,q_<joint>,…",
            remedy="add it, or list the columns in the project file: `log: {columns: {time: 0, position: [1, …]}}`; "
            + inference(table, robot),
        )
    return find_columns(table, robot, part_layout, [q for q in quantities if q != "time"])


def _seconds(time: Array, layout: LogLayout) -> Array:
    """Time in seconds; the first value of a clock with a distant epoch is subtracted to keep the precision."""
    unit = layout.units.get("time", "s")
    factor = parse_unit(unit if isinstance(unit, str) else unit[0], "time", "log.units.time").factor
    if factor == 1.0:
        return time
    known = time[np.isfinite(time)]
    return np.asarray((time - known[0]) * factor) if len(known) and abs(known[0]) * factor > 1e8 else np.asarray(time * factor)


def _ranges(locked: dict[str, Array], robot: Robot, layout: LogLayout) -> dict[str, tuple[float, float]]:
    """The range of each locked joint's position in SI units, without the outermost 0.5 % on either side."""
    given = layout.units.get("position", "")
    units = {given} if isinstance(given, str) else set(given)
    if layout.side.position == "motor" or len(units) > 1:
        return {}
    name, ranges = units.pop(), {}
    for joint, values in locked.items():
        sliding = robot.description.joints[joint].type == "prismatic"
        factor = (
            _factor(parse_unit(name, "position", "log.units.position"), sliding, "position", False, False, "position")
            if name
            else 1.0
        )
        positions = values[np.isfinite(values)] * factor
        if len(positions):
            low, high = np.quantile(positions, [0.005, 0.995])
            ranges[joint] = (float(low), float(high))
    return ranges


def _to_si(values: dict[str, Array], robot: Robot, layout: LogLayout) -> str:
    """Scales the signals in place to SI; returns the SI unit of the effort."""
    effort_unit = joint_units(bool(robot.prismatic.all()))["torque"]
    for quantity, array in values.items():
        given = layout.units.get(quantity)
        if given is None:
            continue
        kind = KIND.get(quantity, quantity)
        if not isinstance(given, str) and len(given) != robot.n:
            raise LogError(
                f"{len(given)} units for {robot.n} joints",
                where=f"log.units.{quantity}",
                got=list(given),
                expected=f"one for all, or one per joint in the order {', '.join(robot.order)}",
            )
        names = [given] * robot.n if isinstance(given, str) else [given[k] for k in robot.places_in_order]
        units = [parse_unit(name, kind, f"log.units.{quantity}") for name in names]
        on_motor = quantity in MOTOR or (layout.side.position == "motor" and kind != "effort")
        kinds = list(zip(units, robot.prismatic, strict=True))
        common = isinstance(given, str) and (
            kind not in MOVING or any(fits(unit, kind, bool(sliding)) for unit, sliding in kinds)
        )
        factors = [_factor(unit, sliding, kind, on_motor, not common, quantity) for unit, sliding in kinds]
        if any(factor != 1.0 for factor in factors):
            array *= np.array(factors)
        if quantity == "effort":
            if len({"torque" if unit.kind == "force" else unit.kind for unit in units}) > 1:
                raise UnitError(
                    "efforts of one log cannot be of several kinds",
                    where="log.units.effort",
                    got=", ".join(given),
                    expected="all torques and forces, or all currents",
                )
            effort_unit = {"current": "A", "voltage": "V", "fraction": "1", "torque": "N·m", "force": "N"}[units[0].kind]
    return effort_unit


def _factor(unit: Unit, sliding: bool, kind: str, on_motor: bool, each: bool, quantity: str) -> float:
    """Factor to SI; a single unit for all joints applies only to the joints whose type it fits."""
    if kind not in MOVING or on_motor:
        return unit.factor
    if fits(unit, kind, bool(sliding)):
        return unit.factor
    if each:
        raise UnitError(
            f"'{unit.name}' does not fit a {'prismatic' if sliding else 'revolute'} joint", where=f"log.units.{quantity}"
        )
    return 1.0
