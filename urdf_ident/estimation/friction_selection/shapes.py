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
from itertools import product
from typing import Any

import numpy as np

from ...errors import ModelError
from ...friction import Shape, Term
from ...grouping import grouped
from ...linalg import IntArray, orthogonal_part, positive, triangle
from ...model.dynamic_model import DynamicModel
from ...model.terms import AppliedTerm
from ...samples import Segment
from ...statistics.fit import Fit, fit_base
from ...units import percent
from .reference_torque import Build, converge

#: Trials of a shape per pass, and passes per shape of a law.
TRIALS, PASSES = 9, 4
#: A shape this close to its bound (fraction of the search range) counts as undetermined.
EDGE = 0.01
#: Maximum number of sweeps over the joints on the factors of one pass.
SWEEPS = 5
#: Maximum number of combinations of the trials at one joint up to which all are compared.
COMBINATIONS = 5000


@dataclass(frozen=True)
class ShapeReport:
    """Result for one free shape.

    Attributes:
        shape: Name of the shape.
        value: Estimate.
        start: Initial value.
        bounds: Range of the search.
        interval: 95 % profile interval; open at an end that equals the bound.
        at_bound: "lower" or "upper" if the estimate is at a bound, else None.
        determined: Whether the data determine it: not at its bound, and the interval less than half of the range.
        gain: Relative reduction of the weighted sum of squares compared with the initial value, the other shapes
            as estimated.
    """

    joint: str
    term: str
    shape: str
    unit: str
    value: float
    start: float
    bounds: tuple[float, float]
    interval: tuple[float, float]
    at_bound: str | None
    determined: bool
    gain: float

    def describe(self) -> str:
        """Returns the result in one line."""
        low, high = self.interval
        text = f"{self.term} of {self.joint}: {self.shape} = {self.value:.3g} {self.unit} (95 %: {low:.2g} to {high:.2g})"
        if self.determined:
            return f"{text}, residual {percent(100 * self.gain)} % smaller than at {self.start:.3g}"
        where = f", at the {self.at_bound} bound of its search" if self.at_bound else ""
        return f"{text}{where}: the data do not determine it; give a number, or leave {self.term} out of {self.joint}"


