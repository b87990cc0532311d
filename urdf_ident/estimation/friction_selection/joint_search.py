"""The search for the friction laws of one joint while those of all others stay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from ...friction import Coulomb, Trained, Viscous, law_rows
from ...linalg import Array
from ...statistics.distributions import one_sigma
from .candidates import REPLACES, Candidate, Key
from .subsets import Focus

#: A law must lower its joint's held-out squared error by this fraction.
LEAST_GAIN = 0.01
#: Another shape of the same law must lower it by this fraction.
LEAST_SHAPE_GAIN = 1e-4
#: A column whose length the others make up to less than this share is not told from them by the data.
DISTINCT = 0.02
#: A spring must gain this many standard errors, and its torque must vary by this share of its joint's: that an axis has a
#: spring is a statement about its mechanics, and something as small is told by chance, or by what friction lacks.
SURE_SPRING, LEAST_SPRING = 2.0, 0.02
#: Friction that every drive has. It goes only for another law that gains this many standard errors: what a short log does not
#: miss of it, or another law takes over there, is missed in faster motion.
OF_EVERY_DRIVE, SURE_CHANGE = (Viscous.name, Coulomb.name), 2.0
#: Gears lose at most this share of the load, and the data must tell it to a tenth of that.
MOST_LOST = 0.5

#: Speeds per direction at which friction must not drive, and what of the largest value counts as rounding.
_SPEEDS, _ROUNDING = 8, 1e-9

#: (law, side) → the candidate that was chosen.
Laws = Mapping[Key, Candidate]


@dataclass(frozen=True)
class LawGain:
    """What one law is worth beside the others.

    Attributes:
        law: The best of its versions.
        gain: By which fraction it lowers the joint's held-out squared error; negative where it harms.
        std_error: Of that gain, over the folds (:func:`standard_error`).
        reason: Why it was chosen or not, in words.
    """

    law: Candidate
    gain: float
    std_error: float
    reason: str


class JointSearch:
    """The search at one joint.

    Args:
        sub: Sub-models in the joint's candidate columns alone, its row groups apart.
        candidates: The candidates.
        nonnegative: Which of their columns' parameters cannot be negative, shape (columns,).
        trained: By side, how fast and how loaded the axis was: there, and beyond, friction must dissipate.
        hidden: Laws that the data do not tell from other forces, whatever they gain.
        varying: By spring, what its parameters make of the part of its torque that varies, over the joint's torque,
            shape (r, k) each; None: springs of any size are taken.
    """

    def __init__(
        self,
        sub: Focus,
        candidates: Sequence[Candidate],
        nonnegative: Array,
        trained: Mapping[str, Trained] | None = None,
        hidden: Set[Key] = frozenset(),
        varying: Mapping[Key, Array] | None = None,
    ) -> None:
        self.sub, self.candidates, self.nonnegative = sub, candidates, nonnegative
        self.trained, self._demands = trained or {}, dict[Candidate, Array]()
        self.hidden, self.varying = hidden, varying or {}
        ends = np.cumsum([0, *(len(law.columns) for law in candidates)]).tolist()
        self.places = {law: range(*span) for law, span in zip(candidates, pairwise(ends), strict=True)}
        single = [law for law in candidates if len(law.columns) == 1]
        self.versions = {key: [law for law in single if law.key == key] for key in dict.fromkeys(law.key for law in single)}
        side = "motor" if any(law.item.side == "motor" for law in candidates) else "joint"
        self.usual = frozenset((name, side) for name in OF_EVERY_DRIVE)

    def run(self, laws: Laws, *, many: bool = False) -> dict[Key, Candidate]:
        """From given laws to some that no step makes better; none are taken twice, where a step undoes another.

        Args:
            laws: The laws to begin with.
            many: Whether laws of many columns come into question.

        Returns:
            The laws to end with.
        """
        now = dict(laws)
        seen = {frozenset(now.values())}
        for _ in range(len(self.candidates)):
            for step in (
                self._unphysical,
                self._add,
                self._exchange,
                self._drop,
                self._spring,
                *([self._replace] if many else []),
            ):
                found = step(now)
                if found is not None and frozenset(found.values()) not in seen:
                    break
            else:
                found = self._detour(now)
                if found is None or frozenset(found.values()) in seen:
                    break
            now = found
            seen.add(frozenset(now.values()))
        return now

    def _index(self, laws: Laws) -> list[int]:
        return [k for law in laws.values() for k in self.places[law]]

    def _places(self, options: Sequence[Candidate]) -> list[int]:
        return [self.places[law][0] for law in options]

    def _gain(self, old: Laws, errors: Array) -> tuple[Array, Array]:
        """Mean over folds of what is gained, as a fraction of the joint's own error, and its :func:`standard_error`."""
        index = self._index(old)
        own = self.sub.own_errors(index)
        gained = (self.sub.errors(index)[:, None] - errors.reshape(len(own), -1)) / np.maximum(own, 1e-300)[:, None]
        return gained.mean(axis=0), standard_error(gained)

    def _better(self, old: Laws, new: Laws) -> bool:
        """Whether other laws are worth it: more of them must gain, fewer must not be missed."""
        mean, spread = (float(x[0]) for x in self._gain(old, self.sub.errors(self._index(new))))
        more = self._more(old, new)
        if self.usual & set(old) - set(new):
            return mean > least_gain(SURE_CHANGE * spread, more)
        if more == 0:
            return mean > LEAST_SHAPE_GAIN
        return mean > (least_gain(spread, more) if more > 0 else -LEAST_GAIN)

    def _more(self, old: Laws, new: Laws) -> int:
        """By how many columns laws are more than others."""
        return len(self._index(new)) - len(self._index(old))

    def _options(self, rest: Laws) -> list[Candidate]:
        """Single columns that may be added: not there yet, nor what a law that is there replaces."""
        taken = {name for key in rest for name in REPLACES.get(key[0], ())}
        options = [law for law in self.candidates if law.key not in rest and law.key[0] not in taken and len(law.columns) == 1]
        return [law for law, good in zip(options, self._excited(rest, options), strict=True) if good]

    def _excited(self, rest: Laws, options: Sequence[Candidate]) -> list[bool]:
        """Whether the data tell the laws' columns from those that are there, and a lost load from nothing."""
        share, length = self.sub.distinct(self._index(rest), self._places(options))
        needed = [10.0 / MOST_LOST if law.item.term.loaded else 0.0 for law in options]
        return [bool(s > DISTINCT and n > least) for s, n, least in zip(share, length, needed, strict=True)]

    def _offenders(self, laws: Laws) -> list[Key]:
        """Laws that come out with a sign, or a share of the load, that cannot be."""
        index = self._index(laws)
        theta, error = self.sub.estimates(index)
        at = {k: row for row, k in enumerate(index)}
        bad = []
        for key, law in laws.items():
            for k in self.places[law]:
                negative = self.nonnegative[k] and theta[at[k]] < -error[at[k]]
                if negative or (law.item.term.loaded and theta[at[k]] > MOST_LOST):
                    bad.append(key)
        driving = [self._driving(laws, side) for side in self.trained] if not bad else []
        return list(dict.fromkeys([*bad, *(key for key in driving if key is not None)]))

    def _driving(self, laws: Laws, side: str) -> Key | None:
        """The law without which the friction of one side would not drive beyond doubt, or None where it does not."""
        own = {key: law for key, law in laws.items() if law.item.side == side}
        if not own:
            return None
        blocks = [self._rows(law) for law in own.values()]
        rows = np.hstack(blocks)
        value, error = self._among(laws, own, rows)
        worst = int(np.argmin(value + error))
        if value[worst] + error[worst] >= -_ROUNDING * float(np.abs(value).max()):
            return None
        theta, _ = self.sub.estimates(self._index(laws))
        at = {k: row for row, k in enumerate(self._index(laws))}
        parts = {}
        for (key, law), block in zip(own.items(), blocks, strict=True):
            parts[key] = float(block[worst] @ theta[[at[k] for k in self.places[law]]])
        return min(parts, key=lambda key: parts[key])

    def _among(self, laws: Laws, own: Laws, rows: Array) -> tuple[Array, Array]:
        index, mine = self._index(laws), self._index(own)
        wide = np.zeros((len(rows), len(index)))
        wide[:, [index.index(k) for k in mine]] = rows
        return self.sub.combinations(index, wide)

    def _rows(self, law: Candidate) -> Array:
        if law not in self._demands:
            self._demands[law] = law_rows(law.item.term, self.trained[law.item.side], _SPEEDS)  # type: ignore[arg-type]
        return self._demands[law]

    def _unphysical(self, laws: Laws) -> dict[Key, Candidate] | None:
        bad = self._offenders(laws)
        return changed(laws, remove=bad[:1]) if bad else None

    def _add(self, laws: Laws) -> dict[Key, Candidate] | None:
        options = self._options(laws)
        if not options:
            return None
        mean, spread = self._gain(laws, self.sub.with_each(self._index(laws), self._places(options)))
        for k in np.argsort(-mean):
            if mean[k] > least_gain(spread[k]):
                new = changed(laws, add=options[k])
                if not self._offenders(new):
                    return new
        return None

    def _exchange(self, laws: Laws) -> dict[Key, Candidate] | None:
        """Another shape, or another law in the place of one."""
        best: tuple[float, dict[Key, Candidate]] | None = None
        for key, law in laws.items():
            rest = changed(laws, remove=[key])
            options = [other for other in self._options(rest) if other is not law]
            if not options:
                continue
            mean, spread = self._gain(laws, self.sub.with_each(self._index(rest), self._places(options)))
            for k, other in enumerate(options):
                needed = LEAST_SHAPE_GAIN if other.key == key else least_gain(self._sure(key) * float(spread[k]))
                if mean[k] > max(needed, best[0] if best else 0.0):
                    new = changed(rest, add=other)
                    if not self._offenders(new):
                        best = (float(mean[k]), new)
        return best[1] if best else None

    def _drop(self, laws: Laws) -> dict[Key, Candidate] | None:
        """Takes out the law that is missed least, if it is not missed."""
        best: tuple[float, dict[Key, Candidate]] | None = None
        spare = [key for key in laws if key not in self.usual]
        if not spare:
            return None
        for key, gain, error in zip(spare, *self._gain(laws, self._errors_without(laws, spare)), strict=True):
            new = self._without(laws, key)
            missed = -gain > least_gain(self._sure(key) * error, self._more(new, laws)) and not self._slight(laws, key)
            if not missed and (best is None or gain > best[0]) and not self._offenders(new):
                best = (float(gain), new)
        return best[1] if best else None

    def _errors_without(self, laws: Laws, keys: Sequence[Key]) -> Array:
        """Errors without each of some laws, shape (folds, keys)."""
        alone = [key for key in keys if len(laws[key].columns) == 1 and key[0] not in REPLACES]
        places = self._places([laws[key] for key in alone])
        found = dict(zip(alone, self.sub.without_each(self._index(laws), places).T, strict=True)) if alone else {}
        for key in keys:
            if key not in found:
                found[key] = self.sub.errors(self._index(self._without(laws, key)))
        return np.stack([found[key] for key in keys], axis=1)

    def _without(self, laws: Laws, key: Key) -> dict[Key, Candidate]:
        """The laws without one of them; what it contains takes its place."""
        new = changed(laws, remove=[key])
        for name in REPLACES.get(key[0], ()):
            new = changed(new, add=next(law for law in self.candidates if law.key == (name, key[1])))
        return new

    def _sure(self, key: Key) -> float:
        """Standard errors by which a law, or what takes the place of one of every drive, must gain."""
        return SURE_CHANGE if key in self.usual else SURE_SPRING if key in self.varying else 1.0

    def _slight(self, laws: Laws, key: Key) -> bool:
        """Whether a law is a spring of no practical size."""
        if key not in self.varying:
            return False
        theta, _ = self.sub.estimates(self._index(laws))
        at = {k: row for row, k in enumerate(self._index(laws))}
        own = theta[[at[k] for k in self.places[laws[key]]]]
        return bool(np.linalg.norm(self.varying[key] @ own) < LEAST_SPRING)

    def _spring(self, laws: Laws) -> dict[Key, Candidate] | None:
        """A spring, one a joint, where the data tell it from gravity."""
        if any(law.sprung for law in laws.values()):
            return None
        return self._widest(laws, [law for law in self.candidates if law.sprung and law.key not in self.hidden])

    def _replace(self, laws: Laws) -> dict[Key, Candidate] | None:
        """A law of many columns in the place of those that it contains."""
        return self._widest(laws, [law for law in self.candidates if len(law.columns) > 1 and not law.sprung])

    def _widest(self, laws: Laws, options: Sequence[Candidate]) -> dict[Key, Candidate] | None:
        for law in options:
            if law.key in laws:
                continue
            new = changed(laws, add=law, remove=[key for key in laws if key[0] in REPLACES.get(law.key[0], ())])
            mean, spread = self._gain(laws, self.sub.errors(self._index(new)))
            gains = mean[0] > least_gain(self._sure(law.key) * spread[0], self._more(laws, new))
            if gains and not self._slight(new, law.key) and not self._offenders(new):
                return new
        return None

    def _detour(self, laws: Laws) -> dict[Key, Candidate] | None:
        """Puts a law in, or takes one out, fits the shapes of the others to it, and sees only then what is not missed.

        Laws that resemble each other stand in for one another while the shapes are wrong; single steps do not get out of that.
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
            if set(new) != set(laws) and not self._offenders(new) and self._better(laws, new):
                return new
        return None

    def _reshaped(self, laws: dict[Key, Candidate]) -> dict[Key, Candidate]:
        """The same laws with the shapes that gain most, one exchanged after the other."""
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

    def judge(self, laws: Laws, key: Key) -> LawGain:
        """What a law is worth beside the chosen ones.

        Args:
            laws: The chosen laws.
            key: The law.

        Returns:
            Its best version, gain and a word on the decision.
        """
        versions = [law for law in self.candidates if law.key == key]
        if key in self.hidden:
            return LawGain(versions[0], 0.0, 0.0, "the data do not tell it from gravity or an offset")
        if key in laws:
            mean, spread = self._gain(laws, self.sub.errors(self._index(self._without(laws, key))))
            missed = -float(mean[0]) > least_gain(float(spread[0])) or key not in self.usual
            word = "missed when it is left out" if missed else "not missed, but kept: every drive has it"
            return LawGain(laws[key], -float(mean[0]), float(spread[0]), word)
        taken = [other[0] for other in laws if key[0] in REPLACES.get(other[0], ())]
        if taken:
            return LawGain(versions[0], 0.0, 0.0, f"{taken[0]} contains it")
        news = [changed(laws, add=law, remove=[k for k in laws if k[0] in REPLACES.get(key[0], ())]) for law in versions]
        if len(versions[0].columns) == 1:
            excited = self._excited(laws, versions)
            news = [new for new, good in zip(news, excited, strict=True) if good]
        if not news:
            return LawGain(versions[0], 0.0, 0.0, "the data do not excite it here")
        gains = [self._gain(laws, self.sub.errors(self._index(new))) for new in news]
        k = int(np.argmax([mean[0] for mean, _ in gains]))
        gain, error = (float(x[0]) for x in gains[k])
        word = "gains too little"
        if gain > least_gain(self._sure(key) * error, self._more(laws, news[k])):
            word = "needs parameters that cannot be" if self._offenders(news[k]) else word
            if self._slight(news[k], key):
                word = f"its torque varies by less than {100 * LEAST_SPRING:g} % of the joint's"
        return LawGain(news[k][key], gain, error, word)


def standard_error(gains: Array) -> Array:
    """Standard error of a mean over folds, for few folds as much larger as Student's t is than the normal distribution.

    A gain in one fold alone is exactly one plain standard error above zero, however large it is: it does not pass.

    Args:
        gains: One of each fold, shape (folds, ...).

    Returns:
        Shape (...).
    """
    apart = gains - np.add.reduce(gains) / len(gains)
    return np.asarray(one_sigma(len(gains) - 1) * np.sqrt(np.add.reduce(apart**2) / ((len(gains) - 1) * len(gains))))


def least_gain(spread: float, more: int = 1) -> float:
    """What laws of more columns must gain: one column a standard error, each further one as if it were found by chance, too.

    Args:
        spread: Standard error of the gain.
        more: By how many columns they are more.

    Returns:
        A fraction of the joint's held-out squared error.
    """
    return float(max(LEAST_GAIN, np.sqrt(max(more, 1)) * spread))


def changed(laws: Laws, *, add: Candidate | None = None, remove: Sequence[Key] = ()) -> dict[Key, Any]:
    """Other laws.

    Args:
        laws: The laws.
        add: A law to add.
        remove: Laws to take out.

    Returns:
        The new laws.
    """
    new = {key: law for key, law in laws.items() if key not in remove}
    return new if add is None else {**new, add.key: add}
