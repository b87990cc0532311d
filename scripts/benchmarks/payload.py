"""Weighing unknown bodies: simulated arms whose truth is known, and real logs with a known body's torque added.

    python scripts/benchmarks/payload.py arms [--arms 20] [--payloads 5] [--first 0] [--static]
    python scripts/benchmarks/payload.py real ROBOT.urdf LOG... [-c PROJECT.yaml] [--laws auto]
    python scripts/benchmarks/payload.py compare [--pairs 200] [--changed 60] [--arms 10] [--jobs 2]

``arms``: chains of 4 to 6 joints with rotor inertia, viscous, Coulomb and load-dependent friction and offsets (RNEA and
formulas written here), coloured noise, the motion that `design` makes by default. One empty log teaches; every payload has a
log of its own of another designed motion. Printed: coverage of the 95 % intervals, errors of mass and centre of mass.
``--static``: poses of `design --family poses` instead, friction that holds 60 to 100 % of its level in each.

``real``: two logs get the torque of a body on the last link, friction that grows with it included, in the unit of the log's
effort; the others teach.

``compare``: pairs of identifications from one motion measured twice, dealt out to arms: how often a change is found where
there is none, and where one joint has 20 % more Coulomb friction.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pinocchio as pin
from scipy.signal import lfilter

import urdf_ident as ui
from urdf_ident.errors import UrdfIdentError
from urdf_ident.linalg import Array
from urdf_ident.logs.read import read_recording
from urdf_ident.logs.recording import Recording
from urdf_ident.logs.sources import expand_logs
from urdf_ident.model.dynamic_model import DynamicModel
from urdf_ident.model.payload import default_link, moving_link
from urdf_ident.model.robot import Robot
from urdf_ident.pipeline.payload import payload
from urdf_ident.project import load_project

RATE, NOISE, MEMORY, BUDGET = 100.0, 0.02, 0.8, 3.0  # [Hz], share of the torque, from sample to sample, [s]
LAWS = ["viscous", "coulomb", "offset", "load_coulomb"]


class Arm:
    """A random arm and its friction."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.robot = Robot.from_urdf(random_urdf(rng))
        k = np.arange(1, self.robot.n + 1)
        draw = lambda low, high: rng.uniform(low, high, self.robot.n)  # noqa: E731
        self.rotor, self.viscous, self.coulomb = draw(0.2, 0.8) / k, draw(2, 6) / k, draw(2, 6) / k
        self.load, self.offset = draw(0.03, 0.12), draw(-0.4, 0.4) / k
        self.scale = np.ones(self.robot.n)

    def rigid(self, q: Array, v: Array, a: Array, body: pin.Inertia | None) -> Array:
        """Torque of links and payload, shape (N, n)."""
        model = self.robot.model.copy()
        if body is not None:
            tool = self.robot.bodies[-1].links[-1]
            model.inertias[self.robot.n] = model.inertias[self.robot.n] + pin.SE3(tool.rotation, tool.translation).act(body)
        data = model.createData()
        return np.array([pin.rnea(model, data, *row) for row in zip(q, v, a, strict=True)])

    def torque(self, q: Array, v: Array, a: Array, body: pin.Inertia | None, sign: Array | None = None) -> Array:
        """Joint torque; ``sign``: the state of dry friction, of the velocity if None."""
        rigid = self.rigid(q, v, a, body)
        state = np.tanh(v / 0.02) if sign is None else sign
        dry = state * (self.scale * self.coulomb + self.load * np.abs(rigid))
        return np.asarray(rigid + self.rotor * a + self.viscous * v + dry + self.offset)

    def log(self, motion: tuple[Array, ...], name: str, seed: int, body: pin.Inertia | None = None) -> Recording:
        """One measured log."""
        t, q, v, a = motion
        rng = np.random.default_rng(seed)
        level = NOISE * self.torque(q, v, a, None).std(axis=0)
        white = rng.standard_normal(q.shape) * np.sqrt(1 - MEMORY**2)
        tau = self.torque(q, v, a, body) + level * lfilter([1.0], [1.0, -MEMORY], white, axis=0)
        return Recording(name, self.robot.joints, t, q + 1e-5 * rng.standard_normal(q.shape), effort=tau, sha256=name)

    def designed(self, seed: int) -> tuple[Array, ...]:
        """The default motion of `design`, shape (N,) and three times (N, n)."""
        model = DynamicModel(self.robot, friction=LAWS)
        found = ui.design_excitation(model, duration=20.0, seed=seed, budget=BUDGET).trajectory
        t = found.times(RATE)
        return (t, *found.evaluate(t))


