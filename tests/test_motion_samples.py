"""Samples of conditioned logs, on which the physics of the logs is examined."""

from __future__ import annotations

import numpy as np
import pytest

from urdf_ident.faults import motion_samples, thinned_logs
from urdf_ident.samples import Segment


def segment(length: int, seed: int) -> Segment:
    q, v, a, tau = np.random.default_rng(seed).standard_normal((4, length, 2))
    return Segment(f"log{seed}", 0.0, 100.0, q, v, a, tau)


def test_long_and_short_segments_keep_their_own_torques(monkeypatch: pytest.MonkeyPatch) -> None:
    """Smoothed torques of short segments are cached and those of long ones are not: neither takes the place of the other."""
    monkeypatch.setattr(thinned_logs, "_SHORT", 500)
    parts = [segment(length, seed) for seed, length in enumerate((600, 400, 700))]
    alone = [motion_samples.sampler([([part], 5.0)], samples=10_000) for part in parts]
    expected = np.concatenate([take(0.0).tau for take in alone if take])
    thinned_logs.forget(parts)
    for _ in range(2):  # first computed, then partly from the cache
        together = motion_samples.sampler([([part], 5.0) for part in parts], samples=10_000)
        assert together is not None
        np.testing.assert_array_equal(together(0.0).tau, expected)


def test_no_block_holds_the_only_motion_of_a_joint() -> None:
    """Joints that move one after the other give blocks that are spread over the log, and contiguous ones where time matters."""
    whole = segment(600, 0)
    v = np.repeat(np.eye(2)[[0, 0, 1, 0]], 150, axis=0) * whole.v
    take = motion_samples.sampler([([Segment("log", 0.0, 100.0, whole.q, v, whole.a, whole.tau)], 5.0)], blocks=4)
    assert take is not None
    found = take(0.0)
    assert (np.diff(found.block) < 0).any()
    assert (np.diff(found.in_order().block) >= 0).all()
    for block in np.unique(found.block):
        outside = np.sum(found.v[found.block != block] ** 2, axis=0) / np.sum(found.v**2, axis=0)
        assert (outside > 0.3).all()
    usual = motion_samples.sampler([([whole], 5.0)])
    assert usual is not None
    assert usual(0.0).in_order() is usual(0.0)
