"""The low-pass of the positions for predictions of torque, chosen by the error on motion that took no part in the estimate.

The low-pass of the *fit* follows the spectrum (:func:`.filters.estimate_cutoff`): noise of the accelerations would bias
inertias towards zero, so it passes hardly any. A *prediction* may use more of the motion, although it is noisy, or less, where
efforts are logged with a smaller bandwidth than positions. Every log is predicted behind a multiple of the cut-off of its own
spectrum, because motion and noise differ between logs. The multiple is chosen: parameters estimated without each fold predict
it behind each candidate, and measured and predicted torque are compared in the band of scores, which depends on no candidate.
It is 1 unless another one is better beyond the error of the paired difference.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...linalg import Array
from ...model.dynamic_model import DynamicModel
from ...parallel import each
from ...signals.config import SignalConfig
from ...signals.filters import lowpass, prediction_cutoff, score_band
from ...signals.prepare import PreparedLog, in_band
from ...statistics.choice import chosen, relative_gains
from ...units import percent
from .prediction import HeldOutParameters


def choose_prediction_band(
    model: DynamicModel,
    logs: Sequence[PreparedLog],
    held: HeldOutParameters,
    config: SignalConfig,
    *,
    compared: float | None = None,
) -> dict[str, Any]:
    """Chooses the low-pass of the positions for predictions.

    Candidates are octaves from the cut-off of the spectrum, as long as they lower the error, and half octaves beside the best.

    Args:
        config: The conditioning of the logs, with an automatic low-pass of the positions.
        compared: Low-pass of the compared torques [Hz]; None: that of scores.

    Returns:
        The entry ``signals.prediction`` of identification.json: the multiple of the cut-off of each log's spectrum; all that
        were tried, ascending, and their held-out errors, RMS over folds, mean over joints [N·m or N]; the names of the folds,
        the low-pass of the compared torques [Hz], and the reason for the choice.
    """
    rates = [log.conditioned.rate for log in logs]
    band = score_band(min(rates)) if compared is None else compared
    counts = np.sum([np.bincount(owner, minlength=len(held.folds)) for owner in held.owner], axis=0)
    squares: dict[float, Array] = {}
    seen = set[tuple[float, ...]]()

    def best_of(octaves: Sequence[float]) -> float:
        """Adds candidates, apart from those that differ in no log from an earlier one; returns the one of the least error."""
        new, tasks = list[float](), list[tuple[float, ...]]()
        for x in octaves:
            cutoffs = tuple(prediction_cutoff(log.spectrum, 2.0**x, log.conditioned.rate) for log in logs)
            if cutoffs not in seen:
                seen.add(cutoffs)
                new.append(x)
                tasks.append(cutoffs)
        if new:
            owned = list(zip(logs, held.owner, zip(*tasks, strict=True), strict=True))
            errors = each(partial(_squares, model, held.theta, band, config), owned)
            squares.update(zip(new, np.sum(errors, axis=0) / np.maximum(counts, 1)[:, None], strict=True))
        return max(squares, key=lambda x: float(relative_gains(squares[0.0], squares[x]).mean()))

    best = best_of((0.0, -1.0, 1.0))
    while best in (min(squares), max(squares)) and best != (best := best_of((best + np.sign(best),))):
        pass
    best_of((best - 0.5, best + 0.5))
    tried = sorted(squares)
    errors_of_tried = np.array([squares[x] for x in tried])
    best, plain = chosen(errors_of_tried, tried.index(0.0)), tried.index(0.0)
    mean, scale = np.sqrt(errors_of_tried.mean(axis=1)).mean(axis=1), 2.0 ** tried[best]
    parts = f"{len(held.folds)} held-out parts"
    why = f"that of each log's spectrum: no other is better on {parts} by more than its error"
    if best != plain:
        gain = percent(100 * (1 - float(mean[best] / mean[plain])))
        why = f"{scale:.3g} times that of each log's spectrum: {gain} % better on {parts}"
    scales = 2.0 ** np.array(tried)
    return {"scale": scale, "scales": scales, "mean_rmse": mean, "folds": list(held.folds), "compared": band, "why": why}


def in_all_periods(held: HeldOutParameters, averaged: Sequence[PreparedLog], whole: Sequence[PreparedLog]) -> HeldOutParameters:
    """Assigns every sample of logs with all of their periods to the fold of its phase.

    Args:
        held: Parameters estimated without each fold of the averaged logs.
        averaged: The logs of the fit; those without averaged periods are the same in ``whole``.
        whole: The logs with all of their motion.
    """
    owners = list[NDArray[np.int32]]()
    for log, unaveraged, owner in zip(averaged, whole, held.owner, strict=True):
        if (period := log.conditioned.averaged) is not None:
            known, phases = (
                np.concatenate([(part.time - period.start) % period.seconds for part in one.segments])
                for one in (log, unaveraged)
            )
            order = np.argsort(known)
            owner = owner[order[np.searchsorted(known[order], phases).clip(max=len(known) - 1)]]
        owners.append(owner)
    return replace(held, owner=tuple(owners))


def _squares(
    model: DynamicModel,
    theta: Array,
    band: float,
    config: SignalConfig,
    log: tuple[PreparedLog, NDArray[np.int32], Sequence[float]],
) -> Array:
    """Summed squared errors of one log behind each cut-off, shape (cutoffs, folds, n)."""
    prepared, owner, cutoffs = log
    squares = np.zeros((len(cutoffs), theta.shape[1], model.n))
    for k, cutoff in enumerate(cutoffs):
        begin = 0
        for part in in_band(prepared, replace(config, cutoff=cutoff)).segments:
            of = owner[begin : begin + len(part)]
            begin += len(part)
            error = lowpass(part.total - model.torque_by_sample(theta, of, part), part.rate, band) ** 2
            for fold in np.unique(of):
                squares[k, fold] += error[of == fold].sum(axis=0)
    return squares