def random_urdf(rng: np.random.Generator) -> str:
    """A chain of 4 to 6 revolute joints with a tool frame."""
    parts, parent = ['<robot name="chain"><link name="base"/>'], "base"
    n = int(rng.integers(4, 7))
    for k in range(1, n + 1):
        axis = np.eye(3)[2 if k == 1 else rng.integers(3)]
        place = rng.uniform(-0.1, 0.1, 3) + [0.0, 0.0, 0.6 / k]
        mass, com, size = 12.0 / k, rng.uniform(-0.1, 0.1, 3), rng.uniform(0.05, 0.15, 3)
        ixx, iyy, izz = mass * (size[[1, 0, 0]] ** 2 + size[[2, 2, 1]] ** 2)
        roll = [0.0, 0.0, 0.0] if k == 1 else rng.choice([0.0, np.pi / 2, -np.pi / 2], 3)
        parts.append(
            f'<joint name="j{k}" type="revolute"><parent link="{parent}"/><child link="l{k}"/><origin xyz="{_text(place)}" '
            f'rpy="{_text(roll)}"/><axis xyz="{_text(axis)}"/><limit lower="-2.8" upper="2.8" velocity="2.5" effort="400"/>'
            "</joint>"
            f'<link name="l{k}"><inertial><origin xyz="{_text(com)}"/><mass value="{mass:.9g}"/><inertia ixx="{ixx:.9g}" '
            f'ixy="0" ixz="0" iyy="{iyy:.9g}" iyz="0" izz="{izz:.9g}"/></inertial></link>'
        )
        parent = f"l{k}"
    tool = f'<joint name="flange" type="fixed"><parent link="{parent}"/><child link="tool0"/><origin xyz="0 0 0.05"/></joint>'
    return "".join([*parts, tool, '<link name="tool0"/></robot>'])


def _text(values: Sequence[float] | Array) -> str:
    return " ".join(f"{value:.9g}" for value in values)


def random_body(rng: np.random.Generator) -> pin.Inertia:
    """0.5 to 5 kg, some centimetres from the flange."""
    mass, size = float(np.exp(rng.uniform(np.log(0.5), np.log(5.0)))), rng.uniform(0.04, 0.2, 3)
    com = np.array([*rng.uniform(-0.05, 0.05, 2), rng.uniform(0.02, 0.15)])
    turn = np.linalg.qr(rng.standard_normal((3, 3)))[0]
    moments = mass / 12 * (size[[1, 0, 0]] ** 2 + size[[2, 2, 1]] ** 2)
    return pin.Inertia(mass, com, turn @ np.diag(moments) @ turn.T)


def ten(body: pin.Inertia) -> Array:
    """Mass, centre of mass, ixx, ixy, ixz, iyy, iyz, izz about it."""
    return np.concatenate([[body.mass], body.lever, np.array(body.inertia)[[0, 0, 0, 1, 1, 2], [0, 1, 2, 1, 2, 2]]])


