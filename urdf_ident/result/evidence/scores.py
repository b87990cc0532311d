"""Scores on logs that were not used in the fit (docs/theory.md §10), always compared with the original URDF."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ...compensation.friction_filter import FilterSettings, replay
from ...grouping import grouped
from ...linalg import Array, BoolArray, IntArray, divisors, positive, rms
from ...model.dynamic_model import DynamicModel
from ...signals.filters import lowpass, score_band
from ...signals.prepare import PreparedLog
from ...units import joint_units
from .traces import LogTrace, log_trace

#: Below this speed a joint counts as at rest in the ``moving`` scores [rad/s or m/s].
MOVING = 0.02


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


def score(
    log: PreparedLog,
    predicted: Array,
    joints: Sequence[str],
    cutoff: float,
    *,
    prismatic: BoolArray | None = None,
    measured_only: bool = False,
) -> LogScore:
    """Compares predicted with measured torque, both filtered with the same low-pass.

    Coulomb friction causes steps in both. If only the measured torque were filtered, a model with the steps would score
    worse than one without (on a slow motion of a PUMA by a factor of ten). The ends of segments, where the low-pass returns
    single samples, are left out: one sample of an abrupt stop would count as much as a second of motion.

    Args:
        predicted: Shape (N, n) [N·m or N].
        cutoff: Zero-phase low-pass [Hz].
        prismatic: Joints whose efforts are forces, shape (n,); none if None.
        measured_only: Filter the measured torque alone, as some published figures do.
    """
    tau, error = filtered_errors(log, predicted, cutoff, measured_only=measured_only)
    settled = np.concatenate([_settled(len(segment), segment.rate / cutoff) for segment in log.segments])
    moving = np.abs(np.vstack([segment.v for segment in log.segments])) > MOVING
    forces = np.zeros(len(joints), dtype=bool) if prismatic is None else prismatic
    tau, error, moving = tau[settled], error[settled], moving[settled]
    scores, sizes = [], divisors([rms(column) for column in tau.T])
    for j, joint in enumerate(joints):
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
    compared = partial(score, log, joints=model.robot.joints, cutoff=hertz, prismatic=model.robot.prismatic)
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
