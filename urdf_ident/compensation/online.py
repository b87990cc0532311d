"""The identified model for a control loop: with precomputed data one sample takes microseconds.

:meth:`DynamicModel.torque` multiplies a regressor with the parameters, which suits fits and many samples, but builds
hundreds of columns for one sample. Here the rigid part is one call of Pinocchio's RNEA with the identified inertias, and
all laws of a kind are one vector operation over all joints, with zeros for joints without the law.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pinocchio as pin

from ..errors import ModelError
from ..friction import SIGN_WIDTH, Friction, Law, Sliding, combine_axes
from ..friction.law import TANGENT_STEP, TINY, levelled
from ..linalg import Array, shaped
from ..model.dynamic_model import DynamicModel
from ..model.inertia import from_com
from ..model.rigid_bodies import with_inertias
from .residual import Residual

#: A body of mass 1, shape (10,).
_UNIT = from_com(1.0, np.zeros(3), np.eye(3))


class OnlineModel:
    """Inverse dynamics of an identified model, one sample per call.

    Friction with memory (presliding) counts as fully developed in the direction of the velocity, as in
    :meth:`DynamicModel.torque` for a single sample. Not thread-safe: it contains Pinocchio's workspace.

    Args:
        model: The dynamic model, with rigid joints.
        theta: Its parameters, shape (p,).
        residual: Residual torque from the deformation, or None.

    Raises:
        ModelError: A model with elastic joints, or load-dependent friction without a frozen rigid torque.
        ShapeError: Theta has the wrong length.
    """

    def __init__(self, model: DynamicModel, theta: Array, *, residual: Residual | None = None) -> None:
        if not model.is_rigid:
            raise ModelError("a model with elastic joints has no fast path", remedy="use its torque(), or a rigid model")
        theta = shaped("theta", theta, (len(model.parameters),))
        frozen = theta[: model.n_inertial] if not model.loaded else model.reference_theta
        if frozen is None:
            raise ModelError("load-dependent friction needs a frozen rigid torque", remedy="model.with_reference(theta)")
        self.n, self.residual = model.n, residual
        self._made_of = model, theta
        self._robot = model.robot
        self._direct = model.robot.model.nq == model.n  # Pinocchio's configuration is q itself
        self._rigid = _Rigid(model, theta[: model.n_inertial])
        own = np.array_equal(frozen, theta[: model.n_inertial])
        self._reference = None if own else _Rigid(model, frozen)
        self._reduction = np.asarray(model.drive.reduction)
        self._offset, self._inverse = np.asarray(model.drive.offset), np.linalg.inv(self._reduction)
        self._joints, self._motors = _Side(model, theta, "joint"), _Side(model, theta, "motor")

    def __reduce__(self) -> Any:  # a copy is made anew, as parts of the workspace are views of others
        return partial(OnlineModel, residual=self.residual), self._made_of

    def __call__(
        self, q: Array, v: Array, a: Array, deformation: Array | None = None, deformation_rate: Array | None = None
    ) -> Array:
        """Returns the joint torques of one sample, shape (n,) [N·m or N].

        Args:
            q, v, a: Joint motion, shape (n,) of floats [rad, rad/s, rad/s² or m, m/s, m/s²].
            deformation: Motor minus link position after the gear, shape (n,) [rad or m]; None: no residual is added.
            deformation_rate: Its rate, shape (n,) [rad/s or m/s].
        """
        configuration = q if self._direct else self._robot.configuration(q[None])[0]
        rigid = self._rigid(configuration, v, a)
        load = rigid if self._reference is None else self._reference(configuration, v, a)
        tau = rigid + self._joints(q, v, a, load)
        if self._motors.acts:
            A = self._reduction
            tau += self._motors(A @ (q - self._offset), A @ v, A @ a, load @ self._inverse) @ A
        if deformation is not None:
            if self.residual is None:
                raise ModelError(
                    "a deformation was given, and this model holds no residual", remedy="leave the deformation out"
                )
            tau += self.residual.read(q, v, deformation, deformation_rate)
        return tau


class _Side:
    """Rotor inertias and friction of all axes of one side: one product of parameters, zero on axes without a law, with columns.

    The columns are accelerations; ones, of biases; the state of laws with memory where it has developed; and those of the
    other laws, which follow their tangents beyond the trained speeds.
    """

    def __init__(self, model: DynamicModel, theta: Array, side: str) -> None:
        n, placed = model.n, list[tuple[int, Law, Array]]()
        inertia, (low, high, straight) = np.zeros(n), np.outer([-np.inf, np.inf, np.inf], np.ones(n))
        for applied, own in model.placed_terms:
            j, law = applied.axis, applied.term
            if applied.side != side:
                continue
            if isinstance(law, Law):
                placed.append((j, law, theta[own]))
                if law.trained is not None and not (law.memory or law.bias or law.conservative):
                    (low[j], high[j]), straight[j] = law.trained, law.straight
            elif law.name == "rotor_inertia":
                inertia[j] += theta[own.start]
            else:
                raise ModelError(f"term '{law.name}' has no fast form", remedy="use the model's torque()")
        laws = combine_axes(placed, n)
        passing = [each for each in laws if not (each.law.memory or each.law.bias)]
        self.acts = bool(laws) or bool(inertia.any())
        self._low, self._high, self._straight, self._one = low, high, straight, np.ones(n)
        self._below, self._above = (_slopes(passing, edge) for edge in (low, high))
        bias = sum((each.values[0] for each in laws if each.law.bias), np.zeros(n))
        lasting = sum((each.values[0] for each in laws if each.law.memory), np.zeros(n))
        values = np.vstack([inertia, bias, lasting, *(each.values for each in passing)])
        self._values = (np.eye(n)[:, None] * values).reshape(n, -1)
        self._bases = [each.law.basis for each in passing]
        widths = [np.full(n, SIGN_WIDTH), *(vars(each.law)["width"] for each in passing if "width" in each.law.shapes)]
        # products with sparse matrices, as a small product costs less than a broadcast or a sum over an axis
        self._per_width = (np.eye(n)[:, None] / np.maximum(widths, TINY)).reshape(n, -1)
        self._arguments = np.empty(self._per_width.shape[1])
        self._developed, *signs = self._arguments.reshape(-1, n)
        self._known: dict[float, Array] = dict(zip(map(id, widths[1:]), signs, strict=True))
        self._motion = Sliding(np.empty(n), inside=True)

    def __call__(self, q: Array, v: Array, a: Array, load: Array) -> Array:
        """Returns the torque, shape (n,), of positions, velocities, accelerations and the torque that the gears transmit."""
        motion = self._motion
        inside = np.minimum(np.maximum(v, self._low), self._high, out=motion.v)
        np.tanh(np.dot(inside, self._per_width, out=self._arguments), out=self._arguments)  # all smooth signs at once
        motion.load, motion.q, motion.signs = load, q, dict(self._known)
        columns = [a, self._one, self._developed]
        for basis in self._bases:
            columns += basis(motion)
        if inside.tobytes() == v.tobytes():
            torque: Array = self._values.dot(np.concatenate(columns))
            return torque
        columns[2] = np.tanh(v / SIGN_WIDTH)
        unloaded, per_load = np.where(inside > 0, self._above, self._below)
        beyond = (unloaded + per_load * np.abs(load)) * (levelled(v, inside, self._straight) - inside)
        return np.asarray(self._values.dot(np.concatenate(columns)) + beyond)


def _slopes(laws: Sequence[Friction], edge: Array) -> Array:
    """Slopes of the torque at velocities, shape (2, n): without load, and per torque of the gears; 0 at infinite ones."""
    known = np.isfinite(edge)
    at, step = np.where(known, edge, 0.0), TANGENT_STEP * np.where(known, np.abs(edge), 1.0)
    above, below = (Sliding(at + s * step, np.ones_like(at), q=np.zeros_like(at), inside=True) for s in (1.0, -1.0))
    slopes = np.zeros((2, len(edge)))
    for each in laws:
        slopes[int(each.law.loaded)] += np.where(known, (each.torque(above) - each.torque(below)) / (2 * step), 0.0)
    return slopes


class _Rigid:
    """RNEA on given inertial parameters, gravity included."""

    def __init__(self, model: DynamicModel, theta: Array) -> None:
        robot, bodies = model.robot, np.array(theta, dtype=float).reshape(-1, 10)
        self._robot, self._coupled = robot, robot.coupled
        # Pinocchio divides by the mass: near zero mass a unit body is added and its torque subtracted (RNEA is linear).
        self._shifted = bool((np.abs(bodies[:, 0]) < 1e-6 * np.maximum(np.abs(bodies).max(axis=1), 1e-12)).any())
        self._model = with_inertias(robot, (bodies + self._shifted * _UNIT).ravel())
        self._data = self._model.createData()
        self._unit = with_inertias(robot, np.tile(_UNIT, len(bodies))) if self._shifted else None

    def __call__(self, q: Array, v: Array, a: Array) -> Array:
        if self._coupled:
            v, a = self._robot.spread(v), self._robot.spread(a)
        tau = pin.rnea(self._model, self._data, q, v, a)
        if self._unit is not None:
            tau = tau - pin.rnea(self._unit, self._data, q, v, a)
        return self._robot.reduced(tau) if self._coupled else tau
