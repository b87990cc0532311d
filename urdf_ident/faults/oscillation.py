"""Oscillations of one effort in time: hum of a supply, pulses of another drive, a control loop that oscillates.

Bodies and friction absorb a part of one that is as slow as the motion. What they leave of a joint's effort is then at one
frequency in every log. Errors of a model are functions of the motion, whose frequencies are many, or explain such a wave.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..friction.law import smooth_sign
from ..judgements.catalogue import Id
from ..judgements.judgement import Judgement
from ..linalg import Array, BoolArray, lstsq, orthogonal_part, positive
from ..model.robot import Robot
from ..samples import TESTING_REVERSALS
from ..signals.filters import lowpass_gain
from .linearized import LinearizedCase
from .motion_samples import COMPARED
from .thinned_logs import Logs

#: Least relative residual that is worth an explanation, and least share of its square, beyond chance, at one frequency: an
#: oscillation explains most of a residual at one line; unmodelled friction has harmonics and the frequencies of several joints.
_LEFT, _SHARE = 0.02, 0.7
#: Fewest periods in the longest log, with fewer of which an offset in a part of a log looks alike; and the highest frequency
#: [Hz]: faster oscillations hardly change a model.
_PERIODS, _HIGHEST = 2.0, 4.0
#: Steps of the search for a frequency, and of the search about the best, within the width of a line.
_STEPS, _FINE = 4, 32
#: Highest power of a joint's position, and of its velocity, in functions of its motion.
_POWERS = 3, 5
#: Relative singular value from which columns of a joint's torque, and waves beside them, count as independent.
_INDEPENDENT, _APART = 1e-6, 0.1


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


def oscillation(at: LinearizedCase, logs: int) -> Oscillation | None:
    """Searches for an effort that oscillates at a frequency of its own.

    Args:
        logs: Number of logs.

    Returns:
        That of the joint whose residual shows it most clearly; None without any, in many logs, or if the joints hardly reverse.
    """
    if at.case.turns < TESTING_REVERSALS or logs > COMPARED:
        return None
    found = [item for j in at.moving if (item := _of_joint(at, j, logs)) is not None]
    best = max(found, key=lambda item: item.share, default=None)
    return best if best is not None and best.share >= _SHARE else None


def _of_joint(at: LinearizedCase, j: int, logs: int) -> Oscillation | None:
    """The oscillation that explains most of a joint's residual; None if that is small.

    The bodies of the joint's equation are its own. The share by chance is that of one line among as many as motion and friction
    leave free.
    """
    samples = at.samples
    glides = samples.glides[:, j]
    tau, time, log = samples.tau[glides, j], samples.time[glides], samples.log[glides]
    functions = _of_motion(samples.q[glides, j], samples.v[glides, j])
    known = np.column_stack([at.inertial[glides, j], at.friction[j][glides], at.load_friction[glides, j], functions])
    left, least = orthogonal_part(tau, known, _INDEPENDENT), _LEFT * float(tau.std())
    if len(tau) <= known.shape[1] or left @ left <= least**2 * len(tau):
        return None
    in_log = log[:, None] == np.arange(logs)
    longest = max(float(np.ptp(time[own])) for own in in_log.T if own.any())
    rate = 1 / float(np.median(np.diff(time)[np.diff(log) == 0]))
    frequencies = np.arange(_PERIODS, min(_HIGHEST, rate / 2) * longest, 1 / _STEPS) / longest
    if not len(frequencies):
        return None
    explained, _, free = _explained(left, known, time, in_log, frequencies)
    chance = min(_STEPS / positive(float(free.sum())), 1.0)
    about = frequencies[np.argmax(explained)] + np.arange(-1 / _STEPS, 1 / _STEPS, 1 / _FINE) / longest
    explained, waves, _ = _explained(left, known, time, in_log, about)
    best = int(np.argmax(explained))
    share = (float(explained[best]) - chance) / positive(1 - chance)
    return Oscillation(j, float(about[best]), rate, share, waves[best].reshape(2, logs), np.sqrt(2 * _SHARE) * least)


def _explained(left: Array, known: Array, time: Array, in_log: BoolArray, frequencies: Array) -> tuple[Array, Array, Array]:
    """Shares of a squared residual, shape (F,), that waves of each frequency explain, and their amplitudes, (F, 2 logs).

    The third are the shares of the waves' own squares that the known columns do not explain, shape (F,).

    Args:
        left: The residual, orthogonal to the known columns, shape (N,).
        known: Shape (N, k).
        in_log: Mask of the samples of each log, shape (N, logs).
        frequencies: Shape (F,) [Hz].
    """
    angles = 2 * np.pi * np.outer(time, frequencies)
    waves = np.stack([np.sin(angles), np.cos(angles)], axis=2)[..., None] * in_log[:, None, None]
    apart = orthogonal_part(waves.reshape(len(time), -1), known, _INDEPENDENT).reshape(len(time), len(frequencies), -1)
    sizes = np.stack([lstsq(columns, left, _APART)[0] for columns in apart.swapaxes(0, 1)])
    after = np.sum((left[:, None] - np.einsum("nfk,fk->nf", apart, sizes)) ** 2, axis=0)
    free = np.sum(apart**2, axis=(0, 2)) / len(time)
    return 1 - after / (left @ left), sizes, free


def _of_motion(q: Array, v: Array) -> Array:
    """Functions of a joint's motion beside friction and gravity: polynomials of position and velocity, and in each direction.

    Args:
        q, v: Shape (N,).

    Returns:
        Shape (N, k).
    """
    x, speed = 2 * (q - q.min()) / max(float(np.ptp(q)), 1e-9) - 1, v / max(float(np.abs(v).max()), 1e-9)
    by_position = np.polynomial.chebyshev.chebvander(x, _POWERS[0])
    by_velocity = np.polynomial.chebyshev.chebvander(speed, _POWERS[1])[:, 1:]
    sign = smooth_sign(speed, 0.1 * max(float(speed.std()), 1e-9))[:, None]
    return np.column_stack([by_position, by_velocity, sign * by_position, speed[:, None] * by_position, np.abs(speed)])
