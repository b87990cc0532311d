"""Delays that the counts of a coarse encoder hide are told as that."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from test_delay import ARM

import urdf_ident as ui
from urdf_ident.faults.delay import relative_delay
from urdf_ident.model.bundled import robot_path
from urdf_ident.motion.fourier import random_fourier
from urdf_ident.motion.limits import Limits
from urdf_ident.pipeline.examine import examine_logs
from urdf_ident.pipeline.experiment import simulate, true_plant
from urdf_ident.project import parse_project
from urdf_ident.signals.condition import condition
from urdf_ident.signals.config import SignalConfig
from urdf_ident.signals.quality.hidden_delays import hidden_delays, known_delay, known_delays
from urdf_ident.signals.resolution import count_of


def test_the_count_of_an_encoder_is_found_and_noise_has_none() -> None:
    rng = np.random.default_rng(0)
    x = np.cumsum(rng.standard_normal(4000)) * 1e-3
    count = 2 * np.pi / 4096
    steps = count * np.round(x / count)
    interpolated = np.array(steps)
    interpolated[::500] += 0.3 * count  # a few values that a repair put in
    for signal in (steps, steps + 1.7, steps.astype(np.float32), interpolated):
        assert count_of(signal) == pytest.approx(count, rel=1e-3)
    assert count_of(steps * [1.0] + 1e-4 * rng.standard_normal(len(x))) == 0.0
    assert count_of(x) == count_of(np.full(100, 0.3)) == count_of(np.empty(0)) == 0.0


def test_coarse_encoders_of_a_sound_arm_are_no_delay() -> None:
    path = robot_path("generic_6axis")
    robot = ui.Robot.from_urdf(path)
    project = parse_project({"simulation": {"sensors": {"counts": 4096}, "rate": 100}})
    motion = random_fourier(Limits.from_robot(robot), 12.0, 4, 0, fill=0.5)
    plant = true_plant(project, robot, path.with_name("generic_6axis_truth.yaml"))
    log = simulate(robot, motion, project=project, truth=plant, name="log", seed=1).recording
    (report,) = examine_logs([log], robot, ui.Drive.build(robot.n), SignalConfig())
    assert [finding for finding in report.findings if finding.id == "effort-delay"] == []


def test_joints_that_stick_behind_a_low_cutoff_are_no_delay() -> None:
    path = robot_path("generic_6axis")
    robot = ui.Robot.from_urdf(path)
    project = parse_project({"simulation": {"sensors": {"counts": 65536}, "rate": 200}})
    plant = true_plant(project, robot, path.with_name("generic_6axis_truth.yaml"))
    motion = random_fourier(Limits.from_robot(robot), 12.0, 4, 2, fill=0.5)
    log = simulate(robot, motion, project=project, truth=plant, name="log", seed=1).recording
    log = replace(log, position=log.position + 3e-4 * np.random.default_rng(1).standard_normal(log.position.shape))
    (report,) = examine_logs([log], robot, ui.Drive.build(robot.n), SignalConfig())
    assert [finding for finding in report.findings if finding.id == "effort-delay"] == []


def test_the_time_on_a_count_is_that_of_a_body_that_accelerates_from_rest() -> None:
    t = np.arange(0.0, 10.0, 0.01)
    q = np.column_stack([0.5 * np.cos(2 * t), 0.3 * t, 0.5 * np.cos(2 * t)])  # turning with 2 rad/s², going on, without counts
    count = 1e-3
    logged = np.column_stack([count * np.round(q[:, :2] / count), q[:, 2]])
    parts = condition(ui.Recording("log", ARM.joints, t, q, effort=0 * q), ARM).segments
    hidden = hidden_delays(ARM.joints, [(logged, parts, 20.0)])
    assert hidden.counts[ARM.joints[0]] == pytest.approx(np.sqrt(2 * count / 2.0), rel=0.05)
    assert hidden.counts[ARM.joints[1]] == hidden.counts[ARM.joints[2]] == 0.0
    assert hidden.sample == pytest.approx(0.005)
    short, long = (relative_delay(seconds, ARM.joints[0]) for seconds in (0.02, 0.05))
    assert known_delay(short, hidden).severity == "info"
    assert known_delay(long, hidden) is long
    assert known_delay(replace(short, id="contact"), hidden).severity == "warning"
    assert known_delay(replace(short, joint=None), hidden).severity == "warning"  # the second joint tells it
    within = known_delay(relative_delay(0.004, ARM.joints[2]), hidden)
    assert within.severity == "info"
    assert "the times of the samples, which are 10 ms apart" in within.message
    smooth = hidden_delays(ARM.joints, [(logged, parts, 20.0), (logged, parts, 1.0)])
    behind = known_delay(relative_delay(0.06, ARM.joints[2]), smooth)
    assert behind.severity == "info"
    assert "friction that sticks at reversals, which positions low-pass filtered at 1 Hz do not show" in behind.message
    assert known_delay(relative_delay(0.07, ARM.joints[2]), smooth).severity == "warning"
    positions = replace(relative_delay(0.004, ARM.joints[2]), id="position-late")
    assert known_delay(positions, hidden).severity == "info"
    assert known_delay(replace(positions, size=-0.006), hidden).severity == "warning"
    told = known_delays(ARM.joints, [(logged, parts, 10.0)] * 2, [[replace(short, id="contact")], [short, long]])
    assert [[item.severity for item in own] for own in told] == [["warning"], ["info", "warning"]]
