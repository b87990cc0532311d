"""Regressor columns of small faults: their first-order effect on the torques.

A small error e(t) of one joint's positions changes all torques by ``∂τ/∂q e + ∂τ/∂v ė + ∂τ/∂a ë``, evaluated with the robot
identified from the log itself. So a zero offset, a periodic encoder error and backlash at the encoder each add one or two
columns to the fit of one rigid robot (:mod:`..evidence`); crosstalk, a scale, saturation, a scale of one sign and a delay add
their effect on one joint's effort. Friction or torque ripple with a similar effect is added as guard columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pinocchio as pin

from ...friction.law import smooth_sign
from ...judgements.catalogue import Id
from ...linalg import Array, BoolArray
from ...model.prior import lumped_inertials
from ...model.rigid_bodies import regressor, rigid_torque, tip_jacobians
from ...model.robot import Robot
from ...samples import one_way
from ..candidates import Interpretation
from ..case import Case
from ..delay.reversal_friction import reversal_columns
from ..grams import EXACT, friction_columns
from ..load_friction import LoadedFit
from ..motion_samples import COMPARED, MotionSamples

#: Candidate waves per radian of an encoder's error; for a slide, half as many in its range.
_WAVES = (1, 2, 3, 4, 6, 8)
#: Least fraction of an effort's square with each sign for comparing their scales.
_BOTH = 0.05
#: Knee of the saturation column, as a fraction of the large efforts.
_KNEE = 0.5
#: Delay for computing the efforts' rates [s].
_SOON = 0.004
#: A clock that runs at another rate, which only single logs are tested for.
CLOCK = Id.TIME_SCALE
#: Least number of blocks of each log, for faults of one log alone.
_BLOCKS_OF_A_LOG = 4
#: Step of the numerical derivatives with respect to positions, velocities and accelerations [rad or m, and per s, s²].
_STEP = 1e-4


@dataclass(frozen=True)
class FaultColumns:
    """Indices of a fault's columns: `shared` ones act in all rows, `own` and `guard` ones in one row.

    The guard and the first `given` shared columns are also part of the fit without the fault.

    The size is the norm of the last `numbers` coefficients times the unit; `sense` is the required sign of the coefficient, or
    0. In each of the `logs` it has a size of its own, and is absent from others; without `logs` it has one size in all.
    If `cold`, joints have friction of their own in the `logs`, with and without the fault.
    The error of a position grows along its travel by at most `slope` times its size [1/rad or 1/m]. The `narrower` fault is the
    same one with less friction free, which must be significant as well. What is `of_all` joints is no fault of one and only
    compared with such faults.
    """

    id: Id
    joints: tuple[int, ...]
    shared: tuple[int, ...] = ()
    own: tuple[int, ...] = ()
    guard: tuple[int, ...] = ()
    unit: float = 1.0
    sense: int = 0
    numbers: int = 1
    given: int = 0
    logs: tuple[int, ...] = ()
    cold: bool = False
    slope: float = 1.0
    narrower: FaultColumns | None = None
    of_all: bool = False

    @property
    def sizes(self) -> int:
        """Number of coefficients of the sizes in all logs."""
        return self.numbers * max(1, len(self.logs))


@dataclass(frozen=True, eq=False)
class _Made:
    """Builder of columns: those shared by all rows, those of one row, and their faults."""

    shared: list[Array]
    own: list[Array]
    faults: list[FaultColumns]

    def add(
        self,
        id: Id,
        joints: tuple[int, ...],
        *,
        shared: Sequence[Array] = (),
        own: Sequence[Array] = (),
        guard: Sequence[Array] = (),
        unit: float = 1.0,
        sense: int = 0,
        given: int = 0,
        slope: float = 1.0,
        narrower: FaultColumns | None = None,
        of_all: bool = False,
    ) -> None:
        """Adds a fault with its columns and their guard."""
        at = _appended(self.shared, shared), _appended(self.own, own), _appended(self.own, guard)
        numbers = len(shared) - given + len(own)
        self.faults.append(
            FaultColumns(id, joints, *at, unit, sense, numbers, given, slope=slope, narrower=narrower, of_all=of_all)
        )


def _appended(columns: list[Array], new: Sequence[Array]) -> tuple[int, ...]:
    """Appends new columns, common columns only once; returns their indices."""
    places = {id(column): k for k, column in enumerate(columns)}
    for column in new:
        if id(column) not in places:
            places[id(column)] = len(columns)
            columns.append(column)
    return tuple(places[id(column)] for column in new)


@dataclass(frozen=True, eq=False)
class FaultRows:
    """Data common to the fits of all faults.

    Attributes:
        inertial: Shape (N, n, m), scaled.
        friction: Shape (n, N, f), scaled; the last column is friction that grows with the load, zero where a joint moves one
            way.
        slopes: Derivatives of all torques by a joint's position, velocity and acceleration, shape (n, 3, N, n).
        placed: Derivatives of all torques by the placement of a joint's axis on its parent, along and about two perpendicular
            directions, shape (n, 4, N, n); zero where it moves the whole robot.
        pulls: Torques of constant forces on the last body along the base's axes, and of a spring from it to the base's origin;
            together of a spring to any point, shape (N, n, 4) [m, m, m, m²].
        fitted: Efforts of the identified robot, shape (N, n); used for columns that depend on an effort's power or size,
            because measured efforts would explain their own errors.
        weight: Gravity torque of the URDF, shape (N, n) [N·m or N].
        weights: One over the residual variance of each row, shape (n,).
        count: Samples of each block, shape (B,).
        size: Root mean square of each effort about its mean, shape (n,) [N·m or N].
    """

    case: Case
    inertial: Array
    friction: Array
    slopes: Array
    placed: Array
    pulls: Array
    fitted: Array
    weight: Array
    weights: Array
    samples: MotionSamples
    count: Array
    size: Array

    @property
    def n(self) -> int:
        """Number of joints."""
        return self.case.robot.n

    @property
    def logs(self) -> int:
        """Number of logs."""
        return int(self.samples.log_of_block.max()) + 1

    @cached_property
    def by_motion(self) -> FaultRows:
        """The same rows with repetitions of a motion in one block; itself without any."""
        if (samples := self.samples.by_motion()) is self.samples:
            return self
        return replace(self, samples=samples, count=np.bincount(samples.block).astype(float))

    def left(self, squares: Array) -> Array:
        """Relative residual of each row, shape (n,), from the squared errors by block, shape (B, n)."""
        return np.asarray(np.maximum(np.sqrt(squares.clip(0).sum(axis=0) / self.count.sum()) / self.size, EXACT))

    @classmethod
    def of(cls, case: Case) -> FaultRows:
        """Builds the rows from the samples of a case as logged and the robot identified from them."""
        robot, samples, fit = case.robot, case.sampled(0.0), LoadedFit.of(case)
        if len(np.unique(samples.log)) <= COMPARED:
            samples = samples.in_finer_blocks(_BLOCKS_OF_A_LOG)
        found = case.evidence(Interpretation.as_logged(robot.n))
        theta = np.zeros(fit.columns.shape[2])
        theta[found.active] = fit.rigid / found.scale
        slopes = _slopes(robot, samples, theta, fit.drag[:, :-1], fit.sizes)
        still = regressor(robot, samples.q, np.zeros_like(samples.v), np.zeros_like(samples.a))
        weight = still @ lumped_inertials(robot).ravel()
        placed = _placed(robot, samples, theta, fit.columns @ theta)
        return cls(
            case,
            fit.inertial,
            fit.friction,
            slopes,
            placed,
            _pulls(robot, samples.q),
            fit.fitted,
            weight,
            fit.weights,
            samples,
            np.bincount(samples.block).astype(float),
            found.size,
        )

    def with_faults_of(self, j: int, play: Array, jerk: Array, efforts: Array) -> tuple[Array, Array, list[FaultColumns]]:
        """Returns the columns of all faults of a joint.

        Args:
            play: Its position in the backlash from :func:`.backlash.play`, shape (N, 3).
            jerk: Jerk of all joints, shape (N, n) [rad/s³ or m/s³].
            efforts: Its effort with its first two derivatives, shape (N, 3).

        Returns:
            Columns shared by all rows, shape (N, n, k), those of the joint's row, shape (N, l), and the faults.
        """
        made = _Made([self.weight], [], [])
        if j == int(np.flatnonzero(self.case.moves)[0]):
            self._of_all(made)
        turning = self._turning[j]
        self._of_position(j, play, jerk, efforts, turning, made)
        self._of_effort(j, turning, made)
        if self.placed[j].any():
            made.add(Id.JOINT_ORIGIN, (j,), shared=[*self.placed[j, :2]])
            made.add(Id.JOINT_AXIS, (j,), shared=[*self.placed[j, 2:]])
        return np.stack(made.shared, axis=2), np.column_stack(made.own), made.faults

    def _of_all(self, made: _Made) -> None:
        """Adds gravity, a saturation of all with free friction at reversals, a pull at the last body, and a clock."""
        if self.weight.any():
            made.faults.append(FaultColumns(Id.EFFORT_WITHOUT_GRAVITY, (), shared=(0,)))
        turning = self._all_turning
        bent = np.column_stack([_bend(x) for x in self.fitted.T])
        made.add(Id.EFFORT_SATURATES, (), shared=[*turning, bent], sense=1, given=len(turning))
        made.add(Id.CONTACT_SPRING, (), shared=[*np.moveaxis(self.pulls, 2, 0)])
        none, motions = np.zeros(len(self.samples)), zip(self.samples.v.T, self.samples.a.T, strict=True)
        slower = [self._torque(k, none, -v, -2 * a) for k, (v, a) in enumerate(motions)]
        made.add(CLOCK, (), shared=[np.sum(slower, axis=0)], unit=-1.0)

    def _of_position(self, j: int, play: Array, jerk: Array, efforts: Array, turning: Sequence[Array], made: _Made) -> None:
        """Adds zero, scale, compliance, delay, periodic error and play of a joint's positions, and a delay of all positions."""
        robot, samples = self.case.robot, self.samples
        q, v, a = samples.q[:, j], samples.v[:, j], samples.a[:, j]
        zero = self.slopes[j, 0]
        if not robot.prismatic[j]:
            made.add(Id.POSITION_ZERO, (j,), shared=[zero], unit=-1.0)
        # for any zero, and whether or not the effort has the same ratio
        wider = [zero, self._torque(j, q, v, a)]
        made.add(Id.POSITION_SCALE, (j,), shared=wider, guard=[self.fitted[:, j]], given=1)
        # before a gear that gives way, positions lead in the direction of the effort; its own row resembles rotor and friction
        bent = self._torque(j, *efforts.T / self.size[j])
        beside = self._turning_beside(j)
        given = len(beside)
        made.add(Id.POSITION_COMPLIANCE, (j,), shared=[*beside, bent], guard=[bent[:, j], *turning], sense=1, given=given)
        late = [self._torque(k, samples.v[:, k], samples.a[:, k], jerk[:, k]) for k in range(self.n)]
        # in its own row a delay resembles friction that depends on the pose: only the efforts of other joints show it
        made.add(Id.POSITION_LATE, (j,), shared=[*beside, late[j]], guard=[late[j][:, j], *turning], unit=-1.0, given=given)
        made.add(
            Id.POSITION_LATE, (j,), shared=[*beside, np.sum(late, axis=0)], guard=turning, unit=-1.0, given=given, of_all=True
        )
        half = np.pi / float(np.ptp(q))
        turn = half if robot.prismatic[j] else 1.0
        for waves in _WAVES if self._drives(j).sum() == 1 else ():  # friction of a coupled motor depends on other positions
            k = turn * waves
            if k < half:  # an arc of less than half a wave is a zero and a scale
                continue
            sine, cosine, *_ = guard = _along_the_travel(q, v, k)
            errors = (
                (sine, k * cosine * v, k * cosine * a - k**2 * sine * v**2),
                (cosine, -k * sine * v, -k * sine * a - k**2 * cosine * v**2),
            )
            made.add(Id.POSITION_NONLINEAR, (j,), shared=[self._torque(j, *error) for error in errors], guard=guard, slope=k)
        if play.any():
            guard = [play[:, 0], play[:, 0] * q, *turning]
            lost = [*beside, self._torque(j, *play.T)]
            made.add(Id.POSITION_PLAY, (j,), shared=lost, guard=guard, unit=-2.0, sense=-1, given=given)

    def _of_effort(self, j: int, turning: Sequence[Array], made: _Made) -> None:
        """Adds crosstalk, scale, delay, saturation, excessive growth and asymmetry of a joint's effort."""
        q, v, tau = self.samples.q[:, j], self.samples.v[:, j], self.fitted[:, j]
        for i in np.flatnonzero(self.case.moves & ~self._drives(j)):
            if i != j:
                made.add(Id.EFFORT_CROSSTALK, (j, int(i)), own=[self.samples.tau[:, i]], guard=turning, unit=-1.0)
                leak = made.faults.pop()
                made.faults.append(replace(leak, narrower=replace(leak, guard=())))
        soon, after = self.case.sampled(-_SOON).tau[:, j], self.case.sampled(_SOON).tau[:, j]
        made.add(Id.EFFORT_DELAY, (j,), own=[(after - soon) / (2 * _SOON)], guard=turning, sense=1)
        swept = one_way(v)  # then load-dependent friction also gives each sign another scale
        made.add(Id.EFFORT_SATURATES, (j,), own=[_bend(tau)], guard=[*turning, *([np.abs(tau)] if swept else [])], sense=1)
        # what depends on the joint's position, as a cable or friction that varies along the teeth, is no fault of the effort,
        # although it may be larger where the effort has one sign, or is large
        varying = _along_the_travel(q, v)
        # nor is friction that grows with the load where a joint moves one way, for which there is no other column
        loads = self._one_way_loads
        made.add(Id.EFFORT_SCALE, (j,), shared=loads, own=[tau], guard=[*turning, *varying], unit=-1.0, given=len(loads))
        # the scale of another joint resembles it: they are compared with the friction of all joints at reversals free
        narrower, loads = made.faults.pop(), [*self._all_turning, *loads]
        made.add(Id.EFFORT_SCALE, (j,), shared=loads, own=[tau], guard=varying, unit=-1.0, given=len(loads), narrower=narrower)
        if not swept and min(np.sum(tau.clip(0) ** 2), np.sum(tau.clip(None, 0) ** 2)) > _BOTH * np.sum(tau**2):
            made.add(Id.EFFORT_PROGRESSIVE, (j,), own=[_bend(tau)], guard=[*turning, *varying], unit=-1.0, sense=-1)
            guard = [*turning, *varying, np.abs(v), v**2]  # allow friction that depends on the direction
            made.add(Id.EFFORT_ASYMMETRIC, (j,), own=[np.abs(tau)], guard=guard, unit=-1.0)

    @cached_property
    def _one_way_loads(self) -> list[Array]:
        """Friction that grows with the load, of each joint that moves one way, shape (N, n) each."""
        one = [j for j in np.flatnonzero(self.case.moves).tolist() if one_way(self.samples.v[:, j])]
        return [np.outer(np.abs(self.fitted[:, j]), np.arange(self.n) == j) for j in one]

    @cached_property
    def _turning(self) -> Mapping[int, Sequence[Array]]:
        """Friction of each joint at its reversals, shape (N,) each; none if it moves one way."""
        both = [j for j in range(self.n) if not one_way(self.samples.v[:, j])]
        found = zip(both, reversal_columns(self.samples, both), strict=True)
        return {j: [] for j in range(self.n)} | {j: [*columns.T] for j, columns in found}

    @cached_property
    def _all_turning(self) -> list[Array]:
        """Friction of all joints at their reversals, shape (N, n) each."""
        return self._turning_of(self.case.moves)

    def _turning_beside(self, j: int) -> list[Array]:
        """Friction at reversals of other joints that the motors of this one drive, shape (N, n) each."""
        return self._turning_of(self._drives(j) & (np.arange(self.n) != j))

    def _turning_of(self, joints: BoolArray) -> list[Array]:
        some = np.flatnonzero(joints).tolist()
        return [np.outer(column, np.arange(self.n) == j) for j in some for column in self._turning[j]]

    def _drives(self, j: int) -> BoolArray:
        """Joints that a motor of this joint drives, itself included, shape (n,)."""
        A = np.eye(self.n) if self.samples.reduction is None else self.samples.reduction
        return np.asarray((A[A[:, j] != 0] != 0).any(axis=0))

    def _torque(self, j: int, error: Array, rate: Array, growth: Array) -> Array:
        """Effect of a small error of a joint's positions on all torques, shape (N, n)."""
        by_position, by_velocity, by_acceleration = self.slopes[j]
        return np.asarray(by_position * error[:, None] + by_velocity * rate[:, None] + by_acceleration * growth[:, None])


