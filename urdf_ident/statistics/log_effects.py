"""Friction that differs from log to log: mean, spread, and the deviation of each log, from the factors that exist.

Friction changes with temperature, grease and wear; inertia does not. So the friction parameters named by :func:`varying` are
taken as ``mean + deviation of the log``, the deviation normal with an unknown spread: a linear mixed model
``y = X beta + Z u + e``, ``u ~ N(0, spread²)`` for each log anew. The spreads are estimated by restricted maximum likelihood
(REML: Patterson and Thompson 1971), which counts the degrees of freedom that ``beta`` uses, and the deviations by their
conditional means (Henderson's mixed-model equations). All of it is second-order in the rows, so the factor of each log is
enough: no second pass over the data.

Rows of one log are not independent. Their noise is taken as what the scatter of the friction's scores between stretches of one
log shows (:func:`_effective_weights`), so that autocorrelated noise and what the model lacks do not count as spread.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import linalg

from ..errors import EstimationError
from ..linalg import Array
from ..model.dynamic_model import DynamicModel
from .changes import FrictionChanges
from .fit import Fit
from .least_squares import solve
from .statistic import StatisticSet
from .varying import Varying, varying

#: Stretches of a log whose scatter shows its noise: long against the noise's autocorrelation.
_STRETCHES = 8
#: Parts of a log that tell drift within it.
PARTS = 3
#: Twice the logarithm of the likelihood ratio by which bodies that come and go must explain the logs better.
_SURE = 30.0
#: A deviation's prior for logs whose spread is not known, in units of the mean (as good as none).
_FREE = 1e3


@dataclass(frozen=True, eq=False)
class _Moments:
    """Second moments of whitened rows of one log (or part): X in the solution's coordinates, Z, y."""

    xx: Array
    xz: Array
    zz: Array
    xy: Array
    zy: Array
    yy: float

    @classmethod
    def of(cls, rows: Sequence[Array], r: int, q: int) -> _Moments:
        """From rows ``[X | Z | y]``, shapes (m, r + q + 1)."""
        stacked = np.vstack([np.zeros((1, r + q + 1)), *rows])
        G = stacked.T @ stacked
        z = slice(r, r + q)
        return cls(G[:r, :r], G[:r, z], G[z, z], G[:r, -1], G[z, -1], float(G[-1, -1]))


class _Rows:
    """The factors of a statistic set as rows of the mixed model."""

    def __init__(self, statistics: StatisticSet, fit: Fit, parts: Sequence[Varying]) -> None:
        self.statistics, self.fit, self.parts = statistics, fit, tuple(parts)
        weights = fit.row_weights or fit.weights
        solution = solve(statistics.stacked(weights, fit.base.independent), fit.rows)
        self.root = solution.root
        self.r, self.q = self.root.shape[1], len(self.parts)
        self.place = np.full(statistics.p, -1)
        self.place[fit.base.independent] = np.arange(len(fit.base))
        self.combine = np.zeros((statistics.p, self.q))
        for k, part in enumerate(self.parts):
            self.combine[list(part.columns), k] = 1.0
        self._entries: dict[str, dict[str, list[tuple[int, Array]]]] = {}
        for entry in statistics.entries:
            own = self._entries.setdefault(entry.log, {}).setdefault(entry.group, [])
            own.append((entry.block, self._wide(entry.R, entry.group)))

    def _wide(self, R: Array, group: str) -> Array:
        """One factor as ``[X root | Z | y − X params]``, not weighted: what is estimated is a change of the fit."""
        layout = self.statistics.layout(group)
        R = R[:, len(layout.instruments) :]
        k, target = len(layout.columns), self.place[layout.columns]
        X, index = R[:, :k][:, target >= 0], target[target >= 0]
        left = R[:, k] - X @ self.fit.params[index]
        return np.column_stack([X @ self.root[index], R[:, :k] @ self.combine[layout.columns], left])

    def of(self, log: str, group: str, part: int | None = None) -> list[Array]:
        """Factors of one log (or of one of its :data:`PARTS`) and group in order of time."""
        own = [R for _, R in sorted(self._entries[log].get(group, ()), key=lambda item: item[0])]
        return own if part is None else [own[i] for i in np.array_split(np.arange(len(own)), PARTS)[part]]

    def moments(self, log: str, weights: Mapping[str, float], part: int | None = None) -> _Moments:
        """Of a whole log, or of one of its :data:`PARTS`."""
        rows = [weights[group] * R for group in self.statistics.groups for R in self.of(log, group, part)]
        return _Moments.of(rows, self.r, self.q)


