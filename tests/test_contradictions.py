"""Torques that contradict physics: reversed, swapped, or with gravity from another side."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest
from conftest import arm_urdf, rnea
from logs import Truth, bristles, found_in, fourier, recorded, torques
from scipy.ndimage import gaussian_filter1d

from urdf_ident import Drive, Judgement, QualityError, Recording, Robot, identify, robot_path
from urdf_ident.faults.evidence import remaining_doubt
from urdf_ident.faults.hypotheses import best_step
from urdf_ident.faults.interpretation import Interpretation
from urdf_ident.faults.trials import LogGroup
from urdf_ident.faults.urdf_bodies import UrdfBodies
from urdf_ident.judgements.catalogue import Id
from urdf_ident.linalg import Array
from urdf_ident.model.row_groups import Limb, limbs
from urdf_ident.pipeline.checked_logs import with_contradictions
from urdf_ident.pipeline.inspect import examine_logs
from urdf_ident.project import parse_project
from urdf_ident.signals.condition import condition
from urdf_ident.signals.config import SignalConfig
from urdf_ident.signals.prepare import prepare_logs, require_usable

CHANGES = {id for id in Id if id.rank == Id.LOG_DIFFERS.rank}
PHYSICS = {id for id in Id if id.rank == Id.EFFORT_SIGN.rank} | CHANGES
URDF = arm_urdf("zyyx")
ARM, OTHER = Robot.from_urdf(URDF), Robot.from_urdf(arm_urdf("zyxy"))
AT = np.eye(4)


def log_of(
    robot: Robot, *, seed: int = 0, seconds: float = 20.0, noise: float = 0.03, speed: float = 1.0, truth: Truth | None = None
) -> Recording:
    """A log of a robot that is what its URDF says, besides friction and rotors."""
    t, q, v, a = fourier(robot.n, seconds * speed, 200.0 / speed, seed)
    q, v, a, t = q, v * speed, a * speed**2, t / speed
    return recorded(robot, t, q, torques(robot, truth or Truth.of(robot.n), q, v, a), noise=noise, seed=1000 + seed)


def three(seconds: float, noise: float = 0.03) -> list[Recording]:
    """Logs of one robot, each of its own motion."""
    return [replace(log_of(ARM, seed=k, seconds=seconds, noise=noise), name=f"run{k}", sha256=f"{k}") for k in range(3)]


def one_after_the_other(robot: Robot, *, seed: int = 0, step: float = 0.05) -> Recording:
    """Each joint swings to and fro for 5 s while the others rest; efforts in steps of a fraction of their deviation."""
    t, chosen = np.arange(0, 5.0 * robot.n, 0.005), np.random.default_rng([2, seed])
    q, v, a = np.zeros((3, len(t), robot.n))
    for k, j in enumerate(chosen.permutation(robot.n)):
        x, w = np.clip(t / 5.0 - k, 0, 1), 6 * np.pi
        on = (x > 0) & (x < 1)
        hull, slope, bend = np.sin(np.pi * x) ** 2, np.pi * np.sin(2 * np.pi * x), 2 * np.pi**2 * np.cos(2 * np.pi * x)
        sine, cosine = np.sin(w * x), w * np.cos(w * x)
        q[:, j] = hull * sine
        v[:, j] = on * (slope * sine + hull * cosine) / 5.0
        a[:, j] = on * (bend * sine + 2 * slope * cosine - hull * w**2 * sine) / 25.0
    q += chosen.uniform(-1.5, 1.5, robot.n)
    tau, generator = torques(robot, Truth.of(robot.n), q, v, a), np.random.default_rng(seed)
    size = tau.std(axis=0)
    tau = np.round((tau + 0.01 * size * generator.standard_normal(tau.shape)) / (step * size)) * step * size
    return Recording(f"log{seed}", robot.joints, t, q + 1e-6 * generator.standard_normal(q.shape), effort=tau)


def doubts(recording: Recording, robot: Robot = ARM, drive: Drive | None = None) -> list[Judgement]:
    return told([recording], robot, drive)[0]


def told(logs: Sequence[Recording], robot: Robot = ARM, drive: Drive | None = None) -> list[list[Judgement]]:
    """Doubts about each of these logs, which are examined together."""
    return [[item for item in found if item.id in PHYSICS] for found in found_in(*logs, robot=robot, drive=drive)]


@pytest.mark.parametrize("truth", [Truth.of(4), Truth(*np.zeros((4, 4)))])
def test_a_sound_log_raises_no_doubt_with_friction_or_without(truth: Truth) -> None:
    assert doubts(log_of(ARM, seed=3, noise=0.6, truth=truth)) == []


def test_faults_are_found_in_joints_that_move_one_after_the_other() -> None:
    """No block that is held out holds the only motion of a joint: the others would tell nothing about it."""
    logs = [one_after_the_other(ARM, seed=seed) for seed in range(3)]
    wrong = [replace(log, position=log.position + 0.15 * np.eye(4)[2]) for log in logs]
    for some, expected in ((logs, set()), (wrong, {("position-zero", "j3")})):
        found = [item for own in told(some) for item in own]
        assert {(item.id, item.joint) for item in found} == expected
        assert all(item.size == pytest.approx(-0.15, abs=0.02) for item in found)


@pytest.mark.parametrize("copied", [False, True])
def test_joints_that_are_moved_alike_are_no_copied_column(copied: bool) -> None:
    """Positions equal to the last bit, as of a simulator: the efforts tell them from one column in two places."""
    t, q, v, a = fourier(ARM.n, 20.0, 200.0, 3)
    if not copied:
        q[:, 2], v[:, 2], a[:, 2] = q[:, 1], v[:, 1], a[:, 1]
    tau = torques(ARM, Truth.of(ARM.n), q, v, a)
    q[:, 2] = q[:, 1]
    effort = tau + 0.02 * tau.std(axis=0) * np.random.default_rng(0).standard_normal(tau.shape)
    (found,) = found_in(Recording("log", ARM.joints, t, q, effort=effort), robot=ARM)
    assert ("position-twice" in {item.id for item in found}) == copied


def two_arms() -> Robot:
    """Two arms on one base."""
    left, right = (re.sub(r"(<robot.*?>|</robot>)\n?", "", arm_urdf(axes, fixed_tip=False)) for axes in ("zyy", "zyx"))
    right = re.sub(r'"([jl])(\d)"', r'"right_\1\2"', right).replace('<link name="base"/>', "")
    return Robot.from_urdf(f'<robot name="both">{left}{right}</robot>')


def test_limbs_are_examined_apart_as_if_together() -> None:
    robot = two_arms()
    made = condition(log_of(robot, seed=4), robot)
    apart, whole = (LogGroup(robot, [(made.segments, made.cutoff)]).trials() for _ in range(2))
    assert [limb.joints for limb in apart.limbs] == [(0, 1, 2), (3, 4, 5)]
    assert [limb.joints for limb in limbs(robot, np.eye(6) + np.eye(6)[[1, 0, 3, 2, 4, 5]])] == [(0, 1, 2, 3, 4, 5)]
    whole.limbs = (Limb(tuple(range(6)), robot, np.arange(60)),)
    as_logged = Interpretation.as_logged(6)
    tried = [
        as_logged,
        as_logged.scaled("effort_factor", (1,), -1.0),
        as_logged.scaled("position_factor", (4,), -1.0),
        replace(as_logged, effort_order=(0, 4, 2, 3, 1, 5)),
        replace(as_logged, position_order=(0, 4, 2, 3, 1, 5), zero=(0.0, 0.3, 0.0, 0.0, 0.0, 0.0)),
        replace(as_logged, gravity=(0.0, -9.81, 0.0), stretch=1.25, delay=0.02),
    ]
    for item in tried:
        one, other = (trials.score(item) for trials in (apart, whole))
        assert one.left == pytest.approx(other.left, rel=1e-3)
        assert (one.impossible == other.impossible).all()
        left = [UrdfBodies(trials, as_logged).left(item) for trials in (apart, whole)]
        assert left[0] == pytest.approx(left[1], rel=1e-3)


def test_efforts_of_two_limbs_are_exchanged() -> None:
    robot = two_arms()
    recording = log_of(robot, seed=4)
    (found,) = told([replace(recording, effort=recording.effort[:, [0, 4, 2, 3, 1, 5]])], robot)
    assert {item.id for item in found} == {"joints-exchanged"}
    assert found[0].joints == ("j2", "right_j2")


def test_a_cause_that_the_urdf_settles_has_its_own_gain(monkeypatch: pytest.MonkeyPatch) -> None:
    t, q, v, a = fourier(ARM.n, 10.0, 100.0, 3)
    tau = torques(ARM, Truth.of(ARM.n), q, v, a)
    q[:, 2] = q[:, 1]
    made = condition(Recording("log", ARM.joints, t, q, effort=tau), ARM)
    trials, as_logged = LogGroup(ARM, [(made.segments, made.cutoff)]).trials(), Interpretation.as_logged(ARM.n)
    monkeypatch.setattr(UrdfBodies, "left", lambda *_: np.ones(4))
    best = best_step(trials, as_logged, range(ARM.n))
    rival = best.rivals[-1]
    monkeypatch.setattr(UrdfBodies, "left", lambda _, item, __: np.full(4, 0.1 if item == rival.interpretation else 1.0))
    settled = best_step(trials, as_logged, range(ARM.n))
    assert (settled.found.interpretation, settled.rivals) == (rival.interpretation, ())
    assert settled.gain == settled.before.score - trials.score(rival.interpretation).score < best.gain
    assert settled.certainty < 1 / (1 + remaining_doubt(best.gain))


@pytest.mark.parametrize("name", ["emps", "puma560"])
def test_bundled_robots_raise_no_doubt(name: str) -> None:
    robot = Robot.from_urdf(robot_path(name))
    recording = log_of(robot, speed=0.5)
    if name == "emps":
        recording = replace(recording, position=0.1 * recording.position)  # then its mass is ten times as large
    assert {item.id for item in found_in(recording, robot=robot)[0]} <= {"position-beyond-limit"}


def test_a_wrong_clock_is_told_with_what_looks_like_it() -> None:
    recording = log_of(ARM, seed=2, noise=0.01)
    weight = rnea(ARM.model, recording.position, *np.zeros((2, *recording.position.shape)))
    larger = Robot.from_urdf(URDF)
    for k in range(1, 5):
        larger.model.jointPlacements[k].translation *= 1.5
    for log, robot, words, part in (
        (replace(recording, effort=recording.effort - 0.4 * weight), ARM, r"contain only ([0-9.]+) % of the gravity", 60.0),
        (recording, larger, r"lengths are ([0-9.]+) times", 1.5),
    ):
        found = next(item for item in doubts(log, robot) if item.id == "time-scale")
        assert "all lengths in the URDF" in found.message
        told = re.search(words, str(found.remedy))
        assert told is not None
        assert float(told[1]) == pytest.approx(part, rel=0.1)


def test_columns_that_are_all_shifted_are_named_in_their_order() -> None:
    log, order = log_of(ARM, seed=1), np.roll(np.arange(4), 1)
    (found,) = doubts(replace(log, position=log.position[:, order], effort=log.effort[:, order]))
    assert (found.id, found.severity) == ("joints-exchanged", "refused")
    assert ", ".join(ARM.joints[j] for j in order) in found.message


def test_short_logs_at_a_low_rate_are_examined_together() -> None:
    """Each has fewer rows than was asked for at any rate: no fault of them was looked for, whatever it was."""
    robot = Robot.from_urdf(arm_urdf("zyyxyx"))
    logs = [log_of(robot, seed=seed, seconds=9.0).take(np.arange(1800) % 10 == 0) for seed in range(3)]
    wrong = [replace(log, position=log.position * [1, 1, -1, 1, 1, 1]) for log in logs]
    found = [{(item.id, item.joint) for item in own if item.severity == "refused"} for own in found_in(*wrong, robot=robot)]
    assert found == [{("position-sign", "j3")}] * 3


def _hose(q: Array, place: Array, stiffness: float) -> Array:
    """Torques against a spring from the flange to a point in the base's frame [N·m]."""
    data, out = OTHER.model.createData(), []
    at = pin.SE3(np.eye(3), np.array([0.0, 0.0, 0.1]))
    for row in q:
        pin.computeJointJacobians(OTHER.model, data, row)
        J = pin.getFrameJacobian(OTHER.model, data, OTHER.n, at, pin.LOCAL_WORLD_ALIGNED)
        out.append(stiffness * J[:3].T @ ((data.oMi[OTHER.n] * at).translation - place))
    return np.array(out)


