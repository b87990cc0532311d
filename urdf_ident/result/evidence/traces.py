"""Series for plots: short series of torque, the histogram of speeds, autocorrelation and spectrum of the residual.

Each record is bounded, however long the logs are: at most :data:`POINTS` samples of one section of a log, :data:`BINS` speeds
per joint, :data:`LAGS` lags and :data:`BANDS` frequencies. They are stored beside identification.json (``series.json``), so
that a report can be made again without the logs.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ...files.read_write import read_text, write_text
from ...files.records import record
from ...linalg import Array, divisors, positive, rms
from ...model.dynamic_model import DynamicModel
from ...model.trained import without_inertia
from ...parallel import each
from ...samples import ReadOnly, Segment
from ...signals.filters import lowpass
from ...signals.prepare import PreparedLog

SCHEMA = "urdf-ident-series/1"
FILE = "series.json"
#: Maximum number of samples of a series, speeds of a histogram, lags and frequencies of a residual, and logs with series.
POINTS, BINS, LAGS, BANDS, LOGS = 1200, 41, 60, 80, 4
#: Maximum number of samples for a histogram of speeds, all logs together.
_COUNTED = 40_000
#: Maximum number of samples of a segment for autocorrelation and spectrum.
_MOST_SAMPLES = 1 << 17
#: Number of significant digits in the file.
_DIGITS = 5


@dataclass(frozen=True, eq=False)
class LogTrace(ReadOnly):
    """Torque along one log, low-passed as in the scores, with autocorrelation and spectrum of its residual.

    Attributes:
        held_out: Whether the log was not used in the fit.
        cutoff: Zero-phase low-pass of all torques [Hz].
        time: Shape (M,) [s]; the section with the largest relative error if the log is longer.
        measured, identified, urdf, urdf_friction: Shape (M, n) [N·m or N].
        lag: Shape (L,) [s].
        memory: Autocorrelation of the error of the identified model, shape (L, n), 1 at lag zero.
        frequency: Shape (K,) [Hz].
        spectrum: Amplitude density of the unfiltered error, shape (K, n) [N·m/√Hz or N/√Hz].
    """

    log: str
    held_out: bool
    cutoff: float
    time: Array
    measured: Array
    identified: Array
    urdf: Array
    urdf_friction: Array
    lag: Array
    memory: Array
    frequency: Array
    spectrum: Array

    def pieces(self) -> list[slice]:
        """Returns the sections without a gap in time."""
        steps = np.diff(self.time)
        gaps = np.flatnonzero(steps > 1.5 * np.median(steps)) + 1 if len(steps) else np.array([], dtype=int)
        return [slice(a, b) for a, b in itertools.pairwise([0, *gaps.tolist(), len(self.time)])]


@dataclass(frozen=True, eq=False)
class SpeedProfile(ReadOnly):
    """Histogram of the speeds in the logs, and mean friction per bin.

    Attributes:
        edges: Edges of the bins, shape (n, B + 1) [rad/s or m/s].
        count: Share of the samples in each bin, shape (n, B); rows sum to 1.
        friction: Mean of the measured torque without the identified rigid bodies and rotors, shape (n, B) [N·m or N]; nan where
            the bin is empty.
    """

    edges: Array
    count: Array
    friction: Array


@dataclass(frozen=True, eq=False)
class Traces:
    """All series of one result; empty parts are absent."""

    logs: tuple[LogTrace, ...] = ()
    speeds: SpeedProfile | None = None


def log_trace(log: PreparedLog, predicted: Mapping[str, Array], cutoff: float, *, held_out: bool = True) -> LogTrace:
    """Builds the series of one log.

    Args:
        predicted: ``exported``, ``urdf`` and ``urdf_friction``: torque along its segments, shape (N, n) each [N·m or N].
        cutoff: Zero-phase low-pass [Hz].
        held_out: Whether the log was not used in the fit.
    """
    keys = ("exported", "urdf", "urdf_friction")
    times, kept, errors, begin = [], [], [], 0
    for segment in log.segments:
        total = segment.total
        rows = slice(begin, begin + len(segment))
        begin = rows.stop
        factor = max(1, int(segment.rate / (4.0 * cutoff)))
        torques = [lowpass(x, segment.rate, cutoff)[::factor] for x in (total, *(predicted[key][rows] for key in keys))]
        times.append(segment.time[::factor])
        kept.append(np.stack(torques))
        errors.append((segment.rate, (total[:_MOST_SAMPLES] - predicted["exported"][rows][:_MOST_SAMPLES])))
    time, series = np.concatenate(times), np.concatenate(kept, axis=1)
    shown = slice(0, POINTS)
    if series.shape[1] > POINTS:  # the section with the largest relative error
        scale = divisors(rms(series[0], 0))
        squares = np.concatenate([[0.0], np.cumsum(np.mean(((series[0] - series[1]) / scale) ** 2, axis=1))])
        begin = int(np.argmax(squares[POINTS:] - squares[:-POINTS]))
        shown = slice(begin, begin + POINTS)
    measured, identified, urdf, friction = series[:, shown]
    # autocorrelation of the low-passed error, over all segments
    rate = min(errors[0][0], 2.5 * cutoff)
    products, kept_rate = np.zeros((LAGS, errors[0][1].shape[1])), 0.0
    centre = np.mean(np.vstack([error for _, error in errors]), axis=0)
    for logged_rate, error in errors:
        stride = max(1, round(logged_rate / rate))
        x, kept_rate = lowpass(error - centre, logged_rate, cutoff)[::stride], logged_rate / stride
        power = np.abs(np.fft.rfft(x, size := 1 << (2 * len(x) - 1).bit_length(), axis=0)) ** 2
        lagged = np.fft.irfft(power, size, axis=0)[: min(LAGS, len(x))]
        products[: len(lagged)] += lagged
    lag, memory = np.arange(LAGS) / kept_rate, products / positive(products[0])
    # amplitude density of the error of the longest segment, in logarithmic bands
    rate, error = max(errors, key=lambda segment: len(segment[1]))
    frequency, spectrum = np.zeros(0), np.zeros((0, error.shape[1]))
    if (length := min(len(error), 4096)) >= 8:
        from scipy.signal import welch

        lines, density = welch(error, rate, nperseg=length, axis=0)
        edges = np.geomspace(lines[1], lines[-1] * 1.0001, BANDS + 1)
        place = np.searchsorted(edges, lines[1:], side="right") - 1
        bands = np.unique(place)
        frequency = np.sqrt(edges[bands] * edges[bands + 1])
        spectrum = np.sqrt([density[1:][place == band].mean(axis=0) for band in bands])
    return LogTrace(
        log.name, held_out, cutoff, time[shown], measured, identified, urdf, friction, lag, memory, frequency, spectrum
    )


def speed_profile(model: DynamicModel, theta: Array, logs: Sequence[PreparedLog], cutoff: float) -> SpeedProfile:
    """Computes the histogram of the speeds of the logs and the friction that they show.

    Args:
        theta: Parameters of the model, shape (p,).
        cutoff: Zero-phase low-pass of the torque [Hz].
    """
    bodies = theta - without_inertia(model, theta)
    segments = [segment for log in logs for segment in log.segments]
    stride = max(1, sum(map(len, segments)) // _COUNTED)
    shown = each(partial(_friction_of, model, bodies, cutoff, stride), segments)
    v, f = (np.vstack(x) for x in zip(*shown, strict=True))
    reach = np.maximum(np.abs(v).max(axis=0), 1e-9)
    edges = np.linspace(-reach, reach, BINS + 1, axis=1)
    count, mean = np.zeros((len(reach), BINS)), np.full((len(reach), BINS), np.nan)
    for j in range(len(reach)):
        number, total = (np.histogram(v[:, j], edges[j], weights=weights)[0] for weights in (None, f[:, j]))
        count[j] = number / len(v)
        np.divide(total, number, out=mean[j], where=number > 0)
    return SpeedProfile(edges, count, mean)


def _friction_of(model: DynamicModel, bodies: Array, cutoff: float, stride: int, segment: Segment) -> tuple[Array, Array]:
    """Velocity, and torque minus that of the bodies, of every ``stride``-th sample of a segment."""
    torque = lowpass(segment.total, segment.rate, cutoff)[::stride]
    thinned = segment.thinned(stride)  # the torque of rigid bodies does not depend on the past
    return thinned.v, torque - model.torque_along(bodies, thinned)


def write_series(traces: Traces, path: str | Path, theta: Array) -> Path:
    """Writes the series beside a result; theta: its parameters, shape (p,), which link the file to it."""
    data = {"schema": SCHEMA, "result": _hash_of(theta), **_plain(traces)}
    return write_text(path, json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False) + "\n")


def read_series(path: str | Path, theta: Array) -> Traces:
    """Reads the series of a result.

    Args:
        theta: Parameters of the result, shape (p,).

    Returns:
        The series; none if the file is missing, damaged or of another result.
    """
    with suppress(ValueError, KeyError, TypeError, AttributeError):
        data = json.loads(read_text(path, "series")) if Path(path).is_file() else {}
        if data["schema"] == SCHEMA and data["result"] == _hash_of(theta):
            return record(Traces, data)
    return Traces()


def _hash_of(theta: Array) -> str:
    return hashlib.sha256(np.ascontiguousarray(theta, dtype=float).tobytes()).hexdigest()[:16]


def _plain(value: Any, digits: int = _DIGITS) -> Any:
    """Nested records as plain data, numbers with some significant digits; nan becomes null."""
    if is_dataclass(value):
        return {each.name: _plain(getattr(value, each.name), 13 if each.name == "time" else _DIGITS) for each in fields(value)}
    if isinstance(value, np.ndarray) and value.ndim == 1:
        return [None if number != number else float(f"{number:.{digits}g}") for number in value.tolist()]
    if isinstance(value, np.ndarray | list | tuple):
        return [_plain(each, digits) for each in value]
    return float(f"{value:.{digits}g}") if isinstance(value, float) else value
