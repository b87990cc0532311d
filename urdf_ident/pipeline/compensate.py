"""Adds what a rigid model does not explain: friction from bidirectional runs, a residual of the deformation (Liu 2023)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from ..compensation.friction_curve import with_sweep_points
from ..compensation.loop_validation import HeldOutComparison, compare_loops
from ..compensation.residual import KINDS, GearRipple, fit_gear_ripple
from ..compensation.three_loop import (
    ThreeLoop,
    check_compensation,
    fit_remaining_residual,
    residual_torque,
    three_loop,
    without_torque,
)
from ..errors import EstimationError
from ..logs.recording import Recording
from ..parallel import one_thread
from ..progress import Progress
from ..result.evidence import Range
from ..result.identification import Identification
from ..result.record import with_note
from ..signals.prepare import PreparedLog
from ..statistics.accumulate import build_statistics
from .checked_logs import conditioned_as_in_fit, further_logs
from .estimate import estimate_again
from .physical import physical_result

#: Shortest run of a sweep at one speed that is used [s].
_SHORTEST_RUN = 0.1


@one_thread()
def compensate(
    ident: Identification,
    logs: Sequence[Recording],
    *,
    sweeps: Sequence[Recording] = (),
    kind: str = "gmr",
    rounds: int = 20,
    seed: int = 0,
    judged: bool = False,
    force: bool = False,
    progress: Progress | None = None,
) -> Identification:
    """Runs the three loops from a result and returns it with their friction, links and residual.

    Standard parameters are estimated again, as physically consistent bodies, from the torque minus friction and residual.

    Args:
        ident: A result with rigid joints.
        logs: Training logs, with both encoders if a residual is wanted.
        sweeps: Logs of the bidirectional experiment; without them the result keeps its own friction laws.
        kind: Kind of residual: "rbf", "gmr", "none", or "auto" for the best on held-out motions.
        rounds: Maximum number of iterations.
        judged: Cross-validate it over motions, as "auto" always does; the result is in ``compensation``.
        force: Use logs in spite of findings that refuse them.
        progress: Called with the current step and a count.

    Returns:
        A new result, to be scored again (:func:`urdf_ident.validate`); the given one, with the comparison, if none is better.

    Raises:
        LogError: A log has no motor positions, or a joint's sweeps go in one direction only.
        ModelError: The result has elastic joints.
        QualityError: A log is refused.
        EstimationError: There are too few data for the requested kind, or the kind is unknown.
    """
    check_compensation(ident.model, logs, kind)
    # 1. Motion without the kinematic error of the gears, of the logs alone and of logs and sweeps.
    without_sweeps = _loop_logs(ident, logs, (), force)
    used = _loop_logs(ident, logs, sweeps, force) if sweeps else without_sweeps
    options: dict[str, Any] = {"rounds": rounds, "seed": seed}
    # 2. Which kind of residual, and whether the friction of the sweeps or the result's own laws, predict held-out motion best.
    comparison: HeldOutComparison | None = None
    if judged or kind == "auto":
        installed = [known for known in KINDS if known != "gmr" or find_spec("sklearn") is not None]
        kinds = {"auto": installed, "none": []}.get(kind, [kind])
        try:
            comparison = compare_loops(
                ident.model,
                without_sweeps.logs,
                used.sweeps,
                beside=used.logs,
                kinds=kinds,
                progress=progress,
                **options,
            )
        except EstimationError as error:  # a kind requested by name may still be trained on all logs
            if kind == "auto":
                used, kind = without_sweeps, "none"
            ident = with_note(ident, f"compensation not judged on held-out motion, residual {kind}: {error}")
        else:
            kind = comparison.chosen
            if comparison.laws != "sweeps":
                used = without_sweeps
            ident = replace(ident, compensation=comparison.as_dict())
    if kind == "none" and not used.sweeps:
        return ident
    # 3. The loops on all logs, and standard parameters from the torque that friction and residual leave.
    loops = three_loop(ident.model, used.logs, used.sweeps, kind=kind, **options)
    solved = _solved(ident, loops, used, comparison)
    solved = replace(solved, compensation={**ident.compensation, "kind": kind, **loops.as_dict()})
    if kind == "none":
        return solved
    # 4. The residual once more, of what these parameters leave.
    remaining = fit_remaining_residual(loops.model, solved.theta, used.logs, kind=kind, seed=seed, like=loops.residual)
    return replace(solved, residual=replace(remaining, ripple=used.ripple))


class _LoopLogs(NamedTuple):
    """Logs and sweeps without the kinematic error of the gears; None where there is none."""

    ripple: GearRipple | None
    logs: list[PreparedLog]
    sweeps: list[PreparedLog]


def _loop_logs(ident: Identification, logs: Sequence[Recording], sweeps: Sequence[Recording], force: bool) -> _LoopLogs:
    """Fits the gears' kinematic error to logs and sweeps together, and conditions both without it.

    Sweeps are not cut at standstills, because the short runs between them are needed, and forced, as they would be refused.
    """
    model, project = ident.model, ident.project
    config = project.further_config(ident.signals)
    with_motors = [log for log in (*logs, *sweeps) if log.motor_position is not None]
    ripple = fit_gear_ripple(conditioned_as_in_fit(ident, with_motors, True), model.drive) if with_motors else None
    clean = [log if ripple is None else ripple.cleaned(log, model.drive) for log in (*logs, *sweeps)]
    uncut = replace(config, rest_time=np.inf, shortest=_SHORTEST_RUN)
    runs = further_logs(clean[len(logs) :], model, project, uncut, True)
    return _LoopLogs(ripple, conditioned_as_in_fit(ident, clean[: len(logs)], force), runs)


def _solved(ident: Identification, loops: ThreeLoop, used: _LoopLogs, comparison: HeldOutComparison | None) -> Identification:
    """The result with the loops' model: fit and standard parameters from the torque minus the residual."""
    project, logs = ident.project, used.logs
    explained = logs  # the logs without the torque of the residual
    if loops.residual.kind != "none":
        explained = [without_torque(log, [residual_torque(loops.residual, one) for one in log.segments]) for log in logs]
    rows = build_statistics(loops.model, explained)
    statistics = with_sweep_points(rows, loops.friction, logs[0].conditioned.decimate_rate)
    from_data = estimate_again(loops.model, explained, statistics, project)
    trained = Range.of([segment for log in logs for segment in log.segments])
    method, before = from_data.fit.method, str(ident.estimation.get("method", from_data.fit.method))
    notes = list(ident.solver.get("notes", ()))
    if before != method:
        notes.append(f"the loops estimate by {method.upper()}; {before.upper()} is not used in them")
    if loops.friction:
        driven = ", ".join(curve.joint for curve in loops.friction)
        notes.append(f"friction of {driven} from the sweeps, in the place of the laws found in the logs")
    errors = None if comparison is None else comparison.cross_validation(trained.load)
    if errors is not None and ident.cross_validation is not None:
        errors = replace(errors, structure=ident.cross_validation.structure)
    solved, _ = physical_result(
        replace(from_data, notes=tuple(notes)),
        project,
        trained,
        signals=ident.signals,
        inputs=tuple(log.summed_up() for log in (*logs, *used.sweeps)),
        left_out=ident.left_out,
        cross_validation=errors,
        selection={} if loops.friction else ident.selection,
        estimation={"method": method, "why": "in the loops of friction, links and residual"},
        traces=ident.traces,
    )
    return solved
