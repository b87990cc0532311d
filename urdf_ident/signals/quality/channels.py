"""Checks of single channels: what was logged is not what the sensor measured.

Coarse steps, lost signs, dead zones, one signal twice, computed efforts, logged targets; values that stay (clipped efforts,
frozen channels), rows and efforts that the logger interpolated, channels with a lower rate.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from ...friction import SIGN_WIDTH
from ...grouping import equal_runs, runs
from ...judgements.catalogue import Id
from ...linalg import Array, IntArray, orthogonal_part, positive, robust_std, white_noise
from ...logs.recording import Recording
from ...model.rigid_bodies import rigid_torque
from ...model.robot import Robot
from ...samples import distinct_poses
from ..clock import bounds, read_clock
from ..filters import lowpass
from ..resolution import count_of, usual_size
from .checks import smooth_speeds
from .examination import Examination

#: Ratio of step to standard deviation from which the rounding is about a tenth of the efforts' RMS.
_COARSE = 0.3
#: Relative difference up to which one channel is a (rescaled) copy of another.
_COPIED = 1e-6
#: Fractions of an effort's maximum that count as zero and as near zero.
_ZERO, _NEAR = 0.02, 0.1
#: Visits to zero at different poses from which an effort's sign is lost, and how many of all visits are compared.
_VISITS, _POSES = 3, 200
#: Least ratio of the time within twice :data:`_NEAR` to that within it: 2 for a fold, 1.4 for a smooth minimum.
_STRAIGHT = 1.7
#: Minimum samples on each side of a visit, and largest ratio of roughness after to before flipping the sign there.
_BESIDE, _SMOOTHER = 4, 0.9
#: Rows of a moving joint with exactly zero effort that a dead zone has at least, and their ratio to the rows of each adjacent
#: value.
_DEAD, _MORE_OFTEN = 8, 5
#: A joint moves if its displacement over this number of rows exceeds a fraction of the largest, and a multiple of the noise.
_APART, _MOVES, _NOISE = 5, 0.01, 5.0
#: Fewest and most rows in which computed efforts are searched, and lower end of the frequencies there over the rate.
_COMPARED, _ABOVE = (500, 20_000), 0.2
#: Rows of a part: noise is in all parts alike, the beginnings and ends of moves, which motors do respond to, are in some.
_OF_A_PART = 50
#: Computed share of efforts: its range, the largest standard error of a joint's, and their least median size in these.
_SHARE, _SHARE_ERROR, _CLEAR = (0.1, 0.9), 0.1, 8.0
#: Largest difference of a joint's share from the mean, relative and in standard errors; vibrations that both channels contain
#: give shares that differ by more.
_ALIKE = (0.2, 4.0)
#: Number of rows per held value from which a signal has a low rate.
_HELD = 3.0
#: Deviation from a line that three samples may have, and least step between rows that is not rounding, both in steps between
#: the effort's levels.
_OFF, _CLEAR_STEP = 2.5, 10.0
#: Share of rows on lines from which an effort is interpolated, and minimum rows of a line.
_MOST, _LINE = 0.6, 3
#: Relative loss of the joint's velocity by the same interpolation from which it matters: efforts contain accelerations and
#: reversing friction, which lose more.
_LOST = 0.02


def check_steps(state: Examination) -> None:
    """Warns of coarsely quantised efforts of moving joints."""
    for joint, _, x in state.moving_efforts():
        if step := _coarse_step(x):
            words = f"the effort comes in steps of {step:.3g}, {100 * step / x.std():.0f} % of its standard deviation"
            state.add(Id.EFFORT_QUANTISED, words, joint=joint, size=step)


def _coarse_step(effort: Array) -> float:
    """The step in which an effort comes if it is coarse compared with its standard deviation, else 0."""
    step = count_of(effort)
    return step if step > _COARSE * float(effort.std()) else 0.0


def check_sign_lost(state: Examination) -> None:
    """Refuses efforts without sign, which are never negative and reflected at zero: smoother if the sign is turned there."""
    position = state.recording.position
    for joint, _, x in state.moving_efforts():
        ratios = _folds(x) if x.min() >= 0 else {}
        # a motion that repeats brings the same effort near zero each time
        poses = position[[*ratios][:_POSES]]
        if len(ratios) < _VISITS or distinct_poses(poses, np.ptp(position, axis=0)) < _VISITS:
            continue
        if np.median([*ratios.values()]) < _SMOOTHER:
            words = f"the effort is never below zero and turns back at zero {len(ratios)} times: its sign is lost"
            state.add(Id.EFFORT_UNSIGNED, words, joint=joint, at=[*ratios])


def _folds(x: Array) -> dict[int, float]:
    """Rows where an effort turns back at zero, and how much smoother it is there with the sign turned: ratio of roughness."""
    largest, ratios = x.max(), dict[int, float]()
    for first, end in runs(x < 2 * _NEAR * largest):
        visit = x[first:end]
        lowest = first + int(np.argmin(visit))
        inside = first > 0 and end < len(x) and x[lowest] < _ZERO * largest
        if inside and len(visit) > _STRAIGHT * np.count_nonzero(visit < _NEAR * largest):
            begin = max(min(first, lowest - _BESIDE), 0)
            around = x[begin : max(end, lowest + _BESIDE + 1)]
            from_lowest = np.arange(len(around)) + begin - lowest  # the lowest sample may be on either side due to noise
            flipped = min(_roughness(np.where(kept, around, -around)) for kept in (from_lowest > 0, from_lowest >= 0))
            ratios[lowest] = flipped / positive(_roughness(around))
    return ratios


def _roughness(x: Array) -> float:
    """Sum of squared residuals of a parabola fitted to a few samples."""
    return float(np.polyfit(np.linspace(-1.0, 1.0, len(x)), x, 2, full=True)[1].sum())


def check_dead_zone(state: Examination) -> None:
    """Warns of efforts that are exactly zero during motion far more often than they take the adjacent values.

    Coarsely quantised efforts are zero up to half a step, which :func:`check_steps` reports.
    """
    for joint, q, x in state.moving_efforts():
        travel = np.abs(q[_APART:] - q[:-_APART])
        # before and after: at the ends of a rest with the brake on, efforts are zero as well
        least = max(_MOVES * travel.max(), _NOISE * float(white_noise(q)))
        moving = np.flatnonzero(np.minimum(travel[:-_APART], travel[_APART:]) > least) + _APART
        at = moving[x[moving] == 0]
        if len(at) < _DEAD or _coarse_step(x):
            continue
        values, counts = np.unique(x[moving], return_counts=True)
        zero = int(np.searchsorted(values, 0.0))
        if len(at) > _MORE_OFTEN * max(counts[max(zero - 1, 0) : zero].sum(), counts[zero + 1 : zero + 2].sum()):
            state.add(
                Id.EFFORT_DEAD_ZONE,
                f"the effort is exactly zero in {100 * len(at) / len(moving):.3g} % of the rows in which the joint moves, and "
                "hardly ever near zero: small efforts are not logged",
                joint=joint,
                at=at,
                size=len(at) / len(moving),
            )


def check_copied(state: Examination) -> None:
    """Refuses one effort in two columns; warns of one position in two."""
    recording, joints = state.recording, state.robot.joints
    for i, j in combinations(np.flatnonzero(np.ptp(recording.position, axis=0) > 0), 2):
        if np.array_equal(recording.position[:, i], recording.position[:, j]):
            state.add(Id.POSITION_TWICE, f"the positions of {joints[i]} and {joints[j]} are equal in every row")
    if recording.effort is None:
        return
    effort, products = recording.effort, recording.effort.T @ recording.effort
    for i, j in combinations(np.flatnonzero(np.ptp(effort, axis=0) > 0), 2):
        factor = float(products[i, j] / products[i, i])
        near = products[j, j] - factor * products[i, j] < _COPIED * products[j, j]  # more cannot be told from products
        if near and np.linalg.norm(effort[:, j] - factor * effort[:, i]) < _COPIED * np.linalg.norm(effort[:, j]):
            state.add(Id.EFFORT_TWICE, f"the efforts of {joints[i]} and {joints[j]} are one signal")


def check_commanded(state: Examination) -> None:
    """Warns of efforts that are the controller's target."""
    recording, effort = state.recording, state.recording.effort
    if effort is None:
        return
    for name in ("torque_target", "effort_target"):
        target = getattr(recording, name)
        if target is None:
            continue
        scale = np.sum(effort * target, axis=0) / positive(np.sum(target**2, axis=0))
        left, size = np.linalg.norm(effort - scale * target, axis=0), np.linalg.norm(effort, axis=0)
        alive = (size > 0) & (np.ptp(target, axis=0) > 0)
        if alive.any() and (left[alive] < _COPIED * size[alive]).all():
            state.add(
                Id.EFFORT_COMMANDED,
                f"the efforts are the controller's {name.split('_')[0]} target, sample by sample: computed, not measured",
            )
            return


