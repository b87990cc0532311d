"""Zollo, Lopez, Spedaliere, Garcia Aracil and Guglielmelli, "Identification of dynamic parameters for robots with
elastic joints", Advances in Mechanical Engineering 7(2), 2015: its planar arm and its PUMA 560, and its noise table.

Run: ``.venv/bin/python scripts/papers/c_elastic_joints.py [--only planar|puma|noise|spread] [--seed 0]`` (about four minutes)

Both robots are simulated with rotors as bodies of their own, PD control of the motors with gravity compensation and
fifth-order B-splines as references. Signals are treated as in the paper: encoders of 1 250 000 counts a turn, Butterworth
filter of fifth order at 20 Hz (here forwards and backwards, on positions and torque alike), first-order differences,
8900 samples at 1 kHz. Stiffness, rotors, gears and friction of the planar arm are ours (zollo_2r_truth.yaml): the paper's
are lost, as are the numbers of its noise table.

The score is the paper's "normalised mean error", read in both ways: the mean of |estimate/truth − 1|, and
‖estimate − truth‖/‖truth‖, over the base parameters whose truth is not zero.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import yaml

from urdf_ident.errors import EstimationError
from urdf_ident.estimation.elastic import compliance_form
from urdf_ident.friction import Coulomb, Offset, Stribeck, Viscous
from urdf_ident.linalg import Array
from urdf_ident.model.base import BaseParameters
from urdf_ident.model.bundled import robot_path, truth_path
from urdf_ident.model.drive import Drive
from urdf_ident.model.elasticity import ElasticModel
from urdf_ident.model.prior import lumped_inertials
from urdf_ident.model.robot import Robot
from urdf_ident.motion.splines import b_spline_at_rest
from urdf_ident.motion.trajectory import PiecewisePolynomial
from urdf_ident.samples import Segment
from urdf_ident.signals.motor_side import Deflection
from urdf_ident.simulation.elastic.plant import ElasticPlant, MotorFriction, MotorPD
from urdf_ident.simulation.friction_truth import FrictionTruth
from urdf_ident.statistics.accumulate import accumulate
from urdf_ident.statistics.fit import Fit, fit_base
from urdf_ident.statistics.rows import RowFilter

RATE, SAMPLES = 1000.0, 8900  # [Hz]
COUNT = 2 * np.pi / 1_250_000  # [rad], on links and, after the gear, on motors
CUTOFF, ORDER = 20.0, 5  # [Hz]
WIDTH = 0.02  # [rad/s] of the smooth sign, in plant and model
STRIBECK = 0.2  # peak of stiction over Coulomb friction, of which the model knows nothing, as in the paper's Fig. 3
SIGNALS = ("q", "v", "a", "qm", "vm", "am")
PAPER = {"planar": (0.00862, 0.103), "puma560": (None, 0.123)}  # without and with static friction


@dataclass(frozen=True, eq=False)
class Case:
    """A robot with elastic joints whose truth is known: SI units, after the gear, shape (n,) each."""

    name: str
    robot: Robot
    ratio: Array
    values: dict[str, Array]
    home: Array
    swing: Array
    points: int
    kp: Array
    kd: Array

    def plant(self, static: bool = True) -> ElasticPlant:
        """With or without static friction (Coulomb and its Stribeck peak)."""
        v = self.values
        laws = [Viscous.of(v["Fv"])]
        if static:
            laws += [Coulomb.of(v["Fc"]), Offset.of(v["offset"]), Stribeck.of(STRIBECK * v["Fc"], velocity=0.05)]
        friction = MotorFriction(FrictionTruth(self.robot.n, tuple(laws)), WIDTH)
        return ElasticPlant(self.robot, stiffness=v["K"], rotor_inertia=v["Ia"], ratio=self.ratio, friction=friction)

    def model(self, static: bool = True, **options: Any) -> ElasticModel:
        """With the friction that the plant has, but for the Stribeck peak."""
        friction: list[Any] = ["viscous"]
        if static:
            friction += [{"term": "coulomb", "width": WIDTH}] + ["offset"] * bool(self.values["offset"].any())
        drive = Drive.build(self.robot.n, reduction=self.ratio)
        return ElasticModel(self.robot, drive=drive, friction=friction, preload=False, **options)

    def truth(self, model: ElasticModel) -> Array:
        """Its parameters."""
        joints = self.robot.joints
        terms = [self.values[p.symbol][joints.index(p.owner)] for p in model.parameters[model.n_inertial :]]
        return np.concatenate([lumped_inertials(self.robot).ravel(), terms])

    def reference(self, seed: int, duration: float) -> PiecewisePolynomial:
        """A random spline that starts and ends at rest."""
        offset = np.random.default_rng(seed).uniform(-1.0, 1.0, (self.points, self.robot.n)) * self.swing
        return b_spline_at_rest(self.robot.joints, self.home, self.home + offset, self.home, duration)

    def run(self, static: bool = True, seed: int = 0, samples: int = SAMPLES, step: float = 1e-3) -> Segment:
        """Simulates the motion."""
        spline = self.reference(seed, samples / RATE)
        law = MotorPD(self.plant(static), lambda t: spline.evaluate(t)[:2], self.kp, self.kd)
        return law.plant.simulate(law, (samples - 1) / RATE, start=self.home, rate=RATE, step=step)


def planar() -> Case:
    """The planar arm in a vertical plane."""
    truth = yaml.safe_load(truth_path("zollo_2r").read_text(encoding="utf-8"))
    values = {
        "K": truth["stiffness"],
        "Ia": truth["rotor_inertia"],
        "offset": [0.0, 0.0],
        "Fv": truth["friction"]["viscous"],
        "Fc": truth["friction"]["coulomb"],
    }
    return Case(
        "planar",
        Robot.from_urdf(robot_path("zollo_2r")),
        np.array(truth["gear"]),
        {k: np.array(v) for k, v in values.items()},
        home=np.array([-np.pi / 2, 0.0]),
        swing=np.array([1.9, 1.9]),
        points=14,
        kp=np.array([2000.0, 1000.0]),
        kd=np.array([300.0, 100.0]),
    )


def puma(vigorous: bool = True) -> Case:
    """The PUMA 560; vigorous motion reaches 5 rad/s, gentle motion half of it."""
    truth = yaml.safe_load(truth_path("puma560").read_text(encoding="utf-8"))
    ratio = np.diag(np.array(truth["reduction"]))
    motor, friction = truth["motor"], truth["motor"]["friction"]
    plus, minus = (np.array(friction["asymmetric"][key]) for key in ("Fcp", "Fcn"))
    values = {
        "K": np.array(truth["stiffness"]),
        "Ia": np.array(motor["inertia"]) * ratio**2,
        "Fv": np.array(friction["viscous"]) * ratio**2,
        "Fc": 0.5 * (plus + minus) * np.abs(ratio),
        "offset": 0.5 * (plus - minus) * ratio,
    }
    robot = Robot.from_urdf(robot_path("puma560"))
    lower, upper = robot.limit("lower"), robot.limit("upper")
    swing = np.minimum((upper - lower) / 2, 2.0)
    return Case(
        "puma560",
        robot,
        ratio,
        values,
        home=(lower + upper) / 2,
        swing=swing if vigorous else 0.8 * swing,
        points=22 if vigorous else 14,
        kp=np.array([8000.0, 12000, 5000, 1500, 1200, 1200]),
        kd=np.array([700.0, 900, 350, 80, 70, 70]),
    )


def smooth(x: Array) -> Array:
    """The paper's filter, forwards and backwards."""
    from scipy.signal import butter, sosfiltfilt

    return np.asarray(sosfiltfilt(butter(ORDER, CUTOFF, fs=RATE, output="sos"), x, axis=0, padlen=300))


