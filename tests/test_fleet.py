"""One model, many robots: spreads against REML, false alarms, a robot that differs, a folder that cannot be used."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from shutil import copytree

import numpy as np
import pytest
from conftest import arm_urdf
from loaded_arm import motion, torque
from typer.testing import CliRunner

from urdf_ident.cli import app
from urdf_ident.errors import EstimationError, FingerprintError, LogError
from urdf_ident.linalg import Array
from urdf_ident.logs.recording import Recording
from urdf_ident.model.dynamic_model import DynamicModel
from urdf_ident.model.robot import Robot
from urdf_ident.motion.trajectory import table_text
from urdf_ident.pipeline.fleet import pool, robot_folders
from urdf_ident.pipeline.identify import identify
from urdf_ident.result.identification import Identification
from urdf_ident.statistics.fleet import deviations, random_effects
from urdf_ident.statistics.log_effects.mixed_rows import Moments
from urdf_ident.statistics.log_effects.reml import reml

LAWS = ["viscous", "coulomb", "offset", "load_coulomb"]


def simulated(robot: Robot, seed: int, seconds: float = 12.0) -> Recording:
    t, q, v, a = motion(robot.n, 0, seconds)
    tau = torque(robot, q, v, a, None) + 0.1 * np.random.default_rng(seed).standard_normal(q.shape)
    return Recording(f"log{seed}", robot.joints, t, q, effort=tau, sha256=f"log{seed}")


@pytest.fixture(scope="module")
def ident(robot: Robot) -> Identification:
    return identify(DynamicModel(robot, friction=LAWS), [simulated(robot, 1)])


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


def test_spreads_are_those_of_restricted_likelihood() -> None:
    rng = np.random.default_rng(0)
    error = rng.uniform(0.2, 1.5, (7, 5))
    value = 3.0 + np.array([0.0, 0.3, 1.0, 2.0, 5.0]) * rng.standard_normal((7, 5)) + error * rng.standard_normal((7, 5))
    found = random_effects(value, error)
    for k in range(5):
        white = 1.0 / error[:, k]
        rows = np.array([[w, w, w * y] for w, y in zip(white, value[:, k], strict=True)])
        assert found.spread[k] ** 2 == pytest.approx(
            reml(Moments.of(rows[:, :, None] * rows[:, None], 1), np.ones(1))[0], rel=1e-4, abs=1e-6
        )
    assert (found.spread > 0).sum() >= 3
    with pytest.raises(EstimationError, match="needs several"):
        random_effects(value[:1], error[:1])


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
        chance.append(deviations(value, error).chance)
    assert np.mean(np.array(chance) < 0.05) < 0.07
    assert np.mean(np.array(chance) < 0.001) < 0.004


def test_a_robot_with_more_friction_is_found_and_equals_are_not(ident: Identification) -> None:
    equal = {f"r{k}": another(ident, k) for k in range(6)}
    found = pool(equal)
    assert not any(item.stands_out.any() for item in found.pooled)
    assert "no outliers" in found.summary()
    named = replace(found, pooled=tuple(replace(item, where=f"shoulder_lift_joint_{item.where}") for item in found.pooled))
    rows = [line.split("  ") for line in named.summary().splitlines() if "friction" in line]
    assert all(len([cell for cell in row if cell.strip()]) == 3 for row in rows), "columns of long names do not touch"
    truth = dict(zip(ident.fit.base.labels, ident.fit.params, strict=True))
    inertia = [item for item in found.pooled if item.kind == "inertia"]
    assert len(inertia) > 5
    assert np.mean([item.interval[0] <= truth[item.what] <= item.interval[1] for item in inertia]) > 0.8
    odd = pool({**equal, "r3": another(ident, 3, more=0.3)})
    assert {(item.where, name) for item in odd.pooled for name, out in zip(odd.names, item.stands_out, strict=True) if out} == {
        ("j2", "r3")
    }
    assert "j2 has" in odd.deviations("r3")[0]
    assert "more friction" in odd.deviations("r3")[0]
    assert not odd.deviations("r1")


def test_one_heavy_body_is_one_outlier(ident: Identification) -> None:
    """Its mass is part of the base parameters of the bodies that carry it; the sentence is about the body itself."""
    fit, bodies = ident.fit, ident.model.robot.bodies
    theta = np.zeros(len(ident.model.parameters))
    theta[20:23] = 2.0, 0.3, 0.4  # mass and first moments of the third body
    heavy = another(ident, 3)
    heavy = with_params(heavy, heavy.fit.params + fit.base.of(theta))
    found = pool({**{f"r{k}": another(ident, k) for k in range(6)}, "r3": heavy})
    assert {item.where for item in found.pooled if item.stands_out[3]} > {bodies[2].name}
    (said,) = found.deviations("r3")
    assert said.startswith(bodies[2].name)
    assert "more of it and of the bodies that carry it" in said


def test_two_robots_have_no_odd_one_and_other_robots_are_refused(ident: Identification) -> None:
    pair = pool({"a": ident, "b": another(ident, 1, more=2.0)})
    assert not any(item.stands_out.any() for item in pair.pooled)
    assert "compare" in pair.summary()
    with pytest.raises(EstimationError, match="several robots"):
        pool({"a": ident})
    other = Robot.from_urdf(arm_urdf("zyz"))
    with pytest.raises(FingerprintError):
        pool({"a": ident, "b": replace(ident, model=DynamicModel(other, friction=LAWS))})


def test_a_bad_folder_is_named_and_the_others_go_on(tmp_path: Path) -> None:
    (tmp_path / "arm.urdf").write_text(arm_urdf("zy"), encoding="utf-8")
    (tmp_path / "p.yaml").write_text("model: {friction: [viscous, coulomb, offset]}\n", encoding="utf-8")
    robot = Robot.from_urdf(arm_urdf("zy"))
    for name, seed in (("one", 1), ("two", 2)):
        log = simulated(robot, seed, 6.0)
        (tmp_path / "robots" / name).mkdir(parents=True)
        text = table_text(robot.joints, log.time, {"q": log.position, "tau": log.effort})
        (tmp_path / "robots" / name / "run.csv").write_text(text, encoding="utf-8")
    (tmp_path / "robots" / "empty").mkdir()
    copytree(tmp_path / "robots" / "two", tmp_path / "robots" / "twocopy")
    words = ["fleet", str(tmp_path / "arm.urdf"), str(tmp_path / "robots" / "*/"), "-c", str(tmp_path / "p.yaml")]
    done = CliRunner().invoke(app, [*words, "-o", str(tmp_path / "out")])
    assert done.exit_code == 1, done.output
    assert "empty: not used:" in done.output
    assert "twocopy: not used: its log run is also a log of two" in done.output
    record = json.loads((tmp_path / "out" / "fleet.json").read_text(encoding="utf-8"))
    assert [item["name"] for item in record["robots"]] == ["one", "two"]
    assert [item["folder"] for item in record["failed"]] == ["empty", "twocopy"]
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
