"""Tests whether a robot has changed: compares two results, or a URDF with a result, or shows a trend over many.

Only identifiable quantities are compared: base parameters of links and rotors, and the friction torque at low and at high
speed, whatever laws describe it; what depends on the choice of the laws counts as an error. Each quantity has its own test
(Student's t with the combined degrees of freedom, Welch 1947), corrected for multiple testing (Holm 1979). As far as the
errors hold, an unchanged robot is reported as changed in at most 5 % of cases; model errors make it more. A change of
friction that most joints share is that of temperature: it is reported apart, and joints are tested for changes beyond it.
A body added to the last link changes many base parameters a little: it has a test of its own and is reported first.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..comparison.added_body import added_body
from ..comparison.changes import beyond, changes_of, common_friction, contradictions, holm
from ..comparison.quantities import LEVEL, check_level, friction_rows, require_comparable, row_error, usual_load, usual_speed
from ..errors import EstimationError
from ..model.robot import Robot
from ..result.comparison import Comparison, Trend
from ..result.identification import Identification


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
        return Comparison(before.name, ("URDF", "data"), tuple(holm(contradictions(before, after), level)), level)
    require_comparable(before.model.robot, (before, after))
    tests = changes_of(before, after)
    common = common_friction(tests, level)
    judged = holm([beyond(change, common) for change in tests], level)
    hypothesis = added_body(before, after, judged, level)
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
