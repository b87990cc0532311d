"""The array type, and small linear algebra that several rooms share."""

from __future__ import annotations

import os
import sys
from functools import lru_cache
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .errors import UrdfIdentError, check_shape

#: Of 64-bit floats; shapes and units are in the docstrings.
Array = NDArray[np.float64]


@lru_cache(maxsize=1)
def lapack() -> Any:
    """LAPACK as SciPy wraps it, without the rest of ``scipy.linalg``: importing that takes seven times as long, 0.1 s of CPU.

    Returns:
        A module with the functions of ``scipy.linalg.lapack``.
    """
    name = "scipy.linalg._flapack"
    if name not in sys.modules:
        import scipy

        spec = PathFinder.find_spec(name, [os.path.join(scipy.__path__[0], "linalg")])
        if spec is None or spec.loader is None:  # a SciPy that is laid out in another way
            from scipy.linalg import lapack as public

            return public
        sys.modules[name] = module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


def shaped(name: str, values: ArrayLike, expected: tuple[int | str, ...]) -> Array:
    """Numbers as an array of a given shape.

    Args:
        name: The argument's name, for the message.
        values: The numbers, an array or lists.
        expected: As for :func:`.check_shape`.

    Returns:
        The array, of the shape that is wanted.

    Raises:
        ShapeError: It has another shape.
    """
    found = np.asarray(values, dtype=float)
    check_shape(name, found.shape, expected)
    return found


def one_each(name: str, values: ArrayLike, n: int, error: type[UrdfIdentError]) -> Array:
    """Numbers of n joints.

    Args:
        name: The argument's name, for the message.
        values: Shape (n,), or one number for all.
        n: How many.
        error: What to raise.

    Returns:
        Shape (n,).

    Raises:
        UrdfIdentError: They are not finite, or not n; of the given kind.
    """
    numbers = np.asarray(values, dtype=float)
    numbers = np.full(n, float(numbers)) if numbers.ndim == 0 else numbers
    if numbers.shape != (n,) or not np.isfinite(numbers).all():
        raise error(f"{name} needs {n} finite numbers", got=numbers.tolist(), remedy="give one per joint")
    return numbers


def solve_triangular(R: Array, b: Array, transposed: bool = False, lower: bool = False) -> Array:
    """Solves ``R x = b``.

    Args:
        R: Triangular, shape (k, k); what is on its other side is not looked at.
        b: Shape (k,) or (k, m).
        transposed: Solve ``Rᵀ x = b``.
        lower: R is lower-triangular.

    Returns:
        Shape of b.

    Raises:
        numpy.linalg.LinAlgError: The diagonal has a zero.
    """
    # LAPACK has columns one after the other: of a matrix stored by rows it takes the transpose
    by_columns = R.flags.f_contiguous
    given, below, turned = (R, lower, transposed) if by_columns else (R.T, not lower, not transposed)
    x, info = lapack().dtrtrs(given, b, lower=below, trans=turned) if b.size else (np.zeros(b.shape), 0)
    if info:
        raise np.linalg.LinAlgError(f"singular matrix: the diagonal's element {info} is zero")
    return np.asarray(x)


def cholesky(A: Array) -> Array:
    """The factor R of ``A = Rᵀ R``.

    Args:
        A: Symmetric and positive definite, shape (k, k).

    Returns:
        Upper-triangular, shape (k, k).

    Raises:
        numpy.linalg.LinAlgError: A is not positive definite.
    """
    R, info = lapack().dpotrf(A)
    if info:
        raise np.linalg.LinAlgError(f"not positive definite: the leading minor of order {info}")
    return np.asarray(R)


def solve_cholesky(R: Array, b: Array) -> Array:
    """Solves ``Rᵀ R x = b``.

    Args:
        R: From :func:`cholesky`, shape (k, k).
        b: Shape (k,) or (k, m).

    Returns:
        Shape of b.
    """
    return np.asarray(lapack().dpotrs(R, b)[0])


