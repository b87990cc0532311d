"""Estimates the delay and bandwidth of the efforts from profile likelihoods of a rigid robot.

A delay d adds d times rotor inertia times jerk, d times viscous friction times acceleration and so on to the torque, which
other parameters may explain as well. So all parameters are fitted again for every delay: inertial parameters, rotor inertia,
friction that reverses within several speeds, and presliding friction. The estimate minimises the residual; its standard error
is from a jackknife over blocks of time. A first-order low-pass is a delay at low frequencies: where a delay is decided, such a
filter of the efforts, or of the positions, is compared with it. Filters of the efforts are applied to the columns of the fit
as well; those of the positions are taken back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, cached_property
from typing import Any

import numpy as np

from ..judgements.catalogue import Id
from ..judgements.judgement import Judgement, Remedy
from ..linalg import Array, BoolArray, IntArray, positive, rms
from ..model.rigid_bodies import regressor
from ..model.robot import Robot
from ..model.spanning import spanning
from ..samples import TESTING_REVERSALS, reversals
from ..sequences import vertex
from ..signals.filters import HIGHEST, SCORE_BAND, lowpass
from .evidence import DECISIVE, DOUBTFUL, FEWEST, SIGNIFICANT, gains, significance
from .friction import friction_columns, reversal_columns
from .motion_samples import MotionSamples, jerks, sampler
from .regression import JointColumns
from .thinned_logs import Logs

#: Returns jerk and its derivative at the samples, shape (N, n) each [rad/s³ and rad/s⁴, or m].
Growth = Callable[[], tuple[Array, Array]]
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
#: Candidate bandwidths of efforts and positions, an octave apart [Hz].
_BANDS = tuple(0.5 * 2.0**k for k in range(5))
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
        bandwidth: Frequency above which the efforts are attenuated [Hz]; None if they are not.
        lag: Time constant of a causal first-order low-pass that explains the logs better than the delay [s]: of the efforts,
            or of the positions if negative; None if none does.
        smoothed: Bandwidth of a low-pass without delay of the positions [Hz]; None if they were not filtered.
    """

    seconds: float
    low: float
    high: float
    gain: float
    decided: bool
    flat: bool
    bandwidth: float | None = None
    lag: float | None = None
    smoothed: float | None = None

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

    def filter_findings(self) -> list[Judgement]:
        """Returns findings on the filters that were found."""
        found = []
        if self.bandwidth is not None:
            words = f"the efforts hold little above {self.bandwidth:.2g} Hz, though the motion asks for it: they were filtered"
            remedy = Remedy("log efforts that are not filtered, or filtered with a higher cut-off")
            found.append(Judgement(Id.EFFORT_BANDWIDTH, words, remedy, size=self.bandwidth, certainty=0.99))
        if self.lag is not None:
            id, whose = (Id.EFFORT_BANDWIDTH, "efforts") if self.lag > 0 else (Id.POSITION_BANDWIDTH, "positions")
            band, remedy = 1 / (2 * np.pi * abs(self.lag)), Remedy(f"log {whose} that are not filtered")
            words = f"the {whose} are behind a low-pass of about {band:.2g} Hz, which explains the log better than a delay: "
            words += "shifting them does not restore their amplitude"
            found.append(Judgement(id, words, remedy, size=band, certainty=0.99, severity="warning"))
        if self.smoothed is not None:
            words = f"the positions are smoothed by a low-pass of about {self.smoothed:.2g} Hz: the efforts show faster motion"
            remedy = Remedy("log positions that are not filtered")
            found.append(Judgement(Id.POSITION_BANDWIDTH, words, remedy, size=self.smoothed, certainty=0.99))
        return found

    def describe(self) -> str:
        """Describes the delay in one sentence."""
        between = f"{1e3 * self.low:.3g} to {1e3 * self.high:.3g} ms"
        if self.flat:
            return "not distinguishable from other parameters: this motion does not determine a delay of the efforts"
        if not self.decided:
            if self.low > 0.0 or self.high < 0.0:
                return f"a delay of the efforts of {1e3 * self.seconds:.2g} ms ({between}) hardly lowers the held-out error"
            return f"no significant delay of the efforts: {1e3 * self.seconds:.2g} ms ({between})"
        return (
            f"the efforts lag the positions by {1e3 * self.seconds:.3g} ms ({between}); without it the held-out error is larger"
            + ("" if self.lag is None else "; a low-pass explains the logs better")
            + ("" if self.inside else "; it may be longer, or a low-pass")
        )


