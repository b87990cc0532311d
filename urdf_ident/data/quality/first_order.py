"""Small faults, whose effect on the torques is in proportion to their size: found by that size and its error.

What a small error e(t) of one joint's positions does to all torques is known: ``∂τ/∂q e + ∂τ/∂v ė + ∂τ/∂a ë``, by the robot
that the log itself shows. So a zero, a wavy encoder and a play between joint and encoder each add one or two columns to the fit
of one rigid robot (:mod:`evidence`); a crosstalk, a saturation, another scale of one sign and a delay add what they do to one
joint's effort. The size of the fault is a coefficient, its error that of the estimate when blocks of time are left out
(jackknife). What friction or a ripple of the torque does at the same places is free in both fits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ...linalg import Array
from ...model.engine.pinocchio import regressor
from ...model.engine.rigid import rigid_of
from ...model.prior import lumped_inertials
from ...parallel import each
from ...samples import Segment
from ..conditioning.filters import lowpass
from .candidates import Reading
from .delay import reversing
from .evidence import EXACT, friction_columns, significance, solved
from .sampled import MotionSamples, ThinnedPiece, thinned
from .trial import Case

#: Waves a radian of an encoder's error that are tried; of a slide half as many in its range.
_WAVES = (1, 2, 3, 4, 6, 8)
#: Travel over a joint's range within which it has not turned back yet.
_TURNED = 2e-3
#: Parts of the torques between which the rows' weights differ.
_TRUSTED = (0.01, 0.5)
#: Part of a torque that must stay unexplained to look further.
_LEFT = 0.02
#: Gain on what the fit has seen that is worth the errors, and how many faults get them.
_WORTH, _CLOSE = 0.05, 4
#: Errors of a fault's size, its gain, and the standard errors of that between blocks, from which it is one: sound logs, real
#: and simulated, come to 7.4 errors with a gain of 2.6 standard errors, and to 5.8 of those with 4.2 errors.
_ERRORS, _GAIN, _SIGNIFICANT = 5.0, 0.12, 3.0
#: Faults that friction which no law has resembles: they must gain this, or this part of some torque; sound logs come to 0.39
#: and 0.048.
_LIKE_FRICTION, _MORE, _FELT = ("position-play", "effort-saturates"), 0.8, 0.07
#: Part of the URDF's gravity that is missing where it was subtracted: another part is another clock, mass or direction.
_WHOLE = (0.8, 1.25)
#: Part of an effort's square that each of its signs must have, so that their scales can be compared.
_BOTH = 0.05
#: Delay by which the efforts' rates are told [s].
_SOON = 0.004
#: Step of the numerical derivatives by positions, velocities and accelerations [rad or m, and per s, s²].
_STEP = 1e-4


@dataclass(frozen=True, eq=False)
class SmallFault:
    """A fault and what it explains.

    Attributes:
        id: Its finding.
        joints: Where it is; of a crosstalk the joint whose effort is logged wrongly, then the one whose effort is in it.
        size: [rad or m]; of a delay [s]; of a crosstalk the part of the other's effort; of a saturation the bend; of an
            asymmetry the part by which positive efforts are too large and negative ones too small; of gravity its part.
        errors: The size over its error.
        gain: Gain in the sum of the logarithms of the unexplained parts on blocks that the fit has not seen.
        significance: That gain over its standard error between blocks.
        left: Unexplained parts of the rows there without and with the fault, shape (2, n).
    """

    id: str
    joints: tuple[int, ...]
    size: float
    errors: float
    gain: float
    significance: float
    left: Array

    @property
    def decided(self) -> bool:
        """Whether it is beyond chance, and more than friction that no law has explains."""
        sure = self.errors > _ERRORS and self.gain > _GAIN and self.significance > _SIGNIFICANT
        if self.id == "effort-without-gravity" and not _WHOLE[0] < self.size < _WHOLE[1]:
            return False
        felt = float((self.left[0] ** 2 - self.left[1] ** 2).max()) > _FELT**2
        return sure and (self.id not in _LIKE_FRICTION or self.gain > _MORE or felt)


@dataclass(frozen=True)
class _Columns:
    """Where a fault's columns are: all rows hold the shared ones, one row its own, and with and without the fault the guard.

    The size is the root of the sum of the coefficients' squares times the unit; a sense is the coefficient's sign, or 0.
    """

    id: str
    joints: tuple[int, ...]
    shared: tuple[int, ...] = ()
    own: tuple[int, ...] = ()
    guard: tuple[int, ...] = ()
    unit: float = 1.0
    sense: int = 0


def small_faults(case: Case, logs: Sequence[tuple[Sequence[Segment], float]]) -> list[SmallFault]:
    """Looks for small faults in logs, read as they are described.

    Args:
        case: The robot and the samples of these logs.
        logs: Per log its conditioned motion with measured torque, and the cut-off of its positions [Hz].

    Returns:
        Those that explain most, best first; any may be chance. None where nothing material stays unexplained.
    """
    if case.judge(Reading.as_logged(case.robot.n)).left[case.moves].max() < _LEFT:
        return []
    rows = _Rows.of(case)
    promising: list[tuple[float, _Columns, _Trial]] = []
    late: dict[int, float] = {}
    moving = np.flatnonzero(case.moves)
    play = _play(logs, moving)
    for k, j in enumerate(moving.tolist()):
        trial, faults = rows.with_faults_of(j, play[:, :, k])
        plain = {fault.guard: trial.seen(fault.guard) for fault in faults}
        gains = [plain[fault.guard] - trial.seen(fault.guard, fault) for fault in faults]
        promising += [(gain, fault, trial) for gain, fault in zip(gains, faults, strict=True) if gain > _WORTH]
        late.update((j, float(trial.sizes(fault)[0, 0])) for fault in faults if fault.id == "effort-delay")
    promising.sort(key=lambda entry: -entry[0])
    found = [trial.measured(fault) for _, fault, trial in promising[:_CLOSE]]
    kept = [item for item in found if item is not None and (item.id != "effort-delay" or _alone(item, late))]
    return sorted(kept, key=lambda item: -item.gain)


def _alone(found: SmallFault, late: dict[int, float]) -> bool:
    """Whether a joint's effort is late and not those of the others as much: a delay of all is another matter."""
    others = [seconds for j, seconds in late.items() if j not in found.joints]
    return bool(others) and float(np.median(others)) < 0.5 * found.size


