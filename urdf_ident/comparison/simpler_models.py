"""Whether the exported parameters predict motion that took no part at least as well as simpler models do.

On every fold of the data they are compared with the URDF, the URDF with fitted friction, and unconstrained least squares with
viscous and Coulomb friction and an offset, each estimated without the fold. Worse means that the paired difference of squared
errors over the folds exceeds its standard error. Friction laws were chosen on the same folds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..consistency.first_fit import urdf_with_friction
from ..errors import EstimationError
from ..friction import Coulomb, Offset, Viscous
from ..linalg import Array, IntArray, rms, scaled_lstsq
from ..model.dynamic_model import DynamicModel
from ..model.terms import RotorInertia
from ..statistics.fit import Fit
from ..statistics.folds import folds_of, relative_gains, score_folds, worse
from ..statistics.statistic import StatisticSet, is_measured

#: What the export is compared with, in words.
NAMES = {"urdf": "the URDF", "urdf_friction": "the URDF with friction", "least_squares": "least squares with simple friction"}
_SIMPLE = {Viscous.name, Coulomb.name, Offset.name, RotorInertia.name}


def compare_simpler_models(
    model: DynamicModel,
    statistics: StatisticSet,
    fit: Fit,
    theta0: Array,
    exported: Mapping[str, Array],
    limits: tuple[str, ...],
) -> dict[str, Any]:
    """Compares the exported parameters with simpler ones.

    Args:
        theta0: Parameters of the URDF, shape (p,).
        exported: Parameters chosen as the exported ones without each fold, shape (p,) each.

    Returns:
        The entry ``simpler_models`` of identification.json; empty where nothing can be held out.
    """
    try:
        split = folds_of(statistics)
    except EstimationError:
        return {}
    if set(exported) != set(split.logs):
        return {}
    bare = theta0.copy()
    bare[model.n_inertial :] = 0.0

    def least_squares(kept: StatisticSet, columns: IntArray) -> Array:
        factor, theta = kept.stacked(fit.weights, columns), np.zeros(len(theta0))
        theta[columns] = scaled_lstsq(factor[:, :-1], factor[:, -1])
        return theta

    further_laws = {
        k for applied, of in model.placed_terms if applied.term.name not in _SIMPLE for k in range(of.start, of.stop)
    }
    simple = np.array([k for k in fit.base.independent if int(k) not in further_laws], dtype=np.intp)
    without = {fold: split.left_out(fold) for fold in split.logs}
    alternatives: dict[str, Mapping[str, Array]] = {
        "urdf": dict.fromkeys(split.logs, bare),
        "urdf_friction": {fold: urdf_with_friction(model, kept, fit, theta0) for fold, kept in without.items()},
        "least_squares": {fold: least_squares(kept, simple) for fold, kept in without.items()},
        "fit": {fold: least_squares(kept, fit.base.independent) for fold, kept in without.items()},
        "exported": exported,
    }
    squares = {name: score_folds(statistics, by_fold).rmse ** 2 for name, by_fold in alternatives.items()}
    groups = [k for k, group in enumerate(split.groups) if is_measured(group)]
    export, lost = squares["exported"], list[dict[str, Any]]()
    for name in NAMES:
        other = squares[name]
        beaten = [split.groups[k] for k in groups if worse(other[:, k], export[:, k])]
        gains = relative_gains(other[:, groups], export[:, groups])
        mean = worse(gains, np.zeros(len(gains)))
        if beaten or mean:
            limited = any(worse(squares["fit"][:, k], export[:, k]) for k in groups if split.groups[k] in beaten)
            lost.append({"model": name, "groups": beaten, "mean": mean, "cause": "constraints" if limited else "laws"})
    errors = {name: rms(np.sqrt(values), 0)[groups] for name, values in squares.items()}
    entry = {"folds": list(split.logs), "groups": [split.groups[k] for k in groups], "rmse": errors, "worse": lost}
    return {**entry, "text": _in_words(lost, limits)}


def _in_words(lost: Sequence[Mapping[str, Any]], limits: tuple[str, ...]) -> str:
    """Says which simpler models predict better, in the mean first, and because of what."""
    if not lost:
        return f"on held-out parts of the data no better prediction by {', '.join(NAMES.values())}"
    better = []
    for comparison in sorted(lost, key=lambda comparison: not comparison["mean"]):
        joints = ", ".join(group.partition(":")[2] for group in comparison["groups"])
        in_mean = " in the mean" if comparison["mean"] else ""
        better.append(NAMES[comparison["model"]] + in_mean + (f" ({joints})" if joints else ""))
    cause = "the prior" if any(comparison["cause"] == "constraints" for comparison in lost) else "the chosen friction laws"
    return f"on held-out parts of the data better: {'; '.join(better)}; because of {' or of '.join((cause, *limits))}"
