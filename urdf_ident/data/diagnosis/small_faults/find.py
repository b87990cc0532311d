"""Tests for small faults, whose effect on the torques is proportional to their size.

Each fault adds columns to the fit of one rigid robot (:mod:`.columns`). Its size is a coefficient with a jackknife
standard error over blocks of time. Friction and torque ripple with a similar effect are free in the fits with and without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ....linalg import Array, lstsq, rms
from ..candidates import Reading
from ..case import Case
from ..evidence import significance
from ..gram_fit import solved
from ..motion_samples import Logs, jerks
from .backlash import play
from .columns import ALL_LATE, FaultColumns, FaultRows

#: Least relative residual for which small faults are searched.
_LEFT = 0.02
#: In-sample gain from which errors are computed, and for how many faults and axis placements.
_WORTH, _CLOSE, _CLOSE_PLACES = 0.05, 4, 2
#: Least size of a fault in standard errors, least gain, and least gain in standard errors between blocks: fault-free logs, real
#: and simulated, reach 7.4 errors with a gain of 2.6 standard errors, and 4.2 errors with 5.8. A gain that is equal in all
#: blocks needs fewer errors of the size, which varies between blocks with the motion; so does a gain above `_MORE`.
_ERRORS, _GAIN, _SIGNIFICANT = 5.0, 0.12, 3.0
_FEWER_ERRORS, _IN_ALL, _OF_LARGE = 3.0, 8.0, 5.0
#: Least gain, or least explained part of some torque, of faults that resemble unmodelled friction: in fault-free logs backlash
#: reaches 0.58 and 0.048, a significant saturation 0.67 and 0.016, crosstalk 0.29 and 0.017.
_MORE, _LIKE_FRICTION = 0.8, {"position-play": 0.06, "effort-saturates": 0.04, "effort-crosstalk": 0.02}
#: Bounds of a fault that is too weak to be named, but not excluded: size in errors of a normal number, least gain in
#: standard errors, least in-sample gain, and least change of the model's torques over the error that remains. Of 128
#: fault-free sets of logs none exceeds all bounds: with a change above 0.5, the in-sample gain reached 0.06 in 64 of them.
_BY_CHANCE, _SUPPORTED, _SEEN, _FELT = 2.75, 1.5, 0.1, 0.5
#: Part of its in-sample gain that no significant fault with which the model stays as it is may explain.
_ALSO = 0.7
#: Least ratio of improved to worsened rows for a saturation of all efforts: friction bends that of one joint. The opposite bend
#: is load-dependent friction: the UR10e's reaches 0.08, simulated ones 0.02.
_OFTENER = 2.0
#: Least part of some torque that another axis placement must explain: no URDF is exact, and the published one of the Panda
#: reaches 0.01; and its least advantage over another fault, because it has two parameters.
_GEOMETRY, _PLACED, _MORE_NUMBERS = ("joint-origin", "joint-axis"), 0.015, 0.15
#: Faults with several parameters.
_FREER = (*_GEOMETRY, "contact-spring")
#: Size of a fault of positions or axes (fraction, rad or m) above which the first-order approximation is invalid.
_FIRST_ORDER = 0.5
#: Missing fraction of the URDF's gravity if all of it was subtracted; other fractions may be a clock or direction fault.
_WHOLE = (0.8, 1.25)


#: Indices of a fit's shared columns, and of its columns of one row.
_Chosen = tuple[tuple[int, ...], tuple[int, ...]]


@dataclass(frozen=True, eq=False)
class SmallFault:
    """A small fault and its effect.

    Attributes:
        joints: Its joints; for crosstalk the joint with the wrong effort, then the joint whose effort leaks into it.
        size: [rad or m]; delay [s], negative if positions are early; crosstalk: fraction of the other effort; saturation: the
            bend; asymmetry: fraction by which positive efforts are too large and negative ones too small; gravity: its
            fraction.
        errors: The size over its standard error.
        gain: Gain in the sum of the log relative residuals on held-out blocks.
        significance: The gain over its standard error between blocks.
        left: Held-out relative residuals of the rows without and with the fault, shape (2, n).
        seen: In-sample gain.
        shift: RMS by which the correction changes the torques of bodies and friction, over the held-out error with it; of the
            means over the joints that move.
    """

    id: str
    joints: tuple[int, ...]
    size: float
    errors: float
    gain: float
    significance: float
    left: Array
    numbers: int = 1
    seen: float = 0.0
    shift: float = 0.0

    @property
    def possible(self) -> bool:
        """Whether the logs do not exclude it and the model depends on it; delays are estimated elsewhere."""
        k = 2 / (9 * self.numbers)  # quantile of chi-square, Wilson and Hilferty 1931
        sure = self.errors**2 > (1 - k + _BY_CHANCE * np.sqrt(k)) ** 3 and self.significance > _SUPPORTED and self.seen > _SEEN
        large = self.id.startswith(("position", "joint")) and abs(self.size) > _FIRST_ORDER
        return bool(sure and self.gain > 0 and self.shift > _FELT and self.id != "effort-delay" and not large)

    @property
    def whole(self) -> bool:
        """Whether all of the URDF's gravity is missing."""
        return _WHOLE[0] < self.size < _WHOLE[1]

    @property
    def decided(self) -> bool:
        """Whether it is significant, and larger than unmodelled friction explains."""
        enough = _OF_LARGE if self.gain > _MORE else _IN_ALL
        steady = self.errors > _FEWER_ERRORS and self.significance > enough
        sure = self.gain > _GAIN and (steady or (self.errors > _ERRORS and self.significance > _SIGNIFICANT))
        if not self.joints and self.id == "effort-saturates":
            return sure and np.sum(self.left[1] < self.left[0]) > _OFTENER * np.sum(self.left[1] > self.left[0])
        felt = float((self.left[0] ** 2 - self.left[1] ** 2).max())
        if self.id in _GEOMETRY:
            return sure and felt > _PLACED**2
        if self.id == "position-scale" and abs(self.size) > _FIRST_ORDER:
            return False
        return sure and (self.gain > _MORE or felt > _LIKE_FRICTION.get(self.id, 0.0) ** 2)


