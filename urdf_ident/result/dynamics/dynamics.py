"""The terms of the identified equation of motion, and the identified robot as a Pinocchio model.

``torque(q, v, a) = M(q) a + coriolis(q, v) + gravity(q) + friction(v)``. The mass matrix includes reflected rotor inertias.
"""

from __future__ import annotations

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from ...errors import EstimationError, ModelError
from ...linalg import Array, positive
from ...model.rigid_bodies import with_inertias
from ...model.trained import without_inertia, without_joint_terms
from ..record import Record
from .intervals import joint_arrays, mass_matrix, require_rigid

#: Relative torque error at which forward dynamics has converged, and its maximum steps (load-dependent friction only).
_CONVERGED, _STEPS = 1e-12, 200


def gravity(ident: Record, q: ArrayLike) -> Array:
    """Returns the torque that holds the links against gravity.

    Args:
        q: Joint positions, shape (N, n) or (n,) [rad or m].

    Returns:
        Shape as ``q`` [N·m or N].

    Raises:
        ModelError: Elastic joints.
        ShapeError: The array does not fit.
    """
    (position,) = joint_arrays(ident, q=q)
    return _rigid(ident, position, np.zeros_like(position))


def coriolis(ident: Record, q: ArrayLike, v: ArrayLike) -> Array:
    """Returns the Coriolis and centrifugal torque ``C(q, v) v``.

    Args:
        q, v: Joint positions and velocities, shape (N, n) or (n,) [rad, rad/s or m, m/s].

    Returns:
        Shape as ``q`` [N·m or N].

    Raises:
        ModelError: Elastic joints.
        ShapeError: The arrays do not fit.
    """
    position, velocity = joint_arrays(ident, q=q, v=v)
    return _rigid(ident, position, velocity) - _rigid(ident, position, np.zeros_like(position))


def friction(ident: Record, v: ArrayLike, q: ArrayLike | None = None, a: ArrayLike | None = None) -> Array:
    """Returns the friction torque of all laws of the model, including offsets but not rotor inertia.

    Args:
        ident: The result, without elastic joints.
        v: Joint velocities, shape (N, n) or (n,) [rad/s or m/s].
        q: Joint positions, same shape [rad or m]; needed by laws that depend on the load or on the past motion.
        a: Joint accelerations, same shape [rad/s² or m/s²]; 0 if None. Only load-dependent laws use them.

    Returns:
        Shape as ``v`` [N·m or N].

    Raises:
        ModelError: The joints are elastic, or a law needs positions and none are given.
        ShapeError: The arrays do not fit.
    """
    zero = np.zeros_like(v, dtype=float)
    if q is None and any(applied.term.loaded or applied.term.name == "presliding" for applied in ident.model.terms):
        raise ModelError(
            "friction of this model depends on the position (load or presliding)",
            got="no q",
            remedy="call friction(v, q), or friction(v, q, a)",
        )
    velocity, position, acceleration = joint_arrays(ident, v=v, q=zero if q is None else q, a=zero if a is None else a)
    return ident.model.torque(without_inertia(ident.model, ident.theta), position, velocity, acceleration)


def forward(ident: Record, q: ArrayLike, v: ArrayLike, tau: ArrayLike) -> Array:
    """Forward dynamics: the acceleration at which the identified inverse dynamics gives this torque.

    Load-dependent friction makes the equation nonlinear in the acceleration; it is solved to machine precision.

    Args:
        q, v: Joint positions and velocities, shape (N, n) or (n,) [rad, rad/s or m, m/s].
        tau: Joint torques, same shape [N·m or N].

    Returns:
        Joint accelerations, shape as ``q`` [rad/s² or m/s²].

    Raises:
        ModelError: Elastic joints.
        EstimationError: The mass matrix is singular, or the equation has no solution (friction above the torque).
        ShapeError: The arrays do not fit.
    """
    arrays = joint_arrays(ident, q=q, v=v, tau=tau)
    accelerations = np.zeros_like(np.atleast_2d(arrays[0]))
    for a, position, velocity, torque in zip(accelerations, *map(np.atleast_2d, arrays), strict=True):
        mass, missing = mass_matrix(ident, position), torque - ident.torque(position, velocity, a)
        scale = positive(max(float(np.abs(torque).max()), float(np.abs(torque - missing).max())))
        for _ in range(_STEPS):
            if float(np.abs(missing).max()) <= _CONVERGED * scale:
                break
            try:
                a += np.linalg.solve(mass, missing)
            except np.linalg.LinAlgError as error:
                raise EstimationError(
                    "the mass matrix is singular at this pose",
                    got=position.tolist(),
                    remedy="identify with consistency.method: lmi",
                ) from error
            missing = torque - ident.torque(position, velocity, a)
        if float(np.abs(missing).max()) > 1e-6 * scale:
            raise EstimationError(
                "no acceleration has this torque",
                got=f"{np.abs(missing).max():.3g} N·m left after {_STEPS} steps",
                remedy="load-dependent friction above 1 is no friction: identify again",
            )
    return accelerations.reshape(arrays[0].shape)


def to_pinocchio(ident: Record) -> pin.Model:
    """Returns the identified robot as a Pinocchio model with inertias, ``armature``, ``damping`` and ``friction``.

    Inverse and forward dynamics of Pinocchio use inertias and armature; damping and Coulomb friction are for the caller (and
    for simulators built on it). If the joint has other laws, they are the closest pair over the speeds of the logs. The
    armature is diagonal: if a motor drives several joints, the coupling by its rotor is omitted.

    Returns:
        A new model, joints in the order of ``ident.model.robot.tree_joints``; those that mimic others are independent in it.

    Raises:
        ModelError: Elastic joints.
    """
    from .friction_curves import armature, equivalent_friction

    require_rigid(ident)
    robot, (damping, coulomb, _), rotors = ident.model.robot, equivalent_friction(ident), armature(ident)
    model = with_inertias(robot, ident.theta[: ident.model.n_inertial], np.array([rotors[name] for name in robot.joints]))
    model.damping = robot.in_tree(np.array([damping[name] for name in robot.joints]))
    level = robot.in_tree(np.array([coulomb[name] for name in robot.joints]))
    model.friction = level
    if hasattr(model, "lowerDryFrictionLimit"):  # Pinocchio 4 has one limit per direction
        model.lowerDryFrictionLimit = -level
    return model


def _rigid(ident: Record, q: Array, v: Array) -> Array:
    return ident.model.torque(without_joint_terms(ident.model, ident.theta), q, v, np.zeros_like(q))
