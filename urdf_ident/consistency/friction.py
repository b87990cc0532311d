"""Dissipative friction, as linear constraints on the parameters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ..friction import SPEEDS, Trained, dissipation
from ..linalg import Array
from ..model.dynamic_model import DynamicModel
from ..model.trained import sliders
from ..statistics.statistic import StatisticSet
from .constraints import HalfSpaces, LmiOptions
from .standard import Standard

#: Assumed ratio of the peak load to its root mean square.
_PEAK = 3.0
#: Number of refinements with speeds between those of the grid.
_REFINED = 3


def loads(model: DynamicModel, statistics: StatisticSet) -> Array:
    """Approximate peak torque of each joint in the data.

    Returns:
        Shape (n,) [N·m or N]; with a coupled drive, of the joint's actuator.
    """
    peak = np.zeros(model.n)
    for layout in statistics.layouts:
        rows = max(statistics.rows[layout.group], 1)
        peak[layout.joint] = max(peak[layout.joint], _PEAK * np.sqrt(statistics.effort_squares(layout.group) / rows))
    return peak


def friction_constraints(model: DynamicModel, peak: Array, speeds: int = SPEEDS) -> HalfSpaces:
    """Builds the constraints that friction of every joint and motor is dissipative at all speeds.

    Args:
        model: The model; laws without trained speeds are not constrained.
        peak: Largest torque of each joint, shape (n,) [N·m or N].

    Returns:
        The constraints; empty where the signs of the parameters are sufficient.
    """
    rows, names = [np.zeros((0, len(model.parameters)))], list[str]()
    for (axis, side), laws in sliders(model).items():
        reach = laws[0][1].trained
        if reach is None:
            continue
        load = float(peak[axis]) / (1.0 if side == "joint" else abs(float(model.drive.reduction[axis, axis])) or 1.0)
        half_spaces, causes = dissipation([law for _, law in laws], Trained(*reach, load), speeds)
        columns = [column + k for column, law in laws for k in range(len(law.symbols))]
        wide = np.zeros((len(half_spaces), len(model.parameters)))
        wide[:, columns] = half_spaces
        rows.append(wide)
        owner = model.robot.joints[axis] if side == "joint" else f"motor of {model.robot.joints[axis]}"
        names += [f"{owner}: {word} at 0" for word in causes]
    matrix = np.vstack(rows)
    return HalfSpaces(matrix, np.zeros(len(matrix)), tuple(names))


def dissipating(
    choose: Callable[[LmiOptions, float | None], Standard],
    options: LmiOptions,
    weight: float | None,
    model: DynamicModel,
    statistics: StatisticSet,
) -> Standard:
    """Standard parameters with dissipative friction at all speeds, checked on a grid ten times finer than the constraints'.

    Args:
        choose: Function of options and a weight of the prior (None: to be chosen) that returns the parameters.
        weight: As for ``choose``.

    Raises:
        SolverError: Nothing satisfies the constraints.
    """
    peak = loads(model, statistics)
    physics, fine = friction_constraints(model, peak), friction_constraints(model, peak, 10 * SPEEDS)
    standard = choose(replace(options, half_spaces=physics), weight)
    for _ in range(_REFINED):
        broken = fine.violated(standard.theta)
        if not broken.names:
            break
        physics += broken  # speeds between those of the grid
        again = choose(replace(options, half_spaces=physics), float(standard.solver["weight"]))
        record = {key: value for key, value in standard.solver.items() if key in ("weight_choice", "weights_tried", "folds")}
        standard = replace(again, solver={**again.solver, **record})
    return standard
