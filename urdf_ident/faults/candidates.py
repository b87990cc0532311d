"""Candidate interpretations of a log: the effect of each common mistake."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from ..judgements.catalogue import Id
from ..linalg import Array, BoolArray
from ..model.robot import STANDARD_GRAVITY, Robot
from ..units import parse_unit


def _both(*factors: float) -> tuple[float, ...]:
    """Factors and their inverses, in order."""
    return (*(1 / factor for factor in reversed(factors)), *factors)


def _signed(*sizes: float) -> tuple[float, ...]:
    """Sizes of both signs, in order."""
    return (*(-size for size in reversed(sizes)), *sizes)


#: Candidate zeros of a joint [rad], delays of all efforts [s], and tilts of gravity towards an axis [rad]; the small ones are
#: for a base on an uneven floor.
_ZEROS, _DELAYS, _TILTS = (*_signed(0.1, 0.4, np.pi / 2), np.pi), (-0.03, 0.03, 0.06), _signed(0.03, 0.1)
#: Candidate numbers of real seconds per second of the log.
STRETCHES = _both(1.25, 2.0, 4.0)
#: Candidate factors of one joint's effort, and common ones of several: half octaves.
GAINS, COMMON_GAINS = _both(4 / 3, 2.0, 10.0, 100.0), _both(2.0**0.5, 2.0, 2.0**1.5, 4.0)
#: Candidate factors of one joint's positions: gear ratios and counts per turn wrong by much. Small errors are columns of a fit.
_RATIOS, _FEW_RATIOS = _both(1.4, 2.0, 4.0), _both(2.0)
#: Candidate factors of all positions of one kind of joint, by the unit that they have and the described one.
POSITION_UNITS = {
    (unit, described): parse_unit(unit).factor / parse_unit(described).factor
    for pair in (("rad", "deg"), ("rev", "rad"), ("m", "mm"))
    for unit, described in (pair, pair[::-1])
}
#: How far positions may reach beyond the URDF's limits, over their range; and without limits [rad or m].
_BEYOND, _FARTHEST = 0.05, 2 * np.pi
_SIDES = np.vstack([np.eye(3), -np.eye(3)])


@dataclass(frozen=True)
class Interpretation:
    """An interpretation of a log.

    Attributes:
        order: ``order[i]``: the effort column of joint i.
        gain: Factors of the efforts, by joint.
        sign: Factors of the positions, by joint; negative if they have the wrong sign.
        places: ``places[i]``: the position column of joint i.
        zero: Offsets added to the positions [rad or m], by joint.
        counted: Joints whose position counts that of the joint before in, each with that joint and the sense, +1 or -1.
        gravity: Gravity in the base frame [m/s²]; as described if None.
        stretch: Real seconds per second of the log.
        delay: Delay of the efforts behind the positions [s].
        springs: Joints with an additional torque that depends on their position alone; not a fault of the log.
    """

    order: tuple[int, ...]
    gain: tuple[float, ...]
    sign: tuple[float, ...]
    places: tuple[int, ...]
    zero: tuple[float, ...]
    gravity: tuple[float, float, float] | None = None
    stretch: float = 1.0
    delay: float = 0.0
    springs: tuple[int, ...] = ()
    counted: tuple[tuple[int, int, float], ...] = ()

    @classmethod
    def as_logged(cls, n: int) -> Interpretation:
        """Returns the log as described."""
        same, ones = tuple(range(n)), (1.0,) * n
        return cls(same, ones, ones, same, (0.0,) * n)

    def motion(self) -> tuple[object, ...]:
        """The entries that affect the regressor or the samples."""
        return (self.sign, self.places, self.zero, self.gravity, self.stretch, self.delay, self.springs, self.counted)

    def effort_map(self) -> Array:
        """Factor of each logged effort in each joint's row, shape (n, n)."""
        out = np.zeros((len(self.order), len(self.order)))
        out[np.arange(len(self.order)), self.order] = self.gain
        return out


@dataclass(frozen=True)
class Hypothesis:
    """One cause: its id, joints, size in the unit of its message, the interpretation, and the standard errors of zeros."""

    id: Id
    joints: tuple[int, ...]
    size: float
    interpretation: Interpretation
    errors: tuple[float, ...] = ()


def with_value(values: tuple[float, ...], j: int, value: float) -> tuple[float, ...]:
    """Returns the numbers with one replaced.

    Args:
        values: One number per joint, in any unit.
        value: Its new value.
    """
    return (*values[:j], float(value), *values[j + 1 :])


def _exchange(values: tuple[int, ...], i: int, j: int) -> tuple[int, ...]:
    out = list(values)
    out[i], out[j] = out[j], out[i]
    return tuple(out)


