"""Criteria: planned rows against Pinocchio, gradients against finite differences and Pinocchio's own, values against NumPy."""

from dataclasses import replace

import numpy as np
import pytest
from conftest import arm_urdf
from motion_samples import tx40

from urdf_ident import DynamicModel, Limits, Robot
from urdf_ident.excitation.criteria import SPECTRAL, condition_number, criterion_value
from urdf_ident.excitation.family import Family
from urdf_ident.excitation.optimise import Objective
from urdf_ident.excitation.problem import make_criterion, usable_limits
from urdf_ident.excitation.rows import PlannedRows, designable, softened
from urdf_ident.linalg import Array
from urdf_ident.model.bundled import robot_path

TREE = """<robot name="tree"><link name="base"/>
<joint name="trunk" type="revolute"><parent link="base"/><child link="t"/><origin rpy="0.1 0.2 0"/><axis xyz="0 0 1"/>
<limit lower="-2" upper="2" velocity="2" effort="90"/></joint>
<link name="t"><inertial><mass value="3"/><origin xyz="0.1 0 0.2"/><inertia ixx="0.1" iyy="0.2" izz="0.15" ixy="0.01" ixz="0"
iyz="0"/></inertial></link>
<joint name="right" type="revolute"><parent link="t"/><child link="r"/><origin xyz="0.2 -0.3 0.4" rpy="0 0.5 1"/>
<axis xyz="0 0.6 0.8"/><limit lower="-2" upper="2" velocity="2" effort="60"/></joint>
<link name="r"><inertial><mass value="2"/><origin xyz="0.3 0.05 0"/><inertia ixx="0.02" iyy="0.05" izz="0.05" ixy="0" ixz="0"
iyz="0"/></inertial></link>
<joint name="left" type="prismatic"><parent link="t"/><child link="l"/><origin xyz="0 0.3 0.4" rpy="0.3 0 0"/>
<axis xyz="1 0 0"/><limit lower="-0.5" upper="0.5" velocity="1" effort="60"/></joint>
<link name="l"><inertial><mass value="1"/><origin xyz="0 0.1 0"/><inertia ixx="0.02" iyy="0.01" izz="0.02" ixy="0" ixz="0"
iyz="0"/></inertial></link></robot>"""


def wide(names: list[str]) -> list[dict[str, object]]:
    """Friction laws whose signs are soft enough for finite differences."""
    return [{"term": name, "width": 0.3} if name not in ("viscous", "offset", "cubic") else {"term": name} for name in names]


MODELS = {
    "arm": lambda: DynamicModel(Robot.from_urdf(robot_path("ur10e")), friction=wide(["viscous", "coulomb", "offset"])),
    "coupled": lambda: tx40(friction=wide(["viscous", "coulomb", "offset"])),
    "loaded": lambda: DynamicModel(Robot.from_urdf(arm_urdf("zyx")), friction=wide(["viscous", "load_coulomb", "stribeck"])),
    "slides": lambda: DynamicModel(Robot.from_urdf(TREE), friction=wide(["sublinear", "cubic", "coulomb"])),
}


def objective(model: DynamicModel, criterion: str, *, torque: float = np.inf, samples: int = 60) -> tuple[Objective, Array]:
    """An objective on a Fourier family, and unknowns to evaluate it at."""
    limits, _ = usable_limits(Limits.from_robot(model.robot), None)
    base = model.base()
    rows = PlannedRows(model, base, np.linspace(0.5, 2.0, model.n))
    family = Family("fourier", limits.joints, 8.0, 4)
    made = make_criterion(criterion, rows, limits, np.zeros((0, len(base))))
    X = 0.6 * np.random.default_rng(1).standard_normal((family.unknowns, model.n))
    grid = family.criterion_grid(samples)
    return Objective(made, rows, grid, 0, np.full(model.n, torque)), X


@pytest.mark.parametrize("criterion", [*SPECTRAL, "block"])
@pytest.mark.parametrize("name", MODELS)
def test_gradients_agree_with_finite_differences(name: str, criterion: str) -> None:
    model = MODELS[name]()
    function, X = objective(model, criterion)
    value, gradient, _ = function(X, 0.0, 8.0)
    assert np.isfinite(value)
    assert gradient.shape == X.shape
    rng, step = np.random.default_rng(3), 1e-5
    for _ in range(3):
        way = rng.standard_normal(X.shape)
        ends = [function(X + k * step * way, 0.0, 8.0)[0] for k in (-2, -1, 1, 2)]
        slope = (ends[0] - 8 * ends[1] + 8 * ends[2] - ends[3]) / (12 * step)
        assert (gradient * way).sum() == pytest.approx(slope, rel=1e-5, abs=1e-6 * np.linalg.norm(gradient))


def test_values_are_what_their_names_say() -> None:
    W = np.random.default_rng(0).standard_normal((200, 7)) * np.logspace(-1, 1, 7)
    gram = W.T @ W
    assert condition_number(W) == pytest.approx(np.linalg.cond(W), rel=1e-10)
    assert criterion_value("frobenius", W) == pytest.approx(
        np.log(np.linalg.norm(gram) * np.linalg.norm(np.linalg.inv(gram))), rel=1e-9
    )
    assert criterion_value("D", W) == pytest.approx(-np.linalg.slogdet(gram)[1] / 14, rel=1e-10)
    assert criterion_value("A", W) == pytest.approx(0.5 * np.log(np.trace(np.linalg.inv(gram)) / 7), rel=1e-9)
    assert criterion_value("E", W) == pytest.approx(-0.5 * np.log(np.linalg.eigvalsh(gram)[0]), rel=1e-9)


def test_terms_that_live_in_reversals_are_left_out_and_signs_softened() -> None:
    robot = Robot.from_urdf(robot_path("ur10e"))
    model = DynamicModel(robot, friction=["viscous", "coulomb", "presliding"])
    planned, notes = designable(model)
    assert len(planned.parameters) == len(model.parameters) - 6
    assert "presliding of elbow_joint" in notes[0]
    soft = softened(planned, robot.limit("velocity"))
    assert soft.names == planned.names
    widths = {item.term.width for item in soft.terms if item.term.name == "coulomb"}
    assert min(widths) == pytest.approx(0.02 * 2.0943951023932)
    assert {item.term.width for item in model.terms if item.term.name == "coulomb"} == {0.02}


@pytest.mark.parametrize(
    ("family", "travels"), [("fourier", False), ("modified_fourier", False), ("modified_fourier", True), ("spline", False)]
)
def test_no_motion_within_the_position_limits_is_faster_than_the_reachable_velocity(family: str, travels: bool) -> None:
    limits = replace(
        Limits.from_robot(Robot.from_urdf(arm_urdf("zy"))),
        lower=np.array([-1.0, -0.1]),
        upper=np.array([2.0, 0.3]),
        velocity=np.full(2, 5e4),
    )
    shape = Family(
        family, limits.joints, 10.0, 4, start=limits.middle if travels else None, end=limits.middle if travels else None
    )
    reachable = shape.reachable_velocity(limits)
    rng, most = np.random.default_rng(3), np.zeros(2)
    for _ in range(200):
        q, v, _ = shape.excitation(shape.random_swing(rng, 2)).evaluate(np.linspace(0.0, 10.0, 2000))
        most = np.maximum(most, np.abs(v).max(axis=0) * limits.half_range / (np.ptp(q, axis=0) / 2))
    assert (most < reachable).all()
    assert (most > 0.3 * reachable).all()
    np.testing.assert_array_equal(shape.reachable_velocity(replace(limits, velocity=np.full(2, 0.01))), 0.01)
