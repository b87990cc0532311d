"""Prediction of the standard errors after the next motion, before it is executed.

Information is additive: the rows of a planned motion, computed by the same code as those of its log, are stacked under the
factor of the earlier logs. The nominal standard errors of both together are then inflated like those of the earlier result,
because autocorrelated noise and model errors will also affect the next log. Standard parameters are reported with the
prior, as in the result.

Parameters are ranked by cost: the standard error times the size of the column over the states within the limits, in units
of the torque noise. A cost below the noise of a single row hardly justifies another log.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..linalg import Array, IntArray, triangle
from ..model.prior import Posterior
from ..motion.fourier import random_fourier
from ..motion.limits import Limits
from ..motion.trajectory import Trajectory
from ..samples import ReadOnly, Segment
from ..statistics.accumulate import accumulate
from ..statistics.fit import Fit
from ..statistics.rows import RowFilter
from ..units import percent
from .problem import EarlierResult, column_scale, continued, row_noise, usable_limits
from .rows import PlannedRows, designable

#: Singular values of the scaled rows below this fraction of the largest, and entries of null directions, count as zero.
RANK, UNSEEN = 1e-12, 1e-7
#: Least number of weakest base parameters to name, even if none costs more than the noise.
FEWEST = 5
#: Largest number of rows of the summary.
_ROWS = 8
#: Harmonics of the random motion of :func:`forecast_random_motion`.
HARMONICS = 10
#: A mass is mentioned if its standard deviation falls below this fraction of the previous one.
NOTICEABLE = 0.8
#: A standard parameter is well known if its standard deviation is below this fraction of its value.
WELL = 0.1
#: A spread of friction between logs above this fraction of its mean justifies a warm-up.
NOTABLE = 0.05


@dataclass(frozen=True, eq=False)
class Forecast(ReadOnly):
    """Standard errors before and after a motion.

    Attributes:
        duration: Of the motion [s].
        labels: Short names of the base parameters, length b.
        values: Their estimates, shape (b,).
        before: Their present standard errors, shape (b,); inf if unknown.
        after: Their standard errors after identification of the motion together with the earlier logs, shape (b,).
        size: Torque per unit of each parameter on states within the limits, shape (b,) [noise/unit].
        names: Names of the standard parameters, ten per body first, length p.
        standard: Their values, shape (p,).
        standard_before: Their present standard deviations from data and URDF, shape (p,).
        standard_after: Their standard deviations after the motion, shape (p,).
        warming: Advice on friction that differs from log to log; empty if it hardly does.
    """

    duration: float
    labels: tuple[str, ...]
    units: tuple[str, ...]
    values: Array
    before: Array
    after: Array
    size: Array
    bodies: tuple[str, ...]
    names: tuple[str, ...]
    standard: Array
    standard_before: Array
    standard_after: Array
    warming: str = ""

    @property
    def cost(self) -> Array:
        """Torque uncertainty due to each base parameter, shape (b,) [standard deviations of the noise of a row]."""
        return np.asarray(self.before * self.size)

    @property
    def weakest(self) -> IntArray:
        """Indices of unknown base parameters, largest cost first; at least :data:`FEWEST`, shape (k,)."""
        order = np.argsort(-self.cost, kind="stable")
        return order[: min(len(order), max(FEWEST, int((self.cost > 1.0).sum())))]

    def sentence(self) -> str:
        """Summarises in one line what is unknown and what the motion improves."""
        weak, unknown = self.weakest, int((self.cost > 1.0).sum())
        named = weak[: min(FEWEST, unknown or FEWEST)]
        listed = ", ".join(self.labels[k] for k in named) + (", …" if unknown > len(named) else "")
        head = f"no base parameter is hidden by the noise, the least certain are {listed}"
        if unknown:
            verb = "is" if unknown == 1 else "are"
            head = f"{unknown} of {len(self.labels)} base parameters {verb} hidden by the noise: {listed}"
        gains = np.ones_like(self.before)  # 1 for parameters that stay unknown
        np.divide(self.before, self.after, out=gains, where=np.isfinite(self.after))
        gain = float(np.median(gains[weak]))
        line = f"{head}; after {self.duration:.3g} s the standard errors of the {len(weak)} least certain are {_times(gain)}"
        others = np.setdiff1d(np.arange(len(self.labels)), weak)
        return line + (f", the others {_times(float(np.median(gains[others])))}" if len(others) else "")

    def mass_words(self) -> str:
        """Summarises the improvement of the masses in one line."""
        place = slice(0, 10 * len(self.bodies), 10)
        masses = np.maximum(np.abs(self.standard[place]), np.finfo(float).tiny)
        now, then = self.standard_before[place] / masses, self.standard_after[place] / masses
        better = np.flatnonzero(then < NOTICEABLE * now)
        if not len(better):
            return "single masses hardly improve: torque only shows them in combination with other parameters"
        which = ", ".join(self.bodies[k] for k in better)
        return f"masses of {which}: from {_range(now[better])} to {_range(then[better])}"

    def summary(self) -> str:
        """Tabulates the weakest base parameters and the masses, before and after."""
        weak, size = self.weakest[:_ROWS], np.abs(self.standard)
        now, then = (int((std < WELL * size).sum()) for std in (self.standard_before, self.standard_after))
        share = np.median(self.standard_before / np.maximum(self.standard_after, np.finfo(float).tiny))
        width = max(len(f"{self.labels[k]} [{self.units[k]}]") for k in weak)
        lines = [
            self.sentence(),
            f"  {'parameter':{width}s} {'value':>10s} {'now':>22s} {'then':>22s}",
            *(
                f"  {f'{self.labels[k]} [{self.units[k]}]':{width}s} {self.values[k]:10.4g} "
                f"{_plus_minus(self.before[k], self.values[k]):>22s} {_plus_minus(self.after[k], self.values[k]):>22s}"
                for k in weak
            ),
            f"  of {len(size)} standard parameters, data and URDF together, {now} are known to {100 * WELL:g} % now and {then} "
            f"then; standard deviations are {_times(float(share))}",
            f"  {self.mass_words()}",
            *([f"  {self.warming}"] if self.warming else []),
        ]
        return "\n".join(lines)

    __str__ = summary


def _times(gain: float) -> str:
    if np.isinf(gain):
        return "now identifiable"
    return f"{gain:.2g} times smaller" if gain >= 1.05 else "almost unchanged"


def _plus_minus(error: float, value: float) -> str:
    if np.isinf(error):
        return "unknown"
    share = 100.0 * error / abs(value) if value else np.inf
    return f"± {error:.3g}" + (f" ({percent(share)} %)" if share < 1000.0 else "")


def _range(share: Array) -> str:
    low, high = 100.0 * float(share.min()), 100.0 * float(share.max())
    ends = dict.fromkeys((percent(low), percent(high)))
    return f"±{'-'.join(ends)} %"


def forecast(after: EarlierResult, trajectory: Trajectory, limits: Limits | None = None) -> Forecast:
    """Predicts the standard errors after identification of a motion together with the earlier logs.

    Args:
        after: The earlier result.
        trajectory: The motion.
        limits: Limits of the states for the torque weights of the unknowns; the URDF's if None.

    Raises:
        ModelError: The earlier result has elastic joints.
        LimitError: A position or velocity limit is unknown.
    """
    model, _ = continued(after, after.model)
    fit, columns = after.fit, after.fit.base.independent
    limits, _ = usable_limits(limits or Limits.from_robot(model.robot), None)
    rate, factor = after.signals["rate"], max(1, round(after.signals["rate"] / after.signals["decimate"]))
    q, v, a = trajectory.evaluate(trajectory.times(rate))
    segment = Segment("planned", 0.0, rate, q, v, a, np.zeros_like(q))  # rows computed like those of its log
    planned_rows = accumulate(model, "planned", [segment], RowFilter(factor), blocks=1)
    old, new = after.factor[:, :-1], planned_rows.stacked(fit.weights)[:, :-1]
    known = after.prior.without_first_fit
    errors = joint_errors(fit.of_mean, old[:, columns], new[:, columns])
    errors = np.sqrt(errors**2 + np.diag(fit.spread_covariance))  # no motion reduces the spread of friction between logs
    # torque per unit of each parameter on random states; for terms that act only at reversals, the saturated value
    noise, (planned, _) = row_noise(after), designable(model)
    base = planned.base()
    typical = 1.0 / column_scale("columns", PlannedRows(planned, base, noise), limits)
    sizes = {planned.names[k]: size for k, size in zip(base.independent, typical, strict=True)}
    level = dict(zip(model.robot.joints, 1.0 / noise, strict=True))
    unknowns, changes, warming = model.base().independent, fit.changes, ""
    if changes is not None and not changes.known:
        warming = (
            "friction's spread from log to log is not known from one log: record this motion as a second one, best the first "
            "cold and the second after a warm-up"
        )
    elif changes is not None:
        mean, spread = changes.torque(after.speed, after.load)
        share = np.where(mean > 0, spread / np.where(mean > 0, mean, 1.0), 0.0)
        worst, count = int(np.argmax(share)), int((share > NOTABLE).sum())
        if count:
            warming = (
                f"friction differs from log to log on {count} of {model.n} joints, most on {model.robot.joints[worst]} "
                f"({100 * share[worst]:.0f} %), and no motion lowers that: repeat this one as a warm-up cycle until friction "
                "settles, or record two logs, one cold and one warm"
            )
    return Forecast(
        duration=trajectory.duration,
        labels=fit.base.labels,
        units=tuple(model.parameters[k].unit for k in columns),
        values=fit.params,
        before=fit.bse,
        # weights are not optimal for autocorrelated noise, but a new log must not increase an error
        after=np.minimum(errors, fit.bse),
        size=np.array([sizes.get(model.names[k], level.get(model.parameters[k].owner, 0.0)) for k in unknowns]),
        bodies=tuple(body.name for body in model.robot.bodies),
        names=model.names,
        standard=after.theta,
        standard_before=Posterior(old, known, after.prior_weight).std,
        standard_after=Posterior(triangle(old, new), known, after.prior_weight).std,
        warming=warming,
    )


def joint_errors(fit: Fit, old: Array, new: Array) -> Array:
    """Returns the standard errors of base parameters from the logs of a fit together with new rows.

    The error of the weighted estimate is ``P [e_old; e_new]`` with the pseudo-inverse P of the stacked rows. The part of the
    old rows has the fit's covariance; that of the new rows has the covariance of independent rows times the median factor by
    which the fit's covariance exceeds the nominal one.

    Args:
        old: Whitened factor of its rows, shape (m, b).
        new: Whitened factor of the new rows, shape (k, b).

    Returns:
        Shape (b,); inf for parameters that neither determines.
    """
    stack = np.vstack([old, new])
    scale = np.linalg.norm(stack, axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    left, sigma, right = np.linalg.svd(stack / scale, full_matrices=False)
    determined = sigma > RANK * sigma[0]
    inverse = (right[determined].T / sigma[determined]) @ left[:, determined].T / scale[:, None]
    values, vectors = np.linalg.eigh(fit.covariance * np.outer(scale, scale))
    root = vectors * np.sqrt(np.maximum(values, 0.0)) / scale[:, None]
    factors = [inverse[:, : len(old)] @ old @ root, np.sqrt(fit.variance_factor(old)) * inverse[:, len(old) :]]
    unseen = np.linalg.norm(right[~determined], axis=0) > UNSEEN
    return np.asarray(np.where(unseen, np.inf, np.linalg.norm(np.hstack(factors), axis=1)))


def forecast_random_motion(after: EarlierResult, limits: Limits, duration: float) -> Forecast:
    """Predicts the effect of a random motion inside the limits: cheap, and a lower bound for a designed one.

    Args:
        duration: Of the motion [s].

    Raises:
        LimitError: Limits are unknown or leave no room.
        ModelError: The earlier result has elastic joints.
    """
    usable, _ = usable_limits(limits, None)
    return forecast(after, random_fourier(usable, duration, HARMONICS, seed=0), usable)
