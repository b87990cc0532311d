"""What only the URDF's own bodies show (:mod:`.urdf_bodies`): faults that free bodies absorb.

A joint zero that is 0.1 rad off, a clock that is a quarter off, or a missing part of gravity can be explained almost as well by
other centres of mass or inertias. Interpretations are compared by the likelihood of the efforts under the URDF's bodies, with
errors of a size that the logs show; where that is larger than usual, the URDF is no evidence.
"""

from __future__ import annotations

import numpy as np

from ..judgements.catalogue import Id
from ..judgements.judgement import Judgement, Remedy
from ..linalg import rms, scaled_lstsq
from ..model.prior import CONTRADICTION, USUAL_ERROR, inertial_prior
from ..model.rigid_bodies import regressor
from ..samples import TESTING_REVERSALS, one_way
from .evidence import DOUBTFUL, EXACT, MATERIAL, RIVAL, SURE
from .friction import OFFSET, friction_columns
from .hypotheses import refined
from .interpretation import Interpretation
from .kinds.catalogue import candidates
from .kinds.clock_and_gravity import EffortWithoutGravity
from .kinds.kind import Hypothesis
from .kinds.senses_and_orders import EffortSign
from .score_test import LEVEL
from .trials import Trials
from .urdf_bodies import UrdfBodies
from .words import against, share

#: Computed efforts: largest ratio of the residual of the URDF's bodies, without friction, to that of free ones with friction.
_NO_FRICTION = 1.1
#: Largest residual of the URDF's bodies over the efforts that they explain.
_LEFT = 0.15
#: Least ratio of the squared residual without bodies to that with free ones of torques that show bodies, and the largest error
#: of the torques of the URDF's bodies, relative to those of free ones, that is none.
_BODIES, _EXACT_BODIES = 2.0, 0.02
#: Largest plausible factor between the effort of a slide that moves one way and its weight, of which friction may be a part.
_WEIGHTS = 2.0
#: Kinds of which large sizes are asked as well: free bodies absorb gravity that is missing or has another direction.
_OF_GRAVITY = {Id.EFFORT_WITHOUT_GRAVITY, Id.GRAVITY_DIRECTION}


def against_the_urdf(
    trials: Trials, interpretation: Interpretation, noise: float, *, loaded: bool, explained: bool
) -> list[Judgement]:
    """Compares interpretations by the URDF's bodies.

    Args:
        noise: White noise of the noisiest effort, over its standard deviation.
        loaded: Whether a known payload or wrench was subtracted from their torques.
        explained: Whether faults were found and corrected to first order, of which the rest may look like another.

    Returns:
        At most one finding of all joints, or one of each slide.
    """
    urdf = UrdfBodies(trials, interpretation)
    if found := _computed(urdf, interpretation, noise):
        return found
    if not trials.robot.gravity.any() or interpretation.gravity is not None:
        return []
    if not loaded and (found := _weight_held(trials)):
        return found
    if found := [] if explained else _better(urdf, interpretation):
        return found
    logged = urdf.fit(interpretation)
    factor, error = logged.factor, SURE * logged.error
    joints, gains = trials.robot.joints, interpretation.effort_factor
    if factor + error < 0:
        words = "the efforts of all joints have the wrong sign: gravity and inertia are the opposite of the URDF's"
        return [Judgement(Id.EFFORT_SIGN, words, EffortSign().remedy(joints))]
    if factor + error < 1 / CONTRADICTION or factor - error > CONTRADICTION:
        words = f"the efforts are {factor:.4g} times those of the URDF's masses: the unit or torque constant is wrong"
        check = "check `log.units.effort` (A, mA, mN·m; motor side: `log.side.effort`), `drive.gain` and `drive.reduction`"
        remedy = Remedy(check)
        if factor > error:  # efforts that may be zero have no gain
            own = {joint: float(gain) / factor for joint, gain in zip(joints, gains, strict=True)}
            remedy = Remedy(f"{check}; if the URDF's masses are right, {{settings}}", {"drive.gain": {"multiply": own}})
        return [Judgement(Id.EFFORT_SCALE, words, remedy, size=factor, severity="warning")]
    return []


def _computed(urdf: UrdfBodies, interpretation: Interpretation, noise: float) -> list[Judgement]:
    """Efforts that the URDF's bodies explain alone, or without noise and with friction and rotors, as no measured ones do."""
    left, how = urdf.left_alone(interpretation), "without any friction"
    if left >= 2 * EXACT and left >= min(_NO_FRICTION * urdf.trials.score(interpretation).unexplained, _LEFT):
        without, stated, free = (
            np.mean(some**2)
            for some in (urdf.left(interpretation, 0.0), urdf.left(interpretation, 1.0), urdf.trials.in_sample(interpretation))
        )
        if noise > EXACT or without < _BODIES * free or stated - free > _EXACT_BODIES**2 * (without - free):
            return []
        left, how = float(np.sqrt(stated)), "with friction and rotors, but without noise,"
    words = f"the URDF's inertias {how} leave {share(left)} of the efforts unexplained: they were computed "
    return [Judgement(Id.EFFORT_COMMANDED, f"{words}(a target, a simulation), not measured")]


