"""The command `identify`: all stages in their order."""

from __future__ import annotations

from collections.abc import Sequence

from ..comparison.other_models import check_black_box
from ..errors import LimitError, ModelError
from ..estimation.elastic import check_drive_used
from ..logs.recording import Recording
from ..logs.refusals import LeftOut, refuse_trained
from ..model.dynamic_model import DynamicModel
from ..motion.limits import Limits
from ..parallel import one_thread
from ..progress import Progress
from ..project import Project
from ..result.identification import Identification
from .checked_logs import further_logs, training_logs
from .estimate import estimate_from_data
from .held_out import hold_out
from .physical import physical_result
from .validate import with_validation


@one_thread()
def identify(
    model: DynamicModel,
    logs: Sequence[Recording],
    *,
    held_out: Sequence[Recording] = (),
    sweeps: Sequence[Recording] = (),
    project: Project | None = None,
    force: bool = False,
    skip_bad_logs: bool = False,
    compare: bool = False,
    left_out: Sequence[LeftOut] = (),
    progress: Progress | None = None,
) -> Identification:
    """Identifies a robot from its logs.

    Args:
        model: The dynamic model.
        logs: Training logs.
        held_out: Logs to score on; they take no part in the fit.
        sweeps: Runs at constant speed in both directions, one joint at a time, for friction curves.
        project: Settings; all defaults if None.
        force: Use logs in spite of findings that refuse them.
        skip_bad_logs: Skip training logs that are refused and continue with the others; ``left_out`` of the result
            names them. If False, one such log raises.
        compare: Also learn the residual by gradient boosting, to tell how much of the held-out error is predictable
            (:mod:`.other_models`).
        left_out: Logs that were already skipped when they were read, to be named in the result.
        progress: Called with the name of the current step, the number of its units that are done, and their total.

    Raises:
        QualityError: A log is refused.
        LogError: A held-out log is also a training log, or no log was given.
        EstimationError: There are too few data.
        SolverError: The consistency step failed.
        LimitError: Position limits of the URDF leave no room.
        MissingExtraError: ``compare`` needs scikit-learn.
    """
    # What cannot work is refused before anything is computed.
    project = project or Project()
    loops = project.compensation
    with_loops = loops.residual != "none" or bool(sweeps)
    Limits.from_robot(model.robot)
    logs, held_out, sweeps = ([log.ordered(model.robot) for log in some] for some in (logs, held_out, sweeps))
    refuse_trained(
        {log.sha256: log.name for log in (*logs, *sweeps)},
        held_out,
        "this held-out log is also one of the training logs",
        "leave it out of one of the two lists",
    )
    check_drive_used(model, (*logs, *held_out, *sweeps), deformation=with_loops)
    if compare:
        check_black_box()
    if with_loops:  # imported late: most robots have one encoder per joint
        from ..compensation.three_loop import check_compensation
        from .compensate import compensate

        check_compensation(model, logs, loops.residual)
    # 1. Conditioned motion of the training logs, and of the held-out ones: those that cannot be scored raise before the fit.
    training = training_logs(model, logs, project, force, skip_bad_logs)
    config = project.further_config(training.signals)
    conditioned_held_out = further_logs(held_out, training.model, project, config, force)
    # 2. Structure and base parameters from the data alone.
    from_data = estimate_from_data(training, project, progress)
    # 3. Standard parameters from data, physics and prior.
    result, standard = physical_result(
        from_data,
        project,
        training.trained,
        signals=training.signals,
        inputs=tuple(log.summed_up() for log in training.logs),
        left_out=tuple(sorted([*left_out, *training.left_out], key=lambda log: log.path or log.name)),
    )
    # 4. Errors on motion that took no part.
    result = hold_out(result, standard, from_data.statistics, training.logs, compare=compare)
    # 5. What rigid bodies do not explain, if that is wanted; of the stage before, the low-pass for predictions remains.
    if with_loops:
        used = [log.recording for log in training.logs]
        result = compensate(result, used, sweeps=sweeps, judged=True, force=force, progress=progress, **loops.options())
    # 6. Scores on the held-out logs.
    return with_validation(result, from_data, conditioned_held_out, training, force=force)


def motion_advice(ident: Identification) -> str:
    """One line on what another motion would determine; empty if none can be planned, or the logs have faults."""
    from ..excitation.sequential import forecast_random_motion

    severities = {finding.severity for log in ident.inputs for finding in log.findings}
    if ident.verdict.level == "poor" or {"warning", "refused"} & severities:
        return ""
    settings = ident.project.excitation
    try:
        expected = forecast_random_motion(ident, settings.build_limits(ident.model.robot), settings.duration)
    except (LimitError, ModelError):  # no limits in the URDF, or elastic joints: `design` reports it
        return ""
    return f"next: {expected.sentence()}, even with a random motion; --next TRAJ.csv designs a better one"
