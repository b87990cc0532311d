"""Kinds of random faults of a robot, its drives, its surroundings, its logger and its URDF, for ``random_faults.py``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pinocchio as pin
from fault_kinds import ODD, VARYING, Act, Change, Draw, Make, deviations, effort, efforts, positions, spread, turned
from faults import commanded, interpolated, part, payload, speeds, weight
from scipy.ndimage import gaussian_filter1d

from urdf_ident import Recording, Robot
from urdf_ident.linalg import Array


def _with_velocities(change: Change) -> Act:
    """What changes positions, and velocities that follow them where there are any."""

    def act(log: Recording) -> Recording:
        q = change(np.array(log.position), log)
        v = None if log.velocity is None else np.gradient(q, log.time, axis=0)
        return replace(log, sha256="", position=q, velocity=v)

    return act


def _ratio(draw: Draw) -> tuple[str, Act]:
    j, size, both = draw.joint(), draw.between(1.04, 1.6) ** draw.way(), draw.rng.random() < 0.6
    factors = np.where(np.arange(draw.n) == j, size, 1.0)
    moved = _with_velocities(lambda q, _: q * factors)
    return f"gear ratio of {j} × {size:.2g}" + (" in effort too" if both else ""), (
        lambda log: replace(moved(log), effort=log.effort / factors) if both else moved(log)
    )


def _target(draw: Draw) -> tuple[str, Act]:
    """What a position controller was asked for: ahead of the motion by its lag, and beside it by effort over stiffness."""
    lead, give = draw.between(0.005, 0.1), draw.between(0.002, 0.08)
    scale = np.where(draw.setting.robot.prismatic, 0.2, 1.0)

    def act(log: Recording) -> Recording:
        ahead = interpolated(log.time, log.position, log.time + lead)
        beside = give * scale * log.effort / np.maximum(deviations(log), 1e-9)
        return replace(log, sha256="", position=ahead + gaussian_filter1d(beside, 5, axis=0), velocity=None)

    return f"targets instead of positions, {1e3 * lead:.0f} ms and {give:.2g} rad beside", act


def _soft(draw: Draw) -> tuple[str, Act]:
    j, give = draw.joint(), draw.between(0.003, 0.08)
    give *= 0.2 if draw.setting.robot.prismatic[j] else 1.0

    def change(q: Array, log: Recording) -> Array:
        bend = give / spread(log, j) * gaussian_filter1d(np.asarray(log.effort)[:, j], 5)
        return q + bend[:, None] * (np.arange(draw.n) == j)

    return f"gear of {j} gives by {give:.2g}", _with_velocities(change)


def _part_of_gravity(draw: Draw) -> tuple[str, Act]:
    size = draw.between(0.15, 1.5)
    return f"efforts without {100 * size:.0f} % of the URDF's gravity", efforts(
        lambda x, log: x - size * weight(draw.setting.robot, log)
    )


def _absolute(draw: Draw) -> tuple[str, Act]:
    j = int(draw.rng.integers(draw.n - 1))
    sense = draw.way()
    return f"position {j + 1} counts {j} in", _with_velocities(
        lambda q, _: q + sense * np.outer(q[:, j], np.arange(draw.n) == j + 1)
    )


def _differential(draw: Draw) -> tuple[str, Act]:
    j, ratio = int(draw.rng.integers(draw.n - 1)), draw.between(0.2, 1.0) * draw.way()
    return f"motor {j + 1} also drives {j} by {ratio:.2g}", effort(
        j, lambda x, log: x + ratio * np.asarray(log.effort)[:, j + 1] * spread(log, j) / spread(log, j + 1)
    )


def _progressive(draw: Draw) -> tuple[str, Act]:
    j, size = draw.joint(), draw.between(0.05, 0.8)
    return f"effort {j} grows by {size:.2g} too much", effort(j, lambda x, _: x * (1 + size * np.abs(x) / np.abs(x).max()))


def _overflow(draw: Draw) -> tuple[str, Act]:
    j, size = draw.joint(), draw.rng.uniform(0.5, 0.97)
    return f"effort {j} overflows at {size:.2g}", effort(
        j, lambda x, _: np.mod(x + (most := size * np.abs(x).max()), 2 * most) - most
    )


def _in_turn(draw: Draw) -> tuple[str, Act]:
    late = draw.between(0.003, 0.06)

    def act(log: Recording) -> Recording:
        at = [log.time - late * j for j in range(draw.n)]
        q, tau = (
            np.column_stack([np.interp(t, log.time, column) for t, column in zip(at, np.asarray(x).T, strict=True)])
            for x in (log.position, log.effort)
        )
        return replace(log, sha256="", position=q, effort=tau, velocity=None)

    return f"joints asked one after the other, {1e3 * late:.0f} ms each", act


def _straight(draw: Draw) -> tuple[str, Act]:
    seed, count, seconds = draw.rng.integers(1 << 30), int(draw.rng.integers(2, 12)), draw.between(0.1, 1.0)

    def act(log: Recording) -> Recording:
        kept = np.ones(len(log), dtype=bool)
        for begin in np.random.default_rng(seed).uniform(log.time[0], log.time[-1] - seconds, count):
            kept &= ~((log.time > begin) & (log.time < begin + seconds))
        few = log.time[kept]
        q, tau = (interpolated(few, np.asarray(x)[kept], log.time) for x in (log.position, log.effort))
        v = None if log.velocity is None else interpolated(few, log.velocity[kept], log.time)
        return replace(log, sha256="", position=q, effort=tau, velocity=v)

    return f"{count} gaps of {seconds:.2g} s bridged with straight lines", act


def _two_clocks(draw: Draw) -> tuple[str, Act]:
    size, at = draw.between(1.1, 2.0) ** draw.way(), draw.rng.uniform(0.25, 0.75)

    def act(log: Recording) -> Recording:
        turn = log.time[0] + at * (log.time[-1] - log.time[0])
        return replace(log, sha256="", time=np.minimum(log.time, turn) + size * np.maximum(log.time - turn, 0.0), velocity=None)

    return f"clock × {size:.2g} from {at:.2g} on", act


def _tip_force(robot: Robot, log: Recording, force: Array) -> Array:
    """Torques that balance forces on the last body, (N, 3) in the base's frame [N], shape (N, n)."""
    data, model, out = robot.model.createData(), robot.model, []
    at = pin.SE3(np.eye(3), np.array([0.0, 0.0, 0.1]))
    for q, f in zip(robot.configuration(log.position), force, strict=True):
        pin.computeJointJacobians(model, data, q)
        world = data.oMi[robot.n] * at
        J = pin.getJointJacobian(model, data, robot.n, pin.LOCAL_WORLD_ALIGNED)
        lever = world.translation - data.oMi[robot.n].translation
        out.append(-J[:3].T @ f - J[3:].T @ np.cross(lever, f))
    return np.array(out)


