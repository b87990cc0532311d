"""The identified model for a control loop: with precomputed data one sample takes microseconds.

:meth:`DynamicModel.torque` multiplies a regressor with the parameters, which suits fits and many samples, but builds
hundreds of columns for one sample. Here the rigid part is one call of Pinocchio's RNEA with the identified inertias, and
all laws of a kind are one vector operation over all joints, with zeros for joints without the law.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pinocchio as pin

from ..errors import ModelError
from ..friction import SIGN_WIDTH, Friction, Law, Sliding, combine_axes
from ..friction.law import TANGENT_STEP, TINY, levelled
from ..grouping import grouped
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
        if model.loaded and model.reference_theta is None:
            raise ModelError("load-dependent friction needs a frozen rigid torque", remedy="model.with_reference(theta)")
        self.n, self.residual = model.n, residual
        self._robot = model.robot
        self._direct = model.robot.model.nq == model.n  # Pinocchio's configuration is q itself
        self._rigid = _Rigid(model, theta[: model.n_inertial])
        self._reference = _Rigid(model, model.reference_theta) if model.loaded and model.reference_theta is not None else None
        self._reduction = np.asarray(model.drive.reduction)
        self._offset, self._inverse = np.asarray(model.drive.offset), np.linalg.inv(self._reduction)
        self._inertia, self._laws = _side(model, theta, "joint")
        self._motor_inertia, self._motor_laws = _side(model, theta, "motor")
        self._on_motors = bool(self._motor_laws.laws) or bool(self._motor_inertia.any())

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
        tau = self._rigid(configuration, v, a)
        tau += self._inertia * a
        load = None if self._reference is None else self._reference(configuration, v, a)
        if self._laws.laws:
            tau += self._laws(q, v, load)
        if self._on_motors:
            A = self._reduction
            out = self._motor_inertia * (A @ a)
            if self._motor_laws.laws:
                torque = None if load is None else load @ self._inverse
                out = out + self._motor_laws(A @ (q - self._offset), A @ v, torque)
            tau += out @ A
        if deformation is not None:
            if self.residual is None:
                raise ModelError(
                    "a deformation was given, and this model holds no residual", remedy="leave the deformation out"
                )
            tau += self.residual.read(q, v, deformation, deformation_rate)
        return tau


class _Friction:
    """Friction of all axes of one side, zero on those without a law: biases; laws with memory, which multiply a state that is
    alike for all of them where it has developed; and the others together where their trained speeds are alike."""

    def __init__(self, laws: Sequence[Friction]) -> None:
        self.laws = laws
        self._lasting = np.sum([friction.values[0] for friction in laws if friction.law.memory], axis=0)
        self._bias = np.sum([friction.values[0] for friction in laws if friction.law.bias], axis=0)
        passing = [friction for friction in laws if not friction.law.memory and not friction.law.bias]
        ranges = _trained_ranges(passing)
        alike = grouped((trained.tobytes(), k) for k, trained in enumerate(ranges)).values()
        self._passing = [_Extrapolated([passing[k] for k in members], ranges[members[0]]) for members in alike]

    def __call__(self, q: Array, v: Array, load: Array | None) -> Array:
        """Returns the torque, shape (n,), of positions, velocities and the torque that the gears transmit, shape (n,)."""
        total: Array = self._lasting * np.tanh(v / SIGN_WIDTH) + self._bias
        for laws in self._passing:
            total += laws.torque(q, v, load)
        return total


def _trained_ranges(laws: Sequence[Friction]) -> list[Array]:
    """Lowest and highest trained velocity of each law, and the multiple up to which tangents are used, shape (3, n).

    Those of an axis without the law are the narrowest of other laws, as that law's torque is zero there.
    """
    ranges = []
    for each in laws:
        trained = (-np.inf, np.inf, np.inf) if each.law.trained is None else (*each.law.trained, each.law.straight)
        ranges.append(np.array([np.broadcast_to(x, each.values[0].shape) for x in trained]))
    if not ranges:
        return []
    narrowest = np.array([np.max([x[0] for x in ranges], axis=0), *np.min([x[1:] for x in ranges], axis=0)])
    return [np.where(np.any(each.values, axis=0), x, narrowest) for each, x in zip(laws, ranges, strict=True)]


class _Extrapolated:
    """Laws without memory, each on all axes, trained at the same speeds; beyond these they follow their tangents.

    ``trained`` is their range, shape (3, n), of :func:`_trained_ranges`.
    """

    def __init__(self, laws: Sequence[Friction], trained: Array) -> None:
        self._low, self._high, self._straight = trained
        widths = [vars(each.law)["width"] for each in laws if "width" in each.law.shapes]
        self._of_widths = [id(width) for width in widths]
        self._widths = np.maximum(np.reshape(widths, (-1, trained.shape[1])), TINY)
        self._bases = [each.law.basis for each in laws]
        self._values = np.vstack([each.values for each in laws])
        self._below, self._above = (_slopes(laws, edge) for edge in trained[:2])

    def torque(self, q: Array, v: Array, load: Array | None) -> Array:
        """Returns the torque, shape (n,), as :meth:`_Friction.__call__`."""
        inside = np.minimum(np.maximum(v, self._low), self._high)
        motion = Sliding(inside, load, inside=True, q=q)
        motion.signs.update(zip(self._of_widths, np.tanh(inside / self._widths), strict=True))  # all at once
        torque: Array = np.add.reduce(self._values * [column for basis in self._bases for column in basis(motion)])
        if np.count_nonzero(inside != v):
            unloaded, per_load = np.where(inside > 0, self._above, self._below)
            slope = unloaded if load is None else unloaded + per_load * np.abs(load)
            torque += slope * (levelled(v, inside, self._straight) - inside)
        return torque


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
        tau = np.array(pin.rnea(self._model, self._data, q, v, a))
        if self._unit is not None:
            tau -= pin.rnea(self._unit, self._data, q, v, a)
        return self._robot.reduced(tau) if self._coupled else tau


def _side(model: DynamicModel, theta: Array, side: str) -> tuple[Array, _Friction]:
    """Rotor inertias of one side, and its friction laws gathered over all axes."""
    inertia = np.zeros(model.n)
    laws: list[tuple[int, Law, Array]] = []
    for applied, columns in model.placed_terms:
        if applied.side != side:
            continue
        if isinstance(applied.term, Law):
            laws.append((applied.axis, applied.term, theta[columns]))
        elif applied.term.name == "rotor_inertia":
            inertia[applied.axis] += theta[columns.start]
        else:
            raise ModelError(f"term '{applied.term.name}' has no fast form", remedy="use the model's torque()")
    return inertia, _Friction(combine_axes(laws, model.n))
