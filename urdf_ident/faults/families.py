"""Families of faults: what each adds to the torques per unit of its size, to first order, and what it resembles.

A small error e(t) of one joint's positions changes all torques by ``∂τ/∂q e + ∂τ/∂v ė + ∂τ/∂a ë`` of the robot identified from
the logs (:mod:`.linearized`). A fault of an effort adds its own torque to one joint's row. A new family is one more entry.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from ..friction.law import smooth_sign
from ..judgements.catalogue import Id
from ..judgements.judgement import Remedy
from ..linalg import Array
from ..samples import one_way
from .backlash import play
from .evidence import MATERIAL
from .linearized import LinearizedCase
from .motion_samples import COMPARED, efforts_in_time, jerks
from .thinned_logs import Logs

#: Candidate waves per radian of an encoder's error; for a slide, half as many in its range.
_WAVES = (1, 2, 3, 4, 6, 8)
#: Knee of the saturation column, as a fraction of the large efforts.
_KNEE = 0.5
#: What each kind of change is of, and what to do about it.
CHANGES = {
    "payload": ("the load on the last link", "split the log there, or record it again with one load"),
    "friction": ("friction or offset", "warm the robot up first, or record it again"),
    "gain": ("the scale of the efforts", "check the sensor, or record it again"),
    "scale": ("the scale of all efforts", "check the sensors or amplifiers, or record it again"),
    "everything": ("more than one of load, friction, zeros and scales", "find out what was changed before or after it"),
    "zeros or inertias": ("a zero, the load or the robot", "find out what was changed before or after it"),
    "contact": ("a torque that is not the robot's own", "cut this part out; was there contact, a dragging brake, a hand?"),
}
#: Message and remedy of a zero that is set anew in each log.
ZERO_OF_EACH_LOG = (
    "the zero of {whose} is another in each log, by up to {size}",
    Remedy("log absolute positions, not counts from the start of a log, or move the joint to its reference before each log"),
)


@dataclass(frozen=True, eq=False)
class FaultFamily:
    """One kind of fault of some joints.

    Attributes:
        columns: Torques per unit of its size, shape (N, n, m).
        guard: What resembles it and is no fault, shape (N, n, k); free in the model without the fault, too.
        unit: Size per coefficient.
        sense: Sign that its torques must not have relative to the columns, or 0.
        change: Key in :data:`CHANGES`, tested in windows, single logs, and as a drift; empty for a fault of a signal, which is
            tested always and in single logs.
        slope: Growth of a position's error along its travel over the size, at most [1/rad or 1/m].
        elsewhere: Whether it is estimated and told elsewhere; here it only competes with the others.
        lasting: Whether it is tested throughout all logs.
        each: Whether its columns are those of each log, in which it has another size.
    """

    id: Id
    joints: tuple[int, ...]
    columns: Array
    guard: Array = field(default_factory=lambda: np.empty((0, 0, 0)))
    unit: float = 1.0
    sense: int = 0
    change: str = ""
    slope: float = 1.0
    elsewhere: bool = False
    lasting: bool = True
    each: bool = False


def changes(at: LinearizedCase) -> Iterator[FaultFamily]:
    """Changes of the robot, of its surroundings or of its sensors that may begin and end."""
    n, samples = at.n, at.samples
    yield FaultFamily(Id.PAYLOAD_CHANGES, (), at.of_last_body, change="payload")
    yield FaultFamily(Id.EFFORT_DRIFT, (), at.fitted[:, :, None], change="scale")
    rows = np.eye(n)[None] * np.ones((len(samples), 1, 1))
    yield FaultFamily(Id.CONTACT, (), rows[:, :, at.moving], change="contact")
    for j in at.moving:
        row, tau = np.eye(n)[j][None, :, None], at.fitted[:, j, None, None]
        friction = np.column_stack([np.ones(len(samples)), samples.signs[:, j, 0]])
        yield FaultFamily(Id.EFFORT_DRIFT, (j,), row * friction[:, None], change="friction")
        yield FaultFamily(Id.EFFORT_DRIFT, (j,), row * tau, change="gain")
        if not at.robot.prismatic[j]:
            yield FaultFamily(Id.LOG_DIFFERS, (j,), at.slopes[j, 0][:, :, None], change="zeros or inertias")


def faults(at: LinearizedCase, logs: Logs) -> Iterator[FaultFamily]:
    """Faults of signals and of the URDF's geometry, which last throughout a log.

    Args:
        logs: Conditioned motion with measured torque of each log, and the cut-off of its positions [Hz].
    """
    samples, none = at.samples, np.zeros(len(at.samples))
    loose, efforts = play(logs, np.array(at.moving)), efforts_in_time(logs)
    jerk = jerks(logs)[0]
    late = {j: at.torque_by(j, samples.v[:, j], samples.a[:, j], jerk[:, j]) for j in at.moving}
    yield FaultFamily(Id.EFFORT_DELAY, (), efforts[:, 1, :, None], elsewhere=True)
    yield FaultFamily(Id.POSITION_LATE, (), np.sum([*late.values()], axis=0)[:, :, None], elsewhere=True)
    yield FaultFamily(Id.EFFORT_BANDWIDTH, (), efforts[:, 1:].swapaxes(1, 2), elsewhere=True)
    yield FaultFamily(Id.GRAVITY_DIRECTION, (), at.gravities, elsewhere=True)
    everything = np.concatenate([at.inertial, *(at.in_row(j, *at.friction[j].T) for j in at.moving)], axis=2)
    yield FaultFamily(Id.LOG_DIFFERS, (), everything, change="everything", lasting=False)
    if at.weight.any():
        yield FaultFamily(Id.EFFORT_WITHOUT_GRAVITY, (), at.weight[:, :, None])
    yield FaultFamily(Id.EFFORT_SATURATES, (), np.column_stack([_bend(x) for x in at.fitted.T])[:, :, None], sense=1)
    yield FaultFamily(Id.CONTACT_SPRING, (), at.pulls)
    slower = [at.torque_by(j, none, -samples.v[:, j], -2 * samples.a[:, j]) for j in at.moving]
    yield FaultFamily(Id.TIME_SCALE, (), np.sum(slower, axis=0)[:, :, None], unit=-1.0, lasting=False)  # else a hypothesis
    for k, j in enumerate(at.moving):
        yield from _of_position(at, j, loose[:, :, k], efforts[:, :, j], late[j])
        yield from _of_effort(at, j, efforts[:, 1, j])
        if at.placed[j].any():
            yield FaultFamily(Id.JOINT_ORIGIN, (j,), at.placed[j, :2].transpose(1, 2, 0))
            yield FaultFamily(Id.JOINT_AXIS, (j,), at.placed[j, 2:].transpose(1, 2, 0))


def _of_position(at: LinearizedCase, j: int, loose: Array, efforts: Array, late: Array) -> Iterator[FaultFamily]:
    """Zero, scale, compliance, delay, periodic error and play of a joint's positions."""
    q, v, a = (x[:, j] for x in (at.samples.q, at.samples.v, at.samples.a))
    zero = at.slopes[j, 0]
    if not at.robot.prismatic[j]:
        yield FaultFamily(Id.POSITION_ZERO, (j,), zero[:, :, None], unit=-1.0)
        logs = np.unique(at.samples.log)
        if 1 < len(logs) <= COMPARED:  # set anew before each log
            each = zero[:, :, None] * (at.samples.log[:, None] == logs)[:, None]
            yield FaultFamily(Id.POSITION_ZERO, (j,), each, unit=-1.0, each=True)
    # for any zero, and whether or not the effort has the same ratio
    beside = np.concatenate([zero[:, :, None], at.in_row(j, at.fitted[:, j])], axis=2)
    yield FaultFamily(Id.POSITION_SCALE, (j,), at.torque_by(j, q, v, a)[:, :, None], beside)
    # before a gear that gives way, positions lead in the direction of the effort; its own row resembles rotor and friction,
    # and in that row a delay resembles friction that depends on the pose: only the efforts of other joints show them
    bent = at.torque_by(j, *efforts.T / at.size[j])
    yield FaultFamily(Id.POSITION_COMPLIANCE, (j,), bent[:, :, None], at.in_row(j, bent[:, j]), sense=1)
    yield FaultFamily(Id.POSITION_LATE, (j,), late[:, :, None], at.in_row(j, late[:, j]), unit=-1.0)
    half = np.pi / float(np.ptp(q))
    turn = half if at.robot.prismatic[j] else 1.0
    for k in [turn * waves for waves in _WAVES if turn * waves >= half]:  # an arc of less is a zero and a scale
        sine, cosine, *_ = resembling = _along_the_travel(q, v, k)
        errors = (
            (sine, k * cosine * v, k * cosine * a - k**2 * sine * v**2),
            (cosine, -k * sine * v, -k * sine * a - k**2 * cosine * v**2),
        )
        columns = np.stack([at.torque_by(j, *error) for error in errors], axis=2)
        yield FaultFamily(Id.POSITION_NONLINEAR, (j,), columns, at.in_row(j, *resembling), slope=k)
    if loose.any():
        guard = at.in_row(j, loose[:, 0], loose[:, 0] * q)
        yield FaultFamily(Id.POSITION_PLAY, (j,), at.torque_by(j, *loose.T)[:, :, None], guard, unit=-2.0, sense=-1)


