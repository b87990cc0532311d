"""Checks whether a motion stays inside the limits, also between samples.

Between two samples a signal can exceed both by at most K·dt²/8 if its second derivative is bounded by K, or by L·dt/2 if
only its slope is bounded, by L. The trajectory provides these bounds; the torque's curvature is estimated from the grid.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from ..errors import LimitError, check_shape
from ..linalg import Array
from ..model.rigid_bodies import rigid_torque
from ..model.robot import Robot
from ..samples import freeze_arrays
from ..units import joint_units
from .trajectory import Trajectory

Torque = Callable[[Array, Array, Array], Array]


@dataclass(frozen=True, eq=False)
class Limits:
    """Limits of the joints; inf where a limit is unknown.

    Attributes:
        joints: Joint names.
        lower: Shape (n,) [rad or m].
        upper: Shape (n,) [rad or m].
        velocity: Shape (n,) [rad/s or m/s].
        acceleration: Shape (n,) [rad/s² or m/s²].
        torque: Shape (n,) [N·m or N].
        continuous: Shape (n,): True for continuous joints, which need no position limits.
        prismatic: Shape (n,): True for prismatic joints.
    """

    joints: tuple[str, ...]
    lower: Array
    upper: Array
    velocity: Array
    acceleration: Array
    torque: Array
    continuous: Array
    prismatic: Array

    def __post_init__(self) -> None:
        for name in ("lower", "upper", "velocity", "acceleration", "torque", "continuous", "prismatic"):
            check_shape(name, getattr(self, name).shape, (len(self.joints),))
        empty = ~(self.upper > self.lower)
        if empty.any():
            j = int(np.argmax(empty))
            raise LimitError(
                "the position limits leave no room",
                where=f"joint '{self.joints[j]}'",
                got=f"[{self.lower[j]:.6g}, {self.upper[j]:.6g}]",
                remedy="correct the URDF or the project file",
            )
        for kind in ("velocity", "acceleration", "torque"):
            positive = getattr(self, kind) > 0
            if not positive.all():
                j = int(np.argmin(positive))
                raise LimitError(
                    f"the {kind} limit leaves no room to move",
                    where=f"joint '{self.joints[j]}'",
                    got=f"{getattr(self, kind)[j]:g}",
                    expected="more than 0",
                    remedy="correct it, or remove it if there is no limit",
                )
        freeze_arrays(self)

    @classmethod
    def from_robot(
        cls,
        robot: Robot,
        *,
        lower: ArrayLike | None = None,
        upper: ArrayLike | None = None,
        velocity: ArrayLike | None = None,
        acceleration: ArrayLike | None = None,
        torque: ArrayLike | None = None,
    ) -> Limits:
        """Returns the URDF's limits, supplemented (accelerations are never stated) or overridden by the arguments.

        Args:
            robot: The robot.
            lower: Shape (n,) or a number [rad or m], instead of the URDF's.
            upper: Shape (n,) or a number [rad or m].
            velocity: Shape (n,) or a number [rad/s or m/s].
            acceleration: Shape (n,) or a number [rad/s² or m/s²].
            torque: Shape (n,) or a number [N·m or N].

        Raises:
            LimitError: Limits leave no room.
            ShapeError: Wrong length.
        """

        def choose(given: ArrayLike | None, stated: Array) -> Array:
            return stated if given is None else np.broadcast_to(np.asarray(given, dtype=float), (robot.n,))

        return cls(
            robot.joints,
            choose(lower, robot.limit("lower")),
            choose(upper, robot.limit("upper")),
            choose(velocity, robot.limit("velocity")),
            choose(acceleration, np.full(robot.n, np.inf)),
            choose(torque, robot.limit("effort")),
            np.asarray(robot.continuous),
            np.asarray(robot.prismatic),
        )

    @property
    def middle(self) -> Array:
        """Middle of the position range, shape (n,) [rad or m]."""
        return np.asarray((self.upper + self.lower) / 2)

    @property
    def half_range(self) -> Array:
        """Half the position range, shape (n,) [rad or m]."""
        return np.asarray((self.upper - self.lower) / 2)

    @property
    def assumed_acceleration(self) -> Array:
        """Acceleration limits, shape (n,) [rad/s² or m/s²]; where unknown, the velocity limit per half second."""
        return np.where(np.isfinite(self.acceleration), self.acceleration, 2.0 * self.velocity)

    def random_pose(self, rng: np.random.Generator, reach: Array) -> Array:
        """Returns a pose drawn evenly about the middle of the position ranges, shape (n,) [rad or m].

        Args:
            reach: Largest distance of each joint from the middle, shape (n,) [rad or m].
        """
        return np.asarray(self.middle + reach * rng.uniform(-1.0, 1.0, len(self.joints)))

    def require_inside(self, pose: Array, what: str, room: float = 0.0) -> None:
        """Raises an error if a pose is not inside the position limits.

        Args:
            pose: Shape (n,) [rad or m].
            what: Name of the pose.
            room: Distance to the limits that it must exceed [rad or m].

        Raises:
            LimitError: It is outside them, or closer to one than ``room``.
        """
        margin = np.minimum(pose - self.lower, self.upper - pose)
        if not (margin > room).all():
            j = int(np.argmin(margin))
            raise LimitError(
                f"the {what} is {'outside the position limits' if margin[j] < -1e-6 else 'on a position limit'}",
                where=f"joint '{self.joints[j]}'",
                got=f"{pose[j]:.6g}",
                expected=f"between {self.lower[j]:.6g} and {self.upper[j]:.6g}",
            )

    def require(self, *kinds: str) -> None:
        """Raises an error if limits are unknown.

        Args:
            kinds: ``"position"``, ``"velocity"``, ``"acceleration"`` or ``"torque"``.

        Raises:
            LimitError: One is unknown.
        """
        missing = {kind: joints for kind in kinds if (joints := self._unknown(kind))}
        named = {kind: ", ".join(f"'{joint}'" for joint in joints) for kind, joints in missing.items()}
        many = sum(map(len, missing.values())) > 1
        entries = (
            f"{kind}: {{{joints[0]}: {'[…, …]' if kind == 'position' else '…'}{', …' * (len(joints) > 1)}}}"
            for kind, joints in missing.items()
        )
        remedy = (
            f"state {'them' if many else 'it'} in the URDF's <limit> or in the project file "
            f"(`excitation: {{limits: {{{', '.join(entries)}}}}}`), or lock joints that shall not move (robot.lock)"
        )
        if len(missing) == 1:
            ((kind, names),) = named.items()
            raise LimitError(f"the {kind} limit is unknown", where=f"joint{'s' * many} {names}", remedy=remedy)
        if missing:
            where = "; ".join(f"{kind} of {names}" for kind, names in named.items())
            raise LimitError("limits are unknown", where=where, remedy=remedy)

    def _unknown(self, kind: str) -> list[str]:
        if kind == "position":
            known = (np.isfinite(self.lower) & np.isfinite(self.upper)) | self.continuous.astype(bool)
        else:
            known = np.isfinite(getattr(self, kind))
        return [joint for joint, is_known in zip(self.joints, known, strict=True) if not is_known]


@dataclass(frozen=True)
class Margin:
    """The smallest distance of one joint to a limit of one quantity.

    Attributes:
        time: Its time [s].
        value: The sample at that time [unit].
        allowance: Bound on the excess between samples [unit].
        limit: The nearest limit [unit].
        margin: Distance to the limit minus the allowance; negative if the limit is violated [unit].
        certified: True if the allowance is a bound, False if it is an estimate.
    """

    joint: str
    quantity: str
    time: float
    value: float
    allowance: float
    limit: float
    margin: float
    unit: str
    certified: bool

    @property
    def relative(self) -> float:
        """Margin as a fraction of the limit's magnitude."""
        return self.margin / max(abs(self.limit), 1e-12)


