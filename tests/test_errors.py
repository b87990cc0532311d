"""Errors: one line that says what, where, got, expected and what to do, and builtins that a user would catch."""

from __future__ import annotations

import inspect
import pickle

import pytest

from urdf_ident import errors
from urdf_ident.errors import LogError, QualityError, ShapeError, SolverError, UrdfIdentError, check_shape, nearest

CLASSES = [
    item
    for _, item in inspect.getmembers(errors, inspect.isclass)
    if issubclass(item, UrdfIdentError) and item is not UrdfIdentError
]


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_every_error_is_ours_and_a_builtin(kind: type[UrdfIdentError]) -> None:
    builtin = [
        base for base in kind.__mro__ if base.__module__ == "builtins" and base not in (object, BaseException, Exception)
    ]
    assert builtin, "no builtin that a user would catch"
    error = kind("it broke", where="run.csv, row 3", got=1, expected="2", remedy="turn it\n  off")
    assert str(error) == "run.csv, row 3: it broke, got 1, expected 2; turn it off"
    assert (error.what, error.where, error.got, error.expected) == ("it broke", "run.csv, row 3", 1, "2")


def test_falsy_values_are_still_shown() -> None:
    assert str(LogError("bad count", got=0, expected=0.0)) == "bad count, got 0, expected 0.0"
    assert str(LogError("bad name", got="")).startswith("bad name, got")


def test_multi_line_causes_become_one_line() -> None:
    assert "\n" not in str(LogError("solver said:\n\tinfeasible\r\n", got="a\nb", remedy="c\nd"))


def test_evidence_is_carried() -> None:
    error = QualityError("refused", findings=(1, 2), where="log")
    assert error.findings == (1, 2)
    assert isinstance(error, LogError)
    assert SolverError("failed", status="infeasible").status == "infeasible"


def test_errors_survive_another_process() -> None:
    error = pickle.loads(pickle.dumps(LogError("it broke")))
    assert isinstance(error, LogError)
    assert "it broke" in str(error)


def test_nearest_suggests_or_lists() -> None:
    assert nearest("viscos", ["viscous", "coulomb"]) == "did you mean 'viscous'?"
    assert nearest("zzz", ["viscous", "coulomb"]) == "valid: viscous, coulomb"


@pytest.mark.parametrize("got", [(5, 7), (5,), (5, 6, 1), ()])
def test_check_shape_refuses(got: tuple[int, ...]) -> None:
    with pytest.raises(ShapeError, match=r"wrong shape of 'q', got .*, expected \(N, 6\)"):
        check_shape("q", got, ("N", 6))


def test_check_shape_letters_stand_for_any_length() -> None:
    check_shape("q", (0, 6), ("N", 6))
    check_shape("q", (9, 6), ("N", "n"))
