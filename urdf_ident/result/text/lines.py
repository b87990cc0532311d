"""Aligned columns of text."""

from __future__ import annotations

from collections.abc import Sequence


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Formats a table with aligned columns, the first one left-aligned."""
    widths = [max(len(str(row[k])) for row in [header, *rows]) for k in range(len(header))]
    cells = [[str(cell).rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)] for row in [header, *rows]]
    firsts = [str(row[0]).ljust(widths[0]) for row in [header, *rows]]
    return ["  " + "  ".join([first, *rest]).rstrip() for first, rest in zip(firsts, cells, strict=True)]
