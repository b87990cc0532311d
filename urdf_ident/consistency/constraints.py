"""Options and constraints of the semidefinite programme, from the user's settings and the URDF's geometry.

A volume that encloses the mass bounds the centre of mass and the second moments (Wensing, Kim, Slotine 2018).
Both bounds only hold where the URDF has geometry for the whole body: a link with mass but no shape, or a missing
mesh, leaves its body without a box. Shapes that contradict the URDF's own inertials are not used either.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ..errors import ShapeError, check_known, check_shape
from ..grouping import grouped
from ..linalg import Array
from ..model.geometry import stated_shapes
from ..model.inertia import pseudo_inertia
from ..model.prior import Prior, fixed_children
from ..model.robot import Body, Robot
from ..samples import ReadOnly, freeze_arrays


@dataclass(frozen=True, eq=False)
class LmiOptions:
    """Constraints on the bodies besides physical consistency, and the distance to the prior.

    Attributes:
        distance: Distance to the prior: ``"entropic"`` (log-det divergence) or ``"euclid"`` (its quadratic
            approximation).
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
    mass_factor: float | None = 10.0
    total_mass: float | tuple[float, float] | None = None
    com_lower: Array | None = None
    com_upper: Array | None = None
    ellipsoids: Array | None = None
    children: Array | None = None
    half_spaces: HalfSpaces | None = None

    def __post_init__(self) -> None:
        check_known("prior distance", self.distance, ("entropic", "euclid"), ShapeError)
        if self.mass_factor is not None and not self.mass_factor > 1:
            raise ShapeError("mass_factor is out of range", got=self.mass_factor, expected="mass_factor > 1, or None")
        freeze_arrays(self)


def ellipsoid(center: ArrayLike, semi_axes: ArrayLike) -> Array:
    """Matrix of an ellipsoid for :attr:`LmiOptions.ellipsoids`: a mass density inside it exists only if ``tr(P Q) ≥ 0``.

    Args:
        center: Center in the body frame, shape (3,) [m].
        semi_axes: Semi-axes along the axes of the frame, shape (3,) [m].

    Returns:
        Q of shape (4, 4) with ``[x; 1]ᵀ Q [x; 1] ≥ 0`` inside (Wensing, Kim, Slotine 2018).
    """
    c, shape = np.asarray(center, dtype=float), np.diag(1.0 / np.square(np.asarray(semi_axes, dtype=float)))
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


#: Least thickness of a body's box [m]: flat meshes represent sheet metal.
_THINNEST = 1e-3
#: Semi-axes of the smallest ellipsoid around a box, in units of half its edges.
_AROUND = np.sqrt(3.0)


@dataclass(frozen=True, eq=False)
class Boxes(ReadOnly):
    """The box around each body's geometry, along the axes of the body's frame.

    Attributes:
        lower, upper: Shape (n, 3) [m]; NaN where the URDF lacks geometry for part of a body.
    """

    lower: Array
    upper: Array

    @property
    def ellipsoids(self) -> Array:
        """The smallest ellipsoids around the boxes, as ``LmiOptions.ellipsoids``, shape (n, 4, 4); NaN where unknown."""
        half = np.maximum(0.5 * (self.upper - self.lower), 0.5 * _THINNEST)
        pairs = zip(0.5 * (self.lower + self.upper), _AROUND * half, strict=True)
        return np.array([ellipsoid(center, axes) for center, axes in pairs]).reshape(-1, 4, 4)


def body_boxes(robot: Robot) -> Boxes:
    """Returns the boxes around the URDF's geometry of each body, including lumped links."""
    shapes, lost = stated_shapes(robot)
    corners = grouped((shape.link, shape.corners()) for shape in shapes)
    limits = np.full((2, robot.n, 3), np.nan)
    for i, body in enumerate(robot.bodies):
        points = _corners(robot, body, corners, lost)
        if points is not None:
            limits[0, i], limits[1, i] = points.min(axis=0), points.max(axis=0)
    return Boxes(*limits)


def _corners(robot: Robot, body: Body, corners: dict[str, list[Array]], lost: frozenset[str]) -> Array | None:
    """Corners of a body's geometry, in its frame; None if a link with mass has no geometry."""
    points: list[Array] = []
    for link in body.links:
        theta = robot.description.links[link.name].theta
        if link.name in lost or (theta is not None and theta[0] > 0 and link.name not in corners):
            return None
        points += [corner_points @ link.rotation.T + link.translation for corner_points in corners.get(link.name, [])]
    return np.concatenate(points) if points else None


def lmi_options(
    robot: Robot,
    prior: Prior,
    *,
    distance: str = "entropic",
    total_mass: float | tuple[float, float] | None = None,
    com_in_box: bool = True,
    mass_factor: float | None = 10.0,
    ellipsoids: bool = False,
    keep_children: bool = False,
) -> tuple[LmiOptions, tuple[str, ...]]:
    """Builds the constraints from settings and geometry.

    Args:
        prior: Prior of its parameters; a body whose prior is outside its own geometry is not constrained by it.
        distance: ``"entropic"`` or ``"euclid"``.
        total_mass: Total mass of all moving bodies [kg], or (least, most), or None.
        com_in_box: Whether centres of mass are constrained to the boxes of :func:`body_boxes`.
        mass_factor: Each mass is between 1/factor and factor times the prior's; None: no limit.
        ellipsoids: Whether all mass is constrained to the ellipsoids around those boxes.
        keep_children: Whether links behind fixed joints keep their inertials from the URDF, so that the remainder of
            each body must be physically consistent.

    Returns:
        The options, and notes on geometry that was not used.
    """
    lower = upper = around = None
    notes: list[str] = []
    n = len(prior.relative_std)
    theta0 = prior.theta0[: 10 * n].reshape(n, 10)
    boxes = body_boxes(robot) if com_in_box or ellipsoids else None
    if boxes is not None and com_in_box:
        lower, upper = boxes.lower.copy(), boxes.upper.copy()
        centres = theta0[:, 1:4] / theta0[:, :1]
        outside = np.any((centres < lower) | (centres > upper), axis=1)  # NaN compares false
        lower[outside] = upper[outside] = np.nan
        notes += _unused_geometry(robot, outside, "centre of mass is outside its geometry: not held inside")
    if boxes is not None and ellipsoids:
        around = boxes.ellipsoids.copy()
        beyond = np.einsum("nab,nab->n", around, pseudo_inertia(theta0)) < 0
        around[beyond] = np.nan
        notes += _unused_geometry(robot, beyond, "inertia is too large for its geometry: not held inside")
    children = fixed_children(robot) if keep_children else None
    options = LmiOptions(
        distance,
        mass_factor=mass_factor,
        total_mass=total_mass,
        com_lower=lower,
        com_upper=upper,
        ellipsoids=around,
        children=children,
    )
    return options, tuple(notes)


def _unused_geometry(robot: Robot, which: Array, geometry: str) -> list[str]:
    names = ", ".join(f"'{body.name}'" for body, out in zip(robot.bodies, which, strict=True) if out)
    return [f"the URDF's own {geometry} ({names})"] if names else []
