"""The rules of the house that a machine can check: which room may import which, and what a docstring must say."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "urdf_ident"
FOUNDATION = ("errors", "units", "files", "linalg", "provenance")
ROOMS = (
    "model", "motion", "data", "simulation", "estimation", "consistency", "excitation", "compensation", "export",
    "project", "validation", "result", "pipeline", "check", "experiment",
)  # fmt: skip
SHELL = ("viz", "report", "demo", "cli", "__init__")
MODULES = sorted(PACKAGE.rglob("*.py"))


def room_of(path: Path) -> str:
    """The room a module is in: the first part of its path below the package."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_rooms(path: Path) -> set[str]:
    """Rooms that a module imports, wherever in the file (under TYPE_CHECKING counts too)."""
    inside = ("urdf_ident", *path.relative_to(PACKAGE).with_suffix("").parts)
    rooms = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level:
            stem = ".".join(inside[: len(inside) - node.level])
            names = [f"{stem}.{node.module}"] if node.module else [f"{stem}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module]
        rooms |= {name.split(".")[1] for name in names if name.startswith("urdf_ident.")}
    return rooms


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_rooms_import_only_earlier_rooms(path: Path) -> None:
    room = room_of(path)
    order = {name: k for k, name in enumerate([*FOUNDATION, *ROOMS, *SHELL])}
    assert room in order, f"{room} is no room of the design: give it a place in the order"
    foundation = set(FOUNDATION)
    for imported in imported_rooms(path) - {room}:
        if room in foundation:
            assert imported in foundation, f"{path}: the foundation imports {imported}"
        elif room != "__init__":
            assert order[imported] < order[room], f"{path} imports the later room {imported}"


def public_functions() -> list[tuple[str, ast.FunctionDef, bool]]:
    found = []
    for path in MODULES:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in tree.body:
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                found.append((f"{path.relative_to(PACKAGE)}:{node.name}", node, False))
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                for item in node.body:
                    if isinstance(item, ast.FunctionDef) and not item.name.startswith("_"):
                        found.append((f"{path.relative_to(PACKAGE)}:{node.name}.{item.name}", item, True))
    return found


def is_documented_elsewhere(node: ast.FunctionDef) -> bool:
    """Properties say it in one line, commands of the command line in their help, overrides in their base."""
    decorators = {ast.unparse(decorator) for decorator in node.decorator_list}
    return bool(decorators & {"property", "cached_property"}) or any("command" in name for name in decorators)


OVERRIDES = {"columns", "units"}  # of Term: documented once, in the base class


@pytest.mark.parametrize(
    ("name", "node", "method"), public_functions(), ids=lambda value: value if isinstance(value, str) else ""
)
def test_public_functions_are_documented(name: str, node: ast.FunctionDef, method: bool) -> None:
    doc = ast.get_docstring(node) or ""
    if method and node.name in OVERRIDES and not doc:
        return
    assert doc, f"{name} has no docstring"
    if is_documented_elsewhere(node):
        return
    arguments = [a.arg for a in [*node.args.args, *node.args.kwonlyargs] if a.arg not in ("self", "cls")]
    described = doc.split("Args:")[1] if "Args:" in doc else ""
    for argument in arguments:
        assert re.search(rf"\b{argument}\b", described), f"{name}: argument '{argument}' is not documented"
    array = {a.arg for a in [*node.args.args, *node.args.kwonlyargs] if a.annotation and "Array" in ast.unparse(a.annotation)}
    sections = described.split("Returns:")[0].split("Yields:")[0]
    for argument in array:
        entry = re.search(rf"\b{argument}\b[^:]*:(.*?)(?=\n\s{{0,4}}[\w, ]+:|\Z)", sections, re.S)
        words = r"[Ss]hape|as `?`?\w|[Ss]ame|\(\d|\(N|\(n|\(p|array|vector|one per|[Aa]ny"
        assert entry and re.search(words, entry[1]), f"{name}: array '{argument}' has no shape"


def test_no_print_assert_or_exit_in_the_library() -> None:
    for path in MODULES:
        if room_of(path) in ("cli",):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            assert not isinstance(node, ast.Assert), f"assert in {path}"
            if isinstance(node, ast.Call):
                assert ast.unparse(node.func) not in ("print", "sys.exit", "exit"), f"{ast.unparse(node)} in {path}"


def test_library_loads_without_heavy_packages() -> None:
    code = (
        "import sys, urdf_ident.cli; "
        "heavy = {'cvxpy', 'meshcat', 'matplotlib', 'numba', 'sklearn', 'scipy', 'pinocchio', 'numpy'} & set(sys.modules); "
        "sys.exit(', '.join(heavy) or 0)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 0, f"the command line imports {result.stderr} before it needs to"


def test_every_module_is_small() -> None:
    """A module much over 400 lines is two ideas (design §2)."""
    long = {str(p.relative_to(PACKAGE)): n for p in MODULES if (n := len(p.read_text(encoding="utf-8").splitlines())) > 420}
    assert not long, f"split {long}"
