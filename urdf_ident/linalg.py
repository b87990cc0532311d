"""The array type, small linear-algebra routines shared by several subpackages, and the noise of sampled values."""

from __future__ import annotations

from decimal import Decimal
from functools import lru_cache
from numbers import Real
from statistics import NormalDist
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .errors import LimitError, ShapeError, UrdfIdentError, check_shape

#: Array of 64-bit floats; shapes and units are given in the docstrings.
Array = NDArray[np.float64]
#: Array of truth values.
BoolArray = NDArray[np.bool_]
#: Array of integers, as NumPy uses them for indices.
IntArray = NDArray[np.intp]
#: Smaller than anything measured.
_TINY = 1e-300
#: Half-width of a 95 % interval of a normal distribution, and its median absolute deviation, in standard deviations.
NORMAL_95, _NORMAL_MAD = NormalDist().inv_cdf(0.975), NormalDist().inv_cdf(0.75)
#: Robust standard deviations by which a sample that differs from its like is an outlier.
OUTLYING = 10.0
#: Where Tukey's biweight becomes zero, in standard deviations, for an efficiency of 95 % with Gaussian noise.
TUKEY = 4.685


def shaped(name: str, values: ArrayLike, expected: tuple[int | str, ...]) -> Array:
    """Converts numbers to an array and checks its shape.

    Args:
        name: Name of the argument, for the message.
        values: The numbers, an array or lists.
        expected: As for :func:`.check_shape`.

    Raises:
        ShapeError: It has another shape, or there is something else than numbers.
    """
    try:
        given = np.asarray(values)
        if given.dtype.kind == "O" and all(isinstance(x, Real | Decimal) for x in given.flat):
            given = given.astype(float)
    except (ValueError, OverflowError):
        given = np.asarray("")
    if given.dtype.kind not in "biuf":  # also text that reads as a number
        raise ShapeError(f"'{name}' is no number or array of numbers", got=values)
    check_shape(name, given.shape, expected)
    return given.astype(float, copy=False)


def one_each(name: str, values: ArrayLike, n: int, error: type[UrdfIdentError] = LimitError) -> Array:
    """One number for each of n joints, shape (n,).

    Args:
        name: Name of the argument, for the message.
        values: Shape (n,), or one number for all joints.

    Raises:
        UrdfIdentError: An ``error``: the numbers are not finite, or not n.
    """
    numbers = np.asarray(values, dtype=float)
    numbers = np.full(n, float(numbers)) if numbers.ndim == 0 else numbers
    if numbers.shape != (n,) or not np.isfinite(numbers).all():
        raise error(f"{name} needs {n} finite numbers", got=numbers.tolist(), remedy="give one per joint")
    return numbers


def solve_triangular(R: Array, b: Array, transposed: bool = False) -> Array:
    """Solves ``R x = b``, shape of b.

    Args:
        R: Upper-triangular, shape (k, k); its other triangle is not referenced.
        b: Shape (k,) or (k, m).
        transposed: Solve ``Rᵀ x = b``.

    Raises:
        numpy.linalg.LinAlgError: The diagonal has a zero.
    """
    from scipy.linalg import lapack

    # LAPACK is column-major and sees a row-major matrix as its transpose
    by_columns = R.flags.f_contiguous
    given, turned = (R, transposed) if by_columns else (R.T, not transposed)
    x, info = lapack.dtrtrs(given, b, lower=not by_columns, trans=turned) if b.size else (np.zeros(b.shape), 0)
    if info:
        raise np.linalg.LinAlgError(f"singular matrix: the diagonal's element {info} is zero")
    return np.asarray(x)


def lstsq(A: Array, b: Array, rcond: float | None = None) -> tuple[Array, int]:
    """Minimum-norm least-squares solution of ``A x = b``.

    NumPy's solver (LAPACK gelsd) does not converge for a few well-scaled matrices; gelss is used if it fails.

    Args:
        A: Shape (m, k).
        b: Shape (m,) or (m, c).
        rcond: Singular values below this fraction of the largest count as zero; None: rounding error of A.

    Returns:
        The solution, shape (k,) or (k, c), and the rank of A.
    """
    try:
        x, _, rank, _ = np.linalg.lstsq(A, b, rcond=rcond)
    except np.linalg.LinAlgError:
        from scipy.linalg import lstsq as by_scipy

        cut = max(A.shape) * np.finfo(float).eps if rcond is None else rcond
        x, _, rank, _ = by_scipy(A, b, cond=cut, lapack_driver="gelss")
    return np.asarray(x), int(rank)


def scaled_lstsq(A: Array, b: Array, rcond: float | None = None) -> Array:
    """Minimum-norm least-squares solution in columns scaled to unit norm, so that ``rcond`` does not depend on units.

    Args:
        A: Shape (m, k).
        b: Shape (m,) or (m, c); the solution has shape (k,) or (k, c), 0 for columns of zeros.
        rcond: As for :func:`lstsq`.
    """
    scale = positive(np.linalg.norm(A, axis=0))
    return np.asarray((lstsq(A / scale, b, rcond)[0].T / scale).T)