def small_faults(case: Case, logs: Logs) -> list[SmallFault]:
    """Searches for small faults in logs as described.

    Args:
        case: The robot and the samples of these logs.
        logs: Conditioned motion with measured torque of each log, and the cut-off of its positions [Hz].

    Returns:
        The faults that explain most, best first; they may be insignificant. None if the residual is small.
    """
    if case.judge(Reading.as_logged(case.robot.n)).left[case.moves].max() < _LEFT:
        return []
    rows = FaultRows.of(case)
    promising: list[tuple[float, FaultColumns, _Trial]] = []
    late: dict[int, float] = {}
    moving = np.flatnonzero(case.moves)
    loose, growth = play(logs, moving), jerks(logs)[0]
    for k, j in enumerate(moving.tolist()):
        trial, faults = _Trial.of(rows, j, loose[:, :, k], growth)
        plain = {_without(fault): trial.seen(_without(fault)) for fault in faults}
        gains = {fault: plain[_without(fault)] - trial.seen(_with(fault)) for fault in faults}
        common = next(gain for fault, gain in gains.items() if fault.id == ALL_LATE)
        worth = {fault: gain for fault, gain in gains.items() if gain > _WORTH and _own(fault, gain, common)}
        own = {fault: gain for fault, gain in worth.items() if fault.sense * trial.sizes(fault)[0, 0] >= 0}
        promising += [(gain, fault, trial) for fault, gain in own.items()]
        late.update((j, float(trial.sizes(fault)[0, 0])) for fault in faults if fault.id == "effort-delay")
    promising.sort(key=lambda entry: -entry[0])
    places = [entry for entry in promising if entry[1].id in _GEOMETRY][:_CLOSE_PLACES]
    others = [entry for entry in promising if entry[1].id not in _GEOMETRY][:_CLOSE]
    found = [trial.measured(fault) for _, fault, trial in (*others, *places)]
    kept = [item for item in found if item.id != "effort-delay" or _alone(item, late)]
    return sorted(kept, key=lambda item: (_MORE_NUMBERS if item.id in _FREER else 0.0) - item.gain)


def not_excluded(tested: Sequence[SmallFault]) -> list[SmallFault]:
    """Selects possible faults whose effect no significant one explains with which the model stays as it is.

    Args:
        tested: All that :func:`small_faults` found.

    Returns:
        Those that keep a model from being good, in the same order.
    """
    significant = [item for item in tested if item.errors > _FEWER_ERRORS and item.significance > _SIGNIFICANT]
    harmless = max((item.seen for item in significant if item.shift <= _FELT), default=0.0)
    return [item for item in tested if item.possible and _ALSO * item.seen > harmless]


