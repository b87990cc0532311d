"""The side-car: every joint term with its unit and shapes, back to the last bit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
import yaml
from conftest import arm_urdf, values_of
from motion_samples import coupled_model, truth

from urdf_ident.errors import OutputError
from urdf_ident.export.sidecar import write_sidecar
from urdf_ident.model.dynamic_model import DynamicModel
from urdf_ident.model.robot import Robot


def test_values_come_back_to_the_last_bit(tmp_path: Path) -> None:
    model = coupled_model()
    theta = truth(model) * np.pi
    theta[-1], theta[-2], theta[-3] = 1e-5, -1 / 3, 1e300
    back = values_of(write_sidecar(tmp_path / "joints.yaml", model, theta))
    assert set(back) == {"j1", "j2", "j3"}
    listed = {f"{symbol}_{joint}": value for joint, terms in back.items() for symbol, value in terms.items()}
    assert listed == dict(zip(model.names[30:], theta[30:].tolist(), strict=True))


def test_people_can_read_it(tmp_path: Path) -> None:
    model = coupled_model()
    text = write_sidecar(tmp_path / "joints.yaml", model, truth(model)).read_text(encoding="utf-8")
    assert text.startswith("# Joint parameters that a URDF cannot hold")
    data = yaml.safe_load(text)
    coulomb = data["joints"]["j2"]["Fc"]
    assert coulomb["unit"] == "N·m"
    assert coulomb["term"] == "coulomb"
    assert coulomb["width"] == model.term_of(model.names.index("Fc_j2")).width
    assert data["joints"]["j3"]["Iam"]["unit"] == "kg·m²"
    assert "N·m" in text  # not escaped
    assert data["robot"] == "arm"
    assert data["urdf_sha256"] == model.robot.sha256
    assert data["drive"]["reduction"] == [[-50, 0, 0], [0, 45, 0], [0, 32, 32]]


@pytest.mark.parametrize("name", ["on", "007", "null", "a: b", "0x1F", "1e5", "gelenk_äöü"])
def test_joint_names_stay_names(tmp_path: Path, name: str) -> None:
    model = DynamicModel(Robot.from_urdf(arm_urdf("z").replace("j1", name)), friction=["viscous"])
    back = values_of(write_sidecar(tmp_path / "joints.yaml", model, np.arange(12.0)))
    assert back == {name: {"Ia": 10.0, "Fv": 11.0}}


def test_the_load_of_friction_can_be_worked_out_from_the_file(tmp_path: Path) -> None:
    """Its frozen torque by Pinocchio, body by body, is the one the model uses; without load friction nothing is written."""
    robot = Robot.from_urdf(arm_urdf("zyx"))
    rng = np.random.default_rng(0)
    reference, (q, v, a) = rng.standard_normal(30), rng.standard_normal((3, 3))
    model = DynamicModel(robot, friction=["load_coulomb"], rotor_inertia=False).with_reference(reference)
    data = yaml.safe_load(write_sidecar(tmp_path / "j.yaml", model, np.ones(33)).read_text(encoding="utf-8"))["load"]
    assert data["order"][0] == "m"
    ten = np.concatenate([data["bodies"][body.name] for body in robot.bodies])
    load = pin.computeJointTorqueRegressor(robot.model, robot.model.createData(), q, v, a) @ ten
    theta = np.concatenate([np.zeros(30), [0.1, 0.2, 0.3]])
    assert model.torque(theta, q, v, a) == pytest.approx([0.1, 0.2, 0.3] * np.abs(load) * np.tanh(v / 0.02))
    plain = write_sidecar(tmp_path / "k.yaml", DynamicModel(robot, friction=["coulomb"]), np.ones(36))
    assert "load" not in yaml.safe_load(plain.read_text(encoding="utf-8"))


def test_joints_without_terms_are_still_listed(tmp_path: Path) -> None:
    model = DynamicModel(Robot.from_urdf(arm_urdf("zy")), friction={"default": [], "j2": ["offset"]}, rotor_inertia=False)
    assert values_of(write_sidecar(tmp_path / "j.yaml", model, np.ones(21))) == {"j1": {}, "j2": {"offset": 1.0}}


def test_an_unwritable_place_is_refused(tmp_path: Path) -> None:
    model = DynamicModel(Robot.from_urdf(arm_urdf("z")))
    (tmp_path / "file").write_text("x")
    with pytest.raises(OutputError):
        write_sidecar(tmp_path / "file" / "j.yaml", model, np.zeros(len(model.parameters)))
