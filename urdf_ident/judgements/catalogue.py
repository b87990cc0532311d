"""Catalogue of all findings by their stable ids: meaning, severity and remedy (docs/findings.md)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class FindingKind:
    """One kind of finding.

    Attributes:
        severity: Its usual severity, one of ``findings.SEVERITIES``; some are more severe if more of the log is affected.
        size: What the finding's ``size`` measures, with its unit; empty if it has none.
    """

    severity: str
    meaning: str
    remedy: str
    size: str = ""


KNOWN: dict[str, dict[str, FindingKind]] = {
    "Rows and values": {
        "log-unreadable": FindingKind("refused", "The log cannot be read.", "The message says what to do."),
        "note": FindingKind("info", "What the reader chose or ignored.", "Read it."),
        "signals-joined": FindingKind(
            "repaired", "Signals in rows without positions, with a clock of their own; interpolated.", "None needed."
        ),
        "rows-unreadable": FindingKind(
            "repaired", "Rows without a time or any position.", "None needed; above 5 % record again."
        ),
        "rows-interpolated": FindingKind(
            "repaired",
            "Rows on straight lines in all efforts, with which the logger bridged gaps; left out.",
            "Find out why samples are lost.",
        ),
        "too-few-rows": FindingKind("refused", "Fewer than 100 usable rows.", "Record more."),
        "values-impossible": FindingKind(
            "repaired", "Values that are not finite or above 1e7; left out.", "Check the sensor and its error value."
        ),
        "values-spike": FindingKind(
            "repaired", "Single samples far from their neighbours; left out.", "Check the connection of the sensor."
        ),
        "values-sentinel": FindingKind(
            "repaired",
            "One value that occurs repeatedly, far from its neighbours, and stands for missing data; left out.",
            "Check which value the logger writes for missing data.",
        ),
        "values-missing": FindingKind(
            "repaired", "Rows whose position or effort is missing.", "None needed; above 5 % record again."
        ),
        "values-bridged": FindingKind(
            "repaired", "Missing values of a signal that is not required, interpolated.", "None needed."
        ),
        "signal-dropped": FindingKind(
            "repaired", "A signal that is not required has too many gaps and is not used.", "Check it."
        ),
        "channel-missing": FindingKind(
            "refused", "More than 5 % of a joint's positions or efforts are missing.", "Check the column."
        ),
        "channel-frozen": FindingKind(
            "repaired",
            "A position or effort freezes during a motion; the rows are left out.",
            "Check the connection to the sensor.",
        ),
        "frozen-too-long": FindingKind("refused", "More than a fifth of the log is frozen.", "Record it again."),
    },
    "Time": {
        "time-unit": FindingKind(
            "refused", "The time column cannot be in seconds.", "`log: {units: {time: ms}}`, or `log.rate`."
        ),
        "clock-stands": FindingKind(
            "refused",
            "The time column does not increase, or only every so many rows, because it has too few digits.",
            "Export it with all digits, or check `log.columns.time`.",
        ),
        "time-backwards": FindingKind("refused", "Time runs backwards.", "Check the time column, or split the log."),
        "time-out-of-order": FindingKind("repaired", "Single rows out of order in time, left out.", "None needed."),
        "stamps-repeated": FindingKind("repaired", "Rows with the time of the row before, left out.", "None needed."),
        "samples-repeated": FindingKind(
            "repaired", "Rows that repeat the sample before them during a motion, left out.", "None needed."
        ),
        "samples-lost": FindingKind(
            "info",
            "Samples of the device are not in the log; interpolated. A warning where the stamps do not show it: the clock is "
            "set forward.",
            "None needed; for a warning, log the device's own stamps.",
        ),
        "runs-joined": FindingKind(
            "repaired",
            "The joints jump from one row to the next: several runs in one file; split there.",
            "None needed.",
        ),
        "clock-jitter": FindingKind("repaired", "The device's even clock was recovered from uneven stamps.", "None needed."),
        "clock-uneven": FindingKind(
            "repaired",
            "Uneven intervals; the log is resampled. Refused where most rows come in bursts.",
            "None needed; if refused, log the device's own stamps.",
        ),
        "clock-wrapped": FindingKind(
            "repaired", "The clock starts again at midnight, or at the end of its counter's range; continued.", "None needed."
        ),
        "clock-gaps": FindingKind("repaired", "Pauses in the clock; the log is split there.", "None needed."),
    },
    "Motion and channels": {
        "position-wrapped": FindingKind(
            "repaired",
            "Positions jump by whole turns, or (a warning) by the range of their counter; unwrapped.",
            "None needed for whole turns; otherwise check the zero, or log turns as well.",
        ),
        "position-jump": FindingKind(
            "warning",
            "A position jumps from one row to the next while the motion goes on; the later rows are shifted back.",
            "An encoder slipped or a counter started again: check which part has the right zero, or leave out the log.",
            "first jump [rad or m]",
        ),
        "position-unit": FindingKind(
            "refused",
            "Positions are in another unit than described: degrees, radians, revolutions, metres, millimetres or counts.",
            "`log: {units: {position: deg}}`, or the unit that the message names.",
        ),
        "position-beyond-limit": FindingKind("warning", "Positions exceed the URDF's limits.", "Check zeros, signs and units."),
        "at-rest": FindingKind("refused", "The robot does not move.", "Record a motion that moves every joint."),
        "too-short": FindingKind("refused", "Less than 1 s of motion.", "Record 5 s or more."),
        "short": FindingKind("warning", "Less than 5 s of motion.", "Record 5 s or more.", "duration of the motion [s]"),
        "joint-at-rest": FindingKind(
            "warning", "A joint does not move; its friction cannot be identified.", "Move it, or lock it."
        ),
        "locked-joint": FindingKind(
            "warning",
            "A joint that the project locks moves, or stands elsewhere, which changes gravity torques or inertias of others; "
            "the log is refused from 20 % on.",
            "Do not lock it, or lock it where it stands.",
            "largest change of a gravity torque or inertia (1 = 100 %)",
        ),
        "effort-missing": FindingKind("refused", "The log holds no efforts.", "Log them, or name their columns."),
        "effort-dead": FindingKind(
            "refused", "A joint moves and its effort never changes.", "Check the column and its sensor."
        ),
        "effort-clipped": FindingKind(
            "warning",
            "An effort is at the end of its range; the rows are left out.",
            "Widen the range of the sensor or the logger.",
            "share of the rows",
        ),
        "effort-wrapped": FindingKind(
            "warning",
            "An effort exceeds the range of its counter and comes back at the other end; joined.",
            "Log the effort with more bits.",
            "range of the counter [unit of the effort]",
        ),
        "effort-dead-zone": FindingKind(
            "warning",
            "An effort is exactly zero while its joint moves, and hardly ever near zero.",
            "Log what the sensor measures, without a threshold.",
            "share of the rows in which the joint moves",
        ),
        "effort-quantised": FindingKind(
            "warning", "The effort of a joint comes in coarse steps.", "Log it with more digits.", "step [unit of the effort]"
        ),
        "effort-commanded": FindingKind(
            "warning", "The efforts are a target, or computed from the URDF.", "Log the measured efforts."
        ),
        "effort-twice": FindingKind("refused", "The same effort is in the columns of two joints.", "Check the columns."),
        "position-twice": FindingKind(
            "warning", "The positions of two joints are equal in every row.", "Check the columns; move the joints differently."
        ),
        "effort-unsigned": FindingKind("refused", "An effort is logged without its sign.", "Log it with its sign."),
        "position-quantised": FindingKind(
            "warning",
            "The position of a joint comes in coarse steps, which the low-pass leaves in its acceleration.",
            "Log it with more digits.",
            "step [rad or m]",
        ),
        "position-held": FindingKind(
            "warning", "A position is logged at a lower rate than the others.", "Log it at their rate.", "its rate [Hz]"
        ),
        "effort-held": FindingKind(
            "warning",
            "An effort is logged at a lower rate than the others, or than its motion requires.",
            "Log it at the rate of the positions.",
            "its rate [Hz]",
        ),
        "effort-slewed": FindingKind(
            "warning",
            "The rate of change of an effort is limited, and often at that limit.",
            "Log the effort without a rate limit.",
            "rate [unit of the effort per s]",
        ),
        "effort-constant": FindingKind("warning", "The effort of a joint at rest never changes.", "Check the column."),
        "constants-unknown": FindingKind(
            "warning",
            "Torque constants are unknown; efforts are not compared with the URDF (`inspect` only).",
            "Give logs with and without the payload together, or `drive.gain`.",
        ),
        "gears-missing": FindingKind(
            "warning", "A log of the motor side has gear ratios of 1.", "Give `drive.reduction`, or leave out `log.side`."
        ),
        "effort-beyond-limit": FindingKind(
            "warning",
            "An effort exceeds twice the URDF's limit, or its largest weight.",
            "Check its unit (a current, mN·m) and side (motor).",
        ),
        "not-usable": FindingKind("refused", "No usable data are left after conditioning.", "See the message."),
    },
    "Velocities": {
        "velocity-agrees": FindingKind("info", "The logged velocity is dq/dt.", "None needed."),
        "velocity-lag": FindingKind("repaired", "The logged velocity lags; dq/dt is used.", "None needed."),
        "velocity-dead": FindingKind("repaired", "A logged velocity never changes; dq/dt is used.", "Check the column."),
        "velocity-scale": FindingKind("repaired", "A logged velocity is scaled; dq/dt is used.", "Check its unit."),
        "velocity-unrelated": FindingKind(
            "repaired", "A logged velocity does not follow dq/dt; dq/dt is used.", "Check the column."
        ),
        "velocity-sign": FindingKind(
            "refused", "A logged velocity has the opposite sign of dq/dt.", "Correct one of the signs."
        ),
        "velocity-unit": FindingKind("refused", "Velocity or position is in another unit.", "`log: {units: ...}`."),
        "velocities-exchanged": FindingKind(
            "refused", "The velocities of two joints are exchanged.", "Correct the column order."
        ),
    },
    "Physics": {
        "effort-sign": FindingKind(
            "refused",
            "The effort of one joint, or of all joints, has the wrong sign: inertia or friction would be negative.",
            "Use a negative `drive.gain`.",
        ),
        "position-sign": FindingKind("refused", "The position of a joint has the wrong sign.", "Reverse its column."),
        "axis-sign": FindingKind(
            "refused", "Position and effort of a joint both have the wrong sign.", "Reverse the URDF's axis."
        ),
        "joints-exchanged": FindingKind("refused", "Columns of two joints are exchanged.", "Correct the order of the columns."),
        "position-zero": FindingKind(
            "refused",
            "The zero of a joint is not that of the URDF, or differs between the logs.",
            "`drive: {joint_offset: [...]}`.",
            "offset to be added [rad]",
        ),
        "position-nonlinear": FindingKind(
            "warning",
            "The positions of a joint have a periodic error along its travel.",
            "Check the mounting and calibration of the encoder.",
            "amplitude [rad or m]",
        ),
        "position-play": FindingKind(
            "warning",
            "The positions of a joint stand still at reversals, and then lag.",
            "Check for backlash between joint and encoder.",
            "backlash [rad or m]",
        ),
        "position-scale": FindingKind(
            "warning",
            "The positions of a joint are too large or too small to match the efforts of the other joints.",
            "Check its gear ratio and the counts of its encoder.",
            "fraction by which they are too large",
        ),
        "position-coupled": FindingKind(
            "warning",
            "The position of a joint counts that of the joint before in.",
            "Subtract that joint's column, or give `drive.reduction` as a matrix.",
        ),
        "position-compliance": FindingKind(
            "warning",
            "The positions of a joint lead its motion in the direction of its effort, as before a gear that gives way.",
            "Log the encoder of the joint, or both encoders.",
            "root mean square of the lead [rad or m]",
        ),
        "position-late": FindingKind(
            "warning",
            "The positions of a joint lag or lead the motion that the efforts of the other joints show.",
            "Check filter, rate and clock of its encoder.",
            "delay [s], negative if they lead",
        ),
        "joint-origin": FindingKind(
            "warning",
            "The axis of a joint is not where the URDF has it on its parent link.",
            "Check that the URDF is of this very robot, and the joint's `<origin>`.",
            "distance [m]",
        ),
        "joint-axis": FindingKind(
            "warning",
            "The axis of a joint is tilted against the URDF's.",
            "Check that the URDF is of this very robot, and the joint's `<origin>` and `<axis>`.",
            "angle [rad], if small",
        ),
        "effort-crosstalk": FindingKind(
            "warning", "The effort of one joint contains a part of another's.", "Check wiring, columns, `drive.reduction`."
        ),
        "time-scale": FindingKind(
            "refused",
            "The clock is wrong by a factor: dq/dt is a multiple of all velocities, or inertia and gravity disagree, as with "
            "other lengths of the links.",
            "Correct the time column's unit or `log.rate`, or the URDF's lengths.",
            "true duration of one logged second [s]",
        ),
        "gravity-direction": FindingKind(
            "refused", "The direction of gravity differs from the URDF's base.", "`robot: {gravity: [x, y, z]}`.", "angle [°]"
        ),
        "effort-without-gravity": FindingKind(
            "refused",
            "The efforts do not contain the gravity torque, only a part of it, or a part in addition.",
            "Log the whole joint torque, as measured.",
            "missing fraction of the URDF's gravity torque, negative if in addition",
        ),
        "effort-scale": FindingKind(
            "refused",
            "The scale of a joint's effort does not match that of the others.",
            "Correct its `drive.gain`.",
            "factor of the logged effort",
        ),
        "effort-scale-open": FindingKind(
            "info",
            "The log does not determine the scale of some joints' efforts, because no other joint's effort depends on it.",
            "If in doubt, compare `drive.gain` and the gear ratio with the data sheet, or record a motion with a known load "
            "(`drive.payload`).",
        ),
        "time-scale-open": FindingKind(
            "info",
            "The log does not determine the scale of its time, because hardly any joint works against gravity.",
            "If in doubt, compare the duration of the log with a watch.",
        ),
        "spring": FindingKind(
            "warning",
            "A joint carries a torque that depends on its position but is not gravity.",
            "None needed with `model: {friction: auto}`; otherwise list `spring` or `balancer`.",
        ),
        "effort-delay": FindingKind(
            "warning", "The efforts lag the positions.", "Check the log's filters and clocks.", "delay [s]"
        ),
        "effort-asymmetric": FindingKind(
            "warning", "Positive and negative efforts of a joint differ in scale.", "Check both directions of its sensor."
        ),
        "effort-saturates": FindingKind(
            "warning",
            "Large efforts of a joint, or of all joints, are too small for the motion.",
            "Widen the range of the sensor.",
            "fraction of the largest effort",
        ),
        "effort-progressive": FindingKind(
            "warning", "Large efforts of a joint are too large for the motion.", "Check its torque constant at high currents."
        ),
        "effort-periodic": FindingKind(
            "warning",
            "An effort oscillates at a frequency that the motion does not explain, in time and not with the position.",
            "Check shielding and supply of its sensor, the drives beside it, and its control loop.",
            "frequency [Hz]",
        ),
        "effort-bandwidth": FindingKind(
            "warning",
            "The efforts were filtered below the bandwidth of the motion.",
            "Log unfiltered efforts.",
            "bandwidth [Hz]",
        ),
        "position-bandwidth": FindingKind(
            "warning",
            "Positions hold less bandwidth than the motion: filtered before logging, too few samples, or too much noise.",
            "Log unfiltered positions, at a higher rate or with less noise, or move more slowly.",
            "bandwidth [Hz]",
        ),
        "physics-undecided": FindingKind(
            "warning",
            "One of the above is wrong, but the log does not show which; or one is not excluded, and would change the model by "
            "more than half its error: see `candidates`.",
            "The remedy names a test that distinguishes them.",
            "gain, a sum of logarithms",
        ),
    },
    "Changes with time": {
        "payload-changes": FindingKind(
            "warning",
            "The load on the last link differs in a part of the log.",
            "Split the log there.",
            "gain, a sum of logarithms",
        ),
        "effort-drift": FindingKind(
            "warning",
            "Friction, offset or scale of the efforts drift.",
            "Warm up, then record again.",
            "gain, a sum of logarithms",
        ),
        "contact": FindingKind(
            "warning", "A part of the log contains torques that are not the robot's own.", "Cut it out.", "gain, a logarithm"
        ),
        "contact-spring": FindingKind(
            "warning",
            "A force pulls the last link toward a fixed point, as a hose or a cable does.",
            "Record without it, or log it as a wrench.",
        ),
        "contact-force": FindingKind(
            "warning",
            "What a model leaves unexplained in all joints is a force on the last link that varies with time.",
            "Record without contact, hoses and loads that swing or change, or log it as a wrench.",
            "share of the squared residuals, beyond chance",
        ),
        "log-differs": FindingKind(
            "warning",
            "One log contradicts the others, or a joint's effort is explained far worse in it than in any other.",
            "Leave it out, or find out what was changed.",
            "gain, a sum of logarithms",
        ),
        "logs-disagree": FindingKind(
            "warning",
            "Logs contradict each other, but the data do not show which one is wrong.",
            "Inspect each log by itself.",
            "gain, a sum of logarithms",
        ),
    },
}
