"""Are the results of two checkouts equal? For refactorings: identifies the same logs with both and compares the JSON.

    python scripts/checks/same_results.py OLD NEW [--shared ../shared] [--only ur10e,panda,emps,demo,papers] [--keep DIR]

OLD and NEW are folders with a checkout each (``git worktree add ../old REVISION``), run with the interpreter of this script.
Base parameters and standard errors must agree to 1e-9 standard errors; chosen laws, folds, cut-off and rate must be
identical; exported numbers must agree to 1e-4 posterior standard deviations, which are smaller than the prior's. Numbers
that two paper scripts print must agree to six digits. Exit code 1 where anything differs, with one line each.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

PAPERS = ("papers/a_table2.py", "papers/d_tx40.py")
PROJECTS = {
    "ur10e": "drive: {gain: [11.976, 11.976, 9.8386, 10.763, 10.763, 10.763]}\n"
    "log: {columns: {time: 0, position: [1, 2, 3, 4, 5, 6], velocity: [7, 8, 9, 10, 11, 12],"
    " effort: [13, 14, 15, 16, 17, 18]}}\n"
    "validation: {score_cutoff: 9.4}\n",
    "panda": "robot: {lock: {panda_finger_joint1: 0.0, panda_finger_joint2: 0.0}}\n"
    "log: {columns: {time: t, position: [q1, q2, q3, q4, q5, q6, q7], velocity: [dq1, dq2, dq3, dq4, dq5, dq6, dq7],"
    " effort: [tau1, tau2, tau3, tau4, tau5, tau6, tau7]}}\nvalidation: {score_cutoff: 10.0}\n",
    "emps": "log: {rate: 1000}\ndrive: {gain: 35.15}\nmodel: {rotor_inertia: false}\nvalidation: {score_cutoff: 10.0}\n",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--shared", type=Path, default=Path(__file__).parents[3] / "shared")
    parser.add_argument("--only", default="ur10e,panda,emps,demo,papers")
    parser.add_argument("--keep", type=Path, default=Path("out/same_results"))
    options = parser.parse_args()
    differences: list[str] = []
    for case in options.only.split(","):
        if case in PROJECTS and not (options.shared / "data").is_dir():
            print(f"{case}: skipped, {options.shared}/data is absent")
            continue
        both = [produce(case, getattr(options, side), options.keep / side, options.shared) for side in ("old", "new")]
        found = differing_numbers(*both) if case == "papers" else differing_results(*map(load_result, both))
        differences += [f"{case}: {line}" for line in found]
        print(f"{case}: {'equal' if not found else f'{len(found)} differences'}", flush=True)
    print("\n".join(differences))
    sys.exit(bool(differences))


def produce(case: str, checkout: Path, out: Path, shared: Path) -> Path:
    """Runs one case in a checkout; a result that exists for the same commit is used again."""
    revision, dirty = (
        subprocess.run(["git", "-C", str(checkout), *words], capture_output=True, text=True, check=True).stdout
        for words in (("rev-parse", "HEAD"), ("diff", "HEAD", "--stat"))
    )
    folder = (out / case).resolve()
    stamp = folder / "revision"
    if stamp.is_file() and stamp.read_text() == revision and not dirty:
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "PYTHONPATH": str(checkout.resolve()), "OPENBLAS_NUM_THREADS": "1"}
    start = [sys.executable, "-c", "from urdf_ident.cli import main; main()"]
    if case == "papers":
        with (folder / "printed.txt").open("w") as printed:
            for script in PAPERS:
                call = [sys.executable, str(checkout.resolve() / "scripts" / script)]
                subprocess.run(call, stdout=printed, env=environment, check=True, cwd=folder)
    elif case == "demo":
        subprocess.run([*start, "demo", "-o", str(folder)], env=environment, check=True, cwd=folder, stdout=subprocess.DEVNULL)
    else:
        urdf, logs = inputs(case, folder, shared / "data")
        (folder / "project.yaml").write_text(PROJECTS[case])
        call = [*start, "identify", str(urdf), *map(str, logs), "-c", "project.yaml", "-o", "."]
        done = subprocess.run(call, env=environment, check=False, cwd=folder, capture_output=True, text=True)
        if done.returncode > 1:
            raise SystemExit(f"{case} in {checkout}: {done.stderr}")
    stamp.write_text(revision)
    return folder


def inputs(case: str, folder: Path, data: Path) -> tuple[Path, list[Path]]:
    """URDF and logs of a case."""
    if case == "ur10e":
        return data / "ur10e" / "ur10e.urdf", sorted((data / "ur10e").glob("*.csv"))
    if case == "panda":
        return data / "panda" / "panda.urdf", [data / "panda" / "panda_exciting.csv"]
    from scipy.io import loadmat

    log = loadmat(data / "emps" / "DATA_EMPS.mat")
    urdf = Path(__file__).parents[2] / "robots" / "emps.urdf"
    joint = re.findall(r'<joint name="([^"]+)" type="prismatic"', urdf.read_text())[0]
    path = folder / "emps.csv"
    table = np.column_stack([log["t"].ravel(), log["qm"].ravel(), log["vir"].ravel()])
    np.savetxt(path, table, delimiter=",", header=f"t,q_{joint},tau_{joint}", comments="", fmt="%.17g")
    return urdf, [path]


def load_result(folder: Path) -> dict[str, Any]:
    """The JSON of a result."""
    data: dict[str, Any] = json.loads((folder / "identification.json").read_text())
    return data


def value(data: dict[str, Any], path: str) -> Any:
    """An entry by its dotted path; None where it is absent."""
    entry: Any = data
    for part in path.split("."):
        entry = entry.get(part) if isinstance(entry, dict) else None
    return entry


def differing_results(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """What differs by more than the definition of equal results allows."""
    found = []
    same = (
        "joints",
        "signals.cutoff",
        "signals.decimate",
        "cross_validation.folds",
        "cross_validation.groups",
        "solver.method",
    )
    for path in same:
        if value(old, path) != value(new, path):
            found.append(f"{path}: {str(value(old, path))[:60]} became {str(value(new, path))[:60]}")
    laws = [
        {j: sorted((s, t["term"]) for s, t in terms.items()) for j, terms in data["friction"].items()} for data in (old, new)
    ]
    if laws[0] != laws[1]:
        return [*found, "friction: other laws"]
    before, after = (data["parameters"]["base"] for data in (old, new))
    if [entry["name"] for entry in before] != [entry["name"] for entry in after]:
        return [*found, "parameters.base: other names"]
    for a, b in zip(before, after, strict=True):
        error = float(a["std_error"])
        for key in ("value", "std_error"):
            if np.isfinite(error) and abs(float(a[key]) - float(b[key])) > 1e-9 * error:
                found.append(f"{a['name']}: {key} moved by {abs(float(a[key]) - float(b[key])) / error:.2g} standard errors")
    for a, b in zip(old["parameters"]["standard"], new["parameters"]["standard"], strict=True):
        if abs(a["value"] - b["value"]) > 1e-4 * max(float(a["posterior_std"]), 1e-12):
            found.append(f"{a['name']}: exported {a['value']:.9g} became {b['value']:.9g}")
    return found


def differing_numbers(old: Path, new: Path) -> list[str]:
    """Numbers in the printed text that differ in their first six digits; lines that state times are left out."""
    texts = [[line for line in (folder / "printed.txt").read_text().splitlines() if " s" not in line] for folder in (old, new)]
    numbers = [[float(x) for line in text for x in re.findall(r"-?\d+\.?\d*(?:e-?\d+)?", line)] for text in texts]
    if len(numbers[0]) != len(numbers[1]):
        return ["other tables are printed"]
    return [f"{a} became {b}" for a, b in zip(*numbers, strict=True) if abs(a - b) > 1e-6 * max(abs(a), 1e-9)]


if __name__ == "__main__":
    main()
