"""Constant-speed runs of one joint at a time, in both directions over the same path, for friction (Liu 2023, §2), and static
poses, each approached from both sides, to identify a payload without fast motion.

At constant speed the link torque depends only on the position, so that half the difference of both directions is friction
(evaluated by :mod:`..compensation.friction_curve`). Speeds are spaced geometrically; each path is just long enough for the
cruise time. The default is short; what that costs in standard errors of friction is reported. With obstacles, the home pose
is the one of several that leaves all joints the most room, and every path ends before the first obstacle that is too close.

At rest, dry friction can take any value up to its level, with the sign of the preceding motion; the mean of both approaches
cancels it. Poses are chosen one after the other from feasible random poses, to determine best the mass and centre of mass
of a body on the last link together with a constant in every joint, unknown within the noise of one pose. Joints that do not
carry the body, such as those of the other arm, stay where they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from ..errors import LimitError, check_named
from ..friction.law import LEAST_SPEEDS
from ..linalg import Array, BoolArray, shaped
from ..model import rigid_bodies as engine
from ..model.dynamic_model import DynamicModel
from ..model.robot import Robot
from ..motion.collision.collisions import Collisions
from ..motion.limits import Limits, Torque, finite_ends, prior_torque
from ..motion.trajectory import trapezoidal
from ..units import joint_units
from .design import DesignedMotion

#: Speed of the slowest run over the fastest.
SLOWEST = 0.03
#: Speeds of a joint and time at each of them [s]: the default, and the long experiment that it is compared with.
SHORT, LONG = (5, 0.5), (8, 2.0)
#: Pause at the turning points [s]; time of the changes of the acceleration, in addition to speed over acceleration [s].
_DWELL, _RAMP = 0.1, 0.1
#: Number of candidates for the home pose, besides the middle of all ranges.
_HOMES = 40
#: Number of positions per side at which a joint's range is checked, and the margin beyond the required distance there [m].
_TRIED, _PAD = 12, 0.005
#: Reduction factor of the ranges, and number of attempts, while a distance in between is too small.
_SHORTER, _ROUNDS = 0.85, 8
#: Part of the torque limits that gravity may need in a pose; friction and the motion need the rest.
_HELD = 0.9


@dataclass(frozen=True, eq=False, kw_only=True)
class BidirectionalExperiment(DesignedMotion):
    """Constant-speed runs of all joints, one after the other; the motion starts and ends at rest at the home pose.

    Attributes:
        speeds: Joint → speeds, each in both directions [rad/s or m/s].
    """

    speeds: Mapping[str, tuple[float, ...]]


def _standard_errors(count: int, cruise: float) -> Array:
    """Relative standard errors of Coulomb and viscous friction, shape (2,).

    Torque noise is taken as white, so that the information is the time at each speed: its square root counts.
    """
    columns = np.sqrt(2.0 * cruise) * np.column_stack([np.ones(count), np.geomspace(SLOWEST, 1.0, count)])
    return np.asarray(np.sqrt(np.sum(np.linalg.pinv(columns) ** 2, axis=1)))


def bidirectional_experiment(
    limits: Limits,
    *,
    joints: Sequence[str] | None = None,
    count: int = SHORT[0],
    cruise: float = SHORT[1],
    fill: float = 0.9,
    home: ArrayLike | None = None,
    torque: Torque | None = None,
    collisions: Collisions | None = None,
    seed: int = 0,
) -> BidirectionalExperiment:
    """Plans constant-speed runs of one joint at a time, each speed in both directions over the same path.

    Args:
        limits: Of the joints; velocities must be known. An unknown acceleration limit is replaced by the velocity limit per
            half second.
        joints: The joints to move; all by default.
        count: Number of speeds, at least 4.
        cruise: Time at constant speed in each direction [s], less if the range is too short.
        fill: Fraction of each limit that is used, 0 to 1.
        home: Pose around which the joints move, shape (n,) [rad or m]; the middle of each range by default, or with
            collisions the pose of several that leaves the most room.
        torque: ``(q, v, a)`` → joint torque, to check its limits too; see :func:`..motion.limits.prior_torque`.
        collisions: Pairs whose clearance is kept; None: collisions are not checked.
        seed: Of the candidates for the home pose.

    Returns:
        The experiment, with verified limits and certified distances.

    Raises:
        LimitError: A limit is unknown, the home pose is outside or collides, a joint has no room, or too few speeds.
    """
    limits.require("position", "velocity")
    if count < LEAST_SPEEDS:
        raise LimitError("too few speeds for a friction curve", got=count, expected=f"at least {LEAST_SPEEDS}")
    names = limits.joints if joints is None else tuple(joints)
    for joint in names:
        check_named("joint", joint, limits.joints, LimitError)
    moving = [limits.joints.index(joint) for joint in names]
    fastest, acceleration = fill * limits.velocity, fill * limits.assumed_acceleration
    # half the path that each joint needs at its fastest
    needed = 0.5 * (fastest * (fastest / acceleration + _RAMP) + fastest * cruise)

    if home is not None:
        rest = shaped("home", home, limits.lower.shape)
        limits.require_inside(rest, "home pose")
        if collisions is not None:
            collisions.require_free(rest, "the home pose")
    else:
        rest = _freest(limits, collisions, torque, moving, needed, fill, seed)
    half_range = _room(limits, rest, fill)
    if collisions is not None:
        half_range = np.minimum(half_range, _collision_free(collisions, rest, half_range, moving))
    for _ in range(_ROUNDS):
        points, rates, speeds = [rest], list[float](), dict[str, tuple[float, ...]]()
        for j in moving:
            joint, a, free = limits.joints[j], float(acceleration[j]), float(half_range[j])
            if not free > 0:
                raise LimitError(
                    "no room for a sweep",
                    where=f"joint '{joint}' at home {rest[j]:.4g}",
                    remedy="choose another home pose (excitation.start)",
                )
            speeds[joint] = _speeds(float(fastest[j]), a, free, cruise, count)
            axis = np.eye(len(rest))[j]
            for speed in speeds[joint]:  # up from home and back, or from below home where there is too little room above
                length = min(2 * free, speed * (speed / a + _RAMP) + speed * cruise)
                low = rest - max(0.0, length - free) * axis
                if (low != points[-1]).any():
                    points, rates = [*points, low], [*rates, fastest[j]]
                points, rates = [*points, low + length * axis, low], [*rates, speed, speed]
            if (rest != points[-1]).any():
                points, rates = [*points, rest], [*rates, fastest[j]]
        rated = np.tile(np.array(rates)[:, None], len(rest))
        trajectory = trapezoidal(limits.joints, np.array(points), rated, acceleration, 10.0 * acceleration, _DWELL)
        found = BidirectionalExperiment.verified(trajectory, limits, torque, collisions, speeds=speeds)
        if found.clearance is None or found.clearance.feasible:
            break
        half_range = _SHORTER * half_range
    worst = found.report.worst
    if not found.report.feasible and worst is not None and worst.quantity == "torque":
        raise LimitError(
            "the sweeps need too much torque",
            where=f"joint '{worst.joint}'",
            got=f"{worst.value:.4g} {worst.unit}",
            expected=f"at most {worst.limit:.4g}",
            remedy="restrict the joints that carry weight (excitation.limits.position), or correct the torque limit",
        )
    loss = _standard_errors(count, cruise) / _standard_errors(*LONG)
    words = [f"sweeps: {trajectory.duration:.4g} s, one joint at a time, each speed both ways over the same path"]
    words.append(
        "  standard errors of Coulomb and viscous friction {:.2g} and {:.2g} × those of the long runs "
        "(excitation: {{speeds: {}, cruise: {:g}}})".format(*loss, *LONG)
    )
    for joint, of_joint in speeds.items():
        unit = joint_units(limits.prismatic[limits.joints.index(joint)])["velocity"]
        words.append(f"  {joint:24s} {len(of_joint)} speeds, {of_joint[0]:.3g} … {of_joint[-1]:.3g} {unit}")
    return replace(found.require(), words=tuple(words), notes=() if collisions is None else collisions.notes)


def _speeds(fastest: float, acceleration: float, free: float, cruise: float, count: int) -> tuple[float, ...]:
    """Speeds up to the largest that a joint reaches on its whole path, ``2 free``, with a short cruise."""
    ramp = _RAMP + min(cruise, 0.5)
    # v (v / acceleration + ramp) = 2 free
    most = min(fastest, 0.5 * acceleration * float(np.sqrt(ramp**2 + 8 * free / acceleration) - ramp))
    return tuple(float(speed) for speed in np.geomspace(SLOWEST * most, most, count))


def _room(limits: Limits, pose: Array, fill: float) -> Array:
    """What each joint may move either way from a pose within its limits, shape (n,) [rad or m]."""
    low, high = finite_ends(limits.lower, limits.upper, pose)
    return np.asarray(fill * np.minimum(high - pose, pose - low))


def _freest(
    limits: Limits,
    collisions: Collisions | None,
    torque: Torque | None,
    moving: Sequence[int],
    needed: Array,
    fill: float,
    seed: int,
) -> Array:
    """The middle of all ranges, or with collisions the pose of several that leaves the joint with the least room the most."""
    low, high = finite_ends(limits.lower, limits.upper)
    middle = (low + high) / 2
    if collisions is None:
        return np.asarray(middle)

    def score(pose: Array) -> float:
        """The smallest available fraction of the wanted range of any joint; 0 for an infeasible pose."""
        still = np.zeros((1, len(pose)))
        if torque is not None and (np.abs(torque(pose[None], still, still)[0]) > _HELD * limits.torque).any():
            return 0.0
        if (collisions.distances(pose)[0] < collisions.required).any():
            return 0.0
        free = _collision_free(collisions, pose, np.minimum(_room(limits, pose, fill), needed), moving)
        return float((free / needed)[moving].min())

    drawn = np.random.default_rng(seed).uniform(-1.0, 1.0, (_HOMES, len(middle)))
    poses = np.vstack([middle, middle + 0.5 * (high - low) / 2 * drawn])
    scores = [score(pose) for pose in poses]
    if not max(scores) > 0:
        raise LimitError(
            "no pose is free enough for the sweeps",
            got=f"{len(poses)} poses tried",
            remedy="give one as excitation.start, or check the world",
        )
    return np.asarray(poses[int(np.argmax(scores))])


def _collision_free(collisions: Collisions, rest: Array, half_range: Array, moving: Sequence[int]) -> Array:
    """Returns the collision-free part of each joint's range either way, from a few positions; shape (n,) [rad or m]."""
    out = half_range.copy()
    if not collisions.pairs:
        return out
    # a margin for what lies between the positions, smaller for pairs that are close at home
    kept = np.clip(0.5 * (collisions.distances(rest)[0] - collisions.required), 0.0, _PAD)
    parts = np.arange(1, _TRIED + 1) / _TRIED
    for j in moving:
        q = np.tile(rest, (2 * _TRIED, 1))
        q[:, j] += half_range[j] * np.concatenate([parts, -parts])
        blocked = (collisions.distances(q) < collisions.required + kept).any(axis=1)
        first = np.flatnonzero(blocked.reshape(2, -1).any(axis=0))
        if len(first):
            out[j] = half_range[j] * first[0] / _TRIED
    return out


