"""The robot identified from the logs themselves, and derivatives of its torques: the point about which faults are linear."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise

import numpy as np
import pinocchio as pin

from ..linalg import Array, BoolArray, IntArray, positive, rms
from ..model.rigid_bodies import gravity_torques, regressor, rigid_torque, tip_jacobians, torques_by_gravity
from ..model.robot import Robot
from ..model.row_groups import Limb, spanning_anywhere
from ..parallel import each
from ..samples import one_way
from ..signals.filters import lowpass
from .evidence import TRUSTED, column_scale
from .friction import OF_ONE, VISCOUS, friction_columns, scaled_friction
from .motion_samples import MotionSamples, in_time
from .regression import JointColumns
from .thinned_logs import ThinnedPiece
from .trials import Trials

#: Step of the numerical derivatives with respect to positions, velocities and accelerations [rad or m, and per s, s²].
_STEP = 1e-4
#: Step in time of second derivatives [s].
_TIME_STEP = 1e-3
#: Friction per load from which one of the fits begins, the largest that a fit may have, and the steps of a fit.
_MUCH, _MOST, _STEPS = 0.3, 0.9, 6

#: Travel relative to a joint's range that does not yet count as a reversal.
_TURNED = 2e-3


@dataclass(frozen=True, eq=False)
class LinearizedCase:
    """Trials of samples, the robot identified from them, and the derivatives of its torques.

    Attributes:
        left: Held-out relative residual of each row as logged, shape (n,).
        size: Root mean square of each effort about its mean, shape (n,) [N·m or N].
        inertial: Independent columns of the regressor, shape (N, n, m), scaled.
        active: Mask of these in the regressor, shape (10 n,).
        friction: Columns of each joint's friction, rotor and offset, shape (n, N, f), scaled.
        theta: Inertial parameters, shape (10 n,).
        bodies: Torques of these alone, shape (N, n) [N·m or N].
        drag: Coefficients of the friction columns, shape (n, f).
        load_friction: Friction in proportion to the load, shape (N, n) [N·m or N].
    """

    trials: Trials
    left: Array
    size: Array
    inertial: Array
    active: BoolArray
    friction: Array
    theta: Array
    bodies: Array
    drag: Array
    load_friction: Array

    @classmethod
    def of(cls, trials: Trials) -> LinearizedCase:
        """Fits bodies and friction to all samples as logged."""
        samples, n, left, size = trials.samples, trials.robot.n, trials.as_logged.left, trials.as_logged.size
        friction, weights = scaled_friction(samples, range(n)), 1 / (np.clip(left, *TRUSTED) * size) ** 2
        theta, drag, (bodies, loaded) = (
            np.zeros(trials.robot.n_inertial),
            np.zeros_like(friction[:, 0]),
            np.zeros((2, *samples.q.shape)),
        )
        columns = np.zeros((len(samples), n, len(theta)))
        for limb in trials.limbs:
            joints, kept = list(limb.joints), spanning_anywhere(limb.robot)[0]
            own, places = regressor(limb.robot, *samples.of(joints))[:, :, kept], limb.columns[kept]
            scale, of_rows = column_scale(own), (friction[joints], weights[joints])
            x, drag[joints], bodies[:, joints], loaded[:, joints] = _with_load(samples, joints, own / scale, *of_rows)
            columns[:, np.array(joints)[:, None], places], theta[places] = own, x / scale
        scale = column_scale(columns)
        active = np.isfinite(scale)
        inertial = columns[:, :, active] / scale[active]
        return cls(trials, left, size, inertial, active, friction, theta, bodies, drag, loaded)

    @property
    def robot(self) -> Robot:
        """The robot, whose inertias only the weight uses."""
        return self.trials.robot

    @property
    def samples(self) -> MotionSamples:
        """The samples."""
        return self.trials.samples

    @property
    def n(self) -> int:
        """Number of joints."""
        return self.trials.robot.n

    @property
    def moving(self) -> list[int]:
        """Joints that move."""
        return self.trials.moving

    @cached_property
    def fitted(self) -> Array:
        """Efforts of the identified robot, shape (N, n) [N·m or N].

        For columns that depend on an effort's power or size, because measured efforts would explain their own errors.
        """
        return np.asarray(self.bodies + np.einsum("ink,ik->ni", self.friction, self.drag) + self.load_friction)

    @cached_property
    def gravities(self) -> Array:
        """Torques of the identified bodies under a unit of gravity along each of the base's axes, shape (N, n, 3)."""
        return torques_by_gravity(self.robot, self.theta, self.samples.q)

    @cached_property
    def weight(self) -> Array:
        """Gravity torque of the URDF, shape (N, n) [N·m or N]."""
        return gravity_torques(self.robot, self.samples.q)

    @cached_property
    def pulls(self) -> Array:
        """Torques of constant forces on the last body along the base's axes, and of a spring from it to the base's origin.

        Together of a spring to any point, shape (N, n, 4) [m, m, m, m²].
        """
        J, place = tip_jacobians(self.robot, self.samples.q, pin.LOCAL_WORLD_ALIGNED)
        forces = J[:, :3].swapaxes(1, 2)
        return np.concatenate([forces, forces @ place[:, :, None]], axis=2)

    @cached_property
    def slopes(self) -> Array:
        """Derivatives of all torques by each joint's position, velocity and acceleration, shape (n, 3, N, n)."""
        samples = self.samples
        state, slopes = np.stack([samples.q, samples.v, samples.a]), np.zeros((self.n, 3, *samples.q.shape))
        for limb in self.trials.limbs:
            joints = list(limb.joints)
            before = self._smooth_torque(limb, *state)
            for j in joints:
                for k in range(3):
                    moved = state.copy()
                    moved[k, :, j] += _STEP
                    slopes[j, k][:, joints] = (self._smooth_torque(limb, *moved) - before) / _STEP
        return slopes

    @cached_property
    def curvature(self) -> Array:
        """Second derivative in time of all torques but dry friction, shape (N, n) [N·m/s² or N/s²].

        That of the measured efforts would explain their own errors.
        """
        q, v, (a, jerk, snap), h = self.samples.q, self.samples.v, self.accelerations.swapaxes(0, 1), _TIME_STEP
        near = [(q + t * v + t**2 / 2 * a, v + t * a + t**2 / 2 * jerk, a + t * jerk + t**2 / 2 * snap) for t in (-h, 0.0, h)]
        out = np.empty_like(q)
        for limb in self.trials.limbs:
            before, now, after = (self._smooth_torque(limb, *state) for state in near)
            out[:, list(limb.joints)] = (before - 2 * now + after) / h**2
        return out

    @cached_property
    def accelerations(self) -> Array:
        """Accelerations and their first two derivatives, shape (N, 3, n)."""
        pieces = self.samples.whole.pieces
        return in_time(pieces, [item.part.a for item in pieces])

    @cached_property
    def _smooth_drag(self) -> Array:
        """Drag of rotor inertia and viscous friction per unit of their columns, shape (n, k); 0 for dry friction."""
        smooth = self.drag / positive(rms(np.stack([friction_columns(self.samples, j) for j in range(self.n)]), 1))
        smooth[:, ~np.isin(np.arange(smooth.shape[1]) % OF_ONE, (0, VISCOUS))] = 0.0
        return smooth

    def _smooth_torque(self, limb: Limb, q: Array, v: Array, a: Array) -> Array:
        """Torque of a limb in another motion, without dry friction, which has no slope, shape (N, joints)."""
        motion = self.samples.with_motion(q, v, a)
        friction = np.column_stack([friction_columns(motion, j) @ self._smooth_drag[j] for j in limb.joints])
        return np.asarray(rigid_torque(limb.robot, self.theta[limb.columns], *motion.of(limb.joints)) + friction)

    @cached_property
    def placed(self) -> Array:
        """Derivatives of all torques by the placement of a joint's axis on its parent, shape (n, 4, N, n).

        Along and about two directions perpendicular to the axis; zero where it moves the whole robot.
        """
        out = np.zeros((self.n, 4, *self.bodies.shape))
        for limb in self.trials.limbs:
            robot, joints = limb.robot, list(limb.joints)
            for j, body in zip(joints, robot.place_in_tree, strict=True):
                if robot.parents[body] < 0:
                    continue
                across = np.linalg.svd(robot.axes[body][None, :])[2][1:]
                for k, twist in enumerate(np.kron(np.eye(2), across)):
                    model = robot.model.copy()
                    model.jointPlacements[body + 1] = model.jointPlacements[body + 1] * pin.exp6(_STEP * twist)
                    theta, motion = self.theta[limb.columns], self.samples.of(limb.joints)
                    moved = rigid_torque(replace(robot, model=model), theta, *motion)
                    out[j, k][:, joints] = (moved - self.bodies[:, joints]) / _STEP
        return out

    @cached_property
    def efforts(self) -> Array:
        """Efforts and their first two derivatives, shape (N, 3, n)."""
        return in_time(self.samples.whole.pieces, self.samples.whole.efforts)

    @cached_property
    def late(self) -> Mapping[int, Array]:
        """Effect of a lead of each moving joint's positions by a second on all torques, shape (N, n) each."""
        return {j: self.torque_by(j, self.samples.v[:, j], *self.accelerations[:, :2, j].T) for j in self.moving}

    @cached_property
    def play(self) -> Mapping[int, Array]:
        """Place in the play of each moving joint's encoder and its first two derivatives, shape (N, 3) each."""
        found = _play(self.samples.whole.pieces, np.array(self.moving))
        return {j: found[:, :, k] for k, j in enumerate(self.moving)}

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


