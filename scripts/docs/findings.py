"""Writes docs/findings.md: every finding's stable id, from urdf_ident/judgements/catalogue.py.

scripts/docs/findings.py            # writes the page; a test fails while it is stale
"""

from __future__ import annotations

from pathlib import Path

from urdf_ident.files.read_write import write_text
from urdf_ident.judgements.catalogue import SECTIONS, Id

PAGE = Path(__file__).parents[2] / "docs" / "findings.md"


def page() -> str:
    """The whole page."""
    lines = [
        "# Findings and verdicts",
        "",
        "Everything that is judged of a log, a result or a payload has a stable `id`: the `findings` of `inspect --json` and",
        "`identify --json`, and the `causes` of a verdict. This page is generated from `urdf_ident/judgements/catalogue.py` by",
        "`python scripts/docs/findings.py`.",
        "",
        "`info` is for information only; `repaired` was corrected; `warning` is a doubt, with which a log or result is",
        "usable; `refused` makes it poor: `identify` ends with exit code 1, for a log unless `--force` or `--skip-bad-logs`",
        "is given. A finding has a `joint` or none, `rows`, a `message`, a `remedy`, its `settings` (entries of the project",
        "file to apply), a `size` where the table names one, and a `certainty` from 0 to 1 where causes were compared.",
    ]
    for id in Id:
        if id in SECTIONS:
            lines += ["", f"## {SECTIONS[id]}", "", "| id | usually | meaning | what to do | size |", "|---|---|---|---|---|"]
        entry = id.entry
        remedy = entry.remedy or "–"
        lines.append(f"| `{id}` | {entry.severity} | {entry.meaning} | {remedy[0].upper()}{remedy[1:]} | {entry.size} |")
    lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    write_text(PAGE, page())
