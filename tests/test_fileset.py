"""A set of files is all old or all new after a kill at any step, on a full disk, and with several writers."""

import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from urdf_ident.errors import MissingFileError, OutputError
from urdf_ident.files import read_write
from urdf_ident.files.fileset import FileSet, finish
from urdf_ident.files.read_write import read_text, write_text


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Callable[[str, int], None]], None]]:
    """Lets a test act before every step that changes the disk."""

    def install(act: Callable[[str, int], None]) -> None:
        count = [0]

        def step(name: str) -> None:
            count[0] += 1
            act(name, count[0])

        monkeypatch.setattr(read_write, "on_step", step)

    yield install
    monkeypatch.undo()


NAMES = ("robot.urdf", "sub/joints.yaml", "identification.json")


def write_set(folder: Path, word: str, size: int = 200_000) -> None:
    with FileSet(folder, last=NAMES[-1]) as out:
        for name in NAMES:
            write_text(out.path(name), f"{word} {name}\n" + word[0] * size)


def words_in(folder: Path) -> set[str]:
    """First word of every file of the set; its body must be whole."""
    found = set()
    for name in NAMES:
        path = folder / name
        if not path.exists():
            found.add("absent")
            continue
        head, _, body = path.read_text().partition("\n")
        word, named = head.split()
        assert named == name
        assert set(body) == {word[0]}
        assert len(body) == 200_000
        found.add(word)
    return found


def test_a_set_is_whole_after_a_kill_at_any_step(tmp_path: Path, steps: Callable[..., None]) -> None:
    names: list[str] = []
    steps(lambda name, _: names.append(name))
    write_set(tmp_path / "count", "x")
    assert {"stage", "open", "write", "rename", "complete", "move", "done"} == set(names)
    outcomes = set()
    for k in range(1, len(names) + 1):
        folder = tmp_path / f"kill{k}"
        write_set(folder, "old")
        pid = os.fork()
        if pid == 0:  # pragma: no cover
            steps(lambda _, at, k=k: os.kill(os.getpid(), signal.SIGKILL) if at == k else None)
            write_set(folder, "new")
            os._exit(0)
        assert os.WIFSIGNALED(os.waitpid(pid, 0)[1])
        finish(folder, NAMES[-1])
        found = words_in(folder)
        assert found in ({"old"}, {"new"}), (k, names[k - 1], found)
        outcomes |= found
        write_set(folder, "third")  # what the kill left is no obstacle, and is cleared away
        assert words_in(folder) == {"third"}
        assert {p.name for p in folder.iterdir()} == {"robot.urdf", "sub", "identification.json"}
    assert outcomes == {"old", "new"}


def test_a_disk_that_fills_at_any_write_leaves_the_old_set(tmp_path: Path, steps: Callable[..., None]) -> None:
    write_set(tmp_path, "old")
    names: list[str] = []
    steps(lambda name, _: names.append(name))
    write_set(tmp_path, "old")
    for k in [k for k, name in enumerate(names, 1) if name in ("stage", "open", "write", "complete")]:

        def full(_: str, at: int, k: int = k) -> None:
            if at == k:
                raise OSError(28, "No space left on device")

        steps(full)
        with pytest.raises(OutputError, match="No space left") as caught:
            write_set(tmp_path, "new")
        assert "unfinished" not in str(caught.value)
        assert words_in(tmp_path) == {"old"}
        assert {p.name for p in tmp_path.iterdir()} == {"robot.urdf", "sub", "identification.json"}


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only the superuser may mount a small disk")
def test_a_disk_of_64_kilobytes(tmp_path: Path) -> None:
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(tmp_path)], check=False).returncode:
        pytest.skip("this system mounts nothing")
    try:
        with FileSet(tmp_path, last=NAMES[-1]) as out:
            for name in NAMES:
                write_text(out.path(name), "old")
        with pytest.raises(OutputError, match="No space left"):
            write_set(tmp_path, "new")
        assert [(tmp_path / name).read_text() for name in NAMES] == ["old"] * 3
        with pytest.raises(OutputError, match="No space left"):
            write_text(tmp_path / "robot.urdf", "x" * 100_000)
        assert (tmp_path / "robot.urdf").read_text() == "old"
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


def test_writers_at_once_never_mix(tmp_path: Path) -> None:
    children = []
    for k in range(4):
        pid = os.fork()
        if pid == 0:  # pragma: no cover
            code = 1
            try:
                for turn in range(6):
                    write_set(tmp_path, f"{'abcd'[k]}{turn}")
                code = 0
            finally:
                os._exit(code)
        children.append(pid)
    time.sleep(random.Random(0).uniform(0.0, 0.05))
    os.kill(children[3], signal.SIGKILL)  # one of them dies somewhere on the way
    statuses = [os.waitpid(pid, 0)[1] for pid in children]
    assert statuses[:3] == [0, 0, 0]
    finish(tmp_path, NAMES[-1])
    found = words_in(tmp_path)
    assert len(found) == 1
    assert "absent" not in found


def test_an_error_inside_a_set_writes_nothing(tmp_path: Path) -> None:
    write_set(tmp_path, "old")

    def stopped_half_way() -> None:
        with FileSet(tmp_path, last=NAMES[-1]) as out:
            write_text(out.path("robot.urdf"), "new")
            read_text("absent")

    with pytest.raises(MissingFileError):
        stopped_half_way()
    assert words_in(tmp_path) == {"old"}
    assert not list(tmp_path.glob(".*"))
    new = tmp_path / "new" / "folder"
    with suppress(MissingFileError), FileSet(new, last=NAMES[-1]):
        read_text("absent")
    assert not new.parent.exists()
