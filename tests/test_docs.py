"""The documentation: every block of code runs, project files are valid, links lead on."""

import ast
import importlib
import json
import os
import re
import runpy
import shlex
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from typer.main import get_command

import urdf_ident as ui
from urdf_ident.cli import app
from urdf_ident.cli.application import run
from urdf_ident.project import parse_project

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
BLOCK = re.compile(r"^(<!-- not run: [^\n]*-->\n)?```(python|bash|yaml)\n(.*?)^```", re.DOTALL | re.MULTILINE)
FILE = re.compile(r"# (\S+\.yaml)\n")
#: Pages whose blocks run one after the other in one folder; the later ones use what the tutorial made.
RUN = ("docs/tutorial.md", "docs/howto.md", "docs/use.md")
NOTEBOOK = ROOT / "examples" / "look_at_a_result.ipynb"


def blocks(page: str) -> list[tuple[bool, str, str]]:
    """Whether to run it, language and text of the blocks of code of a page."""
    found = BLOCK.findall((ROOT / page).read_text(encoding="utf-8"))
    return [(not mark, language, text) for mark, language, text in found]


def commands(text: str) -> list[list[str]]:
    """The commands of a block, as lists of words without the program's name."""
    found = [shlex.split(line, comments=True) for line in text.replace("\\\n", " ").splitlines()]
    return [words[1:] for words in found if words and words[0] == "urdf-ident"]


def run_page(page: str, names: dict[str, Any]) -> None:
    """Runs the blocks of a page in the current folder; project files are written under the name in their first line.

    Only the first page draws its reports: they take as long as the identifications. Motions are optimised for a moment.
    """
    for wanted, language, text in blocks(page):
        if not wanted:
            continue
        if language == "python":
            exec(compile(text, page, "exec"), names)
        if language == "yaml" and (name := FILE.match(text)):
            Path(name[1]).write_text(text.replace("budget: 2", "budget: 0.2"), encoding="utf-8")
        for words in commands(text) if language == "bash" else ():
            drawn = page == RUN[0] or words[0] not in ("identify", "validate")
            assert run(words if drawn else [*words, "--no-report"]) == 0, (page, words)


@pytest.mark.slow
def test_every_block_of_the_pages_and_of_the_notebook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "docs"}
    for page in RUN:
        run_page(page, names)
    for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            assert cell["outputs"], "the notebook is kept as it was executed"
            exec(compile("".join(cell["source"]), NOTEBOOK.name, "exec"), names)
    assert len(os.listdir()) > 10


@pytest.mark.parametrize("page", [*RUN, "docs/logs.md", "README.md"])
def test_commands_and_project_files_of_a_page_are_valid(page: str) -> None:
    group, found = get_command(app), blocks(page)
    assert found
    for _, language, text in found:
        if language == "python":
            compile(text, page, "exec")
        if language == "yaml" and "world" not in text.split("\n")[0]:
            parse_project(yaml.safe_load(text))
        for words in commands(text) if language == "bash" else ():
            command = group.commands[words[0]]  # type: ignore[attr-defined]
            command.make_context(words[0], list(words[1:]), resilient_parsing=False)


def test_every_benchmark_is_in_the_index() -> None:
    listed = re.findall(r"`(\w+)`", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split("## Benchmarks")[1])
    missing = {path.stem for path in (ROOT / "scripts" / "benchmarks").glob("*.py")} - set(listed)
    assert not missing, f"add a line for {missing} to CONTRIBUTING.md, with its goal"


def test_every_page_is_in_the_site() -> None:
    site = (ROOT / "scripts" / "docs" / "mkdocs.yml").read_text(encoding="utf-8")
    listed = set(re.findall(r": (\w+\.md)$", site, re.MULTILINE))
    assert listed == {path.name for path in DOCS.glob("*.md")}


