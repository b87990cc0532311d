"""A log under examination: its state after the repairs so far, and what was found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...judgements.catalogue import Id, Severity
from ...judgements.judgement import Judgement, Remedy
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
    findings: list[Judgement] = field(default_factory=list)

    @property
    def stopped(self) -> bool:
        """True once something was refused."""
        return any(finding.severity == "refused" for finding in self.findings)

    def add(
        self,
        id: Id,
        message: str,
        *,
        joint: str | None = None,
        at: Sequence[int] | np.ndarray[Any, Any] | None = None,
        remedy: str | Remedy | None = None,
        size: float | None = None,
        severity: Severity | None = None,
    ) -> None:
        """Adds a finding.

        Args:
            at: Indices into the current recording, shape (K,); converted to rows of the file.
            remedy: Another one than that of the catalogue, in words or with settings.
            size: Its size, in the unit given by the catalogue.
            severity: Another one than the usual one of its kind.
        """
        rows = None
        if at is not None and len(at):
            index = np.asarray(at)[:_ROWS_SHOWN]
            rows = tuple(int(row) for row in (index + 1 if self.recording.rows is None else self.recording.rows[index]))
        other: dict[str, Any] = {} if severity is None else {"severity": severity}
        if remedy is not None:
            other["remedy"] = Remedy(remedy) if isinstance(remedy, str) else remedy
        self.findings.append(Judgement(id, message, joint=joint, rows=rows, size=size, **other))
