"""Viscous and Coulomb friction that stand for richer laws, because a URDF and MuJoCo hold nothing else."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..friction import Law
from ..model.terms import RotorInertia
from .friction_curves import friction_columns, share
from .record import Record

#: Laws that a URDF can hold exactly (an offset it cannot hold at all, and nothing can stand for it).
_EXACT = ("viscous", "coulomb", "offset")
#: Slowest speed of the fit, a fraction of the fastest: slower, friction is a matter of presliding.
_SLOWEST = 0.05


@dataclass(frozen=True)
class EquivalentFriction:
    """Joint name → viscous [N·m·s/rad or N·s/m] and Coulomb friction [N·m or N], and how they were found."""

    damping: dict[str, float]
    friction: dict[str, float]
    notes: tuple[str, ...]


def equivalent_friction(ident: Record) -> EquivalentFriction:
    """Viscous and Coulomb friction of every joint.

    Where a joint has other laws too, the line ``Fc + Fv |v|`` with neither negative that is closest, in the mean of
    both directions, to the whole friction curve over the speeds of the logs (load-dependent friction at the RMS torque
    of the logs). A motor that drives several joints counts as if each moved alone.

    Returns:
        The friction; one note on the joints where it stands for richer laws.
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
    """Rotor inertia that each joint feels when it moves alone; couplings between axes have no place in an MJCF.

    Returns:
        Joint name → rotor inertia [kg·m² or kg].
    """
    return {joint: _of_law(ident, j, RotorInertia.name, 2) for j, joint in enumerate(ident.model.robot.joints)}


def _of_law(ident: Record, j: int, name: str, power: int) -> float:
    """What all terms of a name add up to for a joint that moves alone, with their shares of its speed to a power."""
    terms = [
        (float(ident.theta[own.start]), share(ident, item, j))
        for item, own in ident.model.placed_terms
        if item.term.name == name
    ]
    return sum((value * abs(part) ** power for value, part in terms), 0.0)
