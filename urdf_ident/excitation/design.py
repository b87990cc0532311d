"""Public interface of the design of exciting motions, and what a designed motion of any kind is."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..errors import LimitError, ModelError, check_known, check_positive
from ..linalg import Array, one_each
from ..model.base import BaseParameters
from ..model.dynamic_model import DynamicModel
from ..motion.collision.clearance import ClearanceReport, check_clearance
from ..motion.collision.collisions import Collisions
from ..motion.limits import LimitReport, Limits, check_limits, prior_torque
from ..motion.trajectory import Trajectory
from ..samples import ReadOnly
from ..units import percent
from .criteria import CRITERIA, condition_number, format_criterion
from .family import Family
from .optimise import FoundMotion, optimise
from .problem import EarlierResult, Problem, formulate
from .rows import weighted_regressor

UNWATCHED = (
    "not watched; to keep links apart: `excitation: {collisions: true}`, in Python collisions=find_collisions(robot); "
    "capsules replace missing geometry"
)


@dataclass(frozen=True, eq=False, kw_only=True)
class DesignedMotion:
    """A motion inside the limits of the robot.

    Attributes:
        trajectory: The whole motion.
        clearance: Smallest distances between links and to the world, or None if collisions are not checked.
        rate: Default samples per second of the written motion [Hz].
    """

    rate: ClassVar[float] = 100.0

    trajectory: Trajectory
    limits: Limits
    report: LimitReport
    clearance: ClearanceReport | None = None
    notes: tuple[str, ...] = ()
    words: str = ""

    def write(self, path: str | Path, rate: float | None = None) -> Path:
        """Writes the motion, see :meth:`.Trajectory.write`; by default at :attr:`rate` [Hz]."""
        return self.trajectory.write(path, self.rate if rate is None else rate)

    def describe(self) -> list[str]:
        """Returns lines of text, specific to the kind of motion."""
        return [self.words]

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
        return "\n".join([*self.describe(), *lines, *(f"note: {note}" for note in self.notes)])

    __str__ = summary


#: Number of best motions of a search that are verified until one passes.
VERIFIED = 6
#: Amplitudes at which each of them is verified, relative to the motion as found, until one passes.
SIZES = (1.0, 0.995, 0.98, 0.95, 0.9, 0.7, 0.5)
#: Largest used fraction of a velocity or acceleration limit up to which a livelier motion is advised.
WELL_USED = 0.7

Progress = Callable[[float, str], None]


@dataclass(frozen=True, eq=False, kw_only=True)
class Design(DesignedMotion, ReadOnly):
    """An optimised motion, ramps and repetitions included, and its expected information.

    Attributes:
        excitation: One period without ramps, to which the criterion refers.
        model: The model to identify.
        base: Its base parameters.
        criterion: Name of the criterion.
        value: Its exact value, a logarithm (see :mod:`.criteria`).
        condition: Condition number of the base regressor, columns unscaled (SI), rows unweighted.
        noise: Torque noise used as weights of the rows, shape (n,) [N·m or N].
        scaling: Scaling of the columns for the criterion.
        starts: Number of random starts.
        elapsed: Computing time [s].
        settings: The settings of the design.
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
    settings: Mapping[str, Any] = field(default_factory=dict)

    def describe(self) -> list[str]:
        """Describes the motion, the criterion and the search."""
        return [
            f"{self.settings.get('family', 'motion')}: {self.trajectory.duration:.4g} s, {len(self.base)} base parameters, "
            f"criterion {self.criterion} = {format_criterion(self.value)}, "
            f"condition number {self.condition:.4g}",
            f"column scaling: {self.scaling}; {self.starts} starts in {self.elapsed:.3g} s",
        ]


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
        family: ``"modified_fourier"`` and ``"spline"`` start and end at rest in one pose; ``"fourier"`` has more freedom
            and needs ramps from and to a pose; ``"tied_fourier"`` and ``"spline"`` may end in another pose.
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
    best = certified(problem, search.improvements)
    X, report, model = best.motion.X, best.report, problem.model
    full, excitation = model.base(), shape.excitation(X)
    return Design(
        trajectory=shape.trajectory(X),
        excitation=excitation,
        model=model,
        base=full,
        limits=problem.limits,
        report=report,
        criterion=criterion,
        value=problem.value(X, problem.exact),
        condition=condition_number(weighted_regressor(model, full, excitation, np.ones(model.n))),
        noise=problem.exact.noise,
        scaling=problem.weighting,
        starts=search.starts,
        elapsed=time.monotonic() - begun,
        settings={
            "duration": shape.period,
            "criterion": criterion,
            "family": shape.name,
            "harmonics": shape.harmonics,
            "periods": shape.periods,
            "ramp": shape.ramp,
            "start": None if shape.start is None else shape.start.tolist(),
            "end": None if shape.end is None else shape.end.tolist(),
            "seed": seed,
            "budget": budget,
        },
        notes=(*problem.notes, *search.notes, *best.notes, *_unused_limits(report)),
        clearance=best.clearance,
    )


class Verified(NamedTuple):
    """A motion, its margins to limits, its clearance (None if not checked) and notes."""

    motion: FoundMotion
    report: LimitReport
    clearance: ClearanceReport | None
    notes: tuple[str, ...]


def certified(problem: Problem, motions: Sequence[FoundMotion]) -> Verified:
    """Returns the best motion that passes verification on a 1 ms grid with allowance, scaled down if necessary.

    If none passes, the error says what the best one, unscaled, exceeds.
    """
    best: Verified | None = None
    refused: Verified | None = None  # the best motion as found, for the error
    one_period, torque = replace(problem.family, periods=1), prior_torque(problem.model.robot)
    for candidate in sorted(motions, key=lambda motion: motion.value)[:VERIFIED]:
        if best is not None and best.motion.value <= candidate.value:
            break  # the best of the rest, even if it need not be scaled
        for size in SIZES:
            X = candidate.X if size == 1.0 else one_period.scaled(candidate.X, size)
            trajectory = one_period.trajectory(X)
            report = check_limits(trajectory, problem.limits, torque=torque)
            clearance = check_clearance(trajectory, problem.collisions) if problem.collisions and report.feasible else None
            if report.feasible and (clearance is None or clearance.feasible):
                notes = () if size == 1.0 else (f"amplitude reduced to {100 * size:g} % to keep a limit between instants",)
                value = candidate.value if size == 1.0 else problem.value(X, problem.rows)
                if best is None or value < best.motion.value:
                    best = Verified(replace(candidate, X=X, value=value), report, clearance, notes)
                break
            refused = refused or Verified(candidate, report, clearance, ())
    if best is not None:
        return best
    if refused is not None:
        refused.report.require()
        if refused.clearance is not None:
            refused.clearance.require()
    raise LimitError("no motion inside the limits was found", remedy="allow a larger excitation.budget, or widen the limits")


def _unused_limits(report: LimitReport) -> tuple[str, ...]:
    """Advice if the motion comes near no velocity or acceleration limit."""
    used = max((1.0 - m.relative for m in report.margins if m.quantity in ("velocity", "acceleration")), default=1.0)
    if used > WELL_USED:
        return ()
    return (
        f"at most {100 * used:.0f} % of the velocity and acceleration limits are used: use more harmonics or a shorter period",
    )
