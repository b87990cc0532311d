"""Provenance of a result: versions of the software that computed it, hashes of its inputs."""

from __future__ import annotations

import hashlib
import platform
from functools import lru_cache
from importlib import metadata
from pathlib import Path

_PACKAGES = ("urdf-ident", "pin", "numpy", "scipy", "cvxpy", "clarabel")


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that affect numerical results.

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
    """Versions that two processes must share to compute the same numbers.

    Returns:
        :func:`versions` without that of Python, and a hash of this package's modules.
    """
    found = {name: version for name, version in versions().items() if name != "python"}
    folder = Path(__file__).parent
    modules = sorted((path.relative_to(folder).as_posix(), path) for path in folder.rglob("*.py"))
    return {**found, "source": sha256(b"".join(name.encode() + path.read_bytes() for name, path in modules))[:12]}


def sha256(data: bytes) -> str:
    """SHA-256 hash of bytes."""
    return hashlib.sha256(data).hexdigest()
