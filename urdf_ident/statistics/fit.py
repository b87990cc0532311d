"""Estimates the base parameters, the identifiable combinations, with their uncertainty, alone or with the prior.

Least squares estimates poorly excited parameters with large errors. The prior gives the uncertainty of each *standard*
parameter; through the reduction ``beta = theta_L + K theta_K`` it implies mean and covariance of the base parameters, so that
ridge regression (Hoerl, Kennard 1970) needs no weight. Friction and rotor inertia, which a URDF lacks, have no prior.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..errors import EstimationError, check_known
from ..files.documents import frame
from ..linalg import Array, BoolArray, positive, solve_triangular, standard_errors
from ..model.base import BaseParameters
from ..model.prior import USUAL_WEIGHT, Prior
from ..samples import ReadOnly
from .least_squares import Solution, solve
from .log_effects.changes import FrictionChanges
from .statistic import StatisticSet, is_measured

#: Residuals below this fraction of the torque are rounding errors, not noise, and must not define weights.
SIGMA_FLOOR = 1e-9
#: WLS updates its weights until they change by less than this fraction; maximum number of updates.
_CONVERGED, _ROUNDS = 1e-3, 5


@dataclass(frozen=True, eq=False)
class Fit(ReadOnly):
    """Estimated base parameters (attribute names as in statsmodels).

    Attributes:
        base: The reduction that the parameters belong to.
        params: Estimates, shape (b,).
        covariance: Shape (b, b); rows of unidentifiable parameters are not meaningful.
        seen: Shape (b,): False where the data do not identify the parameter.
        sigma: Row group → standard deviation of its residual [unit of torque].
        dof: Degrees of freedom of the residual.
        condition: Condition number of the column-scaled, weighted regressor.
        method: Name of the estimator: "ols", "wls", or one of those that replace them.
        row_weights: Row group → weight that multiplied W and tau.
        error_dof: Degrees of freedom of each standard error, shape (b,).
        changes: How friction differs between the logs; None if it was not estimated.
    """

    base: BaseParameters
    params: Array
    covariance: Array
    seen: BoolArray
    sigma: Mapping[str, float]
    rows: int
    dof: float
    condition: float
    method: str
    covariance_kind: str
    row_weights: Mapping[str, float]
    error_dof: Array
    changes: FrictionChanges | None = None

    @cached_property
    def bse(self) -> Array:
        """Standard errors, shape (b,); inf where a parameter is not identifiable."""
        return np.where(self.seen, np.sqrt(np.maximum(np.diag(self.covariance), 0.0)), np.inf)

    @cached_property
    def spread_covariance(self) -> Array:
        """The part of the covariance due to friction's spread between logs, shape (b, b); zero where it is unknown."""
        covariance = np.zeros(self.covariance.shape)
        if self.changes is not None and self.changes.known:
            for columns, spread in zip(self.changes.columns, self.changes.spread, strict=True):
                direction = self.base.projection[:, list(columns)].sum(axis=1)
                covariance += spread**2 * np.outer(direction, direction)
        return covariance

    def dof_of(self, rows: Array) -> Array:
        """Returns the degrees of freedom of the errors of linear functions of the base parameters.

        Args:
            rows: Their coefficients, shape (…, b).

        Returns:
            Harmonic means over the parameters, weighted with their variances, shape (…).
        """
        variances = rows**2 * np.diag(self.covariance)
        total = variances.sum(axis=-1)
        return np.where(total > 0, total / positive((variances / self.error_dof).sum(axis=-1)), self.dof)

    def variance_factor(self, factor: Array) -> float:
        """Returns the median factor by which the variances exceed those of independent residuals.

        Args:
            factor: Columns of the base parameters in the fit's rows, whitened, shape (m, b).

        Returns:
            At least 1 for most logs; 1 if unknown.
        """
        nominal, errors = standard_errors(factor), self.of_mean.bse
        usual = self.seen & np.isfinite(nominal) & (nominal > 0)
        return float(np.median((errors[usual] / nominal[usual]) ** 2)) if usual.any() else 1.0

    @cached_property
    def of_mean(self) -> Fit:
        """The same fit with errors of the mean over logs instead of those for the next log."""
        return replace(self, covariance=self.covariance - self.spread_covariance)

    def for_next_log(self, changes: FrictionChanges) -> Fit:
        """Returns the fit with the errors of friction in a future log: variance of the mean plus ``spread²``.

        Args:
            changes: How friction differs between the logs of the fit; q parameters.

        Returns:
            The fit with the record and these errors; if the spread is unknown, with unchanged errors.
        """
        if not changes.known:
            place = {int(index): row for row, index in enumerate(self.base.independent)}
            return replace(self, changes=replace(changes, mean_error=self.bse[[place[own[0]] for own in changes.columns]]))
        with_changes = replace(self, changes=changes)
        added = with_changes.spread_covariance
        covariance, more = self.covariance + added, np.diag(added)
        dof = np.array(self.error_dof)
        for columns, own in zip(changes.columns, np.maximum(changes.spread_dof, 1.0), strict=True):
            rows = np.flatnonzero((self.base.projection[:, list(columns)].sum(axis=1) != 0) & (more > 0))
            parts = np.diag(self.covariance)[rows] ** 2 / dof[rows] + more[rows] ** 2 / own  # Satterthwaite
            dof[rows] = np.diag(covariance)[rows] ** 2 / parts
        kind = f"{self.covariance_kind}; friction: for the next log, its spread between {len(changes.logs)} logs included"
        return replace(with_changes, covariance=covariance, error_dof=dof, covariance_kind=kind)

    @property
    def relative_percent(self) -> Array:
        """``100 σ/|β|`` (Gautier 2013, eq. 12), shape (b,) [%]."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self.params == 0, np.inf, 100.0 * self.bse / np.abs(self.params))

    def cov_params(self) -> Array:
        """Covariance of the base parameters, shape (b, b)."""
        return self.covariance

    def conf_int(self, alpha: float = 0.05) -> Array:
        """Returns confidence intervals (Student's t).

        Args:
            alpha: One minus the confidence level, a fraction.

        Returns:
            Shape (b, 2): lower and upper bounds; ±inf where a parameter is not identifiable.
        """
        from scipy.special import stdtrit

        reach = stdtrit(self.error_dof, 1 - alpha / 2) * self.bse
        return np.column_stack([self.params - reach, self.params + reach])

    def distance(self, params: Array) -> float:
        """Returns the largest difference of an identifiable parameter from other estimates, in standard errors.

        Args:
            params: The other estimates, shape (b,).
        """
        return float((np.abs(self.params - params) / positive(self.bse))[self.seen].max(initial=0.0))

    def theta(self, dependent: Array) -> Array:
        """Returns standard parameters with exactly these base parameters, shape (p,).

        Args:
            dependent: Standard parameters that give the dependent entries, shape (p,).
        """
        theta = dependent.copy()
        theta[self.base.independent] = self.params - self.base.K @ theta[self.base.dependent]
        return theta

    @property
    def weights(self) -> dict[str, float]:
        """Row group → weight ``1/σ`` on its rows [1/unit of torque]."""
        return {group: 1.0 / value for group, value in self.sigma.items()}

    def summary(self) -> str:
        """Returns one line per base parameter (value, standard errors, 95 % interval, unit), then friction between the logs."""
        lines = [
            f"{self.method.upper()}, {len(self.base)} base parameters, {self.rows} rows, condition {self.condition:.3g}, "
            f"standard errors: {self.covariance_kind}",
            f"  {'':<32} {'value':>13} {'std. error':>11} {'rel. error':>12} {'95 % interval':>28}  unit",
        ]
        table = zip(self.base.labels, self.params, self.bse, self.relative_percent, self.conf_int(), self._units, strict=True)
        for label, value, error, percent, (low, high), unit in table:
            interval = f"{f'[{low:.5g}, {high:.5g}]':>28}"
            lines.append(f"  {label:<32} {value:>13.6g} {error:>11.3g} {percent:>10.3g} % {interval}  {unit}".rstrip())
        return "\n".join([*lines, *([] if self.changes is None else self.changes.lines())])

    def to_frame(self, alpha: float = 0.05) -> Any:
        """Returns the base parameters as a pandas frame indexed by name, or as a structured array without pandas.

        Args:
            alpha: One minus the confidence level of the intervals, a fraction.

        Returns:
            Columns unit, value, std_error, low, high, seen [SI].
        """
        low, high = self.conf_int(alpha).T
        numbers = {"value": self.params, "std_error": self.bse, "low": low, "high": high, "seen": self.seen}
        return frame({"name": self.base.labels, "unit": self._units, **numbers})

    @property
    def _units(self) -> list[str]:
        """Units of the base parameters; empty texts if unknown."""
        return [self.base.units[k] if self.base.units else "" for k in self.base.independent]

    def __repr__(self) -> str:
        return (
            f"<Fit: {self.method.upper()}, {len(self.base)} base parameters, {self.rows} rows, condition {self.condition:.3g}; "
            ".summary() .to_frame() .params .bse .conf_int()>"
        )


def fit_base(
    statistics: StatisticSet,
    base: BaseParameters,
    *,
    method: str = "wls",
    reference: Array | None = None,
    weights: Mapping[str, float] | None = None,
    start: Mapping[str, float] | None = None,
) -> Fit:
    """Estimates the base parameters by OLS or WLS.

    WLS weights each row group, W and tau alike, by the inverse standard deviation of its residual: first of the OLS residual
    (Szabó 2021, eqs. 17-19; Gautier 2013, §III), then of the WLS residual, until it converges. The standard errors are
    scaled by the whitened residual.

    Args:
        method: "ols", or "wls" ("auto" is "wls").
        reference: Base values kept where parameters are not identifiable, shape (b,); 0 if None.
        weights: Fixed weights per row group [1/unit of torque], instead of those from the residuals.
        start: Relative weights per row group at which the iteration of WLS starts, instead of those of OLS.

    Raises:
        EstimationError: Unknown method, or fewer rows than parameters.
    """
    check_known("estimation.method", method, ("auto", "ols", "wls"), EstimationError)
    rows = sum(statistics.rows.values())
    if rows <= len(base):
        raise EstimationError(
            "fewer rows than parameters",
            got=f"{rows} rows",
            expected=f"> {len(base)}",
            remedy="record longer or more logs, or raise signals.decimate",
        )
    begin = weights or start
    first = solve(statistics.stacked(begin, base.independent), rows, reference)
    sigma = group_sigma(statistics, base, first, begin)
    if method == "ols" or weights is not None:
        return fit_of(base, first, sigma, method if weights is None else "wls", weights or dict.fromkeys(sigma, 1.0))
    # The OLS residual of a group with little noise (an actuator row, for instance) contains errors due to the noisier groups;
    # after another iteration σ reflects the group's own noise.
    for _ in range(_ROUNDS):
        weights_now = {group: 1.0 / s for group, s in sigma.items()}
        second = solve(statistics.stacked(weights_now, base.independent), rows, reference)
        before, sigma = sigma, group_sigma(statistics, base, second, weights_now)
        if all(abs(sigma[group] / before[group] - 1.0) < _CONVERGED for group in sigma):
            break
    return fit_of(base, second, sigma, "wls", weights_now)


def group_sigma(
    statistics: StatisticSet, base: BaseParameters, solution: Solution, weights: Mapping[str, float] | None = None
) -> dict[str, float]:
    """Returns the residual standard deviation of every row group, with degrees of freedom from the leverage.

    Args:
        weights: The weights used for it.

    Returns:
        Row group → σ [unit of torque].
    """
    theta, root = base.embedded(solution.estimate), base.embedded(solution.root)
    sigma = {}
    efforts = {group: np.sqrt(statistics.effort_squares(group) / max(rows, 1)) for group, rows in statistics.rows.items()}
    least = SIGMA_FLOOR * max(efforts.values(), default=0.0)
    for layout in statistics.layouts:
        squares = statistics.residual_squares(theta, layout.group)
        R = statistics.factor(layout.group)
        weight = 1.0 if weights is None else weights[layout.group]
        begin = len(layout.instruments)
        leverage = weight**2 * float(np.sum((R[:, begin : begin + len(layout.columns)] @ root[layout.columns]) ** 2))
        rows = statistics.rows[layout.group]
        deviation = float(max(np.sqrt(squares / max(rows - leverage, 1.0)), SIGMA_FLOOR * efforts[layout.group]))
        without_effort = is_measured(layout.group) and efforts[layout.group] <= least
        sigma[layout.group] = deviation if deviation > 0 and not without_effort else 1.0  # a torque of zero has no scale
    return sigma


def fit_of(
    base: BaseParameters, solution: Solution, sigma: Mapping[str, float], method: str, weights: Mapping[str, float]
) -> Fit:
    """Returns the fit of a solution, with standard errors of independent residuals.

    Args:
        sigma: Row group → standard deviation of its residual [unit of torque].
        weights: Row group → weight of its rows [1/unit of torque].
    """
    return Fit(
        base,
        solution.estimate,
        solution.covariance(),
        solution.seen,
        dict(sigma),
        solution.rows,
        solution.dof,
        solution.condition,
        method,
        f"model-based ({method.upper()}, independent residuals)",
        dict(weights),
        np.full(len(base), float(solution.dof)),
    )


#: Coefficients of a combination below this are rounding errors.
_ROUNDING = 1e-9


def base_prior(base: BaseParameters, prior: Prior) -> tuple[Array, Array]:
    """Returns the prior of the base parameters that is implied by a prior of the standard parameters.

    Args:
        prior: Prior of the first k of them; combinations that contain any of the others have no prior.

    Returns:
        Mean, shape (b,), and a matrix S, shape (r, b), so that ``‖S (beta − mean)‖²`` is the squared distance in standard
        deviations; parameters without a prior have zero columns.
    """
    held, coefficients = _known(base, prior)
    S = np.zeros((len(held), len(base)))
    if len(held):
        from scipy.linalg import cholesky

        S[:, held] = solve_triangular(cholesky(coefficients.T @ coefficients), np.eye(len(held)), transposed=True)
    return prior_mean(base, prior), S


def prior_mean(base: BaseParameters, prior: Prior) -> Array:
    """Returns the prior mean of the base parameters, with friction and rotor inertias zero, shape (b,)."""
    return base.of(np.concatenate([prior.theta0, np.zeros(len(base.names) - len(prior.theta0))]))


def likely_slopes(base: BaseParameters, prior: Prior) -> Array:
    """Returns M of the most likely inertial parameters given base parameters, ``theta0 + M (beta - prior_mean)``.

    A base parameter that contains a rotor inertia is uninformative about the links: the rotor, which has no prior, can account
    for any difference.

    Returns:
        M, shape (k, b).
    """
    held, coefficients = _known(base, prior)
    M = np.zeros((len(prior.theta0), len(base)))
    if len(held):
        M[:, held] = prior.deviations @ np.linalg.pinv(coefficients.T)
    return M


def _known(base: BaseParameters, prior: Prior) -> tuple[np.ndarray, Array]:
    """Indices of the base parameters that contain only parameters with a prior, and a root of their prior covariance."""
    k = len(prior.theta0)
    held = np.flatnonzero(np.abs(base.projection[:, k:]).max(axis=1, initial=0.0) < _ROUNDING)
    return held, prior.deviations.T @ base.projection[held, :k].T


def fit_ridge(statistics: StatisticSet, fit: Fit, prior: Prior) -> Fit:
    """Estimates the most likely base parameters given the data and the prior: ridge regression with the prior's covariance.

    Args:
        fit: The weighted least-squares fit, whose residual gives the weight of the data relative to the prior.
        prior: As for :func:`base_prior`.

    Returns:
        The estimate, ``method`` "ridge", with the posterior covariance.
    """
    mean, S = base_prior(fit.base, prior)
    data = statistics.stacked(fit.weights, fit.base.independent)
    solution = solve(np.vstack([data, np.column_stack([S, S @ mean])]), fit.rows + len(S), mean)
    return replace(
        fit,
        params=solution.estimate,
        covariance=solution.covariance(1.0),
        seen=solution.seen,
        method="ridge",
        covariance_kind="posterior of independent residuals and the prior",
        condition=solution.condition,
    )


def usual_weight(statistics: StatisticSet, fit: Fit, misfit: float = 1.0) -> float:
    """Returns the prior's weight that the errors of a fit justify: the factor by which its nominal variances are too small.

    The likelihood of independent residuals is too sharp where they are not independent: in slow motion, where unmodelled
    friction dominates them, by a factor of up to some hundreds. Raised to the power of one over that factor it has the right
    curvature in the median (Lyddon, Holmes, Walker 2019; with the median of variances instead of their sum, which one direction
    can dominate). As the weight of the prior it has the same effect.

    Args:
        fit: The fit with the errors of its covariance estimate.
        misfit: Squared errors of the model over those that the residuals of the fit show.

    Returns:
        At least :data:`.prior.USUAL_WEIGHT`, which is that of usual errors of the model.
    """
    rows = statistics.stacked(fit.weights, fit.base.independent)[:, :-1]
    return max(USUAL_WEIGHT, misfit * fit.variance_factor(rows))
