"""Guards whose loss no other test would notice: each is met from both sides."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from conftest import arm_urdf

from urdf_ident.errors import LogError
from urdf_ident.estimation.uncertainty import covariance
from urdf_ident.estimation.uncertainty.noise import band_edges
from urdf_ident.export.split import split_bodies
from urdf_ident.faults.interpretation import Interpretation
from urdf_ident.faults.kinds.changes import GAIN, PAYLOAD
from urdf_ident.faults.kinds.clock_and_gravity import GravityDirection
from urdf_ident.faults.trials import clearly_negative
from urdf_ident.faults.words import differs, refuses
from urdf_ident.judgements.catalogue import Id
from urdf_ident.logs.formats.variables import _numeric
from urdf_ident.logs.recognition.recognise import _positions
from urdf_ident.logs.recording import Recording
from urdf_ident.model.drive import Drive
from urdf_ident.model.prior import lumped_inertials
from urdf_ident.model.robot import Robot
from urdf_ident.result.evidence.scores import MOVING, score
from urdf_ident.samples import Segment
from urdf_ident.signals.clock import device_clock
from urdf_ident.signals.joint_side import joint_side
from urdf_ident.signals.quality.report import assess
from urdf_ident.signals.quality.values import _sentinels, _spikes
from urdf_ident.signals.resample import _resample, even_pieces

PAIR = """<robot name="pair"><link name="base"/><link name="arm"><inertial><mass value="0.1"/>
<inertia ixx="0.001" ixy="0" ixz="0" iyy="0.0011" iyz="0" izz="0.0012"/></inertial></link>
<link name="tool"><inertial><origin xyz="0 0 0.1"/><mass value="1"/>
<inertia ixx="0.01" ixy="0" ixz="0" iyy="0.011" iyz="0" izz="0.012"/></inertial></link>
<joint name="j" type="revolute"><parent link="base"/><child link="arm"/><axis xyz="1 0 0"/>
<limit lower="-1" upper="1" velocity="1" effort="1"/></joint>
<joint name="f" type="fixed"><parent link="arm"/><child link="tool"/><origin xyz="0 0 0.2"/></joint></robot>"""


# ---- export/split.py ---------------------------------------------------------------------------------


def change_of_mass(share: float) -> tuple[dict[str, Any], tuple[str, ...], Robot]:
    """The body with a cube added at the carrier that weighs a share of it."""
    robot = Robot.from_urdf(PAIR)
    theta = lumped_inertials(robot).ravel().copy()
    theta[0] += share * 0.1
    theta[[4, 6, 9]] += share * np.array([0.001, 0.0011, 0.0012])
    return (*split_bodies(robot, theta), robot)


def test_a_carrier_takes_what_is_in_proportion_and_no_more() -> None:
    links, notes, robot = change_of_mass(0.8)
    assert notes == ()
    np.testing.assert_array_equal(links["tool"], robot.description.links["tool"].theta)
    assert links["arm"][0] == pytest.approx(0.18)
    links, notes, robot = change_of_mass(6.0)  # possible for the carrier alone, and out of proportion
    assert "shared by 'arm', 'tool'" in notes[0]
    assert links["arm"][0] < 0.55  # alone it would weigh 0.7 kg
    assert links["tool"][0] > 1.15
    assert links["arm"][0] + links["tool"][0] == pytest.approx(1.7)


@pytest.mark.parametrize(("change", "same"), [(1e-15, True), (1e-11, False)])
def test_rounding_changes_no_number_and_more_than_rounding_does(change: float, same: bool) -> None:
    robot = Robot.from_urdf(PAIR)
    links, _ = split_bodies(robot, (1.0 + change) * lumped_inertials(robot).ravel())
    equal = all(np.array_equal(theta, robot.description.links[name].theta) for name, theta in links.items())
    assert equal is same


# ---- estimation/uncertainty/covariance.py ------------------------------------------------------------


def errors(*spread: float, dof: float = 9.0) -> covariance.Covariance:
    return covariance.Covariance(np.diag(np.square(spread)), "textbook", dof)


def test_logs_that_agree_better_than_chance_do_not_make_errors_smaller() -> None:
    within = errors(1.0, 2.0, 3.0)
    seen = np.ones(3, dtype=bool)
    found = covariance._judged_by_logs(within, errors(0.3, 0.6, 0.9), seen)
    np.testing.assert_array_equal(found.matrix, within.matrix)
    assert "agree" in found.kind
    found = covariance._judged_by_logs(within, errors(3.0, 6.0, 9.0), seen)
    assert (found.spread > 2.5 * within.spread).all()
    found = covariance._judged_by_logs(within, errors(0.3, 0.6, 30.0), seen)  # one that stands out alone
    np.testing.assert_allclose(found.spread, [1.0, 2.0, 30.0])


@pytest.mark.parametrize(("lack", "factor"), [(0.2, 1.0), (1.0, 1.0), (4.0, 4.0)])
def test_a_residual_below_the_scatter_does_not_make_errors_smaller(
    lack: float, factor: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(covariance, "scatter_noise", lambda *_: None)
    monkeypatch.setattr(covariance, "repetition_count", lambda _: 5)
    rows = SimpleNamespace(covariance=lambda _: np.eye(2), dof=lambda _: 4.0)
    monkeypatch.setattr(covariance, "banded_rows", lambda *_: rows)
    made = SimpleNamespace(with_rows=lambda _: None, logs=(), fit=None, solution=None, averaged=True)
    found = covariance.between_periods(made, lack)  # type: ignore[arg-type]
    np.testing.assert_array_equal(found.matrix, factor * np.eye(2))


# ---- signals/quality/values.py -------------------------------------------------------------------------


def test_spikes_are_rare_large_and_above_the_usual() -> None:
    t = np.linspace(0.0, 10.0, 2000)
    smooth = np.sin(t)
    glitch = smooth.copy()
    glitch[777] += 0.06
    assert list(np.flatnonzero(_spikes(glitch, 0.02))) == [777]
    assert not _spikes(glitch, 0.05).any()  # small beside the signal's range of two
    pulsed = smooth.copy()
    pulsed[10::50] += 3.0  # two in a hundred: this signal is like that
    assert not _spikes(pulsed, 0.05).any()
    assert not _spikes(np.where(np.arange(2000) == 5, 1e-12, 0.0), 0.05).any()  # rounding of a channel at rest
    assert _spikes(np.where(np.arange(2000) == 5, 1e-6, 0.0), 0.05).sum() == 1
    assert not _spikes(np.where(np.arange(19) == 5, 1.0, 0.0), 0.05).any()  # too few to tell
    holes = smooth.copy()
    holes[100:110] = np.nan
    assert not _spikes(holes, 0.05).any()


def test_a_value_that_stands_for_none_is_a_sentinel() -> None:
    t = np.linspace(0.0, 10.0, 2000)
    smooth = 3.0 * np.sin(t) + 2.0
    spoilt = smooth.copy()
    spoilt[5::15] = 0.0
    found = _sentinels(spoilt)
    assert found.sum() > 80
    assert set(np.flatnonzero(found)) <= set(range(5, 2000, 15))
    assert not _sentinels(smooth).any()
    assert not _sentinels(np.round(smooth)).any()  # coarse steps
    noisy = np.round(smooth + 0.3 * np.random.default_rng(0).standard_normal(2000), 1)
    assert not _sentinels(noisy).any()
    missing = smooth.copy()
    missing[3::40] = -999.0
    assert _sentinels(missing).sum() == 50
    generator = np.random.default_rng(1)
    resting = 0.3123 + 1e-4 * (generator.random(2000) < 0.05) - 1e-4 * (generator.random(2000) < 0.02)  # one count to and fro
    assert not _sentinels(resting, 2e-3).any()
    assert not _spikes(resting, 0.05, 2e-3).any()
    resting[3::40] = 0.0
    assert _sentinels(resting, 2e-3).sum() == 50


def test_the_next_step_of_a_coarse_effort_at_rest_is_not_missing() -> None:
    """A joint at rest shows two levels; the rarer one is far from its neighbours and always the same."""
    effort = np.where(np.random.default_rng(0).random(1000) < 0.05, 15.6, 15.3)
    assert not _sentinels(effort).any()
    assert _sentinels(np.where(effort > 15.5, -1.0, effort)).sum() == 0  # two levels alone cannot tell
    assert _sentinels(np.where(effort > 15.5, -1.0, np.round(15.3 + 0.3 * np.sin(np.arange(1000) / 50), 1))).any()


def test_an_effort_has_a_dead_zone_where_it_is_exactly_zero_while_its_joint_moves() -> None:
    robot = Robot.from_urdf(arm_urdf("zy"))
    t = np.arange(0.0, 10.0, 0.005)
    q = np.column_stack([np.sin(t), np.cos(0.7 * t)])
    noise = 0.05 * np.random.default_rng(0).standard_normal((len(t), 2))
    tau = np.column_stack([5.0 * np.sin(1.3 * t), 3.0 * np.cos(t)]) + noise

    def told(effort: np.ndarray, position: np.ndarray = q) -> list[str | None]:
        report = assess(Recording("log", robot.joints, t, position, effort=effort), robot)
        return [item.joint for item in report.findings if item.id == "effort-dead-zone"]

    def dead(least: float) -> np.ndarray:
        return np.column_stack([tau[:, 0], np.sign(tau[:, 1]) * np.maximum(np.abs(tau[:, 1]) - least, 0.0)])

    assert told(tau) == told(np.round(tau, 2)) == told(np.round(tau)) == told(np.trunc(tau)) == []
    assert told(dead(0.3)) == told(np.round(dead(0.3), 3)) == [robot.joints[1]]
    rests = np.minimum(np.arange(len(t)), 1200)  # the brake holds the arm, and its motors carry nothing
    assert told(np.where(rests[:, None] < 1200, tau, 0.0), q[rests]) == []


def test_coarse_efforts_and_noisy_positions_are_not_taken_for_dead_or_frozen_channels() -> None:
    robot = Robot.from_urdf(arm_urdf("zy"))
    t = np.arange(0.0, 10.0, 0.002)
    noise = np.random.default_rng(0).standard_normal((len(t), 4))
    q = np.column_stack([np.sin(t), np.where(t < 4.0, 0.3 * np.cos(2.0 * t), 0.3 * np.cos(8.0))]) + 4e-4 * noise[:, :2]
    tau = np.column_stack([0.8 * np.sin(1.3 * t) + np.sign(np.cos(t)), 3.0 * np.sin(2.0 * t) * (t < 4.0)]) + 0.02 * noise[:, 2:]

    def told(effort: np.ndarray, step: float) -> set[str]:
        report = assess(Recording("log", robot.joints, t, q, effort=np.round(effort / step) * step), robot)
        return {item.id for item in report.findings} & {"effort-dead-zone", "channel-frozen", "frozen-too-long"}

    assert told(tau, 0.2) == told(tau, 0.5) == told(tau, 1e-6) == set()
    held = np.where((t > 5.0) & (t < 6.5), 0.6, tau[:, 0])  # a frozen channel jumps when it resumes
    assert told(np.column_stack([held, tau[:, 1]]), 0.05) == {"channel-frozen"}


def test_an_effort_is_clipped_where_it_stands_at_the_end_of_its_range_while_the_robot_moves() -> None:
    robot = Robot.from_urdf(arm_urdf("zy"))
    t = np.arange(0.0, 10.0, 0.01)
    q = np.column_stack([np.sin(t), np.cos(0.7 * t)])
    tau = np.column_stack([5.0 * np.sin(1.3 * t), 3.0 * np.cos(t)])

    def findings(effort: np.ndarray, position: np.ndarray = q) -> dict[str, str]:
        report = assess(Recording("log", robot.joints, t, position, effort=effort), robot)
        return {item.id: item.severity for item in report.findings if item.id in ("effort-clipped", "channel-frozen")}

    assert findings(tau) == {}
    assert findings(np.round(tau, 1)) == {}
    assert findings(np.clip(tau, -4.9, 4.9)) == {"effort-clipped": "warning"}
    for end in (2.0, 0.5):  # nine of ten values are clipped in the second
        assert findings(np.clip(tau, -end, end)) == {"effort-clipped": "refused"}
    for rows in (5, 25, 50):  # logged at a lower rate, an effort has its largest value many times
        assert "effort-clipped" not in findings(np.repeat(tau[::rows], rows, axis=0))
    rests = np.minimum(np.arange(1000), 600)  # stands still where the torque is largest
    assert findings((tau * [1.0, 0.2])[rests], q[rests]).get("effort-clipped") is None


# ---- data/quality: signs -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mean", "errors", "driven"),
    [
        (-0.8, 30.0, True),
        (-0.2, 4.5, True),
        (-0.2, 3.5, False),  # a torque that nobody measured comes to 2.6 errors
        (-0.04, 100.0, False),  # a joint without friction
        (0.5, 100.0, False),
    ],
)
def test_friction_drives_a_joint_only_beyond_doubt(mean: float, errors: float, driven: bool) -> None:
    """The errors are the jackknife's: folds share most of their data, so their scatter understates them."""
    sign = np.array([1.0, -1.0, 1.0, -1.0, 0.0])
    values = mean + sign * abs(mean) / errors / np.sqrt((len(sign) - 1) / len(sign) * np.sum(sign**2))
    assert bool(clearly_negative(values[:, None])[0]) is driven


