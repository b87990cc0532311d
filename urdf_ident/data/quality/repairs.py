"""Repairs of values that lose nothing: bad rows and cells left out. Too many of them refuse the log."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...linalg import Array, quantiles, running_median
from ...model.robot import Robot
from ...scratch import stored
from ..recording import Recording
from .findings import Examination

#: Share of bad rows above which a log is refused.
TOO_MANY = 0.05
#: No position, velocity or effort of a robot in SI units is larger.
IMPOSSIBLE = 1e7
_REQUIRED = ("position", "effort")
#: Size of a one-sample spike as a share of the signal's range below which it is left alone.
_SPIKE = {"position": 0.05, "motor_position": 0.05, "velocity": 0.1, "effort": 0.5}
#: Fewest samples that make a value a sentinel, and their distance from their neighbours over the signal's usual range.
_SENTINELS, _APART = 5, 0.3


def drop_unreadable_rows(state: Examination) -> None:
    """Leaves out rows without a time or without any position.

    Args:
        state: The log; changed.
    """
    recording = state.recording
    bad = ~np.isfinite(recording.time) | (np.abs(recording.time) > 1e300) | np.isnan(recording.position).all(axis=1)
    drop_rows(state, bad, "rows-unreadable", "cannot be read (cut short, empty or no numbers)")


def repair_values(state: Examination, robot: Robot) -> None:
    """Leaves out values that cannot be: not finite, far too large, or spikes of one or two samples.

    Args:
        state: The log; changed. Rows whose position or effort is bad go; holes in other signals are bridged.
        robot: Names of the joints.
    """
    changes: dict[str, Any] = {}
    wrenches = dict(state.recording.wrenches)
    bad_rows = np.zeros(len(state.recording), dtype=bool)
    for name, array in state.recording.signals():
        clean = _without_bad_values(state, robot, name, array)
        holes = np.isnan(clean)
        if name in _REQUIRED:
            _refuse_dead(state, robot, name, holes)
            bad_rows |= (holes & ~holes.all(axis=0)).any(axis=1)
            changes[name] = clean
        elif holes.mean() > TOO_MANY or holes.all(axis=0).any():
            state.add("signal-dropped", "repaired", f"{name} is not used: {100 * holes.mean():.3g} % of its values are missing")
            wrenches.pop(name.removeprefix("wrench "), None)
            changes[name] = None
        elif holes.any():
            clean = _bridge(state.recording.time, clean)
            state.add(
                "values-bridged",
                "repaired",
                f"{int(holes.sum())} missing value(s) of {name} were interpolated",
                at=np.flatnonzero(holes.any(axis=1)),
            )
            changes[name] = clean
    for frame in list(wrenches):
        wrenches[frame] = changes.pop(f"wrench {frame}", wrenches[frame])
    known = {item.name for item in fields(Recording)}
    changed = {name: value for name, value in changes.items() if name in known}
    state.recording = replace(state.recording, wrenches=wrenches, **changed)
    if not state.stopped:
        drop_rows(state, bad_rows, "values-missing", "have a missing or impossible position or effort")


def unwrap_positions(state: Examination, robot: Robot) -> None:
    """Joins positions of revolute joints that jump by a whole turn from one sample to the next.

    Args:
        state: The log; changed.
        robot: Says which joints turn.
    """
    position = state.recording.position
    turns = [np.flatnonzero(np.abs(np.abs(np.diff(x)) - 2 * np.pi) < 0.2 * np.pi) for x in position.T]
    # a spike jumps back at once; a wrapped joint stays there
    wrapped = np.array([len(at) > 0 and not (np.diff(at) == 1).any() for at in turns]) & ~robot.prismatic
    if not wrapped.any():
        return
    fixed = position.copy()
    target = None if state.recording.position_target is None else state.recording.position_target.copy()
    for j in np.flatnonzero(wrapped):
        fixed[:, j] = np.unwrap(position[:, j])
        if target is not None:
            target[:, j] = fixed[:, j] + np.angle(np.exp(1j * (target[:, j] - fixed[:, j])))
        state.add(
            "position-wrapped",
            "repaired",
            f"position jumps by whole turns {len(turns[j])} time(s); joined",
            joint=robot.joints[j],
            at=turns[j] + 1,
        )
    state.recording = replace(state.recording, position=fixed, position_target=target)


def _without_bad_values(state: Examination, robot: Robot, name: str, array: Array) -> Array:
    """The signal with NaN where a value is impossible or a spike; one joint at a time, for a sound signal is not held twice."""
    clean: Array | None = None
    for j in range(array.shape[1]):
        joint = robot.joints[j] if array.shape[1] == robot.n and not name.startswith("wrench") else None
        x = array[:, j].copy()
        bad = np.isinf(x) | (np.abs(x) > IMPOSSIBLE)
        if bad.any():
            state.add(
                "values-impossible",
                "repaired",
                f"{int(bad.sum())} value(s) of {name} are impossible (up to {float(np.abs(x[bad]).max()):.3g}); left out",
                joint=joint,
                at=np.flatnonzero(bad),
            )
            x[bad] = np.nan
        if name in _SPIKE:
            stuck = _sentinels(x)
            if stuck.any():
                words = f"{int(stuck.sum())} value(s) of {name} are exactly {x[stuck][0]:.6g} between others; left out"
                state.add(
                    "values-sentinel",
                    "repaired",
                    words,
                    joint=joint,
                    at=np.flatnonzero(stuck),
                    remedy="check which value the logger writes for missing data",
                )
            x[stuck] = np.nan
            spikes = _spikes(x, _SPIKE[name])
            if spikes.any():
                words = f"{int(spikes.sum())} spike(s) of {name} left out"
                state.add("values-spike", "repaired", words, joint=joint, at=np.flatnonzero(spikes))
            x[spikes] = np.nan
            bad |= stuck | spikes
        if bad.any():
            clean = stored(array.copy()) if clean is None else clean
            clean[:, j] = x
    return array if clean is None else clean


def _sentinels(x: Array) -> NDArray[np.bool_]:
    """Single samples far from their neighbours that all hold one and the same value: what a logger writes for none."""
    none = np.zeros(len(x), dtype=bool)
    known = np.isfinite(x)
    if known.sum() < 20:
        return none
    filled = _filled(x, known)
    low, high = quantiles(filled, 0.1, 0.9)
    apart = max(_APART * (high - low), 1e-9)
    away = _away(filled, 7, apart)
    if away is None:
        return none
    far = known & (away > max(apart, 10 * quantiles(away, 0.5)[0]))
    if far.sum() < _SENTINELS:
        return none
    values, counts = np.unique(x[far], return_counts=True)
    value = values[np.argmax(counts)]
    same = counts.max() > max(_SENTINELS, 0.8 * far.sum()) and (far & (x == value)).sum() > 0.3 * (x == value).sum()
    return np.asarray(far & (x == value)) if same else none


def _spikes(x: Array, share: float) -> NDArray[np.bool_]:
    """Samples far from the median of their five neighbours, which all others follow closely."""
    none = np.zeros(len(x), dtype=bool)
    known = np.isfinite(x)
    if known.sum() < 20:
        return none
    filled = _filled(x, known)
    low, high = quantiles(filled, 0.01, 0.99)
    apart = max(share * (high - low), 1e-9)
    away = _away(filled, 5, apart)
    return none if away is None else np.asarray((away > max(apart, 10 * quantiles(away, 0.99)[0])) & known)


def _filled(x: Array, known: NDArray[np.bool_]) -> Array:
    return x if known.all() else np.interp(np.arange(len(x)), np.flatnonzero(known), x[known])


def _away(x: Array, neighbours: int, apart: float) -> Array | None:
    """How far samples are from their neighbours' median, shape (N,); None where steps are too small for any to be apart."""
    if neighbours // 2 * np.abs(np.diff(x)).max() <= apart:
        return None
    return np.asarray(np.abs(x - running_median(x, neighbours)))