def processed(run: Segment) -> Segment:
    """The paper's processing of what encoders and torque sensors give.

    First-order differences before and after a sample are averaged, so that position, velocity and acceleration belong
    to the same instant. Half a second at each end, where the filter starts up and the arm rests, is left out.
    """
    q, qm = (smooth(np.round(x / COUNT) * COUNT) for x in (run.q, run.qm))
    before, after = ((x[1:-1] - x[:-2] for x in (q, qm)), (x[2:] - x[1:-1] for x in (q, qm)))
    steps = [(first, second) for first, second in zip(before, after, strict=True)]
    v, vm = ((first + second) * RATE / 2 for first, second in steps)
    a, am = ((second - first) * RATE**2 for first, second in steps)
    segment = Segment("c", 0.0, RATE, q[1:-1], v, a, smooth(run.tau)[1:-1], qm[1:-1], vm, am)
    return segment.slice(20, len(segment) - 20)


def noisy(run: Segment, decibel: float, seed: int, filtered: bool = True) -> Segment:
    """The paper's noise: Gaussian, on position, velocity and acceleration of motors and links, before (or after) the filter."""
    rng = np.random.default_rng(seed)
    signals = {}
    for name in SIGNALS:
        x = getattr(run, name)
        noise = rng.standard_normal(x.shape) * np.sqrt(np.mean(x**2, axis=0)) * 10 ** (-decibel / 20)
        signals[name] = smooth(x + noise) if filtered else smooth(x) + noise
    segment = Segment("c", 0.0, RATE, tau=smooth(run.tau), **signals)
    return segment.slice(20, len(segment) - 20)


