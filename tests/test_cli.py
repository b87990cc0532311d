"""The command line as its user meets it: the main job, and every way of using it wrong (issue of the main job)."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from commands import assert_refused, done, run

from urdf_ident import Robot, load, read_recording
from urdf_ident.files.documents import plain
from urdf_ident.report.page import content

pytestmark = pytest.mark.usefixtures("unexamined")


@pytest.fixture(scope="module")
def identified(work: Path) -> Path:
    done("identify", work / "arm.urdf", work / "log0.csv", "-c", work / "listed.yaml", "-o", work / "out")
    return work / "out"


def test_a_tilde_is_the_home_of_the_user(work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No shell expands it in a project file, in Python, or in the quoted globs that the help recommends."""
    monkeypatch.setenv("HOME", str(work))
    (tmp_path / "project.yaml").write_text("robot: {urdf: ~/arm.urdf}\n")
    done("inspect", "~/log0.cs*", "-c", tmp_path / "project.yaml")
    assert len(read_recording("~/log0.csv", Robot.from_urdf("~/arm.urdf"))) > 100


def test_validate_judges_a_log_in_another_unit(work: Path, identified: Path, tmp_path: Path) -> None:
    """The URDF is as wrong as the result there, but POOR is never exit code 0."""
    head, *rows = (work / "log2.csv").read_text().splitlines()
    efforts = [k for k, name in enumerate(head.split(",")) if name.startswith("tau_")]
    scaled = [
        ",".join(str(1000 * float(cell)) if k in efforts else cell for k, cell in enumerate(row.split(","))) for row in rows
    ]
    other = tmp_path / "millinewtonmetres.csv"
    other.write_text("\n".join([head, *scaled]) + "\n")
    result = run("validate", identified / "identification.json", other, "--no-report")
    assert result.returncode == 1
    assert result.stdout.startswith("POOR")


def test_inspect_names_the_joints_of_one_finding_together(work: Path, tmp_path: Path) -> None:
    lines = (work / "log0.csv").read_text().splitlines()
    efforts = [k for k, name in enumerate(lines[0].split(",")) if name.startswith("tau_")]
    rows = [[("nan" if k in efforts else x) for k, x in enumerate(line.split(","))] for line in lines[1:]]
    (tmp_path / "no.csv").write_text("\n".join([lines[0], *(",".join(row) for row in rows)]) + "\n")
    result = run("inspect", tmp_path / "no.csv", "--robot", work / "arm.urdf")
    assert result.returncode == 1
    assert result.stdout.count("100 % of the effort values") == 1
    assert "j1 (also j2, j3)" in result.stdout


# ---- bad input: exit 1 or 2, one line that names the remedy, nothing half-written -----------------------------


