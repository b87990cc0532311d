"""Estimates the delay and bandwidth of the efforts from profile likelihoods of a rigid robot.

A delay d adds d times rotor inertia times jerk, d times viscous friction times acceleration and so on to the torque, which
other parameters may explain as well. So all parameters are fitted again for every delay: inertial parameters, rotor inertia,
friction that reverses within several speeds, and presliding friction. The estimate minimises the residual; its standard error
is from a jackknife over blocks of time. A first-order low-pass is a delay at low frequencies: where a delay is decided, such a
filter of the efforts is compared with it. Filters of the efforts are applied to the columns of the fit as well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from ..judgements.catalogue import Id
from ..judgements.judgement import Judgement, Remedy
from ..linalg import Array, BoolArray, positive, vertex
from ..model.rigid_bodies import regressor
from ..model.robot import Robot
from ..model.row_groups import Limb, limbs, of_all_joints, spanning
from ..samples import TESTING_REVERSALS, reversals
from ..signals.filters import HIGHEST, lag, lowpass
from .evidence import DECISIVE, SIGNIFICANT, column_scale, gains, significance
from .friction import reversal_columns, scaled_friction
from .motion_samples import MotionSamples, sampler
from .regression import JointColumns
from .thinned_logs import FEWEST, Logs

#: Initial grid of delays [s], and the steps around the best one by which it is refined.
_GRID = np.linspace(-0.06, 0.16, 12)
_FINE, _STEPS = np.arange(-4.0, 5.0), (0.005, 0.00125)
#: Number of samples, blocks of time, and folds of the jackknife.
_SAMPLES, _BLOCKS, _FOLDS = 1500, 20, 10
#: Of many logs, at least this many and this duration of motion [s] are used.
_LOGS, _SECONDS = 8, 120.0
#: Half-width of the interval in standard errors, and smallest standard error of a delay [s].
_ERRORS, _RESOLUTION = 2.5, 5e-4
#: Least gain by a delay or low-pass of practical size, mean over the joints of the reduction of log held-out errors.
_PRACTICAL = 0.08
#: Ratio of the efforts' cut-off to that of the motion: reversing friction is steeper than the motion. Bandwidths of the efforts
#: above half of their cut-off are not tried.
_WIDER = 4.0
#: Candidate bandwidths of the efforts, half an octave apart, the widest first [Hz].
_BANDS = tuple(8.0 * 2.0 ** (-k / 2) for k in range(9))
#: Time constants of first-order low-passes that are compared with a delay, as fractions of it: at low frequencies a low-pass
#: delays by its time constant, at higher ones by less.
_LAGS = (1.0, 1.25, 1.6, 2.0)


@dataclass(frozen=True)
class Delay:
    """Delay of the efforts of all joints.

    Attributes:
        seconds: Lag of the efforts behind the positions [s]; negative if they lead.
        low, high: Its interval [s].
        gain: Reduction of the log held-out error, mean over joints.
        decided: Whether the interval excludes 0 and the gain is significant and of practical size.
        flat: Whether no delay in the grid is significantly worse: the motion does not determine it.
        low_pass: Frequency at which a low-pass of the efforts, which explains the logs better than the delay alone, leaves half
            the power [Hz]; None without any.
    """

    seconds: float
    low: float
    high: float
    gain: float
    decided: bool
    flat: bool
    low_pass: float | None = None

    @property
    def inside(self) -> bool:
        """Whether its interval is within the delays that were tried; otherwise it may be longer than estimated."""
        return bool(_GRID[0] < self.low and self.high < _GRID[-1])

    def excludes(self, seconds: float) -> bool:
        """Whether the logs rule out a delay, or none would lower the held-out error by a practical part.

        Args:
            seconds: The delay [s].
        """
        apart = not self.flat and not self.low <= seconds <= self.high
        return bool(self.inside and (apart or self.gain < _PRACTICAL))

    def as_dict(self) -> dict[str, Any]:
        """Returns plain data for JSON, with the description."""
        return {**asdict(self), "why": self.describe()}

    def findings(self) -> tuple[Judgement, ...]:
        """Returns a warning if the delay is of practical size."""
        remedy = Remedy(Id.EFFORT_DELAY.entry.remedy)
        if self.inside:
            remedy = Remedy(f"{{settings}} takes it out; {remedy.action}", {"signals.delay": "auto"})
        finding = Judgement(Id.EFFORT_DELAY, self.describe(), remedy, size=self.seconds, certainty=0.99)
        return (finding,) if self.decided else ()

    def filter_findings(self) -> tuple[Judgement, ...]:
        """Returns a warning if the efforts were filtered."""
        if self.low_pass is None:
            return ()
        words = f"the efforts are behind a low-pass of about {self.low_pass:.2g} Hz, which explains the log better"
        if self.decided:
            words += " than a delay: shifting them does not restore their amplitude"
        remedy = Remedy("log efforts that are not filtered, or filtered with a higher cut-off")
        return (Judgement(Id.EFFORT_BANDWIDTH, words, remedy, size=self.low_pass, certainty=0.99, severity="warning"),)

    def describe(self) -> str:
        """Describes the delay in one sentence."""
        low, seconds, high = (1e3 * x for x in (self.low, self.seconds, self.high))
        between = f"{low:.3g} to {high:.3g} ms"
        if self.flat:
            return "not distinguishable from other parameters: this motion does not determine a delay of the efforts"
        if not self.decided:
            if self.low > 0.0 or self.high < 0.0:
                return f"a delay of the efforts of {seconds:.2g} ms ({between}) hardly lowers the held-out error"
            return f"no significant delay of the efforts: {seconds:.2g} ms ({between})"
        return (
            f"the efforts lag the positions by {seconds:.3g} ms ({between}); without it the held-out error is larger"
            + ("" if self.low_pass is None else "; a low-pass explains the logs better")
            + ("" if self.inside else "; it may be longer, or a low-pass")
        )


def find_delay(robot: Robot, logs: Logs, reduction: Array | None = None) -> Delay | None:
    """Estimates the common delay of the efforts, and tells a low-pass of them from it.

    Args:
        robot: Kinematics and gravity; its inertias are not used.
        logs: Conditioned motion with measured torque of each log, and the cut-off of its positions [Hz].
        reduction: Motor rates per joint rates, shape (n, n), or None if every motor drives one joint.

    Returns:
        The common delay, None if the logs are too short.
    """
    seconds = sum(len(part) / part.rate for parts, _ in logs for part in parts)
    every = max(min(len(logs) // _LOGS, int(seconds / _SECONDS)), 1)  # of more logs, the samples would be too far apart
    some = [(parts, min(_WIDER * cutoff, HIGHEST * parts[0].rate)) for parts, cutoff in logs[::every] if parts]
    sampled = sampler(some, samples=_SAMPLES, blocks=_BLOCKS, reduction=reduction)
    if sampled is None or len(motion := sampled(0.0)) < FEWEST * (robot.n + 2) or not (moves := motion.moves).any():
        return None
    problem = every_row = DelayProblem.of(robot, motion, moves)

    def late(delays: Array) -> Array:
        return np.stack([sampled(float(d)).tau for d in delays], axis=2)

    seconds, half = _best_delay(problem, late)
    if seconds < 0.0 and 2 * motion.glides.sum() > motion.glides.size:  # torque builds up while a joint sticks: a seeming lead
        problem = replace(problem, rows=motion.glides)
        seconds, half = _best_delay(problem, late)
    tau = late(np.array([0.0, seconds]))
    none, best = every_row.held_out(tau)
    gain, significant = gained(none, best)
    tried = every_row.held_out(late(_GRID))
    flat = gained(max(tried, key=mean_error), best)[1] < SIGNIFICANT
    enough = 2 * np.sum((reversals(motion.v) >= TESTING_REVERSALS) & moves) > np.sum(moves)
    decided = enough and abs(seconds) > half and gain > _PRACTICAL and significant > SIGNIFICANT
    found, lag = None, seconds if decided else 0.0
    if enough:
        found = _low_pass(problem, tau if decided else tau[:, :, [0, 0]], lag, min(cutoff for _, cutoff in some))
    return Delay(seconds, seconds - half, seconds + half, gain, bool(decided), bool(flat), found)


@dataclass(frozen=True, eq=False)
class DelayProblem:
    """The regression of efforts on one motion, for versions of the efforts.

    Attributes:
        limbs: The limbs of the robot.
        columns: Those of each limb's bodies, then f of each joint's friction, scaled, shape (N, joints, m + f).
        own: Number f of these.
        moves: Joints that move, shape (n,).
        weights: One over the residual variance of each row, shape (n,).
        rows: Mask of the equations that are fitted, shape (N, n).
    """

    motion: MotionSamples
    limbs: Sequence[Limb]
    columns: Sequence[Array]
    own: int
    moves: BoolArray
    weights: Array
    rows: BoolArray

    @classmethod
    def of(cls, robot: Robot, motion: MotionSamples, moves: BoolArray) -> DelayProblem:
        """Builds the columns of a motion; rows are weighted by their residual without a delay.

        Args:
            moves: Whether each joint moves, shape (n,).
        """
        every, parts, own = limbs(robot, motion.reduction), list[Array](), 0
        for limb in every:
            columns = regressor(limb.robot, *motion.of(limb.joints))[:, :, spanning(limb.robot)[0]]
            scale = column_scale(columns)
            seen, friction = np.isfinite(scale), scaled_friction(motion, limb.joints, reversal_columns(motion, limb.joints))
            own = friction.shape[2]
            parts.append(np.concatenate([columns[:, :, seen] / scale[seen], friction.transpose(1, 0, 2)], axis=2))
        weights = moves / positive(motion.tau.var(axis=0))
        first = cls(motion, every, parts, own, moves, weights, np.ones_like(motion.glides))
        weights[moves] /= np.maximum(first.errors(motion.tau[:, :, None], folds=False)[0][0, :, 0], 1e-6)
        return replace(first, weights=weights)

    @cached_property
    def _designs(self) -> list[tuple[list[int], JointColumns]]:
        """The joints of each limb and their columns."""
        every, own, block = [list(limb.joints) for limb in self.limbs], -self.own, self.motion.block
        return [
            (joints, JointColumns.of(x[:, :, :own], x[:, :, own:].transpose(1, 0, 2), self.rows.T[joints], block))
            for joints, x in zip(every, self.columns, strict=True)
        ]

    def errors(self, tau: Array, *, folds: bool = True) -> tuple[Array, Array]:
        """Mean squared errors of fits, or of those without one fold each, relative to the efforts' variance.

        Args:
            tau: K versions of the efforts, shape (N, n, K) [N·m or N].

        Returns:
            In what the fits have seen, shape (fits, moving joints, K); and of each block by the fit that has not seen it, shape
            (B, moving joints, K).
        """
        blocks, variance = int(self.motion.block.max()) + 1, positive(self.motion.tau.var(axis=0))[self.moves, None]
        fold = np.asarray(np.arange(blocks) * min(_FOLDS, blocks) // blocks) if folds else None
        every = [
            found.regression.errors(found.products(tau[:, joints]), self.weights[joints, None], fold)
            for joints, found in self._designs
        ]
        seen, held = (of_all_joints(self.limbs, some, axis=1)[:, self.moves] / variance for some in zip(*every, strict=True))
        return seen, held

    def held_out(self, tau: Array) -> list[Array]:
        """Errors of each block by fits that have not seen it, of each version of the efforts, shape (B, moving joints)."""
        return list(self.errors(tau)[1].transpose(2, 0, 1))

    def filtered(self, filter: Callable[[Array, float], Array], least: float) -> DelayProblem | None:
        """Returns the problem with filtered columns; None if the samples are too sparse.

        Args:
            filter: Returns columns, shape (N, ...), filtered, given their rate [Hz].
            least: Lowest rate of samples [Hz].
        """
        motion, out = self.motion, [np.empty_like(x) for x in self.columns]
        steps = np.diff(motion.time)
        starts = np.flatnonzero((np.diff(motion.log) != 0) | (steps > 1.5 * np.median(steps))) + 1
        for some in np.split(np.arange(len(motion)), starts):
            rate = 1 / float(np.median(np.diff(motion.time[some]))) if len(some) > 20 else 0.0
            if rate < least:
                return None
            for x, columns in zip(out, self.columns, strict=True):
                x[some] = filter(columns[some], rate)
        return replace(self, columns=out)


def mean_error(held: Array) -> float:
    """Mean over the joints of the logarithm of their error: twice the negative log-likelihood per sample.

    Args:
        held: Squared errors of each block, shape (B, joints).
    """
    return float(np.log(positive(held.mean(axis=0))).mean())


def gained(before: Array, after: Array) -> tuple[float, float]:
    """Reduction of the log error, mean over the joints, and the gain of all joints in standard errors.

    Args:
        before, after: Squared errors of each block, shape (B, joints).
    """
    return 0.5 * (mean_error(before) - mean_error(after)), significance(gains(before, after))


def _best_delay(problem: DelayProblem, late: Callable[[Array], Array]) -> tuple[float, float]:
    """The delay with the least error, and the half-width of its interval [s]."""

    def scores(tried: Array, *, folds: bool = False) -> Array:
        """Mean log errors, shape (fits, K)."""
        return np.asarray(np.log(positive(problem.errors(late(tried), folds=folds)[0])).mean(axis=1))

    def lowest(values: Array) -> float:
        """Minimum of the parabola through the lowest value and its neighbours."""
        k = int(np.clip(np.argmin(values), 1, len(tried) - 2))
        return float(tried[k] + np.clip(vertex(*values[k - 1 : k + 2]), -1, 1) * (tried[1] - tried[0]))

    tried = np.asarray(_GRID)
    for step in _STEPS:
        seconds = float(tried[int(np.argmin(scores(tried)[0]))])
        tried = np.asarray(seconds + step * _FINE)
    parts = np.array([lowest(own) for own in scores(tried, folds=True)])
    half = _ERRORS * max(float(np.sqrt(len(parts) - 1) * parts.std()), _RESOLUTION)
    return lowest(scores(tried)[0]), half


def _low_pass(problem: DelayProblem, tau: Array, seconds: float, cutoff: float) -> float | None:
    """The low-pass of the efforts [Hz] that explains the logs best, if decisively better than the delay alone."""
    logged, shifted = tau[:, :, :1], tau[:, :, 1:]
    bands = [1 / (2 * np.pi * share * seconds) for share in _LAGS if seconds > 0]
    tried = [(partial(lag, cutoff=band), band, np.pi * band, logged, _PRACTICAL) for band in bands]
    narrow = [band for band in _BANDS if 2 * band <= cutoff]
    tried += [(partial(lowpass, cutoff=band, order=2), band, 5 * band, shifted, DECISIVE) for band in narrow]
    (held,), found = problem.held_out(shifted), list[tuple[float, float]]()
    for filter, band, least_rate, efforts, least in tried:
        if (other := problem.filtered(filter, least_rate)) is not None:
            gain, significant = gained(held, other.held_out(efforts)[0])
            found += [(gain, band)] if gain > least and significant > SIGNIFICANT else []
    return max(found)[1] if found else None
