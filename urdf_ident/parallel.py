"""Parallel map over logs, in processes of this machine (joblib) or on a cluster (dask).

Callers map a function with :func:`each`; the entry point chooses the workers once with :func:`workers`. Results are returned,
and merged by the caller, in the order of the logs: they do not depend on the number of workers.
"""

from __future__ import annotations

import itertools
import os
import pickle
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache, partial
from socket import gethostname
from time import monotonic
from typing import Any, TypeVar
from uuid import uuid4

from .errors import MissingExtraError, SchedulerError
from .provenance import computing

T = TypeVar("T")
R = TypeVar("R")

#: Calls a function with every item, on workers, and yields the results in the same order.
_Map = Callable[[Callable[[Any], Any], Sequence[Any]], Iterable[Any]]
_MAP: ContextVar[_Map | None] = ContextVar("map", default=None)
#: Size of a buffer of OpenBLAS with what surrounds it [bytes].
_BUFFER = 34 << 20
#: Size from which an array is passed to the processes in a file in memory [bytes].
_LARGE = 1 << 16
#: Tasks per worker of a cluster: with more, an unequal load is divided more evenly and less is repeated when a worker is lost.
_TASKS = 4
#: Timeout for connecting to a scheduler, and for the workers to say their versions: they import the package first [s].
_PATIENCE, _FIRST = 10.0, 60.0
#: Interval at which a cluster is checked while answers are awaited, and time that one without workers has to start others [s].
_LOOK, _ALONE = 2.0, 60.0


def each(function: Callable[[T], R], items: Iterable[T], finished: Callable[[int], None] | None = None) -> list[R]:
    """Calls a function with every item, on the available workers.

    Args:
        function: A module-level function, or a partial of one; it, the items and the results are sent between processes.
        items: Its arguments; a worker must not change their arrays.
        finished: Called with the number of results so far.

    Raises:
        SchedulerError: A worker was ended from outside, or the cluster was lost.
    """
    listed, mapped, results = list(items), _MAP.get(), list[R]()
    for result in map(function, listed) if mapped is None or len(listed) < 2 else mapped(function, listed):
        results.append(result)
        if finished is not None:
            finished(len(results))
    return results


@contextmanager
def workers(jobs: int = 1, scheduler: str | None = None) -> Iterator[None]:
    """Context in which :func:`each` uses several processes or the cluster of a scheduler.

    Args:
        jobs: Number of processes on this machine; 1: only this one.
        scheduler: Address of a dask scheduler, ``tcp://host:port``, used instead; None: no cluster.

    Raises:
        SchedulerError: The scheduler does not answer, has no workers, or has one with another version of this package or its
            numerical dependencies.
        MissingExtraError: A scheduler is given but the extra ``cluster`` is not installed.
    """
    if scheduler is None and jobs <= 1:
        yield
        return
    with _processes(jobs) if scheduler is None else _cluster(scheduler) as mapped:
        token = _MAP.set(mapped)
        try:
            yield
        finally:
            _MAP.reset(token)


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
    """Makes linear algebra allocate its working memory now; ``_process``: this one, so that a forked one calls it again.

    OpenBLAS allocates a buffer of 32 MiB when a process first needs one, once for NumPy's copy of the library and once for
    SciPy's. Where memory is missing it tries again forever, so the same amount is allocated first (or a MemoryError raised).
    """
    import numpy as np
    from scipy.linalg import lapack

    square = np.eye(64)  # smaller products are computed without a buffer
    np.empty(_BUFFER, np.uint8)
    square.T @ square
    np.empty(_BUFFER, np.uint8)
    lapack.dtrtrs(square, square)


