"""Base parameters: what of theta can be seen at all (theory §5).

Three kinds of parameter (A, C): a zero column (never seen); a column that depends on others (seen only in
combination); an independent one. ``W = W_L [1 K]`` on the independent columns, so ``beta = theta_L + K theta_K``
is everything that torque can tell. The rank is decided on column-scaled, random, full-range motion by QR,
never on ``WᵀW``, whose digits are half gone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..errors import ModelError, check_shape
from ..linalg import triangle
from .inertia import Array
from .segment import Segment, freeze_arrays

if TYPE_CHECKING:
    from .dynamic_model import DynamicModel
    from .robot import Robot

#: Columns smaller than this fraction of the largest are zero: scaled up they would make false parameters.
ZERO_FLOOR = 1e-10
#: A unit column whose distance from the span of the others is below this depends on them.
RANK_TOLERANCE = 1e-8


@dataclass(frozen=True, eq=False)
class BaseParameters:
    """The reduction ``beta = theta[independent] + K theta[dependent]``.

    Attributes:
        names: Names of all standard parameters, length p.
        independent: Indices of the independent columns, shape (b,), ascending in the chosen order.
        dependent: Indices of the columns that are combinations, shape (d,).
        zero: Indices of the columns that are zero.
        K: Shape (b, d) [unit of independent / unit of dependent].
        rank_gap: Smallest accepted over largest rejected distance; large (1e6 and more) means a clear rank.
    """

    names: tuple[str, ...]
    independent: NDArray[np.intp]
    dependent: NDArray[np.intp]
    zero: NDArray[np.intp]
    K: Array
    rank_gap: float

    def __post_init__(self) -> None:
        freeze_arrays(self)

    def __len__(self) -> int:
        return len(self.independent)

    @cached_property
    def projection(self) -> Array:
        """Shape (b, p): ``beta = projection @ theta``."""
        matrix = np.zeros((len(self), len(self.names)))
        matrix[np.arange(len(self)), self.independent] = 1.0
        matrix[:, self.dependent] = self.K
        return matrix

    def of(self, theta: Array) -> Array:
        """Base parameters of standard ones.

        Args:
            theta: Shape (p,).

        Returns:
            Shape (b,).
        """
        theta = np.asarray(theta, dtype=float)
        check_shape("theta", theta.shape, (len(self.names),))
        return np.asarray(theta[self.independent] + self.K @ theta[self.dependent])

    def terms(self, row: int, *, threshold: float = 1e-9) -> list[tuple[str, float]]:
        """One base parameter written out.

        Args:
            row: Index of the base parameter.
            threshold: Coefficients below this are not listed (they stay in K).

        Returns:
            ``[(parameter name, coefficient), …]``, the independent one first.
        """
        listed = [(self.names[self.independent[row]], 1.0)]
        return listed + [
            (self.names[k], float(c)) for k, c in zip(self.dependent, self.K[row], strict=True) if abs(c) > threshold
        ]

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Short names: the independent parameter's, with a ``+`` where others are added to it."""
        return tuple(
            self.names[index] + ("+" if len(self.terms(row)) > 1 else "") for row, index in enumerate(self.independent)
        )

    def summary(self, limit: int | None = None) -> str:
        """The reduction in words.

        Args:
            limit: How many base parameters to write out; all if None.

        Returns:
            Several lines of text.
        """
        lines = [
            f"{len(self)} of {len(self.names)} parameters can be seen "
            f"({len(self.dependent)} only in combination, {len(self.zero)} not at all; rank gap {self.rank_gap:.1e})"
        ]
        for row in range(len(self) if limit is None else min(limit, len(self))):
            parts = [f"{coefficient:+.6g}·{name}" for name, coefficient in self.terms(row)[1:]]
            lines.append("  " + " ".join([self.names[self.independent[row]], *parts]))
        return "\n".join(lines)


