"""``friction: auto``: selects the friction laws of each joint by held-out error.

One pass over the data includes every law with every candidate shape as separate columns, so that all sub-models are column
subsets of the same small factors (:mod:`.subsets`). A sub-model is judged by its error on logs (on parts in time, with a single
log) that were not used to estimate it. Joints share their inertial parameters, so errors are those of the whole robot, while
the search proceeds from joint to joint: it adds the law with the largest gain, exchanges shapes and laws, and removes laws
that are not needed.

Parsimony: a law is kept if it lowers the held-out error by more than one standard error of that gain over the folds (more with
few folds, by Student's t, so that a gain in one fold alone is not enough), by √k of them if it has k columns more than what it
replaces, and by more than :data:`.joint_search.LEAST_GAIN` of its joint's own error. Where folds differ, a gain may be
significant relative to the error without the law, and its loss not relative to that with it, so that the search goes in a
circle; of the sets of laws in it, the one with the lowest held-out error is chosen. A joint whose laws raise its held-out error
over that with the simple ones by more than the error of the difference gets these again, and all selected laws together must
gain as well; otherwise the simple laws are kept. Laws that are not significant in the errors of the final fit are omitted later
(:mod:`.significance`).
Excitation: a column that is nearly collinear with the others, or a load-dependent friction that is not significant, is not a
candidate at that joint; a joint that rarely reverses keeps the simple laws (:func:`_steady`), and a law with parameters for
each direction needs more, :data:`.samples.REVERSALS_FOR_BOTH_DIRECTIONS`.
Physics: parameters that cannot be negative (:attr:`Term.nonnegative`) must not be estimated so, nor that of a cubic law
(:data:`.candidates.CONVEX`).

Viscous and Coulomb friction exist in every drive. They are not removed because a log does not need them, and another law
replaces them only if it gains two standard errors: a law that can replace them in a short log is wrong in faster motion.
Viscous friction that is replaced nevertheless returns after the search (:func:`.kept_without_gain`): the prior divides between
the two what both describe.

A bias that is not needed is kept in the model, with a smaller expected size: gravity parameters would otherwise replace it,
also in held-out parts of the same motion, and first moments would be wrong by many of their standard errors.

Load-dependent laws use the rigid torque of the previous fit; the search is repeated with that of its own result.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from ...errors import EstimationError
from ...friction import Offset
from ...linalg import Array, BoolArray
from ...model.dynamic_model import DynamicModel
from ...model.prior import USUAL_WEIGHT, Prior
from ...model.terms import AppliedTerm
from ...progress import Progress
from ...samples import FEWEST_REVERSALS, MANY_REVERSALS, REVERSALS_FOR_BOTH_DIRECTIONS, Segment, fast_speed, moving, reversals
from ...statistics.choice import relative_gains, standard_error, worse
from ...statistics.fit import base_prior, fit_base, fit_ridge
from ...statistics.folds import folds_of
from ...statistics.motions import motions, velocities
from ...statistics.statistic import StatisticSet
from .candidates import ZOOMS, WideModel, chosen_by_data, wide_model
from .joint_search import Laws
from .reference_torque import Build, ConvergedFit, converge, for_folds, rigid_parameters
from .structure import SWEEPS, State, StructureSearch, Trial, kept_without_gain, listed

#: Smallest ratio of a motor's speed to the sum of the speeds due to its joints for which laws are distinguishable.
_UNDONE = 0.05


@dataclass(frozen=True, eq=False)
class Selected:
    """A model with selected friction laws.

    Attributes:
        trials: The laws that were tried and their gains, joint by joint; empty without a search.
        folds: Names of the held-out folds.
        before, after: Held-out RMSE with the simple laws and with the selected ones, shape (groups,) [unit of torque].
        unsupported: Joints that keep a bias although held-out data do not need it.
    """

    model: DynamicModel
    trials: tuple[Trial, ...] = ()
    folds: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    before: Array = field(default_factory=lambda: np.zeros(0))
    after: Array = field(default_factory=lambda: np.zeros(0))
    unsupported: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Returns the entry ``selection`` of identification.json; empty without a search."""
        if not self.trials:
            return {}
        return {
            "folds": list(self.folds),
            "groups": list(self.groups),
            "rmse_simple": self.before.tolist(),
            "rmse_chosen": self.after.tolist(),
            "trials": [trial.as_dict() for trial in self.trials],
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
        model: The dynamic model with the simple laws, from which the search starts.
        build: Computes the statistics of a model on the data.
        method: "ols" or "wls", as in :func:`fit_base`.
        progress: Called with ``"joints searched for friction laws"``, the visits done and their maximum number.
        prior: Prior of the inertial parameters, applied in every fold as in the result; without it, short logs would be judged
            by inertial parameters that they do not identify.

    Returns:
        The model with the selected laws; the given one, with a note on the reason, if the data do not suffice.

    Raises:
        EstimationError: The data are too few for any estimate.
    """
    converged = converge(model, build, partial(fit_base, base=model.base(), method=method), prior=prior)
    counts = _turns(motion, motions(converged.statistics), model.drive.reduction, model.robot.prismatic)
    build = for_folds(build, converged.statistics)
    steady, few = _steady(counts), frozenset(np.flatnonzero(counts < REVERSALS_FOR_BOTH_DIRECTIONS).tolist())
    if len(steady) == model.n:
        turned = f"{np.median(counts):g} reversals of the joints (median) are too few to select friction laws"
        return _simple(model, f"{turned} ({FEWEST_REVERSALS}, or {MANY_REVERSALS} of one joint, are needed)")
    visits = _VisitCounter(progress, model.n)
    usual = chosen = list(chosen_by_data(model))
    theta, sigma = _rigid(converged, model, prior), converged.fit.sigma
    del converged  # frees its factors, which are as large as those of the search
    for zoom in ((), *ZOOMS):
        wide = wide_model(model, motion, chosen, zoom, usual)
        state: State = _state(wide, chosen)
        try:
            statistics = folds_of(build(wide.model.with_reference(theta)))
        except EstimationError:
            return _simple(model, "a single log that is too short to be split is not enough to select friction laws")
        search = StructureSearch(wide, statistics, sigma, visits, _prior_rows(wide, prior), steady, few)
        state = search.run(state, many=zoom == ZOOMS[-1])
        visits.next_zoom()
        chosen = [law.item for law in listed(state)]
        if zoom != ZOOMS[-1]:
            narrow = wide.narrow(listed(state))
            settled = converge(narrow, build, partial(fit_base, base=narrow.base(), method=method), start=theta, prior=prior)
            theta, sigma = _rigid(settled, model, prior), settled.fit.sigma
    simple = _state(wide, usual)
    unsupported = [law.item.axis for law in kept_without_gain(wide, state) if law.key[0] == Offset.name]
    before, state = search.squares(simple), _paying(wide, search, state, simple)
    gain = relative_gains(before, search.squares(_completed(wide, state)))
    least, most = (sum(len(law.columns) for law in listed(laws)) for laws in (simple, state))
    if most > least and gain.mean() <= standard_error(gain):
        return _simple(model, "no other laws lower the held-out error by more than its standard error")
    found = _selected(wide, search, state, statistics, search.rmse(simple), _kept(model, steady))
    return replace(found, unsupported=tuple(model.robot.joints[axis] for axis in unsupported))


def _completed(wide: WideModel, state: State) -> State:
    """The laws of a search with those that joints keep without a gain."""
    spared = kept_without_gain(wide, state)
    return {axis: {**laws, **{law.key: law for law in spared if law.item.axis == axis}} for axis, laws in state.items()}


def _paying(wide: WideModel, search: StructureSearch, state: State, simple: State) -> State:
    """The laws of a search, with the simple ones again at joints whose held-out error rises by more than its error."""
    before = search.squares(simple)
    while True:
        after = search.squares(_completed(wide, state))
        worst = {search.joint_of_group[k] for k in range(before.shape[1]) if worse(before[:, k], after[:, k])}
        back = {axis for axis in worst if state[axis] != simple[axis]}
        if not back:
            return state
        state = {axis: simple[axis] if axis in back else laws for axis, laws in state.items()}


def _selected(
    wide: WideModel, search: StructureSearch, state: State, statistics: StatisticSet, first: Array, kept: tuple[str, ...]
) -> Selected:
    """The result of a search; ``first``: held-out errors before it, shape (groups,)."""
    after, spared = search.rmse(state), kept_without_gain(wide, state)
    return Selected(
        wide.narrow([*listed(state), *spared]),
        search.trials(state, spared),
        statistics.logs,
        statistics.groups,
        first,
        after,
        notes=(*_notes(statistics.logs, first, after), *kept),
    )


class _VisitCounter:
    """Counts the visited joints; each zoom visits all of them at most :data:`SWEEPS` times."""

    def __init__(self, progress: Progress | None, joints: int) -> None:
        self.progress, self.a_zoom, self.done, self.zooms = progress, SWEEPS * joints, 0, 0

    def __call__(self) -> None:
        self.done += 1
        if self.progress is not None:
            self.progress("joints searched for friction laws", self.done, self.a_zoom * (1 + len(ZOOMS)))

    def next_zoom(self) -> None:
        """Counts the remaining visits of a converged zoom as done."""
        self.zooms += 1
        self.done = self.a_zoom * self.zooms


def _simple(model: DynamicModel, reason: str) -> Selected:
    """The model with the simple laws and a note on the reason."""
    return Selected(model, notes=(f"friction: auto: {reason}; viscous, Coulomb and offset are used",))


def _rigid(converged: ConvergedFit, model: DynamicModel, prior: Prior | None) -> Array:
    """Inertial parameters for the rigid torque of load-dependent laws in the next search."""
    fit = converged.fit if prior is None else fit_ridge(converged.statistics, converged.fit, prior)
    return rigid_parameters(fit, model.n_inertial, prior)


def _prior_rows(wide: WideModel, prior: Prior | None) -> Array | None:
    """Rows of the prior for the common columns of all sub-models, weighted as in the result."""
    if prior is None:
        return None
    mean, S = base_prior(wide.model.with_terms(wide.kept).base(), prior)
    return np.asarray(np.sqrt(USUAL_WEIGHT) * np.column_stack([S, S @ mean]))


def _turns(motion: Sequence[Segment], moves: Sequence[Sequence[str]], reduction: Array, prismatic: BoolArray) -> Array:
    """Number of reversals of each joint, repetitions of a motion counted once, shape (n,); 0 if it hardly moves.

    Also 0 if its motor hardly moves because the motions of coupled joints cancel.
    """
    v = np.vstack(velocities(motion, moves))  # a joint may rest between two segments and reverse after
    motors = v @ reduction.T, np.abs(v) @ np.abs(reduction).T
    fast, motor, uncoupled = (np.array([fast_speed(x) for x in each.T]) for each in (v, *motors))
    return np.where(moving(fast, prismatic) & (motor > _UNDONE * uncoupled), reversals(v), 0)


def _steady(counts: Array) -> frozenset[int]:
    """Joints that reverse too rarely to select their laws; more reversals are required if most other joints have few."""
    needed = FEWEST_REVERSALS if np.median(counts) >= FEWEST_REVERSALS else MANY_REVERSALS
    return frozenset(np.flatnonzero(counts < needed).tolist())


def _notes(folds: Sequence[str], before: Array, after: Array) -> tuple[str, ...]:
    parts = "blocks of time" if folds[0].endswith("]") else "logs"
    return (
        f"friction: auto: laws selected per joint by cross-validation over {len(folds)} {parts}: "
        f"{after.mean():.3g} instead of {before.mean():.3g} N·m or N with viscous, Coulomb and offset",
    )


def _kept(model: DynamicModel, steady: Set[int]) -> tuple[str, ...]:
    """Note on the joints whose laws were not searched."""
    if not steady:
        return ()
    names = ", ".join(model.robot.joints[axis] for axis in sorted(steady))
    words = "reverses too rarely to select laws and keeps" if len(steady) == 1 else "reverse too rarely to select laws and keep"
    return (f"friction: auto: {names} {words} viscous, Coulomb and offset",)


def _state(wide: WideModel, chosen: Sequence[AppliedTerm]) -> dict[int, Laws]:
    """The candidates that correspond to the selected laws."""
    return {axis: {law.key: law for law in laws if law.item in chosen} for axis, laws in enumerate(wide.candidates)}
