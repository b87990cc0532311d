"""Gautier and Venture's Cholesky test with tolerance, and the full test of a body."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from urdf_ident.consistency.cholesky import check_consistency, passes_cholesky
from urdf_ident.errors import EstimationError, ShapeError
from urdf_ident.model.inertia import from_com, pseudo_inertia


def body(principal, mass=2.0, com=(0.1, -0.2, 0.3), rotvec=(0.3, 0.5, -0.9)):
    rotation = Rotation.from_rotvec(rotvec).as_matrix()
    return from_com(mass, com, rotation @ np.diag(principal) @ rotation.T)


def test_tolerance_is_the_smallest_that_passes():
    theta = body([-0.005, 0.02, 0.03])
    assert not passes_cholesky(theta)
    assert not passes_cholesky(theta, 0.00499)
    assert passes_cholesky(theta, 0.00501)
    assert passes_cholesky(theta, -0.00501)  # D writes it negative
    entry = check_consistency(theta, ["link_3"]).per_body[0]
    assert entry.margins.cholesky_tolerance == pytest.approx(0.005)


def test_the_published_test_misses_the_triangle_inequality():
    theta = body([0.01, 0.02, 0.05])
    report = check_consistency(theta, ["link"])
    assert passes_cholesky(theta)
    assert not report.consistent
    assert report.per_body[0].margins.triangle == pytest.approx(-0.01)
    assert "the triangle inequality fails: 0.05 > 0.01 + 0.02, by 0.02 kg·m²" in report.per_body[0].words


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.floats(-0.05, 0.2), min_size=3, max_size=3),
    st.floats(-1, 5).filter(lambda m: abs(m) > 1e-3),
    st.lists(st.floats(-1, 1), min_size=3, max_size=3),
)
def test_full_test_equals_a_positive_definite_pseudo_inertia(principal, mass, com):
    principal = np.array(principal)
    moments = principal.sum() / 2 - principal
    if np.abs(moments).min() < 1e-9:  # on the boundary rounding decides
        return
    theta = body(principal, mass, com)
    truth = mass > 0 and moments.min() > 0
    assert check_consistency(theta, ["b"]).consistent == truth
    if truth:
        assert np.linalg.eigvalsh(pseudo_inertia(theta))[0] > 0


def test_counts_of_table_iii():
    thetas = [body([e, 0.06, 0.06]) for e in (0.02, -0.005, -0.015, -0.03, -0.05)]
    thetas.append(body([0.02, 0.03, 0.03], mass=-1.0))  # no tolerance helps a negative mass
    report = check_consistency(np.array(thetas), list("abcdef"))
    assert report.passing == ((0.0, 1), (-0.01, 2), (-0.02, 3), (-0.04, 4))
    assert report.offenders == tuple("bcdef")


def test_words_name_the_condition_and_the_correction():
    cases = {
        "mass is -1.5 kg, not positive": body([0.02, 0.03, 0.03], mass=-1.5),
        "eigenvalue -0.004": body([-0.004, 0.03, 0.03]),
        "by 0.02": body([0.01, 0.02, 0.05]),
        "no thickness": np.array([1.0, *np.zeros(9)]),
    }
    for words, theta in cases.items():
        entry = check_consistency(theta, ["b"]).per_body[0]
        assert words in entry.words
        assert "smallest correction" in entry.words


def test_parameters_after_the_bodies_are_ignored_and_the_report_is_json():
    theta = np.concatenate([body([0.02, 0.03, 0.03]), body([0.02, 0.03, 0.03], mass=-2), [-5.0, np.nan]])
    report = check_consistency(theta, ["one", "two"])
    data = json.loads(json.dumps(report.as_dict(), allow_nan=False))
    assert data["consistent"] is False
    assert [entry["body"] for entry in data["per_body"]] == ["one", "two"]
    assert set(data["per_body"][0]) >= {"body", "mass", "min_eigenvalue", "cholesky_tolerance", "margin"}
    assert data["per_body"][0]["margin"] == pytest.approx(0.01 / 0.02)  # second moments 0.02, 0.01, 0.01
    assert data["per_body"][1]["margin"] == "-inf"


def test_bad_input_is_refused():
    with pytest.raises(ShapeError, match="too few"):
        check_consistency(np.zeros(15), ["a", "b"])
    with pytest.raises(EstimationError, match="body 'b'"):
        check_consistency(np.concatenate([body([0.02, 0.03, 0.03]), np.full(10, np.nan)]), ["a", "b"])
