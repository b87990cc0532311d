"""Simulated rigid robots with their own inertia, rotors and friction, and their integration in time with stick-slip friction.

**rk4** (classical Runge-Kutta, fixed step) integrates with constant slip directions. When a slider's velocity changes
sign, the step is split at the zero crossing (Hermite interpolation, fourth order), the velocity is set to exactly zero and
a complementarity problem, solved by projected Gauss-Seidel, determines which sliders stick: friction is either within its
bounds, or at a bound with the slider moving. A slider that sticks has exactly zero acceleration until its friction limit is
exceeded; this is checked at the start of a step, so it may break away late by up to one step. While the sliders that stick
hold all coordinates, nothing moves during a step, and only this check remains.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from ..errors import ModelError, SimulationError, check_shape
from ..linalg import Array, BoolArray, IntArray, lstsq, positive, shaped
from ..model.rigid_bodies import with_inertias
from ..model.robot import Robot
from .truth import FrictionTruth


@dataclass(frozen=True, eq=False)
class RigidPlant:
    """A rigid robot with its own inertia (not necessarily the URDF's), rotors and friction.

    Create it with :meth:`create`. Not thread-safe: it contains Pinocchio's workspace.

    Attributes:
        model: Its own Pinocchio model; ``armature`` contains the rotors if they are not coupled.
        rotor: Rotor inertia seen from the joints, shape (n, n) [kg·m² or kg].
    """

    robot: Robot
    model: pin.Model
    rotor: Array
    friction: FrictionTruth
    data: pin.Data = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "data", self.model.createData())
        self.model.armature = np.zeros(self.model.nv) if self._coupled else np.diag(self.rotor).copy()

    @cached_property
    def _coupled(self) -> bool:
        """Whether Pinocchio's forward dynamics do not hold: rotors or joints are coupled."""
        return bool(self.robot.coupled) or bool(np.abs(self.rotor - np.diag(np.diag(self.rotor))).max(initial=0.0) > 0)

    @cached_property
    def _sprung(self) -> bool:
        return any(each.law.conservative for each in self.friction.joint)

    @classmethod
    def create(
        cls,
        robot: Robot,
        *,
        theta: ArrayLike | None = None,
        rotor_inertia: ArrayLike | None = None,
        friction: FrictionTruth | None = None,
        gravity: ArrayLike | None = None,
    ) -> RigidPlant:
        """Builds a plant.

        Args:
            robot: Kinematics, and inertia unless ``theta`` is given.
            theta: Ten inertial parameters of each body in the order of ``robot.bodies``, shape (10·n_bodies,)
                [kg, kg·m, kg·m²], about the joint frames' origins.
            rotor_inertia: Rotor inertia after the gear: shape (n,), or (n, n) for coupled drives [kg·m² or kg].
            friction: Its friction; none by default.
            gravity: Acceleration of gravity in the base frame, shape (3,) [m/s²]; the robot's by default.

        Raises:
            ModelError: A body with first moments but no mass, a negative rotor inertia, or friction for other joints.
            SimulationError: The mass matrix is not positive definite.
            ShapeError: Wrong shapes.
        """
        n = robot.n
        model = robot.model.copy() if theta is None else with_inertias(robot, theta)
        if gravity is not None:
            model.gravity.linear = shaped("gravity", gravity, (3,))
        rotor = np.zeros(n) if rotor_inertia is None else np.asarray(rotor_inertia, dtype=float)
        rotor = np.diag(rotor) if rotor.ndim == 1 else rotor
        check_shape("rotor_inertia", rotor.shape, (n, n))
        if not np.allclose(rotor, rotor.T) or np.linalg.eigvalsh(rotor)[0] < -1e-12 * np.abs(rotor).max():
            raise ModelError("the rotor inertia is not symmetric and positive", got=rotor.tolist())
        if friction is not None and friction.n != n:
            raise ModelError("the friction is for another number of joints", got=friction.n, expected=n)
        plant = cls(robot, model, rotor, friction or FrictionTruth(n))
        rng = np.random.default_rng(0)
        for _ in range(10):
            values, vectors = np.linalg.eigh(plant.mass(rng.uniform(-1.0, 1.0, n)))
            if not values[0] > 1e-12 * abs(values[-1]):
                j = int(np.argmax(np.abs(vectors[:, 0])))
                raise SimulationError(
                    "the mass matrix is not positive definite",
                    where=f"joint '{robot.joints[j]}'",
                    got=f"smallest eigenvalue {values[0]:.3g}",
                    remedy="give the body an inertia, or the joint a rotor",
                )
        return plant

    def mass(self, x: Array) -> Array:
        """Mass matrix with rotors, shape (n, n) [kg·m² or kg], at joint positions x, shape (n,) [rad or m]."""
        matrix = pin.crba(self.model, self.data, self.robot.posture(x))
        if self.robot.coupled:
            matrix = self.robot.coupling.T @ matrix @ self.robot.coupling
        return np.asarray(matrix + self.rotor if self._coupled else matrix.copy())

    def bias(self, x: Array, w: Array) -> Array:
        """Coriolis, centrifugal, gravity and spring torque, shape (n,), at joint positions and velocities, shapes (n,)."""
        speeds = self.robot.spread(w)
        rigid = self.robot.reduced(np.array(pin.nonLinearEffects(self.model, self.data, self.robot.posture(x), speeds)))
        return rigid + self.friction.springs(x) if self._sprung else rigid

    def accelerate(self, x: Array, w: Array, force: Array) -> Array:
        """Joint accelerations, shape (n,), for joint torques, shape (n,) [N·m or N]."""
        if self._coupled:
            return np.asarray(np.linalg.solve(self.mass(x), force - self.bias(x, w)))
        if self._sprung:
            force = force - self.friction.springs(x)
        return np.array(pin.aba(self.model, self.data, self.robot.posture(x), w, force))


#: ``(t [s], q (n,), v (n,), state (k,)) → (drive torque (n,), rate of state (k,))``.
Law = Callable[[float, Array, Array, Array], tuple[Array, Array]]

_NOTHING = np.zeros(0)
_EVENTS = 50  # most zero crossings resolved in one step


@dataclass
class Rates:
    """Accelerations, torques and state rates at one instant.

    Attributes:
        a: Accelerations of the plant's coordinates, shape (d,).
        tau: Drive torque, shape (n,) [N·m or N].
        friction: Friction on the coordinates, shape (d,).
        state: Rate of the controller's state, shape (k,).
        hold: Additional friction of the sliders that stick and of load-dependent laws, shape (K,); empty if none.
    """

    a: Array
    tau: Array
    friction: Array
    state: Array
    hold: Array


class StickSlip:
    """Integrates a plant with stick-slip friction.

    Args:
        plant: The plant.
        law: Drive torque and rate of the controller's state.
        x: Coordinates at the start, shape (d,) [rad or m].
        w: Velocities at the start, shape (d,) [rad/s or m/s].
        state: The controller's state at the start, shape (k,).

    ``sticking`` is the mask of sliders that currently stick, shape (K,).
    """

    def __init__(self, plant: RigidPlant, law: Law, x: Array, w: Array, state: Array) -> None:
        self.plant, self.law, self.friction = plant, law, plant.friction
        self.x, self.w, self.state = x, w, state
        self.bristles = np.zeros(self.friction.sliders)
        self.hard = self.friction.hard
        self._slips = bool(self.hard.any())
        #: for each slider the only joint that moves it, or −1 if there are several
        self._single: IntArray = np.arange(self.friction.sliders)
        if self.friction.transmission is not None:
            used = self.friction.transmission != 0
            self._single = np.where(used.sum(axis=1) == 1, used.argmax(axis=1), -1)
        self._holding: dict[bytes, bool] = {}
        self._known_limits: tuple[Array, Array] | None = None
        speed = self.friction.velocity(w)
        self._set_slip(np.where(self.hard, np.sign(speed), 0.0))
        self.still = self.hard & (speed == 0)  # at zero velocity: sticking, or about to slip
        self.load = plant.bias(x, w)
        self._known: Rates | None = None

    def _set_slip(self, slip: Array) -> None:
        """Sets the directions of slip, shape (K,); hard sliders with direction 0 stick."""
        self.slip, self.sticking = slip, np.asarray(self.hard & (slip == 0))
        self._sticks, self._all_hard = bool(self.sticking.any()), bool(self.hard.all())
        self._rests = self._sticks and self._hold_everything(self.sticking)

    def _hold_everything(self, sticking: BoolArray) -> bool:
        """Whether no coordinate can move while these sliders stick."""
        key = sticking.tobytes()
        if key not in self._holding:
            rows = np.array([self._row(row) for row in np.flatnonzero(sticking)])
            self._holding[key] = int(np.linalg.matrix_rank(rows)) == self.friction.n
        return self._holding[key]

    def rates(self, t: float) -> Rates:
        """Determines which sliders stick and returns the current accelerations and torques; t: time [s]."""
        if self._known is None:
            if self._slips and np.logical_or.reduce(self.still):
                if self.still is self.sticking:  # no slider has stopped since
                    self._known = self._evaluate(t, self.x, self.w, self.state, self.bristles)
                    if self._held(self._known):
                        return self._known
                self._decide(t)
            self._known = self._evaluate(t, self.x, self.w, self.state, self.bristles)
        return self._known

    def _held(self, now: Rates) -> bool:
        """Whether the sliders that stick keep sticking: their friction is within its limits."""
        low, high = self._limits()
        slack = 1e-9 * (high - low)
        return bool(((low + slack < now.hold) & (now.hold < high - slack))[self.sticking].all())

    def _limits(self) -> tuple[Array, Array]:
        """Range of friction of the sliders that stick, shapes (K,)."""
        friction = self.friction
        if self._known_limits is None or friction.memory or friction.load is not None:
            self._known_limits = friction.interval(self.bristles, self.load)
        return self._known_limits

    def refresh(self) -> None:
        """Discards the cached rates after a change of the drive torque."""
        self._known = None

    def step(self, t: float, length: float) -> None:
        """Integrates one step; t: current time [s]; length: length of the step [s]."""
        end = t + length
        for _ in range(_EVENTS):
            start = self.rates(t)
            if self._rests:
                return self._accept(end - t, self.x, self.w, self._state_at_rest(t, end - t, start))
            x, w, state = self._runge_kutta(t, end - t, start)
            if not self._slips:
                return self._accept(end - t, x, w, state)
            wrong = (self.slip * self.friction.velocity(w)) < 0
            if not np.logical_or.reduce(wrong):
                return self._accept(end - t, x, w, state)
            reluctant = wrong & self.still
            if reluctant.any():  # released, but would reverse at once: it sticks
                self._set_slip(np.where(reluctant, 0.0, self.slip))
                self._known = self._evaluate(t, self.x, self.w, self.state, self.bristles)
                continue
            fraction, crossing = self._first_crossing(t, end - t, start, (x, w, state), wrong)
            self._accept(fraction * (end - t), *self._runge_kutta(t, fraction * (end - t), start), crossing)
            t += fraction * (end - t)
            if end - t <= 1e-9 * length:
                return None
        start = self.rates(t)
        x, w, state = self._runge_kutta(t, end - t, start)
        return self._accept(end - t, x, w, state, (self.slip * self.friction.velocity(w)) < 0)

    def _accept(self, seconds: float, x: Array, w: Array, state: Array, crossing: BoolArray | None = None) -> None:
        self.bristles = self._bent(x, seconds)
        self.x, self.w, self.state, self._known = x, w, state, None
        self.still = self.sticking
        if crossing is not None and crossing.any():
            self.still = self.still | crossing
            self._set_slip(np.where(crossing, 0.0, self.slip))
            # velocities of stopped sliders become exactly zero, with the least change in the mass metric
            rows = np.flatnonzero(self.still)
            single = self._single[rows]
            if self._hold_everything(self.still):
                self.w = np.zeros_like(w)
            elif (single < 0).any():
                g = np.array([self._row(row) for row in rows])
                response = np.linalg.solve(self.plant.mass(x), g.T)
                self.w = w - response @ lstsq(g @ response, g @ w, rcond=None)[0]
            else:
                self.w = w.copy()
            self.w[single[single >= 0]] = 0.0

    def _runge_kutta(self, t: float, h: float, first: Rates) -> tuple[Array, Array, Array]:
        d = len(self.x)

        def slope(after: float, now: Array) -> Array:
            x, w = now[:d], now[d : 2 * d]
            rates = self._evaluate(t + after, x, w, now[2 * d :], self._bent(x, after))
            return np.concatenate([w, rates.a, rates.state])

        start = np.concatenate([self.x, self.w, self.state])
        end = _rk4(slope, start, h, np.concatenate([self.w, first.a, first.state]))
        return end[:d], end[d : 2 * d], end[2 * d :]

    def _state_at_rest(self, t: float, h: float, first: Rates) -> Array:
        """The controller's state after a step in which the plant does not move."""
        if not len(self.state):
            return self.state
        return _rk4(lambda after, state: self.law(t + after, self.x, self.w, state)[1], self.state, h, first.state)

    def _bent(self, x: Array, seconds: float) -> Array:
        if not self.friction.memory:
            return self.bristles
        return self.friction.advance(self.bristles, self.friction.velocity(x - self.x), seconds)

    def _evaluate(self, t: float, x: Array, w: Array, state: Array, bristles: Array) -> Rates:
        plant, friction = self.plant, self.friction
        tau, rate = self.law(t, x, w, state)
        speed = friction.velocity(w)
        slip = self.slip if self._all_hard else np.where(self.hard, self.slip, np.sign(speed))
        torque = friction.torque(speed, slip, bristles)
        resisting = friction.to_joints(torque)
        net = tau - resisting
        if friction.load is None and not self._sticks:
            return Rates(plant.accelerate(x, w, net), tau, resisting, rate, _NOTHING)
        a, extra = self._constrained(x, w, net, slip, self.sticking)
        return Rates(a, tau, friction.to_joints(torque + extra), rate, extra)

    def _constrained(self, x: Array, w: Array, net: Array, slip: Array, stuck: BoolArray) -> tuple[Array, Array]:
        """Accelerations with sticking sliders and load-dependent friction, and the additional friction of both."""
        mass, bias, coefficient = self.plant.mass(x), self.plant.bias(x, w), self.friction.load
        extra = np.zeros(self.friction.sliders)
        if coefficient is None:
            a, hold = self._solve(mass, net - bias, stuck)
            extra[stuck] = hold
            return a, extra
        n, link = len(coefficient), mass - self.plant.rotor
        for _ in range(6):  # linear for given signs of the loads, which rarely change
            factor = np.where(stuck[:n], 0.0, slip[:n] * coefficient * np.sign(self.load))
            a, hold = self._solve(mass + factor[:, None] * link, net - (1.0 + factor) * bias, stuck)
            load = link @ a + bias
            agreed = (np.sign(load) == np.sign(self.load)).all()
            self.load = load
            if agreed:
                break
        extra[:n] = factor * load
        extra[stuck] += hold
        return a, extra

    def _solve(self, matrix: Array, rhs: Array, stuck: BoolArray) -> tuple[Array, Array]:
        """Solves ``matrix·a + Gᵀ·hold = rhs`` with ``G·a = 0`` on the sliders that stick."""
        if not stuck.any():
            return np.asarray(np.linalg.solve(matrix, rhs)), np.zeros(0)
        rows = np.flatnonzero(stuck)
        joints = self._single[rows]
        if self._hold_everything(stuck) and (joints < 0).any():
            g = np.array([self._row(row) for row in rows])
            return np.zeros(len(rhs)), np.asarray(lstsq(g.T, rhs, rcond=None)[0])
        if (joints >= 0).all():
            a, free = np.zeros(len(rhs)), np.ones(len(rhs), dtype=bool)
            free[joints] = False
            if free.any():
                a[free] = np.linalg.solve(matrix[np.ix_(free, free)], rhs[free])
            left, hold, seen = rhs - matrix @ a, np.zeros(len(rows)), set()
            for k, joint in enumerate(joints.tolist()):  # with two sliders on one joint the first one holds it
                if joint not in seen:
                    hold[k] = left[joint] / self._row(rows[k])[joint]
                    seen.add(joint)
            return a, hold
        g = np.array([self._row(row) for row in rows])
        response = np.linalg.solve(matrix, np.column_stack([g.T, rhs]))
        delassus, free_slip = g @ response[:, :-1], g @ response[:, -1]
        if len(rows) == 1:
            hold = free_slip / delassus[0, 0]
        else:  # several sliders may hold the same joint: minimum-norm solution
            hold = lstsq(delassus, free_slip, rcond=None)[0]
        a = response[:, -1] - response[:, :-1] @ hold
        a[joints[joints >= 0]] = 0.0
        return a, hold

    def _decide(self, t: float) -> None:
        """Determines which sliders at zero velocity stick, and the slip of the others (linear complementarity problem)."""
        friction, rows = self.friction, np.flatnonzero(self.still)
        tau, _ = self.law(t, self.x, self.w, self.state)
        speed = friction.velocity(self.w)
        slip = np.where(self.still, 0.0, np.where(self.hard, self.slip, np.sign(speed)))
        torque = friction.torque(speed, slip, self.bristles)
        if friction.load is not None:
            n = len(friction.load)
            torque[:n] += slip[:n] * friction.load * np.abs(self.load)
        net = tau - friction.to_joints(torque) - self.plant.bias(self.x, self.w)
        low, high = (limit[rows] for limit in self._limits())
        g = np.array([self._row(row) for row in rows])
        inverse_g = np.linalg.solve(self.plant.mass(self.x), np.column_stack([g.T, net]))
        delassus, free = g @ inverse_g[:, :-1], g @ inverse_g[:, -1]
        hold = _projected_gauss_seidel(delassus, free, low, high)
        a = free - delassus @ hold
        tiny = 1e-9 * (np.abs(free).max() + 1e-3)
        moves = (np.abs(a) > tiny) & ((hold >= high) | (hold <= low))
        new = self.slip.copy()
        new[rows] = np.where(moves, np.sign(a), 0.0)
        self._set_slip(new)

    def _first_crossing(
        self, t: float, h: float, start: Rates, end: tuple[Array, Array, Array], wrong: BoolArray
    ) -> tuple[float, BoolArray]:
        """Fraction of the step until the first slider stops, and the sliders that stop then."""
        x, w, state = end
        last = self._evaluate(t + h, x, w, state, self._bent(x, h))
        before, after = self.friction.velocity(self.w), self.friction.velocity(w)
        slope, slope_end = (h * self.friction.velocity(rates.a) for rates in (start, last))
        fractions = np.full(len(wrong), np.inf)
        for k in np.flatnonzero(wrong):
            rise = after[k] - before[k]
            cubic = [slope[k] + slope_end[k] - 2 * rise, 3 * rise - 2 * slope[k] - slope_end[k], slope[k], before[k]]
            if not np.isfinite(cubic).all():
                raise SimulationError(
                    "the motion grows without bound",
                    where=f"t = {t:.4g} s",
                    remedy="check friction and masses, or take smaller steps",
                )
            roots = np.roots(cubic)
            real = roots.real[(np.abs(roots.imag) < 1e-9) & (roots.real > 0) & (roots.real <= 1)]
            fractions[k] = real.min() if len(real) else before[k] / (before[k] - after[k])
        fraction = float(fractions.min())
        return fraction, wrong & (fractions <= fraction * (1 + 1e-9) + 1e-12)

    def _row(self, slider: int | np.integer[Any]) -> Array:
        transmission = self.friction.transmission
        if transmission is None:
            row = np.zeros(self.friction.n)
            row[slider] = 1.0
            return row
        return np.asarray(transmission[slider])


def _rk4(slope: Callable[[float, Array], Array], y: Array, h: float, first: Array) -> Array:
    """One step of the classical Runge-Kutta method from the slope at its begin."""
    second = slope(h / 2, y + h / 2 * first)
    third = slope(h / 2, y + h / 2 * second)
    return np.asarray(y + h / 6 * (first + 2 * second + 2 * third + slope(h, y + h * third)))


def _projected_gauss_seidel(matrix: Array, free: Array, low: Array, high: Array) -> Array:
    """``hold`` within bounds such that ``free − matrix·hold`` is zero or points beyond the active bound."""
    hold = np.zeros(len(free))
    scale = positive(np.abs(free).max())
    for _ in range(500):
        change = 0.0
        for k in range(len(hold)):
            new = min(max(hold[k] + (free[k] - matrix[k] @ hold) / matrix[k, k], low[k]), high[k])
            change = max(change, abs(new - hold[k]) * matrix[k, k])
            hold[k] = new
        if change < 1e-13 * scale:
            break
    return hold
