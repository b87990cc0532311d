"""Mutated logs of every kind are read or refused in one line (the benchmark tries many more)."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import load_script

from urdf_ident.model.robot import Robot

KINDS = (
    *("csv", "quoted", "gz", "xz", "zst", "parquet", "arrow", "npz", "npy", "mat", "mat-packed", "h5"),
    *("db3", "mcap", "bag", "lerobot"),
)


@pytest.fixture(scope="module")
def benchmark():
    for name in ("pyarrow", "h5py", "rosbags"):
        pytest.importorskip(name)
    return load_script("benchmarks/fuzz_logs.py")


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
