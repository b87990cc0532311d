"""A robot with elastic joints, simulated without the regressor that identifies it (theory §4).

Every rotor is a body of its own in a Pinocchio model: a massless disc on the preceding body, turning by r·θ about
the joint's axis. The articulated-body algorithm is then exact, gyroscopic torques of the rotors included. Springs
make such a plant stiff without damping it (a wrist may swing at a kilohertz), so that it is integrated by Gauss
collocation: sixth order, stable at any frequency, and neither making nor losing energy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from ..errors import SimulationError, check_shape
from ..model.inertia import Array, to_com
from ..model.robot import Robot
from ..model.rotors import joint_axes
from ..model.segment import freeze_arrays


@dataclass(frozen=True, eq=False)
class MotorFriction:
    """Friction at the motors, after the gear: viscous, Coulomb with a smooth sign, offset, and a Stribeck peak.

    Attributes:
        viscous: Shape (n,) [N·m·s/rad or N·s/m].
        coulomb: Shape (n,) [N·m or N].
        offset: Shape (n,) [N·m or N].
        stribeck: Excess of stiction over Coulomb friction, shape (n,) [N·m or N].
        stribeck_speed: Where the excess has fallen to 1/e [rad/s or m/s].
        width: Half-width of the smooth sign [rad/s or m/s].
    """

    viscous: Array
    coulomb: Array
    offset: Array
    stribeck: Array
    stribeck_speed: float = 0.05
    width: float = 0.01

    @classmethod
    def build(
        cls,
        n: int,
        *,
        viscous: ArrayLike = 0.0,
        coulomb: ArrayLike = 0.0,
        offset: ArrayLike = 0.0,
        stribeck: ArrayLike = 0.0,
        stribeck_speed: float = 0.05,
        width: float = 0.01,
    ) -> MotorFriction:
        """Makes friction from numbers or lists.

        Args:
            n: Number of joints.
            viscous: Number or shape (n,).
            coulomb: Number or shape (n,).
            offset: Number or shape (n,).
            stribeck: Number or shape (n,).
            stribeck_speed: See :attr:`stribeck_speed`.
            width: See :attr:`width`.

        Returns:
            The friction.
        """
        wide = [_vector(name, value, n) for name, value in
                (("viscous", viscous), ("coulomb", coulomb), ("offset", offset), ("stribeck", stribeck))]  # fmt: skip
        return cls(*wide, stribeck_speed=stribeck_speed, width=width)

    def torque(self, speed: Array) -> Array:
        """Friction torque.

        Args:
            speed: Motor velocity after the gear, shape (…, n) [rad/s or m/s].

        Returns:
            Shape of ``speed`` [N·m or N].
        """
        return np.asarray(self.viscous * speed + self._level(speed) * np.tanh(speed / self.width) + self.offset)

    def slope(self, speed: Array) -> Array:
        """Derivative of the torque by speed.

        Args:
            speed: Motor velocity after the gear, shape (…, n) [rad/s or m/s].

        Returns:
            Shape of ``speed`` [N·m·s/rad or N·s/m].
        """
        sign = np.tanh(speed / self.width)
        fall = -2.0 * speed / self.stribeck_speed**2 * (self._level(speed) - self.coulomb)
        return np.asarray(self.viscous + self._level(speed) * (1.0 - sign**2) / self.width + fall * sign)

    def _level(self, speed: Array) -> Array:
        if not self.stribeck.any():
            return self.coulomb
        return np.asarray(self.coulomb + self.stribeck * np.exp(-((speed / self.stribeck_speed) ** 2)))


class MotorLaw(Protocol):
    """A motor torque that is linear in the motors' state: ``tau = feed(t) − kp θ − kd θ'``.

    Attributes:
        kp: Shape (n,) [N·m/rad or N/m].
        kd: Shape (n,) [N·m·s/rad or N·s/m].
    """

    kp: Array
    kd: Array

    def feed(self, t: Array) -> Array:
        """The part that depends on time.

        Args:
            t: Times, shape (N,) [s].

        Returns:
            Shape (N, n) [N·m or N].
        """


@dataclass(frozen=True, eq=False)
class Torque:
    """An open-loop torque; without a function, none at all."""

    n: int
    of_time: Callable[[Array], Array] | None = None
    kp: Array = field(init=False)
    kd: Array = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "kp", np.zeros(self.n))
        object.__setattr__(self, "kd", np.zeros(self.n))

    def feed(self, t: Array) -> Array:
        """See :class:`MotorLaw`: the torque at times ``t``, shape (N,) [s]."""
        return np.zeros((len(t), self.n)) if self.of_time is None else self.of_time(t)


@dataclass(frozen=True, eq=False)
class MotorPD:
    """PD control of the motors with gravity compensation at the reference (C, after De Luca).

    ``tau = kp (θ_d − θ) + kd (θ_d' − θ') + g(q_d)`` with ``θ_d = q_d + g(q_d)/K``.

    Attributes:
        plant: The plant, for its gravity and stiffness.
        reference: Times (N,) [s] → link position and velocity, shape (N, n) each.
        kp: Shape (n,) [N·m/rad or N/m].
        kd: Shape (n,) [N·m·s/rad or N·s/m].
    """

    plant: ElasticPlant
    reference: Callable[[Array], tuple[Array, Array]]
    kp: Array
    kd: Array

    def feed(self, t: Array) -> Array:
        """See :class:`MotorLaw`: the part of the torque that depends on time ``t``, shape (N,) [s]."""
        q, v = self.reference(t)
        gravity = self.plant.gravity(q)
        return np.asarray(self.kp * (q + gravity / self.plant.stiffness) + self.kd * v + gravity)


@dataclass(frozen=True, eq=False)
class ElasticRun:
    """A simulated motion, exact at its samples: arrays of shape (N, n) in SI units, motors after the gear.

    Attributes:
        time: Shape (N,) [s].
        q, v, a: Links.
        qm, vm, am: Motors.
        tau: Motor torque after the gear [N·m or N].
    """

    time: Array
    q: Array
    v: Array
    a: Array
    qm: Array
    vm: Array
    am: Array
    tau: Array

    def __post_init__(self) -> None:
        freeze_arrays(self)


class ElasticPlant:
    """Robot with elastic joints.

    Args:
        robot: The robot.
        stiffness: K, number or shape (n,) [N·m/rad or N/m], positive.
        rotor_inertia: r²Υ, after the gear, number or shape (n,) [kg·m² or kg], positive.
        ratio: Gear ratio r, number or shape (n,) [motor rad per joint rad or m]; may be negative.
        damping: D, number or shape (n,) [N·m·s/rad or N·s/m].
        friction: At the motors; none if None.
        theta: Inertial parameters of the bodies, shape (10 n,), instead of the URDF's.

    Raises:
        SimulationError: A stiffness or rotor inertia that is not positive, a gear ratio of zero.
    """

    def __init__(
        self,
        robot: Robot,
        *,
        stiffness: ArrayLike,
        rotor_inertia: ArrayLike,
        ratio: ArrayLike,
        damping: ArrayLike = 0.0,
        friction: MotorFriction | None = None,
        theta: Array | None = None,
    ) -> None:
        n = robot.n
        self.robot, self.n = robot, n
        self.stiffness, self.rotor_inertia = _vector("stiffness", stiffness, n), _vector("rotor_inertia", rotor_inertia, n)
        self.ratio, self.damping = _vector("ratio", ratio, n), _vector("damping", damping, n)
        self.friction = friction or MotorFriction.build(n)
        for name, values, good in (
            ("stiffness", self.stiffness, self.stiffness > 0),
            ("rotor inertia", self.rotor_inertia, self.rotor_inertia > 0),
            ("spring damping", self.damping, self.damping >= 0),
            ("gear ratio", self.ratio, self.ratio != 0),
        ):
            if not good.all():
                j = int(np.argmin(good))
                raise SimulationError(
                    f"impossible {name}", where=f"joint '{robot.joints[j]}'", got=f"{values[j]:g}",
                    expected="not zero" if name == "gear ratio" else "a positive number",
                    remedy="a joint without elasticity is a very stiff one, or model it as rigid",
                )  # fmt: skip
        self.model, self._links, self._rotors = _with_rotors(robot, self.ratio, self.rotor_inertia, theta)
        self._data = self.model.createData()
        self._order = np.concatenate([self._links, self._rotors])
        self._scale = np.concatenate([np.ones(n), self.ratio])

    def gravity(self, q: Array) -> Array:
        """Link torques that hold the arm.

        Args:
            q: Link positions, shape (N, n) [rad or m].

        Returns:
            Shape (N, n) [N·m or N].
        """
        out = np.empty((len(q), self.n))
        for k, row in enumerate(q):
            pin.computeGeneralizedGravity(self.model, self._data, self._full(np.concatenate([row, row])))
            out[k] = self._data.g[self._links]
        return out

    def rest(self, q: Array) -> Array:
        """Motor positions at which the springs hold the arm still.

        Args:
            q: Link positions, shape (n,) [rad or m].

        Returns:
            Shape (n,) [rad or m], after the gear.
        """
        return np.asarray(q + self.gravity(np.atleast_2d(q))[0] / self.stiffness)

    def energy(self, state: Array, speed: Array) -> tuple[float, float]:
        """Kinetic and potential energy.

        Args:
            state: Link and motor positions, shape (2 n,).
            speed: Link and motor velocities, shape (2 n,).

        Returns:
            Both [J]; the potential one holds gravity and springs.
        """
        q = self._full(state)
        kinetic = pin.computeKineticEnergy(self.model, self._data, q, self._full(speed))
        spring = 0.5 * float(self.stiffness @ (state[self.n :] - state[: self.n]) ** 2)
        return float(kinetic), float(pin.computePotentialEnergy(self.model, self._data, q)) + spring

    def acceleration(self, state: Array, speed: Array, tau: Array, external: Array | None = None) -> Array:
        """Forward dynamics.

        Args:
            state: Link and motor positions, shape (2 n,).
            speed: Link and motor velocities, shape (2 n,).
            tau: Motor torques after the gear, shape (n,) [N·m or N].
            external: Known external torques on the links, shape (n,) [N·m or N], or None.

        Returns:
            Shape (2 n,).
        """
        load = self._load(state, speed, tau)
        if external is not None:
            load[: self.n] += external
        acceleration = pin.aba(self.model, self._data, self._full(state), self._full(speed), self._dual(load))
        return np.asarray(acceleration[self._order] / self._scale)

    def slopes(self, state: Array, speed: Array, tau: Array, law: MotorLaw) -> tuple[Array, Array]:
        """Derivatives of the acceleration by state and speed, under a control law.

        Args:
            state: Shape (2 n,).
            speed: Shape (2 n,).
            tau: Motor torques, shape (n,) [N·m or N].
            law: The control law.

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
        K, D = np.diag(self.stiffness), np.diag(self.damping)
        load_by_state = np.block([[-K, K], [K, -K - np.diag(law.kp)]])
        load_by_speed = np.block([[-D, D], [D, -D - np.diag(law.kd + self.friction.slope(speed[n:]))]])
        by_state = np.asarray(self._data.ddq_dq)[pick] * row * column + by_load @ load_by_state
        by_speed = np.asarray(self._data.ddq_dv)[pick] * row * column + by_load @ load_by_speed
        return by_state, by_speed

    def simulate(
        self,
        law: MotorLaw,
        duration: float,
        *,
        start: Array,
        speed: Array | None = None,
        motor: Array | None = None,
        rate: float = 1000.0,
        step: float = 5e-4,
    ) -> ElasticRun:
        """Simulates a motion.

        Args:
            law: The motors' torque.
            duration: [s].
            start: Link positions, shape (n,) [rad or m].
            speed: Velocities of links and motors, shape (2 n,); at rest if None.
            motor: Motor positions after the gear, shape (n,); in equilibrium with gravity if None.
            rate: Samples per second [Hz].
            step: Longest integration step [s]; a whole number of them makes a sample.

        Returns:
            The motion at 0, 1/rate, … up to ``duration``.

        Raises:
            SimulationError: It diverges.
        """
        start = np.asarray(start, dtype=float)
        check_shape("start", start.shape, (self.n,))
        substeps = max(1, int(np.ceil(1.0 / (rate * step) - 1e-9)))
        samples = int(np.floor(duration * rate + 1e-9)) + 1
        x = np.concatenate([start, self.rest(start) if motor is None else np.asarray(motor, dtype=float)])
        v = np.zeros(2 * self.n) if speed is None else np.array(speed, dtype=float)
        solver = _Gauss(self, law, 1.0 / (rate * substeps), (samples - 1) * substeps)
        states = np.empty((samples, 2, 2 * self.n))
        states[0] = x, v
        for k in range(1, samples):
            for i in range(substeps):
                x, v = solver.advance((k - 1) * substeps + i, x, v)
            states[k] = x, v
        time = np.arange(samples) / rate
        n = self.n
        tau = law.feed(time) - law.kp * states[:, 0, n:] - law.kd * states[:, 1, n:]
        turn = np.array([self.acceleration(x, v, u) for (x, v), u in zip(states, tau, strict=True)])
        x, v = states[:, 0], states[:, 1]
        return ElasticRun(time, x[:, :n], v[:, :n], turn[:, :n], x[:, n:], v[:, n:], turn[:, n:], tau)

    def _load(self, state: Array, speed: Array, tau: Array) -> Array:
        """Torques on links and motors, shape (2 n,)."""
        n = self.n
        spring = self.stiffness * (state[n:] - state[:n]) + self.damping * (speed[n:] - speed[:n])
        return np.concatenate([spring, tau - self.friction.torque(speed[n:]) - spring])

    def _full(self, values: Array) -> Array:
        out = np.empty(2 * self.n)
        out[self._order] = values * self._scale
        return out

    def _dual(self, load: Array) -> Array:
        out = np.empty(2 * self.n)
        out[self._order] = load / self._scale
        return out


