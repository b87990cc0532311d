"""Tests bodies for physical consistency, describes what is wrong, and computes the nearest consistent ones.

Engines differ in what they accept: Pinocchio accepts everything, MuJoCo rejects a relative excess of 1e-15 over the
triangle inequality, Drake replaces invalid inertias. Repaired bodies keep :data:`MARGIN` from the boundary, so that all
engines accept them, also after rounding.

The published test with a tolerance (Gautier 2013, eq. 36, Table III) requires a positive mass and an inertia about the centre
of mass that passes a Cholesky factorisation after ``|ε|·1`` is added. Real bodies and strict simulators also require the
triangle inequality of the principal inertias; together these conditions make the 4×4 pseudo-inertia positive definite
(docs/theory.md §6). Both results are reported.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..errors import EstimationError, ModelError, ShapeError, check_shape
from ..grouping import grouped
from ..linalg import Array
from ..model.inertia import MARGIN, Margins, from_com, from_pseudo_inertia, margins, nearest_physical, pseudo_inertia, to_com
from ..model.robot import Robot
from ..model.urdf import Description
from ..samples import ReadOnly

#: Bodies closer to the boundary than this, on either side, are at the boundary up to rounding.
ROUNDING = 1e-9
#: Least fraction of the reference's pseudo-inertia that a repaired estimate keeps in every direction.
_FLOOR = 1e-2
#: Least principal inertia that is written [kg·m²]: MuJoCo rejects an inertia matrix with an eigenvalue below 1e-14.
LEAST_INERTIA = 2e-14
#: A principal inertia below this share of ``m |c|²`` may be a rounding error of the parallel axis theorem.
_ROUNDED = 100 * float(np.finfo(float).eps)
#: Density for the size of a body without inertia [kg/m³]: steel, an upper bound for the average density of robot links.
_DENSITY = 8000.0
#: Mass of the steel ball with the least inertia [kg]: below it, an invalid inertial counts as massless.
_LEAST_MASS = float((LEAST_INERTIA / 0.4) ** 0.6 * (4.0 * np.pi * _DENSITY / 3.0) ** 0.4)


@dataclass(frozen=True, eq=False)
class Assessment(ReadOnly):
    """Physical consistency of ten parameters of a body.

    Attributes:
        margins: Distances from the conditions.
        repaired: The nearest physically consistent parameters, shape (10,); equal to the given ones if nothing is wrong.
        eigenvalues: Eigenvalues of the inertia about the centre of mass, ascending, shape (3,) [kg·m²].
        level: ``"ok"``, ``"boundary"`` (a plate, a rod, a point: strict engines may refuse it) or ``"impossible"``.
        problems: The conditions that fail and by how much, as text.
        correction: The smallest correction, as text; empty if nothing is wrong.
    """

    margins: Margins
    repaired: Array
    eigenvalues: Array
    level: str
    problems: tuple[str, ...] = ()
    correction: str = ""

    @property
    def consistent(self) -> bool:
        """True if the body is physically consistent."""
        return self.margins.consistent

    @property
    def words(self) -> str:
        """Which condition fails by how much and the smallest correction, or the size and margins of a consistent body."""
        if not self.consistent:
            return "; ".join([*self.problems, self.correction])
        least = f"smallest CoM inertia {self.margins.min_eigenvalue:.3g} kg·m²"
        return f"{self.margins.mass:.4g} kg, {least}, thinnest/thickest {self.margins.relative:.2g}"

    def as_dict(self) -> dict[str, Any]:
        """Its part of ``consistency.per_body`` in identification.json; a margin of −inf is the text "-inf"."""
        margin = self.margins.relative
        shown = {name: getattr(self.margins, name) for name in ("mass", "min_eigenvalue", "cholesky_tolerance", "triangle")}
        return {
            **shown,
            "margin": margin if np.isfinite(margin) else "-inf",
            "consistent": self.consistent,
            "words": self.words,
        }


def assess(theta: Array, small_mass: float = 1e-3, *, massless: bool = False) -> Assessment:
    """Tests a body, and names what is wrong with it and the smallest correction.

    Args:
        theta: Ten parameters, shape (10,) [kg, kg·m, kg·m²].
        small_mass: Mass given to a massless body [kg].
        massless: Whether the body may lack mass altogether, as a frame modelled as a link does.
    """
    margin = margins(theta)
    if massless and not theta.any():
        return Assessment(margin, theta, np.zeros(3), "ok")
    mass, _, inertia = to_com(theta)
    eigenvalues: Array = np.linalg.eigvalsh(inertia).astype(float)
    repaired = repaired_theta(theta, small_mass=small_mass)
    if np.array_equal(repaired, theta):
        return Assessment(margin, repaired, eigenvalues, "ok")
    relative, (small, middle, large), problems = margin.relative, eigenvalues, list[str]()
    level = "boundary" if relative >= -ROUNDING else "impossible"
    if not theta.any():
        problems.append("no mass, although a joint moves it")
    elif relative >= 0.99 * MARGIN:
        problems.append(f"a principal inertia of {small:.3g} kg·m², which strict engines take for zero")
    else:
        if mass <= 0:
            problems.append(f"the mass is {mass:.6g} kg, not positive")
        if level == "boundary":
            problems.append(f"no thickness (smallest over largest principal second moment {relative:.2g}, wanted {MARGIN:g})")
        elif small <= 0:
            problems.append(
                f"the inertia about the centre of mass has the eigenvalue {small:.6g} kg·m², not positive "
                f"(it passes Cholesky with tolerance {max(0.0, -small):.3g})"
            )
        if level == "impossible" and (excess := large - middle - small) > 0:
            problems.append(f"the triangle inequality fails: {large:.6g} > {small:.6g} + {middle:.6g}, by {excess:.3g} kg·m²")
    new_mass, _, new_inertia = to_com(repaired)
    values = ", ".join(f"{value:.6g}" for value in np.linalg.eigvalsh(new_inertia))
    change = float(np.abs(new_inertia - inertia).max())
    correction = f"smallest correction: principal inertias {values} kg·m² (largest change {change:.3g})"
    correction += "" if mass == new_mass else f", mass {float(new_mass):.6g} kg"
    return Assessment(margin, repaired, eigenvalues, level, tuple(problems), correction)


def assess_bodies(robot: Robot) -> dict[str, Assessment]:
    """Assesses every moving body including the links lumped into it.

    Returns:
        Name of the body (that of its first link) → assessment, in joint order.
    """
    small = _small_mass(robot.description)
    return {body.name: assess(theta, small) for body, theta in zip(robot.bodies, robot.inertials, strict=True)}


def assess_links(description: Description) -> dict[str, Assessment]:
    """Assesses the links of any URDF, also one with unsupported joints.

    Returns:
        Name of each link that states an inertial or lacks a required one → assessment, in document order.
    """
    heavy = {name for name, link in description.links.items() if link.theta is not None and link.theta[0] != 0}
    # moving links without mass, to which no link with mass is fixed
    bare = {root for root, members in moving_groups(description) if not heavy & set(members)}
    small = _small_mass(description)
    return {
        name: assess(np.zeros(10) if link.theta is None else link.theta, small, massless=name not in bare)
        for name, link in description.links.items()
        if link.theta is not None or name in bare
    }


def repaired_theta(
    theta: ArrayLike,
    *,
    reference: ArrayLike | None = None,
    small_mass: float = 1e-3,
) -> Array:
    """Returns the nearest body that every engine accepts, shape (10,); bit for bit ``theta`` if nothing has to change.

    Entropic (log-det) distances from an inconsistent body are infinite or undefined. The nearest body is therefore:

    - with a physically consistent ``reference`` (for an estimate): the nearest body in the reference's own metric
      ``‖P_ref^-½ (P − P_ref') P_ref^-½‖`` with ``P ⪰ ε·P_ref`` (eigenvalues clipped), to second order the
      entropic distance; it repairs mass, centre of mass and inertia together;
    - without a reference (for a number in a file): a reversed sign (of everything, or of the mass) is corrected, zero
      mass becomes ``small_mass``, and mass and centre of mass are kept while principal second moments about it are
      raised to :data:`MARGIN` times the largest, the least change in the Frobenius norm. A point mass becomes a
      steel ball.

    Args:
        theta: Ten parameters, shape (10,) [kg, kg·m, kg·m²].
        reference: A physically consistent body, shape (10,), or None.
        small_mass: Mass given to a massless body [kg].

    Raises:
        ShapeError: ``theta`` is not one body.
        ModelError: A number is not finite, or the reference is not physically consistent.
    """
    values = np.array(theta, dtype=float)
    check_shape("theta", values.shape, (10,))
    if not np.isfinite(values).all():
        raise ModelError("an inertial that is not finite cannot be repaired", got=values.tolist())
    if not values.any() and reference is None:
        return small_body(small_mass)
    margin, offset = margins(values), float(values[1:4] @ values[1:4]) / max(float(values[0]), _LEAST_MASS)
    if margin.relative >= 0.99 * MARGIN and margin.min_eigenvalue >= _ROUNDED * offset:
        return _large_enough(values)
    if margin.relative < -ROUNDING and reference is not None:
        known = np.asarray(reference, dtype=float)
        check_shape("reference", known.shape, (10,))
        try:
            root = np.linalg.cholesky(pseudo_inertia(known))
        except np.linalg.LinAlgError as error:
            raise ModelError(
                "the reference body is not physically consistent", got=known.tolist(), remedy="repair it first"
            ) from error
        white = np.linalg.solve(root, np.linalg.solve(root, pseudo_inertia(values)).T)
        moments, axes = np.linalg.eigh(0.5 * (white + white.T))
        values = from_pseudo_inertia(root @ (axes * np.maximum(moments, _FLOOR) @ axes.T) @ root.T)
    elif margin.relative < -ROUNDING and margins(-values).relative >= -ROUNDING:
        values = -values
    if values[0] < _LEAST_MASS:
        mass, com, inertia = to_com(values)
        values = from_com(-mass if mass <= -_LEAST_MASS else small_mass, com, inertia)
    radius = _ball_radius(values[0])
    return _large_enough(nearest_physical(values, 1.01 * MARGIN, least_mass=small_mass, least_gyration=radius / np.sqrt(5.0)))


def acceptable(theta: Array) -> bool:
    """Whether every engine accepts a body unchanged; theta: ten parameters, shape (10,) [kg, kg·m, kg·m²]."""
    return np.array_equal(repaired_theta(theta), theta)


def _large_enough(theta: Array) -> Array:
    """The body with all principal inertias raised equally if strict engines would treat the smallest as zero."""
    mass, com, inertia = to_com(theta)
    least = float(np.linalg.eigvalsh(inertia)[0])
    return theta if least >= 0.9 * LEAST_INERTIA else from_com(mass, com, inertia + (LEAST_INERTIA - least) * np.eye(3))


def small_body(mass: float, com: ArrayLike = (0.0, 0.0, 0.0)) -> Array:
    """Parameters of a steel ball, shape (10,), for a body of which hardly more than its mass is known.

    Args:
        mass: [kg].
        com: Its centre, shape (3,) [m].
    """
    return from_com(mass, com, 0.4 * mass * _ball_radius(mass) ** 2 * np.eye(3))


def moving_groups(description: Description) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Sets of links connected by fixed joints, for every joint that is not fixed.

    Returns:
        (child link of the joint, all links of its set, child first), in document order.
    """
    fixed = grouped((joint.parent, joint.child) for joint in description.joints.values() if joint.type == "fixed")
    groups = []
    for joint in description.joints.values():
        if joint.type != "fixed":
            members = [joint.child]
            for name in members:  # grows while it is read
                members += [child for child in fixed.get(name, []) if child not in members]
            groups.append((joint.child, tuple(members)))
    return tuple(groups)


def _small_mass(description: Description) -> float:
    """A thousandth of the median link mass [kg]."""
    masses = [float(link.theta[0]) for link in description.links.values() if link.theta is not None and link.theta[0] > 0]
    return 1e-3 * float(np.median(masses)) if masses else 1e-3


def _ball_radius(mass: float) -> float:
    return float(np.cbrt(3.0 * mass / (4.0 * np.pi * _DENSITY)))


#: The tolerances of Table III of Gautier 2013 [kg·m²].
TABLE_TOLERANCES = (0.0, -0.01, -0.02, -0.04)


@dataclass(frozen=True)
class ConsistencyReport:
    """The physical consistency of all bodies by their names, in the order given."""

    per_body: Mapping[str, Assessment]

    @property
    def consistent(self) -> bool:
        """True if every body is physically consistent."""
        return not self.offenders

    @property
    def offenders(self) -> tuple[str, ...]:
        """Names of the bodies that are not physically consistent."""
        return tuple(name for name, body in self.per_body.items() if not body.consistent)

    @property
    def passing(self) -> tuple[int, ...]:
        """How many bodies pass the test of Gautier 2013 with each of :data:`TABLE_TOLERANCES`."""
        return tuple(sum(body.margins.passes(eps) for body in self.per_body.values()) for eps in TABLE_TOLERANCES)

    def as_dict(self) -> dict[str, Any]:
        """The ``consistency`` part of identification.json."""
        counts = zip(TABLE_TOLERANCES, self.passing, strict=True)
        return {
            "consistent": self.consistent,
            "per_body": [{"body": name, **body.as_dict()} for name, body in self.per_body.items()],
            "passing": [{"tolerance": tolerance, "bodies": count} for tolerance, count in counts],
        }


def check_consistency(theta: ArrayLike, names: Sequence[str]) -> ConsistencyReport:
    """Tests every body with the full test and with that of Gautier 2013.

    Args:
        theta: Inertial parameters, shape (n, 10), or (p,) with p ≥ 10·n: entries after the bodies are ignored.

    Raises:
        ShapeError: Fewer than 10 parameters per body.
        EstimationError: A parameter is not finite.
    """
    values, n = np.asarray(theta, dtype=float).ravel(), len(names)
    if len(values) < 10 * n or n == 0:
        raise ShapeError("too few inertial parameters", got=len(values), expected=f"{10 * n} for {n} bodies")
    bodies = dict(zip(names, values[: 10 * n].reshape(n, 10), strict=True))
    for name, body in bodies.items():
        if not np.isfinite(body).all():
            raise EstimationError("inertial parameters are not finite", where=f"body '{name}'", got=body.tolist())
    return ConsistencyReport({name: assess(body) for name, body in bodies.items()})
