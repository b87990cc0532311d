"""Compiled functions of SciPy without the packages that contain them, whose imports take 0.1 s of the processor or more."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import lru_cache
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray


@lru_cache
def part_of_scipy(name: str, *siblings: str) -> Any:
    """A compiled module of SciPy, ``"scipy.linalg._flapack"``, without its package, whose import takes 0.1 s of CPU or more.

    Args:
        siblings: Modules of the same package that it imports, in this order.

    Returns:
        The module; None in a SciPy with another file layout.
    """
    package = name.rpartition(".")[0]
    folder = os.path.join(import_module("scipy").__path__[0], *package.split(".")[1:])
    for part in (*(f"{package}.{sibling}" for sibling in siblings), name):
        spec = None if part in sys.modules else PathFinder.find_spec(part, [folder])
        if spec is None or spec.loader is None:
            continue
        try:
            sys.modules[part] = module_from_spec(spec)
            spec.loader.exec_module(sys.modules[part])
        except ImportError:  # it needs others of its package
            sys.modules.pop(part, None)
            return None
    return sys.modules.get(name)


def lapack() -> Any:
    """Returns a module with the functions of ``scipy.linalg.lapack``."""
    part = part_of_scipy("scipy.linalg._flapack")
    return import_module("scipy.linalg.lapack") if part is None else part


@lru_cache
def special(name: str) -> Callable[..., Any]:
    """Returns a compiled function of ``scipy.special`` by its name."""
    part = part_of_scipy("scipy.special._ufuncs", "_special_ufuncs", "_gufuncs", "_ufuncs_cxx", "_ellip_harm_2")
    return getattr(part if hasattr(part, name) else import_module("scipy.special"), name)  # type: ignore[no-any-return]


def cosine_coefficients(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Orthonormal discrete cosine transform (type II) along axis 0, equal to that of ``scipy.fft``.

    Args:
        rows: Shape (N,) or (N, m); N > 0.

    Returns:
        Same shape.
    """
    part = part_of_scipy("scipy.fft._pocketfft.pypocketfft")
    if hasattr(part, "dct"):
        return part.dct(rows, 2, (0,), 1, None, 1)  # type: ignore[no-any-return]
    return import_module("scipy.fft").dct(rows, axis=0, norm="ortho")  # type: ignore[no-any-return]
