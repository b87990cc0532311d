"""Finds all pairs of links, objects and the tool's box that can collide."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import LimitError, ModelError, check_named, check_positive
from ...linalg import Array
from ...model.geometry import Visual, collision_shapes
from ...model.meshes import load_mesh
from ...model.robot import Robot
from ..limits import finite_ends
from .clearance import MEASURED
from .collisions import Collisions, Pair, Solid
from .world import TOOL_BOX, Plane, World

#: Default clearance [m], and its share of the reach of a robot that is too small for it: fingers are 20 mm apart.
CLEARANCE, SHARE_OF_REACH = 0.01, 0.01
#: Number of random configurations for the decision which pairs always touch.
SAMPLES = 200
#: Links closer than TOUCHING in this share of them touch by design.
ALWAYS, TOUCHING = 0.95, 0.01  # [-, m]
#: A distance that varies less than this counts as constant [m].
CONSTANT = 2e-3
#: A thinner mesh is thickened by this much on either side [m].
FLAT = 1e-4


def has_collision_geometry(robot: Robot) -> bool:
    """Returns whether any link of the URDF has collision geometry."""
    return any(link.has_collision for link in robot.description.links.values())


def find_collisions(
    robot: Robot,
    world: World | None = None,
    *,
    clearance: float | None = None,
    prune: bool = True,
) -> Collisions:
    """Finds the pairs that can collide.

    Excluded are: links of one body, links of neighbouring bodies, pairs that are allowed to touch, pairs of links that
    touch in nearly all configurations (their shapes overlap by design), a first moving link mounted on an object, and pairs at
    constant distance. Touching is decided independently of the clearance: a clearance that cannot be kept is an error.

    Args:
        robot: The robot.
        world: Its surroundings; none if None.
        clearance: Smallest distance allowed [m]; if None, the world's, or else 10 mm, but at most 1 % of the robot's reach.
        prune: If False, pairs that are always too close are kept.

    Raises:
        ModelError: A pair or a frame has an unknown name, or an object has the name of a link.
        LimitError: The clearance is not positive, or so large that two solids are closer in all configurations.
    """
    world = world or World()
    automatic = min(CLEARANCE, SHARE_OF_REACH * robot.reach())
    distance = float(next(item for item in (clearance, world.clearance, automatic) if item is not None))
    check_positive("the clearance", distance, LimitError, "m")
    shapes, notes = collision_shapes(robot)
    placed = ((shape, *robot.link_placements[shape.link]) for shape in shapes)
    from_root = np.asarray(np.linalg.inv(world.root))
    solids = (
        *(shape_solid(shape, joint + 1, frame) for shape, joint, frame in placed),
        *(shape_solid(shape, 0, from_root, of_world=True) for shape in world.shapes),
        *(plane_solid(plane, world.root) for plane in world.planes),
    )
    if both := sorted({*robot.description.links} & {*world.names}):
        raise ModelError(f"object '{both[0]}' has the name of a link", where="world", remedy="call it otherwise")
    allowed = {*map(frozenset, world.allowed)}
    for name in sorted({name for names in allowed for name in names}):
        check_named("link or object", name, [*robot.description.links, *world.names], ModelError, "allow")
    parents = list(robot.model.parents)

    def may_collide(first: Solid, second: Solid) -> bool:
        if first.of_world or frozenset((first.name, second.name)) in allowed:
            return False
        if second.of_world:
            return first.body != 0
        return first.body not in (second.body, parents[second.body]) and parents[first.body] != second.body

    candidates = combinations(range(len(solids)), 2)
    may_touch = [(a, b) for a, b in candidates if may_collide(solids[a], solids[b])]
    pairs = tuple(Pair(a, b, (solids[a].name, solids[b].name)) for a, b in may_touch)
    tool = None
    if world.tool is not None:
        check_named("link", world.tool.frame, robot.link_placements, ModelError, "tool.frame")
        joint, placement = robot.link_placements[world.tool.frame]
        tool = joint + 1, placement[:3, 3]
        pairs = (*pairs, Pair(-1, -1, (world.tool.frame, TOOL_BOX)))
    required = np.array([distance if pair.second >= 0 else 0.0 for pair in pairs])
    every = Collisions(robot, world, solids, pairs, required, tool)
    if not prune:
        return replace(every, notes=notes)
    kept, more = _relevant_pairs(every)
    watched = tuple(pairs[p] for p in kept)
    return Collisions(robot, world, solids, watched, required[kept], tool, (*notes, *more))


def _relevant_pairs(collisions: Collisions) -> tuple[list[int], tuple[str, ...]]:
    """Indices of the pairs that do not always touch, and notes on those that do.

    Links that touch by design do so at any clearance; the first moving link may be mounted on an object. Any other pair that
    is too close in all configurations indicates an error in the world file, such as millimetres, and must not be ignored.
    """
    robot, pairs, required = collisions.robot, collisions.pairs, collisions.required
    rng = np.random.default_rng(0)
    distance = collisions.distances(rng.uniform(*finite_ends(robot.limit("lower"), robot.limit("upper")), (SAMPLES, robot.n)))
    solid = np.array([pair.second >= 0 for pair in pairs], dtype=bool)
    of_world = np.array([pair.second < 0 or collisions.solids[pair.second].of_world for pair in pairs], dtype=bool)
    touching = (distance < np.minimum(required, TOUCHING)).mean(axis=0) >= ALWAYS
    beyond = (distance < required + 5 * MEASURED).all(axis=0)  # a distance equal to the required one cannot be certified
    mounted = of_world & np.array([collisions.kinematics.moves[body].sum() == 1 for body, _ in collisions.bodies], dtype=bool)
    always = solid & np.where(of_world, beyond & mounted, touching) | solid & beyond & (np.ptp(distance, axis=0) < CONSTANT)
    for p in np.flatnonzero(beyond & ~always).tolist():
        pair, most = pairs[p], float(distance[:, p].max())
        if pair.second < 0:
            raise LimitError(
                "the tool is outside its box on every configuration tried",
                where=pair.names[0],
                got=f"{-most:.3g} m outside at best",
                remedy="enlarge the box, or correct `base` in the world file",
            )
        overlap = most < 0
        raise LimitError(
            "they overlap on every configuration tried" if overlap else "the clearance cannot be kept",
            where=" and ".join(pair.names),
            got=f"{abs(most):.3g} m {'deep' if overlap else 'apart'} at best",
            expected=f"at least {required[p]:.3g} m apart",
            remedy="check sizes and places in the world file [m], choose a smaller clearance, or `allow` this pair",
        )
    left_out, watched = (dict.fromkeys(pairs[p].names for p in np.flatnonzero(which)) for which in (always, ~always))
    listed = ", ".join(f"{' and '.join(names)}{' (some of their shapes)' * (names in watched)}" for names in left_out)
    notes = (f"closer than the clearance in nearly all poses, so not watched: {listed}",) if listed else ()
    return np.flatnonzero(~always).tolist(), notes


def shape_solid(shape: Visual, body: int, frame: Array, *, of_world: bool = False) -> Solid:
    """Returns the solid of a shape of a link or of the world.

    Args:
        shape: The shape, in the frame of the link or of the world.
        body: Index of the body that the link is lumped into; 0 for fixed links and the world.
        frame: Placement of that frame in the body, shape (4, 4) [m].
        of_world: Whether it belongs to the world.

    Returns:
        The solid; for a mesh of a link its convex hull, for one of the world its exact surface.

    Raises:
        ModelError: The mesh of a link has no hull.
    """
    import coal  # type: ignore[import-untyped]  # comes with Pinocchio

    middle = np.zeros(3)
    if shape.kind == "mesh":
        mesh = load_mesh(Path(str(shape.mesh)), np.array(shape.size))
        points, round_off = np.array(mesh.vertices()), 0.0
        middle, half = (points.max(axis=0) + points.min(axis=0)) / 2, (points.max(axis=0) - points.min(axis=0)) / 2
        geometry = mesh if of_world else _hull(mesh, shape)
    elif shape.kind == "box":
        geometry, half = coal.Box(*shape.size), np.array(shape.size) / 2
        points, round_off = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) * half, 0.0
    else:  # solid of revolution: the ends of its axis, and a radius
        length = 0.0 if shape.kind == "sphere" else shape.size[1] / 2
        points, round_off = np.array([[0.0, 0, -length], [0, 0, length]]), shape.size[0]
        half = np.array([round_off, round_off, length + (0.0 if shape.kind == "cylinder" else round_off)])
        geometry = {"sphere": coal.Sphere, "cylinder": coal.Cylinder, "capsule": coal.Capsule}[shape.kind](*shape.size)
    placement = frame @ shape.placement
    there = points @ placement[:3, :3].T + placement[:3, 3]
    centre = placement[:3, :3] @ middle + placement[:3, 3]
    if shape.kind == "cylinder":
        radius = float(np.hypot(half[0], half[2]))
    else:
        radius = float(np.linalg.norm(there - centre, axis=1).max() + round_off)
    reach = float(np.linalg.norm(there, axis=1).max() + round_off)
    return Solid(shape.link, body, of_world, geometry, placement, reach, centre, radius, half, shape.assumed)


def plane_solid(plane: Plane, root: Array) -> Solid:
    """Returns the solid of a half-space of the world; root: placement of the robot's root in the world, shape (4, 4) [m]."""
    import coal

    offset = plane.offset - float(plane.normal @ root[:3, 3])
    turned = root[:3, :3].T @ plane.normal
    solid = coal.Halfspace(turned, offset)
    return Solid(plane.name, 0, True, solid, np.eye(4), np.inf, offset * turned, np.inf, np.zeros(3))


def _hull(mesh: Any, shape: Visual) -> Any:
    """Returns the convex hull of a mesh; a flat mesh, on which Coal crashes, is thickened slightly."""
    import coal

    points = np.array(mesh.vertices())
    axes = np.linalg.eigh(np.cov(points.T, bias=True))[1].T
    flat = axes[np.ptp(points @ axes.T, axis=0) < FLAT]
    if len(flat):
        for axis in flat:
            points = np.concatenate([points - FLAT * axis, points + FLAT * axis])
        mesh = coal.BVHModelOBBRSS()
        mesh.beginModel(1, len(points))
        mesh.addVertices(points)
        mesh.addTriangle(*points[:3])
        mesh.endModel()
    try:
        mesh.buildConvexHull(True, "Qt")
    except RuntimeError as error:
        raise ModelError("a collision mesh has no convex hull", where=f"link '{shape.link}'", got=str(shape.mesh)) from error
    return mesh.convex
