"""Designs: as good as promised, inside the limits on a dense grid, interruptible, and honest about what cannot be done."""

import re
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from commands import done, run
from conftest import arm_urdf, rnea
from motion_samples import rows_along, tx40

from urdf_ident import DynamicModel, Robot, Trajectory, random_fourier, read_trajectory
from urdf_ident.errors import FingerprintError, LimitError, ModelError, ProjectError
from urdf_ident.excitation.criteria import condition_number
from urdf_ident.excitation.design import Design, certified, design_excitation
from urdf_ident.excitation.family import Family
from urdf_ident.excitation.optimise import FoundMotion, Objective, optimise
from urdf_ident.excitation.problem import Problem, formulate
from urdf_ident.linalg import standard_errors
from urdf_ident.model.bundled import robot_path
from urdf_ident.motion.limits import Limits, check_limits
from urdf_ident.project import parse_project

QUICK = {"starts": 1, "budget": 60.0, "collisions": None}


def rigid(name: str = "ur10e") -> DynamicModel:
    return DynamicModel(Robot.from_urdf(robot_path(name)), friction="none", rotor_inertia=False)


def small(**options: object) -> DynamicModel:
    return DynamicModel(Robot.from_urdf(arm_urdf("zyx", **options)))  # type: ignore[arg-type]


def assert_inside(trajectory: Trajectory, robot: Robot, limits: Limits, step: float = 1e-3) -> None:
    """Every millisecond, with velocity and acceleration from the positions and torque from Pinocchio's dynamics."""
    t = np.arange(0.0, trajectory.duration, step)
    q, v, a = trajectory.evaluate(t)
    assert (q >= limits.lower).all()
    assert (q <= limits.upper).all()
    for signal, size in ((np.diff(q, axis=0) / step, limits.velocity), (np.diff(v, axis=0) / step, limits.acceleration)):
        assert (np.abs(signal) <= size * (1 + 1e-9)).all()
    np.testing.assert_allclose(np.diff(q, axis=0) / step, (v[1:] + v[:-1]) / 2, atol=1e-4)
    np.testing.assert_allclose(np.diff(v, axis=0) / step, (a[1:] + a[:-1]) / 2, atol=1e-3)
    poses = robot.configuration(q)
    tau = rnea(robot.model, poses, v, a)
    assert (np.abs(tau) <= limits.torque).all()


def test_condition_below_ten_in_two_seconds_from_a_cold_start() -> None:
    """The figure: six axes, five harmonics, 66 unknowns, 20 s, evaluations of two seconds of one core."""
    model = rigid()
    problem = well_conditioned(model)
    search = optimise(problem, seed=0, budget=2.0)
    assert search.best.X.size == 66
    trajectory = problem.family.trajectory(search.best.X)
    dense = condition_number(rows_along(model, model.base(), trajectory, np.ones(6)))
    assert dense == pytest.approx(np.exp(search.best.value), rel=1e-3)
    assert dense < 10.0
    assert_inside(trajectory, model.robot, problem.limits)


def well_conditioned(model: DynamicModel) -> Problem:
    return formulate(model, Family("fourier", model.robot.joints, 20.0, 5), Limits.from_robot(model.robot), "cond")


@pytest.mark.parametrize("make", [lambda: DynamicModel(Robot.from_urdf(robot_path("ur10e"))), tx40], ids=["ur10e", "tx40"])
def test_d_optimal_beats_random_motions(make: object) -> None:
    """Equal duration, both scaled to the limits: median standard error at least 1.5 times smaller (20 random motions)."""
    model = make()  # type: ignore[operator]
    design = design_excitation(model, criterion="D", seed=1, **QUICK)
    base = model.base()
    ours = standard_errors(rows_along(model, base, design.excitation, design.noise))
    ratios = []
    for seed in range(20):
        motion = random_fourier(design.limits, 20.0, 5, seed, fill=1.0, span=10.0)
        theirs = standard_errors(rows_along(model, base, motion, design.noise))
        ratios.append(np.median(theirs / ours))
    assert np.median(ratios) > 1.5
    assert_inside(design.trajectory, model.robot, design.limits)


