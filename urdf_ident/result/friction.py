"""Friction and springs of a joint: torque against speed with its interval, equivalents for URDF and MuJoCo, stiffness."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..friction import AxisMotion, Law, Term
from ..linalg import Array
from ..model.elasticity import ElasticModel
from ..model.terms import RotorInertia
from ..samples import ReadOnly
from .intervals import functional_interval
from .record import Record

#: Number of points of a curve.
_POINTS = 161
#: A curve extends to the first multiple of the logs' speeds, or to the URDF's limit if that is within the second.
_BEYOND, _FAR = 1.25, 2.0
#: Laws that need no equivalent (a URDF cannot represent an offset, and nothing can replace it).
_EXACT = ("viscous", "coulomb", "offset")
#: Slowest speed of the fit of an equivalent, a fraction of the fastest; presliding dominates below it.
_SLOWEST = 0.05
#: Part of an equivalent that is a rounding error, as a fraction of the largest friction.
_ROUNDING = 1e-9
_WORDS = {"K": "stiffness", "D": "damping", "preload": "preload", "Ia": "rotor_inertia"}


@dataclass(frozen=True, eq=False)
class SteadyFriction(ReadOnly):
    """Friction curve of one joint that moves alone at constant speed.

    Attributes:
        speed: Shape (N,) [rad/s or m/s].
        torque: Friction torque of the exported model, including the offset, shape (N,) [N·m or N].
        interval: 95 % interval of the fit, from the data alone, shape (N, 2) [N·m or N]; ±inf if not determined.
        trained: Slowest and fastest speed of the logs [rad/s or m/s].
        limit: The URDF's speed limit [rad/s or m/s]; inf if it has none.
        load: Load torque of load-dependent friction [N·m or N]; 0 without such a law.
    """

    joint: str
    speed: Array
    torque: Array
    interval: Array
    trained: tuple[float, float]
    limit: float
    load: float


def friction_curves(ident: Record, alpha: float = 0.05) -> tuple[SteadyFriction, ...]:
    """The friction curve of every joint that has friction laws, in model order; alpha: one minus the level, a fraction."""
    model, curves = ident.model, []
    limits = model.robot.limit("velocity")
    for j, joint in enumerate(model.robot.joints):
        laws = [term for term, _, _ in _acting(ident, j) if _dissipates(term)]
        if not laws:
            continue
        trained = logged_speeds(ident, j)
        reach = max(abs(trained[0]), abs(trained[1]), 1e-6)
        limit = float(limits[j]) if np.isfinite(limits[j]) and limits[j] > 0 else float("inf")
        end = limit * 1.02 if reach < limit <= _FAR * reach else _BEYOND * reach
        v = np.linspace(-end, end, _POINTS)
        load = float(ident.load[j]) if any(law.loaded for law in laws) else 0.0
        columns = steady_friction_columns(ident, j, v, load)
        # infinite where the data do not determine the friction
        base, size = ident.fit.base, np.abs(columns).max(axis=1, initial=0.0)
        rows = columns[:, base.independent]
        interval = functional_interval(ident.fit, ident.factor, rows, alpha)
        lost = np.abs(columns[:, base.dependent] - rows @ base.K).max(axis=1, initial=0.0) > 1e-9 * size
        interval[lost | (columns[:, base.zero] != 0).any(axis=1)] = [-np.inf, np.inf]
        curves.append(SteadyFriction(joint, v, columns @ ident.theta, interval, trained, limit, load))
    return tuple(curves)


def steady_friction_columns(ident: Record, j: int, v: Array, load: float) -> Array:
    """Regressor of the friction torque of a joint.

    Args:
        j: Index of the joint, which moves alone at constant speed.
        v: Its speeds, shape (N,) [rad/s or m/s].
        load: Torque transmitted by its gear [N·m or N].

    Returns:
        Shape (N, p); multiplied by theta, it gives the friction torque of joint j [N·m or N].
    """
    rows = np.zeros((len(v), len(ident.theta)))
    for law, columns, share in _acting(ident, j):
        if _dissipates(law):
            q = np.cumsum(np.full_like(v, 1.0)) * np.sign(share * v)  # long enough for presliding to be over
            torque = np.full_like(v, load / abs(share))
            motion = AxisMotion(q, share * v, np.zeros_like(v), 1.0, torque, before=q[:1] - np.sign(share * v[:1]))
            rows[:, columns] = share * law.columns(motion)
    return rows


def _acting(ident: Record, j: int) -> Iterator[tuple[Term, slice, float]]:
    """Terms that act on a joint, their columns, and the speed of their axes if the joint moves alone at unit speed."""
    for applied, columns in ident.model.placed_terms:
        share = float(ident.model.drive.rate_weights(applied.axis, applied.side)[j])
        if share != 0:
            yield applied.term, columns, share


def _dissipates(term: Term) -> bool:
    return isinstance(term, Law) and not term.conservative


def logged_speeds(ident: Record, j: int) -> tuple[float, float]:
    """Returns the slowest and fastest speed of joint j in the logs of a result [rad/s or m/s]."""
    if (speeds := ident.traces.speeds) is not None:
        edges, count = speeds.edges[j], speeds.count[j]
        seen = np.flatnonzero(count > 0)
        return float(edges[seen[0]]), float(edges[seen[-1] + 1])
    return -float(ident.speed[j]), float(ident.speed[j])


def equivalent_friction(ident: Record) -> tuple[dict[str, float], dict[str, float], tuple[str, ...]]:
    """Returns viscous and Coulomb friction of every joint.

    If a joint has other laws too, they are replaced by the nonnegative line ``Fc + Fv |v|`` closest to the friction curve,
    averaged over both directions, over the speeds of the logs (load-dependent friction at the RMS torque of the logs). For
    a motor that drives several joints, each joint is taken to move alone.

    Returns:
        Joint name → viscous [N·m·s/rad or N·s/m] and Coulomb friction [N·m or N], and a note where they replace richer laws.
    """
    model = ident.model
    damping, friction, replaced = {}, {}, []
    for j, joint in enumerate(model.robot.joints):
        laws = {term.name for term, _, _ in _acting(ident, j) if isinstance(term, Law)}
        load = float(ident.load[j])
        v = np.linspace(_SLOWEST, 1.0, 40) * max(float(ident.speed[j]), 1e-6)
        curve = 0.5 * (steady_friction_columns(ident, j, v, load) - steady_friction_columns(ident, j, -v, load)) @ ident.theta
        if laws <= set(_EXACT):
            values = [_of_law(ident, j, "coulomb", 1), _of_law(ident, j, "viscous", 2)]
        else:
            from scipy.optimize import nnls

            line = nnls(np.column_stack([np.ones_like(v), v]), curve)[0]
            exact = line * [1.0, v[-1]] < _ROUNDING * np.abs(curve).max()
            values = np.where(exact, 0.0, line).tolist()
            replaced.append(joint)
        friction[joint], damping[joint] = (float(max(value, 0.0)) for value in values)
    note = f"friction of {', '.join(replaced)} is approximated by viscous and Coulomb friction over the speeds of the logs"
    return damping, friction, (note,) if replaced else ()


def armature(ident: Record) -> dict[str, float]:
    """Rotor inertia [kg·m² or kg] of each joint moving alone, by its name; MJCF cannot represent couplings between axes."""
    return {joint: _of_law(ident, j, RotorInertia.name, 2) for j, joint in enumerate(ident.model.robot.joints)}


def _of_law(ident: Record, j: int, name: str, power: int) -> float:
    """Sum of all terms of one name for a joint that moves alone, weighted with their speed ratios to a power."""
    terms = [(ident.theta[at.start], share) for term, at, share in _acting(ident, j) if term.name == name]
    return float(sum(value * abs(share) ** power for value, share in terms))


def springs(ident: Record, alpha: float = 0.05) -> dict[str, dict[str, Any]]:
    """Returns the elasticity of every joint, as stored in identification.json and joints.yaml.

    Args:
        alpha: One minus the level of confidence of the intervals, a fraction.

    Returns:
        Joint name → ``stiffness``, ``damping``, ``preload``, ``rotor_inertia`` (all after the gear of its motor) and
        ``rotor_inertia_at_motor`` (Υ), each with value, unit, standard error and interval; and how visible the spring is
        in the logs. Empty without elastic joints.
    """
    model = ident.model
    if not isinstance(model, ElasticModel):
        return {}
    from scipy.special import stdtrit

    reach = float(stdtrit(ident.fit.dof, 1 - alpha / 2))
    seen = {spring["joint"]: spring for spring in ident.solver.get("springs", ())}
    table: dict[str, dict[str, Any]] = {}
    for j, joint in enumerate(model.robot.joints):
        entry: dict[str, Any] = {"seen": joint not in model.rigid, "gear_ratio": float(model.drive.ratio[j])}
        for k in range(model.n_inertial, len(model.parameters)):
            term, geared = model.term_of(k), model.after_gear(k)
            if model.parameters[k].owner != joint or term.symbols[0] not in _WORDS:
                continue
            word = _WORDS[term.symbols[0]]
            value = geared * float(ident.theta[k])
            error = abs(geared) * float(ident.std_error[k]) if word == "rotor_inertia" or entry["seen"] else np.inf
            entry[word] = _number(value, error, reach, term.units(bool(model.robot.prismatic[j]))[0])
            if word == "rotor_inertia":
                square = float(model.drive.ratio[j] ** 2)
                entry["rotor_inertia_at_motor"] = _number(value / square, error / square, reach, "kg·m²")
        table[joint] = {**entry, **{key: value for key, value in seen.get(joint, {}).items() if key != "joint"}}
    return table


def _number(value: float, error: float, reach: float, unit: str) -> dict[str, Any]:
    return {"value": value, "unit": unit, "std_error": error, "interval": [value - reach * error, value + reach * error]}
