"""Joint states in the messages of a bag, recognised by the fields of a message and not by its type name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

#: Known interfaces of a DynamicJointState → column prefix.
_INTERFACES = {"position": "q", "velocity": "v", "acceleration": "a", "effort": "tau", "torque": "tau"}
_FRANKA = {"q": "q", "dq": "v", "tau_J": "tau", "q_d": "position_target"}


@dataclass
class Sample:
    """One message.

    Attributes:
        stamp: Time of its header [ns], 0 if it has none.
        names: Joint names; numbers as text for a robot state, ``unnamed_1`` and so on where they are missing.
        values: Column prefix (``q``, ``v``, ``tau`` …) → one number per joint.
        frame: Frame of its header.
        named: Whether the message holds the names.
    """

    stamp: int
    names: tuple[str, ...]
    values: dict[str, Sequence[float]] = field(default_factory=dict)
    frame: str = ""
    named: bool = True

    @property
    def form(self) -> tuple[object, ...]:
        """Frame, order of names and quantities, which a publisher does not change from message to message."""
        return self.frame, self.names, tuple(self.values)


def sample_of(message: Any) -> Sample | None:
    """Extracts the joint states of a message.

    Supported are ``sensor_msgs/JointState``, controller states (``joint_names`` with ``actual`` or ``feedback``),
    ``control_msgs/DynamicJointState`` and Franka's robot state (``q``, ``dq``, ``tau_J``).

    Returns:
        The sample; None if the message contains no joint positions.
    """
    header = getattr(message, "header", None)
    time = getattr(header, "stamp", None)
    stamp = 0 if time is None else int(time.sec) * 1_000_000_000 + int(time.nanosec)
    for reader in (_joint_state, _controller_state, _dynamic_state, _franka_state):
        sample = reader(message, stamp)
        if sample is not None and len(sample.values.get("q", ())) == len(sample.names) > 0:
            values = {key: value for key, value in sample.values.items() if len(value) == len(sample.names)}
            return Sample(stamp, sample.names, values, str(getattr(header, "frame_id", "")), sample.named)
    return None


def _joint_state(message: Any, stamp: int) -> Sample | None:
    if not all(hasattr(message, name) for name in ("name", "position", "velocity", "effort")):
        return None
    names = tuple(message.name) or tuple(f"unnamed_{k + 1}" for k in range(len(message.position)))
    values = {"q": message.position, "v": message.velocity, "tau": message.effort}
    return Sample(stamp, names, values, named=len(message.name) > 0)


def _controller_state(message: Any, stamp: int) -> Sample | None:
    point: Any = getattr(message, "feedback", None) or getattr(message, "actual", None)
    if not hasattr(message, "joint_names") or not hasattr(point, "positions"):
        return None
    values = {"q": point.positions, "v": point.velocities, "a": point.accelerations, "tau": point.effort}
    target: Any = getattr(message, "reference", None) or getattr(message, "desired", None)
    if hasattr(target, "positions"):
        values["position_target"] = target.positions
    return Sample(stamp, tuple(message.joint_names), values)


def _dynamic_state(message: Any, stamp: int) -> Sample | None:
    interfaces = getattr(message, "interface_values", None)
    if not hasattr(message, "joint_names") or interfaces is None or len(interfaces) != len(message.joint_names):
        return None
    names, values = [], []
    for name, interface in zip(message.joint_names, interfaces, strict=True):
        signals = {
            _INTERFACES[key]: float(value)
            for key, value in zip(interface.interface_names, interface.values, strict=False)
            if key in _INTERFACES
        }
        if "q" in signals:
            names.append(name)
            values.append(signals)
    keys = set.intersection(*(set(signals) for signals in values)) if values else set()
    return Sample(stamp, tuple(names), {key: [signals[key] for signals in values] for key in keys})


def _franka_state(message: Any, stamp: int) -> Sample | None:
    if not all(hasattr(message, name) for name in ("q", "dq", "tau_J")):
        return None
    names = tuple(str(k + 1) for k in range(len(message.q)))
    return Sample(stamp, names, {prefix: getattr(message, key) for key, prefix in _FRANKA.items() if hasattr(message, key)})
