"""Plays a motion: writes a file, or serves it to a browser.

Meshcat's server answers this computer alone, with a page that may connect to it.
"""

from __future__ import annotations

import errno
import os
import re
import socket
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

from numpy.typing import ArrayLike

from ..errors import OutputError, UrdfIdentError
from ..files.read_write import read_text, write_text
from ..logs.recording import Recording
from ..model.drive import Drive
from ..model.robot import Robot
from ..motion.collision.collisions import Collisions
from ..motion.trajectory import Trajectory
from ..quoting import NO_CONNECTION, page_policy
from ..result.identification import Identification
from .motion import Motion, as_motion, with_torque_error
from .page import player_page

#: Ports that are tried for the server when none is requested.
FIRST_PORT, PORTS = 7000, 20


def play(
    robot: Robot,
    motion: Motion | Trajectory | Recording | tuple[ArrayLike, ArrayLike],
    *,
    other: Robot | None = None,
    beside: Motion | Trajectory | Recording | None = None,
    drive: Drive | None = None,
    collisions: Collisions | None = None,
    errors: Identification | None = None,
    html: str | Path | None = None,
    open_browser: bool = True,
    port: int | None = None,
    say: Callable[[str], None] | None = None,
) -> Path | None:
    """Plays a motion in a loop until Ctrl-C, or writes it as one offline page.

    Args:
        robot: The robot.
        motion: A trajectory, a log, or ``(time, position)`` of shapes (N,) [s] and (N, n) [rad or m].
        other: A second robot with the same joint names, drawn translucent over the first; its inertias are shown with
            the first's if both have the same kinematics.
        beside: Another motion of the same joints, executed at the same time by the second robot, or by a translucent copy.
        drive: The gears, for a log of motor positions.
        collisions: Its world is drawn, and a line with the smallest distance between any two objects.
        errors: A result, for a log with efforts: links are coloured by the error of its torque.
        html: Write this file instead of starting a server.
        open_browser: Open a browser window if there is a display.
        port: Port of the local server; the first free one from 7000 if None.
        say: Called with each line for the user.

    Returns:
        The file written, or None after Ctrl-C.

    Raises:
        LogError: The motion does not fit the robot, or is no log with efforts where errors are to be shown.
        ModelError: The second robot lacks a joint of the first, or the result is of another robot.
        OutputError: The file cannot be written, or the port is in use.
    """
    write = say or (lambda _line: None)
    second = None if beside is None else as_motion(beside, robot, drive=drive)
    shown = as_motion(motion, robot, drive=drive)
    if errors is not None:
        shown = with_torque_error(shown, robot, errors, motion if isinstance(motion, Recording) else None)
    page, notes = player_page(robot, shown, other, collisions, second)
    lines = [f"note: {note}" for note in notes]
    if html is not None:
        for line in lines:
            write(line)
        return write_text(html, page)
    with Server(page, port) as server:
        try:
            write(f"playing at {server.url} (Meshcat clients: {server.zmq_url}); Ctrl-C ends")
            if open_browser and not _open(server.url):
                write("no browser could be opened: open that address yourself, or write a file with --html FILE")
            for line in lines:
                write(line)
            server.wait()
        except KeyboardInterrupt:
            write("")
    return None


def _open(url: str) -> bool:
    """Opens a browser window; returns False without a display or browser."""
    import webbrowser

    if sys.platform.startswith("linux") and not (
        os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY") or os.environ.get("BROWSER")
    ):
        return False
    try:
        return webbrowser.open(url, new=2)
    except (webbrowser.Error, OSError):
        return False


