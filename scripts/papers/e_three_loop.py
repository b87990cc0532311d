"""Liu, Xu, Song, Wu, Zhang and Zhao, "An accurate dynamic model identification method of an industrial robot based on
double-encoder compensation", Actuators 12, 2023: its Table 4, plain WLS against three loops, on a simulated arm.

Run: ``.venv/bin/python scripts/papers/e_three_loop.py [--history] [--sensitivity]`` (a minute; sensitivity: two)

A six-axis arm with the paper's limits (Table 1) and a tool of 4 kg is simulated, with gears that do what no model of ours
knows. It learns from the printed trajectory (Table 3, 20 s) and four others of that kind, and is judged on three more. Every
torque below is exact for an elastic joint whose link follows a given motion: with the link's position as flat output, motor
position and torque follow without integration.

- A spring that stiffens, as in catalogues of harmonic drives.
- Hysteresis: Maxwell slip elements wound up by the deflection, against the housing. It has memory; the networks have none.
- Kinematic error of the gear, two periods a motor turn, in encoder and inertia torque alike; torque ripple of the motor.
- Friction at the motor that thins with speed, peaks at standstill, and differs by direction; part of it grows with load.
- Two encoders with steps and noise, and a noisy current.

Beside plain WLS stands what loops 1 and 2 do without the residual: the difference is what the deformation adds. The
hysteresis loop is one arcmin wide, the bound that catalogues state. ``--sensitivity`` halves and quarters it: what can be
gained is what the gear hides, and the table says how much that is.

The paper's 18 % are reached, and passed, because the kinematic error of the gears is taken off the encoders first
(``compensation.gear_ripple``), of which the paper says nothing. With it left in, as in the paper, the error falls by 11 to 12 %
only. Both are printed.
"""

from __future__ import annotations

import argparse
import timeit
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pinocchio as pin
import yaml

from urdf_ident.compensation.gear_ripple import GearRipple, fit_gear_ripple
from urdf_ident.compensation.online import OnlineModel
from urdf_ident.compensation.three_loop import ThreeLoop, three_loop
from urdf_ident.excitation.sweeps import bidirectional_experiment
from urdf_ident.friction import play
from urdf_ident.linalg import Array
from urdf_ident.logs.recording import Recording
from urdf_ident.model.bundled import robot_path, truth_path
from urdf_ident.model.drive import Drive
from urdf_ident.model.dynamic_model import DynamicModel
from urdf_ident.model.robot import Robot
from urdf_ident.motion.fourier import FourierTrajectory, random_fourier
from urdf_ident.motion.limits import Limits
from urdf_ident.motion.trajectory import Trajectory
from urdf_ident.signals.config import SignalConfig
from urdf_ident.signals.prepare import PreparedLog, prepare_log, prepare_logs

#: Table 4 [N·m].
PAPER_WLS = np.array([2.3376, 2.1278, 1.5395, 0.3361, 0.7101, 0.2578])
PAPER_OURS = np.array([1.9594, 1.7345, 1.1609, 0.3027, 0.5852, 0.2096])
#: Table 1 [deg/s²]; positions and velocities are in the URDF.
ACCELERATION = np.radians(120.0)
PERIOD = 20.0  # [s]
#: Table 3, five harmonics a joint.
TABLE_3_A = np.array(
    [
        [0.0046, -0.0074, 0.4845, -0.5103, 0.0286],
        [-0.0406, 0.0597, 0.2492, 0.0678, -0.3361],
        [-0.1772, 0.0661, 0.1019, 0.0189, -0.0097],
        [-0.1704, 0.1161, -0.1703, 0.1426, 0.0820],
        [-0.0210, -0.1317, 0.3614, -0.1994, -0.0094],
        [0.0673, 0.2685, 0.1682, -0.4241, -0.0763],
    ]
)
TABLE_3_B = np.array(
    [
        [-0.0053, -0.0182, 0.6963, -0.3354, -0.1411],
        [-0.0234, -0.2122, 0.1619, -0.1082, 0.0789],
        [-0.0001, -0.0583, 0.0450, 0.1273, -0.1056],
        [0.0088, -0.3357, 0.1996, 0.1731, -0.1257],
        [0.1460, -0.3491, 0.3639, -0.1008, -0.0273],
        [0.1335, 0.0677, 0.0942, -0.2907, 0.1227],
    ]
)
TABLE_3_Q0 = np.array([0.3361, -0.2762, -0.0112, -0.2369, 0.1976, 0.4777])


