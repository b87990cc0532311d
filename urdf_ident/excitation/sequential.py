"""What the next motion will tell: standard errors after it, before it is driven.

Factors add up: the rows of a planned motion, made by the producer that will make those of its log, are stacked under the
factor of the earlier logs. What the textbook says of both together is then enlarged as the earlier result's own standard
errors were enlarged against the textbook, parameter by parameter: autocorrelated noise and a model that lacks something will
not be gone in the next log. Standard parameters are told with the prior, as the result tells them.

An unknown is ranked by what it costs: its standard error times the size of its column over the states that the limits
allow, in units of the torque noise. One that costs less than the noise of a single row is hardly worth another log.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ..linalg import Array, triangle
from ..model.dynamic_model import DynamicModel
from ..model.posterior import posterior_std
from ..model.prior import Prior
from ..motion.base import Trajectory
from ..motion.fourier import random_fourier
from ..motion.limits import Limits
from ..samples import ReadOnly, Segment
from ..statistics.accumulate import accumulate
from ..statistics.fit import Fit
from ..statistics.rows import RowFilter
from .criteria import standard_errors
from .earlier import IdentificationLike, continued, row_noise
from .planned import percent
from .planning import column_scale, usable_limits
from .rows import PlannedRows, designable

#: Singular values of the scaled rows below this part of the largest are rounding, and entries of their directions, none.
RANK, UNSEEN = 1e-12, 1e-7
#: Weakest base parameters that are named even if none costs more than the noise.
FEWEST = 5
#: Harmonics of the random motion of an offer.
HARMONICS = 10
#: A mass that is not known better than this part of what it was is not worth a word.
NOTICEABLE = 0.8
#: A standard parameter is well known when its standard deviation is below this part of its value.
WELL = 0.1
#: A spread of friction between logs beyond this part of its mean is worth a warm-up.
NOTABLE = 0.05


class EarlierResult(IdentificationLike, Protocol):
    """What is read of an identification besides; of its ``signals`` the ``rate`` too [Hz]."""

    @property
    def fit(self) -> Fit:
        """Its base parameters with honest standard errors."""

    @property
    def theta(self) -> Array:
        """Standard parameters, shape (p,)."""

    @property
    def prior(self) -> Prior:
        """The prior."""

    @property
    def prior_weight(self) -> float:
        """Weight of the prior against the data."""


@dataclass(frozen=True, eq=False)
class Forecast(ReadOnly):
    """Standard errors before and after a motion.

    Attributes:
        duration: Of the motion [s].
        labels: Short names of the base parameters, length b.
        units: Their units, length b.
        values: Their estimates, shape (b,).
        before: Their standard errors now, shape (b,); inf where nothing is known.
        after: Their standard errors once the motion has been driven and identified together with the earlier logs, (b,).
        size: Torque that one unit of each parameter makes on the states that the limits allow, shape (b,) [noise/unit].
        bodies: Names of the bodies, length n.
        names: Names of the standard parameters, ten a body first, length p.
        standard: Their values, shape (p,).
        standard_before: Standard deviations now, data and prior together, shape (p,).
        standard_after: Standard deviations then, shape (p,).
        kind: How the standard errors before were found, in words.
        warming: What to do about friction that differs from log to log; empty where it hardly does.
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
    kind: str
    warming: str = ""

    @property
    def cost(self) -> Array:
        """What not knowing each base parameter costs in torque, shape (b,) [standard deviations of the noise of a row]."""
        return np.asarray(self.before * self.size)

    @property
    def weakest(self) -> NDArray[np.intp]:
        """Base parameters that are unknown, those that cost most first; at least :data:`FEWEST`, shape (k,)."""
        order = np.argsort(-self.cost, kind="stable")
        return order[: min(len(order), max(FEWEST, int((self.cost > 1.0).sum())))]

    def sentence(self) -> str:
        """What is unknown, and what the motion changes, in one line."""
        weak, unknown = self.weakest, int((self.cost > 1.0).sum())
        named = weak[: min(FEWEST, unknown or FEWEST)]
        listed = ", ".join(self.labels[k] for k in named) + (", …" if unknown > len(named) else "")
        if unknown:
            verb = "is" if unknown == 1 else "are"
            head = f"{unknown} of {len(self.labels)} base parameters {verb} hidden by the noise: {listed}"
        else:
            head = f"no base parameter is hidden by the noise, the least certain are {listed}"
        gains = np.ones_like(self.before)  # what stays unknown gains nothing
        np.divide(self.before, self.after, out=gains, where=np.isfinite(self.after))
        gain = float(np.median(gains[weak]))
        words = f"{head}; after {self.duration:.3g} s the standard errors of the {len(weak)} least certain are {_times(gain)}"
        rest = np.setdiff1d(np.arange(len(self.labels)), weak)
        return words + (f", the others {_times(float(np.median(gains[rest])))}" if len(rest) else "")

    def mass_words(self) -> str:
        """What happens to the masses, in one line."""
        place = slice(0, 10 * len(self.bodies), 10)
        masses = np.maximum(np.abs(self.standard[place]), np.finfo(float).tiny)
        now, then = self.standard_before[place] / masses, self.standard_after[place] / masses
        better = np.flatnonzero(then < NOTICEABLE * now)
        if not len(better):
            return "single masses hardly improve: torque only shows them in combination with other parameters"
        which = ", ".join(self.bodies[k] for k in better)
        return f"masses of {which}: from {_range(now[better])} to {_range(then[better])}"

    def standard_words(self) -> str:
        """How many standard parameters are well known, in one line."""
        size = np.abs(self.standard)
        now, then = (int((std < WELL * size).sum()) for std in (self.standard_before, self.standard_after))
        share = np.median(self.standard_before / np.maximum(self.standard_after, np.finfo(float).tiny))
        return (
            f"of {len(self.names)} standard parameters, data and URDF together, {now} are known to {100 * WELL:g} % now and "
            f"{then} then; standard deviations are {_times(float(share))}"
        )

    def summary(self, limit: int = 8) -> str:
        """The weakest base parameters and the masses, now and then.

        Args:
            limit: Lines of the table.

        Returns:
            Several lines of text.
        """
        weak = self.weakest[:limit]
        width = max(len(f"{self.labels[k]} [{self.units[k]}]") for k in weak)
        lines = [
            self.sentence(),
            f"  {'parameter':{width}s} {'value':>10s} {'now':>22s} {'then':>22s}",
            *(
                f"  {f'{self.labels[k]} [{self.units[k]}]':{width}s} {self.values[k]:10.4g} "
                f"{_plus_minus(self.before[k], self.values[k]):>22s} {_plus_minus(self.after[k], self.values[k]):>22s}"
                for k in weak
            ),
            f"  {self.standard_words()}",
            f"  {self.mass_words()}",
            *([f"  {self.warming}"] if self.warming else []),
        ]
        return "\n".join(lines)

    __str__ = summary


