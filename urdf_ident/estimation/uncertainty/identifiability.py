"""A verdict on every standard parameter, and in one sentence what motion would make it visible.

Before any data the structure decides: alone, only in combination, or never (Szabó 2021, Zollo 2015). With data, each
combination is also judged by its standard error. An error is small or large beside the parameter's size, and that is not only
its estimate: an offset of 0.00 ± 0.01 N·m is known well where offsets are 0.3. So the size is the largest of the estimate, the
prior, and the prior's standard deviation; the estimate only counts where noise alone would hardly make it.

The advice is found by trying simple motions (:mod:`.exercises`), simplest first, and taking the first that is nearly as
good as the best; where there are data, by the standard error that follows when it is added to them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...linalg import Array, triangle
from ...model.base import ALONE, NEVER, BaseParameters
from ...model.dynamic_model import DynamicModel
from ...model.elasticity import ElasticModel
from ...statistics.fit import Fit
from ...statistics.least_squares import solve
from .exercises import SECONDS, Exercise, exercises, shown

IDENTIFIABLE, WEAK, COMBINATION, LOST = "identifiable", "weak", "only in combination", "not identifiable"
#: An exercise, and the standard error that it leaves of every base parameter.
Trial = tuple[Exercise, Array]
#: Standard error over size up to which a parameter is identified, and beyond which the data say less than a tenth of what
#: was known before (an error of three prior standard deviations leaves the prior nine tenths of the weight).
KNOWN, NOTHING = 0.5, 3.0
#: An exercise is good enough when it leaves no more than so many times the best one's error: alone, or beside data, where
#: even the best one cannot do much more than half the error.
_NEARLY, _BESIDE = 3.0, 1.15
#: A friction term is as large as this share of the joint's largest friction of its unit, at least.
_FRICTION_SHARE = 0.1


@dataclass(frozen=True)
class Verdict:
    """The verdict on one standard parameter.

    Attributes:
        parameter: Its name.
        level: "identifiable", "weak", "only in combination" or "not identifiable".
        partners: With which parameters it is seen, the weightiest first; empty if alone or never seen.
        error: Standard error of it, or of its best known combination, over its size, a fraction; inf if not seen, and None
            without data.
        motion: The simplest motion that shows it; empty where nothing is missing, or no motion helps.
        note: What that motion would gain, or what would help instead of one.
    """

    parameter: str
    level: str
    partners: tuple[str, ...]
    error: float | None
    motion: str = ""
    note: str = ""

    @property
    def advice(self) -> str:
        """What would make it visible, one sentence; empty where nothing is missing."""
        return ": ".join(part for part in (self.motion, self.note) if part)

    def as_dict(self) -> dict[str, object]:
        """Entries of identification.json."""
        parts = {"motion": self.motion, "note": self.note}
        return {"verdict": self.level, "with": list(self.partners), "error": self.error, "advice": self.advice, **parts}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Verdict:
        """Inverse of :meth:`as_dict`.

        Args:
            data: An entry of ``parameters.standard``.

        Returns:
            The verdict.

        Raises:
            KeyError: The entry is of an older version, which did not keep all of it.
            TypeError: It is damaged: what should be words is something else.
        """
        words = (data["name"], data["verdict"], *data["with"], data["motion"], data["note"])
        if not all(isinstance(word, str) for word in words):
            raise TypeError("a verdict on a parameter holds something else than words")
        error = None if data["error"] is None else float(data["error"])
        return cls(data["name"], data["verdict"], tuple(data["with"]), error, data["motion"], data["note"])


def structural_verdicts(model: DynamicModel, base: BaseParameters) -> tuple[Verdict, ...]:
    """What perfect data could tell of every parameter.

    Returns:
        One verdict a parameter, none of them "weak"; the advice names the simplest motion that shows it.
    """
    trials = [(item, _errors(shown(model, base, item, {}))) for item in exercises(model.robot)]
    motions = [_simplest(row, _own(model, base, row, trials))[0] for row in range(len(base))]
    found = []
    for k, name, kind, elsewhere in _by_kind(model, base):
        row = _rows_of(base, k)
        partners = tuple(other for other, _ in base.partners(k))
        if kind == NEVER:
            found.append(Verdict(name, LOST, (), None, note=elsewhere))
        elif kind == ALONE:
            found.append(Verdict(name, IDENTIFIABLE, (), None, motions[row[0]]))
        else:
            found.append(Verdict(name, COMBINATION, partners, None, motions[row[0]], f"shows the sum; {elsewhere}"))
    return tuple(found)


def verdicts(model: DynamicModel, fit: Fit, factor: Array, prior: Array, unsure: Array, row_rate: float) -> tuple[Verdict, ...]:
    """What these data tell of every parameter.

    Args:
        fit: The estimate with its standard errors.
        factor: Data factor ``[R | rho]`` whitened by the noise, shape (≤ p + 1, p + 1).
        prior: The prior, shape (p,).
        unsure: Its standard deviation, shape (p,); for terms that only the data know, see :func:`sizes`.
        row_rate: Equations per second [Hz].

    Returns:
        One verdict a parameter.
    """
    base = fit.base
    usual = sizes(model, base, fit, prior, unsure)
    size = np.where(fit.bse <= KNOWN * np.abs(fit.params), np.maximum(usual, np.abs(fit.params)), usual)
    error = fit.bse / size  # an estimate that noise alone could make says nothing of the size
    known, nothing = error <= KNOWN, error > NOTHING
    advice = _advice(model, fit, factor, size, np.flatnonzero(~known), row_rate)
    found = []
    for k, name, kind, elsewhere in _by_kind(model, base):
        if kind == NEVER:
            found.append(Verdict(name, LOST, (), np.inf, note=elsewhere))
            continue
        rows = _rows_of(base, k)
        row = min(rows, key=lambda r: error[r])
        partners = tuple(other for other, _ in base.partners(k))
        level = LOST if nothing[row] else WEAK if not known[row] else COMBINATION if partners else IDENTIFIABLE
        motion, gain = advice.get(row, ("", ""))
        found.append(Verdict(name, level, partners, float(error[row]), motion, elsewhere if level == COMBINATION else gain))
    return tuple(found)


def sizes(model: DynamicModel, base: BaseParameters, fit: Fit, prior: Array, unsure: Array) -> Array:
    """How large base parameters usually are, whatever these data say of each.

    Args:
        fit: The estimate, for terms a URDF lacks: they are as large as their kind is on the joints that show it.
        prior: Values before the data, shape (p,).
        unsure: Standard deviations of those, shape (p,).

    Returns:
        Shape (b,), positive.
    """
    found = np.maximum(np.abs(base.of(prior)), np.sqrt(base.projection**2 @ unsure**2))
    symbols, units, owners = (
        np.array([getattr(model.parameters[k], key) for k in base.independent]) for key in ("symbol", "unit", "owner")
    )
    sharp = fit.seen & (np.abs(fit.params) > 2.0 * fit.bse)
    for row, k in enumerate(base.independent):
        if k >= model.n_inertial:
            alike = (symbols == symbols[row]) & (units == units[row])
            others = alike & fit.seen & (np.arange(len(base)) != row)
            values = fit.params[alike & sharp] if (alike & sharp).any() else fit.params[others]
            beside = np.abs(fit.params[(owners == owners[row]) & (units == units[row]) & sharp]).max(initial=0.0)
            found[row] = max(np.sqrt(np.mean(values**2)) if len(values) else 0.0, _FRICTION_SHARE * beside)
    return np.asarray(np.maximum(found, 1e-300))


def _by_kind(model: DynamicModel, base: BaseParameters) -> list[tuple[int, str, str, str]]:
    """Index, name and kind of every parameter, and what but a motion could separate it."""
    tilted = model.tilted().base().kinds if not isinstance(model, ElasticModel) else base.kinds
    found = []
    for k, (name, kind) in enumerate(zip(base.names, base.kinds, strict=True)):
        text = ""
        if kind == NEVER:
            text = (
                "no motion shows it in this mounting; with a tilted base, gravity would"
                if tilted[k] != NEVER
                else ("no joint torque depends on it: weigh the link, or put a force sensor under the base")
            )
        elif kind != ALONE:
            text = (
                "only a tilted base shows it individually"
                if tilted[k] == ALONE
                else ("no motion separates it: that needs other data (a weighed link, a data sheet)")
            )
        found.append((k, name, kind, text))
    return found


def _rows_of(base: BaseParameters, k: int) -> list[int]:
    """Base parameters that hold a standard one."""
    return [int(row) for row in np.flatnonzero(base.projection[:, k])]


def _errors(R: Array) -> Array:
    """Standard errors from a whitened factor, shape (b,); inf where it shows nothing."""
    found = solve(np.column_stack([R, np.zeros(len(R))]), max(10 * R.shape[1], 1)) if R.any() else None
    if found is None:
        return np.full(R.shape[1], np.inf)
    return np.where(found.seen, np.linalg.norm(found.root, axis=1), np.inf)


def _own(model: DynamicModel, base: BaseParameters, row: int, trials: Sequence[Trial]) -> Sequence[Trial]:
    """The exercises that may be advised for a base parameter: a joint's friction is not seen while the joint rests."""
    k = int(base.independent[row])
    if k < model.n_inertial:
        return trials
    joint = model.robot.joints.index(model.parameters[k].owner)
    return [trial for trial in trials if joint in trial[0].moving]


