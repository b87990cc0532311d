"""Commands that create and use a result: identify, validate, export."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..errors import QualityError
from ..files.read_write import check_output, check_writable, note_input
from ..progress import work_bars
from .application import JUDGED_BAD, command, say_aside
from .common import (
    AsJson,
    Config,
    Force,
    Layout,
    Locks,
    Logs,
    Packages,
    Result,
    SkipBadLogs,
    Urdf,
    Verbose,
    coloured,
    command_paths,
    open_result,
    open_robot,
    print_implausible_values,
    read_logs,
    say,
)
from .motion import run_design
from .report import NoReport, report_lines, say_file_replaced


@command(
    "identify arm.urdf run1.csv run2.csv --validate run3.csv -o out", "identify arm.urdf 'logs/*.csv' -c project.yaml -v -o out"
)
def identify(
    urdf: Urdf,
    logs: Logs,
    out: Annotated[Path, typer.Option("-o", "--out", metavar="OUT/", help="Output folder.")],
    config: Config = None,
    lock: Locks = None,
    validate: Annotated[
        list[str] | None, typer.Option("--validate", metavar="LOG", help="Log for validation only; repeatable.")
    ] = None,
    sweeps: Annotated[
        list[str] | None,
        typer.Option("--sweeps", metavar="LOG", help="Log of constant-speed runs, one joint at a time; repeatable."),
    ] = None,
    force: Force = False,
    skip_bad_logs: SkipBadLogs = False,
    compare: Annotated[
        bool, typer.Option("--compare", help="Also tell what a black box (gradient boosting) still predicts of the residual.")
    ] = False,
    jobs: Annotated[int, typer.Option("--jobs", metavar="N", min=1, help="Number of processes.")] = 1,
    scheduler: Annotated[
        str | None, typer.Option("--scheduler", metavar="tcp://HOST:PORT", help="Use a dask cluster instead.")
    ] = None,
    following: Annotated[
        Path | None, typer.Option("--next", metavar="TRAJ.csv", help="Also design the next motion, for what is still unknown.")
    ] = None,
    payload_logs: Annotated[
        list[str] | None,
        typer.Option("--payload-logs", metavar="LOG", help="Log with an unknown payload, to be identified too; repeatable."),
    ] = None,
    payload_link: Annotated[
        str | None, typer.Option("--payload-link", metavar="LINK", help="Link that carries the payload.")
    ] = None,
    no_report: NoReport = False,
    verbose: Verbose = False,
    as_json: AsJson = False,
    packages: Packages = None,
) -> None:
    """Identify the model from a URDF and logs.

    Writes identification.json, the corrected URDF, joints.yaml and report.html to OUT.
    """
    from ..files.documents import json_text, plain
    from ..parallel import workers

    if payload_link is not None and not payload_logs:
        raise typer.BadParameter("--payload-link needs --payload-logs: the logs with the payload")
    with workers(jobs, scheduler):
        project, folder, robot = open_robot(config, urdf, lock)
        model = project.build_model(robot)
        from ..pipeline.identify import identify as run
        from ..pipeline.identify import motion_advice
        from ..pipeline.payload import check_loaded, payload
        from ..result.write import result_names, write_all, write_payload

        apart = [*(validate or []), *(sweeps or []), *(payload_logs or [])]
        recordings, left_out = read_logs(logs, robot, project, skip=skip_bad_logs, copies=skip_bad_logs, without=apart)
        held_out, runs, loaded = (read_logs(some or [], robot, project)[0] for some in (validate, sweeps, payload_logs))
        if loaded:
            check_loaded(robot, recordings, loaded, payload_link)
        check_writable(out)  # before it is computed
        report, payload_file = None if no_report else out / "report.html", out / "payload.json" if loaded else None
        for output in (*(out / name for name in result_names(robot)), report, payload_file, following):
            if output is not None:
                check_output(output)
        print_implausible_values(robot)
        try:
            with work_bars() as progress:
                ident = run(
                    model,
                    recordings,
                    held_out=held_out,
                    sweeps=runs,
                    left_out=left_out,
                    project=project,
                    compare=compare,
                    force=force,
                    skip_bad_logs=skip_bad_logs,
                    progress=progress,
                )
        except QualityError as error:
            if as_json:
                typer.echo(json_text({"verdict": None, **error.as_dict()}))
            raise
    paths = command_paths(urdf, out / "identification.json", config)
    with workers(jobs):  # not those of the cluster, which need not have matplotlib
        say_file_replaced(out / "identification.json")
        if report is None and (out / "report.html").is_file():
            say_aside(f"note: {out / 'report.html'} remains that of the earlier result")
        notes = write_all(ident, out)
        if not as_json:
            typer.echo(coloured(paths.fill(ident.summary(verbose=verbose))))
            typer.echo("".join(f"{line}\n" for line in ident.black_box.get("text", ()) if not verbose), nl=False)
        if report is not None:
            notes += report_lines(ident, report, paths)
        if not as_json:
            typer.echo("\n".join(["", *notes]) if verbose else _written_line(out, notes))
        body = payload(ident, loaded, link=payload_link, force=force) if loaded else None
        more = [] if body is None or payload_file is None else write_payload(ident, body, payload_file)
        if as_json:
            extra = {} if body is None else {"payload": body.as_dict()}
            outcome = {**ident.as_dict(), "refused": None, "notes": [*notes, *more], **extra}
            typer.echo(json_text(paths.fill_in(plain(outcome))))
        elif body is not None:
            typer.echo("\n".join(["", body.summary(), "", *more]))
    if following is not None:
        run_design(project, folder, model, following, ident)
    elif verbose and not as_json and (advice := motion_advice(ident)):
        typer.echo(advice)
    if ident.verdict.level == "poor":
        raise typer.Exit(JUDGED_BAD)


def _written_line(out: Path, notes: list[str]) -> str:
    """The files that lines "wrote ..." name in one line, and below it why there is no report, if so."""
    files = [Path(note.removeprefix("wrote ")) for note in notes if note.startswith("wrote ")]
    names = [path.name for path in files if path.parent == out]
    line = f"  wrote {', '.join(names)} to {out}"
    if len(line) > 100:
        line = f"  wrote {len(names)} files to {out}" + ("; open report.html" if "report.html" in names else "")
    return "\n".join([line, *(note for note in notes if note.startswith("no report"))])


@command("validate out/identification.json run4.csv")
def validate(
    result: Result,
    logs: Logs,
    config: Layout = None,
    force: Force = False,
    as_json: AsJson = False,
    no_report: NoReport = False,
) -> None:
    """Validate a result on other logs.

    Writes validation.html beside the result. The exit code is 1 if the verdict is POOR: a large error, or worse than the URDF.
    """
    from ..pipeline.validate import validate as score
    from ..pipeline.validate import with_scores

    ident = open_result(result, config)
    recordings, _ = read_logs(logs, ident.model.robot, ident.project)
    report = score(ident, recordings, force=force)
    say(report.entries, as_json, report.summary)
    if not no_report:
        paths = command_paths(ident.model.robot.path, result)
        lines = report_lines(with_scores(ident, report), result.parent / "validation.html", paths)
        typer.echo("\n".join(lines), err=as_json)
    if report.verdict.level == "poor":
        raise typer.Exit(JUDGED_BAD)


@command("export out/identification.json --mjcf arm.xml --sdf arm.sdf")
def export(
    result: Result,
    urdf: Annotated[Path | None, typer.Option("--urdf", metavar="F", help="Corrected URDF.")] = None,
    mjcf: Annotated[Path | None, typer.Option("--mjcf", metavar="F", help="MuJoCo model with damping and armature.")] = None,
    sdf: Annotated[Path | None, typer.Option("--sdf", metavar="F", help="SDFormat model for Gazebo and Drake.")] = None,
    sidecar: Annotated[Path | None, typer.Option("--sidecar", metavar="F", help="Friction and rotor inertia (YAML).")] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Export even if the URDF has changed since the identification.")
    ] = False,
    packages: Packages = None,
) -> None:
    """Export a result as URDF, MJCF or SDF."""
    from ..result.write import check_source, write_mjcf, write_sdf, write_sidecar, write_urdf

    ident = open_result(result)
    wanted = [(urdf, write_urdf), (mjcf, write_mjcf), (sdf, write_sdf), (sidecar, write_sidecar)]
    if all(path is None for path, _ in wanted):
        raise typer.BadParameter("nothing to write: give --urdf, --mjcf, --sdf or --sidecar")
    for source, what in [(ident.model.robot.path, "URDF"), *((log.path, "log") for log in ident.inputs)]:
        note_input(source, what)
    outputs = [check_output(path).resolve() for path, _ in wanted if path is not None]
    if len(set(outputs)) < len(outputs):
        raise typer.BadParameter("two outputs have the same name")
    if not force:
        check_source(ident)
    printed = set[str]()
    for path, write in wanted:
        if path is not None:
            notes = write(ident, path)
            new = [note for note in notes if note not in printed] if isinstance(notes, tuple) else []
            printed.update(new)
            typer.echo("\n".join([*new, f"wrote {path}"]))
