"""Low-pass filters of the efforts or positions of a whole log, found by fitting all parameters of a rigid robot with them.

Filters of the efforts are applied to the columns of the fit as well; those of the positions are taken back.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ...judgements.catalogue import Id
from ...judgements.judgement import Judgement, Remedy
from ...linalg import Array, BoolArray
from ...model.robot import Robot
from .residuals import DelayProblem, mean_score

#: Least gain of a delay or filter in standard errors between blocks of time, and least relative reduction of the held-out error
#: by one of practical size.
SIGNIFICANT, MATERIAL = 3.5, 0.08
#: Candidate bandwidths of the efforts [Hz], their largest ratio to the cut-off with which this check filters the efforts, and
#: least relative reduction of the held-out error.
_BANDS, _BELOW, _BAND = (0.5, 1.0, 2.0, 4.0), 0.5, 0.25
#: Candidate bandwidths of the positions [Hz]. Where the positions were filtered, also too weak a correction helps; in
#: logs that were not filtered each of these takes away motion, and raises the held-out error.
_SMOOTHED = (5.6, 2.8, 1.4, 0.7)
#: First-order low-passes compared with a delay: time constant and remaining delay, as fractions of the delay. At low
#: frequencies the low-pass delays by its time constant, at higher ones by less.
_LAGS = ((1.0, 0.1), (1.0, 0.0), (1.25, 0.0), (1.6, 0.0), (2.0, 0.0))


@dataclass(frozen=True, eq=False)
class Filters:
    """Tests for low-pass filters.

    Attributes:
        problem: The fit without a filter.
        moves: Joints that move, shape (n,).
        jerks: Returns the jerk and its derivative at the samples, shape (N, n) each [rad/s³ and rad/s⁴, or m].
    """

    robot: Robot
    problem: DelayProblem
    moves: BoolArray
    jerks: Callable[[], tuple[Array, Array]]

    def lag(self, held: Array, late: Callable[[Array], Array], seconds: float) -> float | None:
        """Returns the time constant of a causal first-order low-pass that explains the logs decisively better than a delay.

        Args:
            held: Held-out squared errors with the delay, shape (B, joints).
            late: Returns the efforts without given delays [s], shape (N, n, K).
            seconds: The delay [s]: of the efforts, or of the positions if negative.

        Returns:
            The time constant with the sign of the delay [s]; None if no such filter explains more.
        """
        found = []
        for share, rest in _LAGS:
            other = self._behind(share * seconds)
            if other is not None:
                after = other.errors(late(np.array([rest * seconds]))).squares[:, :, 0]
                found.append((*self.problem.gained(held, after), share * seconds))
        gain, errors, best = max(found, default=(0.0, 0.0, 0.0))
        return best if gain > MATERIAL and errors > SIGNIFICANT else None

    def of_efforts(self, tau: Array, cutoff: float) -> float | None:
        """Returns the bandwidth of a low-pass without delay that explains the efforts decisively better than none.

        Args:
            tau: The efforts, shape (N, n, 1) [N·m or N].
            cutoff: Low-pass of this check [Hz]; only bandwidths far below it are tried.

        Returns:
            The bandwidth [Hz], or None.
        """
        whole = self.problem.errors(tau).squares
        before, held = float(mean_score(whole.sum(axis=0))[0]), dict[float, Array]()

        def score(band: float) -> float:
            narrow = self.problem.filtered(band) if band <= _BELOW * cutoff else None
            if narrow is None:
                return np.inf
            held[band] = narrow.errors(tau).squares
            return float(mean_score(held[band].sum(axis=0))[0])

        scores = {band: score(band) for band in _BANDS}
        best = min(scores, key=scores.__getitem__)
        if scores[best] < before:  # a band far below the motion's is seen at its own frequency only
            scores |= {band: score(band) for band in (best / np.sqrt(2), best * np.sqrt(2))}
            best = min(scores, key=scores.__getitem__)
        enough = scores[best] < before + 2 * float(np.log(1 - _BAND))
        return float(best) if enough and self.problem.gained(whole[:, :, 0], held[best][:, :, 0])[1] > SIGNIFICANT else None

    def of_positions(self, tau: Array) -> float | None:
        """Returns the bandwidth of a low-pass without delay of the positions, if taking it back explains the efforts better.

        Args:
            tau: The efforts, shape (N, n, 1) [N·m or N].

        Returns:
            The bandwidth [Hz]: the frequency of half the amplitude; None if the positions were not filtered.
        """
        before, best = self.problem.errors(tau).squares[:, :, 0], (0.0, 0.0, 0.0)
        for band in _SMOOTHED:
            after = self._of(0.0, -1 / (2 * np.pi * band) ** 2).errors(tau).squares[:, :, 0]
            found = (*self.problem.gained(before, after), band)
            if found[0] <= best[0]:
                break
            best = found
        return best[2] if best[0] > MATERIAL and best[1] > SIGNIFICANT else None

    def _behind(self, seconds: float) -> DelayProblem | None:
        """The fit of efforts behind a first-order low-pass with a time constant [s]; negative: of positions behind one."""
        return self.problem.lagged(seconds) if seconds > 0 else self._of(-seconds, 0.0)

    def _of(self, first: float, second: float) -> DelayProblem:
        """The fit of the motion before a low-pass."""
        motion = self.problem.motion.before_low_pass(first, second, self._jerks)
        return replace(DelayProblem.of(self.robot, motion, self.moves), rows=self.problem.rows)

    @cached_property
    def _jerks(self) -> tuple[Array, Array]:
        return self.jerks()


def filter_findings(bandwidth: float | None, lag: float | None, smoothed: float | None) -> list[Judgement]:
    """Returns findings on filters that were found.

    Args:
        bandwidth: Of a low-pass without delay of the efforts [Hz]; None if there is none, also for the others.
        lag: Time constant of a first-order low-pass of the efforts [s], or of the positions if negative.
        smoothed: Bandwidth of a low-pass without delay of the positions [Hz].
    """
    findings = []
    if bandwidth is not None:
        words = f"the efforts hold little above {bandwidth:.2g} Hz, though the motion asks for it: they were filtered"
        remedy = "log efforts that are not filtered, or filtered with a higher cut-off"
        findings.append(Judgement(Id.EFFORT_BANDWIDTH, words, Remedy(remedy), size=bandwidth, certainty=0.99))
    if lag is not None:
        id, whose = (Id.EFFORT_BANDWIDTH, "efforts") if lag > 0 else (Id.POSITION_BANDWIDTH, "positions")
        band = 1 / (2 * np.pi * abs(lag))
        words = (
            f"the {whose} are behind a low-pass of about {band:.2g} Hz, which explains the log better than a delay: shifting "
            "them does not restore their amplitude"
        )
        findings.append(
            Judgement(id, words, Remedy(f"log {whose} that are not filtered"), size=band, certainty=0.99, severity="warning")
        )
    if smoothed is not None:
        words = f"the positions are smoothed by a low-pass of about {smoothed:.2g} Hz: the efforts show faster motion"
        remedy = "log positions that are not filtered"
        findings.append(Judgement(Id.POSITION_BANDWIDTH, words, Remedy(remedy), size=smoothed, certainty=0.99))
    return findings
