"""Findings have stable ids, and docs/findings.md lists all of them."""

from __future__ import annotations

import ast
from pathlib import Path

from conftest import load_script

from urdf_ident.faults.changes.wording import _CHANGES
from urdf_ident.faults.small_faults.wording import _SMALL
from urdf_ident.faults.wording import _WORDS
from urdf_ident.judgements.catalogue import KNOWN
from urdf_ident.judgements.finding import SEVERITIES, UNDECIDED

ROOT = Path(__file__).parents[1]
#: Functions whose argument of that position is a finding's id.
MAKERS = {"add": 0, "Finding": 0, "_ignore_velocity": 1, "drop_rows": 2}


def literal_ids() -> set[str]:
    """Ids written where findings are made, by parsing the sources."""
    found = set()
    rooms = ("logs", "signals", "faults", "torque_constants", "pipeline")
    for path in (path for room in rooms for path in (ROOT / "urdf_ident" / room).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                name = getattr(node.func, "id", getattr(node.func, "attr", ""))
                at = MAKERS.get(name)
                if at is None or len(node.args) <= at + 1:
                    continue
                value = node.args[at]
                if isinstance(value, ast.Constant) and isinstance(value.value, str):
                    found.add(value.value)
    return found | set(_WORDS) | set(_SMALL) | {item[0] for item in _CHANGES.values()} | {UNDECIDED}


def test_every_finding_is_in_the_catalogue_and_every_entry_can_be_found() -> None:
    known = {name for kinds in KNOWN.values() for name in kinds}
    assert literal_ids() == known


def test_the_page_is_up_to_date() -> None:
    assert (ROOT / "docs" / "findings.md").read_text(encoding="utf-8") == load_script("docs/findings.py").page(), (
        "run scripts/docs/findings.py"
    )


def test_kinds_are_complete() -> None:
    for kinds in KNOWN.values():
        for name, kind in kinds.items():
            assert name == name.lower().replace("_", "-")
            assert kind.severity in SEVERITIES
            assert kind.meaning
            assert kind.remedy
