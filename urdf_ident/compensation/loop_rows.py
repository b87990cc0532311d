"""Rows of each log for the three loops, filtered and decimated once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..errors import EstimationError
from ..linalg import Array, triangle
from ..model.dynamic_model import DynamicModel
from ..samples import ReadOnly, Segment
from ..signals.filters import lowpass
from ..signals.prepare import PreparedLog
from ..statistics.rows import RowFilter, filtered_rows
from ..statistics.statistic import Layout, Statistic, StatisticSet
from .friction_curve import FrictionCurve, asymmetric_columns


@dataclass(frozen=True, eq=False)
class LoopRows(ReadOnly):
    """Rows of one log at the rate of its equations, low-passed like its positions.

    Friction changes faster at reversals than the filter's cutoff: model and measurement are filtered equally.

    Attributes:
        rate: Rows per second [Hz].
        columns: Columns of each row group of the model without known friction, shape (R, k_g) each.
        tau: Measured torque of the row groups, shape (R, n) [N·m or N].
        friction: Joint index → columns of its friction curve, shape (R, 8).
        inputs: Possible inputs of a residual: name → shape (R, n) [SI].
    """

    log: str
    rate: float
    columns: tuple[Array, ...]
    tau: Array
    friction: Mapping[int, Array]
    inputs: Mapping[str, Array]

    def __len__(self) -> int:
        return len(self.tau)


def loop_rows(model: DynamicModel, log: PreparedLog, curves: Sequence[FrictionCurve]) -> LoopRows:
    """Builds the rows of a log for a model without the friction of the curves."""
    conditioned = log.conditioned
    row_filter, rate = RowFilter(conditioned.factor), conditioned.decimate_rate
    pieces: list[list[Array]] = []
    friction: dict[int, list[Array]] = {model.robot.index(curve.joint): [] for curve in curves}
    inputs: dict[str, list[Array]] = {}
    for segment in log.segments:
        if row_filter.output_rows(len(segment)) < 2:
            continue
        once = 1.0 / np.sqrt(segment.repeats)  # undoes the weight of averaged periods
        blocks = [[once * x for x in group] for _, group in filtered_rows(model, segment, row_filter)]
        pieces.append([lowpass(np.vstack(stack), rate, conditioned.cutoff) for stack in zip(*blocks, strict=True)])
        for curve in curves:
            j = model.robot.index(curve.joint)
            columns = row_filter.apply(asymmetric_columns(curve.law, segment.v[:, j]))
            friction[j].append(lowpass(columns, rate, conditioned.cutoff))
        for name, value in residual_inputs(segment).items():
            if value is not None:
                inputs.setdefault(name, []).append(row_filter.apply(value))
    if not pieces:
        raise EstimationError(
            "the log is shorter than the filter", where=log.name, remedy="record longer, or raise signals.decimate"
        )
    stacked = [np.vstack(stack) for stack in zip(*pieces, strict=True)]
    return LoopRows(
        log.name,
        rate,
        tuple(block[:, :-1] for block in stacked),
        np.column_stack([block[:, -1] for block in stacked]),
        {j: np.vstack(blocks) for j, blocks in friction.items()},
        {name: np.vstack(blocks) for name, blocks in inputs.items() if len(blocks) == len(pieces)},
    )


def link_statistics(model: DynamicModel, logs: Sequence[LoopRows], known: Sequence[Array]) -> StatisticSet:
    """The equations of the links after subtraction of known torques.

    Args:
        known: Known joint torques of each log, shape (R, n) [N·m or N].
    """
    layouts = tuple(Layout(group.name, group.joint, group.columns) for group in model.groups)
    entries = []
    for rows, torque in zip(logs, known, strict=True):
        targets = rows.tau - model.row_targets(torque)
        for g, layout in enumerate(layouts):
            factor = triangle(np.column_stack([rows.columns[g], targets[:, g]]))
            entries.append(Statistic(rows.log, 0, layout.group, factor, len(rows)))
    return StatisticSet(model.names, layouts, tuple(entries), f"{model.fingerprint} loops")


def joint_error(model: DynamicModel, theta: Array, rows: LoopRows, known: Array) -> Array:
    """Measured torque minus that of links and known torques.

    Args:
        theta: Its parameters, shape (p,).
        known: Known joint torques, shape (R, n) [N·m or N].
    """
    predicted = np.column_stack([block @ theta[group.columns] for block, group in zip(rows.columns, model.groups, strict=True)])
    return np.asarray(np.linalg.solve(model.drive.row_mix, (rows.tau - predicted).T).T - known)


def residual_inputs(segment: Segment) -> dict[str, Array | None]:
    """Possible inputs of a residual from a segment.

    Returns:
        Name → shape (N, n) [SI], or None if the segment lacks it.
    """
    deformation = None if segment.qm is None else segment.qm - segment.q
    rate = None if segment.vm is None else segment.vm - segment.v
    return {
        "deformation": deformation,
        "deformation_rate": rate,
        "position": segment.q,
        "velocity": segment.v,
        "acceleration": segment.a,
    }


def decimated_log(log: PreparedLog) -> list[Segment]:
    """A log's segments at the rate of its equations with low-passed torque, sufficient for runs at constant speed."""
    cutoff = min(log.conditioned.cutoff, log.conditioned.row_cutoff)
    smooth = (replace(segment, tau=lowpass(segment.total, segment.rate, cutoff), external=None) for segment in log.segments)
    return [segment.thinned(log.conditioned.factor) for segment in smooth]


def without_torque(log: PreparedLog, torques: Sequence[Array]) -> PreparedLog:
    """Subtracts a known torque from a log's measured torque; it is lost in the gears and does not load them.

    Args:
        torques: One array per segment, shape (N, n) [N·m or N].
    """
    return log.with_segments(
        replace(segment, tau=None if segment.tau is None else segment.tau - torque)
        for segment, torque in zip(log.segments, torques, strict=True)
    )
