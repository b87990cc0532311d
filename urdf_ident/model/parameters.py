"""The entries of theta: names, units and what physics forbids."""

from __future__ import annotations

from dataclasses import dataclass

from .inertia import BODY_PARAMETERS, BODY_UNITS
from .robot import Robot


@dataclass(frozen=True)
class Parameter:
    """One entry of theta.

    Attributes:
        name: Unique, e.g. ``"Ixx_forearm_link"`` or ``"Fv_elbow_joint"``.
        symbol: What it is: one of the ten inertial names, or a term's symbol (``"Ia"``, ``"Fv"``, …).
        owner: Body name (inertial) or joint name.
        unit: SI unit.
        nonnegative: True where physics forbids negative values (rotor inertia, viscous and Coulomb friction).
    """

    name: str
    symbol: str
    owner: str
    unit: str
    nonnegative: bool = False

    @property
    def rotor(self) -> bool:
        """Whether it is the inertia of a rotor, reflected to a joint (``Ia``) or on the motor's side (``Iam``)."""
        return self.symbol in ("Ia", "Iam")


def inertial_parameters(robot: Robot) -> tuple[Parameter, ...]:
    """The 10·n inertial entries, body by body in the order of ``robot.bodies``; theta always starts with them.

    Returns:
        ``m, mx, my, mz, Ixx, Ixy, Iyy, Ixz, Iyz, Izz`` of each body, about its joint frame's origin.
    """
    return tuple(
        Parameter(f"{symbol}_{body.name}", symbol, body.name, unit, nonnegative=symbol == "m")
        for body in robot.bodies
        for symbol, unit in zip(BODY_PARAMETERS, BODY_UNITS, strict=True)
    )
