"""Mesh files: found beside a URDF or a world file, as ``file://``, or in a ROS package, and loaded."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import numpy as np

from ..files.read_write import allowed, read_bytes
from ..files.sizes import LARGEST
from ..linalg import Array

MESH_FORMATS = (".stl", ".dae", ".obj")
#: Files that mark the folder of a package: of ROS, of Gazebo.
_MARKS = ("package.xml", "model.config")
#: Folders of a package in which its URDFs lie by convention.
_URDF_FOLDERS = ("urdf", "robots")


@contextmanager
def packages_in(folders: Sequence[Path]) -> Iterator[None]:
    """Context in which further folders hold packages; other processes started in it know them as well.

    Args:
        folders: Folders of packages, or folders that hold such folders.
    """
    before = os.environ.get("ROS_PACKAGE_PATH")
    os.environ["ROS_PACKAGE_PATH"] = os.pathsep.join([*(str(folder.resolve()) for folder in folders), *filter(None, [before])])
    try:
        yield
    finally:
        os.environ.pop("ROS_PACKAGE_PATH")
        os.environ.update({} if before is None else {"ROS_PACKAGE_PATH": before})


def find_mesh(name: str, urdf: Path) -> Path | None:
    """Finds a mesh file in the folder of the URDF, in a package, or in the folders that the user has named.

    A package is a folder above the URDF, or in one of these, with a ``package.xml`` or a ``model.config``; ``meshes`` beside
    a folder ``urdf`` belongs to it without. The folders in ``ROS_PACKAGE_PATH`` and ``AMENT_PREFIX_PATH`` are the user's.

    Args:
        name: The ``filename`` of the URDF: a path, ``file://…``, ``package://PACKAGE/…`` or ``model://…``.

    Returns:
        The file, all links followed, or None if it is missing, lies elsewhere, or cannot be read.
    """
    if not name or Path(name).suffix.lower() not in MESH_FORMATS:
        return None
    folder, url = urdf.resolve().parent, urlparse(name)
    package = url.netloc if url.scheme in ("package", "model") else ""
    bases = [folder, *folder.parents, *_named_by_user()]
    if package:
        inside = unquote(url.path).lstrip("/")
        named = [place for base in bases for place in ([base] if base.name == package else []) + [base / package]]
        candidates = [place / inside for place in named]
    else:
        candidates = [Path(unquote(url.path)) if url.scheme == "file" else folder / name]
    roots = [*reachable_folders(folder), *(root for base in bases for root in _package(base / package))]
    files = (allowed(candidate, roots) for candidate in candidates)
    return next((file for file in files if file is not None and mesh_box(file) is not None), None)


def beside_mesh(name: str, mesh: Path) -> Path | None:
    """Finds a file that a mesh names, such as a texture.

    Args:
        name: A path relative to the mesh, or ``file://…``.

    Returns:
        The file, all links followed; None if it is missing, at an address, or outside of the mesh's folder and package.
    """
    url = urlparse(name)
    if url.scheme not in ("", "file") or url.netloc:
        return None
    return allowed(mesh.parent / unquote(url.path), reachable_folders(mesh.parent))


@lru_cache(maxsize=256)
def mesh_box(path: Path) -> Array | None:
    """Returns the bounding box of a mesh.

    Returns:
        Lowest and highest corner, shape (2, 3) [m], or None if the file is invalid, empty or too large.
    """
    try:
        mesh = load_mesh(path, np.ones(3))
    except (OSError, ValueError, RuntimeError):
        return None
    mesh.computeLocalAABB()
    box = np.array([mesh.aabb_local.min_, mesh.aabb_local.max_])
    return box if np.isfinite(box).all() and (box[1] >= box[0]).all() else None


def load_mesh(path: Path, scale: Array) -> Any:
    """Loads a mesh file and none that it names.

    Args:
        path: The file, as :func:`find_mesh` returns it.
        scale: Shape (3,).

    Raises:
        ValueError, RuntimeError: It is invalid or too large.
    """
    import coal  # type: ignore[import-untyped]  # comes with Pinocchio, and reads the three formats

    loader = coal.MeshLoader(coal.BV_OBBRSS)
    if path.stat().st_size > LARGEST["mesh"]:
        raise ValueError("the mesh is too large")
    if path.suffix.lower() != ".obj":
        return loader.load(str(path), scale)
    # the library opens the material files that an OBJ names, wherever they are: it gets vertices and faces only
    lines = re.split(rb"[\r\n\f\0]+", re.sub(rb"\\\r?\n", b" ", read_bytes(path, "mesh")))
    with tempfile.TemporaryDirectory() as folder:
        bare = Path(folder) / "mesh.obj"
        bare.write_bytes(b"\n".join(line for line in lines if line.lstrip()[:1] in (b"v", b"f")) + b"\n")
        return loader.load(str(bare), scale)


def reachable_folders(folder: Path) -> list[Path]:
    """Folders that a file in a folder may refer to: its own, its package, and those that the user has named."""
    meshes = [folder.parent / "meshes"] if folder.name in _URDF_FOLDERS else []
    return [folder, *meshes, *_named_by_user(), *(root for above in (folder, *folder.parents) for root in _package(above))]


def _package(folder: Path) -> list[Path]:
    """A folder if it is a package, and the one that its mark links to (packages are installed as links)."""
    marks = [folder / mark for mark in _MARKS if (folder / mark).is_file()]
    return [folder, *(mark.resolve().parent for mark in marks)] if marks else []


def _named_by_user() -> list[Path]:
    listed = os.environ.get("ROS_PACKAGE_PATH", "").split(os.pathsep)
    installed = os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep)
    return [*(Path(entry) for entry in listed if entry), *(Path(entry) / "share" for entry in installed if entry)]
