"""Physically consistent parameters by semidefinite programming, against independent minimisers and closed forms."""

from dataclasses import replace

import cvxpy as cp
import numpy as np
import pinocchio as pin
import pytest
from urdf_samples import inertial_text, point_masses, serial_urdf

from urdf_ident.consistency.conic import ConicForm
from urdf_ident.consistency.constraints import (
    EPSILON,
    centres_in_boxes,
    ellipsoid,
    known_total,
    mass_limits,
    matter_in_ellipsoids,
    remainders,
)
from urdf_ident.consistency.lmi import PRIMAL_TOLERANCE, LmiProblem
from urdf_ident.consistency.repair import check_consistency
from urdf_ident.errors import SolverError
from urdf_ident.model.inertia import (
    BODY_PARAMETERS,
    PSEUDO_BASIS,
    from_com,
    from_pseudo_inertia,
    margins,
    pseudo_inertia,
    to_com,
)
from urdf_ident.model.prior import Prior, inertial_prior, metric_root, with_joint_terms
from urdf_ident.model.robot import Robot
from urdf_ident.model.terms import Parameter, inertial_parameters


def regressor(robot, q, v, a):
    data = robot.model.createData()
    return np.vstack([pin.computeJointTorqueRegressor(robot.model, data, *row) for row in zip(q, v, a, strict=True)])


class Setup:
    """A chain with friction whose URDF is wrong, and noisy torques of a poor motion."""

    def __init__(self, n, seed, samples=40, noise=0.5):
        rng = np.random.default_rng(seed)
        self.robot = Robot.from_urdf(serial_urdf([inertial_text(point_masses(rng)) for _ in range(n)]))
        joints = self.robot.joints
        terms = tuple(Parameter(f"Fv_{joint}", "Fv", joint, "N·m·s/rad", True) for joint in joints)
        self.parameters = inertial_parameters(self.robot) + terms
        self.prior = with_joint_terms(inertial_prior(self.robot), self.parameters, rng.uniform(0.5, 2.0, n))
        self.truth = self.prior.theta0.copy()
        for i in range(n):  # a different robot: every body moved along a random physical direction
            factor = np.linalg.cholesky(pseudo_inertia(self.prior.theta0[10 * i : 10 * i + 10]))
            half = np.eye(4) + 0.15 * rng.normal(size=(4, 4))
            self.truth[10 * i : 10 * i + 10] = from_pseudo_inertia(factor @ half @ half.T @ factor.T)
        self.truth[10 * n :] *= rng.uniform(0.7, 1.3, n)
        self.W, tau = self.columns(rng, samples, amplitude=0.3), None
        tau = self.W @ self.truth
        self.R, self.rho = self.W / noise, (tau + noise * rng.normal(size=len(tau))) / noise

    def columns(self, rng, samples, amplitude):
        n = self.robot.n
        q, v, a = amplitude * rng.normal(size=(3, samples, n))
        friction = np.zeros((samples, n, n))
        friction[:, np.arange(n), np.arange(n)] = v
        return np.hstack([regressor(self.robot, q, v, a), friction.reshape(-1, n)])

    def problem(self, *more, **settings):
        """The problem with limits of the masses and more constraints."""
        limits = mass_limits(self.prior, self.parameters)
        return LmiProblem(self.prior, self.parameters, [*limits, *(one for some in more for one in some)], **settings)

    def total(self, kilograms):
        return known_total(self.prior, kilograms)


@pytest.fixture(scope="module")
def poor():
    return Setup(4, seed=0, samples=8)


def physical(theta, n):
    return check_consistency(theta, [f"b{i}" for i in range(n)]).consistent


def test_without_data_the_answer_is_the_prior(poor):
    for distance in ("euclid", "entropic"):
        solution = poor.problem(distance=distance).solve(np.zeros((0, 44)), np.zeros(0))
        assert poor.prior.distance(solution.theta) < 1e-3
        assert solution.status == "optimal"


