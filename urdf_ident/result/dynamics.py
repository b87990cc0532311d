"""The terms of the identified equation of motion, the identified robot as a Pinocchio model, and its adaptive model.

``torque(q, v, a) = M(q) a + coriolis(q, v) + gravity(q) + friction(v)``. The mass matrix includes reflected rotor inertias. Of
every joint also friction against speed with its interval, its equivalent for URDF and MuJoCo, and the stiffness of its spring.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from ..compensation.adaptive import AdaptiveModel
from ..compensation.friction_filter import FilterSettings
from ..errors import EstimationError, ModelError
from ..friction import SATURATED, SIGN_WIDTH, AxisMotion, Law, Sliding, Term
from ..linalg import Array, positive
from ..model.elasticity import ElasticModel
from ..model.rigid_bodies import with_inertias
from ..model.terms import RotorInertia
from ..model.trained import without_inertia, without_joint_terms
from ..samples import ReadOnly
from .intervals import functional_interval, joint_arrays, mass_matrix, require_rigid
from .record import Record

#: Relative torque error at which forward dynamics has converged, and its maximum steps (load-dependent friction only).
_CONVERGED, _STEPS = 1e-12, 200
#: Top speed over the 95 % quantile of speed, used if the quantiles of held-out residuals do not give it.
_TOP = 1.2
#: Speeds at which friction must dissipate, beside one beyond the smooth sign, as fractions of the top speed.
_PARTS = (0.5, 1.0)
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


def gravity(ident: Record, q: ArrayLike) -> Array:
    """Returns the torque that holds the links against gravity.

    Args:
        q: Joint positions, shape (N, n) or (n,) [rad or m].

    Returns:
        Shape as ``q`` [N·m or N].

    Raises:
        ModelError: Elastic joints.
        ShapeError: The array does not fit.
    """
    (position,) = joint_arrays(ident, q=q)
    return _rigid(ident, position, np.zeros_like(position))


def coriolis(ident: Record, q: ArrayLike, v: ArrayLike) -> Array:
    """Returns the Coriolis and centrifugal torque ``C(q, v) v``.

    Args:
        q, v: Joint positions and velocities, shape (N, n) or (n,) [rad, rad/s or m, m/s].

    Returns:
        Shape as ``q`` [N·m or N].

    Raises:
        ModelError: Elastic joints.
        ShapeError: The arrays do not fit.
    """
    position, velocity = joint_arrays(ident, q=q, v=v)
    return _rigid(ident, position, velocity) - _rigid(ident, position, np.zeros_like(position))


def friction(ident: Record, v: ArrayLike, q: ArrayLike | None = None, a: ArrayLike | None = None) -> Array:
    """Returns the friction torque of all laws of the model, including offsets but not rotor inertia.

    Args:
        ident: The result, without elastic joints.
        v: Joint velocities, shape (N, n) or (n,) [rad/s or m/s].
        q: Joint positions, same shape [rad or m]; needed by laws that depend on the load or on the past motion.
        a: Joint accelerations, same shape [rad/s² or m/s²]; 0 if None. Only load-dependent laws use them.

    Returns:
        Shape as ``v`` [N·m or N].

    Raises:
        ModelError: The joints are elastic, or a law needs positions and none are given.
        ShapeError: The arrays do not fit.
    """
    zero = np.zeros_like(v, dtype=float)
    if q is None and any(applied.term.loaded or applied.term.name == "presliding" for applied in ident.model.terms):
        raise ModelError(
            "friction of this model depends on the position (load or presliding)",
            got="no q",
            remedy="call friction(v, q), or friction(v, q, a)",
        )
    velocity, position, acceleration = joint_arrays(ident, v=v, q=zero if q is None else q, a=zero if a is None else a)
    return ident.model.torque(without_inertia(ident.model, ident.theta), position, velocity, acceleration)


def forward(ident: Record, q: ArrayLike, v: ArrayLike, tau: ArrayLike) -> Array:
    """Forward dynamics: the acceleration at which the identified inverse dynamics gives this torque.

    Load-dependent friction makes the equation nonlinear in the acceleration; it is solved to machine precision.

    Args:
        q, v: Joint positions and velocities, shape (N, n) or (n,) [rad, rad/s or m, m/s].
        tau: Joint torques, same shape [N·m or N].

    Returns:
        Joint accelerations, shape as ``q`` [rad/s² or m/s²].

    Raises:
        ModelError: Elastic joints.
        EstimationError: The mass matrix is singular, or the equation has no solution (friction above the torque).
        ShapeError: The arrays do not fit.
    """
    arrays = joint_arrays(ident, q=q, v=v, tau=tau)
    accelerations = np.zeros_like(np.atleast_2d(arrays[0]))
    for a, position, velocity, torque in zip(accelerations, *map(np.atleast_2d, arrays), strict=True):
        mass, missing = mass_matrix(ident, position), torque - ident.torque(position, velocity, a)
        scale = positive(max(float(np.abs(torque).max()), float(np.abs(torque - missing).max())))
        for _ in range(_STEPS):
            if float(np.abs(missing).max()) <= _CONVERGED * scale:
                break
            try:
                a += np.linalg.solve(mass, missing)
            except np.linalg.LinAlgError as error:
                raise EstimationError(
                    "the mass matrix is singular at this pose",
                    got=position.tolist(),
                    remedy="identify with consistency.method: lmi",
                ) from error
            missing = torque - ident.torque(position, velocity, a)
        if float(np.abs(missing).max()) > 1e-6 * scale:
            raise EstimationError(
                "no acceleration has this torque",
                got=f"{np.abs(missing).max():.3g} N·m left after {_STEPS} steps",
                remedy="load-dependent friction above 1 is no friction: identify again",
            )
    return accelerations.reshape(arrays[0].shape)


def to_pinocchio(ident: Record) -> pin.Model:
    """Returns the identified robot as a Pinocchio model with inertias, ``armature``, ``damping`` and ``friction``.

    Inverse and forward dynamics of Pinocchio use inertias and armature; damping and Coulomb friction are for the caller (and
    for simulators built on it). If the joint has other laws, they are the closest pair over the speeds of the logs. The
    armature is diagonal: if a motor drives several joints, the coupling by its rotor is omitted.

    Returns:
        A new model, joints in the order of ``ident.model.robot.tree_joints``; those that mimic others are independent in it.

    Raises:
        ModelError: Elastic joints.
    """

    require_rigid(ident)
    robot, (damping, coulomb, _), rotors = ident.model.robot, equivalent_friction(ident), armature(ident)
    model = with_inertias(robot, ident.theta[: ident.model.n_inertial], np.array([rotors[name] for name in robot.joints]))
    model.damping = robot.in_tree(np.array([damping[name] for name in robot.joints]))
    level = robot.in_tree(np.array([coulomb[name] for name in robot.joints]))
    model.friction = level
    if hasattr(model, "lowerDryFrictionLimit"):  # Pinocchio 4 has one limit per direction
        model.lowerDryFrictionLimit = -level
    return model


def _rigid(ident: Record, q: Array, v: Array) -> Array:
    return ident.model.torque(without_joint_terms(ident.model, ident.theta), q, v, np.zeros_like(q))


def filter_settings(ident: Record, memory: float = np.inf, caution: float = 1.0) -> FilterSettings:
    """Returns the settings of the filter: spreads and noise between the logs of a result.

    Args:
        memory: Time constant of motion with which deviations return to the mean [s]; inf: never.
        caution: Factor on the residual's variance.
    """
    changes, model = ident.fit.changes, ident.model
    if changes is None or not changes.known:
        raise EstimationError(
            "adaptation needs the spread of friction between logs",
            where=model.robot.name,
            got=f"{len(ident.inputs)} log(s)",
            expected="two or more, better five, of different days",
            remedy="record more logs and identify from all of them together",
        )
    n = model.n
    laws = {
        k: applied.term
        for applied, columns in model.placed_terms
        if isinstance(applied.term, Law) and applied.side == "joint"
        for k in range(columns.start, columns.stop)
    }
    spread, power, width = np.zeros((n, 2)), np.ones(n), np.full(n, SIGN_WIDTH)
    for k, (j, kind) in enumerate(zip(changes.axes, changes.kinds, strict=True)):
        law = laws.get(changes.columns[k][0])
        if law is None:  # on the motor side of a coupled drive
            continue
        size = float(changes.spread[k]) * (float(ident.load[j]) if kind == "load" else 1.0)
        column = 1 if kind == "viscous" else 0
        spread[j, column] = np.hypot(spread[j, column], size)
        if kind == "viscous":
            power[j] = law.power
        elif "width" in law.shapes and law.shapes["width"].kind == "speed":
            width[j] = float(vars(law)["width"])
    residual, slow = np.ones((2, n))
    for (group, sigma), noise in zip(ident.fit.sigma.items(), changes.noise, strict=True):
        side, name = group.split(":", 1)
        if side == "joint":
            j = model.robot.joints.index(name)
            residual[j], slow[j] = sigma, noise
        elif name in model.robot.joints:
            spread[model.robot.joints.index(name)] = 0.0
    top = np.maximum(_TOP * ident.speed if ident.prediction is None else ident.prediction.top, 2 * SATURATED * width)
    # minimum friction of every joint at some speeds, without load, in the weaker direction, shape (n, 3)
    speeds = np.column_stack([SATURATED * width, *(share * top for share in _PARTS)])
    friction = np.zeros((n, 2, speeds.shape[1]))
    for applied, span in model.placed_terms:
        if isinstance(applied.term, Law) and applied.side == "joint" and not (applied.term.bias or applied.term.conservative):
            for k, sign in enumerate((1.0, -1.0)):
                v = sign * speeds[applied.axis]
                columns = applied.term.basis(Sliding(v, np.zeros_like(v), np.full_like(v, sign)))
                friction[applied.axis, k] += sign * sum(value * x for value, x in zip(ident.theta[span], columns, strict=True))
    least = np.asarray(np.maximum(friction.min(axis=1), 0.0))
    return FilterSettings(spread, power, residual, slow, float(ident.signals["decimate"]), top, least, width, memory, caution)


def adaptive_model(
    ident: Record, memory: float | str = "auto", *, rate: float | None = None, state: Mapping[str, Any] | None = None
) -> AdaptiveModel:
    """Returns a model that adapts its friction online: ``update``, ``torque``.

    Args:
        memory: Time constant of motion with which friction returns to its mean [s]; "auto": least held-out error, without
            joints for which adaptation does not help.
        rate: Updates per second [Hz]; that of the logs if None.
        state: ``as_dict()`` of an earlier model, to continue from its state.

    Raises:
        EstimationError: The spread between logs is unknown.
        ModelError: The joints are elastic, or the memory is invalid.
    """
    if ident.online is None:
        raise ModelError("a model with elastic joints does not adapt", remedy="identify with model.elastic: false")
    if isinstance(memory, str):
        if memory != "auto":
            raise ModelError("unknown memory", got=repr(memory), expected='seconds, or "auto"')
        settings = chosen_settings(ident)
    else:
        settings = filter_settings(ident, float(memory))
    return AdaptiveModel(ident.online, settings, float(ident.signals["rate"]) if rate is None else rate, state)


def chosen_settings(ident: Record) -> FilterSettings:
    """Returns the settings with the least held-out error, without spread for joints for which adaptation does not help."""
    chosen = ident.adaptation
    if chosen is None:
        return filter_settings(ident)
    settings = filter_settings(ident, chosen.memory, chosen.caution)
    return replace(settings, spread=np.where(np.array(chosen.used)[:, None], settings.spread, 0.0))


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
