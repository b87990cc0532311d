"""How fine a closed loop must be integrated: its fastest pole decides, not the log's rate.

Gains are tuned for the largest inertia of each axis. In poses where an axis is light (parallel wrist axes share one small
inertia) the same damping gain makes the loop as fast as ``lambda = max eig(M^-1 Kd)``; a Runge-Kutta step of order four is
only stable up to ``2.78 / lambda``, however well the controller is damped.
"""

from __future__ import annotations

import math

import numpy as np

from ..errors import SimulationError
from ..linalg import Array
from ..motion.base import Trajectory
from .controllers import PD, Controller, Standing
from .plant import Plant

#: Step times fastest pole that is accurate and stable, poses looked at first, and the finest step that is taken [s].
_REACH, _POSES, FINEST = 1.0, 300, 2e-5
#: Peaks of the fastest pole that are looked at more closely, instants around each, and how often.
_PEAKS, _AROUND, _ROUNDS = 6, 16, 3


def needed_substeps(plant: Plant, controller: Controller, trajectory: Trajectory, rate: float, substeps: int) -> int:
    """Integration steps per sample that the loop needs along a motion.

    Args:
        plant: What moves.
        controller: Continuous; of one without damping gains nothing is known.
        rate: Samples per second of the log [Hz].
        substeps: Steps per sample that were asked for.

    Returns:
        A multiple of ``substeps``.

    Raises:
        SimulationError: The loop is faster than any step that can be afforded.
    """
    inner = controller.inner if isinstance(controller, Standing) else controller
    if not isinstance(inner, PD):
        return substeps
    fastest, worst = _fastest_pole(plant, inner.kd, trajectory)
    times = max(1, math.ceil(fastest / (_REACH * rate * substeps) - 1e-9))
    if 1.0 / (rate * substeps * times) < FINEST:
        raise SimulationError(
            "the closed loop is too fast to be integrated",
            where=f"joint '{trajectory.joints[worst]}'",
            got=f"a pole at {fastest:.3g} 1/s",
            expected=f"at most {_REACH / FINEST:.3g} 1/s",
            remedy="lower simulation.controller.bandwidth, or give rotor inertia with --truth",
        )
    return substeps * times


def _fastest_pole(plant: Plant, kd: Array, trajectory: Trajectory) -> tuple[float, int]:
    """The fastest pole along a motion [1/s], and the joint that moves most in it.

    An axis through which the rest of the robot passes is light only for an instant: instants are refined around the peaks.
    """
    times = np.linspace(0.0, trajectory.duration, _POSES)
    poles, joints = _poles(plant, kd, trajectory, times)
    width = times[1] - times[0]
    for _ in range(_ROUNDS):
        inside = np.r_[True, poles[1:] >= poles[:-1]] & np.r_[poles[:-1] >= poles[1:], True]
        peaks = np.flatnonzero(inside)
        peaks = peaks[np.argsort(-poles[peaks])[:_PEAKS]]
        closer = np.unique((times[peaks, None] + width * np.linspace(-1.0, 1.0, _AROUND)).clip(0.0, trajectory.duration))
        closer = np.setdiff1d(closer, times)
        more, others = _poles(plant, kd, trajectory, closer)
        order = np.argsort(np.concatenate([times, closer]), kind="stable")
        times = np.concatenate([times, closer])[order]
        poles, joints = np.concatenate([poles, more])[order], np.concatenate([joints, others])[order]
        width *= 2.0 / _AROUND
    k = int(np.argmax(poles))
    return float(poles[k]), int(joints[k])


def _poles(plant: Plant, kd: Array, trajectory: Trajectory, times: Array) -> tuple[Array, np.ndarray]:
    """Fastest pole at some instants, and its joint: eigenvalues of ``M^-1 Kd`` are those of ``Kd^½ M^-1 Kd^½``."""
    poses, _, _ = trajectory.evaluate(times)
    zero, root = np.zeros(poses.shape[1]), np.sqrt(kd)
    masses = np.array([plant.mass(plant.start(q, zero)[0]) for q in poses]).reshape(len(poses), len(kd), len(kd))
    values, vectors = np.linalg.eigh(root[:, None] * np.linalg.inv(masses) * root)
    return values[:, -1], np.argmax(np.abs(vectors[:, :, -1]), axis=1)