def arms(arguments: argparse.Namespace) -> None:
    """Prints coverage and errors."""
    held, mass, com = [], [], []
    for seed in range(arguments.first, arguments.first + arguments.arms):
        begin, rng = time.perf_counter(), np.random.default_rng(1000 + seed)
        arm = Arm(seed)
        motion = standing(arm, seed) if arguments.static else arm.designed(1)
        if motion is None:
            print(
                f"arm {seed}: gravity does not show the mass in any pose, as `design --family poses` says; left out", flush=True
            )
            continue
        ident = ui.identify(DynamicModel(arm.robot, friction=LAWS), [arm.log(arm.designed(0), "empty", seed)])
        inside, off, away = [], [], []
        for k in range(arguments.payloads):
            body = random_body(rng)
            log = resting(arm, motion, body, rng) if arguments.static else arm.log(motion, f"load{k}", 100 * seed + k, body)
            found = payload(ident, [log], static=arguments.static)
            told = np.isfinite(found.std_error)
            truth = ten(body)
            inside.append(((found.interval[:, 0] <= truth) & (truth <= found.interval[:, 1]))[told])
            off.append(found.mass / body.mass - 1.0)
            away.append(np.abs(found.com - body.lever).max())
        held += inside
        mass += off
        com += away
        words = f"mass {100 * np.median(np.abs(off)):.2f} % (worst {100 * np.abs(off).max():.2f})"
        share, seconds = 100 * np.concatenate(inside).mean(), time.perf_counter() - begin
        print(
            f"arm {seed}: {arm.robot.n} joints, {words}, centre {1e3 * np.median(away):.2f} mm, covered {share:.0f} %, "
            f"{seconds:.0f} s",
            flush=True,
        )
    if not held:
        return
    count = np.concatenate(held)
    first = np.array([item[0] for item in held])
    print(
        f"{len(mass)} payloads: coverage {100 * count.mean():.1f} % (mass {100 * first.mean():.1f} %), mass error median "
        f"{100 * np.median(np.abs(mass)):.3f} %, worst {100 * np.abs(mass).max():.2f} %, centre of mass median "
        f"{1e3 * np.median(com):.2f} mm, worst {1e3 * np.max(com):.2f} mm"
    )


def standing(arm: Arm, seed: int) -> tuple[Array, ...] | None:
    """The poses that `design --family poses` plans; None where it says that no pose shows the mass."""
    from urdf_ident.excitation.poses import design_poses

    planned = design_poses(DynamicModel(arm.robot, friction=LAWS), seed=seed)
    if not np.isfinite(next(iter(planned.information.values()))):
        return None
    found = planned.trajectory
    t = found.times(50.0)
    return (t, *found.evaluate(t))


def resting(arm: Arm, motion: tuple[Array, ...], body: pin.Inertia, rng: np.random.Generator) -> Recording:
    """A log of poses whose dry friction stays where the motion left it, and creeps back a little."""
    t, q, v, a = motion
    sign = np.tanh(v / 0.02)
    moving, state = np.abs(v) > 1e-3, np.zeros(arm.robot.n)
    begin = np.flatnonzero(np.diff(np.concatenate([[True], moving.any(axis=1)]).astype(int)) == -1)
    slack = {int(k): rng.uniform(0.6, 1.0, arm.robot.n) for k in begin}
    part = np.ones(arm.robot.n)
    for k in range(len(t)):
        state = np.where(moving[k], np.sign(v[k]), state)
        part = slack.get(k, part)
        sign[k] = np.where(moving[k], sign[k], state * part)
    tau = arm.torque(q, v, a, body, sign)
    tau = tau + NOISE * arm.torque(q, v, a, None).std(axis=0) * rng.standard_normal(q.shape)
    return Recording("poses", arm.robot.joints, t, q + 1e-5 * rng.standard_normal(q.shape), effort=tau)


