"""Description of an unknown log: columns, units, order of joints, gravity, currents or torques.

Runs of columns and units are read as positions in turn; the most plausible reading, by limits, rates and efforts, is described.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ...errors import LogError
from ...linalg import Array, positive
from ...model.locked_joints import lock_words
from ...model.robot import Robot
from ...units import fits, parse_unit
from ..columns.columns import find_columns
from ..columns.fields import LARGEST, joint_ranges, per_joint
from ..columns.headers import read_header
from ..columns.layout import NAMES, LogLayout
from ..formats.lerobot import split_episode
from ..tables import Table
from .effort_settings import effort_settings, share_explained
from .efforts import ELSEWHERE, CandidateMotion, EffortColumns, effort_roles, find_efforts
from .recognised import Recognised, certain_if
from .series import Block, Rate, Series, TimeColumn, blocks, find_clock, smoothed

#: Possible units of positions of revolute and prismatic joints, with prior weights that decide if the data do not (small
#: motions); ``normalized`` is one of all joints. Efforts hardly tell mm from m, so that only the joint limits speak for mm.
_ANGLES = {"rad": 1.0, "deg": 0.9, "normalized": 0.9, "rev": 0.8}
_LENGTHS = {"m": 1.0, "mm": 0.8}
#: Fraction of the best reading's score above which another one is a competitor.
_RIVAL = 0.75
#: The same for another unit of the same columns: sufficiently large motions give at most 0.82, small ones 0.9 and more.
_RIVAL_UNIT = 0.86
#: Prior weights of the kinds of effort, and of a gravity direction that differs from the project's.
_KINDS, _TURNED = {"torque": 1.0, "current": 0.95, "thousandths": 0.9}, 0.85
#: Most runs of columns that are tried as positions, and most samples on which torques are computed.
_MOST_RUNS, _MOST_SAMPLES = 60, 500
#: Largest noise of a position whose rates were not logged, over its standard deviation.
_SMOOTH = 0.02
#: Least fraction of positions within the joint limits: to be tried, and to be certain.
_INSIDE, _SURELY_INSIDE = 0.2, 0.98
#: Largest position of any robot [rad or m].
_BEYOND = 1e4
#: Room beyond a joint's limits, over its range (or 1 rad or m): zeros of logs and URDFs differ.
_ROOM = 0.05
#: Maximum numbers of rows and columns considered.
_ROWS, _COLUMNS = 400_000, 400
#: Agreement of efforts with the URDF's torques from which they are a second indication of the positions.
_AGREE = 0.3


@dataclass(frozen=True, eq=False)
class Reading:
    """One way to read the columns of a log.

    Attributes:
        position: Columns of the positions.
        units: Their units, in the order of the robot's joints.
        rate: Columns of their rates.
        efforts: The best matching efforts.
        inside: Fraction of the positions within the joint limits.
        alone: Whether no other columns fit nearly as well.
        other_units: Other units of the same columns that fit nearly as well.
    """

    position: Block
    units: tuple[str, ...]
    rate: Rate
    efforts: tuple[EffortColumns, ...]
    inside: float
    alone: bool = True
    other_units: tuple[tuple[str, ...], ...] = ()

    @property
    def unrivalled(self) -> bool:
        """Whether the positions lie within the limits in these units, and neither other columns nor other units fit as well."""
        return self.inside > _SURELY_INSIDE and self.alone and not self.other_units

    @property
    def agreement(self) -> float:
        """Agreement of the best efforts with the torques of the URDF, 0 to 1."""
        return self.efforts[0].agreement if self.efforts else 0.0

    def plausibility(self, robot: Robot) -> float:
        """Score by which readings are compared: agreement of the efforts, limits, rates and usual units."""
        usual = 1.0  # for torques of a robot mounted as described in the project
        for row in self.efforts[:1]:
            turned = row.weighed and abs(row.along(robot)) < ELSEWHERE  # efforts may count backwards
            usual = _KINDS[row.kind] * (_TURNED if turned else 1.0)
        rated = 1.0 + 0.2 * self.rate.correlation
        weight = math.prod({**_ANGLES, **_LENGTHS}.get(unit, 1.0) for unit in set(self.units))
        return weight * usual * (self.agreement + 0.05) * self.inside**2 * rated


def best_reading(
    robot: Robot,
    series: Series,
    runs: Sequence[Block],
    linked: Mapping[Block, Rate],
    named: Mapping[str, Block],
    table: Table,
    layout: LogLayout,
) -> Reading:
    """The most plausible of all runs of columns and units taken as the positions."""
    thinned = slice(None, None, max(1, len(series.mean) // _MOST_SAMPLES))
    starts = [named["position"]] if "position" in named else _smooth_runs(series, runs, linked)
    readings = []
    for run in starts[:_MOST_RUNS]:
        rate = linked.get(run, Rate())
        moving = [run] if rate.block is None else [run, rate.block]
        second = linked[moving[-1]].block if rate.block in linked else None
        assigned = {column for block in (*moving, second or ()) for column in block}
        free = [run for run in runs if not set(run) & assigned and not any(series.alike(run, block) for block in moving)]
        among = [named["effort"]] if "effort" in named else free
        for units in _possible_units(series, robot, layout, table, run):
            q, v, a = _scaled_motion(series, robot, run, units, table.path)
            inside = _share_inside(q, robot)
            if inside < _INSIDE or np.abs(q).max() > _BEYOND:
                continue
            motion = CandidateMotion.of(robot, q[thinned], v[thinned], a[thinned])
            efforts = find_efforts(robot, motion, series.mean[thinned], series.rough, among)
            readings.append(Reading(run, units, rate, efforts, inside))
    if not readings:
        raise LogError(
            "no columns of the log move as the joints of this robot would",
            where=table.path,
            remedy=f"check that it has {robot.n} joints, or lock those that were not logged",
        )
    best = max(readings, key=lambda reading: reading.plausibility(robot))
    most = best.plausibility(robot)
    near = [reading for reading in readings if reading.plausibility(robot) > _RIVAL * most]
    alone = all(series.alike(reading.position, best.position) for reading in near)
    of_best = [one for one in readings if one.position == best.position and one.units != best.units]
    other_units = tuple(one.units for one in of_best if one.plausibility(robot) > _RIVAL_UNIT * most)
    return replace(best, alone=alone, other_units=other_units)


def _smooth_runs(series: Series, runs: Sequence[Block], linked: Mapping[Block, Rate]) -> list[Block]:
    """Runs that may be positions: those with logged derivatives, or any smooth ones where no derivatives were logged."""
    derived = {rate.block for rate in linked.values()}
    std = series.mean.std(axis=0)
    return (
        [run for run in linked if run not in derived]
        or list(linked)
        or [
            run
            for run in runs
            if all(series.rough[k] < _SMOOTH * std[k] for k in run if series.moves[k]) and any(series.moves[k] for k in run)
        ]
    )


def si_units(robot: Robot) -> tuple[str, ...]:
    """Units of positions in SI, in the order of the robot's joints."""
    return tuple("m" if prismatic else "rad" for prismatic in robot.prismatic)


