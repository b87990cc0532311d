"""Files appear whole or not at all, errors name the path and the remedy; hashes and versions of what was used."""

import os
import subprocess
from pathlib import Path

import pytest

from urdf_ident.errors import MissingFileError, OutputError
from urdf_ident.files import sizes
from urdf_ident.files.fileset import FileSet
from urdf_ident.files.read_write import (
    check_output,
    check_writable,
    inputs_protected,
    note_input,
    read_bytes,
    read_text,
    sources,
    write_text,
)
from urdf_ident.provenance import sha256, versions


def test_text_survives_with_its_line_ends(tmp_path: Path) -> None:
    text = "a\r\nb·°\n\r\nno newline at the end"
    path = write_text(tmp_path / "deep" / "er" / "file.txt", text)
    assert path.read_bytes() == text.encode("utf-8")
    assert read_text(path) == text
    assert [item.name for item in path.parent.iterdir()] == ["file.txt"]


def test_missing_and_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError, match=r"nothing\.urdf: URDF not found; check the path"):
        read_text(tmp_path / "nothing.urdf", "URDF")
    with pytest.raises(MissingFileError, match="cannot be read"):
        read_bytes(tmp_path)
    with pytest.raises(FileNotFoundError):
        read_bytes(tmp_path / "no" / "folder")
    (tmp_path / "latin").write_bytes("°".encode("latin-1"))
    with pytest.raises(MissingFileError, match=r"not UTF-8 text \(byte 0\)"):
        read_text(tmp_path / "latin")


def test_a_failed_write_leaves_the_old_file_and_no_debris(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = write_text(tmp_path / "f.json", "old")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OutputError, match=r"f\.json: cannot be written \(No space left on device\); choose"):
        write_text(target, "new")
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_targets_that_cannot_be_files(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for bad in (tmp_path, tmp_path / "file" / "below.txt"):
        with pytest.raises(OutputError):
            write_text(bad, "x")
    assert (tmp_path / "file").read_text() == "x"


def test_mode_is_kept_or_follows_the_umask(tmp_path: Path) -> None:
    old = os.umask(0o027)
    try:
        fresh = write_text(tmp_path / "fresh", "x")
    finally:
        os.umask(old)
    assert fresh.stat().st_mode & 0o777 == 0o640
    fresh.chmod(0o600)
    assert write_text(fresh, "y").stat().st_mode & 0o777 == 0o600


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="the superuser may write anywhere")
def test_read_only_places_are_refused(tmp_path: Path) -> None:
    path = write_text(tmp_path / "f", "x")
    path.chmod(0o400)
    with pytest.raises(OutputError, match="read-only"):
        write_text(path, "y")
    (tmp_path / "ro").mkdir(mode=0o500)
    with pytest.raises(OutputError, match="choose another folder"):
        check_writable(tmp_path / "ro")


def test_output_folder_is_proved(tmp_path: Path) -> None:
    assert check_writable(tmp_path / "a" / "b") == tmp_path / "a" / "b"
    assert list(tmp_path.iterdir()) == []  # an empty folder is not left behind
    (tmp_path / "a").mkdir()
    assert check_writable(tmp_path / "a").is_dir()
    (tmp_path / "file").write_text("x")
    with pytest.raises(OutputError, match=r"file: output folder cannot be written \(a file has this name\); .* -o"):
        check_writable(tmp_path / "file")
    with pytest.raises(OutputError, match=r"too long.* -o"):
        check_writable(tmp_path / (300 * "x"))


def test_hash_is_the_one_of_sha256sum(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"\x00robot\xff")
    tool = subprocess.run(["sha256sum", tmp_path / "f"], capture_output=True, text=True, check=True).stdout.split()[0]
    assert sha256(read_bytes(tmp_path / "f")) == tool


def test_versions_name_what_decides_numbers() -> None:
    import numpy
    import scipy

    found = versions()
    assert found["numpy"] == numpy.__version__
    assert found["scipy"] == scipy.__version__
    assert {"python", "pin"} <= set(found)


def test_inputs_are_never_written(tmp_path: Path) -> None:
    source, other = tmp_path / "robot.urdf", tmp_path / "other"
    source.write_text("precious")
    (tmp_path / "soft").symlink_to(source)
    os.link(source, tmp_path / "hard")
    folder = tmp_path / "bag"
    folder.mkdir()
    (folder / "part.db3").write_text("precious")
    with inputs_protected():
        read_text(source, "URDF")
        note_input(folder, "log")
        assert (sources()[0].what, Path(sources()[0].path).name) == ("URDF", "robot.urdf")
        assert sources()[0].sha256 == sha256(b"precious")
        for bad in (source, tmp_path / "soft", tmp_path / "hard", tmp_path / "bag" / ".." / "robot.urdf", folder / "part.db3"):
            with pytest.raises(OutputError, match="is an input of this command"):
                check_output(bad)
            with pytest.raises(OutputError, match="is an input of this command"):
                write_text(bad, "x")
        with pytest.raises(OutputError, match="is an input"), FileSet(tmp_path, last="x") as out:
            out.path("robot.urdf")
        write_text(other, "fine")
    assert source.read_text() == (folder / "part.db3").read_text() == "precious"
    assert sources() == ()
    write_text(source, "outside of a command a program may do so")


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "dangling").symlink_to("later")
    for name, real in (("link", "real"), ("dangling", "later")):
        write_text(tmp_path / name, "new")
        assert (tmp_path / name).is_symlink()
        assert (tmp_path / real).read_text() == "new"


@pytest.mark.skipif(os.name != "posix", reason="devices are files on POSIX")
def test_devices_and_pipes_are_no_outputs_and_endless_ones_no_inputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "pipe")
    for bad, words in (("/dev/null", "a device"), (tmp_path / "pipe", "a pipe"), ("/dev/full", "a device")):
        with pytest.raises(OutputError, match=words):
            write_text(bad, "x")
    for bad in ("/dev/zero", "/dev/full"):
        with pytest.raises(MissingFileError, match="it is a device"):
            read_bytes(bad)
    monkeypatch.setattr(sizes, "LARGEST_FILE", 10)
    (tmp_path / "long").write_bytes(b"x" * 11)
    with pytest.raises(MissingFileError, match="too large"):
        read_bytes(tmp_path / "long")
    endless = subprocess.Popen(["sh", "-c", 'exec yes > "$1"', "sh", str(tmp_path / "pipe")], stderr=subprocess.DEVNULL)
    with pytest.raises(MissingFileError, match="too large"):
        read_bytes(tmp_path / "pipe")
    endless.wait()


def test_a_pipe_is_read_to_its_end_and_not_waited_for_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.setattr("urdf_ident.files.read_write.PATIENCE", 0.0)
    with pytest.raises(MissingFileError, match="a pipe that nothing writes to"):
        read_bytes(tmp_path / "pipe")
    reading, writing = os.pipe()  # as the shell's <(command)
    with os.fdopen(writing, "wb") as stream:
        stream.write(b"text")
    assert read_bytes(f"/dev/fd/{reading}") == b"text"
    os.close(reading)


def test_names_that_are_none(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    for bad in ("a\0b", tmp_path / "loop", tmp_path / ("n" * 300)):
        with pytest.raises(MissingFileError):
            read_bytes(bad)
        with pytest.raises(OutputError):
            write_text(bad, "x")
        with inputs_protected():
            note_input(bad, "log")  # whoever reads it says what is wrong
