"""Row groups: rows that share a noise level and a set of columns; and the inertial columns that span all others, found on
random motion without regard to limits.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..linalg import Array, BoolArray, IntArray, independent_columns, lstsq, positive, triangle
from .base import RANK_TOLERANCE
from .drive import Drive
from .rigid_bodies import per_robot, regressor
from .robot import Robot

#: A column is dependent, or zero, if its independent share on random motion is below this.
_SAME, _ZERO = 1e-10, 1e-13


@per_robot
def _sample(robot: Robot) -> tuple[Array, Array]:
    """Positions of random motion, shape (N, n), and the regressor on it, shape (N, n, 10 n_bodies)."""
    n, generator = robot.n, np.random.default_rng(0)
    count = 40 + 2 * len(robot.bodies)
    reach = np.where(robot.prismatic, 1.0, np.pi)
    q = generator.uniform(-reach, reach, (count, n))
    v, a = (scale * generator.standard_normal((count, n)) for scale in (2.0, 5.0))
    return q, regressor(robot, q, v, a)


@per_robot
def spanning(robot: Robot) -> tuple[IntArray, Array]:
    """Finds inertial columns that span all others for every motion, and the combinations.

    Returns:
        Their indices, shape (b,), and E with ``Y = Y[:, indices] E``, shape (b, 10·n).
    """
    return _spanning(_sample(robot)[1], np.arange(robot.n_inertial))


@per_robot
def spanning_anywhere(robot: Robot) -> tuple[IntArray, Array]:
    """:func:`spanning` for every motion and direction of gravity; columns of the last bodies are preferred."""
    q, made = _sample(robot)
    still = np.zeros_like(q)
    sides = [regressor(robot.with_gravity(list(side)), q, still, still) for side in np.eye(3)]
    tips_first = np.arange(robot.n_inertial).reshape(-1, 10)[::-1].ravel()
    return _spanning(np.concatenate([made, *sides]), tips_first)


def present(robot: Robot, mix: Array, columns: IntArray) -> BoolArray:
    """Finds the columns that are not structurally zero in a row, shape (k,).

    Args:
        mix: Weights of the joint rows in the row, shape (n,).
        columns: Inertial columns, shape (k,).
    """
    made = _sample(robot)[1][:, :, columns]
    size, most = np.linalg.norm(np.tensordot(mix, made, axes=(0, 1)), axis=0), np.linalg.norm(made, axis=(0, 1))
    return np.asarray(size > _ZERO * np.abs(mix).max() * positive(most))


def _spanning(made: Array, order: IntArray) -> tuple[IntArray, Array]:
    """Returns columns of a regressor (N, n, p) that span all others, in order of preference, and the combinations."""
    R = triangle(made.reshape(-1, made.shape[2]))
    norms = np.linalg.norm(R, axis=0)
    scaled = R / np.where(norms > 0, norms, 1.0)
    # columns that the reduction to base parameters keeps come first
    coarse = independent_columns(scaled[:, order], RANK_TOLERANCE)[0]
    kept, rest = order[coarse], order[~coarse]
    fine = independent_columns(scaled[:, rest], _SAME, np.linalg.qr(scaled[:, kept])[0])[0]
    kept = np.sort(np.concatenate([kept, rest[fine]]))
    others = np.setdiff1d(order, kept)
    E = np.zeros((len(kept), len(norms)))
    E[np.arange(len(kept)), kept] = 1.0
    E[:, others] = lstsq(scaled[:, kept], scaled[:, others], rcond=None)[0]
    E[:, others] *= norms[others] / norms[kept][:, None]
    return kept, E


class Limb(NamedTuple):
    """Joints that carry common bodies: their torques have no inertial parameters in common with those of other limbs.

    Attributes:
        joints: Their indices, in order.
        robot: The robot of these joints alone.
        columns: Its inertial parameters among those of the whole robot, shape (10 bodies,).
    """

    joints: tuple[int, ...]
    robot: Robot
    columns: IntArray


def limbs(robot: Robot, reduction: Array | None = None) -> tuple[Limb, ...]:
    """Returns the limbs of a robot; joints with common motors are of one limb.

    Args:
        reduction: Motor rates per joint rates, shape (n, n), or None if every motor drives one joint.
    """
    bodies = np.array([np.isin(np.arange(len(robot.bodies)), carried) for carried in robot.subtrees])
    motors = np.eye(robot.n, dtype=bool) if reduction is None else reduction.T != 0
    together = (bodies @ bodies.T) | (motors @ motors.T)
    for _ in range(robot.n.bit_length()):  # what has something in common with a common neighbour, twice as far each time
        together = together @ together
    found = []
    for first in np.unique(together.argmax(axis=1)):
        joints = tuple(np.flatnonzero(together[first]).tolist())
        carried = np.flatnonzero(bodies[list(joints)].any(axis=0))
        columns = (10 * carried[:, None] + np.arange(10)).ravel()
        found.append(Limb(joints, robot.of_bodies(carried.tolist()), columns))
    return tuple(found)


def of_all_joints(every: Sequence[Limb], parts: Sequence[Array], axis: int = -1) -> Array:
    """Joins values of the joints of each limb in the order of the robot's joints.

    Args:
        parts: Of each limb, shape (..., joints) or with the joints along another axis.
        axis: That of the joints.
    """
    order = np.argsort(np.concatenate([limb.joints for limb in every]))
    return np.take(np.concatenate(parts, axis=axis), order, axis=axis)


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
