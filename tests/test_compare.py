"""Has the robot changed? Simulated robots that have, and that have not."""

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from shutil import copytree

import numpy as np
import pinocchio as pin
import pytest
from commands import run
from conftest import arm_urdf
from loaded_arm import COM, INERTIA, MASS, motion, torque

from urdf_ident import DynamicModel, Identification, Recording, Robot, compare, identify, trend
from urdf_ident.comparison.pooling import pool
from urdf_ident.errors import EstimationError, FingerprintError, LimitError, LogError
from urdf_ident.excitation.sweeps import design_poses
from urdf_ident.linalg import Array
from urdf_ident.motion.trajectory import table_text
from urdf_ident.pipeline.fleet import robot_folders
from urdf_ident.statistics.fleet import deviations

pytestmark = pytest.mark.usefixtures("unexamined")

LAWS = ["viscous", "coulomb", "offset", "load_coulomb"]


def simulated(robot: Robot, seed: int, body: pin.Inertia | None = None, seconds: float = 12.0) -> Recording:
    """One motion measured again with other noise."""
    t, q, v, a = motion(robot.n, 0, seconds)
    tau = torque(robot, q, v, a, body) + 0.3 * np.random.default_rng(seed).standard_normal(q.shape)
    return Recording(f"log{seed}", robot.joints, t, q, effort=tau, sha256=f"log{seed}")


def learnt(robot: Robot, seed: int, body: pin.Inertia | None = None) -> Identification:
    return identify(DynamicModel(robot, friction=LAWS), [simulated(robot, seed, body)])


@pytest.fixture(scope="module")
def before(robot: Robot) -> Identification:
    return learnt(robot, 1)


def test_friction_of_a_joint_that_moved_one_way_is_not_compared(before: Identification) -> None:
    one_way = replace(before, evidence=replace(before.evidence, one_way=("j2",)))
    for pair in ((before, one_way), (one_way, before)):
        assert {item.where for item in compare(*pair).tests if item.kind != "inertia"} == {"j1", "j3"}


def scaled_friction(ident: Identification, factors: Sequence[float]) -> Identification:
    """The result with the friction of every joint times a factor, in both of its estimates."""
    theta, params = np.array(ident.theta), np.array(ident.fit.params)
    of_joint = dict(zip(ident.model.robot.joints, factors, strict=True))
    change = np.zeros(len(theta))
    for k, parameter in enumerate(ident.model.parameters[ident.model.n_inertial :], ident.model.n_inertial):
        if not parameter.rotor and not parameter.name.startswith("offset"):
            change[k] = of_joint[parameter.owner] - 1.0
    moved = ident.fit.base.of(change * theta)
    return replace(ident, theta=theta * (1 + change), fit=replace(ident.fit, params=params + moved))


def test_a_share_that_all_joints_have_in_common_is_no_change_of_the_robot() -> None:
    arm = Robot.from_urdf(arm_urdf("zyxyz"))
    before = learnt(arm, 1)
    warm = compare(before, scaled_friction(before, [0.9] * 5))
    assert not warm.changes
    assert warm.common_friction is not None
    assert abs(warm.common_friction.share + 0.105) < 0.002  # of the mean of 1 and 0.9
    assert "no change but one of friction that most joints share" in warm.summary()
    assert "less friction alike" in warm.summary()
    assert warm.as_dict()["common_friction"]["joints"] == 5
    worn = compare(before, scaled_friction(before, [0.9, 0.9, 1.2, 0.9, 0.9]))
    assert {item.where for item in worn.changes} == {"j3"}
    assert worn.common_friction is not None
    assert compare(before, scaled_friction(before, [1, 1, 1.3, 1, 1])).common_friction is None


def test_a_tool_is_the_first_hypothesis(robot: Robot, before: Identification) -> None:
    after = learnt(robot, 4, pin.Inertia(MASS, COM, INERTIA))
    found = compare(before, after)
    assert found.hypothesis is not None
    assert abs(found.hypothesis.mass / MASS - 1) < 0.05
    assert found.hypothesis.link == "tool"
    assert np.abs(found.hypothesis.com - COM).max() < 0.01
    assert json.loads(json.dumps(found.as_dict()))["hypothesis"]["link"] == "tool"
    back = compare(after, before)
    assert back.hypothesis is not None
    assert back.hypothesis.mass < 0
    wrong = compare(robot, after)
    assert any(item.where == "l3" for item in wrong.changes)


