"""Writes docs/findings.md: every finding's stable id, from urdf_ident/signals/quality/catalogue.py.

scripts/docs/findings.py            # writes the page; a test fails while it is stale
"""

from __future__ import annotations

from pathlib import Path

from urdf_ident.files.read_write import write_text
from urdf_ident.judgements.catalogue import KNOWN

PAGE = Path(__file__).parents[2] / "docs" / "findings.md"


def page() -> str:
    """The whole page."""
    lines = [
        "# Findings",
        "",
        "Every finding of `urdf-ident inspect --json` and `identify --json` has a stable `id`. This page is generated from",
        "`urdf_ident/signals/quality/catalogue.py` by `python scripts/docs/findings.py`.",
        "",
        "`info` is for information only; `repaired` was corrected; `warning` is a doubt that the summary repeats; `refused`",
        "ends `identify` with exit code 1, unless `--force` or `--skip-bad-logs` is given. A finding has a `joint` or none,",
        "`rows`, a `message`, a `remedy`, a `size` where the table names one, and a `certainty` from 0 to 1 where causes were",
        "compared.",
        "",
    ]
    for title, kinds in KNOWN.items():
        lines += [f"## {title}", "", "| id | usually | meaning | what to do | size |", "|---|---|---|---|---|"]
        lines += [f"| `{name}` | {k.severity} | {k.meaning} | {k.remedy} | {k.size} |" for name, k in kinds.items()]
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    write_text(PAGE, page())
