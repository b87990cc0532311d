"""The springs that the data tell from gravity and offsets, and how large their torque is."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ...friction import Offset
from ...linalg import Array, orthogonal_part, positive
from ...statistics.statistic import StatisticSet
from .candidates import Key, WideModel
from .joint_search import DISTINCT

#: Relative tolerance for the rank of the rigid columns.
_CUT = 1e-9


def visible_springs(wide: WideModel, statistics: StatisticSet, weights: Mapping[str, float], axis: int) -> dict[Key, Array]:
    """Returns the springs among a joint's candidates whose varying torque the bodies and an offset cannot explain.

    A spring's constant torque is that of an offset, which a joint has anyway, and which on a vertical slide is the weight. The
    columns of a balancer are nearly collinear in a small motion: their weakest combination is decisive, of which more than
    :data:`.DISTINCT` must be independent.

    Args:
        weights: Row group → weight [1/unit of torque].

    Returns:
        Matrix M per spring, shape (r, k), such that for parameters x ``‖M x‖`` is the standard deviation of the spring's torque
        over the root mean square of the joint's torque.
    """
    laws = wide.candidates[axis]
    offset = next((wide.columns[list(law.at)] for law in laws if law.key == (Offset.name, "joint")), None)
    springs = {law.key: wide.columns[list(law.at)] for law in laws if law.law.conservative and offset is not None}
    alone = {layout.group: float(layout.joint == axis) for layout in statistics.layouts}
    visible = {}
    for key, columns in springs.items():
        rigid, own = np.split(
            statistics.stacked(weights, np.concatenate([wide.common, offset, columns]))[:, :-1], [-len(columns)], axis=1
        )
        varying = orthogonal_part(own, rigid[:, -1:], _CUT)
        moved = np.linalg.norm(varying, axis=0) > _CUT * np.linalg.norm(own, axis=0)
        if not moved.any():
            continue
        apart = orthogonal_part(own[:, moved], rigid, _CUT) / np.linalg.norm(varying[:, moved], axis=0)
        if np.linalg.svd(apart, compute_uv=False)[-1] >= DISTINCT:
            factor = statistics.stacked(alone, np.concatenate([offset, columns]))
            effort = positive(float(np.linalg.norm(factor[:, -1])))
            visible[key] = orthogonal_part(factor[:, 1:-1], factor[:, :1]) / effort
    return visible
