"""Three loops (Liu 2023, §5, Fig. 2): friction, links and residual, each estimated from the residual of the other two.

1. Friction from runs in both directions, in which the links' torque cancels (:mod:`.friction_curve`).
2. Links by iterated WLS on ``τ − τ_f − τ_u``, with an offset per joint, which runs of one joint cannot separate from gravity.
3. The residual on ``τ − τ_f − τ_link``, from the deformation (:mod:`.residual`).

The loops repeat until the training error converges. From the second round on loop 1 also uses the torque residual of links
and residual network on the logs: in runs of one joint that lifts and lowers its own weight, gear hysteresis looks like
friction, and these runs alone would attribute it to the speed permanently.

Linear quantities are filtered and decimated once; after that a loop takes milliseconds.

On a simulated arm with harmonic drives (``scripts/papers/e_three_loop.py``) the error on other motions falls by more than the
18 % of Liu 2023 against plain WLS if the gears' kinematic error is subtracted first (:class:`.GearRipple`), and by about 11 %
if it is not, as in Liu 2023: a kinematic error looks like deformation and masks it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..errors import EstimationError, LogError, ModelError, check_known
from ..files.documents import plain
from ..friction import Offset
from ..linalg import Array, rms, triangle
from ..logs.recording import Recording
from ..model.dynamic_model import DynamicModel
from ..model.terms import AppliedTerm
from ..samples import ReadOnly, Segment
from ..signals.filters import lowpass
from ..signals.motor_side import require_motor_positions
from ..signals.prepare import PreparedLog
from ..statistics.fit import fit_base
from ..statistics.rows import RowFilter, filtered_rows
from ..statistics.statistic import Layout, Statistic, StatisticSet
from .friction_curve import FrictionCurve, asymmetric_columns, curve_through, fit_friction
from .friction_points import constant_speed_runs, friction_points
from .residual import KINDS, Residual, fit_residual


@dataclass(frozen=True, eq=False)
class LoopRows(ReadOnly):
    """Rows of one log at the rate of its equations, low-passed like its positions.

    Friction changes faster at reversals than the filter's cutoff: model and measurement are filtered equally.

    Attributes:
        rate: Rows per second [Hz].
        columns: Columns of each row group of the model without known friction, shape (R, k_g) each.
        tau: Measured torque of the row groups, shape (R, n) [N·m or N].
        friction: Joint index → columns of its friction curve, shape (R, 8).
        motion: Positions and velocities, shape (R, 2 n).
        deformation: Deformation and its rate, shape (R, n, 2); None without motor positions.
    """

    log: str
    rate: float
    columns: tuple[Array, ...]
    tau: Array
    friction: Mapping[int, Array]
    motion: Array
    deformation: Array | None

    def __len__(self) -> int:
        return len(self.tau)


def loop_rows(model: DynamicModel, log: PreparedLog, curves: Sequence[FrictionCurve]) -> LoopRows:
    """Builds the rows of a log for a model without the friction of the curves."""
    conditioned = log.conditioned
    row_filter, rate = RowFilter(conditioned.factor), conditioned.decimate_rate
    pieces: list[list[Array]] = []
    friction: dict[int, list[Array]] = {model.robot.index(curve.joint): [] for curve in curves}
    motion, deformations = list[Array](), list[Array]()
    for segment in log.segments:
        if row_filter.output_rows(len(segment)) < 2:
            continue
        once = 1.0 / np.sqrt(segment.repeats)  # undoes the weight of averaged periods
        blocks = [[once * x for x in group] for _, group in filtered_rows(model, segment, row_filter)]
        pieces.append([lowpass(np.vstack(stack), rate, conditioned.cutoff) for stack in zip(*blocks, strict=True)])
        for curve in curves:
            j = model.robot.index(curve.joint)
            columns = row_filter.apply(asymmetric_columns(curve.law, segment.v[:, j]))
            friction[j].append(lowpass(columns, rate, conditioned.cutoff))
        motion.append(row_filter.apply(np.hstack([segment.q, segment.v])))
        apart = deformation(segment)
        if apart is not None:
            deformations.append(row_filter.apply(apart.reshape(len(apart), -1)).reshape(-1, *apart.shape[1:]))
    if not pieces:
        raise EstimationError(
            "the log is shorter than the filter", where=log.name, remedy="record longer, or raise signals.decimate"
        )
    stacked = [np.vstack(stack) for stack in zip(*pieces, strict=True)]
    return LoopRows(
        log.name,
        rate,
        tuple(block[:, :-1] for block in stacked),
        np.column_stack([block[:, -1] for block in stacked]),
        {j: np.vstack(blocks) for j, blocks in friction.items()},
        np.vstack(motion),
        np.vstack(deformations) if len(deformations) == len(pieces) else None,
    )


def link_statistics(model: DynamicModel, logs: Sequence[LoopRows], known: Sequence[Array]) -> StatisticSet:
    """The equations of the links after subtraction of known torques.

    Args:
        known: Known joint torques of each log, shape (R, n) [N·m or N].
    """
    layouts = tuple(Layout(group.name, group.joint, group.columns) for group in model.groups)
    entries = []
    for rows, torque in zip(logs, known, strict=True):
        targets = rows.tau - model.row_targets(torque)
        for g, layout in enumerate(layouts):
            factor = triangle(np.column_stack([rows.columns[g], targets[:, g]]))
            entries.append(Statistic(rows.log, 0, layout.group, factor, len(rows)))
    return StatisticSet(model.names, layouts, tuple(entries), f"{model.fingerprint} loops")


def joint_error(model: DynamicModel, theta: Array, rows: LoopRows, known: Array) -> Array:
    """Measured torque minus that of links and known torques.

    Args:
        theta: Its parameters, shape (p,).
        known: Known joint torques, shape (R, n) [N·m or N].
    """
    predicted = np.column_stack([block @ theta[group.columns] for block, group in zip(rows.columns, model.groups, strict=True)])
    return np.asarray(np.linalg.solve(model.drive.row_mix, (rows.tau - predicted).T).T - known)


def deformation(segment: Segment) -> Array | None:
    """Motor minus link position after the gear, and its rate, shape (N, n, 2); None without motor positions."""
    if segment.qm is None or segment.vm is None:
        return None
    return np.stack([segment.qm - segment.q, segment.vm - segment.v], axis=-1)


def residual_torque(residual: Residual, segment: Segment) -> Array:
    """Torque of the residual along a segment without the gears' kinematic error, shape (N, n) [N·m or N]."""
    apart = deformation(segment)
    if apart is None:
        raise ModelError("the residual needs motor positions", where=segment.log or None, remedy="log both encoders")
    return residual.torque(apart[..., 0], apart[..., 1])


