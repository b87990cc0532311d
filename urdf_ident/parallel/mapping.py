"""Parallel map over logs, in processes or on a cluster; the results do not depend on the number of workers.

Callers map a function with :func:`each`; the entry point chooses the workers once with :func:`workers`. Each worker always
receives the same share of the items, so that its copies of the logs are reused (:mod:`.messages`). Results are returned, and
merged by the caller, in the order of the logs; they are bitwise equal to those of a single process.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from functools import lru_cache, partial
from typing import Any, TypeVar

from ..errors import SchedulerError
from .messages import work
from .pool import WorkerPool
from .processes import WorkerProcess
from .scratch import scratch_folder, use_scratch_folder

T = TypeVar("T")
R = TypeVar("R")

_Map = Callable[[Callable[[Any], Any], Sequence[Any], bool], Callable[[], list[Any]]]
#: Size of a buffer of OpenBLAS with what surrounds it [bytes].
_BUFFER = 34 << 20
_MAP: ContextVar[_Map | None] = ContextVar("map", default=None)


def each(function: Callable[[T], R], items: Iterable[T]) -> list[R]:
    """Calls a function with every item, on the available workers.

    Args:
        function: A module-level function, or a partial of one; it and its results are sent between processes.

    Returns:
        The results, in the same order. Small arrays that come from another process are writable.
    """
    return _submit(function, items, later=False)()


def start_each(function: Callable[[T], R], items: Iterable[T]) -> Callable[[], list[R]]:
    """Starts :func:`each` in the background, with a lower priority than calls whose results are awaited.

    Args:
        function, items: As for :func:`each`.

    Returns:
        A function that waits for the results; without workers it computes them.
    """
    return _submit(function, items, later=True)


def _submit(function: Callable[[T], R], items: Iterable[T], *, later: bool) -> Callable[[], list[R]]:
    listed, shared_out = list(items), _MAP.get()
    if shared_out is None or len(listed) < 2:
        return lambda: [function(item) for item in listed]
    return shared_out(function, listed, later)


def shared() -> bool:
    """Whether :func:`each` uses other processes."""
    return _MAP.get() is not None


@contextmanager
def workers(jobs: int = 1, scheduler: str | None = None, ready: str = "") -> Iterator[None]:
    """Context in which :func:`each` uses several processes or the cluster of a scheduler.

    Args:
        jobs: Number of processes on this machine; 1: only this one.
        scheduler: Address of a dask scheduler, ``tcp://host:port``; None: no cluster.
        ready: Module that the workers of a cluster import at once, while this process may be importing it too.

    Raises:
        SchedulerError: A process was ended from outside; samples are in a scratch folder; the scheduler does not answer, has
            no workers, or has one with another version of this package or its numerical dependencies.
        MissingExtraError: A scheduler is given but the extra ``cluster`` is not installed.
    """
    if scheduler is not None:
        if scratch_folder() is not None:
            raise SchedulerError(
                "a cluster cannot read samples in a scratch folder", remedy="leave out --scratch or --scheduler"
            )
        from .cluster import cluster

        with cluster(scheduler, ready) as pool:
            yield from _using(pool)
    elif jobs > 1:
        with ExitStack() as stack:
            begin = partial(_set_up_worker, scratch_folder())

            @lru_cache
            def helper(place: int) -> WorkerProcess:  # started as late as possible, to inherit the modules imported by then
                _take_blas_buffers(os.getpid())  # which the process inherits
                made = WorkerProcess(begin, work)
                stack.callback(made.end)
                return made

            yield from _using(WorkerPool(lambda place, *task: helper(place).submit(*task), lambda: range(jobs)))
    else:
        yield


@contextmanager
def one_thread() -> Iterator[None]:
    """Context manager or decorator that limits linear algebra to one thread.

    The matrices are small: several threads would mostly wait for each other, on a busy machine for many times the
    computing time.
    """
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    with threadpool_limits(1):
        _take_blas_buffers(os.getpid())
        yield


@lru_cache(maxsize=1)
def _take_blas_buffers(_process: int) -> None:
    """Makes linear algebra allocate its working memory now.

    OpenBLAS allocates a buffer of 32 MiB when a process first needs one, once for NumPy's copy of the library and once for
    SciPy's. Where memory is missing it tries again forever, so the same amount is allocated first.

    Args:
        _process: This process, so that a forked one calls it again.

    Raises:
        MemoryError: There is not enough memory.
    """
    import numpy as np
    from scipy.linalg import lapack

    square = np.eye(64)  # smaller products are computed without a buffer
    np.empty(_BUFFER, np.uint8)
    square.T @ square
    np.empty(_BUFFER, np.uint8)
    lapack.dtrtrs(square, square)


def _using(work: _Map) -> Iterator[None]:
    token = _MAP.set(work)
    try:
        yield
    finally:
        _MAP.reset(token)


def _set_up_worker(folder: str | None) -> None:
    """Sets up a worker process: one thread (more would compete for the cores) and no workers of its own."""
    from threadpoolctl import threadpool_limits

    _MAP.set(None)
    use_scratch_folder(folder)
    threadpool_limits(1)
    _take_blas_buffers(os.getpid())