@dataclass(frozen=True, eq=False)
class _Trial:
    """All columns that the faults of one joint need.

    Attributes:
        rows: What the faults of all joints have in common.
        joint: The joint, whose row alone has own columns.
        shared: Shape (N, n, k).
        own: Shape (N, l).
    """

    rows: _Rows
    joint: int
    shared: Array
    own: Array

    def _columns(self, i: int, shared: Sequence[int], own: Sequence[int]) -> Array:
        """Columns [inertial | shared | friction | own | efforts] of a row."""
        rows = self.rows
        mine = self.own[:, own] if i == self.joint else np.zeros((len(self.own), len(own)))
        return np.hstack([rows.inertial[:, i], self.shared[:, i, shared], rows.friction[i], mine, rows.samples.tau])

    @cached_property
    def _total(self) -> Array:
        """Gram matrices of all columns over all samples, shape (n, p, p)."""
        shared, own = range(self.shared.shape[2]), range(self.own.shape[1])
        return np.stack([x.T @ x for x in (self._columns(i, shared, own) for i in range(self.rows.n))])

    def seen(self, guard: Sequence[int], fault: _Columns | None = None) -> float:
        """Sum of the logarithms of the unexplained parts of the rows that move, where the fit has seen everything."""
        gram, x = self._fitted(guard, fault)
        return float(np.log(self.rows.left(np.sum(x * (gram @ x), axis=2)[:, :, 0])[self.rows.case.moves]).sum())

    def sizes(self, fault: _Columns) -> Array:
        """Coefficients of a fault where the fit has seen everything, shape (1, number)."""
        return self._sizes(fault, self._fitted(fault.guard, fault)[1][:, :, :, 0])

    def _fitted(self, guard: Sequence[int], fault: _Columns | None) -> tuple[Array, Array]:
        """Gram matrices over all samples, (1, n, p, p), and coefficients, (1, n, p, 1)."""
        rows, (shared, own) = self.rows, _chosen(guard, fault)
        m, f, p = rows.inertial.shape[2], rows.friction.shape[2], self._total.shape[1]
        begin = m + self.shared.shape[2]
        rest = range(begin + f, p - rows.n)
        index = np.array(
            [*range(m), *(m + k for k in shared), *range(begin, begin + f), *(rest[k] for k in own), *range(p - rows.n, p)]
        )
        gram = self._total[None, :, index[:, None], index]
        return gram, solved(gram, np.array([rows.count.sum()]), m + len(shared), np.eye(rows.n)[:, :, None], rows.weights)

    def _sizes(self, fault: _Columns, x: Array) -> Array:
        """A fault's of all coefficients, shape (..., n, p), to (..., number)."""
        m = self.rows.inertial.shape[2]
        begin = m + self.rows.friction.shape[2] + len(fault.guard) if fault.own else m
        row = fault.joints[0] if fault.own else 0
        return x[..., row, begin : begin + max(len(fault.shared), len(fault.own))]

    def measured(self, fault: _Columns) -> SmallFault | None:
        """The size of a fault, its error, and what it explains elsewhere; None where its sense is impossible."""
        rows, moves = self.rows, self.rows.case.moves
        before, _ = self._without_each(fault.guard, None)
        after, x = self._without_each(fault.guard, fault)
        size = self._sizes(fault, x)
        if fault.sense and fault.sense * size[0, 0] <= 0:
            return None
        away = size[1:] - size[1:].mean(axis=0)
        spread = (1 - 1 / len(away)) * away.T @ away
        errors = float(np.sqrt(size[0] @ np.linalg.lstsq(spread, size[0], rcond=1e-12)[0] / len(size[0])))
        left = np.stack([rows.left(before), rows.left(after)])
        area = rows.count[:, None] * rows.size**2
        sure = significance((before / area)[:, moves], (after / area)[:, moves])
        gain = float(np.log(left[0] / left[1])[moves].sum())
        value = fault.unit * (float(size[0, 0]) if len(size[0]) == 1 else float(np.linalg.norm(size[0])))
        return SmallFault(fault.id, fault.joints, value, errors, gain, sure, left)

    def _without_each(self, guard: Sequence[int], fault: _Columns | None) -> tuple[Array, Array]:
        """Squared errors on blocks not seen, (B, n), and coefficients of all and without each block, (1 + B, n, p)."""
        rows, (shared, own) = self.rows, _chosen(guard, fault)
        columns = [self._columns(i, shared, own) for i in range(rows.n)]
        blocks = [np.flatnonzero(rows.samples.block == b) for b in range(len(rows.count))]
        gram = np.stack([[x[k].T @ x[k] for x in columns] for k in blocks])
        total = gram.sum(axis=0)
        counts = rows.count.sum() - np.append(0.0, rows.count)
        parts = np.concatenate([total[None], total - gram])
        x = solved(parts, counts, rows.inertial.shape[2] + len(shared), np.eye(rows.n)[:, :, None], rows.weights)
        return np.maximum(np.sum(x[1:] * (gram @ x[1:]), axis=2), 0.0)[:, :, 0], x[:, :, :, 0]