def decimated_log(log: PreparedLog) -> list[Segment]:
    """A log's segments at the rate of its equations with low-passed torque, sufficient for runs at constant speed."""
    cutoff = min(log.conditioned.cutoff, log.conditioned.row_cutoff)
    smooth = (replace(segment, tau=lowpass(segment.total, segment.rate, cutoff), external=None) for segment in log.segments)
    return [segment.thinned(log.conditioned.factor) for segment in smooth]


def without_torque(log: PreparedLog, torques: Sequence[Array]) -> PreparedLog:
    """Subtracts a known torque from a log's measured torque; it is lost in the gears and does not load them.

    Args:
        torques: One array per segment, shape (N, n) [N·m or N].
    """
    return log.with_segments(
        replace(segment, tau=None if segment.tau is None else segment.tau - torque)
        for segment, torque in zip(log.segments, torques, strict=True)
    )


#: The loops have converged when a round changes the mean training error by less than this fraction. Deformation is nearly the
#: links' torque divided by a stiffness, so links and residual keep exchanging torque that both can explain; further rounds
#: fit the training motions slightly better and others worse.
TOLERANCE = 0.02


@dataclass(frozen=True, eq=False)
class LoopGain:
    """The error after one loop of one round.

    Attributes:
        round: 0 is the plain WLS fit before the loops.
        loop: "wls", "friction", "links" or "residual".
        rmse: Training error, shape (n,) [N·m or N].
        held_out: Error on held-out logs, shape (n,) [N·m or N], or None without any.
        gain: Relative reduction of the mean training error by the loop; negative if it increased.
    """

    round: int
    loop: str
    rmse: Array
    held_out: Array | None
    gain: float


@dataclass(frozen=True, eq=False)
class ThreeLoop(ReadOnly):
    """Friction, links and residual of a robot.

    Attributes:
        model: Rigid bodies, rotors, and the friction laws of the curves.
        theta: Parameters, shape (p,): base parameters in their independent columns, zero in the dependent ones.
        friction: One curve for each joint that was driven in both directions.
        converged: Whether the loops converged within the allowed rounds.
    """

    model: DynamicModel
    theta: Array
    friction: tuple[FrictionCurve, ...]
    residual: Residual
    gains: tuple[LoopGain, ...]
    converged: bool

    def as_dict(self) -> dict[str, Any]:
        """The history and the friction curves, for ``compensation`` of identification.json."""
        return {
            "settled": self.converged,
            "loops": plain(self.gains),
            "friction_curves": [curve.as_dict() for curve in self.friction],
        }


