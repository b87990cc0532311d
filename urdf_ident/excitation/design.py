"""Public interface of the design of exciting motions, and what a designed motion of any kind is."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from ..errors import LimitError, ModelError, check_known, check_positive
from ..linalg import Array, one_each
from ..model.base import BaseParameters
from ..model.dynamic_model import DynamicModel
from ..motion.collision.clearance import ClearanceReport, check_clearance
from ..motion.collision.collisions import Collisions
from ..motion.limits import LimitReport, Limits, Torque, check_limits, prior_torque
from ..motion.trajectory import Trajectory
from ..samples import ReadOnly
from ..units import percent
from .criteria import CRITERIA, condition_number, format_criterion
from .family import Family
from .optimise import FoundMotion, optimise
from .problem import EarlierResult, Problem, formulate
from .rows import PlannedRows

UNWATCHED = (
    "not watched; to keep links apart: `excitation: {collisions: true}`, in Python collisions=find_collisions(robot); "
    "capsules replace missing geometry"
)


@dataclass(frozen=True, eq=False, kw_only=True)
class DesignedMotion:
    """A motion verified against the limits of the robot.

    Attributes:
        trajectory: The whole motion.
        report: Margins to the limits, on a 1 ms grid with an allowance for what may happen between.
        clearance: Smallest distances between links and to the world, or None if they are not checked.
        words: Lines of text, specific to the kind of motion.
    """

    trajectory: Trajectory
    limits: Limits
    report: LimitReport
    clearance: ClearanceReport | None = None
    notes: tuple[str, ...] = ()
    words: tuple[str, ...] = ()

    @classmethod
    def verified(
        cls, trajectory: Trajectory, limits: Limits, torque: Torque | None, collisions: Collisions | None, **others: Any
    ) -> Self:
        """Verifies a motion; distances, which take longer, only of one inside the limits.

        Args:
            torque: ``(q, v, a)`` → joint torque, to verify its limits too.
            collisions: Pairs whose clearance is kept; None: distances are not checked.
            others: Further attributes.
        """
        report = check_limits(trajectory, limits, torque=torque)
        clearance = None if collisions is None or not report.feasible else check_clearance(trajectory, collisions)
        return cls(trajectory=trajectory, limits=limits, report=report, clearance=clearance, **others)

    @property
    def feasible(self) -> bool:
        """Whether it keeps all limits and distances."""
        return self.report.feasible and (self.clearance is None or self.clearance.feasible)

    def require(self) -> Self:
        """Returns itself.

        Raises:
            LimitError: It does not keep a limit or a distance.
        """
        self.report.require()
        if self.clearance is not None:
            self.clearance.require()
        return self

    def summary(self) -> str:
        """Describes the motion and its smallest margins in several lines of text."""
        worst = {m.quantity: m for m in sorted(self.report.margins, key=lambda m: -m.relative)}
        lines = ["closest to each limit (torque: rigid bodies of the URDF; friction and rotors need more):"]
        for quantity in ("position", "velocity", "acceleration", "torque"):
            words = "no limit known"
            if (m := worst.get(quantity)) is not None:
                left = f"({m.joint} at {m.time:.3f} s, {percent(100 * m.relative)} % left)"
                words = f"{m.value:10.4g} of {m.limit:.4g} {m.unit} {left}"
            lines.append(f"  {quantity:12s} {words}")
        watched = [UNWATCHED] if self.clearance is None else [str(pair) for pair in self.clearance.closest]
        lines += [f"  {'distance':12s} {line}" for line in watched or ["nothing can collide"]]
        return "\n".join([*self.words, *lines, *(f"note: {note}" for note in self.notes)])

    __str__ = summary


#: Number of best motions of a search that are verified until one passes.
VERIFIED = 6
#: Amplitudes at which each of them is verified, relative to the motion as found, until one passes.
SIZES = (1.0, *(1.0 - 0.005 * 2.0 ** np.arange(7)))
#: Largest used fraction of a velocity or acceleration limit up to which a livelier motion is advised.
WELL_USED = 0.7

Progress = Callable[[float, str], None]


@dataclass(frozen=True, eq=False, kw_only=True)
class Design(DesignedMotion, ReadOnly):
    """An optimised motion, ramps and repetitions included, and its expected information.

    Attributes:
        excitation: One period without ramps, to which the criterion refers.
        model: The model to identify.
        base: The base parameters that the criterion counts.
        criterion: Name of the criterion.
        value: Its exact value, a logarithm (see :mod:`.criteria`).
        condition: Condition number of the base regressor, columns unscaled (SI), rows unweighted.
        noise: Torque noise used as weights of the rows, shape (n,) [N·m or N].
        scaling: Scaling of the columns for the criterion.
        starts: Number of random starts.
        elapsed: Computing time [s].
    """

    excitation: Trajectory
    model: DynamicModel
    base: BaseParameters
    criterion: str
    value: float
    condition: float
    noise: Array
    scaling: str
    starts: int
    elapsed: float


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
    after: EarlierResult | None = None,
    collisions: Collisions | Literal["auto"] | None = "auto",
    progress: Progress | None = None,
) -> Design:
    """Designs an exciting motion for the base parameters of a model (for elastic joints, its rigid part) inside the limits.

    The same seed gives the same motion on every machine, because the budget counts evaluations and not time. Ctrl-C ends the
    search with the best motion so far.

    Args:
        duration: Of one period [s].
        criterion: ``"D"``, ``"A"``, ``"E"``, ``"cond"``, ``"frobenius"`` or ``"block"``; see :mod:`.criteria`. ``"auto"``: D;
            after an earlier result A, which emphasises parameters that are still unknown, weighted by their torque.
        seed: Of the random starts.
        family: ``"modified_fourier"`` and ``"spline"`` start and end at rest, in one pose or in two; ``"fourier"`` has more
            freedom and needs ramps from and to a pose.
        harmonics: Of the Fourier series.
        periods: Number of repetitions of the motion.
        start: Pose where it starts and ends, shape (n,) [rad or m]; optimised by default.
        end: Different final pose, shape (n,) [rad or m]; needs a start pose and a family that supports it.
        ramp: Length of each ramp of family ``"fourier"`` [s]; 0 for none.
        limits: Limits; by default the URDF's, with twice the velocity limit per second as the acceleration limit.
        noise: Expected torque noise of each row group, shape (n,) or a number [N·m or N]. By default, for D, A and E, a
            fixed fraction of the torque limit; for the others (as in the literature) the same on all joints.
        scaling: ``"none"``: columns in SI units; ``"columns"``: each divided by its norm on random motion. By default
            ``"columns"`` for A and E, ``"none"`` for the others. D is invariant to it.
        budget: Evaluations of the search, in seconds that they take on a usual core [s].
        starts: Number of random starts; by default limited by the budget.
        after: An earlier result for the same robot: the information of its logs is added to that of the motion; its
            terms, drive and noise of the row groups are used.
        collisions: Pairs of links and objects whose clearance is kept, ramps included, from
            ``find_collisions(robot, read_world(path))``. ``"auto"``: the links of the robot, if the URDF has collision
            geometry; None: collisions are not checked.
        progress: Called with the completed fraction, 0 to 1, and the best value so far as text.

    Raises:
        LimitError: A limit is unknown, the start pose is outside the limits or collides, or no feasible motion was found.
        FingerprintError: ``after`` is for another robot.
        ModelError: Unknown criterion, or a model without rigid rows.
    """
    if criterion == "auto":
        criterion = "D" if after is None else "A"
    check_known("criterion", criterion, CRITERIA, ModelError)
    check_positive("the budget", budget, LimitError, "s")
    begun = time.monotonic()
    limits = limits or Limits.from_robot(model.robot)
    ramp = ramp if family == "fourier" else 0.0
    first, last = (None if q is None else one_each(key, q, len(limits.joints)) for key, q in (("start", start), ("end", end)))
    shape = Family(
        family, limits.joints, float(duration), harmonics=harmonics, periods=periods, ramp=ramp, start=first, end=last
    )
    problem = formulate(model, shape, limits, criterion, noise=noise, scaling=scaling, after=after, collisions=collisions)

    def say(spent: float, value: float) -> None:
        if progress is not None:
            progress(min(1.0, spent / budget), f"{criterion} = {format_criterion(value)}")

    search = optimise(problem, seed=seed, budget=budget, starts=starts, progress=say)
    best, kept = certified(problem, search.improvements)
    X, base, excitation = best.X, problem.exact.base, shape.excitation(best.X)
    elapsed = time.monotonic() - begun
    trajectory, value = shape.trajectory(X), problem.value(X, problem.exact)
    condition = condition_number(PlannedRows(problem.exact.model, base, np.ones(model.n)).along(excitation))
    words = (
        f"{family}: {trajectory.duration:.4g} s, {len(base)} base parameters, "
        f"criterion {criterion} = {format_criterion(value)}, condition number {condition:.4g}",
        f"column scaling: {problem.weighting}; {search.starts} starts in {elapsed:.3g} s",
    )
    return Design(
        trajectory=trajectory,
        excitation=excitation,
        model=problem.model,
        base=base,
        limits=problem.limits,
        report=kept.report,
        criterion=criterion,
        value=value,
        condition=condition,
        noise=problem.exact.noise,
        scaling=problem.weighting,
        starts=search.starts,
        elapsed=elapsed,
        notes=(*problem.notes, *search.notes, *kept.notes, *_unused_limits(kept.report)),
        clearance=kept.clearance,
        words=words,
    )


def certified(problem: Problem, motions: Sequence[FoundMotion]) -> tuple[FoundMotion, DesignedMotion]:
    """Returns the best motion that passes verification, scaled down if necessary, and its verification.

    If none passes, the error says what the best one, unscaled, exceeds.
    """
    best: tuple[FoundMotion, DesignedMotion] | None = None
    refused: DesignedMotion | None = None  # the best motion as found, for the error
    one_period, torque = replace(problem.family, periods=1), prior_torque(problem.model.robot)
    for candidate in sorted(motions, key=lambda motion: motion.value)[:VERIFIED]:
        if best is not None and best[0].value <= candidate.value:
            break  # the best of the rest, even if it need not be scaled
        for size in SIZES:
            X = candidate.X if size == 1.0 else one_period.scaled(candidate.X, size)
            notes = () if size == 1.0 else (f"amplitude reduced to {100 * size:g} % to keep a limit between instants",)
            kept = DesignedMotion.verified(one_period.trajectory(X), problem.limits, torque, problem.collisions, notes=notes)
            if kept.feasible:
                value = candidate.value if size == 1.0 else problem.value(X, problem.rows)
                if best is None or value < best[0].value:
                    best = replace(candidate, X=X, value=value), kept
                break
            refused = refused or kept
    if best is not None:
        return best
    if refused is not None:
        refused.require()
    raise LimitError("no motion inside the limits was found", remedy="allow a larger excitation.budget, or widen the limits")


def _unused_limits(report: LimitReport) -> tuple[str, ...]:
    """Advice if the motion comes near no velocity or acceleration limit."""
    used = max((1.0 - m.relative for m in report.margins if m.quantity in ("velocity", "acceleration")), default=1.0)
    if used > WELL_USED:
        return ()
    return (
        f"at most {100 * used:.0f} % of the velocity and acceleration limits are used: use more harmonics or a shorter period",
    )
