"""Logs at addresses, read through fsspec, against the same logs on a disk."""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from time import sleep

import numpy as np
import pytest
from commands import run
from conftest import arm_urdf
from logs import make_log

from urdf_ident.errors import LogError, MissingExtraError, MissingFileError
from urdf_ident.logs import remote
from urdf_ident.logs.columns.layout import LogLayout
from urdf_ident.logs.read import read_recording, read_recordings
from urdf_ident.logs.remote import logs_at
from urdf_ident.logs.sources import expand_logs, log_source
from urdf_ident.model.robot import Robot
from urdf_ident.parallel import workers

fsspec = pytest.importorskip("fsspec")
glob_translate = pytest.importorskip("fsspec.utils").glob_translate
ROBOT = Robot.from_urdf(arm_urdf("zyy"))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Path]:
    """Three logs on a disk, and the same in a store in memory."""
    system = fsspec.filesystem("memory")
    for seed in range(3):
        path = make_log(tmp_path / f"run{seed}.csv", ROBOT, seed=seed, seconds=6.0)
        system.pipe_file(f"/runs/run{seed}.csv", path.read_bytes())
    system.pipe_file("/runs/notes.txt", b"not a log")
    yield tmp_path
    system.rm("/runs", recursive=True)


@pytest.mark.parametrize("argument", ["memory://runs", "memory://runs/*.csv"])
def test_a_folder_and_a_glob_at_an_address_stand_for_their_logs(store: Path, argument: str) -> None:
    sources = expand_logs([argument])
    assert [source.name for source in sources] == ["run0", "run1", "run2"]
    for source in sources:
        far, near = read_recording(source, ROBOT), read_recording(store / f"{source.name}.csv", ROBOT)
        assert far.sha256 == near.sha256
        np.testing.assert_array_equal(far.position, near.position)
        np.testing.assert_array_equal(far.effort, near.effort)


def test_processes_read_addresses_as_they_read_a_disk(store: Path) -> None:
    near = [read_recording(store / f"run{seed}.csv", ROBOT) for seed in range(3)]
    with workers(2):
        far = read_recordings(expand_logs([(store / "*.csv").as_uri().replace("%2A", "*")]), ROBOT)
    assert [log.sha256 for log in far] == [log.sha256 for log in near]
    assert all(log.path.startswith("file://") for log in far)


def test_a_signed_link_is_called_by_its_file() -> None:
    assert log_source("https://host/runs/run0.csv.gz?key=a.b/c", LogLayout()).name == "run0"


class Listing:
    """Stands for a web server, which encodes the names in its listings; counts what is downloaded to find links in it."""

    names = ("robot%3D1/a%20b.csv", "robot%3D1/c.csv", "robot%3D2/a%20b.csv", "robotics/a%20b.csv")

    def __init__(self) -> None:
        self.read: list[str] = []

    def glob(self, path: str, **_options: object) -> dict[str, dict[str, str]]:
        addresses = [f"https://host/{name}" for name in self.names]
        return {name: {"name": name, "type": "file"} for name in addresses if re.match(glob_translate(path), name)}

    def isdir(self, path: str) -> bool:
        self.read.append(path)
        return False

    def info(self, path: str) -> dict[str, str]:
        return {"name": path, "type": "file"}

    def unstrip_protocol(self, path: str) -> str:
        return path


def test_a_glob_on_the_web_matches_names_that_the_server_encodes(monkeypatch: pytest.MonkeyPatch) -> None:
    listing = Listing()
    monkeypatch.setattr(fsspec.core, "url_to_fs", lambda address, **_options: (listing, address))
    a, c, other, _ = (f"https://host/{name}" for name in Listing.names)
    assert logs_at("https://host/robot=*/a b.csv") == [a, other]
    assert logs_at("https://host/robot=[1]/*.csv") == [a, c]
    assert logs_at("https://host/**/c.csv") == [c]
    with pytest.raises(MissingFileError, match="no log is at"):
        logs_at("https://host/robot=3*/*.csv")
    assert [source.name for source in expand_logs(["https://host/robot=*/a b.csv"])] == ["robot=1/a b", "robot=2/a b"]
    assert logs_at("https://host/run.csv?key=a*b[c") == ["https://host/run.csv?key=a*b[c"]
    assert not listing.read  # whether a log is a folder is not asked: it would be downloaded once more


