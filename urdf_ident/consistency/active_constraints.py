"""Notes on active constraints: which limit the result, how much they increase the residual, and what to do about each."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..errors import SolverError
from ..linalg import Array
from ..model.prior import metric_root
from .lmi import LmiProblem, LmiSolution

#: Relative increase of the residual over the unconstrained fit's that is reported.
COSTLY = 0.05
#: Relative standard deviation of a body whose prior is made uninformative.
_LOOSE = 3.0
#: Smallest missing mass that is reported, as a fraction of the body's mass.
_MISSING = 0.3


def limit_notes(problem: LmiProblem, solution: LmiSolution, factor: tuple[Array, Array], least: float) -> list[str]:
    """Describes the active constraints of a solution.

    Args:
        factor: The data, shapes (k, p) and (k,), whitened.
        least: Squared residual of the unconstrained fit.

    Returns:
        One sentence per kind of limit, and one on the increase of the residual; empty if nothing is active.
    """
    bodies = list(dict.fromkeys(parameter.owner for parameter in problem.parameters[: 10 * len(problem.prior.relative_std)]))
    masses = [body for body in bodies if any(word.startswith(f"{body}: mass at ") for word in solution.active)]
    centres = [body for body in bodies if any(word.startswith(f"{body}: centre of mass") for word in solution.active)]
    dissipating = [word.split(": ")[0] for word in solution.active if ": friction at " in word or ": slope of friction" in word]
    friction = list(dict.fromkeys(dissipating))
    notes = []
    if masses:
        factor_of = f"{problem.options.mass_factor:g}"
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
        # mass missing at the end of a chain affects all bodies before it
        notes += _missing(problem, solution, factor, bodies.index(limited[-1]), limited[-1])
    costs = float(np.sqrt(solution.data_term / least)) - 1.0 if least > 0 else 0.0
    if costs > COSTLY:
        held = "the limits above" if masses or centres or friction else "the prior (consistency.weight, relative_std, mass_std)"
        notes.append(f"residual of the exported model is {100 * costs:.0f} % above that of the unconstrained fit: {held}")
    return notes


def _missing(problem: LmiProblem, solution: LmiSolution, factor: tuple[Array, Array], i: int, body: str) -> list[str]:
    """Mass that the URDF lacks, from a second solution without prior and limits of one body."""
    prior, options = problem.prior, problem.options
    root, relative = prior.root.copy(), prior.relative_std.copy()
    mass = np.full(len(relative), np.inf) if prior.mass_std is None else np.array(prior.mass_std, dtype=float)
    relative[i], mass[i] = _LOOSE, np.inf
    root[10 * i : 10 * i + 10, 10 * i : 10 * i + 10] = metric_root(prior.spread[i], _LOOSE)
    lower, upper = (
        None if box is None else np.where(np.arange(len(box))[:, None] == i, np.nan, box)
        for box in (options.com_lower, options.com_upper)
    )
    freed = replace(prior, root=root, relative_std=relative, mass_std=mass)
    released = replace(options, mass_factor=None, com_lower=lower, com_upper=upper)
    try:
        loose = LmiProblem(freed, problem.parameters, released).solve(*factor, solution.weight)
    except SolverError:
        return []
    stated = prior.theta0[10 * i]
    more = loose.theta[10 * i] - stated
    if loose.data_term > solution.data_term / (1.0 + COSTLY) or more <= _MISSING * stated:
        return []
    return [f"the data show mass that the URDF lacks: about {more:.2g} kg on {body} (a tool?); add it to the URDF"]
