"""Delays that the counts of a coarse encoder hide are told as that."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import urdf_ident as ui
from urdf_ident.model.bundled import robot_path
from urdf_ident.motion.fourier import random_fourier
from urdf_ident.motion.limits import Limits
from urdf_ident.pipeline.examine import examine_logs
from urdf_ident.pipeline.experiment import simulate, true_plant
from urdf_ident.project import parse_project
from urdf_ident.signals.config import SignalConfig


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
