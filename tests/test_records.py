"""Records as plain data and back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pytest
from numpy.typing import NDArray

from urdf_ident.files.records import json_text, plain, record


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
