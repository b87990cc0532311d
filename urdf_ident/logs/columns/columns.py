"""Assignment of the columns of a table to quantities and joints.

In this order: by the project file (:class:`.layout.LogLayout`); by joint names in the header (``q_<joint>`` or similar);
by numbers in the header (``q1 … qn``, exactly one per joint of the robot).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from typing import NamedTuple

from ...errors import LogError, closest, nearest
from ...grouping import abbreviated
from ...model.locked_joints import lock_words
from ...model.robot import Robot
from ...units import unit_names
from ..tables import Table, refuse_long
from .headers import UNIT, Header, read_header, without_unit
from .layout import NAMES, WRENCH_AXES, Column, LogLayout

Columns = tuple[int, ...]
#: What columns are (a signal, a wrench, the position of a locked joint, the time) and of which quantity, frame or joint → the
#: columns: of a signal one per joint in *model* order, of a wrench six, force first.
Places = dict[tuple[str, str], Columns]


class ColumnMap(NamedTuple):
    """Columns found in one table, choices that the user should know of, and the unit that each column's name states, or ""."""

    places: Places
    notes: tuple[str, ...]
    units: tuple[str, ...]

    @property
    def signals(self) -> dict[str, Columns]:
        """Quantity → its columns."""
        return {key: columns for (kind, key), columns in self.places.items() if kind == "signal"}

    @property
    def time(self) -> int | None:
        return self.places.get(("time", "time"), (None,))[0]


def inference(table: Table, robot: Robot) -> str:
    """Returns the command that finds out what the columns of a table are."""
    files = " --robot ".join(shlex.quote(path) for path in (table.path, robot.path))
    return f"`urdf-ident inspect {files} --write-project project.yaml` finds out which is which"


def find_columns(table: Table, robot: Robot, layout: LogLayout, quantities: Sequence[str]) -> ColumnMap:
    """Finds the columns of given quantities.

    Args:
        quantities: Keys of :data:`.layout.NAMES` to look for in this table.

    Returns:
        The columns; quantities that were not found are absent.

    Raises:
        LogError: A column does not exist, a name matches no joint, or a joint has no column.
    """
    listed = {key: _listed(table, robot, layout, key) for key in quantities if key in layout.columns}
    header = read_header(table.full_header, robot, layout.joints, table.path)
    wrenches = _wrenches(table)
    named, notes = dict[str, Columns](), list[str]()
    if table.names and len(listed) < len(quantities):
        rest = [key for key in quantities if key not in listed]
        _check_units(table, robot, layout, header, rest)
        named, notes = _named(table, header, robot, rest)
    places: Places = {("signal", key): columns for key, columns in {**listed, **named}.items()}
    if (time := _clock(table, layout, header, notes)) is not None:
        places["time", "time"] = (time,)
    owner: dict[int, str] = {}
    for (_, key), columns in places.items():
        for column in columns if key != "temperature" else ():  # of all joints the same
            if (other := owner.setdefault(column, key)) != key:
                raise LogError(
                    f"{shown_column(table, column)} is given for {other} and for {key}",
                    where=table.path,
                    remedy="correct `log: {columns: ...}` in the project file: columns are counted from 0",
                )
    places |= wrenches
    used = {column for columns in places.values() for column in columns}
    if "position" in named:
        notes = [*header.notes, *notes]
        held = [joint for joint in robot.locked if ("position", joint) in header.columns]
        places |= {("locked", joint): (header.columns["position", joint],) for joint in held}
    if table.names:
        by_number = {column for given in layout.columns.values() for column in _as_list(given) if isinstance(column, int)}
        _refuse_repeated(table, sorted(used - by_number))
    if not listed:
        prefixes = [prefix for spelling in NAMES.values() for prefix in spelling.prefixes]
        of_locked = {f"{prefix}_{joint}" for prefix in prefixes for joint in robot.locked}
        ignored = [name for k, name in enumerate(table.names) if name and k not in used and name not in of_locked]
        notes += [f"columns ignored: {abbreviated(ignored)}"] if ignored else []
    return ColumnMap(places, tuple(notes), header.units)


def _wrenches(table: Table) -> Places:
    """Columns of external wrenches, which are called ``wrench_<frame>_fx`` … ``mz``."""
    wrenches: Places = {}
    for frame in sorted({match[1] for name in table.names if (match := re.fullmatch(r"wrench_(.+)_[fm][xyz]", name))}):
        wanted = [f"wrench_{frame}_{axis}" for axis in WRENCH_AXES]
        if missing := [name for name in wanted if name not in table.names]:
            raise LogError(
                f"the wrench of '{frame}' has no column '{missing[0]}'",
                where=table.path,
                expected=", ".join(wanted),
                remedy="a wrench needs its six columns",
            )
        wrenches["wrench", frame] = tuple(map(table.names.index, wanted))
    return wrenches


