"""Compares a log with the URDF's inertial parameters: gravity and scale, and faults that free inertias can absorb.

A joint zero that is 0.1 rad off, or a gain or a clock that is a quarter off, can be explained almost as well by other centres
of mass or inertias, so that a fit with free inertias does not detect it. The URDF's own inertias, up to one common factor, do
if they are about right. Such an interpretation is therefore a doubt and never refuses a log; it is reported only if the URDF
then explains the log well and the free inertias do not contradict it.
"""

from __future__ import annotations

import numpy as np

from ..judgements.catalogue import Id
from ..judgements.judgement import Judgement, Remedy
from ..linalg import Array, scaled_lstsq
from ..model.prior import CONTRADICTION, USUAL_ERROR, inertial_prior, lumped_inertials
from ..model.rigid_bodies import gravity_torques, regressor
from ..samples import TESTING_REVERSALS, one_way
from .evidence import CLEAR, DECISIVE, EXACT, MATERIAL, RIVAL
from .friction import OFFSET, friction_columns
from .hypotheses import reading_of, refined
from .interpretation import Interpretation
from .kinds.catalogue import candidates
from .kinds.clock_and_gravity import mounted
from .kinds.senses_and_orders import EffortSign
from .trials import Trials
from .urdf_bodies import error_of_urdf, left_by_urdf_alone, left_with_one_body_changed, scaled_urdf
from .words import against

#: Correlation with the URDF's gravity torque that counts as equal; and, negative, as opposite.
_ALIKE = 0.8
#: Ratio to the URDF's gravity torque below which the efforts contain no gravity.
_WEIGHTLESS = 0.1
#: Largest residual of the URDF relative to that of free inertias, and to the efforts. A URDF that explains much less than free
#: inertias is wrong itself and no evidence.
_NEARLY, _LEFT = 1.4, 0.15
#: Part of the efforts below which the URDF alone, without friction, explains more than any measured effort lets it: torques
#: computed from measured motion leave 0.004, those of torque sensors 0.027 and more by a URDF identified from the same arm.
_COMPUTED = 2 * EXACT
#: Alternatively, the largest ratio to the residual of free inertias with friction, for poor positions or noisy efforts.
_NO_FRICTION = 1.1
#: Where the noisiest effort has noise below :data:`.evidence.EXACT` of its standard deviation (one part in 200, as of 8 bits),
#: none was measured. The feedforward of a controller that knows the URDF, rotors and friction is then told by the URDF's
#: bodies, whose torques differ from those of free ones by less than this, relative to them. With noise, a URDF that was
#: identified from the same robot explains measured efforts as well.
_EXACT_BODIES = 0.02
#: Largest plausible factor between an effort and the weight that its joint carries according to the URDF, where friction may be
#: part of it.
_WEIGHTS = 2.0
#: Least power of a joint's gravity torque over the largest one: a small one depends on the centres of mass of light links.
_HEAVY = 0.01


