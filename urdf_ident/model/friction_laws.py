"""Friction laws, each a few columns that are linear in their parameters (theory §3); their *shapes* are fixed numbers.

The sign function is smooth: a measured velocity is never exactly zero at rest, and ``sign`` of the ±1e-6 rad/s
that zero-phase filtering leaves there would be noise of the full Coulomb torque (design §6.12).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..errors import ModelError
from ..linalg import Array
from .terms import AxisMotion, Shape, Term

#: Where |v| reaches the knee of the smooth sign by default [rad/s or m/s].
SIGN_WIDTH = 0.02

_WIDTH = Shape("speed", "half-width of the smooth sign; 0 is the hard sign", zero=True)


def smooth_sign(v: Array, width: float) -> Array:
    """``tanh(v / width)``; the hard sign for width 0.

    Args:
        v: Velocity, any shape [rad/s or m/s].
        width: Half-width of the transition [rad/s or m/s].

    Returns:
        Same shape, between −1 and 1.
    """
    return np.asarray(np.sign(v) if width == 0 else np.tanh(np.asarray(v) / width))


def play(q: Array, radius: float, start: float) -> Array:
    """The play (backlash) operator: a point that is dragged along when q is further than the radius from it.

    ``p_k = min(max(p_{k−1}, q_k − r), q_k + r)``. Each step is a clip, and clips composed are clips again, so the
    whole history is a prefix "sum" of clips: log2(N) vectorised passes instead of N steps.

    Args:
        q: Position, shape (N,) [rad or m].
        radius: r [rad or m].
        start: The point before the first sample [rad or m].

    Returns:
        The point p, shape (N,) [rad or m].
    """
    low, high = q - radius, q + radius
    span = 1
    while span < len(q):
        before_low, before_high = low[:-span], high[:-span]
        low, high = (
            np.concatenate([low[:span], np.clip(before_low, low[span:], high[span:])]),
            np.concatenate([high[:span], np.clip(before_high, low[span:], high[span:])]),
        )
        span *= 2
    return np.asarray(np.clip(start, low, high))


def _force(prismatic: bool) -> str:
    return "N" if prismatic else "N·m"


def _rates(prismatic: bool) -> tuple[str, str, str]:
    """Units of what multiplies v, v² and v³."""
    return ("N·s/m", "N·s²/m²", "N·s³/m³") if prismatic else ("N·m·s/rad", "N·m·s²/rad²", "N·m·s³/rad³")


@dataclass(frozen=True)
class Viscous(Term):
    """``Fv · v``."""

    name: ClassVar[str] = "viscous"
    symbols: ClassVar[tuple[str, ...]] = ("Fv",)
    nonnegative: ClassVar[tuple[bool, ...]] = (True,)

    def columns(self, axis: AxisMotion) -> Array:
        return axis.v[:, None]

    def units(self, prismatic: bool) -> tuple[str, ...]:
        return _rates(prismatic)[:1]


@dataclass(frozen=True)
class Coulomb(Term):
    """``Fc · S(v)`` with S = tanh(v/width), hard sign for width 0 [rad/s or m/s]."""

    width: float = SIGN_WIDTH
    name: ClassVar[str] = "coulomb"
    symbols: ClassVar[tuple[str, ...]] = ("Fc",)
    nonnegative: ClassVar[tuple[bool, ...]] = (True,)
    shapes: ClassVar[Mapping[str, Shape]] = {"width": _WIDTH}

    def columns(self, axis: AxisMotion) -> Array:
        return smooth_sign(axis.v, self.width)[:, None]

    def units(self, prismatic: bool) -> tuple[str, ...]:
        return (_force(prismatic),)


@dataclass(frozen=True)
class Offset(Term):
    """A constant: the amplifier's offset and the asymmetry of Coulomb friction in one (D, eq. 3)."""

    name: ClassVar[str] = "offset"
    symbols: ClassVar[tuple[str, ...]] = ("offset",)
    nonnegative: ClassVar[tuple[bool, ...]] = (False,)

    def columns(self, axis: AxisMotion) -> Array:
        return np.ones((len(axis.v), 1))

    def units(self, prismatic: bool) -> tuple[str, ...]:
        return (_force(prismatic),)


