"""One page per paper: its claims and figures, ours beside them, and the commands that repeat it on another robot.

    scripts/papers/all [--only a b c d e] [-o docs/papers] [--pictures FOLDER]    (CPU seconds of each are printed)

``python scripts/papers/d_tx40.py`` and the others print their page alone.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import a_table2
import b_circle
import c_elastic_joints
import d_tx40
import e_three_loop
from paper_page import page

PAGES = {
    "a": ("szabo_2021", a_table2.figures),
    "b": ("wu_2012", b_circle.figures),
    "c": ("zollo_2015", c_elastic_joints.figures),
    "d": ("gautier_2013", d_tx40.figures),
    "e": ("liu_2023", e_three_loop.figures),
}


def main() -> None:
    """Writes the pages."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--out", type=Path, default=Path(__file__).parents[2] / "docs" / "papers")
    parser.add_argument("--pictures", type=Path, help="write the figures as SVG into this folder, beside the pages")
    parser.add_argument("--only", nargs="+", choices=list(PAGES), default=list(PAGES))
    given = parser.parse_args()
    out = given.pictures or given.out
    out.mkdir(parents=True, exist_ok=True)
    total = 0.0
    for name in given.only:
        begun = time.process_time()
        file, figures = PAGES[name]
        (out / f"{file}.md").write_text(page(file, figures(given.pictures)), encoding="utf-8")
        total += time.process_time() - begun
        print(f"{out / file}.md: {time.process_time() - begun:.0f} s", flush=True)
    print(f"{total:.0f} s of CPU")


if __name__ == "__main__":
    main()
