"""Integration step of a closed loop, determined by its fastest pole instead of the log's rate.

Gains are tuned for the largest inertia of each axis. In poses where an axis has a small inertia (parallel wrist axes share
one) the same damping gain gives a pole at ``lambda = max eig(M^-1 Kd)``; a Runge-Kutta step of order four is only stable up
to ``2.78 / lambda``, regardless of the damping ratio.
"""

from __future__ import annotations

import math

import numpy as np

from ..errors import SimulationError
from ..linalg import Array, IntArray
from ..motion.trajectory import Trajectory
from .controllers import Controller, Feedback
from .plant import RigidPlant

#: Largest product of step and fastest pole for accuracy and stability, and the smallest allowed step [s].
_REACH, FINEST = 1.0, 2e-5
#: Least number of initial poses, and their largest distance in time [s].
_POSES, _APART = 300, 0.02
#: Number of refined peaks of the fastest pole, instants around each, and refinement rounds.
_PEAKS, _AROUND, _ROUNDS = 6, 16, 3


def needed_substeps(plant: RigidPlant, controller: Controller, trajectory: Trajectory, rate: float, substeps: int) -> int:
    """Number of integration steps that a motion needs between two samples.

    Args:
        controller: Continuous controller; without damping gains the requested number is returned.
        rate: Samples per second of the log [Hz].

    Returns:
        A multiple of ``substeps``.

    Raises:
        SimulationError: The loop requires a step below :data:`FINEST`.
    """
    if not isinstance(controller, Feedback):
        return substeps
    _, poles, joints = _poles_along(plant, controller.kd, trajectory)
    top = int(np.argmax(poles))
    needed: int = substeps * max(1, math.ceil(poles[top] / (_REACH * rate * substeps) - 1e-9))
    if 1.0 / (rate * needed) < FINEST:
        raise SimulationError(
            "the closed loop is too fast to be integrated",
            where=f"joint '{trajectory.joints[joints[top]]}'",
            got=f"a pole at {poles[top]:.3g} 1/s",
            expected=f"at most {_REACH / FINEST:.3g} 1/s",
            remedy="lower simulation.controller.bandwidth, or give rotor inertia with --truth",
        )
    return needed


def _poles_along(plant: RigidPlant, kd: Array, trajectory: Trajectory) -> tuple[Array, Array, IntArray]:
    """Instants of a motion [s], the fastest pole at each [1/s], and the joint with the largest share in its mode.

    Instants are refined around peaks, because an axis may have a small inertia only briefly.
    """
    times = np.linspace(0.0, trajectory.duration, max(_POSES, math.ceil(trajectory.duration / _APART) + 1))
    poles, joints = _poles(plant, kd, trajectory, times)
    width = times[1] - times[0]
    for _ in range(_ROUNDS):
        peaks = np.flatnonzero(np.r_[True, poles[1:] >= poles[:-1]] & np.r_[poles[:-1] >= poles[1:], True])
        peaks = peaks[np.argsort(-poles[peaks])[:_PEAKS]]
        closer = np.unique((times[peaks, None] + width * np.linspace(-1.0, 1.0, _AROUND)).clip(0.0, trajectory.duration))
        closer = np.setdiff1d(closer, times)
        more, others = _poles(plant, kd, trajectory, closer)
        order = np.argsort(np.concatenate([times, closer]), kind="stable")
        times = np.concatenate([times, closer])[order]
        poles, joints = np.concatenate([poles, more])[order], np.concatenate([joints, others])[order]
        width *= 2.0 / _AROUND
    return times, poles, joints


def _poles(plant: RigidPlant, kd: Array, trajectory: Trajectory, times: Array) -> tuple[Array, IntArray]:
    """Fastest pole at given instants, and its joint: ``M^-1 Kd`` has the eigenvalues of ``Kd^½ M^-1 Kd^½``."""
    poses, _, _ = trajectory.evaluate(times)
    root, masses = np.sqrt(kd), np.array([plant.mass(q) for q in poses]).reshape(len(poses), len(kd), len(kd))
    values, vectors = np.linalg.eigh(root[:, None] * np.linalg.inv(masses) * root)
    return values[:, -1], np.argmax(np.abs(vectors[:, :, -1]), axis=1)
