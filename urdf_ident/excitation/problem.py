"""The optimisation problem of a motion design: criterion, limits, obstacles, and the information of earlier logs, which a
new motion complements by exciting parameters that are still unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike

from ..errors import FingerprintError, ModelError, check_known, check_shape
from ..linalg import Array, one_each, triangle
from ..model.base import BaseParameters, random_motion, reduce_factor
from ..model.dynamic_model import DynamicModel
from ..model.prior import Prior
from ..motion.collision.collisions import Collisions
from ..motion.collision.find import find_collisions, has_collision_geometry
from ..motion.limits import Limits, finite_ends
from ..statistics.fit import Fit
from .criteria import BlockCriterion, Criterion, SpectralCriterion, block_motions, block_parts
from .family import Family
from .rows import PlannedRows, designable, rigid_for_planning, softened


class EarlierResult(Protocol):
    """Interface of an identification.

    Its model and base parameters with robust standard errors; theta, shape (p,); the whitened data factor with the torque as
    last column, shape (m, p + 1); the prior, and its weight against the data; typical speed [rad/s or m/s] and RMS torque
    [N·m or N] of each joint in its logs, shape (n,); and its ``signals`` with ``rate`` and ``decimate``, the rate of rows [Hz].
    """

    @property
    def model(self) -> DynamicModel: ...
    @property
    def fit(self) -> Fit: ...
    @property
    def theta(self) -> Array: ...
    @property
    def factor(self) -> Array: ...
    @property
    def prior(self) -> Prior: ...
    @property
    def prior_weight(self) -> float: ...
    @property
    def speed(self) -> Array: ...
    @property
    def load(self) -> Array: ...
    @property
    def signals(self) -> Mapping[str, Any]: ...


def continued(after: EarlierResult, model: DynamicModel) -> tuple[DynamicModel, tuple[str, ...]]:
    """Returns the model of an earlier result on the present description of the robot.

    The earlier information refers to the terms and drive of that result, which differ from the project's if identification
    chose the friction. Masses and inertias do not enter the rows, so the URDF may have been corrected since.

    Args:
        model: The model of the project; its robot and limits are used, its terms and drive replaced.

    Returns:
        The model for the design, and notes on the changes.

    Raises:
        FingerprintError: A different robot: other joints, links or gravity.
        ModelError: The earlier result has elastic joints.
    """
    earlier = after.model
    difference = earlier.robot.difference(model.robot)
    if difference is None and [body.name for body in earlier.robot.bodies] != [body.name for body in model.robot.bodies]:
        difference = "its moving links have other names"
    if difference is not None:
        raise FingerprintError(
            f"the earlier result is for another robot: {difference}",
            got=earlier.robot.name,
            expected=model.robot.name,
            remedy="give the identification.json of this robot",
        )
    if not earlier.is_rigid:
        raise ModelError(
            "the earlier result has elastic joints, and motions are designed on the rigid model",
            remedy="identify once with model.elastic: false, and design after that result",
        )
    same = model.with_drive(earlier.drive).with_terms(earlier.terms).with_reference(earlier.reference_theta)
    if model.names == same.names:
        return same, ()
    return same, (
        f"friction as in the earlier result: {len(same.names)} parameters instead of the project's {len(model.names)}",
    )


def known_rows(after: EarlierResult, planned: DynamicModel, base: BaseParameters) -> Array:
    """Returns the information of earlier logs about the base parameters of the planned model.

    Args:
        planned: The model without the terms that the design ignores.

    Returns:
        Rows with unit noise, shape (k, b); the ignored parameters are treated as unknown.
    """
    names = after.model.names
    wanted = [names.index(planned.names[k]) for k in base.independent]
    left_out = [k for k, name in enumerate(names) if name not in planned.names]
    return np.asarray(triangle(after.factor[:, [*left_out, *wanted]])[len(left_out) :, len(left_out) :])


def row_noise(after: EarlierResult) -> Array:
    """Returns the noise of the row groups from the earlier fit, shape (n,) [N·m or N]."""
    return np.array([after.fit.sigma[group.name] for group in after.model.groups])


#: Expected torque noise as a fraction of a known torque limit.
NOISE = 0.01
#: Least distance of a start pose from the position limits [rad or m].
LEAST_ROOM = 1e-3


@dataclass(frozen=True, eq=False)
class Problem:
    """The optimisation problem of a design, and its assumptions.

    Attributes:
        model: The model to identify.
        criterion: The criterion, of ``rows``.
        rows: Weighted rows of the model with softened signs, which have informative gradients.
        exact: Weighted rows of the model as it is.
        limits: Limits of the joints, finite for positions and velocities.
        collisions: Pairs whose clearance is kept, or None.
        weighting: Description of the weights of columns and rows.
        notes: Notes for the user.
    """

    model: DynamicModel
    family: Family
    criterion: Criterion
    rows: PlannedRows
    exact: PlannedRows
    limits: Limits
    collisions: Collisions | None
    weighting: str = ""
    notes: tuple[str, ...] = ()

    def value(self, X: Array, rows: PlannedRows) -> float:
        """Evaluates the criterion on many instants.

        Args:
            X: Unknowns, shape (d, n).
            rows: :attr:`rows` or :attr:`exact`.
        """
        grid = self.family.criterion_grid(max(1000, 8 * self.family.samples))
        return self.criterion.value(rows.evaluate(*self.criterion.motions(*grid.motion(X)))[0], np.inf)[0]


def formulate(
    model: DynamicModel,
    family: Family,
    limits: Limits,
    criterion: str,
    *,
    noise: ArrayLike | None = None,
    scaling: str | None = None,
    after: EarlierResult | None = None,
    collisions: Collisions | Literal["auto"] | None = None,
) -> Problem:
    """Formulates the problem; for the arguments see :func:`.design.design_excitation`.

    Args:
        noise: Expected torque noise of each row group, shape (n,) or a number [N·m or N].

    Raises:
        LimitError: A limit is unknown, or a pose of the motion is outside the limits or collides.
        FingerprintError: ``after`` is for another robot.
    """
    limits, notes = usable_limits(limits, family.start, family.end)
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
        known = known_rows(after, planned, base) / np.sqrt(family.period * family.periods * after.signals["decimate"])
    weights, weighting = row_weights(noise, criterion, limits, planned)
    scaling = scaling or ("columns" if criterion in ("A", "E") else "none")
    scale = column_scale(scaling, PlannedRows(planned, base, weights), limits)
    rows = PlannedRows(softened(planned, family.reachable_velocity(limits)), base, weights, scale)
    for pose, what in ((family.start, "the start pose"), (family.end, "the end pose")):
        if collisions is not None and pose is not None:
            collisions.require_free(pose, what)
    return Problem(
        model,
        family,
        make_criterion(criterion, rows, limits, known * scale),
        rows,
        PlannedRows(planned, base, weights, scale),
        limits,
        collisions,
        f"{scaling}, rows {weighting}",
        (*notes, *left_out, *(() if collisions is None else collisions.notes)),
    )


def usable_limits(limits: Limits, start: ArrayLike | None, end: ArrayLike | None = None) -> tuple[Limits, tuple[str, ...]]:
    """Completes the limits for the search: all known, and continuous joints bounded.

    A joint without position limits stays within half a turn of its start pose (zero if none is given); an unknown
    acceleration limit is replaced by twice the velocity limit per second.

    Args:
        limits: Limits of the robot; unknown torque limits stay unknown, with a note.
        start: Start pose, shape (n,) [rad or m], or None.
        end: End pose, shape (n,) [rad or m], or None.

    Raises:
        LimitError: A position or velocity limit is unknown, or a pose has not n finite numbers, is outside the limits or within
            1 mm or mrad of one.
    """
    limits.require("position", "velocity")
    notes = []
    given = {name: pose for name, pose in (("start", start), ("end", end)) if pose is not None}
    poses = {name: one_each(name, pose, len(limits.joints)) for name, pose in given.items()}
    for name, pose in poses.items():
        limits.require_inside(pose, f"{name} pose", LEAST_ROOM)
    endless = ~(np.isfinite(limits.lower) & np.isfinite(limits.upper))
    if endless.any():
        notes.append("kept within half a turn: " + ", ".join(np.array(limits.joints)[endless]))
    lower, upper = finite_ends(limits.lower, limits.upper, poses.get("start", 0.0))
    limits = replace(limits, lower=lower, upper=upper, acceleration=limits.assumed_acceleration)
    if not np.isfinite(limits.torque).all():
        notes.append("no torque limit known: " + ", ".join(np.array(limits.joints)[~np.isfinite(limits.torque)]))
    return limits, tuple(notes)


def row_weights(noise: ArrayLike | None, criterion: str, limits: Limits, model: DynamicModel) -> tuple[Array, str]:
    """Returns the expected noise of each row group; rows of coupled axes are motor torques.

    Args:
        noise: Shape (n,) or a number [N·m or N], or None.

    Returns:
        Shape (n,) [N·m or N], and its source, in words.

    Raises:
        ModelError: Not positive.
    """
    n = len(limits.joints)
    if noise is not None:
        given = np.array(np.broadcast_to(noise, (n,)) if np.ndim(noise) == 0 else noise, dtype=float)
        check_shape("noise", given.shape, (n,))
        if not (np.isfinite(given).all() and (given > 0).all()):
            raise ModelError("the expected torque noise must be positive", got=given.tolist())
        return given, "weighted by the noise given"
    if criterion in ("D", "A", "E") and np.isfinite(limits.torque).all():
        return NOISE * np.abs(model.drive.row_mix) @ limits.torque, f"weighted by {100 * NOISE:g} % of the torque limits"
    return np.ones(n), "not weighted"


def column_scale(scaling: str, rows: PlannedRows, limits: Limits) -> Array:
    """Returns the scale factors of the base columns, shape (b,): inverse RMS of each on random states ("columns"), or ones.

    Raises:
        ModelError: Unknown scaling.
    """
    check_known("scaling", scaling, ("none", "columns"), ModelError)
    if scaling == "none":
        return np.ones(len(rows.base))
    W = rows.evaluate(*_random_states(limits))[0]
    return np.asarray(1.0 / np.sqrt(np.mean(np.sum(W**2, axis=1), axis=0)))


def make_criterion(name: str, rows: PlannedRows, limits: Limits, known: Array) -> Criterion:
    """Builds the criterion of planned rows.

    Args:
        name: One of :data:`.criteria.CRITERIA`.
        known: Rows of earlier logs in the units of the mean planned row, shape (k, b); "block" does not use them.

    Returns:
        The criterion. "block" is that of Liu 2023 (15-16): weights proportional to the variance of the entries of W_acc, W_vel
        and W_grav on random states inside the limits, with the independent columns of each part.
    """
    if name != "block":
        return SpectralCriterion(name, known)

    def effects(*motion: Array) -> tuple[Array, Array, Array]:
        return block_parts(rows.evaluate(*block_motions(*motion))[0])[1]

    motion, names = random_motion(rows.model.robot, max(200, 4 * len(rows.base)), seed=0), rows.base.labels
    acc, vel, grav = (reduce_factor(effect, names).independent for effect in effects(motion.q, motion.v, motion.a))
    weights = [
        float(effect[:, columns].var(axis=0).mean())
        for effect, columns in zip(effects(*_random_states(limits)), (acc, vel, grav), strict=True)
    ]
    return BlockCriterion((acc, vel, grav), np.array(weights) / sum(weights))


def _random_states(limits: Limits) -> tuple[Array, Array, Array]:
    """Returns random states inside the limits, with velocities and accelerations up to half of theirs."""
    q, v, a = np.random.default_rng(0).uniform(-1.0, 1.0, (3, 2000, len(limits.joints)))
    return limits.middle + limits.half_range * q, 0.5 * limits.velocity * v, 0.5 * limits.acceleration * a
