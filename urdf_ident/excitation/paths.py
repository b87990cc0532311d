"""Planned paths: a circle of a frame at constant speed, which validates a result on a typical task (Wu 2012, docs/theory.md
§10), and point-to-point motions with given or searched via points (Gautier 2013), which suit a robot's own controller.

The start pose of a circle is the first of many random ones from which it is feasible, unless it is given. The path has a smooth
start and stop. Joint positions come from damped least squares at every node, started from the previous one; velocity and
acceleration are those of the fifth-degree spline through them, so q, v and a are exactly consistent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import pairwise, product
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from ..errors import LimitError, ModelError, check_known, check_named, check_positive, check_shape, nearest
from ..linalg import Array, one_each, positive
from ..model.dynamic_model import DynamicModel
from ..model.robot import Robot
from ..motion.collision.collisions import Collisions
from ..motion.limits import Limits, check_limits, prior_torque
from ..motion.trajectory import DEGREE, PiecewisePolynomial, spline_pieces, trapezoidal
from .criteria import SPECTRAL, condition_number, criterion_value
from .design import DesignedMotion
from .problem import row_weights, usable_limits
from .rows import PlannedRows, designable, rigid_for_planning

_ITERATIONS = 60
_TOLERANCE = 1e-10  # [m and rad]


def circle(
    robot: Robot,
    frame: str,
    start: ArrayLike,
    *,
    radius: float,
    speed: float,
    normal: ArrayLike = (0.0, 0.0, 1.0),
    turns: float = 1.0,
    ramp: float = 0.5,
    orientation: str = "keep",
    rate: float = 200.0,
) -> tuple[PiecewisePolynomial, float]:
    """Returns a circular motion of a frame, starting at its current position (and ending there after whole turns).

    Args:
        frame: Name of the frame (a link) that moves on the circle.
        start: Joint positions at the start, shape (n,) [rad or m].
        radius: [m].
        speed: Cruising speed along the path [m/s].
        normal: Of the circle's plane in the base frame, shape (3,).
        turns: Number of turns.
        ramp: Time to speed up and to slow down [s].
        orientation: ``"keep"`` holds the frame's orientation, ``"free"`` leaves it free (arms with fewer than six joints).
        rate: Nodes per second [Hz].

    Returns:
        The motion, and the largest distance of the frame from the circle halfway between nodes [m].

    Raises:
        LimitError: The circle cannot be reached; the message gives the time, the position and the remaining error.
    """
    from scipy.interpolate import make_interp_spline

    axis = np.array(normal, dtype=float)
    check_shape("normal", axis.shape, (3,))
    if not (np.isfinite(axis).all() and np.linalg.norm(axis) > 0):
        raise LimitError("'normal' is zero or not finite", got=axis.tolist())
    axis /= np.linalg.norm(axis)
    outward = np.cross(axis, np.eye(3)[int(np.argmin(np.abs(axis)))])
    outward /= np.linalg.norm(outward)
    tangent = np.cross(axis, outward)
    for name, value in {"radius": radius, "speed": speed, "turns": turns, "ramp": ramp}.items():
        check_positive(f"the {name} of a path", value, LimitError)

    check_known("orientation", orientation, ("keep", "free"), LimitError)
    q = one_each("start", start, robot.n)
    origin = _Solver(robot, frame, None).pose(q)
    first, rotation = origin.translation.copy(), origin.rotation.copy()
    solver = _Solver(robot, frame, rotation if orientation == "keep" else None)
    length = 2 * np.pi * radius * turns
    ramp = min(ramp, length / speed)  # a short path has no cruise phase but still reaches the given speed
    duration = length / speed + ramp

    def path(t: float) -> Array:
        angle = _smooth_distance(t, duration, ramp, speed) / radius
        return np.asarray(first + radius * ((np.cos(angle) - 1.0) * outward + np.sin(angle) * tangent))

    time = np.linspace(0.0, duration, max(12, int(np.ceil(duration * rate)) + 1))
    nodes = np.empty((len(time), robot.n))
    for k, t in enumerate(time):
        q, error = solver.solve(q, path(t))
        if error > 1e-7 or (k and np.abs(q - nodes[k - 1]).max() > 0.5):
            position = ", ".join(f"{x:.4g}" for x in path(t))
            raise LimitError(
                f"frame '{frame}' cannot follow the path at t = {t:.4g} s",
                where=f"position ({position}) m",
                got=f"{error:.3g} m or rad off",
                remedy="start elsewhere, make the path smaller, or free the orientation",
            )
        nodes[k] = q
    at_rest: Any = [(1, np.zeros(robot.n)), (2, np.zeros(robot.n))]
    spline = make_interp_spline(time, nodes, k=DEGREE, bc_type=(at_rest, at_rest))
    pieces = spline_pieces(robot.joints, spline.t, spline.c)
    middle = (time[1:] + time[:-1]) / 2
    off = [
        float(np.linalg.norm(solver.pose(row).translation - path(t)))
        for t, row in zip(middle, pieces.evaluate(middle)[0], strict=True)
    ]
    return pieces, max(off)


class _Solver:
    """Damped least squares on the position of a frame, and optionally its orientation."""

    def __init__(self, robot: Robot, frame: str, rotation: Array | None) -> None:
        names = [each.name for each in robot.model.frames]
        check_named("frame", frame, names, LimitError, robot.path)
        self.robot, self.rotation = robot, rotation
        self.frame, self.data = robot.model.getFrameId(frame), robot.model.createData()

    def pose(self, q: Array) -> pin.SE3:
        pin.framesForwardKinematics(self.robot.model, self.data, self.robot.configuration(q[None])[0])
        return self.data.oMf[self.frame]

    def jacobian(self, q: Array) -> Array:
        """Jacobian of the task in base axes, shape (3 or 6, n)."""
        reference = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
        full = pin.computeFrameJacobian(
            self.robot.model, self.data, self.robot.configuration(q[None])[0], self.frame, reference
        )
        rows = np.asarray(full).reshape(6, -1)[: 3 if self.rotation is None else 6]  # Pinocchio returns a vector for one joint
        return self.robot.reduced(rows)

    def _error(self, q: Array, goal: Array) -> Array:
        pose = self.pose(q)
        if self.rotation is None:
            return np.asarray(goal - pose.translation)
        return np.concatenate([goal - pose.translation, pin.log3(self.rotation @ pose.rotation.T)])

    def solve(self, q: Array, goal: Array) -> tuple[Array, float]:
        """Levenberg-Marquardt: the damping decreases after success and increases after failure."""
        q, damping = q.copy(), 1e-6
        error = self._error(q, goal)
        for _ in range(_ITERATIONS):
            if np.abs(error).max() < _TOLERANCE:
                break
            jacobian = self.jacobian(q)
            trial = q + jacobian.T @ np.linalg.solve(jacobian @ jacobian.T + damping * np.eye(len(error)), error)
            new = self._error(trial, goal)
            if new @ new < error @ error:
                q, error, damping = trial, new, max(damping / 10, 1e-14)
            else:
                damping *= 10
        return q, float(np.abs(error).max())


def _smooth_distance(t: float, duration: float, ramp: float, speed: float) -> float:
    """Path length at time t: the speed rises and falls as a quintic step, so acceleration and jerk start at zero."""

    def rise(x: float) -> float:
        """Integral of 10x³ − 15x⁴ + 6x⁵ from 0."""
        return x**4 * (2.5 - 3.0 * x + x * x)

    t = min(max(t, 0.0), duration)
    distance = speed * (ramp * rise(min(t / ramp, 1.0)) + min(max(t - ramp, 0.0), duration - 2 * ramp))
    late = (t - (duration - ramp)) / ramp
    if late > 0:
        distance += speed * ramp * (0.5 - rise(1.0 - late))
    return distance


#: Speeds to try for a circle [m/s]: that of Wu 2012, and slower ones.
SPEEDS = (0.5, 0.25, 0.1, 0.05)
#: Number of poses to try for a circle, and nodes per second of the trial [Hz].
TRIED, ROUGHLY = 200, 40.0
#: Seconds of a usual core to try a motion.
_COST = 0.02
#: Number of poses for the directions of motion of a frame, and relative size below which one is none.
PLANES, FLAT = 10, 1e-6


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
) -> DesignedMotion:
    """Plans a circle of a frame at constant speed, with smooth start and stop; by default 100 mm at 0.5 m/s (Wu 2012).

    Args:
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
        budget: Start poses tried for each speed, in seconds that they take on a usual core [s].

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
    frame, how = frame or robot.last_link, orientation or ("keep" if robot.n >= 6 else "free")
    rng, reach = np.random.default_rng(seed), 0.6 * np.minimum(limits.half_range, np.pi)
    random = [limits.random_pose(rng, reach) for _ in range(TRIED)]
    poses = random if start is None else [one_each("start", start, robot.n)]
    solver = _Solver(robot, frame, None)
    jacobians = np.array([solver.jacobian(pose) for pose in random[:PLANES]])
    axis = _normal(jacobians, frame, None if normal is None else np.asarray(normal, dtype=float))
    speeds, torque, last = SPEEDS if speed is None else (speed,), prior_torque(robot), None
    make = partial(circle, robot, frame, radius=radius, normal=axis, orientation=how)
    for fast, pose in product(speeds, poses[: max(1, round(budget / len(speeds) / _COST))]):
        try:
            if len(poses) > 1:
                trial, _ = make(pose, speed=fast, turns=min(turns, 1.0), rate=ROUGHLY)
                check_limits(trial, limits, torque=torque).require()
            motion, off = make(pose, speed=fast, turns=turns, rate=200.0)
            kept = DesignedMotion.verified(motion, limits, torque, collisions).require()
            break
        except LimitError as error:
            last = error
    else:
        raise LimitError(
            "this circle cannot be driven from here" if len(poses) == 1 else "no pose was found for this circle",
            got=str(last),
            remedy="give another excitation.start, a smaller radius, a lower speed, or another normal",
        ) from last
    words = f"circle of {frame}: diameter {100 * 2 * radius:.4g} cm, {fast:g} m/s, {turns:g} turns, orientation {how}, "
    words += f"{motion.duration:.4g} s; off the circle by {1e6 * off:.2g} µm at most"
    if fast != speeds[0]:
        notes = (*notes, f"slower than {speeds[0]:g} m/s, for the limits")
    if start is None:
        at = ", ".join(f"{joint} {value:.3g}" for joint, value in zip(robot.joints, pose, strict=True))
        notes = (*notes, f"starts at {at}")
    return replace(kept, words=(words,), notes=notes)


