"""From base back to standard parameters: closest to the prior, frozen, essential (Gautier 2013, 27-33)."""

import numpy as np
import pinocchio as pin
import pytest
from scipy.linalg import qr, solve_triangular

from urdf_ident.consistency.nearest import base_matrix, essential, frozen, minimum_norm
from urdf_ident.errors import EstimationError, ShapeError
from urdf_ident.model.prior import inertial_prior
from urdf_ident.model.robot import Robot

URDF = """<robot name="arm"><link name="base"/>{links}</robot>"""
LINK = """<link name="l{i}"><inertial><origin xyz="0.05 {y} 0.1"/><mass value="{m}"/>
<inertia ixx="0.04" ixy="0.002" iyy="0.05" ixz="-0.003" iyz="0.001" izz="0.03"/></inertial></link>
<joint name="j{i}" type="{kind}"><parent link="{parent}"/><child link="l{i}"/><origin xyz="0.1 0.05 0.3" rpy="0.4 {i} 0"/>
<axis xyz="0 {ay} {az}"/><limit lower="-2" upper="2" velocity="1" effort="10"/></joint>"""


@pytest.fixture(scope="module")
def problem():
    """A 4-joint arm's stacked regressor, its reduction by pivoted QR, noisy torques and a prior off by 20 %."""
    kinds = {3: "prismatic"}
    links = "".join(
        LINK.format(
            i=i,
            y=0.02 * i,
            m=5 - i,
            kind=kinds.get(i, "revolute"),
            parent="base" if i == 1 else f"l{i - 1}",
            ay=(i + 1) % 2,
            az=i % 2,
        )
        for i in range(1, 5)
    )
    robot = Robot.from_urdf(URDF.format(links=links))
    rng = np.random.default_rng(0)
    data = robot.model.createData()
    W = np.vstack([pin.computeJointTorqueRegressor(robot.model, data, *rng.normal(size=(3, 4))) for _ in range(200)])
    prior = inertial_prior(robot)
    truth = prior.theta0 * rng.uniform(0.8, 1.2, 40)
    Y = W @ truth + 0.1 * rng.normal(size=len(W))
    norms = np.linalg.norm(W, axis=0)
    live = np.flatnonzero(norms > 1e-10 * norms.max())
    _, R, order = qr(W[:, live] / norms[live], mode="economic", pivoting=True)
    rank = int(np.sum(np.abs(np.diag(R)) > 1e-9 * abs(R[0, 0])))
    independent, dependent = live[order[:rank]], live[order[rank:]]
    scaled = solve_triangular(R[:rank, :rank], R[:rank, rank:])
    K = scaled * norms[dependent] / norms[independent][:, None]
    beta = np.linalg.lstsq(W[:, independent], Y, rcond=None)[0]
    return W, Y, prior, independent, dependent, K, beta


def test_minimum_norm_equals_the_svd_of_the_regressor(problem):
    W, Y, prior, independent, dependent, K, beta = problem
    u, s, vt = np.linalg.svd(W, full_matrices=False)
    b = len(independent)
    expected = prior.theta0 + vt[:b].T @ (u[:, :b].T @ (Y - W @ prior.theta0) / s[:b])
    np.testing.assert_allclose(minimum_norm(prior.theta0, independent, dependent, K, beta), expected, atol=1e-10)


@pytest.mark.parametrize("weighted", [False, True])
def test_minimum_norm_explains_the_data_and_no_null_step_is_closer(problem, weighted):
    W, _, prior, independent, dependent, K, beta = problem
    root = prior.root if weighted else np.eye(40)
    theta = minimum_norm(prior.theta0, independent, dependent, K, beta, metric_root=prior.root if weighted else None)
    best = W[:, independent] @ beta
    np.testing.assert_allclose(W @ theta, best, atol=1e-9 * np.abs(best).max())
    seen = np.linalg.norm(W, axis=0) > 1e-9
    null = np.linalg.svd(W[:, seen])[2][len(independent) :]
    change = (root @ (theta - prior.theta0)) @ root[:, seen] @ null.T
    np.testing.assert_allclose(change, 0, atol=1e-7 * np.linalg.norm(root @ (theta - prior.theta0)) * np.linalg.norm(root))