def _along_the_travel(q: Array, v: Array, waves: float = 1.0) -> list[Array]:
    """A wave of the position, and friction that varies with it: sine and cosine, then the same with the sign of the velocity.

    Args:
        q, v: Motion of the joint, shape (N,) each.
        waves: Radians of the wave per unit of the position [1/rad or 1/m].

    Returns:
        Four columns, shape (N,) each.
    """
    sine, cosine, sign = np.sin(waves * q), np.cos(waves * q), smooth_sign(v, 0.1 * max(float(v.std()), 1e-9))
    return [sine, cosine, sine * sign, cosine * sign]


def _bend(tau: Array) -> Array:
    """Reduction of an effort by saturation, normalised to the relative reduction of a large effort, shape (N,).

    Cubic for small efforts and linear for large ones, so that a few large efforts do not dominate.
    """
    most = max(float(np.percentile(np.abs(tau), 99.5)), 1e-12)
    knee = _KNEE * most
    return np.asarray((tau - knee * np.tanh(tau / knee)) / (1 - _KNEE * np.tanh(1 / _KNEE)))


def _slopes(robot: Robot, samples: MotionSamples, theta: Array, drag: Array, sizes: Sequence[Array]) -> Array:
    """Derivatives of all torques by each joint's position, velocity and acceleration, shape (n, 3, N, n)."""
    smooth = drag.copy()  # Coulomb friction has no slope; rotor inertia and viscous friction do
    smooth[:, ~np.isin(np.arange(drag.shape[1]) % 6, (0, 2))] = 0.0
    slopes = np.empty((robot.n, 3, len(samples.q), robot.n))
    before = rigid_torque(robot, theta, samples.q, samples.v, samples.a) + _friction(samples, sizes, smooth)
    for j in range(robot.n):
        step = _STEP * (np.arange(robot.n) == j)
        places = (samples.q + step, samples.v, samples.a), (samples.q, samples.v + step, samples.a)
        for k, state in enumerate((*places, (samples.q, samples.v, samples.a + step))):
            moved = rigid_torque(robot, theta, *state) + _friction(samples.with_motion(*state), sizes, smooth)
            slopes[j, k] = (moved - before) / _STEP
    return slopes