def real(arguments: argparse.Namespace) -> None:
    """Adds a body's torque to two logs, and weighs it with the rest."""
    project, folder = load_project(arguments.config)
    robot = project.build_robot(arguments.urdf, folder)
    layout = project.log
    logs = [read_recording(source, robot, layout) for source in expand_logs(arguments.logs, layout)]
    body = pin.Inertia(3.0, np.array([0.02, -0.03, 0.08]), np.diag([0.015, 0.012, 0.010]))
    errors = []
    for pair in pairs(len(logs), arguments.pairs):
        teach = [log for k, log in enumerate(logs) if k not in pair]
        ident = ui.identify(project.build_model(robot), teach, project=project)
        loaded = [replace(with_body(ident, logs[k], body), sha256=f"loaded {k}") for k in pair]
        for group in ([loaded[0]], [loaded[1]], loaded):
            found = payload(ident, group)
            off, away = found.mass / body.mass - 1.0, np.abs(found.com - body.lever)
            errors.append((abs(off), away.max()))
            inside = (found.interval[:, 0] <= ten(body)) & (ten(body) <= found.interval[:, 1])
            names = ", ".join(log.name for log in group)
            words = f"mass {100 * off:+.2f} % (± {100 * found.std_error[0] / body.mass:.2f})"
            print(f"{names}: {words}, centre {np.round(1e3 * away, 1).tolist()} mm, covered {int(inside.sum())}/10", flush=True)
            print(f"  {found.method}", flush=True)
    worst = np.array(errors).max(axis=0)
    print(f"worst of {len(errors)}: mass {100 * worst[0]:.2f} %, centre of mass {1e3 * worst[1]:.1f} mm")


def pairs(count: int, wanted: int) -> list[tuple[int, int]]:
    """Pairs of logs, evenly spread."""
    every = [(i, j) for i in range(count) for j in range(i + 1, count)]
    return [every[k] for k in np.linspace(0, len(every) - 1, min(wanted, len(every))).astype(int)]