def lstsq(A: Array, b: Array, rcond: float | None = None) -> tuple[Array, int]:
    """The shortest of the vectors that minimise ``‖A x − b‖``.

    NumPy's way (LAPACK's gelsd) does not converge on a few well-scaled matrices; where it fails, gelss is asked.

    Args:
        A: Shape (m, k).
        b: Shape (m,) or (m, c).
        rcond: Singular values below this part of the largest one are zero; None: the rounding of A.

    Returns:
        Shape (k,) or (k, c), and the rank of A.
    """
    try:
        x, _, rank, _ = np.linalg.lstsq(A, b, rcond=rcond)
    except np.linalg.LinAlgError:
        from scipy.linalg import lstsq as by_scipy

        cut = max(A.shape) * np.finfo(float).eps if rcond is None else rcond
        x, _, rank, _ = by_scipy(A, b, cond=cut, lapack_driver="gelss")
    return np.asarray(x), int(rank)


def triangle(*stack: Any, overwrite: bool = False) -> Array:
    """Upper-triangular (or trapezoidal) factor R with ``RᵀR = ΣAᵀA`` over stacked blocks, by Householder QR.

    Args:
        stack: Arrays of shape (m_i, k).
        overwrite: Whether a single array whose columns are in one piece may be lost: nothing as large is held beside it.

    Returns:
        Shape (min(Σm_i, k), k).
    """
    rows = np.vstack(stack) if len(stack) > 1 else np.asarray(stack[0], dtype=float)
    if rows.shape[0] == 0:
        return np.zeros((0, rows.shape[1]))
    if rows.size == 0:
        return np.zeros((0, 0))
    # NumPy's preparations cost as much as a small one, and its reflections, one at a time, twice as much as a large one
    if len(rows) <= _SMALL:
        made = lapack().dgeqrf(rows, overwrite_a=overwrite)
    else:
        made = lapack().dgeqrt(min(_REFLECTIONS, *rows.shape), rows, overwrite_a=overwrite)
    factor = np.ascontiguousarray(made[0][: min(rows.shape)])
    factor[_below(*factor.shape)] = 0.0
    return factor


@lru_cache(maxsize=256)
def _below(rows: int, columns: int) -> NDArray[np.bool_]:
    """Below the diagonal."""
    return np.tri(rows, columns, -1, dtype=bool)


def block_diagonal(*blocks: Array) -> Array:
    """Blocks one after the other along the diagonal, zeros elsewhere.

    Args:
        blocks: Shapes (m_i, k_i).

    Returns:
        Shape (Σm_i, Σk_i).
    """
    ends = np.cumsum([block.shape for block in blocks], axis=0)
    out = np.zeros(ends[-1])
    for block, (row, column) in zip(blocks, ends, strict=True):
        out[row - len(block) : row, column - block.shape[1] : column] = block
    return out


#: Rows up to which reflections one at a time are faster than some together.
_SMALL = 150
#: Reflections at a time; for the few dozen columns of a row group.
_REFLECTIONS = 8
#: Rows per column from which reflections of a triangle on top of the rows are faster than those of the rows alone.
_TALL = 3


def whitening(moments: Array, cut: float) -> Array:
    """Columns that turn second moments (or a covariance) into 1: ``Wᵀ M W = 1``.

    Args:
        moments: M, symmetric and positive semidefinite, shape (k, k).
        cut: Directions are left out whose eigenvalue, once the diagonal is 1, is at most this part of the largest.

    Returns:
        Shape (k, directions).
    """
    scale = np.sqrt(np.maximum(np.diag(moments), 0.0))
    inverse = np.where(scale > 0, 1.0 / np.where(scale > 0, scale, 1.0), 0.0)
    values, vectors = np.linalg.eigh(moments * np.outer(inverse, inverse))
    kept = values > cut * max(float(values.max(initial=0.0)), 1e-300)
    return np.asarray(inverse[:, None] * vectors[:, kept] / np.sqrt(values[kept]))


