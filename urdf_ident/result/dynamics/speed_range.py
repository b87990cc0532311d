"""Error of the torque to be expected in motions faster than the logs, up to the URDF's velocity limits.

A model may predict its own logs and motions of their speed within a per cent, and be wrong by a half in motions ten times as
fast, whose inertia and friction the logs did not show. Motions like the logs' are scaled in time: velocities by s,
accelerations by s². Held-out logs of other motions are measurements of this error: up to their speed their error replaces the
expected one, and beyond it they count as data, about which only extrapolation is left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...estimation.uncertainty.prediction import HeldOutResidual, covered_speeds, unseen_friction
from ...linalg import Array, divisors, rms
from ..evidence.evidence import SPEEDS, Range, random_states
from ..record import Record
from .intervals import SIGMAS, parameter_errors


@dataclass(frozen=True, eq=False)
class HeldOutMotion:
    """A held-out log of another motion than the training logs'.

    Attributes:
        factor: Data factor ``[R | rho]``, whitened as that of the result, shape (k, p + 1).
        speed: 95 % quantile of |v|, shape (n,) [rad/s or m/s].
        seen: As :attr:`.HeldOutResidual.seen`.
        relative: RMS error of the exported model over RMS torque, shape (n,), a fraction.
    """

    factor: Array
    speed: Array
    seen: Array
    relative: Array


def errors_at_speeds(
    ident: Record, prediction: HeldOutResidual, trained: Range, tested: Sequence[HeldOutMotion] = ()
) -> dict[str, list[float]]:
    """Returns the relative error of each joint's torque to be expected at :data:`.evidence.SPEEDS`.

    Args:
        trained: Speeds and accelerations of the logs, from which all lower fractions of the velocity limits are raised.

    Returns:
        By joint: up to the speeds at which all joints moved in a tested motion, the largest error measured in such motions. At
        other speeds, the root of the mean over random feasible states of variance, squared bias and variance of friction that
        no log covers, over the RMS torque there.
    """
    robot = ident.model.robot
    seen = covered_speeds([prediction.seen, *(motion.seen for motion in tested)])
    known = replace(ident, factor=np.vstack([ident.factor, *(motion.factor for motion in tested)]))
    q, v, a = random_states(robot, trained)
    limit = robot.limit("velocity")
    limit = np.where(np.isfinite(limit), limit, 0.0)
    full = limit / np.maximum(trained.speed, 1e-9)
    reached = [float(np.min(motion.speed[limit > 0] / limit[limit > 0], initial=1.0)) for motion in tested]
    ranges = []
    for share in SPEEDS:
        if measured := [motion.relative for motion, most in zip(tested, reached, strict=True) if most >= share]:
            ranges.append(np.max(measured, axis=0))
            continue
        faster = np.maximum(share * full, 1.0)
        rows = ident.model.torque(np.eye(len(ident.theta)), q, faster * v, faster**2 * a)
        variance, bias = parameter_errors(known, rows, np.zeros(robot.n))
        unseen = unseen_friction(ident.model, ident.theta, seen, q, faster * v, faster**2 * a)
        square = variance + bias**2 + (unseen / SIGMAS) ** 2
        ranges.append(np.sqrt(np.mean(square, axis=0)) / divisors(rms(rows @ ident.theta, axis=0)))
    return dict(zip(robot.joints, np.transpose(ranges).tolist(), strict=True))
