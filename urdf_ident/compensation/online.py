"""The identified model for a control loop: everything that can be worked out beforehand is, one sample costs microseconds.

:meth:`DynamicModel.torque` multiplies a regressor with the parameters, which is right for fits and many samples. For one
sample it builds hundreds of columns to sum them up. Here the rigid part is one run of Pinocchio's RNEA on the identified
inertias, and all laws of a kind are one vector operation over all joints, with zeros where a joint does not have it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pinocchio as pin

from ..errors import ModelError, check_shape
from ..linalg import Array
from ..model.dynamic_model import DynamicModel
from ..model.elasticity import ElasticModel
from ..model.friction_laws import SIGN_WIDTH
from .residual import Residual

#: Friction of one side: position, velocity, frozen rigid torque of all axes, shape (n,) each → torque, shape (n,).
_Law = Callable[[Array, Array, Array], Array]
#: Steepness that stands for a hard sign [s/rad or s/m].
_HARD = 1e290


class OnlineModel:
    """Inverse dynamics of an identified model, one sample a call.

    Not to be shared between threads: Pinocchio's workspace lives in it.

    Args:
        model: The dynamic model; rigid joints.
        theta: Its parameters, shape (p,).
        residual: Torque that is read from the deformation, or None.
        memory: Whether friction with memory (presliding) remembers from call to call; if not, each call takes it as
            developed in the direction of the velocity, as :meth:`DynamicModel.torque` does of a single sample.

    Raises:
        ModelError: A model with elastic joints, or load-dependent friction without a frozen rigid torque.
        ShapeError: Theta has another length.
    """

    def __init__(self, model: DynamicModel, theta: Array, *, residual: Residual | None = None, memory: bool = False) -> None:
        if isinstance(model, ElasticModel):
            raise ModelError("a model with elastic joints has no fast path", remedy="use its torque(), or a rigid model")
        theta = np.asarray(theta, dtype=float)
        check_shape("theta", theta.shape, (len(model.parameters),))
        if model.loaded and model.reference_theta is None:
            raise ModelError("load-dependent friction needs a frozen rigid torque", remedy="model.with_reference(theta)")
        self.n, self.residual, self.memory = model.n, residual, memory
        self._turning = model.robot.configuration if bool(model.robot.continuous.any()) else None
        self._rigid = _Rigid(model, theta[: model.n_inertial])
        self._reference = _Rigid(model, model.reference_theta) if model.loaded and model.reference_theta is not None else None
        self._reduction = np.asarray(model.drive.reduction)
        self._offset, self._inverse = np.asarray(model.drive.offset), np.linalg.inv(self._reduction)
        values = theta[model.n_inertial :]
        self._inertia, self._laws = _side(model, values, "joint", self)
        self._motor_inertia, self._motor_laws = _side(model, values, "motor", self)
        self._on_motors = bool(self._motor_laws) or bool(self._motor_inertia.any())
        self._still = np.zeros(self.n)
        self._points: dict[int, Array] = {}

    def reset(self) -> None:
        """Forgets the past of friction with memory."""
        self._points.clear()

    def __call__(
        self, q: Array, v: Array, a: Array, deformation: Array | None = None, deformation_rate: Array | None = None
    ) -> Array:
        """Joint torques of one sample.

        Args:
            q, v, a: Joint motion, shape (n,) of floats [rad, rad/s, rad/s² or m, m/s, m/s²].
            deformation: Motor minus link position after the gear, shape (n,) [rad or m]; without it there is no residual.
            deformation_rate: Its rate, shape (n,) [rad/s or m/s].

        Returns:
            Shape (n,) [N·m or N].

        Raises:
            ModelError: A residual without what it reads.
        """
        configuration = q if self._turning is None else self._turning(q[None])[0]
        tau = self._rigid(configuration, v, a)
        tau += self._inertia * a
        load = self._still if self._reference is None else self._reference(configuration, v, a)
        for law in self._laws:
            tau += law(q, v, load)
        if self._on_motors:
            tau += self._motors(q, v, a, load)
        if deformation is not None:
            tau += self._read(q, v, a, deformation, deformation_rate)
        return tau

    def _motors(self, q: Array, v: Array, a: Array, load: Array) -> Array:
        A = self._reduction
        speed, place, torque = A @ v, A @ (q - self._offset), load @ self._inverse
        out = self._motor_inertia * (A @ a)
        for law in self._motor_laws:
            out += law(place, speed, torque)
        return np.asarray(out @ A)

    def _read(self, q: Array, v: Array, a: Array, deformation: Array, rate: Array | None) -> Array:
        if self.residual is None:
            raise ModelError("a deformation was given, and this model holds no residual", remedy="leave the deformation out")
        return self.residual.read(q, v, a, deformation, rate)

    def presliding(self, key: int, q: Array, v: Array, radius: Array) -> Array:
        """Bent bristles, between −1 and 1.

        Args:
            key: Which law this is.
            q: Position, shape (n,) [rad or m].
            v: Velocity, shape (n,) [rad/s or m/s].
            radius: Of the play, shape (n,) [rad or m].

        Returns:
            Shape (n,).
        """
        if not self.memory:
            return np.asarray(np.tanh(v / SIGN_WIDTH))
        before = self._points.get(key)
        if before is None:
            before = q - radius * np.tanh(v / SIGN_WIDTH)
        point = np.minimum(np.maximum(before, q - radius), q + radius)
        self._points[key] = point
        return np.asarray((q - point) / radius)


class _Rigid:
    """RNEA on given inertial parameters, gravity included."""

    def __init__(self, model: DynamicModel, theta: Array) -> None:
        robot, bodies = model.robot, np.array(theta, dtype=float).reshape(-1, 10)
        # Pinocchio divides by the mass: where there is none, RNEA is used as the linear function of theta that it is.
        self._shifted = bool((np.abs(bodies[:, 0]) < 1e-6 * np.maximum(np.abs(bodies).max(axis=1), 1e-12)).any())
        self._model = _with_bodies(robot.model, bodies + self._shifted * _UNIT)
        self._data = self._model.createData()
        self._unit = _with_bodies(robot.model, np.tile(_UNIT, (robot.n, 1))) if self._shifted else None

    def __call__(self, q: Array, v: Array, a: Array) -> Array:
        tau = np.array(pin.rnea(self._model, self._data, q, v, a))
        if self._unit is not None:
            tau -= pin.rnea(self._unit, self._data, q, v, a)
        return tau


#: A body of mass 1, shape (10,).
_UNIT = np.array([1.0, 0, 0, 0, 1.0, 0, 1.0, 0, 0, 1.0])


def _with_bodies(source: pin.Model, bodies: Array) -> pin.Model:
    model = source.copy()
    for j, ten in enumerate(bodies):  # a fit need not be physical, and only this way in takes it as it is
        model.inertias[j + 1] = pin.Inertia.FromDynamicParameters(ten)
    model.armature = np.zeros(len(bodies))
    return model


def _side(model: DynamicModel, values: Array, side: str, owner: OnlineModel) -> tuple[Array, list[_Law]]:
    """Rotor inertias of one side, and its friction as functions of all axes at once."""
    n, at = model.n, 0
    tables: dict[str, tuple[Array, dict[str, Array]]] = {}
    inertia = np.zeros(n)
    for item in model.terms:
        law, count = item.term, len(item.term.symbols)
        own, at = values[at : at + count], at + count
        if item.side != side:
            continue
        if law.name == "rotor_inertia":
            inertia[item.axis] += own[0]
            continue
        if law.name not in tables:
            tables[law.name] = np.zeros((count, n)), {name: np.full(n, getattr(law, name)) for name in law.shapes}
        tables[law.name][0][:, item.axis] += own
        for name, table in tables[law.name][1].items():
            table[item.axis] = getattr(law, name)
    laws: list[_Law] = []
    polynomial = _polynomial(tables)
    if polynomial is not None:
        laws.append(polynomial)
    for key, (name, (factors, shapes)) in enumerate(tables.items()):
        if name in _MAKERS:
            laws.append(_MAKERS[name](factors, shapes))
        elif name == "presliding":
            laws.append(_presliding(factors[0], shapes["width"] / 2, 2 * key + (side == "motor"), owner))
        elif name not in ("viscous", "offset", "cubic"):
            raise ModelError(f"friction '{name}' has no fast form", remedy="use the model's torque()")
    return inertia, laws


def _steepness(width: Array) -> Array:
    return np.where(width > 0, 1.0 / np.where(width > 0, width, 1.0), _HARD)


def _polynomial(tables: dict[str, tuple[Array, dict[str, Array]]]) -> _Law | None:
    """Viscous friction, offset and cubic friction together."""
    linear, constant, cubic = (tables[name][0][0] if name in tables else None for name in ("viscous", "offset", "cubic"))
    if linear is None and constant is None and cubic is None:
        return None
    slope = 0.0 if linear is None else linear
    level = 0.0 if constant is None else constant
    if cubic is None:
        return lambda q, v, load: slope * v + level
    third = cubic
    return lambda q, v, load: (slope + third * v * v) * v + level


def _coulomb(factors: Array, shapes: dict[str, Array]) -> _Law:
    steep, level = _steepness(shapes["width"]), factors[0]
    return lambda q, v, load: level * np.tanh(steep * v)


def _stribeck(factors: Array, shapes: dict[str, Array]) -> _Law:
    steep, extra, slow = _steepness(shapes["width"]), factors[0], 1.0 / shapes["velocity"]
    return lambda q, v, load: extra * np.tanh(steep * v) * np.exp(-((slow * v) ** 2))


def _sublinear(factors: Array, shapes: dict[str, Array]) -> _Law:
    steep, level = _steepness(shapes["width"]), factors[0]
    return lambda q, v, load: level * np.tanh(steep * v) * np.sqrt(np.abs(v))


def _load_coulomb(factors: Array, shapes: dict[str, Array]) -> _Law:
    steep, share = _steepness(shapes["width"]), factors[0]
    return lambda q, v, load: share * np.tanh(steep * v) * np.abs(load)


def _stribeck_arctan(factors: Array, shapes: dict[str, Array]) -> _Law:
    first, second, slope = factors[0] * 2 / np.pi, factors[1] * 2 / np.pi, factors[2]
    sharp, soft = shapes["sharpness"], shapes["stribeck"]
    return lambda q, v, load: first * np.arctan(sharp * v) + second * np.arctan(soft * v) + slope * v


def _asymmetric(factors: Array, shapes: dict[str, Array]) -> _Law:
    steep, half, threshold = _steepness(shapes["width"]), 1.0 / shapes["eps"], shapes["threshold"]
    middle, lean = (factors[:4] + factors[4:]) / 2, (factors[:4] - factors[4:]) / 2
    plain = not threshold.any()

    def law(q: Array, v: Array, load: Array) -> Array:
        dry, first, second, third = middle + lean * np.tanh(half * v)
        size = np.abs(v)
        viscous = v * (first + size * (second + size * third))
        return np.asarray(dry * np.tanh(steep * v) + (viscous if plain else viscous * (size >= threshold)))

    return law


_MAKERS: dict[str, Callable[[Array, dict[str, Array]], _Law]] = {
    "coulomb": _coulomb,
    "stribeck": _stribeck,
    "sublinear": _sublinear,
    "load_coulomb": _load_coulomb,
    "stribeck_arctan": _stribeck_arctan,
    "asymmetric": _asymmetric,
}


def _presliding(level: Array, radius: Array, key: int, owner: OnlineModel) -> _Law:
    return lambda q, v, load: level * owner.presliding(key, q, v, radius)