def step_with(gain: float, drives_before: bool, id: str = "effort-sign", left: float = 0.5) -> Any:
    scores = ((drives_before, 1.0), (False, left))
    before, after = (SimpleNamespace(impossible=np.array([one, False]), unexplained=left) for one, left in scores)
    return SimpleNamespace(gain=gain, before=before, after=after, found=SimpleNamespace(id=id), rivals=())


@pytest.mark.parametrize(
    ("gain", "driven", "sound", "refused"),
    [
        (1.2, False, True, True),
        (0.9, False, True, False),
        (5.0, False, False, False),  # most of the efforts stay unexplained: the cause is another
        (1.2, True, False, True),  # impossible, whatever else is wrong
        (0.9, True, True, False),
    ],
)
def test_a_log_is_refused_only_where_the_remedy_makes_it_sound(gain: float, driven: bool, sound: bool, refused: bool) -> None:
    assert refuses(step_with(gain, driven), sound) is refused
    assert refuses(step_with(9.0, driven, left=0.9), True) is driven  # what explains little more refuses nothing by itself
    assert not refuses(step_with(9.0, True, "effort-delay"), True)
    assert not refuses(step_with(9.0, True, "spring"), True)
    rivalled = step_with(9.0, True)
    rivalled.rivals = (SimpleNamespace(id="spring"),)
    assert not refuses(rivalled, True)


