"""Inputs far larger than any robot or log: refused in one line before the work whose time grows faster than they do."""

import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from commands import assert_refused, run
from conftest import arm_urdf

from urdf_ident import Robot, read_recording
from urdf_ident.errors import LogError, ProjectError, UrdfError, check_known
from urdf_ident.export import mjcf, sdf
from urdf_ident.files import sizes
from urdf_ident.logs.columns import headers
from urdf_ident.model.prior import inertial_prior
from urdf_ident.model.urdf import parse_urdf


def with_fixed_links(count: int, *, chain: bool) -> str:
    """An arm of two joints with further links fixed to its tip, one behind the other or side by side."""
    links, parent = [], "l2"
    for k in range(count):
        links.append(
            f'<link name="f{k}"/><joint name="fixed{k}" type="fixed"><parent link="{parent}"/><child link="f{k}"/>'
            '<origin xyz="0 0 0.001"/></joint>'
        )
        parent = f"f{k}" if chain else parent
    return arm_urdf("zy", fixed_tip=False).replace("</robot>", "".join([*links, "</robot>"]))


@pytest.mark.parametrize("chain", [True, False])
def test_more_links_than_a_robot_has_are_refused_in_one_line(chain: bool, tmp_path: Path) -> None:
    """Pinocchio crashes on a chain of 30 000, and compares the name of each link with those of all others."""
    (tmp_path / "arm.urdf").write_text(with_fixed_links(sizes.MOST_LINKS + 1, chain=chain))
    assert_refused(run("check", "arm.urdf", cwd=tmp_path), 2, "at most")


def test_a_chain_that_would_overflow_the_stack_is_refused_in_one_line(tmp_path: Path) -> None:
    """In a process of its own: before, it ended by a signal."""
    (tmp_path / "arm.urdf").write_text(with_fixed_links(sizes.MOST_LINKS - 3, chain=True))
    command = [sys.executable, "-m", "urdf_ident", "check", "arm.urdf"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert_refused(result, 2, "chain of joints is too long")


def test_the_longest_chain_that_is_accepted_is_exported() -> None:
    text = with_fixed_links(sizes.LONGEST_CHAIN - 2, chain=True)
    robot = Robot.from_urdf(text)
    theta = inertial_prior(robot).theta0[: 10 * robot.n]
    for root in (ET.fromstring(mjcf.mjcf_text(robot, theta)[0]), ET.fromstring(sdf.sdf_text(text)[0])):
        assert {"l1", "l2"} <= {element.get("name") for element in root.iter()}
    with pytest.raises(UrdfError, match="too long"):
        parse_urdf(with_fixed_links(sizes.LONGEST_CHAIN - 1, chain=True))


def test_a_long_name_in_a_header_is_refused_before_it_is_matched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its cost grew with the square of its length: 4.2 s for 20 000 characters."""
    robot = Robot.from_urdf(arm_urdf("zy"))
    rows = "\n".join(f"{0.01 * k},0.{k},0.{k},1" for k in range(9))
    (tmp_path / "log.csv").write_text(f"t,q_j1,q_j2,{'a_' * 10_000}\n{rows}\n")
    monkeypatch.setattr(headers, "_parse", lambda *_: pytest.fail("a name was matched"))
    with pytest.raises(LogError, match=r"too long, got (a_){100}… .20000 characters., expected at most 500 characters"):
        read_recording(tmp_path / "log.csv", robot)


def test_joint_names_in_headers_are_found_wherever_they_stand() -> None:
    """What the search for joints in a name must see, whatever its speed."""
    names = ("j", "j1", "a/b", "arm.j1")
    text = arm_urdf("zyxz")
    for k, name in enumerate(names, 1):
        text = text.replace(f'"j{k}"', f'"{name}"')
    robot = Robot.from_urdf(text)
    expected = {
        "q_j1": ("position", "j1"),
        "/states/position[j1]": ("position", "j1"),
        "pos/a/b": ("position", "a/b"),
        "/states/arm.j1/velocity": ("velocity", "arm.j1"),
        "/states/j1/effort": ("effort", "j1"),
        "j_pos": ("position", "j"),
        "xj1_pos": None,
        "j2_pos": None,
    }
    for name, meaning in expected.items():
        assert dict.fromkeys(headers.read_header([name], robot, {}, "log").columns) == (
            {} if meaning is None else {meaning: None}
        )


def test_a_long_misspelt_word_costs_no_more_than_a_short_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison of two words takes time that grows with the product of their lengths, and is made for every known word."""
    compared: list[int] = []
    import difflib

    original = difflib.get_close_matches

    def counted(word: str, known: object, *args: object, **kwargs: object) -> list[str]:
        compared.append(len(word) * sum(map(len, known)))  # type: ignore[arg-type, call-overload]
        return original(word, known, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(difflib, "get_close_matches", counted)
    with pytest.raises(ProjectError) as caught:
        check_known("key", "y" * 100_000, [f"{'x' * 400}{k}" for k in range(5000)], ProjectError)
    assert max(compared) <= 64 * 64 * 1000
    assert "and 4940 more" in str(caught.value)
