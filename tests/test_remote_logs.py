"""Logs at addresses, read through fsspec, against the same logs on a disk."""

import base64
import re
import threading
from collections.abc import Iterator
from contextlib import suppress
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
from urdf_ident.logs.read import read_readable, read_recording
from urdf_ident.logs.remote import logs_at, plain
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
        far = read_readable(expand_logs([(store / "*.csv").as_uri().replace("%2A", "*")]), ROBOT, skip=False)[0]
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
    invalidate = system.invalidate_cache

    def grows(self: object, *_: object) -> None:
        invalidate(self)
        self.pipe_file("/runs/run0.csv", b"more" * 10**6)  # type: ignore[attr-defined]

    monkeypatch.setattr(system, "invalidate_cache", grows)
    with pytest.raises(LogError, match="changed while it was read"):
        read_recording("memory://runs/run0.csv", ROBOT)


@pytest.fixture
def web(store: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A server that fails in the way that the first part of a path names; its address."""
    pytest.importorskip("aiohttp")

    class Server(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.do_GET()

        def do_GET(self) -> None:
            how, name = self.path.strip("/").split("/")
            name = name.split("?")[0]
            content, body = (store / name).read_bytes(), self.command == "GET"
            if how == "locked":
                login = "Basic " + base64.b64encode(b"anna:pass%word").decode()
                how = "200" if self.headers.get("Authorization") == login and "sig=t0psecret" in self.path else "403"
            if how == "endless":
                self.send_response(200)
                self.end_headers()
                with suppress(OSError):
                    while body:
                        self.wfile.write(content)
                return
            half = body and how in ("half", "cut")
            self.send_response(int(how) if how.isdigit() else 200)
            if not (body and how == "cut"):
                self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if body and how == "silent":
                sleep(1.0)
            elif body:
                self.wfile.write(content[: len(content) // 2] if half else content)

        def log_message(self, *_: object) -> None: ...

    monkeypatch.setattr(remote, "_SILENT", 0.3)
    with ThreadingHTTPServer(("127.0.0.1", 0), Server) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


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


SECRETS = ("anna", "pass%word", "pass%25word", "t0psecret", "fr4gment")


def secret_address(web: str, how: str = "locked") -> str:
    return f"{web.replace('://', '://anna:pass%25word@')}/{how}/run0.csv?sig=t0psecret#fr4gment"


def test_an_address_is_shown_without_its_secrets() -> None:
    assert plain("https://anna:pass@host:8080/a%20b/run.csv?sig=1#x") == "https://host:8080/a b/run.csv"
    assert plain("https://anna@x.org:p@ss@host/run.csv") == "https://host/run.csv"
    assert plain("https://anna:pa/ss@host/run.csv") == "https://host/run.csv"
    assert plain("s3://key:secret@bucket/run?.csv") == "s3://bucket/run?.csv"
    assert plain("az://box/run.csv?sv=1&sig=a/b") == "az://box/run.csv"
    assert plain("zip://run.csv::https://anna:pass@host/all.zip?sig=1") == "zip://run.csv::https://host/all.zip"
    assert plain("https://host:80/mail@home/run.csv") == "https://host:80/mail@home/run.csv"
    logs = [log_source(f"https://host/run.csv?version={k}", LogLayout()) for k in (1, 2)]
    assert {log.path for log in logs} == {"https://host/run.csv"}


def test_secrets_of_an_address_are_in_no_file_and_no_message(store: Path, web: str, tmp_path: Path) -> None:
    """In what identify, inspect and describe write and print, in results and in errors, also with --debug."""
    urdf, out = tmp_path / "arm.urdf", tmp_path / "out"
    urdf.write_text(arm_urdf("zyy"))
    address = secret_address(web)
    done = run("identify", str(urdf), address, "-o", str(out))
    assert (out / "identification.json").is_file(), done.stderr
    assert f'"{web}/locked/run0.csv"' in (out / "identification.json").read_text(encoding="utf-8")
    texts = [done.stdout, done.stderr]
    texts += [path.read_text(encoding="utf-8", errors="replace") for path in out.rglob("*") if path.is_file()]
    project = tmp_path / "project.yaml"
    for command in (
        ["inspect", address, address, "--robot", str(urdf), "--json", "--write-project", str(project)],
        ["report", str(out / "identification.json"), address],
    ):
        done = run(*command)
        texts += [done.stdout, done.stderr]
    page = (out / "report.html").read_text(encoding="utf-8")
    assert f"{web}/locked/run0.csv" in page
    texts += [project.read_text(encoding="utf-8"), page]
    for how in ("403", "404", "503", "silent", "half", "cut"):
        for debug in ([], ["--debug"]):
            done = run("inspect", secret_address(web, how), "--robot", str(urdf), *debug)
            assert done.returncode != 0
            texts += [done.stdout, done.stderr]
    for bad in (secret_address("http://127.0.0.1:1"), secret_address("http://no host"), secret_address("nostore://host")):
        done = run("inspect", bad, "--robot", str(urdf), "--debug")
        texts += [done.stdout, done.stderr]
    for secret in SECRETS:
        assert not [text for text in texts if secret in text]


def test_a_log_that_does_not_end_is_left_at_the_limit(web: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(remote.LARGEST, "log", 2**22)
    with pytest.raises(LogError, match=r"endless/run0.csv: the log is too large, expected at most 4 MB"):
        read_recording(f"{web}/endless/run0.csv", ROBOT)
    fsspec.filesystem("memory").pipe_file("/runs/large.csv", b"1" * 2**23)
    with pytest.raises(LogError, match="too large"):
        read_recording("memory://runs/large.csv", ROBOT)


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "fsspec", None)
    with pytest.raises(MissingExtraError, match="remote"):
        expand_logs(["s3://bucket/run.csv"])
