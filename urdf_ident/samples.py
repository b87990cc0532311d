"""The input of model evaluation: one continuous piece of motion at a constant rate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .errors import LogError, check_shape
from .linalg import Array, BoolArray, IntArray

#: Minimum duration of motion in a log, and duration below which it is short, so that parameters fit almost any torque [s].
SHORTEST, SHORT = 1.0, 5.0
#: Motion below this fraction of a joint's fast speed (:func:`fast_speed`) is slow.
SLOW = 0.05
#: A joint is near a reversal below this fraction of it.
REVERSING = 0.1
#: Reversals (median over joints, repetitions of a motion counted once) needed to tell faults from friction: without
#: reversals a bias and Coulomb friction are collinear.
FEWEST_REVERSALS = 2
#: Reversals needed to separate a delay from friction: with fewer, good logs of 3 to 5 s show a delay by chance.
TESTING_REVERSALS = 4
#: Reversals are at the same pose if no joint's position differs by more than this fraction of its range.
SAME_POSE = 0.05
#: Reversals needed by a friction law with parameters for each direction: two into each direction, so that the speeds of either
#: are passed twice.
REVERSALS_FOR_BOTH_DIRECTIONS = 4
#: Up to this many reversals (mean over the moving joints) the log is too short, or ten times slower than ordinary motion.
HARDLY_REVERSES = 1.0
#: A joint moves in one direction only if it moves in the other for less than this fraction of the time.
ONE_WAY = 0.01
#: A joint is at rest, apart from noise, if its fast speed is below this fraction of that of the fastest joint
#: of its kind (revolute or prismatic).
RESTING = 0.01


@dataclass(frozen=True, eq=False)
class Segment:
    """One continuous, conditioned piece of motion at a constant rate, on the joint side.

    Attributes:
        log: Name of the log (or trajectory) that it comes from.
        start: Time of the first sample on the log's clock [s].
        rate: Samples per second [Hz].
        q, v, a: Shape (N, n) [rad, rad/s, rad/s² or m, m/s, m/s²], zero-phase filtered.
        tau: Shape (N, n) [N·m or N], measured joint torque with drive gains applied; *not* filtered: the row
            producer filters it together with the regressor. None for motions without a measurement.
        qm, vm, am: Motor side after the gear, shape (N, n), or None.
        reference_torque: Frozen rigid torque for load-dependent terms, shape (N, n) [N·m or N], or None.
        simulated: The same motion, simulated without noise, for instruments, or None.
        before: Positions before the first sample, shape (M, n), for terms with memory, whose state evolves during
            the standstill that is cut out. None if nothing was cut.
        external: Torque of known external wrenches on the joints, shape (N, n) [N·m or N], filtered like ``tau``,
            or None.
        repeats: Number of periods averaged; 1 for a motion that was not repeated.
        weights: Weights of the squared residuals of the row groups, 0 to 1, shape (N, groups); all 1 if None.
    """

    log: str
    start: float
    rate: float
    q: Array
    v: Array
    a: Array
    tau: Array | None = None
    qm: Array | None = None
    vm: Array | None = None
    am: Array | None = None
    reference_torque: Array | None = None
    simulated: Segment | None = None
    before: Array | None = None
    external: Array | None = None
    repeats: int = 1
    weights: Array | None = None

    def __post_init__(self) -> None:
        check_shape("q", self.q.shape, ("N", "n"))
        for name in ("v", "a", "tau", "qm", "vm", "am", "reference_torque", "external"):
            value = getattr(self, name)
            if value is not None:
                check_shape(name, value.shape, self.q.shape)
        if self.before is not None:
            check_shape("before", self.before.shape, ("M", self.q.shape[1]))
        # in the same order in memory in every process: the last digits of products depend on it
        freeze_arrays(self, **{key: np.ascontiguousarray(x) for key, x in vars(self).items() if isinstance(x, np.ndarray)})

    def __len__(self) -> int:
        return len(self.q)

    @property
    def time(self) -> Array:
        """Shape (N,) [s], on the log's clock."""
        return self.start + np.arange(len(self)) / self.rate

    @property
    def measured(self) -> Array:
        """The measured torque :attr:`tau`.

        Raises:
            LogError: No torque was measured.
        """
        if self.tau is None:
            raise LogError("no torque or current in the log", where=self.log, remedy="name the effort columns")
        return self.tau

    @property
    def total(self) -> Array:
        """Measured torque plus that of known external wrenches, shape (N, n) [N·m or N]: the output of the model.

        Raises:
            LogError: No torque was measured.
        """
        return self.measured if self.external is None else self.measured + self.external

    def window(self, begin: int, end: int) -> Segment:
        """Samples ``begin`` to ``end`` (exclusive) without the preceding positions, for models without memory.

        Args:
            end: One past the last sample.

        Returns:
            The piece, sharing memory.
        """
        start = self.start + begin / self.rate if self.rate else self.start
        return replace(self, start=start, before=None, simulated=None, **self._signals(slice(begin, end)))

    def slice(self, begin: int, end: int) -> Segment:
        """Samples ``begin`` to ``end`` (exclusive).

        Args:
            end: One past the last sample.

        Returns:
            The piece, sharing memory; the preceding positions go to ``before``.
        """
        before = (
            self.before if begin == 0 else self.q[:begin] if self.before is None else np.vstack([self.before, self.q[:begin]])
        )
        return replace(
            self,
            start=self.start + begin / self.rate,
            before=before,
            simulated=None if self.simulated is None else self.simulated.slice(begin, end),
            **self._signals(slice(begin, end)),
        )

    def thinned(self, stride: int) -> Segment:
        """Every n-th sample, without the preceding positions, for models without memory.

        Args:
            stride: n, in samples.
        """
        return replace(self, rate=self.rate / stride, before=None, simulated=None, **self._signals(slice(None, None, stride)))

    def _signals(self, rows: Any) -> dict[str, Any]:
        names = ("q", "v", "a", "tau", "qm", "vm", "am", "reference_torque", "external", "weights")
        return {name: None if (array := getattr(self, name)) is None else array[rows] for name in names}


