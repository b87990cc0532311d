"""Description of an unknown log: columns, units, order of joints, gravity, currents or torques."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ...errors import LogError
from ...linalg import positive
from ...model.locked_joints import lock_words
from ...model.robot import Robot
from ...units import parse_unit
from ..columns.columns import find_columns
from ..columns.headers import read_header
from ..columns.layout import LogLayout
from ..columns.names import NAMES
from ..columns.ranges import joint_ranges
from ..tables import Table
from .blocks import Block, Links, Rate, alike, blocks, links_of, rates
from .efforts import effort_roles
from .meaning import (
    Recognised,
    certain_if,
    effort_columns,
    effort_gain,
    effort_unit,
    gravity_direction,
    share_explained,
    stated_unit,
    with_sign,
)
from .readings import Reading, best_reading, si_units, unit_setting, unit_words
from .series import Series, TimeColumn, find_clock, smoothed

#: Maximum numbers of rows and columns considered.
_ROWS, _COLUMNS = 400_000, 400
#: Agreement of efforts with the URDF's torques from which they are a second indication of the positions.
_AGREE = 0.3


@dataclass(frozen=True)
class LogDescription:
    """Description of the content of a log.

    Attributes:
        columns: ``time`` or a quantity → its columns, in the order of the robot's joints.
        units: Quantity → unit, if it is not SI.
        rate: Rows per second if there is no time column [Hz], or None.
        gravity: Direction times 9.81 in the base frame [m/s²], if it differs from the robot's; else None.
        gain: Torque per effort, ``auto``, or None if the effort is a torque.
        notes: Remarks for the user.
        named: Quantities that the header names.
        other_position_units: Other units of the positions, as in the project file, that fit limits and efforts about as well.
    """

    columns: Mapping[str, Recognised]
    units: Mapping[str, Recognised]
    rate: Recognised | None
    gravity: Recognised | None
    gain: Recognised | None
    notes: tuple[str, ...] = field(default_factory=tuple)
    named: tuple[str, ...] = ()
    other_position_units: tuple[str | list[str], ...] = ()


def recognise(table: Table, robot: Robot, layout: LogLayout) -> LogDescription:
    """Recognises the columns of a log.

    Args:
        robot: The robot that moved, with the URDF's inertial parameters.
        layout: Known settings, which are taken as given.

    Raises:
        LogError: The log is too short, has too many or too few columns, or none that move like the joints of the robot.
    """
    if table.width > _COLUMNS:
        raise LogError("the log has too many columns to try", where=table.path, got=table.width, expected=f"at most {_COLUMNS}")
    values = table.read(range(table.width))[:_ROWS]
    named, time, time_unit = _named(table, robot, layout)
    clock = find_clock(values, layout.rate, time, time_unit)
    series = smoothed(values, clock)
    links = links_of(series)
    runs = blocks(table.width, robot.n, [] if clock.column is None else [clock.column])
    if not runs:
        raise LogError(
            f"the log has {table.width} columns, too few for {robot.n} joints",
            where=table.path,
            remedy=lock_words(robot.order[1:]),
        )
    linked = rates(links, runs)
    best = best_reading(robot, series, links, runs, linked, named, table, layout)

    columns: dict[str, Recognised] = {}
    units: dict[str, Recognised] = {}
    notes: list[str] = []
    rate = None
    if clock.column is None:
        rate = _row_rate(clock, best.rate)
    else:
        columns["time"] = Recognised(clock.column, clock.certainty, clock.reason)
        if clock.unit != "s":
            units["time"] = Recognised(clock.unit, clock.certainty, clock.reason)
    columns.update(_positions(series, links, linked, best, named, runs))
    if best.units != si_units(robot) or "position" in layout.units:
        units["position"] = _position_unit(best, robot, table)
    velocity = named.get("velocity", best.rate.block)
    if velocity is not None:
        correlation = f"correlation {best.rate.correlation:.3f} with the derivative of the positions"
        reason = "named so in the header" if "velocity" in named else correlation
        columns["velocity"] = Recognised(velocity, "certain", reason)
        if velocity == best.rate.block:  # otherwise no ratio to the positions is known
            _rate_unit(robot, best, units, notes, clock)
        if velocity in linked and "acceleration" not in named:
            notes.append(
                f"columns {list(linked[velocity].block or ())} are accelerations (the derivative of the velocities) "
                "and are computed from the positions instead"
            )
    roles, gravity, gain = effort_roles(best.efforts), None, None
    columns |= effort_columns(roles, named, best.alone)
    if roles:
        effort = with_sign(roles["effort"], robot)
        stated = stated_unit(effort, table.names)
        if (unit := effort_unit(effort, stated)) is not None:
            units["effort"] = unit
        gain, on_signs = effort_gain(effort, robot, stated, with_target="torque_target" in roles)
        gravity, on_gravity = gravity_direction(effort, robot, best.alone)
        notes += on_signs + on_gravity
    else:
        notes.append("no columns follow the torques that the URDF predicts: the log seems to contain no efforts")
    if table.names is not None and len(set(table.names)) == table.width:  # names stay valid if a column is added
        for quantity, setting in columns.items():
            if isinstance(setting.value, tuple):
                columns[quantity] = replace(setting, value=tuple(table.names[k] for k in setting.value))
            elif isinstance(setting.value, int):
                columns[quantity] = replace(setting, value=table.names[setting.value])
    in_header = (*named, *(["time"] if time is not None else []))
    others = tuple(unit_setting(of_joints, robot) for of_joints in best.other_units)
    return LogDescription(columns, units, rate, gravity, gain, tuple(notes), in_header, others)


def _named(table: Table, robot: Robot, layout: LogLayout) -> tuple[dict[str, Block], int | None, str | None]:
    """Information of header and project file: quantity → columns in the robot's order; the time column and its unit."""
    if table.names is None and not layout.columns:
        return {}, None, None
    try:
        column_map = find_columns(table, robot, layout, [quantity for quantity in NAMES if quantity != "temperature"])
        place = [robot.joints.index(joint) for joint in robot.order]
        named = {key: tuple(columns[k] for k in place) for key, columns in column_map.joints.items()}
        stated = column_map.units[column_map.time] if column_map.units and column_map.time is not None else None
        unit = layout.units.get("time") or stated or None
        return named, column_map.time, unit if isinstance(unit, str) else None
    except LogError:  # unrecognised header: decide by the numbers
        header = read_header(table.header, robot, {}, table.path)
        return {}, header.clock, None if header.clock is None else header.units[header.clock] or None


