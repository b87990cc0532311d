"""Processes on this machine that do what they are sent; large arrays go from memory to memory, past the pickle."""

from __future__ import annotations

import pickle
import signal
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from multiprocessing import Pipe, Process
from multiprocessing.connection import Connection
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
        self._connection, there = Pipe()
        self._process = Process(target=_serve, args=(there, self._connection, begin, function), daemon=True)
        self._process.start()
        there.close()  # so that its end is noticed here
        self._thread = ThreadPoolExecutor(1)

    def submit(self, *arguments: Any) -> Future[Any]:
        """Has the function called.

        Args:
            arguments: Of the function.

        Returns:
            What it returns, or the error that it raises; :class:`SchedulerError` where the process was ended from outside.
        """
        return self._thread.submit(self._answer, arguments)

    def _answer(self, arguments: tuple[Any, ...]) -> Any:
        try:
            _send(self._connection, arguments)
            found, error, where = _receive(self._connection)
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
        self._thread.shutdown()
        self._connection.close()


def _serve(connection: Connection, other: Connection, begin: Callable[[], None], function: Callable[..., Any]) -> None:
    other.close()  # the asking process's end: where that is gone, so is this process
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the asking process ends this one
    begin()
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while True:
            arguments = _receive(connection)
            _send(connection, _answer(function, arguments))


def _answer(function: Callable[..., Any], arguments: Sequence[Any]) -> tuple[Any, Exception | None, str]:
    """What the function returns, or its error, and where that was raised."""
    try:
        return function(*arguments), None, ""
    except Exception as error:  # noqa: BLE001 - raised again in the asking process
        return None, error, traceback.format_exc()


def _send(connection: Connection, content: Any) -> None:
    buffers: list[pickle.PickleBuffer] = []
    head = pickle.dumps(content, 5, buffer_callback=buffers.append)
    raw = [buffer.raw() for buffer in buffers]
    connection.send((head, [part.nbytes for part in raw]))
    for part in raw:
        connection.send_bytes(part)


def _receive(connection: Connection) -> Any:
    head, sizes = connection.recv()
    buffers = [np.empty(size, np.uint8) for size in sizes]
    for buffer in buffers:
        connection.recv_bytes_into(buffer)
    return pickle.loads(head, buffers=buffers)