def _simplest(row: int, trials: Sequence[Trial], nearly: float = _NEARLY, enough: float = 0.0) -> tuple[str, float]:
    """The first exercise that is enough, or nearly as good as the best, for one base parameter; and the error it leaves."""
    best = min(float(errors[row]) for _, errors in trials)
    limit = max(nearly * best, enough)
    return next((item.words, float(errors[row])) for item, errors in trials if errors[row] <= limit)


def _advice(
    model: DynamicModel, fit: Fit, factor: Array, size: Array, rows: NDArray[np.intp], row_rate: float
) -> Mapping[int, tuple[str, str]]:
    """For some base parameters: which motion, and what it would gain."""
    if not len(rows):
        return {}
    base = fit.base
    data = triangle(factor[:, base.independent])
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = fit.bse / _errors(data)  # by how much the textbook's errors are too small
    told = fit.seen & (ratio > 0) & np.isfinite(ratio)  # what only a prior tells has no textbook's error
    inflation = np.where(told, ratio, float(np.median(ratio[told])) if told.any() else 1.0)
    elastic = isinstance(model, ElasticModel)  # their data are linear in compliances, the exercises in stiffness
    trials = []
    for item in exercises(model.robot):
        taught = np.sqrt(SECONDS * row_rate) * shown(model, base, item, fit.weights)
        trials.append((item, inflation * _errors(taught if elastic else triangle(data, taught))))
    found = {}
    for row in map(int, rows):
        enough = min(KNOWN * float(size[row]), 0.5 * float(fit.bse[row]))
        words, left = _simplest(row, _own(model, base, row, trials), _BESIDE, enough)
        before, after = float(fit.bse[row] / size[row]), float(left / size[row])
        instead = f" instead of {_percent(before)}" if np.isfinite(before) else ""
        if elastic or not np.isfinite(after):
            found[row] = words, ""
        elif after > NOTHING or after > before / _BESIDE:
            best = f"{SECONDS:g} s of the best simple motion ({words}) would leave {_percent(after)}{instead}"
            found[row] = "", f"its torque is too small compared with the noise: {best}"
        else:
            found[row] = words, f"{SECONDS:g} s of it would leave {_percent(after)}{instead}"
    return found


def _percent(error: float) -> str:
    return f"±{100 * error:.2g} %" if error < 1 else f"±{100 * error:.0f} %" if error < 10 else "more than ±1000 %"
