"""Rigid-body rows, torques and their spanning columns against Pinocchio's recursion and finite differences of energies."""

import numpy as np
import pinocchio as pin
import pytest

from tests.urdf_samples import Style, random_urdf
from urdf_ident import Robot, robot_path
from urdf_ident.errors import ShapeError
from urdf_ident.excitation.rows import RigidRegressor
from urdf_ident.model.rigid_bodies import regressor, rigid_torque, row_columns
from urdf_ident.model.row_groups import spanning, spanning_anywhere


def motion(robot: Robot, samples: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(3, samples, robot.n)) * np.array([2.0, 2.0, 5.0])[:, None, None]


def whole_rows(robot: Robot) -> list[tuple[np.ndarray, np.ndarray]]:
    return [(np.eye(robot.n)[j], np.array([10 * b + k for b in robot.subtrees[j] for k in range(10)])) for j in range(robot.n)]


@pytest.fixture(scope="module")
def arm() -> Robot:
    return Robot.from_urdf(robot_path("tx40"))


def test_rows_torques_and_the_gradients_regressor_agree_on_random_trees() -> None:
    """1 to 32 turning, endless and prismatic joints about any axis, branches, fixed links and locked joints."""
    seen, sizes = set(), set()
    for seed in range(100):
        rng = np.random.default_rng(seed)
        text = random_urdf(rng, links=int(rng.integers(2, 9)) if seed % 10 else 40, style=Style())
        gravity = rng.normal(size=3) * 9.0
        robot = Robot.from_urdf(text, gravity=gravity)
        if robot.n > 1 and seed % 3 == 0:
            robot = Robot.from_urdf(text, lock={robot.joints[int(rng.integers(robot.n))]: 0.7}, gravity=gravity)
        seen |= {robot.model.joints[j].shortname() for j in range(1, robot.model.njoints)}
        sizes.add(robot.n)
        q, v, a = motion(robot, 20, seed)
        stated, model = robot.inertials.ravel(), robot.model.copy()
        model.armature = np.zeros(robot.n)
        states = zip(robot.configuration(q), v, a, strict=True)
        expected = np.array([pin.rnea(model, model.createData(), *state) for state in states])
        whole, rows = regressor(robot, q, v, a), whole_rows(robot)
        for tau in (whole @ stated, rigid_torque(robot, stated, q, v, a)):
            np.testing.assert_allclose(tau, expected, rtol=0, atol=1e-12 * np.abs(expected).max())
        size = np.abs(whole).max()
        np.testing.assert_allclose(RigidRegressor(robot).evaluate(q, v, a)[0], whole, rtol=0, atol=1e-12 * size)
        for j, ((_, columns), made) in enumerate(zip(rows, row_columns(robot, rows, q, v, a), strict=True)):
            np.testing.assert_array_equal(made.T, whole[:, j][:, columns])
            assert not np.delete(whole[:, j], columns, axis=1).any()
        theta = rng.normal(size=10 * robot.n)  # no body at all
        np.testing.assert_allclose(rigid_torque(robot, theta, q, v, a), whole @ theta, rtol=0, atol=1e-12 * size)
        for kept, expansion in (spanning(robot), spanning_anywhere(robot)):
            np.testing.assert_allclose(whole[:, :, kept] @ expansion, whole, rtol=0, atol=1e-9 * size)
    assert len(seen) >= 8  # about x, y, z and oblique axes; limited and endless
    assert 1 in sizes
    assert max(sizes) >= 24


@pytest.mark.parametrize("mass", [0.0, 1e-12, -2.0])
def test_torques_of_impossible_bodies_keep_their_digits(arm: Robot, mass: float) -> None:
    """First moments without a mass to carry them, as a difference of two bodies or base parameters have them."""
    theta = arm.inertials.copy()
    theta[2, :4] = mass, 1.0, -2.0, 0.5
    q, v, a = motion(arm, 50)
    expected = regressor(arm, q, v, a) @ theta.ravel()
    np.testing.assert_allclose(rigid_torque(arm, theta.ravel(), q, v, a), expected, atol=1e-12 * np.abs(expected).max())


def test_older_versions_of_pinocchio_give_the_same_torques(arm: Robot, monkeypatch: pytest.MonkeyPatch) -> None:
    theta, states = arm.inertials.ravel(), motion(arm, 50)
    now = rigid_torque(arm, theta, *states)
    monkeypatch.delattr(pin, "rneaInParallel", raising=False)
    np.testing.assert_array_equal(rigid_torque(arm, theta, *states), now)


def test_wrong_shapes_are_refused(arm: Robot) -> None:
    q, v, a = motion(arm, 5)
    with pytest.raises(ShapeError, match="v"):
        rigid_torque(arm, np.ones(60), q, v[:3], a)
    with pytest.raises(ShapeError, match="a"):
        rigid_torque(arm, np.ones(60), q, v, a[:, :2])
    with pytest.raises(ShapeError, match="theta"):
        rigid_torque(arm, np.ones(59), q, v, a)
