"""Efforts that are late or filtered: found by size, told from friction and inertia, taken out only where it helps."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from conftest import arm_urdf
from logs import Truth, found_in, fourier, torques
from scipy.signal import butter, lfilter, sosfiltfilt

import urdf_ident as ui
from urdf_ident import Limits, random_fourier, robot_path
from urdf_ident.faults.delay import Delay, find_delay
from urdf_ident.pipeline.checked_logs import training_logs
from urdf_ident.pipeline.simulate import simulate, true_plant
from urdf_ident.project import parse_project
from urdf_ident.result.summary import brief
from urdf_ident.signals.condition import condition
from urdf_ident.signals.filters import attenuation

ARM = ui.Robot.from_urdf(arm_urdf("zyx"))
LAWS = ["viscous", "coulomb", "offset"]


def made(seed: int, late: float = 0.0, band: float | None = None, seconds: float = 12.0) -> ui.Recording:
    """A log whose efforts are ``late`` [s], and behind a filter without delay [Hz]."""
    t, q, v, a = fourier(ARM.n, seconds, 200.0, seed)
    tau = torques(ARM, Truth.of(ARM.n), q, v, a)
    tau = np.column_stack([np.interp(t - late, t, x) for x in tau.T])
    if band is not None:
        tau = sosfiltfilt(butter(2, band, fs=200.0, output="sos"), tau, axis=0)
    noise = np.random.default_rng(seed).standard_normal(tau.shape)
    return ui.Recording(f"log{seed}", ARM.joints, t, q, effort=tau + 0.02 * tau.std(axis=0) * noise, sha256=f"{seed}")


def found(*logs: ui.Recording) -> Delay:
    parts = [condition(log, ARM) for log in logs]
    delay = find_delay(ARM, [(part.segments, part.cutoff) for part in parts])
    assert delay is not None
    return delay


def test_sound_logs_have_no_delay_and_all_their_bandwidth() -> None:
    delay = found(made(0))
    assert not delay.decided
    assert delay.low_pass is None
    assert delay.low - 1e-3 < 0 < delay.high + 1e-3


def test_friction_that_reverses_before_the_velocity_is_no_delay_of_its_joint() -> None:
    """As in joints that stick: the effort turns over before the joint moves back."""
    t, q, v, a = fourier(ARM.n, 12.0, 200.0, 1)
    tau = torques(ARM, Truth.of(ARM.n), q, v, a)
    tau[:, 2] += tau[:, 2].std() * np.tanh(np.interp(t + 0.1, t, v[:, 2]) / 0.02)
    tau += 0.02 * tau.std(axis=0) * np.random.default_rng(1).standard_normal(tau.shape)
    assert "effort-delay" not in {item.id for item in found_in(ui.Recording("log", ARM.joints, t, q, effort=tau), robot=ARM)[0]}


@pytest.mark.parametrize("late", [0.02, -0.03])
def test_a_delay_is_found_with_its_size(late: float) -> None:
    delay = found(made(0, late), made(1, late))
    assert delay.decided
    assert delay.low_pass is None
    assert delay.seconds == pytest.approx(late, abs=0.002)
    assert delay.low < delay.seconds < delay.high


def test_a_log_that_lags_the_others_is_named() -> None:
    """That of one joint: ``test_small_faults_are_named_with_their_size``."""
    found = found_in(made(0, 0.06), made(1), made(2), robot=ARM)
    (named,) = ((k, item) for k, own in enumerate(found) for item in own if item.id == "effort-delay")
    assert (named[0], named[1].joint, named[1].size) == (0, None, pytest.approx(0.06, abs=0.006))


def test_a_first_order_low_pass_is_not_told_as_a_delay() -> None:
    k, logs = 2 * np.pi * 2.5 / 200.0, [made(seed) for seed in (0, 1)]
    for n, log in enumerate(logs):
        x = log.effort
        logs[n] = replace(log, effort=lfilter([k], [1, k - 1], x, axis=0, zi=(1 - k) * x[:1])[0])
    (told,) = [item for item in found_in(*logs, robot=ARM)[0] if item.id == "effort-bandwidth"]
    assert told.size == pytest.approx(2.5, rel=0.25)


def test_identify_takes_the_delay_out_and_validates_so(tmp_path: Path) -> None:
    logs, judge = [made(0, 0.05), made(1, 0.05)], made(2, 0.05)
    model = ui.DynamicModel(ARM, friction=LAWS)
    auto = ui.identify(model, logs, held_out=[judge])
    left = ui.identify(model, logs, held_out=[judge], project=parse_project({"signals": {"delay": 0.0}}))
    assert auto.signals["delay"]["compensated"] == pytest.approx(0.05, abs=0.002)
    assert left.signals["delay"]["compensated"] == 0.0
    assert "compensated: the logged efforts lag behind the positions by " in brief(auto)
    assert "compensated" not in brief(left)
    assert auto.validation[0]["mean_rmse"] < 0.7 * left.validation[0]["mean_rmse"]
    assert left.verdict.level != "good"
    assert "effort-delay" in {reason.id for reason in left.verdict.judgements}
    assert "effort-delay" not in {reason.id for reason in auto.verdict.judgements}
    again = ui.validate(ui.load(auto.save(tmp_path / "identification.json")), [judge])
    assert again.entries[0]["mean_rmse"] == pytest.approx(auto.validation[0]["mean_rmse"], rel=1e-9)
    _, q, v, a = fourier(ARM.n, 8.0, 100.0, 9)
    truth = torques(ARM, Truth.of(ARM.n), q, v, a)
    assert np.linalg.norm(auto.torque(q, v, a) - truth) < 0.03 * np.linalg.norm(truth)


def test_a_delay_that_may_be_longer_than_estimated_is_told_although_it_is_taken_out() -> None:
    """Efforts behind a first-order low-pass at 0.7 Hz look late by 0.15 s, and gave a GOOD model with seven times the error."""
    logs = [made(k, 0.17) for k in (0, 1)]
    ident = ui.identify(ui.DynamicModel(ARM, friction=LAWS), logs, held_out=[made(2, 0.17)])
    assert ident.signals["delay"]["compensated"] > 0.1
    (told,) = (reason for reason in ident.verdict.judgements if reason.id == "effort-delay")
    assert "it may be longer" in told.message
    assert ident.verdict.level != "good"


def test_filtered_efforts_are_never_good() -> None:
    logs = [replace(made(k, band=1.0), name=f"l{k}") for k in (0, 1)]
    ident = ui.identify(ui.DynamicModel(ARM, friction=LAWS), logs, held_out=[made(2, band=1.0)])
    assert ident.verdict.level != "good"
    assert "effort-bandwidth" in {reason.id for reason in ident.verdict.judgements}


def test_a_low_pass_that_smooths_the_motion_is_named() -> None:
    whole = made(0, seconds=60.0)
    for step, names in ((60, ["position-bandwidth"]), (20, [])):
        few = replace(whole, time=whole.time[::step] / 4, position=whole.position[::step], effort=whole.effort[::step])
        (found,) = found_in(few, robot=ARM, periodic="off")
        assert [item.id for item in found if item.id == "position-bandwidth"] == names


@pytest.mark.parametrize(("steps", "named"), [((1, 0.03), ["2"]), ((2, 1e-3), ["3"]), ((slice(None), 0.01), [])])
def test_coarse_steps_of_one_position_are_named_where_the_low_pass_leaves_them(steps: tuple, named: list[str]) -> None:
    """Steps of all positions lower the cut-off instead; the third joint's inertia is mostly that of its rotor."""
    log = made(0, seconds=30.0)
    position, (joints, step) = log.position.copy(), steps
    position[:, joints] = np.round(position[:, joints] / step) * step
    (found,) = found_in(replace(log, position=position), robot=ARM, periodic="off")
    coarse = [item for item in found if item.id == "position-quantised"]
    assert [item.joint for item in coarse] == [ARM.joints[int(name) - 1] for name in named]
    assert all(item.size == pytest.approx(step) for item in coarse)


