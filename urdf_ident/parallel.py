"""Work that is the same for every log, in processes or on a cluster: one map, whose results do not depend on who did the work.

What is done is decided where it is done (:func:`each`); where it is done is decided once, at the door (:func:`workers`).
The same part of the items goes to the same worker every time, so that what it holds of a log is there (:mod:`.sending`).
Results come back in the order of the logs and are merged in that order by the caller, so that they are bitwise those of one
process.
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
#: How long a scheduler may take to answer [s].
_PATIENCE = 10.0
#: After so long without an answer a worker of a cluster may be gone [s].
_LOOK = 0.5
#: So long a cluster without workers is waited for to start others [s].
_ALONE = 60.0
#: Parts that a worker's share of the items is sent in: while it works on one the next is packed, and a lost one costs no more.
#: Those of what is begun for later are smaller: what is waited for comes in between.
_PARTS, _LATER = 2, 4


def each(function: Callable[[T], R], items: Iterable[T]) -> list[R]:
    """Calls a function with every item, by the workers that there are.

    Args:
        function: Of a module, or a partial of one; it and what it returns are sent from process to process.
        items: Its arguments.

    Returns:
        What it returns, in the same order. Small arrays that come from another process are writable.
    """
    return _begun(function, items, later=False)()


def begun(function: Callable[[T], R], items: Iterable[T]) -> Callable[[], list[R]]:
    """:func:`each`, begun: the others work while this process does something else, and on what it waits for first.

    Args:
        function, items: As for :func:`each`.

    Returns:
        Waits for what the function returns, or calls it where there are no others.
    """
    return _begun(function, items, later=True)


def _begun(function: Callable[[T], R], items: Iterable[T], *, later: bool) -> Callable[[], list[R]]:
    listed, shared_out = list(items), _MAP.get()
    if shared_out is None or len(listed) < 2:
        return lambda: [function(item) for item in listed]
    return shared_out(function, listed, later)


def shared() -> bool:
    """Whether :func:`each` has others work."""
    return _MAP.get() is not None


@contextmanager
def workers(jobs: int = 1, scheduler: str | None = None, ready: str = "") -> Iterator[None]:
    """Inside, :func:`each` works in so many processes, or on the cluster of a scheduler.

    Args:
        jobs: Processes on this machine; 1: this one alone.
        scheduler: Address of a dask scheduler, ``tcp://host:port``; None: no cluster.
        ready: Module that the workers of a cluster import at once, for this process may have to, too.

    Raises:
        SchedulerError: A process was ended from outside; samples are in a scratch folder; the scheduler does not answer, has no
            workers, or one of another version of this package or of what it computes with.
        MissingExtraError: A scheduler without the extra ``cluster``.
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
            def helper(place: int) -> Helper:  # as late as can be: what is imported by then is there
                made = Helper(begin, work)
                stack.callback(made.end)
                return made

            yield from _inside(_Crew(lambda place, *task: helper(place).submit(*task), lambda: range(jobs)))
    else:
        yield


@contextmanager
def one_thread() -> Iterator[None]:
    """Inside (or in a function that it decorates), linear algebra uses one thread.

    The matrices are small: several threads would mostly wait for each other, on a busy machine many times longer than the
    work takes.
    """
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    with threadpool_limits(1):
        yield


class _LostError(Exception):
    """The worker of a task is gone."""


@dataclass
class _Sent:
    """A task that was sent.

    Attributes:
        task: It.
        begin: Position of its first item.
        place: The worker it is for; None: any.
        later: Whether it comes after what this process waits for.
        answer: What is going to be answered.
    """

    task: Task
    begin: int
    place: Hashable
    later: bool
    answer: Any


