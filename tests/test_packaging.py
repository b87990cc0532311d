"""What the package declares: every package of it, every library that it imports, and no library that nothing uses."""

import ast
import functools
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).parents[1]
#: Libraries whose import has another name than the distribution that is declared.
DISTRIBUTION = {
    "PIL": "pillow",
    "distributed": "dask",
    "pinocchio": "pin",
    "pydrake": "drake",
    "sklearn": "scikit-learn",
    "umsgpack": "u-msgpack-python",
    "yaml": "pyyaml",
}
#: What is called rather than imported: by the scripts, by pytest, by mypy.
CALLED = {"mkdocs", "mkdocs-material", "mkdocstrings", "ruff", "mypy", "types-pyyaml", "pytest-xdist", "setuptools"}


@pytest.fixture(scope="module")
def declared() -> dict[str, Any]:
    tomllib = pytest.importorskip("tomllib", reason="Python 3.10 cannot read TOML")
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def names(requirements: list[str]) -> set[str]:
    """Distributions that requirements name, those of this package's own extras left out."""
    return {re.split(r"[\[<>=~! ]", text)[0].lower() for text in requirements} - {"urdf-ident"}


@functools.cache
def imported(folder: str) -> dict[str, Path]:
    """Distributions that a folder's modules import or look for, and a module that does."""
    modules = [*(ROOT / folder).rglob("*.py"), *(p for p in (ROOT / folder).rglob("*") if p.is_file() and python_script(p))]
    own = {path.stem for top in ("scripts", "tests") for path in (ROOT / top).rglob("*.py")} | {"urdf_ident", "tests"}
    found = {}
    for path in modules:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            top = []
            if isinstance(node, ast.Import):
                top = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                top = [str(node.module)]
            elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("find_spec"):  # its files are used
                top = [str(ast.literal_eval(node.args[0]))]
            for name in (full.split(".")[0] for full in top):
                if name not in sys.stdlib_module_names and name not in own:
                    found[DISTRIBUTION.get(name, name).lower()] = path
    return found


def python_script(path: Path) -> bool:
    """Whether a file without suffix is Python."""
    return not path.suffix and path.read_bytes()[:40].startswith(b"#!/usr/bin/env python")


def test_every_package_is_found_and_the_robots_are_mapped(declared: dict[str, Any]) -> None:
    """As setuptools resolves them, for a wheel and for an editable installation alike."""
    code = """
import setuptools, sys
from distutils.core import run_setup
found = run_setup("setup.py", stop_after="init")
found.parse_config_files()
print(*found.packages)
print(found.package_dir)
"""
    told = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    packages, folders = told.stdout.splitlines()[-2:]
    here = {".".join(path.parent.relative_to(ROOT).parts) for path in (ROOT / "urdf_ident").rglob("__init__.py")}
    assert set(packages.split()) == here | {"urdf_ident_robots"}
    assert ast.literal_eval(folders)["urdf_ident_robots"] == "robots"
    settings = declared["tool"]["setuptools"]
    for folder, package in (("robots", "urdf_ident_robots"), *(("/".join(name.split(".")), name) for name in sorted(here))):
        patterns = settings["package-data"].get(package, [])
        data = [path for path in (ROOT / folder).iterdir() if path.is_file() and path.suffix not in (".py", ".pyc")]
        assert all(any(path.match(pattern) for pattern in patterns) for path in data), package


def test_ros_and_pip_are_told_the_same(declared: dict[str, Any]) -> None:
    package = ElementTree.parse(ROOT / "package.xml").getroot()
    project = declared["project"]
    told = {name: package.findtext(name) for name in ("name", "version", "description", "license", "export/build_type")}
    assert told == {
        "name": project["name"].replace("-", "_"),
        "version": project["version"],
        "description": project["description"],
        "license": "BSD-2-Clause",
        "export/build_type": "ament_python",
    }


def test_what_is_imported_is_declared(declared: dict[str, Any]) -> None:
    project = declared["project"]
    extras = set().union(*(names(group) for name, group in project["optional-dependencies"].items() if name != "dev"))
    dev = names(project["optional-dependencies"]["dev"])
    needed = names(project["dependencies"])
    assert not {name: str(path) for name, path in imported("urdf_ident").items() if name not in needed | extras}
    for folder in ("tests", "scripts", "examples"):
        assert not {name: str(path) for name, path in imported(folder).items() if name not in needed | extras | dev}


def test_what_is_declared_is_used(declared: dict[str, Any]) -> None:
    project = declared["project"]
    library = set(imported("urdf_ident"))
    everything = library.union(*(imported(folder) for folder in ("tests", "scripts"))) | CALLED
    assert names(project["dependencies"]) <= library
    for name, group in project["optional-dependencies"].items():
        unused = names(group) - (everything if name in ("dev", "docs", "peers") else library)
        assert not unused, f"extra {name}: nothing uses {unused}"


def test_the_wheel_holds_the_robots_and_runs_from_another_folder(tmp_path: Path) -> None:
    """Built without isolation and unpacked beside the installed dependencies: the package that others would install."""
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "-q", "-w", tmp_path, ROOT]
    (tmp_path / "build.cfg").write_text(f"[build]\nbuild_base = {tmp_path / 'build'}\n")  # without what was built before
    settings = {**os.environ, "DIST_EXTRA_CONFIG": str(tmp_path / "build.cfg")}
    built = subprocess.run(list(map(str, command)), env=settings, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    (wheel,) = tmp_path.glob("*.whl")
    site = tmp_path / "site"
    zipfile.ZipFile(wheel).extractall(site)
    (metadata,) = site.glob("*.dist-info/METADATA")
    assert {"Requires-Python: >=3.10", "License: BSD-2-Clause"} <= set(metadata.read_text(encoding="utf-8").splitlines())
    index = "*.data/data/share/ament_index/resource_index/packages/urdf_ident"  # by which ROS 2 finds a package
    assert len([*site.glob(index), *site.glob("*.data/data/share/urdf_ident/package.xml")]) == 2
    for source, folder in (("urdf_ident", "urdf_ident"), ("robots", "urdf_ident_robots")):
        own = (path for path in (ROOT / source).rglob("*.*") if "__pycache__" not in path.parts)
        files = {path.relative_to(ROOT / source) for path in own}
        assert {path.relative_to(site / folder) for path in (site / folder).rglob("*.*")} == files
    code = (
        f"import sys; sys.path.insert(0, {str(site)!r}); import urdf_ident; print(urdf_ident.__file__); "
        "print(urdf_ident.robot_path('ur10e')); from urdf_ident.cli import main; main()"
    )
    arguments = ["check", str(site / "urdf_ident_robots" / "ur10e.urdf")]
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    assert all(line.startswith(str(site)) for line in done.stdout.splitlines()[:2]), done.stdout