def test_bad_input(robot: Robot, before: Identification) -> None:
    with pytest.raises(FingerprintError, match="different robots"):
        compare(Robot.from_urdf(arm_urdf("zyxx")), before)
    with pytest.raises(FingerprintError, match=r"different robots: joint .* elsewhere"):
        compare(Robot.from_urdf(arm_urdf("zyx").replace('xyz="0.03', 'xyz="0.04')), before)
    blind = replace(before, fit=replace(before.fit, covariance=np.zeros_like(before.fit.covariance)))
    with pytest.raises(EstimationError, match="no covariance"):
        compare(before, blind)
    with pytest.raises(EstimationError, match="too few results"):
        trend([before, before], ["a", "b"])


def test_poses_from_both_sides(robot: Robot) -> None:
    found = design_poses(DynamicModel(robot))
    assert found.report.feasible
    t = found.trajectory.times(50.0)
    q, v, _ = found.trajectory.evaluate(t)
    for pose in found.poses:
        near = np.flatnonzero((np.abs(q - pose) < 1e-6).all(axis=1) & (np.abs(v) < 1e-9).all(axis=1))
        stops = np.split(near, np.flatnonzero(np.diff(near) > 1) + 1)
        assert len(stops) == 2
        before = [np.sign(pose - q[stop[0] - 10]) for stop in stops]
        assert (before[0] == -before[1]).all()
        assert all(len(stop) > 50 for stop in stops)
    with pytest.raises(LimitError, match="gravity loads no joint"):
        design_poses(DynamicModel(Robot.from_urdf(arm_urdf("z", fixed_tip=False).replace('rpy="0.1 0 0.2"', 'rpy="0 0 0"'))))


# ---- One model, many robots: spreads against REML, false alarms, a robot that differs, a folder that cannot be used ----


def another(ident: Identification, seed: int, more: float = 0.0) -> Identification:
    """A robot of the same kind: other noise, and ``more`` times the Coulomb friction of the second joint."""
    fit, rng = ident.fit, np.random.default_rng(seed)
    root = np.linalg.cholesky(fit.covariance + 1e-15 * np.diag(np.maximum(np.diag(fit.covariance), 1e-30)))
    params = fit.params + root @ rng.standard_normal(len(fit.params))
    names = [ident.model.names[k] for k in fit.base.independent]
    row = next(k for k, name in enumerate(names) if name.startswith("Fc_") and name.endswith("j2"))
    params[row] *= 1.0 + more
    return with_params(ident, params)


def with_params(ident: Identification, params: Array) -> Identification:
    """The result with other base parameters, in both of its estimates."""
    fit = replace(ident.fit, params=params)
    return replace(ident, fit=fit, theta=fit.theta(ident.theta))


@pytest.mark.parametrize("robots", [3, 4, 6])
@pytest.mark.parametrize("spread", [0.0, 3.0, "mixed"])
def test_robots_of_one_kind_seldom_seem_odd(robots: int, spread: float | str) -> None:
    """Five of a hundred chances lie below 5 %, one of a thousand below 0.1 %, whether or not quantities spread alike."""
    rng = np.random.default_rng(robots)
    chance = []
    for _ in range(40):
        error = rng.uniform(0.5, 1.5, (robots, 18))
        own = rng.choice([0.0, 0.5, 4.0], 18) if spread == "mixed" else spread
        value = own * rng.standard_normal(error.shape) + error * rng.standard_normal(error.shape)
        chance.append(deviations(value, error).p_value)
    assert np.mean(np.array(chance) < 0.05) < 0.07
    assert np.mean(np.array(chance) < 0.001) < 0.004


def test_a_robot_with_more_friction_is_found_and_equals_are_not(before: Identification) -> None:
    equal = {f"r{k}": another(before, k) for k in range(6)}
    found = pool(equal)
    assert not any(item.stands_out.any() for item in found.pooled)
    assert "no outliers" in found.summary()
    named = replace(found, pooled=tuple(replace(item, where=f"shoulder_lift_joint_{item.where}") for item in found.pooled))
    rows = [line.split("  ") for line in named.summary().splitlines() if "friction" in line]
    assert all(len([cell for cell in row if cell.strip()]) == 3 for row in rows), "columns of long names do not touch"
    truth = dict(zip(before.fit.base.labels, before.fit.params, strict=True))
    inertia = [item for item in found.pooled if item.kind == "inertia"]
    assert len(inertia) > 5
    assert np.mean([item.interval[0] <= truth[item.what] <= item.interval[1] for item in inertia]) > 0.8
    odd = pool({**equal, "r3": another(before, 3, more=0.3)})
    assert {(item.where, name) for item in odd.pooled for name, out in zip(odd.names, item.stands_out, strict=True) if out} == {
        ("j2", "r3")
    }
    assert "j2 has" in odd.deviations("r3")[0]
    assert "more friction" in odd.deviations("r3")[0]
    assert not odd.deviations("r1")


