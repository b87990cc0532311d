"""Files appear whole or not at all, errors name the path and the remedy; hashes and versions of what was used."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from urdf_ident.errors import MissingFileError, OutputError
from urdf_ident.files import check_writable, read_bytes, read_text, write_text
from urdf_ident.provenance import sha256, versions


def test_text_survives_with_its_line_ends(tmp_path: Path) -> None:
    text = "a\r\nb·°\n\r\nno newline at the end"
    path = write_text(tmp_path / "deep" / "er" / "file.txt", text)
    assert path.read_bytes() == text.encode("utf-8")
    assert read_text(path) == text
    assert [item.name for item in path.parent.iterdir()] == ["file.txt"]


def test_a_byte_order_mark_is_dropped(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"\xef\xbb\xbfx")
    assert read_text(tmp_path / "f") == "x"


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


def test_text_that_cannot_be_encoded_leaves_no_debris(tmp_path: Path) -> None:
    with pytest.raises(ValueError):  # a lone surrogate is no text
        write_text(tmp_path / "f", "\ud800")
    assert list(tmp_path.iterdir()) == []


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
    assert check_writable(tmp_path / "a" / "b").is_dir()
    assert list((tmp_path / "a" / "b").iterdir()) == []
    (tmp_path / "file").write_text("x")
    with pytest.raises(OutputError, match="-o"):
        check_writable(tmp_path / "file")


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