# ---- data/conditioning -------------------------------------------------------------------------------


def wandering(amplitude: float) -> Any:
    """Ten seconds at 100 Hz whose stamps jitter, and wander slowly by so many periods."""
    rng = np.random.default_rng(0)
    true = np.arange(0.0, 10.0, 0.01)
    x = 2 * np.pi * true[:, None] * np.array([0.31, 0.47, 0.23]) + np.array([0.0, 1.0, 2.0])
    stamps = true + 0.01 * (0.45 * rng.random(len(true)) + amplitude * (1 - np.cos(2 * np.pi * true / 10.0)) / 2)
    return device_clock(stamps, np.sin(x))


def test_a_device_clock_strays_from_its_stamps_by_ten_periods_at_most() -> None:
    assert wandering(0.0) is not None
    assert wandering(7.0) is not None
    assert wandering(15.0) is None


def paired(gap: float) -> float:
    """Largest error of positions on the even grid, where one sample has a near copy that is 1e-3 rad off."""
    time = np.sort(np.arange(0.0, 4.0, 0.02) + 0.004 * np.random.default_rng(0).random(200))
    time = np.insert(time, 101, time[100] + gap)
    q = np.sin(time)
    q[101] += 1e-3
    effort = np.cos(time)
    recording = Recording("log", ("j",), time, q[:, None], effort=effort[:, None])
    (piece,), clock = even_pieces(recording)
    grid = piece.start + np.arange(len(piece.q)) / clock.rate
    return float(np.abs(piece.q[:, 0] - np.sin(grid)).max())