def _possible_units(series: Series, robot: Robot, layout: LogLayout, table: Table, run: Block) -> list[tuple[str, ...]]:
    """Units that positions may have, in the order of the robot's joints: those that the project states, else the usual ones."""
    stated = layout.units.get("position")
    if isinstance(stated, list):
        return [tuple(per_joint(stated, robot, "log.units.position"))]
    if stated is not None:  # a unit of angle applies to revolute joints only, and conversely
        unit = parse_unit(stated, "position", "log.units.position")
        suits = [stated == "normalized" or fits(unit, "position", bool(prismatic)) for prismatic in robot.prismatic]
        return [tuple(stated if suit else si for suit, si in zip(suits, si_units(robot), strict=True))]
    choices = []
    for angle in _ANGLES:
        if angle != "normalized":
            choices += [tuple(length if prismatic else angle for prismatic in robot.prismatic) for length in _LENGTHS]
        elif _may_be_normalized(series, robot, table, run):
            choices.append((angle,) * robot.n)
    return list(dict.fromkeys(choices))


def _may_be_normalized(series: Series, robot: Robot, table: Table, run: Block) -> bool:
    """Whether columns may be hundredths of the joints' ranges: those of a LeRobot arm whose joints have limits."""
    spelled = table.names and all(table.names[k].endswith(".pos") for k in run)
    of_lerobot = spelled or split_episode(table.path) is not None
    limited = np.isfinite(robot.limit("upper") - robot.limit("lower")).all()
    return bool(of_lerobot and limited and np.abs(series.mean[:, list(run)]).max() <= LARGEST)


