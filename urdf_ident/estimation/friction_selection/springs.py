"""Whether the data tell a spring from gravity, and how large it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ...linalg import Array, lstsq
from ...statistics.statistic import StatisticSet

#: A spring of which the rigid bodies can make more than all but this share is not told from them: the URDF's error would
#: decide between the two. Logs of 8 s of a real arm without springs, of which a tenth was left, showed one.
APART = 0.2
#: Directions of the rigid columns that are weaker than this are not seen.
_CUT = 1e-9


def told_apart(
    statistics: StatisticSet, weights: Mapping[str, float], common: Sequence[int], columns: NDArray[np.intp]
) -> float:
    """How far a spring is from everything that the rigid bodies can do in the data.

    The columns of a spring differ by a constant, and a small motion makes them alike: what counts is their weakest
    combination.

    Args:
        weights: Row group → weight [1/unit of torque].
        common: Columns of theta that every model has, shape (c,); a constant of the joint is among the spring's own or
            the joint's offset, and is left to it.
        columns: The spring's columns of theta, shape (k,).

    Returns:
        Share of length, 0 to 1, of the weakest combination of the spring's columns, that the common columns cannot make.
    """
    factor = statistics.stacked(weights, np.concatenate([common, columns]).astype(np.intp))[:, :-1]
    rigid, own = factor[:, : len(common)], factor[:, len(common) :]
    lengths = np.linalg.norm(own, axis=0)
    if not (lengths > 0).all():
        return 0.0
    rigid = rigid / np.maximum(np.linalg.norm(rigid, axis=0), 1e-300)
    left = (own - rigid @ lstsq(rigid, own, rcond=_CUT)[0]) / lengths
    return float(np.linalg.svd(left, compute_uv=False)[-1])


def varying_torque(statistics: StatisticSet, groups: Sequence[str], columns: NDArray[np.intp], constant: int) -> Array:
    """What a spring's parameters make of the part of its torque that varies, as a share of the torque.

    Args:
        groups: Row groups of the joint.
        columns: Columns of theta of the spring, shape (k,).
        constant: Column of theta of a constant torque of the joint.

    Returns:
        Matrix M, shape (r, k), such that ``‖M x‖`` is the root mean square of the spring's torque about its mean over that of
        the joint's torque, for the parameters x.
    """
    weights = {group: float(group in groups) for group in statistics.groups}
    factor = statistics.stacked(weights, np.append(columns, constant).astype(np.intp))
    own, still = factor[:, :-2], factor[:, -2]
    length = float(still @ still)
    left = own - np.outer(still, still @ own / length) if length > 0 else own
    effort = np.sqrt(sum(statistics.effort_squares(group) for group in groups))
    return np.asarray(left / max(float(effort), 1e-300))