def test_one_heavy_body_is_one_outlier(before: Identification) -> None:
    """Its mass is part of the base parameters of the bodies that carry it; the sentence is about the body itself."""
    fit, bodies = before.fit, before.model.robot.bodies
    theta = np.zeros(len(before.model.parameters))
    theta[20:23] = 2.0, 0.3, 0.4  # mass and first moments of the third body
    heavy = another(before, 3)
    heavy = with_params(heavy, heavy.fit.params + fit.base.of(theta))
    found = pool({**{f"r{k}": another(before, k) for k in range(6)}, "r3": heavy})
    assert {item.where for item in found.pooled if item.stands_out[3]} > {bodies[2].name}
    (said,) = found.deviations("r3")
    assert said.startswith(bodies[2].name)
    assert "more of it and of the bodies that carry it" in said


def test_two_robots_have_no_odd_one_and_other_robots_are_refused(before: Identification) -> None:
    pair = pool({"a": before, "b": another(before, 1, more=2.0)})
    assert not any(item.stands_out.any() for item in pair.pooled)
    assert "compare" in pair.summary()
    with pytest.raises(EstimationError, match="several robots"):
        pool({"a": before})
    with pytest.raises(EstimationError, match=r"no fraction.* got 5\.0"):
        pool({"a": before, "b": before}, level=5.0)
    other = Robot.from_urdf(arm_urdf("zyz"))
    with pytest.raises(FingerprintError):
        pool({"a": before, "b": replace(before, model=DynamicModel(other, friction=LAWS))})


def test_a_bad_folder_is_named_and_the_others_go_on(tmp_path: Path) -> None:
    (tmp_path / "arm.urdf").write_text(arm_urdf("zy"), encoding="utf-8")
    (tmp_path / "p.yaml").write_text("model: {friction: [viscous, coulomb, offset]}\n", encoding="utf-8")
    robot = Robot.from_urdf(arm_urdf("zy"))
    for name, seed in (("one", 1), ("two", 2)):
        log = simulated(robot, seed, seconds=6.0)
        (tmp_path / "robots" / name).mkdir(parents=True)
        text = table_text(robot.joints, log.time, {"q": log.position, "tau": log.effort})
        (tmp_path / "robots" / name / "run.csv").write_text(text, encoding="utf-8")
    for name in ("broken", "empty"):
        (tmp_path / "robots" / name).mkdir()
    np.savetxt(tmp_path / "robots" / "broken" / "run.csv", np.zeros((3, 3)), delimiter=",")
    copytree(tmp_path / "robots" / "two", tmp_path / "robots" / "twocopy")
    result = run("fleet", "arm.urdf", "robots/*/", "-c", "p.yaml", "-o", "out", cwd=tmp_path)
    assert result.returncode == 1, result
    said = result.stdout + result.stderr
    for words in ("broken: not used:", "empty: not used:", "twocopy: not used: its log run is also a log of two"):
        assert words in said
    record = json.loads((tmp_path / "out" / "fleet.json").read_text(encoding="utf-8"))
    assert [item["name"] for item in record["robots"]] == ["one", "two"]
    assert [item["folder"] for item in record["failed"]] == ["broken", "empty", "twocopy"]
    assert (tmp_path / "out" / "one" / "identification.json").is_file()
    assert "<svg" in (tmp_path / "out" / "fleet.svg").read_text(encoding="utf-8")
    page = (tmp_path / "out" / "fleet.html").read_text(encoding="utf-8")
    assert page.count("<svg") >= 4  # friction of two joints at two speeds
    assert "2 robots, no outliers" in page
    assert re.search(r'class="refused">empty</span>: \S', page)
    with pytest.raises(LogError, match="no folder"):
        robot_folders([str(tmp_path / "nowhere")])
    (tmp_path / "more" / "one").mkdir(parents=True)
    with pytest.raises(LogError, match="same name"):
        robot_folders([str(tmp_path / "robots" / "one"), str(tmp_path / "more" / "one")])
