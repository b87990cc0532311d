"""The documentation agrees with the code: references lead somewhere, and functions that it names exist."""

import re
from importlib import import_module
from pathlib import Path

import pytest

from urdf_ident import Project

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs").rglob("*.md"))
SOURCES = [*sorted((ROOT / "urdf_ident").rglob("*.py")), *sorted((ROOT / "scripts").rglob("*.py")), ROOT / "README.md", *PAGES]
LAYERS = sorted(path.name for path in (ROOT / "urdf_ident").iterdir() if path.is_dir() and path.name != "__pycache__")


def headings(page: Path) -> set[str]:
    return {line.lstrip("# ").split()[0] for line in page.read_text(encoding="utf-8").splitlines() if line.startswith("## ")}


def resolves(name: str) -> bool:
    """Whether a dotted name below the package is a module, or an attribute of one."""
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found = import_module(".".join(["urdf_ident", *parts[:cut]]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            if not hasattr(found, part):
                return False
            found = getattr(found, part)
        return True
    return False


def is_key(name: str) -> bool:
    """Whether a dotted name is a key of the project file."""
    section, key = name.split(".")[:2]
    fields = Project.model_fields
    return section in fields and key in getattr(fields[section].annotation, "model_fields", {})


def test_references_to_sections_lead_somewhere() -> None:
    for path in SOURCES:
        for page, section in re.findall(r"(?:docs/)?(\w+)\.md (§\d+)", path.read_text(encoding="utf-8")):
            target = ROOT / "docs" / f"{page}.md"
            assert target.is_file(), f"{path}: {page}.md does not exist"
            assert section in headings(target), f"{path}: {page}.md has no {section}"


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_names_in_the_documentation_exist(page: Path) -> None:
    names = re.findall(rf"`((?!report\.html)(?:{'|'.join(LAYERS)})\.[a-z_0-9]+(?:\.\w+)*)`", page.read_text(encoding="utf-8"))
    wrong = [name for name in names if not resolves(name) and not is_key(name)]
    assert not wrong, f"{page.name} names what does not exist: {wrong}"


@pytest.mark.parametrize("page", [*PAGES, ROOT / "README.md", ROOT / "CONTRIBUTING.md"], ids=lambda path: path.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?:|mailto:|#)([^)#\s]+)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), f"{page.name} links to {target}, which does not exist"


def test_every_author_and_year_is_in_the_references() -> None:
    listed = (ROOT / "docs" / "references.md").read_text(encoding="utf-8")
    cited = {
        (author, year)
        for path in SOURCES
        for author, year in re.findall(
            r"\b(Szabó|Wu|Zollo|Gautier|Liu|Janot|Hausman|Swevers|Huber|Lee|Wensing) (\d{4})\b",
            path.read_text(encoding="utf-8"),
        )
    }
    missing = [f"{author} {year}" for author, year in cited if not re.search(rf"{author}[^\n]*{year}", listed)]
    assert not missing, f"not in docs/references.md: {missing}"
