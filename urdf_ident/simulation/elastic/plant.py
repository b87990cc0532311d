"""A robot with elastic joints, simulated independently of the regressor used for its identification (docs/theory.md §4).

Every rotor is a separate body in a Pinocchio model: a massless disc on the preceding body that turns by r·θ about the
joint's axis. The articulated-body algorithm is then exact, including gyroscopic torques of the rotors. Springs make the
plant stiff and lightly damped: a wrist may oscillate at a kilohertz.

Where motors move several joints, the deformation of motor k's spring is ``θ − G q`` after the gear (G is
:attr:`.Drive.geared`), and its torque acts on the joints through ``Gᵀ``. Such rotors are placed on the base, because their
orientation in the arm is unknown.

Explicit methods need steps far below the period of the stiffest spring, and common implicit methods add numerical damping.
Gauss collocation (``x'' = f(x, x')``, three stages, sixth order) is stable at any frequency and conserves the energy of
every linear oscillation exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from ...errors import SimulationError, check_shape
from ...linalg import Array, BoolArray, one_each, shaped
from ...model.rigid_bodies import with_inertias
from ...model.robot import Robot
from ...samples import Segment
from ..truth import FrictionTruth

_GAUSS = np.polynomial.legendre.leggauss(3)
#: Instants of the stages, as fractions of a step, and the weights of their rates in it.
NODES, _B = 0.5 * (1 + _GAUSS[0]), 0.5 * _GAUSS[1]
#: Coefficients of a quadratic polynomial through values at the stages.
_POLYNOMIAL = np.linalg.inv(np.vander(NODES, 3, increasing=True))
#: Integrals of that polynomial up to each stage.
_A = NODES[:, None] * np.vander(NODES, 3, increasing=True) / np.arange(1, 4) @ _POLYNOMIAL
#: Extrapolation of the last step's stages to the next step, as initial guess for Newton's method.
_AHEAD = np.vander(NODES + 1, 3, increasing=True) @ _POLYNOMIAL
#: Change of the velocities in an iteration, relative to 1 plus their size, at which it has converged, and up to which rounding
#: may keep it; most iterations with the Jacobian of an earlier step, and with a new one.
_TOLERANCE, _ROUNDED = 1e-12, 1e-10
_ROUNDS, _MOST_ROUNDS = 8, 40
#: Smallest step length of the damped Newton method.
_SHORTEST = 1e-3


class Collocation:
    """Integrates a plant with a control law; the stages' accelerations are found by Newton's method with a reused Jacobian.

    If this fails because friction is strongly nonlinear within a step, the Jacobian is evaluated at every stage.

    Args:
        system: The integrated system.
        step: Step h [s].
    """

    def __init__(self, system: _Driven, step: float) -> None:
        self.system, self.step = system, step
        self._stages: Array | None = None
        self._inverse: Array | None = None

    def advance(self, k: int, x: Array, v: Array) -> tuple[Array, Array]:
        """Integrates one step.

        Args:
            x: Coordinates at its start, shape (d,).
            v: Velocities at its start, shape (d,).

        Returns:
            Coordinates and velocities at its end, shape (d,) each.

        Raises:
            SimulationError: Newton's method does not converge.
        """
        h = self.step
        guess = np.zeros((3, len(x))) if self._stages is None else _AHEAD @ self._stages
        stages = None if self._inverse is None else self._solve(self._inverse, k, x, v, guess, _ROUNDS)
        if stages is None:
            by_state, by_speed = self.system.slopes(k, 1, x + 0.5 * h * v, v)
            self._inverse = np.asarray(
                np.linalg.inv(np.eye(3 * len(x)) - h**2 * np.kron(_A @ _A, by_state) - h * np.kron(_A, by_speed))
            )
            stages = self._solve(self._inverse, k, x, v, guess, _MOST_ROUNDS)
        if stages is None:
            stages = self._search(k, x, v, guess)
        if stages is None:
            raise SimulationError(
                "the plant cannot be integrated",
                where=f"t = {k * self.step:.4g} s",
                got=f"step {self.step:g} s",
                remedy="take a shorter step, softer gains, or a wider smooth sign of friction",
            )
        self._stages = stages
        return x + h * v + h**2 * (_B @ _A @ stages), v + h * (_B @ stages)

    def _solve(self, inverse: Array, k: int, x: Array, v: Array, stages: Array, rounds: int) -> Array | None:
        h, last = self.step, np.inf
        for turn in range(rounds):
            V, left = self._left(k, x, v, stages)[1:]
            change = (inverse @ left.ravel()).reshape(stages.shape)
            stages = stages + change
            size, scale = h * float(np.abs(change).max()), 1.0 + float(np.abs(V).max())
            if not np.isfinite(size):
                return None
            if size <= _TOLERANCE * scale:
                return stages
            if size > 0.7 * last and turn > 2:  # rounding level reached, or no convergence with this Jacobian
                return stages if size <= _ROUNDED * scale else None
            last = size
        return None

    def _left(self, k: int, x: Array, v: Array, stages: Array) -> tuple[Array, Array, Array]:
        """Coordinates and velocities at the stages, and the residuals of their accelerations, shape (3, d) each."""
        h = self.step
        V = v + h * (_A @ stages)
        X = x + h * NODES[:, None] * v + h**2 * (_A @ (_A @ stages))
        return X, V, np.array([self.system.acceleration(k, i, X[i], V[i]) for i in range(3)]) - stages

    def _search(self, k: int, x: Array, v: Array, stages: Array) -> Array | None:
        """Damped Newton method with the Jacobian of every stage, for friction that is nonlinear within a step."""
        h, d = self.step, len(x)
        X, V, left = self._left(k, x, v, stages)
        for _ in range(_MOST_ROUNDS):
            slopes = [self.system.slopes(k, i, X[i], V[i]) for i in range(3)]
            rows = [h**2 * np.kron((_A @ _A)[i], S) + h * np.kron(_A[i], D) for i, (S, D) in enumerate(slopes)]
            change = np.linalg.solve(np.eye(3 * d) - np.vstack(rows), left.ravel()).reshape(stages.shape)
            if h * float(np.abs(change).max()) <= _ROUNDED * (1.0 + float(np.abs(V).max())):
                return stages + change
            size, damping = np.linalg.norm(left), 1.0
            while damping > _SHORTEST:
                X, V, left = self._left(k, x, v, stages + damping * change)
                if np.linalg.norm(left) < (1.0 - 0.1 * damping) * size:
                    break
                damping /= 2
            else:
                return None
            stages = stages + damping * change
        return None


class MotorFriction:
    """Friction at the motors of an elastic plant with smooth signs, so that motors creep instead of sticking.

    Args:
        truth: The friction; its joint friction acts at the motors, after the gear.
        width: Half-width of the smooth sign, after the gear, number or shape (n,) [rad/s or m/s].

    Raises:
        SimulationError: A law with memory, or one that depends on the load.
    """

    def __init__(self, truth: FrictionTruth, width: ArrayLike = 0.01) -> None:
        for each in (*truth.joint, *truth.motor):
            if each.law.memory or each.law.loaded:
                raise SimulationError(
                    "this friction cannot be simulated with elastic joints",
                    got=type(each.law).__name__,
                    remedy="take another law in the truth, or simulate the robot as rigid",
                )
        self.truth, self.width = truth, np.asarray(width, dtype=float)
        self._direction = np.sign(truth.velocity(np.ones(truth.n)))
        self._still = np.zeros(truth.sliders)

    def torque(self, speed: Array) -> Array:
        """Returns the friction torque, shape of ``speed`` [N·m or N].

        Args:
            speed: Motor velocity after the gear, shape (…, n) [rad/s or m/s].
        """
        truth, smooth = self.truth, np.tanh(speed / self.width)
        sign = smooth if truth.transmission is None else self._direction * np.concatenate([smooth, smooth], axis=-1)
        return truth.to_joints(truth.torque(truth.velocity(speed), sign, self._still))

    def slope(self, speed: Array) -> Array:
        """Derivative of the torque with respect to speed; each motor's friction depends only on its own speed.

        Args:
            speed: Motor velocity after the gear, shape (…, n) [rad/s or m/s].

        Returns:
            Shape of ``speed`` [N·m·s/rad or N·s/m].
        """
        step = 1e-4 * self.width
        return np.asarray((self.torque(speed + step) - self.torque(speed - step)) / (2 * step))


class ElasticPlant:
    """Robot with elastic joints.

    Args:
        robot: The robot.
        stiffness: K, number or shape (n,) [N·m/rad or N/m], positive.
        rotor_inertia: r²Υ, after the gear, number or shape (n,) [kg·m² or kg], positive.
        ratio: Gear ratio r, number or shape (n,) [motor rad per joint rad or m]; may be negative.
        geared: G, motor motion after the gears from joint motion, shape (n, n); identity if None.
        damping: D, number or shape (n,) [N·m·s/rad or N·s/m], not negative.
        friction: Friction at the motors; none if None.
        theta: Inertial parameters of the bodies, shape (10 n,), instead of the URDF's.

    Raises:
        SimulationError: A stiffness or rotor inertia that is not positive, a negative damping, or a gear ratio of zero.
    """

    def __init__(
        self,
        robot: Robot,
        *,
        stiffness: ArrayLike,
        rotor_inertia: ArrayLike,
        ratio: ArrayLike,
        geared: ArrayLike | None = None,
        damping: ArrayLike = 0.0,
        friction: MotorFriction | None = None,
        theta: Array | None = None,
    ) -> None:
        n = robot.n
        self.robot, self.n = robot, n
        each = partial(one_each, n=n, error=SimulationError)
        self.stiffness, self.rotor_inertia = each("stiffness", stiffness), each("rotor_inertia", rotor_inertia)
        self.ratio, self.damping = each("ratio", ratio), each("damping", damping)
        self.geared = np.eye(n) if geared is None else np.asarray(geared, dtype=float)
        check_shape("geared", self.geared.shape, (n, n))
        self.friction = friction or MotorFriction(FrictionTruth(n))
        for name, values, good, expected in (
            ("stiffness", self.stiffness, self.stiffness > 0, "a positive number; of a rigid joint a very large one"),
            ("rotor inertia", self.rotor_inertia, self.rotor_inertia > 0, "a positive number"),
            ("spring damping", self.damping, self.damping >= 0, "zero or a positive number"),
            ("gear ratio", self.ratio, np.abs(self.ratio) > 0, "a number that is not zero"),
        ):
            if not good.all():
                j = int(np.argmin(good))
                raise SimulationError(
                    f"impossible {name}", where=f"joint '{robot.joints[j]}'", got=f"{values[j]:g}", expected=expected
                )
        apart = (self.geared == np.eye(n)).all(axis=0) & (self.geared == np.eye(n)).all(axis=1)
        self.model, self._links, self._rotors = _with_rotors(robot, self.ratio, self.rotor_inertia, theta, apart)
        self._data = self.model.createData()
        self._order = np.concatenate([self._links, self._rotors])
        self._place = np.argsort(self._order)
        self._scale = np.concatenate([np.ones(n), self.ratio])

    def at_motors(self, motion: Array) -> Array:
        """Returns motor positions or velocities for rigid springs, shape (…, n), after the gear.

        Args:
            motion: Link positions or velocities, shape (…, n) [rad, m, rad/s or m/s].
        """
        return np.asarray(motion @ self.geared.T)

    def gravity(self, q: Array) -> Array:
        """Returns the motor torques that balance gravity, shape (N, n) [N·m or N], after the gear.

        Args:
            q: Link positions, shape (N, n) [rad or m].
        """
        out = np.empty((len(q), self.n))
        for k, row in enumerate(q):
            pin.computeGeneralizedGravity(self.model, self._data, self._full(np.concatenate([row, row])))
            out[k] = self._data.g[self._links]
        return out @ np.linalg.inv(self.geared)

    def rest(self, q: Array) -> Array:
        """Returns the motor positions at static equilibrium, shape (n,) [rad or m], after the gear.

        Args:
            q: Link positions, shape (n,) [rad or m].
        """
        return np.asarray(self.at_motors(q) + self.gravity(np.atleast_2d(q))[0] / self.stiffness)

    def acceleration(self, state: Array, speed: Array, tau: Array) -> Array:
        """Computes the forward dynamics, shape (2 n,).

        Args:
            state: Link and motor positions, shape (2 n,).
            speed: Link and motor velocities, shape (2 n,).
            tau: Motor torques after the gear, shape (n,) [N·m or N].
        """
        load = self._dual(self._load(state, speed, tau))
        acceleration = pin.aba(self.model, self._data, self._full(state), self._full(speed), load)
        return np.asarray(acceleration[self._order] / self._scale)

    def slopes(self, state: Array, speed: Array, tau: Array, law: MotorPD) -> tuple[Array, Array]:
        """Derivatives of the acceleration with respect to state and speed, under a control law.

        Args:
            state: Shape (2 n,).
            speed: Shape (2 n,).
            tau: Motor torques, shape (n,) [N·m or N].

        Returns:
            Two matrices, shape (2 n, 2 n).
        """
        n, load = self.n, self._load(state, speed, tau)
        pin.computeABADerivatives(self.model, self._data, self._full(state), self._full(speed), self._dual(load))
        pick = np.ix_(self._order, self._order)
        row, column = 1.0 / self._scale[:, None], self._scale
        inverse = np.asarray(self._data.Minv)
        inverse = np.triu(inverse) + np.triu(inverse, 1).T
        by_load = inverse[pick] * row / column  # loads on motors act as tau/r on the rotor's own angle
        G, K, D = self.geared, np.diag(self.stiffness), np.diag(self.damping)
        load_by_state = np.block([[-G.T @ K @ G, G.T @ K], [K @ G, -K - np.diag(law.kp)]])
        friction = np.diag(law.kd + self.friction.slope(speed[n:]))
        load_by_speed = np.block([[-G.T @ D @ G, G.T @ D], [D @ G, -D - friction]])
        by_state = np.asarray(self._data.ddq_dq)[pick] * row * column + by_load @ load_by_state
        by_speed = np.asarray(self._data.ddq_dv)[pick] * row * column + by_load @ load_by_speed
        return by_state, by_speed

    def simulate(
        self,
        law: MotorPD,
        duration: float,
        *,
        start: Array,
        speed: Array | None = None,
        motor: Array | None = None,
        rate: float = 1000.0,
        step: float = 5e-4,
        watch: Callable[[float, Array, Array], None] | None = None,
    ) -> Segment:
        """Simulates a motion.

        Args:
            duration: Duration [s].
            start: Link positions, shape (n,) [rad or m].
            speed: Velocities of links and motors, shape (2 n,); at rest if None.
            motor: Motor positions after the gear, shape (n,); in equilibrium with gravity if None.
            rate: Samples per second [Hz].
            step: Longest integration step [s]; the sampling period is divided into equal steps.
            watch: Called at every sample with time, link positions and velocities; may stop the run by raising.

        Returns:
            The motion at 0, 1/rate, … up to ``duration``, with the motors and their torque after the gear; for coupled joints
            with θ as defined above.

        Raises:
            SimulationError: The plant cannot be integrated with this step.
        """
        start = shaped("start", start, (self.n,))
        substeps = max(1, int(np.ceil(1.0 / (rate * step) - 1e-9)))
        samples = int(np.floor(duration * rate + 1e-9)) + 1
        x = np.concatenate([start, self.rest(start) if motor is None else np.asarray(motor, dtype=float)])
        v = np.zeros(2 * self.n) if speed is None else np.array(speed, dtype=float)
        h = 1.0 / (rate * substeps)
        solver = Collocation(_Driven(self, law, h, (samples - 1) * substeps), h)
        states = np.empty((samples, 2, 2 * self.n))
        states[0] = x, v
        for k in range(1, samples):
            for i in range(substeps):
                x, v = solver.advance((k - 1) * substeps + i, x, v)
            states[k] = x, v
            if watch is not None:
                watch(k / rate, x[: self.n], v[: self.n])
        n = self.n
        tau = law.feed(np.arange(samples) / rate) - law.kp * states[:, 0, n:] - law.kd * states[:, 1, n:]
        turn = np.array([self.acceleration(x, v, u) for (x, v), u in zip(states, tau, strict=True)])
        x, v = states[:, 0], states[:, 1]
        return Segment("simulated", 0.0, rate, x[:, :n], v[:, :n], turn[:, :n], tau, x[:, n:], v[:, n:], turn[:, n:])

    def _load(self, state: Array, speed: Array, tau: Array) -> Array:
        """Torques on links and motors, shape (2 n,)."""
        n = self.n
        spring = self.stiffness * (state[n:] - self.at_motors(state[:n]))
        spring = spring + self.damping * (speed[n:] - self.at_motors(speed[:n]))
        return np.concatenate([spring @ self.geared, tau - self.friction.torque(speed[n:]) - spring])

    def _full(self, values: Array) -> Array:
        return np.asarray((values * self._scale)[self._place])

    def _dual(self, load: Array) -> Array:
        return np.asarray((load / self._scale)[self._place])


@dataclass(frozen=True, eq=False)
class MotorPD:
    """PD control of the motors with gravity compensation at the reference (Zollo 2015, after De Luca).

    ``tau = kp (θ_d − θ) + kd (θ_d' − θ') + g(q_d)`` with ``θ_d = q_d + g(q_d)/K``, q_d and g seen from the motors.

    Attributes:
        plant: Gravity and stiffness: the plant itself, or the controller's model of it.
        reference: Times (N,) [s] → link position and velocity, shape (N, n) each.
        kp: Shape (n,) [N·m/rad or N/m].
        kd: Shape (n,) [N·m·s/rad or N·s/m].
    """

    plant: ElasticPlant
    reference: Callable[[Array], tuple[Array, Array]]
    kp: Array
    kd: Array

    def feed(self, t: Array) -> Array:
        """The part ``tau + kp θ + kd θ'`` of the torque at times ``t``, shape (N,) [s]; shape (N, n) [N·m or N]."""
        q, v = self.reference(t)
        gravity = self.plant.gravity(q)
        position, speed = self.plant.at_motors(q), self.plant.at_motors(v)
        return np.asarray(self.kp * (position + gravity / self.plant.stiffness) + self.kd * speed + gravity)


