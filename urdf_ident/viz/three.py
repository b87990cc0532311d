"""Objects of three.js in the format of Meshcat's viewer, and the commands that add them to the scene.

The viewer accepts the JSON format of three.js, so that everything three.js can draw is described directly. Light is
computed in linear colour space (the page switches the renderer to sRGB output), hence the conversion of colours here.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..linalg import Array

Command = dict[str, Any]
Entry = dict[str, Any]
Indices = NDArray[np.int64]
#: NumPy type → name of the JavaScript array and code of its message-pack extension.
_ARRAYS = {"uint8": ("Uint8Array", 0x12), "uint32": ("Uint32Array", 0x16), "float32": ("Float32Array", 0x17)}


class SceneObject:
    """Builder for one object of the scene; always a group, because the viewer makes every single object cast shadows.

    Args:
        path: Path in the scene.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._geometries: list[Entry] = []
        self._materials: list[Entry] = []
        self._children: list[Entry] = []

    def geometry(self, **entry: Any) -> str:
        """Adds a geometry."""
        return self._store(self._geometries, "geometry", entry)

    def material(self, **entry: Any) -> str:
        """Adds a material."""
        return self._store(self._materials, "material", entry)

    def child(self, kind: str, matrix: Array | None = None, **entry: Any) -> None:
        """Adds a child; matrix of shape (4, 4) [m]: its placement, the origin if None."""
        place = {} if matrix is None else {"matrix": flat(matrix)}
        self._store(self._children, "child", {"type": kind, **place, **entry})

    def command(self) -> Command:
        """Returns the command that adds it to the scene."""
        group = {"uuid": self.path, "type": "Group", "children": self._children}
        whole = {
            "metadata": {"version": 4.5, "type": "Object"},
            "geometries": self._geometries,
            "materials": self._materials,
            "object": group,
        }
        return {"type": "set_object", "path": self.path, "object": whole}

    def _store(self, store: list[Entry], kind: str, entry: Entry) -> str:
        identity = f"{self.path} {kind} {len(store)}"
        store.append({**entry, "uuid": identity})
        return identity


def set_transform(path: str, matrix: Array) -> Command:
    """Moves a node of the scene; matrix of shape (4, 4) [m]: its placement in its parent."""
    return {"type": "set_transform", "path": path, "matrix": flat(matrix)}


def flat(matrix: Array) -> list[float]:
    """Returns a matrix as 16 numbers, in the column-major order of three.js; matrix of shape (4, 4)."""
    return [float(value) for value in matrix.T.reshape(-1)]


def packed(array: Any) -> Any:
    """Encodes an array of any shape for Meshcat's viewer: 8- or 32-bit unsigned integers, or 32-bit floats."""
    import umsgpack  # type: ignore[import-untyped]  # as Meshcat does

    return umsgpack.Ext(_ARRAYS[array.dtype.name][1], np.ascontiguousarray(array).tobytes())


def float32(array: Array) -> str:
    """Encodes an array of any shape as text, in 32-bit floats; array: any shape."""
    return base64.b64encode(np.ascontiguousarray(array, dtype="<f4").tobytes()).decode("ascii")


def buffers(points: Array, *, colours: Array | None = None, faces: Indices | None = None, flat_up: bool = False) -> Entry:
    """Returns the data of a ``BufferGeometry``.

    Args:
        points: Vertices, shape (K, 3) [m].
        colours: Linear red, green, blue and, if it fades, opacity of each vertex, shape (K, 3) or (K, 4).
        faces: Triangles, shape (T, 3), counter-clockwise from outside.
        flat_up: All normals point up.
    """
    arrays = {"position": points, "color": colours, "normal": np.tile([0.0, 0.0, 1.0], (len(points), 1)) if flat_up else None}
    attributes = {
        name: {
            "type": "Float32Array",
            "array": packed(array.astype(np.float32)),
            "itemSize": array.shape[1],
            "normalized": False,
        }
        for name, array in arrays.items()
        if array is not None
    }
    data: Entry = {"attributes": attributes}
    if faces is not None:
        data["index"] = {"type": "Uint32Array", "array": packed(faces.reshape(-1).astype(np.uint32))}
    return data


def linear(colour: ArrayLike) -> Array:
    """Converts sRGB to linear light, both 0..1; colour of shape (3,) or any other."""
    value = np.asarray(colour, dtype=float)
    return np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)


def hexadecimal(colour: Sequence[float]) -> int:
    """Returns a colour (red, green, blue, sRGB 0..1) in the form of three.js, ``0xRRGGBB``, in linear light."""
    red, green, blue = (round(255 * float(value)) for value in linear(colour))
    return (red << 16) | (green << 8) | blue