class Server:
    """Meshcat's server with the page of one motion at ``/play``; a context manager.

    Args:
        page: The HTML, with the policy of a page that connects to nothing; the one that is served may connect to this server.
        port: Its port; the first free one from 7000 if None.

    Attributes:
        url: Address of the page.
        zmq_url: Address with which ``meshcat.Visualizer(zmq_url)`` can add to the scene.

    Raises:
        OutputError: The port is in use or not allowed, or the page has no such policy.
    """

    def __init__(self, page: str, port: int | None = None) -> None:
        self._port = _free_port(port)
        self.url = f"http://127.0.0.1:{self._port}/play"
        self.zmq_url = ""
        if NO_CONNECTION not in page:
            raise OutputError("the page has no rule that keeps it from connecting elsewhere", expected=NO_CONNECTION)
        self._page = page.replace(NO_CONNECTION, f"connect-src {' '.join(_sockets(self._port))}", 1)
        self._loop: Any = None
        self._error: Exception | None = None
        self._ready, self._stopped = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="meshcat", daemon=True)
        self._thread.start()
        self._ready.wait()
        if self._error is not None:
            raise self._error

    def wait(self, seconds: float | None = None) -> bool:
        """Waits until the server is closed, or for some seconds [s]."""
        if seconds is not None:
            return self._stopped.wait(seconds)
        while not self._stopped.wait(0.5):  # [s]; short waits, so that Ctrl-C works on every system
            pass
        return True

    def close(self) -> None:
        """Stops the server and frees the port."""
        if self._loop is not None:
            self._loop.add_callback(self._loop.stop)
        self._thread.join(timeout=5.0)

    def __enter__(self) -> Server:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _run(self) -> None:
        import asyncio

        asyncio.set_event_loop(asyncio.new_event_loop())
        try:
            bridge, listener = _bridge(self._page, self._port)
        except Exception as error:  # noqa: BLE001 - raised where the server is asked for, not in this thread
            self._error = error
            if isinstance(error, OSError) and not isinstance(error, UrdfIdentError):
                self._error = _port_error(self._port, error)
                self._error.__cause__ = error
            self._stopped.set()
            self._ready.set()
            return
        self._loop = bridge.ioloop
        self.zmq_url = bridge.zmq_socket.last_endpoint.decode().rstrip("\0")
        self._ready.set()
        bridge.run()
        listener.stop()
        bridge.zmq_stream.close()
        for websocket in list(bridge.websocket_pool):
            websocket.close()
        bridge.ioloop.close(all_fds=True)
        self._stopped.set()


def _bridge(page: str, port: int) -> tuple[Any, Any]:
    """Meshcat's server, which also serves the page, and its listener; only this computer's own pages are answered."""
    import tornado.web
    from meshcat.servers.zmqserver import VIEWER_ROOT, StaticFileHandlerNoCache, ZMQWebSocketBridge

    hosts = [f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]")]
    scripts = re.findall(r"<script>(.*?)</script>", read_text(Path(VIEWER_ROOT) / "index.html", "viewer of Meshcat"), re.S)

    class Page(tornado.web.RequestHandler):
        def get(self) -> None:
            self.set_header("Cache-Control", "no-store")
            self.finish(page)

    class MeshcatPage(StaticFileHandlerNoCache):  # type: ignore[misc]
        def set_extra_headers(self, path: str) -> None:
            super().set_extra_headers(path)
            self.set_header("Content-Security-Policy", page_policy(scripts, [*_sockets(port), "data:"], ["'self'"]))

    class Application(tornado.web.Application):
        listener: Any = None

        def listen(self, *arguments: Any, **options: Any) -> Any:
            self.listener = super().listen(*arguments, **{**options, "address": "127.0.0.1"})  # local only
            return self.listener

        def find_handler(self, request: Any, **options: Any) -> Any:
            """Refuses pages of other sites: they name another origin, or another host that resolves to this computer."""
            origin = request.headers.get("Origin")
            if request.headers.get("Host") in hosts and origin in (None, *(f"http://{host}" for host in hosts)):
                return super().find_handler(request, **options)
            return self.get_handler_delegate(request, tornado.web.ErrorHandler, {"status_code": 403})

    class Bridge(ZMQWebSocketBridge):  # type: ignore[misc]
        def make_app(self) -> Application:
            _, sockets_of_meshcat = super().make_app().wildcard_router.rules
            return Application(
                [
                    (r"/play", Page),
                    (r"/static/(.*)", MeshcatPage, {"path": VIEWER_ROOT, "default_filename": "index.html"}),
                    sockets_of_meshcat,
                ]
            )

    bridge = Bridge(zmq_url="tcp://127.0.0.1:*", port=port)
    return bridge, bridge.app.listener


def _sockets(port: int) -> list[str]:
    """Addresses of the server's sockets for a policy, which cannot name an address of version 6."""
    return [f"ws://{name}:{port}" for name in ("127.0.0.1", "localhost")]


def _free_port(wanted: int | None) -> int:
    """The requested port if it is free, or the first free one if none is requested."""
    for port in range(FIRST_PORT, FIRST_PORT + PORTS) if wanted is None else (wanted,):
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            if os.name == "posix":
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as in the server: ignore lingering sockets
            try:
                probe.bind(("127.0.0.1", port))
                probe.listen(1)
                return port
            except (OSError, OverflowError) as error:
                if wanted is not None:
                    raise _port_error(port, error) from error
    raise OutputError(
        f"ports {FIRST_PORT} to {FIRST_PORT + PORTS - 1} are all in use",
        remedy="end other viewers, name a free port with --port, or write a file with --html FILE",
    )


def _port_error(port: int, error: BaseException) -> OutputError:
    used = isinstance(error, OSError) and error.errno == errno.EADDRINUSE
    what = f"port {port} is in use" if used else f"port {port} cannot be opened ({getattr(error, 'strerror', None) or error})"
    return OutputError(what, remedy="choose another with --port, end the other viewer, or write a file with --html FILE")
