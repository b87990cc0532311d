"""SECURITY.md is true: each promise names a test that exists, and what reaches out of the process is what it lists."""

import ast
import os
import re
from pathlib import Path

import numpy as np
import pytest

from urdf_ident.errors import LogError
from urdf_ident.logs.formats.variables import open_numpy

ROOT = Path(__file__).parents[1]
#: Modules with which a program runs code, starts programs, or uses the network.
REACHING = {
    *("pickle", "cloudpickle", "dill", "shelve", "marshal", "joblib", "dask", "distributed", "multiprocessing"),
    *("subprocess", "pty", "runpy", "code", "webbrowser", "ctypes"),
    *("socket", "socketserver", "ssl", "http", "urllib.request", "ftplib", "smtplib", "xmlrpc", "requests", "httpx", "aiohttp"),
    *("fsspec", "tornado", "zmq", "meshcat.servers", "websockets"),
}
#: What SECURITY.md says of them.
NAMED = {
    "logs/remote.py": {"fsspec", "aiohttp"},
    "parallel.py": {"pickle", "joblib", "distributed", "socket"},
    "viz/player.py": {"http", "webbrowser"},
}
RUNNING = {"eval", "exec", "compile", "__import__", "system", "popen", "execv", "execvp", "spawnv", "posix_spawn"}


def test_every_promise_names_a_test_that_exists() -> None:
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([^|]+) \| (`tests/.*) \|$", text, re.M)
    assert len(rows) >= 15
    for promise, tests in rows:
        for file, name in re.findall(r"`(tests/\w+\.py)::(\w+)`", tests):
            functions = {
                node.name for node in ast.parse((ROOT / file).read_text(encoding="utf-8")).body if hasattr(node, "name")
            }
            assert name in functions, promise
    assert text.count("::") == sum(tests.count("::") for _, tests in rows)


def test_the_modules_that_reach_out_are_those_that_are_named() -> None:
    found: dict[str, set[str]] = {}
    for path in sorted((ROOT / "urdf_ident").rglob("*.py")):
        module = path.relative_to(ROOT / "urdf_ident").as_posix()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            elif isinstance(node, ast.Call):
                called = node.func
                builtin = isinstance(called, ast.Name) and called.id in RUNNING
                of_os = isinstance(called, ast.Attribute) and ast.unparse(called.value) == "os" and called.attr in RUNNING
                assert not builtin, f"{module}: {ast.unparse(node)}"
                assert not of_os, f"{module}: {ast.unparse(node)}"
            for name in names:
                found.setdefault(module, set()).update(word for word in REACHING if f"{name}.".startswith(f"{word}."))
    assert {module: words for module, words in found.items() if words} == NAMED


def test_pickled_objects_in_a_log_are_not_loaded(tmp_path: Path) -> None:
    class Command:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return os.mkdir, (str(tmp_path / "run"),)

    objects = np.array([Command()] * 3, dtype=object)
    np.save(tmp_path / "log.npy", objects, allow_pickle=True)
    np.savez(tmp_path / "log.npz", q=objects, t=np.arange(3.0))
    with pytest.raises(LogError):
        open_numpy(tmp_path / "log.npy")
    assert any("never loaded" in note for note in open_numpy(tmp_path / "log.npz").notes)
    assert not (tmp_path / "run").exists()
