"""Single-line changes of guards on what is read, judged and written: does a test notice each of them?

python scripts/benchmarks/guards.py [--only TEXT] [--tests tests/test_guards.py ...]

Every change is made in a copy of the tree, the tests run there, and the change is taken back. Reported: killed (a test fails),
SURVIVED (none does), absent (the line is no longer there: correct this list). One change a line of :data:`CHANGES`.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
_DOF = "np.sqrt(chdtri(between.dof, 0.5) / between.dof)"
_RATIO = f"float(np.median(ratio[seen]) / {_DOF})"
#: File, its text, and what stands there instead.
CHANGES = (
    ("export/split.py", "plausible and margins(", "True and margins("),
    ("export/split.py", "_ROUNDING = 1e-13", "_ROUNDING = 0.0"),
    ("export/split.py", "_ROUNDING = 1e-13", "_ROUNDING = 1e-9"),
    ("estimation/uncertainty/covariance.py", "max(1.0, unexplained) * matrix", "unexplained * matrix"),
    ("estimation/uncertainty/covariance.py", f"common = max(1.0, {_RATIO})", f"common = {_RATIO}"),
    ("signals/quality/values.py", "_away(x, 7, _APART, 0.1, least)", "_away(x, 7, 0.0, 0.1, least)"),
    ("signals/quality/values.py", "_away(x, 5, share, 0.01, least)", "_away(x, 5, 0.0, 0.01, least)"),
    ("faults/case.py", "NEGATIVE, NEGATIVE_ERRORS = -0.05, 4.0", "NEGATIVE, NEGATIVE_ERRORS = -0.05, 2.0"),
    ("faults/case.py", "NEGATIVE, NEGATIVE_ERRORS = -0.05, 4.0", "NEGATIVE, NEGATIVE_ERRORS = 0.0, 4.0"),
    ("faults/case.py", "np.sqrt(len(part) - 1) * part.std", "part.std"),
    ("faults/wording.py", "((sound and clear) or impossible)", "(sound and clear)"),
    ("faults/wording.py", "((sound and clear) or impossible)", "impossible"),
    ("signals/clock.py", "max(10 * period, 0.01", "max(100 * period, 0.01"),
    ("signals/clock.py", "max(10 * period, 0.01", "max(0.1 * period, 0.001"),
    ("signals/resample.py", "np.diff(time) > 0.2 / rate", "np.diff(time) > 0.0 / rate"),
    ("signals/resample.py", "np.diff(time) > 0.2 / rate", "np.diff(time) > 0.02 / rate"),
    ("signals/quality/checks.py", "(kind & implausible).any() and fits:", "(kind & implausible).any():"),
    ("result/evidence/scores.py", "MOVING = 0.02", "MOVING = 0.2"),
    ("result/evidence/scores.py", "MOVING = 0.02", "MOVING = 0.0"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="")
    parser.add_argument("--tests", nargs="+", default=["tests/test_guards.py"])
    options = parser.parse_args()
    survived = 0
    with tempfile.TemporaryDirectory() as place:
        for name in ("urdf_ident", "robots", "tests", "scripts"):
            shutil.copytree(ROOT / name, Path(place) / name)
        shutil.copy(ROOT / "pyproject.toml", place)
        environment = {**os.environ, "PYTHONPATH": place, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        for file, old, new in CHANGES:
            if options.only not in file:
                continue
            path = Path(place) / "urdf_ident" / file
            text = path.read_text(encoding="utf-8")
            outcome = "absent"
            if old in text:
                path.write_text(text.replace(old, new, 1), encoding="utf-8")
                command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *options.tests]
                code = subprocess.run(command, cwd=place, env=environment, capture_output=True, check=False).returncode
                outcome = {0: "SURVIVED", 1: "killed"}.get(code, f"broken (pytest exit {code})")
                path.write_text(text, encoding="utf-8")
            survived += outcome != "killed"
            print(f"{outcome:<10} {file}: {new[:80]}", flush=True)
    sys.exit(1 if survived else 0)


if __name__ == "__main__":
    main()