def _sized(log: Recording, extra: Array, size: float) -> Recording:
    """A log with further torques, the largest of them ``size`` of its joint's effort."""
    share = np.sqrt(np.mean(extra**2, axis=0)) / deviations(log)
    return replace(log, sha256="", effort=log.effort + size / max(float(share.max()), 1e-9) * extra)


def _hose(draw: Draw) -> tuple[str, Act]:
    size, place = draw.between(0.05, 1.0), draw.rng.uniform(-0.8, 0.8, 3) + np.array([0.0, 0.0, 1.0])
    robot = draw.setting.robot

    def act(log: Recording) -> Recording:
        data, tips = robot.model.createData(), []
        for q in robot.configuration(log.position):
            pin.forwardKinematics(robot.model, data, q)
            tips.append(data.oMi[robot.n].translation.copy())
        return _sized(log, _tip_force(robot, log, place - np.array(tips)), size)

    return f"hose at the tip {size:.2g}", act


def _worked(draw: Draw) -> tuple[str, Act]:
    size, slow, seed = draw.between(0.05, 1.0), draw.between(0.2, 2.0), draw.rng.integers(1 << 30)
    robot = draw.setting.robot

    def act(log: Recording) -> Recording:
        period = float(np.median(np.diff(log.time)))
        force = gaussian_filter1d(np.random.default_rng(seed).standard_normal((len(log), 3)), slow / 4 / period, axis=0)
        return _sized(log, _tip_force(robot, log, force), size)

    return f"forces at the tip all the time {size:.2g}, {slow:.2g} s", act


def _loaded(draw: Draw) -> tuple[str, Act]:
    share, robot = draw.between(0.05, 1.0), draw.setting.robot
    mass = share * sum(body.mass for body in list(robot.model.inertias)[-3:])
    return f"another tool, {mass:.2g} kg", lambda log: payload(log, robot, mass, part(log, -1, 2))


def _restarted(draw: Draw) -> tuple[str, Act]:
    at, some = draw.rng.uniform(0.2, 0.8), draw.rng.random(draw.n) < draw.rng.uniform(0.1, 1.0)
    some[draw.joint()] = True

    def change(q: Array, log: Recording) -> Array:
        k = int(at * len(log))
        q[k:, some] -= q[k, some]
        return q

    return f"counters of {np.flatnonzero(some).tolist()} start again at {at:.2g}", positions(change)


