"""Excitation motions: the front door."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..errors import LimitError, ModelError, check_known
from ..linalg import Array
from ..model.base import BaseParameters
from ..model.dynamic_model import DynamicModel
from ..motion.base import Trajectory, check_joint_array
from ..motion.collision.clearance import ClearanceReport, check_clearance
from ..motion.collision.collisions import Collisions
from ..motion.limits import LimitReport, Limits, Margin, check_limits, prior_torque
from ..samples import ReadOnly
from .criteria import CRITERIA, condition_number, standard_errors
from .earlier import IdentificationLike, continued, known_rows, row_noise
from .family import Family
from .global_start import check_global_start, present_name
from .obstacles import Obstacles
from .parallel import Outcome, search
from .planned import closest_lines
from .planning import (
    REPORT_RATE,
    column_scale,
    make_criterion,
    rigid_for_planning,
    row_weights,
    usable_limits,
    weighted_regressor,
)
from .rows import PlannedRows, designable, softened
from .search import FoundMotion, Problem

#: Part of the budget that is left for the certificate at the end.
CERTIFICATE = 0.06
#: Time for the search, when its preparation has used up the budget [s].
LEAST_SEARCH = 0.1

Progress = Callable[[float, str], None]


@dataclass(frozen=True, eq=False)
class Design(ReadOnly):
    """A motion inside the limits of the robot, and what it is expected to tell.

    Attributes:
        trajectory: The motion, ramps and repetitions included.
        excitation: One period of it without ramps; what the criterion is about.
        model: The model that it is for.
        base: Its base parameters.
        limits: The limits that it keeps.
        report: How much room it leaves.
        criterion: Name of the criterion.
        value: Its exact value, a logarithm (see :mod:`.criteria`).
        condition: Condition number of the base regressor, columns unscaled (SI), rows unweighted.
        noise: Torque noise that rows were weighted by, shape (n,) [N·m or N].
        scaling: How columns were scaled for the criterion.
        starts: Random starts that were tried.
        elapsed: Time that the search took [s].
        history: ``(time [s], value)`` of every improvement.
        clearance: Closest calls with links and world, or None where collisions were not asked for.
        settings: What was asked for.
        notes: What the user should know.
    """

    trajectory: Trajectory
    excitation: Trajectory
    model: DynamicModel
    base: BaseParameters
    limits: Limits
    report: LimitReport
    criterion: str
    value: float
    condition: float
    noise: Array
    scaling: str
    starts: int
    elapsed: float
    history: tuple[tuple[float, float], ...]
    settings: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    clearance: ClearanceReport | None = None

    @property
    def margins(self) -> tuple[Margin, ...]:
        """Room left to each limit, per joint and quantity."""
        return self.report.margins

    def regressor(self, rate: float = REPORT_RATE) -> Array:
        """Rows of one period, each row group divided by its noise.

        Args:
            rate: Samples per second [Hz].

        Returns:
            Shape (N·n, b).
        """
        return weighted_regressor(self.model, self.base, self.excitation, self.noise, rate)

    def std_errors(self, rate: float = REPORT_RATE) -> Array:
        """Standard errors of the base parameters that white torque noise of :attr:`noise` would leave.

        Args:
            rate: Independent samples per second [Hz].

        Returns:
            Shape (b,) [units of the base parameters], all periods counted.
        """
        periods = int(self.settings.get("periods", 1))
        return np.asarray(standard_errors(self.regressor(rate)) / np.sqrt(periods))

    def summary(self) -> str:
        """What was found, and how close it comes to the limits.

        Returns:
            Several lines of text.
        """
        lines = [
            f"{self.settings.get('family', 'motion')}: {self.trajectory.duration:.4g} s, {len(self.base)} base parameters, "
            f"criterion {self.criterion} = {readable(self.criterion, self.value)}, condition number {self.condition:.4g}",
            f"column scaling: {self.scaling}; {self.starts} starts in {self.elapsed:.3g} s",
            *closest_lines(self.report, self.clearance),
        ]
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])

    __str__ = summary


def design_excitation(
    model: DynamicModel,
    duration: float = 20.0,
    criterion: str = "auto",
    seed: int = 0,
    *,
    family: str = "modified_fourier",
    harmonics: int = 5,
    periods: int = 1,
    start: ArrayLike | None = None,
    end: ArrayLike | None = None,
    ramp: float = 2.0,
    limits: Limits | None = None,
    noise: ArrayLike | None = None,
    scaling: str | None = None,
    budget: float = 10.0,
    starts: int | None = None,
    jobs: int | None = None,
    after: IdentificationLike | None = None,
    collisions: Collisions | None = None,
    global_start: str = "none",
    progress: Progress | None = None,
) -> Design:
    """Designs a motion that shows the base parameters of a model well and stays inside the robot's limits.

    The same seed gives the same motion if the search ends after ``starts`` starts in one process; a time budget makes it
    depend on the machine's speed. Ctrl-C ends the search with the best motion so far.

    Args:
        model: The model to identify, with its friction, rotor inertia and drive; of elastic joints the rigid part
            is planned on.
        duration: Of one period [s].
        criterion: ``"D"``, ``"A"``, ``"E"``, ``"cond"``, ``"frobenius"`` or ``"block"``; see :mod:`.criteria`. ``"auto"``: D;
            after an earlier result A, which spends the time on what is still unknown, weighed by the torque that it costs.
        seed: Of the random starts.
        family: ``"modified_fourier"`` and ``"spline"`` start and end at rest in one pose; ``"fourier"`` has more freedom,
            and ramps from and to a pose; ``"tied_fourier"`` and ``"spline"`` may end in another pose.
        harmonics: Of the Fourier series.
        periods: How often the motion is repeated.
        start: Pose where it starts and ends, shape (n,) [rad or m]; found by the optimiser by default.
        end: Another pose to end in, shape (n,) [rad or m]; with a start pose, for families that can travel.
        ramp: Length of each ramp of family ``"fourier"`` [s]; 0 for none.
        limits: Limits; by default the URDF's, with twice the velocity limit per second as the acceleration limit.
        noise: Expected torque noise of each row group, shape (n,) or a number [N·m or N]. By default, for D, A and E, a
            fixed part of the torque limit, for the others (as in the literature) the same on all joints.
        scaling: ``"none"``: columns in SI units; ``"columns"``: each divided by its norm on random motion. By default
            ``"columns"`` for A and E, ``"none"`` for the others. Of no consequence for D.
        budget: Time for the search, with its preparation and the certificate at the end [s].
        starts: Random starts; by default as many as there is time for.
        jobs: Processes; by default as many as there are cores if the budget is at least 4 s, else 1.
        after: An earlier result for the same robot: what its logs have told is added to what the motion will tell; its
            terms and drive replace the model's, and the noise of the row groups is taken from it.
        collisions: Links and objects that must keep their distance, ramps included, as
            ``find_collisions(robot, read_world(path))`` finds them; None: only limits are kept.
        global_start: Each local search begins at the best of some random motions (``"none"``), or at what CMA-ES (``"cma"``)
            or differential evolution (``"differential_evolution"``) find from there; all within the same budget.
        progress: Called with the part that is done, 0 to 1, and the best value so far in words.

    Returns:
        The design.

    Raises:
        LimitError: A limit is unknown, the start pose is outside or collides, or no motion inside the limits was found.
        FingerprintError: ``after`` is for another robot.
        ModelError: Unknown criterion, or a model without rigid rows.
        MissingExtraError: CMA-ES without the package ``cma``.
    """
    if criterion == "auto":
        criterion = "D" if after is None else "A"
    check_known("criterion", criterion, CRITERIA, ModelError)
    global_start, former = present_name(global_start)
    check_global_start(global_start)
    if not budget > 0:
        raise LimitError("the time budget must be positive", got=f"{budget} s")
    begun = time.monotonic()
    limits, notes = usable_limits(limits or Limits.from_robot(model.robot), start, end)
    model, planned_on = rigid_for_planning(model)
    notes = (*notes, *former, *planned_on)
    pose = None if start is None else check_joint_array("start", start, limits.joints)
    goal = None if end is None else check_joint_array("end", end, limits.joints)
    ramps = float(ramp) if family == "fourier" else 0.0
    shape = Family(family, limits.joints, float(duration), harmonics, periods, ramps, pose, goal)
    plan = _planned(model, shape, limits, criterion, noise, scaling, after, collisions, global_start)
    say = None if progress is None else _narrator(progress, criterion, begun, budget)
    left = max((1 - CERTIFICATE) * budget - (time.monotonic() - begun), min(budget, LEAST_SEARCH))
    outcome = search(plan.problem, seed=seed, budget=left, starts=starts, jobs=jobs, progress=say)
    settings = {
        "duration": shape.period,
        "criterion": criterion,
        "seed": seed,
        "family": family,
        "harmonics": harmonics,
        "periods": periods,
        "ramp": shape.ramp,
        "budget": budget,
        "start": None if pose is None else pose.tolist(),
        "end": None if goal is None else goal.tolist(),
        "global_start": global_start,
    }
    found = _finished(plan, outcome, settings, notes)
    return replace(found, elapsed=time.monotonic() - begun)


@dataclass(frozen=True, eq=False)
class _Plan:
    """What is searched, and what was assumed for it.

    Attributes:
        model: The model to identify.
        problem: The problem of the search.
        rows: Its rows with unsoftened signs.
        words: How columns and rows are weighted.
        notes: What the user should know.
    """

    model: DynamicModel
    problem: Problem
    rows: PlannedRows
    words: str
    notes: tuple[str, ...]


def _planned(
    model: DynamicModel,
    shape: Family,
    limits: Limits,
    criterion: str,
    noise: ArrayLike | None,
    scaling: str | None,
    after: IdentificationLike | None,
    collisions: Collisions | None,
    global_start: str,
) -> _Plan:
    """The problem, with what earlier logs have told."""
    notes: tuple[str, ...] = ()
    if after is not None:
        model, notes = continued(after, model)
    planned, left_out = designable(model)
    base = planned.base()
    known = np.zeros((0, len(base)))
    if after is not None:
        noise = row_noise(after) if noise is None else noise
        known = known_rows(after, planned, base) / np.sqrt(shape.period * shape.periods * after.signals["decimate"])
    weights, weighting = row_weights(noise, criterion, limits, planned)
    scaling = scaling or ("columns" if criterion in ("A", "E") else "none")
    scale = column_scale(scaling, PlannedRows(planned, base, weights), limits)
    rows = PlannedRows(softened(planned, limits.velocity), base, weights, scale)
    around = _obstacles(collisions, shape, limits)
    problem = Problem(make_criterion(criterion, rows, limits, known * scale), shape, limits, around, global_start)
    notes = (*notes, *left_out, *(() if collisions is None else collisions.notes))
    return _Plan(model, problem, PlannedRows(planned, base, weights, scale), f"{scaling}, rows {weighting}", notes)


def _finished(plan: _Plan, outcome: Outcome, settings: Mapping[str, Any], notes: tuple[str, ...]) -> Design:
    """The best motion that holds, and its exact worth."""
    problem, model = plan.problem, plan.model
    best, report, clearance, repaired = certified(problem, outcome.candidates)
    full, excitation = model.base(), problem.family.excitation(best.X)
    return Design(
        trajectory=problem.family.trajectory(best.X),
        excitation=excitation,
        model=model,
        base=full,
        limits=problem.limits,
        report=report,
        criterion=settings["criterion"],
        value=exact_value(problem, plan.rows, best.X),
        condition=condition_number(weighted_regressor(model, full, excitation, np.ones(model.n))),
        noise=plan.rows.noise,
        scaling=plan.words,
        starts=outcome.starts,
        elapsed=0.0,
        history=outcome.history,
        settings=settings,
        notes=(*notes, *plan.notes, *outcome.notes, *repaired, *_idle(report)),
        clearance=clearance,
    )


def certified(
    problem: Problem, candidates: Sequence[FoundMotion]
) -> tuple[FoundMotion, LimitReport, ClearanceReport | None, tuple[str, ...]]:
    """The best motion that holds on a 1 ms grid with its allowance between samples; drawn in if it does not quite.

    Args:
        candidates: Motions, the best first.

    Returns:
        The motion, how much room it leaves to limits and to other things, and notes.

    Raises:
        LimitError: None holds.
    """
    family = replace(problem.family, periods=1)
    torque = prior_torque(problem.criterion.rows.model.robot)
    report, clearance = None, None
    for size in (1.0, 0.995, 0.98, 0.95, 0.9, 0.7, 0.5):
        for candidate in candidates:
            X = candidate.X if size == 1.0 else family.drawn_in(candidate.X, size)
            report = check_limits(family.trajectory(X), problem.limits, torque=torque)
            if report.feasible and problem.obstacles is not None:
                clearance = check_clearance(family.trajectory(X), problem.obstacles.collisions)
            if report.feasible and (clearance is None or clearance.feasible):
                note = () if size == 1.0 else (f"drawn in to {100 * size:g} % to keep a limit between instants",)
                return replace(candidate, X=X), report, clearance, note
    if report is not None:
        report.require()
    if clearance is not None:
        clearance.require()
    raise LimitError("no motion inside the limits was found", remedy="allow more time, or widen the limits")


def _obstacles(collisions: Collisions | None, family: Family, limits: Limits) -> Obstacles | None:
    if collisions is None:
        return None
    for pose, what in ((family.start, "the start pose"), (family.end, "the end pose")):
        if pose is not None:
            collisions.require_free(pose, what)
    return Obstacles(collisions, family, limits)


def exact_value(problem: Problem, rows: PlannedRows, X: Array) -> float:
    """The criterion with unsoftened signs, on many instants.

    Args:
        rows: Rows of the model as it is.
        X: Unknowns, shape (d, n).

    Returns:
        The value, a logarithm.
    """
    criterion: Any = problem.criterion
    motions = criterion.motions(*problem.family.criterion_grid(max(1000, 8 * problem.samples())).motion(X))
    return float(replace(criterion, rows=rows).value(rows.evaluate(*motions)[0], np.inf)[0])


def _idle(report: LimitReport) -> tuple[str, ...]:
    """A hint when the motion is slower than every joint allows: its harmonics are too low."""
    used = [1.0 - m.relative for m in report.margins if m.quantity in ("velocity", "acceleration")]
    if not used or max(used) > 0.7:
        return ()
    return (
        f"at most {100 * max(used):.0f} % of the velocity and acceleration limits are used: "
        "use more harmonics or a shorter period",
    )


def readable(criterion: str, value: float) -> str:
    """A criterion's value in words.

    Args:
        criterion: Its name.
        value: Its logarithm.

    Returns:
        The number that people quote.
    """
    return f"{np.exp(value):.4g}" if np.isfinite(value) else "none yet"


def _narrator(progress: Progress, criterion: str, begun: float, budget: float) -> Callable[[float], None]:
    def say(value: float) -> None:
        progress(min(1.0, (time.monotonic() - begun) / budget), f"{criterion} = {readable(criterion, value)}")

    return say
