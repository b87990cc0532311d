"""Sound logs whose friction the laws of the checks do not describe: neither contact nor drift nor a fault of resting joints."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from conftest import arm_urdf
from logs import Truth, fourier, torques
from scipy.stats import t as student

from urdf_ident.faults import arbitration
from urdf_ident.faults.candidates import Hypothesis, Interpretation
from urdf_ident.faults.changes import contact, drift
from urdf_ident.faults.changes.between_logs import between
from urdf_ident.faults.changes.change import KINDS, Change
from urdf_ident.faults.changes.outlying_logs import LogResidual, outlying_logs
from urdf_ident.faults.corrections import with_free_reversals
from urdf_ident.faults.evidence import RigidEvidence, comparable, prediction_variance
from urdf_ident.faults.explanations import Explanations, differing_in, examined_alone
from urdf_ident.faults.grams import FOLDS, Grams
from urdf_ident.faults.log_group import LogGroup
from urdf_ident.faults.motion_samples import MotionSamples, sampler
from urdf_ident.faults.repeated_motion import first_shown
from urdf_ident.faults.reporting import findings
from urdf_ident.faults.small_faults.columns import FaultRows
from urdf_ident.faults.small_faults.fault import SmallFault
from urdf_ident.faults.small_faults.find import small_faults
from urdf_ident.faults.small_faults.trial import ChosenColumns, FaultTrial
from urdf_ident.faults.small_faults.wording import small_fault
from urdf_ident.faults.thinned_logs import Logs
from urdf_ident.judgements.catalogue import Id
from urdf_ident.judgements.judgement import Judgement
from urdf_ident.linalg import Array, rms
from urdf_ident.logs.recording import Recording
from urdf_ident.model.drive import Drive
from urdf_ident.model.robot import Robot
from urdf_ident.pipeline import examine
from urdf_ident.pipeline.examine import examine_logs
from urdf_ident.samples import Segment
from urdf_ident.signals import prepare
from urdf_ident.signals.condition import condition
from urdf_ident.signals.config import SignalConfig

ARM = Robot.from_urdf(arm_urdf("zyyx"))
BLOCKS, SAMPLES, INERTIAL = 15, 30, 2


def moves_with_sticking_friction(seed: int, moving: int = ARM.n) -> Recording:
    """Six moves between poses; each friction reverses over 0.05 rad of travel (Dahl 1968) and is as large as the effort.

    Args:
        moving: Number of joints that move; the others rest.
    """
    rng, step = np.random.default_rng(seed), 0.005
    q = rng.uniform(-1, 1, ARM.n)[None]
    for _ in range(6):
        new, seconds = rng.uniform(-1, 1, ARM.n), float(rng.uniform(1.2, 2.5))
        new[moving:] = q[-1, moving:]
        x = (np.arange(0, seconds, step) / seconds)[:, None]
        rest = np.tile(new, (60, 1))
        q = np.vstack([q, q[-1] + (new - q[-1]) * x**3 * (10 - 15 * x + 6 * x**2), rest])
    q = q[1:]
    v = np.gradient(q, step, axis=0)
    tau = torques(ARM, Truth.of(ARM.n), q, v, np.gradient(v, step, axis=0))
    size, state, sticking = tau.std(axis=0), np.zeros(ARM.n), np.empty_like(q)
    for k, way in enumerate(np.diff(q, axis=0, prepend=q[:1])):
        state = np.sign(way) + (state - np.sign(way)) * np.exp(-np.abs(way) / 0.05)
        sticking[k] = state
    noise = rng.standard_normal((2, *q.shape))
    return Recording(
        "log", ARM.joints, np.arange(len(q)) * step, q + 1e-5 * noise[0], effort=tau + size * (sticking + 0.01 * noise[1])
    )


def cycles(seed: int) -> list[tuple[list[Segment], float]]:
    """The same moves five times, conditioned."""
    made = condition(moves_with_sticking_friction(seed), ARM)
    return [([replace(part, start=part.start + 20.0 * k) for k in range(5) for part in made.segments], made.cutoff)]


@pytest.mark.parametrize("seed", [0, 2, 3, 4])
def test_friction_that_reverses_over_some_travel_is_neither_contact_nor_drift(seed: int) -> None:
    (report,) = examine_logs([moves_with_sticking_friction(seed)], ARM, Drive.build(ARM.n), SignalConfig())
    assert [item.id for item in report.findings if item.severity != "info" and item.id in ("contact", "effort-drift")] == []


@pytest.mark.parametrize("seed", [0, 1, 4, 9, 10, 13, 27, 33, 35, 36, 51, 55])
def test_a_cycle_of_moves_is_no_evidence_of_a_small_fault(seed: int) -> None:
    """What the friction leaves unexplained is the same in each cycle, and was taken for a zero, an encoder or an axis."""
    logs = cycles(seed)
    case = LogGroup(ARM, logs).case()
    assert case is not None
    assert [item.id for item in small_faults(case, logs) if item.decided] == []


def test_a_periodic_error_needs_half_a_wave_of_travel() -> None:
    """A shorter arc of it is a zero and a scale, whose fit may have any amplitude."""
    logs = cycles(0)
    case = LogGroup(ARM, logs).case()
    assert case is not None
    rows = FaultRows.of(case)
    travel = np.ptp(rows.samples.q, axis=0)
    none = np.zeros((len(rows.samples), 3))
    for j in range(ARM.n):
        faults = rows.with_faults_of(j, none, np.zeros_like(rows.samples.q), none)[2]
        slopes = {fault.slope for fault in faults if fault.id == "position-nonlinear"}
        assert slopes == {waves for waves in (1, 2, 3, 4, 6, 8) if waves * travel[j] >= np.pi}
        assert 1 not in slopes


def test_repetitions_of_a_motion_are_held_out_together() -> None:
    sampled = sampler(cycles(0))
    assert sampled is not None
    found = sampled(0.0).by_motion()
    first = found.time < 20.0
    assert set(found.block[~first]) <= set(found.block[first])
    assert len(set(found.block)) == BLOCKS
    made = condition(moves_with_sticking_friction(0), ARM)
    alone = sampler([(made.segments, made.cutoff)])
    assert alone is not None
    assert alone(0.0).by_motion() is alone(0.0)
    q, v = (np.concatenate([getattr(part, name)[::10] for part in made.segments]) for name in "qv")
    twice = first_shown(np.vstack([q, q + 0.01 * np.ptp(q, axis=0)]), np.vstack([v, v]))
    assert (np.abs(twice[len(q) :] - np.arange(len(q))) <= 1).mean() > 0.9
    backwards = first_shown(np.vstack([q, q]), np.vstack([v, -v]))
    assert (backwards == np.arange(2 * len(q))).mean() > 0.9  # all but the rests


def test_friction_at_reversals_is_free_in_all_fits() -> None:
    made = condition(moves_with_sticking_friction(2), ARM)
    logs = [(made.segments, made.cutoff)]
    case = LogGroup(ARM, logs).case()
    assert case is not None
    logged = Interpretation.as_logged(ARM.n)
    before, after = (rms(some.in_sample(logged)) for some in (case, with_free_reversals(case, logs)))
    assert after < 0.6 * before
    assert with_free_reversals(case, logs).in_order().reversals


@pytest.mark.parametrize("seed", [1, 4, 9, 15])
def test_friction_that_varies_with_the_position_is_no_other_scale_of_one_sign(seed: int) -> None:
    """It is larger where a joint's weight has one sign: that effort seemed to be scaled by up to 60 % in one direction."""
    rng = np.random.default_rng(100 + seed)
    t, q, v, a = fourier(ARM.n, 20.0, 100.0, seed)
    tau = torques(ARM, Truth.of(ARM.n), q, v, a)
    size, phase = tau.std(axis=0), rng.uniform(0, 6, ARM.n)
    tau += 0.2 * size * np.sin(q + phase) * np.tanh(v / (0.03 * v.std(axis=0)))
    noise = rng.standard_normal((2, *q.shape))
    log = Recording("log", ARM.joints, t, q + 1e-5 * noise[0], effort=tau + 0.01 * size * noise[1])
    made = condition(log, ARM)
    logs = [(made.segments, made.cutoff)]
    case = LogGroup(ARM, logs).case()
    assert case is not None
    assert not [item for item in small_faults(case, logs) if item.decided]


