"""The drive train by virtual work: what motors do is what joints get."""

from pathlib import Path

import numpy as np
import pytest
import yaml
from conftest import arm_urdf, rnea
from logs import fourier

from urdf_ident import Drive, DynamicModel, Identification, Robot, identify, read_recording
from urdf_ident.errors import ModelError
from urdf_ident.project import load_project

pytestmark = pytest.mark.usefixtures("unexamined")


@pytest.mark.parametrize(("friction", "law", "symbol"), [("none", "viscous", "Fv"), (["viscous"], "coulomb", "Fc")])
def test_friction_asked_for_on_the_motor_side_is_never_dropped(friction: str | list[str], law: str, symbol: str) -> None:
    drive = Drive.build(3, reduction=A)
    model = DynamicModel(Robot.from_urdf(arm_urdf("zyx")), drive=drive, friction=friction, motor_friction={"j1": [law]})
    assert sum(parameter.symbol.startswith(symbol) for parameter in model.parameters) == 1


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


A = np.array([[-50.0, 0, 0], [0, 45, 0], [0, 32, 32]])  # a negative ratio; motor 3 turns with q2 + q3
OFFSET = np.array([0.3, 0.0, -1.0])  # where the motors read zero [rad]
GAIN = np.array([0.2, -0.3, 0.25])  # torque at the motor per ampere
RATE = 200.0
JOINTS = ("j1", "j2", "j3")

VISCOUS, COULOMB, LOSS = np.array([3.0, 2.0, 0.5]), np.array([2.0, 1.5, 0.0]), np.array([0.1, -0.2, 0.05])
ROTOR = np.array([2e-4, 1.5e-4, 1e-4])  # at the motors [kg·m²]
MOTOR_VISCOUS, MOTOR_COULOMB = 6e-4, 0.04  # of motor 3


def torque(robot: Robot, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
    """RNEA, and the drive train by hand: what motor 3 needs, it takes from joints 2 and 3 alike."""
    tau = rnea(robot.model, q, v, a) + VISCOUS * v + COULOMB * np.tanh(v / 0.02) + LOSS
    speed, rise = 32 * (v[:, 1] + v[:, 2]), 32 * (a[:, 1] + a[:, 2])
    third = 32 * (ROTOR[2] * rise + MOTOR_VISCOUS * speed + MOTOR_COULOMB * np.tanh(speed / (32 * 0.02)))
    tau[:, 0] += 50**2 * ROTOR[0] * a[:, 0]
    tau[:, 1] += 45**2 * ROTOR[1] * a[:, 1] + third
    tau[:, 2] += third
    return tau


def motor_signals(robot: Robot, seed: int, noise: float = 0.02) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Time, motor positions and motor currents; the noise is independent at the motors."""
    t, q, v, a = fourier(3, 20.0, RATE, seed)
    motor = np.column_stack([-50 * (q[:, 0] - 0.3), 45 * q[:, 1], 32 * (q[:, 1] + q[:, 2] + 1.0)])
    tau = torque(robot, q, v, a)
    # joint 3 is moved by motor 3 alone; joint 2 by motor 2, and by motor 3 as much as joint 3 is
    third = tau[:, 2] / 32
    torques = np.column_stack([tau[:, 0] / -50, (tau[:, 1] - tau[:, 2]) / 45, third])
    rng = np.random.default_rng(seed)
    torques = torques + noise * np.sqrt(np.mean(torques**2, axis=0)) * rng.standard_normal(torques.shape)
    return t, motor, torques / GAIN


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A URDF, three split logs of the motors, and the project file that explains them."""
    place = tmp_path_factory.mktemp("motor_side")
    (place / "arm.urdf").write_text(arm_urdf("zyx"))
    robot = Robot.from_urdf(place / "arm.urdf")
    for seed in range(3):
        _, motor, current = motor_signals(robot, seed)
        np.savetxt(place / f"run{seed}_pos.txt", motor[:, [2, 0, 1]], fmt="%.9g")  # the log has its own order of joints
        np.savetxt(place / f"run{seed}_curr.txt", 1000 * current[:, [2, 0, 1]], fmt="%.9g")
    pick = np.ix_([2, 0, 1], [2, 0, 1])
    (place / "project.yaml").write_text(
        yaml.safe_dump(
            {
                "robot": {"urdf": "arm.urdf", "joints": ["j3", "j1", "j2"]},
                "drive": {
                    "reduction": A[pick].tolist(),
                    "gain": GAIN[[2, 0, 1]].tolist(),
                    "joint_offset": OFFSET[[2, 0, 1]].tolist(),
                },
                "log": {
                    "files": {"position": "*_pos.txt", "effort": "*_curr.txt"},
                    "rate": RATE,
                    "units": {"effort": "mA"},
                    "side": {"position": "motor", "effort": "motor"},
                },
                "model": {"friction": ["viscous", "coulomb", "offset"], "motor_friction": {"j3": ["viscous", "coulomb"]}},
            }
        )
    )
    return place


@pytest.fixture(scope="module")
def result(folder: Path) -> Identification:
    project, place = load_project(folder / "project.yaml")
    robot = project.build_robot(folder=place)
    logs = [read_recording(folder / f"run{k}", robot, project.log) for k in range(3)]
    return identify(project.build_model(robot), logs[:2], held_out=logs[2:], project=project)


def test_parameters_of_a_coupled_drive_are_found(result: Identification) -> None:
    at = dict(zip(result.model.names, result.fit_theta, strict=True))
    found = [at[name] for name in ("Fv_j1", "Fv_j2", "Fv_j3", "Fc_j1", "Fc_j2", "Fvm_j3", "Fcm_j3", "offset_j2")]
    np.testing.assert_allclose(found, [3.0, 2.0, 0.5, 2.0, 1.5, MOTOR_VISCOUS, MOTOR_COULOMB, -0.2], rtol=0.05)
    assert abs(at["Fc_j3"]) < 0.05
    assert at["Iam_j3"] == pytest.approx(ROTOR[2], rel=0.05)
    motor = [item for item in result.model.terms if item.side == "motor"]
    assert {(item.axis, item.term.name) for item in motor} == {
        (1, "rotor_inertia"),
        (2, "rotor_inertia"),
        (2, "viscous"),
        (2, "coulomb"),
    }


def test_a_drive_of_another_size_is_refused() -> None:
    with pytest.raises(ModelError, match="another number of axes"):
        DynamicModel(Robot.from_urdf(arm_urdf("zyx")), drive=Drive.build(2))
