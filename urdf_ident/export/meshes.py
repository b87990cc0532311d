"""Meshes of a URDF as assets of a MuJoCo model."""

from __future__ import annotations

import os
from pathlib import Path

from ..model.meshes import find_mesh
from .strict_mjcf import readable_mesh


class MeshAssets:
    """Collects the mesh files that a model uses, each with one scale once.

    Args:
        urdf: The URDF, which names of meshes are relative to.
        folder: Where the model will lie, which paths are written relative to; None writes absolute ones.
        wanted: False to leave all meshes out.
    """

    def __init__(self, urdf: Path, folder: Path | None, wanted: bool = True) -> None:
        self._urdf, self._folder, self._wanted = urdf, folder, wanted
        self._names: dict[tuple[Path, str], str] = {}
        self._absent: list[str] = []
        self._unreadable: list[str] = []
        self._found: dict[str, Path | None] = {}

    def name_of(self, filename: str, scale: str) -> str | None:
        """The asset of a mesh.

        Args:
            filename: As the URDF names it.
            scale: As the URDF states it, three numbers.

        Returns:
            The asset's name; None where the file is absent, or MuJoCo does not read it.
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
        """Attributes of each asset, in the order of their use."""
        return [{"name": name, "file": self._written(path), "scale": scale} for (path, scale), name in self._names.items()]

    def notes(self) -> tuple[str, ...]:
        """What was left out."""
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
        except ValueError:  # another drive
            return str(whole)
