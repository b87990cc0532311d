"""Row groups: rows that share a noise level and a set of columns, and which of these columns the others follow from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..linalg import Array
from .engine.rigid import rigid_of
from .robot import Robot


@dataclass(frozen=True, eq=False)
class RowGroup:
    """Rows of the estimation problem that share a noise level and a set of columns.

    Attributes:
        name: ``"joint:<name>"`` or ``"actuator:<name>"``.
        joint: Index of the joint it is named after.
        mix: Shape (n,): how the joint rows combine to this row.
        columns: Indices into theta of the columns that are not structurally zero here, shape (k,).
        scale: Shape (k,): factor of each term column in this row; 1 for inertial columns.
    """

    name: str
    joint: int
    mix: Array
    columns: NDArray[np.intp]
    scale: Array


@dataclass(frozen=True, eq=False)
class Compact:
    """Columns of a row group without those that follow from the others, whatever the motion.

    Attributes:
        places: Which columns of the group are left, shape (c,).
        expansion: E with ``all columns = left ones @ E``, shape (c, k).
    """

    places: NDArray[np.intp]
    expansion: Array


def compact_groups(robot: Robot, groups: Sequence[RowGroup]) -> tuple[Compact, ...]:
    """Which inertial columns of row groups the others follow from, whatever the motion.

    Args:
        groups: The row groups.

    Returns:
        One a group; terms are all left.
    """
    kept, expansion = rigid_of(robot).spanning
    found = []
    for group in groups:
        inertial = group.columns[group.columns < 10 * robot.n]
        own = np.flatnonzero(np.isin(kept, inertial))
        present = rigid_of(robot).present(group.mix, inertial)
        own = own[present[np.searchsorted(inertial, kept[own])]]
        terms = len(group.columns) - len(inertial)
        matrix = np.zeros((len(own) + terms, len(group.columns)))
        matrix[: len(own), : len(inertial)] = expansion[np.ix_(own, inertial)] * present
        matrix[len(own) :, len(inertial) :] = np.eye(terms)
        places = np.concatenate([np.searchsorted(inertial, kept[own]), len(inertial) + np.arange(terms)])
        matrix.setflags(write=False)
        found.append(Compact(places.astype(np.intp), matrix))
    return tuple(found)
