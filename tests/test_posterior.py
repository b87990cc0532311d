"""What data and prior say together, against direct inverses."""

import numpy as np
import pytest
from conftest import arm_urdf

from urdf_ident.errors import EstimationError, ShapeError
from urdf_ident.model.parameters import Parameter, inertial_parameters
from urdf_ident.model.posterior import Posterior
from urdf_ident.model.prior import inertial_prior, with_joint_terms
from urdf_ident.model.robot import Robot


@pytest.fixture
def chain():
    robot = Robot.from_urdf(arm_urdf("zy"))
    terms = tuple(Parameter(f"Fv_{joint}", "Fv", joint, "N·m·s/rad", True) for joint in robot.joints)
    parameters = inertial_parameters(robot) + terms
    return with_joint_terms(inertial_prior(robot), parameters, [2.0, 0.5]), parameters


def test_from_data_is_the_definition(chain):
    prior, _ = chain
    rng = np.random.default_rng(10)
    for rows in (4, 20, 60):
        factor = rng.normal(size=(rows, 22)) * 3
        gram = factor.T @ factor
        expected = np.clip(np.diag(np.linalg.solve(gram + prior.precision, gram)), 0, 1)
        np.testing.assert_allclose(Posterior(factor, prior).from_data, expected, atol=1e-8)


def test_the_weight_of_the_prior_divides_the_datas_information(chain):
    prior, _ = chain
    rng = np.random.default_rng(21)
    R, weight = rng.normal(size=(15, len(prior.theta0))) / prior.std, 7.0
    information = R.T @ R / weight
    covariance = np.linalg.inv(information + prior.precision)
    np.testing.assert_allclose(Posterior(R, prior, weight).std, np.sqrt(np.diag(covariance)), rtol=1e-8)
    np.testing.assert_allclose(
        Posterior(R, prior, weight).from_data, np.clip(np.diag(covariance @ information), 0, 1), atol=1e-9
    )
    assert np.all(Posterior(R, prior, weight).std <= prior.std * (1 + 1e-12))
    np.testing.assert_allclose(Posterior(R, prior, np.inf).std, prior.std, rtol=1e-9)


def test_the_mean_is_the_normal_equations(chain):
    prior, _ = chain
    rng = np.random.default_rng(22)
    R, rho, weight = rng.normal(size=(15, len(prior.theta0))) / prior.std, rng.normal(size=15), 7.0
    expected = np.linalg.solve(R.T @ R / weight + prior.precision, R.T @ rho / weight + prior.precision @ prior.theta0)
    np.testing.assert_allclose(Posterior(R, prior, weight).mean(rho), expected, rtol=1e-8)


def test_a_first_fit_to_the_same_data_is_no_knowledge(chain):
    prior, _ = chain
    known = prior.without_first_fit
    np.testing.assert_allclose(known.std, np.append(prior.std[:20], 10.0 * prior.std[20:]), rtol=1e-12)
    np.testing.assert_array_equal(known.theta0, prior.theta0)


def test_from_data_is_zero_without_data_and_one_with_much(chain):
    prior, _ = chain
    np.testing.assert_array_equal(Posterior(np.zeros((0, 22)), prior).from_data, 0.0)
    np.testing.assert_array_equal(Posterior(np.zeros((5, 22)), prior).from_data, 0.0)
    np.testing.assert_allclose(Posterior(1e6 * np.diag(1 / prior.std), prior).from_data, 1.0, atol=1e-6)


def test_from_data_with_badly_scaled_columns_stays_exact(chain):
    """One column seen 1e9 times better than its neighbours: the Gram matrix would lose the others."""
    prior, _ = chain
    seen = np.zeros((1, 22))
    seen[0, 0] = 1e9
    share = Posterior(seen, prior).from_data
    assert share[0] == pytest.approx(1.0)
    np.testing.assert_allclose(share[10:], 0.0, atol=1e-9)


def test_wrong_input_is_refused(chain):
    prior, _ = chain
    with pytest.raises(ShapeError, match="'R'"):
        Posterior(np.zeros((3, 5)), prior).std
    with pytest.raises(EstimationError, match="finite"):
        Posterior(np.full((3, 22), np.nan), prior).from_data
