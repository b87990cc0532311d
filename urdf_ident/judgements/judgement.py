"""What is judged of a log, a result, a payload or a validation: one thing, what to do about it, and the verdict on all."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from ..files.documents import read_fields
from ..grouping import grouped
from .catalogue import SEVERITIES, Id, Severity

#: Level of a log or result with a judgement of each severity.
LEVELS: dict[Severity, str] = {"info": "good", "repaired": "good", "warning": "usable", "refused": "poor"}
#: Default of what is taken from the catalogue.
_CATALOGUE: Any = object()


@dataclass(frozen=True)
class Remedy:
    """What to do about a judgement: settings of the project file, an action outside the tool, or both.

    Attributes:
        action: In words; ``{settings}`` stands for the settings, which are the whole remedy if there are no words.
        settings: Key of the project file with dots → value, which replaces the present one; for numbers that joints have, and
            for rates, also ``{"multiply": value}`` or ``{"add": value}``, of single joints by their name.
    """

    action: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        """The remedy in words."""
        changes = ", ".join(_setting_in_words(key, value) for key, value in self.settings.items())
        return (self.action or "{settings}").replace("{settings}", changes)

    def after(self, first: str) -> Remedy:
        """The same remedy after another one.

        Args:
            first: What to do before, in words that lead to the rest.
        """
        return Remedy(first + (self.action or "{settings}"), self.settings)

    def done_by(self, doer: str) -> Remedy:
        """The same remedy where its settings are in force already.

        Args:
            doer: What applies them, in words that stand in their place.
        """
        return Remedy(self.action.replace("{settings}", doer))


def _setting_in_words(key: str, value: Any) -> str:
    """One setting, as it is written in the project file, or as a change of the present value."""
    if isinstance(value, Mapping) and len(value) == 1 and next(iter(value)) in ("multiply", "add"):
        ((how, by),) = value.items()
        joints = grouped((change, joint) for joint, change in by.items()) if isinstance(by, Mapping) else {by: ()}
        parts = [(f" of {', '.join(whose)}" if whose else "", f"{change:.4g}") for change, whose in joints.items()]
        if how == "multiply":
            return f"multiply {key}" + ",".join(f"{of} by {change}" for of, change in parts)
        return ", ".join(f"add {change} to {key}{of}" for of, change in parts)
    text = _flow(value)
    for name in reversed(key.split(".")[1:]):
        text = f"{{{name}: {text}}}"
    return f"`{key.split('.')[0]}: {text}`"


def _flow(value: Any) -> str:
    """A value in YAML's flow style, numbers with four digits."""
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key}: {_flow(inner)}' for key, inner in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_flow, value))}]"
    return str(value).lower() if isinstance(value, bool) else f"{value:.4g}" if isinstance(value, float) else str(value)


