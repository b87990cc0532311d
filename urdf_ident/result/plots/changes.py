"""Friction that changes: each log's deviation from the mean, over time since its start or over temperature."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...statistics.changes import FrictionChanges
from .style import PALETTE, Palette, dress

#: Logs that are drawn, at most.
_LOGS = 12


def draw_changes(axis: Any, changes: FrictionChanges, k: int, unit: str, palette: Palette = PALETTE) -> None:
    """Draws one parameter's deviations: thirds of each log over time since its start; over temperature where that was logged.

    Args:
        axis: Matplotlib axes.
        changes: How friction differs between the logs.
        k: Index of the parameter.
        unit: Its unit.
        palette: Colours.
    """
    warm = changes.covariate is not None and np.isfinite(changes.covariate[:, k]).all()
    spread = float(np.nan_to_num(changes.spread[k]))
    if spread > 0:
        axis.axhspan(-spread, spread, color=palette.soft, alpha=0.25, linewidth=0, label="spread")
    if warm and changes.covariate is not None:
        x, y, e = changes.covariate[:, k], changes.deviation[:, k], changes.deviation_error[:, k]
        axis.errorbar(x, y, yerr=e, fmt="o", markersize=3, color=palette.identified, linewidth=0.8)
        label = "temperature [K or °C]"
    else:
        for log in range(min(len(changes.logs), _LOGS)):
            length = 1.0 if changes.seconds is None else float(changes.seconds[log])
            x = length * (np.arange(changes.parts.shape[1]) + 0.5) / changes.parts.shape[1]
            y, e = changes.parts[log, :, k], changes.parts_error[log, :, k]
            later = 0.35 + 0.6 * log / max(len(changes.logs) - 1, 1)
            axis.errorbar(x, y, yerr=e, marker="o", markersize=2.5, linewidth=0.8, color=palette.identified, alpha=later)
        label = "time since the log's start [s]" if changes.seconds is not None else "part of the log"
    axis.axhline(0.0, color=palette.soft, linewidth=0.6)
    dress(axis, palette, title=changes.parameters[k], x=label, y=f"deviation [{unit}]")
