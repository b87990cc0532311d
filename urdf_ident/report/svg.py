"""Matplotlib figures as inline SVG whose colours are CSS variables."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from dataclasses import asdict
from typing import Any
from warnings import catch_warnings, filterwarnings

from ..quoting import markup
from ..result.plots.style import PALETTE, figure_class

#: Meaning by colour: in the page, each is the CSS variable of that name.
_NAMES = {colour: name for name, colour in asdict(PALETTE).items()}
_TAG = re.compile(r"<[^>]*>")
_ID = re.compile(r' id="[^"]*_\d+"')
_DIGITS = re.compile(r"(-?\d+\.\d{2})\d+")
_COLOUR = re.compile("|".join(_NAMES))
#: Distances of labels from their axes [in].
_BELOW, _BESIDE = 0.20, 0.48
#: Text as text: small, selectable, and in the page's own font.
_SETTINGS = {
    "svg.fonttype": "none",
    "svg.hashsalt": "urdf-ident",
    "font.family": "sans-serif",
    "path.simplify_threshold": 0.3,
    "axes.formatter.limits": (-3, 5),  # longer numbers would overlap the label
}


def svg(draw: Callable[[Any], None], width: float, height: float, label: str) -> str:
    """Draws a figure and returns it as an inline SVG element.

    Args:
        draw: Called with an empty matplotlib figure.
        width, height: Size [in]; the page scales it down, never up.

    Returns:
        ``<svg …>…</svg>``.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    make = figure_class()
    from matplotlib import rc_context

    with rc_context(_SETTINGS):
        figure = make(figsize=(width, height))
        draw(figure)
        _fix_labels(figure)
        figure.patch.set_visible(False)
        stream = io.StringIO()
        with catch_warnings():  # joint names are drawn in the page's own fonts: missing glyphs do not matter
            filterwarnings("ignore", message="Glyph .* missing from font")
            figure.savefig(stream, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    text = stream.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.S)
    text = _TAG.sub(_styled, text.replace("\n", " "))
    head, body = text.split(">", 1)
    box = re.search(r'viewBox="[^"]*"', head)
    attributes = f'{box[0] if box else ""} style="width:{width * 96:.0f}px" role="img" aria-label="{markup(label)}"'
    return f'<svg xmlns:xlink="http://www.w3.org/1999/xlink" {attributes}>{body}'


def _styled(tag: re.Match[str]) -> str:
    """A tag with coordinates to 0.01 pixels, and the page's colours and font; the text between tags stays as it is."""
    text = _DIGITS.sub(r"\1", _ID.sub("", tag[0]))
    text = _COLOUR.sub(lambda colour: f"var(--{_NAMES[colour[0]]})", text)
    return re.sub(r"font: (\S+) [^;\"]*", r"font: \1 var(--font)", text)


def _fix_labels(figure: Any) -> None:
    """Places labels at fixed distances from their axes; otherwise matplotlib would measure the text of every tick."""
    width, height = figure.get_size_inches()
    for axis in figure.axes:
        box = axis.get_position()
        axis.xaxis.set_label_coords(0.5, -_BELOW / (height * box.height))
        axis.yaxis.set_label_coords(-_BESIDE / (width * box.width), 0.5)
        axis.yaxis.set_offset_position("right")  # a power of ten, away from the title
        axis.yaxis.get_offset_text().set_fontsize("small")
