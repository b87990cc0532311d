"""Findings about a log: message, location, severity and remedy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import numpy as np

from ..recording import Recording

#: From harmless to unusable: information; a repair; a doubt; a reason not to use the log.
SEVERITIES = ("info", "repaired", "warning", "refused")
_ROWS_SHOWN = 10


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


@dataclass
class Examination:
    """A log under examination: its current state and the findings so far.

    Attributes:
        recording: The log after the repairs made so far.
        findings: The findings, in order.
    """

    recording: Recording
    findings: list[Finding] = field(default_factory=list)

    @property
    def stopped(self) -> bool:
        """True once something was refused."""
        return any(finding.severity == "refused" for finding in self.findings)

    def add(
        self,
        id: str,
        severity: str,
        message: str,
        *,
        joint: str | None = None,
        at: Sequence[int] | np.ndarray[Any, Any] | None = None,
        remedy: str | None = None,
        size: float | None = None,
    ) -> None:
        """Adds a finding.

        Args:
            severity: One of :data:`SEVERITIES`.
            at: Indices into the current recording, shape (K,); converted to rows of the file.
            size: Its size, in the unit given by the catalogue.
        """
        rows = None
        if at is not None and len(at):
            index = np.asarray(at)[:_ROWS_SHOWN]
            rows = tuple(int(row) for row in (index + 1 if self.recording.rows is None else self.recording.rows[index]))
        self.findings.append(Finding(id, severity, message, remedy, joint=joint, rows=rows, size=size))
