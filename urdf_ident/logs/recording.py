"""A log as read: named, in SI units and otherwise unchanged."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..errors import LogError, check_shape
from ..linalg import Array, IntArray
from ..model.robot import Robot
from ..samples import freeze_arrays
from ..units import parse_unit
from .columns.layout import LogLayout

#: Upper bound of a robot's positions, velocities and efforts in SI units: larger numbers are no measurements.
IMPOSSIBLE = 1e7
#: Share of a log's samples that another log must hold for it to be an excerpt.
_SHARED = 0.5


@dataclass(frozen=True, eq=False)
class Recording:
    """One log in SI units, with columns in the order of ``joints``; otherwise unchanged, so it may contain invalid rows.

    Attributes:
        name: Short name of the log.
        joints: Joint names, in model order.
        time: Shape (N,) [s], as logged.
        position: Shape (N, n) [rad or m]; of the motors (before the gear) when ``position_side`` is "motor".
        velocity, acceleration: Shape (N, n), or None when not logged; same side as ``position``.
        effort: Shape (N, n) [N·m, N, A, V or 1], or None; on ``effort_side``.
        effort_unit: SI unit of ``effort``.
        effort_target, torque_target: Targets logged by the controller, shape (N, n), or None.
        position_target: Reference position of the controller, shape (N, n) [rad or m], on the side of ``position``, or
            None.
        temperature: Shape (N, n), one per joint or one of the robot repeated for all joints [K or °C], or None.
        motor_position, motor_velocity: Shape (N, n), from a second encoder before the gear, or None.
        external_torque: Joint torques of the known wrenches, shape (N, n) [N·m or N], once computed, or None.
        wrenches: Frame name → (N, 6) measured external wrench [N, N·m], force first.
        locked: Locked joint → least and largest position logged [rad or m], without outliers; only joints that were logged.
        path: Path of the log.
        sha256: Hash of the bytes read.
        rows: 1-based row of each sample in the file, shape (N,), for the messages of findings.
        notes: Choices and omissions of the reader, as text.
    """

    name: str
    joints: tuple[str, ...]
    time: Array
    position: Array
    velocity: Array | None = None
    acceleration: Array | None = None
    effort: Array | None = None
    effort_unit: str = "N·m"
    position_side: str = "joint"
    effort_side: str = "joint"
    effort_target: Array | None = None
    torque_target: Array | None = None
    position_target: Array | None = None
    temperature: Array | None = None
    motor_position: Array | None = None
    motor_velocity: Array | None = None
    external_torque: Array | None = None
    wrenches: Mapping[str, Array] = field(default_factory=dict)
    locked: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    path: str = ""
    sha256: str = ""
    rows: IntArray | None = None
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        n = len(self.joints)
        check_shape("time", self.time.shape, ("N",))
        for name, array in self.signals():
            check_shape(name, array.shape, (len(self.time), (6 if name.startswith("wrench") else n)))
        freeze_arrays(self)

    def __repr__(self) -> str:
        seconds = float(self.time[-1] - self.time[0]) if len(self) else 0.0
        held = ", ".join(name for name, _ in self.signals())
        return f"<Recording {self.name}: {len(self)} rows, {seconds:.3g} s, {len(self.joints)} joints; {held}>"

    def __len__(self) -> int:
        return len(self.time)

    @property
    def where(self) -> str:
        """Its file, or its name if it has none, for messages."""
        return self.path or self.name

    @property
    def effort_is_torque(self) -> bool:
        """Whether the effort is a torque or force (or absent), so that no drive gain is needed."""
        return self.effort is None or self.effort_unit in ("N·m", "N")

    @classmethod
    def from_arrays(
        cls,
        time: ArrayLike,
        position: ArrayLike,
        effort: ArrayLike | None = None,
        *,
        joints: Robot | Sequence[str],
        velocity: ArrayLike | None = None,
        acceleration: ArrayLike | None = None,
        effort_unit: str = "N·m",
        name: str = "log",
    ) -> Recording:
        """Creates a recording from arrays.

        Args:
            time: Shape (N,) [s].
            position: Shape (N, n) [rad or m].
            effort: Shape (N, n), in ``effort_unit``, or None.
            joints: Names of the n joints in the order of the columns, or a robot whose ``joints`` are used.
            velocity: Shape (N, n) [rad/s or m/s], or None.
            acceleration: Shape (N, n) [rad/s² or m/s²], or None.
            effort_unit: Unit of the effort: N·m, N, A, V, 1, or a multiple of these.
            name: Name of the log.

        Returns:
            The recording; the arrays are copied.

        Raises:
            ShapeError: An array has another shape.
            UnitError: The unit is unknown or not a unit of effort.
        """
        names = tuple(joints.joints) if isinstance(joints, Robot) else tuple(joints)
        unit = parse_unit(effort_unit, "effort")
        clock = np.array(time, dtype=float)
        check_shape("time", clock.shape, ("N",))
        given = {"position": position, "velocity": velocity, "acceleration": acceleration, "effort": effort}
        arrays: dict[str, Any] = {key: np.array(value, dtype=float) for key, value in given.items() if value is not None}
        for key, array in arrays.items():
            check_shape(key, array.shape, (len(clock), len(names)))
        if effort is not None:
            arrays["effort"] *= unit.factor
        digest = hashlib.sha256(b"".join(np.ascontiguousarray(array).tobytes() for array in (clock, *arrays.values())))
        return cls(
            name, names, clock, **arrays, effort_unit=unit.si, sha256=digest.hexdigest(), rows=np.arange(1, len(clock) + 1)
        )

    @classmethod
    def from_frame(cls, frame: Any, robot: Robot, *, layout: LogLayout | None = None, name: str = "log") -> Recording:
        """Creates a recording from a data frame with the header names of log files (``t``, ``q_<joint>``, ``tau_<joint>`` …).

        Args:
            frame: A pandas, polars or pyarrow table, or a mapping of column names to arrays of shape (N,).
            robot: The robot that moved.
            layout: Columns, units and sides that differ from the default.
            name: Name of the log.

        Returns:
            The recording, columns in the order of the robot's joints.

        Raises:
            LogError: The columns do not fit the robot.
            UnitError: A unit is unknown or measures something else.
        """
        from .columns.fields import recording_fields
        from .columns.layout import NAMES
        from .formats.variables import table_of_frame

        table = table_of_frame(frame, name)
        values = recording_fields([(table, list(NAMES))], robot, layout or LogLayout(), name)
        return cls(**values, sha256=table.values_hash())

    def ordered(self, robot: Robot) -> Recording:
        """The same log with its columns in the order of a robot's joints.

        Args:
            robot: The robot.

        Returns:
            The recording; the object itself if the order is already right.

        Raises:
            LogError: Its joints are not those of the robot.
        """
        if self.joints == robot.joints:
            return self
        if sorted(self.joints) != sorted(robot.joints):
            raise LogError(
                "the log's joints are not the robot's",
                where=self.where,
                got=", ".join(self.joints),
                expected=", ".join(robot.joints),
                remedy="rename them, or lock those that were not logged",
            )
        place = [self.joints.index(joint) for joint in robot.joints]
        changes: dict[str, Any] = {key: value[:, place] for key, value in self.signals() if not key.startswith("wrench ")}
        return replace(self, joints=robot.joints, **changes)

    def signals(self) -> Iterator[tuple[str, Array]]:
        """The two-dimensional signals that are present.

        Yields:
            ``(name, array)``; wrenches are called ``wrench <frame>``.
        """
        for attribute in fields(self):
            value = getattr(self, attribute.name)
            if isinstance(value, np.ndarray) and value.ndim == 2:
                yield attribute.name, value
        for frame, value in self.wrenches.items():
            yield f"wrench {frame}", value

    def with_signals(self, changes: Mapping[str, Array | None]) -> Recording:
        """The log with other signals.

        Args:
            changes: Name of a signal, as of :meth:`signals` → its values; None if it is no longer to be used.
        """
        wrenches = {frame: changes.get(f"wrench {frame}", values) for frame, values in self.wrenches.items()}
        known = {frame: values for frame, values in wrenches.items() if values is not None}
        others: dict[str, Any] = {name: values for name, values in changes.items() if not name.startswith("wrench ")}
        return replace(self, wrenches=known, **others)

    def take(self, select: Any) -> Recording:
        """Selects rows of the recording.

        Args:
            select: Slice, boolean mask (N,) or index array along time.
        """
        values: dict[str, Any] = {attribute.name: getattr(self, attribute.name) for attribute in fields(self)}
        for name, value in values.items():
            if isinstance(value, np.ndarray):
                values[name] = value[select]
        values["wrenches"] = {frame: value[select] for frame, value in self.wrenches.items()}
        return Recording(**values)


def excerpts(logs: Sequence[Recording], others: Sequence[Recording]) -> dict[str, str]:
    """Finds logs of which at least half the samples are in another one, equal in every digit: log → the other log."""
    known = {other.name: _marks(other) for other in others} if logs else {}
    excerpt_of = {}
    for log in logs:
        samples = _marks(log)
        shares = {name: float(np.isin(samples, other_samples).mean()) for name, other_samples in known.items() if len(samples)}
        nearest = max(shares, key=lambda name: shares[name], default=None)
        if nearest is not None and shares[nearest] >= _SHARED:
            excerpt_of[log.name] = nearest
    return excerpt_of


def _marks(log: Recording) -> Array:
    """One number for all positions and efforts of each sample, without repetitions; different samples have different ones."""
    marks = np.zeros(len(log))
    for k, x in enumerate([*log.position.T, *(() if log.effort is None else log.effort.T)], start=2):
        marks += np.sqrt(k) * x
    return np.unique(marks[np.isfinite(marks)])
