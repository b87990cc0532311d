"""Findings about a log: message, location, severity and remedy."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

#: From harmless to unusable: information; a repair; a doubt; a reason not to use the log.
SEVERITIES = ("info", "repaired", "warning", "refused")
#: Id of a fault whose cause is not determined.
UNDECIDED = "physics-undecided"


@dataclass(frozen=True)
class Finding:
    """One finding.

    Attributes:
        id: Short fixed identifier for programs, e.g. ``"rows-unreadable"``.
        severity: One of :data:`SEVERITIES`.
        remedy: What the user can do about it, or None if nothing is needed.
        joint: The joint it is about, or None if it is about several or none.
        rows: First rows of the file it is about (1-based), or None.
        size: Its size in the unit given by the catalogue, or None if it has none.
        certainty: Probability of this cause rather than another one, 0 to 1; None if the fault was observed directly.
        candidates: If the cause is undecided, the ids of possible causes, most likely first.
        joints: All joints it is about, if there are several.
    """

    id: str
    severity: str
    message: str
    remedy: str | None = None
    _: KW_ONLY
    joint: str | None = None
    rows: tuple[int, ...] | None = None
    size: float | None = None
    certainty: float | None = None
    candidates: tuple[str, ...] = ()
    joints: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Returns the finding for JSON."""
        return {
            "id": self.id,
            "severity": self.severity,
            "joint": self.joint,
            "joints": list(self.joints) if self.joint is None else [self.joint],
            "rows": None if self.rows is None else list(self.rows),
            "message": self.message,
            "remedy": self.remedy,
            "size": self.size,
            "certainty": self.certainty,
            "candidates": list(self.candidates),
        }