def _pulls(robot: Robot, q: Array) -> Array:
    """Torques of forces on the last body, see :attr:`FaultRows.pulls`."""
    J, place = tip_jacobians(robot, q, pin.LOCAL_WORLD_ALIGNED)
    forces = J[:, :3].swapaxes(1, 2)
    return np.concatenate([forces, forces @ place[:, :, None]], axis=2)


def _placed(robot: Robot, samples: MotionSamples, theta: Array, torque: Array) -> Array:
    """Derivatives by the axes' placements, shape (n, 4, N, n), of all torques, shape (N, n) for the given axes."""
    out = np.zeros((robot.n, 4, *torque.shape))
    for j, body in enumerate(robot.place_in_tree):
        if robot.parents[body] < 0:
            continue
        across = np.linalg.svd(robot.axes[body][None, :])[2][1:]
        for k, twist in enumerate(np.kron(np.eye(2), across)):
            model = robot.model.copy()
            model.jointPlacements[body + 1] = model.jointPlacements[body + 1] * pin.exp6(_STEP * twist)
            out[j, k] = (regressor(replace(robot, model=model), samples.q, samples.v, samples.a) @ theta - torque) / _STEP
    return out


def _friction(motion: MotionSamples, sizes: Sequence[Array], drag: Array) -> Array:
    """Rotor and friction torque of every joint, shape (N, n), from the sizes of the columns and their coefficients."""
    return np.column_stack([friction_columns(motion, j) @ (own / sizes[j]) for j, own in enumerate(drag)])
