"""``friction: auto``: selects the friction laws of each joint by held-out error.

One pass over the data includes every law with every candidate shape as separate columns, so that all sub-models are column
subsets of the same small factors. A sub-model is judged by its error on logs (on parts in time, with a
single log) that were not used to estimate it. Joints share their inertial parameters, so errors are those of the whole robot,
while the search proceeds from joint to joint in forward and backward steps (:mod:`.joint_search`). Further passes refine the
shapes of the selected laws.

Viscous and Coulomb friction and an offset are in every model; the search adds to them. Every drive has the two: a law that
could replace them in a short log is wrong in faster motion, and of what both describe the prior gives each a part. Only dry
friction of another kind, over a travel or a time, may replace Coulomb's, by a gain of two standard errors. Without an offset
that the data do not need, gravity parameters would replace it, also in held-out parts of the same motion, and first moments
would be wrong by many of their standard errors. How large biases are expected, the data show
(:func:`.consistency.first_fit.size_factor`).

Parsimony: a law is added if it lowers the held-out error by more than one standard error of that gain over the folds (more with
few folds, by Student's t, so that a gain in one fold alone is not enough), by √k of them if it has k columns more than what it
replaces, and by more than :data:`.joint_search.LEAST_GAIN` of its joint's own error. All selected laws together must gain as
well; otherwise the simple laws are kept.
Excitation: a column that is nearly collinear with the others, or a load-dependent friction that is not significant, is not a
candidate at that joint; a joint that never reverses keeps the simple laws, and a law with parameters for each direction needs
:data:`.samples.REVERSALS_FOR_BOTH_DIRECTIONS`. Whether fewer reversals determine another law, its held-out errors show.
Physics: parameters that cannot be negative (:attr:`Term.nonnegative`) must not be estimated so, nor that of a cubic law
(:data:`.candidates.CONVEX`), and friction must dissipate.

Load-dependent laws use the rigid torque of the previous fit; the search is repeated with that of its own result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any

import numpy as np

from ...errors import EstimationError
from ...friction import Law, Trained
from ...linalg import Array, BoolArray, IntArray
from ...model.dynamic_model import DynamicModel
from ...model.prior import USUAL_WEIGHT, Prior
from ...model.terms import AppliedTerm
from ...model.trained import trained_ranges
from ...progress import Progress
from ...samples import REVERSALS_FOR_BOTH_DIRECTIONS, Segment, columns, fast_speed, moving, turns
from ...statistics.fit import base_prior, fit_base, fit_ridge
from ...statistics.folds import TIME_FOLDS, chosen, folds_of, whole_motions
from ...statistics.motions import motions, velocities
from ...statistics.statistic import StatisticSet
from .candidates import (
    OF_EVERY_DRIVE,
    Candidate,
    Key,
    Laws,
    WideModel,
    chosen_by_data,
    every_law,
    visible_springs,
    wide_model,
    zoomed,
)
from .joint_search import JointSearch
from .reference_torque import FOLD_TOLERANCE, Build, ConvergedFit, converge, for_folds, rigid_parameters
from .sub_models import SubModels

#: Multiples of each shape of the previously selected laws that the passes try.
PASSES = ((), (0.8, 0.9, 1.12, 1.25), (0.9, 0.95, 1.05, 1.1), (0.95, 0.975, 1.025, 1.05))
#: Maximum number of sweeps over the joints on one set of factors.
SWEEPS = 8
#: Smallest ratio of a motor's speed to the sum of the speeds due to its joints for which laws are distinguishable.
_UNDONE = 0.05


@dataclass(frozen=True)
class Trial:
    """Gain of one law at one joint in addition to all selected laws.

    Attributes:
        side: "joint" or "motor".
        shapes: The best of the shapes that were tried.
        chosen: Whether it was selected.
        gain: Relative reduction of the joint's held-out squared error by the law; negative if the error increases.
        std_error: Standard error of this gain, over the folds.
        reason: The reason for the decision, in words.
    """

    joint: str
    term: str
    side: str
    shapes: Mapping[str, float]
    chosen: bool
    gain: float
    std_error: float
    reason: str


@dataclass(frozen=True, eq=False)
class Selected:
    """A model with selected friction laws.

    Attributes:
        trials: The laws that were tried and their gains, joint by joint; empty without a search.
        folds: Names of the held-out folds.
        before, after: Held-out RMSE with the simple laws and with the selected ones, shape (groups,) [unit of torque].
    """

    model: DynamicModel
    trials: tuple[Trial, ...] = ()
    folds: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    before: Array = field(default_factory=lambda: np.zeros(0))
    after: Array = field(default_factory=lambda: np.zeros(0))
    notes: tuple[str, ...] = ()

    @property
    def supplements(self) -> tuple[int, ...]:
        """Indices into theta of the laws of one parameter, not springs, that a search added to the simple ones."""
        free = chosen_by_data(self.model) if self.trials else ()
        laws = [(applied.term, span.start) for applied, span in self.model.placed_terms if applied in free]
        return tuple(
            first
            for law, first in laws
            if isinstance(law, Law)
            and len(law.symbols) == 1
            and not (law.bias or law.conservative or law.name in OF_EVERY_DRIVE)
        )

    def as_dict(self) -> dict[str, Any]:
        """Returns the entry ``selection`` of identification.json; empty without a search."""
        if not self.trials:
            return {}
        return {
            "folds": list(self.folds),
            "groups": list(self.groups),
            "rmse_simple": self.before.tolist(),
            "rmse_chosen": self.after.tolist(),
            "trials": [{**vars(trial), "shapes": dict(trial.shapes)} for trial in self.trials],
        }


def select_friction(
    model: DynamicModel,
    build: Build,
    motion: Sequence[Segment],
    *,
    method: str = "wls",
    progress: Progress | None = None,
    prior: Prior | None = None,
) -> Selected:
    """Selects the friction laws of each joint.

    Args:
        method: "ols" or "wls", as in :func:`fit_base`.
        progress: Called with ``"joints searched for friction laws"``, the visits done and their maximum number.
        prior: Prior of the inertial parameters, applied in every fold as in the result; without it, short logs would be judged
            by inertial parameters that they do not identify.

    Returns:
        The model with the selected laws; the given one, with a note on the reason, if the data do not suffice.

    Raises:
        EstimationError: The data are too few for any estimate.
    """

    def simple_laws(reason: str) -> Selected:
        return Selected(model, notes=(f"friction: auto: {reason}; viscous, Coulomb and offset are used",))

    def estimated(laws: DynamicModel, start: Array | None = None) -> tuple[ConvergedFit, Array]:
        """The fit with some laws, and the inertial parameters of its rigid torque."""
        fitted = partial(fit_base, base=laws.base(), method=method)
        converged = converge(laws, build, fitted, start=start, prior=prior, tolerance=FOLD_TOLERANCE)
        fit = converged.fit if prior is None else fit_ridge(converged.statistics, converged.fit, prior)
        return converged, rigid_parameters(fit, model.n_inertial, prior)

    # 1. The simple laws, whose residuals weight the rows. Joints that never reverse keep them.
    converged, theta = estimated(model)
    counts = _reversal_counts(model, motion, converged.statistics)
    steady, few = counts == 0, counts < REVERSALS_FOR_BOTH_DIRECTIONS
    if steady.all():
        return simple_laws("no joint reverses, so that friction laws cannot be selected")
    build, sigma = for_folds(build, converged.statistics), converged.fit.sigma
    seconds = sum(len(part) / part.rate for part in motion) / len(converged.statistics.logs)
    family = every_law(model, motion, seconds if whole_motions(converged.statistics) else seconds / TIME_FOLDS)
    del converged  # frees its factors, which are as large as those of the search
    terms = usual = chosen_by_data(model)
    kept = [applied for applied in model.terms if applied not in usual]
    # 2. Passes with ever finer shapes of the selected laws; in each, joint by joint until the laws of none change.
    springs = list[set[Key]]()
    for k, factors in enumerate(PASSES):
        wide = wide_model(model, kept, [*family, *zoomed(terms, (1.0, *factors)), *terms, *usual])
        try:
            statistics = folds_of(build(wide.model.with_reference(theta)))
        except EstimationError:
            return simple_laws("a single log that is too short to be split is not enough to select friction laws")
        weights, last = {group: 1.0 / value for group, value in sigma.items()}, k == len(PASSES) - 1
        if not springs:  # they have no shapes, so that one pass tells which are visible
            springs = [visible_springs(wide, statistics, weights, axis) for axis in range(model.n)]
        search = _Search(wide, statistics, motion, weights, prior, few, springs, usual)
        state, pending = search.state(terms), ~steady
        for visits, axis in enumerate(chain(*[range(model.n)] * SWEEPS)):
            if pending[axis]:
                laws = search.at(state, axis).run(state[axis], many=last)
                if set(laws.values()) != set(state[axis].values()):
                    pending = ~steady
                pending[axis], state[axis] = False, laws
                if progress is not None:
                    most = SWEEPS * model.n
                    progress("joints searched for friction laws", k * most + visits + 1, len(PASSES) * most)
        terms = tuple(law.applied for law in listed(state))
        if not last:
            settled, theta = estimated(wide.narrow(listed(state)), theta)
            sigma = settled.fit.sigma
    # 3. The simple laws again if all laws gain too little.
    squares = np.array([search.squares(listed(laws)) for laws in (search.simple, state)])
    if state != search.simple and chosen(squares) == 0:
        return simple_laws("no other laws lower the held-out error by more than its standard error")
    # 4. The gain of every law at every joint in addition to the selected ones.
    before, after = np.sqrt(squares.mean(axis=1))
    parts = "blocks of time" if statistics.logs[0].endswith("]") else "logs"
    notes = [
        f"friction: auto: laws selected per joint by cross-validation over {len(statistics.logs)} {parts}: "
        f"{after.mean():.3g} instead of {before.mean():.3g} N·m or N with viscous, Coulomb and offset"
    ]
    if steady.any():
        names = ", ".join(joint for joint, resting in zip(model.robot.joints, steady, strict=True) if resting)
        verbs = ("never reverses", "keeps") if np.sum(steady) == 1 else ("never reverse", "keep")
        notes.append(f"friction: auto: {names} {verbs[0]} and {verbs[1]} viscous, Coulomb and offset")
    model = wide.narrow(listed(state))
    return Selected(model, search.trials(state), statistics.logs, statistics.groups, before, after, tuple(notes))


def _reversal_counts(model: DynamicModel, motion: Sequence[Segment], statistics: StatisticSet) -> IntArray:
    """Reversals of each joint, shape (n,), repetitions of a motion counted once; 0 where joint or motor hardly moves."""
    parts = velocities(motion, motions(statistics))

    def fast_of(row: Array, size: Callable[[Array], Array]) -> float:
        return fast_speed(np.concatenate([size(v) @ size(row) for v in parts]))

    motor, uncoupled = (np.array([fast_of(row, size) for row in model.drive.reduction]) for size in (np.asarray, np.abs))
    # by column to save memory; a joint may rest between two segments and reverse after
    fast, counts = np.transpose([(fast_speed(v), turns(v).shape[1]) for v in columns(parts)])
    return np.where(moving(fast, model.robot.prismatic) & (motor > _UNDONE * uncoupled), counts, 0).astype(np.intp)


#: The laws of every joint.
State = list[Laws]


def listed(state: Sequence[Laws]) -> list[Candidate]:
    """Returns all laws of a state, joint by joint."""
    return [law for laws in state for law in laws.values()]


def columns_of(laws: Sequence[Candidate]) -> list[int]:
    """Returns the positions of the columns of some laws among those of all candidates."""
    return [k for law in laws for k in law.at]


class _Search:
    """Search on one set of factors, from joint to joint.

    Args:
        statistics: Statistics of the wide model; each "log" is one fold.
        weights: Row group → weight, one over the standard deviation of its residual [1/unit of torque].
        few: Which axes reverse too rarely for friction laws with many columns, shape (n,).
        springs: The springs of each axis that the data tell from gravity (:func:`.visible_springs`).
        usual: The simple laws.
    """

    def __init__(
        self,
        wide: WideModel,
        statistics: StatisticSet,
        motion: Sequence[Segment],
        weights: Mapping[str, float],
        prior: Prior | None,
        few: BoolArray,
        springs: Sequence[set[Key]],
        usual: Sequence[AppliedTerm],
    ) -> None:
        self.wide, self.few, self.springs, known = wide, few, springs, None
        self.simple = self.state(usual)
        if prior is not None:
            mean, S = base_prior(wide.model.with_terms(wide.kept).base(), prior)
            known = np.sqrt(USUAL_WEIGHT) * np.column_stack([S, S @ mean])
        self.sub_models = SubModels(statistics, weights, wide.common, wide.columns, known)
        counts = np.array([list(statistics.only(fold).weight.values()) for fold in statistics.logs])
        self.scale = 1.0 / (np.square(list(weights.values())) * np.maximum(counts, 1.0))
        self.joint_of_group = np.array([layout.joint for layout in statistics.layouts])
        self.trained: list[dict[str, Trained]] = [{} for _ in wide.candidates]
        for (axis, side), trained in trained_ranges(wide.model, motion).items():
            self.trained[axis][side] = trained

    def state(self, chosen: Sequence[AppliedTerm]) -> State:
        """The candidates that correspond to some laws."""
        return [{law.key: law for law in laws if law.applied in chosen} for laws in self.wide.candidates]

    def at(self, state: State, axis: int) -> JointSearch:
        """The search at one joint, given the laws of the others."""
        others = columns_of(listed([laws for other, laws in enumerate(state) if other != axis]))
        candidates = self.wide.candidates[axis]
        sub_models = self.sub_models.of_joint(others, columns_of(candidates), np.flatnonzero(self.joint_of_group == axis))
        given = self.simple[axis], self.trained[axis], self.springs[axis], bool(self.few[axis])
        return JointSearch(sub_models, candidates, *given)

    def squares(self, laws: Sequence[Candidate]) -> Array:
        """Mean squared held-out errors of some laws, shape (folds, groups) [unit of torque squared]."""
        return np.asarray(self.sub_models.squares(columns_of(laws)) * self.scale)

    def trials(self, state: State) -> tuple[Trial, ...]:
        """What every law gains at every joint in addition to the selected ones."""
        trials = list[Trial]()
        for axis, (joint, candidates) in enumerate(zip(self.wide.model.robot.joints, self.wide.candidates, strict=True)):
            at_joint = self.at(state, axis)
            for key in dict.fromkeys(law.key for law in candidates):
                best, gained, error, reason = at_joint.verdict(state[axis], key)
                shapes = {name: float(getattr(best.law, name)) for name in best.law.shapes}
                trials.append(Trial(joint, *key, shapes, key in state[axis], gained, error, reason))
        return tuple(trials)
