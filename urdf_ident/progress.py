"""Progress bars on a terminal; nothing is written if the standard error is not a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

#: Callback with which a long computation reports its progress: the log or search being processed, the amount done, and the
#: total amount (a search may end earlier).
Progress = Callable[[str, int, int], None]


@contextmanager
def steps() -> Iterator[Callable[[str, float], None]]:
    """Shows a progress bar for each named step, on a terminal only.

    Yields:
        A function to be called with the name of the step and the completed fraction, 0 to 1.
    """
    with work_bars() as update:
        yield lambda step, done: None if update is None else update(step, round(1000 * done), 1000)


@contextmanager
def search_bar() -> Iterator[Callable[[float, str], None] | None]:
    """Shows a progress bar over the time budget with the best value so far, on a terminal only.

    Yields:
        A function to be called with the completed fraction, 0 to 1, and the best value as text; None without a terminal.
    """
    with _bars() as bars:
        task = None if bars is None else bars.add_task("first motion", total=1.0)
        yield None if bars is None else lambda part, best: bars.update(task, completed=part, description=f"best so far: {best}")


@contextmanager
def work_bars() -> Iterator[Progress | None]:
    """Shows the progress of each log and each search, on a terminal only.

    Yields:
        The :class:`Progress` callback; None without a terminal.
    """
    tasks: dict[str, Any] = {}
    with _bars() as bars:

        def update(name: str, done: int, total: int) -> None:
            if name not in tasks:
                tasks[name] = bars.add_task(name, total=total)
            bars.update(tasks[name], completed=min(done, total), total=total)

        yield None if bars is None else update


@contextmanager
def _bars() -> Iterator[Any]:
    """Bars of rich with name, percentage and time taken; None if standard error is not a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = [TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:.0f} %"), TimeElapsedColumn()]
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        yield bars
