"""The drive train by virtual work: what motors do is what joints get."""

from __future__ import annotations

import json

import numpy as np
import pytest
from conftest import arm_urdf

from urdf_ident.errors import ModelError
from urdf_ident.model.drive import Drive
from urdf_ident.model.dynamic_model import DynamicModel
from urdf_ident.model.robot import Robot
from urdf_ident.samples import Segment

BLOCK = np.array([[-60.0, 0, 0], [0, 45, 0], [0, 32, 32]])  # a negative ratio, and the coupled wrist of Gautier 2013, eq. 34
MOTOR = {"j2": ["viscous", {"term": "coulomb", "width": 0.5}], "j3": ["viscous", {"term": "coulomb", "width": 0.5}]}


def coupled_model(**options: object) -> DynamicModel:
    robot = Robot.from_urdf(arm_urdf("zyx"))
    return DynamicModel(robot, drive=Drive.build(3, reduction=BLOCK, offset=[0.1, 0, -0.2]), **options)


def states(samples: int = 8) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return tuple(np.random.default_rng(1).normal(size=(3, samples, 3)))  # type: ignore[return-value]


def test_motor_power_is_joint_power() -> None:
    drive = Drive.build(3, reduction=BLOCK, gain=[2.0, -0.5, 0.1])
    effort, velocity, _ = states()
    joint_power = np.sum(drive.joint_torque(effort, "motor") * velocity, axis=1)
    motor_power = np.sum(effort * drive.gain * drive.motor_rate(velocity), axis=1)
    np.testing.assert_allclose(joint_power, motor_power, rtol=1e-12)
    np.testing.assert_allclose(drive.joint_torque(effort, "joint"), effort * [2.0, -0.5, 0.1])


def test_positions_there_and_back() -> None:
    drive = Drive.build(3, reduction=BLOCK, offset=[0.1, -1.5, 2.0])
    q, v, _ = states()
    motor = (q - [0.1, -1.5, 2.0]) @ BLOCK.T
    np.testing.assert_allclose(drive.joint_position(motor), q, atol=1e-13)
    np.testing.assert_allclose(drive.joint_rate(drive.motor_rate(v)), v, atol=1e-13)
    assert (drive.joint_position(np.zeros((1, 3))) == [0.1, -1.5, 2.0]).all()  # the offset is where the motors read zero


def test_coupling_is_seen_and_actuator_rows_are_chosen_there() -> None:
    drive = Drive.build(3, reduction=BLOCK)
    assert drive.coupled.tolist() == [False, True, True]
    mix = drive.row_mix
    np.testing.assert_array_equal(mix[0], [1, 0, 0])
    np.testing.assert_allclose(mix[1:, 1:] @ BLOCK[1:, 1:].T, np.eye(2), atol=1e-15)
    assert not Drive.build(3, reduction=[10, -20, 30]).coupled.any()
    np.testing.assert_array_equal(Drive.build(3, reduction=[10, -20, 30]).row_mix, np.eye(3))


def test_motor_side_rotor_inertia_and_friction() -> None:
    """``Aᵀ diag(A a) Ja`` and ``Aᵀ diag(S(A v)) Fc`` (docs/theory.md §2)."""
    model = coupled_model(friction=["viscous"], motor_friction=MOTOR)
    rng = np.random.default_rng(3)
    theta = np.concatenate([np.zeros(30), rng.uniform(0.1, 1, len(model.parameters) - 30)])
    at = dict(zip(model.names, theta, strict=True))
    q, v, a = states()
    got = model.torque(theta, q, v, a)
    expected = v * [at["Fv_j1"], at["Fv_j2"], at["Fv_j3"]]
    expected[:, 0] += at["Ia_j1"] * a[:, 0]
    # motor 2 turns joint 2 alone, motor 3 turns joints 2 and 3: written out, not with matrices
    motor3 = 32 * (v[:, 1] + v[:, 2])
    torque2 = at["Iam_j2"] * 45 * a[:, 1]
    torque3 = at["Iam_j3"] * 32 * (a[:, 1] + a[:, 2]) + at["Fvm_j3"] * motor3 + at["Fcm_j3"] * np.tanh(motor3 / 0.5)
    expected[:, 1] += 45 * torque2 + 32 * torque3 + at["Fc_j2"] * np.tanh(v[:, 1] / 0.5)
    expected[:, 2] += 32 * torque3
    np.testing.assert_allclose(got, expected, rtol=1e-12)


