"""Units that the names of columns give, such as ``q1 [deg]``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...errors import LogError
from ...model.robot import Robot
from ...units import fits, joint_units, parse_unit
from ..tables import Table
from .layout import KIND, MOTOR, MOVING, LogLayout


def header_units(quantity: str, columns: Sequence[int], units: Sequence[str], robot: Robot) -> str | tuple[str, ...]:
    """The unit of a quantity given by the header, or one per joint in the order of ``robot.order``; "" for none."""
    known = {units[column] for column in columns}
    if len(known) == 1:
        return known.pop()
    usual = [joint_units(prismatic and quantity not in MOTOR) for prismatic in robot.prismatic]
    kind = KIND.get(quantity, quantity).replace("effort", "torque")
    each = [units[column] or usual_unit.get(kind, "degC") for column, usual_unit in zip(columns, usual, strict=True)]
    return tuple(each[robot.joints.index(joint)] for joint in robot.order)


def check_kinds(
    table: Table, robot: Robot, layout: LogLayout, columns: Mapping[str, Sequence[int]], units: Sequence[str]
) -> None:
    """Refuses a column of a sliding joint whose name ends with a unit of angle, or of a turning joint with one of length."""
    for quantity in columns.keys() - layout.units.keys() - set(MOTOR):
        kind = KIND.get(quantity, quantity)
        if kind not in MOVING or layout.side.position == "motor":
            continue
        for joint, sliding, column in zip(robot.joints, robot.prismatic, columns[quantity], strict=True):
            unit = parse_unit(units[column] or joint_units(bool(sliding))[kind])
            if unit.factor != 1.0 and not fits(unit, kind, bool(sliding)):
                raise LogError(
                    f"a unit of another kind than the {'prismatic' if sliding else 'revolute'} joint '{joint}'",
                    where=f"{table.path}, column '{table.full_header[column]}'",
                    got=unit.name,
                    expected=joint_units(bool(sliding))[kind],
                    remedy=f"correct the header, or give the units of all joints: `log: {{units: {{{quantity}: [...]}}}}`",
                )
