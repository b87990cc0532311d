"""Excludes pairs that touch by design and pairs that provably never come close."""

from __future__ import annotations

import numpy as np

from ...errors import LimitError
from ...linalg import Array
from ..limits import finite_ends
from .clearance import MEASURED, pair_levers
from .collisions import Collisions

#: Number of random configurations for the decision which pairs always touch.
SAMPLES = 200
#: Links closer than TOUCHING in this share of them touch by design.
ALWAYS, TOUCHING = 0.95, 0.01  # [-, m]
#: A distance that varies less than this counts as constant [m].
CONSTANT = 2e-3
#: Cells per side of the first grid of two angles, and number of subdivisions of a cell into four.
_CELLS, _CUTS = 12, 5
#: With more undecided cells than this, the proof is abandoned.
_MANY = 400


def relevant_pairs(collisions: Collisions) -> tuple[list[int], tuple[str, ...]]:
    """Excludes pairs that always touch, with a note, and pairs that never can.

    Links that touch by design do so at any clearance; the first moving link may be mounted on an object. Any other pair that
    is too close in all configurations indicates an error in the world file, such as millimetres, and must not be ignored.

    Returns:
        Indices of the remaining pairs, and notes on those that touch.

    Raises:
        LimitError: No tested configuration keeps the distance of a pair, or the tool in its box.
    """
    robot, pairs, required = collisions.robot, collisions.pairs, collisions.required
    rng = np.random.default_rng(0)
    distance = collisions.distances(rng.uniform(*finite_ends(robot.limit("lower"), robot.limit("upper")), (SAMPLES, robot.n)))
    solid = np.array([pair.second >= 0 for pair in pairs], dtype=bool)
    of_world = np.array([pair.second < 0 or collisions.solids[pair.second].of_world for pair in pairs], dtype=bool)
    touching = (distance < np.minimum(required, TOUCHING)).mean(axis=0) >= ALWAYS
    beyond = (distance < required + 5 * MEASURED).all(axis=0)  # a distance equal to the required one cannot be certified
    mounted = of_world & np.array([collisions.kinematics.moves[body].sum() == 1 for body, _ in collisions.bodies], dtype=bool)
    always = solid & np.where(of_world, beyond & mounted, touching) | solid & beyond & (np.ptp(distance, axis=0) < CONSTANT)
    _check_possible(collisions, distance, beyond & ~always)
    left_out, watched = (dict.fromkeys(pairs[p].names for p in np.flatnonzero(which)) for which in (always, ~always))
    listed = ", ".join(f"{' and '.join(names)}{' (some of their shapes)' * (names in watched)}" for names in left_out)
    notes = (f"closer than the clearance in nearly all poses, so not watched: {listed}",) if listed else ()
    return [p for p in range(len(pairs)) if not always[p] and not _never_close(collisions, p)], notes


def _check_possible(collisions: Collisions, distance: Array, beyond: Array) -> None:
    for p in np.flatnonzero(beyond).tolist():
        pair, most = collisions.pairs[p], float(distance[:, p].max())
        if pair.second < 0:
            raise LimitError(
                "the tool is outside its box on every configuration tried",
                where=pair.names[0],
                got=f"{-most:.3g} m outside at best",
                remedy="enlarge the box, or correct `base` in the world file",
            )
        overlap = most < 0
        raise LimitError(
            "they overlap on every configuration tried" if overlap else "the clearance cannot be kept",
            where=" and ".join(pair.names),
            got=f"{abs(most):.3g} m {'deep' if overlap else 'apart'} at best",
            expected=f"at least {collisions.required[p]:.3g} m apart",
            remedy="check sizes and places in the world file [m], choose a smaller clearance, or `allow` this pair",
        )


def _never_close(collisions: Collisions, pair: int) -> bool:
    """Whether two solids with two independent revolute joints between them provably never come too close.

    A cell of angles is safe if the distance at its centre minus the largest change up to its edge suffices; other cells are
    subdivided into four.

    Returns:
        True if proved; False is inconclusive.
    """
    robot, kinematics = collisions.robot, collisions.kinematics
    joints, on_first, on_second = pair_levers(collisions, pair, np.zeros(kinematics.n))
    if len(joints) != 2 or kinematics.prismatic[joints].any() or collisions.pairs[pair].second < 0:
        return False
    if not set(joints) <= {*robot.place_in_tree}:
        return False
    independent = [robot.place_in_tree.index(j) for j in joints]
    arms = np.minimum(on_first, on_second)[joints]
    half = np.pi / _CELLS
    middles = (2 * np.arange(_CELLS) + 1) * half - np.pi
    cells = np.stack(np.meshgrid(middles, middles), axis=-1).reshape(-1, 2)
    for _ in range(_CUTS):
        q = np.zeros((len(cells), robot.n))
        q[:, independent] = cells
        distance = collisions.exact(kinematics.evaluate(q), np.arange(len(cells)), np.full(len(cells), pair))[0] - MEASURED
        if (distance < collisions.required[pair]).any():
            return False
        cells = cells[distance - half * arms.sum() < collisions.required[pair]]
        if not len(cells) or len(cells) > _MANY:
            return not len(cells)
        half /= 2
        cells = (cells[:, None] + half * np.array([[-1, -1], [-1, 1], [1, -1], [1, 1]])).reshape(-1, 2)
    return False
