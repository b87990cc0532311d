"""The catalogue of faults, every class of :class:`.kind.FaultKind` in the modules that are named here, and of changes.

Changes of the robot, of its surroundings or of its sensors may begin and end; they are families of columns only.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...judgements.catalogue import Id
from ..interpretation import Interpretation
from ..linearized import LinearizedCase
from ..trials import Trials
from . import clock_and_gravity, efforts, positions, senses_and_orders
from .families import Change, FaultFamily
from .kind import FaultKind, Hypothesis

PAYLOAD = Change("the load on the last link", "split the log there, or record it again with one load")
FRICTION = Change("friction or offset", "warm the robot up first, or record it again")
GAIN = Change("the scale of the efforts", "check the sensor, or record it again")
SCALE = Change("the scale of all efforts", "check the sensors or amplifiers, or record it again")
EVERYTHING = Change("more than one of load, friction, zeros and scales", "find out what was changed before or after it")
JOINT = Change("a zero, the load or the robot", "find out what was changed before or after it")
CONTACT = Change("a torque that is not the robot's own", "cut this part out; was there contact, a dragging brake, a hand?")

KINDS: dict[Id, FaultKind] = {
    kind.id: kind()
    for module in (senses_and_orders, efforts, positions, clock_and_gravity)
    for kind in vars(module).values()
    if isinstance(kind, type) and issubclass(kind, FaultKind) and kind is not FaultKind
}


def candidates(trials: Trials, at: Interpretation, poor: bool) -> Iterator[Hypothesis]:
    """Yields all single changes of an interpretation by a fault."""
    for kind in KINDS.values():
        if kind.id != Id.SPRING:  # no fault: only tried where something is wrong
            yield from kind.hypotheses(trials, at, poor)


def faults(at: LinearizedCase) -> Iterator[FaultFamily]:
    """Yields the families of all faults of signals and of the URDF's geometry, which last throughout a log."""
    for kind in KINDS.values():
        yield from kind.families(at)
    yield from another_robot(at)


def changes(at: LinearizedCase) -> Iterator[FaultFamily]:
    """Yields the families of changes in windows, in single logs, and as drifts."""
    n, samples = at.n, at.samples
    yield FaultFamily(
        Id.PAYLOAD_CHANGES, (), at.inertial[:, :, np.flatnonzero(at.active) >= at.active.size - 10], change=PAYLOAD
    )
    yield FaultFamily(Id.EFFORT_DRIFT, (), at.fitted[:, :, None], change=SCALE)
    rows = np.eye(n)[None] * np.ones((len(samples), 1, 1))
    yield FaultFamily(Id.CONTACT, (), rows[:, :, at.moving], change=CONTACT)
    for j in at.moving:
        yield FaultFamily(Id.EFFORT_DRIFT, (j,), at.in_row(j, np.ones(len(samples)), samples.signs[:, j, 0]), change=FRICTION)
        yield FaultFamily(Id.EFFORT_DRIFT, (j,), at.in_row(j, at.fitted[:, j]), change=GAIN)
        if not at.robot.prismatic[j]:
            yield FaultFamily(Id.LOG_DIFFERS, (j,), at.slopes[j, 0][:, :, None], change=JOINT)


def another_robot(at: LinearizedCase) -> Iterator[FaultFamily]:
    """Yields the family of a log in which more than one of these differ."""
    everything = np.concatenate([at.inertial, *(at.in_row(j, *at.friction[j].T) for j in at.moving)], axis=2)
    yield FaultFamily(Id.LOG_DIFFERS, (), everything, change=EVERYTHING, throughout=False)
