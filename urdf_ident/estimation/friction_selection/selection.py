"""``friction: auto``: which friction laws each joint needs, by held-out error.

One pass over the data carries every law with every shape that is tried as columns of its own, so that all sub-models are
column subsets of the same small factors (:mod:`.subsets`). A sub-model is judged by its error on logs (parts in time,
where there is one log) that took no part in estimating it. Joints share their inertial parameters, so errors are those
of the whole robot, while the search goes from joint to joint: add the law that gains most, exchange shapes and
laws, take out what is not missed.

Parsimony: a law stays if it lowers the held-out error by more than one standard error of that gain over the folds, and by
more than :data:`.joint_search.LEAST_GAIN` of its joint's own error. Excitation: a column that the data hardly tell from
those already there, or a load that is no more than noise, does not come into question at that joint. Physics: what
cannot be negative (:attr:`Term.nonnegative`) must not come out so.

Load-dependent laws read the rigid torque of the fit before; the search is repeated with that of its own result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from ...linalg import Array
from ...model.dynamic_model import DynamicModel
from ...model.terms import AppliedTerm, RotorInertia
from ...samples import Segment
from ...statistics.fit import fit_base
from ...statistics.folds import folds_of
from .candidates import ZOOMS, Wide, wide_model
from .joint_search import Laws
from .reference_torque import Build, rigid_parameters, settle
from .structure import Search, Trial, listed

#: One log must hold this much motion [s] to be cut into parts that say something about each other.
LEAST_SECONDS = 10.0
#: A joint moves one way only if it moves the other way by less than this share of the time [1], slow motion left out [1].
_SHARE, _SLOW = 0.01, 0.05


@dataclass(frozen=True, eq=False)
class Selected:
    """A model whose friction was found.

    Attributes:
        model: The model.
        trials: What was tried and what it gained, joint by joint; empty where nothing was tried.
        folds: What was held out in turn.
        groups: Row groups.
        before, after: Held-out RMSE with the simple laws and with the chosen ones, shape (groups,) [unit of torque].
        notes: What a user should know, in words.
    """

    model: DynamicModel
    trials: tuple[Trial, ...] = ()
    folds: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    before: Array = field(default_factory=lambda: np.zeros(0))
    after: Array = field(default_factory=lambda: np.zeros(0))
    notes: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """The entry ``selection`` of identification.json; empty where nothing was tried."""
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
    progress: Callable[[str, int], None] | None = None,
) -> Selected:
    """Finds which friction laws each joint needs.

    Args:
        model: The dynamic model with the simple laws, from which the search starts.
        build: Statistics of a model on the data.
        motion: The segments behind them.
        method: "ols" or "wls", as in :func:`fit_base`.
        progress: Called with ``"joints searched for friction laws"`` and their number.

    Returns:
        The model with the chosen laws; the given one, with a note that says why, where the data cannot choose.

    Raises:
        EstimationError: The data are too few for any estimate.
    """
    reason = _too_little(motion)
    if reason:
        why = f"friction: auto: {reason}; viscous, Coulomb and offset are used"
        return Selected(model, notes=(why, *_one_way(model, motion)))
    visits = iter(range(1, 1_000_000))
    tick = None if progress is None else lambda: progress("joints searched for friction laws", next(visits))
    settled = settle(model, build, partial(fit_base, base=model.base(), method=method))
    before, chosen = np.zeros(0), [item for item in model.terms if item.side == "joint" and item.term.name != RotorInertia.name]
    for zoom in ((), *ZOOMS):
        wide = wide_model(model, motion, chosen, zoom)
        state = _state(wide, chosen)
        theta = rigid_parameters(settled.fit, model.n_inertial)
        statistics = folds_of(build(wide.model.with_reference(theta)))
        search = Search(wide, statistics, settled.fit.sigma, tick)
        before = before if len(before) else search.rmse(state)
        state = search.run(state, many=zoom == ZOOMS[-1])
        chosen = [law.item for law in listed(state)]
        narrow = wide.narrow(listed(state))
        settled = settle(narrow, build, partial(fit_base, base=narrow.base(), method=method), start=theta)
    after = search.rmse(state)
    return Selected(
        narrow, search.trials(state), statistics.logs, statistics.groups, before, after,
        _notes(statistics.logs, before, after) + _one_way(model, motion),
    )  # fmt: skip


def _too_little(motion: Sequence[Segment]) -> str:
    """Why the data cannot choose, or nothing."""
    seconds = sum(part.repeats * len(part) / part.rate for part in motion)
    if len({part.log for part in motion}) > 1 or seconds >= LEAST_SECONDS:
        return ""
    return (
        f"one log with {seconds:.3g} s of motion cannot tell friction laws apart (that takes {LEAST_SECONDS:g} s, or more logs)"
    )


def _one_way(model: DynamicModel, motion: Sequence[Segment]) -> tuple[str, ...]:
    """Names joints that never reverse: to them a constant and dry friction are the same."""
    found = []
    for axis, joint in enumerate(model.robot.joints):
        v = np.concatenate([part.v[:, axis] for part in motion])
        moving = v[np.abs(v) > _SLOW * np.percentile(np.abs(v), 95)]
        if len(moving) and min(np.mean(moving > 0), np.mean(moving < 0)) < _SHARE:
            found.append(joint)
    if not found:
        return ()
    return (
        f"no reversals of {', '.join(found)}: Coulomb friction and offset look the same there, their sum is in either one; "
        "record motions both ways",
    )


def _notes(folds: Sequence[str], before: Array, after: Array) -> tuple[str, ...]:
    parts = "parts in time" if folds[0].endswith("]") else "logs"
    return (
        f"friction: auto: laws chosen joint by joint by their error on {len(folds)} {parts} held out in turn: "
        f"{after.mean():.3g} instead of {before.mean():.3g} N·m or N with viscous, Coulomb and offset",
    )


def _state(wide: Wide, chosen: Sequence[AppliedTerm]) -> dict[int, Laws]:
    """The candidates that are the chosen laws."""
    return {axis: {law.key: law for law in laws if law.item in chosen} for axis, laws in enumerate(wide.candidates)}
