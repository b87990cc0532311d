"""The torque error of a result along a log, for pictures that move."""

from __future__ import annotations

import numpy as np

from ..data.conditioning.filters import lowpass
from ..data.prepare import prepare_log
from ..data.recording import Recording
from ..linalg import Array
from ..project import Project
from ..result.identification import Identification
from ..result.scores import predict


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
    model = ident.model
    config = Project.model_validate(ident.config).scoring_config(ident.signals)
    log = prepare_log(recording, model.robot, model.drive, config, force=force)
    predicted, begin, errors, usual = predict(model, ident.theta, log), 0, [], []
    for part in log.segments:
        model_torque = predicted[begin : begin + len(part)]
        begin += len(part)
        errors.append(np.abs(lowpass(part.total - model_torque, part.rate, ident.signals["cutoff"])))
        usual.append(lowpass(part.total, part.rate, ident.signals["cutoff"]) ** 2)
    time = np.concatenate([part.start + np.arange(len(part)) / part.rate for part in log.segments])
    scale = np.sqrt(np.concatenate(usual).mean(axis=0))
    return time, np.concatenate(errors) / np.maximum(scale, np.finfo(float).tiny)
