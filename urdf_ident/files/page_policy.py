"""Content-Security-Policy of the pages that are written and served: nothing remote, no script but those of the page."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256

#: The rule of a page that connects to nothing.
NO_CONNECTION = "connect-src 'none'"


def page_policy(scripts: Sequence[str], connect: Sequence[str] = (), files: Sequence[str] = ()) -> str:
    """Returns the policy of a page.

    Args:
        scripts: Texts of its scripts, as they stand between the tags. They are known before contents are filled in, so that
            a script that got into the contents is not run.
        connect: Addresses that its scripts may connect to.
        files: Sources that it may load scripts from: ``'self'`` for files beside it.
    """
    hashes = [f"'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'" for script in scripts]
    rules = {
        "default-src": ["'none'"],
        "script-src": [*files, *hashes] or ["'none'"],
        "style-src": ["'unsafe-inline'"],
        "img-src": ["data:", "blob:"],
        "connect-src": list(connect) or ["'none'"],
        "base-uri": ["'none'"],
        "form-action": ["'none'"],
    }
    return "; ".join(" ".join([name, *values]) for name, values in rules.items())