@pytest.mark.parametrize(
    ("family", "options"),
    [
        ("modified_fourier", {}),
        ("modified_fourier", {"start": [0.3, -0.5, 1.0], "periods": 2}),
        ("spline", {}),
        ("fourier", {}),
        ("fourier", {"start": [0.3, -0.5, 1.0], "ramp": 1.0}),
        ("spline", {"start": [0.3, -0.5, 1.0]}),
    ],
)
def test_families_start_and_end_at_rest(family: str, options: dict[str, object]) -> None:
    model = small()
    design = design_excitation(model, 6.0, family=family, **QUICK, **options)  # type: ignore[arg-type]
    ends = design.trajectory.evaluate([0.0, design.trajectory.duration])
    np.testing.assert_allclose(ends[0][0], ends[0][1], atol=1e-9)
    np.testing.assert_allclose(np.concatenate(ends[1:]), 0.0, atol=1e-8)
    if "start" in options:
        np.testing.assert_allclose(ends[0][0], options["start"])
    ramps = 2 * float(options.get("ramp", 2.0)) if family == "fourier" else 0.0  # type: ignore[arg-type]
    assert design.trajectory.duration == pytest.approx(6.0 * int(options.get("periods", 1)) + ramps)  # type: ignore[call-overload]
    assert_inside(design.trajectory, model.robot, design.limits)
    assert design.report.feasible
    assert min(m.margin for m in design.report.margins) >= 0
    random = random_fourier(design.limits, 6.0, 5, 0, fill=1.0)
    base = model.base()
    better, worse = (standard_errors(rows_along(model, base, t, design.noise)) for t in (design.excitation, random))
    assert np.median(worse / better) > 1.05  # a single start; short ramps cost most of the gain


@pytest.mark.parametrize("family", ["modified_fourier", "spline"])
def test_families_that_travel_end_elsewhere(family: str) -> None:
    model = small()
    start, end = [0.3, -0.5, 1.0], [-1.0, 0.8, 0.2]
    design = design_excitation(model, 6.0, family=family, start=start, end=end, **QUICK)
    q, v, a = design.trajectory.evaluate([0.0, design.trajectory.duration])
    np.testing.assert_allclose(q, [start, end], atol=1e-9)
    np.testing.assert_allclose([v, a], 0.0, atol=1e-8)
    assert_inside(design.trajectory, model.robot, design.limits)
    with pytest.raises(LimitError, match="too fast"):
        design_excitation(model, 0.2, family=family, start=start, end=end, **QUICK)
    with pytest.raises(LimitError, match=r"j2.*end pose is outside"):
        design_excitation(model, family=family, start=start, end=[0, 3, 0], **QUICK)
    with pytest.raises(LimitError, match="family that can travel"):
        design_excitation(model, family="fourier", start=start, end=end, **QUICK)
    with pytest.raises(LimitError, match=r"needs a start pose"):
        design_excitation(model, family=family, end=end, **QUICK)


def test_torque_limits_bind_and_hold() -> None:
    model = small()
    free = design_excitation(model, 6.0, **QUICK)
    peak = {m.joint: abs(m.value) for m in free.report.margins if m.quantity == "torque"}
    tight = Limits.from_robot(model.robot, torque=[0.7 * peak[joint] for joint in model.robot.joints])
    design = design_excitation(model, 6.0, limits=tight, noise=free.noise, **QUICK)
    assert_inside(design.trajectory, model.robot, design.limits)
    assert min(m.relative for m in design.report.margins if m.quantity == "torque") < 0.1
    assert design.value > free.value  # what was taken away costs something


