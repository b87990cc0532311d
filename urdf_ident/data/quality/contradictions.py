"""Do torques contradict physics: reversed signs, swapped columns, gravity from another side.

Each joint's torque is fitted by its own row of the equations of motion with free parameters, which needs no faith in the
URDF's inertias. What no parameters can explain, or only impossible ones, is a mistake in the log or in its description.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ...linalg import Array
from ...model.engine.pinocchio import regressor
from ...model.prior import lumped_inertials
from ...model.robot import Robot
from ...samples import Segment
from ..conditioning.filters import lowpass
from .findings import Finding

#: Samples looked at, at most, and the fewest a parameter that make a fit mean anything.
_SAMPLES, _SAMPLES_PER_COLUMN = 800, 3
#: Unexplained part of a torque below which it counts as explained.
_WELL = 0.3
#: How much better gravity from elsewhere must explain the torques, as a ratio of unexplained parts; and another order of
#: the joints, as the mean logarithm of that ratio.
_BETTER, _EXCHANGED = 0.5, 1.0
#: How many standard errors below zero a friction or an inertia must be; errors of neighbouring samples are alike.
_SIGNIFICANT = 15.0
#: Torques explained to this part leave nothing to explain better.
_EXACT = 1e-3
#: Correlation with the URDF's gravity torque that counts as the opposite, and as agreement.
_OPPOSITE, _AGREES = -0.8, 0.9
#: Of the samples, every so manieth is a pose at which gravity and inertia are looked at.
_THIN = 4
_SIGN_WIDTH, _RELATIVE_RANK = 0.02, 1e-9
_SIDES = np.vstack([np.eye(3), -np.eye(3)])


@dataclass(frozen=True, eq=False)
class _Motion:
    """Samples of a log: q, v, a, tau of shape (N, n), and which joints move."""

    q: Array
    v: Array
    a: Array
    tau: Array
    moves: NDArray[np.bool_]

    def thinned(self, step: int) -> tuple[Array, Array]:
        """Positions, and zeros of their shape."""
        return self.q[::step], np.zeros_like(self.q[::step])


@dataclass(frozen=True, eq=False)
class _Fits:
    """What own rows leave of the torques, and what parameters they ask for.

    Attributes:
        unexplained: Part of torque k that joint i's row cannot explain, shape (n, n).
        reversed: Joints whose friction or inertia would have to be negative.
        gravity: How alike the fitted gravity torque and the URDF's are over all joints, −1 to 1; 0 if there is none.
    """

    unexplained: Array
    reversed: NDArray[np.bool_]
    gravity: float

    def mean(self, moves: NDArray[np.bool_]) -> float:
        """Unexplained part of the joints' own torques, root mean square."""
        return float(np.sqrt(np.mean(np.diag(self.unexplained)[moves] ** 2)))


