"""Exit codes are true: what is written is whole, and the code and one line say what is missing (docs/exit_codes.md)."""

import json
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import assert_refused, done, run
from conftest import arm_urdf
from logs import make_log

from urdf_ident.cli import application
from urdf_ident.errors import ModelError, QualityError
from urdf_ident.model.robot import Robot

pytestmark = pytest.mark.usefixtures("unexamined")

FILES = {"arm_identified.urdf", "identification.json", "joints.yaml", "series.json"}
needs_full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")


@pytest.fixture(scope="module")
def cell(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An arm whose first joint has a name that is half a formula of matplotlib, and a log of it."""
    folder = tmp_path_factory.mktemp("cell")
    text = arm_urdf("zy").replace('"j1"', '"$x^{$"')
    (folder / "arm.urdf").write_text(text)
    robot = Robot.from_urdf(text)
    make_log(folder / "run.csv", robot, seconds=8.0)
    (folder / "p.yaml").write_text("model: {friction: [viscous, coulomb]}\n")
    return folder


def program(*arguments: object, cwd: Path, **streams: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "urdf_ident", *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, stderr=subprocess.PIPE, text=True, check=False, timeout=300, **streams)


IDENTIFY = ("identify", "arm.urdf", "run.csv", "-c", "p.yaml", "--force")


def test_a_name_that_is_half_a_formula_is_drawn(cell: Path, tmp_path: Path) -> None:
    result = run(*IDENTIFY, "-o", tmp_path / "out", cwd=cell, report=True)
    assert result.returncode in (0, 1), result.stderr
    assert "no report" not in result.stdout
    assert "$x^{$" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    done("plot", tmp_path / "out" / "identification.json", "-o", tmp_path / "pictures", cwd=cell)


def test_a_report_that_fails_leaves_results_verdict_and_one_line(
    cell: Path, tmp_path: Path, sound: subprocess.CompletedProcess[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("in the report")

    monkeypatch.setattr("urdf_ident.report.write_report", broken)
    result = run(*IDENTIFY, "-o", tmp_path / "out", cwd=cell, report=True)
    assert result.returncode == sound.returncode
    assert {path.name for path in (tmp_path / "out").iterdir()} == FILES
    lines = [line for line in result.stdout.splitlines() if line.startswith("no report: ")]
    assert len(lines) == 1
    assert "internal error, ZeroDivisionError: in the report" in lines[0]
    inside = run("report", tmp_path / "out" / "identification.json", cwd=cell)
    assert_refused(inside, 70, "ZeroDivisionError")
    assert "written before" not in inside.stderr


def test_a_failure_after_results_were_written_names_them(cell: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ModelError("no next motion")

    monkeypatch.setattr("urdf_ident.cli.identify.run_design", broken)
    result = run(*IDENTIFY, "-o", "out", "--next", "next.csv", cwd=cell)
    assert_refused(result, 2, "no next motion; written before: out/.*identification.json")


def test_a_refused_payload_leaves_the_identification_in_json(
    cell: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise QualityError("the loaded log is refused", where="loaded.csv")

    monkeypatch.setattr("urdf_ident.pipeline.payload.payload", refuse)
    make_log(cell / "loaded.csv", Robot.from_urdf(cell / "arm.urdf"), seed=1)
    result = run(*IDENTIFY, "--payload-logs", "loaded.csv", "--json", "-o", tmp_path / "out", cwd=cell)
    printed = json.loads(result.stdout)
    assert printed["refused"]["message"] == "the loaded log is refused"
    assert printed["verdict"]["level"] in ("good", "usable", "poor")
    assert {"inputs", "validation", "notes", "findings"} <= printed.keys()
    assert_refused(result, 1, "the loaded log is refused", "written before: .*identification.json")


@needs_full
def test_a_full_standard_output_leaves_all_files_whole(cell: Path, tmp_path: Path) -> None:
    with open("/dev/full", "w") as full:
        result = program(*IDENTIFY, "-o", tmp_path / "out", cwd=cell, stdout=full)
    assert result.returncode == 2
    assert result.stderr.startswith("error: the output cannot be written (No space left on device); written before: ")
    assert len(result.stderr.splitlines()) == 1
    assert {path.name for path in (tmp_path / "out").iterdir()} == FILES | {"report.html"}
    json.loads((tmp_path / "out" / "identification.json").read_text())


@pytest.fixture(scope="module")
def sound(cell: Path) -> subprocess.CompletedProcess[str]:
    """The same command with open streams."""
    return run(*IDENTIFY, "-o", cell / "sound", cwd=cell)


def test_a_closed_standard_output_is_no_error(cell: Path, tmp_path: Path, sound: subprocess.CompletedProcess[str]) -> None:
    out = tmp_path / "out"
    words = " ".join(f"'{word}'" for word in (sys.executable, "-m", "urdf_ident", *IDENTIFY, "--no-report", "-o", str(out)))
    result = subprocess.run(f"{words} >&- <&-", shell=True, cwd=cell, stderr=subprocess.PIPE, text=True, check=False)
    assert result.returncode == sound.returncode
    assert result.stderr == sound.stderr
    assert {path.name for path in out.iterdir()} == FILES
    for name in ("--help", "check"):
        assert subprocess.run(
            f"'{sys.executable}' -m urdf_ident {name} >&- 2>&-", shell=True, check=False, cwd=cell
        ).returncode in (0, 2)


def test_warnings_of_libraries_do_not_reach_the_terminal(cell: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither those of NumPy, nor those of other processes or loggers; `--debug` shows them."""

    def noisy(_: object) -> None:
        import logging

        warnings.warn("a warning", RuntimeWarning, stacklevel=1)
        np.log(np.zeros(1))
        logging.getLogger("matplotlib").warning("a message")
        child = "import warnings; warnings.warn('a warning of a child')"
        said = subprocess.run([sys.executable, "-c", child], capture_output=True, text=True, check=True)
        raise ModelError("the end", got=said.stderr or None)

    monkeypatch.setattr("urdf_ident.pipeline.check.check", noisy)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert_refused(run("check", "arm.urdf", cwd=cell), 2, "^error: the end$")
        assert not caught
        with pytest.raises(ModelError, match="warning of a child"):
            application.run(["check", str(cell / "arm.urdf")], debug=True)
        assert len(caught) == 2