def orthogonal_part(b: Array, A: Array, rcond: float | None = None) -> Array:
    """Part of some columns that is orthogonal to others, which are scaled to unit norm.

    Args:
        b: Shape (m,) or (m, c).
        A: The other columns, shape (m, k).
        rcond: As for :func:`lstsq`.
    """
    scaled = unit_columns(A)
    return np.asarray(b - scaled @ lstsq(scaled, b, rcond)[0])


def unit_columns(A: Array) -> Array:
    """Columns divided by their norms; columns of zeros are unchanged; A of shape (m, k)."""
    return np.asarray(A / positive(np.linalg.norm(A, axis=0)))


def triangle(*stack: Any, overwrite: bool = False) -> Array:
    """Upper-triangular (or trapezoidal) factor R of stacked blocks A, with ``RᵀR = ΣAᵀA``, by Householder QR.

    Args:
        stack: Arrays of shape (m_i, k).
        overwrite: Whether a single column-contiguous array may be overwritten, which avoids a copy.

    Returns:
        Shape (min(Σm_i, k), k).
    """
    rows = np.vstack(stack) if len(stack) > 1 else np.asarray(stack[0], dtype=float)
    if rows.shape[0] == 0:
        return np.zeros((0, rows.shape[1]))
    if rows.size == 0:
        return np.zeros((0, 0))
    from scipy.linalg import lapack

    # NumPy's overhead is as large as a small QR; its unblocked reflections take twice as long for a large one
    if len(rows) <= UNBLOCKED:
        made = lapack.dgeqrf(rows, overwrite_a=overwrite)
    else:
        made = lapack.dgeqrt(min(REFLECTIONS, *rows.shape), rows, overwrite_a=overwrite)
    factor = np.ascontiguousarray(made[0][: min(rows.shape)])
    factor[_below(*factor.shape)] = 0.0
    return factor


#: Singular values of a regressor below this fraction of the largest count as zero.
_SEEN = 1e-13


def standard_errors(W: Array) -> Array:
    """Returns the standard errors of the parameters for rows with unit noise, ``sqrt diag (WᵀW)⁻¹``, from R.

    Args:
        W: Weighted regressor, shape (m, b).

    Returns:
        Shape (b,); inf for parameters that the rows do not determine.
    """
    norms = np.linalg.norm(W, axis=0)
    errors, used = np.full(W.shape[1], np.inf), np.flatnonzero(norms > 0)
    scaled = W[:, used] / norms[used]
    _, sigma, right = np.linalg.svd(triangle(scaled) if len(scaled) > len(used) else scaled)
    sigma = np.concatenate([sigma, np.zeros(len(used) - len(sigma))])
    seen = sigma > _SEEN * sigma.max(initial=0.0)
    known = np.linalg.norm(right[~seen], axis=0) < 1e-8
    errors[used] = np.where(known, np.linalg.norm(right[seen].T / sigma[seen], axis=1) / norms[used], np.inf)
    return errors


@lru_cache(maxsize=256)
def _below(rows: int, columns: int) -> BoolArray:
    """Mask of the elements below the diagonal."""
    return np.tri(rows, columns, -1, dtype=bool)


#: Columns that are compared with those found before at a time, by matrix products; distance below which that is repeated.
_PANEL, _CANCELLED = 32, 0.1


def independent_columns(columns: Array, tolerance: float, given: Array | None = None) -> tuple[BoolArray, Array, Array]:
    """Finds the columns farther than a tolerance from the span of those found before, by Gram-Schmidt.

    Args:
        columns: In the order in which they are tried, of about unit norm, shape (m, k).
        tolerance: Distance up to which a column is dependent.
        given: Orthonormal basis of directions that count as found, shape (m, g).

    Returns:
        Whether each column is independent, its distance, shapes (k,), and an orthonormal basis of their span, shape (m, r).
    """
    count = 0 if given is None else given.shape[1]
    Q = np.zeros((len(columns), min(len(columns), columns.shape[1] + count)), order="F")
    if given is not None:
        Q[:, :count] = given
    independent, distances = np.zeros(columns.shape[1], dtype=bool), np.empty(columns.shape[1])
    for begin in range(0, columns.shape[1], _PANEL):
        panel, before = _outside(columns[:, begin : begin + _PANEL], Q[:, :count]), count
        for j, rest in enumerate(panel.T, begin):
            rest = _outside(rest, Q[:, before:count])
            distances[j] = np.linalg.norm(rest)
            if distances[j] > tolerance and count < Q.shape[1]:
                if distances[j] < _CANCELLED:  # what rounding left of the earlier directions has a larger share in it
                    rest = _outside(rest, Q[:, :count])
                independent[j], Q[:, count] = True, rest / np.linalg.norm(rest)
                count += 1
    return independent, distances, Q[:, :count]