def test_metric_changes_the_answer_and_is_closer_in_it(problem):
    _, _, prior, independent, dependent, K, beta = problem
    plain = minimum_norm(prior.theta0, independent, dependent, K, beta)
    metric = minimum_norm(prior.theta0, independent, dependent, K, beta, metric_root=prior.root)
    assert prior.distance(metric) < 0.9 * prior.distance(plain)
    assert np.linalg.norm(plain - prior.theta0) < np.linalg.norm(metric - prior.theta0)


def test_unseen_parameters_keep_the_prior(problem):
    W, _, prior, independent, dependent, K, beta = problem
    unseen = np.linalg.norm(W, axis=0) < 1e-9
    assert unseen.any()
    for theta in (
        minimum_norm(prior.theta0, independent, dependent, K, beta),
        minimum_norm(prior.theta0, independent, dependent, K, beta, metric_root=prior.root),
        frozen(prior.theta0, independent, dependent, K, beta),
    ):
        np.testing.assert_array_equal(theta[unseen], prior.theta0[unseen])


def test_frozen_keeps_the_dependent_ones_and_explains_the_data(problem):
    W, _, prior, independent, dependent, K, beta = problem
    theta = frozen(prior.theta0, independent, dependent, K, beta)
    np.testing.assert_array_equal(theta[dependent], prior.theta0[dependent])
    np.testing.assert_allclose(W @ theta, W[:, independent] @ beta, atol=1e-9)
    np.testing.assert_allclose(base_matrix(40, independent, dependent, K) @ theta, beta, rtol=1e-12)


def test_prior_with_the_right_base_parameters_is_left_alone(problem):
    _, _, prior, independent, dependent, K, _ = problem
    beta = base_matrix(40, independent, dependent, K) @ prior.theta0
    for theta in (
        minimum_norm(prior.theta0, independent, dependent, K, beta),
        frozen(prior.theta0, independent, dependent, K, beta),
    ):
        np.testing.assert_allclose(theta, prior.theta0, atol=1e-13)


def test_essential_is_least_squares_of_the_difference_on_its_columns(problem):
    W, Y, prior, independent, dependent, K, _ = problem
    keep = [0, 3, 4, 7]
    columns = independent[keep]
    expected = prior.theta0.copy()
    expected[columns] += np.linalg.lstsq(W[:, columns], Y - W @ prior.theta0, rcond=None)[0]
    orthogonal, R = np.linalg.qr(W[:, independent])
    theta = essential(prior.theta0, independent, dependent, K, R, orthogonal.T @ Y, keep)
    np.testing.assert_allclose(theta, expected, atol=1e-9)
    mask = np.zeros(len(independent), dtype=bool)
    mask[keep] = True
    np.testing.assert_array_equal(essential(prior.theta0, independent, dependent, K, R, orthogonal.T @ Y, mask), theta)
    everything = essential(prior.theta0, independent, dependent, K, R, orthogonal.T @ Y, range(len(independent)))
    np.testing.assert_allclose(everything[dependent], prior.theta0[dependent])


def test_wrong_shapes_and_indices_are_refused():
    with pytest.raises(ShapeError, match="overlap"):
        frozen(np.zeros(4), [0, 1], [1], np.zeros((2, 1)), np.zeros(2))
    with pytest.raises(ShapeError, match="overlap or leave"):
        frozen(np.zeros(4), [0, 4], [1], np.zeros((2, 1)), np.zeros(2))
    with pytest.raises(ShapeError, match="'K'"):
        minimum_norm(np.zeros(4), [0, 1], [2], np.zeros((1, 1)), np.zeros(2))
    with pytest.raises(ShapeError, match="'beta'"):
        minimum_norm(np.zeros(4), [0, 1], [2], np.zeros((2, 1)), np.zeros(3))
    with pytest.raises(EstimationError, match="singular"):
        minimum_norm(np.zeros(3), [0, 1], [2], np.zeros((2, 1)), np.zeros(2), metric_root=np.diag([1.0, 0.0, 1.0]))
    with pytest.raises(EstimationError, match="linearly dependent"):
        essential(np.zeros(2), [0, 1], [], np.zeros((2, 0)), np.ones((2, 2)), np.ones(2), [0, 1])