def _with_play(q: Array, size: float) -> Array:
    out, at = np.array(q), q[0]
    for k, x in enumerate(q):
        out[k] = at = np.clip(at, x - size / 2, x + size / 2)
    return out


def _late(t: Array, x: Array, joint: int, seconds: float) -> Array:
    return np.where(AT[joint], np.interp(t - seconds, t, x[:, joint])[:, None], x)


def _most(tau: Array) -> Array:
    return np.abs(tau).max(axis=0)


def _saturated(tau: Array) -> Array:
    return 0.8 * _most(tau) * np.tanh(tau / (0.8 * _most(tau)))


#: Finding, its joint and size; what makes the logged positions and efforts of the times, positions and efforts of a log.
SMALL: list[tuple[str, int | None, float | None, Callable[[Array, Array, Array], tuple[Array, Array]]]] = [
    ("position-zero", 1, -0.04, lambda t, q, tau: (q + 0.04 * AT[1], tau)),
    ("position-nonlinear", 1, 0.03, lambda t, q, tau: (q + 0.03 * AT[1] * np.sin(2 * q + 0.5), tau)),
    ("position-play", 1, 0.03, lambda t, q, tau: (np.where(AT[1], _with_play(q, 0.03), q), tau)),
    # an encoder before a gear that gives way
    ("position-compliance", 1, 0.01, lambda t, q, tau: (q + 0.01 * AT[1] * gaussian_filter1d(tau / tau.std(0), 5, 0), tau)),
    ("position-late", 2, -0.05, lambda t, q, tau: (_late(t, q, 2, -0.05), tau)),
    ("joint-origin", 2, 0.15, lambda t, q, tau: (q, tau)),
    ("joint-axis", 1, 0.2, lambda t, q, tau: (q, tau)),
    ("effort-crosstalk", 3, None, lambda t, q, tau: (q, tau + 0.02 * AT[3] * tau[:, [1]])),
    ("effort-scale", 2, 1.12, lambda t, q, tau: (q, tau * (1 + 0.12 * AT[2]))),
    (
        "effort-saturates",
        1,
        None,
        lambda t, q, tau: (q, np.where(AT[1], _saturated(tau), tau)),
    ),
    ("effort-saturates", None, 0.12, lambda t, q, tau: (q, tau - 0.12 * tau**3 / _most(tau) ** 2)),
    ("effort-asymmetric", 2, None, lambda t, q, tau: (q, tau * (1 + 0.1 * AT[2] * np.sign(tau)))),
    ("effort-progressive", 2, None, lambda t, q, tau: (q, tau * (1 + 0.2 * AT[2] * np.abs(tau) / _most(tau)))),
    ("contact-spring", None, None, lambda t, q, tau: (q, tau + _hose(q, np.array([0.5, 0.2, 1.0]), 30.0))),
    ("effort-delay", 2, 0.015, lambda t, q, tau: (q, _late(t, tau, 2, 0.015))),
    # gravity subtracted, or added, by a URDF that is wrong by a fifth, or lacks a tool
    ("effort-without-gravity", None, None, lambda t, q, tau: (q, tau - rnea(OTHER.model, q, 0 * q, 0 * q))),
    ("effort-without-gravity", None, -0.35, lambda t, q, tau: (q, tau + 0.35 * rnea(OTHER.model, q, 0 * q, 0 * q))),
    # of a gear, so that efforts made of currents have it as well
    ("position-scale", 2, -0.15, lambda t, q, tau: (q - 0.15 * AT[2] * (q - 0.3), tau / (1 - 0.15 * AT[2]))),
]


