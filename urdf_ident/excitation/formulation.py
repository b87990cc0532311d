"""The optimisation problem of a motion design: criterion, information of earlier logs, limits and obstacles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from ..model.dynamic_model import DynamicModel
from ..motion.collision.collisions import Collisions
from ..motion.collision.find import find_collisions, has_collision_geometry
from ..motion.limits import Limits
from .assumptions import column_scale, make_criterion, rigid_for_planning, row_weights, usable_limits
from .earlier_logs import EarlierResult, continued, known_rows, row_noise
from .family import Family
from .planned_rows import PlannedRows, designable, softened
from .search.multi_start import Problem
from .search.obstacles import Obstacles


@dataclass(frozen=True, eq=False)
class Formulation:
    """The optimisation problem, and its assumptions.

    Attributes:
        model: The model to identify.
        rows: Weighted rows of the model as it is; the problem's own have softened signs.
        weighting: Description of the weights of columns and rows.
        notes: Notes for the user.
    """

    model: DynamicModel
    problem: Problem
    rows: PlannedRows
    weighting: str
    notes: tuple[str, ...]


def formulate(
    model: DynamicModel,
    shape: Family,
    limits: Limits,
    criterion: str,
    *,
    noise: ArrayLike | None = None,
    scaling: str | None = None,
    after: EarlierResult | None = None,
    collisions: Collisions | Literal["auto"] | None = None,
    global_start: str = "none",
) -> Formulation:
    """Formulates the problem; for the arguments see :func:`.design.design_excitation`.

    Args:
        noise: Expected torque noise of each row group, shape (n,) or a number [N·m or N].

    Raises:
        LimitError: A limit is unknown, or a pose of the motion is outside the limits or collides.
        FingerprintError: ``after`` is for another robot.
    """
    limits, notes = usable_limits(limits, shape.start, shape.end)
    model, planned_on = rigid_for_planning(model)
    notes = (*notes, *planned_on)
    if collisions == "auto":
        collisions = find_collisions(model.robot) if has_collision_geometry(model.robot) else None
    if after is not None:
        model, added = continued(after, model)
        notes = (*notes, *added)
    planned, left_out = designable(model)
    base = planned.base()
    known = np.zeros((0, len(base)))
    if after is not None:
        noise = row_noise(after) if noise is None else noise
        known = known_rows(after, planned, base) / np.sqrt(shape.period * shape.periods * after.signals["decimate"])
    weights, weighting = row_weights(noise, criterion, limits, planned)
    scaling = scaling or ("columns" if criterion in ("A", "E") else "none")
    scale = column_scale(scaling, PlannedRows(planned, base, weights), limits)
    rows = PlannedRows(softened(planned, shape.reachable_velocity(limits)), base, weights, scale)
    if collisions is not None:
        for pose, what in ((shape.start, "the start pose"), (shape.end, "the end pose")):
            if pose is not None:
                collisions.require_free(pose, what)
    obstacles = None if collisions is None else Obstacles(collisions, shape, limits)
    problem = Problem(make_criterion(criterion, rows, limits, known * scale), shape, limits, obstacles, global_start)
    notes = (*notes, *left_out, *(() if collisions is None else collisions.notes))
    return Formulation(model, problem, PlannedRows(planned, base, weights, scale), f"{scaling}, rows {weighting}", notes)
