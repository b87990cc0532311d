"""Scores on logs that were not used in the fit (docs/theory.md §10), compared with the URDF; and short series for plots.

The series are torque, the histogram of speeds, autocorrelation and spectrum of the residual. Each record is bounded, however
long the logs are: at most :data:`POINTS` samples of one section of a log, :data:`BINS` speeds per joint, :data:`LAGS` lags and
:data:`BANDS` frequencies. They are stored beside identification.json (``series.json``), so that a report can be made again
without the logs.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..compensation.friction_filter import FilterSettings, replay
from ..files.documents import record
from ..files.read_write import read_text, write_text
from ..friction import SIGN_WIDTH
from ..grouping import grouped
from ..linalg import Array, BoolArray, IntArray, divisors, positive, rms
from ..model.dynamic_model import DynamicModel
from ..model.trained import without_inertia
from ..parallel import each
from ..samples import ReadOnly, Segment
from ..signals.filters import lowpass, score_band, welch
from ..signals.prepare import PreparedLog
from ..units import joint_units

SCHEMA = "urdf-ident-series/1"
FILE = "series.json"
#: Maximum number of samples of a series, speeds of a histogram, lags and frequencies of a residual, and logs with series.
POINTS, BINS, LAGS, BANDS, LOGS = 1200, 41, 60, 80, 4
#: Maximum number of samples for a histogram of speeds, all logs together.
_COUNTED = 40_000
#: Maximum number of samples of a segment for autocorrelation and spectrum, and of a training log for all series.
MOST_SAMPLES = 1 << 17
#: Number of significant digits in the file.
_DIGITS = 5


@dataclass(frozen=True, eq=False)
class LogScore:
    """Errors of one model on one log.

    Attributes:
        per_joint: Of each joint, in model order and in its ``unit``: ``rmse``, ``relative`` (‖error‖/‖torque‖), ``rms_torque``,
            ``moving_rmse`` and ``p95`` of |error|.
        relative: ‖error‖/‖torque‖ over all joints; the larger one of torques and of forces if there are both.
    """

    per_joint: tuple[dict[str, Any], ...]
    relative: float

    @property
    def rmse(self) -> Array:
        """Shape (n,) [N·m or N]."""
        return np.array([joint["rmse"] for joint in self.per_joint])

    @property
    def mean_rmse(self) -> float:
        """Mean of the joints' RMSE, whatever their units; :func:`mean_error` compares models of robots with both."""
        return float(self.rmse.mean())


def predict(model: DynamicModel, theta: Array, log: PreparedLog) -> Array:
    """Returns the model's efforts along a log, shape (N, n) or (N, n, k) [N·m or N], segments concatenated.

    Args:
        theta: Parameters, shape (p,), or (p, k) for k models at once.
    """
    efforts, begin = np.empty((sum(map(len, log.segments)), model.n, *theta.shape[1:])), 0
    for segment in log.segments:
        efforts[begin : begin + len(segment)] = model.effort_along(theta, segment)
        begin += len(segment)
    return efforts


def predict_all(model: DynamicModel, thetas: Mapping[str, Array], log: PreparedLog) -> dict[str, Array]:
    """Efforts of several models along a log by their names, shape (N, n) each [N·m or N]; thetas: shape (p,) each."""
    predicted = predict(model, np.column_stack(list(thetas.values())), log)
    return {name: predicted[..., k] for k, name in enumerate(thetas)}


def filtered_errors(log: PreparedLog, predicted: Array, cutoff: float, *, measured_only: bool = False) -> tuple[Array, Array]:
    """Returns the low-passed measured torque and prediction error, segments concatenated, shape (N, n) each [N·m or N].

    Args:
        predicted: Shape (N, n) [N·m or N].
        cutoff: Zero-phase low-pass [Hz].
        measured_only: Filter the measured torque alone, as some published figures do.
    """
    measured, errors = [], []
    for segment, model in zip(log.segments, np.split(predicted, _ends(log)), strict=True):
        measured.append(lowpass(segment.total, segment.rate, cutoff))
        errors.append(measured[-1] - model if measured_only else lowpass(segment.total - model, segment.rate, cutoff))
    return np.vstack(measured), np.vstack(errors)


def _ends(log: PreparedLog) -> IntArray:
    """Where the segments of a log end in an array of all of them, the last one excepted."""
    return np.cumsum([len(segment) for segment in log.segments])[:-1]


