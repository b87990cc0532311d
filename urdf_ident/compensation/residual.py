"""Residual torque after friction and links, learnt per joint from the deformation Δ = θ − q and its rate (Liu 2023, §5).

There are two networks: normalised radial basis functions on a grid with weights by ridge regression, and the conditional
mean of a Gaussian mixture over (Δ, Δ', τ_u) (Gaussian mixture regression, GMR). A joint whose network does not improve the
prediction of held-out stretches gets none (:mod:`.networks`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..errors import EstimationError, ModelError, check_known, check_shape
from ..files.documents import plain, record
from ..linalg import Array
from .experts import NetworkBank, TrainedNetwork
from .gear_ripple import GearRipple
from .networks import FOLDS, splits_of, train_network

#: Possible inputs of a residual: signals of the joint itself.
INPUTS = ("deformation", "deformation_rate", "position", "velocity", "acceleration")
KINDS = ("rbf", "gmr")
#: Inputs of Liu 2023.
DEFAULT_INPUTS = ("deformation", "deformation_rate")
#: Distance outside the hull of the training inputs over which the prediction fades to zero, in standard deviations of the
#: inputs. It does not fade inside, because a smooth motion spends most of its time near the hull's boundary.
FADE = 0.15


@dataclass(frozen=True, eq=False)
class Residual:
    """Residual torque of every joint; zero outside the training domain.

    Attributes:
        kind: "rbf", "gmr", or "none".
        joints: Joint names, in model order.
        inputs: Names from :data:`INPUTS`.
        networks: One network per joint; None where none helped.
        explained: Joint → fraction of the residual's variance explained on held-out stretches (0 without a network).
        ripple: Kinematic error of the gears, subtracted from the deformation before training, or None.
    """

    kind: str
    joints: tuple[str, ...]
    inputs: tuple[str, ...]
    networks: tuple[TrainedNetwork | None, ...]
    explained: Mapping[str, float]
    ripple: GearRipple | None = None

    @cached_property
    def _bank(self) -> NetworkBank:
        return NetworkBank(self.networks, len(self.inputs), FADE)

    def torque(self, **signals: ArrayLike | None) -> Array:
        """Returns the residual torque.

        Args:
            signals: ``deformation``, ``deformation_rate``, ``position``, ``velocity``, ``acceleration``: shape (N, n) or
                (n,) each [rad, rad/s, rad/s² or m …]; those in :attr:`inputs` are needed, others ignored.

        Returns:
            Same shape [N·m or N]; outside the training domain it fades to 0 over :data:`FADE`.
        """
        x = self._stacked(signals)
        return self._bank(x[None])[0] if x.ndim == 2 else self._bank(x)

    def read(self, q: Array, v: Array, a: Array, deformation: Array, rate: Array | None) -> Array:
        """Residual torque from raw encoder signals: the gears' kinematic error is subtracted first.

        Args:
            q: Link position, shape (n,) or (N, n) [rad or m].
            v: Velocity, same shape [rad/s or m/s].
            a: Acceleration, same shape [rad/s² or m/s²].
            deformation: Motor minus link position after the gear, same shape [rad or m].
            rate: Its rate, same shape [rad/s or m/s], or None if no network uses it.

        Returns:
            Same shape [N·m or N].
        """
        if self.ripple is not None:
            deformation, rate = self.ripple.taken_off(q, v, deformation, rate)
        return self.torque(deformation=deformation, deformation_rate=rate, position=q, velocity=v, acceleration=a)

    def _stacked(self, signals: Mapping[str, ArrayLike | None]) -> Array:
        """Inputs of the networks, shape (n, d) or (N, n, d)."""
        given = {name: value for name, value in signals.items() if value is not None}
        shape: tuple[int, ...] = np.shape(given.get(self.inputs[0], ()))
        x = np.empty((*shape, len(self.inputs)))
        for k, name in enumerate(self.inputs):
            if name not in given:
                raise ModelError(
                    f"the residual needs '{name}'",
                    where=f"inputs {', '.join(self.inputs)}",
                    got="nothing",
                    remedy="give it (motor minus link position after the gear, and its rate), or leave the residual out",
                )
            value = given[name]
            if np.shape(value) != shape or shape[-1:] != (len(self.joints),):
                check_shape(name, np.shape(value), (*shape[:-1], len(self.joints)))
            x[..., k] = value
        return x

    def as_dict(self) -> dict[str, Any]:
        """JSON form; the reloaded residual gives the same torque to the last bit."""
        return {
            "kind": self.kind,
            "joints": list(self.joints),
            "inputs": list(self.inputs),
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
    inputs: Mapping[str, ArrayLike | None],
    torque: ArrayLike,
    joints: Sequence[str],
    *,
    kind: str = "gmr",
    use: Sequence[str] = DEFAULT_INPUTS,
    seed: int = 0,
    like: Residual | None = None,
    validate: bool = True,
    motion: ArrayLike | None = None,
) -> Residual:
    """Fits a residual to the torque that friction and links do not explain.

    Args:
        inputs: Name from :data:`INPUTS` → shape (N, n), in order of time [rad, rad/s, …].
        torque: Torque to explain, shape (N, n) [N·m or N].
        use: Inputs of the network. Inputs besides the deformation risk overfitting (docs/theory.md §9).
        like: An earlier residual on similar data, whose number of experts is reused if it has any.
        validate: Whether networks like an earlier one are cross-validated again; otherwise its score is kept.
        motion: State of the whole robot, shape (N, k) [SI], by which repetitions of the motion are detected; the
            inputs of all joints if None.
    """
    check_known("kind of residual", kind, KINDS, EstimationError)
    y = np.asarray(torque, dtype=float)
    names = tuple(joints)
    check_shape("torque", y.shape, ("N", len(names)))
    columns = []
    for name in use:
        check_known("input of a residual", name, INPUTS, EstimationError)
        if inputs.get(name) is None:
            raise EstimationError(
                f"a residual on '{name}' was asked for, and the data do not have it",
                expected="motor and link positions (qm_<joint>, q_<joint>)",
                remedy="log both encoders, or leave the residual out",
            )
        columns.append(np.asarray(inputs[name], dtype=float))
        check_shape(name, columns[-1].shape, y.shape)
    if len(y) < 20 * FOLDS:
        raise EstimationError("too few samples for a residual", got=len(y), expected=f"at least {20 * FOLDS}")
    x = np.stack(columns, axis=-1)
    splits = splits_of(x.reshape(len(x), -1) if motion is None else np.asarray(motion, dtype=float))
    networks: list[TrainedNetwork | None] = []
    explained: dict[str, float] = {}
    for j, joint in enumerate(names):
        before = None if like is None else like.networks[j]
        known = like.explained[joint] if like is not None and before is not None and not validate else None
        network, explained[joint] = train_network(x[:, j], y[:, j], kind, seed, splits, before, known)
        networks.append(network)
    return Residual(kind, names, tuple(use), tuple(networks), explained)