def _normal(jacobians: Array, frame: str, normal: Array | None) -> Array:
    """Normal of the circle, shape (3,): the given one, else vertical; of a planar arm that of its plane.

    Args:
        jacobians: Of the frame's translation in some poses, shape (P, 3, n) [m/rad or 1].
    """
    size = positive(float(np.linalg.norm(jacobians, axis=(1, 2)).max()))
    if not (np.linalg.matrix_rank(jacobians, tol=FLAT * size) > 1).any():
        raise LimitError(
            "this frame cannot move on a circle",
            where=f"frame '{frame}'",
            got="one direction of motion in every pose",
            expected="at least two",
            remedy="name one with more joints before it in excitation.circle.frame, or take another family (points, spline)",
        )
    _, singular, axes = np.linalg.svd(np.vstack(list(np.swapaxes(jacobians, 1, 2))))
    if singular[2] > FLAT * size:
        return np.array([0.0, 0.0, 1.0]) if normal is None else normal
    plane = axes[2] * np.sign(axes[2][int(np.argmax(np.abs(axes[2])))])
    if normal is not None and np.linalg.norm(np.cross(normal, plane)) > FLAT * np.linalg.norm(normal):
        raise LimitError(
            "the frame of this planar arm stays in another plane",
            where=f"frame '{frame}'",
            got=f"normal {normal.tolist()}",
            expected=str((np.round(plane, 6) + 0.0).tolist()),
            remedy="leave excitation.circle.normal out",
        )
    return np.asarray(plane)


