"""Inertial columns of a robot's regressor that span all others, found on random motion without regard to limits."""

from __future__ import annotations

import numpy as np

from ..linalg import Array, BoolArray, IntArray, independent_columns, lstsq, positive, triangle
from .rigid_bodies import per_robot, regressor
from .robot import Robot

#: A column is dependent, or zero, if its independent share on random motion is below this.
_SAME, _ZERO = 1e-10, 1e-13
#: Tolerance of the reduction to base parameters; columns that it keeps are chosen first, so that they are preserved.
_COARSE = 1e-4


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
    coarse = independent_columns(scaled[:, order], _COARSE)[0]
    kept, rest = order[coarse], order[~coarse]
    fine = independent_columns(scaled[:, rest], _SAME, np.linalg.qr(scaled[:, kept])[0])[0]
    kept = np.sort(np.concatenate([kept, rest[fine]]))
    others = np.setdiff1d(order, kept)
    E = np.zeros((len(kept), len(norms)))
    E[np.arange(len(kept)), kept] = 1.0
    E[:, others] = lstsq(scaled[:, kept], scaled[:, others], rcond=None)[0]
    E[:, others] *= norms[others] / norms[kept][:, None]
    return kept, E
