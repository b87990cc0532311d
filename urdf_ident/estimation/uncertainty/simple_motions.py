"""Simple motions that an operator can command, from one joint slowly to all joints fast, and what each would determine.

They are smooth ones within the robot's range and speeds; their information follows from the regressor along them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from ...grouping import grouped
from ...linalg import Array, IntArray
from ...model.base import BaseParameters
from ...model.dynamic_model import DynamicModel
from ...model.robot import Robot
from ...samples import SLOW, Segment

#: Length of a simple motion [s]; number of its states and minimum; number of joints up to which all states are used. Each state
#: gives one row per joint, so that fewer states suffice for many joints.
SECONDS, STATES, _FEWEST, _ALL_STATES = 20.0, 400, 50, 8
#: Relative magnitude below which the information of a simple motion on a parameter (or combination) counts as zero.
_NEGLIGIBLE = 1e-6
#: Longest period of a fast motion [s], so that it accelerates.
FAST_PERIOD = 4.0
#: Sines of a motion: share of its amplitude, multiple of its frequency; the speeds add up to about one.
_SINES = ((0.5, 1.0), (0.12, 2.3), (0.05, 4.1))
#: Error after a motion over that of the best one up to which it is as useful, beside data it hardly adds to.
AS_USEFUL = 1.15
#: Speed of joints without a limit [rad/s or m/s].
SPEED = 2.0
#: All pairs of joints are tried up to this number of joints, with more joints only neighbours.
_ALL_PAIRS = 8


@dataclass(frozen=True, eq=False)
class SimpleMotion:
    """A motion: its description, the joints that move, and sampled states."""

    words: str
    moving: tuple[int, ...]
    states: Segment


def simple_motions(robot: Robot, seed: int = 0) -> Iterator[SimpleMotion]:
    """Yields motions from the simplest to the most demanding.

    Yields:
        One joint slowly (gravity, friction at low speed), one joint fast, two fast, all slowly, all fast.
    """
    n, names = robot.n, robot.joints
    reach = np.where(robot.prismatic, 0.5, np.pi)
    lower, upper = (np.clip(np.nan_to_num(robot.limit(key)), -reach, reach) for key in ("lower", "upper"))
    empty = upper <= lower
    lower, upper = np.where(empty, -reach, lower), np.where(empty, reach, upper)
    count = max(_FEWEST, round(STATES * min(1.0, (_ALL_STATES / n) ** 2)))
    t = np.linspace(0.0, SECONDS, count)[:, None]
    paces = []
    for pace in (SLOW, 1.0):  # sines that reach the speed within the range, with at least one reversal
        rng = np.random.default_rng(seed)
        speed = pace * np.minimum(robot.limit("velocity"), SPEED)
        span = np.minimum(0.45 * (upper - lower), speed * (SECONDS if pace < 1 else FAST_PERIOD) / (2 * np.pi))
        turn = (speed / span) * rng.uniform(0.8, 1.0, n)
        q, v, a = np.tile(lower + (upper - lower) * rng.uniform(0.4, 0.6, n), (count, 1)), *np.zeros((2, count, n))
        for share, multiple in _SINES:
            w, phase = multiple * turn, rng.uniform(0.0, 2 * np.pi, n)
            q = q + share * span * np.sin(w * t + phase)
            v = v + share * span * w * np.cos(w * t + phase)
            a = a - share * span * w**2 * np.sin(w * t + phase)
        rest, load = lower + (upper - lower) * rng.random(n), 10.0 * rng.standard_normal(q.shape)
        twist, vm, am = (scale * pace * rng.standard_normal(q.shape) for scale in (0.01, 1.0, 1.0))
        motion = Segment("simple motion", 0.0, count / SECONDS, q, v, a, None, q + twist, v + vm, a + am, reference_torque=load)
        paces.append((motion, rest))
    slow, fast = paces
    for j, name in enumerate(names):
        yield SimpleMotion(f"move {name} slowly over its range", (j,), _only(*slow, (j,)))
    for j, name in enumerate(names):
        yield SimpleMotion(f"move {name} fast both ways", (j,), _only(*fast, (j,)))
    for i, j in combinations(range(n), 2):
        if n <= _ALL_PAIRS or robot.place_in_tree[j] in robot.subtrees[i][:2]:
            yield SimpleMotion(f"move {names[i]} and {names[j]} fast and at the same time", (i, j), _only(*fast, (i, j)))
    if n > 1:
        every = tuple(range(n))
        yield SimpleMotion("move all joints slowly over their ranges", every, _only(*slow, every))
        yield SimpleMotion("move all joints fast and at the same time", every, _only(*fast, every))


def simplest(trials: Iterable[tuple[SimpleMotion, float]], nearly: float, enough: float = 0.0) -> tuple[str, float]:
    """Returns the first motion that is sufficient, or nearly as good as the best, and the error after it.

    Args:
        trials: Motions, and the standard error that each leaves, any unit.
        nearly: Error over that of the best one up to which a motion will do.
        enough: Error that is sufficient.
    """
    tried = list(trials)
    limit = max(nearly * min(left for _, left in tried), enough)
    return next((motion.words, left) for motion, left in tried if left <= limit)


def _only(motion: Segment, rest: Array, moving: tuple[int, ...]) -> Segment:
    """The motion of some joints and their motors, with the others at rest."""
    still = np.setdiff1d(np.arange(len(rest)), moving)
    changed: dict[str, Any] = {name: np.array(getattr(motion, name)) for name in ("q", "v", "a", "qm", "vm", "am")}
    for name, array in changed.items():
        array[:, still] = rest[still] if name.startswith("q") else 0.0
    return replace(motion, **changed)


def motion_factor(
    model: DynamicModel, base: BaseParameters, motion: SimpleMotion, weights: Mapping[str, float], *, alone: bool = False
) -> Array:
    """Returns a factor of the information of a simple motion on the base parameters, per state.

    Args:
        weights: Row group → weight [1/unit of torque]; 1 for missing groups.
        alone: Whether the motion is the only source of information, and nothing is asked about the friction of joints at
            rest. A row with a constant of its own, such as their offset, then tells nothing by its mean.

    Returns:
        Factor of full row rank, shape (≤ b, b), scaled to one state; directions below :data:`_NEGLIGIBLE` are omitted.
    """
    count = len(motion.states.q)
    gram, means = np.zeros((len(base), len(base))), np.zeros((len(model.groups), len(base)))
    varied: list[tuple[bytes, tuple[IntArray, Array]]] = []
    for _, blocks in model.row_blocks(motion.states, chunk=count):
        for group, block, mean in zip(model.groups, blocks, means, strict=True):
            target = base.place[group.columns]
            columns, kept = block[:, target >= 0] * weights.get(group.name, 1.0), target[target >= 0]
            varying = (columns != columns[0]).any(axis=0)  # of many joints, few of the other bodies move
            mean[kept] = np.where(varying, columns.mean(axis=0), columns[0])
            moved = kept[varying]
            varied.append((moved.tobytes(), (moved, columns[:, varying] - mean[moved])))
    for alike in grouped(varied).values():  # the same bodies vary in the rows of all joints that carry the moving one
        moved, away = alike[0][0], np.vstack([deviation for _, deviation in alike])
        gapless = len(moved) and (np.diff(moved) == 1).all()
        at = (slice(moved[0], moved[-1] + 1),) * 2 if gapless else (moved[:, None], moved)
        gram[at] += away.T @ away
    if alone:
        moving = {model.robot.joints[j] for j in motion.moving}
        resting = [k >= model.n_inertial and model.parameters[k].owner not in moving for k in base.independent]
        lone = np.array(resting) & (np.diag(gram) == 0) & (np.count_nonzero(means, axis=0) == 1)
        means[means[:, lone].any(axis=1)] = 0.0
    # A Gram matrix is precise enough for advice; of a motion that excites few directions only those are returned.
    used = np.flatnonzero((np.diag(gram) > 0) | means.any(axis=0))
    gram = gram[used[:, None], used] / count + means[:, used].T @ means[:, used]
    size = np.sqrt(np.diag(gram))
    values, vectors = np.linalg.eigh(gram / size / size[:, None])
    seen = values > _NEGLIGIBLE**2
    factor = np.zeros((int(seen.sum()), len(base)))
    factor[:, used] = np.sqrt(values[seen])[:, None] * vectors[:, seen].T * size
    return factor
