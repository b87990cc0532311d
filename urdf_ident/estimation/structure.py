"""The search for friction laws over one set of factors: from joint to joint, one law at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..model.inertia import Array
from .candidates import REPLACES, Candidate, Key, Wide
from .statistic import StatisticSet
from .subsets import SubModels

#: A law must lower its joint's held-out squared error by this fraction.
LEAST_GAIN = 0.01
#: Another shape of the same law must lower it by this fraction.
LEAST_SHAPE_GAIN = 0.001
#: A column whose length the others make up to less than this share is not told from them by the data.
DISTINCT = 0.02
#: Gears lose at most this share of the load, and the data must tell it to a tenth of that.
MOST_LOST = 0.5
#: Rounds from joint to joint.
SWEEPS = 12

#: Axis → (law, side) → the candidate that was chosen.
State = Mapping[int, Mapping[Key, Candidate]]


@dataclass(frozen=True)
class Trial:
    """What one law was worth at one joint, beside all others that were chosen.

    Attributes:
        joint: Name of the joint.
        term: Name of the law.
        side: "joint" or "motor".
        shapes: The best of the shapes that were tried.
        chosen: Whether the joint has it.
        gain: By which fraction the law lowers the joint's held-out squared error; negative where it harms.
        std_error: Of that gain, over the folds.
        reason: Why it was chosen or not, in words.
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
        """The trial for JSON."""
        return {**vars(self), "shapes": dict(self.shapes)}


def changed(state: State, axis: int, *, add: Candidate | None = None, remove: Sequence[Key] = ()) -> dict[int, Any]:
    """A state with other laws at one joint.

    Args:
        state: The state.
        axis: Index of the joint.
        add: A law to add.
        remove: Laws to take out.

    Returns:
        The new state.
    """
    laws = {key: law for key, law in state[axis].items() if key not in remove}
    if add is not None:
        laws[add.key] = add
    return {**state, axis: laws}


def listed(state: State) -> list[Candidate]:
    """All laws of a state.

    Args:
        state: The state.

    Returns:
        Joint by joint.
    """
    return [law for laws in state.values() for law in laws.values()]


def columns_of(state: State) -> frozenset[int]:
    """What makes two states the same: the columns of the wide model.

    Args:
        state: The state.

    Returns:
        Indices into theta.
    """
    return frozenset(int(column) for law in listed(state) for column in law.columns)