def quantiles(x: Array, *parts: float) -> tuple[float, ...]:
    """Quantiles, linear between neighbours: NumPy's, which takes up to eight times as long for a few thousand numbers.

    Args:
        x: Shape (N,), not empty; nowhere changed.
        parts: From 0 to 1.

    Returns:
        One of each part; all NaN where one of the numbers is.
    """
    last = len(x) - 1
    places = [(int(last * part), last * part) for part in parts]
    ordered = np.partition(x, sorted({last, *(min(low + k, last) for low, _ in places for k in (0, 1))}))
    if np.isnan(ordered[last]):
        return (float("nan"),) * len(parts)
    found = []
    for low, place in places:
        below, above = float(ordered[low]), float(ordered[min(low + 1, last)])
        rest = place - low
        found.append(below + (above - below) * rest if rest < 0.5 else above - (above - below) * (1 - rest))
    return tuple(found)


def running_median(x: Array, size: int) -> Array:
    """Median of every sample and its neighbours, the first and last sample standing for those beyond the ends.

    For the few neighbours of a filter this takes no more time than SciPy's, whose import costs as much as a thousand of them.

    Args:
        x: Shape (N, ...), not empty; without NaN.
        size: Samples that are looked at, odd.

    Returns:
        Shape of x.
    """
    half = size // 2
    ends = np.concatenate([np.repeat(x[:1], half, axis=0), x, np.repeat(x[-1:], half, axis=0)])
    shifted = [ends[k : k + len(x)] for k in range(size)]
    held, rest = shifted[: half + 2], shifted[half + 2 :]
    while len(held) > 1:  # of more than half of them, neither the least nor the greatest is the median
        for k in range(1, len(held)):
            held[0], held[k] = np.minimum(held[0], held[k]), np.maximum(held[0], held[k])
        for k in range(1, len(held) - 1):
            held[k], held[-1] = np.minimum(held[k], held[-1]), np.maximum(held[k], held[-1])
        held = [*held[1:-1], *rest[:1]]
        rest = rest[1:]
    return held[0]


class Absorber:
    """A triangular factor that takes up rows as they come; rows wait until there are enough of them to be worth it.

    Args:
        width: Number of columns.
        waiting: Rows that wait, at most about.
    """

    def __init__(self, width: int, waiting: int = 1024) -> None:
        self.width, self.waiting = width, max(waiting, width)
        self._factor: Array | None = None
        self._parts: list[Array] = []
        self._count = 0

    def add(self, rows: Array) -> None:
        """Takes rows up.

        Args:
            rows: Shape (m, width); kept until they are absorbed, so not to be changed.
        """
        self._parts.append(rows)
        self._count += len(rows)
        if self._count >= self.waiting:
            self._absorb()

    def factor(self) -> Array:
        """A factor of all rows so far: no more rows than columns.

        Returns:
            Shape (≤ width, width), with ``RᵀR`` the sum over rows; triangular unless there were no more rows than that.
        """
        if self._factor is not None:
            return self._absorb() if self._parts else self._factor
        if self._count > max(_SMALL, _TALL * self.width):
            return self._absorb()
        rows = np.vstack([np.zeros((0, self.width)), *self._parts])
        return rows if len(rows) <= self.width else triangle(rows)

    def _absorb(self) -> Array:
        rows = np.empty((self.width, self._count)).T  # columns one after the other, as LAPACK has them
        np.concatenate(self._parts, out=rows)
        old = np.zeros((self.width, self.width), order="F") if self._factor is None else np.asfortranarray(self._factor)
        if self.width:  # Householder reflections of a triangle on top of rows (Elmroth, Gustavson 2000)
            old, _, _, info = lapack().dtpqrt(0, min(_REFLECTIONS, self.width), old, rows, overwrite_a=1, overwrite_b=1)
            if info != 0:
                raise ValueError(f"LAPACK refuses argument {-info}")
        self._factor, self._parts, self._count = old, [], 0
        return old