@dataclass(frozen=True)
class StribeckArctan(Term):
    """Smooth static friction by arctangents (A, eqs. 7-9), instead of Coulomb and viscous friction.

    ``τ_s · 2/π·atan(K_v v) + τ_sc · 2/π·atan(δ v) + τ_v · v``, with τ_s stiction and τ_sc = Coulomb − stiction, so
    negative where friction drops after breaking loose. The paper gives neither K_v (``sharpness``) nor δ
    (``stribeck``), only K_v ≫ δ; with ours the drop is over at about 1 rad/s.
    """

    sharpness: float = 1000.0
    stribeck: float = 10.0
    name: ClassVar[str] = "stribeck_arctan"
    symbols: ClassVar[tuple[str, ...]] = ("tau_s", "tau_sc", "tau_v")
    nonnegative: ClassVar[tuple[bool, ...]] = (True, False, True)
    shapes: ClassVar[Mapping[str, Shape]] = {
        "sharpness": Shape("steepness", "K_v, steepness of stiction at standstill"),
        "stribeck": Shape("steepness", "delta, steepness of the drop from stiction to Coulomb friction"),
    }

    def __post_init__(self) -> None:
        if self.stribeck >= self.sharpness:
            raise ModelError(
                "friction term 'stribeck_arctan' cannot tell its two steps apart", got=f"stribeck {self.stribeck:g}",
                expected=f"less than sharpness {self.sharpness:g}",
            )  # fmt: skip

    def columns(self, axis: AxisMotion) -> Array:
        steps = [2 / np.pi * np.arctan(slope * axis.v) for slope in (self.sharpness, self.stribeck)]
        return np.column_stack([*steps, axis.v])

    def units(self, prismatic: bool) -> tuple[str, ...]:
        return _force(prismatic), _force(prismatic), _rates(prismatic)[0]


@dataclass(frozen=True)
class Stribeck(Term):
    """``Fs · S(v) · exp(−(v/velocity)²)``: stiction above the Coulomb level, which it is added to."""

    velocity: float = 0.1
    width: float = SIGN_WIDTH
    name: ClassVar[str] = "stribeck"
    symbols: ClassVar[tuple[str, ...]] = ("Fs",)
    nonnegative: ClassVar[tuple[bool, ...]] = (False,)
    shapes: ClassVar[Mapping[str, Shape]] = {
        "velocity": Shape("speed", "speed at which the excess over Coulomb friction has dropped to 1/e"),
        "width": _WIDTH,
    }

    def columns(self, axis: AxisMotion) -> Array:
        return (smooth_sign(axis.v, self.width) * np.exp(-((axis.v / self.velocity) ** 2)))[:, None]

    def units(self, prismatic: bool) -> tuple[str, ...]:
        return (_force(prismatic),)


@dataclass(frozen=True)
class Asymmetric(Term):
    """Friction that differs by direction, viscous part cubic and only above a threshold speed (E, eqs. 9-11).

    With ``H± = (1 ± tanh(v/eps))/2`` the columns are ``H+·[S, v, v·|v|, v³]`` and ``H−·[S, v, v·|v|, v³]``, those of v
    zero for |v| < threshold (λ). Single cubic coefficients depend on each other strongly: judge the curve. It
    replaces Coulomb, viscous and offset.
    """

    threshold: float = 0.0
    width: float = SIGN_WIDTH
    eps: float = 1e-4
    name: ClassVar[str] = "asymmetric"
    symbols: ClassVar[tuple[str, ...]] = ("Fcp", "Fv1p", "Fv2p", "Fv3p", "Fcn", "Fv1n", "Fv2n", "Fv3n")
    nonnegative: ClassVar[tuple[bool, ...]] = (True, False, False, False, True, False, False, False)
    shapes: ClassVar[Mapping[str, Shape]] = {
        "threshold": Shape("speed", "lambda, speed below which the viscous part is zero", zero=True, reached=True),
        "width": _WIDTH,
        "eps": Shape("speed", "half-width of the change from one direction's coefficients to the other's"),
    }

    def columns(self, axis: AxisMotion) -> Array:
        v = axis.v
        fast = np.where(np.abs(v) < self.threshold, 0.0, v)
        four = np.column_stack([smooth_sign(v, self.width), fast, fast * np.abs(v), fast * v * v])
        forward = 0.5 * (1.0 + np.tanh(v / self.eps))[:, None]
        return np.hstack([forward * four, (1.0 - forward) * four])

    def units(self, prismatic: bool) -> tuple[str, ...]:
        return (_force(prismatic), *_rates(prismatic)) * 2


