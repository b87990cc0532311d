"""Where a result came from: versions of what computed it, hashes of what it read."""

from __future__ import annotations

import hashlib
import platform
from functools import lru_cache
from importlib import metadata
from pathlib import Path

_PACKAGES = ("urdf-ident", "pin", "numpy", "scipy", "cvxpy", "clarabel")


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that decide numbers.

    Returns:
        Package name → version; packages that are not installed are left out.
    """
    found = {"python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


@lru_cache(maxsize=1)
def computing() -> dict[str, str]:
    """What two processes must have in common to compute the same numbers.

    Returns:
        :func:`versions` without Python's, and a hash of this package's modules.
    """
    found = {name: version for name, version in versions().items() if name != "python"}
    folder = Path(__file__).parent
    modules = sorted((path.relative_to(folder).as_posix(), path) for path in folder.rglob("*.py"))
    return {**found, "source": sha256(b"".join(name.encode() + path.read_bytes() for name, path in modules))[:12]}


def sha256(data: bytes) -> str:
    """Hash of some bytes.

    Args:
        data: The bytes.

    Returns:
        Hexadecimal SHA-256.
    """
    return hashlib.sha256(data).hexdigest()
