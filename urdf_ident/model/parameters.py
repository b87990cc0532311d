"""The entries of theta: names, units and sign constraints."""

from __future__ import annotations

from dataclasses import dataclass

from .inertia import BODY_PARAMETERS, BODY_UNITS
from .robot import Robot


@dataclass(frozen=True)
class Parameter:
    """One entry of theta.

    Attributes:
        name: Unique, e.g. ``"Ixx_forearm_link"`` or ``"Fv_elbow_joint"``.
        symbol: One of the ten inertial names, or a term's symbol (``"Ia"``, ``"Fv"``, …).
        nonnegative: True where negative values are unphysical (rotor inertia, viscous and Coulomb friction).
    """

    name: str
    symbol: str
    owner: str
    unit: str
    nonnegative: bool = False

    @property
    def rotor(self) -> bool:
        """Whether it is a rotor inertia, reflected to a joint (``Ia``) or on the motor side (``Iam``)."""
        return self.symbol in ("Ia", "Iam")


def inertial_parameters(robot: Robot) -> tuple[Parameter, ...]:
    """Returns the 10·n inertial entries, body by body in the order of ``robot.bodies``; theta always starts with them.

    Returns:
        ``m, mx, my, mz, Ixx, Ixy, Iyy, Ixz, Iyz, Izz`` of each body, about its joint frame's origin.
    """
    return tuple(
        Parameter(f"{symbol}_{body.name}", symbol, body.name, unit, nonnegative=symbol == "m")
        for body in robot.bodies
        for symbol, unit in zip(BODY_PARAMETERS, BODY_UNITS, strict=True)
    )
