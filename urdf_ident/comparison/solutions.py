"""Standard parameters of a result side by side: which pass the Cholesky test, and what they cost (Gautier 2013, Table III)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..consistency.cholesky import TABLE_TOLERANCES, check_consistency
from ..consistency.nearest import essential_to_prior, nearest_to_prior
from ..errors import FingerprintError
from ..grouping import table
from ..linalg import Array
from ..model.prior import lumped_inertials
from ..model.robot import Robot
from ..result.record import Record


def solutions(ident: Record, robot: Robot) -> list[dict[str, Any]]:
    """Compares the choices among all standard parameters that fit the data of a result.

    Args:
        robot: The robot whose URDF is checked; its inertials are the a-priori ones.

    Returns:
        ``name``, ``consistent`` and ``passing``: numbers of bodies that are physically consistent, and that pass the Cholesky
        test at each tolerance; ``margin``: of the body nearest to the boundary, relative, negative beyond it; ``distance``:
        from the prior, in its standard deviations; ``residual``: torque error over that of the base parameters. For the
        parameters of the URDF, the base parameters (dependent ones at the prior), the least change in SI units and in the
        prior's standard deviations, the essential ones alone, and the exported ones.
    """
    bodies = [body.name for body in robot.bodies]
    if bodies != [body.name for body in ident.model.robot.bodies]:
        raise FingerprintError(
            "the result is of another robot", got=[body.name for body in ident.model.robot.bodies], expected=bodies
        )
    prior, fit, factor = ident.prior, ident.fit, ident.factor
    stated = np.concatenate([lumped_inertials(robot).ravel(), prior.theta0[ident.model.n_inertial :]])
    thetas: dict[str, Array] = {"a priori": stated}
    for name, method, norm in (
        ("base", "frozen", "euclid"),
        ("minimum norm", "minimum_norm", "plain"),
        ("closest to the prior", "minimum_norm", "euclid"),
    ):
        thetas[name] = nearest_to_prior(method, fit, prior, norm).theta
    if kept := ident.essential.get("names"):
        chosen = [fit.base.labels.index(label) for label in kept]
        columns = np.append(fit.base.independent, -1)
        thetas["essential"] = essential_to_prior(factor[:, columns], fit.base, prior.theta0, chosen).theta
    thetas[f"exported ({ident.solver.get('method', 'lmi')})"] = ident.theta
    least = np.linalg.norm(factor @ np.append(thetas["base"], -1.0))
    rows = []
    for name, theta in thetas.items():
        report = check_consistency(theta, bodies)
        rows.append(
            {
                "name": name,
                "consistent": len(bodies) - len(report.offenders),
                "passing": [count for _, count in report.passing],
                "margin": min(body.margins.relative for body in report.per_body),
                "distance": prior.distance(theta),
                "residual": float(np.linalg.norm(factor @ np.append(theta, -1.0)) / least),
            }
        )
    return rows


def solution_lines(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Formats the comparison as a table."""
    tolerances = [f"ε = {abs(tolerance):g}" for tolerance in TABLE_TOLERANCES]
    cells = [
        [
            *(row["name"], *map(str, row["passing"]), str(row["consistent"])),
            *(f"{row['margin']:.2g}", f"{row['distance']:.3g}", f"{row['residual']:.4g}"),
        ]
        for row in rows
    ]
    return [
        "bodies with positive mass and CoM inertia (Cholesky) at tolerance ε [kg·m²], and with the triangle inequality too:",
        *table(["solution", *tolerances, "consistent", "margin", "from the prior [std]", "residual"], cells),
        "  margin: of the body nearest to the boundary, relative, negative beyond it; residual: torque error over that of the",
        "  base parameters; the last solution is what exports contain",
    ]
