"""Locates the mesh files of a URDF: relative to it, as ``file://``, or in a ROS package."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path
from urllib.parse import unquote, urlparse

import numpy as np

from ..linalg import Array

MESH_FORMATS = (".stl", ".dae", ".obj")


def find_mesh(name: str, urdf: Path) -> Path | None:
    """Finds a mesh file.

    A package is looked for in the folders above the URDF, then in ``ROS_PACKAGE_PATH`` and ``AMENT_PREFIX_PATH``.

    Args:
        name: The ``filename`` of the URDF: a path, ``file://…``, ``package://PACKAGE/…`` or ``model://…``.

    Returns:
        The file, or None if it is missing or cannot be read.
    """
    if not name or Path(name).suffix.lower() not in MESH_FORMATS:
        return None
    folder = urdf.resolve().parent
    url = urlparse(name)
    if url.scheme in ("package", "model"):
        candidates = _in_package(url.netloc, unquote(url.path).lstrip("/"), folder)
    elif url.scheme == "file":
        candidates = [Path(unquote(url.path))]
    else:
        candidates = [folder / name]
    return next((path for path in candidates if path.is_file() and mesh_box(path) is not None), None)


@lru_cache(maxsize=256)
def mesh_box(path: Path) -> Array | None:
    """Returns the bounding box of a mesh.

    Returns:
        Lowest and highest corner, shape (2, 3) [m], or None if the file is invalid or empty.
    """
    import coal  # type: ignore[import-untyped]  # comes with Pinocchio, and reads the three formats

    try:
        mesh = coal.MeshLoader().load(str(path), np.ones(3))
    except (ValueError, RuntimeError):
        return None
    mesh.computeLocalAABB()
    box = np.array([mesh.aabb_local.min_, mesh.aabb_local.max_])
    return box if np.isfinite(box).all() and (box[1] >= box[0]).all() else None


def _in_package(package: str, inside: str, folder: Path) -> list[Path]:
    above = [folder, *folder.parents]
    listed = [Path(entry) for entry in os.environ.get("ROS_PACKAGE_PATH", "").split(os.pathsep) if entry]
    installed = [Path(entry) / "share" for entry in os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep) if entry]
    candidates = []
    for root in [*above, *listed, *installed]:
        if root.name == package:
            candidates.append(root / inside)
        candidates.append(root / package / inside)
    return candidates
