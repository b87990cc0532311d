"""Wrong use and bad input: one line that says what to do, the documented exit code, nothing half-written."""

import errno
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from .experiment import command, done, refused, urdf

COMMANDS = (
    *("demo", "check", "inspect", "identify", "validate", "report", "plot", "export"),
    *("design", "simulate", "play", "export-motion", "payload", "compare", "fleet"),
)
#: Options that scripts rely on.
OPTIONS = {
    "demo": ("-o", "--seed"),
    "check": ("-c", "--json", "--fix"),
    "inspect": ("--robot", "-c", "--json", "--write-project"),
    "identify": (
        *("-c", "--validate", "--force", "--jobs", "--scheduler", "-o", "--json", "--no-report", "--payload-logs"),
        *("--skip-bad-logs", "--sweeps", "--next", "-v"),
    ),
    "validate": ("--force", "--json", "--no-report"),
    "report": ("-o", "--force"),
    "plot": ("-o", "--format", "--log"),
    "export": ("--urdf", "--mjcf", "--sdf", "--sidecar", "--force"),
    "design": ("-c", "--after", "-o", "--plot"),
    "simulate": ("-c", "--truth", "-o", "--seed"),
    "play": ("-c", "--urdf", "--html", "--errors", "--beside"),
    "export-motion": ("--robot", "--for", "-o", "-c"),
    "payload": ("--link", "-o", "--static", "--json"),
    "compare": ("--plot", "--json"),
    "fleet": ("-c", "-o", "--jobs", "--json", "--no-report"),
}


