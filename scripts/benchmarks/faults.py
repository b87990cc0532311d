"""Faults injected in sound logs: what the inspection makes of each, and what it would have cost.

    python scripts/benchmarks/faults.py [--data ../shared/data] [--case ur10e arm6 arm7] [--only WORD ...] [--every N] [--harm]
    python scripts/benchmarks/faults.py --clean [--data ../shared/data] [--only WORD ...]

Each fault is put into every training log (or one of them: ``one-``), inspected, and scored: *named* (a finding with its id),
*undecided* (the id among a finding's candidates), *misdiagnosed* (another cause named, the true one not), *silent*. With
``--harm`` a simple-law model identified in spite of a fault that is not named is judged on clean logs: harmful is more than
1.1 times the clean error.
``--clean`` inspects sound logs instead: all findings that are warnings or refusals.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
from scipy.ndimage import uniform_filter1d

from urdf_ident import Drive, DynamicModel, Recording, Robot, UrdfIdentError, read_recording
from urdf_ident.judgements.judgement import Judgement
from urdf_ident.linalg import Array
from urdf_ident.model.bundled import robot_names, robot_path
from urdf_ident.pipeline.inspect import examine_logs
from urdf_ident.project import parse_project
from urdf_ident.result.scores import predict, score
from urdf_ident.signals.motor_side import joint_side
from urdf_ident.signals.prepare import prepare_logs
from urdf_ident.statistics.accumulate import build_statistics
from urdf_ident.statistics.fit import fit_base

#: Findings that never count as a diagnosis: they are true of some of the sound logs too.
BENIGN = {
    *("note", "position-beyond-limit", "velocity-agrees", "velocity-lag", "clock-uneven", "clock-jitter", "clock-gaps"),
    *("samples-repeated", "stamps-repeated", "samples-lost", "joint-at-rest", "short", "values-bridged"),
}
#: Findings that name the joint at fault: of another joint they are a wrong diagnosis or none.
OF_A_JOINT = {"effort-scale", "effort-scale-open", "position-zero"}
Change = Callable[[Recording, Robot], Recording]


@dataclass(frozen=True)
class Case:
    """A robot, sound logs to learn from, and sound logs to judge on."""

    name: str
    robot: Robot
    learn: list[Recording]
    judge: list[Recording]


@dataclass(frozen=True)
class Fault:
    """One fault: its name, the ids that name it, and what it does to a log or to the robot's description.

    With a joint: what is said of another joint is no diagnosis of it.
    """

    name: str
    ids: frozenset[str]
    log: Change | None = None
    robot: Callable[[Robot], Robot] | None = None
    one: bool = False
    joint: int | None = None


def simulated(
    robot: Robot,
    seed: int,
    *,
    seconds: float = 15.0,
    rate: float = 100.0,
    speed: float = 1.0,
    noise: float = 0.03,
    amplitude: float = 1.0,
    name: str = "",
) -> Recording:
    """A log of the URDF's robot with rotors, friction that is no simple law, encoder steps and torque noise."""
    rng = np.random.default_rng(seed)
    traits = np.random.default_rng(sum(map(ord, robot.name)))
    t = np.arange(round(seconds * rate)) / rate
    q, v, a = np.zeros((3, len(t), robot.n))
    reach = np.where(robot.prismatic, 0.1, 1.0) * amplitude
    for k in range(1, 6):
        w = 2 * np.pi * 0.1 * speed * k
        s, c = rng.uniform(-1, 1, (2, robot.n)) * reach / k
        q += s * np.sin(w * t)[:, None] + c * (1 - np.cos(w * t)[:, None])
        v += w * (s * np.cos(w * t)[:, None] + c * np.sin(w * t)[:, None])
        a += w**2 * (-s * np.sin(w * t)[:, None] + c * np.cos(w * t)[:, None])
    q = q + rng.uniform(-0.5, 0.5, robot.n) * reach
    model, data = robot.model, robot.model.createData()
    tau = np.array([pin.rnea(model, data, *row) for row in zip(robot.configuration(q), v, a, strict=True)])
    size = usual_torque(robot)
    fc, fv, asym = 0.3 * size * traits.uniform(0.3, 1, robot.n), 0.2 * size * traits.uniform(0.3, 1, robot.n), 0.05 * size
    rotor = 0.3 * np.abs(pin.crba(model, data, robot.configuration(np.zeros((1, robot.n)))[0]).diagonal())
    tau = (
        tau + rotor * a + (fc + 0.02 * np.abs(tau)) * np.tanh(v / 0.01) * (1 + 0.2 * np.exp(-((v / 0.1) ** 2))) + fv * v + asym
    )
    tau = tau + noise * np.maximum(tau.std(axis=0), 1e-9) * rng.standard_normal(tau.shape)
    measured = np.round(q / 2e-5) * 2e-5
    return Recording(
        name or f"sim{seed}", robot.joints, t, measured, velocity=v + 1e-4 * rng.standard_normal(v.shape), effort=tau
    )