@pytest.mark.parametrize("seed", [0, 5])
def test_friction_at_reversals_is_not_taken_for_a_part_of_another_effort(seed: int) -> None:
    """All joints start and stop together: the effort of one has the shape of another's friction, on a few moves."""
    made = condition(moves_with_sticking_friction(seed), ARM)
    case = LogGroup(ARM, [(made.segments, made.cutoff)]).case()
    assert case is not None
    rows = FaultRows.of(case)
    none = np.zeros((len(rows.samples), ARM.n))
    for j in range(ARM.n):
        trial, faults = FaultTrial.of(rows, j, none[:, :3], none, none[:, :3])
        leaks = [item for item in faults if item.id == "effort-crosstalk"]
        assert len(leaks) == ARM.n - 1
        gains = [trial.seen(ChosenColumns.without(item)) - trial.seen(ChosenColumns.of(item)) for item in leaks]
        assert max(gains) < 0.12


def test_a_joint_that_creeps_within_its_friction_is_no_evidence() -> None:
    """In the second log the last joint moves by 5 mrad, and holds whatever torque its friction lets it."""
    logs = []
    for k, travel in enumerate((1.0, 0.005)):
        t, q, v, a = fourier(ARM.n, 12.0, 100.0, k)
        q[:, 3], v[:, 3], a[:, 3] = travel * np.sin(2 * t), 2 * travel * np.cos(2 * t), -4 * travel * np.sin(2 * t)
        tau = torques(ARM, Truth.of(ARM.n), q, v, a)
        made = condition(Recording(f"log{k}", ARM.joints, t, q, effort=tau), ARM)
        logs.append((made.segments, made.cutoff))
    both, alone = LogGroup(ARM, logs).case(), LogGroup(ARM, logs[1:]).case()
    assert both is not None
    assert alone is not None
    samples = both.sampled(0.0)
    assert samples.moves.all()
    assert samples.glides[samples.log == 0, 3].mean() > 0.9
    assert not samples.glides[samples.log == 1, 3].any()
    assert samples.glides[samples.log == 1, :3].mean() > 0.9
    assert alone.moves.tolist() == [True, True, True, False]
    assert not alone.evidence(Interpretation.as_logged(ARM.n)).gram[:, 3].any()