#: Seeds of the motions to learn from, beside the printed one, and to judge on.
TRAIN, TEST = (11, 12, 13, 14), (1, 2, 3)
ARCMIN = np.radians(1 / 60)
#: Stiffness of the gears at small torque [N·m/rad].
SOFT = np.array([2.5e4, 2.5e4, 1.2e4, 5e3, 5e3, 4e3])
#: Tool of the simulated arm [kg], [m]: without one its wrist would carry nothing.
TOOL = pin.Inertia(4.0, np.array([0.03, 0.02, 0.14]), np.diag([0.01, 0.01, 0.006]))


@dataclass(frozen=True, eq=False)
class HarmonicArm:
    """Six axes with harmonic drives; arrays of shape (n,), after the gear, SI units.

    Attributes:
        robot: Kinematics and links.
        rotor: Rotor inertia [kg·m²].
        gear: Gear ratio.
        soft, stiff: Stiffness at small and large torque [N·m/rad].
        knee: Torque where it stiffens [N·m].
        viscous, coulomb: Friction at low speed, mean of both directions.
        asymmetry: Part of it by which forward exceeds backward friction.
        hysteresis: Loss of the flexspline once wound up [N·m].
        winding: Deflection over which it winds up [rad].
        kinematic: Amplitude of the kinematic error [rad].
        ripple: Amplitude of the torque ripple [N·m].
        load: Part of the link torque that is lost to friction.
        noise: Standard deviation of the torque's noise [N·m].
    """

    robot: Robot
    rotor: Array
    gear: float
    soft: Array
    stiff: Array
    knee: Array
    viscous: Array
    coulomb: Array
    asymmetry: float
    hysteresis: Array
    winding: Array
    kinematic: float
    ripple: Array
    load: float
    noise: Array

    def friction(self, speed: Array) -> Array:
        """Torque of friction at a motor speed (after the gear), shape (N, n)."""
        sign = np.tanh(speed / 0.004)
        dry = self.coulomb * (1 + 0.15 * np.exp(-np.sqrt(np.abs(speed) / 0.03)))
        thinning = self.viscous * 0.5 * np.arcsinh(speed / 0.5)
        return np.asarray((dry * sign + thinning) * (1 + self.asymmetry * sign))

    def deflection(self, torque: Array) -> Array:
        """Of the springs, shape (N, n) [rad]."""
        return np.asarray(torque / self.stiff + (1 / self.soft - 1 / self.stiff) * self.knee * np.tanh(torque / self.knee))

    def hysteresis_torque(self, deflection: Array) -> Array:
        """Three Maxwell slip elements a joint, wound up by the deflection, shape (N, n)."""
        out = np.zeros_like(deflection)
        for share, reach in ((0.5, 0.4), (0.3, 1.0), (0.2, 2.5)):
            for j, radius in enumerate(reach * self.winding):
                d = deflection[:, j]
                out[:, j] += share * self.hysteresis[j] * (d - play(d, radius, float(d[0]))) / radius
        return out

    def run(self, trajectory: Trajectory, seed: int, name: str, rate: float = 500.0, every: int = 2) -> Recording:
        """A log of the arm following a trajectory."""
        from scipy.interpolate import CubicSpline

        t = trajectory.times(rate * every)
        q, v, a = trajectory.evaluate(t)
        model = self.robot.model.copy()
        model.inertias[len(self.rotor)] += TOOL
        data = model.createData()
        link = np.array([pin.rnea(model, data, *row) for row in zip(q, v, a, strict=True)])
        apart = self.deflection(link)
        wave = 2 * self.gear * (q + apart)
        motor = CubicSpline(t, q + apart + self.kinematic * np.sin(wave + np.arange(len(self.rotor))))
        speed, turn = motor(t, 1), motor(t, 2)
        friction = self.friction(speed) + self.load * np.abs(link) * np.tanh(speed / 0.004)
        tau = link + self.rotor * turn + friction + self.hysteresis_torque(apart) + self.ripple * np.sin(wave)
        rng = np.random.default_rng(seed)
        kept = slice(None, None, every)
        theta, q, tau = motor(t[kept]), q[kept], tau[kept]
        counts, motor_counts = 2 * np.pi / 2**20, 2 * np.pi / 2**17
        return Recording(
            name,
            self.robot.joints,
            t[kept],
            np.rint(q / counts + 0.5 * rng.standard_normal(q.shape)) * counts,
            effort=tau + self.noise * rng.standard_normal(tau.shape),
            motor_position=np.rint(self.gear * theta / motor_counts) * motor_counts,
        )