def usual_torque(robot: Robot) -> Array:
    """Root mean square of the rigid torques over random states: the same for every log of a robot, shape (n,) [N·m or N]."""
    rng = np.random.default_rng(0)
    data, reach = robot.model.createData(), np.where(robot.prismatic, 0.1, 1.0)
    q, v, a = rng.uniform(-1, 1, (3, 50, robot.n)) * reach
    rows = zip(robot.configuration(q), v, a, strict=True)
    square = np.mean([pin.rnea(robot.model, data, *row) ** 2 for row in rows], axis=0)
    return np.asarray(np.sqrt(square) + 0.02 * np.sqrt(np.mean(square)))


def cases(folder: Path, names: Sequence[str]) -> Iterator[Case]:
    """The robots and their sound logs."""
    if "ur10e" in names:
        robot, logs = ur10e(folder)
        yield Case("ur10e", robot, logs[::2][:3], logs[1::2])
    if "arm6" in names:
        robot = Robot.from_urdf(robot_path("generic_6axis"))
        yield Case("arm6", robot, [simulated(robot, k) for k in range(3)], [simulated(robot, k) for k in (7, 8)])
    if "arm7" in names:
        robot = Robot.from_urdf(folder / "panda" / "panda.urdf", lock={"panda_finger_joint1": 0.0, "panda_finger_joint2": 0.0})
        yield Case("arm7", robot, [simulated(robot, k) for k in range(3)], [simulated(robot, k) for k in (7, 8)])


def ur10e(folder: Path) -> tuple[Robot, list[Recording]]:
    """The real logs in N·m; the controller's target torque beside them."""
    groups = ("position", "velocity", "effort", "effort_target", "torque_target")
    columns = {"time": 0, **{name: list(range(1 + 6 * k, 7 + 6 * k)) for k, name in enumerate(groups)}}
    gain = [11.976, 11.976, 9.8386, 10.763, 10.763, 10.763]
    project = parse_project({"drive": {"gain": gain}, "log": {"columns": columns, "units": {"effort": "A"}}})
    robot = project.build_robot(folder / "ur10e" / "ur10e.urdf")
    drive, layout = project.build_drive(robot), project.log
    return robot, [joint_side(read_recording(path, robot, layout), drive) for path in sorted((folder / "ur10e").glob("*.csv"))]


def changed(log: Recording, **columns: tuple[object, object]) -> Recording:
    """A log with some columns of some signals replaced: name=(index, values)."""
    values = {}
    for name, (index, value) in columns.items():
        array = getattr(log, name)
        if array is not None:
            values[name] = np.array(array)
            values[name][index] = value
    return replace(log, sha256="", **values)


def part(log: Recording, begin: float, end: float) -> np.ndarray:
    """Rows between two shares of the log's length, as a mask."""
    share = (log.time - log.time[0]) / (log.time[-1] - log.time[0])
    return (share >= begin) & (share < end)


