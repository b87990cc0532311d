"""What a black box still predicts of the residual: the distance of the model to what the logs allow to be predicted.

Gradient boosting (Friedman 2001; scikit-learn's histogram trees) learns each joint's residual from position, velocity,
acceleration, the model's torques, time and travel since the last reversal of the joint, time since the log began, and
temperature where it was logged. It learns from all folds but one, whose residuals are of parameters estimated without them,
and is scored on that one; both torques are behind the low-pass of scores. Where it explains much, the model lacks something
that depends on one of these variables: on the one whose permutation on the scored fold costs most (Breiman 2001).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import MissingExtraError
from ..estimation.uncertainty.prediction import HeldOutParameters
from ..linalg import Array, divisors
from ..model.dynamic_model import DynamicModel
from ..samples import Segment
from ..signals.filters import lowpass
from ..signals.prepare import PreparedLog

#: A variable is named where the black box lowers a joint's error by more than this fraction.
NAMED = 0.1
#: Rows from which one fold is learnt at most: beyond them the error hardly falls, the time does.
_ROWS = 20_000
#: Samples per period of the low-pass; more are nearly copies of their neighbours.
_PER_PERIOD = 5.0
#: Variables of which a joint's residual is learnt from that of the joint alone.
_OF_JOINT = ("time since the reversal", "travel since the reversal", "temperature")


def check_black_box() -> None:
    """Checks that scikit-learn is installed."""
    try:
        import sklearn.ensemble  # noqa: F401
    except ImportError as error:
        raise MissingExtraError(
            "the comparison with a black box needs scikit-learn", remedy="pip install 'urdf-ident[residual]'"
        ) from error


def compare_black_box(
    model: DynamicModel, logs: Sequence[PreparedLog], held: HeldOutParameters, torque: Sequence[Sequence[Array]], band: float
) -> dict[str, Any]:
    """Scores gradient boosting on the held-out residual of every joint.

    Args:
        torque: Torque predicted without its own fold, per log and segment, shape (N, n) [N·m or N].
        band: Low-pass of measured and predicted torque [Hz].

    Returns:
        The entry ``black_box`` of identification.json: per joint the held-out error of the model and with the black box
        [N·m or N], the fraction explained (negative where the black box only adds noise), and the variable that carries it;
        empty with a single fold.
    """
    check_black_box()
    from sklearn.ensemble import HistGradientBoostingRegressor

    variables: dict[str, list[Array]] = {}
    residuals, folds = list[Array](), list[NDArray[np.int32]]()
    for log, predicted, owner in zip(logs, torque, held.owner, strict=True):
        begin = 0
        for segment, tau in zip(log.segments, predicted, strict=True):
            thinned = slice(None, None, max(1, round(segment.rate / (_PER_PERIOD * band))))
            residuals.append(lowpass(segment.total - tau, segment.rate, band)[thinned])
            folds.append(owner[begin : begin + len(segment)][thinned])
            begin += len(segment)
            for name, values in _variables(log, segment, tau).items():
                variables.setdefault(name, []).append(values[thinned])
    fold, residual = np.concatenate(folds), np.concatenate(residuals)
    stacked = {name: np.concatenate(parts) for name, parts in variables.items() if len(parts) == len(residuals)}
    present, rng = np.unique(fold), np.random.default_rng(0)
    if len(present) < 2:
        return {}
    before, after = np.zeros(model.n), np.zeros(model.n)
    without = {name: np.zeros(model.n) for name in stacked}
    for j in range(model.n):
        columns = {name: values[:, j : j + 1] if name in _OF_JOINT else values for name, values in stacked.items()}
        x, y = np.hstack(list(columns.values())), residual[:, j]
        edges = np.cumsum([0, *(values.shape[1] for values in columns.values())])
        for held_out in present:
            learn, judge = np.flatnonzero(fold != held_out), np.flatnonzero(fold == held_out)
            learn = learn[:: -(-len(learn) // _ROWS)]
            booster = HistGradientBoostingRegressor(max_iter=100, learning_rate=0.05, min_samples_leaf=50, random_state=0)
            booster.fit(x[learn], y[learn])
            before[j] += np.sum(y[judge] ** 2)
            after[j] += np.sum((y[judge] - booster.predict(x[judge])) ** 2)
            for name, first, last in zip(columns, edges, edges[1:], strict=False):
                shuffled = x[judge].copy()
                shuffled[:, first:last] = shuffled[rng.permutation(len(judge)), first:last]
                without[name][j] += np.sum((y[judge] - booster.predict(shuffled)) ** 2)
    explained = 1.0 - np.sqrt(after / divisors(before))
    carried = [max(without, key=lambda name: float(without[name][j])) for j in range(model.n)]
    variable = [name if share > NAMED else None for name, share in zip(carried, explained, strict=True)]
    rmse, least, joints = np.sqrt(before / len(fold)).tolist(), np.sqrt(after / len(fold)).tolist(), list(model.robot.joints)
    shares = [f"{joint} {max(0.0, 100 * share):.0f} %" for joint, share in zip(joints, explained, strict=True)]
    lacks = "the model lacks something that depends on"
    return {
        "joints": joints,
        "rmse": rmse,
        "with_black_box": least,
        "explained": explained.tolist(),
        "variable": variable,
        "folds": [held.folds[k] for k in present],
        "band": band,
        "text": [
            f"gradient boosting on the residual lowers the held-out error by: {', '.join(shares)}",
            *(
                f"{joint}: {lacks} {name}: {error:.3g} would fall to {with_it:.3g}"
                for joint, name, error, with_it in zip(joints, variable, rmse, least, strict=True)
                if name is not None
            ),
        ],
    }


def _variables(log: PreparedLog, segment: Segment, predicted: Array) -> Mapping[str, Array]:
    """The variables of one segment, shape (N, k) each."""
    at = np.arange(len(segment))[:, None]
    moving = np.maximum.accumulate(np.where(segment.v != 0, at, 0), axis=0)
    direction = np.sign(np.take_along_axis(segment.v, moving, axis=0))  # a standstill keeps the direction before it
    reverses = np.vstack([np.ones((1, segment.v.shape[1]), dtype=bool), np.diff(direction, axis=0) != 0])
    last = np.maximum.accumulate(np.where(reverses, at, 0), axis=0)  # reversal
    travel = np.cumsum(np.abs(segment.v), axis=0) / segment.rate
    known = {
        "position": segment.q,
        "velocity": segment.v,
        "acceleration": segment.a,
        "load": predicted,
        "time since the reversal": (at - last) / segment.rate,
        "travel since the reversal": travel - np.take_along_axis(travel, last, axis=0),
        "time in the log": segment.time[:, None],
    }
    recording = log.report.recording
    if recording.temperature is not None:
        columns = np.asarray(recording.temperature).T
        known["temperature"] = np.column_stack([np.interp(segment.time, recording.time, column) for column in columns])
    return known
