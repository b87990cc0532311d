"""Point-to-point motions with given or searched via points (Gautier 2013), which suit a robot's own controller."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from ...errors import LimitError, ModelError, nearest
from ...linalg import Array, one_each
from ...model.base import BaseParameters
from ...model.dynamic_model import DynamicModel
from ...motion.collision.clearance import ClearanceReport, require_clearance
from ...motion.collision.collisions import Collisions
from ...motion.limits import LimitReport, Limits, check_limits, prior_torque
from ...motion.point_to_point import trapezoidal
from ...motion.trajectory import PiecewisePolynomial, Trajectory
from ..assumptions import rigid_for_planning, row_weights, usable_limits, weighted_regressor
from ..criteria import SPECTRAL, condition_number, criterion_value
from ..planned_rows import designable
from .planned_motion import PlannedMotion

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
) -> PlannedMotion:
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
    name = _spectral("D" if criterion == "auto" else criterion)
    planned, left_out = designable(model)
    base = planned.base()
    weights, _ = row_weights(noise, name, limits, planned)
    builder = _Points(limits, dwell, model, collisions)
    if np.ndim(points) == 0:
        chosen, tried = _searched(builder, partial(_score, name, planned, base, weights), int(points), start, seed, budget)  # type: ignore[arg-type]
        how = f"chosen by {name} out of {tried} motions"
    else:
        chosen, how = np.asarray(points, dtype=float), "as listed"
        for k, point in enumerate(chosen, 1):
            limits.require_inside(point, f"via point {k}", -1e-9)
    motion, share, report, clearance = builder.certified(chosen)
    condition = condition_number(weighted_regressor(planned, base, motion, np.ones(model.n)))
    words = f"points: {len(chosen)} via points {how}, {motion.duration:.4g} s"
    words += f", {len(base)} base parameters, condition number {condition:.4g}"
    slower = () if share == 1.0 else (f"at {100 * share:g} % of the speed limits, for the torques",)
    notes = (*notes, *planned_on, *left_out, *slower)
    return PlannedMotion(trajectory=motion, limits=limits, report=report, words=words, clearance=clearance, notes=notes)


def _spectral(name: str) -> str:
    if name not in SPECTRAL:
        raise ModelError("via points are not searched by this criterion", got=repr(name), remedy=nearest(name, SPECTRAL))
    return name


def _score(name: str, model: DynamicModel, base: BaseParameters, weights: Array, motion: Trajectory) -> float:
    return criterion_value(name, weighted_regressor(model, base, motion, weights, JUDGED))


@dataclass(frozen=True, eq=False)
class _Points:
    """Builds motions through points, as fast as the limits allow."""

    limits: Limits
    dwell: float
    model: DynamicModel
    collisions: Collisions | None

    def motion(self, points: Array, share: float = 1.0) -> PiecewisePolynomial:
        limits = self.limits
        rate = FASTEST * share * limits.acceleration
        return trapezoidal(limits.joints, points, FASTEST * share * limits.velocity, rate, JERK * rate, self.dwell)

    def certified(self, points: Array) -> tuple[PiecewisePolynomial, float, LimitReport, ClearanceReport | None]:
        """Returns the fastest motion within the torque limits, its speed factor, margins and clearance."""
        torque = prior_torque(self.model.robot)
        for share in SLOWER:
            motion = self.motion(points, share)
            report = check_limits(motion, self.limits, torque=torque)
            if report.feasible:
                break
        report.require()
        return motion, share, report, require_clearance(motion, self.collisions)

    def point(self, rng: np.random.Generator) -> Array:
        """Returns a random point; a joint with a range of several turns stays within one turn."""
        return self.limits.random_pose(rng, FILL * np.minimum(self.limits.half_range, np.pi))

    def free(self, points: Array) -> bool:
        """Whether the straight moves between points keep the clearance, at a few instants."""
        if self.collisions is None or not self.collisions.pairs:
            return True
        along = np.linspace(0.0, 1.0, INSTANTS, endpoint=False)[:, None]
        paths = [first + along * (second - first) for first, second in pairwise(points)]
        return bool((self.collisions.distances(np.concatenate([*paths, points[-1:]])) > self.collisions.required).all())

    def fits(self, points: Array) -> bool:
        try:
            self.certified(points)
        except LimitError:
            return False
        return True


def _searched(
    builder: _Points, score: Callable[[Trajectory], float], count: int, start: ArrayLike | None, seed: int, budget: float
) -> tuple[Array, int]:
    """Returns the best of several feasible random sets, improved one point at a time until the budget is used up."""
    if count < 2:
        raise LimitError("a motion through points needs two", got=count)
    rng, tried, most = np.random.default_rng(seed), 0, max(1, round(budget / _COST))
    pose = None if start is None else one_each("start", start, len(builder.limits.joints))
    best, value = None, np.inf
    while tried < (most if best is None else min(DRAWN, most)):
        tried += 1
        points = _drawn(builder, count, pose, rng)
        if points is None:
            continue
        found = score(builder.motion(points))
        if found < value and builder.fits(points):
            best, value = points, found
    if best is None:
        raise LimitError(
            "no via points were found whose motion stays inside the limits",
            got=f"{tried} sets tried",
            remedy="list them in excitation.points, or allow a larger excitation.budget",
        )
    inner = range(count) if pose is None else range(1, count - 1)
    while tried < most and len(inner):
        tried += 1
        trial, k = best.copy(), inner[int(rng.integers(len(inner)))]
        trial[k] = builder.point(rng)
        if not builder.free(trial[max(0, k - 1) : k + 2]):
            continue
        found = score(builder.motion(trial))
        if found < value and builder.fits(trial):
            best, value = trial, found
    return best, tried


def _drawn(builder: _Points, count: int, pose: Array | None, rng: np.random.Generator) -> Array | None:
    """Draws random points whose straight moves keep the clearance; returns None if one is not found."""
    points = [builder.point(rng) if pose is None else pose]
    while len(points) < count:
        last = pose is not None and len(points) == count - 1
        for _ in range(1 if last else _TRIES):
            point = pose if last and pose is not None else builder.point(rng)
            if builder.free(np.array([points[-1], point])):
                points.append(point)
                break
        else:
            return None
    return np.array(points)