def _outside(columns: Array, basis: Array) -> Array:
    """Columns without their parts in the span of an orthonormal basis, shape as given."""
    for _ in range(2):  # twice is enough (Kahan)
        columns = columns - basis @ (basis.T @ columns)
    return columns


def block_diagonal(*blocks: Array) -> Array:
    """Block-diagonal matrix, shape (Σm_i, Σk_i); blocks: shapes (m_i, k_i)."""
    ends = np.cumsum([block.shape for block in blocks], axis=0)
    out = np.zeros(ends[-1])
    for block, (row, column) in zip(blocks, ends, strict=True):
        out[row - len(block) : row, column - block.shape[1] : column] = block
    return out


#: Number of rows up to which unblocked Householder reflections are faster than blocked ones.
UNBLOCKED = 150
#: Block size of the reflections, for the few dozen columns of a row group.
REFLECTIONS = 8


def whitening(moments: Array, cut: float) -> Array:
    """Whitening matrix W of a second-moment (or covariance) matrix M: ``Wᵀ M W = I``, shape (k, directions).

    Args:
        moments: M, symmetric and positive semidefinite, shape (k, k).
        cut: Directions whose eigenvalue, with M scaled to unit diagonal, is at most this fraction of the largest are dropped.
    """
    scale = np.sqrt(np.maximum(np.diag(moments), 0.0))
    inverse = np.where(scale > 0, 1.0 / np.where(scale > 0, scale, 1.0), 0.0)
    # one side after the other: the product of both scales overflows for columns smaller than 1e-154
    values, vectors = np.linalg.eigh(inverse[:, None] * moments * inverse)
    kept = values > cut * values.max(initial=0.0)
    return np.asarray(inverse[:, None] * vectors[:, kept] / np.sqrt(values[kept]))


@overload
def rms(x: ArrayLike) -> float: ...
@overload
def rms(x: ArrayLike, axis: int | tuple[int, ...]) -> Array: ...
def rms(x: ArrayLike, axis: int | tuple[int, ...] | None = None) -> float | Array:
    """Root mean square.

    Args:
        x: Any shape.
        axis: Axes of the mean; all if None.
    """
    root = np.sqrt(np.mean(np.square(np.asarray(x, dtype=float)), axis=axis))
    return float(root) if axis is None else np.asarray(root)


@overload
def positive(size: float) -> float: ...
@overload
def positive(size: ArrayLike) -> Array: ...
def positive(size: ArrayLike) -> float | Array:
    """A size as divisor: zero by zero is zero then; also as the argument of a logarithm.

    Args:
        size: Any shape, not negative.

    Returns:
        The size, at least 1e-300, shape of ``size``.
    """
    return max(size, _TINY) if isinstance(size, float) else np.maximum(size, _TINY)


def divisors(sizes: ArrayLike) -> Array:
    """Sizes of the joints' torques by which errors are divided; a joint without torque is compared with the largest.

    Args:
        sizes: RMS or largest torque of each joint, shape (n,) [N·m or N].

    Returns:
        Positive sizes, shape (n,); those below 1e-9 of the largest, which are rounding errors, are replaced by it.
    """
    sizes = np.asarray(sizes, dtype=float)
    largest = positive(float(sizes.max(initial=0.0)))
    return np.where(sizes > 1e-9 * largest, sizes, largest)


def vertex(left: float, middle: float, right: float) -> float:
    """Place of the minimum of the parabola through values at −1, 0 and 1; 0 if it has none.

    Args:
        left, middle, right: The values.
    """
    curvature = left - 2 * middle + right
    return 0.5 * (left - right) / curvature if curvature > 0 else 0.0


def white_noise(x: Array) -> Array:
    """Estimates the noise of signals from their third differences, which a smooth motion hardly shows.

    Args:
        x: Shape (N,) or (N, n).

    Returns:
        Standard deviation, shape () or (n,), in the unit of x; 0 with fewer than four samples.
    """
    third = np.diff(x, 3, axis=0)
    return np.asarray(robust_std(third) / np.sqrt(20.0) if len(third) else np.zeros(x.shape[1:]))


def robust_std(x: Array) -> Array:
    """Returns the standard deviation of Gaussian noise with outliers, from the median of its magnitudes.

    Args:
        x: Shape (N,) or (N, n), with mean zero.
    """
    return np.asarray(np.median(np.abs(x), axis=0) / _NORMAL_MAD)


def tukey_weights(u: ArrayLike) -> Array:
    """Returns Tukey's biweight: smoothly decreasing, 0 beyond :data:`TUKEY`.

    Args:
        u: Residuals over their robust standard deviation, any shape.
    """
    return np.asarray(np.maximum(1 - (np.asarray(u) / TUKEY) ** 2, 0.0) ** 2)
