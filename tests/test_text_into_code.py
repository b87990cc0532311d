"""Names as text of other languages: what is generated is read there as the same name and nothing else.

Two walls: names with control characters, quotes or backslashes are refused where they are read; and every generator escapes
whatever name it is given. The second is tested with any printable text and with line breaks of all kinds, which the first
would not let through.
"""

import ast
import copy
import functools
import json
import re
import shutil
import subprocess
import xml.etree.ElementTree as ET
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

import pytest
import yaml
from commands import assert_refused, run
from conftest import arm_urdf
from hypothesis import example, given, settings
from hypothesis import strategies as st

from urdf_ident import Limits, Robot, quoting, read_recording
from urdf_ident.errors import LogError, UrdfError, UrdfIdentError
from urdf_ident.export import mjcf, sdf, urdf
from urdf_ident.export.on_robot import TARGETS, Plan
from urdf_ident.model.prior import inertial_prior
from urdf_ident.model.urdf import parse_urdf
from urdf_ident.motion.fourier import FourierTrajectory, random_fourier
from urdf_ident.report.page import rendered
from urdf_ident.report.svg import svg
from urdf_ident.result.plots.charts import Chart
from urdf_ident.viz import page

#: Ends of texts, comments and elements, and what starts something else, in all the languages that are written.
HOSTILE = (
    *('j"; system("touch owned"); //', "j'; import os #", "a\nb", "a\rb", "a\u2028b", "a\u2029b", "a\x85b"),
    *("a\x0bb\x0cc", "\x1b[2Jcleared", "ends with \\", "??/", '??/"; int x; //', "??=define y", "*/ int x; /*"),
    *("// a", "# a", "</script><script>alert(1)</script>", "<!-- <script>", "--> ]]> <b>", "$(touch owned)"),
    *("`touch owned`", "$x^{$", r"\$x^{$", "{robot} %s {{data}} @HEADER@ @ROBOT@", '"""'),
    *("{a: [b], *c &d !e |f >g}", "- a: b # c", "null", "1e5", "é ß 手 🤖 \u00a0", "\u202eabc", "\ue000\U000e0041"),
    *(" a ", "#0b6bcb font: 1px a; x", "a,b", "\\x41\\101\\u0041"),
)
#: Printable text; blanks of every kind; text with line breaks, controls and marks.
printable = st.text(st.characters(exclude_categories=("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")), min_size=1, max_size=30)
anything = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=30)


def every_name(test: Callable[[str], None]) -> Callable[[], None]:
    """Runs a test with all hostile names, and with any text."""
    for name in HOSTILE:
        test = example(name=name)(test)
    return settings(deadline=None, max_examples=60)(given(name=st.one_of(printable, anything))(test))


@pytest.mark.parametrize("name", [name for name in HOSTILE if not quoting.is_harmless(name)])
def test_a_hostile_name_in_a_urdf_is_refused_in_one_line(name: str) -> None:
    """Every element that has a name: robot, link, joint, material."""
    attribute = "".join(f"&#{ord(letter)};" for letter in name)
    for old in ('name="arm"', 'name="j1"', '"l1"'):
        new = old.split('"')[0] + f'"{attribute}"'
        text = arm_urdf("zy").replace(old, new)
        if any(ord(letter) < 32 and letter not in "\t\n\r" for letter in name):
            with pytest.raises(UrdfError, match="does not parse"):  # no XML
                parse_urdf(text)
            continue
        with pytest.raises(UrdfError, match="not plain text") as caught:
            parse_urdf(text)
        assert str(caught.value).isprintable()
        assert len(str(caught.value)) < 400


def test_a_long_name_is_refused_and_its_beginning_shown() -> None:
    with pytest.raises(UrdfError, match="too long") as caught:
        parse_urdf(arm_urdf("zy").replace('name="j1"', f'name="{"x" * 30_000}"'))
    assert "x" * 200 + "…" in str(caught.value)
    assert "x" * 201 not in str(caught.value)
    assert "30000 characters" in str(caught.value)


