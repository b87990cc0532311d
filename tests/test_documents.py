"""YAML and JSON from unmatched: plain data or one line with the place, in bounded time and memory."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pytest
from numpy.typing import NDArray

from urdf_ident.errors import LogError, ProjectError
from urdf_ident.files.documents import json_text, parse_json, parse_yaml, plain, record


def yaml_error(text: str) -> str:
    with pytest.raises(ProjectError) as caught:
        parse_yaml(text, "p.yaml", ProjectError, "project file")
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_numbers_dates_and_empty_documents() -> None:
    data = parse_yaml("{a: 1e-2, b: -3E+4, c: 2024-01-02, d: 0x10, e: '1e3', f: on, g: null}", "p", ProjectError)
    assert data == {"a": 0.01, "b": -3e4, "c": "2024-01-02", "d": 16, "e": "1e3", "f": True, "g": None}
    assert parse_yaml("[0, -0, 007.5, '010', 12:00:00Z]", "p", ProjectError) == [0, 0, 7.5, "010", "12:00:00Z"]
    assert parse_yaml("", "p", ProjectError) is None
    assert parse_yaml("# nothing", "p", ProjectError) is None


def test_a_key_given_twice_names_both_lines() -> None:
    assert "key 'gain' is given twice" in yaml_error("drive:\n  gain: 1\n  joint_offset: 0\n  gain: 2\n")
    assert "lines 2 and 4" in yaml_error("drive:\n  gain: 1\n  joint_offset: 0\n  gain: 2\n")
    assert "lines 1 and 3" in yaml_error("drive: {}\nlog: {}\n'drive': {}\n")
    assert "lines 1 and 1" in yaml_error("a: [{b: 1, b: 2}]")
    assert parse_yaml("a: {b: 1}\nc: {b: 2}\n1: x\n'1': y", "p", ProjectError)["c"] == {"b": 2}


def test_merge_keys_still_merge() -> None:
    data = parse_yaml("base: &b {x: 1, y: 2}\nother:\n  <<: *b\n  y: 3", "p", ProjectError)
    assert data["other"] == {"x": 1, "y": 3}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[" * 3000, "nested more than"),
        ("a: " * 1 + "{a: " * 200 + "1" + "}" * 200, "nested more than"),
        ("a: " + "9" * 5000, "integer of 5000 digits"),
        ("a: &a [*a]", "aliases"),
        ("\n".join(["a0: &a0 [1, 1]"] + [f"a{k}: &a{k} [{', '.join([f'*a{k - 1}'] * 10)}]" for k in range(1, 9)]), "aliases"),
        ("a: !!python/object/apply:os.system [ls]", "line 1"),
        ("a: !!timestamp nonsense", "cannot be read"),
        ("a: !!int ''", "cannot be read"),
        ("? {a: 1}\n: 2", "line 1"),
        ("a: 1\nrate: 0100", "line 2: '0100' is a number of base 8"),
        ("rate: 1:30", "'1:30' is a number of base 60"),
        ("rate: -1:30.5", "base 60"),
        ("a: [1, 2", "line 1"),
        ("a: [1, 2", "close every bracket"),
        ("a:\n\tb: 1", "spaces instead of tabs"),
        ("a: \x01", "not YAML"),
        ("a: 1\n---\nb: 2", "line 2"),
    ],
)
def test_hostile_yaml_is_one_line(text: str, words: str) -> None:
    assert words in yaml_error(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[" * 200_000, "nested too deep"),
        ('{"a": ' * 200_000, "nested too deep"),
        ('{"a": 1' + "0" * 400 + "}", "integer of 401 digits"),
        ('{"a": 1e400}', "too large"),
        ('{"a": NaN}', "NaN is no number"),
        ('{"a": -Infinity}', "no number of JSON"),
        ('{"a": 1, "b": 2, "a": 3}', "key 'a' is given twice"),
        ('{"a": 1,}', "line 1"),
        ("", "an empty file"),
    ],
)
def test_hostile_json_is_one_line(text: str, words: str) -> None:
    with pytest.raises(LogError) as caught:
        parse_json(text, "r.json", LogError, "result")
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


# ---- Records as plain data and back ----


@dataclass(frozen=True)
class Inner:
    size: float


@dataclass(frozen=True, eq=False)
class Outer:
    values: NDArray[np.float64]
    places: NDArray[np.intp]
    names: tuple[str, ...]
    groups: tuple[tuple[int, ...], ...]
    inner: Inner | None
    several: tuple[Inner | None, ...] = ()
    limit: float | None = None
    by_name: Mapping[str, float] = field(default_factory=dict)


def test_a_record_comes_back_from_json_to_the_last_bit() -> None:
    made = Outer(np.array([[1 / 3, np.inf]]), np.array([2, 0]), ("a",), ((1, 2), ()), Inner(-np.inf), (None, Inner(2.0)), 0.1)
    back = record(Outer, json.loads(json.dumps(plain(made), allow_nan=False)))
    np.testing.assert_array_equal(back.values, made.values)
    assert back.places.tolist() == [2, 0]
    assert back.places.dtype == np.intp
    assert (back.names, back.groups, back.inner, back.several) == (made.names, made.groups, made.inner, made.several)
    assert (back.limit, back.by_name) == (0.1, {})


def test_only_fields_with_defaults_may_be_missing() -> None:
    least = {"values": [], "places": [], "names": [], "groups": [], "inner": None, "of another version": 1}
    assert record(Outer, least).several == ()
    with pytest.raises(KeyError, match="inner"):
        record(Outer, {key: value for key, value in least.items() if key != "inner"})


def test_numbers_beyond_json_are_text_and_letters_stay() -> None:
    assert json.loads(json_text({"größe": (np.inf, 1.0), "inner": Inner(np.nan)})) == {
        "größe": ["inf", 1.0],
        "inner": {"size": "nan"},
    }
    assert "größe" in json_text(["größe"])
