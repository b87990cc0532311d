"""A log under examination: its state after the repairs so far, and what was found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...judgements.finding import Finding
from ...logs.recording import Recording

_ROWS_SHOWN = 10


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
