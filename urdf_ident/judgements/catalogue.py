"""The catalogue: the one enumeration of everything that is judged, with severity, meaning and remedy (docs/findings.md)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

#: From harmless to unusable: information; a repair; a doubt; a reason not to use the log, or the result.
Severity = Literal["info", "repaired", "warning", "refused"]
SEVERITIES: tuple[Severity, ...] = ("info", "repaired", "warning", "refused")


@dataclass(frozen=True)
class Entry:
    """What is known of one kind of judgement.

    Attributes:
        severity: Its usual severity; some are more severe if more of the log is affected.
        meaning: One sentence for the documentation.
        remedy: What to do about it, for the documentation.
        size: What the judgement's ``size`` measures, with its unit; empty if it has none.
        tolerated: Whether a result can be good although a log has a warning of this kind.
        of_payload: Whether a wrong description of a known payload causes it.
        symptom: Whether a fault of the logs (a unit, a sign, a clock) leads to it.
    """

    severity: Severity
    meaning: str
    remedy: str
    size: str = ""
    tolerated: bool = False
    of_payload: bool = False
    symptom: bool = False


class Id(StrEnum):
    """Stable ids of all judgements, in the order in which they are told at equal severity: causes before consequences."""

    entry: Entry

    def __new__(cls, id: str, entry: Entry) -> Id:
        """Creates a member that is its id, with its entry."""
        member = str.__new__(cls, id)
        member._value_ = id
        member.entry = entry
        return member

    # Said first
    MASS_AT_LIMIT = (
        "mass-at-limit",
        Entry(
            "warning",
            "The mass of a body is at a limit of the optimisation: the data or the URDF's structure contradict it.",
            "Check signs, units and the mass in the URDF, or raise `consistency.mass_factor`.",
        ),
    )
    JOINT_ERROR = (
        "joint-error",
        Entry(
            "warning",
            "The error of a joint on other motions exceeds 40 % of its torque, which is not small beside that of the others.",
            "Check its sign, scale and columns, or what else acts on it.",
            symptom=True,
            size="error over torque",
        ),
    )

    # Rows and values
    LOG_UNREADABLE = "log-unreadable", Entry("refused", "The log cannot be read.", "The message says what to do.")
    NOTE = "note", Entry("info", "What the reader chose or ignored.", "Read it.")
    SIGNALS_JOINED = (
        "signals-joined",
        Entry("repaired", "Signals in rows without positions, with a clock of their own; interpolated.", "None needed."),
    )
    ROWS_UNREADABLE = (
        "rows-unreadable",
        Entry("repaired", "Rows without a time or any position.", "None needed; above 5 % record again."),
    )
    ROWS_INTERPOLATED = (
        "rows-interpolated",
        Entry(
            "repaired",
            "Rows on straight lines in all efforts, with which the logger bridged gaps; left out.",
            "Find out why samples are lost.",
        ),
    )
    TOO_FEW_ROWS = "too-few-rows", Entry("refused", "Fewer than 100 usable rows.", "Record more.")
    VALUES_IMPOSSIBLE = (
        "values-impossible",
        Entry("repaired", "Values that are not finite or above 1e7; left out.", "Check the sensor and its error value."),
    )
    VALUES_SPIKE = (
        "values-spike",
        Entry("repaired", "Single samples far from their neighbours; left out.", "Check the connection of the sensor."),
    )
    VALUES_SENTINEL = (
        "values-sentinel",
        Entry(
            "repaired",
            "One value that occurs repeatedly, far from its neighbours, and stands for missing data; left out.",
            "Check which value the logger writes for missing data.",
        ),
    )
    VALUES_MISSING = (
        "values-missing",
        Entry("repaired", "Rows whose position or effort is missing.", "None needed; above 5 % record again."),
    )
    VALUES_BRIDGED = (
        "values-bridged",
        Entry("repaired", "Missing values of a signal that is not required, interpolated.", "None needed."),
    )
    SIGNAL_DROPPED = (
        "signal-dropped",
        Entry("repaired", "A signal that is not required has too many gaps and is not used.", "Check it."),
    )
    CHANNEL_MISSING = (
        "channel-missing",
        Entry("refused", "More than 5 % of a joint's positions or efforts are missing.", "Check the column."),
    )
    CHANNEL_FROZEN = (
        "channel-frozen",
        Entry(
            "repaired",
            "A position or effort freezes during a motion; the rows are left out.",
            "Check the connection to the sensor.",
            tolerated=True,
        ),
    )
    FROZEN_TOO_LONG = "frozen-too-long", Entry("refused", "More than a fifth of the log is frozen.", "Record it again.")
    # Time
    TIME_UNIT = (
        "time-unit",
        Entry("refused", "The time column cannot be in seconds.", "`log: {units: {time: ms}}`, or `log.rate`."),
    )
    CLOCK_STANDS = (
        "clock-stands",
        Entry(
            "refused",
            "The time column does not increase, or only every so many rows, because it has too few digits.",
            "Export it with all digits, or check `log.columns.time`.",
        ),
    )
    TIME_BACKWARDS = "time-backwards", Entry("refused", "Time runs backwards.", "Check the time column, or split the log.")
    TIME_OUT_OF_ORDER = "time-out-of-order", Entry("repaired", "Single rows out of order in time, left out.", "None needed.")
    STAMPS_REPEATED = "stamps-repeated", Entry("repaired", "Rows with the time of the row before, left out.", "None needed.")
    SAMPLES_REPEATED = (
        "samples-repeated",
        Entry("repaired", "Rows that repeat the sample before them during a motion, left out.", "None needed."),
    )
    SAMPLES_LOST = (
        "samples-lost",
        Entry(
            "info",
            "Samples of the device are not in the log; interpolated. A warning where the stamps do not show it: the clock is "
            "set forward.",
            "None needed; for a warning, log the device's own stamps.",
        ),
    )
    RUNS_JOINED = (
        "runs-joined",
        Entry("repaired", "The joints jump from one row to the next: several runs in one file; split there.", "None needed."),
    )
    CLOCK_JITTER = (
        "clock-jitter",
        Entry("repaired", "The device's even clock was recovered from uneven stamps.", "None needed."),
    )
    CLOCK_UNEVEN = (
        "clock-uneven",
        Entry(
            "repaired",
            "Uneven intervals; the log is resampled. Refused where most rows come in bursts.",
            "None needed; if refused, log the device's own stamps.",
        ),
    )
    CLOCK_SLIP = (
        "clock-slip",
        Entry("info", "The clock slips: the positions of all joints jump in proportion to their velocities.", "None needed."),
    )
    CLOCK_WRAPPED = (
        "clock-wrapped",
        Entry(
            "repaired", "The clock starts again at midnight, or at the end of its counter's range; continued.", "None needed."
        ),
    )
    CLOCK_GAPS = "clock-gaps", Entry("repaired", "Pauses in the clock; the log is split there.", "None needed.")
    # Motion and channels
    POSITION_WRAPPED = (
        "position-wrapped",
        Entry(
            "repaired",
            "Positions jump by whole turns, or (a warning) by the range of their counter; unwrapped.",
            "None needed for whole turns; otherwise check the zero, or log turns as well.",
            tolerated=True,
        ),
    )
    POSITION_JUMP = (
        "position-jump",
        Entry(
            "warning",
            "A position jumps from one row to the next while the motion goes on; the later rows are shifted back.",
            "An encoder slipped or a counter started again: check which part has the right zero, or leave out the log.",
            size="first jump [rad or m]",
        ),
    )
    POSITION_UNIT = (
        "position-unit",
        Entry(
            "refused",
            "Positions are in another unit than described: degrees, radians, revolutions, metres, millimetres or counts.",
            "`log: {units: {position: deg}}`, or the unit that the message names.",
        ),
    )
    POSITION_BEYOND_LIMIT = (
        "position-beyond-limit",
        Entry("warning", "Positions exceed the URDF's limits.", "Check zeros, signs and units.", tolerated=True),
    )
    AT_REST = "at-rest", Entry("refused", "The robot does not move.", "Record a motion that moves every joint.")
    TOO_SHORT = "too-short", Entry("refused", "Less than 1 s of motion.", "Record 5 s or more.")
    SHORT = (
        "short",
        Entry("warning", "Less than 5 s of motion.", "Record 5 s or more.", size="duration of the motion [s]", tolerated=True),
    )
    JOINT_AT_REST = (
        "joint-at-rest",
        Entry("warning", "A joint does not move; its friction cannot be identified.", "Move it, or lock it.", tolerated=True),
    )
    LOCKED_JOINT = (
        "locked-joint",
        Entry(
            "warning",
            "A joint that the project locks moves, or stands elsewhere, which changes gravity torques or inertias of others; "
            "the log is refused from 20 % on.",
            "Do not lock it, or lock it where it stands.",
            size="largest change of a gravity torque or inertia (1 = 100 %)",
        ),
    )
    EFFORT_MISSING = "effort-missing", Entry("refused", "The log holds no efforts.", "Log them, or name their columns.")
    EFFORT_DEAD = (
        "effort-dead",
        Entry("refused", "A joint moves and its effort never changes.", "Check the column and its sensor."),
    )
    EFFORT_CLIPPED = (
        "effort-clipped",
        Entry(
            "warning",
            "An effort is at the end of its range; the rows are left out.",
            "Widen the range of the sensor or the logger.",
            size="share of the rows",
        ),
    )
    EFFORT_WRAPPED = (
        "effort-wrapped",
        Entry(
            "warning",
            "An effort exceeds the range of its counter and comes back at the other end; joined.",
            "Log the effort with more bits.",
            size="range of the counter [unit of the effort]",
        ),
    )
    EFFORT_DEAD_ZONE = (
        "effort-dead-zone",
        Entry(
            "warning",
            "An effort is exactly zero while its joint moves, and hardly ever near zero.",
            "Log what the sensor measures, without a threshold.",
            size="share of the rows in which the joint moves",
        ),
    )
    EFFORT_QUANTISED = (
        "effort-quantised",
        Entry(
            "warning",
            "The effort of a joint comes in coarse steps.",
            "Log it with more digits.",
            size="step [unit of the effort]",
        ),
    )
    EFFORT_COMMANDED = (
        "effort-commanded",
        Entry("warning", "The efforts are a target, or computed from the URDF.", "Log the measured efforts."),
    )
    EFFORT_TWICE = "effort-twice", Entry("refused", "The same effort is in the columns of two joints.", "Check the columns.")
    POSITION_TWICE = (
        "position-twice",
        Entry(
            "warning", "The positions of two joints are equal in every row.", "Check the columns; move the joints differently."
        ),
    )
    EFFORT_UNSIGNED = "effort-unsigned", Entry("refused", "An effort is logged without its sign.", "Log it with its sign.")
    POSITION_QUANTISED = (
        "position-quantised",
        Entry(
            "warning",
            "The position of a joint comes in coarse steps, which the low-pass leaves in its acceleration.",
            "Log it with more digits.",
            size="step [rad or m]",
        ),
    )
    POSITION_HELD = (
        "position-held",
        Entry(
            "warning", "A position is logged at a lower rate than the others.", "Log it at their rate.", size="its rate [Hz]"
        ),
    )
    EFFORT_HELD = (
        "effort-held",
        Entry(
            "warning",
            "An effort is logged at a lower rate than the others, or than its motion requires.",
            "Log it at the rate of the positions.",
            size="its rate [Hz]",
        ),
    )
    EFFORT_SLEWED = (
        "effort-slewed",
        Entry(
            "warning",
            "The rate of change of an effort is limited, and often at that limit.",
            "Log the effort without a rate limit.",
            size="rate [unit of the effort per s]",
        ),
    )
    EFFORT_CONSTANT = (
        "effort-constant",
        Entry("warning", "The effort of a joint at rest never changes.", "Check the column.", tolerated=True),
    )
    CONSTANTS_UNKNOWN = (
        "constants-unknown",
        Entry(
            "warning",
            "Torque constants are unknown; efforts are not compared with the URDF (`inspect` only).",
            "Give logs with and without the payload together, or `drive.gain`.",
            tolerated=True,
        ),
    )
    GEARS_MISSING = (
        "gears-missing",
        Entry(
            "warning",
            "A log of the motor side has gear ratios of 1.",
            "Give `drive.reduction`, or leave out `log.side`.",
            tolerated=True,
        ),
    )
    EFFORT_BEYOND_LIMIT = (
        "effort-beyond-limit",
        Entry(
            "warning",
            "An effort exceeds twice the URDF's limit, or its largest weight.",
            "Check its unit (a current, mN·m) and side (motor).",
            of_payload=True,
        ),
    )
    NOT_USABLE = "not-usable", Entry("refused", "No usable data are left after conditioning.", "See the message.")
    # Velocities
    VELOCITY_AGREES = "velocity-agrees", Entry("info", "The logged velocity is dq/dt.", "None needed.")
    VELOCITY_LAG = "velocity-lag", Entry("repaired", "The logged velocity lags; dq/dt is used.", "None needed.")
    VELOCITY_DEAD = "velocity-dead", Entry("repaired", "A logged velocity never changes; dq/dt is used.", "Check the column.")
    VELOCITY_SCALE = "velocity-scale", Entry("repaired", "A logged velocity is scaled; dq/dt is used.", "Check its unit.")
    VELOCITY_UNRELATED = (
        "velocity-unrelated",
        Entry("repaired", "A logged velocity does not follow dq/dt; dq/dt is used.", "Check the column."),
    )
    VELOCITY_SIGN = (
        "velocity-sign",
        Entry("refused", "A logged velocity has the opposite sign of dq/dt.", "Correct one of the signs."),
    )
    VELOCITY_UNIT = "velocity-unit", Entry("refused", "Velocity or position is in another unit.", "`log: {units: ...}`.")
    VELOCITIES_EXCHANGED = (
        "velocities-exchanged",
        Entry("refused", "The velocities of two joints are exchanged.", "Correct the column order."),
    )
    # Physics
    EFFORT_SIGN = (
        "effort-sign",
        Entry(
            "refused",
            "The effort of one joint, or of all joints, has the wrong sign: inertia or friction would be negative.",
            "Use a negative `drive.gain`.",
            of_payload=True,
        ),
    )
    POSITION_SIGN = "position-sign", Entry("refused", "The position of a joint has the wrong sign.", "Reverse its column.")
    AXIS_SIGN = (
        "axis-sign",
        Entry("refused", "Position and effort of a joint both have the wrong sign.", "Reverse the URDF's axis."),
    )
    JOINTS_EXCHANGED = (
        "joints-exchanged",
        Entry("refused", "Columns of two joints are exchanged.", "Correct the order of the columns."),
    )
    POSITION_ZERO = (
        "position-zero",
        Entry(
            "refused",
            "The zero of a joint is not that of the URDF, or differs between the logs.",
            "`drive: {joint_offset: [...]}`.",
            size="offset to be added [rad]",
        ),
    )
    POSITION_NONLINEAR = (
        "position-nonlinear",
        Entry(
            "warning",
            "The positions of a joint have a periodic error along its travel.",
            "Check the mounting and calibration of the encoder.",
            size="amplitude [rad or m]",
        ),
    )
    POSITION_PLAY = (
        "position-play",
        Entry(
            "warning",
            "The positions of a joint stand still at reversals, and then lag.",
            "Check for backlash between joint and encoder.",
            size="backlash [rad or m]",
        ),
    )
    POSITION_SCALE = (
        "position-scale",
        Entry(
            "warning",
            "The positions of a joint are too large or too small to match the efforts of the other joints.",
            "Check its gear ratio and the counts of its encoder.",
            size="fraction by which they are too large",
        ),
    )
    POSITION_COUPLED = (
        "position-coupled",
        Entry(
            "warning",
            "The position of a joint counts that of the joint before in.",
            "Subtract that joint's column, or give `drive.reduction` as a matrix.",
        ),
    )
    POSITION_COMPLIANCE = (
        "position-compliance",
        Entry(
            "warning",
            "The positions of a joint lead its motion in the direction of its effort, as before a gear that gives way.",
            "Log the encoder of the joint, or both encoders.",
            size="root mean square of the lead [rad or m]",
        ),
    )
    POSITION_LATE = (
        "position-late",
        Entry(
            "warning",
            "The positions of a joint lag or lead the motion that the efforts of the other joints show.",
            "Check filter, rate and clock of its encoder.",
            size="delay [s], negative if they lead",
        ),
    )
    JOINT_ORIGIN = (
        "joint-origin",
        Entry(
            "warning",
            "The axis of a joint is not where the URDF has it on its parent link.",
            "Check that the URDF is of this very robot, and the joint's `<origin>`.",
            size="distance [m]",
        ),
    )
    JOINT_AXIS = (
        "joint-axis",
        Entry(
            "warning",
            "The axis of a joint is tilted against the URDF's.",
            "Check that the URDF is of this very robot, and the joint's `<origin>` and `<axis>`.",
            size="angle [rad], if small",
        ),
    )
    EFFORT_CROSSTALK = (
        "effort-crosstalk",
        Entry("warning", "The effort of one joint contains a part of another's.", "Check wiring, columns, `drive.reduction`."),
    )
    TIME_SCALE = (
        "time-scale",
        Entry(
            "refused",
            "The clock is wrong by a factor: dq/dt is a multiple of all velocities, or inertia and gravity disagree, as with "
            "other lengths of the links.",
            "Correct the time column's unit or `log.rate`, or the URDF's lengths.",
            size="true duration of one logged second [s]",
        ),
    )
    GRAVITY_DIRECTION = (
        "gravity-direction",
        Entry(
            "refused",
            "The direction of gravity differs from the URDF's base.",
            "`robot: {gravity: [x, y, z]}`.",
            size="angle [°]",
        ),
    )
    EFFORT_WITHOUT_GRAVITY = (
        "effort-without-gravity",
        Entry(
            "refused",
            "The efforts do not contain the gravity torque, only a part of it, or a part in addition.",
            "Log the whole joint torque, as measured.",
            size="missing fraction of the URDF's gravity torque, negative if in addition",
        ),
    )
    EFFORT_SCALE = (
        "effort-scale",
        Entry(
            "refused",
            "The scale of a joint's effort does not match that of the others.",
            "Correct its `drive.gain`.",
            size="factor of the logged effort",
            of_payload=True,
        ),
    )
    EFFORT_SCALE_OPEN = (
        "effort-scale-open",
        Entry(
            "info",
            "The log does not determine the scale of some joints' efforts, because no other joint's effort depends on it.",
            "If in doubt, compare `drive.gain` and the gear ratio with the data sheet, or record a motion with a known load "
            "(`drive.payload`).",
        ),
    )
    TIME_SCALE_OPEN = (
        "time-scale-open",
        Entry(
            "info",
            "The log does not determine the scale of its time, because hardly any joint works against gravity.",
            "If in doubt, compare the duration of the log with a watch.",
        ),
    )
    SPRING = (
        "spring",
        Entry(
            "warning",
            "A joint carries a torque that depends on its position but is not gravity.",
            "None needed with `model: {friction: auto}`; otherwise list `spring` or `balancer`.",
            tolerated=True,
        ),
    )
    EFFORT_DELAY = (
        "effort-delay",
        Entry("warning", "The efforts lag the positions.", "Check the log's filters and clocks.", size="delay [s]"),
    )
    EFFORT_ASYMMETRIC = (
        "effort-asymmetric",
        Entry("warning", "Positive and negative efforts of a joint differ in scale.", "Check both directions of its sensor."),
    )
    EFFORT_SATURATES = (
        "effort-saturates",
        Entry(
            "warning",
            "Large efforts of a joint, or of all joints, are too small for the motion.",
            "Widen the range of the sensor.",
            size="fraction of the largest effort",
        ),
    )
    EFFORT_PROGRESSIVE = (
        "effort-progressive",
        Entry(
            "warning", "Large efforts of a joint are too large for the motion.", "Check its torque constant at high currents."
        ),
    )
    EFFORT_PERIODIC = (
        "effort-periodic",
        Entry(
            "warning",
            "An effort oscillates at a frequency that the motion does not explain, in time and not with the position.",
            "Check shielding and supply of its sensor, the drives beside it, and its control loop.",
            size="frequency [Hz]",
        ),
    )
    EFFORT_BANDWIDTH = (
        "effort-bandwidth",
        Entry(
            "warning",
            "The efforts were filtered below the bandwidth of the motion.",
            "Log unfiltered efforts.",
            size="bandwidth [Hz]",
        ),
    )
    POSITION_BANDWIDTH = (
        "position-bandwidth",
        Entry(
            "warning",
            "Positions hold less bandwidth than the motion: filtered before logging, too few samples, or too much noise.",
            "Log unfiltered positions, at a higher rate or with less noise, or move more slowly.",
            size="bandwidth [Hz]",
        ),
    )
    PHYSICS_UNDECIDED = (
        "physics-undecided",
        Entry(
            "warning",
            "One of the above is wrong, but the log does not show which; or one is not excluded, and would change the model "
            "by more than half its error: see `candidates`.",
            "The remedy names a test that distinguishes them.",
            size="gain, a sum of logarithms",
            of_payload=True,
        ),
    )
    # Changes with time
    PAYLOAD_CHANGES = (
        "payload-changes",
        Entry(
            "warning",
            "The load on the last link differs in a part of the log.",
            "Split the log there.",
            size="gain, a sum of logarithms",
            of_payload=True,
        ),
    )
    EFFORT_DRIFT = (
        "effort-drift",
        Entry(
            "warning",
            "Friction, offset or scale of the efforts drift.",
            "Warm up, then record again.",
            size="gain, a sum of logarithms",
            of_payload=True,
        ),
    )
    CONTACT = (
        "contact",
        Entry(
            "warning",
            "A part of the log contains torques that are not the robot's own.",
            "Cut it out.",
            size="gain, a logarithm",
        ),
    )
    CONTACT_SPRING = (
        "contact-spring",
        Entry(
            "warning",
            "A force pulls the last link toward a fixed point, as a hose or a cable does.",
            "Record without it, or log it as a wrench.",
        ),
    )
    CONTACT_FORCE = (
        "contact-force",
        Entry(
            "warning",
            "What a model leaves unexplained in all joints is a force on the last link that varies with time.",
            "Record without contact, hoses and loads that swing or change, or log it as a wrench.",
            size="share of the squared residuals, beyond chance",
        ),
    )
    LOG_DIFFERS = (
        "log-differs",
        Entry(
            "warning",
            "One log contradicts the others, or a joint's effort is explained far worse in it than in any other.",
            "Leave it out, or find out what was changed.",
            size="gain, a sum of logarithms",
            of_payload=True,
        ),
    )
    LOGS_DISAGREE = (
        "logs-disagree",
        Entry(
            "warning",
            "Logs contradict each other, but the data do not show which one is wrong.",
            "Inspect each log by itself.",
            size="gain, a sum of logarithms",
            of_payload=True,
        ),
    )
    # Contradictions in a result
    CONSTRAINTS_CONTRADICTED = (
        "constraints-contradicted",
        Entry(
            "warning",
            "Consistency constraints raise the held-out error by half and more.",
            "Check zeros, the scale of the efforts, and the URDF's geometry; or `consistency: {com_in_box: false}`.",
        ),
    )
    CONSTRAINTS_COST = (
        "constraints-cost",
        Entry(
            "info",
            "Consistency constraints raise the held-out error by more than 5 %.",
            "Check `consistency.mass_factor` and `consistency.com_in_box`.",
        ),
    )
    PRIOR_CONTRADICTED = (
        "prior-contradicted",
        Entry(
            "warning",
            "The data alone predict a joint well, and with the URDF as prior badly.",
            "Check the URDF's masses there, or lower `consistency.weight`.",
        ),
    )
    NOT_CONSISTENT = (
        "not-consistent",
        Entry("warning", "A body of the result is not physically consistent.", "`consistency: {method: lmi}`."),
    )
    SCALE_UNPROVEN = (
        "scale-unproven",
        Entry(
            "warning",
            "The URDF's masses are placeholders: the scale rests on the unit of the log alone.",
            "Check units and `drive.gain`; then `drive: {scale_known: true}`.",
        ),
    )
    GRAVITY_SCALE = (
        "gravity-scale",
        Entry(
            "warning",
            "A gravity torque differs from the URDF's by more than usual errors of its masses.",
            "Check units, `drive.gain` and tools missing in the URDF.",
        ),
    )
    MASS_SCALE = (
        "mass-scale",
        Entry(
            "warning",
            "All masses together differ from the URDF's by one factor.",
            "Check units and `drive.gain`; then `drive: {scale_known: true}`.",
        ),
    )
    MASS_FAR = (
        "mass-far",
        Entry("warning", "Single masses differ strongly from the URDF's.", "Check units, gains and missing tools."),
    )
    FRICTION_IMPLAUSIBLE = (
        "friction-implausible",
        Entry(
            "refused",
            "Friction is above the largest measured torque.",
            "Record longer, with reversals, or list fewer laws in `model.friction`.",
            symptom=True,
        ),
    )
    TORQUE_IMPLAUSIBLE = (
        "torque-implausible",
        Entry(
            "refused",
            "At the velocity limits the torque is far above the effort limits.",
            "Record a faster motion, or list fewer laws in `model.friction`.",
            symptom=True,
        ),
    )
    LIMITS_CONTRADICTORY = (
        "limits-contradictory",
        Entry(
            "info",
            "The URDF's own masses need more than its effort limits at its other limits.",
            "Correct the `<limit>` of these joints.",
        ),
    )
    RESIDUAL_NOT_STATIONARY = (
        "residual-not-stationary",
        Entry(
            "warning",
            "The residual of a joint is larger in one part of a log.",
            "Check for a payload, contact, a brake, another temperature or gain.",
        ),
    )
    # What the motion did not show
    MOTION_SHORT = (
        "motion-short",
        Entry("warning", "All logs together are too short to show faults or to validate.", "Record 5 s or more."),
    )
    MOTION_REPEATED = (
        "motion-repeated",
        Entry("warning", "All logs hold the same motion.", "Record another motion and give it with `--validate`."),
    )
    MOTION_HARDLY_TURNS = (
        "motion-hardly-turns",
        Entry(
            "warning",
            "The joints hardly reverse: parts of the motion cannot validate each other.",
            "Record a longer or faster motion.",
        ),
    )
    DATA_ALONE = (
        "data-alone",
        Entry("warning", "Without the URDF as prior the data predict other motions badly.", "Record a richer motion."),
    )
    NOT_VALIDATED = "not-validated", Entry("warning", "No held-out data.", "Give a log of another motion with `--validate`.")
    HELD_OUT_REPEATS = (
        "held-out-repeats",
        Entry("warning", "The held-out motion repeats a training motion.", "Validate with another motion."),
    )
    PARAMETERS_UNSEEN = (
        "parameters-unseen",
        Entry("warning", "Base parameters are not excited by the motion.", "Move every joint, or lock those that cannot move."),
    )
    TORQUE_UNCERTAIN = (
        "torque-uncertain",
        Entry(
            "warning",
            "The standard error of the torque on other motions is large; refused from 60 % on.",
            "Record a richer motion.",
        ),
    )
    TORQUE_FROM_URDF = (
        "torque-from-urdf",
        Entry("warning", "On other motions the URDF's values fill what the data leave open.", "Record a richer motion."),
    )
    ONE_WAY = "one-way", Entry("warning", "A joint moved in one direction only.", "Record motions in both directions.")
    SPEED_UNTESTED = (
        "speed-untested",
        Entry(
            "warning",
            "The error expected at the URDF's velocity limits is large.",
            "Record a motion as fast as the model will be used.",
        ),
    )
    # Comparison with other models
    WORSE_THAN_URDF = (
        "worse-than-urdf",
        Entry(
            "refused",
            "The error on a held-out log is larger than the URDF's.",
            "Do not use the result; record a richer motion.",
            symptom=True,
        ),
    )
    JOINT_WORSE_THAN_URDF = (
        "joint-worse-than-urdf",
        Entry("warning", "The same on single joints.", "Check sign, scale and column order of these joints.", symptom=True),
    )
    WORSE_THAN_FRICTION = (
        "worse-than-friction",
        Entry(
            "warning",
            "The error is larger than that of the URDF with fitted friction.",
            "Record a motion with more acceleration and a wider range.",
            symptom=True,
        ),
    )
    # Errors on other motions
    HELD_OUT_ERROR = (
        "held-out-error",
        Entry(
            "info",
            "Relative torque error on held-out logs: good below 10 %, refused from 40 % on.",
            "Check the joints with the largest errors and the findings about the logs.",
            symptom=True,
        ),
    )
    CROSS_VALIDATION = "cross-validation", Entry("info", "The same in cross-validation.", "As above.", symptom=True)

    # Payload
    PAYLOAD_IMPOSSIBLE = (
        "payload-impossible",
        Entry("refused", "The logs imply a negative mass.", "Check whether loaded and unloaded logs were exchanged."),
    )
    PAYLOAD_ELSEWHERE = (
        "payload-elsewhere",
        Entry("refused", "A body on another link explains the logs better.", "Name the link that carries it with `--link`."),
    )
    PAYLOAD_NOT_SHOWN = (
        "payload-not-shown",
        Entry("refused", "The interval of the mass includes 0 kg.", "Check whether these logs contain the payload."),
    )
    PAYLOAD_UNEXPLAINED = (
        "payload-unexplained",
        Entry(
            "warning",
            "The residual of a joint is several times the unloaded robot's; refused where the mass is not shown.",
            "Check torque constants, contact and loads that swing.",
        ),
    )
    PAYLOAD_MASS = (
        "payload-mass",
        Entry(
            "info",
            "Relative standard error of the mass: good below 2 %, refused from 20 % on.",
            "Record more and faster motion.",
        ),
    )

    @classmethod
    def of(cls, text: str) -> Id:
        """The member with an id; raises ValueError if there is none."""
        if text not in _MEMBERS:
            raise ValueError(f"{text!r} is no id of the catalogue")
        return _MEMBERS[text]

    @property
    def rank(self) -> int:
        """Position of its section: at equal severity lower ones are told first."""
        return _RANKS[self]

    @property
    def of_log(self) -> bool:
        """Whether it is about a log, not about a result."""
        return Id.LOG_UNREADABLE.rank <= self.rank < Id.CONSTRAINTS_CONTRADICTED.rank


#: The first id of each section of the catalogue, and the section's title.
SECTIONS: dict[Id, str] = {
    Id.MASS_AT_LIMIT: "Said first",
    Id.LOG_UNREADABLE: "Rows and values",
    Id.TIME_UNIT: "Time",
    Id.POSITION_WRAPPED: "Motion and channels",
    Id.VELOCITY_AGREES: "Velocities",
    Id.EFFORT_SIGN: "Physics",
    Id.PAYLOAD_CHANGES: "Changes with time",
    Id.CONSTRAINTS_CONTRADICTED: "Contradictions in a result",
    Id.MOTION_SHORT: "What the motion did not show",
    Id.WORSE_THAN_URDF: "Comparison with other models",
    Id.HELD_OUT_ERROR: "Errors on other motions",
    Id.PAYLOAD_IMPOSSIBLE: "Payload",
}
_MEMBERS = {str(id): id for id in Id}
_ORDER = list(Id)
_RANKS = {id: sum(_ORDER.index(first) <= k for first in SECTIONS) for k, id in enumerate(_ORDER)}