def relative_delay(seconds: float, joint: str | None = None) -> Judgement:
    """Finding that the efforts of one joint or log are late relative to the others.

    Args:
        seconds: The delay [s]; negative if they are early.
        joint: The joint; None for a whole log.
    """
    whose, others = ("the effort of this joint", "joints") if joint else ("the efforts of this log", "logs")
    verb = "lag" if seconds > 0 else "lead"
    words = f"{whose} {verb}{'s' if joint else ''} the motion by {1e3 * abs(seconds):.3g} ms compared with the other {others}"
    remedy = "check filter, rate and clock of this channel (`signals.delay` shifts all channels alike)"
    return Judgement(Id.EFFORT_DELAY, words, Remedy(remedy), joint=joint, size=seconds, certainty=0.99)


def delay_findings(
    robot: Robot, logs: Logs, reduction: Array | None = None
) -> tuple[Delay | None, list[tuple[Judgement, ...]]]:
    """Returns the delay and bandwidth of the efforts as findings.

    Args:
        logs: As for :func:`find_delays`.
        reduction: Motor rates per joint rates, shape (n, n), or None if every motor drives one joint.

    Returns:
        The common delay, and for each log findings on delays of one joint or log relative to the others, and on the
        bandwidth, if of practical size.
    """
    found, apart = find_delays(robot, logs, reduction)
    if found is None:
        return None, [() for _ in logs]
    shared = found.filter_findings()
    shared += [relative_delay(seconds, robot.joints[j]) for (kind, j), seconds in apart.items() if kind == "joint"]
    return found, [(*shared, *([relative_delay(apart["log", k])] if ("log", k) in apart else [])) for k in range(len(logs))]


def unreported(late: Sequence[Judgement], found: Sequence[Judgement]) -> list[Judgement]:
    """Findings of :func:`delay_findings` on single joints that no other finding covers; late positions make the effort early.

    Args:
        late: Findings of :func:`delay_findings`.
        found: Findings of :func:`.contradictions.physics_findings`.
    """
    reported = {(item.id, item.joint) for item in found} | {
        (Id.EFFORT_DELAY, item.joint) for item in found if item.id == Id.POSITION_LATE
    }
    return [item for item in late if (item.id, item.joint) not in reported]


def find_delays(robot: Robot, logs: Logs, reduction: Array | None = None) -> tuple[Delay | None, dict[tuple[str, int], float]]:
    """Estimates the common delay and bandwidth of the efforts, and additional delays of single joints or logs.

    Args:
        robot: Kinematics and gravity; its inertias are not used.
        logs: Conditioned motion with measured torque of each log, and the cut-off of its positions [Hz].
        reduction: Motor rates per joint rates, shape (n, n), or None if every motor drives one joint.

    Returns:
        The common delay, None if the logs are too short; and the additional delays of single joints or logs [s].
    """
    chosen = _selected(logs)
    some = [(logs[k][0], min(_WIDER * logs[k][1], HIGHEST * logs[k][0][0].rate)) for k in chosen]
    sampled = sampler(some, samples=_SAMPLES, blocks=_BLOCKS, reduction=reduction)
    if sampled is None or len(motion := sampled(0.0)) < FEWEST * (robot.n + 2):
        return None, {}
    moves = motion.moves
    if not moves.any():
        return None, {}
    problem = every_row = DelayProblem.of(robot, motion, moves)

    def late(delays: Array) -> Array:
        return np.stack([sampled(float(d)).tau for d in delays], axis=2)

    seconds, half = _best_delay(problem, late)
    if seconds < 0.0 and 2 * motion.glides.sum() > motion.glides.size:  # torque builds up while a joint sticks: a seeming lead
        problem = problem.gliding()
        seconds, half = _best_delay(problem, late)
    tau = late(np.array([0.0, seconds]))
    none, best = every_row.held_out(tau)
    gain, significant = gained(none, best)
    tried = every_row.held_out(late(_GRID))
    flat = gained(max(tried, key=mean_error), best)[1] < SIGNIFICANT
    turning = reversals(motion.v) >= TESTING_REVERSALS
    enough = 2 * np.sum(turning & moves) > np.sum(moves)
    decided = enough and abs(seconds) > half and gain > _PRACTICAL and significant > SIGNIFICANT
    lag = band = smoothed = None
    if enough:
        growth = cache(lambda: jerks(some, _SAMPLES, SCORE_BAND))
        lag = _lag(problem, growth, tau[:, :, 1:], seconds) if decided else None
        tau = tau[:, :, 1:] if decided else tau[:, :, :1]
        band = _bandwidth(problem, tau, min(cutoff for _, cutoff in some)) if lag is None else None
        smoothed = _smoothing(problem, growth, tau) if lag is None and band is None else None
    delay = Delay(seconds, seconds - half, seconds + half, gain, bool(decided), bool(flat), band, lag, smoothed)
    apart = _relative_delays(every_row, late, seconds if decided else 0.0, turning) if enough else {}
    return delay, {(kind, chosen[k] if kind == "log" else k): seconds for (kind, k), seconds in apart.items()}


