"""An arm that carries a body: its motion, and its torque by Pinocchio's RNEA with friction written again here."""

import numpy as np
import pinocchio as pin
from conftest import rnea

from urdf_ident.model.robot import Robot

MASS, COM, INERTIA = 1.5, np.array([0.03, -0.02, 0.08]), np.diag([0.01, 0.012, 0.006])
LOAD = 0.08


def motion(n: int, seed: int, seconds: float = 12.0, rate: float = 100.0) -> tuple[np.ndarray, ...]:
    rng, t = np.random.default_rng(seed), np.arange(round(seconds * rate)) / rate
    h = np.arange(1, 6)
    w = 2 * np.pi * h / 6.0
    a, b = rng.uniform(-1, 1, (2, n, 5)) / h
    s, c = np.sin(t[:, None] * w), np.cos(t[:, None] * w)
    q = rng.uniform(-0.5, 0.5, n) + 0.7 * (s @ a.T - c @ b.T)
    return t, q, 0.7 * ((c * w) @ a.T + (s * w) @ b.T), 0.7 * ((-s * w**2) @ a.T + (c * w**2) @ b.T)


def torque(robot: Robot, q, v, a, body: pin.Inertia | None, sign=None) -> np.ndarray:
    """RNEA with the body on the tool's frame, rotor inertia, viscous, Coulomb and load-dependent friction, offset."""
    model = robot.model.copy()
    if body is not None:
        tool = robot.bodies[-1].links[-1]
        model.inertias[robot.n] = model.inertias[robot.n] + pin.SE3(tool.rotation, tool.translation).act(body)
    rigid = rnea(model, q, v, a)
    k = np.arange(1, robot.n + 1)
    sign = np.tanh(v / 0.02) if sign is None else sign
    return rigid + 0.3 / k * a + 3.0 / k * v + sign * (2.0 / k + LOAD * np.abs(rigid)) + 0.2 / k


def moves(n: int, seed: int, seconds: float = 40.0, rate: float = 100.0) -> tuple[np.ndarray, ...]:
    """Moves of each joint on its own, with rests between them: t, q, v, a."""
    rng, t = np.random.default_rng(seed), np.arange(round(seconds * rate)) / rate
    q, v, a = np.zeros((3, len(t), n))
    for j in range(n):
        begin, here = 0.0, rng.uniform(-1, 1)
        while begin < seconds:
            rest, duration, there = rng.uniform(0.3, 1.5), rng.uniform(0.8, 1.6), rng.uniform(-1.5, 1.5)
            s, step = np.clip((t - begin - rest) / duration, 0, 1), there - here
            later = t >= begin
            q[later, j] = (here + step * (10 * s**3 - 15 * s**4 + 6 * s**5))[later]
            v[later, j] = (step * (30 * s**2 - 60 * s**3 + 30 * s**4) / duration)[later]
            a[later, j] = (step * (60 * s - 180 * s**2 + 120 * s**3) / duration**2)[later]
            begin, here = begin + rest + duration, there
    return t, q, v, a


def stuck(v: np.ndarray, seed: int) -> np.ndarray:
    """Torque by which dry friction holds resting joints: any within it, the same during a rest."""
    rng, out = np.random.default_rng(seed), np.zeros_like(v)
    for j in range(v.shape[1]):
        edges = np.flatnonzero(np.diff(np.concatenate([[False], v[:, j] == 0, [False]]).astype(int)))
        for begin, end in edges.reshape(-1, 2):
            out[begin:end, j] = rng.uniform(-2, 2) / (j + 1)
    return out
