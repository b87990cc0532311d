"""The findings of an inspection of logs, with their verdict and text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from ..grouping import grouped
from ..judgements.judgement import Judgement, Verdict


@dataclass(frozen=True)
class Inspection:
    """What was found in logs.

    Attributes:
        logs: As `inspect --json` prints them: for each log its name, whether it is acceptable, its findings, and its rows if it
            could be read.
    """

    logs: tuple[Mapping[str, Any], ...]

    @property
    def verdict(self) -> Verdict:
        """The verdict on all logs together; poor if one of them cannot be used."""
        return Verdict.of(judgement for log in self.logs for judgement in _judgements(log))

    def summary(self) -> str:
        """The findings of all logs, then level and findings of each; successive findings that share a remedy state it once."""
        of_each = [_judgements(log) for log in self.logs]
        of_all = [one for one in of_each[0] if all(one in others for others in of_each)] if len(of_each) > 1 else []
        lines = [f"all {len(self.logs)} logs:", *_finding_lines(of_all)] if of_all else []
        for log, judgements in zip(self.logs, of_each, strict=True):
            warnings = sum(judgement.severity == "warning" for judgement in judgements)
            count = f"usable, {warnings} warning{'s' if warnings > 1 else ''}"
            level = {"good": "good", "usable": count, "poor": "REFUSED"}[Verdict.of(judgements).level]
            rows = f" ({log['rows']} rows)" if "rows" in log else ""
            lines.append(f"{log['log']}: {level}{rows}")
            lines += _finding_lines([judgement for judgement in judgements if judgement not in of_all])
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


def _judgements(log: Mapping[str, Any]) -> list[Judgement]:
    return [Judgement.from_dict(finding) for finding in log["findings"]]
