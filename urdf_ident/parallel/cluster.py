"""Workers of a dask cluster."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import lru_cache
from importlib import import_module
from socket import gethostname
from threading import Event
from time import monotonic
from typing import Any

from ..errors import MissingExtraError, SchedulerError
from ..provenance import computing
from .messages import leave, work
from .pool import LostError, WorkerPool

#: Timeout for connecting to a scheduler, and for the workers to say their versions (they import the package first) [s].
_PATIENCE, _FIRST = 10.0, 60.0
#: Shortest interval at which the workers of a cluster are checked while an answer is awaited [s], and maximum share of the time
#: that the checks take: with very many workers they are made less often.
_LOOK, _SHARE = 0.1, 0.05
#: A worker that has not reported to the scheduler for this time, or that has been paused for lack of memory, counts as lost.
#: Workers report every second or so, but not while one call of a library keeps the interpreter busy [s].
_SILENT = 30.0
#: Time that a cluster without workers has to start new ones [s].
_ALONE = 60.0
#: Configured intervals at which this worker measures itself [ms].
_INTERVALS: dict[str, float] = {}


@contextmanager
def cluster(address: str, ready: str) -> Iterator[WorkerPool]:
    """Context with the workers of a scheduler.

    Args:
        address: Address of the scheduler, ``tcp://host:port``.
        ready: Module that the workers import at once.

    Raises:
        SchedulerError: The scheduler does not answer, has no workers, or has one with another version of this package or its
            numerical dependencies.
        MissingExtraError: The extra ``cluster`` is not installed.
    """
    try:
        from distributed import Client
    except ImportError as error:
        raise MissingExtraError("--scheduler needs dask", remedy="pip install 'urdf-ident[cluster]'") from error
    _check_scheduler(address)
    client = Client(address, timeout=_PATIENCE, set_as_default=False, direct_to_workers=True)
    with client:
        _check_workers(client, address)
        _keep_memory()
        imports: list[Any] = []  # dask gives up tasks whose futures are released

        def joined(place: str) -> None:
            if ready:
                imports.append(client.submit(import_module, ready, workers=[place], pure=False))

        places = _Places(alive := _Alive(client, address), lambda: alive.paused, joined)
        places()

        def submit(place: str | None, turn: int, *message: Any) -> _Answer:
            # In order, because a message may refer to objects of the previous one; on this worker only: others lack the logs.
            where: dict[str, Any] = {"fifo_timeout": "0 ms", "priority": -turn}
            where["workers"] = alive.preferred() if place is None else [place]
            with warnings.catch_warnings(), _connected(client, address):
                warnings.filterwarnings("ignore", "Sending large graph")  # a log is sent to the worker that processes it
                return _Answer(client, client.submit(_work_there, computing(), *message, pure=False, **where), places.check)

        try:
            yield WorkerPool(submit, places)
        finally:
            with suppress(SchedulerError, OSError, TimeoutError), _connected(client, address):
                client.run(leave, leave(), workers=alive(), on_error="ignore", callback_timeout=_PATIENCE)


@contextmanager
def _connected(client: Any, address: str) -> Iterator[None]:
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
    """Pending answer of a worker; it is fetched as soon as it is finished, so that it outlives its worker.

    Args:
        client: The client.
        future: The dask future.
        check: Called regularly while the answer is awaited; raises an error if it will not come.
    """

    def __init__(self, client: Any, future: Any, check: Callable[[], None]) -> None:
        self.future, self.check = future, check
        self.done, self.found, self.error = Event(), None, None  # type: Event, Any, BaseException | None
        client.loop.add_callback(self._fetch, client)

    async def _fetch(self, client: Any) -> None:
        try:
            self.found = await client.gather(self.future, asynchronous=True)
        except BaseException as error:  # noqa: BLE001 - raised where the answer is awaited
            self.error = error
        self.future = None  # its worker may forget the answer
        self.done.set()

    def arrived(self) -> bool:
        """Whether the answer is here."""
        return self.done.is_set()

    def cancel(self) -> None:
        """Gives up the answer."""
        if self.future is not None:
            self.future.cancel()

    def result(self) -> Any:
        """Waits for the answer.

        Raises:
            LostError: A worker was lost, which may be that of this answer.
            SchedulerError: The scheduler was lost, or all workers were and no new ones started.
        """
        wait = _LOOK
        while not self.done.wait(wait):
            begin = monotonic()
            self.check()
            wait = max(_LOOK, (monotonic() - begin) / _SHARE)
        if self.error is not None:
            _explain(self.error)
            raise self.error
        return self.found


def _explain(error: BaseException) -> None:
    """Raises a clear error instead of one of dask's own.

    Raises:
        SchedulerError: The scheduler gave up a task.
    """
    kind = type(error).__name__
    if kind == "KilledWorker" or "Cancelled" in kind:
        raise SchedulerError(
            "the scheduler gave up a part of the work",
            got=f"{error}".splitlines()[0][:160] or kind,
            remedy="see the log of the scheduler; mostly workers had not enough memory (--memory-limit)",
        ) from error


class _Alive:
    """Workers of a scheduler that can work now.

    Args:
        client: The client.
        address: Address of the scheduler.
    """

    def __init__(self, client: Any, address: str) -> None:
        self.client, self.address = client, address
        self.heard: dict[str, tuple[Any, float]] = {}  # worker → its last report and when that was seen first
        self.found: list[str] = []  # the last result
        self.paused: list[str] = []  # workers left out of it because they are paused

    def __call__(self) -> list[str]:
        """Addresses of the workers, without those that are silent or paused."""
        with _connected(self.client, self.address):
            workers = self.client.sync(self.client.scheduler.identity, callback_timeout=_SILENT)["workers"]
        now, before = monotonic(), self.heard
        self.heard = {}
        for place, state in workers.items():
            report = "paused" if state.get("status") == "paused" else state.get("last_seen")
            last = before.get(place)
            self.heard[place] = last if last is not None and last[0] == report else (report, now)
        self.found = [place for place, (_, since) in self.heard.items() if now - since < _SILENT]
        self.paused = [place for place in workers if place not in self.found and self.heard[place][0] == "paused"]
        return list(self.found)

    def preferred(self) -> list[str] | None:
        """The workers for a task that any may do; None: all, new ones included, unless dask could choose a silent one."""
        return None if len(self.found) in (0, len(self.heard)) else self.found


class _Places:
    """Workers of a cluster in a stable order: a new worker takes the place of a lost one, the others keep their logs.

    Args:
        alive: Returns the addresses of the current workers.
        paused: Returns the addresses of those that have been paused for long.
        joined: Called with the address of every worker when it is first seen, which may be while an answer is awaited.
    """

    def __init__(
        self,
        alive: Callable[[], Iterable[str]],
        paused: Callable[[], Sequence[str]] = list,
        joined: Callable[[str], object] = str,
    ) -> None:
        self.alive, self.paused, self.joined, self.held = alive, paused, joined, list[str | None]()
        self.seen = set[str]()
        self.alone: float | None = None  # since when there have been no workers

    def __call__(self) -> Sequence[str | None]:
        """Address of the worker at each place; None for an empty place, whose work goes to any worker."""
        alive = self._seen_now()
        new = sorted(alive.difference(self.held))
        held = [place if place in alive else new.pop(0) if new else None for place in self.held]
        self.held = [*held, *new]
        return list(self.held) or [None]

    def _seen_now(self) -> set[str]:
        alive = set(self.alive())
        for place in sorted(alive - self.seen):
            self.joined(place)
        self.seen |= alive
        return alive

    def check(self) -> None:
        """Checks the workers while an answer is awaited.

        Raises:
            LostError: A worker has been lost since the places were last asked for.
            SchedulerError: There have been no workers for a minute, or all are paused.
        """
        alive = self._seen_now()
        paused = () if alive else self.paused()
        if paused and len(paused) >= len(self.held):  # none was lost: no others will be started in their places
            raise SchedulerError(
                "the workers have not enough memory",
                got=f"all of them ({len(paused)}) paused by dask for {_SILENT:.0f} s",
                remedy="start fewer workers with more memory (--memory-limit), or use fewer logs",
            )
        self.alone = None if alive else monotonic() if self.alone is None else self.alone
        if self.alone is not None and monotonic() - self.alone > _ALONE:
            raise SchedulerError(
                "the scheduler has no workers any more",
                got=f"none for {_ALONE:.0f} s, or only paused or silent ones",
                remedy="start others (with a nanny, which starts a lost one anew, and enough memory), then this again",
            )
        if any(place is not None and place not in alive for place in self.held):
            raise LostError


def _work_there(asking: Mapping[str, str], *message: Any) -> Any:
    """:func:`.messages.work` on a cluster; the version check is repeated because workers may have joined later."""
    _check_versions(asking, computing(), f"the worker on {gethostname()}")
    _keep_memory()
    with _rarely_measured():
        return work(*message)


@contextmanager
def _rarely_measured() -> Iterator[None]:
    """Makes the worker measure itself once a second instead of every 10 ms (the stack of the running task) and 20 ms (the delay
    of the event loop), which takes a tenth of the processor time of a task."""
    from distributed import get_worker

    found = get_worker().periodic_callbacks
    callbacks = {name: found[name] for name in ("profile", "tick") if name in found}  # the profiler may be disabled
    for name, callback in callbacks.items():
        _INTERVALS.setdefault(name, callback.callback_time)
        callback.callback_time = max(1000.0, callback.callback_time)
    try:
        yield
    finally:
        for name, callback in callbacks.items():
            callback.callback_time = _INTERVALS[name]


@lru_cache(maxsize=1)
def _keep_memory() -> None:
    """Lets malloc keep freed memory. Dask configures its workers to return it to the system at once, which makes allocating
    an array of 100 kB as slow as filling it."""
    import ctypes

    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if os.name == "posix" else None  # GNU C library only
    if mallopt is not None:
        mallopt(-3, 32 << 20)  # M_MMAP_THRESHOLD [bytes]
        mallopt(-1, 256 << 20)  # M_TRIM_THRESHOLD [bytes]


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
            found = beside.submit(asyncio.run, asyncio.wait_for(kind(), 1.5 * _PATIENCE)).result()
    except (OSError, ValueError, TypeError) as error:
        found, cause = " ".join(str(error).split())[:160] or "no answer", error
    except Exception as error:  # noqa: BLE001 - the answer of another kind of program may raise anything, such as MemoryError
        found, cause = "an answer of another program", error
    if not found.endswith("Scheduler"):
        raise SchedulerError(
            "the scheduler does not answer",
            where=address,
            got=found,
            remedy="start one with `dask scheduler`, and workers with `dask worker tcp://HOST:PORT`",
        ) from cause


def _check_workers(client: Any, address: str) -> None:
    """Refuses workers with other versions, which would compute other numbers."""
    try:
        found = client.run(computing, callback_timeout=_FIRST)
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
