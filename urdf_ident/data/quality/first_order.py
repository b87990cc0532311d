"""Small faults, whose effect on the torques is in proportion to their size: found by that size and its error.

Each adds columns to the fit of one rigid robot (:mod:`fault_columns`). The size of the fault is a coefficient, its error that
of the estimate when blocks of time are left out (jackknife). What friction or a ripple of the torque does at the same places
is free in both fits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...linalg import Array, lstsq
from ...samples import Segment
from .candidates import Reading
from .evidence import significance
from .fault_columns import ALL_LATE, FaultColumns, FaultRows
from .gram_fit import solved
from .play import play
from .sampled import jerks
from .trial import Case

#: Part of a torque that must stay unexplained to look further.
_LEFT = 0.02
#: Gain on what the fit has seen that is worth the errors, and how many faults and other places of axes get them.
_WORTH, _CLOSE, _CLOSE_PLACES = 0.05, 4, 2
#: Errors of a fault's size, its gain, and the standard errors of that between blocks, from which it is one: sound logs, real
#: and simulated, come to 7.4 errors with a gain of 2.6 standard errors, and to 5.8 of those with 4.2 errors. A gain in all
#: blocks alike needs fewer errors of the size, which differs between them where the motion does.
_ERRORS, _GAIN, _SIGNIFICANT = 5.0, 0.12, 3.0
_FEWER_ERRORS, _IN_ALL = 3.0, 8.0
#: Faults that friction which no law has resembles must gain this, or this part of some torque: play comes to 0.58 and 0.048 in
#: sound logs, a saturation beyond its errors to 0.67 and 0.016.
_MORE, _LIKE_FRICTION = 0.8, {"position-play": 0.06, "effort-saturates": 0.04}
#: What all efforts have alike makes so many times as many rows better as worse: friction bends one joint's. The other way,
#: large efforts too large, is friction that grows with the load: the UR10e's come to a bend of 0.08, simulated ones to 0.02.
_OFTENER = 2.0
#: Part of some torque that other places of an axis must explain: no URDF is exact, and the Panda's published one comes to 0.01;
#: and by how much they must explain more than another fault, for they have two numbers.
_GEOMETRY, _PLACED, _MORE_NUMBERS = ("joint-origin", "joint-axis"), 0.015, 0.15
#: Scale of positions beyond which a first order tells none: what it neglects is that part of what it tells.
_FIRST_ORDER = 0.5
#: Part of the URDF's gravity that is missing where the whole was subtracted; another part may be another clock or direction.
_WHOLE = (0.8, 1.25)


#: Which columns that all rows share, and which of one row, a fit has.
_Chosen = tuple[tuple[int, ...], tuple[int, ...]]


@dataclass(frozen=True, eq=False)
class SmallFault:
    """A fault and what it explains.

    Attributes:
        id: Its finding.
        joints: Where it is; of a crosstalk the joint whose effort is logged wrongly, then the one whose effort is in it.
        size: [rad or m]; of a delay [s], of positions negative where they are early; of a crosstalk the part of the other's
            effort; of a saturation the bend; of an asymmetry the part by which positive efforts are too large and negative
            ones too small; of gravity its part.
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
    def whole(self) -> bool:
        """Whether missing gravity is all of the URDF's."""
        return _WHOLE[0] < self.size < _WHOLE[1]

    @property
    def decided(self) -> bool:
        """Whether it is beyond chance, and more than friction that no law has explains."""
        steady = self.errors > _FEWER_ERRORS and self.significance > _IN_ALL
        sure = self.gain > _GAIN and (steady or (self.errors > _ERRORS and self.significance > _SIGNIFICANT))
        if not self.joints and self.id == "effort-saturates":
            return sure and np.sum(self.left[1] < self.left[0]) > _OFTENER * np.sum(self.left[1] > self.left[0])
        felt = float((self.left[0] ** 2 - self.left[1] ** 2).max())
        if self.id in _GEOMETRY:
            return sure and felt > _PLACED**2
        if self.id == "position-scale" and abs(self.size) > _FIRST_ORDER:
            return False
        return sure and (self.gain > _MORE or felt > _LIKE_FRICTION.get(self.id, 0.0) ** 2)


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
    rows = FaultRows.of(case)
    promising: list[tuple[float, FaultColumns, _Trial]] = []
    late: dict[int, float] = {}
    moving = np.flatnonzero(case.moves)
    loose, growth = play(logs, moving), jerks(logs)
    for k, j in enumerate(moving.tolist()):
        trial, faults = _Trial.of(rows, j, loose[:, :, k], growth)
        plain = {_without(fault): trial.seen(_without(fault)) for fault in faults}
        gains = {fault: plain[_without(fault)] - trial.seen(_with(fault)) for fault in faults}
        common = next(gain for fault, gain in gains.items() if fault.id == ALL_LATE)
        own = {fault: gain for fault, gain in gains.items() if gain > _WORTH and _own(fault, gain, common)}
        promising += [(gain, fault, trial) for fault, gain in own.items()]
        late.update((j, float(trial.sizes(fault)[0, 0])) for fault in faults if fault.id == "effort-delay")
    promising.sort(key=lambda entry: -entry[0])
    places = [entry for entry in promising if entry[1].id in _GEOMETRY][:_CLOSE_PLACES]
    others = [entry for entry in promising if entry[1].id not in _GEOMETRY][:_CLOSE]
    found = [trial.measured(fault) for _, fault, trial in (*others, *places)]
    kept = [item for item in found if item is not None and (item.id != "effort-delay" or _alone(item, late))]
    return sorted(kept, key=lambda item: (_MORE_NUMBERS if item.id in _GEOMETRY else 0.0) - item.gain)


