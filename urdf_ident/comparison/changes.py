"""Tests whether a robot has changed: compares two results, or a URDF with a result, or shows a trend over many.

Only identifiable quantities are compared: base parameters of links and rotors, and the friction torque at low and at high
speed, whatever laws describe it; what depends on the choice of the laws counts as an error. Each quantity has its own test
(Student's t with the combined degrees of freedom, Welch 1947), corrected for multiple testing (Holm 1979). As far as the
errors hold, an unchanged robot is reported as changed in at most 5 % of cases; model errors make it more. A change of
friction that most joints share is that of temperature: it is reported apart, and joints are tested for changes beyond it.
A body added to the last link changes many base parameters a little: it has a test of its own and is reported first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ..errors import EstimationError
from ..linalg import NORMAL_95, Array, positive, robust_std, scaled_lstsq, whitening
from ..model.inertia import transform_matrix
from ..model.payload import default_link, moving_link
from ..model.robot import Robot
from ..result.comparison import AddedBody, CommonFriction, Compared, Comparison, ParameterChange, Trend
from ..result.identification import Identification
from ..statistics.least_squares import LEVEL
from ..units import joint_units
from .quantities import (
    SPEEDS,
    check_level,
    errors_of_means,
    friction_at,
    friction_quantities,
    friction_rows,
    inertial_quantities,
    require_comparable,
    row_error,
    spread_between_logs,
    usual_load,
    usual_speed,
)

#: A spread below this part of the error of the difference is none: the estimate of few logs is often zero.
_NO_SPREAD = 0.1
#: Fewest joints of which most can share a change of friction although one has changed by itself.
_FEWEST_ALIKE = 3
#: A body explains a change if at most this share of the changed combinations remains changed.
_EXPLAINED = 0.34
#: Number of inertial parameters of a point mass (mass and first moments); steps that move the frame to its place.
_POINT, _CENTRINGS = 4, 4


def compare(before: Robot | Identification, after: Identification, *, level: float = LEVEL) -> Comparison:
    """Compares two results of one robot, or a URDF with a result.

    Args:
        before: The earlier result, or the robot of a URDF with the same joints.
        after: The later result.
        level: Family-wise false alarm rate, a fraction.

    Returns:
        What has changed; of a URDF, the base parameters and stated friction that the data contradict.

    Raises:
        FingerprintError: The robots are different ones.
        EstimationError: A result has no covariance, or the level is no fraction.
    """
    check_level(level)
    if isinstance(before, Robot):
        require_comparable(before, [after])
        return Comparison(before.name, ("URDF", "data"), tuple(_holm(_contradictions(before, after), level)), level)
    require_comparable(before.model.robot, (before, after))
    tests = _changes_of(before, after)
    common = _common_friction(tests, level)
    judged = _holm([_beyond(change, common) for change in tests], level)
    hypothesis = _added_body(before, after, judged, level)
    return Comparison(before.model.robot.name, ("before", "after"), tuple(judged), level, hypothesis, common)


def trend(results: Sequence[Identification], names: Sequence[str]) -> Trend:
    """Returns the friction over many results of one robot.

    Args:
        results: In order of time, three or more.
        names: A name for each result.

    Returns:
        A table by joint, with the slope from one result to the next and its error.

    Raises:
        FingerprintError: The results are of different robots.
        EstimationError: There are fewer than three results, or one has no covariance.
    """
    if len(results) < 3:
        raise EstimationError("too few results for a trend", got=len(results), expected="three or more")
    require_comparable(results[0].model.robot, results)
    joints = results[0].model.robot.joints
    value, error = np.zeros((2, len(results), len(joints)))
    speeds = [min(usual_speed(result, j) for result in results) for j in range(len(joints))]
    load = usual_load(results)
    for j, speed in enumerate(speeds):
        for i, (result, row, laws) in enumerate(zip(results, *friction_rows(results, j, speed, load), strict=True)):
            value[i, j], error[i, j] = float(row @ result.fit.params), np.hypot(row_error(result, row), laws)
    return Trend(results[0].model.robot.name, tuple(names), joints, np.array(speeds), value, error)


class _Value(NamedTuple):
    """A quantity in one result: value, standard error, degrees of freedom of the error."""

    value: float
    error: float
    dof: float


def _welch_test(quantity: Compared, before: _Value, after: _Value, note: str = "") -> ParameterChange:
    """Tests the difference of a quantity by Student's t with the combined degrees of freedom (Welch 1947)."""
    from scipy.special import stdtr

    difference, variance = after.value - before.value, before.error**2 + after.error**2
    below = before.error**4 / before.dof + after.error**4 / after.dof
    dof = variance**2 / below if below > 0 else np.inf
    error = float(np.sqrt(variance))
    chance = 2.0 * float(stdtr(min(dof, 1e9), -abs(difference) / positive(error)))
    named = quantity.kind, quantity.where, quantity.what, quantity.unit
    return ParameterChange(*named, before.value, after.value, difference, error, chance, False, note)