def test_the_help_lists_all_commands_in_the_order_of_work() -> None:
    lines = [line.split()[0] for line in done("--help").splitlines() if line.startswith("  ") and line.split()]
    assert [name for name in lines if name in COMMANDS] == list(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_options_of_the_contract_are_in_the_help(name: str) -> None:
    text = done(name, "--help")
    assert "Example" in text
    for option in OPTIONS[name]:
        assert option in text, option


def test_the_version_is_that_of_the_package() -> None:
    import urdf_ident as ui

    assert done("--version").split() == ["urdf-ident", ui.__version__]


@pytest.fixture
def nowhere(tmp_path: Path) -> Iterator[Path]:
    """An output folder that must stay empty."""
    folder = tmp_path / "out"
    yield folder
    assert not folder.exists() or not list(folder.iterdir()), "something was half-written"


@pytest.mark.parametrize(
    ("arguments", "expressions"),
    [
        (("no-such-command",), ("no-such-command", "--help")),
        (("identify", "arm.urdf"), ("LOG",)),
        (("identify", "arm.urdf", "run1.csv", "--cutoff", "5"), ("--cutoff", r"signals\.cutoff")),
        (("identify", "arm.urdf", "run1.csv", "--jobs", "0"), ("--jobs",)),
        (("identify", "arm.urdf", "absent.csv"), ("absent.csv",)),
        (("identify", "arm.urdf", "-"), ("-: log not found; standard input is not read",)),
        (("validate", "run1.csv", "run2.csv"), ("this is no result, which is JSON, got 't,q",)),
        (("identify", "arm.udf", "run1.csv"), (r"did you mean 'arm\.urdf'",)),
        (("identify", "run1.csv", "arm.urdf"), ("run1.csv", "not a URDF, got 't,q", "first argument")),
        (("identify", "arm.urdf", "run1.csv", "-c", "absent.yaml"), ("absent.yaml",)),
        (("identify", "arm.urdf", "run1.csv", "-c", "run1.csv"), ("project file",)),
        (("identify", "arm.urdf", "run1.csv", "--validate", "run1.csv"), ("run1", "training")),
        (("identify", "arm.urdf", "run1.csv", "--payload-link", "tool"), ("--payload-logs",)),
        (("identify", "arm.urdf", "run1.csv", "--payload-logs", "run1.csv"), ("run1", "training")),
        (("identify", "arm.urdf", "run1.csv", "--payload-logs", "loaded.csv", "--payload-link", "base"), ("base",)),
    ],
    ids=lambda value: " ".join(value)[:60],
)
def test_identify_is_refused(cell: Path, nowhere: Path, arguments: tuple[str, ...], expressions: tuple[str, ...]) -> None:
    given = (*arguments, "-o", nowhere) if arguments[0] == "identify" else arguments
    refused(*given, matching=expressions, cwd=cell)


def test_a_scheduler_that_does_not_answer_is_one_line(cell: Path, nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("urdf_ident.parallel._PATIENCE", 0.5)
    arguments = ("identify", "arm.urdf", "run1.csv", "--scheduler", "tcp://127.0.0.1:9", "-o", nowhere)
    refused(*arguments, matching=("127.0.0.1:9", "answer"), cwd=cell)


@pytest.mark.parametrize(
    ("text", "expressions"),
    [
        ("signals: {cutof: 8}", ("signals.cutof", "cutoff")),
        ("signals: {cutoff: -1}", ("signals.cutoff",)),
        ("signals: [1, 2]", ("signals",)),
        ("model: {friction: [viscous, coulom]}", ("coulom", "coulomb")),
        ("robot: {lock: {j9: 0}}", ("j9",)),
        ("log: {units: {effort: parsec}}", ("parsec",)),
        ("drive: {gain: [1, 2]}", ("gain", "3")),
        ("a: [", ("project.yaml",)),
        ("excitation: {criterion: F}", ("excitation.criterion", "F", "frobenius")),
        ("consistency: {solver: NONE}", ("consistency.solver", "not installed", "NONE", "CLARABEL", "SCS")),
        ("{estimation: {essential: {rule: none}}, consistency: {method: essential}}", ("contradict", "got consistency.method")),
        (
            "{estimation: {essential: {rule: relative_std, limit: 1.0e-6}}, consistency: {method: essential}}",
            ("no parameter is essential", "essential.limit", "method: lmi"),
        ),
    ],
)
def test_a_wrong_project_file_names_the_key(cell: Path, nowhere: Path, text: str, expressions: tuple[str, ...]) -> None:
    (nowhere.parent / "project.yaml").write_text(text)
    arguments = ("identify", "arm.urdf", "run1.csv", "-c", nowhere.parent / "project.yaml", "-o", nowhere)
    refused(*arguments, matching=expressions, cwd=cell)


@pytest.mark.parametrize("name", ["identify", "inspect"])
def test_a_setting_that_has_no_effect_names_the_setting_that_it_needs(cell: Path, nowhere: Path, name: str) -> None:
    header, rows = (cell / "run1.csv").read_text().partition("\n")[0], np.loadtxt(cell / "run1.csv", delimiter=",", skiprows=1)
    names = f"{header},qm_j1,qm_j2,qm_j3"
    log, project = nowhere.parent / "both.csv", nowhere.parent / "project.yaml"
    np.savetxt(log, np.hstack([rows, 100 * rows[:, 1:4]]), delimiter=",", header=names, comments="", fmt="%.9g")
    project.write_text("drive: {reduction: [100, 100, 100], joint_offset: [0, 0.1, 0]}")
    more = ("arm.urdf", log, "-o", nowhere) if name == "identify" else (log, "--robot", "arm.urdf")
    expressions = ("drive.joint_offset has no effect", "both.csv", "model: {elastic: true}", "log: {side: {position: motor}}")
    refused(name, *more, "-c", project, matching=expressions, cwd=cell)
    assert not nowhere.exists()


Change = Callable[[str], str | bytes]


def _without(column: str) -> Change:
    def change(text: str) -> str:
        rows = [row.split(",") for row in text.splitlines()]
        at = rows[0].index(column)
        return "\n".join(",".join(cell for k, cell in enumerate(row) if k != at) for row in rows)

    return change


def _cut(text: str) -> str:
    return "\n".join(row[: len(row) // 2] if k % 5 == 1 else row for k, row in enumerate(text.splitlines()))


#: Damage of a log → change of its text, exit code, expressions in the line.
DAMAGED: dict[str, tuple[Change, int, tuple[str, ...]]] = {
    "empty": (lambda text: "", 2, ("empty",)),
    "header alone": (lambda text: text.splitlines()[0], 2, ("log.csv|log:",)),
    "a joint too few": (_without("q_j2"), 2, ("j2",)),
    "motor encoder of one joint": (
        lambda text: "\n".join(f"{row},{0.01 * k if k else 'qm_j2'}" for k, row in enumerate(text.splitlines())),
        2,
        ("qm_j1", "1 of 3 joints", r"remove all qm_\*"),
    ),
    "a joint too many": (lambda text: text.replace("tau_j3", "tau_j9", 1), 2, ("j9|j3",)),
    "binary": (lambda text: b"\x00\x01\x02" * 1000, 2, ("log",)),
    "pickle": (lambda text: b"\x80\x05" + b"\x07\x00" * 500, 2, ("pickle",)),
    "Excel": (lambda text: b"\xd0\xcf\x11\xe0" + b"\x07\x00" * 500, 2, ("Excel",)),
    "packed": (lambda text: b"Rar!\x1a" + b"\x07\x00" * 500, 2, ("unpack",)),
    "every fifth row cut": (_cut, 2, ("log",)),
    "text": (lambda text: "\n".join("no numbers, at all" for _ in range(50)), 2, ("log",)),
    "at rest": (lambda text: "\n".join([text.splitlines()[0], *[text.splitlines()[1]] * 2000]), 1, ("log",)),
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_a_damaged_log_is_one_line(cell: Path, nowhere: Path, damage: str) -> None:
    change, code, expressions = DAMAGED[damage]
    content, log = change((cell / "run1.csv").read_text()), nowhere.parent / "log.csv"
    log.write_bytes(content) if isinstance(content, bytes) else log.write_text(content)
    outcome = command("identify", cell / "arm.urdf", log, "-o", nowhere)
    assert outcome.code in (code, 1, 2)
    refused("identify", cell / "arm.urdf", log, "-o", nowhere, code=outcome.code, matching=expressions)


@pytest.mark.parametrize("row", ["1e300", "", "abc"])
def test_one_corrupt_row_is_left_out(cell: Path, tmp_path: Path, row: str) -> None:
    lines = (cell / "run1.csv").read_text().splitlines()
    cells = lines[700].split(",")
    cells[2] = row
    lines[700] = ",".join(cells)
    (tmp_path / "log.csv").write_text("\n".join(lines) + "\n")
    text = done("inspect", tmp_path / "log.csv", "--robot", cell / "arm.urdf")
    assert "1 row" in text or "1 value" in text or "1 sample" in text, text


@pytest.mark.parametrize(
    ("before", "after", "expressions"),
    [
        ('mass value="8.0"', 'mass value="nan"', ("l1", "nan")),
        ('mass value="8.0"', 'mass value="-1"', ("l1", "negative")),
        ("</robot>", "", ("parse|XML",)),
        ('type="revolute"', 'type="floating"', ("j1|floating",)),
        ('parent link="l1"', 'parent link="l9"', ("l9",)),
    ],
)
def test_a_damaged_urdf_is_one_line(cell: Path, nowhere: Path, before: str, after: str, expressions: tuple[str, ...]) -> None:
    bad = nowhere.parent / "bad.urdf"
    assert before in urdf()
    bad.write_text(urdf().replace(before, after, 1))
    refused("identify", bad, cell / "run1.csv", "-o", nowhere, matching=expressions)


@pytest.mark.skipif(os.name != "posix", reason="needs a folder that nobody can write")
def test_an_output_that_cannot_be_written_is_said_before_the_work(cell: Path) -> None:
    refused("identify", "arm.urdf", "run1.csv", "-o", "/proc/nowhere", matching=("/proc/nowhere",), cwd=cell)
    refused("identify", "arm.urdf", "run1.csv", "-o", "run2.csv", matching=("run2.csv",), cwd=cell)
    refused("check", "arm.urdf", "--fix", "/proc/nowhere/x.urdf", matching=("/proc/nowhere",), cwd=cell)


def program(*arguments: object, **options: object) -> subprocess.Popen[str]:
    """The program in a process of its own."""
    command = [sys.executable, "-m", "urdf_ident", *map(str, arguments)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **options}
    return subprocess.Popen(command, **pipes)  # type: ignore[call-overload,no-any-return]


@pytest.mark.skipif(os.name != "posix", reason="pipes of POSIX")
def test_a_process_sets_its_exit_code_and_survives_a_closed_pipe(cell: Path) -> None:
    absent = program("check", cell / "absent.urdf")
    out, err = absent.communicate()
    assert (absent.returncode, out, len(err.splitlines())) == (2, "", 1)
    reading, writing = os.pipe()
    os.close(reading)
    closed = program("check", cell / "arm.urdf", stdout=writing)
    os.close(writing)
    assert closed.communicate()[1] == ""
    assert closed.returncode == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_one_line(cell: Path) -> None:
    with open("/dev/full", "w") as full:
        writing = program("check", cell / "arm.urdf", stdout=full)
        err = writing.communicate()[1]
    assert writing.returncode == 2
    assert err.splitlines() == [f"error: the output cannot be written ({os.strerror(errno.ENOSPC)})"]


def test_numbers_do_not_depend_on_the_order_of_columns_or_joints(cell: Path, tmp_path: Path) -> None:
    """Columns are matched by name."""
    head, *rows = (cell / "run1.csv").read_text().splitlines()
    table = np.array([row.split(",") for row in rows])
    order = np.random.default_rng(0).permutation(table.shape[1])
    names = np.array(head.split(","))[order]
    (tmp_path / "run1.csv").write_text("\n".join([",".join(names), *(",".join(row[order]) for row in table)]) + "\n")
    texts = [done("inspect", folder / "run1.csv", "--robot", cell / "arm.urdf", "--json") for folder in (cell, tmp_path)]
    assert texts[0] == texts[1]
