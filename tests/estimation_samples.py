"""Logs ready for the estimators, made from segments with known noise."""

from dataclasses import replace

import numpy as np
from motion_samples import truth
from scipy.signal import lfilter

from urdf_ident import BaseParameters, DynamicModel, Identification, Recording, Segment
from urdf_ident.estimation.estimators.estimator import EstimatorInput
from urdf_ident.estimation.uncertainty.covariance import with_covariance
from urdf_ident.model.prior import inertial_prior, with_joint_terms
from urdf_ident.signals.condition import Conditioned
from urdf_ident.signals.prepare import PreparedLog
from urdf_ident.signals.quality.report import QualityReport
from urdf_ident.statistics.accumulate import build_statistics
from urdf_ident.statistics.fit import fit_base
from urdf_ident.statistics.rows import base_rows, row_pieces


def as_log(segment: Segment, factor: int = 1) -> PreparedLog:
    """A conditioned log around segments made by hand."""
    recording = Recording(
        segment.log, tuple(f"j{k}" for k in range(segment.q.shape[1])), segment.time, segment.q, effort=segment.tau
    )
    conditioned = Conditioned((segment,), segment.rate, 10.0, factor, "differentiated", {})
    return PreparedLog(recording, QualityReport(recording, ()), conditioned, robot=None)  # type: ignore[arg-type]


def problem_of(model: DynamicModel, log: PreparedLog, **more: object) -> EstimatorInput:
    """A log with its estimate by least squares, which other estimators start from."""
    statistics = build_statistics(model, [log])
    return EstimatorInput(model, [log], statistics, fit_base(statistics, model.base()), **more)  # type: ignore[arg-type]


def theta_with(model: DynamicModel, **terms: object) -> np.ndarray:
    """The URDF's bodies, and terms by their symbol: a number, or one of each joint."""
    values = {symbol: np.broadcast_to(value, model.n) for symbol, value in terms.items()}
    joints = [values[p.symbol][model.robot.index(p.owner)] for p in model.parameters[model.n_inertial :]]
    return np.concatenate([model.robot.inertials.ravel(), joints])


def coloured(clean: Segment, sigma: float, rho: float, seed: int) -> Segment:
    """The motion with first-order autoregressive noise on the torque, made here and not by the package."""
    white = np.random.default_rng(seed).normal(size=clean.tau.shape)
    white[1:] *= np.sqrt(1 - rho**2)
    return replace(clean, tau=clean.tau + sigma * lfilter([1.0], [1.0, -rho], white, axis=0))


def stacked(model: DynamicModel, base: BaseParameters, log: PreparedLog) -> tuple[np.ndarray, np.ndarray]:
    (piece,) = row_pieces(model, [log])
    X, y = [], []
    for index, columns, target in base_rows(piece, model, base):
        wide = np.zeros((len(columns), len(base)))
        wide[:, index] = columns
        X.append(wide)
        y.append(target)
    return np.vstack(X), np.concatenate(y)


def with_sign_of(Z: np.ndarray, W: np.ndarray, model: DynamicModel, base: BaseParameters) -> np.ndarray:
    """W with the columns of Coulomb friction of Z."""
    coulomb = [k >= model.n_inertial and model.term_of(k).name == "coulomb" for k in base.independent]
    return np.where(coulomb, Z, W)


def result(model: DynamicModel, segment: Segment, kind: str = "model") -> Identification:
    """The result of a fit to one segment; its standard parameters are the true ones."""
    log = as_log(segment)
    statistics = build_statistics(model, [log])
    fit = with_covariance(fit_base(statistics, model.base(), method="ols"), statistics, kind, model=model, logs=[log])
    terms = np.ones(len(model.names) - model.n_inertial)
    prior = with_joint_terms(inertial_prior(model.robot), model.parameters, terms)
    weights = dict.fromkeys(statistics.groups, 1.0)
    return Identification(model, fit, truth(model), prior, statistics.stacked(weights), truth(model))
