"""Constraints on standard parameters: physics, limits from the user's settings and the URDF's geometry, friction's dissipation.

Each is linear in theta: a half-space, or a pseudo-inertia that stays above a given one. A volume that encloses the mass
bounds the centre of mass and the second moments (Wensing, Kim, Slotine 2018). Both bounds only hold where the URDF has geometry
for the whole body: a link with mass but no shape, or a missing mesh, leaves its body without a box. Shapes that contradict the
URDF's own inertials are not used either.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..errors import ShapeError, check_shape
from ..friction import SPEEDS, Trained, dissipation
from ..grouping import grouped
from ..linalg import Array
from ..model.dynamic_model import DynamicModel
from ..model.geometry import stated_shapes
from ..model.inertia import PSEUDO_BASIS, nearest_physical, pseudo_inertia
from ..model.prior import Prior
from ..model.robot import Robot
from ..model.terms import Parameter
from ..model.trained import sliders
from ..statistics.statistic import StatisticSet

#: Every pseudo-inertia stays above this fraction of the prior's: ``P ⪰ ε·P0``.
EPSILON = 1e-3
#: How the limits of a body's mass are described, after its name; verdicts recognise them by it.
MASS_LIMIT = "mass at "
#: Settings of the section ``consistency`` that constrain.
MASS, BOX, ELLIPSOID, CHILDREN, TOTAL = "mass_factor", "com_in_box", "ellipsoids", "keep_children", "total_mass"
#: The same for friction that dissipates, which no setting switches off.
FRICTION = "friction"


class HalfSpace(NamedTuple):
    """``row · theta + limit ≥ 0``.

    Attributes:
        name: Description for when it is active.
        row: Shape (p,).
        limit: Its constant.
        setting: What demands it; empty for what physics does.
    """

    name: str
    row: Array
    limit: float = 0.0
    setting: str = ""


class Floor(NamedTuple):
    """``P(theta_i) ⪰ least``: the pseudo-inertia of a body i stays above a matrix of shape (4, 4); else as a half-space."""

    name: str
    body: int
    least: Array
    setting: str = ""


Constraint = HalfSpace | Floor


def physics(prior: Prior, parameters: Sequence[Parameter]) -> Iterator[Constraint]:
    """Bodies that are physically consistent, and parameters of joints that are never negative."""
    for i, (name, theta) in enumerate(_bodies(prior, parameters)):
        yield Floor(f"{name}: pseudo-inertia at its limit", i, EPSILON * pseudo_inertia(theta))
    for parameter, row in list(zip(parameters, np.eye(len(parameters)), strict=True))[10 * len(prior.relative_std) :]:
        if parameter.nonnegative:
            yield HalfSpace(at_zero(parameter), row)


def at_zero(parameter: Parameter) -> str:
    """Description of the constraint that holds a parameter at zero, as it stands in ``solver.active``."""
    return f"{parameter.name} ≥ 0"


def mass_limits(prior: Prior, parameters: Sequence[Parameter], factor: float = 10.0) -> Iterator[HalfSpace]:
    """Masses between 1/factor and factor times the prior's, so that unidentifiable ones cannot become absurdly large.

    Args:
        factor: Its square is that of masses that the prior had to guess.
    """
    if not factor > 1:
        raise ShapeError("mass_factor is out of range", got=factor, expected="mass_factor > 1, or None")
    for i, (name, theta) in enumerate(_bodies(prior, parameters)):
        most, row = factor ** (2.0 if prior.guessed[i] else 1.0), np.eye(1, len(parameters), 10 * i)[0]
        yield HalfSpace(f"{name}: {MASS_LIMIT}1/{most:g} of the prior's", row, -theta[0] / most, MASS)
        yield HalfSpace(f"{name}: {MASS_LIMIT}{most:g} times the prior's", -row, theta[0] * most, MASS)


def known_total(prior: Prior, kilograms: float | tuple[float, float]) -> Iterator[HalfSpace]:
    """Known mass of all moving bodies together; kilograms: its value, or the range (least, most) [kg]."""
    least, most = kilograms if isinstance(kilograms, tuple) else (kilograms, kilograms)
    row = np.zeros(len(prior.theta0))
    row[: 10 * len(prior.relative_std) : 10] = 1.0
    yield HalfSpace("total mass at its least", row, -float(least), TOTAL)
    yield HalfSpace("total mass at its most", -row, float(most), TOTAL)


def centres_in_boxes(
    prior: Prior, parameters: Sequence[Parameter], lower: Array | None = None, upper: Array | None = None
) -> Iterator[HalfSpace]:
    """Centres of mass in boxes.

    Args:
        lower, upper: In each body's frame, shape (n, 3) [m]; not finite where unknown.
    """
    unit, names = np.eye(len(parameters)), [name for name, _ in _bodies(prior, parameters)]
    for sign, box, end in ((1.0, lower, "lower"), (-1.0, upper, "upper")):
        if box is not None:  # lower·m ≤ m·c ≤ upper·m: linear in mass and first moments
            check_shape(f"{end} limits of centres of mass", box.shape, (len(names), 3))
            for i, k in np.argwhere(np.isfinite(box)).tolist():
                row = sign * (unit[10 * i + 1 + k] - box[i, k] * unit[10 * i])
                yield HalfSpace(f"{names[i]}: centre of mass at its {end} {'xyz'[k]} limit", row, 0.0, BOX)


def ellipsoid(center: ArrayLike, semi_axes: ArrayLike) -> Array:
    """Matrix of an ellipsoid: a mass density inside it exists only if ``tr(P Q) ≥ 0``.

    Args:
        center: Center in the body frame, shape (3,) [m].
        semi_axes: Semi-axes along the axes of the frame, shape (3,) [m].

    Returns:
        Q of shape (4, 4) with ``[x; 1]ᵀ Q [x; 1] ≥ 0`` inside (Wensing, Kim, Slotine 2018).
    """
    c, shape = np.asarray(center, dtype=float), np.diag(1.0 / np.square(np.asarray(semi_axes, dtype=float)))
    return np.block([[-shape, (shape @ c)[:, None]], [(shape @ c)[None, :], np.array([[1.0 - c @ shape @ c]])]])


def matter_in_ellipsoids(prior: Prior, parameters: Sequence[Parameter], ellipsoids: Array) -> Iterator[HalfSpace]:
    """All mass in ellipsoids.

    Args:
        ellipsoids: Their matrices from :func:`ellipsoid`, shape (n, 4, 4); NaN where unknown.
    """
    for i, ((name, _), Q) in enumerate(zip(_bodies(prior, parameters), ellipsoids, strict=True)):
        if np.isfinite(Q).all():
            row = np.zeros(len(parameters))
            row[10 * i : 10 * i + 10] = np.einsum("kab,ab->k", PSEUDO_BASIS, Q)
            yield HalfSpace(f"{name}: matter at the surface of its ellipsoid", row, 0.0, ELLIPSOID)


def remainders(prior: Prior, parameters: Sequence[Parameter], children: Array) -> Iterator[Floor]:
    """Bodies of which something physically consistent is left beside their fixed children.

    Args:
        children: Inertial parameters of the fixed children in each body, shape (n, 10): of all links but its carrier.
    """
    for i, ((name, theta), child) in enumerate(zip(_bodies(prior, parameters), children, strict=True)):
        if child.any():
            rest = EPSILON * pseudo_inertia(nearest_physical(theta - child))
            yield Floor(f"{name}: nothing left beside its fixed children", i, pseudo_inertia(child) + rest, CHILDREN)


def _bodies(prior: Prior, parameters: Sequence[Parameter]) -> list[tuple[str, Array]]:
    """Name of each body, and its ten parameters in the prior."""
    tens = prior.theta0[: 10 * len(prior.relative_std)].reshape(-1, 10)
    return [(parameters[10 * i].owner, theta) for i, theta in enumerate(tens)]


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


def body_constraints(
    robot: Robot,
    prior: Prior,
    parameters: Sequence[Parameter],
    *,
    total_mass: float | tuple[float, float] | None = None,
    com_in_box: bool = True,
    mass_factor: float | None = 10.0,
    ellipsoids: bool = False,
    keep_children: bool = False,
) -> tuple[list[Constraint], tuple[str, ...]]:
    """Builds the constraints of the bodies from settings and geometry.

    Args:
        prior: Prior of the parameters; a body whose prior is outside its own geometry is not constrained by it.
        total_mass: Of :func:`known_total`.
        com_in_box: Whether centres of mass are constrained to the boxes of :func:`body_boxes`.
        mass_factor: Of :func:`mass_limits`.
        ellipsoids: Whether all mass is constrained to the ellipsoids around those boxes.
        keep_children: Whether links behind fixed joints keep their inertials from the URDF, so that the remainder of
            each body must be physically consistent.

    Returns:
        The constraints, and notes on geometry that was not used.
    """
    constraints, notes = list[Constraint](), list[str]()

    def unused(which: Array, geometry: str) -> None:
        if names := ", ".join(f"'{body.name}'" for body, out in zip(robot.bodies, which, strict=True) if out):
            notes.append(f"the URDF's own {geometry} ({names})")

    if mass_factor is not None:
        constraints += mass_limits(prior, parameters, mass_factor)
    theta0 = prior.theta0[: robot.n_inertial].reshape(-1, 10)
    if com_in_box or ellipsoids:
        boxes = body_boxes(robot)
        if com_in_box:
            centres = theta0[:, 1:4] / theta0[:, :1]
            outside = np.any((centres < boxes[0]) | (centres > boxes[1]), axis=1)  # NaN compares false
            unused(outside, "centre of mass is outside its geometry: not held inside")
            constraints += centres_in_boxes(prior, parameters, *(np.where(outside[:, None], np.nan, box) for box in boxes))
        if ellipsoids:
            half = _AROUND * np.maximum(0.5 * (boxes[1] - boxes[0]), 0.5 * _THINNEST)
            around = np.array([ellipsoid(*pair) for pair in zip(0.5 * (boxes[0] + boxes[1]), half, strict=True)])
            beyond = np.einsum("nab,nab->n", around, pseudo_inertia(theta0)) < 0
            unused(beyond, "inertia is too large for its geometry: not held inside")
            constraints += matter_in_ellipsoids(prior, parameters, np.where(beyond[:, None, None], np.nan, around))
    if total_mass is not None:
        constraints += known_total(prior, total_mass)
    if keep_children:
        constraints += remainders(prior, parameters, np.array([body.theta - body.carrier.theta for body in robot.bodies]))
    return constraints, tuple(notes)


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


def friction_constraints(model: DynamicModel, peak: Array, speeds: int = 10 * SPEEDS) -> list[HalfSpace]:
    """Builds the constraints that friction of every joint and motor is dissipative at all speeds.

    Args:
        model: The model; laws without trained speeds are not constrained.
        peak: Largest torque of each joint, shape (n,) [N·m or N].
        speeds: Number of speeds in each direction at which it is imposed.

    Returns:
        The constraints; none where the signs of the parameters are sufficient.
    """
    constraints = list[HalfSpace]()
    for (axis, side), laws in sliders(model).items():
        reach = laws[0][1].trained
        if reach is None:
            continue
        load = float(peak[axis]) / (1.0 if side == "joint" else abs(float(model.drive.reduction[axis, axis])) or 1.0)
        rows, causes = dissipation([law for _, law in laws], Trained(*reach, load), speeds)
        columns = [column + k for column, law in laws for k in range(len(law.symbols))]
        owner = model.robot.joints[axis] if side == "joint" else f"motor of {model.robot.joints[axis]}"
        for own, word in zip(rows, causes, strict=True):
            row = np.zeros(len(model.parameters))
            row[columns] = own
            constraints.append(HalfSpace(f"{owner}: {word} at 0", row, 0.0, FRICTION))
    return constraints
