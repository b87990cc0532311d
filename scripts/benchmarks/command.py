"""One command of the command line in a process of its own: what it takes, for benchmarks."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Taken:
    """What a command took.

    Attributes:
        wall, seconds: Wall and processor seconds, workers included [s].
        megabytes: Memory of the largest process that this one has ever started [MB].
        code: Exit code; −1 where it was stopped.
        said: Its errors.
    """

    wall: float
    seconds: float
    megabytes: float
    code: int
    said: str


def run_command(words: Sequence[str], budget: float | None = None) -> Taken:
    """Runs ``urdf-ident`` on one thread, its modules compiled as those of an installed package are.

    It is stopped after ``budget`` wall seconds.
    """
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    environment |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    program = [sys.executable, "-c", "from urdf_ident.cli import main; main()"]
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    try:
        done = subprocess.run(
            [*program, *words],
            capture_output=True,
            text=True,
            check=False,
            timeout=budget,
            env=environment,
            stdin=subprocess.DEVNULL,
        )
        code, said = done.returncode, done.stderr
    except subprocess.TimeoutExpired:
        code, said = -1, "stopped: over budget"
    wall, after = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Taken(wall, seconds, after.ru_maxrss / 1024, code, said)
