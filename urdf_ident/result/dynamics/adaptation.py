"""Builds the adaptive model of a result, and the settings of its friction filter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ...compensation.adaptive import AdaptiveModel
from ...compensation.friction_filter import FilterSettings
from ...errors import EstimationError, ModelError
from ...friction import SIGN_WIDTH, Law, Sliding
from ..record import Record

#: Top speed over the 95 % quantile of speed, used if the quantiles of held-out residuals do not give it.
_TOP = 1.2
#: Speeds at which friction must dissipate: in widths of the smooth sign, and as fractions of the top speed.
_SLOW, _PARTS = 3.0, (0.5, 1.0)


def filter_settings(ident: Record, memory: float = np.inf, caution: float = 1.0) -> FilterSettings:
    """Returns the settings of the filter: spreads and noise between the logs of a result.

    Args:
        memory: Time constant of motion with which deviations return to the mean [s]; inf: never.
        caution: Factor on the residual's variance.
    """
    changes, model = ident.fit.changes, ident.model
    if changes is None or not changes.known:
        raise EstimationError(
            "adaptation needs the spread of friction between logs",
            where=model.robot.name,
            got=f"{len(ident.inputs)} log(s)",
            expected="two or more, better five, of different days",
            remedy="record more logs and identify from all of them together",
        )
    n = model.n
    laws = {
        k: applied.term
        for applied, columns in model.placed_terms
        if isinstance(applied.term, Law) and applied.side == "joint"
        for k in range(columns.start, columns.stop)
    }
    spread, power, width = np.zeros((n, 2)), np.ones(n), np.full(n, SIGN_WIDTH)
    for k, (j, kind) in enumerate(zip(changes.axes, changes.kinds, strict=True)):
        law = laws.get(changes.columns[k][0])
        if law is None:  # on the motor side of a coupled drive
            continue
        size = float(changes.spread[k]) * (float(ident.load[j]) if kind == "load" else 1.0)
        column = 1 if kind == "viscous" else 0
        spread[j, column] = np.hypot(spread[j, column], size)
        if kind == "viscous":
            power[j] = law.power
        elif "width" in law.shapes and law.shapes["width"].kind == "speed":
            width[j] = float(vars(law)["width"])
    residual, slow = np.ones((2, n))
    for (group, sigma), noise in zip(ident.fit.sigma.items(), changes.noise, strict=True):
        side, name = group.split(":", 1)
        if side == "joint":
            j = model.robot.joints.index(name)
            residual[j], slow[j] = sigma, noise
        elif name in model.robot.joints:
            spread[model.robot.joints.index(name)] = 0.0
    top = np.maximum(_TOP * ident.speed if ident.prediction is None else ident.prediction.top, 2 * _SLOW * width)
    # minimum friction of every joint at some speeds, without load, in the weaker direction, shape (n, 3)
    speeds = np.column_stack([_SLOW * width, *(share * top for share in _PARTS)])
    friction = np.zeros((n, 2, speeds.shape[1]))
    for applied, span in model.placed_terms:
        if isinstance(applied.term, Law) and applied.side == "joint" and not (applied.term.bias or applied.term.conservative):
            for k, sign in enumerate((1.0, -1.0)):
                v = sign * speeds[applied.axis]
                columns = applied.term.basis(Sliding(v, np.zeros_like(v), np.full_like(v, sign)))
                friction[applied.axis, k] += sign * sum(value * x for value, x in zip(ident.theta[span], columns, strict=True))
    least = np.asarray(np.maximum(friction.min(axis=1), 0.0))
    return FilterSettings(spread, power, residual, slow, float(ident.signals["decimate"]), top, least, width, memory, caution)


def adaptive_model(
    ident: Record, memory: float | str = "auto", *, rate: float | None = None, state: Mapping[str, Any] | None = None
) -> AdaptiveModel:
    """Returns a model that adapts its friction online: ``update``, ``torque``.

    Args:
        memory: Time constant of motion with which friction returns to its mean [s]; "auto": least held-out error, without
            joints for which adaptation does not help.
        rate: Updates per second [Hz]; that of the logs if None.
        state: ``as_dict()`` of an earlier model, to continue from its state.

    Raises:
        EstimationError: The spread between logs is unknown.
        ModelError: The joints are elastic, or the memory is invalid.
    """
    if ident.online is None:
        raise ModelError("a model with elastic joints does not adapt", remedy="identify with model.elastic: false")
    if isinstance(memory, str):
        if memory != "auto":
            raise ModelError("unknown memory", got=repr(memory), expected='seconds, or "auto"')
        settings = chosen_settings(ident)
    else:
        settings = filter_settings(ident, float(memory))
    return AdaptiveModel(ident.online, settings, float(ident.signals["rate"]) if rate is None else rate, state)


def chosen_settings(ident: Record) -> FilterSettings:
    """Returns the settings with the least held-out error, without spread for joints for which adaptation does not help."""
    chosen = ident.adaptation
    if not chosen:
        return filter_settings(ident)
    settings = filter_settings(ident, float(chosen["memory"]), float(chosen["caution"]))
    return replace(settings, spread=np.where(np.array(chosen["used"], dtype=bool)[:, None], settings.spread, 0.0))