@pytest.mark.parametrize("name", ["a\x1b[2Jb", "a\x00b", "a\u2028b", "a\x85b", "a\u202eb", "x" * 501])
def test_control_characters_in_the_header_of_a_log_are_refused(name: str, tmp_path: Path) -> None:
    robot = Robot.from_urdf(arm_urdf("zy"))
    rows = "\n".join(f"{0.01 * k},0.{k},0.{k},1" for k in range(9))
    (tmp_path / "log.csv").write_text(f"t,q_j1,q_j2,{name}\n{rows}\n", encoding="utf-8")
    with pytest.raises(LogError) as caught:
        read_recording(tmp_path / "log.csv", robot)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 600


@pytest.mark.parametrize("name", ['q"; x', "a'b", "q\\"])
def test_quotes_in_the_name_of_a_column_that_is_used_are_refused(name: str, tmp_path: Path) -> None:
    """A column that nothing uses may have any printable name."""
    from urdf_ident.logs.columns.layout import LogLayout

    robot = Robot.from_urdf(arm_urdf("zy"))
    rows = "\n".join(f"{0.01 * k},0.{k},0.{k},1" for k in range(9))
    cell = '"' + name.replace('"', '""') + '"'
    (tmp_path / "log.csv").write_text(f"t,q_j1,q_j2,{cell}\n{rows}\n", encoding="utf-8")
    assert len(read_recording(tmp_path / "log.csv", robot)) == 9
    with pytest.raises(LogError, match="not plain text"):
        read_recording(tmp_path / "log.csv", robot, LogLayout(columns={"position": [1, 3]}))


def test_messages_are_one_printable_line() -> None:
    for name in HOSTILE:
        assert str(UrdfIdentError(f"a {name}", where=name, got=name, remedy=name)).isprintable()


# One function a language


@every_name
def test_comments_stay_in_their_line(name: str) -> None:
    text = quoting.comment(name)
    assert text.isprintable()
    assert not text.endswith("\\")
    assert ast.literal_eval(text) == name
    assert cpp_tokens(f"// {text}\nint x;") == ["int", "x", ";"]
    assert yaml.safe_load(f"# {text}\na: 1") == {"a": 1}


@every_name
def test_markup(name: str) -> None:
    text = quoting.markup(name)
    html = _Html(f'<p title="{text}">{text}</p>')
    assert html.tags == ["p"]
    assert html.attributes == [name]
    assert "".join(html.texts) == name
    if all(ord(letter) > 31 or letter in "\t\n\r" for letter in name) and not re.search("[\ufffe\uffff]", name):
        element = ET.fromstring(f'<p title="{text}">{text}</p>')
        assert element.get("title") == name
        assert element.text == name
        assert not len(element)


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
def test_a_compiler_reads_cpp_strings_as_the_same_names(tmp_path: Path) -> None:
    names = [name for name in HOSTILE if "\0" not in name]
    prints = "".join(
        f"  // {quoting.comment(name)}\n  fputs({quoting.cpp_string(name)}, stdout); putchar(0);\n" for name in names
    )
    (tmp_path / "names.cpp").write_text(f"#include <cstdio>\nint main() {{\n{prints}}}\n", encoding="utf-8")
    compiled = ["g++", "-std=c++11", "-trigraphs", "-o", str(tmp_path / "names"), str(tmp_path / "names.cpp")]
    subprocess.run(compiled, check=True, capture_output=True)
    read = subprocess.run([str(tmp_path / "names")], check=True, capture_output=True).stdout
    assert read.split(b"\0")[:-1] == [name.encode() for name in names]


# What is generated: the same as for plain names, but for the names


@functools.cache
def motion_of(count: int) -> tuple[Limits, FourierTrajectory]:
    limits = Limits.from_robot(Robot.from_urdf(arm_urdf("zyyxyxz"[:count])))
    return limits, random_fourier(limits, 0.5, 2, 0, fill=0.3)


def plan(joint: str, robot: str, count: int) -> Plan:
    """A motion of a robot whose first joint has any name."""
    limits, motion = map(copy.copy, motion_of(count))
    names = (joint, *limits.joints[1:])
    for record in (limits, motion):
        object.__setattr__(record, "joints", names)
    return Plan(robot, motion, names, limits)


