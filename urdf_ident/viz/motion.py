"""Joint positions over time for playback, from a trajectory, a log, or arrays."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from ..errors import LogError, ModelError, check_shape
from ..linalg import Array
from ..logs.columns.layout import LogLayout
from ..logs.formats.choice import TEXT, open_table
from ..logs.read import read_recording
from ..logs.recording import Recording
from ..logs.sources import LogSource
from ..model.drive import Drive
from ..model.robot import Robot
from ..motion.trajectory import Trajectory
from ..samples import freeze_arrays
from ..signals.joint_side import joint_side
from ..units import joint_units

if TYPE_CHECKING:
    from ..result.identification import Identification

FRAME_RATE = 30.0  # [Hz]; the page interpolates in between
MAX_FRAMES = 18_000  # ten minutes at the full frame rate; longer motions get fewer frames per second
_SENSIBLE = 1e5  # [rad or m]; rows with larger positions are invalid


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


def motion_from(
    path: str | Path | LogSource, robot: Robot, layout: LogLayout | None = None, drive: Drive | None = None
) -> Motion:
    """Reads a trajectory or a log.

    A file with the default columns of every joint and without torque is a trajectory, to which the layout of the logs does
    not apply.
    """
    if layout is not None and not isinstance(path, LogSource) and Path(path).suffix.lower() in TEXT and Path(path).is_file():
        header = open_table(Path(path)).header
        wanted = {"t", *(f"q_{joint}" for joint in robot.joints)}
        if wanted <= set(header) and not any(name.startswith("tau_") for name in header):
            layout = None
    return as_motion(read_recording(path, robot, layout), robot, drive=drive)


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
        columns = _columns(source.joints, robot)
        time = np.linspace(0.0, source.duration, max(2, int(np.ceil(source.duration * 4 * FRAME_RATE)) + 1))
        return _clean("trajectory", time, source.evaluate(time)[0][:, columns])
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


def with_torque_error(
    motion: Motion, robot: Robot, ident: Identification, log: Recording | None, *, force: bool = False
) -> Motion:
    """Returns the motion of a log with the torque errors of a result on it, nan where they are unknown, such as at rest."""
    from ..pipeline.validate import torque_error

    if ident.model.robot.joints != robot.joints:
        got, expected = ", ".join(robot.joints), ", ".join(ident.model.robot.joints)
        raise ModelError("the result belongs to another robot", where=ident.model.robot.name, got=got, expected=expected)
    if log is None or not motion.measured:
        raise LogError(
            "the motion holds no efforts to compare with", where=motion.name, remedy="leave out --errors, or play a log"
        )
    time, error = torque_error(ident, log, force=force)
    place = np.clip(np.searchsorted(time, motion.time), 1, max(len(time) - 1, 1))
    near = np.minimum(np.abs(time[place] - motion.time), np.abs(motion.time - time[place - 1]))
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
    good = np.isfinite(time) & (np.abs(np.nan_to_num(position, nan=np.inf)) < _SENSIBLE).all(axis=1)
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