def _times(gain: float) -> str:
    if np.isinf(gain):
        return "finite at last"
    return f"{gain:.2g} times smaller" if gain >= 1.05 else "much as they were"


def _plus_minus(error: float, value: float) -> str:
    if np.isinf(error):
        return "unknown"
    share = 100.0 * error / abs(value) if value else np.inf
    return f"± {error:.3g}" + (f" ({percent(share)} %)" if share < 1000.0 else "")


def _range(share: Array) -> str:
    low, high = 100.0 * float(share.min()), 100.0 * float(share.max())
    ends = dict.fromkeys((percent(low), percent(high)))
    return f"±{'-'.join(ends)} %"


def planned_factor(after: EarlierResult, model: DynamicModel, trajectory: Trajectory) -> Array:
    """Whitened factor of the rows that a motion will give, by the producer that will make them.

    Args:
        after: The earlier result: rates and noise of the rows.
        trajectory: The motion, all repetitions included.

    Returns:
        Shape (≤ p, p): ``RᵀR`` is the information it will bring, for independent rows.
    """
    rate, factor = after.signals["rate"], max(1, round(after.signals["rate"] / after.signals["decimate"]))
    q, v, a = trajectory.evaluate(trajectory.times(rate))
    segment = Segment("planned", 0.0, rate, q, v, a, np.zeros_like(q))
    statistics = accumulate(model, "planned", [segment], RowFilter(factor), blocks=1)
    return statistics.stacked(after.fit.weights)[:, :-1]


def forecast(after: EarlierResult, trajectory: Trajectory, limits: Limits | None = None) -> Forecast:
    """Predicts what will be known once a motion has been driven and identified together with the earlier logs.

    Args:
        after: The earlier result.
        trajectory: The motion.
        limits: Limits of the joints, for the states whose torque the unknowns are weighed by; the URDF's if None.

    Returns:
        The prediction.

    Raises:
        ModelError: The earlier result is of elastic joints.
        LimitError: A position or velocity limit is unknown.
    """
    model, _ = continued(after, after.model)
    fit, columns = after.fit, after.fit.base.independent
    limits, _ = usable_limits(limits or Limits.from_robot(model.robot), None)
    old, new = after.factor[:, :-1], planned_factor(after, model, trajectory)
    told = joint_errors(fit.of_mean, old[:, columns], new[:, columns])
    told = np.sqrt(told**2 + np.diag(fit.spread_covariance))  # no motion makes friction differ less from log to log
    return Forecast(
        duration=trajectory.duration,
        labels=fit.base.labels,
        units=tuple(model.parameters[k].unit for k in columns),
        values=fit.params,
        before=fit.bse,
        after=np.minimum(
            told, fit.bse
        ),  # weights are not optimal for autocorrelated noise: a new log never makes an error larger
        size=column_sizes(after, model, limits),
        bodies=tuple(body.name for body in model.robot.bodies),
        names=model.names,
        standard=after.theta,
        standard_before=posterior_std(old, after.prior, after.prior_weight),
        standard_after=posterior_std(triangle(old, new), after.prior, after.prior_weight),
        kind=fit.covariance_kind,
        warming=warming_words(after),
    )


