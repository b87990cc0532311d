"""Pictures and tables of the five papers, ours beside theirs, in one folder.

Run: ``scripts/papers/all [-o out/papers] [--only a b c d e]`` (some minutes)

Every part runs the script of its paper with fewer repetitions: the scripts themselves print more.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import a_table2
import b_circle
import c_elastic_joints
import d_tx40
import e_three_loop
import numpy as np

from urdf_ident.compensation.friction_curve import friction_columns
from urdf_ident.model.prior import USUAL_WEIGHT
from urdf_ident.result.plots.chart import PALETTE
from urdf_ident.result.plots.figure import apply_style, figure_class, legend


def save(figure: Any, folder: Path, name: str) -> str:
    """Writes a picture.

    Args:
        figure: Of matplotlib.
        folder: Where to.
        name: Of the file, without its ending.

    Returns:
        The paragraph that shows it in Markdown.
    """
    figure.tight_layout()
    figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
    return f"\n![{name}]({name}.svg)"


def block(text: str) -> str:
    """Printed text as a block of Markdown."""
    return f"```text\n{text}\n```"


def overlay(time_axis: Any, pairs: list[tuple[Any, Any]], titles: list[str]) -> Any:
    """Measured and predicted torque and what is left, one row a joint."""
    figure = figure_class()(figsize=(9.0, 1.9 * len(pairs)))
    for j, (measured, predicted) in enumerate(pairs):
        axis = figure.add_subplot(len(pairs), 1, j + 1)
        axis.plot(time_axis, measured, color=PALETTE["ink"], linewidth=0.6, label="measured")
        axis.plot(time_axis, predicted, color=PALETTE["identified"], linewidth=1.0, label="reconstructed")
        axis.plot(time_axis, measured - predicted, color=PALETTE["residual"], linewidth=0.6, label="residual")
        apply_style(axis, title=titles[j], x="time [s]" if j == len(pairs) - 1 else "", y="torque [N·m]")
        if j == 0:
            legend(axis)
    return figure


def szabo(folder: Path) -> list[str]:
    """Table 2 and Fig. 3."""
    found = a_table2.table(runs=200, noisy_runs=40)
    shown = found.example
    pairs = [(shown.measured[:, j], shown.reconstructed[:, j]) for j in range(3)]
    figure = overlay(shown.time, pairs, [f"joint {j}" for j in (1, 2, 3)])
    return ["## Szabó 2021: Table 2, Fig. 3", "", block(a_table2.report(found)), save(figure, folder, "szabo_fig3")]


def wu(folder: Path) -> list[str]:
    """The circle: tracking, and torque by the true parameters' model."""
    experiment = b_circle.Experiment()
    rows = ["| family | circle residual, axes 1 2 3 [N·m] | tracking error [mrad] |", "|---|---|---|"]
    for family in b_circle.FAMILIES:
        run = experiment.run(family, 0, 2.0)
        rows.append(f"| {family} | {run.residual.round(3)} | {(1e3 * run.tracking).round(3)} |")
    log, path = experiment.circle_log, experiment.circle
    reference, actual = path.evaluate(log.truth.time)[0], log.truth.q
    figure = figure_class()(figsize=(9.0, 3.0))
    for j in range(3):
        axis = figure.add_subplot(1, 3, j + 1)
        axis.plot(log.truth.time, 1e3 * (actual[:, j] - reference[:, j]), color=PALETTE["residual"], linewidth=0.7)
        apply_style(axis, title=f"axis {j + 1}", x="time [s]", y="tracking error [mrad]" if j == 0 else "")
    return ["## Wu 2012: the circle", "", *rows, save(figure, folder, "wu_circle_tracking")]


def zollo(_: Path) -> list[str]:
    """Tables 1 and 3 to 6 per parameter, and the spread over motions."""
    lines = ["## Zollo 2015: normalised mean error", "", "| case | ours, least | ours, most | paper |", "|---|---|---|---|"]
    cases = (
        ("planar, without static friction", c_elastic_joints.planar, False, 0.00862),
        ("planar, with static friction", c_elastic_joints.planar, True, 0.103),
        ("PUMA 560", c_elastic_joints.puma, True, 0.123),
    )
    tables: list[str] = []
    for name, make, static, paper in cases:
        found = c_elastic_joints.spread(make, static, range(3))
        means = [item.mean for item in found]
        lines.append(f"| {name}, 3 motions | {min(means):.2e} | {max(means):.2e} | {paper:g} |")
        first = found[0]
        tables += ["", f"### {name}, per parameter", "", "| parameter | real | estimated | error [%] |", "|---|---|---|---|"]
        for label, value, exact in zip(first.base.labels, first.estimate, first.truth, strict=True):
            if abs(exact) > 1e-9:
                tables.append(f"| {label} | {exact:.5g} | {value:.5g} | {100 * (value / exact - 1):+.2g} |")
    return lines + tables


