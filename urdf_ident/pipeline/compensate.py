"""Adds what a rigid model does not explain: friction from bidirectional runs, a residual of the deformation (Liu 2023)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import numpy as np

from ..compensation.friction_curve import with_sweep_points
from ..compensation.gear_ripple import GearRipple, fit_gear_ripple
from ..compensation.loop_rows import residual_inputs, without_torque
from ..compensation.loop_validation import HeldOutComparison, candidate, compare_loops
from ..compensation.residual import DEFAULT_INPUTS, KINDS, Residual
from ..compensation.three_loop import ThreeLoop, check_compensation, fit_remaining_residual, three_loop
from ..consistency.first_fit import completed_prior
from ..errors import EstimationError, LogError
from ..estimation.estimators.method import row_weighting
from ..estimation.friction_selection.load_slopes import with_load_slopes
from ..estimation.uncertainty.covariance import with_covariance
from ..linalg import Array, positive, rms
from ..logs.recording import Recording
from ..model.prior import inertial_prior
from ..parallel import one_thread
from ..progress import Progress
from ..result.evidence.evidence import Range
from ..result.evidence.scores import predict, score
from ..result.identification import Identification
from ..signals.filters import score_band
from ..signals.prepare import PreparedLog
from ..statistics.accumulate import build_statistics
from ..statistics.fit import fit_base
from ..statistics.motions import mean_reversals
from .physics import physical_parameters
from .training_logs import further_logs


@one_thread()
def compensate(
    ident: Identification,
    logs: Sequence[Recording],
    *,
    sweeps: Sequence[Recording] = (),
    kind: str = "gmr",
    use: Sequence[str] = DEFAULT_INPUTS,
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
        use: Inputs of the residual; inputs other than the deformation risk over-fitting.
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
        EstimationError: There are too few data for the requested kind, or the kind or an input is unknown.
    """
    check_compensation(ident.model, logs, kind, use)
    ripple, prepared, _ = _cleaned(ident, logs, (), force)
    with_runs = _cleaned(ident, logs, sweeps, force) if sweeps else (ripple, prepared, [])
    options: dict[str, Any] = {"use": use, "rounds": rounds, "seed": seed}
    comparison: HeldOutComparison | None = None
    if judged or kind == "auto":
        kinds = [kind] if kind not in ("auto", "none") else []
        if kind == "auto":  # all that the installed packages support
            kinds = [one for one in KINDS if one != "gmr" or find_spec("sklearn") is not None]
        try:
            runs, beside = with_runs[2], with_runs[1]
            comparison = compare_loops(ident.model, prepared, runs, beside=beside, kinds=kinds, progress=progress, **options)
        except EstimationError as error:  # a kind requested by name may still be trained on all logs
            swept, kind = kind != "auto", "none" if kind == "auto" else kind
            note = f"compensation not judged on held-out motion, residual {kind}: {error}"
            ident = replace(ident, solver={**ident.solver, "notes": [*ident.solver.get("notes", ()), note]})
        else:
            swept, kind = comparison.laws != "logs", comparison.chosen
            ident = replace(ident, compensation=comparison.as_dict())
        with_runs = with_runs if swept else (ripple, prepared, [])  # the result is as without them
    ripple, prepared, runs = with_runs
    if kind == "none" and not runs:
        return ident
    loops = three_loop(ident.model, prepared, runs, kind=kind, **options)
    solved = replace(
        _solved(ident, loops, prepared, comparison),
        inputs=tuple(log.as_dict() for log in (*prepared, *runs)),
        compensation={**ident.compensation, "kind": kind, **loops.as_dict()},
    )
    if kind == "none":
        return solved
    remaining = fit_remaining_residual(loops.model, solved.theta, prepared, kind=kind, use=use, seed=seed, like=loops.residual)
    return replace(solved, residual=replace(remaining, ripple=ripple))


