"""Base parameters: the identifiable combinations of theta (docs/theory.md §5).

Three kinds of parameter (Szabó 2021, Zollo 2015): a zero column (not identifiable), a column that depends on others
(identifiable only in combination), and an independent one. ``W = W_L [1 K]`` on the independent columns, so torque
determines exactly ``beta = theta_L + K theta_K``. The rank is decided by QR on column-scaled, random, full-range motion,
not on ``WᵀW``, which squares the condition number. Pivots (Gauss-Jordan elimination, Szabó 2021) and singular values (Gautier
2013) give the same span and independent columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from ..linalg import Array, IntArray, independent_columns, shaped
from ..samples import ReadOnly, Segment
from .robot import Robot

#: Columns smaller than this fraction of the largest count as zero: scaling them up would create spurious parameters.
ZERO_FLOOR = 1e-10
#: A unit column closer than this to the span of the others depends on them. Independent ones are at least 0.2 away
#: (thirty published robots); rounded angles in a URDF (1.5708 for π/2) give 1e-5, which no torque sensor resolves.
RANK_TOLERANCE = 1e-4
#: A distance above this exceeds double rounding: the URDF's numbers are rounded.
BLUR = 1e-8
#: Scaled coefficients below this multiple of the largest neglected distance are neglected too.
_COEFFICIENT = 30.0
#: Coefficients up to this are not listed; they stay in K.
_LISTED = 1e-9

#: The three kinds of parameter (Szabó 2021, Zollo 2015).
ALONE, COMBINED, NEVER = "alone", "in combination", "never"


@dataclass(frozen=True, eq=False)
class BaseParameters(ReadOnly):
    """The reduction ``beta = theta[independent] + K theta[dependent]``.

    Attributes:
        names: Names of all standard parameters, length p.
        independent: Indices of the independent columns, shape (b,), ascending in the chosen order.
        dependent: Indices of the columns that are combinations, shape (d,).
        zero: Indices of the columns that are zero.
        K: Shape (b, d) [unit of independent / unit of dependent].
        rank_gap: Smallest accepted over largest rejected distance; large (1e3 and more) means a clear rank.
        ill_conditioned: Indices of columns that are combinations only up to the rounding of the URDF's numbers.
        units: Units of all standard parameters, length p; a base parameter has that of its independent one. Empty if unknown.
    """

    names: tuple[str, ...]
    independent: IntArray
    dependent: IntArray
    zero: IntArray
    K: Array
    rank_gap: float
    ill_conditioned: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.intp))
    units: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.independent)

    def __repr__(self) -> str:
        return f"<BaseParameters: {len(self)} of {len(self.names)} standard parameters; .summary()>"

    @cached_property
    def projection(self) -> Array:
        """Shape (b, p): ``beta = projection @ theta``."""
        matrix = np.zeros((len(self), len(self.names)))
        matrix[np.arange(len(self)), self.independent] = 1.0
        matrix[:, self.dependent] = self.K
        return matrix

    @cached_property
    def place(self) -> IntArray:
        """Index of the base parameter of each standard parameter's own column, −1 if dependent or zero, shape (p,)."""
        place = np.full(len(self.names), -1)
        place[self.independent] = np.arange(len(self))
        return place

    def turned(self, columns: IntArray, root: Array, params: Array) -> Array:
        """Returns the matrix that maps rows ``[columns | y]`` to ``[X root | y − X params]``, X their base regressor.

        Args:
            columns: Indices of these columns in theta, shape (k,).
            root: Shape (b, r).
            params: Base parameters, shape (b,).

        Returns:
            Shape (k + 1, r + 1).
        """
        place = self.place[columns]
        known = np.flatnonzero(place >= 0)
        turned_root = np.zeros((len(columns) + 1, root.shape[1] + 1))
        turned_root[known, :-1], turned_root[known, -1] = root[place[known]], -params[place[known]]
        turned_root[-1, -1] = 1.0
        return turned_root

    def of(self, theta: Array) -> Array:
        """Computes base parameters from standard parameters, shape (b,).

        Args:
            theta: Shape (p,).
        """
        theta = shaped("theta", theta, (len(self.names),))
        return np.asarray(theta[self.independent] + self.K @ theta[self.dependent])

    def embedded(self, params: Array) -> Array:
        """Returns standard parameters with the given base parameters and zero dependent ones (same torque).

        Args:
            params: Base parameters, shape (b,), or several in columns, shape (b, k).

        Returns:
            Shape (p,) or (p, k).
        """
        theta = np.zeros((len(self.names), *np.shape(params)[1:]))
        theta[self.independent] = params
        return theta

    def terms(self, row: int) -> list[tuple[str, float]]:
        """Returns one base parameter as a list of terms.

        Args:
            row: Index of the base parameter.

        Returns:
            ``[(parameter name, coefficient), …]``, the independent one first; without those up to :data:`_LISTED`.
        """
        listed = [(self.names[self.independent[row]], 1.0)]
        return listed + [
            (self.names[k], float(c)) for k, c in zip(self.dependent, self.K[row], strict=True) if abs(c) > _LISTED
        ]

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Short names: that of the independent parameter, with a ``+`` where others are added to it."""
        return tuple(
            self.names[index] + ("+" if len(self.terms(row)) > 1 else "") for row, index in enumerate(self.independent)
        )

    @cached_property
    def kinds(self) -> tuple[str, ...]:
        """Kind of each standard parameter: :data:`ALONE`, :data:`COMBINED` or :data:`NEVER` (Szabó 2021, Zollo 2015), length p.

        Independent of the column order: a parameter is alone if changes of others cannot compensate for a change of its own.
        """
        kinds = [COMBINED] * len(self.names)
        for k in self.zero:
            kinds[k] = NEVER
        for row, k in enumerate(self.independent):
            if not self.K[row].any():
                kinds[k] = ALONE
        return tuple(kinds)

    def partners(self, index: int) -> list[tuple[str, float]]:
        """Returns the parameters with which one is combined, largest coefficients first.

        Args:
            index: Index of the parameter in theta.

        Returns:
            ``[(parameter name, coefficient), …]``: what is added to an independent one, or where a dependent one is added.
        """
        if index in self.independent:
            row = int(np.flatnonzero(self.independent == index)[0])
            partners = [(self.names[k], float(c)) for k, c in zip(self.dependent, self.K[row], strict=True) if c]
        else:
            column = self.K[:, np.flatnonzero(self.dependent == index)].ravel()
            partners = [(self.names[k], float(c)) for k, c in zip(self.independent, column, strict=False) if c]
        return sorted(partners, key=lambda partner: -abs(partner[1]))

    def combination(self, row: int) -> str:
        """Formats one base parameter as a sum: ``Izz_1 + Iyy_2 - 0.36·m_3``.

        Args:
            row: Index of the base parameter.
        """
        first, *others = self.terms(row)
        parts = [first[0]]
        for name, coefficient in others:
            size = abs(coefficient)
            factor = "" if abs(size - 1) < 1e-5 else f"{size:.4g}·"
            parts.append(f"{'-' if coefficient < 0 else '+'} {factor}{name}")
        return " ".join(parts)

    def summary(self, limit: int | None = None) -> str:
        """Describes the reduction as text.

        Args:
            limit: How many base parameters to write out; all if None.
        """
        lines = [
            f"{len(self.names)} standard parameters, {len(self)} base parameters "
            f"({len(self.dependent)} regrouped, {len(self.zero)} not identifiable; rank gap {self.rank_gap:.1e})"
        ]
        lines += [f"  {self.combination(row)}" for row in range(len(self))[:limit]]
        return "\n".join(lines)


def reduce_factor(
    R: Array,
    names: Sequence[str],
    order: IntArray | None = None,
    tolerance: float = RANK_TOLERANCE,
    scale: Array | None = None,
) -> BaseParameters:
    """Finds the base parameters of a triangular factor (or any regressor) by QR.

    Columns are taken in the given order; one joins the independent set if its distance from the span of those
    before it is above the tolerance. The result equals RREF with that column order. Coefficients smaller than what is
    neglected are set to zero, and a dependent column of which none is left counts as zero.

    Args:
        R: Shape (k, p): the regressor, or its triangular factor.
        order: Permutation of range(p); natural if None.
        tolerance: See :data:`RANK_TOLERANCE`.
        scale: Unit size of each column, shape (p,); its own norm if None.

    Returns:
        The reduction, in the units of the parameters.
    """
    norms = np.linalg.norm(R, axis=0)
    sizes = norms if scale is None else scale
    zero = (norms <= ZERO_FLOOR * norms.max(initial=0.0)) | (norms <= tolerance * sizes)
    scaled = R / np.where(sizes > 0, sizes, 1.0)
    places = np.array([j for j in (range(R.shape[1]) if order is None else order) if not zero[j]], dtype=np.intp)
    free, distances, basis = independent_columns(scaled[:, places], tolerance)
    first, rest = places[free], places[~free]
    left, right = basis.T @ scaled[:, first], basis.T @ scaled[:, rest]
    K = np.asarray(np.linalg.solve(left, right)) if len(first) else np.zeros((0, len(rest)))
    rejected = distances[~free]
    largest = max(float(rejected.max(initial=0.0)), float(np.finfo(float).eps))
    K = np.where(np.abs(K) > max(_COEFFICIENT * largest, 1e-11), K, 0.0)
    combined = K.any(axis=0)
    zero[rest[~combined]] = True
    rest, rejected = rest[combined], rejected[combined]
    # in the order of a K that is read from a file, so that products with it are rounded alike
    K = np.ascontiguousarray(K[:, combined] * sizes[rest] / sizes[first][:, None])
    # zero columns above double rounding count as ill-conditioned
    rounded = np.flatnonzero(zero & (np.linalg.norm(scaled, axis=0) > BLUR))
    doubtful = np.union1d(rest[rejected > BLUR], rounded) if len(rounded) else rest[rejected > BLUR]
    return BaseParameters(
        tuple(names),
        first,
        rest,
        np.flatnonzero(zero),
        K,
        float(distances[free].min(initial=np.inf)) / largest,
        doubtful.astype(np.intp),
    )


def random_motion(robot: Robot, samples: int, seed: int = 0) -> Segment:
    """Returns random states over the robot's full range, for structural analysis.

    Returns:
        A segment whose samples are unrelated states (positions inside the limits, ±π or ±1 m without).
    """
    generator = np.random.default_rng(seed)
    lower, upper = robot.limit("lower"), robot.limit("upper")
    reach = np.where(robot.prismatic, 1.0, np.pi)
    lower, upper = np.where(np.isfinite(lower), lower, -reach), np.where(np.isfinite(upper), upper, reach)
    low = np.where(upper < -2 * reach, np.maximum(lower, upper - 2 * reach), np.maximum(lower, -2 * reach))
    high = np.where(lower > 2 * reach, np.minimum(upper, lower + 2 * reach), np.minimum(upper, 2 * reach))
    q = generator.uniform(low, high, (samples, robot.n))
    v, a = (scale * generator.standard_normal((samples, robot.n)) for scale in (2.0, 5.0))
    reference = 10.0 * generator.standard_normal((samples, robot.n))
    deflection, vm, am = (scale * generator.standard_normal((samples, robot.n)) for scale in (0.05, 2.0, 5.0))
    # Some samples are slow, to excite friction that acts only at low speed.
    slow = [np.where(generator.random(v.shape) < 0.3, 10.0 ** generator.uniform(-4.0, 0.0, v.shape), 1.0) for _ in range(2)]
    v, vm = v * slow[0], vm * slow[1]
    return Segment("random", 0.0, 100.0, q, v, a, None, q + deflection, vm, am, reference_torque=reference)