def test_a_log_given_twice_and_another_urdf_in_the_project_are_noted(work: Path, tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text("robot: {urdf: other.urdf}\n")
    result = run("inspect", *[work / "log0.csv"] * 2, "--robot", work / "arm.urdf", "-c", tmp_path / "p.yaml")
    assert "given more than once and used once" in result.stderr
    assert "not other.urdf of the project file" in result.stderr
    plain = run("inspect", work / "log0.csv", "--robot", work / "arm.urdf")
    assert plain.stdout == result.stdout
    assert plain.stderr == ""


def test_inspect_refuses_what_identify_refuses_in_the_project(work: Path, tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text("model: {friction: [viscous, coulom]}\n")
    result = run("inspect", work / "log0.csv", "--robot", work / "arm.urdf", "-c", tmp_path / "p.yaml")
    assert_refused(result, 2, "'coulom'; did you mean 'coulomb'")


def test_bad_logs_are_left_out_where_that_is_asked(work: Path, tmp_path: Path) -> None:
    """One that cannot be read, one that is refused by its content, one that is a copy, and a good one."""
    good, folder = (work / "log0.csv").read_text(), tmp_path / "logs"
    folder.mkdir()
    (folder / "copy.csv").write_text(good)
    (folder / "good.csv").write_text(good)
    (folder / "torn.csv").write_bytes(b"\x00\x01")
    table = np.loadtxt(work / "log0.csv", delimiter=",", skiprows=1)
    table[:, 1:4] = table[0, 1:4]
    np.savetxt(folder / "still.csv", table, delimiter=",", header=good.partition("\n")[0], comments="", fmt="%.9g")
    arguments = (work / "arm.urdf", folder, "-c", work / "listed.yaml", "--skip-bad-logs", "-o", tmp_path / "out")
    said = done("identify", *arguments)
    assert "left out: 3 of 4 logs (good, still, torn); the first: " in said
    data = json.loads((tmp_path / "out" / "identification.json").read_text())
    assert [log["name"] for log in data["inputs"]] == ["copy"]
    why = {log["name"]: log["why"] for log in data["left_out"]}
    assert set(why) == {"torn", "good", "still"}
    assert "given twice" in why["good"]
    assert "move" in why["still"]
    still = next(log for log in data["left_out"] if log["name"] == "still")
    assert "at-rest" in {finding["id"] for finding in still["findings"]}
    ident = load(tmp_path / "out" / "identification.json")
    assert plain(ident.left_out) == data["left_out"]
    assert [row["log"] for row in content(ident)["findings"] if row["severity"] == "left out"] == ["good", "still", "torn"]


@pytest.mark.parametrize(
    ("logs", "signals", "words"),
    [
        (["piece"], "decimate: 15", ["fewer rows than parameters", r"got \d+ rows, expected > 28", "record longer"]),
        (
            ["piece"],
            "cutoff: 0.4, decimate: 2",
            ["shorter than the filter", r"got 1.12 s of motion in one piece, expected 6.01 s", "piece:"],
        ),
        (
            ["log0", "again"],
            "decimate: 15",
            ["the same log is given twice", "content of (log0|again)", "errors look too small"],
        ),
    ],
)
def test_logs_that_no_estimator_can_use(work: Path, tmp_path: Path, logs: list[str], signals: str, words: list[str]) -> None:
    lines = (work / "log0.csv").read_text().splitlines()
    (tmp_path / "log0.csv").write_text("\n".join(lines))
    (tmp_path / "piece.csv").write_text("\n".join([lines[0], *lines[200:340]]) + "\n")
    (tmp_path / "again.csv").write_text("\n".join([lines[0], *(f"{line} " for line in lines[1:]), ""]))
    (tmp_path / "p.yaml").write_text(f"model: {{friction: [viscous, coulomb, offset]}}\nsignals: {{{signals}}}\n")
    files = [tmp_path / f"{name}.csv" for name in logs]
    result = run("identify", work / "arm.urdf", *files, "-c", tmp_path / "p.yaml", "-o", tmp_path / "out")
    assert_refused(result, 2, *words)
    assert not (tmp_path / "out").exists() or not list((tmp_path / "out").iterdir())


def test_joints_yaml_is_no_truth(identified: Path, work: Path, tmp_path: Path) -> None:
    order = run(
        "simulate", work / "arm.urdf", work / "log0.csv", "--truth", identified / "joints.yaml", "-o", tmp_path / "x.csv"
    )
    assert_refused(order, 2, "joints.yaml of a result", "give the identification.json beside it")


def test_what_is_replaced_is_said_when_it_is(work: Path, tmp_path: Path) -> None:
    (tmp_path / "identification.json").write_text("{}")
    bad = tmp_path / "bad.csv"
    bad.write_text((work / "log0.csv").read_text().partition("\n")[0])
    refused, finished = (
        run("identify", work / "arm.urdf", log, "-c", work / "listed.yaml", "-o", tmp_path) for log in (bad, work / "log0.csv")
    )
    assert refused.returncode == 2
    assert "is replaced" not in refused.stderr
    assert re.search(r"identification.json of 20\d\d-.* is replaced", finished.stderr)


INTERRUPTED_IMPORT = """
import sys

wanted, sys.argv[1:] = sys.argv[1], ["check", "none.urdf"]

class Interrupts:
    def find_spec(self, name, path=None, target=None):
        if name == wanted:
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupts())
from urdf_ident.cli import main
main()
"""


@pytest.mark.parametrize("module", ["urdf_ident.cli.check", "urdf_ident.files.read_write"])
def test_an_interrupt_during_the_imports_is_no_traceback(module: str) -> None:
    finished = subprocess.run([sys.executable, "-c", INTERRUPTED_IMPORT, module], capture_output=True, text=True, check=False)
    assert (finished.returncode, finished.stderr) == (130, "")


def test_inspect_says_that_a_cut_off_is_above_half_the_rate(work: Path, tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text("signals: {cutoff: 5000}\n")
    result = run("inspect", work / "log0.csv", "--robot", work / "arm.urdf", "-c", tmp_path / "p.yaml")
    assert result.returncode == 1
    assert "signals.cutoff is above what the log's rate can show, got 5000 Hz" in result.stdout
    assert "-> leave it out" in result.stdout


def test_export_says_a_note_on_several_formats_once(identified: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("write_urdf", "write_sdf"):
        monkeypatch.setattr(f"urdf_ident.result.write.{name}", lambda *_: ("friction is approximated",))
    result = run("export", identified / "identification.json", "--urdf", tmp_path / "a", "--sdf", tmp_path / "b")
    assert result.stdout.splitlines() == ["friction is approximated", f"wrote {tmp_path / 'a'}", f"wrote {tmp_path / 'b'}"]


def test_check_and_export_import_no_part_of_scipy(identified: Path, work: Path, tmp_path: Path) -> None:
    """It takes half a second of CPU, which only commands that filter signals or solve for parameters should cost."""
    result, names = (
        identified / "identification.json",
        ("--urdf", "x.urdf", "--mjcf", "x.xml", "--sdf", "x.sdf", "--sidecar", "x.yaml"),
    )
    for words in (["check", str(work / "arm.urdf")], ["export", str(result), *names]):
        code = (
            f"import sys; from urdf_ident.cli.application import run; code = run({words!r}); "
            "sys.exit(code or 3 * ('scipy' in sys.modules))"
        )
        finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path)
        assert finished.returncode == 0, (words[0], finished.stderr)