def columns(parts: Sequence[Array]) -> Iterator[Array]:
    """Columns of vertically stacked arrays, one at a time, so that a long log is not copied as a whole.

    Args:
        parts: Shape (N_k, n) each.

    Yields:
        Shape (sum of N_k,).
    """
    for j in range(parts[0].shape[1]):
        yield np.concatenate([part[:, j] for part in parts])


def fast_speed(v: Array) -> float:
    """Fast speed of a joint or motor: the 95 % quantile of its absolute velocity.

    Args:
        v: Velocities, shape (N,), not empty [rad/s or m/s].

    Returns:
        The speed [rad/s or m/s].
    """
    return float(np.quantile(np.abs(v), 0.95))


def reached(q: Array) -> tuple[Array, Array]:
    """The lowest and the highest position of each joint, without outliers: the 0.5 and the 99.5 % quantile.

    Args:
        q: Positions, shape (N, n) [rad or m].

    Returns:
        Shape (n,) each [rad or m].
    """
    low, high = np.quantile(q, [0.005, 0.995], axis=0)
    return low, high


def moving(fast: Array, prismatic: BoolArray) -> BoolArray:
    """Which joints move, relative to the fastest joint of the same kind (m/s and rad/s cannot be compared), shape (n,), bool.

    Args:
        fast: Fast speed of each joint, shape (n,) [rad/s or m/s].
        prismatic: Which joints are prismatic, shape (n,).
    """
    fastest = np.where(prismatic, np.max(fast, where=prismatic, initial=0.0), np.max(fast, where=~prismatic, initial=0.0))
    return np.asarray(fast > RESTING * fastest, dtype=bool)


def typical_reversals(parts: Sequence[Array], prismatic: BoolArray) -> float:
    """Mean number of velocity reversals over the moving joints.

    Args:
        parts: Velocities, one part after the other, shape (N_k, n) each [rad/s or m/s].
        prismatic: Which joints are prismatic, shape (n,).

    Returns:
        The mean; 0 if no joint moves.
    """
    fast, turns = np.array([(fast_speed(v), reversals(v[:, None])[0]) for v in columns(parts)]).T
    moves = moving(fast, prismatic)
    return float(np.mean(turns[moves])) if moves.any() else 0.0


def reversals(v: Array) -> Array:
    """Number of velocity reversals of each joint, ignoring slow motion, shape (n,).

    Args:
        v: Velocities, shape (N, n) [rad/s or m/s].
    """
    return np.array([turns(speed).shape[1] for speed in v.T])


def distinct_reversals(q: Array, v: Array) -> Array:
    """Number of velocity reversals of each joint at different poses: those of a repeated motion count once, shape (n,).

    Args:
        q: Positions, shape (N, n) [rad or m].
        v: Velocities, shape (N, n) [rad/s or m/s].
    """
    span = np.ptp(q, axis=0)
    return np.array([distinct_poses(q[turns(speed)].mean(axis=0), span) for speed in v.T])


def turns(speed: Array) -> IntArray:
    """Last sample before and first one after each reversal, ignoring slow motion, shape (2, K).

    Args:
        speed: Velocities of one joint, shape (N,) [rad/s or m/s].
    """
    swift = np.flatnonzero(np.abs(speed) > SLOW * fast_speed(speed))
    sign = np.sign(speed[swift])
    at = np.flatnonzero(sign[1:] != sign[:-1])
    return np.stack([swift[at], swift[at + 1]])


def distinct_poses(poses: Array, span: Array) -> int:
    """Number of poses that are not near an earlier one.

    Args:
        poses: Positions, shape (K, n) [rad or m].
        span: Range of each joint, shape (n,) [rad or m].
    """
    away = (np.abs(poses[:, None] - poses[None]) / np.maximum(span, 1e-12)).max(axis=2)
    return int(np.sum(~np.tril(away < SAME_POSE, -1).any(axis=1)))


def one_way(speed: Array) -> bool:
    """Whether a joint moves in one direction only, ignoring slow motion; its Coulomb friction and bias are then collinear.

    Args:
        speed: Its velocities, shape (N,) [rad/s or m/s].

    Returns:
        True if less than :data:`ONE_WAY` of its motion is in one of the directions; False if it is at rest.
    """
    swift = speed[np.abs(speed) > SLOW * fast_speed(speed)]
    return bool(len(swift) and min(np.mean(swift > 0), np.mean(swift < 0)) < ONE_WAY)


def freeze_arrays(item: Any, **values: Any) -> None:
    """Makes the arrays of a frozen dataclass read-only, by views that leave the caller's arrays writable.

    Args:
        item: The dataclass instance, changed in place.
        values: Fields that are set first.
    """
    for name, value in {**vars(item), **values}.items():
        if name in values:
            object.__setattr__(item, name, value)
        if isinstance(value, np.ndarray) and value.flags.writeable:
            view = value.view()
            view.setflags(write=False)
            object.__setattr__(item, name, view)


class ReadOnly:
    """Base class of frozen dataclasses whose arrays are read-only (:func:`freeze_arrays`)."""

    def __post_init__(self) -> None:
        freeze_arrays(self)
