"""The published protocol of the EMPS benchmark: filters with MATLAB's ends instead of those of this package."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from scipy import signal

from urdf_ident import DynamicModel, Segment
from urdf_ident.statistics import rows
from urdf_ident.statistics.rows import RowFilter


def matlab_filtfilt(x: np.ndarray, rate: float, cutoff: float, order: int) -> np.ndarray:
    """A zero-phase Butterworth low-pass."""
    sections = signal.butter(order, cutoff, fs=rate, output="sos")
    return np.asarray(signal.sosfiltfilt(sections, x, axis=0, padlen=3 * order))  # MATLAB: 3·(max(len a, len b) − 1)


def matlab_decimate(x: np.ndarray, factor: int) -> np.ndarray:
    """Every ``factor``-th sample, the last one included, after a zero-phase Chebyshev low-pass of order 8."""
    sections = signal.cheby1(8, 0.05, 0.8 / factor, output="sos")  # coefficients of one polynomial lose seven digits
    whole = signal.sosfiltfilt(sections, x, axis=0, padlen=3 * 8)  # MATLAB: 3·(max(len a, len b) − 1)
    return whole[(len(x) - 1) % factor :: factor]  # MATLAB counts back from the last sample


@contextmanager
def matlab_rows() -> Iterator[None]:
    """Rows are filtered and decimated by :func:`matlab_decimate` inside."""

    def unscaled(model: DynamicModel, segment: Segment, kept: RowFilter, compact: bool, weights: Any = None) -> Any:
        (_, blocks), *_ = model.row_blocks(segment, chunk=len(segment), torque=True, **({"compact": True} if compact else {}))
        yield 0, [matlab_decimate(block, kept.factor) for block in blocks]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows, "unscaled_rows", unscaled)
        patch.setattr(rows, "_kept", lambda *_: None)  # rows that are kept are filtered as usual
        patch.setattr(RowFilter, "output_rows", lambda kept, samples: -(-samples // kept.factor))
        yield
