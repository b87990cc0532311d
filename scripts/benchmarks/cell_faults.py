"""Kinds of random faults of a production cell: tools, drives, field bus and logger, for ``random_faults.py --kinds cell``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from zlib import crc32

import numpy as np
import pinocchio as pin
from fault_kinds import ODD, VARYING, Draw, Make, changed_effort, spread
from faults import part, payload, smoothed

from urdf_ident.linalg import Array
from urdf_ident.logs.recording import Recording
from urdf_ident.signals.filters import lowpass

Act = Callable[[Recording], Recording]


def _of_log(seed: int, log: Recording) -> np.random.Generator:
    """Random numbers that differ from log to log."""
    return np.random.default_rng([seed, crc32(log.name.encode())])


def _period(log: Recording) -> float:
    return float(np.median(np.diff(log.time)))


def _tools(draw: Draw) -> tuple[str, Act]:
    robot, seed, share = draw.setting.robot, int(draw.rng.integers(1 << 30)), draw.between(0.1, 1.5)
    wrist = sum(body.mass for body in list(robot.model.inertias)[-3:])
    return f"tools of up to {share * wrist:.2g} kg, another in each log", lambda log: payload(
        log, robot, share * wrist * float(_of_log(seed, log).uniform(0, 1)), part(log, -1, 2)
    )


def _gripped(draw: Draw) -> tuple[str, Act]:
    robot, share, at = draw.setting.robot, draw.between(0.1, 1.5), draw.rng.uniform(0.2, 0.8)
    mass = share * sum(body.mass for body in list(robot.model.inertias)[-3:])
    return f"gripper takes {mass:.2g} kg at {at:.2g}", lambda log: payload(log, robot, mass, part(log, at, 2))


def _gravity_twice(draw: Draw) -> tuple[str, Act]:
    robot, size = draw.setting.robot, draw.between(0.2, 1.0)

    def act(log: Recording) -> Recording:
        data = robot.model.createData()
        weight = [pin.computeGeneralizedGravity(robot.model, data, row) for row in robot.configuration(log.position)]
        return replace(log, sha256="", effort=log.effort + size * np.array(weight))

    return f"{size:.2g} of the URDF's gravity added to the efforts", act


def _corners(draw: Draw) -> tuple[str, Act]:
    corners = np.array([draw.between(1.0, 20.0) for _ in range(draw.n)])

    def act(log: Recording) -> Recording:
        each = [np.asarray(smoothed(log, float(corner)).effort)[:, j] for j, corner in enumerate(corners)]
        return replace(log, sha256="", effort=np.stack(each, axis=1))

    return f"efforts behind {np.round(corners, 1).tolist()} Hz", act


def _smooth_efforts(draw: Draw) -> tuple[str, Act]:
    cutoff = draw.between(0.4, 5.0)
    return f"efforts low-passed without delay at {cutoff:.2g} Hz", lambda log: replace(
        log, sha256="", effort=lowpass(np.asarray(log.effort), 1 / _period(log), cutoff, order=2)
    )


def _motor_units(draw: Draw) -> tuple[str, Act]:
    j, ratio = draw.joint(), draw.between(20.0, 160.0)
    return f"effort {j} on the motor side, 1 / {ratio:.3g}", lambda log: changed_effort(
        log, j, np.asarray(log.effort)[:, j] / ratio
    )


def _receiver(draw: Draw) -> tuple[str, Act]:
    """Stamps of arrival: single packets wait for a moment, and those behind them arrive with them."""
    seconds, share, seed = draw.between(0.01, 0.3), draw.between(0.005, 0.1), int(draw.rng.integers(1 << 30))

    def act(log: Recording) -> Recording:
        own = np.random.default_rng(seed)
        waits = np.where(own.random(len(log)) < share, own.exponential(seconds, len(log)), 0.0)
        return replace(log, sha256="", time=np.maximum.accumulate(log.time + waits) + 1e-6 * np.arange(len(log)))

    return f"{100 * share:.2g} % of the packets wait {1e3 * seconds:.0f} ms", act


def _stuck_position(draw: Draw) -> tuple[str, Act]:
    j, seconds, at = draw.joint(), draw.between(0.3, 3.0), draw.rng.uniform(0.1, 0.7)

    def act(log: Recording) -> Recording:
        begin = int(at * len(log))
        q = np.array(log.position)
        q[begin : begin + round(seconds / _period(log)), j] = q[begin, j]
        return replace(log, sha256="", position=q)

    return f"position {j} stands still for {seconds:.2g} s", act


def _held_efforts(draw: Draw) -> tuple[str, Act]:
    rate = draw.between(3.0, 30.0)

    def act(log: Recording) -> Recording:
        at = np.searchsorted(log.time, np.floor((log.time - log.time[0]) * rate) / rate + log.time[0])
        return replace(log, sha256="", effort=np.asarray(log.effort)[at])

    return f"efforts held at {rate:.2g} Hz", act


def _other_run(draw: Draw) -> tuple[str, Act]:
    logs = draw.setting.learn

    def act(log: Recording) -> Recording:
        other = logs[(next(k for k, own in enumerate(logs) if own.name == log.name) + 1) % len(logs)]
        start = other.time[0] + (log.time - log.time[0]) % (other.time[-1] - other.time[0])
        efforts = np.stack([np.interp(start, other.time, x) for x in np.asarray(other.effort).T], axis=1)
        return replace(log, sha256="", effort=np.roll(efforts, len(log) // 3 if other is log else 0, axis=0))

    return "efforts of another run", act


def _zeroed(draw: Draw) -> tuple[str, Act]:
    size, seed = draw.between(0.1, 2.0), int(draw.rng.integers(1 << 30))

    def act(log: Recording) -> Recording:
        offset = _of_log(seed, log).uniform(-size, size, draw.n) * np.asarray(log.effort).std(axis=0)
        return replace(log, sha256="", effort=log.effort + offset)

    return f"sensors zeroed before each log, {size:.2g}", act


def _gaps_as_zero(draw: Draw) -> tuple[str, Act]:
    j, share, burst = draw.joint(), draw.between(0.01, 0.3), int(draw.rng.integers(1, 60))
    seed, whole = int(draw.rng.integers(1 << 30)), draw.rng.random() < 0.5

    def act(log: Recording) -> Recording:
        tau, own = np.array(log.effort), np.random.default_rng(seed)
        for begin in own.integers(0, len(log), max(1, round(share * len(log) / burst))):
            tau[begin : begin + burst, slice(None) if whole else j] = 0.0
        return replace(log, sha256="", effort=tau)

    return f"{'all efforts' if whole else f'effort {j}'} zero in {share:.2g} of the rows, {burst} at a time", act


def _gain_step(draw: Draw) -> tuple[str, Act]:
    j, at = draw.joint(), draw.rng.uniform(0.2, 0.8)
    factor = -1.0 if draw.rng.random() < 0.3 else draw.between(1.1, 3.0) ** draw.way()
    return f"effort {j} × {factor:.2g} from {at:.2g} on", lambda log: changed_effort(
        log, j, np.asarray(log.effort)[:, j] * np.where(part(log, at, 2), factor, 1.0)
    )


def _derated(draw: Draw) -> tuple[str, Act]:
    """A drive that is too warm limits its current in a part of the log."""
    j, limit = draw.joint(), draw.rng.uniform(0.2, 0.8)
    begin = draw.rng.uniform(0.1, 0.6)

    def act(log: Recording) -> Recording:
        x = np.asarray(log.effort)[:, j]
        most = limit * np.abs(x).max()
        return changed_effort(log, j, np.where(part(log, begin, begin + 0.3), np.clip(x, -most, most), x))

    return f"effort {j} limited to {limit:.2g} for a while", act


def _bit_errors(draw: Draw) -> tuple[str, Act]:
    j, share, bits = draw.joint(), draw.between(0.001, 0.05), draw.setting.robot.prismatic
    seed, position = int(draw.rng.integers(1 << 30)), draw.rng.random() < 0.5

    def act(log: Recording) -> Recording:
        own = np.random.default_rng(seed)
        x = np.array(log.position if position else log.effort)
        step = 2 * np.pi / 2**16 * (0.1 if bits[j] else 1.0) if position else np.abs(x[:, j]).max() / 2**12
        rows = own.random(len(log)) < share
        flips = 2 ** own.integers(0, 16 if position else 12, rows.sum())
        x[rows, j] = (np.round(x[rows, j] / step).astype(int) ^ flips) * step
        return replace(log, sha256="", **{"position" if position else "effort": x}, **({"velocity": None} if position else {}))

    return f"bit errors in {100 * share:.2g} % of {'positions' if position else 'efforts'} {j}", act


def _coarse_position(draw: Draw) -> tuple[str, Act]:
    j, step = draw.joint(), 2 * np.pi / 2 ** draw.rng.uniform(7, 12)
    step *= 0.1 if draw.setting.robot.prismatic[j] else 1.0

    def act(log: Recording) -> Recording:
        q: Array = np.array(log.position)
        q[:, j] = np.round(q[:, j] / step) * step
        return replace(log, sha256="", position=q, velocity=None)

    return f"position {j} in steps of {step:.2g}", act


def _ticking(draw: Draw) -> tuple[str, Act]:
    """The drive's pulses, or a neighbour's, in the current of one joint at each turn of the motor."""
    j, size, hertz = draw.joint(), draw.between(0.1, 1.0), draw.between(0.3, 30.0)
    return f"effort {j} hums {size:.2g} at {hertz:.2g} Hz", lambda log: changed_effort(
        log, j, np.asarray(log.effort)[:, j] + size * spread(log, j) * np.sin(2 * np.pi * hertz * log.time)
    )


_GAPS = {"values-sentinel", "values-missing", "values-spike", "channel-frozen", "frozen-too-long", "effort-dead-zone"}
_UNIT = {"effort-scale", "effort-unit", "gravity-scale", "effort-scale-open", "effort-quantised"}
_LATE = {"effort-delay", "effort-bandwidth", "position-bandwidth"}
#: As ``fault_kinds.KINDS``.
CELL_KINDS: dict[str, tuple[Make, set[str], bool]] = {
    "tools": (_tools, {*VARYING, *ODD}, False),
    "gripped": (_gripped, {*VARYING, *ODD}, False),
    "gravity twice": (_gravity_twice, {"effort-without-gravity", "gravity-scale", "time-scale"}, False),
    "corners": (_corners, _LATE, False),
    "smooth efforts": (_smooth_efforts, {"effort-bandwidth", "effort-held"}, False),
    "motor units": (_motor_units, _UNIT, False),
    "receiver": (_receiver, {"clock-uneven", "clock-jitter", "clock-gaps", "clock-stands"}, False),
    "stuck position": (_stuck_position, {"channel-frozen", "frozen-too-long", "position-held", "position-jump"}, False),
    "held efforts": (_held_efforts, {"effort-held", "channel-frozen", "frozen-too-long", "samples-repeated", *_LATE}, False),
    "other run": (_other_run, {"physics-undecided", "effort-commanded", *ODD}, False),
    "zeroed": (_zeroed, {*VARYING, *ODD}, False),
    "gaps as zero": (_gaps_as_zero, _GAPS, False),
    "gain step": (_gain_step, {*VARYING, *ODD, "effort-sign", "effort-scale"}, False),
    "derated": (_derated, {*VARYING, "effort-clipped", "effort-saturates"}, False),
    "bit errors": (_bit_errors, {"values-spike", "values-impossible", "position-jump", "values-jump", "position-noise"}, False),
    "coarse position": (_coarse_position, {"position-quantised", "position-held", "position-play", "channel-frozen"}, False),
    "humming": (_ticking, {"effort-periodic"}, False),
}
