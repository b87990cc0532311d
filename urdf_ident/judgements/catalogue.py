"""The catalogue: the one enumeration of everything that is judged, with severity, meaning and remedy (docs/findings.md)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any, Literal

#: From harmless to unusable: information; a repair; a doubt; a reason not to use the log, or the result.
Severity = Literal["info", "repaired", "warning", "refused"]
SEVERITIES: tuple[Severity, ...] = ("info", "repaired", "warning", "refused")


@dataclass(frozen=True)
class Entry:
    """What is known of one kind of judgement.

    Attributes:
        severity: Its usual severity; some are more severe if more of the log is affected.
        meaning: One sentence for the documentation.
        remedy: What to do about it at its usual severity, unless what was found tells more; empty if nothing is needed.
        settings: Keys of the project file, or their sections, that its remedy may set (:class:`.judgement.Remedy`).
        size: What the judgement's ``size`` measures, with its unit; empty if it has none.
        message: What is said, where it is always the same: ``{whose}`` stands for joints, ``{other}`` for the last of them, and
            ``{size}`` for a size in words.
        cause: Its name among several possible causes, with ``{whose}`` and ``{size}`` as in the message.
        test: What distinguishes it from others.
        tolerated: Whether a result can be good although a log has a warning of this kind.
        of_payload: Whether a wrong description of a known payload causes it.
        symptom: Whether a fault of the logs (a unit, a sign, a clock) leads to it.
        with_pose: Whether its free size changes how torques vary with the pose, as unmodelled friction does along a few legs of
            motion: sound logs that cycle through three poses gain by one of them, but not by a sign, an order or a clock.
        of_all: Whether it is of the whole log, and not selected among joints.
        geometric: Whether it is of positions or axes, so that its effect is proportional to its size only where that is small.
        placement: Whether it is another placement of an axis, which has two parameters.
        explains_all: Whether all else follows from it where it refuses a result.
    """

    severity: Severity
    id: str
    meaning: str
    remedy: str = ""
    settings: tuple[str, ...] = ()
    size: str = ""
    message: str = ""
    cause: str = ""
    test: str = ""
    tolerated: bool = False
    of_payload: bool = False
    symptom: bool = False
    with_pose: bool = False
    of_all: bool = False
    geometric: bool = False
    placement: bool = False
    explains_all: bool = False


info, repaired, warning, refused = (partial(Entry, severity) for severity in SEVERITIES)


class Id(str, Enum):
    """Stable ids of all judgements, in the order in which they are listed at equal severity: causes before consequences."""

    entry: Entry

    def __new__(cls, entry: Any) -> Id:
        """Creates a member that is its id, with its entry."""
        member = str.__new__(cls, entry.id)
        member._value_ = entry.id
        member.entry = entry
        return member

    def __str__(self) -> str:
        return str(self.value)

    def __format__(self, spec: str) -> str:
        return format(str(self.value), spec)

    # Said first
    MASS_AT_LIMIT = warning(
        "mass-at-limit",
        "The mass of a body is at a limit of the optimisation: the data or the URDF's structure contradict it.",
        "check the signs and units of the efforts and the masses in the URDF, or raise `consistency.mass_factor`",
    )
    JOINT_APART = warning(
        "joint-apart",
        "The effort of a joint cannot be its torque; it entered the friction of that joint alone, and no body.",
        "check what this effort measures: a counterweight, a brake, noise, another column or unit",
    )
    JOINT_ERROR = warning(
        "joint-error",
        "The error of a joint on other motions exceeds 40 % of its torque, which is not small beside that of the others.",
        "check its sign, scale and columns, or what else acts on it",
        symptom=True,
        size="error over torque",
    )
    # Rows and values
    LOG_UNREADABLE = refused("log-unreadable", "The log cannot be read.")
    NOTE = info("note", "What the reader chose or ignored.")
    SIGNALS_JOINED = repaired("signals-joined", "Signals in rows without positions, with a clock of their own; interpolated.")
    ROWS_UNREADABLE = repaired("rows-unreadable", "Rows without a time or any position.")
    ROWS_INTERPOLATED = repaired(
        "rows-interpolated",
        "Rows on straight lines in all efforts, with which the logger bridged gaps; left out.",
        "find out why samples are lost",
    )
    TOO_FEW_ROWS = refused("too-few-rows", "Fewer than 100 usable rows.", "record more")
    VALUES_IMPOSSIBLE = repaired(
        "values-impossible", "Values that are not finite or above 1e7; left out.", "check the sensor and its error value"
    )
    VALUES_SPIKE = repaired(
        "values-spike", "Single samples far from their neighbours; left out.", "check the connection of the sensor"
    )
    VALUES_SENTINEL = repaired(
        "values-sentinel",
        "One value that occurs repeatedly, far from its neighbours, and stands for missing data; left out.",
        "check which value the logger writes for missing data",
    )
    VALUES_MISSING = repaired("values-missing", "Rows whose position or effort is missing.")
    VALUES_BRIDGED = repaired("values-bridged", "Missing values of a signal that is not required, interpolated.")
    SIGNAL_DROPPED = repaired(
        "signal-dropped", "A signal that is not required has too many gaps and is not used.", "check its column"
    )
    CHANNEL_MISSING = refused(
        "channel-missing",
        "More than 5 % of a joint's positions or efforts are missing.",
        "check the column and its sensor, or record the log again",
    )
    CHANNEL_FROZEN = warning(
        "channel-frozen",
        "A position or effort freezes during a motion; the rows are left out.",
        "check the connection to the sensor",
        tolerated=True,
    )
    FROZEN_TOO_LONG = refused("frozen-too-long", "More than a fifth of the log is frozen.", "record it again")
    # Time
    TIME_UNIT = refused(
        "time-unit", "The time column cannot be in seconds.", "state the unit, or `log.rate`", settings=("log.units.time",)
    )
    CLOCK_STANDS = refused(
        "clock-stands",
        "The time column does not increase, or only every so many rows, because it has too few digits.",
        "export it with all digits, or check `log.columns.time`",
    )
    TIME_BACKWARDS = refused(
        "time-backwards", "Time runs backwards.", "split the file where the clock restarts, or sort it by time"
    )
    TIME_OUT_OF_ORDER = repaired("time-out-of-order", "Single rows out of order in time, left out.")
    STAMPS_REPEATED = repaired("stamps-repeated", "Rows with the time of the row before, left out.")
    SAMPLES_REPEATED = repaired("samples-repeated", "Rows that repeat the sample before them during a motion, left out.")
    SAMPLES_LOST = info(
        "samples-lost",
        "Samples of the device are not in the log; interpolated. A warning where the stamps do not show it: the "
        "clock is set forward.",
    )
    RUNS_JOINED = repaired("runs-joined", "The joints jump from one row to the next: several runs in one file; split there.")
    CLOCK_JITTER = repaired("clock-jitter", "The device's even clock was recovered from uneven stamps.")
    CLOCK_UNEVEN = repaired("clock-uneven", "Uneven intervals; the log is resampled. Refused where most rows come in bursts.")
    CLOCK_SLIP = info("clock-slip", "The clock slips: the positions of all joints jump in proportion to their velocities.")
    CLOCK_GAPS = repaired("clock-gaps", "Pauses in the clock; the log is split there.")
    # Motion and channels
    POSITION_WRAPPED = repaired(
        "position-wrapped",
        "Positions jump by whole turns, or (a warning) by the range of their counter; unwrapped.",
        tolerated=True,
    )
    POSITION_JUMP = warning(
        "position-jump",
        "A position jumps from one row to the next while the motion goes on; the later rows are shifted back.",
        "an encoder slipped or a counter started again: check which part has the right zero, or leave out this log",
        size="first jump [rad or m]",
    )
    POSITION_UNIT = refused(
        "position-unit",
        "Positions are in another unit than described: degrees, radians, revolutions, metres, millimetres or counts.",
        "state the unit that the message names",
        cause="the unit of the positions of {whose}",
        test="move one joint by a known angle or distance",
        settings=("log.units.position",),
    )
    POSITION_BEYOND_LIMIT = warning(
        "position-beyond-limit", "Positions exceed the URDF's limits.", "check joint offsets, signs and units", tolerated=True
    )
    AT_REST = refused(
        "at-rest",
        "The robot does not move.",
        "record a motion that moves every joint, as a log at rest shows only gravity; if it moved, correct `log: "
        "{units: {position: ..., time: ...}}`",
    )
    TOO_SHORT = refused("too-short", "Less than 1 s of motion.", "record 5 s or more")
    SHORT = warning(
        "short", "Less than 5 s of motion.", "record 5 s or more", size="duration of the motion [s]", tolerated=True
    )
    JOINT_AT_REST = warning(
        "joint-at-rest",
        "A joint does not move; its friction cannot be identified.",
        "record a motion that moves it, or lock it in `robot: {lock: ...}`",
        tolerated=True,
    )
    LOCKED_JOINT = warning(
        "locked-joint",
        "A joint that the project locks moves, or stands elsewhere, which changes gravity torques or inertias of "
        "others; the log is refused from 20 % on.",
        "do not lock it, or lock it where it stands",
        size="largest change of a gravity torque or inertia (1 = 100 %)",
        settings=("robot.lock",),
    )
    EFFORT_MISSING = refused(
        "effort-missing",
        "The log holds no efforts.",
        "log them as tau_<joint>, or name their columns in `log: {columns: {effort: ...}}`",
    )
    EFFORT_DEAD = refused("effort-dead", "A joint moves and its effort never changes.", "check the column and its sensor")
    EFFORT_CLIPPED = warning(
        "effort-clipped",
        "An effort is at the end of its range; the rows are left out.",
        "widen the range of the sensor or the logger",
        size="share of the rows",
    )
    EFFORT_DEAD_ZONE = warning(
        "effort-dead-zone",
        "An effort is exactly zero while its joint moves, and hardly ever near zero.",
        "log what the sensor measures, without a threshold",
        size="share of the rows in which the joint moves",
    )
    EFFORT_QUANTISED = warning(
        "effort-quantised",
        "The effort of a joint comes in coarse steps.",
        "log it with more digits; a slower, longer log partly averages out the steps",
        size="step [unit of the effort]",
    )
    EFFORT_COMMANDED = warning(
        "effort-commanded",
        "The efforts are a target, or computed from the URDF.",
        "log the measured current or torque: a target only shows what the controller's model expects",
    )
    EFFORT_TWICE = refused(
        "effort-twice", "The same effort is in the columns of two joints.", "check which columns `log.columns.effort` names"
    )
    POSITION_TWICE = warning(
        "position-twice",
        "The positions of two joints are equal in every row.",
        "check which columns `log.columns.position` names; joints that were moved alike: move them differently",
    )
    EFFORT_UNSIGNED = refused("effort-unsigned", "An effort is logged without its sign.", "log it with its sign")
    POSITION_QUANTISED = warning(
        "position-quantised",
        "The position of a joint comes in coarse steps, which the low-pass leaves in its acceleration.",
        "log it with more digits",
        size="step [rad or m]",
    )
    POSITION_HELD = warning(
        "position-held",
        "A position is logged at a lower rate than the others.",
        "log it at the rate of the others: as logged it lags by half its interval",
        size="its rate [Hz]",
    )
    EFFORT_HELD = warning(
        "effort-held",
        "An effort is logged at a lower rate than the others, or than its motion requires.",
        "log it at the rate of the positions: as logged it lags, and misses peaks and reversals of friction",
        size="its rate [Hz]",
    )
    EFFORT_CONSTANT = warning(
        "effort-constant", "The effort of a joint at rest never changes.", "check the column", tolerated=True
    )
    CONSTANTS_UNKNOWN = warning(
        "constants-unknown",
        "Torque constants are unknown; efforts are not compared with the URDF (`inspect` only).",
        "give logs with and without the payload together, or `drive.gain`",
        tolerated=True,
    )
    GEARS_MISSING = warning(
        "gears-missing",
        "A log of the motor side has gear ratios of 1.",
        "give `drive.reduction`, or leave out `log.side`",
        tolerated=True,
    )
    EFFORT_BEYOND_LIMIT = warning(
        "effort-beyond-limit",
        "An effort exceeds twice the URDF's limit, or its largest weight.",
        "state its unit (`log: {units: {effort: mN·m}}`; A or mA and the drive's gain for a current), or that it "
        "is measured at the motor (`log: {side: {effort: motor}}`)",
        of_payload=True,
    )
    NOT_USABLE = refused("not-usable", "No usable data are left after conditioning.")
    # Velocities
    VELOCITY_AGREES = info("velocity-agrees", "The logged velocity is dq/dt.")
    VELOCITY_LAG = repaired("velocity-lag", "The logged velocity lags; dq/dt is used.")
    VELOCITY_DEAD = repaired("velocity-dead", "A logged velocity never changes; dq/dt is used.", "check the column")
    VELOCITY_SCALE = repaired(
        "velocity-scale", "A logged velocity is scaled; dq/dt is used.", "check its unit", settings=("signals.velocity",)
    )
    VELOCITY_UNRELATED = repaired(
        "velocity-unrelated", "A logged velocity does not follow dq/dt; dq/dt is used.", "check the column"
    )
    VELOCITY_SIGN = refused(
        "velocity-sign",
        "A logged velocity has the opposite sign of dq/dt.",
        "correct the sign of the position or of the velocity, or leave the velocity columns out",
    )
    VELOCITY_UNIT = refused(
        "velocity-unit",
        "Velocity or position is in another unit.",
        "state the unit that the message names",
        settings=("log.units",),
    )
    VELOCITIES_EXCHANGED = refused(
        "velocities-exchanged",
        "The velocities of two joints are exchanged.",
        "correct the order of the position or velocity columns in the project file",
    )
    # Physics
    EFFORT_SIGN = refused(
        "effort-sign",
        "The effort of one joint, or of all joints, has the wrong sign: inertia or friction would be negative.",
        "correct the sign in the log, or use a negative `drive.gain`",
        message="the effort of {whose} has the wrong sign",
        cause="the sign of the effort of {whose}",
        test="move that joint alone: against gravity or friction, effort and speed have the same sign",
        of_payload=True,
        settings=("drive.gain",),
    )
    POSITION_SIGN = refused(
        "position-sign",
        "The position of a joint has the wrong sign.",
        "reverse its column, or the axis of the joint in the URDF",
        message="the position of {whose} has the wrong sign",
        cause="the sign of the position of {whose}",
        test="compare one pose with the URDF on screen (`urdf-ident play`)",
    )
    AXIS_SIGN = refused(
        "axis-sign",
        "Position and effort of a joint both have the wrong sign.",
        "reverse the axis of the joint in the URDF, or both columns",
        message="{whose} turns the other way: position and effort both have the wrong sign",
        cause="the direction of {whose} (position and effort)",
        test="compare one pose with the URDF on screen (`urdf-ident play`)",
    )
    JOINTS_EXCHANGED = refused(
        "joints-exchanged",
        "Columns of two joints are exchanged.",
        "correct the order of the columns",
        cause="the order of {whose}",
        test="move one of them alone",
    )
    POSITION_ZERO = refused(
        "position-zero",
        "The zero of a joint is not that of the URDF, or differs between the logs.",
        "compare one pose with the URDF on screen (`urdf-ident play`), or add the offset",
        size="offset to be added [rad]",
        message="the zero of {whose} is not that of the URDF: {size} must be added",
        cause="the zero of {whose}, {size}",
        test="compare one pose with the URDF on screen (`urdf-ident play`)",
        with_pose=True,
        geometric=True,
        settings=("drive.joint_offset",),
    )
    POSITION_NONLINEAR = warning(
        "position-nonlinear",
        "The positions of a joint have a periodic error along its travel.",
        "check how the encoder is mounted (eccentricity, tilt) and its calibration",
        size="amplitude [rad or m]",
        message="the positions of {whose} have a periodic error of {size} along its travel",
        geometric=True,
    )
    POSITION_PLAY = warning(
        "position-play",
        "The positions of a joint stand still at reversals, and then lag.",
        "check for backlash between joint and encoder",
        size="backlash [rad or m]",
        message="the positions of {whose} stand still at reversals and then lag by {size}",
        geometric=True,
    )
    POSITION_SCALE = warning(
        "position-scale",
        "The positions of a joint are too large or too small to match the efforts of the other joints.",
        "check its gear ratio and the counts or units of its encoder; the ratio also affects efforts computed from currents",
        size="fraction by which they are too large",
        message="the positions of {whose} are {size} times those that match the efforts of the other joints",
        cause="the scale of the position of {whose} (× {size})",
        test="move it by a known angle or distance",
        with_pose=True,
        geometric=True,
    )
    POSITION_COUPLED = warning(
        "position-coupled",
        "The position of a joint counts that of the joint before in.",
        "subtract that joint's column, or give `drive.reduction` as a matrix with `log: {side: {position: motor}}`",
        cause="the position of the first of {whose}, which counts that of the second in",
        test="move the second alone: the position of the first must not change",
    )
    POSITION_COMPLIANCE = warning(
        "position-compliance",
        "The positions of a joint lead its motion in the direction of its effort, as before a gear that gives way.",
        "check whether its encoder is before a gear or belt that gives way, or the position a target that the "
        "controller misses; log the encoder of the joint, or both (elastic joints)",
        size="root mean square of the lead [rad or m]",
        message="the positions of {whose} lead the motion that the efforts of the other joints show, by {size} in the "
        "direction of its effort",
        geometric=True,
    )
    POSITION_LATE = warning(
        "position-late",
        "The positions of a joint lag or lead the motion that the efforts of the other joints show.",
        "check filter, rate and clock of its encoder; early positions may be a target instead of a measurement",
        size="delay [s], negative if they lead",
        message="the positions of {whose} are {size} than the motion that the efforts of the other joints show",
        geometric=True,
    )
    JOINT_ORIGIN = warning(
        "joint-origin",
        "The axis of a joint is not where the URDF has it on its parent link.",
        "check that the URDF is of this very robot, and the joint's `<origin>` (xyz)",
        size="distance [m]",
        message="the axis of {whose} is {size} away from where the URDF has it on its parent link",
        geometric=True,
        placement=True,
    )
    JOINT_AXIS = warning(
        "joint-axis",
        "The axis of a joint is tilted against the URDF's.",
        "check that the URDF is of this very robot, and the joint's `<origin>` (rpy) and `<axis>`",
        size="angle [rad], if small",
        message="the axis of {whose} is tilted by {size} against the URDF's",
        geometric=True,
        placement=True,
    )
    EFFORT_CROSSTALK = warning(
        "effort-crosstalk",
        "The effort of one joint contains a part of another's.",
        "check wiring and columns, couplings between motors (`drive.reduction`), and axes and lengths in the URDF",
        message="the effort logged for {whose} contains a part of the effort of {other}",
    )
    TIME_SCALE = refused(
        "time-scale",
        "The clock is wrong by a factor: dq/dt is a multiple of all velocities, or inertia and gravity disagree, "
        "as with other lengths of the links.",
        "correct the rate of the log (`log.rate`) or the unit of its time column, or the URDF's lengths",
        size="true duration of one logged second [s]",
        message="the clock is wrong (1 s of the log is {size} s), or all lengths in the URDF are",
        cause="the clock or the URDF's lengths (1 s of the log is {size} s)",
        test="compare the duration of the log with a watch",
        of_all=True,
        settings=("log.rate",),
    )
    GRAVITY_DIRECTION = refused(
        "gravity-direction",
        "The direction of gravity differs from the URDF's base.",
        "if the robot is mounted that way, set `robot.gravity`",
        size="angle [°]",
        message="the efforts fit a gravity vector of {size} in the base frame",
        cause="the direction of gravity",
        test="check how the base is mounted",
        with_pose=True,
        of_all=True,
        settings=("robot.gravity",),
    )
    EFFORT_WITHOUT_GRAVITY = refused(
        "effort-without-gravity",
        "The efforts do not contain the gravity torque, only a part of it, or a part in addition.",
        "log the whole joint torque, or add the gravity torque that the controller subtracted",
        size="missing fraction of the URDF's gravity torque, negative if in addition",
        message="{size}the gravity torque of the URDF is missing from the efforts",
        cause="the share of gravity in the efforts ({size})",
        test="hold the robot still: the efforts must carry it",
        settings=("robot.gravity",),
    )
    EFFORT_SCALE = refused(
        "effort-scale",
        "The scale of a joint's effort does not match that of the others.",
        "check its torque constant, gear ratio and unit, and correct its `drive.gain`",
        size="factor of the logged effort",
        message="the effort of {whose} is {size} times what the efforts of the other joints imply",
        cause="the scale of the effort of {whose} (× {size})",
        test="give drive.gain, or log a known payload",
        of_payload=True,
        with_pose=True,
        settings=("drive.gain",),
    )
    EFFORT_SCALE_OPEN = info(
        "effort-scale-open",
        "The log does not determine the scale of some joints' efforts, because no other joint's effort depends on it.",
        "if in doubt, compare `drive.gain` and the gear ratio with the data sheet, or record a motion with a "
        "known load (`drive.payload`)",
    )
    TIME_SCALE_OPEN = info(
        "time-scale-open",
        "The log does not determine the scale of its time, because hardly any joint works against gravity.",
        "if in doubt, compare the duration of the log with a watch",
    )
    SPRING = warning(
        "spring",
        "A joint carries a torque that depends on its position but is not gravity.",
        "identify with `model: {friction: auto}`, or list spring or balancer for it",
        message="{whose} carries a torque that depends on its position but is not gravity: a spring or balancer",
        cause="no fault, but a spring or balancer on {whose}",
        test="hold that joint still at several poses",
        with_pose=True,
    )
    EFFORT_DELAY = warning(
        "effort-delay",
        "The efforts lag the positions.",
        "check the filters and clocks of the log",
        size="delay [s]",
        message="the efforts are {size} the positions",
        cause="a delay of the efforts ({size})",
        test="record faster reversals",
        settings=("signals.delay",),
    )
    EFFORT_ASYMMETRIC = warning(
        "effort-asymmetric",
        "Positive and negative efforts of a joint differ in scale.",
        "check zero and gain of the current sensor in both directions, and the conversion of signs",
        message="positive and negative efforts of {whose} differ in scale by {size}",
    )
    EFFORT_SATURATES = warning(
        "effort-saturates",
        "Large efforts of a joint, or of all joints, are too small for the motion.",
        "widen the range of the sensor or the logger; check the torque constants at high currents",
        size="fraction of the largest effort",
        message="the large efforts of {whose} are too small for the motion",
    )
    EFFORT_PROGRESSIVE = warning(
        "effort-progressive",
        "Large efforts of a joint are too large for the motion.",
        "check the torque constant at high currents, and whether the effort is logged as a power or squared current",
        message="the large efforts of {whose} are too large for the motion, by {size} of the largest",
    )
    EFFORT_PERIODIC = warning(
        "effort-periodic",
        "An effort oscillates at a frequency that the motion does not explain, in time and not with the position.",
        "check shielding and supply of its sensor, the drives beside it, and whether its control loop "
        "oscillates; a slow oscillation is partly identified as mass and friction",
        size="frequency [Hz]",
        message="the effort of {whose} oscillates with {size}, or faster if the samples are few, and not due to the motion",
    )
    EFFORT_BANDWIDTH = warning(
        "effort-bandwidth",
        "The efforts were filtered below the bandwidth of the motion.",
        "log unfiltered efforts",
        size="bandwidth [Hz]",
    )
    POSITION_BANDWIDTH = warning(
        "position-bandwidth",
        "Positions hold less bandwidth than the motion: filtered before logging, too few samples, or too much noise.",
        "log unfiltered positions, at a higher rate or with less noise, or move more slowly",
        size="bandwidth [Hz]",
        settings=("signals.cutoff",),
    )
    PHYSICS_UNDECIDED = warning(
        "physics-undecided",
        "One of the above is wrong, but the log does not show which: see `candidates`.",
        size="gain, a sum of logarithms",
        of_payload=True,
    )
    # Changes with time
    PAYLOAD_CHANGES = warning(
        "payload-changes",
        "The load on the last link differs in a part of the log.",
        "split the log there",
        size="gain, a sum of logarithms",
        of_payload=True,
    )
    EFFORT_DRIFT = warning(
        "effort-drift",
        "Friction, offset or scale of the efforts drift.",
        "warm up, then record again",
        size="gain, a sum of logarithms",
        of_payload=True,
    )
    CONTACT = warning(
        "contact", "A part of the log contains torques that are not the robot's own.", "cut it out", size="gain, a logarithm"
    )
    CONTACT_SPRING = warning(
        "contact-spring",
        "A force pulls the last link toward a fixed point, as a hose or a cable does.",
        "record without it, or log it as a wrench; part of it would be identified as mass and friction",
        message="a force pulls the last link toward a fixed point, as a hose, a cable or a spring does",
    )
    LOG_DIFFERS = warning(
        "log-differs",
        "One log contradicts the others.",
        "leave it out, or find out what was changed before or after it",
        size="gain, a sum of logarithms",
        of_payload=True,
    )
    LOGS_DISAGREE = warning(
        "logs-disagree",
        "Logs contradict each other, but the data do not show which one is wrong.",
        "inspect them one by one, or record another one to find out which one is wrong",
        size="gain, a sum of logarithms",
        of_payload=True,
    )
    # Contradictions in a result
    CONSTRAINTS_CONTRADICTED = warning(
        "constraints-contradicted",
        "Consistency constraints raise the held-out error by half and more.",
        "check the zero positions, the scale of the efforts, and the URDF's geometry, tools and masses; where "
        "the geometry does not enclose a link's mass, set `consistency.com_in_box: false`",
    )
    CONSTRAINTS_COST = info(
        "constraints-cost",
        "Consistency constraints raise the held-out error by more than 5 %.",
        "check the active constraints: consistency.mass_factor, consistency.com_in_box",
    )
    PRIOR_CONTRADICTED = warning(
        "prior-contradicted",
        "The data alone predict a joint well, and with the URDF as prior badly.",
        "record faster motion of these joints, check the URDF's masses there, or let the prior count less by a "
        "small consistency.weight",
    )
    NOT_CONSISTENT = warning(
        "not-consistent",
        "A body of the result is not physically consistent.",
        "set `consistency: {method: lmi}`",
        settings=("consistency.method",),
    )
    NOT_OPTIMAL = warning(
        "not-optimal",
        "The solver stopped before the optimum: exported parameters may not fit the data as well as others would.",
        "leave `consistency.solver` out, or name another solver there",
        size="distance from the optimum in standard errors, at most",
    )
    SCALE_UNPROVEN = warning(
        "scale-unproven",
        "The URDF's masses are placeholders: the scale rests on the unit of the log alone.",
        "check units and `drive.gain`; if the scale was checked, set `drive.scale_known: true`",
    )
    GRAVITY_SCALE = warning(
        "gravity-scale",
        "A gravity torque differs from the URDF's by more than usual errors of its masses.",
        "check units, `drive.gain` and tools missing in the URDF",
    )
    MASS_SCALE = warning(
        "mass-scale",
        "All masses together differ from the URDF's by one factor.",
        "check units and `drive.gain`; if the scale was checked, set `drive.scale_known: true`",
        settings=("drive.gain",),
        explains_all=True,
    )
    MASS_FAR = warning("mass-far", "Single masses differ strongly from the URDF's.", "check units, gains and missing tools")
    FRICTION_IMPLAUSIBLE = refused(
        "friction-implausible",
        "Friction is above the largest measured torque.",
        "record longer, with reversals of these joints, or list fewer laws in model.friction",
        symptom=True,
    )
    TORQUE_IMPLAUSIBLE = refused(
        "torque-implausible",
        "At the velocity limits the torque is far above the effort limits.",
        "record a faster motion, or list fewer laws in model.friction",
        symptom=True,
    )
    LIMITS_CONTRADICTORY = info(
        "limits-contradictory",
        "The URDF's own masses need more than its effort limits at its other limits.",
        "correct the <limit> of these joints in the URDF",
    )
    RESIDUAL_NOT_STATIONARY = warning(
        "residual-not-stationary",
        "The residual of a joint is larger in one part of a log.",
        "check for a payload, contact, a dragging brake, another temperature or gain; leave out this log or part",
    )
    # What the motion did not show
    MOTION_SHORT = warning(
        "motion-short", "All logs together are too short to show faults or to validate.", "record 5 s or more"
    )
    MOTION_REPEATED = warning(
        "motion-repeated", "All logs hold periods of one motion.", "record another motion and give it with --validate"
    )
    MOTION_HARDLY_TURNS = warning(
        "motion-hardly-turns",
        "The joints hardly reverse: parts of the motion cannot validate each other.",
        "record a longer or faster motion, or give another one with --validate",
    )
    DATA_ALONE = warning(
        "data-alone", "Without the URDF as prior the data predict other motions badly.", "record a richer motion"
    )
    NOT_VALIDATED = warning("not-validated", "No held-out data.", "give a log of another motion with --validate")
    HELD_OUT_REPEATS = warning(
        "held-out-repeats", "The held-out motion repeats a training motion.", "validate with another motion"
    )
    PARAMETERS_UNSEEN = warning(
        "parameters-unseen",
        "Base parameters are not excited by the motion.",
        "move every joint, or lock those that cannot move",
    )
    TORQUE_UNCERTAIN = warning(
        "torque-uncertain",
        "The standard error of the torque on other motions is large; refused from 60 % on.",
        "record a richer motion",
    )
    TORQUE_FROM_URDF = warning(
        "torque-from-urdf", "On other motions the URDF's values fill what the data leave open.", "record a richer motion"
    )
    ONE_WAY = warning("one-way", "A joint moved in one direction only.", "record motions in both directions")
    SPEED_UNTESTED = warning(
        "speed-untested",
        "The error expected at the URDF's velocity limits is large.",
        "record a motion as fast as the model will be used, for training or --validate, or use it at lower speeds only",
    )
    # Comparison with other models
    WORSE_THAN_URDF = refused(
        "worse-than-urdf",
        "The error on a held-out log is larger than the URDF's.",
        "do not use it; record richer motion",
        symptom=True,
    )
    JOINT_WORSE_THAN_URDF = warning(
        "joint-worse-than-urdf",
        "The same on single joints.",
        "check sign, scale and column order of these joints in the logs, then record a richer motion",
        symptom=True,
    )
    WORSE_THAN_FRICTION = warning(
        "worse-than-friction",
        "The error is larger than that of the URDF with fitted friction.",
        "record a motion with more acceleration and a wider range",
        symptom=True,
    )
    # Errors on other motions
    HELD_OUT_ERROR = info(
        "held-out-error",
        "Relative torque error on held-out logs: good below 10 %, refused from 40 % on.",
        "check the joints with the largest errors and the findings about the logs",
        symptom=True,
    )
    CROSS_VALIDATION = info(
        "cross-validation",
        "The same in cross-validation.",
        "check the joints with the largest errors and the findings about the logs",
        symptom=True,
    )
    # Payload
    PAYLOAD_IMPOSSIBLE = refused(
        "payload-impossible", "The logs imply a negative mass.", "check whether loaded and unloaded logs were exchanged"
    )
    PAYLOAD_ELSEWHERE = refused(
        "payload-elsewhere", "A body on another link explains the logs better.", "name the link that carries it (--link)"
    )
    PAYLOAD_NOT_SHOWN = refused(
        "payload-not-shown", "The interval of the mass includes 0 kg.", "check whether these logs contain the payload"
    )
    PAYLOAD_UNEXPLAINED = warning(
        "payload-unexplained",
        "The residual of a joint is several times the unloaded robot's; refused where the mass is not shown.",
        "check columns, units, torque constants, contact and loads that swing",
    )
    PAYLOAD_MASS = info("payload-mass", "Relative standard error of the mass: good below 2 %, refused from 20 % on.")

    @property
    def rank(self) -> int:
        """Position of its section: at equal severity lower ones come first."""
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
_ORDER = list(Id)
_RANKS = {id: sum(_ORDER.index(first) <= k for first in SECTIONS) for k, id in enumerate(_ORDER)}
