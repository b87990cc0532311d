"""Commands that create, use and show a result: identify, validate, export, report, plot; and demo, which makes its own logs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import ModelError, QualityError
from ..files.read_write import check_output, check_writable, note_input
from ..progress import steps, work_bars
from ..quoting import CommandPaths
from .application import (
    JUDGED_BAD,
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
    command,
    command_paths,
    open_result,
    open_robot,
    optional_lines,
    print_implausible_values,
    read_logs,
    say,
    say_aside,
    say_file_replaced,
)
from .motion import run_design

if TYPE_CHECKING:
    from ..result.identification import Identification

NoReport = Annotated[bool, typer.Option("--no-report", help="Write no report.html.")]


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
    from ..files.documents import json_text
    from ..parallel import workers

    if payload_link is not None and not payload_logs:
        raise typer.BadParameter("--payload-link needs --payload-logs: the logs with the payload")
    report, payload_file = None if no_report else out / "report.html", out / "payload.json" if payload_logs else None
    with workers(jobs, scheduler):
        # 1. robot and logs
        project, folder, robot = open_robot(config, urdf, lock)
        model = project.build_model(robot)
        from ..pipeline.identify import identify as run
        from ..pipeline.identify import motion_advice
        from ..pipeline.payload import check_loaded, payload
        from ..result.write import result_names, write_all, write_payload

        apart = [*(validate or []), *(sweeps or []), *(payload_logs or [])]
        recordings, left_out = read_logs(logs, robot, project, skip=skip_bad_logs, without=apart)
        held_out, runs, loaded = (read_logs(some or [], robot, project)[0] for some in (validate, sweeps, payload_logs))
        if loaded:
            check_loaded(robot, recordings, loaded, payload_link)
        # 2. outputs, before they are computed
        check_writable(out)
        for output in (*(out / name for name in result_names(robot)), report, payload_file, following):
            if output is not None:
                check_output(output)
        # 3. the identification
        print_implausible_values(robot)
        options: dict[str, Any] = {"held_out": held_out, "sweeps": runs, "left_out": left_out, "compare": compare}
        try:
            with work_bars() as progress:
                ident = run(
                    model, recordings, project=project, force=force, skip_bad_logs=skip_bad_logs, progress=progress, **options
                )
        except QualityError as error:
            if as_json:
                typer.echo(json_text({"verdict": None, **error.as_dict()}))
            raise
    paths = command_paths(urdf, out / "identification.json", config)
    with workers(jobs):  # not those of the cluster, which need not have matplotlib
        # 4. its files and text
        say_file_replaced(out / "identification.json")
        if report is None and (out / "report.html").is_file():
            say_aside(f"note: {out / 'report.html'} remains that of the earlier result")
        notes = [*write_all(ident, out), *([] if report is None else report_lines(ident, report, paths))]
        if not as_json:
            typer.echo(coloured(paths.fill(ident.summary(verbose=verbose))))
            typer.echo("".join(f"{line}\n" for line in ident.black_box.get("text", ()) if not verbose), nl=False)
            typer.echo("\n".join(["", *notes]) if verbose else _written_line(out, notes))
        # 5. the payload
        outcome = {**ident.as_dict(), "refused": None, "notes": notes}
        if loaded and payload_file is not None:
            try:
                body = payload(ident, loaded, link=payload_link, force=force)
            except QualityError as error:  # of the loaded logs: the identification is done
                if as_json:
                    _print_json({**outcome, **error.as_dict()}, paths)
                raise
            written = write_payload(ident, body, payload_file)
            outcome |= {"notes": [*notes, *written], "payload": body.as_dict()}
            if not as_json:
                typer.echo("\n".join(["", body.summary(), "", *written]))
        if as_json:
            _print_json(outcome, paths)
    # 6. the next motion
    if following is not None:
        run_design(project, folder, model, following, ident)
    elif verbose and not as_json and (advice := motion_advice(ident)):
        typer.echo(advice)
    if ident.verdict.level == "poor":
        raise typer.Exit(JUDGED_BAD)


def _print_json(outcome: Mapping[str, Any], paths: CommandPaths) -> None:
    from ..files.documents import json_text, plain

    typer.echo(json_text(paths.fill_in(plain(outcome))))


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


@command("report out/identification.json", "report out/identification.json run4.csv")
def report(
    result: Result,
    logs: Annotated[
        list[str] | None, typer.Argument(metavar="LOG", help="Logs to show instead of those of the result.", show_default=False)
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", metavar="FILE.html", help="Output file; default: report.html beside the result."),
    ] = None,
    config: Layout = None,
    force: Force = False,
) -> None:
    """Write report.html again, optionally for other logs."""

    from ..report import write_report

    page = out or result.parent / "report.html"
    check_output(page)
    ident = with_logs(open_result(result, config), logs or [], force, config)
    typer.echo(f"wrote {write_report(ident, page, command_paths(ident.model.robot.path, result))}")


@command("plot out/identification.json torque friction -o pictures --format pdf")
def plot(
    result: Result,
    pictures: Annotated[
        list[str] | None,
        typer.Argument(metavar="PICTURE", help="torque, friction, parameters, bodies, residual, errors; default: all."),
    ] = None,
    out: Annotated[Path, typer.Option("-o", "--out", metavar="DIR", help="Output folder.")] = Path("pictures"),
    kind: Annotated[str, typer.Option("--format", metavar="png|svg|pdf", help="File format.")] = "png",
    log: Annotated[
        list[str] | None, typer.Option("--log", metavar="LOG", help="Log to show instead of those of the result; repeatable.")
    ] = None,
    config: Layout = None,
    force: Force = False,
) -> None:
    """Write single figures of a result."""
    from ..result.plots.plots import NAMES

    if kind not in ("png", "svg", "pdf"):
        raise typer.BadParameter(f"unknown format '{kind}': png, svg or pdf")
    ident = with_logs(open_result(result, config), log or [], force, config)
    for picture in pictures or NAMES:
        try:
            typer.echo(f"wrote {ident.plot.save(picture, out / f'{picture}.{kind}')}")
        except ModelError as error:
            if pictures:
                raise
            typer.echo(f"note: no picture of {picture}: {error}")


def with_logs(ident: Identification, logs: list[str], force: bool, config: Path | None) -> Identification:
    """Returns a result with the scores and series of other logs.

    Args:
        logs: Files, folders, globs or stems; without any, the result is unchanged.
        force: Use logs in spite of findings that refuse them.
        config: The project file of their layout, which has no effect without logs and is then refused.
    """
    if not logs and config is not None:
        raise typer.BadParameter("-c has no effect on the logs of the result: name the logs that it describes")
    if not logs:
        return ident
    from ..pipeline.validate import validate, with_scores

    recordings, _ = read_logs(logs, ident.model.robot, ident.project)
    return with_scores(ident, validate(ident, recordings, force=force))


def report_lines(ident: Identification, path: Path, paths: CommandPaths) -> list[str]:
    """Writes the report of a result that is already written; if it fails, returns one line that says so instead of raising."""
    from ..report import write_report

    return optional_lines(lambda: [write_report(ident, path, paths)])


@command("demo -o demo")
def demo(
    out: Annotated[Path, typer.Option("-o", "--out", metavar="DIR", help="Output folder.")] = Path("urdf-ident-demo"),
    seed: Annotated[
        int, typer.Option("--seed", metavar="N", min=0, help="Seed of the motions, the noise and the errors of the URDF.")
    ] = 0,
    verbose: Verbose = False,
) -> None:
    """Run the whole workflow offline on a bundled robot.

    Designs a motion, simulates logs, identifies, validates and exports. Open report.html afterwards.
    """
    from ..pipeline.demo import demo as run
    from ..viz import play as show
    from ..viz import read_motion

    with steps() as progress:
        result = run(out, seed=seed, progress=progress)
    robot = result.ident.model.robot
    page = show(robot, read_motion(out / "held_out.csv", robot), html=out / "motion.html")
    typer.echo(coloured(result.ident.summary(verbose=verbose)))
    typer.echo("\n" + result.summary())
    paths = command_paths(robot.path, out / "identification.json")
    typer.echo("\n".join(report_lines(result.ident, out / "report.html", paths)))
    typer.echo(f"wrote {page} (open it in a browser)")