#: Fraction of velocity and acceleration limits for via points, and reduction factors to try if torques are too large.
FASTEST, SLOWER = 0.98, 0.75 ** np.arange(7)

#: Jerk over acceleration [1/s].
JERK = 10.0

#: Fraction of the position range for searched points; sampling rate for the evaluation of a motion [Hz].
FILL, JUDGED = 0.9, 50.0

#: Number of random sets of points before the best one is improved point by point.
DRAWN = 12

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
    rows = PlannedRows(planned, base, row_weights(noise, name, limits, planned)[0])

    def motion(via: Array, share: float = 1.0) -> PiecewisePolynomial:
        speed, acceleration = (FASTEST * share * limit for limit in (limits.velocity, limits.acceleration))
        return trapezoidal(limits.joints, via, speed, acceleration, JERK * acceleration, dwell)

    def certified(via: Array) -> DesignedMotion:
        """The fastest motion within the torque limits; an error if none keeps limits and distances."""
        for share in SLOWER:
            slower = () if share == 1.0 else (f"at {100 * share:g} % of the speed limits, for the torques",)
            kept = DesignedMotion.verified(motion(via, share), limits, torque, collisions, notes=slower)
            if kept.report.feasible:
                break
        return kept.require()

    def better(via: Array, value: float) -> tuple[float, DesignedMotion] | None:
        """Value and motion of points that are better than a value and feasible."""
        new = criterion_value(name, rows.along(motion(via), JUDGED))
        try:
            return (new, certified(via)) if new < value else None
        except LimitError:
            return None

    if np.ndim(points) == 0:
        count, ends = int(points), None if start is None else one_each("start", start, len(limits.joints))  # type: ignore[arg-type]
        if count < 2:
            raise LimitError("a motion through points needs two", got=count)
        tries = max(1, round(budget / _COST))
        chosen, design, tried = _searched(better, limits, collisions, count, ends, seed, tries)
        how = f"chosen by {name} out of {tried} motions"
    else:
        chosen, how = np.asarray(points, dtype=float), "as listed"
        for k, point in enumerate(chosen, 1):
            limits.require_inside(point, f"via point {k}", -1e-9)
        design = certified(chosen)
    condition = condition_number(PlannedRows(planned, base, np.ones(model.n)).along(design.trajectory))
    words = f"points: {len(chosen)} via points {how}, {design.trajectory.duration:.4g} s"
    words += f", {len(base)} base parameters, condition number {condition:.4g}"
    return replace(design, words=(words,), notes=(*notes, *planned_on, *left_out, *design.notes))