def random_motion(robot: Robot, samples: int, seed: int = 0) -> Segment:
    """Random states over the robot's full range, for structural questions.

    Args:
        robot: The robot.
        samples: How many states.
        seed: Seed of the generator.

    Returns:
        A segment whose samples are unrelated states (positions inside the limits, ±π or ±1 m without).
    """
    generator = np.random.default_rng(seed)
    lower, upper = robot.limit("lower"), robot.limit("upper")
    reach = np.where(robot.prismatic, 1.0, np.pi)
    lower, upper = np.where(np.isfinite(lower), lower, -reach), np.where(np.isfinite(upper), upper, reach)
    q = generator.uniform(np.maximum(lower, -2 * reach), np.minimum(upper, 2 * reach), (samples, robot.n))
    v, a = (scale * generator.standard_normal((samples, robot.n)) for scale in (2.0, 5.0))
    reference = 10.0 * generator.standard_normal((samples, robot.n))
    deflection, vm, am = (scale * generator.standard_normal((samples, robot.n)) for scale in (0.05, 2.0, 5.0))
    # Friction that only acts at low speed must be seen too.
    slow = [np.where(generator.random(v.shape) < 0.3, 10.0 ** generator.uniform(-4.0, 0.0, v.shape), 1.0) for _ in range(2)]
    v, vm = v * slow[0], vm * slow[1]
    return Segment("random", 0.0, 100.0, q, v, a, None, q + deflection, vm, am, reference_torque=reference)


def reduce_to_base(
    model: DynamicModel, *, order: Sequence[str | int] | None = None, tolerance: float = RANK_TOLERANCE, seed: int = 0
) -> BaseParameters:
    """Finds the base parameters of a model on random motion.

    Args:
        model: The dynamic model.
        order: All parameters by name or index, those preferred as independent first; theta's order if None.
        tolerance: See :data:`RANK_TOLERANCE`.
        seed: Seed of the random motion.

    Returns:
        The reduction.

    Raises:
        ModelError: ``order`` is not a permutation of the parameters.
    """
    names = model.names
    motion = random_motion(model.robot, max(200, 4 * len(names) // model.n), seed)
    R = np.zeros((0, len(names)))
    for _, blocks in model.row_blocks(motion, chunk=len(motion)):
        for group, block in zip(model.groups, blocks, strict=True):
            rows = np.zeros((len(block), len(names)))
            rows[:, group.columns] = block
            R = triangle(R, rows)
    return reduce_factor(R, names, _permutation(names, order), tolerance)


def reduce_factor(
    R: Array, names: Sequence[str], order: NDArray[np.intp] | None = None, tolerance: float = RANK_TOLERANCE
) -> BaseParameters:
    """Finds the base parameters that a triangular factor (or any regressor) shows.

    Columns are taken in the given order; one joins the independent set if its distance from the span of those
    before it is above the tolerance. The result is the one of RREF with that column order.

    Args:
        R: Shape (k, p): the regressor, or its triangular factor.
        names: Names of the p columns.
        order: Permutation of range(p); natural if None.
        tolerance: See :data:`RANK_TOLERANCE`.

    Returns:
        The reduction.
    """
    norms = np.linalg.norm(R, axis=0)
    floor = ZERO_FLOOR * norms.max(initial=0.0)
    scaled = R / np.where(norms > floor, norms, 1.0)
    Q = np.zeros((R.shape[0], min(R.shape)))
    independent: list[int] = []
    dependent: list[int] = []
    accepted, rejected = np.inf, float(np.finfo(float).eps)
    for j in np.arange(R.shape[1]) if order is None else order:
        if norms[j] <= floor:
            continue
        basis = Q[:, : len(independent)]
        rest = scaled[:, j]
        for _ in range(2):  # twice is enough (Kahan)
            rest = rest - basis @ (basis.T @ rest)
        distance = float(np.linalg.norm(rest))
        if distance > tolerance and len(independent) < Q.shape[1]:
            Q[:, len(independent)] = rest / distance
            independent.append(int(j))
            accepted = min(accepted, distance)
        else:
            dependent.append(int(j))
            rejected = max(rejected, distance)
    basis = Q[:, : len(independent)]
    left, right = basis.T @ scaled[:, independent], basis.T @ scaled[:, dependent]
    K = np.linalg.solve(left, right) if independent else np.zeros((0, len(dependent)))
    K = K * norms[dependent] / norms[independent][:, None]
    zero = np.flatnonzero(norms <= floor)
    return BaseParameters(
        tuple(names), np.array(independent, dtype=np.intp), np.array(dependent, dtype=np.intp), zero, K, accepted / rejected
    )


def _permutation(names: Sequence[str], order: Sequence[str | int] | None) -> NDArray[np.intp] | None:
    if order is None:
        return None
    index = {name: k for k, name in enumerate(names)}
    picked = [index.get(item, -1) if isinstance(item, str) else int(item) for item in order]
    if sorted(picked) != list(range(len(names))):
        raise ModelError("the column order is not a permutation of the parameters", got=list(order)[:5])
    return np.array(picked, dtype=np.intp)
