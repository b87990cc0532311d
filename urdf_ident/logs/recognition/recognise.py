"""Description of an unknown log: columns, units, order of joints, gravity, currents or torques."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ...errors import LogError
from ...linalg import Array, positive
from ...model.locked_joints import lock_words
from ...model.robot import Robot
from ...units import parse_unit
from ..columns.columns import find_columns
from ..columns.headers import read_header
from ..columns.layout import LogLayout
from ..columns.names import NAMES
from ..columns.ranges import LARGEST, joint_ranges
from ..formats.lerobot import split_episode
from ..tables import Table
from .blocks import Block, Links, Rate, alike, blocks, links_of, rates
from .efforts import EffortColumns, effort_roles, find_efforts
from .gravity import CandidateMotion
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
from .series import Series, TimeColumn, find_clock, smoothed

#: Possible units of revolute positions, with prior weights that decide if the data do not (small motions).
_UNITS = {"rad": 1.0, "deg": 0.9, "normalized": 0.9, "rev": 0.8}
#: Fraction of the best interpretation's score above which another one is a competitor.
_RIVAL = 0.75
#: The same for another unit of the same columns: sufficiently large motions give at most 0.82, small ones 0.9 and more.
_RIVAL_UNIT = 0.86
#: Prior weights of the kinds of effort, and of a gravity direction that differs from the project's.
_KINDS, _TURNED = {"torque": 1.0, "current": 0.95, "thousandths": 0.9}, 0.85
#: Maximum numbers of rows and columns considered.
_ROWS, _COLUMNS = 400_000, 400
#: Runs of columns that are tried as positions.
_MOST_STARTS = 60


@dataclass(frozen=True, eq=False)
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
        other_position_units: Other units of revolute positions that fit the limits and the efforts about as well.
    """

    columns: Mapping[str, Recognised]
    units: Mapping[str, Recognised]
    rate: Recognised | None
    gravity: Recognised | None
    gain: Recognised | None
    notes: tuple[str, ...] = field(default_factory=tuple)
    named: tuple[str, ...] = ()
    other_position_units: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class _Candidate:
    """One interpretation of a log: positions, their unit, their rates, and the best matching efforts; whether no other columns
    fit nearly as well, and which other units of the same columns do; the direction of gravity in the project."""

    position: Block
    unit: str
    rate: Rate
    efforts: tuple[EffortColumns, ...]
    inside: float
    down: Array
    alone: bool = True
    other_units: tuple[str, ...] = ()

    @property
    def agreement(self) -> float:
        """Agreement of the best efforts with the torques of the URDF, 0 to 1."""
        return self.efforts[0].agreement if self.efforts else 0.0

    @property
    def plausibility(self) -> float:
        usual = 1.0  # for torques of a robot mounted as described in the project
        for row in self.efforts[:1]:
            turned = row.score > 0.1 and abs(float(row.axis @ self.down)) < 0.9  # efforts may count backwards
            usual = _KINDS[row.kind] * (_TURNED if turned else 1.0)
        rated = 1.0 + 0.2 * self.rate.correlation
        return _UNITS.get(self.unit, 1.0) * usual * (self.agreement + 0.05) * self.inside**2 * rated


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
    best = _best(robot, series, links, runs, linked, named, table, layout)

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
    if (best.unit != "rad" or "position" in layout.units) and not robot.prismatic.all():
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
    return LogDescription(columns, units, rate, gravity, gain, tuple(notes), in_header, best.other_units)


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


