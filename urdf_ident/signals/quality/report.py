"""Assesses a log: lossless repairs are made and listed; otherwise the log is refused with a remedy.

Each of these faults costs more accuracy than any choice of estimator gains.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from ...judgements.catalogue import Id
from ...judgements.judgement import Judgement, Verdict
from ...logs.recording import Recording
from ...model.robot import Robot
from . import channels, checks, clock_repairs, values
from .discontinuities import repair_discontinuities
from .examination import Examination

#: Fewest usable rows of a log.
_FEWEST = 100
#: What may be repaired, in this order; a refusal ends it, as later repairs need a usable clock and complete rows.
REPAIRS: tuple[Callable[[Examination], None], ...] = (
    values.zero_vanishing,
    values.join_rows,
    values.drop_unreadable,
    clock_repairs.check_time_unit,
    values.unwrap,
    values.repair,
    clock_repairs.repair_order,
    channels.drop_bridged,
    clock_repairs.repair_clock,
    repair_discontinuities,
    checks.check_position_unit,
)
#: Checks of a repaired log, all of which are made.
CHECKS: tuple[Callable[[Examination], None], ...] = (
    checks.check_locked,
    channels.check_rates,
    channels.drop_clipped,
    channels.drop_frozen,
    channels.check_computed,
    checks.check_effort,
    channels.check_steps,
    channels.check_sign_lost,
    channels.check_dead_zone,
    channels.check_copied,
    channels.check_commanded,
    checks.check_motion,
    checks.check_velocity,
)


@dataclass(frozen=True, eq=False)
class QualityReport:
    """Level and findings of a log.

    Attributes:
        recording: The repaired log: rows complete, time strictly increasing.
        findings: The findings, in the order of the checks.
    """

    recording: Recording
    findings: tuple[Judgement, ...]

    @property
    def verdict(self) -> Verdict:
        """The verdict on the log, which is not used if it is poor."""
        return Verdict.of(self.findings)

    def with_findings(self, findings: Iterable[Judgement]) -> QualityReport:
        """Returns the report with these findings."""
        return replace(self, findings=tuple(findings))


def assess(recording: Recording, robot: Robot) -> QualityReport:
    """Assesses and repairs a log, as read or on the joint side; a refusal ends the checks that it makes meaningless."""
    state = Examination(recording, robot)
    for note in recording.notes:
        state.add(Id.NOTE, note)
    for repair in REPAIRS:
        repair(state)
        if len(state.recording) < _FEWEST and not state.stopped:
            state.add(Id.TOO_FEW_ROWS, f"too few usable rows: {len(state.recording)}", remedy=f"record at least {_FEWEST}")
        if state.stopped:
            break
    else:
        for check in CHECKS:
            check(state)
    return QualityReport(state.recording, tuple(state.findings))
