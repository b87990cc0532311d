"""Mixed model of friction that differs between logs: mean, spread, and the deviation of each log, from existing factors.

Friction changes with temperature, grease and wear; inertia does not. The friction parameters selected by :func:`varying` are
therefore modelled as ``mean + deviation of the log``, the deviation normal with an unknown spread: a linear mixed model
``y = X beta + Z u + e``, with an independent ``u ~ N(0, spread²)`` for each log. The spreads are estimated by restricted
maximum likelihood (REML: Patterson and Thompson 1971), which accounts for the degrees of freedom used by ``beta``, and the
deviations by their conditional means (Henderson's mixed-model equations). All this is second-order in the rows, so that the
factor of each log suffices and no second pass over the data is needed.

Rows of one log are not independent. Their noise is estimated from the scatter of the friction scores between stretches of a
log (:func:`_effective_weights`), so that autocorrelated noise and model errors do not count as spread.

A payload that only some logs carry is separated from friction by means of gravity: each log may also have its own mass and
first moments of the last bodies. Friction changes sign with the velocity, gravity does not; so an undeclared payload appears in
the mass and not in the spread of friction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import compress, pairwise

import numpy as np

from ...errors import EstimationError
from ...linalg import Array, IntArray, lstsq, positive, solve_triangular
from ...model.dynamic_model import DynamicModel
from ...signals.prepare import PreparedLog
from ..fit import Fit
from ..folds import PARTS
from ..least_squares import solve
from ..statistic import Statistic, StatisticSet
from .changes import FrictionChanges, Varying, varying
from .reml import Moments, criterion, inner, marginal, projected, reml

#: Number of logs times row groups whose rows are cached: enough for the logs that the noise is estimated from, for six joints.
_KEPT = 150
#: Stretches of a log from whose scatter the noise is estimated: long compared with the noise's autocorrelation.
_STRETCHES = 8
#: Maximum number of logs from which the noise is estimated, evenly spread over all.
_NOISE_LOGS = 24
#: Smallest value of twice the log-likelihood ratio for which a payload in some of the logs is accepted.
_SURE = 30.0
#: Least degrees of freedom of a variance, were the parameter to differ by all of itself; with fewer it stays at the first
#: guess.
_FEWEST_DOF = 0.01
#: Prior standard deviation where the spread is unknown, in units of the mean (practically uninformative).
_FREE = 1e3
#: The mass of a last body must differ between logs by this share of the robot's moving mass.
_WORTH = 0.005
#: A column shorter than this share of the longest is rounding error.
_SEEN = 1e-9
#: Usual distance of a payload from the last joint's frame [m].
_REACH = 0.1


class MixedRows:
    """The factors of a statistic set as rows of the mixed model.

    They are computed on demand and cached for :data:`_KEPT` pairs of log and group: together they are larger than the factors.

    Args:
        statistics: The factors, by time block.
        fit: The fit estimated from them.
        parts: The parameters that may differ between logs, the columns of Z.
    """

    def __init__(self, statistics: StatisticSet, fit: Fit, parts: Sequence[Varying]) -> None:
        self.statistics, self.fit, self.parts = statistics, fit, tuple(parts)
        self.root = solve(statistics.stacked(fit.row_weights, fit.base.independent), fit.rows).root
        self.r, self.q = self.root.shape[1], len(self.parts)
        self.combine = np.zeros((statistics.p, self.q))
        for k, part in enumerate(self.parts):
            self.combine[list(part.columns), k] = 1.0
        self._turns: dict[tuple[str, bool], Array] = {}
        self._made: dict[tuple[str, str], tuple[Array, IntArray, IntArray]] = {}

    def _wide(self, entries: Sequence[Statistic]) -> Array:
        """Factors as ``[X root | Z | y − X params]``, not weighted; the mixed model estimates a change of the fit."""
        kind = (entries[0].group, entries[0].expansion is None)
        if kind not in self._turns:
            layout = self.statistics.layout(entries[0].group)
            turned = self.fit.base.turned(layout.columns, self.root, self.fit.params)
            friction = np.vstack([self.combine[layout.columns], np.zeros((1, self.q))])
            turned = np.hstack([turned[:, : self.r], friction, turned[:, self.r :]])
            self._turns[kind] = entries[0].times(np.vstack([np.zeros((len(layout.instruments), turned.shape[1])), turned]))
        return np.asarray(np.vstack([entry.factor for entry in entries]) @ self._turns[kind])

    def of(self, log: str, group: str, part: int | None = None) -> tuple[Array, IntArray, int]:
        """Returns the factors of one log (or of one of its :data:`PARTS`) and group.

        Args:
            part: Index of the part; None for the whole log.

        Returns:
            The factors stacked in order of time, shape (m, r + q + 1), the row where each begins, with m at the end, and the
            number of data rows that they represent.
        """
        rows, edges, counts = self._whole(log, group)
        begin, end = self._blocks(len(edges) - 1, part)
        return rows[edges[begin] : edges[end]], edges[begin : end + 1] - edges[begin], int(counts[begin:end].sum())

    def _whole(self, log: str, group: str) -> tuple[Array, IntArray, IntArray]:
        """Stacked factors of one log and group in order of time, where each begins, with the end, and its number of rows."""
        cached = self._made.get((log, group))
        if cached is None:
            entries = self.statistics.of_log[log].get(group, ())
            wide = self._wide(entries) if entries else np.zeros((0, self.r + self.q + 1))
            counts = np.array([entry.rows for entry in entries], dtype=np.intp)
            cached = wide, np.cumsum([0, *(len(entry.factor) for entry in entries)]), counts
            if len(self._made) < _KEPT:
                self._made[log, group] = cached
        return cached

    @staticmethod
    def _blocks(count: int, part: int | None) -> tuple[int, int]:
        """First block of a part, and the one after its last; the first parts have one more if the count is not divisible."""
        size, more = divmod(count, PARTS)
        return (0, count) if part is None else (part * size + min(part, more), (part + 1) * size + min(part + 1, more))

    def squares(self, log: str, *weights: Mapping[str, float]) -> list[Array]:
        """Returns the Gram matrix of one log's rows in each of its :data:`PARTS`.

        Args:
            weights: One or more sets of weights of the row groups.

        Returns:
            One array per set of weights, shape (parts, r + q + 1, r + q + 1).
        """
        totals = [np.zeros((PARTS, self.r + self.q + 1, self.r + self.q + 1)) for _ in weights]
        for group in self.statistics.groups:
            rows, edges, _ = self._whole(log, group)
            for part in range(PARTS):
                begin, end = self._blocks(len(edges) - 1, part)
                of_part = rows[edges[begin] : edges[end]]
                square = of_part.T @ of_part
                for total, weight in zip(totals, weights, strict=True):
                    total[part] += weight[group] ** 2 * square
        return totals


def friction_changes(
    model: DynamicModel,
    statistics: StatisticSet,
    fit: Fit,
    covariates: Array | None = None,
    seconds: Array | None = None,
    carried: Sequence[Varying] = (),
) -> FrictionChanges:
    """Estimates how friction differs between the logs of a fit.

    Args:
        covariates: Covariate of each log for each of :func:`varying`'s parameters, temperature for instance, shape
            (logs, q); NaN where it was not logged. None if there is no covariate.
        seconds: Duration of each log's motion, shape (logs,) [s], for plots; None if unknown.
        carried: Inertial parameters that may differ between the logs too (:func:`changes_between_logs`); needs several logs.

    Returns:
        The record; with one log the spread is unknown (NaN).

    Raises:
        EstimationError: No friction parameter that may change is identifiable, or ``carried`` is not significant.
    """
    from scipy.linalg import cho_solve, cholesky

    # 1. The friction that may change, of what the data determine.
    place = {int(index): row for row, index in enumerate(fit.base.independent)}
    every = varying(model)
    determined = [all(c in place and fit.seen[place[c]] for c in part.columns) for part in every]
    if not any(determined):
        raise EstimationError("no friction parameter that may change between logs", remedy="use viscous or Coulomb friction")
    parts = list(compress(every, determined))
    rows = MixedRows(statistics, fit, [*parts, *carried])
    first, q = np.array([place[part.columns[0]] for part in parts]), len(parts)
    known = None if covariates is None else np.asarray(covariates, dtype=float)[:, determined]
    weights, part_weights = _effective_weights(rows)
    # 2. Gram matrices of all columns per log, and of the columns ``Z | y`` with all columns per log and part.
    width = rows.r + rows.q + 1
    whole = np.empty((len(statistics.logs), width, width))  # large with many logs
    inside = np.empty((len(statistics.logs), PARTS, width, rows.q + 1))
    for k, log in enumerate(statistics.logs):
        square, in_parts = rows.squares(log, weights, part_weights)
        whole[k], inside[k] = square.sum(axis=0), in_parts[:, :, rows.r :]
    # 3. A first guess of the spreads. Parameters that the logs do not separate can be estimated at any value: none alone is
    # larger than all efforts.
    size = np.concatenate([np.maximum(np.abs(fit.params[first]), 1e-9), [part.size for part in carried]])
    efforts = sum(weight**2 * statistics.effort_squares(group) for group, weight in weights.items())
    columns = np.diagonal(whole, axis1=1, axis2=2).sum(axis=0)[rows.r : rows.r + q]
    size[:q] = np.minimum(size[:q], np.sqrt(efforts / positive(columns)))
    unknown, none = np.full(rows.q, np.nan), np.zeros((1, rows.q))
    slope = slope_error = left = unknown
    # 4. The spreads by REML, then the mixed-model equations with them: mean and deviation of each log.
    if len(statistics.logs) > 1:
        logs = Moments.of(whole, rows.r)
        spread = _spread(logs, size)
        if carried:  # twice the logarithm of the restricted likelihood ratio of all deviations against those of friction alone
            alone = replace(logs, xz=logs.xz[:, :, :q], zz=logs.zz[:, :q, :q], zy=logs.zy[:, :q])
            if criterion(alone, _spread(alone, size[:q]) ** 2)[0] - criterion(logs, spread**2)[0] < _SURE:
                raise EstimationError("no body that some logs carry and others do not")
        normal, score, middles = marginal(logs, spread)
        factor = cholesky(normal)
        beta = cho_solve((factor, False), score, check_finite=False)
        root = solve_triangular(factor, np.eye(len(normal)))
        zpz, zpy, _ = projected(logs, middles, factor, beta)
        deviation, dof = spread**2 * zpy + 0.0, _spread_dof(logs, spread**2)  # no negative zeros
        error = np.sqrt(np.maximum(spread**2 - spread**4 * np.diagonal(zpz, axis1=1, axis2=2), 0.0))
        if known is not None:
            without = np.full((len(logs), len(carried)), np.nan)
            slope, slope_error, left = _slopes(logs, size, np.hstack([known, without]))
        moved = rows.root[first] @ beta
        mean_error = np.linalg.norm(rows.root[first] @ root, axis=1)
    else:  # the spread is unknown
        beta, spread, dof, deviation, error = np.zeros(rows.r), unknown, unknown, none, none
        moved, mean_error = np.zeros(q), fit.bse[first]
    # 5. Deviations in each part of each log and their errors, shape (logs, parts, q).
    prior = np.where(np.isnan(spread), _FREE * size, spread)
    z = slice(rows.r, -1)
    zz, gap = inside[:, :, z, :-1], inside[:, :, z, -1] - np.einsum("lprq,r->lpq", inside[:, :, : rows.r, :-1], beta)
    covariance = prior[:, None] * np.linalg.solve(inner(zz, prior), np.broadcast_to(np.diag(prior), zz.shape))
    change = np.einsum("lpqk,lpk->lpq", covariance, gap)
    change_error = np.sqrt(np.maximum(np.diagonal(covariance, axis1=-2, axis2=-1), 0.0))
    return FrictionChanges(
        parameters=tuple(part.name for part in parts),
        axes=np.array([part.axis for part in parts], dtype=np.intp),
        kinds=tuple(part.kind for part in parts),
        columns=tuple(part.columns for part in parts),
        logs=statistics.logs,
        mean=fit.params[first] + moved,
        mean_error=mean_error,
        spread=spread[:q],
        spread_dof=dof[:q],
        deviation=deviation[:, :q],
        deviation_error=error[:, :q],
        parts=change[..., :q],
        parts_error=change_error[..., :q],
        noise=np.array([1.0 / weights[group] for group in statistics.groups]),
        slope=slope[:q],
        slope_error=slope_error[:q],
        left=left[:q],
        covariate=known,
        seconds=seconds,
        carriers=tuple(part.name for part in carried),
        carried=deviation[:, q:] if carried else None,
    )


def _slopes(logs: Moments, size: Array, known: Array) -> tuple[Array, Array, Array]:
    """Slope on the covariate, its error and the remaining spread, shape (q,) each; NaN where the covariate is not usable."""
    from scipy.linalg import cho_solve, cholesky

    # a column per parameter: its column of Z times the covariate's deviation from the mean over the logs
    x = np.nan_to_num(known - known.mean(axis=0))
    cross, r = logs.xz * x[:, None], logs.xx.shape[1]
    xx = np.block([[logs.xx, cross], [cross.transpose(0, 2, 1), x[:, :, None] * logs.zz * x[:, None]]])
    idle = r + np.flatnonzero(~x.any(axis=0))  # zero column: 1 on the diagonal keeps the normal matrix regular
    xx[0, idle, idle] += 1.0
    xz = np.concatenate([logs.xz, x[:, :, None] * logs.zz], axis=1)
    wide = replace(logs, xx=xx, xz=xz, xy=np.concatenate([logs.xy, x * logs.zy], axis=1))
    left = _spread(wide, size)
    normal, score, _ = marginal(wide, left)
    factor = cholesky(normal)
    slope = cho_solve((factor, False), score, check_finite=False)[r:]
    error = np.linalg.norm(solve_triangular(factor, np.eye(len(normal)))[r:], axis=1)
    used = ~np.isnan(known).any(axis=0) & (np.ptp(np.nan_to_num(known), axis=0) > 0)
    return tuple(np.where(used, each, np.nan) for each in (slope, error, left))  # type: ignore[return-value]


def _effective_weights(rows: MixedRows) -> tuple[dict[str, float], dict[str, float]]:
    """Row group → weight of a row with which the friction scores of the stretches scatter as those of independent rows.

    Each log (for the second weights each of its :data:`PARTS`) has its own free friction here, so that differences between
    logs do not count as noise. With scores ``s_t`` of stretches t that sum to zero, independent rows of variance σ² would give
    ``E sᵀ S⁻¹ s = σ² tr(S⁻¹ (S_t − S_t S⁻¹ S_t))``.
    """
    logs = rows.statistics.logs
    sample_of_logs = [logs[k * len(logs) // min(_NOISE_LOGS, len(logs))] for k in range(min(_NOISE_LOGS, len(logs)))]
    plain = {group: 1.0 / value for group, value in rows.fit.sigma.items()}
    whole = np.concatenate([rows.squares(log, plain)[0] for log in sample_of_logs])
    by_log = whole.reshape(-1, PARTS, *whole.shape[1:]).sum(axis=1)
    alone = [(log, None) for log in sample_of_logs]
    in_parts = [(log, part) for log in sample_of_logs for part in range(PARTS)]
    return _weights(rows, alone, by_log, _STRETCHES), _weights(rows, in_parts, whole, max(_STRETCHES // PARTS, 3))


def _weights(rows: MixedRows, units: Sequence[tuple[str, int | None]], squares_of: Array, stretches: int) -> dict[str, float]:
    """Weights for :func:`_effective_weights`, from the squares of the rows of each unit (a log or a part of it)."""
    statistics, found = rows.statistics, {}
    logs = Moments.of(squares_of, rows.r)
    scale = np.sqrt(positive(np.diagonal(logs.zz, axis1=1, axis2=2).sum(axis=0)))
    free = _FREE * np.sqrt(len(logs)) / scale * np.sqrt(rows.fit.rows)
    normal, score, middles = marginal(logs, free)
    beta = lstsq(normal, score, rcond=1e-12)[0]
    own_change = np.einsum("lqk,lk->lq", middles, logs.zy - np.einsum("lrq,r->lq", logs.xz, beta))
    for group in statistics.groups:
        S, s = np.zeros((len(units), stretches, rows.q, rows.q)), np.zeros((len(units), stretches, rows.q))
        parts, residual, number = np.zeros((len(units), 1, 1)), 0.0, 0
        for k, ((log, part), u) in enumerate(zip(units, own_change, strict=True)):
            R, edges, count = rows.of(log, group, part)
            number += count
            errors = R[:, -1] - R[:, : rows.r] @ beta - R[:, rows.r : -1] @ u
            residual += float(errors @ errors)
            ends = [
                edges[0],
                *(edges[some[-1] + 1] for some in np.array_split(np.arange(len(edges) - 1), stretches) if len(some)),
            ]
            if len(ends) < 3:  # no scatter from a single stretch
                continue
            parts[k] = len(ends) - 1
            for c, (begin, end) in enumerate(pairwise(ends)):
                z = R[begin:end, rows.r : -1]
                S[k, c], s[k, c] = z.T @ z, z.T @ errors[begin:end]
        whole = S.sum(axis=1)
        inverse = np.linalg.pinv(whole, hermitian=True)
        # the mean score is not exactly zero where a parameter acts on several groups
        middle = s.sum(axis=1, keepdims=True) / np.maximum(parts, 1)
        away = np.where(np.arange(stretches)[:, None] < parts, s - middle, 0.0)
        squares = float(np.sum((away @ inverse) * away))
        share = inverse[:, None] @ S
        expected = float(np.trace(share, axis1=2, axis2=3).sum() - np.sum(share * share.swapaxes(2, 3)))
        directions = int(np.count_nonzero(np.diagonal(whole, axis1=1, axis2=2)))
        variance = residual / max(float(number - directions), 1.0)
        floor = rows.fit.sigma[group] ** 2 * 1e-12
        effective = squares / expected if expected > 0 else variance
        found[group] = float(1.0 / np.sqrt(max(effective, variance, floor)))
    return found


def _spread(logs: Moments, size: Array) -> Array:
    """Spread of each parameter by REML, shape (q,); the first guess where the logs cannot show any.

    The first guess is a tenth of the parameter, or its error from one log (at most the parameter) if that is larger. With one
    log in each direction, Coulomb friction and offset that differ between the logs are collinear with their means: the
    likelihood is then flat, and its maximum is anywhere.
    """
    sharp = 1.0 / np.sqrt(positive(np.diagonal(logs.zz, axis1=1, axis2=2).mean(axis=0)))
    guess = np.maximum(0.1 * size, np.minimum(sharp, size)) ** 2
    return np.asarray(np.sqrt(reml(logs, guess, _spread_dof(logs, size**2) < _FEWEST_DOF)))


def _spread_dof(logs: Moments, variance: Array) -> Array:
    """Degrees of freedom of every variance v (Satterthwaite: ``2 v² / var v``), shape (q,); 0 where v is zero."""
    from scipy.linalg import cholesky

    normal, _, middles = marginal(logs, np.sqrt(variance))
    zpz, _, _ = projected(logs, middles, cholesky(normal), np.zeros(len(normal)))
    information = 0.5 * np.sum(np.square(np.diagonal(zpz, axis1=1, axis2=2)), axis=0) * max(len(logs) - 1, 1) / len(logs)
    return np.asarray(2.0 * variance**2 * information)


def changes_between_logs(
    model: DynamicModel, statistics: StatisticSet, fit: Fit, logs: Sequence[PreparedLog] = ()
) -> FrictionChanges:
    """Returns how friction differs between the logs of a fit, and the payload if only some logs carry one.

    Args:
        logs: The logs, for their durations, and their temperatures if all of them have some.

    Returns:
        The record; its ``carried`` is set only if the masses differ significantly (restricted likelihood ratio).

    Raises:
        EstimationError: No friction parameter that may change is identifiable.
    """
    seconds = np.array([sum(len(part) / part.rate for part in log.segments) for log in logs]) if logs else None
    kelvin = [np.nanmean(x, axis=0) for log in logs if (x := log.report.recording.temperature) is not None]
    covariates = np.array(kelvin)[:, [part.axis for part in varying(model)]] if kelvin and len(kelvin) == len(logs) else None
    plain = friction_changes(model, statistics, fit, covariates, seconds)
    if not plain.known:
        return plain
    total = float(sum(inertia.mass for inertia in list(model.robot.model.inertias)[1:]))
    # mass and first moments of the bodies without children, where the data have non-zero columns for them
    length, parents = np.linalg.norm(statistics.stacked()[:, :-1], axis=0), set(model.robot.parents[1:])
    shown, size, bodies = length > _SEEN * length.max(), max(_WORTH * total, 1e-6), list[Varying]()
    for body in (body for body in range(len(model.robot.bodies)) if body not in parents):
        for column in (column for column in range(10 * body, 10 * body + 4) if shown[column]):
            reach = 1.0 if column == 10 * body else _REACH
            bodies.append(Varying(model.names[column], body, "body", (column,), size * reach))
    if not bodies:
        return plain
    try:
        with_bodies = friction_changes(model, statistics, fit, covariates, seconds, carried=bodies)
    except (EstimationError, np.linalg.LinAlgError):  # not significant, or nearly collinear with the other columns
        return plain
    mass = [k for k, part in enumerate(bodies) if part.name.startswith("m_")]
    return (
        with_bodies
        if with_bodies.carried is not None and (np.ptp(with_bodies.carried[:, mass], axis=0) > _WORTH * total).any()
        else plain
    )
