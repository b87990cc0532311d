"""Elastic joints behind motors that move several joints, through the command line."""

import json
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from commands import done, write_yaml
from test_elasticity import DRIVES, FC, FV, IA, K, robot_of

from urdf_ident import Limits, identify, random_fourier, read_recording
from urdf_ident.errors import LogError, ModelError
from urdf_ident.pipeline.simulate import true_plant
from urdf_ident.project import parse_project

ARM = robot_of("spatial")
REDUCTION = DRIVES["wrist"]
SETTINGS = {
    "drive": {"reduction": REDUCTION.tolist()},
    "model": {"elastic": True},
    "simulation": {
        "rate": 250,
        "step": 2e-3,
        "controller": {"bandwidth": 3.0},
        "sensors": {"counts": 2.0**23, "motor_counts": 2.0**17, "torque_noise": {"snr": 40}},
    },
}
TRUTH = {
    "joints": list(ARM.joints),
    "reduction": REDUCTION.tolist(),
    "motor": {"inertia": (IA / np.diag(REDUCTION) ** 2).tolist()},
    "friction": {"viscous": FV.tolist(), "coulomb": FC.tolist()},
    "stiffness": K.tolist(),
}


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("coupled")
    config, truth = write_yaml(folder / "arm.yaml", SETTINGS), write_yaml(folder / "truth.yaml", TRUTH)
    urdf, log = folder / "spatial.urdf", folder / "run.csv"
    urdf.write_text(ARM.urdf, encoding="utf-8")
    random_fourier(Limits.from_robot(ARM), 8.0, 5, 1, fill=0.8).write(folder / "motion.csv", rate=250)
    done("simulate", urdf, folder / "motion.csv", "-c", config, "--truth", truth, "-o", log)
    done("identify", urdf, log, "-c", config, "-o", folder / "out")
    return folder


def test_a_coupled_wrist_gives_its_stiffness_back(work: Path) -> None:
    data = json.loads((work / "out" / "identification.json").read_text(encoding="utf-8"))
    for joint, stiff, rotor, r in zip(ARM.joints, K, IA, np.diag(REDUCTION), strict=True):
        found = data["elasticity"][joint]
        assert found["seen"], joint
        assert found["stiffness"]["value"] == pytest.approx(stiff, rel=0.02)
        assert found["rotor_inertia"]["value"] == pytest.approx(rotor, rel=0.1)
        assert found["rotor_inertia_at_motor"]["value"] == pytest.approx(rotor / r**2, rel=0.1)
        assert found["gear_ratio"] == r
        assert found["stiffness"]["unit"] == "N·m/rad"
        assert found["stiffness_bounds"][1] == pytest.approx(stiff, rel=0.03)
    names = {entry["name"]: entry["unit"] for entry in data["parameters"]["standard"]}
    assert names["Km_j3"] == "N·m/rad"
    assert "K_j3" not in names


def test_exports_hold_friction_and_rotors_of_both_motors_and_no_springs(work: Path) -> None:
    root = ElementTree.parse(work / "out" / "spatial_identified.urdf").getroot()
    held = {joint.get("name"): joint.find("dynamics") for joint in root.iter("joint")}
    second, third = held["j2"], held["j3"]
    assert second is not None
    assert third is not None
    # friction is at the motors after their gears: joint 2, moving alone, turns both of them by as much
    assert float(second.get("damping", 0)) == pytest.approx(FV[1] + FV[2], rel=0.05)
    assert float(second.get("friction", 0)) == pytest.approx(FC[1] + FC[2], rel=0.05)
    assert float(third.get("damping", 0)) == pytest.approx(FV[2], rel=0.05)
    target = work / "arm.xml"
    done("export", work / "out" / "identification.json", "--mjcf", target)
    joints = {joint.get("name"): joint for joint in ElementTree.parse(target).getroot().iter("joint")}
    assert float(joints["j2"].get("armature", 0)) == pytest.approx(IA[1] + IA[2], rel=0.1)
    assert float(joints["j3"].get("armature", 0)) == pytest.approx(IA[2], rel=0.1)


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ([0, 0, -32], r"j3.*gear ratio does not fit"),  # the coupling is forgotten
        ([0, 32, 32], r"j3.*gear ratios do not fit.*\[0, (32|31).*, -(32|31).*\]"),
    ],
)
def test_a_wrong_coupling_is_refused(work: Path, row: list[float], words: str) -> None:
    reduction = [*REDUCTION.tolist()[:2], row]
    project = parse_project({**SETTINGS, "drive": {"reduction": reduction}})
    model = project.build_model(ARM)
    with pytest.raises(LogError, match=words) as caught:
        identify(model, [read_recording(work / "run.csv", ARM)], project=project)
    assert "\n" not in str(caught.value)


def test_rotors_that_are_not_the_motors_are_refused(tmp_path: Path) -> None:
    truth = {**TRUTH, "rotor_inertia": IA.tolist()}
    truth.pop("motor")
    with pytest.raises(ModelError, match=r"rotors are not those of the motors.*motor: \{inertia"):
        true_plant(parse_project(SETTINGS), ARM, write_yaml(tmp_path / "truth.yaml", truth))
    other = {**TRUTH, "reduction": np.diag(np.diag(REDUCTION)).tolist()}
    with pytest.raises(ModelError, match=r"gear ratios are not those of drive\.reduction"):
        true_plant(parse_project(SETTINGS), ARM, write_yaml(tmp_path / "other.yaml", other))
