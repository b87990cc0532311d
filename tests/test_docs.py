"""The documentation: commands have the options that are shown, project files are valid, code compiles, links lead on."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import yaml
from typer.main import get_command

from urdf_ident.cli import app
from urdf_ident.project import parse_project

DOCS = Path(__file__).parents[1] / "docs"
BLOCK = re.compile(r"^```(python|bash|yaml)\n(.*?)^```", re.DOTALL | re.MULTILINE)
PAGES = ("tutorial.md", "howto.md", "index.md", "explanation.md", "limits.md", "reference.md")


def blocks(page: str) -> list[tuple[str, str]]:
    """Language and text of the blocks of code of a page."""
    return BLOCK.findall((DOCS / page).read_text(encoding="utf-8"))


def commands(text: str) -> list[list[str]]:
    """The commands of a block, as lists of words without the program's name."""
    found = [shlex.split(line, comments=True) for line in text.splitlines()]
    return [words[1:] for words in found if words and words[0] == "urdf-ident"]


@pytest.mark.parametrize("page", PAGES)
def test_commands_and_project_files_of_a_page_are_valid(page: str) -> None:
    group = get_command(app)
    for language, text in blocks(page):
        if language == "python":
            compile(text, page, "exec")
        if language == "yaml":
            parse_project(yaml.safe_load(text))
        for words in commands(text) if language == "bash" else ():
            command = group.commands[words[0]]  # type: ignore[attr-defined]
            command.make_context(words[0], list(words[1:]), resilient_parsing=False)


@pytest.mark.parametrize("page", PAGES)
def test_links_between_pages_lead_somewhere(page: str) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", (DOCS / page).read_text(encoding="utf-8")):
        assert target.startswith("http") or (DOCS / target).exists(), target
