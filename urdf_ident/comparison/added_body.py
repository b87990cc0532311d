"""The body on the last link that explains a change of inertia, as a tool that was mounted or removed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..linalg import Array, positive, scaled_lstsq, whitening
from ..model.inertia import transform_matrix
from ..model.payload import default_link, moving_link
from ..result.comparison import AddedBody, ParameterChange
from ..result.identification import Identification
from .changes import ComparedValue, holm, welch_test
from .quantities import inertial_quantities

#: A body explains a change if at most this share of the changed combinations remains changed.
_EXPLAINED = 0.34
#: Number of standard errors beyond which a mass differs from none at 95 %.
_SIGNIFICANT = 1.96
#: Number of inertial parameters of a point mass (mass and first moments); steps that move the frame to its place.
_POINT, _CENTRINGS = 4, 4


def added_body(
    before: Identification, after: Identification, tests: Sequence[ParameterChange], level: float
) -> AddedBody | None:
    """Returns the body on the last link that explains the change in inertia, if one does; level: family-wise false alarm rate.

    It changes many parameters, each perhaps by less than shows alone: a point mass is tested by all of them (F-test, as one
    more of the tests), and its own inertia is estimated only if that explains significantly more.
    """
    from scipy.special import chdtrc, fdtrc

    link = default_link(before.model.robot)
    body, frame = moving_link(before.model.robot, link)
    quantities = inertial_quantities((before, after))
    if not quantities:
        return None
    of_name = {change.what: change for change in tests if change.kind == "inertia"}
    changes = [of_name[quantity.what] for quantity in quantities]
    rows, later = (np.array([quantity.rows[side] for quantity in quantities]) for side in (0, 1))
    covariance = _shrunk_covariance(before, rows) + _shrunk_covariance(after, later)
    scale = np.array([change.std_error for change in changes]) / np.sqrt(positive(np.diag(covariance)))
    white = whitening(covariance * np.outer(scale, scale), 1e-10).T
    columns = rows @ before.fit.base.projection[:, 10 * body : 10 * body + 10]
    columns = columns @ transform_matrix(frame.rotation, frame.translation)
    difference = np.array([change.difference for change in changes])
    y, centre = white @ difference, np.zeros(3)
    point = _explained(white @ columns[:, :_POINT], y)
    for _ in range(_CENTRINGS):
        if point.significant:
            centre = centre + point.theta[1:] / point.theta[0]
            point = _explained(white @ columns @ transform_matrix(np.eye(3), centre)[:, :_POINT], y)
    if not point.significant or point.free < 1 or fdtrc(point.rank, point.free, point.ratio) > level / (len(tests) + 1):
        return None
    centred = columns @ transform_matrix(np.eye(3), centre)
    best, extended = point, _explained(white @ centred, y)
    more = extended.rank - point.rank
    if more > 0 and chdtrc(more, (point.left - extended.left) / extended.variance) < level:
        best = extended
    unexplained = difference - centred[:, : len(best.theta)] @ best.theta
    moved, zero = [k for k, change in enumerate(changes) if change.changed], ComparedValue(0.0, 0.0, np.inf)
    again = [welch_test(changes[k], zero, ComparedValue(float(unexplained[k]), changes[k].std_error, np.inf)) for k in moved]
    rest = sum(change.changed for change in holm(again, level))
    if not best.significant or rest > _EXPLAINED * len(moved):
        return None
    mass = float(best.theta[0])
    return AddedBody(link, mass, best.mass_error, centre + best.theta[1:4] / mass, len(moved), rest)


def _shrunk_covariance(result: Identification, rows: Array) -> Array:
    """Covariance of linear functions of the base parameters, shape (k, k); from few samples, with smaller correlations.

    A covariance from blocks of time (jackknife) has no more directions than blocks: others would seem known exactly. Its
    correlations are therefore weighted by 1 − λ, with λ the sum of their variances over that of their squares (Schäfer and
    Strimmer 2005, variances as of normal samples). Those of a noise model follow from the motion and are kept.

    Args:
        rows: Coefficients of the functions, shape (k, b).
    """
    covariance = rows @ result.fit.covariance @ rows.T
    dof = float(np.median(result.fit.dofs))
    if dof >= result.fit.dof:
        return np.asarray(covariance)
    errors = positive(np.sqrt(np.maximum(np.diag(covariance), 0.0)))
    off_diagonal = ~np.eye(len(rows), dtype=bool)
    squares = (covariance / np.outer(errors, errors))[off_diagonal] ** 2
    variances = (1.0 - np.minimum(squares, 1.0)) ** 2 / dof
    kept = 1.0 - min(float(variances.sum()) / positive(float(squares.sum())), 1.0)
    return np.asarray(np.where(off_diagonal, kept * covariance, covariance))


class _Explained(NamedTuple):
    """Differences explained by a body: its inertial parameters, the error of its mass, and the sum of squares that is left.

    Attributes:
        variance: Of the whitened differences that are left, at least 1 (Birge 1932); it is part of ``mass_error``.
        ratio: F-ratio of what is explained.
    """

    theta: Array
    mass_error: float
    left: float
    rank: int
    free: int
    variance: float
    ratio: float

    @property
    def significant(self) -> bool:
        """Whether the mass differs from none at 95 %."""
        return abs(float(self.theta[0])) > _SIGNIFICANT * self.mass_error > 0.0


def _explained(A: Array, y: Array) -> _Explained:
    theta = scaled_lstsq(A, y, rcond=1e-9)
    scale = positive(np.linalg.norm(A, axis=0))
    rank = int(np.linalg.matrix_rank(A / scale, 1e-6))
    free, left = len(y) - rank, float(np.sum((y - A @ theta) ** 2))
    variance = max(left / max(free, 1), 1.0)
    mass_error = math.sqrt(variance) * float(np.linalg.norm(np.linalg.pinv(A / scale, rcond=1e-9)[0]) / scale[0])
    return _Explained(theta, mass_error, left, rank, free, variance, float(np.sum((A @ theta) ** 2)) / max(rank, 1) / variance)
