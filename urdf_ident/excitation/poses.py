"""Static poses, each approached from both sides, to identify a payload without fast motion.

At rest, dry friction can take any value up to its level, with the sign of the preceding motion; the mean of both approaches
cancels it. Poses are chosen one after the other from feasible random poses, to determine best the mass and centre of mass
of a body on the last link together with a constant in every joint, unknown within the noise of one pose. Joints that do not
carry the body, such as those of the other arm, stay where they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from ..errors import LimitError
from ..linalg import Array, BoolArray
from ..model import rigid_bodies as engine
from ..model.dynamic_model import DynamicModel
from ..model.robot import Robot
from ..motion.collision.clearance import check_clearance
from ..motion.collision.collisions import Collisions
from ..motion.limits import Limits, Torque, check_limits, finite_ends
from ..motion.point_to_point import trapezoidal
from ..motion.trajectory import PiecewisePolynomial
from .motion import DesignedMotion

#: Number of poses, holding time of each [s], and number of random candidates.
COUNT, HOLD, DRAWN = 12, 1.5, 200
#: Length of the approach from each side [rad], and fraction of every range that is used.
APPROACH, FILL = 0.1, 0.9
#: Lengths and speeds of prismatic joints [m] over those of revolute ones [rad].
_METRE = 0.2
#: Part of the torque limits that gravity may need in a pose; friction and the approach need the rest.
_HELD = 0.9
#: Fraction of the velocity limit, largest velocity [rad/s], and acceleration over velocity [1/s].
_SLOW, _FASTEST, _RISE = 0.2, 0.5, 2.0
#: Initial spacing of instants for certifying distances [s], and number of attempts with other poses.
_STEP, _ROUNDS = 0.05, 6
#: Fewest poses; number of free ones below which others are freed, and of tries for each.
_FEWEST, _ENOUGH, _TRIES = 4, 4 * COUNT, 30


@dataclass(frozen=True, eq=False, kw_only=True)
class PosesExperiment(DesignedMotion):
    """Static poses, each approached from both sides.

    Attributes:
        poses: Shape (P, n) [rad or m].
        information: Parameter of the body (mass, three first moments) → standard error for unit torque noise at every
            joint and pose, and a constant torque of unit standard deviation in every joint.
    """

    trajectory: PiecewisePolynomial
    poses: Array
    information: Mapping[str, float]

    def describe(self) -> list[str]:
        """Describes number of poses, duration and expected standard errors."""
        lines = [
            f"poses: {len(self.poses)}, each reached from both sides and held {HOLD:g} s, "
            f"{self.trajectory.duration:.4g} s in all; then `urdf-ident payload OUT/identification.json LOG --static`"
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
    carrying: BoolArray = np.isin(np.array(robot.place_in_tree) + 1, list(robot.model.supports[robot.tip + 1]))
    scale = np.where(robot.prismatic, _METRE, 1.0)
    approach = scale * APPROACH * carrying
    low, high = finite_ends(limits.lower, limits.upper)
    half = np.maximum(FILL * (high - low) / 2 - approach, 0.0)
    half = np.minimum(half, np.where(robot.prismatic, np.inf, np.pi))
    rng = np.random.default_rng(seed)

    def draw(count: int = 1) -> Array:
        return np.asarray((low + high) / 2 + half * rng.uniform(-1.0, 1.0, (count, robot.n)))

    drawn = _held(_free(draw, carrying, approach, limits, collisions), approach, limits, torque)
    speed = np.minimum(_SLOW * limits.velocity, scale * _FASTEST)
    rise = np.minimum(_RISE * speed, np.where(np.isfinite(limits.acceleration), 0.5 * limits.acceleration, np.inf))
    for _ in range(_ROUNDS):
        if len(drawn) < _FEWEST:
            raise LimitError(
                "too few of the poses can be joined without collision", remedy="restrict excitation.limits.position"
            )
        chosen, errors = _chosen(robot, drawn, min(COUNT, len(drawn)))
        order = _by_nearest(drawn[chosen])
        points = [order[0] - approach]
        for q in order:  # approach from below, pass, and approach from above
            points += [q - approach, q, q + approach, q]
        trajectory = trapezoidal(robot.joints, np.array(points), speed, rise, 10.0 * rise, dwell=HOLD)
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
    return PosesExperiment(
        trajectory=trajectory,
        poses=np.array(order),
        information=dict(zip(names, errors.tolist(), strict=True)),
        limits=limits,
        report=report,
        clearance=clearance,
        notes=() if collisions is None else collisions.notes,
    )


def _by_nearest(poses: Array) -> list[Array]:
    """Poses, each followed by the nearest of those that are left."""
    order, left = [poses[0]], [*poses[1:]]
    while left:
        order.append(left.pop(int(np.argmin([np.abs(q - order[-1]).max() for q in left]))))
    return order


def _held(poses: Array, approach: Array, limits: Limits, torque: Torque | None) -> Array:
    """Returns the poses in which gravity is within the torque limits, including the ends of their approaches."""
    if torque is None:
        return poses
    ends = np.concatenate([poses - approach, poses, poses + approach])
    still = np.zeros_like(ends)
    excess = (np.abs(torque(ends, still, still)) - _HELD * limits.torque).reshape(3, len(poses), -1).max(axis=0)
    held = (excess <= 0).all(axis=1)
    if held.sum() < _FEWEST:
        beyond = (excess > 0).mean(axis=0)
        worst = int(np.argmax(beyond))
        raise LimitError(
            "gravity needs too much torque in nearly all poses",
            where=f"joint '{limits.joints[worst]}'",
            got=f"more than {_HELD:.0%} of its limit of {limits.torque[worst]:.4g} in {beyond[worst]:.0%} of the poses",
            remedy="correct the effort limit, restrict excitation.limits.position, or lock joints (robot.lock)",
        )
    return np.asarray(poses[held])


def _free(
    draw: Callable[..., Array], carrying: BoolArray, approach: Array, limits: Limits, collisions: Collisions | None
) -> Array:
    """Returns poses that keep the clearance, including the ends of their approaches; the joints that do not carry rest."""
    poses, rest = draw(count=DRAWN), np.clip(0.0, limits.lower, limits.upper)
    if collisions is None or not collisions.pairs:
        return np.where(carrying, poses, rest)

    def margin(q: Array) -> Array:
        return np.asarray((collisions.distances(np.array([q - approach, q, q + approach])) - collisions.required).min(axis=0))

    poses = np.where(carrying, poses, rest if carrying.all() else collisions.freed(rest, margin, lambda: draw()[0], _TRIES))
    margins = np.array([margin(q) for q in poses])
    for k in np.flatnonzero((margins <= 0).any(axis=1))[: max(_ENOUGH - int((margins > 0).all(axis=1).sum()), 0)]:
        poses[k] = collisions.freed(poses[k], margin, lambda: draw()[0], _TRIES, carrying)
        margins[k] = margin(poses[k])
    free = (margins > 0).all(axis=1)
    if free.sum() < _FEWEST:
        close = (margins <= 0).mean(axis=0)
        worst = int(np.argmax(close))
        raise LimitError(
            f"two solids are closer than {collisions.required[worst]:.3g} m in nearly all poses",
            where=" and ".join(collisions.pairs[worst].names),
            got=f"{close[worst]:.0%} of {DRAWN} poses",
            remedy="`allow` this pair in the world file, lower excitation.clearance, or change excitation.limits.position",
        )
    return np.asarray(poses[free])


def _chosen(robot: Robot, poses: Array, count: int) -> tuple[list[int], Array]:
    """Selects D-optimal poses for the body's parameters one by one (Fedorov 1972); also returns the standard errors."""
    still = np.zeros_like(poses)
    columns = engine.regressor(robot, poses, still, still)[:, :, 10 * robot.tip : 10 * robot.tip + 4]
    used = np.flatnonzero(np.abs(columns).max(axis=(0, 1)) > 1e-9)
    if not len(used):
        raise LimitError("gravity loads no joint of this robot: no pose at rest shows a weight", remedy="use motion instead")
    rows = [np.hstack([np.eye(robot.n), one[:, used]]) for one in columns]
    total, taken = np.diag([*np.ones(robot.n), *np.full(len(used), 1e-6)]), list[int]()
    for _ in range(count):
        inverse = np.linalg.inv(total)
        gains = [np.linalg.slogdet(np.eye(robot.n) + W @ inverse @ W.T)[1] for W in rows]
        best = next(int(k) for k in np.argsort(gains)[::-1] if int(k) not in taken)
        taken.append(best)
        total = total + rows[best].T @ rows[best]
    errors = np.full(4, np.inf)
    errors[used] = np.sqrt(np.diag(np.linalg.inv(total))[robot.n :])
    return taken, np.where(errors > 100.0, np.inf, errors)
