"""Trained speeds of a model's friction, beyond which its columns are extrapolated along tangents.

Laws chosen from the data follow their tangents up to twice the trained speeds, and grow with the square root of the speed
beyond: for slow data the slope at the edge is that of apparent viscous friction and far too steep at much higher speeds.
Laws listed by the user are not modified.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..friction import Coulomb, Law, Trained, trained_range
from ..grouping import grouped
from ..linalg import Array, BoolArray
from ..samples import SLOW, Segment, fast_speed
from .dynamic_model import DynamicModel
from .terms import AppliedTerm, RotorInertia

#: Multiple of the trained speeds up to which laws chosen from the data follow their tangents: friction in grease grows less
#: than linearly, and a tangent at the fastest speed is known least.
STRAIGHT = 2.0
#: Largest initial width of dry friction in automatic laws, as a share of the fast speed, for revolute and prismatic joints: a
#: wider one is nearly collinear with viscous friction, and the search may not recover. A narrower one takes dry friction that
#: builds up in a creeping revolute joint (below 0.1 rad/s) for viscous friction, which is extrapolated. The carriage of a
#: slide has no gear whose friction builds up, so that its width is narrow.
WIDEST, WIDEST_SLIDING = 0.5, 0.02
#: Axis and side of a sliding contact: of a joint or a motor.
Slider = tuple[int, str]


def sliders(model: DynamicModel) -> dict[Slider, list[tuple[int, Law]]]:
    """Returns the friction laws of every joint and motor.

    Returns:
        Axis and side → the first column (index into theta) and the law, in the order of theta.
    """
    return grouped(
        ((applied.axis, applied.side), (own.start, applied.term))
        for applied, own in model.placed_terms
        if isinstance(applied.term, Law) and not applied.term.conservative
    )


def without_joint_terms(model: DynamicModel, theta: Array) -> Array:
    """Returns parameters with all friction, rotor inertias and offsets set to zero.

    Args:
        theta: Shape (p,), or several in columns, shape (p, k).

    Returns:
        The same shape.
    """
    bodies = theta.copy()
    bodies[model.n_inertial :] = 0.0
    return bodies


def without_inertia(model: DynamicModel, theta: Array) -> Array:
    """Returns parameters with all inertias of bodies and rotors set to zero.

    Args:
        theta: Shape (p,), or several in columns, shape (p, k).

    Returns:
        The same shape.
    """
    rest = np.array(theta, dtype=float)
    rest[: model.n_inertial] = 0.0
    for applied, own in model.placed_terms:
        if applied.term.name == RotorInertia.name:
            rest[own] = 0.0
    return rest


def trained_ranges(model: DynamicModel, motion: Sequence[Segment]) -> dict[Slider, Trained]:
    """Returns the trained range of every joint and motor with friction, of a model with rigid joints."""
    ranges = {}
    for (axis, side), laws in sliders(model).items():
        share = model.drive.load_weights(axis, side)
        v = _rates(model, (axis, side), motion)
        load = np.concatenate([segment.tau @ share for segment in motion if segment.tau is not None] or [np.zeros(0)])
        ranges[axis, side] = trained_range(v, load, [law for _, law in laws])
    return ranges


def with_limited_widths(model: DynamicModel, motion: Sequence[Segment]) -> DynamicModel:
    """Limits the initial width of Coulomb friction to a share of the speeds in the data.

    Args:
        model: The model; one with listed laws, or with elastic joints, is returned unchanged.
    """
    if not model.is_rigid or not model.automatic:
        return model
    terms = []
    for applied in model.terms:
        if isinstance(applied.term, Coulomb) and not _is_listed_by_user(model, applied):
            rates = _rates(model, (applied.axis, applied.side), motion)
            # The fast speed of a joint that hardly ever moves is that of its noise.
            fast = max(fast_speed(rates), SLOW * float(np.abs(rates).max()))
            width = (WIDEST_SLIDING if model.robot.prismatic[applied.axis] else WIDEST) * fast
            if 0 < width < applied.term.width:
                applied = replace(applied, term=replace(applied.term, width=width))
        terms.append(applied)
    return model.with_terms(terms, automatic=True)


def _rates(model: DynamicModel, slider: Slider, motion: Sequence[Segment]) -> Array:
    """Returns the velocity of a joint or motor along the data, shape (N,) [rad/s or m/s]."""
    row = model.drive.rate_weights(*slider)
    return np.concatenate([segment.v @ row for segment in motion] or [np.zeros(0)])


def _is_listed_by_user(model: DynamicModel, applied: AppliedTerm) -> bool:
    """Whether the term belongs to the laws of a motor that the user listed, which the data do not change."""
    return applied.side == "motor" and applied.axis in model.motor_listed


def with_trained(model: DynamicModel, motion: Sequence[Segment], *, chosen: bool = False) -> DynamicModel:
    """Returns the same model with its trained speeds.

    Args:
        model: The model; with elastic joints it is returned unchanged.
        chosen: Whether its laws were chosen from the data, except those of motors listed by the user.
    """
    if not model.is_rigid:
        return model
    ranges = trained_ranges(model, motion)
    terms = []
    for applied in model.terms:
        seen = ranges.get((applied.axis, applied.side))
        if isinstance(applied.term, Law) and not applied.term.conservative and seen is not None:
            straight = np.inf if (not chosen or _is_listed_by_user(model, applied)) else STRAIGHT
            applied = replace(applied, term=replace(applied.term, trained=(seen.low, seen.high), straight=straight))
        terms.append(applied)
    return model.with_terms(terms).with_reference(model.reference_theta)


def trained_speeds(model: DynamicModel) -> Array:
    """Returns the trained speeds of each joint's friction.

    Returns:
        Lowest and highest velocity, shape (n, 2) [rad/s or m/s]; NaN for a joint without friction laws of its own, or
        if unknown.
    """
    speeds = np.full((model.n, 2), np.nan)
    for (axis, side), laws in sliders(model).items():
        if side == "joint" and laws[0][1].trained is not None:
            speeds[axis] = laws[0][1].trained
    return speeds


def outside(model: DynamicModel, v: Array) -> BoolArray:
    """Finds where a motion is outside the trained speeds of friction.

    Args:
        v: Joint velocities, shape (N, n) or (n,) [rad/s or m/s].

    Returns:
        Booleans, shape of v: True if the joint, or a motor that drives it, is outside its trained speeds.
    """
    out = np.zeros(np.shape(v), dtype=bool)
    for slider, laws in sliders(model).items():
        trained, row = laws[0][1].trained, model.drive.rate_weights(*slider)
        if trained is not None:
            speed = np.asarray(v) @ row
            out |= ((speed < trained[0]) | (speed > trained[1]))[..., None] & (row != 0)
    return out
