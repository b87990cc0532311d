"""How fine a closed loop must be integrated: its fastest pole decides, not the log's rate.

Gains are tuned for the largest inertia of each axis. In poses where an axis is light (parallel wrist axes share one small
inertia) the same damping gain makes the loop as fast as ``lambda = max eig(M^-1 Kd)``; a Runge-Kutta step of order four is
only stable up to ``2.78 / lambda``, however well the controller is damped.
"""

from __future__ import annotations

import math

import numpy as np

from ..errors import SimulationError
from ..motion.base import Trajectory
from .controllers import PD, Controller, Standing
from .plant import Plant

#: Step times fastest pole that is accurate and stable, poses looked at, and the finest step that is taken [s].
_REACH, _POSES, _FINEST = 1.0, 100, 2e-5


def needed_substeps(plant: Plant, controller: Controller, trajectory: Trajectory, rate: float, substeps: int) -> int:
    """Integration steps per sample that the loop needs along a motion.

    Args:
        plant: What moves.
        controller: Continuous; of one without damping gains nothing is known.
        trajectory: The motion.
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
    poses, _, _ = trajectory.evaluate(np.linspace(0.0, trajectory.duration, _POSES))
    zero = np.zeros(poses.shape[1])
    fastest, worst = 0.0, 0
    for q in poses:
        values, vectors = np.linalg.eig(np.linalg.solve(plant.mass(plant.start(q, zero)[0]), np.diag(inner.kd)))
        k = int(np.argmax(np.abs(values)))
        if abs(values[k]) > fastest:
            fastest, worst = float(abs(values[k])), int(np.argmax(np.abs(vectors[:, k])))
    times = max(1, math.ceil(fastest / (_REACH * rate * substeps)))
    if 1.0 / (rate * substeps * times) < _FINEST:
        raise SimulationError(
            "the closed loop is too fast to be integrated",
            where=f"joint '{trajectory.joints[worst]}'",
            got=f"a pole at {fastest:.3g} 1/s",
            expected=f"at most {_REACH / _FINEST:.3g} 1/s",
            remedy="lower simulation.controller.bandwidth, or give rotor inertia with --truth",
        )
    return substeps * times
