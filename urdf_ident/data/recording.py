"""A log as it was read: named, in SI units, and otherwise untouched."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import check_shape
from ..samples import freeze_arrays

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
        position_target: Shape (N, n) [rad or m], the reference that the controller followed, on the side of ``position``, or
            None.
        motor_position, motor_velocity: Shape (N, n) of a second encoder, before the gear, or None.
        external_torque: Torque of known wrenches on the joints, shape (N, n) [N·m or N], once it is worked out, or None.
        wrenches: Frame name → (N, 6) measured external wrench [N, N·m], force first.
        path: Where it was read.
        sha256: Hash of the bytes read.
        rows: 1-based row of each sample in the file, shape (N,), so that findings can point at it.
        notes: What the reader chose or ignored, in words.
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
    motor_position: Array | None = None
    motor_velocity: Array | None = None
    external_torque: Array | None = None
    wrenches: Mapping[str, Array] = field(default_factory=dict)
    path: str = ""
    sha256: str = ""
    rows: NDArray[np.int64] | None = None
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        n = len(self.joints)
        check_shape("time", self.time.shape, ("N",))
        for name, array in self.signals():
            width = 6 if name.startswith("wrench") else n
            check_shape(name, array.shape, (len(self.time), width))
        freeze_arrays(self)

    def __len__(self) -> int:
        return len(self.time)

    @property
    def effort_is_torque(self) -> bool:
        """Whether nothing has to be known of the drives to read the effort: a torque or force, or none was logged."""
        return self.effort is None or self.effort_unit in ("N·m", "N")

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