def position_units(robot: Robot, reached: Array, interpretation: Interpretation) -> Iterator[Hypothesis]:
    """Yields interpretations whose revolute, or prismatic, positions all have another unit than described.

    Args:
        reached: Lowest and highest position of each joint, shape (2, n) [rad or m].
    """
    lower, upper = _widened_limits(robot)
    lower, upper = np.where(np.isfinite(lower), lower, -_FARTHEST), np.where(np.isfinite(upper), upper, _FARTHEST)
    for (unit, _), factor in POSITION_UNITS.items():
        kind = robot.prismatic == (unit in ("m", "mm"))
        sign = np.where(kind, factor, 1.0) * interpretation.sign
        before, after = (((s * reached > lower) & (s * reached < upper))[:, kind].all() for s in (interpretation.sign, sign))
        if kind.any() and after and (factor > 1 or not before):
            joints = tuple(int(j) for j in np.flatnonzero(kind))
            yield Hypothesis(
                Id.POSITION_UNIT, joints, float(np.log(factor)), replace(interpretation, sign=tuple(map(float, sign)))
            )


def candidates(robot: Robot, moves: BoolArray, interpretation: Interpretation, *, poor: bool) -> Iterator[Hypothesis]:
    """Yields single changes of an interpretation.

    Args:
        moves: Joints that move, shape (n,).
        poor: Whether to include changes that fault-free logs never need.
    """
    joints = [int(j) for j in np.flatnonzero(moves)]
    yield Hypothesis(
        Id.EFFORT_SIGN, tuple(range(robot.n)), -1.0, replace(interpretation, gain=tuple(-g for g in interpretation.gain))
    )
    for j in joints:
        turned = with_value(interpretation.gain, j, -interpretation.gain[j])
        mirrored = with_value(interpretation.sign, j, -interpretation.sign[j])
        yield Hypothesis(Id.EFFORT_SIGN, (j,), -1.0, replace(interpretation, gain=turned))
        yield Hypothesis(Id.POSITION_SIGN, (j,), -1.0, replace(interpretation, sign=mirrored))
        yield Hypothesis(Id.AXIS_SIGN, (j,), -1.0, replace(interpretation, sign=mirrored, gain=turned))
        for factor in GAINS:
            scaled = factor * interpretation.gain[j]
            yield Hypothesis(
                Id.EFFORT_SCALE,
                (j,),
                float(np.log(abs(scaled))),
                replace(interpretation, gain=with_value(interpretation.gain, j, scaled)),
            )
        if poor and (i := robot.carrier(j)) >= 0 and robot.prismatic[i] == robot.prismatic[j]:
            for sense in (1.0, -1.0):
                counted = replace(interpretation, counted=(*interpretation.counted, (j, i, sense)))
                yield Hypothesis(Id.POSITION_COUPLED, (j, i), sense, counted)
        if zero_matters(robot, j):
            for zero in _ZEROS:
                size = interpretation.zero[j] + zero
                yield Hypothesis(
                    Id.POSITION_ZERO, (j,), size, replace(interpretation, zero=with_value(interpretation.zero, j, size))
                )
        for ratio in _RATIOS if poor else _FEW_RATIOS:
            wide = with_value(interpretation.sign, j, ratio * interpretation.sign[j])
            yield Hypothesis(Id.POSITION_SCALE, (j,), float(np.log(abs(wide[j]))), replace(interpretation, sign=wide))
    yield from _of_several(robot, joints, interpretation, poor=poor)
    for stretch in STRETCHES:
        yield Hypothesis(
            Id.TIME_SCALE,
            (),
            interpretation.stretch * stretch,
            replace(interpretation, stretch=interpretation.stretch * stretch),
        )
    for delay in _DELAYS:
        yield Hypothesis(
            Id.EFFORT_DELAY, (), interpretation.delay + delay, replace(interpretation, delay=interpretation.delay + delay)
        )
    yield from _gravities(robot, interpretation)


def _of_several(robot: Robot, joints: list[int], interpretation: Interpretation, *, poor: bool) -> Iterator[Hypothesis]:
    """Changes of two joints at once, and shifts of all columns; arguments as of :func:`candidates`."""
    for i, j in combinations(joints, 2):
        if poor:  # both at once: one alone may explain less than a change along the log
            turned = with_value(with_value(interpretation.gain, i, -interpretation.gain[i]), j, -interpretation.gain[j])
            yield Hypothesis(Id.EFFORT_SIGN, (i, j), -1.0, replace(interpretation, gain=turned))
        yield Hypothesis(Id.JOINTS_EXCHANGED, (i, j), 0.0, replace(interpretation, order=_exchange(interpretation.order, i, j)))
        if (poor or j == i + 1) and robot.prismatic[i] == robot.prismatic[j]:
            places = _exchange(interpretation.places, i, j)
            yield Hypothesis(Id.JOINTS_EXCHANGED, (i, j), 1.0, replace(interpretation, places=places))
            both = replace(interpretation, places=places, order=_exchange(interpretation.order, i, j))
            yield Hypothesis(Id.JOINTS_EXCHANGED, (i, j), 2.0, both)
    for shift in range(1, robot.n) if poor and robot.n > 2 else ():
        order, places = (tuple(np.roll(columns, shift).tolist()) for columns in (interpretation.order, interpretation.places))
        both = replace(interpretation, order=order, places=places)
        yield Hypothesis(Id.JOINTS_EXCHANGED, tuple(range(robot.n)), float(shift), both)


