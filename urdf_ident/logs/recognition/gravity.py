"""Regression of unknown columns on the torques of a joint: gravity in any direction, inertia, friction."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from ...linalg import Array, lstsq, positive
from ...model.robot import Robot


@dataclass(frozen=True, eq=False)
class CandidateMotion:
    """The motion given by candidate columns, and the torques that the URDF predicts for it.

    Attributes:
        velocity, acceleration: Shape (M, n) [rad/s or m/s; rad/s² or m/s²].
        gravity: Torque per unit of gravity along x, y, z of the base, shape (M, n, 3) [kg·m or kg].
        inertial: Torque without gravity, shape (M, n) [N·m or N].
    """

    velocity: Array
    acceleration: Array
    gravity: Array
    inertial: Array

    @classmethod
    def of(cls, robot: Robot, q: Array, v: Array, a: Array) -> CandidateMotion:
        """Computes the torques.

        Args:
            robot: The robot; its gravity vector is not used.
            q: Shape (M, n) [rad or m].
            v: Shape (M, n) [rad/s or m/s].
            a: Shape (M, n) [rad/s² or m/s²].
        """
        model = robot.model.copy()
        data = model.createData()
        whole, rates = robot.configuration(q), (robot.spread(v), robot.spread(a))
        gravity = np.empty((*q.shape, 3))
        inertial = np.empty(q.shape)
        model.gravity.linear = np.zeros(3)
        for k, state in enumerate(zip(whole, *rates, strict=True)):
            inertial[k] = robot.reduced(pin.rnea(model, data, *state))
        for axis in range(3):
            model.gravity.linear = np.eye(3)[axis]
            for k, c in enumerate(whole):
                gravity[k, :, axis] = robot.reduced(pin.computeGeneralizedGravity(model, data, c))
        return cls(v, a, gravity, inertial)


@dataclass(frozen=True, eq=False)
class Match:
    """Results of the regression of efforts on a motion, of effort column k at joint j.

    Attributes:
        explained: Shape (n, k): fraction of the variance explained by all terms, 0 to 1.
        gravity_share: Shape (n, k): fraction explained by gravity beyond inertia and friction, 0 to 1.
        gravity_share_of_rest: Shape (n, k): the same relative to the variance not explained by inertia and friction.
        effort_per_gravity: Shape (n, k, 3): effort per torque, times gravity along x, y, z [effort per N·m · m/s²].
        inertia: Shape (n, k): effort per N·m of inertial torque, with its sign; 0 at a joint that gravity does not load.
        inertia_without_rotor: Shape (n, k): the same of all joints, in a regression without rotor inertia and gravity.
    """

    explained: Array
    gravity_share: Array
    gravity_share_of_rest: Array
    effort_per_gravity: Array
    inertia: Array
    inertia_without_rotor: Array


#: Columns of the regression after the constant and the two of friction, before gravity.
_ROTOR, _INERTIAL = 3, 4
#: Half-width of the smooth sign of dry friction, over the largest velocity.
_WIDTH = 0.02
#: Least change of the weight of a joint, over the largest inertial torque, for which gravity loads it.
_LOADED = 1e-3


def match(motion: CandidateMotion, efforts: Array) -> Match:
    """Regresses every effort column on the torques of every joint; efforts of shape (M, k)."""
    n, k = motion.velocity.shape[1], efforts.shape[1]
    explained, share, share_of_rest, inertia, without_rotor = (np.zeros((n, k)) for _ in range(5))
    per_gravity = np.zeros((n, k, 3))
    centred = efforts - efforts.mean(axis=0)
    power = positive((centred**2).sum(axis=0))
    for j in range(n):
        v = motion.velocity[:, j]
        dry = np.tanh(v / max(_WIDTH * float(np.abs(v).max()), 1e-9))
        base = np.column_stack([np.ones(len(v)), v, dry, motion.acceleration[:, j], motion.inertial[:, j]])
        without_rotor[j] = _solve(np.delete(base, _ROTOR, axis=1), centred)[-1]
        squares = ((centred - base @ _solve(base, centred)) ** 2).sum(axis=0)
        weight = motion.gravity[:, j]
        if np.ptp(weight, axis=0).max() * 9.81 < _LOADED * max(float(np.abs(motion.inertial).max()), 1e-3):
            explained[j] = 1.0 - squares / power
            continue
        full = np.column_stack([base, weight])
        solution = _solve(full, centred)
        remaining = ((centred - full @ solution) ** 2).sum(axis=0)
        share[j] = np.clip((squares - remaining) / power, 0.0, 1.0)
        share_of_rest[j] = np.clip((squares - remaining) / positive(squares), 0.0, 1.0)
        explained[j] = np.clip(1.0 - remaining / power, 0.0, 1.0)
        per_gravity[j] = solution[_INERTIAL + 1 :].T
        inertia[j] = solution[_INERTIAL]
    return Match(explained, share, share_of_rest, per_gravity, inertia, without_rotor)


def _solve(columns: Array, values: Array) -> Array:
    """Least squares in columns of unit norm; other than in :func:`.scaled_lstsq`, columns of rounding errors count as zero."""
    scale = np.linalg.norm(columns, axis=0)
    scale = np.where(scale > 1e-9 * scale.max(), scale, np.inf)
    return np.asarray(lstsq(columns / scale, values, rcond=1e-6)[0] / scale[:, None])
