"""The catalogue of all kinds of faults: every class of :class:`.kind.FaultKind` in the modules that are named here."""

from __future__ import annotations

from collections.abc import Iterator

from ...judgements.catalogue import Id
from ..interpretation import Interpretation
from ..linearized import LinearizedCase
from ..trials import Trials
from . import clock_and_gravity, efforts, positions, senses_and_orders
from .changes import another_robot
from .families import FaultFamily
from .kind import FaultKind, Hypothesis

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
