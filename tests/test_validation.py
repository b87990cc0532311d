"""Scores against their definitions, and what a low-pass may not do."""

from types import SimpleNamespace

import numpy as np
import pytest

from urdf_ident.errors import LogError
from urdf_ident.result.scores import score
from urdf_ident.result.validation import ValidationReport
from urdf_ident.samples import Segment
from urdf_ident.signals.filters import lowpass

RATE = 200.0


def log_of(tau: np.ndarray | None, v: np.ndarray, slides: tuple[bool, ...] = (False, False)) -> SimpleNamespace:
    """A prepared log with this torque."""
    robot = SimpleNamespace(joints=tuple(f"j{k}" for k in range(len(slides))), prismatic=np.array(slides))
    return SimpleNamespace(name="log", segments=[Segment("log", 0.0, RATE, v, v, v, tau)], robot=robot)


@pytest.fixture
def motion() -> tuple[np.ndarray, np.ndarray]:
    t = np.arange(0, 20, 1 / RATE)
    v = np.column_stack([np.sin(2 * np.pi * 0.3 * t), 0.01 * np.sin(2 * np.pi * 0.3 * t)])
    return t, v


def test_definitions(motion) -> None:
    t, v = motion
    tau = np.column_stack([3 * np.cos(2 * np.pi * 0.5 * t), 2 * np.sin(2 * np.pi * 0.2 * t)])
    error = np.column_stack([0.3 * np.cos(2 * np.pi * 0.4 * t), 0.1 * np.ones_like(t)])
    found = score(log_of(tau, v), tau - error, 20.0)
    assert found.rmse == pytest.approx([0.3 / np.sqrt(2), 0.1], rel=5e-3)  # over whole periods; the ends are left out
    assert found.per_joint[0]["relative"] == pytest.approx(0.1, rel=1e-3)
    assert found.relative == pytest.approx(np.linalg.norm(error) / np.linalg.norm(tau), rel=5e-3)
    assert found.per_joint[0]["p95"] == pytest.approx(np.percentile(np.abs(error[:, 0]), 95), rel=1e-2)
    on = np.abs(v[:, 0]) > 0.02
    assert found.per_joint[0]["moving_rmse"] == pytest.approx(np.sqrt(np.mean(error[on, 0] ** 2)), rel=1e-2)
    assert found.per_joint[1]["moving_rmse"] == 0.0  # never faster than 0.02: at rest for this score
    assert found.mean_rmse == pytest.approx(found.rmse.mean())


def test_forces_and_torques_are_not_added(motion) -> None:
    """A light joint beside heavy ones counts as little with a slide as without; the slide is compared with its own force."""
    t, v = motion
    tau = np.column_stack([30 * np.cos(2 * np.pi * 0.5 * t), np.cos(2 * np.pi * 0.3 * t), 400 * np.sin(2 * np.pi * 0.2 * t)])
    error = np.column_stack([0.03 * tau[:, 0], 0.4 * tau[:, 1], 0.02 * tau[:, 2]])
    found = score(log_of(tau, v[:, [0, 0, 0]], (False, False, True)), tau - error, 20.0)
    turning = np.linalg.norm(error[:, :2]) / np.linalg.norm(tau[:, :2])
    assert found.relative == pytest.approx(turning, rel=1e-3)  # 3.3 %, where the light joint has 40 %
    slipping = score(log_of(tau, v[:, [0, 0, 0]], (True, True, False)), tau - 10 * error, 20.0)
    assert slipping.relative == pytest.approx(10 * turning, rel=1e-3)


def test_the_true_model_is_not_punished_for_its_friction_steps(motion) -> None:
    _, v = motion
    truth = 5.0 * np.tanh(v / 1e-3)
    noisy = truth + np.random.default_rng(0).normal(0, 0.5, truth.shape)
    right = score(log_of(noisy, v), truth, 3.0)
    smooth = score(log_of(noisy, v), lowpass(truth, RATE, 3.0), 3.0)
    assert right.mean_rmse < 1.05 * smooth.mean_rmse
    alone = score(log_of(noisy, v), truth, 3.0, measured_only=True)
    assert alone.mean_rmse > 3 * right.mean_rmse  # what scoring would say without this


def test_one_sample_at_the_end_does_not_decide(motion) -> None:
    """An abrupt stop at the end of a motion: the low-pass returns its last sample as it is."""
    _, v = motion
    tau = np.zeros_like(v)
    error = np.random.default_rng(0).normal(0, 1.0, tau.shape)
    usual = score(log_of(tau, v), error, 5.0)
    error[-1] = 20.0
    assert score(log_of(tau, v), error, 5.0).mean_rmse == pytest.approx(usual.mean_rmse, rel=0.1)


def test_a_log_without_torque_is_named(motion) -> None:
    _, v = motion
    with pytest.raises(LogError, match="no torque"):
        score(log_of(None, v), v, 5.0)


def test_better_means_on_every_log() -> None:
    good, bad = ({"mean_rmse": error, "urdf_mean_rmse": 2.0, "per_joint": [], "log": ""} for error in (1.0, 3.0))
    assert ValidationReport((), (good,)).better_than_urdf
    assert ValidationReport((), ()).better_than_urdf
    assert not ValidationReport((), (good, bad)).better_than_urdf
