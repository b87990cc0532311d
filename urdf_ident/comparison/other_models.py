"""A result beside other models: simpler ones and a black box on motion that took no part, and other standard parameters.

On every fold of the data the exported parameters are compared with the URDF, the URDF with fitted friction, and unconstrained
least squares with viscous and Coulomb friction and an offset, each estimated without the fold. Worse means that the paired
difference of squared errors over the folds exceeds its standard error. Friction laws were chosen on the same folds.

What a black box still predicts of the residual is the distance of the model to what the logs allow to be predicted. Gradient
boosting (Friedman 2001; scikit-learn's histogram trees) learns each joint's residual from position, velocity, acceleration, the
model's torques, time and travel since the last reversal of the joint, time since the log began, and temperature where it was
logged. It learns from all folds but one, whose residuals are of parameters estimated without them, and is scored on that one;
both torques are behind the low-pass of scores. Where it explains much, the model lacks something that depends on one of these
variables: on the one whose permutation on the scored fold costs most (Breiman 2001).

Standard parameters side by side tell which pass the Cholesky test, and what they cost (Gautier 2013, Table III).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..consistency.first_fit import urdf_with_friction
from ..consistency.repair import TABLE_TOLERANCES, check_consistency
from ..consistency.standard import essential_to_prior, nearest_to_prior
from ..errors import EstimationError, FingerprintError, MissingExtraError
from ..estimation.uncertainty.prediction import HeldOutParameters
from ..friction import Coulomb, Offset, Viscous
from ..grouping import table
from ..linalg import Array, IntArray, divisors, rms, scaled_lstsq
from ..model.dynamic_model import DynamicModel
from ..model.robot import Robot
from ..model.terms import RotorInertia
from ..result.record import Record
from ..samples import Segment
from ..signals.filters import lowpass
from ..signals.prepare import PreparedLog
from ..statistics.folds import folds_of, relative_gains, score_folds, worse
from ..statistics.statistic import StatisticSet, is_measured

#: What the export is compared with, in words.
NAMES = {"urdf": "the URDF", "urdf_friction": "the URDF with friction", "least_squares": "least squares with simple friction"}
_SIMPLE = {Viscous.name, Coulomb.name, Offset.name, RotorInertia.name}
#: A variable is named where the black box lowers a joint's error by more than this fraction.
NAMED = 0.1
#: Rows from which one fold is learnt at most: beyond them the error hardly falls, the time does.
_ROWS = 20_000
#: Samples per period of the low-pass; more are nearly copies of their neighbours.
_PER_PERIOD = 5.0
#: Variables of which a joint's residual is learnt from that of the joint alone.
_OF_JOINT = ("time since the reversal", "travel since the reversal", "temperature")


def compare_simpler_models(ident: Record, statistics: StatisticSet, exported: Mapping[str, Array]) -> dict[str, Any]:
    """Compares the exported parameters of a result with simpler ones.

    Args:
        statistics: The data that it is based on.
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
    model, fit, theta0 = ident.model, ident.fit, ident.prior.theta0

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
        "urdf": dict.fromkeys(split.logs, ident.urdf_theta),
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
    return {**entry, "text": _in_words(lost, ident.solver.get("active", ()))}


def _in_words(lost: Sequence[Mapping[str, Any]], limits: Sequence[str]) -> str:
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
    for log, predicted in zip(logs, torque, strict=True):
        for segment, tau in zip(log.segments, predicted, strict=True):
            thinned = slice(None, None, max(1, round(segment.rate / (_PER_PERIOD * band))))
            residuals.append(lowpass(segment.total - tau, segment.rate, band, rows=thinned))
            folds.append(held.fold_of(segment)[thinned])
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


def solutions(ident: Record, robot: Robot) -> list[dict[str, Any]]:
    """Compares the choices among all standard parameters that fit the data of a result.

    Args:
        robot: The robot whose URDF is checked; its inertials are the a-priori ones.

    Returns:
        ``name``, ``consistent`` and ``passing``: numbers of bodies that are physically consistent, and that pass the Cholesky
        test at each tolerance; ``margin``: of the body nearest to the boundary, relative, negative beyond it; ``distance``:
        from the prior, in its standard deviations; ``residual``: torque error over that of the base parameters. For the
        parameters of the URDF, the base parameters (dependent ones at the prior), the least change in SI units and in the
        prior's standard deviations, the essential ones alone, and the exported ones.
    """
    bodies = [body.name for body in robot.bodies]
    if bodies != [body.name for body in ident.model.robot.bodies]:
        raise FingerprintError(
            "the result is of another robot", got=[body.name for body in ident.model.robot.bodies], expected=bodies
        )
    prior, fit, factor = ident.prior, ident.fit, ident.factor
    stated = np.concatenate([robot.inertials.ravel(), prior.theta0[ident.model.n_inertial :]])
    thetas: dict[str, Array] = {"a priori": stated}
    for name, method, norm in (
        ("base", "frozen", "euclid"),
        ("minimum norm", "minimum_norm", "plain"),
        ("closest to the prior", "minimum_norm", "euclid"),
    ):
        thetas[name] = nearest_to_prior(method, fit, prior, norm).theta
    if ident.essential is not None:
        chosen = [fit.base.labels.index(label) for label in ident.essential.names]
        columns = np.append(fit.base.independent, -1)
        thetas["essential"] = essential_to_prior(factor[:, columns], fit.base, prior.theta0, chosen).theta
    thetas[f"exported ({ident.solver.get('method', 'lmi')})"] = ident.theta
    least = np.linalg.norm(factor @ np.append(thetas["base"], -1.0))
    rows = []
    for name, theta in thetas.items():
        report = check_consistency(theta, bodies)
        rows.append(
            {
                "name": name,
                "consistent": len(bodies) - len(report.offenders),
                "passing": list(report.passing),
                "margin": min(body.margins.relative for body in report.per_body.values()),
                "distance": prior.distance(theta),
                "residual": float(np.linalg.norm(factor @ np.append(theta, -1.0)) / least),
            }
        )
    return rows


def solution_lines(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Formats the comparison as a table."""
    tolerances = [f"ε = {abs(tolerance):g}" for tolerance in TABLE_TOLERANCES]
    cells = [
        [
            *(row["name"], *map(str, row["passing"]), str(row["consistent"])),
            *(f"{row['margin']:.2g}", f"{row['distance']:.3g}", f"{row['residual']:.4g}"),
        ]
        for row in rows
    ]
    return [
        "bodies with positive mass and CoM inertia (Cholesky) at tolerance ε [kg·m²], and with the triangle inequality too:",
        *table(["solution", *tolerances, "consistent", "margin", "from the prior [std]", "residual"], cells),
        "  margin: of the body nearest to the boundary, relative, negative beyond it; residual: torque error over that of the",
        "  base parameters; the last solution is what exports contain",
    ]
