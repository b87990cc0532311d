"""Mutated logs of every kind are read or refused in one line (the benchmark tries many more)."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from urdf_ident.model.robot import Robot

SCRIPT = Path(__file__).parents[1] / "scripts/benchmarks/fuzz_logs.py"
KINDS = (
    "csv",
    "quoted",
    "gz",
    "xz",
    "zst",
    "parquet",
    "arrow",
    "npz",
    "npy",
    "mat",
    "mat-packed",
    "h5",
    "db3",
    "mcap",
    "bag",
    "lerobot",
)


@pytest.fixture(scope="module")
def benchmark():
    for name in ("pyarrow", "h5py", "rosbags"):
        pytest.importorskip(name)
    spec = importlib.util.spec_from_file_location("fuzz_logs", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def good(benchmark, tmp_path_factory) -> dict[str, Path]:
    return benchmark.seeds(tmp_path_factory.mktemp("good"))


@pytest.mark.parametrize("kind", KINDS)
def test_mutated_logs_never_crash(benchmark, good, tmp_path: Path, kind: str) -> None:
    robot = Robot.from_urdf(benchmark.URDF)
    assert benchmark.judged(good[kind], robot) == ("read", "")
    for number in range(12):
        _, path = benchmark.make(number, 7, {kind: good[kind]}, tmp_path)
        outcome, words = benchmark.judged(path, robot)
        assert outcome in ("read", "refused"), words
