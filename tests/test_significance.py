"""Laws that the search selected and that chance explains, by errors given here."""

from dataclasses import replace

import numpy as np
import pytest
from conftest import arm_urdf
from scipy.stats import norm as normal
from scipy.stats import t as student

from urdf_ident import DynamicModel, Robot
from urdf_ident.estimation.friction_selection.selection import Selected, Trial
from urdf_ident.estimation.friction_selection.significance import without_chance
from urdf_ident.friction import friction_term
from urdf_ident.model.terms import AppliedTerm
from urdf_ident.statistics.fit import Fit

ROBOT = Robot.from_urdf(arm_urdf("zy"))
SIMPLE = DynamicModel(ROBOT, friction=["viscous", "coulomb", "offset"])
TRIED = ("viscous", "coulomb", "offset", "stribeck", "sublinear", "cubic", "load_coulomb", "presliding")
#: The least |t| of one law: sqrt(2) with many degrees of freedom, as rare a value with 20.
NEEDED = student.isf(normal.sf(np.sqrt(2)), 20)


def selected(*laws: tuple[str, ...]) -> Selected:
    rotors = [item for item in SIMPLE.terms if item.term.name == "rotor_inertia"]
    terms = [*rotors, *(AppliedTerm(friction_term(name), axis) for axis, names in enumerate(laws) for name in names)]
    model = SIMPLE.with_terms(sorted(terms, key=lambda item: item.axis))
    trials = tuple(
        Trial(joint, name, "joint", {}, name in names, 0.1, 0.05, "missed when it is left out")
        for joint, names in zip(ROBOT.joints, laws, strict=True)
        for name in TRIED
    )
    return Selected(model, trials)


def fit(found: Selected, t: dict[tuple[int, str], float]) -> Fit:
    """All other parameters are a thousand standard errors from zero."""
    base = found.model.base()
    params = np.full(len(base), 1000.0)
    for item, own in found.model.placed_terms:
        if (item.axis, item.term.name) in t:
            params[list(base.independent).index(own.start)] = t[item.axis, item.term.name]
    one = np.ones(len(base))
    return Fit(base, params, np.eye(len(base)), one > 0, {}, 500, 400.0, 1.0, "wls", "", {}, 20.0 * one)


def laws(found: Selected) -> list[list[str]]:
    return [sorted(i.term.name for i in found.model.terms if i.axis == k and i.term.name != "rotor_inertia") for k in range(2)]


def judged(found: Selected, t: dict[tuple[int, str], float]) -> Selected:
    return without_chance(found, fit(found, t), SIMPLE)


def test_laws_that_chance_explains_are_omitted() -> None:
    found = selected(("viscous", "coulomb", "stribeck", "cubic"), ("viscous", "coulomb", "presliding"))
    fewer = judged(found, {(0, "stribeck"): -0.7, (0, "cubic"): 1.2, (1, "presliding"): 0.99 * NEEDED})
    assert laws(fewer) == [["coulomb", "viscous"]] * 2
    omitted = [trial for trial in fewer.trials if "chance may explain it" in trial.reason]
    assert [trial.term for trial in omitted] == ["stribeck", "cubic", "presliding"]
    assert not any(trial.chosen for trial in omitted)
    assert f"probability {2 * student.sf(0.99 * NEEDED, 20):.2g}" in omitted[-1].reason


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_significant_laws_stay_and_nothing_is_estimated_again(sign: float) -> None:
    found = selected(("viscous", "coulomb", "stribeck"), ("coulomb", "offset", "load_coulomb"))
    t = {(0, "stribeck"): sign * 1.01 * NEEDED, (1, "coulomb"): 0.1, (1, "offset"): 0.1, (1, "load_coulomb"): 0.1}
    assert judged(found, t) is found
    unsearched = replace(found, trials=())
    assert judged(unsearched, {(0, "stribeck"): 0.0}) is unsearched


def test_a_law_that_the_data_do_not_identify_is_omitted() -> None:
    found = selected(("viscous", "coulomb", "stribeck"), ("viscous", "coulomb"))
    blind = fit(found, {(0, "stribeck"): 1e6})
    row = list(blind.base.independent).index(next(o.start for i, o in found.model.placed_terms if i.term.name == "stribeck"))
    seen = np.array(blind.seen)
    seen[row] = False
    assert laws(without_chance(found, replace(blind, seen=seen), SIMPLE))[0] == ["coulomb", "viscous"]
