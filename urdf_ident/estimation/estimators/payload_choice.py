"""Choices and tests of the estimate of a payload: its method, whether friction has changed, whether the logs carry one body."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...errors import EstimationError
from ...linalg import positive
from ...signals.prepare import PreparedLog
from .payload import PayloadFit, PayloadProblem, estimate_payload

#: Significance level of the test whether friction has changed.
_LEVEL = 0.05
#: Logs disagree on the mass below this p-value if the difference also exceeds this share of the mass.
_CHANCE, _DIFFERENT = 1e-3, 0.03
#: The joint estimate is preferred if the standard error of its mass is at most this share of the other's.
_BETTER = 0.9


def changed_friction(problem: PayloadProblem, logs: Sequence[PreparedLog]) -> str:
    """Which friction to estimate again: all of it if any parameter has changed significantly (Bonferroni), else "none"."""
    from scipy.special import ndtr

    trial = estimate_payload(problem, logs, refit="friction")
    p_values = [2.0 * ndtr(-abs(change) / positive(error)) for change, error in trial.changes.values()]
    return "friction" if any(p < _LEVEL / len(p_values) for p in p_values) else "none"


def preferred_estimate(problem: PayloadProblem, logs: Sequence[PreparedLog], method: str, refit: str) -> PayloadFit:
    """The estimate by one method, or with "auto" the more precise one.

    Args:
        method: A key of :data:`.METHODS`, or "auto".
        refit: A key of :data:`.REFIT`.
    """
    if method != "auto":
        return estimate_payload(problem, logs, method=method, refit=refit)
    held, joint = (estimate_payload(problem, logs, method=name, refit=refit) for name in ("held", "joint"))
    return joint if joint.bse[0] < _BETTER * held.bse[0] else held


def refuse_different_bodies(problem: PayloadProblem, logs: Sequence[PreparedLog], refit: str) -> None:
    """Refuses logs with different payloads.

    Args:
        refit: A key of :data:`.REFIT`.

    Raises:
        EstimationError: The masses differ significantly, and by more than :data:`_DIFFERENT`.
    """
    from scipy.special import chdtrc

    if len(logs) < 2:
        return
    fits = [estimate_payload(problem, [log], refit=refit) for log in logs]
    mass = np.array([fit.params[0] for fit in fits])
    variance = np.array([fit.noise[0, 0] for fit in fits])
    mean = float(np.sum(mass / variance) / np.sum(1.0 / variance))
    chi_square = float(np.sum((mass - mean) ** 2 / variance))
    if chdtrc(len(logs) - 1, chi_square) < _CHANCE and np.ptp(mass) > _DIFFERENT * abs(mean):
        masses = ", ".join(f"{log.name} {m:.4g} ± {np.sqrt(v):.2g} kg" for log, m, v in zip(logs, mass, variance, strict=True))
        raise EstimationError("these logs do not carry the same body", got=masses, remedy="one call a payload")
