"""What the data show of springs: whether they are told from gravity and offsets, and how large their torque is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ...friction import Offset
from ...linalg import Array, IntArray, orthogonal_part, positive
from ...statistics.statistic import StatisticSet
from .candidates import DISTINCT, Key, WideModel

#: Relative tolerance for the rank of the rigid columns.
_CUT = 1e-9


@dataclass(frozen=True, eq=False)
class SpringColumns:
    """How the data show a spring.

    Attributes:
        independence: Share of its varying torque that the rigid bodies and an offset cannot explain, 0 to 1.
        varying: Matrix that gives the varying part of its torque over the joint's torque, shape (r, k).
    """

    independence: float
    varying: Array

    @property
    def hidden(self) -> bool:
        """Whether the data do not distinguish it from other forces."""
        return self.independence < DISTINCT


def spring_columns(
    wide: WideModel, statistics: StatisticSet, weights: Mapping[str, float], axis: int
) -> dict[Key, SpringColumns]:
    """Returns how the data show the springs among a joint's candidates.

    Args:
        weights: Row group → weight [1/unit of torque].
        axis: Index of the joint.
    """
    groups, common = [layout.group for layout in statistics.layouts if layout.joint == axis], [int(c) for c in wide.common]
    laws = wide.candidates[axis]
    still = [int(law.columns[0]) for law in laws if law.key == (Offset.name, "joint")]
    return {
        law.key: SpringColumns(
            independence(statistics, weights, [*common, *still], law.columns),
            varying_torque(statistics, groups, law.columns, still[0]),
        )
        for law in laws
        if law.is_spring and still
    }


def independence(statistics: StatisticSet, weights: Mapping[str, float], common: Sequence[int], columns: IntArray) -> float:
    """Returns how independent a spring's varying torque is of the rigid columns in the data.

    Its constant torque is that of an offset, which a joint has anyway, and which on a vertical slide is the weight. The columns
    of a balancer are nearly collinear in a small motion: their weakest combination is decisive.

    Args:
        weights: Row group → weight [1/unit of torque].
        common: Columns of theta in every model, the last of them a constant torque of the joint, shape (c,).
        columns: The spring's columns of theta, shape (k,).

    Returns:
        Share of the norm, 0 to 1, of the weakest combination of the spring's columns, apart from their means, that the common
        columns cannot explain.
    """
    factor = statistics.stacked(weights, np.concatenate([common, columns]).astype(np.intp))[:, :-1]
    rigid, own = factor[:, : len(common)], factor[:, len(common) :]
    varying = orthogonal_part(own, rigid[:, -1:], _CUT)
    moved = np.linalg.norm(varying, axis=0) > _CUT * np.linalg.norm(own, axis=0)
    own, varying = own[:, moved], varying[:, moved]
    if not moved.any():
        return 0.0
    lengths = np.linalg.norm(varying, axis=0)
    return float(np.linalg.svd(orthogonal_part(own, rigid, _CUT) / lengths, compute_uv=False)[-1])


def varying_torque(statistics: StatisticSet, groups: Sequence[str], columns: IntArray, constant: int) -> Array:
    """Returns a matrix that gives the varying part of a spring's torque, relative to the joint's torque.

    Args:
        columns: Columns of theta of the spring, shape (k,).
        constant: Column of theta of a constant torque of the joint.

    Returns:
        Matrix M, shape (r, k), such that for parameters x ``‖M x‖`` is the standard deviation of the spring's torque over the
        root mean square of the joint's torque.
    """
    weights = {group: float(group in groups) for group in statistics.groups}
    factor = statistics.stacked(weights, np.append(columns, constant).astype(np.intp))
    own, still = factor[:, :-2], factor[:, -2]
    length = float(still @ still)
    left = own - np.outer(still, still @ own / length) if length > 0 else own
    effort = np.sqrt(sum(statistics.effort_squares(group) for group in groups))
    return np.asarray(left / positive(float(effort)))