def with_springs(moves: BoolArray, interpretation: Interpretation) -> list[Hypothesis]:
    """Returns the interpretation with a spring or balancer on one more joint, which may resemble gravity, a zero or a scale.

    Args:
        moves: Joints that move, shape (n,).
    """
    joints = [int(j) for j in np.flatnonzero(moves) if j not in interpretation.springs]
    return [Hypothesis(Id.SPRING, (j,), 0.0, replace(interpretation, springs=(*interpretation.springs, j))) for j in joints]


def _gravities(robot: Robot, interpretation: Interpretation) -> Iterator[Hypothesis]:
    gravity = np.asarray(robot.gravity if interpretation.gravity is None else interpretation.gravity, dtype=float)
    size = float(np.linalg.norm(gravity))
    if size == 0.0:
        for side in _SIDES:
            yield Hypothesis(
                Id.GRAVITY_DIRECTION, (), 0.0, replace(interpretation, gravity=triple(-STANDARD_GRAVITY[2] * side))
            )
        return
    down = gravity / size
    for side in _SIDES:
        if float(side @ down) < 0.99:
            yield Hypothesis(Id.GRAVITY_DIRECTION, (), 0.0, replace(interpretation, gravity=triple(size * side)))
    for axis in np.linalg.svd(down[None, :])[2][1:]:
        for tilt in _TILTS:
            yield Hypothesis(
                Id.GRAVITY_DIRECTION, (), tilt, replace(interpretation, gravity=tilted_gravity(gravity, tilt * axis))
            )
    yield Hypothesis(Id.EFFORT_WITHOUT_GRAVITY, (), 0.0, replace(interpretation, gravity=(0.0, 0.0, 0.0)))


def zero_matters(robot: Robot, j: int) -> bool:
    """Whether a zero offset of a joint is observable: not just a rotation of the last body or of the robot about gravity."""
    if robot.prismatic[j] or len(robot.subtrees[j]) == 1:
        return False
    body, gravity = robot.place_in_tree[j], robot.gravity
    axis = robot.placements[body, :3, :3] @ robot.axes[body]
    return not (robot.parents[body] < 0 and np.linalg.norm(np.cross(axis, gravity)) < 1e-3 * np.linalg.norm(gravity))


def within_limits(robot: Robot, reached: Array, j: int, zero: float) -> bool:
    """Whether positions of a joint, with a zero added, are within the URDF's limits or a little beyond; true without limits.

    Args:
        reached: Lowest and highest position of each joint, shape (2, n) [rad or m].
        zero: [rad or m].
    """
    lower, upper = _widened_limits(robot)
    return bool(reached[0, j] + zero >= lower[j] and reached[1, j] + zero <= upper[j])


def _widened_limits(robot: Robot) -> tuple[Array, Array]:
    """The URDF's position limits and a little beyond, shape (n,) each [rad or m]; infinite where it states none."""
    lower, upper = robot.limit("lower"), robot.limit("upper")
    stated = np.isfinite(lower) & np.isfinite(upper) & (upper > lower)
    beyond = np.where(stated, _BEYOND * (upper - lower), 0.0)
    return np.where(stated, lower - beyond, -np.inf), np.where(stated, upper + beyond, np.inf)


def tilted_gravity(gravity: Array, tilt: Array) -> tuple[float, float, float]:
    """Rotates gravity towards a perpendicular direction.

    Args:
        gravity: Shape (3,) [m/s²].
        tilt: The direction times the angle, shape (3,) [rad].
    """
    angle = float(np.linalg.norm(tilt))
    return triple(np.cos(angle) * gravity + float(np.linalg.norm(gravity)) * np.sinc(angle / np.pi) * tilt)


def triple(vector: Array) -> tuple[float, float, float]:
    """Converts an array to three numbers, without negative zeros.

    Args:
        vector: Shape (3,), in any unit.
    """
    x, y, z = (float(value) for value in vector + 0.0)
    return x, y, z
