"""The one test of all families of faults: what it names in simulated logs, and that it is silent on sound ones.

Sound are logs whose friction the laws of the checks do not describe, around reversals above all.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from conftest import arm_urdf
from logs import Truth, bristles, found_in, fourier, recorded, torques

from urdf_ident import Recording, Robot
from urdf_ident.faults.friction import reversal_columns
from urdf_ident.faults.interpretation import Interpretation
from urdf_ident.faults.kinds.catalogue import GAIN, KINDS, SCALE, changes, faults
from urdf_ident.faults.kinds.families import FaultFamily
from urdf_ident.faults.kinds.kind import FaultKind
from urdf_ident.faults.linearized import LinearizedCase
from urdf_ident.faults.motion_samples import MotionSamples, sampler
from urdf_ident.faults.null_model import NullModel
from urdf_ident.faults.score_test import Fault, find_faults
from urdf_ident.faults.thinned_logs import Logs
from urdf_ident.faults.trials import LogGroup, Trials
from urdf_ident.judgements.catalogue import Id
from urdf_ident.linalg import lstsq, rms
from urdf_ident.parallel import workers
from urdf_ident.signals.condition import condition
from urdf_ident.signals.filters import lowpass

ARM = Robot.from_urdf(arm_urdf("zyyx"))


def log_with_bristles(seed: int, joint: int, travel: float) -> Recording:
    t, q, v, a = fourier(ARM.n, 20.0, 100.0, seed)
    tau = torques(ARM, Truth.of(ARM.n), q, v, a)
    tau[:, joint] += (3.0, 6.0, 2.5, 0.8)[joint] * bristles(q[:, joint], travel)  # about half of its torque
    return replace(recorded(ARM, t, q, tau, noise=0.01, seed=seed, name=f"log{seed}"), position=q)


def moves_with_sticking_friction(seed: int, moving: int = ARM.n) -> Recording:
    """Six moves of the first joints between poses; each friction reverses over 0.05 rad and is as large as the effort."""
    rng, step = np.random.default_rng(seed), 0.005
    q = rng.uniform(-1, 1, ARM.n)[None]
    for _ in range(6):
        new, seconds = rng.uniform(-1, 1, ARM.n), float(rng.uniform(1.2, 2.5))
        new[moving:] = q[-1, moving:]
        x = (np.arange(0, seconds, step) / seconds)[:, None]
        q = np.vstack([q, q[-1] + (new - q[-1]) * x**3 * (10 - 15 * x + 6 * x**2), np.tile(new, (60, 1))])
    q = q[1:]
    v = np.gradient(q, step, axis=0)
    tau = torques(ARM, Truth.of(ARM.n), q, v, np.gradient(v, step, axis=0))
    return recorded(ARM, np.arange(len(q)) * step, q, tau + tau.std(axis=0) * bristles(q, 0.05), noise=0.01, seed=rng)


def conditioned(*logs: Recording) -> Logs:
    return [(made.segments, made.cutoff) for made in (condition(log, ARM) for log in logs)]


def trials_of(logs: Logs) -> Trials:
    trials = LogGroup(ARM, logs).trials()
    assert trials is not None
    return trials


def faults_of(*logs: Recording) -> list[Fault]:
    return faults_in(conditioned(*logs))


def faults_in(logs: Logs) -> list[Fault]:
    """Faults of logs that other findings do not tell."""
    at = LinearizedCase.of(trials_of(logs))
    return [item for item in find_faults(at, NullModel.of(at))[0] if not item.family.only_competes]


def test_a_cycle_of_moves_is_no_evidence_of_a_fault() -> None:
    """What the friction leaves unexplained is the same in each cycle, and was taken for a zero, an encoder or an axis."""
    ((segments, cutoff),) = conditioned(moves_with_sticking_friction(4))
    assert faults_in([([replace(part, start=part.start + 20.0 * k) for k in range(5) for part in segments], cutoff)]) == []


def test_friction_that_reverses_over_some_travel_is_neither_contact_nor_drift() -> None:
    (found,) = found_in(moves_with_sticking_friction(0), robot=ARM)
    assert not {item.id for item in found} & {"contact", "effort-drift"}


def test_friction_that_varies_with_the_position_is_no_other_scale_of_one_sign() -> None:
    """It is larger where a joint's weight has one sign: that effort seemed to be scaled by up to 60 % in one direction."""
    t, q, v, a = fourier(ARM.n, 20.0, 100.0, 9)
    tau = torques(ARM, Truth.of(ARM.n), q, v, a)
    phase = np.random.default_rng(109).uniform(0, 6, ARM.n)
    tau += 0.2 * tau.std(axis=0) * np.sin(q + phase) * np.tanh(v / (0.03 * v.std(axis=0)))
    assert faults_of(recorded(ARM, t, q, tau, noise=0.01, seed=9)) == []


@pytest.mark.parametrize(("seed", "joint"), [(10, 1), (20, 2)])
def test_presliding_friction_is_no_late_effort(seed: int, joint: int) -> None:
    """It looked like a delay of that joint's effort of 20 to 32 ms, by six to nine standard errors."""
    found = faults_of(*(log_with_bristles(seed + k, joint, 0.003) for k in range(3)))
    assert [item for item in found if item.family.id == "effort-delay"] == []