class _Driven:
    """The plant with a control law; ``step`` and ``stage`` define the time ``(step + NODES[stage])·h``."""

    def __init__(self, plant: ElasticPlant, law: MotorPD, step: float, steps: int) -> None:
        self.plant, self.law = plant, law
        self.feed = law.feed((step * (np.arange(steps)[:, None] + NODES)).ravel()).reshape(steps, 3, plant.n)

    def acceleration(self, step: int, stage: int, x: Array, v: Array) -> Array:
        """Acceleration, shape (2 n,)."""
        return self.plant.acceleration(x, v, self._torque(step, stage, x, v))

    def slopes(self, step: int, stage: int, x: Array, v: Array) -> tuple[Array, Array]:
        """Derivatives with respect to positions and velocities, two matrices of shape (2 n, 2 n)."""
        return self.plant.slopes(x, v, self._torque(step, stage, x, v), self.law)

    def _torque(self, step: int, stage: int, x: Array, v: Array) -> Array:
        n = self.plant.n
        return np.asarray(self.feed[step, stage] - self.law.kp * x[n:] - self.law.kd * v[n:])


def _with_rotors(
    robot: Robot, ratio: Array, rotor_inertia: Array, theta: Array | None, apart: BoolArray
) -> tuple[pin.Model, list[int], list[int]]:
    """The model with one more body per joint, and the indices of links and rotors in its velocity.

    A rotor is carried by its joint's parent if its motor moves only that joint (``apart``), and placed on the base otherwise.
    """
    source, axes = robot.model if theta is None else with_inertias(robot, theta), robot.axes
    model = pin.Model()
    model.gravity = source.gravity
    links: list[int] = []
    place, rotors = [0], dict.fromkeys(range(robot.n), 0)

    def add_rotor(j: int, carrier: int) -> None:
        name, placement = f"rotor {robot.joints[j]}", source.jointPlacements[j + 1]
        rotor = model.addJoint(carrier, pin.JointModelRevoluteUnaligned(axes[j]), placement, name)
        disc = pin.Inertia(0.0, np.zeros(3), rotor_inertia[j] / ratio[j] ** 2 * np.outer(axes[j], axes[j]))
        model.appendBodyToJoint(rotor, disc, pin.SE3.Identity())
        rotors[j] = model.joints[rotor].idx_v

    for k in np.flatnonzero(~apart):  # first, because Pinocchio requires branches in depth-first order
        add_rotor(int(k), 0)
    for j in range(robot.n):
        parent, placement, axis = place[source.parents[j + 1]], source.jointPlacements[j + 1], axes[j]
        if apart[j]:
            add_rotor(j, parent)
        kind = pin.JointModelPrismaticUnaligned(axis) if robot.prismatic[j] else pin.JointModelRevoluteUnaligned(axis)
        link = model.addJoint(parent, kind, placement, robot.joints[j])
        model.appendBodyToJoint(link, source.inertias[j + 1], pin.SE3.Identity())
        place.append(link)
        links.append(model.joints[link].idx_v)
    return model, links, list(rotors.values())