def part_of(name: str, begin: float, end: float, joints: int | slice, make: Callable[[Array, Array], Array]) -> Change:
    """Replaces a part of a signal by a function of that part and of the whole signal's standard deviations."""

    def change(log: Recording, _: Robot) -> Recording:
        rows, signal = part(log, begin, end), getattr(log, name)
        return changed(log, **{name: ((rows, joints), make(signal[rows, joints], signal.std(axis=0)[joints]))})

    return change


def speeds(log: Recording) -> Array:
    """Velocities, logged or differentiated."""
    return log.velocity if log.velocity is not None else np.gradient(log.position, log.time, axis=0)


def carrying(share: float, begin: float, end: float) -> Change:
    """Adds a mass, a share of the arm's, from one share of the log's length to another."""

    def change(log: Recording, robot: Robot) -> Recording:
        return payload(log, robot, share * sum(x.mass for x in list(robot.model.inertias)[1:]), part(log, begin, end))

    return change


def payload(log: Recording, robot: Robot, mass: float, rows: np.ndarray) -> Recording:
    """A mass at the last link's frame, carried during some rows only."""
    model = robot.model.copy()
    model.inertias[robot.n] = pin.Inertia(mass, np.array([0.0, 0.0, 0.1]), 1e-3 * mass * np.eye(3))
    for k in range(1, robot.n):
        model.inertias[k] = pin.Inertia.Zero()
    data, v = model.createData(), speeds(log)
    a = np.gradient(uniform_filter1d(v, 5, axis=0), log.time, axis=0)
    extra = np.array([pin.rnea(model, data, *row) for row in zip(robot.configuration(log.position), v, a, strict=True)])
    return replace(log, sha256="", effort=log.effort + rows[:, None] * extra)


def faults(robot: Robot) -> Iterator[Fault]:
    """All faults, in several strengths."""
    kinds = (
        *(_senses_and_orders, _zeros_and_times, _gravity_and_scales, _late_and_missing),
        *(_coarse_and_false, _changing, _of_one_log),
    )
    yield from (fault for kind in kinds for fault in kind(robot.n))
    if robot.n == 6:
        other = robot_path("puma560" if robot.name == "ur10e" else "ur10e")
        ids = frozenset({"physics-undecided", "model-mismatch"})
        yield Fault("another robot's URDF", ids, robot=lambda _: renamed(Robot.from_urdf(other), robot))


def of_logs(name: str, ids: str, change: Change, **options: Any) -> Fault:
    """A fault of logs; ids of the findings that name it, with blanks between them."""
    return Fault(name, frozenset(ids.split()), change, **options)


def having(**signals: Callable[[Recording], Array | None]) -> Change:
    """Replaces signals by functions of the log."""
    return lambda log, _: replace(log, sha256="", **{name: make(log) for name, make in signals.items()})


def scaled(factors: Array, *names: str) -> Change:
    """Multiplies signals, where the log has them, by factors of the joints."""

    def change(log: Recording, _: Robot) -> Recording:
        logged = {name: getattr(log, name) for name in names}
        return replace(log, sha256="", **{name: x * factors for name, x in logged.items() if x is not None})

    return change


def _senses_and_orders(n: int) -> Iterator[Fault]:
    one = 1.0 - 2.0 * np.eye(n)  # per joint, the factors that turn it
    for j in range(n):
        yield of_logs(f"effort sign {j}", "effort-sign", scaled(one[j], "effort"))
    yield of_logs("effort sign all", "effort-sign", scaled(-np.ones(n), "effort"))
    yield of_logs("effort sign two", "effort-sign", scaled(one[1] * one[n - 2], "effort"))
    for j in (0, 1, 2, n - 2):
        yield of_logs(f"position sign {j}", "position-sign axis-sign", scaled(one[j], "position", "velocity"))
    yield of_logs("axis sense 1", "axis-sign position-sign", scaled(one[1], "position", "velocity", "effort"))
    yield of_logs("velocity sign 2", "velocity-sign", scaled(one[2], "velocity"))
    for i, j in ((0, 1), (1, 2), (2, 3), (n - 2, n - 1), (0, n - 1)):
        order = np.arange(n)
        order[[i, j]] = j, i
        q, v, tau = (
            lambda log, name=name, order=order: getattr(log, name)[:, order] for name in ("position", "velocity", "effort")
        )
        yield of_logs(f"efforts exchanged {i} {j}", "joints-exchanged", having(effort=tau))
        if i:
            ids = "joints-exchanged velocities-exchanged"
            yield of_logs(f"positions exchanged {i} {j}", ids, having(position=q, velocity=lambda _: None))
            yield of_logs(f"joints exchanged {i} {j}", "joints-exchanged", having(position=q, velocity=v, effort=tau))