#: Number of poses, holding time of each [s], and number of random candidates.
COUNT, HOLD, DRAWN = 12, 1.5, 200
#: Length of the approach from each side [rad], and fraction of every range that is used.
APPROACH, FILL = 0.1, 0.9
#: Lengths and speeds of prismatic joints [m] over those of revolute ones [rad].
_METRE = 0.2
#: Fraction of the velocity limit, largest velocity [rad/s], and acceleration over velocity [1/s].
_SLOW, _FASTEST, _RISE = 0.2, 0.5, 2.0
#: Number of attempts with other poses.
_DRAWS = 6
#: Fewest poses; number of free ones below which others are freed, and of tries for each.
_FEWEST, _ENOUGH, _FREEING = 4, 4 * COUNT, 30


@dataclass(frozen=True, eq=False, kw_only=True)
class PosesExperiment(DesignedMotion):
    """Static poses, shape (P, n) [rad or m], each approached from both sides."""

    poses: Array


def design_poses(
    model: DynamicModel,
    *,
    limits: Limits | None = None,
    collisions: Collisions | None = None,
    seed: int = 0,
) -> PosesExperiment:
    """Plans static poses that determine the mass and centre of mass of a body on the last link.

    Args:
        limits: Of the joints; the URDF's if None. Joints without a range use half a turn either way.
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

    drawn = _held(robot, _free(draw, carrying, approach, limits, collisions), approach, limits)
    speed = np.minimum(_SLOW * limits.velocity, scale * _FASTEST)
    rise = np.minimum(_RISE * speed, np.where(np.isfinite(limits.acceleration), 0.5 * limits.acceleration, np.inf))
    for _ in range(_DRAWS):
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
        found = PosesExperiment.verified(trajectory, limits, prior_torque(robot), collisions, poses=np.array(order))
        if found.feasible:
            break
        drawn = np.delete(drawn, chosen[::2], axis=0)
    names = ("mass [kg]", "m·x [kg·m]", "m·y [kg·m]", "m·z [kg·m]")
    told = ", ".join(f"{name} ± {value:.2g}" for name, value in zip(names, errors, strict=True))
    words = (
        f"poses: {len(order)}, each reached from both sides and held {HOLD:g} s, "
        f"{trajectory.duration:.4g} s in all; then `urdf-ident payload OUT/identification.json LOG --static`",
        f"  a body on the last link, for torque noise of 1 N·m a pose: {told}",
    )
    return replace(found.require(), words=words, notes=() if collisions is None else collisions.notes)


def _by_nearest(poses: Array) -> list[Array]:
    """Poses, each followed by the nearest of those that are left."""
    order, left = [poses[0]], [*poses[1:]]
    while left:
        order.append(left.pop(int(np.argmin([np.abs(q - order[-1]).max() for q in left]))))
    return order


def _held(robot: Robot, poses: Array, approach: Array, limits: Limits) -> Array:
    """Returns the poses in which gravity is within the torque limits, including the ends of their approaches."""
    ends = np.concatenate([poses - approach, poses, poses + approach])
    excess = (np.abs(engine.gravity_torques(robot, ends)) - _HELD * limits.torque).reshape(3, len(poses), -1).max(axis=0)
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

    poses = np.where(carrying, poses, rest if carrying.all() else collisions.freed(rest, margin, lambda: draw()[0], _FREEING))
    margins = np.array([margin(q) for q in poses])
    for k in np.flatnonzero((margins <= 0).any(axis=1))[: max(_ENOUGH - int((margins > 0).all(axis=1).sum()), 0)]:
        poses[k] = collisions.freed(poses[k], margin, lambda: draw()[0], _FREEING, carrying)
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
