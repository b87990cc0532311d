"""Plays a motion: writes its page to a file, or serves it to the browser of this computer."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from ..errors import ModelError, OutputError
from ..files.read_write import write_text
from ..logs.recording import Recording
from ..model.drive import Drive
from ..model.robot import Robot
from ..motion.collision.collisions import Collisions
from ..motion.trajectory import Trajectory
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
    if errors is not None and errors.model.robot.joints != robot.joints:
        got, expected = ", ".join(robot.joints), ", ".join(errors.model.robot.joints)
        raise ModelError("the result belongs to another robot", where=errors.model.robot.name, got=got, expected=expected)
    second = None if beside is None else as_motion(beside, robot, drive=drive)
    shown = as_motion(motion, robot, drive=drive)
    if errors is not None:
        shown = with_torque_error(shown, errors, motion if isinstance(motion, Recording) else None)
    page, notes = player_page(robot, shown, other, collisions, second)
    lines = [f"note: {note}" for note in notes]
    if html is not None:
        for line in lines:
            write(line)
        return write_text(html, page)
    with PageServer.at(port, page) as server:
        try:
            write(f"playing at {server.url} until Ctrl-C")
            if open_browser and not _open(server.url):
                write("no browser could be opened: open that address yourself, or write a file with --html FILE")
            for line in lines:
                write(line)
            server.serve_forever()
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


class PageServer(ThreadingHTTPServer):
    """Serves one page to pages and browsers of this computer alone: others name another host or origin.

    Attributes:
        url: Address of the page.
    """

    def __init__(self, port: int, page: str) -> None:
        super().__init__(("127.0.0.1", port), _Page)
        self.page, self.url = page.encode("utf-8"), f"http://127.0.0.1:{self.server_port}/play"

    @classmethod
    def at(cls, port: int | None, page: str) -> PageServer:
        """A server at a port, or at the first free one from 7000 if None.

        Raises:
            OutputError: The port is in use or not allowed.
        """
        for number in range(FIRST_PORT, FIRST_PORT + PORTS) if port is None else (port,):
            try:
                return cls(number, page)
            except (OSError, OverflowError) as error:
                if port is not None:
                    used = isinstance(error, OSError) and error.errno == errno.EADDRINUSE
                    why = "is in use" if used else f"cannot be opened ({getattr(error, 'strerror', None) or error})"
                    remedy = "choose another with --port, end the other viewer, or write a file with --html FILE"
                    raise OutputError(f"port {port} {why}", remedy=remedy) from error
        raise OutputError(
            f"ports {FIRST_PORT} to {FIRST_PORT + PORTS - 1} are all in use",
            remedy="end other viewers, name a free port with --port, or write a file with --html FILE",
        )

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that goes away is no error."""


class _Page(BaseHTTPRequestHandler):
    server: PageServer

    def do_GET(self) -> None:
        hosts = [f"{name}:{self.server.server_port}" for name in ("127.0.0.1", "localhost", "[::1]")]
        origins = (None, *(f"http://{host}" for host in hosts))
        if self.headers["Host"] not in hosts or self.headers["Origin"] not in origins:
            self.send_error(403)
        elif self.path != "/play":
            self.send_error(404)
        else:
            self.send_response(200)
            for name, value in (
                ("Content-Type", "text/html; charset=utf-8"),
                ("Content-Length", str(len(self.server.page))),
                ("Cache-Control", "no-store"),
            ):
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(self.server.page)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is said of requests."""
