"""Estimation of unknown shapes of friction laws by variable projection.

A law is linear in its parameters for given shapes (the width of a sign, the Stribeck speed, the displacement of presliding).
For every trial of the shapes all other parameters follow exactly by linear least squares, and only the shapes are searched.
One pass over the data covers many trials: each trial is an additional column in the triangular factors, and any combination of
trials over joints and laws is a selection of columns. A few passes, each on a finer grid around the best trial of the previous
one, and a parabola through the last three points give the minimum.

Bounds follow from the motion: a speed between a five-hundredth and half of the axis' top speed, a displacement between 1e-5
and a tenth of its travel. A shape at its bound is not determined by the data and is reported as such; every shape has an
interval in which the residual is not significantly larger (profile likelihood, independent residuals). Standard errors of the
linear parameters are those for given shapes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, product
from typing import Any

import numpy as np

from ...errors import ModelError
from ...friction import Term
from ...grouping import grouped
from ...linalg import orthogonal_part, positive, triangle
from ...model.dynamic_model import DynamicModel
from ...model.terms import AppliedTerm
from ...samples import Segment
from ...statistics.fit import fit_base
from .candidates import wide_model
from .reference_torque import Build, converge

#: Trials of a shape per pass, and passes per shape of a law.
TRIALS, PASSES = 9, 4
#: A shape this close to its bound (fraction of the search range) counts as undetermined.
EDGE = 0.01
#: Maximum number of combinations of the trials at one joint up to which all are compared.
COMBINATIONS = 5000


@dataclass(frozen=True)
class ShapeReport:
    """Result for one free shape.

    Attributes:
        shape: Name of the shape.
        value: Estimate.
        bounds: Range of the search.
        interval: 95 % profile interval; open at an end that equals the bound.
        at_bound: "lower" or "upper" if the estimate is at a bound, else None.
        determined: Whether the data determine it: not at its bound, and the interval less than half of the range.
    """

    joint: str
    term: str
    shape: str
    unit: str
    value: float
    bounds: tuple[float, float]
    interval: tuple[float, float]
    at_bound: str | None
    determined: bool

    def describe(self) -> str:
        """Returns the result in one line."""
        low, high = self.interval
        text = f"{self.term} of {self.joint}: {self.shape} = {self.value:.3g} {self.unit} (95 %: {low:.2g} to {high:.2g})"
        if self.determined:
            return text
        where = f", at the {self.at_bound} bound of its search" if self.at_bound else ""
        return f"{text}{where}: the data do not determine it; give a number, or leave {self.term} out of {self.joint}"


@dataclass(frozen=True, eq=False)
class Shaped:
    """A model without free shapes, and the result for each of them."""

    model: DynamicModel
    reports: tuple[ShapeReport, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(report.describe() for report in self.reports)


@dataclass(frozen=True)
class _Free:
    """A free shape: index of its law in the model's list of terms, its name, and the range of the search."""

    index: int
    shape: str
    low: float
    high: float

    @classmethod
    def of(cls, model: DynamicModel, motion: Sequence[Segment], index: int, name: str) -> _Free:
        """A free shape of a term of the model, with bounds from the motion of its axis."""
        applied = model.terms[index]
        where, kind = f"joint '{model.robot.joints[applied.axis]}'", applied.term.shapes[name]
        if not model.is_rigid:
            raise ModelError(
                "free friction shapes with elastic joints are not supported",
                where=where,
                got=f"{applied.term.name}.{name}: auto",
                remedy="give a number",
            )
        speed, travel = _speed_and_travel(model, motion, applied)
        if not (speed > 0 and travel > 0):
            raise ModelError(f"'{name}' of '{applied.term.name}' cannot be found: the axis does not move", where=where)
        low, high = {
            "displacement": (1e-5 * travel, 0.1 * travel),
            "steepness": (2.0 / speed, 20000.0 / speed),
            "exponent": (0.5, 4.0),
        }.get(kind.kind, (0.0 if kind.reached else 0.002 * speed, 0.5 * speed))
        start = float(getattr(applied.term, name))
        return cls(index, name, min(low, start) if start > 0 else low, max(high, start))

    def scale(self, value: float) -> float:
        """Position in the range, 0 to 1; logarithmic, unless the range begins at zero."""
        if self.low > 0:
            return float(np.log(max(value, self.low) / self.low) / np.log(self.high / self.low))
        return value / self.high

    def value(self, position: float) -> float:
        return float(self.low * (self.high / self.low) ** position if self.low > 0 else self.high * position)

    def law(self, term: Term, value: float) -> Term | None:
        """The law with this value of the shape; None if the law does not allow it."""
        change: dict[str, Any] = {self.shape: value}
        try:
            return replace(term, **change)
        except ModelError:
            return None

    def trials(self, term: Term, span: float) -> dict[Term, float]:
        """Laws around the current value, which comes first, and their positions in the range."""
        centre = min(max(self.scale(float(getattr(term, self.shape))), 0.0), 1.0)
        begin, end = max(0.0, min(centre - span, 1.0 - 2 * span)), min(1.0, max(centre + span, 2 * span))
        positions = [centre, *(float(x) for x in np.linspace(begin, end, TRIALS) if abs(x - centre) > 1e-9)]
        return {law: x for x in positions if (law := self.law(term, self.value(x))) is not None}


