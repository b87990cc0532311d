"""The grid of friction laws for the selection: every law of the family with a few values of its shapes, on every axis."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...friction import (
    FRICTION,
    SIGN_WIDTH,
    Asymmetric,
    AxisScale,
    Coulomb,
    Cubic,
    Law,
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

#: Displacements over which dry friction reverses [rad, or the fraction of a prismatic joint's travel over π], the last ones
#: with several logs only: along a single one friction that changes over a long travel passes for torque of the bodies
#: (calibrated on a real log; simulated arms do not tell bounds of 5, 7 and 10 apart: docs/theory.md, §3).
DISPLACEMENTS = tuple(1e-4 * 2.5**k for k in range(10))
_OF_ONE_LOG = 7
#: Least duration of a held-out part in time constants of friction that it judges: for three of them (95 %) its beginning
#: remembers the part before, and that after it its end. A slower state follows any slow error from part to part.
_REMEMBERED = 6.0
#: Multiples of each shape of the previously selected laws that the subsequent searches try.
ZOOMS = ((0.8, 0.9, 1.12, 1.25), (0.9, 0.95, 1.05, 1.1), (0.95, 0.975, 1.025, 1.05))
#: Laws that contain, and replace, others at the same joint.
REPLACES = {
    Asymmetric.name: (Viscous.name, Coulomb.name, Offset.name, Cubic.name),
    Spring.name: (Offset.name,),
}
#: Friction that every drive has.
OF_EVERY_DRIVE = (Viscous.name, Coulomb.name)
#: Laws that stand for friction that grows faster than the speed, and are not candidates with a negative parameter. A negative
#: cubic fits concave friction nearly as well as sublinear or Stribeck friction inside the trained speeds, but its slope falls
#: fastest at their edge, from where it is extrapolated.
CONVEX = (Cubic.name,)

#: Name and side of a law: a joint has each pair at most once.
Key = tuple[str, str]


@dataclass(frozen=True, eq=False)
class Candidate:
    """One law with one set of shapes on one axis.

    Attributes:
        law: The law and its shapes.
        at: Positions of its columns among those of all candidates.
    """

    item: AppliedTerm
    law: Law
    key: Key
    at: tuple[int, ...]

    @property
    def nonnegative(self) -> tuple[bool, ...]:
        """Which of its parameters cannot be negative."""
        return tuple(sign or self.law.name in CONVEX for sign in self.law.nonnegative)


#: The selected laws of one joint.
Laws = Mapping[Key, Candidate]


@dataclass(frozen=True, eq=False)
class WideModel:
    """A model that contains all candidates at once.

    Attributes:
        model: The model; a law is repeated for each of its candidate shapes.
        kept: Terms excluded from the selection: rotor inertias, motor-side laws that were given.
        common: Indices into theta of the columns of every sub-model, shape (c,).
        columns: Indices into theta of the candidates' columns, shape (k,).
        candidates: The candidates of each joint.
        trained: Ranges of speed and load by axis and side.
    """

    model: DynamicModel
    kept: tuple[AppliedTerm, ...]
    common: IntArray
    columns: IntArray
    candidates: tuple[tuple[Candidate, ...], ...]
    trained: tuple[Mapping[str, Trained], ...]

    def usual_side(self, axis: int) -> str:
        """Returns the side, "joint" or "motor", on which an axis has the friction of every drive."""
        return "motor" if any(side == "motor" for _, side in (law.key for law in self.candidates[axis])) else "joint"

    def narrow(self, chosen: Sequence[Candidate]) -> DynamicModel:
        """Returns the model with some candidates only, its terms joint by joint."""
        listed = [*self.kept, *(candidate.item for candidate in chosen)]
        return self.model.with_terms(sorted(listed, key=lambda item: item.axis))


def wide_model(
    model: DynamicModel,
    motion: Sequence[Segment],
    chosen: Sequence[AppliedTerm] = (),
    zoom: Sequence[float] = (),
    usual: Sequence[AppliedTerm] = (),
    fold: float = math.inf,
) -> WideModel:
    """Creates the model with all candidates of its joints.

    Args:
        model: The dynamic model; its friction on the joint side is replaced.
        motion: The segments of the data: speed and travel of the axes determine the candidate shapes.
        chosen: Laws selected by a previous search, which remain among the candidates.
        zoom: Multiples of their shapes to try, shape (k,).
        usual: Further candidates: the simple laws, which the result is compared with.
        fold: Duration of the parts that are held out [s].
    """
    free = chosen_by_data(model)
    kept = tuple(item for item in model.terms if item not in free)
    listed: list[AppliedTerm] = []
    for axis, row in enumerate(model.drive.reduction):
        sides = ["joint"]
        if np.delete(row, axis).any() and axis not in model.motor_listed:
            sides.append("motor")
        listed += [AppliedTerm(law, axis, side) for side in sides for law in _laws(model, motion, axis, side, fold)]
    listed += [replace(item, term=law) for item in chosen for law in (item.term, *_zoomed(item.term, zoom))]
    listed = [item for item in dict.fromkeys([*listed, *usual]) if item not in kept]
    wide, rigid = model.with_terms([*kept, *listed]), model.with_terms(kept)
    candidates: list[list[Candidate]] = [[] for _ in range(model.n)]
    first = len(rigid.parameters)
    for item, columns in wide.placed_terms[len(kept) :]:
        at = tuple(range(columns.start - first, columns.stop - first))
        candidates[item.axis].append(Candidate(item, item.term, (item.term.name, item.side), at))  # type: ignore[arg-type]
    ranges: list[dict[str, Trained]] = [{} for _ in range(model.n)]
    for (axis, side), trained in trained_ranges(wide, motion).items():
        ranges[axis][side] = trained
    places = np.arange(first, len(wide.parameters))
    return WideModel(wide, kept, rigid.base().independent, places, tuple(map(tuple, candidates)), tuple(ranges))


def chosen_by_data(model: DynamicModel) -> tuple[AppliedTerm, ...]:
    """Returns the terms that the selection may change: all but rotor inertias and motor-side laws that were given."""
    return tuple(
        item
        for item in model.terms
        if item.term.name != RotorInertia.name and not (item.side == "motor" and item.axis in model.motor_listed)
    )


def _laws(model: DynamicModel, motion: Sequence[Segment], axis: int, side: str, fold: float) -> list[Law]:
    """The family of laws for the speeds and the travel of an axis; none if it rests."""
    row, prismatic = model.drive.rate_weights(axis, side), bool(model.robot.prismatic[axis])
    top = fast_speed(np.concatenate([part.v @ row for part in motion])) if motion else 1.0
    if top <= 0:
        return []
    if side == "motor":
        scale = AxisScale(top, min(SIGN_WIDTH * (abs(float(row[axis])) or 1.0), 0.02 * top), motor=True)
    else:
        travel = max((float(np.ptp(part.q[:, axis])) for part in motion), default=1.0)
        ratio = travel / np.pi if prismatic else 1.0
        most = None if len({part.log for part in motion}) > 1 else _OF_ONE_LOG
        displacements = tuple(x * ratio for x in DISPLACEMENTS[:most] if x * ratio < 0.3 * travel)
        scale = AxisScale(top, min(SIGN_WIDTH, 0.02 * top), displacements, prismatic=prismatic, time=fold / _REMEMBERED)
    return [variant for law in FRICTION.values() for variant in law.variants(scale)]


def _zoomed(law: Term, factors: Sequence[float]) -> list[Term]:
    """Versions of a law with one of its shapes multiplied."""
    names = [name for name, shape in law.shapes.items() if shape.kind != "exponent"]
    changes: list[dict[str, Any]] = [{name: factor * getattr(law, name)} for name in names for factor in factors]
    return [replace(law, **change) for change in changes if all(value > 0 for value in change.values())]
