"""Interpreter of programs in numba; one short compilation serves every robot.

numba pays off only for large jobs: importing it and loading cached code takes most of a second, compiling another one, and
a sample of a six-axis arm costs about 1 µs less than in NumPy. Both give bitwise equal results.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from ...errors import ModelError, check_known
from ...linalg import Array
from .program import Program

#: Scalar operations above which numba pays off, with cached code from an earlier run and without:
#: 1e6 and 2e6 samples of a six-axis arm.
WORTH_LOADING, WORTH_COMPILING = 6e8, 1.2e9
#: Environment variable that selects the engine: auto, numba, numpy or pinocchio.
VARIABLE = "URDF_IDENT_ENGINE"


def wanted_engine() -> str:
    """Returns the engine selected by the environment.

    Returns:
        "auto", "numba", "numpy" or "pinocchio".

    Raises:
        ModelError: Unknown name.
    """
    name = os.environ.get(VARIABLE, "auto")
    check_known("engine", name, ("auto", "numba", "numpy", "pinocchio"), ModelError, VARIABLE)
    return name


def runner(operations: float) -> tuple[Callable[[Program, Array], None], str]:
    """Chooses the function that runs programs.

    Args:
        operations: Number of scalar operations to run.

    Returns:
        A function of a program and its workspace; and its name, with the reason if numba should have been used but was not.
    """
    wanted = wanted_engine()
    if wanted == "numpy" or (wanted == "auto" and operations < WORTH_LOADING and _compiled.cache_info().currsize == 0):
        return Program.run, "numpy"
    compiled, reason = _compiled()
    if compiled is None:
        return Program.run, f"numpy ({reason})"
    if wanted == "auto" and operations < WORTH_COMPILING and not (_kept(compiled) or compiled.signatures):
        return Program.run, "numpy"
    words = f"numba ({reason})" if reason else "numba"
    return (lambda program, work: compiled(program.code, program.numbers, work)), words


@lru_cache(maxsize=1)
def _compiled() -> tuple[Any, str]:
    """Returns the compiled interpreter or None, and a description of any problem."""
    try:
        from numba import njit
    except ImportError as error:
        return None, f"numba cannot be used: {error}"
    try:
        return njit(cache=True)(_interpret), ""
    except RuntimeError:  # no writable cache folder
        return njit(_interpret), "its code cannot be kept for the next run: NUMBA_CACHE_DIR names a folder to write to"


def _kept(compiled: Any) -> bool:
    """Whether an earlier run has cached its code."""
    from pathlib import Path

    folder = compiled.stats.cache_path
    return folder is not None and any(Path(folder).glob(f"{__name__.rsplit('.', 1)[-1]}.{_interpret.__name__}-*.nbc"))


def _interpret(code: Array, numbers: Array, work: Array) -> None:
    """Runs a program on a workspace.

    Args:
        code: Operations, shape (m, 5), as in :class:`.Program`.
        numbers: Their constants, shape (m,), in the units of the program.
        work: Workspace, shape (rows, N), in the units of the program; changed in place.
    """
    for i in range(code.shape[0]):
        kind, k = code[i, 0], numbers[i]
        out, x, y, z = work[code[i, 1]], work[code[i, 2]], work[code[i, 3]], work[code[i, 4]]
        if kind == 0:
            for t in range(out.shape[0]):
                out[t] = x[t] + y[t]
        elif kind == 1:
            for t in range(out.shape[0]):
                out[t] = x[t] - y[t]
        elif kind == 2:
            for t in range(out.shape[0]):
                out[t] = x[t] * y[t]
        elif kind == 3:
            for t in range(out.shape[0]):
                out[t] = x[t] * k
        elif kind == 4:
            for t in range(out.shape[0]):
                out[t] = z[t] + x[t] * y[t]
        elif kind == 5:
            for t in range(out.shape[0]):
                out[t] = z[t] - x[t] * y[t]
        elif kind == 6:
            for t in range(out.shape[0]):
                out[t] = z[t] + x[t] * k
        else:
            for t in range(out.shape[0]):
                out[t] = k
