"""The verdict on a log, a result, a payload or a validation: the worst of what was judged."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from .catalogue import SEVERITIES
from .judgement import LEVELS, Judgement


@dataclass(frozen=True)
class Verdict:
    """Judgements and the level that they permit; made by :meth:`of`, which puts them into order."""

    judgements: tuple[Judgement, ...] = ()

    @classmethod
    def of(cls, judgements: Iterable[Judgement]) -> Verdict:
        """Orders judgements: most severe first, at equal severity by their rank in the catalogue, causes before consequences.

        Faults that refuse a log come first, and all faults of the logs where what makes a result poor are their symptoms.
        """
        told = tuple(judgements)
        poor = [item for item in told if item.level == "poor"]
        symptoms = bool(poor) and all(item.id.entry.symptom for item in poor)

        def order(item: Judgement) -> tuple[bool, int, int]:
            cause = item.id.of_log and (symptoms or item.severity == "refused")
            return not cause, -SEVERITIES.index(item.severity), item.id.rank

        return cls(tuple(sorted(told, key=order)))

    @property
    def level(self) -> str:
        """Level of the worst judgement: "good", "usable" or "poor"; "good" if there is none."""
        return LEVELS[max((item.severity for item in self.judgements), key=SEVERITIES.index, default="info")]

    @property
    def cause(self) -> Judgement | None:
        """The first judgement that keeps the level from being good; None if it is good."""
        return next((item for item in self.judgements if item.level != "good"), None)

    def as_dict(self) -> dict[str, Any]:
        """For JSON: ``level``, ``reasons`` in words, and ``causes`` with id, level, text, remedy and settings."""
        return {
            "level": self.level,
            "reasons": [str(item) for item in self.judgements],
            "causes": [
                {"id": told["id"], "level": item.level, "text": told["message"]} | {k: told[k] for k in ("remedy", "settings")}
                for item, told in ((item, item.as_dict()) for item in self.judgements)
            ],
        }
