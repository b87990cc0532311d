"""One reason of a verdict."""

from __future__ import annotations

from dataclasses import dataclass

#: Remedy where the data do not determine enough; the command line fills in its own paths.
RICHER_MOTION = "record a richer motion: `urdf-ident design ROBOT.urdf --after OUT/identification.json -o next.csv`"


@dataclass(frozen=True)
class Reason:
    """One reason of a verdict.

    Attributes:
        level: The best level that it permits: "good" (it supports the result), "usable" or "poor".
        remedy: What to do about it, or None.
    """

    id: str
    level: str
    text: str
    remedy: str | None = None

    def __str__(self) -> str:
        return self.text if self.remedy is None else f"{self.text} -> {self.remedy}"
