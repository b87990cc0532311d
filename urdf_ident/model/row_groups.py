"""Row groups: rows that share a noise level and a set of columns, and spanning subsets of these columns."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from ..linalg import Array, IntArray
from .drive import Drive
from .robot import Robot
from .spanning import present, spanning


@dataclass(frozen=True, eq=False)
class RowGroup:
    """Rows of the estimation problem that share a noise level and a set of columns.

    Attributes:
        name: ``"joint:<name>"`` or ``"actuator:<name>"``; with elastic joints also ``"link:<name>"`` and ``"motor:<name>"``.
        joint: Index of the joint it is named after.
        mix: Shape (n,): weights of the joint rows in this row.
        columns: Indices into theta of the columns that are not structurally zero here, shape (k,).
        scale: Shape (k,): factor of each term column in this row; 1 for inertial columns.
    """

    name: str
    joint: int
    mix: Array
    columns: IntArray
    scale: Array


def joint_of(group: str) -> str:
    """Name of the joint or actuator that a row group is named after."""
    return group.split(":", 1)[-1]


@dataclass(frozen=True, eq=False)
class Compact:
    """Subset of a row group's columns that spans all of them for every motion.

    Attributes:
        places: Indices of the kept columns in the group, shape (c,).
        expansion: E with ``all columns = kept columns @ E``, shape (c, k).
    """

    places: IntArray
    expansion: Array


def inertial_columns(robot: Robot, mix: Array) -> IntArray:
    """Returns the inertial parameters of all bodies that the joints of a row carry.

    Args:
        mix: Weights of the joint rows in the row, shape (n,).

    Returns:
        Their indices in theta, shape (k,).
    """
    bodies = sorted({body for joint in np.flatnonzero(mix) for body in robot.subtrees[joint]})
    return np.array([10 * body + k for body in bodies for k in range(10)], dtype=np.intp)


def row_groups(robot: Robot, drive: Drive, distribution: Array, apart: Collection[int] = ()) -> tuple[RowGroup, ...]:
    """Returns one row group per motor: its joint's torque, or for coupled joints the torque at the actuator.

    Args:
        distribution: Coefficients of each term column in the joint rows, shape (n, k).
        apart: Joints whose rows contain no bodies.
    """
    groups = []
    for j, joint in enumerate(robot.joints):
        mix = drive.row_mix[j]
        inertial = inertial_columns(robot, np.zeros(robot.n) if j in apart else mix)
        mixed = mix @ distribution
        mixed[np.abs(mixed) < 1e-12 * np.abs(mixed).max(initial=0.0)] = 0.0
        used = np.flatnonzero(mixed)
        kind = "actuator" if drive.coupled[j] else "joint"
        columns = np.concatenate([inertial, robot.n_inertial + used])
        groups.append(RowGroup(f"{kind}:{joint}", j, mix, columns, np.concatenate([np.ones(len(inertial)), mixed[used]])))
    return tuple(groups)


def compact_groups(robot: Robot, groups: Sequence[RowGroup]) -> tuple[Compact, ...]:
    """Finds the inertial columns of row groups that span the others for every motion.

    Returns:
        One per group; all term columns are kept.
    """
    kept, expansion = spanning(robot)
    compact = []
    for group in groups:
        inertial = group.columns[group.columns < robot.n_inertial]
        spanned = np.flatnonzero(np.isin(kept, inertial))
        there = present(robot, group.mix, inertial)
        spanned = spanned[there[np.searchsorted(inertial, kept[spanned])]]
        terms = len(group.columns) - len(inertial)
        matrix = np.zeros((len(spanned) + terms, len(group.columns)))
        matrix[: len(spanned), : len(inertial)] = expansion[np.ix_(spanned, inertial)] * there
        matrix[len(spanned) :, len(inertial) :] = np.eye(terms)
        places = np.concatenate([np.searchsorted(inertial, kept[spanned]), len(inertial) + np.arange(terms)])
        matrix.setflags(write=False)
        compact.append(Compact(places.astype(np.intp), matrix))
    return tuple(compact)
