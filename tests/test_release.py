"""What a release needs: absolute links in README, and one version everywhere."""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "scripts" / "docs"))

from absolute_links import absolute  # noqa: E402


def test_links_to_files_become_absolute_and_others_stay() -> None:
    text = "![a](docs/play.png) [b](docs/a.md#x) [c](https://e.org/x) [d](#here) `f(x)[0](y)`"
    home = "https://example.org/me/urdf_ident/"
    told = absolute("![a](docs/play.png) [b](docs/a.md#x) [c](https://e.org/x) [d](#here)", home)
    assert told == (
        "![a](https://example.org/me/urdf_ident/raw/main/docs/play.png) "
        "[b](https://example.org/me/urdf_ident/blob/main/docs/a.md#x) [c](https://e.org/x) [d](#here)"
    )
    assert absolute(text, "") == text
    assert "](docs/" not in absolute((ROOT / "README.md").read_text(encoding="utf-8"), home)


def test_one_version_everywhere() -> None:
    version = re.search(r'^version = "(.+)"', (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE)
    assert version is not None
    assert f"## [{version[1]}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"\nversion: {version[1]}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
