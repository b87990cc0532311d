"""Gravity that is missing from the efforts, or was added, told by the URDF's bodies where free ones would absorb it."""

import re
from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest
from conftest import arm_urdf, rnea
from logs import Truth, found_in, fourier, recorded, torques

from urdf_ident import Judgement, Recording, Robot
from urdf_ident.model.prior import scaled_bodies

ARM = Robot.from_urdf(arm_urdf("zyyxy"))


def slow_log(seed: int, added: float = 0.0, wrong: float = 0.15) -> Recording:
    """A log in which friction that depends on the position hides the inertia of bodies that differ from the URDF's."""
    real, draw = Robot.from_urdf(arm_urdf("zyyxy")), np.random.default_rng(seed)
    for k in range(1, real.n + 1):
        body, share = real.model.inertias[k], np.exp(wrong * draw.standard_normal())
        lever = body.lever + 0.01 * draw.standard_normal(3)
        real.model.inertias[k] = pin.Inertia(share * body.mass, lever, share * body.inertia)
    speed = 0.9
    t, q, v, a = fourier(real.n, 40.0 * speed, 100.0 / speed, seed)
    t, v, a = t / speed, speed * v, speed**2 * a
    tau = torques(real, Truth.of(real.n), q, v, a)
    along = np.sin(draw.uniform(2, 5, real.n) * q + draw.uniform(0, 6, real.n))
    tau += 0.15 * tau.std(axis=0) * np.tanh(v / (0.05 * v.std(axis=0))) * along
    return recorded(real, t, q, tau + added * rnea(ARM.model, q, 0 * q, 0 * q), seed=draw)


def doubts(recording: Recording) -> list[Judgement]:
    return [item for item in found_in(recording, robot=ARM)[0] if "effort-without-gravity" in item.candidates]


@pytest.mark.parametrize(("seed", "added"), [(0, 0.25), (1, -0.25)])
def test_a_part_of_gravity_is_told_where_friction_hides_inertia(seed: int, added: float) -> None:
    """It was taken for heavier or lighter bodies: a GOOD model with up to five times the error."""
    assert doubts(slow_log(seed)) == []
    (found,) = doubts(slow_log(seed, added))
    assert (found.severity, found.joint) == ("warning", None)
    assert found.size == pytest.approx(-added, abs=0.05)
    assert found.candidates == ("effort-without-gravity",)
    share = re.search(r"share of gravity in the efforts \((\d+) %\)", found.message)
    assert share is not None
    assert float(share[1]) == pytest.approx(100 * (1 + added), abs=5)


def test_a_urdf_that_is_wrong_by_factors_is_no_evidence() -> None:
    """Friction along the travel of joints that were jogged one by one seemed to be two thirds of gravity in addition."""
    assert doubts(slow_log(0, wrong=1.2)) == []


@pytest.mark.parametrize("spread", [1.0, 3.0])
def test_intervals_of_the_common_factor_hold_the_truth(spread: float) -> None:
    """Errors of the bodies are larger than the prior's in the second case, which the data show."""
    draw, held, found = np.random.default_rng(3), 0, []
    bodies, stated = draw.standard_normal((40, 12)), 4.0 * draw.standard_normal(40)
    truth, trials = 0.8, 300
    for _ in range(trials):
        errors = 0.8 * spread * draw.standard_normal(12)
        seen = truth * stated + bodies @ errors + np.sqrt(0.5) * draw.standard_normal(40)
        estimate = scaled_bodies(stated, bodies, seen, 0.5)
        held += abs(estimate.factor - truth) < 1.96 * estimate.error
        found.append(estimate.spread)
    assert 0.90 < held / trials < 0.99
    assert np.median(found) == pytest.approx(spread, rel=0.25)


def test_a_spring_that_carries_weight_of_one_joint_is_no_missing_gravity() -> None:
    log = slow_log(1)
    q, effort, still = log.position[:, 1], np.array(log.effort), np.zeros_like(log.position)
    lever = np.column_stack([np.sin(q), np.cos(q)])
    effort[:, 1] -= 0.3 * lever @ np.linalg.lstsq(lever, rnea(ARM.model, log.position, still, still)[:, 1], rcond=None)[0]
    assert doubts(replace(log, effort=effort)) == []
