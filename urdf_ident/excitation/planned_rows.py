"""Estimation rows of a planned motion, weighted and reduced to base parameters, with their gradient.

They are the rows that identification will compute from the log: the columns of the model (including friction and rotor
inertia), mixed to actuator rows where the drive couples axes, each row group divided by its expected noise.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..errors import ModelError, check_shape
from ..friction import AxisMotion
from ..linalg import Array
from ..model.base import BaseParameters
from ..model.dynamic_model import DynamicModel
from ..model.prior import lumped_inertials
from ..model.terms import AppliedTerm
from ..samples import Segment
from .regressor_gradient import RigidRegressor, Sweep

#: Step of the numerical derivative of a friction law [rad/s, rad/s², N·m …]; laws are smooth over 1e-4.
_STEP = 1e-7
#: Least half-width of the smooth sign during the optimisation, as a fraction of the velocity limit.
SOFTENING = 0.02


@dataclass(frozen=True, eq=False)
class RowState:
    """Intermediate results of :meth:`PlannedRows.evaluate`, for the gradient.

    Attributes:
        sweep: Of the rigid part.
        reference: Frozen rigid torque of the load-dependent terms, shape (N, n), or None.
        full: Rigid regressor, shape (N, n, 10 n).
    """

    sweep: Sweep
    terms: list[AxisMotion]
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

    @property
    def n(self) -> int:
        """Number of joints, and of row groups."""
        return self.model.n

    def evaluate(self, q: Array, v: Array, a: Array) -> tuple[Array, RowState]:
        """Computes the weighted rows, shape (N, n, b), and the input of :meth:`gradient`.

        Args:
            q: Shape (N, n) [rad or m].
            v: Shape (N, n) [rad/s or m/s].
            a: Shape (N, n) [rad/s² or m/s²].
        """
        full, sweep = self.rigid.evaluate(q, v, a)
        reference = full @ self._reference_theta if self.model.loaded else None
        planned = Segment("planned", 0.0, 0.0, q, v, a, reference_torque=reference)
        axes = [self.model.axis_motion(planned, applied) for applied in self.model.terms]
        values = [applied.term.columns(axis) for applied, axis in zip(self.model.terms, axes, strict=True)]
        terms = np.hstack([np.zeros((len(q), 0)), *values])[:, self._applied]
        out = np.empty((len(q), self.n, len(self.base)))
        out[:, :, : self._cut] = self._mixed(full[:, :, self._inertial])
        out[:, :, self._cut :] = terms[:, None, :] * self._spread[:, self._applied]
        return out * self.scale, RowState(sweep, axes, reference, full)

    def torque(self, state: RowState) -> Array:
        """Returns the torque of the URDF's rigid bodies on the evaluated motion, shape (N, n) [N·m or N].

        Args:
            state: From :meth:`evaluate`.
        """
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
        by_q, by_v, by_a, by_reference = (np.zeros(weight.shape[:2]) for _ in range(4))
        by_term = np.zeros((len(weight), self._spread.shape[1]))
        by_term[:, self._applied] = (weight[:, :, self._cut :] * self._spread[:, self._applied]).sum(axis=1)
        for (applied, place), axis in zip(self.model.placed_terms, state.terms, strict=True):
            columns = by_term[:, place.start - self.model.n_inertial : place.stop - self.model.n_inertial]
            self._term_gradient(applied, axis, columns, (by_q, by_v, by_a, by_reference))
        if torque_weight is not None:
            rigid += torque_weight[:, :, None] * self.theta0
        if state.reference is not None:
            rigid += by_reference[:, :, None] * self._reference_theta
        out = self.rigid.gradient(rigid, state.sweep)
        return out[0] + by_q, out[1] + by_v, out[2] + by_a

    @property
    def _reference_theta(self) -> Array:
        return self.theta0 if self.model.reference_theta is None else self.model.reference_theta

    def _mixed(self, rows: Array) -> Array:
        return np.asarray(rows / self.noise[:, None] if self._diagonal else self._mix @ rows)

    def _term_gradient(
        self, applied: AppliedTerm, axis: AxisMotion, bar: Array, sums: tuple[Array, Array, Array, Array]
    ) -> None:
        """Adds the gradient of one term; laws depend on single samples, so one shifted evaluation covers all samples."""
        if not bar.any():
            return
        law = applied.term
        depends = {"a"} if law.name == "rotor_inertia" else {"v", "reference_torque"} if law.loaded else {"v"}
        for name, total in zip(("q", "v", "a", "reference_torque"), sums, strict=True):
            here = getattr(axis, name)
            if here is None or name not in depends:
                continue
            ends = [law.columns(replace(axis, **{name: here + step})) for step in (_STEP, -_STEP)]
            slope = ((ends[0] - ends[1]) * bar).sum(axis=1) / (2 * _STEP)
            weights = self.model.drive.load_weights if name == "reference_torque" else self.model.drive.rate_weights
            total += slope[:, None] * weights(applied.axis, applied.side)


def designable(model: DynamicModel) -> tuple[DynamicModel, tuple[str, ...]]:
    """Returns the model without terms that act only at reversals, which a hundred instants per period do not resolve.

    Returns:
        The model, and notes on the removed terms.
    """
    resolved: list[AppliedTerm] = []
    left: list[str] = []
    for applied in model.terms:
        if any(shape.kind == "displacement" for shape in applied.term.shapes.values()):
            left.append(f"{applied.term.name} of {model.robot.joints[applied.axis]}")
        else:
            resolved.append(applied)
    notes = (f"left out of the criterion, since only reversals excite them: {', '.join(left)}",) if left else ()
    return model.with_terms(resolved), notes


def softened(model: DynamicModel, velocity: Array) -> DynamicModel:
    """Returns the model for the optimiser: wider smooth signs, so that gradients are informative.

    Args:
        velocity: Largest velocities of the motion, shape (n,) [rad/s or m/s].

    Returns:
        A model with the same parameters.
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
