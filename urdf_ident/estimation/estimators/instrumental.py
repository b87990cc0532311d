"""Instrumental variables (IV): estimates that are not biased by noise on the positions, and a test for this bias.

Position noise, differentiated twice, is noise in the columns, which biases inertia towards zero in least squares. In a closed
loop it also enters the torque. Columns of a *simulated* motion along the same reference (Janot, Vandanjon, Gautier 2014) are
independent of both: as instruments Z they give ``β = (ZᵀW)⁻¹ Zᵀ tau`` without that bias. The sign of the velocity, which noise
changes near reversals, is taken from the simulated motion in W as well.

The Durbin-Wu-Hausman test checks whether the part of W that the instruments do not explain correlates with the residual of the
torque: if so, least squares is biased. Autocorrelated residuals would cause false rejections; the statistic is therefore
divided by the ratio of the jackknife variance to that for independent residuals.

One triangular factor of ``[Z | W | tau]`` per block and row group suffices: after merging, its first rows are
``R_zw β = R_zy``, and the rows below are W and tau without the instruments.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from ...errors import EstimationError
from ...linalg import Array, lstsq, orthogonal_part, positive, solve_triangular, triangle, unit_columns
from ...logs.recording import Recording
from ...model.base import BaseParameters
from ...model.dynamic_model import DynamicModel
from ...model.terms import SPRING_TERMS
from ...motion.trajectory import Trajectory, sampled
from ...samples import Segment
from ...signals.filters import differentiate, lowpass
from ...signals.prepare import PreparedLog
from ...statistics.accumulate import Rows, build_statistics
from ...statistics.fit import Fit, fit_base
from ...statistics.least_squares import CORRECTION_LEVEL
from ...statistics.rows import RowFilter, filtered_rows
from ...statistics.statistic import Layout, Statistic, StatisticSet, placed
from ..elastic import compliance_at
from ..uncertainty.covariance import with_covariance
from .estimator import Estimated, EstimatorInput

#: Terms whose columns contain no sign of the velocity and no threshold; in W they are computed from the measured motion.
SMOOTH = ("rotor_inertia", "viscous", "offset", "cubic", *(term.name for term in SPRING_TERMS))
#: Maximum number of simulations for instruments and for DIDIM; converged if no parameter changes by this share of its error.
ROUNDS, DIDIM_ROUNDS, CONVERGED = 8, 12, 0.05


@dataclass(frozen=True)
class HausmanTest:
    """Durbin-Wu-Hausman test of least squares against instruments.

    Attributes:
        statistic: F statistic, corrected for autocorrelated residuals.
        dof: Degrees of freedom of numerator and denominator.
        p_value: P value under the hypothesis of no bias.
        inflation: Variance of the estimates over that for independent residuals.
    """

    statistic: float
    dof: tuple[int, int]
    p_value: float
    inflation: float

    @property
    def rejected(self) -> bool:
        return self.p_value < CORRECTION_LEVEL

    def describe(self) -> str:
        """Returns the result in one sentence."""
        verdict = "least squares is biased by noise on the motion" if self.rejected else "no sign of bias in least squares"
        chance = f"p = {self.p_value:.2g}" if self.p_value > 1e-16 else "p < 1e-16"
        return f"{verdict} (Durbin-Wu-Hausman: F({self.dof[0]}, {self.dof[1]}) = {self.statistic:.3g}, {chance})"


class InstrumentalFit(NamedTuple):
    """An estimate by instrumental variables, with least squares on the same rows.

    Attributes:
        fit: The estimate, ``method`` "iv".
        least_squares: Least squares on the same rows (sign from the simulated motion) and with the same weights.
        test: Test of whether they differ significantly.
    """

    fit: Fit
    least_squares: Fit
    test: HausmanTest


def with_simulated(log: PreparedLog, clean: Recording) -> PreparedLog:
    """Adds to every segment its noise-free simulated motion, conditioned like the log; with motors if these are simulated.

    Args:
        clean: The simulated motion on the same clock, joint side, covering the log's motion.

    Raises:
        EstimationError: Other joints, or the simulation does not cover the log.
    """
    recording = log.recording
    if clean.joints != recording.joints:
        raise EstimationError("the simulated motion is of other joints", got=clean.joints, expected=recording.joints)
    rate, cutoff = log.conditioned.rate, log.conditioned.cutoff
    step = np.diff(clean.time)
    if len(step) < 8 or np.abs(step - step.mean()).max() > 1e-3 * step.mean():
        raise EstimationError("the simulated motion needs an even clock", where=clean.name, got=f"{len(clean)} samples")
    motions = [_motion(clean, clean.position, clean.velocity, clean.acceleration)]
    if clean.motor_position is not None:
        motions.append(_motion(clean, clean.motor_position, clean.motor_velocity, None))
    begin, end = log.segments[0].time[0], log.segments[-1].time[-1]
    if begin < clean.time[0] - 1e-9 or end > clean.time[-1] + 1e-9:
        raise EstimationError(
            "the simulated motion does not cover the log",
            where=log.name,
            got=f"{clean.time[0]:.4g} to {clean.time[-1]:.4g} s",
            expected=f"{begin:.4g} to {end:.4g} s",
            remedy="simulate the whole reference",
        )
    grid = np.arange(int(np.floor((clean.time[-1] - clean.time[0]) * rate + 1e-9)) + 1) / rate
    segments = []
    for segment in log.segments:
        # the whole simulation is sampled on the segment's instants, as the filter needs samples before and after it
        shift = (segment.start - clean.time[0]) * rate
        instants = grid + (shift - np.floor(shift)) / rate
        instants = instants[instants <= motions[0].duration + 1e-9]
        part = slice(int(np.floor(shift)), int(np.floor(shift)) + len(segment))
        if part.stop > len(instants):
            raise EstimationError("the simulated motion ends before the log", where=log.name, remedy="simulate a little longer")
        signals = []
        for motion in motions:
            q = lowpass(motion.evaluate(instants)[0], rate, cutoff)
            speed = differentiate(q, rate)
            signals.append([x[part] for x in (q, speed, differentiate(speed, rate))])
        (q, v, a), (qm, vm, am) = signals[0], signals[1] if len(signals) > 1 else (None, None, None)
        segments.append(replace(segment, simulated=Segment(segment.log, segment.start, rate, q, v, a, qm=qm, vm=vm, am=am)))
    return log.with_segments(segments)


def _motion(clean: Recording, position: Array, velocity: Array | None, acceleration: Array | None) -> Trajectory:
    """The simulated motion as a continuous trajectory."""
    rate = (len(clean.time) - 1) / (clean.time[-1] - clean.time[0])
    v = differentiate(position, rate) if velocity is None else velocity
    a = differentiate(v, rate) if acceleration is None else acceleration
    return sampled(clean.joints, clean.time - clean.time[0], position, v, a)


def instrumented(model: DynamicModel) -> Rows:
    """Returns the rows ``[Z | W | tau]``; W too has its columns with a sign of the velocity from the simulated motion."""
    layouts = tuple(Layout(g.name, g.joint, g.columns, instruments=tuple(map(int, g.columns))) for g in model.groups)
    return Rows("instruments", layouts, _instrumented_rows)


def _instrumented_rows(model: DynamicModel, segment: Segment, row_filter: RowFilter) -> Iterator[tuple[int, list[Array]]]:
    if segment.simulated is None:
        raise EstimationError(
            "instruments need a noise-free simulated motion of the same reference",
            where=segment.log,
            remedy="simulate the closed loop (controller and reference) and pass it, or use method wls",
        )
    dry = np.array([k >= model.n_inertial and model.term_of(k).name not in SMOOTH for k in range(len(model.names))])
    clean = {name: getattr(segment.simulated, name) for name in ("q", "v", "a", "qm", "vm", "am")}
    motion = replace(segment, **clean, simulated=None, before=None)
    pairs = zip(filtered_rows(model, segment, row_filter), filtered_rows(model, motion, row_filter), strict=True)
    for (first, measured), (_, simulated) in pairs:
        rows = []
        for group, W, Z in zip(model.groups, measured, simulated, strict=True):
            columns = np.flatnonzero(dry[group.columns])
            W[:, columns] = Z[:, columns]
            rows.append(np.hstack([Z[:, :-1], W]))
        yield first, rows


def fit_instrumental(statistics: StatisticSet, base: BaseParameters, *, method: str = "wls") -> InstrumentalFit:
    """Solves the instrumental-variable problem.

    Args:
        method: Weights of the row groups: "wls" or "ols" (all 1).

    Raises:
        EstimationError: No instruments, or they do not identify all parameters.
    """
    if not all(layout.instruments for layout in statistics.layouts):
        raise EstimationError("the statistics hold no instruments", remedy="build them with a noise-free simulated motion")
    least = fit_base(statistics, base, method=method)
    b, rows = len(base), sum(statistics.rows.values())

    def stacked(entries: Sequence[Statistic]) -> Array:
        """Weighted factor of ``[Z | W | tau]`` on the independent columns."""
        blocks = []
        for entry in entries:
            layout = statistics.layout(entry.group)
            places = base.place[layout.columns]
            place = np.concatenate([base.place[list(layout.instruments)], np.where(places < 0, -1, b + places), [2 * b]])
            blocks.append(placed(entry.R[:, : layout.width], place, 2 * b + 1) * least.row_weights[entry.group])
        return triangle(*blocks)

    factor = stacked(statistics.entries)
    Z, W, y = factor[:b, :b], factor[:b, b : 2 * b], factor[:b, -1]
    if len(factor) < b or any(np.linalg.matrix_rank(unit_columns(square)) < b for square in (Z, W)):
        raise EstimationError(
            "the simulated motion does not excite every parameter",
            got=f"{int(least.seen.sum())} of {b} seen by least squares",
            remedy="fit fewer terms, or use a motion that shows them",
        )
    params = np.asarray(np.linalg.solve(W, y), dtype=float)
    residual = factor[:, -1] - factor[:, b : 2 * b] @ params
    inverse = np.asarray(np.linalg.inv(W), dtype=float)
    covariance, inflation = float(residual @ residual) / (rows - b) * inverse @ inverse.T, 1.0
    kind, units, dof = "model-based (IV)", statistics.stretches, least.error_dof
    if len(units) >= 4:
        # jackknife over stretches u of time, from (ZᵀW − Z_uᵀW_u)⁻¹ Z_uᵀ e_u in the coordinates of R_z
        moves = []
        for unit in units:
            part = stacked([entry for entry in statistics.entries if (entry.log, entry.block) in unit])
            of_unit = solve_triangular(Z, part[:, :b].T, transposed=True)
            share = of_unit @ part[:, b : 2 * b] @ inverse  # independent of the parameters' units
            score = of_unit @ (part[:, -1] - part[:, b : 2 * b] @ params)
            moves.append(inverse @ lstsq(np.eye(b) - share, score, rcond=1e-3)[0])
        jackknife = (len(units) - 1) / len(units) * np.array(moves).T @ np.array(moves)
        inflation = max(1.0, float(np.median(np.diag(jackknife) / np.diag(covariance))))
        covariance, kind = jackknife, f"jackknife over {len(units)} blocks of time"
        dof = np.full(b, len(units) - 1.0)
    fit = replace(
        least,
        params=params,
        covariance=covariance,
        method="iv",
        seen=np.ones(b, dtype=bool),
        covariance_kind=kind,
        error_dof=dof,
    )
    return InstrumentalFit(fit, least, _hausman(factor, b, rows, inflation))


def instrumental_variables(problem: EstimatorInput) -> Estimated:
    """Simulates the closed loop and estimates by instrumental variables in turn until the estimate converges.

    The simulated motion hardly depends on the parameters, so that a rough start suffices.

    Raises:
        EstimationError: There is no simulation, or no convergence.
    """
    base, simulator, fit = problem.base, problem.simulator("iv"), problem.least_squares
    for turn in range(1, ROUNDS + 1):
        with_motion = [with_simulated(log, clean) for log, clean in zip(problem.logs, simulator(fit.params), strict=True)]
        instruments = build_statistics(problem.model, with_motion, rows=instrumented(problem.model))
        statistics = compliance_at(instruments, problem.model, base.embedded(fit.params))
        before = fit
        fit, least_squares, hausman = fit_instrumental(statistics, base)
        if turn > 1 and fit.distance(before.params) < CONVERGED:
            break
    else:
        raise EstimationError(
            "instruments and estimate do not converge",
            got=f"{ROUNDS} simulations",
            remedy="does the simulated controller follow the logged reference?",
        )
    plain = fit_base(problem.statistics, base, weights=fit.weights)
    largest = fit.distance(plain.params)
    test = {**vars(hausman), "rejected": hausman.rejected, "largest": largest, "words": hausman.describe()}
    size = f"; it moves by up to {largest:.2g} standard errors" if hausman.rejected else ""

    def errors(kind: str) -> Fit:
        """The jackknife over stretches of time misses errors that all stretches share: disagreement between logs, unmodelled
        friction at reversals. They affect least squares on the same rows as much, and enlarge its errors by the same factors.
        """
        if kind == "model":
            return fit
        errors_of = partial(with_covariance, problem.least_squares, problem.statistics, model=problem.model, logs=problem.logs)
        try:
            least, stretches = errors_of(kind), errors_of("jackknife")
        except EstimationError:  # the logs are too short to be cut into blocks
            if kind != "auto":  # explicitly requested
                raise
            return fit
        ratio = np.where(fit.seen & (stretches.bse > 0), least.bse / positive(stretches.bse), 1.0)
        scale = np.where(np.isfinite(ratio), np.maximum(ratio, 1.0), 1.0)  # none decreases
        if (scale == 1.0).all():
            return fit
        how = f"{fit.covariance_kind}, enlarged as those of least squares are ({least.covariance_kind})"
        return replace(fit, covariance=fit.covariance * np.outer(scale, scale), covariance_kind=how)

    return Estimated(
        fit,
        problem.statistics.shifted(base.embedded(fit.params - plain.params)),
        f"as configured; {hausman.describe()}{size}",
        errors=errors,
        simulated=True,
        details={"rounds": turn, "hausman": test, "least_squares": least_squares.params.tolist()},
        refit=lambda part: fit_instrumental(part, base).fit,
        solved=statistics,
    )


def didim(problem: EstimatorInput) -> Estimated:
    """Direct and inverse dynamic identification model: torque measured, motion simulated (Gautier, Janot, Vandanjon 2013).

    No position is differentiated: the closed loop is simulated with the current estimate, and the measured torque is regressed
    on the columns of the simulated motion, in turn until the estimate converges. This is a Gauss-Newton method for the error
    between measured and simulated torque, because under feedback the simulated motion hardly depends on the parameters. Noise
    on the positions does not enter the columns and causes no bias.

    Raises:
        EstimationError: It does not converge, or the simulation does not cover the logs.
    """
    simulator, refit, params = problem.simulator("didim"), problem.refit(), problem.least_squares.params
    for turn in range(1, DIDIM_ROUNDS + 1):
        clean = []  # the logs with the simulated motion in place of the measured one, and the same torque
        for log, motion in zip(problem.logs, simulator(params), strict=True):
            pairs = [(segment, segment.simulated) for segment in with_simulated(log, motion).segments]
            clean.append(
                log.with_segments(
                    replace(segment, q=simulated.q, v=simulated.v, a=simulated.a, simulated=None, before=None)
                    for segment, simulated in pairs
                    if simulated is not None
                )
            )
        statistics = build_statistics(problem.model, clean)
        fit = refit(statistics)
        if fit.distance(params) < CONVERGED:
            estimate, details = replace(fit, method="didim"), {"rounds": turn}
            return Estimated(estimate, statistics, simulated=True, logs=clean, details=details, refit=refit)
        params = fit.params
    raise EstimationError(
        "simulation and estimate do not converge",
        got=f"{DIDIM_ROUNDS} simulations",
        remedy="check simulation.controller, or use method iv or wls",
    )


def _hausman(factor: Array, b: int, rows: int, inflation: float) -> HausmanTest:
    """F-test of the part of W outside the span of the instruments in the regression of tau on W."""
    inside, outside = factor[:b, b:-1], factor[b:, b:-1]
    W = np.vstack([inside, outside])
    V = np.vstack([np.zeros_like(inside), outside])
    scale = np.linalg.norm(W, axis=0)
    # Columns in the span of the instruments (the offset, a sign taken from the simulated motion) cannot be tested.
    live = np.linalg.norm(V, axis=0) > 1e-7 * scale
    if not live.any():
        return HausmanTest(0.0, (0, rows - b), 1.0, inflation)
    extra = int(live.sum())
    free, augmented = rows - b - extra, np.hstack([W / scale, (V / scale)[:, live]])
    plain, full = (np.sum(orthogonal_part(factor[:, -1], X, rcond=1e-12) ** 2) for X in (augmented[:, :b], augmented))
    value = max(0.0, float((plain - full) / extra / positive(full / free))) / inflation
    from scipy.special import fdtrc

    return HausmanTest(value, (extra, free), float(fdtrc(extra, free, value)), inflation)
