"""Verdicts: what may be called good, and what may not, whatever the training residual says."""

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from conftest import arm_urdf
from logs import Truth, fourier, make_log, torques

import urdf_ident as ui
from urdf_ident.judgements.judgement import Judgement
from urdf_ident.logs.recording import excerpts
from urdf_ident.result.evidence import CommonScale, DeviatingPart
from urdf_ident.result.summary import brief, joint_errors
from urdf_ident.result.verdict import CONSEQUENCE, PEAK_LIMIT, SCALE_ERRORS, untested, verdict_of
from urdf_ident.signals.config import SignalConfig
from urdf_ident.signals.prepare import UsedLog, prepare_log

pytestmark = pytest.mark.usefixtures("unexamined")

FRICTION = ["viscous", "coulomb", "offset"]


@pytest.fixture(scope="module")
def robot() -> ui.Robot:
    return ui.Robot.from_urdf(arm_urdf("zyyx"))


@pytest.fixture(scope="module")
def logs(robot: ui.Robot, tmp_path_factory: pytest.TempPathFactory) -> list[ui.Recording]:
    folder = tmp_path_factory.mktemp("logs")
    paths = [make_log(folder / f"{seed}.csv", robot, seed=seed, seconds=12.0) for seed in range(3)]
    return [ui.read_recording(path, robot) for path in paths]


@pytest.fixture(scope="module")
def ident(robot: ui.Robot, logs: list[ui.Recording]) -> ui.Identification:
    return ui.identify(ui.DynamicModel(robot, friction=FRICTION), logs[:2], held_out=logs[2:])


def scaled(log: ui.Recording, factor: np.ndarray | float) -> ui.Recording:
    return replace(log, effort=log.effort * factor, sha256=None)


def with_joints(ident: ui.Identification, pooled: float, **changes: dict) -> ui.Identification:
    """The result with other scores on its held-out log, of all joints together and of single ones."""
    (entry,) = ident.validation
    rows = [{**row, **changes.get(row["joint"], {})} for row in entry["per_joint"]]
    return replace(ident, validation=({**entry, "relative": pooled, "per_joint": rows},))


def shown(ident: ui.Identification, **changes: Any) -> ui.Identification:
    """The result with other evidence."""
    return replace(ident, evidence=replace(ident.evidence, **changes))


def ids(result: ui.Identification) -> set[str]:
    """What is judged of a result."""
    return {reason.id for reason in result.verdict.judgements}


def with_findings(log: UsedLog, *findings: dict[str, Any]) -> UsedLog:
    return replace(log, findings=tuple(map(Judgement.from_dict, findings)))


def test_a_clean_result_on_another_motion_is_good(ident: ui.Identification) -> None:
    assert ident.verdict.level == "good", ident.verdict
    assert ident.verdict.cause is None
    assert [reason.id for reason in ident.verdict.judgements] == ["held-out-error"]


#: A project that says that the scale of the efforts is known.
TRUSTED = ui.Project.model_validate({"drive": {"scale_known": True}})


def test_a_unit_that_contradicts_the_masses_is_poor_and_said_first_with_the_factor(
    robot: ui.Robot, logs: list[ui.Recording]
) -> None:
    wrong = [scaled(log, 1e-3) for log in logs]
    found = ui.identify(ui.DynamicModel(robot, friction=FRICTION), wrong[:2], held_out=wrong[2:], force=True)
    first = found.verdict.judgements[0]
    assert (found.verdict.level, first.id, first.level) == ("poor", "mass-scale", "poor")
    gains = first.remedy.settings["drive.gain"]["multiply"]
    assert list(gains) == list(robot.joints)
    assert list(gains.values()) == pytest.approx([1e3] * robot.n, rel=0.5)  # the URDF's own masses are not exact
    assert "mass-scale" not in ids(replace(found, project=TRUSTED))