@dataclass(frozen=True, eq=False)
class Score:
    """Both readings of the normalised mean error, the first also without static friction, and the stiffness."""

    mean: float
    norm: float
    without_static: float
    stiffness: dict[str, float]
    base: BaseParameters
    estimate: Array
    truth: Array

    @property
    def worst_stiffness(self) -> float:
        """Largest relative error of a stiffness."""
        return max(abs(error) for error in self.stiffness.values())


def score(base: BaseParameters, estimate: Array, truth: Array) -> Score:
    """Compares base parameters, shape (b,), with those of the truth, shape (p,)."""
    exact = base.of(truth)
    kept = np.abs(exact) > 1e-9
    relative = estimate[kept] / exact[kept] - 1.0
    labels = np.array(base.labels)[kept]
    static = np.array([label.startswith(("Fc", "offset")) for label in labels])
    stiffness = {str(label): float(e) for label, e in zip(labels, relative, strict=True) if label.startswith("K_")}
    norm = float(np.linalg.norm(estimate[kept] - exact[kept]) / np.linalg.norm(exact[kept]))
    mean, rest = float(np.abs(relative).mean()), float(np.abs(relative[~static]).mean())
    return Score(mean, norm, rest, stiffness, base, estimate, exact)


def least_squares(case: Case, segment: Segment, static: bool = True, **options: Any) -> Score:
    """The paper's estimator: link and motor rows, weighted once by the residuals of ordinary least squares."""
    model = case.model(static, **options)
    base, statistics = model.base(), accumulate(model, "c", [segment], RowFilter(1))
    plain = fit_base(statistics, base, method="ols")
    return score(base, fit_base(statistics, base, weights=plain.weights).params, case.truth(model))


def errors_in_variables(case: Case, segment: Segment, static: bool = True, **options: Any) -> Score:
    """Ours: link rows in compliance form beside the sum of link and motor rows."""
    model = case.model(static, rows="sum", **options)
    base, statistics = model.base(), accumulate(model, "c", [segment], RowFilter(1))
    fit: Fit = fit_base(compliance_form(statistics, model, base), base)
    return score(base, fit.params, case.truth(model))


def unseen(case: Case, segment: Segment) -> tuple[Deflection, ...]:
    """How each spring moves, and which of them the encoders cannot show."""
    apart = np.std(np.asarray(segment.qm) - segment.q, axis=0)
    return tuple(Deflection(joint, float(rms), COUNT, 10.0) for joint, rms in zip(case.robot.joints, apart, strict=True))


def report(label: str, found: Score, paper: float | None) -> None:
    """One line."""
    said = "-" if paper is None else f"{paper:g}"
    print(f"  {label:<58} {found.mean:10.2e} {found.norm:10.2e} {found.without_static:12.2e}   {said}")


def header(title: str) -> None:
    """Titles of :func:`report`'s columns."""
    print(f"\n{title}\n  {'':<58} {'mean':>10} {'norm':>10} {'mean w/o Fc':>12}   paper")


def planar_table(seed: int) -> None:
    """The planar arm, without and with static friction."""
    case = planar()
    header("Planar 2R: normalised mean error")
    for static, paper in ((False, PAPER["planar"][0]), (True, PAPER["planar"][1])):
        run = case.run(static, seed)
        name = "with static friction (Stribeck in the plant)" if static else "without static friction"
        report(f"{name}, link and motor rows", least_squares(case, processed(run), static), paper)
        found = errors_in_variables(case, processed(run), static)
        report(f"{name}, compliance form", found, paper)
    apart = np.degrees(np.abs(run.qm - run.q).max(axis=0))
    print(f"  largest deflection {apart[0]:.2f} and {apart[1]:.2f} deg (paper: 0.39 and 0.10)")
    for label, value, exact in zip(found.base.labels, found.estimate, found.truth, strict=True):
        if abs(exact) > 1e-9:
            print(f"    {label:<16} {value:12.6g} {exact:12.6g}   {value / exact - 1:+.1e}")


