"""What an estimator is: a function of a :class:`EstimatorInput` that returns an :class:`Estimated`.

All subsequent steps (standard parameters, cross-validation, standard errors) read factors. Every estimator therefore returns
statistics for which weighted least squares *is* its estimate. A new one is a function entered in :data:`.method.ESTIMATORS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ...errors import EstimationError
from ...linalg import Array
from ...logs.recording import Recording
from ...model.base import BaseParameters
from ...model.dynamic_model import DynamicModel
from ...model.prior import Prior
from ...signals.prepare import PreparedLog
from ...statistics.fit import Fit, fit_base
from ...statistics.statistic import StatisticSet

#: Simulates the logs with base parameters, shape (b,); returns the motion without noise of each (:class:`.ClosedLoop`).
Simulator = Callable[[Array], Sequence[Recording]]


@dataclass(frozen=True, eq=False)
class EstimatorInput:
    """A converged model and the data of its estimate.

    Attributes:
        model: The model, with the rigid torque of load-dependent friction.
        logs: The logs of the statistics, for a second pass over their rows.
        least_squares: The estimate by (weighted) least squares on the statistics.
        loss: Loss function of IRLS, "tukey" or "huber".
        prior: Prior of the inertial parameters, or None.
        reference: Base values kept where parameters are not identifiable, shape (b,); 0 if None.
        loop: Creates the simulation of the logs, or None.
    """

    model: DynamicModel
    logs: Sequence[PreparedLog]
    statistics: StatisticSet
    least_squares: Fit
    loss: str = "tukey"
    prior: Prior | None = None
    reference: Array | None = None
    loop: Callable[[], Simulator] | None = None

    @property
    def base(self) -> BaseParameters:
        return self.least_squares.base

    def simulator(self, method: str) -> Simulator:
        """Returns the simulation of the logs.

        Raises:
            EstimationError: There is none.
        """
        if self.loop is None:
            raise EstimationError(f"{method} needs the closed loop", remedy="give reference and controller, or use wls")
        return self.loop()

    def refit(self, weights: Mapping[str, float] | None = None) -> Callable[[StatisticSet], Fit]:
        """Returns weighted least squares on part of some statistics.

        Args:
            weights: Row group → weight; from the residuals of the part if None.
        """
        return partial(fit_base, base=self.base, weights=weights, reference=self.reference)


@dataclass(frozen=True, eq=False)
class Estimated:
    """Result of an estimator.

    Attributes:
        fit: The estimate; weighted least squares on ``statistics`` gives the same parameters.
        statistics: The statistics from which standard parameters are chosen.
        why: The reason for this estimator, in words.
        errors: The estimate with standard errors of a kind (``estimation.covariance``) that the estimator has itself; those of
            least squares on the statistics if None.
        simulated: Whether it simulates the closed loop.
        logs: Logs from which the rows of the statistics can be computed again; the prepared logs if None; empty if impossible.
        refit: The same estimator for part of ``solved``, for cross-validation; weighted least squares if None.
        solved: The statistics that it was estimated from if they are not ``statistics``.
        weights: Log → weights of the samples of its segments, shape (N, groups) each, 0 to 1; all 1 if None.
    """

    fit: Fit
    statistics: StatisticSet
    why: str = "as configured"
    errors: Callable[[str], Fit] | None = None
    simulated: bool = False
    logs: Sequence[PreparedLog] | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    refit: Callable[[StatisticSet], Fit] | None = None
    solved: StatisticSet | None = None
    weights: Mapping[str, Sequence[Array]] | None = None

    def as_dict(self) -> dict[str, Any]:
        """Returns the entry ``estimation`` of identification.json."""
        return {"method": self.fit.method, "why": self.why, **self.details}

    def describe(self) -> str:
        """Returns the estimator and its reason in one line."""
        caveat = "; scores on the measured motion, whose noise is in them, do not show its gain"
        return f"estimator: {self.fit.method.upper()} ({self.why}){caveat if self.simulated else ''}"


#: An estimator of base parameters; raises :class:`.EstimationError` where it does not converge, or lacks what it needs.
Estimator = Callable[[EstimatorInput], Estimated]
