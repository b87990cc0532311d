"""Rows that are kept from one model to the next are those that are made anew."""

from __future__ import annotations

import gc
from dataclasses import replace

import numpy as np
import pytest

from urdf_ident.model.bundled import robot_path
from urdf_ident.model.drive import Drive
from urdf_ident.model.dynamic_model import DynamicModel
from urdf_ident.model.robot import Robot
from urdf_ident.samples import Segment
from urdf_ident.statistics import rows
from urdf_ident.statistics.accumulate import accumulate
from urdf_ident.statistics.rows import RowFilter

SIMPLE, MANY = ["viscous", "coulomb"], ["viscous", "stribeck", "load_coulomb", "presliding"]


@pytest.fixture(scope="module")
def robot() -> Robot:
    return Robot.from_urdf(robot_path("szabo_3r"))


def piece(robot: Robot, samples: int, seed: int, **more: object) -> Segment:
    rng = np.random.default_rng(seed)
    t = np.arange(samples)[:, None] / 100.0
    q = np.sin(t * rng.uniform(0.5, 2.0, robot.n) + rng.uniform(0, 6, robot.n))
    v, a = np.gradient(q, 0.01, axis=0), np.gradient(np.gradient(q, 0.01, axis=0), 0.01, axis=0)
    return Segment("run", 0.0, 100.0, q, v, a, rng.normal(size=q.shape), external=0.1 * rng.normal(size=q.shape), **more)  # type: ignore[arg-type]


def assert_same_factors(
    model: DynamicModel, segments: list[Segment], row_filter: RowFilter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With kept columns as from the streamed rows."""
    one = accumulate(model, "run", segments, row_filter)
    with monkeypatch.context() as patch:
        patch.setattr(rows, "_kept", lambda *_: None)
        other = accumulate(model, "run", segments, row_filter)
    assert one.fingerprint == other.fingerprint
    assert [(e.log, e.block, e.group, e.rows) for e in one.entries] == [
        (e.log, e.block, e.group, e.rows) for e in other.entries
    ]
    for a, b in zip(one.entries, other.entries, strict=True):
        np.testing.assert_allclose(a.R.T @ a.R, b.R.T @ b.R, atol=1e-9 * max(1.0, np.abs(b.R).max() ** 2))


@pytest.mark.parametrize("most", [12_000_000, 20_000])  # the latter is room for the columns of one model, not for all terms
@pytest.mark.parametrize("factor", [1, 4])
@pytest.mark.parametrize("coupled", [False, True])
def test_kept_columns_make_the_same_factors(
    robot: Robot, factor: int, coupled: bool, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "MOST", rows._Kept.held + most)
    segments = [piece(robot, 700, 0), piece(robot, 30, 1), piece(robot, 400, 2, repeats=3)]
    drive = Drive.build(3, reduction=[[10, 0, 0], [0, 20, 0], [0, 5, 30]]) if coupled else None
    rng = np.random.default_rng(3)
    for friction in (SIMPLE, MANY, MANY, SIMPLE):  # another reference each time
        model = DynamicModel(robot, friction=friction, drive=drive).with_reference(rng.normal(size=30))
        assert_same_factors(model, segments, RowFilter(factor), monkeypatch)
    assert rows._Kept.held <= rows.MOST


def test_columns_are_kept_for_a_motion_and_let_go_of_with_it(robot: Robot) -> None:
    before, segment = rows._Kept.held, piece(robot, 500, 0)
    model, row_filter = DynamicModel(robot, friction=SIMPLE), RowFilter(1)
    accumulate(model, "run", [segment], row_filter)
    assert (held := rows._Kept.held) > before
    weighted = replace(segment, weights=np.full((500, robot.n), 0.5))
    accumulate(model, "run", [weighted], row_filter)
    assert rows._Kept.held == held
    accumulate(model, "run", [replace(segment, v=2 * segment.v)], row_filter)
    assert rows._Kept.held > held
    del segment, weighted
    gc.collect()
    assert rows._Kept.held <= before
