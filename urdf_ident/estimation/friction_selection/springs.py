"""Whether the data distinguish a spring from gravity, and the size of its torque."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ...linalg import Array, IntArray, orthogonal_part
from ...statistics.statistic import StatisticSet

#: Smallest share of a spring's columns that must be independent of the rigid columns: below it, the URDF's error would decide
#: between the two. In 8 s logs of a real arm without springs, with a share of a tenth, a spring was found.
LEAST_INDEPENDENCE = 0.2
#: Relative tolerance for the rank of the rigid columns.
_CUT = 1e-9


def independence(statistics: StatisticSet, weights: Mapping[str, float], common: Sequence[int], columns: IntArray) -> float:
    """Returns how independent a spring's columns are of the rigid columns in the data.

    The columns of a spring are nearly collinear in a small motion: the weakest combination of them is decisive.

    Args:
        weights: Row group → weight [1/unit of torque].
        common: Columns of theta in every model, shape (c,), without a constant of the joint, which the spring or the
            joint's offset contains.
        columns: The spring's columns of theta, shape (k,).

    Returns:
        Share of the norm, 0 to 1, of the weakest combination of the spring's columns that the common columns cannot explain.
    """
    factor = statistics.stacked(weights, np.concatenate([common, columns]).astype(np.intp))[:, :-1]
    rigid, own = factor[:, : len(common)], factor[:, len(common) :]
    lengths = np.linalg.norm(own, axis=0)
    if not (lengths > 0).all():
        return 0.0
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
    return np.asarray(left / max(float(effort), 1e-300))
