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
    """Shows a progress bar over the time budget with the best value so far, on a terminal only.

    Yields:
        A function to be called with the completed fraction, 0 to 1, and the best value as text; None without a terminal.
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
def work_bars() -> Iterator[Progress | None]:
    """Shows the progress of each log and each search, on a terminal only.

    Yields:
        The :class:`Progress` callback; None without a terminal.
    """
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    columns = [TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()]
    with Bars(*columns, console=Console(stderr=True), transient=True) as bars:
        tasks: dict[str, Any] = {}

        def update(name: str, done: int, total: int) -> None:
            if name not in tasks:
                tasks[name] = bars.add_task(name, total=total)
            bars.update(tasks[name], completed=min(done, total), total=total)

        yield update
