"""Samples of conditioned logs, on which the physics of the logs is examined."""

from __future__ import annotations

import numpy as np
import pytest

from urdf_ident.data.diagnosis import motion_samples
from urdf_ident.samples import Segment


def segment(length: int, seed: int) -> Segment:
    q, v, a, tau = np.random.default_rng(seed).standard_normal((4, length, 2))
    return Segment(f"log{seed}", 0.0, 100.0, q, v, a, tau)


def test_long_and_short_segments_keep_their_own_torques(monkeypatch: pytest.MonkeyPatch) -> None:
    """Smoothed torques of short segments are cached and those of long ones are not: neither takes the place of the other."""
    monkeypatch.setattr(motion_samples, "_SHORT", 500)
    parts = [segment(length, seed) for seed, length in enumerate((600, 400, 700))]
    alone = [motion_samples.sampler([([part], 5.0)], samples=10_000) for part in parts]
    expected = np.concatenate([take(0.0).tau for take in alone if take])
    motion_samples.forget(parts)
    for _ in range(2):  # first computed, then partly from the cache
        together = motion_samples.sampler([([part], 5.0) for part in parts], samples=10_000)
        assert together is not None
        np.testing.assert_array_equal(together(0.0).tau, expected)
