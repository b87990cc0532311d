"""Joint motions for circles of a frame, by inverse kinematics (validation of Wu 2012, docs/theory.md §10).

The path has a smooth start and stop. Joint positions come from damped least squares at every node, started from the
previous one; velocity and acceleration are those of the fifth-degree spline through them, so q, v and a are exactly
consistent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from ..errors import LimitError, check_known, check_named, check_positive, check_shape
from ..linalg import Array, one_each
from ..model.robot import Robot
from .splines import DEGREE, spline_pieces
from .trajectory import PiecewisePolynomial

_ITERATIONS = 60
_TOLERANCE = 1e-10  # [m and rad]


@dataclass(frozen=True, eq=False)
class CartesianTrajectory(PiecewisePolynomial):
    """A joint motion whose frame follows a path.

    Attributes:
        path: Time [s] → position of the frame in the base, shape (3,) [m].
        path_error: Largest distance from the path halfway between nodes [m].
    """

    path: Callable[[float], Array] = field(kw_only=True)
    path_error: float = field(kw_only=True)


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
) -> CartesianTrajectory:
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

    def offset(s: float) -> Array:
        angle = s / radius
        return np.asarray(radius * ((np.cos(angle) - 1.0) * outward + np.sin(angle) * tangent))

    check_known("orientation", orientation, ("keep", "free"), LimitError)
    q = one_each("start", start, robot.n)
    origin = _Solver(robot, frame, None).pose(q)
    first, rotation = origin.translation.copy(), origin.rotation.copy()
    solver = _Solver(robot, frame, rotation if orientation == "keep" else None)
    length = 2 * np.pi * radius * turns
    ramp = min(ramp, length / speed)  # a short path has no cruise phase but still reaches the given speed
    duration = length / speed + ramp

    def path(t: float) -> Array:
        return np.asarray(first + offset(_smooth_distance(t, duration, ramp, speed)))

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
    return CartesianTrajectory(
        robot.joints, pieces.breaks, pieces.coefficients, pieces.smoothness, path=path, path_error=max(off)
    )


def translations(robot: Robot, frame: str, q: ArrayLike) -> Array:
    """Returns the translational Jacobian of a frame.

    Args:
        q: Joint positions, shape (n,) [rad or m].

    Returns:
        Translational part of its Jacobian in the base frame, shape (3, n).

    Raises:
        LimitError: No frame has this name.
    """
    return _Solver(robot, frame, None).jacobian(one_each("q", q, robot.n))


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
