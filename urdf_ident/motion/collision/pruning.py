"""Excludes pairs that touch by design."""

from __future__ import annotations

import numpy as np

from ...errors import LimitError
from ..limits import finite_ends
from .clearance import MEASURED
from .collisions import Collisions

#: Number of random configurations for the decision which pairs always touch.
SAMPLES = 200
#: Links closer than TOUCHING in this share of them touch by design.
ALWAYS, TOUCHING = 0.95, 0.01  # [-, m]
#: A distance that varies less than this counts as constant [m].
CONSTANT = 2e-3


def relevant_pairs(collisions: Collisions) -> tuple[list[int], tuple[str, ...]]:
    """Excludes pairs that always touch, with a note.

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
    for p in np.flatnonzero(beyond & ~always).tolist():
        pair, most = pairs[p], float(distance[:, p].max())
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
            expected=f"at least {required[p]:.3g} m apart",
            remedy="check sizes and places in the world file [m], choose a smaller clearance, or `allow` this pair",
        )
    left_out, watched = (dict.fromkeys(pairs[p].names for p in np.flatnonzero(which)) for which in (always, ~always))
    listed = ", ".join(f"{' and '.join(names)}{' (some of their shapes)' * (names in watched)}" for names in left_out)
    notes = (f"closer than the clearance in nearly all poses, so not watched: {listed}",) if listed else ()
    return np.flatnonzero(~always).tolist(), notes