def _marginal(logs: Sequence[_Moments], spread: Array) -> tuple[Array, Array, list[Array]]:
    """``XᵀV⁻¹X``, ``XᵀV⁻¹y``, and per log ``M = (spread⁻² + ZᵀZ)⁻¹``, which Woodbury's identity asks for."""
    normal, score, middles = 0.0, 0.0, []
    for log in logs:
        inner = np.eye(len(spread)) + spread[:, None] * log.zz * spread
        middle = spread[:, None] * linalg.cho_solve(linalg.cho_factor(inner), np.diag(spread))
        middles.append(middle)
        normal = normal + log.xx - log.xz @ middle @ log.xz.T
        score = score + log.xy - log.xz @ middle @ log.zy
    lost = max(1e-12 - float(np.linalg.eigvalsh(normal)[0]), 0.0)  # free deviations may leave a direction nothing but rounding
    return np.asarray(normal) + lost * np.eye(len(np.asarray(normal))), np.asarray(score), middles


def _criterion(logs: Sequence[_Moments], variance: Array) -> tuple[float, Array]:
    """Minus twice the restricted log-likelihood, and its gradient by the variances, shape (q,)."""
    spread = np.sqrt(variance)
    normal, score, middles = _marginal(logs, spread)
    factor = linalg.cho_factor(normal)
    beta = linalg.cho_solve(factor, score)
    value = 2.0 * float(np.log(np.diag(factor[0])).sum()) - float(score @ beta)
    slope = np.zeros(len(variance))
    for log, middle in zip(logs, middles, strict=True):
        inner = np.eye(len(spread)) + spread[:, None] * log.zz * spread
        value += float(np.linalg.slogdet(inner)[1]) + log.yy - float(log.zy @ middle @ log.zy)
        zpz, zpy = _projected(log, middle, factor, beta)
        slope += np.diag(zpz) - zpy**2
    return value, slope


def _projected(log: _Moments, middle: Array, factor: tuple[Array, bool], beta: Array) -> tuple[Array, Array]:
    """``Zᵀ P Z`` and ``Zᵀ P y`` of one log."""
    gap = np.eye(len(middle)) - log.zz @ middle
    zvx = gap @ log.xz.T
    return gap @ log.zz - zvx @ linalg.cho_solve(factor, zvx.T), gap @ log.zy - zvx @ beta


