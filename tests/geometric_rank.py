"""Oracle: the number of inertial base parameters of a robot from its geometry alone, without any regressor.

A change of a body's ten parameters is unobservable if two conditions hold: it does not affect its own joint
(no momentum about the axis for any reachable velocity, no moment of gravity), and the part that varies with the joint angle in
parent axes is unobservable there too; the constant part is attributed to the parent. Counting these directions joint by joint
gives the dimension of the null space (Wensing, Niemeyer and Slotine 2017, "observability in inertial parameter
identification": the recursive parameter nullspace algorithm). The decision uses spans of velocities and of gravity in the body
frames, where angles below `ALIGNED` count as zero, so that a URDF with rounded π/2 has the intended rank.
"""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from urdf_ident.linalg import Array
from urdf_ident.model.inertia import skew, symmetric, transform_matrix
from urdf_ident.model.robot import Robot

#: Angles [rad], and lengths relative to the mean joint offset, below this count as zero.
ALIGNED = 3e-5
#: The ten parameters vary with frequencies up to 2 in one joint angle: derivatives beyond the fourth are dependent.
DERIVATIVES = 4
#: The spatial inertia (linear before angular) is linear in the ten parameters: ``I = Σ theta_k SPATIAL_BASIS[k]``, (10, 6, 6).
SPATIAL_BASIS = np.zeros((10, 6, 6))
for _k, _unit in enumerate(np.eye(10)):
    _first = skew(_unit[1:4])
    SPATIAL_BASIS[_k] = np.block([[_unit[0] * np.eye(3), -_first], [_first, symmetric(_unit[4:])]])


def geometric_rank(robot: Robot, rotor_inertia: bool = False) -> int:
    """Returns the number of inertial base parameters of a fixed-base tree of revolute and prismatic joints.

    Args:
        rotor_inertia: Whether every axis also has a rotor inertia, on the joint side.

    Returns:
        The rank of the regressor of inertial parameters and rotor inertias.
    """
    length = float(robot.offsets.mean()) or 1.0
    gravity = np.concatenate([-robot.gravity, np.zeros(3)])
    reach = {-1: (np.zeros((6, 0)), _span(gravity[:, None]), np.zeros((0, 10)))}
    rank = 0
    for joint, (placement, axis) in enumerate(zip(robot.placements, robot.twists, strict=True)):
        scaled = np.array(placement)
        scaled[:3, 3] /= length
        parent, rotation, offset = reach[robot.parents[joint]], scaled[:3, :3], scaled[:3, 3]
        step, turn = pin.SE3(scaled).actionInverse, pin.Motion(axis).action
        carried = _closure(step @ parent[0], turn)
        velocity = _span(np.column_stack([carried, axis]))
        pull = _closure(step @ parent[1], turn)
        along = np.vstack([_momentum(axis, direction) for direction in carried.T] or [np.zeros((0, 10))])
        weight = np.vstack([_momentum(axis, direction) for direction in pull.T] or [np.zeros((0, 10))])
        own = _momentum(axis, axis)
        # rate of change of a body's ten parameters in parent axes as the joint moves
        rates = np.einsum("ji,kjl->kil", turn, SPATIAL_BASIS) + np.einsum("kij,jl->kil", SPATIAL_BASIS, turn)
        drift = _READ @ rates.reshape(10, 36).T
        moved = [parent[2] @ transform_matrix(rotation, offset)]
        for _ in range(DERIVATIVES + 1):
            moved.append(moved[-1] @ drift)
        rows = np.vstack([along, weight, *moved[1:]])
        if rotor_inertia:
            rows = np.vstack([np.column_stack([rows, np.zeros(len(rows))]), np.append(own, 1.0)])
        else:
            rows = np.vstack([rows, own])
        rank += _rank(rows)
        every = np.vstack([_momentum(axis, direction) for direction in velocity.T])
        reach[joint] = (velocity, pull, _rows(np.vstack([every, weight, *moved])))
    return rank


#: The ten parameters of a spatial inertia.
_READ = np.linalg.pinv(SPATIAL_BASIS.reshape(10, 36).T)


def _momentum(axis: Array, twist: Array) -> Array:
    """Returns the coefficients of ``axisᵀ I twist`` in the ten parameters, shape (10,)."""
    return np.asarray(np.einsum("i,kij,j->k", axis, SPATIAL_BASIS, twist))


def _span(columns: Array) -> Array:
    """Returns an orthonormal basis of the column space, shape (6, r)."""
    left, values, _ = np.linalg.svd(columns, full_matrices=False)
    return np.asarray(left[:, values > ALIGNED * values.max(initial=0.0)])


def _closure(columns: Array, turn: Array) -> Array:
    """Returns the smallest subspace that contains the columns and is invariant under the joint's motion, shape (6, r)."""
    grown = [columns]
    for _ in range(DERIVATIVES):
        grown.append(turn @ grown[-1])
    return _span(np.column_stack(grown))


def _rank(rows: Array) -> int:
    values = np.linalg.svd(rows, compute_uv=False)
    return int((values > ALIGNED * values.max(initial=0.0)).sum())


def _rows(rows: Array) -> Array:
    """Returns orthonormal rows with the same null space, shape (≤ 10, 10)."""
    _, values, right = np.linalg.svd(np.linalg.qr(rows, mode="r"), full_matrices=False)
    return np.asarray(right[values > ALIGNED * values.max(initial=0.0)])
