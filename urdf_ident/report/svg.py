"""Charts as inline SVG elements whose colours and fonts are those of the page, by CSS variables."""

from __future__ import annotations

from collections.abc import Sequence
from zlib import crc32

import numpy as np

from ..linalg import Array
from ..quoting import markup
from ..result.plots.charts import Chart, Dots, Line, Mark

#: Width of a picture [px].
WIDTH = 360
#: Height of a line of text, and width of a letter [px].
_LINE, _LETTER = 14, 5.6
#: Space beside, below and above the axes for numbers and labels [px].
_LEFT, _RIGHT, _BOTTOM, _TOP = 54, 10, 34, 24
_DASHES = {"-": "", "--": ' stroke-dasharray="5 3"', ":": ' stroke-dasharray="1.5 2"'}
_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def svg(charts: Sequence[Chart], label: str, height: float, *, shares: Sequence[float] = ()) -> str:
    """Draws charts side by side, or below each other with one x axis.

    Args:
        label: What is seen, for those who cannot see it.
        height: Height of the picture [px].
        shares: Shares of the height of charts that are below each other; side by side if empty.
    """
    drawn: list[str] = []
    for k, chart in enumerate(charts):
        if shares:
            frame = (0.0, height * sum(shares[:k]), float(WIDTH), height * shares[k])
        else:
            frame = (k * WIDTH / len(charts), 0.0, WIDTH / len(charts), height)
        titled = bool(chart.title) or (not shares and any(each.title for each in charts))
        last = not shares or k == len(charts) - 1
        drawn += _panel(chart, frame, f"c{crc32(label.encode()):x}-{k}", titled=titled, last=last)
    size = f'viewBox="0 0 {WIDTH} {height:.0f}" style="width:{WIDTH}px;font:10px var(--font)"'
    return f'<svg {size} role="img" aria-label="{markup(label)}">{"".join(drawn)}</svg>'


def _panel(chart: Chart, frame: tuple[float, float, float, float], name: str, *, titled: bool, last: bool) -> list[str]:
    """The elements of one chart in its frame: left, top, width, height [px]."""
    beside = max(_LETTER * max(map(len, chart.names)) + 10, 30) if chart.names else _LEFT if chart.y else _LEFT - 18
    legend, x, rows = list[str](), 0.0, 0  # it wraps at the width of the frame
    for mark in (mark for mark in chart.marks if chart.legend and mark.label):
        length = 24 + _LETTER * len(mark.label)
        if x and x + length > frame[2] - _RIGHT:
            x, rows = 0.0, rows + 1
        y = 6.0 + _LINE * rows
        sample = Line([], [], mark.colour, mark.alpha, width=3.0, dash=mark.dash if isinstance(mark, Line) else "-")
        legend += [_mark(sample, np.array([x, x + 12]), np.array([y, y])), _text(x + 16, y + 3.5, mark.label, "start")]
        x += length
    rows += bool(legend)
    left, right = frame[0] + min(beside, 0.5 * frame[2]), frame[0] + frame[2] - _RIGHT
    top = frame[1] + (_TOP if titled else 6) + _LINE * rows
    bottom = frame[1] + frame[3] - ((_BOTTOM if chart.x else 18) if last else 4)
    (x0, x1), (y0, y1) = chart.limits()
    if chart.equal:  # units of the two axes are equally long
        aspect = (right - left) / (bottom - top)
        tall = max(y1 - y0, (x1 - x0) / aspect)
        x, y, wide = (x0 + x1) / 2, (y0 + y1) / 2, tall * aspect
        x0, x1, y0, y1 = x - wide / 2, x + wide / 2, y - tall / 2, y + tall / 2

    def place(values: Array, low: float, high: float, start: float, end: float) -> Array:
        if chart.log:
            values, low, high = np.log10(values), np.log10(low), np.log10(high)
        return start + (values - low) / (high - low) * (end - start)

    def across(values: Array) -> Array:
        return np.clip(place(values, x0, x1, left, right), left - 9999, right + 9999)

    def up(values: Array) -> Array:
        return np.clip(place(values, y0, y1, bottom, top), top - 9999, bottom + 9999)

    grid, upright, numbers, texts = list[str](), list[str](), list[str](), list[str]()
    for at, text in _ticks(x0, x1, 5 if right - left > 200 else 3, log=chart.log):
        x = float(across(np.array(at)))
        upright.append(f"M{x:.1f} {top:.1f}V{bottom:.1f}")
        numbers += [_text(x, bottom + 12, text, "middle")] if last else []
    named = [(float(k), name) for k, name in enumerate(chart.names)]
    for at, text in named or _ticks(y0, y1, 5 if bottom - top > 80 else 3, log=chart.log):
        y = float(up(np.array(at)))
        grid.append(f"M{left:.1f} {y:.1f}H{right:.1f}")
        texts.append(_text(left - 5, y + 3.5, text, "end"))
    if chart.title:
        texts.append(_text(left, frame[1] + 13, chart.title, "start", size=12))
    if chart.x and last:
        texts.append(_text((left + right) / 2, bottom + 27, chart.x, "middle"))
    if chart.y:
        x, y = frame[0] + 11, (top + bottom) / 2
        texts.append(_text(x, y, chart.y, "middle", turned=True))
    clip = f'<clipPath id="{name}"><rect x="{left:.1f}" y="{top:.1f}" width="{right - left:.1f}" height="{bottom - top:.1f}"/>'
    marks = "".join(
        _mark(mark, *(to(v) for to, v in zip((across, up), mark.within(((x0, x1), (y0, y1))), strict=True)))
        for mark in chart.marks
    )
    placed = [f'<g transform="translate({frame[0] + 6:.1f} {top - _LINE * rows:.1f})">', *legend, "</g>"]
    # what the script of the page reads to show values and to zoom
    ends = f'data-box="{left:.1f} {top:.1f} {right:.1f} {bottom:.1f}" data-x="{x0:.9g} {x1:.9g}" data-y="{y0:.9g} {y1:.9g}"'
    thin = 'stroke="var(--soft)" stroke-width=".5" opacity=".3"'
    return [
        f'<g class="{"logarithmic" if chart.log else "panel"}" {ends}>{clip}</clipPath>',
        f'<path d="{"".join(grid)}" {thin}/><path class="upright" d="{"".join(upright)}" {thin}/>',
        f'<path d="M{left:.1f} {top:.1f}V{bottom:.1f}H{right:.1f}" fill="none" stroke="var(--soft)" stroke-width=".8"/>',
        f'<g clip-path="url(#{name})" fill="none"><g class="marks">{marks}</g></g>',
        f'<g class="numbers" fill="var(--ink)" text-anchor="middle">{"".join(numbers)}</g>',
        *(placed if legend else []),
        *texts,
        "</g>",
    ]


