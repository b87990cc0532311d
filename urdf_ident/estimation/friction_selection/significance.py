"""Selected friction laws in the errors of the final fit: those that chance explains, and those that only supplement others."""

from __future__ import annotations

from collections.abc import Sequence
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
    """Omits the laws that chance explains: their parameters are not significant in the errors of the fit.

    Held-out errors of a few parts of one short motion do not reveal all chance: noise with memory and errors of the rigid
    model extend over several parts, a law that describes them gains in each, and the search takes the best of many laws. In
    a faster motion such a law is wrong by a multiple of what it gained. The standard errors of the fit allow for such
    residuals. The laws of a joint are therefore judged together by Hotelling's T² (1931) in its covariance: as many of them
    are omitted, those of least significance first, as are expected to predict worse with their parameters than without
    (Akaike 1974): k laws whose squared distance from zero is at most ``2 k``. A stricter criterion omits laws that the
    robot has from single logs, and viscous friction that replaces them is wrong by more in faster motion. Laws that
    resemble each other may each be insignificant beside the other, but are only omitted if both can be.

    Laws that every drive has, biases, springs, laws with several parameters, and load-dependent ones, whose errors contain
    those of the rigid torque that they multiply, are not judged.

    Args:
        simple: The model before the search: a law that every drive has returns where no remaining law is of its kind.

    Returns:
        The selection, the same object if all laws remain.
    """
    from scipy.special import chdtrc, fdtrc

    def probability(rows: Sequence[int]) -> float:
        """That parameters that are zero are estimated so far from it; 1 if one of them is not identifiable.

        With more parameters than degrees of freedom the denominator keeps one, the heaviest tail: the errors come from a model
        of the noise, so that T² is defined, and a parameter of 90 standard errors is no chance whatever it is tested with.
        """
        if not fit.seen[rows].all():
            return 1.0
        square = float(fit.params[rows] @ np.linalg.solve(fit.covariance[np.ix_(rows, rows)], fit.params[rows]))
        k, dof = len(rows), float(fit.error_dof[rows].min())
        left = max(dof - k + 1, 1.0)
        return float(fdtrc(k, left, square * left / (k * dof)))

    model, free = selected.model, chosen_by_data(selected.model) if selected.trials else ()
    row_of = {int(index): row for row, index in enumerate(fit.base.independent)}
    rows = {
        applied: row_of[span.start]
        for applied, span in model.placed_terms
        if applied in free and _is_supplement(applied.term) and not applied.term.loaded and span.start in row_of
    }
    chance = dict[AppliedTerm, float]()
    for laws in grouped((applied.axis, applied) for applied in rows).values():
        explained = list[AppliedTerm]()
        while len(explained) < len(laws):
            left = [law for law in laws if law not in explained]
            chances = {law: probability([rows[other] for other in (law, *explained)]) for law in left}
            law, k = max(left, key=chances.__getitem__), len(explained) + 1
            if chances[law] < chdtrc(k, 2.0 * k):
                break
            explained.append(law)
            chance[law] = chances[law]
    if not chance:
        return selected
    kept = [applied for applied in model.terms if applied not in chance]
    kinds = {(law.axis, law.side, kind) for law in kept for kind in _kinds(law.term)}
    back = [
        law
        for law in simple.terms
        if law.axis in {omitted.axis for omitted in chance}
        and law.term.name in OF_EVERY_DRIVE
        and not {(law.axis, law.side, kind) for kind in _kinds(law.term)} & kinds
    ]
    words = {
        (model.robot.joints[law.axis], law.side, law.term.name): f"chance may explain it (probability {p:.2g})"
        for law, p in chance.items()
    }
    trials = tuple(
        replace(trial, chosen=trial.chosen and key not in words, reason=words.get(key, trial.reason))
        for trial in selected.trials
        for key in [(trial.joint, trial.side, trial.term)]
    )
    narrow = model.with_terms(sorted([*kept, *back], key=lambda applied: applied.axis))
    return replace(selected, model=narrow.with_reference(model.reference_theta), trials=trials)


def supplements(selected: Selected) -> tuple[int, ...]:
    """Returns the parameters of searched laws that supplement viscous and Coulomb friction; none without a search.

    A law that replaces one of the two is not among them, and neither are biases, springs and laws with several parameters.

    Returns:
        Indices into theta.
    """
    model, indices = selected.model, list[int]()
    free = chosen_by_data(model) if selected.trials else ()
    usual = {(law.axis, law.side, kind) for law in free if law.term.name in OF_EVERY_DRIVE for kind in _kinds(law.term)}
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
