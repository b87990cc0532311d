"""Inertial parameters against Pinocchio's own Inertia and SE3, and against integrals over point masses."""

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from urdf_ident.consistency.repair import check_consistency
from urdf_ident.model.inertia import from_com, margins, pseudo_inertia, to_com, transform, transform_matrix


def cloud(seed: int, points: int = 7) -> tuple[np.ndarray, np.ndarray]:
    """Point masses: a body that is certainly physically consistent."""
    rng = np.random.default_rng(seed)
    return rng.uniform(0.1, 2.0, points), rng.normal(size=(points, 3))


def cloud_theta(mass: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Ten parameters by summation over points, in Pinocchio's order."""
    x, y, z = at.T
    return np.array(
        [
            mass.sum(),
            mass @ x,
            mass @ y,
            mass @ z,
            mass @ (y**2 + z**2),
            -(mass @ (x * y)),
            mass @ (x**2 + z**2),
            -(mass @ (x * z)),
            -(mass @ (y * z)),
            mass @ (x**2 + y**2),
        ]
    )


@pytest.mark.parametrize("seed", range(5))
def test_against_point_masses_and_pinocchio(seed: int) -> None:
    mass, at = cloud(seed)
    theta = cloud_theta(mass, at)
    m, c, inertia = to_com(theta)
    central = at - c
    np.testing.assert_allclose(c, mass @ at / mass.sum(), rtol=1e-12)
    expected = sum(w * (p @ p * np.eye(3) - np.outer(p, p)) for w, p in zip(mass, central, strict=True))
    np.testing.assert_allclose(inertia, expected, atol=1e-12)
    np.testing.assert_allclose(from_com(m, c, inertia), theta, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(pin.Inertia(float(m), c, inertia).toDynamicParameters(), theta, rtol=1e-12, atol=1e-13)
    homogeneous = np.column_stack([at, np.ones(len(at))])
    np.testing.assert_allclose(pseudo_inertia(theta), (homogeneous * mass[:, None]).T @ homogeneous, atol=1e-12)
    pinocchio = pin.PseudoInertia.FromDynamicParameters(theta).toMatrix()
    np.testing.assert_allclose(pseudo_inertia(theta), pinocchio, rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize("seed", range(5))
def test_change_of_frame_against_pin_se3(seed: int) -> None:
    placement = pin.SE3.Random()
    theta = cloud_theta(*cloud(seed))
    m, c, inertia = to_com(theta)
    expected = placement.act(pin.Inertia(float(m), c, inertia)).toDynamicParameters()
    moved = transform(theta, placement.rotation, placement.translation)
    np.testing.assert_allclose(moved, expected, rtol=1e-10, atol=1e-11)
    np.testing.assert_allclose(
        transform_matrix(placement.rotation, placement.translation) @ theta, expected, rtol=1e-10, atol=1e-11
    )
    back = placement.inverse()
    np.testing.assert_allclose(transform(moved, back.rotation, back.translation), theta, rtol=1e-10, atol=1e-10)
    mass, at = cloud(seed)
    by_points = cloud_theta(mass, at @ placement.rotation.T + placement.translation)
    np.testing.assert_allclose(moved, by_points, rtol=1e-10, atol=1e-11)


def test_margins_of_a_rod_are_on_the_boundary() -> None:
    length, mass = 0.5, 1.4
    exact = margins(from_com(mass, [0, 0, 0.25], np.diag([mass * length**2 / 12] * 2 + [0.0])))
    assert exact.min_eigenvalue == pytest.approx(0.0, abs=1e-15)
    assert exact.relative == pytest.approx(0.0, abs=1e-12)
    radius = 0.01
    thick = mass * (3 * radius**2 + length**2) / 12
    rod = margins(from_com(mass, [0, 0, 0.25], np.diag([thick, thick, mass * radius**2 / 2])))
    assert rod.consistent
    # principal second moments of a cylinder: m r²/4 twice and m l²/12
    assert rod.relative == pytest.approx((radius**2 / 4) / (length**2 / 12), rel=1e-9)
    assert rod.triangle == pytest.approx(mass * radius**2 / 4, rel=1e-9)


# ---- Gautier and Venture's Cholesky test with tolerance, and the full test of a body ----


def body(principal, mass=2.0, com=(0.1, -0.2, 0.3), rotvec=(0.3, 0.5, -0.9)):
    rotation = Rotation.from_rotvec(rotvec).as_matrix()
    return from_com(mass, com, rotation @ np.diag(principal) @ rotation.T)


def test_the_published_test_misses_the_triangle_inequality():
    theta = body([0.01, 0.02, 0.05])
    report = check_consistency(theta, ["link"])
    assert margins(theta).passes(0.0)
    assert not report.consistent
    assert report.per_body["link"].margins.triangle == pytest.approx(-0.01)
    assert "the triangle inequality fails: 0.05 > 0.01 + 0.02, by 0.02 kg·m²" in report.per_body["link"].words
    assert "smallest correction" in report.per_body["link"].words


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