def _clock(table: Table, layout: LogLayout, header: Header, notes: list[str]) -> int | None:
    """The column of the time; notes tell where both a clock and a rate are given."""
    time, rate = header.clock, layout.rate
    if "time" in layout.columns:
        chosen = _as_list(layout.columns["time"])
        if len(chosen) != 1:
            raise LogError("time has one column", where="log.columns.time", got=chosen, expected="one name or number")
        time = _locate(table, chosen[0], "time")
        if rate is not None:
            notes.append(f"log.rate ({rate:g} Hz) is not used: log.columns.time names a clock")
    elif rate is not None and time is not None:
        notes.append(f"log.rate ({rate:g} Hz) is used instead of the clock in '{table.names[time]}'")
        time = None
    return time


def _named(table: Table, header: Header, robot: Robot, quantities: Sequence[str]) -> tuple[dict[str, Columns], list[str]]:
    """Columns of joints by name; by number, in ``robot.order``, where no name of a joint occurs."""
    known = [*robot.joints, *robot.locked]
    of_joints = {
        key: {joint: header.columns[key, joint] for joint in known if (key, joint) in header.columns} for key in quantities
    }
    if not any(column_of for key, column_of in of_joints.items() if key != "temperature"):
        numbered = {key: places for key in quantities if (places := _numbered(table, header, robot, key))}
        if numbered:
            return numbered, [f"numbered columns ({', '.join(numbered)}) taken in the order {', '.join(robot.order)}"]
        if "position" not in quantities:
            return {}, []
    columns: dict[str, Columns] = {}
    if ("temperature", "") in header.columns and "temperature" in quantities:
        columns["temperature"] = (header.columns["temperature", ""],) * robot.n
    for key, column_of in of_joints.items():
        missing = [joint for joint in robot.joints if joint not in column_of]
        if not missing:
            columns[key] = tuple(column_of[joint] for joint in robot.joints)
        if key == "position" or 0 < len(missing) < robot.n:
            prefix = header.prefixes[key]
            spare = [name for name in table.full_header if name.startswith(prefix) and name[len(prefix) :] not in known]
            if key == "position":
                _check_positions(table, header, robot, missing, spare)
                continue
            _refuse_repeated(table, [column_of[joint] for joint in robot.joints if joint in column_of])
            raise LogError(
                f"the log has no column '{prefix}{missing[0]}'",
                where=table.path,
                got=f"{robot.n - len(missing)} of {robot.n} joints",
                remedy=f"add it or remove all {prefix}* columns" + (f" (is it '{spare[0]}'?)" if spare else ""),
            )
    return columns, []


def _check_positions(table: Table, header: Header, robot: Robot, missing: Sequence[str], spare: Sequence[str]) -> None:
    """Refuses a log without the positions of all joints, and columns whose names are nearly those of a joint.

    Args:
        missing: Joints without a column.
        spare: Columns that are called like positions and name no joint.
    """
    known, names = [*robot.joints, *robot.locked], table.full_header
    prefix = header.prefixes["position"]
    longer = tuple(f"{spelling.prefix}_" for spelling in NAMES.values() if spelling.prefix.startswith(prefix))
    numberings = {re.sub(r"\d+", "", joint) for joint in known}
    for name in (names[k] for k in header.others if not names[k].startswith(longer)):
        joint = name[len(prefix) :]
        misspelt = re.sub(r"\d+", "", joint) in numberings or closest(joint, known) is not None
        if misspelt or missing:  # else it belongs to a gripper or a cart
            remedy = nearest(joint, known)
            if remedy.startswith("valid"):
                remedy += f"; if the log has other names: `log: {{joints: {{{[*missing, *known][0]}: {joint}, …}}}}`"
            raise LogError(f"column '{name}' names no joint of the robot", where=table.path, remedy=remedy)
    if len(missing) == robot.n:
        refuse_long(table)
        raise LogError(
            "no column holds a joint position",
            where=table.path,
            got=", ".join(names[:8]) + (", …" if len(names) > 8 else ""),
            expected=f"{prefix}{robot.joints[0]}, …",
            remedy="describe the columns in the project file (`log: {columns: ...}`); " + inference(table, robot),
        )
    if missing:
        _refuse_repeated(table, [column for (key, of), column in header.columns.items() if key == "position" and of in known])
        several = len(missing) > 1
        hint = f"; if '{spare[0]}' is this joint, correct the name or give `log: {{joints: ...}}`" if spare else ""
        raise LogError(
            (f"joints {', '.join(missing)} are" if several else f"joint '{missing[0]}' is") + " missing from the log",
            where=table.path,
            expected=f"columns '{prefix}{missing[0]}', …" if several else f"a column '{prefix}{missing[0]}'",
            remedy=f"lock joints that do not move: {lock_words(missing)} in the project file{hint}",
        )


