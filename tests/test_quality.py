"""The quality check: every way a log is bad is found, repaired without loss, or refused with its remedy."""

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

from urdf_ident import Drive, Judgement, Recording, Robot, UrdfIdentError
from urdf_ident.files.documents import json_text
from urdf_ident.logs.read import LogLayout, read_recording
from urdf_ident.project import Project, parse_project
from urdf_ident.signals.clock import device_clock, even_pieces, read_clock
from urdf_ident.signals.condition import condition
from urdf_ident.signals.config import SignalConfig
from urdf_ident.signals.prepare import assessed
from urdf_ident.signals.quality.report import assess
from urdf_ident.signals.velocity import match_velocity

JOINTS = ("a", "b", "slide")
ALL, NOISE, DEGREE = slice(None), np.random.default_rng(6).standard_normal(5000), np.rad2deg(1)
URDF = """<robot name="three">
  <link name="base"/><link name="l1"/><link name="l2"/><link name="l3"/>
  <joint name="a" type="revolute"><parent link="base"/><child link="l1"/><axis xyz="0 0 1"/>
    <limit lower="-2.8" upper="2.8" velocity="3" effort="50"/></joint>
  <joint name="b" type="continuous"><parent link="l1"/><child link="l2"/><axis xyz="0 1 0"/></joint>
  <joint name="slide" type="prismatic"><parent link="l2"/><child link="l3"/><axis xyz="1 0 0"/>
    <limit lower="-1" upper="1" velocity="2" effort="500"/></joint>
</robot>"""
ROBOT = Robot.from_urdf(URDF)


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


#: The good log that tests spoil.
LOG = make_log()


def edit(log: Recording, **cells: tuple[Any, Any]) -> Recording:
    """Sets ``signal[index] = value``."""
    arrays = {name: getattr(log, name).copy() for name in cells}
    for name, (index, value) in cells.items():
        arrays[name][index] = value
    return replace(log, **arrays)


def found(log: Recording, code: str, robot: Robot = ROBOT) -> Judgement:
    """The one finding of that code."""
    matches = [finding for finding in assess(log, robot).findings if finding.id == code]
    assert len(matches) == 1, [(f.id, f.message) for f in assess(log, robot).findings]
    return matches[0]


def codes(log: Recording, robot: Robot = ROBOT) -> set[str]:
    """What is found beyond what is only noted."""
    return {finding.id for finding in assess(log, robot).findings if finding.severity != "info"}


def refused(log: Recording, robot: Robot = ROBOT) -> bool:
    return assess(log, robot).verdict.level == "poor"


def test_a_good_log_has_nothing_to_repair() -> None:
    assert codes(LOG) == set()
    assert found(LOG, "velocity-agrees").severity == "info"
    np.testing.assert_array_equal(assess(LOG, ROBOT).recording.position, LOG.position)


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


def test_report_is_json() -> None:
    report = assess(edit(LOG, position=((5, 1), np.nan)), ROBOT)
    assert (report.verdict.level, len(LOG), len(report.recording)) == ("good", 5000, 4999)
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


def second(values: np.ndarray) -> Change:
    """Another effort of the second joint."""
    return cells(effort=((ALL, 1), values))


def unwritten(log: Recording, size: float) -> Recording:
    return replace(second(size * np.sign(log.effort[:, 1]))(log), velocity=size * np.ones_like(log.velocity))


def still(log: Recording) -> Recording:
    noise = np.random.default_rng(5).standard_normal(log.position.shape)
    return replace(log, position=0.5 + 1e-5 * noise, velocity=0 * log.velocity)