@dataclass(frozen=True)
class LimitReport:
    """Margins of a trajectory, one per joint and quantity with a known limit."""

    margins: tuple[Margin, ...]

    @property
    def feasible(self) -> bool:
        """True if no limit is violated."""
        return all(margin.margin >= 0 for margin in self.margins)

    @property
    def worst(self) -> Margin | None:
        """The smallest relative margin, None if nothing is limited."""
        return min(self.margins, key=lambda margin: margin.relative, default=None)

    def require(self) -> None:
        """Raises an error if the motion violates a limit.

        Raises:
            LimitError: With joint, time, value and limit.
        """
        worst = self.worst
        if worst is None or worst.margin >= 0:
            return
        raise LimitError(
            f"the trajectory leaves the {worst.quantity} limit",
            where=f"joint '{worst.joint}' at t = {worst.time:.4g} s",
            got=f"{worst.value:.6g} {worst.unit}",
            expected=f"|{worst.quantity}| within {worst.limit:.6g} {worst.unit}",
            remedy="scale the motion down, make it longer, or correct the limit",
        )


def check_limits(trajectory: Trajectory, limits: Limits, *, torque: Torque | None = None, rate: float = 1000.0) -> LimitReport:
    """Compares a trajectory with the limits, on a grid and between grid points.

    Args:
        limits: The limits; unknown ones are not checked (see :meth:`Limits.require`).
        torque: ``(q, v, a)``, shapes (N, n) → joint torque (N, n) [N·m or N], e.g. :func:`prior_torque`; None: not checked.
        rate: Of the grid [Hz].

    Raises:
        LimitError: The joints differ, or the trajectory is not finite.
    """
    if trajectory.joints != limits.joints:
        raise LimitError("trajectory and limits are for different joints", got=trajectory.joints, expected=limits.joints)
    time = np.linspace(0.0, trajectory.duration, max(2, int(np.ceil(trajectory.duration * rate)) + 1))
    step = time[1]
    q, v, a = trajectory.evaluate(time)
    if not (np.isfinite(q).all() and np.isfinite(v).all() and np.isfinite(a).all()):
        raise LimitError("the trajectory is not finite", got="NaN or inf")
    margins: list[Margin] = []
    signals = {"position": q, "velocity": v, "acceleration": a}
    for order, (quantity, signal) in enumerate(signals.items()):
        smooth = order + 1 <= trajectory.smoothness
        bound = trajectory.bounds(order + 2) * step**2 / 8 if smooth else trajectory.bounds(order + 1) * step / 2
        upper = limits.upper if quantity == "position" else getattr(limits, quantity)
        lower = limits.lower if quantity == "position" else -upper
        margins += _margins(quantity, limits, time, signal, bound, (lower, upper), certified=True)
    if torque is not None:
        signal = torque(q, v, a)
        check_shape("torque", signal.shape, q.shape)
        curvature = np.abs(np.diff(signal, n=2, axis=0)).max(axis=0, initial=0.0)
        margins += _margins("torque", limits, time, signal, curvature / 4, (-limits.torque, limits.torque), certified=False)
    return LimitReport(tuple(margins))


