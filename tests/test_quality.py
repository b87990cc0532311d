"""The quality check: every way a log is bad is found, repaired without loss, or refused with its remedy."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from conftest import arm_urdf
from logs import Truth, fourier, torques

from urdf_ident import Drive, Recording, Robot, UrdfIdentError
from urdf_ident.files.documents import json_text
from urdf_ident.logs.read import LogLayout, read_recording
from urdf_ident.project import Project, parse_project
from urdf_ident.signals.clock import device_clock, even_pieces, read_clock
from urdf_ident.signals.condition import condition
from urdf_ident.signals.config import SignalConfig
from urdf_ident.signals.prepare import assessed
from urdf_ident.signals.quality.report import QualityReport, assess
from urdf_ident.signals.velocity import match_velocity

JOINTS = ("a", "b", "slide")
URDF = """<robot name="three">
  <link name="base"/><link name="l1"/><link name="l2"/><link name="l3"/>
  <joint name="a" type="revolute"><parent link="base"/><child link="l1"/><axis xyz="0 0 1"/>
    <limit lower="-2.8" upper="2.8" velocity="3" effort="50"/></joint>
  <joint name="b" type="continuous"><parent link="l1"/><child link="l2"/><axis xyz="0 1 0"/></joint>
  <joint name="slide" type="prismatic"><parent link="l2"/><child link="l3"/><axis xyz="1 0 0"/>
    <limit lower="-1" upper="1" velocity="2" effort="500"/></joint>
</robot>"""


@pytest.fixture(scope="module")
def robot() -> Robot:
    return Robot.from_urdf(URDF)


def motion(t: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Positions and exact velocities of three different smooth motions."""
    w = 2 * np.pi * np.array([0.31, 0.47, 0.23])
    size = np.array([1.2, 0.9, 0.5])
    phase = np.array([0.0, 1.0, 2.0])
    x = t[:, None] * w + phase
    return size * np.sin(x) + 0.2 * size * np.sin(2.7 * x), size * w * np.cos(x) + 0.54 * size * w * np.cos(2.7 * x)


def make_log(duration: float = 20.0, rate: float = 250.0, seed: int = 0, **changes: Any) -> Recording:
    """A good log: even clock, small sensor noise, velocities that are dq/dt."""
    rng = np.random.default_rng(seed)
    t = np.arange(round(duration * rate)) / rate
    q, v = motion(t)
    effort = 5 * q + 2 * v + 0.3 * rng.standard_normal(q.shape)
    log = Recording(
        name="log",
        joints=JOINTS,
        time=t,
        position=q + 1e-5 * rng.standard_normal(q.shape),
        velocity=v + 1e-3 * rng.standard_normal(q.shape),
        effort=effort,
        rows=np.arange(len(t)) + 2,
    )
    return replace(log, **changes)


def edit(log: Recording, **cells: tuple[Any, Any]) -> Recording:
    """Sets ``signal[index] = value``."""
    arrays = {name: getattr(log, name).copy() for name in cells}
    for name, (index, value) in cells.items():
        arrays[name][index] = value
    return replace(log, **arrays)


def found(report: QualityReport, code: str) -> Any:
    """The one finding of that code."""
    matches = [finding for finding in report.findings if finding.id == code]
    assert len(matches) == 1, [(f.id, f.message) for f in report.findings]
    return matches[0]


def codes(report: QualityReport, *severities: str) -> set[str]:
    return {finding.id for finding in report.findings if finding.severity in severities}


def test_a_good_log_has_nothing_to_repair(robot: Robot) -> None:
    log = make_log()
    report = assess(log, robot)
    assert report.verdict.level != "poor"
    assert codes(report, "repaired", "warning", "refused") == set()
    assert found(report, "velocity-agrees").severity == "info"
    np.testing.assert_array_equal(report.recording.position, log.position)


@pytest.mark.parametrize(
    ("values", "severity", "words"),
    [
        (np.linspace(-1, 1, 200), "refused", "moves from -0.99 to 0.99 rad"),
        (np.full(200, 1.5), "refused", "stands at 1.5 rad"),
        (np.linspace(-0.2, 0.2, 200), "warning", "moves from -0.198"),
        (np.full(200, 0.05), None, ""),
    ],
)
def test_a_locked_joint_that_is_elsewhere_in_the_log(values: np.ndarray[Any, Any], severity: str | None, words: str) -> None:
    robot = Robot.from_urdf(arm_urdf("zyy"), lock={"j3": 0.0})
    t = np.arange(200) / 50
    frame = {"t": t, "q_j1": np.sin(t), "q_j2": np.cos(t), "q_j3": np.rad2deg(values), "tau_j1": np.cos(t), "tau_j2": np.sin(t)}
    frame |= {name: np.rad2deg(frame[name]) for name in ("q_j1", "q_j2")}
    log = Recording.from_frame(frame, robot, layout=LogLayout(units={"position": "deg"}))
    report = assess(log, robot)
    said = [finding for finding in report.findings if finding.id == "locked-joint"]
    assert [finding.severity for finding in said] == ([severity] if severity else [])
    for finding in said:
        assert words in finding.message
        assert "do not lock it (robot.lock, robot.joints)" in str(finding.remedy)
        settings = dict(finding.remedy.settings) if finding.remedy else {}
        assert settings == ({"robot.lock.j3": pytest.approx(1.5, abs=0.01)} if "stands" in words else {})
        if settings:
            assert Project().with_settings(settings, robot).robot.lock == {"j3": pytest.approx(1.5, abs=0.01)}
        assert ("lock: {j3: 1.5}" in str(finding.remedy)) == ("stands" in words)


