"""The rules of the house that a machine can check: which layer may import which, and what a docstring must say."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import urdf_ident

PACKAGE = Path(__file__).parents[1] / "urdf_ident"
FOUNDATION = ("quoting", "errors", "units", "files", "grouping", "linalg", "provenance", "progress", "parallel")
LAYERS = (
    "samples",
    "settings",
    "judgements",
    "friction",
    "model",
    "motion",
    "logs",
    "signals",
    "torque_constants",
    "simulation",
    "statistics",
    "estimation",
    "consistency",
    "faults",
    "excitation",
    "compensation",
    "export",
    "project",
    "result",
    "comparison",
    "pipeline",
)
#: Layers inside a layer, each of which may use those before it; "" is what lies in the outer layer itself.
INNER = {"estimation": ("", "friction_selection", "uncertainty", "estimators")}
SHELL = ("viz", "report", "cli", "__main__", "__init__")
MODULES = sorted(PACKAGE.rglob("*.py"))


@cache
def tree(path: Path) -> ast.Module:
    """The syntax tree of a module."""
    return ast.parse(path.read_text(encoding="utf-8"))


def layer_of(path: Path) -> str:
    """The layer a module is in: the first part of its path below the package."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_layers(path: Path) -> set[str]:
    return {name.split(".")[1] for name in imported_modules(path)}


