"""A small part of ``scripts/benchmarks/arms.py``: an arm nobody tuned for, 3.8 s of motion, judged on one twice as fast."""

from collections.abc import Callable
from dataclasses import replace
from types import ModuleType

import numpy as np
import pytest
from conftest import load_script
from logs import found_in


@pytest.fixture(scope="module")
def arms() -> ModuleType:
    return load_script("benchmarks/arms.py")


@pytest.fixture(scope="module")
def row(arms: ModuleType) -> dict[str, float]:
    return arms.run(2, "four", simple=False)


def test_four_seconds_of_a_scara_do_not_spoil_a_faster_motion(row: dict[str, float]) -> None:
    assert row["exported"] <= 1.02 * row["baseline"]
    assert row["exported"] <= 1.05 * row["fit"]
    assert row["exported"] <= 1.5 * row["oracle"]


def test_its_prediction_intervals_hold_measured_torque_at_reversals_too(row: dict[str, float]) -> None:
    assert row["inside"] >= 0.93
    assert row["inside_reversals"] >= 0.85
    assert row["width"] <= 1.5  # the goal of 1.3 times the ideal width is met on rich logs only


@pytest.mark.parametrize(
    ("number", "kind", "seed", "ids"),
    [
        # other inertias than a URDF that is wrong by a fifth explain it, and joints that turn back three times tell nothing
        (73, "four", lambda arms: [11, 73, arms.KINDS.index("four")], {"short"}),
        # the same sine on all joints: all torques are functions of one position, and gravity seemed to point elsewhere
        (416, "same", lambda arms: [11, 416, len(arms.KINDS) + arms.POOR.index("same")], set()),
        # columns of bodies with nearly meeting axes nearly coincide; a ridge on them left 2 % of an effort unexplained
        (5302, "wander", lambda arms: 1, set()),
    ],
)
def test_sound_logs_of_odd_arms_are_not_doubted(arms: ModuleType, number: int, kind: str, seed: Callable, ids: set) -> None:
    one, rng = arms.arm(number), np.random.default_rng(seed(arms))
    logs = [one.log("run", arms.wander(one, rng, 10.0, 2.0), rng)] if kind == "wander" else arms.training(one, kind, rng)
    (found,) = found_in(*logs, robot=one.robot, drive=one.drive)
    assert {item.id for item in found} == ids


def test_slides_that_move_one_by_one_are_not_doubted(arms: ModuleType) -> None:
    """Their bodies are rotors and offsets but for rounding, which seemed to be a factor of ten million."""
    one = arms.arm(11)
    logs = load_script("benchmarks/log_shapes.py").shaped(one, "one by one", np.random.default_rng(2))
    assert found_in(logs[0], robot=one.robot, drive=one.drive) == [[]]


def test_a_sensor_of_a_gantry_that_saturates_is_named(arms: ModuleType) -> None:
    """The wrist fights hardly more than its own friction, which resembles a saturation; the slides' blocks differ in motion."""
    one, rng, joint = arms.arm(187), np.random.default_rng([13, 187]), 3
    sound = [one.log(f"run{k}", arms.wander(one, rng, 9.0, 1.0), rng) for k in range(3)]

    def saturated(log):
        effort = np.array(log.effort)
        limit = 0.93 * np.abs(effort[:, joint]).max()
        effort[:, joint] = limit * np.tanh(effort[:, joint] / limit)
        return replace(log, effort=effort)

    for logs, expected in ((sound, []), ([saturated(log) for log in sound], ["effort-saturates"])):
        assert [item.id for item in found_in(*logs, robot=one.robot, drive=one.drive)[0]] == expected
