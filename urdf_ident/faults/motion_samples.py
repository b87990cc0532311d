"""Subsamples conditioned logs so that hundreds of interpretations can be evaluated."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import groupby

import numpy as np

from ..linalg import Array, BoolArray, IntArray, positive, rms
from ..parallel import each
from ..samples import SAME_POSE, fast_speed
from ..signals.filters import ahead, lowpass
from .thinned_logs import SAMPLES, Logs, ThinnedPiece, smoothed_efforts, thinned

#: Positions and velocities of a segment in one direction, shape (N,) each [rad or m, and per s].
MovingPart = tuple[Array, Array]
#: Functions of the motion in the segments of one log, in order, shape (N, k) each.
OfOneLog = Callable[[Sequence[MovingPart]], Iterable[Array]]
#: Number of blocks of time that the samples are split into.
BLOCKS = 15
#: Maximum number of logs compared at a time.
COMPARED = 8
#: Widths of the friction reversal, as fractions of a joint's typical speed.
WIDTHS = (0.1, 0.6)
#: Part of a joint's motion in a log beyond which one block of time holds all of it: blocks are then spread over the log.
_ONLY_THERE = 0.9
#: A joint is at rest below this fraction of its fast speed, and the quantile that defines the latter; and in a log in which it
#: travels less than this [rad or m]: it creeps within the slack of its friction, which holds any torque up to its break-away.
_AT_REST, _FAST, _TRAVEL = 0.02, 0.99, 0.02
#: Largest difference of velocities of one motion, as a fraction of each joint's fast speed.
_SAME_SPEED = 0.15
#: Points of the path between two samples, and samples by which repetitions may run apart from one sample to the next.
_BETWEEN, _APART = 4, 3
#: Smallest number of samples in which a motion may repeat.
_FEWEST = 20


@dataclass(frozen=True, eq=False)
class WholeMotion:
    """The motion that samples were taken from, for what cannot be computed from them: it varies between two samples.

    Attributes:
        turned: Positions of the samples per logged ones, up to a zero, shape (n, n).
        made: What was computed, by the direction of the motion.
    """

    pieces: tuple[ThinnedPiece, ...]
    turned: Array
    made: dict[tuple[object, ...], Array] = field(default_factory=dict)

    @cached_property
    def efforts(self) -> list[Array]:
        """Those of each piece as a whole, filtered like the motion, shape (N, n) each [N·m or N]."""
        return smoothed_efforts(self.pieces)

    def sampled(self, directions: Sequence[Array] | Array, make: Callable[[Sequence[MovingPart]], OfOneLog]) -> list[Array]:
        """Returns functions of the motion of joints or motors, filtered like the torques, at the samples.

        Args:
            directions: Rate of each per rate of the samples' joints, shape (n,).
            make: Returns them for one log, given all segments of all logs for their scales; they are odd in the direction and
                do not depend on its size.

        Returns:
            Those of each joint or motor, shape (N, k).
        """
        logged = [direction @ self.turned for direction in directions]
        sizes = [x[np.argmax(np.abs(x))] or 1.0 for x in logged]
        units = [x / size for x, size in zip(logged, sizes, strict=True)]
        keys = [(make, *np.round(x, 12)) for x in units]
        if new := {key: x for key, x in zip(keys, units, strict=True) if key not in self.made}:
            of_log = [make([_along(item, x) for item in self.pieces]) for x in new.values()]
            logs = [list(own) for _, own in groupby(self.pieces, key=lambda item: item.log)]
            found = each(partial(_sampled_in, list(zip(new.values(), of_log, strict=True))), logs)
            self.made.update({key: np.concatenate(own) for key, own in zip(new, zip(*found, strict=True), strict=True)})
        return [self.made[key] * np.sign(size) for key, size in zip(keys, sizes, strict=True)]


def _sampled_in(wanted: Sequence[tuple[Array, OfOneLog]], log: Sequence[ThinnedPiece]) -> list[Array]:
    """Functions of the motion in each direction, filtered like the torques, at the samples of one log."""
    out = []
    for logged, functions in wanted:
        smooth = zip(log, functions([_along(item, logged) for item in log]), strict=True)
        out.append(np.concatenate([lowpass(x, item.part.rate, item.cutoff, rows=item.rows) for item, x in smooth]))
    return out


def _along(item: ThinnedPiece, logged: Array) -> MovingPart:
    """The motion of a segment in a direction, shape (n,)."""
    return item.part.q @ logged, item.part.v @ logged


@dataclass(frozen=True, eq=False)
class MotionSamples:
    """Samples of logs.

    Attributes:
        q, v, a: Shape (N, n) [rad or m, and per s, s²].
        tau: Shape (N, n) [N·m or N].
        signs: Smoothed signs of the velocities, one per width of :data:`WIDTHS`, filtered like the torque, because the
            filtered shape of reversing friction depends on how fast the joint reverses; shape (N, n, widths).
        block: Block of each sample, shape (N,); held out of fits to the others. If joints move one after the other, a block
            consists of short pieces of time spread over its log, because no fit tells what only a held-out block shows.
        log: Index of the log of each sample, shape (N,).
        time: Since the start of its log [s], shape (N,).
        travels: Mask of samples of logs in which each joint travels, shape (N, n).
        whole: The motion that the samples were taken from.
        reduction: Motor rates per joint rates, shape (n, n), if motors are coupled to several joints; otherwise None.
    """

    q: Array
    v: Array
    a: Array
    tau: Array
    signs: Array
    block: IntArray
    log: IntArray
    time: Array
    travels: BoolArray
    whole: WholeMotion
    reduction: Array | None = None

    def __len__(self) -> int:
        return len(self.q)

    @cached_property
    def log_of_block(self) -> IntArray:
        """Log of each block, the first of several, shape (B,)."""
        return self.log[np.unique(self.block, return_index=True)[1]]

    @cached_property
    def glides(self) -> BoolArray:
        """Mask of samples in which each joint moves, shape (N, n)."""
        speed, squares = np.abs(self.v), self.v**2
        # where a joint moves for less time than the quantile leaves, that is noise: the mean of its energy is then its motion
        energetic = np.sqrt(np.sum(squares**2, axis=0) / positive(np.sum(squares, axis=0)))
        return np.asarray((speed > _AT_REST * np.maximum(np.quantile(speed, _FAST, axis=0), energetic)) & self.travels)

    @property
    def moves(self) -> BoolArray:
        """Joints that travel in some log with varying torque, shape (n,); a constant torque has no information."""
        return np.asarray(self.travels.any(axis=0) & (np.ptp(self.tau, axis=0) > 0))

    @cached_property
    def sizes(self) -> Array:
        """RMS of each effort about its mean where the joint of a row moves, over all samples, shape (rows, efforts) [N·m or N].

        An effort that is read as another joint's must explain its variation while that joint moves.
        """
        away = self.tau - self.tau.mean(axis=0)
        moving = self.glides.astype(float)
        means = moving.T @ away / np.maximum(moving.sum(axis=0), 1.0)[:, None]
        squares = moving.T @ away**2 - moving.sum(axis=0)[:, None] * means**2
        return np.asarray(np.maximum(np.sqrt(np.maximum(squares, 0.0) / len(self.tau)), 1e-12))

    def signs_along(self, direction: Array) -> Array:
        """Returns smoothed signs of the velocity of a joint or motor, as :attr:`signs`, shape (N, widths).

        Args:
            direction: Its rate per rate of the joints, shape (n,).
        """
        return self.whole.sampled([direction], _signs_of)[0]

    @cached_property
    def first(self) -> IntArray:
        """The sample of its log that showed the motion of each sample first, itself if it is new, shape (N,)."""
        shown = np.arange(len(self))
        for k in np.unique(self.log):
            mine = np.flatnonzero(self.log == k)
            shown[mine] = mine[first_shown(self.q[mine], self.v[mine])]
        return shown

    def of(self, joints: Sequence[int]) -> tuple[Array, Array, Array]:
        """Returns positions, velocities and accelerations of some joints, shape (N, joints) each."""
        some = list(joints)
        return self.q[:, some], self.v[:, some], self.a[:, some]

    def with_motion(self, q: Array, v: Array, a: Array, signs: Array | None = None) -> MotionSamples:
        """Returns the same efforts with another motion.

        Args:
            q, v, a: Shape (N, n) [rad or m, and per s, s²].
            signs: As the attribute, shape (N, n, widths); the same by default.
        """
        return replace(self, q=q, v=v, a=a, signs=self.signs if signs is None else signs)


def travels(q: Array, log: IntArray) -> BoolArray:
    """Mask of samples of logs in which positions travel rather than creep, shape (N, k).

    Args:
        q: Positions, shape (N, k) [rad or m].
        log: Index of the log of each sample, shape (N,).
    """
    found = np.empty(q.shape, dtype=bool)
    for k in np.unique(log):
        found[log == k] = np.ptp(q[log == k], axis=0) > _TRAVEL
    return found


def first_shown(q: Array, v: Array) -> IntArray:
    """Index of the first sample near which the same motion passes as at each sample: its own if the motion is new.

    What a model does not explain is the same in every repetition. Repetitions are therefore held out together: otherwise each
    is predicted from the others, and errors of the model seem to be certain effects of faults.

    Args:
        q: Positions of one log, shape (N, n) [rad or m].
        v: Velocities, shape (N, n) [rad/s or m/s].

    Returns:
        Shape (N,); the same motion has the same positions and velocities, also at a neighbouring sample.
    """
    new = np.arange(len(q))
    if len(q) < _FEWEST:
        return new
    widths = np.concatenate([SAME_POSE * np.ptp(q, axis=0), [_SAME_SPEED * fast_speed(speed) for speed in v.T]])
    states = np.hstack([q, v])[:, widths > 0] / widths[widths > 0]
    at = np.arange(_BETWEEN * (len(q) - 1) + 1) / _BETWEEN
    path = np.column_stack([np.interp(at, new, x) for x in states.T])
    shown = new.copy()
    for k, state in enumerate(states):
        away = np.abs(path[: _BETWEEN * k] - state).max(axis=1, initial=0.0)
        apart = np.flatnonzero(away > 1.0)
        earlier = away[: apart[-1]] if len(apart) else away[:0]  # before the motion that leads to this sample
        if len(earlier) and earlier.min() < 1.0:
            shown[k] = round(at[np.argmin(earlier)])
    step = np.diff(shown)
    both = (shown[1:] < new[1:]) & (shown[:-1] < new[:-1]) & (step >= 0) & (step <= _APART)
    shown = np.where(np.append(both, False) | np.append(False, both), shown, new)
    for k in range(len(q)):  # a repetition of a repetition
        shown[k] = shown[shown[k]]
    return shown


def sampler(
    logs: Logs,
    samples: int = SAMPLES,
    blocks: int = BLOCKS,
    reduction: Array | None = None,
) -> Callable[[float], MotionSamples] | None:
    """Subsamples conditioned logs evenly, with torques filtered like the motion.

    Args:
        logs: Segments of each log, and the cut-off of its positions [Hz].
        reduction: Motor rates per joint rates, shape (n, n), or None.

    Returns:
        A function that returns the samples with a delay of the efforts [s] removed; None without measured torque.
    """
    pieces = thinned(logs, samples)
    if not pieces:
        return None
    whole = WholeMotion(tuple(pieces), np.eye(pieces[0].part.q.shape[1]))

    def efforts(delay: float) -> Array:
        every = zip(pieces, whole.efforts, strict=True)  # a delay only shifts them
        return np.concatenate([ahead(x, delay * item.part.rate, item.rows) if delay else x[item.rows] for item, x in every])

    rows = [(part.q[at], part.v[at], part.a[at], part.time[at]) for part, at in ((item.part, item.rows) for item in pieces)]
    q, v, a, time = (np.concatenate([row[k] for row in rows]) for k in range(4))
    log = np.concatenate([np.full(len(row[0]), item.log) for item, row in zip(pieces, rows, strict=True)])
    block = _spread(log, _blocks(log, blocks), v)
    motors = reduction if reduction is not None and (reduction - np.diag(np.diag(reduction))).any() else None
    signs = np.stack(whole.sampled(np.eye(q.shape[1]), _signs_of), axis=1)
    first = MotionSamples(q, v, a, efforts(0.0), signs, block, log, time, travels(q, log), whole, motors)
    return lambda delay: replace(first, tau=efforts(delay)) if delay else first


def _signs_of(parts: Sequence[MovingPart]) -> OfOneLog:
    """Smoothed signs of one joint's or motor's velocities, shape (N, widths)."""
    return partial(_smooth_signs, positive(rms(np.concatenate([v for _, v in parts]))))


def _smooth_signs(typical: float, log: Sequence[MovingPart]) -> list[Array]:
    return [np.tanh(v[:, None] / (np.array(WIDTHS) * typical)) for _, v in log]


def in_time(pieces: Sequence[ThinnedPiece], signals: Sequence[Array]) -> Array:
    """Returns signals of whole pieces and their first two derivatives at the samples used, shape (N, 3, n).

    Args:
        signals: Those of each piece, shape (N, n) each.
    """
    out = []
    for item, x in zip(pieces, signals, strict=True):
        rate = np.gradient(x, 1 / item.part.rate, axis=0)
        out.append(np.stack([y[item.rows] for y in (x, rate, np.gradient(rate, 1 / item.part.rate, axis=0))], axis=1))
    return np.concatenate(out)


def _blocks(log: IntArray, blocks: int) -> IntArray:
    """Block of each sample: two or more blocks per log, or several whole logs per block if there are more logs than blocks."""
    names = np.unique(log)
    if len(names) > blocks:
        return np.asarray(np.searchsorted(names, log) * blocks // len(names))
    each = max(2, round(blocks / len(names)))
    block = np.empty(len(log), dtype=np.int64)
    for position, k in enumerate(names):
        mine = np.flatnonzero(log == k)
        block[mine] = position * each + np.arange(len(mine)) * each // len(mine)
    return block


def _spread(log: IntArray, block: IntArray, v: Array) -> IntArray:
    """Blocks of time, each spread over its log in as many pieces as there are joints if one holds all motion of a joint."""
    energy = np.array([np.sum(v[block == b] ** 2, axis=0) for b in range(int(block.max()) + 1)])
    out = block.copy()
    for k in np.unique(log):
        mine = np.flatnonzero(log == k)
        own = np.unique(block[mine])
        if len(own) > 1 and (energy[own].max(axis=0) > _ONLY_THERE * energy[own].sum(axis=0)).any():
            out[mine] = own[np.arange(len(mine)) * len(own) * v.shape[1] // len(mine) % len(own)]
    return out
