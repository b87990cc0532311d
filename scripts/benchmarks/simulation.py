"""Time of simulating 20 s of closed loop at 1 kHz on a UR10e, beside bare calls of the dynamics and MuJoCo.

OPENBLAS_NUM_THREADS=1 taskset -c 0 python scripts/benchmarks/simulation.py [--seconds 20] [--profile]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
import pinocchio as pin

from urdf_ident.model.bundled import robot_path, truth_path
from urdf_ident.model.robot import Robot
from urdf_ident.motion.fourier import random_fourier
from urdf_ident.motion.limits import Limits
from urdf_ident.motion.trajectory import Trajectory
from urdf_ident.simulation.controllers import PD, PID, ComputedTorque, Controller, PDGravity
from urdf_ident.simulation.plant import RigidPlant
from urdf_ident.simulation.simulate import simulate
from urdf_ident.simulation.truth import read_truth

REPEATS = 3


def bare_calls(robot: Robot, count: int) -> float:
    """Seconds of so many calls of the articulated-body algorithm from Python."""
    data, q, v, tau = robot.model.createData(), np.zeros(robot.n), np.ones(robot.n), np.ones(robot.n)
    begin = time.process_time()
    for _ in range(count):
        pin.aba(robot.model, data, q, v, tau)
    return time.process_time() - begin


def mujoco_seconds(robot: Robot, motion: Trajectory, controller: PD, rotor: np.ndarray) -> float:
    """MuJoCo's Runge-Kutta method on the same robot, a PD evaluated once a step; nan where MuJoCo is not installed."""
    try:
        import mujoco
    except ImportError:
        return float("nan")
    model = mujoco.MjModel.from_xml_path(str(robot_path("ur10e")))
    model.opt.integrator, model.opt.timestep = mujoco.mjtIntegrator.mjINT_RK4, 1e-3
    model.dof_armature[:] = rotor
    q, v, _ = motion.evaluate(motion.times(1000.0))
    data = mujoco.MjData(model)
    data.qpos[:] = q[0]
    begin = time.process_time()
    for k in range(len(q)):
        data.qfrc_applied[:] = controller.kp * (q[k] - data.qpos) + controller.kd * (v[k] - data.qvel)
        mujoco.mj_step(model, data)
    return time.process_time() - begin


def best(work: Callable[[], object]) -> float:
    """Processor seconds, best of some."""
    found = []
    for _ in range(REPEATS):
        begin = time.process_time()
        work()
        found.append(time.process_time() - begin)
    return min(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--profile", action="store_true", help="show where the time goes")
    given = parser.parse_args()
    robot = Robot.from_urdf(robot_path("ur10e"))
    truth = read_truth(truth_path("ur10e"), robot)
    rotor = np.diag(truth.rotor)
    motion = random_fourier(Limits.from_robot(robot), given.seconds, 5, 1, fill=0.7)
    smooth = RigidPlant.create(robot, rotor_inertia=truth.rotor)
    sticking = RigidPlant.create(robot, rotor_inertia=truth.rotor, friction=truth.friction)
    controllers: dict[str, Controller] = {
        "PD": PD.tuned(robot, rotor=rotor),
        "PID": PID.tuned(robot, rotor=rotor),
        "PD and gravity": PDGravity.tuned(robot, rotor=rotor),
        "computed torque": ComputedTorque(robot, rotor=rotor),
    }
    steps = round(1000 * given.seconds)
    print(f"{given.seconds:g} s at 1 kHz, seconds of the processor, best of {REPEATS}")
    print(f"{'bare pin.aba, four a step':>26} {bare_calls(robot, 4 * steps):6.2f}")
    print(f"{'MuJoCo RK4, PD':>26} {mujoco_seconds(robot, motion, controllers['PD'], rotor):6.2f}")  # type: ignore[arg-type]
    for name, controller in controllers.items():
        for words, plant in (("rigid", smooth), ("sticking friction", sticking)):

            def work(plant: RigidPlant = plant, controller: Controller = controller) -> object:
                return simulate(plant, controller, motion, rate=1000.0)

            if given.profile:
                import cProfile

                cProfile.runctx("work()", {"work": work}, {}, sort="tottime")
            print(f"{name + ', ' + words:>34} {best(work):6.2f}", flush=True)


if __name__ == "__main__":
    main()