def _of_effort(at: LinearizedCase, j: int, rate: Array) -> Iterator[FaultFamily]:
    """Crosstalk, scale, delay, saturation, excessive growth and asymmetry of a joint's effort."""
    v, tau = at.samples.v[:, j], at.fitted[:, j]
    for i in at.moving:
        if not at.drives(j)[i]:
            yield FaultFamily(Id.EFFORT_CROSSTALK, (j, i), at.in_row(j, at.samples.tau[:, i]), unit=-1.0)
    yield FaultFamily(Id.EFFORT_DELAY, (j,), at.in_row(j, rate), sense=1)
    yield FaultFamily(Id.EFFORT_SCALE, (j,), at.in_row(j, tau), unit=-1.0)
    yield FaultFamily(Id.EFFORT_SATURATES, (j,), at.in_row(j, _bend(tau)), sense=1)
    if not one_way(v) and min(np.sum(tau.clip(0) ** 2), np.sum(tau.clip(None, 0) ** 2)) > MATERIAL * np.sum(tau**2):
        yield FaultFamily(Id.EFFORT_PROGRESSIVE, (j,), at.in_row(j, _bend(tau)), unit=-1.0, sense=-1)
        beside = at.in_row(j, np.abs(v), v**2)  # friction that depends on the direction
        yield FaultFamily(Id.EFFORT_ASYMMETRIC, (j,), at.in_row(j, np.abs(tau)), beside, unit=-1.0)


def _along_the_travel(q: Array, v: Array, waves: float) -> Sequence[Array]:
    """A wave of the position, and friction that varies with it: sine and cosine, then the same with the velocity's sign.

    Args:
        waves: Radians of the wave per unit of the position [1/rad or 1/m].
    """
    sine, cosine, sign = np.sin(waves * q), np.cos(waves * q), smooth_sign(v, 0.1 * max(float(v.std()), 1e-9))
    return [sine, cosine, sine * sign, cosine * sign]


def _bend(tau: Array) -> Array:
    """Reduction of an effort by saturation, normalised to the relative reduction of a large effort, shape (N,).

    Cubic for small efforts and linear for large ones, so that a few large efforts do not dominate.
    """
    knee = _KNEE * max(float(np.percentile(np.abs(tau), 99.5)), 1e-12)
    return np.asarray((tau - knee * np.tanh(tau / knee)) / (1 - _KNEE * np.tanh(1 / _KNEE)))
