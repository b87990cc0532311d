"""Tests logs against physics: signs, orders, zeros, clocks, gravity, faults of signals and changes of the robot.

In two steps: :mod:`.explanations` searches, and :mod:`.reporting` states what was found. The URDF's inertias are not used, with
two stated exceptions: the sign of gravity, and the scale of the torques if the motion is too slow to determine it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..judgements.judgement import Judgement
from ..linalg import Array
from ..model.robot import Robot
from ..samples import SHORT
from .explanations import Explanations, explained
from .log_group import LogGroup
from .oscillation import Oscillation, oscillation
from .reporting import findings
from .thinned_logs import Logs
from .trials import Trials
from .wording import too_short_to_tell


def physics_findings(
    robot: Robot,
    logs: Logs,
    reduction: Array | None = None,
) -> list[tuple[Judgement, ...]]:
    """Searches for interpretations of the logs that explain their torques decisively better, and for faults and changes.

    With less than :data:`.samples.SHORT` seconds of motion in all logs together, the parameters of one robot fit almost any
    torque: causes found there are reported as undecided, and faults and changes over time are not searched for.

    Args:
        robot: Kinematics and gravity; its inertias are not used.
        logs: Conditioned motion with measured torque of each log, and the cut-off of its positions [Hz].
        reduction: Motor rates per joint rates, shape (n, n), or None if every motor drives one joint.

    Returns:
        Findings of each log; none if the motion is too short.
    """
    group = LogGroup(robot, logs, reduction)
    usable = [k for k in range(len(logs)) if group.some([k]).case() is not None]
    brief, compared = group.seconds < SHORT, usable
    out: list[list[Judgement]] = [[] for _ in logs]
    while compared:  # a log that differs is reported, and the others are compared again
        found = explained(group.some(compared))
        if found is None:
            break
        if not brief and compared == usable and (wave := _oscillation(found)) is not None:
            others = physics_findings(robot, wave.removed(found.group.logs), reduction)
            for k, own, other in zip(compared, wave.findings(robot), others, strict=True):
                named = {(item.id, item.joint) for item in own}
                out[k] = [*own, *(item for item in other if (item.id, item.joint) not in named)]
            break
        for k, own in zip(compared, findings(found), strict=True):
            out[k] += own
        if len(found.differing) != 1:
            break
        compared = [k for at, k in enumerate(compared) if at not in found.differing]
    return [tuple(map(too_short_to_tell, own)) if brief else tuple(own) for own in out]


def _oscillation(found: Explanations) -> Oscillation | None:
    """An oscillation of one effort, if there is one and the interpretation or faults do not explain more.

    Far above the cut-off of the positions rounding errors of filtered efforts may look like a wave. The efforts do not contain
    it: without it they would be larger.
    """
    group = found.group
    wave = oscillation(found.at, len(group.logs))
    if wave is None:
        return None
    without = wave.removed(group.logs)
    if _square(without, wave.joint) > _square(group.logs, wave.joint):
        return None
    case = replace(group, logs=without).case()
    most = max([*(step.gain for step in found.steps[:1]), *(fault.gain for fault in found.faults)], default=0.0)
    return wave if case is not None and found.trials.as_logged.gains(Trials(case).as_logged).mean() > most else None


def _square(logs: Logs, joint: int) -> float:
    """Sum of the squares of a joint's efforts."""
    return sum(float(np.sum(part.tau[:, joint] ** 2)) for parts, _ in logs for part in parts if part.tau is not None)