def puma_table(seed: int) -> None:
    """The PUMA 560, vigorous and gentle."""
    header("PUMA 560: normalised mean error")
    for vigorous in (True, False):
        case = puma(vigorous)
        run = case.run(True, seed)
        segment, name = processed(run), "vigorous" if vigorous else "gentle"
        springs = unseen(case, segment)
        hidden = [item.joint for item in springs if not item.seen]
        report(f"{name}, every stiffness estimated, as the paper did", least_squares(case, segment), PAPER["puma560"][1])
        report(f"{name}, unseen stiffness left out", errors_in_variables(case, segment, rigid=hidden), PAPER["puma560"][1])
        counts = ", ".join(f"{item.joint} {item.counts:.3g}{'' if item.seen else ' (unseen)'}" for item in springs)
        print(f"    up to {np.abs(run.v).max():.1f} rad/s; deflection in encoder counts, rms: {counts}")


def noise_table(seed: int) -> None:
    """The planar arm under noise."""
    case = planar()
    run = case.run(False, seed)
    print("\nPlanar 2R under sensor noise, without static friction (paper: small from 80 dB on, very high below)")
    print(f"  {'noise':<22} {'SNR':>6}   {'link + motor rows':>19} {'worst K':>9}   {'compliance form':>17} {'worst K':>9}")
    for filtered in (True, False):
        for decibel in (20.0, 70.0, 80.0, 100.0, 200.0, np.inf):
            segment = noisy(run, decibel, seed + 1, filtered)
            cells = []
            for estimator in (least_squares, errors_in_variables):
                try:
                    found = estimator(case, segment, False)
                    cells += [f"{found.mean:.2e}", f"{100 * found.worst_stiffness:.2g} %"]
                except EstimationError:
                    cells += ["no spring found", "-"]
            where = "before the filter" if filtered else "after the filter"
            print(f"  {where:<22} {decibel:>6g}   {cells[0]:>19} {cells[1]:>9}   {cells[2]:>17} {cells[3]:>9}")


def spread(make: Callable[[], Case], static: bool, seeds: Sequence[int]) -> list[Score]:
    """The same experiment with other motions: link and motor rows, as the paper; springs that are not seen are left out.

    Args:
        make: Makes the case.
        static: With static friction or without.
        seeds: Of the motions.

    Returns:
        One score a seed.
    """
    case, found = make(), []
    for seed in seeds:
        segment = processed(case.run(static, seed))
        hidden = [item.joint for item in unseen(case, segment) if not item.seen]
        found.append(errors_in_variables(case, segment, static, rigid=hidden))
    return found


def worst_parameter(found: Score) -> str:
    """Label of the base parameter with the largest relative error."""
    kept = np.abs(found.truth) > 1e-9
    relative = np.abs(found.estimate[kept] / found.truth[kept] - 1.0)
    return str(np.array(found.base.labels)[kept][int(np.argmax(relative))])


def spread_table(seeds: int) -> None:
    """What other motions change: the paper has one."""
    print(f"\nNormalised mean error over {seeds} seeds of the motion, compliance form, unseen stiffness left out")
    cases = (
        ("planar, without static friction", planar, False, PAPER["planar"][0]),
        ("planar, with static friction", planar, True, PAPER["planar"][1]),
        ("PUMA 560, vigorous", puma, True, PAPER["puma560"][1]),
    )
    for name, make, static, paper in cases:
        found = spread(make, static, range(seeds))
        means = np.array([item.mean for item in found])
        worst = [worst_parameter(item) for item in found]
        often = max(set(worst), key=worst.count)
        print(
            f"  {name:<34} {means.min():.2e} to {means.max():.2e}, median {np.median(means):.2e} (paper: {paper:g}); "
            f"the largest error is most often that of {often} ({worst.count(often)} of {seeds})"
        )


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--only", choices=("planar", "puma", "noise", "spread"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=5, help="number of motions whose spread is shown")
    arguments = parser.parse_args()
    tables = {"planar": planar_table, "puma": puma_table, "noise": noise_table}
    for name, table in tables.items():
        if arguments.only in (None, name):
            table(arguments.seed)
    if arguments.only in (None, "spread"):
        spread_table(arguments.seeds)


if __name__ == "__main__":
    main()