def with_body(ident: ui.Identification, log: Recording, body: pin.Inertia, share: float = 0.06) -> Recording:
    """A log with the torque of a body on the last link, and with the friction that it adds to the gears."""
    robot = ident.model.robot
    rate = 1.0 / float(np.median(np.diff(log.time)))
    window = max(3, round(0.12 * rate) | 1)
    kernel = np.hanning(window + 2)[1:-1] / np.hanning(window + 2)[1:-1].sum()
    smooth = np.column_stack([np.convolve(np.pad(x, window // 2, "edge"), kernel, "valid") for x in log.position.T])
    v = np.gradient(smooth, log.time, axis=0)
    a = np.gradient(v, log.time, axis=0)
    a = np.column_stack([np.convolve(np.pad(x, window // 2, "edge"), kernel, "valid") for x in a.T])
    model = robot.model.copy()
    data, rows = model.createData(), list(zip(smooth, v, a, strict=True))
    empty = np.array([pin.rnea(model, data, *row) for row in rows])
    index, frame = moving_link(robot, default_link(robot))
    mounted = pin.SE3(frame.rotation, frame.translation).act(body)
    model.inertias[index + 1] = model.inertias[index + 1] + mounted
    data = model.createData()
    heavy = np.array([pin.rnea(model, data, *row) for row in rows])
    grown = np.array([ident.term_values("Fl").get(joint, 0.0 if ident.model.loaded else share) for joint in robot.joints])
    added = heavy - empty + grown * np.tanh(v / 0.02) * (np.abs(heavy) - np.abs(empty))
    return replace(log, effort=log.effort + added / ident.model.drive.gain, name=f"{log.name}+body")


@dataclass(frozen=True)
class Compared:
    """What `compare` said of one arm.

    Attributes:
        seed: Of the arm.
        joints: Number of joints.
        alarms: Of each pair without a change, what was said to have changed.
        found: Of each pair with 20 % more Coulomb friction on one joint, whether that joint's friction is said to have changed.
        others: Of each such pair, what else is said to have changed.
        seconds: CPU time.
    """

    seed: int
    joints: int
    alarms: list[list[str]]
    found: list[bool]
    others: list[list[str]]
    seconds: float


def compared_arm(task: tuple[int, int, int]) -> Compared:
    """Pairs of one arm: its seed, how many without a change and how many with one."""
    from urdf_ident.pipeline.compare import compare

    seed, pairs, changed = task
    begin, arm, logs = time.process_time(), Arm(seed), itertools.count(1000 * seed)
    motion, model = arm.designed(0), DynamicModel(arm.robot, friction=LAWS)

    def again() -> ui.Identification:
        k = next(logs)
        return ui.identify(model, [arm.log(motion, f"log{k}", k)])

    firsts, alarms, found, others = [], [], [], []
    for _ in range(pairs):
        firsts.append(again())
        said = compare(firsts[-1], again())
        body = [] if said.hypothesis is None else [said.hypothesis.link]
        alarms.append([*body, *(f"{item.where} {item.what}" for item in said.changes)])
    for k in range(changed):  # the first of a pair may be that of a pair without a change: the tests are of one pair each
        before, joint = firsts[k] if k < len(firsts) else again(), k % arm.robot.n
        arm.scale[joint] = 1.2
        changes = compare(before, again()).changes
        arm.scale[joint] = 1.0
        name = arm.robot.joints[joint]
        found.append(any(item.kind == "friction" and item.where == name for item in changes))
        others.append([f"{item.where} {item.what}" for item in changes if not (item.kind == "friction" and item.where == name)])
    return Compared(seed, arm.robot.n, alarms, found, others, time.process_time() - begin)


def compared(arguments: argparse.Namespace) -> None:
    """False alarms and power of `compare`."""
    count = min(arguments.arms, max(arguments.pairs, arguments.changed))
    shares = [[len(range(k, total, count)) for k in range(count)] for total in (arguments.pairs, arguments.changed)]
    tasks = [(arguments.first + k, shares[0][k], shares[1][k]) for k in range(count)]
    done = []
    with ProcessPoolExecutor(arguments.jobs) as pool:
        for one in pool.map(compared_arm, tasks):
            done.append(one)
            said = [", ".join(what) for what in one.alarms if what]
            print(
                f"arm {one.seed}, {one.joints} joints: {len(said)} of {len(one.alarms)} false alarms, "
                f"{sum(one.found)} of {len(one.found)} changes found, something else said beside in "
                f"{sum(map(bool, one.others))}; {one.seconds:.0f} s CPU {said or ''}",
                flush=True,
            )
    alarms, found = [bool(x) for one in done for x in one.alarms], [x for one in done for x in one.found]
    if alarms:
        print(f"{len(alarms)} pairs without a change: {100 * np.mean(alarms):.1f} % false alarms")
    if found:
        print(f"{len(found)} pairs with 20 % more Coulomb friction on one joint: found in {100 * np.mean(found):.1f} %")


def main() -> None:
    """Runs one of the three."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = parser.add_subparsers(dest="kind", required=True)
    one = kinds.add_parser("arms")
    one.add_argument("--arms", type=int, default=20)
    one.add_argument("--payloads", type=int, default=5)
    one.add_argument("--first", type=int, default=0)
    one.add_argument("--static", action="store_true")
    two = kinds.add_parser("real")
    two.add_argument("urdf", type=Path)
    two.add_argument("logs", nargs="+")
    two.add_argument("-c", "--config", type=Path)
    two.add_argument("--pairs", type=int, default=4)
    three = kinds.add_parser("compare")
    three.add_argument("--pairs", type=int, default=200)
    three.add_argument("--changed", type=int, default=60)
    three.add_argument("--arms", type=int, default=10)
    three.add_argument("--first", type=int, default=0)
    three.add_argument("--jobs", type=int, default=1)
    arguments = parser.parse_args()
    try:
        {"arms": arms, "real": real, "compare": compared}[arguments.kind](arguments)
    except UrdfIdentError as error:
        parser.exit(1, f"error: {error}\n")


if __name__ == "__main__":
    main()