@pytest.mark.parametrize(("id", "joint", "size", "logged"), SMALL)
def test_small_faults_are_named_with_their_size(id: str, joint: int | None, size: float | None, logged: Callable) -> None:
    real = Robot.from_urdf(arm_urdf("zyxy"))
    if id == "effort-without-gravity":
        for k, share in enumerate((1.2, 0.8, 1.2, 0.8) if size is None else (1.0, 1.0, 1.0, 1.3), 1):
            body = real.model.inertias[k]
            real.model.inertias[k] = pin.Inertia(share * body.mass, body.lever, body.inertia)
    elif id in ("joint-origin", "joint-axis"):
        twist = size * np.eye(6)[1 if id == "joint-origin" else 3]
        real.model.jointPlacements[joint + 1] = real.model.jointPlacements[joint + 1] * pin.exp6(twist)
    log = log_of(real, seed=1, noise=0.01)
    position, effort = logged(log.time, log.position, log.effort)
    found = doubts(replace(log, position=position, effort=effort), OTHER)
    named = next(item for item in found if item.id == id)
    assert named.joint == (None if joint is None else OTHER.joints[joint])
    if size is not None:
        assert named.size == pytest.approx(size, rel=0.03 if id == "effort-scale" else 0.4)
        assert found == [named]
    assert named.severity == ("refused" if id == "effort-without-gravity" and size is None else "warning")


def test_positions_in_another_unit_than_described_are_named() -> None:
    """A slide in metres that is described as millimetres."""
    text = arm_urdf("xzyx").replace('"2.6"', '"6.2"').replace('"-2.6"', '"-6.2"')
    text = text.replace('<joint name="j1" type="revolute">', '<joint name="j1" type="prismatic">')
    robot = Robot.from_urdf(text)
    recording = log_of(robot, seed=1)
    position = np.where(robot.prismatic, 1e-3, 1.0) * recording.position
    (found,) = (x for x in found_in(replace(recording, position=position), robot=robot)[0] if x.severity == "refused")
    assert found.id == "position-unit"
    assert "position: m" in str(found.remedy)


def test_a_small_motion_is_not_taken_for_another_unit() -> None:
    t, q, v, a = fourier(OTHER.n, 20.0, 200.0, 3, amplitude=0.02)
    log = recorded(OTHER, t, q, torques(OTHER, Truth.of(OTHER.n), q, v, a), noise=0.03, seed=3)
    assert "position-unit" not in [item.id for item in found_in(log, robot=OTHER)[0]]


def test_a_fault_that_is_not_significant_is_not_reported() -> None:
    """A zero that is wrong by 0.035 rad cannot be named in this noise."""
    log = log_of(OTHER, seed=5, noise=0.08)
    assert doubts(replace(log, position=log.position + 0.035 * AT[1]), OTHER) == []