def fit_shapes(model: DynamicModel, build: Build, motion: Sequence[Segment], *, method: str = "wls") -> Shaped:
    """Estimates the free shapes of a model's friction laws.

    Args:
        model: The dynamic model; shapes that its terms list in ``free`` are estimated.
        method: "ols" or "wls", as in :func:`fit_base`.

    Returns:
        The model with the shapes fixed at their estimates. Without free shapes, the model itself, without a pass over the data.

    Raises:
        ModelError: A threshold outside the speeds of the logs, an axis that does not move, or elastic joints.
        EstimationError: As for ``build`` and :func:`fit_base`.
    """
    check_excited(model, motion)
    free = [_Free.of(model, motion, k, name) for k, applied in enumerate(model.terms) for name in applied.term.free]
    if not free:
        return Shaped(model)
    build = partial(build, blocks=1)
    first = converge(model, build, partial(fit_base, base=model.base(), method=method))

    def costs_of(versions: Mapping[int, Sequence[Term]]) -> Callable[[Mapping[int, Term]], float]:
        """One pass over the data with several versions of some terms; the least weighted sum of squares with one of each."""
        terms = first.model.terms
        kept = [applied for index, applied in enumerate(terms) if index not in versions]
        tried = [replace(terms[index], term=law) for index, laws in versions.items() for law in laws]
        wide = wide_model(first.model, kept, tried)
        at = {candidate.applied: candidate.at for candidate in chain(*wide.candidates)}
        factor = build(wide.model).stacked(first.fit.weights, np.concatenate([wide.common, wide.columns]))
        common, free = np.split(factor, [len(wide.common)], axis=1)
        rest = triangle(orthogonal_part(free, common))

        def cost(choice: Mapping[int, Term]) -> float:
            columns = rest[:, [k for index, law in choice.items() for k in at[replace(terms[index], term=law)]]]
            return float(np.sum(orthogonal_part(rest[:, -1], columns[:, columns.any(axis=0)]) ** 2))

        return cost

    laws = {index: applied.term for index, applied in enumerate(model.terms) if applied.term.free}
    by_law = list(grouped((shape.index, shape) for shape in free).values())
    by_axis = list(grouped((model.terms[index].axis, index) for index in laws).values())
    span, curves = dict.fromkeys(free, 0.5), {shape: list[tuple[float, float]]() for shape in free}
    for count in range(PASSES * max(map(len, by_law))):
        tried = {shapes[0].index: shapes[count % len(shapes)] for shapes in by_law}  # one shape per law
        trials = {index: shape.trials(laws[index], span[shape]) for index, shape in tried.items()}
        cost, before = costs_of({index: list(versions) for index, versions in trials.items()}), dict[int, Term]()
        best = {index: next(iter(versions)) for index, versions in trials.items()}
        while best != before:  # all combinations at one axis after the other, until none changes
            before = best
            for axis in by_axis:
                whole = np.prod([len(trials[index]) for index in axis]) <= COMBINATIONS
                for together in [axis] if whole else [[index] for index in axis]:
                    combinations = product(*(trials[index] for index in together))
                    best = min((best | dict(zip(together, some, strict=True)) for some in combinations), key=cost)
        for index, shape in tried.items():
            curve = [(x, cost({**best, index: law})) for law, x in trials[index].items()]
            laws[index] = shape.law(best[index], shape.value(_vertex(curve))) or best[index]
            least = positive(min(value for _, value in curve))
            curves[shape] += [(x, value / least) for x, value in curve]
            span[shape] = max(0.01, span[shape] * 2.5 / (TRIALS - 1))
    reports = []
    for shape in free:
        # where the cost, relative to the minimum of its pass, is below the 95 % limit of the likelihood ratio
        x, costs = np.array(sorted(curves[shape])).T
        excess = costs - (1.0 + 3.841 / max(first.fit.dof, 1.0))
        inside, ends = np.flatnonzero(excess <= 0), []
        for k, other in ((inside[0], inside[0] - 1), (inside[-1], inside[-1] + 1)):
            crossed = 0 <= other < len(x)
            ends.append(float(x[k] + (x[other] - x[k]) * excess[k] / (excess[k] - excess[other]) if crossed else x[k]))
        applied, law = model.terms[shape.index], laws[shape.index]
        value = float(getattr(law, shape.shape))
        position = shape.scale(value)
        low, high = min(position, ends[0]), max(position, ends[1])
        at_bound = "lower" if position < EDGE else "upper" if position > 1 - EDGE else None
        report = ShapeReport(
            joint=model.robot.joints[applied.axis],
            term=law.name,
            shape=shape.shape,
            unit=law.shapes[shape.shape].units[bool(model.robot.prismatic[applied.axis]) and applied.side == "joint"],
            value=value,
            bounds=(shape.low, shape.high),
            interval=(min(value, shape.value(low)), max(value, shape.value(high))),
            at_bound=at_bound,
            determined=at_bound is None and high - low < 0.5,
        )
        reports.append(report)
    fixed = [replace(x, term=replace(laws[k], free=()) if k in laws else x.term) for k, x in enumerate(model.terms)]
    return Shaped(model.with_terms(fixed).with_reference(model.reference_theta), tuple(reports))


