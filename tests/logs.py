"""Logs made on the spot, independently of the package's own model: Pinocchio's RNEA plus friction by hand."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from conftest import rnea

from urdf_ident import Drive, Judgement, Recording
from urdf_ident.model.robot import Robot
from urdf_ident.pipeline.inspect import examine_logs
from urdf_ident.signals.config import SignalConfig


@dataclass(frozen=True)
class Truth:
    """Joint parameters of the simulated robot, one value a joint."""

    rotor_inertia: np.ndarray
    viscous: np.ndarray
    coulomb: np.ndarray
    offset: np.ndarray

    @classmethod
    def of(cls, n: int) -> Truth:
        k = np.arange(1, n + 1)
        return cls(0.5 / k, 4.0 / k, 3.0 / k, 0.2 * (-1.0) ** k / k)


def fourier(n: int, seconds: float, rate: float, seed: int, harmonics: int = 5, amplitude: float = 1.0):
    """A random Fourier motion that starts and ends anywhere: t (N,), q, v, a (N, n)."""
    generator = np.random.default_rng(seed)
    t = np.arange(round(seconds * rate)) / rate
    w = 2 * np.pi / 10.0
    a, b = generator.uniform(-1, 1, (2, n, harmonics))
    q = generator.uniform(-0.5, 0.5, n) * np.ones((len(t), 1))
    v, acc = np.zeros((len(t), n)), np.zeros((len(t), n))
    for k in range(harmonics):
        wk = w * (k + 1)
        s, c = np.sin(wk * t)[:, None], np.cos(wk * t)[:, None]
        q = q + amplitude * (a[:, k] * s - b[:, k] * c) / (k + 1)
        v = v + amplitude * (a[:, k] * c + b[:, k] * s) * wk / (k + 1)
        acc = acc + amplitude * (-a[:, k] * s + b[:, k] * c) * wk**2 / (k + 1)
    return t, q, v, acc


def torques(robot: Robot, truth: Truth, q, v, a) -> np.ndarray:
    """RNEA of the URDF's own inertials, rotor inertia, viscous friction, smooth Coulomb friction and offset."""
    rigid = rnea(robot.model, robot.configuration(q), v, a)
    friction = truth.viscous * v + truth.coulomb * np.tanh(v / 0.02) + truth.offset
    return rigid + truth.rotor_inertia * a + friction


def bristles(q: np.ndarray, travel: float, start: float = 0.0) -> np.ndarray:
    """Dahl's friction (1968) of first order over its limit, from a first state on, shape of `q` (N,) or (N, n)."""
    state, out = start + 0.0 * q[0], np.empty_like(q)
    for k, step in enumerate(np.diff(q, axis=0, prepend=q[:1])):
        out[k] = state = np.sign(step) + (state - np.sign(step)) * np.exp(-np.abs(step) / travel)
    return out


def write_csv(path: Path, joints, t, q, tau, v=None) -> Path:
    """The default CSV of a log."""
    blocks, names = [t[:, None], q], ["t", *(f"q_{j}" for j in joints)]
    if v is not None:
        blocks.append(v)
        names += [f"v_{j}" for j in joints]
    blocks.append(tau)
    names += [f"tau_{j}" for j in joints]
    np.savetxt(path, np.hstack(blocks), delimiter=",", header=",".join(names), comments="", fmt="%.9g")
    return path


def make_log(
    path: Path, robot: Robot, *, seed: int = 0, seconds: float = 20.0, rate: float = 100.0, noise: float = 0.05
) -> Path:
    """A noisy log of a random motion of this robot."""
    t, q, v, a = fourier(robot.n, seconds, rate, seed)
    log = recorded(robot, t, q, torques(robot, Truth.of(robot.n), q, v, a), noise=noise, seed=1000 + seed)
    return write_csv(path, robot.joints, t, log.position, log.effort)


def recorded(
    robot: Robot, t, q, tau, *, noise: float = 0.02, seed: int | np.random.Generator = 0, name: str = "log"
) -> Recording:
    """A log of noisy positions, and of efforts with noise of this fraction of their deviations."""
    draw = np.random.default_rng(seed).standard_normal((2, *q.shape))
    return Recording(name, robot.joints, t, q + 1e-5 * draw[0], effort=tau + noise * tau.std(axis=0) * draw[1])


def found_in(*logs: Recording, robot: Robot, drive: Drive | None = None, **signals) -> list[list[Judgement]]:
    """What is found in each of these logs, beyond what is only noted."""
    reports = examine_logs(logs, robot, drive or Drive.build(robot.n), SignalConfig(**signals))
    return [[item for item in report.findings if item.severity != "info"] for report in reports]
