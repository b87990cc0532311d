"""The page of project-file keys is what the classes say today."""

from __future__ import annotations

import runpy
from pathlib import Path

SCRIPT = Path(__file__).parents[1] / "scripts" / "docs" / "project_file.py"


def test_the_page_is_up_to_date() -> None:
    module = runpy.run_path(str(SCRIPT))
    assert module["PAGE"].read_text(encoding="utf-8") == module["page"](), "run scripts/docs/project_file.py"


def test_every_key_says_what_it_is() -> None:
    rows = [line for line in runpy.run_path(str(SCRIPT))["page"]().splitlines() if line.startswith("| `")]
    assert len(rows) > 50
    assert not [row for row in rows if row.endswith("|  |")]