def build_arm() -> HarmonicArm:
    """The bundled six-axis arm, with gears of catalogue size for its torques."""
    truth = yaml.safe_load(truth_path("generic_6axis").read_text(encoding="utf-8"))
    return HarmonicArm(
        Robot.from_urdf(robot_path("generic_6axis")),
        rotor=np.array(truth["rotor_inertia"]),
        gear=100.0,
        soft=SOFT,
        stiff=1.6 * SOFT,
        knee=np.array([15.0, 15.0, 8.0, 3.0, 3.0, 2.0]),
        viscous=np.array(truth["friction"]["viscous"]),
        coulomb=np.array(truth["friction"]["coulomb"]),
        asymmetry=0.06,
        hysteresis=0.5 * ARCMIN * SOFT,
        winding=np.full(6, 0.15 * ARCMIN),
        kinematic=0.25 * ARCMIN,
        ripple=np.array([1.5, 1.5, 0.8, 0.2, 0.2, 0.1]),
        load=0.01,
        noise=np.array([2.0, 2.0, 1.2, 0.3, 0.3, 0.15]),
    )


def printed_trajectory(joints: tuple[str, ...]) -> FourierTrajectory:
    """The trajectory of Table 3."""
    return FourierTrajectory(joints, PERIOD, TABLE_3_Q0, TABLE_3_A, TABLE_3_B)


@dataclass(frozen=True, eq=False)
class Data:
    """Prepared logs: the printed trajectory, others to judge on, and the runs both ways."""

    train: list[PreparedLog]
    test: list[PreparedLog]
    sweeps: PreparedLog
    ripple: GearRipple | None


def record(
    arm: HarmonicArm,
    train_seeds: Sequence[int] = TRAIN,
    test_seeds: Sequence[int] = TEST,
    rate: float = 500.0,
    *,
    clean: bool = True,
) -> Data:
    """Drives the arm and prepares its logs, the gear's kinematic error taken off unless it is to stay."""
    robot = arm.robot
    limits = Limits.from_robot(robot, acceleration=ACCELERATION)
    drive = Drive.build(robot.n, reduction=np.full(robot.n, arm.gear))
    others = {
        seed: arm.run(random_fourier(limits, PERIOD, 5, seed, start=np.zeros(robot.n)), 100 + seed, f"other_{seed}", rate)
        for seed in (*train_seeds, *test_seeds)
    }
    train = [arm.run(printed_trajectory(robot.joints), 0, "table_3", rate), *(others[seed] for seed in train_seeds)]
    tests = [others[seed] for seed in test_seeds]
    motion = bidirectional_experiment(limits, home=np.zeros(robot.n), cruise=1.5).trajectory
    sweeps = arm.run(motion, 1, "sweeps", rate)
    first = prepare_logs(train, robot, drive, SignalConfig())
    fixed = SignalConfig(cutoff=first[0].conditioned.cutoff, decimate=first[0].conditioned.decimate_rate)
    ripple = fit_gear_ripple([*first, prepare_log(sweeps, robot, drive, fixed)], drive) if clean else None
    train, tests, (sweeps,) = (
        [log if ripple is None else ripple.cleaned(log, drive) for log in logs] for logs in (train, tests, [sweeps])
    )
    return Data(
        prepare_logs(train, robot, drive, fixed),
        prepare_logs(tests, robot, drive, fixed),
        prepare_log(sweeps, robot, drive, fixed),
        ripple,
    )


