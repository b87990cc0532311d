"""A robot whose true parameters are known, and its logs: simulated by Pinocchio and NumPy, without the package."""

import io
import os
import re
import sys
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import numpy as np
import pinocchio as pin

from urdf_ident.cli import main

JOINTS = ("j1", "j2", "j3")
BODIES = ("l1", "l2", "l3")
#: Names of a body's parameters in the order of Pinocchio's dynamic parameters.
INERTIAL = ("m", "mx", "my", "mz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")
#: True joint parameters: rotor inertia [kg·m²], viscous [N·m·s/rad], Coulomb friction and offset [N·m].
ROTOR, VISCOUS = np.array([0.5, 0.25, 0.17]), np.array([4.0, 2.0, 1.3])
COULOMB, OFFSET = np.array([3.0, 1.5, 1.0]), np.array([-0.2, 0.1, -0.07])
#: A load at the link `tool`: mass [kg], centre of mass [m], inertia about it [kg·m²].
LOAD = pin.Inertia(0.9, np.array([0.03, -0.02, 0.08]), np.diag([0.004, 0.003, 0.002]))
#: Where the link `tool` is fixed to the last body.
TOOL = pin.SE3(np.eye(3), np.array([0.0, 0.0, 0.1]))


def urdf(mass: float = 1.0, shift: float = 0.0) -> str:
    """The arm; with `mass` and `shift` [m] its masses and centres of mass are wrong."""
    links, parent = [], "base"
    for k, (joint, body, axis) in enumerate(zip(JOINTS, BODIES, ("0 0 1", "0 1 0", "1 0 0"), strict=True), 1):
        m, size = 8.0 / k, 0.04 + 0.1 / k
        links.append(
            f'<joint name="{joint}" type="revolute"><parent link="{parent}"/><child link="{body}"/>'
            f'<origin xyz="0.03 {0.02 * k} {0.3 / k + 0.1}" rpy="0.1 0 {0.2 * (k % 2)}"/><axis xyz="{axis}"/>'
            f'<limit lower="-2.6" upper="2.6" velocity="3" effort="200"/></joint><link name="{body}"><inertial>'
            f'<origin xyz="{0.02 + shift} -0.01 {0.3 * size}" rpy="0.2 0 0.1"/><mass value="{mass * m}"/>'
            f'<inertia ixx="{m * size**2}" ixy="{0.05 * m * size**2}" ixz="0" iyy="{1.2 * m * size**2}" '
            f'iyz="{0.02 * m * size**2}" izz="{0.7 * m * size**2}"/></inertial></link>'
        )
        parent = body
    tool = (
        f'<joint name="flange" type="fixed"><parent link="{parent}"/><child link="tool"/><origin xyz="0 0 0.1"/></joint>'
        f'<link name="tool"><inertial><origin xyz="0 0 0.05"/><mass value="{mass * 0.8}"/>'
        '<inertia ixx="0.002" ixy="0" ixz="0" iyy="0.0025" iyz="0" izz="0.001"/></inertial></link>'
    )
    return "\n".join(['<?xml version="1.0"?>', '<robot name="arm">', '<link name="base"/>', *links, tool, "</robot>\n"])


def rigid(load: bool = False) -> pin.Model:
    """Pinocchio's model of the true arm, with the load on request."""
    model = pin.buildModelFromXML(urdf())
    if load:
        model.inertias[3] = model.inertias[3] + TOOL.act(LOAD)
    return model


def torque(q: np.ndarray, v: np.ndarray, a: np.ndarray, *, model: pin.Model | None = None, width: float = 0.02) -> np.ndarray:
    """The true torque of every sample: rigid bodies, rotors and friction; shape (N, 3) [N·m]."""
    model = model or rigid()
    data = model.createData()
    bodies = np.array([pin.rnea(model, data, *sample) for sample in zip(q, v, a, strict=True)])
    return bodies + ROTOR * a + VISCOUS * v + COULOMB * np.tanh(v / width) + OFFSET


def motion(seed: int, seconds: float = 20.0, rate: float = 100.0) -> tuple[np.ndarray, ...]:
    """A random Fourier motion: t (N,) [s], q, v, a (N, 3) [rad, rad/s, rad/s²]."""
    generator = np.random.default_rng(seed)
    t = np.arange(round(seconds * rate)) / rate
    sine, cosine = generator.uniform(-1, 1, (2, 5, 3))
    q, v, a = generator.uniform(-0.5, 0.5, 3) * np.ones((len(t), 1)), np.zeros((len(t), 3)), np.zeros((len(t), 3))
    for k in range(5):
        w = 2 * np.pi / 10.0 * (k + 1)
        s, c = np.sin(w * t)[:, None], np.cos(w * t)[:, None]
        q += (sine[k] * s - cosine[k] * c) / (k + 1)
        v += (sine[k] * c + cosine[k] * s) * w / (k + 1)
        a += (cosine[k] * c - sine[k] * s) * w**2 / (k + 1)
    return t, q, v, a


