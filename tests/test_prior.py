"""The prior: what the URDF says, how sure it is, and what had to be repaired."""

from collections.abc import Sequence

import numpy as np
import pytest
from conftest import arm_urdf
from scipy.spatial.transform import Rotation
from urdf_samples import inertial_text, point_masses, serial_urdf

from urdf_ident.model.inertia import from_com, margins, nearest_physical, to_com, transform
from urdf_ident.model.prior import (
    Posterior,
    inertial_prior,
    with_joint_terms,
)
from urdf_ident.model.robot import Robot
from urdf_ident.model.terms import Parameter, inertial_parameters


def inertial(mass: float, height: float = 0.0, principal: Sequence[float] = (0.01, 0.01, 0.01)) -> str:
    """A body whose centre of mass is on the z axis."""
    return inertial_text(from_com(mass, [0.0, 0.0, height], np.diag(principal)))


def test_nearest_physical_repairs_the_triangle_and_keeps_mass_and_centre():
    rotation = Rotation.from_rotvec([0.3, -0.8, 0.2]).as_matrix()
    broken = from_com(2.0, [0.1, 0.2, -0.3], rotation @ np.diag([0.01, 0.02, 0.05]) @ rotation.T)
    assert not margins(broken).consistent
    fixed = nearest_physical(broken, 1e-2)
    assert margins(fixed).relative == pytest.approx(1e-2)
    np.testing.assert_allclose(fixed[:4], broken[:4], atol=1e-15)
    # closest: second moments are (0.03, 0.02, -0.01) along the axes, only the last may change
    _, _, inertia = to_com(fixed)
    along = rotation.T @ inertia @ rotation
    np.testing.assert_allclose(along, np.diag([0.02 + 3e-4, 0.03 + 3e-4, 0.05]), atol=1e-12)


def test_nonphysical_and_massless_bodies_are_repaired_and_said():
    robot = Robot.from_urdf(
        serial_urdf(
            [
                "",  # massless: PUMA 560's first link
                inertial(4.0, 0.2, (0.01, 0.02, 0.05)),  # breaks the triangle
                inertial(2.0, 0.1, (-0.005, 0.02, 0.02)),  # TX40's third link
                inertial(1.0, 0.1, (0.0, 0.0, 0.0)),  # a point
                inertial(9.0, 0.1, (0.1, 0.1, 0.1)),
            ]
        )
    )
    prior = inertial_prior(robot)
    assert all(margins(theta).consistent for theta in prior.theta0.reshape(-1, 10))
    assert prior.origin[::10] == ("guess", "repaired", "repaired", "repaired", "urdf")
    assert len(prior.notes) == 4
    assert "no mass" in prior.notes[0]
    assert "triangle inequality by 0.02" in prior.notes[1]
    assert "negative inertia" in prior.notes[2]
    assert "no thickness" in prior.notes[3]
    assert all(f"'l{i + 1}'" in note for i, note in enumerate(prior.notes))
    assert prior.theta0[0] == pytest.approx(4.0, rel=0.2)  # about as long as the others, at their mean density
    np.testing.assert_allclose(prior.theta0[[10, 20, 30]], [4.0, 2.0, 1.0])
    assert np.isfinite(prior.root).all()


def test_a_robot_without_any_mass_still_has_a_prior():
    prior = inertial_prior(Robot.from_urdf(serial_urdf(["", ""])))
    tube = np.pi * (0.04 * 0.8) ** 2 * (0.4 + 4 / 3 * 0.04 * 0.8)
    assert prior.theta0[0] == pytest.approx(1000 * tube)  # a capsule to the next joint
    assert prior.theta0[10] == pytest.approx(prior.theta0[0])  # a ball of the same volume: nothing tells its direction
    assert all(margins(theta).consistent for theta in prior.theta0.reshape(-1, 10))


@pytest.mark.parametrize("others", [3, 2])
def test_equal_inertials_of_all_links_are_placeholders(others):
    ball = inertial(1.0, 0.0, (1.0, 1.0, 1.0))
    prior = inertial_prior(Robot.from_urdf(serial_urdf([inertial(3.0), *[ball] * others])))
    assert prior.guessed.tolist() == [False, *[others == 3] * others]


def test_fixed_children_are_what_the_carrier_does_not_hold():
    rng = np.random.default_rng(7)
    tool = point_masses(rng)
    text = serial_urdf([inertial_text(point_masses(rng)) for _ in range(2)], [("0.1 0 0.2", "0.4 0.5 -1", inertial_text(tool))])
    robot = Robot.from_urdf(text)
    assert [body.carrier.name for body in robot.bodies] == [body.name for body in robot.bodies]
    children = [body.theta - body.carrier.theta for body in robot.bodies]
    np.testing.assert_array_equal(children[0], 0.0)
    rotation = Rotation.from_euler("xyz", [0.4, 0.5, -1]).as_matrix()
    np.testing.assert_allclose(children[1], transform(tool, rotation, [0.1, 0, 0.2]), atol=1e-12)


@pytest.fixture
def chain():
    rng = np.random.default_rng(9)
    robot = Robot.from_urdf(serial_urdf([inertial_text(point_masses(rng)) for _ in range(2)]))
    terms = []
    for joint in robot.joints:
        terms += [Parameter(f"Fv_{joint}", "Fv", joint, "N·m·s/rad", True), Parameter(f"off_{joint}", "off", joint, "N·m")]
    return inertial_prior(robot), inertial_parameters(robot) + tuple(terms)


def test_a_term_the_first_fit_cannot_see_is_zero_as_in_the_urdf_and_said(chain):
    prior, parameters = chain
    full = with_joint_terms(prior, parameters, [2.0, -0.5, np.nan, 0.3])
    assert full.theta0[22] == 0.0
    assert full.std[22] == pytest.approx(2.0)  # what other joints have is possible, not expected
    assert full.origin[22] == "guess"
    assert "Fv_j2" in full.notes[-1]
    assert np.isfinite(full.root).all()


@pytest.fixture
def posterior_arm():
    robot = Robot.from_urdf(arm_urdf("zy"))
    terms = tuple(Parameter(f"Fv_{joint}", "Fv", joint, "N·m·s/rad", True) for joint in robot.joints)
    parameters = inertial_parameters(robot) + terms
    return with_joint_terms(inertial_prior(robot), parameters, [2.0, 0.5]), parameters


def test_from_data_with_badly_scaled_columns_stays_exact(posterior_arm):
    """One column seen 1e9 times better than its neighbours: the Gram matrix would lose the others."""
    prior, _ = posterior_arm
    seen = np.zeros((1, 22))
    seen[0, 0] = 1e9
    share = Posterior(seen, prior).from_data
    assert share[0] == pytest.approx(1.0)
    np.testing.assert_allclose(share[10:], 0.0, atol=1e-9)