@dataclass(frozen=True)
class Judgement:
    """One thing that is judged of a log or a result.

    Attributes:
        id: Its kind; a text that is none of the catalogue's raises ValueError, and so do settings of its remedy that are none
            of the catalogue's for this kind, or for its candidates.
        remedy: What the user can do about it, or None if nothing is needed; by default that of the catalogue, which is for the
            usual severity.
        severity: One of :data:`.catalogue.SEVERITIES`; the usual one of its kind by default.
        joint: The joint it is about, or None if it is about several or none.
        rows: First rows of the file it is about (1-based), or None.
        size: Its size in the unit given by the catalogue, or None if it has none.
        certainty: Probability of this cause rather than another one, 0 to 1; None if the fault was observed directly.
        candidates: If the cause is undecided, the possible causes, most likely first.
        joints: All joints it is about, if there are several.
    """

    id: Id
    message: str
    remedy: Remedy | None = _CATALOGUE
    severity: Severity = _CATALOGUE
    _: KW_ONLY
    joint: str | None = None
    rows: tuple[int, ...] | None = None
    size: float | None = None
    certainty: float | None = None
    candidates: tuple[Id, ...] = ()
    joints: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "id", Id(self.id))
        entry = self.id.entry
        if self.severity is _CATALOGUE:
            object.__setattr__(self, "severity", entry.severity)
        if self.remedy is _CATALOGUE:
            usual = bool(entry.remedy) and self.severity == entry.severity
            object.__setattr__(self, "remedy", Remedy(entry.remedy) if usual else None)
        promised = [key for id in (self.id, *self.candidates) for key in Id(id).entry.settings]
        for key in self.remedy.settings if self.remedy else ():
            if not any(f"{key}.".startswith(f"{known}.") for known in promised):
                raise ValueError(f"the catalogue knows no setting {key!r} of {self.id}")

    @property
    def level(self) -> str:
        """The best level that it permits: "good" (it may support the result), "usable" or "poor"."""
        return LEVELS[self.severity]

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Judgement:
        """Reads a judgement from JSON.

        Args:
            data: From :meth:`as_dict`; only id, severity and message are required.

        Raises:
            ValueError: The severity is unknown, or the id is none of the catalogue's.
        """
        words = data.get("remedy")
        if data["severity"] not in SEVERITIES:
            raise ValueError(f"{data['severity']!r} is no severity")
        names = ["message", "rows", "size", "certainty", "joints" if data.get("joint") is None else "joint"]
        stated = read_fields(cls, data, (name for name in names if data.get(name) is not None))
        return cls(
            Id(data["id"]),
            stated.pop("message", ""),
            Remedy(str(words), data.get("settings") or {}) if words else None,
            data["severity"],
            candidates=tuple(map(Id, data.get("candidates") or ())),
            **stated,
        )

    def __str__(self) -> str:
        return self.message if self.remedy is None else f"{self.message} -> {self.remedy}"

    def about(self, joints: Sequence[str | None] = ()) -> str:
        """The message, preceded by its joint unless it names it.

        Args:
            joints: Other joints of which the same is true.
        """
        more = [joint for joint in joints if joint and joint != self.joint]
        also = f" (also {', '.join(more)})" if more else ""
        named = self.joint is None or re.search(rf"(?<!\w){re.escape(self.joint)}(?!\w)", self.message)
        return f"{self.message}{also}" if named else f"{self.joint}{also}: {self.message}"

    def line(self, joints: Sequence[str | None] = ()) -> str:
        """As :meth:`about`, with the first row and the remedy.

        Args:
            joints: Other joints of which the same is true.
        """
        where = f" (from row {self.rows[0]})" if self.rows else ""
        return f"{self.about(joints)}{where}" + (f" -> {self.remedy}" if self.remedy and str(self.remedy) else "")

    def as_dict(self) -> dict[str, Any]:
        """Returns the judgement for JSON, the remedy in words and its settings."""
        return {
            "id": str(self.id),
            "severity": self.severity,
            "joint": self.joint,
            "joints": list(self.joints) if self.joint is None else [self.joint],
            "rows": None if self.rows is None else list(self.rows),
            "message": self.message,
            "remedy": str(self.remedy or "") or None,
            "settings": {} if self.remedy is None else dict(self.remedy.settings),
            "size": self.size,
            "certainty": self.certainty,
            "candidates": [str(id) for id in self.candidates],
        }


@dataclass(frozen=True)
class Verdict:
    """Judgements and the level that they permit; made by :meth:`of`, which puts them into order."""

    judgements: tuple[Judgement, ...] = ()

    def __repr__(self) -> str:
        return f"<Verdict {self.level}: {', '.join(str(judgement.id) for judgement in self.judgements) or 'no judgement'}>"

    @classmethod
    def of(cls, judgements: Iterable[Judgement]) -> Verdict:
        """Orders judgements: most severe first, at equal severity by their rank in the catalogue, causes before consequences.

        A scale of the torques that makes a result poor explains all else and comes first; then faults that refuse a log, and
        all faults of the logs where what makes a result poor are their symptoms.
        """
        every = tuple(judgements)
        poor = [judgement for judgement in every if judgement.level == "poor"]
        symptoms = bool(poor) and all(judgement.id.entry.symptom for judgement in poor)

        def order(judgement: Judgement) -> tuple[bool, bool, int, int]:
            refused = judgement.severity == "refused"
            cause = judgement.id.of_log and (symptoms or refused)
            explains = judgement.id.entry.explains_all and refused
            return not explains, not cause, -SEVERITIES.index(judgement.severity), judgement.id.rank

        return cls(tuple(sorted(every, key=order)))

    @property
    def level(self) -> str:
        """Level of the worst judgement: "good", "usable" or "poor"; "good" if there is none."""
        return LEVELS[max((judgement.severity for judgement in self.judgements), key=SEVERITIES.index, default="info")]

    @property
    def cause(self) -> Judgement | None:
        """The first judgement that keeps the level from being good; None if it is good."""
        return next((judgement for judgement in self.judgements if judgement.level != "good"), None)

    def as_dict(self) -> dict[str, Any]:
        """For JSON: ``level``, ``reasons`` in words, and ``causes`` with id, level, text, remedy and settings."""
        return {
            "level": self.level,
            "reasons": [str(judgement) for judgement in self.judgements],
            "causes": [
                {
                    "id": str(judgement.id),
                    "level": judgement.level,
                    "text": judgement.message,
                    "remedy": str(judgement.remedy or "") or None,
                    "settings": dict(judgement.remedy.settings) if judgement.remedy else {},
                }
                for judgement in self.judgements
            ],
        }
