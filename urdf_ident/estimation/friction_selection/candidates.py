"""Candidate friction laws for the selection, each with a few values of its shapes; the gain of a law on held-out data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ...friction import (
    FRICTION,
    SIGN_WIDTH,
    Asymmetric,
    AxisScale,
    Conservative,
    Coulomb,
    Cubic,
    Offset,
    Spring,
    Term,
    Trained,
    Viscous,
)
from ...linalg import IntArray
from ...model.dynamic_model import DynamicModel
from ...model.terms import AppliedTerm, RotorInertia
from ...model.trained import trained_ranges
from ...samples import Segment, fast_speed

#: A column is distinguishable if more than this share of its norm is independent of the others.
DISTINCT = 0.02
#: Displacements over which dry friction reverses [rad, or the fraction of a prismatic joint's travel over π], the last ones
#: with several logs only: along a single one friction that changes over a long travel resembles the torque of gravity.
DISPLACEMENTS = tuple(1e-4 * 2.5**k for k in range(10))
_OF_ONE_LOG = 7
#: Multiples of each shape of the previously selected laws that the subsequent searches try.
ZOOMS = ((0.8, 0.9, 1.12, 1.25), (0.9, 0.95, 1.05, 1.1), (0.95, 0.975, 1.025, 1.05))
#: Laws that contain, and replace, others at the same joint.
REPLACES = {
    Asymmetric.name: (Viscous.name, Coulomb.name, Offset.name, Cubic.name),
    Spring.name: (Offset.name,),
}
#: Laws that stand for friction that grows faster than the speed, and are not candidates with a negative parameter. A negative
#: cubic fits concave friction nearly as well as sublinear or Stribeck friction inside the trained speeds, but its slope falls
#: fastest at their edge, from where it is extrapolated.
CONVEX = (Cubic.name,)

#: Name and side of a law.
Key = tuple[str, str]
#: A law must lower its joint's held-out squared error by this fraction.
LEAST_GAIN = 0.01

#: Another shape of the same law must lower it by this fraction.
LEAST_SHAPE_GAIN = 1e-4


@dataclass(frozen=True, eq=False)
class Candidate:
    """One law with one set of shapes on one axis.

    Attributes:
        columns: Indices into theta of the wide model, shape (k,).
    """

    item: AppliedTerm
    columns: IntArray

    @cached_property
    def key(self) -> Key:
        """Name and side; a joint has each pair at most once."""
        return self.item.term.name, self.item.side

    @property
    def is_spring(self) -> bool:
        """Whether it is a spring."""
        return isinstance(self.item.term, Conservative)

    @property
    def shapes(self) -> dict[str, float]:
        """Its fixed shapes."""
        return {name: float(getattr(self.item.term, name)) for name in self.item.term.shapes}


@dataclass(frozen=True, eq=False)
class WideModel:
    """A model that contains all candidates at once.

    Attributes:
        model: The model; a law is repeated for each of its candidate shapes.
        kept: Terms excluded from the selection: rotor inertias, motor-side laws that were given.
        common: Indices into theta of the columns of every sub-model, shape (c,).
        trained: Ranges of speed and load by axis and side.
    """

    model: DynamicModel
    kept: tuple[AppliedTerm, ...]
    common: IntArray
    candidates: tuple[tuple[Candidate, ...], ...]
    trained: tuple[Mapping[str, Trained], ...]

    def narrow(self, chosen: Sequence[Candidate]) -> DynamicModel:
        """Returns the model with some candidates only.

        Returns:
            The model, with its terms joint by joint.
        """
        listed = [*self.kept, *(candidate.item for candidate in chosen)]
        return self.model.with_terms(sorted(listed, key=lambda item: item.axis))


def wide_model(
    model: DynamicModel,
    motion: Sequence[Segment],
    chosen: Sequence[AppliedTerm] = (),
    zoom: Sequence[float] = (),
    usual: Sequence[AppliedTerm] = (),
) -> WideModel:
    """Creates the model with all candidates of its joints.

    Args:
        model: The dynamic model; its friction on the joint side is replaced.
        motion: The segments of the data: speed and travel of the axes determine the candidate shapes.
        chosen: Laws selected by a previous search, which remain among the candidates.
        zoom: Multiples of their shapes to try, shape (k,).
        usual: Further candidates: the simple laws, which the result is compared with.
    """
    free = chosen_by_data(model)
    kept = tuple(item for item in model.terms if item not in free)
    rigid = model.with_terms(kept)
    listed: list[AppliedTerm] = []
    for axis in range(model.n):
        listed += [AppliedTerm(law, axis) for law in _joint_laws(model, motion, axis)]
        if np.delete(model.drive.reduction[axis], axis).any() and axis not in model.motor_listed:
            listed += [AppliedTerm(law, axis, "motor") for law in _motor_laws(model, motion, axis)]
    for item in chosen:
        listed += [replace(item, term=law) for law in (item.term, *_zoomed(item.term, zoom))]
    listed += usual
    listed = [item for item in dict.fromkeys(listed) if item not in kept]
    wide = model.with_terms([*kept, *listed])
    begin = len(rigid.parameters)
    by_axis: list[list[Candidate]] = [[] for _ in range(model.n)]
    for item in listed:
        width = len(item.term.symbols)
        by_axis[item.axis].append(Candidate(item, np.arange(begin, begin + width)))
        begin += width
    ranges: list[dict[str, Trained]] = [{} for _ in range(model.n)]
    for (axis, side), trained in trained_ranges(wide, motion).items():
        ranges[axis][side] = trained
    return WideModel(wide, kept, rigid.base().independent, tuple(tuple(some) for some in by_axis), tuple(ranges))


def chosen_by_data(model: DynamicModel) -> tuple[AppliedTerm, ...]:
    """Returns the terms that the selection may change: friction that was not given.

    Returns:
        All terms but rotor inertias and motor-side laws that were given.
    """
    return tuple(
        item
        for item in model.terms
        if item.term.name != RotorInertia.name and not (item.side == "motor" and item.axis in model.motor_listed)
    )


def _zoomed(law: Term, factors: Sequence[float]) -> list[Term]:
    """Versions of a law with one of its shapes multiplied."""
    names = [name for name, shape in law.shapes.items() if shape.kind != "exponent"]
    changes: list[dict[str, Any]] = [{name: factor * getattr(law, name)} for name in names for factor in factors]
    return [replace(law, **change) for change in changes if all(value > 0 for value in change.values())]


def _joint_laws(model: DynamicModel, motion: Sequence[Segment], axis: int) -> list[Term]:
    speeds = np.concatenate([part.v[:, axis] for part in motion])
    top = fast_speed(speeds) if len(speeds) else 1.0
    travel = max((float(np.ptp(part.q[:, axis])) for part in motion), default=1.0)
    ratio = travel / np.pi if model.robot.prismatic[axis] else 1.0
    several = len({part.log for part in motion}) > 1
    displacements = tuple(x * ratio for x in DISPLACEMENTS[: None if several else _OF_ONE_LOG] if x * ratio < 0.3 * travel)
    return _laws(top, displacements, prismatic=bool(model.robot.prismatic[axis]))


def _motor_laws(model: DynamicModel, motion: Sequence[Segment], axis: int) -> list[Term]:
    row = model.drive.reduction[axis]
    speeds = np.concatenate([part.v @ row for part in motion])
    return _laws(fast_speed(speeds) if len(speeds) else 1.0, (), abs(float(row[axis])) or 1.0, motor=True)


def _laws(
    top: float, displacements: tuple[float, ...], ratio: float = 1.0, *, motor: bool = False, prismatic: bool = False
) -> list[Term]:
    """The family of laws for an axis with this top speed [rad/s or m/s], each with its candidate shapes."""
    if top <= 0:
        return []
    scale = AxisScale(top, min(SIGN_WIDTH * ratio, 0.02 * top), displacements, motor, prismatic)
    return [variant for law in FRICTION.values() for variant in law.variants(scale)]


@dataclass(frozen=True)
class LawGain:
    """Gain of one law in addition to the others.

    Attributes:
        gain: Relative reduction of the joint's held-out squared error; negative if the error increases.
        std_error: Standard error of this gain, over the folds (:func:`.choice.standard_error`).
        reason: The reason for the decision, in words.
    """

    law: Candidate
    gain: float
    std_error: float
    reason: str


def least_gain(gain_error: float, more: int = 1) -> float:
    """Returns the gain required of laws with k more columns: √k standard errors, and at least :data:`LEAST_GAIN`.

    Args:
        gain_error: Standard error of the gain.

    Returns:
        A fraction of the joint's held-out squared error.
    """
    return float(max(LEAST_GAIN, np.sqrt(max(more, 1)) * gain_error))
