"""Weights of the equations of joints that rest while others move.

Dry friction holds a joint at rest with any torque within its Coulomb friction. Its equation then tells gravity and offset only
up to that torque, whose variance is estimated beside that of the residual in motion. A rest is one observation there, because
the torque hardly changes while it lasts; moving joints are observed over windows as long as the shortest rest. Both variances
are found together, with the leverage of their rows (variance components, Förstner 1979), as the estimate would otherwise follow
the resting rows where they are more, and their residuals look small. The iteration has several fixed points. It starts with
small weights of the resting rows: from equal ones it may end with rests that fit gravity and motion that does not, which has
the smaller likelihood. Where rests or motions are too few to show a variance, rests keep that small weight: every drive has dry
friction, and one rest would otherwise count as much as all its samples in motion.

Joints that their drives visibly hold without stiction keep their full weight, and so do joints that never move.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from ...errors import EstimationError
from ...grouping import runs
from ...linalg import Array, IntArray, triangle
from ...model.dynamic_model import DynamicModel
from ...parallel import each
from ...samples import Segment
from ...signals.condition import rest_speeds
from ...signals.config import SignalConfig
from ...signals.prepare import PreparedLog
from ...statistics.fit import fit_base
from ...statistics.least_squares import CORRECTION_LEVEL
from ...statistics.rows import evenly_spread, row_pieces
from ...statistics.statistic import Statistic, StatisticSet, layouts_of, merge_all

#: A rest lasts at least this many periods of the low-pass of the positions, which hides shorter ones; as :func:`.cut_rest`.
SHORTEST = 2.0
#: Fewest rests and stretches of motion of a joint that show a variance.
FEWEST = 3
#: Factor on resting rows, relative to those in motion, at which the iteration starts, and where rests are too few to show their
#: variance: they determine only what motion does not.
_START = 0.1
_AT_REST = " at rest"


@dataclass(frozen=True, eq=False)
class Rests:
    """Resting row groups: below their speed for some time.

    Attributes:
        turns: Velocity of each row group's joint or motor from those of the joints, shape (groups, n).
        speeds: Speed below which it is at rest, shape (groups,) [rad/s or m/s].
    """

    turns: Array
    speeds: Array

    @classmethod
    def of(cls, model: DynamicModel, logs: Sequence[PreparedLog], config: SignalConfig) -> Rests:
        """Finds the speeds in the data."""
        coupled = model.drive.coupled
        turns = np.array([model.drive.rate_weights(g.joint, "motor" if coupled[g.joint] else "joint") for g in model.groups])
        return cls(turns, rest_speeds([part.v @ turns.T for log in logs for part in log.segments], config))

    def labels(self, segment: Segment, least: int) -> IntArray:
        """Returns the number of the rest that each sample belongs to, from 1; 0 in motion, shape (N, groups)."""
        slow = np.abs(segment.v @ self.turns.T) < self.speeds
        number_of_rest = np.zeros(slow.shape, dtype=np.intp)
        for below, out in zip(slow.T, number_of_rest.T, strict=True):
            long = (run for run in runs(below) if run[1] - run[0] >= least)
            for number, (begin, end) in enumerate(long, 1):
                out[begin:end] = number
        return number_of_rest


def weigh_rests(
    model: DynamicModel, logs: Sequence[PreparedLog], config: SignalConfig
) -> tuple[Sequence[PreparedLog], tuple[str, ...]]:
    """Gives the samples of resting joints the weight of one observation per rest, where dry friction is visible there.

    Returns:
        The logs, whose segments have weights if any joint needs them, and a note for the user on each such joint.
    """
    from scipy.special import fdtrc

    rests = Rests.of(model, logs, config)
    if not any(rests.labels(part, _shortest(log, part)).any() for log in logs for part in log.segments):
        return logs, ()
    windows = merge_all(each(partial(_windows, model, rests), evenly_spread(logs)))
    start = {group: _START if group.endswith(_AT_REST) else 1.0 for group in windows.groups}
    fit = None
    with suppress(EstimationError):  # fewer windows than parameters
        fit = fit_base(windows, model.base(), start=start)
    # variance of the residual in motion over that at rest, 1 unless the latter is significantly larger; None: too few rows
    shown, theta = list[float | None](), None if fit is None else fit.base.embedded(fit.params)
    for name in (group.name for group in model.groups):
        still, ratio = name + _AT_REST, None
        fewest = min(windows.rows[name], windows.rows[still])
        if fewest == 0:
            ratio = 1.0
        elif fit is not None and theta is not None and fewest >= FEWEST:  # degrees of freedom: rows less leverage
            dof = [windows.residual_squares(theta, group) / fit.sigma[group] ** 2 for group in (still, name)]
            ratio = (fit.sigma[name] / fit.sigma[still]) ** 2
            ratio = None if min(dof) < 1.0 else ratio if fdtrc(*dof, 1.0 / ratio) < CORRECTION_LEVEL else 1.0
        shown.append(ratio)
    ratios = np.array([_START**2 if ratio is None else ratio for ratio in shown])
    if (ratios == 1.0).all():
        return logs, ()
    names = [(model.robot.joints[group.joint], ratio) for group, ratio in zip(model.groups, shown, strict=True) if ratio != 1.0]
    worst = ", ".join(f"{name} ({'too few rests' if ratio is None else f'{1 / np.sqrt(ratio):.2g}'})" for name, ratio in names)
    note = f"dry friction holds resting joints: their torque, which deviates more than in motion (times), counts less: {worst}"
    return [_weighted(rests, ratios, log) for log in logs], (note,)


def weigh_alike(
    model: DynamicModel, trained: Sequence[PreparedLog], config: SignalConfig, others: Sequence[PreparedLog]
) -> Sequence[PreparedLog]:
    """Gives resting joints in other logs the weights that they have in the training logs."""
    weights = [part.weights for log in trained for part in log.segments if part.weights is not None]
    if not weights:
        return others
    rests, ratios = Rests.of(model, trained, config), np.min([w.min(axis=0) for w in weights], axis=0)
    return [_weighted(rests, ratios, log) for log in others]


def _weighted(rests: Rests, ratios: Array, log: PreparedLog) -> PreparedLog:
    return log.with_segments(
        replace(part, weights=np.where(rests.labels(part, _shortest(log, part)), ratios, 1.0)) for part in log.segments
    )


def _shortest(log: PreparedLog, segment: Segment) -> int:
    """Number of samples of the shortest rest."""
    return math.ceil(SHORTEST * segment.rate / log.conditioned.band)


def _windows(model: DynamicModel, rests: Rests, log: PreparedLog) -> StatisticSet:
    """Statistic of one log with one row for each rest and for each window of motion, in row groups of their own."""
    layouts = [replace(layout, group=layout.group + state) for layout in layouts_of(model) for state in ("", _AT_REST)]
    windows: dict[str, list[Array]] = {layout.group: [] for layout in layouts}
    for piece in row_pieces(model, [log], compact=True):
        least = _shortest(log, log.segments[piece.segment])
        size = max(1, round(least / piece.row_filter.factor))
        numbers = rests.labels(log.segments[piece.segment], least)[piece.samples]
        for group, rows, number in zip(model.groups, piece.rows, numbers.T, strict=True):
            edges = [0, *(np.flatnonzero(np.diff(number)) + 1), len(number)]
            for begin, end in itertools.pairwise(edges):
                name, each_of = (group.name + _AT_REST, end - begin) if number[begin] else (group.name, size)
                whole = rows[begin : end - (end - begin) % each_of].reshape(-1, each_of, rows.shape[1])
                windows[name].append(whole.mean(axis=1))
    entries = []
    for layout, basis in zip(layouts, np.repeat(np.array(model.compact), 2), strict=True):
        rows = np.vstack([np.zeros((0, len(basis.places) + 1)), *windows[layout.group]])
        entries.append(Statistic(log.name, 0, layout.group, triangle(rows), len(rows), expansion=layout.expansion))
    return StatisticSet(model.names, tuple(layouts), tuple(entries), model.fingerprint)
