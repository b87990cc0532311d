"""Samples in files of a scratch folder: the same numbers, little memory, and nothing left behind."""

from __future__ import annotations

import errno
import os
import pickle
from pathlib import Path

import numpy as np
import pytest

from urdf_ident.errors import OutputError
from urdf_ident.parallel import scratch
from urdf_ident.parallel.scratch import _file_of, empty_array, samples_in, stored
from urdf_ident.samples import Segment
from urdf_ident.statistics.entries import Entries, Statistic


def segment(rows: int = 3000) -> Segment:
    q, v, a, tau = np.random.default_rng(0).normal(size=(4, rows, 2))
    return Segment("log", 0.0, 100.0, q, v, a, tau)


def test_samples_lie_in_files_and_go_to_others_as_places(tmp_path: Path) -> None:
    memory = segment()
    with samples_in(tmp_path):
        kept = segment()
        files = list(tmp_path.rglob("*.samples"))
        assert len(files) == 1  # not one an array: a process may open a thousand
        for other in (kept, pickle.loads(pickle.dumps(kept.slice(100, 2000)))):
            at = 0 if len(other) == 3000 else 100
            for name in ("q", "v", "a", "tau"):
                assert np.array_equal(getattr(other, name), getattr(memory, name)[at : at + len(other)])
                assert not getattr(other, name).flags.writeable
        assert len(pickle.dumps(kept)) < 2000 < 80_000 < len(pickle.dumps(memory))
        assert stored(kept.q) is kept.q
        scratch.empty_array((10_000_000,))[:] = 1.0  # another file, which nothing holds
        assert len(list(tmp_path.rglob("*.samples"))) <= 2
    assert not any(tmp_path.iterdir())
    assert np.array_equal(kept.q, memory.q)  # what is in use outlives the folder


def test_factors_of_logs_lie_there_too(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    made = [Statistic("log", block, group, rng.normal(size=(30, 30)), 50) for block in range(2) for group in ("a", "b")]
    with samples_in(tmp_path):
        kept = Entries(made).stored()
        assert [(x.log, x.block, x.group, x.rows) for x in kept] == [(x.log, x.block, x.group, x.rows) for x in made]
        for one, other in zip(kept, made, strict=True):
            assert np.array_equal(one.R, other.R)
            assert _file_of(one.R) is not None
            assert not one.R.flags.writeable
    assert Entries(made).stored()[0].R is made[0].R  # elsewhere they stay as they are


def test_small_arrays_and_those_outside_stay_in_memory(tmp_path: Path) -> None:
    with samples_in(tmp_path):
        assert stored(small := np.zeros(10)) is small
    assert stored(large := np.zeros(100_000)) is large
    assert empty_array((3, 2)).shape == (3, 2)


def test_a_folder_that_is_full_or_missing_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(OutputError, match="scratch folder"), samples_in(tmp_path / "none"):
        pass

    def full(*_: object, **_options: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("urdf_ident.parallel.scratch.tempfile.mkstemp", full)  # not even a new file can be made
    with samples_in(tmp_path), pytest.raises(OutputError, match="No space left"):
        segment()
    monkeypatch.undo()
    monkeypatch.setattr(os, "posix_fallocate", full)
    with samples_in(tmp_path), pytest.raises(OutputError, match=r"No space left.*more room") as caught:
        segment()
    assert "\n" not in str(caught.value)
