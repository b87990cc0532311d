"""A few damaged inputs of every kind end in a result or in one line; ``scripts/benchmarks/fuzz.py`` runs thousands."""

import random
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "scripts" / "benchmarks"))
import fuzz

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="needs POSIX signals")


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    for name in ("pyarrow", "h5py", "rosbags"):
        pytest.importorskip(name)
    folder = tmp_path_factory.mktemp("fuzz")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        return folder, fuzz.prepare(folder, thorough=False)


@pytest.mark.parametrize("kind", fuzz.COMMANDS)
def test_damaged_inputs_end_in_one_line(kind: str, good: tuple[Path, dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    folder, content = good
    monkeypatch.chdir(folder)
    monkeypatch.setattr(
        fuzz, "COMMANDS", {key: dict(list(value.items())[:2]) for key, value in fuzz.COMMANDS.items()}
    )  # the quick ones
    before = signal.signal(signal.SIGALRM, fuzz.ring)
    try:
        for seed in range({"world": 3, "truth": 4, "trajectory": 5, "result": 6, "log": 160}.get(kind, 10)):
            line, outcome, said = fuzz.one(kind, content, random.Random(f"test {kind} {seed}"), 120)
            assert outcome in ("exit 0", "exit 1", "exit 2"), f"{seed}: {line}\n{outcome}\n{said}"
    finally:
        signal.signal(signal.SIGALRM, before)


def test_friction_that_drives_without_bound_is_one_line(
    good: tuple[Path, dict[str, Any]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Found by the fuzzer: velocities overflowed inside a step, where a slider's stop was looked for."""
    folder, content = good
    monkeypatch.chdir(folder)
    fuzz.write_files(content)
    truth = {**content["truth"], "friction": {**content["truth"]["friction"], "coulomb": [2.0, -1e9, 3.0]}}
    Path("truth.yaml").write_text(fuzz.mutants.yaml.safe_dump(truth))
    rows = Path("log.csv").read_text().splitlines()[1:61]
    Path("t.csv").write_text("\n".join(["t,q_j1,q_j2,q_j3", *(",".join(row.split(",")[:4]) for row in rows)]))
    assert fuzz.run(["simulate", "robot.urdf", "t.csv", "-o", "sim.csv", "-c", "fast.yaml", "--truth", "truth.yaml"]) == 2
    assert "the motion grows without bound; check friction" in capsys.readouterr().err


def test_a_failure_is_seen(good: tuple[Path, dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    """The fuzzer itself would notice a traceback."""
    folder, content = good
    monkeypatch.chdir(folder)
    monkeypatch.setattr(fuzz, "COMMANDS", {"urdf": {"check robot.urdf": 1}})
    monkeypatch.setattr(fuzz.mutants, "MUTATORS", {"urdf": lambda text, _: text})

    def broken(*_: object) -> None:
        raise ZeroDivisionError("on purpose")

    monkeypatch.setattr("urdf_ident.pipeline.check.check", broken)
    before = signal.signal(signal.SIGALRM, fuzz.ring)
    try:
        _, outcome, said = fuzz.one("urdf", content, random.Random(0), 60)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert outcome == "exit 70"
    assert "on purpose" in said
