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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from ...errors import ModelError
from ...friction import Term
from ...grouping import grouped
from ...linalg import Array, IntArray, orthogonal_part, positive, triangle
from ...model.base import BaseParameters
from ...model.dynamic_model import DynamicModel
from ...model.terms import AppliedTerm
from ...samples import Segment
from ...statistics.fit import fit_base
from ...units import percent
from .excited import check_excited, excited
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
        if self.low > 0:
            return float(self.low * (self.high / self.low) ** position)
        return float(self.high * position)


def fit_shapes(model: DynamicModel, build: Build, motion: Sequence[Segment], *, method: str = "wls") -> Shaped:
    """Estimates the free shapes of a model's friction laws.

    Args:
        model: The dynamic model; shapes that its terms list in ``free`` are estimated.
        build: Computes the statistics of a model on the data.
        motion: The segments of these data, for the bounds.
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
    base, build = model.base(), partial(build, blocks=1)
    first = converge(model, build, partial(fit_base, base=base, method=method))
    current, weights = first.model, first.fit.weights
    by_law = [[item for item in free if item.index == index] for index in dict.fromkeys(item.index for item in free)]
    span = dict.fromkeys(free, 0.5)
    curves: dict[_Free, list[tuple[float, float]]] = {item: [] for item in free}
    for count in range(PASSES * max(len(shapes) for shapes in by_law)):
        turn = [shapes[count % len(shapes)] for shapes in by_law]
        grids = {item: _grid(current.terms[item.index].term, item, span[item]) for item in turn}
        current, costs = _search(current, build, base, weights, grids)
        for item in turn:
            least = min(cost for _, cost in costs[item])
            curves[item] += [(x, cost / positive(least)) for x, cost in costs[item]]
            span[item] = max(0.01, span[item] * 2.5 / (TRIALS - 1))
    reports = _reports(model, current, build, base, weights, curves, first.fit.dof)
    fixed = [replace(item, term=replace(item.term, free=())) for item in current.terms]
    return Shaped(current.with_terms(fixed).with_reference(model.reference_theta), reports)


def _free_shapes(model: DynamicModel, motion: Sequence[Segment]) -> list[_Free]:
    found = []
    for index, item in enumerate(model.terms):
        for name in item.term.free:
            joint = model.robot.joints[item.axis]
            if "elastic" in model.as_dict():
                raise ModelError(
                    "free friction shapes with elastic joints are not supported",
                    where=f"joint '{joint}'",
                    got=f"{item.term.name}.{name}: auto",
                    remedy="give a number",
                )
            axis = excited(model, motion, item)
            if not (axis.speed > 0 and axis.travel > 0):
                raise ModelError(
                    f"'{name}' of '{item.term.name}' cannot be found: the axis does not move", where=f"joint '{joint}'"
                )
            low, high = axis.bounds(item.term.shapes[name])
            start = float(getattr(item.term, name))
            found.append(_Free(index, name, min(low, start) if start > 0 else low, max(high, start)))
    return found


def _with_shape(term: Term, name: str, value: float) -> Term | None:
    """The law with another value of a shape; None if the law does not allow it."""
    changes: dict[str, Any] = {name: value}
    try:
        return replace(term, **changes)
    except ModelError:
        return None


def _grid(term: Term, item: _Free, span: float) -> list[tuple[float, Term]]:
    """Trials of one shape around the current value, which comes first: position in the range, and the law."""
    centre = min(max(item.scale(float(getattr(term, item.shape))), 0.0), 1.0)
    begin, end = max(0.0, min(centre - span, 1.0 - 2 * span)), min(1.0, max(centre + span, 2 * span))
    positions = [centre, *(float(x) for x in np.linspace(begin, end, TRIALS) if abs(x - centre) > 1e-9)]
    laws = [(x, _with_shape(term, item.shape, item.value(x))) for x in positions]
    return [(x, law) for x, law in laws if law is not None]


class _Trials:
    """One pass over the data in which some terms have several versions; the common columns are projected out."""

    def __init__(
        self,
        model: DynamicModel,
        build: Build,
        base: BaseParameters,
        weights: Mapping[str, float],
        versions: Mapping[int, Sequence[Term]],
    ) -> None:
        independent = np.zeros(len(model.parameters), dtype=bool)
        independent[base.independent] = True
        common = [np.flatnonzero(independent[: model.n_inertial])]
        terms: list[AppliedTerm] = []
        tried: list[IntArray] = []
        self.places: dict[int, list[IntArray]] = {}
        own, begin, width = model.n_inertial, model.n_inertial, 0
        for index, applied in enumerate(model.terms):
            laws, columns = versions.get(index, (applied.term,)), len(applied.term.symbols)
            kept = np.flatnonzero(independent[own : own + columns])
            for law in laws:
                terms.append(replace(applied, term=law))
                if index in versions:
                    self.places.setdefault(index, []).append(width + np.arange(len(kept)))
                    width += len(kept)
                (tried if index in versions else common).append(begin + kept)
                begin += columns
            own += columns
        factor = build(model.with_terms(terms)).stacked(weights)
        order = np.concatenate([*common, *tried, [begin]]).astype(np.intp)
        fixed = sum(len(part) for part in common)
        self.rest = triangle(factor[:, order])[fixed:, fixed:]

    def cost(self, choice: Mapping[int, int]) -> float:
        """Minimum weighted sum of squares with a version of each term (index of the term → version; else the first)."""
        columns = np.concatenate([versions[choice.get(index, 0)] for index, versions in self.places.items()])
        return _residual(self.rest[:, columns], self.rest[:, -1])


def _search(
    model: DynamicModel,
    build: Build,
    base: BaseParameters,
    weights: Mapping[str, float],
    grids: Mapping[_Free, list[tuple[float, Term]]],
) -> tuple[DynamicModel, dict[_Free, list[tuple[float, float]]]]:
    """One pass with all trials of one shape per law: the best combination, and position and cost along each shape."""
    trials = _Trials(model, build, base, weights, {item.index: [law for _, law in grid] for item, grid in grids.items()})
    choice = {item.index: 0 for item in grids}
    by_axis = grouped((model.terms[item.index].axis, item) for item in grids)
    for _ in range(SWEEPS):
        before = dict(choice)
        for items in by_axis.values():
            for several in [items] if np.prod([len(grids[item]) for item in items]) <= COMBINATIONS else [[i] for i in items]:
                combinations = product(*(range(len(grids[item])) for item in several))
                options = [choice | dict(zip((item.index for item in several), places, strict=True)) for places in combinations]
                choice = min(options, key=trials.cost)
        if choice == before:
            break
    costs = {
        item: [(x, trials.cost({**choice, item.index: k})) for k, (x, _) in enumerate(grid)] for item, grid in grids.items()
    }
    terms = list(model.terms)
    for item, grid in grids.items():
        best = grid[choice[item.index]][1]
        law = _with_shape(best, item.shape, item.value(_vertex(costs[item])))
        terms[item.index] = replace(terms[item.index], term=law or best)
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


def _residual(columns: Array, target: Array) -> float:
    """Squared distance of a target from a span, the inner problem of variable projection."""
    return float(np.sum(orthogonal_part(target, columns[:, columns.any(axis=0)]) ** 2))


def _reports(
    model: DynamicModel,
    found: DynamicModel,
    build: Build,
    base: BaseParameters,
    weights: Mapping[str, float],
    curves: Mapping[_Free, list[tuple[float, float]]],
    dof: float,
) -> tuple[ShapeReport, ...]:
    """Results for the shapes; the gain of each is the increase of the cost if it alone is reset to its initial value."""
    versions: dict[int, list[Term]] = {item.index: [found.terms[item.index].term] for item in curves}
    back: dict[_Free, int] = {}
    for item in curves:
        term = _with_shape(versions[item.index][0], item.shape, getattr(model.terms[item.index].term, item.shape))
        if term is not None:
            versions[item.index].append(term)
            back[item] = len(versions[item.index]) - 1
    trials = _Trials(found, build, base, weights, versions)
    least = trials.cost({})
    reports = []
    for item, curve in curves.items():
        applied, shape = found.terms[item.index], found.terms[item.index].term.shapes[item.shape]
        value, start = (float(getattr(m.terms[item.index].term, item.shape)) for m in (found, model))
        gain = 1.0 - least / positive(trials.cost({item.index: back[item]})) if item in back else 0.0
        position, ends = item.scale(value), _interval(curve, dof)
        low, high = min(position, ends[0]), max(position, ends[1])
        at_bound = "lower" if position < EDGE else "upper" if position > 1 - EDGE else None
        unit = shape.units[bool(model.robot.prismatic[applied.axis]) and applied.side == "joint"]
        which = (model.robot.joints[applied.axis], applied.term.name, item.shape)
        reports.append(
            ShapeReport(
                *which,
                unit,
                value,
                start,
                (item.low, item.high),
                (min(value, item.value(low)), max(value, item.value(high))),
                at_bound,
                at_bound is None and high - low < 0.5,
                gain,
            )
        )
    return tuple(reports)