def test_noise_of_a_joint_that_moves_for_a_moment_is_no_motion() -> None:
    """As of joints that are jogged one after the other, the last one only begun: it moves for less than 1 % of the time."""
    rng = np.random.default_rng(2)
    v = np.column_stack([np.sin(np.arange(500) / 30), 1e-3 * rng.standard_normal(500)])
    v[-4:, 1] = 0.3
    rows, travels = np.zeros_like(v), np.ones(v.shape, dtype=bool)
    block = np.arange(500) // 50
    samples = MotionSamples(rows, v, rows, rows, np.zeros((500, 2, 2)), block, 0 * block, np.arange(500) / 50, travels)
    assert np.flatnonzero(samples.glides[:, 1]).tolist() == [496, 497, 498, 499]
    assert samples.glides[:, 0].mean() > 0.95


def evidence_of(moving: Array, seed: int = 0) -> RigidEvidence:
    """One joint with white residual, which moves in some of the blocks only; ``moving``, shape (BLOCKS,)."""
    rng = np.random.default_rng(seed)
    speed = rng.uniform(-1, 1, BLOCKS * SAMPLES)
    friction = [
        rng.standard_normal(len(speed)),
        np.ones(len(speed)),
        speed,
        np.tanh(speed / 0.1),
        np.tanh(speed / 0.6),
        speed**2,
    ]
    columns = np.column_stack([rng.standard_normal((len(speed), INERTIAL)), *friction, rng.standard_normal(len(speed))])
    rows = (columns * np.repeat(moving, SAMPLES)[:, None]).reshape(BLOCKS, SAMPLES, -1)
    gram = np.einsum("bsk,bsl->bkl", rows, rows)[:, None]
    size = np.array([[np.sqrt(moving.mean())]])
    return RigidEvidence(gram, INERTIAL, np.ones(10, dtype=bool), np.ones(INERTIAL), size, np.full(BLOCKS, float(SAMPLES)))


