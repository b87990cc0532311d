"""Search for the friction laws of one joint, given those of all others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ...friction import MOST_FRICTION, Coulomb, Trained, Viscous, law_rows, moments
from ...linalg import Array, positive
from ...statistics.choice import standard_error
from .candidates import DISTINCT, LEAST_GAIN, LEAST_SHAPE_GAIN, REPLACES, Candidate, Key, LawGain, least_gain
from .springs import SpringColumns
from .subsets import Focus

#: A spring must gain this many standard errors and lower the squared held-out error by more than this part, and its torque must
#: vary by this share of its joint's: a spring is a statement about the mechanics of the axis. Smaller effects arise by chance,
#: from unmodelled friction or from what the URDF's geometry lacks, and grow beyond the positions of the data.
SURE_SPRING, MOST_OF_IT, LEAST_SPRING = 2.0, 0.5, 0.02
#: Friction that every drive has. Only a law that gains this many standard errors may replace it: even if a short log does not
#: need it, or another law can replace it there, it is needed in faster motion.
OF_EVERY_DRIVE, SURE_CHANGE = (Viscous.name, Coulomb.name), 2.0
#: Largest plausible share of the load that is lost in gears; its standard error must be below a tenth of this.
MOST_LOST = 0.5
#: Largest friction at low speed over that at the fastest trained speed. Static friction of lubricated contacts is up to about
#: twice the sliding friction; a higher peak explains the few samples near reversals by chance.
MOST_AT_LOW_SPEED = 3.0

#: Number of speeds per direction at which friction must be dissipative; share of the largest value that counts as rounding.
_SPEEDS, _ROUNDING = 8, 1e-9

#: (law, side) → the selected candidate.
Laws = Mapping[Key, Candidate]


def usual_side(candidates: Sequence[Candidate]) -> str:
    """Returns the side, "joint" or "motor", on which an axis has the friction of every drive."""
    return "motor" if any(law.item.side == "motor" for law in candidates) else "joint"


class JointSearch:
    """Search at one joint.

    Args:
        sub: Sub-models in the joint's candidate columns, with its own row groups.
        candidates: The candidates.
        nonnegative: Which of their columns' parameters cannot be negative, shape (columns,).
        trained: By side, the range of speed and load of the axis: there, and beyond, friction must dissipate.
        springs: The springs among them; others, if any, are accepted like friction.
        few: Whether the joint reverses too rarely for friction laws with many columns.
    """

    def __init__(
        self,
        sub: Focus,
        candidates: Sequence[Candidate],
        nonnegative: Array,
        trained: Mapping[str, Trained] | None = None,
        springs: Mapping[Key, SpringColumns] | None = None,
        few: bool = False,
    ) -> None:
        self.few = few
        self.sub, self.candidates, self.nonnegative = sub, candidates, nonnegative
        self.trained, self._demands = trained or {}, dict[tuple[Candidate, Trained], Array]()
        self.springs = springs or {}
        ends = np.cumsum([0, *(len(law.columns) for law in candidates)]).tolist()
        self.places = {law: range(*span) for law, span in zip(candidates, pairwise(ends), strict=True)}
        single = [law for law in candidates if len(law.columns) == 1]
        self.versions = {key: [law for law in single if law.key == key] for key in dict.fromkeys(law.key for law in single)}
        self.usual = frozenset((name, usual_side(candidates)) for name in OF_EVERY_DRIVE)

    def run(self, laws: Laws, *, many: bool = False) -> dict[Key, Candidate]:
        """Searches from given laws until no step improves them; no set of laws is visited twice.

        Losses are relative to the error with a law, gains to that without it, so that where folds differ the search may go in
        a circle. Of the sets in it, the one with the lowest held-out error is returned.

        Args:
            many: Whether laws with many columns are candidates.
        """
        visited = [dict(laws)]
        circle = steps = len(self.candidates) + 1
        for _ in range(steps):
            now = visited[-1]
            for step in (
                self._unphysical,
                self._add,
                self._exchange,
                self._drop,
                self._spring,
                *([self._replace] if many and not self.few else []),
                self._two_step_change,
            ):
                found = step(now)
                if found is not None and found not in visited:
                    visited.append(found)
                    break
                circle = circle if found is None else min(circle, visited.index(found))
            else:
                break
        sound = [laws for laws in visited[circle:-1] if not self._violations(laws)]
        return min((visited[-1], *sound), key=lambda laws: float(self.sub.errors(self._index(laws)).sum()))

    def _index(self, laws: Laws) -> list[int]:
        return [k for law in laws.values() for k in self.places[law]]

    def _places(self, options: Sequence[Candidate]) -> list[int]:
        return [self.places[law][0] for law in options]

    def _gain(self, old: Laws, errors: Array) -> tuple[Array, Array]:
        """Mean gain over folds, as a fraction of the joint's own error, and its :func:`standard_error`."""
        index = self._index(old)
        own = self.sub.own_errors(index)
        gained = (self.sub.errors(index)[:, None] - errors.reshape(len(own), -1)) / positive(own)[:, None]
        return gained.mean(axis=0), standard_error(gained)

    def _better(self, old: Laws, new: Laws) -> bool:
        """Whether new laws are preferable: with more columns they must gain, with fewer they must not lose."""
        mean, gain_error = (float(x[0]) for x in self._gain(old, self.sub.errors(self._index(new))))
        more = self._more(old, new)
        if self.usual & set(old) - set(new):
            return mean > least_gain(SURE_CHANGE * gain_error, more)
        if more == 0:
            return mean > LEAST_SHAPE_GAIN
        return mean > (least_gain(gain_error, more) if more > 0 else -LEAST_GAIN)

    def _more(self, old: Laws, new: Laws) -> int:
        """Number of columns that the new laws have more than the old ones."""
        return len(self._index(new)) - len(self._index(old))

    def _options(self, rest: Laws) -> list[Candidate]:
        """Single columns that may be added: neither present nor contained in a law that is present."""
        taken = {name for key in rest for name in REPLACES.get(key[0], ())}
        options = [law for law in self.candidates if law.key not in rest and law.key[0] not in taken and len(law.columns) == 1]
        return [law for law, good in zip(options, self._excited(rest, options), strict=True) if good]

    def _excited(self, rest: Laws, options: Sequence[Candidate]) -> list[bool]:
        """Whether the laws' columns are distinguishable from the present ones, and a lost load is measurable."""
        share, length = self.sub.distinct(self._index(rest), self._places(options))
        needed = [10.0 / MOST_LOST if law.item.term.loaded else 0.0 for law in options]
        return [bool(s > DISTINCT and n > least) for s, n, least in zip(share, length, needed, strict=True)]

    def _violations(self, laws: Laws) -> list[Key]:
        """Laws whose estimates have an impossible sign or share of the load, or friction that is impossible."""
        index = self._index(laws)
        theta, error = self.sub.estimates(index)
        at = {k: row for row, k in enumerate(index)}
        bad = []
        for key, law in laws.items():
            for k in self.places[law]:
                negative = self.nonnegative[k] and theta[at[k]] < -error[at[k]]
                if negative or (law.item.term.loaded and theta[at[k]] > MOST_LOST):
                    bad.append(key)
        impossible = [self._impossible_law(laws, side) for side in self.trained] if not bad else []
        return list(dict.fromkeys([*bad, *(key for key in impossible if key is not None)]))

    def _impossible_law(self, laws: Laws, side: str) -> Key | None:
        """The law mainly responsible if the friction of one side significantly drives the axis, or is too large.

        Returns:
            The law; None if the friction is possible. A law that the data hardly determine, as a narrow Stribeck peak at speeds
            between the samples, may be hundreds of times the measured torque, or the friction at other speeds. Friction that
            every drive has is not refused for its size, as most samples of a joint that hardly ever moves do not show it; nor
            are others for being beside it.
        """
        own = {key: law for key, law in laws.items() if law.item.side == side}
        if not own:
            return None
        trained = self.trained[side].of([law.item.term for law in own.values()])  # type: ignore[misc]
        blocks = [self._rows(law, trained) for law in own.values()]
        value, error = self._among(laws, own, np.hstack(blocks))
        speed, _, slope = np.array(moments(trained, _SPEEDS)).T
        friction = np.where(slope, -np.inf, value)
        least, most = int(np.argmin(value + error)), int(np.argmax(friction))
        fast = np.isin(speed, (trained.low, trained.high))
        allowed = min(MOST_FRICTION * trained.load, MOST_AT_LOW_SPEED * max(float(friction[fast].max()), 0.0))
        theta, _ = self.sub.estimates(self._index(laws))
        at = {k: row for row, k in enumerate(self._index(laws))}

        def parts(row: int) -> dict[Key, float]:
            """Friction of each law."""
            return {
                key: float(block[row] @ theta[[at[k] for k in self.places[law]]])
                for (key, law), block in zip(own.items(), blocks, strict=True)
            }

        if value[least] + error[least] < -_ROUNDING * float(np.abs(value).max()):
            return min(drive := parts(least), key=drive.__getitem__)
        if value[most] > allowed:
            resist = {key: part for key, part in parts(most).items() if part > 0 and key not in self.usual}
            together = sum(resist.values())
            if together > allowed or value[most] - together <= allowed:
                return max(resist, key=resist.__getitem__)
        return None

    def _among(self, laws: Laws, own: Laws, rows: Array) -> tuple[Array, Array]:
        index, mine = self._index(laws), self._index(own)
        wide = np.zeros((len(rows), len(index)))
        wide[:, [index.index(k) for k in mine]] = rows
        return self.sub.combinations(index, wide)

    def _rows(self, law: Candidate, trained: Trained) -> Array:
        if (law, trained) not in self._demands:
            self._demands[law, trained] = law_rows(law.item.term, trained, _SPEEDS)  # type: ignore[arg-type]
        return self._demands[law, trained]

    def _unphysical(self, laws: Laws) -> dict[Key, Candidate] | None:
        bad = self._violations(laws)
        return changed(laws, remove=bad[:1]) if bad else None

    def _add(self, laws: Laws) -> dict[Key, Candidate] | None:
        options = self._options(laws)
        if not options:
            return None
        mean, gain_error = self._gain(laws, self.sub.with_each(self._index(laws), self._places(options)))
        for k in np.argsort(-mean):
            if mean[k] > least_gain(gain_error[k]):
                new = changed(laws, add=options[k])
                if not self._violations(new):
                    return new
        return None

    def _exchange(self, laws: Laws) -> dict[Key, Candidate] | None:
        """Replaces a law by another shape of it or by another law."""
        best: tuple[float, dict[Key, Candidate]] | None = None
        for key, law in laws.items():
            rest = changed(laws, remove=[key])
            options = [other for other in self._options(rest) if other is not law]
            if not options:
                continue
            mean, gain_error = self._gain(laws, self.sub.with_each(self._index(rest), self._places(options)))
            for k, other in enumerate(options):
                needed = LEAST_SHAPE_GAIN if other.key == key else least_gain(self._required_errors(key) * float(gain_error[k]))
                if mean[k] > max(needed, best[0] if best else 0.0):
                    new = changed(rest, add=other)
                    if not self._violations(new):
                        best = (float(mean[k]), new)
        return best[1] if best else None

    def _drop(self, laws: Laws) -> dict[Key, Candidate] | None:
        """Removes the law with the smallest gain, if it is not needed."""
        best: tuple[float, dict[Key, Candidate]] | None = None
        spare = [key for key in laws if key not in self.usual]
        if not spare:
            return None
        for key, gain, error in zip(spare, *self._gain(laws, self._errors_without(laws, spare)), strict=True):
            new = self._without(laws, key)
            least = self._least(key, float(error), self._more(new, laws))
            missed = -gain > least and not self._negligible(laws, key)
            if not missed and (best is None or gain > best[0]) and not self._violations(new):
                best = (float(gain), new)
        return best[1] if best else None

    def _errors_without(self, laws: Laws, keys: Sequence[Key]) -> Array:
        """Errors without each of several laws, shape (folds, keys)."""
        alone = [key for key in keys if len(laws[key].columns) == 1 and key[0] not in REPLACES]
        places = self._places([laws[key] for key in alone])
        found = dict(zip(alone, self.sub.without_each(self._index(laws), places).T, strict=True)) if alone else {}
        for key in keys:
            if key not in found:
                found[key] = self.sub.errors(self._index(self._without(laws, key)))
        return np.stack([found[key] for key in keys], axis=1)

    def _without(self, laws: Laws, key: Key) -> dict[Key, Candidate]:
        """The laws without one of them, which is replaced by the laws that it contains."""
        new = changed(laws, remove=[key])
        for name in REPLACES.get(key[0], ()):
            new = changed(new, add=next(law for law in self.candidates if law.key == (name, key[1])))
        return new

    def _required_errors(self, key: Key) -> float:
        """Number of standard errors that a law, or the replacement of one that every drive has, must gain."""
        return SURE_CHANGE if key in self.usual else SURE_SPRING if key in self.springs else 1.0

    def _least(self, key: Key, gain_error: float, more: int) -> float:
        """Gain that a law with so many more columns needs (:func:`.candidates.least_gain`)."""
        return max(least_gain(self._required_errors(key) * gain_error, more), MOST_OF_IT if key in self.springs else 0.0)

    def _negligible(self, laws: Laws, key: Key) -> bool:
        """Whether a law is a spring with a negligible torque."""
        if key not in self.springs:
            return False
        theta, _ = self.sub.estimates(self._index(laws))
        at = {k: row for row, k in enumerate(self._index(laws))}
        return bool(np.linalg.norm(self.springs[key].varying @ theta[[at[k] for k in self.places[laws[key]]]]) < LEAST_SPRING)

    def _spring(self, laws: Laws) -> dict[Key, Candidate] | None:
        """Adds a spring, at most one per joint, if the data distinguish it from gravity."""
        if any(law.is_spring for law in laws.values()):
            return None
        hidden = {key for key, spring in self.springs.items() if spring.hidden}
        return self._widest(laws, [law for law in self.candidates if law.is_spring and law.key not in hidden])

    def _replace(self, laws: Laws) -> dict[Key, Candidate] | None:
        """Replaces laws by a law with many columns that contains them."""
        return self._widest(laws, [law for law in self.candidates if len(law.columns) > 1 and not law.is_spring])

    def _widest(self, laws: Laws, options: Sequence[Candidate]) -> dict[Key, Candidate] | None:
        """Adds the law of several that gains most, if it gains enough, and removes those that it contains."""
        best: tuple[float, dict[Key, Candidate]] | None = None
        for law in options:
            if law.key in laws:
                continue
            new = changed(laws, add=law, remove=[key for key in laws if key[0] in REPLACES.get(law.key[0], ())])
            mean, gain_error = (float(x[0]) for x in self._gain(laws, self.sub.errors(self._index(new))))
            if mean <= max(self._least(law.key, gain_error, self._more(laws, new)), best[0] if best else 0.0):
                continue
            if not self._negligible(new, law.key) and not self._violations(new):
                best = mean, new
        return best[1] if best else None

    def _two_step_change(self, laws: Laws) -> dict[Key, Candidate] | None:
        """Adds or removes a law, adapts the shapes of the others to it, and only then removes laws that are not needed.

        Similar laws compensate for each other while the shapes are wrong, a local optimum that single steps do not leave.
        """
        options = self._options(laws)
        starts = [changed(laws, remove=[key]) for key in laws if key[0] not in REPLACES]
        if options:
            mean, _ = self._gain(laws, self.sub.with_each(self._index(laws), self._places(options)))
            for key in dict.fromkeys(law.key for law in options):
                k = max((k for k, law in enumerate(options) if law.key == key), key=lambda k: mean[k])
                starts.append(changed(laws, add=options[k]))
        for start in starts:
            new = self._reshaped(start)
            while (fewer := self._drop(new)) is not None:
                new = self._reshaped(fewer)
            if set(new) != set(laws) and not self._violations(new) and self._better(laws, new):
                return new
        return None

    def _reshaped(self, laws: dict[Key, Candidate]) -> dict[Key, Candidate]:
        """The same laws with the shapes of the largest gain, changed one after the other."""
        for _ in range(len(self.candidates)):
            pairs = [(law, other) for law in laws.values() for other in self.versions.get(law.key, ()) if other is not law]
            if not pairs:
                break
            taken, put = (self._places(some) for some in zip(*pairs, strict=True))
            mean, _ = self._gain(laws, self.sub.exchanged(self._index(laws), taken, put))
            best = int(np.argmax(mean))
            if mean[best] <= LEAST_SHAPE_GAIN:
                break
            law, other = pairs[best]
            laws = changed(laws, add=other, remove=[law.key])
        return laws

    def law_gain(self, laws: Laws, key: Key) -> LawGain:
        """Returns the gain of a law in addition to the selected ones.

        Returns:
            Its best version, its gain and the reason for the decision.
        """
        versions = [law for law in self.candidates if law.key == key]
        if key in self.springs and self.springs[key].hidden:
            return LawGain(versions[0], 0.0, 0.0, "the data do not tell it from gravity or an offset")
        if self.few and key not in laws and len(versions[0].columns) > 1 and not versions[0].is_spring:
            return LawGain(versions[0], 0.0, 0.0, "the joint reverses too rarely for so many parameters")
        if key in laws:
            mean, gain_error = self._gain(self._without(laws, key), self.sub.errors(self._index(laws)))
            gain, error = float(mean[0]), float(gain_error[0])
            missed = gain > least_gain(error) or key not in self.usual
            word = "missed when it is left out" if missed else "not missed, but kept: every drive has it"
            return LawGain(laws[key], gain, error, word)
        taken = [other[0] for other in laws if key[0] in REPLACES.get(other[0], ())]
        if taken:
            return LawGain(versions[0], 0.0, 0.0, f"{taken[0]} contains it")
        news = [changed(laws, add=law, remove=[k for k in laws if k[0] in REPLACES.get(key[0], ())]) for law in versions]
        if len(versions[0].columns) == 1:
            news = [new for new, good in zip(news, self._excited(laws, versions), strict=True) if good]
        if not news:
            return LawGain(versions[0], 0.0, 0.0, "the data do not excite it here")
        gains = [self._gain(laws, self.sub.errors(self._index(new))) for new in news]
        k = int(np.argmax([mean[0] for mean, _ in gains]))
        gain, error = (float(x[0]) for x in gains[k])
        more = self._more(laws, news[k])
        sure = least_gain(self._required_errors(key) * error, more) < gain <= MOST_OF_IT
        word = "explains less than half of what remains" if sure and key in self.springs else "gains too little"
        if gain > self._least(key, error, more):
            word = "needs parameters that cannot be" if self._violations(news[k]) else word
            if self._negligible(news[k], key):
                word = f"its torque varies by less than {100 * LEAST_SPRING:g} % of the joint's"
        return LawGain(news[k][key], gain, error, word)


def changed(laws: Laws, *, add: Candidate | None = None, remove: Sequence[Key] = ()) -> dict[Key, Any]:
    """Returns laws with one added and some removed."""
    new = {key: law for key, law in laws.items() if key not in remove}
    return new if add is None else {**new, add.key: add}
