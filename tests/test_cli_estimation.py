"""Logs that no estimator can use, from the command line: one line that says what is missing."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import assert_refused, run
from conftest import arm_urdf
from logs import make_log

from urdf_ident.model.robot import Robot


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log of 20 s and parts of it."""
    folder = tmp_path_factory.mktemp("bad")
    (folder / "arm.urdf").write_text(arm_urdf("zyx"))
    make_log(folder / "log.csv", Robot.from_urdf(arm_urdf("zyx")), rate=500.0)
    lines = (folder / "log.csv").read_text().splitlines()
    (folder / "piece.csv").write_text("\n".join([lines[0], *lines[1000:1700]]) + "\n")
    (folder / "again.csv").write_text("\n".join([lines[0], *(f"{line} " for line in lines[1:]), ""]))
    for name, signals in (("few", "{decimate: 15}"), ("slow", "{cutoff: 0.4, decimate: 2}")):
        (folder / f"{name}.yaml").write_text(f"model: {{friction: [viscous, coulomb, offset]}}\nsignals: {signals}\n")
    return folder


@pytest.mark.parametrize(
    ("logs", "config", "words"),
    [
        (["piece"], "few", ["fewer rows than parameters", r"got \d+ rows, expected > 28", "record longer"]),
        (["piece"], "slow", ["shorter than the filter", r"got 1.12 s of motion in one piece, expected 6 s", "piece:"]),
        (["log", "again"], "few", ["the same log is given twice", "content of (log|again)", "errors look too small"]),
    ],
)
def test_it_says_what_is_missing(work: Path, tmp_path: Path, logs: list[str], config: str, words: list[str]) -> None:
    files = [work / f"{name}.csv" for name in logs]
    result = run("identify", work / "arm.urdf", *files, "-c", work / f"{config}.yaml", "-o", tmp_path / "out")
    assert_refused(result, 2, *words)
    assert not (tmp_path / "out").exists() or not list((tmp_path / "out").iterdir())
