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
from ..linalg import Array
from ..model.inertia import Margins, margins, nearest_physical, to_com
from ..samples import ReadOnly

#: The tolerances of Table III of Gautier 2013 [kg·m²].
TABLE_TOLERANCES = (0.0, -0.01, -0.02, -0.04)
#: Ratio of principal second moments that the smallest correction restores.
_FLOOR = 1e-6


@dataclass(frozen=True, eq=False)
class BodyConsistency(ReadOnly):
    """The physical consistency of one body.

    Attributes:
        words: The result, which condition fails by how much, and the smallest correction, as text.
        correction: That change of the ten parameters, shape (10,) [kg, kg·m, kg·m²]; zero for a physically consistent body.
    """

    body: str
    margins: Margins
    words: str
    correction: Array

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
        return all(entry.consistent for entry in self.per_body)

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

    def summary(self) -> str:
        """Summarises each body in one line, and the number of bodies that pass at each tolerance.

        Returns:
            Several lines of text.
        """
        width = max(len(entry.body) for entry in self.per_body)
        lines = [f"{entry.body:<{width}}  {'ok' if entry.consistent else 'NO':<2}  {entry.words}" for entry in self.per_body]
        counts = ", ".join(f"{count} at ε = {tolerance:g}" for tolerance, count in self.passing)
        good = len(self.per_body) - len(self.offenders)
        lines.append(
            f"{good} of {len(self.per_body)} bodies are physically consistent; positive CoM inertia (Cholesky): {counts}"
        )
        return "\n".join(lines)


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
    entries = tuple(_judge(name, body) for name, body in zip(names, bodies, strict=True))
    counts = tuple((float(eps), sum(passes_cholesky(body, eps) for body in bodies)) for eps in TABLE_TOLERANCES)
    return ConsistencyReport(entries, counts)


def _judge(name: str, theta: Array) -> BodyConsistency:
    margin = margins(theta)
    if margin.consistent:
        least = f"smallest CoM inertia {margin.min_eigenvalue:.3g} kg·m²"
        ratio = f"{margin.mass:.4g} kg, {least}, thinnest/thickest {margin.relative:.2g}"
        return BodyConsistency(name, margin, ratio, np.zeros(10))
    correction = nearest_physical(theta, _FLOOR) - theta
    problems = []
    if not margin.mass > 0:
        problems.append(f"mass {margin.mass:.4g} kg is not positive")
    if margin.min_eigenvalue < 0:
        problems.append(
            f"CoM inertia has the eigenvalue {margin.min_eigenvalue:.3g} kg·m² (needs ε = {margin.cholesky_tolerance:.3g})"
        )
    elif margin.triangle < 0:
        problems.append(f"the largest principal inertia exceeds the sum of the others by {-2 * margin.triangle:.3g} kg·m²")
    elif margin.mass > 0:
        problems.append("it has no thickness: the principal inertias are exactly at the triangle inequality's limit")
    size = float(np.abs(correction[4:]).max())
    mass = f" and {correction[0]:.3g} kg" if correction[0] != 0 else ""
    problems.append(f"smallest correction: up to {size:.3g} kg·m²{mass}")
    return BodyConsistency(name, margin, "; ".join(problems), correction)
