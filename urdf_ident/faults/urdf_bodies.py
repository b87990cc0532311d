"""Residuals of interpretations with the URDF's own bodies, friction and rotors free: tie-breakers, not evidence."""

from __future__ import annotations

import numpy as np

from ..linalg import Array, lstsq
from ..model.prior import lumped_inertials
from ..model.robot import Robot
from ..model.spanning import spanning_anywhere
from .evidence import EXACT
from .interpretation import Interpretation
from .trials import Trials

#: Ratio of squared residuals without bodies and with free ones above which the torques show bodies.
_BODIES = 2.0


def score_of_urdf(trials: Trials, interpretation: Interpretation) -> float:
    """Sum of the moving rows' log relative residuals with the URDF's inertias; lower is better."""
    return float(0.5 * np.log(_left_by_urdf(trials, interpretation)[1]).sum())


def error_of_urdf(trials: Trials, interpretation: Interpretation) -> float:
    """Relative error of the torques of the URDF's bodies.

    Returns:
        RMS of what free bodies explain and the URDF's do not, over that of what bodies explain; infinite if they explain hardly
        anything that friction, rotors and offsets do not.
    """
    without, stated = _left_by_urdf(trials, interpretation).mean(axis=1)
    free = float(np.mean(trials.in_sample(interpretation) ** 2))
    return float(np.sqrt(max(stated - free, 0.0) / (without - free))) if without > _BODIES * free else np.inf


def left_by_urdf_alone(trials: Trials, interpretation: Interpretation) -> float:
    """RMS relative residual of the moving joints with the URDF's inertias, without friction and rotors."""
    found, efforts = trials.evidence(interpretation), interpretation.effort_map()
    regression, n = found.regression, len(efforts)
    x = np.zeros((n, regression.total.shape[1]))
    x[:, : regression.shared] = -_stated(trials.robot)[found.active] * found.scale
    x[:, -n:] = efforts
    size = found.size_of(efforts[:, :, None])[:, 0]
    squares = np.einsum("ip,ipq,iq->i", x, regression.total, x) / size**2 / regression.count.sum()
    return float(np.sqrt(np.maximum(squares[trials.case.moves], 0.0).mean()))


def scaled_urdf(trials: Trials, interpretation: Interpretation) -> tuple[float, float]:
    """Sum of the moving rows' log relative residuals with the URDF's inertias times one factor, and their root mean square."""
    left = _left_by_inertias(trials, interpretation, np.empty((trials.robot.n_inertial, 0)))[0]
    return float(0.5 * np.log(left).sum()), float(np.sqrt(left.mean()))


def left_with_one_body_changed(trials: Trials, interpretation: Interpretation) -> float:
    """Relative residual with the URDF's inertias as in :func:`scaled_urdf`, and one parameter of one body changed.

    Returns:
        Root mean square over the joints that move, with the mass or first moment that explains most.
    """
    kept, expansion = spanning_anywhere(trials.robot)
    own = lumped_inertials(trials.robot)
    changes = np.zeros((len(own), 4, own.size))
    for b, body in enumerate(own):
        changes[b, 0, 10 * b : 10 * b + 10] = body
        changes[b, [1, 2, 3], [10 * b + 1, 10 * b + 2, 10 * b + 3]] = 1.0
    columns = np.zeros((own.size, 4 * len(own)))
    columns[kept] = expansion @ changes.reshape(-1, own.size).T
    return float(np.sqrt(_left_by_inertias(trials, interpretation, columns).mean(axis=1).min()))


def _stated(robot: Robot) -> Array:
    """The URDF's inertial parameters, shape (10 n,), mapped to the independent columns; the torque is unchanged."""
    kept, expansion = spanning_anywhere(robot)
    out = np.zeros(robot.n_inertial)
    out[kept] = expansion @ lumped_inertials(robot).ravel()
    return out


def _left_by_urdf(trials: Trials, interpretation: Interpretation) -> Array:
    """Squared relative residuals of the moving rows without inertias and with the URDF's, shape (2, moving joints)."""
    S = _products(trials, interpretation, np.empty((trials.robot.n_inertial, 0)))
    return np.maximum([S[:, 1, 1], S[:, 1, 1] - 2 * S[:, 0, 1] + S[:, 0, 0]], EXACT**2)


def _left_by_inertias(trials: Trials, interpretation: Interpretation, changes: Array) -> Array:
    """Squared relative residuals of the moving rows with the URDF's scaled inertias, alone and with each of the changes."""
    S, last, out = _products(trials, interpretation, changes), changes.shape[1] + 1, []
    for some in ([0], *([0, k] for k in range(1, last))):
        x = lstsq(S[:, some][:, :, some].sum(axis=0), S[:, some, last].sum(axis=0), rcond=1e-9)[0]
        explained = 2 * S[:, last, some] @ x - np.einsum("a,iab,b->i", x, S[:, some][:, :, some], x)
        out.append(np.maximum(S[:, last, last] - explained, EXACT**2))
    return np.array(out)


def _products(trials: Trials, interpretation: Interpretation, changes: Array) -> Array:
    """Products of the torques of the URDF's inertias, of changes of these, and of the efforts, orthogonal to the friction."""
    found, efforts = trials.evidence(interpretation), interpretation.effort_map()
    regression, n = found.regression, len(efforts)
    total, m, last, rows = regression.total, regression.shared, changes.shape[1] + 1, []
    p = total.shape[1] - n
    both = np.zeros((p + n, last + 1))
    both[:m, :last] = np.column_stack([_stated(trials.robot), changes])[found.active] * found.scale[:, None]
    sizes = found.size_of(efforts[:, :, None])[:, 0]
    for i in np.flatnonzero(trials.case.moves):
        both[p:, last] = efforts[i]
        moments = total[i] @ both
        own = lstsq(total[i][m:p, m:p], moments[m:p], rcond=1e-9)[0]
        rows.append((both.T @ moments - moments[m:p].T @ own) / (float(sizes[i]) ** 2 * float(regression.count.sum())))
    return np.array(rows)