def _settled(samples: int, period: float) -> BoolArray:
    """Which samples of a segment are at least one period [samples] of the low-pass, or a tenth of it, from its ends."""
    edge = min(math.ceil(period), samples // 10)
    inner = np.zeros(samples, dtype=bool)
    inner[edge : samples - edge] = True
    return inner


def score(log: PreparedLog, predicted: Array, cutoff: float, *, measured_only: bool = False) -> LogScore:
    """Compares predicted with measured torque, both filtered with the same low-pass.

    Coulomb friction causes steps in both. If only the measured torque were filtered, a model with the steps would score
    worse than one without (on a slow motion of a PUMA by a factor of ten). The ends of segments, where the low-pass returns
    single samples, are left out: one sample of an abrupt stop would count as much as a second of motion.

    Args:
        predicted: Shape (N, n) [N·m or N].
        cutoff: Zero-phase low-pass [Hz].
        measured_only: Filter the measured torque alone, as some published figures do.
    """
    tau, error = filtered_errors(log, predicted, cutoff, measured_only=measured_only)
    settled = np.concatenate([_settled(len(segment), segment.rate / cutoff) for segment in log.segments])
    moving = np.abs(np.vstack([segment.v for segment in log.segments])) > SIGN_WIDTH
    tau, error, moving = tau[settled], error[settled], moving[settled]
    scores, sizes, forces = [], divisors([rms(column) for column in tau.T]), log.robot.prismatic
    for j, joint in enumerate(log.robot.joints):
        e, on = error[:, j], moving[:, j]
        scores.append(
            {
                "joint": joint,
                "rmse": rms(e),
                "relative": rms(e) / float(sizes[j]),
                "rms_torque": rms(tau[:, j]),
                "moving_rmse": rms(e[on]) if on.any() else 0.0,
                "p95": float(np.percentile(np.abs(e), 95)),
                "unit": joint_units(bool(forces[j]))["torque"],
            }
        )
    relative = [rms(error[:, k]) / positive(rms(tau[:, k])) for k in (~forces, forces) if k.any()]
    return LogScore(tuple(scores), max(relative))


def validate_log(
    model: DynamicModel,
    thetas: Mapping[str, Array],
    log: PreparedLog,
    cutoff: float | str = "auto",
    adaptation: FilterSettings | None = None,
) -> tuple[dict[str, Any], LogTrace]:
    """Scores the four models on one log.

    Args:
        thetas: ``exported``, ``fit``, ``urdf`` and ``urdf_friction``: parameters, shape (p,) each.
        cutoff: Low-pass of measured and predicted torque [Hz]; "auto" is :func:`score_band`.
        adaptation: Settings of the friction adaptation, to score the exported model with it as well; None: static only.

    Returns:
        The entry in ``validation`` of identification.json, and the series for plots.
    """
    hertz = score_band(log.conditioned.rate) if cutoff == "auto" else float(cutoff)
    series = predict_all(model, thetas, log)
    compared = partial(score, log, cutoff=hertz)
    exported, *others = (compared(series[name]) for name in ("exported", "fit", "urdf", "urdf_friction"))
    named = dict(zip(("fit", "urdf", "urdf_friction"), others, strict=True))
    entry: dict[str, Any] = {
        "log": log.name,
        "score_cutoff": hertz,
        "mean_rmse": exported.mean_rmse,
        "relative": exported.relative,
        **{f"{name}_mean_rmse": other.mean_rmse for name, other in named.items()},
        "per_joint": [
            {**joint, **{f"{name}_rmse": other.per_joint[j]["rmse"] for name, other in named.items()}}
            for j, joint in enumerate(exported.per_joint)
        ],
    }
    if adaptation is not None:
        (added,) = replay([adaptation], [(log.segments, np.split(series["exported"], _ends(log)))])
        adapted = compared(series["exported"] + np.vstack([next(segment) for segment in added]))
        joints = [{"joint": joint["joint"], "rmse": joint["rmse"]} for joint in adapted.per_joint]
        entry["adapted"] = {"mean_rmse": adapted.mean_rmse, "per_joint": joints}
    return entry, log_trace(log, series, hertz)


def errors_of_joints(entries: Sequence[Mapping[str, Any]]) -> dict[str, Array]:
    """RMS over logs of every joint's torque and of models' errors, shape (n,) [N·m or N], by their keys in ``per_joint``."""
    keys = ("rms_torque", "rmse", "urdf_rmse", "urdf_friction_rmse")
    return {key: rms([[joint[key] for joint in entry["per_joint"]] for entry in entries], axis=0) for key in keys}


def mean_error(entry: Mapping[str, Any], model: str = "", of: Mapping[str, Any] | None = None) -> float:
    """Mean RMSE of the joints [N·m or N]; with joints of both units, relative to the mean effort of each unit, a fraction.

    Args:
        entry: As from :func:`validate_log`.
        model: ``""`` (exported), ``"fit_"``, ``"urdf_"`` or ``"urdf_friction_"``.
        of: Another entry of the same log with the errors, as ``adapted``.
    """
    of = entry if of is None else of
    if not mixed_units([entry]):
        return float(of[f"{model}mean_rmse"])
    pairs = zip(entry["per_joint"], of["per_joint"], strict=True)
    units = grouped((joint["unit"], (error[f"{model}rmse"], joint["rms_torque"])) for joint, error in pairs)
    sums = [np.sum(of_unit, axis=0) for of_unit in units.values()]
    return float(np.mean([error / positive(size) for error, size in sums]))


def mixed_units(entries: Iterable[Mapping[str, Any]]) -> bool:
    """Whether efforts of the joints are torques and forces."""
    return any(len({joint["unit"] for joint in entry["per_joint"]}) > 1 for entry in entries)


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
        thinned = slice(None, None, max(1, int(segment.rate / (4.0 * cutoff))))
        torques = [lowpass(x, segment.rate, cutoff, rows=thinned) for x in (total, *(predicted[key][rows] for key in keys))]
        times.append(segment.time[thinned])
        kept.append(np.stack(torques))
        errors.append((segment.rate, total[:MOST_SAMPLES] - predicted["exported"][rows][:MOST_SAMPLES]))
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
        x, kept_rate = lowpass(error - centre, logged_rate, cutoff, rows=slice(None, None, stride)), logged_rate / stride
        power = np.abs(np.fft.rfft(x, size := 1 << (2 * len(x) - 1).bit_length(), axis=0)) ** 2
        lagged = np.fft.irfft(power, size, axis=0)[: min(LAGS, len(x))]
        products[: len(lagged)] += lagged
    lag, memory = np.arange(LAGS) / kept_rate, products / positive(products[0])
    # amplitude density of the error of the longest segment, in logarithmic bands
    rate, error = max(errors, key=lambda segment: len(segment[1]))
    frequency, spectrum = np.zeros(0), np.zeros((0, error.shape[1]))
    if (length := min(len(error), 4096)) >= 8:
        lines, density = welch(error - error.mean(axis=0), rate, length)
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
    torque = lowpass(segment.total, segment.rate, cutoff, rows=slice(None, None, stride))
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
