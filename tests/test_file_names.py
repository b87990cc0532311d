"""Names of files that are no text: bytes that are not UTF-8, line breaks, controls. Logs are read; results stay valid UTF-8."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from commands import done, run
from conftest import arm_urdf
from logs import make_log

from urdf_ident import Robot, expand_logs
from urdf_ident.files.fileset import FileSet

pytestmark = [
    pytest.mark.usefixtures("unexamined"),
    pytest.mark.skipif(sys.platform != "linux", reason="names of files are bytes on Linux only"),
]
#: A byte that is no UTF-8, a line break, and what clears a terminal.
ODD = os.fsdecode(b"run\xff") + "\n[x]: y\x1b[2J\u2028x.csv"


@pytest.fixture(scope="module")
def cell(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cell")
    (folder / "arm.urdf").write_text(arm_urdf("zy"))
    (folder / "p.yaml").write_text("model: {friction: [viscous, coulomb]}\n")
    make_log(folder / "plain.csv", Robot.from_urdf(arm_urdf("zy")), seconds=8.0)
    assert run("identify", "arm.urdf", "plain.csv", "-c", "p.yaml", "--force", "-o", "plain", cwd=folder).returncode in (0, 1)
    shutil.copy(folder / "plain.csv", folder / ODD)
    return folder


COMMANDS = (
    "inspect LOG --robot arm.urdf",
    "inspect LOG --robot arm.urdf --json",
    "inspect LOG --robot arm.urdf --write-project written.yaml",
    "identify arm.urdf LOG -c p.yaml --force -o OUT",
    "validate plain/identification.json LOG --force",
    "report plain/identification.json LOG --force -o OUT/report.html",
    "plot plain/identification.json torque --log LOG --force -o OUT",
    "payload plain/identification.json LOG --force -o OUT/payload.json",
    "play arm.urdf LOG --html OUT/motion.html",
    "simulate arm.urdf LOG -o OUT/sim.csv",
    "export-motion LOG --robot arm.urdf --for ros2_control -o OUT",
)


@pytest.mark.parametrize("line", COMMANDS)
def test_every_command_reads_a_log_of_any_name_or_refuses_it_before_the_work(line: str, cell: Path, tmp_path: Path) -> None:
    def ran(log: str, out: str) -> subprocess.CompletedProcess[str]:
        words = [log if word == "LOG" else word.replace("OUT", str(tmp_path / out)) for word in line.split()]
        return run(*words, cwd=cell, report=True)

    plain, result = ran("plain.csv", "plain"), ran(ODD, "odd")
    assert result.returncode == plain.returncode, result.stderr
    assert len(result.stderr.splitlines()) == len(plain.stderr.splitlines())
    for text in (result.stdout, result.stderr):
        assert "\udcff" not in text
        assert "\x1b" not in text
        assert "\u2028" not in text
    for path in (path for path in tmp_path.rglob("*") if path.suffix in (".json", ".html", ".yaml", ".urdf", ".csv")):
        text = path.read_bytes().decode("utf-8")
        assert "\x1b" not in text
        if path.suffix == ".json":
            json.dumps(json.loads(text), ensure_ascii=False).encode("utf-8")


def test_a_process_of_its_own_prints_such_names(cell: Path) -> None:
    """With the streams of a real process, which encode strictly."""
    for more, codes in (([], (0, 1)), (["missing\udcff.csv"], (2,))):
        words = [sys.executable, "-m", "urdf_ident", "inspect", ODD, *more, "--robot", "arm.urdf"]
        result = subprocess.run(words, cwd=cell, capture_output=True, check=False)
        result.stdout.decode("utf-8")
        assert result.returncode in codes, result
        assert len(result.stderr.decode("utf-8").splitlines()) == len(more)


def test_the_name_is_for_messages_and_the_file_is_read(cell: Path) -> None:
    (source,) = expand_logs([str(cell / ODD)])
    assert source.name.isprintable()
    assert source.path.isprintable()
    assert Path(source.files[0][1]) == cell / ODD


def test_a_urdf_of_any_name(cell: Path, tmp_path: Path) -> None:
    """Its path is kept in the result, as an escape of JSON that leads back to the file."""
    name = os.fsdecode(b"arm\xff.urdf")
    shutil.copy(cell / "arm.urdf", cell / name)
    result = run("identify", name, "plain.csv", "-c", "p.yaml", "--force", "-o", tmp_path / "out", cwd=cell, report=True)
    assert result.returncode in (0, 1), result.stderr
    (tmp_path / "out" / "report.html").read_bytes().decode("utf-8")
    text = (tmp_path / "out" / "identification.json").read_bytes().decode("utf-8")
    assert name in json.dumps(json.loads(text), ensure_ascii=False)
    done("export", tmp_path / "out" / "identification.json", "--urdf", tmp_path / "e.urdf", cwd=cell)


def test_folders_of_any_name(tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"out\xff")
    with FileSet(folder, last="b.json") as files:
        files.path("b.json").write_text("{}")
    assert (folder / "b.json").read_text() == "{}"