def warming_words(after: EarlierResult) -> str:
    """What no motion cures: friction that differs from log to log.

    Returns:
        A sentence where the spread is worth it, or is not known; else nothing.
    """
    changes, n = after.fit.changes, after.model.n
    if changes is None:
        return ""
    if not changes.known:
        return (
            "friction's spread from log to log is not known from one log: record this motion as a second one, best the first "
            "cold and the second after a warm-up"
        )
    speed, load = (
        np.broadcast_to(np.asarray(after.signals.get(key, default), dtype=float), (n,))
        for key, default in (("speed", 1.0), ("load", 0.0))
    )
    mean, spread = changes.torque(speed, load)
    share = np.where(mean > 0, spread / np.where(mean > 0, mean, 1.0), 0.0)
    worth = np.flatnonzero(share > NOTABLE)
    if not len(worth):
        return ""
    worst = int(np.argmax(share))
    return (
        f"friction differs from log to log on {len(worth)} of {n} joints, most on {after.model.robot.joints[worst]} "
        f"({100 * share[worst]:.0f} %), and no motion lowers that: repeat this one as a warm-up cycle until friction settles, "
        "or record two logs, one cold and one warm"
    )


def joint_errors(fit: Fit, old: Array, new: Array) -> Array:
    """Standard errors of base parameters from the logs of a fit and new rows together.

    The weighted estimate moves by ``P [e_old; e_new]`` with the pseudo-inverse P of the stacked rows. The old rows' part
    scatters as the fit's covariance says; the new rows' part as independent rows do, times the median factor by which that
    covariance exceeds the textbook's.

    Args:
        fit: The fit of the earlier logs.
        old: Whitened factor of its rows, shape (m, b).
        new: Whitened factor of the new rows, shape (k, b).

    Returns:
        Shape (b,); inf where neither shows a parameter.
    """
    stack = np.vstack([old, new])
    scale = np.linalg.norm(stack, axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    left, sigma, right = np.linalg.svd(stack / scale, full_matrices=False)
    kept = sigma > RANK * sigma[0]
    inverse = (right[kept].T / sigma[kept]) @ left[:, kept].T / scale[:, None]
    values, vectors = np.linalg.eigh(fit.covariance * np.outer(scale, scale))
    root = vectors * np.sqrt(np.maximum(values, 0.0)) / scale[:, None]
    parts = [inverse[:, : len(old)] @ old @ root, np.sqrt(overrated(fit, old)) * inverse[:, len(old) :]]
    unseen = np.linalg.norm(right[~kept], axis=0) > UNSEEN
    return np.asarray(np.where(unseen, np.inf, np.linalg.norm(np.hstack(parts), axis=1)))


def overrated(fit: Fit, old: Array) -> float:
    """How much less a row is worth than an independent one would be: the fit's variances over the textbook's, median.

    Args:
        old: Whitened factor of its rows, shape (m, b).

    Returns:
        At least 1 for most logs; 1 where nothing is known.
    """
    textbook = standard_errors(old)
    usual = fit.seen & np.isfinite(textbook) & (textbook > 0)
    return float(np.median((fit.bse[usual] / textbook[usual]) ** 2)) if usual.any() else 1.0


def column_sizes(after: EarlierResult, model: DynamicModel, limits: Limits) -> Array:
    """Torque of one unit of each base parameter on random states inside the limits, in units of the noise.

    Args:
        after: The earlier result, for the noise of the row groups.
        limits: The limits, finite for positions and velocities.

    Returns:
        Shape (b,) [1/unit]; of terms that only live in reversals, where they are saturated.
    """
    planned, _ = designable(model)
    noise, base, full = row_noise(after), planned.base(), model.base()
    typical = 1.0 / column_scale("columns", PlannedRows(planned, base, noise), limits)
    sizes = {planned.names[k]: size for k, size in zip(base.independent, typical, strict=True)}
    level = {joint: 1.0 / noise[j] for j, joint in enumerate(model.robot.joints)}
    return np.array([sizes.get(full.names[k], level.get(model.parameters[k].owner, 0.0)) for k in full.independent])


def offer(after: EarlierResult, limits: Limits, duration: float, seed: int = 0) -> Forecast:
    """What even a random motion inside the limits would tell: cheap, and a lower bound of what a designed one does.

    Args:
        limits: Limits of the joints.
        duration: Of the motion [s].
        seed: Of the motion.

    Returns:
        The prediction.

    Raises:
        LimitError: Limits are unknown or leave no room.
        ModelError: The earlier result is of elastic joints.
    """
    usable, _ = usable_limits(limits, None)
    return forecast(after, random_fourier(usable, duration, HARMONICS, seed), usable)
