"""Number of inertial base parameters of a kinematic tree, from its geometry alone, without motion or regressor.

A change of a body's ten parameters is unobservable if two conditions hold: it does not affect its own joint (no momentum
about the axis for any reachable velocity, no moment of gravity), and the part that varies with the joint angle in parent
axes is unobservable there too; the constant part is attributed to the parent. Counting these directions joint by joint
gives the dimension of the null space (Wensing, Niemeyer and Slotine 2017, "observability in inertial parameter
identification": the recursive parameter nullspace algorithm).

The decision uses spans of velocities and of gravity in the body frames, where angles below :data:`ALIGNED` count as zero,
so that a URDF with rounded π/2 has the intended rank.
"""

from __future__ import annotations

import numpy as np

from ..linalg import Array, triangle
from .inertia import motion_cross, skew, symmetric, transform_matrix
from .robot import Robot

#: Angles [rad], and lengths relative to the mean joint offset, below this count as zero.
ALIGNED = 3e-5
#: The ten parameters vary with frequencies up to 2 in one joint angle: derivatives beyond the fourth are dependent.
_DERIVATIVES = 4


def geometric_rank(robot: Robot, rotor_inertia: bool = False) -> int:
    """Returns the number of inertial base parameters of a fixed-base tree of revolute and prismatic joints.

    Args:
        rotor_inertia: Whether every axis also has a rotor inertia, on the joint side.

    Returns:
        The rank of the regressor of inertial parameters and rotor inertias.
    """
    model = robot.model
    length = float(np.mean([np.linalg.norm(step.translation) for step in list(model.jointPlacements)[1:]])) or 1.0
    gravity = np.concatenate([-np.asarray(model.gravity.linear), np.zeros(3)])
    reach = {0: (np.zeros((6, 0)), _span(gravity[:, None]), np.zeros((0, 10)))}
    rank = 0
    for joint in range(1, model.njoints):
        placement, parent = model.jointPlacements[joint], reach[int(model.parents[joint])]
        axis = _axis(robot, joint)
        step = _motion(placement.rotation, placement.translation / length)
        turn = motion_cross(axis)
        carried = _closure(step @ parent[0], turn)
        velocity = _span(np.column_stack([carried, axis]))
        pull = _closure(step @ parent[1], turn)
        along = np.vstack([_momentum(axis, direction) for direction in carried.T] or [np.zeros((0, 10))])
        weight = np.vstack([_momentum(axis, direction) for direction in pull.T] or [np.zeros((0, 10))])
        own = _momentum(axis, axis)
        moved = [parent[2] @ transform_matrix(placement.rotation, placement.translation / length)]
        for _ in range(_DERIVATIVES + 1):
            moved.append(moved[-1] @ _drift(turn))
        felt = np.vstack([along, weight, *moved[1:]])
        if rotor_inertia:
            felt = np.vstack([np.column_stack([felt, np.zeros(len(felt))]), np.append(own, 1.0)])
        else:
            felt = np.vstack([felt, own])
        rank += _rank(felt)
        every = np.vstack([_momentum(axis, direction) for direction in velocity.T])
        reach[joint] = (velocity, pull, _rows(np.vstack([every, weight, *moved])))
    return rank


def _axis(robot: Robot, joint: int) -> Array:
    """Returns the joint's unit twist (linear, angular) in its own frame."""
    data = robot.model.joints[joint]
    frame = data.createData()
    data.calc(frame, np.eye(1, data.nq).ravel(), np.ones(data.nv))
    return np.asarray(frame.S).ravel()


def _motion(rotation: Array, translation: Array) -> Array:
    """Returns the matrix that transforms twists from the parent frame to the child frame, shape (6, 6)."""
    back = rotation.T
    return np.block([[back, -back @ skew(translation)], [np.zeros((3, 3)), back]])


_BASIS = np.zeros((10, 6, 6))
for _k, _unit in enumerate(np.eye(10)):
    _first = skew(_unit[1:4])
    _BASIS[_k] = np.block([[_unit[0] * np.eye(3), -_first], [_first, symmetric(_unit[4:])]])
_READ = np.linalg.pinv(_BASIS.reshape(10, 36).T)


def _momentum(axis: Array, twist: Array) -> Array:
    """Returns the coefficients of ``axisᵀ I twist`` in the ten parameters, shape (10,)."""
    return np.asarray(np.einsum("i,kij,j->k", axis, _BASIS, twist))


def _drift(turn: Array) -> Array:
    """Returns the rate of change of a body's ten parameters in parent axes as the joint moves; shape (10, 10)."""
    rates = np.einsum("ji,kjl->kil", turn, _BASIS) + np.einsum("kij,jl->kil", _BASIS, turn)
    return np.asarray(_READ @ rates.reshape(10, 36).T)


def _span(columns: Array) -> Array:
    """Returns an orthonormal basis of the column space, shape (6, r)."""
    left, values, _ = np.linalg.svd(columns, full_matrices=False)
    return np.asarray(left[:, values > ALIGNED * max(values.max(initial=0.0), 1e-300)])


def _closure(columns: Array, turn: Array) -> Array:
    """Returns the smallest subspace that contains the columns and is invariant under the joint's motion, shape (6, r)."""
    grown = [columns]
    for _ in range(_DERIVATIVES):
        grown.append(turn @ grown[-1])
    return _span(np.column_stack(grown))


def _rank(rows: Array) -> int:
    values = np.linalg.svd(rows, compute_uv=False)
    return int((values > ALIGNED * max(values.max(initial=0.0), 1e-300)).sum())


def _rows(rows: Array) -> Array:
    """Returns orthonormal rows with the same null space, shape (≤ 10, 10)."""
    _, values, right = np.linalg.svd(triangle(rows), full_matrices=False)
    return np.asarray(right[values > ALIGNED * max(values.max(initial=0.0), 1e-300)])
