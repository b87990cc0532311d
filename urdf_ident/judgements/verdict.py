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
