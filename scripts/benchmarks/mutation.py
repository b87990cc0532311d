"""Mutation testing with Cosmic Ray: of a random sample of single changes to the library, how many does no test notice?

    scripts/mutation [--count 100] [--seed 0] [--layers model,data,estimation,consistency,export] [--minutes 60] [--wide]

Files are drawn at random, as often as they are long, and in each of them one of the places that Cosmic Ray's operators can
change (numbers, arithmetic, comparisons, and/or, loops, exceptions). In a copy of the tree the quick tests run that bear the
changed module's name, import it or its neighbours; ``--wide`` runs, for what survives these, all tests of its folder.
What changes no result is listed in :data:`EQUIVALENT` with the reason and does not count; a change whose tests run out of
time counts as one that no test noticed.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import re
import shlex
import shutil
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

from cosmic_ray.commands.init import init
from cosmic_ray.mutating import mutate_and_test
from cosmic_ray.work_db import WorkDB, use_db
from cosmic_ray.work_item import MutationSpec

ROOT = Path(__file__).parents[2]
LAYERS = ("model", "data", "estimation", "consistency", "export")
#: Seconds that the tests of one change may take.
LONGEST, LONGEST_WIDE = 240.0, 900.0
#: Test files of one change, unless all are asked for.
MOST = 8
#: Tests that go through everything, for ``--wide``.
THOROUGH = ("tests/test_consistency_end_to_end.py", "tests/test_cli.py", "tests/test_real_ur10e.py", "tests/test_guards.py")
#: Changes of no result: file, the line before, the line after, and why.
EQUIVALENT: tuple[tuple[str, str, str, str], ...] = (
    (
        "estimators/robust.py",
        "ROUNDS, CONVERGED, CIRCLE = 50, 1e-4, 1e-2",
        "ROUNDS, CONVERGED, CIRCLE = 51, 1e-4, 1e-2",
        "one round more after fifty that did not converge",
    ),
    (
        "uncertainty/bands.py",
        "triangle(stacked) if len(stacked) > stacked.shape[1] else stacked,",
        "triangle(stacked) if len(stacked) < stacked.shape[1] else stacked,",
        "rows or their factor: the same sum of squares",
    ),
    (
        "friction_selection/reference_torque.py",
        "ROUNDS = 25",
        "ROUNDS = 26",
        "one round more after twenty-five that did not converge",
    ),
    (
        "model/structure.py",
        "reference = 10.0 * generator.standard_normal((samples, robot.n))",
        "reference = 10.0 % generator.standard_normal((samples, robot.n))",
        "any random torque",
    ),
    (
        "consistency/friction.py",
        "physics, fine = friction_constraints(model, peak), friction_constraints(model, peak, 10 * SPEEDS)",
        "physics, fine = friction_constraints(model, peak), friction_constraints(model, peak, 9 * SPEEDS)",
        "speeds between those of the grid, nine instead of ten",
    ),
    (
        "export/urdf.py",
        "noise = 64 * _EPS * abs(theta[[4, 6, 9]].sum())",
        "noise = 63 * _EPS * abs(theta[[4, 6, 9]].sum())",
        "an allowance for rounding, far above what is needed",
    ),
)


def imports(path: Path) -> set[str]:
    """Dotted names of the modules, and of the names in them, that a file imports."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{name.name}" for name in node.names)}
        elif isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
    return found


def tests_of(module: str, imported: dict[str, set[str]]) -> list[str]:
    """Test files that bear a module's name, import it, or import its neighbours: so many at most, in this order."""
    dotted, name = module.removesuffix(".py").replace("/", "."), Path(module).stem
    named = [test for test in imported if name.rstrip("s") in test]
    direct = [test for test, seen in imported.items() if dotted in seen]
    near = [test for test, seen in imported.items() if any(name.startswith(f"{dotted.rpartition('.')[0]}.") for name in seen)]
    return [*dict.fromkeys([*named, *direct, *near])][:MOST]


def wide_tests_of(module: str, imported: dict[str, set[str]]) -> list[str]:
    """Test files that import anything of the module's folder, and those that go through everything."""
    folder = str(Path(module).parent).replace("/", ".")
    near = [test for test, seen in imported.items() if any(name.startswith(folder + ".") for name in seen)]
    return [*dict.fromkeys([*near, *THOROUGH])]


def places(modules: Sequence[Path]) -> dict[str, dict[tuple[str, int, int, str], list[MutationSpec]]]:
    """All changes that Cosmic Ray knows: file → place (file, line, column, what is changed) → changes there."""
    with tempfile.TemporaryDirectory() as folder, use_db(Path(folder) / "session.sqlite", WorkDB.Mode.create) as session:
        init(modules, session, {})
        found: dict[str, dict[tuple[str, int, int, str], list[MutationSpec]]] = defaultdict(lambda: defaultdict(list))
        for item in session.work_items:
            change = item.mutations[0]
            line = change.module_path.read_text(encoding="utf-8").splitlines()[change.start_pos[0] - 1]
            if not in_code(line, change):
                continue
            kind = change.operator_name.removeprefix("core/").split("_")[0]
            file = str(change.module_path)
            found[file][(file, *change.start_pos, kind)].append(change)
    return found


