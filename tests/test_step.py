"""The integration step follows from the closed loop's fastest pole."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from conftest import arm_urdf

from urdf_ident.errors import SimulationError
from urdf_ident.model.bundled import robot_path
from urdf_ident.model.robot import Robot
from urdf_ident.motion.fourier import random_fourier
from urdf_ident.motion.limits import Limits
from urdf_ident.simulation.controllers import PD, ComputedTorque, PDGravity, PositionReference
from urdf_ident.simulation.friction_truth import FrictionTruth
from urdf_ident.simulation.plant import RigidPlant
from urdf_ident.simulation.simulate import simulate
from urdf_ident.simulation.step import needed_substeps


def loop(damping: float):
    robot = Robot.from_urdf(arm_urdf("z", fixed_tip=False))
    plant = RigidPlant.create(robot, friction=FrictionTruth(robot.n, ()))
    inertia = float(pin.crba(robot.model, robot.model.createData(), np.zeros(1))[0, 0])
    controller = PD(np.array([100.0 * inertia]), np.array([damping * inertia]))
    return plant, controller, random_fourier(Limits.from_robot(robot), 2.0, 2, 0, fill=0.3)


def test_steps_are_one_over_the_fastest_pole() -> None:
    plant, controller, motion = loop(5000.0)
    assert set(needed_substeps(plant, controller, motion, 500.0, 2)) == {10}
    assert set(needed_substeps(plant, PositionReference(controller), motion, 500.0, 2)) == {10}
    assert set(needed_substeps(plant, loop(50.0)[1], motion, 500.0, 2)) == {2}
    assert set(needed_substeps(plant, ComputedTorque(plant.robot), motion, 500.0, 2)) == {2}


def test_steps_are_short_only_where_an_axis_is_light() -> None:
    """Wrist axes of the bundled arm without rotors: fast in few poses. The same motion as with short steps everywhere."""
    robot = Robot.from_urdf(robot_path("ur10e"))
    plant = RigidPlant.create(robot, friction=FrictionTruth(robot.n, ()))
    motion = random_fourier(Limits.from_robot(robot), 8.0, 2, 2, fill=1.0, span=6.0)
    controller = PDGravity.tuned(robot, bandwidth=10.0, rotor=np.zeros(robot.n))
    counts = needed_substeps(plant, controller, motion, 500.0, 2)
    assert len(counts) == len(motion.times(500.0)) - 1
    assert not (counts.max() % counts).any()
    assert not (counts % 2).any()
    assert counts.mean() < 0.6 * counts.max()
    apart, alike = (simulate(plant, controller, motion, rate=500.0, substeps=n).truth.q for n in (counts, int(counts.max())))
    assert np.abs(apart - alike).max() < 1e-7
    with pytest.raises(SimulationError, match="common grid"):
        simulate(plant, controller, motion, rate=500.0, substeps=np.where(counts == counts.max(), 5, 2))


def test_a_loop_that_a_fixed_step_cannot_follow_is_followed() -> None:
    plant, controller, motion = loop(5000.0)
    with pytest.raises(SimulationError, match="simulation"):
        simulate(plant, controller, motion, rate=500.0, substeps=2)
    steps = needed_substeps(plant, controller, motion, 500.0, 2)
    assert simulate(plant, controller, motion, rate=500.0, substeps=steps).tracking_error.max() < 0.1


def test_a_loop_beyond_any_step_names_the_key() -> None:
    plant, controller, motion = loop(1e6)
    with pytest.raises(SimulationError, match=r"simulation\.controller\.bandwidth"):
        needed_substeps(plant, controller, motion, 500.0, 1)
