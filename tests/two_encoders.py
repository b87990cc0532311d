"""A small arm with both encoders and a loss in its gears, made by hand."""

import numpy as np
from conftest import rnea
from logs import fourier

from urdf_ident import Recording, Robot
from urdf_ident.signals.config import SignalConfig

RATE, GEAR = 100.0, 80.0
K = np.array([8e2, 3e3, 6e2])
SIGNALS = SignalConfig(cutoff=5.0, decimate=20.0)


def gear_loss(apart, rate):
    """What no rigid model knows: a soft-edged loss as the gear winds up, and a torque that grows with the wound angle."""
    return np.array([1.5, 2.0, 1.2]) * np.tanh(rate / 1.5e-3) + 0.8 * np.tanh(apart / 1.5e-3) ** 2


def record(robot: Robot, name: str, t, q, v, a, *, loss: bool = True, seed: int = 0, encoders: bool = True) -> Recording:
    link = rnea(robot.model, q, v, a)
    apart = link / K
    rate = np.gradient(apart, t, axis=0)
    friction = 2.0 * v + (2.5 + 0.5 * np.exp(-np.abs(v) / 0.1)) * np.tanh(v / 5e-3) + 0.2 * (v > 0)
    tau = link + 0.3 * a + friction + loss * gear_loss(apart, rate)
    rng = np.random.default_rng(seed)
    return Recording(
        name,
        robot.joints,
        t,
        q + 2e-6 * rng.standard_normal(q.shape),
        effort=tau + 0.2 * rng.standard_normal(tau.shape),
        motor_position=GEAR * (q + apart + 2e-6 * rng.standard_normal(q.shape)) if encoders else None,
    )


def excitation(robot: Robot, seed: int, **options) -> Recording:
    return record(robot, f"log{seed}", *fourier(robot.n, 20.0, RATE, seed, amplitude=0.7), seed=seed, **options)
