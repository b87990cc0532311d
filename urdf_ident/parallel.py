"""Parallel map over logs, in processes or on a cluster; the results do not depend on the number of workers.

Callers map a function with :func:`each`; the entry point chooses the workers once with :func:`workers`. Each worker always
receives the same share of the items, so that its copies of the logs are reused (:mod:`.sending`). Results are returned, and
merged by the caller, in the order of the logs; they are bitwise equal to those of a single process.
"""

from __future__ import annotations

import os
import warnings
from collections import deque
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib import import_module
from itertools import pairwise
from socket import gethostname
from threading import Event
from time import monotonic
from typing import Any, TypeVar

from .errors import MissingExtraError, SchedulerError
from .processes import Helper
from .provenance import computing
from .scratch import lend, scratch_folder
from .sending import Task, leave, work

T = TypeVar("T")
R = TypeVar("R")

_Map = Callable[[Callable[[Any], Any], Sequence[Any], bool], Callable[[], list[Any]]]
_MAP: ContextVar[_Map | None] = ContextVar("map", default=None)
#: Timeout for connecting to a scheduler [s].
_PATIENCE = 10.0
#: Interval at which a worker of a cluster that has not answered is checked [s].
_LOOK = 0.5
#: Time that a cluster without workers has to start new ones [s].
_ALONE = 60.0
#: Number of parts in which a worker's share of the items is sent: the next is packed while one is processed, and a lost
#: worker costs only one part. Background work (:func:`begun`) has smaller parts, so that urgent work can go in between.
_PARTS, _LATER = 2, 4


def each(function: Callable[[T], R], items: Iterable[T]) -> list[R]:
    """Calls a function with every item, on the available workers.

    Args:
        function: A module-level function, or a partial of one; it and its results are sent between processes.
        items: Its arguments.

    Returns:
        The results, in the same order. Small arrays that come from another process are writable.
    """
    return _begun(function, items, later=False)()


def begun(function: Callable[[T], R], items: Iterable[T]) -> Callable[[], list[R]]:
    """Starts :func:`each` in the background, with a lower priority than calls whose results are awaited.

    Args:
        function, items: As for :func:`each`.

    Returns:
        A function that waits for the results; without workers it computes them.
    """
    return _begun(function, items, later=True)


def _begun(function: Callable[[T], R], items: Iterable[T], *, later: bool) -> Callable[[], list[R]]:
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
        with _cluster(scheduler, ready) as crew:
            yield from _inside(crew)
    elif jobs > 1:
        with ExitStack() as stack:
            begin = partial(_alone, scratch_folder())

            @lru_cache
            def helper(place: int) -> Helper:  # started as late as possible, to inherit the modules imported by then
                made = Helper(begin, work)
                stack.callback(made.end)
                return made

            yield from _inside(_Crew(lambda place, *task: helper(place).submit(*task), lambda: range(jobs)))
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
        yield


class _LostError(Exception):
    """The worker of a task was lost."""


@dataclass
class _Sent:
    """A task that was sent.

    Attributes:
        task: The task.
        begin: Position of its first item.
        place: The worker it was sent to; None: any.
        later: Whether it has a lower priority than awaited work.
        answer: The future with the answer.
    """

    task: Task
    begin: int
    place: Hashable
    later: bool
    answer: Any