def test_placeholder_inertials_are_left_behind():
    """A URDF of 1 kg balls for a robot of 2 to 15 kg links: why the entropic distance is the default."""
    errors = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        truth = np.concatenate([point_masses(rng, rng.uniform(2, 15)) for _ in range(4)])
        # equal masses would be recognised as placeholders, and replaced by the geometry
        balls = [from_com(mass, [0.0, 0.0, 0.1], 0.01 * np.eye(3)) for mass in (1.0, 1.01, 1.02, 1.03)]
        robot = Robot.from_urdf(serial_urdf(list(map(inertial_text, balls))))
        prior, noise = inertial_prior(robot), 0.5
        W, test = (regressor(robot, *a * rng.normal(size=(3, k, 4))) for a, k in ((0.5, 20), (2.0, 100)))
        rho = W @ truth / noise + rng.normal(size=len(W))
        thetas = [prior.theta0]
        for distance in ("euclid", "entropic"):
            thetas.append(LmiProblem(prior, inertial_parameters(robot), distance=distance).solve(W / noise, rho).theta)
            assert physical(thetas[-1], 4)
        errors.append([np.linalg.norm(test @ (theta - truth)) / np.linalg.norm(test @ truth) for theta in thetas])
    start, euclid, entropic_ = np.median(errors, axis=0)
    assert start > 0.8
    assert entropic_ < 0.15
    assert entropic_ < 0.8 * euclid


def test_masses_stay_plausible_where_conditions_alone_let_them_run_away(poor):
    for weight in (1.0, 1e-6):
        solution = LmiProblem(poor.prior, poor.parameters).solve(poor.R, poor.rho, weight)
        ratio = solution.theta[0:40:10] / poor.prior.theta0[0:40:10]
        assert np.all((ratio > 0.0999) & (ratio < 10.001))
    free = LmiProblem(poor.prior, poor.parameters, ()).solve(poor.R, poor.rho, 1e-6)
    assert free.theta[0] > 15 * poor.prior.theta0[0]
    assert "l1: mass at 10 times the prior's" in solution.active


def test_negative_friction_is_not_possible_unless_allowed(poor):
    rho = poor.rho - 10 * poor.R[:, 41]  # data that ask for Fv_j2 ten lower
    held = LmiProblem(poor.prior, poor.parameters).solve(poor.R, rho, 0.01)
    assert held.theta[41] == 0.0  # not a little below, as solvers leave it
    assert "Fv_j2 ≥ 0" in held.active
    anything = [replace(parameter, nonnegative=False) for parameter in poor.parameters]
    free = LmiProblem(poor.prior, anything).solve(poor.R, rho, 0.01)
    assert free.theta[41] < -1.0


def test_total_mass_is_met_exactly_and_the_gap_knows_its_multiplier(poor):
    total = 1.4 * poor.prior.theta0[0:40:10].sum()
    solution = poor.problem(poor.total(total)).solve(poor.R, poor.rho)
    assert solution.theta[0:40:10].sum() == pytest.approx(total, rel=1e-7)
    assert solution.status == "optimal"
    assert solution.notes == ()
    between = poor.problem(poor.total((total, 2 * total))).solve(poor.R, poor.rho)
    assert between.theta[0:40:10].sum() == pytest.approx(total, rel=1e-5)
    assert "total mass at its least" in between.active


def test_impossible_total_mass_says_what_would_be_possible(poor):
    children = np.zeros((4, 10))
    children[2] = from_com(2.0, poor.prior.theta0[21:24] / poor.prior.theta0[20], 1e-4 * np.eye(3))
    for more in (
        [poor.total(1e-3)],
        [poor.total(0.5), remainders(poor.prior, poor.parameters, children)],
        [poor.total((-5.0, -1.0))],
    ):
        with pytest.raises(SolverError, match=r"total mass is impossible.*between .* and .* kg; correct or drop") as caught:
            poor.problem(*more).solve(poor.R, poor.rho)
        assert caught.value.status == "infeasible"
    least, most = (float(word) for word in str(caught.value).split("between ")[1].split(" kg")[0].split(" and "))
    assert least == pytest.approx(0.1 * poor.prior.theta0[0:40:10].sum(), rel=1e-3)
    assert most == pytest.approx(10 * poor.prior.theta0[0:40:10].sum(), rel=1e-3)
    with pytest.raises(SolverError, match=r"and inf kg"):
        LmiProblem(poor.prior, poor.parameters, [*poor.total(1e-3)]).solve(poor.R, poor.rho)


def test_clashing_boxes_and_ellipsoids_are_named(poor):
    lower, far = np.full((4, 3), np.nan), np.full((4, 4, 4), np.nan)
    lower[1, 0] = 5.0
    far[1] = ellipsoid([0, 0, 0], [0.3, 0.3, 0.3])
    boxes, around = (
        centres_in_boxes(poor.prior, poor.parameters, lower),
        matter_in_ellipsoids(poor.prior, poor.parameters, far),
    )
    with pytest.raises(SolverError, match=r"drop consistency\.com_in_box or consistency\.ellipsoids$"):
        poor.problem(boxes, around).solve(poor.R, poor.rho)