def contradictions(robot: Robot, segments: Sequence[Segment], cutoff: float) -> tuple[Finding, ...]:
    """Looks for torques that contradict physics.

    Args:
        robot: Kinematics and gravity; its inertias do not matter.
        segments: Conditioned motion with measured torque.
        cutoff: Low-pass of the positions, for the torque [Hz].

    Returns:
        Warnings with their remedies; none where the motion is too short to tell.
    """
    parts = [part for part in segments if part.tau is not None and len(part) > 20]
    if not parts:
        return ()
    step = max(1, sum(len(part) for part in parts) // _SAMPLES)
    q, v, a = (np.vstack([getattr(part, name)[::step] for part in parts]) for name in ("q", "v", "a"))
    tau = np.vstack([_torque(part, cutoff)[::step] for part in parts])
    if len(q) < _SAMPLES_PER_COLUMN * (10 * robot.n + 4):
        return ()
    motion = _Motion(q, v, a, tau, (np.ptp(q, axis=0) > 0.02) & (np.ptp(tau, axis=0) > 0))  # no torque tells nothing
    if not motion.moves.any():
        return ()
    fits = _fit(robot, motion)
    return tuple(_swapped(robot, fits, motion.moves) or _reversed(robot, fits) or _gravity(robot, fits, motion))


def _torque(part: Segment, cutoff: float) -> Array:
    tau = part.tau if part.external is None else part.tau + part.external  # type: ignore[operator]
    return lowpass(np.asarray(tau), part.rate, cutoff)


def _fit(robot: Robot, motion: _Motion) -> _Fits:
    n, v, tau = robot.n, motion.v, motion.tau
    inertial = regressor(robot, motion.q, v, motion.a)
    pose, still = motion.thinned(_THIN)
    weight = regressor(robot, pose, still, still)
    stated = _centred(weight @ lumped_inertials(robot).ravel())
    fitted = np.zeros_like(stated)
    size = np.maximum(np.linalg.norm(tau - tau.mean(axis=0), axis=0), 1e-300)
    unexplained, turned = np.ones((n, n)), np.zeros(n, dtype=bool)
    for i in map(int, np.flatnonzero(motion.moves)):
        own = _OwnRow(np.column_stack([inertial[:, i], _joint_columns(motion, i)]), tau, i)
        unexplained[i] = own.unexplained / size
        fitted[:, i] = weight[:, i] @ own.theta[: 10 * n]
        pushed = np.zeros_like(pose)
        pushed[:, i] = 1.0
        inertia = (regressor(robot, pose, still, pushed)[:, i] - weight[:, i]).mean(axis=0)
        speed = float(np.median(np.abs(v[:, i])))
        drag = np.concatenate([np.zeros(10 * n), [0.0, speed, float(np.tanh(speed / _SIGN_WIDTH)), 0.0]])
        mass = np.concatenate([inertia, [1.0, 0.0, 0.0, 0.0]])
        negative = own.errors(drag) < -_SIGNIFICANT or own.errors(mass) < -_SIGNIFICANT
        turned[i] = unexplained[i, i] < _WELL and negative and own.errors(drag) < _SIGNIFICANT
    seen, length = _centred(fitted), float(np.linalg.norm(stated))
    heavy = length > 1e-6 * float(size.max())
    alike = float(np.sum(seen * stated)) / (max(float(np.linalg.norm(seen)), 1e-300) * length) if heavy else 0.0
    return _Fits(unexplained, turned, alike)


def _centred(torque: Array) -> Array:
    """Without the mean, which the offset of a drive hides."""
    return np.asarray(torque - torque.mean(axis=0))


def _joint_columns(motion: _Motion, i: int) -> Array:
    """Rotor, viscous and Coulomb friction, offset of one joint."""
    v = motion.v[:, i]
    return np.column_stack([motion.a[:, i], v, np.tanh(v / _SIGN_WIDTH), np.ones(len(v))])


class _OwnRow:
    """All joints' torques fitted by the row of joint i; parameters those of its own torque."""

    def __init__(self, columns: Array, tau: Array, i: int) -> None:
        rows, width = columns.shape
        scale = np.linalg.norm(columns, axis=0)
        scale[scale < 1e-12 * scale.max()] = np.inf  # never acts on this joint
        R = np.asarray(np.linalg.qr(np.column_stack([columns / scale, tau]), mode="r"))
        U, s, Vt = np.linalg.svd(R[:width, :width])
        rank = int((s > _RELATIVE_RANK * s[0]).sum())
        seen = U.T @ R[:width, width:]
        self.unexplained = np.sqrt(np.sum(seen[rank:] ** 2, axis=0) + np.sum(R[width:, width:] ** 2, axis=0))
        self._root = Vt[:rank].T / s[:rank] / scale[:, None]
        self.theta = self._root @ seen[:rank, i]
        self._spread = float(self.unexplained[i]) / np.sqrt(max(rows - rank, 1))

    def errors(self, combination: Array) -> float:
        """A linear combination of the parameters, shape (p,), over its standard error."""
        error = self._spread * float(np.linalg.norm(combination @ self._root))
        return float(combination @ self.theta) / error if error > 0 else 0.0


def _swapped(robot: Robot, fits: _Fits, moves: NDArray[np.bool_]) -> list[Finding]:
    """Whether the efforts fit much better in another order."""
    from scipy.optimize import linear_sum_assignment

    joints = np.flatnonzero(moves)
    misfit = np.log(np.maximum(fits.unexplained[np.ix_(joints, joints)], _EXACT))
    rows, columns = linear_sum_assignment(misfit)
    wrong = np.flatnonzero(rows != columns)
    own, other = np.diag(misfit)[wrong], misfit[wrong, columns[wrong]]
    if not len(wrong) or np.mean(own - other) < _EXCHANGED or other.max() > np.log(_WELL) or (other > own + np.log(1.5)).any():
        return []
    names = [robot.joints[j] for j in joints]
    pairs = ", ".join(f"what is logged for {names[columns[i]]} fits {names[i]}" for i in wrong)
    return [Finding(
        "joints-exchanged", "warning", None, None,
        f"efforts look exchanged: {pairs}; in this order {100 * np.exp(other).mean():.2g} % of them stay unexplained, not "
        f"{100 * np.exp(own).mean():.2g} %",
        "correct the order of the effort columns (their names, or log.columns.effort)",
    )]  # fmt: skip


def _reversed(robot: Robot, fits: _Fits) -> list[Finding]:
    """One finding a joint; where all joints that can tell agree, one for all."""
    names = [robot.joints[i] for i in np.flatnonzero(fits.reversed)]
    if not names:
        return []
    whose = "all joints" if len(names) == robot.n else ", ".join(names)
    return [Finding(
        "effort-sign", "warning", names[0] if len(names) == 1 else None, None,
        f"the effort of {whose} has the wrong sign: friction or inertia would have to be negative",
        "reverse it by a negative drive.gain, or correct the sign of the position",
    )]  # fmt: skip


def _gravity(robot: Robot, fits: _Fits, motion: _Motion) -> list[Finding]:
    """Whether gravity comes from another side: it explains the torques much better, or makes them the URDF's."""
    now, gravity = fits.mean(motion.moves), np.asarray(robot.model.gravity.linear)
    size = float(np.linalg.norm(gravity))
    if now < _EXACT or size == 0.0 or fits.gravity > _AGREES:
        return []
    sides = [side for side in _SIDES if float(side @ gravity) < 0.99 * size]
    others = [_fit(_hung(robot, size * side), motion) for side in sides]
    scores = [other.mean(motion.moves) for other in others]
    best = int(np.argmin(scores))
    if scores[best] < min(_BETTER * now, _WELL):
        side = sides[best]
        why = f"leaves {100 * scores[best]:.2g} % of the efforts unexplained, the present one {100 * now:.2g} %"
    elif fits.gravity < _OPPOSITE and now < _WELL:
        side, why = -gravity / size, "is what the efforts work against, if the URDF's centres of mass are about right"
    else:
        return []
    vector = ", ".join(f"{value:.4g}" for value in size * side + 0.0)
    return [Finding(
        "gravity-direction", "warning", None, None, f"gravity along [{vector}] in the base frame {why}",
        f"if the robot is mounted so, say it in the project file: `robot: {{gravity: [{vector}]}}`",
    )]  # fmt: skip


def _hung(robot: Robot, gravity: Array) -> Robot:
    model = robot.model.copy()
    model.gravity.linear = gravity
    return replace(robot, model=model)
