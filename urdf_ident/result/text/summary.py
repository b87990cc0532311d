"""The full summary of a result, with units, as printed by `-v`; the default is the short summary in :mod:`.brief`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...compensation.residual import candidate
from ...estimation.uncertainty.identifiability import COMBINATION, IDENTIFIABLE, LOST, WEAK, missing_motions
from ...friction import Law
from ...grouping import abbreviated, grouped, table
from ...model.row_groups import joint_of
from ...model.terms import SPRING_SYMBOLS
from ...model.trained import trained_speeds
from ...units import percent
from ..dynamics.springs import springs
from ..evidence.scores import mean_error, mixed_units
from ..record import Record
from ..verdict.verdict import untested, verdict_of

#: Maximum number of warnings about the logs in a summary.
_WARNINGS = 6
#: Adaptation makes a log worse if its error exceeds the static model's by this factor.
_ADAPTED_WORSE = 1.01
#: Maximum number of recommended motions, and of parameters named for each.
_MOTIONS, _NAMED = 3, 4


def details(ident: Record) -> str:
    """Returns estimates, their quality, what the data could not determine, and how every setting was chosen."""
    fit, robot = ident.fit, ident.model.robot
    verdict = verdict_of(ident)
    weak = int(((fit.relative_percent > 50) & fit.seen).sum())
    band: list[str] = []
    if tried := ident.signals.get("prediction", {}):  # held-out error behind each low-pass of the positions
        cells = [f"{scale:.3g}{' *' if scale == tried['scale'] else ''}" for scale in tried["scales"]]
        header = [f"low-pass tried on {len(tried['folds'])} held-out parts, times that of the spectrum", *cells]
        band = table(header, [["RMSE [N·m or N]", *(f"{value:.4g}" for value in tried["mean_rmse"])]])
    # number of parameters per verdict, and the motions that would determine most of the poorly known ones
    levels, wanting = [known.level for known in ident.verdicts], missing_motions(ident.verdicts)
    counted = ", ".join(f"{levels.count(level)} {level}" for level in (IDENTIFIABLE, WEAK, COMBINATION, LOST))
    essential = list[str]()
    if chosen := ident.essential:
        needed, count, growth = len(chosen["names"]), len(fit.base), 100 * (chosen["held_out"] - 1)
        change = f"without the others the held-out error changes by {'+' if growth > 0 else ''}{percent(growth)} %"
        words = f"{needed} of {count} base parameters are essential: {change}"
        essential = [f"  {words if needed != count else f'all {count} base parameters are essential'} ({chosen['rule']})"]
    alike = grouped(  # each kind of warning about the logs is listed once per joint, however many logs have it
        ((finding.id, finding.joint), (log.name, finding))
        for log in ident.inputs
        for finding in log.findings
        if finding.severity == "warning"
    )
    warnings = [
        f"  warning in {abbreviated(list(dict.fromkeys(log for log, _ in same)), 1)}: {same[0][1].line()}"
        for same in alike.values()
    ]
    lines = [
        f"{robot.name}: {verdict.level.upper()}",
        *(f"  {reason}" for reason in verdict.judgements),
        *([f"  not tested by the data: {words}"] if (words := untested(ident)) else []),
        f"  {len(ident.inputs)} log(s), {fit.rows} rows; {len(ident.theta)} standard parameters, {len(fit.base)} base "
        f"parameters, {weak} of these with more than 50 % standard error; condition number {fit.condition:.3g}",
        *(f"  {line}" for line in ident.signals.get("why", ())),
        *(f"  {note}" for note in ident.solver.get("notes", ())),
        *([f"  simpler models: {ident.simpler_models['text']}"] if ident.simpler_models else []),
        *(f"  black box: {line}" for line in ident.black_box.get("text", ())),
        f"  standard errors: {fit.covariance_kind}",
        *band,
        f"  of {len(levels)} standard parameters: {counted}",
        *essential,
        *(f"  to identify {abbreviated(names, _NAMED)}: {motion}" for motion, names in wanting[:_MOTIONS]),
        *([f"  … and {more} more motions: `advice` in identification.json"] if (more := len(wanting) - _MOTIONS) > 0 else []),
        *_shortened(warnings, "`urdf-ident inspect`"),
        *_shortened([f"  left out: {log.name}: {log.why}" for log in ident.left_out], "`left_out`"),
        "",
        *_bodies(ident),
        "",
        *_joints(ident),
        *([] if ident.fit.changes is None else ["", *ident.fit.changes.lines()]),
        *selection_table(ident.selection),
        *compensation_table(ident),
    ]
    if ident.validation:
        lines += ["", *validation_table(ident.validation, robot.joints)]
        lines += [f"  {remark}" for remark in adaptation_remarks(ident.validation)]
    elif (cross := ident.cross_validation) is not None:
        structure = " (friction laws chosen on all of them)" if cross.structure != "given" else ""
        header = [f"cross-validated over {len(cross.folds)} folds{structure}", "RMSE [N·m or N]"]
        rows = [[group, f"{value:.3g}"] for group, value in zip(cross.groups, cross.group_rmse, strict=True)]
        if len(set(robot.prismatic)) == 1:  # newtons and newton metres have no mean
            rows.append(["mean", f"{cross.mean_rmse:.3g}"])
        lines += ["", *table(header, rows)]
        if ident.held_out_errors is not None:
            with_prior = f"with the URDF as prior (as exported) {100 * ident.held_out_errors.mean():.1f} %"
            lines.append(f"  relative error: from the data alone {100 * cross.relative:.1f} %, {with_prior}")
    return "\n".join(lines)


def validation_table(validations: Sequence[Mapping[str, Any]], joints: Sequence[str]) -> list[str]:
    """Formats the errors on logs, compared with those of the original URDF; means of N and N·m are relative to the efforts."""
    words = {"adapted": ("adapted", "-"), "residual": ("with residual", "no encoders")}
    more = {key: named for key, named in words.items() if any(key in score for score in validations)}
    share = mixed_units(validations)
    mean, scale = ("mean/effort", 100.0) if share else ("mean", 1.0)
    log = "log" if any(score["trained_on"] for score in validations) else "held-out log"
    titles = [title for title, _ in more.values()]
    header = [f"{log}, RMSE [N·m or N]", *joints, mean, *titles, "data alone", "URDF", "URDF+friction"]
    written = ("{:.3g} %" if share else "{:.3g}").format
    rows = []
    for score in validations:
        cells = [f"{joint['rmse']:.3g}" for joint in score["per_joint"]]
        means = [written(scale * mean_error(score, model)) for model in ("", "fit_", "urdf_", "urdf_friction_")]
        others = [
            written(scale * mean_error(score, of=score[key])) if key in score else absent for key, (_, absent) in more.items()
        ]
        rows.append([score["log"], *cells, means[0], *others, *means[1:]])
    first, *columns = zip(header, *rows, strict=True)
    wide, tall = table(header, rows), table(first, columns)
    return min(wide, tall, key=lambda lines: max(map(len, lines)))


def adaptation_remarks(validations: Sequence[Mapping[str, Any]]) -> list[str]:
    """Describes logs on which adapting friction increases the torque error."""
    remarks = []
    for score in (score for score in validations if "adapted" in score):
        after = score["adapted"]
        pairs = zip(after["per_joint"], score["per_joint"], strict=True)
        worse = [new["joint"] for new, old in pairs if new["rmse"] > _ADAPTED_WORSE * old["rmse"]]
        if worse or mean_error(score, of=after) > _ADAPTED_WORSE * mean_error(score):
            where = f" on {', '.join(worse)}" if worse else ""
            remarks.append(f"{score['log']}: adaptation increases the error{where}; use the static model (ident.torque)")
    return remarks


def selection_table(selection: Mapping[str, Any]) -> list[str]:
    """Formats the trials of ``friction: auto`` and their gain below an empty line: joints by laws; nothing without trials."""
    if not selection:
        return []
    pairs = zip(selection["groups"], selection["rmse_simple"], selection["rmse_chosen"], strict=True)
    errors = {joint_of(group): (f"{simple:.3g}", f"{chosen:.3g}") for group, simple, chosen in pairs}
    laws = {(trial["term"], trial["side"]): None for trial in selection["trials"]}
    cells = {}
    for trial in selection["trials"]:
        gain = 100 * trial["gain"]
        shown = f"{gain:.{0 if abs(gain) >= 10 else 1}f}" if abs(gain) < 1000 else "<-999" if gain < 0 else ">999"
        shown = shown if trial["chosen"] else f"({shown})" if trial["std_error"] > 0 else "-"
        cells[trial["joint"], trial["term"], trial["side"]] = shown
    joints = dict.fromkeys(trial["joint"] for trial in selection["trials"])
    header = [
        "friction: auto, held-out RMSE",
        "simple",
        "chosen",
        *(name if side == "joint" else f"motor {name}" for name, side in laws),
    ]
    rows = [[joint, *errors.get(joint, ("-", "-")), *(cells.get((joint, *law), "-") for law in laws)] for joint in joints]
    legend = (
        "increase of the squared error without the law [%]; in brackets: not chosen, decrease with it; -: not distinguishable"
    )
    return ["", *table(header, rows), f"  {legend}"]


def compensation_table(ident: Record) -> list[str]:
    """Formats the held-out errors of each combination of friction laws (from the logs, from sweeps) and residual."""
    judged = ident.compensation
    if "wls" not in judged:
        return []
    words = {
        "none": "friction and links from the logs",
        "rbf": "and RBF residual",
        "gmr": "and GMR residual",
        "sweeps": "friction from the sweeps",
        "sweeps + rbf": "and RBF residual",
        "sweeps + gmr": "and GMR residual",
    }
    chosen = candidate(judged["laws"], judged["chosen"])
    header = [f"compensation, {len(judged['folds'])} motions held out", *judged["joints"], "mean"]
    rows = [
        [text + " (used)" * (key == chosen), *(f"{x:.3g}" for x in judged[key]), f"{sum(judged[key]) / len(judged[key]):.3g}"]
        for key, text in words.items()
        if key in judged
    ]
    curves = [f"{curve['joint']} {curve['rmse']:.2g}" for curve in judged.get("friction_curves", ())]
    lines = table(header, rows) + [f"  {judged['why']}"]
    return ["", *lines, *([f"  friction curves through the sweeps, RMSE: {', '.join(curves)}"] if curves else [])]


def _shortened(lines: list[str], where: str) -> list[str]:
    return [*lines[:_WARNINGS], f"  … and {len(lines) - _WARNINGS} more: see {where}"] if len(lines) > _WARNINGS else lines


def _bodies(ident: Record) -> list[str]:
    rows = []
    for k, entry in enumerate(ident.consistency.per_body):
        lumped = len(ident.model.robot.bodies[k].links) - 1
        name = entry.body + (f" (+{lumped} fixed)" if lumped else "")
        rows.append(
            [
                name,
                f"{ident.bodies[k, 0]:.4g}",
                f"{ident.prior_bodies[k, 0]:.4g}{' (guess)' if ident.prior.guessed[k] else ''}",
                f"{100 * ident.bodies_from_data[k].mean():.0f} %",
                f"{entry.margins.min_eigenvalue:.2g}",
                "yes" if entry.consistent else "NO",
            ]
        )
    lines = table(["body", "mass [kg]", "URDF [kg]", "from data", "min CoM inertia [kg·m²]", "consistent"], rows)
    offenders = [entry for entry in ident.consistency.per_body if not entry.consistent]
    return lines + [f"  {entry.body} is not physically consistent: {entry.words}" for entry in offenders]


def _joints(ident: Record) -> list[str]:
    symbols = list(dict.fromkeys(p.symbol for p in ident.model.parameters[ident.model.n_inertial :]))
    if not symbols:
        return []
    units = {s: " or ".join(dict.fromkeys(p.unit for p in ident.model.parameters if p.symbol == s)) for s in symbols}
    values = {symbol: ident.term_values(symbol) for symbol in symbols}
    hidden = {(joint, symbol) for joint, spring in springs(ident).items() if not spring["seen"] for symbol in SPRING_SYMBOLS}
    for k in range(ident.model.n_inertial, len(ident.theta)):
        if ident.verdicts[k].level == LOST:
            hidden.add((ident.model.parameters[k].owner, ident.model.parameters[k].symbol))
    rows = [
        [
            joint,
            *("unseen" if (joint, s) in hidden else f"{values[s][joint]:.4g}" if joint in values[s] else "-" for s in symbols),
        ]
        for joint in ident.model.robot.joints
    ]
    lines = table(["joint", *(f"{symbol} [{units[symbol]}]" for symbol in symbols)], rows)
    speeds = [
        f"{joint} {low:.2g} … {high:.2g}"
        for joint, (low, high) in zip(ident.model.robot.joints, trained_speeds(ident.model), strict=True)
        if np.isfinite(low)
    ]
    straight = min((applied.term.straight for applied in ident.model.terms if isinstance(applied.term, Law)), default=np.inf)
    if speeds:
        far = f" (beyond {straight:g} times these speeds with the square root of speed)" if np.isfinite(straight) else ""
        lines.append(
            f"  trained speeds [rad/s or m/s], beyond which friction is extrapolated linearly{far}: {', '.join(speeds)}"
        )
    return lines
