"""Zollo, Lopez, Spedaliere, Garcia Aracil and Guglielmelli, "Identification of dynamic parameters for robots with
elastic joints", Advances in Mechanical Engineering 7(2), 2015: its planar arm and its PUMA 560, and its noise table.

Run: ``python scripts/papers/c_elastic_joints.py`` (about a minute)

Both robots are simulated with rotors as bodies of their own, PD control of the motors with gravity compensation and
fifth-order B-splines as references. Signals are treated as in the paper: encoders of 1 250 000 counts a turn, Butterworth
filter of fifth order at 20 Hz (here forwards and backwards, on positions and torque alike), first-order differences,
8900 samples at 1 kHz. Stiffness, rotors, gears and friction of the planar arm are ours (zollo_2r_truth.yaml): the paper's
are lost, as are the numbers of its noise table.

The score is the paper's "normalised mean error", read in both ways: the mean of |estimate/truth − 1|, and
‖estimate − truth‖/‖truth‖, over the base parameters whose truth is not zero.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from paper_page import show, span, table

from urdf_ident import BaseParameters, Drive, ElasticModel, Robot, Segment
from urdf_ident.errors import EstimationError
from urdf_ident.estimation.elastic import compliance_form
from urdf_ident.estimation.uncertainty.covariance import with_covariance
from urdf_ident.friction import Coulomb, Offset, Stribeck, Viscous
from urdf_ident.linalg import Array
from urdf_ident.model.bundled import robot_path, truth_path
from urdf_ident.motion.trajectory import PiecewisePolynomial, b_spline_at_rest
from urdf_ident.signals.motor_side import Deflection
from urdf_ident.simulation.elastic.plant import ElasticPlant, MotorFriction, MotorPD
from urdf_ident.simulation.truth import FrictionTruth
from urdf_ident.statistics.accumulate import accumulate
from urdf_ident.statistics.fit import Fit, fit_base
from urdf_ident.statistics.rows import RowFilter

RATE, SAMPLES = 1000.0, 8900  # [Hz]
COUNT = 2 * np.pi / 1_250_000  # [rad], on links and, after the gear, on motors
CUTOFF, ORDER = 20.0, 5  # [Hz]
WIDTH = 0.02  # [rad/s] of the smooth sign, in plant and model
STRIBECK = 0.2  # peak of stiction over Coulomb friction, of which the model knows nothing, as in the paper's Fig. 3
SIGNALS = ("q", "v", "a", "qm", "vm", "am")


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
        return np.concatenate([self.robot.inertials.ravel(), terms])

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


def puma() -> Case:
    """The PUMA 560; its motion reaches 5 rad/s."""
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
        swing=swing,
        points=22,
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
    """Both readings of the normalised mean error, the first also without static friction, and the stiffness.

    ``fit`` has standard errors by the jackknife over blocks of time.
    """

    mean: float
    norm: float
    without_static: float
    stiffness: dict[str, float]
    base: BaseParameters
    fit: Fit
    truth: Array

    @property
    def worst_stiffness(self) -> float:
        """Largest relative error of a stiffness."""
        return max(abs(error) for error in self.stiffness.values())


def score(base: BaseParameters, fit: Fit, truth: Array) -> Score:
    """Compares base parameters with those of the truth, shape (p,)."""
    exact, estimate = base.of(truth), fit.params
    kept = np.abs(exact) > 1e-9
    relative = estimate[kept] / exact[kept] - 1.0
    labels = np.array(base.labels)[kept]
    static = np.array([label.startswith(("Fc", "offset")) for label in labels])
    stiffness = {str(label): float(e) for label, e in zip(labels, relative, strict=True) if label.startswith("K_")}
    norm = float(np.linalg.norm(estimate[kept] - exact[kept]) / np.linalg.norm(exact[kept]))
    mean, rest = float(np.abs(relative).mean()), float(np.abs(relative[~static]).mean())
    return Score(mean, norm, rest, stiffness, base, fit, exact)


def least_squares(case: Case, segment: Segment, static: bool = True, **options: Any) -> Score:
    """The paper's estimator: link and motor rows, weighted once by the residuals of ordinary least squares."""
    model = case.model(static, **options)
    base, statistics = model.base(), accumulate(model, "c", [segment], RowFilter(1))
    plain = fit_base(statistics, base, method="ols")
    return score(base, fit_base(statistics, base, weights=plain.weights), case.truth(model))


