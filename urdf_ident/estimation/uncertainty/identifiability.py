"""Identifiability of every standard parameter, with one sentence of advice on a motion that would identify it.

Without data it follows from the structure: identifiable alone, only in combination, or never (Szabó 2021, Zollo 2015). With
data, each combination is also judged by its standard error relative to the parameter's magnitude. This is not only the
estimate: an offset of 0.00 ± 0.01 N·m is well known if typical offsets are 0.3. The magnitude is the largest of the estimate,
the prior, and the prior's standard deviation; the estimate only counts if it is significant.

For the advice, :mod:`.simple_motions` are tried. The simplest one that is nearly as good as the best is chosen; with data, by
the standard error after the motion is added to them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...grouping import grouped
from ...linalg import Array, IntArray, positive, rms, standard_errors, triangle
from ...model.base import ALONE, COMBINED, NEVER, BaseParameters
from ...model.dynamic_model import DynamicModel
from ...statistics.fit import Fit
from .simple_motions import AS_USEFUL, SECONDS, SimpleMotion, motion_factor, simple_motions, simplest

IDENTIFIABLE, WEAK, COMBINATION, LOST = "identifiable", "weak", "only in combination", "not identifiable"
#: Standard error over magnitude up to which a parameter is identified, and above which the data contribute less than a tenth
#: (with an error of three prior standard deviations the prior has nine tenths of the weight).
KNOWN, NOTHING = 0.5, 3.0
#: A simple motion alone is good enough if its error is at most this many times that of the best one.
_NEARLY = 3.0
#: Smallest assumed magnitude of a friction term, as a share of the joint's largest friction of the same unit.
_FRICTION_SHARE = 0.1


#: A simple motion, and the standard error of every base parameter after it.
Trial = tuple[SimpleMotion, Array]


@dataclass(frozen=True)
class Identifiability:
    """The verdict on one standard parameter.

    Attributes:
        level: "identifiable", "weak", "only in combination" or "not identifiable".
        partners: Parameters in combination with which it is identifiable, the largest coefficient first; may be empty.
        error: Standard error of it, or of its best known combination, over its magnitude, a fraction; inf if not
            identifiable, and None without data.
        motion: The simplest motion that identifies it; empty if none is needed, or none helps.
        note: What that motion would gain, or what would help instead of a motion.
    """

    parameter: str
    level: str
    partners: tuple[str, ...]
    error: float | None
    motion: str = ""
    note: str = ""

    @property
    def advice(self) -> str:
        """What would identify it, one sentence; empty if nothing is missing."""
        return ": ".join(part for part in (self.motion, self.note) if part)

    def as_dict(self) -> dict[str, object]:
        """Returns the entries of identification.json."""
        return {
            "verdict": self.level,
            "with": list(self.partners),
            "error": self.error,
            "advice": self.advice,
            "motion": self.motion,
            "note": self.note,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Identifiability:
        """Creates the verdict from an entry of identification.json.

        Args:
            data: An entry of ``parameters.standard``.

        Raises:
            KeyError: The entry is from an older version and incomplete.
            TypeError: The entry is damaged: a value that must be a string is not.
        """
        words = (data["name"], data["verdict"], *data["with"], data["motion"], data["note"])
        if not all(isinstance(word, str) for word in words):
            raise TypeError("a verdict on a parameter holds something else than words")
        error = None if data["error"] is None else float(data["error"])
        return cls(data["name"], data["verdict"], tuple(data["with"]), error, data["motion"], data["note"])


def missing_motions(found: Iterable[Identifiability]) -> list[tuple[str, list[str]]]:
    """Returns the motions that would determine more.

    Returns:
        Each motion with the names of the parameters that it would determine; the motion with the most parameters first.
    """
    motions = grouped((verdict.motion, verdict.parameter) for verdict in found if verdict.motion)
    return sorted(motions.items(), key=lambda item: -len(item[1]))


def structural_verdicts(model: DynamicModel, base: BaseParameters) -> tuple[Identifiability, ...]:
    """Returns the identifiability of every parameter with ideal data.

    Returns:
        One verdict per parameter, none of them "weak"; the advice names the simplest motion that identifies it.
    """
    trials = [
        (motion, standard_errors(motion_factor(model, base, motion, {}, alone=True))) for motion in simple_motions(model.robot)
    ]
    motions = [_simplest(model, base, row, trials)[0] for row in range(len(base))]
    verdicts = []
    for k, (name, kind, elsewhere) in enumerate(zip(base.names, base.kinds, _elsewhere(model, base), strict=True)):
        row = np.flatnonzero(base.projection[:, k])  # base parameters that contain it
        partners = tuple(other for other, _ in base.partners(k))
        if kind == NEVER:
            verdicts.append(Identifiability(name, LOST, (), None, note=elsewhere))
        elif kind == ALONE:
            verdicts.append(Identifiability(name, IDENTIFIABLE, (), None, motions[row[0]]))
        else:
            verdicts.append(Identifiability(name, COMBINATION, partners, None, motions[row[0]], f"shows the sum; {elsewhere}"))
    return tuple(verdicts)


def verdicts(
    model: DynamicModel, fit: Fit, factor: Array, prior: Array, unsure: Array, row_rate: float
) -> tuple[Identifiability, ...]:
    """Returns the identifiability of every parameter with the given data.

    Args:
        factor: Data factor ``[R | rho]`` whitened by the noise, shape (≤ p + 1, p + 1).
        prior: Prior values, shape (p,).
        unsure: Their standard deviations, shape (p,); for terms without a prior see :func:`sizes`.
        row_rate: Rows per second [Hz].
    """
    base = fit.base
    usual = sizes(model, base, fit, prior, unsure)
    size = np.where(fit.bse <= KNOWN * np.abs(fit.params), np.maximum(usual, np.abs(fit.params)), usual)
    error = fit.bse / size  # an insignificant estimate is no evidence of the magnitude
    known, nothing = error <= KNOWN, error > NOTHING
    advice = _advice(model, fit, factor, size, row_rate, np.flatnonzero(~known)) if not known.all() else {}
    of_parameters = []
    for k, (name, kind, elsewhere) in enumerate(zip(base.names, base.kinds, _elsewhere(model, base), strict=True)):
        if kind == NEVER:
            of_parameters.append(Identifiability(name, LOST, (), np.inf, note=elsewhere))
            continue
        row = int(min(np.flatnonzero(base.projection[:, k]), key=lambda r: error[r]))
        partners = tuple(other for other, _ in base.partners(k))
        level = LOST if nothing[row] else WEAK if not known[row] else COMBINATION if partners else IDENTIFIABLE
        shown_by, gain = advice.get(row, ("", ""))
        of_parameters.append(
            Identifiability(name, level, partners, float(error[row]), shown_by, elsewhere if level == COMBINATION else gain)
        )
    return tuple(of_parameters)


def _advice(
    model: DynamicModel, fit: Fit, factor: Array, size: Array, row_rate: float, unknown: IntArray
) -> dict[int, tuple[str, str]]:
    """Returns the motion that would identify each unknown base parameter, and what it would gain; either may be empty.

    The error after a simple motion follows from the rows of the data and of the motion together. Where standard errors are
    larger than those of the noise model, so is that error, by the same factor.

    Args:
        factor, row_rate: As for :func:`verdicts`.
        size: Magnitudes of the base parameters, shape (b,).
        unknown: Indices of the base parameters.
    """
    data = triangle(factor[:, fit.base.independent])
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = fit.bse / standard_errors(data)  # factor by which model-based errors are too small
    from_data = fit.seen & (ratio > 0) & np.isfinite(ratio)  # parameters known only by the prior have no model-based error
    inflation = np.where(from_data, ratio, float(np.median(ratio[from_data])) if from_data.any() else 1.0)
    elastic = not model.is_rigid  # their data are linear in compliances, the simple motions in stiffness
    trials, advice = list[Trial](), dict[int, tuple[str, str]]()
    for motion in simple_motions(model.robot):
        informed = np.sqrt(SECONDS * row_rate) * motion_factor(model, fit.base, motion, fit.weights)
        trials.append((motion, inflation * standard_errors(informed if elastic else triangle(data, informed))))
    for row in unknown.tolist():
        enough = min(KNOWN * float(size[row]), 0.5 * float(fit.bse[row]))
        motion_words, left = _simplest(model, fit.base, row, trials, AS_USEFUL, enough)
        before, after = float(fit.bse[row] / size[row]), float(left / size[row])
        would_leave = f"would leave {_percent(after)}" + (f" instead of {_percent(before)}" if np.isfinite(before) else "")
        if elastic or not np.isfinite(after):
            advice[row] = motion_words, ""
        elif after > NOTHING or after > before / AS_USEFUL:
            best = f"{SECONDS:g} s of the best simple motion ({motion_words}) {would_leave}"
            advice[row] = "", f"its torque is too small compared with the noise: {best}"
        else:
            advice[row] = motion_words, f"{SECONDS:g} s of it {would_leave}"
    return advice


def sizes(model: DynamicModel, base: BaseParameters, fit: Fit, prior: Array, unsure: Array) -> Array:
    """Returns the typical magnitudes of the base parameters, independent of their own estimates, shape (b,), positive.

    Args:
        fit: The estimate, for terms that a URDF lacks: their magnitude is that of the same kind on joints that identify it.
        prior: Prior values, shape (p,).
        unsure: Their standard deviations, shape (p,).
    """
    size = np.maximum(np.abs(base.of(prior)), np.sqrt(base.projection**2 @ unsure**2))
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
            size[row] = max(rms(values) if len(values) else 0.0, _FRICTION_SHARE * beside)
    return positive(size)


def _elsewhere(model: DynamicModel, base: BaseParameters) -> list[str]:
    """Returns what other than a motion could separate each parameter from the others, length p; empty if it is alone."""
    tilted = model.tilted().base().kinds if model.is_rigid else base.kinds
    without_tilt = {
        ALONE: "",
        COMBINED: "no motion separates it: that needs other data (a weighed link, a data sheet)",
        NEVER: "no joint torque depends on it: weigh the link, or put a force sensor under the base",
    }
    by_tilt = {  # kind in this mounting and with a tilted base
        (COMBINED, ALONE): "only a tilted base shows it individually",
        **dict.fromkeys(
            [(NEVER, COMBINED), (NEVER, ALONE)], "no motion shows it in this mounting; with a tilted base, gravity would"
        ),
    }
    return [by_tilt.get(pair, without_tilt[pair[0]]) for pair in zip(base.kinds, tilted, strict=True)]


def _simplest(
    model: DynamicModel, base: BaseParameters, row: int, trials: Sequence[Trial], nearly: float = _NEARLY, enough: float = 0.0
) -> tuple[str, float]:
    """The simplest motion for one base parameter, and the error after it; for friction, of those in which the joint moves."""
    k = int(base.independent[row])
    if k >= model.n_inertial:
        joint = model.robot.joints.index(model.parameters[k].owner)
        trials = [trial for trial in trials if joint in trial[0].moving]
    return simplest(((motion, float(errors[row])) for motion, errors in trials), nearly, enough)


def _percent(error: float) -> str:
    return f"±{100 * error:.2g} %" if error < 1 else f"±{100 * error:.0f} %" if error < 10 else "more than ±1000 %"
