"""Options and constraints of the semidefinite programme, from the user's settings and the URDF's geometry.

A volume that encloses the mass bounds the centre of mass and the second moments (Wensing, Kim, Slotine 2018).
Both bounds only hold where the URDF has geometry for the whole body: a link with mass but no shape, or a missing
mesh, leaves its body without a box. Shapes that contradict the URDF's own inertials are not used either.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..errors import ShapeError, check_known
from ..friction import SPEEDS, Trained, dissipation
from ..grouping import grouped
from ..linalg import Array
from ..model.dynamic_model import DynamicModel
from ..model.geometry import stated_shapes
from ..model.inertia import pseudo_inertia
from ..model.prior import Prior
from ..model.robot import Robot
from ..model.trained import sliders
from ..samples import freeze_arrays
from ..statistics.statistic import StatisticSet


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
        children: Inertial parameters of the fixed children in each body, shape (n, 10), all
            links but its carrier: the remainder must be physically consistent too. None: no constraint.
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


class HalfSpaces(NamedTuple):
    """Linear constraints ``rows · theta ≥ 0``, rows of shape (m, p), with a description of each for when it is active."""

    rows: Array
    names: tuple[str, ...]


#: Least thickness of a body's box [m]: flat meshes represent sheet metal.
_THINNEST = 1e-3
#: Semi-axes of the smallest ellipsoid around a box, in units of half its edges.
_AROUND = np.sqrt(3.0)


def body_boxes(robot: Robot) -> tuple[Array, Array]:
    """Returns the boxes around the URDF's geometry of each body, including lumped links, along the axes of the body's frame.

    Returns:
        Lower and upper limits, shape (n, 3) each [m]; NaN where a link with mass has no geometry that can be read.
    """
    shapes, lost = stated_shapes(robot)
    corners = grouped((shape.link, shape.corners()) for shape in shapes)
    limits = np.full((2, len(robot.bodies), 3), np.nan)
    for i, body in enumerate(robot.bodies):
        stated = {link.name: robot.description.links[link.name].theta for link in body.links}
        heavy = {name for name, theta in stated.items() if theta is not None and theta[0] > 0}
        points = [some @ link.rotation.T + link.translation for link in body.links for some in corners.get(link.name, [])]
        if points and not lost & stated.keys() and heavy <= corners.keys():
            limits[:, i] = np.concatenate(points).min(axis=0), np.concatenate(points).max(axis=0)
    return limits[0], limits[1]


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
        distance, total_mass, mass_factor: Of :class:`LmiOptions`.
        com_in_box: Whether centres of mass are constrained to the boxes of :func:`body_boxes`.
        ellipsoids: Whether all mass is constrained to the ellipsoids around those boxes.
        keep_children: Whether links behind fixed joints keep their inertials from the URDF, so that the remainder of
            each body must be physically consistent.

    Returns:
        The options, and notes on geometry that was not used.
    """
    lower = upper = around = None
    notes: list[str] = []

    def unused(which: Array, geometry: str) -> None:
        if names := ", ".join(f"'{body.name}'" for body, out in zip(robot.bodies, which, strict=True) if out):
            notes.append(f"the URDF's own {geometry} ({names})")

    theta0 = prior.theta0[: 10 * len(prior.relative_std)].reshape(-1, 10)
    if com_in_box or ellipsoids:
        boxes = body_boxes(robot)
        if com_in_box:
            centres = theta0[:, 1:4] / theta0[:, :1]
            outside = np.any((centres < boxes[0]) | (centres > boxes[1]), axis=1)  # NaN compares false
            lower, upper = (np.where(outside[:, None], np.nan, box) for box in boxes)
            unused(outside, "centre of mass is outside its geometry: not held inside")
        if ellipsoids:
            half = _AROUND * np.maximum(0.5 * (boxes[1] - boxes[0]), 0.5 * _THINNEST)
            around = np.array([ellipsoid(*pair) for pair in zip(0.5 * (boxes[0] + boxes[1]), half, strict=True)])
            beyond = np.einsum("nab,nab->n", around, pseudo_inertia(theta0)) < 0
            around[beyond] = np.nan
            unused(beyond, "inertia is too large for its geometry: not held inside")
    options = LmiOptions(
        distance,
        mass_factor=mass_factor,
        total_mass=total_mass,
        com_lower=lower,
        com_upper=upper,
        ellipsoids=around,
        children=np.array([body.theta - body.carrier.theta for body in robot.bodies]) if keep_children else None,
    )
    return options, tuple(notes)


#: Assumed ratio of the peak load to its root mean square.
_PEAK = 3.0


def loads(model: DynamicModel, statistics: StatisticSet) -> Array:
    """Approximate peak torque of each joint in the data.

    Returns:
        Shape (n,) [N·m or N]; with a coupled drive, of the joint's actuator.
    """
    peak = np.zeros(model.n)
    for layout in statistics.layouts:
        rows = max(statistics.rows[layout.group], 1)
        peak[layout.joint] = max(peak[layout.joint], _PEAK * np.sqrt(statistics.effort_squares(layout.group) / rows))
    return peak


def friction_constraints(model: DynamicModel, peak: Array, speeds: int = 10 * SPEEDS) -> HalfSpaces:
    """Builds the constraints that friction of every joint and motor is dissipative at all speeds.

    Args:
        model: The model; laws without trained speeds are not constrained.
        peak: Largest torque of each joint, shape (n,) [N·m or N].
        speeds: Number of speeds in each direction at which it is imposed.

    Returns:
        The constraints; empty where the signs of the parameters are sufficient.
    """
    rows, names = [np.zeros((0, len(model.parameters)))], list[str]()
    for (axis, side), laws in sliders(model).items():
        reach = laws[0][1].trained
        if reach is None:
            continue
        load = float(peak[axis]) / (1.0 if side == "joint" else abs(float(model.drive.reduction[axis, axis])) or 1.0)
        half_spaces, causes = dissipation([law for _, law in laws], Trained(*reach, load), speeds)
        columns = [column + k for column, law in laws for k in range(len(law.symbols))]
        wide = np.zeros((len(half_spaces), len(model.parameters)))
        wide[:, columns] = half_spaces
        rows.append(wide)
        owner = model.robot.joints[axis] if side == "joint" else f"motor of {model.robot.joints[axis]}"
        names += [f"{owner}: {word} at 0" for word in causes]
    return HalfSpaces(np.vstack(rows), tuple(names))
