"""Poses without collisions where hardly any random one has none: hands, telescopic arms."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...linalg import Array, BoolArray
from .collisions import Collisions


def freed(
    pose: Array,
    collisions: Collisions,
    margin: Callable[[Array], Array],
    draw: Callable[[], Array],
    tries: int,
    movable: BoolArray | None = None,
) -> Array:
    """Moves the joints between links that are too close until none are: a thumb and its palm may be so in most poses.

    Args:
        pose: Shape (n,) [rad or m].
        collisions: The pairs.
        margin: Distances of a pose less those that are required, shape (P,) [m].
        draw: A random pose, shape (n,) [rad or m].
        tries: Number of random poses from which positions are taken.
        movable: Joints that may be moved, shape (n,); default: all.

    Returns:
        A free pose, or the best one found; shape (n,).
    """
    found = margin(pose)
    for _ in range(tries):
        if found.min(initial=np.inf) > 0:
            break
        joints = collisions.kinematics.chain(*collisions.bodies[int(np.argmin(found))])
        joints = [j for j in joints if movable is None or movable[j]]
        if not joints:
            break
        other = pose.copy()
        other[joints] = draw()[joints]
        there = margin(other)
        if np.minimum(there, 0.0).sum() > np.minimum(found, 0.0).sum():
            pose, found = other, there
    return pose