def _zeros_and_times(n: int) -> Iterator[Fault]:
    for j in (1, 2, 3):
        for zero in (0.1, 0.3, -0.8, np.pi / 2):
            moved = having(position=lambda log, j=j, zero=zero: log.position + zero * np.eye(n)[j])
            yield of_logs(f"zero {j} {zero:.2f}", "position-zero", moved, joint=j)
    for k in (0.5, 0.8, 0.9, 1.1, 1.25, 2.0, 1e3):
        yield of_logs(f"time × {k}", "time-scale time-unit", having(time=lambda log, k=k: log.time * k))
    for k in (0.5, 0.8, 1.25, 2.0):
        change = having(time=lambda log, k=k: log.time * k, velocity=lambda _: None)
        yield of_logs(f"time × {k} without velocities", "time-scale", change)
    zeros = -np.pi / 2 * (np.eye(n)[1] + np.eye(n)[3])
    change = having(time=lambda log: log.time * 0.8, velocity=lambda _: None, position=lambda log: log.position + zeros)
    yield of_logs("time × 0.8, zeros missing", "time-scale position-zero", change)


def _gravity_and_scales(n: int) -> Iterator[Fault]:
    for words, g in (
        ("up", (0, 0, 9.81)),
        ("x", (9.81, 0, 0)),
        ("-y", (0, -9.81, 0)),
        ("tilt 5°", (0.855, 0, -9.773)),
        ("tilt 30°", (0, 4.905, -8.496)),
        ("zero", (0, 0, 0)),
    ):
        yield Fault(f"gravity {words}", frozenset({"gravity-direction"}), robot=lambda robot, g=g: robot.with_gravity(g))
    for k in (0.01, 1e-3, 0.1):
        yield of_logs(f"efforts × {k}", "effort-scale effort-unit", scaled(k * np.ones(n), "effort"))
    for j in (0, 1, 2, 3, n - 1):
        for k in (0.5, 0.8, 1.25, 2.0, 0.01):
            yield of_logs(f"effort {j} × {k}", "effort-scale", scaled(np.where(np.arange(n) == j, k, 1.0), "effort"), joint=j)


def _late_and_missing(n: int) -> Iterator[Fault]:
    yield of_logs("effort commanded", "effort-commanded", commanded)
    yield of_logs(
        "effort without gravity",
        "effort-without-gravity",
        lambda log, robot: replace(log, sha256="", effort=log.effort - weight(robot, log)),
    )
    for late in (0.02, 0.05, 0.1):
        change = having(effort=lambda log, d=late: interpolated(log.time, log.effort, log.time - d))
        yield of_logs(f"efforts {1e3 * late:.0f} ms late", "effort-delay", change)
    change = having(position=lambda log: interpolated(log.time, log.position, log.time - 0.05))
    yield of_logs("positions 50 ms late", "effort-delay velocity-lag", change)
    yield of_logs("efforts behind 2 Hz", "effort-delay effort-bandwidth", lambda log, _: smoothed(log, 2.0))
    wrapped = having(position=lambda log: np.angle(np.exp(1j * (log.position + 2.8))))
    yield of_logs("positions wrapped", "position-wrapped", wrapped)
    stuck = part_of("effort", 0.4, 0.7, 1, lambda x, _: x[0])
    yield of_logs("effort stuck 30 %", "channel-frozen frozen-too-long", stuck)
    yield of_logs("position stuck 10 %", "channel-frozen", part_of("position", 0.5, 0.6, 2, lambda x, _: x[0]))
    yield of_logs("effort dead", "effort-dead", lambda log, _: changed(log, effort=((slice(None), 1), 0.0)))