def _numbered(table: Table, header: Header, robot: Robot, quantity: str) -> Columns:
    """Columns such as q1 … qn, in model order; empty where their numbers do not follow each other from 0 or 1."""
    numbers = {int(joint): column for (key, joint), column in header.columns.items() if key == quantity and joint.isdigit()}
    first = min(numbers, default=0)
    if not numbers or first > 1 or sorted(numbers) != list(range(first, first + len(numbers))):
        return ()
    if len(numbers) != robot.n:
        raise LogError(
            f"the log numbers {len(numbers)} joints in {quantity}, the robot has {robot.n}",
            where=table.path,
            got=f"{table.full_header[numbers[first]]} …",
            expected=", ".join(robot.order),
            remedy=_too_few(len(numbers), robot),
        )
    return tuple(numbers[first + k] for k in robot.places_in_order)


def _too_few(count: int, robot: Robot) -> str:
    """Remedy if the number of columns differs from the number of joints."""
    if count > robot.n:
        return "list the columns of these joints alone: `log: {columns: {...}}`"
    return f"lock the joints that the log does not hold; if these are the last ones, {lock_words(robot.order[count:])}"


def _check_units(table: Table, robot: Robot, layout: LogLayout, header: Header, quantities: Sequence[str]) -> None:
    """Refuses columns of positions or efforts whose names end with an unknown unit, unless others hold the same quantity."""
    matches = [None if without_unit(name)[1] else UNIT.search(name) for name in table.full_header]  # `q1 [furlong]`
    units = ["" if match is None else match[1] for match in matches]
    if not any(units):
        return
    bare = [UNIT.sub("", name) if unit else name for name, unit in zip(table.full_header, units, strict=True)]
    stripped = read_header(bare, robot, layout.joints, table.path)
    for quantity in {"position", "effort"}.intersection(quantities):
        unitless, known = (
            [column for (key, joint), column in columns.items() if key == quantity and joint not in robot.locked]
            for columns in (stripped.columns, header.columns)
        )
        odd = [column for column in unitless if units[column]]
        if odd and len(unitless) == robot.n > sum(not units[column] for column in known):
            raise LogError(
                "unknown unit",
                where=f"{table.path}, column '{table.full_header[odd[0]]}'",
                got=f"'{units[odd[0]]}'",
                expected=", ".join(unit_names(quantity)),
                remedy="correct it, or list the columns by number with their unit: `log: {columns: ..., units: ...}`",
            )


def _refuse_repeated(table: Table, columns: Sequence[int]) -> None:
    """Refuses columns whose names other columns have, too."""
    for name in (table.names[k] for k in columns):
        same = [k for k, other in enumerate(table.names) if other == name]
        if len(same) > 1:
            raise LogError(
                f"column '{name}' is there {len(same)} times",
                where=table.path,
                got=", ".join(map(str, same)),
                remedy="remove or rename the wrong one, or list the columns by number: `log: {columns: ...}`",
            )


def shown_column(table: Table, column: int) -> str:
    """A column in words, by its name or else its number."""
    return f"column {column}" if not table.names else f"column '{table.names[column]}'"


def _as_list(columns: Column | list[Column]) -> list[Column]:
    return [columns] if isinstance(columns, int | str) else columns


def _listed(table: Table, robot: Robot, layout: LogLayout, quantity: str) -> Columns:
    """Columns listed in the project file, converted from ``robot.order`` to model order."""
    columns = _as_list(layout.columns[quantity])
    if quantity == "temperature" and len(columns) == 1:  # one for the whole robot
        return (_locate(table, columns[0], quantity),) * robot.n
    if len(columns) != robot.n:
        raise LogError(
            f"{len(columns)} columns of {quantity} for {robot.n} joints",
            where=f"log.columns.{quantity}",
            got=columns,
            expected=f"one per joint, in the order {', '.join(robot.order)}",
            remedy=_too_few(len(columns), robot),
        )
    located = [_locate(table, column, quantity) for column in columns]
    if len(set(located)) != len(located):
        raise LogError("a column is listed twice", where=f"log.columns.{quantity}", got=columns, expected="different columns")
    return tuple(located[k] for k in robot.places_in_order)


def _locate(table: Table, column: Column, quantity: str) -> int:
    """The column with a name or number of the project file."""
    where = f"{table.path} (log.columns.{quantity})"
    if isinstance(column, int):
        if 0 <= column < table.width:
            return column
        expected, remedy = f"0 to {table.width - 1} (counted from 0)", "correct the column number in the project file"
        raise LogError("no such column", where=where, got=column, expected=expected, remedy=remedy)
    if not table.names:
        remedy = f"give its number, 0 to {table.width - 1}"
        raise LogError(f"column '{column}' is a name and the log has no header", where=where, remedy=remedy)
    if column not in table.names:
        remedy = nearest(column, table.names)
        if remedy.startswith("valid"):
            remedy += "; `log.columns` holds for all logs of a command: export those with other columns alike"
        raise LogError(f"no column '{column}'", where=where, remedy=remedy)
    return table.names.index(column)