def _chosen(guard: Sequence[int], fault: _Columns | None) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return ((), tuple(guard)) if fault is None else (fault.shared, (*guard, *fault.own))


@dataclass(frozen=True, eq=False)
class _Rows:
    """What all faults' fits have in common.

    Attributes:
        case: The robot and the samples.
        inertial: Shape (N, n, m), scaled.
        friction: Shape (n, N, f), scaled.
        slopes: Derivatives of all torques by a joint's position, velocity and acceleration, shape (n, 3, N, n).
        fitted: Efforts by the robot that the log shows, shape (N, n): what is in proportion to a power or the size of an effort
            must not be made of the measured one, whose own errors it would explain.
        weight: Gravity torque by the URDF, shape (N, n) [N·m or N].
        weights: One over the variance of what each row leaves, shape (n,).
        samples: The samples.
        count: Samples of each block, shape (B,).
        size: Root mean square of each effort about its mean, shape (n,) [N·m or N].
    """

    case: Case
    inertial: Array
    friction: Array
    slopes: Array
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

    def left(self, squares: Array) -> Array:
        """Unexplained part of each row, shape (n,), from the squared errors by block, shape (B, n)."""
        return np.asarray(np.maximum(np.sqrt(squares.clip(0).sum(axis=0) / self.count.sum()) / self.size, EXACT))

    @classmethod
    def of(cls, case: Case) -> _Rows:
        robot, reading, samples = case.robot, Reading.as_logged(case.robot.n), case.sampled(0.0)
        columns = regressor(robot, samples.q, samples.v, samples.a)
        friction, sizes = [], []
        for j in range(robot.n):
            own = friction_columns(samples, j)
            sizes.append(np.maximum(np.sqrt(np.mean(own**2, axis=0)), 1e-12))
            friction.append(own / sizes[j])
        still = regressor(robot, samples.q, np.zeros_like(samples.v), np.zeros_like(samples.a))
        found = case.evidence(reading)
        weights = 1 / (np.clip(case.judge(reading).left, *_TRUSTED) * found.size) ** 2
        whole = found.summed()
        x = solved(whole.gram, whole.count, whole.inertial, np.eye(robot.n)[:, :, None], weights)[0, :, :, 0]
        theta = np.zeros(columns.shape[2])
        theta[found.active] = -x[0, : found.inertial] / found.scale
        inertial = columns[:, :, found.active] / found.scale
        drag = -x[:, found.inertial : x.shape[1] - robot.n]
        fitted = np.einsum("nik,k->ni", inertial, -x[0, : found.inertial]) + np.einsum("ink,ik->ni", friction, drag)
        # a step of friction has no slope: rotor inertia and viscous friction do
        drag[:, ~np.isin(np.arange(drag.shape[1]) % 6, (0, 2))] = 0.0
        engine, slopes = rigid_of(robot), np.empty((robot.n, 3, len(samples.q), robot.n))
        torque = engine.torque(theta, samples.q, samples.v, samples.a) + _friction(samples, sizes, drag)
        for j in range(robot.n):
            step = _STEP * (np.arange(robot.n) == j)
            places = (samples.q + step, samples.v, samples.a), (samples.q, samples.v + step, samples.a)
            for k, state in enumerate((*places, (samples.q, samples.v, samples.a + step))):
                moved = engine.torque(theta, *state) + _friction(samples.with_motion(*state), sizes, drag)
                slopes[j, k] = (moved - torque) / _STEP
        weight = still @ lumped_inertials(robot).ravel()
        return cls(case, inertial, np.stack(friction), slopes, fitted, weight, weights, samples, found.count, found.size)

    def with_faults_of(self, j: int, play: Array) -> tuple[_Trial, list[_Columns]]:
        """The columns of all faults of a joint.

        Args:
            j: The joint.
            play: What :func:`_play` says of it, shape (N, 3).

        Returns:
            What tries them, and the faults.
        """
        samples, robot = self.samples, self.case.robot
        q, v, a, n = samples.q[:, j], samples.v[:, j], samples.a[:, j], robot.n
        shared: list[Array] = [self.weight]
        own: list[Array] = []
        faults: list[_Columns] = []
        if j == int(np.flatnonzero(self.case.moves)[0]) and self.weight.any():
            faults.append(_Columns("effort-without-gravity", (), shared=(0,), sense=1))
        if not robot.prismatic[j]:
            faults.append(_Columns("position-zero", (j,), shared=(len(shared),), unit=-1.0))
            shared.append(self.slopes[j, 0])
        turn = np.pi / float(np.ptp(q)) if robot.prismatic[j] else 1.0
        sign = np.tanh(v / (0.1 * max(float(v.std()), 1e-9)))
        for waves in _WAVES:
            k = turn * waves
            sine, cosine = np.sin(k * q), np.cos(k * q)
            errors = (
                (sine, k * cosine * v, k * cosine * a - k**2 * sine * v**2),
                (cosine, -k * sine * v, -k * sine * a - k**2 * cosine * v**2),
            )
            at, free = len(shared), len(own)
            shared += [self._torque(j, *error) for error in errors]
            own += [sine, cosine, sine * sign, cosine * sign]
            faults.append(_Columns("position-nonlinear", (j,), (at, at + 1), guard=tuple(range(free, free + 4))))
        if play.any():
            at, free = len(shared), len(own)
            shared.append(self._torque(j, *play.T))
            own += [play[:, 0], play[:, 0] * q]
            faults.append(_Columns("position-play", (j,), (at,), guard=(free, free + 1), unit=-2.0, sense=-1))
        A = np.eye(n) if samples.reduction is None else samples.reduction
        for i in np.flatnonzero(self.case.moves & ~(A[A[:, j] != 0] != 0).any(axis=0)):  # not of motors that turn both
            if i != j:
                faults.append(_Columns("effort-crosstalk", (j, int(i)), own=(len(own),), unit=-1.0))
                own.append(samples.tau[:, i])
        soon, after = self.case.sampled(-_SOON).tau[:, j], self.case.sampled(_SOON).tau[:, j]
        at = len(own)
        own.append((after - soon) / (2 * _SOON))
        own += [*reversing(samples, j).T]
        faults.append(_Columns("effort-delay", (j,), own=(at,), guard=tuple(range(at + 1, len(own))), sense=1))
        tau = self.fitted[:, j]
        faults.append(_Columns("effort-saturates", (j,), own=(len(own),), sense=1))
        own.append(tau**3 / max(float(np.percentile(np.abs(tau), 99.5)), 1e-12) ** 2)
        if min(np.sum(tau.clip(0) ** 2), np.sum(tau.clip(None, 0) ** 2)) > _BOTH * np.sum(tau**2):
            at = len(own)  # friction that is another one forwards and backwards is free
            own += [np.abs(v), v**2, np.abs(tau)]
            faults.append(_Columns("effort-asymmetric", (j,), own=(at + 2,), guard=(at, at + 1), unit=-1.0))
        return _Trial(self, j, np.stack(shared, axis=2), np.column_stack(own)), faults

    def _torque(self, j: int, error: Array, rate: Array, growth: Array) -> Array:
        """What a small error of a joint's positions does to all torques, shape (N, n)."""
        by_position, by_velocity, by_acceleration = self.slopes[j]
        return np.asarray(by_position * error[:, None] + by_velocity * rate[:, None] + by_acceleration * growth[:, None])


