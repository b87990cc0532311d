"""Torque constants from moving samples, where the target current also holds the controller's own friction model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ...linalg import Array, lstsq
from .targets import FEWEST, NOTHING, Estimate, Targets

#: Constants of twins agree within this fraction: motors of one series differ by less, those of a size apart by more.
TWINS = 0.03
#: In motion: slower samples are left out [rad/s or m/s], and so many of the others are used in all.
_SLOW, _SAMPLES = 0.03, 6000
#: The target velocity that the controller looked at leads or lags the measured one by about so much [s].
_LEADS = np.linspace(-0.008, 0.008, 9)
#: How well that is known at best, where joints agree, and at worst, from the scatter alone [s].
_LEAD_ERROR, _LEAD_GUESSED = 5e-4, 3e-3
#: Least relative error of a constant found in motion: the controller's friction model is not quite the free function.
_MOTION_ERROR = 5e-4
_KNOTS = 6


def in_motion(signals: Sequence[Targets], rest: Sequence[Estimate]) -> list[Estimate]:
    """1/K of every joint beside a free function of its speed in each direction, at the controller's lead.

    The controller looked at its target velocity, which leads or lags the measured one a little, and where the current
    follows the speed steeply a millisecond is worth a percent. That lead is the controller's, not a joint's.

    Args:
        signals: The logs' targets.
        rest: What is known of the joints at rest.

    Returns:
        The constants; an infinite error where a joint hardly moves or its torque hardly changes.
    """
    tried = [[_at_lead(signals, j, lead) for lead in _LEADS] for j in range(len(rest))]
    seen = [j for j, curve in enumerate(tried) if all(np.isfinite(item.error) for item, _ in curve)]
    found = [NOTHING] * len(rest)
    if not seen:
        return found
    values, errors = (np.array([[getattr(item, key) for item, _ in tried[j]] for j in seen]) for key in ("value", "error"))
    scatter = np.array([[spread for _, spread in tried[j]] for j in seen])
    lead, doubt = _lead(values, errors, scatter, [rest[j] for j in seen])
    for row, j in enumerate(seen):
        value = float(np.interp(lead, _LEADS, values[row]))
        slope = float(np.interp(lead, _LEADS, np.gradient(values[row], _LEADS))) / value
        parts = [float(np.interp(lead, _LEADS, errors[row])), _MOTION_ERROR, slope * doubt]
        found[j] = Estimate(value, float(np.linalg.norm(parts)))
    return found


def _lead(values: Array, errors: Array, scatter: Array, rest: Sequence[Estimate]) -> tuple[float, float]:
    """The lead [s] at which motion agrees with rest, and twins with each other; and how well it is known.

    Args:
        values, errors, scatter: Shape (joints, leads).
        rest: What is known of the same joints at rest.
    """
    fine = np.linspace(_LEADS[0], _LEADS[-1], 801)
    curves = np.array([np.interp(fine, _LEADS, row) for row in values])
    spread = np.array([np.interp(fine, _LEADS, row / max(row.min(), 1e-300)) for row in scatter]).sum(axis=0)
    best = errors.min(axis=1)
    known = [j for j, item in enumerate(rest) if item.known]
    misfit = (
        spread if not known else sum(((curves[j] / rest[j].value - 1.0) / np.hypot(rest[j].error, best[j])) ** 2 for j in known)
    )
    start = int(np.argmin(misfit))
    pairs = 0
    misfit = np.zeros_like(fine)
    for j, curve in enumerate(curves):  # against the surest joint with the same constant, at rest where that is known
        same = [k for k in range(len(curves)) if k in known or (j not in known and best[k] < best[j])]
        same = [k for k in same if abs(abs(curve[start] / curves[k, start]) - 1.0) < TWINS]
        if not same:
            continue
        model = min(same, key=lambda k: (k not in known, best[k]))
        target, error = (rest[model].value, rest[model].error) if model in known else (curves[model], best[model])
        misfit += ((np.abs(curve / target) - 1.0) / np.linalg.norm([error, best[j], _MOTION_ERROR])) ** 2
        pairs += 1
    if not pairs:
        return float(fine[start]), _LEAD_GUESSED
    end = int(np.clip(np.argmin(misfit), 1, len(fine) - 2))
    curvature = float(np.diff(misfit[end - 1 : end + 2], 2)[0]) / float(fine[1] - fine[0]) ** 2
    return float(fine[end]), float(np.clip(np.sqrt(2.0 / max(curvature, 1e-300)), _LEAD_ERROR, _LEAD_GUESSED))


def _steady(log: Targets, j: int) -> NDArray[np.bool_]:
    """Samples in motion, away from reversals."""
    fast = np.abs(log.velocity[:, j]) > _SLOW
    return np.asarray(fast & np.roll(fast, 1) & np.roll(fast, -1))


def _at_lead(signals: Sequence[Targets], j: int, lead: float) -> tuple[Estimate, float]:
    """The constant if the velocity leads by so much [s], and the scatter that is left [unit of effort]."""
    total = sum(int(_steady(log, j).sum()) for log in signals)
    if total < 10 * FEWEST:
        return NOTHING, np.inf
    step = -(-total // _SAMPLES)
    speeds, torques, currents = [], [], []
    for log in signals:
        steady = np.flatnonzero(_steady(log, j))[::step]
        speeds.append(np.interp(log.time[steady] + lead, log.time, log.velocity[:, j]))
        torques.append(log.torque[steady, j])
        currents.append(log.current[steady, j])
    v, torque, current = (np.concatenate(parts) for parts in (speeds, torques, currents))
    u, columns = np.abs(v), [torque]
    knots = np.quantile(u, 0.995) * np.linspace(0, 1, _KNOTS + 2)[1:-1]
    for sign in (1.0, -1.0):
        side = np.sign(v) == sign
        if side.sum() >= FEWEST:
            columns += [side.astype(float), side * u]
            columns += [side * np.maximum(u - knot, 0.0) for knot in knots if (u[side] > knot).sum() >= FEWEST]
    return _robust_first(np.column_stack(columns), current)


def _robust_first(A: Array, y: Array) -> tuple[Estimate, float]:
    """The inverse of the first coefficient by Tukey's biweight with its relative error; and the scatter."""
    weight = np.ones(len(y))
    for _ in range(12):
        scaled = A * weight[:, None]
        solution = lstsq(scaled, y * weight, rcond=None)[0]
        error = np.abs(y - A @ solution)
        scale = 1.4826 * float(np.median(error)) + 1e-12 * float(np.abs(y).max())
        weight = np.where(error < 4.685 * scale, 1.0 - (error / (4.685 * scale)) ** 2, 0.0)
    others, first = scaled[:, 1:], scaled[:, 0]
    alone = first - others @ lstsq(others, first, rcond=None)[0] if others.shape[1] else first
    size = float(np.linalg.norm(alone))
    if solution[0] == 0 or size < 1e-6 * float(np.linalg.norm(first)):
        return NOTHING, scale
    # Neighbouring samples are alike: ten count as one.
    return Estimate(float(1.0 / solution[0]), float(np.sqrt(10.0) * scale / size / abs(solution[0]))), scale
