"""The short summary of a result: the verdict in one sentence, at most 24 lines of 100 columns in total."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from math import isnan, nan

import numpy as np

from ...estimation.uncertainty.identifiability import COMBINATION, LOST
from ...grouping import abbreviated, table
from ...judgements.catalogue import Id
from ...linalg import divisors
from ...model.inertia import to_com
from ...model.row_groups import joint_of
from ...quoting import markup
from ..evidence.scores import errors_of_joints
from ..record import Record
from ..verdict.verdict import untested, verdict_of

#: Columns and lines of the summary at most.
WIDTH, LINES = 100, 24
_HANGING = "      "
#: Up to seven joints are listed one by one; otherwise only the worst five.
_JOINTS, _WORST = 7, 5
#: Maximum length of a joint's name.
_NAME = 44
#: Judgements of the error on other motions.
_OF_ERRORS = (Id.HELD_OUT_ERROR, Id.CROSS_VALIDATION)
#: Number of body changes listed.
_CHANGES = 3
#: Share of the data in a parameter below which its change is due to the prior.
_SHARE = 0.1
#: Relative change of a mass, or shift of a centre over the body's radius of gyration, from which it is listed.
_SMALLEST_CHANGE = 0.02


#: Errors of a joint relative to its torque, fractions, nan if unknown: as identified, of the URDF, and with fitted friction.
Errors = tuple[float, float, float]


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
    return [words for size, words in sorted(largest, reverse=True)[:_CHANGES] if size > _SMALLEST_CHANGE]


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