def test_report_is_json(robot: Robot) -> None:
    log = edit(make_log(), position=((5, 1), np.nan))
    report = assess(log, robot)
    assert report.verdict.level != "poor"
    assert len(log) == 5000
    assert len(report.recording) == 4999
    assert set(json.loads(json_text(report.findings))[0]) == {
        *("id", "severity", "joint", "joints", "rows", "message", "remedy", "settings"),
        *("size", "certainty", "candidates"),
    }


Change = Callable[[Recording], Recording]


def cells(**values: tuple[Any, Any]) -> Change:
    return lambda log: edit(log, **values)


def times(**factors: Any) -> Change:
    return lambda log: replace(log, **{name: getattr(log, name) * np.array(by) for name, by in factors.items()})


def plus(*offsets: float) -> Change:
    """Positions with other zeros, without velocities."""
    return lambda log: replace(log, position=log.position + np.array(offsets), velocity=None)


def columns(name: str, *order: int) -> Change:
    return lambda log: replace(log, **{name: getattr(log, name)[:, order]})


def rows(*kept: slice) -> Change:
    return lambda log: log.take(np.r_[kept])


def clock(change: Callable[[np.ndarray], np.ndarray]) -> Change:
    return lambda log: replace(log, time=change(log.time))


def still(log: Recording) -> Recording:
    noise = np.random.default_rng(5).standard_normal(log.position.shape)
    return replace(log, position=0.5 + 1e-5 * noise, velocity=0 * log.velocity)


def slow(log: Recording) -> Recording:
    moved = np.array([0.012, 0, 0.004]) * np.sin(log.time)[:, None]
    return replace(log, position=moved + 1e-6 * log.position, velocity=None)


ALL, NOISE, DEGREE = slice(None), np.random.default_rng(6).standard_normal(5000), np.rad2deg(1)
RESTING = {"effort": ((ALL, 1), 0.0), "position": ((ALL, 1), 0.3), "velocity": ((ALL, 1), 0.0)}
GONE = {"position": ([100, 2000], np.nan), "time": ([100, 3000], np.nan), "effort": ([100, 2000], np.nan)}
#: What happened to a log; the finding that tells it: id, severity, joint, rows of the file, and what message or remedy say.
FAULTS: list[tuple[Change, str, str, str | None, tuple[int, ...] | None, str]] = [
    (cells(**GONE), "rows-unreadable", "repaired", None, (102, 2002, 3002), ""),
    (cells(position=(slice(0, 5000, 15), np.nan)), "rows-unreadable", "refused", None, None, "record the log again"),
    (cells(position=(700, 1e300), velocity=(700, 1e300), effort=(700, -1e300)), "values-missing", "repaired", None, (702,), ""),
    (cells(effort=((700, 1), -1e300)), "values-impossible", "repaired", "b", (702,), ""),
    (cells(effort=((slice(1000, 1100), 2), np.nan)), "clock-gaps", "repaired", None, None, ""),
    (cells(effort=((slice(1000, 1400), 2), np.nan)), "channel-missing", "refused", "slide", None, ""),
    (times(time=1e3), "time-unit", "refused", None, None, "time: ms"),
    (times(time=1e6), "time-unit", "refused", None, None, "time: us"),
    (times(time=1e9), "time-unit", "refused", None, None, "time: ns"),
    (clock(lambda t: np.arange(len(t)) * 1.0), "time-unit", "refused", None, None, "rate"),
    (lambda log: log.take(np.random.default_rng(0).permutation(len(log))), "time-backwards", "refused", None, None, "split"),
    (clock(lambda t: t - np.where(t >= t[2500], t[2500], 0.0)), "time-backwards", "refused", None, (2502,), "split"),
    (clock(lambda t: t[::-1].copy()), "time-backwards", "refused", None, None, ""),
    (clock(lambda t: 0 * t), "clock-stands", "refused", None, None, "does not increase"),
    (clock(lambda t: np.floor(1.7e9 + t / 2)), "clock-stands", "refused", None, None, "increases in only 9 of 5000 rows"),
    (clock(lambda t: np.floor((1.7e9 + t / 2) / 100) * 100), "clock-stands", "refused", None, None, "with all digits"),
    (clock(lambda t: np.ceil(t / 0.2) * 0.2 + 1e-6 * np.arange(len(t))), "clock-uneven", "refused", None, None, "bursts"),
    # three lost samples are bridged, a hundred are not
    (rows(slice(0, 1000), slice(1100, 3000), slice(3003, 5000)), "clock-gaps", "repaired", None, (1102,), "1 pause"),
    (lambda log: replace(log, effort=None), "effort-missing", "refused", None, None, ""),
    (cells(effort=((ALL, 1), 0.0)), "effort-dead", "refused", "b", None, ""),
    (cells(**RESTING), "effort-constant", "warning", "b", None, ""),
    (cells(**RESTING), "joint-at-rest", "warning", "b", None, ""),
    (still, "at-rest", "refused", None, None, "does not move"),
    (slow, "joint-at-rest", "warning", "b", None, ""),
    (rows(slice(0, 80)), "too-few-rows", "refused", None, None, ""),
    (rows(slice(0, 200)), "too-short", "refused", None, None, ""),
    (rows(slice(0, 800)), "short", "warning", None, None, ""),
    (plus(4.0, 0, 0), "position-beyond-limit", "warning", "a", None, ""),  # another zero is no other unit
    (plus(-5.0, 0, 0), "position-beyond-limit", "warning", "a", None, ""),
    (plus(1.6, 0, 0), "position-beyond-limit", "warning", "a", None, ""),
    (times(position=(1, 1, 1000), velocity=(1, 1, 1000)), "position-unit", "refused", "slide", None, "mm"),
    (columns("position", 0, 0, 2), "position-twice", "warning", None, None, "a and b"),
    (times(velocity=(DEGREE, DEGREE, 1)), "velocity-unit", "refused", None, None, "deg/s"),
    (times(velocity=(30 / np.pi, 30 / np.pi, 1)), "velocity-unit", "refused", None, None, "rpm"),
    (times(velocity=(0.5 / np.pi, 0.5 / np.pi, 1)), "velocity-unit", "refused", None, None, "rev/s"),
    (times(velocity=(1 / DEGREE, 1 / DEGREE, 1)), "velocity-unit", "refused", None, None, "position: deg"),
    (times(velocity=(1, 1, -1)), "velocity-sign", "refused", "slide", None, ""),
    (columns("velocity", 1, 0, 2), "velocities-exchanged", "refused", "a", None, "a and b"),
    (cells(velocity=((ALL, 1), NOISE)), "velocity-unrelated", "repaired", None, None, "b"),
    (cells(velocity=((ALL, 1), 0.0)), "velocity-dead", "repaired", None, None, "b"),
]


