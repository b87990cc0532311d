"""Meshes of a URDF as assets of a MuJoCo model."""

from __future__ import annotations

import os
from pathlib import Path

from ..model.meshes import find_mesh
from .strict_mjcf import readable_mesh


class MeshAssets:
    """Collects the mesh files that a model uses, once per file and scale.

    Args:
        urdf: The URDF, to which names of meshes are relative.
        folder: Folder of the model, to which written paths are relative; None: absolute paths.
        wanted: False to omit all meshes.
    """

    def __init__(self, urdf: Path, folder: Path | None, wanted: bool = True) -> None:
        self._urdf, self._folder, self._wanted = urdf, folder, wanted
        self._names: dict[tuple[Path, str], str] = {}
        self._absent: list[str] = []
        self._unreadable: list[str] = []
        self._found: dict[str, Path | None] = {}

    def name_of(self, filename: str, scale: str) -> str | None:
        """Returns the asset name of a mesh.

        Args:
            filename: File name in the URDF.
            scale: Scale in the URDF, three numbers.

        Returns:
            The asset's name; None if the file is missing or MuJoCo cannot read it.
        """
        if not self._wanted:
            return None
        if filename not in self._found:
            path = find_mesh(filename, self._urdf)
            if path is None:
                self._absent.append(filename)
            elif not readable_mesh(path):
                self._unreadable.append(filename)
                path = None
            self._found[filename] = path
        found = self._found[filename]
        if found is None:
            return None
        key = (found, " ".join(scale.split()) or "1 1 1")
        if key not in self._names:
            self._names[key] = f"{found.stem}_{len(self._names)}"
        return self._names[key]

    def entries(self) -> list[dict[str, str]]:
        """Attributes of each asset, in order of use."""
        return [{"name": name, "file": self._written(path), "scale": scale} for (path, scale), name in self._names.items()]

    def notes(self) -> tuple[str, ...]:
        """Notes on meshes that were omitted."""
        notes = []
        for names, why in ((self._absent, "is not there"), (self._unreadable, "is no OBJ or binary STL with a volume")):
            if names:
                more = f" (and {len(names) - 1} more)" if len(names) > 1 else ""
                notes.append(f"mesh '{names[0]}'{more} {why}: left out of the MuJoCo model")
        return tuple(notes)

    def _written(self, path: Path) -> str:
        whole = path.resolve()
        if self._folder is None:
            return str(whole)
        try:
            return os.path.relpath(whole, self._folder.resolve())
        except ValueError:  # on another drive (Windows)
            return str(whole)
