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


def brief(ident: Record) -> str:
    """Returns verdict, cause, remedy, what was not tested, error of each joint, what changed most and what is not identified.

    Returns:
        At most 24 lines of at most 100 columns, commands aside.
    """
    verdict = headline(ident)
    kind, errors = joint_errors(ident)
    shown = errors if len(errors) <= _JOINTS else sorted(errors, key=lambda item: -item.identified)[:_WORST]
    table = _table(kind, shown, len(errors))
    open_ = untested(ident) if verdict.level != "poor" else ()
    taken = _wrapped(f"  not tested: {', '.join(open_)}; {CONSEQUENCE}", _HANGING, 3) if open_ else []
    ends = [
        *(_line("compensated:", late) if (late := _delay(ident)) else []),
        *(_line("guessed:", words) if (words := guessed(ident)) else []),
        *_line("changed most:", ", ".join(changes(ident)) or "no body by a significant amount"),
        *_line("not identified:", _unknown(ident)),
        *(_line("left out:", _left_out(ident)) if ident.left_out else []),
    ]
    room = LINES - len(taken) - len(table) - len(ends)
    name = ident.model.robot.name
    head = _wrapped(f"{name}: {verdict.level.upper()}, {verdict.cause}", "  ", room - 3 * bool(verdict.remedy))
    remedy = _remedy(verdict.remedy, room - len(head)) if verdict.remedy else []
    return "\n".join([*head, *remedy, *taken, *table, *ends])


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
    found, share = [], ident.bodies_from_data
    for k, body in enumerate(ident.model.robot.bodies):
        old, new = ident.prior_bodies[k], ident.bodies[k]
        if old[0] <= 0 or new[0] <= 0 or ident.prior.guessed[k]:
            continue
        mass = float(new[0] / old[0] - 1.0)
        if share[k, 0] > _SHARE:
            found.append((abs(mass), f"{body.name} mass {100 * mass:+.0f} %"))
        _, centre, inertia = to_com(old)
        shift = float(np.linalg.norm(to_com(new)[1] - centre))
        gyration = float(np.sqrt(max(np.trace(inertia), 0.0) / (2 * old[0])))
        if share[k, 1:4].max() > _SHARE:
            found.append((shift / max(gyration, 1e-6), f"{body.name} CoM {_millimetres(shift)} mm"))
    return [words for size, words in sorted(found, reverse=True)[:_CHANGES] if size > 0.02]


def _millimetres(metres: float) -> str:
    value = 1000 * metres
    return f"{value:.0f}" if value >= 1 else f"{value:.1g}"


def html(ident: Record) -> str:
    """The short summary for a notebook."""
    verdict = headline(ident)
    kind, errors = joint_errors(ident)
    colour = {"good": "#15803d", "usable": "#92600a", "poor": "#b91c1c"}[verdict.level]
    parts = [
        f"<p><b>{markup(ident.model.robot.name)}: <span style='color:{colour}'>{verdict.level.upper()}</span></b>, "
        f"{markup(verdict.cause)}{'<br>' + markup(verdict.remedy) if verdict.remedy else ''}</p>"
    ]
    if errors:
        rows = "".join(
            f"<tr><td>{markup(e.joint)}</td><td>{_percent(e.identified)}</td><td>{_percent(e.urdf)}</td>"
            f"<td>{_percent(e.urdf_friction)}</td></tr>"
            for e in errors
        )
        head = "<tr><th>joint</th><th>identified</th><th>URDF</th><th>URDF + friction</th></tr>"
        parts.append(f"<table><caption>{kind} error over torque</caption>{head}{rows}</table>")
    if open_ := untested(ident):
        parts.append(f"<p>not tested: {markup(', '.join(open_))}; {CONSEQUENCE}</p>")
    if words := guessed(ident):
        parts.append(f"<p>guessed: {markup(words)}</p>")
    if late := _delay(ident):
        parts.append(f"<p>compensated: {markup(late)}</p>")
    parts.append(f"<p>not identified: {markup(_unknown(ident))}</p>")
    return "".join(parts)


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


def guessed(ident: Record) -> str:
    """Bodies whose inertials the URDF does not state; empty if there are none."""
    bodies, unknown = ident.model.robot.bodies, ident.prior.guessed
    names = [body.name for body, missing in zip(bodies, unknown, strict=True) if missing]
    some = "any body" if unknown.all() else abbreviated(names, 3)
    claimed = "masses come from its geometry, only torques and base parameters are claimed"
    return f"the URDF states no inertials for {some}: {claimed}" if names else ""