def _selected(logs: Logs) -> list[int]:
    """Selects evenly spaced logs with enough motion; with more logs, the samples would be too far apart."""
    seconds = sum(len(part) / part.rate for parts, _ in logs for part in parts)
    every = min(len(logs) // _LOGS, int(seconds / _SECONDS))
    return [k for k in range(0, len(logs), max(every, 1)) if logs[k][0]]


@dataclass(frozen=True, eq=False)
class DelayProblem:
    """The regression of efforts on one motion, for versions of the efforts.

    Attributes:
        inertial: Shape (N, n, m), scaled.
        friction: Shape (n, N, f), scaled.
        moves: Joints that move, shape (n,).
        weights: One over the residual variance of each row, shape (n,).
        rows: Mask of the equations that are fitted, shape (N, n).
    """

    robot: Robot
    motion: MotionSamples
    inertial: Array
    friction: Array
    moves: BoolArray
    weights: Array
    rows: BoolArray

    @classmethod
    def of(cls, robot: Robot, motion: MotionSamples, moves: BoolArray) -> DelayProblem:
        """Builds the columns of a motion; rows are weighted by their residual without a delay.

        Args:
            moves: Whether each joint moves, shape (n,).
        """
        columns = regressor(robot, motion.q, motion.v, motion.a)[:, :, spanning(robot)[0]]
        scale = rms(columns, (0, 1))
        active = scale > 1e-9 * scale.max()
        turning = reversal_columns(motion, range(robot.n))
        friction = np.stack([np.hstack([friction_columns(motion, j), own]) for j, own in enumerate(turning)])
        friction = friction / np.maximum(rms(friction, 1), 1e-12)[:, None]
        variance, rows = np.maximum(motion.tau.var(axis=0), 1e-24), np.ones_like(motion.glides)
        first = cls(robot, motion, columns[:, :, active] / scale[active], friction, moves, 1 / variance, rows)
        residual = np.full(robot.n, np.inf)
        residual[moves] = np.maximum(first.in_sample(motion.tau[:, :, None])[0, :, 0], 1e-6) * variance[moves]
        return replace(first, weights=1 / residual)

    def gliding(self) -> DelayProblem:
        """Returns the problem without the equations of joints that rest or reverse, whose friction is any up to break-away."""
        return replace(self, rows=self.motion.glides)

    @cached_property
    def _design(self) -> JointColumns:
        return JointColumns.of(self.inertial, self.friction, self.rows.T, self.motion.block)

    @cached_property
    def _variance(self) -> Array:
        return np.asarray(np.maximum(self.motion.tau.var(axis=0), 1e-24)[self.moves, None])

    def _fit(self, tau: Array, fold: IntArray | None) -> tuple[Array, Array]:
        each = np.broadcast_to(np.eye(tau.shape[2]), (*tau.shape[1:], tau.shape[2]))
        fits = self._design.with_efforts(tau).fit(each, self.weights, fold)
        return fits.seen[:, self.moves] / self._variance, fits.squares[:, self.moves] / self._variance

    @property
    def _folds(self) -> IntArray:
        blocks = len(self._design.count)
        return np.asarray(np.arange(blocks) * min(_FOLDS, blocks) // blocks)

    def in_sample(self, tau: Array, *, folds: bool = False) -> Array:
        """Mean squared errors of fits, or of those without one fold each, to what they have seen.

        Args:
            tau: K versions of the efforts, shape (N, n, K) [N·m or N].

        Returns:
            Relative to the efforts' variance, shape (fits, moving joints, K).
        """
        return self._fit(tau, self._folds if folds else None)[0]

    def held_out(self, tau: Array) -> list[Array]:
        """Mean squared errors of each block by fits that have not seen it, relative to the efforts' variance.

        Args:
            tau: K versions of the efforts, shape (N, n, K) [N·m or N].

        Returns:
            Of each version, shape (B, moving joints).
        """
        return list(self._fit(tau, self._folds)[1].transpose(2, 0, 1))

    def filtered(self, filter: Callable[[Array, float], Array], least: float) -> DelayProblem | None:
        """Returns the problem with filtered columns; None if the samples are too sparse.

        Args:
            filter: Returns columns, shape (N, ...), filtered, given their rate [Hz].
            least: Lowest rate of samples [Hz].
        """
        motion, columns = self.motion, np.concatenate([self.inertial, self.friction.transpose(1, 0, 2)], axis=2)
        out, steps = np.empty_like(columns), np.diff(motion.time)
        starts = np.flatnonzero((np.diff(motion.log) != 0) | (steps > 1.5 * np.median(steps))) + 1
        for some in np.split(np.arange(len(motion)), starts):
            rate = 1 / float(np.median(np.diff(motion.time[some]))) if len(some) > 20 else 0.0
            if rate < least:
                return None
            out[some] = filter(columns[some], rate)
        m = self.inertial.shape[2]
        return replace(self, inertial=out[:, :, :m], friction=out[:, :, m:].transpose(1, 0, 2))

    def before_low_pass(self, first: float, second: float, growth: Growth) -> DelayProblem:
        """Returns the problem of the motion before a low-pass ``1 / (1 + first s + second s²)`` of the positions [s, s²]."""
        motion = self.motion.before_low_pass(first, second, growth())
        return replace(DelayProblem.of(self.robot, motion, self.moves), rows=self.rows)


def mean_error(held: Array) -> float:
    """Mean over the joints of the logarithm of their error: twice the negative log-likelihood per sample.

    Args:
        held: Squared errors of each block, shape (B, joints).
    """
    return float(np.log(positive(held.mean(axis=0))).mean())


def gained(before: Array, after: Array, joints: BoolArray | slice = slice(None)) -> tuple[float, float]:
    """Reduction of the log error of some joints, mean over them, and the gain of all joints in standard errors.

    Args:
        before, after: Squared errors of each block, shape (B, joints).
        joints: Mask of those whose mean is taken, shape (joints,); all by default.
    """
    less = 0.5 * (mean_error(before[:, joints]) - mean_error(after[:, joints]))
    return less, significance(gains(before, after))


def _best_delay(problem: DelayProblem, late: Callable[[Array], Array]) -> tuple[float, float]:
    """The delay with the least error, and the half-width of its interval [s]."""

    def scores(tried: Array, *, folds: bool = False) -> Array:
        """Mean log errors, shape (fits, K)."""
        return np.asarray(np.log(positive(problem.in_sample(late(tried), folds=folds))).mean(axis=1))

    tried = np.asarray(_GRID)
    for step in _STEPS:
        seconds = float(tried[int(np.argmin(scores(tried)[0]))])
        tried = np.asarray(seconds + step * _FINE)
    parts = np.array([_lowest(tried, own) for own in scores(tried, folds=True)])
    half = _ERRORS * max(float(np.sqrt(len(parts) - 1) * parts.std()), _RESOLUTION)
    return _lowest(tried, scores(tried)[0]), half


def _lowest(at: Array, values: Array) -> float:
    """Minimum of the parabola through the lowest value and its neighbours."""
    k = int(np.clip(np.argmin(values), 1, len(at) - 2))
    return float(at[k] + np.clip(vertex(*values[k - 1 : k + 2]), -1, 1) * (at[1] - at[0]))


def _lag(problem: DelayProblem, growth: Growth, tau: Array, seconds: float) -> float | None:
    """Time constant of a causal first-order low-pass that explains the logs decisively better than a delay.

    Args:
        tau: The efforts without the delay, shape (N, n, 1) [N·m or N].
        seconds: The delay [s]: of the efforts, or of the positions if negative.

    Returns:
        The time constant with the sign of the delay [s]; None if no such filter explains more.
    """
    from scipy.signal import butter, lfilter, lfilter_zi

    (held,), found = problem.held_out(tau), []
    for constant in (share * seconds for share in _LAGS):

        def lag(x: Array, rate: float, constant: float = constant) -> Array:
            b, a = butter(1, 1 / (np.pi * rate * constant))
            steady = lfilter_zi(b, a).reshape(-1, *[1] * (x.ndim - 1)) * x[:1]
            return np.asarray(lfilter(b, a, x, axis=0, zi=steady)[0])

        if seconds > 0:
            other = problem.filtered(lag, 0.5 / constant)
        else:
            other = problem.before_low_pass(-constant, 0.0, growth)
        if other is not None:
            found.append((*gained(held, other.held_out(problem.motion.tau[:, :, None])[0]), constant))
    gain, significant, best = max(found, default=(0.0, 0.0, 0.0))
    return best if gain > _PRACTICAL and significant > SIGNIFICANT else None


def _bandwidth(problem: DelayProblem, tau: Array, cutoff: float) -> float | None:
    """Bandwidth of a low-pass without delay that explains the efforts decisively better than none [Hz], or None.

    Args:
        tau: The efforts, shape (N, n, 1) [N·m or N].
        cutoff: Low-pass of this check [Hz]; only bandwidths far below it are tried.
    """
    (before,), held = problem.held_out(tau), dict[float, Array]()

    def try_bands(bands: Sequence[float]) -> float | None:
        for band in bands:

            def narrowed(x: Array, rate: float, band: float = band) -> Array:
                return lowpass(x, rate, band, order=2, padlen=int(2 * rate / band))

            if 2 * band <= cutoff and (narrow := problem.filtered(narrowed, 5 * band)) is not None:
                (held[band],) = narrow.held_out(tau)
        return min(held, key=lambda band: mean_error(held[band]), default=None)

    best = try_bands(_BANDS)
    if best is not None and mean_error(held[best]) < mean_error(before):  # far below the motion's it shows at its own frequency
        best = try_bands((best / np.sqrt(2), best * np.sqrt(2)))
    gain, significant = (0.0, 0.0) if best is None else gained(before, held[best])
    return best if gain > DECISIVE and significant > SIGNIFICANT else None


def _smoothing(problem: DelayProblem, growth: Growth, tau: Array) -> float | None:
    """Bandwidth of a low-pass without delay of the positions, if taking it back explains the efforts better.

    Where the positions were filtered, also too weak a correction helps; in logs that were not filtered each of these takes away
    motion, and raises the held-out error.

    Args:
        tau: The efforts, shape (N, n, 1) [N·m or N].

    Returns:
        The frequency of half the amplitude [Hz]; None if the positions were not filtered.
    """
    (before,), best = problem.held_out(tau), (0.0, 0.0, 0.0)
    for band in reversed(_BANDS):
        other = problem.before_low_pass(0.0, -1 / (2 * np.pi * band) ** 2, growth)
        found = (*gained(before, other.held_out(tau)[0]), band)
        if found[0] <= best[0]:
            break
        best = found
    return best[2] if best[0] > _PRACTICAL and best[1] > SIGNIFICANT else None


def _relative_delays(
    problem: DelayProblem, late: Callable[[Array], Array], common: float, turning: BoolArray
) -> dict[tuple[str, int], float]:
    """Additional delays of single joints and logs relative to all others [s], with keys such as ``("joint", 0)``.

    A joint's delay must reduce the error of its own effort: unmodelled friction may reduce that of others by chance. It is
    estimated from samples in which the joint of a row moves, because friction around reversals may come early or late, must
    lie inside the grid, and must gain as much with all samples. Friction that builds up at reversals looks like a delay of its
    joint, so that a joint must gain more than a log.
    """
    gliding, usual, apart, found = problem.gliding(), late(common + np.zeros(1)), late(common + _GRID), {}
    joints, logs, moving = np.arange(usual.shape[1]), np.unique(problem.motion.log), np.flatnonzero(problem.moves)
    parts: list[tuple[tuple[str, int], BoolArray, BoolArray, float]] = []
    if len(moving) > 1:
        parts += [(("joint", int(j)), (joints == j)[None, :], moving == j, DECISIVE) for j in moving if turning[j]]
    if len(logs) > 1:
        parts += [(("log", int(k)), (problem.motion.log == k)[:, None], moving >= 0, DOUBTFUL) for k in logs]
    for name, mask, rows, least in parts:

        def versions(efforts: Array, mask: BoolArray = mask) -> Array:
            """Efforts of which only this joint or log is late; the last ones without a delay."""
            return np.concatenate([np.where(mask[:, :, None], efforts, usual), usual], axis=2)

        def best(held: Sequence[Array]) -> int:
            return int(np.argmin([mean_error(some) for some in held]))

        if (coarse := best(gliding.held_out(versions(apart)))) == len(_GRID) or not _GRID[coarse]:
            continue
        fine = _GRID[coarse] + _STEPS[0] * _FINE
        tau = versions(late(common + fine))
        held, every = gliding.held_out(tau), problem.held_out(tau)
        k = best(held)
        inside = coarse not in (0, len(_GRID) - 1) or k not in (0, len(fine) - 1)
        gain, significant = np.min([gained(some[-1], some[k], rows) for some in (held, every)], axis=0)
        if inside and gain > least and significant > SIGNIFICANT:
            found[name] = float(fine[k])
    return found
