"""Estimation rows of a planned motion, weighted and reduced to base parameters, with their gradient.

They are the rows that identification will compute from the log: the columns of the model (including friction and rotor
inertia), mixed to actuator rows where the drive couples axes, each row group divided by its expected noise.

Of the rigid bodies, one entry of the regressor pairs the axis of joint j with the motion of body i ≥ j, both in the frame of
body i: ``Y[j, φ] = ⟨ŝ_ijᵀ Â_i, P(φ)⟩``, where ŝ_ij (3, 4) is the twist of the axis, ``Â_i = [[ω̇]× + [ω]×², a + ω×v]`` (3,
4) the acceleration field of the body minus gravity, and P(φ) the pseudo-inertia (docs/theory.md §6), linear in the ten
parameters. The forward recursion of twists, velocities and accelerations is linear in each, so its reverse is short, and a
gradient costs about twice an evaluation. Tested against Pinocchio and finite differences.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin

from ..errors import ModelError, check_shape
from ..friction import AxisMotion
from ..linalg import Array
from ..model.base import BaseParameters
from ..model.dynamic_model import DynamicModel
from ..model.inertia import PSEUDO_BASIS
from ..model.robot import Robot
from ..model.terms import SPRING_TERMS
from ..motion.trajectory import Trajectory
from ..samples import Segment


class BodyState(NamedTuple):
    """Intermediate results of an evaluation for one body i, for its gradient.

    Attributes:
        transform: Of motion vectors from its parent, shape (N, 6, 6).
        outer: Twists of preceding axes, velocity and acceleration of its parent, in its frame, (N, 6, i + 2).
        rate: Velocity of its joint, shape (N, 1).
        velocity: Shape (N, 6): linear, angular.
        twists: Axes 0…i as ŝ (N, i + 1, 3, 4).
        field: Â (N, 3, 4).
    """

    transform: Array
    outer: Array
    rate: Array
    velocity: Array
    twists: Array
    field: Array


class RigidRegressor:
    """Joint-torque regressor of a robot for whole motions.

    Args:
        robot: The robot.
    """

    def __init__(self, robot: Robot) -> None:
        self.robot, self.n, self.parents, self.axes = robot, len(robot.tree_joints), robot.parents, robot.twists
        #: For each body, the axes that move it, root first, its own last.
        self.paths = [[k - 1 for k in support if k > 0] for support in list(robot.model.supports)[1:]]
        self._crosses: list[Array] = []
        self._transform: list[tuple[bool, Array, Array, Array]] = []
        for axis, joint, prismatic in zip(robot.twists, list(robot.model.jointPlacements)[1:], robot.slides, strict=True):
            placement, cross = np.asarray(joint.toActionMatrixInverse()), np.asarray(pin.Motion(axis).action)
            #: exp(−q ad) = 1 − sin q·ad + (1 − cos q)·ad² for a revolute joint through the origin, 1 − q·ad for a prismatic one
            self._transform.append((not prismatic, placement, cross @ placement, cross @ cross @ placement))
            self._crosses.append(cross)
        self._gravity = np.concatenate([-robot.gravity, np.zeros(3)])
        self._basis = PSEUDO_BASIS.reshape(10, 16).T

    def evaluate(self, q: Array, v: Array, a: Array) -> tuple[Array, list[BodyState]]:
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
        moved, states = list[Array](), list[BodyState]()
        still = np.zeros((samples, 6, 2))
        still[:, :, 1] = self._gravity
        for i, parent in enumerate(self.parents):
            turns, one, first, second = self._transform[i]
            at = q[:, i, None, None]
            transform = one - np.sin(at) * first + (1.0 - np.cos(at)) * second if turns else one - at * first
            outer = transform @ (moved[parent] if parent >= 0 else still)
            axis, rate, depth = self.axes[i], v[:, i, None], outer.shape[2] - 2
            state = np.empty((samples, 6, depth + 3))
            state[:, :, :depth] = outer[:, :, :depth]
            state[:, :, depth] = axis
            velocity = outer[:, :, -2] + axis * rate
            state[:, :, -2] = velocity
            state[:, :, -1] = outer[:, :, -1] + axis * a[:, i, None] - (velocity @ self._crosses[i].T) * rate
            twists, field = _hats(state[:, :, : depth + 1]), _field(velocity, state[:, :, -1])
            rows = (twists.swapaxes(2, 3).reshape(samples, 4 * (depth + 1), 3) @ field).reshape(samples, depth + 1, 16)
            out[:, self.paths[i], 10 * i : 10 * i + 10] = rows @ self._basis
            moved.append(state)
            states.append(BodyState(transform, outer, rate, velocity, twists, field))
        return self.robot.coupling.T @ out if self.robot.coupled else out, states

    def gradient(self, weight: Array, states: list[BodyState]) -> tuple[Array, Array, Array]:
        """Computes the gradient of ``Σ weight · Y`` with respect to the motion.

        Args:
            weight: Shape (N, n, 10 n_bodies).
            states: From :meth:`evaluate`.

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
            depth, (transform, outer, rate, velocity, twists, field) = len(path) - 1, states[i]
            pair = (weight[:, path, 10 * i : 10 * i + 10] @ self._basis.T).reshape(samples, depth + 1, 4, 4)
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
            bar[:, :, -2] += by_velocity - turned * rate
            by_a[:, i] = bar[:, :, -1] @ axis
            by_v[:, i] = bar[:, :, -2] @ axis - (turned * velocity).sum(axis=1)
            moving = bar[:, :, [*range(depth), depth + 1, depth + 2]]
            by_q[:, i] = -((cross.T @ moving) * outer).sum(axis=(1, 2))
            if parent >= 0:
                back = transform.swapaxes(1, 2) @ moving
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