def test_a_spline_does_not_swing_through_stamps_that_are_nearly_equal() -> None:
    for share in (0.005, 0.05, 0.18):  # of a period
        assert paired(share * 0.02) < 1e-6
    assert paired(0.3 * 0.02) > 5e-4  # a sample of its own: it counts


def test_one_stamp_far_away_is_no_memory_error() -> None:
    time = np.concatenate([np.sort(np.random.default_rng(0).random(100)), [1e10]])
    recording = Recording("log", ("j",), time, np.sin(time)[:, None], effort=np.cos(time)[:, None])
    pieces, _ = even_pieces(recording)
    assert sum(len(piece.q) for piece in pieces) < 1000  # the far stamp stands behind a gap
    with pytest.raises(LogError, match=r"row 100: .* s between two rows, expected about"):
        _resample(recording, 100.0, even=False)


# ---- data/quality/checks.py and result/evidence/scores.py -----------------------------------------------------


@pytest.mark.parametrize(("factor", "word"), [(np.rad2deg(1), "deg"), (1e3, "counts"), (2.0, None)])
def test_only_what_fits_in_degrees_is_taken_for_degrees(factor: float, word: str | None) -> None:
    robot = Robot.from_urdf(arm_urdf("z", fixed_tip=False))
    t = np.arange(0.0, 20.0, 0.01)
    q = 2.0 * np.sin(1.5 * t)[:, None]
    report = assess(Recording("log", robot.joints, t, factor * q, effort=5.0 * q), robot)
    units = [str(item.remedy) for item in report.findings if item.id == "position-unit"]
    assert bool(units) is (word is not None)
    assert all(f"position: {word}" in item for item in units)