def _rocking(draw: Draw) -> tuple[str, Act]:
    robot, lean, period = draw.setting.robot, draw.between(0.02, 0.3), draw.between(1.0, 60.0)
    side = draw.rng.uniform(0, 2 * np.pi)

    def act(log: Recording) -> Recording:
        data, rows = robot.model.createData(), []
        unit = [robot.with_gravity(tuple(9.81 * np.eye(3)[k])).model for k in range(2)]
        for t, q in zip(log.time, robot.configuration(log.position), strict=True):
            x = lean * np.sin(2 * np.pi * t / period)
            away = x * np.array([np.cos(side), np.sin(side)])
            rows.append(sum(w * pin.computeGeneralizedGravity(m, data, q) for w, m in zip(away, unit, strict=True)))
        return replace(log, sha256="", effort=log.effort + np.array(rows))

    return f"base rocks by {np.degrees(lean):.1f}° in {period:.2g} s", act


def _stale(draw: Draw) -> tuple[str, Act]:
    most, seed = int(draw.rng.integers(2, 25)), draw.rng.integers(1 << 30)

    def act(log: Recording) -> Recording:
        lengths = np.random.default_rng(seed).integers(1, most + 1, len(log))
        begins = np.minimum(np.cumsum(lengths), len(log) - 1)
        at = begins[np.searchsorted(begins, np.arange(len(log)), side="right").clip(1, len(begins)) - 1]
        at = np.minimum(at, np.arange(len(log)))
        v = None if log.velocity is None else log.velocity[at]
        return replace(log, sha256="", position=log.position[at], effort=log.effort[at], velocity=v)

    return f"rows held for up to {most}", act


def _shifted(draw: Draw) -> tuple[str, Act]:
    order = np.roll(np.arange(draw.n), int(draw.rng.integers(1, draw.n)))
    both = draw.rng.random() < 0.5

    def act(log: Recording) -> Recording:
        q, v = (log.position[:, order], log.velocity) if both else (log.position, log.velocity)
        v = v[:, order] if both and v is not None else v
        return replace(log, sha256="", position=q, velocity=v, effort=np.asarray(log.effort)[:, order])

    return f"{'all columns' if both else 'efforts'} in the order {order.tolist()}", act


def _motor_side(draw: Draw) -> tuple[str, Act]:
    ratios = draw.rng.uniform(1, 3, draw.n) * draw.between(1, 60)
    return "efforts on the motor side", efforts(lambda x, _: x / ratios)


def _two_axes(draw: Draw) -> tuple[str, Act]:
    some = draw.two() if draw.rng.random() < 0.7 else tuple(range(draw.n))
    turn = turned(draw, *some)
    return f"senses of {list(some)}", lambda log: replace(
        log,
        sha256="",
        position=log.position * turn,
        velocity=None if log.velocity is None else log.velocity * turn,
        effort=log.effort * turn,
    )


def _coarse_positions(draw: Draw) -> tuple[str, Act]:
    step = 2 * np.pi / 2 ** draw.rng.uniform(8, 13)
    count = step * np.where(draw.setting.robot.prismatic, 0.1, 1.0)
    return f"positions in steps of {step:.2g}", _with_velocities(lambda q, _: np.round(q / count) * count)


def _coarse_efforts(draw: Draw) -> tuple[str, Act]:
    size = draw.between(0.3, 3.0)
    return f"efforts in steps of {size:.2g}", efforts(lambda x, _: np.round(x / (step := size * x.std(axis=0))) * step)


def _worn(draw: Draw) -> tuple[str, Act]:
    size, some = draw.between(0.2, 2.0), draw.rng.random(draw.n) < 0.5
    return f"friction {size:.2g} more", efforts(lambda x, log: x + size * some * x.std(axis=0) * np.tanh(speeds(log) / 0.02))


def _mixed(draw: Draw) -> tuple[str, Act]:
    share, robot = draw.rng.uniform(0.3, 0.9), draw.setting.robot
    return f"efforts {share:.2g} computed", efforts(
        lambda x, log: (1 - share) * x + share * np.asarray(commanded(log, robot).effort)
    )


def _square_root(draw: Draw) -> tuple[str, Act]:
    j, power = draw.joint(), draw.between(1.1, 2.0) ** draw.way()
    return f"effort {j} to the power of {power:.2g}", effort(
        j, lambda x, _: np.sign(x) * x.std() * (np.abs(x) / x.std()) ** power
    )


_OTHER_EFFORT = {f"effort-{word}" for word in ("scale", "asymmetric", "saturates", "dead-zone", "clipped", "progressive")}
_LATE = {"position-late", "effort-delay", "effort-bandwidth"}

