"""What is known of a log: a :class:`Recording` as it was read, a :class:`Segment` as estimators see it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import check_shape

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Recording:
    """One log in SI units, columns in the order of ``joints``, otherwise untouched: rows may still be bad.

    Attributes:
        name: Short name of the log.
        joints: Joint names, in model order.
        time: Shape (N,) [s], as logged.
        position: Shape (N, n) [rad or m]; of the motors (before the gear) when ``position_side`` is "motor".
        velocity, acceleration: Shape (N, n), or None when not logged; same side as ``position``.
        effort: Shape (N, n) [N·m, N, A or V], or None; on ``effort_side``.
        effort_unit: SI unit of ``effort``.
        effort_target, torque_target: Shape (N, n), what a controller logged as its targets, or None.
        motor_position, motor_velocity: Shape (N, n) of a second encoder, before the gear, or None.
        wrenches: Frame name → (N, 6) measured external wrench [N, N·m], force first.
        path: Where it was read.
        sha256: Hash of the bytes read.
        rows: 1-based row of each sample in the file, shape (N,), so that findings can point at it.
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
    motor_position: Array | None = None
    motor_velocity: Array | None = None
    wrenches: Mapping[str, Array] = field(default_factory=dict)
    path: str = ""
    sha256: str = ""
    rows: NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        n = len(self.joints)
        check_shape("time", self.time.shape, ("N",))
        for name, array in self.signals():
            width = 6 if name.startswith("wrench") else n
            check_shape(name, array.shape, (len(self.time), width))
        _freeze(self)

    def __len__(self) -> int:
        return len(self.time)

    def signals(self) -> Iterator[tuple[str, Array]]:
        """The two-dimensional signals that are present.

        Yields:
            ``(name, array)``; wrenches are called ``wrench <frame>``.
        """
        for item in fields(self):
            value = getattr(self, item.name)
            if isinstance(value, np.ndarray) and value.ndim == 2:
                yield item.name, value
        for frame, value in self.wrenches.items():
            yield f"wrench {frame}", value

    def take(self, select: Any) -> Recording:
        """Some rows of the recording.

        Args:
            select: Slice, boolean mask (N,) or index array along time.

        Returns:
            A recording of those rows.
        """
        values: dict[str, Any] = {item.name: getattr(self, item.name) for item in fields(self)}
        for name, value in values.items():
            if isinstance(value, np.ndarray):
                values[name] = value[select]
        values["wrenches"] = {frame: value[select] for frame, value in self.wrenches.items()}
        return Recording(**values)


@dataclass(frozen=True, eq=False)
class Segment:
    """One whole continuous piece of motion at a constant rate, conditioned, on the joint side.

    Attributes:
        log: Name of the log it is from.
        start: Time of the first sample on the log's clock [s].
        rate: Samples per second [Hz].
        q, v, a: Shape (N, n) [rad, rad/s, rad/s² or m, m/s, m/s²], zero-phase filtered.
        tau: Shape (N, n) [N·m or N], measured joint torque with drive gains applied and known wrenches
            subtracted; *not* filtered: the row producer filters it together with the regressor. None for
            motions without a measurement.
        qm, vm, am: Motor side after the gear, shape (N, n), or None.
        reference_torque: Frozen rigid torque for load-dependent terms, shape (N, n) [N·m or N], or None.
        twin: The same motion without noise (simulated), for instruments, or None.
    """

    log: str
    start: float
    rate: float
    q: Array
    v: Array
    a: Array
    tau: Array | None = None
    qm: Array | None = None
    vm: Array | None = None
    am: Array | None = None
    reference_torque: Array | None = None
    twin: Segment | None = None

    def __post_init__(self) -> None:
        check_shape("q", self.q.shape, ("N", "n"))
        for name in ("v", "a", "tau", "qm", "vm", "am", "reference_torque"):
            value = getattr(self, name)
            if value is not None:
                check_shape(name, value.shape, self.q.shape)
        _freeze(self)

    def __len__(self) -> int:
        return len(self.q)

    @property
    def time(self) -> Array:
        """Shape (N,) [s], on the log's clock."""
        return self.start + np.arange(len(self)) / self.rate

    def slice(self, begin: int, end: int) -> Segment:
        """Samples ``begin`` to ``end`` (exclusive).

        Args:
            begin: First sample.
            end: One past the last sample.

        Returns:
            The piece, sharing memory.
        """
        values: dict[str, Any] = {item.name: getattr(self, item.name) for item in fields(self)}
        for name, value in values.items():
            if isinstance(value, np.ndarray):
                values[name] = value[begin:end]
        values["start"] = self.start + begin / self.rate
        if self.twin is not None:
            values["twin"] = self.twin.slice(begin, end)
        return Segment(**values)


def _freeze(item: Any) -> None:
    """Makes the arrays of a frozen dataclass read-only (views, so that the caller's stay writable)."""
    for entry in fields(item):
        value = getattr(item, entry.name)
        if isinstance(value, np.ndarray):
            view = value.view()
            view.setflags(write=False)
            object.__setattr__(item, entry.name, view)
