"""The array type, and small linear algebra that several rooms share."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Of 64-bit floats; shapes and units are in the docstrings.
Array = NDArray[np.float64]


def triangle(*stack: Any) -> Array:
    """Upper-triangular (or trapezoidal) factor R with ``RᵀR = ΣAᵀA`` over stacked blocks, by Householder QR.

    Args:
        stack: Arrays of shape (m_i, k).

    Returns:
        Shape (min(Σm_i, k), k).
    """
    rows = np.vstack(stack) if len(stack) > 1 else np.asarray(stack[0], dtype=float)
    if rows.shape[0] == 0:
        return np.zeros((0, rows.shape[1]))
    return np.asarray(np.linalg.qr(rows, mode="r"))
