"""Assignment of the columns of a table to quantities and joints.

In this order: by the project file (:class:`.layout.LogLayout`); by joint names in the header (``q_<joint>`` or similar);
by numbers in the header (``q1 … qn``, exactly one per joint of the robot).
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ...errors import LogError, closest, nearest
from ...grouping import abbreviated
from ...model.locked_joints import lock_words
from ...model.robot import Robot
from ...units import unit_names
from ..tables import Table, refuse_long
from .header_units import check_kinds, header_units
from .headers import default_header, unknown_unit
from .layout import KIND, Column, LogLayout
from .names import NAMES, TIME_NAMES, WRENCH_AXES


@dataclass(frozen=True)
class ColumnMap:
    """Columns found in one table.

    Attributes:
        time: Column of the time, or None.
        joints: Quantity → one column per joint, in *model* order.
        wrenches: Frame → its six columns, force first.
        notes: Choices that the user should know of.
        units: ``time`` or a quantity → unit given by the header, or one per joint in the order of ``robot.order``.
        locked: Locked joint → column of its position.
    """

    time: int | None
    joints: Mapping[str, tuple[int, ...]]
    wrenches: Mapping[str, tuple[int, ...]]
    notes: tuple[str, ...] = ()
    units: Mapping[str, str | tuple[str, ...]] = field(default_factory=dict)
    locked: Mapping[str, int] = field(default_factory=dict)


def inference(table: Table, robot: Robot) -> str:
    """Returns the command that finds out what the columns of a table are."""
    files = " --robot ".join(shlex.quote(path) for path in (table.path, robot.path))
    return f"`urdf-ident inspect {files} --write-project project.yaml` finds out which is which"


def find_columns(table: Table, robot: Robot, layout: LogLayout, quantities: Sequence[str]) -> ColumnMap:
    """Finds the columns of given quantities.

    Args:
        robot: Names and order of the joints.
        quantities: Keys of :data:`.names.NAMES` to look for in this table.

    Returns:
        The columns; quantities that were not found are absent.

    Raises:
        LogError: A column does not exist, a name matches no joint, or a joint has no column.
    """
    given = {key: _explicit(table, robot, layout, key) for key in quantities if key in layout.columns}
    rest = [key for key in quantities if key not in given]
    named: dict[str, tuple[int, ...]] = {}
    locked: dict[str, int] = {}
    notes: list[str] = []
    units: dict[str, str | tuple[str, ...]] = {}
    names, wrenches = table.header, _wrenches(table)
    header = default_header(table.full_header, robot, layout.joints, table.path)
    if rest and names:
        spelled = replace(table, names=header.names, spelled=table.full_header)
        _check_units(table, robot, layout, [key for key in ("position", "effort") if key in rest], header.names)
        named, notes = _named(spelled, robot, rest, strict="position" in rest)
        if "position" in named:
            notes = [*header.notes, *notes]
            prefix = _prefix(header.names, robot.joints, "position")
            locked = {joint: header.names.index(prefix + joint) for joint in robot.locked if prefix + joint in header.names}
    time = None if layout.rate is not None and "time" not in layout.columns else _time(table, layout)
    if layout.rate is None:
        if time is None and "t" in header.names and "time" not in layout.columns:
            time = header.names.index("t")
    elif time is not None:
        notes = [*notes, f"log.rate ({layout.rate:g} Hz) is not used: log.columns.time names a clock"]
    elif names and (clock := _time(table, layout)) is not None and names[clock]:
        notes = [*notes, f"log.rate ({layout.rate:g} Hz) is used instead of the clock in '{names[clock]}'"]
    _check_shared(table, {**given, **named, **({} if time is None else {"time": (time,)})})
    used = {*sum(given.values(), ()), *sum(named.values(), ()), *sum(wrenches.values(), ()), time}
    if names:
        stated = {key: header_units(key, columns, header.units, robot) for key, columns in {**given, **named}.items()}
        check_kinds(table, robot, layout, {**given, **named}, header.units)
        stated["time"] = header.units[time] if time is not None else ""
        units = {key: unit for key, unit in stated.items() if unit}
        by_number = {column for chosen in layout.columns.values() for column in _listed(chosen) if isinstance(column, int)}
        for spelling in (names, names if given else header.names):
            _refuse_repeated(table, spelling, {column for column in used if column is not None} - by_number)
    if not given:
        prefixes = [prefix for spelling in NAMES.values() for prefix in spelling.prefixes]
        locked_names = {f"{prefix}_{joint}" for prefix in prefixes for joint in robot.locked}
        ignored = [name for k, name in enumerate(names) if k not in used and name and name not in locked_names]
        if ignored:
            notes.append(f"columns ignored: {abbreviated(ignored, 12)}")
    return ColumnMap(time, {**given, **named}, wrenches, tuple(notes), units, locked)


def _check_units(table: Table, robot: Robot, layout: LogLayout, quantities: Sequence[str], names: Sequence[str]) -> None:
    """Refuses columns of positions or efforts whose names end with an unknown unit, unless others hold the same quantity.

    Args:
        names: The header in the default spelling.
    """
    bare, units = zip(*map(unknown_unit, table.full_header), strict=True)
    if not any(units):
        return
    stripped = replace(table, names=default_header(bare, robot, layout.joints, table.path).names)
    for quantity in quantities:
        unitless, known = (_columns_of(header, robot, quantity) for header in (stripped, replace(table, names=tuple(names))))
        odd = [column for column in unitless if units[column]]
        if odd and len(unitless) == robot.n > sum(not units[column] for column in known):
            raise LogError(
                "unknown unit",
                where=f"{table.path}, column '{table.full_header[odd[0]]}'",
                got=f"'{units[odd[0]]}'",
                expected=", ".join(unit_names(KIND.get(quantity, quantity))),
                remedy="correct it, or list the columns by number with their unit: `log: {columns: ..., units: ...}`",
            )


def _columns_of(table: Table, robot: Robot, quantity: str) -> list[int]:
    """Columns of a quantity in a header in the default spelling, of all joints or not."""
    names = table.header
    prefix = _prefix(names, robot.joints, quantity)
    named = [names.index(prefix + joint) for joint in robot.joints if prefix + joint in names]
    return named or list(_numbers(table, quantity).values())


def _check_shared(table: Table, assigned: Mapping[str, tuple[int, ...]]) -> None:
    """Refuses a column that is assigned to two quantities."""
    owner: dict[int, str] = {}
    for quantity, columns in assigned.items():
        for column in columns if quantity != "temperature" else ():
            other = owner.setdefault(column, quantity)
            if other != quantity:
                name = f"column {column}" if table.names is None else f"column '{table.names[column]}'"
                raise LogError(
                    f"{name} is given for {other} and for {quantity}",
                    where=table.path,
                    remedy="correct `log: {columns: ...}` in the project file: columns are counted from 0",
                )


def _listed(columns: Column | list[Column]) -> list[Column]:
    return [columns] if isinstance(columns, int | str) else columns


def _refuse_repeated(table: Table, names: Sequence[str], columns: Collection[int]) -> None:
    """Refuses columns whose names other columns have, too."""
    counts = Counter(names)
    for k in sorted(columns):
        if counts[names[k]] > 1:
            raise LogError(
                f"column '{names[k]}' is there {counts[names[k]]} times",
                where=table.path,
                got=", ".join(str(column) for column, name in enumerate(names) if name == names[k]),
                remedy="remove or rename the wrong one, or list the columns by number: `log: {columns: ...}`",
            )


def _time(table: Table, layout: LogLayout) -> int | None:
    if "time" in layout.columns:
        columns = _listed(layout.columns["time"])
        if len(columns) != 1:
            raise LogError("time has one column", where="log.columns.time", got=columns, expected="one name or number")
        return _locate(table, columns[0], "time")
    return next((k for k, name in enumerate(table.header) if name.lower() in TIME_NAMES), None)


def _explicit(table: Table, robot: Robot, layout: LogLayout, quantity: str) -> tuple[int, ...]:
    """Columns listed in the project file, converted from ``robot.order`` to model order."""
    columns = _listed(layout.columns[quantity])
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
    where = f"{table.path} (log.columns.{quantity})"
    if isinstance(column, str):
        if table.names is None:
            raise LogError(
                f"column '{column}' is a name and the log has no header",
                where=where,
                remedy=f"give its number, 0 to {table.width - 1}",
            )
        if column not in table.names:
            remedy = nearest(column, table.names)
            if remedy.startswith("valid"):
                remedy += "; `log.columns` holds for all logs of a command: export those with other columns alike"
            raise LogError(f"no column '{column}'", where=where, remedy=remedy)
        return table.names.index(column)
    if not 0 <= column < table.width:
        raise LogError(
            "no such column",
            where=where,
            got=column,
            expected=f"0 to {table.width - 1} (counted from 0)",
            remedy="correct the column number in the project file",
        )
    return column


def _named(table: Table, robot: Robot, quantities: Sequence[str], strict: bool) -> tuple[dict[str, tuple[int, ...]], list[str]]:
    """Columns with default names, or numbered columns."""
    names = table.header
    known = {*robot.joints, *robot.locked}
    prefixes = {key: _prefix(names, known, key) for key in quantities}
    if not any(f"{prefix}{joint}" in names for prefix in prefixes.values() for joint in known):
        numbered, notes = _numbered(table, robot, quantities)
        if numbered or not strict:
            return numbered, notes
    columns: dict[str, tuple[int, ...]] = {}
    whole = next((names.index(name) for name in ("temperature", "temp") if name in names), None)
    if whole is not None and "temperature" in quantities:
        columns["temperature"] = (whole,) * robot.n
    for key, prefix in prefixes.items():
        wanted = [prefix + joint for joint in robot.joints]
        if key == "position" and strict:
            _check_positions(table, robot, prefix)
        present = [name for name in wanted if name in names]
        if present and len(present) < len(wanted):
            _refuse_repeated(table, names, [names.index(name) for name in present])
            missing = next(name for name in wanted if name not in names)
            spare = [name for name in names if name.startswith(prefix) and name[len(prefix) :] not in known]
            raise LogError(
                f"the log has no column '{missing}'",
                where=table.path,
                got=f"{len(present)} of {len(wanted)} joints",
                remedy=f"add it or remove all {prefix}* columns" + (f" (is it '{spare[0]}'?)" if spare else ""),
            )
        if present:
            columns[key] = tuple(names.index(name) for name in wanted)
    return columns, []


def _prefix(names: Sequence[str], joints: Collection[str], quantity: str) -> str:
    """The prefix used in this header for a quantity: the first in the list that occurs with a joint."""
    choices = [f"{prefix}_" for prefix in NAMES[quantity].prefixes]
    return next((prefix for prefix in choices if any(prefix + joint in names for joint in joints)), choices[0])


def _check_positions(table: Table, robot: Robot, prefix: str) -> None:
    names = table.header
    known = [*robot.joints, *robot.locked]
    longer = tuple(f"{spelling.prefix}_" for spelling in NAMES.values() if spelling.prefix.startswith(prefix))
    missing = [joint for joint in robot.joints if prefix + joint not in names]
    numberings = {re.sub(r"\d+", "", joint) for joint in known}
    for name in names:
        joint = name[len(prefix) :]
        other = name.startswith(prefix) and joint not in known and not name.startswith(longer)
        misspelt = other and (re.sub(r"\d+", "", joint) in numberings or closest(joint, known) is not None)
        if misspelt or (other and missing):  # else it belongs to a gripper or a cart
            remedy = nearest(joint, known)
            if remedy.startswith("valid"):
                remedy += (
                    f"; if the log has other names: `log: {{joints: {{{missing[0] if missing else known[0]}: {joint}, …}}}}`"
                )
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
        _refuse_repeated(table, names, [names.index(prefix + joint) for joint in known if prefix + joint in names])
        subject = f"joints {', '.join(missing)} are" if len(missing) > 1 else f"joint '{missing[0]}' is"
        spare = [name for name in table.full_header if name.startswith(prefix) and name[len(prefix) :] not in known]
        hint = f"; if '{spare[0]}' is this joint, correct the name or give `log: {{joints: ...}}`" if spare else ""
        raise LogError(
            f"{subject} missing from the log",
            where=table.path,
            expected=f"columns '{prefix}{missing[0]}', …" if len(missing) > 1 else f"a column '{prefix}{missing[0]}'",
            remedy=f"lock joints that do not move: {lock_words(missing)} in the project file{hint}",
        )


def _numbered(table: Table, robot: Robot, quantities: Sequence[str]) -> tuple[dict[str, tuple[int, ...]], list[str]]:
    """Columns such as q1 … qn, taken in ``robot.order``."""
    columns: dict[str, tuple[int, ...]] = {}
    for key in quantities:
        numbers = _numbers(table, key)
        first = min(numbers, default=0)
        if not numbers or first > 1 or sorted(numbers) != list(range(first, first + len(numbers))):
            continue
        if len(numbers) != robot.n:
            raise LogError(
                f"the log numbers {len(numbers)} joints in {key}, the robot has {robot.n}",
                where=table.path,
                got=f"{table.header[numbers[first]]} …",
                expected=", ".join(robot.order),
                remedy=_too_few(len(numbers), robot),
            )
        columns[key] = tuple(numbers[first + k] for k in robot.places_in_order)
    if not columns:
        return {}, []
    return columns, [f"numbered columns ({', '.join(columns)}) taken in the order {', '.join(robot.order)}"]


def _numbers(table: Table, quantity: str) -> dict[int, int]:
    """Number → column of names such as ``q1``, ``q_1`` and ``q[1]``, with the first prefix that occurs."""
    for prefix in NAMES[quantity].prefixes:
        pattern = re.compile(rf"{prefix}[_\[ ]?(\d+)\]?", re.IGNORECASE)
        columns = {int(match[1]): k for k, name in enumerate(table.header) if (match := pattern.fullmatch(name))}
        if columns:
            return columns
    return {}


def _too_few(count: int, robot: Robot) -> str:
    """Remedy if the number of columns differs from the number of joints."""
    if count > robot.n:
        return "list the columns of these joints alone: `log: {columns: {...}}`"
    return f"lock the joints that the log does not hold; if these are the last ones, {lock_words(robot.order[count:])}"


def _wrenches(table: Table) -> dict[str, tuple[int, ...]]:
    names = table.header
    frames = {match[1] for name in names if (match := re.fullmatch(r"wrench_(.+)_[fm][xyz]", name))}
    columns = {}
    for frame in sorted(frames):
        wanted = [f"wrench_{frame}_{axis}" for axis in WRENCH_AXES]
        missing = [name for name in wanted if name not in names]
        if missing:
            raise LogError(
                f"the wrench of '{frame}' has no column '{missing[0]}'",
                where=table.path,
                expected=", ".join(wanted),
                remedy="a wrench needs its six columns",
            )
        columns[frame] = tuple(names.index(name) for name in wanted)
    return columns
