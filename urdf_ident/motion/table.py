"""Default CSV (docs/logs.md) of sampled signals, as text."""

from __future__ import annotations

import numpy as np

from ..linalg import Array


def table_text(joints: tuple[str, ...], time: Array, signals: dict[str, Array]) -> str:
    """Formats signals as the default CSV (docs/logs.md).

    Args:
        joints: Joint names.
        time: Shape (N,) [s].
        signals: Prefix (``q``, ``v``, ``a``, ``tau``, …) → shape (N, n), SI units.

    Returns:
        Header and rows with 12 significant digits. Names that contain a comma or a quotation mark are quoted.
    """
    header = ",".join(["t", *(_quoted(f"{prefix}_{joint}") for prefix in signals for joint in joints)])
    table = np.column_stack([time, *signals.values()])
    row = ",".join(["%.12g"] * table.shape[1])
    return "\n".join([header, *(row % tuple(values) for values in table.tolist()), ""])


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"' if "," in name or '"' in name else name