def slow(log: Recording) -> Recording:
    moved = np.array([0.012, 0, 0.004]) * np.sin(log.time)[:, None]
    return replace(log, position=moved + 1e-6 * log.position, velocity=None)


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
    (lambda log: second(np.abs(log.effort[:, 1] - log.effort[:, 1].mean()))(log), "effort-unsigned", "refused", "b", None, ""),
    *(
        (lambda log, hz=hz: second(np.abs(np.sin(2 * np.pi * hz * log.time)))(log), "effort-unsigned", "refused", "b", None, "")
        for hz in (1, 2)
    ),
    (lambda log: second(0.02 + np.abs((log.time + 3) % 5 - 2.5))(log), "effort-unsigned", "refused", "b", None, ""),
    (lambda log: second(-0.5 * log.effort[:, 0])(log), "effort-twice", "refused", None, None, ""),
    # a driver that never writes its efforts logs what was in memory, which no arithmetic can use
    *((lambda log, x=x: unwritten(log, x), "effort-dead", "refused", "b", None, "0 throughout") for x in (1e-308, 5e-324)),
]


@pytest.mark.parametrize(("change", "code", "severity", "joint", "at", "words"), FAULTS)
def test_a_fault_is_told_with_its_place_and_remedy(
    change: Change, code: str, severity: str, joint: str | None, at: tuple[int, ...] | None, words: str
) -> None:
    log = change(LOG)
    report, finding = assess(log, ROBOT), found(log, code)
    assert (finding.severity, finding.joint) == (severity, joint)
    assert at is None or finding.rows == at
    assert words in finding.message + str(finding.remedy)
    assert (report.verdict.level == "poor") == (severity == "refused")
    assert all(item.remedy for item in report.findings if item.severity == "refused")
    assert severity == "refused" or np.abs(report.recording.position).max() < 8
    if code.startswith(("velocity-unrelated", "velocity-dead")):
        assert report.recording.velocity is None


def loose(log: Recording) -> Recording:
    """A joint with so much play that it stands still more than half of the time."""
    q, at = np.array(log.position), log.position[0, 1]
    for k, x in enumerate(q[:, 1]):
        q[k, 1] = at = min(max(at, x - 0.5), x + 0.5)
    return replace(log, position=q, velocity=None)


def finer(log: Recording) -> Recording:
    """Rows at 1 kHz on straight lines; at first the robot stands still, but for one count of an encoder to and fro."""
    time, q = np.arange(0.0, log.time[-1], 1e-3), np.round(log.position, 4)
    q[:500] = q[500]
    q[:500:9, 0] += 1e-4
    position, effort = (np.column_stack([np.interp(time, log.time, x) for x in of.T]) for of in (q, log.effort))
    return replace(log, time=time, position=position, velocity=None, effort=effort, rows=np.arange(len(time)) + 2)


