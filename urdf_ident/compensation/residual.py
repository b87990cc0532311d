"""Residual torque after friction and links, learnt per joint from the deformation Δ = θ − q and its rate (Liu 2023, §5).

There are two networks: normalised radial basis functions on a grid with weights by ridge regression, and the conditional
mean of a Gaussian mixture over (Δ, Δ', τ_u) (Gaussian mixture regression, GMR). A joint whose network does not improve the
prediction of held-out stretches gets none (:mod:`.networks`).

Before it, the kinematic error of a gear is identified from two encoders and compensated. A harmonic drive (like a tooth with
run-out or an eccentric encoder disc) causes a position error between motor and link with a few periods per motor turn. It is
not a deformation, but of similar size, and its rate exceeds that of the deformation at all but the slowest speeds. Its phase
is the motor angle, to which elastic deformation is unrelated, so the error can be identified separately and subtracted
before any filtering, in a control loop as well as in a log.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..errors import EstimationError, ModelError, check_known, check_shape
from ..files.documents import plain, record
from ..linalg import Array
from ..logs.recording import Recording
from ..model.drive import Drive
from ..samples import freeze_arrays
from ..signals.clock import even_pieces
from ..signals.filters import lowpass
from ..signals.motor_side import require_motor_positions
from ..signals.prepare import PreparedLog
from ..statistics.folds import TIME_FOLDS
from ..statistics.least_squares import ols
from .networks import NetworkBank, TrainedNetwork, splits_of, train_network

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
            motor = piece.motor_position
            if motor is None or len(motor) < 64 or clock.rate < 4 * SLOW:
                continue
            for j in range(drive.n):
                if abs(ratio[j]) < 1.5:
                    continue
                phase = orders * (ratio[j] * motor[:, j : j + 1])
                waves = np.column_stack([np.sin(phase), np.cos(phase), motor[:, j] - piece.position[:, j]])
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


KINDS = ("rbf", "gmr")
#: Distance outside the hull of the training inputs over which the prediction fades to zero, in standard deviations of the
#: inputs. It does not fade inside, because a smooth motion spends most of its time near the hull's boundary.
FADE = 0.15


@dataclass(frozen=True, eq=False)
class Residual:
    """Residual torque of every joint; zero outside the training domain.

    Attributes:
        kind: "rbf", "gmr", or "none".
        joints: Joint names, in model order.
        networks: One network per joint; None where none helped.
        explained: Joint → fraction of the residual's variance explained on held-out stretches (0 without a network).
        ripple: Kinematic error of the gears, subtracted from the deformation before training, or None.
    """

    kind: str
    joints: tuple[str, ...]
    networks: tuple[TrainedNetwork | None, ...]
    explained: Mapping[str, float]
    ripple: GearRipple | None = None

    @cached_property
    def _bank(self) -> NetworkBank:
        return NetworkBank(self.networks, FADE)

    def torque(self, deformation: ArrayLike, rate: ArrayLike | None) -> Array:
        """Returns the residual torque.

        Args:
            deformation: Motor minus link position after the gear, shape (N, n) or (n,) [rad or m].
            rate: Its rate, same shape [rad/s or m/s].

        Returns:
            Same shape [N·m or N]; outside the training domain it fades to 0 over :data:`FADE`.

        Raises:
            ModelError: There is no rate.
        """
        if rate is None:
            raise ModelError(
                "the residual needs 'deformation_rate'", got="nothing", remedy="give it, or leave the deformation out"
            )
        x = np.stack([np.asarray(deformation, dtype=float), np.asarray(rate, dtype=float)], axis=-1)
        check_shape("deformation", x.shape[-2:-1], (len(self.joints),))
        return self._bank(x[None])[0] if x.ndim == 2 else self._bank(x)

    def read(self, q: Array, v: Array, deformation: Array, rate: Array | None) -> Array:
        """Residual torque from raw encoder signals: the gears' kinematic error is subtracted first.

        Args:
            q: Link position, shape (n,) or (N, n) [rad or m].
            v: Velocity, same shape [rad/s or m/s].
            deformation: Motor minus link position after the gear, same shape [rad or m].
            rate: Its rate, same shape [rad/s or m/s].

        Returns:
            Same shape [N·m or N].
        """
        if self.ripple is not None:
            deformation, rate = self.ripple.taken_off(q, v, deformation, rate)
        return self.torque(deformation, rate)

    def as_dict(self) -> dict[str, Any]:
        """JSON form; the reloaded residual gives the same torque to the last bit."""
        return {
            "kind": self.kind,
            "joints": list(self.joints),
            "explained": dict(self.explained),
            "ripple": plain(self.ripple),
            "taught": plain(self.networks),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Residual:
        """Inverse of :meth:`as_dict`."""
        return record(cls, {**data, "networks": data["taught"]})


def candidate(laws: str, kind: str) -> str:
    """Name of a combination of friction laws and residual.

    Returns:
        "none", "rbf", "gmr" for the laws of the logs, "sweeps", "sweeps + rbf", "sweeps + gmr" for those of the sweeps.
    """
    return kind if laws == "logs" else laws if kind == "none" else f"{laws} + {kind}"


def fit_residual(
    deformation: Array,
    torque: ArrayLike,
    joints: Sequence[str],
    *,
    kind: str = "gmr",
    seed: int = 0,
    like: Residual | None = None,
    validate: bool = True,
    motion: ArrayLike | None = None,
) -> Residual:
    """Fits a residual to the torque that friction and links do not explain.

    Args:
        deformation: Motor minus link position after the gear, and its rate, shape (N, n, 2), in order of time.
        torque: Torque to explain, shape (N, n) [N·m or N].
        like: An earlier residual on similar data, whose number of experts is reused if it has any.
        validate: Whether networks like an earlier one are cross-validated again; otherwise its score is kept.
        motion: State of the whole robot, shape (N, k) [SI], by which repetitions of the motion are detected; the
            deformation of all joints if None.
    """
    check_known("kind of residual", kind, KINDS, EstimationError)
    y, names = np.asarray(torque, dtype=float), tuple(joints)
    check_shape("torque", y.shape, ("N", len(names)))
    check_shape("deformation", deformation.shape, (*y.shape, 2))
    if len(y) < 20 * TIME_FOLDS:
        raise EstimationError("too few samples for a residual", got=len(y), expected=f"at least {20 * TIME_FOLDS}")
    splits = splits_of(deformation.reshape(len(y), -1) if motion is None else np.asarray(motion, dtype=float))
    networks: list[TrainedNetwork | None] = []
    explained: dict[str, float] = {}
    for j, joint in enumerate(names):
        before = None if like is None else like.networks[j]
        known = like.explained[joint] if like is not None and before is not None and not validate else None
        network, explained[joint] = train_network(deformation[:, j], y[:, j], kind, seed, splits, before, known)
        networks.append(network)
    return Residual(kind, names, tuple(networks), explained)