#: Step of the numerical derivative of a friction law [rad/s, rad/s², N·m …]; laws are smooth over 1e-4.
_STEP = 1e-7
#: Least half-width of the smooth sign during the optimisation, as a fraction of the velocity limit.
SOFTENING = 0.02


class RowState(NamedTuple):
    """Intermediate results of :meth:`PlannedRows.evaluate`, for the gradient: of the rigid bodies, motion of every term's
    axis, frozen rigid torque of load-dependent terms, shape (N, n), or None, and rigid regressor, shape (N, n, 10 n)."""

    bodies: list[BodyState]
    axes: list[AxisMotion]
    reference: Array | None
    full: Array


class PlannedRows:
    """Rows of a motion: ``W`` with ``cov(beta) = (WᵀW)⁻¹`` for the given noise.

    Args:
        model: The dynamic model, without terms with memory (see :func:`designable`).
        base: Its base parameters.
        noise: Expected standard deviation of each row group's torque, shape (n,) [N·m or N].
        scale: Factors of the base columns, shape (b,); 1: SI units.

    Raises:
        ModelError: An elastic model, whose rows depend on more than the link motion.
    """

    def __init__(self, model: DynamicModel, base: BaseParameters, noise: Array, scale: Array | None = None) -> None:
        if not model.is_rigid:
            raise ModelError("motions for elastic joints are designed on the rigid model", remedy="set model.elastic: false")
        check_shape("noise", np.shape(noise), (model.n,))
        self.model, self.base = model, base
        self.noise = np.asarray(noise, dtype=float)
        self.scale = np.ones(len(base)) if scale is None else np.asarray(scale, dtype=float)
        check_shape("scale", self.scale.shape, (len(base),))
        self.rigid = RigidRegressor(model.robot)
        self._mix = model.drive.row_mix / self.noise[:, None]
        self._spread = self._mix @ model.distribution
        inside = base.independent < model.n_inertial
        self._inertial, self._applied = base.independent[inside], base.independent[~inside] - model.n_inertial
        self._cut = int(inside.sum())
        self._diagonal = bool(np.array_equal(model.drive.row_mix, np.eye(model.n)))
        self.theta0 = model.robot.inertials.reshape(-1)

    def evaluate(self, q: Array, v: Array, a: Array) -> tuple[Array, RowState]:
        """Computes the weighted rows, shape (N, n, b), of a motion, shapes (N, n), and the input of :meth:`gradient`."""
        full, bodies = self.rigid.evaluate(q, v, a)
        reference = full @ self._reference_theta if self.model.loaded else None
        planned = Segment("planned", 0.0, 0.0, q, v, a, reference_torque=reference)
        axes = [self.model.axis_motion(planned, applied) for applied in self.model.terms]
        values = [applied.term.columns(axis) for applied, axis in zip(self.model.terms, axes, strict=True)]
        terms = np.hstack([np.zeros((len(q), 0)), *values])[:, self._applied]
        inertial = full[:, :, self._inertial]
        out = np.empty((len(q), self.model.n, len(self.base)))
        out[:, :, : self._cut] = inertial / self.noise[:, None] if self._diagonal else self._mix @ inertial
        out[:, :, self._cut :] = terms[:, None, :] * self._spread[:, self._applied]
        return out * self.scale, RowState(bodies, axes, reference, full)

    def along(self, trajectory: Trajectory, rate: float = 100.0) -> Array:
        """Returns the rows of a whole motion.

        Args:
            rate: Samples per second [Hz]; more if that gives fewer than two samples per parameter.

        Returns:
            Shape (N·n, b) [standard deviations per unit of each base parameter], all samples of one row group together.
        """
        count = max(2 * len(self.base), round(trajectory.duration * rate))
        rows, _ = self.evaluate(*trajectory.evaluate((np.arange(count) + 0.5) * trajectory.duration / count))
        return rows.swapaxes(0, 1).reshape(-1, len(self.base))

    def torque(self, state: RowState) -> Array:
        """Returns the torque of the URDF's rigid bodies on the evaluated motion, shape (N, n) [N·m or N]."""
        return np.asarray(state.full @ self.theta0)

    def gradient(self, weight: Array, state: RowState, torque_weight: Array | None = None) -> tuple[Array, Array, Array]:
        """Computes the gradient of ``Σ weight · W + Σ torque_weight · torque`` with respect to the motion.

        Args:
            weight: Shape (N, n, b).
            state: From :meth:`evaluate`.
            torque_weight: Shape (N, n), or None.

        Returns:
            Gradients with respect to q, v and a, shapes (N, n).
        """
        weight = weight * self.scale
        rigid = np.zeros_like(state.full)
        inertial = weight[:, :, : self._cut]
        rigid[:, :, self._inertial] = inertial / self.noise[:, None] if self._diagonal else self._mix.T @ inertial
        sums = {name: np.zeros(weight.shape[:2]) for name in ("v", "a", "reference_torque")}
        by_term = np.zeros((len(weight), self._spread.shape[1]))
        by_term[:, self._applied] = (weight[:, :, self._cut :] * self._spread[:, self._applied]).sum(axis=1)
        for (applied, place), axis in zip(self.model.placed_terms, state.axes, strict=True):
            bar = by_term[:, place.start - self.model.n_inertial : place.stop - self.model.n_inertial]
            if not bar.any():
                continue
            law = applied.term  # depends on single samples, so that one shifted evaluation covers all samples
            for name in ("a",) if law.name == "rotor_inertia" else ("v", "reference_torque") if law.loaded else ("v",):
                here = getattr(axis, name)
                if here is None:
                    continue
                ends = [law.columns(replace(axis, **{name: here + step})) for step in (_STEP, -_STEP)]
                slope = ((ends[0] - ends[1]) * bar).sum(axis=1) / (2 * _STEP)
                weights = self.model.drive.load_weights if name == "reference_torque" else self.model.drive.rate_weights
                sums[name] += slope[:, None] * weights(applied.axis, applied.side)
        if torque_weight is not None:
            rigid += torque_weight[:, :, None] * self.theta0
        if state.reference is not None:
            rigid += sums["reference_torque"][:, :, None] * self._reference_theta
        by_q, by_v, by_a = self.rigid.gradient(rigid, state.bodies)
        return by_q, by_v + sums["v"], by_a + sums["a"]

    @property
    def _reference_theta(self) -> Array:
        return self.theta0 if self.model.reference_theta is None else self.model.reference_theta


