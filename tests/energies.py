"""Kinetic and potential energy of simulated plants, for tests that energy is kept."""

import numpy as np
import pinocchio as pin

from urdf_ident.simulation.elastic.plant import ElasticPlant
from urdf_ident.simulation.plant import RigidPlant


def rigid_energy(plant: RigidPlant, q: np.ndarray, v: np.ndarray) -> tuple[float, float]:
    """Kinetic (rotors too) and potential energy [J] of a plant without springs, at q and v of shape (n,)."""
    height = pin.computePotentialEnergy(plant.model, plant.data, plant.robot.configuration(q[None])[0])
    return 0.5 * float(v @ plant.mass(q) @ v), float(height)


def elastic_energy(plant: ElasticPlant, state: np.ndarray, speed: np.ndarray) -> tuple[float, float]:
    """Kinetic and potential energy [J] (gravity and springs) at positions and velocities of links and motors, (2 n,)."""
    q = plant._full(state)
    spring = 0.5 * float(plant.stiffness @ (state[plant.n :] - plant.at_motors(state[: plant.n])) ** 2)
    kinetic = pin.computeKineticEnergy(plant.model, plant._data, q, plant._full(speed))
    return float(kinetic), float(pin.computePotentialEnergy(plant.model, plant._data, q)) + spring