def effect(case: Case, logs: Logs, fault: SmallFault) -> Array | None:
    """Estimates what must be added to the efforts to correct a fault.

    Args:
        case: The robot and the samples of these logs, some or all of those in which the fault was found.
        logs: As for :func:`small_faults`.
        fault: The fault; its size is estimated again.

    Returns:
        Shape (N, n) [N·m or N]; None if the joint does not move in these logs.
    """
    j = fault.joints[0] if fault.joints else int(np.flatnonzero(case.moves)[0])
    if not case.moves[j]:
        return None
    trial, faults = _Trial.of(FaultRows.of(case), j, play(logs, np.array([j]))[:, :, 0], jerks(logs)[0])
    same = [item for item in faults if (item.id, item.joints) == (fault.id, fault.joints)]
    return trial.effect(min(same, key=lambda item: trial.seen(_with(item)))) if same else None


def _own(fault: FaultColumns, gain: float, common: float) -> bool:
    """Whether a fault belongs to one joint; a delay of its positions must explain more than one of all positions."""
    return fault.id != ALL_LATE and (fault.id != "position-late" or gain > common)


def _alone(found: SmallFault, late: dict[int, float]) -> bool:
    """Whether a joint's effort is later than those of the others; a common delay is handled elsewhere."""
    others = [seconds for j, seconds in late.items() if j not in found.joints]
    return bool(others) and float(np.median(others)) < 0.5 * found.size


