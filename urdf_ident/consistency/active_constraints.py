"""Notes on active constraints: which limit the result, how much they increase the residual, and what to do about each."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import numpy as np

from ..errors import SolverError
from ..linalg import Array
from ..model.prior import metric_root
from ..statistics.fit import Fit
from .feasible import at_mass_limit, at_zero
from .lmi import LmiProblem, LmiSolution

#: Relative increase of the residual over the unconstrained fit's that is reported.
COSTLY = 0.05
#: Relative standard deviation of a body whose prior is made uninformative.
_LOOSE = 3.0
#: Smallest missing mass that is reported, as a fraction of the body's mass.
_MISSING = 0.3
#: Nominal standard errors below zero that noise cannot explain (nominal ones are about four times too small).
_CERTAIN = 12.0


def limit_notes(problem: LmiProblem, solution: LmiSolution, factor: Array, fit: Fit) -> list[str]:
    """Describes the active constraints of a solution.

    Args:
        factor: The data ``[R | rho]``, shape (k, p + 1), whitened.
        fit: The unconstrained fit.

    Returns:
        One sentence per kind of limit, and one on the increase of the residual; empty if nothing is active.
    """
    base, prior, options, notes = fit.base, problem.prior, problem.options, list[str]()
    # zero, where the data alone give a significantly negative value: usually a model error
    held: dict[bool, list[str]] = {False: [], True: []}
    for row, k in enumerate(base.independent):
        parameter = problem.parameters[k]
        alone = np.abs(base.K[row]).max(initial=0.0) < 1e-9
        certain = parameter.nonnegative and fit.params[row] < -_CERTAIN * fit.bse[row]
        if alone and certain and at_zero(parameter) in solution.active:
            word = f"{parameter.name} = {fit.params[row]:.3g} ± {fit.bse[row]:.2g} {parameter.unit}"
            held[parameter.symbol == "Ia"].append(word)
    behind_gears = (
        ": torque measured behind the gears does not contain the rotors (in that case set model.rotor_inertia: false)"
    )
    for rotors, words in held.items():
        if words:
            why = behind_gears if rotors else ""
            notes.append(f"constrained to 0, although the data alone give {', '.join(words)}{why}")
    bodies = list(dict.fromkeys(parameter.owner for parameter in problem.parameters[: 10 * len(prior.relative_std)]))
    masses = [body for body in bodies if any(word.startswith(at_mass_limit(body)) for word in solution.active)]
    centres = [body for body in bodies if any(word.startswith(f"{body}: centre of mass") for word in solution.active)]
    dissipating = [word.split(": ")[0] for word in solution.active if ": friction at " in word or ": slope of friction" in word]
    friction = list(dict.fromkeys(dissipating))
    if masses:
        factor_of = f"{options.mass_factor:g}"
        notes.append(
            f"mass of {', '.join(masses)} is at its limit, {factor_of} times (or 1/{factor_of} of) the URDF's: correct it, "
            "or raise consistency.mass_factor"
        )
    if centres:
        notes.append(
            f"centre of mass of {', '.join(centres)} is limited by the URDF's geometry: add what is mounted there to the URDF, "
            "or set consistency.com_in_box: false"
        )
    if friction:
        notes.append(
            f"friction of {', '.join(friction)} is constrained to be dissipative; the data alone give negative friction at "
            "some speed: list fewer laws there, or record faster logs"
        )
    if limited := [body for body in bodies if body in {*masses, *centres}]:
        # mass missing at the end of a chain affects all bodies before it: solved again without prior and limits of the last
        i, body = bodies.index(limited[-1]), limited[-1]
        root, relative, mass = prior.root.copy(), prior.relative_std.copy(), prior.mass_std.copy()
        relative[i], mass[i] = _LOOSE, np.inf
        root[10 * i : 10 * i + 10, 10 * i : 10 * i + 10] = metric_root(prior.spread[i], _LOOSE)
        lower, upper = (
            None if box is None else np.where(np.arange(len(box))[:, None] == i, np.nan, box)
            for box in (options.com_lower, options.com_upper)
        )
        freed = replace(prior, root=root, relative_std=relative, mass_std=mass)
        released = replace(options, mass_factor=None, com_lower=lower, com_upper=upper)
        with suppress(SolverError):
            loose = LmiProblem(freed, problem.parameters, released).solve(factor[:, :-1], factor[:, -1], solution.weight)
            stated = prior.theta0[10 * i]
            more = loose.theta[10 * i] - stated
            if loose.data_term <= solution.data_term / (1.0 + COSTLY) and more > _MISSING * stated:
                missing = f"about {more:.2g} kg on {body} (a tool?); add it to the URDF"
                notes.append(f"the data show mass that the URDF lacks: {missing}")
    least = float(np.sum((factor[:, base.independent] @ fit.params - factor[:, -1]) ** 2))
    costs = float(np.sqrt(solution.data_term / least)) - 1.0 if least > 0 else 0.0
    if costs > COSTLY:
        culprit = (
            "the limits above" if masses or centres or friction else "the prior (consistency.weight, relative_std, mass_std)"
        )
        notes.append(f"residual of the exported model is {100 * costs:.0f} % above that of the unconstrained fit: {culprit}")
    return notes
