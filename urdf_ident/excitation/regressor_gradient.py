"""Rigid-body regressor of many samples at once, and its exact gradient in reverse mode.

One entry of the regressor pairs the axis of joint j with the motion of body i ≥ j, both in the frame of body i:
``Y[j, φ] = ⟨ŝ_ijᵀ Â_i, P(φ)⟩``, where ŝ_ij (3, 4) is the twist of the axis, ``Â_i = [[ω̇]× + [ω]×², a + ω×v]`` (3, 4) the
acceleration field of the body minus gravity, and P(φ) the pseudo-inertia (docs/theory.md §6), linear in the ten parameters.
The forward recursion of twists, velocities and accelerations is linear in each, so its reverse is short, and a gradient
costs about twice an evaluation. Tested against Pinocchio and finite differences.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from ..linalg import Array
from ..model.inertia import PSEUDO_BASIS
from ..model.robot import Robot


@dataclass(frozen=True, eq=False)
class Sweep:
    """Intermediate results of an evaluation, for its gradient.

    Attributes:
        transforms: Per body, transforms of motion vectors from its parent, shape (N, 6, 6).
        outer: Per body, twists of preceding axes, velocity and acceleration of its parent, in its frame, (N, 6, i + 2).
        velocity: Per body, shape (N, 6): linear, angular.
        twists: Per body, axes 0…i as ŝ (N, i + 1, 3, 4).
        fields: Per body, Â (N, 3, 4).
        rates: Velocities of the joints of the tree, shape (N, n_bodies).
    """

    transforms: list[Array]
    outer: list[Array]
    velocity: list[Array]
    twists: list[Array]
    fields: list[Array]
    rates: Array


class RigidRegressor:
    """Joint-torque regressor of a robot for whole motions.

    Args:
        robot: The robot.
    """

    def __init__(self, robot: Robot) -> None:
        self.robot, self.n, self.parents, self.axes = robot, len(robot.tree_joints), robot.parents, robot.twists
        #: For each body, the axes that move it, root first, its own last.
        self.paths = [self._path(i) for i in range(self.n)]
        self._crosses: list[Array] = []
        self._transform: list[tuple[bool, Array, Array, Array]] = []
        for axis, joint, prismatic in zip(robot.twists, list(robot.model.jointPlacements)[1:], robot.slides, strict=True):
            placement, cross = np.asarray(joint.toActionMatrixInverse()), np.asarray(pin.Motion(axis).action)
            #: exp(−q ad) = 1 − sin q·ad + (1 − cos q)·ad² for a revolute joint through the origin, 1 − q·ad for a prismatic one
            self._transform.append((not prismatic, placement, cross @ placement, cross @ cross @ placement))
            self._crosses.append(cross)
        self._gravity = np.concatenate([-robot.gravity, np.zeros(3)])
        self._basis = PSEUDO_BASIS.reshape(10, 16).T

    def _path(self, i: int) -> list[int]:
        return [*(self._path(self.parents[i]) if self.parents[i] >= 0 else []), i]

    def evaluate(self, q: Array, v: Array, a: Array) -> tuple[Array, Sweep]:
        """Computes the regressor.

        Args:
            q: Joint positions, shape (N, n) [rad or m].
            v: Joint velocities, shape (N, n) [rad/s or m/s].
            a: Joint accelerations, shape (N, n) [rad/s² or m/s²].

        Returns:
            Shape (N, n, 10 n_bodies) as ``model.rigid_bodies.regressor``, and the input of :meth:`gradient`.
        """
        samples = len(q)
        q, v, a = self.robot.positions_in_tree(q), self.robot.spread(v), self.robot.spread(a)
        out = np.zeros((samples, self.n, 10 * self.n))
        moved: list[Array] = []
        sweep = Sweep([], [], [], [], [], v)
        still = np.zeros((samples, 6, 2))
        still[:, :, 1] = self._gravity
        for i, parent in enumerate(self.parents):
            turns, one, first, second = self._transform[i]
            at = q[:, i, None, None]
            transform = one - np.sin(at) * first + (1.0 - np.cos(at)) * second if turns else one - at * first
            outer = transform @ (moved[parent] if parent >= 0 else still)
            axis, depth = self.axes[i], outer.shape[2] - 2
            state = np.empty((samples, 6, depth + 3))
            state[:, :, :depth] = outer[:, :, :depth]
            state[:, :, depth] = axis
            velocity = outer[:, :, -2] + axis * v[:, i, None]
            state[:, :, -2] = velocity
            state[:, :, -1] = outer[:, :, -1] + axis * a[:, i, None] - (velocity @ self._crosses[i].T) * v[:, i, None]
            twists, field = _hats(state[:, :, : depth + 1]), _field(velocity, state[:, :, -1])
            rows = (twists.swapaxes(2, 3).reshape(samples, 4 * (depth + 1), 3) @ field).reshape(samples, depth + 1, 16)
            out[:, self.paths[i], 10 * i : 10 * i + 10] = rows @ self._basis
            moved.append(state)
            sweep.transforms.append(transform)
            sweep.outer.append(outer)
            sweep.velocity.append(velocity)
            sweep.twists.append(twists)
            sweep.fields.append(field)
        return self.robot.coupling.T @ out if self.robot.coupled else out, sweep

    def gradient(self, weight: Array, sweep: Sweep) -> tuple[Array, Array, Array]:
        """Computes the gradient of ``Σ weight · Y`` with respect to the motion.

        Args:
            weight: Shape (N, n, 10 n_bodies).
            sweep: From :meth:`evaluate`.

        Returns:
            Gradients with respect to q, v and a, shapes (N, n).
        """
        samples = len(weight)
        if self.robot.coupled:
            weight = self.robot.coupling @ weight
        by_q, by_v, by_a = (np.zeros((samples, self.n)) for _ in range(3))
        bars: dict[int, Array] = {}
        for i in range(self.n - 1, -1, -1):
            path, axis, parent = self.paths[i], self.axes[i], self.parents[i]
            depth, v = len(path) - 1, sweep.rates[:, i, None]
            pair = (weight[:, path, 10 * i : 10 * i + 10] @ self._basis.T).reshape(samples, depth + 1, 4, 4)
            twists, field, velocity = sweep.twists[i], sweep.fields[i], sweep.velocity[i]
            by_field = twists.swapaxes(1, 2).reshape(samples, 3, -1) @ pair.reshape(samples, -1, 4)
            by_twist = (field @ pair.reshape(samples, -1, 4).swapaxes(1, 2)).reshape(samples, 3, depth + 1, 4)
            bar = bars.pop(i, np.zeros((samples, 6, depth + 3)))
            bar[:, :3, : depth + 1] += by_twist[..., 3]  # the reverse of _hats
            for k, (row, column) in enumerate(((2, 1), (0, 2), (1, 0)), 3):
                bar[:, k, : depth + 1] += by_twist[:, row, :, column] - by_twist[:, column, :, row]
            by_velocity, by_acceleration = _field_gradient(by_field, velocity)
            bar[:, :, -1] += by_acceleration
            cross = self._crosses[i]
            turned = bar[:, :, -1] @ cross  # gradient of −(velocity × …): see the bias term of the acceleration
            bar[:, :, -2] += by_velocity - turned * v
            by_a[:, i] = bar[:, :, -1] @ axis
            by_v[:, i] = bar[:, :, -2] @ axis - (turned * velocity).sum(axis=1)
            moving = bar[:, :, [*range(depth), depth + 1, depth + 2]]
            by_q[:, i] = -((cross.T @ moving) * sweep.outer[i]).sum(axis=(1, 2))
            if parent >= 0:
                back = sweep.transforms[i].swapaxes(1, 2) @ moving
                bars[parent] = bars[parent] + back if parent in bars else back
        return self.robot.reduced(by_q), self.robot.reduced(by_v), self.robot.reduced(by_a)


def _product(x: Array, y: Array) -> Array:
    """Returns the cross products of rows, shapes (N, 3)."""
    out = np.empty_like(x)
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        out[:, i] = x[:, j] * y[:, k] - x[:, k] * y[:, j]
    return out


def _hats(twists: Array) -> Array:
    """Converts twists (N, 6, k) to matrices ``[[ω]×, v]``, shape (N, k, 3, 4)."""
    out = np.zeros((twists.shape[0], twists.shape[2], 3, 4))
    linear, angular = twists[:, :3], twists[:, 3:]
    out[..., 3] = linear.swapaxes(1, 2)
    out[..., 0, 1], out[..., 1, 0] = -angular[:, 2], angular[:, 2]
    out[..., 0, 2], out[..., 2, 0] = angular[:, 1], -angular[:, 1]
    out[..., 1, 2], out[..., 2, 1] = -angular[:, 0], angular[:, 0]
    return out


def _field(velocity: Array, acceleration: Array) -> Array:
    """Returns ``[[ω̇]× + [ω]×², a + ω×v]``, shape (N, 3, 4)."""
    v, w = velocity[:, :3], velocity[:, 3:]
    out = np.empty((len(v), 3, 4))
    out[:, :, :3] = w[:, :, None] * w[:, None, :]
    square = (w * w).sum(axis=1)
    for k in range(3):
        out[:, k, k] -= square
    x, y, z = acceleration[:, 3], acceleration[:, 4], acceleration[:, 5]
    out[:, 0, 1] -= z
    out[:, 1, 0] += z
    out[:, 0, 2] += y
    out[:, 2, 0] -= y
    out[:, 1, 2] -= x
    out[:, 2, 1] += x
    out[:, :, 3] = acceleration[:, :3] + _product(w, v)
    return out


def _field_gradient(bar: Array, velocity: Array) -> tuple[Array, Array]:
    """Reverse of :func:`_field`: gradients with respect to velocity and acceleration, shapes (N, 6)."""
    v, w = velocity[:, :3], velocity[:, 3:]
    square, line = bar[:, :, :3], bar[:, :, 3]
    trace = square[:, 0, 0] + square[:, 1, 1] + square[:, 2, 2]
    by_w = ((square + square.swapaxes(1, 2)) @ w[:, :, None])[:, :, 0] - 2.0 * trace[:, None] * w + _product(v, line)
    by_velocity = np.concatenate([_product(line, w), by_w], axis=1)
    turn = np.stack(
        [square[:, 2, 1] - square[:, 1, 2], square[:, 0, 2] - square[:, 2, 0], square[:, 1, 0] - square[:, 0, 1]], axis=1
    )
    return by_velocity, np.concatenate([line, turn], axis=1)
