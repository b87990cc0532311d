"""The result of an identification: :class:`.record.Record` with dynamics, intervals, tables, plots and text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from ..compensation.adaptive import AdaptiveModel
from ..linalg import Array
from .dynamics import dynamics
from .dynamics.adaptation import adaptive_model
from .dynamics.intervals import mass_interval, mass_matrix, mass_matrix_interval, torque_interval, torque_prediction_interval
from .files.save import save
from .parameters import Parameters, parameters
from .record import Record
from .text.brief import brief, html
from .text.summary import details
from .verdict.verdict import ResultVerdict, judge

if TYPE_CHECKING:
    from .plots.accessor import Plots


@dataclass(frozen=True, eq=False)
class Identification(Record):
    """What :func:`urdf_ident.identify` returns; :meth:`torque` is the identified inverse dynamics."""

    def adaptive(
        self, memory: float | str = "auto", *, rate: float | None = None, state: Mapping[str, Any] | None = None
    ) -> AdaptiveModel:
        """Returns a model that adapts its friction online: ``update``, ``torque`` (:func:`.adaptation.adaptive_model`).

        Args:
            memory: Time constant of motion with which friction returns to its mean [s]; "auto": least held-out error.
            rate: Updates per second [Hz]; that of the logs if None.
            state: ``as_dict()`` of an earlier model, to continue from its state.

        Returns:
            The model.
        """
        return adaptive_model(self, memory, rate, state)

    def torque_interval(self, q: ArrayLike, v: ArrayLike, a: ArrayLike, alpha: float = 0.05) -> Array:
        """Confidence interval of the torque, from the data alone (:func:`.intervals.torque_interval`).

        Args:
            q, v, a: Joint motion, shape (N, n) or (n,) [rad, rad/s, rad/s² or m, m/s, m/s²].
            alpha: One minus the level of confidence, a fraction.

        Returns:
            Lower and upper ends around the fit, shape (N, n, 2) or (n, 2) [N·m or N]; ±inf if not determined by the data.
        """
        return torque_interval(self, q, v, a, alpha)

    def torque_prediction_interval(self, q: ArrayLike, v: ArrayLike, a: ArrayLike, alpha: float = 0.05) -> Array:
        """Prediction interval of *measured* torque, low-passed at :attr:`prediction_band`
        (:func:`.intervals.torque_prediction_interval`).

        Args:
            q, v, a: Joint motion, shape (N, n) or (n,) [rad, rad/s, rad/s² or m, m/s, m/s²].
            alpha: One minus the level of confidence, a fraction.

        Returns:
            Shape (N, n, 2) or (n, 2) [N·m or N]: lower and upper ends around :meth:`torque`; ±inf where nothing could be
            held out.
        """
        return torque_prediction_interval(self, q, v, a, alpha)

    def mass_interval(self, alpha: float = 0.05) -> Array:
        """Confidence intervals of the bodies' masses, from the data alone; :meth:`interval` includes the prior.

        Args:
            alpha: One minus the level of confidence, a fraction.

        Returns:
            Shape (n, 2) [kg]; ±inf for every mass that is identifiable only in combinations.
        """
        return mass_interval(self, alpha)

    def mass_matrix_interval(self, q: ArrayLike, alpha: float = 0.05) -> Array:
        """Confidence intervals of the mass matrix, from the data alone (:func:`.intervals.mass_matrix_interval`).

        Args:
            q: One configuration, shape (n,) [rad or m].
            alpha: One minus the level of confidence, a fraction.

        Returns:
            Lower and upper ends around the fit, shape (n, n, 2); ±inf where the data do not determine them.
        """
        return mass_matrix_interval(self, q, alpha)

    def gravity(self, q: ArrayLike) -> Array:
        """Torque that holds the links against gravity (:func:`.dynamics.gravity`).

        Args:
            q: Joint positions, shape (N, n) or (n,) [rad or m].

        Returns:
            Shape as ``q`` [N·m or N].
        """
        return dynamics.gravity(self, q)

    def mass_matrix(self, q: ArrayLike) -> Array:
        """Mass matrix with reflected rotor inertia (:func:`.intervals.mass_matrix`).

        Args:
            q: One configuration, shape (n,) [rad or m].

        Returns:
            Shape (n, n) [kg·m², kg·m or kg].
        """
        return mass_matrix(self, q)

    def coriolis(self, q: ArrayLike, v: ArrayLike) -> Array:
        """Coriolis and centrifugal torque ``C(q, v) v`` (:func:`.dynamics.coriolis`).

        Args:
            q, v: Joint positions and velocities, shape (N, n) or (n,) [rad, rad/s or m, m/s].

        Returns:
            Shape as ``q`` [N·m or N].
        """
        return dynamics.coriolis(self, q, v)

    def friction(self, v: ArrayLike, q: ArrayLike | None = None, a: ArrayLike | None = None) -> Array:
        """Friction torque of all laws, offsets included (:func:`.dynamics.friction`).

        Args:
            v: Joint velocities, shape (N, n) or (n,) [rad/s or m/s].
            q: Joint positions, same shape [rad or m]; needed only by laws that depend on load or on the past motion.
            a: Joint accelerations, same shape [rad/s² or m/s²]; 0 if None.

        Returns:
            Shape as ``v`` [N·m or N].
        """
        return dynamics.friction(self, v, q, a)

    def forward(self, q: ArrayLike, v: ArrayLike, tau: ArrayLike) -> Array:
        """Forward dynamics, the inverse of :meth:`torque` (:func:`.dynamics.forward`).

        Args:
            q, v: Joint positions and velocities, shape (N, n) or (n,) [rad, rad/s or m, m/s].
            tau: Joint torques, same shape [N·m or N].

        Returns:
            Joint accelerations, shape as ``q`` [rad/s² or m/s²].
        """
        return dynamics.forward(self, q, v, tau)

    def to_pinocchio(self) -> Any:
        """A ``pin.Model`` with identified inertias, armature, damping and friction (:func:`.dynamics.to_pinocchio`)."""
        return dynamics.to_pinocchio(self)

    @cached_property
    def parameters(self) -> Parameters:
        """The standard parameters with units, prior, intervals and verdicts, as rows or pandas frame (:mod:`.parameters`)."""
        return parameters(self)

    @property
    def plot(self) -> Plots:
        """Plots as matplotlib axes: ``ident.plot.torque()``, ``.friction()``, ``.parameters()`` (:mod:`.plots.accessor`)."""
        from .plots.accessor import Plots

        return Plots(self)

    @cached_property
    def verdict(self) -> ResultVerdict:
        """How far the result can be trusted, and why (:mod:`.verdict`)."""
        return judge(self)

    def summary(self, *, verbose: bool = False) -> str:
        """Returns the result as text, in at most 14 lines (:mod:`.brief`) or in full.

        Args:
            verbose: Return everything: choices, tables, advice (:mod:`.summary`).

        Returns:
            Text.
        """
        return details(self) if verbose else brief(self)

    def save(self, path: str | Path) -> Path:
        """Writes identification.json (:func:`.files.save.save`).

        Args:
            path: The file.

        Returns:
            The path written.
        """
        return save(self, path)

    def __repr__(self) -> str:
        robot, fit = self.model.robot, self.fit
        return (
            f"<Identification of {robot.name}: {self.verdict.level}; {robot.n} joints, {len(fit.base)} base parameters from "
            f"{len(self.inputs)} log(s)>\n  .summary() .verdict .parameters .fit .plot .torque(q, v, a) .save(path)"
        )

    def _repr_html_(self) -> str:
        return html(self)