def finite_ends(lower: Array, upper: Array, around: Array | float = 0.0) -> tuple[Array, Array]:
    """Returns the ends of the range in which to search a position: half a turn to each side where there is no limit.

    Args:
        lower, upper: Limits, shape (n,) [rad or m].
        around: Middle of the range of a joint without limits, shape (n,) or one number [rad or m].

    Returns:
        Lower and upper ends, shape (n,) each.
    """
    return np.where(np.isfinite(lower), lower, around - np.pi), np.where(np.isfinite(upper), upper, around + np.pi)


def prior_torque(robot: Robot) -> Torque:
    """Returns the inverse dynamics of the URDF's rigid model (no friction, no rotor inertia).

    Returns:
        A function of ``(q, v, a)``, shapes (N, n), that returns joint torques (N, n) [N·m or N].
    """
    return partial(rigid_torque, robot, robot.inertials.ravel())


def _margins(
    quantity: str, limits: Limits, time: Array, signal: Array, allowance: Array, ends: tuple[Array, Array], *, certified: bool
) -> list[Margin]:
    """The smallest margin of each joint with a limit; allowance (n,); ends: lower and upper limits, shapes (n,)."""
    margins = []
    for j, joint in enumerate(limits.joints):
        distance = np.stack([signal[:, j] - ends[0][j], ends[1][j] - signal[:, j]])
        if not np.isfinite(distance).any():
            continue
        end, k = np.unravel_index(int(np.argmin(distance)), distance.shape)
        margins.append(
            Margin(
                joint=joint,
                quantity=quantity,
                time=float(time[k]),
                value=float(signal[k, j]),
                allowance=float(allowance[j]),
                limit=float(ends[end][j]),
                margin=float(distance[end, k] - allowance[j]),
                unit=joint_units(limits.prismatic[j])[quantity],
                certified=certified and bool(np.isfinite(allowance[j])),
            )
        )
    return margins