class _Crew:
    """Workers among which the items of every call are divided in the same way.

    Args:
        submit: Sends a message to a worker (None: any), with a lower priority if ``later``.
        places: Returns the available workers.
    """

    def __init__(self, submit: Callable[..., Any], places: Callable[[], Sequence[Hashable]]) -> None:
        self.submit, self.places = submit, places
        self.known: dict[str, set[str]] = {}  # worker → names of the objects that it has
        self.at: dict[Hashable, str] = {}  # place → last worker seen there

    def __call__(self, function: Callable[[Any], Any], items: Sequence[Any], later: bool) -> Callable[[], list[Any]]:
        places = self.places()
        parts = min(len(places) * (_LATER if later else _PARTS), len(items))
        edges = [k * len(items) // parts for k in range(parts + 1)]
        sent = deque[_Sent]()
        for k, (begin, end) in enumerate(pairwise(edges)):
            sent.append(self._send(Task(function, items[begin:end]), begin, places[k * len(places) // parts], later))
        return partial(self._collected, sent, len(items))

    def _send(self, task: Task, begin: int, place: Hashable, later: bool) -> _Sent:
        known = set() if place is None else self.known.get(self.at.get(place, ""), set())
        return _Sent(task, begin, place, later, self.submit(place, later, *task.message(known)))

    def _collected(self, sent: deque[_Sent], count: int) -> list[Any]:
        results: list[Any] = [None] * count
        while sent:  # answers are released once read: together they may be as large as all results
            part = sent.popleft()
            try:
                found = self._done(part)
            except _LostError:  # resend all of the worker's parts, to any worker, behind the work already queued
                lost = [part, *(other for other in sent if other.place == part.place)]
                kept = [other for other in sent if other.place != part.place]
                sent.clear()
                sent.extend([*kept, *(self._send(other.task, other.begin, None, other.later) for other in lost)])
            else:
                results[part.begin : part.begin + len(found)] = found
        return results

    def _done(self, part: _Sent) -> list[Any]:
        """Results of a task; it is sent again in full if the worker lacked an object."""
        worker, data = part.answer.result()
        if isinstance(data, list):
            self.known.setdefault(worker, set()).difference_update(part.task.named.difference(data))
            part.answer = self.submit(part.place, False, *part.task.message(set()))
            return self._done(part)
        results = part.task.results(data)
        self.at[part.place] = worker
        self.known.setdefault(worker, set()).update(part.task.known)
        return results


def _inside(work: _Map) -> Iterator[None]:
    token = _MAP.set(work)
    try:
        yield
    finally:
        _MAP.reset(token)


def _alone(folder: str | None) -> None:
    """Sets up a worker process: one thread (more would compete for the cores) and no workers of its own."""
    from threadpoolctl import threadpool_limits

    _MAP.set(None)
    lend(folder)
    threadpool_limits(1)


@contextmanager
def _cluster(address: str, ready: str) -> Iterator[_Map]:
    try:
        from distributed import Client
    except ImportError as error:
        raise MissingExtraError("--scheduler needs dask", remedy="pip install 'urdf-ident[cluster]'") from error
    try:
        client = Client(address, timeout=_PATIENCE, set_as_default=False, direct_to_workers=True)
    except (OSError, ValueError, TypeError) as error:
        raise SchedulerError(
            "the scheduler does not answer",
            where=address,
            got=str(error).splitlines()[0][:120] if str(error) else type(error).__name__,
            remedy="start one with `dask scheduler`, and workers with `dask worker tcp://HOST:PORT`",
        ) from error
    with client:
        _check_workers(client, address)
        _keep_memory()
        _begun = [client.submit(import_module, ready, workers=[place], pure=False) for place in client.nthreads() if ready]

        def submit(place: str | None, later: bool, *message: Any) -> Any:
            # In order, because a message may refer to objects of the previous one; on this worker only: others lack the logs.
            where: dict[str, Any] = {"fifo_timeout": "0 ms", "workers": None if place is None else [place], "priority": -later}
            with warnings.catch_warnings(), there():
                warnings.filterwarnings("ignore", "Sending large graph")  # a log is sent to the worker that processes it
                return _Answer(client.submit(_work_there, computing(), *message, pure=False, **where), place, alive, there)

        def alive() -> dict[str, Any]:
            with there():
                return dict(client.nthreads())

        there = partial(_scheduler_there, client, address)
        try:
            yield _Crew(submit, _Places(alive))
        finally:
            with suppress(SchedulerError, OSError), there():
                client.run(leave, leave())


@contextmanager
def _scheduler_there(client: Any, address: str) -> Iterator[None]:
    """Turns dask's various errors into one clear error if the scheduler was lost."""
    try:
        yield
    except Exception as error:
        if client.status == "running":
            raise
        raise SchedulerError(
            "the scheduler was lost while it was needed", where=address, remedy="start it and its workers again, then this"
        ) from error


class _Answer:
    """Pending answer of a worker of a cluster.

    Args:
        future: The dask future.
        place: Address of the worker; None: any.
        alive: Returns the addresses of the current workers.
        there: Context that detects a lost scheduler.
    """

    def __init__(
        self,
        future: Any,
        place: str | None,
        alive: Callable[[], Collection[str]],
        there: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self.future, self.place, self.alive, self.there, self.done = future, place, alive, there, Event()
        future.add_done_callback(lambda _: self.done.set())

    def result(self) -> Any:
        """Waits for the answer; raises :class:`_LostError` if the worker was lost.

        Raises:
            SchedulerError: The scheduler was lost, or all workers were and no new ones started.
        """
        from asyncio import TimeoutError as NoAnswerError

        patience, seen = 4.0 * _LOOK, monotonic()
        while True:
            done = self.done.wait(_LOOK)
            if done and self.future.status in ("error", "cancelled"):
                with self.there():
                    return self.future.result()  # raises the error of the task itself
            if done and self.future.status == "finished":
                with suppress(NoAnswerError), self.there():
                    return self.future.result(patience)
                patience *= 2.0  # do not interrupt the transfer of a large answer again
            alive = self.alive()
            if self.place is not None and self.place not in alive:
                raise _LostError
            seen = monotonic() if alive else seen
            if monotonic() - seen > _ALONE:
                raise SchedulerError(
                    "the scheduler has no workers any more",
                    got=f"none for {_ALONE:.0f} s",
                    remedy="start others (with a nanny, which starts a lost one anew), then this again",
                )


class _Places:
    """Workers of a cluster in a stable order: a new worker takes the place of a lost one, the others keep their logs.

    Args:
        alive: Returns the addresses of the current workers.
    """

    def __init__(self, alive: Callable[[], Iterable[str]]) -> None:
        self.alive, self.held = alive, list[str | None]()

    def __call__(self) -> Sequence[str | None]:
        """Address of the worker at each place; None for an empty place, whose work goes to any worker."""
        alive = set(self.alive())
        new = sorted(alive.difference(self.held))
        held = [place if place in alive else new.pop(0) if new else None for place in self.held]
        self.held = [*held, *new]
        return list(self.held) or [None]


def _work_there(asking: Mapping[str, str], *message: Any) -> Any:
    """:func:`.sending.work` on a cluster; the version check is repeated because workers may have joined later."""
    _check_versions(asking, computing(), f"the worker on {gethostname()}")
    _keep_memory()
    return work(*message)


@lru_cache(maxsize=1)
def _keep_memory() -> None:
    """Lets malloc keep freed memory. Dask configures its workers to return it to the system at once, which makes allocating
    an array of 100 kB as slow as filling it."""
    import ctypes

    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if os.name == "posix" else None  # GNU C library only
    if mallopt is not None:
        mallopt(-3, 32 << 20)  # M_MMAP_THRESHOLD [bytes]
        mallopt(-1, 256 << 20)  # M_TRIM_THRESHOLD [bytes]


def _check_workers(client: Any, address: str) -> None:
    """Refuses workers with other versions, which would compute other numbers."""
    try:
        found = client.run(computing)
    except Exception as error:  # the package is missing, or a version without this function
        raise SchedulerError(
            "a worker lacks this version of urdf-ident",
            where=address,
            got=str(error)[:200],
            remedy="install the same version in the environment of every worker",
        ) from error
    if not found:
        raise SchedulerError("the scheduler has no workers", where=address, remedy=f"start some: `dask worker {address}`")
    for worker, theirs in sorted(found.items()):
        _check_versions(computing(), theirs, worker)


def _check_versions(own: Mapping[str, str], theirs: Mapping[str, str], worker: str) -> None:
    other = [name for name in {**own, **theirs} if own.get(name) != theirs.get(name)]
    if other:
        here, there = (", ".join(f"{name} {some.get(name, 'missing')}" for name in other) for some in (own, theirs))
        raise SchedulerError(
            "a worker has another version of urdf-ident, or of what it computes with",
            where=worker,
            got=there,
            expected=here,
            remedy="install the same version there",
        )
