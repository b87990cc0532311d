"""The result of an identification: :class:`.record.Record` with dynamics, intervals, tables, plots and text."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ..judgements.verdict import Verdict
from .dynamics import dynamics, intervals
from .dynamics.adaptation import adaptive_model
from .files import save as file
from .parameters import Parameters, parameters
from .record import Record
from .text.brief import brief, html
from .text.summary import details
from .verdict.verdict import verdict_of

if TYPE_CHECKING:
    from .plots.plots import Plots


@dataclass(frozen=True, eq=False)
class Identification(Record):
    """What :func:`urdf_ident.identify` returns; :meth:`torque` is the identified inverse dynamics.

    The methods without a body here are the functions of :mod:`.dynamics` and :mod:`.files`.
    """

    adaptive = adaptive_model
    torque_interval = intervals.torque_interval
    torque_prediction_interval = intervals.torque_prediction_interval
    mass_interval = intervals.mass_interval
    mass_matrix_interval = intervals.mass_matrix_interval
    mass_matrix = intervals.mass_matrix
    gravity = dynamics.gravity
    coriolis = dynamics.coriolis
    friction = dynamics.friction
    forward = dynamics.forward
    to_pinocchio = dynamics.to_pinocchio
    save = file.save

    @cached_property
    def parameters(self) -> Parameters:
        """The standard parameters with units, prior, intervals and verdicts, as rows or pandas frame (:mod:`.parameters`)."""
        return parameters(self)

    def to_frame(self) -> Any:
        """Returns the standard parameters with units, errors and intervals as a table: :meth:`.Parameters.to_frame`."""
        return self.parameters.to_frame()

    @property
    def plot(self) -> Plots:
        """Plots as matplotlib axes: ``ident.plot.torque()``, ``.friction()``, ``.parameters()`` (:mod:`.plots.plots`)."""
        from .plots.plots import Plots

        return Plots(self)

    @cached_property
    def verdict(self) -> Verdict:
        """How far the result can be trusted, and why (:mod:`.verdict`)."""
        return verdict_of(self)

    def summary(self, *, verbose: bool = False) -> str:
        """Returns the result as text, in at most 24 lines (:mod:`.brief`) or in full.

        Args:
            verbose: Return everything: choices, tables, advice (:mod:`.summary`).

        Returns:
            Text.
        """
        return details(self) if verbose else brief(self)

    def as_dict(self) -> dict[str, Any]:
        """What programs need first; everything else is in identification.json (:meth:`save`)."""
        shown = ("inputs", "left_out", "cross_validation", "validation")
        return {"verdict": self.verdict.as_dict(), **{name: getattr(self, name) for name in shown}}

    def __repr__(self) -> str:
        robot, fit = self.model.robot, self.fit
        return (
            f"<Identification of {robot.name}: {self.verdict.level}; {robot.n} joints, {len(fit.base)} base parameters from "
            f"{len(self.inputs)} log(s)>\n  .summary() .verdict .to_frame() .fit .plot .torque(q, v, a) .save(path)"
        )

    def _repr_html_(self) -> str:
        return html(self)
