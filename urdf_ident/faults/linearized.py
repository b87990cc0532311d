"""The robot identified from the logs themselves, and derivatives of its torques: the point about which faults are linear."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pinocchio as pin

from ..linalg import Array, BoolArray, IntArray
from ..model.prior import lumped_inertials
from ..model.rigid_bodies import regressor, rigid_torque, tip_jacobians
from ..model.robot import Robot
from .candidates import Interpretation
from .case import Case
from .friction import friction_columns
from .load_friction import LoadedFit
from .motion_samples import MotionSamples
from .trials import Trials

#: Step of the numerical derivatives with respect to positions, velocities and accelerations [rad or m, and per s, s²].
_STEP = 1e-4


@dataclass(frozen=True, eq=False)
class LinearizedCase:
    """A case and the derivatives of its torques.

    Attributes:
        left: Held-out relative residual of each row as logged, shape (n,).
        inertial: Independent columns of the bodies, shape (N, n, m), scaled.
        of_last_body: Those of the last body among them, shape (N, n, k).
        friction: Columns of each joint's friction, rotor and offset, shape (n, N, f), scaled.
        slopes: Derivatives of all torques by a joint's position, velocity and acceleration, shape (n, 3, N, n).
        placed: Derivatives of all torques by the placement of a joint's axis on its parent, along and about two perpendicular
            directions, shape (n, 4, N, n); zero where it moves the whole robot.
        pulls: Torques of constant forces on the last body along the base's axes, and of a spring from it to the base's origin;
            together of a spring to any point, shape (N, n, 4) [m, m, m, m²].
        fitted: Efforts of the identified robot, shape (N, n); used for columns that depend on an effort's power or size,
            because measured efforts would explain their own errors.
        bodies: Torques of the identified bodies alone, shape (N, n) [N·m or N].
        gravities: Torques of the identified bodies under a unit of gravity along each of the base's axes, shape (N, n, 3).
        weight: Gravity torque of the URDF, shape (N, n) [N·m or N].
        size: Root mean square of each effort about its mean, shape (n,) [N·m or N].
    """

    case: Case
    left: Array
    samples: MotionSamples
    inertial: Array
    of_last_body: Array
    friction: Array
    slopes: Array
    placed: Array
    pulls: Array
    fitted: Array
    bodies: Array
    gravities: Array
    weight: Array
    size: Array

    @property
    def robot(self) -> Robot:
        """The robot, whose inertias only the weight uses."""
        return self.case.robot

    @property
    def n(self) -> int:
        """Number of joints."""
        return self.case.robot.n

    @cached_property
    def moving(self) -> list[int]:
        """Joints that move."""
        return [int(j) for j in np.flatnonzero(self.case.moves)]

    @cached_property
    def block(self) -> IntArray:
        """Block of time of each sample, with repetitions of a motion in one, shape (N,)."""
        return self.case.by_motion().samples.block

    @classmethod
    def of(cls, trials: Trials) -> LinearizedCase:
        """Linearises a case as logged about the robot identified from it."""
        case, fit = trials.case, LoadedFit.of(trials)
        robot, samples = case.robot, case.samples
        found = trials.evidence(Interpretation.as_logged(robot.n))
        theta = np.zeros(fit.columns.shape[2])
        theta[found.active] = fit.rigid / found.scale
        bodies, zero = fit.columns @ theta, np.zeros_like(samples.q)
        gravities = [regressor(robot.with_gravity(axis), samples.q, zero, zero) @ theta for axis in np.eye(3)]
        return cls(
            case,
            trials.as_logged.left,
            samples,
            fit.inertial,
            fit.inertial[:, :, np.flatnonzero(found.active) >= len(found.active) - 10],
            fit.friction[:, :, :-1],
            _slopes(robot, samples, theta, fit.drag[:, :-1], fit.sizes),
            _placed(robot, samples, theta, bodies),
            _pulls(robot, samples.q),
            fit.fitted,
            bodies,
            np.stack(gravities, axis=2),
            regressor(robot, samples.q, zero, zero) @ lumped_inertials(robot).ravel(),
            found.size,
        )

    def torque_by(self, j: int, error: Array, rate: Array, growth: Array) -> Array:
        """Effect of a small error of a joint's positions and its derivatives on all torques, shape (N, n).

        Args:
            error, rate, growth: Shape (N,) each [rad or m, and per s, s²].
        """
        by_position, by_velocity, by_acceleration = self.slopes[j]
        return np.asarray(by_position * error[:, None] + by_velocity * rate[:, None] + by_acceleration * growth[:, None])

    def in_row(self, j: int, *columns: Array) -> Array:
        """Columns that act in one joint's row, shape (N, n, k)."""
        out = np.zeros((len(self.samples), self.n, len(columns)))
        out[:, j] = np.column_stack(columns)
        return out

    def drives(self, j: int) -> BoolArray:
        """Joints that a motor of this joint drives, itself included, shape (n,)."""
        A = np.eye(self.n) if self.samples.reduction is None else self.samples.reduction
        return np.asarray((A[A[:, j] != 0] != 0).any(axis=0))