def _positions(
    series: Series,
    links: Links,
    linked: Mapping[Block, Rate],
    reading: Reading,
    named: Mapping[str, Block],
    runs: Sequence[Block],
) -> dict[str, Recognised]:
    """Positions, and the controller's reference if logged: of two similar signals the measured one has more noise."""
    if "position" in named:
        return {"position": Recognised(reading.position, "certain", "named so in the header")}
    std = positive(series.mean.std(axis=0))
    same = [run for run in (linked or runs) if alike(links, run, reading.position) and not set(run) & set(reading.position)]
    noisy = sorted([reading.position, *same], key=lambda run: -float(np.median(series.rough[list(run)] / std[list(run)])))
    best = reading.efforts[0] if reading.efforts else None
    score = "" if best is None else f"; for this motion the URDF's torques explain {share_explained(best)} of the efforts"
    certain = reading.unrivalled and reading.agreement > _AGREE  # limits alone would fit many smooth columns
    doubt = "" if reading.alone else "; other columns fit nearly as well"
    doubt += f"; in {' or '.join(map(unit_words, reading.other_units))} they fit nearly as well" if reading.other_units else ""
    why = f"within the joint limits{score}{doubt}"
    if len(noisy) == 1:
        return {"position": Recognised(reading.position, certain_if(certain), why)}
    return {
        "position": Recognised(noisy[0], certain_if(certain), why),
        "position_target": Recognised(noisy[-1], "likely", "follows the positions with less noise"),
    }


def _position_unit(reading: Reading, robot: Robot, table: Table) -> Recognised:
    share = f"{100 * reading.inside:.0f} % of the samples"
    origin = f"; hundredths of {joint_ranges(robot, table.path)[2]}" if "normalized" in reading.units else ""
    doubt = "".join(f"; in {unit_words(units)} they fit limits and efforts about as well" for units in reading.other_units)
    certainty = certain_if(reading.unrivalled)
    return Recognised(
        unit_setting(reading.units, robot), certainty, f"{share} lie within the joint limits in this unit{origin}{doubt}"
    )


def _row_rate(clock: TimeColumn, rate: Rate) -> Recognised:
    """Rows per second without a time column."""
    if rate.block is None or rate.scale <= 0 or clock.certainty == "certain":
        return Recognised(1.0 / clock.interval, clock.certainty, clock.reason)
    return Recognised(
        float(f"{(1.0 / clock.interval) / rate.scale:.4g}"),
        "likely",
        "at this rate the derivative of the positions equals the logged velocities, if their units agree",
    )


def _rate_unit(robot: Robot, reading: Reading, units: dict[str, Recognised], notes: list[str], clock: TimeColumn) -> None:
    """Unit of the velocities, from the ratio of the derivative of the positions to them."""
    if clock.column is None and clock.certainty != "certain":
        return
    names = ("m/s", "mm/s") if robot.prismatic.all() else ("rad/s", "deg/s", "rev/s", "rpm")
    ratio = reading.rate.scale * parse_unit(reading.units[int(np.argmin(robot.prismatic))]).factor
    factors: dict[str, float] = {name: parse_unit(name).factor for name in names}
    factors |= {f"a factor of {10.0**power:g}": 10.0**power for power in (-3, -2, -1, 1, 2, 3)}  # 0.1 is near 1 rpm
    nearest = min(factors, key=lambda name: abs(np.log(max(ratio, np.finfo(float).tiny) / factors[name])))
    if nearest in names and abs(ratio / factors[nearest] - 1.0) < 0.1:
        if nearest != names[0]:
            units["velocity"] = Recognised(
                nearest, "certain", f"the derivative of the positions is {reading.rate.scale:.4g} times as large"
            )
        return
    notes.append(
        f"the derivative of the positions is {reading.rate.scale:.4g} times the velocities, "
        "which no unit explains: check clock and gear ratios"
    )