class _Gauss:
    """Gauss collocation with three stages for ``x'' = f(t, x, x')``; stage accelerations by simplified Newton."""

    def __init__(self, plant: ElasticPlant, law: MotorLaw, step: float, steps: int) -> None:
        root = np.sqrt(15.0)
        self.c = np.array([0.5 - root / 10, 0.5, 0.5 + root / 10])
        self.A = np.array([
            [5 / 36, 2 / 9 - root / 15, 5 / 36 - root / 30],
            [5 / 36 + root / 24, 2 / 9, 5 / 36 - root / 24],
            [5 / 36 + root / 30, 2 / 9 + root / 15, 5 / 36],
        ])  # fmt: skip
        self.b = np.array([5 / 18, 4 / 9, 5 / 18])
        powers = np.vander(self.c, 3, increasing=True)
        self.ahead = np.vander(self.c + 1, 3, increasing=True) @ np.linalg.inv(powers)
        self.plant, self.law, self.h = plant, law, step
        times = step * (np.arange(steps)[:, None] + self.c)
        self.feed = law.feed(times.ravel()).reshape(steps, 3, plant.n)
        self.stages: Array | None = None
        self.inverse: Array | None = None

    def advance(self, k: int, x: Array, v: Array) -> tuple[Array, Array]:
        """Step number ``k`` from state x and speed v, shape (2 n,)."""
        guess = np.zeros((3, len(x))) if self.stages is None else self.ahead @ self.stages
        found = self._solve(k, x, v, guess) if self.inverse is not None else None
        if found is None:
            self._refresh(k, x, v)
            found = self._solve(k, x, v, guess, patient=True)
        if found is None:
            raise SimulationError(
                "the elastic plant cannot be integrated", where=f"t = {k * self.h:.4g} s", got=f"step {self.h:g} s",
                remedy="take a shorter step, softer gains, or a wider smooth sign of friction",
            )  # fmt: skip
        self.stages, h = found, self.h
        return x + h * v + h**2 * (self.b @ self.A @ found), v + h * (self.b @ found)

    def _solve(self, k: int, x: Array, v: Array, stages: Array, patient: bool = False) -> Array | None:
        plant, law, h, n = self.plant, self.law, self.h, self.plant.n
        last = np.inf
        for iteration in range(40 if patient else 8):
            X = x + h * self.c[:, None] * v + h**2 * (self.A @ (self.A @ stages))
            V = v + h * (self.A @ stages)
            drive = self.feed[k] - law.kp * X[:, n:] - law.kd * V[:, n:]
            residual = np.array([plant.acceleration(*each) for each in zip(X, V, drive, strict=True)]) - stages
            change = (self.inverse @ residual.ravel()).reshape(stages.shape)
            stages = stages + change
            size = h * float(np.abs(change).max())
            if not np.isfinite(size):
                return None
            if size <= 1e-13 * (1.0 + float(np.abs(V).max())):
                return stages
            if size > 0.7 * last and iteration > 2:
                # rounding is reached, or this Jacobian does not lead there
                return stages if size <= 1e-10 * (1.0 + float(np.abs(V).max())) else None
            last = size
        return None

    def _refresh(self, k: int, x: Array, v: Array) -> None:
        n, h = self.plant.n, self.h
        middle = x + 0.5 * h * v
        drive = self.feed[k][1] - self.law.kp * middle[n:] - self.law.kd * v[n:]
        by_state, by_speed = self.plant.slopes(middle, v, drive, self.law)
        matrix = np.eye(6 * n) - h**2 * np.kron(self.A @ self.A, by_state) - h * np.kron(self.A, by_speed)
        self.inverse = np.linalg.inv(matrix)