def check_computed(state: Examination) -> None:
    """Warns of efforts that are partly the URDF's torque at the logged positions, with their rounding errors and noise.

    Above the frequencies of the motion, logged positions contain rounding errors and noise, to which no joint responds, but the
    controller of a joint may: by gains on its own position and speed, and these parts of both torques are left out. Where the
    efforts contain the same fraction of the torque that the URDF has for them on all joints and in all parts of the log, it was
    computed.
    """
    recording = state.recording
    if recording.effort is None:
        return
    steps = np.diff(recording.time)
    usual = np.median(steps)
    gaps = np.flatnonzero(np.abs(steps - usual) > 0.5 * usual)
    begin, end = max(bounds(len(recording), gaps), key=lambda ends: ends[1] - ends[0])
    part = slice(begin, min(end, begin + _COMPARED[1]))
    if part.stop - part.start < _COMPARED[0]:
        return
    share, error = _computed_share(recording.take(part), recording.effort[part], state.robot)
    known = (error > 0) & (error < _SHARE_ERROR)
    if known.sum() < 2:
        return
    share, error = share[known], error[known]
    mean = float(np.average(share, weights=error**-2))
    alike = np.abs(share - mean) < np.maximum(_ALIKE[0] * mean, _ALIKE[1] * error)
    if _SHARE[0] < mean < _SHARE[1] and np.median(share / error) > _CLEAR and alike.all():
        state.add(
            Id.EFFORT_COMMANDED,
            f"about {100 * mean:.0f} % of the efforts are the URDF's torque at the logged positions, their noise included: "
            "computed, not measured",
        )