def test_every_public_name_is_in_the_api_reference() -> None:
    """The site shows the docstrings of these names; each is named by its home, as a module may have its name."""
    listed = re.findall(r"^::: urdf_ident\.([\w.]+)$", (DOCS / "api.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(path.split(".")[-1] for path in listed) == [name for name in ui.__all__ if name != "__version__"]
    for path in listed:
        home, _, name = path.rpartition(".")
        shown = getattr(importlib.import_module(f"urdf_ident.{home}".rstrip(".")), name)
        assert shown is getattr(ui, name)
        assert shown.__doc__


# ---- The page of project-file keys is what the classes say today ----

SCRIPT = Path(__file__).parents[1] / "scripts" / "docs" / "project_file.py"


def test_the_page_is_up_to_date() -> None:
    module = runpy.run_path(str(SCRIPT))
    assert module["PAGE"].read_text(encoding="utf-8") == module["page"](), "run scripts/docs/project_file.py"


def test_every_key_says_what_it_is() -> None:
    rows = [line for line in runpy.run_path(str(SCRIPT))["page"]().splitlines() if line.startswith("| `")]
    assert len(rows) > 50
    assert not [row for row in rows if row.endswith("|  |")]


# ---- The pages of the five papers, which ``scripts/papers/all`` writes: every claim has figures and an outcome ----

PAGES = sorted((Path(__file__).parents[1] / "docs" / "papers").glob("*.md"))


def test_there_is_one_page_a_paper() -> None:
    assert [page.stem.rsplit("_", 1)[0] for page in PAGES] == ["gautier", "liu", "szabo", "wu", "zollo"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_claim_ends_in_an_outcome(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert "$" not in text, "a figure is missing"
    claims = text.partition("## Claims")[2].partition("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in claims.splitlines() if line.startswith("| ")][1:]
    assert len(rows) >= 6
    for claim, _, here, outcome in rows:
        assert outcome.startswith(("reproduced", "better", "not reproducible, ")), claim
        assert any(letter.isdigit() for letter in here) or "not reproducible" in outcome, claim
    assert "urdf-ident" in text.partition("## On your own robot")[2]


# ---- The examples run as they stand, from another folder, and write what they say ----

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("0*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_use_the_public_api_only(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            assert not (node.module or "").startswith("urdf_ident"), f"{path.name} imports from {node.module}"


@pytest.mark.slow
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_run(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(path), str(tmp_path)])
    runpy.run_path(str(path), run_name="__main__")  # in this process, which saves the imports
    for line in capsys.readouterr().out.splitlines():
        if line.startswith("wrote "):
            assert Path(line.removeprefix("wrote ")).stat().st_size > 100


# ---- The page on how one number comes about: every block runs, and the chain of functions gives the number of `identify` ----

PAGE = (Path(__file__).parents[1] / "docs" / "one_number.md").read_text(encoding="utf-8")


def test_the_chain_gives_the_number_of_identify(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for block in re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE):
        exec(compile(block, "one_number.md", "exec"), names)
    truth = ui.Robot.from_urdf(ui.robot_path("szabo_3r")).description.links["link_3"].theta[0]
    given = names["robot"].description.links["link_3"].theta[0]
    written = ui.Robot.from_urdf("identified.urdf").description.links["link_3"].theta[0]
    assert given == pytest.approx(1.2 * truth)
    assert names["number"] == pytest.approx(written, rel=0.02)
    assert abs(names["number"] - truth) < 0.5 * abs(given - truth)
    assert names["combinations"]
    assert "m_link_3" in names["columns"]
    for j, group in enumerate(names["model"].groups):
        torque, measured = names["rows"][j] @ names["theta"][group.columns], names["segment"].tau[names["samples"], j]
        assert np.std(torque - measured) < 0.2 * np.std(measured)


@pytest.mark.parametrize("name", re.findall(r"`((?:[a-z_]+\.)+[a-z_]+)`", PAGE))
def test_every_function_named_on_the_page_is_there(name: str) -> None:
    from importlib import import_module

    if name.endswith(".py") or name.startswith("tests"):
        return
    module, function = name.rsplit(".", 1)
    assert callable(getattr(import_module(f"urdf_ident.{module}"), function))
