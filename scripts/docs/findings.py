"""Writes docs/findings.md: every finding's stable id, from urdf_ident/data/quality/catalogue.py.

scripts/docs/findings.py            # writes the page; a test fails while it is stale
"""

from __future__ import annotations

from pathlib import Path

from urdf_ident.data.quality.catalogue import page
from urdf_ident.files.read_write import write_text

PAGE = Path(__file__).parents[2] / "docs" / "findings.md"

if __name__ == "__main__":
    write_text(PAGE, page())