def _computed_share(recording: Recording, effort: Array, robot: Robot) -> tuple[Array, Array]:
    """Share of the URDF's torque in the efforts at high frequencies, and its standard error, of each joint with any."""
    time, q = recording.time, recording.position
    rate = 1.0 / float(np.median(np.diff(time)))
    v = np.gradient(q, time, axis=0) if recording.velocity is None else recording.velocity
    stated = rigid_torque(robot, robot.inertials.ravel(), q, v, np.gradient(v, time, axis=0))
    inner = slice(len(time) // 20, -(len(time) // 20))  # without the transients of the filter
    fast = np.array([(x - lowpass(x, rate, _ABOVE * rate))[inner] for x in (stated, effort, q, v)])
    left = np.array([orthogonal_part(x[:2].T, x[2:].T) for x in np.moveaxis(fast, -1, 0)])
    count = left.shape[1] // _OF_A_PART
    stated, measured = (left[:, : count * _OF_A_PART, k].T.reshape(count, _OF_A_PART, -1) for k in (0, 1))
    size = np.sum(stated**2, axis=1)
    alive = (size > 0).all(axis=0)
    shares = np.sum(stated * measured, axis=1)[:, alive] / size[:, alive]
    share = np.median(shares, axis=0)
    return share, np.sqrt(np.pi / 2 / count) * robust_std(shares - share)  # the standard error of a median


def drop_clipped(state: Examination) -> None:
    """Drops rows in which an effort stays at its largest or smallest value, like a clipped signal."""
    recording = state.recording
    if recording.effort is None:
        return
    clipped = np.zeros(len(recording), dtype=bool)
    ahead = np.minimum(np.arange(len(clipped)) + 10, len(clipped) - 1)
    moving = np.any([x[ahead] != x[ahead - 10] for x in recording.position.T], axis=0)  # at rest efforts are constant
    for joint, _, x in state.moving_efforts():
        span, lowest, highest = float(np.ptp(x)), x.min(), x.max()
        if 200 * count_of(x) > span:
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
                joint=joint,
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
    frozen = np.zeros(len(recording), dtype=bool)
    for j, joint in enumerate(state.robot.joints):
        x = recording.position[:, j]
        speed = np.zeros(len(x)) if recording.velocity is None else np.abs(recording.velocity[:, j])
        typical = usual_size(np.diff(x))
        held = [
            (begin, end)
            for begin, end in _constant_runs(x, long)
            if (end < len(x) and abs(x[end] - x[end - 1]) > 5 * typical > 0) or np.median(speed[begin:end]) > 5 * SIGN_WIDTH
        ]
        channels = [("position", x, held)]
        if recording.effort is not None and np.ptp(effort := recording.effort[:, j]) > 0:
            least = int(max(long, 10 * np.quantile(equal_runs(effort)[1], 0.95)))
            moved = 50 * SIGN_WIDTH * long / rate
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


def drop_bridged(state: Examination) -> None:
    """Drops rows that the logger put on straight lines over a gap: there all efforts are interpolated, and no robot moved so.

    If most of the log is, efforts come at a lower rate (:func:`check_rates`), and their samples are not known.
    """
    efforts = [x for _, _, x in state.moving_efforts()]
    bridged = np.full(len(state.recording), len(efforts) > 1)
    for x in efforts:
        inside = np.zeros(len(x), dtype=bool)
        for begin, end in zip(*_lines(x), strict=True):
            inside[begin + 1 : end - 1] = True  # the ends were measured
        bridged &= inside
    if bridged.mean() < _MOST:
        state.drop(bridged, Id.ROWS_INTERPOLATED, "lie on straight lines over gaps, in all efforts alike", limit=_MOST)


def check_rates(state: Examination) -> None:
    """Warns of positions with a lower rate than those of other joints, and of efforts with a lower one than the motion needs.

    Between two samples of such a channel its value is held, or a straight line.
    """
    recording, joints = state.recording, state.robot.joints
    rate = read_clock(recording.time).rate
    held = np.array([_regular_length(equal_runs(q)[1]) for q in recording.position.T])
    usual = float(np.median(held))
    for j in np.flatnonzero((held >= _HELD) & (held >= 2 * usual)):
        steps = np.abs(np.diff(recording.position[:, j]))
        if np.median(steps[steps > 0]) < 1.5 * count_of(recording.position[:, j]):
            continue  # at a steady speed each count of the encoder lasts equally long
        words = f"the position comes at {rate / held[j]:.3g} Hz, those of other joints at {rate / usual:.3g} Hz"
        state.add(Id.POSITION_HELD, words, joint=joints[j], size=rate / held[j])
    low = max(_HELD, 2 * usual)
    held_efforts = [
        (joint, *sampled) for joint, _, x in state.moving_efforts() if (sampled := _held_effort(x, low)) is not None
    ]
    pieces = smooth_speeds(recording)[0] if held_efforts else []
    for joint, rows, between in held_efforts:
        if _lost_by_interpolation([piece[:, joints.index(joint)] for piece in pieces], rows) > _LOST:
            words = f"the effort comes at {rate / rows:.3g} Hz, {between}"
            state.add(Id.EFFORT_HELD, words, joint=joint, size=rate / rows)


def _held_effort(x: Array, least: float) -> tuple[float, str] | None:
    """Rows per sample of an effort with a lower rate, and what lies between samples; None if there are fewer than ``least``."""
    rows = _regular_length(equal_runs(x)[1])
    if rows >= least:
        return rows, "each value is held until the next"
    begins, ends = _lines(x)
    if np.sum(ends - begins) > _MOST * len(x) and (rows := _regular_length(np.diff(begins))) >= least:
        return rows, "with straight lines between these samples"
    return None


def _lost_by_interpolation(pieces: Sequence[Array], rows: float) -> float:
    """Relative loss of a velocity, shapes (N_k,), by linear interpolation between samples some rows apart."""
    lost = whole = 0.0
    for v in pieces:
        at = np.arange(len(v))
        knots = np.arange(0.0, at[-1] + rows, rows)
        lost += float(np.sum((np.interp(at, knots, np.interp(knots, at, v)) - v) ** 2))
        whole += float(np.sum(v**2))
    return float(np.sqrt(lost / positive(whole)))


def _regular_length(lengths: IntArray) -> float:
    """Common length of runs; 1 if they vary, as steps due to quantisation do with the motion, or are too few."""
    usual = float(np.median(lengths)) if len(lengths) > 20 else 1.0
    return usual if np.mean(np.abs(lengths - usual) <= 1) > 0.8 else 1.0


def _lines(x: Array) -> tuple[IntArray, IntArray]:
    """First rows of straight, non-horizontal lines, and the rows after their last ones."""
    grain = float(np.diff(np.unique(x)).min())
    step = np.diff(x)
    straight = (np.abs(np.diff(step)) < _OFF * grain) & (np.abs(step[1:]) > _CLEAR_STEP * grain)
    begins, ends = np.array(runs(straight), dtype=np.intp).reshape(-1, 2).T + [[0], [2]]
    long = ends - begins >= _LINE
    return begins[long], ends[long]
