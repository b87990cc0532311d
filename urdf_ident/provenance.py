"""Where a result came from: versions of what computed it, hashes of what it read."""

from __future__ import annotations

import hashlib
import platform
from importlib import metadata

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


def sha256(data: bytes) -> str:
    """Hash of some bytes.

    Args:
        data: The bytes.

    Returns:
        Hexadecimal SHA-256.
    """
    return hashlib.sha256(data).hexdigest()
