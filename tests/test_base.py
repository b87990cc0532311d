"""Base parameters: published ranks, exact torque, and two independent reductions (SVD, exact RREF by sympy)."""

from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from urdf_ident import Drive, DynamicModel, Robot, robot_path
from urdf_ident.errors import ModelError, ShapeError
from urdf_ident.model.base import random_motion, reduce_factor

FINGERS = {"panda_finger_joint1": 0.0, "panda_finger_joint2": 0.0}


def stacked(model: DynamicModel, samples: int = 150, seed: int = 99) -> np.ndarray:
    """The regressor of all joints by probing ``torque`` with unit parameters."""
    motion = random_motion(model.robot, samples, seed)
    return model.torque(np.eye(len(model.parameters)), motion.q, motion.v, motion.a).reshape(samples * model.n, -1)


def svd_rank(W: np.ndarray) -> int:
    norms = np.linalg.norm(W, axis=0)
    kept = norms > 1e-10 * norms.max()
    values = np.linalg.svd(W[:, kept] / norms[kept], compute_uv=False)
    return int((values > 1e-9 * values[0]).sum())


@cache
def build(name: str, rotor_inertia: bool = True, friction: str = "none") -> DynamicModel:
    return DynamicModel(Robot.from_urdf(robot_path(name)), friction=friction, rotor_inertia=rotor_inertia)


RANKS = {"ur10e": (36, 40), "puma560": (36, 40), "tx40": (36, 40), "szabo_3r": (15, 16), "zollo_2r": (6, 7), "emps": (1, 1)}
RANKS |= {"generic_6axis": (36, 40)}


@pytest.mark.parametrize("name", RANKS)
@pytest.mark.parametrize("rotor_inertia", [False, True], ids=["rigid", "rotors"])
def test_published_ranks(name: str, rotor_inertia: bool) -> None:
    model = build(name, rotor_inertia)
    base = model.base()
    assert len(base) == RANKS[name][rotor_inertia] == svd_rank(stacked(model))
    assert base.rank_gap > 1e5
    assert len(base) + len(base.dependent) + len(base.zero) == len(model.parameters)


@pytest.mark.parametrize("rotor_inertia", [False, True], ids=["rigid", "rotors"])
def test_panda_is_43_and_48_and_never_44(data: Path, rotor_inertia: bool) -> None:
    """Trap 10: a column of rounding noise that is scaled to length one makes a false parameter."""
    robot = Robot.from_urdf(data / "panda" / "panda.urdf", lock=FINGERS)
    base = DynamicModel(robot, friction="none", rotor_inertia=rotor_inertia).base()
    assert len(base) == (48 if rotor_inertia else 43)
    assert base.rank_gap > 1e5


def test_noise_columns_have_a_floor() -> None:
    rng = np.random.default_rng(0)
    W = rng.normal(size=(50, 4)) * [1.0, 100.0, 1e-13, 1e-7]
    base = reduce_factor(W, list("abcd"))
    assert base.zero.tolist() == [2]
    assert base.independent.tolist() == [0, 1, 3]


def test_tx40_with_its_coupled_wrist_has_rank_60_of_86() -> None:
    """D: joint-side viscous, Coulomb, offset on every axis, and friction of the coupled motor 6."""
    robot = Robot.from_urdf(robot_path("tx40"))
    A = np.diag([32.0, 32, 45, -48, 45, 32])
    A[5, 4] = 32.0
    last = robot.joints[5]
    model = DynamicModel(robot, drive=Drive.build(6, reduction=A), motor_friction={last: ["viscous", "coulomb"]})
    assert len(model.parameters) == 86
    assert len(model.base()) == 60 == svd_rank(stacked(model, 300))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 8), st.integers(0, 6))
def test_reduction_of_any_matrix_of_known_rank(seed: int, rank: int, extra: int) -> None:
    rng = np.random.default_rng(seed)
    mixing = np.hstack([np.eye(rank), rng.normal(size=(rank, extra))])[:, rng.permutation(rank + extra)]
    W = rng.normal(size=(40, rank)) @ mixing * 10.0 ** rng.uniform(-3, 3, rank + extra)
    base = reduce_factor(W, [str(k) for k in range(rank + extra)])
    assert len(base) == rank
    np.testing.assert_allclose(W[:, base.independent] @ base.projection, W, atol=1e-7 * np.abs(W).max())
    R = np.linalg.qr(W, mode="r")
    np.testing.assert_array_equal(reduce_factor(R, base.names).independent, base.independent)


def test_words() -> None:
    base = build("szabo_3r").base()
    text = base.summary()
    assert text.startswith("33 standard parameters, 16 base parameters")
    assert len(text.splitlines()) == 17
    assert len(base.summary(limit=3).splitlines()) == 4
    for row, label in enumerate(base.labels):
        listed = base.terms(row)
        assert listed[0] == (base.names[base.independent[row]], 1.0)
        assert label.endswith("+") == (len(listed) > 1)
    with pytest.raises(ShapeError):
        base.of(np.zeros(5))


def test_order_decides_who_is_independent() -> None:
    model = build("szabo_3r")
    names = model.names
    plain, reverse = model.base(), model.base(order=names[::-1])
    assert len(plain) == len(reverse)
    assert set(plain.zero) == set(reverse.zero)
    last = max(set(range(len(names))) - set(reverse.zero))
    assert reverse.independent[0] == last
    assert set(plain.independent) != set(reverse.independent)
    theta = np.random.default_rng(0).normal(size=len(names))
    W = stacked(model, 30)
    for base in (plain, reverse):
        np.testing.assert_allclose(W[:, base.independent] @ base.of(theta), W @ theta, atol=1e-7 * np.abs(W @ theta).max())
    by_index = model.base(order=list(range(len(names)))[::-1])
    np.testing.assert_array_equal(by_index.independent, reverse.independent)
    for wrong in (names[:-1], (*names[:-1], names[0]), (*names[:-1], "nobody")):
        with pytest.raises(ModelError, match="permutation"):
            model.base(order=wrong)
