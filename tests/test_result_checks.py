"""A damaged, edited, newer or made-up identification.json is refused in one line that names the entry."""

import copy
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import arm_urdf
from logs import make_log

import urdf_ident as ui
from urdf_ident.errors import LogError
from urdf_ident.result.checks import seal
from urdf_ident.result.write import FIELDS

pytestmark = pytest.mark.usefixtures("unexamined")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A result and its content."""
    folder = tmp_path_factory.mktemp("result")
    robot = ui.Robot.from_urdf(arm_urdf("zy"))
    make_log(folder / "log.csv", robot, seed=0)
    model = ui.DynamicModel(robot, friction=["viscous", "coulomb"])
    ident = ui.identify(model, [ui.read_recording(folder / "log.csv", robot)])
    path = ident.save(folder / "ident.json")
    return path, json.loads(path.read_text())


def refusal(folder: Path, data: Any, *, sealed: bool = True) -> str:
    if sealed and isinstance(data, dict):
        data = {**data, "seal": seal(data)}  # who makes a file up can also make its seal
    path = folder / "bad.json"
    path.write_text(json.dumps(data))
    with pytest.raises(LogError) as caught:
        ui.load(path)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 600
    assert "bad.json" in str(caught.value)
    return str(caught.value)


def change(path: str, value: Any) -> Callable[[dict[str, Any]], None]:
    """Sets one entry; numbers in the path are indices."""

    def act(data: dict[str, Any]) -> None:
        *way, last = [int(part) if part.isdigit() else part for part in path.split("/")]
        for part in way:
            data = data[part]  # type: ignore[index]
        data[last] = value(data[last]) if callable(value) else value  # type: ignore[index]

    return act


def test_what_was_written_is_read_and_written_again(written: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    path, data = written
    again = json.loads(ui.load(path).save(tmp_path / "again.json").read_text())
    assert {key for key in data if data[key] != again[key]} <= {"sources", "seal"}
    assert data["seal"] == seal(data)
    assert seal(dict(reversed(list(data.items())))) == data["seal"]


def test_sections_that_an_earlier_version_wrote_as_empty_are_read(written: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    data = written[1] | {"adaptation": {}, "essential": {}}
    path = tmp_path / "earlier.json"
    path.write_text(json.dumps(data | {"seal": seal(data)}))
    ident = ui.load(path)
    assert ident.adaptation is None
    assert ident.essential is None


def test_an_estimate_that_the_data_hardly_determine_is_read_again(written: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    ident = ui.load(written[0])
    params = np.array(ident.fit.params)
    params[0] = 1e15
    path = replace(ident, fit=replace(ident.fit, params=params)).save(tmp_path / "poor.json")
    assert ui.load(path).fit.params[0] == 1e15


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("schema", "urdf-ident/9", "newer version"),
        ("schema", "urdf-ident/0", "older version"),
        ("schema", None, "not an identification.json"),
        ("schema", ["urdf-ident/1"], "not an identification.json"),
        ("robot/urdf", lambda text: text.replace("0.1", "0.2", 1), "not the URDF that was identified"),
        ("robot/urdf", "/etc/passwd", "is no URDF"),
        ("robot/urdf", "<\ud800>", "is no text"),
        ("robot/sha256", "0" * 64, "not the URDF that was identified"),
        ("state/base/K", lambda rows: [[0.0 for _ in row] for row in rows], "disagrees with the terms"),
        ("state/base/K/0", lambda row: [1.5 * entry for entry in row], "disagrees with the terms"),
        ("parameters/base/0/terms", [], "disagrees with the terms"),
        ("parameters/base/0/terms/0/coefficient", float("nan"), "disagrees with the terms|NaN"),
        ("state/base/K", lambda rows: rows[:-1], "reshape"),
        ("state/base/K/0/0", "inf", "not finite"),
        ("state/base/independent", lambda ks: [ks[0], *ks[:-1]], "every parameter once"),
        ("state/base/independent/0", 0.5, "base.independent"),
        ("state/base/ill_conditioned", [10**6], "no indices"),
        ("parameters/standard/0/value", -5.0, "mass is not positive"),
        ("parameters/standard/0/value", 1e300, "out of all proportion"),
        ("parameters/standard/3/value", "nan", "not finite"),
        ("parameters/standard/3/value", None, "not finite"),
        ("signals/load", [1.0, [2.0], 3.0], "damaged"),
        ("signals/speed", [1.0], "wrong shape"),
        ("parameters/standard", lambda items: items[:-1], "parameters.standard"),
        ("parameters/base", {}, "parameters.base"),
        ("parameters/base/0/value", [1.0], "no number"),
        ("covariance/matrix/0/1", lambda value: value + 1.0, "not symmetric"),
        ("covariance/matrix/0/0", -1.0, "negative variance"),
        ("covariance/matrix/1/1", lambda value: 1e-6 * value, "negative eigenvalue|not symmetric"),
        ("covariance/matrix/0", [], "no number|shape"),
        ("state/fit/seen", [1, 0], "seen is no list"),
        ("state/fit/rows", 0, "not positive"),
        ("state/fit/dof", "nan", "not finite"),
        ("state/fit/sigma", {"j1": 0.0}, "not positive"),
        ("state/factor/0/0", "inf", "not finite"),
        ("state/factor", lambda rows: [row[:-1] for row in rows], "wrong shape"),
        ("state/prior/theta0", lambda values: values[:-1], "wrong shape"),
        ("state/prior/root/0/0", "nan", "not finite"),
        ("state/prior/root/0/0", -1e300, "out of all proportion"),
        ("state/prior/root", lambda rows: [rows[0], *rows[:-1]], "without size|does not bound"),
        ("parameters/standard/0/note", 1, "something else than words"),
        ("state/baseline", [], "wrong shape"),
        ("config/signals/cutoff", "no", "signals.cutoff"),
        ("config/nonsense", 1, "unknown key 'nonsense'"),
        ("model/order", ["nobody"], "nobody"),
        ("model/terms/0/axis", "nobody", "nobody"),
        ("model/terms", 7, "damaged"),
        ("inputs", [1], "inputs.0"),
        ("inputs/0/rows", None, "inputs.0.rows"),
        ("inputs/0/sha256", 5, "inputs.0.sha256"),
        ("inputs/0/findings", [7], "inputs.0.findings.0"),
        ("inputs/0/findings", [{"id": "axis-sign", "severity": 1, "message": ""}], "inputs.0.findings.0"),
        ("inputs/0/findings", 7, "inputs.0.findings"),
        ("left_out", [{"findings": 7}], "left_out.0.name"),
        ("state", [], "wrong kind"),
        ("prediction", 7, "prediction is 7"),
        ("adaptation", "no", "adaptation is 'no'"),
        ("signals/decimate", "auto", "signals.decimate"),
        ("signals/decimate", True, "signals.decimate"),
        ("signals/decimate", None, "signals.decimate"),
        ("condition", True, "condition is True"),
        ("signals/delay", "none", "signals.delay"),
        ("signals/why", 7, "signals.why"),
        ("solver/active", [["Ia_j1"]], "solver.active.0"),
        ("simpler_models", {"folds": []}, "simpler_models.groups"),
        ("simpler_models/rmse/urdf", [1.0], "simpler_models.rmse.urdf"),
        ("essential", {"rule": "F-test", "names": ["nobody"], "held_out": 1.0, "removed": []}, "no base parameter"),
        ("black_box", {"text": 7}, "black_box.text"),
        ("validation", [{"log": "a"}], "validation.0.relative"),
        ("cross_validation/rmse", [], "cross_validation.rmse"),
        ("evidence/at_speeds", {"j1": [0.1]}, "at_speeds"),
        ("friction_changes/mean", [0.0], "friction_changes.mean"),
        ("inputs/0/findings", [{"id": "axis-sign", "severity": "warning", "message": "", "joints": [["j1"]]}], "joints.0"),
    ],
)
def test_damage_is_refused(written: tuple[Path, dict[str, Any]], tmp_path: Path, path: str, value: Any, words: str) -> None:
    data = copy.deepcopy(written[1])
    change(path, value)(data)
    said = refusal(tmp_path, data)
    assert any(word in said for word in words.split("|")), said
    assert "; " in said  # what to do


@pytest.mark.parametrize("name", FIELDS)
def test_a_section_that_is_missing_is_named(written: tuple[Path, dict[str, Any]], tmp_path: Path, name: str) -> None:
    data = {key: value for key, value in written[1].items() if key not in (name, "seal")}
    assert name in refusal(tmp_path, data, sealed=False)


def test_infinite_scores_are_read_as_numbers(written: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    ident = ui.load(written[0])
    kinds = ("rmse", "relative", "rms_torque", "moving_rmse", "fit_rmse", "urdf_rmse", "urdf_friction_rmse")
    rows = [{**dict.fromkeys(kinds, 1.0), "joint": joint, "unit": "N·m"} for joint in ident.model.robot.joints]
    of_log = ("mean_rmse", "fit_mean_rmse", "urdf_mean_rmse", "urdf_friction_mean_rmse")
    score = {**dict.fromkeys(of_log, 1.0), "relative": np.inf, "log": "test", "trained_on": False, "per_joint": rows}
    scored = replace(ident, validation=(score,))
    path = scored.save(tmp_path / "infinite.json")
    assert json.loads(path.read_text())["validation"][0]["relative"] == "inf"
    read = ui.load(path)
    assert read.validation[0]["relative"] == np.inf
    assert read.summary() == scored.summary()


def test_tiny_coefficients_that_the_terms_lack_are_no_damage(written: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    """Published URDFs give coefficients below 1e-9 (of a Sawyer 5e-11), which the list of terms leaves out."""
    ident = ui.load(written[0])
    base = ident.fit.base
    K = np.where(base.K == 0, 7e-10, base.K)
    path = replace(ident, fit=replace(ident.fit, base=replace(base, K=K))).save(tmp_path / "tiny.json")
    np.testing.assert_array_equal(ui.load(path).fit.base.K, K)


@pytest.mark.parametrize(("section", "entry"), [("base", "ill_conditioned"), ("prior", "spread")])
def test_an_entry_that_another_version_lacks_is_named_with_both_versions(written, tmp_path: Path, section, entry) -> None:
    data = copy.deepcopy(written[1])
    del data["state"][section][entry]
    data["versions"]["urdf-ident"] = "0.0.1"
    said = refusal(tmp_path, data)
    assert f"no '{entry}'" in said
    assert "urdf-ident 0.0.1, schema urdf-ident" in said


def test_any_edit_breaks_the_seal(written: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    for path, value in (("verdict/level", "good!"), ("parameters/standard/2/value", 1e-3), ("signals/cutoff", 3.25)):
        data = copy.deepcopy(written[1])
        change(path, value)(data)
        assert "changed after it was written" in refusal(tmp_path, data, sealed=False)
    data = copy.deepcopy(written[1])
    change("parameters/standard/2/value", 1e-3)(data)
    del data["seal"]
    (tmp_path / "edited.json").write_text(json.dumps(data))
    assert ui.load(tmp_path / "edited.json").theta[2] == 1e-3


def test_files_that_are_no_result(tmp_path: Path) -> None:
    for data in ([], {}, "text", 3, None, {"schema": "urdf-ident/1"}):
        assert re.search("not a result|not an identification|damaged", refusal(tmp_path, data))


def test_every_cut_is_refused(written: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    text = written[0].read_text()
    for share in (0.0, 0.1, 0.5, 0.9, 0.9999):
        (tmp_path / "cut.json").write_text(text[: int(share * len(text))])
        with pytest.raises(LogError, match="not JSON"):
            ui.load(tmp_path / "cut.json")
