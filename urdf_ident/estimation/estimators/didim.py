"""Direct and inverse dynamic identification model: torque measured, motion simulated (Gautier, Janot, Vandanjon 2013).

No position is differentiated: the closed loop is simulated with the current estimate, and the measured torque is regressed on
the columns of the simulated motion. This is a Gauss-Newton method for the error between measured and simulated torque, because
under feedback the simulated motion hardly depends on the parameters. Noise on the positions does not enter the columns and
causes no bias.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...errors import EstimationError
from ...linalg import Array
from ...logs.recording import Recording
from ...model.base import BaseParameters
from ...model.dynamic_model import DynamicModel
from ...signals.prepare import PreparedLog
from ...statistics.accumulate import build_statistics
from ...statistics.fit import Fit, fit_base
from ...statistics.statistic import StatisticSet
from .instrumental import Simulator, with_simulated

#: Maximum number of simulations; converged if no parameter changes by more than this share of its standard error.
ROUNDS, CONVERGED = 12, 0.05


@dataclass(frozen=True, eq=False)
class DidimFit:
    """An estimate from simulated motions.

    Attributes:
        fit: The estimate, ``method`` "didim".
        statistics: Rows of the simulated motions and the measured torque.
        logs: The logs with the simulated motion in place of the measured one.
    """

    fit: Fit
    statistics: StatisticSet
    logs: tuple[PreparedLog, ...]
    rounds: int


def fit_didim(
    model: DynamicModel,
    logs: Sequence[PreparedLog],
    base: BaseParameters,
    simulator: Simulator,
    start: Array,
    *,
    reference: Array | None = None,
) -> DidimFit:
    """Simulates and regresses the measured torque on the simulated motion in turn until the estimate converges.

    Args:
        simulator: Called with base parameters, shape (b,).
        start: Base parameters of the first simulation, shape (b,).
        reference: Base values kept where parameters are not identifiable, shape (b,); 0 if None.

    Raises:
        EstimationError: It does not converge, or the simulation does not cover the logs.
    """
    params = np.array(start, dtype=float)
    for turn in range(1, ROUNDS + 1):
        clean = [_on_simulated_motion(log, motion) for log, motion in zip(logs, simulator(params), strict=True)]
        statistics = build_statistics(model, clean)
        fit = fit_base(statistics, base, reference=reference)
        if fit.distance(params) < CONVERGED:
            return DidimFit(replace(fit, method="didim"), statistics, tuple(clean), turn)
        params = fit.params
    raise EstimationError(
        "simulation and estimate do not converge",
        got=f"{ROUNDS} simulations",
        remedy="check simulation.controller, or use method iv or wls",
    )


def _on_simulated_motion(log: PreparedLog, clean: Recording) -> PreparedLog:
    """Returns the log with a simulated motion in place of the measured one, and the same torque.

    Args:
        clean: The simulated motion, as for :func:`.instrumental.with_simulated`.

    Raises:
        EstimationError: The simulation has other joints, or does not cover the log.
    """
    segments = []
    for segment in with_simulated(log, clean).segments:
        simulated = segment.simulated
        if simulated is not None:
            segments.append(replace(segment, q=simulated.q, v=simulated.v, a=simulated.a, simulated=None, before=None))
    return log.with_segments(segments)