def _with_load(
    samples: MotionSamples, joints: Sequence[int], inertial: Array, friction: Array, weights: Array
) -> tuple[Array, Array, Array, Array]:
    """Fits torques ``Y θ + F f + c |Y θ| sign(v)`` by Gauss-Newton steps: gears have friction in proportion to their load.

    Ignored, it looks like asymmetric efforts, crosstalk or a wrong zero, and in a single log like a change along it. There is
    none where it would drive the joint, nor where that moves one way, because it then resembles a weight. Signs of loads that
    are wrong without it may hide it: the better of two minima is taken, reached from fits without it and with much of it.

    Args:
        joints: Joints whose rows are fitted, those of one limb.
        inertial: Shape (N, joints, m).
        friction: Shape (joints, N, f).
        weights: One over the variance of each row, shape (joints,).

    Returns:
        θ, f, shape (joints, f), and the torques of the bodies and of the friction by their load, shape (N, joints).
    """
    (count, n, m), tau, glides = inertial.shape, samples.tau[:, joints], samples.glides[:, joints]
    turns = samples.signs[:, joints, 0] * ~np.array([one_way(v) for v in samples.v[:, joints].T])

    def fit(load: Array, c: Array, own: Array) -> Array:
        """Coefficients of bodies and own columns about a load, shape (N, n), shape (n, m + k)."""
        grown = (1 + c * turns * np.sign(load))[:, :, None] * inertial
        design = JointColumns.of(grown, own, glides.T, np.zeros(count, dtype=np.int64))
        return design.regression.fit(design.products(tau[:, :, None]), weights[:, None])[0][0, :, :, 0]

    found = []
    simple = inertial @ fit(np.zeros((count, n)), np.zeros(n), friction)[0, :m]
    for c, load in ((np.zeros(n), simple), (np.full(n, _MUCH), simple)):
        for _ in range(_STEPS):
            x = fit(load, c, np.concatenate([friction, (turns * np.abs(load)).T[:, :, None]], axis=2))
            load, c = inertial @ x[0, :m], np.clip(c + x[:, -1], 0.0, _MOST)
        x = fit(load, c, friction)
        load = inertial @ x[0, :m]
        dragged = c * turns * np.abs(load)
        torque = load + np.einsum("ink,ik->ni", friction, x[:, m:]) + dragged
        squares = float(np.sum(((tau - torque) * glides) ** 2 @ weights))
        found.append((squares, x[0, :m], x[:, m:], load, dragged))
    return min(found, key=lambda item: item[0])[1:]


