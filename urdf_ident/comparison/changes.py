"""Tests of the changes between two results: each quantity by Student's t, together by Holm's correction."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ..linalg import positive
from ..model.prior import lumped_inertials
from ..model.robot import Robot
from ..result.comparison import CommonFriction, Compared, ParameterChange
from ..result.identification import Identification
from ..units import joint_units
from .quantities import (
    SPEEDS,
    errors_of_means,
    friction_at,
    friction_quantities,
    friction_rows,
    inertial_quantities,
    row_error,
    spread_between_logs,
    usual_load,
    usual_speed,
)

#: Friction changes up to this many spreads are usual between logs of one robot.
_WITHIN = 1.96
#: A spread below this part of the error of the difference is none: the estimate of few logs is often zero.
_NO_SPREAD = 0.1
#: Fewest joints of which most can share a change of friction although one has changed by itself.
_FEWEST_ALIKE = 3
#: Standard deviation of a normal distribution over its median absolute deviation.
_SIGMA_OF_MAD = 1.4826
#: Standard error of a median over that of a mean.
_ERROR_OF_MEDIAN = 1.2533


class ComparedValue(NamedTuple):
    """A quantity in one result: value, standard error, degrees of freedom of the error."""

    value: float
    error: float
    dof: float


def welch_test(quantity: Compared, before: ComparedValue, after: ComparedValue, note: str = "") -> ParameterChange:
    """Tests the difference of a quantity by Student's t with the combined degrees of freedom (Welch 1947)."""
    from scipy.special import stdtr

    difference, variance = after.value - before.value, before.error**2 + after.error**2
    below = before.error**4 / before.dof + after.error**4 / after.dof
    dof = variance**2 / below if below > 0 else np.inf
    error = float(np.sqrt(variance))
    chance = 2.0 * float(stdtr(min(dof, 1e9), -abs(difference) / positive(error)))
    named = quantity.kind, quantity.where, quantity.what, quantity.unit
    return ParameterChange(*named, before.value, after.value, difference, error, chance, False, note)


def common_friction(tests: Sequence[ParameterChange], level: float) -> CommonFriction | None:
    """The relative change of friction that most joints share, if it is significant at this level.

    Temperature changes the friction of all gears. The median over the joints does not depend on those whose own friction has
    changed, as long as they are the minority; its error is the larger of what the joints' errors and their scatter give.
    """
    from scipy.special import stdtr

    shares: dict[str, list[tuple[float, float]]] = {}
    for change in tests:
        if change.kind == "friction":
            usual = positive(0.5 * (abs(change.before) + abs(change.after)))
            shares.setdefault(change.where, []).append((change.difference / usual, change.std_error / usual))
    if len(shares) < _FEWEST_ALIKE:
        return None
    by_joint, error = np.array([np.mean(at_speeds, axis=0) for at_speeds in shares.values()]).T
    share, expected = float(np.median(by_joint)), float(np.median(error))
    scatter = _SIGMA_OF_MAD * float(np.median(np.abs(by_joint - share)))
    std_error = _ERROR_OF_MEDIAN * max(scatter, expected) / math.sqrt(len(by_joint))
    if 2.0 * stdtr(len(by_joint) - 1, -abs(share) / positive(std_error)) > level:
        return None
    return CommonFriction(share, std_error, math.sqrt(max(scatter**2 - expected**2, 0.0)), len(by_joint))


def beyond(change: ParameterChange, common: CommonFriction | None) -> ParameterChange:
    """Tests a change of friction against the one that most joints share; other changes stay as they are."""
    from scipy.special import stdtr

    if change.kind != "friction" or common is None:
        return change
    usual = 0.5 * (abs(change.before) + abs(change.after))
    error = math.hypot(change.std_error, usual * common.std_error, usual * common.spread)
    chance = 2.0 * float(stdtr(common.joints - 1, -abs(change.difference - usual * common.share) / positive(error)))
    return replace(change, std_error=error, chance=chance)


def holm(tests: Sequence[ParameterChange], level: float) -> list[ParameterChange]:
    """Marks what has changed (Holm 1979), smallest p-value first; level: family-wise false alarm rate."""
    ordered, judged, rejecting = sorted(tests, key=lambda change: change.chance), list[ParameterChange](), True
    for k, change in enumerate(ordered):
        rejecting = rejecting and change.chance < level / (len(ordered) - k)
        judged.append(replace(change, changed=rejecting))
    return judged


def changes_of(before: Identification, after: Identification) -> list[ParameterChange]:
    """Tests the base parameters of the earlier result, expressed in those of both, and friction, whatever laws describe it."""
    results, changes = (before, after), []
    quantities = [*inertial_quantities(results), *friction_quantities(results)]
    for quantity, errors in zip(quantities, errors_of_means(quantities, results), strict=True):
        old, new = (
            ComparedValue(float(row @ result.fit.params), error, float(result.fit.dof_of(row)))
            for result, row, error in zip(results, quantity.rows, errors, strict=True)
        )
        test = welch_test(quantity, old, new)
        note = ""
        if quantity.kind == "friction":  # does it exceed the spread between logs of one robot?
            spread = spread_between_logs(quantity, results)
            size = f"± {spread:.2g} {test.unit}"
            if np.isnan(spread):
                note = "the spread of its friction between logs is unknown, so temperature may be the cause"
            elif spread < _NO_SPREAD * test.std_error:
                note = "its logs show no spread of friction, so temperature may be the cause as well as wear"
            elif abs(test.difference) <= _WITHIN * spread:
                note = f"within the spread between logs ({size}): temperature rather than wear"
            else:
                note = f"beyond the spread between logs ({size}): wear, or another lubricant"
        changes.append(replace(test, laws=math.hypot(*quantity.laws), note=note))
    return changes


def contradictions(robot: Robot, ident: Identification) -> list[ParameterChange]:
    """Tests the base parameters and the stated friction of a URDF against a result with the same joints."""
    model, fit = ident.model, ident.fit
    theta = np.zeros(len(model.names))
    theta[: model.n_inertial] = lumped_inertials(robot).ravel()
    stated = fit.base.of(theta)
    tests = []
    rotors = {k for k, parameter in enumerate(model.parameters) if parameter.rotor}
    for row, index in enumerate(fit.base.independent):
        if not fit.seen[row] or index >= model.n_inertial:
            continue
        partners = set(np.flatnonzero(fit.base.projection[row]).tolist())
        parameter = model.parameters[int(index)]
        note = "includes rotor inertia, which a URDF does not hold" if partners & rotors else ""
        urdf = ComparedValue(float(stated[row]), 0.0, np.inf)
        identified = ComparedValue(float(fit.params[row]), float(fit.bse[row]), float(fit.dofs[row]))
        inertia = Compared("inertia", parameter.owner, fit.base.labels[row], parameter.unit)
        tests.append(welch_test(inertia, urdf, identified, note))
    for j, joint in enumerate(model.robot.joints):
        entry = robot.description.joints[joint]
        if entry.damping or entry.friction:
            for word, share in SPEEDS.items():
                speed = share * usual_speed(ident, j)
                ((level_row,), _) = friction_rows([ident], j, speed, usual_load([ident]))
                urdf = ComparedValue(float(entry.friction + entry.damping * speed), 0.0, np.inf)
                value, error = float(level_row @ fit.params), row_error(ident, level_row)
                identified = ComparedValue(value, error, float(fit.dof_of(level_row)))
                what, unit = friction_at(robot, j, word, speed), joint_units(robot.prismatic[j])["torque"]
                tests.append(welch_test(Compared("friction", joint, what, unit), urdf, identified))
    return tests
