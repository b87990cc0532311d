"""Compiled functions of SciPy without the packages that contain them, whose imports take 0.1 s of the processor or more."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import lru_cache
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

#: Codes in SciPy's compiled functions: a sample beyond the ends equals the nearest; the result of too few iterations.
_NEAREST, _NOT_CONVERGED = 0, 3


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


def non_negative_least_squares(A: NDArray[np.float64], b: NDArray[np.float64], most: int) -> NDArray[np.float64]:
    """Minimises ``‖A x − b‖`` subject to ``x ≥ 0``, equal to ``scipy.optimize.nnls``.

    Args:
        A: Shape (m, k).
        b: Shape (m,).
        most: Number of iterations after which it gives up.

    Returns:
        Shape (k,).

    Raises:
        RuntimeError: The active set did not converge.
    """
    part = part_of_scipy("scipy.optimize._slsqplib")
    if not hasattr(part, "nnls"):
        return import_module("scipy.optimize").nnls(A, b, maxiter=most)[0]  # type: ignore[no-any-return]
    x, _, outcome = part.nnls(np.ascontiguousarray(A), b, most)
    if outcome == _NOT_CONVERGED:
        raise RuntimeError("Maximum number of iterations reached.")
    return x  # type: ignore[no-any-return]


def windowed(kind: Literal["mean", "least", "largest"], rows: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    """Mean, least or largest of the samples around each along axis 0, equal to the filters of ``scipy.ndimage``.

    Args:
        rows: Shape (N,) or (N, m); the first and last are repeated beyond the ends.
        size: Window length in samples.

    Returns:
        Same shape.
    """
    rows, out, ends = np.asarray(rows), np.empty(np.shape(rows)), (_NEAREST, 0.0, 0)
    part = part_of_scipy("scipy.ndimage._nd_image") or import_module("scipy.ndimage._nd_image")
    if kind == "mean":
        part.uniform_filter1d(rows, size, 0, out, *ends)
    else:
        part.min_or_max_filter1d(rows, size, 0, out, *ends, kind == "least")
    return out