def _moving_more(seed: int) -> Recording:
    """A log whose motion is three times as large in its second half."""
    t, rng = np.arange(0.0, 24.0, 0.005), np.random.default_rng(seed)
    size = np.convolve(np.pad(np.where(t > 12.0, 1.0, 0.35), 300, mode="edge"), np.hanning(601) / 300.0, "valid")
    q = np.zeros((len(t), ARM.n))
    for j in range(ARM.n):
        q[:, j] = size * sum(
            rng.uniform(0.3, 1) * np.sin(2 * np.pi * f * t + rng.uniform(0, 6)) for f in rng.uniform(0.1, 0.6, 5)
        )
    v = np.gradient(q, t, axis=0)
    return recorded(ARM, t, q, torques(ARM, Truth.of(ARM.n), q, v, np.gradient(v, t, axis=0)), noise=0.03, seed=rng)


@pytest.mark.parametrize(("factor", "ids"), [(1.0, []), (1.3, ["position-scale"])])
def test_a_lasting_fault_in_a_motion_that_grows_is_no_change_along_the_log(factor: float, ids: list[str]) -> None:
    """It is felt more where the motion is large."""
    log = _moving_more(0)
    assert [item.id for item in doubts(replace(log, position=log.position * [1, 1, factor, 1]))] == ids


def test_swapped_efforts_are_named() -> None:
    recording = log_of(ARM)
    found = doubts(replace(recording, effort=np.asarray(recording.effort)[:, [0, 2, 3, 1]]))
    assert {item.id for item in found} == {"joints-exchanged"}
    assert len(found) == 2
    assert all("log.columns.effort" in str(item.remedy) for item in found)


def test_amperes_are_told_of_all_joints_at_once_before_one_joint_that_has_another_torque_constant() -> None:
    log, constants = log_of(ARM), np.array([10.0, 10.0, 4.0, 10.0])
    (first, *_) = doubts(replace(log, effort=log.effort / constants))
    assert (first.id, first.joint, first.severity) == ("effort-scale", None, "refused")
    assert first.remedy is not None
    assert list(first.remedy.settings["drive.gain"]["multiply"].values()) == pytest.approx(constants, rel=0.3)


def test_a_base_that_leans_is_named_with_its_direction() -> None:
    lean, side = np.radians(4.0), 4.0
    gravity = 9.81 * np.array([np.sin(lean) * np.cos(side), np.sin(lean) * np.sin(side), -np.cos(lean)])
    (found,) = doubts(log_of(Robot.from_urdf(URDF, gravity=tuple(gravity.tolist())), seconds=40.0))
    assert found.id == "gravity-direction"
    told = np.array(re.search(r"gravity: \[(.*?)\]", str(found.remedy))[1].split(","), dtype=float)  # type: ignore[index]
    assert np.degrees(np.arccos(told @ gravity / np.linalg.norm(told) / np.linalg.norm(gravity))) < 1.0


def test_a_strong_spring_is_not_taken_for_another_gravity() -> None:
    recording = log_of(ARM)
    torque = np.zeros_like(recording.position)
    torque[:, 2] = 2.0 * recording.effort.std(axis=0)[2] * (recording.position[:, 2] - 0.3)
    found = doubts(replace(recording, effort=recording.effort + torque))
    assert all(item.severity != "refused" for item in found)
    assert all(item.id == "spring" or "spring" in item.candidates for item in found)


def test_friction_of_a_motor_that_turns_with_two_joints_raises_no_doubt() -> None:
    """Its friction reverses where neither joint does."""
    recording, A = log_of(ARM, noise=0.01, seconds=10.0), np.eye(ARM.n)
    A[3, 2] = 1.0
    rate = np.gradient(recording.position, recording.time, axis=0) @ A.T
    effort = np.asarray(recording.effort) + np.outer(4.0 * np.tanh(rate[:, 3] / 0.02) + 3.0 * rate[:, 3], A[3])
    coupled = replace(recording, effort=effort)
    assert doubts(coupled, drive=Drive.build(ARM.n, reduction=A)) == []
    assert doubts(coupled) != []


def test_an_offset_that_drifts_is_named() -> None:
    recording = log_of(ARM)
    effort = np.array(recording.effort)
    effort[:, 1] += 0.3 * effort[:, 1].std() * np.linspace(0, 1, len(recording))
    (found,) = doubts(replace(recording, effort=effort))
    assert (found.id, found.joint, found.severity) == ("effort-drift", ARM.joints[1], "warning")


@pytest.mark.parametrize(("what", "joint"), [("brake", 0), ("offset", 2)])
def test_a_part_in_which_one_joint_drags_or_is_offset_is_named_with_its_ends(what: str, joint: int) -> None:
    recording = log_of(ARM, seed=joint, noise=0.1)
    effort, along = np.array(recording.effort), np.linspace(0, 1, len(recording))
    part = (along > 0.25) & (along < 0.55)
    moves = np.sign(np.gradient(recording.position[:, joint])) if what == "brake" else 1.0
    effort[:, joint] += 0.5 * effort[:, joint].std() * part * moves
    (found,) = doubts(replace(recording, effort=effort))
    assert (found.id, found.joint, found.severity) == ("effort-drift", ARM.joints[joint], "warning")
    ends = [float(x) / 100 for x in re.findall(r"from (\d+) to (\d+) %", found.message)[0]]
    assert ends == pytest.approx([0.25, 0.55], abs=0.08)


@pytest.mark.parametrize(("when", "size"), [("drift", 0.2), ("window", 0.15)])
def test_what_happens_in_all_logs_alike_is_named_where_no_log_tells_it_alone(when: str, size: float) -> None:
    sound = [log_of(ARM, seed=k, noise=0.3, seconds=10.0) for k in range(4)]

    def changing(log: Recording) -> Recording:
        effort, along = np.array(log.effort), np.linspace(0, 1, len(log))[:, None]
        acts = along if when == "drift" else (along > 0.4) & (along < 0.6)
        return replace(log, effort=effort + size * acts * effort.std(axis=0) * [0, 0, 1, 0])

    def changes(*logs: Recording) -> list[list[str]]:
        return [[item.id for item in found if item.id in CHANGES] for found in told(logs)]

    logs = [changing(log) for log in sound]
    assert changes(*sound) == [changes(log)[0] for log in logs] == [[]] * 4
    assert changes(*logs) == [["effort-drift"]] * 4


