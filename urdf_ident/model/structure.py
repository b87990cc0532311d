"""Structural identifiability: the base parameters of a model, from its regressor on random motion."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ..errors import ModelError
from ..linalg import Array, triangle
from ..samples import Segment
from .base import RANK_TOLERANCE, BaseParameters, reduce_factor, split_function
from .parameters import Parameter
from .robot import Robot
from .row_groups import RowGroup


class LinearModel(Protocol):
    """Interface of a model that is linear in its parameters, rigid or elastic."""

    @property
    def robot(self) -> Robot:
        """The robot."""

    @property
    def n(self) -> int:
        """Number of joints."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the parameters."""

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """The parameters."""

    @property
    def groups(self) -> tuple[RowGroup, ...]:
        """Row groups, each with one noise level."""

    def row_blocks(self, segment: Segment, chunk: int) -> Iterator[tuple[slice, list[Array]]]:
        """Yields the regressor rows of every group in chunks."""


def random_motion(robot: Robot, samples: int, seed: int = 0) -> Segment:
    """Returns random states over the robot's full range, for structural analysis.

    Args:
        samples: Number of states.
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
    # Some samples are slow, to excite friction that acts only at low speed.
    slow = [np.where(generator.random(v.shape) < 0.3, 10.0 ** generator.uniform(-4.0, 0.0, v.shape), 1.0) for _ in range(2)]
    v, vm = v * slow[0], vm * slow[1]
    return Segment("random", 0.0, 100.0, q, v, a, None, q + deflection, vm, am, reference_torque=reference)


def reduce_to_base(
    model: LinearModel,
    *,
    order: Sequence[str | int] | None = None,
    tolerance: float = RANK_TOLERANCE,
    seed: int = 0,
    method: str = "qr",
) -> BaseParameters:
    """Finds the base parameters of a model on random motion.

    Args:
        model: The dynamic model.
        order: All parameters by name or index, those preferred as independent first; theta's order if None.
        tolerance: See :data:`RANK_TOLERANCE`.
        seed: Seed of the random motion.
        method: "qr"; "rref" and "svd" are alternatives with the same result (:mod:`.base`).

    Returns:
        The reduction.

    Raises:
        ModelError: ``order`` is not a permutation of the parameters, or the method is unknown.
    """
    permutation, R = _permutation(model.names, order), structural_factor(model, seed)
    scale = _column_scale(R, [parameter.unit for parameter in model.parameters])
    return reduce_factor(R, model.names, permutation, tolerance, scale, split_function(method))


def structural_factor(model: LinearModel, seed: int = 0) -> Array:
    """Returns the triangular factor of the regressor on random motion.

    Args:
        model: The dynamic model.
        seed: Seed of the random motion.

    Returns:
        Shape (≤ p, p).
    """
    names = model.names
    motion = random_motion(model.robot, max(200, 4 * len(names) // model.n), seed)
    rows = np.zeros((len(model.groups), len(motion), len(names)))
    for part, blocks in model.row_blocks(motion, chunk=len(motion)):
        for own, group, block in zip(rows, model.groups, blocks, strict=True):
            own[part, group.columns] = block
    return triangle(rows.reshape(-1, len(names)))


def _column_scale(R: Array, units: Sequence[str]) -> Array:
    """Returns the scale of each column: its own norm, but at least a tenth of the largest norm of its unit.

    A first axis that is 1e-5 rad off gravity because of rounding in the URDF gives columns of that size: scaled to unit
    norm they would count as parameters.
    """
    norms, unit = np.linalg.norm(R, axis=0), np.array(units)
    longest = np.array([norms[unit == own].max() for own in unit])
    return np.asarray(np.maximum(norms, 0.1 * longest))


def _permutation(names: Sequence[str], order: Sequence[str | int] | None) -> NDArray[np.intp] | None:
    if order is None:
        return None
    index = {name: k for k, name in enumerate(names)}
    picked = [index.get(item, -1) if isinstance(item, str) else int(item) for item in order]
    if sorted(picked) != list(range(len(names))):
        raise ModelError("the column order is not a permutation of the parameters", got=list(order)[:5])
    return np.array(picked, dtype=np.intp)
