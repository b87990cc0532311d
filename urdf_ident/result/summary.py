"""A result as text: the short summary, at most 24 lines of 100 columns, and the full one that `-v` prints."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isnan, nan
from typing import Any

import numpy as np

from ..compensation.residual import candidate
from ..estimation.uncertainty.identifiability import COMBINATION, IDENTIFIABLE, LOST, WEAK, missing_motions
from ..friction import Law
from ..grouping import abbreviated, grouped, table
from ..judgements.catalogue import Id
from ..linalg import divisors
from ..model.inertia import to_com
from ..model.row_groups import joint_of
from ..model.terms import SPRING_SYMBOLS
from ..model.trained import trained_speeds
from ..quoting import markup
from ..units import percent
from .dynamics import springs
from .record import Record
from .scores import errors_of_joints, mean_error, mixed_units
from .verdict import untested, verdict_of

#: Columns and lines of the summary at most.
WIDTH, LINES = 100, 24
_HANGING = "      "
#: Up to seven joints are listed one by one; otherwise only the worst five.
_JOINTS, _WORST = 7, 5
#: Maximum length of a joint's name.
_NAME = 44
#: Judgements of the error on other motions.
_OF_ERRORS = (Id.HELD_OUT_ERROR, Id.CROSS_VALIDATION)
#: Share of the data in a parameter below which its change is due to the prior.
_SHARE = 0.1
#: Relative change of a mass, or shift of a centre over the body's radius of gyration, from which it is listed.
_SMALLEST_CHANGE = 0.02


#: Errors of a joint relative to its torque, fractions, nan if unknown: as identified, of the URDF, and with fitted friction.
Errors = tuple[float, float, float]
#: Maximum number of warnings about the logs in a summary.
_WARNINGS = 6
#: Adaptation makes a log worse if its error exceeds the static model's by this factor.
_ADAPTED_WORSE = 1.01
#: Maximum number of changes of bodies, and of recommended motions, that are listed.
_LISTED = 3


@dataclass(frozen=True)
class Overview:
    """What every presentation of a result says first: the short summary, the notebook and the report.

    Attributes:
        level: "good", "usable" or "poor".
        cause: The reason, in one sentence.
        remedy: The most important remedy; empty if none is needed.
        kind: Of the errors: "held-out", "cross-validated", or empty without any.
        errors: Of each joint, in model order.
        notes: Label → words about the rest; labels without words are left out.
    """

    level: str
    cause: str
    remedy: str
    kind: str
    errors: dict[str, Errors]
    notes: dict[str, str]


def overview(ident: Record) -> Overview:
    """Collects what is said first of a result.

    Another motion is recommended only if no cause in the logs is known: otherwise more of the same data would not help.
    """
    verdict, (kind, errors) = verdict_of(ident), joint_errors(ident)
    error = next((judged.message for judged in verdict.judgements if judged.id in _OF_ERRORS), "")
    cause, remedy = error or "no objection", ""
    if verdict.cause is not None:
        cause = verdict.cause.message
        cause += f"; {error}" if error and error != cause else ""
        findings = (finding for log in ident.inputs for finding in log.findings if finding.level != "good")
        of_logs = (str(finding.remedy) for finding in findings if finding.remedy and str(finding.remedy))
        motions = [parameter.motion for parameter in ident.verdicts if parameter.motion]  # most parameters need the first
        most = max(dict.fromkeys(motions), key=motions.count, default="")
        remedy = str(verdict.cause.remedy or "") or next(of_logs, most)
    unknown = ident.prior.guessed
    bodies = [body.name for body, missing in zip(ident.model.robot.bodies, unknown, strict=True) if missing]
    claimed = "masses come from its geometry, only torques and base parameters are claimed"
    # what the data do not determine; friction and rotor inertia first, because controllers need them
    rows = ident.parameters
    lost = [row for row in rows if row.verdict == LOST]
    sums = sum(row.verdict == COMBINATION for row in rows)
    unseen = f"{sums} of {len(rows)} parameters only in combination" if sums else "none"
    if lost:
        examples = [row.name for row in lost if row.owner in ident.model.robot.joints]
        examples += [row.name for row in lost if row.symbol == "m"]
        named = f" ({', '.join(examples[:3])}{', …' if len(lost) > len(examples[:3]) else ''})" if examples else ""
        unseen = f"{len(lost)} of {len(rows)} parameters{named}" + (f", {sums} only in combination with others" if sums else "")
    left, first = len(ident.left_out), "; the first" if len(ident.left_out) > 1 else ""
    names = ", ".join(log.name for log in ident.left_out[:3]) + (" …" if left > 3 else "")
    delay = float(ident.signals.get("delay", {}).get("compensated", 0.0))
    order = "lag behind" if delay > 0 else "lead"
    notes = {
        "not tested": untested(ident) if verdict.level != "poor" else "",
        "compensated": f"the logged efforts {order} the positions by {1e3 * abs(delay):.3g} ms; those of the model do not"
        if delay
        else "",
        "guessed": f"the URDF states no inertials for {'any body' if unknown.all() else abbreviated(bodies, 3)}: {claimed}"
        if bodies
        else "",
        "changed most": ", ".join(changes(ident)) or "no body by a significant amount",
        "not identified": unseen,
        "left out": f"{left} of {left + len(ident.inputs)} logs ({names}){first}: {ident.left_out[0].why}" if left else "",
    }
    said = {label: words for label, words in notes.items() if words}
    return Overview(verdict.level, cause, remedy, kind, errors, said)


def brief(ident: Record) -> str:
    """Returns the short summary: at most 24 lines of at most 100 columns, commands aside."""
    view = overview(ident)
    shown = list(view.errors.items())
    if len(shown) > _JOINTS:
        shown = sorted(shown, key=lambda pair: -pair[1][0])[:_WORST]
    lines = {label: _wrapped(f"  {label}: {words}", 3 if label == "not tested" else 2) for label, words in view.notes.items()}
    first = lines.pop("not tested", [])
    rows = list[str]()
    if shown:
        title = f"{view.kind} error over torque"
        title += f", worst {len(shown)} of {len(view.errors)} joints" if len(shown) < len(view.errors) else ""
        known = 1 if isnan(shown[0][1][1]) else 3
        named = ((joint if len(joint) <= _NAME else joint[: _NAME - 1] + "…", errors) for joint, errors in shown)
        cells = [[joint, *map(_percent, errors[:known])] for joint, errors in named]
        rows = table([title, *("identified", "URDF", "URDF + friction")[:known]], cells)
    body = [*first, *rows, *(line for wrapped in lines.values() for line in wrapped)]
    room = LINES - len(body)
    head = _wrapped(f"{ident.model.robot.name}: {view.level.upper()}, {view.cause}", room - 3 * bool(view.remedy), indent="  ")
    room -= len(head)
    text, mark, call = view.remedy.partition(": `urdf-ident ")
    if mark and call.count("`") == 1 and call.endswith("`"):  # a command has its own line, so that it can be copied
        head += [*_wrapped(f"  to do: {text}:", min(2, room - 1)), f"{_HANGING}urdf-ident {call[:-1]}"]
    elif view.remedy:
        head += _wrapped(f"  to do: {view.remedy}", min(3, room))
    return "\n".join([*head, *body])


def joint_errors(ident: Record) -> tuple[str, dict[str, Errors]]:
    """Kind of error (empty if there is none), and relative torque error of every joint over held-out logs, else over folds."""
    joints, identified = ident.model.robot.joints, dict[str, float]()
    if ident.validation:
        torque, *errors = errors_of_joints(ident.validation).values()
        rows = zip(*(np.array(errors) / divisors(torque)).tolist(), strict=True)
        return "held-out", dict(zip(joints, rows, strict=True))
    if ident.held_out_errors is not None:
        identified = dict(zip(joints, ident.held_out_errors.tolist(), strict=True))
    elif (cross := ident.cross_validation) is not None:
        identified = {joint_of(group): share for group, share in cross.group_relative.items()}
    others, simpler, cross = dict[str, tuple[float, float]](), ident.simpler_models, ident.cross_validation
    if simpler and cross is not None and cross.exported is not None:  # of the URDF, and with friction, on the same folds
        efforts = dict(zip(cross.groups, cross.exported.group_effort.tolist(), strict=True))
        for group, *errors in zip(simpler["groups"], simpler["rmse"]["urdf"], simpler["rmse"]["urdf_friction"], strict=True):
            if (effort := efforts.get(group, 0.0)) > 0:
                others[joint_of(group)] = errors[0] / effort, errors[1] / effort
    errors_of_joint = {joint: (error, *others.get(joint, (nan, nan))) for joint, error in identified.items()}
    return "cross-validated" if identified else "", errors_of_joint


def changes(ident: Record) -> list[str]:
    """The largest changes of mass and centre of mass from the URDF, of parameters that the data contribute to, in words."""
    largest, share = [], ident.bodies_from_data
    for k, body in enumerate(ident.model.robot.bodies):
        old, new = ident.prior_bodies[k], ident.bodies[k]
        if old[0] <= 0 or new[0] <= 0 or ident.prior.guessed[k]:
            continue
        mass = float(new[0] / old[0] - 1.0)
        if share[k, 0] > _SHARE:
            largest.append((abs(mass), f"{body.name} mass {100 * mass:+.0f} %"))
        _, centre, inertia = to_com(old)
        shift = float(np.linalg.norm(to_com(new)[1] - centre))
        gyration = float(np.sqrt(max(np.trace(inertia), 0.0) / (2 * old[0])))
        if share[k, 1:4].max() > _SHARE:
            millimetres = f"{1000 * shift:.0f}" if shift >= 1e-3 else f"{1000 * shift:.1g}"
            largest.append((shift / max(gyration, 1e-6), f"{body.name} CoM {millimetres} mm"))
    return [words for size, words in sorted(largest, reverse=True)[:_LISTED] if size > _SMALLEST_CHANGE]


def html(ident: Record) -> str:
    """The short summary for a notebook."""
    view = overview(ident)
    colour = {"good": "#15803d", "usable": "#92600a", "poor": "#b91c1c"}[view.level]
    verdict = f"<b>{markup(ident.model.robot.name)}: <span style='color:{colour}'>{view.level.upper()}</span></b>"
    lines = [f"<p>{verdict}, {markup(view.cause)}{'<br>' + markup(view.remedy) if view.remedy else ''}</p>"]
    if view.errors:
        cells = [(joint, *map(_percent, errors)) for joint, errors in view.errors.items()]
        rows = "".join(f"<tr>{''.join(f'<td>{markup(cell)}</td>' for cell in row)}</tr>" for row in cells)
        head = "<tr><th>joint</th><th>identified</th><th>URDF</th><th>URDF + friction</th></tr>"
        lines.append(f"<table><caption>{view.kind} error over torque</caption>{head}{rows}</table>")
    lines += [f"<p>{label}: {markup(words)}</p>" for label, words in view.notes.items()]
    return "".join(lines)


def _wrapped(text: str, lines: int, indent: str = _HANGING) -> list[str]:
    """Wraps text to the width; what exceeds the number of lines is cut."""
    return textwrap.wrap(
        text, WIDTH, subsequent_indent=indent, break_on_hyphens=False, max_lines=max(lines, 1), placeholder=" …"
    )


def _percent(value: float) -> str:
    if isnan(value):
        return "–"
    return f"{100 * value:.1f} %" if value < 0.9995 else f"{100 * value:.0f} %" if value < 10 else "> 1000 %"


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
        needed, count, growth = len(chosen.names), len(fit.base), 100 * (chosen.held_out - 1)
        change = f"without the others the held-out error changes by {'+' if growth > 0 else ''}{percent(growth)} %"
        words = f"{needed} of {count} base parameters are essential: {change}"
        essential = [f"  {words if needed != count else f'all {count} base parameters are essential'} ({chosen.rule})"]
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
        *(f"  to identify {abbreviated(names)}: {motion}" for motion, names in wanting[:_LISTED]),
        *([f"  … and {more} more motions: `advice` in identification.json"] if (more := len(wanting) - _LISTED) > 0 else []),
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
    for k, (body, assessed) in enumerate(ident.consistency.per_body.items()):
        lumped = len(ident.model.robot.bodies[k].links) - 1
        name = body + (f" (+{lumped} fixed)" if lumped else "")
        rows.append(
            [
                name,
                f"{ident.bodies[k, 0]:.4g}",
                f"{ident.prior_bodies[k, 0]:.4g}{' (guess)' if ident.prior.guessed[k] else ''}",
                f"{100 * ident.bodies_from_data[k].mean():.0f} %",
                f"{assessed.margins.min_eigenvalue:.2g}",
                "yes" if assessed.consistent else "NO",
            ]
        )
    lines = table(["body", "mass [kg]", "URDF [kg]", "from data", "min CoM inertia [kg·m²]", "consistent"], rows)
    wrong = {name: assessed.words for name, assessed in ident.consistency.per_body.items() if not assessed.consistent}
    return lines + [f"  {name} is not physically consistent: {words}" for name, words in wrong.items()]


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
