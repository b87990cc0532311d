"""What a log says against the URDF's inertial parameters: gravity and scale, and mistakes that free inertias can absorb.

A joint's zero that is 0.1 rad off, a gain or a clock that is a quarter off: other centres of mass or inertias explain them
almost as well, so that a fit with free inertias does not notice. The URDF's own inertias, up to one common factor, do notice
if they are about right. So such a reading is a doubt and never refuses a log; it is worth a word only where the URDF explains
the log well once it is read so, and where the free inertias do not object.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...linalg import Array
from ...model.engine.pinocchio import regressor
from ...model.prior import lumped_inertials
from ...model.robot import Robot
from ...samples import TESTING_REVERSALS
from .candidates import Hypothesis, Reading, candidates
from .findings import Finding
from .hypotheses import sharpened
from .trial import Case
from .wording import against

#: Correlation with the URDF's gravity torque that counts as the opposite, and as the same.
_OPPOSITE, _ALIKE = -0.8, 0.8
#: Poses at which gravity torques are compared.
_POSES = 120
#: Factor of the URDF's gravity torque beyond which the efforts are in another unit, and below which nothing carries the robot.
_SCALE, _WEIGHTLESS = 4.0, 0.1
#: Gain that the URDF must see, what free inertias may lose by it, and what the URDF may leave unexplained: in multiples of what
#: free inertias leave, and of the efforts. A URDF that explains much less than free inertias is wrong itself and no witness. On
#: simulated arms whose masses are wrong by up to three either way, sound logs come to 0.3 under the other conditions.
_GAIN, _OBJECTS, _NEARLY, _LEFT = 0.35, -0.01, 1.4, 0.15
#: What free inertias leave may grow by at most so much.
_GROWS = 1.01
#: Least part of the efforts that the reading, and free inertias, must explain and the URDF as described does not.
_MATERIAL = 0.025
#: Part of the efforts below which the URDF alone, without friction, explains more than any measured effort lets it: torques
#: computed from measured motion leave 0.004, those of torque sensors 0.027 and more by a URDF identified from the same arm.
_COMPUTED = 0.01
#: Or so little more than free inertias with friction leave: where positions are poor, or efforts noisy.
_NO_FRICTION = 1.1
#: Gravity torque of a joint over the largest one, below which it is none.
_CARRIES = 1e-6
#: Mean effort of a slide over the weight that it carries by the URDF, between which nothing needs to be said.
_WEIGHTS = (0.5, 2.0)
#: Part of the best gain within which another cause is a rival.
_RIVAL = 0.3


def against_the_urdf(robot: Robot, case: Case, reading: Reading, laden: bool) -> list[Finding]:
    """Compares the gravity torque of the free fit with the URDF's, and readings by what the URDF's inertias explain.

    Args:
        case: Samples of the logs.
        reading: How they are read.
        laden: Whether a known payload or wrench was taken off their torques.

    Returns:
        The findings.
    """
    left = case.with_urdf_alone(reading)
    if left < _COMPUTED or left < min(_NO_FRICTION * case.judge(reading).part, _LEFT):
        return [_computed(left)]
    if robot.model.gravity.linear @ robot.model.gravity.linear == 0 or reading.gravity is not None:
        return []
    if not laden and (held := _weight_held(robot, case)):
        return held
    fitted, stated = _gravity_torques(robot, case, reading)
    lengths = float(np.linalg.norm(fitted)), float(np.linalg.norm(stated))
    torque = float(np.linalg.norm(case.sampled(0.0).tau.std(axis=0)) * np.sqrt(len(fitted)))
    if lengths[1] == 0:
        return []
    scale = _scale_of_inertia(robot, case, reading)
    weight = min(scale, 1.0) * lengths[1]  # rotors behind gears add inertia without weight, so a scale above 1 proves nothing
    if scale > 0 and lengths[0] < _WEIGHTLESS * weight and weight > 0.2 * torque:
        return [_weightless()]
    if lengths[0] < 0.2 * torque:  # no gravity in the efforts
        return []
    alike = float(np.sum(fitted * stated)) / (lengths[0] * lengths[1])
    ratio = float(np.sum(fitted * stated)) / lengths[1] ** 2
    if alike < _OPPOSITE and scale < 0:
        words = "the efforts of all joints have the wrong sign: gravity and inertia are the opposite of the URDF's"
        remedy = "reverse them by a negative drive.gain"
        return [Finding("effort-sign", "refused", None, None, words, remedy, None, abs(alike))]
    if alike < _OPPOSITE:
        return [_upside_down(robot, laden, abs(alike))]
    if alike > _ALIKE and not 1 / _SCALE < ratio < _SCALE:
        words = f"the efforts are {ratio:.3g} times the gravity torque of the URDF's masses"
        remedy = "check `log.units.effort` (A, mA, N·m; motor side: log.side.effort), drive.gain and drive.reduction"
        return [Finding("effort-scale", "warning", None, None, words, remedy, ratio, alike)]
    return doubts(robot, case, reading)


def _weight_held(robot: Robot, case: Case) -> list[Finding]:
    """Slides whose effort is another multiple of the weight that the URDF lets them carry: an offset takes the rest up."""
    samples = case.sampled(0.0)
    still = np.zeros_like(samples.q)
    stated = regressor(robot, samples.q, still, still) @ lumped_inertials(robot).ravel()
    found = []
    for j in np.flatnonzero(case.moves & robot.prismatic):
        weight, effort = float(stated[:, j].mean()), samples.tau[:, j]
        steady = abs(weight) > max(float(effort.std()), 10 * float(stated[:, j].std()), 1e-9)
        if steady and not _WEIGHTS[0] < effort.mean() / weight < _WEIGHTS[1]:
            times = float(effort.mean()) / weight
            words = (
                f"on average the effort of this joint is {times:.3g} times the weight that it carries according to the URDF: "
                "scale, counterweight or masses differ"
            )
            remedy = (
                "check drive.gain and the URDF's masses; a counterweight is identified as an offset, masses stay the URDF's"
            )
            name = robot.joints[j]
            found.append(Finding("effort-scale", "warning", name, None, words, remedy, times, 0.5, ("effort-scale",)))
    return found


def doubts(robot: Robot, case: Case, reading: Reading) -> list[Finding]:
    """Readings that only the URDF's inertias can tell from the log as it is described.

    Args:
        case: Samples of the logs.
        reading: How they are read.

    Returns:
        At most one finding, a warning.
    """
    if case.turns < TESTING_REVERSALS:  # a URDF that is wrong by a fifth passes for a witness where parts are extrapolated
        return []
    before, (size, part) = case.judge(reading), case.with_scaled_urdf(reading)
    if part**2 - before.part**2 < _MATERIAL**2:  # as logged the URDF explains what free inertias do: nothing is left to be read
        return []
    found = []
    for item in _readings(robot, case, reading):
        score, left = case.with_scaled_urdf(item.reading)
        judged = case.judge(item.reading)
        trusted = left < min(_NEARLY * judged.part, _LEFT) and part**2 - left**2 > _MATERIAL**2
        agrees = before.score - judged.score > _OBJECTS and judged.part < _GROWS * before.part
        if size - score > _GAIN and agrees and trusted:
            found.append((size - score, item))
    if not found:
        return []
    found.sort(key=lambda pair: -pair[0])
    best = found[0][0]
    rivals = {(item.id, item.joints): item for gain, item in reversed(found) if gain > (1 - _RIVAL) * best}
    chosen = found[0][1]
    rivals.pop((chosen.id, chosen.joints), None)
    if chosen.id in ("position-zero", "time-scale", "effort-scale"):
        chosen = sharpened(chosen, lambda some: [case.with_scaled_urdf(item)[0] for item in some])
    return [against(robot, chosen, tuple(rivals.values()), part, case.with_scaled_urdf(chosen.reading)[1], best)]


def _readings(robot: Robot, case: Case, reading: Reading) -> Iterator[Hypothesis]:
    """Where gravity turns with one joint alone, its direction, that joint's zero and one centre of mass are the same."""
    stated = np.ptp(_gravity_torques(robot, case, reading)[1], axis=0)
    turning = bool(np.sum(stated > _CARRIES * stated.max()) > 1)
    for item in candidates(robot, case.moves, reading, poor=False):
        leant = turning and item.id == "gravity-direction" and item.size != 0.0
        shifted = turning and item.id == "position-zero" and abs(item.size - reading.zero[item.joints[0]]) < 1.0
        if leant or shifted or item.id in ("time-scale", "effort-scale"):
            yield item


