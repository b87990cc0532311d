"""Bodies of uniform density against integrals over random points, and the density that torques show."""

from pathlib import Path

import numpy as np
import pytest
from conftest import rnea
from logs import Truth, fourier, write_csv
from scipy.spatial.transform import Rotation
from urdf_samples import inertial_text

import urdf_ident as ui
from urdf_ident.linalg import Array
from urdf_ident.model.geometry import uniform_bodies
from urdf_ident.model.inertia import pseudo_inertia
from urdf_ident.model.robot import Robot

pytestmark = pytest.mark.usefixtures("unexamined")

BOX, TUBE, BALL = '<box size="0.1 0.2 0.4"/>', '<cylinder radius="0.06" length="0.3"/>', '<sphere radius="0.07"/>'
CAPSULE = '<capsule radius="0.05" length="0.25"/>'


def arm(geometries: list[str], inertials: list[str] | None = None, tag: str = "collision") -> str:
    """A chain of revolute joints whose links have one shape each."""
    parts = ['<robot name="arm"><link name="base"/>']
    for k, shape in enumerate(geometries, 1):
        geometry = (
            f'<{tag}><origin xyz="0.02 0.01 0.15" rpy="0.3 -0.2 0.5"/><geometry>{shape}</geometry></{tag}>' if shape else ""
        )
        parent, axis = ("base" if k == 1 else f"l{k - 1}"), ("0 0 1", "0 1 0", "0 1 0", "1 0 0")[(k - 1) % 4]
        parts.append(
            f'<link name="l{k}">{geometry}{inertials[k - 1] if inertials else ""}</link><joint name="j{k}" type="revolute">'
            f'<parent link="{parent}"/><child link="l{k}"/><origin xyz="0.03 0 0.3" rpy="0.1 0 0.2"/><axis xyz="{axis}"/>'
            '<limit lower="-2.6" upper="2.6" velocity="3" effort="200"/></joint>'
        )
    return "".join([*parts, "</robot>"])


def inside(kind: str, x: Array) -> Array:
    if kind == BOX:
        return np.all(np.abs(x) < [0.05, 0.1, 0.2], axis=1)
    if kind == BALL:
        return np.sum(x**2, axis=1) < 0.07**2
    if kind == TUBE:
        return (np.hypot(x[:, 0], x[:, 1]) < 0.06) & (np.abs(x[:, 2]) < 0.15)
    beyond = np.maximum(np.abs(x[:, 2]) - 0.125, 0.0)
    return np.sum(x[:, :2] ** 2, axis=1) + beyond**2 < 0.05**2


@pytest.mark.parametrize("kind", [BOX, TUBE, BALL, CAPSULE])
@pytest.mark.parametrize("tag", ["collision", "visual"])
def test_a_shape_has_the_moments_of_points_in_it(kind: str, tag: str) -> None:
    points = np.random.default_rng(0).uniform(-0.25, 0.25, (400_000, 3))
    points = points[inside(kind, points)]
    volume = 0.5**3 * len(points) / 400_000
    points = np.column_stack(
        [Rotation.from_euler("xyz", [0.3, -0.2, 0.5]).apply(points) + [0.02, 0.01, 0.15], np.ones(len(points))]
    )
    expected = volume * points.T @ points / len(points)
    (found,) = uniform_bodies(Robot.from_urdf(arm([kind], tag=tag)))
    np.testing.assert_allclose(pseudo_inertia(found), expected, rtol=0.05, atol=0.005 * volume)


@pytest.mark.parametrize("stated", ["none", "one", "ones"])
def test_masses_that_the_urdf_lacks_are_weighed_by_the_torques(tmp_path: Path, stated: str) -> None:
    shapes = [BOX, TUBE, CAPSULE, BALL]
    solid = uniform_bodies(Robot.from_urdf(arm(shapes)))
    true = 1900.0 * solid * np.array([1.1, 0.9, 1.2, 0.8])[:, None]

    texts = [inertial_text(theta) for theta in true]
    robot, truth = Robot.from_urdf(arm(shapes, texts)), Truth.of(4)
    logs = []
    for seed in range(2):
        t, q, v, a = fourier(4, 20.0, 100.0, seed)
        tau = rnea(robot.model, robot.configuration(q), v, a) + truth.rotor_inertia * a
        tau += truth.viscous * v + truth.coulomb * np.tanh(v / 0.02)
        tau += 0.02 * tau.std(axis=0) * np.random.default_rng(seed).standard_normal(tau.shape)
        logs.append(write_csv(tmp_path / f"log{seed}.csv", robot.joints, t, q, tau))
    ball = '<inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>'
    described = {"none": [""] * 4, "one": [texts[0], "", "", ""], "ones": [ball] * 4}[stated]
    bare = Robot.from_urdf(arm(shapes, described))
    model = ui.DynamicModel(bare, friction=["viscous", "coulomb", "offset"])
    ident = ui.identify(model, [ui.read_recording(logs[0], bare)])
    assert ident.prior.guessed.tolist() == [stated != "one", True, True, True]
    masses = ident.theta[:40:10]
    assert masses.sum() == pytest.approx(true[:, 0].sum(), rel=0.3)
    assert (np.abs(np.log(masses / true[:, 0])) < np.log(2)).all()
    held = ui.validate(ident, [ui.read_recording(logs[1], bare)]).entries[0]
    assert held["relative"] < 0.05 if held["relative"] is not None else held["mean_rmse"] > 0
    assert any("together, at the one density" in note for note in ident.solver["notes"])
