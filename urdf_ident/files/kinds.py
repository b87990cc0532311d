"""Kinds of files by their beginning, so that an output never replaces a file of another kind."""

from __future__ import annotations

import re

_TABLE = "a table with the columns "
#: Root elements of XML files that are distinguished.
_ROOTS = {
    b"html": "a web page",
    b"robot": "a URDF",
    b"mujoco": "an MJCF model",
    b"sdf": "an SDFormat model",
    b"svg": "a picture",
}


def kind_of(data: bytes) -> str:
    """Kind of a file, from its beginning.

    Args:
        data: The content, or at least its first 4 kB.

    Returns:
        Words such as ``"a URDF"``. A table is named by its columns, so that two tables are of one kind if they have the same.
    """
    head = data[:4096].removeprefix(b"\xef\xbb\xbf").lstrip()
    if head.startswith(b"<"):
        root = re.search(rb"<([A-Za-z][\w:]*)", re.sub(rb"<!--.*?(-->|$)", b"", head, flags=re.DOTALL))
        return "XML" if root is None else _ROOTS.get(root[1].lower(), "XML")
    if head.startswith((b"\x89PNG", b"%PDF")):
        return "a picture"
    if head.startswith((b"{", b"[")):
        return "JSON"
    first = head.split(b"\n", 1)[0].decode("utf-8", "replace").strip()
    commas = first.count(",") + first.count(";") + first.count("\t")
    return f"{_TABLE}{first}" if commas >= 2 else "another file"


def difference(there: str, new: str) -> str:
    """Says what tells an existing file from the new one.

    Args:
        there: Its kind, from :func:`kind_of`.

    Returns:
        The end of a sentence, such as ``"is a URDF; it would be replaced by a picture"``.
    """
    if there.startswith(_TABLE) and new.startswith(_TABLE):
        old, columns = (kind.removeprefix(_TABLE).split(",") for kind in (there, new))
        lost = [name for name in old if name not in columns]
        if lost:
            return f"holds {len(lost)} column(s) that the new table lacks ({lost[0]}{', …' if len(lost) > 1 else ''})"
        return "is another table"
    names = ("a table" if kind.startswith(_TABLE) else kind for kind in (there, new))
    return "is {}; it would be replaced by {}".format(*names)