def test_the_drift_of_a_joint_that_moves_in_few_blocks_has_their_degrees_of_freedom() -> None:
    few = (np.arange(BLOCKS) % 5 == 2).astype(float)
    found = evidence_of(few)
    changed = found.changing("offset", drift.along_log(BLOCKS))
    raw = drift._jackknifed(changed, np.ones((1, 1)), np.ones(1), lambda x: x[:, :, -2] / found.size)
    grown = drift.growth(found, np.ones((1, 1)), np.ones(1), np.full(1, 30))
    assert grown.size == pytest.approx(raw.size)
    expected = student.sf(np.abs(raw.size / raw.error), 2)  # three blocks
    assert student.sf(np.abs(grown.size / grown.error), BLOCKS - 1) == pytest.approx(expected)
    everywhere = evidence_of(np.ones(BLOCKS))
    changed = everywhere.changing("offset", drift.along_log(BLOCKS))
    raw = drift._jackknifed(changed, np.ones((1, 1)), np.ones(1), lambda x: x[:, :, -2] / everywhere.size)
    assert drift.growth(everywhere, np.ones((1, 1)), np.ones(1), np.full(1, 30)).error == pytest.approx(raw.error)
    grown = drift.growth(everywhere, np.ones((1, 1)), np.ones(1), np.full(1, 3))  # blocks within a leg are not independent
    expected = student.sf(np.abs(raw.size / raw.error), 3)
    assert student.sf(np.abs(grown.size / grown.error), BLOCKS - 1) == pytest.approx(expected)


@pytest.mark.parametrize(("moving", "found"), [(1.0, True), (0.2, False)])
def test_a_block_stands_out_by_the_effort_of_the_time_in_which_the_joint_moves(moving: float, found: bool) -> None:
    """Its error is as large as the mean effort over the whole log, which is small if the joint mostly rests."""
    acts = np.ones(BLOCKS) if moving == 1.0 else (np.arange(BLOCKS) % 5 == 2).astype(float)
    evidence = evidence_of(acts)
    squares = 0.01 * SAMPLES * moving * acts[:, None]
    squares[7] = 1.2 * SAMPLES * evidence.size**2
    assert (contact.find_contact(evidence, squares, squares, np.ones((BLOCKS, 1))) is not None) == found


@pytest.mark.parametrize(("left", "found"), [(0.1, False), (0.3, True)])
def test_a_block_that_only_other_blocks_fail_to_predict_is_no_contact(left: float, found: bool) -> None:
    """A speed or pose that it alone shows is extrapolated; explained in-sample, it contains no torque but the robot's own."""
    evidence = evidence_of(np.ones(BLOCKS))
    squares, fitted = 0.01 * SAMPLES * np.ones((BLOCKS, 1)), 1e-4 * SAMPLES * np.ones((BLOCKS, 1))
    squares[7], fitted[7] = 1.2 * SAMPLES * evidence.size**2, left**2 * SAMPLES * evidence.size**2
    alike = np.ones((BLOCKS, 1))
    assert (contact.find_contact(evidence, squares, fitted, alike) is not None) == found
    assert contact.find_contact(evidence, squares, fitted, np.where(np.arange(BLOCKS) == 7, 5.0, 1.0)[:, None] * alike) is None


def test_a_block_whose_poses_no_other_shows_has_a_large_leverage() -> None:
    """The way to the first pose of a grid, against the variance of a prediction by the columns themselves."""
    rng = np.random.default_rng(5)
    columns = rng.normal(size=(1, BLOCKS * SAMPLES, 9))
    columns[0, :, 2] *= 0.02
    columns[0, 3 * SAMPLES : 4 * SAMPLES, 2] *= 50.0
    gram = np.stack([x.transpose(0, 2, 1) @ x for x in np.split(columns, BLOCKS, axis=1)])
    found = Grams(gram, 4, np.ones(10, dtype=bool), np.ones(4), np.ones((1, 1)), np.full(BLOCKS, float(SAMPLES)))
    variance = prediction_variance(found, np.ones(1))
    rest = np.repeat(np.arange(BLOCKS) % FOLDS != 3 % FOLDS, SAMPLES)
    X, mine = columns[0, :, :-1], columns[0, 3 * SAMPLES : 4 * SAMPLES, :-1]
    assert variance[3, 0] == pytest.approx(1 + np.trace(mine @ np.linalg.inv(X[rest].T @ X[rest]) @ mine.T), rel=1e-3)
    assert np.flatnonzero(~comparable(variance, np.eye(BLOCKS))[:, 0]).tolist() == [3]


class Scored:
    """A case of which only the scores of interpretations are known."""

    robot = ARM

    def __init__(self, *scores: float) -> None:
        self.scores = {Interpretation.as_logged(ARM.n): scores[0]}
        self.other = scores[1]

    def judge(self, interpretation: Interpretation) -> SimpleNamespace:
        return SimpleNamespace(score=self.scores.get(interpretation, self.other))