def _common_friction(tests: Sequence[ParameterChange], level: float) -> CommonFriction | None:
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
    scatter = float(robust_std(by_joint - share))
    std_error = math.sqrt(math.pi / 2 / len(by_joint)) * max(scatter, expected)  # that of a median
    if 2.0 * stdtr(len(by_joint) - 1, -abs(share) / positive(std_error)) > level:
        return None
    return CommonFriction(share, std_error, math.sqrt(max(scatter**2 - expected**2, 0.0)), len(by_joint))


def _beyond(change: ParameterChange, common: CommonFriction | None) -> ParameterChange:
    """Tests a change of friction against the one that most joints share; other changes stay as they are."""
    from scipy.special import stdtr

    if change.kind != "friction" or common is None:
        return change
    usual = 0.5 * (abs(change.before) + abs(change.after))
    error = math.hypot(change.std_error, usual * common.std_error, usual * common.spread)
    chance = 2.0 * float(stdtr(common.joints - 1, -abs(change.difference - usual * common.share) / positive(error)))
    return replace(change, std_error=error, chance=chance)


def _holm(tests: Sequence[ParameterChange], level: float) -> list[ParameterChange]:
    """Marks what has changed (Holm 1979), smallest p-value first; level: family-wise false alarm rate."""
    ordered, judged, rejecting = sorted(tests, key=lambda change: change.chance), list[ParameterChange](), True
    for k, change in enumerate(ordered):
        rejecting = rejecting and change.chance < level / (len(ordered) - k)
        judged.append(replace(change, changed=rejecting))
    return judged


def _changes_of(before: Identification, after: Identification) -> list[ParameterChange]:
    """Tests the base parameters of the earlier result, expressed in those of both, and friction, whatever laws describe it."""
    results, changes = (before, after), []
    quantities = [*inertial_quantities(results), *friction_quantities(results)]
    for quantity, errors in zip(quantities, errors_of_means(quantities, results), strict=True):
        old, new = (
            _Value(float(row @ result.fit.params), error, float(result.fit.dof_of(row)))
            for result, row, error in zip(results, quantity.rows, errors, strict=True)
        )
        test = _welch_test(quantity, old, new)
        note = ""
        if quantity.kind == "friction":  # does it exceed the spread between logs of one robot?
            spread = spread_between_logs(quantity, results)
            size = f"± {spread:.2g} {test.unit}"
            if np.isnan(spread):
                note = "the spread of its friction between logs is unknown, so temperature may be the cause"
            elif spread < _NO_SPREAD * test.std_error:
                note = "its logs show no spread of friction, so temperature may be the cause as well as wear"
            elif abs(test.difference) <= NORMAL_95 * spread:  # usual between logs of one robot
                note = f"within the spread between logs ({size}): temperature rather than wear"
            else:
                note = f"beyond the spread between logs ({size}): wear, or another lubricant"
        changes.append(replace(test, laws=math.hypot(*quantity.laws), note=note))
    return changes


def _contradictions(robot: Robot, ident: Identification) -> list[ParameterChange]:
    """Tests the base parameters and the stated friction of a URDF against a result with the same joints."""
    model, fit = ident.model, ident.fit
    theta = np.zeros(len(model.names))
    theta[: model.n_inertial] = robot.inertials.ravel()
    stated = fit.base.of(theta)
    tests = []
    rotors = {k for k, parameter in enumerate(model.parameters) if parameter.rotor}
    for row, index in enumerate(fit.base.independent):
        if not fit.seen[row] or index >= model.n_inertial:
            continue
        partners = set(np.flatnonzero(fit.base.projection[row]).tolist())
        parameter = model.parameters[int(index)]
        note = "includes rotor inertia, which a URDF does not hold" if partners & rotors else ""
        urdf = _Value(float(stated[row]), 0.0, np.inf)
        identified = _Value(float(fit.params[row]), float(fit.bse[row]), float(fit.error_dof[row]))
        inertia = Compared("inertia", parameter.owner, fit.base.labels[row], parameter.unit)
        tests.append(_welch_test(inertia, urdf, identified, note))
    for j, joint in enumerate(model.robot.joints):
        entry = robot.description.joints[joint]
        if entry.damping or entry.friction:
            for word, share in SPEEDS.items():
                speed = share * usual_speed(ident, j)
                ((level_row,), _) = friction_rows([ident], j, speed, usual_load([ident]))
                urdf = _Value(float(entry.friction + entry.damping * speed), 0.0, np.inf)
                value, error = float(level_row @ fit.params), row_error(ident, level_row)
                identified = _Value(value, error, float(fit.dof_of(level_row)))
                what, unit = friction_at(robot, j, word, speed), joint_units(robot.prismatic[j])["torque"]
                tests.append(_welch_test(Compared("friction", joint, what, unit), urdf, identified))
    return tests


