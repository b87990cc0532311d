"""Joint positions over time for playback, from a trajectory, a log, or arrays; where they take the bodies, and the view."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from ..errors import LogError, check_shape
from ..linalg import Array
from ..logs.columns.layout import LogLayout
from ..logs.formats.choice import TEXT, open_table
from ..logs.read import read_recording
from ..logs.recording import IMPOSSIBLE, Recording
from ..logs.sources import LogSource
from ..model.drive import Drive
from ..model.geometry import Visual, tip_point
from ..model.robot import Robot
from ..motion.trajectory import Trajectory
from ..samples import freeze_arrays
from ..signals.motor_side import joint_side
from ..units import joint_units

if TYPE_CHECKING:
    from ..result.identification import Identification

#: Frames per second [Hz]; the page interpolates in between.
FRAME_RATE = 30.0
#: Ten minutes at the full frame rate; longer motions get fewer frames per second.
MAX_FRAMES = 18_000
#: Frames whose extent chooses the view.
_VIEW_FRAMES = 80


@dataclass(frozen=True, eq=False)
class Motion:
    """Joint positions over time.

    Attributes:
        time: Shape (N,) [s], strictly increasing.
        position: Shape (N, n) [rad or m], in model order.
        notes: Notes on rows that were left out.
        measured: Whether the motion was executed by the robot: the log has efforts.
        error: Torque error relative to the joint's typical torque, shape (N, n) [1], nan where unknown; None: not drawn.
    """

    name: str
    time: Array
    position: Array
    notes: tuple[str, ...] = ()
    measured: bool = False
    error: Array | None = None

    def __post_init__(self) -> None:
        check_shape("time", self.time.shape, ("N",))
        check_shape("position", self.position.shape, (len(self.time), "n"))
        if self.error is not None:
            check_shape("error", self.error.shape, self.position.shape)
        freeze_arrays(self)

    @property
    def duration(self) -> float:
        """Length [s]."""
        return float(self.time[-1] - self.time[0])


def read_motion(path: str | Path | LogSource, robot: Robot, layout: LogLayout | None = None) -> Recording:
    """Reads a trajectory or a log.

    A file with the default columns of every joint and without torque is a trajectory, to which the layout of the logs does
    not apply.
    """
    if layout is not None and not isinstance(path, LogSource) and Path(path).suffix.lower() in TEXT and Path(path).is_file():
        header = open_table(Path(path)).names
        wanted = {"t", *(f"q_{joint}" for joint in robot.joints)}
        if wanted <= set(header) and not any(name.startswith("tau_") for name in header):
            layout = None
    return read_recording(path, robot, layout)


def as_motion(
    source: Motion | Trajectory | Recording | tuple[ArrayLike, ArrayLike], robot: Robot, *, drive: Drive | None = None
) -> Motion:
    """Converts a motion, trajectory, log or arrays to joint positions over time.

    Args:
        source: A motion, a trajectory, a log, or ``(time, position)`` of shapes (N,) [s] and (N, n) [rad or m].
        drive: The gears, for a log of motor positions; none if absent.
    """
    if isinstance(source, Motion):
        check_shape("position", source.position.shape, ("N", robot.n))
        return source
    if isinstance(source, Trajectory):
        time = np.linspace(0.0, source.duration, max(2, int(np.ceil(source.duration * 4 * FRAME_RATE)) + 1))
        return _clean("trajectory", time, source.evaluate(time)[0][:, _columns(source.joints, robot)])
    if isinstance(source, Recording):
        columns = _columns(source.joints, robot)
        silent = replace(source, effort=None, effort_target=None, torque_target=None)  # so that no torque constant is needed
        if "motor" in (source.position_side, source.effort_side) or drive is not None:
            silent = joint_side(silent, drive or Drive.build(robot.n))
        motion = _clean(source.name, silent.time, silent.position[:, columns], source.path)
        return replace(motion, measured=source.effort is not None)
    time, position = (np.asarray(values, dtype=float) for values in source)
    check_shape("time", time.shape, ("N",))
    check_shape("position", position.shape, (len(time), robot.n))
    return _clean("motion", time, position)


def frame_times(motion: Motion) -> tuple[float, Array]:
    """Frames per second [Hz] of a motion, and their times from its start to its end, shape (F,) [s]."""
    count = int(np.clip(np.ceil(motion.duration * FRAME_RATE), 1, MAX_FRAMES)) + 1
    return (count - 1) / motion.duration, np.linspace(0.0, motion.duration, count)


def positions_at(motion: Motion, robot: Robot, times: Array) -> Array:
    """Positions, shape (F, n) [rad or m]; after its end a motion holds its last; times of shape (F,) [s] since its start."""
    unwrapped = np.unwrap(motion.position, axis=0) if robot.continuous.any() else motion.position
    position = np.where(robot.continuous, unwrapped, motion.position)
    return np.column_stack([np.interp(motion.time[0] + times, motion.time, column) for column in position.T])


def with_torque_error(motion: Motion, ident: Identification, log: Recording | None) -> Motion:
    """Returns the motion of a log with the torque errors of a result on it, nan where they are unknown, such as at rest."""
    from ..pipeline.validate import torque_error

    if log is None or not motion.measured:
        raise LogError(
            "the motion holds no efforts to compare with", where=motion.name, remedy="leave out --errors, or play a log"
        )
    time, error = torque_error(ident, log)
    place = np.searchsorted(time, motion.time)
    near = np.abs(time[np.clip([place - 1, place], 0, len(time) - 1)] - motion.time).min(axis=0)
    sampled = np.column_stack([np.interp(motion.time, time, column) for column in error.T])
    sampled[near > 1.0 / FRAME_RATE] = np.nan
    return replace(motion, error=sampled)


def limit_notes(motion: Motion, robot: Robot) -> tuple[str, ...]:
    """Describes which joints leave their position limits."""
    lower, upper = robot.limit("lower"), robot.limit("upper")
    tolerance = 1e-6 + 1e-3 * np.where(np.isfinite(upper - lower), upper - lower, 0.0)
    beyond = np.maximum(lower - motion.position, motion.position - upper) - tolerance
    notes = []
    for j in np.flatnonzero(beyond.max(axis=0) > 0):
        row, unit = int(np.argmax(beyond[:, j] > 0)), joint_units(robot.prismatic[j])["position"]
        notes.append(
            f"joint '{robot.joints[j]}' leaves its limits at t = {motion.time[row]:.3f} s "
            f"({motion.position[row, j]:.4g} {unit}, allowed {lower[j]:.4g} … {upper[j]:.4g})"
        )
    return tuple(notes)


def _columns(joints: tuple[str, ...], robot: Robot) -> list[int]:
    if set(robot.joints) - set(joints):
        absent = sorted(set(robot.joints) - set(joints))
        raise LogError(
            "the motion does not hold every joint",
            got=", ".join(joints),
            expected=", ".join(absent),
            remedy="lock the joints that do not move: `robot: {lock: {…}}` in the project file",
        )
    return [joints.index(name) for name in robot.joints]


def _clean(name: str, time: Array, position: Array, where: str = "") -> Motion:
    """Drops rows that cannot be drawn or whose time does not increase."""
    good = np.isfinite(time) & (np.abs(np.nan_to_num(position, nan=np.inf)) < IMPOSSIBLE).all(axis=1)
    index = np.flatnonzero(good)
    latest = np.maximum.accumulate(time[index]) if len(index) else time[index]
    forward = np.ones(len(index), dtype=bool)
    forward[1:] = time[index][1:] > latest[:-1]
    index = index[forward]
    if len(index) < 2:
        raise LogError(
            "fewer than two rows can be played",
            where=where or name,
            got=f"{len(index)} of {len(time)}",
            remedy="look at it with `urdf-ident inspect`",
        )
    lost = len(time) - len(index)
    notes = (f"{name}: {lost} of {len(time)} rows left out (unreadable, or time does not increase)",) if lost else ()
    return Motion(name, time[index], position[index], notes)


@dataclass(frozen=True, eq=False)
class BodyPoses:
    """Poses of a robot's bodies in every frame, in a world whose z axis points up.

    Attributes:
        base: Placement of the robot's root in the world, shape (4, 4).
        poses: Position [m] and quaternion (x, y, z, w) of each joint's frame, shape (F, n_bodies, 7).
        tip: Path of the tip, shape (F, 3) [m].
        extent: Points around everything drawn, over the motion, shape (K, 3) [m].
        foot: Centre of the lowest points of the fixed parts, shape (3,) [m].
    """

    base: Array
    poses: Array
    tip: Array
    extent: Array
    foot: Array


def body_poses(robot: Robot, shapes: Sequence[Visual], position: Array) -> BodyPoses:
    """Computes the forward kinematics over a motion; position of shape (F, n) [rad or m]."""
    model, data = robot.model, robot.model.createData()
    base = upright(robot)
    configurations = robot.configuration(position)
    poses = np.empty((len(position), len(robot.bodies), 7))
    root = pin.SE3(base)
    for k, configuration in enumerate(configurations):
        pin.forwardKinematics(model, data, configuration)
        for j in range(len(robot.bodies)):
            poses[k, j] = pin.SE3ToXYZQUAT(root * data.oMi[j + 1])
    joint, point = tip_point(robot, shapes)
    tip = transform_points(poses[:, joint - 1], point[None])[:, 0]
    frames = np.unique(np.linspace(0, len(poses) - 1, _VIEW_FRAMES).astype(int))
    fixed, moving = [base[None, :3, 3]], [tip[frames], poses[frames, :, :3].reshape(-1, 3)]
    for shape in shapes:
        carrier, placement = robot.link_placements[shape.link]
        corners = shape.corners() @ placement[:3, :3].T + placement[:3, 3]
        if carrier < 0:
            fixed.append(corners @ base[:3, :3].T + base[:3, 3])
        else:
            moving.append(transform_points(poses[frames, carrier], corners).reshape(-1, 3))
    still = np.concatenate(fixed)
    low = still[still[:, 2] < still[:, 2].min() + 1e-3 * robot.reach()]
    return BodyPoses(base, poses, tip, outermost(np.concatenate([still, *moving])), low.mean(axis=0))


def upright(robot: Robot) -> Array:
    """Placement of the robot's root for which gravity points down, shape (4, 4)."""
    gravity = robot.gravity
    size = float(np.linalg.norm(gravity))
    placement = np.eye(4)
    if size > 1e-9 and gravity[2] > -size * (1 - 1e-12):
        placement[:3, :3] = pin.Quaternion.FromTwoVectors(gravity / size, np.array([0.0, 0.0, -1.0])).matrix()
    return placement