@dataclass(frozen=True, eq=False)
class _Trial:
    """Columns of all faults of one joint.

    Attributes:
        rows: Data common to the faults of all joints.
        joint: The joint; only its row has own columns.
        shared: Shape (N, n, k).
        own: Shape (N, l).
    """

    rows: FaultRows
    joint: int
    shared: Array
    own: Array

    @classmethod
    def of(cls, rows: FaultRows, j: int, play: Array, jerk: Array) -> tuple[_Trial, list[FaultColumns]]:
        """Builds the columns of a joint's faults and their assignment; arguments as for :meth:`.FaultRows.with_faults_of`."""
        shared, own, faults = rows.with_faults_of(j, play, jerk)
        return cls(rows, j, shared, own), faults

    def _columns(self, i: int, shared: Sequence[int], own: Sequence[int]) -> Array:
        """Columns [inertial | shared | friction | own | efforts] of a row."""
        rows = self.rows
        mine = self.own[:, own] if i == self.joint else np.zeros((len(self.own), len(own)))
        columns = np.hstack([rows.inertial[:, i], self.shared[:, i, shared], rows.friction[i], mine, rows.samples.tau])
        return columns * rows.samples.glides[:, i, None]

    @cached_property
    def _total(self) -> Array:
        """Gram matrices of all columns over all samples, shape (n, p, p)."""
        shared, own = range(self.shared.shape[2]), range(self.own.shape[1])
        return np.stack([x.T @ x for x in (self._columns(i, shared, own) for i in range(self.rows.n))])

    def seen(self, chosen: _Chosen) -> float:
        """Sum of the in-sample log relative residuals of the moving rows."""
        gram, x = self._fitted(chosen)
        return float(np.log(self.rows.left(np.sum(x * (gram @ x), axis=2)[:, :, 0])[self.rows.case.moves]).sum())

    def sizes(self, fault: FaultColumns) -> Array:
        """Coefficients of a fault's size in a fit to all samples, shape (1, numbers)."""
        return self._sizes(fault, self._fitted(_with(fault))[1][:, :, :, 0])

    def effect(self, fault: FaultColumns) -> Array:
        """What corrects a fault if added to the efforts, from a fit to all samples, shape (N, n)."""
        x = self._fitted(_with(fault))[1][0, :, :, 0]
        m, guard = self.rows.inertial.shape[2], len(fault.guard)
        begin = m + len(fault.shared)
        out = np.asarray(self.shared[:, :, fault.shared] @ x[0, m:begin])
        begin += self.rows.friction.shape[2] + guard
        out[:, self.joint] += self.own[:, fault.own] @ x[self.joint, begin : begin + len(fault.own)]
        return out

    def _fitted(self, chosen: _Chosen) -> tuple[Array, Array]:
        """Gram matrices over all samples, (1, n, p, p), and coefficients, (1, n, p, 1)."""
        rows, (shared, own) = self.rows, chosen
        m, f, p = rows.inertial.shape[2], rows.friction.shape[2], self._total.shape[1]
        begin = m + self.shared.shape[2]
        rest = range(begin + f, p - rows.n)
        index = np.array(
            [*range(m), *(m + k for k in shared), *range(begin, begin + f), *(rest[k] for k in own), *range(p - rows.n, p)]
        )
        gram = self._total[None, :, index[:, None], index]
        return gram, solved(gram, np.array([rows.count.sum()]), m + len(shared), np.eye(rows.n)[:, :, None], rows.weights)

    def _sizes(self, fault: FaultColumns, x: Array) -> Array:
        """Selects the coefficients of a fault's size, shape (..., numbers), from all coefficients, shape (..., n, p)."""
        m = self.rows.inertial.shape[2]
        begin = m + self.rows.friction.shape[2] + len(fault.guard) if fault.own else m
        row = fault.joints[0] if fault.own else 0
        return x[..., row, begin : begin + max(len(fault.shared), len(fault.own))][..., -fault.numbers :]

    def measured(self, fault: FaultColumns) -> SmallFault:
        """Size of a fault, its error and its held-out gain."""
        rows, moves = self.rows, self.rows.case.moves
        before, _ = self._without_each(_without(fault))
        after, x = self._without_each(_with(fault))
        size = self._sizes(fault, x)
        away = size[1:] - size[1:].mean(axis=0)
        spread = (1 - 1 / len(away)) * away.T @ away
        errors = float(np.sqrt(size[0] @ lstsq(spread, size[0], rcond=1e-12)[0] / len(size[0])))
        left = np.stack([rows.left(before), rows.left(after)])
        area = rows.count[:, None] * rows.size**2
        sure = significance((before / area)[:, moves], (after / area)[:, moves])
        gain = float(np.log(left[0] / left[1])[moves].sum())
        value = fault.unit * (float(size[0, 0]) if len(size[0]) == 1 else float(np.linalg.norm(size[0])))
        shift = float(self._shift(fault)[moves].sum() / left[1][moves].sum())
        seen = self.seen(_without(fault)) - self.seen(_with(fault))
        return SmallFault(fault.id, fault.joints, value, errors, gain, sure, left, len(size[0]), seen, shift)

    def _shift(self, fault: FaultColumns) -> Array:
        """RMS change of the torques of bodies and friction by the correction, over the size of each effort, shape (n,)."""
        rows, change = self.rows, np.zeros_like(self.rows.fitted)
        m, f = rows.inertial.shape[2], rows.friction.shape[2]
        for sign, chosen in ((-1.0, _without(fault)), (1.0, _with(fault))):
            x = self._fitted(chosen)[1][0, :, :, 0]
            begin = m + len(chosen[0])
            change += sign * np.einsum("nik,ik->ni", rows.inertial, x[:, :m])
            change += sign * np.einsum("ink,ik->ni", rows.friction, x[:, begin : begin + f])
        return rms(change * rows.samples.glides, axis=0) / rows.size

    def _without_each(self, chosen: _Chosen) -> tuple[Array, Array]:
        """Held-out squared errors, (B, n), and coefficients from all blocks and without each block, (1 + B, n, p)."""
        rows, (shared, own) = self.rows, chosen
        columns = [self._columns(i, shared, own) for i in range(rows.n)]
        blocks = [np.flatnonzero(rows.samples.block == b) for b in range(len(rows.count))]
        gram = np.stack([[x[k].T @ x[k] for x in columns] for k in blocks])
        total = gram.sum(axis=0)
        counts = rows.count.sum() - np.append(0.0, rows.count)
        parts = np.concatenate([total[None], total - gram])
        x = solved(parts, counts, rows.inertial.shape[2] + len(shared), np.eye(rows.n)[:, :, None], rows.weights)
        return np.maximum(np.sum(x[1:] * (gram @ x[1:]), axis=2), 0.0)[:, :, 0], x[:, :, :, 0]


def _without(fault: FaultColumns) -> _Chosen:
    return fault.shared[: fault.given], fault.guard


def _with(fault: FaultColumns) -> _Chosen:
    return fault.shared, (*fault.guard, *fault.own)
