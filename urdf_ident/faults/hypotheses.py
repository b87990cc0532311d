"""Searches for interpretations of a log (of its efforts, positions, clock and gravity) by held-out evidence.

An interpretation is evaluated by fitting one rigid robot to all rows at once (:mod:`evidence`). It replaces the log's own
description only if it explains decisively more, in most blocks of time, and if no other cause explains about as much; friction
that would have to drive a joint counts against an interpretation. Faults are found one at a time, so that combinations are
found as well.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

import numpy as np

from ..grouping import grouped
from ..judgements.catalogue import Id
from .evidence import DECISIVE, DOUBTFUL, RIVAL, SEVERE, SIGNIFICANT, SURE, gains, material, remaining_doubt, significance
from .interpretation import Interpretation
from .kinds.catalogue import KINDS, candidates
from .kinds.kind import Hypothesis
from .trials import Score, Trials
from .urdf_bodies import UrdfBodies
from .zeros import zeros_together

#: If a row's relative residual exceeds this, unusual interpretations are tried as well: a sixteenth of the effort's square is
#: then not explained by any usual one.
POOR = 0.25
#: Number of joints of one cause that are refined.
_OF_ONE_KIND = 3
_ROUNDS = 8
#: What zeros of several joints resemble, one at a time.
_LIKE_ZEROS = {Id.POSITION_ZERO, Id.POSITION_UNIT, Id.POSITION_SCALE, Id.GRAVITY_DIRECTION}
#: Number of steps by which a size is refined.
_REFINEMENTS = 8


@dataclass(frozen=True, eq=False)
class Step:
    """One fault found, or the doubt that ends the search.

    Attributes:
        found: The hypothesis that explains the log best.
        gain: Its gain over the previous interpretation.
        rivals: Other causes that explain about as much, best first.
        before, after: Scores of the previous and the new interpretation.
        decided: Whether the cause is determined; otherwise it and its rivals are a doubt.
    """

    found: Hypothesis
    gain: float
    rivals: tuple[Hypothesis, ...]
    before: Score
    after: Score
    decided: bool

    @property
    def certainty(self) -> float:
        """Relative likelihood of this cause among itself, its rivals and the log as described."""
        return 1.0 / (1.0 + len(self.rivals) + remaining_doubt(self.gain))


def search(trials: Trials, suspects: Collection[int]) -> list[Step]:
    """Finds the faults of a log, one at a time.

    Args:
        suspects: Joints that are tried alone and in pairs where the interpretation leaves little unexplained.

    Returns:
        The steps to the interpretation that explains the log; the last one may be a doubt.
    """
    interpretation, steps = Interpretation.as_logged(trials.robot.n), list[Step]()
    for _ in range(_ROUNDS):
        step = best_step(trials, interpretation, suspects)
        if step is None:
            break
        steps.append(step)
        if not step.decided and step.gain < SEVERE:  # beyond, something is wrong, whatever the cause
            break
        interpretation = step.found.interpretation
    if steps and {step.found.id for step in steps} <= _LIKE_ZEROS:
        only = all(step.found.id == Id.POSITION_ZERO for step in steps)
        together = zeros_together(trials, interpretation if only else Interpretation.as_logged(trials.robot.n))
        if together is not None:
            before, after = steps[0].before, trials.score(together.interpretation)
            if after.score < trials.score(interpretation).score - (DOUBTFUL if only else DECISIVE):
                return [Step(together, before.score - after.score, (), before, after, decided=True)]
    return steps


def is_poor(score: Score) -> bool:
    """Whether an interpretation leaves much unexplained, or with a friction or inertia that drives a joint."""
    return bool(score.left.max() > POOR or score.impossible.any())


def best_step(trials: Trials, interpretation: Interpretation, suspects: Collection[int]) -> Step | None:
    """Returns the best single change of an interpretation, and other causes that explain about as much.

    The best cause is accepted if it gains :data:`.DOUBTFUL`, less the handicap of its kind (a delay: :data:`.DECISIVE`), and if
    its gain between blocks of time is significant: at the level :data:`.SIGNIFICANT` if it explains a material part of some
    effort or is of the whole log, else :data:`.SURE`, and higher where few reversals tell one that acts by the pose. Rivals are
    the causes that gain less by at most the fraction :data:`.RIVAL` of that, or :data:`.DOUBTFUL`, unless the URDF's bodies
    settle which one it is. Without rivals a cause is decided if it gains :data:`.DECISIVE`.

    Args:
        suspects: As for :func:`search`.

    Returns:
        The step, or None if no other interpretation is significantly better.
    """
    before = trials.score(interpretation)
    tried = _tried(trials, interpretation, suspects, before)
    if not tried or before.score - _rank(tried[0]) < DOUBTFUL:
        return None
    best, *others = _best_of_each_cause(trials, tried, before)
    if not _is_accepted(trials, before, *best):
        return None
    least = best[1].score + max(RIVAL * (before.score - best[1].score), DOUBTFUL)
    rivals = [pair for pair in others if _rank(pair) < least]
    settled = _settled_by_urdf(UrdfBodies(trials, interpretation), [best, *rivals]) if rivals else None
    if settled is not None:
        best, rivals = settled, []
    found, after = best
    gain = before.score - after.score
    return Step(found, gain, tuple(item for item, _ in rivals), before, after, gain > DECISIVE and not rivals)


def _rank(pair: tuple[Hypothesis, Score]) -> float:
    """Score with the handicap of the kind; lower is better."""
    return pair[1].score + KINDS[pair[0].id].handicap


def _tried(
    trials: Trials, interpretation: Interpretation, suspects: Collection[int], before: Score
) -> list[tuple[Hypothesis, Score]]:
    """Candidates with their scores, best first; none if only a spring could explain more."""
    poor = is_poor(before)
    changes = candidates(trials, interpretation, poor)
    some = [item for item in changes if poor or len(item.joints) in (0, trials.robot.n) or {*item.joints} <= {*suspects}]
    found = [item for item in some if trials.testable(item.interpretation)]
    judged = trials.scores([item.interpretation for item in found])
    if before.score - min((item.score for item in judged), default=np.inf) < DOUBTFUL:
        return []

    def explains_its_row(item: Hypothesis, after: Score) -> bool:
        """Whether a scale explains its own effort better: others alone improve where the noise of one ceases to matter."""
        return item.id != Id.EFFORT_SCALE or bool((after.left < before.left)[list(item.joints)].all())

    tried = list[tuple[Hypothesis, Score]]()
    for pair in zip(found, judged, strict=True):
        if not explains_its_row(*pair) and before.score - pair[1].score >= DOUBTFUL:
            pair = _refined(trials, *pair)  # the candidates are up to five apart
        tried += [pair] if explains_its_row(*pair) else []
    springs = list(KINDS[Id.SPRING].hypotheses(trials, interpretation, poor))
    tried += zip(springs, trials.scores([item.interpretation for item in springs]), strict=True)
    return sorted(tried, key=_rank)


def _best_of_each_cause(trials: Trials, tried: list[tuple[Hypothesis, Score]], before: Score) -> list[tuple[Hypothesis, Score]]:
    """The best interpretation of each cause, of a few joints, that achieves a part of the best gain: refined, best first."""
    limit = before.score - RIVAL * (before.score - tried[0][1].score)
    of_joints = grouped(((pair[0].id, pair[0].joints), pair) for pair in tried if pair[1].score < limit)
    of_kinds = grouped((pairs[0][0].id, pairs[0]) for pairs in of_joints.values())
    return sorted((_refined(trials, *pair) for pairs in of_kinds.values() for pair in pairs[:_OF_ONE_KIND]), key=_rank)


def _is_accepted(trials: Trials, before: Score, found: Hypothesis, after: Score) -> bool:
    """Whether a gain is significant, and that of a delay decisive: the rule is in :func:`best_step`."""
    enough = SIGNIFICANT if material(before.left, after.left) or found.id.entry.of_all else SURE
    if _significance(before, after) < enough * (trials.scarcity if found.id.entry.with_pose else 1.0):
        return False
    return found.id != Id.EFFORT_DELAY or before.score - after.score >= DECISIVE


def _settled_by_urdf(urdf: UrdfBodies, group: list[tuple[Hypothesis, Score]]) -> tuple[Hypothesis, Score] | None:
    """The cause that the URDF's bodies explain better than its rivals; no spring: more parameters always explain more."""
    priors = np.array([np.log(urdf.left(item.interpretation, 1.0)).sum() for item, _ in group])
    first, second = np.argsort(priors)[:2]
    settled = priors[first] < priors[second] - DOUBTFUL and group[first][0].id != Id.SPRING
    return group[first] if settled else None


