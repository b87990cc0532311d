"""Assesses a log: lossless repairs are made and listed; otherwise the log is refused with a remedy.

Each of these faults costs more accuracy than any choice of estimator gains.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from ...judgements.catalogue import Id
from ...judgements.judgement import Judgement
from ...judgements.verdict import Verdict
from ...logs.recording import Recording
from ...model.robot import Robot
from . import channels, checks, clock_repairs, interpolated, repairs, stuck_values
from .examination import Examination
from .position_jumps import correct_jumps
from .velocity_checks import check_velocity
from .wrapping import unwrap_clock, unwrap_efforts, unwrap_positions

_FEWEST_ROWS = 100


@dataclass(frozen=True, eq=False)
class QualityReport:
    """Level and findings of a log.

    Attributes:
        recording: The repaired log: rows complete, time strictly increasing.
        findings: The findings, in the order of the checks.
    """

    recording: Recording
    findings: tuple[Judgement, ...]
    rows: int

    @property
    def verdict(self) -> Verdict:
        """The verdict on the log, which is not used if it is poor."""
        return Verdict.of(self.findings)

    def with_findings(self, findings: Iterable[Judgement]) -> QualityReport:
        """Returns the report with these findings."""
        return replace(self, findings=tuple(findings))

    def as_dict(self) -> dict[str, Any]:
        """The report for JSON."""
        return {
            "log": self.recording.name,
            "path": self.recording.path,
            "acceptable": self.verdict.level != "poor",
            "rows": self.rows,
            "rows_used": len(self.recording),
            "findings": [finding.as_dict() for finding in self.findings],
        }


def assess(recording: Recording, robot: Robot) -> QualityReport:
    """Assesses and repairs a log.

    Args:
        recording: The log as read or converted to the joint side; rows may be bad.

    Returns:
        The repaired log and all findings. Checks that a refusal makes meaningless (such as a missing clock) are
        skipped.
    """
    state = Examination(recording)
    for note in recording.notes:
        state.add(Id.NOTE, note)
    _examine(state, robot)
    return QualityReport(state.recording, tuple(state.findings), len(recording))


def _examine(state: Examination, robot: Robot) -> None:
    repairs.zero_vanishing_values(state)
    repairs.join_rows(state)
    repairs.drop_unreadable_rows(state)
    if _too_few(state):
        return
    clock_repairs.check_time_unit(state)
    if state.stopped:
        return
    unwrap_clock(state)
    unwrap_positions(state, robot)
    unwrap_efforts(state, robot)
    repairs.repair_values(state, robot)
    if state.stopped or _too_few(state):
        return
    clock_repairs.repair_order(state)
    if state.stopped:
        return
    interpolated.drop_bridged_rows(state, robot)
    clock_repairs.repair_clock(state)
    if state.stopped or _too_few(state):
        return
    correct_jumps(state, robot)
    clock_repairs.split_joined_runs(state)
    clock_repairs.check_lost_rows(state)
    checks.check_position_unit(state, robot)
    if not state.stopped:
        checks.check_locked(state, robot)
        channels.check_held(state, robot)
        interpolated.check_straight(state, robot)
        interpolated.check_averaged(state, robot)
        stuck_values.check_clipped(state, robot)
        stuck_values.check_frozen(state, robot)
        channels.check_computed(state, robot)
    checks.check_effort(state, robot)
    channels.check_steps(state, robot)
    channels.check_sign_lost(state, robot)
    channels.check_dead_zone(state, robot)
    channels.check_copied(state, robot)
    checks.check_motion(state, robot)
    check_velocity(state, robot)


def _too_few(state: Examination) -> bool:
    count = len(state.recording)
    if count >= _FEWEST_ROWS:
        return False
    state.add(Id.TOO_FEW_ROWS, f"too few usable rows: {count}", remedy=f"record at least {_FEWEST_ROWS}")
    return True