@pytest.mark.parametrize(
    ("gravity", "gains"),
    [
        ((0.02, 0.03, 0.1), (1 / 0.02, 1 / 0.03, 1 / 0.1)),  # a torque constant of each joint's own
        ((1.3, 4.0, 9.0), None),  # a tool
        ((-0.1, 0.1, 0.1), None),  # a sign
        ((0.1, 9.0, 0.1), None),
    ],
)
def test_gravity_torques_contradict_a_unit_only_if_all_do(
    ident: ui.Identification, gravity: tuple[float, ...], gains: tuple[float, ...] | None
) -> None:
    ratios = dict(zip(("j2", "j3", "j4"), gravity, strict=True))
    found = shown(ident, gravity=ratios, gravity_errors={}, scale=None)
    poor = [reason for reason in found.verdict.judgements if reason.level == "poor"]
    assert [reason.id for reason in poor] == ["mass-scale"] * (gains is not None)
    if gains is not None:
        multiply = poor[0].remedy.settings["drive.gain"]["multiply"]
        assert [multiply[joint] for joint in ratios] == pytest.approx(gains)
        assert "j2 by 50, of j3 by 33.33, of j4 by 10" in str(poor[0].remedy)


def test_a_poor_result_begins_with_the_fault_of_the_logs_that_explains_it(ident: ui.Identification) -> None:
    finding = {"id": "effort-beyond-limit", "severity": "warning", "joint": "j1", "message": "reaches 9e5", "remedy": "unit"}
    bad = [{**item, "mean_rmse": 1e4, "relative": 1e3} for item in ident.validation]
    poor = replace(ident, validation=tuple(bad), inputs=(with_findings(ident.inputs[0], finding),))
    assert poor.verdict.level == "poor"
    assert [reason.id for reason in poor.verdict.judgements][:2] == ["effort-beyond-limit", "worse-than-urdf"]
    assert "to do: unit" in brief(poor)
    assert "more than 1000 %" in brief(poor)
    assert replace(poor, inputs=ident.inputs).verdict.cause.id == "worse-than-urdf"


def test_the_exported_model_is_judged_and_what_the_data_alone_say_keeps_it_from_good(ident: ui.Identification) -> None:
    assert ident.prediction.relative.mean() == pytest.approx(ident.cross_validation.relative, rel=0.5)  # rich data: no matter
    alone = replace(ident.cross_validation, rmse=1.4 / ident.cross_validation.relative * ident.cross_validation.rmse)
    weak = replace(ident, validation=(), cross_validation=alone)
    assert (weak.verdict.level, weak.verdict.cause.id) == ("usable", "data-alone")
    assert replace(weak, prediction=replace(ident.prediction, relative=np.ones(ident.model.n))).verdict.level == "poor"


def test_parts_of_a_motion_that_hardly_turns_back_are_no_evidence(ident: ui.Identification) -> None:
    once = shown(replace(ident, validation=()), reversals=1.0, folds_repeat=False)
    assert "motion-hardly-turns" in ids(once)
    assert "motion-hardly-turns" not in ids(shown(once, reversals=2.0))
    assert once.verdict.level == "usable"
    assert "motion-hardly-turns" not in ids(replace(ident, evidence=once.evidence))  # another motion was given


def test_a_short_motion_alone_makes_nothing_good(ident: ui.Identification) -> None:
    def level(*seconds: float) -> tuple[str, bool]:
        told = [with_findings(ident.inputs[0], {"id": "short", "severity": "warning", "size": size}) for size in seconds]
        found = replace(ident, validation=(), inputs=tuple(told))
        return found.verdict.level, "motion-short" in ids(found)

    assert level(2.0, 2.5) == ("usable", True)
    assert level(2.0, 3.5)[1] is False
    short = with_findings(ident.inputs[0], {"id": "short", "severity": "warning", "size": 2.0})
    assert replace(ident, inputs=(short,)).verdict.level == "good"