def transform_points(poses: Array, points: Array) -> Array:
    """Transforms points of a body into the world in every frame, shape (F, K, 3) [m].

    Args:
        poses, points: Shape (F, 7): position and quaternion (x, y, z, w); shape (K, 3) [m], in the body's frame.
    """
    from scipy.spatial.transform import Rotation

    rotation = Rotation.from_quat(poses[:, 3:]).as_matrix()
    return np.asarray(np.einsum("fij,kj->fki", rotation, points) + poses[:, None, :3])


def view_direction(extents: Array) -> Array:
    """Best view direction, a unit vector: across the widest horizontal direction of a motion, slightly from the side and above.

    Args:
        extents: Points around the moving parts, shape (K, 3) [m].
    """
    flat = extents[:, :2] - extents[:, :2].mean(axis=0)
    values, vectors = np.linalg.eigh(flat.T @ flat)
    wide = vectors[:, 1] if values[1] > 1.3 * values[0] else np.array([0.0, 1.0])
    across = np.array([-wide[1], wide[0]])
    across = across if across @ [0.8, -0.6] > 0 else -across
    turn, rise = np.deg2rad(28.0), np.deg2rad(17.0)
    side = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]]) @ across
    return np.array([*(np.cos(rise) * side), np.sin(rise)])


def outermost(points: Array) -> Array:
    """Selects the few outermost points of a cloud, shape (at most 200, 3) [m]; points of shape (K, 3) [m]."""
    k, golden = np.arange(200), np.pi * (3 - np.sqrt(5))
    z = 1 - (2 * k + 1) / 200
    around = np.sqrt(1 - z * z)
    directions = np.column_stack([around * np.cos(golden * k), around * np.sin(golden * k), z])
    return np.asarray(points[np.unique(np.argmax(points @ directions.T, axis=0))])
