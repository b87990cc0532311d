"""Tests physical consistency: Gautier and Venture's Cholesky test with tolerance, and the full test.

The published test (Gautier 2013, eq. 36, Table III) requires a positive mass and an inertia about the centre of mass that
passes a Cholesky factorisation after ``|ε|·1`` is added. Real bodies and strict simulators also require the triangle
inequality of the principal inertias; together these conditions make the 4×4 pseudo-inertia positive definite
(docs/theory.md §6). Both results are reported.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..errors import EstimationError, ShapeError
from ..model.inertia import Margins, margins, to_com
from .repair import assess

#: The tolerances of Table III of Gautier 2013 [kg·m²].
TABLE_TOLERANCES = (0.0, -0.01, -0.02, -0.04)


@dataclass(frozen=True)
class BodyConsistency:
    """The physical consistency of one body.

    Attributes:
        words: The result, which condition fails by how much, and the smallest correction, as text.
    """

    body: str
    margins: Margins
    words: str

    @property
    def consistent(self) -> bool:
        """True if the body is physically consistent."""
        return self.margins.consistent

    def as_dict(self) -> dict[str, Any]:
        """The entry of ``consistency.per_body`` in identification.json; a margin of −inf is the text "-inf"."""
        margin = self.margins
        return {
            "body": self.body,
            "mass": margin.mass,
            "min_eigenvalue": margin.min_eigenvalue,
            "cholesky_tolerance": margin.cholesky_tolerance,
            "margin": margin.relative if np.isfinite(margin.relative) else "-inf",
            "triangle": margin.triangle,
            "consistent": self.consistent,
            "words": self.words,
        }


@dataclass(frozen=True)
class ConsistencyReport:
    """The physical consistency of all bodies.

    Attributes:
        per_body: One entry per body, in the order given.
        passing: For each tolerance ε of Table III of Gautier 2013 [kg·m²], how many bodies pass its test.
    """

    per_body: tuple[BodyConsistency, ...]
    passing: tuple[tuple[float, int], ...]

    @property
    def consistent(self) -> bool:
        """True if every body is physically consistent."""
        return not self.offenders

    @property
    def offenders(self) -> tuple[str, ...]:
        """Names of the bodies that are not physically consistent."""
        return tuple(entry.body for entry in self.per_body if not entry.consistent)

    def as_dict(self) -> dict[str, Any]:
        """The ``consistency`` part of identification.json."""
        return {
            "consistent": self.consistent,
            "per_body": [entry.as_dict() for entry in self.per_body],
            "passing": [{"tolerance": tolerance, "bodies": count} for tolerance, count in self.passing],
        }


def passes_cholesky(theta: ArrayLike, tolerance: float = 0.0) -> bool:
    """Applies Gautier 2013's test to one body: positive mass, and a CoM inertia positive definite up to a tolerance.

    Args:
        theta: Ten parameters, shape (10,) [kg, kg·m, kg·m²].
        tolerance: ε [kg·m²]; its sign does not matter (Gautier 2013 writes it negative).

    Returns:
        True if ``m > 0`` and ``J + |ε|·1`` has a Cholesky factor (Gautier 2013, eq. 36).
    """
    m, _, inertia = to_com(theta)
    if not m > 0:
        return False
    try:
        np.linalg.cholesky(inertia + abs(tolerance) * np.eye(3))
    except np.linalg.LinAlgError:
        return False
    return True


def check_consistency(theta: ArrayLike, names: Sequence[str]) -> ConsistencyReport:
    """Tests every body with the full test and with that of Gautier 2013.

    Args:
        theta: Inertial parameters, shape (n, 10), or (p,) with p ≥ 10·n: entries after the bodies are ignored.

    Raises:
        ShapeError: Fewer than 10 parameters per body.
        EstimationError: A parameter is not finite.
    """
    values = np.asarray(theta, dtype=float).ravel()
    n = len(names)
    if len(values) < 10 * n or n == 0:
        raise ShapeError("too few inertial parameters", got=len(values), expected=f"{10 * n} for {n} bodies")
    bodies = values[: 10 * n].reshape(n, 10)
    for name, body in zip(names, bodies, strict=True):
        if not np.isfinite(body).all():
            raise EstimationError("inertial parameters are not finite", where=f"body '{name}'", got=body.tolist())
    counts = tuple((float(eps), sum(passes_cholesky(body, eps) for body in bodies)) for eps in TABLE_TOLERANCES)
    entries = []
    for name, body in zip(names, bodies, strict=True):
        margin = margins(body)
        least = f"smallest CoM inertia {margin.min_eigenvalue:.3g} kg·m²"
        words = f"{margin.mass:.4g} kg, {least}, thinnest/thickest {margin.relative:.2g}"
        if not margin.consistent:
            assessed = assess(body)
            words = "; ".join([*assessed.problems, assessed.correction])
        entries.append(BodyConsistency(name, margin, words))
    return ConsistencyReport(tuple(entries), counts)
