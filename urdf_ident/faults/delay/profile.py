"""Estimates the delay and bandwidth of the efforts from profile likelihoods of a rigid robot.

A delay d adds d times rotor inertia times jerk, d times viscous friction times acceleration and so on to the torque, which
other parameters may explain as well. So all parameters are fitted again for every delay: inertial parameters, rotor inertia,
friction that reverses within several speeds, and presliding friction (Dahl 1968). The estimate minimises the residual; its
standard error is from a jackknife over blocks of time. A first-order low-pass is a delay at low frequencies: where a delay is
decided, such a filter of the efforts, or of the positions, is compared with it. Attenuation by a filter without delay is
estimated by filtering the columns as well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np

from ...judgements.catalogue import Id
from ...judgements.judgement import Judgement, Remedy
from ...linalg import Array, BoolArray
from ...model.robot import Robot
from ...samples import TESTING_REVERSALS, reversals
from ...sequences import vertex
from ...signals.filters import HIGHEST, SCORE_BAND
from ..motion_samples import jerks, sampler
from ..thinned_logs import Logs
from .filters import MATERIAL, SIGNIFICANT, Filters, filter_findings
from .residuals import DelayProblem, mean_score

#: Initial grid of delays [s], refined around the best one; then the grid for one joint relative to the others.
_GRID = np.array([-0.06, -0.04, -0.02, 0.0, 0.02, 0.04, 0.06, 0.08, 0.1, 0.13, 0.16])
_FINE = np.arange(-4.0, 5.0)
_APART = np.array([-0.04, -0.02, 0.02, 0.04, 0.08, 0.14, 0.22])
#: Number of samples and blocks of time.
_SAMPLES, _BLOCKS = 1500, 20
#: Of many logs, at least this many and this duration of motion [s] are used.
_LOGS, _SECONDS = 8, 120.0
#: Half-width of the interval in standard errors.
_ERRORS = 2.5
#: The same for one joint or one log relative to the others: friction that builds up at reversals looks like a delay of its
#: joint, so that a joint must gain more than a log.
_ALONE = {"joint": 0.3, "log": 0.15}
#: Smallest standard error of a delay [s].
_RESOLUTION = 5e-4
#: Ratio of the efforts' cut-off to that of the motion: reversing friction is steeper than the motion.
_WIDER = 4.0


@dataclass(frozen=True)
class Delay:
    """Delay of the efforts of all joints.

    Attributes:
        seconds: Lag of the efforts behind the positions [s]; negative if they lead.
        low, high: Its interval [s].
        gain: Relative reduction of the held-out error, mean over joints, 0 to 1.
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
        return bool(self.inside and (apart or self.gain < MATERIAL))

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
    if sampled is None or len(motion := sampled(0.0)) < 25 * (robot.n + 2):
        return None, {}
    moves = motion.moves
    if not moves.any():
        return None, {}
    problem = DelayProblem.of(robot, motion, moves)

    def late(delays: Array) -> Array:
        return np.stack([sampled(float(d)).tau for d in delays], axis=2)

    whole = problem
    seconds, half = _best_delay(problem, late)
    if seconds < 0.0 and 2 * motion.glides.sum() > motion.glides.size:  # torque builds up while a joint sticks: a seeming lead
        problem = problem.gliding()
        seconds, half = _best_delay(problem, late)
    pair = late(np.array([0.0, seconds]))
    held, of_all, tried = problem.errors(pair).squares, whole.errors(pair).squares, whole.errors(late(_GRID)).squares
    gain, errors = whole.gained(of_all[:, :, 0], of_all[:, :, 1])
    worst = tried[:, :, int(np.argmax(mean_score(tried.sum(axis=0))))]
    flat = whole.gained(worst, of_all[:, :, 1])[1] < SIGNIFICANT
    turning = reversals(motion.v) >= TESTING_REVERSALS
    enough = 2 * np.sum(turning & moves) > np.sum(moves)
    decided = enough and abs(seconds) > half and gain > MATERIAL and errors > SIGNIFICANT
    lag = band = smoothed = None
    if enough:
        filters = Filters(robot, problem, moves, partial(jerks, some, _SAMPLES, SCORE_BAND))
        lag = filters.lag(held[:, :, 1], late, seconds) if decided else None
        tau = pair[:, :, 1:] if decided else pair[:, :, :1]
        band = filters.of_efforts(tau, min(cutoff for _, cutoff in some)) if lag is None else None
        smoothed = filters.of_positions(tau) if lag is None and band is None else None
    common = seconds if decided else 0.0
    delay = Delay(seconds, seconds - half, seconds + half, gain, bool(decided), bool(flat), band, lag, smoothed)
    apart = _relative_delays(whole, late, common, turning) if enough else {}
    apart = {(kind, chosen[k] if kind == "log" else k): seconds for (kind, k), seconds in apart.items()}
    return delay, apart


