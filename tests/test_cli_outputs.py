"""No command destroys its input, and no failure is a traceback."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from conftest import arm_urdf

from urdf_ident.cli.application import run


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A robot and a motion of it that also is a log."""
    (tmp_path / "robot.urdf").write_text(arm_urdf("zy"))
    t = np.linspace(0.0, 2.0, 400)
    columns = {"t": t}
    for name in ("q", "v", "tau"):
        for j in ("j1", "j2"):
            columns[f"{name}_{j}"] = 0.3 * (np.sin(3 * t) if name != "v" else 3 * np.cos(3 * t))
    table = np.column_stack(list(columns.values()))
    np.savetxt(tmp_path / "log.csv", table, delimiter=",", header=",".join(columns), comments="")
    (tmp_path / "link").symlink_to("log.csv")
    os.link(tmp_path / "robot.urdf", tmp_path / "hard.urdf")
    (tmp_path / "zy_identified.urdf").write_text(arm_urdf("zy").replace('<robot name="arm"', '<robot name="zy"'))
    return tmp_path


@pytest.mark.parametrize(
    "line",
    [
        "inspect log.csv --robot robot.urdf --write-project log.csv",
        "inspect log.csv --robot robot.urdf --write-project link",
        "inspect log.csv --robot robot.urdf --write-project robot.urdf",
        "simulate robot.urdf log.csv -o robot.urdf",
        "simulate robot.urdf log.csv -o log.csv",
        "check robot.urdf --fix robot.urdf",
        "check robot.urdf --fix hard.urdf",
        "design robot.urdf -o robot.urdf",
        "design robot.urdf -o t.csv --plot robot.urdf",
        "play robot.urdf log.csv --html log.csv",
        "play robot.urdf log.csv --html hard.urdf",
        "identify zy_identified.urdf log.csv -o .",
        "identify robot.urdf log.csv -o out --next link",
        "check robot.urdf --fix /dev/null",
        "simulate robot.urdf log.csv -o /dev/full",
    ],
)
def test_outputs_never_replace_inputs(
    work: Path, line: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(work)
    before = {path: path.read_bytes() for path in work.iterdir() if path.is_file()}
    assert run(line.split()) == 2
    said = capsys.readouterr().err
    assert len(said.strip().splitlines()) == 1
    assert "is an input of this command" in said or "a device" in said
    assert {path: path.read_bytes() for path in work.iterdir() if path.is_file()} == before


def test_an_internal_error_is_one_line_and_its_trace_is_for_debug(
    work: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: object) -> None:
        raise ZeroDivisionError("two\nlines")

    monkeypatch.setattr("urdf_ident.pipeline.check.check", broken)
    assert run(["check", str(work / "robot.urdf")]) == 70
    said = capsys.readouterr().err
    assert said.startswith("error: internal error, ZeroDivisionError: two lines; please report it")
    assert "--debug" in said
    assert len(said.strip().splitlines()) == 1
    with pytest.raises(ZeroDivisionError):
        run(["check", str(work / "robot.urdf")], debug=True)


def test_memory_that_is_not_there_is_said(
    work: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def raises(error: Exception) -> Callable[[object], None]:
        def check(_: object) -> None:
            raise error

        return check

    library = ImportError("/usr/lib/x.so: failed to map segment from shared object")
    kinds = (lambda _: np.zeros(2**45), raises(library), raises(OSError(errno.ENOMEM, "Cannot allocate memory")))
    for check in kinds:
        monkeypatch.setattr("urdf_ident.pipeline.check.check", check)
        assert run(["check", str(work / "robot.urdf")]) == 2
        assert "not enough memory" in capsys.readouterr().err


def test_a_path_that_the_system_refuses_is_no_failure_of_the_program(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", str(work / "robot.urdf"), "-c", "a" * 300]) == 2
    assert "a file or folder cannot be used (File name too long)" in capsys.readouterr().err


def test_exit_codes_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "70 internal error" in said