def test_a_rotor_inertia_is_named_in_the_lists_of_terms() -> None:
    """Rotors of the joints beside one of the coupled motor, as Gautier and Venture (2013) declare them."""
    whole = coupled_model(friction=["viscous"])
    listed = coupled_model(friction=["rotor_inertia", "viscous"], motor_friction={"j3": ["rotor_inertia"]}, rotor_inertia=False)
    assert {name for name in listed.names if name.startswith("Ia")} == {"Ia_j1", "Ia_j2", "Ia_j3", "Iam_j3"}
    assert len(listed.base()) == len(whole.base()) + 1  # motor 2 moves its own joint alone; motor 3 two of them
    some = coupled_model(friction={"default": [], "j2": [{"term": "rotor_inertia"}]}, rotor_inertia=False)
    assert [name for name in some.names if name.startswith("Ia")] == ["Ia_j2"]
    with pytest.raises(ModelError, match="listed twice, got Ia_j1"):
        coupled_model(friction=["rotor_inertia"])


def test_no_column_is_made_twice() -> None:
    model = coupled_model(friction=["viscous"], motor_friction={**MOTOR, "j1": ["viscous"]})
    assert "Fv_j1" in model.names
    assert "Fvm_j1" not in model.names  # motor 1 moves joint 1 alone: the same column
    assert "Fvm_j2" not in model.names  # and so does motor 2, although another motor moves joint 2 too
    assert {"Fvm_j3", "Fcm_j3", "Iam_j3"} <= set(model.names)
    assert (
        len(model.base()) == len(DynamicModel(model.robot, friction="none").base()) + 3 + 3
    )  # 3 Fv, Fvm_j3, Fcm_j3, one Coulomb of j2


def test_friction_asked_for_on_the_motor_side_is_never_dropped() -> None:
    model = coupled_model(friction="none", motor_friction={"j1": ["viscous"]})
    assert sum(parameter.symbol.startswith("Fv") for parameter in model.parameters) == 1
    other = coupled_model(friction=["viscous"], motor_friction={"j1": ["coulomb"]})
    assert sum(parameter.symbol.startswith("Fc") for parameter in other.parameters) == 1


def test_actuator_rows_are_the_joint_rows_through_the_inverse_transpose() -> None:
    model = coupled_model(motor_friction=MOTOR)
    assert [group.name for group in model.groups] == ["joint:j1", "actuator:j2", "actuator:j3"]
    theta = np.random.default_rng(0).normal(size=len(model.parameters))
    q, v, a = states()
    tau = model.torque(theta, q, v, a)
    expected = tau.copy()
    expected[:, 1:] = np.linalg.solve(BLOCK[1:, 1:].T, tau[:, 1:].T).T
    segment = Segment("s", 0.0, 100.0, q, v, a)
    (_, blocks), *_ = model.row_blocks(segment)
    rows = np.column_stack([block @ theta[group.columns] for group, block in zip(model.groups, blocks, strict=True)])
    np.testing.assert_allclose(rows, expected, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(model.row_targets(tau), expected, rtol=1e-10, atol=1e-12)
    # a motor's own friction does not show in the other motor's row
    assert model.names.index("Fvm_j3") not in model.groups[1].columns


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"reduction": [[1, 0, 0], [0, 32, 32], [0, 64, 64]]}, "singular"),
        ({"reduction": [1, 0, 1]}, "singular"),
        ({"reduction": [[1, 0], [0, 1]]}, r"does not fit the joints, got a matrix of shape \(2, 2\), expected 3 finite"),
        ({"reduction": [1, np.nan, 1]}, "reduction"),
        ({"gain": [1, 0, 1]}, "gain is zero"),
        ({"gain": [1, 1]}, "3 finite numbers"),
        ({"gain": [1, np.inf, 1]}, "3 finite numbers"),
        ({"offset": [1]}, r"joint_offset needs 3"),
    ],
)
def test_impossible_drives_are_refused(options: dict, words: str) -> None:
    with pytest.raises(ModelError, match=words):
        Drive.build(3, **options)


def test_ratios_of_very_different_size_are_not_singular() -> None:
    assert Drive.build(3, reduction=[1e-4, 3000, -1e4]).n == 3
    assert Drive.build(2, gain=5.0).gain.tolist() == [5.0, 5.0]


def test_a_drive_of_another_size_is_refused() -> None:
    with pytest.raises(ModelError, match="another number of axes"):
        DynamicModel(Robot.from_urdf(arm_urdf("zyx")), drive=Drive.build(2))


def test_json_keeps_every_bit() -> None:
    drive = Drive.build(3, reduction=BLOCK / 7, gain=[1 / 3, 0.1, 1e-17], offset=np.pi, gain_origin="data sheet")
    again = Drive.from_dict(json.loads(json.dumps(drive.as_dict())))
    assert again.as_dict() == drive.as_dict()
    assert again.gain.tolist() == drive.gain.tolist()
    with pytest.raises(ValueError, match="read-only"):
        again.gain[0] = 1