def errors_in_variables(case: Case, segment: Segment, static: bool = True, **options: Any) -> Score:
    """Ours: link rows in compliance form beside the sum of link and motor rows."""
    model = case.model(static, rows="sum", **options)
    base, statistics = model.base(), accumulate(model, "c", [segment], RowFilter(1))
    compliant = compliance_form(statistics, model, base)
    fit = with_covariance(fit_base(compliant, base), compliant, "jackknife", model=model)
    return score(base, fit, case.truth(model))


def unseen(case: Case, segment: Segment) -> tuple[Deflection, ...]:
    """How each spring moves, and which of them the encoders cannot show."""
    apart = np.std(np.asarray(segment.qm) - segment.q, axis=0)
    return tuple(Deflection(joint, float(rms), COUNT, 10.0) for joint, rms in zip(case.robot.joints, apart, strict=True))


def spread(make: Callable[[], Case], static: bool, seeds: Sequence[int]) -> list[Score]:
    """One score a seed of the motion; springs that are not seen are left out."""
    case, found = make(), []
    for seed in seeds:
        segment = processed(case.run(static, seed))
        hidden = [item.joint for item in unseen(case, segment) if not item.seen]
        found.append(errors_in_variables(case, segment, static, rigid=hidden))
    return found


def parameters(found: Score, without: tuple[str, ...] = ()) -> tuple[str, str]:
    """Every parameter but some with its 95 % interval and whether that holds the real value, as a table; how many do."""
    rows, held = [], 0
    for label, exact, value, ends in zip(found.base.labels, found.truth, found.fit.params, found.fit.conf_int(), strict=True):
        if abs(exact) > 1e-9 and not label.startswith(without):
            inside = ends[0] <= exact <= ends[1]
            held += inside
            error = f"{100 * (value / exact - 1):+.2g} %"
            rows.append((label, f"{exact:.5g}", f"{value:.5g}", error, span(ends, ".5g"), "yes" if inside else "no"))
    heads = ("parameter", "real", "estimated", "error", "95 % interval", "holds the real value")
    return table(heads, rows), f"{held} of {len(rows)}"


def noise_table(run: Segment, seed: int = 1) -> str:
    """The planar arm under noise, by the paper's rows and by the compliance form."""
    case, rows = planar(), []
    for filtered in (True, False):
        for decibel in (20.0, 70.0, 80.0, 100.0, 200.0, np.inf):
            cells = []
            for estimator in (least_squares, errors_in_variables):
                try:
                    found = estimator(case, noisy(run, decibel, seed, filtered), False)
                    cells += [found.mean, f"{100 * found.worst_stiffness:.2g} %"]
                except EstimationError:
                    cells += ["no spring found", "-"]
            rows.append((f"{decibel:g}", "before" if filtered else "after", *cells))
    heads = ("SNR [dB]", "noise … the filter", "paper's rows: mean error", "worst K", "compliance form: mean error", "worst K")
    return table(heads, rows)


def figures(pictures: Path | None = None, seeds: Sequence[int] = (0, 1, 2)) -> dict[str, Any]:
    """The figures of the page."""
    kinds = {"smooth": (planar, False), "static": (planar, True), "puma": (puma, True)}
    scores = {name: spread(make, static, seeds) for name, (make, static) in kinds.items()}
    tables = {name: parameters(found[0]) for name, found in scores.items()}
    run, case = planar().run(static=False), planar()
    wrist = scores["puma"][0]
    kept = np.abs(wrist.truth) > 1e-9
    worst = np.abs(wrist.fit.params[kept] / wrist.truth[kept] - 1.0).max()
    return {
        "seeds": len(seeds),
        **{f"mean_{name}": span(item.mean for item in found) for name, found in scores.items()},
        **{f"table_{name}": text for name, (text, _) in tables.items()},
        **{f"held_{name}": count for name, (_, count) in tables.items()},
        "held_rest": parameters(wrist, ("Fv", "Fc", "offset"))[1],
        "worst": f"{100 * worst:.0f} %",
        "deflection": np.degrees(np.abs(run.qm - run.q).max(axis=0)),
        "at_80": least_squares(case, noisy(run, 80.0, 1), False).mean,
        "at_20": least_squares(case, noisy(run, 20.0, 1), False).mean,
        "at_70": errors_in_variables(case, noisy(run, 70.0, 1), False).mean,
        "noise": noise_table(run),
    }


if __name__ == "__main__":
    show("zollo_2015", figures())
