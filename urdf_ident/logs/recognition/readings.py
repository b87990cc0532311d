"""Readings of an unknown log: which columns are the positions, in which units, with which rates and efforts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...errors import LogError
from ...linalg import Array
from ...model.robot import Robot
from ...units import fits, parse_unit
from ..columns.fields import per_joint
from ..columns.layout import LogLayout
from ..columns.ranges import LARGEST, joint_ranges
from ..formats.lerobot import split_episode
from ..tables import Table
from .blocks import Block, Links, Rate, alike
from .efforts import ELSEWHERE, EffortColumns, find_efforts
from .gravity import CandidateMotion
from .series import Series

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
    links: Links,
    runs: Sequence[Block],
    linked: Mapping[Block, Rate],
    named: Mapping[str, Block],
    table: Table,
    layout: LogLayout,
) -> Reading:
    """The most plausible of all runs of columns and units taken as the positions."""
    thinned = slice(None, None, max(1, len(series.mean) // _MOST_SAMPLES))
    starts = [named["position"]] if "position" in named else _smooth_runs(series, links, runs, linked)
    readings = []
    for run in starts[:_MOST_RUNS]:
        rate = linked.get(run, Rate())
        moving = [run] if rate.block is None else [run, rate.block]
        second = linked[moving[-1]].block if rate.block in linked else None
        assigned = {column for block in (*moving, second or ()) for column in block}
        free = [
            other for other in runs if not set(other) & assigned and not any(alike(links, other, block) for block in moving)
        ]
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
    alone = all(alike(links, reading.position, best.position) for reading in near)
    of_best = [one for one in readings if one.position == best.position and one.units != best.units]
    other_units = tuple(one.units for one in of_best if one.plausibility(robot) > _RIVAL_UNIT * most)
    return replace(best, alone=alone, other_units=other_units)


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
            if all(series.rough[k] < _SMOOTH * std[k] for k in run if links.moves[k]) and any(links.moves[k] for k in run)
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
    spelled = table.names is not None and all(table.names[k].endswith(".pos") for k in run)
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
