"""Options and constraints of the semidefinite programme."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ..errors import ShapeError, check_shape
from ..linalg import Array
from ..samples import freeze_arrays


@dataclass(frozen=True, eq=False)
class LmiOptions:
    """Constraints on the bodies besides physical consistency, and the distance to the prior.

    Attributes:
        distance: Distance to the prior: ``"entropic"`` (log-det divergence) or ``"euclid"`` (its quadratic
            approximation).
        epsilon: Every pseudo-inertia stays above this fraction of the prior's: ``P ⪰ ε·P0``.
        nonnegative: Whether friction, rotor inertia and the like may not be negative.
        mass_factor: Each mass is between 1/factor and factor times the prior's (factor squared for masses that the
            prior had to guess), so that unidentifiable masses cannot become absurdly large. None: no bounds.
        total_mass: Known mass of all moving bodies together [kg], or the range (least, most), or None.
        com_lower, com_upper: Box of each centre of mass in its body frame, shape (n, 3) [m]; ±inf or NaN where
            unknown; None: no boxes.
        ellipsoids: Ellipsoids that contain all of each body's mass, shape (n, 4, 4), from :func:`ellipsoid`; NaN
            where unknown; None: no constraint.
        children: Inertial parameters of the fixed children in each body, shape (n, 10), from
            ``model.prior.fixed_children``: the remainder must be physically consistent too. None: no constraint.
        half_spaces: Additional linear constraints on theta (dissipative friction), or None.
    """

    distance: str = "entropic"
    epsilon: float = 1e-3
    nonnegative: bool = True
    mass_factor: float | None = 10.0
    total_mass: float | tuple[float, float] | None = None
    com_lower: Array | None = None
    com_upper: Array | None = None
    ellipsoids: Array | None = None
    children: Array | None = None
    half_spaces: HalfSpaces | None = None

    def __post_init__(self) -> None:
        if self.distance not in ("entropic", "euclid"):
            raise ShapeError("unknown prior distance", got=self.distance, expected="entropic | euclid")
        if not 0 < self.epsilon < 1:
            raise ShapeError("epsilon is out of range", got=self.epsilon, expected="0 < epsilon < 1")
        if self.mass_factor is not None and not self.mass_factor > 1:
            raise ShapeError("mass_factor is out of range", got=self.mass_factor, expected="mass_factor > 1, or None")
        freeze_arrays(self)


def ellipsoid(center: ArrayLike, semi_axes: ArrayLike, rotation: ArrayLike | None = None) -> Array:
    """Matrix of an ellipsoid for :attr:`LmiOptions.ellipsoids`: a mass density inside it exists only if ``tr(P Q) ≥ 0``.

    Args:
        center: Center in the body frame, shape (3,) [m].
        semi_axes: Semi-axes, shape (3,) [m].
        rotation: Rotation of the axes in the body frame, shape (3, 3); None: aligned with the frame.

    Returns:
        Q of shape (4, 4) with ``[x; 1]ᵀ Q [x; 1] ≥ 0`` inside (Wensing, Kim, Slotine 2018).
    """
    c, axes = np.asarray(center, dtype=float), np.eye(3) if rotation is None else np.asarray(rotation, dtype=float)
    shape = (axes / np.square(np.asarray(semi_axes, dtype=float))) @ axes.T
    return np.block([[-shape, (shape @ c)[:, None]], [(shape @ c)[None, :], np.array([[1.0 - c @ shape @ c]])]])


@dataclass(frozen=True, eq=False)
class HalfSpaces:
    """Linear constraints ``rows · theta + limits ≥ 0``.

    Attributes:
        rows: Shape (m, p).
        limits: Shape (m,).
        names: Description of each constraint when it is active, length m.
    """

    rows: Array
    limits: Array
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        check_shape("limits", self.limits.shape, (len(self.rows),))
        freeze_arrays(self)
