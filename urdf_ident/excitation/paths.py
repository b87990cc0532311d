"""Motions of given shape: a circle of a frame (validation of Wu 2012), and point-to-point motion (Gautier 2013).

They are not optimised like Fourier series: a circle validates a result on a typical task, and via points suit a robot's own
controller. Poses that are not given are searched: the first pose from which the circle is feasible, and the most informative
via points.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from ..errors import LimitError, ModelError, nearest
from ..linalg import Array
from ..model.dynamic_model import DynamicModel
from ..motion.base import Trajectory, check_joint_array
from ..motion.cartesian import CartesianTrajectory, circle, translations
from ..motion.collision.clearance import ClearanceReport, check_clearance
from ..motion.collision.collisions import Collisions
from ..motion.limits import LimitReport, Limits, Torque, check_limits, prior_torque
from ..motion.point_to_point import TrapezoidalTrajectory
from .assumptions import rigid_for_planning, row_weights, usable_limits, weighted_regressor
from .criteria import SPECTRAL, condition_number, criterion_value
from .planned_motion import PlannedMotion
from .rows import designable

if TYPE_CHECKING:
    from ..model.robot import Robot

#: Fraction of velocity and acceleration limits for via points, and reduction factors to try if torques are too large.
FASTEST, SLOWER = 0.98, (1.0, 0.8, 0.6, 0.45, 0.3, 0.2)
#: Jerk over acceleration [1/s].
JERK = 10.0
#: Fraction of the position range for searched points; sampling rate for the evaluation of a motion [Hz].
FILL, JUDGED = 0.9, 50.0
#: Speeds to try for a circle [m/s]: that of Wu 2012, and slower ones.
SPEEDS = (0.5, 0.25, 0.1, 0.05)
#: Number of poses to try for a circle, and nodes per second of the trial [Hz].
TRIED, ROUGHLY = 200, 40.0
#: Number of poses for the directions of motion of a frame, and relative size below which there is none.
PLANES, FLAT = 10, 1e-6
#: Number of random sets of points before the best one is improved point by point.
DRAWN = 12
#: Instants per move at which distances are checked before a motion is certified.
INSTANTS = 16


@dataclass(frozen=True, eq=False, kw_only=True)
class PathExperiment(PlannedMotion):
    """A motion of given shape inside the limits of the robot.

    Attributes:
        words: Description in one line.
    """

    words: str

    def describe(self) -> list[str]:
        """Describes the motion.

        Returns:
            One line of text.
        """
        return [self.words]


def design_circle(
    model: DynamicModel,
    *,
    radius: float = 0.05,
    speed: float | None = None,
    frame: str | None = None,
    normal: ArrayLike | None = None,
    turns: float = 3.0,
    orientation: str | None = None,
    start: ArrayLike | None = None,
    limits: Limits | None = None,
    collisions: Collisions | None = None,
    seed: int = 0,
    budget: float = 10.0,
) -> PathExperiment:
    """Plans a circle of a frame at constant speed, with smooth start and stop; by default 100 mm at 0.5 m/s (Wu 2012).

    Args:
        model: The model, for its robot.
        radius: [m].
        speed: Cruising speed along the circle [m/s]; None: the largest feasible one of :data:`SPEEDS`.
        frame: Name of the frame (a link) that moves on it; the last link on the last joint if None.
        normal: Of the circle's plane in the base frame, shape (3,); None: vertical (a horizontal circle), or the normal of
            the plane of a planar arm.
        turns: Number of turns.
        orientation: "keep" holds the frame's orientation, "free" leaves it free; None: keep with six or more joints.
        start: Start pose, shape (n,) [rad or m]; searched if None.
        limits: Of the joints; the URDF's if None.
        collisions: Pairs whose clearance is kept; None: collisions are not checked.
        seed: Of the random poses.
        budget: Time for the search [s].

    Returns:
        The motion, with verified limits and certified distances.

    Raises:
        LimitError: The circle is infeasible from the start pose, or from all tested poses, or the frame cannot move in a
            plane, or not in the given one.
    """
    robot = model.robot
    given = limits or Limits.from_robot(robot)
    limits, notes = usable_limits(given, start)
    # unknown acceleration limits are not replaced: the speed determines the acceleration
    limits = replace(limits, acceleration=given.acceleration)
    frame = frame or last_link(robot)
    how = orientation or ("keep" if robot.n >= 6 else "free")
    poses = _poses(limits, seed) if start is None else [check_joint_array("start", start, limits.joints)]
    normal = _normal(robot, frame, _poses(limits, seed)[:PLANES], normal)
    speeds = SPEEDS if speed is None else (speed,)
    make = partial(circle, robot, frame, radius=radius, normal=normal, turns=turns, orientation=how)
    fast, pose, motion, report, clearance = _fastest_circle(
        make, speeds, poses, limits, prior_torque(robot), collisions, budget
    )
    words = f"circle of {frame}: diameter {100 * 2 * radius:.4g} cm, {fast:g} m/s, {turns:g} turns, orientation {how}, "
    words += f"{motion.duration:.4g} s; off the circle by {1e6 * motion.path_error:.2g} µm at most"
    at = ", ".join(f"{joint} {value:.3g}" for joint, value in zip(robot.joints, pose, strict=True))
    slow = (f"slower than {speeds[0]:g} m/s, for the limits",) if fast != speeds[0] else ()
    found = () if start is not None else (f"starts at {at}",)
    return PathExperiment(
        trajectory=motion, limits=limits, report=report, words=words, clearance=clearance, notes=(*notes, *slow, *found)
    )


def _fastest_circle(
    make: partial[CartesianTrajectory],
    speeds: Sequence[float],
    poses: Sequence[Array],
    limits: Limits,
    torque: Torque,
    collisions: Collisions | None,
    budget: float,
) -> tuple[float, Array, CartesianTrajectory, LimitReport, ClearanceReport | None]:
    """The first feasible circle over speeds [m/s], in the given order, and start poses: speed, pose, motion and margins."""
    last = None
    for fast in speeds:
        until = time.monotonic() + budget / len(speeds)
        for pose in poses:
            if last is not None and time.monotonic() > until:
                break
            try:
                if len(poses) > 1:
                    turns = min(make.keywords["turns"], 1.0)
                    check_limits(make(pose, speed=fast, turns=turns, rate=ROUGHLY), limits, torque=torque).require()
                motion = make(pose, speed=fast, rate=200.0)
                return fast, pose, motion, *_certified(motion, limits, torque, collisions)
            except LimitError as error:
                last = error
    why = "this circle cannot be driven from here" if len(poses) == 1 else "no pose was found for this circle"
    raise LimitError(
        why,
        got=str(last),
        remedy="give another excitation.start, a smaller radius, a lower speed, or another normal",
    ) from last


def _normal(robot: Robot, frame: str, poses: Sequence[Array], given: ArrayLike | None) -> ArrayLike:
    """Returns the normal of a feasible plane; raises an error if there is none, or for a wrong one of a planar arm."""
    ways = np.array([translations(robot, frame, pose) for pose in poses])
    size = max(float(np.linalg.norm(ways, axis=(1, 2)).max()), 1e-300)
    if not (np.linalg.matrix_rank(ways, tol=FLAT * size) > 1).any():
        others = "name one with more joints before it in excitation.circle.frame, or take another family (points, spline)"
        raise LimitError(
            "this frame cannot move on a circle",
            where=f"frame '{frame}'",
            got="one direction of motion in every pose",
            expected="at least two",
            remedy=others,
        )
    _, spread, axes = np.linalg.svd(np.vstack(list(np.swapaxes(ways, 1, 2))))
    if spread[2] > FLAT * size:
        return (0.0, 0.0, 1.0) if given is None else given
    own: Array = np.asarray(axes[2] * np.sign(axes[2][int(np.argmax(np.abs(axes[2])))]))
    asked: Array = own if given is None else np.asarray(given, dtype=float)
    if np.linalg.norm(np.cross(asked, own)) > 1e-6 * np.linalg.norm(asked):
        raise LimitError(
            "the frame of this planar arm stays in another plane",
            where=f"frame '{frame}'",
            got=f"normal {asked.tolist()}",
            expected=str((np.round(own, 6) + 0.0).tolist()),
            remedy="leave excitation.circle.normal out",
        )
    return own


def _certified(
    motion: Trajectory, limits: Limits, torque: Torque, collisions: Collisions | None
) -> tuple[LimitReport, ClearanceReport | None]:
    report = check_limits(motion, limits, torque=torque)
    report.require()
    clearance = None if collisions is None else check_clearance(motion, collisions)
    if clearance is not None:
        clearance.require()
    return report, clearance


def _poses(limits: Limits, seed: int) -> Sequence[Array]:
    """Returns random poses in the middle 60 % of the position ranges (at most ±0.6π about their centres)."""
    middle, half = (limits.upper + limits.lower) / 2, np.minimum((limits.upper - limits.lower) / 2, np.pi)
    drawn = np.random.default_rng(seed).uniform(-0.6, 0.6, (TRIED, len(middle)))
    return [middle + half * x for x in drawn]


def last_link(robot: Robot) -> str:
    """Returns the link at the end of the chain: the last one fixed to the last joint, e.g. a tool tip.

    Returns:
        Its name.
    """
    depth = [len(tree) for tree in robot.subtrees]
    tip = max(range(robot.n), key=lambda j: (sum(j in tree for tree in robot.subtrees), -depth[j], j))
    return robot.bodies[tip].links[-1].name


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
) -> PathExperiment:
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
        seed: Of the random points.
        budget: Time for the search [s].

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
    base = planned.base()
    weights, _ = row_weights(noise, name, limits, planned)

    def worth(motion: Trajectory) -> float:
        return criterion_value(name, weighted_regressor(planned, base, motion, weights, JUDGED))

    builder = _Points(limits, dwell, model, collisions)
    if np.ndim(points) == 0:
        chosen, tried = _searched(builder, worth, int(points), start, seed, budget)  # type: ignore[arg-type]
        how = f"chosen by {name} out of {tried} motions"
    else:
        chosen, how = np.asarray(points, dtype=float), "as listed"
        _check_inside(chosen, limits)
    motion, share, report, clearance = builder.certified(chosen)
    condition = condition_number(weighted_regressor(planned, base, motion, np.ones(model.n)))
    words = f"points: {len(chosen)} via points {how}, {motion.duration:.4g} s"
    words += f", {len(base)} base parameters, condition number {condition:.4g}"
    slower = () if share == 1.0 else (f"at {100 * share:g} % of the speed limits, for the torques",)
    return PathExperiment(
        trajectory=motion,
        limits=limits,
        report=report,
        words=words,
        clearance=clearance,
        notes=(*notes, *planned_on, *left_out, *slower),
    )


def _check_inside(points: Array, limits: Limits) -> None:
    outside = (points < limits.lower - 1e-9) | (points > limits.upper + 1e-9)
    if outside.any():
        k, j = (int(x) for x in np.argwhere(outside)[0])
        raise LimitError(
            "a via point is outside the position limits",
            where=f"point {k + 1}, joint '{limits.joints[j]}'",
            got=f"{points[k, j]:.6g}",
            expected=f"between {limits.lower[j]:.6g} and {limits.upper[j]:.6g}",
        )


@dataclass(frozen=True, eq=False)
class _Points:
    """Builds motions through points, as fast as the limits allow."""

    limits: Limits
    dwell: float
    model: DynamicModel
    collisions: Collisions | None

    def motion(self, points: Array, share: float = 1.0) -> TrapezoidalTrajectory:
        limits = self.limits
        rate = FASTEST * share * limits.acceleration
        speed = FASTEST * share * limits.velocity
        return TrapezoidalTrajectory(limits.joints, points, speed, rate, JERK * rate, self.dwell)

    def certified(self, points: Array) -> tuple[TrapezoidalTrajectory, float, LimitReport, ClearanceReport | None]:
        """Returns the fastest motion within the torque limits, its speed factor, margins and clearance."""
        torque = prior_torque(self.model.robot)
        for share in SLOWER:
            motion = self.motion(points, share)
            report = check_limits(motion, self.limits, torque=torque)
            if report.feasible:
                break
        report.require()
        clearance = None if self.collisions is None else check_clearance(motion, self.collisions)
        if clearance is not None:
            clearance.require()
        return motion, share, report, clearance

    def point(self, rng: np.random.Generator) -> Array:
        """Returns a random point; a joint with a range of several turns stays within one turn."""
        middle, half = (self.limits.upper + self.limits.lower) / 2, (self.limits.upper - self.limits.lower) / 2
        return np.asarray(middle + FILL * np.minimum(half, np.pi) * rng.uniform(-1.0, 1.0, len(middle)))

    def free(self, points: Array) -> bool:
        """Whether the straight moves between points keep the clearance, at a few instants."""
        if self.collisions is None or not self.collisions.pairs:
            return True
        along = np.linspace(0.0, 1.0, INSTANTS, endpoint=False)[:, None]
        ways = [first + along * (second - first) for first, second in pairwise(points)]
        poses = np.concatenate([*ways, points[-1:]])
        return bool((self.collisions.distances(poses) > self.collisions.required).all())

    def fits(self, points: Array) -> bool:
        try:
            self.certified(points)
        except LimitError:
            return False
        return True


def _searched(
    builder: _Points, worth: Callable[[Trajectory], float], count: int, start: ArrayLike | None, seed: int, budget: float
) -> tuple[Array, int]:
    """Returns the best of several feasible random sets, improved one point at a time until the time is up."""
    if count < 2:
        raise LimitError("a motion through points needs two", got=count)
    began, rng, tried = time.monotonic(), np.random.default_rng(seed), 0
    pose = None if start is None else check_joint_array("start", start, builder.limits.joints)
    best, value = None, np.inf
    while time.monotonic() - began < (0.9 if best is None else 0.5) * budget and tried < (1000 if best is None else DRAWN):
        tried += 1
        points = _drawn(builder, count, pose, rng)
        if points is None:
            continue
        found = worth(builder.motion(points))
        if found < value and builder.fits(points):
            best, value = points, found
    if best is None:
        raise LimitError(
            "no via points were found whose motion stays inside the limits",
            got=f"{tried} sets tried",
            remedy="list them in excitation.points, or allow more time in excitation.budget",
        )
    inner = range(count) if pose is None else range(1, count - 1)
    while time.monotonic() - began < 0.9 * budget and len(inner):
        tried += 1
        trial, k = best.copy(), inner[int(rng.integers(len(inner)))]
        trial[k] = builder.point(rng)
        if not builder.free(trial[max(0, k - 1) : k + 2]):
            continue
        found = worth(builder.motion(trial))
        if found < value and builder.fits(trial):
            best, value = trial, found
    return best, tried


def _drawn(builder: _Points, count: int, pose: Array | None, rng: np.random.Generator) -> Array | None:
    """Draws random points whose straight moves keep the clearance; returns None if one is not found."""
    points = [builder.point(rng) if pose is None else pose]
    while len(points) < count:
        last = pose is not None and len(points) == count - 1
        for _ in range(1 if last else TRIED):
            point = pose if last and pose is not None else builder.point(rng)
            if builder.free(np.array([points[-1], point])):
                points.append(point)
                break
        else:
            return None
    return np.array(points)
