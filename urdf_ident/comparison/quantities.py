"""Quantities in which results of one robot are compared: friction at given speeds and matching base parameters."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import EstimationError, FingerprintError
from ..linalg import Array, lstsq, positive, rms, scaled_lstsq
from ..model.robot import Robot
from ..result.comparison import Compared
from ..result.dynamics import logged_speeds, steady_friction_columns
from ..result.identification import Identification
from ..units import joint_units

#: Slow and fast, as shares of the smallest of the results' usual speeds.
SPEEDS = {"slow": 0.1, "fast": 1.0}
#: Weights of the torques forwards and backwards for friction, and for the offset.
_ODD, _EVEN = np.array([0.5, -0.5]), np.array([0.5, 0.5])
#: Degrees of freedom with which the usual spread of friction between logs counts beside that of one joint.
_USUAL_FREEDOM = 2
#: Number of speeds over which friction laws are compared.
_CURVE = 81


def check_level(level: float) -> None:
    """Refuses a false alarm rate that is none; level: a fraction."""
    if not 0 < level < 1:
        raise EstimationError("the false alarm rate is no fraction between 0 and 1", got=level, expected="0.05 for 5 %")


def require_comparable(robot: Robot, results: Iterable[Identification]) -> None:
    """Refuses results of robots that differ from this one in joints, kinematics or gravity, and those without covariance."""
    for ident in results:
        if difference := robot.difference(ident.model.robot):
            raise FingerprintError(
                f"results of different robots: {difference}", remedy="compare results of one robot, with the same joints"
            )
        require_covariance(ident)


def require_covariance(ident: Identification) -> None:
    """Refuses a result without standard errors."""
    seen = ident.fit.seen
    inner = ident.fit.covariance[np.ix_(seen, seen)]
    if not (seen.any() and np.isfinite(inner).all() and np.diag(inner).any()):
        raise EstimationError(
            "the result has no covariance, so that no errors can be given",
            where=ident.model.robot.name,
            remedy="identify again with estimation.covariance: auto",
        )


def usual_speed(ident: Identification, j: int) -> float:
    """Typical speed of one joint in the logs of a result [rad/s or m/s], never zero."""
    return max(float(ident.speed[j]), 1e-3)


def usual_load(results: Sequence[Identification]) -> Array:
    """Mean of the results' typical loads, shape (n,) [N·m or N]: friction is compared at one load in all."""
    return np.asarray(np.mean([result.load for result in results], axis=0))


def friction_rows(
    results: Sequence[Identification], j: int, speed: float, load: Array, weights: Array = _ODD
) -> tuple[list[Array], list[float]]:
    """Friction torque in every result as a linear function of its base parameters, whatever laws the results chose.

    Standard errors take laws and their shapes for known, and two choices for one joint differ by more than that. The friction
    curve of each result is therefore described by the laws of every result in turn, fitted over the speeds that the logs of all
    contain; its mean over the laws is compared, and its standard deviation over them counts as an error (Buckland 1997).

    Args:
        speed: Its speed [rad/s or m/s].
        load: Torque in the gears, shape (n,) [N·m or N].
        weights: Weights of the torques forwards and backwards, shape (2,).

    Returns:
        Coefficients of each result, shape (b,) each; and the standard deviation over the laws of each result [N·m or N], zero
        if all results have the same laws and shapes.
    """
    top = min(max(map(abs, logged_speeds(result, j))) for result in results)  # in the logs of all results
    v, density = np.linspace(-top, top, _CURVE), np.full(_CURVE, 1e-3)  # speeds between those of the samples are not quite free
    for result in results:
        if result.traces.speeds is None:
            density += 1.0
        else:
            edges, count = result.traces.speeds.edges[j], result.traces.speeds.count[j]
            density += np.interp(v, 0.5 * (edges[1:] + edges[:-1]), count / count.mean())
    density = 0.5 * (density + density[::-1])
    root, at = np.sqrt(density), np.concatenate([[speed, -speed], v])
    curves = [steady_friction_columns(result, j, at, float(load[j]))[:, result.fit.base.independent] for result in results]
    rows = [np.zeros((len(results), curve.shape[1])) for curve in curves]
    for k, laws in enumerate(curves):
        columns = laws[:, laws.any(axis=0)]
        described = weights @ columns[:2] @ scaled_lstsq(root[:, None] * columns[2:], np.diag(root), rcond=1e-9)
        for row, curve in zip(rows, curves, strict=True):
            refitted = described @ curve[2:]
            row[k] = np.where(np.abs(refitted) > 1e-9 * np.abs(curve).max(axis=0), refitted, 0.0)
    value = np.array([row @ result.fit.params for row, result in zip(rows, results, strict=True)])
    squares = np.sum((value - value.mean(axis=1, keepdims=True)) ** 2, axis=1)
    return [row.mean(axis=0) for row in rows], np.sqrt(squares / max(len(results) - 1, 1)).tolist()