def _play(pieces: Sequence[ThinnedPiece], joints: IntArray) -> Array:
    """Position of a joint within its encoder's backlash, with its first two derivatives, at the samples used.

    1 if the joint pushes its encoder forwards, -1 backwards; while the encoder rests after a reversal, the joint moves from
    one to the other with constant acceleration.

    Args:
        pieces: Of the motion, in order.
        joints: The joints, shape (k,).

    Returns:
        Shape (N, 3, k) [1, 1/s, 1/s²].
    """
    ends = np.array([(item.part.q.min(axis=0), item.part.q.max(axis=0)) for item in pieces])[:, :, joints]
    least = _TURNED * (ends[:, 1].max(axis=0) - ends[:, 0].min(axis=0))
    return np.concatenate(each(partial(_play_of, joints, least), pieces))


def _play_of(joints: IntArray, least: Array, item: ThinnedPiece) -> Array:
    places = np.column_stack([_place(item.part.q[:, j], far) for j, far in zip(joints, least, strict=True)])
    place = lowpass(places, item.part.rate, item.cutoff)
    rate = np.gradient(place, axis=0) * item.part.rate
    return np.stack([place, rate, np.gradient(rate, axis=0) * item.part.rate], axis=1)[item.rows].copy()


def _place(q: Array, least: float) -> Array:
    """Position in the backlash of each sample, shape (N,), from turning points followed by more than ``least`` of travel."""
    rises = np.diff(q) > 0
    turns = [0, *(np.flatnonzero(rises[1:] != rises[:-1]) + 1), len(q) - 1]
    way, at, found = 0, 0, []
    for k in turns:
        step = float(q[k] - q[at])
        if way * step >= 0 and (way or abs(step) > least):
            way, at = way or int(np.sign(step)), k
        elif way and abs(step) > least:
            found.append((at, way))
            way, at = -way, k
    place, begin = np.full(len(q), float(way)), 0
    for (k, before), (end, _) in pairwise([*found, (len(q) - 1, 0)]):
        first = int(k - np.argmax(np.abs(q[begin : k + 1][::-1] - q[k]) > least)) if k > begin else k
        last = int(k + np.argmax(np.abs(q[k : end + 1] - q[k]) > least))
        place[begin:first] = before
        x = (np.arange(first, last) - first + 1) / max(last - first, 1)
        place[first:last] = before * (1 - 2 * x**2)
        begin = last
    return place