def test_if_no_motion_passes_the_error_is_of_the_best_one_as_found() -> None:
    model = small()
    problem = well_conditioned(model)
    speeds = 30 * problem.limits.velocity, 3 * problem.limits.velocity
    motions = []
    for value, speed in zip((2.0, 1.0), speeds, strict=True):
        X = np.zeros((problem.family.unknowns, model.n))
        X[1] = speed  # a sine of the fundamental with this amplitude of the velocity
        motions.append(FoundMotion(value, X))
    worst = check_limits(problem.family.trajectory(motions[1].X), problem.limits).worst
    assert worst is not None
    with pytest.raises(LimitError, match=re.escape(f"{worst.value:.6g}")):
        certified(problem, motions)


def test_limits_bind_on_slides_and_endless_joints() -> None:
    slides = DynamicModel(Robot.from_urdf(arm_urdf("xyz", kind="prismatic")))
    design = design_excitation(slides, 6.0, **QUICK)
    assert_inside(design.trajectory, slides.robot, design.limits)
    robot = Robot.from_urdf(arm_urdf("zyx", kind="continuous"))
    endless = DynamicModel(robot)
    limits = Limits.from_robot(robot, velocity=3.0, torque=200.0)
    design = design_excitation(endless, 6.0, limits=limits, start=[0.0, 4.0, 0.0], **QUICK)
    assert any("half a turn: j1, j2, j3" in note for note in design.notes)
    assert np.abs(design.trajectory.evaluate(design.trajectory.times(100.0))[0] - [0, 4, 0]).max() < np.pi


def test_a_budget_gives_the_same_motion_however_slow_the_machine_is(monkeypatch: pytest.MonkeyPatch) -> None:
    model, t = small(), np.linspace(0, 6, 50)
    first = design_excitation(model, 6.0, seed=3, budget=0.2, collisions=None)
    evaluate = Objective.__call__

    def slowly(*asked: Any) -> Any:
        time.sleep(0.002)
        return evaluate(*asked)

    monkeypatch.setattr(Objective, "__call__", slowly)
    again, other = (design_excitation(model, 6.0, seed=seed, budget=0.2, collisions=None) for seed in (3, 4))
    np.testing.assert_array_equal(first.trajectory.evaluate(t), again.trajectory.evaluate(t))
    assert np.abs(first.trajectory.evaluate(t)[0] - other.trajectory.evaluate(t)[0]).max() > 0.1


def test_interrupting_keeps_the_best() -> None:
    model, seen = small(), []

    def impatient(part: float, best: str) -> None:
        seen.append((part, best))
        if len(seen) > 3:
            raise KeyboardInterrupt

    design = design_excitation(model, 6.0, budget=60.0, progress=impatient)
    assert any("interrupted" in note for note in design.notes)
    assert_inside(design.trajectory, model.robot, design.limits)
    assert seen[0][1].startswith("D = ")
    assert all(0 <= part <= 1 for part, _ in seen)


def test_a_budget_too_short_gives_the_best_so_far_and_says_so() -> None:
    model = small()
    design = design_excitation(model, 6.0, budget=1e-6)
    assert any("budget was used up" in note for note in design.notes)
    assert_inside(design.trajectory, model.robot, design.limits)


WEAK = {"torque": [330, 2.0, 150, 56, 56, 56]}
BLOCKED = r"gravity alone breaks a torque limit.*of 2 by joint 'shoulder_lift_joint'"
NO_SPEEDS = arm_urdf("zyx").replace('velocity="3"', 'velocity="0"')  # how exporters write "not known"