def test_an_excerpt_of_a_training_log_is_no_other_motion(robot: ui.Robot, logs: list[ui.Recording]) -> None:
    whole = logs[0]
    part = replace(whole.take(slice(0, len(whole) * 2 // 5)), name="part", sha256="")
    assert excerpts([part, logs[2]], logs[:2]) == {"part": whole.name}
    assert excerpts([logs[2]], [part]) == {}
    judged = ui.identify(ui.DynamicModel(robot, friction=FRICTION), logs[:2], held_out=[part])
    assert judged.validation[0]["repeats"] == whole.name
    assert judged.verdict.level == "usable"


def test_repetitions_of_a_motion_are_judged_as_one_log_of_it(robot: ui.Robot, logs: list[ui.Recording]) -> None:
    rng = np.random.default_rng(5)
    noise = [0.01 * logs[0].effort.std(axis=0) * rng.standard_normal(logs[0].effort.shape) for _ in range(2)]
    first, second = (replace(logs[0], name=f"run{k}", effort=logs[0].effort + noise[k], sha256="") for k in range(2))
    model = ui.DynamicModel(robot, friction=FRICTION)
    once, both = ui.identify(model, [first]), ui.identify(model, [first, second])
    assert both.verdict.level == once.verdict.level == "good"
    assert both.cross_validation.relative == pytest.approx(once.cross_validation.relative, rel=0.2)
    judged = ui.identify(model, [first, logs[1]], held_out=[second])
    assert judged.validation[0]["repeats"] == "run0"
    assert judged.verdict.level == "usable"
    assert "held-out-repeats" in ids(judged)
    velocity = np.gradient(logs[2].position, logs[2].time, axis=0)
    noisy = velocity + 0.3 * velocity.std(axis=0) * rng.standard_normal(velocity.shape)  # positions are differentiated instead
    coarse = replace(logs[2], position=np.round(logs[2].position, 3), velocity=velocity, sha256="")
    judges = [coarse, replace(coarse, name="noisy velocities", velocity=noisy)]
    other = ui.identify(model, [first, logs[1]], held_out=judges)
    assert len({prepare_log(log, robot, model.drive, SignalConfig()).conditioned.velocity_source for log in judges}) == 2
    assert all("repeats" not in item for item in other.validation)
    assert other.verdict.level == "good"


@pytest.mark.parametrize(("frequency", "seconds"), [(0.25, 20.0), (0.2, 9.3)])
def test_the_same_sine_on_all_joints_is_never_good(robot: ui.Robot, frequency: float, seconds: float) -> None:
    t = np.arange(round(100 * seconds)) / 100
    w = 2 * np.pi * frequency
    q, v, a = (np.tile(x[:, None], robot.n) for x in (np.sin(w * t), w * np.cos(w * t), -(w**2) * np.sin(w * t)))
    tau = torques(robot, Truth.of(robot.n), q, v, a)
    tau = tau + 0.01 * tau.std(axis=0) * np.random.default_rng(0).standard_normal(tau.shape)
    found = ui.identify(ui.DynamicModel(robot, friction=FRICTION), [ui.Recording("sine", robot.joints, t, q, effort=tau)])
    assert found.cross_validation.relative < 0.1, "the parts of one sine predict each other"
    assert found.verdict.level != "good"
    assert "torque-from-urdf" in ids(found)
    assert ("motion-repeated" in ids(found)) == bool(found.inputs[0].periods)  # it is averaged


@pytest.mark.parametrize(
    ("gravity", "scale", "level"),
    [
        ((0.35, 1.0, 0.9), 0.002, "good"),  # the other joints' efforts tell its scale: the URDF's masses are wrong
        ((0.35, 1.0, 0.9), 0.02, "good"),  # a gain of 0.35 would show in spite of errors with memory
        ((0.35, 1.0, 0.9), 0.05, "usable"),
        ((0.6, 1.0, 0.9), 0.3, "good"),  # usual errors of masses
        ((0.35, 1.0, 0.9), 0.3, "usable"),  # a wrong gain explains it as well
        ((-0.4, 1.0, 0.9), 0.002, "usable"),
        ((0.35, 0.3, 0.9), 0.002, "usable"),  # most of them: the unit of all efforts
    ],
)
def test_another_gravity_torque_than_the_urdf_s_counts_where_the_scale_is_open(
    ident: ui.Identification, gravity: tuple[float, ...], scale: float, level: str
) -> None:
    names, common = ("j1", "j2", "j3"), CommonScale(float(np.median(gravity)), 0.1)
    known, ratios = dict.fromkeys(names, scale), dict(zip(names, gravity, strict=True))
    found = shown(ident, gravity=ratios, gravity_errors={}, scales=known, scale=common)
    assert found.verdict.level == level
    assert ("gravity-scale" in ids(found)) == (level == "usable")


def test_a_factor_on_all_efforts_is_told_by_the_masses_of_the_urdf_unless_the_scale_is_known(
    robot: ui.Robot, logs: list[ui.Recording]
) -> None:
    first, second, judge = (scaled(log, 2.5) for log in logs)
    found = ui.identify(ui.DynamicModel(robot, friction=FRICTION), [first, second], held_out=[judge])
    assert found.evidence.scale.errors > SCALE_ERRORS
    (cause,) = (reason for reason in found.verdict.judgements if reason.id in ("mass-scale", "gravity-scale"))
    assert "scale_known" in str(cause.remedy)
    assert not {"mass-scale", "gravity-scale"} & ids(replace(found, project=TRUSTED))


def test_what_the_data_do_not_test_is_in_the_first_lines(ident: ui.Identification) -> None:
    assert "not tested: the scale of all efforts together (masses " in brief(ident).splitlines()[1]
    assert "not tested by the data: the scale of all efforts together" in ident.summary(verbose=True)
    trusted = replace(ident, project=TRUSTED)
    finding = {"id": "time-scale-open", "severity": "info", "joint": None, "message": "", "remedy": None}
    open_ = replace(trusted, inputs=tuple(with_findings(log, finding) for log in trusted.inputs))
    assert untested(open_) == f"the clock; {CONSEQUENCE}"
    scales = [{**finding, "id": "effort-scale-open", "joints": joints} for joints in (["j2", "j4"], ["j4", "j3"])]
    two = replace(trusted, inputs=tuple(with_findings(trusted.inputs[0], scale) for scale in scales))
    two = shown(two, gravity={"j3": 1.1})
    assert untested(two) == f"the effort scale of j4; {CONSEQUENCE}"  # each other log determines j2 and j3
    assert (
        untested(shown(two, gravity={"j4": 1.39})) == f"the effort scale of j4 (gravity torque 1.4 × the URDF's); {CONSEQUENCE}"
    )
    wrist = replace(trusted, inputs=tuple(with_findings(log, scales[0]) for log in trusted.inputs))
    told = untested(shown(wrist, gravity={"j1": 1.42, "j2": 0.98, "j3": 1.38, "j4": 1.01}))
    assert "j4 (gravity torque 1 × the URDF's); gravity torques of others over the URDF's: 1.4 (j1), 1.4 (j3)" in told
    tested = replace(trusted, inputs=tuple(with_findings(log) for log in trusted.inputs))
    assert untested(tested) == ""
    assert "not tested" not in brief(tested)


@pytest.mark.parametrize(
    ("change", "id", "level"),
    [
        ({"uncertainty": {"j": 0.3}}, "torque-uncertain", "usable"),
        ({"uncertainty": {"j": 2.0}}, "torque-uncertain", "poor"),
        ({"unaided": {"j": 0.3}}, "torque-from-urdf", "usable"),
        ({"at_speeds": {"j": [0.01, 0.02, 0.1, 0.2, 0.3, 0.4, 0.5]}}, "speed-untested", "usable"),
        ({"gravity": {"j": -1.0}}, "gravity-scale", "usable"),
        ({"gravity": {"j": 3.0}, "placeholders": True}, "scale-unproven", "usable"),
        ({"friction": {"j": 1e7}}, "friction-implausible", "poor"),
        ({"peak": {"j": 40.0}}, "torque-implausible", "poor"),
        ({"masses": {"link": 9.9}}, "mass-far", "usable"),
        ({"departures": (DeviatingPart("run", "j", "2/3", 3.0, 1.0),)}, "residual-not-stationary", "usable"),
    ],
)
def test_each_kind_of_evidence_caps_the_level(ident: ui.Identification, change: dict, id: str, level: str) -> None:
    found = verdict_of(with_joints(shown(ident, **change), 0.06))
    assert (found.level, found.cause.id) == (level, id)
    assert found.cause.remedy


@pytest.mark.parametrize(
    ("scale", "level"),
    [(CommonScale(1.6, 0.2), "good"), (CommonScale(2.4, 0.2), "usable"), (CommonScale(1.6, 0.5), "usable"), (None, "usable")],
)
def test_a_missing_tool_is_no_wrong_unit(ident: ui.Identification, scale: CommonScale | None, level: str) -> None:
    """A tool raises the gravity of most joints, but not all masses and inertias together as a wrong unit does."""
    joints = ident.model.robot.joints
    heavier = dict(zip(joints, (1.4, 1.9, 2.2, 2.4), strict=True))
    found = shown(ident, gravity=heavier, gravity_errors={}, scales=dict.fromkeys(joints, 0.001), scale=scale)
    assert found.verdict.level == level
    assert ("gravity-scale" in ids(found)) == (level == "usable")
    assert shown(found, gravity=dict.fromkeys(joints, -1.0)).verdict.level == "usable"


def test_slow_logs_are_good_up_to_a_speed_that_is_said(ident: ui.Identification) -> None:
    def said(*errors: float) -> str:
        changed = shown(ident, at_speeds={"a": list(errors), "b": list(errors)})
        told = [item for item in changed.verdict.judgements if item.id == "speed-untested"]
        assert {item.severity for item in told} <= {"info"}  # other motions are predicted well at the speeds of the logs
        cause = replace(changed, validation=()).verdict.cause
        assert cause is None or cause.id == "speed-untested"
        return str(cause)

    words = "50 % (mean over joints, a 50 %), at most 15 % up to 20 % of these limits"
    assert words in said(0.01, 0.02, 0.1, 0.2, 0.3, 0.4, 0.5)
    assert "hardly less at lower speeds" in said(0.16, 0.2, 0.2, 0.2, 0.3, 0.4, 0.5)
    assert said(0.14, 0.02, 0.1, 0.1, 0.1, 0.1, 0.14) == "None"
    assert set(ident.evidence.at_speeds) == set(ident.model.robot.joints)
    assert max(max(errors) for errors in ident.evidence.at_speeds.values()) < 0.15


def test_a_joint_that_the_data_alone_predict_well_and_the_export_badly_prevents_good(ident: ui.Identification) -> None:
    def change(joint: dict, relative: float, fit: float) -> dict:
        return {**joint, "relative": relative, "rmse": 1.0, "fit_rmse": fit, "urdf_rmse": 2.0, "urdf_friction_rmse": 2.0}

    for relative, fit, id in ((0.23, 0.2, "prior-contradicted"), (0.23, 0.95, None), (0.02, 0.2, None)):
        scores = tuple(
            {**x, "per_joint": [change(x["per_joint"][0], relative, fit), *x["per_joint"][1:]]} for x in ident.validation
        )
        cause = replace(ident, validation=scores).verdict.cause
        assert (cause and cause.id) == id
    alone, cross = replace(ident, validation=()), ident.cross_validation
    assert alone.verdict.level == "good"
    worse = np.column_stack([cross.exported.effort_rms[:, :1], cross.exported.rmse[:, 1:]])
    cause = replace(alone, cross_validation=replace(cross, exported=replace(cross.exported, rmse=worse))).verdict.cause
    assert cause.id == "joint-error"
    assert "j1 (100 % of its torque" in cause.message


def test_a_joint_that_is_not_predicted_is_said_first_whatever_the_error_of_all(ident: ui.Identification) -> None:
    largest = max(row["rms_torque"] for row in ident.validation[0]["per_joint"])
    bad = {"relative": 0.45, "rms_torque": 0.06 * largest}
    cause = with_joints(ident, 0.03, j4=bad).verdict.cause
    assert (cause.id, cause.joint, cause.level) == ("joint-error", "j4", "usable")
    first = with_joints(ident, 0.5, j4=bad).verdict.judgements[0]
    assert (first.id, first.level) == ("joint-error", "poor")
    for tolerated in ({**bad, "relative": 0.39}, {**bad, "rms_torque": 0.04 * largest}):
        assert "joint-error" not in ids(with_joints(ident, 0.03, j4=tolerated))


def test_what_the_data_left_open_does_not_count_where_other_motions_are_predicted_well(ident: ui.Identification) -> None:
    assert all(row["held"] > 0.85 for row in ident.validation[0]["per_joint"])
    open_ = shown(ident, unaided={"j": 0.3}, uncertainty={"j": 0.3})
    assert with_joints(open_, 0.05).verdict.level == "good"
    assert "torque-uncertain" in ids(with_joints(open_, 0.05))
    for pooled, change in ((0.06, {}), (0.05, {"relative": 0.21}), (0.05, {"held": 0.8})):
        assert with_joints(open_, pooled, j1=change).verdict.level == "usable"


def test_a_mass_at_a_limit_is_said_first(ident: ui.Identification) -> None:
    held = replace(ident, solver={**ident.solver, "active": ["l2: mass at 10 times the prior's", "Fc_j1 ≥ 0"]})
    assert held.verdict.cause.id == "mass-at-limit"
    assert brief(held).split(":")[1].strip().startswith("USABLE, the mass of l2 is at a limit")


@pytest.mark.parametrize(("gap", "words"), [(0.9, ""), (25.0, "up to 5 standard errors"), ("inf", "at an unknown distance")])
def test_a_solver_that_stopped_before_the_optimum_is_said(ident: ui.Identification, gap: float | str, words: str) -> None:
    stopped = {**ident.solver, "status": "fallback", "residuals": {**ident.solver["residuals"], "gap": gap}}
    verdict = replace(ident, solver=stopped).verdict
    assert [words in one.message for one in verdict.judgements if one.id == "not-optimal"] == [True] * bool(words)
    assert verdict.level == ("usable" if words else ident.verdict.level)


def test_a_cause_stands_before_the_error_that_it_explains_and_names_all_its_joints(ident: ui.Identification) -> None:
    late = {"id": "effort-delay", "severity": "warning", "message": "the effort of this joint comes later", "remedy": "check"}
    sign = {"id": "effort-sign", "severity": "refused", "joint": "joint_3", "message": "the sign of joint_3", "remedy": "turn"}
    delays = [{**late, "joint": joint} for joint in ("joint_2", "joint_5")]
    alone = replace(ident, inputs=(with_findings(ident.inputs[0], *delays),)).verdict
    assert (alone.level, str(alone.cause.remedy)) == ("usable", "check")
    for relative, level in ((0.25, "usable"), (0.9, "poor")):
        scores = tuple({**item, "relative": relative, "urdf_friction_mean_rmse": 0.0} for item in ident.validation)
        found = replace(ident, validation=scores, inputs=(with_findings(ident.inputs[0], *delays, sign),))
        assert found.verdict.level == level
        text = "joint_2 (also joint_5): the effort of this joint comes later"
        assert text in {reason.message for reason in found.verdict.judgements}
        assert found.verdict.cause.message == (text if level == "usable" else "the sign of joint_3")  # refused and forced
        assert f"relative torque error {100 * relative:.1f} %" in " ".join(brief(found).split())


def test_a_payload_in_the_last_third_of_one_log_is_named(robot: ui.Robot, logs: list[ui.Recording]) -> None:
    effort = logs[1].effort.copy()
    effort[2 * len(effort) // 3 :, 1] += 0.8 * np.abs(effort[:, 1]).max() * np.cos(logs[1].position[2 * len(effort) // 3 :, 1])
    loaded = replace(logs[1], effort=effort, sha256=None)
    found = ui.identify(ui.DynamicModel(robot, friction=FRICTION), [logs[0], loaded, logs[2]], force=True)
    assert found.verdict.level != "good"
    assert any(item.part == "3/3" for item in found.evidence.departures)


@pytest.mark.parametrize(("held", "departs"), [(0.7, False), (4.0, True)])
def test_a_resting_joint_may_hold_its_dry_friction(
    robot: ui.Robot, logs: list[ui.Recording], held: float, departs: bool
) -> None:
    """In the last third of a log the fourth joint rests and its effort is off by a multiple of its Coulomb friction."""
    t, q, v, a = fourier(robot.n, 12.0, 100.0, 1)
    x = np.clip((8.0 - t) / 2.0, 0.0, 1.0)
    s, ds, dds = x**3 * (10 - 15 * x + 6 * x**2), -15 * x**2 * (1 - x) ** 2, 15 * x * (1 - x) * (1 - 2 * x)
    a[:, 3] = a[:, 3] * s + 2 * v[:, 3] * ds + q[:, 3] * dds
    v[:, 3] = v[:, 3] * s + q[:, 3] * ds
    q[:, 3] *= s
    effort = torques(robot, Truth.of(robot.n), q, v, a) + 0.05 * np.random.default_rng(1).standard_normal(q.shape)
    effort[t > 8.0, 3] += held * Truth.of(robot.n).coulomb[3]
    stopped = ui.Recording("stopped", robot.joints, t, q, effort=effort)
    found = ui.identify(ui.DynamicModel(robot, friction=FRICTION), [logs[0], stopped, logs[2]], force=True)
    parts = [(item.log, item.part) for item in found.evidence.departures if item.joint == "j4"]
    assert parts == ([("stopped", "3/3")] if departs else [])


def test_validate_says_what_was_trained_on_and_when_the_error_jumps(ident: ui.Identification, logs: list[ui.Recording]) -> None:
    report = ui.validate(ident, [logs[0]])
    assert report.summary().startswith("GOOD, on training logs alone: ")
    assert "one of the training logs" in report.summary()
    assert "held-out log" not in report.summary()
    other = ui.validate(ident, [scaled(logs[2], -1.3)], force=True)
    assert "its efforts are a multiple of the model's on all joints (-1." in other.summary()
    flipped = ui.validate(ident, [scaled(logs[2], np.array([1.0, -1.0, 1.0, 1.0]))], force=True)
    assert "its efforts are a multiple of the model's on j2 (-1." in flipped.summary()
    assert "another tool or load" not in flipped.summary()
    heavier = ui.validate(ident, [scaled(logs[2], 1.3)], force=True)
    assert "check unit, sign and drive.gain against the training logs or, if it is another tool or load" in heavier.summary()
    jumped = replace(heavier, logs=())
    assert "the error rose from" in jumped.summary()
    for beyond, words in (({}, "; check for another tool"), ({"j1": 0.6}, "; identify from motions as fast as this one")):
        entries = tuple({**entry, "beyond_trained": beyond} for entry in jumped.entries)
        assert words in replace(jumped, entries=entries).summary()
    assert jumped.verdict.level != "good"


def test_a_joint_without_effort_does_not_spoil_the_others() -> None:
    """A horizontal slide at rest whose coarse effort is 0 but for one count at the start: no scale for weights and errors."""
    robot = ui.Robot.from_urdf(arm_urdf("xyz", kind="prismatic"))
    logs = []
    for seed in range(2):
        t, q, v, a = fourier(robot.n, 14.0, 200.0, seed, amplitude=0.3)
        x = np.clip(t - 0.5, 0.0, 1.0)[:, None]  # at rest for half a second, then faster within one
        s, ds, dds = x**3 * (10 - 15 * x + 6 * x**2), 30 * x**2 * (1 - x) ** 2, 60 * x * (1 - x) * (1 - 2 * x)
        q, v, a = q * s, v * s + q * ds, a * s + 2 * v * ds + q * dds
        q[:, 0], v[:, 0], a[:, 0] = 0.1, 0.0, 0.0
        tau = torques(robot, Truth.of(robot.n), q, v, a) + 0.1 * np.random.default_rng(seed).standard_normal(q.shape)
        tau[:, 0] = 0.0
        tau[seed:1, 0] = 5.0
        logs.append(ui.Recording.from_arrays(t, q, tau, joints=robot, name=f"log{seed}"))
    ident = ui.identify(ui.DynamicModel(robot, friction=FRICTION), logs)
    assert ident.verdict.level == "usable", ident.verdict
    assert np.isfinite(ident.fit.params).all()
    assert max(error for error, *_ in joint_errors(ident)[1].values()) < 0.1
    found = {parameter.name: value for parameter, value in zip(ident.model.parameters, ident.theta, strict=True)}
    assert found[f"Fv_{robot.joints[1]}"] == pytest.approx(2.0, rel=0.05)
    assert found[f"Fv_{robot.joints[2]}"] == pytest.approx(4.0 / 3.0, rel=0.05)


def test_constraints_that_cost_more_than_chance_are_named(ident: ui.Identification) -> None:
    def reasons(factor: float, active: list[str]) -> dict[str, str]:
        found = replace(ident.prediction, unlimited=ident.prediction.relative / factor)
        told = replace(ident, validation=(), prediction=found, solver={**ident.solver, "active": active}).verdict
        return {reason.id: reason.level for reason in told.judgements}

    active = ["l2: centre of mass at its lower z limit"]
    assert not {"constraints-cost", "constraints-contradicted"} & set(reasons(1.0, active))
    assert reasons(1.2, active)["constraints-cost"] == "good"
    assert reasons(2.0, active)["constraints-contradicted"] == "usable"


def test_what_counts_against_a_result_is_told_by_its_id(ident: ui.Identification) -> None:
    """Bodies that no robot has, parameters that the motion does not show, and models that predict better."""

    def levels(**changes: object) -> dict[str, str]:
        return {str(item.id): item.level for item in replace(ident, **changes).verdict.judgements}  # type: ignore[arg-type]

    assert levels() == {"held-out-error": "good"}
    assert levels(validation=()) == {"cross-validation": "good"}
    assert levels(validation=(), cross_validation=None) == {"not-validated": "usable"}
    seen = tuple({**item, "trained_on": True} for item in ident.validation)
    assert "usable" in levels(validation=seen, cross_validation=None).values()
    assert levels(validation=(), evidence=replace(ident.evidence, folds_repeat=True))["motion-repeated"] == "usable"
    impossible = ident.theta.copy()
    impossible[0] = -1.0
    assert levels(theta=impossible)["not-consistent"] == "usable"
    unseen = replace(ident.fit, seen=np.arange(len(ident.fit.base)) > 0)
    assert "parameters-unseen" in levels(fit=unseen)
    item = ident.validation[0]
    assert levels(validation=({**item, "urdf_friction_mean_rmse": 0.5 * item["mean_rmse"]},))["worse-than-friction"] == "usable"
    joints = [{**item["per_joint"][0], "relative": 0.75, "rmse": 0.75, "urdf_rmse": 0.47}, *item["per_joint"][1:]]
    assert levels(validation=({**item, "per_joint": joints},))["joint-worse-than-urdf"] == "usable"


def test_limits_that_the_urdf_s_own_masses_exceed_are_no_reference_for_the_torque(logs: list[ui.Recording]) -> None:
    urdf = re.sub(r'velocity="[^"]*"', 'velocity="1000"', arm_urdf("zyyx"))
    ident = ui.identify(ui.DynamicModel(ui.Robot.from_urdf(urdf), friction=FRICTION), logs[:2])
    assert max(ident.evidence.overdriven.values()) > PEAK_LIMIT
    assert max(ident.evidence.peak.values()) < PEAK_LIMIT
    assert ident.verdict.level == "good", ident.verdict
    assert "limits-contradictory" in [reason.id for reason in ident.verdict.judgements]
