"""Friction and torque of the motors of an elastic plant, for tests."""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from urdf_ident.friction import Coulomb, Offset, Stribeck, Viscous
from urdf_ident.simulation.elastic.plant import MotorFriction
from urdf_ident.simulation.truth import FrictionTruth


def motor_friction(
    n: int,
    *,
    viscous: ArrayLike = 0.0,
    coulomb: ArrayLike = 0.0,
    offset: ArrayLike = 0.0,
    stribeck: ArrayLike = 0.0,
    stribeck_speed: float = 0.05,
    width: float = 0.01,
) -> MotorFriction:
    """Friction from numbers or lists, one per joint; ``stribeck`` is the excess of stiction over Coulomb friction."""
    laws = [law.of(np.broadcast_to(x, n)) for law, x in ((Viscous, viscous), (Coulomb, coulomb), (Offset, offset))]
    laws.append(Stribeck.of(np.broadcast_to(stribeck, n), velocity=stribeck_speed))
    return MotorFriction(FrictionTruth(n, tuple(laws)), width)


class OpenLoop:
    """A motor torque that depends on time alone; zero without a function."""

    def __init__(self, n: int, of_time: Callable[[np.ndarray], np.ndarray] | None = None) -> None:
        self.n, self.of_time, self.kp, self.kd = n, of_time, np.zeros(n), np.zeros(n)

    def feed(self, t: np.ndarray) -> np.ndarray:
        return np.zeros((len(t), self.n)) if self.of_time is None else self.of_time(t)