def _vertex(curve: Sequence[tuple[float, float]]) -> float:
    """Minimum of a parabola through the best trial and its neighbours; the best trial itself at an end."""
    x, costs = np.array(sorted(curve)).T
    k = int(costs.argmin())
    if not 0 < k < len(x) - 1:
        return float(x[k])
    second, first, _ = np.polyfit(x[k - 1 : k + 2] - x[k], costs[k - 1 : k + 2] - costs[k], 2)
    step = -first / (2 * second) if second > 0 else 0.0
    return float(np.clip(x[k] + step, x[k - 1], x[k + 1]))


def check_excited(model: DynamicModel, motion: Sequence[Segment]) -> None:
    """Rejects a threshold speed that the motion never exceeds, since the columns above it would be zero.

    Raises:
        ModelError: There is such a threshold; the error names joint, law, threshold and top speed.
    """
    for applied in model.terms:
        for name, shape in applied.term.shapes.items():
            if not shape.reached or name in applied.term.free:
                continue
            value, (top, _) = float(getattr(applied.term, name)), _speed_and_travel(model, motion, applied)
            if value >= top:
                unit = shape.units[bool(model.robot.prismatic[applied.axis])]
                raise ModelError(
                    f"'{name}' of friction term '{applied.term.name}' is outside the speeds of the logs",
                    where=f"joint '{model.robot.joints[applied.axis]}'",
                    got=f"{value:g} {unit}",
                    expected=f"less than {top:.3g} {unit}, the top speed",
                    remedy=f"lower it, or write {name}: auto",
                )


def _speed_and_travel(model: DynamicModel, motion: Sequence[Segment], applied: AppliedTerm) -> tuple[float, float]:
    """Top speed [rad/s or m/s] and travel [rad or m] of the axis of a term, a joint or a motor."""
    row = model.drive.rate_weights(applied.axis, applied.side)
    speed = max((float(np.abs(part.v @ row).max(initial=0.0)) for part in motion), default=0.0)
    return speed, max((float(np.ptp(q)) for q in [part.q @ row for part in motion] if len(q)), default=0.0)