def gautier(_: Path) -> list[str]:
    """Tables II and III with their spread."""
    case = d_tx40.Case.build()
    found = d_tx40.run(1, case=case, weight=USUAL_WEIGHT)
    runs = {1: found.identified, **{seed: d_tx40.identified(case, seed) for seed in (2, 3)}}
    text = d_tx40.report(found) + "\n\n" + "\n".join(d_tx40.spread_lines(d_tx40.spread(case, runs)))
    return ["## Gautier 2013: Tables II and III", "", block(text)]


def liu(folder: Path) -> list[str]:
    """Table 4, friction curves, and the residual network."""
    arm = e_three_loop.build_arm()
    data = e_three_loop.record(arm, test_seeds=(1, 2), rate=100.0)
    found = e_three_loop.compare(arm, data, "rbf", rounds=3)
    plain, last = found.gains[0].held_out, found.gains[-1].held_out
    lines = [
        "## Liu 2023: Table 4",
        "",
        "| joint | WLS, paper | three loops, paper | WLS, ours | three loops, ours |",
        "|---|---|---|---|---|",
    ]
    for j in range(6):
        row = (e_three_loop.PAPER_WLS[j], e_three_loop.PAPER_OURS[j], plain[j], last[j])
        lines.append(f"| {j + 1} | " + " | ".join(f"{value:.3f}" for value in row) + " |")
    figure = figure_class()(figsize=(9.0, 5.0))
    for j, curve in enumerate(found.friction):
        axis = figure.add_subplot(2, 3, j + 1)
        top = float(np.abs(curve.points.velocity).max())
        speed = np.concatenate([np.linspace(-top, -1e-3, 100), np.linspace(1e-3, top, 100)])
        axis.plot(curve.points.velocity, curve.points.torque, ".", color=PALETTE["ink"])
        axis.plot(speed, friction_columns(curve.law, speed) @ curve.params, color=PALETTE["friction"], linewidth=1.0)
        apply_style(axis, title=curve.joint, x="speed [rad/s]", y="friction [N·m]")
    pictures = [save(figure, folder, "liu_friction_curves")]
    part = data.test[0].segments[0]
    apart, rate = part.qm - part.q, part.vm - part.v
    left = found.residual.torque(
        deformation=apart, deformation_rate=rate, position=part.q, velocity=part.v, acceleration=part.a
    )
    figure = figure_class()(figsize=(9.0, 5.0))
    for j in range(6):
        axis = figure.add_subplot(2, 3, j + 1)
        dots = axis.scatter(*(1e3 * x[::4, j] for x in (apart, rate)), c=left[::4, j], s=3, cmap="coolwarm")
        figure.colorbar(dots, ax=axis)
        title = f"joint {j + 1} [N·m]" if left[:, j].any() else f"joint {j + 1}: nothing gained, none"
        apply_style(axis, title=title, x="deformation [mrad]", y="its rate [mrad/s]")
    return [*lines, *pictures, save(figure, folder, "liu_residual_network")]


PARTS: dict[str, Callable[[Path], list[str]]] = {"a": szabo, "b": wu, "c": zollo, "d": gautier, "e": liu}


def main() -> None:
    """Writes the folder."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("-o", "--out", type=Path, default=Path("out/papers"))
    parser.add_argument("--only", nargs="+", choices=list(PARTS), default=list(PARTS))
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    lines = ["# The five papers: their figures and ours", "", "Written by `scripts/papers/all`.", ""]
    for name in chosen.only:
        begun = time.monotonic()
        lines += [*PARTS[name](chosen.out), ""]
        print(f"{name}: {time.monotonic() - begun:.0f} s", flush=True)
    (chosen.out / "papers.md").write_text("\n".join(lines), encoding="utf-8")
    print(f"wrote {chosen.out / 'papers.md'}")


if __name__ == "__main__":
    main()