def write_log(
    path: Path, seed: int, *, load: bool = False, noise: float = 0.05, friction: Sequence[float] = (1.0, 1.0, 1.0)
) -> Path:
    """A log in the default columns: torques with noise [fraction of their deviation], and multiples of the friction."""
    t, q, v, a = motion(seed)
    clean = torque(q, v, a, model=rigid(load)) + (np.array(friction) - 1.0) * (VISCOUS * v + COULOMB * np.tanh(v / 0.02))
    generator = np.random.default_rng(1000 + seed)
    tau = clean + noise * clean.std(axis=0) * generator.standard_normal(clean.shape)
    table = np.column_stack([t, q + 1e-5 * generator.standard_normal(q.shape), tau])
    header = ",".join(["t", *(f"q_{joint}" for joint in JOINTS), *(f"tau_{joint}" for joint in JOINTS)])
    np.savetxt(path, table, delimiter=",", header=header, comments="", fmt="%.9g")
    return path


def true_parameters() -> dict[str, float]:
    """Every standard parameter by its name in identification.json, in SI units."""
    model, values = rigid(), {}
    for body, inertia in zip(BODIES, list(model.inertias)[1:], strict=True):
        values |= {f"{name}_{body}": value for name, value in zip(INERTIAL, inertia.toDynamicParameters(), strict=True)}
    for symbol, of_joints in (("Ia", ROTOR), ("Fv", VISCOUS), ("Fc", COULOMB), ("offset", OFFSET)):
        values |= {f"{symbol}_{joint}": value for joint, value in zip(JOINTS, of_joints, strict=True)}
    return values


def least_squares(seeds: tuple[int, ...]) -> np.ndarray:
    """The oracle: ordinary least squares on the noise-free motions of these logs; the 42 parameters of minimum norm."""
    blocks, targets = [], []
    for seed in seeds:
        _, q, v, a = motion(seed)
        clean = torque(q, v, a)
        generator = np.random.default_rng(1000 + seed)
        blocks.append(regressor(q, v, a))
        targets.append((clean + 0.05 * clean.std(axis=0) * generator.standard_normal(clean.shape)).ravel())
    return np.linalg.lstsq(np.vstack(blocks), np.concatenate(targets), rcond=1e-10)[0]


def regressor(q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
    """Pinocchio's inertial columns and four columns of each joint (rotor, viscous, Coulomb, offset); shape (3·N, 42)."""
    model = rigid()
    data, rows = model.createData(), []
    for sample in zip(q, v, a, strict=True):
        _, speed, acceleration = sample
        terms = [np.diag(x) for x in (acceleration, speed, np.tanh(speed / 0.02), np.ones(3))]
        rows.append(np.hstack([pin.computeJointTorqueRegressor(model, data, *sample), *terms]))
    return np.vstack(rows)


@dataclass(frozen=True)
class Outcome:
    """What a command did: exit code, and what it printed."""

    code: int
    out: str
    err: str


def command(*arguments: object, cwd: Path | None = None) -> Outcome:
    """Runs `urdf-ident ARGUMENTS` in this process."""
    out, err, here = io.StringIO(), io.StringIO(), Path.cwd()
    code: object = 0
    try:
        os.chdir(cwd or here)
        with mock.patch.object(sys, "argv", ["urdf-ident", *map(str, arguments)]), redirect_stdout(out), redirect_stderr(err):
            main()
    except SystemExit as end:
        code = end.code
    finally:
        os.chdir(here)
    return Outcome(int(code or 0), out.getvalue(), err.getvalue())


def done(*arguments: object, code: int = 0, cwd: Path | None = None) -> str:
    """Runs a command that must end with this exit code; returns what it printed."""
    outcome = command(*arguments, cwd=cwd)
    assert outcome.code == code, outcome
    assert "Traceback" not in outcome.err
    return outcome.out


def refused(*arguments: object, code: int = 2, matching: tuple[str, ...] = (), cwd: Path | None = None) -> str:
    """Runs a command that must be refused in one line with these expressions in it; returns the line."""
    outcome = command(*arguments, cwd=cwd)
    assert outcome.code == code, outcome
    (line,) = [line for line in outcome.err.strip().splitlines() if not line.startswith("note: ")]
    assert line.startswith("error: "), outcome.err
    for expression in matching:
        assert re.search(expression, line), (expression, line)
    return line
