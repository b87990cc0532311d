"""Combinations of parameters, and URDFs whose angles are rounded."""

import numpy as np
import pytest

from urdf_ident import DynamicModel, Robot, check, robot_path


def test_partners_are_the_terms_of_the_combinations() -> None:
    model = DynamicModel(Robot.from_urdf(robot_path("szabo_3r")))
    base = model.base()
    for row, k in enumerate(base.independent):
        assert dict(base.partners(int(k))) == dict(base.terms(row)[1:])
    for k in base.dependent:
        rows = [row for row in range(len(base)) if base.projection[row, k]]
        assert {name for name, _ in base.partners(int(k))} == {base.names[base.independent[row]] for row in rows}
    text = " ".join(base.combination(row) for row in range(len(base)))
    assert "1·" not in text.replace(".1·", "").replace("01·", "")  # a factor of one is not written


def scara(right: str, straight: str) -> str:
    """Two vertical axes, a vertical slide and a turn; frames turned by right angles as exporters like them."""
    frames = [
        ("0 0 0.4", f"{right} 0 0"),
        ("0.3 0 0", "0 0 0"),
        ("0.25 0 0", f"{straight} 0 0"),
        ("0 0 -0.1", f"0 {straight} 0"),
    ]
    axes, kinds = ("0 1 0", "0 1 0", "0 1 0", "0 1 0"), ("revolute", "revolute", "prismatic", "revolute")
    parts, parent = ['<robot name="scara"><link name="base"/>'], "base"
    for k, ((xyz, rpy), axis, kind) in enumerate(zip(frames, axes, kinds, strict=True), 1):
        parts.append(
            f'<joint name="j{k}" type="{kind}"><parent link="{parent}"/><child link="l{k}"/><origin xyz="{xyz}" rpy="{rpy}"/>'
            f'<axis xyz="{axis}"/><limit lower="-2" upper="2" velocity="2" effort="9"/></joint><link name="l{k}"><inertial>'
            '<origin xyz="0.1 0.02 0.03"/><mass value="2"/><inertia ixx="0.02" '
            'ixy="0.001" ixz="0" iyy="0.03" iyz="0" izz="0.02"/>'
            "</inertial></link>"
        )
        parent = f"l{k}"
    return "".join([*parts, "</robot>"])


@pytest.mark.parametrize(("right", "straight"), [("1.5708", "3.1416"), ("1.57079", "3.14159"), ("1.5707963", "3.1415927")])
def test_rounded_right_angles_make_no_parameters(right: str, straight: str) -> None:
    """A URDF that rounds π/2 gave three parameters more than the robot has."""
    exact = DynamicModel(Robot.from_urdf(scara("1.5707963267948966", "3.141592653589793")))
    rounded = DynamicModel(Robot.from_urdf(scara(right, straight)))
    meant, found = exact.base(), rounded.base()
    assert len(found) == len(meant)
    np.testing.assert_array_equal(found.independent, meant.independent)
    np.testing.assert_allclose(found.K, meant.K, atol=1e-4)
    assert found.kinds == meant.kinds
    assert found.rank_gap > 1e3
    assert not len(meant.ill_conditioned)
    assert len(found.ill_conditioned) > 0
    assert len(rounded.base(tolerance=1e-9)) > len(found)
    text = check(rounded).summary()
    assert "rounds angles" in text
    assert "rounds angles" not in check(exact).summary()
    # What is neglected is as small as the angles' error: no torque sensor would notice.
    theta, rng = np.random.default_rng(0).normal(size=len(rounded.names)), np.random.default_rng(1)
    q, v, a = rng.normal(size=(3, 50, 4))
    only = np.zeros(len(theta))
    only[found.independent] = found.of(theta)
    full = rounded.torque(theta, q, v, a)
    assert np.abs(rounded.torque(only, q, v, a) - full).max() < 1e-4 * np.abs(full).max()


def test_angles_with_two_digits_leave_doubt_and_it_is_said() -> None:
    coarse = DynamicModel(Robot.from_urdf(scara("1.57", "3.14")))
    assert "not clear" in check(coarse).summary()
    assert "not clear" not in check(DynamicModel(Robot.from_urdf(scara("1.5708", "3.1416")))).summary()
