"""Logs that carry a known payload: its torque is known, so it is taken off like that of any other known wrench."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..model.payload import Payload
from ..model.robot import Robot
from .prepare import PreparedLog


def carrying(payload: Payload | None, robot: Robot, log: PreparedLog) -> PreparedLog:
    """A log with the torque of the payload that it carries; others stay as they are.

    Args:
        payload: The payload, or None.

    Returns:
        The log; what moves the payload is taken off the measured torque.
    """
    if payload is None or not payload.on(log.name):
        return log
    return replace(log, conditioned=replace(log.conditioned, segments=payload.taken_off(robot, log.name, log.segments)))


def unused(payload: Payload | None, logs: Sequence[PreparedLog]) -> tuple[str, ...]:
    """What to say of a payload that no log carries: a name that is misspelt would go unnoticed.

    Args:
        payload: The payload, or None.
        logs: The logs to learn from.

    Returns:
        One sentence, or none.
    """
    if payload is None or any(payload.on(log.name) for log in logs):
        return ()
    names = ", ".join(log.name for log in logs)
    return (f"no log to learn from carries the payload: drive.payload.logs is {', '.join(payload.logs)}, the logs are {names}",)
