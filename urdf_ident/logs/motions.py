"""Trajectory files in the default CSV (docs/logs.md)."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ..errors import LogError
from ..files.sizes import LONGEST_MOTION
from ..model.robot import Robot
from ..motion.trajectory import PiecewisePolynomial, sampled
from .columns.fields import recording_fields
from .columns.layout import MOVING, LogLayout
from .formats.text import open_text
from .recording import Recording

#: Number of rows that a spline of degree 5 needs.
LEAST_ROWS = 6
#: Largest deviation of integrated rates, relative to that of the signal; coarse sampling causes far less.
MOST_APART = 0.5
#: Share of the largest motion of all joints that counts as rest (noise only).
AT_REST = 0.02
#: Largest ratio of row-to-row jumps to accelerations of a planned motion, and least number of rows for this test; a sine
#: with ten rows per period has 0.2, noise more than 1.
ROUGH, _MANY = 0.6, 100
_EFFORTS = ("tau", "effort", "torque", "current")


def read_trajectory(path: str | Path, robot: Robot) -> PiecewisePolynomial:
    """Reads a trajectory in the default CSV, or a recorded motion with its noise (other columns are ignored).

    Args:
        path: The file. Needs ``t`` and ``q_<joint>`` of every joint; missing ``v_`` or ``a_`` columns are computed from a
            spline of degree 5 through the positions.
        robot: The robot.

    Returns:
        A trajectory through all rows, with two continuous derivatives.

    Raises:
        LogError: A column is missing, unknown or given twice, a row is broken, time does not increase or lasts longer than
            :data:`.sizes.LONGEST_MOTION`, velocities are not the derivative of the positions, or accelerations of velocities.
        MissingFileError: The file cannot be read.
    """
    where = str(path)
    motion = Recording(**recording_fields([(open_text(path), list(MOVING))], robot, LogLayout(), where))
    read = {"q": motion.position, "v": motion.velocity, "a": motion.acceleration}
    columns = {prefix: values for prefix, values in read.items() if values is not None}
    time, rows = motion.time, np.arange(1, len(motion) + 1) if motion.rows is None else motion.rows
    table = np.column_stack([time, *columns.values()])
    broken = ~np.isfinite(table).all(axis=1)
    if broken.any():
        row = int(np.argmax(broken))
        got = ", ".join(f"{value:g}" for value in table[row, :4])
        expected = f"{table.shape[1]} finite numbers"
        raise LogError("broken row", where=f"{where}, row {rows[row]}", got=got, expected=expected)
    if len(time) < LEAST_ROWS:
        raise LogError("the motion is too short", where=where, got=f"{len(time)} rows", expected=f"at least {LEAST_ROWS}")
    if not (np.diff(time) > 0).all():
        row = int(np.argmin(np.diff(time) > 0)) + 1
        place, got = f"{where}, row {rows[row]}", f"{time[row]:.12g} s"
        raise LogError("time does not increase", where=place, got=got, remedy="sort it")
    if not time[-1] - time[0] <= LONGEST_MOTION:
        got, expected = f"{time[-1] - time[0]:g} s", f"at most {LONGEST_MOTION:g} s"
        raise LogError("the motion lasts too long", where=where, got=got, expected=expected, remedy="column t is in seconds")
    given = set(columns)
    with np.errstate(all="ignore"):  # overflow is checked below
        if len(columns) < 3:
            from scipy.interpolate import make_interp_spline

            spline = make_interp_spline(time, columns["q"], k=5)
            columns = {"v": spline(time, nu=1), "a": spline(time, nu=2), **columns}
        trajectory = sampled(robot.joints, time - time[0], columns["q"], columns["v"], columns["a"])
    if not np.isfinite(trajectory.coefficients).all():
        raise LogError("the motion is too fast for any number", where=where, remedy="check the units of t and of the positions")
    for lower, upper in (("q", "v"), ("v", "a")):
        if upper not in given:
            continue
        x, rate = columns[lower], columns[upper]  # the integral of rates matches the signal; all-zero rates (stop points) pass
        total = np.vstack([np.zeros(robot.n), np.cumsum(np.diff(time)[:, None] * (rate[1:] + rate[:-1]) / 2, axis=0)])
        size = np.maximum(x.std(axis=0), total.std(axis=0))
        wrong = (total - x).std(axis=0) > np.maximum(MOST_APART * size, AT_REST * size.max(initial=0.0))
        for j in np.flatnonzero(wrong & rate.any(axis=0)):
            raise LogError(
                f"column '{upper}_{robot.joints[j]}' is not the derivative of '{lower}_{robot.joints[j]}'",
                where=where,
                got=f"a change of {np.ptp(total[:, j]):.3g} over the motion",
                expected=f"{np.ptp(x[:, j]):.3g}",
                remedy=f"correct its unit, or remove the {upper}_ columns: they are made from the positions then",
            )
    return trajectory


def why_recorded(path: str | Path, trajectory: PiecewisePolynomial) -> str:
    """Explains why a motion was recorded rather than planned.

    Args:
        trajectory: The result of :func:`read_trajectory`.

    Returns:
        The evidence in words: efforts in the file, or accelerations that jump from row to row; "" for a planned motion.

    Raises:
        MissingFileError: The file cannot be read.
    """
    header = open_text(path).names
    efforts = [name for name in header if name in {f"{prefix}_{joint}" for prefix in _EFFORTS for joint in trajectory.joints}]
    if efforts:
        return f"it holds efforts ('{efforts[0]}')"
    _, _, a = trajectory.evaluate(trajectory.breaks)
    jumps, size = np.median(np.abs(np.diff(a, 2, axis=0)) / 2, axis=0), np.median(np.abs(a), axis=0)
    rough = np.flatnonzero((jumps > ROUGH * size) & (size > AT_REST * size.max()))
    if len(a) < _MANY or not len(rough):
        return ""
    return (
        f"the acceleration of '{trajectory.joints[rough[0]]}' jumps from row to row, as that of noisy or rounded positions does"
    )
