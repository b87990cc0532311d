"""Learning from earlier logs: what is still unknown, what the next motion will tell of it, and results that cannot be used."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from commands import assert_refused, done, run
from conftest import arm_urdf
from logs import Truth, make_log, torques, write_csv

from urdf_ident import DynamicModel, Identification, Robot, design_excitation, identify, load, read_recording, read_trajectory
from urdf_ident.excitation.sequential import Forecast, forecast, joint_errors

pytestmark = pytest.mark.usefixtures("unexamined")


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A robot, a short log of it, and the result of that."""
    folder = tmp_path_factory.mktemp("sequential")
    (folder / "arm.urdf").write_text(arm_urdf("zyx"))
    robot = Robot.from_urdf(folder / "arm.urdf")
    log = make_log(folder / "log.csv", robot, seconds=8.0)
    identify(DynamicModel(robot), [read_recording(log, robot)]).save(folder / "first.json")
    return folder


@pytest.fixture(scope="module")
def first(work: Path) -> Identification:
    return load(work / "first.json")


def test_design_after_another_robot_is_refused(work: Path) -> None:
    (work / "other.urdf").write_text(arm_urdf("zyy"))
    result = run("design", work / "other.urdf", "--after", work / "first.json", "-o", work / "no.csv")
    assert_refused(result, 2, "another robot", "joint 'j3'", "identification.json")
    assert not (work / "no.csv").exists()


def test_errors_of_both_logs_together_are_those_of_the_closed_form(first: Identification) -> None:
    """Old noise with any covariance of the estimate, new noise white and as overrated: a Monte Carlo of the estimator."""
    rng = np.random.default_rng(0)
    b = 6
    old, new = rng.normal(size=(40, b)) * np.logspace(0, 3, b), rng.normal(size=(25, b)) * np.logspace(3, 0, b)
    colour = np.linalg.cholesky(0.9 ** np.abs(np.subtract.outer(np.arange(40), np.arange(40))))
    pseudo = np.linalg.pinv(old)
    fit = replace(first.fit, params=np.zeros(b), covariance=pseudo @ colour @ colour.T @ pseudo.T, seen=np.ones(b, dtype=bool))
    factor = np.sqrt(fit.variance_factor(old))
    noise = np.vstack([colour @ rng.standard_normal((40, 20000)), factor * rng.standard_normal((25, 20000))])
    scatter = np.linalg.lstsq(np.vstack([old, new]), noise, rcond=None)[0].std(axis=1)
    np.testing.assert_allclose(joint_errors(fit, old, new), scatter, rtol=0.03)


def test_the_forecast_is_what_the_next_log_then_tells(work: Path, first: Identification) -> None:
    """Drive the motion, identify with both logs, compare: the prediction knew neither the log nor its noise."""
    model = first.model
    # Two starts end in one of several poor optima, by rounding; four find the same motion as six.
    found = design_excitation(model, 8.0, after=first, budget=10.0, starts=4)
    assert found.criterion == "A"
    told = forecast(first, found.trajectory)
    t = found.trajectory.times(100.0)
    q, v, a = found.trajectory.evaluate(t)
    tau = torques(model.robot, Truth.of(model.n), q, v, a)
    rng = np.random.default_rng(5)
    earlier = read_recording(work / "log.csv", model.robot)
    quiet = np.std(earlier.effort - earlier.effort.mean(axis=0), axis=0) * 0.05  # the noise that make_log adds
    path = write_csv(
        work / "next_log.csv",
        model.robot.joints,
        t,
        q + 1e-5 * rng.standard_normal(q.shape),
        tau + quiet * rng.standard_normal(tau.shape),
    )
    both = identify(model, [earlier, read_recording(path, model.robot)])  # the same friction: structure is not on trial
    ratio = told.after / both.fit.bse
    assert 0.75 < np.median(ratio) < 1.25  # it is 0.8, a little optimistic
    assert (told.after < told.before).all()
    assert (told.standard_after < told.standard_before).all()
    np.testing.assert_allclose(told.standard_before, first.posterior_std)
    text = told.summary()
    assert "base parameter" in text
    assert "then" in text


def test_the_sentence_names_what_is_unknown_and_no_more() -> None:
    told = Forecast(
        20.0,
        tuple("abcdefg"),
        ("kg",) * 7,
        np.ones(7),
        np.array([0.1, np.inf, 0.5, 0.1, 0.1, 0.1, 0.2]),
        np.full(7, 0.05),
        np.array([1.0, 1.0, 10.0, 1.0, 1.0, 1.0, 1.0]),
        ("one", "two"),
        tuple(map(str, range(20))),
        np.repeat([2.0, -4.0], 10),
        np.repeat([0.8, 1.6], 10),
        np.repeat([0.12, 0.2], 10),
        "by hand",
    )
    assert told.weakest[:2].tolist() == [1, 2]
    assert told.sentence().startswith("2 of 7 base parameters are hidden by the noise: b, c; after 20 s")
    assert told.mass_words() == "masses of one, two: from ±40 % to ±5-6 %"
    assert "unknown" in told.summary()
    assert "0 are known to 10 % now and 20 then; standard deviations are 7.3 times smaller" in told.summary()
    one = replace(told, before=np.where(np.isinf(told.before), 0.1, told.before))
    assert one.sentence().startswith("1 of 7 base parameters is hidden by the noise: c; after 20 s")
    assert "the 5 least certain are 2 times smaller" in one.sentence()
    none = replace(one, size=np.ones(7))
    assert none.sentence().startswith("no base parameter is hidden by the noise, the least certain are c, g, a, b, d; after")


def test_identify_offers_the_next_motion_and_writes_it_on_request(work: Path) -> None:
    (work / "q.yaml").write_text("model: {friction: [viscous, coulomb]}\nexcitation: {budget: 0.5, duration: 6}\n")
    options = ("identify", work / "arm.urdf", work / "log.csv", "-c", work / "q.yaml", "-o", work / "out")
    offered = done(*options, "-v")
    assert re.search(
        r"^next: .*after 6 s the standard errors of the [0-9]+ least certain are [0-9.]+ times smaller.*--next",
        offered,
        re.MULTILINE,
    )
    designed = done(*options, "--next", work / "next.csv")
    motion = read_trajectory(work / "next.csv", Robot.from_urdf(work / "arm.urdf"))
    assert motion.duration == pytest.approx(6.0, abs=2e-3)
    assert "criterion A" in designed
    assert "masses" in designed


def test_no_offer_without_limits(work: Path) -> None:
    (work / "endless.urdf").write_text(re.sub("<limit[^>]*/>", "", arm_urdf("zyx", kind="continuous")))
    (work / "r.yaml").write_text("model: {friction: [viscous, coulomb]}\n")
    text = done("identify", work / "endless.urdf", work / "log.csv", "-c", work / "r.yaml", "-o", work / "out2")
    assert "next:" not in text
    after = ("--after", work / "out2" / "identification.json", "-o", work / "no.csv")
    assert_refused(run("design", work / "endless.urdf", *after), 2, "velocity")