@functools.cache
def plain_texts(target: str, count: int) -> dict[str, str]:
    return TARGETS[target](plan("j1", "j1", count))


@every_name
def test_franka_program(name: str) -> None:
    texts, plain = TARGETS["franka"](plan(name, name, 7)), plain_texts("franka", 7)
    tokens, expected = cpp_tokens(texts["follow.cpp"]), cpp_tokens(plain["follow.cpp"])
    header = ",".join(
        [
            "t",
            *(
                quoting.csv_cell(f"{kind}_{joint}")
                for kind in ("q", "v", "tau")
                for joint in (name, *(f"j{k}" for k in range(2, 8)))
            ),
        ]
    )
    assert [header.encode() if isinstance(word, bytes) and b"q_j1" in word else word for word in expected] == tokens
    assert texts["dry_run.sh"] == plain["dry_run.sh"]


@every_name
def test_urscript_program(name: str) -> None:
    texts, plain = TARGETS["urscript"](plan(name, name, 6)), plain_texts("urscript", 6)
    for file in ("motion.script", "dry_run.script"):
        lines, expected = re.split("[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]", texts[file]), plain[file].split("\n")
        code = [line for line in lines if not line.startswith("#")]
        assert code == [line for line in expected if not line.startswith("#")]
        assert sum(quoting.comment(name) in line for line in lines) == 2


@every_name
def test_ros2_files(name: str) -> None:
    texts = TARGETS["ros2_control"](plan(name, name, 3))
    assert yaml.safe_load(texts["trajectory.yaml"])["joint_names"] == [name, "j2", "j3"]
    script, plain = ast.parse(texts["send.py"]), ast.parse(plain_texts("ros2_control", 3)["send.py"])
    assert f"of {name} to a joint" in str(ast.get_docstring(script, clean=False))
    speeds = next(node for node in script.body if isinstance(node, ast.Assign) and ast.unparse(node.targets) == "APPROACH")
    assert list(ast.literal_eval(speeds.value)) == [name, "j2", "j3"]
    assert [type(node) for node in ast.walk(script)] == [type(node) for node in ast.walk(plain)]


@every_name
def test_checklists(name: str) -> None:
    page, plain = plan(name, name, 3).page("franka"), plan("j1", "j1", 3).page("franka")
    assert len(re.split("[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]", page)) == plain.count("\n") + 1
    assert all(line.isprintable() for line in page.split("\n"))


@every_name
def test_pictures(name: str) -> None:
    """Titles, labels and descriptions of pictures are the names themselves."""
    if name.isprintable() and name.strip():
        text = svg([Chart([], title=name)], name, 200.0)
        picture = ET.fromstring(text)
        assert picture.get("aria-label") == name
        assert name in ["".join(element.itertext()) for element in picture.iter("text")]
        assert not list(picture.iter("script"))


@every_name
def test_pages(name: str) -> None:
    """The player's page: the name is its title and in its data, and there are no more elements than for a plain name."""
    pages = [_Html(page._assemble(word, {"title": word})) for word in (name, "plain")]
    assert pages[0].tags == pages[1].tags
    assert pages[0].text_of["title"] == [name]
    (document,) = [text for text in pages[0].text_of["script"] if text.startswith("{")]
    assert json.loads(document) == {"title": name}
    assert not re.search("[<\u2028\u2029]", document)


@pytest.mark.parametrize("name", [name for name in HOSTILE if quoting.is_harmless(name) and name.strip() == name])
def test_robots_are_written_and_read_with_the_same_names(name: str) -> None:
    """URDF, MJCF and SDF."""
    quoted = quoteattr(name)
    text = arm_urdf("zy").replace('name="j1"', f"name={quoted}").replace('"l1"', quoted).replace('name="arm"', f"name={quoted}")
    robot = Robot.from_urdf(text)
    assert robot.name == name
    assert robot.joints[0] == name
    assert robot.bodies[0].name == name
    theta = inertial_prior(robot).theta0[: 10 * robot.n]
    mounted, _ = urdf.mounted_urdf(text, name, theta[:10])
    assert name in parse_urdf(mounted).links
    assert len(parse_urdf(mounted).links) == len(robot.description.links) + 1
    for root in (ET.fromstring(mjcf.mjcf_text(robot, theta)[0]), ET.fromstring(sdf.sdf_text(text)[0])):
        names = [element.get("name") for element in root.iter() if element.tag in ("joint", "body", "link")]
        assert names.count(name) == 2  # the joint and its body