def _coarse_and_false(n: int) -> Iterator[Fault]:
    def clipped(log: Recording, share: float) -> Array:
        most = share * np.abs(log.effort).max(axis=0)
        return np.clip(log.effort, -most, most)

    def coarse(log: Recording) -> Array:
        step = 0.5 * log.effort.std(axis=0)
        return np.round(log.effort / step) * step

    for share in (0.3, 0.6):
        yield of_logs(f"effort clipped {share}", "effort-clipped", having(effort=partial(clipped, share=share)))
    yield of_logs("effort in coarse steps", "effort-quantised", having(effort=coarse))
    false = "values-spike values-sentinel channel-missing"
    yield of_logs(
        "sentinels -999",
        f"{false} values-impossible",
        lambda log, _: changed(log, effort=((slice(5, None, 40), 2), -999.0)),
    )
    yield of_logs("zeros in effort", false, lambda log, _: changed(log, effort=((slice(5, None, 15), slice(None)), 0.0)))
    yield of_logs("degrees", "position-unit velocity-unit", having(position=lambda log: np.degrees(log.position)))
    yield of_logs("time reversed", "time-backwards clock-stands", having(time=lambda log: log.time[::-1]))


def _changing(n: int) -> Iterator[Fault]:
    ids = "not-stationary payload-changes contact effort-drift"

    def drift(log: Recording, size: Array | float) -> Array:
        """From zero at the log's begin to so many standard deviations of the effort at its end."""
        return size * np.linspace(0, 1, len(log))[:, None] * log.effort.std(axis=0)

    for begin, end, mass in ((0.5, 1.0, 0.1), (0.3, 0.6, 0.3)):
        yield of_logs(f"payload {mass} of the arm from {begin} to {end}", ids, carrying(mass, begin, end))
    for size in (0.3, 1.0):
        touched = part_of("effort", 0.45, 0.55, slice(None), lambda x, std, size=size: x + size * std)
        yield of_logs(f"contact {size} for a tenth", ids, touched)
        change = having(effort=lambda log, size=size: log.effort + drift(log, size * np.eye(n)[2]))
        yield of_logs(f"offset drifts {size}", ids, change)
    change = having(effort=lambda log: log.effort + drift(log, 0.5) * np.tanh(speeds(log) / 0.05))
    yield of_logs("friction drifts", ids, change)
    change = having(effort=lambda log: log.effort * (1 - 0.3 * np.linspace(0, 1, len(log))[:, None]))
    yield of_logs("gain drifts", f"{ids} effort-scale", change)


def _of_one_log(n: int) -> Iterator[Fault]:
    ids, second = "log-differs logs-disagree", np.eye(n)[1]
    for name, also, change in (
        ("effort sign 1", "effort-sign", scaled(1 - 2 * second, "effort")),
        ("efforts × 0.7", "effort-scale", scaled(0.7 * np.ones(n), "effort")),
        ("offset", "", having(effort=lambda log: log.effort + log.effort.std(axis=0) * second)),
        ("payload", "", carrying(0.2, 0.0, 2.0)),
        ("zero 1", "position-zero", having(position=lambda log: log.position + 0.4 * second)),
    ):
        yield of_logs(f"one log {name}", f"{ids} {also}", change, one=True)


def renamed(other: Robot, robot: Robot) -> Robot:
    """Another robot under this one's joint names, as a wrong URDF with usual names would be."""
    text = other.urdf
    for old, new in zip(other.order, robot.order, strict=True):
        text = text.replace(f'joint name="{old}"', f'joint name="{new}"')
    return Robot.from_urdf(text)


def interpolated(t: Array, x: Array, at: Array) -> Array:
    """Columns at other times."""
    return np.column_stack([np.interp(at, t, column) for column in x.T])