#: As ``fault_kinds.KINDS``.
SETUP_KINDS: dict[str, tuple[Make, set[str], bool]] = {
    "ratio": (_ratio, {"position-scale", "effort-scale", "velocity-scale"}, False),
    "target": (_target, {*_LATE, "position-compliance"}, False),
    "soft": (_soft, {"position-compliance", "position-late", "position-play"}, False),
    "gravity part": (_part_of_gravity, {"effort-without-gravity", "gravity-scale"}, False),
    "absolute": (_absolute, {"position-coupled", "position-scale", "joint-axis"}, False),
    "differential": (_differential, {"effort-crosstalk"}, False),
    "progressive": (_progressive, _OTHER_EFFORT, False),
    "overflow": (_overflow, {*_OTHER_EFFORT, "values-spike"}, False),
    "in turn": (_in_turn, _LATE, False),
    "straight": (_straight, {"channel-frozen", "frozen-too-long", "position-held", "effort-held", "rows-interpolated"}, False),
    "two clocks": (_two_clocks, {"time-scale", "clock-gaps", "clock-uneven", "samples-lost", *VARYING}, False),
    "hose": (_hose, {"contact-spring", "spring", *VARYING}, False),
    "worked": (_worked, VARYING, False),
    "loaded": (_loaded, {*VARYING, *ODD}, True),
    "restarted": (_restarted, {"position-jump", "position-zero", "runs-joined"}, False),
    "rocking": (_rocking, {"gravity-direction", *VARYING}, False),
    "stale": (_stale, {"samples-repeated", "position-held", "effort-held", "channel-frozen", "frozen-too-long"}, False),
    "shifted": (_shifted, {"joints-exchanged", "effort-sign", "position-sign"}, False),
    "motor side": (_motor_side, {"effort-scale", "effort-unit", "gravity-scale", "effort-scale-open"}, False),
    "two axes": (_two_axes, {"axis-sign", "position-sign", "effort-sign", "gravity-direction"}, False),
    "coarse positions": (_coarse_positions, {"position-quantised", "position-held", "channel-frozen", *_LATE}, False),
    "coarse efforts": (_coarse_efforts, {"effort-quantised"}, False),
    "worn": (_worn, {*VARYING, *ODD}, True),
    "mixed": (_mixed, {"effort-commanded", "effort-scale"}, False),
    "power": (_square_root, _OTHER_EFFORT, False),
}


def _tilted(draw: Draw) -> tuple[str, Callable[[Robot], Robot]]:
    lean, side = draw.rng.uniform(0.03, 0.35), draw.rng.uniform(0, 2 * np.pi)
    g = 9.81 * np.array([np.sin(lean) * np.cos(side), np.sin(lean) * np.sin(side), -np.cos(lean)])
    gravity = float(g[0]), float(g[1]), float(g[2])
    return f"gravity {np.degrees(lean):.0f}° off", lambda robot: robot.with_gravity(gravity)


def _moved(robot: Robot, j: int, by: pin.SE3) -> Robot:
    model = robot.model.copy()
    model.jointPlacements[j + 1] = model.jointPlacements[j + 1] * by
    return replace(robot, model=model)


def _origin(draw: Draw) -> tuple[str, Callable[[Robot], Robot]]:
    j, away = int(draw.rng.integers(1, draw.n)), draw.rng.standard_normal(3)
    away *= draw.between(0.01, 0.2) / np.linalg.norm(away)
    return f"axis {j} is {np.round(away, 3)} m elsewhere", lambda robot: _moved(robot, j, pin.SE3(np.eye(3), away))


def _leaning(draw: Draw) -> tuple[str, Callable[[Robot], Robot]]:
    j, way = int(draw.rng.integers(1, draw.n)), draw.rng.standard_normal(3)
    way *= draw.between(0.02, 0.4) / np.linalg.norm(way)
    return f"axis {j} leans {np.round(way, 2)}", lambda robot: _moved(robot, j, pin.SE3(pin.exp3(way), np.zeros(3)))


def _other_size(draw: Draw) -> tuple[str, Callable[[Robot], Robot]]:
    size = draw.between(1.05, 1.6) ** draw.way()

    def act(robot: Robot) -> Robot:
        model = robot.model.copy()
        for j in range(2, robot.n + 1):
            model.jointPlacements[j].translation = size * model.jointPlacements[j].translation
        return replace(robot, model=model)

    return f"URDF's lengths × {size:.2g}", act


_GEOMETRY = {"joint-origin", "joint-axis", "effort-crosstalk", "physics-undecided"}
#: What makes each fault of the URDF, and the ids that name it.
URDF_KINDS: dict[str, tuple[Callable[[Draw], tuple[str, Callable[[Robot], Robot]]], set[str]]] = {
    "gravity": (_tilted, {"gravity-direction"}),
    "origin": (_origin, _GEOMETRY),
    "leaning": (_leaning, {*_GEOMETRY, "position-zero"}),
    "size": (_other_size, {*_GEOMETRY, "time-scale"}),
}