def test_centres_of_mass_stay_in_their_boxes(poor):
    free = LmiProblem(poor.prior, poor.parameters).solve(poor.R, poor.rho)
    _, centres, _ = to_com(free.theta[:40].reshape(4, 10))
    lower, upper = np.full((4, 3), -np.inf), np.full((4, 3), np.inf)
    lower[0, 1], upper[2] = centres[0, 1] + 0.02, centres[2] - 0.01
    solution = poor.problem(centres_in_boxes(poor.prior, poor.parameters, lower, upper)).solve(poor.R, poor.rho)
    _, centres, _ = to_com(solution.theta[:40].reshape(4, 10))
    assert centres[0, 1] >= lower[0, 1] - 1e-7
    assert np.all(centres[2] <= upper[2] + 1e-7)
    assert "l1: centre of mass at its lower y limit" in solution.active


def test_what_is_left_beside_fixed_children_is_possible(poor):
    children = np.zeros((4, 10))
    children[3] = 0.8 * poor.prior.theta0[30:40]
    target = poor.truth.copy()
    target[30:40] *= 0.5  # data of a last body lighter than its own tool
    rho = poor.W @ target / 0.01
    without = LmiProblem(poor.prior, poor.parameters).solve(poor.W / 0.01, rho, 0.01)
    assert not margins(without.theta[30:40] - children[3]).consistent
    solution = poor.problem(remainders(poor.prior, poor.parameters, children)).solve(poor.W / 0.01, rho, 0.01)
    assert margins(solution.theta[30:40] - children[3]).consistent
    assert "l4: nothing left beside its fixed children" in solution.active


def outside(bound):
    return -30 * np.ones(44), bound, "optimal"


def elsewhere(bound):
    return np.zeros(44), bound, "optimal"


def refuses(_):
    return None, -np.inf, "infeasible"


def fails(_):
    return None, -np.inf, "failed (numbers)"


@pytest.mark.parametrize("total", [None, 1.1])
@pytest.mark.parametrize("answer", [outside, elsewhere, refuses, fails])
def test_a_solver_that_lies_or_fails_leaves_a_possible_robot(poor, monkeypatch, answer, total):
    honest = LmiProblem.minimise
    monkeypatch.setattr(LmiProblem, "minimise", lambda *asked: answer(honest(*asked)[1]))
    mass = None if total is None else total * poor.prior.theta0[0:40:10].sum()
    solution = poor.problem([] if mass is None else poor.total(mass)).solve(poor.R, poor.rho)
    assert solution.status == "fallback"
    assert "not proven optimal" in solution.notes[-1]
    assert solution.violation <= 10 * PRIMAL_TOLERANCE
    assert physical(solution.theta, 4)
    if total is not None:
        assert solution.theta[0:40:10].sum() == pytest.approx(mass, rel=1e-5)
    if answer in (refuses, fails) and total is None:
        np.testing.assert_allclose(solution.theta, poor.prior.theta0, rtol=1e-9)


@pytest.mark.parametrize("distance", ["euclid", "entropic"])
def test_a_coarse_answer_beside_a_known_total_mass_stays_near_it(poor, monkeypatch, distance):
    """As first-order solvers give: 1e-4 standard deviations beside constraints that leave no room."""
    total = 1.1 * poor.prior.theta0[0:40:10].sum()
    problem = poor.problem(poor.total(total), distance=distance)
    best, honest = problem.solve(poor.R, poor.rho), LmiProblem.minimise

    def coarse(*asked):
        x, bound, status = honest(*asked)
        return x + 1e-4, bound, status

    monkeypatch.setattr(LmiProblem, "minimise", coarse)
    solution = problem.solve(poor.R, poor.rho)
    assert solution.objective == pytest.approx(best.objective, rel=1e-3)
    assert solution.theta[0:40:10].sum() == pytest.approx(total, rel=1e-7)


@pytest.mark.parametrize(
    ("solver", "words"), [("NONE", "not installed.*NONE.*CLARABEL"), ("OSQP", "OSQP cannot solve it.*name another")]
)
def test_a_solver_that_cannot_solve_it_is_refused(poor, solver, words):
    with pytest.raises(SolverError, match=words):
        LmiProblem(poor.prior, poor.parameters, solver=solver).solve(poor.R, poor.rho)


