"""Limits that hold an export back are said, with what they cost and what to do: nothing spoils it silently."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import arm_urdf, inertials
from logs import fourier

from urdf_ident.logs.recording import Recording
from urdf_ident.model.dynamic_model import DynamicModel
from urdf_ident.model.inertia import from_com
from urdf_ident.model.robot import Robot
from urdf_ident.pipeline.identify import identify
from urdf_ident.project import parse_project
from urdf_ident.result.identification import Identification

ROBOT = Robot.from_urdf(arm_urdf("zyx"))
BODIES = inertials(ROBOT).reshape(-1, 10)


def run(tool: float, **consistency: object) -> Identification:
    """Two logs of the arm with a tool [kg] on its last link, 0.25 m out, that the URDF does not know."""
    truth = BODIES.copy()
    truth[-1] += from_com(tool, np.array([0.0, 0.0, 0.25]), tool * 0.05**2 * np.eye(3)) if tool else 0.0
    model = DynamicModel(ROBOT, friction="none", rotor_inertia=False)
    logs = []
    for seed in range(2):
        t, q, v, a = fourier(ROBOT.n, 10.0, 100.0, seed, amplitude=1.2)
        tau = model.torque(truth.ravel(), q, v, a) + 2.0 * v
        tau += 0.05 * np.random.default_rng(seed).standard_normal(tau.shape)
        logs.append(Recording(f"log{seed}", ROBOT.joints, t, q, effort=tau))
    settings = {"model": {"friction": ["viscous"], "rotor_inertia": False}, "consistency": {"weight": 10.0, **consistency}}
    project = parse_project(settings)
    return identify(project.build_model(ROBOT), logs, project=project)


def notes(ident: Identification) -> str:
    return "\n".join(ident.solver["notes"])


def test_a_tool_that_the_urdf_does_not_know_is_named_with_its_mass() -> None:
    last = ROBOT.bodies[-1].name
    tool = 3.0 * BODIES[-1, 0]
    found = notes(run(tool, mass_factor=1.5))
    assert f"{last} is at its limit" in found
    assert "raise consistency.mass_factor" in found
    assert "above that of the unconstrained fit: the limits above" in found
    hint = next(line for line in found.splitlines() if "mass that the URDF lacks" in line)
    said = float(hint.split("about ")[1].split(" kg")[0])
    assert f"on {last}" in hint
    assert said == pytest.approx(tool, rel=0.4)


def test_without_the_limit_nothing_is_held() -> None:
    found = run(3.0 * BODIES[-1, 0], mass_factor=None, com_in_box=False)
    assert "limit" not in notes(found)
    assert "the URDF lacks" not in notes(found)


def test_a_true_urdf_gives_no_word() -> None:
    found = notes(run(0.0))
    assert "limit" not in found
    assert "above that of the unconstrained fit" not in found