@pytest.mark.parametrize("what", ["scale", "friction"])
def test_a_small_common_drift_of_all_scales_is_named_and_friction_that_falls_is_not(what: str) -> None:
    """8 % of the efforts from start to end, with 5 % of noise; gears that warm up lose 10 % of their friction."""
    full = Truth.of(ARM.n)
    log, cold = (log_of(ARM, seed=5, noise=noise) for noise in (0.05, 0.0))
    free = log_of(ARM, seed=5, noise=0.0, truth=replace(full, viscous=0 * full.viscous, coulomb=0 * full.coulomb))
    along = np.linspace(0, 1, len(log))[:, None]
    own = {"scale": 0.08 * log.effort, "friction": -0.1 * (cold.effort - free.effort)}[what]
    found = [item for item in doubts(replace(log, effort=log.effort + along * own)) if item.id in CHANGES]
    assert [(item.id, item.message.split(" drifts")[0]) for item in found] == (
        [("effort-drift", "the scale of all efforts")] if what == "scale" else []
    )


@pytest.mark.parametrize("what", ["scale", "friction"])
def test_a_log_with_a_slightly_different_scale_of_all_efforts_differs_and_not_one_with_less_friction(what: str) -> None:
    """6 % of the efforts, or 10 % of the friction, of one log of three, with 10 % of noise."""
    logs = [log_of(ARM, seed=seed, noise=0.1, seconds=10.0) for seed in (5, 6, 7)]
    full = Truth.of(ARM.n)
    free = replace(full, viscous=0 * full.viscous, coulomb=0 * full.coulomb)
    drag = np.subtract(*(log_of(ARM, seed=6, noise=0.0, seconds=10.0, truth=truth).effort for truth in (full, free)))
    own = 0.06 * logs[1].effort if what == "scale" else -0.1 * drag
    logs[1] = replace(logs[1], effort=logs[1].effort + own)
    found = [{item.id for item in own if "the scale of all efforts" in item.message} for own in found_in(*logs, robot=ARM)]
    assert found == [set(), {"log-differs"} if what == "scale" else set(), set()]


@pytest.mark.parametrize("share", [0.0, 0.3])
def test_efforts_partly_computed_from_the_positions_contain_their_noise(share: float) -> None:
    heavier = Robot.from_urdf(re.sub(r'mass value="8.0"', 'mass value="10.0"', URDF))
    recording = log_of(heavier, seed=2, noise=0.01)
    v = np.gradient(recording.position, recording.time, axis=0)
    computed = rnea(ARM.model, recording.position, v, np.gradient(v, recording.time, axis=0))
    mixed = replace(recording, effort=(1 - share) * np.asarray(recording.effort) + share * computed)
    found = [item for item in found_in(mixed, robot=ARM)[0] if item.id == "effort-commanded"]
    assert len(found) == (share > 0)
    said = [float(part) for item in found for part in re.findall(r"about (\d+) %", item.message)]
    assert said == pytest.approx([100 * share] * len(found), abs=3)


def test_a_controller_that_answers_the_steps_of_its_encoders_has_not_computed_its_efforts() -> None:
    """Near a quarter of the rate, gains on position and speed answer rounding errors much as inertia does."""
    t, q, v, a = fourier(ARM.n, 20.0, 100.0, 4)
    masses = np.array([pin.crba(ARM.model, ARM.model.createData(), x) for x in q[::100]])
    inertia = np.sum(masses**2, axis=2).mean(axis=0) / np.diagonal(masses, axis1=1, axis2=2).mean(axis=0)
    tau = torques(ARM, Truth.of(ARM.n), q, v, a)
    logged = 3e-4 * np.round(q / 3e-4)
    errors = logged - q
    tau -= inertia * (4000.0 * errors + 10.0 * np.gradient(errors, t, axis=0))
    (found,) = found_in(Recording("log", ARM.joints, t, logged, effort=tau), robot=ARM)
    assert "effort-commanded" not in {item.id for item in found}


