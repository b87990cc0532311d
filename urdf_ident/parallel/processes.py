"""Worker processes on this machine; large arrays are sent out of band, not inside the pickle."""

from __future__ import annotations

import pickle
import signal
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from itertools import count
from multiprocessing import Pipe, Process
from multiprocessing.connection import Connection
from queue import PriorityQueue
from threading import Thread
from typing import Any

import numpy as np

from ..errors import SchedulerError


class WorkerProcess:
    """A process that calls one function with the arguments it receives, one call after the other.

    Args:
        begin: Module-level function, called once in the process, without arguments.
        function: Module-level function to call.
    """

    def __init__(self, begin: Callable[[], None], function: Callable[..., Any]) -> None:
        self._link, there = Pipe()
        self._process = Process(target=_serve, args=(there, self._link, begin, function), daemon=True)
        self._process.start()
        there.close()  # so that this process notices when the other one ends
        self._asked: PriorityQueue[tuple[int, int, Future[Any], tuple[Any, ...]]] = PriorityQueue()
        self._order = count()
        self._thread = Thread(target=self._ask, daemon=True)
        self._thread.start()

    def submit(self, turn: int, *arguments: Any) -> Future[Any]:
        """Queues a call of the function.

        Args:
            turn: Waiting calls with a smaller number run first, equal ones in order of submission.
            arguments: Arguments of the function.

        Returns:
            The result, or the error that it raises; :class:`SchedulerError` if the process was ended from outside.
        """
        answer: Future[Any] = Future()
        self._asked.put((turn, next(self._order), answer, arguments))
        return answer

    def _ask(self) -> None:
        while (item := self._asked.get())[3]:
            answer = item[2]
            try:
                answer.set_result(self._answer(item[3]))
            except BaseException as error:  # noqa: BLE001 - raised where the result is awaited
                answer.set_exception(error)

    def _answer(self, arguments: tuple[Any, ...]) -> Any:
        try:
            _send(self._link, arguments)
            found, error, where = _receive(self._link)
        except (EOFError, OSError) as gone:
            raise SchedulerError(
                "a process that worked on the logs was ended from outside",
                remedy="mostly there was not enough memory: use fewer with --jobs",
            ) from gone
        if error is not None:
            raise error from RuntimeError(f"in a process that worked on the logs:\n{where}")
        return found

    def end(self) -> None:
        """Ends the process; a running call is lost."""
        self._process.kill()
        self._process.join()
        self.submit(-1)  # without arguments: ends the thread
        self._thread.join()
        self._link.close()


def _serve(link: Connection, other: Connection, begin: Callable[[], None], function: Callable[..., Any]) -> None:
    other.close()  # the parent's end, so that this process ends when the parent does
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends this process
    _, failed, where = _answer(begin, ())
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while True:
            arguments = _receive(link)
            _send(link, (None, failed, where) if failed is not None else _answer(function, arguments))


def _answer(function: Callable[..., Any], arguments: Sequence[Any]) -> tuple[Any, Exception | None, str]:
    """Result of the function, or its error and traceback."""
    try:
        return function(*arguments), None, ""
    except Exception as error:  # noqa: BLE001 - raised again in the parent process
        return None, error, traceback.format_exc()


def _send(link: Connection, content: Any) -> None:
    buffers: list[pickle.PickleBuffer] = []
    head = pickle.dumps(content, 5, buffer_callback=buffers.append)
    raw = [buffer.raw() for buffer in buffers]
    link.send((head, [part.nbytes for part in raw]))
    for part in raw:
        link.send_bytes(part)


def _receive(link: Connection) -> Any:
    head, sizes = link.recv()
    buffers = [np.empty(size, np.uint8) for size in sizes]
    for buffer in buffers:
        link.recv_bytes_into(buffer)
    return pickle.loads(head, buffers=buffers)