def test_a_command_takes_addresses(store: Path, tmp_path: Path) -> None:
    urdf = tmp_path / "arm.urdf"
    urdf.write_text(arm_urdf("zyy"))
    result = run("inspect", "memory://runs", "--robot", str(urdf))
    assert result.returncode == 0, result.stderr
    assert "run2" in result.stdout


def test_what_cannot_be_read_is_named_by_its_address(store: Path) -> None:
    for address in ("memory://runs/run7.csv", "memory://nowhere/*.csv", "nostore://runs/run0.csv"):
        with pytest.raises(MissingFileError, match=address.replace("*", r"\*")):
            expand_logs([address])
    fsspec.filesystem("memory").pipe_file("/runs/empty.csv", b"")
    with pytest.raises(LogError, match=r"memory://.*empty\.csv"):
        read_recording("memory://runs/empty.csv", ROBOT)
    with pytest.raises(LogError, match="copy it"):
        expand_logs(["memory://runs/run0.csv"], LogLayout(files={"position": "*_q.csv", "effort": "*_tau.csv"}))


def test_a_log_that_changes_while_it_is_copied_is_refused(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    system = type(fsspec.filesystem("memory"))
    get_file = system.get_file

    def grows(self: object, path: str, near: str, **options: object) -> None:
        get_file(self, path, near, **options)
        self.pipe_file(path, b"more")  # type: ignore[attr-defined]

    monkeypatch.setattr(system, "get_file", grows)
    with pytest.raises(LogError, match="changed while it was read"):
        read_recording("memory://runs/run0.csv", ROBOT)


@pytest.fixture
def web(store: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A server that fails in the way that the first part of a path names; its address."""
    pytest.importorskip("aiohttp")
    asked: Counter[str] = Counter()

    class Server(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.do_GET()

        def do_GET(self) -> None:
            how, name = self.path.strip("/").split("/")
            content, body = (store / name).read_bytes(), self.command == "GET"
            asked[self.path] += body
            half = body and (how in ("half", "cut") or (how == "once" and asked[self.path] == 1))
            self.send_response(int(how) if how.isdigit() else 200)
            if not (body and how == "cut"):
                self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if body and how == "silent":
                sleep(1.0)
            elif body:
                self.wfile.write(content[: len(content) // 2] if half else content)

        def log_message(self, *_: object) -> None: ...

    monkeypatch.setattr(remote, "_RETRY_AFTER", (0.0,))
    monkeypatch.setattr(remote, "_SILENT", 0.3)
    with ThreadingHTTPServer(("127.0.0.1", 0), Server) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_a_dropped_connection_is_tried_again_and_half_a_log_is_never_used(store: Path, web: str) -> None:
    whole = read_recording(store / "run0.csv", ROBOT)
    assert read_recording(f"{web}/200/run0.csv", ROBOT).sha256 == whole.sha256
    assert read_recording(f"{web}/once/run0.csv", ROBOT).sha256 == whole.sha256
    for how in ("half", "cut"):  # with and without the length in the answer itself
        with pytest.raises(MissingFileError, match=f"{how}/run0.csv: the log cannot be read .*connection"):
            read_recording(f"{web}/{how}/run0.csv", ROBOT)


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("403", "answers 403 Forbidden.*rights"),
        ("503", "answers 503 .*try later"),
        ("404", "log not found"),
        ("silent", "for 0 s"),
    ],
)
def test_what_a_server_refuses_is_said_as_it_is(web: str, how: str, said: str) -> None:
    with pytest.raises(MissingFileError, match=said):
        read_recording(f"{web}/{how}/run0.csv", ROBOT)


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "fsspec", None)
    with pytest.raises(MissingExtraError, match="remote"):
        expand_logs(["s3://bucket/run.csv"])