def _scaled_motion(series: Series, robot: Robot, run: Block, units: tuple[str, ...], path: str) -> tuple[Array, Array, Array]:
    """Positions, velocities and accelerations of columns in given units, shape (M, n) [rad or m]."""
    columns = [run[k] for k in robot.places_in_order]
    factor, zero = np.array([parse_unit(unit).factor for unit in units]), np.zeros(robot.n)
    normalized = np.array(units) == "normalized"
    if normalized.any():
        half, middle, _ = joint_ranges(robot, path)
        factor, zero = np.where(normalized, half / 100, factor), np.where(normalized, middle, 0.0)
    q, v, a = (signal[:, columns] * factor for signal in (series.mean, series.slope, series.bend))
    return q + zero, v, a


def unit_setting(units: tuple[str, ...], robot: Robot) -> str | list[str]:
    """Units of positions as in the project file: the one that joints of a type have instead of SI, else one per joint."""
    of_types = [{unit for unit, slides in zip(units, robot.prismatic, strict=True) if slides == kind} for kind in (False, True)]
    other = set(units) - set(si_units(robot))
    if max(map(len, of_types)) == 1 and len(other) < 2:
        return next(iter(other), units[0])
    return [units[robot.joints.index(joint)] for joint in robot.order]


def unit_words(units: tuple[str, ...]) -> str:
    """Units of positions in words, each once."""
    return " and ".join(dict.fromkeys(units))


def _share_inside(q: Array, robot: Robot) -> float:
    """Fraction of positions within the limits of the URDF, or within two turns for joints without limits."""
    lower, upper = robot.limit("lower"), robot.limit("upper")
    room = _ROOM * np.where(np.isfinite(upper - lower), upper - lower, 1.0)
    lower = np.where(np.isfinite(lower), lower - room, -4 * np.pi)
    upper = np.where(np.isfinite(upper), upper + room, 4 * np.pi)
    return float(((q >= lower) & (q <= upper)).mean())


@dataclass(frozen=True)
class LogDescription:
    """Description of the content of a log.

    Attributes:
        settings: Setting of the project file (``log.columns.position``, ``log.units.effort``, ``log.rate``, ``robot.gravity``,
            ``drive.gain``) → what was recognised; columns in the robot's order, units, gravity and gains only where they are
            not those of the default.
        notes: Remarks for the user.
        named: Quantities that the header names.
        other_position_units: Other units of the positions, as in the project file, that fit limits and efforts about as well.
    """

    settings: Mapping[str, Recognised] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
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
    runs = blocks(table.width, robot.n, [] if clock.column is None else [clock.column])
    if not runs:
        raise LogError(
            f"the log has {table.width} columns, too few for {robot.n} joints",
            where=table.path,
            remedy=lock_words(robot.order[1:]),
        )
    linked = series.rates(runs)
    best = best_reading(robot, series, runs, linked, named, table, layout)

    found, notes = dict[str, Recognised](), list[str]()
    if clock.column is None:
        found["log.rate"] = _row_rate(clock, best.rate)
    else:
        found["log.columns.time"] = Recognised(clock.column, clock.certainty, clock.reason)
        if clock.unit != "s":
            found["log.units.time"] = Recognised(clock.unit, clock.certainty, clock.reason)
    found |= _positions(series, linked, best, named, runs)
    if best.units != si_units(robot) or "position" in layout.units:
        found["log.units.position"] = _position_unit(best, robot, table)
    velocity = named.get("velocity", best.rate.block)
    if velocity is not None:
        correlation = f"correlation {best.rate.correlation:.3f} with the derivative of the positions"
        reason = "named so in the header" if "velocity" in named else correlation
        found["log.columns.velocity"] = Recognised(velocity, "certain", reason)
        # otherwise no ratio to the positions is known
        if velocity == best.rate.block and (clock.column is not None or clock.certainty == "certain"):
            unit = _rate_unit(robot, best)
            times = f"the derivative of the positions is {best.rate.scale:.4g} times"
            if unit is None:
                notes.append(f"{times} the velocities, which no unit explains: check clock and gear ratios")
            elif unit not in ("rad/s", "m/s"):
                found["log.units.velocity"] = Recognised(unit, "certain", f"{times} as large")
        if velocity in linked and "acceleration" not in named:
            notes.append(
                f"columns {list(linked[velocity].block or ())} are accelerations (the derivative of the velocities) "
                "and are computed from the positions instead"
            )
    of_efforts, on_efforts = effort_settings(effort_roles(best.efforts), robot, table.names, named, best.alone)
    found, notes = found | of_efforts, notes + on_efforts
    if table.names and len(set(table.names)) == table.width:  # names stay valid if a column is added
        for key, setting in found.items():
            if key.startswith("log.columns.") and isinstance(setting.value, tuple):
                found[key] = replace(setting, value=tuple(table.names[k] for k in setting.value))
            elif key.startswith("log.columns.") and isinstance(setting.value, int):
                found[key] = replace(setting, value=table.names[setting.value])
    in_header = (*named, *(["time"] if time is not None else []))
    others = tuple(unit_setting(of_joints, robot) for of_joints in best.other_units)
    return LogDescription(found, tuple(notes), in_header, others)