GONE_ROWS = np.isin(np.arange(5000) // 7, [40, 171, 390])
SIZES = np.array([1.2, 0.9, 0.5])
#: Logs that are odd and right, and what they are not taken for.
SOUND: dict[str, tuple[Change, set[str]]] = {
    "resampled": (
        lambda log: replace(log, effort=np.column_stack([np.interp(log.time, log.time[::4], x[::4]) for x in log.effort.T])),
        {"rows-interpolated"},
    ),
    "heavy noise": (
        lambda log: replace(log, effort=log.effort + np.random.default_rng(1).standard_t(3, log.effort.shape)),
        {"values-spike"},
    ),
    "rows that are lost with their stamps": (lambda log: log.take(~GONE_ROWS), {"samples-lost"}),
    "a joint with play": (loose, {"samples-lost"}),
    "interpolated rows": (finer, {"samples-lost"}),
    "positions with one digit": (lambda log: replace(log, position=np.round(log.position, 1)), {"channel-frozen"}),
    "positions with two digits": (lambda log: replace(log, position=np.round(log.position, 2)), {"channel-frozen"}),
    "coarse efforts repeat": (lambda log: replace(log, effort=np.round(log.effort)), {"channel-frozen"}),
    "currents beyond the limit of torques": (
        lambda log: replace(log, effort=log.effort * 100, effort_unit="A"),
        {"effort-beyond-limit"},
    ),
    "efforts of one sign by right": (
        lambda log: replace(log, effort=log.effort - log.effort.min(axis=0)),
        {"effort-unsigned", "effort-twice"},
    ),
    # steps that last as long as the motion wants
    "coarse steps": (lambda log: replace(log, position=np.round(log.position / 0.05) * 0.05), {"position-held"}),
    # friction that reverses just above zero, at the same pose in each period
    "a repeated motion": (
        lambda log: replace(
            second(0.02 + np.abs((log.time + 3.0) % 5.0 - 2.5))(log),
            position=SIZES * np.sin(2 * np.pi * log.time[:, None] / 5.0 + [0.0, 1.0, 2.0]) + 1e-5 * log.effort,
            velocity=None,
        ),
        {"effort-unsigned"},
    ),
    **{
        f"smooth minima at zero, with noise, at {hertz} Hz": (
            second(waves - waves.min()),
            {"effort-unsigned"},
        )
        for hertz in (1, 2)
        for waves in [np.sin(2 * np.pi * hertz * LOG.time) + 0.04 * NOISE]
    },
}


@pytest.mark.parametrize(("change", "absent"), SOUND.values(), ids=SOUND)
def test_what_is_odd_and_right_is_not_taken_for_a_fault(change: Change, absent: set[str]) -> None:
    assert not absent & codes(change(LOG))


# ---- rows and values -----------------------------------------------------------------------------


def test_rows_that_the_logger_drew_over_gaps_are_left_out() -> None:
    kept = (np.arange(len(LOG)) % 1000 > 100) | (np.arange(len(LOG)) < 200)
    position, effort = (
        np.column_stack([np.interp(LOG.time, LOG.time[kept], x[kept]) for x in array.T]) for array in (LOG.position, LOG.effort)
    )
    drawn = replace(LOG, position=position, effort=effort)
    assert found(drawn, "rows-interpolated").severity == "repaired"
    mended = assess(drawn, ROBOT).recording
    assert np.isin(mended.time, LOG.time[kept]).all()
    assert len(mended) == pytest.approx(kept.sum(), abs=5)


def test_holes_in_an_optional_signal_cost_no_rows() -> None:
    few, many = (edit(LOG, velocity=((slice(1000, end), 2), np.nan)) for end in (1010, 4000))
    assert found(few, "values-bridged").severity == "repaired"
    mended = assess(few, ROBOT).recording
    assert len(mended) == len(LOG)
    np.testing.assert_allclose(mended.velocity[1000:1010, 2], LOG.velocity[1000:1010, 2], atol=0.02)
    assert found(many, "signal-dropped").severity == "repaired"
    assert assess(many, ROBOT).recording.velocity is None


def test_spikes_are_left_out_but_steps_stay() -> None:
    report = assess(edit(LOG, position=((1234, 0), LOG.position[1234, 0] + 0.4), effort=((300, 1), 90.0)), ROBOT)
    spikes = {(f.joint, f.rows) for f in report.findings if f.id == "values-spike"}
    assert spikes == {("a", (1236,)), ("b", (302,))}
    assert codes(replace(LOG, effort=LOG.effort + 10 * np.sign(LOG.velocity))) == set()  # dry friction: steps, no spikes


@pytest.mark.parametrize("times", [1, 7])
def test_a_position_that_a_logger_sets_to_zero_for_some_rows_at_a_time_is_left_out(times: int) -> None:
    position = LOG.position.copy()
    first = int(np.argmax(np.abs(position[:1000, 1])))
    for begin in range(first, len(LOG) - 100, len(LOG) // times):
        position[begin : begin + 15, 1] = 0.0
    missing = position[:, 1] == 0.0
    log = replace(LOG, position=position)
    assert found(log, "values-sentinel").joint == "b"
    apart = missing & (np.abs(LOG.position[:, 1]) > 0.05)  # beside motion through zero the value does no harm
    assert apart.any()
    assert not np.isin(LOG.time[apart], assess(log, ROBOT).recording.time).any()
    assert len(assess(log, ROBOT).recording) >= len(LOG) - missing.sum()


@pytest.mark.parametrize(("share", "severity"), [(None, "repaired"), (0.35, "warning"), (0.7, "warning")])
def test_a_counter_that_wraps_is_joined(share: float | None, severity: str) -> None:
    """Within the travel, as of an encoder of one turn before a gear: the joint's own turns say nothing about its range."""
    q = LOG.position + ([0, 2.5, 0] if share is None else 0.0)
    size = 2 * np.pi if share is None else share * np.ptp(q[:, 1])
    low = -np.pi if share is None else q[:, 1].min() + 0.1
    wrapped = q.copy()
    wrapped[:, 1] = (wrapped[:, 1] - low) % size + low
    assert np.abs(np.diff(wrapped[:, 1])).max() > 0.9 * size
    log = replace(LOG, position=wrapped)
    assert (found(log, "position-wrapped").joint, found(log, "position-wrapped").severity) == ("b", severity)
    assert "position-jump" not in codes(log)
    difference = assess(log, ROBOT).recording.position[:, 1] - q[:, 1]
    np.testing.assert_allclose(difference, difference[0], atol=1e-9 if share is None else 2e-3 * size)


# ---- the clock -----------------------------------------------------------------------------------


def closed(log: Recording) -> Recording:
    """The log with the stamps of a log without lost rows."""
    return replace(log, time=LOG.time[: len(log)])


def test_rows_lost_behind_even_stamps_are_said() -> None:
    late = LOG.take(~GONE_ROWS)
    finding = found(closed(late), "samples-lost")
    assert finding.severity == "warning"
    assert "at 3 place(s)" in finding.message
    assert "about 21 rows" in finding.message
    mended = assess(closed(late), ROBOT).recording.time
    np.testing.assert_allclose(mended, late.time, atol=0.5 * np.diff(LOG.time[:2]).item())
    clock_set = replace(LOG, time=LOG.time + np.where(np.arange(len(LOG)) > len(LOG) // 2, 3600.0, 0.0))
    assert {item.id for item in assess(clock_set, ROBOT).findings if item.severity == "warning"} == set()
    assert "at 1 place(s)" in found(closed(LOG.take(np.arange(len(LOG)) // 20 != 100)), "samples-lost").message


def test_a_joint_jogged_slowly_by_counts_of_its_encoder_loses_and_holds_nothing() -> None:
    """At 1 kHz and 14 bits one joint after the other moves by a count in each row or each third one."""
    count, rows = 2 * np.pi / 2**14, 4000
    t = np.arange(3 * rows) / 1000.0
    speeds = np.array([0.55, 0.9, 0.128])  # [rad/s]
    q = np.stack([np.interp(t, [4.0 * j + 0.2, 4.0 * j + 3.8], [0.0, 3.6 * speed]) for j, speed in enumerate(speeds)], axis=1)
    q += 1e-4 * np.sin(40 * t)[:, None] * (np.gradient(q, axis=0) > 0)
    noise = np.random.default_rng(0).standard_normal(q.shape)
    jog = Recording("log", JOINTS, t, np.round(q / count) * count, effort=noise, rows=np.arange(len(t)))
    assert not {"samples-lost", "position-held"} & codes(jog)
    gone = jog.take(np.arange(len(t)) // 40 % 25 != 12)
    assert "samples-lost" in codes(replace(gone, time=t[: len(gone)]))


def test_runs_joined_into_one_file_are_split_where_the_joints_are_elsewhere() -> None:
    """Under one even clock the jump was an acceleration, and the verdict spoke of contact and filtered efforts."""
    pieces = [LOG.take(np.arange(len(LOG)) // 1000 == k) for k in (3, 0, 4)]
    joined = {
        name: np.concatenate([getattr(piece, name) for piece in pieces]) for name in ("position", "velocity", "effort", "rows")
    }
    log = replace(LOG, time=LOG.time[:3000], **joined)
    assert "at 2 place(s)" in found(log, "runs-joined").message
    assert codes(log) == {"runs-joined"}
    mended = assess(log, ROBOT).recording
    np.testing.assert_array_equal(mended.position, joined["position"])
    assert [len(piece) for piece in even_pieces(mended)[0]] == [1000, 1000, 1000]


@pytest.mark.parametrize(("seconds", "spacing"), [(0.008, 0.4), (0.048, 0.1), (0.8, 0.1)])
def test_rows_read_from_a_buffer_have_the_clock_of_the_motion(seconds: float, spacing: float) -> None:
    """They looked like thousands of pauses: all motion was cut away, and the log refused as too short."""
    rows, place = round(seconds * 250), np.arange(len(LOG))  # a buffer is read at once, some part of the period a row
    log = replace(LOG, time=(place // rows + 1) * seconds + place % rows * spacing / 250)
    if seconds < 0.5:
        assert found(log, "clock-jitter").severity == "repaired"
        mended = assess(log, ROBOT).recording.time
        assert np.std(mended - LOG.time[: len(mended)]) < 0.002
    else:  # slower than the motion
        assert "bursts" in found(log, "clock-uneven").message
        assert refused(log)


def test_pauses_in_motion_are_no_buffer() -> None:
    some = LOG.take(np.flatnonzero(np.arange(len(LOG)) % 100 < 40))
    assert found(some, "clock-gaps").severity == "repaired"
    assert not {"clock-uneven", "clock-jitter"} & {item.id for item in assess(some, ROBOT).findings}


@pytest.mark.parametrize("jump", [-0.5, 0.5, 100.0, -3000.0])
def test_single_stamps_out_of_order_are_left_out(jump: float) -> None:
    stamps = LOG.time.copy()
    stamps[[400, 1700]] += jump
    log = replace(LOG, time=stamps)
    assert found(log, "time-out-of-order").rows == (402, 1702)
    mended = assess(log, ROBOT).recording
    assert len(mended) == len(LOG) - 2
    np.testing.assert_allclose(np.diff(mended.time).max(), 2 / 250)


def test_duplicated_rows_are_left_out() -> None:
    report = assess(LOG.take(np.sort(np.r_[0:5000, 100:5000:40])), ROBOT)
    assert report.verdict.level != "poor"
    np.testing.assert_array_equal(report.recording.time, LOG.time)


def test_repeated_samples_with_new_stamps_are_left_out_in_motion_only() -> None:
    still = LOG.time[:, None] < 4  # a simulator at rest repeats itself exactly: nothing is wrong with that
    position, velocity = np.where(still, LOG.position[1000], LOG.position), np.where(still, 0.0, LOG.velocity)
    effort = np.where(still, 1.0, LOG.effort)
    for array in (position, velocity, effort):
        array[[2000, 3000, 3001]] = array[[1999, 2999, 2999]]
    log = replace(LOG, position=position, velocity=velocity, effort=effort)
    assert found(log, "samples-repeated").rows == (2002, 3002, 3003)
    assert len(assess(log, ROBOT).recording) == len(LOG) - 3


@pytest.mark.parametrize(("jitter", "lose", "noise"), [(0.3, 0.03, 1e-6), (1.0, 0.0, 0.0), (0.6, 0.05, 1e-5)])
def test_device_clock_behind_jittering_stamps(jitter: float, lose: float, noise: float) -> None:
    rng, true = np.random.default_rng(3), np.arange(0, 20, 0.002)
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
    assert found(replace(log, time=stamps, position=q, velocity=None), "clock-jitter").severity == "repaired"


def test_signals_with_rows_of_their_own_are_joined() -> None:
    """An outer join of two topics: no row holds positions and efforts; two seconds of efforts are missing."""
    N, time = len(LOG), np.sort(np.concatenate([LOG.time, LOG.time + 0.0013]))
    position, velocity, effort = np.full((3, 2 * N, 3), np.nan)
    position[::2], velocity[::2] = LOG.position, LOG.velocity
    effort[1::2] = np.column_stack([np.interp(LOG.time + 0.0013, LOG.time, x) for x in LOG.effort.T])
    effort[2000:2050] = np.nan
    log = Recording("log", JOINTS, time, position, velocity=velocity, effort=effort)
    assert "effort in 4975 others" in found(log, "signals-joined").message
    mended = assess(log, ROBOT).recording
    assert len(mended) == N - 27  # rows inside the gap, and the one before the first effort
    expected = np.stack([np.interp(mended.time, LOG.time, x) for x in LOG.effort.T], axis=1)
    assert np.std(mended.effort - expected) < 0.05 * np.std(expected)
    np.testing.assert_array_equal(mended.position[:900], LOG.position[1:901])


@pytest.mark.parametrize("stamped", ["hundredths", "late"])
def test_device_clock_is_even_where_the_robot_creeps(stamped: str) -> None:
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
    report = assess(replace(log, time=stamps, position=position, velocity=None), ROBOT)
    assert len(report.recording) == len(true)
    assert {item.id for item in report.findings} & {"samples-lost", "samples-repeated", "stamps-repeated"} == set()


def test_device_clock_does_not_invent_one() -> None:
    rng = np.random.default_rng(4)
    uneven = np.cumsum(0.002 * (1 + 0.4 * rng.random(10_000)))  # the samples really were uneven
    assert device_clock(uneven, motion(uneven)[0]) is None
    true = np.arange(0, 20, 0.002)
    for q in (np.round(motion(true)[0], 2), np.zeros((10_000, 3))):  # too coarse to show intervals; at rest
        assert device_clock(true + 0.0005 * rng.random(len(true)), q) is None


def test_alternating_clock_is_reported_with_its_mean_rate() -> None:
    stamps = np.cumsum(np.tile([0.010, 0.010, 0.012], 700))
    q, v = motion(stamps)
    assert "93.75 Hz" in found(Recording("log", JOINTS, stamps, q, velocity=v, effort=5 * q + 0.1 * v), "clock-uneven").message


def test_stamps_that_are_next_to_equal_end_in_no_traceback() -> None:
    burst = np.array(LOG.time)
    burst[2000:2012] = burst[2000] + 1e-9 * np.arange(12) + 0.5  # between two pauses
    burst[2012:] += 1.0
    assert not refused(replace(LOG, time=burst))
    all_at_once = LOG.time[np.arange(len(burst)) // 500 * 500] + 1e-7 * (np.arange(len(burst)) % 500)
    assert found(replace(LOG, time=all_at_once), "clock-uneven").severity == "refused"


# ---- channels, units, signs, joints --------------------------------------------------------------

FAST = int(np.argmax(np.abs(LOG.velocity[:4500, 0])))  # a row in which the first joint is fast


def test_position_that_freezes_in_motion_is_left_out() -> None:
    frozen = edit(LOG, position=((slice(FAST, FAST + 100), 0), LOG.position[FAST, 0]))
    for each in (frozen, replace(frozen, velocity=None)):
        assert next(f for f in assess(each, ROBOT).findings if f.id == "channel-frozen").joint == "a"
        assert len(LOG) - 101 <= len(assess(each, ROBOT).recording) <= len(LOG) - 99


@pytest.mark.parametrize("digits", [1, 2])
def test_positions_with_few_digits_freeze_too(digits: int) -> None:
    """They stay equal while a joint moves slowly, and go on with a step of one digit; a frozen sensor jumps."""
    coarse = np.round(LOG.position, digits)
    frozen = edit(replace(LOG, position=coarse), position=((slice(FAST, FAST + 200), 0), coarse[FAST, 0]))
    assert found(frozen, "channel-frozen").joint == "a"


def test_effort_that_freezes_in_motion_is_left_out() -> None:
    log = edit(LOG, effort=((slice(2000, 2200), 0), LOG.effort[2000, 0]))
    assert found(log, "channel-frozen").joint == "a"
    assert len(assess(log, ROBOT).recording) == len(LOG) - 200


def test_positions_in_degrees_or_turns_are_refused() -> None:
    turned = np.array([DEGREE, DEGREE, 1])
    degrees = replace(LOG, position=LOG.position * turned)
    for each in (degrees, replace(degrees, velocity=None), replace(degrees, velocity=LOG.velocity * turned)):
        finding = found(each, "position-unit")
        assert finding.severity == "refused"
        assert "position: deg" in str(finding.remedy)
        assert "rev" not in finding.message
    turns = replace(LOG, position=LOG.position * [2 * np.pi, 2 * np.pi, 1], velocity=None)
    assert "rad that are described as rev" in found(turns, "position-unit").message


def test_one_joint_in_degrees_is_told_from_counts() -> None:
    """In degrees, the other joint would be beyond its limits, which are above zero: not all joints are in degrees."""
    limit = '<axis xyz="0 1 0"/><limit lower="0.7" upper="4.7" velocity="3" effort="50"/>'
    robot = Robot.from_urdf(URDF.replace("continuous", "revolute").replace('<axis xyz="0 1 0"/>', limit))
    log = replace(LOG, position=LOG.position + [0, 2.7, 0], velocity=None)
    assert not refused(log, robot)
    finding = found(replace(log, position=log.position * [DEGREE, 1, 1]), "position-unit", robot)
    assert (finding.joint, finding.severity) == ("a", "refused")
    assert "positions look like deg, unlike those of other joints" in finding.message
    assert "`q_<joint> [deg]`" in str(finding.remedy)


def test_positions_in_counts_are_refused_unless_the_joints_only_stand_far_away() -> None:
    counts = np.round(LOG.position * ([65536 / (2 * np.pi)] * 2 + [1e5]))
    for scale in ((1, 1, 1), (0, 1, 1), (1, 1, 0)):
        finding = found(replace(LOG, position=np.where(scale, counts, LOG.position), velocity=None), "position-unit")
        assert finding.severity == "refused"
        assert "counts(" in str(finding.remedy)
    away = plus(400 * np.pi, 0, 0)(LOG)
    assert not refused(away)
    assert found(away, "position-beyond-limit").joint == "a"


@pytest.mark.parametrize(
    ("factors", "words"),
    [((1, 1.3, 1), "dq/dt of b is 0.7692"), ((10, 10, 1), "constant factor of 10"), ((0.01, 0.01, 0.01), "of 0.01")],
)
def test_velocity_with_another_scale_is_not_used_and_the_remedy_ends_it(factors: tuple[float, ...], words: str) -> None:
    log = times(velocity=factors)(LOG)
    finding = found(log, "velocity-scale")
    assert finding.severity == "repaired"
    assert words in finding.message
    assert assess(log, ROBOT).recording.velocity is None
    assert finding.remedy.settings == {"signals.velocity": "differentiated"}
    (report,) = assessed([log], ROBOT, Drive.build(ROBOT.n), SignalConfig(velocity="differentiated"))
    assert not any(item.id.startswith(("velocity", "time-scale")) for item in report.findings)


@pytest.mark.parametrize("lag", [0.18, 0.05, -0.03])
def test_lag_of_logged_velocities_is_measured(lag: float) -> None:
    late = motion(LOG.time - lag)[1] + 1e-3 * np.random.default_rng(7).standard_normal(LOG.position.shape)
    assert found(replace(LOG, velocity=late), "velocity-lag").severity == "repaired"
    match = match_velocity(LOG.position, late, 250.0, 10.0)
    assert match.lag == pytest.approx(lag, abs=2e-3)
    np.testing.assert_allclose(match.scale, 1, atol=0.01)


def test_effort_far_beyond_its_limit_is_a_warning() -> None:
    beyond = found(times(effort=(100, 1, 1))(LOG), "effort-beyond-limit")
    assert (beyond.joint, beyond.severity) == ("a", "warning")
    for advice in re.findall("`([^`]+)`", str(beyond.remedy)):  # can be pasted into a project file
        parse_project(yaml.safe_load(advice))


def test_an_effort_limit_below_the_robot_s_own_weight_is_no_limit() -> None:
    """Exporters of CAD programs write 1 for every effort limit; an arm that holds its links exceeds that."""
    t, q, v, a = fourier(3, 30.0, 100.0, 0)
    robot = Robot.from_urdf(arm_urdf("zyy"))
    log = Recording("run", robot.joints, t, q, effort=torques(robot, Truth.of(3), q, v, a))
    placeholder = Robot.from_urdf(arm_urdf("zyy").replace('effort="200"', 'effort="1"'))
    assert "effort-beyond-limit" not in codes(log, placeholder)
    assert "effort-beyond-limit" in codes(replace(log, effort=log.effort * 100), placeholder)


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
def test_spoilt_logs_are_refused_or_usable_but_never_crash(seed: int) -> None:
    rng = np.random.default_rng(seed)
    log = make_log(duration=8.0)
    for _ in range(int(rng.integers(1, 3))):
        log = spoil(log, rng)
    report = assess(log, ROBOT)
    json_text(report.findings)
    if report.verdict.level != "poor":
        segments = condition(report.recording, ROBOT).segments
        assert all(np.isfinite(segment.a).all() and np.isfinite(segment.tau).all() for segment in segments)
    else:  # as with --force: an error of ours, or an answer
        with contextlib.suppress(UrdfIdentError):
            condition(report.recording, ROBOT)


def test_a_slide_in_metres_that_is_described_as_millimetres_is_not_just_at_rest() -> None:
    for factor, said in ((4e-4, True), (4e-7, False)):
        log = replace(LOG, position=LOG.position * [0, 0, factor], velocity=None)
        assert ("m, described as mm" in found(log, "at-rest").message) == said


def test_efforts_in_coarse_steps_are_named() -> None:
    steps = LOG.effort.std(axis=0) * [0.5, 0.05, 0.5]
    log = replace(LOG, effort=np.round(LOG.effort / steps) * steps)
    coarse = [item for item in assess(log, ROBOT).findings if item.id == "effort-quantised"]
    assert [item.joint for item in coarse] == ["a", "slide"]
    assert coarse[0].size == pytest.approx(steps[0], rel=1e-6)
    assert not refused(log)


@pytest.mark.parametrize(("scale", "copied"), [(1.0, True), (0.1, True), (1.0, False)])
def test_a_target_in_place_of_the_measured_effort_is_named(scale: float, copied: bool) -> None:
    noise = 0.0 if copied else 0.01
    target = scale * LOG.effort + noise * np.random.default_rng(1).standard_normal(LOG.effort.shape)
    assert ("effort-commanded" in codes(replace(LOG, torque_target=target))) == copied


@pytest.mark.parametrize(("rows", "named"), [(50, True), (6, False)])
def test_efforts_between_straight_lines_are_named_where_the_motion_asks_for_more(rows: int, named: bool) -> None:
    log = second(np.interp(LOG.time, LOG.time[::rows], LOG.effort[::rows, 1]))(LOG)
    held = [item for item in assess(replace(log, effort=np.round(log.effort, 6)), ROBOT).findings if item.id == "effort-held"]
    assert [(item.joint, item.severity) for item in held] == [("b", "warning")] * named
    assert all(item.size == pytest.approx(250.0 / rows, rel=0.02) for item in held)


def test_a_channel_at_a_lower_rate_is_named() -> None:
    steps = np.arange(len(LOG)) // 25 * 25
    effort = second(LOG.effort[steps, 1])(LOG)
    finding = found(effort, "effort-held")
    assert (finding.joint, finding.severity, finding.size) == ("b", "warning", pytest.approx(10.0, rel=0.02))
    assert "position-held" not in codes(effort)
    held = np.round(LOG.position, 4)
    held[:, 1] = held[steps, 1]
    assert "position-held" in codes(replace(LOG, position=held))


# ---- real logs -----------------------------------------------------------------------------------


def test_real_panda_clock_is_repaired(data: Path) -> None:
    robot = Robot.from_urdf(data / "panda/panda.urdf", lock={"panda_finger_joint1": 0.0, "panda_finger_joint2": 0.0})
    log = read_recording(data / "panda/panda_exciting.csv", robot)
    report = assess(log, robot)
    assert report.verdict.level != "poor"
    assert "even clock of 1 ms" in found(log, "clock-jitter", robot).message
    assert 0.05 < 1 - len(report.recording) / len(log) < 0.07  # the duplicated samples
    assert read_clock(report.recording.time).rate == pytest.approx(1000, rel=1e-3)
