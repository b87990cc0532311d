"""Direct and inverse dynamic identification model: torque measured, motion simulated (Gautier, Janot, Vandanjon 2013).

No position is differentiated: the closed loop is simulated with the current estimate, and the measured torque is regressed on
the columns of the simulated motion. This is a Gauss-Newton method for the error between measured and simulated torque, because
under feedback the simulated motion hardly depends on the parameters. Noise on the positions does not enter the columns and
causes no bias.
"""

from __future__ import annotations

from dataclasses import replace

from ...errors import EstimationError
from ...statistics.accumulate import build_statistics
from .estimator import Estimated, EstimatorInput
from .instrumental import with_simulated

#: Maximum number of simulations; converged if no parameter changes by more than this share of its standard error.
ROUNDS, CONVERGED = 12, 0.05


def didim(problem: EstimatorInput) -> Estimated:
    """Simulates and regresses the measured torque on the simulated motion in turn until the estimate converges.

    Raises:
        EstimationError: It does not converge, or the simulation does not cover the logs.
    """
    simulator, refit, params = problem.simulator("didim"), problem.refit(), problem.least_squares.params
    for turn in range(1, ROUNDS + 1):
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
            return Estimated(estimate, statistics, simulated=True, logs=clean, details=details, refit=refit, solved=statistics)
        params = fit.params
    raise EstimationError(
        "simulation and estimate do not converge",
        got=f"{ROUNDS} simulations",
        remedy="check simulation.controller, or use method iv or wls",
    )
