"""Simple motions that a person can order: one joint slowly, one fast, two together, all; and what each would show.

They answer "which motion would make this parameter visible?" by trying. Each is a handful of states over the robot's
range, not a trajectory: what it would teach follows from the regressor at those states.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from ..linalg import triangle
from ..model.base import BaseParameters
from ..model.dynamic_model import DynamicModel
from ..model.inertia import Array
from ..model.robot import Robot
from ..model.segment import Segment

#: States an exercise is judged by.
STATES = 240
#: Speed of joints without a limit [rad/s or m/s], and of slow motions over that of fast ones.
SPEED, SLOW = 2.0, 0.05
#: All pairs of joints are tried up to this many joints, neighbours only beyond.
_ALL_PAIRS = 8


@dataclass(frozen=True, eq=False)
class Exercise:
    """A motion in words, and states of it."""

    words: str
    states: Segment


def exercises(robot: Robot, seed: int = 0) -> Iterator[Exercise]:
    """Motions from the simplest to the hardest.

    Args:
        robot: The robot.
        seed: Of the states.

    Yields:
        One joint slowly (gravity, friction at low speed), one joint fast, two fast, all slowly, all fast.
    """
    n, names = robot.n, robot.joints
    for j, name in enumerate(names):
        yield Exercise(f"move {name} slowly over its range", _states(robot, (j,), SLOW, seed))
    for j, name in enumerate(names):
        yield Exercise(f"move {name} fast both ways over its range", _states(robot, (j,), 1.0, seed))
    for i, j in combinations(range(n), 2):
        if n <= _ALL_PAIRS or j in robot.subtrees[i][:3]:
            words = f"move {names[i]} and {names[j]} fast and at the same time"
            yield Exercise(words, _states(robot, (i, j), 1.0, seed))
    if n > 1:
        yield Exercise("move all joints slowly over their ranges", _states(robot, tuple(range(n)), SLOW, seed))
        yield Exercise("move all joints fast and at the same time", _states(robot, tuple(range(n)), 1.0, seed))


def _states(robot: Robot, moving: tuple[int, ...], pace: float, seed: int) -> Segment:
    """Random states in which only some joints move; the acceleration is that of swinging over the range at that speed."""
    rng = np.random.default_rng(seed)
    reach = np.where(robot.prismatic, 0.5, np.pi)
    lower, upper = (np.clip(np.nan_to_num(robot.limit(key)), -reach, reach) for key in ("lower", "upper"))
    empty = upper <= lower
    lower, upper = np.where(empty, -reach, lower), np.where(empty, reach, upper)
    top = np.minimum(robot.limit("velocity"), SPEED)
    swing = np.minimum(top**2 / (0.25 * (upper - lower)), 5.0 * top)
    q = lower + (upper - lower) * rng.random((STATES, robot.n))
    still = np.setdiff1d(np.arange(robot.n), moving)
    q[:, still] = q[0, still]
    v = pace * top * rng.uniform(-1.0, 1.0, q.shape)
    a = pace**2 * swing * rng.uniform(-1.0, 1.0, q.shape)
    v[:, still] = a[:, still] = 0.0
    load = 10.0 * rng.standard_normal(q.shape)
    twist, vm, am = (scale * pace * rng.standard_normal(q.shape) for scale in (0.01, 1.0, 1.0))
    twist[:, still] = vm[:, still] = am[:, still] = 0.0
    return Segment("exercise", 0.0, 100.0, q, v, a, None, q + twist, v + vm, a + am, reference_torque=load)


def shown(model: DynamicModel, base: BaseParameters, exercise: Exercise, weights: Mapping[str, float]) -> Array:
    """What an exercise shows of the base parameters, for one row a state.

    Args:
        model: The dynamic model.
        base: The reduction.
        exercise: The motion.
        weights: Row group → weight [1/unit of torque]; groups that are missing weigh one.

    Returns:
        Triangular factor, shape (≤ b, b), scaled to one state.
    """
    place = np.full(len(base.names), -1)
    place[base.independent] = np.arange(len(base))
    R = np.zeros((0, len(base)))
    for _, blocks in model.row_blocks(exercise.states, chunk=STATES):
        for group, block in zip(model.groups, blocks, strict=True):
            target = place[group.columns]
            rows = np.zeros((len(block), len(base)))
            rows[:, target[target >= 0]] = block[:, target >= 0] * weights.get(group.name, 1.0)
            R = triangle(R, rows)
    return np.asarray(R / np.sqrt(STATES))
