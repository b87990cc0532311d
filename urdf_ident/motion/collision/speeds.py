"""Bounds on the rate of change of distances in any configuration, which certify clearances between samples."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...linalg import Array
from ...samples import ReadOnly
from .collisions import Collisions

#: Coal's own error [m]; it stops at 1e-6.
MEASURED = 2e-6


@dataclass(frozen=True, eq=False)
class SpeedBounds(ReadOnly):
    """Bounds on the rate of change of distances, valid in any configuration.

    Attributes:
        arms: Speed per joint speed, shape (P, n) [m/rad or 1].
        linear: Acceleration per joint acceleration, shape (P, n) [m/rad or 1].
        square: Acceleration per product of joint speeds, shape (P, n, n).
    """

    arms: Array
    linear: Array
    square: Array

    @classmethod
    def of(cls, collisions: Collisions, stroke: Array) -> SpeedBounds:
        """Computes the bounds of a robot's pairs.

        Args:
            collisions: The pairs.
            stroke: Largest ``|q|`` of prismatic joints, shape (n,) [m].

        Returns:
            The bounds.
        """
        kinematics = collisions.kinematics
        count, n = len(collisions.pairs), kinematics.n
        arms, linear, square = np.zeros((count, n)), np.zeros((count, n)), np.zeros((count, n, n))
        for p, pair in enumerate(collisions.pairs):
            a, b = collisions.bodies[p]
            if pair.second >= 0:
                reaches = [collisions.solids[k].reach for k in (pair.first, pair.second)]
            else:
                reaches = [float(np.linalg.norm(collisions.tool[1])) if collisions.tool else 0.0, np.inf]
            chain = kinematics.chain(a, b)
            on_a, on_b = (kinematics.lever_arms(body, size, stroke) for body, size in zip((a, b), reaches, strict=True))
            arms[p, chain] = np.minimum(on_a, on_b)[chain]
            if on_a[chain].sum() < on_b[chain].sum():  # points of the first body, relative to the second
                chain, lever = chain[::-1], on_a
            else:
                lever = on_b
            linear[p, chain] = lever[chain]
            for inner, j in enumerate(chain):
                if not kinematics.prismatic[j]:
                    for k in chain[inner:]:
                        square[p, j, k] = square[p, k, j] = lever[k]
        return cls(arms, linear, square)

    def rates(self, v: Array, a: Array) -> tuple[Array, Array]:
        """Returns the largest speed and acceleration of points.

        Args:
            v: Largest joint speeds, shape (N, n) [rad/s or m/s].
            a: Largest joint accelerations, shape (N, n) [rad/s² or m/s²].

        Returns:
            Shapes (N, P) [m/s, m/s²].
        """
        return v @ self.arms.T, a @ self.linear.T + np.einsum("mj,pjk,mk->mp", v, self.square, v, optimize=True)
