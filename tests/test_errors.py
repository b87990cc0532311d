"""Errors: one line that says what, where, got, expected and what to do, and builtins that a user would catch."""

import pytest

from urdf_ident.errors import LogError, QualityError, ShapeError, SolverError, check_shape, nearest


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
