"""The torque error of a result along a log, for pictures that move."""

from __future__ import annotations

import numpy as np

from ..data.recording import Recording
from ..linalg import Array
from ..result.identification import Identification
from ..result.scores import filtered_errors, predict
from .compensate import prepared_log


def torque_error(ident: Identification, recording: Recording, *, force: bool = False) -> tuple[Array, Array]:
    """How far the predicted torque is from the measured one, over the joint's usual torque.

    Both are behind the low-pass of the fit, as in the scores.

    Args:
        recording: A log with efforts.
        force: Go on in spite of findings that refuse the log.

    Returns:
        Time, shape (N,) [s], of the parts in motion, and absolute error over the root mean square of the measured torque,
        shape (N, n) [1].

    Raises:
        QualityError: The log is refused.
    """
    log = prepared_log(ident, recording, force)
    tau, error = filtered_errors(log, predict(ident.model, ident.theta, log), ident.signals["cutoff"])
    time = np.concatenate([part.time for part in log.segments])
    scale = np.sqrt(np.mean(tau**2, axis=0))
    return time, np.abs(error) / np.maximum(scale, np.finfo(float).tiny)