def _slopes(robot: Robot, samples: MotionSamples, theta: Array, drag: Array, sizes: Sequence[Array]) -> Array:
    """Derivatives of all torques by each joint's position, velocity and acceleration, shape (n, 3, N, n)."""
    smooth = drag.copy()  # Coulomb friction has no slope; rotor inertia and viscous friction do
    smooth[:, ~np.isin(np.arange(drag.shape[1]) % 6, (0, 2))] = 0.0
    slopes = np.empty((robot.n, 3, len(samples.q), robot.n))
    before = rigid_torque(robot, theta, samples.q, samples.v, samples.a) + _friction(samples, sizes, smooth)
    for j in range(robot.n):
        step = _STEP * (np.arange(robot.n) == j)
        places = (samples.q + step, samples.v, samples.a), (samples.q, samples.v + step, samples.a)
        for k, state in enumerate((*places, (samples.q, samples.v, samples.a + step))):
            moved = rigid_torque(robot, theta, *state) + _friction(samples.with_motion(*state), sizes, smooth)
            slopes[j, k] = (moved - before) / _STEP
    return slopes


def _pulls(robot: Robot, q: Array) -> Array:
    """Torques of forces on the last body, see :attr:`LinearizedCase.pulls`."""
    J, place = tip_jacobians(robot, q, pin.LOCAL_WORLD_ALIGNED)
    forces = J[:, :3].swapaxes(1, 2)
    return np.concatenate([forces, forces @ place[:, :, None]], axis=2)


def _placed(robot: Robot, samples: MotionSamples, theta: Array, torque: Array) -> Array:
    """Derivatives by the axes' placements, shape (n, 4, N, n), of all torques, shape (N, n) for the given axes."""
    out = np.zeros((robot.n, 4, *torque.shape))
    for j, body in enumerate(robot.place_in_tree):
        if robot.parents[body] < 0:
            continue
        across = np.linalg.svd(robot.axes[body][None, :])[2][1:]
        for k, twist in enumerate(np.kron(np.eye(2), across)):
            model = robot.model.copy()
            model.jointPlacements[body + 1] = model.jointPlacements[body + 1] * pin.exp6(_STEP * twist)
            out[j, k] = (regressor(replace(robot, model=model), samples.q, samples.v, samples.a) @ theta - torque) / _STEP
    return out


def _friction(motion: MotionSamples, sizes: Sequence[Array], drag: Array) -> Array:
    """Rotor and friction torque of every joint, shape (N, n), from the sizes of the columns and their coefficients."""
    return np.column_stack([friction_columns(motion, j) @ (own / sizes[j]) for j, own in enumerate(drag)])
