"""Search for friction laws on one set of factors, from joint to joint until nothing changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...friction import Offset, Viscous
from ...linalg import Array
from ...statistics.statistic import StatisticSet
from .candidates import CONVEX, REPLACES, Candidate, WideModel
from .joint_search import JointSearch, Laws, usual_side
from .springs import spring_columns
from .subsets import SubModels

#: Maximum number of sweeps over the joints.
SWEEPS = 8

#: Axis → its laws.
State = Mapping[int, Laws]
#: Why a law is kept without a gain.
_WHY_KEPT = {
    Offset.name: "gravity parameters would otherwise replace it",
    Viscous.name: "every drive has it, and another law would be extrapolated in its place",
}


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

    def as_dict(self) -> dict[str, Any]:
        """Returns the trial for JSON."""
        return {**vars(self), "shapes": dict(self.shapes)}


def listed(state: State) -> list[Candidate]:
    """Returns all laws of a state.

    Returns:
        Joint by joint.
    """
    return [law for laws in state.values() for law in laws.values()]


def kept_without_gain(wide: WideModel, state: State) -> list[Candidate]:
    """Returns biases and viscous friction for the joints whose selected laws contain none, or whose motors'.

    Without viscous friction a law that replaces it (cubic, sublinear) takes up all of it, and is extrapolated.

    Returns:
        At most one of each per joint.
    """
    found = []
    for axis, candidates in enumerate(wide.candidates):
        held = {name for law in state[axis].values() for name in (law.key[0], *REPLACES.get(law.key[0], ()))}
        wanted = {(Offset.name, "joint"), (Viscous.name, usual_side(candidates))}
        found += [law for law in candidates if law.key in wanted and law.key[0] not in held]
    return found


class StructureSearch:
    """Search on one set of factors.

    Args:
        wide: The candidates.
        statistics: Statistics of the wide model; each "log" is one fold.
        sigma: Row group → standard deviation of its residual [unit of torque].
        progress: Called after every joint.
        prior_rows: Prior knowledge of the common columns, ``[common | value]``, shape (r, c + 1), or None.
        steady: Axes whose laws are not changed.
        few: Axes that reverse too rarely for friction laws with many columns.
    """

    def __init__(
        self,
        wide: WideModel,
        statistics: StatisticSet,
        sigma: Mapping[str, float],
        progress: Callable[[], None] | None = None,
        prior_rows: Array | None = None,
        steady: Set[int] = frozenset(),
        few: Set[int] = frozenset(),
    ) -> None:
        self.steady, self.few = steady, few
        self.wide, self.sigma, self.progress = wide, sigma, progress
        candidates = [law for laws in wide.candidates for law in laws]
        every = [int(column) for law in candidates for column in law.columns]
        self.place = {column: k for k, column in enumerate(every)}
        weights = {group: 1.0 / value for group, value in sigma.items()}
        self.sub = SubModels.of(statistics, weights, [int(c) for c in wide.common], every, prior_rows)
        self.joint_of_group = [layout.joint for layout in statistics.layouts]
        self.springs = [spring_columns(wide, statistics, weights, axis) for axis in range(len(wide.candidates))]
        self.nonnegative = np.array([sign or law.key[0] in CONVEX for law in candidates for sign in law.item.term.nonnegative])

    def run(self, state: State, *, many: bool = False) -> dict[int, Laws]:
        """Searches from an initial state until no step improves it.

        Args:
            many: Whether laws with many columns are candidates.
        """
        now: dict[int, Laws] = dict(state)
        converged: set[int] = set(self.steady)
        for _ in range(SWEEPS):
            for axis in now:
                if axis in converged:
                    continue
                found = self._at(now, axis).run(now[axis], many=many)
                converged = (converged if set(found.values()) == set(now[axis].values()) else set(self.steady)) | {axis}
                now[axis] = found
                if self.progress is not None:
                    self.progress()
            if len(converged) == len(now):
                break
        return now

    def rmse(self, state: State) -> Array:
        """Returns the held-out RMSE of a state.

        Returns:
            Root mean square over folds per row group, shape (groups,) [unit of torque].
        """
        return np.asarray(np.sqrt(self.squares(state).mean(axis=0)))

    def squares(self, state: State) -> Array:
        """Returns the held-out squared errors of a state.

        Returns:
            Means over rows, shape (folds, groups) [unit of torque squared].
        """
        sigma = np.array(list(self.sigma.values()))
        return np.asarray(self.sub.group_errors(self._columns(listed(state))) * sigma**2 / np.maximum(self.sub.weight, 1.0))

    def trials(self, state: State, spared: Sequence[Candidate] = ()) -> tuple[Trial, ...]:
        """Returns the gain of every law at every joint in addition to the selected ones.

        Args:
            spared: Laws that joints keep without a gain (:func:`kept_without_gain`).

        Returns:
            Joint by joint, in the order of the family of laws.
        """
        found, kept = [], {(law.item.axis, law.key) for law in spared}
        for axis, candidates in enumerate(self.wide.candidates):
            joint, search = self.wide.model.robot.joints[axis], self._at(state, axis)
            for key in dict.fromkeys(law.key for law in candidates):
                one, spare = search.law_gain(state[axis], key), (axis, key) in kept
                reason = f"kept without a gain, because {_WHY_KEPT[key[0]]}" if spare else one.reason
                found.append(Trial(joint, *key, one.law.shapes, spare or key in state[axis], one.gain, one.std_error, reason))
        return tuple(found)

    def _columns(self, laws: list[Candidate]) -> list[int]:
        return [self.place[int(column)] for law in laws for column in law.columns]

    def _at(self, state: State, axis: int) -> JointSearch:
        """The search at one joint, given the laws of the others."""
        others = [law for other, laws in state.items() if other != axis for law in laws.values()]
        own = self._columns(list(self.wide.candidates[axis]))
        groups = [k for k, joint in enumerate(self.joint_of_group) if joint == axis]
        sub = self.sub.focus(self._columns(others), own, groups)
        trained, springs, few = self.wide.trained[axis], self.springs[axis], axis in self.few
        return JointSearch(sub, self.wide.candidates[axis], self.nonnegative[own], trained, springs, few)
