"""What was recognised in a log: a setting with its certainty and the reason."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

#: Named in the header, or two independent indications; one indication; none.
Certainty = Literal["certain", "likely", "guess"]


@dataclass(frozen=True)
class Recognised:
    """One recognised setting: its value as in the project file, how certain it is, and the reason."""

    value: object
    certainty: Certainty
    reason: str

    @property
    def why(self) -> str:
        return f"{self.certainty}: {self.reason}"


def certain_if(condition: bool) -> Certainty:
    """Certain if two independent indications agree, else likely."""
    return "certain" if condition else "likely"
