"""Error of the torque to be expected in motions faster than the logs, up to the URDF's velocity limits.

A model may predict its own logs and motions of their speed within a per cent, and be wrong by a half in motions ten times as
fast, whose inertia and friction the logs did not show. Motions like the logs' are scaled in time: velocities by s,
accelerations by s².
"""

from __future__ import annotations

import numpy as np

from ...estimation.uncertainty.prediction import HeldOutResidual
from ...estimation.uncertainty.uncovered_friction import unseen_friction
from ...linalg import divisors, rms
from ..evidence.evidence import SPEEDS, Range, random_states
from ..record import Record
from .intervals import SIGMAS, parameter_errors


def errors_at_speeds(ident: Record, trained: Range) -> dict[str, list[float]]:
    """Returns the relative error of each joint's torque to be expected at :data:`.evidence.SPEEDS`.

    Args:
        ident: A result with held-out residuals, without elastic joints.
        trained: Speeds and accelerations of the logs, from which all lower fractions of the velocity limits are raised.

    Returns:
        By joint, the root of the mean over random feasible states of variance, squared bias and variance of friction that the
        logs do not cover, over the RMS torque there.
    """
    robot, seen = ident.model.robot, HeldOutResidual.from_dict(ident.prediction).seen
    q, v, a = random_states(robot, trained)
    limit = robot.limit("velocity")
    full = np.where(np.isfinite(limit), limit, 0.0) / np.maximum(trained.speed, 1e-9)
    found = []
    for share in SPEEDS:
        faster = np.maximum(share * full, 1.0)
        rows = ident.model.torque(np.eye(len(ident.theta)), q, faster * v, faster**2 * a)
        variance, bias = parameter_errors(ident, rows, np.zeros(robot.n))
        square = variance + bias**2
        if seen is not None:
            square += (unseen_friction(ident.model, ident.theta, seen, q, faster * v, faster**2 * a) / SIGMAS) ** 2
        found.append(np.sqrt(np.mean(square, axis=0)) / divisors(rms(rows @ ident.theta, axis=0)))
    return dict(zip(robot.joints, np.transpose(found).tolist(), strict=True))
