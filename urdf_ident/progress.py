"""Progress on a terminal; a pipe sees nothing of it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol


class Progress(Protocol):
    """What long work calls as it goes on."""

    def __call__(self, name: str, done: int, total: int) -> None:
        """Takes note.

        Args:
            name: What is at work: a log, or a search.
            done: How much of it is done, in rows or tries.
            total: How much there is to do; a search may end before.
        """


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
def work_bars() -> Iterator[Progress | None]:
    """How far each log and each search is, on a terminal; nothing in a pipe.

    Yields:
        Called with the name of what is at work, what is done and what is to do; None in a pipe.
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