def reml(logs: Sequence[_Moments], start: Array) -> Array:
    """Variances of the deviations by restricted maximum likelihood.

    Args:
        logs: Whitened moments of each log.
        start: First guess of the variances, positive, shape (q,).

    Returns:
        Shape (q,), none negative.
    """
    from scipy import optimize

    def scaled(x: Array) -> tuple[float, Array]:
        value, slope = _criterion(logs, np.maximum(x, 0.0) * start)
        return value, slope * start

    bounds, options = [(0.0, None)] * len(start), {"maxiter": 500, "ftol": 1e-13, "gtol": 1e-7}
    found = optimize.minimize(scaled, np.ones(len(start)), jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    return np.asarray(np.maximum(found.x, 0.0) * start)


def friction_changes(
    model: DynamicModel,
    statistics: StatisticSet,
    fit: Fit,
    covariates: Array | None = None,
    seconds: Array | None = None,
    carried: Sequence[Varying] = (),
) -> FrictionChanges:
    """How friction differs between the logs of a fit.

    Args:
        model: The model that the fit belongs to.
        statistics: Its factors, with their blocks in time.
        covariates: What is known of each log for each of :func:`varying`'s parameters, temperature for instance, shape
            (logs, q); NaN where it was not logged. None: nothing.
        seconds: Duration of each log's motion, shape (logs,) [s], for pictures; None: not known.
        carried: Inertial parameters that may differ between the logs too (:mod:`.carried`), several logs needed.

    Returns:
        The record; with one log the spread is not known (NaN).

    Raises:
        EstimationError: No friction parameter that may change is seen.
    """
    place = {int(index): row for row, index in enumerate(fit.base.independent)}
    every = varying(model)
    told = [all(c in place and fit.seen[place[c]] for c in part.columns) for part in every]
    parts = [part for part, known in zip(every, told, strict=True) if known]
    if not parts:
        raise EstimationError("no friction parameter that may change between logs", remedy="use viscous or Coulomb friction")
    rows = _Rows(statistics, fit, [*parts, *carried])
    first = np.array([place[part.columns[0]] for part in parts])
    q = len(parts)
    size = np.concatenate([np.maximum(np.abs(fit.params[first]), 1e-9), [part.size for part in carried]])
    known = None if covariates is None else np.asarray(covariates, dtype=float)[:, told]
    unknown = None if known is None else np.hstack([known, np.full((len(known), len(carried)), np.nan)])
    weights = _effective_weights(rows)
    if len(statistics.logs) > 1:
        logs = [rows.moments(log, weights) for log in statistics.logs]
        found = _mixed(logs, size, unknown)
        if carried and _evidence(logs, found.spread, size, q) < _SURE:
            return friction_changes(model, statistics, fit, covariates, seconds)
    else:
        found = _single(rows.r, rows.q)
    moved = rows.root[first] @ found.beta[: rows.r]
    mean_error = np.linalg.norm(rows.root[first] @ found.root[: rows.r], axis=1) if len(statistics.logs) > 1 else fit.bse[first]
    prior = np.where(np.isnan(found.spread), _FREE * size, found.spread)
    inside, inside_error = _within(rows, _effective_weights(rows, parts=True), found.beta[: rows.r], prior)
    return FrictionChanges(
        parameters=tuple(part.name for part in parts),
        axes=np.array([part.axis for part in parts], dtype=np.intp),
        kinds=tuple(part.kind for part in parts),
        columns=tuple(part.columns for part in parts),
        logs=statistics.logs,
        mean=fit.params[first] + moved,
        mean_error=mean_error,
        spread=found.spread[:q],
        spread_dof=found.dof[:q],
        deviation=found.deviation[:, :q],
        deviation_error=found.deviation_error[:, :q],
        parts=inside[..., :q],
        parts_error=inside_error[..., :q],
        noise=np.array([1.0 / weights[group] for group in statistics.groups]),
        slope=found.slope[:q],
        slope_error=found.slope_error[:q],
        left=found.left[:q],
        covariate=known,
        seconds=seconds,
        carriers=tuple(part.name for part in carried),
        carried=found.deviation[:, q:] if carried else None,
        carried_error=found.deviation_error[:, q:] if carried else None,
    )


@dataclass(frozen=True, eq=False)
class _Mixed:
    """The solution of the mixed model: fixed effects with a root of their covariance, spreads, deviations, slopes."""

    beta: Array
    root: Array
    spread: Array
    dof: Array
    deviation: Array
    deviation_error: Array
    slope: Array
    slope_error: Array
    left: Array


def _evidence(logs: Sequence[_Moments], spread: Array, size: Array, q: int) -> float:
    """Restricted likelihood ratio of all deviations against the first q alone, shape ()."""
    alone = [replace(log, xz=log.xz[:, :q], zz=log.zz[:q, :q], zy=log.zy[:q]) for log in logs]
    without = _criterion(alone, reml(alone, _first_guess(alone, size[:q])))[0]
    return without - _criterion(logs, spread**2)[0]


def _single(r: int, q: int) -> _Mixed:
    """What one log tells: nothing of the spread."""
    unknown, none = np.full(q, np.nan), np.zeros((1, q))
    return _Mixed(np.zeros(r), np.zeros((r, r)), unknown, unknown, none, none, unknown, unknown, unknown)


def _mixed(logs: Sequence[_Moments], size: Array, known: Array | None) -> _Mixed:
    """REML spreads, then the mixed-model equations with them."""
    q = len(size)
    spread = np.sqrt(reml(logs, _first_guess(logs, size)))
    normal, score, middles = _marginal(logs, spread)
    factor = linalg.cho_factor(normal)
    beta = linalg.cho_solve(factor, score)
    root = linalg.solve_triangular(linalg.cholesky(normal), np.eye(len(normal)))
    deviation, error = [], []
    for log, middle in zip(logs, middles, strict=True):
        zpz, zpy = _projected(log, middle, factor, beta)
        deviation.append(spread**2 * zpy + 0.0)  # no negative zeros
        error.append(np.sqrt(np.maximum(spread**2 - spread**4 * np.diag(zpz), 0.0)))
    slopes = (np.full(q, np.nan),) * 3 if known is None else _slopes(logs, size, known)
    dof = _spread_dof(logs, spread**2)
    return _Mixed(beta, root, spread, dof, np.array(deviation), np.array(error), *slopes)


def _slopes(logs: Sequence[_Moments], size: Array, known: Array) -> tuple[Array, Array, Array]:
    """Slope by the covariate, its error and the spread that it leaves, shape (q,) each; NaN where it tells nothing."""
    r, wide = len(logs[0].xx), _with_covariates(logs, known)
    left = np.sqrt(reml(wide, _first_guess(logs, size)))
    normal, score, _ = _marginal(wide, left)
    slope = linalg.cho_solve(linalg.cho_factor(normal), score)[r:]
    error = np.linalg.norm(linalg.solve_triangular(linalg.cholesky(normal), np.eye(len(normal)))[r:], axis=1)
    used = ~np.isnan(known).any(axis=0) & (np.ptp(np.nan_to_num(known), axis=0) > 0)
    return tuple(np.where(used, each, np.nan) for each in (slope, error, left))  # type: ignore[return-value]


def _effective_weights(rows: _Rows, *, parts: bool = False) -> dict[str, float]:
    """Row group → weight of a row, so small that the scores of friction scatter between stretches as independent rows would.

    Each log (or each of its :data:`PARTS`) has its own friction here, free, so that what differs between logs is no noise. With
    scores ``s_t`` of stretches t that sum to zero, independent rows of variance σ² would give
    ``E sᵀ S⁻¹ s = σ² tr(S⁻¹ (S_t − S_t S⁻¹ S_t))``.
    """
    statistics, found = rows.statistics, {}
    plain = {group: 1.0 / value for group, value in rows.fit.sigma.items()}
    units = [(log, part) for log in statistics.logs for part in (range(PARTS) if parts else (None,))]
    stretches = max(_STRETCHES // PARTS, 3) if parts else _STRETCHES
    logs = [rows.moments(log, plain, part) for log, part in units]
    scale = np.sqrt(np.maximum(sum(np.diag(log.zz) for log in logs), 1e-300))
    free = _FREE * np.sqrt(len(logs)) / scale * np.sqrt(rows.fit.rows)
    normal, score, middles = _marginal(logs, free)
    beta = np.linalg.lstsq(normal, score, rcond=1e-12)[0]
    for group in statistics.groups:
        squares, expected, residual, count = 0.0, 0.0, 0.0, 0.0
        for (log, part), moments, middle in zip(units, logs, middles, strict=True):
            own = rows.of(log, group, part)
            if not own:
                continue
            u = middle @ (moments.zy - moments.xz.T @ beta)
            errors = [R[:, -1] - R[:, : rows.r] @ beta - R[:, rows.r : -1] @ u for R in own]
            residual += sum(float(e @ e) for e in errors)
            Z = [R[:, rows.r : -1] for R in own]
            told = np.flatnonzero(sum(np.sum(z**2, axis=0) for z in Z) > 0)
            chunks = np.array_split(np.arange(len(own)), min(stretches, len(own)))
            if len(chunks) < 2 or not len(told):
                continue
            S = [sum(Z[i][:, told].T @ Z[i][:, told] for i in chunk) for chunk in chunks]
            s = [sum(Z[i][:, told].T @ errors[i] for i in chunk) for chunk in chunks]
            inverse = np.linalg.pinv(sum(S), hermitian=True)
            middle_score = sum(s) / len(s)  # not exactly zero where a parameter acts on several groups
            squares += sum(float((x - middle_score) @ inverse @ (x - middle_score)) for x in s)
            expected += sum(float(np.trace(inverse @ (x - x @ inverse @ x))) for x in S)
            count += len(told)
        number = statistics.rows[group]
        variance = residual / max(number - count, 1.0)
        floor = rows.fit.sigma[group] ** 2 * 1e-12
        effective = squares / expected if expected > 0 else variance
        found[group] = float(1.0 / np.sqrt(max(effective, variance, floor)))
    return found


def _first_guess(logs: Sequence[_Moments], size: Array) -> Array:
    """Variances to begin with: a tenth of the parameter, or what a log alone can tell if that is less sharp."""
    sharp = np.array([1.0 / np.sqrt(max(float(np.mean([log.zz[k, k] for log in logs])), 1e-300)) for k in range(len(size))])
    return np.asarray(np.maximum(0.1 * size, np.minimum(sharp, size)) ** 2)


def _with_covariates(logs: Sequence[_Moments], known: Array) -> list[_Moments]:
    """Adds one column a parameter, its own columns times the covariate's deviation from its mean over the logs."""
    centred = np.nan_to_num(known - known.mean(axis=0))
    found = []
    for log, x in zip(logs, centred, strict=True):
        cross = log.xz * x
        xx = np.block([[log.xx, cross], [cross.T, x[:, None] * log.zz * x]])
        found.append(replace(log, xx=xx, xz=np.vstack([log.xz, x[:, None] * log.zz]), xy=np.concatenate([log.xy, x * log.zy])))
    idle = np.flatnonzero(~centred.any(axis=0))  # no column: a unit keeps the normal matrix regular
    for log in found[:1]:
        at = len(logs[0].xx) + idle
        log.xx[at, at] += 1.0
    return found


def _spread_dof(logs: Sequence[_Moments], variance: Array) -> Array:
    """Degrees of freedom of every variance (Satterthwaite: ``2 v² / var v``), shape (q,); 0 where it is zero."""
    spread = np.sqrt(variance)
    normal, _, middles = _marginal(logs, spread)
    factor = linalg.cho_factor(normal)
    beta = np.zeros(len(normal))
    found = [np.diag(_projected(log, middle, factor, beta)[0]) for log, middle in zip(logs, middles, strict=True)]
    information = 0.5 * np.sum(np.square(found), axis=0) * max(len(logs) - 1, 1) / len(logs)
    return np.asarray(2.0 * variance**2 * information)


def _within(rows: _Rows, weights: Mapping[str, float], beta: Array, prior: Array) -> tuple[Array, Array]:
    """Deviations in each part of each log, shape (logs, parts, q), and their errors."""
    values, errors = [], []
    for log in rows.statistics.logs:
        for part in range(PARTS):
            moments = rows.moments(log, weights, part)
            inner = np.eye(rows.q) + prior[:, None] * moments.zz * prior
            covariance = prior[:, None] * np.linalg.solve(inner, np.diag(prior))
            values.append(covariance @ (moments.zy - moments.xz.T @ beta))
            errors.append(np.sqrt(np.maximum(np.diag(covariance), 0.0)))
    shape = (len(rows.statistics.logs), PARTS, rows.q)
    return np.reshape(values, shape), np.reshape(errors, shape)
