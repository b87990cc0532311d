"""A circle of a frame at constant speed (Wu 2012), which validates a result on a typical task.

The start pose is the first of many random ones from which the circle is feasible, unless it is given.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np
from numpy.typing import ArrayLike

from ..errors import LimitError
from ..linalg import Array, one_each, positive
from ..model.dynamic_model import DynamicModel
from ..motion.cartesian import circle, translations
from ..motion.collision.clearance import require_clearance
from ..motion.collision.collisions import Collisions
from ..motion.limits import Limits, check_limits, prior_torque
from .motion import DesignedMotion
from .problem import usable_limits

#: Speeds to try for a circle [m/s]: that of Wu 2012, and slower ones.
SPEEDS = (0.5, 0.25, 0.1, 0.05)
#: Number of poses to try for a circle, and nodes per second of the trial [Hz].
TRIED, ROUGHLY = 200, 40.0
#: Seconds of a usual core to try a circle from one pose.
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
    # in the middle 60 % of the position ranges, at most ±0.6π about their centres
    drawn = np.random.default_rng(seed).uniform(-0.6, 0.6, (TRIED, robot.n))
    random = [limits.middle + np.minimum(limits.half_range, np.pi) * x for x in drawn]
    poses = random if start is None else [one_each("start", start, robot.n)]
    jacobians = np.array([translations(robot, frame, pose) for pose in random[:PLANES]])
    axis = _normal(jacobians, frame, None if normal is None else np.asarray(normal, dtype=float))
    speeds, torque, last = SPEEDS if speed is None else (speed,), prior_torque(robot), None
    make = partial(circle, robot, frame, radius=radius, normal=axis, orientation=how)
    for fast, pose in product(speeds, poses[: max(1, round(budget / len(speeds) / _COST))]):
        try:
            if len(poses) > 1:
                trial = make(pose, speed=fast, turns=min(turns, 1.0), rate=ROUGHLY)
                check_limits(trial, limits, torque=torque).require()
            motion = make(pose, speed=fast, turns=turns, rate=200.0)
            report = check_limits(motion, limits, torque=torque)
            report.require()
            clearance = require_clearance(motion, collisions)
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
    words += f"{motion.duration:.4g} s; off the circle by {1e6 * motion.path_error:.2g} µm at most"
    if fast != speeds[0]:
        notes = (*notes, f"slower than {speeds[0]:g} m/s, for the limits")
    if start is None:
        at = ", ".join(f"{joint} {value:.3g}" for joint, value in zip(robot.joints, pose, strict=True))
        notes = (*notes, f"starts at {at}")
    return DesignedMotion(trajectory=motion, limits=limits, report=report, words=words, clearance=clearance, notes=notes)


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