def stated(problem, R, rho, weight, total):
    """The problem as one writes it down, in CVXPY's own words: theta, pseudo-inertias, log det, no whitening."""
    prior, n = problem.prior, len(problem.prior.relative_std)
    x = cp.Variable(len(prior.theta0))
    theta = prior.theta0 + prior.deviations @ x

    def matrix(ten):
        return sum(ten[k] * PSEUDO_BASIS[k] for k in range(10))

    cost, constraints = cp.sum_squares(R @ theta - rho), []
    for i in range(n):
        ten, own, spread = theta[10 * i : 10 * i + 10], prior.theta0[10 * i : 10 * i + 10], prior.spread[i]
        constraints.append(matrix(ten) - EPSILON * pseudo_inertia(own) >> 0)
        constraints += [ten[0] >= own[0] / 10, ten[0] <= own[0] * 10]
        if problem.distance == "entropic":
            half = np.linalg.inv(np.linalg.cholesky(pseudo_inertia(spread)))
            Q = half @ matrix(ten + (spread - own)) @ half.T
            cost += weight * (cp.trace(Q) - cp.log_det(Q) - 4) / (2 * prior.relative_std[i] ** 2)
            ratio = ten[0] / own[0]
            cost += weight * 2 * (ratio - cp.log(ratio) - 1) / prior.mass_std[i] ** 2
    cost += weight * cp.sum_squares(x[10 * n :] if problem.distance == "entropic" else x)
    constraints.append(theta[10 * n :] >= 0)
    constraints.append(cp.sum(theta[0 : 10 * n : 10]) == total)
    return cp.Problem(cp.Minimize(cost), constraints).solve(solver="CLARABEL")


@pytest.mark.parametrize("distance", ["euclid", "entropic"])
@pytest.mark.parametrize("weight", [1e-4, 1.0])
def test_the_optimum_is_that_of_the_problem_stated_in_cvxpy(poor, weight, distance):
    mass = 1.2 * poor.prior.theta0[0:40:10].sum()
    problem = poor.problem(poor.total(mass), distance=distance)
    solution = problem.solve(poor.R, poor.rho, weight)
    assert solution.status == "optimal"
    assert solution.objective == pytest.approx(stated(problem, poor.R, poor.rho, weight, mass), rel=1e-6)


def test_a_certificate_of_infeasibility_that_is_nearly_proven_is_no_point():
    """``5000 y ≥ 1500`` and ``5000 y ≤ 1499.99999`` beside three others: Clarabel says AlmostPrimalInfeasible."""
    form = ConicForm(2)
    form.quadratic[:] = 2.0
    rows = np.array([[-0.3, 1.3], [-0.9, -0.4], [50.0, -60.0], [0.0, -5000.0], [0.0, 5000.0]])
    form.add("nonnegative", 5, np.array([0.73, 1.48, -1.0000000000000009, 1499.99999, -1500.0]), (rows, np.arange(2)))
    point, _, status = form.solve()
    assert point is None
    assert status == "infeasible"


def test_a_solver_without_progress_is_asked_again_in_another_scale(poor, monkeypatch):
    """Some data stop the solver far from the optimum in one scale of the objective, and not in another."""
    problem, honest, asked = LmiProblem(poor.prior, poor.parameters), ConicForm.solve, []
    expected = problem.solve(poor.R, poor.rho, 10.0)

    def solve(form, solver=None):
        asked.append(form)
        y, bound, status = honest(form, solver)
        return (y, bound, status) if len(asked) > 1 else (np.zeros_like(y), -np.inf, "InsufficientProgress")

    monkeypatch.setattr(ConicForm, "solve", solve)
    found = problem.solve(poor.R, poor.rho, 10.0)
    assert len(asked) == 2
    assert found.status == "optimal"
    assert found.objective == pytest.approx(expected.objective, rel=1e-6)


def test_data_of_a_large_scale_do_not_pass_for_infeasible_constraints():
    """A payload whose logs were exchanged with the unloaded ones: no body explains efforts a thousand times their noise."""
    ball = from_com(1e-3, np.zeros(3), 1e-8 * np.eye(3))
    prior = Prior(ball, metric_root(ball, 0.5), ("guess",) * 10, (), ball[None], np.array([0.5]), np.array([np.inf]))
    parameters = [Parameter(name, name, "body", "") for name in BODY_PARAMETERS]
    information = np.diag([1000.0, 500.0, 500.0, 500.0, *[1.0] * 6])
    estimate = -from_com(1.5, [0.02, 0.01, 0.05], 1e-3 * np.eye(3))
    solution = LmiProblem(prior, parameters, (), "euclid").solve(information, information @ estimate, 1e-4)
    assert solution.status == "optimal"
    assert margins(solution.theta).consistent