@pytest.mark.parametrize(
    ("robot", "options", "error", "message"),
    [
        (robot_path("ur10e"), {"limits": WEAK}, LimitError, BLOCKED),
        (robot_path("ur10e"), {"limits": WEAK, "start": [0.0] * 6}, LimitError, BLOCKED),
        (robot_path("ur10e"), {"limits": {"lower": 0.1, "upper": 0.1}}, LimitError, "leave no room"),
        (
            robot_path("ur10e"),
            {"start": [0, 0, 3.5, 0, 0, 0]},
            LimitError,
            r"elbow_joint.*start pose is outside.*got 3\.5, expected between -3\.14159",
        ),
        (robot_path("ur10e"), {"start": [0, 0, np.pi, 0, 0, 0]}, LimitError, "start pose is on a position limit"),
        (NO_SPEEDS, {}, LimitError, r"'j1', 'j2', 'j3'.*velocity limit is unknown.*state them in the URDF"),
        (arm_urdf("zy", kind="continuous"), {}, LimitError, "velocity limit is unknown"),
        (arm_urdf("zyx"), {"family": "fourier", "ramp": 0.0, "start": [0, 0, 0]}, LimitError, "does not start at a pose"),
        (arm_urdf("zyx"), {"harmonics": 0}, LimitError, "too few harmonics"),
        (arm_urdf("zyx"), {"harmonics": 500}, LimitError, "too many harmonics.*got 500.*at most 200"),
        (arm_urdf("zyx"), {"harmonics": 1}, LimitError, "at least 2"),
        (arm_urdf("zyx"), {"harmonics": 2.5}, LimitError, "whole number"),
        (arm_urdf("zyx"), {"duration": 0.0}, LimitError, "period .* must be positive"),
        (arm_urdf("zyx"), {"periods": 0}, LimitError, "whole number of times"),
        (arm_urdf("zyx"), {"criterion": "F"}, ModelError, "unknown criterion"),
        (arm_urdf("zyx"), {"family": "fourrier"}, LimitError, "did you mean 'fourier'"),
        (arm_urdf("zyx"), {"scaling": "some"}, ModelError, "unknown scaling"),
        (arm_urdf("zyx"), {"noise": -1.0}, ModelError, "noise must be positive"),
        (arm_urdf("zyx"), {"ramp": -1.0, "family": "fourier"}, LimitError, "ramp"),
        (arm_urdf("zyx"), {"budget": 0.0}, LimitError, "budget must be positive"),
    ],
)
def test_what_cannot_be_designed_is_refused(robot: Any, options: dict[str, Any], error: type[Exception], message: str) -> None:
    model = DynamicModel(Robot.from_urdf(robot), friction="none", rotor_inertia=False)

    def design() -> Design:
        limits = Limits.from_robot(model.robot, **options.get("limits", {}))
        return design_excitation(model, **{**QUICK, **options, "limits": limits})

    with pytest.raises(error, match=message):
        design()


def earlier(model: DynamicModel, known: list[int], weight: float) -> SimpleNamespace:
    """An earlier result that knows some base parameters well and nothing of the others."""
    base = model.base()
    factor = np.zeros((len(base), len(model.parameters) + 1))
    for row in known:
        factor[row, :-1] = weight * base.projection[row]
    sigma = {group.name: 1.0 for group in model.groups}
    return SimpleNamespace(model=model, fit=SimpleNamespace(sigma=sigma), factor=factor, signals={"decimate": 20.0})


def test_what_is_known_already_is_not_asked_again() -> None:
    """Half of the parameters known: the other half is told more precisely than by a motion designed blind."""
    model = small()
    base = model.base()
    unknown = [k for k in range(len(base)) if model.parameters[base.independent[k]].owner in ("j1", "l1", "l3", "j3")]
    known = [k for k in range(len(base)) if k not in unknown]

    def told(design: Design) -> float:
        R = rows_along(design.model, design.base, design.excitation, design.noise, 20.0)
        full = np.vstack([R, earlier(model, known, 1e4).factor[:, base.independent]])
        return float(np.mean(np.log(standard_errors(full)[unknown])))

    blind = design_excitation(model, 6.0, "D", noise=1.0, **{**QUICK, "starts": 2})
    aware = design_excitation(model, 6.0, "D", after=earlier(model, known, 1e4), **{**QUICK, "starts": 2})
    assert told(aware) < told(blind) - 0.02


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (Robot.from_urdf(arm_urdf("zyy")), "joint 'j3' is of another kind"),
        (Robot.from_urdf(arm_urdf("zyx").replace("j2", "elbow")), "joint 'elbow' is in one only"),
        (Robot.from_urdf(arm_urdf("zyx"), gravity=(0, 9.81, 0)), "gravity comes from another side"),
        (Robot.from_urdf(arm_urdf("zyx").replace("0.4", "0.41")), "sits .* elsewhere"),
    ],
)
def test_an_earlier_result_of_another_robot_is_refused(other: Robot, words: str) -> None:
    with pytest.raises(FingerprintError, match=f"another robot: .*{words}"):
        design_excitation(small(), after=earlier(DynamicModel(other), [0], 1.0), **QUICK)  # type: ignore[arg-type]