def _searched(
    better: Callable[[Array, float], tuple[float, DesignedMotion] | None],
    limits: Limits,
    collisions: Collisions | None,
    count: int,
    start: Array | None,
    seed: int,
    tries: int,
) -> tuple[Array, DesignedMotion, int]:
    """Searches via points: the best of several random sets, one inner point of which after the other is drawn again.

    Args:
        better: Value and motion of points if they are feasible and better than a value, else None.
        count: Number of points.
        start: First and last point, shape (n,) [rad or m]; None: they are searched as well.
        tries: Largest number of motions to try.

    Returns:
        The points, shape (K, n), their motion, and the number of motions tried.
    """
    rng, inner = np.random.default_rng(seed), range(count) if start is None else range(1, count - 1)

    def draw() -> Array:
        """A random point; a joint with a range of several turns stays within one turn."""
        return limits.random_pose(rng, FILL * np.minimum(limits.half_range, np.pi))

    def random_points() -> Array | None:
        """Random points that straight moves connect; None if one is not found."""
        via = [draw() if start is None else start]
        for k in range(1, count):
            ends = start is not None and k == count - 1
            points = (draw() for _ in range(_TRIES)) if not ends else iter([start])
            point = next((point for point in points if _connected(np.array([via[-1], point]), collisions)), None)
            if point is None:
                return None
            via.append(point)
        return np.array(via)

    def another_point(via: Array) -> Array | None:
        """Points of which a random one is drawn again; None if straight moves do not connect it."""
        via, k = via.copy(), inner[int(rng.integers(len(inner)))]
        via[k] = draw()
        return via if _connected(via[max(0, k - 1) : k + 2], collisions) else None

    best: tuple[Array, float, DesignedMotion] | None = None
    tried = 0
    while tried < tries and (best is None or tried < DRAWN or len(inner)):
        tried += 1
        via = random_points() if best is None or tried <= DRAWN else another_point(best[0])
        improved = None if via is None else better(via, np.inf if best is None else best[1])
        if via is not None and improved is not None:
            best = via, *improved
    if best is None:
        raise LimitError(
            "no via points were improved whose motion stays inside the limits",
            got=f"{tried} sets tried",
            remedy="list them in excitation.points, or allow a larger excitation.budget",
        )
    return best[0], best[2], tried


def _connected(via: Array, collisions: Collisions | None) -> bool:
    """Whether the straight moves between points keep the clearance, at a few instants."""
    if collisions is None or not collisions.pairs:
        return True
    along = np.linspace(0.0, 1.0, INSTANTS, endpoint=False)[:, None]
    paths = [first + along * (second - first) for first, second in pairwise(via)]
    return bool((collisions.distances(np.concatenate([*paths, via[-1:]])) > collisions.required).all())
