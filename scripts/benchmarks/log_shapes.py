"""Shapes of logs beside random Fourier motion, and arms of published URDFs, for ``random_faults.py``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from arms import RATE, Arm, Motion, moving, wander
from scipy.interpolate import CubicSpline
from scipy.ndimage import uniform_filter1d

from urdf_ident import Recording, Robot, robot_path
from urdf_ident.linalg import Array
from urdf_ident.model.urdf import MOVING_TYPES, parse_urdf

SHAPES = ("velocities", "stops", "chirps", "one by one", "lengths", "20 Hz", "1 kHz", "gaps")
DATA = Path(__file__).parents[2].parent / "shared" / "data"
#: Bundled robots and URDF files.
PUBLISHED = ["ur10e", "puma560", "tx40", "generic_6axis", str(DATA / "panda" / "panda.urdf")]
SECONDS = 9.0


def published(seed: int) -> Arm:
    """An arm of a published URDF, fingers and mimicking joints locked; inertials, rotors, friction and noise by the seed."""
    name = PUBLISHED[seed % len(PUBLISHED)]
    path = Path(name) if name.endswith(".urdf") else robot_path(name)
    joints = parse_urdf(path.read_text(encoding="utf-8-sig")).joints.items()
    held = [key for key, joint in joints if joint.type in MOVING_TYPES and ("finger" in key or joint.mimic is not None)]
    robot = Robot.from_urdf(path, lock=dict.fromkeys(held, 0.0))
    return moving(np.random.default_rng([23, seed]), path.stem, robot)


def shaped(one: Arm, shape: str, rng: np.random.Generator) -> list[Recording]:
    """Three sound logs of an arm, in the words of :data:`SHAPES` or "wander"."""
    if shape in ("stops", "chirps", "one by one"):
        make = {"stops": _stops, "chirps": _chirps, "one by one": _one_by_one}[shape]
        return [one.log(f"run{k}", _through(*make(one, rng)), rng) for k in range(3)]
    seconds = (2.0, 4.0, 25.0) if shape == "lengths" else (SECONDS,) * 3
    rate = {"20 Hz": 20.0, "1 kHz": 1000.0}.get(shape, RATE)
    motions = [wander(one, rng, length, 1.0) for length in seconds]
    logs = [
        one.log(f"run{k}", motion if rate == RATE else _through(motion.t, motion.q, rate), rng)
        for k, motion in enumerate(motions)
    ]
    if shape == "velocities":
        logs = [_with_velocity(log, rng) for log in logs]
    return [_with_gaps(log, rng) for log in logs] if shape == "gaps" else logs


def _through(t: Array, q: Array, rate: float = RATE) -> Motion:
    """Smooth motion through positions, sampled at a rate."""
    line, at = CubicSpline(t, q), np.arange(round(t[-1] * rate)) / rate
    return Motion(at, line(at), line(at, 1), line(at, 2))


def _middle(one: Arm, rng: np.random.Generator, wide: float = 1.0) -> Array:
    return np.asarray(wide * rng.uniform(-1.5, 1.5, one.n) * np.where(one.robot.prismatic, 0.2, 1.0))


def _stops(one: Arm, rng: np.random.Generator) -> tuple[Array, Array]:
    """From pose to pose with rests, as pick and place."""
    t: list[float] = []
    q: list[Array] = []
    at, now = 0.0, _middle(one, rng)
    while at < 1.6 * SECONDS:
        new = _middle(one, rng)
        seconds = float(np.max(np.abs(new - now) / one.speed)) * 1.9 / 1.3
        x = np.arange(0, seconds, 0.02) / seconds
        t += [*(at + x * seconds), *(at + seconds + np.arange(0, rng.uniform(0.2, 0.8), 0.02))]
        q += [now + (new - now) * s for s in 10 * x**3 - 15 * x**4 + 6 * x**5]
        q += [new] * (len(t) - len(q))
        at, now = t[-1] + 0.02, new
    return np.array(t), np.array(q)


def _chirps(one: Arm, rng: np.random.Generator) -> tuple[Array, Array]:
    """All joints at once, each from slow to fast."""
    t = np.arange(0, 1.3 * SECONDS, 0.005)
    low, high = rng.uniform(0.05, 0.15, one.n), rng.uniform(0.6, 1.5, one.n)
    f = low + (high - low) * t[:, None] / t[-1]
    phase = 2 * np.pi * (low * t[:, None] + (high - low) * t[:, None] ** 2 / 2 / t[-1]) + rng.uniform(0, 6, one.n)
    return t, _middle(one, rng, 0.3) + one.speed / (2 * np.pi * np.hypot(f, 0.15)) * np.sin(phase)


def _one_by_one(one: Arm, rng: np.random.Generator) -> tuple[Array, Array]:
    """One joint after the other goes to and fro while the others rest."""
    each = 4.0
    t = np.arange(0, each * one.n, 0.01)
    q = np.tile(_middle(one, rng), (len(t), 1))
    for k, j in enumerate(rng.permutation(one.n)):
        x = np.clip((t - k * each) / each, 0, 1)
        q[:, j] += one.speed[j] * each / (4 * np.pi) * np.sin(4 * np.pi * x) * np.sin(np.pi * x) ** 2 * 1.2
    return t, q


def _with_gaps(log: Recording, rng: np.random.Generator) -> Recording:
    """Rows missing here and there, and single precision."""
    kept = np.ones(len(log), dtype=bool)
    for begin in rng.uniform(0, log.time[-1], 4):
        kept &= ~((log.time > begin) & (log.time < begin + rng.uniform(0.05, 0.4)))
    some = log.take(kept)
    single = {name: np.asarray(getattr(some, name), dtype=np.float32).astype(float) for name in ("position", "effort")}
    return replace(some, **single)  # type: ignore[arg-type]


def _with_velocity(log: Recording, rng: np.random.Generator) -> Recording:
    v = np.gradient(uniform_filter1d(log.position, 3, axis=0), log.time, axis=0)
    return replace(log, velocity=v + 1e-3 * v.std() * rng.standard_normal(v.shape))