def test_a_robot_with_odd_names_is_exported_by_the_command(tmp_path: Path) -> None:
    """The attack as found: a name that leaves a C++ string of `export-motion --for franka`."""
    attack = "j1&quot; &lt;&lt; std::system(&quot;touch owned&quot;) &lt;&lt; &quot;"
    (tmp_path / "arm.urdf").write_text(arm_urdf("zyzyzyz").replace('name="j1"', f'name="{attack}"'))
    result = run("export-motion", "t.csv", "--robot", "arm.urdf", "--for", "franka", "-o", "out", cwd=tmp_path)
    assert_refused(result, 2, "name of a joint is not plain text")
    assert not (tmp_path / "out").exists()


def test_templates_show_names_as_text() -> None:
    html = rendered(
        "fleet.html.j2", fleet=_Fleet(), headline="<b>h", how="<b>", odd=False, robots=[], pictures=[], quantities=[]
    )
    assert not {"b", "img"} & set(_Html(html).tags)


class _Fleet:
    robot = "<img src=x onerror=alert(1)>"
    failed = {"<b>": "<b>"}  # noqa: RUF012

    def __getattr__(self, name: str) -> Any:
        return []


class _Html(HTMLParser):
    """Tags, titles and texts of a page."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.open = ""
        self.attributes: list[str | None] = []
        self.texts: list[str] = []
        self.text_of: dict[str, list[str]] = {}
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.open = tag
        self.attributes += [value for key, value in attrs if key == "title"]
        self.text_of.setdefault(tag, []).append("")

    def handle_endtag(self, tag: str) -> None:
        self.open = ""

    def handle_data(self, data: str) -> None:
        self.texts.append(data)
        if self.open:
            self.text_of[self.open][-1] += data


_TRIGRAPHS = dict(zip("=/'()!<>-", "#\\^[]|{}~", strict=True))
_SIMPLE = {"n": 10, "t": 9, "r": 13, "\\": 92, '"': 34, "'": 39, "?": 63, "a": 7, "b": 8, "f": 12, "v": 11}


def cpp_tokens(source: str) -> list[Any]:
    """Tokens of a C++ program, strings as the bytes that they hold, by the phases of translation of C++11 [lex.phases]."""
    text = re.sub(r"\?\?([=/'()!<>-])", lambda found: _TRIGRAPHS[found[1]], source)
    text = re.sub(r"\\(\r\n|\n|\r)", "", text)
    tokens: list[Any] = []
    at = 0
    while at < len(text):
        if text.startswith("//", at):
            at = min([k for k in (text.find("\n", at), text.find("\r", at)) if k >= 0], default=len(text))
        elif text.startswith("/*", at):
            at = text.index("*/", at) + 2
        elif text[at] in "\"'":
            value, end = bytearray(), at + 1
            while text[end] != text[at]:
                assert text[end] not in "\n\r", "a string goes over the end of the line"
                if text[end] != "\\":
                    value += text[end].encode()
                    end += 1
                elif octal := re.compile(r"\\([0-7]{1,3})").match(text, end):
                    value.append(int(octal[1], 8))
                    end = octal.end()
                else:
                    value.append(_SIMPLE[text[end + 1]])
                    end += 2
            tokens.append(bytes(value))
            at = end + 1
        elif text[at].isspace():
            at += 1
        else:
            word = re.compile(r"\w+|.", re.DOTALL).match(text, at)
            tokens.append(word[0])  # type: ignore[index]
            at = word.end()  # type: ignore[union-attr]
    return tokens
