"""Forward and backward steps to the friction laws of one joint, given those of all others, by held-out errors.

A step adds a law, exchanges one, or removes one; of those that gain what they need (:meth:`JointSearch.needed`) and are
physically possible, the one with the largest gain is made. Gains are mean relative reductions of the joint's held-out squared
error (:mod:`.sub_models`). More columns must gain more than the error of that gain, fewer must not lose as much. The simple
laws stay, unless a law contains them, or is dry friction too instead of Coulomb's.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain, pairwise

import numpy as np

from ...friction import MOST_FRICTION, Coulomb, Offset, Trained, conditions, law_rows
from ...linalg import Array, positive
from ...statistics.folds import standard_error
from .candidates import REPLACES, Candidate, Key, Laws
from .sub_models import DISTINCT, Columns, JointSubModels

#: A law must lower its joint's held-out squared error by this fraction, another shape of the same law by the second one.
LEAST_GAIN, LEAST_SHAPE_GAIN = 0.01, 1e-4
#: Standard errors that dry friction of another kind must gain instead of Coulomb's, which is the same in faster motion.
SURE_CHANGE = 2.0
#: A spring must lower the squared held-out error by more than this part: it is a statement about the mechanics of the axis.
#: Smaller effects arise from unmodelled friction or from what the URDF's geometry lacks, and grow beyond the positions of the
#: data.
MOST_OF_IT = 0.5
#: Largest plausible share of the load that is lost in gears; its standard error must be below a tenth of this.
MOST_LOST = 0.5
#: Largest friction at low speed over that at the fastest trained speed. Static friction of lubricated contacts is up to about
#: twice the sliding friction; a higher peak explains the few samples near reversals by chance.
MOST_AT_LOW_SPEED = 3.0
#: Why a simple law is kept without a gain.
_DRIVE = "every drive has it, and another law would be extrapolated in its place"
_WHY_KEPT = {Offset.name: "gravity parameters would otherwise replace it"}
#: Number of speeds per direction at which friction must be dissipative; share of the largest value that counts as rounding.
_SPEEDS, _ROUNDING = 8, 1e-9


class JointSearch:
    """Search at one joint.

    Args:
        sub_models: Sub-models in the joint's candidate columns.
        candidates: The candidates.
        simple: The simple laws.
        trained: By side, the range of speed and load of the axis: there, and beyond, friction must dissipate.
        springs: The springs that the data tell from gravity (:func:`.candidates.visible_springs`).
        few: Whether the joint reverses too rarely for friction laws with many columns.
    """

    def __init__(
        self,
        sub_models: JointSubModels,
        candidates: Sequence[Candidate],
        simple: Laws,
        trained: Mapping[str, Trained],
        springs: Collection[Key],
        few: bool = False,
    ) -> None:
        self.sub_models, self.candidates, self.simple, self.few = sub_models, candidates, simple, few
        self.trained, self.springs = trained, springs
        ends = np.cumsum([0, *(len(law.at) for law in candidates)]).tolist()
        self.at = {law: tuple(range(*span)) for law, span in zip(candidates, pairwise(ends), strict=True)}
        self.single = [law for law in candidates if len(law.at) == 1]

    def run(self, laws: Laws, *, many: bool = False) -> Laws:
        """Searches from given laws until no step improves them; no set of laws is visited twice.

        Args:
            many: Whether laws with many columns are candidates.
        """
        visited = [laws]
        while new := next((step for step in self._steps(laws, many) if step is not None and step not in visited), None):
            laws = new
            visited.append(laws)
        return laws

    def _steps(self, laws: Laws, many: bool) -> Iterator[Laws | None]:
        """The next laws by each kind of step, in the order in which they are tried; None where a kind offers none."""
        # drop a law that is impossible
        without_bad = (self._without(laws, key) for key in self.violations(laws))
        yield next((fewer for fewer in without_bad if self._complete(fewer)), None)
        # add a law of one column
        yield self._best(laws, self._added(laws))
        # exchange one for another, or for one of other shapes
        single = [self._without(laws, key) for key, law in laws.items() if len(law.at) == 1]
        yield self._best(laws, [new for fewer in single for new in self._added(fewer)])
        # drop a law that is not needed
        yield self._best(laws, [self._without(laws, key) for key in laws])
        # add a spring, if there is none
        if not any(law.law.conservative for law in laws.values()):
            yield self._best(laws, [self._with(laws, law) for law in self.candidates if law.key in self.springs])
        # add a friction law of many columns
        if many and not self.few:
            wide = [law for law in self.candidates if len(law.at) > 1 and not law.law.conservative and law.key not in laws]
            yield self._best(laws, [self._with(laws, law) for law in wide])

    def _best(self, laws: Laws, options: Sequence[Laws]) -> Laws | None:
        """The laws of the largest gain that may follow."""
        news = [new for new in options if self._complete(new)]
        gains, errors = self.gains(laws, news)
        for k in map(int, np.argsort(-gains)):
            if gains[k] > self.needed(laws, news[k], float(errors[k])) and self._possible(laws, news[k]):
                return news[k]
        return None

    def _complete(self, laws: Laws) -> bool:
        """Whether laws contain the simple ones, or other dry friction instead of Coulomb's."""
        contained = {name for key in laws for name in REPLACES.get(key[0], ())}
        dry = {(Coulomb.name, key[1]) for key, law in laws.items() if "dry" in law.law.changing.values()}
        return all(key in laws or key in dry or key[0] in contained for key in self.simple)

    def _with(self, laws: Laws, law: Candidate) -> Laws:
        """The laws with another one, which replaces those that it contains."""
        contained = REPLACES.get(law.key[0], ())
        return {**{key: other for key, other in laws.items() if key[0] not in contained}, law.key: law}

    def _without(self, laws: Laws, key: Key) -> Laws:
        """The laws without one; simple ones that it contains return."""
        back = {other: law for other, law in self.simple.items() if other[0] in REPLACES.get(key[0], ())}
        return {**{other: law for other, law in laws.items() if other != key}, **back}

    def _added(self, laws: Laws) -> list[Laws]:
        """The laws with one more of one column: distinguishable from the present ones, and a lost load is measurable."""
        contained = {name for key in laws for name in REPLACES.get(key[0], ())}
        options = [law for law in self.single if law.key not in laws and law.key[0] not in contained]
        return [self._with(laws, law) for law in self._measurable(laws, options)]

    def _measurable(self, laws: Laws, options: Sequence[Candidate]) -> list[Candidate]:
        share, length = self.sub_models.distinct(self._columns(laws), [self.at[law][0] for law in options])
        needed = [10.0 / MOST_LOST if law.law.loaded else 0.0 for law in options]
        return [law for law, s, n, least in zip(options, share, length, needed, strict=True) if s > DISTINCT and n > least]

    def _columns(self, laws: Laws) -> Columns:
        return tuple(chain.from_iterable(map(self.at.__getitem__, laws.values())))

    def gains(self, old: Laws, news: Sequence[Laws]) -> tuple[Array, Array]:
        """Returns mean gains over folds, as fractions of the joint's own error, and their standard errors, shape (news,)."""
        before, own = self.sub_models.error(self._columns(old))
        after = self.sub_models.errors([self._columns(laws) for laws in news])
        gained = (before[:, None] - after) / positive(own)[:, None]
        return gained.mean(axis=0), standard_error(gained)

    def needed(self, old: Laws, new: Laws, error: float) -> float:
        """Returns the gain that new laws need: √k standard errors with k more columns, at least :data:`LEAST_GAIN`.

        With fewer columns, they may lose as much. To replace Coulomb friction, more is needed.

        Args:
            error: Standard error of the gain.
        """
        changed = set(old) ^ set(new)
        changed -= {(name, key[1]) for key in new for name in REPLACES.get(key[0], ())}
        if not changed:
            return LEAST_SHAPE_GAIN
        more = sum(len(law.at) for law in new.values()) - sum(len(law.at) for law in old.values())
        sure = float(np.sqrt(max(abs(more), 1))) * (SURE_CHANGE if changed & set(old) & set(self.simple) else 1.0)
        least = max(MOST_OF_IT if changed & set(self.springs) else LEAST_GAIN, sure * error)
        return -least if more < 0 else least

    def _possible(self, old: Laws, new: Laws) -> bool:
        """Whether laws violate nothing that others do not."""
        return set(self.violations(new)) <= set(self.violations(old))

    def _by_law(self, laws: Laws, values: Array) -> dict[Key, Array]:
        end = 0
        return {key: values[end : (end := end + len(law.at))] for key, law in laws.items()}

    def violations(self, laws: Laws) -> list[Key]:
        """Returns the laws of an impossible sign or share of the load, or the law responsible for impossible friction."""
        theta, root = self.sub_models.estimates(self._columns(laws))
        values, errors = (self._by_law(laws, x) for x in (theta, np.linalg.norm(root, axis=1)))
        bad = [
            key
            for key, law in laws.items()
            if (values[key] < -errors[key])[list(law.nonnegative)].any() or (law.law.loaded and values[key][0] > MOST_LOST)
        ]
        responsible = (self._responsible(laws, side, values, root) for side in self.trained) if not bad else ()
        return bad or [key for key in responsible if key is not None][:1]

    def _responsible(self, laws: Laws, side: str, values: Mapping[Key, Array], root: Array) -> Key | None:
        """The law mainly responsible if the friction of one side significantly drives the axis, or is too large.

        A law that the data hardly determine, as a narrow Stribeck peak at speeds between the samples, may be hundreds of times
        the measured torque, or the friction at other speeds. Friction that every drive has is not refused for its size, as most
        samples of a joint that hardly ever moves do not show it; nor are others for being beside it.
        """
        given, sliding = self.trained[side], [law.law for law in laws.values() if law.applied.side == side]
        if not sliding:
            return None
        ranges = [given.mirrored_if_odd([law]) for law in sliding]
        trained = given if given in ranges else ranges[0]  # both directions alike only where all laws are
        speed, _, slope = conditions(trained, _SPEEDS)
        nothing = np.zeros(len(speed))[:, None]
        blocks = {
            key: law_rows(law.law, trained, _SPEEDS) if law.applied.side == side else nothing.repeat(len(law.at), axis=1)
            for key, law in laws.items()
        }
        torques = {key: block @ values[key] for key, block in blocks.items()}
        value, error = np.sum(list(torques.values()), axis=0), np.linalg.norm(np.hstack(list(blocks.values())) @ root, axis=1)
        least = int(np.argmin(value + error))
        if value[least] + error[least] < -_ROUNDING * np.abs(value).max():
            return min(torques, key=lambda key: torques[key][least])
        friction = np.where(slope, -np.inf, value)
        most, fastest = int(np.argmax(friction)), float(friction[np.isin(speed, (trained.low, trained.high))].max())
        allowed = min(MOST_FRICTION * trained.load, MOST_AT_LOW_SPEED * max(fastest, 0.0))
        resist = {key: torque[most] for key, torque in torques.items() if torque[most] > 0 and key not in self.simple}
        together = sum(resist.values())
        if friction[most] > allowed and (together > allowed or friction[most] - together <= allowed):
            return max(resist, key=lambda key: resist[key])
        return None

    def verdict(self, laws: Laws, key: Key) -> tuple[Candidate, float, float, str]:
        """Returns the best version of a law, its gain in addition to the selected ones, the error, and the reason in words."""
        versions = [law for law in self.candidates if law.key == key]
        if key in laws:
            gain, error = (float(x[0]) for x in self.gains(self._without(laws, key), [laws]))
            missed = gain > max(LEAST_GAIN, error) or self._complete(self._without(laws, key))
            reason = "missed when it is left out" if missed else f"not missed, but kept: {_WHY_KEPT.get(key[0], _DRIVE)}"
            return laws[key], gain, error, reason
        spring, wide = versions[0].law.conservative, len(versions[0].at) > 1
        container = next((other[0] for other in laws if key[0] in REPLACES.get(other[0], ())), None)
        options = versions if wide else self._measurable(laws, versions)
        reasons = {
            "the data do not tell it from gravity or an offset": spring and key not in self.springs,
            "the joint reverses too rarely for so many parameters": self.few and wide and not spring,
            f"{container} contains it": container is not None,
            "the data do not excite it here": not options,
        }
        for reason, holds in reasons.items():
            if holds:
                return versions[0], 0.0, 0.0, reason
        news = [self._with(laws, law) for law in options]
        gains, errors = self.gains(laws, news)
        k = int(np.argmax(gains))
        gain, error, reason = float(gains[k]), float(errors[k]), "gains too little"
        if gain > self.needed(laws, news[k], error):
            reason = "" if self._possible(laws, news[k]) else "needs parameters that cannot be"
        elif spring and gain > max(LEAST_GAIN, error):
            reason = "explains less than half of what remains"
        return options[k], gain, error, reason