def against_the_urdf(trials: Trials, interpretation: Interpretation, loaded: bool, noise: float) -> list[Judgement]:
    """Compares the gravity torque of the free fit with the URDF's, and interpretations by the residual of the URDF's inertias.

    Args:
        loaded: Whether a known payload or wrench was subtracted from their torques.
        noise: White noise of the noisiest effort, over its standard deviation.
    """
    left = left_by_urdf_alone(trials, interpretation)
    if left < _COMPUTED or left < min(_NO_FRICTION * trials.score(interpretation).unexplained, _LEFT):
        return [_computed(left, "without any friction")]
    if noise < EXACT and error_of_urdf(trials, interpretation) < _EXACT_BODIES:
        return [_computed(scaled_urdf(trials, interpretation)[1], "with friction and rotors, but without noise,")]
    if not trials.robot.gravity.any() or interpretation.gravity is not None:
        return []
    if not loaded and (held := _weight_held(trials)):
        return held
    fitted, stated = _gravity_torques(trials, interpretation)
    lengths = float(np.linalg.norm(fitted)), float(np.linalg.norm(stated))
    torque = float(np.linalg.norm(trials.case.samples.tau.std(axis=0)) * np.sqrt(len(fitted)))
    if lengths[1] == 0:
        return []
    scale = _scale_of_inertia(trials, interpretation)
    weight = min(scale, 1.0) * lengths[1]  # geared rotors add inertia without weight, so a scale above 1 is no evidence
    if scale > 0 and lengths[0] < _WEIGHTLESS * weight and weight > 0.2 * torque:
        return [
            Judgement(
                Id.EFFORT_WITHOUT_GRAVITY, "the efforts contain inertial torques, but do not hold the robot against gravity"
            )
        ]
    if lengths[0] < 0.2 * torque:  # no gravity in the efforts
        return []
    alike = float(np.sum(fitted * stated)) / (lengths[0] * lengths[1])
    ratio = float(np.sum(fitted * stated)) / lengths[1] ** 2
    odd = alike < -_ALIKE or (alike > _ALIKE and not 1 / CONTRADICTION < ratio < CONTRADICTION)
    if odd and _held_as_stated(trials):
        return [] if alike < 0 else doubts(trials, interpretation)
    if alike < -_ALIKE and scale < 0:
        words = "the efforts of all joints have the wrong sign: gravity and inertia are the opposite of the URDF's"
        return [Judgement(Id.EFFORT_SIGN, words, EffortSign().remedy(trials.robot.joints), certainty=abs(alike))]
    if alike < -_ALIKE:
        gravity = -trials.robot.gravity + 0.0
        remedy, vector = mounted(gravity), ", ".join(f"{value:.4g}" for value in gravity)
        if loaded:
            remedy = remedy.after(
                "does the robot carry the payload (drive.payload) that was taken off the efforts? Otherwise: "
            )
        words = f"the efforts work against a gravity vector of [{vector}] in the base frame"
        words += ", if the URDF's centres of mass are about right"
        return [Judgement(Id.GRAVITY_DIRECTION, words, remedy, size=180.0, certainty=abs(alike))]
    if odd:
        words = (
            f"the efforts are {ratio:.4g} times the gravity torque of the URDF's masses: the unit or torque constant is wrong"
        )
        check = "check `log.units.effort` (A, mA, mN·m; motor side: `log.side.effort`), `drive.gain` and `drive.reduction`"
        gains = {
            joint: float(gain) / ratio for joint, gain in zip(trials.robot.joints, interpretation.effort_factor, strict=True)
        }
        remedy = Remedy(f"{check}; if the URDF's masses are right, {{settings}}", {"drive.gain": {"multiply": gains}})
        return [Judgement(Id.EFFORT_SCALE, words, remedy, size=ratio, certainty=alike, severity="warning")]
    return doubts(trials, interpretation)


def _weight_held(trials: Trials) -> list[Judgement]:
    """Slides whose effort differs from their weight by more than usual errors of the URDF, which an offset would absorb."""
    samples, prior, found = trials.case.samples, inertial_prior(trials.robot), []
    still = np.zeros_like(samples.q)
    for j in np.flatnonzero(trials.case.moves & trials.robot.prismatic).tolist():
        row, effort = regressor(trials.robot, samples.q, still, still)[:, j], samples.tau[:, j]
        stated = row @ lumped_inertials(trials.robot).ravel()
        weight = float(stated.mean())
        if abs(weight) <= max(float(effort.std()), 10 * float(stated.std()), 1e-9):
            continue
        error = float(np.linalg.norm(row.mean(axis=0) @ prior.deviations)) / abs(weight)
        turned, glides = not one_way(samples.v[:, j]), samples.glides[:, j]
        held = float(effort.mean())
        if turned:  # what neither friction nor inertia explains, while the joint moves
            held = float(scaled_lstsq(friction_columns(samples, j)[glides], effort[glides])[OFFSET])
        times = held / weight
        lowest, highest = np.exp(np.array([-1, 1]) * USUAL_ERROR * error) if turned else (1 / _WEIGHTS, _WEIGHTS)
        if not lowest < times < highest:
            found.append(_odd_weight(trials.robot.joints[j], times))
    return found


def _held_as_stated(trials: Trials) -> bool:
    """Whether the efforts of the joints that carry most weight, and little else, hold that of the URDF."""
    samples = trials.case.samples
    stated = gravity_torques(trials.robot, samples.q)
    weight = np.sum(stated**2, axis=0)
    carries = (_WEIGHTS**2 * weight > np.sum(samples.tau**2, axis=0)) & (weight > _HEAVY * weight.max())
    ratio = np.sum(samples.tau * stated, axis=0)[carries] / weight[carries]
    return bool(carries.any() and ((ratio > 1 / _WEIGHTS) & (ratio < _WEIGHTS)).all())