def _computed(left: float) -> Finding:
    words = (
        f"the URDF's inertias without any friction leave {100 * left:.3g} % of the efforts unexplained: they were computed "
        "(a target, a simulation), not measured"
    )
    remedy = "log the measured current or torque: a target only shows what the controller's model expects"
    return Finding("effort-commanded", "warning", None, None, words, remedy)


def _weightless() -> Finding:
    words = "the efforts contain inertial torques, but do not hold the robot against gravity"
    remedy = "log the whole joint torque, or add the gravity torque that the controller subtracted"
    return Finding("effort-without-gravity", "refused", None, None, words, remedy)


def _upside_down(robot: Robot, laden: bool, certainty: float) -> Finding:
    gravity = -np.asarray(robot.model.gravity.linear) + 0.0
    vector = ", ".join(f"{value:.4g}" for value in gravity)
    words = f"the efforts work against a gravity vector of [{vector}] in the base frame, if the URDF's centres of mass"
    remedy = f"if the robot is mounted that way, set it in the project file: `robot: {{gravity: [{vector}]}}`"
    if laden:
        remedy = f"does the robot carry the payload (drive.payload) that was taken off the efforts? Otherwise: {remedy}"
    return Finding("gravity-direction", "refused", None, None, f"{words} are about right", remedy, 180.0, certainty)


def _scale_of_inertia(robot: Robot, case: Case, reading: Reading) -> float:
    """Inertia torques of the free fit in multiples of the URDF's; 0 where they are not alike, negative where opposite."""
    samples = case.sampled(0.0)
    step = max(1, len(samples) // _POSES)
    q, a = samples.q[::step], samples.a[::step]
    zero = np.zeros_like(q)
    Y = regressor(robot, q, zero, a) - regressor(robot, q, zero, zero)
    fitted, stated = Y @ case.inertial_parameters(reading), Y @ lumped_inertials(robot).ravel()
    size = float(np.linalg.norm(fitted) * np.linalg.norm(stated))
    product = float(np.sum(fitted * stated))
    return product / float(np.sum(stated**2)) if abs(product) > -_OPPOSITE * size > 0 else 0.0


def _gravity_torques(robot: Robot, case: Case, reading: Reading) -> tuple[Array, Array]:
    """Of the free fit and of the URDF at the same poses, without their means, shape (N, n) each."""
    theta = case.inertial_parameters(reading)
    q = case.sampled(0.0).q
    q = q[:: max(1, len(q) // _POSES)]
    Y = regressor(robot, q, np.zeros_like(q), np.zeros_like(q))
    fitted, stated = Y @ theta, Y @ lumped_inertials(robot).ravel()
    moves = case.moves
    return (fitted - fitted.mean(axis=0))[:, moves], (stated - stated.mean(axis=0))[:, moves]
