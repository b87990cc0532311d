"""Tests of the changes between two results: each quantity by Student's t, together by Holm's correction."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ..linalg import Array, positive
from ..model.prior import lumped_inertials
from ..model.robot import Robot
from ..result.comparison import CommonFriction, ParameterChange
from ..result.identification import Identification
from ..units import joint_units
from .quantities import (
    SPEEDS,
    errors_of_means,
    friction_quantities,
    friction_rows,
    friction_words,
    inertial_quantities,
    row_error,
    spread_between_logs,
    usual_load,
    usual_speed,
)

#: Friction changes up to this many spreads are usual between logs of one robot; a spread below this part of the error of the
#: difference is none: the estimate of few logs is often zero.
_WITHIN, _NO_SPREAD = 1.96, 0.1
#: Fewest joints of which most can share a change of friction although one has changed by itself; standard deviation of a normal
#: distribution over its median absolute deviation; standard error of a median over that of a mean.
_FEWEST_ALIKE, _SIGMA_OF_MAD, _ERROR_OF_MEDIAN = 3, 1.4826, 1.2533


class ComparedValue(NamedTuple):
    """A quantity in one result: value, standard error, degrees of freedom of the error."""

    value: float
    error: float
    dof: float


def estimate_of(result: Identification, row: Array) -> ComparedValue:
    """A linear function of the base parameters of a result.

    Args:
        row: Its coefficients, shape (b,).
    """
    return ComparedValue(float(row @ result.fit.params), row_error(result, row), float(result.fit.dof_of(row)))


def welch_test(
    kind: str, where: str, what: str, unit: str, before: ComparedValue, after: ComparedValue, note: str = ""
) -> ParameterChange:
    """Tests the difference of a quantity by Student's t with the combined degrees of freedom (Welch 1947).

    Args:
        kind: "inertia", "friction" or "offset".
        where: Its joint or body.
        what: Its name.
        unit: Its unit.
        before, after: Its estimates.
        note: A remark for the reader.
    """
    from scipy.special import stdtr

    difference, variance = after.value - before.value, before.error**2 + after.error**2
    below = before.error**4 / before.dof + after.error**4 / after.dof
    dof = variance**2 / below if below > 0 else np.inf
    error = float(np.sqrt(variance))
    chance = 2.0 * float(stdtr(min(dof, 1e9), -abs(difference) / positive(error)))
    return ParameterChange(kind, where, what, unit, before.value, after.value, difference, error, chance, False, note)


def common_friction(tests: Sequence[ParameterChange], level: float) -> CommonFriction | None:
    """Returns the relative change of friction that most joints share, if it is significant.

    Temperature changes the friction of all gears. The median over the joints does not depend on those whose own friction has
    changed, as long as they are the minority; its error is the larger of what the joints' errors and their scatter give.

    Args:
        tests: The changes of all quantities.
        level: Significance level.
    """
    from scipy.special import stdtr

    shares: dict[str, list[tuple[float, float]]] = {}
    for change in tests:
        if change.kind == "friction":
            usual = positive(_usual(change))
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


def _usual(change: ParameterChange) -> float:
    """Size of a quantity in both results, to which relative changes refer."""
    return 0.5 * (abs(change.before) + abs(change.after))


def beyond(change: ParameterChange, common: CommonFriction | None) -> ParameterChange:
    """Tests a change of friction against the one that most joints share; other changes stay as they are.

    Args:
        change: The change of one quantity.
        common: The change that most joints share, or None.
    """
    from scipy.special import stdtr

    if change.kind != "friction" or common is None:
        return change
    usual = _usual(change)
    error = math.hypot(change.std_error, usual * common.std_error, usual * common.spread)
    chance = 2.0 * float(stdtr(common.joints - 1, -abs(change.difference - usual * common.share) / positive(error)))
    return replace(change, std_error=error, chance=chance)


def holm(tests: Sequence[ParameterChange], level: float) -> list[ParameterChange]:
    """Marks what has changed (Holm 1979).

    Args:
        tests: The changes of all quantities.
        level: Family-wise false alarm rate.

    Returns:
        The changes, smallest p-value first.
    """
    ordered, judged, rejecting = sorted(tests, key=lambda change: change.chance), list[ParameterChange](), True
    for k, change in enumerate(ordered):
        rejecting = rejecting and change.chance < level / (len(ordered) - k)
        judged.append(replace(change, changed=rejecting))
    return judged


def _judged_by_spread(change: ParameterChange, spread: float) -> ParameterChange:
    """Notes whether a change of friction exceeds the spread between logs of one robot."""
    if np.isnan(spread):
        return replace(change, note="the spread of its friction between logs is unknown, so temperature may be the cause")
    if spread < _NO_SPREAD * change.std_error:
        return replace(change, note="its logs show no spread of friction, so temperature may be the cause as well as wear")
    size = f"± {spread:.2g} {change.unit}"
    if abs(change.difference) <= _WITHIN * spread:
        return replace(change, note=f"within the spread between logs ({size}): temperature rather than wear")
    return replace(change, note=f"beyond the spread between logs ({size}): wear, or another lubricant")


def changes_of(before: Identification, after: Identification) -> list[ParameterChange]:
    """Tests the base parameters of the earlier result, expressed in those of both, and friction, whatever laws describe it.

    Args:
        before, after: Results of one robot.
    """
    results, changes = (before, after), []
    quantities = [*inertial_quantities(results), *friction_quantities(results)]
    for quantity, errors in zip(quantities, errors_of_means(quantities, results), strict=True):
        old, new = (
            estimate_of(result, row)._replace(error=error)
            for result, row, error in zip(results, quantity.rows, errors, strict=True)
        )
        test = welch_test(quantity.kind, quantity.where, quantity.what, quantity.unit, old, new)
        test = replace(test, laws=math.hypot(*quantity.laws))
        friction = quantity.kind == "friction"
        changes.append(_judged_by_spread(test, spread_between_logs(quantity, results)) if friction else test)
    return changes


def contradictions(robot: Robot, ident: Identification) -> list[ParameterChange]:
    """Tests the base parameters and the stated friction of a URDF against a result.

    Args:
        robot: The robot of the URDF, with the joints of the result.
        ident: The result.
    """
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
        tests.append(welch_test("inertia", parameter.owner, fit.base.labels[row], parameter.unit, urdf, identified, note))
    for j, joint in enumerate(model.robot.joints):
        entry = robot.description.joints[joint]
        if entry.damping or entry.friction:
            for word, share in SPEEDS.items():
                speed = share * usual_speed(ident, j)
                ((level_row,), _) = friction_rows([ident], j, speed, usual_load([ident]))
                urdf = ComparedValue(float(entry.friction + entry.damping * speed), 0.0, np.inf)
                identified = estimate_of(ident, level_row)
                what, unit = friction_words(robot, j, word, speed), joint_units(robot.prismatic[j])["torque"]
                tests.append(welch_test("friction", joint, what, unit, urdf, identified))
    return tests
