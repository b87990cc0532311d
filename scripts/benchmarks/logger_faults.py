"""Kinds of random faults of how a log was written, joined and converted, for ``random_faults.py --kinds``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pinocchio as pin
from fault_kinds import ODD, VARYING, Draw, Make
from scipy.ndimage import gaussian_filter1d, uniform_filter1d

from urdf_ident.linalg import Array
from urdf_ident.logs.recording import Recording
from urdf_ident.model.robot import Robot

Act = Callable[[Recording], Recording]


def _columns(log: Recording, change: Callable[[Array], Array], *names: str) -> Recording:
    """A log with some signals changed, where it has them."""
    logged = {name: getattr(log, name) for name in names}
    return replace(log, sha256="", **{name: change(np.array(x)) for name, x in logged.items() if x is not None})


def _rows(log: Recording, at: np.ndarray) -> Recording:
    """Other rows under the first time stamps of the log."""
    some = log.take(at)
    return replace(some, sha256="", time=log.time[0] + np.median(np.diff(log.time)) * np.arange(len(at)))


def _wrapped(draw: Draw) -> tuple[str, Act]:
    j = int(draw.rng.choice(np.flatnonzero(~draw.setting.robot.prismatic)))
    share = draw.rng.uniform(0.05, 0.5)

    def act(log: Recording) -> Recording:
        q = np.array(log.position)
        low, high = q[:, j].min(), q[:, j].max()
        edge = high - share * (high - low)
        q[q[:, j] > edge, j] -= 2 * np.pi
        return replace(log, sha256="", position=q)

    return f"position {j} wraps at {share:.2g} of its range", act


def _averaged(draw: Draw) -> tuple[str, Act]:
    seconds = draw.between(0.03, 0.6)

    def act(log: Recording) -> Recording:
        width = max(2, round(seconds / np.median(np.diff(log.time))))
        back = (width - 1) // 2 if width % 2 else width // 2 - 1
        return _columns(log, lambda x: uniform_filter1d(x, width, axis=0, origin=back), "effort")

    return f"efforts averaged over the last {seconds:.2g} s", act


def _rounded(draw: Draw) -> tuple[str, Act]:
    step = float(draw.rng.choice([0.01, 0.02, 0.05, 0.1]))
    slow = draw.rng.uniform(0.9, 1.1)
    return f"stamps in steps of {step:g} s", lambda log: replace(
        log, sha256="", time=np.round(log.time[0] + slow * (log.time - log.time[0]) / step) * step
    )


def _carriage(draw: Draw) -> tuple[str, Act]:
    robot, size, period = draw.setting.robot, draw.between(0.1, 4.0), draw.between(0.5, 10.0)
    side, up = draw.rng.uniform(0, 2 * np.pi), draw.rng.random() < 0.2

    def act(log: Recording) -> Recording:
        way = np.eye(3)[2] if up else np.array([np.cos(side), np.sin(side), 0.0])
        data, model = robot.model.createData(), robot.with_gravity((float(way[0]), float(way[1]), float(way[2]))).model
        pull = np.array([pin.computeGeneralizedGravity(model, data, q) for q in robot.configuration(log.position)])
        a = size * np.sin(2 * np.pi * log.time / period)
        return replace(log, sha256="", effort=log.effort - a[:, None] * pull)

    return f"base goes to and fro with {size:.2g} m/s² in {period:.2g} s", act


def _milli(draw: Draw) -> tuple[str, Act]:
    size = float(draw.rng.choice([1e3, 1e-3, 1e2, 1e-2]))
    return f"all efforts × {size:g}", lambda log: _columns(log, lambda x: size * x, "effort")


def _twice(draw: Draw) -> tuple[str, Act]:
    ratios = draw.rng.uniform(30, 160, draw.n)
    one = draw.rng.random() < 0.5
    ratios = np.where(np.arange(draw.n) == draw.joint(), ratios, 1.0) if one else ratios
    return f"gear ratios twice {np.round(ratios).tolist()}", lambda log: _columns(log, lambda x: x * ratios, "effort")


def _motor_positions(draw: Draw) -> tuple[str, Act]:
    ratios = draw.rng.uniform(2, 120, draw.n)
    one = draw.rng.random() < 0.5
    ratios = np.where(np.arange(draw.n) == draw.joint(), ratios, 1.0) if one else ratios
    return f"positions of motors {np.round(ratios).tolist()}", lambda log: _columns(
        log, lambda x: x * ratios, "position", "velocity"
    )


def _percent(draw: Draw) -> tuple[str, Act]:
    rated = draw.rng.uniform(0.4, 2.5, draw.n)
    return f"efforts over {np.round(rated, 2).tolist()}", lambda log: _columns(log, lambda x: x / rated, "effort")


def _feedforward(draw: Draw) -> tuple[str, Act]:
    """What a controller asks for: the URDF's torque along its smooth path, and friction that it was told."""
    robot, drag, late = draw.setting.robot, draw.between(0.1, 1.0), draw.rng.uniform(0, 0.01)

    def act(log: Recording) -> Recording:
        step = float(np.median(np.diff(log.time)))
        q = gaussian_filter1d(np.array(log.position), max(1.0, 0.03 / step), axis=0)
        v, a = np.gradient(q, step, axis=0), np.gradient(np.gradient(q, step, axis=0), step, axis=0)
        a = gaussian_filter1d(a, max(1.0, 0.02 / step), axis=0)
        data = robot.model.createData()
        tau = np.array([pin.rnea(robot.model, data, *row) for row in zip(robot.configuration(q), v, a, strict=True)])
        own = 0.2 * np.asarray(log.effort).std(axis=0) * drag * np.tanh(v / 0.05)
        shift = round(late / step)
        return replace(log, sha256="", effort=np.roll(tau + own, shift, axis=0))

    return f"feedforward of the URDF with {drag:.2g} friction", act