@dataclass(frozen=True, eq=False)
class Shaped:
    """A model without free shapes, and the result for each of them."""

    model: DynamicModel
    reports: tuple[ShapeReport, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for the user."""
        return tuple(report.describe() for report in self.reports)


@dataclass(frozen=True)
class _Free:
    """A free shape: index of its law in the model's list of terms, its name, and the range of the search."""

    index: int
    shape: str
    low: float
    high: float

    def scale(self, value: float) -> float:
        """Position in the range, 0 to 1; logarithmic, unless the range begins at zero."""
        if self.low > 0:
            return float(np.log(max(value, self.low) / self.low) / np.log(self.high / self.low))
        return value / self.high

    def value(self, position: float) -> float:
        """Inverse of :meth:`scale`."""
        return float(self.low * (self.high / self.low) ** position if self.low > 0 else self.high * position)

    def law(self, term: Term, position: float) -> Term | None:
        """The law with this shape at a position of the range; None if the law does not allow it."""
        return _with_shape(term, self.shape, self.value(position))

    def grid(self, term: Term, span: float) -> list[tuple[float, Term]]:
        """Trials around the current value, which comes first: position in the range, and the law."""
        centre = min(max(self.scale(float(getattr(term, self.shape))), 0.0), 1.0)
        begin, end = max(0.0, min(centre - span, 1.0 - 2 * span)), min(1.0, max(centre + span, 2 * span))
        positions = [centre, *(float(x) for x in np.linspace(begin, end, TRIALS) if abs(x - centre) > 1e-9)]
        return [(x, law) for x in positions if (law := self.law(term, x)) is not None]


#: Position of each trial of a shape in its range, and its cost.
_Curve = list[tuple[float, float]]


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
    free = _free_shapes(model, motion)
    if not free:
        return Shaped(model)
    build = partial(build, blocks=1)
    first = converge(model, build, partial(fit_base, base=model.base(), method=method))
    trials = partial(_Trials, build=build, fit=first.fit)
    current, span = first.model, dict.fromkeys(free, 0.5)
    curves: dict[_Free, _Curve] = {free_shape: [] for free_shape in free}
    by_law = list(grouped((free_shape.index, free_shape) for free_shape in free).values())
    for count in range(PASSES * max(map(len, by_law))):
        turn = [shapes[count % len(shapes)] for shapes in by_law]  # one shape per law
        current, costs = _search(
            current,
            trials,
            {free_shape: free_shape.grid(current.terms[free_shape.index].term, span[free_shape]) for free_shape in turn},
        )
        for free_shape, curve in costs.items():
            least = positive(min(cost for _, cost in curve))
            curves[free_shape] += [(x, cost / least) for x, cost in curve]
            span[free_shape] = max(0.01, span[free_shape] * 2.5 / (TRIALS - 1))
    reports = _reports(model, current, trials, curves, first.fit.dof)
    fixed = [replace(applied, term=replace(applied.term, free=())) for applied in current.terms]
    return Shaped(current.with_terms(fixed).with_reference(model.reference_theta), reports)


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


def _bounds(shape: Shape, speed: float, travel: float) -> tuple[float, float]:
    """The range in which a shape is searched on an axis, in the shape's unit."""
    if shape.kind == "displacement":
        return 1e-5 * travel, 0.1 * travel
    if shape.kind == "steepness":
        return 2.0 / speed, 20000.0 / speed
    if shape.kind == "exponent":
        return 0.5, 4.0
    return (0.0 if shape.reached else 0.002 * speed), 0.5 * speed


def _free_shapes(model: DynamicModel, motion: Sequence[Segment]) -> list[_Free]:
    free = []
    for index, applied in enumerate(model.terms):
        for name in applied.term.free:
            joint = model.robot.joints[applied.axis]
            if not model.is_rigid:
                raise ModelError(
                    "free friction shapes with elastic joints are not supported",
                    where=f"joint '{joint}'",
                    got=f"{applied.term.name}.{name}: auto",
                    remedy="give a number",
                )
            speed, travel = _speed_and_travel(model, motion, applied)
            if not (speed > 0 and travel > 0):
                raise ModelError(
                    f"'{name}' of '{applied.term.name}' cannot be found: the axis does not move", where=f"joint '{joint}'"
                )
            (low, high), start = _bounds(applied.term.shapes[name], speed, travel), float(getattr(applied.term, name))
            free.append(_Free(index, name, min(low, start) if start > 0 else low, max(high, start)))
    return free


def _with_shape(term: Term, name: str, value: float) -> Term | None:
    """The law with another value of a shape; None if the law does not allow it."""
    changes: dict[str, Any] = {name: value}
    try:
        return replace(term, **changes)
    except ModelError:
        return None


class _Trials:
    """One pass over the data in which some terms have several versions; the common columns are projected out.

    Args:
        versions: Index of a term → its versions.
        fit: An estimate with the independent columns and the weights.
    """

    def __init__(self, model: DynamicModel, versions: Mapping[int, Sequence[Term]], *, build: Build, fit: Fit) -> None:
        laws = [(index, law) for index, applied in enumerate(model.terms) for law in versions.get(index, (applied.term,))]
        wide = model.with_terms([replace(model.terms[index], term=law) for index, law in laws])
        independent = np.isin(np.arange(len(model.parameters)), fit.base.independent)
        common, tried = [np.flatnonzero(independent[: model.n_inertial])], list[IntArray]()
        self.places: dict[int, list[IntArray]] = {}
        own, width = [place for _, place in model.placed_terms], 0
        for (index, _), (_, place) in zip(laws, wide.placed_terms, strict=True):
            columns = place.start + np.flatnonzero(independent[own[index]])
            (tried if index in versions else common).append(columns)
            if index in versions:
                self.places.setdefault(index, []).append(width + np.arange(len(columns)))
                width += len(columns)
        order = np.concatenate([*common, *tried]).astype(np.intp)
        fixed = sum(map(len, common))
        self.rest = triangle(build(wide).stacked(fit.weights, order))[fixed:, fixed:]

    def cost(self, choice: Mapping[int, int]) -> float:
        """Minimum weighted sum of squares with a version of each term (index of the term → version; else the first)."""
        columns = self.rest[:, np.concatenate([versions[choice.get(index, 0)] for index, versions in self.places.items()])]
        return float(np.sum(orthogonal_part(self.rest[:, -1], columns[:, columns.any(axis=0)]) ** 2))


def _search(
    model: DynamicModel, trials: Callable[..., _Trials], grids: Mapping[_Free, list[tuple[float, Term]]]
) -> tuple[DynamicModel, dict[_Free, _Curve]]:
    """One pass with all trials of one shape per law: the best combination, and position and cost along each shape."""
    made = trials(model, {free_shape.index: [law for _, law in grid] for free_shape, grid in grids.items()})
    choice = {free_shape.index: 0 for free_shape in grids}
    by_axis = grouped((model.terms[free_shape.index].axis, free_shape) for free_shape in grids)
    for _ in range(SWEEPS):
        before = dict(choice)
        for items in by_axis.values():
            for several in (
                [items] if np.prod([len(grids[free_shape]) for free_shape in items]) <= COMBINATIONS else [[i] for i in items]
            ):
                combinations = product(*(range(len(grids[free_shape])) for free_shape in several))
                options = [
                    choice | dict(zip((free_shape.index for free_shape in several), places, strict=True))
                    for places in combinations
                ]
                choice = min(options, key=made.cost)
        if choice == before:
            break
    costs, terms = dict[_Free, _Curve](), list(model.terms)
    for free_shape, grid in grids.items():
        costs[free_shape] = [(x, made.cost({**choice, free_shape.index: k})) for k, (x, _) in enumerate(grid)]
        best = grid[choice[free_shape.index]][1]
        terms[free_shape.index] = replace(
            terms[free_shape.index], term=free_shape.law(best, _vertex(costs[free_shape])) or best
        )
    return model.with_terms(terms), costs


def _vertex(curve: list[tuple[float, float]]) -> float:
    """Minimum of a parabola through the best trial and its neighbours; the best trial itself at an end."""
    x, costs = np.array(sorted(curve)).T
    k = int(costs.argmin())
    if not 0 < k < len(x) - 1:
        return float(x[k])
    second, first, _ = np.polyfit(x[k - 1 : k + 2] - x[k], costs[k - 1 : k + 2] - costs[k], 2)
    step = -first / (2 * second) if second > 0 else 0.0
    return float(np.clip(x[k] + step, x[k - 1], x[k + 1]))


def _interval(curve: list[tuple[float, float]], dof: float) -> tuple[float, float]:
    """Interval in which the cost, relative to the minimum of its pass, is below the 95 % limit of the likelihood ratio, by
    linear interpolation."""
    x, costs = np.array(sorted(curve)).T
    excess = costs - (1.0 + 3.841 / max(dof, 1.0))
    inside = np.flatnonzero(excess <= 0)
    ends = []
    for k, step in ((int(inside[0]), -1), (int(inside[-1]), 1)):
        other = k + step
        if not 0 <= other < len(x):
            ends.append(float(x[k]))
        else:
            ends.append(float(x[k] + (x[other] - x[k]) * excess[k] / (excess[k] - excess[other])))
    return ends[0], ends[1]


def _reports(
    model: DynamicModel, found: DynamicModel, trials: Callable[..., _Trials], curves: Mapping[_Free, _Curve], dof: float
) -> tuple[ShapeReport, ...]:
    """Results for the shapes; the gain of each is the increase of the cost if it alone is reset to its initial value."""
    versions: dict[int, list[Term]] = {free_shape.index: [found.terms[free_shape.index].term] for free_shape in curves}
    back: dict[_Free, int] = {}
    for free_shape in curves:
        term = _with_shape(
            versions[free_shape.index][0], free_shape.shape, getattr(model.terms[free_shape.index].term, free_shape.shape)
        )
        if term is not None:
            versions[free_shape.index].append(term)
            back[free_shape] = len(versions[free_shape.index]) - 1
    made, reports = trials(found, versions), []
    least = made.cost({})
    for free_shape, curve in curves.items():
        applied, shape = found.terms[free_shape.index], found.terms[free_shape.index].term.shapes[free_shape.shape]
        value, start = (float(getattr(m.terms[free_shape.index].term, free_shape.shape)) for m in (found, model))
        gain = 1.0 - least / positive(made.cost({free_shape.index: back[free_shape]})) if free_shape in back else 0.0
        position, (low, high) = free_shape.scale(value), _interval(curve, dof)
        low, high = min(position, low), max(position, high)
        at_bound = "lower" if position < EDGE else "upper" if position > 1 - EDGE else None
        report = ShapeReport(
            joint=model.robot.joints[applied.axis],
            term=applied.term.name,
            shape=free_shape.shape,
            unit=shape.units[bool(model.robot.prismatic[applied.axis]) and applied.side == "joint"],
            value=value,
            start=start,
            bounds=(free_shape.low, free_shape.high),
            interval=(min(value, free_shape.value(low)), max(value, free_shape.value(high))),
            at_bound=at_bound,
            determined=at_bound is None and high - low < 0.5,
            gain=gain,
        )
        reports.append(report)
    return tuple(reports)