class Search:
    """The search over one set of factors.

    Args:
        wide: The candidates.
        statistics: Of the wide model; each "log" is one fold.
        sigma: Row group → standard deviation of its residual [unit of torque].
        progress: Called after every joint.
    """

    def __init__(
        self, wide: Wide, statistics: StatisticSet, sigma: Mapping[str, float], progress: Callable[[], None] | None = None
    ) -> None:
        self.wide, self.sigma, self.progress = wide, sigma, progress
        every = [int(column) for laws in wide.candidates for law in laws for column in law.columns]
        self.place = {column: k for k, column in enumerate(every)}
        weights = {group: 1.0 / value for group, value in sigma.items()}
        self.sub = SubModels(statistics, weights, [int(c) for c in wide.common], every)
        self.joint_of_group = np.array([layout.joint for layout in statistics.layouts])
        self.nonnegative = np.array([wide.model.parameters[column].nonnegative for column in every])

    def run(self, state: State) -> dict[int, Any]:
        """From a first state to one that no single step makes better.

        Args:
            state: The first state.

        Returns:
            The last one.
        """
        now: dict[int, Any] = {axis: dict(laws) for axis, laws in state.items()}
        for _ in range(SWEEPS):
            before = columns_of(now)
            for axis in now:
                now = self._improve(now, axis)
                if self.progress is not None:
                    self.progress()
            if columns_of(now) == before:
                break
        return now

    def rmse(self, state: State) -> Array:
        """Held-out RMSE of a state.

        Args:
            state: The state.

        Returns:
            Root mean square over folds per row group, shape (groups,) [unit of torque].
        """
        squares = (self.sub.group_errors(self._index(state)) / np.maximum(self.sub.rows, 1.0)).mean(axis=0)
        return np.asarray(np.sqrt(squares) * np.array(list(self.sigma.values())))

    def _improve(self, state: dict[int, Any], axis: int) -> dict[int, Any]:
        for step in (self._unphysical, self._add, self._exchange, self._replace, self._drop):
            for _ in range(len(self.wide.candidates[axis])):  # a step ends by itself; ties could make it go round
                found = step(state, axis)
                if found is None:
                    break
                state = found
        return state

    def _index(self, state: State) -> list[int]:
        return [self.place[int(column)] for law in listed(state) for column in law.columns]

    def _places(self, options: Sequence[Candidate]) -> list[int]:
        return [self.place[int(law.columns[0])] for law in options]

    def _gain(self, old: State, axis: int, errors: Array) -> tuple[Array, Array]:
        """Mean and standard error over folds of what is gained, as a fraction of the joint's own error."""
        index = self._index(old)
        own = self.sub.group_errors(index)[:, self.joint_of_group == axis].sum(axis=1)
        gained = (self.sub.errors(index)[:, None] - errors.reshape(len(own), -1)) / np.maximum(own, 1e-300)[:, None]
        return gained.mean(axis=0), gained.std(axis=0, ddof=1) / np.sqrt(len(own))

    def _options(self, rest: State, axis: int) -> list[Candidate]:
        """Single columns that may be added to a state: not there yet, nor what a law that is there replaces."""
        taken = {name for key in rest[axis] for name in REPLACES.get(key[0], ())}
        options = [
            law for law in self.wide.candidates[axis]
            if law.key not in rest[axis] and law.key[0] not in taken and len(law.columns) == 1
        ]  # fmt: skip
        return [law for law, good in zip(options, self._excited(rest, options), strict=True) if good]

    def _excited(self, rest: State, options: Sequence[Candidate]) -> list[bool]:
        """Whether the data tell the laws' columns from those of a state, and a lost load from nothing."""
        share, length = self.sub.distinct(self._index(rest), self._places(options))
        needed = [10.0 / MOST_LOST if law.item.term.loaded else 0.0 for law in options]
        return [bool(s > DISTINCT and n > least) for s, n, least in zip(share, length, needed, strict=True)]

    def _offenders(self, state: State, axis: int) -> list[Key]:
        """Laws at a joint that come out with a sign, or a share of the load, that cannot be."""
        index = self._index(state)
        theta, error = self.sub.estimates(index)
        at = {k: row for row, k in enumerate(index)}
        bad = []
        for key, law in state[axis].items():
            for k in (self.place[int(column)] for column in law.columns):
                negative = self.nonnegative[k] and theta[at[k]] < -error[at[k]]
                if negative or (law.item.term.loaded and theta[at[k]] > MOST_LOST):
                    bad.append(key)
        return list(dict.fromkeys(bad))

    def _unphysical(self, state: State, axis: int) -> dict[int, Any] | None:
        bad = self._offenders(state, axis)
        return changed(state, axis, remove=bad[:1]) if bad else None

    def _add(self, state: State, axis: int) -> dict[int, Any] | None:
        options = self._options(state, axis)
        if not options:
            return None
        mean, spread = self._gain(state, axis, self.sub.with_each(self._index(state), self._places(options)))
        for k in np.argsort(-mean):
            if mean[k] > max(LEAST_GAIN, spread[k]):
                new = changed(state, axis, add=options[k])
                if not self._offenders(new, axis):
                    return new
        return None

    def _exchange(self, state: State, axis: int) -> dict[int, Any] | None:
        """Another shape, or another law in the place of one."""
        best: tuple[float, dict[int, Any]] | None = None
        for key, law in state[axis].items():
            rest = changed(state, axis, remove=[key])
            options = [other for other in self._options(rest, axis) if other is not law]
            if not options:
                continue
            mean, spread = self._gain(state, axis, self.sub.with_each(self._index(rest), self._places(options)))
            for k, other in enumerate(options):
                needed = LEAST_SHAPE_GAIN if other.key == key else max(LEAST_GAIN, spread[k])
                if mean[k] > max(needed, best[0] if best else 0.0):
                    new = changed(rest, axis, add=other)
                    if not self._offenders(new, axis):
                        best = (float(mean[k]), new)
        return best[1] if best else None

    def _replace(self, state: State, axis: int) -> dict[int, Any] | None:
        """A law of many columns in the place of those that it contains."""
        for law in self.wide.candidates[axis]:
            if len(law.columns) == 1 or law.key in state[axis]:
                continue
            new = changed(state, axis, add=law, remove=[key for key in state[axis] if key[0] in REPLACES[law.key[0]]])
            mean, spread = self._gain(state, axis, self.sub.errors(self._index(new)))
            if mean[0] > max(LEAST_GAIN, spread[0]) and not self._offenders(new, axis):
                return new
        return None

    def _drop(self, state: State, axis: int) -> dict[int, Any] | None:
        """Takes out the law that is missed least, if it is not missed."""
        best: tuple[float, dict[int, Any]] | None = None
        for key in state[axis]:
            new = changed(state, axis, remove=[key])
            mean, spread = self._gain(state, axis, self.sub.errors(self._index(new)))
            missed = -float(mean[0]) > max(LEAST_GAIN, float(spread[0]))
            if not missed and (best is None or mean[0] > best[0]) and not self._offenders(new, axis):
                best = (float(mean[0]), new)
        return best[1] if best else None

    def trials(self, state: State) -> tuple[Trial, ...]:
        """What every law is worth at every joint, beside the chosen ones.

        Args:
            state: The chosen laws.

        Returns:
            Joint by joint, in the order of the family.
        """
        found = []
        for axis, laws in enumerate(self.wide.candidates):
            for key in dict.fromkeys(law.key for law in laws):
                law, gain, spread, reason = self._judge(state, axis, [law for law in laws if law.key == key])
                joint = self.wide.model.robot.joints[axis]
                found.append(Trial(joint, *key, law.shapes, key in state[axis], gain, spread, reason))
        return tuple(found)

    def _judge(self, state: State, axis: int, versions: Sequence[Candidate]) -> tuple[Candidate, float, float, str]:
        """The best version of one law beside the others: gain, its standard error, and a word on the decision."""
        key = versions[0].key
        there = state[axis].get(key)
        if there is not None:
            mean, spread = self._gain(state, axis, self.sub.errors(self._index(changed(state, axis, remove=[key]))))
            return there, -float(mean[0]), float(spread[0]), "missed when it is left out"
        taken = [other[0] for other in state[axis] if key[0] in REPLACES.get(other[0], ())]
        if taken:
            return versions[0], 0.0, 0.0, f"{taken[0]} contains it"
        if len(versions[0].columns) > 1:
            new = changed(state, axis, add=versions[0], remove=[k for k in state[axis] if k[0] in REPLACES[key[0]]])
            mean, spread = self._gain(state, axis, self.sub.errors(self._index(new)))
            reason = "takes signs that cannot be" if self._offenders(new, axis) else "gains too little"
            return versions[0], float(mean[0]), float(spread[0]), reason
        excited = [law for law, good in zip(versions, self._excited(state, versions), strict=True) if good]
        if not excited:
            return versions[0], 0.0, 0.0, "the data do not excite it here"
        mean, spread = self._gain(state, axis, self.sub.with_each(self._index(state), self._places(excited)))
        k = int(np.argmax(mean))
        odd = mean[k] > max(LEAST_GAIN, spread[k]) and self._offenders(changed(state, axis, add=excited[k]), axis)
        return excited[k], float(mean[k]), float(spread[k]), "takes signs that cannot be" if odd else "gains too little"
