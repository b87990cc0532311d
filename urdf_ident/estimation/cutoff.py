"""Selection of the low-pass of the positions by the torque error on held-out logs.

`auto` uses the spectrum alone (:func:`..data.filters.estimate_cutoff`). Here all logs are conditioned with each candidate, the
model is fitted without one of them, and predicts that one; measured and predicted torque are compared after the same low-pass
for all candidates, so that none gains by smoothing the reference. A cut-off other than that of the spectrum is selected only if
its error is lower by more than the scatter of the folds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from ..errors import EstimationError
from ..linalg import Array, rms
from ..logs.recording import Recording
from ..model.dynamic_model import DynamicModel
from ..model.elasticity import ElasticModel
from ..model.payload import Payload
from ..progress import Progress
from ..samples import ReadOnly
from ..signals.config import SignalConfig
from ..signals.filters import HIGHEST, lowpass, score_band
from ..signals.prepare import PreparedLog, prepare_logs
from ..statistics.accumulate import build_statistics
from ..statistics.fit import fit_base
from ..statistics.motions import motions
from ..units import percent

#: Candidates as multiples of the cut-off of the spectrum.
FACTORS = (0.4, 0.55, 0.75, 1.0, 1.35, 1.8, 2.5)
#: Significance level for preferring another cut-off to that of the spectrum.
CHANCE = 0.1
#: Number of parts in time of a single log.
PARTS = 4


@dataclass(frozen=True, eq=False)
class CutoffSweep(ReadOnly):
    """Held-out error of each candidate cut-off.

    Attributes:
        cutoffs: Candidates, shape (c,) [Hz], ascending.
        rmse: Held-out error of each candidate in each fold, mean over joints, shape (c, folds) [N·m or N].
        folds: Names of the held-out logs or parts.
        spectrum: The cut-off from the spectrum [Hz].
        chosen: The selected cut-off [Hz].
        judged: Low-pass of the compared torques [Hz].
    """

    cutoffs: Array
    rmse: Array
    folds: tuple[str, ...]
    spectrum: float
    chosen: float
    judged: float

    @property
    def mean(self) -> Array:
        """Held-out error of each candidate, root mean square over the folds, shape (c,) [N·m or N]."""
        return rms(self.rmse, 1)

    @property
    def why(self) -> str:
        """The reason for the choice, in words."""
        if self.chosen == self.spectrum:
            return f"that of the spectrum: no other beats it on {len(self.folds)} held-out parts by more than their scatter"
        gain = 100 * (1 - self.mean.min() / self.mean[np.argmin(np.abs(self.cutoffs - self.spectrum))])
        return f"{percent(gain)} % better on {len(self.folds)} held-out parts than the {self.spectrum:.4g} Hz of the spectrum"

    def as_dict(self) -> dict[str, Any]:
        """Returns the entry in identification.json."""
        return {
            "cutoffs": self.cutoffs,
            "mean_rmse": self.mean,
            "rmse": self.rmse,
            "folds": list(self.folds),
            "spectrum": self.spectrum,
            "chosen": self.chosen,
            "judged": self.judged,
        }


def sweep_cutoff(
    model: DynamicModel,
    recordings: Sequence[Recording],
    config: SignalConfig,
    *,
    judged: float | None = None,
    force: bool = False,
    progress: Progress | None = None,
    payload: Payload | None = None,
) -> CutoffSweep:
    """Finds the cut-off with the smallest held-out error.

    Args:
        model: The rigid dynamic model; friction not yet selected has its simplest form, and load-dependent friction,
            whose load is not yet known, is omitted.
        recordings: Logs for the identification, as read.
        config: Conditioning with an automatic cut-off.
        judged: Low-pass of the compared torques [Hz]; if None that of scores, which is independent of the candidates.
        force: Use logs in spite of findings that reject them.
        progress: Called with the name of the current log and the number of rows done.
        payload: A known payload in some of the logs, or None.

    Raises:
        EstimationError: Elastic joints, or too few data for cross-validation.
    """
    if isinstance(model, ElasticModel):
        raise EstimationError(
            "signals.cutoff: held_out knows rigid joints only", got="model.elastic", remedy="use `auto`, or Hz"
        )
    model, folds = model.unloaded(), _folds(recordings)
    prepared = partial(prepare_logs, folds, model.robot, model.drive, force=force, payload=payload)
    reference = prepared(replace(config, cutoff="auto"))
    spectrum, rate = reference[0].conditioned.cutoff, min(log.conditioned.rate for log in reference)
    compared = score_band(rate) if judged is None else judged
    tried = sorted({min(factor * spectrum, max(spectrum, HIGHEST * rate)) for factor in FACTORS})
    logs = (reference if cutoff == spectrum else prepared(replace(config, cutoff=cutoff)) for cutoff in tried)
    rmse = np.array([_held_out(model, own, compared, progress) for own in logs])
    return CutoffSweep(
        np.array(tried), rmse, tuple(log.name for log in folds), spectrum, _choice(np.array(tried), rmse, spectrum), compared
    )


def _choice(cutoffs: Array, rmse: Array, spectrum: float) -> float:
    """The best cut-off if it is significantly better than that of the spectrum (Student's t of the folds' differences)."""
    from scipy.special import stdtrit

    own, best = int(np.argmin(np.abs(cutoffs - spectrum))), int(np.argmin(np.mean(rmse**2, axis=1)))
    gain = rmse[own] - rmse[best]
    limit = stdtrit(len(gain) - 1, 1 - CHANCE) * gain.std(ddof=1) / np.sqrt(len(gain))
    return float(cutoffs[best]) if best != own and gain.mean() > limit else spectrum


def _folds(recordings: Sequence[Recording]) -> list[Recording]:
    """The folds: logs, or parts in time of a single log."""
    if len(recordings) != 1:
        return list(recordings)
    (log,) = recordings
    edges = np.linspace(log.time[0], log.time[-1], PARTS + 1)
    parts = []
    for k in range(PARTS):
        inside = (log.time >= edges[k]) & ((log.time < edges[k + 1]) | (k == PARTS - 1))
        parts.append(replace(log.take(inside), name=f"{log.name}, part {k + 1} of {PARTS}", sha256=""))
    return parts


def _held_out(model: DynamicModel, logs: Sequence[PreparedLog], compared: float, progress: Progress | None) -> list[float]:
    """Error of each log with a fit to the other motions, mean over joints."""
    statistics, base = build_statistics(model, logs, progress=progress), model.base()
    found, moves = [], motions(statistics)
    for log in logs:
        together = next(names for names in moves if log.name in names) if len(moves) > 1 else (log.name,)
        theta = base.embedded(fit_base(statistics.without(together), base).params)
        squares, count = np.zeros(model.n), 0
        for part in log.segments:
            error = lowpass(part.total - model.torque_along(theta, part), part.rate, compared)
            squares += np.sum(error**2, axis=0)
            count += len(part)
        found.append(float(np.sqrt(squares / max(count, 1)).mean()))
    return found