def three_loop(
    model: DynamicModel,
    logs: Sequence[PreparedLog],
    sweeps: Sequence[PreparedLog],
    *,
    kind: str = "gmr",
    held_out: Sequence[PreparedLog] = (),
    rounds: int = 20,
    seed: int = 0,
) -> ThreeLoop:
    """Runs the three loops to convergence.

    Args:
        model: Rigid bodies, rotors and the friction of the plain fit. Joints that the sweeps do not drive keep that
            friction, which is estimated with the links.
        logs: Excitation logs with torque and both encoders, conditioned equally.
        sweeps: Logs of the bidirectional experiment; without motor positions their points are not corrected by the
            residual. Empty: friction is estimated with the links.
        kind: Kind of the residual: "rbf", "gmr", or "none" for friction and links only.
        held_out: Logs used only to compute errors.
        rounds: Largest number of rounds.

    Raises:
        LogError: A log has no torque or no motor positions, or the sweeps of a joint have one direction only.
        ModelError: The model has elastic joints: their springs already explain the deformation.
        EstimationError: Too little data, or an unknown kind or input.
    """
    check_known("kind of residual", kind, (*KINDS, "none"), EstimationError)
    check_compensation(model, [log.recording for log in (*logs, *held_out)], kind)
    if rounds < 1:
        raise EstimationError("the loops need at least one round", got=rounds)
    loops = _Loops(model, logs, sweeps, held_out, kind, seed)
    loops.fit_links()
    loops.note(0, "wls")
    converged, turn = False, 0
    while turn < rounds and not converged:
        turn, before = turn + 1, loops.error
        if loops.sweeps:
            loops.fit_friction()
            loops.note(turn, "friction")
        loops.fit_links()
        loops.note(turn, "links")
        loops.fit_residual(validate=False)
        loops.note(turn, "residual")
        converged = turn > 1 and abs(loops.error - before) < TOLERANCE * before
    loops.gains.pop()
    loops.fit_residual(validate=True)
    loops.note(turn, "residual")
    place = {name: k for k, name in enumerate(loops.free.names)}
    known = {f"{s}_{c.joint}": x for c in loops.curves for s, x in zip(c.law.symbols, c.params, strict=True)}
    theta = np.array([known[name] if name in known else loops.theta[place[name]] for name in loops.model.names])
    return ThreeLoop(loops.model, theta, loops.curves, loops.residual, tuple(loops.gains), converged)


def check_compensation(model: DynamicModel, logs: Sequence[Recording], kind: str) -> None:
    """Raises for what the three loops do not support, before any work is done."""
    if not logs:
        raise LogError("no log was given to learn a residual from", remedy="name at least one, with both encoders")
    if not model.is_rigid:
        raise ModelError(
            "the three loops want a rigid model: springs already explain the deformation",
            remedy="set model.elastic: false, or compensation.residual: none and no --sweeps",
        )
    if kind == "none":
        return
    for log in logs:
        problem = "a residual was asked for, and the log has no motor positions"
        require_motor_positions(log, problem, "log both encoders, or leave the residual out")


def fit_remaining_residual(
    model: DynamicModel,
    theta: Array,
    logs: Sequence[PreparedLog],
    *,
    kind: str = "gmr",
    seed: int = 0,
    like: Residual | None = None,
) -> Residual:
    """Runs the third loop alone: fits a residual network to the torque residual of a model on its logs.

    Args:
        theta: Its parameters, shape (p,).
        logs: Prepared logs with torque and both encoders.
    """
    check_compensation(model, [log.recording for log in logs], kind)
    rows = [loop_rows(model, log, ()) for log in logs]
    errors = [joint_error(model, theta, row, np.zeros(row.tau.shape)) for row in rows]
    return _learned(rows, errors, model.robot.joints, kind=kind, seed=seed, like=like)


def _learned(rows: Sequence[LoopRows], errors: Sequence[Array], joints: Sequence[str], **options: Any) -> Residual:
    """The residual of the errors of some logs; ``options`` are those of :func:`.fit_residual`."""
    apart = [log.deformation for log in rows if log.deformation is not None]
    if len(apart) < len(rows):
        raise EstimationError("a log has no motor positions", remedy="log both encoders, or leave the residual out")
    return fit_residual(np.vstack(apart), np.vstack(errors), joints, motion=np.vstack([log.motion for log in rows]), **options)


