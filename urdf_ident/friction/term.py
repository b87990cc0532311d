"""What every term of a model is: a few columns on the motion of one axis, with symbols, units and fixed shapes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from ..linalg import Array


@dataclass(frozen=True)
class AxisMotion:
    """What a term may look at: the motion of one axis, shape (N,) each, and how it was sampled.

    Attributes:
        q, v, a: Motion of the joint or motor [rad, rad/s, rad/s² or m, m/s, m/s²].
        rate: Samples per second [Hz].
        reference_torque: Frozen rigid torque of this axis [N·m or N], or None.
        before: Position up to the first sample, shape (M,), for terms with memory, or None where nothing is known.
    """

    q: Array
    v: Array
    a: Array
    rate: float
    reference_torque: Array | None = None
    before: Array | None = None
    #: What several laws need of it, once made.
    made: dict[str, Any] = field(init=False, repr=False, compare=False, default_factory=dict)


@dataclass(frozen=True)
class Shape:
    """What one fixed shape of a law is, so that it can be checked, explained and searched.

    Attributes:
        kind: "speed", "way", "steepness" (one over a speed) or "exponent".
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
        """Its unit on a revolute and on a prismatic joint."""
        units = {"speed": ("rad/s", "m/s"), "way": ("rad", "m"), "steepness": ("s/rad", "s/m"), "exponent": ("1", "1")}
        return units[self.kind]

    def scaled(self, value: float, ratio: float) -> float:
        """The value that means the same on an axis that turns ``ratio`` times as fast (unit: the shape's)."""
        return {"steepness": value / ratio, "exponent": value}.get(self.kind, value * ratio)


@dataclass(frozen=True)
class Term:
    """Base of all terms; a subclass is one law, its fields are that law's fixed shapes.

    Attributes:
        name: How a project file calls it.
        symbols: One symbol a column.
        nonnegative: Which columns' parameters physics keeps from being negative.
        shapes: What its fixed shapes are.
        loaded: True for a law that reads the reference torque.
        free: Shapes that wait to be fitted; until then they hold their start values.
    """

    name: ClassVar[str]
    symbols: ClassVar[tuple[str, ...]]
    nonnegative: ClassVar[tuple[bool, ...]]
    shapes: ClassVar[Mapping[str, Shape]] = {}
    loaded: ClassVar[bool] = False
    free: tuple[str, ...] = field(default=(), kw_only=True)

    def columns(self, axis: AxisMotion) -> Array:
        """The columns of this term on one axis.

        Args:
            axis: Motion at full rate, whole segment (a term may have memory).

        Returns:
            Shape (N, len(symbols)), each [1/unit of its parameter · N·m or N].
        """
        raise NotImplementedError

    def units(self, prismatic: bool) -> tuple[str, ...]:
        """SI units of the parameters; torques or forces unless the law says otherwise.

        Args:
            prismatic: True for a prismatic joint.

        Returns:
            One unit a column.
        """
        return ("N" if prismatic else "N·m",) * len(self.symbols)

    def as_dict(self) -> dict[str, Any]:
        """JSON form: the name and the fixed shapes."""
        more: dict[str, Any] = {"free": list(self.free)} if self.free else {}
        return {"term": self.name, **{name: getattr(self, name) for name in self.shapes}, **more}
