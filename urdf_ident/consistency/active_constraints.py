"""Notes on active constraints: which limit the result, how much they increase the residual, and what to do about each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..errors import SolverError
from ..linalg import Array
from ..model.prior import Prior, metric_root
from .constraints import LmiOptions
from .lmi import LmiProblem, LmiSolution

#: Relative increase of the residual over the unconstrained fit's that is reported.
COSTLY = 0.05
#: Relative standard deviation of a body whose prior is made uninformative.
_LOOSE = 3.0
#: Smallest missing mass that is reported, as a fraction of the body's mass.
_MISSING = 0.3


def limit_notes(
    problem: LmiProblem, solution: LmiSolution, factor: tuple[Array, Array], weight: float, least: float
) -> list[str]:
    """Describes the active constraints of a solution.

    Args:
        factor: The data, shapes (k, p) and (k,), whitened.
        weight: Weight of the prior.
        least: Squared residual of the unconstrained fit.

    Returns:
        One sentence per kind of limit, and one on the increase of the residual; empty if nothing is active.
    """
    bodies = list(dict.fromkeys(parameter.owner for parameter in problem.parameters[: 10 * len(problem.prior.relative_std)]))
    masses = [body for body in bodies if any(word.startswith(f"{body}: mass at ") for word in solution.active)]
    centres = [body for body in bodies if any(word.startswith(f"{body}: centre of mass") for word in solution.active)]
    friction = list(dict.fromkeys(word.split(": ")[0] for word in solution.active if _is_friction(word)))
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
    notes += _missing(problem, solution, factor, weight, sorted({*masses, *centres}, key=bodies.index), bodies)
    costs = float(np.sqrt(solution.data_term / least)) - 1.0 if least > 0 else 0.0
    if costs > COSTLY:
        held = "the limits above" if masses or centres or friction else "the prior (consistency.weight, relative_std, mass_std)"
        notes.append(f"residual of the exported model is {100 * costs:.0f} % above that of the unconstrained fit: {held}")
    return notes


def _is_friction(word: str) -> bool:
    return ": friction at " in word or ": slope of friction" in word


def _missing(
    problem: LmiProblem,
    solution: LmiSolution,
    factor: tuple[Array, Array],
    weight: float,
    held: Sequence[str],
    bodies: Sequence[str],
) -> list[str]:
    """Mass that the URDF lacks, from a second solution in which the last constrained body is free."""
    if not held:
        return []
    last = bodies.index(held[-1])  # mass missing at the end of a chain affects all bodies before it
    loose = LmiProblem(_freed(problem.prior, last), problem.parameters, _released(problem.options, last))
    try:
        loose_solution = loose.solve(*factor, weight)
    except SolverError:
        return []
    mass = problem.prior.theta0[10 * last]
    more = loose_solution.theta[10 * last] - mass
    if loose_solution.data_term > solution.data_term / (1.0 + COSTLY) or more <= _MISSING * mass:
        return []
    return [f"the data show mass that the URDF lacks: about {more:.2g} kg on {bodies[last]} (a tool?); add it to the URDF"]


def _freed(prior: Prior, body: int) -> Prior:
    """The prior, made uninformative for one body."""
    root, relative = prior.root.copy(), prior.relative_std.copy()
    mass = np.full(len(relative), np.inf) if prior.mass_std is None else np.array(prior.mass_std, dtype=float)
    relative[body], mass[body] = _LOOSE, np.inf
    block = slice(10 * body, 10 * body + 10)
    root[block, block] = metric_root(prior.spread[body], _LOOSE)
    return replace(prior, root=root, relative_std=relative, mass_std=mass)


def _released(options: LmiOptions, body: int) -> LmiOptions:
    """The options without mass bounds, and without limits on the centre of mass of one body."""
    lower, upper = (
        None if box is None else np.where(np.arange(len(box))[:, None] == body, np.nan, box)
        for box in (options.com_lower, options.com_upper)
    )
    return replace(options, mass_factor=None, com_lower=lower, com_upper=upper)
