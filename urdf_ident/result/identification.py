"""The result of an identification: :class:`.record.Record` with dynamics, intervals, tables, plots and text."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ..errors import ProjectError
from ..files.records import plain
from ..judgements.judgement import Verdict
from ..project import Project
from .dynamics import dynamics, intervals
from .dynamics.adaptation import adaptive_model
from .files import save as file
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
    mass_matrix_interval = intervals.mass_matrix_interval
    mass_matrix = intervals.mass_matrix
    gravity = dynamics.gravity
    coriolis = dynamics.coriolis
    friction = dynamics.friction
    forward = dynamics.forward
    to_pinocchio = dynamics.to_pinocchio
    save = file.save

    def to_frame(self) -> Any:
        """Returns the standard parameters with units, errors and intervals as a table: :meth:`.Parameters.to_frame`."""
        return self.parameters.to_frame()

    @property
    def plot(self) -> Plots:
        """Plots as matplotlib axes: ``ident.plot.torque()``, ``.friction()``, ``.parameters()`` (:mod:`.plots.plots`)."""
        from .plots.plots import Plots

        return Plots(self)

    def with_layout(self, project: Project) -> Identification:
        """Returns the result for further logs in another layout than those that it comes from.

        Args:
            project: Its sections ``log`` and ``drive`` say how these logs are read; other sections are those of the result.

        Raises:
            ProjectError: It lists other joints, or the same in another order, which the lists of a layout follow.
            ModelError: Its drive does not fit the robot.
        """
        robot, joints = self.model.robot, project.robot.joints
        if joints is not None and tuple(joints) != robot.order:
            raise ProjectError(
                "robot.joints differs from that of the result",
                got=", ".join(joints),
                expected=", ".join(robot.order),
                remedy="list its joints in this order, which is that of the layout's lists",
            )
        drive = project.build_drive(robot) if "drive" in project.model_fields_set else self.model.drive
        sections: dict[str, Any] = {
            name: getattr(project, name) for name in ("log", "drive") if name in project.model_fields_set
        }
        return replace(self, model=self.model.with_drive(drive), project=self.project.model_copy(update=sections))

    @cached_property
    def verdict(self) -> Verdict:
        """How far the result can be trusted, and why (:mod:`.verdict`)."""
        return verdict_of(self)

    def summary(self, *, verbose: bool = False) -> str:
        """Text in at most 24 lines (:mod:`.brief`); verbose: everything, with choices, tables, advice (:mod:`.summary`)."""
        return details(self) if verbose else brief(self)

    def as_dict(self) -> dict[str, Any]:
        """What programs need first; everything else is in identification.json (:meth:`save`)."""
        shown = ("verdict", "inputs", "left_out", "cross_validation", "validation")
        return dict(plain({name: getattr(self, name) for name in shown}))

    def __repr__(self) -> str:
        robot, fit = self.model.robot, self.fit
        return (
            f"<Identification of {robot.name}: {self.verdict.level}; {robot.n} joints, {len(fit.base)} base parameters from "
            f"{len(self.inputs)} log(s)>\n  .summary() .verdict .to_frame() .fit .plot .torque(q, v, a) .save(path)"
        )

    def _repr_html_(self) -> str:
        return html(self)