class _Loops:
    """Parameters of the links, friction curves and residual between loops; the links' loop estimates those of ``free``."""

    def __init__(
        self,
        model: DynamicModel,
        logs: Sequence[PreparedLog],
        sweeps: Sequence[PreparedLog],
        held_out: Sequence[PreparedLog],
        kind: str,
        seed: int,
    ) -> None:
        self.model, self.logs, self.held_out = model, logs, held_out
        self.options: dict[str, Any] = {"kind": kind, "seed": seed}
        self.sweeps = [segment for log in sweeps for segment in decimated_log(log)]
        self.curves: tuple[FrictionCurve, ...] = ()
        joints = model.robot.joints
        self.residual = Residual("none", joints, (None,) * len(joints), dict.fromkeys(joints, 0.0))
        self.gains: list[LoopGain] = []
        self._free(model)

    def _free(self, free: DynamicModel) -> None:
        """Builds the rows of all logs for the parameters that the links' loop estimates."""
        self.free, self.theta = free, np.zeros(len(free.parameters))
        self.rows = [loop_rows(free, log, self.curves) for log in self.logs]
        self.unseen = [loop_rows(free, log, self.curves) for log in self.held_out]

    @property
    def error(self) -> float:
        """Mean training error."""
        return float(self.gains[-1].rmse.mean())

    def fit_friction(self) -> None:
        """Loop 1: friction curves through the runs in both directions, at first without anything else that is known."""
        if self.curves:
            self._refit_friction()
        else:
            self._start_friction()

    def _refit_friction(self) -> None:
        """Fits the curves to the points of the runs without the residual, and to the torque residual of the logs, where a
        point has the weight of one second of a log."""
        robot, sweeps = self.model.robot, self.sweeps
        if self.residual.kind != "none" and all(segment.qm is not None for segment in sweeps):
            sweeps = [replace(segment, external=-residual_torque(self.residual, segment)) for segment in sweeps]
        errors, curves = np.vstack([self._error(rows) for rows in self.rows]), []
        for old in self.curves:
            j = robot.index(old.joint)
            columns = np.vstack([rows.friction[j] for rows in self.rows])
            points = friction_points(sweeps, robot, old.joint).centred()
            target = errors[:, j] + columns @ old.params
            curves.append(curve_through(points, old.law, columns, target, np.sqrt(self.rows[0].rate)))
        self.curves = tuple(curves)

    def _start_friction(self) -> None:
        """Puts curves and offsets of the driven joints in place of the friction that the links' loop has estimated."""
        robot = self.model.robot
        driven = [j for j in range(robot.n) if any(constant_speed_runs(segment, j) for segment in self.sweeps)]
        if not driven:
            raise LogError(
                "the sweeps drive no joint at constant speed while the others are still",
                where=self.sweeps[0].log,
                remedy="drive the bidirectional experiment (`design` with excitation.family: sweeps)",
            )
        before = dict(zip(self.free.names, self.theta, strict=True))
        self.curves = tuple(fit_friction(friction_points(self.sweeps, robot, robot.joints[j]).centred()) for j in driven)
        others = [
            applied
            for applied in self.model.terms
            if applied.term.name == "rotor_inertia" or applied.side == "motor" or applied.axis not in driven
        ]
        offsets = [AppliedTerm(Offset(), j) for j in driven]
        laws = [AppliedTerm(curve.law, robot.index(curve.joint)) for curve in self.curves]
        self.model = self.model.with_terms([*others, *laws, *offsets])
        self._free(self.model.with_terms([*others, *offsets]))
        self.theta = np.array([before.get(name, 0.0) for name in self.free.names])

    def fit_links(self) -> None:
        """Loop 2: WLS fit of all other parameters to the torque that friction curves and residual do not explain."""
        base = self.free.base()
        statistics = link_statistics(self.free, self.rows, [self._known(rows) for rows in self.rows])
        self.theta = base.embedded(fit_base(statistics, base).params)

    def fit_residual(self, validate: bool) -> None:
        """Loop 3: fits the residual to the torque that friction and links do not explain."""
        if self.options["kind"] == "none":
            return
        errors = [self._error(rows, residual=False) for rows in self.rows]
        like = None if self.residual.kind == "none" else self.residual
        self.residual = _learned(self.rows, errors, self.model.robot.joints, like=like, validate=validate, **self.options)

    def note(self, turn: int, loop: str) -> None:
        """Appends the errors after a loop to the history."""
        rmse, *held_out = (rms(np.vstack([self._error(rows) for rows in logs]), 0) for logs in (self.rows, self.unseen) if logs)
        gain = 0.0 if not self.gains else 1.0 - float(rmse.mean() / self.gains[-1].rmse.mean())
        self.gains.append(LoopGain(turn, loop, rmse, held_out[0] if held_out else None, gain))

    def _known(self, rows: LoopRows, residual: bool = True) -> Array:
        """Friction of the curves and residual, shape (R, n)."""
        known = np.zeros(rows.tau.shape)
        for curve in self.curves:
            j = self.model.robot.index(curve.joint)
            known[:, j] += rows.friction[j] @ curve.params
        if residual and self.residual.kind != "none" and rows.deformation is not None:
            known += self.residual.torque(rows.deformation[..., 0], rows.deformation[..., 1])
        return known

    def _error(self, rows: LoopRows, residual: bool = True) -> Array:
        return joint_error(self.free, self.theta, rows, self._known(rows, residual))