def _odd_weight(joint: str, times: float) -> Judgement:
    """A slide whose effort is a multiple of its weight; where the effort pulls as hard the other way, its axis is reversed
    or the robot hangs, which one slide does not distinguish.
    """
    words = f"this joint's effort holds {times:.3g} times the weight that it carries according to the URDF: "
    if 1 / _WEIGHTS < -times < _WEIGHTS:
        words += "its axis points the other way, or gravity does"
        remedy = "reverse the axis in the URDF (or both columns); if the robot is mounted upside down, set robot.gravity"
        return Judgement(
            Id.PHYSICS_UNDECIDED,
            words,
            Remedy(remedy),
            joint=joint,
            certainty=0.5,
            candidates=(Id.AXIS_SIGN, Id.GRAVITY_DIRECTION),
            severity="warning",
        )
    words += "scale, counterweight or masses differ"
    remedy = "check drive.gain and the URDF's masses; a counterweight is identified as an offset, masses stay the URDF's"
    return Judgement(
        Id.EFFORT_SCALE,
        words,
        Remedy(remedy),
        joint=joint,
        size=times,
        certainty=0.5,
        candidates=(Id.EFFORT_SCALE,),
        severity="warning",
    )


def doubts(trials: Trials, interpretation: Interpretation) -> list[Judgement]:
    """Finds interpretations that only the URDF's inertias distinguish from the log as described.

    Returns:
        At most one finding, a warning.
    """
    if trials.case.turns < TESTING_REVERSALS:  # with extrapolated parts, even a URDF wrong by a fifth would seem right
        return []
    before, (size, logged) = trials.score(interpretation), scaled_urdf(trials, interpretation)
    if logged**2 - before.unexplained**2 < MATERIAL**2:  # the URDF already explains as much as free inertias
        return []
    found, stated = [], np.ptp(_gravity_torques(trials, interpretation)[1], axis=0)
    # if gravity depends on one joint alone, its direction is not separable from that joint's zero
    turning = bool(np.sum(stated > EXACT * stated.max()) > 1)
    for item in candidates(reading_of(trials, interpretation)):
        if not (item.small and (turning or item.id in (Id.TIME_SCALE, Id.EFFORT_SCALE))):
            continue
        score, left = scaled_urdf(trials, item.interpretation)
        judged = trials.score(item.interpretation)
        trusted = left < min(_NEARLY * judged.unexplained, _LEFT) and logged**2 - left**2 > MATERIAL**2
        agrees = before.score - judged.score >= 0
        if size - score > DECISIVE and agrees and trusted:
            found.append((size - score, item))
    if not found:
        return []
    found.sort(key=lambda pair: -pair[0])
    best = found[0][0]
    rivals = {(item.id, item.joints): item for gain, item in reversed(found) if gain > (1 - RIVAL) * best}
    chosen = found[0][1]
    rivals.pop((chosen.id, chosen.joints), None)
    chosen = refined(chosen, lambda some: [scaled_urdf(trials, item)[0] for item in some])
    left = scaled_urdf(trials, chosen.interpretation)[1]
    # another mass or first moment of one body is more likely than a fault unless that explains clearly more
    if left > CLEAR * left_with_one_body_changed(trials, interpretation):
        return []
    return [against(trials.robot, chosen, tuple(rivals.values()), logged, left, best)]


def _computed(left: float, how: str) -> Judgement:
    words = (
        f"the URDF's inertias {how} leave {100 * left:.3g} % of the efforts unexplained: they were computed "
        "(a target, a simulation), not measured"
    )
    return Judgement(Id.EFFORT_COMMANDED, words)


def _scale_of_inertia(trials: Trials, interpretation: Interpretation) -> float:
    """Ratio of the free fit's inertia torques to the URDF's; 0 if uncorrelated, negative if opposite."""
    samples = trials.case.samples
    q, a = samples.q, samples.a
    zero = np.zeros_like(q)
    Y = regressor(trials.robot, q, zero, a) - regressor(trials.robot, q, zero, zero)
    fitted, stated = Y @ trials.inertial_parameters(interpretation), Y @ lumped_inertials(trials.robot).ravel()
    size = float(np.linalg.norm(fitted) * np.linalg.norm(stated))
    product = float(np.sum(fitted * stated))
    return product / float(np.sum(stated**2)) if abs(product) > _ALIKE * size > 0 else 0.0


def _gravity_torques(trials: Trials, interpretation: Interpretation) -> tuple[Array, Array]:
    """Gravity torques of the free fit and of the URDF at the same poses, without their means, shape (N, n) each."""
    q = trials.case.samples.q
    fitted = regressor(trials.robot, q, np.zeros_like(q), np.zeros_like(q)) @ trials.inertial_parameters(interpretation)
    stated = gravity_torques(trials.robot, q)
    moves = trials.case.moves
    return (fitted - fitted.mean(axis=0))[:, moves], (stated - stated.mean(axis=0))[:, moves]
