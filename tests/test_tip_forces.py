"""Forces on the last link that change all the time: they are in the residuals of all joints at once."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from conftest import arm_urdf
from logs import Truth, fourier, torques

from urdf_ident import Drive, Recording, Robot
from urdf_ident.linalg import Array
from urdf_ident.pipeline.checked_logs import examine_logs
from urdf_ident.signals.config import SignalConfig

ARM = Robot.from_urdf(arm_urdf("zyyxyx"))


def log_of(error: Array, seed: int = 1) -> Recording:
    """A log with an error of the efforts, relative to their standard deviations, shape (N, n)."""
    t, q, v, a = fourier(ARM.n, 20.0, 200.0, seed)
    tau = torques(ARM, Truth.of(ARM.n), q, v, a)
    rng = np.random.default_rng(seed)
    tau += tau.std(axis=0) * (error + 0.01 * rng.standard_normal(tau.shape))
    return Recording("log", ARM.joints, t, q + 1e-5 * rng.standard_normal(q.shape), effort=tau)


def of_force(force: Array, size: float, seed: int = 1) -> Array:
    """Efforts of a force at the flange, shape (N, 3), relative to each effort's standard deviation; their median size."""
    _, q, v, a = fourier(ARM.n, 20.0, 200.0, seed)
    data, out = ARM.model.createData(), np.empty_like(q)
    for k, row in enumerate(q):
        pin.computeJointJacobians(ARM.model, data, row)
        J = pin.getFrameJacobian(
            ARM.model, data, ARM.n, pin.SE3(np.eye(3), np.array([0.0, 0.05, 0.1])), pin.LOCAL_WORLD_ALIGNED
        )
        out[k] = J[:3].T @ force[k]
    out /= torques(ARM, Truth.of(ARM.n), q, v, a).std(axis=0)
    return size * out / np.median(out.std(axis=0))


def waves(frequency: float, count: int, seed: int) -> Array:
    """Slow random curves, shape (4000, count)."""
    t, rng = np.arange(0.0, 20.0, 0.005), np.random.default_rng(seed)
    rates = frequency * rng.uniform(0.5, 1.5, (count, 6))
    return np.stack([np.sin(2 * np.pi * np.outer(t, own) + rng.uniform(0, 6, 6)).sum(axis=1) for own in rates], axis=1)


def ids(recording: Recording) -> list[str]:
    report = examine_logs([recording], ARM, Drive.build(ARM.n), SignalConfig())[0]
    return [item.id for item in report.findings if item.severity != "info"]


def test_a_force_on_the_last_link_that_changes_all_the_time_is_named() -> None:
    """It left models called good with up to 2.7 times the error: no part of the log differs from the others."""
    assert ids(log_of(of_force(waves(0.5, 3, 0), 0.06))) == ["contact-force"]


@pytest.mark.parametrize("kind", ["each joint's own", "vibration"])
def test_errors_of_single_joints_and_vibrations_are_no_force(kind: str) -> None:
    own = kind != "vibration"
    error = waves(0.5, ARM.n, 0) * 0.06 / 1.7 if own else of_force(waves(15.0, 3, 0), 0.06)
    assert "contact-force" not in ids(log_of(error))


def test_a_force_is_named_beside_a_fault_of_one_joint_that_does_not_explain_it() -> None:
    """Only the crosstalk was named, which may as well be made of a part of the force."""
    sound = log_of(np.zeros((4000, ARM.n)))
    leak = 0.4 * np.outer(sound.effort[:, 2] / sound.effort[:, 2].std(), np.arange(ARM.n) == 0)
    assert ids(log_of(leak)) == ["effort-crosstalk"]
    assert ids(log_of(leak + of_force(waves(0.5, 3, 0), 0.06))) == ["contact-force", "effort-crosstalk"]