def _better(urdf: UrdfBodies, interpretation: Interpretation) -> list[Judgement]:
    """Another interpretation that the URDF's bodies support, and free ones do not contradict."""
    from scipy.special import chdtri

    trials = urdf.trials
    if trials.turns < TESTING_REVERSALS:  # with extrapolated parts, even a URDF wrong by a fifth would seem right
        return []

    before, stated = trials.score(interpretation), rms(urdf.left(interpretation))
    if stated**2 - rms(trials.in_sample(interpretation)) ** 2 < MATERIAL**2:  # they already explain as much as free bodies
        return []
    logged = urdf.costs([interpretation])[0]
    asked = [item for item in candidates(trials, interpretation, poor=False) if item.small or item.id in _OF_GRAVITY]
    asked += EffortWithoutGravity().parts(trials.robot, interpretation)
    # the sizes of one cause are one number that is estimated
    causes, found = {(item.id, item.joints) for item in asked}, list[tuple[float, Hypothesis]]()
    enough = float(chdtri(1, LEVEL / len(causes))) / 2
    for item, score in zip(asked, trials.scores([item.interpretation for item in asked]), strict=True):
        if score.score < before.score + DOUBTFUL:
            fit = urdf.fit(item.interpretation)
            gain = logged - fit.cost / 2
            found += [(gain, item)] if gain > enough and fit.spread < USUAL_ERROR else []
    if not found:
        return []
    gain, best = max(found, key=lambda pair: pair[0])
    others = [item for own, item in found if own > (1 - RIVAL) * gain and (item.id, item.joints) != (best.id, best.joints)]
    rivals = tuple({(item.id, item.joints): item for item in others}.values())
    best = refined(best, UrdfBodies(trials, best.interpretation).costs)
    left = rms(urdf.left(best.interpretation))
    material = left < _LEFT and stated**2 - left**2 > MATERIAL**2  # a URDF that still explains little is wrong itself
    return [against(trials.robot, best, rivals, before, (stated, left))] if material else []


def _weight_held(trials: Trials) -> list[Judgement]:
    """Slides whose effort differs from their weight by more than usual errors of the URDF, which an offset would absorb.

    Where the effort pulls as hard the other way, the axis is reversed or the robot hangs, which one slide does not distinguish.
    """
    samples, prior, found = trials.samples, inertial_prior(trials.robot), []
    still = np.zeros_like(samples.q)
    for j in np.flatnonzero(trials.moves & trials.robot.prismatic).tolist():
        row, effort = regressor(trials.robot, samples.q, still, still)[:, j], samples.tau[:, j]
        stated = row @ trials.robot.inertials.ravel()
        weight, held = float(stated.mean()), float(effort.mean())
        if abs(weight) <= max(float(effort.std()), 10 * float(stated.std())):
            continue
        lowest, highest = 1 / _WEIGHTS, _WEIGHTS
        if not one_way(samples.v[:, j]):  # what neither friction nor inertia explains, while the joint moves
            glides, error = samples.glides[:, j], float(np.linalg.norm(row.mean(axis=0) @ prior.deviations)) / abs(weight)
            held = float(scaled_lstsq(friction_columns(samples, j)[glides], effort[glides])[OFFSET])
            lowest, highest = np.exp(np.array([-1, 1]) * USUAL_ERROR * error)
        times = held / weight
        if lowest < times < highest:
            continue
        turned = 1 / _WEIGHTS < -times < _WEIGHTS
        words, action = "scale, counterweight or masses differ", "check drive.gain, the URDF's masses and any counterweight"
        if turned:
            words = "its axis points the other way, or gravity does"
            action = "reverse the axis in the URDF (or both columns); if the robot is mounted upside down, set robot.gravity"
        causes = (Id.AXIS_SIGN, Id.GRAVITY_DIRECTION) if turned else (Id.EFFORT_SCALE,)
        found.append(
            Judgement(
                Id.PHYSICS_UNDECIDED if turned else Id.EFFORT_SCALE,
                f"this joint's effort holds {times:.3g} times the weight that it carries according to the URDF: {words}",
                Remedy(action),
                joint=trials.robot.joints[j],
                size=None if turned else times,
                certainty=0.5,
                candidates=causes,
                severity="warning",
            )
        )
    return found
