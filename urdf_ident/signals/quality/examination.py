"""A log under examination: its state after the repairs so far, and the judgements on it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...judgements.catalogue import Id, Severity
from ...judgements.judgement import Judgement, Remedy
from ...linalg import Array, BoolArray
from ...logs.recording import Recording
from ...model.robot import Robot

#: Most rows that a finding names.
_ROWS_SHOWN = 10
#: Least travel of a joint that moves [rad or m].
_TRAVEL = 0.01
#: Share of bad rows above which a log is refused.
TOO_MANY = 0.05


@dataclass
class Examination:
    """A log under examination.

    Attributes:
        recording: The log after the repairs made so far.
        robot: The robot that it is of.
        findings: The findings so far, in order.
    """

    recording: Recording
    robot: Robot
    findings: list[Judgement] = field(default_factory=list)

    @property
    def stopped(self) -> bool:
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

    def drop(self, bad: BoolArray, id: Id, what: str, limit: float = TOO_MANY) -> None:
        """Drops rows and adds a finding.

        Args:
            bad: Mask of the rows, shape (N,).
            what: Description of the fault, to follow "12 row(s)".
            limit: Share of bad rows above which the log is refused.
        """
        at, share = np.flatnonzero(bad), bad.mean() if len(bad) else 0.0
        if not len(at):
            return
        words = f"{len(at)} row(s) ({100 * share:.3g} %) {what}"
        if share > limit:
            self.add(id, words, at=at, remedy="record the log again, or cut out the part that is good", severity="refused")
        else:
            self.add(id, f"{words}; left out", at=at, severity="repaired")
        self.recording = self.recording.take(~bad)

    @property
    def moves(self) -> BoolArray:
        """Whether each joint moves, shape (n,)."""
        return np.asarray(np.ptp(self.recording.position, axis=0) >= _TRAVEL)

    def moving_efforts(self) -> Iterator[tuple[str, Array, Array]]:
        """Yields joint, positions and efforts, shape (N,) each, of joints that move with a varying effort."""
        if self.recording.effort is not None:
            for j in np.flatnonzero(self.moves):
                q, effort = self.recording.position[:, j].copy(), self.recording.effort[:, j].copy()  # contiguous: faster
                if np.ptp(effort) > 0:
                    yield self.robot.joints[j], q, effort
