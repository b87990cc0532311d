"""Verification of the motions that a search has found, between its instants too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..errors import LimitError
from ..linalg import Array
from ..motion.collision.clearance import ClearanceReport, check_clearance
from ..motion.limits import LimitReport, check_limits, prior_torque
from .planned_rows import PlannedRows
from .search.multi_start import FoundMotion, Problem


def certified(
    problem: Problem, candidates: Sequence[FoundMotion]
) -> tuple[FoundMotion, LimitReport, ClearanceReport | None, tuple[str, ...]]:
    """Returns the best motion that passes verification on a 1 ms grid with allowance, scaled down if necessary.

    Args:
        candidates: The motions, best first.

    Returns:
        The motion, its margins to limits, its clearance, and notes.

    Raises:
        LimitError: No motion passes.
    """
    found: tuple[FoundMotion, LimitReport, ClearanceReport | None, tuple[str, ...]] | None = None
    report, clearance = None, None
    for candidate in candidates:
        if found is not None and found[0].value <= candidate.value:
            break  # the best of the rest, even if it need not be scaled
        for size in (1.0, 0.995, 0.98, 0.95, 0.9, 0.7, 0.5):
            X = candidate.X if size == 1.0 else replace(problem.family, periods=1).scaled(candidate.X, size)
            report, clearance = _verified(problem, X)
            if report.feasible and (clearance is None or clearance.feasible):
                note = () if size == 1.0 else (f"amplitude reduced to {100 * size:g} % to keep a limit between instants",)
                value = candidate.value if size == 1.0 else exact_value(problem, problem.criterion.rows, X)
                if found is None or value < found[0].value:
                    found = replace(candidate, X=X, value=value), report, clearance, note
                break
    if found is not None:
        return found
    if report is not None:
        report.require()
    if clearance is not None:
        clearance.require()
    raise LimitError(
        "no motion inside the limits was found", remedy="allow more time in excitation.budget, or widen the limits"
    )


def _verified(problem: Problem, X: Array) -> tuple[LimitReport, ClearanceReport | None]:
    """Margins of one period to limits, and to obstacles if the limits are kept."""
    trajectory = replace(problem.family, periods=1).trajectory(X)
    report = check_limits(trajectory, problem.limits, torque=prior_torque(problem.criterion.rows.model.robot))
    if problem.obstacles is None or not report.feasible:
        return report, None
    return report, check_clearance(trajectory, problem.obstacles.collisions)


def exact_value(problem: Problem, rows: PlannedRows, X: Array) -> float:
    """Evaluates the criterion with unsoftened signs on many instants.

    Args:
        rows: Rows of the unsoftened model.
        X: Unknowns, shape (d, n).

    Returns:
        The value, a logarithm.
    """
    criterion: Any = problem.criterion
    motions = criterion.motions(*problem.family.criterion_grid(max(1000, 8 * problem.samples())).motion(X))
    return float(replace(criterion, rows=rows).value(rows.evaluate(*motions)[0], np.inf)[0])
