"""Inputs and assumptions of a design: limits, noise, scaling, and the resulting criterion."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from ..errors import ModelError, check_known, check_shape
from ..linalg import Array, one_each
from ..model.base import BaseParameters, reduce_factor
from ..model.dynamic_model import DynamicModel
from ..model.prior import lumped_inertials
from ..model.structure import random_motion
from ..model.terms import SPRING_TERMS
from ..motion.limits import Limits
from ..motion.trajectory import Trajectory
from ..samples import Segment
from .planned_rows import PlannedRows
from .search.objective import BlockCriterion, Criterion, SpectralCriterion

#: Sampling rate for the evaluation of a finished motion [Hz].
REPORT_RATE = 100.0
#: Expected torque noise as a fraction of a known torque limit.
NOISE = 0.01
#: Least distance of a start pose from the position limits [rad or m].
LEAST_ROOM = 1e-3


def rigid_for_planning(model: DynamicModel) -> tuple[DynamicModel, tuple[str, ...]]:
    """Returns the model for planning: for elastic joints the rigid part, whose torques deflect the springs.

    Returns:
        The model for planning, and a note if it is a different one.
    """
    if model.is_rigid:
        return model, ()
    rigid = DynamicModel(model.robot, friction="none", rotor_inertia=False, drive=model.drive)
    rigid = rigid.with_terms([applied for applied in model.terms if not isinstance(applied.term, SPRING_TERMS)])
    return rigid, ("planned on the rigid part of the elastic model; springs show by the torques of the motion",)


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
        centre = poses.get("start", np.zeros(len(limits.joints)))
        limits = replace(
            limits,
            lower=np.where(endless, centre - np.pi, limits.lower),
            upper=np.where(endless, centre + np.pi, limits.upper),
        )
        notes.append("kept within half a turn: " + ", ".join(np.array(limits.joints)[endless]))
    unknown = ~np.isfinite(limits.acceleration)
    if unknown.any():
        limits = replace(limits, acceleration=np.where(unknown, 2.0 * limits.velocity, limits.acceleration))
    if not np.isfinite(limits.torque).all():
        notes.append("no torque limit known: " + ", ".join(np.array(limits.joints)[~np.isfinite(limits.torque)]))
    return limits, tuple(notes)


def weighted_regressor(
    model: DynamicModel, base: BaseParameters, trajectory: Trajectory, noise: Array, rate: float = REPORT_RATE
) -> Array:
    """Returns the rows of a motion for the base parameters, from the model itself (reference implementation).

    Load-dependent friction is evaluated with the torque of the URDF's rigid model, which is known in advance.

    Args:
        noise: Standard deviation of each row group's torque, shape (n,) [N·m or N]; ones: unweighted rows.
        rate: Samples per second [Hz]; more if that gives fewer than two samples per parameter.

    Returns:
        Shape (N·n, b) [standard deviations per unit of each base parameter], all samples of one row group together.
    """
    count = max(2 * len(base), round(trajectory.duration * rate))
    step = trajectory.duration / count
    segment = Segment("design", 0.0, 1.0 / step, *trajectory.evaluate((np.arange(count) + 0.5) * step))
    if model.loaded and model.reference_theta is None:
        model = model.with_reference(lumped_inertials(model.robot).reshape(-1))
    out = np.zeros((model.n, count, len(base)))
    place = base.place
    for samples, blocks in model.row_blocks(segment):
        for j, (group, block) in enumerate(zip(model.groups, blocks, strict=True)):
            identifiable = place[group.columns] >= 0
            out[j, samples, place[group.columns[identifiable]]] = (block[:, identifiable] / noise[j]).T
    return out.reshape(-1, len(base))


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
    """Returns the scale factors of the base columns, shape (b,): inverse RMS of each column on that motion, or ones.

    Args:
        scaling: ``"none"`` or ``"columns"``.
        rows: Unscaled rows.
        limits: The limits of the random motion.

    Raises:
        ModelError: Unknown scaling.
    """
    check_known("scaling", scaling, ("none", "columns"), ModelError)
    if scaling == "none":
        return np.ones(len(rows.base))
    W = rows.evaluate(*_random_states(limits))[0]
    return np.asarray(1.0 / np.sqrt(np.mean(np.sum(W**2, axis=1), axis=0)))


def make_criterion(name: str, rows: PlannedRows, limits: Limits, known: Array) -> Criterion:
    """Builds the criterion on the planned rows.

    Args:
        name: One of :data:`..criteria.CRITERIA`.
        known: Rows of earlier logs in the units of the mean planned row, shape (k, b); "block" does not use them.

    Returns:
        The criterion. "block" is that of Liu 2023 (15-16): weights proportional to the variance of the entries of W_acc, W_vel
        and W_grav on random states inside the limits, with the independent columns of each part.
    """
    if name != "block":
        return SpectralCriterion(name, rows, known)
    motion = random_motion(rows.model.robot, max(200, 4 * len(rows.base)), seed=0)
    names = rows.base.labels
    acc, vel, grav = (
        reduce_factor(effect.reshape(-1, len(names)), names).independent
        for effect in _effects(rows, motion.q, motion.v, motion.a)
    )
    weights = [
        float(effect[:, :, columns].reshape(-1, len(columns)).var(axis=0).mean())
        for effect, columns in zip(_effects(rows, *_random_states(limits)), (acc, vel, grav), strict=True)
    ]
    return BlockCriterion(rows, (acc, vel, grav), np.array(weights) / sum(weights))


def _effects(rows: PlannedRows, q: Array, v: Array, a: Array) -> tuple[Array, Array, Array]:
    """Returns the parts of W due to acceleration, velocity and gravity (docs/theory.md §8)."""
    still = np.zeros_like(v)
    gravity = rows.evaluate(q, still, still)[0]
    return rows.evaluate(q, still, a)[0] - gravity, rows.evaluate(q, v, still)[0] - gravity, gravity


def _random_states(limits: Limits) -> tuple[Array, Array, Array]:
    """Returns random states inside the limits, with velocities and accelerations up to half of theirs."""
    q, v, a = np.random.default_rng(0).uniform(-1.0, 1.0, (3, 2000, len(limits.joints)))
    return limits.middle + limits.half_range * q, 0.5 * limits.velocity * v, 0.5 * limits.acceleration * a