def test_an_error_at_rest_is_no_error_in_motion() -> None:
    v = np.concatenate([np.full(300, 0.5 * MOVING), np.full(300, 1.5 * MOVING)])[:, None]
    zero = np.zeros_like(v)
    part = Segment("log", 0.0, 100.0, zero, v, zero, zero)
    log = SimpleNamespace(segments=(part,), name="log")
    predicted = np.where(v < MOVING, 3.0, 0.0)
    (found,) = score(log, predicted, ["j"], 40.0).per_joint  # type: ignore[arg-type]
    assert found["moving_rmse"] < 0.3 < 2.0 < found["rmse"]
    assert pytest.approx(0.02) == MOVING


# ---- data/readers/formats/variables.py -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "read"), [((5,), (5, 1)), ((1, 5), (5, 1)), ((4, 2, 3), (4, 6)), ((1, 4, 3), (4, 3)), ((1, 2, 3, 4), None)]
)
def test_arrays_that_are_tables(shape: tuple[int, ...], read: tuple[int, ...] | None) -> None:
    found = _numeric(np.zeros(shape))
    assert (None if found is None else found.shape) == read


# ---- data/recognition, wording of findings, efforts that are no torques -----------------------------------


@pytest.mark.parametrize(
    ("score", "inside", "alone", "units"),
    [(0.9, 0.99, True, ()), (0.2, 0.99, True, ()), (0.9, 0.9, True, ()), (0.9, 0.99, False, ()), (0.9, 0.99, True, ("deg",))],
)
def test_positions_are_certain_by_two_signs_and_without_rivals(
    score: float, inside: float, alone: bool, units: tuple[str, ...]
) -> None:
    found = SimpleNamespace(position=(0, 1), efforts=(), agreement=score, inside=inside, alone=alone, other_units=units)
    series = SimpleNamespace(mean=np.random.default_rng(0).normal(size=(9, 2)), rough=np.ones(2))
    why = _positions(series, None, {}, found, {}, [])["position"].why  # type: ignore[arg-type]
    assert why.startswith("certain") == (score > 0.3 and inside > 0.98 and alone and not units)
    assert ("other columns fit nearly as well" in why) == (not alone)
    assert ("in deg they fit nearly as well" in why) == bool(units)


def test_what_differs_between_logs_is_named() -> None:
    robot = Robot.from_urdf(PAIR)
    for change, words, id in ((PAYLOAD, "the load on the last link", "payload-changes"), (GAIN, "the scale", "effort-drift")):
        family = SimpleNamespace(id=Id(id), change=change)
        weak, strong = (SimpleNamespace(family=family, gain=gain, joint=0, certainty=0.9) for gain in (0.5, 5.0))
        one, several = differs(robot, weak, True, ()), differs(robot, strong, False, ())  # type: ignore[arg-type]
        assert f"contradicts the others: {words}" in one.message
        assert f"contradict each other: {words}" in several.message
        assert (one.id, one.severity, several.id, several.severity) == ("log-differs", "warning", "logs-disagree", "refused")
        assert one.candidates == several.candidates == (id,)


@pytest.mark.parametrize(("path", "where"), [("logs/run.csv", "logs/run.csv"), ("", "run")])
def test_a_current_without_a_gain_is_refused_by_the_name_of_its_log(path: str, where: str) -> None:
    log = Recording("run", ("j",), np.arange(3.0), np.zeros((3, 1)), effort=np.ones((3, 1)), effort_unit="A", path=path)
    with pytest.raises(LogError) as refused:
        joint_side(log, Drive.build(1))
    assert refused.value.where == where


def test_the_angle_of_another_gravity_reaches_beyond_a_right_angle() -> None:
    robot = Robot.from_urdf(PAIR)
    for gravity, angle in (((0.0, 0.0, 9.81), 180.0), ((9.81, 0.0, 0.0), 90.0)):
        kind = GravityDirection()
        turned = kind.along(Interpretation.as_logged(robot.n), np.array(gravity))
        stated = kind.found(robot, turned, None)  # type: ignore[arg-type]
        assert stated.size == pytest.approx(angle)
        assert stated.remedy.settings == {"robot.gravity": list(gravity)}


def test_bands_of_a_spectrum_grow_with_the_frequency() -> None:
    widths = np.diff(band_edges(2000, 4000.0))
    assert widths[0] == pytest.approx(1.0)
    assert widths[-1] > 100
    assert (np.diff(widths) >= 0).all()
