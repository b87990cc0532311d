"""Forward and backward steps to the friction laws of one joint, given those of all others, by held-out errors.

A step adds a law, exchanges one, or removes one; of those that gain what they need (:meth:`JointSearch.needed`) and are
physically possible, the one with the largest gain is made. Gains are mean relative reductions of the joint's held-out squared
error (:mod:`.sub_models`). More columns must gain more than the error of that gain, fewer must not lose as much.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, pairwise

import numpy as np

from ...friction import MOST_FRICTION, Trained, conditions, law_rows
from ...linalg import Array, positive
from ...statistics.folds import standard_error
from .candidates import OF_EVERY_DRIVE, REPLACES, Candidate, Key, Laws
from .sub_models import DISTINCT, Columns, JointSubModels

#: A law must lower its joint's held-out squared error by this fraction, another shape of the same law by the second one.
LEAST_GAIN, LEAST_SHAPE_GAIN = 0.01, 1e-4
#: Standard errors that a law must gain which replaces friction that every drive has: even if a short log does not need it, or
#: another law can replace it there, it is needed in faster motion.
SURE_CHANGE = 2.0
#: A spring must gain this many standard errors and lower the squared held-out error by more than this part, and its torque must
#: vary by this share of its joint's: a spring is a statement about the mechanics of the axis. Smaller effects arise by chance,
#: from unmodelled friction or from what the URDF's geometry lacks, and grow beyond the positions of the data.
SURE_SPRING, MOST_OF_IT, LEAST_SPRING = 2.0, 0.5, 0.02
#: Largest plausible share of the load that is lost in gears; its standard error must be below a tenth of this.
MOST_LOST = 0.5
#: Largest friction at low speed over that at the fastest trained speed. Static friction of lubricated contacts is up to about
#: twice the sliding friction; a higher peak explains the few samples near reversals by chance.
MOST_AT_LOW_SPEED = 3.0
#: Number of speeds per direction at which friction must be dissipative; share of the largest value that counts as rounding.
_SPEEDS, _ROUNDING = 8, 1e-9


class JointSearch:
    """Search at one joint.

    Args:
        sub_models: Sub-models in the joint's candidate columns.
        candidates: The candidates.
        usual_side: Side of the friction that every drive has.
        trained: By side, the range of speed and load of the axis: there, and beyond, friction must dissipate.
        springs: The springs that the data tell from gravity, and their varying torques (:func:`.candidates.visible_springs`).
        few: Whether the joint reverses too rarely for friction laws with many columns.
    """

    def __init__(
        self,
        sub_models: JointSubModels,
        candidates: Sequence[Candidate],
        usual_side: str = "joint",
        trained: Mapping[str, Trained] | None = None,
        springs: Mapping[Key, Array] | None = None,
        few: bool = False,
    ) -> None:
        self.sub_models, self.candidates, self.few = sub_models, candidates, few
        self.trained, self.springs = trained or {}, springs or {}
        ends = np.cumsum([0, *(len(law.at) for law in candidates)]).tolist()
        self.at = {law: tuple(range(*span)) for law, span in zip(candidates, pairwise(ends), strict=True)}
        self.single = [law for law in candidates if len(law.at) == 1]
        self.usual = {(name, usual_side) for name in OF_EVERY_DRIVE}

    def run(self, laws: Laws, *, many: bool = False) -> Laws:
        """Searches from given laws until no step improves them; no set of laws is visited twice.

        Losses are relative to the error with a law, gains to that without it, so that where folds differ the search may go in
        a circle. Of the sets in it, the one with the lowest held-out error is returned.

        Args:
            many: Whether laws with many columns are candidates.
        """
        visited, returned = [laws], list[int]()  # where a step would have returned to
        for _ in range(len(self.candidates) + 1):
            for new in (step for step in self._steps(visited[-1], many) if step is not None):
                if new not in visited:
                    visited.append(new)
                    break
                returned.append(visited.index(new))
            else:
                break
        circle = visited[min(returned) : -1] if returned else []
        sound = [laws for laws in circle if not self.violations(laws)]
        return min((visited[-1], *sound), key=lambda laws: float(self.sub_models.error(self._columns(laws))[0].sum()))

    def _steps(self, laws: Laws, many: bool) -> Iterator[Laws | None]:
        """The next laws by each kind of step, in the order in which they are tried; None where a kind offers none."""
        # drop a law that is impossible, or a spring without effect
        bad = self.violations(laws) or self._negligible(laws)
        yield self._without(laws, bad[0]) if bad else None
        # add a law of one column
        yield self._best(laws, self._added(laws))
        # exchange one for another
        single = [self._without(laws, key) for key, law in laws.items() if len(law.at) == 1]
        yield self._best(laws, [new for fewer in single for new in self._added(fewer)])
        # drop a law that is not needed
        yield self._best(laws, self._fewer(laws))
        # add a spring, if there is none
        if not any(law.law.conservative for law in laws.values()):
            yield self._best(laws, [self._with(laws, law) for law in self.candidates if law.key in self.springs])
        # add a friction law of many columns
        if many and not self.few:
            wide = [law for law in self.candidates if len(law.at) > 1 and not law.law.conservative and law.key not in laws]
            yield self._best(laws, [self._with(laws, law) for law in wide])
        # add or drop a law and adapt all others to it
        yield self._two_steps(laws)

    def _best(self, laws: Laws, news: Sequence[Laws]) -> Laws | None:
        """The laws of the largest gain that may follow."""
        gains, errors = self.gains(laws, news)
        for k in map(int, np.argsort(-gains)):
            if gains[k] > self.needed(laws, news[k], float(errors[k])) and not self._impossible(laws, news[k]):
                return news[k]
        return None

    def _two_steps(self, laws: Laws) -> Laws | None:
        """Adds or removes a law, adapts the shapes of the others to it, and only then removes laws that are not needed.

        Similar laws compensate for each other while the shapes are wrong, a local optimum that single steps do not leave.
        """
        starts = [self._without(laws, key) for key in laws if key[0] not in REPLACES]
        added = self._added(laws)
        best: dict[Key, Laws] = {}
        for k in np.argsort(-self.gains(laws, added)[0], kind="stable"):
            best.setdefault(next(reversed(added[k])), added[k])
        for new in (*starts, *best.values()):
            fewer: Laws | None = new
            while fewer is not None:
                new = self._reshaped(fewer)
                fewer = self._best(new, self._fewer(new))
            if set(new) != set(laws) and not self.violations(new):
                gain, error = (float(x[0]) for x in self.gains(laws, [new]))
                if gain > max(self.needed(laws, new, error), -LEAST_GAIN):
                    return new
        return None

    def _reshaped(self, laws: Laws) -> Laws:
        """The same laws with the shapes of the largest gain, changed one after the other."""
        for _ in self.candidates:
            news = [{**laws, law.key: law} for law in self.single if law.key in laws and laws[law.key] is not law]
            gain, _ = self.gains(laws, news)
            if gain.max(initial=0.0) <= LEAST_SHAPE_GAIN:
                break
            laws = news[int(np.argmax(gain))]
        return laws

    def _with(self, laws: Laws, law: Candidate) -> Laws:
        """The laws with another one, which replaces those that it contains."""
        contained = REPLACES.get(law.key[0], ())
        return {**{key: other for key, other in laws.items() if key[0] not in contained}, law.key: law}

    def _without(self, laws: Laws, key: Key) -> Laws:
        """The laws without one; those that it contains return."""
        back = [(name, key[1]) for name in REPLACES.get(key[0], ())]
        returned = {key: next(law for law in self.candidates if law.key == key) for key in back}
        return {**{other: law for other, law in laws.items() if other != key}, **returned}

    def _fewer(self, laws: Laws) -> list[Laws]:
        return [self._without(laws, key) for key in laws if key not in self.usual]

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
        whole, own = self.sub_models.error(self._columns(old))
        gained = (whole[:, None] - self.sub_models.errors([self._columns(laws) for laws in news])) / positive(own)[:, None]
        return gained.mean(axis=0), standard_error(gained)

    def needed(self, old: Laws, new: Laws, error: float) -> float:
        """Returns the gain that new laws need: √k standard errors with k more columns, at least :data:`LEAST_GAIN`.

        With fewer columns, they may lose as much, unless friction that every drive has is omitted. For this, and for springs,
        more is needed.

        Args:
            error: Standard error of the gain.
        """
        changed = set(old) ^ set(new)
        changed -= {(name, key[1]) for key in new for name in REPLACES.get(key[0], ())}
        if not changed:
            return LEAST_SHAPE_GAIN
        springs, usual = bool(changed & set(self.springs)), bool(changed & set(old) & self.usual)
        more = sum(len(law.at) for law in new.values()) - sum(len(law.at) for law in old.values())
        sure = SURE_CHANGE if usual else SURE_SPRING if springs else 1.0
        least = max(LEAST_GAIN, float(np.sqrt(max(abs(more), 1))) * sure * error, MOST_OF_IT if springs else 0.0)
        return -least if more < 0 and not usual else least

    def _impossible(self, old: Laws, new: Laws) -> str:
        """Why laws may not follow others although they gain enough; empty if they may."""
        if (set(new) - set(old)) & set(self._negligible(new)):
            return f"its torque varies by less than {100 * LEAST_SPRING:g} % of the joint's"
        return "needs parameters that cannot be" if self.violations(new) else ""

    def _negligible(self, laws: Laws) -> list[Key]:
        """The springs whose torque hardly varies."""
        springs = [key for key in laws if key in self.springs]
        parameters = self._by_law(laws, self.sub_models.estimates(self._columns(laws))[0]) if springs else {}
        return [key for key in springs if np.linalg.norm(self.springs[key] @ parameters[key]) < LEAST_SPRING]

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
        resist = {key: torque[most] for key, torque in torques.items() if torque[most] > 0 and key not in self.usual}
        together = sum(resist.values())
        if friction[most] > allowed and (together > allowed or friction[most] - together <= allowed):
            return max(resist, key=lambda key: resist[key])
        return None

    def verdict(self, laws: Laws, key: Key) -> tuple[Candidate, float, float, str]:
        """Returns the best version of a law, its gain in addition to the selected ones, the error, and the reason in words."""
        versions = [law for law in self.candidates if law.key == key]
        if key in laws:
            gain, error = (float(x[0]) for x in self.gains(self._without(laws, key), [laws]))
            missed = gain > max(LEAST_GAIN, error) or key not in self.usual
            reason = "missed when it is left out" if missed else "not missed, but kept: every drive has it"
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
            reason = self._impossible(laws, news[k])
        elif spring and gain > max(LEAST_GAIN, SURE_SPRING * error):
            reason = "explains less than half of what remains"
        return options[k], gain, error, reason
