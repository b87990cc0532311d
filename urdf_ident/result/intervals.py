"""Intervals of linear functions of the base parameters (torque, mass matrix, masses), and errors in faster motion.

For ``z = c β`` the variance is ``c Σ cᵀ`` with the covariance of the fit. The intervals come from the data alone: the prior
does not narrow them, and if ``c`` is not in the span of the observed directions, the interval is infinite. Model errors
(such as friction that was left out) are included only as far as the covariance reflects them.

A model may predict its own logs and motions of their speed within a per cent, and be wrong by a half in motions ten times as
fast, whose inertia and friction the logs did not show. Motions like the logs' are scaled in time, up to the URDF's velocity
limits: velocities by s, accelerations by s². Held-out logs of other motions are measurements of this error: up to their speed
their error replaces the expected one, and beyond it they count as data, about which only extrapolation is left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from ..errors import ModelError, check_shape
from ..estimation.uncertainty.prediction import (
    HeldOutResidual,
    building_friction,
    covered_speeds,
    smeared_friction,
    unseen_friction,
)
from ..linalg import NORMAL_95, Array, divisors, rms, shaped, triangle
from ..model.prior import USUAL_WEIGHT, Posterior
from ..signals.filters import lowpass
from ..statistics.fit import Fit
from .evidence import SPEEDS, Range, random_states
from .record import Record

#: A linear function is not determined if its part outside the observed span is larger than this share of it.
_OUTSIDE = 1e-7


def functional_interval(fit: Fit, factor: Array, rows: Array, alpha: float) -> Array:
    """Intervals of linear functions of the base parameters (Student's t).

    The parameters may have different degrees of freedom; each function gets those of its parameters, weighted by their
    share in its variance.

    Args:
        factor: Data factor ``[R | rho]``, shape (≤ p + 1, p + 1), which determines the observed span.
        rows: Coefficients, shape (…, b).
        alpha: One minus the level of confidence, a fraction.

    Returns:
        Lower and upper ends, shape (…, 2); ±inf where the data do not determine the function.
    """
    from scipy.special import stdtrit

    variance = np.maximum(np.einsum("...i,ij,...j->...", rows, fit.covariance, rows), 0.0)
    reach = stdtrit(fit.dof_of(rows), 1 - alpha / 2) * np.sqrt(variance)
    if not fit.seen.all():
        data = triangle(factor[:, fit.base.independent])
        norms = np.linalg.norm(data, axis=0)
        scale = np.where(norms > np.finfo(float).eps * norms.max(initial=0.0), norms, np.inf)
        _, values, right = np.linalg.svd(data / scale)
        values = np.append(values, np.zeros(len(right) - len(values)))
        tolerance = np.finfo(float).eps * max(fit.rows, 10 * len(right))  # as in the solver
        null = right[values <= tolerance * values.max(initial=0.0)].T
        white = rows / np.where(np.isfinite(scale), scale, 1.0)
        outside = np.linalg.norm(white @ null, axis=-1) > _OUTSIDE * np.linalg.norm(white, axis=-1)
        reach = np.where(outside, np.inf, reach)
    centre = rows @ fit.params
    return np.stack([centre - reach, centre + reach], axis=-1)


def torque_interval(ident: Record, q: ArrayLike, v: ArrayLike, a: ArrayLike, alpha: float = 0.05) -> Array:
    """Confidence intervals of the torque of links, rotors and friction, from the data alone.

    Args:
        q, v, a: Joint motion, shape (N, n) or (n,) [rad, rad/s, rad/s² or m, m/s, m/s²].
        alpha: One minus the level of confidence, a fraction.

    Returns:
        Lower and upper ends around the fit, shape (N, n, 2) or (n, 2) [N·m or N]; ±inf if not determined by the data.

    Raises:
        ModelError: Elastic joints.
        ShapeError: The arrays do not fit.
    """
    rows = _torque_rows(ident, *joint_arrays(ident, q=q, v=v, a=a))
    return functional_interval(ident.fit, ident.factor, rows, alpha)


def torque_prediction_interval(
    ident: Record, q: ArrayLike, v: ArrayLike, a: ArrayLike, alpha: float = 0.05, *, rate: float = 0.0
) -> Array:
    """Prediction intervals of *measured* torque, low-passed at :attr:`.Record.prediction_band`.

    They consist of held-out residuals at such speeds, the posterior of the parameters, friction at speeds and in directions
    that the data do not cover, and, of samples that do not follow one another, the state of friction that builds up in time
    and the step of friction that the low-pass smears. They are not symmetric: rotor inertia that slow logs do not show is
    larger than exported, or zero.

    Args:
        q, v, a: Joint motion, shape (N, n) or (n,) [rad, rad/s, rad/s² or m, m/s, m/s²].
        alpha: One minus the level of confidence, a fraction.
        rate: Samples per second of a motion [Hz]; 0 for samples that do not follow one another.

    Returns:
        Lower and upper ends around ``torque``, that of a motion behind the same low-pass, shape (N, n, 2) or (n, 2) [N·m or N];
        ±inf where nothing could be held out.

    Raises:
        ModelError: The joints are elastic, or the level is not between 0 and 1.
        ShapeError: The arrays do not fit.
    """
    position, velocity, acceleration = joint_arrays(ident, q=q, v=v, a=a)
    centre = np.asarray(ident.torque(position, velocity, acceleration, rate=rate))
    if rate > 0 and ident.prediction is not None:
        centre = lowpass(centre, rate, ident.prediction_band)
    return centre[..., None] + prediction_reach(ident, position, velocity, acceleration, alpha, along=rate > 0)


def prediction_reach(
    ident: Record, q: ArrayLike, v: ArrayLike, a: ArrayLike, alpha: float = 0.05, *, along: bool = True
) -> Array:
    """Ends of :func:`torque_prediction_interval` relative to the predicted torque.

    Args:
        q, v, a: Joint motion, shape (N, n) or (n,) [rad, rad/s, rad/s² or m, m/s, m/s²].
        alpha: One minus the level of confidence, a fraction.
        along: Whether the torque is predicted along a motion and low-passed, instead of each sample by itself.

    Returns:
        Shape (N, n, 2) or (n, 2) [N·m or N].
    """
    from scipy.special import ndtri

    position, velocity, acceleration = joint_arrays(ident, q=q, v=v, a=a)
    if (residual := ident.prediction) is None:
        return np.broadcast_to([-np.inf, np.inf], (*position.shape, 2))
    p, s, t = (np.atleast_2d(x) for x in (position, velocity, acceleration))
    variance = np.square(residual.reach(s, t, alpha)).reshape(position.shape)
    rows = ident.model.torque(np.eye(len(ident.theta)), position, velocity, acceleration)
    median, below, above = _parameter_reach(ident, rows, residual.variance, alpha)
    unseen, smeared = np.square(unseen_friction(ident.model, ident.theta, residual.seen, p, s, t)), np.zeros_like(position)
    if not along:
        unseen += np.square(building_friction(ident.model, ident.theta))
        smeared = smeared_friction(ident.model, ident.theta, p, s, t, residual.band, residual.period).reshape(position.shape)
    variance += (ndtri(1 - alpha / 2) / NORMAL_95) ** 2 * unseen.reshape(position.shape)
    ends, one_sided = [], ndtri(1 - alpha) / ndtri(1 - alpha / 2)
    for side, reach in ((-1.0, below), (1.0, above)):
        shift = np.hypot(smeared, np.maximum(side * median, 0.0))  # a known error besides the random one
        random = np.sqrt(variance + reach)
        # beyond a large shift it counts on one side only; a small shift adds like a variance (95 %: 94.3 or more)
        ends.append(side * np.maximum(np.hypot(random, shift), one_sided * random + shift))
    return np.stack(ends, axis=-1)


def _parameter_reach(ident: Record, rows: Array, known: Array, alpha: float) -> tuple[Array, Array, Array]:
    """Returns the interval of the torque in the posterior of data and URDF, with rotor inertia and friction not negative.

    Of the parameters that cannot be negative, the one with the largest share in a torque's variance is limited: the torque is
    a multiple of it, whose distribution is a truncated normal one, plus an independent rest.

    Args:
        rows: Torque per unit of each parameter, shape (…, n, p).
        known: Variance that is accounted for otherwise, shape (n,) [N²·m² or N²].

    Returns:
        Its median minus the exported torque [N·m or N], and the squared distances of its lower and upper end from the median
        [N²·m² or N²], shape (…, n) each.
    """
    from scipy.special import log_ndtr, ndtri, ndtri_exp

    posterior, narrow, mean = _posterior(ident)
    covariance = narrow * posterior.covariance
    limited = np.flatnonzero([parameter.nonnegative for parameter in ident.model.parameters])
    std = np.sqrt(np.diag(covariance)[limited])
    along = rows @ (covariance[:, limited] / std)  # torque per standard deviation of each such parameter
    most = np.argmax(np.abs(along), axis=-1)
    along = np.take_along_axis(along, most[..., None], axis=-1)[..., 0]
    remaining = np.sum((rows @ covariance) * rows, axis=-1) - along**2 - narrow * known
    positive = log_ndtr(mean[limited] / std)  # of normal variables that are known not to be negative
    low, middle, high = (-ndtri_exp(np.log1p(-share) + positive) for share in (alpha / 2, 0.5, 1 - alpha / 2))
    lower, upper = along * (low - middle)[most], along * (high - middle)[most]
    shift = rows @ (mean - ident.theta) + along * middle[most]
    below, above = (
        np.maximum(ndtri(1 - alpha / 2) ** 2 * remaining + end**2, 0.0)
        for end in (np.minimum(lower, upper), np.maximum(lower, upper))
    )
    return shift, below, above


def _posterior(ident: Record) -> tuple[Posterior, float, Array]:
    """Posterior without the first fit, factor by which the prior's variance is too small, and posterior mean, shape (p,).

    A weight of the prior below :data:`.USUAL_WEIGHT` means that held-out data showed the prior to be too narrow; one above it,
    that the URDF is better than its prior says, or that residuals are not independent, which the held-out error below shows.
    The usual precision is right if the whitened squared held-out error is 1 plus the variance of the torque due to parameters
    without the held-out data, which is large in short logs. A few folds determine its multiple roughly: the interval is that
    of Student's t with a degree of freedom each.
    """
    from scipy.special import stdtrit

    weight, folds = ident.prior_weight, ident.solver.get("folds", {})
    tried = {float(entry["weight"]): float(entry["held_out"]) for entry in ident.solver.get("weights_tried", ())}
    excess = square = max(tried.get(weight, 1.0), 1.0) ** 2
    if folds.get("variance"):
        wider = float(stdtrit(folds["count"], 0.975)) / NORMAL_95
        excess = min(wider**2 * (square - 1.0) / folds["variance"], square)
    narrow, variance_factor = max(USUAL_WEIGHT / weight, 1.0), USUAL_WEIGHT * max(excess, 1.0)
    posterior = Posterior(ident.factor[:, :-1], ident.prior.without_first_fit, variance_factor / narrow)
    return posterior, narrow, posterior.mean(ident.factor[:, -1])


def mass_matrix(ident: Record, q: ArrayLike) -> Array:
    """Returns the mass matrix of the identified model, including reflected rotor inertia.

    Args:
        q: One configuration, shape (n,) [rad or m].

    Returns:
        Shape (n, n) [kg·m², kg·m or kg].

    Raises:
        ModelError: Elastic joints.
        ShapeError: Not one configuration.
    """
    still = _still(ident, q)
    n = ident.model.n
    torque = ident.model.torque(ident.theta, still, np.zeros_like(still), np.vstack([np.eye(n), np.zeros(n)]))
    return np.asarray((torque[:-1] - torque[-1]).T)


def mass_matrix_interval(ident: Record, q: ArrayLike, alpha: float = 0.05) -> Array:
    """Confidence intervals of the entries of the mass matrix, from the data alone.

    Args:
        q: One configuration, shape (n,) [rad or m].
        alpha: One minus the level of confidence, a fraction.

    Returns:
        Lower and upper ends around the fit, shape (n, n, 2) [kg·m², kg·m or kg]; ±inf where the data do not determine
        them.

    Raises:
        ModelError: Elastic joints.
        ShapeError: Not one configuration.
    """
    still = _still(ident, q)
    n = ident.model.n
    rows = _torque_rows(ident, still, np.zeros_like(still), np.vstack([np.eye(n), np.zeros(n)]))
    return functional_interval(ident.fit, ident.factor, np.swapaxes(rows[:-1] - rows[-1], 0, 1), alpha)


def require_rigid(ident: Record) -> None:
    """Refuses results with elastic joints, whose torques are not a linear function of the joint motion alone."""
    if not ident.model.is_rigid:
        raise ModelError(
            "not available with elastic joints: their torques depend on the motor positions, too",
            got="springs",
            remedy="identify as rigid, or use torque() and the intervals of the parameters: fit.conf_int(), elasticity",
        )


def joint_arrays(ident: Record, **values: ArrayLike) -> list[Array]:
    """Joint positions, velocities, … of rigid joints as arrays of one shape, (N, n) or (n,), by their names in messages."""
    require_rigid(ident)
    arrays = {name: np.asarray(value, dtype=float) for name, value in values.items()}
    first = next(iter(arrays.values()))
    check_shape(next(iter(arrays)), first.shape, (ident.model.n,) if first.ndim == 1 else ("N", ident.model.n))
    for name, array in arrays.items():
        check_shape(name, array.shape, first.shape)
    return list(arrays.values())


def _still(ident: Record, q: ArrayLike) -> Array:
    require_rigid(ident)
    return np.tile(shaped("q", q, (ident.model.n,)), (ident.model.n + 1, 1))


def _torque_rows(ident: Record, q: Array, v: Array, a: Array) -> Array:
    """Coefficients of the base parameters in the torque, shape (…, n, b)."""
    base = ident.fit.base
    return ident.model.torque(np.eye(len(base.names))[:, base.independent], q, v, a)


@dataclass(frozen=True, eq=False)
class HeldOutMotion:
    """A held-out log of another motion than the training logs'.

    Attributes:
        factor: Data factor ``[R | rho]``, whitened as that of the result, shape (k, p + 1).
        speed: 95 % quantile of |v|, shape (n,) [rad/s or m/s].
        seen: As :attr:`.HeldOutResidual.seen`.
        relative: RMS error of the exported model over RMS torque, shape (n,), a fraction.
    """

    factor: Array
    speed: Array
    seen: Array
    relative: Array


def errors_at_speeds(
    ident: Record, prediction: HeldOutResidual, trained: Range, tested: Sequence[HeldOutMotion] = ()
) -> dict[str, list[float]]:
    """Returns the relative error of each joint's torque to be expected at :data:`.evidence.SPEEDS`.

    Args:
        trained: Speeds and accelerations of the logs, from which all lower fractions of the velocity limits are raised.

    Returns:
        By joint: up to the speeds at which all joints moved in a tested motion, the largest error measured in such motions. At
        other speeds, the root of the mean over random feasible states of variance, squared bias and variance of friction that
        no log covers, over the RMS torque there.
    """
    robot = ident.model.robot
    seen = covered_speeds([prediction.seen, *(motion.seen for motion in tested)])
    factor = np.vstack([ident.factor, *(motion.factor for motion in tested)])
    # another mean than the exported parameters, which the first fit of friction and rotor inertia or constraints may hold back
    posterior, narrow, mean = _posterior(replace(ident, factor=factor))
    q, v, a = random_states(robot, trained)
    limit = robot.limit("velocity")
    limit = np.where(np.isfinite(limit), limit, 0.0)
    full = limit / np.maximum(trained.speed, 1e-9)
    reached = [float(np.min(motion.speed[limit > 0] / limit[limit > 0], initial=1.0)) for motion in tested]
    ranges = []
    for share in SPEEDS:
        if measured := [motion.relative for motion, most in zip(tested, reached, strict=True) if most >= share]:
            ranges.append(np.max(measured, axis=0))
            continue
        faster = np.maximum(share * full, 1.0)
        rows = ident.model.torque(np.eye(len(ident.theta)), q, faster * v, faster**2 * a)
        variance, bias = narrow * posterior.variance(rows), rows @ (mean - ident.theta)
        unseen = unseen_friction(ident.model, ident.theta, seen, q, faster * v, faster**2 * a)
        square = variance + bias**2 + (unseen / NORMAL_95) ** 2
        ranges.append(np.sqrt(np.mean(square, axis=0)) / divisors(rms(rows @ ident.theta, axis=0)))
    return dict(zip(robot.joints, np.transpose(ranges).tolist(), strict=True))