def smoothed(log: Recording, cutoff: float) -> Recording:
    """Efforts behind a causal first-order filter."""
    rate = 1 / np.median(np.diff(log.time))
    share = 1 - np.exp(-2 * np.pi * cutoff / rate)
    out = np.array(log.effort)
    for k in range(1, len(out)):
        out[k] = out[k - 1] + share * (out[k] - out[k - 1])
    return replace(log, sha256="", effort=out)


def commanded(log: Recording, robot: Robot) -> Recording:
    """The rigid torque of the URDF in place of the measured one."""
    if log.torque_target is not None:
        return replace(log, sha256="", effort=log.torque_target)
    v = speeds(log)
    a, model, data = np.gradient(v, log.time, axis=0), robot.model, robot.model.createData()
    rows = zip(robot.configuration(log.position), v, a, strict=True)
    return replace(log, sha256="", effort=np.array([pin.rnea(model, data, *row) for row in rows]))


def weight(robot: Robot, log: Recording) -> Array:
    """The URDF's gravity torques, shape (N, n)."""
    data = robot.model.createData()
    return np.array([pin.computeGeneralizedGravity(robot.model, data, q) for q in robot.configuration(log.position)])


def verdict(found: dict[str, set[str]], ids: frozenset[str]) -> str:
    """named, undecided, misdiagnosed or silent."""
    if found["named"] & ids:
        return "named"
    if found["candidates"] & ids:
        return "undecided"
    return "misdiagnosed" if found["named"] - BENIGN else "silent"


def inspected(case: Case, logs: list[Recording], robot: Robot, joint: int | None = None) -> dict[str, set[str]]:
    """Ids of all findings, and of all candidates, those of other joints than a given one left out."""
    project = parse_project({})
    try:
        reports = examine_logs(logs, robot, Drive.build(robot.n), project.signal_config())
    except UrdfIdentError as error:
        return {"named": {type(error).__name__}, "candidates": set(), "refused": {"error"}}
    items = [item for report in reports for item in report.findings]
    own = "" if joint is None else robot.joints[joint]

    def of_another(item: Judgement) -> bool:
        return bool(own) and item.id in OF_A_JOINT and item.joint != own and own not in item.message

    known = [item for item in items if item.severity != "info" and item.id not in ("physics-undecided", "model-mismatch")]
    said = {f"{item.id} of another" if of_another(item) else item.id for item in known}
    doubts = {item.id for item in items if item.id in ("physics-undecided", "model-mismatch")}
    return {
        "named": said,
        "candidates": {c for item in items if not of_another(item) for c in item.candidates} | doubts,
        "refused": {item.id for item in items if item.severity == "refused"},
    }


def harm(case: Case, logs: list[Recording], robot: Robot) -> float:
    """Error on clean logs of a simple-law model identified in spite of everything [N·m]; inf where nothing comes out."""
    project = parse_project({"validation": {"score_cutoff": 8.0}})
    try:
        model = DynamicModel(robot, friction=["viscous", "coulomb", "offset"], rotor_inertia=True)
        prepared = prepare_logs(logs, robot, model.drive, project.signal_config(), force=True)
        base = model.base()
        theta = np.zeros(len(model.names))
        theta[base.independent] = fit_base(build_statistics(model, prepared), base).params
        judges = prepare_logs(case.judge, robot, model.drive, project.signal_config(), force=True)
        errors = [score(log, predict(model, theta, log), 8.0, measured_only=True).rmse for log in judges]
    except (UrdfIdentError, np.linalg.LinAlgError):
        return np.inf
    return float(np.sqrt(np.mean(np.square(errors), axis=0)).mean())


