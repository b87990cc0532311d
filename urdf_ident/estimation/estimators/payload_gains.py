"""Torque constants from a payload of known mass, by total least squares (Gautier and Briot 2011, 2014).

With currents instead of torques and unknown gains g every row is ``g I = W beta``, with the trivial solution zero. A known
payload in some of the logs sets the scale: ``g I = W beta + w``, w the torque that moves it. The current is noisy, so that
least squares would underestimate g; total least squares finds the smallest change of the *noisy* columns that satisfies the
equations.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

import numpy as np

from ...errors import EstimationError, ModelError
from ...linalg import Array, orthogonal_part, positive, scaled_lstsq, triangle
from ...logs.recording import Recording
from ...model.base import BaseParameters
from ...model.drive import Drive
from ...model.dynamic_model import DynamicModel
from ...model.payload import CHECK_PAYLOAD, Payload
from ...model.rigid_bodies import CHUNK
from ...model.row_groups import joint_of
from ...samples import Segment
from ...signals.config import SignalConfig
from ...signals.prepare import PreparedLog, prepare_logs
from ...statistics.accumulate import build_statistics
from ...statistics.least_squares import MOST_ROUNDS
from ...torque_constants import NOT_FOUND, TorqueConstants, resolve_gain
from ..extended_model import ExtendedModel
from .total_least_squares import total_least_squares

#: Relative change of the gains at which scaling rows and columns by them has converged.
CONVERGED = 1e-9
#: Stretches per log for standard errors.
STRETCHES = 8
#: Residual of a joint over that with any body on the payload's link, from which the stated body is refused: load-dependent
#: friction, which the model of a payload lacks, adds a tenth of the load at most.
OTHER_BODY = 1.25


class _PayloadRows(ExtendedModel):
    """A model with a column of the torque that a payload in some logs and known external torques need; targets are efforts."""

    def __init__(self, model: DynamicModel, payload: Payload) -> None:
        super().__init__(model, ["payload"])
        self.payload = payload

    def row_targets(self, tau: Array, external: Array | None = None) -> Array:
        return self.model.row_targets(tau)

    def row_blocks(
        self, segment: Segment, chunk: int = CHUNK, *, compact: bool = False, torque: bool = False
    ) -> Iterator[tuple[slice, list[Array]]]:
        known = np.zeros_like(segment.q) if segment.external is None else -segment.external
        if self.payload.on(segment.log):
            known = known + self.payload.torque(self.model.robot, segment)
        targets = self.model.row_targets(known)
        bare = replace(segment, external=None)
        for part, blocks in self.model.row_blocks(bare, chunk=chunk, compact=compact, torque=torque):
            pairs = zip(blocks, targets[part].T, strict=True)
            yield part, [np.insert(block, block.shape[1] - torque, w, axis=1) for block, w in pairs]


def drive_gains(model: DynamicModel, logs: Sequence[PreparedLog], base: BaseParameters, payload: Payload) -> TorqueConstants:
    """Estimates the gain of every effort channel from logs with and without a known payload.

    Args:
        model: The dynamic model, its drive with unit gains.
        logs: Prepared logs; ``tau`` is the effort as logged.

    Raises:
        EstimationError: Only logs with or only logs without it, a joint that it does not load, no convergence, or logs that
            contradict the payload.
    """
    carried = [payload.on(log.name) for log in logs]
    if all(carried) or not any(carried):
        raise EstimationError(
            "torque constants need logs with and without the payload",
            got=f"{sum(carried)} of {len(logs)} logs carry it",
            where="drive.payload.logs",
            remedy="give logs of the same motions with and without it together, and name the loaded ones, or give drive.gain",
        )
    rows = _PayloadRows(model, payload)
    statistics = build_statistics(rows, logs, blocks=STRETCHES)  # type: ignore[arg-type]
    stretches = list(dict.fromkeys((entry.log, entry.block) for entry in statistics.entries))

    def factors(some: Collection[tuple[str, int]]) -> list[Array]:
        """``[W | w | I]`` of each row group on the base parameters, of some stretches of time."""
        part = statistics.select(lambda entry: (entry.log, entry.block) in some)
        return part.weighted(columns=np.append(base.independent, rows.added))

    joints = tuple(joint_of(group.name) for group in model.groups)
    gain = _converged(factors(stretches), joints)
    # jackknife over the stretches of time
    moves = [_solved(factors([one for one in stretches if one != left]), gain) - gain for left in stretches]
    gain_error = np.sqrt((len(moves) - 1) / len(moves) * np.sum(np.square(moves), axis=0))
    unknown = ~(gain_error < NOT_FOUND * np.abs(gain))
    if unknown.any():
        k = int(np.argmax(unknown))
        raise EstimationError(
            "the payload hardly loads this joint: its torque constant cannot be found",
            where=model.groups[k].name,
            got=f"{gain[k]:.4g} ± {gain_error[k]:.2g}",
            remedy=CHECK_PAYLOAD + "move the joint more with the payload, or give drive.gain",
        )
    loaded, empty = (factors([one for one in stretches if payload.on(one[0]) == on]) for on in (True, False))
    _check_body(model, base, loaded, empty, gain, payload)
    origin = ("total least squares",) * model.n
    return TorqueConstants(joints, gain, np.abs(gain_error / gain), origin, "known payload")


def _converged(whole: Sequence[Array], joints: Sequence[str]) -> Array:
    """The gains, from least squares with every joint's rows in units of its effort.

    Raises:
        EstimationError: No convergence.
    """
    scales = [1.0 / positive(float(np.linalg.norm(part[:, -1]))) for part in whole]
    n, b = len(whole), whole[0].shape[1] - 2
    wide = triangle(*(_wide(part, g, n) * scale for g, (part, scale) in enumerate(zip(whole, scales, strict=True))))
    gain = scaled_lstsq(np.delete(wide, b, axis=1), -wide[:, b], rcond=1e-12)[b:]
    for _ in range(MOST_ROUNDS):
        before, gain = gain, _solved(whole, gain)
        moved = np.abs(gain / before - 1)
        if moved.max() < CONVERGED:
            return gain
    restless = [joint for joint, change in zip(joints, moved, strict=True) if change > 0.1 * moved.max()]
    raise EstimationError(
        f"the torque constants of {', '.join(restless)} do not converge",
        got=", ".join(f"{g:.4g}" for g in gain),
        remedy=CHECK_PAYLOAD + "carry the payload off their axes, record more motion with and without it, or give drive.gain",
    )


def _check_body(
    model: DynamicModel, base: BaseParameters, loaded: Sequence[Array], empty: Sequence[Array], gain: Array, payload: Payload
) -> None:
    """Refuses a payload if another body on its link explains the loaded logs clearly better, with the same torque constants.

    Its mass is not tested: the constants follow it.

    Args:
        loaded, empty: ``[W | w | I]`` of each row group, of the logs with and without it.
    """
    moved, b = base.projection[:, 10 * payload.body : 10 * payload.body + 10], len(base)
    stated, free = list[Array](), list[Array]()
    for g, (carrying, bare) in enumerate(zip(loaded, empty, strict=True)):
        both = np.vstack([carrying, bare])
        torque, body = gain[g] * both[:, -1:], np.vstack([carrying[:, :b] @ moved, np.zeros((len(bare), 10))])
        left = np.linalg.norm(orthogonal_part(both[:, -1], both[:, : b + 1], rcond=1e-12))
        unit = 1.0 / positive(abs(gain[g]) * float(max(left, 1e-9 * np.linalg.norm(both[:, -1]))))
        stated.append(unit * np.hstack([both[:, :b], torque - both[:, b : b + 1]]))
        free.append(unit * np.hstack([both[:, :b], body, torque]))
    residuals = []
    for parts in (stated, free):  # of every row group after common least squares
        stacked = np.vstack(parts)
        params = scaled_lstsq(stacked[:, :-1], stacked[:, -1], rcond=1e-10)
        residuals.append(np.array([np.linalg.norm(part[:, :-1] @ params - part[:, -1]) for part in parts]))
    before, after = residuals
    times = before / np.maximum(after, 1e-6 * np.array([np.linalg.norm(part[:, -1]) for part in stated]))
    worst = int(np.argmax(times))
    if times[worst] > OTHER_BODY:
        name = joint_of(model.groups[worst].name)
        raise EstimationError(
            "these logs contradict the payload",
            where="drive.payload",
            got=f"a residual of {name} {times[worst]:.3g} times that with another body on this link",
            remedy="check drive.payload (logs, link, com [m], inertia), or give drive.gain",
        )


def _solved(whole: Sequence[Array], gain: Array) -> Array:
    """One iteration with rows in units of their noise, that of the effort times its gain; shape (n,)."""
    n, b, parts = len(whole), whole[0].shape[1] - 2, []
    for g, part in enumerate(whole):
        left = orthogonal_part(part[:, -1], part[:, : b + 1], rcond=1e-12)
        sigma = positive(max(float(np.linalg.norm(left)), 1e-9 * float(np.linalg.norm(part[:, -1]))))
        parts.append(_wide(part, g, n) / (abs(gain[g]) * sigma))
    columns = np.roll(triangle(*parts), -1 - b, axis=1)  # efforts, base parameters, payload
    if not columns[:, -1].any():
        raise EstimationError("the payload does not show in the efforts", remedy="check drive.payload.logs")
    try:
        return -total_least_squares(columns, np.diag([*(1.0 / np.abs(gain)), *np.zeros(b + 1)]))[:n]
    except EstimationError as error:
        remedy = CHECK_PAYLOAD + "record more motion with and without it, or give drive.gain"
        raise EstimationError("the payload does not set the torque constants", remedy=remedy) from error


def _wide(part: Array, g: int, n: int) -> Array:
    """``[W | w | −I of every channel]`` of one row group."""
    wide = np.zeros((len(part), part.shape[1] - 1 + n))
    wide[:, : part.shape[1] - 1] = part[:, :-1]
    wide[:, part.shape[1] - 1 + g] = -part[:, -1]
    return wide


def without_constants(drive: Drive) -> Drive:
    """Returns a drive that leaves efforts in the unit in which they are logged."""
    return replace(drive, gain=np.ones(drive.n), gain_origin="one, until the payload sets the scale")


def resolve_drive(
    model: DynamicModel,
    logs: Sequence[Recording],
    payload: Payload | None,
    config: SignalConfig | None = None,
    *,
    force: bool = False,
) -> Drive:
    """Returns the drive with its torque constants, found from a known payload or the logged targets of the controller.

    Args:
        payload: A known payload, or None.
        force: Use logs in spite of findings that refuse them.

    Returns:
        The same drive, or one whose ``gain_origin`` gives the source of each constant.

    Raises:
        LogError: No constants can be found in the logs' targets.
        EstimationError: Not enough logs with or without the payload, or a joint that it does not load.
        ModelError: Elastic joints, or coupled axes whose efforts are not logged at the motors.
    """
    drive = model.drive
    current = any(not log.effort_is_torque for log in logs)
    wanted = drive.gain_origin == "auto" or (current and drive.gain_origin == "effort is a torque")
    if payload is None or not wanted:
        return resolve_gain(drive, logs)
    if not model.is_rigid:
        raise ModelError(
            "torque constants from a payload are for rigid joints",
            where="drive.payload",
            remedy="give drive.gain, or identify as rigid first",
        )
    if drive.coupled.any() and any(log.effort_side != "motor" for log in logs):
        raise ModelError(
            "coupled axes need efforts logged at the motors", where="log.side.effort", got="joint", expected="motor"
        )
    unit = model.unloaded().with_drive(without_constants(drive))
    prepared = prepare_logs(logs, model.robot, unit.drive, config or SignalConfig(), force=force)
    return drive_gains(unit, prepared, unit.base(), payload).of(drive)
