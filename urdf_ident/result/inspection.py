"""The findings of an inspection of logs, with their verdict and text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from ..grouping import grouped
from ..judgements.judgement import Judgement, Verdict


@dataclass(frozen=True)
class InspectedLog:
    """What was found in one log; rows: None if it could not be read."""

    name: str
    findings: tuple[Judgement, ...]
    rows: int | None = None

    @property
    def verdict(self) -> Verdict:
        """The verdict on the log, which is not used if it is poor."""
        return Verdict.of(self.findings)

    def as_dict(self) -> dict[str, Any]:
        rows = {} if self.rows is None else {"rows": self.rows}
        findings = [finding.as_dict() for finding in self.findings]
        return {"log": self.name, **rows, "acceptable": self.verdict.level != "poor", "findings": findings}


@dataclass(frozen=True)
class Inspection:
    """What was found in logs."""

    inspected: tuple[InspectedLog, ...]

    @property
    def logs(self) -> tuple[Mapping[str, Any], ...]:
        """As `inspect --json` prints them: for each log its name, its rows if it could be read, whether it is acceptable, and
        its findings."""
        return tuple(log.as_dict() for log in self.inspected)

    @property
    def all_read(self) -> bool:
        """Whether every log could be read."""
        return all(log.rows is not None for log in self.inspected)

    @property
    def verdict(self) -> Verdict:
        """The verdict on all logs together; poor if one of them cannot be used."""
        return Verdict.of(judgement for log in self.inspected for judgement in log.findings)

    def summary(self) -> str:
        """The findings of all logs, then level and findings of each; successive findings that share a remedy state it once."""
        of_each = [log.findings for log in self.inspected]
        of_all = [one for one in of_each[0] if all(one in others for others in of_each)] if len(of_each) > 1 else []
        lines = [f"all {len(self.inspected)} logs:", *_finding_lines(of_all)] if of_all else []
        for log in self.inspected:
            warnings = sum(judgement.severity == "warning" for judgement in log.findings)
            count = f"usable, {warnings} warning{'s' if warnings > 1 else ''}"
            level = {"good": "good", "usable": count, "poor": "REFUSED"}[log.verdict.level]
            lines.append(f"{log.name}: {level}{'' if log.rows is None else f' ({log.rows} rows)'}")
            lines += _finding_lines([judgement for judgement in log.findings if judgement not in of_all])
        return "\n".join(lines)

    __str__ = summary


def _finding_lines(judgements: Sequence[Judgement]) -> list[str]:
    """Judgements with their remedies; those that differ in the joint alone are one line."""
    lines = []
    alike = grouped(((f.severity, f.message, str(f.remedy), f.rows), f) for f in judgements)
    for remedy, group in groupby(alike.values(), lambda same: str(same[0].remedy or "")):
        for finding, *others in group:
            words = replace(finding, remedy=None).line([other.joint for other in others])
            lines.append(f"  {finding.severity:<8} {words}")
        lines += [f"  {'':<8} -> {remedy}"] if remedy else []
    return lines