def _with_rotors(
    robot: Robot, ratio: Array, rotor_inertia: Array, theta: Array | None
) -> tuple[pin.Model, list[int], list[int]]:
    """The model with one more body a joint, and the places of links and rotors in its velocity."""
    source, axes = robot.model, joint_axes(robot)
    inertias = list(source.inertias)[1:]
    if theta is not None:
        check_shape("theta", np.shape(theta), (10 * robot.n,))
        parts = zip(*to_com(np.asarray(theta, dtype=float).reshape(-1, 10)), strict=True)
        inertias = [pin.Inertia(float(mass), centre, tensor) for mass, centre, tensor in parts]
    model = pin.Model()
    model.gravity = source.gravity
    links: list[int] = []
    rotors: list[int] = []
    place = [0]
    for j in range(robot.n):
        parent, placement = place[source.parents[j + 1]], source.jointPlacements[j + 1]
        axis = axes[j] / np.linalg.norm(axes[j])
        rotor = model.addJoint(parent, pin.JointModelRevoluteUnaligned(axis), placement, f"rotor {robot.joints[j]}")
        disc = pin.Inertia(0.0, np.zeros(3), rotor_inertia[j] / ratio[j] ** 2 * np.outer(axis, axis))
        model.appendBodyToJoint(rotor, disc, pin.SE3.Identity())
        kind = pin.JointModelPrismaticUnaligned(axis) if robot.prismatic[j] else pin.JointModelRevoluteUnaligned(axis)
        link = model.addJoint(parent, kind, placement, robot.joints[j])
        model.appendBodyToJoint(link, inertias[j], pin.SE3.Identity())
        place.append(link)
        links.append(model.joints[link].idx_v)
        rotors.append(model.joints[rotor].idx_v)
    return model, links, rotors


def _vector(name: str, values: ArrayLike, n: int) -> Array:
    vector = np.asarray(values, dtype=float)
    if vector.ndim == 0:
        vector = np.full(n, float(vector))
    if vector.shape != (n,) or not np.isfinite(vector).all():
        raise SimulationError(f"{name} needs {n} finite numbers", got=vector.tolist(), remedy="give one per joint")
    return vector
