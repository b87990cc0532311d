"""The pages of the five papers, which ``scripts/papers/all`` writes: every claim has figures and an outcome."""

from __future__ import annotations

from pathlib import Path

import pytest

PAGES = sorted((Path(__file__).parents[1] / "docs" / "papers").glob("*.md"))


def test_there_is_one_page_a_paper() -> None:
    assert [page.stem.rsplit("_", 1)[0] for page in PAGES] == ["gautier", "liu", "szabo", "wu", "zollo"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_claim_ends_in_an_outcome(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert "$" not in text, "a figure is missing"
    claims = text.partition("## Claims")[2].partition("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in claims.splitlines() if line.startswith("| ")][1:]
    assert len(rows) >= 6
    for claim, _, here, outcome in rows:
        assert outcome.startswith(("reproduced", "better", "not reproducible, ")), claim
        assert any(letter.isdigit() for letter in here) or "not reproducible" in outcome, claim
    assert "urdf-ident" in text.partition("## On your own robot")[2]
