"""The grid of friction laws: every law with a few values of its shapes, on every axis, as columns of one model.

Springs are among them where the data tell them from gravity (:func:`visible_springs`).
"""

from __future__ import annotations

import math
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
    Coulomb,
    Cubic,
    Law,
    Offset,
    Spring,
    Viscous,
)
from ...linalg import IntArray, orthogonal_part
from ...model.dynamic_model import DynamicModel
from ...model.terms import AppliedTerm, RotorInertia
from ...samples import Segment, fast_speed
from ...statistics.statistic import StatisticSet
from .sub_models import CUT, DISTINCT

#: Displacements over which dry friction reverses [rad, or the fraction of a prismatic joint's travel over π], the last ones
#: with several logs only: along a single one friction that changes over a long travel passes for torque of the bodies
#: (calibrated on a real log; simulated arms do not tell bounds of 5, 7 and 10 apart: docs/theory.md, §3).
DISPLACEMENTS = tuple(1e-4 * 2.5**k for k in range(10))
_OF_ONE_LOG = 7
#: Least duration of a held-out part in time constants of friction that it judges: for three of them (95 %) its beginning
#: remembers the part before, and that after it its end. A slower state follows any slow error from part to part.
_REMEMBERED = 6.0
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
    """One law with one set of shapes on one axis; ``at``: positions of its columns among those of all candidates."""

    applied: AppliedTerm
    law: Law
    at: tuple[int, ...]

    @cached_property
    def key(self) -> Key:
        return self.law.name, self.applied.side

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
        kept: Terms of every sub-model.
        common: Indices into theta of the independent columns of bodies and kept terms, shape (c,).
        columns: Indices into theta of the candidates' columns, shape (k,).
        candidates: The candidates of each joint.
    """

    model: DynamicModel
    kept: tuple[AppliedTerm, ...]
    common: IntArray
    columns: IntArray
    candidates: tuple[tuple[Candidate, ...], ...]

    def narrow(self, chosen: Sequence[Candidate]) -> DynamicModel:
        """Returns the model with some candidates only, its terms joint by joint."""
        applied = [*self.kept, *(candidate.applied for candidate in chosen)]
        return self.model.with_terms(sorted(applied, key=lambda applied: applied.axis))


def wide_model(model: DynamicModel, kept: Sequence[AppliedTerm], tried: Sequence[AppliedTerm]) -> WideModel:
    """Creates the model whose laws are tried: the terms of every sub-model, and after them the candidates."""
    tried = [applied for applied in dict.fromkeys(tried) if applied not in kept]
    wide, rigid = model.with_terms([*kept, *tried]), model.with_terms(kept)
    candidates: list[list[Candidate]] = [[] for _ in range(model.n)]
    first = len(rigid.parameters)
    for applied, columns in wide.placed_terms[len(kept) :]:
        at = tuple(range(columns.start - first, columns.stop - first))
        candidates[applied.axis].append(Candidate(applied, applied.term, at))  # type: ignore[arg-type]
    places = np.arange(first, len(wide.parameters))
    return WideModel(wide, tuple(kept), rigid.base().independent, places, tuple(map(tuple, candidates)))


def chosen_by_data(model: DynamicModel) -> tuple[AppliedTerm, ...]:
    """Returns the terms that the selection may change: all but rotor inertias and motor-side laws that were given."""
    return tuple(
        applied
        for applied in model.terms
        if applied.term.name != RotorInertia.name and not (applied.side == "motor" and applied.axis in model.motor_listed)
    )


def every_law(model: DynamicModel, motion: Sequence[Segment], part: float = math.inf) -> list[AppliedTerm]:
    """Returns the family of laws on every axis that moves, with shapes for its speeds and its travel.

    Args:
        part: Duration of the parts that are held out [s].
    """
    listed = []
    for axis, row in enumerate(model.drive.reduction):
        coupled = np.delete(row, axis).any() and axis not in model.motor_listed
        for side in ("joint", "motor") if coupled else ("joint",):
            turns, prismatic = model.drive.rate_weights(axis, side), bool(model.robot.prismatic[axis])
            top = fast_speed(np.concatenate([segment.v @ turns for segment in motion])) if motion else 1.0
            if side == "motor":
                width = min(SIGN_WIDTH * (abs(float(turns[axis])) or 1.0), 0.02 * top)
                scale = AxisScale(top, width, motor=True)
            else:
                travel = max((float(np.ptp(segment.q[:, axis])) for segment in motion), default=1.0)
                most = None if len({segment.log for segment in motion}) > 1 else _OF_ONE_LOG
                displacements = [x * (travel / np.pi if prismatic else 1.0) for x in DISPLACEMENTS[:most]]
                reversing = tuple(x for x in displacements if x < 0.3 * travel)
                width = min(SIGN_WIDTH, 0.02 * top)
                scale = AxisScale(top, width, reversing, prismatic=prismatic, time=part / _REMEMBERED)
            laws = [law for kind in FRICTION.values() for law in kind.variants(scale)] if scale.speed > 0 else []
            listed += [AppliedTerm(law, axis, side) for law in laws]
    return listed


def zoomed(chosen: Sequence[AppliedTerm], factors: Sequence[float]) -> list[AppliedTerm]:
    """Returns versions of laws.

    Args:
        factors: Each shape of a law is multiplied by each of them, one shape at a time.
    """
    listed = []
    for applied in chosen:
        for name, shape in applied.term.shapes.items():
            value = float(getattr(applied.term, name))
            if shape.kind != "exponent" and value > 0:
                changes: list[dict[str, Any]] = [{name: factor * value} for factor in factors]
                listed += [replace(applied, term=replace(applied.term, **change)) for change in changes]
    return listed


def visible_springs(wide: WideModel, statistics: StatisticSet, weights: Mapping[str, float], axis: int) -> set[Key]:
    """Returns the springs among a joint's candidates whose varying torque the bodies and an offset cannot explain.

    A spring's constant torque is that of an offset, which a joint has anyway, and which on a vertical slide is the weight. The
    columns of a balancer are nearly collinear in a small motion: their weakest combination is decisive, of which more than
    :data:`.sub_models.DISTINCT` must be independent.

    Args:
        weights: Row group → weight [1/unit of torque].
    """
    laws = wide.candidates[axis]
    offset = next((wide.columns[list(law.at)] for law in laws if law.key == (Offset.name, "joint")), None)
    visible = set()
    for law in laws if offset is not None else ():
        if law.law.conservative:
            columns = np.concatenate([wide.common, offset, wide.columns[list(law.at)]])
            rigid, own = np.split(statistics.stacked(weights, columns)[:, :-1], [-len(law.at)], axis=1)
            varying = orthogonal_part(own, rigid[:, -1:], CUT)
            moved = np.linalg.norm(varying, axis=0) > CUT * np.linalg.norm(own, axis=0)
            apart = orthogonal_part(own[:, moved], rigid, CUT) / np.linalg.norm(varying[:, moved], axis=0)
            if moved.any() and np.linalg.svd(apart, compute_uv=False)[-1] >= DISTINCT:
                visible.add(law.key)
    return visible