def _solved(
    ident: Identification, loops: ThreeLoop, logs: Sequence[PreparedLog], comparison: HeldOutComparison | None
) -> Identification:
    """The result with the loops' model: fit and standard parameters from the torque minus the residual."""
    project, model = ident.project, loops.model
    silent = loops.residual.kind == "none"
    known = list(logs) if silent else [without_torque(log, residual_torque(loops.residual, log)) for log in logs]
    statistics = with_sweep_points(build_statistics(model, known), loops.friction, logs[0].conditioned.decimate_rate)
    fit = fit_base(statistics, model.base(), method=row_weighting(project.estimation.method))
    fit = with_covariance(fit, statistics, project.estimation.covariance, model=model, logs=known)
    prior = inertial_prior(model.robot, project.consistency.relative_std, mass_std=project.consistency.mass_std)
    fit = with_load_slopes(fit, model, known, prior)
    segments = [segment for log in logs for segment in log.segments]
    reversals = mean_reversals(statistics, segments, model.robot.prismatic)
    prior = completed_prior(model, prior, statistics, fit, reversals=reversals)
    physical = physical_parameters(model, statistics, fit, prior, project, Range.of(segments), reversals)
    notes = [*ident.solver.get("notes", ()), *physical.standard.solver.get("notes", ())]
    before = str(ident.estimation.get("method", fit.method))
    if before != fit.method:
        notes.append(f"the loops estimate by {fit.method.upper()}; {before.upper()} is not used in them")
    if loops.friction:
        driven = ", ".join(curve.joint for curve in loops.friction)
        notes.append(f"friction of {driven} from the sweeps, in the place of the laws found in the logs")
    cross_validation: dict[str, Any] = {}
    if comparison is not None:  # of the new friction and links without the residual, which a URDF cannot hold
        rmse = comparison.rmse(candidate(comparison.laws, "none"))
        size = positive(rms(np.vstack([part.measured for log in logs for part in log.segments]), 0))
        cross_validation = {
            "folds": list(comparison.folds),
            "groups": [f"joint:{joint}" for joint in comparison.joints],
            "group_rmse": rmse.tolist(),
            "mean_rmse": float(rmse.mean()),
            "relative": float(np.mean(rmse / size)),
            "structure": ident.cross_validation.get("structure", "given"),
        }
    return replace(
        ident,
        model=model,
        fit=fit,
        theta=physical.standard.theta,
        prior=physical.prior,
        factor=physical.factor,
        baseline=physical.baseline,
        solver={**physical.standard.solver, "notes": notes},
        evidence=physical.evidence,
        cross_validation=cross_validation,
        validation=(),
        selection={} if loops.friction else ident.selection,
        essential={},  # it was of the previous base parameters
        prediction={},
        floor={},
        black_box={},
        adaptation={},
        estimation={"method": fit.method, "why": "in the loops of friction, links and residual"},
    )


def compensated_score(
    ident: Identification, recording: Recording, cutoff: float | str = "auto", *, force: bool = False
) -> dict[str, Any]:
    """Errors on a log with and without the residual; measured and predicted torque pass the same low-pass.

    Args:
        ident: A result with a residual.
        cutoff: Zero-phase low-pass [Hz]; "auto" is :func:`.filters.score_band`.
        force: Score it in spite of findings that refuse it.

    Returns:
        ``{"mean_rmse", "rigid_mean_rmse", "per_joint": [{"joint", "rmse", "rigid_rmse"}]}`` [N·m or N].

    Raises:
        LogError: The result has no residual, or the log lacks motor positions or torque.
        QualityError: The log is refused.
    """
    residual, model = ident.residual, ident.model
    if residual is None:
        raise LogError("a residual was asked for, and the result has none", remedy="compensate() learns one")
    check_compensation(model, [recording], residual.kind, residual.inputs)
    clean = recording if residual.ripple is None else residual.ripple.cleaned(recording, model.drive)
    (log,) = further_logs([clean], model, ident.project, ident.project.further_config(ident.signals), force)
    hertz = score_band(log.conditioned.rate) if cutoff == "auto" else float(cutoff)
    rigid = predict(model, ident.theta, log)
    full = rigid + np.concatenate(residual_torque(residual, log))
    without, with_ = (score(log, predicted, model.robot.joints, hertz).rmse for predicted in (rigid, full))
    joints = [
        {"joint": joint, "rmse": float(a), "rigid_rmse": float(b)}
        for joint, a, b in zip(model.robot.joints, with_, without, strict=True)
    ]
    return {"mean_rmse": float(with_.mean()), "rigid_mean_rmse": float(without.mean()), "per_joint": joints}


def residual_torque(residual: Residual, log: PreparedLog) -> list[Array]:
    """Evaluates the residual along a log whose motor positions are corrected for the gears' kinematic error.

    Returns:
        One array per segment, shape (N, n) [N·m or N].
    """
    return [residual.torque(**residual_inputs(part)) for part in log.segments]


def _cleaned(
    ident: Identification, logs: Sequence[Recording], sweeps: Sequence[Recording], force: bool
) -> tuple[GearRipple | None, list[PreparedLog], list[PreparedLog]]:
    """Fits the gears' kinematic error to logs and sweeps together; returns it and both prepared without it.

    Sweeps are not cut at standstills, because the short runs between them are needed, and forced, as they would be refused.
    """
    model, project = ident.model, ident.project
    config = project.further_config(ident.signals)
    with_motors = [log for log in (*logs, *sweeps) if log.motor_position is not None]
    ripple = fit_gear_ripple(further_logs(with_motors, model, project, config, True), model.drive) if with_motors else None
    clean = [log if ripple is None else ripple.cleaned(log, model.drive) for log in (*logs, *sweeps)]
    prepared = further_logs(clean[: len(logs)], model, project, config, force)
    uncut = replace(config, rest_time=np.inf, shortest=0.1)
    return ripple, prepared, further_logs(clean[len(logs) :], model, project, uncut, True)