def _own(fault: FaultColumns, gain: float, common: float) -> bool:
    """Whether a fault is one of a joint: of its positions' delay if it explains more than that of all joints' positions."""
    return fault.id != ALL_LATE and (fault.id != "position-late" or gain > common)


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

    rows: FaultRows
    joint: int
    shared: Array
    own: Array

    @classmethod
    def of(cls, rows: FaultRows, j: int, play: Array, jerk: Array) -> tuple[_Trial, list[FaultColumns]]:
        """The columns of a joint's faults, and which is whose; arguments as for :meth:`.FaultRows.with_faults_of`."""
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
        """Sum of the logarithms of the unexplained parts of the rows that move, where the fit has seen everything."""
        gram, x = self._fitted(chosen)
        return float(np.log(self.rows.left(np.sum(x * (gram @ x), axis=2)[:, :, 0])[self.rows.case.moves]).sum())

    def sizes(self, fault: FaultColumns) -> Array:
        """Coefficients of a fault where the fit has seen everything, shape (1, number)."""
        return self._sizes(fault, self._fitted(_with(fault))[1][:, :, :, 0])

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
        """A fault's of all coefficients, shape (..., n, p), to (..., number)."""
        m = self.rows.inertial.shape[2]
        begin = m + self.rows.friction.shape[2] + len(fault.guard) if fault.own else m
        row = fault.joints[0] if fault.own else 0
        return x[..., row, begin : begin + max(len(fault.shared), len(fault.own))]

    def measured(self, fault: FaultColumns) -> SmallFault | None:
        """The size of a fault, its error, and what it explains elsewhere; None where its sense is impossible."""
        rows, moves = self.rows, self.rows.case.moves
        before, _ = self._without_each(_without(fault))
        after, x = self._without_each(_with(fault))
        size = self._sizes(fault, x)[:, -fault.numbers :]
        if fault.sense and fault.sense * size[0, 0] <= 0:
            return None
        away = size[1:] - size[1:].mean(axis=0)
        spread = (1 - 1 / len(away)) * away.T @ away
        errors = float(np.sqrt(size[0] @ lstsq(spread, size[0], rcond=1e-12)[0] / len(size[0])))
        left = np.stack([rows.left(before), rows.left(after)])
        area = rows.count[:, None] * rows.size**2
        sure = significance((before / area)[:, moves], (after / area)[:, moves])
        gain = float(np.log(left[0] / left[1])[moves].sum())
        value = fault.unit * (float(size[0, 0]) if len(size[0]) == 1 else float(np.linalg.norm(size[0])))
        return SmallFault(fault.id, fault.joints, value, errors, gain, sure, left)

    def _without_each(self, chosen: _Chosen) -> tuple[Array, Array]:
        """Squared errors on blocks not seen, (B, n), and coefficients of all and without each block, (1 + B, n, p)."""
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