def row_error(ident: Identification, row: Array, covariance: Array | None = None) -> float:
    """Standard error of a linear function of the base parameters.

    Args:
        row: Its coefficients, shape (b,).
        covariance: Of the base parameters, shape (b, b); that of the fit if None.
    """
    return float(np.sqrt(max(float(row @ (ident.fit.covariance if covariance is None else covariance) @ row), 0.0)))


@dataclass(frozen=True, eq=False)
class Quantity(Compared):
    """A quantity that all results determine.

    Attributes:
        rows: Its coefficients of the base parameters of each result, shape (b,) each.
        laws: Error of each result due to the choice of friction laws and their shapes (:func:`friction_rows`).
    """

    rows: Sequence[Array]
    laws: Sequence[float]


def friction_quantities(results: Sequence[Identification]) -> list[Quantity]:
    """Friction at two speeds and the offset of every joint, whatever laws describe them.

    Those of joints that moved in one direction only in the logs of a result are not separate, and left out.
    """
    robot, load, quantities = results[0].model.robot, usual_load(results), []
    one_way = {joint for result in results for joint in result.evidence.one_way}
    for j, joint in enumerate(robot.joints):
        if joint in one_way:
            continue
        unit = joint_units(robot.prismatic[j])["torque"]
        usual = min(usual_speed(result, j) for result in results)
        asked = [
            ("friction", friction_at(robot, j, word, share * usual), share * usual, _ODD) for word, share in SPEEDS.items()
        ]
        for kind, what, speed, weights in (*asked, ("offset", "offset of the torque", usual, _EVEN)):
            quantities.append(Quantity(kind, joint, what, unit, *friction_rows(results, j, speed, load, weights)))
    return [quantity for quantity in quantities if any(row.any() for row in quantity.rows) and _is_seen(quantity.rows, results)]


def friction_at(robot: Robot, j: int, word: str, speed: float) -> str:
    """Names the friction of joint j at a speed; word: key of :data:`SPEEDS`; speed: the speed [rad/s or m/s]."""
    return f"friction, {word} ({speed:.2g} {joint_units(robot.prismatic[j])['velocity']})"


def inertial_quantities(results: Sequence[Identification]) -> list[Quantity]:
    """Base parameters of the first result that all others determine as well, parameters matched by name."""
    first = results[0]
    unit, names = np.eye(len(first.fit.base)), first.model.names
    other = [k >= first.model.n_inertial and not parameter.rotor for k, parameter in enumerate(first.model.parameters)]
    inertial = np.flatnonzero(~np.any(first.fit.base.projection[:, other], axis=1)).tolist()  # of links and rotors only
    rows = {row: [unit[row]] for row in inertial}
    for result in results[1:]:
        place, basis = {name: k for k, name in enumerate(result.model.names)}, result.fit.base.projection
        common: dict[int, list[Array]] = {}
        for row, known in rows.items():
            combination = first.fit.base.projection[row]
            used = np.flatnonzero(np.abs(combination) > 1e-12).tolist()
            if any(names[k] not in place for k in used):
                continue
            wanted = np.zeros(len(place))
            for k in used:
                wanted[place[names[k]]] = combination[k]
            solution = lstsq(basis.T, wanted, rcond=None)[0]
            if np.abs(basis.T @ solution - wanted).max() <= 1e-6 * np.abs(wanted).max():
                common[row] = [*known, np.where(np.abs(solution) < 1e-9, 0.0, solution)]
        rows = common
    quantities = []
    for row, combinations in rows.items():
        parameter = first.model.parameters[int(first.fit.base.independent[row])]
        quantities.append(
            Quantity("inertia", parameter.owner, first.fit.base.labels[row], parameter.unit, combinations, [0.0] * len(results))
        )
    return [quantity for quantity in quantities if _is_seen(quantity.rows, results)]