def _best_delay(problem: DelayProblem, late: Callable[[Array], Array]) -> tuple[float, float]:
    """The delay with the least error, and the half-width of its interval [s]."""
    seconds = float(_GRID[int(np.argmin(mean_score(problem.errors(late(_GRID)).seen[0])))])
    for step in (0.005, 0.00125):
        tried = seconds + step * _FINE
        found = problem.errors(late(tried))
        seconds = float(tried[int(np.argmin(mean_score(found.seen[0])))])
    parts = np.array([_lowest(tried, mean_score(each)) for each in found.seen[1:]])
    half = _ERRORS * max(float(np.sqrt(len(parts) - 1) * parts.std()), _RESOLUTION)
    return _lowest(tried, mean_score(found.seen[0])), half


def _relative_delays(
    problem: DelayProblem, late: Callable[[Array], Array], common: float, turning: BoolArray
) -> dict[tuple[str, int], float]:
    """Additional delays of single joints and logs relative to all others [s], with keys such as ``("joint", 0)``.

    A joint's delay must reduce the error of its own effort: unmodelled friction may reduce that of others by chance. It is
    estimated from samples in which the joint of a row moves, because friction around reversals may come early or late, must
    lie inside the grid, and must gain as much with all samples.
    """
    gliding = problem.gliding()
    usual, apart, found = late(common + np.zeros(1)), late(common + _APART), {}
    joints, logs = np.arange(usual.shape[1]), np.unique(problem.motion.log)
    parts = [(("joint", int(j)), (joints == j)[None, :], problem.joints == j) for j in problem.joints if turning[j]]
    parts = parts if len(problem.joints) > 1 else []
    if len(logs) > 1:
        parts += [(("log", int(k)), (problem.motion.log == k)[:, None], problem.joints >= 0) for k in logs]
    for name, mask, rows in parts:

        def shifted(efforts: Array, mask: Array = mask) -> Array:
            """Versions in which only this joint or log is late; the last one without a delay."""
            return np.concatenate([np.where(mask[:, :, None], efforts, usual), usual], axis=2)

        def gains(held: Array, best: int, rows: BoolArray = rows, least: float = _ALONE[name[0]]) -> bool:
            gain, errors = problem.gained(held[:, :, -1], held[:, :, best], rows)
            return gain > least and errors > SIGNIFICANT

        _, coarse = _best(gliding, shifted(apart))
        if coarse == len(_APART):
            continue
        fine = _APART[coarse] + 0.005 * _FINE
        tau = shifted(late(common + fine))
        held, best = _best(gliding, tau)
        inside = coarse not in (0, len(_APART) - 1) or best not in (0, len(fine) - 1)
        if inside and gains(held, best) and gains(problem.errors(tau).squares, best):
            found[name] = float(fine[best])
    return found


def _best(problem: DelayProblem, tau: Array) -> tuple[Array, int]:
    """Held-out errors of versions of the efforts, and the index of the best version."""
    held = problem.errors(tau).squares
    return held, int(np.argmin(mean_score(held.sum(axis=0))))


def _selected(logs: Logs) -> list[int]:
    """Selects evenly spaced logs with enough motion; with more logs, the samples would be too far apart."""
    seconds = sum(len(part) / part.rate for parts, _ in logs for part in parts)
    every = min(len(logs) // _LOGS, int(seconds / _SECONDS))
    return [k for k in range(0, len(logs), max(every, 1)) if logs[k][0]]


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
    shared = filter_findings(found.bandwidth, found.lag, found.smoothed)
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


def _lowest(at: Array, values: Array) -> float:
    """Minimum of the parabola through the lowest value and its neighbours."""
    k = int(np.clip(np.argmin(values), 1, len(at) - 2))
    return float(at[k] + np.clip(vertex(*values[k - 1 : k + 2]), -1, 1) * (at[1] - at[0]))