def _significance(before: Score, after: Score) -> float:
    """Gain over its standard error between blocks; infinite if fewer rows contradict physics."""
    if before.impossible.sum() > after.impossible.sum():
        return np.inf
    return significance(gains(before.squares, after.squares))


def _refined(trials: Trials, found: Hypothesis, judged: Score) -> tuple[Hypothesis, Score]:
    """Refines the size; a tilt from a side of the base must be significant for its two parameters."""
    new = refined(found, lambda some: [item.score for item in trials.scores(some)])
    after = trials.score(new.interpretation)
    if found.id == Id.GRAVITY_DIRECTION and not found.small:
        earned = judged.score - after.score > DOUBTFUL and _significance(judged, after) > SIGNIFICANT
        return (new, after) if earned else (found, judged)
    return new, after


def refined(found: Hypothesis, score: Callable[[list[Interpretation]], list[float]]) -> Hypothesis:
    """Refines the size of a fault by halving steps around the candidate.

    Args:
        score: Returns scores of interpretations; lower is better.

    Returns:
        The same fault with its best size; unchanged if it has no size.
    """
    kind = KINDS[found.id]
    step, (best,) = kind.step, score([found.interpretation])
    for _ in range(_REFINEMENTS if step else 0):
        tries = kind.nearby(found, step)
        results = score([item.interpretation for item in tries])
        k = int(np.argmin(results))
        if results[k] < best:
            found, best = tries[k], results[k]
        else:
            step /= 2
    return found