def test_a_joint_that_moves_in_one_log_only_does_not_set_the_logs_apart() -> None:
    """A gain that only this log has explains all its effort there by itself."""
    found = faults_of(*(moves_with_sticking_friction(10 * k, ARM.n - k) for k in (0, 1)))
    assert [item for item in found if item.family.change] == []


@pytest.mark.parametrize(("friction", "effort", "scaled"), [(1.2, 1.0, set()), (1.0, 1.1, {((3,), 0)})])
def test_cold_gears_of_a_log_are_no_other_scale_of_an_effort(friction: float, effort: float, scaled: set) -> None:
    """More friction of all joints, or more of the fourth effort, in the first of three logs."""
    logs, truth = [], Truth.of(ARM.n)
    for k, (cold, scale) in enumerate([(friction, effort), (1.0, 1.0), (1.0, 1.0)]):
        t, q, v, a = fourier(ARM.n, 15.0, 100.0, seed=40 + k)
        tau = torques(ARM, replace(truth, viscous=cold * truth.viscous, coulomb=cold * truth.coulomb), q, v, a)
        logs.append(recorded(ARM, t, q, tau * [1, 1, 1, scale], seed=k))
    scales = [x for x in faults_of(*logs) if x.family.id == "effort-scale" or x.family.change in (GAIN, SCALE)]
    assert {(item.family.joints, item.when.log) for item in scales} == scaled


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
    (found,) = faults_of(recorded(ARM, t, q, tau, noise=0.01))
    assert (found.family.id, found.family.joints) == (Id.CONTACT_SPRING, (2,))
    assert found.size == pytest.approx(2.0, rel=0.2)


def test_every_family_has_columns_of_all_rows_and_words_for_its_finding() -> None:
    """And a periodic error needs half a wave of travel: a shorter arc of it is a zero and a scale."""
    at = LinearizedCase.of(trials_of(conditioned(moves_with_sticking_friction(0))))
    families = [*faults(at), *changes(at)]
    for family in families:
        assert family.columns.shape[:2] == at.samples.q.shape
        assert np.isfinite(family.columns).all()
        assert family.change or family.only_competes or family.id == "effort-delay" or family.id.entry.message
    travel = np.ptp(at.samples.q, axis=0)
    for j in range(ARM.n):
        slopes = {item.slope for item in families if item.id == "position-nonlinear" and item.joints == (j,)}
        assert slopes == {waves for waves in (1, 2, 3, 4, 6, 8) if waves * travel[j] >= np.pi}


def test_a_joint_that_creeps_within_its_friction_is_no_evidence() -> None:
    """In the second log the last joint moves by 5 mrad, and holds whatever torque its friction lets it."""
    logs = []
    for k, travel in enumerate((1.0, 0.005)):
        t, q, v, a = fourier(ARM.n, 12.0, 100.0, k)
        q[:, 3], v[:, 3], a[:, 3] = travel * np.sin(2 * t), 2 * travel * np.cos(2 * t), -4 * travel * np.sin(2 * t)
        logs.append(Recording(f"log{k}", ARM.joints, t, q, effort=torques(ARM, Truth.of(ARM.n), q, v, a)))
    both, alone = trials_of(conditioned(*logs)), trials_of(conditioned(logs[1]))
    samples = both.samples
    assert samples.moves.all()
    assert samples.glides[samples.log == 0, 3].mean() > 0.9
    assert not samples.glides[samples.log == 1, 3].any()
    assert samples.glides[samples.log == 1, :3].mean() > 0.9
    assert alone.moves.tolist() == [True, True, True, False]
    (limb,) = alone.limbs
    assert not alone.evidence(Interpretation.as_logged(ARM.n), limb).regression.gram[:, 3].any()


# ---- friction around reversals that the tests leave free: of the whole motion, low-passed -------------------------


def samples_of(logs: Logs) -> MotionSamples:
    sampled = sampler(logs, reduction=None)
    assert sampled is not None
    return sampled(0.0)


def test_presliding_within_the_steps_of_the_samples_is_among_the_columns() -> None:
    """Samples are 40 ms apart, in which a joint leaves such a travel; the efforts are seen behind the low-pass."""
    logs = conditioned(log_with_bristles(0, 1, 1.0))
    ((part,), cutoff), motion = logs[0], samples_of(logs)
    step = round(float(np.median(np.diff(motion.time))) * part.rate)
    assert step >= 4
    states = lowpass(bristles(part.q[:, 1], 1e-3 * np.ptp(part.q[:, 1])), part.rate, cutoff)
    friction, columns = states[::step], np.column_stack([reversal_columns(motion, [1])[0], motion.v[:, 1]])
    left = friction - columns @ lstsq(columns, friction)[0]
    assert rms(left[5:]) < 0.01  # the first state is not known


def test_workers_compute_the_columns_of_each_log_bitwise_as_one_process() -> None:
    """Their scales are those of all logs, and the state of presliding begins anew in each log."""
    logs = conditioned(*(log_with_bristles(seed, 1, 1.0) for seed in (1, 2, 3)))
    joints, there, back = range(ARM.n), samples_of(logs), samples_of(logs[::-1])
    alone = reversal_columns(there, joints)
    for x, y in zip(alone, reversal_columns(back, joints), strict=True):
        assert x[there.log == 2] == pytest.approx(y[back.log == 0])
    with workers(2):
        motion = samples_of(logs)
        assert all(np.array_equal(x, y) for x, y in zip(reversal_columns(motion, joints), alone, strict=True))
