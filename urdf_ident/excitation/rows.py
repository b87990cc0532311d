"""Estimation rows of a planned motion, weighted and reduced to base parameters, with their gradient.

They are the rows that identification will compute from the log: the columns of the model (including friction and rotor
inertia), mixed to actuator rows where the drive couples axes, each row group divided by its expected noise.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ..errors import ModelError, check_shape
from ..friction import AxisMotion
from ..linalg import Array
from ..model.base import BaseParameters
from ..model.dynamic_model import DynamicModel
from ..model.prior import lumped_inertials
from ..model.terms import SPRING_TERMS
from ..motion.trajectory import Trajectory
from ..samples import Segment
from .regressor_gradient import RigidRegressor, Sweep

#: Sampling rate for the evaluation of a finished motion [Hz].
REPORT_RATE = 100.0
#: Step of the numerical derivative of a friction law [rad/s, rad/s², N·m …]; laws are smooth over 1e-4.
_STEP = 1e-7
#: Least half-width of the smooth sign during the optimisation, as a fraction of the velocity limit.
SOFTENING = 0.02


class RowState(NamedTuple):
    """Intermediate results of :meth:`PlannedRows.evaluate`, for the gradient: sweep of the rigid part, motion of every term's
    axis, frozen rigid torque of load-dependent terms, shape (N, n), or None, and rigid regressor, shape (N, n, 10 n)."""

    sweep: Sweep
    axes: list[AxisMotion]
    reference: Array | None
    full: Array


class PlannedRows:
    """Rows of a motion: ``W`` with ``cov(beta) = (WᵀW)⁻¹`` for the given noise.

    Args:
        model: The dynamic model, without terms with memory (see :func:`designable`).
        base: Its base parameters.
        noise: Expected standard deviation of each row group's torque, shape (n,) [N·m or N].
        scale: Factors of the base columns, shape (b,); 1: SI units.

    Raises:
        ModelError: An elastic model, whose rows depend on more than the link motion.
    """

    def __init__(self, model: DynamicModel, base: BaseParameters, noise: Array, scale: Array | None = None) -> None:
        if not model.is_rigid:
            raise ModelError("motions for elastic joints are designed on the rigid model", remedy="set model.elastic: false")
        check_shape("noise", np.shape(noise), (model.n,))
        self.model, self.base = model, base
        self.noise = np.asarray(noise, dtype=float)
        self.scale = np.ones(len(base)) if scale is None else np.asarray(scale, dtype=float)
        check_shape("scale", self.scale.shape, (len(base),))
        self.rigid = RigidRegressor(model.robot)
        self._mix = model.drive.row_mix / self.noise[:, None]
        self._spread = self._mix @ model.distribution
        inside = base.independent < model.n_inertial
        self._inertial, self._applied = base.independent[inside], base.independent[~inside] - model.n_inertial
        self._cut = int(inside.sum())
        self._diagonal = bool(np.array_equal(model.drive.row_mix, np.eye(model.n)))
        self.theta0 = lumped_inertials(model.robot).reshape(-1)

    def evaluate(self, q: Array, v: Array, a: Array) -> tuple[Array, RowState]:
        """Computes the weighted rows, shape (N, n, b), of a motion, shapes (N, n), and the input of :meth:`gradient`."""
        full, sweep = self.rigid.evaluate(q, v, a)
        reference = full @ self._reference_theta if self.model.loaded else None
        planned = Segment("planned", 0.0, 0.0, q, v, a, reference_torque=reference)
        axes = [self.model.axis_motion(planned, applied) for applied in self.model.terms]
        values = [applied.term.columns(axis) for applied, axis in zip(self.model.terms, axes, strict=True)]
        terms = np.hstack([np.zeros((len(q), 0)), *values])[:, self._applied]
        inertial = full[:, :, self._inertial]
        out = np.empty((len(q), self.model.n, len(self.base)))
        out[:, :, : self._cut] = inertial / self.noise[:, None] if self._diagonal else self._mix @ inertial
        out[:, :, self._cut :] = terms[:, None, :] * self._spread[:, self._applied]
        return out * self.scale, RowState(sweep, axes, reference, full)

    def torque(self, state: RowState) -> Array:
        """Returns the torque of the URDF's rigid bodies on the evaluated motion, shape (N, n) [N·m or N]."""
        return np.asarray(state.full @ self.theta0)

    def gradient(self, weight: Array, state: RowState, torque_weight: Array | None = None) -> tuple[Array, Array, Array]:
        """Computes the gradient of ``Σ weight · W + Σ torque_weight · torque`` with respect to the motion.

        Args:
            weight: Shape (N, n, b).
            state: From :meth:`evaluate`.
            torque_weight: Shape (N, n), or None.

        Returns:
            Gradients with respect to q, v and a, shapes (N, n).
        """
        weight = weight * self.scale
        rigid = np.zeros_like(state.full)
        inertial = weight[:, :, : self._cut]
        rigid[:, :, self._inertial] = inertial / self.noise[:, None] if self._diagonal else self._mix.T @ inertial
        sums = {name: np.zeros(weight.shape[:2]) for name in ("v", "a", "reference_torque")}
        by_term = np.zeros((len(weight), self._spread.shape[1]))
        by_term[:, self._applied] = (weight[:, :, self._cut :] * self._spread[:, self._applied]).sum(axis=1)
        for (applied, place), axis in zip(self.model.placed_terms, state.axes, strict=True):
            bar = by_term[:, place.start - self.model.n_inertial : place.stop - self.model.n_inertial]
            if not bar.any():
                continue
            law = applied.term  # depends on single samples, so that one shifted evaluation covers all samples
            for name in ("a",) if law.name == "rotor_inertia" else ("v", "reference_torque") if law.loaded else ("v",):
                here = getattr(axis, name)
                if here is None:
                    continue
                ends = [law.columns(replace(axis, **{name: here + step})) for step in (_STEP, -_STEP)]
                slope = ((ends[0] - ends[1]) * bar).sum(axis=1) / (2 * _STEP)
                weights = self.model.drive.load_weights if name == "reference_torque" else self.model.drive.rate_weights
                sums[name] += slope[:, None] * weights(applied.axis, applied.side)
        if torque_weight is not None:
            rigid += torque_weight[:, :, None] * self.theta0
        if state.reference is not None:
            rigid += sums["reference_torque"][:, :, None] * self._reference_theta
        by_q, by_v, by_a = self.rigid.gradient(rigid, state.sweep)
        return by_q, by_v + sums["v"], by_a + sums["a"]

    @property
    def _reference_theta(self) -> Array:
        return self.theta0 if self.model.reference_theta is None else self.model.reference_theta


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


