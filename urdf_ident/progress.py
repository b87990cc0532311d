"""Progress on a terminal; a pipe sees nothing of it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any


@contextmanager
def steps() -> Iterator[Callable[[str, float], None]]:
    """Named steps with the part that is done: bars on a terminal, nothing in a pipe.

    Yields:
        Called with the step's name and the part that is done, 0 to 1.
    """
    if not sys.stderr.isatty():
        yield lambda _step, _done: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        tasks: dict[str, Any] = {}

        def update(step: str, done: float) -> None:
            if step not in tasks:
                tasks[step] = bar.add_task(step, total=1.0)
            bar.update(tasks[step], completed=done)

        yield update


@contextmanager
def search_bar() -> Iterator[Callable[[float, str], None] | None]:
    """A bar over the time budget with the best value so far; nothing in a pipe.

    Yields:
        Called with the part that is done, 0 to 1, and the best value in words; None in a pipe.
    """
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    columns = [TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:.0f} %")]
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("first motion", total=1.0)
        yield lambda part, best: bar.update(task, completed=part, description=f"best so far: {best}")


@contextmanager
def log_bars(logs: Mapping[str, int]) -> Iterator[Callable[[str, int], None] | None]:
    """How far each log and each search is, on a terminal; nothing in a pipe.

    Args:
        logs: Name of each log → its rows, which are counted; of other work only the count is known.

    Yields:
        Called with the name of what is at work and a count; None in a pipe.
    """
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    count = TextColumn("{task.completed:.0f}{task.fields[unit]}")
    columns: list[Any] = [TextColumn("{task.description}"), BarColumn(), count, TimeElapsedColumn()]
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        tasks: dict[str, Any] = {}

        def update(name: str, rows: int) -> None:
            if name not in tasks:
                total = logs.get(name)
                tasks[name] = bar.add_task(name, total=total, unit="" if total is None else f" of {total} rows")
            bar.update(tasks[name], completed=min(rows, logs.get(name, rows)))

        yield update