def _joined(draw: Draw) -> tuple[str, Act]:
    at, again = draw.rng.uniform(0.2, 0.8), draw.rng.random() < 0.4
    other = draw.setting.learn[int(draw.rng.integers(len(draw.setting.learn)))]

    def act(log: Recording) -> Recording:
        k = int(at * len(log))
        end = log.time[k - 1] + float(np.median(np.diff(log.time)))
        time = np.concatenate([log.time[:k], other.time if again else other.time - other.time[0] + end])
        both = {
            name: None if (x := getattr(log, name)) is None else np.vstack([x[:k], getattr(other, name)])
            for name in ("position", "velocity", "effort")
        }
        return replace(log, sha256="", time=time, **both)  # type: ignore[arg-type]

    return f"{other.name} joined at {at:.2g}" + (", stamps start again" if again else ""), act


def _again(draw: Draw) -> tuple[str, Act]:
    length, times, stamps = draw.between(0.01, 0.2), int(draw.rng.integers(1, 6)), draw.rng.random() < 0.5
    seed = draw.rng.integers(1 << 30)

    def act(log: Recording) -> Recording:
        rng, at = np.random.default_rng(seed), np.arange(len(log))
        block = max(5, round(length * len(log)))
        for _ in range(times):
            begin = int(rng.integers(0, len(at) - block))
            at = np.concatenate([at[: begin + block], at[begin : begin + block], at[begin + block :]])
        return _rows(log, at) if not stamps else replace(_rows(log, at), time=log.time[at])

    return f"{times} blocks of {length:.2g} twice" + (", stamps too" if stamps else ""), act


def _backwards(draw: Draw) -> tuple[str, Act]:
    return "rows from last to first", lambda log: _rows(log, np.arange(len(log))[::-1])


