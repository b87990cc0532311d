"""From base back to standard parameters: closest to the prior, frozen, essential (Gautier 2013, 27-33)."""

import numpy as np
import pinocchio as pin
import pytest
from scipy.linalg import qr, solve_triangular

from urdf_ident.consistency.nearest import essential_to_prior, minimum_norm
from urdf_ident.model.base import BaseParameters
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
    zero = np.setdiff1d(np.arange(40), live)
    base = BaseParameters(tuple(f"p{k}" for k in range(40)), independent, dependent, zero, K, 1e9)
    return W, Y, prior, base, beta


def test_minimum_norm_equals_the_svd_of_the_regressor(problem):
    W, Y, prior, base, beta = problem
    u, s, vt = np.linalg.svd(W, full_matrices=False)
    b = len(base)
    expected = prior.theta0 + vt[:b].T @ (u[:, :b].T @ (Y - W @ prior.theta0) / s[:b])
    np.testing.assert_allclose(minimum_norm(base, prior.theta0, beta), expected, atol=1e-10)


@pytest.mark.parametrize("weighted", [False, True])
def test_minimum_norm_explains_the_data_and_no_null_step_is_closer(problem, weighted):
    W, _, prior, base, beta = problem
    root = prior.root if weighted else np.eye(40)
    theta = minimum_norm(base, prior.theta0, beta, metric_root=prior.root if weighted else None)
    best = W[:, base.independent] @ beta
    np.testing.assert_allclose(W @ theta, best, atol=1e-9 * np.abs(best).max())
    seen = np.linalg.norm(W, axis=0) > 1e-9
    null = np.linalg.svd(W[:, seen])[2][len(base) :]
    change = (root @ (theta - prior.theta0)) @ root[:, seen] @ null.T
    np.testing.assert_allclose(change, 0, atol=1e-7 * np.linalg.norm(root @ (theta - prior.theta0)) * np.linalg.norm(root))


def test_essential_is_least_squares_of_the_difference_on_its_columns(problem):
    W, Y, prior, base, _ = problem
    keep = [0, 3, 4, 7]
    columns = base.independent[keep]
    expected = prior.theta0.copy()
    expected[columns] += np.linalg.lstsq(W[:, columns], Y - W @ prior.theta0, rcond=None)[0]
    factor = np.linalg.qr(np.column_stack([W[:, base.independent], Y]), mode="r")
    theta = essential_to_prior(factor, base, prior.theta0, keep).theta
    np.testing.assert_allclose(theta, expected, atol=1e-9)
    mask = np.zeros(len(base), dtype=bool)
    mask[keep] = True
    np.testing.assert_array_equal(essential_to_prior(factor, base, prior.theta0, mask).theta, theta)
    everything = essential_to_prior(factor, base, prior.theta0, range(len(base))).theta
    np.testing.assert_allclose(everything[base.dependent], prior.theta0[base.dependent])
