"""Fits of one rigid robot to logs with and without the columns of one joint's faults.

A fault has one size in all logs, or one in each of some logs. The bodies are those of all logs; friction may be another one in
some of them, as long as the gears are cold.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...linalg import Array, IntArray, lstsq
from ..evidence import significance
from ..gram_fit import solved
from ..grams import COULOMB, VISCOUS
from .columns import FaultColumns, FaultRows
from .fault import SmallFault

#: Index of a column, and the log in which it acts; :data:`_ALL` if in all of them.
_Column = tuple[int, int]
_ALL = -1
#: Friction columns that change while gears warm up; more of them would explain faults as well.
_WARMS = (VISCOUS, COULOMB)


@dataclass(frozen=True)
class ChosenColumns:
    """Columns of a fit: those shared by all rows, those of one row, and logs in which the friction of every row is another."""

    shared: tuple[_Column, ...]
    own: tuple[_Column, ...]
    cold: tuple[int, ...] = ()

    @classmethod
    def without(cls, fault: FaultColumns) -> ChosenColumns:
        """Columns of the fit without a fault."""
        return cls(_acting(fault.shared[: fault.given]), _acting(fault.guard), fault.logs if fault.cold else ())

    @classmethod
    def of(cls, fault: FaultColumns) -> ChosenColumns:
        """Columns of the fit with a fault."""
        base, logs = cls.without(fault), fault.logs or (_ALL,)
        shared, own = _acting(fault.shared[fault.given :], logs), _acting(fault.own, logs)
        return cls((*base.shared, *shared), (*base.own, *own), base.cold)


def _acting(columns: tuple[int, ...], logs: tuple[int, ...] = (_ALL,)) -> tuple[_Column, ...]:
    return tuple((column, log) for log in logs for column in columns)


@dataclass(frozen=True, eq=False)
class FaultTrial:
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
    def of(cls, rows: FaultRows, j: int, play: Array, jerk: Array, efforts: Array) -> tuple[FaultTrial, list[FaultColumns]]:
        """Builds the columns of a joint's faults and their assignment; arguments as for :meth:`.FaultRows.with_faults_of`."""
        shared, own, faults = rows.with_faults_of(j, play, jerk, efforts)
        return cls(rows, j, shared, own), faults

    @cached_property
    def _blocks(self) -> Array:
        """Gram matrices of all columns [inertial | shared | friction | own | efforts] by block, shape (B, n, p, p)."""
        rows, none = self.rows, np.zeros_like(self.own)
        out = []
        for i in range(rows.n):
            own = self.own if i == self.joint else none
            columns = np.hstack([rows.inertial[:, i], self.shared[:, i], rows.friction[i], own, rows.samples.tau])
            columns *= rows.samples.glides[:, i, None]
            out.append([x.T @ x for x in (columns[rows.samples.block == b] for b in range(len(rows.count)))])
        return np.array(out).swapaxes(0, 1)

    @cached_property
    def _by_log(self) -> Array:
        """Sums of the Gram matrices over the blocks of each log, shape (L, n, p, p); large where there are many logs."""
        return np.stack([self._blocks[self.rows.samples.log_of_block == k].sum(axis=0) for k in range(self.rows.logs)])

    @cached_property
    def _total(self) -> Array:
        """Sum of the Gram matrices over all blocks, shape (n, p, p)."""
        return np.asarray(self._blocks.sum(axis=0))

    def _columns(self, chosen: ChosenColumns) -> tuple[IntArray, IntArray]:
        """Indices of the chosen columns among all, and the log in which each acts, shape (p',) each."""
        m, f, p = self.rows.inertial.shape[2], self.rows.friction.shape[2], self._total.shape[-1]
        begin = m + self.shared.shape[2]
        columns = [
            *_acting(tuple(range(m))),
            *((m + k, at) for k, at in chosen.shared),
            *_acting(tuple(range(begin, begin + f))),
            *_acting(tuple(begin + k for k in _WARMS), chosen.cold),
            *((begin + f + k, at) for k, at in chosen.own),
            *_acting(tuple(range(p - self.rows.n, p))),
        ]
        index, at = np.array(columns).T
        return index, at

    def seen(self, chosen: ChosenColumns) -> float:
        """Sum of the in-sample log relative residuals of the moving rows."""
        gram, x = self._fitted(chosen)
        return float(np.log(self.rows.left(np.sum(x * (gram @ x), axis=2)[:, :, 0])[self.rows.case.moves]).sum())

    def sizes(self, fault: FaultColumns) -> Array:
        """Coefficients of a fault's size in a fit to all samples, shape (1, numbers)."""
        return self._sizes(fault, self._fitted(ChosenColumns.of(fault))[1][:, :, :, 0])

    def effect(self, fault: FaultColumns) -> Array:
        """What corrects a fault if added to the efforts, from a fit to all samples, shape (N, n)."""
        chosen = ChosenColumns.of(fault)
        x = self._fitted(chosen)[1][0, :, :, 0]
        m, own = self.rows.inertial.shape[2], chosen.own[len(fault.guard) :]
        end = x.shape[1] - self.rows.n
        out = np.asarray(self._at(self.shared, chosen.shared) @ x[0, m : m + len(chosen.shared)])
        out[:, self.joint] += self._at(self.own, own) @ x[self.joint, end - len(own) : end]
        return out

    def _at(self, columns: Array, chosen: tuple[_Column, ...]) -> Array:
        """Some columns, shape (N, ..., k), zero outside the logs in which they act."""
        index, at = np.array(chosen, dtype=int).reshape(-1, 2).T
        acts = (at == _ALL) | (at == self.rows.samples.log[:, None])
        return np.asarray(columns[..., index] * acts.reshape(len(acts), *[1] * (columns.ndim - 2), -1))

    def _fitted(self, chosen: ChosenColumns) -> tuple[Array, Array]:
        """Gram matrices over all samples, (1, n, p, p), and coefficients, (1, n, p, 1)."""
        rows, (index, at) = self.rows, self._columns(chosen)
        gram = self._total[:, index[:, None], index]
        for log in np.unique(at[at != _ALL]):
            there, acts = np.flatnonzero(at == log), (at == _ALL) | (at == log)
            gram[:, there] = acts * self._by_log[log][:, index[there][:, None], index]
            gram[:, :, there] = gram[:, there].swapaxes(1, 2)
        m = rows.inertial.shape[2] + len(chosen.shared)
        return gram[None], solved(gram[None], np.array([rows.count.sum()]), m, np.eye(rows.n)[:, :, None], rows.weights)

    def _sizes(self, fault: FaultColumns, x: Array) -> Array:
        """Selects the coefficients of a fault's size, shape (..., numbers), from all coefficients, shape (..., n, p)."""
        row, end = 0, self.rows.inertial.shape[2] + len(ChosenColumns.of(fault).shared)
        if fault.own:
            row, end = fault.joints[0], x.shape[-1] - self.rows.n
        return x[..., row, end - fault.sizes : end]

    def measured(self, fault: FaultColumns) -> SmallFault:
        """Size of a fault, its error and its held-out gain."""
        rows, moves = self.rows, self.rows.case.moves
        before, _ = self._without_each(ChosenColumns.without(fault))
        after, x = self._without_each(ChosenColumns.of(fault))
        size = self._sizes(fault, x)
        away = size[1:] - size[1:].mean(axis=0)
        spread = (1 - 1 / len(away)) * away.T @ away
        errors = float(np.sqrt(size[0] @ lstsq(spread, size[0], rcond=1e-12)[0] / len(size[0])))
        left = np.stack([rows.left(before), rows.left(after)])
        area = rows.count[:, None] * rows.size**2
        there = np.isin(rows.samples.log_of_block, fault.logs or rows.samples.log_of_block)
        sure = significance((before / area)[there][:, moves], (after / area)[there][:, moves])
        gain = float(np.log(left[0] / left[1])[moves].sum())
        each = len(fault.logs) > 1 and fault.numbers == 1
        value = float(np.ptp(size[0]) if each else size[0, 0] if len(size[0]) == 1 else np.linalg.norm(size[0]))
        measured = fault.unit * value, errors, gain, sure, left, len(size[0])
        return SmallFault(fault.id, fault.joints, *measured, fault.logs, fault.slope)

    def _without_each(self, chosen: ChosenColumns) -> tuple[Array, Array]:
        """Held-out squared errors, (B, n), and coefficients from all blocks and without each block, (1 + B, n, p)."""
        rows, (index, at) = self.rows, self._columns(chosen)
        acts = (at == _ALL) | (at == rows.samples.log_of_block[:, None])
        gram = self._blocks[:, :, index[:, None], index] * (acts[:, None, :, None] & acts[:, None, None, :])
        total = gram.sum(axis=0)
        counts = rows.count.sum() - np.append(0.0, rows.count)
        parts = np.concatenate([total[None], total - gram])
        x = solved(parts, counts, rows.inertial.shape[2] + len(chosen.shared), np.eye(rows.n)[:, :, None], rows.weights)
        return np.maximum(np.sum(x[1:] * (gram @ x[1:]), axis=2), 0.0)[:, :, 0], x[:, :, :, 0]
