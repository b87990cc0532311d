"""Joint states in the messages of a bag, recognised by the fields of a message and not by its type name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

#: Known interfaces of a DynamicJointState, and fields of Franka's robot state → column prefix.
_INTERFACES = {"position": "q", "velocity": "v", "acceleration": "a", "effort": "tau", "torque": "tau"}
_FRANKA = {"q": "q", "dq": "v", "tau_J": "tau", "q_d": "position_target"}


@dataclass(frozen=True)
class Sample:
    """One message.

    Attributes:
        stamp: Time of its header [ns], 0 if it has none.
        names: Joint names; numbers as text for a robot state, ``unnamed_1`` and so on where they are missing.
        values: Column prefix (``q``, ``v``, ``tau`` …) → one number per joint.
        frame: Frame of its header.
    """

    stamp: int
    names: tuple[str, ...]
    values: Mapping[str, Sequence[float]]
    frame: str = ""

    @property
    def form(self) -> tuple[object, ...]:
        """Frame, order of names and quantities, which a publisher does not change from message to message."""
        return self.frame, self.names, tuple(self.values)


def sample_of(message: Any) -> Sample | None:
    """Extracts the joint states of a message; None if it contains no joint positions.

    Supported are ``sensor_msgs/JointState``, controller states (``joint_names`` with ``actual`` or ``feedback``),
    ``control_msgs/DynamicJointState`` and Franka's robot state (``q``, ``dq``, ``tau_J``).
    """
    header = getattr(message, "header", None)
    time = getattr(header, "stamp", None)
    stamp = 0 if time is None else int(time.sec) * 1_000_000_000 + int(time.nanosec)
    # names and values of each kind of message whose fields this one has
    candidates: list[tuple[tuple[str, ...], dict[str, Sequence[float]]]] = []

    def has(*fields: str) -> bool:
        return all(hasattr(message, field) for field in fields)

    if has("name", "position", "velocity", "effort"):
        names = tuple(message.name) or tuple(f"unnamed_{k + 1}" for k in range(len(message.position)))
        candidates.append((names, {"q": message.position, "v": message.velocity, "tau": message.effort}))
    point: Any = getattr(message, "feedback", None) or getattr(message, "actual", None)
    if has("joint_names") and hasattr(point, "positions"):
        values = {"q": point.positions, "v": point.velocities, "a": point.accelerations, "tau": point.effort}
        target: Any = getattr(message, "reference", None) or getattr(message, "desired", None)
        if hasattr(target, "positions"):
            values["position_target"] = target.positions
        candidates.append((tuple(message.joint_names), values))
    if has("joint_names", "interface_values") and len(message.interface_values) == len(message.joint_names):
        signals = {
            name: {
                _INTERFACES[key]: float(value)
                for key, value in zip(interface.interface_names, interface.values, strict=False)
                if key in _INTERFACES
            }
            for name, interface in zip(message.joint_names, message.interface_values, strict=True)
        }
        signals = {name: values for name, values in signals.items() if "q" in values}
        common = set.intersection(*map(set, signals.values())) if signals else set()
        candidates.append((tuple(signals), {key: [values[key] for values in signals.values()] for key in common}))
    if has("q", "dq", "tau_J"):
        values = {prefix: getattr(message, field) for field, prefix in _FRANKA.items() if hasattr(message, field)}
        candidates.append((tuple(str(k + 1) for k in range(len(message.q))), values))
    for names, values in candidates:
        if len(values.get("q", ())) == len(names) > 0:
            whole = {key: value for key, value in values.items() if len(value) == len(names)}
            return Sample(stamp, names, whole, str(getattr(header, "frame_id", "")))
    return None
