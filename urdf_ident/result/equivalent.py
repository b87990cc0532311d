"""Viscous and Coulomb friction equivalent to richer laws, because URDF and MuJoCo support nothing else."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..friction import Law
from ..model.terms import RotorInertia
from .friction_curves import friction_columns, share
from .record import Record

#: Laws that need no equivalent (a URDF cannot represent an offset, and nothing can replace it).
_EXACT = ("viscous", "coulomb", "offset")
#: Slowest speed of the fit, a fraction of the fastest; presliding dominates below it.
_SLOWEST = 0.05


@dataclass(frozen=True)
class EquivalentFriction:
    """Joint name → viscous [N·m·s/rad or N·s/m] and Coulomb friction [N·m or N], with notes on their origin."""

    damping: dict[str, float]
    friction: dict[str, float]
    notes: tuple[str, ...]


def equivalent_friction(ident: Record) -> EquivalentFriction:
    """Returns viscous and Coulomb friction of every joint.

    If a joint has other laws too, they are replaced by the nonnegative line ``Fc + Fv |v|`` closest to the friction curve,
    averaged over both directions, over the speeds of the logs (load-dependent friction at the RMS torque of the logs). For
    a motor that drives several joints, each joint is taken to move alone.

    Returns:
        The friction; one note on the joints where it replaces richer laws.
    """
    model = ident.model
    damping, friction, replaced = {}, {}, []
    for j, joint in enumerate(model.robot.joints):
        laws = {item.term.name for item in model.terms if share(ident, item, j) != 0 and isinstance(item.term, Law)}
        speed = float(np.atleast_1d(ident.signals.get("speed", [1.0] * model.n))[j])
        load = float(np.atleast_1d(ident.signals.get("load", [0.0] * model.n))[j])
        v = np.linspace(_SLOWEST, 1.0, 40) * max(speed, 1e-6)
        curve = 0.5 * (friction_columns(ident, j, v, load) - friction_columns(ident, j, -v, load)) @ ident.theta
        if laws <= set(_EXACT):
            values = [_of_law(ident, j, "coulomb", 1), _of_law(ident, j, "viscous", 2)]
        else:
            from scipy.optimize import nnls

            values = nnls(np.column_stack([np.ones_like(v), v]), curve)[0].tolist()
            replaced.append(joint)
        friction[joint], damping[joint] = (float(max(value, 0.0)) for value in values)
    note = f"friction of {', '.join(replaced)} is approximated by viscous and Coulomb friction over the speeds of the logs"
    return EquivalentFriction(damping, friction, (note,) if replaced else ())


def armature(ident: Record) -> dict[str, float]:
    """Reflected rotor inertia of each joint that moves alone; MJCF cannot represent couplings between axes.

    Returns:
        Joint name → rotor inertia [kg·m² or kg].
    """
    return {joint: _of_law(ident, j, RotorInertia.name, 2) for j, joint in enumerate(ident.model.robot.joints)}


def _of_law(ident: Record, j: int, name: str, power: int) -> float:
    """Sum of all terms of one name for a joint that moves alone, weighted with their speed ratios to a power."""
    terms = [
        (float(ident.theta[own.start]), share(ident, item, j))
        for item, own in ident.model.placed_terms
        if item.term.name == name
    ]
    return sum((value * abs(part) ** power for value, part in terms), 0.0)