def _friction(motion: MotionSamples, sizes: Sequence[Array], drag: Array) -> Array:
    """Rotor and friction torque of every joint, shape (N, n), from the sizes of the columns and their coefficients."""
    return np.column_stack([friction_columns(motion, j) @ (own / sizes[j]) for j, own in enumerate(drag)])


def _play(logs: Sequence[tuple[Sequence[Segment], float]], joints: NDArray[np.intp]) -> Array:
    """Where in its play a joint is that drives its encoder, and that number's first two derivatives, at the samples looked at.

    1 where the joint has pushed its encoder forwards, -1 backwards; while the encoder stands still after a reversal the joint
    goes from one to the other with even acceleration.

    Returns:
        Shape (N, 3, joints) [1, 1/s, 1/s²].
    """
    every = thinned(logs)
    ends = np.array([(item.part.q.min(axis=0), item.part.q.max(axis=0)) for item in every])[:, :, joints]
    least = _TURNED * np.maximum(ends[:, 1].max(axis=0) - ends[:, 0].min(axis=0), 1e-12)
    return np.concatenate(each(partial(_play_of, joints, least), every))


def _play_of(joints: NDArray[np.intp], least: Array, item: ThinnedPiece) -> Array:
    places = np.column_stack([_place(item.part.q[:, j], far) for j, far in zip(joints, least, strict=True)])
    place = lowpass(places, item.part.rate, item.cutoff)
    rate = np.gradient(place, axis=0) * item.part.rate
    return np.stack([place, rate, np.gradient(rate, axis=0) * item.part.rate], axis=1)[:: item.step].copy()


def _place(q: Array, least: float) -> Array:
    """Place in the play of each sample, shape (N,): from the turning points that the position leaves by more than ``least``."""
    rises = np.diff(q) > 0
    turns = [0, *(np.flatnonzero(rises[1:] != rises[:-1]) + 1), len(q) - 1]
    way, at, found = 0, 0, []
    for k in turns:
        step = float(q[k] - q[at])
        if way * step >= 0 and (way or abs(step) > least):
            way, at = way or int(np.sign(step)), k
        elif way and abs(step) > least:
            found.append((at, way))
            way, at = -way, k
    place, begin = np.full(len(q), float(way)), 0
    for (k, before), (end, _) in pairwise([*found, (len(q) - 1, 0)]):
        first = int(k - np.argmax(np.abs(q[begin : k + 1][::-1] - q[k]) > least)) if k > begin else k
        last = int(k + np.argmax(np.abs(q[k : end + 1] - q[k]) > least))
        place[begin:first] = before
        x = (np.arange(first, last) - first + 1) / max(last - first, 1)
        place[first:last] = before * (1 - 2 * x**2)
        begin = last
    return place