@pytest.mark.parametrize(("change", "code", "severity", "joint", "at", "words"), FAULTS)
def test_a_fault_is_told_with_its_place_and_remedy(
    robot: Robot, change: Change, code: str, severity: str, joint: str | None, at: tuple[int, ...] | None, words: str
) -> None:
    log = change(make_log())
    report = assess(log, robot)
    finding = found(report, code)
    assert (finding.severity, finding.joint) == (severity, joint)
    assert at is None or finding.rows == at
    assert words in finding.message + str(finding.remedy)
    assert (report.verdict.level == "poor") == (severity == "refused")
    assert all(item.remedy for item in report.findings if item.severity == "refused")
    assert severity == "refused" or np.abs(report.recording.position).max() < 8
    if code.startswith(("velocity-unrelated", "velocity-dead")):
        assert report.recording.velocity is None


# ---- rows and values -----------------------------------------------------------------------------


def test_rows_that_the_logger_drew_over_gaps_are_left_out(robot: Robot) -> None:
    log = make_log()
    kept = (np.arange(len(log)) % 1000 > 100) | (np.arange(len(log)) < 200)
    position, effort = (
        np.column_stack([np.interp(log.time, log.time[kept], x[kept]) for x in array.T]) for array in (log.position, log.effort)
    )
    report = assess(replace(log, position=position, effort=effort), robot)
    finding = found(report, "rows-interpolated")
    assert finding.severity == "repaired"
    assert np.isin(report.recording.time, log.time[kept]).all()
    assert len(report.recording) == pytest.approx(kept.sum(), abs=5)
    assert "rows-interpolated" not in codes(assess(log, robot), "repaired", "refused")
    resampled = np.column_stack([np.interp(log.time, log.time[::4], x[::4]) for x in log.effort.T])
    assert "rows-interpolated" not in codes(assess(replace(log, effort=resampled), robot), "repaired", "refused")


def test_holes_in_an_optional_signal_cost_no_rows(robot: Robot) -> None:
    log = make_log()
    report = assess(edit(log, velocity=((slice(1000, 1010), 2), np.nan)), robot)
    assert found(report, "values-bridged").severity == "repaired"
    assert len(report.recording) == len(log)
    np.testing.assert_allclose(report.recording.velocity[1000:1010, 2], log.velocity[1000:1010, 2], atol=0.02)
    report = assess(edit(log, velocity=((slice(1000, 4000), 2), np.nan)), robot)
    assert found(report, "signal-dropped").severity == "repaired"
    assert report.recording.velocity is None


def test_spikes_are_left_out_but_steps_and_noise_stay(robot: Robot) -> None:
    log = make_log()
    report = assess(edit(log, position=((1234, 0), log.position[1234, 0] + 0.4), effort=((300, 1), 90.0)), robot)
    spikes = {(f.joint, f.rows) for f in report.findings if f.id == "values-spike"}
    assert spikes == {("a", (1236,)), ("b", (302,))}
    stepped = log.effort + 10 * np.sign(log.velocity)  # dry friction: steps, no spikes
    assert codes(assess(replace(log, effort=stepped), robot), "repaired", "warning", "refused") == set()
    rng = np.random.default_rng(1)
    heavy = log.effort + rng.standard_t(3, log.effort.shape)
    assert "values-spike" not in codes(assess(replace(log, effort=heavy), robot), "repaired")


