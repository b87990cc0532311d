"""Shared text formatting: aligned columns, a finding in one line."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Formats a table with aligned columns, the first one left-aligned."""
    widths = [max(len(str(row[k])) for row in [header, *rows]) for k in range(len(header))]
    cells = [[str(cell).rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)] for row in [header, *rows]]
    firsts = [str(row[0]).ljust(widths[0]) for row in [header, *rows]]
    return ["  " + "  ".join([first, *rest]).rstrip() for first, rest in zip(firsts, cells, strict=True)]


def finding_words(finding: Mapping[str, Any], joints: Sequence[str] = ()) -> str:
    """Formats one finding about a log: joint, rows, message and remedy.

    Args:
        finding: As in ``findings`` of identification.json.
        joints: Other joints with the same finding.
    """
    rows, remedy = finding.get("rows"), finding.get("remedy")
    where = f" (from row {rows[0]})" if rows else ""
    return f"{joint_message(finding, joints)}{where}" + (f" -> {remedy}" if remedy else "")


def joint_message(finding: Mapping[str, Any], joints: Sequence[str] = ()) -> str:
    """Returns the message of a finding with its joint.

    Args:
        finding: As in ``findings`` of identification.json.
        joints: Other joints with the same finding.

    Returns:
        The message, preceded by the joint unless it names it.
    """
    joint, message = finding.get("joint"), str(finding["message"])
    named = joint is None or re.search(rf"(?<!\w){re.escape(joint)}(?!\w)", message)
    more = [other for other in joints if other != joint]
    also = f" (also {', '.join(more)})" if more else ""
    return f"{message}{also}" if named else f"{joint}{also}: {message}"
