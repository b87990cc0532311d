"""Base class of model terms: a few columns computed from the motion of one axis, with symbols, units and fixed shapes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from ..linalg import Array
from ..units import joint_units


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