def compare(arm: HarmonicArm, data: Data, kind: str, rounds: int = 20) -> ThreeLoop:
    """The three loops; their round 0 is plain WLS."""
    drive = Drive.build(arm.robot.n, reduction=np.full(arm.robot.n, arm.gear))
    model = DynamicModel(arm.robot, friction=["viscous", "coulomb", "offset"], drive=drive)
    return three_loop(model, data.train, [data.sweeps], kind=kind, held_out=data.test, rounds=rounds)


def lower(before: Array, after: Array) -> tuple[Array, float]:
    """By how much errors are lower: per joint, and in the mean error, both as parts."""
    return 1 - after / before, float(1 - after.mean() / before.mean())


def call_time(found: ThreeLoop, data: Data) -> float:
    """One call of the whole model for one sample, kinematic error included [s]: the best of many short bursts."""
    online = OnlineModel(found.model, found.theta, residual=replace(found.residual, ripple=data.ripple))
    part = data.test[0].segments[0]
    sample = [x[100].copy() for x in (part.q, part.v, part.a, part.qm - part.q, part.vm - part.v)]
    return min(timeit.repeat(lambda: online(*sample), number=20, repeat=200)) / 20


def print_row(name: str, values: Array, mean: float, digits: int = 3) -> None:
    """One line of the table."""
    print(f"  {name:<40}" + "".join(f"{value:9.{digits}f}" for value in values) + f"{mean:10.{digits}f}")


def print_table(arm: HarmonicArm, data: Data, history: bool) -> None:
    """Table 4, the paper's and ours."""
    print(f"  {'RMSE on other trajectories [N·m]':<40}" + "".join(f"{f'joint {j}':>9}" for j in range(1, 7)) + f"{'mean':>10}")
    print_row("paper: WLS", PAPER_WLS, PAPER_WLS.mean())
    print_row("paper: three loops", PAPER_OURS, PAPER_OURS.mean())
    percent, mean = lower(PAPER_WLS, PAPER_OURS)
    print_row("  lower by [%]", 100 * percent, 100 * mean, 1)
    alone = compare(arm, data, "none").gains
    print_row("ours: WLS", alone[0].held_out, alone[0].held_out.mean())
    print_row("ours: friction and links, no residual", alone[-1].held_out, alone[-1].held_out.mean())
    for kind in ("rbf", "gmr"):
        found = compare(arm, data, kind)
        last = found.gains[-1].held_out
        state = f"{found.rounds} rounds" + ("" if found.converged else ", not converged")
        print_row(f"ours: three loops, {kind.upper()} ({state})", last, last.mean())
        for name, reference in (("WLS", alone[0].held_out), ("without residual", alone[-1].held_out)):
            percent, mean = lower(reference, last)
            print_row(f"  lower than {name} by [%]", 100 * percent, 100 * mean, 1)
        print(f"  one call of this model: {1e6 * call_time(found, data):.0f} µs")
        if history:
            print(found.summary())


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--history", action="store_true", help="every loop's gain")
    parser.add_argument("--sensitivity", action="store_true", help="other sizes of hysteresis")
    arguments = parser.parse_args()
    arm = build_arm()
    data = record(arm)
    if data.ripple is not None:
        found = data.ripple.amplitude[1] / ARCMIN
        print(f"kinematic error: {arm.kinematic / ARCMIN:.3g} arcmin simulated, {found.min():.3g} to {found.max():.3g} found")
    print_table(arm, data, arguments.history)
    print("kinematic error left in, as in the paper")
    print_table(arm, record(arm, clean=False), arguments.history)
    if not arguments.sensitivity:
        return
    for name, part in (("half an arcmin", 2), ("a quarter of an arcmin", 4)):
        other = replace(arm, hysteresis=arm.hysteresis / part)
        print(f"hysteresis loop {name} wide")
        print_table(other, record(other), False)


if __name__ == "__main__":
    main()
