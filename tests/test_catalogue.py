"""The catalogue of judgements: one enumeration, from which docs/findings.md is made."""

import ast
from pathlib import Path

import pytest
from conftest import load_script

import urdf_ident as ui
from urdf_ident.judgements.catalogue import SECTIONS, SEVERITIES, Id

ROOT = Path(__file__).parents[1]


def test_every_id_is_used_where_something_is_judged() -> None:
    used = {
        node.attr
        for path in (ROOT / "urdf_ident").rglob("*.py")
        if path.name != "catalogue.py"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "Id"
    }
    assert {id.name for id in Id} <= used


def test_every_id_is_asked_for_by_a_test_of_what_is_judged() -> None:
    texts = "\n".join(
        path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py") if path != Path(__file__)
    )
    assert [id.name for id in Id if f'"{id}"' not in texts and f"Id.{id.name}" not in texts] == []


def test_no_id_is_written_as_a_text() -> None:
    """Outside the catalogue an id is a member of it; words with a hyphen that are also ids appear nowhere as texts."""
    ids = {str(id) for id in Id if "-" in id}
    texts = {
        (str(path.relative_to(ROOT)), node.value)
        for path in (ROOT / "urdf_ident").rglob("*.py")
        if path.name != "catalogue.py"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and node.value in ids
    }
    assert not texts


def test_the_page_is_up_to_date() -> None:
    assert (ROOT / "docs" / "findings.md").read_text(encoding="utf-8") == load_script("docs/findings.py").page(), (
        "run scripts/docs/findings.py"
    )


def test_entries_are_complete() -> None:
    for id in Id:
        assert id == id.name.lower().replace("_", "-")
        assert id.entry.severity in SEVERITIES
        assert id.entry.meaning
    assert list(SECTIONS) == sorted(SECTIONS, key=list(Id).index)
    assert next(iter(SECTIONS)) is next(iter(Id))


def test_an_unknown_id_cannot_be_made() -> None:
    with pytest.raises(ValueError, match="not a valid Id"):
        ui.Judgement("effort-scales", "words")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="not a valid Id"):
        ui.Judgement.from_dict({"id": "effort-scales", "severity": "warning", "message": "words"})


def test_a_judgement_survives_its_json_and_its_settings_are_its_words() -> None:
    remedy = ui.Remedy("if it is mounted that way, set {settings}", {"robot.gravity": [0.0, 0.0, 9.81]})
    judged = ui.Judgement(Id.GRAVITY_DIRECTION, "gravity", remedy, joint="j1", size=3.0, candidates=(Id.AXIS_SIGN,))
    told = judged.as_dict()
    assert told["remedy"] == "if it is mounted that way, set `robot: {gravity: [0, 0, 9.81]}`"
    assert told["settings"] == {"robot.gravity": [0.0, 0.0, 9.81]}
    assert ui.Judgement.from_dict(told).as_dict() == told
    scale = ui.Remedy("{settings}, or check its unit", {"drive.gain": {"multiply": {"j2": 0.81}}})
    assert str(scale) == "multiply drive.gain of j2 by 0.81, or check its unit"
    assert str(ui.Remedy(settings={"log.units.position": "deg"})) == "`log: {units: {position: deg}}`"


def test_the_level_is_that_of_the_worst_and_the_order_that_of_the_catalogue() -> None:
    def of(*ids: Id, **severity: str) -> ui.Verdict:
        return ui.Verdict.of(ui.Judgement(id, id, severity=severity.get(id.name, id.entry.severity)) for id in ids)  # type: ignore[arg-type]

    assert of().level == "good"
    assert of(Id.NOTE, Id.CLOCK_JITTER).level == "good"
    assert of(Id.NOTE).cause is None
    judged = of(Id.CROSS_VALIDATION, Id.NOT_VALIDATED, Id.EFFORT_CLIPPED)
    assert judged.level == "usable"
    assert [item.id for item in judged.judgements] == [Id.EFFORT_CLIPPED, Id.NOT_VALIDATED, Id.CROSS_VALIDATION]
    poor = of(Id.HELD_OUT_ERROR, Id.ONE_WAY, Id.EFFORT_CLIPPED, HELD_OUT_ERROR="refused")
    assert poor.level == "poor"
    assert [item.id for item in poor.judgements] == [Id.EFFORT_CLIPPED, Id.HELD_OUT_ERROR, Id.ONE_WAY]
    other = of(Id.TORQUE_UNCERTAIN, Id.EFFORT_CLIPPED, TORQUE_UNCERTAIN="refused")  # no symptom of the clipped effort
    assert other.cause is not None
    assert other.cause.id is Id.TORQUE_UNCERTAIN
    assert poor.as_dict()["causes"][0] == {
        "id": "effort-clipped",
        "level": "usable",
        "text": "effort-clipped",
        "remedy": Id.EFFORT_CLIPPED.entry.remedy,
        "settings": {},
    }
