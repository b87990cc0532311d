"""Gauss collocation for stiff, energy-conserving mechanics: ``x'' = f(x, x')``, three stages, sixth order.

Explicit methods need steps far below the period of the stiffest spring, and common implicit methods add numerical damping.
Gauss collocation is stable at any frequency and conserves the energy of every linear oscillation exactly.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from ..errors import SimulationError
from ..linalg import Array

_ROOT = float(np.sqrt(15.0))
#: Instants of the stages, as fractions of a step.
NODES = np.array([0.5 - _ROOT / 10, 0.5, 0.5 + _ROOT / 10])
_A = np.array(
    [
        [5 / 36, 2 / 9 - _ROOT / 15, 5 / 36 - _ROOT / 30],
        [5 / 36 + _ROOT / 24, 2 / 9, 5 / 36 - _ROOT / 24],
        [5 / 36 + _ROOT / 30, 2 / 9 + _ROOT / 15, 5 / 36],
    ]
)
_B = np.array([5 / 18, 4 / 9, 5 / 18])
#: Extrapolation of the last step's stages to the next step, as initial guess for Newton's method.
_AHEAD = np.vander(NODES + 1, 3, increasing=True) @ np.linalg.inv(np.vander(NODES, 3, increasing=True))
_TOLERANCE, _ROUNDED = 1e-12, 1e-10
_ROUNDS, _MOST_ROUNDS = 8, 40
#: Smallest step length of the damped Newton method.
_SHORTEST = 1e-3


class Mechanics(Protocol):
    """The integrated system; ``step`` and ``stage`` define the time ``(step + NODES[stage])·h``."""

    def acceleration(self, step: int, stage: int, x: Array, v: Array) -> Array:
        """Returns the acceleration, shape (d,).

        Args:
            stage: Number of the stage, 0 to 2.
            x: Coordinates, shape (d,).
            v: Velocities, shape (d,).
        """

    def slopes(self, step: int, stage: int, x: Array, v: Array) -> tuple[Array, Array]:
        """Returns the derivatives of the acceleration with respect to coordinates and velocities.

        Args:
            stage: Number of the stage, 0 to 2.
            x: Coordinates, shape (d,).
            v: Velocities, shape (d,).

        Returns:
            Two matrices, shape (d, d).
        """


class Collocation:
    """Integrates a mechanical system; the stages' accelerations are found by Newton's method with a reused Jacobian.

    If this fails because friction is strongly nonlinear within a step, the Jacobian is evaluated at every stage.

    Args:
        system: The integrated system.
        step: Step h [s].
    """

    def __init__(self, system: Mechanics, step: float) -> None:
        self.system, self.step = system, step
        self._stages: Array | None = None
        self._inverse: Array | None = None

    def advance(self, k: int, x: Array, v: Array) -> tuple[Array, Array]:
        """Integrates one step.

        Args:
            x: Coordinates at its start, shape (d,).
            v: Velocities at its start, shape (d,).

        Returns:
            Coordinates and velocities at its end, shape (d,) each.

        Raises:
            SimulationError: Newton's method does not converge.
        """
        h = self.step
        guess = np.zeros((3, len(x))) if self._stages is None else _AHEAD @ self._stages
        stages = None if self._inverse is None else self._solve(self._inverse, k, x, v, guess, _ROUNDS)
        if stages is None:
            by_state, by_speed = self.system.slopes(k, 1, x + 0.5 * h * v, v)
            self._inverse = np.asarray(
                np.linalg.inv(np.eye(3 * len(x)) - h**2 * np.kron(_A @ _A, by_state) - h * np.kron(_A, by_speed))
            )
            stages = self._solve(self._inverse, k, x, v, guess, _MOST_ROUNDS)
        if stages is None:
            stages = self._search(k, x, v, guess)
        if stages is None:
            raise SimulationError(
                "the plant cannot be integrated",
                where=f"t = {k * self.step:.4g} s",
                got=f"step {self.step:g} s",
                remedy="take a shorter step, softer gains, or a wider smooth sign of friction",
            )
        self._stages = stages
        return x + h * v + h**2 * (_B @ _A @ stages), v + h * (_B @ stages)

    def _solve(self, inverse: Array, k: int, x: Array, v: Array, stages: Array, rounds: int) -> Array | None:
        h, last = self.step, np.inf
        for turn in range(rounds):
            V, left = self._left(k, x, v, stages)[1:]
            change = (inverse @ left.ravel()).reshape(stages.shape)
            stages = stages + change
            size, scale = h * float(np.abs(change).max()), 1.0 + float(np.abs(V).max())
            if not np.isfinite(size):
                return None
            if size <= _TOLERANCE * scale:
                return stages
            if size > 0.7 * last and turn > 2:  # rounding level reached, or no convergence with this Jacobian
                return stages if size <= _ROUNDED * scale else None
            last = size
        return None

    def _left(self, k: int, x: Array, v: Array, stages: Array) -> tuple[Array, Array, Array]:
        """Coordinates and velocities at the stages, and the residuals of their accelerations, shape (3, d) each."""
        h = self.step
        V = v + h * (_A @ stages)
        X = x + h * NODES[:, None] * v + h**2 * (_A @ (_A @ stages))
        return X, V, np.array([self.system.acceleration(k, i, X[i], V[i]) for i in range(3)]) - stages

    def _search(self, k: int, x: Array, v: Array, stages: Array) -> Array | None:
        """Damped Newton method with the Jacobian of every stage, for friction that is nonlinear within a step."""
        h, d = self.step, len(x)
        X, V, left = self._left(k, x, v, stages)
        for _ in range(_MOST_ROUNDS):
            slopes = [self.system.slopes(k, i, X[i], V[i]) for i in range(3)]
            rows = [h**2 * np.kron((_A @ _A)[i], S) + h * np.kron(_A[i], D) for i, (S, D) in enumerate(slopes)]
            change = np.linalg.solve(np.eye(3 * d) - np.vstack(rows), left.ravel()).reshape(stages.shape)
            if h * float(np.abs(change).max()) <= _ROUNDED * (1.0 + float(np.abs(V).max())):
                return stages + change
            size, damping = np.linalg.norm(left), 1.0
            while damping > _SHORTEST:
                X, V, left = self._left(k, x, v, stages + damping * change)
                if np.linalg.norm(left) < (1.0 - 0.1 * damping) * size:
                    break
                damping /= 2
            else:
                return None
            stages = stages + damping * change
        return None