def rigid_for_planning(model: DynamicModel) -> tuple[DynamicModel, tuple[str, ...]]:
    """Returns the model for planning, and a note if it is a different one: for elastic joints the rigid part, whose torques
    deflect the springs."""
    if model.is_rigid:
        return model, ()
    rigid = DynamicModel(model.robot, friction="none", rotor_inertia=False, drive=model.drive)
    rigid = rigid.with_terms([applied for applied in model.terms if not isinstance(applied.term, SPRING_TERMS)])
    return rigid, ("planned on the rigid part of the elastic model; springs show by the torques of the motion",)


def designable(model: DynamicModel) -> tuple[DynamicModel, tuple[str, ...]]:
    """Returns the model without terms that act only at reversals, which a hundred instants per period do not resolve, and
    notes on them."""
    kept, names = [], []
    for applied in model.terms:
        if any(shape.kind == "displacement" for shape in applied.term.shapes.values()):
            names.append(f"{applied.term.name} of {model.robot.joints[applied.axis]}")
        else:
            kept.append(applied)
    notes = (f"left out of the criterion, since only reversals excite them: {', '.join(names)}",) if names else ()
    return model.with_terms(kept), notes


def softened(model: DynamicModel, velocity: Array) -> DynamicModel:
    """Returns the model for the optimiser: wider smooth signs, so that gradients are informative, and the same parameters.

    Args:
        velocity: Largest velocities of the motion, shape (n,) [rad/s or m/s].
    """
    terms = []
    for applied in model.terms:
        law: Any = applied.term
        least = SOFTENING * float(np.abs(model.drive.rate_weights(applied.axis, applied.side)) @ velocity)
        wider = {name: max(getattr(law, name), least) for name in ("width", "eps") if name in law.shapes}
        if "sharpness" in law.shapes and "stribeck" in law.shapes:  # keep both columns independent
            wider["sharpness"] = min(law.sharpness, max(1.0 / least, 5.0 * law.stribeck))
        terms.append(replace(applied, term=replace(law, **wider)) if wider else applied)
    return model.with_terms(terms)