class _Crew:
    """Workers that share the items of every call in the same way.

    Args:
        submit: Sends a message to a worker, or to any where that one is None; later: after what is not.
        places: Which workers there are.
    """

    def __init__(self, submit: Callable[..., Any], places: Callable[[], Sequence[Hashable]]) -> None:
        self.submit, self.places = submit, places
        self.known: dict[str, set[str]] = {}  # worker → names that it knows
        self.at: dict[Hashable, str] = {}  # place → worker that was there

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
        while sent:  # answers go once they are read: together they may be as large as all that is made of them
            part = sent.popleft()
            try:
                found = self._done(part)
            except _LostError:  # all of its parts at once, for whoever is free, after what those have to do already
                lost = [part, *(other for other in sent if other.place == part.place)]
                kept = [other for other in sent if other.place != part.place]
                sent.clear()
                sent.extend([*kept, *(self._send(other.task, other.begin, None, other.later) for other in lost)])
            else:
                results[part.begin : part.begin + len(found)] = found
        return results

    def _done(self, part: _Sent) -> list[Any]:
        """Results of a task; sent again in full where the worker lacked something."""
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
    """Several processes with several threads each would be in each other's way, and none may ask the others for work."""
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
            # In order, for an answer may name what came with the one before; and nowhere else, for others lack the logs.
            where: dict[str, Any] = {"fifo_timeout": "0 ms", "workers": None if place is None else [place], "priority": -later}
            with warnings.catch_warnings(), there():
                warnings.filterwarnings("ignore", "Sending large graph")  # a log is sent where it is worked on
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
    """Inside, what fails because the scheduler is gone says so: dask has many errors for it."""
    try:
        yield
    except Exception as error:
        if client.status == "running":
            raise
        raise SchedulerError(
            "the scheduler was lost while it was needed", where=address, remedy="start it and its workers again, then this"
        ) from error


class _Answer:
    """What a worker of a cluster is going to answer.

    Args:
        future: Of dask.
        place: Address of the worker; None: any.
        alive: Gives the addresses of the workers that there are.
        there: Inside, errors tell whether the scheduler is gone.
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
        """Waits for it; :class:`_LostError` where the worker is gone.

        Raises:
            SchedulerError: The scheduler is gone, or all workers are and no others come.
        """
        from asyncio import TimeoutError as NoAnswerError

        patience, seen = 4.0 * _LOOK, monotonic()
        while True:
            done = self.done.wait(_LOOK)
            if done and self.future.status in ("error", "cancelled"):
                with self.there():
                    return self.future.result()  # raises the work's own error
            if done and self.future.status == "finished":
                with suppress(NoAnswerError), self.there():
                    return self.future.result(patience)
                patience *= 2.0  # a large answer that is on its way is not to be broken off again
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
    """Workers of a cluster in an order that lasts: the logs of one that is lost go to the next new one, those of others stay.

    Args:
        alive: Gives the addresses of the workers that there are.
    """

    def __init__(self, alive: Callable[[], Iterable[str]]) -> None:
        self.alive, self.held = alive, list[str | None]()

    def __call__(self) -> Sequence[str | None]:
        """Address of the worker of each place; None while nobody is there, and anybody does its work."""
        alive = set(self.alive())
        new = sorted(alive.difference(self.held))
        held = [place if place in alive else new.pop(0) if new else None for place in self.held]
        self.held = [*held, *new]
        return list(self.held) or [None]


def _work_there(asking: Mapping[str, str], *message: Any) -> Any:
    """:func:`.sending.work` on a cluster, whose workers may have come after the first were looked at."""
    _check_versions(asking, computing(), f"the worker on {gethostname()}")
    _keep_memory()
    return work(*message)


@lru_cache(maxsize=1)
def _keep_memory() -> None:
    """Dask has its workers, and what is started beside them, give memory back to the system at once: to get room for arrays of
    100 kB then takes as long as to fill them."""
    import ctypes

    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if os.name == "posix" else None  # of the GNU C library alone
    if mallopt is not None:
        mallopt(-3, 32 << 20)  # M_MMAP_THRESHOLD [bytes]
        mallopt(-1, 256 << 20)  # M_TRIM_THRESHOLD [bytes]


def _check_workers(client: Any, address: str) -> None:
    """Workers of other versions would compute something else."""
    try:
        found = client.run(computing)
    except Exception as error:  # it lacks the package, or has one that does not know the question
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
