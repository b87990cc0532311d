"""Colours by meaning, and the common style of all plots."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import MissingExtraError, OutputError
from ...files.read_write import write_bytes
from ...quoting import figure_text


@dataclass(frozen=True)
class Palette:
    """Colours by meaning; any value that matplotlib accepts.

    Attributes:
        ink: Text and measured torque.
        urdf: The URDF's own prediction, and the prior.
        residual: The residual.
        good, bad: Verdicts.
    """

    ink: str = "#1b1f24"
    soft: str = "#8a929b"
    identified: str = "#0b6bcb"
    urdf: str = "#b0823f"
    friction: str = "#7a4fb3"
    residual: str = "#c2410c"
    good: str = "#15803d"
    bad: str = "#b91c1c"


PALETTE = Palette()
#: Text size in plots [pt].
TEXT = 8.0


def figure_class() -> Any:
    """Returns Matplotlib's ``Figure``, which needs no window.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError("pictures need matplotlib", remedy="install it: pip install 'urdf-ident[report]'") from error
    return Figure


def apply_style(axis: Any, *, title: str = "", x: str = "", y: str = "") -> None:
    """Applies the common style to axes.

    Args:
        x, y: Labels with units.
    """
    axis.set_facecolor("none")
    axis.tick_params(labelsize=TEXT - 0.5, colors=PALETTE.soft, labelcolor=PALETTE.ink, length=2.5, width=0.6)
    for side, spine in axis.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(PALETTE.soft)
        spine.set_linewidth(0.6)
    axis.grid(color=PALETTE.soft, linewidth=0.4, alpha=0.3)
    axis.set_axisbelow(True)
    for one in (axis.xaxis, axis.yaxis):
        if type(one.get_major_locator()).__name__ == "AutoLocator":
            one.get_major_locator().set_params(nbins=6)
    if title:
        axis.set_title(figure_text(title), fontsize=TEXT + 1, color=PALETTE.ink, loc="left", y=1.0, pad=5)
    if x:
        axis.set_xlabel(figure_text(x), fontsize=TEXT, color=PALETTE.ink, labelpad=2)
    if y:
        axis.set_ylabel(figure_text(y), fontsize=TEXT, color=PALETTE.ink, labelpad=2)


def legend(target: Any, *entries: Any, **options: Any) -> None:
    """Adds a legend without a frame.

    Args:
        target: Axes or figure.
        entries: Handles and labels; those of the target if not given.
        options: Passed to matplotlib.
    """
    target.legend(
        *entries, **{"fontsize": TEXT - 0.5, "labelcolor": PALETTE.ink, "frameon": False, "handlelength": 1.6, **options}
    )


def write_figure(figure: Any, path: str | Path, **options: Any) -> Path:
    """Writes a figure atomically, in the format that the file's suffix names (default: PNG).

    Args:
        options: For ``Figure.savefig``.

    Raises:
        OutputError: The file cannot be written, or the format is unknown.
    """
    page = io.BytesIO()
    try:
        figure.savefig(page, format=Path(path).suffix.lstrip(".").lower() or "png", **options)
    except ValueError as error:
        raise OutputError("the picture cannot be written", where=str(path), got=str(error)) from error
    return write_bytes(path, page.getvalue())
