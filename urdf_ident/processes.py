"""Processes on this machine that do what they are sent; large arrays go from memory to memory, past the pickle."""

from __future__ import annotations

import pickle
import signal
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from itertools import count
from multiprocessing import Process
from queue import PriorityQueue
from socket import MSG_WAITALL, socket, socketpair
from threading import Thread
from typing import Any

import numpy as np

from .errors import SchedulerError


class Helper:
    """A process that calls one function with what it is sent, one call after the other.

    Args:
        begin: Called there once, without arguments.
        function: Of a module, as ``begin``.
    """

    def __init__(self, begin: Callable[[], None], function: Callable[..., Any]) -> None:
        self._link, there = socketpair()
        self._process = Process(target=_serve, args=(there, self._link, begin, function), daemon=True)
        self._process.start()
        there.close()  # so that its end is noticed here
        self._asked: PriorityQueue[tuple[int, int, Future[Any], tuple[Any, ...]]] = PriorityQueue()
        self._order = count()
        self._thread = Thread(target=self._ask, daemon=True)
        self._thread.start()

    def submit(self, later: int, *arguments: Any) -> Future[Any]:
        """Has the function called.

        Args:
            later: Calls of a smaller number come before those of a larger one that still wait; of equal ones the first.
            arguments: Of the function.

        Returns:
            What it returns, or the error that it raises; :class:`SchedulerError` where the process was ended from outside.
        """
        answer: Future[Any] = Future()
        self._asked.put((later, next(self._order), answer, arguments))
        return answer

    def _ask(self) -> None:
        while (item := self._asked.get())[3]:
            answer = item[2]
            try:
                answer.set_result(self._answer(item[3]))
            except BaseException as error:  # noqa: BLE001 - raised where the answer is waited for
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
        """Ends the process; what it is at is lost."""
        self._process.kill()
        self._process.join()
        self.submit(-1)  # the last
        self._thread.join()
        self._link.close()


def _serve(link: socket, other: socket, begin: Callable[[], None], function: Callable[..., Any]) -> None:
    other.close()  # the asking process's end: where that is gone, so is this process
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the asking process ends this one
    begin()
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while True:
            arguments = _receive(link)
            _send(link, _answer(function, arguments))


def _answer(function: Callable[..., Any], arguments: Sequence[Any]) -> tuple[Any, Exception | None, str]:
    """What the function returns, or its error, and where that was raised."""
    try:
        return function(*arguments), None, ""
    except Exception as error:  # noqa: BLE001 - raised again in the asking process
        return None, error, traceback.format_exc()


def _send(link: socket, content: Any) -> None:
    buffers: list[pickle.PickleBuffer] = []
    head = pickle.dumps(content, 5, buffer_callback=buffers.append)
    raw = [buffer.raw() for buffer in buffers]
    sizes = np.array([len(head), *(part.nbytes for part in raw)])
    link.sendall(np.array([len(sizes)]).tobytes() + sizes.tobytes() + head)
    for part in raw:
        link.sendall(part)


def _receive(link: socket) -> Any:
    (parts,) = _filled(link, np.empty(1, int))
    head, *buffers = [_filled(link, np.empty(size, np.uint8)) for size in _filled(link, np.empty(parts, int))]
    return pickle.loads(head, buffers=buffers)


def _filled(link: socket, array: Any) -> Any:
    """An array filled with what comes.

    Raises:
        EOFError: The other end is gone.
    """
    left = memoryview(array.view(np.uint8))
    while left:
        came = link.recv_into(left, 0, MSG_WAITALL)
        if not came:
            raise EOFError
        left = left[came:]
    return array
