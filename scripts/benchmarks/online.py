"""Cost of one torque of an identified six-axis model in a control loop, residual and all.

    python scripts/benchmarks/online.py [--calls 20000]

One call is one sample: links, rotors, friction (viscous, Coulomb, offset, Stribeck, load-dependent, presliding), the gears'
kinematic error and a residual on deformation and rate for each joint. The baseline is Pinocchio's RNEA alone. 1 kHz leaves
1000 µs; a call is to take less than 100. :meth:`Identification.torque` is this call after a few µs of checks.
"""

from __future__ import annotations

import argparse
import timeit
from collections.abc import Callable

import numpy as np
import pinocchio as pin

from urdf_ident.compensation.gear_ripple import GearRipple
from urdf_ident.compensation.online import OnlineModel
from urdf_ident.compensation.residual import Residual, fit_residual
from urdf_ident.model.bundled import robot_path
from urdf_ident.model.drive import Drive
from urdf_ident.model.dynamic_model import DynamicModel
from urdf_ident.model.robot import Robot

LAWS = ["viscous", "coulomb", "offset", "stribeck", "load_coulomb", "presliding"]


def residual_of(joints: tuple[str, ...], kind: str) -> Residual:
    """A residual taught on a curved surface with noise, with the kinematic error of the gears."""
    rng, t, n = np.random.default_rng(0), np.arange(2000) / 50.0, len(joints)
    phase = rng.uniform(0, 6, (2, n))
    apart = 1e-3 * np.sin(0.9 * t[:, None] + phase[0]) + 5e-4 * np.sin(2.3 * t[:, None] + phase[1])
    rate = np.gradient(apart, t, axis=0)
    torque = np.tanh(rate / 5e-4) + 300.0 * apart * np.abs(apart) / 1e-3 + 0.05 * rng.standard_normal(apart.shape)
    found = fit_residual({"deformation": apart, "deformation_rate": rate}, torque, joints, kind=kind)
    ripple = GearRipple(joints, np.full(n, 100.0), np.array([1.0, 2.0, 4.0]), *rng.normal(0, 1e-5, (2, 3, n)))
    return Residual(found.kind, joints, found.inputs, found.taught, found.explained, ripple)


def microseconds(call: Callable[[], object], count: int) -> float:
    """One call: the best of many short bursts, so that other programs do not count."""
    return 1e6 * min(timeit.repeat(call, number=50, repeat=max(1, count // 50))) / 50


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=20000)
    arguments = parser.parse_args()
    robot = Robot.from_urdf(robot_path("generic_6axis"))
    rng = np.random.default_rng(0)
    q, v, a = rng.uniform(-1, 1, (3, robot.n))
    apart, rate = 1e-3 * rng.uniform(-0.5, 0.5, (2, robot.n))
    data = robot.model.createData()
    base = microseconds(lambda: pin.rnea(robot.model, data, q, v, a), arguments.calls)
    print(f"{'RNEA alone':<74} {base:6.1f} µs")
    coupled = np.diag(np.full(robot.n, 100.0))
    coupled[-1, -2] = 50.0
    for name, drive in (("", None), (", coupled wrist with motor friction", Drive.build(robot.n, reduction=coupled))):
        motor = {} if drive is None else {robot.joints[-1]: ["viscous", "coulomb"]}
        model = DynamicModel(robot, friction=LAWS, drive=drive, motor_friction=motor)
        inertial = np.concatenate([inertia.toDynamicParameters() for inertia in list(robot.model.inertias)[1:]])
        theta = np.concatenate([inertial, rng.uniform(0.1, 1.0, len(model.parameters) - model.n_inertial)])
        model = model.with_reference(inertial)
        for kind in ("none", "rbf", "gmr"):
            residual = None if kind == "none" else residual_of(robot.joints, kind)
            online = OnlineModel(model, theta, residual=residual)
            inputs = (q, v, a) if residual is None else (q, v, a, apart, rate)
            cost = microseconds(lambda online=online, inputs=inputs: online(*inputs), arguments.calls)
            experts = "" if residual is None else f" ({max(len(x.experts) for x in residual.taught if x is not None)} experts)"
            words = f"friction{name}, residual {kind}{experts}"
            print(f"{words:<74} {cost:6.1f} µs, {cost / base:5.1f} times RNEA")


if __name__ == "__main__":
    main()