def _refuse_dead(state: Examination, robot: Robot, name: str, holes: NDArray[np.bool_]) -> None:
    for j in np.flatnonzero(holes.mean(axis=0) > TOO_MANY):
        share = 100 * holes[:, j].mean()
        state.add(
            "channel-missing",
            "refused",
            f"{share:.3g} % of the {name} values are missing or impossible",
            joint=robot.joints[j],
            at=np.flatnonzero(holes[:, j]),
            remedy="check the column and its sensor, or record the log again",
        )


def _bridge(time: Array, x: Array) -> Array:
    out = x.copy()
    for j in range(x.shape[1]):
        known = np.isfinite(x[:, j])
        out[:, j] = np.interp(time, time[known], x[known, j])
    return out


def drop_rows(state: Examination, bad: NDArray[np.bool_], code: str, what: str, limit: float = TOO_MANY) -> None:
    """Leaves out rows and says so.

    Args:
        state: The log; changed.
        bad: Which rows, shape (N,).
        code: Id of the finding.
        what: What is the matter with them, after "12 row(s)".
        limit: Share of them above which the log is refused.
    """
    count = int(bad.sum())
    if not count:
        return
    share = count / len(bad)
    words = f"{count} row(s) ({100 * share:.3g} %) {what}"
    if share > limit:
        state.add(
            code, "refused", words, at=np.flatnonzero(bad), remedy="record the log again, or cut out the part that is good"
        )
    else:
        state.add(code, "repaired", f"{words}; left out", at=np.flatnonzero(bad))
    state.recording = state.recording.take(~bad)