def rigid_for_planning(model: DynamicModel) -> tuple[DynamicModel, tuple[str, ...]]:
    """Returns the model for planning, and a note if it is a different one: for elastic joints the rigid part, whose torques
    deflect the springs."""
    if model.is_rigid:
        return model, ()
    rigid = DynamicModel(model.robot, friction="none", rotor_inertia=False, drive=model.drive)
    rigid = rigid.with_terms([applied for applied in model.terms if not isinstance(applied.term, SPRING_TERMS)])
    return rigid, ("planned on the rigid part of the elastic model; springs show by the torques of the motion",)


def designable(model: DynamicModel) -> tuple[DynamicModel, tuple[str, ...]]:
    """Returns the model without terms that act only at reversals, which a hundred instants per period do not resolve, and
    notes on them."""
    kept, names = [], []
    for applied in model.terms:
        if any(shape.kind == "displacement" for shape in applied.term.shapes.values()):
            names.append(f"{applied.term.name} of {model.robot.joints[applied.axis]}")
        else:
            kept.append(applied)
    notes = (f"left out of the criterion, since only reversals excite them: {', '.join(names)}",) if names else ()
    return model.with_terms(kept), notes


def softened(model: DynamicModel, velocity: Array) -> DynamicModel:
    """Returns the model for the optimiser: wider smooth signs, so that gradients are informative, and the same parameters.

    Args:
        velocity: Largest velocities of the motion, shape (n,) [rad/s or m/s].
    """
    terms = []
    for applied in model.terms:
        law: Any = applied.term
        least = SOFTENING * float(np.abs(model.drive.rate_weights(applied.axis, applied.side)) @ velocity)
        wider = {name: max(getattr(law, name), least) for name in ("width", "eps") if name in law.shapes}
        if "sharpness" in law.shapes and "stribeck" in law.shapes:  # keep both columns independent
            wider["sharpness"] = min(law.sharpness, max(1.0 / least, 5.0 * law.stribeck))
        terms.append(replace(applied, term=replace(law, **wider)) if wider else applied)
    return model.with_terms(terms)