def _delay(ident: Record) -> str:
    """The delay of the efforts that was taken out, in words; empty if there was none."""
    late = float(ident.signals.get("delay", {}).get("compensated", 0.0))
    way = "lag behind" if late > 0 else "lead"
    return f"the logged efforts {way} the positions by {1e3 * abs(late):.3g} ms; those of the model do not" if late else ""


def _left_out(ident: Record) -> str:
    """Number of logs that were left out, and the reason for the first one."""
    count = len(ident.left_out)
    names = ", ".join(log["name"] for log in ident.left_out[:3]) + (" …" if count > 3 else "")
    why = ident.left_out[0]["why"]
    return f"{count} of {count + len(ident.inputs)} logs ({names}){'' if count == 1 else '; the first'}: {why}"


def _unknown(ident: Record) -> str:
    """Parameters that the data do not determine; friction and rotor inertia first, because controllers need them."""
    rows = parameters(ident)
    lost = [row for row in rows if row.verdict == LOST]
    sums = sum(row.verdict == COMBINATION for row in rows)
    if not lost:
        return f"{sums} of {len(rows)} parameters only in combination" if sums else "none"
    terms = [row.name for row in lost if row.owner in ident.model.robot.joints]
    some = [*terms, *[row.name for row in lost if row.symbol == "m"]]
    names = f" ({', '.join(some[:3])}{', …' if len(lost) > len(some[:3]) else ''})" if some else ""
    more = f", {sums} only in combination with others" if sums else ""
    return f"{len(lost)} of {len(rows)} parameters{names}{more}"


def _remedy(words: str, lines: int) -> list[str]:
    """The remedy; a command at its end has its own line, which is not wrapped, so that it can be copied."""
    text, mark, call = words.partition(": `urdf-ident ")
    if not mark or call.count("`") != 1 or not call.endswith("`"):
        return _wrapped(f"  to do: {words}", _HANGING, min(3, lines))
    return [*_wrapped(f"  to do: {text}:", _HANGING, min(2, lines - 1)), f"{_HANGING}urdf-ident {call[:-1]}"]


def _line(label: str, words: str) -> list[str]:
    return _wrapped(f"  {label} {words}", _HANGING, 2)


def _wrapped(text: str, indent: str, lines: int) -> list[str]:
    """Wraps text to the width, truncated to ``lines`` lines."""
    found = textwrap.wrap(text, WIDTH, subsequent_indent=indent, break_on_hyphens=False)
    count = max(lines, 1)
    if len(found) <= count:
        return found
    last = found[count - 1]
    return [*found[: count - 1], f"{last if len(last) <= WIDTH - 2 else last.rsplit(' ', 1)[0]} …"]


def _percent(value: float) -> str:
    if isnan(value):
        return "–"
    return f"{100 * value:.1f} %" if value < 0.9995 else f"{100 * value:.0f} %" if value < 10 else "> 1000 %"


@dataclass(frozen=True)
class Headline:
    """The verdict in one sentence.

    Attributes:
        level: "good", "usable" or "poor".
        cause: The reason, in one sentence.
        remedy: The most important remedy; empty if none is needed.
    """

    level: str
    cause: str
    remedy: str


def headline(ident: Record) -> Headline:
    """Returns the verdict, its cause and one remedy.

    Another motion is recommended only if no cause in the logs is known: otherwise more of the same data would not help.
    """
    found = verdict_of(ident)
    errors = (Id.HELD_OUT_ERROR, Id.CROSS_VALIDATION)
    error = next((item.message for item in found.judgements if item.id in errors), "")
    if found.cause is None:
        return Headline(found.level, error or "no objection", "")
    cause = found.cause.message if not error or error == found.cause.message else f"{found.cause.message}; {error}"
    return Headline(found.level, cause, str(found.cause.remedy or "") or _log_remedy(ident) or _motion(ident))


def _log_remedy(ident: Record) -> str:
    """The remedy of the first warning about a log."""
    for log in ident.inputs:
        for finding in log["findings"]:
            if finding["severity"] in ("refused", "warning") and finding.get("remedy"):
                return str(finding["remedy"])
    return ""


def _motion(ident: Record) -> str:
    """The motion that would determine most of the unknown parameters."""
    motions = [verdict.motion for verdict in ident.verdicts if verdict.motion]
    return max(dict.fromkeys(motions), key=motions.count) if motions else ""
