"""Families of motions that are linear in their unknowns, so that limits on q, v and a are linear constraints.

A family converts unknowns X, shape (d, n), to a :class:`..motion.trajectory.Trajectory`, ramps included. Its time basis is the
same trajectory for d virtual joints with one unknown each.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ..errors import LimitError, check_known
from ..linalg import Array
from ..motion.fourier import FourierTrajectory, modified_fourier
from ..motion.limits import Limits
from ..motion.trajectory import DEGREE, Trajectory, b_spline_at_rest, check_repetitions, ramped, repeated

#: With more harmonics, one step of a search takes longer than a whole budget.
MOST_HARMONICS = 200
#: Fraction of the position range, around its middle, from which random poses are drawn.
POSE_RANGE = 0.6
#: Fundamental period, in durations, of a Fourier series that ends in another pose: over a full period it would return.
STRETCH = 1.5


class _Kind(NamedTuple):
    """What distinguishes a family; how its unknowns make a motion is in :meth:`Family._core`.

    Attributes:
        least: Fewest harmonics with which anything moves.
        coefficients: Number per joint without a start pose: per harmonic, and besides.
        degree: Of the motion as a trigonometric polynomial of one period: per harmonic, and besides.
        free: Whether its ends are free; its first coefficient is then its centre.
    """

    least: int
    coefficients: tuple[int, int]
    degree: tuple[int, int] = (1, 0)
    free: bool = False


FAMILIES = {
    "fourier": _Kind(1, (2, 1), free=True),
    "modified_fourier": _Kind(2, (2, -2)),
    "spline": _Kind(1, (4, 0), degree=(2, DEGREE)),
}


@dataclass(frozen=True, eq=False)
class Grid:
    """A family on a time grid: ``q = bases[0] @ X + constant[0]``, and likewise v and a.

    Attributes:
        time: Shape (N,) [s].
        bases: Of q, v, a, shape (3, N, d).
        constant: q, v, a of X = 0, shape (3, N, n).
    """

    time: Array
    bases: Array
    constant: Array

    def motion(self, X: Array) -> tuple[Array, Array, Array]:
        """Returns position, velocity and acceleration, shapes (N, n) [rad, rad/s, rad/s² or m, m/s, m/s²]; X: shape (d, n)."""
        q, v, a = self.bases @ X + self.constant
        return q, v, a


@dataclass(frozen=True, eq=False)
class Family:
    """A family of motions of n joints with d unknowns each.

    Attributes:
        name: One of :data:`FAMILIES`. "fourier" is free at its ends and needs ramps; "modified_fourier" and "spline" start and
            end at rest, in one pose or in two (Szabó 2021, eq. 21).
        period: Of the excitation, without ramps [s].
        harmonics: Of a Fourier series; a spline has four times as many free control points.
        ramp: Duration of the ramps from and to the start pose [s]; 0: none, the robot must already move.
        start: Pose where the motion starts and ends, shape (n,) [rad or m]; None: an unknown of each joint.
        end: Final pose, shape (n,) [rad or m]; needs a start. None: the start.
    """

    name: str
    joints: tuple[str, ...]
    period: float
    harmonics: int = 5
    periods: int = 1
    ramp: float = 0.0
    start: Array | None = None
    end: Array | None = None

    def __post_init__(self) -> None:
        check_known("family of motions", self.name, FAMILIES, LimitError)
        least = self._kind.least + int(self._tied)
        if self.harmonics < least or int(self.harmonics) != self.harmonics:
            raise LimitError(
                "too few harmonics: nothing would move", got=self.harmonics, expected=f"a whole number, at least {least}"
            )
        if self.harmonics > MOST_HARMONICS:
            raise LimitError("too many harmonics to search", got=self.harmonics, expected=f"at most {MOST_HARMONICS}")
        if self.start is not None and not self.has_start_pose:
            raise LimitError(
                "a Fourier series without ramps does not start at a pose", remedy="allow ramps, or use modified_fourier"
            )
        if self.end is not None and (self._kind.free or self.start is None or self.periods > 1):
            raise LimitError(
                "a motion that ends in another pose needs a start pose, one period and a family that can travel",
                got=self.name,
                expected=" | ".join(name for name, kind in FAMILIES.items() if not kind.free),
            )
        for name in ("period", "ramp"):
            value = getattr(self, name)
            if not (np.isfinite(value) and value >= 0 and (value > 0 or name == "ramp")):
                raise LimitError(f"the {name} of a motion must be positive", got=f"{value} s")
        check_repetitions(self.periods)

    @property
    def _kind(self) -> _Kind:
        return FAMILIES[self.name]

    @property
    def _tied(self) -> bool:
        """Whether it is a Fourier series with a given end pose."""
        return self.name == "modified_fourier" and self.end is not None

    @property
    def has_ramps(self) -> bool:
        """Whether the motion has ramps between a pose at rest and the excitation."""
        return self._kind.free and self.ramp > 0

    @property
    def lead(self) -> float:
        """Start time of the excitation [s]."""
        return self.ramp if self.has_ramps else 0.0

    @property
    def has_start_pose(self) -> bool:
        """Whether the motion has a start pose."""
        return not self._kind.free or self.has_ramps

    @property
    def _free_pose(self) -> int:
        """1 if the start pose is an unknown of each joint, the first one; otherwise 0."""
        return int(self.has_start_pose and self.start is None)

    @property
    def unknowns(self) -> int:
        """Number of unknowns per joint."""
        if self._tied:
            return int(self._ties[1].shape[1])
        return self._kind.coefficients[0] * self.harmonics + self._kind.coefficients[1] + self._free_pose

    @property
    def samples(self) -> int:
        """Initial number of instants per period for the criterion: the motion and its sines have few harmonics."""
        return max(60, 24 * self.harmonics)

    def trajectory(self, X: Array) -> Trajectory:
        """Returns the motion for given unknowns, ramps included.

        Args:
            X: Shape (d, n): the start pose if it is unknown, then the family's coefficients.
        """
        return self._build(np.asarray(X, dtype=float), self.joints, self.poses, self.periods)

    def excitation(self, X: Array) -> Trajectory:
        """Returns one period of the excitation, without ramps; X of shape (d, n)."""
        return self._core(*self._split(np.asarray(X, dtype=float), self.poses), self.joints)

    @property
    def poses(self) -> Array | None:
        """Start and end pose, shape (2, n), or None if they are unknowns or do not exist."""
        if self.start is None:
            return None
        return np.stack([self.start, self.start if self.end is None else self.end])

    def _split(self, X: Array, poses: Array | None) -> tuple[Array, Array]:
        if not self.has_start_pose:
            return np.zeros((2, X.shape[1])), X
        return (np.stack([X[0], X[0]]), X[1:]) if poses is None else (poses, X)

    def _core(self, poses: Array, X: Array, joints: tuple[str, ...]) -> Trajectory:
        if self._tied:
            X = self._ties[0] @ poses + self._ties[1] @ X
        if self._kind.free or self._tied:
            a, b = X[1 : self.harmonics + 1].T, X[self.harmonics + 1 :].T
            return FourierTrajectory(joints, self._fundamental, X[0], a, b, self.period)
        if self.name == "spline":
            return b_spline_at_rest(joints, poses[0], X, poses[1], self.period)
        half = self.harmonics - 1
        return modified_fourier(joints, self.period, poses[0], X[:half].T, X[half:].T)

    def _build(self, X: Array, joints: tuple[str, ...], poses: Array | None, periods: int) -> Trajectory:
        ends, coefficients = self._split(X, poses)
        core = self._core(ends, coefficients, joints)
        if periods > 1:
            core = repeated(core, periods)
        return ramped(core, ends[0], self.ramp) if self.has_ramps else core

    @property
    def _fundamental(self) -> float:
        travels = self.start is not None and self.end is not None and not np.array_equal(self.start, self.end)
        return self.period * (STRETCH if travels else 1.0)

    @cached_property
    def _ties(self) -> tuple[Array, Array]:
        """Fourier coefficients of motions that start and end at rest: ``fixed @ (start, end) + free @ Y`` for any Y.

        The constraints are the matrix by which positions, velocities and accelerations at start and end follow from the
        coefficients (mean, a, b), shape (6, 2 M + 1). The free part spans its null space. The fixed part is its inverse of
        least acceleration, whose amplitudes are l·a and l·b of harmonic l: the coefficients are divided by l, and the mean,
        which accelerates nothing, by a number so small that it hardly counts.
        """
        size = 2 * self.harmonics + 1
        unit, order = np.eye(size), np.arange(1, self.harmonics + 1)
        names = tuple(f"coefficient {k}" for k in range(size))
        a, b = unit[1 : self.harmonics + 1].T, unit[self.harmonics + 1 :].T
        ends = FourierTrajectory(names, self._fundamental, unit[0], a, b, self.period).evaluate([0.0, self.period])
        constraints, ease = np.concatenate(ends), 1.0 / np.concatenate([[1e-3], order, order])
        left, sigma, right = np.linalg.svd(constraints * ease)
        rank = int(np.sum(sigma > 1e-9 * sigma[0]))  # over a full period, the end repeats the start
        inverse = ease[:, None] * (right[:rank].T / sigma[:rank]) @ left[:, :rank].T
        return inverse[:, :2], ease[:, None] * right[rank:].T

    def rest(self, pose: Array) -> Array:
        """Returns the unknowns of standing still, or of a straight motion to the end pose, shape (d, n).

        Args:
            pose: Shape (n,) [rad or m]; the start pose if given.
        """
        X, free = np.zeros((self.unknowns, len(pose))), self._free_pose
        X[: free + self._kind.free] = pose
        if self.name == "spline":
            fraction = np.linspace(0.0, 1.0, 4 * self.harmonics + 2)[1:-1, None]
            X[free:] = pose + (fraction * (self.end - pose) if self.end is not None else 0.0)
        return X

    def scaled(self, X: Array, size: float) -> Array:
        """Returns the same motion with reduced amplitude about its centre, shape (d, n).

        Args:
            X: Shape (d, n).
            size: Amplitude factor, 0 to 1.
        """
        free = self._free_pose
        centre = self.rest(np.asarray(X[free] if self._kind.free else X[0] if self.start is None else self.start))
        centre[:free] = X[:free]
        return np.asarray(centre + size * (X - centre))

    def random_pose(self, rng: np.random.Generator, limits: Limits) -> Array:
        """Returns a centre for a random motion, shape (n,): the start pose if given, else from the middle of finite limits."""
        return limits.random_pose(rng, POSE_RANGE * limits.half_range) if self.start is None else self.start

    def random_swing(self, rng: np.random.Generator, n: int) -> Array:
        """Returns random unknowns of a motion about zero, of unit size, shape (d, n); 0 for those of its centre."""
        first = self._free_pose + self._kind.free
        scale = np.ones(self.unknowns - first)
        if self.name != "spline" and not self._tied:
            order = np.arange(1, len(scale) // 2 + 1)
            scale = 1.0 / np.sqrt(np.concatenate([order, order]))
        X = np.zeros((self.unknowns, n))
        X[first:] = rng.standard_normal((len(scale), n)) * scale[:, None]
        return X

    def grid(self, time: Array) -> Grid:
        """Returns the family on given instants of one period with ramps; time of shape (N,) [s]."""
        d = self.unknowns
        imaginary = tuple(f"unknown {k}" for k in range(d))
        bases = np.array(self._build(np.eye(d), imaginary, None if self.start is None else np.zeros((2, d)), 1).evaluate(time))
        constant = np.array(self._build(np.zeros((d, len(self.joints))), self.joints, self.poses, 1).evaluate(time))
        return Grid(time, bases, constant)

    def criterion_grid(self, samples: int) -> Grid:
        """Returns the grid of one period for the criterion: even, each instant in the middle of its interval."""
        return self.grid(np.asarray(self.lead + (np.arange(samples) + 0.5) * self.period / samples, dtype=float))

    def limit_grid(self, samples: int) -> Grid:
        """Returns the grid for the limits: one period and the ramps."""
        step = self.period / samples
        inside = np.arange(samples + (self.end is not None or self.has_ramps)) * step
        if not self.has_ramps:
            return self.grid(np.asarray(inside, dtype=float))
        ramp = np.linspace(0.0, self.ramp, max(8, min(40, int(np.ceil(4 * self.ramp / step)))), endpoint=False)[1:]
        return self.grid(np.concatenate([ramp, self.ramp + inside, 2 * self.ramp + self.period - ramp[::-1]]))

    def overshoot(self, samples: int) -> float:
        """Bounds the overshoot of a signal between instants of :meth:`limit_grid`, relative to its largest sample.

        A trigonometric polynomial of degree M on K equidistant samples of its period is at most ``1/cos(π M/K)`` times
        its largest sample (Ehlich and Zeller 1964). Ramps and splines are smoother; all are verified again at the end.
        """
        return float(1.0 / np.cos(np.pi * min(self._degree / samples, 0.25)) - 1.0)

    def reachable_velocity(self, limits: Limits) -> Array:
        """Returns the velocity that each joint can reach within its limits, shape (n,) [rad/s or m/s].

        A trigonometric polynomial of degree M and period T that stays within ±r is never faster than ``2π M/T r`` (Bernstein
        1912). Velocity limits are often placeholders that no motion within the position limits comes near.

        Args:
            limits: Finite limits on positions and velocities.
        """
        return np.asarray(np.minimum(limits.velocity, 2.0 * np.pi * self._degree / self.period * limits.half_range))

    @property
    def _degree(self) -> int:
        """Degree of the motion as a trigonometric polynomial of one period, of a spline approximately."""
        return self._kind.degree[0] * self.harmonics + self._kind.degree[1]
