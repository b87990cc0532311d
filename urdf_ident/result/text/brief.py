"""The short summary of a result: the verdict in one sentence, at most 24 lines of 100 columns in total."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from math import isnan

import numpy as np

from ...estimation.uncertainty.identifiability import COMBINATION, LOST
from ...grouping import abbreviated
from ...judgements.catalogue import Id
from ...linalg import divisors
from ...model.inertia import to_com
from ...model.row_groups import joint_of
from ...quoting import markup
from ..evidence.scores import over_logs
from ..parameters import parameters
from ..record import Record
from ..verdict.scale_reasons import CONSEQUENCE, untested
from ..verdict.verdict import verdict_of

WIDTH, LINES = 100, 24
_HANGING = "      "
#: Up to seven joints are listed one by one; otherwise only the worst five.
_JOINTS, _WORST = 7, 5
#: Number of body changes listed, and the share of the data below which a change is due to the prior.
_CHANGES, _SHARE = 3, 0.1


@dataclass(frozen=True)
class JointError:
    """Errors of one joint relative to its torque, fractions; NaN if unknown."""

    joint: str
    identified: float
    urdf: float = float("nan")
    urdf_friction: float = float("nan")


@dataclass(frozen=True)
class Overview:
    """What every presentation of a result says first: the short summary, the notebook and the report.

    Attributes:
        level: "good", "usable" or "poor".
        cause: The reason, in one sentence.
        remedy: The most important remedy; empty if none is needed.
        untested: What the data do not test, and what an error in it would change; empty if nothing, or if the result is poor.
        kind: Of the errors: "held-out", "cross-validated", or empty without any.
        errors: Errors of the joints in model order.
        notes: Label → words about the rest; labels without words are left out.
    """

    level: str
    cause: str
    remedy: str
    untested: str
    kind: str
    errors: list[JointError]
    notes: dict[str, str]


def overview(ident: Record) -> Overview:
    """Collects what is said first of a result.

    Another motion is recommended only if no cause in the logs is known: otherwise more of the same data would not help.
    """
    verdict, (kind, errors) = verdict_of(ident), joint_errors(ident)
    error = next((each.message for each in verdict.judgements if each.id in (Id.HELD_OUT_ERROR, Id.CROSS_VALIDATION)), "")
    cause, remedy = error or "no objection", ""
    if verdict.cause is not None:
        cause = verdict.cause.message
        cause += f"; {error}" if error and error != cause else ""
        findings = (finding for log in ident.inputs for finding in log["findings"] if finding.get("remedy"))
        of_logs = (str(finding["remedy"]) for finding in findings if finding["severity"] in ("refused", "warning"))
        motions = [parameter.motion for parameter in ident.verdicts if parameter.motion]  # most parameters need the first
        most = max(dict.fromkeys(motions), key=motions.count, default="")
        remedy = str(verdict.cause.remedy or "") or next(of_logs, most)
    open_ = untested(ident) if verdict.level != "poor" else ()
    late = float(ident.signals.get("delay", {}).get("compensated", 0.0))
    way = "lag behind" if late > 0 else "lead"
    notes = {
        "compensated": f"the logged efforts {way} the positions by {1e3 * abs(late):.3g} ms; those of the model do not"
        if late
        else "",
        "guessed": _guessed(ident),
        "changed most": ", ".join(changes(ident)) or "no body by a significant amount",
        "not identified": _unknown(ident),
        "left out": _left_out(ident),
    }
    said = {label: words for label, words in notes.items() if words}
    return Overview(verdict.level, cause, remedy, f"{', '.join(open_)}; {CONSEQUENCE}" if open_ else "", kind, errors, said)


def brief(ident: Record) -> str:
    """Returns verdict, cause, remedy, what was not tested, error of each joint, what changed most and what is not identified.

    Returns:
        At most 24 lines of at most 100 columns, commands aside.
    """
    view = overview(ident)
    shown = view.errors if len(view.errors) <= _JOINTS else sorted(view.errors, key=lambda e: -e.identified)[:_WORST]
    body = _wrapped(f"  not tested: {view.untested}", 3) if view.untested else []
    body += _table(view.kind, shown, len(view.errors))
    body += [line for label, words in view.notes.items() for line in _wrapped(f"  {label}: {words}", 2)]
    room = LINES - len(body)
    first = f"{ident.model.robot.name}: {view.level.upper()}, {view.cause}"
    head = _wrapped(first, room - 3 * bool(view.remedy), indent="  ")
    return "\n".join([*head, *(_remedy(view.remedy, room - len(head)) if view.remedy else []), *body])


def joint_errors(ident: Record) -> tuple[str, list[JointError]]:
    """Relative torque error of every joint, on held-out logs or, without any, from cross-validation.

    Returns:
        The kind of error (empty if there is none), and the joints in model order (RMS over logs).
    """
    joints = ident.model.robot.joints
    if ident.validation:
        sizes = divisors(over_logs(ident.validation, "rms_torque"))
        errors = [over_logs(ident.validation, key) / sizes for key in ("rmse", "urdf_rmse", "urdf_friction_rmse")]
        return "held-out", [JointError(joint, *map(float, own)) for joint, *own in zip(joints, *errors, strict=True)]
    if ident.held_out_errors is not None:
        exported = zip(joints, ident.held_out_errors.tolist(), strict=True)
        return "cross-validated", [JointError(joint, error) for joint, error in exported]
    cross = ident.cross_validation
    loads = np.atleast_1d(ident.signals.get("load", []))
    if not cross or len(loads) != len(joints):
        return "", []
    groups = {joint_of(group): float(value) for group, value in zip(cross["groups"], cross["group_rmse"], strict=True)}
    of_size = zip(joints, divisors(loads).tolist(), strict=True)
    return "cross-validated", [JointError(joint, groups[joint] / size) for joint, size in of_size if joint in groups]


def changes(ident: Record) -> list[str]:
    """The largest changes from the URDF among parameters that the data contribute to.

    Returns:
        A few changes of mass or centre of mass in words, largest first.
    """
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
            largest.append((shift / max(gyration, 1e-6), f"{body.name} CoM {_millimetres(shift)} mm"))
    return [words for size, words in sorted(largest, reverse=True)[:_CHANGES] if size > 0.02]


def _millimetres(metres: float) -> str:
    value = 1000 * metres
    return f"{value:.0f}" if value >= 1 else f"{value:.1g}"


def html(ident: Record) -> str:
    """The short summary for a notebook."""
    view = overview(ident)
    colour = {"good": "#15803d", "usable": "#92600a", "poor": "#b91c1c"}[view.level]
    verdict = f"<b>{markup(ident.model.robot.name)}: <span style='color:{colour}'>{view.level.upper()}</span></b>"
    lines = [f"<p>{verdict}, {markup(view.cause)}{'<br>' + markup(view.remedy) if view.remedy else ''}</p>"]
    if view.errors:
        cells = [(e.joint, *map(_percent, (e.identified, e.urdf, e.urdf_friction))) for e in view.errors]
        rows = "".join(f"<tr>{''.join(f'<td>{markup(cell)}</td>' for cell in row)}</tr>" for row in cells)
        head = "<tr><th>joint</th><th>identified</th><th>URDF</th><th>URDF + friction</th></tr>"
        lines.append(f"<table><caption>{view.kind} error over torque</caption>{head}{rows}</table>")
    notes = {"not tested": view.untested} if view.untested else {}
    lines += [f"<p>{label}: {markup(words)}</p>" for label, words in (notes | view.notes).items()]
    return "".join(lines)


def _table(kind: str, errors: list[JointError], count: int) -> list[str]:
    if not errors:
        return []
    worst = f", worst {len(errors)} of {count} joints" if len(errors) < count else ""
    width = min(max(max(len(e.joint) for e in errors), 20), 44)
    known = not isnan(errors[0].urdf)
    more = f"  {'URDF':>8}  {'URDF + friction':>15}" if known else ""
    title = f"{kind} error over torque{worst}"
    lines = [f"  {title:<{max(width, len(title))}}  {'identified':>10}{more}"]
    for error in errors:
        name = error.joint if len(error.joint) <= width else error.joint[: width - 1] + "…"
        rest = f"  {_percent(error.urdf):>8}  {_percent(error.urdf_friction):>15}" if known else ""
        lines.append(f"  {name:<{max(width, len(title))}}  {_percent(error.identified):>10}{rest}")
    return lines


def _guessed(ident: Record) -> str:
    """Bodies whose inertials the URDF does not state."""
    bodies, unknown = ident.model.robot.bodies, ident.prior.guessed
    names = [body.name for body, missing in zip(bodies, unknown, strict=True) if missing]
    some = "any body" if unknown.all() else abbreviated(names, 3)
    claimed = "masses come from its geometry, only torques and base parameters are claimed"
    return f"the URDF states no inertials for {some}: {claimed}" if names else ""


def _left_out(ident: Record) -> str:
    """Number of logs that were left out, and the reason for the first one."""
    count = len(ident.left_out)
    if not count:
        return ""
    names = ", ".join(log["name"] for log in ident.left_out[:3]) + (" …" if count > 3 else "")
    first = "" if count == 1 else "; the first"
    return f"{count} of {count + len(ident.inputs)} logs ({names}){first}: {ident.left_out[0]['why']}"


def _unknown(ident: Record) -> str:
    """Parameters that the data do not determine; friction and rotor inertia first, because controllers need them."""
    rows = parameters(ident)
    lost = [row for row in rows if row.verdict == LOST]
    sums = sum(row.verdict == COMBINATION for row in rows)
    if not lost:
        return f"{sums} of {len(rows)} parameters only in combination" if sums else "none"
    some = [row.name for row in lost if row.owner in ident.model.robot.joints] + [row.name for row in lost if row.symbol == "m"]
    names = f" ({', '.join(some[:3])}{', …' if len(lost) > len(some[:3]) else ''})" if some else ""
    return f"{len(lost)} of {len(rows)} parameters{names}" + (f", {sums} only in combination with others" if sums else "")


def _remedy(words: str, lines: int) -> list[str]:
    """The remedy; a command at its end has its own line, which is not wrapped, so that it can be copied."""
    text, mark, call = words.partition(": `urdf-ident ")
    if not mark or call.count("`") != 1 or not call.endswith("`"):
        return _wrapped(f"  to do: {words}", min(3, lines))
    return [*_wrapped(f"  to do: {text}:", min(2, lines - 1)), f"{_HANGING}urdf-ident {call[:-1]}"]


def _wrapped(text: str, lines: int, indent: str = _HANGING) -> list[str]:
    """Wraps text to the width; what exceeds the number of lines is cut."""
    return textwrap.wrap(
        text, WIDTH, subsequent_indent=indent, break_on_hyphens=False, max_lines=max(lines, 1), placeholder=" …"
    )


def _percent(value: float) -> str:
    if isnan(value):
        return "–"
    return f"{100 * value:.1f} %" if value < 0.9995 else f"{100 * value:.0f} %" if value < 10 else "> 1000 %"