def _named(table: Table, robot: Robot, layout: LogLayout) -> tuple[dict[str, Block], int | None, str | None]:
    """Information of header and project file: quantity → columns in the robot's order; the time column and its unit."""
    if not table.names and not layout.columns:
        return {}, None, None
    try:
        column_map = find_columns(table, robot, layout, [quantity for quantity in NAMES if quantity != "temperature"])
        place = [robot.joints.index(joint) for joint in robot.order]
        named = {key: tuple(columns[k] for k in place) for key, columns in column_map.signals.items()}
        stated = column_map.units[column_map.time] if column_map.units and column_map.time is not None else None
        unit = layout.units.get("time") or stated or None
        return named, column_map.time, unit if isinstance(unit, str) else None
    except LogError:  # unrecognised header: decide by the numbers
        header = read_header(table.names, robot, {}, table.path)
        return {}, header.clock, None if header.clock is None else header.units[header.clock] or None


def _positions(
    series: Series, linked: Mapping[Block, Rate], reading: Reading, named: Mapping[str, Block], runs: Sequence[Block]
) -> dict[str, Recognised]:
    """Positions, and the controller's reference if logged: of two similar signals the measured one has more noise."""
    if "position" in named:
        return {"log.columns.position": Recognised(reading.position, "certain", "named so in the header")}
    std = positive(series.mean.std(axis=0))
    same = [run for run in (linked or runs) if series.alike(run, reading.position) and not set(run) & set(reading.position)]
    noisy = sorted([reading.position, *same], key=lambda run: -float(np.median(series.rough[list(run)] / std[list(run)])))
    best = reading.efforts[0] if reading.efforts else None
    score = "" if best is None else f"; for this motion the URDF's torques explain {share_explained(best)} of the efforts"
    certain = reading.unrivalled and reading.agreement > _AGREE  # limits alone would fit many smooth columns
    doubt = "" if reading.alone else "; other columns fit nearly as well"
    doubt += f"; in {' or '.join(map(unit_words, reading.other_units))} they fit nearly as well" if reading.other_units else ""
    why = f"within the joint limits{score}{doubt}"
    found = {"log.columns.position": Recognised(noisy[0], certain_if(certain), why)}
    if len(noisy) > 1:
        found["log.columns.position_target"] = Recognised(noisy[-1], "likely", "follows the positions with less noise")
    return found


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


def _rate_unit(robot: Robot, reading: Reading) -> str | None:
    """Unit of the velocities, from the ratio of the derivative of the positions to them; None if no unit explains it."""
    names = ("m/s", "mm/s") if robot.prismatic.all() else ("rad/s", "deg/s", "rev/s", "rpm")
    ratio = reading.rate.scale * parse_unit(reading.units[int(np.argmin(robot.prismatic))]).factor
    factors: dict[str, float] = {name: parse_unit(name).factor for name in names}
    factors |= {f"a factor of {10.0**power:g}": 10.0**power for power in (-3, -2, -1, 1, 2, 3)}  # 0.1 is near 1 rpm
    nearest = min(factors, key=lambda name: abs(np.log(max(ratio, np.finfo(float).tiny) / factors[name])))
    return nearest if nearest in names and abs(ratio / factors[nearest] - 1.0) < 0.1 else None