def test_a_cut_off_that_is_too_low_is_named_as_such_and_never_as_a_fault_of_the_log() -> None:
    (found,) = found_in(made(1), robot=ARM, cutoff=0.5, periodic="off")
    project = parse_project({"signals": {"cutoff": 0.5, "periodic": "off"}})
    (log,) = training_logs(ui.DynamicModel(ARM, friction=LAWS), [made(1)], project).logs
    for findings in (found, [item for item in log.report.findings if item.severity != "info"]):
        (only,) = findings
        assert only.id == "position-bandwidth"
        assert "at 0.5 Hz takes away" in only.message
        assert "`signals.cutoff`" in str(only.remedy)
    assert log.conditioned.cutoff == 0.5  # the fit is as configured
    slow = np.sin(2 * np.pi * np.arange(0, 20, 0.01))[:, None]  # 1 Hz, of which two passes at 0.5 Hz keep 1/257
    assert attenuation([slow], 100.0, 0.5, band=2.0)[0] == pytest.approx(1 - 1 / 257, abs=0.02)


def test_coarse_encoders_of_a_sound_arm_are_no_delay() -> None:
    path = robot_path("generic_6axis")
    robot = ui.Robot.from_urdf(path)
    project = parse_project({"simulation": {"sensors": {"counts": 4096}, "rate": 100}})
    motion = random_fourier(Limits.from_robot(robot), 12.0, 4, 0, fill=0.5)
    plant, _ = true_plant(project, robot, path.with_name("generic_6axis_truth.yaml"))
    log = simulate(robot, motion, project=project, truth=plant, name="log", seed=1).recording
    assert "effort-delay" not in {item.id for item in found_in(log, robot=robot)[0]}
