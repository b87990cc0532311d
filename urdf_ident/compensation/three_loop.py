"""E's three loops (E, §5, Fig. 2): friction, links, and what is left over, each measured on what the others leave.

1. Friction from runs both ways, links' torque cancelled (:mod:`.bidirectional`), the residual's torque taken off.
2. Links by iterated WLS on ``τ − τ_f − τ_u``.
3. The residual on ``τ − τ_f − τ_link``, read from the deformation (:mod:`.residual`).

Repeated until the training error has settled. Known torques go into the equations as external ones, so that every loop
runs through the one producer of rows and the one solver of the package.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..data.filters import lowpass
from ..data.prepare import PreparedLog
from ..errors import EstimationError, LogError, ModelError
from ..estimation.fit import Fit, fit_base
from ..estimation.rows import build_statistics
from ..model.dynamic_model import DynamicModel
from ..model.elasticity import ElasticModel
from ..model.inertia import Array
from ..model.segment import Segment, freeze_arrays
from ..model.terms import AppliedTerm
from .bidirectional import FrictionCurve, identify_friction
from .residual import DEFAULT_INPUTS, Residual, fit_residual

#: The loops have settled when the mean training error changes by less than this fraction.
TOLERANCE = 1e-3


@dataclass(frozen=True, eq=False)
class LoopGain:
    """The error after one loop of one round.

    Attributes:
        round: 0 is the plain WLS fit before the loops.
        loop: "wls", "friction", "links" or "residual".
        rmse: Training error, shape (n,) [N·m or N].
        held_out: Error on held-out logs, shape (n,) [N·m or N], or None without any.
        gain: Part by which the loop lowered the mean training error; negative where it raised it.
    """

    round: int
    loop: str
    rmse: Array
    held_out: Array | None
    gain: float

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        held_out = None if self.held_out is None else self.held_out.tolist()
        return {"round": self.round, "loop": self.loop, "rmse": self.rmse.tolist(), "held_out": held_out, "gain": self.gain}


@dataclass(frozen=True, eq=False)
class ThreeLoop:
    """Friction, links and residual of a robot.

    Attributes:
        model: Rigid bodies, rotors, and the friction laws of the curves.
        theta: Parameters, shape (p,): base parameters in their independent columns, zero in the dependent ones.
        friction: One curve for each joint that was driven both ways.
        links: The last WLS fit of what is not friction from curves.
        residual: What is read from the deformation.
        gains: The history, loop by loop.
        settled: Whether the loops came to rest before the rounds ran out.
    """

    model: DynamicModel
    theta: Array
    friction: tuple[FrictionCurve, ...]
    links: Fit
    residual: Residual
    gains: tuple[LoopGain, ...]
    settled: bool

    def __post_init__(self) -> None:
        freeze_arrays(self)

    @property
    def rounds(self) -> int:
        """Number of rounds."""
        return self.gains[-1].round

    def torque(self, q: ArrayLike, v: ArrayLike, a: ArrayLike, deformation: ArrayLike, deformation_rate: ArrayLike) -> Array:
        """Links, friction and residual.

        Args:
            q, v, a: Joint motion, shape (N, n) or (n,) [rad, rad/s, rad/s² or m, m/s, m/s²].
            deformation: Motor minus link position, after the gear, same shape [rad or m].
            deformation_rate: Its rate, same shape [rad/s or m/s].

        Returns:
            Same shape [N·m or N].
        """
        left = self.residual.torque(
            deformation=deformation, deformation_rate=deformation_rate, position=q, velocity=v, acceleration=a
        )
        return self.model.torque(self.theta, np.asarray(q), np.asarray(v), np.asarray(a)) + left

    def summary(self) -> str:
        """The history, one line a loop, and the residual."""
        joints = self.model.robot.joints
        lines = ["round loop          mean error     gain   " + " ".join(f"{joint:>10.10}" for joint in joints)]
        for item in self.gains:
            shown = item.rmse if item.held_out is None else item.held_out
            lines.append(f"{item.round:5d} {item.loop:<10} {shown.mean():12.5g} {100 * item.gain:7.2f} %  "
                         + " ".join(f"{value:10.4g}" for value in shown))  # fmt: skip
        lines.append("errors on held-out logs [N·m or N]" if self.gains[0].held_out is not None else "errors in training")
        return "\n".join([*lines, self.residual.summary()])


def three_loop(
    model: DynamicModel,
    logs: Sequence[PreparedLog],
    sweeps: Sequence[PreparedLog],
    *,
    kind: str = "gmr",
    use: Sequence[str] = DEFAULT_INPUTS,
    held_out: Sequence[PreparedLog] = (),
    rounds: int = 8,
    seed: int = 0,
) -> ThreeLoop:
    """Runs the three loops to convergence.

    Args:
        model: Rigid bodies, rotors and the friction that the plain fit starts from. Joints that the sweeps do not drive
            keep that friction, and it is estimated with the links.
        logs: Excitation with torque and both encoders, conditioned alike.
        sweeps: Logs of the bidirectional experiment; without motor positions friction is measured once, in round 1.
            None at all: friction stays with the links.
        kind: Of the residual: "rbf" or "gmr".
        use: What the residual reads.
        held_out: Logs that are only scored.
        rounds: At most.
        seed: Of the residual's random numbers.

    Returns:
        The result with its history.

    Raises:
        LogError: A log has no torque or no motor positions, or the sweeps of a joint go one way only.
        ModelError: The model has elastic joints: their springs already explain the deformation.
        EstimationError: Too little data, or an unknown kind or input.
    """
    if isinstance(model, ElasticModel):
        raise ModelError("the three loops want a rigid model: springs already explain the deformation",
                         remedy="set model.elastic: false, or leave the residual out")  # fmt: skip
    if rounds < 1:
        raise EstimationError("the loops need at least one round", got=rounds)
    for log in (*logs, *held_out):
        check_deformation(log, use)
    state = _Loops(model, tuple(logs), tuple(sweeps), tuple(held_out), kind, tuple(use), seed)
    state.start()
    settled = False
    for turn in range(1, rounds + 1):
        before = state.error
        state.run(turn)
        settled = turn > 1 and abs(state.error - before) < TOLERANCE * before
        if settled:
            break
    return state.result(settled)


def check_deformation(log: PreparedLog, use: Sequence[str] = DEFAULT_INPUTS) -> None:
    """Refuses a log whose deformation cannot be told where a residual reads it.

    Args:
        log: The prepared log.
        use: What the residual reads.

    Raises:
        LogError: It has no motor positions.
    """
    if any(name.startswith("deformation") for name in use) and any(part.qm is None for part in log.segments):
        raise LogError(
            "a residual was asked for, and the log has no motor positions", where=log.recording.path or log.name,
            expected=f"qm_{log.recording.joints[0]}, … before the gear beside q_{log.recording.joints[0]}, …",
            remedy="log both encoders, or leave the residual out",
        )  # fmt: skip


def residual_inputs(segment: Segment) -> dict[str, Array | None]:
    """What a residual may read of a segment.

    Args:
        segment: Conditioned, with the motor side after the gear.

    Returns:
        Name → shape (N, n), or None where the segment does not have it.
    """
    apart = None if segment.qm is None else segment.qm - segment.q
    rate = None if segment.vm is None else segment.vm - segment.v
    return {
        "deformation": apart, "deformation_rate": rate, "position": segment.q, "velocity": segment.v,
        "acceleration": segment.a,
    }  # fmt: skip


def torque_error(model: DynamicModel, theta: Array, log: PreparedLog) -> list[Array]:
    """Measured torque minus the model's, the difference low-passed as the log's positions were.

    Friction that reverses is steeper than what the filter lets through of the measurement: both lose it alike.

    Args:
        model: The dynamic model.
        theta: Parameters, shape (p,).
        log: The prepared log.

    Returns:
        One array a segment, shape (N, n) [N·m or N].

    Raises:
        LogError: The log holds no torque.
    """
    out = []
    for part in log.segments:
        if part.tau is None:
            raise LogError("no torque or current in the log", where=log.name, remedy="name the effort columns")
        total = part.tau if part.external is None else part.tau + part.external
        out.append(lowpass(total - model.torque_along(theta, part), part.rate, log.conditioned.cutoff))
    return out


def learn_residual(
    model: DynamicModel, theta: Array, logs: Sequence[PreparedLog], *, kind: str = "gmr",
    use: Sequence[str] = DEFAULT_INPUTS, seed: int = 0, like: Residual | None = None,
) -> Residual:  # fmt: skip
    """Fits a residual to what a model leaves over on its logs.

    Args:
        model: The dynamic model.
        theta: Its parameters, shape (p,).
        logs: Prepared logs with both encoders.
        kind: "rbf" or "gmr".
        use: What the residual reads.
        seed: Of the mixture's initialisation.
        like: An earlier residual whose size is taken over.

    Returns:
        The residual.

    Raises:
        LogError: A log has no torque or no motor positions.
        EstimationError: Unknown kind or input, or too few samples.
    """
    for log in logs:
        check_deformation(log, use)
    errors = [torque_error(model, theta, log) for log in logs]
    return _learn(model, logs, errors, kind, use, seed, like)


def _learn(
    model: DynamicModel, logs: Sequence[PreparedLog], errors: Sequence[Sequence[Array]], kind: str, use: Sequence[str],
    seed: int, like: Residual | None,
) -> Residual:  # fmt: skip
    inputs: dict[str, list[Array]] = {name: [] for name in use}
    targets = []
    for log, parts in zip(logs, errors, strict=True):
        every = log.conditioned.factor  # neighbours at the full rate are copies of each other
        for segment, error in zip(log.segments, parts, strict=True):
            targets.append(error[::every])
            available = residual_inputs(segment)
            for name in use:
                value = available.get(name)
                if value is not None:
                    inputs[name].append(value[::every])
    stacked = {name: np.concatenate(values) for name, values in inputs.items() if values}
    return fit_residual(stacked, np.concatenate(targets), model.robot.joints, kind=kind, use=use, seed=seed, like=like)


def with_external(log: PreparedLog, torques: Sequence[Array]) -> PreparedLog:
    """A log with torques that are known to act, beside those it knows already.

    Args:
        log: The prepared log.
        torques: One array a segment, shape (N, n) [N·m or N]; positive where they help the motion.

    Returns:
        The log.
    """
    segments = tuple(
        replace(part, external=torque if part.external is None else part.external + torque)
        for part, torque in zip(log.segments, torques, strict=True)
    )
    return replace(log, conditioned=replace(log.conditioned, segments=segments))


class _Loops:
    """The state between loops: parameters, curves and residual, and what each log's error is under them."""

    def __init__(
        self, model: DynamicModel, logs: tuple[PreparedLog, ...], sweeps: tuple[PreparedLog, ...],
        held_out: tuple[PreparedLog, ...], kind: str, use: tuple[str, ...], seed: int,
    ) -> None:  # fmt: skip
        self.model, self.logs, self.sweeps, self.held_out = model, logs, sweeps, held_out
        self.kind, self.use, self.seed = kind, use, seed
        self.curves: tuple[FrictionCurve, ...] = ()
        self.residual: Residual | None = None
        self.fit: Fit | None = None
        self.theta = np.zeros(len(model.parameters))
        self.gains: list[LoopGain] = []

    @property
    def error(self) -> float:
        """Mean training error."""
        return float(self.gains[-1].rmse.mean())

    def start(self) -> None:
        """Plain WLS."""
        self._links(self.model, {})
        self._note(0, "wls")

    def run(self, turn: int) -> None:
        """One round."""
        if self.sweeps and (turn == 1 or self._sweeps_deform()):
            self._friction()
            self._note(turn, "friction")
        known = {self._index[item.joint]: item for item in self.curves}
        self._links(self.model, known)
        self._note(turn, "links")
        errors = [torque_error(self.model, self.theta, log) for log in self.logs]
        self.residual = _learn(self.model, self.logs, errors, self.kind, self.use, self.seed, self.residual)
        self._note(turn, "residual")

    def result(self, settled: bool) -> ThreeLoop:
        """What was found."""
        if self.fit is None or self.residual is None:
            raise EstimationError("the loops have not run")
        return ThreeLoop(self.model, self.theta, self.curves, self.fit, self.residual, tuple(self.gains), settled)

    @property
    def _index(self) -> Mapping[str, int]:
        return {joint: j for j, joint in enumerate(self.model.robot.joints)}

    def _sweeps_deform(self) -> bool:
        return all(part.qm is not None for log in self.sweeps for part in log.segments)

    def _residual_torque(self, log: PreparedLog) -> list[Array]:
        if self.residual is None:
            return [np.zeros(part.q.shape) for part in log.segments]
        return [self.residual.torque(**residual_inputs(part)) for part in log.segments]

    def _friction(self) -> None:
        """Loop 1: new curves, and a model with their laws."""
        sweeps = self.sweeps
        if self.residual is not None:
            sweeps = tuple(with_external(log, [-x for x in self._residual_torque(log)]) for log in sweeps)
        segments = [part for log in sweeps for part in log.segments]
        driven = [joint for joint, j in self._index.items() if any(_is_driven(part, j) for part in segments)]
        if not driven:
            raise LogError("the sweeps drive no joint at constant speed, the others still", where=sweeps[0].name,
                           remedy="drive the bidirectional experiment (bidirectional_experiment)")  # fmt: skip
        self.curves = identify_friction(segments, self.model.robot, joints=driven)
        old = dict(zip(self.model.names, self.theta, strict=True))
        terms = [item for item in self.model.terms if not _replaced(item, driven, self.model)]
        terms += [AppliedTerm(curve.law, self._index[curve.joint]) for curve in self.curves]
        self.model = self.model.with_terms(terms)
        self.theta = np.array([old.get(name, 0.0) for name in self.model.names])
        self._set_curves()

    def _set_curves(self) -> None:
        place = {name: k for k, name in enumerate(self.model.names)}
        theta = self.theta.copy()
        for curve in self.curves:
            for symbol, value in zip(curve.law.symbols, curve.params, strict=True):
                theta[place[f"{symbol}_{curve.joint}"]] = value
        self.theta = theta

    def _links(self, model: DynamicModel, known: Mapping[int, FrictionCurve]) -> None:
        """Loop 2: everything but known friction, by WLS on what friction and residual leave."""
        free = model.with_terms([item for item in model.terms if not (item.axis in known and _is_friction(item))])
        logs = []
        for log in self.logs:
            taken = self._residual_torque(log)
            for part, torque in zip(log.segments, taken, strict=True):
                for j, curve in known.items():
                    torque[:, j] += curve.torque(part.v[:, j])
            logs.append(with_external(log, [-x for x in taken]))
        base = free.base()
        self.fit = fit_base(build_statistics(free, logs), base)
        found = np.zeros(len(free.parameters))
        found[base.independent] = self.fit.params
        place = {name: k for k, name in enumerate(model.names)}
        theta = np.zeros(len(model.parameters))
        theta[[place[name] for name in free.names]] = found
        self.theta = theta
        self._set_curves()

    def _note(self, turn: int, loop: str) -> None:
        rmse, held_out = self._rmse(self.logs), self._rmse(self.held_out) if self.held_out else None
        gain = 0.0 if not self.gains else 1.0 - float(rmse.mean() / self.gains[-1].rmse.mean())
        self.gains.append(LoopGain(turn, loop, rmse, held_out, gain))

    def _rmse(self, logs: Sequence[PreparedLog]) -> Array:
        left = []
        for log in logs:
            for error, known in zip(torque_error(self.model, self.theta, log), self._residual_torque(log), strict=True):
                left.append(error - known)
        return np.asarray(np.sqrt(np.mean(np.vstack(left) ** 2, axis=0)))


def _is_friction(item: AppliedTerm) -> bool:
    return item.term.name != "rotor_inertia" and item.side == "joint"


def _replaced(item: AppliedTerm, driven: Sequence[str], model: DynamicModel) -> bool:
    return _is_friction(item) and model.robot.joints[item.axis] in driven


def _is_driven(segment: Segment, j: int) -> bool:
    """Whether the joint moves at some time while the others are still."""
    others = np.abs(np.delete(segment.v, j, axis=1)).max(axis=1, initial=0.0)
    return bool(np.any((np.abs(segment.v[:, j]) > 0.02) & (others < 0.05 * np.abs(segment.v[:, j]))))
