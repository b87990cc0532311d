"""What the pages of the papers share: a text with places for figures, tables, pictures."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from string import Template
from typing import Any


def page(name: str, figures: Mapping[str, Any]) -> str:
    """The text of that name in ``text/`` with every ``$key`` replaced by its figure, to three digits."""
    text = Template(Path(__file__).with_name("text").joinpath(f"{name}.md").read_text(encoding="utf-8"))
    return text.substitute({key: cell(value) for key, value in figures.items()})


def show(name: str, figures: Mapping[str, Any]) -> None:
    """Prints a page."""
    sys.stdout.write(page(name, figures))


def cell(value: Any) -> str:
    """A number with three significant digits, several with commas, a text as it is."""
    if isinstance(value, float):
        return f"{value + 0.0:.3g}"
    return value if isinstance(value, str) else ", ".join(map(cell, value)) if isinstance(value, Iterable) else str(value)


def span(values: Iterable[float], digits: str = ".3g") -> str:
    """The least and the largest of some numbers."""
    some = list(values)
    low, high = format(min(some), digits), format(max(some), digits)
    return low if low == high else f"{low} to {high}"


def table(heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table in Markdown."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(map(cell, line))} |" for line in lines)


def picture(panels: Sequence[tuple[str, Any, Mapping[str, Any]]], axes: tuple[str, str], folder: Path | None, name: str) -> str:
    """Draws one panel a joint where a folder is given: title, abscissa, label → ordinate; the paragraph that shows it."""
    if folder is None:
        return ""
    from matplotlib.figure import Figure

    columns = min(3, len(panels))
    figure = Figure(figsize=(9.0, 2.6 * -(-len(panels) // columns)))
    for k, (title, x, curves) in enumerate(panels, 1):
        axis = figure.add_subplot(-(-len(panels) // columns), columns, k)
        for label, y in curves.items():
            axis.plot(x, y, "." if label == "measured points" else "-", linewidth=0.7, label=label)
        axis.set(title=title, xlabel=axes[0], ylabel=axes[1])
    axis.legend()
    figure.tight_layout()
    figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
    return f"![{name}]({name}.svg)"
