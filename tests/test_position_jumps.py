"""Positions that jump while the motion goes on."""

from dataclasses import replace

import numpy as np
import pytest
from conftest import arm_urdf
from logs import Truth, fourier, recorded, torques

from urdf_ident import Recording, Robot
from urdf_ident.signals.quality.report import assess

ROBOT = Robot.from_urdf(arm_urdf("zyyx"))
AT = 777


def log_of(seed: int = 0, rate: float = 100.0) -> Recording:
    t, q, v, a = fourier(ROBOT.n, 12.0, rate, seed)
    return recorded(ROBOT, t, q, torques(ROBOT, Truth.of(ROBOT.n), q, v, a), seed=seed)


def told(log: Recording) -> tuple[Recording, dict[str | None, float | None], set[str]]:
    report = assess(log, ROBOT)
    jumps = {item.joint: item.size for item in report.findings if item.id == "position-jump"}
    return report.recording, jumps, {item.id for item in report.findings}


@pytest.mark.parametrize("size", [-0.03, 0.2])
def test_an_encoder_that_slips_is_named_and_its_later_rows_are_shifted_back(size: float) -> None:
    sound = log_of()
    slipped = replace(sound, position=sound.position + size * np.outer(np.arange(len(sound)) >= AT, np.eye(4)[1]))
    mended, jumps, _ = told(slipped)
    assert jumps == {"j2": pytest.approx(size, abs=1e-3)}
    np.testing.assert_allclose(mended.position, sound.position, atol=1e-3)


@pytest.mark.parametrize("late", [-0.2, 0.3])
def test_a_clock_that_slips_is_no_encoder_that_slipped(late: float) -> None:
    """All joints are late, or early, by the same part of an interval from some row on (a real log of an xMate is)."""
    t, q, v, _ = fourier(ROBOT.n, 12.0, 100.0, 0)
    q = q + 0.01 * late * v * (np.arange(len(t)) >= AT)[:, None] + 1e-5 * np.random.default_rng(0).standard_normal(q.shape)
    mended, jumps, ids = told(replace(log_of(), position=q))
    assert not jumps
    assert "clock-slip" in ids
    np.testing.assert_array_equal(mended.position, q)


def test_counters_that_start_again_are_no_joined_runs() -> None:
    """Speeds and efforts go on as before, which another run does not."""
    sound = log_of()
    q = sound.position.copy()
    q[AT:] -= q[AT]
    mended, jumps, ids = told(replace(sound, position=q))
    assert set(jumps) == set(ROBOT.joints)
    assert "runs-joined" not in ids
    np.testing.assert_allclose(mended.position, sound.position, atol=3e-3)


def test_sound_logs_joined_runs_missing_rows_and_held_positions_are_no_jumps() -> None:
    sound, other = log_of(), log_of(5)
    both = {name: (getattr(sound, name)[:AT], getattr(other, name)[AT:]) for name in ("position", "effort")}
    joined = replace(sound, **{name: np.vstack(parts) for name, parts in both.items()})
    kept = np.r_[:AT, AT + 12 : len(sound)]
    lost = replace(sound, time=sound.time[: len(kept)], position=sound.position[kept], effort=sound.effort[kept])
    q = sound.position.copy()
    q[:, 2] = q[np.arange(len(q)) // 40 * 40, 2]
    logs = {"sound": sound, "joined": joined, "lost": lost, "held": replace(sound, position=q)}
    found = {name: told(log) for name, log in logs.items()}
    assert {name: jumps for name, (_, jumps, _) in found.items()} == {name: {} for name in logs}
    assert "runs-joined" in found["joined"][2]
    assert "samples-lost" in found["lost"][2]


@pytest.mark.parametrize("rows", [[AT], [AT, AT + 40]])
def test_rows_that_repeat_or_are_left_out_are_no_jumps(rows: list[int]) -> None:
    """All joints move by one step less, or more, which no encoder alone does (a real Panda log has such rows)."""
    sound = log_of(rate=1000.0)
    t, q, *_ = fourier(ROBOT.n, 12.0, 1000.0, 0)
    q = np.round(q * [1.0, 0.05, 0.05, 0.05], 5)  # only the steps of the first joint are far above the encoder's counts
    every = np.arange(len(sound) - 10)
    for places in (np.sort(np.r_[every, rows]), np.delete(every, rows)):
        assert not told(replace(sound, time=t[: len(places)], position=q[places], effort=sound.effort[: len(places)]))[1]
