"""An integrator with error control, as an oracle for the simulation's own: plants without dry friction only."""

from __future__ import annotations

import numpy as np
from scipy.integrate import solve_ivp

from urdf_ident.linalg import Array
from urdf_ident.simulation.integrators import Law
from urdf_ident.simulation.plant import RigidPlant


def integrate_smooth(
    plant: RigidPlant, law: Law, x: Array, w: Array, times: Array, *, rtol: float = 1e-10, atol: float = 1e-12
) -> tuple[Array, Array]:
    """Coordinates and velocities at ``times``, shapes (N, d), by SciPy's DOP853; the law has no state."""
    friction, d = plant.friction, plant.robot.n
    assert not friction.hard.any()
    assert not friction.memory
    idle, nothing = np.zeros(friction.sliders), np.zeros(0)

    def field(t: float, y: Array) -> Array:
        tau, _ = law(t, y[:d], y[d:], nothing)
        speed = friction.velocity(y[d:])
        net = tau - friction.to_joints(friction.torque(speed, np.sign(speed), idle))
        return np.concatenate([y[d:], plant.accelerate(y[:d], y[d:], net)])

    solution = solve_ivp(
        field, (times[0], times[-1]), np.concatenate([x, w]), method="DOP853", t_eval=times, rtol=rtol, atol=atol
    )
    assert solution.success, solution.message
    return solution.y[:d].T, solution.y[d:].T
