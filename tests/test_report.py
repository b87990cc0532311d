"""The report, the short summary and the pictures, on a result of the command line."""

import html
import re
import shlex
import sys
import warnings
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from urdf_ident import Identification, Judgement, Remedy, Verdict, load
from urdf_ident.cli.application import run as run_here
from urdf_ident.errors import ModelError
from urdf_ident.judgements.catalogue import Id
from urdf_ident.quoting import CommandPaths
from urdf_ident.report import report_html
from urdf_ident.report.page import number
from urdf_ident.report.svg import svg
from urdf_ident.result.plots.charts import Chart, Line, horizontal
from urdf_ident.result.scores import Traces
from urdf_ident.result.summary import brief, joint_errors
from urdf_ident.result.verdict import RICHER_MOTION
from urdf_ident.units import with_error

pytestmark = pytest.mark.usefixtures("unexamined")


def run(*arguments: object) -> int:
    """`urdf-ident ARGUMENTS` in this process, which has imported everything already."""
    return run_here([str(argument) for argument in arguments])


VOID = {"meta", "link", "br", "path", "use", "rect", "col"}


class Balanced(HTMLParser):
    """Every element that is opened is closed, and no address leaves the page."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.addresses: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)
        self.addresses += [str(value) for key, value in attrs if key in ("src", "href", "xlink:href")]

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.addresses += [str(value) for key, value in attrs if key in ("src", "href", "xlink:href")]

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


@pytest.fixture(scope="module")
def identified(work: Path) -> Path:
    """A result with listed friction: finding laws is not what is tested here."""
    logs = (work / "log0.csv", work / "log1.csv", "--validate", work / "log2.csv")
    assert run("identify", work / "arm.urdf", *logs, "-c", work / "listed.yaml", "-o", work / "seen") == 0
    return work / "seen"


@pytest.fixture(scope="module")
def ident(identified: Path) -> Identification:
    return load(identified / "identification.json")


def test_the_report_is_one_page_without_a_network(identified: Path, ident: Identification) -> None:
    page = (identified / "report.html").read_text(encoding="utf-8")
    parser = Balanced()
    parser.feed(page)
    assert parser.open == []
    assert all(address.startswith(("#", "data:")) for address in parser.addresses)
    assert "prefers-color-scheme: dark" in page
    assert "@media print" in page
    assert "#ab01" not in page  # every colour became a variable
    assert len(page) < 5e6
    text = " ".join(parser.text)
    for word in ("GOOD", "held-out log", "log2", "Friction", "Provenance", "j1", "l3"):
        assert word in text
    for row in ident.parameters:
        assert f'data-v="{row.value}"' in page
    assert f"{ident.validation[0]['per_joint'][0]['rmse']:.3g}" in page
    assert page.count("<svg") == 3 + 1 + 3 + 3 + (3 + 4) + 2  # torque, errors, friction, bodies, parameters and terms, residual


def test_the_report_without_series_says_what_is_missing_and_escapes_names(ident: Identification) -> None:
    page = report_html(replace(ident, traces=Traces()), title="<script>alert(1)</script> & arm")
    assert "<script>alert" not in page
    assert "&lt;script&gt;" in page
    assert "The torque series of the logs are not available" in page


def test_commands_of_the_report_run_as_printed(
    identified: Path, work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    verdict = Verdict((Judgement(Id.TORQUE_UNCERTAIN, "cause", RICHER_MOTION),))
    monkeypatch.setattr("urdf_ident.result.summary.verdict_of", lambda _: verdict)
    assert run("report", identified / "identification.json", "-o", tmp_path / "again.html") == 0
    (command,) = re.findall("<code>(urdf-ident design [^<]*)</code>", html.unescape((tmp_path / "again.html").read_text()))
    (tmp_path / "my project.yaml").write_text("excitation: {budget: 0.1, duration: 3}\n")
    command = command.replace(str(work / "arm.urdf"), f"{work / 'arm.urdf'} -c 'my project.yaml'")
    monkeypatch.chdir(tmp_path)
    assert run(*shlex.split(command)[1:]) == 0
    assert (tmp_path / "next.csv").is_file()


def test_commands_name_the_user_s_files_for_a_shell() -> None:
    paths = CommandPaths(Path("my arm.urdf"), "out/identification.json", "p.yaml")
    remedy = str(RICHER_MOTION)
    words = shlex.split(paths.fill(remedy).split("`")[1])
    assert words == shlex.split("urdf-ident design 'my arm.urdf' -c p.yaml --after out/identification.json -o next.csv")
    assert CommandPaths().fill(remedy) == remedy  # in Python the files are not known
    data = {"verdict": {"causes": [{"remedy": remedy, "level": 1.5}]}, "notes": (remedy, None)}
    filled = paths.fill(remedy)
    assert paths.fill_in(data) == {"verdict": {"causes": [{"remedy": filled, "level": 1.5}]}, "notes": [filled, None]}


def test_the_first_screen_says_how_much_is_not_identified(identified: Path, ident: Identification) -> None:
    levels = [row.verdict for row in ident.parameters]
    lost, sums = levels.count("not identifiable"), levels.count("only in combination")
    page = (identified / "report.html").read_text()
    assert f"<dt>not identified</dt><dd>{lost} of {len(levels)}, {sums} only in combination</dd>" in page


def test_a_report_of_a_training_log_says_so(identified: Path, work: Path, tmp_path: Path) -> None:
    assert run("report", identified / "identification.json", work / "log0.csv", "-o", tmp_path / "r.html") == 0
    assert "a log that the model was fitted to" in (tmp_path / "r.html").read_text()


@pytest.mark.parametrize("length", [10, 400])
def test_the_summary_stays_short_whatever_is_said(ident: Identification, length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    words = "word " * (length // 5)
    verdict = Verdict((Judgement(Id.WORSE_THAN_URDF, words.strip(), Remedy(words.strip())),))
    monkeypatch.setattr("urdf_ident.result.summary.verdict_of", lambda _: verdict)
    text = brief(ident)
    assert len(text.splitlines()) <= 24
    assert max(map(len, text.splitlines())) <= 100
    assert "POOR" in text.splitlines()[0]
    assert "  to do: word" in text


def test_without_a_held_out_log_the_report_lists_cross_validated_errors(ident: Identification) -> None:
    page = report_html(replace(ident, validation=(), traces=Traces()))
    assert "cross-validated error</th>" in page
    for joint, errors in joint_errors(replace(ident, validation=()))[1].items():
        assert f"<td>{joint}</td>{''.join(f'<td>{number(100 * error, 2)} %</td>' for error in errors)}" in page


def test_the_chain_to_consistent_bodies_has_its_figures(ident: Identification) -> None:
    """Cholesky test, closest to the URDF by SVD, essential parameters, LMI: side by side on any robot."""
    page = report_html(ident)
    section = page[page.index('id="consistency"') : page.index('id="parameters"')]
    bodies = len(ident.model.robot.bodies)
    rows = [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in section.split("<tr>")[2:]]
    names = [row[0] for row in rows]
    assert names[:4] == ["a priori", "base", "minimum norm", "closest to the prior"]
    assert names[-1].startswith("exported (")
    assert all(len(row) == 9 for row in rows)
    exported, closest, least = rows[-1], rows[3], rows[2]
    assert exported[1:6] == [f"{bodies} of {bodies}"] * 5  # every tolerance, and the triangle inequality
    assert float(exported[6]) > 0
    distances = [float(row[7]) for row in (closest, least)]
    assert distances[0] <= distances[1]  # closest in the norm that is printed
    assert float(closest[8]) == pytest.approx(1.0, abs=1e-3)  # as good as the base parameters


def test_how_results_look_in_a_session(ident: Identification) -> None:
    assert len(repr(ident).splitlines()) <= 10
    assert "arm" in repr(ident)
    assert "<table>" in ident._repr_html_()
    for thing in (ident.model, ident.model.robot, ident.model.base(), ident.prior, ident.verdict, ident.fit, ident.plot):
        assert len(repr(thing).splitlines()) == 1
        assert len(repr(thing)) < 200
    assert "N·m" in ident.fit.summary()


@pytest.mark.parametrize("without_pandas", [False, True])
def test_parameters_as_tables(ident: Identification, without_pandas: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if without_pandas:
        monkeypatch.setitem(sys.modules, "pandas", None)
    else:
        pytest.importorskip("pandas")
    every, base = ident.to_frame(), ident.fit.to_frame()
    np.testing.assert_array_equal(every["value"], ident.theta)
    np.testing.assert_array_equal(np.column_stack([every["low"], every["high"]]), ident.interval())
    np.testing.assert_array_equal(base["value"], ident.fit.params)
    np.testing.assert_array_equal(base["std_error"], ident.fit.bse)
    np.testing.assert_array_equal(np.column_stack([base["low"], base["high"]]), ident.fit.conf_int())
    names = list(base["name"] if without_pandas else base.index)
    units = dict(zip(names, base["unit"], strict=True))
    assert names == list(ident.fit.base.labels)
    for start, unit in (("Fv_j1", "N·m·s/rad"), ("Izz_l1", "kg·m²")):
        assert unit in {units[name] for name in names if name.startswith(start)} | {ident.parameters[start].unit}
    assert f"  {units[names[0]]}" in ident.fit.summary()
    with pytest.raises(ModelError, match="did you mean 'Fv_j1'"):
        ident.parameters["Fv_j_1"]


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (16.37, 3.0, "16.4 ± 3.0"),
        (0.0, 0.0, "0"),
        (-0.001, 0.05, "−0.001 ± 0.050"),
        (1234.5, 120.0, "1230 ± 120"),
        (3, np.inf, "3"),
    ],
)
def test_values_have_the_digits_of_their_errors(value: float, error: float, text: str) -> None:
    assert with_error(value, error) == text


def test_pictures_of_the_page_show_numbers_names_and_breaks() -> None:
    gap = Line([0.0, 0.5, np.nan, 0.5, 1.0], [0.0, 0.0125, np.nan, 0.0, 0.01], "ink", label="a & b")
    text = svg([Chart([gap, horizontal(0.005, "soft")], "左肘", "x", "y", legend=True)], "words", 200.0)
    assert "左肘" in text
    assert ">0.005<" in text
    assert "a &amp; b" in text
    path = re.search(r'<path d="([^"]*)" stroke="var\(--ink\)" stroke-width="1.3"', text)
    assert path is not None
    assert path[1].count("M") == 2
    assert path[1].count("L") == 2
    ends = re.search(r'data-box="[^"]*" data-x="([^"]*)" data-y="([^"]*)"', text)  # for the script: numbers of the axes
    assert ends is not None
    assert [float(x) for x in f"{ends[1]} {ends[2]}".split()] == pytest.approx([-0.05, 1.05, -0.000625, 0.013125])
    assert 'data-label="a &amp; b"' in text
    assert not re.search(r"<[^>]*\d\.\d{3}[^>]*>", text.replace(ends[0], ""))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        small = svg([Chart([Line([1.0, 10.0], [1e-7, 1e3], "bad")], log=True)], "log", 200.0)
    assert ">10⁻⁷<" in small