def _is_seen(rows: Sequence[Array], results: Sequence[Identification]) -> bool:
    return all(result.fit.seen[np.flatnonzero(np.abs(row) > 1e-12)].all() for row, result in zip(rows, results, strict=True))


def _log_count(ident: Identification) -> int:
    """Number of logs of which the spread of friction is known."""
    return 0 if ident.fit.changes is None else len(ident.fit.changes.logs)


def spread_between_logs(quantity: Quantity, results: Sequence[Identification]) -> float:
    """Spread of friction between the logs of a robot, of the result in which it is largest; nan if no result knows its own."""
    pairs = zip(quantity.rows, results, strict=True)
    return max(
        (row_error(ident, row, ident.fit.spread_covariance) for row, ident in pairs if _log_count(ident) > 1), default=np.nan
    )


def errors_of_means(quantities: Sequence[Quantity], results: Sequence[Identification]) -> Array:
    """Errors of quantities in each result; for friction, of the mean over its logs, for whatever laws describe it.

    The error of a mean over several logs already includes their spread, but two or three logs often show none by chance. The
    relative spread of all joints together, which share temperature and maker, therefore counts as well, the less the more logs
    there are. A result of one log does not know its spread, and the largest of the others is added. An error is never below
    the distance between the estimate from the data alone and the physically consistent one: where these differ by more than
    the noise explains, the model lacks something.

    Returns:
        Shape (quantities, results), in the units of the quantities.
    """
    counts = [_log_count(result) for result in results]
    shares = [
        row_error(result, row, result.fit.spread_covariance) / positive(abs(float(row @ result.fit.params)))
        for quantity in quantities
        if quantity.kind == "friction"
        for row, result, count in zip(quantity.rows, results, counts, strict=True)
        if count > 1
    ]
    usual = rms(shares) if shares else 0.0

    def unseen(spread: float, logs: int, least: float) -> float:
        """Variance by which the mean of a joint's squared spread and the usual one exceeds the former (Smyth 2004)."""
        return _USUAL_FREEDOM * max(least**2 - spread**2, 0.0) / (max(logs - 1, 0) + _USUAL_FREEDOM)

    errors = np.zeros((len(quantities), len(results)))
    for k, quantity in enumerate(quantities):
        friction = quantity.kind != "inertia"
        largest = float(np.nan_to_num(spread_between_logs(quantity, results))) if friction else 0.0
        for i, (row, laws, result, count) in enumerate(zip(quantity.rows, quantity.laws, results, counts, strict=True)):
            value = float(row @ result.fit.params)
            of_mean = row_error(result, row, result.fit.of_mean.covariance if friction else None)
            least = usual * abs(value) if quantity.kind == "friction" else 0.0
            unknown = math.sqrt(largest**2 + unseen(largest, max(counts), least))
            if count > 1:
                unknown = math.sqrt(unseen(row_error(result, row, result.fit.spread_covariance), count, least) / count)
            from_physics = abs(value - float(row @ result.fit.base.of(result.theta)))
            errors[k, i] = max(float(np.linalg.norm([of_mean, laws, unknown])), from_physics)
    return errors
