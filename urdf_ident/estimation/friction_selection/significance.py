"""Selected friction laws that chance explains: their parameters are not significant in the errors of the fit.

Held-out errors of a few parts of one short motion do not reveal all chance: noise with memory and errors of the rigid model
extend over several parts, a law that describes them gains in each, and the search takes the best of many laws. In a faster
motion such a law is wrong by a multiple of what it gained. The standard errors of the fit allow for such residuals. The laws of
a joint are therefore judged together by Hotelling's T² (1931) in its covariance: as many of them are omitted, those of least
significance first, as are expected to predict worse with their parameters than without (Akaike 1974): k laws whose squared
distance from zero is at most ``2 k``. A stricter criterion omits laws that the robot has from single logs, and viscous friction
that replaces them is wrong by more in faster motion. Laws that resemble each other may each be insignificant beside the other,
but are only omitted if both can be.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from ...friction import Law, Term
from ...grouping import grouped
from ...model.dynamic_model import DynamicModel
from ...model.terms import AppliedTerm
from ...statistics.fit import Fit
from .candidates import OF_EVERY_DRIVE, chosen_by_data
from .selection import Selected

#: Kinds of friction that every drive has.
_EVERY_KIND = {"dry", "viscous"}


def without_chance(selected: Selected, fit: Fit, simple: DynamicModel) -> Selected:
    """Omits the laws that chance explains.

    Laws that every drive has, biases, springs, laws with several parameters, and load-dependent ones, whose errors contain
    those of the rigid torque that they multiply, are not judged.

    Args:
        simple: The model before the search: a law that every drive has returns where no remaining law is of its kind.

    Returns:
        The selection, the same object if all laws remain.
    """
    laws = [
        (applied, row)
        for applied, row in _rows(selected, fit).items()
        if _is_supplement(applied.term) and not applied.term.loaded
    ]
    by_joint = grouped((applied.axis, (applied, row)) for applied, row in laws).values()
    omitted = {
        applied: chance for laws_of_joint in by_joint for applied, chance in _explained(fit, dict(laws_of_joint)).items()
    }
    if not omitted:
        return selected
    kept = [applied for applied in selected.model.terms if applied not in omitted]
    changed = {applied.axis for applied in omitted}
    back = [applied for applied in simple.terms if applied.axis in changed and _is_lacking(applied, kept)]
    keys = {(selected.model.robot.joints[applied.axis], applied.side, applied.term.name): p for applied, p in omitted.items()}
    trials = []
    for trial in selected.trials:
        chance = keys.get((trial.joint, trial.side, trial.term))
        reason = trial.reason if chance is None else f"chance may explain it (probability {chance:.2g})"
        trials.append(replace(trial, chosen=trial.chosen and chance is None, reason=reason))
    model = selected.model.with_terms(sorted([*kept, *back], key=lambda applied: applied.axis))
    return replace(selected, model=model.with_reference(selected.model.reference_theta), trials=tuple(trials))


def supplements(selected: Selected) -> tuple[int, ...]:
    """Returns the parameters of searched laws that supplement viscous and Coulomb friction; none without a search.

    A law that replaces one of the two is not among them, and neither are biases, springs and laws with several parameters.

    Returns:
        Indices into theta.
    """
    model, indices = selected.model, list[int]()
    free = chosen_by_data(model) if selected.trials else ()
    usual = {
        (applied.axis, applied.side, kind)
        for applied in free
        if applied.term.name in OF_EVERY_DRIVE
        for kind in _kinds(applied.term)
    }
    for applied, span in model.placed_terms:
        needed = {(applied.axis, applied.side, kind) for kind in _kinds(applied.term) & _EVERY_KIND}
        if applied in free and _is_supplement(applied.term) and needed <= usual:
            indices += range(span.start, span.stop)
    return tuple(indices)


def _is_supplement(law: Term) -> bool:
    """Whether a term is a law of one parameter that not every drive has, and neither bias nor spring."""
    if not isinstance(law, Law) or law.name in OF_EVERY_DRIVE or len(law.symbols) > 1:
        return False
    return not (law.bias or law.conservative)


def _kinds(law: Term) -> set[str]:
    """The kinds of friction that a law stands for: dry, viscous, load-dependent."""
    return set(law.changing.values()) if isinstance(law, Law) else set()


def _rows(selected: Selected, fit: Fit) -> Mapping[AppliedTerm, int]:
    """The searched laws of one parameter, and its row among the base parameters; none without a search."""
    free = chosen_by_data(selected.model) if selected.trials else ()
    row_of = {int(index): row for row, index in enumerate(fit.base.independent)}
    return {
        applied: row_of[span.start]
        for applied, span in selected.model.placed_terms
        if applied in free and len(applied.term.symbols) == 1 and span.start in row_of
    }


def _explained(fit: Fit, rows: Mapping[AppliedTerm, int]) -> dict[AppliedTerm, float]:
    """The laws of one joint that chance explains, and its probability for each with those before."""
    from scipy.special import chdtrc

    left, explained = dict(rows), dict[AppliedTerm, float]()
    while left:
        chances = {applied: _chance(fit, [row, *(rows[other] for other in explained)]) for applied, row in left.items()}
        applied = max(chances, key=lambda applied: chances[applied])
        k = len(explained) + 1
        if chances[applied] < chdtrc(k, 2.0 * k):
            break
        explained[applied] = chances[applied]
        del left[applied]
    return explained


def _chance(fit: Fit, rows: Sequence[int]) -> float:
    """Probability that parameters that are zero are estimated so far from it; 1 if one of them is not identifiable.

    With more parameters than degrees of freedom the denominator keeps one, the heaviest tail: the errors come from a model of
    the noise, so that T² is defined, and a parameter of 90 standard errors is no chance whatever it is tested with.
    """
    from scipy.special import fdtrc

    judged = list(rows)
    if not fit.seen[judged].all():
        return 1.0
    square = float(fit.params[judged] @ np.linalg.solve(fit.covariance[np.ix_(judged, judged)], fit.params[judged]))
    k, dof = len(judged), float(fit.dofs[judged].min())
    left = max(dof - k + 1, 1.0)
    return float(fdtrc(k, left, square * left / (k * dof)))


def _is_lacking(applied: AppliedTerm, kept: Sequence[AppliedTerm]) -> bool:
    """Whether a law is one that every drive has, and no other of its axis is of its kind (dry or viscous friction)."""
    if applied.term.name not in OF_EVERY_DRIVE or not isinstance(applied.term, Law):
        return False
    own = [other.term for other in kept if (other.axis, other.side) == (applied.axis, applied.side)]
    return not _kinds(applied.term) & {kind for law in own for kind in _kinds(law)}
