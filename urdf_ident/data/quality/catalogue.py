"""Every finding an inspection can make, by its stable id: what it means, how bad it is, what to do (docs/findings.md)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Kind:
    """One kind of finding.

    Attributes:
        severity: What it usually is: one of ``findings.SEVERITIES``; some are worse where more of the log is concerned.
        meaning: What is the matter.
        remedy: What can be done.
        size: What the finding's ``size`` measures, with its unit; empty where it has none.
    """

    severity: str
    meaning: str
    remedy: str
    size: str = ""


KNOWN: dict[str, dict[str, Kind]] = {
    "Rows and values": {
        "note": Kind("info", "What the reader chose or ignored.", "Read it."),
        "rows-unreadable": Kind("repaired", "Rows without a time or any position.", "None needed; above 5 % record again."),
        "too-few-rows": Kind("refused", "Fewer than 100 usable rows.", "Record more."),
        "values-impossible": Kind("repaired", "Values that are not finite or above 1e7.", "Check the sensor or its sentinel."),
        "values-spike": Kind("repaired", "Single samples far from their neighbours.", "Check the connection."),
        "values-sentinel": Kind(
            "repaired",
            "One value, far from its neighbours again and again, that stands for none.",
            "What does the logger write where it has no value?",
        ),
        "values-missing": Kind("repaired", "Rows whose position or effort is missing.", "None needed; above 5 % record again."),
        "values-bridged": Kind("repaired", "Missing values of a signal that is not required, interpolated.", "None needed."),
        "signal-dropped": Kind("repaired", "A signal that is not required has too many holes and is not used.", "Check it."),
        "channel-missing": Kind("refused", "More than 5 % of a joint's positions or efforts are missing.", "Check the column."),
        "channel-frozen": Kind(
            "repaired",
            "A position or effort freezes during a motion; the rows are left out.",
            "Check the connection to the sensor.",
        ),
        "frozen-too-long": Kind("refused", "More than a fifth of the log is frozen.", "Record it again."),
    },
    "Time": {
        "time-unit": Kind("refused", "The intervals are no robot's in seconds.", "`log: {units: {time: ms}}`, or `log.rate`."),
        "clock-stands": Kind("refused", "The time column does not increase.", "Check `log.columns.time`."),
        "time-backwards": Kind("refused", "Time runs backwards.", "Check the time column, or split the log."),
        "time-out-of-order": Kind("repaired", "Single rows out of order in time, left out.", "None needed."),
        "stamps-repeated": Kind("repaired", "Rows with the time of the row before, left out.", "None needed."),
        "samples-repeated": Kind("repaired", "Rows that repeat the sample before them during a motion, left out.", "None."),
        "samples-lost": Kind("info", "Samples of the device are not in the log; interpolated.", "None needed."),
        "clock-jitter": Kind("repaired", "The device's even clock was recovered from uneven stamps.", "None needed."),
        "clock-uneven": Kind("repaired", "Uneven intervals; the log is resampled.", "None needed."),
        "clock-gaps": Kind("repaired", "Pauses in the clock; the log is split there.", "None needed."),
    },
    "Motion and channels": {
        "position-wrapped": Kind("repaired", "Positions jump by whole turns; joined.", "None needed."),
        "position-unit": Kind("refused", "Positions are in degrees or millimetres.", "`log: {units: {position: deg}}`."),
        "position-beyond-limit": Kind("warning", "Positions leave the URDF's limits.", "Check zeros, signs and units."),
        "at-rest": Kind("refused", "The robot does not move.", "Record a motion that moves every joint."),
        "too-short": Kind("refused", "Less than 1 s of motion.", "Record 5 s or more."),
        "short": Kind("warning", "Less than 5 s of motion.", "Record 5 s or more."),
        "joint-at-rest": Kind("warning", "A joint does not move; its friction cannot be seen.", "Move it, or lock it."),
        "effort-missing": Kind("refused", "The log holds no efforts.", "Log them, or name their columns."),
        "effort-dead": Kind("refused", "A joint moves and its effort never changes.", "Check the column and its sensor."),
        "effort-clipped": Kind(
            "warning",
            "An effort stands at the end of its range; the rows are left out.",
            "Widen the range of the sensor or the logger.",
            "share of the rows",
        ),
        "effort-quantised": Kind(
            "warning", "The effort of a joint comes in coarse steps.", "Log it with more digits.", "step [unit of the effort]"
        ),
        "effort-commanded": Kind("warning", "The efforts are the controller's target.", "Log the measured ones."),
        "effort-constant": Kind("warning", "The effort of a joint at rest never changes.", "Check the column."),
        "effort-beyond-limit": Kind("warning", "Above twice the effort limit.", "Is it a current, or motor-side?"),
        "not-usable": Kind("refused", "Conditioning leaves nothing.", "See the message."),
    },
    "Velocities": {
        "velocity-agrees": Kind("info", "The logged velocity is dq/dt.", "None needed."),
        "velocity-lag": Kind("repaired", "The logged velocity lags; dq/dt is used.", "None needed."),
        "velocity-dead": Kind("repaired", "A logged velocity never changes; dq/dt is used.", "Check the column."),
        "velocity-scale": Kind("repaired", "A logged velocity is scaled; dq/dt is used.", "Check its unit."),
        "velocity-unrelated": Kind("repaired", "A logged velocity does not follow dq/dt; dq/dt is used.", "Check the column."),
        "velocity-sign": Kind("refused", "A logged velocity has the opposite sign of dq/dt.", "Correct one of the signs."),
        "velocity-unit": Kind("refused", "Velocity or position is in another unit.", "`log: {units: ...}`."),
        "velocities-exchanged": Kind("refused", "The velocities of two joints are exchanged.", "Correct the column order."),
    },
    "Physics": {
        "effort-sign": Kind("refused", "The effort of a joint (or of all) has the wrong sign.", "A negative `drive.gain`."),
        "position-sign": Kind("refused", "The position of a joint has the wrong sign.", "Reverse its column."),
        "axis-sign": Kind("refused", "Position and effort of a joint both have the wrong sign.", "Reverse the URDF's axis."),
        "joints-exchanged": Kind("refused", "Columns of two joints are exchanged.", "Correct the order of the columns."),
        "position-zero": Kind(
            "refused", "The zero of a joint is not the URDF's.", "`drive: {joint_offset: [...]}`.", "what has to be added [rad]"
        ),
        "time-scale": Kind(
            "refused",
            "The clock is wrong by a factor: dq/dt is k times all velocities, or inertia and gravity disagree.",
            "Correct the time column's unit or `log.rate`.",
            "real seconds for one second",
        ),
        "gravity-direction": Kind("refused", "Gravity comes from another side.", "`robot: {gravity: [x, y, z]}`.", "angle [°]"),
        "effort-without-gravity": Kind("refused", "The efforts do not hold the robot.", "Log the whole joint torque."),
        "effort-scale": Kind(
            "refused",
            "The effort of a joint is scaled against the others'.",
            "Correct its `drive.gain`.",
            "factor of the logged effort",
        ),
        "spring": Kind(
            "warning",
            "A joint carries a torque that depends on its position and is no gravity.",
            "None with `model: {friction: auto}`; else list `spring` or `balancer`.",
        ),
        "effort-delay": Kind("warning", "The efforts lag the positions.", "Check the log's filters and clocks.", "delay [s]"),
        "effort-bandwidth": Kind(
            "warning",
            "The efforts were filtered below what the motion asks for.",
            "Log unfiltered efforts.",
            "bandwidth [Hz]",
        ),
        "physics-undecided": Kind(
            "warning",
            "Something of the above is wrong, and the log does not decide which: see `candidates`.",
            "The remedy says what would decide it.",
            "gain, a sum of logarithms",
        ),
    },
    "Changes with time": {
        "payload-changes": Kind(
            "warning",
            "The load on the last link differs in a part of the log.",
            "Split the log there.",
            "gain, a sum of logarithms",
        ),
        "effort-drift": Kind(
            "warning", "Friction, offset or scale of the efforts drift.", "Warm up; record again.", "gain, a sum of logarithms"
        ),
        "contact": Kind("warning", "A part of the log is not the robot's own dynamics.", "Cut it out.", "gain, a logarithm"),
        "log-differs": Kind(
            "warning", "One log contradicts the others.", "Leave it out, or find what was changed.", "gain, a sum of logarithms"
        ),
        "logs-disagree": Kind(
            "warning",
            "Logs contradict each other, and the data do not say which is wrong.",
            "Inspect each alone.",
            "gain, a sum of logarithms",
        ),
    },
}


def page() -> str:
    """The page docs/findings.md.

    Returns:
        Markdown.
    """
    lines = [
        "# Findings",
        "",
        "Every finding of `urdf-ident inspect --json` and `identify --json` has a stable `id`. This page is generated from",
        "`urdf_ident/data/quality/catalogue.py` by `python scripts/docs/findings.py`.",
        "",
        "`info` says what was seen; `repaired` was put right; `warning` is a doubt, said in the summary; `refused` ends",
        "`identify` with exit code 1 unless `--force` is given. Each finding has a `joint` or none, `rows`, a `message`, a",
        "`remedy`, a `size` where one is stated here, and a `certainty` from 0 to 1 where causes were compared.",
        "",
    ]
    for title, kinds in KNOWN.items():
        lines += [f"## {title}", "", "| id | usually | meaning | what to do | size |", "|---|---|---|---|---|"]
        lines += [f"| `{name}` | {k.severity} | {k.meaning} | {k.remedy} | {k.size} |" for name, k in kinds.items()]
        lines.append("")
    return "\n".join(lines)
