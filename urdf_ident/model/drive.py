"""The drive train between motors and joints (docs/theory.md §2): ``q_motor = A (q − offset)``, ``tau = Aᵀ tau_motor``.

A is square and constant: gear ratios on the diagonal (possibly negative), couplings off the diagonal. Only A and the
gains carry signs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..errors import ModelError
from ..files.documents import record
from ..linalg import Array, BoolArray, one_each, positive
from ..samples import ReadOnly


@dataclass(frozen=True, eq=False)
class Drive(ReadOnly):
    """Drive train of a robot with n joints; motor k is named after joint k.

    Attributes:
        reduction: The matrix A, shape (n, n) [motor rad per joint rad or m].
        gain: Torque per unit of logged effort, shape (n,) [N·m or N per A, V or N·m]; at the joint when the
            effort is logged on the joint side, at the motor when it is logged on the motor side.
        offset: Joint position at motor position zero, shape (n,) [rad or m].
        gain_origin: Source of the gains, in words.
        gain_error: Relative standard error of each gain if estimated, shape (n,), a fraction; None: unknown.
        effort_unit: SI unit of the training logs' efforts, which are those that the gains of a result are for; None: not known.
    """

    reduction: Array
    gain: Array
    offset: Array
    gain_origin: str = "effort is a torque"
    gain_error: Array | None = None
    effort_unit: str | None = None

    @classmethod
    def build(
        cls,
        n: int,
        *,
        reduction: ArrayLike | None = None,
        gain: ArrayLike | None = None,
        offset: ArrayLike | None = None,
        gain_origin: str | None = None,
    ) -> Drive:
        """Builds a drive from the values of a project file.

        Args:
            n: Number of joints.
            reduction: A as (n, n), or its diagonal (n,); identity if None.
            gain: Shape (n,), or one number for all; 1 if None.
            offset: Shape (n,) [rad or m]; 0 if None.
            gain_origin: Source of the gains.

        Raises:
            ModelError: Wrong lengths, a singular A, or a zero or non-finite gain.
        """
        try:
            matrix = np.eye(n) if reduction is None else np.asarray(reduction, dtype=float)
        except ValueError as error:
            raise ModelError("drive.reduction has rows of different lengths", expected=f"({n},) or ({n}, {n})") from error
        given = f"{len(matrix)} ratios" if matrix.ndim == 1 else f"a matrix of shape {matrix.shape}"
        matrix = np.diag(matrix) if matrix.ndim == 1 else matrix
        if matrix.shape != (n, n) or not np.isfinite(matrix).all():
            raise ModelError(
                "drive.reduction does not fit the joints", got=given, expected=f"{n} finite ratios, or a matrix of {n} x {n}"
            )
        scaled = matrix / positive(np.abs(matrix).max(axis=1, keepdims=True))
        if np.linalg.cond(scaled) > 1e10:
            raise ModelError(
                "drive.reduction is singular", remedy="every motor must move some joint, independently of the others"
            )
        gains = one_each("drive.gain", 1.0 if gain is None else gain, n, ModelError)
        if (gains == 0).any():
            raise ModelError("drive.gain is zero", remedy="give the torque per unit of logged effort")
        origin = gain_origin or ("effort is a torque" if gain is None else "project file")
        return cls(matrix, gains, one_each("drive.joint_offset", 0.0 if offset is None else offset, n, ModelError), origin)

    @property
    def n(self) -> int:
        """Number of joints."""
        return len(self.gain)

    @cached_property
    def coupled(self) -> BoolArray:
        """Shape (n,): True for joints whose motor also moves another joint, or that another motor also moves."""
        off = self.reduction - np.diag(np.diag(self.reduction))
        return np.asarray((off != 0).any(axis=0) | (off != 0).any(axis=1))

    @cached_property
    def row_mix(self) -> Array:
        """Shape (n, n): row k holds the weights of the joint rows in row k of the estimation problem.

        Identity for uncoupled axes; ``A⁻ᵀ`` for coupled ones, whose noise is independent at the actuators.
        """
        mix = np.linalg.inv(self.reduction).T
        mix[~self.coupled] = np.eye(self.n)[~self.coupled]
        return np.asarray(np.where(np.abs(mix) < 1e-14 * np.abs(mix).max(), 0.0, mix))

    @property
    def ratio(self) -> Array:
        """Gear ratio of each motor to its own joint, 1 if it does not move it, shape (n,) [motor rad per rad or m]."""
        diagonal = np.diag(self.reduction)
        return np.where(diagonal != 0, diagonal, 1.0)

    @property
    def geared(self) -> Array:
        """Shape (n, n): A with each row divided by the motor's :attr:`ratio`; identity without couplings."""
        return np.asarray(self.reduction / self.ratio[:, None])

    def rate_weights(self, axis: int, side: str) -> Array:
        """Returns the weights of the joint velocities in that of a joint or motor, and of its torque in the joint torques.

        Args:
            axis: Index of the joint or motor.
            side: "joint" or "motor".

        Returns:
            Shape (n,).
        """
        return np.asarray(np.eye(self.n)[axis] if side == "joint" else self.reduction[axis])

    def load_weights(self, axis: int, side: str) -> Array:
        """Returns the weights of the joint torques in the torque that a joint or motor transmits, shape (n,).

        Args:
            axis: Index of the joint or motor.
            side: "joint" or "motor".
        """
        return np.asarray(np.eye(self.n)[axis] if side == "joint" else np.linalg.inv(self.reduction)[:, axis])

    def joint_position(self, motor: Array) -> Array:
        """Converts motor positions to joint positions, shape (N, n) [rad or m].

        Args:
            motor: Shape (N, n) [rad].
        """
        return self.joint_rate(motor) + self.offset

    def joint_rate(self, motor: Array) -> Array:
        """Converts motor velocities (or accelerations) to joint ones, shape (N, n) [rad/s, m/s, rad/s² or m/s²].

        Args:
            motor: Shape (N, n) [rad/s or rad/s²].
        """
        return np.asarray(np.linalg.solve(self.reduction, np.asarray(motor).T).T)

    def motor_rate(self, joint: Array) -> Array:
        """Converts joint velocities to motor velocities: ``A v``, shape (N, n) [rad/s].

        Args:
            joint: Shape (N, n) [rad/s or m/s].
        """
        return np.asarray(joint @ self.reduction.T)

    def joint_torque(self, effort: Array, side: str) -> Array:
        """Converts logged efforts to joint torques, shape (N, n) [N·m or N].

        Args:
            effort: Shape (N, n) [N·m, N, A or V].
            side: "joint": ``gain · effort``; "motor": ``Aᵀ (gain · effort)``.
        """
        effort = np.asarray(effort)
        torque = effort if (self.gain == 1.0).all() else effort * self.gain
        return torque if side == "joint" else np.asarray(torque @ self.reduction)

    def as_dict(self) -> dict[str, Any]:
        """JSON form; floats are preserved exactly."""
        return {
            "reduction": self.reduction.tolist(),
            "gain": self.gain.tolist(),
            "joint_offset": self.offset.tolist(),
            "gain_origin": self.gain_origin,
            **({} if self.gain_error is None else {"gain_error": self.gain_error.tolist()}),
            **({} if self.effort_unit is None else {"effort_unit": self.effort_unit}),
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Drive:
        """Inverse of :meth:`as_dict`."""
        return record(cls, {**data, "offset": data["joint_offset"]})