@pytest.mark.parametrize(
    ("id", "explained", "still", "kept"),
    [
        ("effort-delay", 3.0, 0.2, 0),
        ("effort-scale", 3.0, 0.2, 0),
        ("effort-scale", 3.0, 0.8, 1),
        ("effort-scale", 0.5, 0.2, 1),
        ("effort-sign", 3.0, 0.2, 1),
    ],
)
def test_an_interpretation_that_friction_makes_needless_is_dropped(
    id: str, explained: float, still: float, kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Friction that grows with the load was a wrong scale of three efforts; what resembles no friction stays."""
    logged = Interpretation.as_logged(ARM.n)
    other = replace(logged, gain=(1.0, 1.3, 1.0, 1.0))
    step = SimpleNamespace(found=Hypothesis(Id.of(id), (1,), 0.3, other), gain=1.0)
    monkeypatch.setattr(arbitration, "without_load_friction", lambda case, logs: Scored(0.0, -still))
    monkeypatch.setattr(arbitration, "with_free_reversals", lambda case, logs: Scored(0.0, -1.0))
    monkeypatch.setattr(arbitration, "gains_of", lambda case, corrected: np.full(ARM.n, explained / ARM.n))
    found = Explanations(SimpleNamespace(logs=[]), Scored(0.0, -1.0), other, [step])  # type: ignore[arg-type, list-item]
    after = arbitration._besides_friction(found)
    assert len(after.steps) == kept
    assert after.interpretation == (other if kept else logged)


@pytest.mark.parametrize(("turns", "severity"), [(3.0, "warning"), (4.0, "refused")])
def test_logs_whose_joints_hardly_reverse_are_not_refused_for_differing(turns: float, severity: str) -> None:
    """What each of them lacks is extrapolated from the others: two reversals in each are the least."""
    group, logged = LogGroup(ARM, [([], 5.0), ([], 5.0)]), Interpretation.as_logged(ARM.n)
    case = SimpleNamespace(turns=turns)
    found = Explanations(group, case, logged, [], differing=[{1: ("gain", 5.0, 1)}])  # type: ignore[arg-type]
    first, (second,) = findings(found)
    assert first == []
    assert (second.id, second.severity) == ("log-differs", severity)


@pytest.mark.parametrize("explained", [True, False])
def test_a_drift_that_only_all_logs_together_show_is_explained_in_all_of_them(
    explained: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It remained in the log that its correction does not help by itself."""
    common = Change("friction", 0.0, 1.0, True, 2, 0.5)
    own = SimpleNamespace(left=SimpleNamespace(gains_over=lambda before: np.full(ARM.n, -1.0)))
    monkeypatch.setattr(arbitration, "each", lambda function, logs: [own for _ in logs])
    monkeypatch.setattr(arbitration, "along", lambda *_, **__: [None, None])
    monkeypatch.setattr(arbitration, "gains_of", lambda *_: np.full(ARM.n, 0.4 if explained else 0.0))
    group = LogGroup(ARM, [([], 5.0), ([], 5.0)])
    logged = Interpretation.as_logged(ARM.n)
    found = Explanations(group, Scored(0.0, 0.0), logged, [], changed=[common, common], left=[None, None])  # type: ignore[arg-type, list-item]
    after = arbitration._remaining(found, lambda case, logs: case, logged)
    assert after.changed == ([None, None] if explained else [common, common])


def test_a_pull_that_two_logs_show_is_told_without_a_joint() -> None:
    """As of a hose that pulls in both; a fault of the last link has no joint to name."""
    pull = SmallFault(Id.CONTACT_SPRING, (), 10.0, 9.0, 1.0, 9.0, np.array([[0.2], [0.1]]), numbers=4, logs=(0,))
    found = small_fault(ARM, [pull, replace(pull, logs=(1,), gain=0.9)])
    assert (found.id, found.joint) == ("contact-spring", None)
    assert "in this log, unlike the others" in found.message


@pytest.mark.parametrize(("second", "turns", "found"), [(1e-12, 5, {}), (1.0, 1, {}), (1.0, 5, {0: (1, pytest.approx(40.0))})])
def test_a_joint_that_rests_or_hardly_turns_in_all_other_logs_does_not_set_its_log_apart(
    second: float, turns: int, found: object
) -> None:
    """Jogged one after the other, or moved once: the second joint turns in the first log only, where friction leaves 40 %."""
    logs = [
        LogResidual(np.array([0.05, 0.4]), np.array([0.05, 0.5]), np.ones(2), np.array([5, 5])),
        LogResidual(np.array([0.05, 0.01]), np.array([0.05, 0.01]), np.array([1.0, second]), np.array([5, turns])),
    ]
    assert outlying_logs(logs) == found


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_joint_that_moves_in_one_log_only_shows_no_other_scale_of_its_effort(seed: int) -> None:
    """A gain that only this log has explains all its effort there by itself."""
    made = [condition(moves_with_sticking_friction(seed + 10 * k, ARM.n - k), ARM) for k in (0, 1)]
    group = LogGroup(ARM, [(item.segments, item.cutoff) for item in made])
    case, alone = group.case(), [examined_alone(ARM, None, log) for log in group.logs]
    assert case is not None
    assert differing_in(case, [own.left for own in alone if own is not None]) == {}


@pytest.mark.parametrize(("turns", "found"), [(4.0, True), (1.0, False)])
def test_logs_differ_by_more_errors_where_joints_hardly_reverse(turns: float, found: bool) -> None:
    """Blocks of one leg of a motion are alike, and overstate the significance of what a leg leaves unexplained."""
    first, second = (moves_with_sticking_friction(seed) for seed in (0, 1))
    first = replace(first, effort=first.effort * [1.0, 2.0, 1.0, 1.0])
    group = LogGroup(ARM, [(made.segments, made.cutoff) for made in (condition(log, ARM) for log in (first, second))])
    case, alone = group.case(), [examined_alone(ARM, None, log) for log in group.logs]
    assert case is not None
    logged = Interpretation.as_logged(ARM.n)
    left = [own.left for own in alone if own is not None]
    blocks = case.sampled(0.0).log_of_block
    assert bool(between(case.evidence(logged), blocks, logged.effort_map()[:, None], left, turns, KINDS)) is found


@pytest.mark.parametrize("what", ["friction", "effort"])
def test_a_log_of_cold_gears_has_no_other_scale_of_an_effort(what: str) -> None:
    """20 % more friction of all joints, or 10 % more of the fourth effort, in the first of three logs."""
    logs = []
    for k in range(3):
        t, q, v, a = fourier(ARM.n, 15.0, 100.0, seed=40 + k)
        truth, cold = Truth.of(ARM.n), 1.0 + 0.2 * (k == 0 and what == "friction")
        tau = torques(ARM, replace(truth, viscous=cold * truth.viscous, coulomb=cold * truth.coulomb), q, v, a)
        tau[:, 3] *= 1.0 + 0.1 * (k == 0 and what == "effort")
        noise = 0.02 * tau.std(axis=0) * np.random.default_rng(k).standard_normal(tau.shape)
        made = condition(Recording("log", ARM.joints, t, q, effort=tau + noise), ARM)
        logs.append((made.segments, made.cutoff))
    case = LogGroup(ARM, logs).case()
    assert case is not None
    found = next(iter(item for item in small_faults(case, logs) if item.decided), None)
    told = None if found is None else (found.id, found.joints, found.logs, round(found.size, 2))
    assert told == (None if what == "friction" else ("effort-scale", (3,), (0,), 0.1))


def test_logs_are_inspected_as_they_are_identified(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a low-pass of each log's own, the faster one seemed to differ from the others, and its efforts to be late."""
    logs = []
    for k, noise in enumerate((1e-6, 3e-4)):
        t, q, v, a = fourier(ARM.n, 12.0, 100.0, k)
        tau, q = torques(ARM, Truth.of(ARM.n), q, v, a), q + noise * np.random.default_rng(k).standard_normal(q.shape)
        logs.append(Recording(f"log{k}", ARM.joints, t, q, effort=tau))
    seen: list[list[float]] = []

    def none(robot: Robot, motions: Logs, *_: object) -> list[list[Judgement]]:
        seen.append([cutoff for _, cutoff in motions])
        return [[] for _ in motions]

    monkeypatch.setattr(examine, "physics_findings", none)
    for some in (logs[:1], logs[1:], logs):
        examine_logs(some, ARM, Drive.build(ARM.n), SignalConfig())
    first, second, common = seen
    assert first[0] > 1.2 * second[0]
    made = prepare.prepare_logs(logs, ARM, Drive.build(ARM.n), SignalConfig())
    assert common == [log.examined.cutoff for log in made]
