"""All laws, one class each; a new law is one more class here or in a user's module.

Conservative laws (gas and coil springs, gravity compensation, cables and hoses) share the interface of friction laws (columns,
parameters, files), but depend only on the position and have a potential, so they neither dissipate nor stick. On a joint under
gravity load, a spring may be confounded with link weight.

The friction search tries them in this order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from ..errors import ModelError
from ..linalg import Array
from ..units import joint_units
from .law import SIGN_WIDTH, AxisMotion, AxisScale, Law, Shape, Sliding, smooth_sign

_WIDTH = Shape("speed", "half-width of the smooth sign; 0 is the hard sign", zero=True)
#: Widths of the smooth sign and Stribeck speeds that the search tries, as multiples of the axis' own scale.
_WIDTHS = (1.0, *(0.25 * 1.6**k for k in range(7)))
#: Time constants that the search tries [s]: from the time in which a low-passed reversal passes to that of slow motion.
_TIMES = (0.05, 0.1, 0.2, 0.4, 0.8)
#: Number of time constants or lengths after which nothing that double precision shows is left of a state.
_FORGOTTEN = 40.0
_SPEEDS = tuple(0.015 * 1.5**k for k in range(9))


def _units_of_powers(prismatic: bool) -> tuple[str, str, str, str]:
    """Returns the units of the factors of 1, v, v² and v³."""
    torque, position = (joint_units(prismatic)[name] for name in ("torque", "position"))
    return torque, f"{torque}·s/{position}", f"{torque}·s²/{position}²", f"{torque}·s³/{position}³"


@dataclass(frozen=True)
class Viscous(Law):
    """``Fv · v``."""

    name: ClassVar[str] = "viscous"
    symbols: ClassVar[tuple[str, ...]] = ("Fv",)
    changing: ClassVar[Mapping[str, str]] = {"Fv": "viscous"}
    nonnegative: ClassVar[tuple[bool, ...]] = (True,)
    formula: ClassVar[str] = "Fv*v"

    def basis(self, motion: Sliding) -> Sequence[Array]:
        return (motion.v,)

    def units(self, prismatic: bool) -> tuple[str, ...]:
        return _units_of_powers(prismatic)[1:2]

    @classmethod
    def variants(cls, scale: AxisScale) -> Sequence[Law]:
        return (cls(),)


@dataclass(frozen=True)
class Offset(Law):
    """A constant: amplifier offset plus asymmetry of Coulomb friction (Gautier 2013, eq. 3)."""

    name: ClassVar[str] = "offset"
    symbols: ClassVar[tuple[str, ...]] = ("offset",)
    nonnegative: ClassVar[tuple[bool, ...]] = (False,)
    formula: ClassVar[str] = "offset"
    bias: ClassVar[bool] = True

    def basis(self, motion: Sliding) -> Sequence[Array]:
        return (np.ones_like(motion.v),)

    @classmethod
    def variants(cls, scale: AxisScale) -> Sequence[Law]:
        return () if scale.motor else (cls(),)


@dataclass(frozen=True)
class Coulomb(Law):
    """``Fc · S(v)`` with S = tanh(v/width), hard sign for width 0 [rad/s or m/s]."""

    width: float = SIGN_WIDTH
    name: ClassVar[str] = "coulomb"
    symbols: ClassVar[tuple[str, ...]] = ("Fc",)
    changing: ClassVar[Mapping[str, str]] = {"Fc": "dry"}
    nonnegative: ClassVar[tuple[bool, ...]] = (True,)
    shapes: ClassVar[Mapping[str, Shape]] = {"width": _WIDTH}
    formula: ClassVar[str] = "Fc*tanh(v/width)"

    def basis(self, motion: Sliding) -> Sequence[Array]:
        return (motion.sign(self.width),)

    @classmethod
    def variants(cls, scale: AxisScale) -> Sequence[Law]:
        return [cls(width=factor * scale.width) for factor in _WIDTHS]


@dataclass(frozen=True)
class Stribeck(Law):
    """``Fs · S(v) · exp(−(|v|/velocity)^exponent)``: excess of stiction over Coulomb friction."""

    velocity: float = 0.1
    width: float = SIGN_WIDTH
    exponent: float = 2.0
    name: ClassVar[str] = "stribeck"
    symbols: ClassVar[tuple[str, ...]] = ("Fs",)
    nonnegative: ClassVar[tuple[bool, ...]] = (False,)
    shapes: ClassVar[Mapping[str, Shape]] = {
        "velocity": Shape("speed", "speed at which the excess over Coulomb friction has dropped to 1/e"),
        "width": _WIDTH,
        "exponent": Shape("exponent", "how abruptly it drops"),
    }
    formula: ClassVar[str] = "Fs*tanh(v/width)*exp(-(|v|/velocity)^exponent)"

    def basis(self, motion: Sliding) -> Sequence[Array]:
        return (motion.sign(self.width) * np.exp(-((np.abs(motion.v) / self.velocity) ** self.exponent)),)

    @classmethod
    def variants(cls, scale: AxisScale) -> Sequence[Law]:
        return [] if scale.motor else [cls(velocity=factor * scale.speed, width=scale.width) for factor in _SPEEDS]


@dataclass(frozen=True)
class SubLinear(Law):
    """``Fr · S(v) · sqrt|v|``: grease friction that grows sublinearly with speed."""

    width: float = SIGN_WIDTH
    name: ClassVar[str] = "sublinear"
    symbols: ClassVar[tuple[str, ...]] = ("Fr",)
    changing: ClassVar[Mapping[str, str]] = {"Fr": "viscous"}
    power: ClassVar[float] = 0.5
    nonnegative: ClassVar[tuple[bool, ...]] = (False,)
    shapes: ClassVar[Mapping[str, Shape]] = {"width": _WIDTH}
    formula: ClassVar[str] = "Fr*tanh(v/width)*sqrt(|v|)"

    def basis(self, motion: Sliding) -> Sequence[Array]:
        return (motion.sign(self.width) * np.sqrt(np.abs(motion.v)),)

    def units(self, prismatic: bool) -> tuple[str, ...]:
        units = joint_units(prismatic)
        return (f"{units['torque']}·(s/{units['position']})^½",)

    @classmethod
    def variants(cls, scale: AxisScale) -> Sequence[Law]:
        return [cls(width=factor * scale.width) for factor in _WIDTHS[:4]]


@dataclass(frozen=True)
class Cubic(Law):
    """``F3 · v³``."""

    name: ClassVar[str] = "cubic"
    symbols: ClassVar[tuple[str, ...]] = ("F3",)
    nonnegative: ClassVar[tuple[bool, ...]] = (False,)
    formula: ClassVar[str] = "F3*v^3"

    def basis(self, motion: Sliding) -> Sequence[Array]:
        return (motion.v * motion.v * motion.v,)

    def units(self, prismatic: bool) -> tuple[str, ...]:
        return _units_of_powers(prismatic)[3:]

    @classmethod
    def variants(cls, scale: AxisScale) -> Sequence[Law]:
        return (cls(),)


@dataclass(frozen=True)
class LoadCoulomb(Law):
    """``Fl · S(v) · |τ_rigid|``: dry friction proportional to the torque that the gear transmits to the links.

    The estimator uses a *frozen* estimate of τ_rigid, iterated to a fixed point; a simulated plant solves for
    torque, friction and acceleration simultaneously.
    """

    width: float = SIGN_WIDTH
    name: ClassVar[str] = "load_coulomb"
    symbols: ClassVar[tuple[str, ...]] = ("Fl",)
    changing: ClassVar[Mapping[str, str]] = {"Fl": "load"}
    nonnegative: ClassVar[tuple[bool, ...]] = (True,)
    shapes: ClassVar[Mapping[str, Shape]] = {"width": _WIDTH}
    loaded: ClassVar[bool] = True
    formula: ClassVar[str] = "Fl*tanh(v/width)*|tau_rigid|"

    def basis(self, motion: Sliding) -> Sequence[Array]:
        if motion.load is None:
            raise ModelError(
                "load-dependent friction needs a first estimate of the rigid torque",
                where=f"friction term '{self.name}'",
                remedy="identify, or freeze one: model.with_reference(theta)",
            )
        return (motion.sign(self.width) * np.abs(motion.load),)

    def units(self, prismatic: bool) -> tuple[str, ...]:
        return ("1",)

    @classmethod
    def variants(cls, scale: AxisScale) -> Sequence[Law]:
        return [] if scale.motor else [cls(width=factor * scale.width) for factor in _WIDTHS[:6:2]]


@dataclass(frozen=True)
class _Remembering(Law):
    """Dry friction that depends on the motion since the reversal: its coefficient times the state of a law with memory."""

    nonnegative: ClassVar[tuple[bool, ...]] = (True,)
    memory: ClassVar[bool] = True

    def basis(self, motion: Sliding) -> Sequence[Array]:
        return (np.zeros_like(motion.v) if motion.bent is None else motion.bent,)

    def extrapolated(self, motion: Sliding) -> Sequence[Array]:
        return self.basis(motion)  # the state does not depend on the speed


@dataclass(frozen=True)
class Presliding(_Remembering):
    """``Fp`` times a play operator of the position, scaled to ±1: friction that reverses over a displacement.

    After a reversal it changes linearly from one limit to the other while the joint moves by ``width``. It has memory: it
    uses the whole log, standstill included, at its full rate. Its initial state follows from the sign of the first velocity.
    """

    width: float = 4e-4
    name: ClassVar[str] = "presliding"
    symbols: ClassVar[tuple[str, ...]] = ("Fp",)
    changing: ClassVar[Mapping[str, str]] = {"Fp": "dry"}
    shapes: ClassVar[Mapping[str, Shape]] = {"width": Shape("displacement", "displacement over which friction reverses")}
    formula: ClassVar[str] = "Fp*z, z = clip(z + 2*dq/width, -1, 1)"

    def bend(self, bent: Array, step: Array, seconds: float) -> Array:
        return np.clip(bent + step / (0.5 * self.width), -1.0, 1.0)

    def trace(self, q: Array, start: float, rate: float) -> Array:
        radius = 0.5 * self.width
        return (q - play(q, radius, float(q[0]) - radius * start)) / radius if len(q) else q

    def forgets(self, q: Array, rate: float) -> bool:
        return bool(np.ptp(q) > self.width)


@dataclass(frozen=True)
class Dahl(_Remembering):
    """``Fd · z`` with Dahl's model ``dz/dq = (sign(dq) − z)/width``: friction reverses exponentially with displacement.

    Like presliding, it has memory and no stiction (Dahl, 1968, exponent 1).
    """

    width: float = 4e-4
    name: ClassVar[str] = "dahl"
    symbols: ClassVar[tuple[str, ...]] = ("Fd",)
    changing: ClassVar[Mapping[str, str]] = {"Fd": "dry"}
    shapes: ClassVar[Mapping[str, Shape]] = {
        "width": Shape("displacement", "displacement over which the distance to the limit falls to 1/e")
    }
    formula: ClassVar[str] = "Fd*z, dz/dq = (sign(dq) - z)/width"

    def bend(self, bent: Array, step: Array, seconds: float) -> Array:
        direction = np.sign(step)
        return np.where(step == 0, bent, direction + (bent - direction) * np.exp(-np.abs(step) / self.width))

    def trace(self, q: Array, start: float, rate: float) -> Array:
        step = np.diff(q, prepend=q[:1])
        keep = np.exp(-np.abs(step) / self.width)
        return recursion(keep, np.sign(step) * (1.0 - keep), start)

    def forgets(self, q: Array, rate: float) -> bool:
        return bool(np.abs(np.diff(q)).sum() > _FORGOTTEN * self.width)

    @classmethod
    def variants(cls, scale: AxisScale) -> Sequence[Law]:
        return [cls(width=x) for x in scale.displacements]


@dataclass(frozen=True)
class Relaxing(_Remembering):
    """``Ft · z`` with ``dz/dt = (S(v) − z)/time``: dry friction that builds up with time after a reversal and decays at rest.

    Frictional lag of grease and seals (Armstrong-Hélouvry, Dupont, Canudas de Wit 1994, section 2.2.4), of one time constant.
    Together with Coulomb friction it is drag that rises after each reversal. In steady sliding it is Coulomb friction.
    """

    time: float = 0.3
    name: ClassVar[str] = "relaxing"
    symbols: ClassVar[tuple[str, ...]] = ("Ft",)
    changing: ClassVar[Mapping[str, str]] = {"Ft": "dry"}
    shapes: ClassVar[Mapping[str, Shape]] = {"time": Shape("time", "time in which the distance to the limit falls to 1/e")}
    formula: ClassVar[str] = f"Ft*z, dz/dt = (tanh(v/{SIGN_WIDTH:g}) - z)/time"

    def bend(self, bent: Array, step: Array, seconds: float) -> Array:
        if seconds <= 0:
            return bent
        towards = smooth_sign(step / seconds, SIGN_WIDTH)
        return np.asarray(towards + (bent - towards) * np.exp(-seconds / self.time))

    def trace(self, q: Array, start: float, rate: float) -> Array:
        towards = smooth_sign(np.diff(q, prepend=q[:1]) * rate, SIGN_WIDTH)
        keep = np.full(len(q), np.exp(-1.0 / (rate * self.time)))
        return recursion(keep, (1.0 - keep) * towards, start)

    def forgets(self, q: Array, rate: float) -> bool:
        return len(q) > _FORGOTTEN * self.time * rate

    def _bent(self, axis: AxisMotion) -> Array:
        # samples without a rate do not follow one another: steady sliding
        return super()._bent(axis) if axis.rate else smooth_sign(axis.v, SIGN_WIDTH)

    @classmethod
    def variants(cls, scale: AxisScale) -> Sequence[Law]:
        return [] if scale.motor else [cls(time=x) for x in _TIMES if x <= scale.time]


@dataclass(frozen=True)
class Asymmetric(Law):
    """Direction-dependent friction with a cubic viscous part above a threshold speed (Liu 2023, eqs. 9-11).

    With ``H± = (1 ± tanh(v/eps))/2`` the columns are ``H+·[S, v, v·|v|, v³]`` and ``H−·[S, v, v·|v|, v³]``, those of v
    zero for |v| < threshold (λ). The cubic coefficients are strongly correlated: judge the curve, not single values. It
    replaces Coulomb, viscous and offset.
    """

    threshold: float = 0.0
    width: float = SIGN_WIDTH
    eps: float = 1e-4
    name: ClassVar[str] = "asymmetric"
    symbols: ClassVar[tuple[str, ...]] = ("Fcp", "Fv1p", "Fv2p", "Fv3p", "Fcn", "Fv1n", "Fv2n", "Fv3n")
    changing: ClassVar[Mapping[str, str]] = {"Fcp": "dry", "Fcn": "dry", "Fv1p": "viscous", "Fv1n": "viscous"}
    nonnegative: ClassVar[tuple[bool, ...]] = (True, False, False, False, True, False, False, False)
    shapes: ClassVar[Mapping[str, Shape]] = {
        "threshold": Shape("speed", "lambda, speed below which the viscous part is zero", zero=True, reached=True),
        "width": _WIDTH,
        "eps": Shape("speed", "half-width of the change from one direction's coefficients to the other's"),
    }
    formula: ClassVar[str] = (
        "(1 + tanh(v/eps))/2*(Fcp*tanh(v/width) + Fv1p*u + Fv2p*u*|u| + Fv3p*u^3) + (1 - tanh(v/eps))/2*(the same with "
        "n), u = v where |v| >= threshold, else 0"
    )

    def basis(self, motion: Sliding) -> Sequence[Array]:
        v, sign = motion.v, motion.sign(self.width)
        fast = np.where(np.abs(v) < self.threshold, 0.0, v)
        four = (sign, fast, fast * np.abs(v), fast * v * v)
        forward = 0.5 * (1.0 + motion.sign(self.eps))
        return [side * column for side in (forward, 1.0 - forward) for column in four]

    def units(self, prismatic: bool) -> tuple[str, ...]:
        return _units_of_powers(prismatic) * 2

    @classmethod
    def variants(cls, scale: AxisScale) -> Sequence[Law]:
        return [] if scale.motor else [replace(cls(), width=scale.width, eps=0.05 * scale.width)]


@dataclass(frozen=True)
class StribeckArctan(Law):
    """Smooth static friction by arctangents (Szabó 2021, eqs. 7-9), instead of Coulomb and viscous friction.

    ``τ_s · 2/π·atan(K_v v) + τ_sc · 2/π·atan(δ v) + τ_v · v``, with τ_s stiction and τ_sc = Coulomb − stiction, which is
    negative if friction drops after break-away. The paper gives neither K_v (``sharpness``) nor δ (``stribeck``),
    only K_v ≫ δ; with these defaults the drop ends at about 1 rad/s. A simulated plant creeps instead of sticking.
    """

    sharpness: float = 1000.0
    stribeck: float = 10.0
    name: ClassVar[str] = "stribeck_arctan"
    symbols: ClassVar[tuple[str, ...]] = ("tau_s", "tau_sc", "tau_v")
    changing: ClassVar[Mapping[str, str]] = {"tau_s": "dry", "tau_v": "viscous"}
    nonnegative: ClassVar[tuple[bool, ...]] = (True, False, True)
    shapes: ClassVar[Mapping[str, Shape]] = {
        "sharpness": Shape("steepness", "K_v, steepness of stiction at standstill"),
        "stribeck": Shape("steepness", "delta, steepness of the drop from stiction to Coulomb friction"),
    }
    formula: ClassVar[str] = "tau_s*2/pi*atan(sharpness*v) + tau_sc*2/pi*atan(stribeck*v) + tau_v*v"

    def __post_init__(self) -> None:
        if np.any(np.asarray(self.stribeck) >= np.asarray(self.sharpness)):
            raise ModelError(
                "friction term 'stribeck_arctan' needs a steeper rise at standstill than at the drop",
                got=f"stribeck {np.max(self.stribeck):g}",
                expected=f"less than sharpness {np.min(self.sharpness):g}",
            )

    def basis(self, motion: Sliding) -> Sequence[Array]:
        v = motion.v
        return 2 / np.pi * np.arctan(self.sharpness * v), 2 / np.pi * np.arctan(self.stribeck * v), v

    def units(self, prismatic: bool) -> tuple[str, ...]:
        torque, viscous, *_ = _units_of_powers(prismatic)
        return torque, torque, viscous


@dataclass(frozen=True)
class Conservative(Law):
    """A law with a potential; parameters of either sign."""

    nonnegative: ClassVar[tuple[bool, ...]] = (False, False)
    conservative: ClassVar[bool] = True

    def _position(self, motion: Sliding) -> Array:
        if motion.q is None:
            raise ModelError("a spring needs the position of its joint", where=f"law '{self.name}'")
        return motion.q


@dataclass(frozen=True)
class Spring(Conservative):
    """``ks · q + ts``: a linear spring, relaxed at ``q = −ts/ks``. It replaces the offset."""

    name: ClassVar[str] = "spring"
    symbols: ClassVar[tuple[str, ...]] = ("ks", "ts")
    formula: ClassVar[str] = "ks*q + ts"

    def basis(self, motion: Sliding) -> Sequence[Array]:
        q = self._position(motion)
        return q, np.ones_like(q)

    def units(self, prismatic: bool) -> tuple[str, ...]:
        units = joint_units(prismatic)
        return f"{units['torque']}/{units['position']}", units["torque"]

    @classmethod
    def variants(cls, scale: AxisScale) -> Sequence[Law]:
        return () if scale.motor else (cls(),)


@dataclass(frozen=True)
class Balancer(Conservative):
    """``Gs · sin(q) + Gc · cos(q)``: a gravity-balancing spring on a lever, with arbitrary phase."""

    name: ClassVar[str] = "balancer"
    symbols: ClassVar[tuple[str, ...]] = ("Gs", "Gc")
    formula: ClassVar[str] = "Gs*sin(q) + Gc*cos(q)"

    def basis(self, motion: Sliding) -> Sequence[Array]:
        q = self._position(motion)
        return np.sin(q), np.cos(q)

    @classmethod
    def variants(cls, scale: AxisScale) -> Sequence[Law]:
        return () if scale.motor or scale.prismatic else (cls(),)


def recursion(keep: Array, add: Array, start: float) -> Array:
    """Returns ``z_k = keep_k z_{k−1} + add_k``, shape (N,): the solution of a triangular system with one band.

    Args:
        keep, add: Shape (N,).
        start: z before the first sample.
    """
    from scipy.linalg import lapack

    if not len(add):
        return add
    band, right = np.ones((len(add), 2)).T, add.copy()  # column-major, as LAPACK expects
    np.negative(keep[1:], out=band[1, :-1])
    right[0] += keep[0] * start
    return np.asarray(lapack.dtbtrs(band, right, uplo="L", diag="U", overwrite_b=True)[0])


def play(q: Array, radius: float, start: float) -> Array:
    """Applies the play (backlash) operator: a point that is dragged along at most one radius from q.

    ``p_k = min(max(p_{k−1}, q_k − r), q_k + r)``. Each step is a clip, and a composition of clips is a clip, so the
    history is a prefix scan over the turning points, in log2 of their number vectorised passes; between two turning points
    p is its value at the first, clipped.

    Args:
        q: Position, shape (N,) [rad or m].
        radius: r [rad or m].
        start: The point before the first sample [rad or m].

    Returns:
        The point p, shape (N,) [rad or m].
    """
    directions = np.sign(q[1:] - q[:-1])
    turns = np.concatenate([[0], np.flatnonzero(directions[1:] != directions[:-1]) + 1])[: len(q)]
    low, high = q[turns] - radius, q[turns] + radius
    span = 1
    while span < len(turns):
        bounds = low[span:].copy(), high[span:].copy()
        low[span:], high[span:] = (np.minimum(np.maximum(x[:-span], bounds[0]), bounds[1]) for x in (low, high))
        span *= 2
    at_turns = np.repeat(np.minimum(np.maximum(start, low), high), np.diff(turns, append=len(q)))
    return np.asarray(np.minimum(np.maximum(at_turns, q - radius), q + radius))
