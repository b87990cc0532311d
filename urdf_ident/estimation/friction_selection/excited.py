"""Excitation of friction laws by a motion: which shape parameters of a law the motion can determine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...errors import ModelError
from ...friction import Shape
from ...model.dynamic_model import DynamicModel
from ...model.terms import AppliedTerm
from ...samples import Segment


@dataclass(frozen=True)
class Excited:
    """Top speed [rad/s or m/s] and travel [rad or m] of an axis."""

    speed: float
    travel: float

    def bounds(self, shape: Shape) -> tuple[float, float]:
        """Returns the range in which a shape is searched.

        Returns:
            Lower and upper bound, in the shape's unit.
        """
        if shape.kind == "displacement":
            return 1e-5 * self.travel, 0.1 * self.travel
        if shape.kind == "steepness":
            return 2.0 / self.speed, 20000.0 / self.speed
        if shape.kind == "exponent":
            return 0.5, 4.0
        return (0.0 if shape.reached else 0.002 * self.speed), 0.5 * self.speed


def excited(model: DynamicModel, motion: Sequence[Segment], item: AppliedTerm) -> Excited:
    """Returns how fast and how far the axis of a term has moved.

    Returns:
        Top speed and travel of the joint or motor.
    """
    row = model.drive.rate_weights(item.axis, item.side)
    speed = max((float(np.abs(part.v @ row).max(initial=0.0)) for part in motion), default=0.0)
    travel = max((float(np.ptp(q)) for q in [part.q @ row for part in motion] if len(q)), default=0.0)
    return Excited(speed, travel)


def check_excited(model: DynamicModel, motion: Sequence[Segment]) -> None:
    """Rejects a threshold speed that the motion never exceeds, since the columns above it would be zero.

    Args:
        motion: All segments of the data.

    Raises:
        ModelError: There is such a threshold; the error names joint, law, threshold and top speed.
    """
    for item in model.terms:
        for name, shape in item.term.shapes.items():
            if not shape.reached or name in item.term.free:
                continue
            value, top = float(getattr(item.term, name)), excited(model, motion, item).speed
            if value >= top:
                unit = shape.units[bool(model.robot.prismatic[item.axis])]
                raise ModelError(
                    f"'{name}' of friction term '{item.term.name}' is outside the speeds of the logs",
                    where=f"joint '{model.robot.joints[item.axis]}'",
                    got=f"{value:g} {unit}",
                    expected=f"less than {top:.3g} {unit}, the top speed",
                    remedy=f"lower it, or write {name}: auto",
                )