@dataclass(frozen=True)
class LoadCoulomb(Term):
    """``Fl · S(v) · |τ_rigid|``: dry friction in proportion to the torque that the gear passes on to the links.

    τ_rigid is a *frozen* first estimate, found by iteration to a fixed point (:mod:`..estimation.friction.reference_torque`).
    """

    width: float = SIGN_WIDTH
    name: ClassVar[str] = "load_coulomb"
    symbols: ClassVar[tuple[str, ...]] = ("Fl",)
    nonnegative: ClassVar[tuple[bool, ...]] = (True,)
    shapes: ClassVar[Mapping[str, Shape]] = {"width": _WIDTH}
    loaded: ClassVar[bool] = True

    def columns(self, axis: AxisMotion) -> Array:
        if axis.reference_torque is None:
            raise ModelError(
                "load-dependent friction needs a first estimate of the rigid torque", where=f"friction term '{self.name}'",
                remedy="identify, or freeze one: model.with_reference(theta)",
            )  # fmt: skip
        return (smooth_sign(axis.v, self.width) * np.abs(axis.reference_torque))[:, None]

    def units(self, prismatic: bool) -> tuple[str, ...]:
        return ("1",)


@dataclass(frozen=True)
class SubLinear(Term):
    """``Fr · S(v) · sqrt|v|``: grease whose resistance grows ever more slowly with speed."""

    width: float = SIGN_WIDTH
    name: ClassVar[str] = "sublinear"
    symbols: ClassVar[tuple[str, ...]] = ("Fr",)
    nonnegative: ClassVar[tuple[bool, ...]] = (False,)
    shapes: ClassVar[Mapping[str, Shape]] = {"width": _WIDTH}

    def columns(self, axis: AxisMotion) -> Array:
        return (smooth_sign(axis.v, self.width) * np.sqrt(np.abs(axis.v)))[:, None]

    def units(self, prismatic: bool) -> tuple[str, ...]:
        return ("N·(s/m)^½",) if prismatic else ("N·m·(s/rad)^½",)


@dataclass(frozen=True)
class Cubic(Term):
    """``F3 · v³``."""

    name: ClassVar[str] = "cubic"
    symbols: ClassVar[tuple[str, ...]] = ("F3",)
    nonnegative: ClassVar[tuple[bool, ...]] = (False,)

    def columns(self, axis: AxisMotion) -> Array:
        return axis.v[:, None] ** 3

    def units(self, prismatic: bool) -> tuple[str, ...]:
        return _rates(prismatic)[2:]


@dataclass(frozen=True)
class Presliding(Term):
    """``Fp`` times a play operator of the position, scaled to ±1: friction that turns round over a way, not a speed.

    After a reversal it goes from one limit to the other while the joint moves by ``width``. It has memory: it sees
    the whole log, standstill included, at its full rate. Before the log begins it is where the first velocity drives it.
    """

    width: float = 4e-4
    name: ClassVar[str] = "presliding"
    symbols: ClassVar[tuple[str, ...]] = ("Fp",)
    nonnegative: ClassVar[tuple[bool, ...]] = (True,)
    shapes: ClassVar[Mapping[str, Shape]] = {"width": Shape("way", "way over which friction turns round after a reversal")}

    def columns(self, axis: AxisMotion) -> Array:
        radius = 0.5 * self.width
        q = axis.q if axis.before is None else np.concatenate([axis.before, axis.q])
        developed = 0.0 if axis.before is not None else float(smooth_sign(axis.v[:1], SIGN_WIDTH).sum())
        bent = (q - play(q, radius, float(q[0]) - radius * developed)) / radius if len(q) else q
        return bent[len(q) - len(axis.q) :, None]

    def units(self, prismatic: bool) -> tuple[str, ...]:
        return (_force(prismatic),)