@pytest.mark.parametrize("times", [1, 7])
def test_a_position_that_a_logger_sets_to_zero_for_some_rows_at_a_time_is_left_out(robot: Robot, times: int) -> None:
    log = make_log()
    position = log.position.copy()
    first = int(np.argmax(np.abs(position[:1000, 1])))
    for begin in range(first, len(log) - 100, len(log) // times):
        position[begin : begin + 15, 1] = 0.0
    missing = position[:, 1] == 0.0
    report = assess(replace(log, position=position), robot)
    assert found(report, "values-sentinel").joint == "b"
    apart = missing & (np.abs(log.position[:, 1]) > 0.05)  # beside motion through zero the value does no harm
    assert apart.any()
    assert not np.isin(log.time[apart], report.recording.time).any()
    assert len(report.recording) >= len(log) - missing.sum()


def test_wrapped_joint_is_joined(robot: Robot) -> None:
    log = make_log()
    turning = log.position + np.array([0, 2.5, 0])
    wrapped = turning.copy()
    wrapped[:, 1] = (wrapped[:, 1] + np.pi) % (2 * np.pi) - np.pi
    assert np.abs(np.diff(wrapped[:, 1])).max() > 6
    report = assess(replace(log, position=wrapped), robot)
    assert found(report, "position-wrapped").joint == "b"
    difference = report.recording.position[:, 1] - turning[:, 1]
    np.testing.assert_allclose(difference, difference[0], atol=1e-9)


@pytest.mark.parametrize("share", [0.35, 0.7])
def test_a_counter_that_wraps_within_the_travel_is_joined(robot: Robot, share: float) -> None:
    """As of an encoder of one turn before a gear: the joint's own turns say nothing about its range."""
    log = make_log()
    low, size = log.position[:, 1].min() + 0.1, share * np.ptp(log.position[:, 1])
    wrapped = log.position.copy()
    wrapped[:, 1] = (wrapped[:, 1] - low) % size + low
    report = assess(replace(log, position=wrapped), robot)
    assert (found(report, "position-wrapped").joint, found(report, "position-wrapped").severity) == ("b", "warning")
    assert "position-jump" not in codes(report, "warning")
    difference = report.recording.position[:, 1] - log.position[:, 1]
    np.testing.assert_allclose(difference, difference[0], atol=2e-3 * size)


# ---- the clock -----------------------------------------------------------------------------------


def test_rows_lost_behind_even_stamps_are_said_and_sound_logs_raise_nothing(robot: Robot) -> None:
    log = make_log()
    gone = np.isin(np.arange(len(log)) // 7, [40, 171, 390])
    late = log.take(~gone)
    finding = found(assess(replace(late, time=log.time[: len(late)]), robot), "samples-lost")
    assert finding.severity == "warning"
    assert "at 3 place(s)" in finding.message
    assert "about 21 rows" in finding.message
    mended = assess(replace(late, time=log.time[: len(late)]), robot).recording.time
    np.testing.assert_allclose(mended, late.time, atol=0.5 * np.diff(log.time[:2]).item())
    assert "samples-lost" not in codes(assess(late, robot), "warning")
    clock_set = replace(log, time=log.time + np.where(np.arange(len(log)) > len(log) // 2, 3600.0, 0.0))
    assert codes(assess(clock_set, robot), "warning") == codes(assess(log, robot), "warning")
    once = log.take(np.arange(len(log)) // 20 != 100)
    assert "at 1 place(s)" in found(assess(replace(once, time=log.time[: len(once)]), robot), "samples-lost").message


def test_backlash_and_interpolated_rows_are_no_lost_rows(robot: Robot) -> None:
    log = make_log(velocity=None)
    loose, at = np.array(log.position), log.position[0, 1]
    for k, x in enumerate(loose[:, 1]):
        loose[k, 1] = at = min(max(at, x - 0.5), x + 0.5)  # this joint stands still more than half of the time
    fine = np.arange(0.0, log.time[-1], 1e-3)
    rounded = np.round(log.position, 4)
    rounded[:500] = rounded[500]
    rounded[:500:9, 0] += 1e-4  # one count to and fro while the robot stands still
    lines = {
        name: np.column_stack([np.interp(fine, log.time, x) for x in of.T])
        for name, of in (("q", rounded), ("tau", log.effort))
    }
    finer = replace(log, time=fine, position=lines["q"], effort=lines["tau"], rows=np.arange(len(fine)) + 2)
    for sound in (replace(log, position=loose), finer):
        assert "samples-lost" not in codes(assess(sound, robot), "warning")


def test_a_joint_jogged_slowly_by_counts_of_its_encoder_loses_and_holds_nothing(robot: Robot) -> None:
    """At 1 kHz and 14 bits one joint after the other moves by a count in each row or each third one."""
    log, count, rows = make_log(), 2 * np.pi / 2**14, 4000
    t = np.arange(3 * rows) / 1000.0
    speeds = np.array([0.55, 0.9, 0.128])  # [rad/s]
    q = np.stack([np.interp(t, [4.0 * j + 0.2, 4.0 * j + 3.8], [0.0, 3.6 * speed]) for j, speed in enumerate(speeds)], axis=1)
    q += 1e-4 * np.sin(40 * t)[:, None] * (np.gradient(q, axis=0) > 0)
    noise = np.random.default_rng(0).standard_normal(q.shape)
    jog = replace(log, time=t, position=np.round(q / count) * count, velocity=None, effort=noise, rows=np.arange(len(t)))
    assert not {"samples-lost", "position-held"} & codes(assess(jog, robot), "warning")
    gone = jog.take(np.arange(len(t)) // 40 % 25 != 12)
    assert "samples-lost" in codes(assess(replace(gone, time=t[: len(gone)]), robot), "warning")


def test_runs_joined_into_one_file_are_split_where_the_joints_are_elsewhere(robot: Robot) -> None:
    """Under one even clock the jump was an acceleration, and the verdict spoke of contact and filtered efforts."""
    log = make_log()
    pieces = [log.take(np.arange(len(log)) // 1000 == k) for k in (3, 0, 4)]
    joined = {
        name: np.concatenate([getattr(piece, name) for piece in pieces]) for name in ("position", "velocity", "effort", "rows")
    }
    report = assess(replace(log, time=log.time[:3000], **joined), robot)
    finding = found(report, "runs-joined")
    assert finding.severity == "repaired"
    assert "at 2 place(s)" in finding.message
    assert codes(report, "warning", "refused") == set()
    np.testing.assert_array_equal(report.recording.position, joined["position"])
    assert [len(piece.q) for piece in even_pieces(report.recording)[0]] == [1000, 1000, 1000]


def in_buffers(time: np.ndarray, seconds: float, spacing: float) -> np.ndarray:
    """Stamps of rows that wait in a buffer and are then read one by one, some part of their period apart."""
    step, rows = time[1] - time[0], round(seconds / (time[1] - time[0]))
    place = np.arange(len(time))
    return np.asarray((place // rows + 1) * seconds + place % rows * spacing * step)


def test_rows_read_from_a_buffer_have_the_clock_of_the_motion(robot: Robot) -> None:
    """They looked like thousands of pauses: all motion was cut away, and the log refused as too short."""
    log = make_log()
    for seconds, spacing in ((0.008, 0.4), (0.048, 0.1)):
        report = assess(replace(log, time=in_buffers(log.time, seconds, spacing)), robot)
        assert found(report, "clock-jitter").severity == "repaired"
        assert np.std(report.recording.time - log.time[: len(report.recording)]) < 0.002
    slow = assess(replace(log, time=in_buffers(log.time, 0.8, 0.1)), robot)  # slower than the motion
    assert "bursts" in found(slow, "clock-uneven").message
    assert slow.verdict.level == "poor"


def test_pauses_in_motion_are_no_buffer(robot: Robot) -> None:
    log = make_log()
    some = log.take(np.flatnonzero(np.arange(len(log)) % 100 < 40))
    report = assess(some, robot)
    assert found(report, "clock-gaps").severity == "repaired"
    assert not {"clock-uneven", "clock-jitter"} & codes(report)


@pytest.mark.parametrize("jump", [-0.5, 0.5, 100.0, -3000.0])
def test_single_stamps_out_of_order_are_left_out(robot: Robot, jump: float) -> None:
    log = make_log()
    stamps = log.time.copy()
    stamps[[400, 1700]] += jump
    report = assess(replace(log, time=stamps), robot)
    assert report.verdict.level != "poor"
    assert found(report, "time-out-of-order").rows == (402, 1702)
    assert len(report.recording) == len(log) - 2
    np.testing.assert_allclose(np.diff(report.recording.time).max(), 2 / 250)


def test_duplicated_rows_are_left_out(robot: Robot) -> None:
    log = make_log()
    twice = np.sort(np.r_[0:5000, 100:5000:40])
    report = assess(log.take(twice), robot)
    assert report.verdict.level != "poor"
    np.testing.assert_array_equal(report.recording.time, log.time)


def test_repeated_samples_with_new_stamps_are_left_out_in_motion_only(robot: Robot) -> None:
    log = make_log()
    still = 1.0 * (log.time < 4)  # a simulator at rest repeats itself exactly: nothing is wrong with that
    position = np.where(still[:, None] > 0, log.position[1000], log.position)
    velocity = np.where(still[:, None] > 0, 0.0, log.velocity)
    effort = np.where(still[:, None] > 0, 1.0, log.effort)
    for array in (position, velocity, effort):
        array[[2000, 3000, 3001]] = array[[1999, 2999, 2999]]
    report = assess(replace(log, position=position, velocity=velocity, effort=effort), robot)
    assert found(report, "samples-repeated").rows == (2002, 3002, 3003)
    assert len(report.recording) == len(log) - 3


@pytest.mark.parametrize(("jitter", "lose", "noise"), [(0.3, 0.03, 1e-6), (1.0, 0.0, 0.0), (0.6, 0.05, 1e-5)])
def test_device_clock_behind_jittering_stamps(robot: Robot, jitter: float, lose: float, noise: float) -> None:
    rng = np.random.default_rng(3)
    true = np.arange(0, 20, 0.002)
    true = true[rng.random(len(true)) >= lose]
    q = motion(true)[0] + noise * rng.standard_normal((len(true), 3))
    stamps = np.sort(true + 0.002 * jitter * rng.random(len(true)))
    clock = device_clock(stamps, q)
    assert clock is not None
    assert clock.period == pytest.approx(0.002, rel=1e-3)
    assert clock.spread_after < 0.1
    error = (clock.time - true) - np.mean(clock.time - true)
    assert np.std(np.diff(error)) < 0.15 * np.std(np.diff(stamps - true))
    log = make_log(duration=len(true) / 250).take(slice(0, len(true)))
    report = assess(replace(log, time=stamps, position=q, velocity=None), robot)
    assert found(report, "clock-jitter").severity == "repaired"


def test_signals_with_rows_of_their_own_are_joined(robot: Robot) -> None:
    """An outer join of two topics: no row holds positions and efforts; two seconds of efforts are missing."""
    log = make_log()
    N, time = len(log), np.sort(np.concatenate([log.time, log.time + 0.0013]))
    holes = np.full((2 * N, 3), np.nan)
    position, velocity, effort = holes.copy(), holes.copy(), holes.copy()
    position[::2], velocity[::2] = log.position, log.velocity
    for j in range(3):
        effort[1::2, j] = np.interp(log.time + 0.0013, log.time, log.effort[:, j])
    effort[2000:2050] = np.nan
    report = assess(Recording("log", JOINTS, time, position, velocity=velocity, effort=effort), robot)
    assert report.verdict.level != "poor"
    assert "effort in 4975 others" in found(report, "signals-joined").message
    assert len(report.recording) == N - 27  # rows inside the gap, and the one before the first effort
    expected = np.stack([np.interp(report.recording.time, log.time, x) for x in log.effort.T], axis=1)
    assert np.std(report.recording.effort - expected) < 0.05 * np.std(expected)
    np.testing.assert_array_equal(report.recording.position[:900], log.position[1:901])


@pytest.mark.parametrize("stamped", ["hundredths", "late"])
def test_device_clock_is_even_where_the_robot_creeps(robot: Robot, stamped: str) -> None:
    """Stamps that were kept there repeated each other, and rows beside them looked missing."""
    rng = np.random.default_rng(3)
    true = np.delete(np.arange(0, 30, 0.0085), slice(2210, 2216))  # rows that are missing while the robot creeps
    late = np.maximum.accumulate(true + 0.002 * np.abs(rng.standard_normal(len(true))))
    stamps = late if stamped == "late" else np.round(true, 2)
    position = motion(true - np.sin(true))[0]
    clock = device_clock(stamps, position)
    assert clock is not None
    assert np.sum(np.round(np.diff(clock.time) / clock.period) != np.round(np.diff(true) / 0.0085)) <= 1  # were some 150
    log = make_log(duration=len(true) / 250).take(slice(0, len(true)))
    report = assess(replace(log, time=stamps, position=position, velocity=None), robot)
    assert len(report.recording) == len(true)
    assert {item.id for item in report.findings} & {"samples-lost", "samples-repeated", "stamps-repeated"} == set()


def test_device_clock_does_not_invent_one() -> None:
    rng = np.random.default_rng(4)
    uneven = np.cumsum(0.002 * (1 + 0.4 * rng.random(10_000)))  # the samples really were uneven
    assert device_clock(uneven, motion(uneven)[0]) is None
    true = np.arange(0, 20, 0.002)
    coarse = np.round(motion(true)[0], 2)  # an encoder too coarse to show intervals
    assert device_clock(true + 0.0005 * rng.random(len(true)), coarse) is None
    still = np.zeros((10_000, 3))
    assert device_clock(true + 0.0005 * rng.random(len(true)), still) is None


def test_alternating_clock_is_reported_with_its_mean_rate(robot: Robot) -> None:
    stamps = np.cumsum(np.tile([0.010, 0.010, 0.012], 700))
    q, v = motion(stamps)
    log = Recording("log", JOINTS, stamps, q, velocity=v, effort=5 * q + 0.1 * v)
    assert "93.75 Hz" in found(assess(log, robot), "clock-uneven").message


# ---- channels, units, signs, joints --------------------------------------------------------------


def test_position_that_freezes_in_motion_is_left_out(robot: Robot) -> None:
    log = make_log()
    start = int(np.argmax(np.abs(log.velocity[:4500, 0])))
    frozen = edit(log, position=((slice(start, start + 100), 0), log.position[start, 0]))
    for each in (frozen, replace(frozen, velocity=None)):
        report = assess(each, robot)
        finding = next(f for f in report.findings if f.id == "channel-frozen")
        assert finding.joint == "a"
        assert len(log) - 101 <= len(report.recording) <= len(log) - 99


@pytest.mark.parametrize("digits", [1, 2])
def test_positions_with_few_digits_do_not_freeze(robot: Robot, digits: int) -> None:
    """They stay equal while a joint moves slowly, and go on with a step of one digit; a frozen sensor jumps."""
    log = make_log()
    start = int(np.argmax(np.abs(log.velocity[:4500, 0])))
    coarse = replace(log, position=np.round(log.position, digits))
    assert "channel-frozen" not in codes(assess(coarse, robot), "warning")
    frozen = edit(coarse, position=((slice(start, start + 200), 0), coarse.position[start, 0]))
    assert found(assess(frozen, robot), "channel-frozen").joint == "a"


def test_effort_that_freezes_in_motion_is_left_out(robot: Robot) -> None:
    log = make_log()
    report = assess(edit(log, effort=((slice(2000, 2200), 0), log.effort[2000, 0])), robot)
    assert found(report, "channel-frozen").joint == "a"
    assert len(report.recording) == len(log) - 200
    rounded = replace(log, effort=np.round(log.effort))  # coarse efforts repeat, but do not freeze
    assert "channel-frozen" not in codes(assess(rounded, robot), "warning")


def test_positions_in_degrees_are_refused(robot: Robot) -> None:
    log = make_log()
    degrees = log.position * np.array([np.rad2deg(1), np.rad2deg(1), 1])
    for each in (
        replace(log, position=degrees, velocity=None),
        replace(log, position=degrees, velocity=log.velocity * np.array([np.rad2deg(1), np.rad2deg(1), 1])),
        replace(log, position=degrees),
    ):
        finding = found(assess(each, robot), "position-unit")
        assert finding.severity == "refused"
        assert "position: deg" in str(finding.remedy)
        assert "rev" not in finding.message
    turns = log.position * np.array([2 * np.pi, 2 * np.pi, 1])
    assert (
        "rad that are described as rev"
        in found(assess(replace(log, position=turns, velocity=None), robot), "position-unit").message
    )


def test_one_joint_in_degrees_is_told_from_counts() -> None:
    """In degrees, the other joint would be beyond its limits, which are above zero: not all joints are in degrees."""
    axis = '<axis xyz="0 1 0"/>'
    limited = URDF.replace("continuous", "revolute").replace(
        axis, f'{axis}<limit lower="0.7" upper="4.7" velocity="3" effort="50"/>'
    )
    robot = Robot.from_urdf(limited)
    log = make_log(velocity=None)
    log = replace(log, position=log.position + np.array([0, 2.7, 0]))
    assert assess(log, robot).verdict.level != "poor"
    finding = found(assess(replace(log, position=log.position * np.array([np.rad2deg(1), 1, 1])), robot), "position-unit")
    assert (finding.joint, finding.severity) == ("a", "refused")
    assert "positions look like deg, unlike those of other joints" in finding.message
    assert "`q_<joint> [deg]`" in str(finding.remedy)


def test_positions_in_counts_are_refused_unless_the_joints_only_stand_far_away(robot: Robot) -> None:
    log = make_log(velocity=None)
    counts = np.round(log.position * np.array([65536 / (2 * np.pi)] * 2 + [1e5]))
    for scale in ((1, 1, 1), (0, 1, 1), (1, 1, 0)):
        some = np.where(scale, counts, log.position)
        finding = found(assess(replace(log, position=some), robot), "position-unit")
        assert finding.severity == "refused"
        assert "counts(" in str(finding.remedy)
    report = assess(replace(log, position=log.position + np.array([400 * np.pi, 0, 0])), robot)
    assert report.verdict.level != "poor"
    assert found(report, "position-beyond-limit").joint == "a"


@pytest.mark.parametrize(
    ("factors", "words"),
    [((1, 1.3, 1), "dq/dt of b is 0.7692"), ((10, 10, 1), "constant factor of 10"), ((0.01, 0.01, 0.01), "of 0.01")],
)
def test_velocity_with_another_scale_is_not_used_and_the_remedy_ends_it(
    robot: Robot, factors: tuple[float, ...], words: str
) -> None:
    log = replace(make_log(), velocity=make_log().velocity * np.array(factors))
    finding = found(assess(log, robot), "velocity-scale")
    assert finding.severity == "repaired"
    assert words in finding.message
    assert assess(log, robot).recording.velocity is None
    assert finding.remedy.settings == {"signals.velocity": "differentiated"}
    (report,) = assessed([log], robot, Drive.build(robot.n), SignalConfig(velocity="differentiated"))
    assert not any(item.id.startswith(("velocity", "time-scale")) for item in report.findings)


@pytest.mark.parametrize("lag", [0.18, 0.05, -0.03])
def test_lag_of_logged_velocities_is_measured(robot: Robot, lag: float) -> None:
    log = make_log()
    late = motion(log.time - lag)[1] + 1e-3 * np.random.default_rng(7).standard_normal(log.position.shape)
    report = assess(replace(log, velocity=late), robot)
    assert report.verdict.level != "poor"
    assert found(report, "velocity-lag").severity == "repaired"
    match = match_velocity(log.position, late, 250.0, 10.0)
    assert match.lag == pytest.approx(lag, abs=2e-3)
    np.testing.assert_allclose(match.scale, 1, atol=0.01)


def test_effort_far_beyond_its_limit_is_a_warning(robot: Robot) -> None:
    log = make_log()
    report = assess(replace(log, effort=log.effort * np.array([100, 1, 1])), robot)
    beyond = found(report, "effort-beyond-limit")
    assert beyond.joint == "a"
    for advice in re.findall("`([^`]+)`", str(beyond.remedy)):  # can be pasted into a project file
        parse_project(yaml.safe_load(advice))
    assert "effort-beyond-limit" not in codes(assess(replace(log, effort=log.effort * 100, effort_unit="A"), robot), "warning")


def test_an_effort_limit_below_the_robot_s_own_weight_is_no_limit() -> None:
    """Exporters of CAD programs write 1 for every effort limit; an arm that holds its links exceeds that."""
    t, q, v, a = fourier(3, 30.0, 100.0, 0)
    robot = Robot.from_urdf(arm_urdf("zyy"))
    log = Recording("run", robot.joints, t, q, effort=torques(robot, Truth.of(3), q, v, a))
    placeholder = Robot.from_urdf(arm_urdf("zyy").replace('effort="200"', 'effort="1"'))
    assert "effort-beyond-limit" not in codes(assess(log, placeholder), "warning")
    assert "effort-beyond-limit" in codes(assess(replace(log, effort=log.effort * 100), placeholder), "warning")


def spoil(log: Recording, rng: np.random.Generator) -> Recording:
    """Breaks a log in one random way."""
    name = str(rng.choice(["time", "position", "velocity", "effort"]))
    x = getattr(log, name).copy()
    n = len(x)
    where = rng.integers(0, n, int(rng.choice([1, 3, n // 50, n // 10])))
    kind = int(rng.integers(0, 7))
    if kind == 0:
        x[where] = rng.choice([np.nan, np.inf, 1e300, 1e12, 0.0])
    elif kind == 1:
        x[:] = x[0]
    elif kind == 2:
        x = np.roll(x, int(rng.integers(-50, 50)), axis=0)
    elif kind == 3:
        begin = int(rng.integers(0, n - 10))
        x[begin : begin + int(rng.integers(2, n // 4))] = x[begin]
    elif kind == 4:
        x = x * rng.choice([-1, 57.3, 1e3, 1e-3, 0, 1e6])
    elif kind == 5:
        x = np.round(x, int(rng.integers(0, 4)))
    else:
        return log.take(np.sort(rng.integers(0, n, n)))
    return replace(log, **{name: x})


@pytest.mark.parametrize("seed", range(12))
def test_spoilt_logs_are_refused_or_usable_but_never_crash(robot: Robot, seed: int) -> None:
    rng = np.random.default_rng(seed)
    log = make_log(duration=8.0)
    for _ in range(int(rng.integers(1, 3))):
        log = spoil(log, rng)
    report = assess(log, robot)
    json_text(report.findings)
    if report.verdict.level != "poor":
        segments = condition(report.recording, robot).segments
        assert all(np.isfinite(segment.a).all() and np.isfinite(segment.tau).all() for segment in segments)
    else:  # as with --force: an error of ours, or an answer
        with contextlib.suppress(UrdfIdentError):
            condition(report.recording, robot)


# ---- real logs -----------------------------------------------------------------------------------


def test_real_panda_clock_is_repaired(data: Path) -> None:
    robot = Robot.from_urdf(data / "panda/panda.urdf", lock={"panda_finger_joint1": 0.0, "panda_finger_joint2": 0.0})
    log = read_recording(data / "panda/panda_exciting.csv", robot)
    report = assess(log, robot)
    assert report.verdict.level != "poor"
    assert "even clock of 1 ms" in found(report, "clock-jitter").message
    assert 0.05 < 1 - len(report.recording) / len(log) < 0.07  # the duplicated samples
    assert read_clock(report.recording.time).rate == pytest.approx(1000, rel=1e-3)


def test_efforts_in_coarse_steps_are_named(robot: Robot) -> None:
    log = make_log()
    spread = log.effort.std(axis=0)  # type: ignore[union-attr]
    steps = spread * np.array([0.5, 0.05, 0.5])
    report = assess(replace(log, effort=np.round(log.effort / steps) * steps), robot)  # type: ignore[operator]
    coarse = [item for item in report.findings if item.id == "effort-quantised"]
    assert [item.joint for item in coarse] == ["a", "slide"]
    assert coarse[0].size == pytest.approx(steps[0], rel=1e-6)
    assert report.verdict.level != "poor"


@pytest.mark.parametrize(("scale", "copied"), [(1.0, True), (0.1, True), (1.0, False)])
def test_a_target_in_place_of_the_measured_effort_is_named(robot: Robot, scale: float, copied: bool) -> None:
    log = make_log()
    noise = 0.0 if copied else 0.01
    target = scale * np.asarray(log.effort) + noise * np.random.default_rng(1).standard_normal(np.shape(log.effort))
    report = assess(replace(log, torque_target=target), robot)
    assert ("effort-commanded" in codes(report, "warning")) == copied


def test_an_effort_without_sign_or_in_two_columns_is_refused(robot: Robot) -> None:
    recording = make_log()
    effort = np.array(recording.effort)
    unsigned, twice = effort.copy(), effort.copy()
    unsigned[:, 1] = np.abs(effort[:, 1] - effort[:, 1].mean())
    twice[:, 1] = -0.5 * effort[:, 0]
    assert "effort-unsigned" in codes(assess(replace(recording, effort=unsigned), robot), "refused")
    assert "effort-twice" in codes(assess(replace(recording, effort=twice), robot), "refused")
    lifted = effort - effort.min(axis=0)  # of one sign by right
    assert {"effort-unsigned", "effort-twice"}.isdisjoint(codes(assess(replace(recording, effort=lifted), robot), "refused"))
    noise = 0.04 * np.random.default_rng(3).standard_normal(len(effort))
    for violated_pair in (1 + np.sin(2 * np.pi * recording.time) + noise, 1 + np.sin(4 * np.pi * recording.time) + noise):
        minima = effort.copy()  # smooth minima at zero, with noise
        minima[:, 1] = violated_pair - violated_pair.min()
        assert "effort-unsigned" not in codes(assess(replace(recording, effort=minima), robot), "refused")
        minima[:, 1] = np.abs(violated_pair - 1)
        assert "effort-unsigned" in codes(assess(replace(recording, effort=minima), robot), "refused")


def test_a_repeated_motion_visits_zero_once(robot: Robot) -> None:
    """Friction that reverses just above zero, at the same pose in each period, is no lost sign."""
    log = make_log()
    effort = np.array(log.effort)
    effort[:, 1] = 0.02 + np.abs((log.time + 3.0) % 5.0 - 2.5)
    assert "effort-unsigned" in codes(assess(replace(log, effort=effort), robot), "refused")
    phase = 2 * np.pi * log.time[:, None] / 5.0
    repeated = np.array([1.2, 0.9, 0.5]) * np.sin(phase + np.array([0.0, 1.0, 2.0])) + 1e-5 * log.effort
    again = replace(log, position=repeated, velocity=None, effort=effort)
    assert "effort-unsigned" not in codes(assess(again, robot), "refused")


@pytest.mark.parametrize(("rows", "named"), [(50, True), (6, False)])
def test_efforts_between_straight_lines_are_named_where_the_motion_asks_for_more(robot: Robot, rows: int, named: bool) -> None:
    recording = make_log()
    effort, at = np.array(recording.effort), recording.time[::rows]
    effort[:, 1] = np.interp(recording.time, at, effort[::rows, 1])
    report = assess(replace(recording, effort=np.round(effort, 6)), robot)
    found = [item for item in report.findings if item.id == "effort-held"]
    assert [(item.id, item.joint, item.severity) for item in found] == [("effort-held", "b", "warning")] * named
    assert all(item.size == pytest.approx(250.0 / rows, rel=0.02) for item in found)


def test_a_channel_at_a_lower_rate_is_named(robot: Robot) -> None:
    recording = make_log()
    effort, rows = np.array(recording.effort), np.arange(len(recording))
    effort[:, 1] = effort[rows - rows % 25, 1]
    report = assess(replace(recording, effort=effort), robot)
    (found,) = (item for item in report.findings if item.id in ("effort-held", "position-held"))
    assert (found.id, found.joint, found.severity) == ("effort-held", "b", "warning")
    assert found.size == pytest.approx(10.0, rel=0.02)
    held = np.round(np.asarray(recording.position), 4)
    held[:, 1] = held[rows - rows % 25, 1]
    assert "position-held" in codes(assess(replace(recording, position=held), robot), "warning")
    coarse = np.round(np.asarray(recording.position) / 0.05) * 0.05  # steps that last as long as the motion wants
    assert "position-held" not in codes(assess(replace(recording, position=coarse), robot), "warning")


def test_stamps_that_are_next_to_equal_end_in_no_traceback(robot: Robot) -> None:
    recording = make_log()
    burst = np.array(recording.time)
    burst[2000:2012] = burst[2000] + 1e-9 * np.arange(12)  # between two pauses
    burst[2012:] += 1.0
    burst[2000:2012] += 0.5
    assert assess(replace(recording, time=burst), robot).verdict.level != "poor"
    all_at_once = recording.time[np.arange(len(burst)) // 500 * 500] + 1e-7 * (np.arange(len(burst)) % 500)
    assert "clock-uneven" in codes(assess(replace(recording, time=all_at_once), robot), "refused")


@pytest.mark.parametrize("size", [1e-308, 5e-324])
def test_efforts_that_no_arithmetic_can_use_hold_no_signal(robot: Robot, size: float) -> None:
    """A driver that never writes its efforts logs what was in memory."""
    recording = make_log()
    log = replace(recording, effort=size * np.sign(recording.effort), velocity=size * np.ones_like(recording.position))
    report = assess(log, robot)
    assert any("effort is 0 throughout" in finding.message for finding in report.findings)
    assert report.verdict.level == "poor"


def test_a_slide_in_metres_that_is_described_as_millimetres_is_not_just_at_rest(robot: Robot) -> None:
    position = make_log().position * np.array([0.0, 0.0, 0.4])
    still = found(assess(make_log(position=1e-3 * position, velocity=None), robot), "at-rest")
    assert "m, described as mm" in still.message
    assert "described as" not in found(assess(make_log(position=1e-6 * position, velocity=None), robot), "at-rest").message
