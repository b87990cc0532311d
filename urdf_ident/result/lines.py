"""Text that several outputs share: aligned columns, a finding in one line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Aligned text columns, the first one left.

    Args:
        header: Column titles.
        rows: Cells.

    Returns:
        Lines.
    """
    widths = [max(len(str(row[k])) for row in [header, *rows]) for k in range(len(header))]
    lines = []
    for row in [header, *rows]:
        cells = [str(cell).rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        lines.append("  " + "  ".join([str(row[0]).ljust(widths[0]), *cells]).rstrip())
    return lines


def finding_words(finding: Mapping[str, Any]) -> str:
    """One finding about a log: which joint and row, what, and its remedy.

    Args:
        finding: As in ``findings`` of identification.json.

    Returns:
        One line.
    """
    joint, rows, remedy = finding.get("joint"), finding.get("rows"), finding.get("remedy")
    owner = f"{joint}: " if joint and joint not in finding["message"] else ""
    where = f" (from row {rows[0]})" if rows else ""
    return f"{owner}{finding['message']}{where}" + (f" -> {remedy}" if remedy else "")
