"""The torque error of a result along a log, for animations."""

from __future__ import annotations

import numpy as np

from ..data.recording import Recording
from ..linalg import Array
from ..result.identification import Identification
from ..result.scores import filtered_errors, predict
from .compensate import prepared_log


def torque_error(ident: Identification, recording: Recording, *, force: bool = False) -> tuple[Array, Array]:
    """Error of the predicted torque, relative to the RMS of the joint's measured torque.

    Both torques are low-pass filtered as in the fit and the scores.

    Args:
        recording: A log with efforts.
        force: Use the log in spite of findings that refuse it.

    Returns:
        Time of the parts in motion, shape (N,) [s], and absolute error over the root mean square of the measured torque,
        shape (N, n) [1].

    Raises:
        QualityError: The log is refused.
    """
    log = prepared_log(ident, recording, force)
    tau, error = filtered_errors(log, predict(ident.model, ident.theta, log), ident.signals["cutoff"])
    time = np.concatenate([part.time for part in log.segments])
    scale = np.sqrt(np.mean(tau**2, axis=0))
    return time, np.abs(error) / np.maximum(scale, np.finfo(float).tiny)
