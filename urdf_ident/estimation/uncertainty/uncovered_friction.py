"""Friction that the data do not cover: at speeds and in directions without data, and the smeared step at reversals."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...friction import Relaxing, Sliding
from ...linalg import Array
from ...model.dynamic_model import DynamicModel
from ...model.trained import sliders
from ...samples import columns
from ...signals.filters import lowpass

#: A direction counts as missing if the joint's speed in it is below this share of its speed in the other direction.
_SEEN = 0.1
#: Half-width at 95 % for friction outside the data, relative to the model's friction: for a direction or slow speeds that the
#: logs lack (from none to twice the friction), and for the increase at higher speeds.
UNSEEN, BEYOND = 1.0, 0.5
#: The same per further multiple of the fastest logged speed, relative to the friction at that speed (quadratic at first, since
#: value and slope are known there): friction that is flat in slow logs may still rise at high speeds.
STEEPER = 0.2


def seen_speeds(v: Sequence[Array]) -> Array:
    """Returns the slowest and fastest speed of each joint in each direction.

    Args:
        v: Joint velocities, shape (N_k, n) each [rad/s or m/s].

    Returns:
        0.5 and 99.5 % quantiles of |v| backwards and forwards, shape (n, 2, 2) [rad/s or m/s]; zeros for a direction in
        which the joint hardly moved.
    """
    ranges = np.zeros((v[0].shape[1], 2, 2))
    for j, speed in enumerate(columns(v)):
        for side, sign in enumerate((-1.0, 1.0)):
            towards = sign * speed[sign * speed > 0]
            if len(towards):
                ranges[j, side] = np.quantile(towards, (0.005, 0.995))
        ranges[j, ranges[j, :, 1] <= _SEEN * ranges[j, :, 1].max()] = 0.0
    return ranges


def covered_speeds(ranges: Sequence[Array]) -> Array:
    """Returns the slowest and fastest speeds of several logs together.

    Args:
        ranges: Results of :func:`seen_speeds`, shape (n, 2, 2) each [rad/s or m/s].

    Returns:
        As each of them; a direction that only some cover has the speeds of those.
    """
    slow, fast = np.moveaxis(np.array(ranges), -1, 0)
    least = np.min(np.where(fast > 0, slow, np.inf), axis=0)
    return np.stack([np.where(np.isfinite(least), least, 0.0), fast.max(axis=0)], axis=-1)


def unseen_friction(model: DynamicModel, theta: Array, seen: Array, q: Array, v: Array, a: Array) -> Array:
    """Returns the uncertainty of friction outside the data, half-width at 95 %.

    Args:
        theta: Its parameters, shape (p,).
        seen: Result of :func:`seen_speeds`, shape (n, 2, 2) [rad/s or m/s].
        q, v, a: Joint motion, shape (N, n) [rad, rad/s, rad/s² or m, m/s, m/s²].

    Returns:
        Shape (N, n) [N·m or N]: the whole friction for a direction without data; below the slowest speed a share of it that
        increases to all of it at rest; above the fastest speed half of the model's increase or, asymptotically, a fifth of the
        friction at that speed per further multiple of it, whichever is larger.
    """

    def at(speed: Array) -> Array:
        return _friction(model, theta, q, speed, a)

    forwards = v > 0
    slow, fast = (np.where(forwards, seen[:, 1, k], seen[:, 0, k]) for k in (0, 1))
    sign = np.where(forwards, 1.0, -1.0)
    missing = fast <= 0
    other = np.where(forwards, seen[:, 0, 0], seen[:, 1, 0])
    within = np.where(missing, 0.0, np.clip(np.abs(v), slow, fast)) * sign
    beyond = np.where(missing, UNSEEN, BEYOND) * np.abs(at(v) - at(within))
    times = np.maximum(np.abs(v) / np.where(missing, np.inf, fast), 1.0)
    steeper = STEEPER * (times - 1.0) ** 2 / times * np.abs(at(within))
    edge = np.where(missing, other, slow)
    slower = np.maximum(1.0 - np.abs(v) / np.where(edge > 0, edge, np.inf), 0.0) * (edge > 0)
    turning = UNSEEN * slower * np.abs(at(np.where(missing, other * sign, slow * sign)))
    return np.asarray(np.maximum.reduce([beyond, steeper, turning]))


def smeared_friction(
    model: DynamicModel, theta: Array, q: Array, v: Array, a: Array, band: float, period: float = 0.0
) -> Array:
    """Returns the difference between low-passed dry friction and the model's step at a reversal.

    Args:
        theta: Its parameters, shape (p,).
        q, v, a: Joint motion, shape (N, n) [rad, rad/s, rad/s² or m, m/s, m/s²].
        band: Zero-phase low-pass of the measured torque [Hz].
        period: Time between its samples [s]: the low-pass places the step in the middle between two of them, wherever the
            joint turned back.

    Returns:
        Shape (N, n) [N·m or N]: half the step times the error of the step response, overshoot included, ``|v|/|a|`` after the
        reversal, or half a period less.
    """
    forth, back = (_friction(model, theta, q, sign * v, a) for sign in (1.0, -1.0))
    half = 0.5 * np.abs(forth - back)
    time, risen = _step_response(band)
    since = np.maximum(np.abs(v) / np.maximum(np.abs(a), 1e-12) - 0.5 * period, 0.0)
    return np.asarray(half * np.abs(1.0 - np.interp(since, time, risen)))


def building_friction(model: DynamicModel, theta: Array) -> Array:
    """Returns the uncertainty of friction that builds up in time, of samples that do not tell its state, half-width at 95 %.

    Args:
        model: The rigid model.
        theta: Its parameters, shape (p,).

    Returns:
        Shape (n,) [N·m or N]: twice this friction, which may still have the value of the direction before.
    """
    uncertainty = np.zeros(model.n)
    for (axis, side), laws in sliders(model).items():
        share = np.abs(model.drive.rate_weights(axis, side))
        uncertainty += 2.0 * share * sum(abs(float(theta[first])) for first, law in laws if isinstance(law, Relaxing))
    return uncertainty


def _step_response(band: float) -> tuple[Array, Array]:
    """Times after a step from −1 to 1 [s], and the response of the zero-phase low-pass to it."""
    rate = 50.0 * band
    time = np.arange(-200, 201) / rate
    return time[200:], lowpass(np.sign(time), rate, band)[200:]


def _friction(model: DynamicModel, theta: Array, q: Array, v: Array, a: Array) -> Array:
    """Friction torque, that with memory at its limit in the direction of the velocity, shape (N, n) [N·m or N]."""
    static, limits = np.zeros(len(theta)), np.zeros(v.shape)
    for (axis, side), laws in sliders(model).items():
        share = model.drive.rate_weights(axis, side)
        rate = v @ share
        for first, law in laws:
            places = slice(first, first + len(law.symbols))
            if law.memory:
                limits += np.outer(theta[places] @ law.basis(Sliding(rate, bent=np.sign(rate))), share)
            else:
                static[places] = theta[places]
    return np.asarray(model.torque(static, q, v, a) + limits)
