"""Values that stay where the signal went on: efforts at the end of their range, and channels that freeze."""

from __future__ import annotations

import numpy as np

from ...grouping import equal_runs
from ...judgements.catalogue import Id
from ...linalg import Array
from ..clock import read_clock
from ..resolution import count_of, usual_size
from .checks import MOVING
from .examination import Examination


def drop_clipped(state: Examination) -> None:
    """Drops rows in which an effort stays at its largest or smallest value, like a clipped signal."""
    recording = state.recording
    if recording.effort is None:
        return
    clipped = np.zeros(len(recording), dtype=bool)
    ahead = np.minimum(np.arange(len(clipped)) + 10, len(clipped) - 1)
    moving = np.any([x[ahead] != x[ahead - 10] for x in recording.position.T], axis=0)  # at rest efforts are constant
    for j in range(state.robot.n):
        x = recording.effort[:, j]
        span = float(np.ptp(x))
        lowest, highest = x.min(), x.max()
        if span == 0 or 200 * count_of(x) > span or np.ptp(recording.position[:, j]) < 0.01:
            continue
        at_end = np.zeros(len(x), dtype=bool)
        usual = float(np.median(equal_runs(x)[1]))  # rows of a value, more where efforts have a lower rate
        for end, beside in ((highest, x > highest - 0.05 * span), (lowest, x < lowest + 0.05 * span)):
            at = (x == end) & moving
            if at.sum() > max(0.01 * len(x), 10 * usual) and at.sum() > 0.3 * beside.sum():
                at_end |= at
        if at_end.any():
            clipped |= at_end
            state.add(
                Id.EFFORT_CLIPPED,
                f"{100 * at_end.mean():.3g} % of the efforts are at the end of their range "
                f"({lowest:.4g} to {highest:.4g}), as if clipped; left out",
                joint=state.robot.joints[j],
                at=np.flatnonzero(at_end),
                size=float(at_end.mean()),
            )
    if clipped.mean() > 0.2:
        words = f"{100 * clipped.mean():.3g} % of the rows hold a clipped effort"
        state.add(Id.EFFORT_CLIPPED, words, remedy="record it again, slower", severity="refused")
    elif clipped.any():
        state.recording = recording.take(~clipped)


def drop_frozen(state: Examination) -> None:
    """Drops rows in which a position or an effort freezes during motion."""
    if state.stopped:
        return
    recording = state.recording
    rate = read_clock(recording.time).rate
    long = max(20, int(0.1 * rate))
    typical = usual_size(np.diff(recording.position, axis=0))
    frozen = np.zeros(len(recording), dtype=bool)
    for j, joint in enumerate(state.robot.joints):
        x = recording.position[:, j]
        speed = np.zeros(len(x)) if recording.velocity is None else np.abs(recording.velocity[:, j])
        held = [
            (begin, end)
            for begin, end in _constant_runs(x, long)
            if (end < len(x) and abs(x[end] - x[end - 1]) > 5 * typical[j] > 0) or np.median(speed[begin:end]) > 5 * MOVING
        ]
        channels = [("position", x, held)]
        if recording.effort is not None and np.ptp(effort := recording.effort[:, j]) > 0:
            least = int(max(long, 10 * np.quantile(equal_runs(effort)[1], 0.95)))
            moved = 50 * MOVING * long / rate
            held = [(begin, end) for begin, end in _constant_runs(effort, least) if np.ptp(x[begin:end]) > moved]
            channels.append(("effort", effort, held))
        for what, values, held in channels:
            step = count_of(values) if held else 0.0
            # a coarse resolution ends a run with a step of one resolution; a frozen channel jumps when it resumes
            coarse = {run for run in held if run[1] < len(values) and abs(values[run[1]] - values[run[1] - 1]) < 1.5 * step}
            longest = max((end - begin for begin, end in coarse), default=0)
            for begin, end in held:
                if (begin, end) in coarse or (end == len(values) and end - begin <= longest):
                    continue
                frozen[begin:end] = True
                words = f"the {what} freezes for {end - begin} rows in the middle of a motion; left out"
                state.add(Id.CHANNEL_FROZEN, words, joint=joint, at=[begin])
    share = frozen.mean()
    if share > 0.2:
        state.add(Id.FROZEN_TOO_LONG, f"{100 * share:.3g} % of the log is frozen")
    elif share > 0:
        state.recording = recording.take(~frozen)


def _constant_runs(x: Array, shortest: int) -> list[tuple[int, int]]:
    """Ranges (begin, end) of at least ``shortest`` equal samples."""
    begins, lengths = equal_runs(x)
    return [(int(begins[k]), int(begins[k] + lengths[k])) for k in np.flatnonzero(lengths >= shortest)]
