"""Which laws and shapes come into question: as fast as the axes moved."""

from __future__ import annotations

import numpy as np
from conftest import arm_urdf

from urdf_ident.estimation.friction_selection.candidates import wide_model
from urdf_ident.model.dynamic_model import DynamicModel
from urdf_ident.model.robot import Robot
from urdf_ident.samples import Segment


def shapes_tried(speed: float, axis: int = 1) -> dict[tuple[str, str], list[float]]:
    """Law and shape → the values that are tried where the axes reach a speed [rad/s]."""
    robot = Robot.from_urdf(arm_urdf("zyx"))
    t = np.arange(0.0, 20.0, 0.01)[:, None]
    rate = np.array([1.0, 1.3, 1.7])
    q, v, a = speed / rate * np.sin(rate * t), speed * np.cos(rate * t), -speed * rate * np.sin(rate * t)
    motion = Segment("log", 0.0, 100.0, q, v, a, np.ones_like(q))
    found: dict[tuple[str, str], set[float]] = {}
    for candidate in wide_model(DynamicModel(robot), [motion]).candidates[axis]:
        for name in candidate.law.shapes:
            found.setdefault((candidate.key[0], name), set()).add(getattr(candidate.law, name))
    return {key: sorted(values) for key, values in found.items()}


def test_shapes_follow_the_speeds_of_the_motion() -> None:
    slow, fast = shapes_tried(0.2), shapes_tried(2.0)
    key = ("stribeck", "velocity")
    np.testing.assert_allclose(fast[key], 10 * np.array(slow[key]), rtol=1e-9)
    assert 0.01 < fast[key][0] / 2.0 < fast[key][-1] / 2.0 < 1.0
    assert max(slow["coulomb", "width"]) < 0.2


def test_no_law_is_tried_on_an_axis_that_rests() -> None:
    assert shapes_tried(0.0) == {}