def _best(
    robot: Robot,
    series: Series,
    links: Links,
    runs: Sequence[Block],
    linked: Mapping[Block, Rate],
    named: Mapping[str, Block],
    table: Table,
    layout: LogLayout,
) -> _Candidate:
    """The most plausible of all runs of columns and units taken as the positions."""
    given_unit = layout.units.get("position")
    units = [given_unit] if isinstance(given_unit, str) else ["rad"] if robot.prismatic.all() else list(_UNITS)
    down = robot.gravity / max(float(np.linalg.norm(robot.gravity)), 1e-12)
    few = slice(None, None, max(1, len(series.mean) // 500))
    starts = [named["position"]] if "position" in named else _smooth_runs(series, links, runs, linked)
    candidates = []
    for run in starts[:_MOST_STARTS]:
        rate = linked.get(run, Rate())
        columns = [run[k] for k in robot.places_in_order]
        moving = [run] if rate.block is None else [run, rate.block]
        second = linked[moving[-1]].block if rate.block in linked else None
        assigned = {column for block in (*moving, second or ()) for column in block}
        free = [
            other for other in runs if not set(other) & assigned and not any(alike(links, other, block) for block in moving)
        ]
        among = [named["effort"]] if "effort" in named else free
        for unit in units:
            if (scale := _scale_of(unit, robot, table, run, np.abs(series.mean[:, columns]).max())) is None:
                continue
            factor, zero = scale
            q, v, a = (signal[:, columns] * factor for signal in (series.mean, series.slope, series.bend))
            q = q + zero
            inside = _share_inside(q, robot)
            if inside < 0.2 or np.abs(q).max() > 1e4:
                continue
            motion = CandidateMotion.of(robot, q[few], v[few], a[few])
            efforts = find_efforts(robot, motion, series.mean[few], series.rough, among)
            candidates.append(_Candidate(run, unit, rate, efforts, inside, down))
    if not candidates:
        raise LogError(
            "no columns of the log move as the joints of this robot would",
            where=table.path,
            remedy=f"check that it has {robot.n} joints, or lock those that were not logged",
        )
    best = max(candidates, key=lambda candidate: candidate.plausibility)
    near = [candidate for candidate in candidates if candidate.plausibility > _RIVAL * best.plausibility]
    alone = all(alike(links, candidate.position, best.position) for candidate in near)
    same = [candidate for candidate in candidates if candidate.position == best.position and candidate.unit != best.unit]
    other = tuple(candidate.unit for candidate in same if candidate.plausibility > _RIVAL_UNIT * best.plausibility)
    return replace(best, alone=alone, other_units=other)


def _smooth_runs(series: Series, links: Links, runs: Sequence[Block], linked: Mapping[Block, Rate]) -> list[Block]:
    """Runs that may be positions: those with logged derivatives, or any smooth ones where no derivatives were logged."""
    derived = {rate.block for rate in linked.values()}
    std = series.mean.std(axis=0)
    return (
        [run for run in linked if run not in derived]
        or list(linked)
        or [
            run
            for run in runs
            if all(series.rough[k] < 0.02 * std[k] for k in run if links.moves[k]) and any(links.moves[k] for k in run)
        ]
    )


def _scale_of(unit: str, robot: Robot, table: Table, run: Block, largest: float) -> tuple[Array, Array] | None:
    """Factor to rad or m and zero of positions in a unit, shape (n,) each; None if the columns cannot be in it."""
    if unit != "normalized":
        return np.where(robot.prismatic, 1.0, parse_unit(unit).factor), np.zeros(robot.n)
    spelled = table.names is not None and all(table.names[k].endswith(".pos") for k in run)
    of_lerobot = spelled or split_episode(table.path) is not None
    limited = np.isfinite(robot.limit("upper") - robot.limit("lower")).all()
    if not (of_lerobot and limited) or largest > LARGEST:
        return None
    half, zero, _ = joint_ranges(robot, table.path)
    return half / 100, zero


def _share_inside(q: Array, robot: Robot) -> float:
    """Fraction of positions within the limits of the URDF, or within two turns for joints without limits."""
    lower, upper = robot.limit("lower"), robot.limit("upper")
    room = 0.05 * np.where(np.isfinite(upper - lower), upper - lower, 1.0)
    lower = np.where(np.isfinite(lower), lower - room, -4 * np.pi)
    upper = np.where(np.isfinite(upper), upper + room, 4 * np.pi)
    return float(((q >= lower) & (q <= upper)).mean())


def _positions(
    series: Series,
    links: Links,
    linked: Mapping[Block, Rate],
    candidate: _Candidate,
    named: Mapping[str, Block],
    runs: Sequence[Block],
) -> dict[str, Recognised]:
    """Positions, and the controller's reference if logged: of two similar signals the measured one has more noise."""
    if "position" in named:
        return {"position": Recognised(candidate.position, "certain", "named so in the header")}
    std = positive(series.mean.std(axis=0))
    same = [run for run in (linked or runs) if alike(links, run, candidate.position) and not set(run) & set(candidate.position)]
    noisy = sorted([candidate.position, *same], key=lambda run: -float(np.median(series.rough[list(run)] / std[list(run)])))
    best = candidate.efforts[0] if candidate.efforts else None
    score = "" if best is None else f"; for this motion the URDF's torques explain {share_explained(best)} of the efforts"
    certain = candidate.agreement > 0.3 and candidate.inside > 0.98 and candidate.alone and not candidate.other_units
    doubt = "" if candidate.alone else "; other columns fit nearly as well"
    doubt += f"; in {' or '.join(candidate.other_units)} they fit nearly as well" if candidate.other_units else ""
    why = f"within the joint limits{score}{doubt}"
    if len(noisy) == 1:
        return {"position": Recognised(candidate.position, certain_if(certain), why)}
    return {
        "position": Recognised(noisy[0], certain_if(certain), why),
        "position_target": Recognised(noisy[-1], "likely", "follows the positions with less noise"),
    }


def _position_unit(candidate: _Candidate, robot: Robot, table: Table) -> Recognised:
    certainty = certain_if(candidate.inside > 0.98 and candidate.alone and not candidate.other_units)
    share = f"{100 * candidate.inside:.0f} % of the samples"
    origin = f"; hundredths of {joint_ranges(robot, table.path)[2]}" if candidate.unit == "normalized" else ""
    doubt = "".join(f"; in {unit} they fit limits and efforts about as well" for unit in candidate.other_units)
    return Recognised(candidate.unit, certainty, f"{share} lie within the joint limits in this unit{origin}{doubt}")


def _row_rate(clock: TimeColumn, rate: Rate) -> Recognised:
    """Rows per second without a time column."""
    if rate.block is None or rate.scale <= 0 or clock.certainty == "certain":
        return Recognised(1.0 / clock.interval, clock.certainty, clock.reason)
    return Recognised(
        float(f"{(1.0 / clock.interval) / rate.scale:.4g}"),
        "likely",
        "at this rate the derivative of the positions equals the logged velocities, if their units agree",
    )


def _rate_unit(robot: Robot, candidate: _Candidate, units: dict[str, Recognised], notes: list[str], clock: TimeColumn) -> None:
    """Unit of the velocities, from the ratio of the derivative of the positions to them."""
    if clock.column is None and clock.certainty != "certain":
        return
    ratio = candidate.rate.scale * parse_unit(candidate.unit).factor
    factors: dict[str, float] = {name: parse_unit(name).factor for name in ("rad/s", "deg/s", "rev/s", "rpm")}
    factors |= {f"a factor of {10.0**power:g}": 10.0**power for power in (-3, -2, -1, 1, 2, 3)}  # 0.1 is near 1 rpm
    nearest = min(factors, key=lambda name: abs(np.log(max(ratio, np.finfo(float).tiny) / factors[name])))
    if nearest in ("rad/s", "deg/s", "rev/s", "rpm") and abs(ratio / factors[nearest] - 1.0) < 0.1:
        if nearest != "rad/s" and not robot.prismatic.all():
            units["velocity"] = Recognised(
                nearest, "certain", f"the derivative of the positions is {candidate.rate.scale:.4g} times as large"
            )
        return
    notes.append(
        f"the derivative of the positions is {candidate.rate.scale:.4g} times the velocities, "
        "which no unit explains: check clock and gear ratios"
    )
