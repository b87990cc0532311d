"""The kinematic error of a gear, its identification from two encoders, and its compensation.

A harmonic drive (like a tooth with run-out or an eccentric encoder disc) causes a position error between motor and link
with a few periods per motor turn. It is not a deformation, but of similar size, and its rate exceeds that of the
deformation at all but the slowest speeds. Its phase is the motor angle, to which elastic deformation is unrelated, so the
error can be identified separately and subtracted before any filtering, in a control loop as well as in a log.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from ..errors import check_shape
from ..linalg import Array
from ..logs.recording import Recording
from ..model.drive import Drive
from ..samples import freeze_arrays
from ..signals.clock import even_pieces
from ..signals.filters import lowpass
from ..signals.motor_side import require_motor_positions
from ..signals.prepare import PreparedLog
from ..statistics.least_squares import ols

#: Fitted periods per motor turn: eccentricity, the two lobes of a wave generator, and their second harmonic.
HARMONICS = (1, 2, 4)
#: Frequency below which the difference of the encoders counts as deformation [Hz].
SLOW = 3.0
#: An amplitude must be this many times its standard error.
_CERTAIN = 6.0


@dataclass(frozen=True, eq=False)
class GearRipple:
    """``Σ_h s_h sin(h φ) + c_h cos(h φ)`` with φ the motor's angle before the gear, per joint; added to the deformation.

    Attributes:
        joints: Joint names, in model order.
        ratio: Motor turns per joint turn, shape (n,).
        harmonics: Periods per motor turn, shape (H,).
        sine: Shape (H, n) [rad or m], after the gear; 0 where not significant.
        cosine: Shape (H, n) [rad or m].
    """

    joints: tuple[str, ...]
    ratio: Array
    harmonics: Array
    sine: Array
    cosine: Array

    def __post_init__(self) -> None:
        shape = (len(self.harmonics), len(self.joints))
        for name in ("sine", "cosine"):
            check_shape(name, getattr(self, name).shape, shape)
        freeze_arrays(self)

    @property
    def amplitude(self) -> Array:
        """Amplitude of each harmonic, shape (H, n) [rad or m]."""
        return np.hypot(self.sine, self.cosine)

    def position(self, motor: ArrayLike) -> Array:
        """Returns the kinematic error, same shape [rad or m].

        Args:
            motor: Motor position after the gear, shape (N, n) or (n,) [rad or m].
        """
        phase = self._phase(np.asarray(motor, dtype=float))
        return np.asarray((self.sine * np.sin(phase) + self.cosine * np.cos(phase)).sum(axis=-2))

    def rate(self, motor: ArrayLike, speed: ArrayLike) -> Array:
        """Returns the rate of the kinematic error, same shape [rad/s or m/s].

        Args:
            motor: Motor position after the gear, shape (N, n) or (n,) [rad or m].
            speed: Motor velocity after the gear, same shape [rad/s or m/s].
        """
        phase = self._phase(np.asarray(motor, dtype=float))
        slope = self._turns * (self.sine * np.cos(phase) - self.cosine * np.sin(phase))
        return np.asarray(slope.sum(axis=-2) * np.asarray(speed, dtype=float))

    def taken_off(self, q: Array, v: Array, deformation: Array, rate: Array | None) -> tuple[Array, Array | None]:
        """Deformation without the kinematic error, from raw encoder signals.

        Args:
            q: Link position, shape (N, n) or (n,) [rad or m].
            v: Link velocity, same shape [rad/s or m/s].
            deformation: Motor minus link position after the gear, same shape [rad or m].
            rate: Rate of the deformation, same shape [rad/s or m/s], or None.
        """
        motor = q + deformation
        return deformation - self.position(motor), None if rate is None else rate - self.rate(motor, v + rate)

    def cleaned(self, recording: Recording, drive: Drive) -> Recording:
        """Returns a log without the kinematic error in its motor positions.

        Returns:
            The log; logged motor velocities, which contain the error too, are removed.
        """
        if recording.motor_position is None:
            return recording
        error = self.position(drive.joint_position(recording.motor_position))
        return replace(recording, motor_position=recording.motor_position - drive.motor_rate(error), motor_velocity=None)

    @cached_property
    def _turns(self) -> Array:
        """Periods per joint turn, shape (H, n)."""
        return self.harmonics[:, None] * self.ratio

    def _phase(self, motor: Array) -> Array:
        return np.asarray(self._turns * motor[..., None, :])


def fit_gear_ripple(logs: Sequence[PreparedLog], drive: Drive) -> GearRipple | None:
    """Fits the kinematic error to logs with two encoders.

    Args:
        logs: Prepared logs with motor positions; their raw recordings are used.
        drive: The drive train; joints with coupled drives or without a gear are ignored.

    Returns:
        The ripple; None if no joint has a significant one.
    """
    ratio = np.where(drive.coupled, 0.0, np.diag(drive.reduction))
    orders = np.asarray(HARMONICS, dtype=float)
    rows: list[list[Array]] = [[] for _ in range(drive.n)]
    for log in logs:
        recording = log.report.recording
        require_motor_positions(recording, "the log has no motor positions", "log both encoders")
        pieces, clock = even_pieces(recording)
        for piece in pieces:
            if piece.qm is None or len(piece.qm) < 64 or clock.rate < 4 * SLOW:
                continue
            for j in range(drive.n):
                if abs(ratio[j]) < 1.5:
                    continue
                phase = orders * (ratio[j] * piece.qm[:, j : j + 1])
                waves = np.column_stack([np.sin(phase), np.cos(phase), piece.qm[:, j] - piece.q[:, j]])
                rows[j].append(waves - lowpass(waves, clock.rate, SLOW))
    sine, cosine = np.zeros((2, len(orders), drive.n))
    for j, blocks in enumerate(rows):
        stacked = np.vstack(blocks or [np.zeros((1, 2 * len(orders) + 1))])
        if (np.linalg.norm(stacked[:, :-1], axis=0) > 1e-3 * np.sqrt(len(stacked))).all():  # the motor turned
            fit = ols(stacked[:, :-1], stacked[:, -1])
            amplitude, error = fit.estimate.reshape(2, -1), np.hypot(*fit.std_error.reshape(2, -1))
            sine[:, j], cosine[:, j] = np.where(np.hypot(*amplitude) > _CERTAIN * error, amplitude, 0.0)
    if not (sine.any() or cosine.any()):
        return None
    return GearRipple(logs[0].recording.joints, ratio, orders, sine, cosine)
