"""The one test of all families of faults: what it names in simulated logs, and that it is silent on sound ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pytest
from logs import Truth, fourier, torques
from test_reversal_friction import ARM as BRISTLES
from test_reversal_friction import conditioned, log_with_bristles
from test_sound_logs import ARM, condition, moves_with_sticking_friction

from urdf_ident import Recording, Robot, Segment
from urdf_ident.faults.kinds.catalogue import GAIN, KINDS, SCALE, changes, faults
from urdf_ident.faults.kinds.families import FaultFamily
from urdf_ident.faults.kinds.kind import FaultKind
from urdf_ident.faults.linearized import LinearizedCase
from urdf_ident.faults.null_model import NullModel
from urdf_ident.faults.score_test import Fault, find_faults
from urdf_ident.faults.thinned_logs import Logs
from urdf_ident.faults.trials import LogGroup
from urdf_ident.judgements.catalogue import Id
from urdf_ident.linalg import Array


def found_in(logs: Logs, robot: Robot = ARM) -> list[Fault]:
    """Faults of logs that other findings do not tell."""
    trials = LogGroup(robot, logs).trials()
    assert trials is not None
    at = LinearizedCase.of(trials)
    return [item for item in find_faults(at, NullModel.of(at))[0] if not item.family.only_competes]


def recorded(t: Array, q: Array, tau: Array, seed: int, noise: float = 0.01) -> tuple[Sequence[Segment], float]:
    """A conditioned log with noisy positions and efforts."""
    draw = np.random.default_rng(seed).standard_normal((2, *q.shape))
    made = condition(Recording("log", ARM.joints, t, q + 1e-5 * draw[0], effort=tau + noise * tau.std(axis=0) * draw[1]), ARM)
    return made.segments, made.cutoff


def test_a_cycle_of_moves_is_no_evidence_of_a_fault() -> None:
    """What the friction leaves unexplained is the same in each cycle, and was taken for a zero, an encoder or an axis."""
    made = condition(moves_with_sticking_friction(4), ARM)
    again = [replace(part, start=part.start + 20.0 * k) for k in range(5) for part in made.segments]
    assert found_in([(again, made.cutoff)]) == []


def test_friction_that_varies_with_the_position_is_no_other_scale_of_one_sign() -> None:
    """It is larger where a joint's weight has one sign: that effort seemed to be scaled by up to 60 % in one direction."""
    t, q, v, a = fourier(ARM.n, 20.0, 100.0, 9)
    tau = torques(ARM, Truth.of(ARM.n), q, v, a)
    phase = np.random.default_rng(109).uniform(0, 6, ARM.n)
    tau += 0.2 * tau.std(axis=0) * np.sin(q + phase) * np.tanh(v / (0.03 * v.std(axis=0)))
    assert found_in([recorded(t, q, tau, 9)]) == []


@pytest.mark.parametrize(("seed", "joint"), [(10, 1), (20, 2)])
def test_presliding_friction_is_no_late_effort(seed: int, joint: int) -> None:
    """It looked like a delay of that joint's effort of 20 to 32 ms, by six to nine standard errors."""
    logs = [own for k in range(3) for own in conditioned(log_with_bristles(seed + k, joint, 0.003))]
    assert [item for item in found_in(logs, BRISTLES) if item.family.id == "effort-delay"] == []


def test_a_joint_that_moves_in_one_log_only_does_not_set_the_logs_apart() -> None:
    """A gain that only this log has explains all its effort there by itself."""
    made = [condition(moves_with_sticking_friction(10 * k, ARM.n - k), ARM) for k in (0, 1)]
    assert [item for item in found_in([(item.segments, item.cutoff) for item in made]) if item.family.change] == []


@pytest.mark.parametrize("what", ["friction", "effort"])
def test_cold_gears_of_a_log_are_no_other_scale_of_an_effort(what: str) -> None:
    """20 % more friction of all joints, or 10 % more of the fourth effort, in the first of three logs."""
    logs = []
    for k in range(3):
        t, q, v, a = fourier(ARM.n, 15.0, 100.0, seed=40 + k)
        truth, cold = Truth.of(ARM.n), 1.0 + 0.2 * (k == 0 and what == "friction")
        tau = torques(ARM, replace(truth, viscous=cold * truth.viscous, coulomb=cold * truth.coulomb), q, v, a)
        tau[:, 3] *= 1.0 + 0.1 * (k == 0 and what == "effort")
        logs.append(recorded(t, q, tau, k, 0.02))
    named = {(item.family.id.value, item.family.change, item.family.joints, item.when.log) for item in found_in(logs)}
    scales = {entry for entry in named if entry[0] == "effort-scale" or entry[1] in (GAIN, SCALE)}
    assert {(joints, log) for _, _, joints, log in scales} == (set() if what == "friction" else {((3,), 0)})


def test_a_kind_of_ten_lines_finds_its_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    """A damper between two axes, which no other family describes (CONTRIBUTING.md, "Adding a fault")."""

    class Damper(FaultKind):
        id = Id.CONTACT_SPRING

        def families(self, at: LinearizedCase) -> Iterator[FaultFamily]:
            for j in at.moving[1:]:
                yield FaultFamily(self.id, (j,), at.in_row(j, at.samples.v[:, j - 1]), unit=-1.0)

    monkeypatch.setitem(KINDS, Damper.id, Damper())
    t, q, v, a = fourier(ARM.n, 20.0, 100.0, 3)
    tau = torques(ARM, Truth.of(ARM.n), q, v, a)
    tau[:, 2] += 2.0 * v[:, 1]
    (found,) = found_in([recorded(t, q, tau, 0)])
    assert (found.family.id, found.family.joints) == (Id.CONTACT_SPRING, (2,))
    assert found.size == pytest.approx(2.0, rel=0.2)


def test_every_family_has_columns_of_all_rows_and_words_for_its_finding() -> None:
    """And a periodic error needs half a wave of travel: a shorter arc of it is a zero and a scale."""
    made = condition(moves_with_sticking_friction(0), ARM)
    logs: Logs = [(made.segments, made.cutoff)]
    trials = LogGroup(ARM, logs).trials()
    assert trials is not None
    at = LinearizedCase.of(trials)
    families = [*faults(at), *changes(at)]
    for family in families:
        assert family.columns.shape[:2] == at.samples.q.shape
        assert np.isfinite(family.columns).all()
        assert family.change or family.only_competes or family.id == "effort-delay" or family.id.entry.message
    travel = np.ptp(at.samples.q, axis=0)
    for j in range(ARM.n):
        slopes = {item.slope for item in families if item.id == "position-nonlinear" and item.joints == (j,)}
        assert slopes == {waves for waves in (1, 2, 3, 4, 6, 8) if waves * travel[j] >= np.pi}
