"""Changes along logs: what a few motions of one joint cannot show."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from conftest import arm_urdf
from logs import Truth, fourier, torques

from urdf_ident import Drive, Judgement, Recording, Robot
from urdf_ident.pipeline.inspect import examine_logs
from urdf_ident.signals.config import SignalConfig

ARM = Robot.from_urdf(arm_urdf("zyyxyx"))


def three_logs() -> list[Recording]:
    logs = []
    for k in range(3):
        t, q, v, a = fourier(ARM.n, 20.0, 100.0, k)
        tau, rng = torques(ARM, Truth.of(ARM.n), q, v, a), np.random.default_rng(k)
        tau += 0.01 * tau.std(axis=0) * rng.standard_normal(tau.shape)
        logs.append(Recording(f"log{k}", ARM.joints, t, q + 1e-5 * rng.standard_normal(q.shape), effort=tau))
    return logs


def doubts(logs: list[Recording]) -> list[list[Judgement]]:
    reports = examine_logs(logs, ARM, Drive.build(ARM.n), SignalConfig())
    return [[item for item in report.findings if item.severity != "info"] for report in reports]


def test_a_scale_of_all_efforts_that_grows_from_log_to_log_is_a_drift() -> None:
    """It was told as a saturation of one log: no log differs from the others by 5 %, the last from the first by 5.6 %."""
    sound = three_logs()
    assert doubts(sound) == [[], [], []]
    for first, *_ in doubts([replace(log, effort=(1 - 0.028 * k) * log.effort) for k, log in enumerate(sound)]):
        assert first.id == "effort-drift"
        assert "from the first log to the last" in first.message


def test_a_clock_of_one_log_that_runs_at_another_rate_is_named_with_it() -> None:
    """4 % in one of three logs left a GOOD model with 1.7 times the error."""
    first, second, third = three_logs()
    found = doubts([first, replace(second, time=0.96 * second.time), third])
    assert [[item.id for item in own] for own in found] == [[], ["time-scale"], []]
    assert found[1][0].size == pytest.approx(1 / 0.96, abs=0.01)


def test_a_log_that_cannot_be_conditioned_is_told_and_the_others_are_examined_without_it() -> None:
    logs = [replace(log, velocity=np.gradient(log.position, log.time, axis=0)) for log in three_logs()]
    config = SignalConfig(velocity="logged")
    some = examine_logs([logs[0], replace(logs[1], velocity=None), logs[2]], ARM, Drive.build(ARM.n), config)
    (refused,) = some[1].findings
    assert (refused.id, refused.severity, refused.message) == ("not-usable", "refused", "the log has no velocities")
    alone = examine_logs([logs[0], logs[2]], ARM, Drive.build(ARM.n), config)
    assert [some[0].findings, some[2].findings] == [report.findings for report in alone]