def sound(folder: Path) -> Iterator[tuple[str, Robot, list[Recording]]]:
    """Sound logs: the real ones, one by one and together, and simulated ones of all bundled robots."""
    robot, logs = ur10e(folder)
    yield "ur10e all", robot, logs
    for log in logs:
        yield f"ur10e {log.name}", robot, [log]
    panda = Robot.from_urdf(folder / "panda" / "panda.urdf", lock={"panda_finger_joint1": 0.0, "panda_finger_joint2": 0.0})
    columns = {"time": 0, "position": list(range(1, 8)), "velocity": list(range(8, 15)), "effort": list(range(15, 22))}
    layout = parse_project({"log": {"columns": columns}}).log
    yield "panda", panda, [read_recording(folder / "panda" / "panda_exciting.csv", panda, layout)]
    robots = [*(Robot.from_urdf(robot_path(name)) for name in robot_names()), panda]
    kinds = {
        "fast": {"speed": 1.5},
        "usual": {},
        "slow": {"speed": 0.25, "seconds": 30.0},
        "small": {"amplitude": 0.2},
        "noisy": {"noise": 0.2},
        "short": {"seconds": 7.0},
        "crawl": {"speed": 0.1, "seconds": 40.0},
    }
    for robot in robots:
        for k, (kind, options) in enumerate(kinds.items()):
            yield f"{robot.name} {kind}", robot, [simulated(robot, 100 + k, **options)]  # type: ignore[arg-type]


def clean(folder: Path, only: Sequence[str]) -> None:
    """All warnings and refusals of sound logs."""
    count = Counter[str]()
    for name, robot, logs in sound(folder):
        if not any(word in name for word in only):
            continue
        start = time.process_time()
        reports = examine_logs(logs, robot, Drive.build(robot.n), parse_project({}).signal_config())
        seconds = time.process_time() - start
        items = [
            x for report in reports for x in report.findings if x.severity in ("warning", "refused") and x.id not in BENIGN
        ]
        count["logs"] += len(logs)
        count.update({x.severity for x in items})
        print(
            f"{name:32s} {seconds:5.1f} s  " + "; ".join(f"{x.severity} {x.id} {x.joint} {x.message}" for x in items),
            flush=True,
        )
    print(dict(count))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(__file__).parents[2].parent / "shared" / "data")
    parser.add_argument("--case", nargs="*", default=["ur10e", "arm6", "arm7"])
    parser.add_argument("--only", nargs="*", default=[""], help="words of which a fault's or log's name holds one")
    parser.add_argument("--every", type=int, default=1, help="only every so many faults of each robot")
    parser.add_argument("--harm", action="store_true")
    parser.add_argument("--clean", action="store_true")
    arguments = parser.parse_args()
    if arguments.clean:
        clean(arguments.data, arguments.only)
        return
    counts = Counter[str]()
    for case in cases(arguments.data, arguments.case):
        best = harm(case, case.learn, case.robot) if arguments.harm else np.nan
        usual = inspected(case, case.learn, case.robot)["named"]
        for fault in list(faults(case.robot))[:: arguments.every]:
            if not any(word in fault.name for word in arguments.only):
                continue
            logs = [
                log if fault.log is None or (fault.one and k) else fault.log(log, case.robot)
                for k, log in enumerate(case.learn)
            ]
            robot = case.robot if fault.robot is None else fault.robot(case.robot)
            start = time.process_time()
            found = inspected(case, logs, robot, fault.joint)
            found["named"] -= usual - fault.ids
            seconds = time.process_time() - start
            word = verdict(found, fault.ids)
            cost = harm(case, logs, robot) / best if arguments.harm and word != "named" else np.nan
            if cost < 1.1 and word != "named":
                word = "harmless"
            counts[word] += 1
            said = ", ".join(sorted(found["named"] - BENIGN)) or "-"
            doubts = ", ".join(sorted(found["candidates"])) or "-"
            print(f"{case.name:6s} {fault.name:40s} {word:13s} {cost:8.2f} {seconds:5.1f} s  {said} | {doubts}", flush=True)
    total = sum(counts.values())
    print(f"{total} faults: " + ", ".join(f"{word} {count}" for word, count in counts.most_common()))
    harmful = max(total - counts["harmless"], 1)
    print(
        ", ".join(f"{word} {100 * counts[word] / harmful:.1f} %" for word in ("named", "undecided", "misdiagnosed", "silent"))
    )


if __name__ == "__main__":
    main()
