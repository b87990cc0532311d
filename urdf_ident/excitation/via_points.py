"""Point-to-point motions with given or searched via points (Gautier 2013), which suit a robot's own controller."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from ..errors import LimitError, ModelError, nearest
from ..linalg import Array, one_each
from ..model.dynamic_model import DynamicModel
from ..motion.collision.clearance import require_clearance
from ..motion.collision.collisions import Collisions
from ..motion.limits import Limits, check_limits, prior_torque
from ..motion.point_to_point import trapezoidal
from ..motion.trajectory import PiecewisePolynomial
from .criteria import SPECTRAL, condition_number, criterion_value
from .motion import DesignedMotion
from .problem import row_weights, usable_limits
from .rows import designable, rigid_for_planning, weighted_regressor

#: Fraction of velocity and acceleration limits for via points, and reduction factors to try if torques are too large.
FASTEST, SLOWER = 0.98, (1.0, 0.8, 0.6, 0.45, 0.3, 0.2)

#: Jerk over acceleration [1/s].
JERK = 10.0

#: Fraction of the position range for searched points; sampling rate for the evaluation of a motion [Hz].
FILL, JUDGED = 0.9, 50.0

#: Number of random sets of points before the best one is improved point by point.
DRAWN = 12

#: Seconds of a usual core to judge a motion.
_COST = 0.02

#: Number of random points to try for one that the robot reaches from the point before without a collision.
_TRIES = 200

#: Instants per move at which distances are checked before a motion is certified.
INSTANTS = 16


def design_points(
    model: DynamicModel,
    *,
    points: ArrayLike | int = 11,
    criterion: str = "auto",
    start: ArrayLike | None = None,
    limits: Limits | None = None,
    noise: ArrayLike | None = None,
    dwell: float = 0.0,
    collisions: Collisions | None = None,
    seed: int = 0,
    budget: float = 10.0,
) -> DesignedMotion:
    """Plans point-to-point motion with trapezoidal acceleration, synchronised joints, at rest at every point.

    Args:
        model: The model to identify; for elastic joints its rigid part is used.
        points: Via points, shape (K, n) [rad or m]; or their number, to search them.
        criterion: Criterion for searched points, one of :data:`.criteria.SPECTRAL`; "auto": D.
        start: First and last of the searched points, shape (n,) [rad or m].
        limits: Of the joints; the URDF's if None.
        noise: Expected torque noise of each row group, shape (n,) or a number, as for :func:`.design.design_excitation`.
        dwell: Pause at every point [s].
        collisions: Pairs whose clearance is kept; None: collisions are not checked.
        budget: Motions tried in the search, in seconds that they take on a usual core [s].

    Returns:
        The motion, with verified limits and certified distances.

    Raises:
        LimitError: A point is outside the limits, there are fewer than two, or no feasible motion was found.
        ModelError: The criterion is not in :data:`.criteria.SPECTRAL`.
    """
    model, planned_on = rigid_for_planning(model)
    limits, notes = usable_limits(limits or Limits.from_robot(model.robot), start)
    name = "D" if criterion == "auto" else criterion
    if name not in SPECTRAL:
        raise ModelError("via points are not searched by this criterion", got=repr(name), remedy=nearest(name, SPECTRAL))
    planned, left_out = designable(model)
    base, torque = planned.base(), prior_torque(model.robot)
    weights, _ = row_weights(noise, name, limits, planned)

    def motion(via: Array, share: float = 1.0) -> PiecewisePolynomial:
        speed, acceleration = (FASTEST * share * limit for limit in (limits.velocity, limits.acceleration))
        return trapezoidal(limits.joints, via, speed, acceleration, JERK * acceleration, dwell)

    def certified(via: Array) -> DesignedMotion:
        """The fastest motion within the torque limits; an error if none keeps limits and distances."""
        for share in SLOWER:
            trajectory = motion(via, share)
            report = check_limits(trajectory, limits, torque=torque)
            if report.feasible:
                break
        report.require()
        clearance = require_clearance(trajectory, collisions)
        slower = () if share == 1.0 else (f"at {100 * share:g} % of the speed limits, for the torques",)
        return DesignedMotion(trajectory=trajectory, limits=limits, report=report, clearance=clearance, notes=slower)

    def better(via: Array, value: float) -> tuple[float, DesignedMotion] | None:
        """Value and motion of points that are better than a value and feasible."""
        new = criterion_value(name, weighted_regressor(planned, base, motion(via), weights, JUDGED))
        try:
            return (new, certified(via)) if new < value else None
        except LimitError:
            return None

    if np.ndim(points) == 0:
        chosen, design, tried = _searched(better, limits, collisions, int(points), start, seed, budget)  # type: ignore[arg-type]
        how = f"chosen by {name} out of {tried} motions"
    else:
        chosen, how = np.asarray(points, dtype=float), "as listed"
        for k, point in enumerate(chosen, 1):
            limits.require_inside(point, f"via point {k}", -1e-9)
        design = certified(chosen)
    condition = condition_number(weighted_regressor(planned, base, design.trajectory, np.ones(model.n)))
    words = f"points: {len(chosen)} via points {how}, {design.trajectory.duration:.4g} s"
    words += f", {len(base)} base parameters, condition number {condition:.4g}"
    return replace(design, words=words, notes=(*notes, *planned_on, *left_out, *design.notes))


def _searched(
    better: Callable[[Array, float], tuple[float, DesignedMotion] | None],
    limits: Limits,
    collisions: Collisions | None,
    count: int,
    start: ArrayLike | None,
    seed: int,
    budget: float,
) -> tuple[Array, DesignedMotion, int]:
    """Returns the best of several feasible random sets of points, improved one point at a time until the budget is used up,
    its motion, and the number of motions tried."""
    if count < 2:
        raise LimitError("a motion through points needs two", got=count)
    rng, tried, most = np.random.default_rng(seed), 0, max(1, round(budget / _COST))
    pose = None if start is None else one_each("start", start, len(limits.joints))

    def draw() -> Array:
        """A random point; a joint with a range of several turns stays within one turn."""
        return limits.random_pose(rng, FILL * np.minimum(limits.half_range, np.pi))

    def free(via: Array) -> bool:
        """Whether the straight moves between points keep the clearance, at a few instants."""
        if collisions is None or not collisions.pairs:
            return True
        along = np.linspace(0.0, 1.0, INSTANTS, endpoint=False)[:, None]
        paths = [first + along * (second - first) for first, second in pairwise(via)]
        return bool((collisions.distances(np.concatenate([*paths, via[-1:]])) > collisions.required).all())

    def drawn() -> Array | None:
        """Random points whose straight moves keep the clearance; None if one is not found."""
        via = [draw() if pose is None else pose]
        while len(via) < count:
            last = pose is not None and len(via) == count - 1
            for _ in range(1 if last else _TRIES):
                point = pose if last and pose is not None else draw()
                if free(np.array([via[-1], point])):
                    via.append(point)
                    break
            else:
                return None
        return np.array(via)

    best: tuple[Array, float, DesignedMotion] | None = None
    while tried < (most if best is None else min(DRAWN, most)):
        tried += 1
        via = drawn()
        improved = None if via is None else better(via, np.inf if best is None else best[1])
        if via is not None and improved is not None:
            best = via, *improved
    if best is None:
        raise LimitError(
            "no via points were improved whose motion stays inside the limits",
            got=f"{tried} sets tried",
            remedy="list them in excitation.points, or allow a larger excitation.budget",
        )
    inner = range(count) if pose is None else range(1, count - 1)
    while tried < most and len(inner):
        tried += 1
        via, k = best[0].copy(), inner[int(rng.integers(len(inner)))]
        via[k] = draw()
        improved = better(via, best[1]) if free(via[max(0, k - 1) : k + 2]) else None
        if improved is not None:
            best = via, *improved
    return best[0], best[2], tried
