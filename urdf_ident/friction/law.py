"""Base classes of model terms (a few columns computed from the motion of one axis) and of friction laws, and their registry.

A law defines its physics once, in :meth:`Law.basis`. The columns of the estimator, the torque of a simulated plant and the
online torque of an identified model are all computed from it; they differ only in how the sign of the velocity is known.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from ..errors import ModelError
from ..linalg import Array
from ..units import joint_units

#: Default half-width of the smooth sign [rad/s or m/s].
SIGN_WIDTH = 0.02
#: Widths at which a smooth sign is 1 within 0.5 %.
SATURATED = 3.0
#: Number of speeds that a friction curve with four parameters per direction needs (Liu 2023).
LEAST_SPEEDS = 4
#: Replaces a width or speed of 0 in denominators [rad/s or m/s].
TINY = 1e-290
#: Number of preceding positions from which the state of a law with memory is followed, fourfold until it forgets its past.
_PAST = 1024
#: Finite-difference step of the slope at the edge of the trained speeds, a fraction of the edge.
TANGENT_STEP = 1e-4


@dataclass(frozen=True)
class AxisMotion:
    """Input of a term: the motion of one axis, shape (N,) each, and its sampling rate.

    Attributes:
        q, v, a: Motion of the joint or motor [rad, rad/s, rad/s² or m, m/s, m/s²].
        rate: Samples per second [Hz].
        reference_torque: Frozen rigid torque of this axis [N·m or N], or None.
        before: Positions before the first sample, shape (M,), for terms with memory, or None if unknown.
    """

    q: Array
    v: Array
    a: Array
    rate: float
    reference_torque: Array | None = None
    before: Array | None = None
    #: Intermediate results shared by several laws.
    cache: dict[str, Any] = field(init=False, repr=False, compare=False, default_factory=dict)


@dataclass(frozen=True)
class Shape:
    """Description of one fixed shape of a law, for checks, messages and searches.

    Attributes:
        kind: "speed", "displacement", "time", "steepness" (one over a speed) or "exponent".
        meaning: In words.
        zero: Whether 0 is allowed.
        reached: Whether the motion must go beyond it for the law to make sense.
    """

    kind: str
    meaning: str
    zero: bool = False
    reached: bool = False

    @property
    def units(self) -> tuple[str, str]:
        """Units on a revolute and on a prismatic joint."""
        units = {
            "speed": ("rad/s", "m/s"),
            "displacement": ("rad", "m"),
            "time": ("s", "s"),
            "steepness": ("s/rad", "s/m"),
            "exponent": ("1", "1"),
        }
        return units[self.kind]

    def scaled(self, value: float, ratio: float) -> float:
        """Returns the equivalent value on an axis that turns ``ratio`` times as fast (unit: the shape's)."""
        return {"steepness": value / ratio, "exponent": value, "time": value}.get(self.kind, value * ratio)


@dataclass(frozen=True)
class Term:
    """Base class of all terms; a subclass is one law, and its fields are the law's fixed shapes.

    Attributes:
        name: Its name in project files.
        symbols: One symbol per column.
        nonnegative: Whether each column's parameter must not be negative.
        shapes: Descriptions of its fixed shapes.
        loaded: True for a law that uses the reference torque.
        free: Shapes still to be fitted; until then they hold their start values.
    """

    name: ClassVar[str]
    symbols: ClassVar[tuple[str, ...]]
    nonnegative: ClassVar[tuple[bool, ...]]
    shapes: ClassVar[Mapping[str, Shape]] = {}
    loaded: ClassVar[bool] = False
    free: tuple[str, ...] = field(default=(), kw_only=True)

    def columns(self, axis: AxisMotion) -> Array:
        """Returns the columns of this term on one axis, shape (N, len(symbols)), each [1/unit of its parameter · N·m or N].

        Args:
            axis: Motion of a whole segment at full rate (a term may have memory).
        """
        raise NotImplementedError

    def units(self, prismatic: bool) -> tuple[str, ...]:
        """Returns the SI units of the parameters; those of torques or forces unless overridden.

        Args:
            prismatic: True for a prismatic joint.

        Returns:
            One unit per column.
        """
        return (joint_units(prismatic)["torque"],) * len(self.symbols)

    def as_dict(self) -> dict[str, Any]:
        """JSON form: the name and the fixed shapes."""
        more: dict[str, Any] = {"free": list(self.free)} if self.free else {}
        return {"term": self.name, **{name: getattr(self, name) for name in self.shapes}, **more}


#: Friction laws by their name in files; a law is registered when its class is defined.
FRICTION: dict[str, type[Law]] = {}


def smooth_sign(v: Array, width: float | Array) -> Array:
    """Returns ``tanh(v / width)``, or the hard sign for width 0, shape of v, between −1 and 1.

    A measured velocity is never exactly zero at rest: the sign of the ±1e-6 rad/s left by zero-phase filtering would be
    noise with the amplitude of the Coulomb torque.

    Args:
        v: Velocity, any shape [rad/s or m/s].
        width: Half-width of the transition, a number or the shape of v [rad/s or m/s].
    """
    if isinstance(width, np.ndarray) and width.ndim:
        return np.asarray(np.tanh(v / np.maximum(width, TINY)))
    return np.asarray(np.sign(v) if width == 0 else np.tanh(np.asarray(v) / width))


def levelled(v: Array, edge: Array, straight: float | Array) -> Array:
    """Maps a velocity: linear up to a multiple of an edge, then growing with the square root, with a continuous slope.

    Friction of gears and grease grows sublinearly at high speed, and slow data do not show where that begins.

    Args:
        v: Velocity, any shape [rad/s or m/s].
        edge: Velocity of the same sign and at most the same magnitude, shape of v [rad/s or m/s].
        straight: The multiple, at least 1; infinite for a straight line; a number or shape of v.

    Returns:
        Shape of v [rad/s or m/s].
    """
    ratio = np.abs(v) / np.maximum(np.abs(edge), TINY)
    knee = np.minimum(straight, ratio)
    return np.asarray(edge * (2.0 * np.sqrt(knee * ratio) - knee))


@dataclass(eq=False)  # not frozen, which triples the time to make one: one is made per sample of a control loop
class Sliding:
    """Sliding state of many axes at one instant, or of one axis at many instants: shape (K,) each.

    Attributes:
        v: Velocity [rad/s or m/s].
        load: Torque that the gear transmits to the links [N·m or N], or None.
        bent: State of a law with memory, −1 … 1, or None.
        slip: Direction of slip if an integrator provides it: −1, 0 (sticks) or 1; None: smooth sign of v.
        inside: Whether all velocities are known to be inside the trained speeds.
        q: Position [rad or m], or None.
        signs: Smooth signs that are known, by their width, or by the identity of an array of widths.
    """

    v: Array
    load: Array | None = None
    bent: Array | None = None
    slip: Array | None = None
    inside: bool = False
    q: Array | None = None
    signs: dict[float, Array] = field(init=False, repr=False, default_factory=dict)

    def sign(self, width: float | Array) -> Array:
        """Returns the direction of slip, shape (K,), −1 … 1.

        Args:
            width: Half-width of the smooth sign, a number or shape (K,) [rad/s or m/s].
        """
        if self.slip is not None:
            return self.slip
        key = id(width) if isinstance(width, np.ndarray) else width
        if key not in self.signs:
            self.signs[key] = smooth_sign(self.v, width)
        return self.signs[key]


@dataclass(frozen=True)
class AxisScale:
    """How an axis moves in the data, which determines the shapes of a law to try.

    Attributes:
        speed: 95 % quantile of its speeds [rad/s or m/s].
        width: Suitable half-width of the smooth sign [rad/s or m/s].
        displacements: Displacements over which friction may reverse, shape (k,) [rad or m]; none for a motor.
        motor: Whether it is a motor that drives several joints; only simple laws can be separated from the joints' own.
        prismatic: Whether it is a prismatic joint.
        time: Largest time constant of friction that the data can judge [s].
    """

    speed: float
    width: float
    displacements: tuple[float, ...] = ()
    motor: bool = False
    prismatic: bool = False
    time: float = math.inf


@dataclass(frozen=True)
class Law(Term):
    """A friction law, linear in its parameters; its fields are fixed shapes (a number, or shape (K,) for many axes).

    A subclass defines the attributes of :class:`Term`, a ``formula`` and :meth:`basis`, and :meth:`bend` if it has memory;
    nothing else is needed. The torque is what the drive must overcome: positive for motion in the positive direction.

    Attributes:
        formula: The torque as text, for readers and side-car files; S is the smooth sign of v.
        memory: Whether it depends on the motion since the last reversal, by displacement or by time.
        bias: Whether it is a constant of the drive (amplifier, sensor) rather than friction: it need not dissipate.
        changing: Symbols that change with temperature and wear → kind: "dry", "viscous" or "load" friction.
        power: Exponent of the speed in the part that changes as viscous friction.
        conservative: Whether it is a spring, which depends only on the position: it need not dissipate either.
        trained: Lowest and highest velocity of the data [rad/s or m/s] (or shape (K,) each), for odd laws that of either
            direction; beyond them each column is extrapolated along its tangent, so the law stays linear in its parameters.
            None: no extrapolation.
        straight: Multiple of the trained velocity up to which tangents are used; beyond it columns grow with the square
            root of the speed (:func:`levelled`). Infinite for laws listed by the user; a number (or shape (K,)).
    """

    formula: ClassVar[str]
    memory: ClassVar[bool] = False
    bias: ClassVar[bool] = False
    changing: ClassVar[Mapping[str, str]] = {}
    power: ClassVar[float] = 1.0
    conservative: ClassVar[bool] = False
    trained: tuple[float, float] | None = field(default=None, kw_only=True)
    straight: float = field(default=np.inf, kw_only=True)

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        name = cls.__dict__.get("name")
        if name is None:
            return
        known = FRICTION.get(name)
        if known is not None and (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
            raise ModelError("two friction laws have one name", got=repr(name), remedy="give the new one its own")
        FRICTION[name] = cls

    def as_dict(self) -> dict[str, Any]:
        """JSON form: the name, the fixed shapes, and the trained speeds."""
        reach = {} if self.trained is None else {"trained": list(self.trained)}
        return {**super().as_dict(), **reach, **({"straight": self.straight} if np.isfinite(self.straight) else {})}

    def basis(self, motion: Sliding) -> Sequence[Array]:
        """Returns the factor of each parameter.

        For a ``loaded`` law it must be a sign times a quantity proportional to ``|motion.load|``.

        Returns:
            One array of shape (K,) per symbol [1/unit of its parameter · N·m or N].
        """
        raise NotImplementedError

    def extrapolated(self, motion: Sliding) -> Sequence[Array]:
        """Returns :meth:`basis` inside the trained speeds, and its extrapolation (see ``straight``) beyond them.

        Returns:
            As :meth:`basis`.
        """
        if self.trained is None or motion.inside:
            return self.basis(motion)
        low, high = self.trained
        inside = np.minimum(np.maximum(motion.v, low), high)
        if np.array_equal(inside, motion.v):
            return self.basis(motion)
        edge = np.where(inside > 0, high, -np.asarray(low))
        step = TANGENT_STEP * np.where(np.isfinite(edge), edge, 1.0)
        at_edge = self.basis(replace(motion, v=inside))
        above, below = (self.basis(replace(motion, v=inside + sign * step)) for sign in (1.0, -1.0))
        beyond = levelled(motion.v, inside, self.straight) - inside
        return [
            value + np.where(beyond == 0, 0.0, (up - down) / (2 * step) * beyond)
            for value, up, down in zip(at_edge, above, below, strict=True)
        ]

    def bend(self, bent: Array, step: Array, seconds: float) -> Array:
        """Returns the state of a law with memory after a displacement in one direction, shape (K,).

        Args:
            bent: State before, shape (K,), −1 … 1.
            step: Displacement, shape (K,) [rad or m].
            seconds: Duration of the displacement [s].
        """
        return bent

    def trace(self, q: Array, start: float, rate: float) -> Array:
        """Returns the state of a law with memory along a path, shape (N,).

        Args:
            q: Position, shape (N,) [rad or m].
            start: The state before the first sample, −1 … 1.
            rate: Samples per second [Hz].
        """
        out, bent = np.empty(len(q)), np.array([start])
        for k, step in enumerate(np.diff(q, prepend=q[:1])):
            bent = self.bend(bent, np.array([step]), 1.0 / rate)
            out[k] = bent[0]
        return out

    def forgets(self, q: Array, rate: float) -> bool:
        """Returns whether the state at the end of a path no longer depends on that at its beginning.

        Args:
            q, rate: As for :meth:`trace`.
        """
        return False

    @classmethod
    def variants(cls, scale: AxisScale) -> Sequence[Law]:
        """Returns the law with the shapes to try on an axis, those nearest the defaults first.

        Returns:
            Laws; if empty, the search skips this law, and it is used only where the user names it.
        """
        return ()

    @classmethod
    def of(cls, *values: float | Sequence[float] | Array, **shapes: float | Sequence[float] | Array) -> Friction:
        """Returns the law with parameters, on all axes of one side.

        Args:
            values: One entry per symbol: a number for all axes, or shape (n,).
            shapes: Its shapes other than the defaults, likewise.

        Raises:
            ModelError: Wrong number of values, an unknown shape, or a number that is not finite.
        """
        if len(values) != len(cls.symbols):
            raise ModelError(f"friction '{cls.name}' has other parameters", got=len(values), expected=", ".join(cls.symbols))
        unknown = sorted(set(shapes) - set(cls.shapes))
        if unknown:
            raise ModelError(f"friction '{cls.name}' has no shape '{unknown[0]}'", expected=", ".join(cls.shapes) or "none")
        fixed: dict[str, Any] = {name: _numbers(cls.name, name, value) for name, value in shapes.items()}
        for name, value in fixed.items():
            if (value < 0).any() or (not cls.shapes[name].zero and (value == 0).any()):
                raise ModelError(f"'{name}' of friction '{cls.name}' must be positive", got=float(value.min()))
        numbers = tuple(_numbers(cls.name, symbol, value) for symbol, value in zip(cls.symbols, values, strict=True))
        return Friction(replace(cls(), **fixed), numbers)

    def columns(self, axis: AxisMotion) -> Array:
        """See :meth:`Term.columns`; the state of a law with memory includes the known past."""
        if "sliding" not in axis.cache:
            axis.cache["sliding"] = Sliding(axis.v, axis.reference_torque, q=axis.q)
        motion: Sliding = axis.cache["sliding"]
        out = np.empty((len(self.symbols), len(axis.v)))
        for row, value in zip(
            out, self.extrapolated(replace(motion, bent=self._bent(axis)) if self.memory else motion), strict=True
        ):
            row[:] = value
        return out.T

    def _bent(self, axis: AxisMotion) -> Array:
        if axis.before is not None:
            past = min(_PAST, len(axis.before))
            while past < len(axis.before) and not self.forgets(axis.before[-past:], axis.rate):
                past = min(4 * past, len(axis.before))
            return self.trace(np.concatenate([axis.before[len(axis.before) - past :], axis.q]), 0.0, axis.rate)[past:]
        return self.trace(axis.q, float(smooth_sign(axis.v[:1], SIGN_WIDTH).sum()), axis.rate)


def bias_symbols() -> frozenset[str]:
    """Returns the symbols of drive-bias parameters, which are not friction, on joints and on motors."""
    return frozenset(symbol + side for law in FRICTION.values() if law.bias for symbol in law.symbols for side in ("", "m"))


@dataclass(frozen=True, eq=False)
class Friction:
    """A law with its parameters, on all axes of one side at once.

    Attributes:
        law: The law; a shape is a number, or shape (n,).
        values: One entry per symbol: a number, or shape (n,); zero disables it on an axis.
    """

    law: Law
    values: tuple[Array, ...]

    def torque(self, motion: Sliding) -> Array:
        """Returns the friction torque, shape of ``motion.v`` [N·m or N].

        Args:
            motion: The sliding of all axes, shape (n,) or (…, n).
        """
        basis = self.law.extrapolated(motion)
        total = self.values[0] * basis[0]
        for value, column in zip(self.values[1:], basis[1:], strict=True):
            total = total + value * column
        return np.asarray(total)

    def on(self, n: int) -> Friction:
        """Returns the same friction with one number for each of n axes.

        Returns:
            Friction of arrays of shape (n,).

        Raises:
            ModelError: Numbers for a different count of axes.
        """
        shapes: dict[str, Any] = {name: self._spread(name, getattr(self.law, name), n) for name in self.law.shapes}
        values = tuple(self._spread(name, value, n) for name, value in zip(self.law.symbols, self.values, strict=True))
        return Friction(replace(self.law, free=(), trained=None, **shapes), values)

    def _spread(self, name: str, value: Any, n: int) -> Array:
        array = np.asarray(value, dtype=float)
        if array.shape not in ((), (n,)):
            raise ModelError(
                f"'{name}' of friction '{self.law.name}' needs a number per joint", got=f"shape {array.shape}", expected=n
            )
        return np.array(np.broadcast_to(array, (n,)))


def _numbers(law: str, name: str, value: Any) -> Array:
    array = np.array(value, dtype=float)
    if not np.isfinite(array).all():
        raise ModelError(f"'{name}' of friction '{law}' is not finite", got=array.tolist())
    array.setflags(write=False)
    return array


def combine_axes(laws: Sequence[tuple[int, Law, Array]], n: int) -> tuple[Friction, ...]:
    """Combines laws of single axes into few laws on all axes: one per kind, zero on axes without it.

    Args:
        laws: Tuples of axis, law and parameters, shape (len(symbols),).
    """
    tables = dict[tuple[type[Law], int], dict[int, tuple[Law, Array]]]()
    for axis, law, values in laws:
        before = sum(kind is type(law) and axis in table for (kind, _), table in tables.items())  # of this kind on the axis
        tables.setdefault((type(law), before), {})[axis] = law, values

    def spread(table: Mapping[int, tuple[Law, Array]], usual: float, numbers: Sequence[float] | Array) -> Array:
        """One number for each axis, the usual one where it has no such law."""
        out = np.full(n, usual)
        out[list(table)] = numbers
        return out

    combined = []
    for table in tables.values():
        on_axes, parameters = zip(*table.values(), strict=True)
        first, ends = on_axes[0], np.array([law.trained or (-np.inf, np.inf) for law in on_axes])
        fixed: dict[str, Any] = {
            name: spread(table, getattr(first, name), [getattr(law, name) for law in on_axes]) for name in first.shapes
        }
        trained = spread(table, -np.inf, ends[:, 0]), spread(table, np.inf, ends[:, 1])
        straight = spread(table, np.inf, [np.inf if law.trained is None else law.straight for law in on_axes])
        known = trained if np.isfinite(ends[:, 1]).any() else None
        law = replace(first, free=(), trained=known, straight=straight, **fixed)
        combined.append(Friction(law, tuple(spread(table, 0.0, column) for column in np.transpose(parameters))))
    return tuple(combined)
