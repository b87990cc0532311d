"""The engines of the rigid bodies against Pinocchio's regressor, sample by sample."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np
import pytest

from tests.urdf_samples import Style, random_urdf
from urdf_ident.errors import ModelError, ShapeError
from urdf_ident.linalg import triangle
from urdf_ident.model.bundled import robot_path
from urdf_ident.model.drive import Drive
from urdf_ident.model.dynamic_model import DynamicModel
from urdf_ident.model.engine import compiled, program, rigid
from urdf_ident.model.engine.batched import program_inputs, regressor_program
from urdf_ident.model.engine.pinocchio import regressor
from urdf_ident.model.engine.program import Argument, Program, Row, Tape
from urdf_ident.model.engine.resting import columns_of_few
from urdf_ident.model.engine.rigid import FEW, MANY, SHORT, Rigid, rigid_of
from urdf_ident.model.robot import Robot
from urdf_ident.samples import Segment
from urdf_ident.statistics.accumulate import FactorAccumulator


def motion(robot: Robot, samples: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(3, samples, robot.n)) * np.array([2.0, 2.0, 5.0])[:, None, None]


def whole_rows(robot: Robot) -> list[tuple[np.ndarray, np.ndarray]]:
    return [(np.eye(robot.n)[j], np.array([10 * b + k for b in robot.subtrees[j] for k in range(10)])) for j in range(robot.n)]


@pytest.fixture(scope="module")
def arm() -> Robot:
    return Robot.from_urdf(robot_path("tx40"))


def test_columns_in_rigid_groups_are_pinocchios_on_random_trees() -> None:
    """Any number of joints moves, and rows are of single joints or mix several."""
    for seed in range(60):
        rng = np.random.default_rng(seed)
        text = random_urdf(rng, links=int(rng.integers(2, 12)), style=Style())
        robot = Robot.from_urdf(text, gravity=rng.normal(size=3) * 9.0)
        states = motion(robot, 9, seed)
        resting = rng.random(robot.n) < rng.choice([0.0, 0.5, 0.8])
        states[0][:, resting] = states[0][0, resting]
        states[1:, :, resting] = 0.0
        rows = [*whole_rows(robot), (rng.normal(size=robot.n) * (rng.random(robot.n) < 0.6), np.arange(10 * robot.n))]
        out = [np.full((len(columns) + 1, 9), 7.0) for _, columns in rows]
        columns_of_few(robot, rows, *states, out)
        expected = regressor(robot, *states)
        for (mix, columns), made in zip(rows, out, strict=True):
            theirs = np.tensordot(mix, expected, axes=(0, 1))[:, columns]
            np.testing.assert_allclose(made[:-1].T, theirs, rtol=0, atol=1e-12 * np.abs(expected).max())
            assert (made[-1] == 7.0).all()


def test_few_moving_joints_of_many_are_computed_in_rigid_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    robot = Robot.from_urdf(random_urdf(np.random.default_rng(0), links=2 * MANY, style=Style()))
    assert robot.n >= MANY
    q, v, a = motion(robot, 20)
    still = [j for j in range(robot.n) if j not in (3, 11)]
    q[:, still], v[:, still], a[:, still] = q[0, still], 0.0, 0.0
    expected, rows = regressor(robot, q, v, a), whole_rows(robot)
    monkeypatch.setattr(rigid, "_mixed", None)  # combines rows of the whole regressor
    for j, ((_, columns), made) in enumerate(zip(rows, Rigid(robot).columns(rows, q, v, a), strict=True)):
        np.testing.assert_allclose(made.T, expected[:, j][:, columns], rtol=0, atol=1e-12 * np.abs(expected).max())
    v[0, 0] = v[0, 1] = 1.0  # too many, although most positions are constant
    with pytest.raises(TypeError):
        Rigid(robot).columns(rows, q, v, a)


def test_columns_and_torques_are_pinocchios_on_random_trees() -> None:
    """Turning, endless and prismatic joints about any axis, branches, fixed links and locked joints."""
    seen = set()
    for seed in range(200):
        rng = np.random.default_rng(seed)
        text = random_urdf(rng, links=int(rng.integers(2, 9)), style=Style())
        robot = Robot.from_urdf(text, gravity=rng.normal(size=3) * 9.0)
        if robot.n > 1 and seed % 3 == 0:
            robot = Robot.from_urdf(
                text, lock={robot.joints[int(rng.integers(robot.n))]: 0.7}, gravity=rng.normal(size=3) * 9.0
            )
        seen |= {robot.model.joints[j].shortname() for j in range(1, robot.model.njoints)}
        engine, (q, v, a) = Rigid(robot), motion(robot, SHORT + 5, seed)
        expected, rows = regressor(robot, q, v, a), whole_rows(robot)
        size = np.abs(expected).max()
        for j, ((_, columns), made) in enumerate(zip(rows, engine.columns(rows, q, v, a), strict=True)):
            np.testing.assert_allclose(made.T, expected[:, j][:, columns], rtol=0, atol=1e-12 * size)
        theta = rng.normal(size=10 * robot.n)
        np.testing.assert_allclose(engine.torque(theta, q, v, a), expected @ theta, rtol=0, atol=1e-11 * size)
        assert engine.used != "pinocchio"
        kept, expansion = engine.spanning
        np.testing.assert_allclose(expected[:, :, kept] @ expansion, expected, rtol=0, atol=1e-9 * size)
    assert len(seen) >= 8  # about x, y, z and oblique axes; limited and endless


def test_rows_of_coupled_joints_are_combined(arm: Robot) -> None:
    q, v, a = motion(arm, 200)
    mix = np.array([0.0, 0.0, 0.3, 0.0, -1.5, 1.0])
    columns = np.array([20, 41, 44, 52, 53, 59])
    (made,) = rigid_of(arm).columns([(mix, columns)], q, v, a)
    np.testing.assert_allclose(made.T, np.einsum("j,njk->nk", mix, regressor(arm, q, v, a))[:, columns], atol=1e-12)


def test_numba_and_numpy_agree_to_the_last_bit(arm: Robot, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numba")
    q, v, a = motion(arm, 700)
    theta = np.random.default_rng(1).normal(size=60)
    found = {}
    for name in ("numpy", "numba"):
        monkeypatch.setenv(compiled.VARIABLE, name)
        engine = Rigid(arm)
        assert engine.name(len(q)) == name
        found[name] = [*engine.columns(whole_rows(arm), q, v, a), engine.torque(theta, q, v, a)]
    for one, other in zip(*found.values(), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("samples", [0, 1, FEW - 1, SHORT - 1, SHORT, 1023, 1025])
def test_any_number_of_samples(arm: Robot, samples: int) -> None:
    q, v, a = motion(arm, samples)
    rows = whole_rows(arm)
    for made, (mix, columns) in zip(rigid_of(arm).columns(rows, q, v, a), rows, strict=True):
        expected = np.tensordot(mix, regressor(arm, q, v, a), axes=(0, 1))[:, columns]
        np.testing.assert_allclose(made.T, expected, atol=1e-12)
    assert rigid_of(arm).torque(np.ones(60), q, v, a).shape == (samples, 6)


def test_wrong_shapes_are_refused(arm: Robot) -> None:
    for samples in (5, 200):  # few are Pinocchio's
        q, v, a = motion(arm, samples)
        with pytest.raises(ShapeError, match="v"):
            rigid_of(arm).torque(np.ones(60), q, v[:3], a)
        with pytest.raises(ShapeError, match="a"):
            rigid_of(arm).torque(np.ones(60), q, v, a[:, :2])
    with pytest.raises(ShapeError, match="theta"):
        rigid_of(arm).torque(np.ones(59), q, v, a)


def test_without_numba_the_reason_is_said(arm: Robot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(compiled.VARIABLE, "numba")
    compiled._compiled.cache_clear()
    real = builtins.__import__

    def none(name: str, *others: Any) -> Any:
        if name.split(".")[0] == "numba":
            raise ImportError("No module named 'numba'")
        return real(name, *others)

    monkeypatch.setattr(builtins, "__import__", none)
    try:
        assert Rigid(arm).name(10**9) == "numpy (numba cannot be used: No module named 'numba')"
        q, v, a = motion(arm, 120)
        np.testing.assert_allclose(Rigid(arm).torque(np.ones(60), q, v, a), regressor(arm, q, v, a) @ np.ones(60), atol=1e-10)
    finally:
        compiled._compiled.cache_clear()


def test_a_short_job_does_not_wait_for_numba(arm: Robot, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled._compiled.cache_clear()
    monkeypatch.delenv(compiled.VARIABLE, raising=False)
    assert Rigid(arm).name(1000) == "numpy"
    assert compiled._compiled.cache_info().currsize == 0
    monkeypatch.setenv(compiled.VARIABLE, "fortran")
    with pytest.raises(ModelError, match="fortran"):
        Rigid(arm).name(1000)


def test_an_engine_can_be_asked_for(arm: Robot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(compiled.VARIABLE, "pinocchio")
    engine, (q, v, a) = Rigid(arm), motion(arm, 200)
    assert engine.name(200) == "pinocchio"
    np.testing.assert_array_equal(engine.torque(np.ones(60), q, v, a), regressor(arm, q, v, a) @ np.ones(60))


def test_long_chains_are_left_to_pinocchio_unless_numba_runs(arm: Robot, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled._compiled.cache_clear()  # another test may have loaded numba
    monkeypatch.delenv(compiled.VARIABLE, raising=False)
    chain = Robot.from_urdf(random_urdf(np.random.default_rng(0), links=30, style=Style()))
    monkeypatch.setattr(rigid, "_CARRIED", sum(map(len, chain.subtrees)) - 1)
    engine, (q, v, a) = Rigid(chain), motion(chain, SHORT + 5)
    assert (engine.name(len(q)), Rigid(arm).name(len(q))) == ("pinocchio", "numpy")
    mix = np.zeros(chain.n)
    mix[[0, -1]] = 2.0, -0.5
    (made,) = engine.columns([(mix, np.arange(7, 35))], q, v, a)
    expected = regressor(chain, q, v, a)
    np.testing.assert_allclose(made, (2.0 * expected[:, 0] - 0.5 * expected[:, -1])[:, 7:35].T, rtol=1e-12, atol=1e-12)
    assert engine.used == "pinocchio"
    np.testing.assert_array_equal(engine.torque(np.ones(10 * chain.n), q, v, a), expected @ np.ones(10 * chain.n))
    monkeypatch.setenv(compiled.VARIABLE, "numpy")  # who asks for it gets it
    assert Rigid(chain).name(len(q)) == "numpy"


def test_a_program_folds_what_is_known() -> None:
    tape = Tape()
    x, y = tape.input(), tape.input()
    assert tape.multiply(0.0, x) == 0.0
    assert tape.multiply(1.0, x) is x
    assert tape.add(x, 0.0) is x
    assert tape.add(2.0, 3.0, sign=-1.0) == -1.0
    product = tape.multiply(x, y)
    assert tape.multiply(y, x) == product
    assert isinstance(product, Row)
    unused = tape.multiply(x, tape.multiply(x, x))
    assert isinstance(unused, Row)
    weighed = tape.weigh(x, Argument(1))
    outputs = [
        tape.add(2.5, product),
        product,
        x,
        product,
        7.0,
        tape.add(y, tape.multiply(3.0, x), sign=-1.0),
        weighed,
        tape.add(x, y, sign=-1.0),
        tape.add(weighed, y, sign=-1.0),
        tape.add(x, product, sign=-1.0),
    ]
    made = tape.program(outputs)
    assert [int(kind) for kind, *_ in made.code].count(program.MULTIPLY) == 1  # the unused products are not there
    work = np.zeros((made.rows, 4))
    a, b = np.arange(4.0), np.array([2.0, -1.0, 0.5, 3.0])
    work[made.inputs] = a, b
    made.with_parameters(np.array([100.0, 0.25])).run(work)
    expected = [2.5 + a * b, a * b, a, a * b, np.full(4, 7.0), b - 3 * a, 0.25 * a, a - b, 0.25 * a - b, a - a * b]
    np.testing.assert_allclose(work[: made.outputs], expected)


def test_a_program_costs_what_the_robot_asks_for(arm: Robot) -> None:
    whole, one = (regressor_program(arm, rows) for rows in (whole_rows(arm), [(np.eye(6)[0], [9])]))
    assert isinstance(whole, Program)
    assert len(one.code) < 10 < len(whole.code)  # Izz of a body that turns about a fixed z: its acceleration
    q, v, a = motion(arm, 3)
    work = np.zeros((one.rows, 3))
    work[one.inputs] = program_inputs(q, v, a)
    one.run(work)
    np.testing.assert_allclose(work[0], a[:, 0])


def test_compact_rows_hold_all_columns(arm: Robot) -> None:
    matrix = np.diag([48.0, -50.0, 45.0, 32.0, 45.0, 32.0])
    matrix[5, 4] = 32.0
    model = DynamicModel(arm, drive=Drive.build(6, reduction=matrix), friction=["viscous", "presliding"])
    q, v, a = motion(arm, 300)
    segment = Segment("s", 0.0, 100.0, q, v, a, before=q[:7] - 0.1)
    for chunk in (64, 300):
        for (_, blocks), (_, few) in zip(
            model.row_blocks(segment, chunk), model.row_blocks(segment, chunk, compact=True), strict=True
        ):
            for block, small, compact in zip(blocks, few, model.compact, strict=True):
                assert small.shape[1] < block.shape[1]
                np.testing.assert_allclose(small @ compact.expansion, block, atol=1e-11 * np.abs(block).max())
                np.testing.assert_array_equal((small @ compact.expansion)[:, ~block.any(axis=0)], 0.0)


@pytest.mark.parametrize("width", [1, 5, 40])
@pytest.mark.parametrize("rows", [0, 3, 40, 1500, 5000])
def test_a_factor_takes_up_rows_as_they_come(width: int, rows: int) -> None:
    data = np.random.default_rng(rows).normal(size=(rows, width))
    accumulator = FactorAccumulator(width)
    for begin in range(0, rows, 37):
        accumulator.add(data[begin : begin + 37])
    R = accumulator.factor()
    assert len(R) <= width
    np.testing.assert_allclose(R.T @ R, data.T @ data, atol=1e-11 * max(rows, 1))


@pytest.mark.parametrize(("rows", "columns"), [(0, 4), (3, 0), (1, 1), (3, 7), (150, 9), (151, 9), (200, 260), (900, 40)])
def test_a_triangle_is_numpys_and_not_its_rows_memory(rows: int, columns: int) -> None:
    data = np.random.default_rng(rows).normal(size=(rows, columns))
    data[:, columns // 2 :][:, :1] = 0.0
    before, R = data.copy(), triangle(data)
    np.testing.assert_array_equal(data, before)
    assert R.shape == (min(rows, columns), columns)
    np.testing.assert_array_equal(np.tril(R, -1), 0.0)
    np.testing.assert_allclose(R, np.linalg.qr(data, mode="r"), atol=1e-12)
