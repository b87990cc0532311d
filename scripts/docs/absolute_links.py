"""Makes links to files of the repository absolute, in place: package indexes show a README without the files around it.

python scripts/docs/absolute_links.py README.md https://example.org/urdf_ident
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

#: ``](target)`` of a Markdown link or picture whose target is neither an address nor a place on the same page.
_LINK = re.compile(r"(!?)(\[[^\]]*\]\()(?!https?://|#|mailto:)([^)\s]+)(\))")


def absolute(text: str, home: str) -> str:
    """Markdown whose pictures lead to ``HOME/raw/main/…``, other links to files to ``HOME/blob/main/…``."""
    if not home:
        return text
    root = home.rstrip("/")

    def one(found: re.Match[str]) -> str:
        kind = "raw" if found[1] else "blob"
        return f"{found[1]}{found[2]}{root}/{kind}/main/{found[3]}{found[4]}"

    return _LINK.sub(one, text)


if __name__ == "__main__":
    page, address = Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else ""
    page.write_text(absolute(page.read_text(encoding="utf-8"), address), encoding="utf-8")