def _mark(mark: Mark, x: Array, y: Array) -> str:
    """The element of a mark, given its points [px]."""
    colour, faint = f"var(--{mark.colour})", f' opacity="{mark.alpha:g}"' if mark.alpha < 1 else ""
    if isinstance(mark, Dots):
        look = f'stroke="{colour}"' if mark.hollow else f'fill="{colour}"'
        points = zip(x.tolist(), y.tolist(), np.broadcast_to(mark.radius, x.shape).tolist(), strict=True)
        dots = "".join(f'<circle cx="{a:.1f}" cy="{b:.1f}" r="{r:.1f}"/>' for a, b, r in points if np.isfinite([a, b]).all())
        return f"<g {look}{faint}>{dots}</g>"
    path, pen = [], "M"
    for a, b, known in zip(x.tolist(), y.tolist(), (np.isfinite(x) & np.isfinite(y)).tolist(), strict=True):
        if known:
            path.append(f"{pen}{a:.1f} {b:.1f}")
        pen = "L" if known else "M"
    if isinstance(mark, Line):
        name = f' data-label="{markup(mark.label)}"' if mark.label and path else ""
        look = f'stroke="{colour}" stroke-width="{mark.width:g}"{_DASHES[mark.dash]}{faint}'
        return f'<path d="{"".join(path)}" {look}{name}/>'
    return f'<path d="{"".join(path)}Z" fill="{colour}"{faint}/>'


def _text(x: float, y: float, text: str, anchor: str, *, size: int = 0, turned: bool = False) -> str:
    look = (f' font-size="{size}"' if size else "") + (f' transform="rotate(-90 {x:.1f} {y:.1f})"' if turned else "")
    return f'<text x="{x:.1f}" y="{y:.1f}" fill="var(--ink)" text-anchor="{anchor}"{look}>{markup(text)}</text>'


def _ticks(first: float, last: float, count: int, *, log: bool) -> list[tuple[float, str]]:
    """Round numbers in a range, at most about ``count``, with their texts."""
    low, high = sorted((first, last))
    if log:
        powers = range(int(np.ceil(np.log10(low))), int(np.floor(np.log10(high))) + 1)
        stride = -(-len(powers) // (count + 1)) or 1
        return [(10.0**k, f"10{str(k).translate(_SUPERSCRIPT)}") for k in powers[::stride]]
    rough = (high - low) / count
    decade = 10.0 ** np.floor(np.log10(rough))
    step = next(step for step in (decade, 2 * decade, 5 * decade, 10 * decade) if step >= rough * (1 - 1e-9))
    places = max(0, -int(np.floor(np.log10(step) + 1e-9)))
    usual = places <= 3 and max(abs(low), abs(high)) < 1e5
    numbers = step * np.arange(np.ceil(low / step - 1e-9), np.floor(high / step + 1e-9) + 1) + 0.0
    return [(x, (f"{x:.{places}f}" if usual else f"{x:.6g}").replace("-", "−")) for x in numbers.tolist()]
