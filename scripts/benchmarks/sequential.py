#!/usr/bin/env python
"""Learning from earlier logs, and periods: what was predicted, what came, and whether two motions beat one.

All on the simulated closed-loop UR10e of interval_coverage.py: torque noise that remembers its past, encoder counts, friction
that the model can have (``--stiction``: dry friction instead, so that the model is wrong at every reversal).

- forecast: a random motion of 10 s is identified; another 10 s are designed after it; standard errors predicted before that
  motion is driven against those of both logs afterwards, and the true errors of the estimate.
- two: 10 s designed blind and 10 s designed after their log, against 20 s designed blind, by the true errors of the base
  parameters that 20 s leave weakest; noise is drawn anew many times. Errors count by the torque that they cost.
- periods: five periods of 10 s: variance of the noise told by their scatter over the true one, and how often 95 % intervals
  of averaged and of plain logs hold the truth.

    python scripts/benchmarks/sequential.py [--seeds 10] [--runs 25] [--only forecast|two|periods] [--stiction]
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy

import numpy as np
from interval_coverage import COUNTS, RATE, Arm

from urdf_ident.estimation.uncertainty.covariance import with_covariance
from urdf_ident.excitation.design import design_excitation
from urdf_ident.excitation.sequential import forecast
from urdf_ident.logs.recording import Recording
from urdf_ident.motion.fourier import random_fourier
from urdf_ident.motion.limits import Limits
from urdf_ident.motion.trajectory import Trajectory
from urdf_ident.pipeline.identify import identify
from urdf_ident.samples import Segment
from urdf_ident.signals.config import SignalConfig
from urdf_ident.signals.prepare import prepare_log, prepare_logs
from urdf_ident.simulation.controllers import PDGravity
from urdf_ident.simulation.settings import Noise, Sensors
from urdf_ident.simulation.simulate import simulate
from urdf_ident.simulation.simulated_log import measure
from urdf_ident.statistics.accumulate import build_statistics
from urdf_ident.statistics.fit import fit_base

#: Torque noise, about as on a real arm of this size [N·m].
SIGMA = np.array([1.5, 1.8, 0.9, 0.22, 0.18, 0.12])
HALF, WHOLE, WEAKEST, BUDGET = 10.0, 20.0, 10, 4.0


def driven(arm: Arm, motion: Trajectory) -> Segment:
    """The closed-loop motion with its torque, without any imperfection of sensors."""
    controller = PDGravity.tuned(arm.plant.robot, bandwidth=5.0, rotor=np.diag(arm.plant.rotor))
    return simulate(arm.plant, controller, motion, rate=RATE, substeps=5).truth


def measured(arm: Arm, truth: Segment, rho: float, seed: int, name: str = "log") -> Recording:
    """A log of it."""
    sensors = Sensors(counts=COUNTS, velocity="none", torque_noise=Noise(sigma=SIGMA.tolist(), correlation=rho))
    seen = measure(truth, sensors, seed)
    return Recording(name, arm.model.robot.joints, seen.time, seen.position, effort=seen.torque)


def forecasts(arm: Arm, seeds: int, rho: float) -> None:
    """Predicted over found standard errors, parameter by parameter."""
    limits, medians, ratios, errors = Limits.from_robot(arm.model.robot), [], [], []
    for seed in range(seeds):
        first = measured(arm, driven(arm, random_fourier(limits, HALF, 5, seed, fill=0.4)), rho, seed, "first")
        earlier = identify(arm.model, [first])
        design = design_excitation(arm.model, HALF, seed=seed, budget=BUDGET, after=earlier)
        told = forecast(earlier, design.trajectory, design.limits)
        both = identify(arm.model, [first, measured(arm, driven(arm, design.trajectory), rho, 1000 + seed, "next")])
        ratio = told.after / both.fit.bse
        medians.append(np.median(ratio))
        ratios.append(ratio)
        errors.append((both.fit.params - arm.truth) / told.after)
        gain = np.median((told.before / told.after)[told.weakest])
        print(
            f"  seed {seed}: median {medians[-1]:.2f}, weakest {len(told.weakest)} predicted {gain:.3g} times smaller, "
            f"found {np.median((earlier.fit.bse / both.fit.bse)[told.weakest]):.3g}",
            flush=True,
        )
    every = np.concatenate(ratios)
    print(
        f"forecast, rho {rho:g}: predicted over found standard error, median over parameters: mean {np.mean(medians):.2f}, "
        f"least {min(medians):.2f}, most {max(medians):.2f} over {seeds} seeds; of all parameters "
        f"{100 * np.mean((every > 0.8) & (every < 1.25)):.0f} % within 20-25 %, 10 to 90 %: {np.quantile(every, 0.1):.2f} to "
        f"{np.quantile(every, 0.9):.2f}; true errors over predicted ones, RMS {np.sqrt(np.mean(np.square(errors))):.2f}"
    )


def two_against_one(arm: Arm, seeds: int, runs: int, rho: float) -> None:
    """True errors of the weakest parameters: two motions of half the length over one."""
    rows = []
    for seed in range(seeds):
        blind = {
            name: design_excitation(arm.model, seconds, criterion, seed, budget=BUDGET, harmonics=round(seconds / 2))
            for name, seconds, criterion in (("half", HALF, "auto"), ("whole", WHOLE, "auto"), ("whole A", WHOLE, "A"))
        }
        truths = {name: driven(arm, design.trajectory) for name, design in blind.items()}
        earlier = identify(arm.model, [measured(arm, truths["half"], rho, seed, "first")])
        after = design_excitation(arm.model, HALF, seed=seed + 100, budget=BUDGET, harmonics=5, after=earlier)
        told = forecast(earlier, after.trajectory, after.limits)
        truths["next"] = driven(arm, after.trajectory)
        errors = {
            "two": error_sizes(arm, [truths["half"], truths["next"]], runs, rho),
            "same twice": error_sizes(arm, [truths["half"], truths["half"]], runs, rho),
            **{name: error_sizes(arm, [truths[name]], runs, rho) for name in ("whole", "whole A")},
        }
        cost = {name: error * told.size for name, error in errors.items()}
        weak = np.argsort(-cost["whole"])[:WEAKEST]
        rows.append(
            [np.median((cost[name] / cost["whole"])[weak]) for name in ("two", "same twice", "whole A")]
            + [np.median(cost["two"] / cost["whole"]), cost["two"].max() / cost["whole"].max()]
        )
        print(f"  seed {seed}: " + " ".join(f"{x:.2f}" for x in rows[-1]), flush=True)
    two, twice, other, every, worst = np.median(rows, axis=0)
    print(
        f"two of {HALF:g} s over one of {WHOLE:g} s, rho {rho:g}, true errors of the {WEAKEST} weakest: {two:.2f} "
        f"(all parameters {every:.2f}, worst {worst:.2f}); the same 10 s twice {twice:.2f}; "
        f"one blind motion by criterion A {other:.2f}"
    )


def error_sizes(arm: Arm, truths: list[Segment], runs: int, rho: float) -> np.ndarray:
    """Root mean square error of each base parameter over draws of the noise."""
    found = []
    for run in range(runs):
        recordings = [measured(arm, truth, rho, 10000 * k + run, f"log{k}") for k, truth in enumerate(truths)]
        logs = prepare_logs(recordings, arm.model.robot, arm.model.drive, SignalConfig())
        found.append(fit_base(build_statistics(arm.model, logs), arm.model.base()).params - arm.truth)
    return np.asarray(np.sqrt(np.mean(np.square(found), axis=0)))


def periods(arm: Arm, runs: int, rho: float, count: int = 5) -> None:
    """Variance of the noise, and coverage of intervals."""
    limits, held = Limits.from_robot(arm.model.robot), dict[str, list[np.ndarray]]()
    variance: list[np.ndarray] = []
    kinds = set()
    for trajectory in range(2):
        truth = driven(arm, random_fourier(limits, HALF, 5, trajectory, fill=0.7, periods=count))
        for run in range(runs):
            recording = measured(arm, truth, rho, 1000 * trajectory + run)
            for mode in ("auto", "off"):
                log = prepare_log(recording, arm.model.robot, arm.model.drive, SignalConfig(periodic=mode))
                statistics = build_statistics(arm.model, [log])
                fit = with_covariance(fit_base(statistics, arm.model.base()), statistics, model=arm.model, logs=[log])
                low, high = fit.conf_int().T
                held.setdefault(mode, []).append((low <= arm.truth) & (arm.truth <= high))
                if log.conditioned.averaged is not None:
                    variance.append(log.conditioned.averaged.noise**2 / SIGMA**2)
                    kinds.add(fit.covariance_kind.split(" (")[0][:60])
    ratio = np.array(variance)
    print(
        f"{count} periods of {HALF:g} s, rho {rho:g}: noise variance over truth {ratio.mean():.3f}, mean over joints of one "
        f"log {ratio.mean(axis=1).min():.3f} to {ratio.mean(axis=1).max():.3f}, single joints within 10 %: "
        f"{100 * np.mean(np.abs(ratio - 1) < 0.1):.0f} %; 95 % intervals hold the truth, averaged "
        f"{100 * np.mean(held['auto']):.1f} % (worst parameter {100 * np.mean(held['auto'], axis=0).min():.0f} %), plain "
        f"{100 * np.mean(held['off']):.1f} % ({100 * np.mean(held['off'], axis=0).min():.0f} %); {', '.join(sorted(kinds))}",
        flush=True,
    )


def main() -> None:
    """Prints ratios and coverage."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--runs", type=int, default=25)
    parser.add_argument("--rho", default="0,0.9")
    parser.add_argument("--only", choices=("forecast", "two", "periods"))
    parser.add_argument("--stiction", action="store_true")
    chosen = parser.parse_args()
    arm = Arm.build(stiction=chosen.stiction)
    for rho in map(float, chosen.rho.split(",")):
        if chosen.only in (None, "forecast"):
            forecasts(arm, chosen.seeds, rho)
        if chosen.only in (None, "two"):
            two_against_one(arm, min(chosen.seeds, 5), chosen.runs, rho)
        if chosen.only in (None, "periods"):
            periods(arm, chosen.runs, rho)


if __name__ == "__main__":
    main()