class _SentFunction:
    """A function that a worker unpickles once per call of :func:`each`, so that its models keep what they have computed."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.sent = uuid4().hex, pickle.dumps(function, 5)

    def __reduce__(self) -> Any:
        return _received, self.sent


_RECEIVED: dict[str, Callable[[Any], Any]] = {}


def _received(name: str, content: bytes) -> Callable[[Any], Any]:
    """The last function received by this process."""
    if name not in _RECEIVED:
        _RECEIVED.clear()
        _RECEIVED[name] = pickle.loads(content)
    return _RECEIVED[name]


@contextmanager
def _processes(jobs: int) -> Iterator[_Map]:
    """Context with processes on this machine; each uses one thread, because more would compete for the cores."""
    from joblib import Parallel, delayed, parallel_config  # type: ignore[import-untyped]

    with (
        parallel_config("loky", n_jobs=jobs, inner_max_num_threads=1),
        Parallel(return_as="generator", max_nbytes=_LARGE) as pool,
    ):

        def mapped(function: Callable[[Any], Any], items: Sequence[Any]) -> Iterator[Any]:
            sent = _SentFunction(function)
            try:
                yield from pool(delayed(_call)(sent, item) for item in items)
            except BrokenProcessPool as error:
                raise SchedulerError(
                    "a process that worked on the logs was ended from outside",
                    remedy="mostly there was not enough memory: use fewer with --jobs",
                ) from error
            except pickle.PicklingError as error:  # large arrays are passed in files
                raise SchedulerError(
                    "the logs cannot be passed to other processes",
                    got=f"{error.__cause__ or error}".strip('\n"').splitlines()[-1],
                    remedy="make room for temporary files (JOBLIB_TEMP_FOLDER names another folder), or leave out --jobs",
                ) from error

        yield mapped


def _call(function: Callable[[Any], Any], item: Any) -> Any:
    return function(item)


@contextmanager
def _cluster(address: str) -> Iterator[_Map]:
    """Context with the workers of a scheduler; dask repeats the tasks of a lost worker on others."""
    try:
        from distributed import Client
    except ImportError as error:
        raise MissingExtraError("--scheduler needs dask", remedy="pip install 'urdf-ident[cluster]'") from error
    _check_scheduler(address)
    with Client(address, timeout=_PATIENCE, set_as_default=False, direct_to_workers=True) as client:
        # refuses workers with other versions, which would compute other numbers
        try:
            versions = client.run(computing, callback_timeout=_FIRST)
        except TimeoutError as error:
            raise SchedulerError(
                "a worker does not answer",
                where=address,
                got=f"nothing in {_FIRST:.0f} s",
                remedy="the scheduler's list of workers shows when each reported last; end those that do not",
            ) from error
        except Exception as error:  # the package is missing, or a version without this function
            raise SchedulerError(
                "a worker lacks this version of urdf-ident",
                where=address,
                got=str(error)[:200],
                remedy="install the same version in the environment of every worker",
            ) from error
        if not versions:
            raise SchedulerError("the scheduler has no workers", where=address, remedy=f"start some: `dask worker {address}`")
        for worker, theirs in sorted(versions.items()):
            _check_versions(computing(), theirs, worker)

        def mapped(function: Callable[[Any], Any], items: Sequence[Any]) -> Iterator[Any]:
            name, content = _SentFunction(function).sent
            try:
                with warnings.catch_warnings():
                    warnings.filterwarnings("ignore", "Sending large graph")  # the logs
                    tasks = min(len(items), _TASKS * max(1, len(client.nthreads())))
                    edges = [k * len(items) // tasks for k in range(tasks + 1)]
                    chunks = [pickle.dumps(items[begin:end], 5) for begin, end in itertools.pairwise(edges)]
                    futures = client.map(partial(_work, computing(), name, content), chunks, pure=False, batch_size=tasks)
                    del chunks
                    _wait(client, futures)
                    for results in client.gather(futures):
                        yield from results
            except Exception as error:  # dask's own, of which two kinds can be said clearly
                kind = type(error).__name__
                if client.status != "running":
                    lost, remedy = "the scheduler was lost while it was needed", "start it and its workers again, then this"
                    raise SchedulerError(lost, where=address, remedy=remedy) from error
                if kind == "KilledWorker" or "Cancelled" in kind or "deserialization" in str(error):
                    raise SchedulerError(
                        "the scheduler gave up a part of the work",
                        where=address,
                        got=f"{error}".splitlines()[0][:160] or kind,
                        remedy="see its log; mostly workers had not enough memory (--memory-limit)",
                    ) from error
                raise

        yield mapped


def _work(asking: Mapping[str, str], name: str, function: bytes, items: bytes) -> list[Any]:
    """Calls a function on a worker of a cluster; the version check is repeated because workers may have joined later.

    Function and items are pickled, so that the scheduler does not unpickle them; ``asking``: versions of the asking process.
    """
    _check_versions(asking, computing(), f"the worker on {gethostname()}")
    with one_thread():
        call = _received(name, function)
        return [call(item) for item in pickle.loads(items)]


def _wait(client: Any, futures: Sequence[Any]) -> None:
    """Waits until all tasks are finished, or no worker has been able to work for a minute."""
    from distributed import wait

    able = monotonic()
    while True:
        try:
            with client.as_current():
                wait(futures, timeout=_LOOK)
            return
        except TimeoutError:
            states = [state.get("status") for state in client.sync(client.scheduler.identity)["workers"].values()]
        able = monotonic() if "running" in states else able
        if monotonic() - able > _ALONE:
            raise SchedulerError(
                "the scheduler has no workers that can work any more",
                got=f"{len(states)} paused for lack of memory" if states else f"none for {_ALONE:.0f} s",
                remedy="start others (with a nanny, which starts a lost one anew, and enough memory), then this again",
            )


def _check_scheduler(address: str) -> None:
    """Refuses an address at which no scheduler answers; the client would wait forever for some other programs."""
    import asyncio

    from distributed.core import connect
    from distributed.security import Security

    async def kind() -> str:
        link = await connect(address, timeout=_PATIENCE, **Security().get_connection_args("client"))
        try:
            await link.write({"op": "identity", "reply": True})
            return str((await link.read()).get("type"))
        finally:
            link.abort()

    cause: Exception | None = None
    try:
        with ThreadPoolExecutor(1) as beside:  # a notebook has an event loop of its own in this thread
            answer = beside.submit(asyncio.run, asyncio.wait_for(kind(), 1.5 * _PATIENCE)).result()
    except (OSError, ValueError, TypeError) as error:
        answer, cause = " ".join(str(error).split())[:160] or "no answer", error
    except Exception as error:  # noqa: BLE001 - the answer of another kind of program may raise anything, such as MemoryError
        answer, cause = "an answer of another program", error
    if not answer.endswith("Scheduler"):
        raise SchedulerError(
            "the scheduler does not answer",
            where=address,
            got=answer,
            remedy="start one with `dask scheduler`, and workers with `dask worker tcp://HOST:PORT`",
        ) from cause


def _check_versions(own: Mapping[str, str], theirs: Mapping[str, str], worker: str) -> None:
    other = [name for name in {**own, **theirs} if own.get(name) != theirs.get(name)]
    if other:
        here, there = (", ".join(f"{name} {versions.get(name, 'missing')}" for name in other) for versions in (own, theirs))
        raise SchedulerError(
            "a worker has another version of urdf-ident, or of what it computes with",
            where=worker,
            got=there,
            expected=here,
            remedy="install the same version there",
        )
