"""Finds all pairs of links, objects and the tool's box that can collide."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from ...errors import LimitError, ModelError, check_named, check_positive
from ...linalg import Array
from ...model.geometry import Visual, collision_shapes, reach
from ...model.robot import Robot
from .collisions import Collisions, Pair
from .pruning import relevant_pairs
from .solids import Solid, plane_solid, shape_solid
from .world import TOOL_BOX, ToolBox, World

#: Default clearance [m], and its share of the reach of a robot that is too small for it: fingers are 20 mm apart.
CLEARANCE, SHARE_OF_REACH = 0.01, 0.01


def has_collision_geometry(robot: Robot) -> bool:
    """Returns whether any link of the URDF has collision geometry."""
    return any(link.has_collision for link in robot.description.links.values())


def find_collisions(
    robot: Robot,
    world: World | None = None,
    *,
    clearance: float | None = None,
    allow: Iterable[tuple[str, str]] = (),
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
        allow: More pairs of names that may touch.
        prune: If False, pairs that are always too close are kept.

    Returns:
        The pairs to check.

    Raises:
        ModelError: A pair or a frame has an unknown name, or an object has the name of a link.
        LimitError: The clearance is not positive, or so large that two solids are closer in all configurations.
    """
    world = world or World()
    automatic = min(CLEARANCE, SHARE_OF_REACH * reach(robot))
    distance = float(next(item for item in (clearance, world.clearance, automatic) if item is not None))
    check_positive("the clearance", distance, LimitError, "m")
    shapes, notes = collision_shapes(robot)
    solids = _solids(robot, shapes, world)
    allowed = _allowed(robot, world, [*world.allowed, *allow])
    pairs = tuple(
        Pair(a, b, (solids[a].name, solids[b].name))
        for a in range(len(solids))
        for b in range(a + 1, len(solids))
        if _may_collide(robot, solids[a], solids[b], allowed)
    )
    tool = None if world.tool is None else _tool_point(robot, world.tool)
    if tool is not None:
        pairs = (*pairs, Pair(-1, -1, (world.tool.frame, TOOL_BOX)))  # type: ignore[union-attr]
    required = np.array([distance if pair.second >= 0 else 0.0 for pair in pairs])
    every = Collisions(robot, world, solids, pairs, required, tool)
    if not prune:
        return replace(every, notes=notes)
    kept, more = relevant_pairs(every)
    watched = tuple(pairs[p] for p in kept)
    return Collisions(robot, world, solids, watched, required[kept], tool, (*notes, *more))


def _solids(robot: Robot, shapes: Iterable[Visual], world: World) -> tuple[Solid, ...]:
    placed = ((shape, *robot.link_placements[shape.link]) for shape in shapes)
    links = [shape_solid(shape, joint + 1, frame) for shape, joint, frame in placed]
    from_root = np.asarray(np.linalg.inv(world.root))
    objects = [shape_solid(shape, 0, from_root, of_world=True) for shape in world.shapes]
    return (*links, *objects, *(plane_solid(plane, world.root) for plane in world.planes))


def _allowed(robot: Robot, world: World, pairs: Iterable[tuple[str, str]]) -> set[frozenset[str]]:
    both = sorted({*robot.description.links} & {*world.names})
    if both:
        raise ModelError(f"object '{both[0]}' has the name of a link", where="world", remedy="call it otherwise")
    known = [*robot.description.links, *world.names]
    out = set()
    for pair in pairs:
        for name in pair:
            check_named("link or object", name, known, ModelError, "allow")
        out.add(frozenset(pair))
    return out


def _may_collide(robot: Robot, first: Solid, second: Solid, allowed: set[frozenset[str]]) -> bool:
    if first.of_world or frozenset((first.name, second.name)) in allowed:
        return False
    if second.of_world:
        return first.body != 0
    parents = list(robot.model.parents)
    return first.body not in (second.body, parents[second.body]) and parents[first.body] != second.body


def _tool_point(robot: Robot, tool: ToolBox) -> tuple[int, Array]:
    check_named("link", tool.frame, robot.link_placements, ModelError, "tool.frame")
    joint, placement = robot.link_placements[tool.frame]
    return joint + 1, placement[:3, 3]