@cache
def imported_modules(path: Path) -> set[str]:
    """Modules of the package that a module imports, wherever in the file (under TYPE_CHECKING counts too)."""
    inside = ("urdf_ident", *path.relative_to(PACKAGE).with_suffix("").parts)
    modules = set()
    for node in ast.walk(tree(path)):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level:
            stem = ".".join(inside[: len(inside) - node.level])
            names = [f"{stem}.{node.module}"] if node.module else [f"{stem}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module]
        modules |= {name for name in names if name.startswith("urdf_ident.")}
    return modules


def test_layers_import_only_earlier_layers() -> None:
    order = {name: k for k, name in enumerate([*FOUNDATION, *LAYERS, *SHELL])}
    unknown = {layer_of(path) for path in MODULES} - set(order)
    assert not unknown, f"no layers of the design: give {unknown} a place in the order"
    pairs = [(path, layer_of(path), imported) for path in MODULES for imported in imported_layers(path) - {layer_of(path)}]
    late = [
        f"{path} imports {imported}"
        for path, layer, imported in pairs
        if (imported not in FOUNDATION if layer in FOUNDATION else layer != "__init__" and order[imported] >= order[layer])
    ]
    assert not late, late


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Imports inside functions and under TYPE_CHECKING count: a circle is a circle wherever it is written."""
    named = {".".join(("urdf_ident", *path.relative_to(PACKAGE).with_suffix("").parts)): path for path in MODULES}
    known = {name.removesuffix(".__init__"): path for name, path in named.items()}
    graph = {name: {other for other in imported_modules(path) if other in known} - {name} for name, path in known.items()}
    try:
        order = tuple(TopologicalSorter(graph).static_order())
    except CycleError as error:
        pytest.fail(" imports ".join(error.args[1]))
    assert set(order) == set(known)


def test_only_what_builds_or_shows_elastic_joints_knows_their_model() -> None:
    named = {str(path.relative_to(PACKAGE)) for path in MODULES if "ElasticModel" in path.read_text(encoding="utf-8")}
    others = {
        name for name in named if not name.startswith(("model/", "simulation/elastic/")) and name != "estimation/elastic.py"
    }
    assert others == {
        "__init__.py",
        "project.py",
        "estimation/estimators/closed_loop.py",
        "result/dynamics.py",
        "result/identification.py",
    }


@pytest.mark.parametrize("layer", INNER)
def test_inner_layers_import_only_earlier_ones(layer: str) -> None:
    order = {name: k for k, name in enumerate(INNER[layer])}
    for path in (PACKAGE / layer).rglob("*.py"):
        inner = path.relative_to(PACKAGE / layer).parts[0] if path.parent != PACKAGE / layer else ""
        for imported in imported_modules(path):
            parts = imported.split(".")
            if parts[1] == layer and len(parts) > 2:
                other = parts[2] if parts[2] in order else ""
                assert order[other] <= order[inner], f"{path} imports {imported} of the later layer {other}"


def public_functions() -> list[tuple[str, ast.FunctionDef, ast.ClassDef | None]]:
    """Public functions, and public methods of public classes with their class."""
    found: list[tuple[str, ast.FunctionDef, ast.ClassDef | None]] = []
    for path in MODULES:
        for node in tree(path).body:
            where = str(path.relative_to(PACKAGE))
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                found.append((f"{where}:{node.name}", node, None))
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                methods = [m for m in node.body if isinstance(m, ast.FunctionDef) and not m.name.startswith("_")]
                found += [(f"{where}:{node.name}.{method.name}", method, node) for method in methods]
    return found


FUNCTIONS = public_functions()
#: Methods that some class documents in full: an override of the same name need not say it again.
DOCUMENTED = {
    node.name for _, node, owner in FUNCTIONS if owner and re.search(r"[Ss]hape|Args:", ast.get_docstring(node) or "")
}
SHAPE = r"[Ss]hape|as `?`?\w|[Ss]ame|\(\d|\(N|\(n|\(p|array|vector|one per|[Aa]ny"


def is_documented_elsewhere(node: ast.FunctionDef, owner: ast.ClassDef | None) -> bool:
    """Properties say it in one line, commands in their help, overrides in their base, overloads in the implementation."""
    decorators = {ast.unparse(decorator) for decorator in node.decorator_list}
    if decorators & {"property", "cached_property", "overload"} or any("command" in name for name in decorators):
        return True
    return owner is not None and node.name in DOCUMENTED


PUBLIC = set(re.findall(r'"(\w+)": "\.', (PACKAGE / "__init__.py").read_text(encoding="utf-8"))) | set(urdf_ident.__all__)
CLASSES = {node.name for path in MODULES for node in ast.walk(tree(path)) if isinstance(node, ast.ClassDef)}


def is_public(node: ast.FunctionDef, owner: ast.ClassDef | None) -> bool:
    """Whether users call it: what ``urdf_ident`` exports, and the methods of its classes."""
    return (owner or node).name in PUBLIC


def says_its_type(argument: ast.arg) -> bool:
    """Whether the annotation alone says what the argument is: a class of this package, several of them, or a path."""
    named = set(re.findall(r"\b[A-Z]\w+", ast.unparse(argument.annotation))) if argument.annotation else set()
    known = CLASSES | {"Path"}
    return bool(named & known) and named <= known | {"Sequence", "Iterable", "Mapping"}


def needs_entry(argument: ast.arg) -> bool:
    """Whether name and type cannot say it: arrays have a shape, and floats a unit."""
    return argument.annotation is not None and re.search(r"Array|float", ast.unparse(argument.annotation)) is not None


def repeats(text: str, annotation: ast.expr | None, *names: str) -> bool:
    """Whether an entry says no more than a type or a name: "The robot." of a Robot."""
    found = re.fullmatch(r"(?:The|Its|An?) ([\w ]+)\.", text.strip())
    types = re.findall(r"\b[A-Z]\w+", ast.unparse(annotation)) if annotation else []
    return found is not None and found[1].lower() in {re.sub(r"(?<!^)(?=[A-Z])", " ", name).lower() for name in types} | {
        *names
    }


def repeats_its_type(argument: ast.arg, text: str) -> bool:
    return says_its_type(argument) and repeats(text, argument.annotation, argument.arg.replace("_", " "))


def problems(name: str, node: ast.FunctionDef, owner: ast.ClassDef | None) -> Iterator[str]:
    """What the docstring of a function lacks or repeats."""
    doc = ast.get_docstring(node) or ""
    if is_documented_elsewhere(node, owner):
        return
    if not doc:
        yield f"{name} has no docstring"
    arguments = [a for a in [*node.args.args, *node.args.kwonlyargs] if a.arg not in ("self", "cls")]
    sections = (doc.split("Args:")[1] if "Args:" in doc else "").split("Returns:")[0].split("Yields:")[0]
    public = is_public(node, owner)
    described = sections if public or "Args:" in doc else doc  # a short one says it in its sentence: "…; x of shape (p,)."
    for argument in arguments:
        if (public or needs_entry(argument)) and not re.search(rf"\b{argument.arg}\b", described):
            yield f"{name}: argument '{argument.arg}' is not documented"
        entry = re.search(rf"^    {argument.arg}: (.*)$", sections, re.M)
        if entry is not None and not public and repeats_its_type(argument, entry[1]):
            yield f"{name}: the entry of '{argument.arg}' repeats its type"
    returned = re.search(r"^(?:Returns|Yields):\n    (.*)$", doc, re.M)
    if returned is not None and not public and repeats(returned[1], node.returns):
        yield f"{name}: what it returns repeats its type"
    for argument in (a.arg for a in arguments if a.annotation and "Array" in ast.unparse(a.annotation)):
        entry = re.search(rf"^[\w, ]*\b{argument}\b[\w, ]*:(.*?)(?=^\s{{0,4}}[\w, ]+:|\Z)", sections, re.S | re.M)
        in_sentence = not public and re.search(rf"; {argument}( of shape|: .*[Ss]hape)", doc) is not None
        if not in_sentence and (entry is None or not re.search(SHAPE, entry[1])):
            yield f"{name}: array '{argument}' has no entry, or one without a shape"


def test_public_functions_are_documented() -> None:
    """What users call says everything; elsewhere an entry that repeats name and type is left out."""
    found = [problem for function in FUNCTIONS for problem in problems(*function)]
    assert not found, "\n".join(found)


def test_no_print_assert_or_exit_in_the_library() -> None:
    for path in MODULES:
        if layer_of(path) in ("cli",):
            continue
        for node in ast.walk(tree(path)):
            assert not isinstance(node, ast.Assert), f"assert in {path}"
            if isinstance(node, ast.Call):
                assert ast.unparse(node.func) not in ("print", "sys.exit", "exit"), f"{ast.unparse(node)} in {path}"


@pytest.mark.parametrize(
    ("modules", "unwanted"),
    [
        ("urdf_ident.cli", "cvxpy meshcat matplotlib sklearn scipy pinocchio numpy"),
        # a tenth of the modules serve two encoders, payloads, pictures or estimators that simulate
        (
            "urdf_ident.pipeline.identify, urdf_ident.result.write",
            "urdf_ident.simulation.simulate urdf_ident.pipeline.compensate urdf_ident.pipeline.payload urdf_ident.result.plots",
        ),
    ],
)
def test_nothing_is_imported_before_it_is_needed(modules: str, unwanted: str) -> None:
    code = f"import sys, {modules}; sys.exit(', '.join({set(unwanted.split())!r} & set(sys.modules)) or 0)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 0, f"{modules} imports {result.stderr} before it needs to"


def test_a_public_class_name_has_one_meaning() -> None:
    homes: dict[str, list[str]] = {}
    for path in MODULES:
        for node in tree(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes.setdefault(node.name, []).append(path.relative_to(PACKAGE).as_posix())
    twice = {name: places for name, places in homes.items() if len(places) > 1}
    assert not twice, f"name one of each differently: {twice}"