def in_code(line: str, change: MutationSpec) -> bool:
    """Whether the change is one of the program: annotations are never run, and a removed decorator is another program."""
    annotation = "_BitOr_" in change.operator_name and re.search(r"\| None\b|^\s*def |-> |^\s*\w+: ", line)
    return not annotation and "TYPE_CHECKING" not in line and "RemoveDecorator" not in change.operator_name


def lines_of(diff: str) -> tuple[str, str]:
    """The line before and after a change."""
    before = [line[1:].strip() for line in diff.splitlines() if line.startswith("-") and not line.startswith("---")]
    after = [line[1:].strip() for line in diff.splitlines() if line.startswith("+") and not line.startswith("+++")]
    return " ".join(before), " ".join(after)


def outcome_of(change: MutationSpec, tests: Sequence[str], wide: bool) -> tuple[str, str]:
    """What became of a change (killed, survived, incompetent, timeout) and the changed lines."""
    some = [] if wide else ["-m", "not slow"]
    command = shlex.join([sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *some, *tests])
    result = mutate_and_test([change], command, LONGEST_WIDE if wide else LONGEST)
    outcome = result.test_outcome.value if result.test_outcome else "none"
    return "timeout" if result.output == "timeout" else outcome, result.diff or ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--skip", type=int, default=0, help="leave out so many of the sample, to go on where a run ended")
    parser.add_argument("--layers", default=",".join(LAYERS))
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--wide", action="store_true")
    options = parser.parse_args()
    dice, layers = random.Random(options.seed), options.layers.split(",")
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as place:
        for name in ("urdf_ident", "robots", "tests", "scripts", "docs", "examples"):
            shutil.copytree(ROOT / name, Path(place) / name)
        for path in [*ROOT.glob("*.md"), *ROOT.glob("*.toml"), *ROOT.glob("*.cff")]:
            shutil.copy(path, place)
        os.chdir(place)
        os.environ["PYTHONPATH"] = place
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
        modules = [path for layer in layers for path in sorted(Path("urdf_ident", layer).rglob("*.py"))]
        imported = {str(path): imports(path) for path in sorted(Path("tests").glob("test_*.py"))}
        files = dice.choices(modules, [path.read_text(encoding="utf-8").count("\n") for path in modules], k=options.count)
        files = files[options.skip :]
        found = places(sorted(set(files)))
        dice = random.Random(f"{options.seed} {options.skip}")
        picked = []
        for path in (path for path in files if found[str(path)]):
            at = dice.choice(sorted(found[str(path)]))
            picked.append((path.parts[1], at, dice.choice(found[str(path)][at])))
        print(f"{len(picked)} changes in {len(found)} of {len(modules)} files", flush=True)
        tally: Counter[tuple[str, str]] = Counter()
        for number, (layer, at, change) in enumerate(picked, options.skip + 1):
            if time.monotonic() - begin > 60 * options.minutes:
                print(f"the time is over after {number - 1}")
                break
            tests = tests_of(at[0], imported)
            outcome, diff = outcome_of(change, tests, wide=False) if tests else ("survived", "")
            if outcome == "survived" and (options.wide or not tests):
                outcome, diff = outcome_of(change, wide_tests_of(at[0], imported), wide=True)
            before, after = lines_of(diff)
            reason = next((why for file, *pair, why in EQUIVALENT if at[0].endswith(file) and pair == [before, after]), None)
            outcome = "equivalent" if outcome == "survived" and reason else outcome
            tally[layer, outcome] += 1
            print(f"{number:>4} {outcome:<11} {at[0]}:{at[1]} {change.operator_name.removeprefix('core/')}", flush=True)
            if outcome in ("survived", "equivalent", "timeout"):
                print(f"       - {before}\n       + {after}{'' if reason is None else f'   ({reason})'}", flush=True)
    lost = total = 0
    for layer in layers:
        counts = {outcome: tally[layer, outcome] for outcome in ("killed", "incompetent", "survived", "timeout", "equivalent")}
        lost, total = lost + counts["survived"] + counts["timeout"], total + sum(counts.values()) - counts["equivalent"]
        print(f"{layer:<12} " + ", ".join(f"{number} {outcome}" for outcome, number in counts.items() if number))
    print(f"survived: {lost} of {total} ({100 * lost / max(total, 1):.0f} %)")


if __name__ == "__main__":
    main()
