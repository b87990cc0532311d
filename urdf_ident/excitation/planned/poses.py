"""Static poses, each approached from both sides, to identify a payload without fast motion.

At rest, dry friction can take any value up to its level, with the sign of the preceding motion; the mean of both approaches
cancels it. Poses are chosen one after the other from feasible random poses, to determine best the mass and centre of mass
of a body on the last link together with a constant in every joint.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...errors import LimitError
from ...linalg import Array
from ...model.dynamic_model import DynamicModel
from ...model.engine import pinocchio as engine
from ...motion.collision.clearance import check_clearance
from ...motion.collision.collisions import Collisions
from ...motion.limits import Limits, Torque, check_limits
from ...motion.point_to_point import TrapezoidalTrajectory
from .planned_motion import PlannedMotion

if TYPE_CHECKING:
    from ...model.robot import Robot

#: Number of poses, holding time of each [s], and number of random candidates.
COUNT, HOLD, DRAWN = 12, 1.5, 200
#: Length of the approach from each side [rad], for prismatic joints a fifth of it [m]; fraction of every range that is used.
APPROACH, FILL = 0.1, 0.9
#: Part of the torque limits that gravity may need in a pose; friction and the approach need the rest.
_HELD = 0.9
#: Fraction of the velocity limit, largest velocity [rad/s; prismatic: a fifth, m/s], and acceleration over velocity [1/s].
_SLOW, _FASTEST, _RISE = 0.2, 0.5, 2.0
#: Initial spacing of instants for certifying distances [s], and number of attempts with other poses.
_STEP, _ROUNDS = 0.05, 6


@dataclass(frozen=True, eq=False, kw_only=True)
class PosesExperiment(PlannedMotion):
    """Static poses, each approached from both sides.

    Attributes:
        poses: Shape (P, n) [rad or m].
        information: Parameter of the body (mass, three first moments) → standard error for unit torque noise at every
            joint and pose.
    """

    trajectory: TrapezoidalTrajectory
    poses: Array
    information: Mapping[str, float]

    def describe(self) -> list[str]:
        """Describes number of poses, duration and expected standard errors."""
        trajectory = self.trajectory
        lines = [
            f"poses: {len(self.poses)}, each reached from both sides and held {trajectory.dwell:g} s, "
            f"{trajectory.duration:.4g} s in all; then `urdf-ident payload OUT/identification.json LOG --static`"
        ]
        shown = ", ".join(f"{name} ± {value:.2g}" for name, value in self.information.items())
        lines.append(f"  a body on the last link, for torque noise of 1 N·m a pose: {shown}")
        return lines


def design_poses(
    model: DynamicModel,
    *,
    limits: Limits | None = None,
    torque: Torque | None = None,
    collisions: Collisions | None = None,
    seed: int = 0,
) -> PosesExperiment:
    """Plans static poses that determine the mass and centre of mass of a body on the last link.

    Args:
        limits: Of the joints; the URDF's if None. Joints without a range use half a turn either way.
        torque: ``(q, v, a)`` → joint torque, to check its limits too.
        collisions: Pairs whose clearance is kept; None: collisions are not checked.

    Returns:
        The experiment, with verified limits and certified distances.

    Raises:
        LimitError: Too few poses are collision-free, gravity loads no joint, or a limit is unknown.
    """
    robot = model.robot
    limits = limits or Limits.from_robot(robot)
    limits.require("velocity")
    way = np.where(robot.prismatic, 0.2, 1.0) * APPROACH
    drawn = _free(_held(_drawn(robot, limits, way, seed), way, limits, torque), way, collisions)
    for _ in range(_ROUNDS):
        if len(drawn) < 4:
            raise LimitError(
                "too few poses keep their distance and are within the torque limits",
                got=f"{len(drawn)} of {DRAWN}",
                remedy="check the world and the torque limits, or restrict excitation.limits.position",
            )
        chosen, errors = _chosen(robot, drawn, min(COUNT, len(drawn)))
        order = _short_way(drawn[chosen])
        trajectory = _motion(robot, limits, order, way)
        clearance = None if collisions is None else check_clearance(trajectory, collisions, step=_STEP)
        if clearance is None or clearance.feasible:
            report = check_limits(trajectory, limits, torque=torque, rate=100.0)
            if report.feasible:
                break
        drawn = np.delete(drawn, chosen[::2], axis=0)
    if clearance is not None:
        clearance.require()
    report.require()
    names = ("mass [kg]", "m·x [kg·m]", "m·y [kg·m]", "m·z [kg·m]")
    notes = () if collisions is None else collisions.notes
    return PosesExperiment(
        trajectory=trajectory,
        poses=order,
        information=dict(zip(names, errors.tolist(), strict=True)),
        limits=limits,
        report=report,
        clearance=clearance,
        notes=notes,
    )


def _drawn(robot: Robot, limits: Limits, way: Array, seed: int) -> Array:
    low = np.where(np.isfinite(limits.lower), limits.lower, -np.pi)
    high = np.where(np.isfinite(limits.upper), limits.upper, np.pi)
    middle, half = (low + high) / 2, np.maximum(FILL * (high - low) / 2 - way, 0.0)
    half = np.minimum(half, np.where(robot.prismatic, np.inf, np.pi))
    return np.asarray(middle + half * np.random.default_rng(seed).uniform(-1.0, 1.0, (DRAWN, robot.n)))


def _held(poses: Array, way: Array, limits: Limits, torque: Torque | None) -> Array:
    """Returns the poses in which gravity is within the torque limits, including the ends of their approaches."""
    if torque is None:
        return poses
    ends = np.concatenate([poses - way, poses, poses + way])
    still = np.zeros_like(ends)
    inside = (np.abs(torque(ends, still, still)) <= _HELD * limits.torque).all(axis=1)
    return np.asarray(poses[inside.reshape(3, -1).all(axis=0)])


def _free(poses: Array, way: Array, collisions: Collisions | None) -> Array:
    """Returns the poses that keep the clearance, including the ends of their approaches."""
    if collisions is None or not collisions.pairs:
        return poses
    good = [bool((collisions.distances(np.array([q - way, q, q + way])) > collisions.required).all()) for q in poses]
    return np.asarray(poses[np.array(good)])


def _chosen(robot: Robot, poses: Array, count: int) -> tuple[list[int], Array]:
    """Selects D-optimal poses for the body's parameters one by one (Fedorov 1972); also returns the standard errors."""
    still = np.zeros_like(poses)
    columns = engine.regressor(robot, poses, still, still)[:, :, 10 * robot.tip : 10 * robot.tip + 4]
    used = np.flatnonzero(np.abs(columns).max(axis=(0, 1)) > 1e-9)
    if not len(used):
        raise LimitError("gravity loads no joint of this robot: no pose at rest shows a weight", remedy="use motion instead")
    rows = [np.hstack([np.eye(robot.n), one[:, used]]) for one in columns]
    total, taken = 1e-6 * np.eye(robot.n + len(used)), list[int]()
    for _ in range(count):
        inverse = np.linalg.inv(total)
        gains = [np.linalg.slogdet(np.eye(robot.n) + W @ inverse @ W.T)[1] for W in rows]
        best = next(int(k) for k in np.argsort(gains)[::-1] if int(k) not in taken)
        taken.append(best)
        total = total + rows[best].T @ rows[best]
    errors = np.full(4, np.inf)
    errors[used] = np.sqrt(np.diag(np.linalg.inv(total))[robot.n :])
    return taken, np.where(errors > 100.0, np.inf, errors)


def _short_way(poses: Array) -> Array:
    """Orders the poses by nearest neighbour, starting with the first."""
    rest, out = [*poses[1:]], [poses[0]]
    while rest:
        k = int(np.argmin([np.abs(q - out[-1]).max() for q in rest]))
        out.append(rest.pop(k))
    return np.array(out)


def _motion(robot: Robot, limits: Limits, poses: Array, way: Array) -> TrapezoidalTrajectory:
    points = [poses[0] - way]
    for q in poses:  # approach from below, pass, and approach from above
        points += [q - way, q, q + way, q]
    speed = np.minimum(_SLOW * limits.velocity, np.where(robot.prismatic, 0.2, 1.0) * _FASTEST)
    rise = np.minimum(_RISE * speed, np.where(np.isfinite(limits.acceleration), 0.5 * limits.acceleration, np.inf))
    return TrapezoidalTrajectory(robot.joints, np.array(points), speed, rise, 10.0 * rise, dwell=HOLD)
