"""The result on one screen, with units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .identification import Identification
from .model.dynamic_model import DynamicModel


def summary(ident: Identification) -> str:
    """What was found, what it is worth, and what the data could not tell.

    Args:
        ident: The result.

    Returns:
        Several lines of text, at most about 40 for a 6-axis arm.
    """
    fit, robot = ident.fit, ident.model.robot
    verdict = ident.verdict()
    weak = int(((fit.relative_percent > 50) & fit.seen).sum())
    lines = [
        f"{robot.name}: {verdict['level'].upper()} ({'; '.join(verdict['reasons'])})",
        f"  {len(ident.inputs)} log(s), {fit.rows} rows; {len(ident.theta)} parameters, {len(fit.base)} of them (or of their "
        f"combinations) can be seen, {weak} with more than 50 % standard error; condition {fit.condition:.3g}",
        *(f"  {line}" for line in ident.signals.get("why", ())),
        *(f"  {note}" for note in ident.solver.get("notes", ())),
        "",
        *_bodies(ident),
        "",
        *_joints(ident),
    ]
    if ident.validation:
        lines += ["", *validation_table(ident.validation, robot.joints)]
    elif ident.cross_validation:
        lines += ["", *_cross(ident.cross_validation)]
    return "\n".join(lines)


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Aligned text columns, the first one left.

    Args:
        header: Column titles.
        rows: Cells.

    Returns:
        Lines.
    """
    widths = [max(len(str(row[k])) for row in [header, *rows]) for k in range(len(header))]
    lines = []
    for row in [header, *rows]:
        cells = [str(cell).rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        lines.append("  " + "  ".join([str(row[0]).ljust(widths[0]), *cells]).rstrip())
    return lines


def validation_table(validations: Sequence[Mapping[str, Any]], joints: Sequence[str]) -> list[str]:
    """Held-out errors, ours beside what the user had before.

    Args:
        validations: Entries of ``validation``.
        joints: Joint names.

    Returns:
        Lines.
    """
    header = ["held-out log, RMSE [N·m or N]", *joints, "mean", "fit", "URDF", "URDF+friction"]
    rows = []
    for item in validations:
        cells = [f"{joint['rmse']:.3g}" for joint in item["per_joint"]]
        means = [f"{item[key]:.3f}" for key in ("mean_rmse", "fit_mean_rmse", "urdf_mean_rmse", "urdf_friction_mean_rmse")]
        rows.append([item["log"], *cells, *means])
    return table(header, rows)


def _bodies(ident: Identification) -> list[str]:
    rows = []
    share = ident.from_data[: ident.model.n_inertial].reshape(-1, 10)
    prior = ident.prior.theta0[: ident.model.n_inertial].reshape(-1, 10)
    for k, entry in enumerate(ident.consistency.per_body):
        lumped = len(ident.model.robot.bodies[k].links) - 1
        name = entry.body + (f" (+{lumped} fixed)" if lumped else "")
        rows.append(
            [
                name,
                f"{ident.bodies[k, 0]:.4g}",
                f"{prior[k, 0]:.4g}",
                f"{100 * share[k].mean():.0f} %",
                f"{entry.margins.min_eigenvalue:.2g}",
                "yes" if entry.consistent else "NO: " + entry.words,
            ]
        )
    return table(["body", "mass [kg]", "URDF [kg]", "from data", "min CoM inertia [kg·m²]", "can exist"], rows)


def _joints(ident: Identification) -> list[str]:
    symbols = list(dict.fromkeys(p.symbol for p in ident.model.parameters[ident.model.n_inertial :]))
    if not symbols:
        return []
    units = {p.symbol: p.unit for p in ident.model.parameters}
    values = {symbol: ident.term_values(symbol) for symbol in symbols}
    rows = [
        [joint, *(f"{values[s][joint]:.4g}" if joint in values[s] else "-" for s in symbols)]
        for joint in ident.model.robot.joints
    ]
    return table(["joint", *(f"{symbol} [{units[symbol]}]" for symbol in symbols)], rows)


def _cross(cross: Mapping[str, Any]) -> list[str]:
    header = [f"cross-validated over {len(cross['folds'])} folds", "RMSE [N·m or N]"]
    rows = [[group, f"{value:.3g}"] for group, value in zip(cross["groups"], cross["group_rmse"], strict=True)]
    return table(header, [*rows, ["mean", f"{cross['mean_rmse']:.3g}"]])


def check_dict(model: DynamicModel) -> dict[str, Any]:
    """What a URDF holds, as plain data.

    Args:
        model: The dynamic model of the URDF.

    Returns:
        Joints, bodies with their lumped links, findings on inertials, and what can be identified.
    """
    from .consistency.repair import assess_urdf

    robot, base = model.robot, model.base()
    limits = {key: robot.limit(key) for key in ("lower", "upper", "velocity", "effort")}
    findings = assess_urdf(robot)
    dependent = {model.names[k] for k in base.dependent}
    zero = {model.names[k] for k in base.zero}
    alone = {name for row, name in enumerate(base.labels) if len(base.terms(row)) == 1}
    return {
        "robot": robot.name,
        "path": robot.path,
        "physical": all(item.level != "impossible" for item in findings),
        "joints": [
            {
                "name": name,
                "type": robot.description.joints[name].type,
                **{key: float(values[j]) if abs(values[j]) < 1e300 else None for key, values in limits.items()},
            }
            for j, name in enumerate(robot.joints)
        ],
        "locked": dict(robot.locked),
        "bodies": [
            {"name": body.name, "joint": body.joint, "lumped_links": [link.name for link in body.links[1:]]}
            for body in robot.bodies
        ],
        "findings": [
            {"kind": item.kind, "name": item.name, "level": item.level, "problems": list(item.problems),
             "correction": item.correction, "eigenvalues": item.eigenvalues.tolist()}
            for item in findings if item.level != "ok"
        ],
        "identifiable": {
            "parameters": len(model.names), "base": len(base), "rank_gap": base.rank_gap,
            "alone": sorted(alone, key=model.names.index),
            "in_combination": [name for name in model.names if name in dependent],
            "never": [name for name in model.names if name in zero],
        },
    }  # fmt: skip


def check_text(found: dict[str, Any]) -> str:
    """The result of ``check`` on one screen.

    Args:
        found: From :func:`check_dict`.

    Returns:
        Several lines of text.
    """
    rows = []
    for joint, body in zip(found["joints"], found["bodies"], strict=True):
        bounds = ["-" if joint[key] is None else f"{joint[key]:.4g}" for key in ("lower", "upper", "velocity", "effort")]
        rows.append([joint["name"], joint["type"], *bounds, body["name"], ", ".join(body["lumped_links"]) or "-"])
    lines = [f"{found['robot']} ({found['path']}): {len(rows)} joints", ""]
    lines += table(["joint", "type", "lower", "upper", "velocity", "effort", "body", "lumped into it"], rows)
    if found["locked"]:
        lines.append("  locked: " + ", ".join(f"{name} at {value:g}" for name, value in found["locked"].items()))
    lines.append("")
    if found["findings"]:
        for item in found["findings"]:
            lines.append(f"  {item['level'].upper()} {item['kind']} '{item['name']}': {'; '.join(item['problems'])}")
            lines.append(f"    smallest fix: {item['correction']}")
        lines.append("  `urdf-ident check ROBOT.urdf --fix F` writes a repaired copy")
    else:
        lines.append("  every inertial is physical")
    seen = found["identifiable"]
    lines += [
        "",
        f"  {seen['base']} of {seen['parameters']} parameters (or combinations) can be identified, "
        f"{len(seen['alone'])} of them alone; {len(seen['never'])} never act on a joint torque:",
        "    " + (", ".join(seen["never"]) or "-"),
    ]
    return "\n".join(lines)


def findings_text(found: Sequence[Mapping[str, Any]]) -> str:
    """The result of ``inspect``: a judgement and its findings per log.

    Args:
        found: One entry a log.

    Returns:
        Several lines of text.
    """
    lines = []
    for item in found:
        lines.append(f"{item['log']}: {'good' if item['acceptable'] else 'REFUSED'} ({item['rows']} rows)")
        for finding in item["findings"]:
            remedy = f" -> {finding['remedy']}" if finding.get("remedy") else ""
            lines.append(f"  {finding['severity']:<8} {finding['message']}{remedy}")
    return "\n".join(lines)