def test_short_moves_are_no_noise_that_was_computed_from_the_positions() -> None:
    """Motors do respond to the beginning and end of a move, which are in some rows; noise is in all of them."""
    t, q, rng = np.arange(6000) / 100.0, np.zeros((6000, ARM.n)), np.random.default_rng(0)
    for k in range(20):  # each joint in turn, forwards and back
        x = np.clip((t - 3 * k - 0.2) / 0.3, 0, 1)
        q[:, k % ARM.n] += 0.4 * (-1.0) ** (k // ARM.n) * x**3 * (10 - 15 * x + 6 * x**2)
    v = np.gradient(q, t, axis=0)
    tau = 0.6 * torques(ARM, Truth(*np.zeros((4, ARM.n))), q, v, np.gradient(v, t, axis=0))
    tau += 0.002 * tau.std(axis=0) * rng.standard_normal(q.shape)
    log = Recording("log", ARM.joints, t, q + 1e-6 * rng.standard_normal(q.shape), effort=tau)
    assert "effort-commanded" not in {item.id for item in found_in(log, robot=ARM)[0]}


def test_efforts_that_the_urdf_and_friction_explain_are_computed_where_they_have_no_noise() -> None:
    """After identification the URDF explains all but friction and noise; a controller's feedforward has friction and rotors."""
    t, q, v, a = fourier(ARM.n, 20.0, 200.0, 0)
    rigid = rnea(ARM.model, ARM.configuration(q), v, a)
    size, rng = rigid.std(axis=0), np.random.default_rng(0)
    for noise, friction, found in ((0.01, 0.03, []), (0.01, 0.2, []), (0.0, 0.2, ["effort-commanded"])):
        tau = rigid + 0.5 * size * a / a.std(axis=0) + friction * size * np.tanh(v / 0.02)
        tau += noise * size * rng.standard_normal(q.shape)
        log = Recording("log", ARM.joints, t, q + 1e-5 * rng.standard_normal(q.shape), effort=tau)
        assert [item.id for item in found_in(log, robot=ARM)[0]] == found


def test_a_urdf_with_other_masses_makes_no_sound_log_doubtful() -> None:
    heavy = URDF
    for k, factor in enumerate((3.0, 0.4, 2.0, 0.5), 1):
        heavy = heavy.replace(f'<mass value="{8.0 / k}"/>', f'<mass value="{factor * 8.0 / k}"/>')
    assert heavy != URDF
    assert doubts(log_of(ARM), Robot.from_urdf(heavy)) == []


def test_a_joint_that_carries_weight_alone_tells_no_direction_of_gravity() -> None:
    """Its centre of mass turned about the axis is the same: a URDF whose centre of mass is off is no other mounting."""
    true = arm_urdf("y", fixed_tip=False).replace('<mass value="8.0"/>', '<mass value="80"/>')
    turned = true.replace('xyz="0.02 -0.01 ', 'xyz="0.03 -0.01 ')
    assert turned != true
    assert doubts(log_of(Robot.from_urdf(true), noise=0.08, seed=1), Robot.from_urdf(turned)) == []


@pytest.mark.parametrize(
    ("factor", "candidates"),
    [(-1.0, [("axis-sign", "gravity-direction")]), (0.55, [("effort-scale",)]), (1.25, []), (2.5, [("effort-scale",)])],
)
def test_a_slide_carries_its_weight_up_to_usual_errors_of_the_urdf(factor: float, candidates: list) -> None:
    """Turned over, it has the same inertia and friction, and is reversed and not scaled; a counterweight changes what it
    carries, too. An offset would absorb the rest, and leave a GOOD model with eight times the error."""
    slide = Robot.from_urdf(arm_urdf("z", kind="prismatic", fixed_tip=False))
    log = log_of(slide, seed=1)
    if factor < 0:
        log = replace(log, position=-log.position, effort=-np.asarray(log.effort))
    else:
        log = replace(log, effort=log.effort + (factor - 1) * log.effort.mean(axis=0))
    found = doubts(log, slide)
    assert [(item.candidates, item.severity) for item in found] == [(ids, "warning") for ids in candidates]
    assert factor != 0.55 or found[0].size == pytest.approx(factor, abs=0.05)


def test_a_scale_between_the_candidates_is_named() -> None:
    """The last joint's own effort is explained with any scale near by; of the others, with the right one alone."""
    log, factor = log_of(ARM, seed=1), 0.18
    (found,) = doubts(replace(log, effort=log.effort * np.array([1.0, 1.0, 1.0, factor])))
    assert (found.id, found.joint) == ("effort-scale", ARM.joints[3])
    assert found.size == pytest.approx(factor, rel=0.1)


def test_what_no_joint_tells_of_anothers_scale_is_said() -> None:
    report = examine_logs([log_of(ARM, noise=0.1)], ARM, Drive.build(ARM.n), SignalConfig())[0]
    (found,) = (item for item in report.findings if item.id == "effort-scale-open")
    assert (found.severity, found.joint) == ("info", ARM.joints[-1])
    assert f"{ARM.joints[-1]} (0.75 to 1.33)" in found.message


def test_another_scale_of_a_light_wrist_than_of_the_arm_is_open() -> None:
    """A wrist whose weights the forearm's own can stand for: its three efforts determine each other's scale, not the arm's."""
    robot = Robot.from_urdf(arm_urdf("zyyyxy"))
    log = log_of(robot, noise=0.1)
    log = replace(log, effort=log.effort * np.array([1.43] * 3 + [1.0] * 3))
    report = examine_logs([log], robot, Drive.build(robot.n), SignalConfig())[0]
    said = [item.message for item in report.findings if item.id == "effort-scale-open"]
    assert any("j4 + j5 + j6 (1 to 1.41)" in message for message in said)


@pytest.mark.parametrize("upright", [True, False])
def test_a_clock_that_no_gravity_torque_shows_is_said(upright: bool) -> None:
    """One axis along gravity: another clock is another inertia. The weights of an arm tell its clock."""
    robot = Robot.from_urdf(arm_urdf("z", fixed_tip=False)) if upright else ARM
    report = examine_logs([log_of(robot, noise=0.05, seed=2)], robot, Drive.build(robot.n), SignalConfig())[0]
    assert ("time-scale-open" in {item.id for item in report.findings}) == upright


def test_a_push_that_the_fit_of_a_short_log_smears_over_all_is_contact() -> None:
    recording = log_of(ARM, seconds=13.0, noise=0.05)
    part = slice(40 * len(recording) // 100, 53 * len(recording) // 100)
    pushed = np.array(recording.effort)
    pushed[part] += 0.5 * pushed.std(axis=0)
    (found,) = doubts(replace(recording, effort=pushed))
    assert (found.id, found.severity) == ("contact", "warning")
    assert "from 40 to 53 %" in found.message
    short = replace(recording, effort=pushed).take(slice(300, 650))  # the same push where joints hardly turn back
    assert doubts(short) == []


def test_few_samples_tell_a_large_fault_and_no_small_one() -> None:
    recording = log_of(ARM, seconds=6.0, seed=1).take(slice(0, None, 10))
    assert doubts(recording) == []
    assert [item.id for item in doubts(replace(recording, effort=-np.asarray(recording.effort)))] == ["effort-sign"]


def test_a_short_motion_names_no_cause() -> None:
    """Its parameters fit almost any torque: the same fault is named with more of it, and stays a doubt here."""
    recording = log_of(ARM, seconds=12.0, seed=3)
    effort = np.asarray(recording.effort)[:, [0, 3, 2, 1]]
    short = doubts(replace(recording, effort=effort).take(slice(0, 800)))
    assert {(item.id, item.severity) for item in short} == {("physics-undecided", "warning")}
    assert "joints-exchanged" in short[0].candidates
    assert str(short[0].remedy).startswith("record 5 s or more; if it is found there too, ")
    assert doubts(recording.take(slice(0, 800))) == []


def test_doubts_are_in_the_summary_once_and_what_is_unseen_is_no_number() -> None:
    logs = []
    for seed in range(3):
        recording = log_of(ARM, seed=seed)
        still = np.array(recording.position)
        still[:, 2] = 0.1
        logs.append(replace(recording, name=f"log{seed}", position=still, effort=recording.effort * [1, 1, 1, -1]))
    project = parse_project({"model": {"friction": ["viscous", "coulomb"]}})
    ident = identify(project.build_model(ARM), logs, project=project, force=True)
    text = ident.summary(verbose=True)
    assert "warning in log0 and 2 more: j3: the joint does not move" in text
    row = next(line for line in text.splitlines() if line.startswith("  j3 "))
    assert row.split()[1:] == ["unseen", "unseen", "unseen"]


def test_units_of_mixed_joints_are_all_named() -> None:
    mixed = URDF.replace('<joint name="j3" type="revolute">', '<joint name="j3" type="prismatic">')
    robot = Robot.from_urdf(mixed)
    project = parse_project({"model": {"friction": ["viscous", "coulomb"]}})
    ident = identify(project.build_model(robot), [log_of(robot)], project=project)
    assert "Ia [kg·m² or kg]  Fv [N·m·s/rad or N·s/m]  Fc [N·m or N]" in ident.summary(verbose=True)


@pytest.mark.parametrize(("speed", "severities"), [(1.0, {"refused"}), (0.15, set())])
def test_only_a_motion_that_turns_back_refuses_a_log(speed: float, severities: set[str]) -> None:
    """Ten seconds of a slow motion are one way for most joints: a reversed effort is then another weight."""
    recording = log_of(ARM, seconds=10.0, speed=speed)
    effort = np.array(recording.effort)
    effort[:, 1] *= -1.0
    assert {item.severity for item in doubts(replace(recording, effort=effort))} == severities


def test_a_joint_whose_motors_turn_another_one_too_raises_no_doubt() -> None:
    """It has no friction of its own, and that of the motor mimics friction that drives it, or an effort that is late."""
    A = np.eye(ARM.n)
    A[3, 2] = -1.0
    bare = Truth(*(np.where(np.arange(ARM.n) == 3, 0.0, x) for x in vars(Truth.of(ARM.n)).values()))
    recording = log_of(ARM, seconds=8.0, noise=0.01, truth=bare)
    turned = recording.position @ A[3]
    rate = np.gradient(turned, recording.time)
    friction = np.tanh(rate / 0.02) + rate + 0.7 * bristles(turned, 0.002)
    effort = np.asarray(recording.effort) + np.outer(2.0 * recording.effort.std(axis=0)[3] * friction, A[3])
    assert doubts(replace(recording, effort=effort), drive=Drive.build(ARM.n, reduction=A)) == []


def test_friction_that_gives_before_it_slips_is_not_taken_for_play() -> None:
    t, q, v, a = fourier(ARM.n, 20.0, 200.0, 0, amplitude=0.15)
    effort = torques(ARM, Truth.of(ARM.n), q, v, a)
    effort[:, 3] += 3.0 * bristles(q[:, 3], 0.003)
    assert doubts(Recording("log", ARM.joints, t, q, effort=effort)) == []


def test_friction_that_grows_with_the_load_of_a_joint_that_moves_one_way_is_not_an_asymmetry() -> None:
    t, q, v, a = fourier(ARM.n, 20.0, 200.0, 0)
    q[:, 2], v[:, 2], a[:, 2] = 0.15 * t, 0.15, 0.0
    effort = torques(ARM, Truth.of(ARM.n), q, v, a)
    effort[:, 2] += 0.1 * np.abs(effort[:, 2])
    assert doubts(Recording("log", ARM.joints, t, q, effort=effort)) == []


def test_friction_that_grows_with_the_load_is_neither_a_fault_nor_a_drift() -> None:
    t, q, v, a = fourier(ARM.n, 20.0, 200.0, 9)
    load = np.abs(torques(ARM, Truth(*np.zeros((4, ARM.n))), q, v, a))
    effort = torques(ARM, Truth.of(ARM.n), q, v, a) + 0.3 * load * np.tanh(v / 0.01)
    assert doubts(recorded(ARM, t, q, effort, noise=0.005, seed=9)) == []


def test_logs_in_which_each_joint_moves_one_way_do_not_contradict_each_other() -> None:
    """Friction that Coulomb, viscous and offset approximate differs between directions and speeds, not between logs."""
    rng = np.random.default_rng(0)
    t = np.arange(0, 8, 0.005)

    def stage(begin: float) -> Array:
        x = np.clip((t - begin) / 2.4, 0, 1)
        return np.asarray(x**3 * (10 - 15 * x + 6 * x**2))

    def one_way(name: str) -> Recording:
        q = np.stack([stage(begin) for begin in (0.0, 2.7, 5.3)], axis=1) @ rng.dirichlet([3] * 3, ARM.n).T
        size = rng.uniform(1.0, 2.5, ARM.n) * rng.choice([-1, 1], ARM.n)
        q = q * size - size / 2 + rng.uniform(-0.2, 0.2, ARM.n)
        v, a = np.gradient(q, t, axis=0), np.gradient(np.gradient(q, t, axis=0), t, axis=0)
        tau, sign = torques(ARM, Truth.of(ARM.n), q, v, a), np.tanh(v / 0.01)
        tau += 4.0 * np.maximum(sign, 0) + np.tanh(v / 0.3)
        return Recording(name, ARM.joints, t, q + 1e-5 * rng.standard_normal(q.shape), effort=tau)

    refused = {item.id for found in told([one_way("a"), one_way("b")]) for item in found if item.severity == "refused"}
    assert not refused & {"log-differs", "logs-disagree"}


def test_a_sound_cycle_of_three_poses_is_not_refused_for_friction_outside_the_laws() -> None:
    """Friction that builds up over some travel, and falls with speed: with few reversals it resembles a tilted base."""
    rng, t = np.random.default_rng(6), np.arange(0.0, 36.0, 0.01)
    poses, leg, x = rng.uniform(-1.2, 1.2, (3, ARM.n)), (t // 1.2).astype(int), (t % 1.2 / 1.2)[:, None]
    q = poses[leg % 3] + (poses[(leg + 1) % 3] - poses[leg % 3]) * x**3 * (10 - 15 * x + 6 * x**2)
    v = np.gradient(q, t, axis=0)
    tau, built = torques(ARM, Truth.of(ARM.n), q, v, np.gradient(v, t, axis=0)), np.zeros_like(q)
    for k in range(1, len(q)):
        built[k] = np.clip(built[k - 1] + (q[k] - q[k - 1]) / 0.05, -1, 1)
    tau += tau.std(axis=0) * (0.15 * built + 0.3 * np.tanh(v / 0.01) * np.abs(v) * np.exp(-np.abs(v)))
    sound = recorded(ARM, t, q, tau, seed=6)
    assert doubts(sound) == []
    assert "effort-sign" in {item.id for item in doubts(replace(sound, effort=sound.effort * [1, -1, 1, 1]))}


def test_what_friction_holds_at_rest_is_no_drift() -> None:
    """Joints move one after the other, and hold at rest what friction leaves of their last motion."""
    rng, t = np.random.default_rng(0), np.arange(0, 4.0 * ARM.n, 0.005)
    q, tau_rest = np.tile(rng.uniform(-1, 1, ARM.n), (len(t), 1)), np.zeros((len(t), ARM.n))
    for k, j in enumerate(rng.permutation(ARM.n)):
        x = np.clip(t / 4.0 - k, 0, 1)
        q[:, j] += np.sin(6 * np.pi * x) * np.sin(np.pi * x) ** 3
        for some in np.split(np.arange(len(t)), np.flatnonzero(np.diff((x > 0) & (x < 1))) + 1):
            if np.ptp(q[some, j]) == 0:
                tau_rest[some, j] = 4 * rng.uniform(-1, 1)
    v = np.gradient(q, t, axis=0)
    tau = torques(ARM, Truth.of(ARM.n), q, v, np.gradient(v, t, axis=0)) + tau_rest
    assert doubts(recorded(ARM, t, q, tau, seed=rng)) == []


def test_an_effort_that_one_log_alone_holds_behind_a_filter_is_named() -> None:
    """No other parameters explain it, and over all logs it is little."""
    logs, share = three(9.0), 1 - np.exp(-2 * np.pi * 1.3 / 200.0)
    slow = np.array(logs[1].effort)
    for k in range(1, len(slow)):
        slow[k, 3] = slow[k - 1, 3] + share * (slow[k, 3] - slow[k - 1, 3])
    assert told(logs) == [[], [], []]
    first, (named,), last = told([logs[0], replace(logs[1], effort=slow), logs[2]])
    assert first == last == []
    assert (named.id, named.joint) == ("effort-delay", ARM.joints[3])


@pytest.mark.parametrize(
    ("zeros", "named", "size", "words"),
    [
        ((0, -0.03, 0), {1}, 0.03, "in this log, unlike the others"),
        ((0.04, -0.03, 0.01), {0, 1, 2}, 0.07, "another in each log"),
    ],
)
def test_a_zero_that_is_another_in_one_log_or_each_is_named_there(zeros: tuple, named: set, size: float, words: str) -> None:
    """With parameters of its own, a log would explain most of it as other centres of mass."""
    logs = [replace(log, position=log.position + zero * AT[1]) for log, zero in zip(three(8.0), zeros, strict=True)]
    found = [[item for item in own if item.id != "effort-scale-open"] for own in told(logs)]
    assert [[item.id for item in own] for own in found] == [["position-zero"] if k in named else [] for k in range(3)]
    first = found[min(named)][0]
    assert (first.joint, abs(first.size)) == (ARM.joints[1], pytest.approx(size, rel=0.1))
    assert words in first.message


def test_a_log_of_the_motor_side_without_gear_ratios_is_told() -> None:
    """A direct drive is possible; efforts that are a hundredth of the joints' are told by the URDF's weight as well."""
    log = log_of(ARM, seconds=8.0)
    motor = replace(log, effort=np.asarray(log.effort) / 100, effort_side="motor")
    geared = Drive.build(ARM.n, reduction=[100.0, 1.0, 100.0, 100.0])
    assert {item.id for item in found_in(motor, robot=ARM)[0]} == {"gears-missing", "effort-scale"}
    assert "gears-missing" not in {item.id for item in found_in(motor, robot=ARM, drive=geared)[0]}


def test_a_log_that_differs_in_everything_is_named_alone() -> None:
    """Its efforts were computed from a heavier URDF without friction, which may differ from log to log in sound robots."""
    logs = three(9.0)
    heavy = Robot.from_urdf(URDF.replace('<mass value="2.0"/>', '<mass value="8.0"/>'))
    computed = log_of(heavy, seed=1, seconds=9.0, truth=Truth(*np.zeros((4, ARM.n))), noise=0.01)
    logs[1] = replace(computed, name="run1")
    first, second, third = found_in(*logs, robot=ARM)
    assert first == third == []
    (finding,) = (item for item in second if item.id == "log-differs")
    assert finding.severity == "refused"
    ready = prepare_logs(logs, ARM, Drive.build(ARM.n), SignalConfig())
    with pytest.raises(QualityError, match=f"run1: .*{finding.joint}"):  # "most on this joint" alone would not tell which
        require_usable(logs, [log.report for log in with_contradictions(ready, ARM, SignalConfig(), None)])


def test_friction_does_not_drift_where_a_joint_moves_one_way() -> None:
    """Time is then a function of its position, and so is whatever else depends on it."""
    t = np.arange(0.0, 20.0, 0.005)
    _, q, v, a = fourier(ARM.n, 20.0, 200.0, 2)
    q[:, 3], v[:, 3], a[:, 3] = 0.2 * t + 0.1 * np.sin(t), 0.2 + 0.1 * np.cos(t), -0.1 * np.sin(t)
    tau = torques(ARM, Truth.of(ARM.n), q, v, a)
    tau[:, 3] += 0.4 * tau[:, 3].std() * (t / 20.0) ** 2
    assert doubts(recorded(ARM, t, q, tau)) == []


def test_a_motion_that_grows_faster_does_not_let_friction_drift() -> None:
    """A filter smears friction that turns round over more of a faster motion's speeds."""
    rng = np.random.default_rng(0)
    t = np.arange(0, 14.0, 0.01)
    low, high = rng.uniform(0.05, 0.15, ARM.n), rng.uniform(1.0, 1.8, ARM.n)
    f = low + (high - low) * t[:, None] / t[-1]
    phase = 2 * np.pi * (low * t[:, None] + (high - low) * t[:, None] ** 2 / 2 / t[-1]) + rng.uniform(0, 6, ARM.n)
    q = 1.0 / (2 * np.pi * np.hypot(f, 0.15)) * np.sin(phase)
    v = np.gradient(q, t, axis=0)
    tau = torques(ARM, Truth.of(ARM.n), q, v, np.gradient(v, t, axis=0))
    tau += 4.0 * np.tanh(v / 0.004)  # steeper than any law
    assert doubts(recorded(ARM, t, q, tau, seed=rng)) == []


def test_a_load_in_one_of_several_logs_is_named_there() -> None:
    loaded, logs = Robot.from_urdf(URDF.replace('<mass value="0.8"/>', '<mass value="2.5"/>')), three(9.0, noise=0.01)
    logs[1] = log_of(loaded, seed=1, seconds=9.0, noise=0.01)
    first, (found,), third = found_in(*logs, robot=ARM)
    assert first == third == []
    assert (found.id, found.severity, found.candidates) == ("log-differs", "refused", ("payload-changes",))