def _added_body(
    before: Identification, after: Identification, tests: Sequence[ParameterChange], level: float
) -> AddedBody | None:
    """Returns the body on the last link that explains the change in inertia, if one does; level: family-wise false alarm rate.

    It changes many parameters, each perhaps by less than shows alone: a point mass is tested by all of them (F-test, as one
    more of the tests), and its own inertia is estimated only if that explains significantly more.
    """
    from scipy.special import chdtrc, fdtrc

    link = default_link(before.model.robot)
    body, frame = moving_link(before.model.robot, link)
    quantities = inertial_quantities((before, after))
    if not quantities:
        return None
    of_name = {change.what: change for change in tests if change.kind == "inertia"}
    changes = [of_name[quantity.what] for quantity in quantities]
    rows, later = (np.array([quantity.rows[side] for quantity in quantities]) for side in (0, 1))
    covariance = _shrunk_covariance(before, rows) + _shrunk_covariance(after, later)
    scale = np.array([change.std_error for change in changes]) / np.sqrt(positive(np.diag(covariance)))
    white = whitening(covariance * np.outer(scale, scale), 1e-10).T
    columns = rows @ before.fit.base.projection[:, 10 * body : 10 * body + 10]
    columns = columns @ transform_matrix(frame.rotation, frame.translation)
    difference = np.array([change.difference for change in changes])
    y, centre = white @ difference, np.zeros(3)
    point = _explained(white @ columns[:, :_POINT], y)
    for _ in range(_CENTRINGS):
        if point.significant:
            centre = centre + point.theta[1:] / point.theta[0]
            point = _explained(white @ columns @ transform_matrix(np.eye(3), centre)[:, :_POINT], y)
    if not point.significant or point.free < 1 or fdtrc(point.rank, point.free, point.ratio) > level / (len(tests) + 1):
        return None
    centred = columns @ transform_matrix(np.eye(3), centre)
    best, extended = point, _explained(white @ centred, y)
    more = extended.rank - point.rank
    if more > 0 and chdtrc(more, (point.left - extended.left) / extended.variance) < level:
        best = extended
    unexplained = difference - centred[:, : len(best.theta)] @ best.theta
    moved, zero = [k for k, change in enumerate(changes) if change.changed], _Value(0.0, 0.0, np.inf)
    again = [_welch_test(changes[k], zero, _Value(float(unexplained[k]), changes[k].std_error, np.inf)) for k in moved]
    rest = sum(change.changed for change in _holm(again, level))
    if not best.significant or rest > _EXPLAINED * len(moved):
        return None
    mass = float(best.theta[0])
    return AddedBody(link, mass, best.mass_error, centre + best.theta[1:4] / mass, len(moved), rest)


def _shrunk_covariance(result: Identification, rows: Array) -> Array:
    """Covariance of linear functions of the base parameters, shape (k, k); from few samples, with smaller correlations.

    A covariance from blocks of time (jackknife) has no more directions than blocks: others would seem known exactly. Its
    correlations are therefore weighted by 1 − λ, with λ the sum of their variances over that of their squares (Schäfer and
    Strimmer 2005, variances as of normal samples). Those of a noise model follow from the motion and are kept.

    Args:
        rows: Coefficients of the functions, shape (k, b).
    """
    covariance = rows @ result.fit.covariance @ rows.T
    dof = float(np.median(result.fit.error_dof))
    if dof >= result.fit.dof:
        return np.asarray(covariance)
    errors = positive(np.sqrt(np.maximum(np.diag(covariance), 0.0)))
    off_diagonal = ~np.eye(len(rows), dtype=bool)
    squares = (covariance / np.outer(errors, errors))[off_diagonal] ** 2
    variances = (1.0 - np.minimum(squares, 1.0)) ** 2 / dof
    kept = 1.0 - min(float(variances.sum()) / positive(float(squares.sum())), 1.0)
    return np.asarray(np.where(off_diagonal, kept * covariance, covariance))


class _Explained(NamedTuple):
    """Differences explained by a body: its inertial parameters, the error of its mass, and the sum of squares that is left.

    Attributes:
        variance: Of the whitened differences that are left, at least 1 (Birge 1932); it is part of ``mass_error``.
        ratio: F-ratio of what is explained.
    """

    theta: Array
    mass_error: float
    left: float
    rank: int
    free: int
    variance: float
    ratio: float

    @property
    def significant(self) -> bool:
        """Whether the mass differs from none at 95 %."""
        return abs(float(self.theta[0])) > NORMAL_95 * self.mass_error > 0.0


def _explained(A: Array, y: Array) -> _Explained:
    theta = scaled_lstsq(A, y, rcond=1e-9)
    scale = positive(np.linalg.norm(A, axis=0))
    rank = int(np.linalg.matrix_rank(A / scale, 1e-6))
    free, left = len(y) - rank, float(np.sum((y - A @ theta) ** 2))
    variance = max(left / max(free, 1), 1.0)
    mass_error = math.sqrt(variance) * float(np.linalg.norm(np.linalg.pinv(A / scale, rcond=1e-9)[0]) / scale[0])
    return _Explained(theta, mass_error, left, rank, free, variance, float(np.sum((A @ theta) ** 2)) / max(rank, 1) / variance)
