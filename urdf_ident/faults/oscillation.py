"""Oscillations of one effort in time: hum of a supply, pulses of another drive, a control loop that oscillates.

Bodies and friction absorb a part of one that is as slow as the motion. What they leave of a joint's effort is then at one
frequency in every log. Errors of a model are functions of the motion, whose frequencies are many, or explain such a wave.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..judgements.catalogue import Id
from ..judgements.judgement import Judgement
from ..linalg import Array, lstsq, positive, rms
from ..model.robot import Robot
from ..samples import TESTING_REVERSALS
from ..signals.filters import lowpass_gain
from .evidence import WORTH
from .linearized import LinearizedCase
from .motion_samples import COMPARED
from .null_model import NullModel
from .thinned_logs import Logs

#: Least share of the square of a residual, beyond chance, at one frequency: an
#: oscillation explains most of a residual at one line; unmodelled friction has harmonics and the frequencies of several joints.
_SHARE = 0.7
#: Fewest periods in the longest log, with fewer of which an offset in a part of a log looks alike; and the highest frequency
#: [Hz]: faster oscillations hardly change a model.
_PERIODS, _HIGHEST = 2.0, 4.0
#: Steps of the search for a frequency, and of the search about the best, within the width of a line.
_STEPS, _FINE = 4, 32
#: Relative eigenvalue from which waves beside bodies and friction count as independent.
_APART = 0.01


@dataclass(frozen=True, eq=False)
class Oscillation:
    """An oscillation of one effort, with another amplitude and phase in each log.

    Attributes:
        joint: Index of the joint.
        frequency: [Hz].
        rate: Samples per second from which it was found [Hz]; faster oscillations may look like a slow one there.
        share: Of the squared residual of the effort, beyond chance.
        waves: Amplitudes of sine and cosine in each log, in efforts filtered like its positions, shape (2, logs) [N·m or N].
        least: Least amplitude in a log that is worth an explanation; the largest one exceeds it [N·m or N].
    """

    joint: int
    frequency: float
    rate: float
    share: float
    waves: Array
    least: float

    def findings(self, robot: Robot) -> list[list[Judgement]]:
        """Returns the findings of each log: one warning where it is large enough to be worth an explanation."""
        found = Judgement(
            Id.EFFORT_PERIODIC,
            f"{100 * self.share:.0f} % of what a model leaves unexplained of the effort of this joint is an oscillation of "
            f"{self.frequency:.2g} Hz, or a faster one that looks like it in {self.rate:.2g} samples per second, and not due "
            "to the motion",
            joint=robot.joints[self.joint],
            size=self.frequency,
        )
        return [[found] if size > self.least else [] for size in np.linalg.norm(self.waves, axis=0)]

    def removed(self, logs: Logs) -> Logs:
        """Returns the logs, of which it was found, without it."""
        out = []
        for (parts, cutoff), wave in zip(logs, self.waves.T, strict=True):
            own = []
            for part in parts:
                if part.tau is not None:
                    angle = 2 * np.pi * self.frequency * part.time
                    tau = part.tau.copy()
                    filtered = wave[0] * np.sin(angle) + wave[1] * np.cos(angle)
                    tau[:, self.joint] -= filtered / lowpass_gain(self.frequency, cutoff)
                    part = replace(part, tau=tau)
                own.append(part)
            out.append((own, cutoff))
        return out


def oscillation(at: LinearizedCase, null: NullModel, logs: int) -> Oscillation | None:
    """Searches for an effort that oscillates at a frequency of its own.

    Args:
        null: The model without faults.
        logs: Number of logs.

    Returns:
        That of the joint whose residual shows it most clearly; None without any, in many logs, or if the joints hardly reverse.
    """
    if at.case.turns < TESTING_REVERSALS or logs > COMPARED:
        return None
    found = [item for row in range(len(at.moving)) if (item := _of_joint(at, null, row, logs)) is not None]
    best = max(found, key=lambda item: item.share, default=None)
    return best if best is not None and best.share >= _SHARE else None


def _of_joint(at: LinearizedCase, null: NullModel, row: int, logs: int) -> Oscillation | None:
    """The oscillation that explains most of a joint's residual; None if that is small.

    The share by chance is that of one line among as many as there are.
    """
    samples, glides, residual = at.samples, null.weights[row] > 0, null.residual[row]
    deviation, size = 1 / float(null.weights[row].max(initial=1e-12)), float(samples.tau[glides, at.moving[row]].std())
    least = WORTH * size
    if rms(residual[glides]) * deviation <= least:
        return None
    time, in_log = samples.time, (samples.log[:, None] == np.arange(logs)) & glides[:, None]
    longest = max(float(np.ptp(time[own])) for own in in_log.T if own.any())
    rate = 1 / float(np.median(np.diff(time)[np.diff(samples.log) == 0]))
    frequencies = np.arange(_PERIODS, min(_HIGHEST, rate / 2) * longest, 1 / _STEPS) / longest
    if not len(frequencies):
        return None

    def shares(frequencies: Array) -> Array:
        turning = residual[:, None] * np.exp(2j * np.pi * np.outer(time, frequencies))
        power = [2 * np.abs(turning[own].sum(axis=0)) ** 2 / max(own.sum(), 1) for own in in_log.T]
        return np.asarray(np.sum(power, axis=0) / (residual @ residual))

    first = float(frequencies[np.argmax(shares(frequencies))])
    about = first + np.arange(-1 / _STEPS, 1 / _STEPS, 1 / _FINE) / longest
    best = float(about[np.argmax(shares(about))])
    angle = 2 * np.pi * best * time[:, None]
    waves = np.zeros((*null.weights.shape, 2 * logs))
    waves[row] = np.hstack([np.sin(angle) * in_log, np.cos(angle) * in_log])
    beside = null.beside(waves)
    sizes = lstsq(np.tensordot(waves, beside, axes=([0, 1], [0, 1])), beside[row].T @ residual, _APART)[0]
    rest = residual - beside[row] @ sizes
    chance = min(_STEPS / len(frequencies), 1.0)
    share = (1 - float(rest @ rest) / float(residual @ residual) - chance) / positive(1 - chance)
    return Oscillation(at.moving[row], best, rate, share, (sizes * deviation).reshape(2, logs), np.sqrt(2 * _SHARE) * least)