def write_project(folder: Path, text: str) -> tuple[Path, Path]:
    urdf, project = folder / "arm.urdf", folder / "p.yaml"
    urdf.write_text(arm_urdf("zyx"))
    project.write_text(text)
    return urdf, project


def test_the_command_writes_a_motion_that_reads_back(tmp_path: Path) -> None:
    urdf, project = write_project(
        tmp_path,
        "excitation: {budget: 0.2, duration: 6, periods: 2, start: {j1: 0.1, j2: 0.2, j3: -0.3},"
        " limits: {velocity: {j2: 1.0}, acceleration: 4, position: [-1.5, 1.5]}}\n",
    )
    out, picture = tmp_path / "excite.csv", tmp_path / "excite.png"
    said = done("design", urdf, "-c", project, "-o", out, "--plot", picture)
    assert f"wrote {out}" in said
    assert "12 s" in said
    robot = Robot.from_urdf(urdf)
    motion = read_trajectory(out, robot)
    assert motion.duration == pytest.approx(12.0, abs=2e-3)
    q, v, a = motion.evaluate(motion.times(1000.0))
    np.testing.assert_allclose(q[0], [0.1, 0.2, -0.3])
    assert np.abs(q).max() <= 1.5
    assert np.abs(v[:, 1]).max() <= 1.0
    assert np.abs(a).max() <= 4.0
    assert picture.read_bytes()[:4] == b"\x89PNG"


@pytest.mark.parametrize(("seconds", "noted"), [(2.0, True), (6.0, False)])
def test_a_motion_too_short_for_inspect_is_said(tmp_path: Path, seconds: float, noted: bool) -> None:
    urdf, project = write_project(tmp_path, f"excitation: {{budget: 0.3, duration: {seconds}}}\n")
    said = run("design", urdf, "-c", project, "-o", tmp_path / "m.csv")
    assert ("note: 2 s of motion is short: `inspect` warns below 5 s" in said.stdout + said.stderr) == noted


def test_lists_of_the_section_follow_the_robots_order() -> None:
    robot = Robot.from_urdf(arm_urdf("zyx"), joints=["j3", "j1", "j2"])
    section = parse_project(
        {"excitation": {"start": [3, 1, 2], "limits": {"torque": [30, 10, 20], "position": [[-3, 3], [-1, 1], [-2, 2]]}}}
    ).excitation
    limits, start = section.build_limits(robot), section._of_joints(robot, "start")
    where = [robot.joints.index(f"j{k}") for k in (1, 2, 3)]
    assert start is not None
    assert start[where].tolist() == [1, 2, 3]
    assert limits.torque[where].tolist() == [10, 20, 30]
    assert limits.upper[where].tolist() == [1, 2, 3]
    assert limits.velocity.tolist() == [3, 3, 3]
    assert np.isinf(limits.acceleration).all()
    for settings, message in (
        ({"limits": {"torque": [1, 2]}}, r"excitation.limits.torque.*wrong length"),
        ({"limits": {"torque": {"j4": 1}}}, r"excitation.*no joint is called 'j4'.*did you mean"),
        ({"start": {"j1": 0, "j3": 0}}, "has no value for joint 'j2'"),
    ):
        with pytest.raises(ProjectError, match=message):
            parse_project({"excitation": settings}).excitation.design(DynamicModel(robot))
