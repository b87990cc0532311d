"""Terms: named groups of columns that are appended to the rigid-body regressor (theory §2, §3).

A term belongs to one *axis* and one *side*. On the joint side it sees the joint's own motion and acts on that
joint alone. On the motor side it sees the motor's motion ``A q``, and acts on every joint that this motor
drives, through the motor's row of A. Where an axis is uncoupled the two are the same column, so only the
joint-side one is made.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

import numpy as np

from ..errors import ModelError
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


@dataclass(frozen=True)
class Shape:
    """What one fixed shape of a law is, so that it can be checked, explained and searched.

    Attributes:
        kind: "speed", "way" or "steepness" (one over a speed).
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
        """Its unit on a turning and on a sliding joint."""
        return {"speed": ("rad/s", "m/s"), "way": ("rad", "m"), "steepness": ("s/rad", "s/m")}[self.kind]


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
        """SI units of the parameters.

        Args:
            prismatic: True for a sliding joint.

        Returns:
            One unit a column.
        """
        raise NotImplementedError

    def as_dict(self) -> dict[str, Any]:
        """JSON form: the name and the fixed shapes."""
        shapes = {item.name: getattr(self, item.name) for item in fields(self) if item.name != "free"}
        return {"term": self.name, **shapes, **({"free": list(self.free)} if self.free else {})}


@dataclass(frozen=True)
class RotorInertia(Term):
    """Inertia of rotor and gear, reflected to the axis (Pinocchio's ``armature``)."""

    name: ClassVar[str] = "rotor_inertia"
    symbols: ClassVar[tuple[str, ...]] = ("Ia",)
    nonnegative: ClassVar[tuple[bool, ...]] = (True,)

    def columns(self, axis: AxisMotion) -> Array:
        return axis.a[:, None]

    def units(self, prismatic: bool) -> tuple[str, ...]:
        return ("kg",) if prismatic else ("kg·m²",)


@dataclass(frozen=True)
class AppliedTerm:
    """A term on one axis.

    Attributes:
        term: The law.
        axis: Index of the joint, or of the motor.
        side: "joint" or "motor".
    """

    term: Term
    axis: int
    side: str = "joint"

    def __post_init__(self) -> None:
        if self.side not in ("joint", "motor"):
            raise ModelError("unknown side of a term", got=repr(self.side), expected="joint | motor")

    def distribution(self, reduction: Array) -> Array:
        """How the term's torque spreads over the joint rows.

        Args:
            reduction: The drive's A, shape (n, n).

        Returns:
            Shape (n,).
        """
        spread = np.eye(len(reduction))[self.axis] if self.side == "joint" else reduction[self.axis]
        return np.asarray(spread)