def _relative(draw: Draw) -> tuple[str, Act]:
    some = draw.rng.random(draw.n) < draw.rng.uniform(0.1, 1.0)
    some[draw.joint()] = True
    return f"positions of {np.flatnonzero(some).tolist()} from the start", lambda log: _columns(
        log, lambda x: x - some * x[0], "position"
    )


def _position_twice(draw: Draw) -> tuple[str, Act]:
    i, j = draw.two()

    def copied(x: Array) -> Array:
        x[:, j] = x[:, i]
        return x

    return f"position {j} is that of {i}", lambda log: _columns(log, copied, "position", "velocity")


def _set_to_zero(draw: Draw) -> tuple[str, Act]:
    """An offset that a sensor was set to zero by, at the start of each log."""
    return "efforts set to zero at the start", lambda log: _columns(log, lambda x: x - x[:20].mean(axis=0), "effort")


_SCALED = {"effort-scale", "effort-unit", "gravity-scale", "mass-scale", "effort-scale-open", "effort-beyond-limit"}
_JOINED = {"runs-joined", "position-jump", "clock-stands", "time-backwards", "stamps-repeated", "values-jump", "clock-gaps"}
#: As ``fault_kinds.KINDS``.
LOGGER_KINDS: dict[str, tuple[Make, set[str], bool]] = {
    "wrapped": (_wrapped, {"position-wrapped", "position-jump", "values-jump"}, False),
    "averaged": (_averaged, {"effort-delay", "effort-bandwidth"}, False),
    "rounded": (_rounded, {"clock-uneven", "clock-jitter", "stamps-repeated", "clock-stands", "samples-repeated"}, False),
    "carriage": (_carriage, {"gravity-direction", *VARYING}, False),
    "milli": (_milli, _SCALED, False),
    "gear twice": (_twice, _SCALED, False),
    "motor positions": (_motor_positions, {"position-scale", "position-unit", "velocity-scale", "velocity-unit"}, False),
    "percent": (_percent, _SCALED, False),
    "feedforward": (_feedforward, {"effort-commanded"}, False),
    "joined": (_joined, _JOINED, True),
    "again": (_again, {*_JOINED, "samples-repeated", "time-scale"}, False),
    "backwards": (_backwards, {"effort-sign", "time-backwards"}, False),
    "relative": (_relative, {"position-zero"}, False),
    "position twice": (_position_twice, {"position-twice", "joints-exchanged", "position-scale", "velocity-unrelated"}, False),
    "set to zero": (_set_to_zero, {*VARYING, *ODD}, False),
}


def _placed(robot: Robot, place: Callable[[int, pin.SE3], pin.SE3], body: Callable[[pin.Inertia], pin.Inertia]) -> Robot:
    model = robot.model.copy()
    for j in range(1, robot.n + 1):
        model.jointPlacements[j] = place(j, model.jointPlacements[j])
        model.inertias[j] = body(model.inertias[j])
    return replace(robot, model=model)


def _family(draw: Draw) -> tuple[str, Callable[[Robot], Robot]]:
    """The smaller or larger robot of a series: all lengths by one factor with some spread, masses by its cube."""
    size = draw.between(1.1, 1.6) ** draw.way()
    each = size * np.exp(0.1 * draw.rng.standard_normal(draw.n))

    def act(robot: Robot) -> Robot:
        def body(own: pin.Inertia) -> pin.Inertia:
            return pin.Inertia(size**3 * own.mass, size * own.lever, size**5 * own.inertia)

        return _placed(robot, lambda j, x: pin.SE3(x.rotation, each[j - 1] * x.translation), body)

    return f"URDF of the series' robot × {size:.2g}", act


#: As ``setup_faults.URDF_KINDS``.
LOGGER_URDF_KINDS: dict[str, tuple[Callable[[Draw], tuple[str, Callable[[Robot], Robot]]], set[str]]] = {
    "family": (_family, {"joint-origin", "joint-axis", "effort-crosstalk", "physics-undecided", "time-scale"}),
}
